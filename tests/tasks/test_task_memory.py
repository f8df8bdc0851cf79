"""A task holds no more than `task_memory`, whatever comes to it; and the driver nothing for each document.

Growth is measured in a process of its own, stage by stage: the most that is resident while a stage runs, above what is
resident before. All stages have run there before on few rows, so that nothing is compiled or imported meanwhile.
"""

import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from neardup_gpu import MinHash, Recipe, ResourceError
from neardup_gpu.data import Ragged
from neardup_gpu.engine.settings import as_engine
from neardup_gpu.store.exchange import read_partition
from neardup_gpu.tasks import candidates, colliding, crowds, naming, pairs
from neardup_gpu.tasks.columns import lists_of
from neardup_gpu.tasks.copies import BY_RANGE
from neardup_gpu.tasks.layout import Layout
from neardup_gpu.tasks.work import Shared, file_name

TASK_MEMORY = 64 * 10**6
ROWS = 10**6
RANGES = 4
STATUS = Path("/proc/self/status")

needs_linux = pytest.mark.skipif(not STATUS.exists(), reason="what is resident is read in /proc")


def resident(what):
    """Bytes of this process: VmRSS now, VmHWM at most so far."""
    [line] = [line for line in STATUS.read_text().splitlines() if line.startswith(what)]
    return 1024 * int(line.split()[1])


def growth(run, *arguments):
    """Most bytes that a call adds to what is resident."""
    Path("/proc/self/clear_refs").write_text("5")  # begins VmHWM again
    before = resident("VmRSS")
    run(*arguments)
    return resident("VmHWM") - before


def one_bucket(folder, rows):
    """Stage by stage, a job whose documents have one key, and three shingles each, two of which are the same."""
    recipe = Recipe(method=MinHash(k=1, s=3), threshold=0.5)
    shared = Shared(str(folder), str(folder / "result"), recipe, as_engine("cpu"), TASK_MEMORY, RANGES)
    layout = Layout((0, rows), 0, RANGES, True)
    ranks = np.random.default_rng(1).permutation(rows)

    def entries():
        values = np.full((rows, 1), 77, np.uint64)
        [(_, columns)] = colliding.exchanged(recipe.method, values, ranks, rows, 1, recipe.seed)
        write(shared, "keys", "entries", {name: typed(column) for name, column in columns.items()}, 1, [columns])

    def sets():
        def parts():
            for batch in read_partition(shared.files("test", 0).place, [file_name("pairs", 0, "wanted")], 0):
                rank = batch.column("rank").to_numpy()
                values = np.stack([np.full(len(rank), 1), np.full(len(rank), 2), 3 + rank], axis=1).astype(np.uint64)
                shingles = Ragged(values.reshape(-1), np.arange(0, values.size + 1, 3))
                yield {"rank": rank, "shingles": lists_of(shingles)}

        write(shared, "sets", "sets", pairs.SETS, 1, parts())

    def names(stage, what):
        return [file_name(stage, 0, what)]

    given = names("keys", "entries"), (0, 1), layout, rows, 1
    yield "entries", entries
    yield "collide", lambda: candidates.collide_keys(shared.files("collide", 0), *given)
    yield "pairs", lambda: pairs.pairs(shared.files("pairs", 0), names("collide", "found"), layout)
    yield "sets", sets
    yield "verify", lambda: pairs.verify(shared.files("verify", 0), names("sets", "sets"), layout)
    left = names("verify", "left")
    yield "decide", lambda: naming.decide(shared.files("decide", 0), left, layout)
    yield "copies", lambda: write(shared, "copies", "ranges", BY_RANGE, RANGES, [])
    yield "name", lambda: naming.name(shared.files("name", 0), left, [], names("copies", "ranges"), layout)


def crowd(folder, rows):
    """A crowd, of which some documents have verified pairs with one another, as many as a task may hold; and one of
    all documents, which is refused."""
    shared = Shared(str(folder), str(folder / "result"), Recipe(), as_engine("cpu"), TASK_MEMORY, RANGES)
    layout, number = Layout((0, rows), 0, RANGES, True), rows // 50
    apart = rows // number

    def pairs_of(number, each):
        left = np.repeat(np.arange(number), each)
        right = left + np.tile(np.arange(1, each + 1), number)
        left, right = left[right < number], right[right < number]
        return {"left": apart * left, "right": apart * right, "resemblance": np.ones(len(left))}

    def write_all():
        for stage, crowded in (("found", apart * np.arange(number)), ("all", np.arange(rows))):
            write(shared, stage, "crowded", candidates.CROWDED, 1, [{"rank": crowded}])
        with shared.files("verified", 0).exchange("left", pairs.VERIFIED, RANGES) as writer:
            columns = pairs_of(number, 14)
            writer.add(layout.range_of(columns["left"]), columns)

    def sets():
        rank = apart * np.arange(number)
        values = (3 * rank[:, None] + np.arange(3)).astype(np.uint64)
        shingles = Ragged(values.reshape(-1), np.arange(0, values.size + 1, 3))
        write(shared, "crowd-sets", "sets", pairs.SETS, 1, [{"rank": rank, "shingles": lists_of(shingles)}])

    def refused():
        with pytest.raises(ResourceError, match=r"^1,000,000 documents share .* pass a larger task_memory$"):
            crowds.members(shared.files("refused", 0), ["all/000000-crowded"], verified, layout)

    verified = ["verified/000000-left"]
    yield "write", write_all
    if rows == ROWS:
        yield "refused", refused
    yield "members", lambda: crowds.members(shared.files("members", 0), ["found/000000-crowded"], verified, layout)
    yield "sets", sets
    yield "crowd", lambda: crowds.crowd(shared.files("crowd", 0), ["crowd-sets/000000-sets"], [], layout, None)


def typed(column):
    return pa.from_numpy_dtype(column.dtype)


def write(shared, stage, what, schema, partitions, parts):
    schema = schema if isinstance(schema, pa.Schema) else pa.schema(list(schema.items()))
    with shared.files(stage, 0).exchange(what, schema, partitions) as writer:
        for columns in parts:
            writer.add_to(0, columns)


JOBS = {"one_bucket": one_bucket, "crowd": crowd}


def main(name, folder, stage):
    """Run all stages of few rows, then one of many, whose files lie in the folder; print by how much it grew."""
    with tempfile.TemporaryDirectory(dir=folder) as few:
        for _, run in JOBS[name](Path(few), 2000):
            run()
    run = dict(JOBS[name](Path(folder), ROWS))[stage]
    print(json.dumps(growth(run)))


if __name__ == "__main__":
    main(*sys.argv[1:])
