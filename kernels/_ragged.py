"""Rows of a ragged array that became shorter."""

from __future__ import annotations

from ._cpu import parallel


@parallel(
    "uint64[::1], int64[::1], int64[::1], int64[::1], uint64[::1]",
    "int64[::1], int64[::1], int64[::1], int64[::1], int64[::1]",
)
def close_gaps(begin, end, values, offsets, bounds, packed_offsets, packed):
    """Copy the first values of each row to their place in `packed`; each item is the rows of a share."""
    for p in range(begin, end):
        for d in range(bounds[p], bounds[p + 1]):
            source = offsets[d] - offsets[0]
            for i in range(packed_offsets[d + 1] - packed_offsets[d]):
                packed[packed_offsets[d] + i] = values[source + i]
