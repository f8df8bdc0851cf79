"""documents/slices.py: the slices of an input, one after another, are the input, however it is cut."""

import gzip
import json
import os
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from flat import flat
from grids import fewer, pairs_of, some
from hypothesis import given, settings, strategies as st

from neardup_gpu.documents import open_documents
from neardup_gpu.documents.contract import even_runs, runs
from neardup_gpu.documents.json_blocks import LineRange
from neardup_gpu.documents.slices import Slice, extent_of, offsets, slices_of, text_bytes_of
from neardup_gpu.documents.stored import stored
from neardup_gpu.errors import InputError, OutputError, ParameterError
from neardup_gpu.store.places import Place
from neardup_gpu.tasks.work import plain

SIZES = some([1, 60, 700, 3000, 1 << 30], [60, 700, 1 << 30])
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
    """The same of all slices, each opened from its pickled form."""
    readings, extents = [], []
    for each in slices:
        again = pickle.loads(pickle.dumps(each))
        assert again == each and plain(again) == plain(each)
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
    documents = flat(open_documents, tmp_path, **options)
    slices = slices_of(documents, slice_bytes)
    assert len(slices) == 1 if slice_bytes == SIZES[-1] else len(slices) > 1 or slice_bytes == SIZES[-2]
    assert [each.number for each in slices] == list(range(len(slices)))
    assert joined(slices, columns) == everything(flat(open_documents, tmp_path, **options), columns)


@pytest.mark.parametrize(
    ("kind", "slice_bytes"),
    pairs_of(["texts", "plain", "dictionary", "view", "empty"], [1, 100, 700, 3000, 1 << 30]),
)
def test_tables_in_memory(tmp_path, kind, slice_bytes):
    columns = [] if kind == "texts" else ["year", "n"]
    if kind == "texts":
        documents = open_documents({"text": [row["text"] for row in rows(0)]})
    else:
        data = pa.Table.from_pylist(rows(0)[: 0 if kind == "empty" else None], pa.Table.from_pylist(rows(0)).schema)
        if kind == "dictionary":  # of several chunks, each with a dictionary of its own
            chunks = [data.slice(i, 9)["text"].combine_chunks().dictionary_encode() for i in range(0, NUM_ROWS, 9)]
            data = data.set_column(2, "text", pa.chunked_array(chunks))
        if kind == "view":
            data = data.set_column(2, "text", data["text"].cast(pa.string_view()))
        documents = open_documents(data, text_columns="text", id_column="id", other_columns=columns)
    whole = everything(documents, columns)
    slices = stored(documents, Place.of(tmp_path / "work"), "place", slice_bytes)
    assert len(slices) > 1 or slice_bytes > 700 or kind == "empty"
    assert joined(slices, columns) == whole
    again = stored(documents, Place.of(tmp_path / "work"), "place", slice_bytes)
    assert again == slices
    keep = np.random.default_rng(1).random(len(whole["ids"])) < 0.5
    documents.write_kept(tmp_path / "whole", keep)
    for each in slices:
        reading = each.open()
        num_rows = sum(batch.num_rows for batch in reading.batches())
        reading.write_kept(tmp_path / "slices", keep[each.first_row : each.first_row + num_rows])
    assert kept_rows(tmp_path / "slices", ["text"]) == kept_rows(tmp_path / "whole", ["text"])


def test_streams_and_memory_are_refused(tmp_path):
    data = pa.table({"text": ["to be", "or not"]})
    for divide in (slices_of, lambda documents, most: stored(documents, Place.of(tmp_path), "place", most)):
        with pytest.raises(InputError, match=r"^input: is a stream, .*; write it to files first\.$"):
            divide(open_documents(data.to_reader()), 10)
    with pytest.raises(InputError, match=r"^input: is in memory"):
        slices_of(open_documents(data), 10)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OutputError, match=r"file/part-00000\.arrows: cannot be written"):
        stored(open_documents(data), Place.of(tmp_path), "file", 10)


def damage_jsonl(folder: Path) -> None:
    values = rows(0)
    values[9]["id"] = None
    values[30]["n"] = "no number"
    values[41]["text"] = "long " * 400
    parts = lines(values).splitlines(keepends=True)
    parts[4], parts[17], parts[50] = b'{"id": \n', b"\n[1]\n", b"\n" + parts[50][:-9] + b"\xff\n"
    (folder / "a.jsonl").write_bytes(b"".join(parts))
    (folder / "b.jsonl").write_bytes(b"".join(lines(rows(57, 30)).splitlines(keepends=True)[:-1]) + b'{"te')
    packed = gzip.compress(lines(rows(87, 40)), mtime=0)
    (folder / "c.jsonl.gz").write_bytes(packed[: len(packed) // 2])


def damage_parquet(folder: Path) -> None:
    values = rows(0)
    values[7]["id"] = values[44]["id"] = None
    parquet(folder / "a.parquet", values)
    parquet(folder / "b.parquet", rows(57, 30))
    metadata = pq.ParquetFile(folder / "b.parquet").metadata
    place = metadata.row_group(3).column(2).data_page_offset
    raw = bytearray((folder / "b.parquet").read_bytes())
    raw[place : place + 12] = b"\xff" * 12
    (folder / "b.parquet").write_bytes(raw)
    (folder / "c.parquet").write_bytes(b"PAR1 no footer")
    parquet(folder / "d.parquet", rows(87, 30))


def damage_ipc(folder: Path) -> None:
    values = rows(0)
    values[7]["id"] = values[44]["id"] = None
    for name, chunks in [("a.arrow", values), ("b.arrow", rows(57, 30))]:
        data = pa.Table.from_pylist(chunks)
        with pa.ipc.new_file(str(folder / name), data.schema) as writer:
            writer.write_table(data, max_chunksize=6)
    raw = (folder / "b.arrow").read_bytes()
    ends = np.array([np.frombuffer(pa.array(rows(57, 30)[i]["text"] for i in range(12, 18)).buffers()[1], np.int32)])
    place = raw.find(ends.tobytes()[:28])
    assert place > 0
    (folder / "b.arrow").write_bytes(raw[:place] + b"\xff\xff\xff\x7f" * 7 + raw[place + 28 :])


def damage_text(folder: Path) -> None:
    for i in range(9):
        (folder / f"{i}.txt").write_text("word " * (400 if i in (2, 7) else i))


DAMAGES = [damage_jsonl, damage_parquet, damage_ipc, damage_text]


@pytest.mark.parametrize("slice_bytes", SIZES)
@pytest.mark.parametrize("damage", DAMAGES)
def test_rows_that_are_skipped(tmp_path, damage, slice_bytes):
    (tmp_path / "in").mkdir()
    damage(tmp_path / "in")
    columns = [] if damage is damage_text else ["n"]
    options: dict = {"on_error": "skip"}
    if damage in (damage_jsonl, damage_text):
        options["max_document_bytes"] = 1500
    if columns:
        options |= {"text_columns": "text", "id_column": "id", "other_columns": columns}
    documents = flat(open_documents, tmp_path / "in", **options)
    whole = everything(documents, columns)
    assert len(whole["skipped"]) > 1
    slices = slices_of(documents, slice_bytes)
    assert joined(slices, columns) == whole
    keep = np.random.default_rng(1).random(len(whole["ids"])) < 0.5
    documents.write_kept(tmp_path / "whole", keep)
    first = 0
    for each in slices:
        reading = each.open()
        num_rows = sum(batch.num_rows for batch in reading.batches(columns))
        each.open(extent_of(reading)).write_kept(tmp_path / "slices", keep[first : first + num_rows])
        first += num_rows
    assert kept_rows(tmp_path / "slices", columns) == kept_rows(tmp_path / "whole", columns)


@pytest.mark.parametrize("slice_bytes", [100, 700, 3000])
@pytest.mark.parametrize("name", ["x.jsonl", "x.parquet", "x.arrow", "memory"])
def test_errors_name_the_same_row(tmp_path, name, slice_bytes):
    values = rows(0)
    values[44]["id"] = None
    data = pa.Table.from_pylist(values)
    if name == "x.jsonl":
        (tmp_path / name).write_bytes(b"\n" + lines(values))
    elif name == "x.parquet":
        parquet(tmp_path / name, values)
    elif name == "x.arrow":
        with pa.ipc.new_file(str(tmp_path / name), data.schema) as writer:
            writer.write_table(data, max_chunksize=6)
    source = data if name == "memory" else tmp_path / name
    documents = open_documents(source, text_columns="text", id_column="id")
    with pytest.raises(InputError) as whole:
        everything(documents, [])
    assert "45" in str(whole.value) or "46" in str(whole.value)
    place = Place.of(tmp_path)
    slices = stored(documents, place, "place", slice_bytes) if name == "memory" else slices_of(documents, slice_bytes)
    assert len(slices) > 1
    errors = []
    for each in slices:
        try:
            everything(each.open(), [])
        except InputError as error:
            errors.append(str(error))
    assert errors == [str(whole.value)]


def test_types_are_those_of_the_whole(tmp_path):
    """What the first lines of a file would say of a column is not what all files together hold."""
    more = [{"text": "a b", "n": 1}, {"text": "c d", "n": 2.5}, {"n": None, "late": 7}, {"text": "e", "late": 2**63}]
    (tmp_path / "a.jsonl").write_bytes(lines([{"text": f"first {i}", "n": i, "late": i} for i in range(200)]))
    (tmp_path / "b.jsonl").write_bytes(lines(more))
    documents = open_documents(tmp_path, text_columns="text", other_columns=["n", "late"])
    whole = everything(documents, ["n", "late"])
    assert whole["types"] == {("int64", "double", "uint64")}
    assert joined(slices_of(documents, 500), ["n", "late"]) == whole


@pytest.mark.parametrize("slice_bytes", [60, 1 << 20])
def test_integer_ids_of_several_widths(tmp_path, slice_bytes):
    ids = [1, 2, 2**64 - 1, 4, 5, 6]
    (tmp_path / "a.jsonl").write_bytes(lines([{"id": i, "text": f"text {i}"} for i in ids]))
    documents = open_documents(tmp_path, id_column="id")
    slices = slices_of(documents, slice_bytes)
    assert [i for each in slices for batch in each.open().batches() for i in batch.ids.to_pylist()] == ids
    (tmp_path / "b.jsonl").write_bytes(lines([{"id": i, "text": f"text {i}"} for i in (7, -8, 9)]))
    documents = open_documents(tmp_path, id_column="id")
    with pytest.raises(InputError) as whole:
        everything(documents, [])
    with pytest.raises(InputError) as sliced:
        joined(slices_of(documents, slice_bytes), [])
    assert str(sliced.value) == str(whole.value)


def test_a_line_longer_than_a_slice(tmp_path):
    values = [{"text": "a"}, {"text": "long " * 50_000}, {"text": "b"}, {"text": "c"}]
    (tmp_path / "a.jsonl").write_bytes(lines(values))
    documents = open_documents(tmp_path)
    slices = slices_of(documents, 10_000)
    assert len(slices) == 26
    assert joined(slices, []) == everything(documents, [])


@pytest.mark.parametrize("make", [make_parquet, make_jsonl, make_gz, make_ipc, make_text])
def test_changed_files(tmp_path, make):
    make(tmp_path)
    slices = slices_of(open_documents(tmp_path, text_columns=None if make is make_text else "text"), 1 << 30)
    (each,) = slices
    each.open()
    path = Path(each.files[-1].path)
    raw = path.read_bytes()
    path.write_bytes(raw + raw)
    with pytest.raises(InputError, match=rf"{path.name}: has changed since it was first read"):
        each.open()
    path.unlink()
    with pytest.raises(InputError, match=rf"{path.name}: no such file or folder"):
        each.open()


def test_a_change_that_keeps_the_size(tmp_path):
    make_jsonl(tmp_path)
    (each,) = slices_of(open_documents(tmp_path, text_columns="text"), 1 << 30)
    path = Path(each.files[0].path)
    status = path.stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1_000))
    with pytest.raises(InputError, match="has changed"):
        each.open()


def test_kept_names_that_are_taken(tmp_path):
    parquet(tmp_path / "in" / "x.parquet", rows(0))
    parquet(tmp_path / "in" / "x.part-00001.parquet", rows(57, 3))
    slices = slices_of(open_documents(tmp_path / "in", text_columns="text"), 700)
    names = [name for each in slices for name in each.kept_names]
    assert len(set(names)) == len(names) > 2
    assert names[0] == "x.part-part-00000.parquet" and names[-1] == "x.part-00001.parquet"


def test_columns_that_were_not_named(tmp_path):
    make_parquet(tmp_path)
    documents = open_documents(tmp_path, text_columns="text")
    with pytest.raises(InputError, match="column 'year' was not named"):
        list(slices_of(documents, 100)[0].open().batches(["year"]))
    with pytest.raises(InputError, match="no column 'absent'"):
        slices_of(open_documents(tmp_path, text_columns="text", other_columns=["absent"]), 100)
    with pytest.raises(ParameterError, match="slice_bytes must be >= 1"):
        slices_of(documents, 0)


def test_object_stores(tmp_path):
    """Each slice opens the file system again; an object's version tells that it was replaced."""
    fsspec = pytest.importorskip("fsspec")
    store = fsspec.filesystem("memory")
    for name, values in [("a", rows(0)), ("b", rows(57, 20))]:
        store.pipe(f"/sliced/{name}.jsonl", lines(values))
    try:
        documents = open_documents("memory://sliced", text_columns="text", id_column="id")
        slices = slices_of(documents, 700)
        assert len(slices) > 3
        assert joined(slices, []) == everything(documents, [])
        places = stored(open_documents({"text": ["to be", "or not"]}), Place.of("memory://sliced"), "place", 1)
        assert joined(places, []) == everything(open_documents({"text": ["to be", "or not"]}), [])
        store.pipe("/sliced/a.jsonl", lines(rows(0)).replace(b"text", b"TEXT"))
        with pytest.raises(InputError, match=r"a\.jsonl: has changed"):
            slices[0].open()
    finally:
        store.rm("/sliced", recursive=True)


def test_secrets_make_no_other_job(tmp_path):
    make_jsonl(tmp_path)
    (each,) = slices_of(open_documents(tmp_path, text_columns="text"), 1 << 30)
    one, other = (
        replace(each, files=tuple(replace(file, uri=f"s3://user:{word}@bucket") for file in each.files))
        for word in ("pass word", "another")
    )
    assert one != other and plain(one) == plain(other)
    assert "pass word" not in json.dumps(plain(one))


@settings(max_examples=fewer(100), deadline=None)
@given(st.lists(st.sampled_from([b"a", b"\n", b"bc\n"]), min_size=1, max_size=30).map(b"".join), st.data())
def test_ranges_of_lines_meet(raw, data):
    cuts = sorted(data.draw(st.lists(st.integers(1, len(raw)), max_size=5)))
    bounds = [0, *cuts, None]
    found = []
    for start, stop in zip(bounds, bounds[1:], strict=False):
        part = LineRange(pa.BufferReader(raw), start, stop)
        found.append(b"".join(iter(lambda part=part: part.read(3), b"")))
        assert len(found[-1]) == part.num_bytes == part.tell()
        if start and found[-1]:
            begin = len(b"".join(found[:-1]))
            assert raw[begin - 1 : begin] == b"\n" and begin > start
    assert b"".join(found) == raw


def test_what_slices_cover(tmp_path):
    parquet(tmp_path / "a.parquet", rows(0))
    parquet(tmp_path / "b.parquet", rows(57, 3))
    slices = slices_of(open_documents(tmp_path, text_columns="text"), 700)
    assert slices[0].covers == f"{tmp_path}/a.parquet (a.part-00000.parquet)"
    assert slices[-1].covers.endswith("b.parquet")
    (whole,) = slices_of(open_documents(tmp_path, text_columns="text"), 1 << 30)
    assert whole.covers == f"{tmp_path}/a.parquet to {tmp_path}/b.parquet"
    assert (whole.num_rows, whole.first_row) == (60, 0)
    assert sum(each.num_bytes for each in slices) == whole.num_bytes
    assert list(runs([2, 3, 9, 1], 5)) == [(0, 2), (2, 3), (3, 4)]


def test_even_runs():
    """Fifteen equal row groups make four slices, not five of which the last one keeps a worker alone."""
    assert list(even_runs([4] * 15, 15)) == [(0, 4), (4, 7), (7, 11), (11, 15)]
    assert list(even_runs([4] * 5, 100)) == [(0, 5)]
    assert list(even_runs([1, 9, 1], 2)) == [(0, 1), (1, 2), (2, 3)]
    assert list(even_runs([], 5)) == [(0, 0)] and list(even_runs([0, 0], 5)) == [(0, 2)]


def test_row_groups_are_shared_out_evenly(tmp_path):
    pq.write_table(pa.table({"text": ["one two three"] * 150}), tmp_path / "a.parquet", row_group_size=10)
    documents = open_documents(tmp_path / "a.parquet")
    found = slices_of(documents, -(-text_bytes_of(documents) // 4))
    assert [each.num_rows for each in found] == [40, 30, 40, 40]


@given(st.lists(st.integers(0, 50), max_size=30), st.integers(1, 60))
def test_even_runs_are_near_the_mark(sizes, most):
    found = list(even_runs(sizes, most))
    assert [number for start, stop in found for number in range(start, stop)] == list(range(len(sizes)))
    assert all(sum(sizes[start:stop]) <= most + max(sizes[start:stop], default=0) for start, stop in found)
