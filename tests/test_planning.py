"""Plans: the formulas of what is exchanged beside the files of real jobs, and what is chosen and said."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from grids import some
from stored_files import num_bytes

from neardup_gpu import BottomK, MinHash, Recipe, SimHash, Unit
from neardup_gpu.data import Ragged
from neardup_gpu.engine.host import HostRuntime
from neardup_gpu.errors import ParameterError
from neardup_gpu.planning import forecast
from neardup_gpu.planning.choices import COMPARED, SMALL_BLOCK, plan, small_blocks
from neardup_gpu.planning.costs import load_rates, stage_names, tasks_of
from neardup_gpu.planning.files import exchanges
from neardup_gpu.planning.settings import Machines, Workload
from neardup_gpu.stages import METHODS
from neardup_gpu.stages.joining import SetCollector
from neardup_gpu.store.exchange import read_partition
from neardup_gpu.store.places import Place
from neardup_gpu.tasks.sizes import Exchange

sys.path.append(str(Path(__file__).parent.parent))

from benchmarks import rates

STAGE_RATES = {"task_seconds": 0.001, "item_seconds": 1e-8}


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("planning") / "documents"
    rates.write_documents(folder, 4000, 4)
    return folder


def values_of(place: Place, file: Exchange) -> tuple[int, int, int, int]:
    """(rows, bytes of values, bytes of files, files) of all files of a kind, as they are read."""
    names = sorted(f"{file.stage}/{path.name}" for path in Path(str(place.folder), file.stage).glob(f"*-{file.what}"))
    rows = values = 0
    for partition in range(file.partitions):
        for batch in read_partition(place, names, partition):
            rows += batch.num_rows
            values += sum(map(rates.bytes_of, batch.columns))
    return rows, values, sum(num_bytes(place, name) for name in names), len(names)


@pytest.mark.parametrize("spool", [False, True])
@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("method", COMPARED)
def test_the_bytes_of_every_file_are_those_of_a_job(
    documents: Path, tmp_path: Path, method: str, partitions: int, spool: bool
) -> None:
    check_bytes(
        documents,
        tmp_path / "work",
        {f"sketch {what}" for what in ("slots",) if method == "exact"},
        method=method,
        slices=4,
        partitions=partitions,
        spool=spool,
    )


OTHERS = {
    "bottomk": {"method": "bottomk"},
    "groups": {"method": BottomK(candidates="groups")},
    "modm": {"method": "modm"},
    "simhash": {"method": "simhash"},
    "128 bits": {"method": SimHash(bits=128)},
    "containment": {"method": "containment"},
    "weights": {"method": MinHash(weighting="tf")},
    "checked": {"method": "minhash", "check": 50},
    "checked, exact, spool": {"method": "exact", "check": 50, "spool": True},
    "identical": {"method": "identical"},
    "equal parts": {"method": "exact", "unit": Unit("window:20", keep_copies=2)},
    "parts": {"method": "exact", "threshold": 0.5, "unit": Unit("window:20/10")},
    "parts inside": {"method": "minhash", "threshold": 0.5, "unit": Unit("window:20", inside=True)},
}


SOME = ("groups", "128 bits", "containment", "weights", "checked, exact, spool", "equal parts", "parts inside")


@pytest.mark.parametrize("name", some(OTHERS, SOME))
def test_the_bytes_of_other_methods_and_of_a_check(documents: Path, tmp_path: Path, name: str) -> None:
    settings = OTHERS[name]
    slots = {"sketch slots"} if settings["method"] in ("exact", "containment") else set()
    check_bytes(documents, tmp_path / "work", slots, slices=4, partitions=3, **settings)


@pytest.mark.parametrize("method", COMPARED)
def test_the_bytes_of_a_job_with_a_reference_set(
    documents: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, method: str
) -> None:
    reference = tmp_path / "reference"
    rates.write_documents(reference, 1000, 2)
    slots = {"sketch slots"} if method == "exact" else set()
    settings = {"method": method, "slices": 4, "partitions": 3, "check": 20}
    check_bytes(documents, tmp_path / "work", slots, against=reference, **settings)


def test_the_bytes_of_slices_that_count_in_tables(documents: Path, tmp_path: Path) -> None:
    check_bytes(
        documents, tmp_path / "work", {"sketch counters", "sketch beyond"}, method="exact", slices=1, partitions=3
    )


def check_bytes(documents: Path, work: Path, counting: set[str], **settings: Any) -> None:
    """Compare all files of a job with the plan; `counting` are those in which shingles are counted."""
    shape = rates.run_tasks(documents, work, workers=1, **settings)
    counts = rates.counted(work, shape)
    assert counts.copies > 10 and (counts.verified > 0 or shape.only_equal) and counts.pairs >= counts.verified
    planned, place = exchanges(counts, shape), Place.of(str(work))
    for file in planned:
        rows, values, sizes, files = values_of(place, file)
        if file.tables:
            assert (files, rows) <= (file.files, file.tables), (file.stage, file.what)
            assert sizes <= file.payload + file.overhead(shape.task_memory), (file.stage, file.what)
            continue
        assert (rows, values, files) == (file.rows, file.payload, file.files), (file.stage, file.what)
        assert file.payload < sizes <= file.payload + file.overhead(shape.task_memory), (file.stage, file.what)
    written = {f"{path.parent.name} {path.name[7:]}" for path in work.glob("*/[0-9]*-*")}
    assert written == {f"{file.stage} {file.what}" for file in planned}
    assert (counting if shape.posts else set()) == written & {"sketch slots", "sketch counters", "sketch beyond"}
    stages = {path.name for path in work.iterdir() if path.is_dir() and any(path.glob("*.json"))}
    assert stages == set(stage_names(shape))
    for stage in stages:
        assert tasks_of(stage, counts, shape) == len(rates.records(work, stage))


def test_keys_and_hashes_of_a_document() -> None:
    made = plan(Workload(documents=1e6, text_bytes=10**9, copies=0), Recipe(method="minhash", threshold=0.8))
    by_name = {f"{each.stage} {each.what}": each.payload for each in made.exchanged_by}
    assert made.shape.tables == 20
    assert by_name["keys entries"] == 280 * 10**6
    assert by_name["sketch hashes"] == 24 * 10**6


@pytest.mark.parametrize("spool", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_more_documents_cost_more(method: str, spool: bool) -> None:
    machines = Machines(nodes=4, cores=8)
    plans = [
        plan(Workload(documents=n, text_bytes=int(n) * 2000), Recipe(method=method), machines=machines, spool=spool)
        for n in (1e5, 1e6, 1e7, 1e8, 1e9)
    ]
    for less, more in zip(plans, plans[1:], strict=False):
        for name in ("core_seconds", "read", "exchanged", "written", "seconds"):
            assert less.totals[name] < more.totals[name], name


def test_what_is_assumed_of_a_reference_set_and_a_check_costs() -> None:
    work = {"documents": 1e6, "text_bytes": 10**9}
    usual = plan(Workload(**work), Recipe(method="minhash")).totals
    for more in ({"against_documents": 1e6, "against_bytes": 10**9}, {"check": 1000}):
        assert plan(Workload(**work, **more), Recipe(method="minhash")).totals["exchanged"] > usual["exchanged"]
    found = [plan(Workload(**work, containers=number), Recipe(method="containment")) for number in (0, 10**6)]
    assert found[1].totals["exchanged"] - found[0].totals["exchanged"] == 32 * 10**6
    assert found[0].notes[0].startswith("rates: those of exact, as those of containment were not measured")


def test_blocks_of_a_large_job_are_not_small() -> None:
    work, machines = Workload(documents=1e9, text_bytes=5 * 10**12), Machines(nodes=10, cores=32)
    usual = plan(work, Recipe(method="minhash"), machines=machines, slice_bytes=10**9, partitions=5000)
    small = small_blocks(usual.counts, usual.shape, 320)
    assert small is not None and small.block_bytes < SMALL_BLOCK
    assert any(note.startswith("small blocks: ") for note in usual.notes)
    chosen = plan(work, Recipe(method="minhash"), machines=machines, task_memory=4 * 10**9)
    assert small_blocks(chosen.counts, chosen.shape, 320) is None
    [note] = [note for note in chosen.notes if note.startswith("chosen for larger blocks: ")]
    assert f"{chosen.shape.slices:,} in place of 5,000" in note
    assert not any(note.startswith("small blocks: ") for note in chosen.notes)
    assert chosen.totals["memory"] <= chosen.shape.task_memory


def test_bits_beyond_the_memory_of_a_task_leave_the_choice_of_partitions() -> None:
    work, machines = Workload(documents=1e11, text_bytes=50 * 10**13), Machines(nodes=100, cores=32)
    found = plan(work, Recipe(method="minhash"), machines=machines)
    assert found.shape.partitions < 50_000
    [memory] = [note for note in found.notes if note.startswith("memory: ")]
    assert memory.endswith("more than 2.0 GB; give a larger task_memory")
    work = Workload(documents=1e6, text_bytes=10**9)
    by_cluster = [plan(work, Recipe(cluster=name)).stages for name in ("greedy", "components")]
    greedily, joined = (next(each.memory for each in found if each.name == "decide") for found in by_cluster)
    assert greedily < joined < greedily + 10**9


def test_what_was_given_is_not_chosen() -> None:
    work, machines = Workload(documents=1e9, text_bytes=5 * 10**12), Machines(nodes=10, cores=32)
    of_slices = plan(work, Recipe(method="minhash"), machines=machines, slice_bytes=10**9)
    assert of_slices.shape.slices == 5000 and of_slices.slice_bytes == 10**9
    of_partitions = plan(work, Recipe(method="minhash"), machines=machines, partitions=4000)
    assert of_partitions.shape.partitions == 4000 and of_partitions.shape.slices < 5000


def test_small_blocks_of_a_small_job_do_no_harm() -> None:
    made = plan(Workload(documents=1e5, text_bytes=3 * 10**7), Recipe(method="minhash"))
    assert made.notes == []


def test_each_slice_has_counters() -> None:
    made = plan(Workload(documents=1e6, text_bytes=10**10), partitions=64)
    [counters] = [each for each in made.exchanged_by if (each.stage, each.what) == ("sketch", "counters")]
    assert counters.files == made.shape.slices == 10
    assert counters.payload == 10 * 2**28  # a quarter of 2 GB holds no more, with what is beyond


def test_what_bounds_a_stage() -> None:
    made = {}
    for name, machines in {
        "cores": Machines(nodes=2, cores=2, open_seconds=0, disk=10**15, network=10**15),
        "disk": Machines(nodes=2, cores=2, open_seconds=0, disk=1000),
        "network": Machines(nodes=2, cores=2, open_seconds=0, network=1000),
    }.items():
        found = plan(Workload(documents=1e7, text_bytes=10**11), Recipe(method="minhash"), machines=machines)
        made[name] = {stage.name: stage for stage in found.stages}
        assert made[name]["collide"].bound == name
    assert made["cores"]["decide"].bound == "tasks"
    assert made["cores"]["collide"].seconds == made["cores"]["collide"].core_seconds / 4
    assert made["disk"]["collide"].seconds > 1000 * made["cores"]["collide"].seconds


def test_rates_are_those_given() -> None:
    stages = [*stage_names(plan(Workload(documents=10, text_bytes=1000)).shape)]
    known = {"methods": {"exact": dict.fromkeys(stages, STAGE_RATES)}}
    made = plan(Workload(documents=1e6, text_bytes=10**8), machines=Machines(open_seconds=0), rates=known)
    [sketch] = [stage for stage in made.stages if stage.name == "sketch"]
    assert sketch.core_seconds == pytest.approx(0.001 * made.shape.slices + 1)


def test_parts_of_documents_have_rates_of_their_own() -> None:
    work, machines = Workload(documents=1e6, text_bytes=10**8, units=1e7), Machines(open_seconds=0)
    slower = {stage: {**STAGE_RATES, "item_seconds": 3e-8} for stage in load_rates()["methods"]["exact"]}
    known = {"methods": {"exact": dict.fromkeys(slower, STAGE_RATES), "exact, units": slower}}
    for threshold, seconds in ((0.8, 3), (1.0, 1)):
        recipe = Recipe(unit=Unit("line"), threshold=threshold)
        made = plan(work, recipe, machines=machines, rates=known)
        assert made.stages[0].core_seconds == pytest.approx(0.001 * made.shape.slices + seconds)
    for method, is_borrowed in (("exact", False), ("minhash", True)):
        notes = plan(work, Recipe(method=method, unit=Unit("line"), threshold=0.8)).notes
        assert any(note.startswith("rates: those of whole documents") for note in notes) == is_borrowed


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"documents": 0}, "documents must be between 1 and"),
        ({"documents": 1.5}, "documents must be a whole number"),
        ({"text_bytes": 0}, "text_bytes must be >= 1"),
        ({"copies": 1}, "copies must be >= 0 and < 1"),
        ({"pairs": -1}, "pairs must be"),
        ({"against_documents": 10}, "against_bytes: is needed for a reference set"),
        ({"against_bytes": 10}, "against_documents: is needed for a reference set"),
    ],
)
def test_impossible_workloads(changed: dict, says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        Workload(**{"documents": 100, "text_bytes": 1000, **changed})


def test_the_task_that_decides_opens_each_file_twice() -> None:
    made = plan(Workload(documents=1e7, text_bytes=10**11), partitions=3000, slice_bytes=10**9)
    assert [stage.opens for stage in made.stages if stage.name == "decide"] == [6000]


def test_impossible_plans() -> None:
    work = Workload(documents=100, text_bytes=100_000)
    with pytest.raises(ParameterError, match="weighting 'tfidf': how document frequencies are counted is not planned"):
        plan(work, Recipe(method=MinHash(weighting="tfidf")))
    with pytest.raises(ParameterError, match="check 5: by simhash nothing is verified without a threshold; give"):
        plan(Workload(documents=100, text_bytes=100_000, check=5), Recipe(method="simhash"))
    with pytest.raises(ParameterError, match="slice_bytes 10: a document has 50 bytes of text"):
        plan(Workload(documents=100, text_bytes=1000, against_documents=2, against_bytes=100), slice_bytes=10)
    with pytest.raises(ParameterError, match="slice_bytes 10: a document has 1,000 bytes of text"):
        plan(work, slice_bytes=10)
    with pytest.raises(ParameterError, match="partitions must be between 1 and 65536"):
        plan(work, partitions=0)
    with pytest.raises(ParameterError, match="task_memory must be >= 16777216"):
        plan(work, task_memory=10)


def test_what_is_known_of_sets_is_in_the_forecast(monkeypatch: pytest.MonkeyPatch) -> None:
    """The forecast of a job in memory has the bytes of the sizes, places, flags and bitmaps of all sets."""
    number, size = 500, 96
    counts = SimpleNamespace(documents=number, present=number, postings=number, shingles=number * size)
    sets = SetCollector(number, 0.8, 1)
    elements = np.arange(number * size, dtype=np.uint64)
    sets.add(np.arange(number), Ragged(elements, np.arange(number + 1) * size), HostRuntime("cpu"))
    known = sets.known()
    held = sum(array.nbytes for array in known) + number  # and a flag for each row
    assert forecast._of_sets(counts, Recipe()) == held
    load = forecast.Load(Workload(documents=1e6, text_bytes=10**9))
    before = forecast.in_memory(load, Recipe(), 2).memory
    monkeypatch.setattr(forecast, "_of_sets", lambda counts, recipe: 10**9)
    assert forecast.in_memory(load, Recipe(), 2).memory >= before + 9 * 10**8
