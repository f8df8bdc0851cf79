"""Consistent weighted samples by darts: two weighted sets have a sample in common with the probability of their
resemblance, and the time hardly grows with the number of samples.

    J_W(A, B) = sum over f of min(a[f], b[f]) / sum over f of max(a[f], b[f])

Each feature owns a quadrant (weight, rank), into which darts are thrown at random, one to each 2**40 unit squares on
average, the same whatever the document. A feature of weight w holds the darts at places below w. Each dart belongs to
one of the samples by chance; sample j of a document is its dart of least rank, ties to the smaller name. The least dart
of two documents together is in both with the probability J_W, so they share it with that.

Darts are found where they are wanted: the quadrant is divided into regions (n, m), n and m from 0,

    weights from 256 (2**n - 1) to 256 (2**(n + 1) - 1), ranks from 2**32 (2**m - 1) to 2**32 (2**(m + 1) - 1)

and each region into 2**(n + m) cells of 2**40 squares, in 2**a columns of weights and 2**(n + m - a) rows of ranks,
where a = min(n + 8, m + max(0, n - 32)). With h = mix64(feature ^ salt), g = mix64(h + (64 n + m + 1) G) is of the
region, and z = mix64(g ^ (column << (n + m - a) | row)) of the cell. It holds as many darts as entries of a table do
not exceed z, floor(2**64 P(N <= q)) for q from 0 to 20, N a Poisson variable of mean 1. Of dart q, counted from 0, e =
mix64(z + (q + 1) G): its place in the column is the lowest n + 8 - a bits of e, its rank in the row the bits after them
up to bit 39, its sample floor(samples (e >> 40) / 2**24), its name mix64(e), which is stored. Ranks end at 2**63 - 1: a
sample has no dart below that with a probability under exp(-2**23 / samples), and holds `EMPTY` then, as rows without
weight do.

How far ranks are looked at changes nothing, once each sample has a dart: first to where k ln k + 2 k darts of k samples
are expected, then by half as much again.

Source: Christiani 2020 (DartMinHash: Fast Sketching for Weighted Sets), there with places and ranks that are real
numbers and a base of ranks that goes by the number of samples.

Cost: for k samples and n features of about the same weight about k ln k + 2 k darts, and a cell or two a feature.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import count, pairwise

import numpy as np

from ._constants import constants
from ._cpu import jit, shares
from ._gf2 import mix64, mixed
from ._launch import Device, bounds_of, cuda, kernel, namespace, on_device, row_of
from ._logarithm import log2, table
from ._ragged import by_rows, sums_before

EMPTY = np.uint64(2**64 - 1)
FARTHEST = 2**63 - 1
"""No dart has this rank or a greater one."""

_STEP = np.uint64(0x9E3779B97F4A7C15)  # G, SplitMix64's increment
_LN_2 = 2977044471  # floor(2**32 ln 2)


@cache
def poisson():
    """floor(2**64 P(N <= q)) for q from 0 to 20, N a Poisson variable of mean 1: array of uint64, shape (21,)."""
    terms = [Fraction(1)]  # 1 / q!
    for q in range(1, 40):
        terms.append(terms[-1] / q)
    e = sum(terms)  # off by less than 2**-150
    return np.array([sum(terms[: q + 1]) / e * 2**64 // 1 for q in range(21)], np.uint64)


def first_darts(samples):
    """k ln k + 2 k, rounded down, for k samples."""
    return 2 * samples + (samples * int(log2(np.uint64(samples), table())) * _LN_2 >> 64)


def reference(features, offsets, weights, salt, samples):
    """Samples, straight from the definition.

    Parameters
    ----------
    features : array of uint64, shape (n,)
        Of each row, each once, in any order.
    offsets : array of int64, shape (rows + 1,)
    weights : array of int64, shape (n,)
        At least 0, and of each row at most 2**48 together.
    salt : uint64
    samples : int
        At most 2**24.

    Returns
    -------
    array of uint64, shape (rows, samples)
    """
    step = int(_STEP)
    thresholds = [int(each) for each in poisson()]

    def regions(weight, farthest):
        for n in count():
            if 256 * (2**n - 1) >= weight:
                return
            for m in count():
                if 2**32 * (2**m - 1) >= farthest:
                    break
                yield n, m

    def darts(feature, weight, farthest):
        """(sample, rank, name) of the darts of a feature."""
        h = mixed(feature ^ int(salt))
        for n, m in regions(weight, farthest):
            a = min(n + 8, m + max(0, n - 32))
            wide, high = 2 ** (n + 8 - a), 2 ** (32 - n + a)
            g = mixed(h + (64 * n + m + 1) * step)
            columns = range(256 * (2**n - 1), min(weight, 256 * (2 ** (n + 1) - 1)), wide)
            rows = range(2**32 * (2**m - 1), min(farthest, 2**32 * (2 ** (m + 1) - 1)), high)
            for column, left in enumerate(columns):
                for row, low in enumerate(rows):
                    z = mixed(g ^ (column << n + m - a | row))
                    for q in range(sum(z >= each for each in thresholds)):
                        e = mixed(z + (q + 1) * step)
                        place, rank = left + e % wide, low + e % 2**40 // wide
                        if place < weight and rank < farthest:
                            yield samples * (e >> 40) >> 24, rank, mixed(e)

    sketches = np.full((len(offsets) - 1, samples), EMPTY)
    for row, (start, stop) in enumerate(pairwise(offsets.tolist())):
        held = [(int(features[i]), int(weights[i])) for i in range(start, stop) if weights[i] > 0]
        found: dict[int, tuple[int, int]] = {}
        farthest = (samples << 40) // max(1, sum(weight for _, weight in held)) + 1
        while held and len(found) < samples and farthest < 2**64:
            found = {}
            for feature, weight in held:
                for j, rank, name in darts(feature, weight, min(farthest, FARTHEST)):
                    found[j] = min(found.get(j, (rank, name)), (rank, name))
            farthest *= 2
        for j, (_, name) in found.items():
            sketches[row, j] = name
    return sketches


@jit()
def _shape(n, m, weight, farthest):
    """Return, for a region: (bits of a column's width, bits of the number of rows, wanted columns, wanted rows)."""
    a = m + (n - np.uint64(32) if n > np.uint64(32) else np.uint64(0))
    a = min(a, n + np.uint64(8))
    wide, below = n + np.uint64(8) - a, n + m - a
    high = np.uint64(40) - wide
    one = np.uint64(1)
    within = weight - (((one << n) - one) << np.uint64(8))
    columns = min(one << a, ((within - one) >> wide) + one)
    within = farthest - (((one << m) - one) << np.uint64(32))
    rows = min(one << below, ((within - one) >> high) + one)
    return wide, below, columns, rows


@jit()
def _of_region(h, n, m):
    return mix64(h + (np.uint64(64) * n + m + np.uint64(1)) * _STEP)


@jit()
def _dart(z, q, n, m, column, row, wide):
    """(word, place, rank) of a cell's dart q."""
    one = np.uint64(1)
    e = mix64(z + (q + one) * _STEP)
    place = (((one << n) - one) << np.uint64(8)) + (column << wide) + (e & ((one << wide) - one))
    rank = (((one << m) - one) << np.uint64(32)) + (row << (np.uint64(40) - wide))
    return e, place, rank + ((e & np.uint64((1 << 40) - 1)) >> wide)


@jit()
def _hit(ranks, names, j, rank, e, naming):
    """Keep a dart of sample j if its rank, or else its name, is the least so far."""
    if rank <= ranks[j]:
        name = mix64(e)
        if rank < ranks[j] or name < names[j]:
            ranks[j], names[j] = rank, name


def _hit_by_atomics(ranks, names, j, rank, e, naming):
    """Do the same on a device, whose threads find the least ranks first; then, if `naming`, the least names.

    A row's darts wait for one another only where a sample of it is met by two at once.
    """
    if naming == np.uint64(0):
        cuda.atomic.min(ranks, j, rank)
    elif rank == ranks[j]:
        cuda.atomic.min(names, j, np.uint64(mix64(e)))


Device(_hit_by_atomics, _hit.py_func)


@jit()
def _throw(h, weight, farthest, thresholds, ranks, names, naming):
    """Throw the darts of a feature whose ranks are below `farthest`."""
    one, samples = np.uint64(1), np.uint64(len(ranks))
    n = np.uint64(0)
    while (((one << n) - one) << np.uint64(8)) < weight:
        m = np.uint64(0)
        while (((one << m) - one) << np.uint64(32)) < farthest:
            wide, below, columns, rows = _shape(n, m, weight, farthest)
            wide, below, columns, rows = np.uint64(wide), np.uint64(below), np.uint64(columns), np.uint64(rows)
            g = np.uint64(_of_region(h, n, m))
            column = np.uint64(0)
            while column < columns:
                row = np.uint64(0)
                while row < rows:
                    z = np.uint64(mix64(g ^ ((column << below) | row)))
                    q = np.uint64(0)
                    while q < np.uint64(21) and z >= thresholds[q]:
                        e, place, rank = _dart(z, q, n, m, column, row, wide)
                        if np.uint64(place) < weight and np.uint64(rank) < farthest:
                            e, rank = np.uint64(e), np.uint64(rank)
                            j = (samples * (e >> np.uint64(40))) >> np.uint64(24)
                            _hit(ranks, names, j, rank, e, naming)
                        q += one
                    row += one
                column += one
            m += one
        n += one


@jit()
def _farther(farthest):
    """Half as far again and more, at most `FARTHEST`."""
    return min(farthest + (farthest >> np.uint64(1)) + np.uint64(1), np.uint64(FARTHEST))


@by_rows("uint64[::1], int64[::1], int64[::1], uint64, uint64, uint64[::1], uint64[:, ::1]")
def _throw_rows(begin, end, features, offsets, weights, salt, expected, thresholds, sketches):
    samples = sketches.shape[1]
    ranks = np.empty(samples, np.uint64)
    for d in range(begin, end):
        names = sketches[d]
        names[:] = EMPTY
        total = np.int64(0)
        for i in range(offsets[d], offsets[d + 1]):
            total += weights[i]
        if total <= 0:
            continue
        farthest = (expected << np.uint64(40)) // np.uint64(total) + np.uint64(1)
        while True:
            ranks[:] = np.uint64(FARTHEST)
            for i in range(offsets[d], offsets[d + 1]):
                if weights[i] > 0:
                    h = mix64(features[i] ^ salt)
                    _throw(h, np.uint64(weights[i]), farthest, thresholds, ranks, names, np.uint64(0))
            if farthest == np.uint64(FARTHEST) or ranks.max() < np.uint64(FARTHEST):
                break
            farthest = _farther(farthest)


def cpu(features, offsets, weights, salt, samples):
    """As `reference`; rows in parallel, the darts of each thrown again, farther, where a sample got none."""
    sketches = np.empty((len(offsets) - 1, samples), np.uint64)
    expected = np.uint64(first_darts(samples))
    _throw_rows(shares(offsets), features, offsets, weights, salt, expected, poisson(), sketches)
    return sketches


Device(_throw.py_func)

_SIGNATURE = (
    "void(uint64[::1], int64[::1], int64[::1], uint64, uint64[::1], uint64[::1], uint64[:,::1], uint64[:,::1], uint64)"
)


@kernel(_SIGNATURE, block=128)
def _throw_all(features, offsets, weights, salt, farthest, thresholds, ranks, names, naming):
    """Find the ranks of the darts, or the names of darts with the least rank; one thread per feature."""
    at = offsets[0] + cuda.grid(1)
    if at < offsets[len(offsets) - 1] and weights[at] > 0:
        d, h = row_of(offsets, at), np.uint64(mix64(features[at] ^ salt))
        _throw(h, np.uint64(weights[at]), farthest[d], thresholds, ranks[d], names[d], naming)


def gpu(features, offsets, weights, salt, samples):
    """As `reference`; features in parallel, twice: for the least rank of each sample, then for that dart's name.

    If a sample of a row got no dart, its darts are thrown again, farther; other threads end at once. This is done
    once without asking, and then as often as the host, which waits, finds that samples are missing: mostly not at all.
    """
    xp = namespace()
    first, last = bounds_of(offsets)
    features, offsets, weights = (on_device(array) for array in (features, offsets, weights))
    before = sums_before(weights)
    totals = (before[offsets[1:]] - before[offsets[:-1]]).astype(np.uint64)
    (thresholds,) = constants(poisson)
    ranks = xp.full((len(offsets) - 1, samples), np.uint64(FARTHEST))
    names = xp.full(ranks.shape, EMPTY)
    end = np.uint64(first_darts(samples) << 40) // xp.maximum(totals, np.uint64(1)) + np.uint64(1)
    end = xp.where(totals == np.uint64(0), np.uint64(0), end)

    def throw(farthest, naming):
        where = salt, farthest, thresholds, ranks, names, np.uint64(naming)
        _throw_all.threads(last - first, features, offsets, weights, *where)

    throw(end, False)
    for time in count():
        lacking = (ranks == np.uint64(FARTHEST)).any(axis=1) & (end > np.uint64(0)) & (end < np.uint64(FARTHEST))
        if time and not lacking.any():
            break
        farther = xp.minimum(end + (end >> np.uint64(1)) + np.uint64(1), np.uint64(FARTHEST))
        throw(xp.where(lacking, farther, np.uint64(0)), False)
        end = xp.where(lacking, farther, end)
    throw(end, True)
    return names
