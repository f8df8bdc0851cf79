"""`neardup demo`: what a newcomer sees, and that what it calls the truth is true."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
import shlex
from pathlib import Path

import demo_texts
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from progress import messages

import neardup_gpu
from neardup_gpu import cli, demo


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a newcomer runs the demonstration."""
    return tmp_path_factory.mktemp("newcomer")


@pytest.fixture(scope="module")
def said(folder: Path) -> str:
    """What its first run prints."""
    out = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out):
        assert cli.main(["demo"]) == 0
    return out.getvalue()


def test_the_known_near_duplicates_are_found(said: str, folder: Path) -> None:
    (truth,) = re.findall(r"^truth +(.*)$", said, re.MULTILINE)
    assert truth == "all 149 known near-duplicates found; 51 variants below 0.8 and all originals kept"
    assert sorted(path.name for path in folder.iterdir()) == ["neardup-demo"]
    removed = sum(not kept for kept in pq.read_table(folder / "neardup-demo" / "documents.parquet")["kept"].to_pylist())
    assert removed == 149


def test_the_commands_it_ends_with_work(
    said: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = (line[len("next") :].strip() for line in said.splitlines()[-2:])
    monkeypatch.chdir(folder)
    for command in (first, second):
        program, *arguments = shlex.split(command)
        assert program == "neardup"
        assert cli.main(arguments) == 0, command
    assert "was removed" in capsys.readouterr().out


def test_what_the_page_needs_is_named_where_it_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "jinja2" else found(name, *more)
    )
    assert cli.main(["demo"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.strip() == "pip install 'neardup-gpu[report]' && neardup report neardup-demo"


def test_it_runs_again(said: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    before = (folder / "neardup-demo" / "documents.parquet").stat().st_ino
    assert cli.main(["demo"]) == 0
    assert (folder / "neardup-demo" / "documents.parquet").stat().st_ino != before


@pytest.mark.parametrize("found", ["another file", "another folder", "another result", "a file of yours in it"])
def test_what_is_in_its_way_stays(
    found: str, said: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    place = tmp_path / "neardup-demo"
    if found == "another file":
        place.write_text("mine")
    elif found == "another folder":
        place.mkdir()
        (place / "thesis.txt").write_text("mine")
    elif found == "another result":
        neardup_gpu.dedup(demo.FILES[0], id_column="id", output=place)
    else:
        assert cli.main(["demo"]) == 0
        (place / "thesis.txt").write_text("mine")
    before = {path: path.read_bytes() for path in [place, *place.rglob("*")] if path.is_file()}
    capsys.readouterr()
    assert cli.main(["demo"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    (line,) = messages(printed.err).splitlines()
    assert "neardup-demo" in line and "overwrite" not in line
    assert before == {path: path.read_bytes() for path in [place, *place.rglob("*")] if path.is_file()}


def test_other_decisions_are_told() -> None:
    found = neardup_gpu.dedup(list(demo.FILES), text_columns="text", id_column="id")
    rows = found.documents.select(["id", "duplicate_of"]).to_pylist()
    removed = next(row for row in rows if row["duplicate_of"] is not None)
    removed["duplicate_of"] = None
    sentence = demo.compare(pa.Table.from_pylist(rows), 0.8)
    assert sentence == f"148 of 149 known near-duplicates found; 1 decided otherwise, such as {removed['id']}"


def test_the_program_makes_the_shipped_texts() -> None:
    shipped = {Path(path).stem: pq.read_table(path) for path in demo.FILES}
    library = shipped["library"].select(["id", "text"]).to_pylist()
    made = demo_texts.collections(library)
    assert list(made) == list(shipped)
    for name, table in made.items():
        assert table.equals(shipped[name])


def test_the_shipped_texts_are_what_their_notice_says() -> None:
    notice = (Path(demo.FILES[0]).parent / "NOTICE.md").read_text()
    rows = [pq.read_metadata(path).num_rows for path in demo.FILES]
    assert f"{rows[0]} passages" in notice and f"{sum(rows[1:])} variants" in notice
    assert sum(Path(path).stat().st_size for path in demo.FILES) < 500_000
    num_bytes = sum(len(text.encode()) for path in demo.FILES for text in pq.read_table(path)["text"].to_pylist())
    assert 1_000_000 < num_bytes < 2_000_000
