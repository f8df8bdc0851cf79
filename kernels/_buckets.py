"""Buckets of equal keys, and the pairs that each bucket compares: what `pairtables`, `shared` and tasks have in common.

The rule of large buckets is that of `pairtables`.
"""

from itertools import combinations

import numpy as np

from ._cpu import jit, parallel, shares
from ._gf2 import advance, prepare
from ._launch import cuda, fetch_numbers, kernel, row_of
from ._ragged import by_rows, longest_row, sums_before
from ._sort import firsts_of, in_parts, order_of, sort_part

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


@by_rows("uint64[::1], uint32[::1], int64[::1], uint64, int64")
def _sort_parts(begin, end, keys, rows, ends, shift, bits):
    """Sort each part, with runs of parts in parallel; see `in_parts`."""
    largest = longest_row(ends, begin, end)
    room = np.empty((1 << bits) + 1, np.uint32), np.empty(largest, np.uint64), np.empty(largest, np.uint32)
    for part in range(begin, end):
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
    _sort_parts(shares(ends, 64), keys, rows, ends, shift, bits)
    return keys, rows, ends[shares(ends, 64)]


def pairs_of_buckets(buckets, bucket_limit, bucket_probe, num_rows):
    """Return the pairs that some lists of rows compare, straight from the definition, and what they leave out.

    Returns
    -------
    pairs : list of tuple
        (left, right), bucket by bucket.
    num_large, num_uncompared, crowded
        As the kernel `pairtables` returns them.
    """
    pairs, num_large, num_uncompared, crowded = [], 0, 0, np.zeros(num_rows, bool)
    for bucket in buckets:
        numbered = list(combinations(enumerate(bucket), 2))
        compared = [(a, b) for (i, a), (j, b) in numbered if i < bucket_probe or j < bucket_limit]
        pairs += compared
        num_uncompared += len(numbered) - len(compared)
        if len(bucket) > bucket_limit:
            num_large += 1
            crowded[bucket] = True
    return pairs, num_large, num_uncompared, crowded


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
            num_uncompared += np.int64(pairs_before(m, m)) - compared
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
    counts = np.empty((len(bounds) - 1, 3), np.int64)
    _count_buckets(len(bounds) - 1, keys, rows, bounds, bits, bucket_limit, bucket_probe, crowded, counts)
    starts = sums_before(counts[:, 0])
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


@kernel("void(uint32[::1], boolean[::1], int64[::1], uint32[::1], boolean[::1])")
def _write_members(order, begins, before, places, firsts):
    """One thread per place of an order: write the key that is there, if its bucket has another one, and whether it is
    the first of its bucket. `before` is `sums_before` of the keys that are written.
    """
    at = cuda.grid(1)
    if at < len(order) and before[at] < before[at + 1]:
        places[before[at]] = order[at]
        firsts[before[at]] = begins[at]


def buckets_of(xp, keys, offsets=None):
    """Group equal keys, on the device; only keys of one row, given `offsets`. The host waits once.

    Returns
    -------
    places : array of uint32, shape (n,)
        Places of the keys that another key agrees with, bucket by bucket, ascending in each bucket.
    starts : array of int64, shape (buckets,)
        Where each bucket begins in `places`.
    sizes : array of uint64, shape (buckets,)
        2 or more.
    """
    order, begins = order_of(keys, offsets=offsets)
    joined = xp.zeros(len(keys) + 1, bool)  # to the key before
    joined[:-1] = ~begins
    before = sums_before(joined[1:] | joined[:-1])
    num_members, num_buckets = fetch_numbers(before[-1], xp.count_nonzero(joined[1:] & begins))
    places, firsts = xp.empty(num_members, np.uint32), xp.empty(num_members, bool)
    _write_members.threads(len(order), order, begins, before, places, firsts)
    del order, begins, joined, before
    bounds = xp.full(num_buckets + 1, num_members, np.int64)
    bounds[:-1] = firsts_of(firsts)[1][:num_buckets]
    return places, bounds[:-1], xp.diff(bounds).astype(np.uint64)


@kernel("void(int64[::1], boolean[::1], uint32[::1], boolean[::1])")
def _mark(starts, large, rows, crowded):
    """One thread per row of a sorted table: mark the row if its bucket is large; found by bisection.

    `starts` ends with the number of rows.
    """
    at = cuda.grid(1)
    if at < len(rows) and large[row_of(starts, at)]:
        crowded[rows[at]] = True


def limited(xp, sizes, bucket_limit, bucket_probe):
    """Return (pairs that each bucket compares, whether each is large, pairs left out)."""
    one = np.uint64(1)
    whole = xp.minimum(sizes, np.uint64(max(bucket_limit, bucket_probe)))
    counts = ((whole * (whole - one)) >> one) + (sizes - whole) * np.uint64(bucket_probe)
    left_out = ((sizes * (sizes - one)) >> one) - counts
    return counts, sizes > np.uint64(bucket_limit), xp.sum(left_out)


def compare_buckets(xp, rows, starts, sizes, bits, bucket_limit, bucket_probe, crowded):
    """Count the pairs of buckets by the rule of large ones, and mark crowded rows. The host waits once.

    Parameters
    ----------
    rows, starts, sizes : arrays of uint32, int64 and uint64
        The rows, bucket by bucket, where each bucket begins among them, and its size.
    bits : int
        Bits of a row number.
    crowded : array of bool
        Becomes True for the rows of large buckets.

    Returns
    -------
    num_large, num_uncompared, num_pairs : int
    pairs : iterator
        The pairs as words, `PAIRS_AT_ONCE` at a time.
    """
    counts, large, left_out = limited(xp, sizes, bucket_limit, bucket_probe)
    before = sums_before(counts)
    num_large, num_uncompared, num_pairs = fetch_numbers(xp.count_nonzero(large), left_out, before[-1])
    if num_large:
        begins = xp.full(len(starts) + 1, len(rows), np.int64)
        begins[:-1] = starts
        _mark.threads(len(rows), begins, large, rows, crowded)

    def written():
        most = np.uint64(max(bucket_limit, bucket_probe))
        for first in range(0, num_pairs, PAIRS_AT_ONCE):
            packed = xp.empty(min(PAIRS_AT_ONCE, num_pairs - first), np.uint64)
            _write_pairs.threads(len(packed), before, starts, sizes, most, rows, np.uint64(bits), first, packed)
            yield packed

    return num_large, num_uncompared, num_pairs, written()
