"""How many common elements a pair of sets needs: the least integers whose ratio reaches a threshold.

Resemblance is one float64 division of two integers, and so are these bounds: `least_shared` is the least c with
c / size >= threshold, and `least_overlap` the least c with c / (total - c) >= threshold, where total = |A| + |B|. Each
is estimated and then stepped until the very division of verification says so, never moved by an epsilon. The estimate
is off by at most one, as sizes are below 2**40; and as rounding is monotone, both grow with the size, by 0 or 1 a step.
"""

from __future__ import annotations

import numpy as np

from ._launch import array_module, jit


@jit()
def least_shared(size, threshold):
    """The least c with c / size >= threshold; `size` is at least 1."""
    u = np.float64(size)
    c = np.int64(np.ceil(threshold * u))
    while np.float64(c - 1) / u >= threshold:
        c -= 1
    while np.float64(c) / u < threshold:
        c += 1
    return c


@jit()
def least_overlap(total, threshold):
    """The least c with c / (total - c) >= threshold; `total` is at least 1."""
    c = np.int64(np.ceil(threshold / (1.0 + threshold) * np.float64(total)))
    while np.float64(c - 1) / np.float64(total - c + 1) >= threshold:
        c -= 1
    while c < total and np.float64(c) / np.float64(total - c) < threshold:
        c += 1
    return c


@jit()
def prefix_lengths(size, threshold):
    """(short, long): elements of a set's prefix where it is the smaller of a pair, and where it is the larger."""
    short = size - least_overlap(2 * size, threshold) + 1
    return short, size - least_shared(size, threshold) + 1


@jit()
def least_overlaps(most, threshold):
    """`least_overlap` of every total up to `most`: int32, shape (most + 1,); 0 for a total of 0."""
    needed = np.zeros(most + 1, np.int32)
    c = np.int64(0)
    for total in range(1, most + 1):
        while c < total and np.float64(c) / np.float64(total - c) < threshold:
            c += 1
        needed[total] = c
    return needed


@jit()
def least_shares(most, threshold):
    """`least_shared` of every size up to `most`: int32, shape (most + 1,); 0 for a size of 0."""
    needed = np.zeros(most + 1, np.int32)
    c = np.int64(0)
    for size in range(1, most + 1):
        while np.float64(c) / np.float64(size) < threshold:
            c += 1
        needed[size] = c
    return needed


def prefix_lengths_of(sizes, threshold):
    """`prefix_lengths` of an array of sizes, on its device: two arrays of int64."""
    xp = array_module(sizes)
    u = xp.maximum(sizes, 1)
    shared = xp.ceil(threshold * u).astype(np.int64)
    shared -= (shared - 1) / u >= threshold
    shared += shared / u < threshold
    total = 2 * u
    overlap = xp.ceil(threshold / (1.0 + threshold) * total).astype(np.int64)
    overlap -= (overlap - 1) / (total - overlap + 1) >= threshold
    overlap += overlap / (total - overlap) < threshold
    return xp.where(sizes > 0, u - overlap + 1, 0), xp.where(sizes > 0, u - shared + 1, 0)
