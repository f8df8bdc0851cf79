"""Rows from Python: generators and other iterables of dicts, texts or record batches, and datasets of pyarrow.

A generator gives its rows once, so it is a stream. An object whose `__iter__` begins anew each time can be read again,
as writing the kept rows requires: that is the contract of a reader of one's own.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa

from ..errors import ArgumentTypeError, InputError
from ..store.uris import brief

FIRST_ROWS = 1024
"""Rows that are looked at for the columns and their types, and rows of a batch."""


class RowSource:
    """An iterable of rows, or a dataset of pyarrow, as a source of record batches.

    Parameters
    ----------
    source : iterable of dict, str, pyarrow.RecordBatch or pyarrow.Table; or pyarrow.dataset.Dataset
        With an attribute `schema`, a pyarrow.Schema, its columns have these types. Otherwise the first 1,024 rows
        decide.
    as_columns : callable
        Makes a table of a dict of columns, as `memory.as_table` does.
    """

    def __init__(self, source: Any, as_columns: Callable[[dict[str, Any]], Any]) -> None:
        self._source, self._as_columns = source, as_columns
        self.rewindable = not isinstance(source, Iterator)
        self.is_empty = False
        """Whether it was read and gives no rows, whose columns nobody knows."""
        given = getattr(source, "schema", None)
        self._schema = given if isinstance(given, pa.Schema) else None

    @property
    def num_rows(self) -> int | None:
        """The number of rows of a dataset in memory or of Parquet, which footers state; None if it is not known."""
        if not is_arrow_dataset(self._source):
            return None
        kind = getattr(getattr(self._source, "format", None), "default_extname", "parquet")
        return int(self._source.count_rows()) if kind == "parquet" else None

    def to_reader(self) -> pa.RecordBatchReader:
        """Begin to read the rows."""
        if is_arrow_dataset(self._source):
            return self._source.scanner(use_threads=True).to_reader()
        rows = iter(self._source)
        first = list(itertools.islice(rows, 1))
        if first and isinstance(first[0], (pa.RecordBatch, pa.Table)):
            return self._of_batches(first[0], rows)
        return self._of_rows(itertools.chain(first, rows))

    def _of_batches(self, first: Any, others: Iterator[Any]) -> pa.RecordBatchReader:
        schema = first.schema if self._schema is None else self._schema

        def batches() -> Iterator[pa.RecordBatch]:
            for number, each in enumerate(itertools.chain([first], others), 1):
                if not isinstance(each, (pa.RecordBatch, pa.Table)):
                    raise ArgumentTypeError(f"source: item {number} is {_kind(each)}, but item 1 is a batch of rows")
                if not each.schema.equals(schema):
                    raise InputError(f"source: batch {number} has other columns than the schema says; give all alike")
                yield from each.to_batches() if isinstance(each, pa.Table) else [each]

        return pa.RecordBatchReader.from_batches(schema, batches())

    def _of_rows(self, rows: Iterator[Any]) -> pa.RecordBatchReader:
        begun = list(itertools.islice(rows, FIRST_ROWS))
        self.is_empty = not begun and self._schema is None
        table = self._table(begun, 0, self._schema)
        schema = table.schema

        def batches() -> Iterator[pa.RecordBatch]:
            yield from table.to_batches()
            number = len(begun)
            while some := list(itertools.islice(rows, FIRST_ROWS)):
                yield from self._table(some, number, schema).to_batches()
                number += len(some)

        return pa.RecordBatchReader.from_batches(schema, batches())

    def _table(self, rows: list[Any], first: int, schema: pa.Schema | None) -> pa.Table:
        """Return some rows as a table; `first` is the number of rows before them."""
        columns = {"text": rows}
        if any(isinstance(row, dict) for row in rows) or (schema is not None and schema.names != ["text"]):
            for number, row in enumerate(rows, first + 1):
                if not isinstance(row, dict):
                    raise ArgumentTypeError(f"source: row {number} is {_kind(row)}, but others are dicts")
            names = list(dict.fromkeys(name for row in rows for name in row)) if schema is None else schema.names
            columns = {name: [row.get(name) for row in rows] for name in names}
            if schema is not None:
                _check_names(rows, first, set(names))
        else:
            _check_texts(rows, first)
        if schema is None:
            table = self._as_columns(columns)
            if not isinstance(table, pa.Table):
                name, why = next(iter(table.unreadable.items()))
                raise InputError(f"source: column {name!r} cannot become an Arrow column ({why}); convert it.")
            return table if len(table) else pa.table({"text": pa.nulls(0, pa.string())})
        arrays = [_typed(columns[name], schema.field(name), first) for name in schema.names]
        return pa.Table.from_arrays(arrays, schema=schema)


def _typed(values: list[Any], field: pa.Field, first: int) -> pa.Array:
    """Return the values of a column in the type that the first rows have; `first` is the number of rows before them."""
    try:
        return pa.array(values, field.type, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"source: rows {first + 1:,} to {first + len(values):,} have values in column {field.name!r} that are not "
            f"{field.type}, as in the first rows ({brief(error)}); give the source a `schema`"
        ) from None


def _check_names(rows: list[Any], first: int, names: set[str]) -> None:
    for number, row in enumerate(rows, first + 1):
        if others := [name for name in row if name not in names]:
            raise InputError(
                f"source: row {number:,} has a column {others[0]!r}, and the first {FIRST_ROWS:,} rows have none; give "
                "each row the same keys, or the source a `schema`"
            )


def _check_texts(rows: list[Any], first: int) -> None:
    for number, row in enumerate(rows, first + 1):
        if isinstance(row, os.PathLike):
            raise ArgumentTypeError(f"source: row {number} is a path; pass a list of paths: list(...)")
        if row is not None and not isinstance(row, (str, bytes)):
            raise ArgumentTypeError(f"source: row {number} is {_kind(row)}; give dicts, texts or record batches")


def _kind(value: Any) -> str:
    return f"of type {type(value).__name__}"


def is_arrow_dataset(source: Any) -> bool:
    """Return whether this is a dataset of pyarrow."""
    return is_kind("pyarrow", "Dataset", source)


def is_kind(library: str, name: str, source: Any) -> bool:
    """Return whether a source is of this class of a library, or of one derived from it. No library is imported."""
    names = {(kind.__module__.partition(".")[0], kind.__name__) for kind in type(source).__mro__}
    return (library, name) in names


def row_source(source: Any, as_columns: Callable[[dict[str, Any]], Any]) -> RowSource | None:
    """Return an iterable of rows as a source of batches; None for paths and for what gives no rows.

    Raises
    ------
    InputError
        If it gives rows only in a way that has to be changed first; the message says how.
    """
    kind = type(source).__name__
    if hasattr(source, "__aiter__"):
        raise InputError(f"cannot read documents from {kind}, which is asynchronous: collect its rows in a list first.")
    if hasattr(source, "cursor") and hasattr(source, "commit"):
        raise InputError(f"cannot read documents from {kind}, a connection to a database: pass the rows of a query.")
    if hasattr(source, "read"):
        raise InputError(f"cannot read documents from {kind}, an open file: pass its path, or a list of its rows.")
    if isinstance(source, (set, frozenset)):
        raise InputError(f"cannot read documents from {kind}, which has no order: pass {{'text': sorted(...)}}.")
    if callable(source) and not isinstance(source, Iterable):
        raise InputError(f"cannot read documents from {kind}, which is called: pass what it returns, such as source().")
    if isinstance(source, (str, bytes, os.PathLike, list, tuple, dict)) or not isinstance(source, Iterable):
        return None
    return RowSource(source, as_columns)
