"""The stages "rank" and "copies" by themselves: ranges and parts of them find what the job in memory finds."""

import itertools

import numpy as np
import pyarrow as pa
import pytest

from neardup_gpu import Engine, Recipe
from neardup_gpu.engine.attempts import InlineWorkers
from neardup_gpu.engine.clock import Clock
from neardup_gpu.engine.settings import as_engine
from neardup_gpu.stages.priority import rows_by_priority
from neardup_gpu.store.exchange import read_arrays, read_partition
from neardup_gpu.tasks import copies, ranking, sketching
from neardup_gpu.tasks.columns import TABLE, add_table, save
from neardup_gpu.tasks.cutting import posting_tasks, usual_partitions
from neardup_gpu.tasks.layout import NUMBERS, RANKS, Layout
from neardup_gpu.tasks.work import Shared, Work, file_name

SIZES = (40, 0, 1, 173, 86)


def shared_of(folder, recipe, partitions, task_memory=1 << 24):
    return Shared(str(folder), str(folder / "result"), recipe, as_engine("cpu"), task_memory, partitions)


def layout_of(sizes, num_known, partitions, ordered):
    return Layout(tuple(itertools.accumulate(sizes, initial=0)), sum(sizes[:num_known]), partitions, ordered)


@pytest.mark.parametrize("partitions", [1, 3, 16])
@pytest.mark.parametrize(
    "recipe",
    [Recipe(keep="longest"), Recipe(keep="c:desc"), Recipe(keep="c"), Recipe(method="containment", keep="c")],
    ids=["longest", "desc", "asc", "containment"],
)
def test_ranks(tmp_path, recipe, partitions):
    draw = np.random.default_rng(partitions)
    shared, layout = shared_of(tmp_path, recipe, partitions), layout_of(SIZES, 1, partitions, False)
    num_tokens, size = draw.integers(0, 4, layout.num_rows), draw.integers(0, 3, layout.num_rows)
    values = draw.choice([0.5, -1.0, np.nan, np.inf, 2.0], layout.num_rows)
    column = pa.array(values, mask=draw.random(layout.num_rows) < 0.1, from_pandas=False)
    for number, (first, stop) in enumerate(itertools.pairwise(layout.starts)):
        files = shared.files("sketch", number)
        save(files, "rows", {"num_tokens": num_tokens[first:stop], "size": size[first:stop]})
        with files.exchange("columns", TABLE, 1) as out:
            add_table(out, 0, pa.table({"c": column.slice(first, stop - first)}))
    mine = range(1, len(SIZES))
    for task, number in enumerate(mine):
        ranking.sample(shared.files("sample", task), number, layout, {})
    ranking.choose(shared.files("choose", 0), len(mine), layout)
    spread = [ranking.spread(shared.files("spread", task), number, layout, {}) for task, number in enumerate(mine)]
    counts = [sum(each) for each in zip(*(facts["rows"] for facts in spread), strict=True)]
    assert sum(counts) == sum(SIZES[1:])
    for part, first in enumerate(list(itertools.accumulate(counts, initial=layout.num_known))[:partitions]):
        ranking.order(shared.files("order", part), first, len(mine), layout)
    for number in range(len(SIZES)):
        ranking.rows(shared.files("rows", number), layout)
    for part in range(partitions):
        ranking.rank(shared.files("rank", part), layout)

    known = layout.num_known
    order = rows_by_priority(recipe.keep, num_tokens[known:], {"c": pa.chunked_array([column.slice(known)])})
    if recipe.method.measure.directed:
        order = order[np.argsort(-size[known:][order], kind="stable")]
    expected = np.concatenate([np.arange(known), known + order])
    place = shared.files("test", 0).place
    numbers = [read_arrays(place, [file_name("rank", part, "numbers")], 0, NUMBERS) for part in range(partitions)]
    assert np.concatenate([each["number"] for each in numbers]).tolist() == expected.tolist()
    ranks = [read_arrays(place, [file_name("rows", number, "ranks")], 0, RANKS) for number in range(len(SIZES))]
    assert np.concatenate([each["rank"] for each in ranks])[expected].tolist() == list(range(layout.num_rows))


@pytest.mark.parametrize("partitions, task_memory", [(1, 1 << 24), (3, 1 << 14)])
def test_copies(tmp_path, partitions, task_memory):
    """With little memory each range is compared in several parts."""
    draw = np.random.default_rng(partitions)
    sizes = (500, 0, 2000, 1)
    shared, layout = shared_of(tmp_path, Recipe(), partitions, task_memory), layout_of(sizes, 1, partitions, True)
    words = draw.integers(0, 2**64, (600, 2), np.uint64)
    words[:300, 0] = words[300:, 0]  # one word is not enough to tell them
    of = words[draw.integers(0, 600, layout.num_rows)]
    of[draw.random(layout.num_rows) < 0.3] = words[1]  # more than fit at once
    present = draw.random(layout.num_rows) < 0.9
    for number, (first, stop) in enumerate(itertools.pairwise(layout.starts)):
        rows = np.flatnonzero(present[first:stop])
        sketching._save_hashes(shared.files("sketch", number), "hashes", of[first:stop][rows], rows)
    names = [file_name("sketch", number, "hashes") for number in range(len(sizes))]
    facts = [copies.copies(shared.files("copies", part), names, layout) for part in range(partitions)]

    first_with, expected = {}, {}
    for row in np.flatnonzero(present).tolist():
        representative = first_with.setdefault(tuple(of[row].tolist()), row)
        if representative != row:
            expected[row] = representative
    assert sum(each["copies"] for each in facts) == len(expected)
    place, found = shared.files("test", 0).place, {}
    for part in range(partitions):
        by_range = read_arrays(
            place, [file_name("copies", of, "ranges") for of in range(partitions)], part, copies.BY_RANGE
        )
        assert (
            (by_range["representative"] >= layout.bounds[part]) & (by_range["representative"] < layout.bounds[part + 1])
        ).all()
        found |= dict(zip(by_range["rank"].tolist(), by_range["representative"].tolist(), strict=True))
    assert found == expected
    found = {}
    for number, first in enumerate(layout.starts[:-1]):
        for batch in read_partition(place, [file_name("copies", of, "slices") for of in range(partitions)], number):
            rows = (first + batch.column("row").to_numpy()).tolist()
            found |= dict(zip(rows, batch.column("representative").to_numpy().tolist(), strict=True))
    assert found == expected


def seen(files):
    return {"backend": files.shared.engine.backend}


@pytest.mark.parametrize("backend", ["reference", "cpu", "gpu"])
def test_what_needs_no_device_asks_for_none(tmp_path, backend):
    """A worker beside those with a GPU sees none, and an engine that names one would be refused there."""
    engine = Engine(backend=backend, gpu_memory="1GB" if backend == "gpu" else None)
    shared = Shared(str(tmp_path), str(tmp_path / "result"), Recipe(), engine, 1 << 24, 1)
    (tmp_path / "result").mkdir()
    work = Work(shared, InlineWorkers(), Clock(None), "identity")
    assert work.stage("kernels", seen, [()], on_device=True).facts == [{"backend": backend}]
    assert work.stage("others", seen, [()]).facts == [{"backend": "cpu" if backend == "gpu" else backend}]


@pytest.mark.parametrize(
    ("slices", "text_bytes", "workers", "expected"),
    [
        (1, 1000, 1, 1),
        (1, 1000, 3, 3),  # each worker has one
        (10, 10**8, 2, 4),  # and two, if there are as many slices
        (3, 10**8, 2, 3),
        (240, 10 << 27, 2, 10),  # one for 128 MB
        (240, (10 << 27) + 1, 2, 11),
        (10, 10**10, 2, 10),  # no more than slices
        (240, 10 << 27, 64, 128),
    ],
)
def test_usual_partitions(slices, text_bytes, workers, expected):
    assert usual_partitions(slices, text_bytes, workers) == expected


def test_tasks_of_postings():
    assert (
        posting_tasks(10, 10 << 20, 20, 2) == 10
    )  # a task a slice, where these have as much text as there are counters
    assert posting_tasks(10, 5 << 20, 20, 2) == 5
    assert posting_tasks(10, (5 << 20) + 1, 20, 2) == 6
    assert posting_tasks(10, 5 << 20, 20, 7) == 7  # as many as partitions
    assert posting_tasks(10, 5 << 20, 20, 12) == 10
