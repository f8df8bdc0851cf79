"""Parquet files whose row groups are encoded at once: the bytes are those of Arrow's own writer."""

import datetime
import decimal
import io
import threading
import weakref

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from chores import wait_for

from neardup_gpu.documents import row_groups
from neardup_gpu.documents.ahead import closing
from neardup_gpu.documents.row_groups import RowGroupWriter, encoded_in_order
from neardup_gpu.errors import OutputError

VALUES = {
    "text": pa.array(["a", None, "ccc" * 500, ""]),
    "large": pa.array([b"", b"\xff", None, b"x" * 3000], pa.large_binary()),
    "truth": pa.array([True, None, False, True]),
    "number": pa.array([1, None, -(2**62), 3]),
    "small": pa.array([1, 2, None, 255], pa.uint8()),
    "fraction": pa.array([0.5, float("nan"), None, -0.0]),
    "decimal": pa.array([decimal.Decimal("1.25"), None, decimal.Decimal("-9.5"), decimal.Decimal(0)]),
    "time": pa.array([datetime.datetime(2020, 1, 1), None, datetime.datetime(1999, 1, 1), None]),
    "day": pa.array([datetime.date(2020, 1, 1), None, datetime.date(1999, 1, 1), None]),
    "list": pa.array([[1, 2], None, [], [None, 3]]),
    "truths": pa.array([[True], None, [], [None, False]]),
    "struct": pa.array([{"a": 1, "b": {"c": "x"}}, None, {"a": None, "b": None}, {"a": 2, "b": {"c": None}}]),
    "map": pa.array([[("k", 1)], None, [], [("l", None)]], pa.map_(pa.string(), pa.int32())),
    "dictionary": pa.array(["x", None, "y", "x"]).dictionary_encode(),
    "fixed": pa.array([b"abc", None, b"def", b"ghi"], pa.binary(3)),
    "null": pa.nulls(4),
    "view": pa.array(["a", None, "ccc" * 500, ""], pa.string_view()),
}


def by_arrow(schema, tables):
    sink, options = io.BytesIO(), {"write_page_checksum": True, "data_page_size": row_groups.PAGE_BYTES}
    with pq.ParquetWriter(sink, schema, compression="zstd", **options) as writer:
        for table in tables:
            writer.write_table(table)
    return sink.getvalue()


def at_once(schema, tables, threads=3):
    sink = io.BytesIO()
    writer = RowGroupWriter(sink, schema)
    for group in encoded_in_order(schema, iter(tables), threads):
        writer.add(group)
    writer.finish()
    return sink.getvalue()


@pytest.mark.parametrize("name", VALUES)
def test_each_type(name):
    table = pa.table({name: VALUES[name]})
    tables = [table, table.slice(1), pa.concat_tables([table] * 50)]
    assert at_once(table.schema, tables) == by_arrow(table.schema, tables)


@pytest.mark.parametrize("number", [0, 1, 2, 14, 15, 16, 130])
@pytest.mark.parametrize("threads", [1, 4])
def test_all_types_together_in_any_number_of_row_groups(number, threads):
    whole = pa.table(VALUES)
    whole = whole.replace_schema_metadata({"recipe": "x" * 300, "two": ""})
    tables = [whole.slice(i % 4) for i in range(number)]
    made = at_once(whole.schema, tables, threads)
    assert made == by_arrow(whole.schema, tables)
    assert pq.read_table(io.BytesIO(made)).num_rows == sum(map(len, tables))


def test_large_row_groups_without_dictionary_pages():
    random = np.random.default_rng(0)
    texts = [random.integers(0, 256, random.integers(0, 50_000), np.uint8).tobytes() for _ in range(300)]
    whole = pa.table({"id": range(300), "text": pa.array(texts, pa.binary())})
    tables = [whole.slice(start, 70) for start in range(0, 300, 70)]
    made = at_once(whole.schema, tables)
    assert made == by_arrow(whole.schema, tables)
    assert pq.read_table(io.BytesIO(made), page_checksum_verification=True).equals(whole)


def test_a_table_of_several_row_groups():
    whole = pa.table({"id": np.arange(2 * 2**20 + 5) % 3})
    made = at_once(whole.schema, [whole, whole.slice(0, 7)])
    assert made == by_arrow(whole.schema, [whole, whole.slice(0, 7)])
    assert pq.ParquetFile(io.BytesIO(made)).num_row_groups == 4


def test_many_columns():
    whole = pa.table({f"column {i}": [i, None] for i in range(400)})
    assert at_once(whole.schema, [whole] * 3) == by_arrow(whole.schema, [whole] * 3)


def test_other_columns_are_an_error_also_where_assertions_are_left_out():
    schema = pa.schema({"text": pa.string()})
    writer = RowGroupWriter(io.BytesIO(), schema)
    other = pa.table({"text": [1]})
    (encoded,) = encoded_in_order(other.schema, iter([other]))
    with pytest.raises(OutputError, match=r"^the output: rows with other columns"):
        writer.add(encoded)


def row_group(value):
    """Return a table of as many bytes as a row group that is written, and few once it is encoded."""
    return pa.table({"value": np.full(row_groups.ROW_GROUP_BYTES // 8, value)})


@pytest.mark.parametrize("threads", [2, 4])
def test_each_thread_encodes_a_row_group(monkeypatch, threads):
    meet, encoded = threading.Barrier(threads, timeout=60), row_groups.encoded

    def encoded_at_once(schema, table):
        meet.wait()
        return encoded(schema, table)

    monkeypatch.setattr(row_groups, "encoded", encoded_at_once)
    groups = encoded_in_order(pa.schema({"value": pa.int64()}), map(row_group, range(2 * threads)), threads)
    assert len(list(groups)) == 2 * threads


def test_row_groups_that_wait_to_be_written_hold_no_tables():
    tables = []

    def watched(value):
        table = row_group(value)
        tables.append(weakref.ref(table))
        return table

    with closing(encoded_in_order(pa.schema({"value": pa.int64()}), map(watched, range(20)), 2)) as groups:
        next(groups)
        wait_for(lambda: len(tables) == 20 and not any(table() for table in tables))
