"""Weights of features, as integers in 256ths, so that every machine gives the same bits.

    logarithmic   1 + log2(tf)                            tf: how often the document has the feature
    inverse       1 + log2((N + 1) / (df + 1))            df: how many of N documents have it

Each logarithm is floor(256 log2 n), exactly: the length in bits of n**256, less 1. So a weight is below its real value
by less than 1/256 (inverse: off by less than that). Every weight is at least 1: no document with features is without
weight. With n < 2**40 it is at most 41, and 2**48 occurrences in a document stay below the bound of `simhash`.

TF-IDF is `inverse` for each occurrence, so a feature weighs tf times as much. The 1 + in both terms is the usual
smoothing, which also gives features that the table lacks (df = 0) a weight: the greatest.

Source: Manning, Raghavan and Schütze 2008 (Introduction to Information Retrieval), 6.4.1 (1 + log tf) and 6.2 (idf,
TF-IDF).
Cost: one or two look-ups a feature.
"""

from __future__ import annotations

import math
from collections import Counter
from functools import cache
from itertools import pairwise

import numpy as np
from numba import prange

from ._gf2 import mix64
from ._launch import jit, namespace, shares
from .resemblance import ordered

ONE = 256
"""The weight 1."""


def counts_reference(values, offsets):
    """Each row's distinct values, in the order in which they first occur, and how often the row holds each.

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
    new_offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    distinct = np.array([x for row in rows for x in row], np.uint64)
    return distinct, new_offsets, np.array([n for row in rows for n in row.values()], np.int64)


@jit(parallel=True)
def _count_rows(values, offsets, bounds, out, counts, sizes):
    """Write each row's distinct values and their counts to where the row begins, and their number to `sizes`."""
    base = offsets[0]
    for p in prange(len(bounds) - 1):
        longest = 0
        for d in range(bounds[p], bounds[p + 1]):
            longest = max(longest, offsets[d + 1] - offsets[d])
        table = np.empty(4 * longest + 4, np.int32)
        for d in range(bounds[p], bounds[p + 1]):
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


@jit(parallel=True)
def _close_gaps(values, counts, offsets, bounds, new_offsets, new_values, new_counts):
    """Copy what `_count_rows` left at the beginning of each row to its place."""
    for p in prange(len(bounds) - 1):
        for d in range(bounds[p], bounds[p + 1]):
            source, size = offsets[d] - offsets[0], new_offsets[d + 1] - new_offsets[d]
            new_values[new_offsets[d] : new_offsets[d + 1]] = values[source : source + size]
            new_counts[new_offsets[d] : new_offsets[d + 1]] = counts[source : source + size]


def counts_cpu(values, offsets):
    """As `counts_reference`; rows in parallel, each with a hash table. Rows of at most 2**31 - 1 values."""
    bounds, n = shares(offsets), offsets[-1] - offsets[0]
    out, counts, sizes = np.empty(n, np.uint64), np.empty(n, np.int64), np.empty(len(offsets) - 1, np.int64)
    _count_rows(values, offsets, bounds, out, counts, sizes)
    new_offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    new_values, new_counts = np.empty(new_offsets[-1], np.uint64), np.empty(new_offsets[-1], np.int64)
    _close_gaps(out, counts, offsets, bounds, new_offsets, new_values, new_counts)
    return new_values, new_offsets, new_counts


def counts_gpu(values, offsets):
    """As `counts_reference`; all rows sorted together, and what is distinct sorted back."""
    xp = namespace()
    values, offsets = xp.asarray(values), xp.asarray(offsets)
    order, begins = ordered(values, offsets)
    before = xp.zeros(len(begins) + 1, np.int64)
    before[1:] = xp.cumsum(begins)
    counts = xp.diff(xp.append(xp.flatnonzero(begins), xp.asarray(len(begins))))
    first = order[begins]  # where each value first occurs, as the sorts are stable
    back = xp.argsort(first, kind="stable")
    return values[int(offsets[0]) :][first[back]], before[offsets - offsets[0]], counts[back]


def logarithmic_reference(counts):
    """Weights of counts.

    Parameters
    ----------
    counts : array of int64
        From 1 to 2**40 - 1.

    Returns
    -------
    array of int64, of the same shape
        256 + floor(256 log2(count)).
    """
    return np.array([ONE + (int(n) ** 256).bit_length() - 1 for n in counts], np.int64)


@cache
def _least():
    """Entry k is the least integer whose logarithm is k / 256 or more: the 256th root of 2**k, rounded up."""
    least = [1]
    for k in range(1, 256 * 40):
        root = 2**k - 1
        for _ in range(8):
            root = math.isqrt(root)
        least.append(root + 1)
    return np.array(least, np.int64)


def logarithmic_cpu(counts):
    """As `logarithmic_reference`; small counts looked up, others by bisection among the least of each logarithm."""
    small = np.searchsorted(_least(), np.arange(1024), side="right") + (ONE - 1)
    weights, large = small[np.minimum(counts, 1023)], counts > 1023
    weights[large] = np.searchsorted(_least(), counts[large], side="right") + (ONE - 1)
    return weights


def logarithmic_gpu(counts):
    """As `logarithmic_cpu`."""
    xp = namespace()
    return xp.searchsorted(xp.asarray(_least()), xp.asarray(counts), side="right") + (ONE - 1)


def inverse(frequencies, documents):
    """Weights of features by the number of documents that hold them.

    Parameters
    ----------
    frequencies : array of int64
        From 0 to `documents`.
    documents : int
        N, at most 2**40 - 2.

    Returns
    -------
    array of int64, of the same shape
        256 + floor(256 log2(N + 1)) - floor(256 log2(df + 1)): 256 for a feature of every document.
    """
    return ONE + logarithmic_cpu(np.array([documents + 1])) - logarithmic_cpu(frequencies + 1)


def occurrences_reference(values):
    """How often each value occurs; of the distinct values of rows, in how many rows.

    Parameters
    ----------
    values : array of uint64, shape (n,)

    Returns
    -------
    distinct : array of uint64, shape (m,)
        Ascending.
    counts : array of int64, shape (m,)
    """
    found = Counter(values.tolist())
    return np.array(sorted(found), np.uint64), np.array([found[x] for x in sorted(found)], np.int64)


def occurrences_cpu(values):
    """As `occurrences_reference`; counted in a hash table as one row, then what is distinct sorted."""
    distinct, _, counts = counts_cpu(values, np.array([0, len(values)]))
    order = np.argsort(distinct)
    return distinct[order], counts[order]


def occurrences_gpu(values):
    """As `occurrences_reference`; by sorting all."""
    xp = namespace()
    return xp.unique(xp.asarray(values), return_counts=True)


def merge(tables):
    """The occurrences of batches, at least one, as those of all their values.

    >>> one = np.array([3, 5], np.uint64), np.array([1, 2])
    >>> merge([one, (np.array([5], np.uint64), np.array([1]))])
    (array([3, 5], dtype=uint64), array([1, 3]))
    """
    values, counts = (np.concatenate(arrays) for arrays in zip(*tables, strict=True))
    order = np.argsort(values, kind="stable")
    distinct, first = np.unique(values[order], return_index=True)
    return distinct, np.add.reduceat(counts[order], first) if len(first) else counts


def look_up_reference(features, table, table_weights, absent):
    """Each feature's weight.

    Parameters
    ----------
    features : array of uint64
    table : array of uint64, shape (m,)
        Ascending, each once.
    table_weights : array of int64, shape (m,)
    absent : int
        The weight of features that the table lacks.

    Returns
    -------
    array of int64, of the shape of `features`
    """
    weight_of = dict(zip(table.tolist(), table_weights.tolist(), strict=True))
    return np.array([weight_of.get(f, absent) for f in features.tolist()], np.int64)


@jit(parallel=True)
def _look_up(features, table, table_weights, absent, shift, begins):
    weights = np.empty(len(features), np.int64)
    for i in prange(len(features)):
        f = features[i]
        upper = f >> shift
        low, high = begins[upper], begins[upper + np.uint64(1)]
        stop = high
        while low < high:
            middle = (low + high) >> np.int64(1)
            if table[middle] < f:
                low = middle + np.int64(1)
            else:
                high = middle
        weights[i] = table_weights[low] if low < stop and table[low] == f else absent
    return weights


def look_up_cpu(features, table, table_weights, absent):
    """As `look_up_reference`; features in parallel, by bisection among those that agree in some upper bits.

    So many bits that there are about as many beginnings to be found as there are features, or places in the table.
    """
    bits = max(1, min(len(table), len(features)).bit_length())
    shift = np.uint64(64 - bits)
    begins = np.searchsorted(table, np.arange(2**bits, dtype=np.uint64) << shift)
    return _look_up(features, table, table_weights, absent, shift, np.append(begins, len(table)))


def look_up_gpu(features, table, table_weights, absent):
    """As `look_up_reference`; features in parallel, by bisection."""
    xp = namespace()
    features, table, table_weights = xp.asarray(features), xp.asarray(table), xp.asarray(table_weights)
    if len(table) == 0:
        return xp.full(len(features), absent, np.int64)
    place = xp.minimum(xp.searchsorted(table, features), len(table) - 1)
    return xp.where(table[place] == features, table_weights[place], np.int64(absent))
