"""Rows of a ragged array: where they begin, the longest of some, and rows of bytes copied together."""

import numpy as np

from ._cpu import jit
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
