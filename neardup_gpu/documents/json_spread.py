"""JSON whose objects run over several lines, as JSON lines: arrays of objects, and objects one after another.

Every byte of the file is looked at once. Line endings and blanks between objects vanish, a line ending within an object
becomes a blank, and each object ends with a line feed. So an object is a line to whoever reads on: what is wrong with
one, and where it is, is found as in JSON lines.

Commas are not looked at, so one may be missing, or be there twice, and arrays that follow one another are one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from .json_blocks import MARK

_ARRAY = re.compile(rb"\s*\[\s*(?:[{\]]|\Z)")
_SPREAD = re.compile(rb'\s*\{[ \t\r]*\n\s*["}]')
_ALONE = re.compile(rb"[^\n]*\][ \t\r]*\n\s*\{")
"""A line that is an array by itself, before an object: one broken line of JSON lines."""

_BRACKETS = np.zeros(256, np.int8)
_BRACKETS[[ord("["), ord("{")]] = 1
_BRACKETS[[ord("]"), ord("}")]] = -1


_SHORT_RUN = 8
"""Backslashes in a row that are counted for all quotes at once."""


class Lines:
    """The bytes of a file of JSON, as JSON lines.

    Parameters
    ----------
    stream : file object

    Attributes
    ----------
    is_array : bool
        Whether the file is an array, as far as it has been read.
    is_spread : bool
        Whether objects may run over several lines.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._begun = self.is_array = self.is_spread = self._in_string = False
        self._depth = self._backslashes = 0

    def read(self, size: int) -> bytes:
        """Return the next bytes, at most `size`; none at the end.

        Raises
        ------
        OSError
            If the file ends within an object or an array.
        """
        while True:
            data = self._stream.read(size)
            if not self._begun and data:
                self._begin(data)
                data = data.removeprefix(MARK) if self.is_spread else data
            if not self.is_spread:
                return data
            if not data:
                if self._depth > 0:
                    raise OSError(f"the end of the {'array' if self.is_array else 'object'} is missing")
                return b""
            if lines := self._as_lines(data):
                return lines

    def _begin(self, data: bytes) -> None:
        data = data.removeprefix(MARK)
        self._begun = True
        self.is_array = _ARRAY.match(data) is not None and _ALONE.match(data) is None
        self.is_spread = self.is_array or _SPREAD.match(data) is not None

    def _as_lines(self, data: bytes) -> bytes:
        values = np.frombuffer(data, np.uint8)
        quotes = self._quotes(data, values)
        places = np.flatnonzero(_BRACKETS[values])
        outside = (np.searchsorted(quotes, places) + self._in_string) % 2 == 0
        places = places[outside]
        steps = _BRACKETS[values[places]].astype(np.int64)
        depths = self._depth + np.cumsum(steps)
        top = int(self.is_array)  # how deep what is between two objects is
        begins, ends = places[(steps > 0) & (depths == top + 1)], places[(steps < 0) & (depths == top)] + 1
        if self._depth > top:
            begins = np.append(0, begins)
        parts, last = list[bytes](), 0
        for place, begin in enumerate(begins.tolist()):
            end = int(ends[place]) if place < len(ends) else len(data)
            parts += [self._between(data[last:begin]), data[begin:end].replace(b"\n", b" ")]
            if place < len(ends):
                parts.append(b"\n")
            last = end
        parts.append(self._between(data[last:]))
        self._depth = int(depths[-1]) if len(depths) else self._depth
        self._in_string ^= bool(len(quotes) % 2)
        return b"".join(parts)

    def _between(self, data: bytes) -> bytes:
        """Return what is between two objects and should not be, as a line."""
        found = data.translate(None, b" \t\r\n,[]" if self.is_array else b" \t\r\n")
        return found + b"\n" if found else b""

    def _quotes(self, data: bytes, values: np.ndarray) -> np.ndarray:
        """Return the places of all quotes that begin or end a string."""
        quotes = np.flatnonzero(values == ord('"'))
        before, self._backslashes = self._backslashes, len(data) - len(data.rstrip(b"\\"))
        if self._backslashes == len(data):
            self._backslashes += before
        lengths = np.zeros(len(quotes), np.int64)  # of the run of backslashes before each
        going_on = np.arange(len(quotes))
        for length in range(_SHORT_RUN):
            going_on = going_on[quotes[going_on] > length]
            going_on = going_on[values[quotes[going_on] - 1 - length] == ord("\\")]
            lengths[going_on] += 1
        for number in going_on.tolist():
            run = data[int(quotes[number - 1]) + 1 if number else 0 : quotes[number]]
            lengths[number] = len(run) - len(run.rstrip(b"\\"))
        lengths[lengths == quotes] += before
        return quotes[lengths % 2 == 0]


def as_array(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield an array of the objects of pieces of JSON lines."""
    before = b"[\n"
    for piece in lines:
        if body := piece.rstrip(b"\n").replace(b"\n", b",\n"):
            yield before + body
            before = b",\n"
    yield b"\n]\n" if before == b",\n" else b"[]\n"
