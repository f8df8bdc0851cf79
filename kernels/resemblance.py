"""How many elements pairs of shingle sets have in common, for exact resemblance and containment.

    resemblance  r(A, B) = |A n B| / |A u B|        containment of A in B  c(A, B) = |A n B| / |A|

A set is a row of distinct uint64 in ascending order, as `sets` makes it. Common elements are counted by one merge of
the two rows, which ends as soon as the rest of either row cannot bring them to the required number. Ratios are
taken last, in float64, so that a threshold is met or missed exactly as the integers say.

Source: Broder 1997, section 2.
Cost: at most |A| + |B| steps a pair, or |A| log |B| where A is far smaller, and side by side on a GPU.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ._cpu import jit, shares
from ._launch import cuda, kernel, namespace, on_device
from ._ragged import by_rows, sums_before
from ._search import first_not_below, lower_bound


def resemblance(intersection, union):
    """|A n B| / |A u B|: float64, shape (pairs,); 0 where both sets are empty.

    >>> resemblance(np.array([7, 0]), np.array([10, 0]))
    array([0.7, 0. ])
    """
    return intersection / np.maximum(union, 1)


def containment(intersection, size):
    """|A n B| / |A|, the share of A that B contains: float64, shape (pairs,); 0 where A is empty."""
    return intersection / np.maximum(size, 1)


def reference(values, offsets, left, right, least):
    """Sizes of the intersections of pairs of sets, where they are large enough.

    Parameters
    ----------
    values : array of uint64, shape (n,)
        Each row ascending and without repeats, as `sets` makes them.
    offsets : array of int64, shape (rows + 1,)
    left, right : arrays of int64, shape (pairs,)
        Row numbers, in any order.
    least : array of int64, shape (pairs,)
        The least size of each intersection that matters.

    Returns
    -------
    array of int64, shape (pairs,)
        -1 where it is less.
    """
    sets = [set(values[start:stop].tolist()) for start, stop in pairwise(offsets)]
    common = np.array([len(sets[a] & sets[b]) for a, b in zip(left, right, strict=True)], np.int64)
    return np.where(common >= least, common, -1)


_STEPS = 32  # of a merge, between two looks at what is left


@jit()
def _common(a, b, least):
    """Return the number of values in both of two ascending rows, or -1 if it is below `least`.

    Two merges go on side by side, of the values below the middle of `a` and of the others, since each step of a merge
    waits for the one before it.
    """
    middle = np.uint64(len(a) >> 1)
    cut = np.uint64(lower_bound(b, 0, len(b), a[middle]) if len(a) else 0)
    steps, last, end = np.uint64(_STEPS), np.uint64(len(a)), np.uint64(len(b))
    i, j, k, l = np.uint64(0), np.uint64(0), middle, cut
    common = others = np.uint64(0)
    while i + steps <= middle and j + steps <= cut and k + steps <= last and l + steps <= end:
        if np.int64(common + others + min(middle - i, cut - j) + min(last - k, end - l)) < least:
            return -1
        for _ in range(_STEPS):  # without a branch
            x, y, u, v = a[i], b[j], a[k], b[l]
            common += np.uint64(x == y)
            others += np.uint64(u == v)
            i += np.uint64(x <= y)
            j += np.uint64(y <= x)
            k += np.uint64(u <= v)
            l += np.uint64(v <= u)
    common += others + _merged(a, b, i, middle, j, cut) + _merged(a, b, k, last, l, end)
    return np.int64(common) if np.int64(common) >= least else -1


@jit()
def _merged(a, b, i, last, j, end):
    """Return the number of values in both of two ascending rows, from and to some places of each."""
    common = np.uint64(0)
    while i < last and j < end:
        x, y = a[i], b[j]
        common += np.uint64(x == y)
        i += np.uint64(x <= y)
        j += np.uint64(y <= x)
    return common


FEW = 32
"""If one set is more than this many times as large as the other, it is searched instead of merged."""


@jit()
def _common_of_few(few, many, least):
    """As `_common`, by bisection of what is left of the larger row for each value of the smaller one."""
    low = common = 0
    for i in range(len(few)):
        if common + len(few) - i < least:
            return -1
        low = lower_bound(many, low, len(many), few[i])
        common += low < len(many) and many[low] == few[i]
    return common if common >= least else -1


@by_rows("uint64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1]")
def _merge_pairs(begin, end, values, offsets, left, right, least, intersection):
    for pair in range(begin, end):
        a = values[offsets[left[pair]] : offsets[left[pair] + 1]]
        b = values[offsets[right[pair]] : offsets[right[pair] + 1]]
        if FEW * len(a) < len(b):
            intersection[pair] = _common_of_few(a, b, least[pair])
        elif FEW * len(b) < len(a):
            intersection[pair] = _common_of_few(b, a, least[pair])
        else:
            intersection[pair] = _common(a, b, least[pair])


def cpu(values, offsets, left, right, least):
    """As `reference`: runs of pairs of about equal work in parallel, each pair one merge, or one search."""
    sizes = np.diff(offsets)
    smaller, larger = np.minimum(sizes[left], sizes[right]), np.maximum(sizes[left], sizes[right])
    work = sums_before(np.minimum(larger, FEW * smaller) + smaller)
    intersection = np.empty(len(left), np.int64)
    _merge_pairs(shares(work), values, offsets, left, right, least, intersection)
    return intersection


@kernel("void(uint64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1])", block=128)
def _intersect(values, offsets, left, right, least, intersection):
    """One block a pair, one thread a value of the smaller set, in strides; the barrier counts the values found."""
    pair = cuda.blockIdx.x
    small, large = left[pair], right[pair]
    if offsets[small + 1] - offsets[small] > offsets[large + 1] - offsets[large]:
        small, large = large, small
    start, stop, end = offsets[large], offsets[large + 1], offsets[small + 1]
    common, first = np.int64(0), offsets[small]
    while first < end and common + end - first >= least[pair]:  # the same for all threads
        found, at = np.int32(0), first + cuda.threadIdx.x
        if at < end:
            place = first_not_below(values, start, stop, values[at])
            if place < np.uint64(stop) and values[place] == values[at]:
                found = np.int32(1)
        common += cuda.syncthreads_count(found)
        first += cuda.blockDim.x
    if cuda.threadIdx.x == 0:
        intersection[pair] = common if common >= least[pair] else np.int64(-1)


def gpu(values, offsets, left, right, least):
    """As `reference`: one block per pair, which looks up the values of the smaller set in the larger.

    For sets of 200 shingles that is 8 steps a value where a merge takes 2, but none waits for its neighbour; a step is
    18 instructions for sm_90. A pair of tiny sets costs little more than the start of its block; one of two million
    shingles takes 8,000 strides of 20 steps, while other blocks go on. At most 2**31 - 1 pairs, the blocks of a grid.
    """
    xp = namespace()
    arrays = [on_device(array) for array in (values, offsets, left, right, least)]
    intersection = xp.empty(len(left), np.int64)
    _intersect.blocks(len(left), *arrays, intersection)
    return intersection


@jit("int64[::1], int64[::1], int64[::1], int64")
def blocks_of_pairs(left, right, sizes, budget):
    """Cut a list of pairs into blocks whose distinct rows hold at most `budget` values together.

    Parameters
    ----------
    left, right : arrays of int64, shape (pairs,)
    sizes : array of int64, shape (rows,)
    budget : int
        A pair larger than this is a block of its own.

    Returns
    -------
    array of int64, shape (blocks + 1,)
        Block i is pairs ``bounds[i]`` to ``bounds[i + 1]``.
    """
    bounds = np.empty(len(left) + 1, np.int64)
    bounds[0] = 0
    blocks = 0
    seen_in = np.full(len(sizes), -1, np.int64)
    held = 0
    for i in range(len(left)):
        a, b = left[i], right[i]
        more = (sizes[a] if seen_in[a] != blocks else 0) + (sizes[b] if seen_in[b] != blocks else 0)
        if held > 0 and held + more > budget:
            blocks += 1
            bounds[blocks] = i
            held = 0
            more = sizes[a] + sizes[b]
        held += more
        seen_in[a] = blocks
        seen_in[b] = blocks
    bounds[blocks + 1 if len(left) else 0] = len(left)
    return bounds[: blocks + 2 if len(left) else 1].copy()
