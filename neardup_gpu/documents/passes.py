"""Count, for one pass over the documents, what each reader gave and skipped, and find the place of each document."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeVar

import numpy as np

from ..records import dataclass
from .ahead import Step, closing, in_order
from .contract import Reader, runs
from .skipped import Skipped

SMALL_BYTES = 4 << 20
"""Most bytes of a file that is opened and decoded as one step, so that several are at once."""

TOGETHER_BYTES = 1 << 20
"""Most bytes of several files that are one step together: to begin a step takes about as long as to open a file."""

T = TypeVar("T")


@dataclass
class Pass:
    """One pass over the rows of one reader."""

    reader: Reader
    skipped: Skipped
    num_documents: int = 0

    def read_rows(self) -> np.ndarray:
        """Which of the reader's rows were read, and not skipped: bool, shape (rows,)."""
        return self.skipped.read(self.num_documents)

    def places(self, documents: np.ndarray) -> np.ndarray:
        """Return the places in their file, rows or lines from 1, of some documents by their numbers from 0."""
        rows = documents
        if self.skipped.ranges:
            rows = np.flatnonzero(self.read_rows())[documents]
        return self.reader.places(rows)


def place(passes: list[Pass], document: int) -> str:
    """File and row of a document, in words."""
    return " ".join(map(str, located(passes, document)))


def located(passes: list[Pass], document: int) -> tuple[str, str, int]:
    """Return the file of a document, what a row is called there, and the number of its row, from 1."""
    rest = document
    for each in passes:
        if rest < each.num_documents:
            (row,) = each.places(np.array([rest]))
            return each.reader.name, each.reader.row_word, int(row)
        rest -= each.num_documents
    return "input", "document", document + 1


def over_readers(
    readers: Sequence[Reader],
    steps: Callable[[int], Iterator[Step[T]]],
    num_bytes: Callable[[T], int],
) -> Iterator[tuple[int, T]]:
    """Yield the results of the steps of all readers, in order, each with the number of its reader.

    Several steps are made at once.

    Parameters
    ----------
    readers : sequence of Reader
    steps : callable
        The steps of a reader, by its number. Those of a small file are made as one step, and those of
        several even smaller ones.
    num_bytes : callable
        The size of what a step gives.
    """
    sizes = [sum(state[0] or 0 for state in reader.states() if state is not None) for reader in readers]

    def numbered(number: int, make: Callable[[], Iterable[T]]) -> Iterator[tuple[int, T]]:
        with closing(make()) as items:
            for item in items:
                yield number, item

    def one_by_one(numbers: range) -> Iterator[tuple[int, T]]:
        for number in numbers:
            yield from numbered(number, partial(in_order, steps(number), num_bytes, 1))

    def all_steps() -> Iterator[Step[tuple[int, T]]]:
        for start, stop in runs([size or SMALL_BYTES for size in sizes], TOGETHER_BYTES):
            some = range(start, stop)
            if stop > start + 1 or 0 < sum(sizes[start:stop]) <= SMALL_BYTES:
                yield Step(partial(one_by_one, some), sum(sizes[start:stop]))
                continue
            for number in some:
                with closing(steps(number)) as several:
                    for step in several:
                        yield Step(partial(numbered, number, step.make), step.num_bytes)

    return in_order(all_steps(), lambda found: num_bytes(found[1]))
