"""Sizes of sets: the number of distinct values of each row.

Source: the definition.
Cost: a look-up or two in a hash table for each value. On the CPU 40 bytes for each value of the longest row, on a GPU 8
to 16 for each value of all rows.
"""

from itertools import pairwise

import numpy as np

from ._cpu import jit, shares
from ._gf2 import mix64
from ._launch import cuda, kernel, namespace, on_device, row_of
from ._ragged import by_rows, longest_row

_FREE = np.uint32(0xFFFFFFFF)
"""A place in the table of `gpu` that no value has taken."""


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


@by_rows("uint64[::1], int64[::1], int64[::1]")
def _sizes(begin, end, values, offsets, sizes):
    longest = longest_row(offsets, begin, end)
    table, rest = np.empty(4 * longest + 4, np.uint64), np.empty(longest + 1, np.uint64)
    for d in range(begin, end):
        sizes[d] = _size(values[offsets[d] : offsets[d + 1]], table, rest)


def cpu(values, offsets):
    """As `reference`, rows in parallel, by hash tables: what finds another value in its place goes to the next one."""
    sizes = np.empty(len(offsets) - 1, np.int64)
    _sizes(shares(offsets), values, offsets, sizes)
    return sizes


@kernel("void(uint64[::1], int64[::1], uint64, uint32[::1], int64[::1])")
def _leave_out(values, offsets, shift, table, sizes):
    """One thread a value: one of a row's equal values takes a place in the table, and the others are not counted.

    The place is the first that is free, from where the value and the row lead to. Which of the equal values takes it
    depends on the order of threads, and their number does not.
    """
    at, first = cuda.grid(1), offsets[0]
    if at >= offsets[len(offsets) - 1] - first:
        return
    row, value, last = row_of(offsets, first + at), values[first + at], np.uint64(len(table) - 1)
    place = mix64(value ^ mix64(np.uint64(row))) >> shift
    while True:
        other = table[place]
        if other == _FREE:
            other = cuda.atomic.cas(table, place, _FREE, np.uint32(at))
            if other == _FREE:
                return
        there = first + np.int64(other)
        if values[there] == value and offsets[row] <= there and there < offsets[row + 1]:
            cuda.atomic.add(sizes, row, np.int64(-1))
            return
        place = (place + np.uint64(1)) & last


def gpu(values, offsets):
    """As `reference`: all values take places in one hash table, and what finds an equal value of its row there counts
    no more. Up to 2**32 - 1 values."""
    xp = namespace()
    values, offsets = on_device(values), on_device(offsets)
    sizes, bits = xp.diff(offsets), max(1, (2 * len(values)).bit_length())  # at most half of the places are taken
    table = xp.full(1 << bits, _FREE, np.uint32)
    _leave_out.threads(len(values), values, offsets, np.uint64(64 - bits), table, sizes)
    return sizes
