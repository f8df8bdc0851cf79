"""Test `Reading.on_duplicate_id`: documents whose id an earlier one has are left out, or get ids of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neardup_gpu as nd
from neardup_gpu import cli
from neardup_gpu.errors import InputError, ParameterError
from neardup_gpu.index import Index

IDS = ["a", "b", "a", "a-2", "a", "c"]
SUFFIXED = ["a", "b", "a-2", "a-2-2", "a-3", "c", "a-4", "b-2"]
WHY = "its id 'a' is that of an earlier document"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Two files of JSON lines with repeated ids; the first has a blank line."""
    monkeypatch.chdir(tmp_path)
    rows = [json.dumps({"id": id, "text": f"the words of document {i}"}) for i, id in enumerate([*IDS, "a", "b"])]
    Path("1.jsonl").write_text("\n".join([rows[0], "", *rows[1:6], ""]))
    Path("2.jsonl").write_text("\n".join([*rows[6:], ""]))
    return ["1.jsonl", "2.jsonl"]


def first_ids(files: list[str], **options: Any) -> nd.Result:
    reading = nd.Reading(id_column="id", on_duplicate_id="first")
    return nd.dedup(files, reading=reading, output="out", writing=nd.Writing(overwrite=True), **options)


@pytest.mark.parametrize("tasks", [False, True], ids=["", "tasks"])
def test_first(files: list[str], tasks: bool) -> None:
    found = first_ids(files, **({"workers": nd.Workers(work_dir="work", slice_bytes=64)} if tasks else {}))
    assert found.documents["id"].to_pylist() == ["a", "b", "a-2", "c"]
    assert found.documents["row"].to_pylist() == [1, 3, 5, 7]
    assert found.skipped is not None
    assert [tuple(row.values())[:3] for row in found.skipped.to_pylist()] == [
        ("1.jsonl", 4, 1),
        ("1.jsonl", 6, 1),
        ("2.jsonl", 1, 1),
        ("2.jsonl", 2, 1),
    ]
    assert found.skipped["reason"][0].as_py() == WHY
    assert found.report["input"]["repeated_ids"] == found.report["counts"]["skipped"] == 4
    kept = "".join(path.read_text() for path in sorted(Path("out/kept").iterdir()))
    assert [json.loads(line)["id"] for line in kept.splitlines()] == ["a", "b", "a-2", "c"]


def test_ids_that_are_not_read_are_told(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Ids are row numbers here, so `neardup explain out 1` would explain another document than a reader expects."""
    told = "row numbers, as no id column was named; files have a column 'id'"
    assert cli.main(["dedup", *files, "-o", "out"]) == 0
    assert told in capsys.readouterr().out
    assert cli.main(["dedup", *files, "--id-column", "id", "--on-duplicate-id", "first", "-o", "named"]) == 0
    assert told not in capsys.readouterr().out


def test_suffix(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--id-column", "id", "--on-duplicate-id", "suffix", "-o", "out"]
    assert cli.main(["dedup", *files, *words]) == 0
    assert "ids        5 documents had the id of an earlier one: a number was added to it" in capsys.readouterr().out
    result = nd.Result.load("out")
    assert result.documents["id"].to_pylist() == SUFFIXED
    assert result.explain("a-2-2").id == "a-2-2"
    assert [json.loads(line)["id"] for line in Path("out/kept/1.jsonl").read_text().splitlines()] == IDS
    assert cli.main(["sketch", *files, *words, "--overwrite", "--json"]) == 2  # a folder is there
    assert cli.main(["sketch", *files, *words[:-1], "s.parquet", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["repeated_ids"] == 5


def test_a_suffix_makes_no_id_that_an_earlier_document_has() -> None:
    table = {"id": ["a-2", "a", "a", "a"], "text": [f"the words of document {i}" for i in range(4)]}
    result = nd.dedup(table, reading=nd.Reading(id_column="id", on_duplicate_id="suffix"))
    assert result.documents["id"].to_pylist() == ["a-2", "a", "a-3", "a-4"]


def test_an_index_leaves_out_the_ids_that_it_has(files: list[str]) -> None:
    reading = nd.Reading(id_column="id", on_duplicate_id="first")
    with Index.create("news") as index:
        index.add({"id": ["b"], "text": ["the first text of b"]}, id_column="id")
        added = index.add(files, reading=reading, commit_every=1, output="d.parquet")
        assert (added.documents, added.skipped) == (3, 5)
        assert added.decisions.read_all()["id"].to_pylist() == ["a", "a-2", "c"]
        assert index.add(files, reading=reading).documents == 0
        with pytest.raises(ParameterError, match="replace exclude each other"):
            index.add(files, reading=reading, replace=True)
        with pytest.raises(ParameterError, match="'suffix': an id of an index"):
            index.add(files, reading=nd.Reading(id_column="id", on_duplicate_id="suffix"))


def test_a_continued_addition_counts_each_row_once(files: list[str]) -> None:
    Path("1.jsonl").write_text("".join(f'{{"id": "{id}", "text": "the words of document {id}"}}\n' for id in "abacd"))
    reading = nd.Reading(id_column="id", on_duplicate_id="first")

    def interrupted(stage: str, done: int, total: int | None) -> None:
        if stage == "write" and done == 2:
            raise KeyboardInterrupt

    with Index.create("news") as index:
        index.add({"id": ["b"], "text": ["the first text of b"]}, id_column="id")
        with pytest.raises(KeyboardInterrupt):
            index.add("1.jsonl", reading=reading, commit_every=1, progress=interrupted)
        assert len(index) == 3
        added = index.add("1.jsonl", reading=reading, output="d.parquet")
        assert (added.documents, added.already, added.skipped) == (1, 2, 2)
        assert pq.read_table("d.skipped.parquet")["row"].to_pylist() == [2, 3]
        assert index.add("1.jsonl", reading=reading).already == 3


def test_what_is_refused(files: list[str]) -> None:
    with pytest.raises(InputError, match="id 'a' stands for 4 documents"):
        nd.dedup(files, id_column="id")
    numbers = {"id": [1, 1], "text": ["to be", "or not"]}
    with pytest.raises(InputError, match="holds int64, which takes no suffix"):
        nd.dedup(numbers, reading=nd.Reading(id_column="id", on_duplicate_id="suffix"))
    assert len(nd.dedup(numbers, reading=nd.Reading(id_column="id", on_duplicate_id="first")).documents) == 1


def test_ids_of_signed_and_of_unsigned_integers(tmp_path: Path) -> None:
    """Files of int64 and of uint64, by each verb that reads ids: some are beyond int64, or also some are negative."""
    texts = ["to be or not to be", "that is the question"]
    for name, ids in (("a", [1, 5]), ("b", [2**63 + 1, 7]), ("c", [-1, 8])):
        kind = pa.uint64() if name == "b" else pa.int64()
        pq.write_table(pa.table({"id": pa.array(ids, kind), "text": texts}), tmp_path / f"{name}.parquet")
    files = {name: str(tmp_path / f"{name}.parquet") for name in "abc"}
    work = nd.Workers(work_dir=tmp_path / "work", number=1, slice_bytes=1000)
    for found in (
        nd.dedup([files["a"], files["b"]], id_column="id"),
        nd.dedup([files["a"], files["b"]], id_column="id", output=tmp_path / "out", workers=work),
        nd.substrings([files["a"], files["b"]], id_column="id", length=2),
    ):
        ids = found.documents["id"]
        assert ids.type == pa.uint64() and ids.to_pylist() == [1, 5, 2**63 + 1, 7]
    with pytest.raises(
        InputError, match=r"c\.parquet: column 'id' holds negative integers and integers from 2\*\*63 on"
    ):
        nd.dedup([files["b"], files["c"]], id_column="id")
