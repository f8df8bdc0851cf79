"""Files whose names are not UTF-8: they are read, and outputs have their names in a form that can be reversed."""

import json
import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

from neardup_gpu import Engine, Index, Reading, Recipe, Shingles, Workers, dedup, open_documents
from neardup_gpu.cli.process import main
from neardup_gpu.documents.local_names import escaped, unescaped
from neardup_gpu.documents.source import open_described
from neardup_gpu.errors import ParameterError
from neardup_gpu.results.explanation import explain
from neardup_gpu.sketches import sketch

NAMES = st.binary(min_size=1, max_size=12).filter(lambda name: not set(name) & set(b"/\0"))


@pytest.fixture
def folder(tmp_path):
    """A folder of a name in Latin-1, with text files of such names and of names that look like escaped ones."""
    folder = tmp_path / os.fsdecode(b"f\xfcr")
    texts = {b"caf\xe9.txt": "one two three four five six", b"caf\\xe9.txt": "another text of other words, quite other"}
    texts |= {b"plain.txt": "one two three four five six", b"sub\xff/a.md": "words in a folder inside of the folder"}
    try:
        for name, text in texts.items():
            path = folder / os.fsdecode(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    except OSError:
        pytest.skip("this file system takes only UTF-8 names")
    return folder


IDS = [r"caf\\xe9.txt", r"caf\xe9.txt", "plain.txt", r"sub\xff/a.md"]


@given(st.lists(NAMES, min_size=1, max_size=3), st.lists(NAMES, min_size=1, max_size=3))
def test_the_way_back_is_unique(a, b):
    paths = [os.fsdecode(b"/".join(parts)) for parts in (a, b)]
    found = [escaped(path) for path in paths]
    assert [unescaped(each) for each in found] == paths
    assert (found[0] == found[1]) == (paths[0] == paths[1])
    for each in found:
        each.encode()


def test_usual_names_stay_as_they_are():
    for name in ("a.txt", "é/b", r"a\b", r"\x", r"\xAB"):
        assert escaped(name) == unescaped(name) == name


def test_a_folder_is_read_and_written(folder, tmp_path):
    assert [id for batch in open_documents(folder).batches() for id in batch.ids.to_pylist()] == IDS
    result = dedup(folder, output=tmp_path / "out", reading=Reading(on_error="skip"))
    assert result.documents["id"].to_pylist() == result.documents["file"].to_pylist() == IDS
    assert result.documents["kept"].to_pylist() == [True, True, False, True]
    kept = sorted(path.relative_to(tmp_path / "out/kept").as_posix() for path in (tmp_path / "out/kept").rglob("*.*"))
    assert kept == sorted([IDS[0], IDS[1], IDS[3]])
    assert (tmp_path / "out/kept" / IDS[1]).read_text() == "one two three four five six"
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["input"]["paths"] == [escaped(str(folder))]
    assert explain(tmp_path / "out", "plain.txt").duplicate_of == IDS[1]
    again = open_documents(tmp_path / "out")
    assert sum(batch.num_rows for batch in again.batches()) == 3


def test_a_described_folder_is_opened_again(folder):
    documents = open_documents(folder)
    assert open_described(documents.describe()).texts([1]) == documents.texts([1])


def test_the_commands_take_such_names(folder, tmp_path, capsys):
    names = [str(folder / os.fsdecode(b"caf\xe9.txt")), str(folder / "plain.txt")]
    assert main(["dedup", *names, "-o", str(tmp_path / "out")]) == 0
    assert (
        main(
            [
                "dedup",
                str(folder),
                "-o",
                str(tmp_path / "tasks"),
                "--work-dir",
                str(tmp_path / "work"),
                "--workers",
                "1",
            ]
        )
        == 0
    )
    assert main(["report", str(tmp_path / "out"), "-o", str(tmp_path / "page.html")]) == 0
    assert main(["dedup", str(folder / os.fsdecode(b"no\xe9.txt")), "--dry-run"]) == 2
    assert r"no\xe9.txt: no such file" in capsys.readouterr().err


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "jsonl", "parquet", "arrow"])
def test_every_format_is_read(suffix, tmp_path):
    import gzip

    import pyarrow as pa
    from pyarrow import feather

    place = Path(os.fsdecode(os.fsencode(tmp_path) + b"/d\xe9." + suffix.encode()))
    table = pa.table({"id": [1, 2], "text": ["some words", "some words"]})
    data = {"jsonl": b'{"id": 1, "text": "some words"}\n{"id": 2, "text": "some words"}\n'}
    data |= {"csv": b"id,text\n1,some words\n2,some words\n"}
    data["csv.gz"] = gzip.compress(data["csv"])
    if suffix == "parquet":
        pq.write_table(table, tmp_path / "a")
    elif suffix == "arrow":
        feather.write_feather(table, str(tmp_path / "a"), compression="uncompressed")
    else:
        (tmp_path / "a").write_bytes(data[suffix])
    os.rename(tmp_path / "a", place)
    result = dedup(place, output=tmp_path / "out", recipe=Recipe(shingles=Shingles(2)))
    assert result.documents["kept"].to_pylist() == [True, False]
    assert (tmp_path / "out" / "kept" / rf"d\xe9.{suffix}").exists()


def test_every_entrance(folder, tmp_path):
    work = Workers(work_dir=tmp_path / "work", number=1)
    dedup(folder, output=tmp_path / "tasks", workers=work)
    assert pq.read_table(tmp_path / "tasks/documents")["id"].to_pylist() == IDS
    (tmp_path / "new.txt").write_text("one two three four five six")
    assert len(dedup(tmp_path / "new.txt", against=folder).removed) == 1
    sketch(folder, tmp_path / "s.parquet")
    assert pq.read_table(tmp_path / "s.parquet")["id"].to_pylist() == IDS
    with Index.create(tmp_path / "index") as index:
        assert index.add(folder).documents == 4
        found = index.query([folder / os.fsdecode(b"caf\xe9.txt")])
        assert found["id"].to_pylist() == [r"caf\xe9.txt", "plain.txt"]


def test_a_link_of_such_a_name_is_no_second_file(tmp_path):
    (tmp_path / "a.txt").write_text("a text")
    os.symlink(tmp_path / "a.txt", os.fsencode(tmp_path) + b"/\xff.txt")
    sources = [tmp_path / "a.txt", os.fsdecode(os.fsencode(tmp_path) + b"/\xff.txt")]
    assert open_documents(sources).num_rows == open_documents(tmp_path).num_rows == 1


@pytest.mark.parametrize("command", ["dedup", "sketch", "substrings", "audit"])
def test_folders_of_our_own_files_have_names_in_utf_8(command, tmp_path, capsys, monkeypatch):
    (tmp_path / "a.jsonl").write_text('{"id": "a", "text": "one two three four five six"}\n')
    (inside := Path(os.fsdecode(os.fsencode(tmp_path) + b"/w\xe9"))).mkdir()
    given = [command, str(tmp_path / "a.jsonl"), "--id-column", "id", "--quiet", "--output", str(tmp_path / "out")]
    given += ["--kept", str(tmp_path / "a.jsonl")] if command == "audit" else []
    for flag, shown in ((["--work-dir", str(inside)], rf"{tmp_path}/w\xe9"), (["--work-dir", "work"], "work")):
        assert main([*given, *flag]) == 2
        said = f"neardup: --work-dir: {shown} or a folder around it has a name that is not UTF-8; name another folder\n"
        assert capsys.readouterr().err == said
        monkeypatch.chdir(inside)
    with pytest.raises(ParameterError, match=r"^temp_dir: work or a folder around it"):
        Engine(temp_dir="work")
