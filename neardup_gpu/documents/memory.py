"""Documents in memory: an Arrow table, whatever gives one, or texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ..arrow_versions import bytes_of
from ..data import Ragged, arrow
from ..errors import ArgumentTypeError, InputError
from ..store.uris import brief
from . import nested
from .ahead import Step
from .batches import ReadRows, numbered
from .charsets import utf8_of
from .columns import is_text, validated, with_readable_names, without_view_dictionary
from .contract import WHOLE, Part, Reader
from .files import File, State, check_relative
from .hugging_face import is_dataset, splits_of, stream_of_dataset, stream_of_iterable
from .kept import Batches, check_parquet, write_parquet
from .ray_data import RayDataset
from .reading import reading
from .row_groups import ROW_GROUP_BYTES
from .row_sources import RowSource, is_arrow_dataset, is_kind, row_source
from .same_rows import SameRows
from .skipped import Problem

CONVERSIONS = ("to_arrow", "to_pyarrow", "toArrow", "collect", "compute", "to_pandas", "toPandas")
"""Methods by which libraries turn lazy or distributed frames into tables, the best first."""


class Memory(Reader):
    """An Arrow table, stream, or anything that gives one through ``__arrow_c_stream__``."""

    def __init__(self, source: Any, part: Part = WHOLE, split: str = "") -> None:
        self.source, self.part, self.split, self.files = source, part, split, []
        self.name = split or "input"
        # A table has a length and gives its rows again; a stream has no length.
        self.rewindable = hasattr(source, "__len__") or isinstance(source, pa.Table)
        if isinstance(source, RowSource):
            self.rewindable = source.rewindable
        self.spent, self._same = False, SameRows(self.name)
        # Not every length is known at once: a DuckDB relation runs a query for it.
        known = isinstance(source, (pa.Table, Partly)) or hasattr(source, "__dataframe__") or is_dataset(source)
        self.num_rows = len(self.source) if known else part.num_rows
        if isinstance(source, RowSource):
            self.num_rows = source.num_rows
        self.stream: pa.RecordBatchReader | None = self._open()
        given = with_readable_names(self.stream.schema, self.name)
        types = [without_view_dictionary(pa.nulls(0, kind)).type for kind in given.types]
        self.schema: pa.Schema = pa.schema(
            [field.with_type(kind) for field, kind in zip(given, types, strict=True)], given.metadata
        )

    def _open(self) -> pa.RecordBatchReader:
        if isinstance(self.source, pa.RecordBatchReader):
            return self.source
        if isinstance(self.source, (pa.Table, RayDataset, RowSource, Partly)):
            return self.source.to_reader()
        if is_dataset(self.source):
            return stream_of_dataset(self.source)
        with reading(self.name, f"{type(self.source).__name__} cannot be read as an Arrow table"):
            try:
                return pa.RecordBatchReader.from_stream(self.source)
            except (ValueError, TypeError) as error:  # pandas raises its own, of two columns of one name
                if not hasattr(self.source, "iloc"):
                    raise error if isinstance(error, pa.ArrowException) else pa.ArrowInvalid(str(error)) from None
        self.source = Partly.of_pandas(self.source)
        return self._open()

    def source_bytes(self) -> int | None:
        """Return the bytes of the source as far as it knows them; None if it does not."""
        return bytes_of(self.source) if isinstance(self.source, pa.Table) else getattr(self.source, "nbytes", None)

    def parts(self, most_bytes: int) -> list[Part]:
        """Never: other processes cannot open what is in memory; `stored.stored` writes it to files first."""
        if self.rewindable:
            raise InputError("input: is in memory, where other processes cannot read it; write it to files first.")
        raise InputError(
            "input: is a stream, which gives its rows only once, so it cannot be divided; write it to files first."
        )

    def states(self) -> list[State | None]:
        return []

    def whole_batches(self, read: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield all columns of all rows; `read` names those that are used, if not all.

        Raises
        ------
        InputError
            If they cannot be read, or are not those of an earlier pass.
        """
        if isinstance(self.source, (pa.Table, StoredTable)) or not self.rewindable:
            return self._all_batches()
        return self._same.watched(self._all_batches(), read)

    def _all_batches(self) -> Iterator[pa.RecordBatch]:
        stream, self.stream = self.stream, None
        if stream is None:
            stream = self._open()
        self.spent = True
        with reading(self.name):
            for batch in stream:
                columns = [without_view_dictionary(column) for column in validated(batch).columns]
                yield pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def steps(self, schema: pa.Schema, max_bytes: int) -> Iterator[Step[ReadRows | Problem]]:
        """One step: only one thread may read a stream."""
        yield Step(partial(self._found, schema.names))

    def _found(self, names: list[str]) -> Iterator[ReadRows | Problem]:
        return numbered((nested.select(batch, names) for batch in self.whole_batches(names)), 0)

    @property
    def unreadable(self) -> dict[str, str]:
        """The columns that cannot be read, and why."""
        return self.source.unreadable if isinstance(self.source, Partly) else {}

    def check_kept(self) -> None:
        """Raise InputError if rows cannot be written with all their columns."""
        if not isinstance(self.source, Partly):
            return
        for name, why in self.source.unreadable.items():
            raise unfit_column(name, why)
        raise InputError(
            f"{self.name}: several columns have one name, so that no rows can be written; rename them, or use ids_only."
        )

    def stored(self) -> Iterator[Batches]:
        for whole in self.whole_batches():
            for batch in bounded(whole, ROW_GROUP_BYTES):
                yield Batches.of(batch, batch.num_rows)

    def write(self, folder: Path, name: str, kept: Iterator[Step[pa.RecordBatch]]) -> None:
        check_parquet(self.schema, self.name)
        write_parquet(folder, name, self.schema, kept)

    def kept_schema(self) -> pa.Schema:
        self.check_kept()
        return self.schema


def bounded(batch: pa.RecordBatch, most_bytes: int) -> Iterator[pa.RecordBatch]:
    """The batch in slices of about `most_bytes` by the mean size of its rows."""
    step = max(1, min(65_536, most_bytes * batch.num_rows // max(1, bytes_of(batch))))
    for start in range(0, batch.num_rows, step):
        yield batch.slice(start, step)


class Partly:
    """A table without the columns that cannot become Arrow columns.

    Parameters
    ----------
    table : pyarrow.Table
    unreadable : dict of str to str
        The other columns, and why they cannot become Arrow columns.
    """

    def __init__(self, table: pa.Table, unreadable: dict[str, str]) -> None:
        self.table, self.unreadable = table, unreadable

    def __len__(self) -> int:
        return len(self.table)

    def to_reader(self) -> pa.RecordBatchReader:
        return self.table.to_reader()

    @classmethod
    def of_pandas(cls, frame: Any) -> Partly:
        """Take a frame of pandas that cannot become a table as a whole."""
        columns, names, unreadable = [], [], {}
        for place, name in enumerate(map(str, frame.columns)):
            try:
                columns.append(pa.chunked_array(pa.array(frame.iloc[:, place], from_pandas=True)))
                names.append(name)
            except _UNFIT as error:
                unreadable[name] = brief(error)
        return cls(pa.table(columns, names), unreadable)


_UNFIT = (pa.ArrowException, TypeError, ValueError, OverflowError)
"""Errors that Arrow raises for values that cannot become a column."""


def unfit_column(name: str, why: str) -> InputError:
    """Make the error for a column of objects that Arrow has no type for."""
    return InputError(f"input: column {name!r} cannot become an Arrow column ({why}); convert it.")


class StoredTable:
    """An Arrow stream in a file, as a table that `Memory` takes."""

    def __init__(self, file: File) -> None:
        self._file = file

    def __len__(self) -> int:
        return sum(len(batch) for batch in pa.RecordBatchReader.from_stream(self))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        stream = pa.ipc.open_stream(self._file.system.open_input_file(self._file.path))
        return stream.__arrow_c_stream__(requested_schema)


def as_tables(source: Any) -> dict[str, Any] | None:
    """Return the tables that `as_table` makes of the splits of a source, by name ("" if none); None for paths."""
    splits = splits_of(source)
    if splits is None:
        table = as_table(source)
        return None if table is None else {"": table}
    for name in splits:
        check_relative(name, f"input: split {name!r}")
    return {name: as_table(split, name) for name, split in splits.items()}


def as_table(source: Any, name: str = "input") -> Any:
    """A frame, dict of columns or list of dicts in a form that `Memory` takes; None for paths.

    Raises
    ------
    InputError
        If it is something else that can be converted; the message says how.
    """
    kind = type(source).__name__
    if isinstance(source, pa.RecordBatch):
        return pa.table(source)
    if isinstance(source, (pa.Table, pa.RecordBatchReader)):
        return source
    if is_kind("datasets", "IterableDataset", source):
        return stream_of_iterable(source, name)
    if is_dataset(source):
        if source.format["type"] == "custom":
            raise InputError(f"{kind}: its transform would be left out; apply it with .map() and pass the result.")
        return source
    if is_kind("ray", "Dataset", source):
        return RayDataset(source)
    if isinstance(source, Ragged):
        return _table_of_rows(source)
    if is_arrow_dataset(source):
        return RowSource(source, _table_of_columns)
    if is_column(source):
        return _table_of_texts(source)
    if hasattr(source, "__arrow_c_stream__"):
        return source
    if hasattr(source, "__arrow_c_array__"):
        with reading("input", f"{kind} cannot be read as an Arrow table"):
            return pa.table(pa.record_batch(source))
    if isinstance(source, dict):
        return _table_of_columns(source)
    if isinstance(source, (list, tuple)) and source and all(isinstance(each, pa.RecordBatch) for each in source):
        return RowSource(source, _table_of_columns)
    if isinstance(source, (list, tuple)) and source and all(isinstance(row, dict) for row in source):
        names = dict.fromkeys(name for row in source for name in row)
        return _table_of_columns({name: [row.get(name) for row in source] for name in names})
    way = next((name for name in CONVERSIONS if callable(getattr(type(source), name, None))), None)
    if way is not None:
        raise InputError(f"cannot read documents from {kind} as it is: pass the result of its .{way}().")
    return row_source(source, _table_of_columns)


def _table_of_rows(rows: Ragged) -> pa.Table:
    """Return a table with the column input_ids of rows of integers."""
    if rows.values.dtype.kind not in "iu":
        raise ArgumentTypeError(f"documents: rows of {rows.values.dtype}; give a Ragged of integers")
    return pa.table({"input_ids": pa.LargeListArray.from_arrays(arrow(rows.offsets), arrow(rows.values))})


def _table_of_texts(texts: Any) -> pa.Table:
    """Return an array or Series of texts as a table of one column. Lone surrogates become U+FFFD.

    Raises
    ------
    ArgumentTypeError
        If it holds anything else.
    """
    column = _array(texts if hasattr(texts, "__arrow_c_stream__") or isinstance(texts, pa.Array) else _strings(texts))
    if not is_text(column.type):
        raise ArgumentTypeError(f"source: {type(texts).__name__} of {column.type} given; it takes texts, or a table.")
    return pa.table({"text": column})


def _strings(texts: Iterable[Any]) -> list[Any]:
    values = list(texts)
    for i, value in enumerate(values):
        if isinstance(value, float) and value != value:  # how pandas and NumPy mark missing values
            values[i] = None
        elif value is not None and not isinstance(value, (str, bytes)):
            raise ArgumentTypeError(f"source: entry {i} is of type {type(value).__name__}, not str.")
    if any(isinstance(value, bytes) for value in values):
        values = [utf8_of(value) if isinstance(value, str) else value for value in values]
    return values


def _table_of_columns(columns: dict[Any, Any]) -> pa.Table | Partly:
    """Return a table of named lists, arrays or Series."""
    arrays, unreadable = {}, {}
    for name, values in columns.items():
        if not isinstance(name, str):
            raise InputError(f"input: a column is named {name!r}; names of columns are strings.")
        if hasattr(type(values), "columns") or is_dataset(values) or isinstance(values, dict):
            raise InputError(
                f"input: {name!r} holds a whole {type(values).__name__}; pass one, such as source[{name!r}]."
            )
        if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
            raise InputError(
                f"input: {name!r} holds one value, not a column; a dict gives columns: {{{name!r}: [...]}}."
            )
        try:
            arrays[name] = _array(values)
        except MemoryError:
            raise
        except _UNFIT as error:
            unreadable[name] = brief(error)
    with reading("input", "cannot become a table"):
        table = pa.table(arrays)
    if unreadable and not arrays:
        raise unfit_column(*next(iter(unreadable.items())))
    return Partly(table, unreadable) if unreadable else table


def _array(values: Any) -> pa.Array | pa.ChunkedArray:
    if hasattr(values, "__arrow_c_stream__"):
        return pa.chunked_array(values)
    try:
        return pa.array(values)
    except (UnicodeEncodeError, pa.ArrowException) as error:
        if not isinstance(values, (list, tuple, np.ndarray)):
            raise
        try:
            texts = _strings(values)  # NaN marks missing texts
        except ArgumentTypeError:
            raise error from None
    return pa.array([utf8_of(value).decode() if isinstance(value, str) else value for value in texts])


def is_column(source: Any) -> bool:
    """Whether it is an array or Series, unless of structs."""
    if isinstance(source, (pa.Array, pa.ChunkedArray)):
        return not pa.types.is_struct(source.type)
    has_type = hasattr(source, "dtype") and not callable(source.dtype)
    return has_type and not hasattr(type(source), "columns") and getattr(source, "shape", None) != ()
