"""Rows of a ragged array: the longest of some, rows that became shorter, and rows of bytes copied together."""

from ._cpu import jit, parallel
from ._vectors import copy_bytes


@jit()
def longest_row(offsets, first, stop):
    """The length of the longest of the rows `first` to `stop`."""
    longest = 0
    for d in range(first, stop):
        longest = max(longest, offsets[d + 1] - offsets[d])
    return longest


@jit()
def copy_row(values, source, size, packed, target):
    """Copy `size` values from the place `source` to the place `target` of another array."""
    for i in range(size):
        packed[target + i] = values[source + i]


@parallel("uint64[::1], int64[::1], int64[::1], int64[::1], uint64[::1]")
def close_gaps(begin, end, values, offsets, bounds, packed_offsets, packed):
    """Copy the first values of each row to their place in `packed`; each item is the rows of a share."""
    for p in range(begin, end):
        for d in range(bounds[p], bounds[p + 1]):
            copy_row(
                values, offsets[d] - offsets[0], packed_offsets[d + 1] - packed_offsets[d], packed, packed_offsets[d]
            )


@jit("uint8[::1], int64[::1], int64[::1], uint8[::1]")
def copy_rows(values, starts, new_offsets, gathered):
    """Copy a row of bytes from each start to its place in `gathered`, on this thread.

    Row i goes to ``gathered[new_offsets[i]:new_offsets[i + 1]]``.
    """
    for i in range(len(starts)):
        copy_bytes(gathered, new_offsets[i], values, starts[i], new_offsets[i + 1] - new_offsets[i])
