"""A search for shared passages that tasks do: the bytes of one in memory, however it is cut, killed or continued."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import troubled
from chores import no_mark
from dead_drivers import killed_after_each
from grids import weekly

from neardup_gpu import Reading, Workers, Writing, dedup, passages
from neardup_gpu.errors import InputError, OutputError, ParameterError

STAGES = ["read", "locate-0"]


def documents(folder: Path, number: int = 150, seed: int = 3) -> None:
    """Make three files of documents, one of them without rows, that share runs of few words."""
    draw = random.Random(seed)
    rows = {
        "id": [f"d{i}" for i in range(number)],
        "text": [" ".join(draw.choices("abc", k=draw.randrange(30))) for _ in range(number)],
        "site": [draw.choice(["x", "y", None]) for _ in range(number)],
        "day": [draw.choice([1, 2, 3, None]) for _ in range(number)],
    }
    kinds = {"id": pa.string(), "text": pa.string(), "site": pa.string(), "day": pa.int64()}
    table = pa.table(rows, schema=pa.schema(kinds))
    codes = pa.array(draw.choices([0, 1, 2, None], k=number), pa.int8())
    seasons = pa.DictionaryArray.from_arrays(codes, pa.array(["winter", "spring", "fall"]), ordered=True)
    table = table.append_column("season", seasons)
    folder.mkdir()
    for name, some in (("a", table[:80]), ("b", table[:0]), ("c", table[80:])):
        pq.write_table(some, folder / f"{name}.parquet", row_group_size=25)


def found(folder: Path, source: Any = None, other: Any = None, output: str = "out", **options: Any) -> Any:
    given = {"id_column": "id", "text_columns": "text", "length": 7, "engine": "cpu", **options}
    return passages(folder / "in" if source is None else source, other, output=folder / output, **given)


def in_tasks(folder: Path, *inputs: Any, output: str = "tasks", cut: Any = None, **options: Any) -> Any:
    given = {"work_dir": str(folder / "work"), "number": 1, "slice_bytes": 600, **(cut or {})}
    return found(folder, *inputs, output=output, workers=Workers(**given), **options)


def bytes_of(folder: Path) -> Any:
    """Return the bytes of all files but the report, and what the report says of them."""
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    told = json.loads(files.pop("passages.json"))
    left_out = {"timings", "seconds", "tasks", "files", "checksums", "checksum"}
    return files, {name: value for name, value in told.items() if name not in left_out}


@pytest.fixture
def box(tmp_path: Path) -> Path:
    documents(tmp_path / "in")
    return tmp_path


OPTIONS: dict[str, dict[str, Any]] = {
    "usual": {},
    "dates": {"date": "day", "writing": Writing(by="site")},
    "within": {"within": "site", "writing": Writing(by="file")},
    "bounded": {"max_partners": 2, "ignore_common": 20, "gap": 0},
}


@pytest.mark.parametrize("two", [False, True])
@pytest.mark.parametrize("name", OPTIONS)
def test_the_bytes_of_every_file(box: Path, name: str, two: bool) -> None:
    inputs = [box / "in"]
    if two:
        documents(box / "other", 60, 4)
        inputs.append(box / "other")
    here = found(box, *inputs, **OPTIONS[name])
    assert here.counts["passages"] > 20
    there = in_tasks(box, *inputs, cut={"number": 2 if name == "usual" else 1}, **OPTIONS[name])
    assert bytes_of(box / "out") == bytes_of(box / "tasks")
    assert there.report["tasks"]["slices"] > 4 and there.report["tasks"]["resumed"] == 0
    assert there.passages.equals(here.passages) and there.counts == here.counts
    assert not (box / "work").exists()


@pytest.mark.parametrize("kind", ["rows", "lines", "texts", "table", "seams"])
def test_inputs(box: Path, tmp_path: Path, kind: str) -> None:
    table, source, options = pq.read_table(box / "in"), box / "in", {"id_column": None}
    if kind == "lines":
        source = tmp_path / "lines"
        source.mkdir()
        for name, rows in (("a", table[:90]), ("b", table[90:])):
            lines = [json.dumps(row) for row in rows.to_pylist()]
            (source / f"{name}.jsonl").write_text("\n".join([*lines[:50], "{not json", *lines[50:]]) + "\n")
        reading = Reading(on_error="skip", text_columns="text")
        options |= {"reading": reading, "text_columns": None, "id_column": None}
    elif kind == "texts":
        source = tmp_path / "texts"
        source.mkdir()
        for id, text in zip(table["id"].to_pylist(), table["text"].to_pylist(), strict=True):
            (source / f"{id}.txt").write_text(text)
        options |= {"text_columns": None}
    elif kind == "table":
        source = table
    elif kind == "seams":
        source = box / "seams.parquet"
        pq.write_table(table.append_column("seams", [["9 21"] * len(table)]), source, row_group_size=25)
    here = found(box, source, **options)
    in_tasks(box, source, **options)
    assert here.counts["passages"] > 20
    assert bytes_of(box / "out") == bytes_of(box / "tasks")
    if kind == "lines":
        assert pq.read_table(box / "tasks" / "skipped.parquet").num_rows == 2


def test_no_documents(tmp_path: Path) -> None:
    documents(tmp_path / "in", 0)
    found(tmp_path)
    in_tasks(tmp_path)
    assert bytes_of(tmp_path / "out") == bytes_of(tmp_path / "tasks")
    (tmp_path / "in.jsonl").write_text("{not json\n")
    reading = Reading(on_error="skip", text_columns="text")
    for run in (found, in_tasks):
        with pytest.raises(InputError, match="holds no documents that can be read"):
            run(tmp_path, tmp_path / "in.jsonl", output="none", id_column=None, text_columns=None, reading=reading)


@weekly  # a driver that is killed after each stage leaves the same to be done
def test_workers_that_are_killed(box: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_tasks(box, output="calm")
    troubled.trouble(monkeypatch.setattr, troubled.killed_twice, box / "marks")
    in_tasks(box, cut={"number": 2})
    assert bytes_of(box / "tasks") == bytes_of(box / "calm")
    assert all((box / "marks" / f"{stage}-second").exists() for stage in STAGES)


def test_a_driver_that_is_killed_and_started_again(box: Path) -> None:
    in_tasks(box, output="calm")
    killed_after_each(STAGES, box, __file__)
    assert bytes_of(box / "tasks") == bytes_of(box / "calm")


def test_a_damaged_file_is_made_again(box: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_tasks(box, output="calm")

    def damaging(folder: Path, perform: Any, shared: Any, stage: str, number: int, *others: Any) -> Any:
        if stage == "read" and number == 3 and no_mark(folder / "damaged"):
            troubled.damage(box / "work" / "read" / "000002-tokens", "cut")
        return perform(shared, stage, number, *others)

    troubled.trouble(monkeypatch.setattr, damaging, box / "marks")
    in_tasks(box)
    assert bytes_of(box / "tasks") == bytes_of(box / "calm")


def test_impossible_settings(box: Path) -> None:
    with pytest.raises(ParameterError, match="work_dir: tasks need a folder"):
        in_tasks(box, cut={"work_dir": None})
    with pytest.raises(ParameterError, match="spool: `neardup passages` keeps no shingles; leave it out"):
        in_tasks(box, cut={"spool": True})
    with pytest.raises(OutputError, match="output: tasks write their result into a folder; name one"):
        passages(box / "in", id_column="id", workers=Workers(work_dir=str(box / "work")))
    dedup(box / "in", id_column="id", output=box / "kept", workers=Workers(work_dir=str(box / "work"), keep_work=True))
    with pytest.raises(OutputError, match=r"work: holds the work of `neardup dedup`; name another work_dir"):
        in_tasks(box)
    assert not (box / "tasks").exists()


@weekly  # the workers are those of tests/tasks/test_sketch_job.py
def test_ray(box: Path, ray_here: Any) -> None:
    found(box, date="season")
    in_tasks(box, cut={"number": 2, "runner": "ray"}, date="season")
    kinds = pq.read_table(box / "out/passages.parquet")["earlier"].unique().to_pylist()
    assert set(kinds) == {"source", "same", None}
    assert bytes_of(box / "out") == bytes_of(box / "tasks")
