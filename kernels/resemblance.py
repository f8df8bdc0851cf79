"""Exact resemblance and containment of shingle sets.

    resemblance  r(A, B) = |A n B| / |A u B|        containment of A in B  c(A, B) = |A n B| / |A|

A set is a row of distinct uint64 in ascending order. Sizes are counted by one merge of the two rows; ratios are taken
last, in float64, so that a threshold is met or missed exactly as the two integers say.

Source: Broder 1997, section 2.
Cost: O(n) to order a row of n fingerprints, as these are uniform; |A| + |B| steps a pair, or |A| log |B| side by side
on a GPU, where A is the smaller.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numba import prange

from ._launch import Device, cuda, jit, kernel, namespace, row_of, shares


def resemblance(intersection, union):
    """|A n B| / |A u B|: float64, shape (pairs,); 0 where both sets are empty.

    >>> resemblance(np.array([7, 0]), np.array([10, 0]))
    array([0.7, 0. ])
    """
    return intersection / np.maximum(union, 1)


def containment(intersection, size):
    """|A n B| / |A|, the share of A that B contains: float64, shape (pairs,); 0 where A is empty."""
    return intersection / np.maximum(size, 1)


def unique_reference(values, offsets):
    """Each row as a set: ascending, without repeats.

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
    rows = [sorted(set(values[start:stop].tolist())) for start, stop in pairwise(offsets)]
    sizes = [len(row) for row in rows]
    return np.array([x for row in rows for x in row], np.uint64), np.cumsum([0, *sizes], dtype=np.int64)


@jit()
def _sort_row(row, out, ends):
    """Sort `row` into `out`; `ends` is room for len(row) + 1 counts.

    Fingerprints are uniform: their upper bits put each near its place, and insertion does the rest. Where many fall
    together, they are sorted first, and insertion moves nothing.
    """
    n = len(row)
    if n <= 16:
        out[:] = row
    else:
        bits = 1
        while n >> (bits + 1):
            bits += 1
        shift, num_groups = np.uint64(64 - bits), 1 << bits
        ends[: num_groups + 1] = 0  # after the scatter: where each group of equal upper bits ends
        for x in row:
            ends[(x >> shift) + np.uint64(1)] += np.uint32(1)
        crowded = False
        for group in range(1, num_groups + 1):
            crowded |= ends[group] > 32
            ends[group] += ends[group - 1]
        for x in row:
            upper = x >> shift
            place = ends[upper]
            ends[upper] = place + np.uint32(1)
            out[place] = x
        if crowded:
            start = np.int64(0)
            for group in range(num_groups):
                stop = np.int64(ends[group])
                if stop - start > 32:
                    out[start:stop].sort()
                start = stop
    for i in range(1, n):
        x, place = out[i], i
        while place > 0 and out[place - 1] > x:
            out[place] = out[place - 1]
            place -= 1
        out[place] = x


@jit(parallel=True)
def _sort_rows(values, offsets, bounds, out, sizes):
    """Write each row's distinct values, ascending, to where the row begins in `out`, and their number to `sizes`."""
    base = offsets[0]
    for p in prange(len(bounds) - 1):
        longest = 0
        for d in range(bounds[p], bounds[p + 1]):
            longest = max(longest, offsets[d + 1] - offsets[d])
        ends = np.empty(longest + 1, np.uint32)
        for d in range(bounds[p], bounds[p + 1]):
            row = out[offsets[d] - base : offsets[d + 1] - base]
            _sort_row(values[offsets[d] : offsets[d + 1]], row, ends)
            size = 0
            for x in row:
                if size == 0 or row[size - 1] != x:
                    row[size] = x
                    size += 1
            sizes[d] = size


@jit(parallel=True)
def _close_gaps(values, offsets, bounds, packed_offsets, packed):
    """Copy the first values of each row of `values` to their place in `packed`."""
    for p in prange(len(bounds) - 1):
        for d in range(bounds[p], bounds[p + 1]):
            source = offsets[d] - offsets[0]
            for i in range(packed_offsets[d + 1] - packed_offsets[d]):
                packed[packed_offsets[d] + i] = values[source + i]


def unique_cpu(values, offsets):
    """As `unique_reference`: rows in parallel, each distributed by upper bits and finished by insertion."""
    bounds = shares(offsets)
    out, sizes = np.empty(offsets[-1] - offsets[0], np.uint64), np.empty(len(offsets) - 1, np.int64)
    _sort_rows(values, offsets, bounds, out, sizes)
    packed_offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    if packed_offsets[-1] == len(out):
        return out, packed_offsets
    packed = np.empty(packed_offsets[-1], np.uint64)
    _close_gaps(out, offsets, bounds, packed_offsets, packed)
    return packed, packed_offsets


@kernel("void(int64[::1], uint32[::1])")
def _rows(offsets, rows):
    """One thread a value: the row that it is of."""
    at = cuda.grid(1)
    if at < len(rows):
        rows[at] = row_of(offsets, offsets[0] + at)


def ordered(values, offsets):
    """For `gpu` kernels: values sorted within their rows, by two stable radix sorts, by value and then by row.

    Returns
    -------
    order : array of int64, shape (n,)
        ``values[offsets[0]:][order]`` is row by row, ascending.
    begins : array of bool, shape (n,)
        Where, in that order, a value differs from the one before it or begins a row.
    """
    xp = namespace()
    values = values[int(offsets[0]) : int(offsets[-1])]
    rows = xp.empty(len(values), np.uint32)
    _rows.threads(len(rows), offsets, rows)
    order = xp.argsort(values, kind="stable")
    order = order[xp.argsort(rows[order], kind="stable")]
    begins = xp.ones(len(values), bool)
    begins[1:] = (values[order[1:]] != values[order[:-1]]) | (rows[1:] != rows[:-1])  # rows ascend already
    return order, begins


def unique_gpu(values, offsets):
    """As `unique_reference`; all rows sorted together."""
    xp = namespace()
    values, offsets = xp.ascontiguousarray(values), xp.ascontiguousarray(offsets)
    order, begins = ordered(values, offsets)
    before = xp.zeros(len(begins) + 1, np.int64)
    before[1:] = xp.cumsum(begins)
    return values[int(offsets[0]) :][order[begins]], before[offsets - offsets[0]]


def reference(values, offsets, left, right):
    """Sizes of the intersection and the union of pairs of sets.

    Parameters
    ----------
    values : array of uint64, shape (n,)
        Each row ascending and without repeats, as `unique_reference` makes them.
    offsets : array of int64, shape (rows + 1,)
    left, right : arrays of int64, shape (pairs,)
        Row numbers, in any order.

    Returns
    -------
    intersection, union : arrays of int64, shape (pairs,)
    """
    sets = [set(values[start:stop].tolist()) for start, stop in pairwise(offsets)]
    intersection = [len(sets[a] & sets[b]) for a, b in zip(left, right, strict=True)]
    union = [len(sets[a] | sets[b]) for a, b in zip(left, right, strict=True)]
    return np.array(intersection, np.int64), np.array(union, np.int64)


@jit()
def _common(a, b):
    """Number of values in both of two ascending rows: a merge whose only branch is its end."""
    i = j = common = 0
    while i < len(a) and j < len(b):
        x, y = a[i], b[j]
        common += x == y
        i += x <= y
        j += y <= x
    return common


@jit(parallel=True)
def _merge_pairs(values, offsets, left, right, bounds, intersection, union):
    for p in prange(len(bounds) - 1):
        for pair in range(bounds[p], bounds[p + 1]):
            a = values[offsets[left[pair]] : offsets[left[pair] + 1]]
            b = values[offsets[right[pair]] : offsets[right[pair] + 1]]
            common = _common(a, b)
            intersection[pair] = common
            union[pair] = len(a) + len(b) - common


def cpu(values, offsets, left, right):
    """As `reference`: runs of pairs of about equal total size in parallel, each pair one merge."""
    sizes = np.diff(offsets)
    work = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes[left] + sizes[right])])
    intersection, union = np.empty(len(left), np.int64), np.empty(len(left), np.int64)
    _merge_pairs(values, offsets, left, right, shares(work), intersection, union)
    return intersection, union


@Device
def first_not_below(values, start, stop, value):
    """Place of the first of the ascending values from `start` to `stop` that is not less than `value`; `stop` if none.

    By bisection; neighbouring threads that look for neighbouring values read the same places nearly to the end.
    """
    low, high = np.uint64(start), np.uint64(stop)
    while low < high:
        middle = (low + high) >> np.uint64(1)
        if values[middle] < value:
            low = middle + np.uint64(1)
        else:
            high = middle
    return low


@kernel("void(uint64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1])", block=128)
def _intersect(values, offsets, left, right, intersection, union):
    """One block a pair, one thread a value of the smaller set, in strides; the barrier counts the values found."""
    pair = cuda.blockIdx.x
    small, large = left[pair], right[pair]
    if offsets[small + 1] - offsets[small] > offsets[large + 1] - offsets[large]:
        small, large = large, small
    start, stop = offsets[large], offsets[large + 1]
    common, at = np.int64(0), offsets[small] + cuda.threadIdx.x
    while at - cuda.threadIdx.x < offsets[small + 1]:
        found = np.int32(0)
        if at < offsets[small + 1]:
            place = first_not_below(values, start, stop, values[at])
            if place < np.uint64(stop) and values[place] == values[at]:
                found = np.int32(1)
        common += cuda.syncthreads_count(found)
        at += cuda.blockDim.x
    if cuda.threadIdx.x == 0:
        intersection[pair] = common
        union[pair] = offsets[small + 1] - offsets[small] + stop - start - common


def gpu(values, offsets, left, right):
    """As `reference`: one block a pair, which looks up the values of the smaller set in the larger.

    For sets of 200 shingles that is 8 steps a value where a merge takes 2, but none waits for its neighbour; a step is
    18 instructions for sm_90. A pair of tiny sets costs little more than the start of its block; one of two million
    shingles takes 8,000 strides of 20 steps, while other blocks go on. At most 2**31 - 1 pairs, the blocks of a grid.
    """
    xp = namespace()
    values, offsets, left, right = (xp.ascontiguousarray(array) for array in (values, offsets, left, right))
    intersection, union = xp.empty(len(left), np.int64), xp.empty(len(left), np.int64)
    _intersect.blocks(len(left), values, offsets, left, right, intersection, union)
    return intersection, union
