"""Pair tables: which rows share at least r of their k features.

One table for each r-subset of the k features, in lexicographic order. Its key is the Rabin fingerprint of the subset's
number and of the row's r features; rows with equal keys are a bucket, and a bucket's rows are candidate pairs. So a
pair that shares r features always collides in some table, and any other only by a collision of 64-bit fingerprints.

A bucket of m rows has m (m - 1) / 2 pairs. With its rows numbered from 0 by priority, row j is compared with row i < j
exactly when i < bucket_probe or j < bucket_limit: the first `bucket_limit` rows all with all, a later one with the
first `bucket_probe`. Whether two rows are compared does not depend on later rows, so adding rows at the end never
undoes a pair. A bucket of more than `bucket_limit` rows is large; its rows are crowded, and the pairs that it leaves
out are counted.

Source: Manasse 2012, sections 3.1 and 6.1, for the tables; Broder 2000, section 3, for filters [k, s, r].
Cost: C(k, r) sorts of one (key, row) table, one at a time, 24 bytes per row: on the CPU rows are scattered once, by the
highest bits of their keys, into parts that are sorted in a core's cache. 16 to 32 bytes for each candidate pair; on a
GPU see `gpu`.
"""

from __future__ import annotations

from itertools import combinations, islice, pairwise

import numpy as np

from ._buckets import (
    PAIRS_AT_ONCE,
    bucket_pairs,
    buckets_of,
    compare_buckets,
    keys_of,
    pairs_of_buckets,
    sort_by_key,
)
from ._cpu import jit, parallel, types
from ._gf2 import advance_by_tables, byte_tables, multiply, power_of_x, rabin_words
from ._launch import TABLES, Device, check_rows, cuda, kernel, load, most_rows, namespace, on_device, to_host
from ._matches import DistinctPairs


def _subsets(k, r, tables):
    """(number, columns) of some tables, or of all."""
    subsets = enumerate(combinations(range(k), r))
    return subsets if tables is None else islice(subsets, tables.start, tables.stop, tables.step)


def reference(features, present, r, poly, bucket_limit, bucket_probe, tables=None):
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
        The first `bucket_limit` rows of a bucket are compared all with all, each later row with the first
        `bucket_probe`.
    tables : range, optional
        Numbers of the tables to look into; all, unless given. The answers of several ranges together are that of all,
        but that a pair is in each which finds it.

    Returns
    -------
    left, right : arrays of int64, shape (pairs,)
        left < right, in lexicographic order, each pair once. Empty without rows.
    num_large : int
        Buckets above the limit, over all tables.
    num_uncompared : int
        Pairs of rows of such a bucket that this bucket did not compare, over all tables.
    crowded : array of bool, shape (rows,)
        Whether each row is in such a bucket of any table.
    """
    buckets: list[list[int]] = []
    for number, subset in _subsets(features.shape[1], r, tables):
        table: dict[int, list[int]] = {}
        for row in np.flatnonzero(present).tolist():
            key = rabin_words([number, *(features[row, j] for j in subset)], int(poly))
            table.setdefault(key, []).append(row)
        buckets += table.values()
    pairs, *counts = pairs_of_buckets(buckets, bucket_limit, bucket_probe, len(features))
    return *np.array(sorted(set(pairs)), np.int64).reshape(-1, 2).T.copy(), *counts


@jit()
def _is_held(pair, bits, features, columns):
    """Return whether an earlier table holds a pair for certain; see `_collided_before`."""
    left = pair >> bits
    right = pair ^ (left << bits)
    i = j = np.uint64(0)
    last, found = np.uint64(columns[len(columns) - 1]), False
    while j < last:
        same = features[left, j] == features[right, j]
        if np.uint64(columns[i]) != j:
            found = found or same
        elif same:
            i += np.uint64(1)
        else:
            return False
        j += np.uint64(1)
    return found


Device(_is_held.py_func)


@parallel("uint64[::1], uint64, uint64[:, ::1], int64[::1], boolean[::1]", least=1024)
def _mark_collided(begin, end, packed, bits, features, columns, before):
    for p in range(begin, end):
        before[p] = _is_held(packed[p], bits, features, columns)


def _collided_before(packed, bits, features, subset):
    """Return whether an earlier table holds each pair for certain: that of the subset with another feature for its
    last.

    It does when the pair shares that feature and the subset's others. (Sharing the key alone is not enough: keys are
    fingerprints, and may collide.)
    """
    before = np.zeros(len(packed), np.bool_)
    _mark_collided(len(packed), packed, np.uint64(bits), features, subset, before)
    return before


def _row_bits(features):
    """Bits of a row number, so that a pair is one word."""
    check_rows(len(features), "documents")
    return max(1, len(features).bit_length())


def cpu(features, present, r, poly, bucket_limit, bucket_probe, tables=None):
    """As `reference`: keys in parallel, buckets as equal neighbours of the sorted table.

    A pair that an earlier table holds is dropped where it arises, as long as no bucket was large: large buckets leave
    pairs out, which a later table may find. Other repeats go whenever the pairs found have doubled.

    Raises
    ------
    ResourceError
        If there are 2**32 - 1 rows or more: pairs are sorted as one word of two 32-bit rows.
    """
    bits = _row_bits(features)
    rows, crowded = np.flatnonzero(present).astype(np.uint32), np.zeros(len(features), bool)
    found, num_large, num_uncompared = DistinctPairs(bits=bits, with_distances=False), 0, 0
    from_first = tables is None or tables.start == 0  # or what an earlier table's limit left out may be lost
    for number, subset in _subsets(features.shape[1], r, tables):
        columns = np.array(subset, np.int64)
        keys, order, runs = sort_by_key(keys_of(features, rows, columns, number, np.uint64(poly)), rows)
        packed, large, uncompared = bucket_pairs(keys, order, runs, bits, bucket_limit, bucket_probe, crowded)
        if num_large == 0 and from_first:
            packed = packed[~_collided_before(packed, bits, features, columns)]
        num_large += large
        num_uncompared += uncompared
        found.add(packed)
    return *found.result(), num_large, num_uncompared, crowded


_THREADS = 1 << 18  # about as many as a device runs at a time
_SLICE = 1 << 30  # bytes of features whose keys are computed at a time
_TOGETHER = 1 << 22  # keys of tables that are sorted together
_ROW_BYTES = 36  # most that a row takes while its table is sorted; see `gpu`


@kernel("void(uint64[:,::1], uint64, uint32[::1], int64[::1], uint64, uint64[::1], uint64[::1])")
def _row_keys(features, first, rows, columns, begin, tables, keys):
    """One thread a row: its key, from `begin`, the fingerprint of the subset's number, on. `features` begin with row
    `first`.

    Threads go on to further rows, so that a block loads its tables once.
    """
    modulus = cuda.shared.array(TABLES, types.uint64)
    load(tables, modulus)
    at = cuda.grid(1)
    while at < len(keys):
        f, row = begin, np.uint64(rows[at]) - first
        for i in range(len(columns)):
            f = advance_by_tables(f ^ features[row, columns[i]], modulus)
        keys[at] = f
        at += cuda.gridsize(1)


@kernel("void(uint64[::1], uint64, uint64[:,::1], int64[::1], boolean[::1])")
def _is_new(packed, bits, features, columns, new):
    """One thread a pair: whether no earlier table holds it for certain."""
    at = cuda.grid(1)
    if at < len(packed):
        new[at] = not _is_held(packed[at], bits, features, columns)


def _present_rows(xp, features, present):
    """Return the rows that enter tables, slice by slice of the features: (where it begins, where it ends, its rows)."""
    everyone = isinstance(present, np.ndarray) and present.all()
    rows = xp.arange(len(present)) if everyone else xp.flatnonzero(on_device(present))
    rows, ends = rows.astype(np.uint32), [*range(0, len(features), max(1, _SLICE // (8 * features.shape[1])))]
    ends.append(len(features))
    if len(ends) <= 2:
        return [(0, len(features), rows)]
    bounds = to_host(xp.searchsorted(rows, on_device(np.array(ends, np.uint32)))).tolist()
    return [(*some, rows[slice(*bound)]) for some, bound in zip(pairwise(ends), pairwise(bounds), strict=True)]


def _keyed_rows(xp, features, slices, several, moduli, split, upper):
    """Return (keys, rows, where each table begins): table by table, each in the order of rows.

    Only the keys whose `split` highest bits are `upper` are there. `slices` are the `_present_rows`. `several` has the
    columns of each table, and the beginning of its keys.
    """
    keys, found, ends = [], [], [0]
    for columns, begin in several:
        for first, last, rows in slices:
            some, made = on_device(features[first:last]), xp.empty(len(rows), np.uint64)
            _row_keys.threads(min(len(rows), _THREADS), some, np.uint64(first), rows, columns, begin, moduli, made)
            if split:
                of_pass = xp.flatnonzero(made >> np.uint64(64 - split) == np.uint64(upper))
                rows, made = rows[of_pass], made[of_pass]
            keys.append(made)
            found.append(rows)
        ends.append(sum(map(len, keys)))
    keys, rows = (parts[0] if len(parts) == 1 else xp.concatenate(parts) for parts in (keys, found))
    return keys, rows, np.array(ends)


def _table(xp, *arguments):
    """Return the buckets of two rows or more of some tables: (their rows, bucket by bucket; where each begins; its
    size), and the number of rows in all.
    """
    keys, rows, ends = _keyed_rows(xp, *arguments)
    places, starts, sizes = buckets_of(xp, keys, offsets=None if len(ends) == 2 else on_device(ends))
    return rows[places], starts, sizes, len(rows)


def gpu(features, present, r, poly, bucket_limit, bucket_probe, tables=None, max_rows=None):
    """As `reference`: keys, radix sort, buckets and pairs, each step by all threads.

    It goes table by table. Where there are few rows, tables are sorted together, up to `_TOGETHER` keys: each table
    would cost several waits of the host, which take longer than its sort. Repeats of a pair are then dropped by
    sorting alone.

    Features in device memory stay there, and so do those in host memory (sketches that outgrew the device): these go
    to the device slice by slice, once a table, and repeats of their pairs are dropped by sorting alone.

    500 million documents, k = 6, on a card of 80 GB::

        features               6 * 8 bytes                        24 GB
        present, crowded       1 byte each                         1 GB
        rows and keys          4 + 8 bytes                         6 GB
        order                  8 for the words that are sorted,
                               8 for their other buffer or else
                               4 for places, 11 for flags and
                               their sums, and 5 for what is
                               flagged                            11 GB

    While a table is sorted that is 42 GB together, at other times less. The 38 GB that are left hold 1.5 billion
    pairs with their repeats: 8 bytes each once found, 25 while repeats are dropped, which is whenever the pairs found
    have doubled, as in `cpu`. Where that is not enough, CuPy raises its OutOfMemoryError; a lower
    `bucket_limit` leaves fewer pairs.

    Parameters
    ----------
    features : array of uint64, shape (rows, k)
        NumPy, in host memory, or CuPy.
    max_rows : int, optional
        Rows to sort at a time; by default as many rows as fit in half of the free memory. A larger table is built in
        passes: in pass p, from the keys whose highest bits are p. So a bucket is always whole and the answer the same,
        and as keys are uniform, passes are about equal; but one whose bucket is larger than `max_rows` exceeds it.

    Raises
    ------
    ResourceError
        If there are 2**32 - 1 rows or more.
    """
    xp = namespace()
    bits = _row_bits(features)
    slices, poly = _present_rows(xp, features, present), np.uint64(poly)
    moduli, x64 = on_device(byte_tables(poly)), power_of_x(np.uint64(64), poly)
    passes = -(-len(features) // (max_rows or most_rows(_ROW_BYTES)))
    split = max(0, passes - 1).bit_length()
    resident = isinstance(features, xp.ndarray)
    if resident:
        features = on_device(features)
    found, num_large, num_uncompared = DistinctPairs(xp, bits, with_distances=False, at_least=PAIRS_AT_ONCE), 0, 0
    crowded = xp.zeros(len(features), bool)
    together = max(1, min(_TOGETHER, max_rows or _TOGETHER) // max(1, len(features))) if resident and not split else 1
    from_first = together == 1 and (tables is None or tables.start == 0)  # as in `cpu`
    subsets = _subsets(features.shape[1], r, tables)
    while some := list(islice(subsets, together)):
        columns = on_device(np.array([subset for _, subset in some], np.int64))
        begins = [np.uint64(multiply(poly ^ np.uint64(number), x64, poly)) for number, _ in some]
        several = [(columns[number], begin) for number, begin in enumerate(begins)]
        filtered = resident and num_large == 0 and from_first
        for upper in range(1 << split):
            rows, starts, sizes, num_rows = _table(xp, features, slices, several, moduli, split, upper)
            large, uncompared, _, written = compare_buckets(
                xp, rows, starts, sizes, bits, bucket_limit, bucket_probe, crowded
            )
            num_large += large
            num_uncompared += uncompared
            if bucket_limit < 1:  # which a row alone exceeds
                num_large += num_rows - len(rows)
                for *_, everyone in slices:
                    crowded[everyone] = True
            for packed in written:
                if filtered:
                    new = xp.empty(len(packed), bool)
                    _is_new.threads(len(packed), packed, np.uint64(bits), features, columns[0], new)
                    packed = packed[new]
                found.add(packed)
            del rows, starts, sizes, written  # the next sort needs the room
    return *map(on_device, found.result()), num_large, num_uncompared, crowded
