"""A task holds no more than `task_memory`, whatever comes to it; and the driver nothing for each document.

Growth is measured in a process of its own, stage by stage: the most that is resident while a stage runs, above what is
resident before. All stages have run before on few rows, in the process that forks those, so that nothing is compiled or
imported meanwhile.
"""

import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from neardup_gpu import MinHash, Recipe, dedup
from neardup_gpu.data import Ragged
from neardup_gpu.engine.settings import as_engine
from neardup_gpu.errors import ResourceError
from neardup_gpu.store.exchange import read_partition
from neardup_gpu.tasks import candidates, colliding, copies, crowds, frequencies, naming, pairs, sketching
from neardup_gpu.tasks.columns import lists_of
from neardup_gpu.tasks.copies import BY_RANGE
from neardup_gpu.tasks.layout import Layout
from neardup_gpu.tasks.work import COUNTS, WAITING_BESIDE, Shared, file_name
from neardup_gpu.tasks.workers import Workers

TASK_MEMORY = 32 * 10**6
ROWS = 10**6 // 2
RANGES = 4
STATUS = Path("/proc/self/status")

needs_linux = pytest.mark.skipif(not STATUS.exists(), reason="what is resident is read in /proc")


def resident(what):
    """Bytes of this process: VmRSS now, VmHWM at most so far."""
    [line] = [line for line in STATUS.read_text().splitlines() if line.startswith(what)]
    return 1024 * int(line.split()[1])


def growth(run, *arguments):
    """Return the most bytes that a call adds to what is resident, without pages of files, such as those of libraries:
    the system takes these back where memory is scarce."""
    Path("/proc/self/clear_refs").write_text("5")  # begins VmHWM again
    before, files = resident("VmRSS"), resident("RssFile")
    run(*arguments)
    return resident("VmHWM") - before - max(0, resident("RssFile") - files)


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
    yield "write entries", entries
    yield "collide", lambda: candidates.collide_keys(shared.files("collide", 0), *given)
    yield "pairs", lambda: pairs.pairs(shared.files("pairs", 0), names("collide", "found"), layout)
    yield "write sets", sets
    yield "verify", lambda: pairs.verify(shared.files("verify", 0), names("sets", "sets"), layout)
    left = names("verify", "left")
    for number in range(1, RANGES):
        yield "write pairs", partial(write, shared, "verify", "right", pairs.VERIFIED, 1, [], number)
    yield "decide", lambda: naming.decide(shared.files("decide", 0), [], layout)
    yield "write copies", lambda: write(shared, "copies", "ranges", BY_RANGE, RANGES, [])
    yield "name", lambda: naming.name(shared.files("name", 0), left, [], names("copies", "ranges"), layout)


def one_shingle(folder, rows):
    """The postings of a range: one shingle that all documents have, and others that twenty have."""
    shared = Shared(str(folder), str(folder / "result"), Recipe(), as_engine("cpu"), TASK_MEMORY, 1)
    layout = Layout((0, rows), 0, 1, True)

    def postings():
        draw = np.random.default_rng(1)
        with shared.files("postings", 0).exchange("postings", candidates.POSTED, 1, WAITING_BESIDE) as writer:
            for some in np.array_split(draw.permutation(rows), 50):
                rank = np.repeat(some, 3)
                shingle = draw.integers(0, rows // 10, len(rank)).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
                shingle[::3] = 1
                place = np.tile(np.arange(3, dtype=np.uint32), len(some))
                size = np.full(len(rank), 12, np.int32)
                bits = np.zeros(len(rank), np.uint64)  # which reject no pair
                writer.add_to(0, {"shingle": shingle, "rank": rank, "place": place, "size": size, "bits": bits})

    yield "write postings", postings
    names = ["postings/000000-postings"]
    yield "collide", lambda: candidates.collide_shingles(shared.files("collide", 0), names, layout)


def one_text(folder, rows):
    """Documents that are all the same, of the input and of a reference set."""
    shared = Shared(str(folder), str(folder / "result"), Recipe(), as_engine("cpu"), TASK_MEMORY, 1)
    layout = Layout((0, rows // 2, rows), rows // 2, 1, True)

    def hashes():
        for number in range(2):
            same = np.full((rows // 2, 2), 77, np.uint64)
            sketching._save_hashes(shared.files("sketch", number), "hashes", same, np.arange(rows // 2))

    yield "write hashes", hashes
    names = [file_name("sketch", number, "hashes") for number in range(2)]
    yield "copies", lambda: copies.copies(shared.files("copies", 0), names, layout)


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
        write(shared, "verified", "right", pairs.VERIFIED, 1, [pairs_of(number, 14)])

    def sets():
        rank = apart * np.arange(number)
        values = (3 * rank[:, None] + np.arange(3)).astype(np.uint64)
        shingles = Ragged(values.reshape(-1), np.arange(0, values.size + 1, 3))
        write(shared, "crowd-sets", "sets", pairs.SETS, 1, [{"rank": rank, "shingles": lists_of(shingles)}])

    def refused():
        with pytest.raises(ResourceError, match=rf"^{ROWS:,} documents share .* pass a larger task_memory$"):
            crowds.members(shared.files("refused", 0), ["all/000000-crowded"], verified, layout)

    verified = ["verified/000000-right"]
    yield "write", write_all
    if rows == ROWS:
        yield "refused", refused
    yield "members", lambda: crowds.members(shared.files("members", 0), ["found/000000-crowded"], verified, layout)
    yield "write sets", sets
    yield "crowd", lambda: crowds.crowd(shared.files("crowd", 0), ["crowd-sets/000000-sets"], [], layout, None)


def frequencies_of(folder, rows):
    """What slices counted of a range of elements, three of each document; and one that comes again and again."""
    recipe = Recipe(method=MinHash(weighting="tfidf"))
    shared = Shared(str(folder), str(folder / "result"), recipe, as_engine("cpu"), TASK_MEMORY, 1)

    def counts():
        draw = np.random.default_rng(1)
        with shared.files("count", 0).exchange("counts", COUNTS, 1) as writer:
            for _ in range(10):
                element = draw.integers(0, 2**64, 3 * rows // 10, np.uint64)
                element[::2] = 2**64 - 1
                writer.add_to(0, {"element": element, "documents": np.ones(len(element), np.int64)})

    yield "write counts", counts
    yield "sum", lambda: frequencies.add_up(shared.files("sum", 0), ["count/000000-counts"], 0)


def alike(folder, rows):
    """A crowd of a fiftieth of the documents, which are all alike: each has as many partners as are listed. Those are
    more than a task may hold."""
    recipe = Recipe(method="exact", threshold=0.5)
    shared = Shared(str(folder), str(folder / "result"), recipe, as_engine("cpu"), TASK_MEMORY, RANGES)
    number = rows // 50
    layout = Layout((0, number), 0, RANGES, True)

    def write_all():
        rank = np.arange(number)
        write(shared, "found", "crowded", candidates.CROWDED, 1, [{"rank": rank}])
        write(shared, "verified", "right", pairs.VERIFIED, 1, [])
        values = np.stack([np.full(number, 1), np.full(number, 2), 3 + rank], axis=1).astype(np.uint64)
        shingles = Ragged(values.reshape(-1), np.arange(0, values.size + 1, 3))
        write(shared, "crowd-sets", "sets", pairs.SETS, 1, [{"rank": rank, "shingles": lists_of(shingles)}])
        crowds.members(shared.files("members", 0), ["found/000000-crowded"], ["verified/000000-right"], layout)

    def join():
        found = crowds.crowd(shared.files("crowd", 0), ["crowd-sets/000000-sets"], [], layout, None)
        assert rows < ROWS or crowds.FOUND_BYTES * found["further"] > TASK_MEMORY

    yield "write", write_all
    yield "crowd", join


def one_rank(folder, rows):
    """A document that is found with all others, and has a pair with each of them."""
    recipe = Recipe(method=MinHash(k=1, s=3), threshold=0.5)
    shared = Shared(str(folder), str(folder / "result"), recipe, as_engine("cpu"), TASK_MEMORY, 1)
    layout = Layout((0, rows), 0, 1, True)

    def parts(**more):
        for left in np.array_split(np.random.default_rng(1).permutation(rows - 1), 20):
            given = {name: np.full(len(left), value) for name, value in more.items()}
            yield {"left": left, "right": np.full(len(left), rows - 1), **given}

    def write_all():
        write(shared, "collide", "found", candidates.FOUND, 1, parts(needed=np.uint16(1)))
        write(shared, "verify", "right", pairs.VERIFIED, 1, parts(resemblance=0.5))
        write(shared, "verify", "left", pairs.VERIFIED, 1, parts(resemblance=0.5))
        write(shared, "copies", "ranges", BY_RANGE, 1, [])
        naming.decide(shared.files("decide", 0), [], layout)

    def told():
        found = pairs.pairs(shared.files("pairs", 0), ["collide/000000-found"], layout)
        assert found["pairs"] == rows - 1
        naming.name(shared.files("name", 0), left, [], ["copies/000000-ranges"], layout)

    left = ["verify/000000-left"]
    yield "write", write_all
    yield "pairs and names", told


def typed(column):
    return pa.from_numpy_dtype(column.dtype)


def write(shared, stage, what, schema, partitions, parts, number=0):
    schema = schema if isinstance(schema, pa.Schema) else pa.schema(list(schema.items()))
    with shared.files(stage, number).exchange(what, schema, partitions) as writer:
        for columns in parts:
            writer.add_to(0, columns)


JOBS = {
    "one_text": one_text,
    "one_bucket": one_bucket,
    "one_shingle": one_shingle,
    "crowd": crowd,
    "alike": alike,
    "one_rank": one_rank,
    "sum": frequencies_of,
}


def main(name, folder):
    """Run all stages of few rows, then each of many in a process of its own; print by how much that one grew."""
    with tempfile.TemporaryDirectory(dir=folder) as few:
        for _, run in JOBS[name](Path(few), 2000):
            run()
    for stage, run in JOBS[name](Path(folder), ROWS):
        if (child := os.fork()) == 0:
            grown = growth(run)
            if not stage.startswith("write"):
                print(grown, stage, flush=True)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0, stage


def printed(*arguments):
    """Return the lines that this file prints as a program of its own."""
    path = os.pathsep.join(filter(None, sys.path))
    environment = {**os.environ, "PYTHONPATH": path, "NUMBA_NUM_THREADS": "1"}
    command = [sys.executable, __file__, *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@needs_linux
@pytest.mark.parametrize("name", JOBS)
def test_a_task_holds_no_more_than_it_may(tmp_path, name):
    lines = printed(name, tmp_path)
    assert len(lines) >= 1
    for line in lines:
        grown, stage = line.split(" ", 1)
        assert 0 < int(grown) <= TASK_MEMORY, stage


# ---------------------------------------------------------------------------------------------------------- the driver


def drive(source, work):
    """Run a job by two processes; print the most that was resident in this one, which drives it."""
    workers = Workers(work_dir=work, number=2, slice_bytes=os.path.getsize(f"{source}/0.parquet"), partitions=4)
    report = dedup(source, output=f"{work}-out", workers=workers, engine="cpu").report
    assert report["tasks"]["slices"] == 4 and report["counts"]["removed_near"] > 0
    print(resident("VmHWM"))


@needs_linux
def test_the_driver_holds_nothing_of_a_document(tmp_path):
    """Names of files and counts are as many for many documents as for few, if slices and partitions are; so less than
    a word for each further document is held, which is what the least of arrays would take."""
    few, many, most = 20_000, 400_000, []
    for number in (few, many):
        (source := tmp_path / str(number)).mkdir()
        draw = np.random.default_rng(number)
        for part in range(4):
            words = draw.integers(0, 10**6, (number // 4, 20))
            words[::10] = words[1::10] = words[2::10]
            words[::10, 0] = 7
            texts = pa.array([" ".join(map(str, row)) for row in words.tolist()])
            pq.write_table(pa.table({"text": texts}), source / f"{part}.parquet", compression="none")
        [line] = printed("drive", source, tmp_path / f"work-{number}")
        most.append(int(line))
    assert most[1] - most[0] < 8 * (many - few)


if __name__ == "__main__":
    drive(*sys.argv[2:]) if sys.argv[1] == "drive" else main(*sys.argv[1:])
