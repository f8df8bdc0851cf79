"""Small pieces of files of tasks: columns saved and loaded whole, ragged rows, partitions of words."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import xxhash

from ..data import Ragged, arrow, numpy_of
from ..store.exchange import ExchangeWriter, read_arrays, read_partition
from ..store.ids import Ids
from ..store.places import Place
from .work import Files

TABLE = pa.schema([("table", pa.large_binary())])

AT_ONCE = 1 << 20
"""Rows that are written at once. A file of many rows takes little more memory than one such part."""

READ_AT_ONCE = 1 << 15
"""Rows that are read at once where a partition may have any number of them."""

SLOT_BITS = 16
"""Bits of the number of a slot. Data that does not fit is divided into 2**16 slots, which are grouped into parts."""


def schema_of(columns: dict[str, Any]) -> pa.Schema:
    """The schema of some arrays: NumPy's of one or two dimensions, or Arrow's."""
    return pa.schema([(name, type_of(column)) for name, column in columns.items()])


def type_of(column: Any) -> pa.DataType:
    """The Arrow type of an array; rows of a matrix are lists of one length."""
    if not isinstance(column, np.ndarray):
        return column.type
    kind = pa.from_numpy_dtype(column.dtype)
    return kind if column.ndim == 1 else pa.list_(kind, column.shape[1])


def save(files: Files, what: str, columns: dict[str, Any]) -> None:
    """Write some columns as a file of one partition."""
    with files.exchange(what, schema_of(columns), 1) as writer:
        writer.add_to(0, columns)


def save_by_ranges(files: Files, what: str, table: np.ndarray) -> None:
    """Write an array whose length is a power of two, by ranges of one length."""
    number = ranges_of(files.shared.partitions)
    width = len(table) // number
    with files.exchange(what, schema_of({what: table}), number) as writer:
        for part in range(number):
            writer.add_to(part, {what: table[part * width : (part + 1) * width]})


def ranges_of(partitions: int) -> int:
    """Return the number of ranges of a table of counters: a power of two.

    The smallest table has several words per range.
    """
    return 1 << min(6, max(0, (partitions - 1).bit_length()))


def load(place: Place, name: str, schema: pa.Schema) -> dict[str, np.ndarray]:
    """Read the columns of a file that `save` wrote, as NumPy arrays."""
    return read_arrays(place, [name], 0, schema)


def rows_of(place: Place, names: list[str], partition: int, columns: Iterable[str]) -> Iterator[list[np.ndarray]]:
    """Some columns of a partition of some files as arrays of their own, at most `READ_AT_ONCE` rows at a time."""
    wanted = list(columns)
    for batch in read_partition(place, names, partition, wanted):
        found = [numpy_of(batch.column(name)) for name in wanted]
        for first in range(0, batch.num_rows, READ_AT_ONCE):
            yield [column[first : first + READ_AT_ONCE].copy() for column in found]
        del batch, found


def parts_that_fit(counts: np.ndarray, most: int) -> np.ndarray:
    """Return the part of each slot. A part counts at most `most`, and one slot at most half of that.

    Slots that count more belong to no part: -1.
    """
    half = max(1, most // 2)
    large = counts > half
    return np.where(large, -1, np.cumsum(np.where(large, 0, counts)) // half)


def load_column(place: Place, names: list[str], partition: int, column: str, kind: pa.DataType) -> pa.Array:
    """Read a column of some files, as one Arrow array of a type."""
    chunks = [batch.column(column) for batch in read_partition(place, names, partition, [column])]
    return pa.concat_arrays([chunk.cast(kind) for chunk in chunks]) if chunks else pa.nulls(0, kind)


def schema_of_text(text: str) -> pa.Schema:
    """Return a schema from its text, which `work.plain` makes."""
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))


def type_of_text(text: str) -> pa.DataType:
    """Return a type from its text, which `work.plain` makes."""
    return schema_of_text(text).field(0).type


def storable(column: pa.Array) -> pa.Array:
    """Return a column of integers, strings or bytes as files of tasks hold it; one without a type has no rows."""
    if pa.types.is_null(column.type):
        return column.cast(pa.int64())
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return column.cast(pa.large_string())
    is_bytes = pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind)
    return column.cast(pa.large_binary()) if is_bytes else column


def words_of(ids: pa.Array) -> np.ndarray:
    """Return words that are equal where ids are: an integer itself, and 128 bits of hash per string or bytes.

    Parameters
    ----------
    ids : pyarrow.Array, length n
        Integers, strings or bytes, none of them null.

    Returns
    -------
    array of uint64, shape (n, 1) or (n, 2)
    """
    if len(ids) == 0:
        return np.empty((0, 1), np.uint64)
    found = Ids.of(ids)
    if found.kind == "integer":
        return found.arrays["ids"].astype(np.uint64)[:, None]
    values, bounds = found.arrays["id_values"].data, found.arrays["id_offsets"].tolist()
    digest = xxhash.xxh3_128_digest
    hashes = b"".join([digest(values[start:stop]) for start, stop in itertools.pairwise(bounds)])
    return np.frombuffer(hashes, np.uint64).reshape(-1, 2)


def add_table(writer: ExchangeWriter, partition: int, table: pa.Table) -> None:
    """Add a table of any columns to a partition of a file of the schema `TABLE`."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    blob = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), 1, [None, arrow(np.array([0, sink.tell()])).buffers()[1], sink.getvalue()]
    )
    writer.add_to(partition, {"table": blob})


def save_tables(files: Files, what: str, tables: Iterable[pa.Table]) -> None:
    """Write tables of any columns as a file of one partition, for `tables_of`."""
    with files.exchange(what, TABLE, 1) as writer:
        for table in tables:
            add_table(writer, 0, table)


def tables_of(place: Place, names: list[str], partition: int) -> list[pa.Table]:
    """The tables that `add_table` added to a partition of some files."""
    found = []
    for batch in read_partition(place, names, partition):
        for blob in batch.column("table"):
            with pa.ipc.open_stream(blob.as_buffer()) as stream:
                found.append(stream.read_all())
    return found


def lists_of(rows: Ragged) -> pa.Array:
    """Rows of values as a column of lists."""
    return pa.LargeListArray.from_arrays(arrow(rows.offsets), arrow(rows.values))


def ragged_of(batch: pa.RecordBatch) -> Ragged:
    """The rows of values of a batch, as arrays of their own: kernels are compiled for arrays that can be written."""
    lists = batch.column("shingles")
    offsets = numpy_of(lists.offsets)
    return Ragged(numpy_of(lists.values)[offsets[0] : offsets[-1]].copy(), offsets - offsets[0])


def partition_of(words: np.ndarray, partitions: int) -> np.ndarray:
    """The partition of each word by its upper bits, which are uniform: int64."""
    upper = words >> np.uint64(32)
    return ((upper * np.uint64(partitions)) >> np.uint64(32)).astype(np.int64)
