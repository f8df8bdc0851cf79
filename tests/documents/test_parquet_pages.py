"""Pages of Parquet that are decoded without Arrow: documents and errors are those of Arrow, whoever wrote the file."""

import logging
import threading

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from grids import fewer, some
from hypothesis import HealthCheck, given, settings, strategies as st

from neardup_gpu import Reading, log as log_module
from neardup_gpu.documents import open_documents, pages, parquet as parquet_reader, passes, thrift
from neardup_gpu.documents.slices import slices_of, text_bytes_of
from neardup_gpu.engine.processors import with_threads
from neardup_gpu.errors import InputError

CODECS = ["none", "snappy", "gzip", "zstd", "lz4"]
FEW = settings(max_examples=fewer(60), deadline=None, suppress_health_check=list(HealthCheck))
NO_ARROW = pytest.mark.usefixtures("never_unfit")


def read(path, **options):
    """The documents of a file: ids, texts and the number of nulls; or the error."""
    try:
        batches = list(open_documents(path, **{"text_columns": "text", "id_column": "id", **options}).batches())
    except InputError as error:
        return str(error)
    ids = [name for batch in batches for name in batch.ids.to_pylist()]
    texts = [batch.text[row].tobytes() for batch in batches for row in range(batch.num_rows)]
    return ids, texts, sum(batch.num_null for batch in batches)


def read_by_arrow(path, **options):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_reader, "find_column", lambda *_: None)
        return read(path, **options)


@pytest.fixture
def never_unfit(monkeypatch):
    """Fail if Arrow decodes a text after all."""

    def refuse(_, reason):
        raise AssertionError(reason)

    monkeypatch.setattr(pages.UnfitPagesError, "__init__", refuse)


@pytest.fixture(params=["usual", "small"])
def bounds(request, monkeypatch):
    """As in use; or so small that each row group is divided, and each page read and decoded in several parts."""
    if request.param == "small":
        monkeypatch.setattr(parquet_reader, "PIECE_BYTES", 2000)
        monkeypatch.setattr(pages, "WINDOW_BYTES", 64)
        monkeypatch.setattr(pages, "_RUN_ROWS", 5)


WORDS = st.text(st.sampled_from("ab é漢\ufffd\0"), max_size=30)
TEXTS = st.lists(st.one_of(st.none(), st.just("the same text"), WORDS), max_size=90)


def table_of(texts, kind=None):
    column = pa.array(texts, pa.string()).cast(kind or pa.string())
    return pa.table({"id": range(1000, 1000 + len(texts)), "text": column, "more": range(len(texts))})


@st.composite
def pyarrow_options(draw):
    return {
        "compression": draw(st.sampled_from(CODECS)),
        "version": draw(st.sampled_from(["1.0", "2.4", "2.6"])),
        "data_page_version": draw(st.sampled_from(["1.0", "2.0"])),
        "use_dictionary": draw(st.booleans()),
        "data_page_size": draw(st.sampled_from([1, 60, 1 << 20])),
        "dictionary_pagesize_limit": draw(st.sampled_from([1, 100, 1 << 20])),
        "write_batch_size": draw(st.sampled_from([1, 3, 1024])),
        "write_page_checksum": draw(st.booleans()),
        "write_page_index": draw(st.booleans()),
        "row_group_size": draw(st.sampled_from([1, 7, 1000])),
    }


@NO_ARROW
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.string_view()], ids=str)
def test_files_of_pyarrow(kind, bounds, tmp_path_factory):
    path = tmp_path_factory.mktemp("pyarrow") / "x.parquet"

    @FEW
    @given(TEXTS, pyarrow_options(), st.booleans())
    def agree(texts, options, nullable):
        table = table_of(texts if nullable else [text or "" for text in texts], kind)
        schema = table.schema.set(1, pa.field("text", kind, nullable=nullable))
        pq.write_table(table.cast(schema), path, **options)
        found = read(path)
        assert found == read_by_arrow(path)
        assert found[1] == [(text or "").encode() for text in texts]

    agree()


@NO_ARROW
@FEW
@given(
    texts=TEXTS,
    codec=st.sampled_from(["uncompressed", "snappy", "gzip", "zstd", "lz4"]),
    size=st.sampled_from([1, 100, None]),
    statistics=st.booleans(),
)
def test_files_of_polars(tmp_path_factory, texts, codec, size, statistics):
    path = tmp_path_factory.getbasetemp() / "polars.parquet"
    pl.from_arrow(table_of(texts)).write_parquet(
        path, compression=codec, data_page_size=size, row_group_size=40, statistics=statistics
    )
    assert read(path) == read_by_arrow(path)


def written_by_duckdb(path, texts, options):
    with duckdb.connect() as connection:
        connection.register("documents", table_of(texts))
        connection.execute(f"copy documents to '{path}' (format parquet, {options})")


@NO_ARROW
@FEW
@given(
    texts=TEXTS.filter(len),
    codec=st.sampled_from(["uncompressed", "snappy", "gzip", "zstd", "lz4_raw"]),
    limit=st.sampled_from([1, 10**6]),
)
def test_files_of_duckdb(tmp_path_factory, texts, codec, limit):
    path = tmp_path_factory.getbasetemp() / "duckdb.parquet"
    written_by_duckdb(path, texts, f"codec {codec}, dictionary_size_limit {limit}")
    assert read(path) == read_by_arrow(path)


@pytest.mark.parametrize("threads", [1, 3])
def test_the_pages_of_one_row_group_are_decoded_by_all_threads(threads, tmp_path, monkeypatch, never_unfit):
    monkeypatch.setattr(parquet_reader, "PIECE_BYTES", 20_000)
    monkeypatch.setattr(passes, "SMALL_BYTES", 600)
    path, texts = tmp_path / "x.parquet", [f"text {i} " * (1 + i % 90) for i in range(3000)]
    table = table_of(texts).append_column("kind", pa.array([f"kind {i % 7}" for i in range(3000)]).dictionary_encode())
    pq.write_table(table, path, data_page_size=3000, write_batch_size=7, row_group_size=3000)
    meeting, runs, met = threading.Barrier(min(threads, 2), timeout=60), pages._runs, set()

    def noted(*arguments):
        if threading.get_ident() not in met:  # each thread waits until another one decodes a page too
            met.add(threading.get_ident())
            if len(met) <= meeting.parties:
                meeting.wait()
        yield from runs(*arguments)

    monkeypatch.setattr(pages, "_runs", noted)
    with with_threads(threads):
        documents = open_documents(path, text_columns="text", id_column="id")
        batches = list(documents.batches(["kind", "more"]))
    assert [batch.text[row].tobytes().decode() for batch in batches for row in range(batch.num_rows)] == texts
    assert [name for batch in batches for name in batch.ids.to_pylist()] == table["id"].to_pylist()
    assert [kind for batch in batches for kind in batch.columns["kind"].to_pylist()] == table["kind"].to_pylist()
    assert [more for batch in batches for more in batch.columns["more"].to_pylist()] == list(range(3000))
    assert len(met) >= meeting.parties


@NO_ARROW
@pytest.mark.parametrize("parts", [1, 4])
def test_slices_of_a_file_give_its_documents(parts, bounds, tmp_path):
    path = tmp_path / "x.parquet"
    pq.write_table(table_of([f"text {i}" for i in range(90)]), path, row_group_size=10)
    documents = open_documents(path, text_columns="text", id_column="id")
    slices = slices_of(documents, -(-text_bytes_of(documents) // parts))
    assert len(slices) == parts
    opened = [batch for each in slices for batch in each.open().batches()]
    assert [name for batch in opened for name in batch.ids.to_pylist()] == list(range(1000, 1090))
    assert [bytes(batch.text[row]) for batch in opened for row in range(batch.num_rows)] == read(path)[1]


def test_few_bytes_that_stand_for_much_text_take_little_memory(tmp_path, monkeypatch):
    """Places in a dictionary, and nulls, are repeated for three bytes: arrays of Arrow are no larger for that."""
    texts = ["x" * 100_000] * 4000 + [None] * 300_000
    pq.write_table(table_of(texts), tmp_path / "x.parquet", row_group_size=len(texts))
    sizes, found = [], [0, 0, 0]
    rest = pages.Slab.rest

    def noted(slab):
        for array in rest(slab):
            sizes.append(len(slab._values))
            yield array

    monkeypatch.setattr(pages.Slab, "rest", noted)
    for batch in open_documents(tmp_path / "x.parquet", text_columns="text").batches():
        found = np.add(found, [batch.num_rows, len(batch.text.values), batch.num_null])
    assert found[0] == len(texts) and found[2] == 300_000
    assert sizes and max(sizes) <= parquet_reader.PIECE_BYTES


KINDS = {
    "DELTA_BYTE_ARRAY": {"use_dictionary": False, "column_encoding": {"text": "DELTA_BYTE_ARRAY"}},
    "Brotli": {"compression": "brotli"},
    "a dictionary": {},
    "lists": {},
}


@pytest.mark.parametrize("kind", KINDS)
def test_columns_of_other_kinds_are_read_by_arrow(kind, tmp_path, monkeypatch, caplog):
    """One line says so, where a row group is so large that threads would share it."""
    monkeypatch.setattr(log_module.once, "lines", set())
    monkeypatch.setattr(pages.Slab, "decoded", None)
    path, texts, table = tmp_path / "x.parquet", ["a text", None, "another one"] * 30, table_of(["a text"] * 90)
    column = pa.array(texts).dictionary_encode() if kind == "a dictionary" else pa.array(texts)
    if kind == "lists":
        column = pa.array([[text] for text in texts])
    pq.write_table(table.set_column(1, "text", column), path, **KINDS[kind])
    for piece_bytes, lines in ((parquet_reader.PIECE_BYTES, 0), (50, 1), (50, 1)):
        monkeypatch.setattr(parquet_reader, "PIECE_BYTES", piece_bytes)
        with caplog.at_level(logging.INFO, "neardup_gpu"):
            found = read(path, text_columns="text[]" if kind == "lists" else "text")
        assert found[1] == [(text or "").encode() for text in texts]
        assert caplog.text.count("one thread decodes each row group of Parquet") == lines
    assert kind in caplog.text


def test_nothing_is_said_of_numbers_alone(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(parquet_reader, "PIECE_BYTES", 10)
    pq.write_table(table_of(["a text"] * 90), tmp_path / "x.parquet")
    with caplog.at_level(logging.INFO, "neardup_gpu"):
        open_documents(tmp_path / "x.parquet", text_columns="text", id_column="id").check_ids_early()
    assert not caplog.text


@pytest.mark.parametrize("codec", ["snappy", "zstd"])
@pytest.mark.parametrize("size", [1, 255, 256, 300, 65_791, 65_792, 1 << 20])
def test_pages_are_decompressed_once(codec, size):
    """Snappy and Zstandard state the size of what they compressed, so that no second try has to show it."""
    packed = pa.Codec(codec).compress(np.random.default_rng(5).bytes(size))
    assert pages._stated_size(packed.to_pybytes()[:18], codec) == size


# -------------------------------------------------------------------------------------------------------- damage

WRITERS = {
    "plain": {"compression": "none", "use_dictionary": False, "data_page_size": 200, "write_batch_size": 5},
    "dictionary": {"compression": "snappy", "data_page_version": "2.0", "data_page_size": 99, "write_batch_size": 5},
    "checksums": {"compression": "zstd", "write_page_checksum": True},
    "gzip": {"compression": "gzip"},
    "lz4": {"compression": "lz4", "use_dictionary": False},
    "snappy": {"compression": "snappy", "use_dictionary": False},
}


def damaged_table():
    return table_of([None if i % 7 == 3 else f"text {i % 9} " + "word " * (i % 11) for i in range(40)]).drop("more")


def told(path, good):
    """What is read of a damaged file: documents, or an error in one line that names it, as where Arrow decodes all
    pages; or the documents that were written, where the damage changes none of them."""
    found, by_arrow = read(path), read_by_arrow(path)
    if isinstance(found, str) and isinstance(by_arrow, str):  # of the text alone, or of all columns
        assert "\n" not in found and found.partition(" (")[0] == by_arrow.partition(" (")[0]
    else:
        assert found in (by_arrow, good)
    return found


@pytest.mark.parametrize("writer", some(WRITERS, ("plain", "dictionary", "checksums")))
def test_changed_bytes_lead_to_the_documents_and_errors_of_arrow(writer, bounds, tmp_path):
    path = tmp_path / "x.parquet"
    pq.write_table(damaged_table(), path, row_group_size=25, **WRITERS[writer])
    good, documents, random = path.read_bytes(), read(path), np.random.default_rng(5)
    column = find(path)
    for chunk in column.chunks:  # a byte in ten of those that are decoded here
        for place in range(chunk.begin + int(random.integers(10)), chunk.end, 10):
            changed = bytearray(good)
            changed[place] ^= int(random.choice([1 << int(random.integers(8)), 255]))
            path.write_bytes(changed)
            told(path, documents)


@pytest.mark.parametrize("writer", WRITERS)
def test_cut_files(writer, tmp_path):
    """The footer stays, so that pages end too soon."""
    path = tmp_path / "x.parquet"
    pq.write_table(damaged_table(), path, row_group_size=25, **WRITERS[writer])
    good, documents = path.read_bytes(), read(path)
    size, found = int.from_bytes(good[-8:-4], "little") + 8, []
    for length in range(4, find(path).chunks[-1].end, 97):
        path.write_bytes(good[:length] + good[-size:])
        found.append(told(path, documents))
    assert "row group 1" in found[0] and "row group 2" in str(found)


def find(path):
    """The column that is decoded here."""
    file, data = pq.ParquetFile(path), path.read_bytes()
    footer = data[-8 - int.from_bytes(data[-8:-4], "little") : -8]
    return pages.find_column(file, file.schema_arrow, footer, ["text"])


@pytest.mark.parametrize("writer", WRITERS)
def test_pages_that_lie(writer, bounds, tmp_path):
    """About their size, before or after compression, or the number of their values."""
    path = tmp_path / "x.parquet"
    pq.write_table(damaged_table(), path, row_group_size=25, **WRITERS[writer])
    good, documents, chunk = path.read_bytes(), read(path), find(path).chunks[0]
    place, refused = chunk.begin, 0
    while place < chunk.end:
        page, end = pages._page(pa.py_buffer(good), place)
        header, rest = good[place : end - len(page.data)], good[end - len(page.data) :]
        for number in (page.num_bytes, len(page.data), page.num_rows):
            for lie in (0, number - 1, number + 1, number + 40, 2**31 - 1):
                said = header.replace(thrift.written(number), thrift.written(lie), 1)
                if len(said) == len(header):
                    path.write_bytes(good[:place] + said + rest)
                    found = told(path, documents)
                    assert not isinstance(found, str) or "row group 1" in found
                    refused += isinstance(found, str)
        place = end
    assert refused


@pytest.mark.parametrize("codec", ["snappy", "zstd", "lz4_raw", "gzip", None])
@pytest.mark.parametrize("off", [-1, 1, 40])
def test_another_size_is_never_filled_with_what_was_in_memory(codec, off):
    text = b"to be or not to be " * 30
    packed = pa.py_buffer(text) if codec is None else pa.Codec(codec).compress(text)
    assert pages._unpacked(packed, len(text), codec).to_pybytes() == text
    with pytest.raises(pages._DAMAGE):
        pages._unpacked(packed, len(text) + off, codec)


def test_a_row_group_without_pages(tmp_path):
    path = tmp_path / "x.parquet"
    pq.write_table(table_of(["one text", "two"]).select(["text"]), path, compression="none", use_dictionary=False)
    good, chunk = path.read_bytes(), find(path).chunks[0]
    path.write_bytes(good[: chunk.begin] + bytes(chunk.end - chunk.begin) + good[chunk.end :])
    assert "row group 1 cannot be read" in read(path, id_column=None)


@pytest.mark.parametrize(("dictionary", "from_end"), [(False, 10), (True, 2)], ids=["length", "place"])
def test_a_length_beyond_the_page_and_a_place_beyond_the_dictionary(dictionary, from_end, tmp_path):
    path = tmp_path / "x.parquet"
    table = pa.table({"text": [f"text {i % 3}" for i in range(8)]})
    pq.write_table(table, path, compression="none", use_dictionary=dictionary)
    damaged, chunk = bytearray(path.read_bytes()), find(path).chunks[0]
    damaged[chunk.end - from_end : chunk.end - from_end + 2] = b"\xff\xff"
    path.write_bytes(damaged)
    said = read(path, id_column=None)
    assert said.startswith(f"{path}: row group 1 cannot be read") and "\n" not in said


def test_damaged_row_groups_are_skipped(bounds, tmp_path):
    path = tmp_path / "x.parquet"
    pq.write_table(damaged_table(), path, row_group_size=5, **WRITERS["checksums"])
    good, chunk = bytearray(path.read_bytes()), find(path).chunks[3]
    good[chunk.end - 3] ^= 1
    path.write_bytes(good)
    assert "row group 4 cannot be read" in told(path, None)
    documents = open_documents(path, text_columns="text", id_column="id", reading=Reading(on_error="skip"))
    ids = [name for batch in documents.batches() for name in batch.ids.to_pylist()]
    assert ids == [1000 + row for row in range(40) if not 15 <= row < 20]
    assert documents.skipped.to_pylist()[0]["row"] == 16
