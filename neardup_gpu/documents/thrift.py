"""Read structs of Thrift in its compact protocol ("Thrift compact protocol encoding" of apache/thrift).

Footers of Parquet files and headers of their pages are such structs (parquet.thrift of apache/parquet-format).

Raises
------
IndexError, KeyError, ValueError
    By all functions, for bytes that are not a struct: they end too soon, or a type or a number is not one of Thrift.
"""

from __future__ import annotations

from typing import Any

INTEGERS = (4, 5, 6)  # types of values: of 16, 32 and 64 bits
BINARY, LIST, STRUCT = 8, 9, 12
_SIZES = {1: 1, 2: 1, 3: 1, 7: 8}
"""Bytes of the others: true and false, a byte, a double."""

_MOST_DEPTH = 16
_MOST_SHIFT = 63


def read_struct(data: bytes, place: int, depth: int = 0) -> tuple[dict[int, Any], int]:
    """Return the fields of the struct at a place, by their numbers, and where the struct ends.

    A value is an integer, a truth, bytes, a list, or the fields of a struct.
    """
    if depth > _MOST_DEPTH:
        raise ValueError("structs within structs, too deep")
    fields: dict[int, Any] = {}
    number = 0
    while data[place]:
        number, kind, place = read_field(data, place, number)
        if kind in (1, 2):
            fields[number] = kind == 1
        else:
            fields[number], place = _value(data, place, kind, depth)
    return fields, place + 1


def _value(data: bytes, place: int, kind: int, depth: int = 0) -> tuple[Any, int]:
    """Return the value of a type, as `read_struct` has it, and where it ends; a truth is a byte, as in a list."""
    if kind in INTEGERS:
        return signed(data, place)
    if kind == STRUCT:
        return read_struct(data, place, depth + 1)
    if kind == LIST:
        length, inner, place = read_list(data, place)
        values = []
        for _ in range(length):
            value, place = _value(data, place, inner, depth)
            values.append(value)
        return values, place
    size, place = unsigned(data, place) if kind == BINARY else (_SIZES[kind], place)
    if place + size > len(data):
        raise IndexError("a value beyond the end")
    return data[place : place + size], place + size


def place_of(data: bytes, wanted: int, place: int = 0) -> int:
    """Return where the value of a field begins, in the struct at a place."""
    number = 0
    while True:
        number, kind, place = read_field(data, place, number)
        if number == wanted:
            return place
        place = end_of(data, place, kind)


def read_field(data: bytes, place: int, before: int) -> tuple[int, int, int]:
    """Return the number of the field at a place, which follows another one, its type, and where its value begins."""
    head = data[place]
    if head >= 16:
        return before + (head >> 4), head & 15, place + 1
    number, start = signed(data, place + 1)
    return number, head, start


def end_of(data: bytes, place: int, kind: int) -> int:
    """Return where the value of a field ends that begins at a place."""
    return place if kind in (1, 2) else _value(data, place, kind)[1]


def read_list(data: bytes, place: int) -> tuple[int, int, int]:
    """Return the length of the list at a place, the type of its values, and where the first one begins."""
    length, kind = divmod(data[place], 16)
    place += 1
    if length == 15:
        length, place = unsigned(data, place)
    return length, kind, place


def unsigned(data: bytes, place: int) -> tuple[int, int]:
    """Return the number at a place, with 7 bits in each byte, the lowest first, and where it ends."""
    value = shift = 0
    while data[place] >= 128:
        value |= (data[place] & 127) << shift
        place, shift = place + 1, shift + 7
        if shift > _MOST_SHIFT:
            raise ValueError("a number of more than 64 bits")
    return value | data[place] << shift, place + 1


def signed(data: bytes, place: int) -> tuple[int, int]:
    """Return the number at a place, of numbers that are counted 0, -1, 1, -2 and so on, and where it ends."""
    value, place = unsigned(data, place)
    return value >> 1 ^ -(value & 1), place


def varint(number: int) -> bytes:
    """Return an unsigned number as `unsigned` reads it."""
    parts = bytearray()
    while number >= 128:
        parts.append(number & 127 | 128)
        number >>= 7
    parts.append(number)
    return bytes(parts)


def written(number: int) -> bytes:
    """Return a number as `signed` reads it."""
    return varint(number << 1 if number >= 0 else (-number << 1) - 1)


def list_header(length: int, kind: int) -> bytes:
    """Return what begins a list."""
    return bytes([length << 4 | kind]) if length < 15 else bytes([0xF0 | kind]) + varint(length)
