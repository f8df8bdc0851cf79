"""Exact resemblance of weighted sets.

    J_W(A, B) = sum over f of min(a[f], b[f]) / sum over f of max(a[f], b[f])

A weighted set is a row of 2 n words: its n features, each once and ascending, then the weight of each. Both sums are
integers; their ratio is taken last, in float64, so that a threshold is met or missed exactly as the two integers say.
With weights of 1 it is the resemblance of sets.

Source: Manasse 5 (p. 51), generalised Jaccard similarity.
Cost: |A| + |B| steps a pair, or |A| log |B| side by side on a GPU, where A is the smaller.
"""

from itertools import pairwise

import numpy as np

from ._cpu import jit, shares
from ._launch import cuda, kernel, namespace, on_device
from ._ragged import by_rows, sums_before
from ._search import first_not_below


def reference(values, offsets, left, right):
    """Sums of minima and of maxima of pairs of weighted sets.

    Parameters
    ----------
    values : array of uint64, shape (n,)
        Weights of a row are at most 2**48 together.
    offsets : array of int64, shape (rows + 1,)
        Each row has an even number of words.
    left, right : arrays of int64, shape (pairs,)
        Row numbers, in any order.

    Returns
    -------
    minima, maxima : arrays of int64, shape (pairs,)
    """
    weights = []
    for start, stop in pairwise(offsets.tolist()):
        middle = (start + stop) // 2
        weights.append(dict(zip(values[start:middle].tolist(), values[middle:stop].tolist(), strict=True)))
    both = [(weights[a], weights[b]) for a, b in zip(left, right, strict=True)]
    minima = [sum(min(a.get(f, 0), b.get(f, 0)) for f in {*a, *b}) for a, b in both]
    maxima = [sum(max(a.get(f, 0), b.get(f, 0)) for f in {*a, *b}) for a, b in both]
    return np.array(minima, np.int64), np.array(maxima, np.int64)


@jit()
def _sums(a, b):
    """Sum of minima and of maxima of two rows, by a merge."""
    n, k = len(a) >> 1, len(b) >> 1
    minima = maxima = np.uint64(0)
    i = j = 0
    while i < n and j < k:
        if a[i] == b[j]:
            x, y = a[n + i], b[k + j]
            minima += min(x, y)
            maxima += max(x, y)
            i += 1
            j += 1
        elif a[i] < b[j]:
            maxima += a[n + i]
            i += 1
        else:
            maxima += b[k + j]
            j += 1
    while i < n:
        maxima += a[n + i]
        i += 1
    while j < k:
        maxima += b[k + j]
        j += 1
    return minima, maxima


@by_rows("uint64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1]")
def _merge_pairs(begin, end, values, offsets, left, right, minima, maxima):
    for pair in range(begin, end):
        a = values[offsets[left[pair]] : offsets[left[pair] + 1]]
        b = values[offsets[right[pair]] : offsets[right[pair] + 1]]
        minima[pair], maxima[pair] = _sums(a, b)


def cpu(values, offsets, left, right):
    """As `reference`: runs of pairs of about equal total size in parallel, each pair one merge."""
    sizes = np.diff(offsets)
    work = sums_before(sizes[left] + sizes[right])
    minima, maxima = np.empty(len(left), np.int64), np.empty(len(left), np.int64)
    _merge_pairs(shares(work), values, offsets, left, right, minima, maxima)
    return minima, maxima


@kernel("void(uint64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1])", block=128)
def _add_pairs(values, offsets, left, right, minima, maxima):
    """One block a pair, one thread a feature of the smaller set, in strides, and the weights of the larger in turn."""
    pair = cuda.blockIdx.x
    small, large = left[pair], right[pair]
    if offsets[small + 1] - offsets[small] > offsets[large + 1] - offsets[large]:
        small, large = large, small
    middle = (offsets[small] + offsets[small + 1]) >> np.int64(1)
    start, stop = offsets[large], (offsets[large] + offsets[large + 1]) >> np.int64(1)
    low, all_weights = np.int64(0), np.int64(0)
    at = offsets[small] + cuda.threadIdx.x
    while at < middle:
        mine = np.int64(values[at + middle - offsets[small]])
        all_weights += mine
        place = first_not_below(values, start, stop, values[at])
        if place < np.uint64(stop) and values[place] == values[at]:
            low += min(mine, np.int64(values[np.int64(place) + stop - start]))
        at += cuda.blockDim.x
    at = stop + cuda.threadIdx.x
    while at < offsets[large + 1]:
        all_weights += np.int64(values[at])
        at += cuda.blockDim.x
    cuda.atomic.add(minima, pair, low)
    cuda.atomic.add(maxima, pair, all_weights - low)


def gpu(values, offsets, left, right):
    """As `reference`: one block per pair, which looks up the features of the smaller set in the larger.

    The maxima are what is left of all weights of both without the minima. At most 2**31 - 1 pairs, the blocks of a
    grid.
    """
    xp = namespace()
    values, offsets, left, right = (on_device(array) for array in (values, offsets, left, right))
    minima, maxima = xp.zeros(len(left), np.int64), xp.zeros(len(left), np.int64)
    _add_pairs.blocks(len(left), values, offsets, left, right, minima, maxima)
    return minima, maxima
