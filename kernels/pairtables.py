"""Pair tables: which rows share at least r of their k features.

One table for each r-subset of the k features, in lexicographic order. Its key is the Rabin fingerprint of the subset's
number and of the row's r features; rows with equal keys are a bucket, and a bucket's rows are candidate pairs. So a
pair that shares r features always collides in some table, and any other only by a collision of 64-bit fingerprints.

A bucket of m rows has m (m - 1) / 2 pairs. With its rows numbered from 0 by priority, row j is compared with row i < j
exactly when i < bucket_probe or j < bucket_limit: the first `bucket_limit` rows all with all, a later one with the
first `bucket_probe`. Whether two rows are compared depends on none behind them, so rows added behind never undo a pair.
A bucket of more than `bucket_limit` rows is large; its rows are crowded, and the pairs that it leaves out are counted.

Source: Manasse 2012, sections 3.1 and 6.1, for the tables; Broder 2000, section 3, for filters [k, s, r].
Cost: C(k, r) sorts of one (key, row) table, one at a time, 24 bytes a row: on the CPU rows are scattered once, by the
highest bits of their keys, into parts that are sorted in a core's cache. 16 to 32 bytes for each candidate pair; on a
GPU see `gpu`.
"""

from __future__ import annotations

from itertools import combinations, islice

import numpy as np

from ._cpu import jit, parallel, shares, types
from ._gf2 import advance, advance_by_tables, byte_tables, prepare, rabin_words
from ._launch import TABLES, check_rows, cuda, kernel, load, most_rows, namespace, on_device, row_of
from ._matches import Matches
from ._sort import in_parts, order_of, sort_part


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
    pairs, num_large, num_uncompared = set(), 0, 0
    crowded = np.zeros(len(features), bool)
    for number, subset in _subsets(features.shape[1], r, tables):
        table: dict[int, list[int]] = {}
        for row in np.flatnonzero(present).tolist():
            key = rabin_words([number, *(features[row, j] for j in subset)], int(poly))
            table.setdefault(key, []).append(row)
        for bucket in table.values():
            numbered = combinations(enumerate(bucket), 2)
            compared = {(a, b) for (i, a), (j, b) in numbered if i < bucket_probe or j < bucket_limit}
            pairs |= compared
            num_uncompared += len(bucket) * (len(bucket) - 1) // 2 - len(compared)
            if len(bucket) > bucket_limit:
                num_large += 1
                crowded[bucket] = True
    left, right = np.array(sorted(pairs), np.int64).reshape(-1, 2).T.copy()
    return left, right, num_large, num_uncompared, crowded


@parallel("uint64[:, ::1], uint32[::1], int64[::1], int64, uint64, uint64[::1]", least=1024)
def _write_keys(begin, end, features, rows, subset, number, poly, keys):
    modulus = prepare(poly)
    first = advance(poly ^ np.uint64(number), modulus)
    for i in range(begin, end):
        f = first
        for j in subset:
            f = advance(f ^ features[rows[i], j], modulus)
        keys[i] = f


def _keys(features, rows, subset, number, poly):
    """Return the key of each row: the fingerprint of the subset's number and the row's features in the subset."""
    keys = np.empty(len(rows), np.uint64)
    _write_keys(len(rows), features, rows, subset, number, poly, keys)
    return keys


def keys_of_tables(features, r, poly):
    """Keys of all rows in each table, one after another, in host memory: uint64, shape (rows,); see `reference`."""
    rows = np.arange(len(features), dtype=np.uint32)
    for number, subset in _subsets(features.shape[1], r, None):
        yield _keys(features, rows, np.array(subset, np.int64), number, np.uint64(poly))


@parallel("uint64[::1], uint32[::1], int64[::1], int64[::1], uint64, int64")
def _sort_shares(begin, end, keys, rows, ends, bounds, shift, bits):
    """Sort each part, runs of parts in parallel; see `in_parts`."""
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
        Where runs of about equal length begin, none of which divides a bucket.
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
    """(pairs, large buckets, pairs left out) of a run; writes the pairs if there is room, or marks rows as crowded."""
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
    """(left << bits | right of each pair, large buckets, pairs left out) of one sorted table; marks rows as crowded.

    Runs of buckets, as `sort_by_key` gives them, in parallel.
    """
    counts, starts = np.empty((len(bounds) - 1, 3), np.int64), np.zeros(len(bounds), np.int64)
    _count_buckets(len(bounds) - 1, keys, rows, bounds, bits, bucket_limit, bucket_probe, crowded, counts)
    np.cumsum(counts[:, 0], out=starts[1:])
    packed = np.empty(starts[-1], np.uint64)
    _write_buckets(len(bounds) - 1, keys, rows, bounds, bits, bucket_limit, bucket_probe, crowded, starts, packed)
    return packed, int(counts[:, 1].sum()), int(counts[:, 2].sum())


@parallel("uint64[::1], int64, uint64[:, ::1], int64[::1], boolean[::1]", least=1024)
def _mark_collided(begin, end, packed, bits, features, subset, before):
    for p in range(begin, end):
        left = packed[p] >> np.uint64(bits)
        right = packed[p] ^ (left << np.uint64(bits))
        i, found = 0, False
        for j in range(subset[-1]):
            same = features[left, j] == features[right, j]
            if subset[i] != j:
                found |= same
            elif same:
                i += 1
            else:
                found = False
                break
        before[p] = found


def _collided_before(packed, bits, features, subset):
    """Return whether an earlier table holds each pair for certain: that of the subset with another feature for its
    last.

    It does when the pair shares that feature and the subset's others. (Sharing the key alone is not enough: keys are
    fingerprints, and may collide.)
    """
    before = np.zeros(len(packed), np.bool_)
    _mark_collided(len(packed), packed, bits, features, subset, before)
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
    found, num_large, num_uncompared = Matches(bits=bits, with_distances=False), 0, 0
    from_first = tables is None or tables.start == 0  # or what an earlier table's limit left out may be lost
    for number, subset in _subsets(features.shape[1], r, tables):
        columns = np.array(subset, np.int64)
        keys, order, runs = sort_by_key(_keys(features, rows, columns, number, np.uint64(poly)), rows)
        packed, large, uncompared = bucket_pairs(keys, order, runs, bits, bucket_limit, bucket_probe, crowded)
        if num_large == 0 and from_first:
            packed = packed[~_collided_before(packed, bits, features, columns)]
        num_large += large
        num_uncompared += uncompared
        found.add(packed)
    return *found.result(), num_large, num_uncompared, crowded


_THREADS = 1 << 18  # about as many as a device runs at a time
_SLICE = 1 << 30  # bytes of features whose keys are computed at a time
_CHUNK = 1 << 26  # pairs written at a time: 0.5 GB
_ROW_BYTES = 36  # most that a row takes while its table is sorted; see `gpu`


@kernel("void(uint64[:,::1], int64[::1], uint64, uint64[::1], uint64[::1])")
def _row_keys(features, columns, begin, tables, keys):
    """One thread a row: its key, from `begin`, the fingerprint of the subset's number, on.

    Threads go on to further rows, so that a block loads its tables once.
    """
    modulus = cuda.shared.array(TABLES, types.uint64)
    load(tables, modulus)
    row = cuda.grid(1)
    while row < len(keys):
        f = begin
        for i in range(len(columns)):
            f = advance_by_tables(f ^ features[row, columns[i]], modulus)
        keys[row] = f
        row += cuda.gridsize(1)


@jit()
def pairs_before(i, m):
    """How many pairs of m things, in lexicographic order, come before those whose first is number i; m < 2**32."""
    i, m = np.uint64(i), np.uint64(m)
    return (i * (m + m - i - np.uint64(1))) >> np.uint64(1)


@jit()
def first_of(pair, m):
    """Number of the first thing of a pair of m things, pairs numbered in lexicographic order; by bisection."""
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
    """One thread a pair, from number `first` on: its bucket by bisection, then left << bits | right.

    In a bucket the pairs of its first `most` rows come first, in lexicographic order, then those of each row that is
    compared with all later ones.
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


@kernel("void(uint64[::1], uint64, uint64[:,::1], int64[::1], boolean[::1])")
def _is_new(packed, bits, features, columns, new):
    """One thread a pair: whether no earlier table holds it for certain, as in `_collided_before`."""
    at = cuda.grid(1)
    if at >= len(packed):
        return
    left = packed[at] >> bits
    right = packed[at] ^ (left << bits)
    i = j = np.uint64(0)
    last, before = np.uint64(columns[len(columns) - 1]), False
    while j < last:
        same = features[left, j] == features[right, j]
        if np.uint64(columns[i]) != j:
            before = before or same
        elif same:
            i += np.uint64(1)
        else:
            before = False
            break
        j += np.uint64(1)
    new[at] = not before


def _keyed_rows(xp, features, present, columns, begin, tables, split, upper):
    """(keys, rows) in the order of rows; only keys whose `split` highest bits are `upper`."""
    per_slice = max(1, _SLICE // (8 * features.shape[1]))
    keys, rows = [xp.empty(0, np.uint64)], [xp.empty(0, np.uint32)]
    for first in range(0, len(features), per_slice):
        some = on_device(features[first : first + per_slice])
        all_keys = xp.empty(len(some), np.uint64)
        _row_keys.threads(min(len(some), _THREADS), some, columns, begin, tables, all_keys)
        chosen = present[first : first + per_slice]
        if split:
            chosen = chosen & (all_keys >> np.uint64(64 - split) == np.uint64(upper))
        chosen = xp.flatnonzero(chosen)
        keys.append(all_keys[chosen])
        rows.append((chosen + first).astype(np.uint32))
    return xp.concatenate(keys), xp.concatenate(rows)


def buckets_of(xp, keys, num_bits=64):
    """Keys that agree in their `num_bits` highest bits, on the device.

    Returns
    -------
    places : array of uint32, shape (n,)
        Those of the keys that any other agrees with, bucket by bucket, ascending in each.
    starts : array of int64, shape (buckets,)
        Where each bucket begins among them.
    sizes : array of uint64, shape (buckets,)
        2 or more.
    """
    order, begins = order_of(keys, num_bits)
    joined = xp.zeros(len(keys) + 1, bool)  # to the key before
    joined[:-1] = ~begins
    firsts, lasts = xp.flatnonzero(joined[1:] & ~joined[:-1]), xp.flatnonzero(joined[:-1] & ~joined[1:])
    sizes = lasts - firsts + 1
    return order[xp.flatnonzero(joined[1:] | joined[:-1])], xp.cumsum(sizes) - sizes, sizes.astype(np.uint64)


def _table(xp, *arguments):
    """Buckets of two rows or more: (their rows, bucket by bucket; where each begins; its size), and rows in all."""
    keys, rows = _keyed_rows(xp, *arguments)
    places, starts, sizes = buckets_of(xp, keys)
    return rows[places], starts, sizes, len(rows)


@kernel("void(int64[::1], uint64[::1], uint32[::1], boolean[::1])")
def _mark(starts, sizes, rows, crowded):
    """One thread a row of a sorted table: marks it if it is in one of some buckets, found by bisection.

    `starts` ends with the number of rows.
    """
    at = cuda.grid(1)
    if at >= len(rows) or at < starts[0]:
        return
    bucket = row_of(starts, at)
    if np.uint64(at - starts[bucket]) < sizes[bucket]:
        crowded[rows[at]] = True


def limited(xp, sizes, bucket_limit, bucket_probe):
    """(pairs that each bucket compares, numbers of the large buckets, pairs left out)."""
    one = np.uint64(1)
    whole = xp.minimum(sizes, np.uint64(max(bucket_limit, bucket_probe)))
    counts = ((whole * (whole - one)) >> one) + (sizes - whole) * np.uint64(bucket_probe)
    left_out = ((sizes * (sizes - one)) >> one) - counts
    return counts, xp.flatnonzero(sizes > np.uint64(bucket_limit)), int(xp.sum(left_out))


def mark_buckets(xp, starts, sizes, rows, crowded):
    """Mark the rows of some buckets of a sorted table."""
    begins = xp.full(len(starts) + 1, len(rows), np.int64)
    begins[:-1] = starts
    _mark.threads(len(rows), begins, sizes, rows, crowded)


def pairs_of(xp, starts, sizes, most, counts, rows, bits):
    """The `counts` pairs of each bucket, as words, `_CHUNK` at a time."""
    before = xp.zeros(len(counts) + 1, np.int64)
    before[1:] = xp.cumsum(counts)
    total = int(before[-1])
    for first in range(0, total, _CHUNK):
        packed = xp.empty(min(_CHUNK, total - first), np.uint64)
        _write_pairs.threads(len(packed), before, starts, sizes, most, rows, bits, first, packed)
        yield packed


def gpu(features, present, r, poly, bucket_limit, bucket_probe, tables=None, max_rows=None):
    """As `reference`: keys, radix sort, buckets and pairs table by table, each step by all threads.

    Features in device memory stay there, and so do those in host memory (sketches that outgrew the device): these go
    to the device slice by slice, once a table, and repeats of their pairs are dropped by sorting alone.

    500 million documents, k = 6, on a card of 80 GB::

        features               6 * 8 bytes                        24 GB
        present, crowded       1 byte each                         1 GB
        rows and keys          4 + 8 bytes                         6 GB
        order                  8 for the words that are sorted,
                               8 for their other buffer or else
                               4 for places, and 10 for flags
                               and what is flagged                11 GB

    While a table is sorted that is 42 GB together, at other times less. The 38 GB that are left hold 1.5 billion
    pairs with their repeats: 8 bytes each once found, 25 while repeats are dropped, which is whenever the pairs found
    have doubled, as in `cpu`. Where that is not enough, CuPy raises its OutOfMemoryError; a lower
    `bucket_limit` leaves fewer pairs.

    Parameters
    ----------
    features : array of uint64, shape (rows, k)
        NumPy, in host memory, or CuPy.
    max_rows : int, optional
        Rows to sort at a time; as many as half of the free memory takes, unless given. A larger table is built in
        passes: in pass p, from the keys whose highest bits are p. So a bucket is always whole and the answer the same,
        and as keys are uniform, passes are about equal; but one whose bucket is larger than `max_rows` exceeds it.

    Raises
    ------
    ResourceError
        If there are 2**32 - 1 rows or more.
    """
    xp = namespace()
    bits = _row_bits(features)
    present, poly = on_device(present), np.uint64(poly)
    modulus = byte_tables(poly)
    moduli = on_device(modulus)
    passes = -(-len(features) // (max_rows or most_rows(_ROW_BYTES)))
    split = max(0, passes - 1).bit_length()
    resident = isinstance(features, xp.ndarray)
    if resident:
        features = on_device(features)
    found, num_large, num_uncompared = Matches(xp, bits, with_distances=False, at_least=_CHUNK), 0, 0
    crowded, most = xp.zeros(len(features), bool), np.uint64(max(bucket_limit, bucket_probe))
    from_first = tables is None or tables.start == 0  # as in `cpu`
    for number, subset in _subsets(features.shape[1], r, tables):
        columns = on_device(np.array(subset, np.int64))
        begin = np.uint64(advance_by_tables(poly ^ np.uint64(number), modulus))
        filtered = resident and num_large == 0 and from_first
        for upper in range(1 << split):
            rows, starts, sizes, num_rows = _table(xp, features, present, columns, begin, moduli, split, upper)
            counts, large, uncompared = limited(xp, sizes, bucket_limit, bucket_probe)
            num_large += len(large)
            num_uncompared += uncompared
            if len(large):
                mark_buckets(xp, starts[large], sizes[large], rows, crowded)
            if bucket_limit < 1:  # which a row alone exceeds
                num_large += num_rows - len(rows)
                crowded |= present
            for packed in pairs_of(xp, starts, sizes, most, counts, rows, np.uint64(bits)):
                if filtered:
                    new = xp.empty(len(packed), bool)
                    _is_new.threads(len(packed), packed, np.uint64(bits), features, columns, new)
                    packed = packed[new]
                found.add(packed)
            del rows, starts, sizes, counts, large  # the next sort needs the room
    return *map(on_device, found.result()), num_large, num_uncompared, crowded
