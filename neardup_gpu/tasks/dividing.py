"""Rows of a range of ranks in parts of the range that fit in memory, whatever their number.

Where all of them fit, they are one part. If not, they are counted in slots of ranks, and then wait in a temporary file
for their part; a slot that is too large is divided in the same way. So a part is larger than what fits only if all its
rows are of one rank.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..engine.arrays import concat_and_clear
from ..engine.pieces import runs_within
from .columns import SLOT_BITS
from .deciding import mail

Rows = Iterable[Sequence[np.ndarray]]
"""Rows in parts: columns of equal length and of 8 bytes per value. The first column has ranks."""


class RankRange(NamedTuple):
    """The rows of the ranks from `first` on and before `stop`, in any order; they can be taken once."""

    first: int
    stop: int
    rows: Rows


def divided(
    read: Callable[[], Rows], num_rows: int, columns: int, first: int, stop: int, most: int, folder: Path
) -> Iterator[RankRange]:
    """Divide the rows of the ranks from `first` to before `stop` into parts of limited size, ascending by rank.

    Parameters
    ----------
    read : callable
        Gives all rows, the same each time; it is called up to twice for each time that they are divided.
    num_rows : int
        No fewer than there are.
    columns : int
    first, stop : int
    most : int
        Rows of a part, unless all of them are of one rank.
    folder : path
        For the temporary file: 8 bytes for each value and 8 for each row.

    Yields
    ------
    RankRange
        Each rank is in one of them; parts without rows are left out, or not.
    """
    if num_rows <= most or stop - first <= 1:
        yield RankRange(first, stop, read())
        return
    width = -(-(stop - first) >> SLOT_BITS) or 1
    counts = np.zeros(-(-(stop - first) // width), np.int64)
    for rows in read():
        counts += np.bincount((rows[0] - first) // width, minlength=len(counts))
    # Parts are runs of slots that count at most `most`, or one slot that counts more.
    begins = [first for first, _ in runs_within(np.append(0, np.cumsum(counts)), most)]
    numbers = np.repeat(np.arange(len(begins)), np.diff(np.append(begins, len(counts))))
    totals = np.add.reduceat(counts, begins)
    bounds = np.minimum(first + width * np.append(begins, len(counts)), stop).tolist()
    again = (totals > most) & (np.diff(bounds) > 1)
    with mail(len(begins), 1, max(1, most // 4), folder, columns + 1) as waiting:
        for rows in read():
            number = numbers[(rows[0] - first) // width]
            now = ~again[number]
            waiting.send(number[now], *(column[now].view(np.int64) for column in rows))
        for part, total in enumerate(totals.tolist()):
            low, high = bounds[part : part + 2]
            if again[part]:
                yield from divided(_rows_between(read, low, high), total, columns, low, high, most, folder)
            else:
                yield RankRange(low, high, (found[1:] for found in waiting.take(part)))


def _rows_between(read: Callable[[], Rows], first: int, stop: int) -> Callable[[], Rows]:
    """Return a reader of the rows from rank `first` on and before `stop`."""

    def some() -> Rows:
        for rows in read():
            mine = (rows[0] >= first) & (rows[0] < stop)
            yield [column[mine] for column in rows]

    return some


def join_rows(rows: Rows, dtypes: Sequence[type[np.generic]]) -> list[np.ndarray]:
    """Join all rows into one array per column, of 8 bytes per value."""
    columns: list[list[np.ndarray]] = [[] for _ in dtypes]
    for some in rows:
        for arrays, dtype, array in zip(columns, dtypes, some, strict=True):
            arrays.append(array.view(dtype).copy())
    return [concat_and_clear(arrays, dtype=dtype) for arrays, dtype in zip(columns, dtypes, strict=True)]
