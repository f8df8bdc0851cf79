"""Pair tables: which rows share at least r of their k features.

One table for each r-subset of the k features, in lexicographic order. Its key is the Rabin fingerprint of the subset's
number and of the row's r features; rows with equal keys are a bucket, and a bucket's rows are candidate pairs. So a
pair that shares r features always collides in some table, and any other only by a collision of 64-bit fingerprints.

A bucket of m rows has m (m - 1) / 2 pairs. Above a limit, every row is compared only with the bucket's first
`bucket_probe` rows, the best by priority, and the pairs that this leaves out are counted.

Source: Manku, Jain and Das Sarma 2007, section 3, for tables of permuted features; Manasse 2012 for filters [k, s, r].
Cost: C(k, r) sorts of one (key, row) table, one at a time, 24 bytes a row, and 16 to 32 bytes for each candidate pair.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numba import prange

from .launch import jit
from .scalar import advance, prepare, rabin_words


def reference(features, present, r, poly, bucket_limit, bucket_probe):
    """Candidate pairs, from the definition.

    Parameters
    ----------
    features : array of uint64, shape (rows, k)
        Rows in priority order, the best first.
    present : array of bool, shape (rows,)
        Rows that are False enter no table.
    r : int
        Features that a pair must share, from 1 to k.
    poly : uint64
        Modulus of the keys' fingerprint, without its leading term.
    bucket_limit, bucket_probe : int
        In a bucket of more than `bucket_limit` rows, rows are compared with its first `bucket_probe` rows only.

    Returns
    -------
    left, right : arrays of int64, shape (pairs,)
        left < right, in lexicographic order, each pair once. Empty without rows.
    num_large : int
        Buckets above the limit, over all tables.
    num_uncompared : int
        Pairs of rows of such a bucket that this bucket did not compare, over all tables.
    """
    pairs, num_large, num_uncompared = set(), 0, 0
    for number, subset in enumerate(combinations(range(features.shape[1]), r)):
        table: dict[int, list[int]] = {}
        for row in np.flatnonzero(present).tolist():
            key = rabin_words([number, *(features[row, j] for j in subset)], int(poly))
            table.setdefault(key, []).append(row)
        for bucket in table.values():
            num_all, large = len(bucket) * (len(bucket) - 1) // 2, len(bucket) > bucket_limit
            first = bucket[:bucket_probe] if large else bucket
            compared = {(a, b) for a in first for b in bucket if a < b}
            pairs |= compared
            num_large += large
            num_uncompared += num_all - len(compared)
    left, right = np.array(sorted(pairs), np.int64).reshape(-1, 2).T.copy()
    return left, right, num_large, num_uncompared


@jit(parallel=True)
def _keys(features, rows, subset, number, poly):
    """Key of each row: the fingerprint of the subset's number and the row's features in the subset."""
    modulus = prepare(poly)
    begin = advance(poly ^ np.uint64(number), modulus)
    keys = np.empty(len(rows), np.uint64)
    for i in prange(len(rows)):
        f = begin
        for j in subset:
            f = advance(f ^ features[rows[i], j], modulus)
        keys[i] = f
    return keys


@jit()
def _sort(keys, rows):
    """Sort (key, row) by key, equal keys in the order given.

    Fingerprints are uniform: their upper bits, about as many as there are rows, put each near its place, and insertion
    does the rest. Where many fall together (repeated keys), they are merge-sorted first: insertion then moves nothing.
    """
    n, bits = len(keys), 1
    while n >> (bits + 1):
        bits += 1
    shift = np.uint64(64 - bits)
    ends = np.zeros((1 << bits) + 1, np.uint32)  # after the scatter: where each group of equal upper bits ends
    for key in keys:
        ends[(key >> shift) + np.uint64(1)] += np.uint32(1)
    for group in range(1, len(ends)):
        ends[group] += ends[group - 1]
    sorted_keys, sorted_rows = np.empty_like(keys), np.empty_like(rows)
    for i in range(n):
        upper = keys[i] >> shift
        place = ends[upper]
        ends[upper] = place + np.uint32(1)
        sorted_keys[place], sorted_rows[place] = keys[i], rows[i]
    start = np.int64(0)
    for group in range(1 << bits):
        stop = np.int64(ends[group])
        if stop - start > 32:
            order = start + np.argsort(sorted_keys[start:stop], kind="mergesort")
            sorted_keys[start:stop], sorted_rows[start:stop] = sorted_keys[order], sorted_rows[order]
        start = stop
    for i in range(1, n):
        key, row, place = sorted_keys[i], sorted_rows[i], i
        while place > 0 and sorted_keys[place - 1] > key:
            sorted_keys[place], sorted_rows[place] = sorted_keys[place - 1], sorted_rows[place - 1]
            place -= 1
        sorted_keys[place], sorted_rows[place] = key, row
    return sorted_keys, sorted_rows


@jit()
def _bucket_pairs(keys, rows, bits, bucket_limit, bucket_probe):
    """(left << bits | right of each pair, large buckets, pairs left out) of one sorted table."""
    num_pairs = num_large = num_uncompared = 0
    for emit in (False, True):
        packed = np.empty(num_pairs if emit else 0, np.uint64)
        num_pairs = num_large = num_uncompared = 0
        start = 0
        while start < len(keys):
            stop = start + 1
            while stop < len(keys) and keys[stop] == keys[start]:
                stop += 1
            m = stop - start
            probe = m
            if m > bucket_limit:
                probe = min(bucket_probe, m)
                num_large += 1
                num_uncompared += (m - probe) * (m - probe - 1) // 2
            if emit:
                for i in range(start, start + probe):
                    upper = np.uint64(rows[i]) << np.uint64(bits)
                    for j in range(i + 1, stop):
                        packed[num_pairs] = upper | np.uint64(rows[j])
                        num_pairs += 1
            else:
                num_pairs += probe * (2 * m - probe - 1) // 2
            start = stop
    return packed, num_large, num_uncompared


@jit(parallel=True)
def _collided_before(packed, bits, features, subset):
    """Whether each pair shares a feature outside the subset that comes before the subset's last.

    If so, it shares the earlier subset with that feature in place of the last, and was found in that table.
    """
    before = np.zeros(len(packed), np.bool_)
    for p in prange(len(packed)):
        left = packed[p] >> np.uint64(bits)
        right = packed[p] ^ (left << np.uint64(bits))
        i = 0
        for j in range(subset[-1]):
            if subset[i] == j:
                i += 1
            elif features[left, j] == features[right, j]:
                before[p] = True
                break
    return before


@jit()
def _sort_unique(packed, bits):
    """The distinct values below 2**bits, sorted: radix sort by 11 bits at a time, the lowest first."""
    other = np.empty_like(packed)
    for shift in range(0, bits, 11):
        starts = np.zeros(2049, np.int64)
        for x in packed:
            starts[((x >> np.uint64(shift)) & np.uint64(2047)) + np.uint64(1)] += 1
        for digit in range(1, 2048):
            starts[digit] += starts[digit - 1]
        for x in packed:
            lowest = (x >> np.uint64(shift)) & np.uint64(2047)
            other[starts[lowest]] = x
            starts[lowest] += 1
        packed, other = other, packed
    size = 0
    for x in packed:
        if size == 0 or packed[size - 1] != x:
            packed[size] = x
            size += 1
    return packed[:size].copy()


def cpu(features, present, r, poly, bucket_limit, bucket_probe):
    """As `reference`: keys in parallel, buckets as equal neighbours of the sorted table.

    A pair that an earlier table holds is dropped where it arises, as long as no bucket was large: large buckets leave
    pairs out, which a later table may find. Other repeats go whenever the pairs found have doubled.

    Raises
    ------
    ValueError
        If there are 2**32 rows or more: pairs are sorted as one word of two 32-bit rows.
    """
    if len(features) >= 2**32:
        raise ValueError(f"pair tables hold fewer than 2**32 rows, not {len(features)}: divide the documents")
    bits = max(1, len(features).bit_length())
    rows = np.flatnonzero(present).astype(np.uint32)
    found, waiting, num_unique = [np.empty(0, np.uint64)], 0, 0
    num_large = num_uncompared = 0
    for number, subset in enumerate(combinations(range(features.shape[1]), r)):
        columns = np.array(subset, np.int64)
        keys, order = _sort(_keys(features, rows, columns, number, np.uint64(poly)), rows)
        packed, large, uncompared = _bucket_pairs(keys, order, bits, bucket_limit, bucket_probe)
        if num_large == 0:
            packed = packed[~_collided_before(packed, bits, features, columns)]
        num_large += large
        num_uncompared += uncompared
        found.append(packed)
        waiting += len(packed)
        if waiting > max(num_unique, 1 << 20):
            found = [_sort_unique(np.concatenate(found), 2 * bits)]
            waiting, num_unique = 0, len(found[0])
    packed = _sort_unique(np.concatenate(found), 2 * bits)
    left = packed >> np.uint64(bits)
    right = packed ^ (left << np.uint64(bits))
    return left.astype(np.int64), right.astype(np.int64), num_large, num_uncompared
