"""Cuts in lines of JSON: only the string of the text changes, and what is left of it keeps its escapes.

The places of columns that an earlier run wrote, `columns.SEAMS` and `columns.MARK_COLUMNS`, move with the text. New
columns become members at the end of their lines.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import re
from collections.abc import Callable
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from .columns import MARK_COLUMNS, SEAMS
from .edits import Cuts
from .json_blocks import Block
from .json_values import parsed, to_line, to_utf8

Moved = Callable[[pa.RecordBatch, Cuts, str], pa.RecordBatch]
"""Returns rows, of a text and columns of places in it, with the places that cuts leave in the column of text."""

_PARTS = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[\[{]|[\]}]|[:,]', re.DOTALL)

_DIGITS = np.zeros(256, np.int64)
_DIGITS[np.frombuffer(b"0123456789abcdefABCDEF", np.uint8)] = [*range(16), *range(10, 16)]


def cut_lines(block: Block, cuts: Cuts | None, column: str, moved: Moved) -> Block:
    """Return the rows of a block without the spans that are cut out of the text of a column."""
    rows = np.empty(0, np.int64) if cuts is None else np.flatnonzero(np.diff(cuts.offsets))
    if len(rows) == 0:
        return block
    assert cuts is not None
    data, edits, places = block.data, list[tuple[int, int, bytes]](), np.zeros((len(rows), 2), np.int64)
    for number, row in enumerate(rows.tolist()):
        start, stop = int(block.starts[row]), int(block.ends[row])
        members = _members(data[start:stop])
        first, last = members.get(column, (0, 0))
        if data[start + first : start + first + 1] == b'"':  # unless the line has changed since
            places[number] = start + first + 1, start + last - 1
            edits += _moved_places(data[start:stop], members, cuts.of(row, row + 1), column, start, moved)
    lengths = np.diff(cuts.offsets)[rows]
    first_places, last_places = np.repeat(places, lengths, 0).T
    spans = _in_strings(data, first_places, last_places, np.stack([cuts.begins, cuts.ends]))
    edits += zip(*spans.tolist(), itertools.repeat(b""))
    return _edited(block, edits)


def with_members(block: Block, columns: dict[str, pa.Array]) -> Block:
    """Return the rows of a block with the values of more columns, which replace members of the same name.

    A null replaces a member, and is left out where there is none.
    """
    edits, labels = list[tuple[int, int, bytes]](), [(name, as_json(name)) for name in columns]
    for row, values in enumerate(zip(*(column.to_pylist() for column in columns.values()), strict=True)):
        start, line, added = int(block.starts[row]), block.row(row), list[bytes]()
        there = _members(line) if b"\\u" in line or any(label in line for _, label in labels) else {}
        for (name, label), value in zip(labels, values, strict=True):
            if name in there:
                begin, end = there[name]
                edits.append((start + begin, start + end, as_json(value)))
            elif value is not None:
                added.append(label + b":" + as_json(value))
        if added:
            before = line[:-1].rstrip()
            end = start + len(before)
            edits.append((end, end, b"," * (not before.endswith(b"{")) + b",".join(added)))
    return _edited(block, edits)


def as_json(value: Any) -> bytes:
    """Return a value as JSON without blanks."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _edited(block: Block, edits: list[tuple[int, int, bytes]]) -> Block:
    """Return the rows of a block with some bytes replaced: each edit is a begin, an end, and what comes between."""
    if not edits:
        return block
    parts, last = [], 0
    for begin, end, value in sorted(edits, key=itemgetter(0)):
        parts += [block.data[last:begin], value]
        last = max(last, end)
    return Block.of(b"".join([*parts, block.data[last:]]), block.line, block.problems)


def _moved_places(
    line: bytes, members: dict[str, tuple[int, int]], cuts: Cuts, column: str, start: int, moved: Moved
) -> list[tuple[int, int, bytes]]:
    """Return where columns of places stand in a line that begins at `start`, with the values that cuts leave."""
    edits = []
    for name in {SEAMS, *MARK_COLUMNS}.intersection(members):
        (first, last), (begin, end) = members[column], members[name]
        with contextlib.suppress(pa.ArrowException, OverflowError):  # another program wrote what no column holds
            values = pa.array([parsed(to_line(line[begin:end]))])
            text = to_utf8(parsed(to_line(line[first:last])))
            batch = moved(pa.RecordBatch.from_pydict({column: [text], name: values}), cuts, column)
            if batch.column(name) != values:
                edits.append((start + begin, start + end, json.dumps(batch.column(name)[0].as_py()).encode()))
    return edits


def _members(line: bytes) -> dict[str, tuple[int, int]]:
    """Return where the value of each member of an object begins and ends, without blanks around it."""
    found: dict[str, tuple[int, int]] = {}
    depth, begin, string, name = 0, 0, b"", None
    for part in _PARTS.finditer(line):
        sign = part[0][:1]
        depth += (sign in b"[{") - (sign in b"]}")
        if sign == b'"' and depth == 1 and name is None:
            string = part[0]
        elif sign == b":" and depth == 1 and name is None:
            name, begin = parsed(to_line(string)), part.end()
        elif name is not None and ((sign == b"," and depth == 1) or depth == 0):
            value = line[begin : part.start()]
            blanks = len(value) - len(value.lstrip())
            found[name] = begin + blanks, begin + len(value.rstrip())
            name = None
    return found


def _in_strings(data: bytes, first: np.ndarray, last: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return where places in texts are, given where the string of each text begins and ends in lines of JSON."""
    begins, ends, sizes = _escapes(np.frombuffer(data, np.uint8))
    longer = np.append(0, np.cumsum(ends - begins - sizes))  # bytes by which the escapes before a place are longer
    of_text = first - longer[np.searchsorted(begins, first)] + places
    return np.minimum(of_text + longer[np.searchsorted(begins - longer[:-1], of_text)], last)


def _escapes(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return where each escape begins and ends, and the bytes of UTF-8 that it stands for.

    Two halves of a character are one escape; half of one is read as U+FFFD.
    """
    slashes = np.flatnonzero(values == ord("\\"))
    number = np.arange(len(slashes))
    begins = np.append(True, np.diff(slashes) > 1)[: len(slashes)]
    first = slashes[(number - np.maximum.accumulate(np.where(begins, number, 0))) % 2 == 0]
    is_code = np.flatnonzero(values[first + 1] == ord("u"))
    code = np.zeros(len(first), np.int64)
    for place in range(2, 6):
        code[is_code] = 16 * code[is_code] + _DIGITS[values[first[is_code] + place]]
    stop, size = first + 2, np.ones(len(first), np.int64)
    stop[is_code] += 4
    size += (code > 0x7F).astype(np.int64) + (code > 0x7FF)
    half = code >> 10
    pair = np.flatnonzero((half[:-1] == 0xD800 >> 10) & (half[1:] == 0xDC00 >> 10) & (first[1:] == stop[:-1]))
    stop[pair], size[pair] = stop[pair + 1], 4
    first, stop, size = (np.delete(each, pair + 1) for each in (first, stop, size))
    return first, stop, size
