"""Cuts in lines of JSON: only the string of the text changes, and what is left of it keeps its escapes.

The places of columns that an earlier run wrote, `columns.SEAMS` and `columns.MARK_COLUMNS`, move with the text.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from .columns import MARK_COLUMNS, SEAMS
from .edits import Cuts
from .json_blocks import Block
from .json_values import ESCAPES, parsed, to_line, to_utf8

Moved = Callable[[pa.RecordBatch, Cuts, str], pa.RecordBatch]
"""Returns rows, of a text and columns of places in it, with the places that cuts leave in the column of text."""

_PARTS = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[\[{]|[\]}]|[:,]', re.DOTALL)


def cut_lines(block: Block, cuts: Cuts | None, column: str, moved: Moved) -> Block:
    """Return the rows of a block without the spans that are cut out of the text of a column."""
    rows = [] if cuts is None else np.flatnonzero(np.diff(cuts.offsets)).tolist()
    if not rows:
        return block
    assert cuts is not None
    parts, last = [], 0
    for row in rows:
        start, stop = int(block.starts[row]), int(block.ends[row])
        parts += [block.data[last:start], _cut_line(block.data[start:stop], cuts.of(row, row + 1), column, moved)]
        last = stop
    return Block.of(b"".join([*parts, block.data[last:]]), block.line, block.problems)


def _cut_line(line: bytes, cuts: Cuts, column: str, moved: Moved) -> bytes:
    """Return a line without spans of a text, which is a member of its object."""
    members = _members(line)
    start, stop = members.get(column, (0, 0))
    if line[start : start + 1] != b'"':  # the line has changed since
        return line
    edited = [(start, stop, _cut_string(line[start:stop], cuts))]
    for name in {SEAMS, *MARK_COLUMNS}.intersection(members):
        begin, end = members[name]
        with contextlib.suppress(pa.ArrowException):  # another program wrote what no column holds
            values = pa.array([parsed(to_line(line[begin:end]))])
            text = to_utf8(parsed(to_line(line[start:stop])))
            batch = moved(pa.RecordBatch.from_pydict({column: [text], name: values}), cuts, column)
            if batch.column(name) != values:
                edited.append((begin, end, json.dumps(batch.column(name)[0].as_py()).encode()))
    for begin, end, value in sorted(edited, reverse=True):
        line = line[:begin] + value + line[end:]
    return line


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


def _cut_string(string: bytes, cuts: Cuts) -> bytes:
    """Return a string of JSON without spans of the text that it stands for."""
    inner = string[1:-1]
    escapes = [(found.start(), found.end(), _size(found[0])) for found in ESCAPES.finditer(inner)]
    first, stop, size = np.array(escapes, np.int64).reshape(-1, 3).T
    longer = np.append(0, np.cumsum(stop - first - size))  # bytes by which the escapes before a place are longer
    places = first - longer[:-1]
    begins, ends = (np.asarray(each) + longer[np.searchsorted(places, each)] for each in (cuts.begins, cuts.ends))
    left, last = [], 0
    for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
        left.append(inner[last:begin])
        last = max(last, end)
    return b'"' + b"".join(left) + inner[last:] + b'"'


def _size(escape: bytes) -> int:
    """Return the bytes of UTF-8 that an escape stands for; half of a character is read as U+FFFD."""
    if escape[1:2] != b"u":
        return 1
    code = int(escape[2:6], 16)
    return 4 if len(escape) > 6 else 1 + (code > 0x7F) + (code > 0x7FF)
