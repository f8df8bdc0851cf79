"""Columns that an index keeps of its documents, such as dates: named when it is made, typed by what is added first.

A segment holds them in one array of bytes, `columns`: a file of Arrow with a row for each document, in their order. So
they are mapped, compared with checksums, merged and removed with the segment.

A type holds all values of its kind, so that documents of several files agree: int64, float64, large strings, bools,
dates of 32 bits; of timestamps it is the type of the first. A column in which nothing but nulls has come has the type
null until something comes; so what a segment holds is cast to the type that the index has by now.
"""

from __future__ import annotations

import contextlib
import datetime
import io
import math
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .. import checks
from ..data import arrow, numpy_of, one_array
from ..documents.columns import is_string
from ..errors import DamagedError, InputError, ParameterError

if TYPE_CHECKING:
    from ..documents import Documents
    from ..store.arrays import Filling
    from .manifest import Manifest
    from .segments import Segment
    from .snapshot import Snapshot

NAME = "columns"
"""The array of a segment that holds them."""

BATCH = 1 << 16
"""Rows of each batch of a file but the last: so a row is found without a look at the others."""

Types = dict[str, pa.DataType]

ID_TYPES = {"integer": pa.int64(), "string": pa.large_string(), "binary": pa.large_binary()}
"""The type in which ids are stored."""

# -------------------------------------------------------------------------------------------------------------- types


def type_named(name: str) -> pa.DataType:
    """The Arrow type that is written so, as manifests write it."""
    zoned = re.fullmatch(r"timestamp\[(s|ms|us|ns), tz=(.+)\]", name)
    if zoned is not None:
        return pa.timestamp(*zoned.groups())
    fixed = re.fullmatch(r"fixed_size_binary\[(\d+)\]", name)
    return pa.binary(int(fixed[1])) if fixed is not None else pa.type_for_alias(name)


def id_type_of(ids: list[pa.Array], known: str | None) -> pa.DataType:
    """The type in which ids have been given by now: one for several types, as documents of several files have it."""
    kinds = {each.type for each in ids} | (set() if known is None else {type_named(known)})
    if len(kinds) == 1:
        return kinds.pop()
    if all(map(pa.types.is_integer, kinds)):
        return pa.uint64() if all(map(pa.types.is_unsigned_integer, kinds)) else pa.int64()
    return pa.large_string() if all(map(is_string, kinds)) else pa.large_binary()


def as_given(ids: pa.Array, kind: pa.DataType) -> pa.Array:
    """Stored ids in the type in which they were given."""
    try:
        return ids.cast(kind)
    except pa.ArrowInvalid:  # strings of more than 2 GB, or bytes of other lengths than those of some
        return ids


def checked_names(columns: Any) -> dict[str, str]:
    """The columns of a new index, of no type yet."""
    names = checks.columns("columns", columns, none=True)
    for name in names:
        if not name or names.count(name) > 1:
            raise ParameterError(f"columns: {name!r} is {'no name' if not name else 'named twice'}; name each once")
    return dict.fromkeys(names, "null")


def kept_of(names: Any, kept: Types, parameter: str) -> Types:
    """Some of the columns that an index keeps.

    Raises
    ------
    ParameterError
        If it does not keep one of the columns.
    """
    found = {}
    for name in names:
        if name not in kept:
            which = f"it keeps {', '.join(kept)}" if kept else "it keeps none; name its columns when you make it"
            raise ParameterError(f"{parameter}: the index keeps no column {name!r}; {which}")
        found[name] = kept[name]
    return found


def types_of(documents: Documents, types: Types) -> Types:
    """The types that columns have once these documents have been added.

    Raises
    ------
    InputError
        If a column is missing, or is not of the kind that the index keeps.
    """
    found = {}
    for name, kept in types.items():
        advice = f"The index keeps {name!r} of each document: add it, or make an index without it"
        documents._columns.check_values(name, advice=advice)
        given = documents._columns.type_of(name)
        found[name] = _united(name, kept, kept_as(name, given))
    return found


def kept_as(name: str, given: pa.DataType) -> pa.DataType:
    """Return the type in which an index keeps a column; raises InputError if it keeps none of that type."""
    types = pa.types
    if types.is_integer(given):
        return pa.int64()
    if types.is_floating(given):
        return pa.float64()
    if is_string(given):
        return pa.large_string()
    if types.is_date(given):
        return pa.date32()
    if types.is_timestamp(given) or types.is_boolean(given) or types.is_null(given):
        return given
    raise InputError(
        f"column {name!r} holds {given}; an index keeps integers, floats, strings, bools, dates and timestamps"
    )


def _united(name: str, kept: pa.DataType, given: pa.DataType) -> pa.DataType:
    if pa.types.is_null(kept):
        return given
    numbers = all(pa.types.is_integer(each) or pa.types.is_floating(each) for each in (kept, given))
    times = all(map(pa.types.is_timestamp, (kept, given))) and (kept.tz is None) == (given.tz is None)
    if kept == given or numbers or times or pa.types.is_null(given):
        return kept
    raise InputError(f"column {name!r} holds {given}, but {kept} in the index; convert it")


# ------------------------------------------------------------------------------------------------ written and read


def as_bytes(parts: list[dict[str, pa.Array]], types: Types) -> dict[str, np.ndarray]:
    """The array of a segment, by its name: nothing where no columns are kept.

    Raises
    ------
    InputError
        If a value does not fit the type of its column.
    """
    if not types:
        return {}
    schema, sink = pa.schema(list(types.items())), pa.BufferOutputStream()
    tables = [pa.table({name: cast_column(name, part[name], kind) for name, kind in types.items()}) for part in parts]
    _write(tables, schema, sink)
    return {NAME: np.frombuffer(sink.getvalue(), np.uint8)}


def _write(tables: Iterable[pa.Table], schema: pa.Schema, sink: Any) -> None:
    """Write tables as one, a batch at a time."""
    waiting = schema.empty_table()
    with pa.ipc.new_file(sink, schema) as file:
        for table in tables:
            waiting = pa.concat_tables([waiting, table.cast(schema)])
            whole = len(waiting) - len(waiting) % BATCH
            file.write_table(_copied(waiting.slice(0, whole)), BATCH)
            waiting = waiting.slice(whole)
        file.write_table(_copied(waiting), BATCH)


def _copied(table: pa.Table) -> pa.Table:
    """Return a table with buffers of its own: Arrow writes all of a buffer, also the values of rows outside a slice."""
    return table.take(arrow(np.arange(len(table)))).combine_chunks()


def cast_column(name: str, column: Any, kind: pa.DataType) -> Any:
    """Return an array or a chunked array in the type in which the index keeps a column.

    Raises
    ------
    InputError
        If a value does not fit it.
    """
    try:
        column = column.cast(kind)
        column.validate(full=True)
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        why = (str(error).splitlines() or ["it is not valid"])[0].rstrip(".")
        raise InputError(f"column {name!r} holds what the index cannot keep as {kind} ({why}); convert it") from None
    return column


class _SegmentColumns:
    """The columns of a segment. Each batch is checked before it is used."""

    def __init__(self, segment: Segment) -> None:
        with _reading():
            self._file = pa.ipc.open_file(pa.py_buffer(segment[NAME]))
            self.schema, self.num_batches = self._file.schema, self._file.num_record_batches
        if self.num_batches != max(1, -(-segment.num_documents // BATCH)):
            raise _damaged()
        self._num_rows = segment.num_documents

    def batch(self, number: int) -> pa.RecordBatch:
        """Return the rows from `BATCH` times a number on."""
        with _reading():
            found = self._file.get_batch(number)
            found.validate(full=True)
        if found.num_rows != min(BATCH, self._num_rows - number * BATCH):
            raise _damaged()
        return found

    def column(self, name: str, kind: pa.DataType) -> pa.ChunkedArray:
        """Return all of a column, in the type that it has by now."""
        with _reading():
            return pa.chunked_array([self.batch(i).column(name).cast(kind) for i in range(self.num_batches)], kind)


@contextlib.contextmanager
def _reading() -> Iterator[None]:
    """Turn what Arrow raises for columns that are not as they were written into a DamagedError."""
    try:
        yield
    except (KeyError, OSError, UnicodeDecodeError, pa.ArrowException):
        raise _damaged() from None


def _damaged() -> DamagedError:
    return DamagedError("the index is damaged: its columns are not valid; make the index again from its documents")


def of_live(snapshot: Snapshot, name: str, kind: pa.DataType) -> pa.ChunkedArray:
    """A column of all live documents, in order of sequence."""
    chunks: list[pa.Array] = []
    for segment in snapshot.segments:
        chunks += _SegmentColumns(segment).column(name, kind).filter(arrow(segment.live_documents != 0)).chunks
    return pa.chunked_array(chunks, kind)


def with_columns(found: pa.Table, manifest: Manifest, snapshot: Snapshot, names: list[str]) -> pa.Table:
    """A table of live documents, which are named in `id`, with some of the columns that are kept of them.

    Where the id is null, they are null.

    Raises
    ------
    ParameterError
        If a column is not kept, or the table has one of its name.
    """
    types = kept_of(names, manifest.column_types, "columns")
    for name in types:
        if name in found.column_names:
            raise ParameterError(f"columns: the answer has a column {name!r} of its own; leave this one out")
    if not types:
        return found
    kind, ids = manifest.id_kind or "integer", one_array(found["id"])
    named = np.flatnonzero(numpy_of(ids.is_valid()))
    order, number, place = snapshot.with_ids(ids.drop_null().cast(ID_TYPES[kind]), kind)
    columns = of_documents(snapshot, number, place, types)
    rows = np.full(len(found), -1, np.int64)
    rows[named[order]] = np.arange(len(order))
    columns = columns.take(arrow(rows, rows < 0))
    for name in types:
        found = found.append_column(name, columns[name])
    return found


def of_documents(snapshot: Snapshot, number: np.ndarray, place: np.ndarray, types: Types) -> pa.Table:
    """Columns of some documents, each given by the number of its segment and its place there."""
    schema = pa.schema(list(types.items()))
    parts, order = [schema.empty_table()], [np.empty(0, np.int64)]
    for at in np.unique(number).tolist():
        file = _SegmentColumns(snapshot.segments[at])
        some = np.flatnonzero(number == at)
        for batch in np.unique(place[some] // BATCH).tolist():
            mine = some[place[some] // BATCH == batch]
            with _reading():
                rows = file.batch(batch).select(list(types)).take(arrow(place[mine] - batch * BATCH))
                parts.append(pa.Table.from_batches([rows]).cast(schema))
            order.append(mine)
    back = np.argsort(np.concatenate(order))
    return pa.concat_tables(parts).combine_chunks().take(arrow(back))


def with_value(snapshot: Snapshot, name: str, kind: pa.DataType, parameter: str, value: Any) -> np.ndarray:
    """Return numbers of the live documents whose column has a value, or is less if the parameter is "before".

    Null and NaN have no value, and are not less than any.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If the value is not of the column's kind.
    """
    given = _given(name, kind, parameter, value)
    found, compare = [np.empty(0, np.int64)], pc.less if parameter == "before" else pc.equal
    for segment in snapshot.segments if given is not None else []:
        fits = pc.fill_null(compare(_SegmentColumns(segment).column(name, kind), given), False)
        found.append(segment.document_numbers[numpy_of(fits) & (segment.live_documents != 0)])
    return np.concatenate(found)


def merged_columns(segments: list[Segment], stay: list[np.ndarray]) -> dict[str, tuple[type, tuple[int]]]:
    """The dtype and the shape of the array that `merge_columns` fills, by its name: nothing where none are kept."""
    if NAME not in segments[0].arrays:
        return {}
    sink = pa.MockOutputStream()
    _write_merged(segments, stay, sink)
    return {NAME: (np.uint8, (sink.size(),))}


def merge_columns(segments: list[Segment], stay: list[np.ndarray], filling: Filling) -> None:
    """Write the columns of the documents that stay, from several segments, into the array of the merged one."""
    if NAME in filling.arrays:
        _write_merged(segments, stay, pa.PythonFile(_ColumnWriter(filling), "w"))


class _ColumnWriter(io.RawIOBase):
    """The file that Arrow writes into the array of columns."""

    def __init__(self, filling: Filling) -> None:
        self._filling, self._size = filling, 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._size

    def write(self, data: Any) -> int:
        values = np.frombuffer(data, np.uint8)
        self._filling.put(NAME, values, self._size)
        self._size += len(values)
        return len(values)


def _write_merged(segments: list[Segment], stay: list[np.ndarray], sink: Any) -> None:
    files = [_SegmentColumns(segment) for segment in segments]
    with _reading():
        schema = pa.unify_schemas([file.schema for file in files])  # null becomes the type of others
    _write((rows for file, some in zip(files, stay, strict=True) for rows in _some_rows(file, some)), schema, sink)


def _some_rows(file: _SegmentColumns, rows: np.ndarray) -> Iterator[pa.Table]:
    """Rows of a file, which ascend, a batch at a time."""
    for batch in range(file.num_batches):
        start, stop = np.searchsorted(rows, (batch * BATCH, (batch + 1) * BATCH))
        some = file.batch(batch).take(arrow(rows[start:stop] - batch * BATCH))
        yield pa.Table.from_batches([some])


# ---------------------------------------------------------------------------------------------------------- compared


def _given(name: str, kind: pa.DataType, parameter: str, before: Any) -> pa.Scalar | None:
    """Return the value that a column is compared with, from a value or from typed text; None if no document fits."""
    types = pa.types
    if types.is_boolean(kind) and parameter == "before":
        raise ParameterError(f"column {name!r} holds bools, which have no order")
    if types.is_null(kind):
        return None
    if isinstance(before, np.datetime64):
        before = before.astype("datetime64[us]").item()
    try:
        if types.is_boolean(kind):
            wanted = "true or false"
            found = pa.scalar({"true": True, "false": False}[str(before).lower()])
        elif types.is_large_string(kind):
            wanted = "a string"
            found = _text(before)
        elif types.is_date(kind):
            wanted = "a date such as 2026-01-31"
            found = _date(before)
        elif types.is_timestamp(kind):
            wanted = "a time such as 2026-01-31 or 2026-01-31T12:30" + ("" if kind.tz else ", without a time zone")
            found = _time(before, kind.tz)
        else:
            wanted = "a number"
            whole = types.is_integer(kind)
            found = _number(before, whole)
            if whole and parameter != "before" and not _number(before, False).as_py().is_integer():
                return None
    except (KeyError, ValueError, TypeError, OverflowError, pa.ArrowException):
        given = f"{parameter}: {checks.shown(before)}"
        raise ParameterError(f"{given}; column {name!r} holds {kind}, give {wanted}") from None
    return found


def _text(before: Any) -> pa.Scalar:
    if not isinstance(before, str):
        raise TypeError
    return pa.scalar(before, pa.large_string())


def _number(before: Any, whole: bool) -> pa.Scalar:
    """Round up: a whole number is less than a number if it is less than the next whole one."""
    if isinstance(before, str):
        try:
            before = int(before)
        except ValueError:
            before = float(before)
    if isinstance(before, bool | np.bool_) or not isinstance(before, int | float | np.integer | np.floating):
        raise TypeError
    if not math.isfinite(before):
        raise ValueError
    return pa.scalar(math.ceil(before), pa.int64()) if whole else pa.scalar(float(before), pa.float64())


def _date(before: Any) -> pa.Scalar:
    found = _moment(before)
    if found != datetime.datetime(found.year, found.month, found.day):
        raise ValueError
    return pa.scalar(found.date(), pa.date32())


def _time(before: Any, zone: str | None) -> pa.Scalar:
    """A time without a zone is one of the column's zone."""
    moment = _moment(before)
    if moment.tzinfo is not None:
        if zone is None:
            raise ValueError
        return pa.scalar(moment, pa.timestamp("us", zone))
    found = pa.scalar(moment, pa.timestamp("us"))
    return found if zone is None else pc.assume_timezone(found, zone, ambiguous="earliest", nonexistent="earliest")


def _moment(before: Any) -> datetime.datetime:
    """Return the time that a text, a time or a date names."""
    if isinstance(before, str):
        return datetime.datetime.fromisoformat(before)
    if not isinstance(before, datetime.date):
        raise TypeError
    return before if isinstance(before, datetime.datetime) else datetime.datetime(before.year, before.month, before.day)
