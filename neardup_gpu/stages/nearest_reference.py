"""The best partner of each document in a reference set, from verified pairs as they come."""

from __future__ import annotations

import numpy as np

from ..data import Pairs, run_begins
from .verification import Verified


class NearestReference:
    """The row of the reference set with which each row of a range makes its best pair.

    The best pair is the one of the highest resemblance; of equal ones, the one whose reference row comes first.

    Parameters
    ----------
    num_known : int
        Rows below it are in the reference set; they have no partner there themselves.
    first, stop : int
        The range is the rows from `first` on and before `stop`.
    """

    def __init__(self, num_known: int, first: int, stop: int) -> None:
        self._num_known, self._first = num_known, first
        self.row = np.full(stop - first, -1, np.int64)
        """The partner of each row of the range, or -1."""
        self.resemblance = np.full(stop - first, np.nan)
        """The resemblance to the partner, or NaN."""

    def add(self, left: np.ndarray, right: np.ndarray, resemblance: np.ndarray) -> None:
        """Add verified pairs whose right row is in the range: in any order, also repeated."""
        some = np.flatnonzero((left < self._num_known) & (right >= self._num_known))
        if len(some) == 0:
            return
        left, right, resemblance = left[some], right[some] - self._first, resemblance[some]
        best = best_of_each(left, right, resemblance)
        left, right, resemblance = left[best], right[best], resemblance[best]
        held, theirs = self.resemblance[right], self.row[right]
        better = (theirs < 0) | (resemblance > held) | ((resemblance == held) & (left < theirs))
        self.row[right[better]], self.resemblance[right[better]] = left[better], resemblance[better]


def best_of_each(left: np.ndarray, right: np.ndarray, resemblance: np.ndarray) -> np.ndarray:
    """Return the numbers of the best pair of each right row, ascending by that row."""
    order = np.lexsort((left, -resemblance, right))
    return order[run_begins(right[order])]


def nearest_pairs(num_known: int, num_rows: int, *parts: Verified) -> Verified:
    """Return the best pair of each row of the input with a row of the reference set, among some verified pairs."""
    found = NearestReference(num_known, 0, num_rows)
    for verified in parts:
        found.add(verified.pairs.left, verified.pairs.right, verified.resemblance)
    right = np.flatnonzero(found.row >= 0)
    left = found.row[right]
    order = np.argsort(left, kind="stable")
    return Verified(Pairs(left[order], right[order]), found.resemblance[right][order])
