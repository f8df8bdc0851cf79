"""Parquet files whose row groups are encoded by several threads at once.

Arrow's writer encodes one row group after another, and one column after another. Here each row group is encoded as a
file of its own, in memory; its pages are then put behind those of the row groups before it, and a footer is written
that names all of them: theirs, with the places of their pages moved by as much as the pages were. The bytes are those
that one writer of Arrow would have written.

Footers are structs of Thrift in its compact protocol (parquet.thrift of apache/parquet-format; "Thrift compact protocol
encoding" of apache/thrift). Of a footer, the number of rows and the row groups change; of a row group, what is named
in `_PLACES` and its ordinal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from .ahead import Step, closing, in_order

MAGIC = b"PAR1"
_TAIL = 8  # bytes of the length of the footer and of the magic behind it

_NUM_ROWS, _ROW_GROUPS = 3, 4  # fields of FileMetaData
_COLUMNS, _FILE_OFFSET, _ORDINAL = 1, 5, 7  # of RowGroup
_META_DATA = 3  # of ColumnChunk
_CHUNK_OFFSET, _OFFSET_INDEX, _COLUMN_INDEX = 2, 4, 6
_DATA_PAGE, _INDEX_PAGE, _DICTIONARY_PAGE, _BLOOM_FILTER = 9, 10, 11, 14  # of ColumnMetaData

_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_MOST_ORDINAL = 2**15 - 1


def encoded_in_order(schema: pa.Schema, tables: Iterable[pa.Table], threads: int | None = None) -> Iterator[memoryview]:
    """Each table as a Parquet file of its own, in order, to be added to a `RowGroupWriter`.

    Memory: two tables for each thread, and what `in_order` holds.
    """

    def steps() -> Iterator[Step[memoryview]]:
        with closing(tables):
            for table in tables:
                yield Step(partial(_encoded, schema, table), 2 * table.nbytes)

    return in_order(steps(), len, threads)


def _encoded(schema: pa.Schema, table: pa.Table | None) -> list[memoryview]:
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, schema, compression="zstd", write_page_checksum=True) as writer:
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
        self._file, self._schema = file, schema
        self._groups: list[bytes] = []
        self._num_rows = 0
        self._size = len(MAGIC)
        file.write(MAGIC)

    def add(self, encoded: memoryview) -> None:
        """Add the row groups of a file of `encoded_in_order`."""
        pages, footer = _divided(encoded)
        fields, _ = _fields(footer, 0)
        self._num_rows += _integer(footer, fields[_NUM_ROWS][1])
        self._groups += self._moved_groups(footer, fields[_ROW_GROUPS][1], self._size - len(MAGIC))
        self._file.write(pages)
        self._size += len(pages)

    def _moved_groups(self, footer: bytes, place: int, by: int) -> Iterator[bytes]:
        number, kind, place = _list(footer, place)
        first = len(self._groups)
        for ordinal in range(first, first + number):
            stop = _end(footer, place, kind)
            yield _edited(footer, place, {**_places(by), _ORDINAL: lambda _, ordinal=ordinal: ordinal})
            place = stop

    def finish(self) -> None:
        """Write the footer."""
        _, footer = _divided(_encoded(self._schema, None)[0])
        groups = _list_header(len(self._groups), _STRUCT) + b"".join(self._groups)
        parts = _with_fields(footer, {_NUM_ROWS: _written(self._num_rows), _ROW_GROUPS: groups})
        self._file.write(parts)
        self._file.write(len(parts).to_bytes(4, "little") + MAGIC)


def _divided(encoded: memoryview) -> tuple[memoryview, bytes]:
    """The pages of a file, and its footer."""
    end = len(encoded) - _TAIL
    start = end - int.from_bytes(encoded[end : end + 4], "little")
    return encoded[len(MAGIC) : start], bytes(encoded[start:end])


# ------------------------------------------------------------------------------------------------- compact protocol

_Edit: TypeAlias = "Callable[[int], int] | dict[int, _Edit] | list[dict[int, _Edit]]"
"""A change to an integer, to fields of a struct, or to fields of all structs of a list."""


def _places(by: int) -> dict[int, Any]:
    """The edits of a row group whose pages are moved; a place of 0 is none."""

    def moved(place: int) -> int:
        return place + by if place else 0

    pages = dict.fromkeys((_DATA_PAGE, _INDEX_PAGE, _DICTIONARY_PAGE, _BLOOM_FILTER), moved)
    chunk = {**dict.fromkeys((_CHUNK_OFFSET, _OFFSET_INDEX, _COLUMN_INDEX), moved), _META_DATA: pages}
    return {_COLUMNS: [chunk], _FILE_OFFSET: moved}


def _edited(data: bytes, place: int, edits: dict[int, Any]) -> bytes:
    """The struct at a place, with edits of some fields."""
    fields, _ = _fields(data, place)
    changed = {}
    for number, edit in edits.items():
        if number not in fields:
            continue
        _, start, _ = fields[number]
        if isinstance(edit, dict):
            changed[number] = _edited(data, start, edit)
        elif isinstance(edit, list):
            length, kind, start = _list(data, start)
            parts = [_list_header(length, kind)]
            for _ in range(length):
                parts.append(_edited(data, start, edit[0]))
                start = _end(data, start, kind)
            changed[number] = b"".join(parts)
        else:
            changed[number] = _written(edit(_integer(data, start)))
    return _with_fields(data, changed, place)


def _with_fields(data: bytes, changed: dict[int, bytes], place: int = 0) -> bytes:
    """The struct at a place, with other values of some fields."""
    parts, last = [], 0
    for number, (kind, start, stop) in _fields(data, place)[0].items():
        step = number - last
        parts.append(bytes([step << 4 | kind]) if 0 < step < 16 else bytes([kind]) + _written(number))
        parts.append(changed.get(number, data[start:stop]))
        last = number
    return b"".join(parts) + b"\0"


def _fields(data: bytes, place: int) -> tuple[dict[int, tuple[int, int, int]], int]:
    """The fields of the struct at a place by their numbers, each with its type and where it begins and ends; and where
    the struct ends."""
    found, number = {}, 0
    while data[place]:
        step, kind = divmod(data[place], 16)
        place += 1
        if step:
            number += step
        else:
            number = _integer(data, place)
            place = _end(data, place, _I16)
        stop = _end(data, place, kind)
        found[number] = kind, place, stop
        place = stop
    return found, place + 1


def _end(data: bytes, place: int, kind: int) -> int:
    """Where the value at a place ends; a truth in a list takes a byte, which is for `_list` to know."""
    if kind in (_TRUE, _FALSE):
        return place
    if kind == _BYTE:
        return place + 1
    if kind in (_I16, _I32, _I64):
        while data[place] >= 128:
            place += 1
        return place + 1
    if kind == _DOUBLE:
        return place + 8
    if kind == _BINARY:
        size, place = _unsigned(data, place)
        return place + size
    if kind in (_LIST, _SET):
        number, inner, place = _list(data, place)
        if inner in (_TRUE, _FALSE, _BYTE):
            return place + number
        for _ in range(number):
            place = _end(data, place, inner)
        return place
    if kind == _STRUCT:
        return _fields(data, place)[1]
    raise ValueError(f"type {kind} in a footer")


def _list(data: bytes, place: int) -> tuple[int, int, int]:
    """The length of the list at a place, the type of its values, and where the first one begins."""
    number, kind = divmod(data[place], 16)
    place += 1
    if number == 15:
        number, place = _unsigned(data, place)
    return number, kind, place


def _list_header(number: int, kind: int) -> bytes:
    return bytes([number << 4 | kind]) if number < 15 else bytes([0xF0 | kind]) + _varint(number)


def _unsigned(data: bytes, place: int) -> tuple[int, int]:
    """The number at a place, 7 bits a byte from the lowest on, and where it ends."""
    value = shift = 0
    while data[place] >= 128:
        value |= (data[place] & 127) << shift
        place, shift = place + 1, shift + 7
    return value | data[place] << shift, place + 1


def _integer(data: bytes, place: int) -> int:
    """The signed number at a place: 0, -1, 1, -2 and so on are counted from 0."""
    value, _ = _unsigned(data, place)
    return value >> 1 ^ -(value & 1)


def _written(number: int) -> bytes:
    return _varint(number << 1 if number >= 0 else (-number << 1) - 1)


def _varint(number: int) -> bytes:
    parts = bytearray()
    while number >= 128:
        parts.append(number & 127 | 128)
        number >>= 7
    parts.append(number)
    return bytes(parts)
