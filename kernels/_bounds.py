"""How many common elements a pair of sets needs: the least integers whose ratio reaches a threshold.

Resemblance is one float64 division of two integers, and so are these bounds: `least_shared` is the least c with
c / size >= threshold, and `least_overlap` the least c with c / (total - c) >= threshold, where total = |A| + |B|. Each
is estimated and then stepped until the very division of verification says so, never moved by an epsilon. The estimate
is off by at most one, as sizes are below 2**40; and as rounding is monotone, both grow with the size, by 0 or 1 a step.
"""

import math

import numpy as np

from ._cpu import jit
from ._launch import array_module


@jit("int64, float64")
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


@jit("int64, float64")
def least_overlaps(most, threshold):
    """`least_overlap` of every total up to `most`: int32, shape (most + 1,); 0 for a total of 0."""
    needed = np.zeros(most + 1, np.int32)
    c = np.int64(0)
    for total in range(1, most + 1):
        while c < total and np.float64(c) / np.float64(total - c) < threshold:
            c += 1
        needed[total] = c
    return needed


@jit("int64, float64")
def least_shares(most, threshold):
    """`least_shared` of every size up to `most`: int32, shape (most + 1,); 0 for a size of 0."""
    needed = np.zeros(most + 1, np.int32)
    c = np.int64(0)
    for size in range(1, most + 1):
        while np.float64(c) / np.float64(size) < threshold:
            c += 1
        needed[size] = c
    return needed


def least_shares_of(sizes, threshold):
    """`least_shared` of an array of sizes, on its device: int64; 0 for a size of 0."""
    xp = array_module(sizes)
    u = xp.maximum(sizes, 1)
    c = xp.ceil(threshold * u).astype(np.int64)
    c -= (c - 1) / u >= threshold
    c += c / u < threshold
    return xp.where(sizes > 0, c, 0)


def least_overlaps_of(totals, threshold):
    """`least_overlap` of an array of totals, on its device: int64; 0 for a total of 0.

    A pair of sets with `totals` elements in total has at least this many in common if it reaches the threshold.
    """
    xp = array_module(totals)
    total = xp.maximum(totals, 1)
    c = xp.ceil(threshold / (1.0 + threshold) * total).astype(np.int64)
    c -= (c - 1) / (total - c + 1) >= threshold
    c += (c < total) & (c / xp.maximum(total - c, 1) < threshold)
    return xp.where(totals > 0, c, 0)


def prefix_lengths_of(sizes, threshold):
    """`prefix_lengths` of an array of sizes, on its device: two arrays of int64."""
    xp, there = array_module(sizes), sizes > 0
    short = sizes - least_overlaps_of(2 * sizes, threshold) + 1
    long = sizes - least_shares_of(sizes, threshold) + 1
    return xp.where(there, short, 0), xp.where(there, long, 0)


@jit()
def _below(t, trials, p):
    """P(Bin(trials, p) < t), summed from t - 1 down; t - 1 is at most the mean."""
    k, q = t - 1, 1.0 - p
    ways = math.lgamma(trials + 1.0) - math.lgamma(k + 1.0) - math.lgamma(trials - k + 1.0)
    term = math.exp(ways + k * math.log(p) + (trials - k) * math.log(q))
    total = term
    while k > 0 and term > 1e-18 * total:
        term *= k * q / ((trials - k + 1) * p)
        total += term
        k -= 1
    return total


@jit()
def _surely_reached(trials, p, probability):
    if p >= 1.0:
        return max(trials, 1)
    low, high = np.int64(1), min(trials, np.int64(trials * p) + 1)
    while low < high:
        middle = (low + high + 1) >> 1
        if _below(middle, trials, p) <= 1.0 - probability:
            low = middle
        else:
            high = middle - 1
    return low


@jit()
def surely_reached(trials, p, probability):
    """The greatest t with P(Bin(n, p) >= t) >= probability, and at least 1, of an array of numbers n of trials: int64.

    The probability is more than 1/2: then t is at most the median, so below the mean and 1.
    """
    found = np.empty(len(trials), np.int64)
    for i in range(len(trials)):
        found[i] = _surely_reached(trials[i], p, probability)
    return found
