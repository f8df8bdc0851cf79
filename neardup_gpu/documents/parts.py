"""Parts of a reader's rows, which other processes can read by themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ..records import dataclass


@dataclass(frozen=True)
class Part:
    """A run of a reader's rows.

    Parameters
    ----------
    start, stop : int
        Where it begins and ends, in the units of the reader: row groups, record batches, bytes, files. `stop` is None
        for the end, however far that is.
    num_rows : int or None
        Number of rows; None where that is unknown before they are read.
    num_bytes : int
        About the bytes of their text.
    first_place : int or None
        Places of the file before the part: rows, or lines of JSON lines; None where nobody has counted them.
    """

    start: int
    stop: int | None
    num_rows: int | None
    num_bytes: int
    first_place: int | None


WHOLE = Part(0, None, None, 0, 0)
"""All rows of a reader."""


def even_runs(sizes: Sequence[int], most: int) -> Iterator[tuple[int, int]]:
    """Yield where runs of consecutive sizes begin and end that add up to about the same, and to about `most` at most.

    A size belongs to the run in which its middle lies. There is one run of nothing if there are no sizes.
    """
    total = sum(sizes)
    number = max(1, -(-total // most))
    start = stop = before = 0
    run = 0
    for size in sizes:
        own = min(number - 1, (2 * before + size) * number // (2 * total)) if total else 0
        if own != run and stop > start:
            yield start, stop
            start = stop
        run, stop, before = own, stop + 1, before + size
    yield start, stop


def runs(sizes: Iterable[int], most: int) -> Iterator[tuple[int, int]]:
    """Return where runs of consecutive sizes begin and end. No run adds up to more than `most` unless it is one size.

    There is one run of nothing if there are no sizes.
    """
    start = stop = total = 0
    for size in sizes:
        if stop > start and total + size > most:
            yield start, stop
            start, total = stop, 0
        stop, total = stop + 1, total + size
    yield start, stop
