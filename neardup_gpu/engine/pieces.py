"""Pieces of work: runs of documents, of rows and of pairs, which are halved where memory runs out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from ..records import dataclass
from ..report import shorten, size
from .memory import ROW_BYTES


@dataclass(frozen=True, eq=False)
class Span:
    """Rows `first` to `last` of something; each row has a weight in bytes.

    Parameters
    ----------
    ends : array of int64, shape (rows + 1,)
        Bytes before each row.
    first, last : int
        A run of rows; the last one excluded.
    kind : str
        What the rows are, in the plural.
    ids : pyarrow.Array, optional
        For messages: of documents, their ids; their text then is `ends` less `ROW_BYTES` a row.
    """

    ends: np.ndarray
    first: int
    last: int
    kind: str = "rows"
    ids: Any = None

    @classmethod
    def of_documents(cls, offsets: np.ndarray, ids: Any) -> Span:
        """All documents of a batch, whose texts begin at `offsets`."""
        return cls(offsets - offsets[0] + ROW_BYTES * np.arange(len(offsets)), 0, len(offsets) - 1, "documents", ids)

    @classmethod
    def of_sizes(cls, sizes: np.ndarray) -> Span:
        """All rows of something, by their sizes, int64."""
        return cls(np.concatenate([[0], np.cumsum(sizes)]), 0, len(sizes))

    @classmethod
    def divided(cls, sizes: np.ndarray, most: int, kind: str) -> list[Span]:
        """All rows of something, by their sizes, in the parts that `spans` describes."""
        ends = cls.of_sizes(sizes).ends
        return [cls(ends, *bounds, kind) for bounds in spans(sizes, most)]

    @property
    def num_bytes(self) -> int:
        return int(self.ends[self.last] - self.ends[self.first])

    @property
    def rows(self) -> slice:
        return slice(self.first, self.last)

    def split(self) -> list[Span]:
        """Two halves of about the same number of bytes; none of a single row."""
        if self.last - self.first <= 1:
            return []
        middle = int(np.searchsorted(self.ends, (self.ends[self.first] + self.ends[self.last]) // 2))
        middle = min(max(middle, self.first + 1), self.last - 1)
        return [Span(self.ends, *bounds, self.kind, self.ids) for bounds in ((self.first, middle), (middle, self.last))]

    def describe(self) -> str:
        if self.ids is None:
            return ""
        text = self.num_bytes - ROW_BYTES * (self.last - self.first)
        return f"document {shorten(repr(self.ids[self.first].as_py()), 60)}: {size(text)} of text"


@dataclass(frozen=True, eq=False)
class OfBatch:
    """Some documents of a batch; see `contract.Piece`."""

    batch: Any
    span: Span
    kind: ClassVar[str] = "documents"

    @property
    def num_bytes(self) -> int:
        return self.span.num_bytes

    def split(self) -> list[Self]:
        return [replace(self, span=span) for span in self.span.split()]

    def describe(self) -> str:
        return self.span.describe()


def spans(weights: np.ndarray, most: int) -> list[tuple[int, int]]:
    """Runs of rows of about `most` bytes, in order: (first row, last row + 1) of each.

    A run ends where the sum of all weights so far passes a multiple of `most`.
    """
    marks = np.cumsum(weights) // max(1, most)
    if len(marks) == 0:
        return []
    breaks = np.flatnonzero(marks[1:] != marks[:-1]) + 1
    return list(zip([0, *breaks.tolist()], [*breaks.tolist(), len(marks)], strict=True))


def runs_within(bounds: np.ndarray, most: int) -> Iterator[tuple[int, int]]:
    """Yield runs of rows that hold at most `most` together, or one row that holds more: first row and last row + 1.

    `bounds` has what the rows before each row hold, and at the end what all rows hold.
    """
    first = 0
    while first < len(bounds) - 1:
        last = max(first + 1, int(np.searchsorted(bounds, bounds[first] + most, side="right")) - 1)
        yield first, last
        first = last


@dataclass(frozen=True, eq=False)
class Numbers:
    """Some numbers, of pairs or of tasks: an array or a range; `kind` says what they number, in the plural."""

    numbers: Any
    kind: str = "numbers"

    @property
    def num_bytes(self) -> int:
        return 16 * len(self.numbers)

    def split(self) -> list[Numbers]:
        """Two halves; none of a single number."""
        half = len(self.numbers) // 2
        return [Numbers(self.numbers[:half], self.kind), Numbers(self.numbers[half:], self.kind)] if half else []

    def describe(self) -> str:
        return ""
