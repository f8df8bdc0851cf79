"""Term counts: the distinct values of each row, and how often the row holds each.

Source: Manning, Raghavan and Schütze 2008 (Introduction to Information Retrieval), 6.2 (term frequency).
Cost: on the CPU one look-up in a hash table a value; on a GPU three radix sorts of all values.
"""

from collections import Counter
from itertools import pairwise

import numpy as np

from ._cpu import shares
from ._gf2 import mix64
from ._launch import bounds_of, cuda, fetch_offsets, kernel, namespace, on_device
from ._ragged import by_rows, longest_row, of_rows, sums_before
from ._sort import firsts_of, keep, order_of
from .gather import copied


def reference(values, offsets):
    """Count the values of rows, straight from the definition: each row's distinct values, in the order in which
    they first occur, and how often the row holds each.

    Parameters
    ----------
    values : array of uint64, shape (n,)
    offsets : array of int64, shape (rows + 1,)

    Returns
    -------
    values : array of uint64, shape (m,)
    offsets : array of int64, shape (rows + 1,)
        From 0 to m. Empty rows stay empty.
    counts : array of int64, shape (m,)
    """
    rows = [Counter(values[start:stop].tolist()) for start, stop in pairwise(offsets)]
    return *of_rows(rows, np.uint64), np.array([n for row in rows for n in row.values()], np.int64)


@by_rows("uint64[::1], int64[::1], uint64[::1], int64[::1], int64[::1]")
def _count_rows(begin, end, values, offsets, out, counts, sizes):
    """Write each row's distinct values and their counts to where the row begins, and their number to `sizes`."""
    base = offsets[0]
    longest = longest_row(offsets, begin, end)
    table = np.empty(4 * longest + 4, np.int32)
    for d in range(begin, end):
        row = values[offsets[d] : offsets[d + 1]]
        distinct, times = out[offsets[d] - base :], counts[offsets[d] - base :]
        bits = 1
        while len(row) >> (bits - 1):  # at most half of the places are taken
            bits += 1
        shift, last = np.uint64(64 - bits), np.uint64((1 << bits) - 1)
        place_of = table[: 1 << bits]  # in `distinct`, by mix64; those that meet go to the next that is free
        place_of[:] = -1
        size = 0
        for x in row:
            at = mix64(x) >> shift
            while place_of[at] >= 0 and distinct[place_of[at]] != x:
                at = (at + np.uint64(1)) & last
            if place_of[at] < 0:
                place_of[at] = size
                distinct[size] = x
                times[size] = 0
                size += 1
            times[place_of[at]] += 1
        sizes[d] = size


def cpu(values, offsets):
    """As `reference`; rows in parallel, each with a hash table. Rows of at most 2**31 - 1 values."""
    starts = offsets[:-1] - offsets[0]
    out, counts = (np.empty(offsets[-1] - offsets[0], kind) for kind in (np.uint64, np.int64))
    sizes = np.empty(len(starts), np.int64)
    _count_rows(shares(offsets), values, offsets, out, counts, sizes)
    new_offsets = sums_before(sizes)
    new_counts, _ = copied(counts.view(np.uint64), starts, new_offsets)
    return *copied(out, starts, new_offsets), new_counts.view(np.int64)


@kernel("void(uint32[::1], boolean[::1], int64[::1], int64[::1], uint64[::1])")
def _write_counts(order, begins, numbers, firsts, of_first):
    """One thread a place of the order: where a value's run begins, the length of the run, at the value's first place.

    It is the first because the order is stable.
    """
    at = cuda.grid(1)
    if at < len(order) and begins[at]:
        run, end = numbers[at], len(order)
        if run < numbers[end - 1]:
            end = firsts[run]
        of_first[order[at]] = np.uint64(end - at)


def gpu(values, offsets):
    """As `reference`; all rows are sorted together, and each count is put where its value first occurs.

    The host waits once, for where rows begin, which is `known` then.
    """
    xp = namespace()
    first, last = bounds_of(offsets)
    values, offsets = on_device(values), on_device(offsets)
    values, offsets = values[first:last], offsets - first if first else offsets
    order, begins = order_of(values, offsets=offsets)
    of_first = xp.zeros(len(order), np.uint64)
    _write_counts.threads(len(order), order, begins, *firsts_of(begins), of_first)
    before = sums_before(of_first > np.uint64(0))
    new_offsets = before[offsets]
    size = int(fetch_offsets(new_offsets)[-1])
    kept, counts = xp.empty(size, np.uint64), xp.empty(size, np.uint64)
    keep.threads(len(values), values, before, kept)
    keep.threads(len(values), of_first, before, counts)
    return kept, new_offsets, counts.view(np.int64)
