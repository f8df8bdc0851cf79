"""Probing tables of fingerprints: which fingerprints in them differ from each query in at most k bits.

Source: Manku, Jain and Das Sarma 2007, section 3; `hamming` says what tables and buckets are. Perl and Reingold 1977
for the search of few queries.
Cost: a few queries: for each query and table about log log n places of the table, and its bucket. Many: for each table
a radix sort of the queries and one merge.
"""

from __future__ import annotations

import numpy as np

from . import hamming_table
from ._bits import as_integers, count_bits, in_columns, permuted_on_device, permuted_word, permuted_words, plan
from ._cpu import Rare, jit, parallel
from ._launch import check_rows, fetch_numbers, namespace, on_device
from ._matches import DistinctPairs, halves
from ._near import (
    add_near,
    bucket_bounds,
    bucket_stop,
    compared_ranges,
    is_new,
    keep_near,
    near_ends,
    near_on_device,
    num_near_words,
    num_runs_of_table,
)
from ._search import interpolation_search, likely_bounds
from ._sort import radix_sort


def reference(words, rows, masks, queries, radius, bucket_limit, bucket_probe, fingerprints=None):
    """Which fingerprints of some tables differ from each query in at most `radius` bits and agree under some mask.

    Parameters
    ----------
    words, rows : arrays of uint64 and uint32, shape (tables, n)
        Tables, each in the order of its leading bits at least.
    masks : array of uint64, shape (tables,) or (tables, 2)
        Of at most 64 bits each.
    queries : array of uint64, shape (num_queries,) or (num_queries, 2)
        Fewer than 2**32 - 1.
    radius : int
    bucket_limit, bucket_probe : int
        In a bucket of more than `bucket_limit` fingerprints, a query is compared with the first `bucket_probe` only.
        (The rule by which `hamming` limits the pairs of one set is about the places of both rows in a bucket. A query
        has none, so it does not apply: fingerprints added to a table may take matches away.)
    fingerprints : array of uint64, shape (n, 2), or None
        Those of 128 bits, row by row; None for those of 64, which tables hold.

    Returns
    -------
    query, row : arrays of int64, shape (found,)
        In lexicographic order, each once.
    distance : array of uint8, shape (found,)
    num_large : int
        Buckets above the limit that a query met, over all queries and tables.
    num_uncompared : int
        Fingerprints left out there.
    """
    found, num_large, num_uncompared = {}, 0, 0
    values = [] if fingerprints is None else as_integers(fingerprints)
    for table, order, mask in zip(words.tolist(), rows.tolist(), masks, strict=True):
        others = 64 - int(np.bitwise_count(mask).sum())
        permuted, numbers = hamming_table.reference(queries, mask, False)
        for query, word in zip(numbers.tolist(), permuted.tolist(), strict=True):
            bucket = [i for i, other in enumerate(table) if (word ^ other) >> others == 0]
            large = len(bucket) > bucket_limit
            compared = bucket[:bucket_probe] if large else bucket
            num_large += large
            num_uncompared += len(bucket) - len(compared)
            distances = {(query, order[i]): (word ^ table[i]).bit_count() for i in compared}
            if fingerprints is not None:
                asked = as_integers(queries)[query]
                distances = {(query, row): (asked ^ values[row]).bit_count() for _, row in distances}
            found |= {pair: bits for pair, bits in distances.items() if bits <= radius}
    query, row = np.array(sorted(found), np.int64).reshape(-1, 2).T.copy()
    return query, row, np.array([found[pair] for pair in sorted(found)], np.uint8), num_large, num_uncompared


@jit()
def _drop_repeats(packed, distance):
    """Move the distinct of some sorted words, and their distances, to the front; how many there are."""
    size = 1
    for i in range(1, len(packed)):
        if packed[i] != packed[size - 1]:
            packed[size], distance[size] = packed[i], distance[i]
            size += 1
    return size


@jit(
    Rare(
        "uint64[:, ::1], uint32[:, ::1], uint64[:, ::1], uint64[:, :, ::1], uint64[::1], uint64[:, ::1], int64, "
        "int64, int64"
    )
)
def _search(words, rows, queries, parts, tops, before, radius, bucket_limit, bucket_probe):
    """(query << 32 | row, distance) of all that is found, sorted; large buckets, and what they left out.

    Of 128 bits: all whose leading words are near.
    """
    packed, distance, size = np.empty(16, np.uint64), np.empty(16, np.uint8), 0
    num_large = num_uncompared = 0
    n = words.shape[1]
    permuted, places = np.empty(len(words), np.uint64), np.empty((len(words), 2), np.int64)
    for query in range(len(queries) if n else 0):
        begin, any_large = size, False
        for table in range(len(words)):
            word = permuted_word(queries[query], parts[table])
            permuted[table] = word
            places[table] = likely_bounds(words[table], word & tops[table])
        for table in range(len(words)):
            word, top, column = permuted[table], tops[table], words[table]
            start = interpolation_search(column, word & top, places[table, 0], places[table, 1])
            if start == n or (column[start] ^ word) & top != np.uint64(0):
                continue
            stop = bucket_stop(column, start, n, top)
            earlier = before[table, : 0 if any_large else table]
            if stop - start > bucket_limit:
                any_large = True
                end = min(stop, start + bucket_probe)
                num_large += 1
                num_uncompared += stop - end
                stop = end
            near = num_near_words(word, column, start, stop, radius)
            if size + near > len(packed):
                packed = np.concatenate((packed, np.empty(size + near, np.uint64)))
                distance = np.concatenate((distance, np.empty(size + near, np.uint8)))
            for j in range(start, stop if near else start):
                differ = word ^ column[j]
                bits = count_bits(differ)
                if bits <= np.uint64(radius) and is_new(differ, earlier):
                    packed[size] = np.uint64(query) << np.uint64(32) | np.uint64(rows[table, j])
                    distance[size] = bits
                    size += 1
        if size - begin > 1:
            order = np.argsort(packed[begin:size])
            packed[begin:size], distance[begin:size] = packed[begin:size][order], distance[begin:size][order]
            if any_large or queries.shape[1] > 1:
                size = begin + _drop_repeats(packed[begin:size], distance[begin:size])
    return packed[:size], distance[:size], num_large, num_uncompared


@jit()
def _touched(words, queries, parts, tops, radius):
    """See `touched`."""
    num_tables, n = words.shape
    starts = np.empty(len(queries) * num_tables, np.int64)
    stops, near, size = np.empty_like(starts), np.empty(16, np.int64), 0
    permuted, places = np.empty(num_tables, np.uint64), np.empty((num_tables, 2), np.int64)
    for query in range(len(queries)):
        for table in range(num_tables):
            word = permuted_word(queries[query], parts[table])
            permuted[table] = word
            places[table] = likely_bounds(words[table], word & tops[table])
        for table in range(num_tables):
            word, top, column = permuted[table], tops[table], words[table]
            start = stop = interpolation_search(column, word & top, places[table, 0], places[table, 1])
            if start < n and (column[start] ^ word) & top == np.uint64(0):
                stop = bucket_stop(column, start, n, top)
            at = query * num_tables + table
            starts[at], stops[at] = table * n + max(start - 1, 0), table * n + min(stop + 1, n)
            more = num_near_words(word, column, start, stop, radius)
            if size + more > len(near):
                near = np.concatenate((near, np.empty(size + more, np.int64)))
            for j in range(start, stop if more else start):
                if count_bits(word ^ column[j]) <= np.uint64(radius):
                    near[size] = table * n + j
                    size += 1
    return starts, stops, near[:size]


_FEW = 512  # queries for less than one in so many words are faster searched for than sorted


def touched(words, masks, queries, radius):
    """Return the words of the tables that decide the answer of `cpu` to a few queries; None for many queries.

    Of each query's bucket in each table the words, the one before and the one after. Whatever else a search reads on
    its way may be damaged: a search that ends between two words in order, the one below what is sought and the other
    not, has ended where it had to. `cpu` searches alike, so it ends there, too.

    Returns
    -------
    starts, stops : arrays of int64, shape (queries x tables,)
        Runs of words, numbered table after table.
    near : array of int64
        The words among them whose rows are looked at.
    """
    if len(queries) * _FEW > words.shape[1]:
        return None
    prepared = plan(masks)
    return _touched(words, np.ascontiguousarray(in_columns(queries)), prepared.moves, prepared.tops, radius)


@parallel(
    Rare(
        "uint64[::1], uint64[::1], uint64, int64[::1], int64, int64, int64, uint32[::1], uint32[::1], "
        "uint32[::1], int64[:, ::1]"
    )
)
def _count_near(
    lower, upper, words, queries, top, bounds, radius, bucket_limit, bucket_probe, num_near, starts, stops, counts
):
    """Write where each query's bucket begins and ends, and how many in it are near. `counts` are of each run: matches,
    large buckets, and comparisons left out.

    Both are in the order of their leading bits: each run of queries is merged with its part of the words, by steps
    that double where the queries are few.
    """
    n = len(words)
    for run in range(lower, upper):
        size, start, stop = 0, 0, 0
        num_large = num_uncompared = 0
        if bounds[run] < bounds[run + 1]:
            start = stop = interpolation_search(words, queries[bounds[run]] & top, 0, n)
        for i in range(bounds[run], bounds[run + 1]):
            if i == bounds[run] or (queries[i] ^ queries[i - 1]) & top != np.uint64(0):
                key, low, step = queries[i] & top, stop, 1
                while low + step < n and words[low + step] < key:
                    low += step
                    step += step
                start = interpolation_search(words, key, low, min(low + step + 1, n))
                stop = start
                if start < n and (words[start] ^ key) & top == np.uint64(0):
                    stop = bucket_stop(words, start, n, top)
            end = stop
            if stop - start > bucket_limit:
                end = min(stop, start + bucket_probe)
                num_large += 1
                num_uncompared += stop - end
            near = num_near_words(queries[i], words, start, end, radius)
            num_near[i], starts[i], stops[i] = near, start, end
            size += near
        counts[run, 0], counts[run, 1], counts[run, 2] = size, num_large, num_uncompared


def _merge(words, rows, masks, prepared, queries, radius, bucket_limit, bucket_probe, fingerprints):
    """As `cpu`: for each table the queries sorted as it is, and the two merged."""
    found, num_large, num_uncompared = DistinctPairs(), 0, 0
    for number, top in enumerate(prepared.tops):
        permuted, numbers = radix_sort(permuted_words(queries, prepared.moves[number]), int(top).bit_count())
        bounds = bucket_bounds(permuted, top, num_runs_of_table())
        num_near, starts, stops = (np.empty(len(permuted), np.uint32) for _ in range(3))
        counts = np.empty((len(bounds) - 1, 3), np.int64)
        _count_near(
            len(counts), words[number], permuted, top, bounds, radius, bucket_limit, bucket_probe,
            num_near, starts, stops, counts,
        )  # fmt: skip
        sizes, large, uncompared = counts[:, 0], int(counts[:, 1].sum()), int(counts[:, 2].sum())
        known = 0 if num_large else number
        before, near = prepared.before[number, :known], (num_near, starts, stops)
        table = words[number], rows[number], permuted, numbers
        add_near(found, table, bounds, sizes, near, before, (queries, fingerprints, radius), masks[:known])
        num_large += large
        num_uncompared += uncompared
    return *found.result(), num_large, num_uncompared


def cpu(words, rows, masks, queries, radius, bucket_limit, bucket_probe, fingerprints=None):
    """As `reference`: a few queries each by interpolation search, many sorted and merged with each table.

    Raises
    ------
    ResourceError
        If there are 2**32 - 1 queries or more.
    """
    check_rows(len(queries), "queries")
    prepared, masks, queries = plan(masks), in_columns(masks), np.ascontiguousarray(in_columns(queries))
    if len(queries) * _FEW > words.shape[1]:
        return _merge(words, rows, masks, prepared, queries, radius, bucket_limit, bucket_probe, fingerprints)
    packed, distance, num_large, num_uncompared = _search(
        words, rows, queries, *prepared, radius, bucket_limit, bucket_probe
    )
    if fingerprints is not None:
        size = keep_near(packed, distance, queries, fingerprints, radius, masks[:0])
        packed, distance = packed[:size], distance[:size]
    return *halves(packed), distance, num_large, num_uncompared


def gpu(words, rows, masks, queries, radius, bucket_limit, bucket_probe, fingerprints=None):
    """As `reference`: table by table, one thread per query to find its bucket, and one to compare it.

    Tables in host memory go to the device one at a time, fingerprints whole.

    Raises
    ------
    ResourceError
        If there are 2**32 - 1 queries or more.
    """
    check_rows(len(queries), "queries")
    xp, prepared = namespace(), plan(masks)
    queries, masks = in_columns(on_device(queries)), in_columns(on_device(masks))
    values = queries if fingerprints is None else on_device(fingerprints)
    numbers = xp.arange(len(queries), dtype=np.uint32)
    found, num_large, num_uncompared = DistinctPairs(xp), 0, 0
    for number, top in enumerate(prepared.tops):
        known = 0 if num_large else number
        before = on_device(prepared.before[number, :known])
        table, order = on_device(words[number]), on_device(rows[number])
        permuted = permuted_on_device(xp, queries, prepared.moves[number])
        starts, stops, large, left_out = compared_ranges(xp, table, permuted, top, bucket_limit, bucket_probe, False)
        ranges = starts, stops
        ends = near_ends(xp, table, permuted, ranges, radius, before)
        large, uncompared, total = fetch_numbers(xp.count_nonzero(large), left_out, ends[-1])
        num_large += large
        num_uncompared += uncompared
        whole = queries, values, radius, masks[:known]
        for near in near_on_device(xp, (table, order), permuted, numbers, ranges, before, ends, total, *whole):
            found.add(*near)
    return *found.result(), num_large, num_uncompared
