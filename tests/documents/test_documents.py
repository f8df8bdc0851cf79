"""documents.py: every format in and out, every way to cut it into batches, and one line for every mistake."""

import gzip
import io
import json
import os
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from grids import fewer
from hypothesis import given, settings, strategies as st

from neardup_gpu import Reading, Writing, dedup
from neardup_gpu.arrow_versions import bytes_of, has_null_lists
from neardup_gpu.definitions import METADATA_KEY
from neardup_gpu.documents import batches as batches_module, open_described, open_documents
from neardup_gpu.documents.ahead import in_order
from neardup_gpu.documents.batches import size_of
from neardup_gpu.documents.contract import WHOLE
from neardup_gpu.errors import InputError, OutputError
from neardup_gpu.recipe import Recipe

TEXTS = ["one two", "", None, "drei Häuser", "x" * 5000, "🙂 日本", "last\nline"]
IDS = ["a", "b", "c", "d", "e", "f", "g"]
KEEP = np.array([True, False, True, True, False, False, True])


def table(kind: pa.DataType | None = None) -> pa.Table:
    text = pa.array(TEXTS, pa.string())
    text = text if kind is None else text.dictionary_encode() if pa.types.is_dictionary(kind) else text.cast(kind)
    return pa.table({"id": IDS, "text": text, "n": pa.array([3, 1, None, 2, 5, 4, 0], pa.int16())})


def read(documents, columns=(), **options):
    """Everything as Python values: ids, bytes, extra columns; checks what every batch promises."""
    ids, texts, extra, nulls = [], [], {name: [] for name in columns}, 0
    for batch in documents.batches(columns, **options):
        assert batch.first_row == len(ids)
        assert batch.num_rows == len(batch.ids) == len(batch.text) > 0
        assert batch.text.values.dtype == np.uint8
        ids += batch.ids.to_pylist()
        texts += [batch.text[i].tobytes() for i in range(batch.num_rows)]
        nulls += batch.num_null
        for name in columns:
            extra[name] += batch.columns[name].to_pylist()
    return ids, texts, nulls, extra


EXPECTED = [(text or "").encode() for text in TEXTS]


def write(path: Path, data: pa.Table) -> Path:
    """A table in the format of the extension."""
    name = path.name
    if name.endswith((".parquet", ".pq")):
        pq.write_table(data, path, row_group_size=3)
    elif ".json" in name or ".ndjson" in name:
        raw = "".join(json.dumps(row) + "\n" for row in data.to_pylist()).encode()
        compression = {".gz": "gzip", ".zst": "zstd"}.get(path.suffix)
        with pa.output_stream(str(path), compression=compression) as stream:
            stream.write(raw)
    elif name.endswith(".feather"):
        pa.feather.write_feather(data, str(path))
    else:
        opener = pa.ipc.new_stream if name.endswith(".arrows") else pa.ipc.new_file
        with opener(str(path), data.schema) as writer:
            writer.write_table(data, max_chunksize=3)
    return path


FORMATS = [
    *("x.parquet", "x.pq", "x.jsonl", "x.ndjson", "x.json", "x.jsonl.gz", "x.ndjson.zst"),
    *("x.arrow", "x.arrows", "x.ipc", "x.feather"),
]


@pytest.mark.parametrize("name", FORMATS)
def test_round_trip(tmp_path, name):
    path = write(tmp_path / name, table())
    documents = open_documents(path, id_column="id")
    assert documents.rewindable and documents.num_files == 1
    ids, texts, nulls, extra = read(documents, ["n"])
    assert (ids, texts, nulls) == (IDS, EXPECTED, 1)
    assert extra["n"] == [3, 1, None, 2, 5, 4, 0]
    documents.write_kept(tmp_path / "kept", KEEP)
    (part,) = (tmp_path / "kept").iterdir()
    assert part.name == name
    kept = open_documents(part, id_column="id")
    assert read(kept)[:2] == (["a", "c", "d", "g"], [EXPECTED[i] for i in (0, 2, 3, 6)])
    again = open_described(json.loads(json.dumps(documents.describe())))
    assert read(again)[:2] == (IDS, EXPECTED)
    assert documents.texts([6, 3, 3]) == {6: "last\nline", 3: "drei Häuser"}
    assert documents.texts([]) == {}


def test_batches_for_a_device_are_full_and_their_text_is_not_copied(monkeypatch):
    """Their parts lie where the table's text lies, and are joined by who needs them in one array."""
    monkeypatch.setattr(batches_module, "PIECE_BYTES", 100)
    texts = [b"%d" % i * (7 * i % 40) for i in range(60)]
    column = pa.chunked_array([pa.array(texts[i : i + 7], pa.large_binary()) for i in range(0, 60, 7)])
    source = [(chunk.buffers()[2].address, chunk.buffers()[2].size) for chunk in column.chunks]
    found = list(open_documents(pa.table({"text": column})).batches(max_bytes=1500))
    sizes = [int(batch.text.sizes.sum()) + 128 * batch.num_rows for batch in found]
    for size, batch in zip(sizes, found[1:], strict=False):
        assert size <= 1500 < size + int(batch.text.sizes[0]) + 128, "the next row would not fit"
    for batch in found:
        parts = batch.text.parts
        assert len(parts) > 1 and all(any(a <= p.ctypes.data <= a + n for a, n in source) for p in parts if len(p))
        one_by_one = [batch.text[row].tobytes() for row in range(batch.num_rows)]
        assert "values" not in vars(batch.text)
        assert batch.text.values.tobytes() == b"".join(one_by_one) and not batch.text.values.flags.writeable
        assert one_by_one == texts[batch.first_row : batch.first_row + batch.num_rows]


@pytest.mark.parametrize("max_bytes", [1, 100, 300, 5000, 1 << 20])
@pytest.mark.parametrize("name", ["x.parquet", "x.jsonl", "x.arrow", "memory"])
def test_batch_size_changes_nothing(tmp_path, name, max_bytes):
    source = table() if name == "memory" else write(tmp_path / name, table())
    documents = open_documents(source, id_column="id")
    assert read(documents, max_bytes=max_bytes)[:3] == (IDS, EXPECTED, 1)
    for batch in documents.batches(max_bytes=max_bytes):
        assert batch.num_rows == 1 or batch.text.sizes.sum() <= max_bytes


@settings(max_examples=fewer(60), deadline=None)
@given(
    st.lists(st.lists(st.one_of(st.none(), st.text(max_size=20)), max_size=8), max_size=5),
    st.integers(1, 3000),
    st.sampled_from([pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())]),
    st.booleans(),
)
def test_chunks_and_slices(chunks, max_bytes, kind, sliced):
    arrays = []
    for chunk in chunks:
        values = ["outside", *chunk, "outside"] if sliced else chunk
        array = pa.array(values, pa.string())
        array = array.dictionary_encode() if pa.types.is_dictionary(kind) else array.cast(kind)
        arrays.append(array.slice(1, len(chunk)) if sliced else array)
    data = pa.table({"text": pa.chunked_array(arrays, kind)})
    flat = [text for chunk in chunks for text in chunk]
    ids, texts, nulls, _ = read(open_documents(data), max_bytes=max_bytes)
    assert ids == list(range(len(flat)))
    assert texts == [(text or "").encode() for text in flat]
    assert nulls == flat.count(None)


KINDS = [
    *(pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view()),
    pa.dictionary(pa.int32(), pa.string()),
]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_text_types(kind):
    data = table(kind)
    assert read(open_documents(data, text_columns="text", id_column="id"))[:3] == (IDS, EXPECTED, 1)
    assert read(open_documents(data.slice(2, 4), text_columns="text"))[1] == EXPECTED[2:6]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_types_survive_parquet(tmp_path, kind):
    data = table(kind).replace_schema_metadata({"made by": "a test"})
    open_documents(data, text_columns="text").write_kept(tmp_path / "a", KEEP)
    (part,) = (tmp_path / "a").iterdir()
    assert part.name == "part-00000.parquet"
    expected = [row for row, kept in zip(data.to_pylist(), KEEP, strict=True) if kept]
    assert pq.read_schema(part).equals(data.schema, check_metadata=True)
    assert pq.read_table(part).to_pylist() == expected
    open_documents(part, text_columns="text").write_kept(tmp_path / "b", np.ones(4, bool))
    assert pq.read_table(tmp_path / "b" / part.name).schema.equals(data.schema, check_metadata=True)
    assert pq.ParquetFile(part).metadata.row_group(0).column(0).compression == "ZSTD"


ODD = [
    pa.array([["a"], None, ["b", "c"]], pa.list_(pa.string_view())),
    pa.array([["a"], None, ["b"]], pa.list_(pa.string_view(), 1)),
    pa.array([{"a": "x"}, None, {"a": None}], pa.struct([pa.field("a", pa.binary_view())])),
    pa.array([[("k", ["v"])], None, []], pa.map_(pa.string(), pa.large_list(pa.string_view()))),
    pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array([5, None])),
]


@pytest.mark.parametrize("column", ODD, ids=lambda column: str(column.type))
def test_types_that_arrow_cannot_filter(tmp_path, column):
    data = pa.table({"text": ["x", "y", "z"], "odd": column})
    write(tmp_path / "x.arrow", data)
    sources = [tmp_path / "x.arrow"]
    if pa.types.is_run_end_encoded(column.type):
        with one_line(InputError, "'odd'", "run_end_encoded", "Parquet"):
            open_documents(data).write_kept(tmp_path / "no", np.ones(3, bool))
    elif pa.types.is_fixed_size_list(column.type) and not has_null_lists():
        with one_line(InputError, "'odd'", "pyarrow 26"):
            open_documents(data).write_kept(tmp_path / "no", np.ones(3, bool))
    else:
        pq.write_table(data, tmp_path / "by pyarrow.parquet")
        sources.append(data)
    for source in sources:
        for mask in range(8):
            keep = np.array([bool(mask >> i & 1) for i in range(3)])
            open_documents(source).write_kept(tmp_path / "kept", keep)
            path = tmp_path / "kept" / ("part-00000.parquet" if source is data else Path(source).name)
            kept = pq.read_table(path) if source is data else pa.ipc.open_file(path).read_all()
            kept.validate(full=True)
            # As pyarrow reads its own file: before version 25, types inside of maps may not be those that were written.
            assert kept.schema == (pq.read_table(tmp_path / "by pyarrow.parquet") if source is data else data).schema
            assert kept.to_pylist() == [row for row, k in zip(data.to_pylist(), keep, strict=True) if k]


def test_bytes_of_views():
    text = pa.array(["a", None, "longer than twelve bytes"])
    for kind in (pa.string_view(), pa.binary_view()):
        column = text.cast(kind)
        for data in (column, pa.chunked_array([column]), pa.record_batch({"x": column}), pa.table({"x": column})):
            assert 3 * 16 + len(text[2].as_py()) <= bytes_of(data) < 1000
    assert bytes_of(pa.chunked_array([], pa.string_view())) == bytes_of(pa.table({})) == 0
    assert bytes_of(pa.array(range(10)).slice(2, 3)) == 24


LENGTH = pa.list_(pa.int32(), 2)
TENSOR = pa.fixed_shape_tensor(pa.int32(), [2])
PLACES = [
    (LENGTH, [[1, 2], [3, None]], [None, [1, 2]]),
    (pa.struct([("a", LENGTH)]), [{"a": [1, 2]}], [{"a": [1, 2]}, None]),
    (pa.large_list(LENGTH), [None, [[1, 2]], []], [[[1, 2], None]]),
    (pa.map_(pa.string(), LENGTH), [[("a", [1, 2])], None], [[("a", None)]]),
    (TENSOR, [[1, 2]], [[1, 2], None]),
]


@pytest.mark.parametrize(("kind", "whole", "with_nulls"), PLACES, ids=lambda each: str(each)[:40])
def test_nulls_among_lists_of_one_length(tmp_path, kind, whole, with_nulls):
    for name, values in (("whole", whole), ("nulls", with_nulls)):
        column = pa.array(values, LENGTH if kind == TENSOR else kind)
        column = pa.ExtensionArray.from_storage(kind, column) if kind == TENSOR else column
        data, keep = pa.table({"text": ["x"] * len(column), "odd": column}), np.ones(len(column), bool)
        if values is whole or has_null_lists():
            open_documents(data).write_kept(tmp_path / name, keep)
            assert pq.read_table(tmp_path / name / "part-00000.parquet").to_pylist() == data.to_pylist()
        else:
            with one_line(InputError, "'odd'", "pyarrow 26"):
                open_documents(data).write_kept(tmp_path / name, keep)


def test_files_with_nulls_among_lists_of_one_length(tmp_path):
    data = pa.table({"text": ["x", "y"], "odd": pa.array([[1, 2], None], LENGTH)})
    pq.write_table(data, tmp_path / "x.parquet")
    documents = open_documents(tmp_path)
    assert read(documents)[1] == [b"x", b"y"]
    if has_null_lists():
        assert read(documents, ["odd"])[3] == {"odd": [[1, 2], None]}
    else:
        with one_line(InputError, "x.parquet", "pyarrow 26"):
            read(documents, ["odd"])


def test_two_columns_of_one_name(tmp_path):
    arrays = [pa.array(["x", "y", "z"]), pa.array([1, 2, 3]), pa.array([4, 5, 6])]
    data = pa.Table.from_arrays(arrays, names=["text", "n", "n"])
    for name in ("x.parquet", "x.arrow"):
        documents = open_documents(write(tmp_path / name, data))
        assert read(documents)[1] == [b"x", b"y", b"z"]
        with one_line(InputError, name, "2 columns named 'n'", "keep=..."):
            documents.batches(["n"])
        documents.write_kept(tmp_path / "kept", np.array([True, False, True]))
        path = tmp_path / "kept" / name
        kept = pq.ParquetFile(path).read() if name == "x.parquet" else pa.ipc.open_file(path).read_all()
        assert kept.schema == data.schema
        assert [column.to_pylist() for column in kept.columns] == [["x", "z"], [1, 3], [4, 6]]


def test_dots_in_names(tmp_path):
    data = pa.table({"a.b": ["x" * 1000] * 200, "a": [{"b": 1}] * 200})
    pq.write_table(data, tmp_path / "x.parquet", use_dictionary=False)
    batches = list(open_documents(tmp_path / "x.parquet", text_columns="a.b").batches(max_bytes=20_000))
    assert sum(batch.num_rows for batch in batches) == 200
    assert max(batch.text.values.size for batch in batches) <= 50_000


@pytest.mark.parametrize("name", ["x.arrow", "x.arrows", "stream"])
def test_ids_and_columns_do_not_hold_the_text(tmp_path, name):
    rows = 2000
    data = pa.table({"id": pa.array(range(rows)), "text": ["x" * 8000] * rows, "key": [str(i) for i in range(rows)]})
    opener = pa.ipc.new_file if name == "x.arrow" else pa.ipc.new_stream
    with opener(str(tmp_path / name), data.schema) as writer:
        writer.write_table(data, max_chunksize=500)
    del data
    source = pa.ipc.open_stream(str(tmp_path / name)) if name == "stream" else tmp_path / name
    before = pa.total_allocated_bytes()
    held = []
    for batch in open_documents(source, id_column="id", text_columns="text").batches(["key"], max_bytes=1 << 20):
        held += [batch.ids, batch.columns["key"]]
    del batch, source
    assert sum(map(len, held)) == 2 * rows
    assert pa.total_allocated_bytes() - before < 1 << 20


@pytest.mark.parametrize(
    "kind",
    [pa.int8(), pa.uint64(), pa.int64(), pa.string(), pa.large_string(), pa.binary(), pa.binary(1)],
    ids=str,
)
def test_id_types(kind):
    values = range(3) if pa.types.is_integer(kind) else [b"a", b"b", b"c"]
    ids = pa.array(list(values), kind)
    data = pa.table({"text": ["x", "y", "z"], "key": ids})
    (batch,) = open_documents(data, id_column="key").batches()
    assert batch.ids.type == kind
    assert batch.ids.equals(ids)


def test_ids_in_dictionaries_and_views_are_decoded():
    for ids in (pa.array(["a", "b"]).dictionary_encode(), pa.array(["a", "b"], pa.string_view())):
        (batch,) = open_documents(
            pa.table({"text": ["x", "y"], "key": ids}), id_column="key", text_columns="text"
        ).batches()
        assert batch.ids.to_pylist() == ["a", "b"]
        assert not pa.types.is_dictionary(batch.ids.type)


def test_text_is_not_copied():
    text = pa.array(["abc", "def"], pa.large_string())
    (batch,) = open_documents(pa.table({"text": text})).batches()
    assert batch.text.values.ctypes.data == text.buffers()[2].address


def test_bytes_under_a_null_are_not_text():
    text = pa.Array.from_buffers(
        pa.large_string(), 2, [pa.py_buffer(b"\x02"), pa.py_buffer(np.array([0, 3, 6])), pa.py_buffer(b"abcdef")]
    )
    (batch,) = open_documents(pa.table({"text": text})).batches()
    assert [batch.text[i].tobytes() for i in range(2)] == [b"", b"def"]
    assert batch.num_null == 1


def test_several_text_columns():
    data = pa.table({"title": ["A", None, "C", None], "body": pa.array(["x", "y", None, None], pa.large_string())})
    ids, texts, nulls, _ = read(open_documents(data, text_columns=["title", "body"]))
    assert (ids, texts, nulls) == ([0, 1, 2, 3], [b"A\xed\xb0\x80\nx", b"y", b"C", b""], 1)


@settings(max_examples=fewer(60), deadline=None)
@given(st.lists(st.tuples(*[st.one_of(st.none(), st.text(max_size=5))] * 3), max_size=12), st.integers(1, 900))
def test_joined_columns(rows, max_bytes):
    data = pa.table({name: pa.array([row[i] for row in rows], pa.string()) for i, name in enumerate("abc")})
    _, texts, nulls, _ = read(open_documents(data, text_columns=["c", "a"]), max_bytes=max_bytes)
    parts = [[part for part in (c, a) if part is not None] for a, _, c in rows]
    assert texts == [b"\xed\xb0\x80\n".join(map(str.encode, part)) for part in parts]
    assert nulls == parts.count([])


def test_html_column():
    page = "<meta charset=windows-1251><p>слово</p>два"
    data = pa.table({"s": [page, None], "b": [page.encode("cp1251"), b"<b>x</b>"]})
    assert [t.split() for t in read(open_documents(data, text_columns="s", reading=Reading(html=True)))[1]] == [
        ["слово".encode(), "два".encode()],
        [],
    ]
    assert [t.split() for t in read(open_documents(data, text_columns="b", reading=Reading(html=True)))[1]] == [
        ["слово".encode(), "два".encode()],
        [b"x"],
    ]


def test_polars():
    polars = pytest.importorskip("polars")
    data = polars.DataFrame({"id": IDS, "text": TEXTS})
    assert read(open_documents(data, id_column="id"))[:3] == (IDS, EXPECTED, 1)
    documents = open_documents(data, id_column="id")
    assert read(documents) == read(documents)


def test_duckdb(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    pq.write_table(table(), tmp_path / "x.parquet")
    relation = duckdb.connect().sql(f"select * from '{tmp_path}/x.parquet'")
    documents = open_documents(relation, text_columns="text", id_column="id")
    assert documents.rewindable
    assert read(documents)[:3] == (IDS, EXPECTED, 1)
    documents.write_kept(tmp_path / "kept", KEEP)
    assert pq.read_table(tmp_path / "kept/part-00000.parquet")["id"].to_pylist() == ["a", "c", "d", "g"]


def test_pandas(tmp_path):
    pandas = pytest.importorskip("pandas")
    data = pandas.DataFrame({"id": IDS, "text": TEXTS})
    documents = open_documents(data, id_column="id")
    assert read(documents)[:3] == (IDS, EXPECTED, 1)
    documents.write_kept(tmp_path / "kept", KEEP)
    assert pandas.read_parquet(tmp_path / "kept/part-00000.parquet")["id"].tolist() == ["a", "c", "d", "g"]


def test_record_batch():
    assert read(open_documents(table().combine_chunks().to_batches()[0], id_column="id"))[:2] == (IDS, EXPECTED)


def test_streams_are_read_once(tmp_path):
    documents = open_documents(table().to_reader(), id_column="id")
    assert not documents.rewindable
    assert read(documents)[:2] == (IDS, EXPECTED)
    with one_line(InputError, "only once", "table"):
        documents.batches()
    with one_line(InputError, "stream", "table"):
        documents.write_kept(tmp_path / "kept", KEEP)
    with one_line(InputError, "memory"):
        open_described(documents.describe())


# Folders, patterns, URIs


def test_folder_order_and_parts(tmp_path):
    folder = tmp_path / "in"
    (folder / "sub").mkdir(parents=True)
    (folder / "_temporary").mkdir()
    data = table()
    pq.write_table(data.slice(4), folder / "sub/b.parquet")
    pq.write_table(data.slice(0, 0), folder / "b.parquet")
    pq.write_table(data.slice(0, 4), folder / "a.parquet")
    for ignored in (".hidden.parquet", "_SUCCESS", "_temporary/c.parquet", "notes.pdf"):
        (folder / ignored).write_bytes(b"not read")
    documents = open_documents(folder, id_column="id")
    assert documents.num_files == 3
    assert read(documents, max_bytes=10_000)[:2] == (IDS, EXPECTED)
    documents.write_kept(tmp_path / "out", KEEP)
    parts = [tmp_path / "out" / name for name in ("a.parquet", "b.parquet", "sub/b.parquet")]
    assert sorted(path for path in (tmp_path / "out").rglob("*") if path.is_file()) == parts
    assert [pq.read_table(part)["id"].to_pylist() for part in parts] == [["a", "c", "d"], [], ["g"]]
    files = [folder / "sub/b.parquet", folder / "a.parquet", folder / "a.parquet", folder / "b.parquet"]
    assert read(open_documents(files, id_column="id"))[0] == IDS
    assert read(open_documents(str(folder / "*.parquet"), id_column="id"))[0] == IDS[:4]
    assert read(open_documents(str(folder / "**/b.parquet"), id_column="id"))[0] == IDS[4:]
    assert read(open_documents(folder, id_column="id", reading=Reading(glob="a.*")))[0] == IDS[:4]
    assert read(open_documents(folder, id_column="id", reading=Reading(glob="sub/*.parquet")))[0] == IDS[4:]


@pytest.mark.parametrize("name", ["x.parquet", "x.jsonl", "x.arrow"])
def test_partition_folders_are_kept(tmp_path, name):
    for year in (2020, 2021):
        (tmp_path / f"in/year={year}/lang=en").mkdir(parents=True)
        write(tmp_path / f"in/year={year}/lang=en/{name}", table())
    (tmp_path / "in/other").mkdir()
    write(tmp_path / "in/other" / name, table())
    parts = ["other", "year=2020/lang=en", "year=2021/lang=en"]
    files = [str(tmp_path / "in" / part / name) for part in parts]
    for number, source in enumerate((tmp_path / "in", files)):
        out = tmp_path / f"out{number}"
        open_documents(source).write_kept(out, np.ones(21, bool))
        found = sorted(path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file())
        assert found == [f"{part}/{name}" for part in parts]
    open_documents(files[1]).write_kept(tmp_path / "one", np.ones(7, bool))
    assert (tmp_path / "one/year=2020/lang=en" / name).is_file()


def decisions() -> pa.Table:
    """What dedup writes about documents."""
    data = pa.table({"id": IDS, "kept": [True] * 7, "group": IDS, "duplicate_of": pa.nulls(7, pa.string())})
    return data.replace_schema_metadata({METADATA_KEY: Recipe(threshold=0.8).to_json()})


@pytest.mark.parametrize("glob", [None, "*.txt", "*.parquet"])
def test_results_inside_the_folder_are_not_input(tmp_path, glob):
    name = "x.parquet" if glob == "*.parquet" else "x.txt"
    for folder in ("", "out/kept", "deep/out/kept", "half/kept"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        write(tmp_path / folder / name, table()) if glob == "*.parquet" else (tmp_path / folder / name).write_text("a")
    for folder in ("out", "deep/out"):
        (tmp_path / folder / "report.json").write_text("{}")
        write(tmp_path / folder / "documents.parquet", decisions())
    (tmp_path / "half/report.json").write_text("{}")
    if glob is None:
        (tmp_path / "half/report.json").unlink()
    assert open_documents(tmp_path, reading=Reading(glob=glob)).num_files == 2
    assert open_documents(str(tmp_path / f"**/{name}")).num_files == 2
    # Named, or with the result around it, it is input.
    assert open_documents(tmp_path / "out/kept", reading=Reading(glob=glob)).num_files == 1
    assert open_documents(tmp_path / "out", reading=Reading(glob=f"kept/{name}")).num_files == 1
    with one_line(InputError, "deep", "no file"):
        open_documents(tmp_path / "deep", reading=Reading(glob=glob))


def test_split_into_files_changes_nothing(tmp_path):
    whole = write(tmp_path / "whole.jsonl", table())
    (tmp_path / "split").mkdir()
    for i in range(7):
        write(tmp_path / f"split/{i}.jsonl", table().slice(i, 1))
    assert read(open_documents(whole, id_column="id")) == read(open_documents(tmp_path / "split", id_column="id"))


def test_uri(tmp_path):
    path = write(tmp_path / "x y.parquet", table())
    (tmp_path / "z").mkdir()
    write(tmp_path / "z/a.jsonl.gz", table())
    assert read(open_documents(path.as_uri(), id_column="id"))[:2] == (IDS, EXPECTED)
    assert read(open_documents((tmp_path / "z").as_uri(), id_column="id"))[:2] == (IDS, EXPECTED)
    documents = open_documents(tmp_path.as_uri() + "/z/*.gz", id_column="id")
    assert read(documents)[:2] == (IDS, EXPECTED)
    assert read(open_described(documents.describe()))[:2] == (IDS, EXPECTED)
    with one_line(InputError, "missing.parquet", "no such"):
        open_documents((tmp_path / "missing.parquet").as_uri())
    with one_line(InputError, "nowhere://bucket/x.parquet"):
        open_documents("nowhere://bucket/x.parquet")


def test_any_file_system(tmp_path):
    from pyarrow import fs

    from neardup_gpu.documents.files import File
    from neardup_gpu.documents.parquet import Parquet

    write(tmp_path / "x.parquet", table())
    inside = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    reader = Parquet(File(inside, "x.parquet", "x.parquet", ""), Reading(), WHOLE)
    found = list(in_order(reader.steps(pa.schema([("id", pa.string())]), 1 << 20), size_of))
    assert [name for batch, _, _ in found for name in batch.column(0).to_pylist()] == IDS
    assert [row for _, rows, _ in found for row in rows.tolist()] == list(range(7))


def test_relative_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(Path("x.parquet"), table())
    for source in (".", "x.parquet", "./x.parquet", "*.parquet", ["x.parquet", str(tmp_path / "x.parquet")]):
        documents = open_documents(source, id_column="id")
        assert read(documents)[0] == IDS
        description = documents.describe()
        monkeypatch.chdir("/")
        assert read(open_described(description))[0] == IDS
        monkeypatch.chdir(tmp_path)


def test_a_name_that_looks_like_a_pattern(tmp_path):
    path = write(tmp_path / "x[1].parquet", table())
    assert read(open_documents(path, id_column="id"))[0] == IDS


# Text and HTML files


def test_text_folder(tmp_path):
    folder = tmp_path / "in"
    (folder / "b").mkdir(parents=True)
    (folder / "a.txt").write_bytes(b"plain \xff bytes\r\n")
    (folder / "b/page.HTML").write_bytes(b"<p>one</p>two")
    (folder / "b/utf16.txt").write_bytes("Ünï".encode("utf-16"))
    (folder / "bom.md").write_bytes("\ufeffmark".encode())
    (folder / "empty.rst").write_bytes(b"")
    (folder / "code.py").write_bytes(b"<b>print</b>")
    documents = open_documents(folder)
    ids, texts, nulls, _ = read(documents)
    assert ids == ["a.txt", "b/page.HTML", "b/utf16.txt", "bom.md", "empty.rst"]
    assert [text.split() for text in texts] == [
        *([b"plain", b"\xff", b"bytes"], [b"one", b"two"], ["Ünï".encode()], [b"mark"], []),
    ]
    assert nulls == 0
    assert read(documents, max_bytes=1) == read(documents)
    assert read(open_documents(folder, reading=Reading(glob="*.py")))[:2] == (["code.py"], [b"<b>print</b>"])
    assert read(open_documents(folder, reading=Reading(glob="*.py", html=True)))[1] == [b"print"]
    assert read(open_documents(str(folder / "**/*.txt")))[0] == ["a.txt", "b/utf16.txt"]
    assert read(open_documents([folder / "b/utf16.txt", folder / "a.txt"]))[0] == ["a.txt", "b/utf16.txt"]
    documents.write_kept(tmp_path / "out", np.array([True, True, False, False, False]))
    assert (tmp_path / "out/a.txt").read_bytes() == b"plain \xff bytes\r\n"
    assert (tmp_path / "out/b/page.HTML").read_bytes() == b"<p>one</p>two"
    assert sorted(p.name for p in (tmp_path / "out").rglob("*") if p.is_file()) == ["a.txt", "page.HTML"]
    assert documents.texts([1])[1].split() == ["one", "two"]
    assert read(open_described(documents.describe())) == read(documents)


def test_ids_do_not_depend_on_the_order_of_folders(tmp_path):
    (tmp_path / "in/sub").mkdir(parents=True)
    (tmp_path / "in/sub/a.txt").write_text("a")
    for sources in (["in", "in/sub"], ["in/sub", "in"], ["in/sub/a.txt", "in", "in/sub"]):
        assert read(open_documents([tmp_path / source for source in sources]))[0] == ["sub/a.txt"]


def test_gone_files_are_noticed(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text(name)
    documents = open_documents(tmp_path)
    (tmp_path / "a.txt").unlink()
    with one_line(InputError, "a.txt", "no such"):
        read(documents)
    with one_line(InputError, "1 file,", "2"):
        open_described(documents.describe())


# JSON lines


def test_json_lines_are_kept_as_they_were(tmp_path):
    lines = [
        b'\xef\xbb\xbf{"text": "first"}\r\n',
        b"\r\n",
        b'  {"text" :\t"\\u00e9\\ud83d\\ude42", "other": [1, {"a": 2}]}  \n',
        b"   \n",
        b'{"other": 3}\n',
        b'{"text": "\\ud800 alone"}\n',
        b'{"text": "\xff raw"}\n',
        b'{"text": "no newline"}',
    ]
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"".join(lines))
    documents = open_documents(path)
    ids, texts, nulls, _ = read(documents)
    assert ids == list(range(6))
    assert texts == [b"first", "é🙂".encode(), b"", "\ufffd alone".encode(), b"\xff raw", b"no newline"]
    assert nulls == 1
    rows = [lines[0][3:], *(lines[i] for i in (2, 4, 5, 6, 7))]
    for mask in range(64):
        keep = np.array([bool(mask >> i & 1) for i in range(6)])
        documents.write_kept(tmp_path / "kept", keep)
        expected = b"".join(row for row, kept in zip(rows, keep, strict=True) if kept)
        assert (tmp_path / "kept" / path.name).read_bytes() == expected


def test_json_lines_across_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr("neardup_gpu.documents.jsonlines.BLOCK_BYTES", 50)
    rows = [{"id": i, "text": "word " * (i * 7 % 60)} for i in range(200)]
    raw = "".join(json.dumps(row) + "\n" * (1 + row["id"] % 3) for row in rows).encode()
    for name, data in (("x.jsonl", raw), ("x.jsonl.gz", gzip.compress(raw[:999]) + gzip.compress(raw[999:]))):
        (tmp_path / name).write_bytes(data)
        documents = open_documents(tmp_path / name, id_column="id")
        ids, texts, _, _ = read(documents)
        assert ids == list(range(200))
        assert texts == [row["text"].encode() for row in rows]
        documents.write_kept(tmp_path / "kept", np.arange(200) % 2 == 0)
        assert read(open_documents(tmp_path / "kept" / name, id_column="id"))[0] == ids[::2]
    (tmp_path / "x.jsonl").write_bytes(raw + b'{"id": 200, "text": 5}\n')
    lines = raw.count(b"\n") + 1
    with one_line(InputError, f"x.jsonl line {lines}", "'text'", "a number, not text"):
        read(open_documents(tmp_path / "x.jsonl"))


def test_both_json_parsers_agree(tmp_path):
    rows = [{"id": i, "text": "é\n\t\"'\\/" * i, "n": i / 2, "deep": [{"text": "no"}]} for i in range(50)]
    raw = "".join(json.dumps(row, ensure_ascii=i % 2 == 0) + "\n" for i, row in enumerate(rows)).encode()
    (tmp_path / "fast.jsonl").write_bytes(raw)
    (tmp_path / "slow.jsonl").write_bytes(raw + b'{"id": 50, "text": "\\udc00"}\n')
    fast = read(open_documents(tmp_path / "fast.jsonl", id_column="id"), ["n"])
    slow = read(open_documents(tmp_path / "slow.jsonl", id_column="id"), ["n"])
    assert fast[0] == slow[0][:-1]
    assert fast[1] == slow[1][:-1] == [row["text"].encode() for row in rows]
    assert fast[3]["n"] == slow[3]["n"][:-1] == [row["n"] for row in rows]


def test_json_integers_stay_integers(tmp_path):
    path = tmp_path / "x.jsonl"
    big = [2**53 + 1, 2**53, -(2**63), 2**63 - 1, None]
    lines = [json.dumps({"text": "a", "n": n}) + "\n" for n in big * 30]
    path.write_text("".join(lines))
    batches = list(open_documents(path).batches(["n"]))
    assert {batch.columns["n"].type for batch in batches} == {pa.int64()}
    assert read(open_documents(path), ["n"])[3]["n"] == big * 30
    for number in ("0.5", "1e3", "99999999999999999999"):
        path.write_text("".join(lines) + f'{{"text": "a", "n" : {number}}}\n')
        values = read(open_documents(path), ["n"])[3]["n"]
        assert values == [None if n is None else float(n) for n in big * 30] + [float(number)]
    path.write_text("".join(lines[:5]) + '{"text": "a", "n": 0.5}\n')
    assert read(open_documents(path), ["n"])[3]["n"][-1] == 0.5
    path.write_text(json.dumps({"text": "a", "n": 2**64 - 1}) + "\n" + json.dumps({"text": "a", "n": 7}) + "\n")
    assert read(open_documents(path), ["n"])[3]["n"] == [2**64 - 1, 7]


def test_json_ids_of_64_bits(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "a", "id": 5}\n{"text": "b", "id": 18446744073709551615}\n')
    (tmp_path / "b.jsonl").write_text('{"text": "a", "id": 6}\n')
    batches = list(open_documents(tmp_path, id_column="id").batches())
    assert {batch.ids.type for batch in batches} == {pa.uint64()}
    assert [i for batch in batches for i in batch.ids.to_pylist()] == [5, 2**64 - 1, 6]
    with open(tmp_path / "b.jsonl", "a") as file:
        file.write('{"text": "b", "id": -1}\n')
    with one_line(InputError, "b.jsonl", "'id'", "negative integers and integers from 2**63 on", "a.jsonl", "strings"):
        read(open_documents(tmp_path, id_column="id"))


def test_json_lines_that_decide_types_are_named(tmp_path):
    path = tmp_path / "x.jsonl"
    rows = ['{"id": 1, "text": "a", "tags": []}', '{"id": 2.0, "text": "b"}']
    path.write_text("\n".join(rows))
    with one_line(InputError, "x.jsonl line 2", "'id'", "a number with a fraction", "id_column=..."):
        open_documents(path, id_column="id")
    with one_line(InputError, "x.jsonl line 1", "'tags'", "an array", "keep=..."):
        open_documents(path).batches(["tags"])
    with one_line(InputError, "x.jsonl", "'nope'", "id, text, tags", "first 100 lines", "keep=..."):
        open_documents(path).batches(["nope"])
    path.write_text('{"text": ["a"], "more": {}}\n')
    with one_line(InputError, "x.jsonl line 1", "'text'", "an array, not text", "text_columns='text[]'"):
        open_documents(path)
    with one_line(InputError, "x.jsonl line 1", "'more'", "an object, not text", "text_columns=..."):
        open_documents(path, text_columns="more")
    path.write_text("".join('{"id": 1, "text": "a"}\n' for _ in range(100)) + '{"id": 2.0, "text": "a"}\n')
    with one_line(InputError, "x.jsonl line 101", "the number 2.0, not a 64-bit integer"):
        read(open_documents(path, id_column="id"))


def test_objects_that_run_over_lines_do_not_shift_rows(tmp_path):
    (tmp_path / "x.jsonl").write_bytes(b'{"text": "a"}{"text": "b"}\n{"text":\n"c"}\n')
    with one_line(InputError, "x.jsonl line 1"):
        read(open_documents(tmp_path / "x.jsonl"))


def test_huge_line(tmp_path):
    text = "long " * 2_000_000
    (tmp_path / "x.jsonl").write_text(json.dumps({"text": "a"}) + "\n" + json.dumps({"text": text}) + "\n{}\n")
    assert read(open_documents(tmp_path / "x.jsonl"))[1] == [b"a", text.encode(), b""]


def test_empty_sources(tmp_path):
    (tmp_path / "x.jsonl").write_bytes(b"\n\n")
    pq.write_table(table().slice(0, 0), tmp_path / "x.parquet")
    for source in (tmp_path / "x.jsonl", tmp_path / "x.parquet", table().slice(0, 0)):
        documents = open_documents(source)
        assert list(documents.batches()) == []
        documents.write_kept(tmp_path / "kept", np.zeros(0, bool))


# Mistakes


class one_line:
    """Expect an error whose message is one line that holds these words."""

    def __init__(self, kind, *words, without=None):
        self.kind, self.words, self.without = kind, words, without

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        assert kind is not None and issubclass(kind, self.kind), error
        message = str(error)
        assert "\n" not in message
        for word in self.words:
            assert word in message, message
        assert self.without is None or self.without not in message, message
        return True


def test_missing_and_unknown_files(tmp_path):
    with one_line(InputError, "missing.parquet", "no such"):
        open_documents(tmp_path / "missing.parquet")
    with one_line(InputError, "*.parquet", "no file matches"):
        open_documents(str(tmp_path / "*.parquet"))
    with one_line(InputError, str(tmp_path), ".parquet", "glob=..."):
        open_documents(tmp_path)
    (tmp_path / "x.pdf").write_bytes(b"%PDF-1.4\n\0")
    with one_line(InputError, "x.pdf", ".parquet", ".jsonl"):
        open_documents(tmp_path / "x.pdf")
    with one_line(InputError, "'*.txt'"):
        open_documents(tmp_path, reading=Reading(glob="*.txt"))
    with one_line(InputError, "empty"):
        open_documents([])
    with one_line(InputError, "int"):
        open_documents(3)


def test_mixed_folder(tmp_path):
    write(tmp_path / "x.parquet", table())
    (tmp_path / "y.txt").write_text("a")
    with one_line(InputError, "x.parquet", "y.txt", "glob='*.parquet'"):
        open_documents(tmp_path)
    assert read(open_documents(tmp_path, id_column="id", reading=Reading(glob="*.parquet")))[0] == IDS


@pytest.mark.parametrize("name", ["x.parquet", "x.jsonl", "x.arrow"])
def test_columns(tmp_path, name):
    path = write(tmp_path / name, table())
    with one_line(InputError, name, "'body'", "id, text, n", "text_columns=..."):
        open_documents(path, text_columns="body")
    with one_line(InputError, name, "'n'", "text_columns=..."):
        open_documents(path, text_columns="n")
    with one_line(InputError, name, "'key'", "id, text, n", "id_column=..."):
        open_documents(path, id_column="key")
    with one_line(InputError, name, "'other'", "id, text, n", "keep=..."):
        open_documents(path).batches(["other"])
    other = table().rename_columns(["id", "body", "n"])
    with one_line(InputError, name, "several columns of text", "id, body, n", "text_columns=..."):
        open_documents(write(path, other))
    assert read(open_documents(write(path, other.select(["body", "n"]))))[1] == EXPECTED
    with one_line(InputError, name, "no column of text", "text_columns=..."):
        open_documents(write(path, other.select(["n"])))


def test_ids_must_be_keys(tmp_path):
    data = pa.table({"text": ["a", "b"], "f": [0.5, 1.5], "n": [1, None], "s": ["x", None]})
    with one_line(InputError, "'f'", "double", "id_column=..."):
        open_documents(data, id_column="f")
    for name in "ns":
        with one_line(InputError, repr(name), "null", "document 2"):
            read(open_documents(data, id_column=name))
    (tmp_path / "x.jsonl").write_text('{"id": 1, "text": "a"}\n{"text": "b"}\n')
    with one_line(InputError, "x.jsonl line 2", "'id'", "null"):
        read(open_documents(tmp_path / "x.jsonl", id_column="id"))


def test_files_must_fit_together(tmp_path):
    pq.write_table(pa.table({"text": ["a"], "id": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"text": ["b"], "id": ["x"]}), tmp_path / "b.parquet")
    assert read(open_documents(tmp_path, id_column="id"))[0] == ["1", "x"]
    pq.write_table(pa.table({"text": ["b"], "id": [b"x"]}), tmp_path / "b.parquet")
    with one_line(InputError, "a.parquet", "b.parquet", "'id'", "int64", "binary"):
        open_documents(tmp_path, id_column="id")
    assert read(open_documents(tmp_path))[1] == [b"a", b"b"]
    pq.write_table(pa.table({"text": ["b"], "id": pa.array([7], pa.int8())}), tmp_path / "b.parquet")
    batches = list(open_documents(tmp_path, id_column="id").batches())
    assert [batch.ids.type for batch in batches] == [pa.int64()] * len(batches)
    pq.write_table(pa.table({"text": ["b"]}), tmp_path / "b.parquet")
    with one_line(InputError, "b.parquet", "'id'", "id_column=..."):
        open_documents(tmp_path, id_column="id")


def test_broken_parquet(tmp_path):
    path = write(tmp_path / "x.parquet", table())
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with one_line(InputError, "x.parquet", "Parquet"):
        open_documents(path)
    path.write_bytes(b"")
    with one_line(InputError, "x.parquet", "Parquet"):
        open_documents(path)
    path.write_bytes(whole[:4] + bytes(200) + whole[204:])
    with one_line(InputError, "x.parquet"):
        read(open_documents(path, id_column="id"))


@pytest.mark.parametrize("name", ["x.arrow", "x.arrows", "x.feather"])
def test_broken_arrow(tmp_path, name):
    path = write(tmp_path / name, table())
    whole = path.read_bytes()
    for broken in (whole[: len(whole) // 2], b"", b"FEA1 of old"):
        path.write_bytes(broken)
        with one_line(InputError, name):
            read(open_documents(path, id_column="id"))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"{\n", ["begins an object that goes on in the next line", "jq -c ."]),
        (b'{"text": "a"', ["not valid JSON", "column 13"]),
        (b"text", ["not valid JSON"]),
        (b'["a"]', ["not a JSON object"]),
        (b'{"text": ["a"]}', ["'text'", "an array, not text"]),
        (b'{"text": {}}', ["'text'", "an object, not text"]),
        (b'{"text": true}', ["'text'", "true or false, not text"]),
        (b'{"text": "a", "id": "x"}', ["'id'", "a string, not a 64-bit integer"]),
        (b'{"text": "a", "id": 1.5}', ["'id'", "not a 64-bit integer"]),
        (b'{"text": "a", "id": 99999999999999999999}', ["'id'", "not a 64-bit integer"]),
        (b"[" * 100_000, ["more than 500 arrays and objects"]),
    ],
)
def test_broken_json_line(tmp_path, line, words):
    good = b"".join(b'{"text": "a", "id": %d}\n\n' % i for i in range(150))
    (tmp_path / "x.jsonl").write_bytes(good + line + b"\n")
    with one_line(InputError, "x.jsonl line 301", *words):
        read(open_documents(tmp_path / "x.jsonl", id_column="id"))


def test_broken_gzip(tmp_path):
    raw = gzip.compress(os.urandom(1 << 20))
    for data in (b"not gzip", raw[: len(raw) // 2]):
        (tmp_path / "x.jsonl.gz").write_bytes(data)
        with one_line(InputError, "x.jsonl.gz"):
            read(open_documents(tmp_path / "x.jsonl.gz"))


def test_invalid_utf8_id(tmp_path):
    (tmp_path / "x.jsonl").write_bytes(b'{"text": "a", "id": "\xff"}\n')
    with one_line(InputError, "x.jsonl", "'id'", "UTF-8"):
        read(open_documents(tmp_path / "x.jsonl", id_column="id"))


def test_text_files_have_no_columns(tmp_path):
    (tmp_path / "x.txt").write_text("a")
    with one_line(InputError, "no columns"):
        open_documents(tmp_path, id_column="id")
    with one_line(InputError, "'n'"):
        open_documents(tmp_path).batches(["n"])


def test_unwritable_output(tmp_path):
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "in").mkdir()
    (tmp_path / "in/x.txt").write_text("a")
    for source, rows in ((table(), 7), (write(tmp_path / "x.jsonl", table()), 7), (tmp_path / "in", 1)):
        with one_line(OutputError, "kept: cannot be written", "Not a directory", without=str(tmp_path)):
            open_documents(source).write_kept(tmp_path / "file/kept", np.ones(rows, bool))


@pytest.mark.parametrize("name", ["x.parquet", "x.jsonl", "x.arrow", "x.txt"])
def test_output_errors_do_not_show_the_temporary_folder(tmp_path, name):
    source = tmp_path / "in" / name
    source.parent.mkdir()
    if name == "x.txt":
        source.write_text("a")
    else:
        write(source, table())
    (tmp_path / ".out.partial-abc/kept" / name).mkdir(parents=True)
    with one_line(OutputError, f"kept/{name}: cannot be written", without="partial-"):
        open_documents(source.parent).write_kept(
            tmp_path / ".out.partial-abc/kept", np.ones(1 if name == "x.txt" else 7, bool)
        )


def test_changed_input(tmp_path):
    documents = open_documents(write(tmp_path / "x.jsonl", table()))
    for rows in (6, 8):
        with one_line(InputError, "run again"):
            documents.write_kept(tmp_path / "kept", np.ones(rows, bool))
    with one_line(InputError, "row 7"):
        documents.texts([0, 7])


def test_reading_may_stop_early(tmp_path):
    before = threading.active_count()
    documents = open_documents(write(tmp_path / "x.parquet", table()))
    batches = documents.batches(max_bytes=1)
    next(batches)
    batches.close()
    del batches
    assert threading.active_count() == before


def test_bills(tmp_path):
    folder = os.environ.get("NEARDUP_CORPORA")
    if folder is None:
        pytest.skip("NEARDUP_CORPORA is not set")
    path = Path(folder) / "bills_116_small.parquet"
    data = pq.read_table(path)
    documents = open_documents(path, id_column="id")
    ids, texts, _, _ = read(documents, max_bytes=1 << 20)
    assert ids == data["id"].to_pylist()
    assert io.BytesIO(b"".join(texts)).getvalue().decode() == "".join(data["text"].to_pylist())
    keep = np.random.default_rng(0).random(len(ids)) < 0.5
    documents.write_kept(tmp_path, keep)
    kept = pq.read_table(tmp_path / path.name)
    assert kept.schema.equals(data.schema, check_metadata=True)
    assert kept.equals(data.filter(pa.array(keep)))


@pytest.mark.parametrize("name", ["x.parquet", "x.arrow", "x.arrows"])
def test_skipped_batches_do_not_depend_on_the_batch_size(tmp_path, name):
    path, ids = tmp_path / name, [f"id {i:02}" for i in range(60)]
    data = pa.table({"id": [*ids[:7], None, *ids[8:]], "text": [f"text {i:02}" for i in range(60)], "extra": ids})
    if name == "x.parquet":
        pq.write_table(
            data, path, row_group_size=20, compression="none", use_dictionary=False, write_page_checksum=True
        )
        old, new = b"text 33", b"text 34"
    else:
        with (pa.ipc.new_file if name == "x.arrow" else pa.ipc.new_stream)(str(path), data.schema) as writer:
            writer.write_table(data, max_chunksize=20)
        old = np.arange(0, 5 * 21, 5, np.int32).tobytes()
        new = old[:-4] + np.int32(99_999).tobytes()
    raw = path.read_bytes()
    at = raw.find(old) if name == "x.parquet" else raw.rfind(old)
    assert at > 0
    path.write_bytes(raw[:at] + new + raw[at + len(old) :])
    first = 20 if name == "x.parquet" else 40
    good = [i for i in range(60) if i != 7 and not first <= i < first + 20]
    for max_bytes in (1, 500, 1 << 20):
        documents = open_documents(path, id_column="id", text_columns="text", reading=Reading(on_error="skip"))
        found, texts, _, _ = read(documents, max_bytes=max_bytes)
        assert found == [ids[i] for i in good] and texts == [f"text {i:02}".encode() for i in good]
        assert documents.skipped.select(["row", "rows"]).to_pylist() == [
            {"row": 8, "rows": 1},
            {"row": first + 1, "rows": 20},
        ]
        documents.write_kept(tmp_path / "kept", np.array(good) % 2 == 0)
        (part,) = [each for each in (tmp_path / "kept").rglob("*") if each.is_file()]
        assert read(open_documents(part, id_column="id", text_columns="text"))[0] == [
            ids[i] for i in good if i % 2 == 0
        ]
        numbered = open_documents(path, text_columns="text", reading=Reading(on_error="skip"))
        assert read(numbered, max_bytes=max_bytes)[0] == [i for i in range(60) if not first <= i < first + 20]
    with one_line(InputError, name):
        read(open_documents(path, text_columns="text"), ["extra"])


# Where documents lie


def test_each_document_names_its_file_and_row(tmp_path):
    (tmp_path / "in/cc").mkdir(parents=True)
    (tmp_path / "in/cc/0000.jsonl.gz").write_bytes(
        gzip.compress(b'{"text": "a"}\n\n\n{"text": "b"}\n{"text": "c"}\n\n')
    )
    (tmp_path / "in/0001.jsonl").write_bytes(b'\n{"text": "d"}\n')
    result = dedup(str(tmp_path / "in"), output=tmp_path / "out", writing=Writing(check=0))
    places = list(zip(*(result.documents[name].to_pylist() for name in ("file", "row")), strict=True))
    assert places == [("0001.jsonl", 2), *(("cc/0000.jsonl.gz", row) for row in (1, 4, 5))]
    kept = sorted(path.relative_to(tmp_path / "out/kept").as_posix() for path in (tmp_path / "out/kept").rglob("*.*"))
    assert kept == ["0001.jsonl", "cc/0000.jsonl.gz"]
    assert pq.read_table(tmp_path / "out/documents.parquet")["file"].to_pylist() == [file for file, _ in places]


def test_rows_that_are_skipped_have_numbers_too(tmp_path):
    (tmp_path / "x.jsonl").write_bytes(b'{"text": "a"}\nbroken\n\n{"text": "b"}\n')
    result = dedup(str(tmp_path / "x.jsonl"), reading=Reading(on_error="skip"), writing=Writing(check=0))
    assert result.documents["row"].to_pylist() == [1, 4]
    assert result.skipped["row"].to_pylist() == [2]


def test_documents_in_memory_have_no_file():
    assert not {"file", "row"} & {*dedup(pa.table({"text": ["a"]}), writing=Writing(check=0)).documents.column_names}


def test_a_text_that_cannot_be_read_again_is_no_fault_of_the_output(tmp_path, monkeypatch):
    memory = pytest.importorskip("fsspec.implementations.memory")
    memory.MemoryFileSystem().pipe("/read_again/a.txt", b"to be or not to be " * 100_000)
    documents = open_documents("memory://read_again")
    number, reads = sum(batch.num_rows for batch in documents.batches()), memory.MemoryFile.read

    def ends(file, *size):
        if file.tell() >= 1 << 20:
            raise OSError(5, "Input/output error")
        return reads(file, *size)

    monkeypatch.setattr(memory.MemoryFile, "read", ends)
    with pytest.raises(InputError, match=r"memory://read_again/a\.txt: cannot be read \(Input/output error\)"):
        documents.write_kept(tmp_path / "kept", np.ones(number, bool))
