"""Outputs never cost what was there before: only an earlier result is replaced, and never an input."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from neardup_gpu import artefacts, dedup, find_pairs, sketch
from neardup_gpu.artefacts import new_file, new_folder
from neardup_gpu.errors import OutputError

TEXT = "one two three four five six seven eight"
TABLE = pa.table({"id": ["a", "b", "c"], "text": [TEXT, TEXT + " nine", "something else altogether, and longer"]})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    pq.write_table(TABLE, tmp_path / "in.parquet")
    return tmp_path / "in.parquet"


def test_the_input_itself_is_never_replaced(file: Path) -> None:
    with pytest.raises(OutputError, match="is a file; name a folder"):
        dedup(file, id_column="id", output=file, overwrite=True)
    with pytest.raises(OutputError, match="was not written by neardup"):
        sketch(file, file, overwrite=True)
    assert pq.read_table(file).equals(TABLE)


def test_sketches_and_pairs_may_be_replaced(file: Path) -> None:
    sketches = file.with_name("sketches.parquet")
    for _ in range(2):
        sketch(file, sketches, id_column="id", overwrite=True)
    with pytest.raises(OutputError, match="exists already"):
        find_pairs(sketches, sketches)
    with pytest.raises(OutputError, match="is a folder; name a file"):
        sketch(file, file.parent, overwrite=True)


@pytest.mark.parametrize("name", ["out", "out/kept", "out/kept/*.parquet"])
def test_a_result_that_is_being_read_is_not_replaced(file: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    dedup("in.parquet", id_column="id", output="out")
    before = pq.read_table("out/kept/part-00000.parquet")
    for source, against in ((name, None), ("in.parquet", name)):
        if name == "out":
            source, against = "out/kept", None
        with pytest.raises(OutputError, match=r"out: holds the input .*out/kept.*, which would be lost"):
            dedup(source, id_column="id", against=against, output="out", overwrite=True)
    assert pq.read_table("out/kept/part-00000.parquet").equals(before)


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


def test_an_earlier_result_comes_back_when_the_new_one_cannot_take_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "report.json").write_text("old")
    rename = Path.rename

    def refuse(self: Path, target: Path) -> Path:
        if ".partial-" in self.name:
            raise OSError(5, "Input/output error")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(OutputError, match="Input/output error"), new_folder(out, overwrite=True):
        pass
    assert (out / "report.json").read_text() == "old"
    assert os.listdir(tmp_path) == ["out"]


def test_a_new_file_has_ordinary_permissions(tmp_path: Path) -> None:
    with new_file(tmp_path / "x.parquet") as partial:
        artefacts.write_table(pa.table({"x": np.arange(3).tolist()}), partial)
    (tmp_path / "plain").touch()
    assert (tmp_path / "x.parquet").stat().st_mode == (tmp_path / "plain").stat().st_mode
