"""Sizes of sets: the number of distinct values of each row.

Source: the definition.
Cost: on the CPU a look-up or two in a hash table for each value, and 40 bytes for each of the longest row; on a GPU as
`sets`.
"""

from itertools import pairwise

import numpy as np

from . import sets
from ._cpu import jit, parallel, shares
from ._launch import namespace
from ._ragged import longest_row


def reference(values, offsets):
    """Sizes, straight from the definition.

    Parameters
    ----------
    values : array of uint64, shape (n,)
    offsets : array of int64, shape (rows + 1,)

    Returns
    -------
    array of int64, shape (rows,)
        0 for empty rows.
    """
    return np.array([len(set(values[start:stop].tolist())) for start, stop in pairwise(offsets)], np.int64)


@jit()
def _round(values, multiplier, shift, table, rest):
    """(how many values found their place free, and so count; how many met another value there, and go to `rest`).

    The others were counted already, and zeros are not. Nothing branches; `rest` may be the same array as `values`.
    """
    size, left = 0, 0
    for i in range(len(values)):
        value = values[i]
        place = (value * multiplier) >> shift
        there = table[place]
        free = there == np.uint64(0)
        table[place] = value if free else there
        rest[left] = value
        size += free & (value != np.uint64(0))
        left += (not free) & (there != value)
    return size, left


@jit()
def _size(values, table, rest):
    """The number of distinct values; `table` has room for four words a value and more, `rest` for all values."""
    size, multiplier = 0, np.uint64(0x9E3779B97F4A7C15)
    for value in values:
        if value == np.uint64(0):  # which marks a free place: it is not counted below
            size = 1
            break
    remaining = values
    while len(remaining):
        bits = 2
        while (1 << bits) < 2 * len(remaining):
            bits += 1
        table[: 1 << bits] = np.uint64(0)
        found, left = _round(remaining, multiplier, np.uint64(64 - bits), table, rest)
        size += found
        remaining = rest[:left]
        multiplier = multiplier * np.uint64(0xD1342543DE82EF95)  # both odd
    return size


@parallel("uint64[::1], int64[::1], int64[::1], int64[::1]")
def _sizes(begin, end, values, offsets, bounds, sizes):
    for p in range(begin, end):
        longest = longest_row(offsets, bounds[p], bounds[p + 1])
        table, rest = np.empty(4 * longest + 4, np.uint64), np.empty(longest + 1, np.uint64)
        for d in range(bounds[p], bounds[p + 1]):
            sizes[d] = _size(values[offsets[d] : offsets[d + 1]], table, rest)


def cpu(values, offsets):
    """As `reference`, rows in parallel, by hash tables: what finds another value in its place goes to the next one."""
    sizes = np.empty(len(offsets) - 1, np.int64)
    bounds = shares(offsets)
    _sizes(len(bounds) - 1, values, offsets, bounds, sizes)
    return sizes


def gpu(values, offsets):
    """As `reference`: all rows are put in order together."""
    return namespace().diff(sets.gpu(values, offsets)[1])
