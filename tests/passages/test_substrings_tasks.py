"""A search for repeated passages that tasks do: the bytes of one in memory, however it is cut, killed or continued."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import troubled
from chores import no_mark
from dead_drivers import killed_after_each
from grids import weekly
from test_shared_passages_tasks import documents

from neardup_gpu import Reading, Workers, Writing, substrings
from neardup_gpu.engine import large_arrays
from neardup_gpu.engine.large_arrays import MappedArrays
from neardup_gpu.errors import InputError, OutputError, ParameterError

STAGES = ["read", "seeds", "repeat", "survive", "locate-0", "write"]


def found(folder: Path, source: Any = None, output: str = "out", **options: Any) -> Any:
    given = {"id_column": "id", "text_columns": "text", "length": 7, "engine": "cpu", **options}
    return substrings(folder / "in" if source is None else source, output=folder / output, **given)


def in_tasks(folder: Path, source: Any = None, output: str = "tasks", *, work: Any = None, **options: Any) -> Any:
    given = {"work_dir": str(folder / "work"), "number": 1, "slice_bytes": 600, "partitions": 3, **(work or {})}
    return found(folder, source, output, workers=Workers(**given), **options)


def contents(folder: Path) -> Any:
    """Return the bytes of all files but the report, what the report says of them, and the kept rows."""
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    told = json.loads(files.pop("substrings.json"))
    left_out = {"timings", "seconds", "tasks", "files", "checksums", "checksum"}
    kept = sorted((folder / "kept").iterdir()) if (folder / "kept").exists() else []
    if any(path.suffix == ".jsonl" for path in kept):
        rows = b"".join(path.read_bytes() for path in kept)
    else:
        rows = pa.concat_tables(map(pq.read_table, kept)).to_pylist() if kept else None
    return files, {name: value for name, value in told.items() if name not in left_out}, rows


@pytest.fixture
def box(tmp_path: Path) -> Path:
    documents(tmp_path / "in")
    return tmp_path


OPTIONS: dict[str, dict[str, Any]] = {
    "usual": {"writing": Writing(by="site")},
    "ordered": {"keep": "day:desc", "keep_copies": 2, "action": "mark", "length": 5},
    "within": {"within": "site", "keep": "longest", "writing": Writing(by="file"), "action": "list"},
    "templates": {"length": 4, "in_documents": 0.2, "keep": "none"},
    "sentences": {"length": 4, "cut": "sentence"},
    "against": {"writing": Writing(by="site"), "drop_below": 3},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_the_bytes_of_every_file(box: Path, name: str) -> None:
    options = dict(OPTIONS[name])
    if name == "against":
        documents(box / "other", 60, 4)
        options["against"] = box / "other"
    if name == "sentences":
        for path in (box / "in").iterdir():
            table = pq.read_table(path)
            texts = pc.replace_substring(table["text"], "c ", "c! ")
            pq.write_table(table.set_column(1, "text", texts), path, row_group_size=25)
    here = found(box, **options)
    assert here.counts["passages"] > 20 and here.counts["tokens_left"] > 200
    there = in_tasks(box, work={"number": 2 if name == "usual" else 1}, **options)
    assert contents(box / "out") == contents(box / "tasks")
    assert there.report["tasks"]["slices"] > 4 and there.report["tasks"]["resumed"] == 0
    assert there.spans.equals(here.spans) and there.documents.equals(here.documents) and there.counts == here.counts
    assert not (box / "work").exists()
    in_tasks(box, output="large", work={"slice_bytes": "1MB"}, **options)
    assert contents(box / "out") == contents(box / "large")


@pytest.mark.parametrize("kind", ["lines", "texts", "table", "seams", "shards"])
def test_inputs(box: Path, kind: str) -> None:
    table, source, options = pq.read_table(box / "in"), box / kind, {"id_column": None}
    if kind == "lines":
        source.mkdir()
        for name, rows in (("a", table[:90]), ("b", table[90:])):
            lines = [json.dumps(row) for row in rows.to_pylist()]
            (source / f"{name}.jsonl").write_text("\n".join([*lines[:50], "{not json", *lines[50:]]) + "\n")
        options |= {"reading": Reading(on_error="skip", text_columns="text"), "text_columns": None}
    elif kind == "texts":
        source.mkdir()
        for id, text in zip(table["id"].to_pylist(), table["text"].to_pylist(), strict=True):
            (source / f"{id}.txt").write_text(text)
        options |= {"text_columns": None, "action": "list"}
    elif kind == "table":
        source = table
    elif kind == "seams":
        source = box / "seams.parquet"
        options |= {"length": 4}
        pq.write_table(table.append_column("seams", [["9 21"] * len(table)]), source, row_group_size=25)
    else:
        source, options = box / "in", {"writing": Writing(output_format="parquet", shard_bytes="2KB")}
    here = found(box, source, **options)
    in_tasks(box, source, **options)
    assert here.counts["passages"] > 20
    assert contents(box / "out") == contents(box / "tasks")
    if kind == "lines":
        assert pq.read_table(box / "tasks" / "skipped.parquet").num_rows == 2


def test_arrays_of_the_driver_lie_in_files_beyond_the_memory_of_a_task(
    box: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = found(box)
    made: list[int] = []
    mapped = MappedArrays._mapped
    monkeypatch.setattr(large_arrays, "SMALL", 0)
    monkeypatch.setattr(MappedArrays, "_mapped", lambda self, size: made.append(size) or mapped(self, size))
    there = in_tasks(box, work={"task_memory": "16MiB"})  # less than any process takes
    assert here.spans.num_rows > 0 and contents(box / "out") == contents(box / "tasks")
    assert len(made) > 20 and there.spans.equals(here.spans)


def test_nothing_to_find(tmp_path: Path) -> None:
    documents(tmp_path / "in", 0)
    found(tmp_path)
    in_tasks(tmp_path)
    assert contents(tmp_path / "out") == contents(tmp_path / "tasks")
    (tmp_path / "in.jsonl").write_text("{not json\n")
    reading = Reading(on_error="skip", text_columns="text")
    options = {"id_column": None, "text_columns": None, "reading": reading, "work": {"work_dir": str(tmp_path / "bad")}}
    with pytest.raises(InputError, match="holds no documents that can be read"):
        in_tasks(tmp_path, tmp_path / "in.jsonl", "none", **options)
    documents(tmp_path / "few", 9)
    assert in_tasks(tmp_path, tmp_path / "few", "long", length=500).counts["passages"] == 0


@weekly  # a driver that is killed after each stage leaves the same to be done
def test_workers_that_are_killed(box: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found(box)
    troubled.trouble(monkeypatch.setattr, troubled.killed_twice, box / "marks")
    in_tasks(box, work={"number": 2})
    assert contents(box / "tasks") == contents(box / "out")
    assert all((box / "marks" / f"{stage}-second").exists() for stage in STAGES)


def test_a_driver_that_is_killed_and_started_again(box: Path) -> None:
    found(box)
    killed_after_each(STAGES, box, __file__)
    assert contents(box / "tasks") == contents(box / "out")


def test_damaged_places_are_made_again(box: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_tasks(box, output="calm")

    def damaging(folder: Path, perform: Any, shared: Any, stage: str, number: int, *others: Any) -> Any:
        if stage == "locate-0" and number == 3 and no_mark(folder / "damaged"):
            troubled.damage(box / "work" / "locate-0" / "000001-places", "cut")
        return perform(shared, stage, number, *others)

    troubled.trouble(monkeypatch.setattr, damaging, box / "marks")
    in_tasks(box)
    assert contents(box / "tasks") == contents(box / "calm")


def test_impossible_settings(box: Path) -> None:
    with pytest.raises(ParameterError, match="spool: `neardup substrings` keeps no shingles; leave it out"):
        in_tasks(box, work={"spool": True})
    with pytest.raises(OutputError, match="output: tasks write their result into a folder; name one"):
        substrings(box / "in", id_column="id", workers=Workers(work_dir=str(box / "work")))
    with pytest.raises(ParameterError, match="keep_copies and against"):
        in_tasks(box, against=box / "in", keep_copies=2)
    assert not (box / "tasks").exists()


@weekly  # the workers are those of tests/tasks/test_sketch_job.py
def test_ray(box: Path, ray_here: Any) -> None:
    found(box)
    in_tasks(box, work={"number": 2, "runner": "ray"})
    assert contents(box / "out") == contents(box / "tasks")
