"""documents/slices.py: the slices of an input, one after another, are the input, however it is cut."""

import gzip
import json
import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from neardup_gpu.documents import open_documents
from neardup_gpu.documents.slices import Slice, extent_of, offsets, slices_of

SIZES = [1, 100, 700, 3000, 1 << 30]
NUM_ROWS = 57


def rows(first: int, number: int = NUM_ROWS) -> list[dict]:
    found = []
    for i in range(first, first + number):
        text = None if i % 11 == 3 else f"text {i} " + "drei Häuser 🙂 " * (i % 5)
        found.append({"id": f"d{i}", "n": i - 5, "text": text, "year": None if i % 7 == 2 else 1900 + i})
    return found


def lines(values: list[dict]) -> bytes:
    return b"".join(json.dumps(value, ensure_ascii=i % 2 == 0).encode() + b"\n" for i, value in enumerate(values))


def parquet(path: Path, values: list[dict], group: int = 5) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    schema = pa.schema([("id", pa.string()), ("n", pa.int64()), ("text", pa.string()), ("year", pa.int32())])
    pq.write_table(pa.Table.from_pylist(values, schema), path, row_group_size=group)


def make_parquet(folder: Path) -> None:
    parquet(folder / "a.parquet", rows(0))
    parquet(folder / "b.parquet", [])
    parquet(folder / "c.parquet", rows(57, 3))
    parquet(folder / "größer 日本.parquet", rows(60, 40), 7)


def make_hive(folder: Path) -> None:
    for i, part in enumerate(["lang=de/year=1", "lang=de/year=2", "lang=en/year=1"]):
        parquet(folder / part / "x.parquet", rows(20 * i, 20))


def make_jsonl(folder: Path) -> None:
    (folder / "a.jsonl").write_bytes(b"\xef\xbb\xbf\n" + lines(rows(0)) + b"\n  \n\n")
    (folder / "b.jsonl").write_bytes(b"")
    (folder / "c.jsonl").write_bytes(lines(rows(57, 4)).replace(b"\n", b"\r\n"))
    (folder / "größer 日本.jsonl").write_bytes(lines(rows(61, 39))[:-1])


def make_gz(folder: Path) -> None:
    (folder / "a.jsonl.gz").write_bytes(gzip.compress(lines(rows(0)), mtime=0))
    (folder / "b.jsonl").write_bytes(lines(rows(57, 20)))
    with pa.output_stream(str(folder / "c.jsonl.zst"), compression="zstd") as stream:
        stream.write(lines(rows(77, 20)))


def make_ipc(folder: Path) -> None:
    for name, first, opener in [("a.arrow", 0, pa.ipc.new_file), ("b.arrows", 57, pa.ipc.new_stream)]:
        data = pa.Table.from_pylist(rows(first))
        data = data.set_column(2, "text", data["text"].dictionary_encode())
        with opener(str(folder / name), data.schema) as writer:
            writer.write_table(data, max_chunksize=6)
    with pa.ipc.new_file(str(folder / "c.arrow"), data.schema):
        pass


def make_text(folder: Path) -> None:
    for i in range(23):
        path = folder / ("deep" if i % 3 else "größer 日本") / f"{i:02}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"text {i} " * (i % 6), "utf-8")


def make_html(folder: Path) -> None:
    for i in range(9):
        (folder / f"{i}.html").write_text(f"<p>page {i}<script>no</script><b>{'word ' * i}</b>", "utf-8")


FOLDERS = [make_parquet, make_hive, make_jsonl, make_gz, make_ipc, make_text, make_html]


def everything(documents, columns) -> dict:
    """All that a reading gives, as Python values."""
    found: dict = {"ids": [], "texts": [], "nulls": 0, **{name: [] for name in columns}}
    types = set()
    for batch in documents.batches(columns):
        found["ids"] += batch.ids.to_pylist()
        found["texts"] += [batch.text[i].tobytes() for i in range(batch.num_rows)]
        found["nulls"] += batch.num_null
        types.add((str(batch.ids.type), *(str(batch.columns[name].type) for name in columns)))
        for name in columns:
            found[name] += batch.columns[name].to_pylist()
    places = documents.places()
    found["places"] = list(zip(places["file"].to_pylist(), places["row"].to_pylist(), strict=True)) if places else []
    found["skipped"] = [] if documents.skipped is None else documents.skipped.to_pylist()
    return {**found, "types": types}


def joined(slices: list[Slice], columns) -> dict:
    """The same of all slices, each opened from its pickled and its JSON form."""
    readings, extents = [], []
    for each in slices:
        each = pickle.loads(pickle.dumps(each))
        again = Slice.from_json(json.loads(json.dumps(each.to_json())))
        assert again == each and again.to_json() == each.to_json()
        documents = again.open()
        found: dict = {"ids": [], "texts": [], "nulls": 0, "types": set(), **{name: [] for name in columns}}
        ids = []
        for batch in documents.batches(columns):
            ids.append(batch.ids)
            found["texts"] += [batch.text[i].tobytes() for i in range(batch.num_rows)]
            found["nulls"] += batch.num_null
            found["types"].add((str(batch.ids.type), *(str(batch.columns[name].type) for name in columns)))
            for name in columns:
                found[name] += batch.columns[name].to_pylist()
        extents.append(pickle.loads(pickle.dumps(extent_of(documents))))
        assert each.num_rows in (None, extents[-1].num_rows)
        readings.append((found, ids, documents.places(), documents.skipped))
    whole: dict = {"ids": [], "texts": [], "nulls": 0, "places": [], "skipped": [], "types": set()}
    whole |= {name: [] for name in columns}
    for each, extent, offset, reading in zip(slices, extents, offsets(slices, extents), readings, strict=True):
        found, ids, places, skipped = reading
        assert each.first_row in (None, offset.first_row)
        for key, value in found.items():
            if key != "ids":
                whole[key] = whole[key] | value if key == "types" else whole[key] + value
        whole["ids"] += [value for array in ids for value in offset.ids(array, each).to_pylist()]
        if places:
            places = offset.places(places, extent)
            whole["places"] += list(zip(places["file"].to_pylist(), places["row"].to_pylist(), strict=True))
        if skipped is not None:
            whole["skipped"] += offset.skipped(skipped, extent).to_pylist()
    return whole


def kept_rows(folder: Path, columns) -> list:
    """Every file below a folder with its bytes, or the rows of all with all columns, and their schema."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    if not columns:
        return [(path.relative_to(folder).as_posix(), path.read_bytes()) for path in paths]
    found: list = []
    for path in paths:
        if path.suffix == ".parquet":
            data = pq.ParquetFile(path).read()
        elif path.suffix in (".arrow", ".arrows"):
            opener = pa.ipc.open_file if path.suffix == ".arrow" else pa.ipc.open_stream
            data = opener(pa.memory_map(str(path))).read_all()
        else:
            compression = {".gz": "gzip", ".zst": "zstd"}.get(path.suffix)
            found += pa.input_stream(str(path), compression=compression).read().splitlines()
            continue
        found += [(str(data.schema), row) for row in data.to_pylist()]
    return found


@pytest.mark.parametrize("slice_bytes", SIZES)
@pytest.mark.parametrize("make", FOLDERS)
def test_kept_rows_are_those_of_the_whole(tmp_path, make, slice_bytes):
    (tmp_path / "in").mkdir()
    make(tmp_path / "in")
    columns = [] if make in (make_text, make_html) else ["text"]
    documents = open_documents(tmp_path / "in", text_columns=columns or None)
    num_rows = sum(batch.num_rows for batch in documents.batches())
    keep = np.random.default_rng(1).random(num_rows) < 0.5
    documents.write_kept(tmp_path / "whole", keep)
    slices, first = slices_of(documents, slice_bytes), 0
    for i, each in enumerate(slices):
        reading = each.open()
        num_rows = sum(batch.num_rows for batch in reading.batches())
        writer = each.open(extent_of(reading)) if i % 2 else reading
        writer.write_kept(tmp_path / "slices", keep[first : first + num_rows])
        first += num_rows
    assert kept_rows(tmp_path / "slices", columns) == kept_rows(tmp_path / "whole", columns)
    names = {path.relative_to(tmp_path / "slices").as_posix() for path in (tmp_path / "slices").rglob("*.*")}
    if slice_bytes == SIZES[-1]:
        assert names == {path.relative_to(tmp_path / "whole").as_posix() for path in (tmp_path / "whole").rglob("*.*")}
    elif columns:
        assert names == {name for each in slices for name in each.kept_names}
        assert sum(len(each.kept_names) for each in slices) == len(names)


@pytest.mark.parametrize("slice_bytes", SIZES)
@pytest.mark.parametrize("with_id", [False, True])
@pytest.mark.parametrize("make", FOLDERS)
def test_slices_are_the_whole(tmp_path, make, with_id, slice_bytes):
    make(tmp_path)
    options: dict = {}
    columns: list[str] = []
    if make not in (make_text, make_html):
        options, columns = {"text_columns": "text", "other_columns": ["year", "n"]}, ["year", "n"]
        options["id_column"] = "id" if with_id else None
    documents = open_documents(tmp_path, **options)
    slices = slices_of(documents, slice_bytes)
    assert len(slices) == 1 if slice_bytes == SIZES[-1] else len(slices) > 1 or slice_bytes == SIZES[-2]
    assert [each.number for each in slices] == list(range(len(slices)))
    assert joined(slices, columns) == everything(open_documents(tmp_path, **options), columns)
