"""Blocks of whole lines of a JSON-lines file: where each row begins and ends, and which line it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from typing import Any, Self

import numpy as np

from neardup_gpu.kernels._cached import cached_property

from ..records import dataclass
from .ahead import check_stopped

MARK = b"\xef\xbb\xbf"
"""The byte order mark of UTF-8."""

SEARCH_BYTES = 64 << 10  # read at once to find the end of a line


@dataclass(frozen=True, eq=False)
class RowBlock:
    """Whole rows of a file of lines, as their bytes."""

    data: bytes
    starts: np.ndarray  # of each row
    nexts: np.ndarray  # with the line ending

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return len(self.starts)

    @property
    def num_bytes(self) -> int:
        """Memory that parsing takes."""
        return 2 * len(self.data)

    def raw(self, keep: np.ndarray) -> list[bytes]:
        """Return the bytes of some rows, by a mask or by their numbers."""
        return [b"".join(self.data[start:stop] for start, stop in joined_runs(self.starts[keep], self.nexts[keep]))]

    def select(self, keep: np.ndarray) -> Self:
        """Return the rows at which `keep` is true; they follow one another."""
        starts, nexts, (data,) = self.starts[keep], self.nexts[keep], self.raw(keep)
        moved = np.cumsum(nexts - starts) - nexts
        return replace(self, data=data, starts=starts + moved, nexts=nexts + moved, **self._others(keep, moved))

    def _others(self, keep: np.ndarray, moved: np.ndarray) -> dict[str, np.ndarray]:
        """Return the other arrays of some rows, whose bytes have moved."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Block(RowBlock):
    """Whole lines of a JSON-lines file; a row is a line that is not blank."""

    ends: np.ndarray  # without trailing blanks and line ending
    lines: np.ndarray  # line number, from 1
    line: int  # the first one
    next_line: int
    problems: dict[int, str] = field(default_factory=dict)  # of lines that are not in the data, by number

    @classmethod
    def of(cls, data: bytes, line: int, problems: dict[int, str]) -> Block:
        values = np.frombuffer(data, np.uint8)
        nexts = np.flatnonzero(values == 10) + 1
        if not data.endswith(b"\n"):
            nexts = np.append(nexts, len(data))
        starts = np.concatenate([[0], nexts[:-1]]).astype(np.int64)
        for i in np.flatnonzero(values[starts] == MARK[0]):  # files with marks that were joined
            starts[i] += 3 * data.startswith(MARK, starts[i])
        ends = nexts.copy()
        # The line ending is stripped from all lines at once, what blanks remain line by line: few lines have any.
        blank = np.zeros(256, bool)
        blank[[9, 10, 13, 32]] = True
        for _ in range(2):
            ends -= (ends > starts) & blank[values[ends - 1]]
        for i in np.flatnonzero((ends > starts) & blank[values[ends - 1]]):
            ends[i] = starts[i] + len(data[starts[i] : ends[i]].rstrip(b" \t\r\n"))
        full = ends > starts
        lines = line + np.flatnonzero(full)
        return cls(data, starts[full], nexts[full], ends[full], lines, line, line + len(nexts), problems)

    @cached_property
    def lengths(self) -> np.ndarray:
        """Bytes of each row, without line feed."""
        values = np.frombuffer(self.data, np.uint8)
        return self.nexts - self.starts - (values[self.nexts - 1] == 10)

    @cached_property
    def longest(self) -> int:
        """Bytes of the longest row."""
        return int(self.lengths.max(initial=0))

    @cached_property
    def _spans(self) -> list[tuple[int, int]]:
        return list(zip(self.starts.tolist(), self.ends.tolist(), strict=True))

    def row(self, number: int) -> bytes:
        """Return a row, without line ending."""
        start, end = self._spans[number]
        return self.data[start:end]

    @property
    def is_plain(self) -> bool:
        """Whether each line begins and ends as an object does, so that no object runs over two lines."""
        values = np.frombuffer(self.data, np.uint8)
        return bool(np.all(values[self.starts] == ord("{")) and np.all(values[self.ends - 1] == ord("}")))

    def _others(self, keep: np.ndarray, moved: np.ndarray) -> dict[str, np.ndarray]:
        return {"ends": self.ends[keep] + moved, "lines": self.lines[keep]}

    def in_pieces(self, most_bytes: int) -> Iterator[bytes]:
        """Yield the lines of a block that `select` made, each with its line feed, in pieces of about `most_bytes`."""
        last = np.flatnonzero(np.diff(self.nexts // most_bytes, append=-1))
        for start, stop in zip([0, *(last[:-1] + 1).tolist()], last.tolist(), strict=True):
            lines = self.data[self.starts[start] : self.nexts[stop]]
            yield lines if lines.endswith(b"\n") else lines + b"\n"

    def divided(self, num_rows: int) -> Iterator[Block]:
        """Yield the rows in blocks of at most `num_rows`."""
        for start in range(0, self.num_rows, num_rows):
            rows = slice(start, start + num_rows)
            first, last = int(self.starts[rows][0]), int(self.nexts[rows][-1])
            places = (self.starts[rows] - first, self.nexts[rows] - first, self.ends[rows] - first)
            lines = self.lines[rows]
            yield Block(self.data[first:last], *places, lines, int(lines[0]), int(lines[-1]) + 1, self.problems)

    def moved(self, by: int) -> Block:
        """Return the block with `by` added to its line numbers."""
        problems = {line + by: problem for line, problem in self.problems.items()}
        return replace(
            self, lines=self.lines + by, line=self.line + by, next_line=self.next_line + by, problems=problems
        )


def joined_runs(starts: np.ndarray, stops: np.ndarray) -> Iterator[tuple[int, int]]:
    """Ranges in order, neighbours that meet joined."""
    if len(starts) == 0:
        return
    breaks = np.flatnonzero(starts[1:] != stops[:-1])
    firsts, lasts = np.concatenate([[0], breaks + 1]), np.append(breaks, len(stops) - 1)
    yield from zip(starts[firsts].tolist(), stops[lasts].tolist(), strict=True)


class LineRange:
    """The lines of a file after the first line feed from byte `start` on, up to the first one from `stop` on.

    Ranges that meet share no line and leave none out. A range from 0 begins with the file, and `stop` None is its end.
    """

    def __init__(self, file: Any, start: int, stop: int | None) -> None:
        self.file, self.start = file, _line_start(file, start)
        self.num_bytes = (file.size() if stop is None else _line_start(file, stop)) - self.start
        file.seek(self.start)

    def tell(self) -> int:
        """Bytes of the range that have been read."""
        return self.file.tell() - self.start

    def read(self, size: int) -> bytes:
        """The next bytes, at most `size`; none at the end."""
        return self.file.read(min(size, self.num_bytes - self.tell()))


def _line_start(file: Any, place: int) -> int:
    """Return the beginning of the line after the first line feed from a place on; at place 0, of the first line."""
    if place == 0:
        return 0
    file.seek(place)
    while chunk := file.read(SEARCH_BYTES):
        check_stopped()
        found = chunk.find(b"\n")
        if found >= 0:
            return file.tell() - len(chunk) + found + 1
    return file.size()
