"""Sets: rows of shingles in ascending order, without repeats.

Source: Broder 1997, section 2, for the sets.
Cost: O(n) to order a row of n fingerprints, as these are uniform; on a GPU a radix sort of all rows together.
"""

from itertools import pairwise

import numpy as np

from ._cpu import jit, shares
from ._launch import bounds_of, fetch_offsets, namespace, on_device
from ._ragged import by_rows, longest_row, of_rows, sums_before
from ._sort import keep_in_order, order_of
from .gather import copied


def reference(values, offsets):
    """Each row as a set, straight from the definition.

    Parameters
    ----------
    values : array of uint64, shape (n,)
    offsets : array of int64, shape (rows + 1,)

    Returns
    -------
    values : array of uint64, shape (m,)
    offsets : array of int64, shape (rows + 1,)
        From 0 to m. Empty rows stay empty.
    """
    return of_rows([sorted(set(values[start:stop].tolist())) for start, stop in pairwise(offsets)], np.uint64)


@jit()
def _near_their_places(row, out, ends):
    """Write `row` to `out`, so that few values are out of order, and those near their places.

    Fingerprints are uniform: their upper bits say where. Where many fall together, they are sorted.
    """
    bits = 5
    while len(row) >> bits:
        bits += 1
    shift, num_groups = np.uint64(64 - bits), 1 << bits
    ends[: num_groups + 1] = 0  # after the scatter: where each group of equal upper bits ends
    for x in row:
        ends[(x >> shift) + np.uint64(1)] += np.uint32(1)
    largest, before = np.uint32(0), np.uint32(0)
    for group in range(1, num_groups + 1):
        size = ends[group]
        largest = max(largest, size)
        before += size
        ends[group] = before
    for x in row:
        upper = x >> shift
        place = ends[upper]
        ends[upper] = place + np.uint32(1)
        out[place] = x
    if largest > 32:
        start = np.int64(0)
        for group in range(num_groups):
            stop = np.int64(ends[group])
            if stop - start > 32:
                out[start:stop].sort()
            start = stop


@jit()
def distinct(row, out, ends):
    """The distinct values of a row, ascending, in the first places of `out`; `ends` is room for 2 len(row) + 1 counts.

    `out` has room for the whole row, which may be a set already. What is out of order is inserted; where values were
    sorted, that moves nothing.
    """
    n, ascending = len(row), 1
    while ascending < n and row[ascending - 1] < row[ascending]:
        ascending += 1
    if ascending >= n:
        out[:n] = row
        return out[:n]
    if n > 16:
        _near_their_places(row, out, ends)
    else:
        out[:n] = row
    size, largest = 0, np.uint64(0)
    for i in range(n):
        x = out[i]
        if size == 0 or x > largest:
            out[size] = largest = x
            size += 1
        elif x < largest:
            place = size - 1
            while place > 0 and out[place - 1] > x:
                place -= 1
            if place == 0 or out[place - 1] < x:
                for later in range(size, place, -1):
                    out[later] = out[later - 1]
                out[place] = x
                size += 1
    return out[:size]


@by_rows("uint64[::1], int64[::1], uint64[::1], int64[::1]")
def _sort_rows(begin, end, values, offsets, out, sizes):
    """Write each row's distinct values, ascending, to where the row begins in `out`, and their number to `sizes`."""
    base = offsets[0]
    longest = longest_row(offsets, begin, end)
    ends = np.empty(2 * longest + 1, np.uint32)
    for d in range(begin, end):
        row = out[offsets[d] - base : offsets[d + 1] - base]
        sizes[d] = len(distinct(values[offsets[d] : offsets[d + 1]], row, ends))


def cpu(values, offsets):
    """As `reference`: rows in parallel, each distributed by upper bits and finished by insertion."""
    out, sizes = np.empty(offsets[-1] - offsets[0], np.uint64), np.empty(len(offsets) - 1, np.int64)
    _sort_rows(shares(offsets), values, offsets, out, sizes)
    new_offsets = sums_before(sizes)
    if new_offsets[-1] == len(out):
        return out, new_offsets
    return copied(out, offsets[:-1] - offsets[0], new_offsets)


def gpu(values, offsets):
    """As `reference`; all rows sorted together. The host waits once, for where rows begin, which is `known` then."""
    xp = namespace()
    first, last = bounds_of(offsets)
    values, offsets = on_device(values), on_device(offsets)
    return of_ordered(xp, values[first:last], offsets - first if first else offsets)


def of_ordered(xp, values, offsets):
    """The sets of rows that begin at 0, on the device."""
    order, begins = order_of(values, offsets=offsets)
    before = sums_before(begins)
    new_offsets = before[offsets]
    kept = xp.empty(int(fetch_offsets(new_offsets)[-1]), np.uint64)
    keep_in_order.threads(len(order), values, order, before, kept)
    return kept, new_offsets
