"""Rows of a ragged array: the longest of some, and rows that became shorter."""

from ._cpu import jit, parallel


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
