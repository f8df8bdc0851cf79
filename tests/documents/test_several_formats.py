"""Test inputs whose files have several formats: they are read together, and `kept/` keeps the format of each."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import neardup_gpu as nd
from neardup_gpu.errors import InputError

TEXTS = ["to be or not to be", "that is the question", "whether tis nobler", "in the mind to suffer"]


def write(folder: Path, ids: list[object], years: list[object]) -> None:
    """Write a file of each format; each holds an own text, and one that all hold."""
    folder.mkdir()
    for number, name in enumerate(("a.parquet", "b.jsonl", "c.csv", "d.arrow")):
        rows = {
            "id": ids[2 * number :][:2],
            "year": years[2 * number :][:2],
            "text": ["the words of all", TEXTS[number]],
        }
        table = pa.table(rows)
        if name == "a.parquet":
            pq.write_table(table, folder / name)
        elif name == "b.jsonl":
            (folder / name).write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
        elif name == "c.csv":
            pa.csv.write_csv(table, folder / name)
        else:
            pa.feather.write_feather(table, folder / name, compression="uncompressed")


@pytest.mark.parametrize("tasks", [False, True], ids=["", "tasks"])
def test_tables_are_read_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tasks: bool) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path("in"), list(range(8)), [3, 0, 5, 0, 7, 0, 1, 0])
    workers = {"workers": nd.Workers(work_dir="work", slice_bytes=200)} if tasks else {}
    found = nd.dedup("in", id_column="id", keep="year:desc", output="out", **workers)
    assert found.report["input"]["format"] == "several"
    assert found.documents["id"].to_pylist() == list(range(8))
    assert found.documents.filter(pa.compute.field("kept"))["id"].to_pylist() == [1, 3, 4, 5, 7]
    assert found.documents["file"].to_pylist()[::2] == ["a.parquet", "b.jsonl", "c.csv", "d.arrow"]
    kept = Path("out/kept")
    assert pq.read_table(kept / "a.parquet")["id"].to_pylist() == [1]
    assert json.loads((kept / "b.jsonl").read_text()) == {"id": 3, "year": 0, "text": TEXTS[1]}
    assert (kept / "c.csv").read_text().splitlines() == [
        '"id","year","text"',
        '4,7,"the words of all"',
        f'5,0,"{TEXTS[2]}"',
    ]
    assert pa.feather.read_table(kept / "d.arrow")["id"].to_pylist() == [7]
    assert nd.open_documents("out/kept", id_column="id").format == "several"


def test_ids_and_values_of_unlike_types(tmp_path: Path) -> None:
    write(tmp_path / "in", [10, 11, "b", "3", 12, 13, "d", "e"], [1, 2, 1.5, 2.5, 3, 4, 5, 6])
    documents = nd.open_documents(tmp_path / "in", id_column="id")
    batches = list(documents.batches(["year"]))
    assert [id for batch in batches for id in batch.ids.to_pylist()] == ["10", "11", "b", "3", "12", "13", "d", "e"]
    assert [year for batch in batches for year in batch.columns["year"].to_pylist()] == [1, 2, 1.5, 2.5, 3, 4, 5, 6]


def test_what_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "in", list(range(8)), list(range(8)))
    with pytest.raises(InputError, match=r"of several formats are kept each in its own format"):
        nd.dedup(tmp_path / "in", writing=nd.Writing(output_format="parquet"), output=tmp_path / "out")
    (tmp_path / "in/e.jsonl").write_text('{"body": "other"}\n')
    with pytest.raises(InputError, match=r"e\.jsonl: no column 'text'"):
        nd.dedup(tmp_path / "in")
    (tmp_path / "in/e.jsonl").unlink()
    (tmp_path / "in/page.html").write_text("<p>other")
    with pytest.raises(InputError, match="are of different kinds"):
        nd.dedup(tmp_path / "in")
