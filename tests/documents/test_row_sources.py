"""Any source of rows: generators, own iterables, datasets of pyarrow; what is refused, and the way that it names."""

import asyncio
import io
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from neardup_gpu import Recipe, Shingles, Workers, Writing, dedup, open_documents
from neardup_gpu.errors import ArgumentTypeError, InputError

NUMBER = 3000
ROWS = [
    {"id": f"d{row}", "text": f"number {row // 2} of a text", "page": row if row % 3 else None} for row in range(NUMBER)
]
TABLE = pa.Table.from_pylist(ROWS)
EXPECTED = [row % 2 == 0 for row in range(NUMBER)]


class OwnReader:
    """A reader of one's own: each iteration begins anew."""

    def __init__(self, rows: Any, schema: pa.Schema | None = None) -> None:
        self.rows, self.times = rows, 0
        if schema is not None:
            self.schema = schema

    def __iter__(self) -> Iterator[Any]:
        self.times += 1
        yield from self.rows


def dataset_of(folder: Path, form: str) -> Any:
    ds.write_dataset(TABLE, folder, format=form, max_rows_per_file=1000, max_rows_per_group=500)
    return ds.dataset(folder, format=form)


SOURCES: dict[str, Any] = {
    "dicts": lambda folder: (row for row in ROWS),
    "batches": lambda folder: iter(TABLE.to_batches(700)),
    "tables": lambda folder: (TABLE.slice(start, 700) for start in range(0, NUMBER, 700)),
    "list of batches": lambda folder: TABLE.to_batches(700),
    "own reader of dicts": lambda folder: OwnReader(ROWS),
    "own reader of batches": lambda folder: OwnReader(TABLE.to_batches(700)),
    "own reader with a schema": lambda folder: OwnReader(ROWS, TABLE.schema),
    "values of a dict": lambda folder: dict(enumerate(ROWS)).values(),
    "dataset of Parquet": lambda folder: dataset_of(folder / "data", "parquet"),
    "dataset of CSV": lambda folder: dataset_of(folder / "data", "csv"),
    "dataset in memory": lambda folder: ds.dataset(TABLE),
}


@pytest.mark.parametrize("name", SOURCES)
def test_rows_are_decided_about_as_those_of_a_table(name: str, tmp_path: Path) -> None:
    source = SOURCES[name](tmp_path)
    found = dedup(source, id_column="id", text_columns="text")
    assert found.documents["kept"].to_pylist() == EXPECTED
    assert found.documents["id"].to_pylist() == [row["id"] for row in ROWS]


@pytest.mark.parametrize("name", [name for name in SOURCES if name not in ("dicts", "batches", "tables")])
def test_what_can_be_read_again_is_written(name: str, tmp_path: Path) -> None:
    source = SOURCES[name](tmp_path)
    dedup(source, id_column="id", text_columns="text", output=tmp_path / "out")
    kept = pq.read_table(tmp_path / "out/kept/part-00000.parquet")
    assert kept.to_pylist() == [row for row, stays in zip(ROWS, EXPECTED, strict=True) if stays]


def test_a_generator_is_a_stream(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a stream cannot be read again"):
        dedup((row for row in ROWS), id_column="id", text_columns="text", output=tmp_path / "out")
    dedup(iter(ROWS), id_column="id", text_columns="text", output=tmp_path / "ids", writing=Writing(ids_only=True))
    kept = pq.read_table(tmp_path / "ids/kept_ids.parquet")["id"].to_pylist()
    assert kept == [row["id"] for row, stays in zip(ROWS, EXPECTED, strict=True) if stays]


def test_tasks_take_an_own_reader(tmp_path: Path) -> None:
    workers = Workers(work_dir=tmp_path / "work", number=1, partitions=2)
    given: dict[str, Any] = {"id_column": "id", "text_columns": "text", "workers": workers}
    found = dedup(OwnReader(ROWS), output=tmp_path / "out", **given)
    assert found.documents["kept"].to_pylist() == EXPECTED


def test_texts_and_missing_texts() -> None:
    texts = ["to be", None, "to be", "or not \ud800"]
    documents = open_documents(text for text in texts)
    (batch,) = documents.batches()
    assert [row.tobytes().decode() for row in batch.text] == ["to be", "", "to be", "or not \ufffd"]
    assert dedup(iter(texts)).documents["kept"].to_pylist() == [True, True, False, True]
    assert dedup({"text": ["a b"]}, against=(text for text in ["a b"])).documents["kept"].to_pylist() == [False]


@pytest.mark.parametrize("rows", [iter([]), OwnReader([]), OwnReader([], pa.schema([("text", pa.string())]))])
def test_no_rows(rows: Any) -> None:
    assert dedup(rows).documents.num_rows == 0


def test_duckdb_gives_rows(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    pq.write_table(TABLE, tmp_path / "t.parquet")
    relation = duckdb.connect().sql(f"select * from '{tmp_path}/t.parquet' order by cast(substr(id, 2) as int)")
    found = dedup(relation, id_column="id", text_columns="text")
    assert found.documents["kept"].to_pylist() == EXPECTED


def late(*others: Any) -> list[Any]:
    return [{"text": "a", "n": 1}] * 1500 + list(others)


@pytest.mark.parametrize(
    ("rows", "error", "why"),
    [
        (late({"text": "b", "n": "x"}), InputError, "rows 1,025 to 1,501 have values in column 'n' that are not int64"),
        (late({"text": "b", "m": 1}), InputError, "row 1,501 has a column 'm'"),
        (late("b"), ArgumentTypeError, "row 1501 is of type str, but others are dicts"),
        (["a", {"text": "b"}], ArgumentTypeError, "row 1 is of type str, but others are dicts"),
        ([1, 2], ArgumentTypeError, "row 1 is of type int; give dicts, texts or record batches"),
        ([Path("a.txt")], ArgumentTypeError, "row 1 is a path; pass a list of paths"),
        ([{"text": object()}], InputError, "column 'text' cannot become an Arrow column"),
        ([TABLE.to_batches()[0], {"text": "b"}], ArgumentTypeError, "item 2 is of type dict, but item 1 is a batch"),
        ([TABLE.to_batches()[0], pa.record_batch({"text": ["b"]})], InputError, "batch 2 has other columns"),
    ],
)
def test_rows_that_do_not_fit_are_named(rows: list[Any], error: type[Exception], why: str) -> None:
    with pytest.raises(error, match=why):
        dedup(OwnReader(rows), text_columns="text")


async def asynchronous() -> Any:
    await asyncio.sleep(0)
    yield {"text": "a"}


@pytest.mark.parametrize(
    ("source", "way"),
    [
        (lambda: ROWS, "pass what it returns"),
        (io.StringIO("a\nb"), "pass its path"),
        ({"a", "b"}, r"pass {'text': sorted"),
        (asynchronous(), "collect its rows in a list first"),
        (sqlite3.connect(":memory:"), "pass the rows of a query"),
        (5, "an iterable of dicts or texts, or texts as"),
    ],
)
def test_what_is_refused_names_the_way(source: Any, way: str) -> None:
    with pytest.raises(InputError, match=way):
        dedup(source)


def test_an_error_of_a_generator_is_its_own() -> None:
    def rows() -> Iterator[dict[str, str]]:
        yield {"text": "a"}
        raise LookupError("the database is gone")

    with pytest.raises(LookupError, match="the database is gone"):
        dedup(rows())


def test_a_schema_decides_the_types() -> None:
    schema = pa.schema([("text", pa.string()), ("score", pa.float32())])
    rows = [{"text": "a b", "score": None}] * 1100 + [{"text": "a b", "score": 2.5}]
    found = dedup(OwnReader(rows, schema), keep="score:desc", text_columns="text")
    assert found.documents["kept"].to_pylist() == [False] * 1100 + [True]


class OtherRows:
    """A reader of one's own whose second iteration is not as the first."""

    def __init__(self, first: Any, later: Any) -> None:
        self.first, self.later, self.times = first, later, 0

    def __iter__(self) -> Iterator[Any]:
        self.times += 1
        yield from (self.first if self.times < 2 else self.later)


def changed(**values: Any) -> list[dict[str, Any]]:
    return [*ROWS[:-1], ROWS[-1] | values]


LISTS = [{"id": row, "input_ids": [row, 1, 2, 3, 4, 5, 6, 7]} for row in range(5)]


@pytest.mark.parametrize(
    "first, later, column",
    [
        (ROWS, ROWS[::-1], "text"),
        (ROWS, changed(text="another"), "text"),
        (ROWS, changed(id="another"), "id"),
        (ROWS, changed(text=None), "text"),
        (LISTS, [LISTS[1], LISTS[0], *LISTS[2:]], "input_ids"),
    ],
)
def test_other_rows_at_the_second_reading_are_noticed(first: Any, later: Any, column: str, tmp_path: Path) -> None:
    source = OtherRows(first, later)
    recipe = Recipe(shingles=Shingles(2, tokens="ids" if first is LISTS else "words"))
    with pytest.raises(InputError, match=rf"^input: other rows, or another order, .* \(column '{column}'\)"):
        dedup(source, id_column="id", output=tmp_path / "out", recipe=recipe)
    assert source.times == 2 and list(tmp_path.iterdir()) == []
    found = dedup(OtherRows(first, first), id_column="id", output=tmp_path / "out", recipe=recipe)
    assert found.report["counts"]["documents"] == len(first)


def test_a_query_without_an_order_is_noticed(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.sql("create table texts as select 'd' || i as id, 'text number ' || i as text from range(5000) t(i)")
    with pytest.raises(InputError, match="other rows, or another order"):
        dedup(connection.sql("select * from texts order by random()"), id_column="id", output=tmp_path / "out")
    assert dedup(
        connection.sql("select * from texts order by id"), id_column="id", output=tmp_path / "out"
    ).kept.num_rows


@pytest.mark.parametrize("options", [{}, {"id_column": "id"}, {"id_column": "name", "text_columns": ["title", "body"]}])
def test_an_iterable_without_rows_has_any_column(options: dict[str, Any], tmp_path: Path) -> None:
    found = dedup((row for row in ()), output=tmp_path / "out", writing=Writing(ids_only=True), **options)
    assert found.report["counts"]["documents"] == 0 and found.warnings
    with pytest.raises(InputError, match="no column 'id'"):
        dedup((text for text in ["one text"]), id_column="id")
