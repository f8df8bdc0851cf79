"""Parquet files whose row groups are encoded by several threads at once.

Arrow's writer encodes one row group after another, and one column after another. Here each row group is encoded as a
file of its own, in memory; its pages are then put behind those of the row groups before it, and a footer is written
that names all of them: theirs, with the places of their pages moved by as much as the pages were. The bytes are those
that one writer of Arrow would have written.

Footers are structs of Thrift in its compact protocol (parquet.thrift of apache/parquet-format, and "Thrift compact
protocol encoding" of apache/thrift). Of a footer, the number of rows and the row groups change; of a row group, its
ordinal and the places that `_places` lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..arrow_versions import bytes_of
from ..errors import OutputError
from ..store.disk import start_writing
from .ahead import Step, closing, in_order

ROW_GROUP_BYTES = 16 << 20  # of kept rows, before compression, written as one row group
PAGE_BYTES = 256 << 10
"""Size of a page before compression. Zstandard compresses pages of at most 256 KiB with smaller tables: short texts are
encoded in 36.5 instead of 44.3 ms for 16 MiB, and take 0.3% more space. For longer texts it makes no difference."""

MAGIC = b"PAR1"
_TAIL = 8  # bytes of the length of the footer and of the magic behind it

_NUM_ROWS = 3  # of FileMetaData; the row groups follow
_COLUMNS, _FILE_OFFSET, _ORDINAL = 1, 5, 7  # of RowGroup
_CHUNK_OFFSET, _META_DATA, _OFFSET_INDEX, _COLUMN_INDEX = 2, 3, 4, 6  # of ColumnChunk
_DATA_PAGE, _INDEX_PAGE, _DICTIONARY_PAGE, _BLOOM_FILTER = 9, 10, 11, 14  # of ColumnMetaData
_MOST_ORDINAL = 2**15 - 1

_INTEGERS = (4, 5, 6)  # types of values: of 16, 32 and 64 bits
_BINARY, _LIST, _STRUCT = 8, 9, 12
_SIZES = {1: 0, 2: 0, 3: 1, 7: 8}
"""Bytes of the others: true and false, a byte, a double."""


def encoded_in_order(schema: pa.Schema, tables: Iterable[pa.Table], threads: int | None = None) -> Iterator[memoryview]:
    """Each table as a Parquet file of its own, in order, to be added to a `RowGroupWriter`.

    Memory: for each thread a table, as much again to encode it, and an encoded one that waits to be written.
    """

    def step(table: pa.Table) -> Step[memoryview]:
        return Step(partial(encoded, schema, table), 2 * bytes_of(table))

    def steps() -> Iterator[Step[memoryview]]:
        with closing(tables):
            yield from map(step, tables)  # a loop would hold each table while the next one is made

    return in_order(steps(), len, threads, 3 * ROW_GROUP_BYTES)


def encoded(schema: pa.Schema, table: pa.Table | None) -> list[memoryview]:
    """Return a table as a Parquet file of its own, alone in a list; None stands for a table without row groups."""
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink, schema, compression="zstd", data_page_size=PAGE_BYTES, write_page_checksum=True
    ) as writer:
        if table is not None:
            writer.write_table(table)
    return [memoryview(sink.getvalue())]


class RowGroupWriter:
    """A Parquet file that encoded row groups are added to.

    Parameters
    ----------
    file : file object
        Open for writing, empty.
    schema : pyarrow.Schema
    """

    def __init__(self, file: Any, schema: pa.Schema) -> None:
        self._file = file
        self._footer = _divided(encoded(schema, None)[0])[1]  # of no row groups
        self._to_num_rows = _place_of(self._footer, _NUM_ROWS)
        self._groups: list[bytes] = []
        self._num_rows = self._num_groups = 0
        self._size = len(MAGIC)
        file.write(MAGIC)

    def add(self, encoded: memoryview) -> None:
        """Add the row groups of a file of `encoded_in_order`.

        Raises
        ------
        OutputError
            If its columns are not those of the file.
        """
        pages, footer = _divided(encoded)
        place = self._to_num_rows
        if footer[:place] != self._footer[:place]:
            name = getattr(self._file, "name", "the output")
            raise OutputError(f"{name}: rows with other columns than those before; write them to another file")
        num_rows, place = _signed(footer, place)
        number, _, place = _list(footer, place + 1)  # behind the byte that says: the next field is a list
        edits = _places(self._size - len(MAGIC))
        for ordinal in range(self._num_groups, self._num_groups + number):
            edits[_ORDINAL] = lambda _, ordinal=ordinal: min(ordinal, _MOST_ORDINAL)
            place = _edit(footer, place, edits, self._groups)
        self._file.write(pages)
        start_writing(self._file, self._size, len(pages))
        self._size += len(pages)
        self._num_rows += num_rows
        self._num_groups += number

    def finish(self) -> None:
        """Write the footer."""
        _, place = _signed(self._footer, self._to_num_rows)
        _, kind, rest = _list(self._footer, place + 1)
        before = self._footer[: self._to_num_rows] + _written(self._num_rows) + self._footer[place : place + 1]
        groups = [_list_header(self._num_groups, kind), *self._groups]
        footer = b"".join([before, *groups, self._footer[rest:]])
        self._file.write(footer)
        self._file.write(len(footer).to_bytes(4, "little") + MAGIC)


def _divided(encoded: memoryview) -> tuple[memoryview, bytes]:
    """The pages of a file, and its footer."""
    end = len(encoded) - _TAIL
    start = end - int.from_bytes(encoded[end : end + 4], "little")
    return encoded[len(MAGIC) : start], bytes(encoded[start:end])


# ------------------------------------------------------------------------------------------------- compact protocol


def _places(by: int) -> dict[int, Any]:
    """The edits of a row group whose pages are moved; a place of 0 is none."""

    def moved(place: int) -> int:
        return place + by if place else 0

    pages = dict.fromkeys((_DATA_PAGE, _INDEX_PAGE, _DICTIONARY_PAGE, _BLOOM_FILTER), moved)
    chunk = {**dict.fromkeys((_CHUNK_OFFSET, _OFFSET_INDEX, _COLUMN_INDEX), moved), _META_DATA: pages}
    return {_COLUMNS: [chunk], _FILE_OFFSET: moved}


def _edit(data: bytes, place: int, edits: dict[int, Any], out: list[bytes]) -> int:
    """Add the struct at a place to `out`, some of its fields edited, and give where it ends.

    An edit is a function of an integer, or edits of a struct, or a list of the edits of all structs of a list.
    """
    number, copied = 0, place
    while data[place]:
        number, kind, place = _field(data, place, number)
        edit = edits.get(number)
        if edit is None:
            place = _end(data, place, kind)
            continue
        if isinstance(edit, dict):
            out.append(data[copied:place])
            place = _edit(data, place, edit, out)
        elif isinstance(edit, list):
            length, _, start = _list(data, place)
            out.append(data[copied:start])
            place = start
            for _ in range(length):
                place = _edit(data, place, edit[0], out)
        else:
            out.append(data[copied:place])
            value, place = _signed(data, place)
            out.append(_written(edit(value)))
        copied = place
    out.append(data[copied : place + 1])
    return place + 1


def _place_of(data: bytes, wanted: int) -> int:
    """Where the value of a field begins, of the struct at the beginning."""
    number = place = 0
    while True:
        number, kind, place = _field(data, place, number)
        if number == wanted:
            return place
        place = _end(data, place, kind)


def _field(data: bytes, place: int, before: int) -> tuple[int, int, int]:
    """The number of the field at a place, which follows another one, its type, and where its value begins."""
    head = data[place]
    if head >= 16:
        return before + (head >> 4), head & 15, place + 1
    number, start = _signed(data, place + 1)
    return number, head, start


def _end(data: bytes, place: int, kind: int) -> int:
    """Where the value at a place ends."""
    if kind in _INTEGERS:
        while data[place] >= 128:
            place += 1
        return place + 1
    if kind == _BINARY:
        size, place = _unsigned(data, place)
        return place + size
    if kind == _STRUCT:
        number = 0
        while data[place]:
            number, inner, place = _field(data, place, number)
            place = _end(data, place, inner)
        return place + 1
    if kind == _LIST:
        length, inner, place = _list(data, place)
        if inner in _SIZES:
            return place + length * max(
                1, _SIZES[inner]
            )  # a truth is part of the head of a field, but a byte in a list
        for _ in range(length):
            place = _end(data, place, inner)
        return place
    return place + _SIZES[kind]


def _list(data: bytes, place: int) -> tuple[int, int, int]:
    """The length of the list at a place, the type of its values, and where the first one begins."""
    length, kind = divmod(data[place], 16)
    place += 1
    if length == 15:
        length, place = _unsigned(data, place)
    return length, kind, place


def _list_header(length: int, kind: int) -> bytes:
    return bytes([length << 4 | kind]) if length < 15 else bytes([0xF0 | kind]) + _varint(length)


def _unsigned(data: bytes, place: int) -> tuple[int, int]:
    """The number at a place, 7 bits a byte from the lowest on, and where it ends."""
    value = shift = 0
    while data[place] >= 128:
        value |= (data[place] & 127) << shift
        place, shift = place + 1, shift + 7
    return value | data[place] << shift, place + 1


def _signed(data: bytes, place: int) -> tuple[int, int]:
    """Like `_unsigned`, of numbers that are counted 0, -1, 1, -2 and so on."""
    value, place = _unsigned(data, place)
    return value >> 1 ^ -(value & 1), place


def _written(number: int) -> bytes:
    return _varint(number << 1 if number >= 0 else (-number << 1) - 1)


def _varint(number: int) -> bytes:
    parts = bytearray()
    while number >= 128:
        parts.append(number & 127 | 128)
        number >>= 7
    parts.append(number)
    return bytes(parts)
