"""Rows of a ragged array: where they begin, runs of them for threads, the longest of some, and rows of bytes copied."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ._cpu import Parallel, jit
from ._launch import array_module
from ._vectors import copy_bytes


def sums_before(values):
    """Return the sum of the values before each place of an array, and of all: int64, shape (n + 1,).

    Sums of sizes are where rows begin, sums of true values are how many there are.
    """
    xp = array_module(values)
    sums = xp.zeros(len(values) + 1, np.int64)
    sums[1:] = xp.cumsum(values)
    return sums


def of_rows(rows, dtype):
    """Return rows that are given one by one as one array, and where they begin: int64, shape (rows + 1,)."""
    return np.array([value for row in rows for value in row], dtype), np.cumsum([0, *map(len, rows)], dtype=np.int64)


class RowFunction(Parallel):
    """A function of a range of rows, called with the bounds of runs of rows, which threads take; see `shares`."""

    def __call__(self, bounds: Any, *arguments: Any) -> None:
        super().__call__(len(bounds) - 1, bounds.tolist(), *arguments)

    def entry(self, arguments: tuple[Any, ...]) -> Callable:
        """Return the code for the types of the arguments, as a function of runs, whose bounds are the first of them."""
        run = super().entry(arguments[1:])
        return lambda begin, end, bounds, *others: run(bounds[begin], bounds[end], *others)


def by_rows(*signatures: str, is_wide: bool = False) -> Callable[[Callable], RowFunction]:
    """Return a decorator that makes a `RowFunction`."""
    return lambda function: RowFunction(function, signatures, is_wide, least=1)


def counted_and_written(find, number, *arguments):
    """Return three arrays of int64 of what a parallel function finds for a number of items, one item after another.

    It is called twice: with room for nothing it writes how many it finds for each item, and then it writes what they
    are, those of an item before the end that is in place of their number.
    """
    ends, found = np.zeros(number, np.int64), (np.empty(0, np.int64),) * 3
    find(number, *arguments, ends, found)
    np.cumsum(ends, out=ends)
    if number and ends[-1]:
        found = tuple(np.empty(ends[-1], np.int64) for _ in range(3))
        find(number, *arguments, ends, found)
    return found


@jit()
def longest_row(offsets, first, stop):
    """The length of the longest of the rows `first` to `stop`."""
    longest = 0
    for d in range(first, stop):
        longest = max(longest, offsets[d + 1] - offsets[d])
    return longest


@jit("uint8[::1], int64[::1], int64[::1], uint8[::1]")
def copy_rows(values, starts, new_offsets, gathered):
    """Copy a row of bytes from each start to its place in `gathered`, on this thread.

    Row i goes to ``gathered[new_offsets[i]:new_offsets[i + 1]]``.
    """
    for i in range(len(starts)):
        copy_bytes(gathered, new_offsets[i], values, starts[i], new_offsets[i + 1] - new_offsets[i])
