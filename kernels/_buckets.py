"""Buckets of equal keys, and the pairs that each bucket compares: what `pairtables`, `shared` and tasks have in common.

The rule of large buckets is that of `pairtables`.
"""

from itertools import combinations

import numpy as np

from ._cpu import jit, parallel, shares
from ._gf2 import advance, prepare
from ._launch import cuda, kernel, row_of
from ._sort import in_parts, order_of, sort_part

PAIRS_AT_ONCE = 1 << 26
"""Pairs that are written at a time: 0.5 GB."""


@parallel("uint64[:, ::1], uint32[::1], int64[::1], int64, uint64, uint64[::1]", least=1024)
def _write_keys(begin, end, features, rows, subset, number, poly, keys):
    modulus = prepare(poly)
    first = advance(poly ^ np.uint64(number), modulus)
    for i in range(begin, end):
        f = first
        for j in subset:
            f = advance(f ^ features[rows[i], j], modulus)
        keys[i] = f


def keys_of(features, rows, subset, number, poly):
    """Return the key of each row: the fingerprint of the subset's number and the row's features in the subset."""
    keys = np.empty(len(rows), np.uint64)
    _write_keys(len(rows), features, rows, subset, number, poly, keys)
    return keys


def keys_of_tables(features, r, poly):
    """Yield the keys of all rows for each pair table in turn, in host memory: uint64, shape (rows,)."""
    rows = np.arange(len(features), dtype=np.uint32)
    for number, subset in enumerate(combinations(range(features.shape[1]), r)):
        yield keys_of(features, rows, np.array(subset, np.int64), number, np.uint64(poly))


@parallel("uint64[::1], uint32[::1], int64[::1], int64[::1], uint64, int64")
def _sort_shares(begin, end, keys, rows, ends, bounds, shift, bits):
    """Sort each part, with runs of parts in parallel; see `in_parts`."""
    for share in range(begin, end):
        largest = 0
        for part in range(bounds[share], bounds[share + 1]):
            largest = max(largest, ends[part + 1] - ends[part])
        room = np.empty((1 << bits) + 1, np.uint32), np.empty(largest, np.uint64), np.empty(largest, np.uint32)
        for part in range(bounds[share], bounds[share + 1]):
            sort_part(keys[ends[part] : ends[part + 1]], rows[ends[part] : ends[part + 1]], shift, room)


def sort_by_key(keys, rows):
    """Sort (key, row) by key, equal keys in the order given; in parallel.

    Returns
    -------
    keys, rows : arrays like those given
    bounds : array of int64, shape (runs + 1,)
        Where runs of about equal length begin; no run divides a bucket.
    """
    keys, rows, ends, shift, bits = in_parts(keys, rows)
    bounds = shares(ends, 64)
    _sort_shares(len(bounds) - 1, keys, rows, ends, bounds, shift, bits)
    return keys, rows, ends[bounds]


@jit()
def _pack_bucket(rows, whole, probe, bits, packed):
    """Write left << bits | right of the pairs of a bucket's first `whole` rows, and its first `probe` with the rest."""
    num_pairs = 0
    for i in range(whole):
        upper = np.uint64(rows[i]) << np.uint64(bits)
        for j in range(i + 1, len(rows) if i < probe else whole):
            packed[num_pairs] = upper | np.uint64(rows[j])
            num_pairs += 1


@jit()
def _run_of_buckets(keys, rows, bits, bucket_limit, bucket_probe, crowded, packed):
    """Return (pairs, large buckets, pairs left out) of a run; write pairs if there is room, or mark crowded rows."""
    num_pairs = num_large = num_uncompared = start = 0
    while start < len(keys):
        stop = start + 1
        while stop < len(keys) and keys[stop] == keys[start]:
            stop += 1
        m = stop - start
        whole = min(m, max(bucket_limit, bucket_probe))  # rows that are compared all with all
        compared = whole * (whole - 1) // 2 + (m - whole) * bucket_probe
        if m > 1 and len(packed):
            _pack_bucket(rows[start:stop], whole, bucket_probe, bits, packed[num_pairs:])
        elif m > bucket_limit:
            num_large += 1
            num_uncompared += m * (m - 1) // 2 - compared
            for row in rows[start:stop]:
                crowded[row] = True
        num_pairs += compared
        start = stop
    return num_pairs, num_large, num_uncompared


@parallel("uint64[::1], uint32[::1], int64[::1], int64, int64, int64, boolean[::1], int64[:, ::1]")
def _count_buckets(begin, end, keys, rows, bounds, bits, bucket_limit, bucket_probe, crowded, counts):
    nothing = np.empty(0, np.uint64)
    for run in range(begin, end):
        some = slice(bounds[run], bounds[run + 1])
        found = _run_of_buckets(keys[some], rows[some], bits, bucket_limit, bucket_probe, crowded, nothing)
        counts[run, 0], counts[run, 1], counts[run, 2] = found


@parallel("uint64[::1], uint32[::1], int64[::1], int64, int64, int64, boolean[::1], int64[::1], uint64[::1]")
def _write_buckets(begin, end, keys, rows, bounds, bits, bucket_limit, bucket_probe, crowded, starts, packed):
    for run in range(begin, end):
        some, mine = slice(bounds[run], bounds[run + 1]), packed[starts[run] : starts[run + 1]]
        if len(mine):
            _run_of_buckets(keys[some], rows[some], bits, bucket_limit, bucket_probe, crowded, mine)


def bucket_pairs(keys, rows, bounds, bits, bucket_limit, bucket_probe, crowded):
    """Return (left << bits | right of each pair, large buckets, pairs left out) of a sorted table; mark crowded rows.

    Runs of buckets, as `sort_by_key` gives them, in parallel.
    """
    counts, starts = np.empty((len(bounds) - 1, 3), np.int64), np.zeros(len(bounds), np.int64)
    _count_buckets(len(bounds) - 1, keys, rows, bounds, bits, bucket_limit, bucket_probe, crowded, counts)
    np.cumsum(counts[:, 0], out=starts[1:])
    packed = np.empty(starts[-1], np.uint64)
    _write_buckets(len(bounds) - 1, keys, rows, bounds, bits, bucket_limit, bucket_probe, crowded, starts, packed)
    return packed, int(counts[:, 1].sum()), int(counts[:, 2].sum())


@jit()
def pairs_before(i, m):
    """Return how many pairs of m things, in lexicographic order, come before those that begin with i; m < 2**32."""
    i, m = np.uint64(i), np.uint64(m)
    return (i * (m + m - i - np.uint64(1))) >> np.uint64(1)


@jit()
def first_of(pair, m):
    """Return the first thing of a pair of m things, with pairs numbered in lexicographic order; by bisection."""
    pair, low, high = np.uint64(pair), np.uint64(0), np.uint64(m) - np.uint64(1)
    while high - low > np.uint64(1):
        middle = (low + high) >> np.uint64(1)
        if np.uint64(pairs_before(middle, m)) <= pair:
            low = middle
        else:
            high = middle
    return low


@kernel("void(int64[::1], int64[::1], uint64[::1], uint64, uint32[::1], uint64, int64, uint64[::1])")
def _write_pairs(before, starts, sizes, most, rows, bits, first, packed):
    """One thread per pair, from number `first` on: find its bucket by bisection, then write left << bits | right.

    A bucket begins with the pairs of its first `most` rows, in lexicographic order. Then come the pairs of each row
    that is compared with all later rows.
    """
    at = cuda.grid(1)
    if at >= len(packed):
        return
    pair = first + at
    bucket = row_of(before, pair)
    pair, start = np.uint64(pair - before[bucket]), np.uint64(starts[bucket])
    whole = min(sizes[bucket], most)
    num_whole = np.uint64(pairs_before(whole, whole))
    if pair < num_whole:
        left = np.uint64(first_of(pair, whole))
        right = left + np.uint64(1) + pair - np.uint64(pairs_before(left, whole))
    else:
        pair, later = pair - num_whole, sizes[bucket] - whole
        left = pair // later
        right = whole + pair - left * later
    packed[at] = np.uint64(rows[start + left]) << bits | np.uint64(rows[start + right])


def buckets_of(xp, keys, num_bits=64, offsets=None):
    """Group keys that agree in their `num_bits` highest bits, on the device; only keys of one row, given `offsets`.

    Returns
    -------
    places : array of uint32, shape (n,)
        Places of the keys that another key agrees with, bucket by bucket, ascending in each bucket.
    starts : array of int64, shape (buckets,)
        Where each bucket begins in `places`.
    sizes : array of uint64, shape (buckets,)
        2 or more.
    """
    order, begins = order_of(keys, num_bits, offsets)
    joined = xp.zeros(len(keys) + 1, bool)  # to the key before
    joined[:-1] = ~begins
    firsts, lasts = xp.flatnonzero(joined[1:] & ~joined[:-1]), xp.flatnonzero(joined[:-1] & ~joined[1:])
    sizes = lasts - firsts + 1
    return order[xp.flatnonzero(joined[1:] | joined[:-1])], xp.cumsum(sizes) - sizes, sizes.astype(np.uint64)


@kernel("void(int64[::1], uint64[::1], uint32[::1], boolean[::1])")
def _mark(starts, sizes, rows, crowded):
    """One thread per row of a sorted table: mark the row if one of the buckets has it; found by bisection.

    `starts` ends with the number of rows.
    """
    at = cuda.grid(1)
    if at >= len(rows) or at < starts[0]:
        return
    bucket = row_of(starts, at)
    if np.uint64(at - starts[bucket]) < sizes[bucket]:
        crowded[rows[at]] = True


def limited(xp, sizes, bucket_limit, bucket_probe):
    """Return (pairs that each bucket compares, numbers of the large buckets, pairs left out)."""
    one = np.uint64(1)
    whole = xp.minimum(sizes, np.uint64(max(bucket_limit, bucket_probe)))
    counts = ((whole * (whole - one)) >> one) + (sizes - whole) * np.uint64(bucket_probe)
    left_out = ((sizes * (sizes - one)) >> one) - counts
    return counts, xp.flatnonzero(sizes > np.uint64(bucket_limit)), int(xp.sum(left_out))


def mark_buckets(xp, starts, sizes, rows, crowded):
    """Mark the rows of the given buckets of a sorted table."""
    begins = xp.full(len(starts) + 1, len(rows), np.int64)
    begins[:-1] = starts
    _mark.threads(len(rows), begins, sizes, rows, crowded)


def pairs_of(xp, starts, sizes, most, counts, rows, bits):
    """Yield the `counts` pairs of each bucket, as words, `PAIRS_AT_ONCE` at a time."""
    before = xp.zeros(len(counts) + 1, np.int64)
    before[1:] = xp.cumsum(counts)
    total = int(before[-1])
    for first in range(0, total, PAIRS_AT_ONCE):
        packed = xp.empty(min(PAIRS_AT_ONCE, total - first), np.uint64)
        _write_pairs.threads(len(packed), before, starts, sizes, most, rows, bits, first, packed)
        yield packed
