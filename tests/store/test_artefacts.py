"""Outputs never cost what was there before: only an earlier result is replaced, and never an input."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from neardup_gpu import Writing, dedup
from neardup_gpu.errors import OutputError
from neardup_gpu.methods.measures import CONTAINMENT, RESEMBLANCE
from neardup_gpu.results import saving
from neardup_gpu.sketches import pairs, sketch
from neardup_gpu.store import artefacts, parquet
from neardup_gpu.store.outputs import new_file, new_folder
from neardup_gpu.store.parquet import write_table, write_tables

TEXT = "one two three four five six seven eight"
TABLE = pa.table({"id": ["a", "b", "c"], "text": [TEXT, TEXT + " nine", "something else altogether, and longer"]})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    pq.write_table(TABLE, tmp_path / "in.parquet")
    return tmp_path / "in.parquet"


def test_the_input_itself_is_never_replaced(file: Path) -> None:
    with pytest.raises(OutputError, match="is a file; name a folder"):
        dedup(file, id_column="id", output=file, writing=Writing(overwrite=True))
    with pytest.raises(OutputError, match="is read as input, which would be lost"):
        sketch(file, file, overwrite=True)
    assert pq.read_table(file).equals(TABLE)


def test_sketches_and_pairs_may_be_replaced(file: Path) -> None:
    sketches = file.with_name("sketches.parquet")
    for _ in range(2):
        sketch(file, sketches, id_column="id", overwrite=True)
    with pytest.raises(OutputError, match="exists already"):
        sketch(file, sketches)
    with pytest.raises(OutputError, match="is read as input, which would be lost"):
        pairs(sketches, sketches)
    with pytest.raises(OutputError, match="is a folder; name a file"):
        sketch(file, file.parent, overwrite=True)


@pytest.mark.parametrize("name", ["out", "out/kept", "out/kept/*.parquet"])
def test_a_result_that_is_being_read_is_not_replaced(file: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    dedup("in.parquet", id_column="id", output="out")
    before = pq.read_table("out/kept/in.parquet")
    for source, against in ((name, None), ("in.parquet", name)):
        if name == "out":
            source, against = "out/kept", None
        with pytest.raises(OutputError, match=r"out: holds the input .*out/kept.*, which would be lost"):
            dedup(source, id_column="id", against=against, output="out", writing=Writing(overwrite=True))
    assert pq.read_table("out/kept/in.parquet").equals(before)


def test_where_you_are_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(OutputError, match="is where you are"), new_folder("."):
        pass
    assert os.listdir(tmp_path) == ["here"]


def test_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with new_folder(tmp_path / "link") as partial:
        (partial / "report.json").write_text("{}")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target" / "report.json").exists()


@pytest.mark.parametrize(
    ("foreign", "says"),
    [
        (lambda out: (out / "thesis.txt").write_text("mine"), r"also holds thesis\.txt, new or changed"),
        (lambda out: (out / "notes").mkdir(), r"also holds notes/, new or changed"),
        (lambda out: (out / "kept" / "extra.parquet").symlink_to(out / "pairs.parquet"), r"kept/extra\.parquet"),
        (lambda out: (out / "pairs.parquet").write_bytes(b"mine"), r"also holds pairs\.parquet"),
        (lambda out: os.utime(out / "pairs.parquet", (2e9, 2e9)), r"also holds pairs\.parquet"),
        (lambda out: (out / "documents.parquet").write_bytes(b"mine"), "holds other files than a result"),
        (lambda out: (out / "report.json").write_text("[]"), "holds other files than a result"),
        (lambda out: (out / "report.json").write_text('{"files": 3}'), "holds other files than a result"),
        (lambda out: (out / "report.json").unlink(), "holds other files than a result"),
        (lambda out: [(out / f"{i}.txt").touch() for i in range(5)], r"0\.txt, 1\.txt, 2\.txt and 2 more"),
    ],
)
def test_only_what_a_run_wrote_is_replaced(file: Path, foreign: Callable[[Path], object], says: str) -> None:
    out = file.with_name("out")
    dedup(file, id_column="id", output=out)
    foreign(out)
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    with pytest.raises(OutputError, match=says):
        dedup(file, id_column="id", output=out, writing=Writing(overwrite=True))
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    assert sorted(os.listdir(file.parent)) == ["in.parquet", "out"]


def test_what_a_file_manager_leaves_in_a_result_goes_with_it(file: Path) -> None:
    out = file.with_name("out")
    dedup(file, id_column="id", output=out)
    (out / ".DS_Store").touch()
    dedup(file, id_column="id", output=out, writing=Writing(overwrite=True))
    assert not (out / ".DS_Store").exists()


def test_a_table_that_somebody_added_to_is_not_replaced(file: Path) -> None:
    sketches = file.with_name("s.parquet")
    sketch(file, sketches, id_column="id")
    table = pq.read_table(sketches)
    pq.write_table(table.append_column("label", table["id"]), sketches)
    with pytest.raises(OutputError, match="was not written by neardup"):
        sketch(file, sketches, id_column="id", overwrite=True)


def test_a_new_file_has_ordinary_permissions(tmp_path: Path) -> None:
    with new_file(tmp_path / "x.parquet") as partial:
        write_table(pa.table({"x": np.arange(3).tolist()}), partial)
    (tmp_path / "plain").touch()
    assert (tmp_path / "x.parquet").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_tables_are_written_while_the_kept_rows_are(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    meet = threading.Barrier(2, timeout=60)

    def at_once(write: Callable[..., None], *given: object, **options: object) -> None:
        meet.wait()
        write(*given, **options)

    for name in ("write_decisions", "write_kept"):
        monkeypatch.setattr(saving, name, partial(at_once, getattr(saving, name)))
    dedup(file, output=file.parent / "out")
    assert pq.read_table(file.parent / "out" / "kept" / "in.parquet").equals(
        pq.read_table(file).filter(pq.read_table(file.parent / "out" / "documents.parquet")["kept"])
    )


def test_nothing_is_left_where_a_table_cannot_be_written(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(parquet, "write_table", full)
    with pytest.raises(OutputError, match="out: No space left on device; nothing was written"):
        dedup(file, output=file.parent / "out")
    assert os.listdir(file.parent) == [file.name]


def test_tables_of_pairs_are_known_by_the_columns_of_all_measures() -> None:
    assert {measure.name for measure in (RESEMBLANCE, CONTAINMENT)} == artefacts.MEASURED


def test_skipped_rows_name_the_recipe_of_the_tables(tmp_path: Path) -> None:
    tables = {name: pa.table({"id": [1]}).replace_schema_metadata({"about": name}) for name in ("first", "second")}
    write_tables(tmp_path, tables, pa.table({"row": [7]}))
    found = {path.stem: pq.read_table(path).schema.metadata[b"about"] for path in tmp_path.iterdir()}
    assert found == {"first": b"first", "second": b"second", "skipped": b"first"}
