"""Exchanges: what tasks hand on to one another, a file for each task, its rows grouped by partition.

    stream      an Arrow IPC stream: the schema, and record batches, each with rows of one partition
    runs        for each record batch: its partition, where it begins, its bytes, rows and checksum; by partition
    schema      the message of the schema again
    partitions  for each partition that has rows: its number, the number of runs up to its last one, and the checksum of
                its runs
    seal        marker, number of partitions, bytes of the schema, number of partitions that have rows, checksum of the
                schema, the partitions and the fields before

A reader of a partition reads the end of each file, then the runs of its partition, and then their byte ranges; each is
compared with its checksum before anything is made of it. Other programs read the file as an Arrow IPC stream, which
ends before the runs: ``pyarrow.ipc.open_stream(path)``. It is a stream because the footer of an IPC file would only
list the same places again, without checksums.

Rows of a partition come back in the order in which they were added.
"""

from __future__ import annotations

import contextlib
import itertools
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from .. import checks
from ..arrow_versions import bytes_of, numpy_dtype
from ..data import arrow, numpy_of, run_begins
from ..errors import DamagedError, ParameterError
from ..records import dataclass
from .checksums import checksum
from .places import NoSuchFileError, Place

_MARKER = b"NEARDUPY"
_SEAL = struct.Struct("<8sQQQQ")
_CHECKSUM = struct.Struct("<Q")
_RUN = np.dtype([("partition", "<i8"), ("start", "<i8"), ("num_bytes", "<i8"), ("num_rows", "<i8"), ("sum", "<u8")])
_PARTITION = np.dtype([("partition", "<i8"), ("end", "<i8"), ("sum", "<u8")])
_END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"
_TAIL_BYTES = 1 << 16  # read at first: all that comes after the stream, usually
_BLOCK_BYTES = 4 << 20  # grouped at once, in a core's cache
_BATCH_BYTES = 16 << 20  # of rows in a record batch, about
_HELD_BYTES = 24 << 20  # of record batches that `read_arrays` holds until it knows how long its arrays are


class DamagedExchangeError(DamagedError):
    """A file of an exchange is missing or not as it was written: the task that wrote `name` has to run again."""

    name: str


@dataclass(frozen=True)
class Exchanged:
    """The output of a task, small enough for messages and records; `dataclasses.asdict` is JSON.

    Parameters
    ----------
    name : str
        The file.
    num_rows : int
        Rows of all partitions.
    num_bytes : int
        Bytes of the file.
    checksum : str
        Checksum of the index, and so of all that is read of the file: 16 hexadecimal digits.
    """

    name: str
    num_rows: int
    num_bytes: int
    checksum: str


@dataclass(frozen=True)
class _Group:
    """Some rows grouped by partition: segment i is rows starts[i] to starts[i + 1], all of partitions[i]."""

    partitions: np.ndarray
    starts: np.ndarray
    columns: list[Any]


class ExchangeWriter:
    """Writes the file of one task; a context manager, in whose block the file has no name yet.

    Parameters
    ----------
    place : Place
    name : str
        Of the file in the place.
    schema : pyarrow.Schema
        Columns of integers, floats or bools, of fixed-size lists of numbers, and of large_string, large_binary or
        large_list of numbers. No value is null.
    num_partitions : int
    most_bytes : int
        Bytes of rows that are held before they are written: the more, the longer are the ranges of a partition. A file
        of one partition holds at most 4 MB.

    Notes
    -----
    Memory: `most_bytes`, and about 50 MB to bring rows into groups and to write them, if the rows of one call are of
    about one size.

    A row takes the bytes of its values in the file and no more; a string, binary value or list takes 8 besides, a bool
    an eighth of a byte. Each time that `most_bytes` are written, each partition that has rows takes 40 bytes of the
    index, and a few hundred bytes for each record batch: at least one, and one for each 16 MB.

    Raises
    ------
    ParameterError
        For a schema with other columns.
    OutputError
        If the file cannot be written, by the methods; nothing has its name then.
    """

    def __init__(self, place: Place, name: str, schema: pa.Schema, num_partitions: int, most_bytes: int) -> None:
        self._place, self._name, self._schema = place, name, schema.remove_metadata()
        self.num_partitions = checks.integer("num_partitions", num_partitions, 1)
        self._most_bytes = checks.integer("most_bytes", most_bytes, 1)
        if self.num_partitions == 1:  # rows need not wait for others of their partition
            self._most_bytes = min(_BLOCK_BYTES, self._most_bytes)
        self._block_bytes = min(_BLOCK_BYTES, self._most_bytes)
        for field in schema:
            _check_type(field)
        self._staged: list[tuple[np.ndarray, list[Any]]] = []
        self._staged_bytes = 0
        self._groups: list[_Group] = []
        self._held_bytes = 0
        self._runs = [np.empty(0, _RUN)]
        self._position = 0
        self._exchanged: Exchanged | None = None

    def __enter__(self) -> ExchangeWriter:
        with contextlib.ExitStack() as stack:
            self._file = stack.enter_context(self._place.write(self._name))
            self._write(self._schema.serialize())
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is None:
            self.close()
        else:
            self._stack.__exit__(kind, error, trace)

    def add(self, partition: np.ndarray, columns: Mapping[str, np.ndarray | pa.Array]) -> None:
        """Add rows, in any order of their partitions.

        Parameters
        ----------
        partition : array of integers, shape (n,)
            The partition of each row, from 0 to ``num_partitions - 1``.
        columns : dict of str to array
            Of each column n values: a NumPy array of shape (n,), for lists of fixed size k of shape (n, k), or an Arrow
            array of the column's type.

        Raises
        ------
        ParameterError
            If a column or a partition is not as described.
        OutputError
            If the file cannot be written.
        """
        partition = np.asarray(partition)
        if partition.ndim != 1 or partition.dtype.kind not in "iu":
            raise ParameterError(
                f"partition: {partition.ndim} dimensions of {partition.dtype}; one of integers is needed"
            )
        n = len(partition)
        checks.numbers_between("partition", partition, 0, self.num_partitions - 1)
        values = self._values(columns, n)
        # Sorting is fastest on small integers.
        partition = partition.astype(np.uint16 if self.num_partitions <= 1 << 16 else np.int64, copy=False)
        step = max(1, -(-self._block_bytes * n // max(1, _num_bytes([partition, *values]))))
        for start in range(0, n, step):
            self._take(partition[start : start + step], [column[start : start + step] for column in values])

    def add_to(self, partition: int, columns: Mapping[str, np.ndarray | pa.Array]) -> None:
        """Like `add`, of rows of one partition: nothing is sorted or copied, so the arrays may not change any more."""
        checks.integer("partition", partition, 0, self.num_partitions - 1)
        n = len(next(iter(columns.values())))
        values = self._values(columns, n)
        self._group()
        step = max(1, -(-self._block_bytes * n // max(1, _num_bytes(values))))
        for start in range(0, n, step):
            some = [column[start : start + step] for column in values]
            self._groups.append(_Group(np.array([partition]), np.array([0, len(some[0])]), some))
            self._held_bytes += _num_bytes(some)
            if self._held_bytes >= self._most_bytes:
                self._flush()

    def _values(self, columns: Mapping[str, np.ndarray | pa.Array], n: int) -> list[Any]:
        if set(columns) != set(self._schema.names):
            raise ParameterError(f"columns: {', '.join(columns)} given; {', '.join(self._schema.names)} are needed")
        return [_column(field, columns[field.name], n) for field in self._schema]

    def close(self) -> Exchanged:
        """Write all rows that are held and the index; the file takes its name. Returns what was handed on."""
        if self._exchanged is None:
            with self._stack:
                self._flush()
                exchanged = self._finish()
            self._exchanged = exchanged
        return self._exchanged

    def _take(self, partition: np.ndarray, columns: list[Any]) -> None:
        """Stage some rows, as copies unless they are grouped at once, and group what is staged when it is a block."""
        self._staged_bytes += _num_bytes([partition, *columns])
        is_block = self._staged_bytes >= self._block_bytes
        if not is_block:
            partition = partition.copy()
            columns = [column.copy() if isinstance(column, np.ndarray) else column for column in columns]
        self._staged.append((partition, columns))
        if is_block:
            self._group()
        if self._held_bytes >= self._most_bytes:
            self._flush()

    def _group(self) -> None:
        """Bring the staged rows together by partition, ties in the order given."""
        if not self._staged:
            return
        partition = _joined([rows for rows, _ in self._staged])
        order = np.argsort(partition, kind="stable")
        partition = partition[order]
        starts = np.append(np.flatnonzero(run_begins(partition)), len(partition))
        indices = arrow(order)
        columns = []
        for number in range(len(self._schema)):
            column = _joined([values[number] for _, values in self._staged])
            is_array = isinstance(column, np.ndarray)
            columns.append(np.take(column, order, axis=0) if is_array else column.take(indices))
        self._groups.append(_Group(partition[starts[:-1]], starts, columns))
        self._held_bytes += self._staged_bytes
        self._staged, self._staged_bytes = [], 0

    def _flush(self) -> None:
        """Write what is held, partition by partition."""
        self._group()
        if not self._groups:
            return
        numbers = [np.full(len(group.partitions), i) for i, group in enumerate(self._groups)]
        fields = np.concatenate([group.partitions for group in self._groups]), np.concatenate(numbers)
        starts = np.concatenate([group.starts[:-1] for group in self._groups])
        stops = np.concatenate([group.starts[1:] for group in self._groups])
        order = np.argsort(fields[0], kind="stable")
        segments = zip(*(field[order].tolist() for field in (*fields, starts, stops)), strict=True)
        runs = []
        for partition, found in itertools.groupby(segments, lambda segment: segment[0]):
            parts, num_bytes = [], 0
            for _, number, start, stop in found:
                parts.append([column[start:stop] for column in self._groups[number].columns])
                num_bytes += _num_bytes(parts[-1])
                if num_bytes >= _BATCH_BYTES:
                    runs.append((partition, *self._write_batch(parts)))
                    parts, num_bytes = [], 0
            if parts:
                runs.append((partition, *self._write_batch(parts)))
        self._runs.append(np.array(runs, _RUN))
        self._groups, self._held_bytes = [], 0

    def _write_batch(self, parts: list[list[Any]]) -> tuple[int, int, int, int]:
        """Write one record batch; returns the fields of its run but the partition."""
        columns = [_joined([part[i] for part in parts]) for i in range(len(self._schema))]
        arrays = [_arrow(field, column) for field, column in zip(self._schema, columns, strict=True)]
        batch = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        message, start = batch.serialize(), self._position
        self._write(message)
        return start, message.size, batch.num_rows, checksum(message)

    def _finish(self) -> Exchanged:
        """Write the end of the stream and the index."""
        runs = np.concatenate(self._runs)
        runs = runs[np.argsort(runs["partition"], kind="stable")]
        bounds = [*np.flatnonzero(run_begins(runs["partition"])).tolist(), len(runs)]
        partitions = np.array(
            [
                (runs["partition"][first], end, checksum(runs[first:end].tobytes()))
                for first, end in itertools.pairwise(bounds)
            ],
            _PARTITION,
        )
        schema = self._schema.serialize()
        fields = _SEAL.pack(_MARKER, self.num_partitions, schema.size, len(partitions), 0)[: -_CHECKSUM.size]
        found = checksum(schema, partitions.tobytes(), fields)
        seal = fields + _CHECKSUM.pack(found)
        for part in (_END_OF_STREAM, runs.tobytes(), schema, partitions.tobytes(), seal):
            self._write(part)
        return Exchanged(self._name, int(runs["num_rows"].sum()), self._position, f"{found:016x}")

    def _write(self, data: Any) -> None:
        self._file.write(data)
        self._position += memoryview(data).nbytes


def read_partition(
    place: Place, names: Sequence[str], partition: int, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Read the rows of one partition that several tasks handed on.

    Parameters
    ----------
    place : Place
    names : list of str
        Files of tasks, in whose order the rows come; within a file they come as they were added.
    partition : int
    columns : list of str, optional
        The columns wanted; all of them unless given.

    Yields
    ------
    pyarrow.RecordBatch
        Of at least one row, and of at most 24 MB unless single rows are larger than that.

    Raises
    ------
    DamagedExchangeError
        If a file is missing or not as it was written, before anything is made of what was changed.
    InputError
        If a file cannot be read.
    ParameterError
        If a file has fewer partitions or no such column.

    Notes
    -----
    Of each file the end is read, which takes 24 bytes for each partition that has rows, and at least 64 KiB where the
    file has them; then 40 bytes for each record batch of this partition, and then these.

    Memory: the end of one file, and the record batches that the caller holds and one more.
    """
    for name in names:
        with _opened(place, name, partition) as file:
            yield from file.batches(columns)


def read_arrays(place: Place, names: Sequence[str], partition: int, schema: pa.Schema) -> dict[str, Any]:
    """Read the rows of one partition into one array for each column, in the order of `read_partition`.

    Parameters
    ----------
    place : Place
    names : list of str
    partition : int
    schema : pyarrow.Schema
        The columns wanted, with their types in the files.

    Returns
    -------
    dict of str to array
        A NumPy array of shape (rows,), for lists of fixed size k of shape (rows, k); for columns of large_string,
        large_binary and large_list an Arrow array. Without rows they are empty.

    Raises
    ------
    DamagedExchangeError, InputError
        As `read_partition` does.
    ParameterError
        If a file has fewer partitions, no such column, or one of another type.

    Notes
    -----
    The index of each file is read once. A file is opened once, or twice where more than 24 MB come before it.

    Memory: the arrays and 24 MB or one record batch; Arrow arrays are held twice while they are joined.
    """
    files: list[tuple[_OpenedExchange, list[pa.RecordBatch] | None]] = []
    held = 0
    for name in names:
        with _opened(place, name, partition) as file:
            file.check(schema)
            held += file.num_bytes
            batches = list(file.batches(schema.names)) if held <= _HELD_BYTES else None
            files.append((replace(file, tail=None), batches))
    length = sum(file.num_rows for file, _ in files)
    found: dict[str, Any] = {}
    parts: dict[str, list[pa.Array]] = {}
    for field in schema:
        _check_type(field)
        if (shape := _shape(field.type)) is None:
            parts[field.name] = []
        else:
            found[field.name] = np.empty((length, *shape), _dtype(field.type))
    at = 0
    for file, batches in files:
        for batch in file.again(schema.names) if batches is None else batches:
            for field, column in zip(schema, batch.columns, strict=True):
                if field.name in parts:
                    parts[field.name].append(column)
                else:
                    found[field.name][at : at + len(column)] = numpy_of(column)
            at += batch.num_rows
    for field in schema:
        if field.name in parts:
            found[field.name] = _joined(parts[field.name] or [pa.nulls(0, field.type)])
    return {name: found[name] for name in schema.names}


def num_rows(place: Place, names: Sequence[str], partition: int) -> int:
    """Rows of one partition that several tasks handed on, as their indexes say; raises what `read_partition` raises."""
    total = 0
    for name in names:
        with _opened(place, name, partition) as file:
            total += file.num_rows
    return total


def sealed(place: Place, name: str) -> tuple[int, str]:
    """Bytes and checksum of a file, as `Exchanged` has them, from its size and its end.

    Raises
    ------
    DamagedExchangeError
        If it is missing, or ends as no exchange does.
    InputError
        If it cannot be read.
    """
    with _file(place, name) as (file, end):
        marker, *_, stored = _SEAL.unpack(_read(place, name, file, max(0, end - _SEAL.size), _SEAL.size))
    if marker != _MARKER:
        raise _damaged(place, name, "was cut short or has changed since it was written")
    return end, f"{stored:016x}"


# ------------------------------------------------------------------------------------------------------------ reading


@dataclass(frozen=True)
class _OpenedExchange:
    """A file, and the runs of one partition as they were written."""

    place: Place
    name: str
    file: pa.NativeFile
    tail: pa.Buffer | None
    tail_start: int
    schema: pa.Schema
    runs: np.ndarray

    @property
    def num_rows(self) -> int:
        return int(self.runs["num_rows"].sum())

    @property
    def num_bytes(self) -> int:
        """The bytes of the record batches of the partition."""
        return int(self.runs["num_bytes"].sum())

    def check(self, schema: pa.Schema) -> None:
        """Refuse columns that the file does not have, or not with these types."""
        for field in schema:
            there = self.schema.field(field.name).type if field.name in self.schema.names else "missing"
            if there != field.type:
                raise ParameterError(
                    f"schema: {field.name} is {there} in {self.name} of {self.place}, not {field.type}"
                )

    def batches(self, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        """The record batches of the partition, each compared with its checksum before."""
        if columns is not None:
            for missing in set(columns) - set(self.schema.names):
                raise ParameterError(f"columns: no {missing} in {self.name} of {self.place}")
        for run in self.runs:
            message = self._message(int(run["start"]), int(run["num_bytes"]))
            if checksum(message) != run["sum"]:
                raise _damaged(self.place, self.name, "has changed since it was written (a checksum differs)")
            batch = pa.ipc.read_record_batch(message, self.schema)
            yield batch if columns is None else batch.select(columns)

    def again(self, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        """The same when the file was closed: another file of this name has other checksums, or the same rows."""
        with _file(self.place, self.name) as (file, _):
            yield from replace(self, file=file).batches(columns)

    def _message(self, start: int, num_bytes: int) -> pa.Buffer:
        """The bytes of a record batch; those near the end of a file were read with its index."""
        if self.tail is not None and start >= self.tail_start:  # a copy, as else it would keep all of the tail
            return pa.py_buffer(self.tail.slice(start - self.tail_start, num_bytes).to_pybytes())
        return _read(self.place, self.name, self.file, start, num_bytes)


@contextlib.contextmanager
def _file(place: Place, name: str) -> Iterator[tuple[pa.NativeFile, int]]:
    """A file that is open, and its size."""
    try:
        file = place.open(name)
    except NoSuchFileError:
        raise _damaged(place, name, "no such file") from None
    with file:
        with place.reading(name):
            end = file.size()
        yield file, end


@contextlib.contextmanager
def _opened(place: Place, name: str, partition: int) -> Iterator[_OpenedExchange]:
    """Open a file, and compare its end and the runs of a partition with their checksums."""
    with _file(place, name) as (file, end):
        tail_start = max(0, end - _TAIL_BYTES)
        tail = _read(place, name, file, tail_start, end - tail_start)
        if end < _SEAL.size:
            raise _damaged(place, name, "was cut short")
        seal = tail.slice(tail.size - _SEAL.size)
        marker, num_partitions, schema_bytes, num_used, stored = _SEAL.unpack(seal)
        start = end - _SEAL.size - num_used * _PARTITION.itemsize - schema_bytes
        if marker != _MARKER or start < 0:
            raise _damaged(place, name, "was cut short or has changed since it was written")

        def read(start: int, num_bytes: int) -> pa.Buffer:
            in_tail = start >= tail_start
            return tail.slice(start - tail_start, num_bytes) if in_tail else _read(place, name, file, start, num_bytes)

        index = read(start, end - _SEAL.size - start)
        if checksum(index, seal.slice(0, _SEAL.size - _CHECKSUM.size)) != stored:
            raise _damaged(place, name, "has changed since it was written (a checksum differs)")
        if not 0 <= partition < num_partitions:
            raise ParameterError(f"partition: {partition} is not one of the {num_partitions} partitions of {name}")
        partitions = np.frombuffer(index, _PARTITION, num_used, schema_bytes)
        at, runs = np.searchsorted(partitions["partition"], partition), np.empty(0, _RUN)
        if at < num_used and partitions["partition"][at] == partition:
            ends = np.append(partitions["end"], 0)  # so that ends[-1] is where the runs of the first one begin
            found = read(start - (ends[-2] - ends[at - 1]) * _RUN.itemsize, (ends[at] - ends[at - 1]) * _RUN.itemsize)
            if checksum(found) != partitions["sum"][at]:
                raise _damaged(place, name, "has changed since it was written (a checksum differs)")
            runs = np.frombuffer(found, _RUN).copy()
        schema = pa.ipc.read_schema(index.slice(0, schema_bytes))
        yield _OpenedExchange(place, name, file, tail, tail_start, schema, runs)


def _read(place: Place, name: str, file: pa.NativeFile, start: int, num_bytes: int) -> pa.Buffer:
    """A byte range of a file."""
    with place.reading(name):
        file.seek(start)
        found = file.read_buffer(num_bytes)
    if found.size < num_bytes:
        raise _damaged(place, name, "was cut short")
    return found


def _damaged(place: Place, name: str, why: str) -> DamagedExchangeError:
    error = DamagedExchangeError(f"{place}: {name}: {why}; run the job again")
    error.name = name
    return error


# ------------------------------------------------------------------------------------------------------------ columns


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind)


def _check_type(field: pa.Field) -> None:
    """Refuse columns of types that exchanges do not hold."""
    kind = field.type
    lists = pa.types.is_fixed_size_list(kind) or pa.types.is_large_list(kind)
    texts = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
    if not (texts or pa.types.is_boolean(kind) or _is_number(kind.value_type if lists else kind)):
        raise ParameterError(
            f"schema: {field.name} is {kind}; a number, bool, fixed-size list or large list of numbers, large_string "
            "or large_binary is needed"
        )


def _shape(kind: pa.DataType) -> tuple[int, ...] | None:
    """The shape of a value in a NumPy array; None for the types that remain in Arrow arrays."""
    if pa.types.is_fixed_size_list(kind):
        return (kind.list_size,)
    return () if pa.types.is_boolean(kind) or _is_number(kind) else None


def _dtype(kind: pa.DataType) -> np.dtype:
    """The dtype of a NumPy array for a type that has one."""
    return numpy_dtype(kind.value_type if pa.types.is_fixed_size_list(kind) else kind)


def _column(field: pa.Field, values: Any, n: int) -> Any:
    """The values of a column as they are held: a NumPy array where its type has one, else an Arrow array."""
    shape = _shape(field.type)
    if isinstance(values, pa.Array):
        if values.type != field.type or values.null_count or len(values) != n:
            raise ParameterError(
                f"{field.name}: {len(values)} values of {values.type}, {values.null_count} of them null; {n} of "
                f"{field.type} and no null are needed"
            )
        return values if shape is None else numpy_of(values)
    if shape is None:
        raise ParameterError(f"{field.name}: {checks.shown(values)}; a pyarrow.Array of {field.type} is needed")
    return checks.array(field.name, values, _dtype(field.type), (n, *shape))


def _arrow(field: pa.Field, column: Any) -> pa.Array:
    """The reverse of `_values`; Arrow arrays are returned as they are."""
    if not isinstance(column, np.ndarray):
        return column
    if column.ndim == 1:
        return arrow(column)
    return pa.FixedSizeListArray.from_arrays(arrow(column.reshape(-1)), type=field.type)


def _joined(parts: list[Any]) -> Any:
    """Arrays of one column, one after another."""
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if isinstance(parts[0], np.ndarray) else pa.concat_arrays(parts)


def _num_bytes(columns: list[Any]) -> int:
    return sum(c.nbytes if isinstance(c, np.ndarray) else bytes_of(c) for c in columns)
