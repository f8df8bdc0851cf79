"""Comparing fingerprints within buckets of a sorted table: what `hamming` and `hamming_probe` share.

Words of a table that agree in its leading bits are a bucket. Near are two words that differ in at most `radius` bits;
new is a pair that no earlier table has found, as it agrees under none of the earlier tables' masks.
"""

import numpy as np

from ._bits import count_bits
from ._cpu import jit, num_threads, parallel
from ._launch import Device, cuda, kernel, most_rows
from ._ragged import sums_before
from ._search import upper_bound


@jit("uint64[::1], uint64, int64")
def bucket_bounds(words, top, num_runs):
    """Divide a table into runs of about equal length that divide no bucket."""
    n = len(words)
    bounds = np.empty(num_runs + 1, np.int64)
    bounds[0], bounds[num_runs] = 0, n
    for run in range(1, num_runs):
        at = max(run * n // num_runs, bounds[run - 1])
        while 0 < at < n and (words[at] ^ words[at - 1]) & top == np.uint64(0):
            at += 1
        bounds[run] = at
    return bounds


@jit()
def num_near_words(word, words, start, stop, radius):
    """How many of words[start:stop] differ from `word` in at most `radius` bits: eight at once, all being unsigned."""
    near, most = np.uint64(0), np.uint64(radius)
    for j in range(np.uint64(start), np.uint64(stop)):
        near += np.uint64(count_bits(word ^ words[j]) <= most)
    return np.int64(near)


@jit()
def is_new(differ, before):
    """Whether some bits differ under each mask of `before`."""
    mask = np.uint64(0)
    while mask < np.uint64(len(before)):
        if differ & before[mask] == np.uint64(0):
            return False
        mask += np.uint64(1)
    return True


Device(is_new.py_func)


@jit()
def bucket_stop(words, start, stop, top):
    """Return where the bucket that begins at `start` ends, at most at `stop`: by doubled steps, then bisection."""
    word, step, low = words[start], 1, start
    while low + step < stop and (words[low + step] ^ word) & top == np.uint64(0):
        low += step
        step += step
    return upper_bound(words, low + 1, min(low + step, stop), word | ~top)  # words[low] is in the bucket


@jit("uint64[::1], uint8[::1], uint64[:, ::1], uint64[:, ::1], int64, uint64[:, ::1]")
def keep_near(packed, distance, upper, lower, radius, masks):
    """Compare some pairs of 128-bit fingerprints whole, where their leading words are near.

    Moves those within the radius that agree under none of `masks`, and their distances, to the front; how many. A row
    that there is not, of tables that are damaged, stays, so that it is seen.
    """
    size = 0
    for i in range(len(packed)):
        row = packed[i] & np.uint64(2**32 - 1)
        if row >= np.uint64(len(lower)):
            packed[size], distance[size] = packed[i], distance[i]
            size += 1
            continue
        left, right = upper[packed[i] >> np.uint64(32)], lower[row]
        first, second = left[0] ^ right[0], left[1] ^ right[1]
        bits = count_bits(first) + count_bits(second)
        near = bits <= np.uint64(radius)
        for mask in range(len(masks) if near else 0):
            near &= (first & masks[mask, 0]) | (second & masks[mask, 1]) != np.uint64(0)
        if near:
            packed[size], distance[size] = packed[i], bits
            size += 1
    return size


def num_runs_of_table():
    """Runs of a table that threads share out: some more than threads, as some hold more pairs than others."""
    return 16 * num_threads()


@parallel(
    "uint64[::1], uint32[::1], uint64[::1], uint32[::1], int64[::1], int64, uint64[::1], "
    "uint32[::1], uint32[::1], uint32[::1], int64[::1], uint64[::1], uint8[::1], int64[::1]"
)
def _write_near(
    begin, end, words, rows, queries, numbers, bounds, radius, before, num_near, starts, stops,
    places, packed, distance, sizes,
):  # fmt: skip
    """Write query << 32 | row of each run's matches, from its place on; and how many, without those found before."""
    for run in range(begin, end):
        at = places[run]
        for i in range(bounds[run], bounds[run + 1]):
            start = np.int64(starts[i]) if len(starts) else i + 1
            for j in range(start, np.int64(stops[i]) if num_near[i] else 0):
                differ = queries[i] ^ words[j]
                bits = count_bits(differ)
                if bits <= np.uint64(radius) and is_new(differ, before):
                    packed[at] = np.uint64(numbers[i]) << np.uint64(32) | np.uint64(rows[j])
                    distance[at] = bits
                    at += 1
        sizes[run] = at - places[run]


def add_near(found, table, bounds, sizes, near, before, compared, masks):
    """Add to `found` the pairs of a query and a row of a table that are near and new; runs of queries in parallel.

    Parameters
    ----------
    found : Matches
    table : (array of uint64, array of uint32, array of uint64, array of uint32)
        The words of the table and their rows; the queries, in the same order of leading bits, and their numbers.
    bounds, sizes : arrays of int64, shapes (runs + 1,) and (runs,)
        Runs of queries, and how many near words those of each have.
    near : (array of uint32, array of uint32, array of uint32)
        Of each query: how many words are near, and which it is compared with: from where, and up to where. Where there
        are no beginnings the queries are the words themselves, each compared with those after it.
    before : array of uint64, shape (tables,)
        `masks`, permuted as the words are.
    compared : (array of uint64, array of uint64, int)
        The fingerprints, of shape (rows, words), that the upper and the lower halves of packed words count; the radius.
    masks : array of uint64, shape (tables, words)
        Masks under which pairs were found already.
    """
    places = sums_before(sizes)
    packed, distance = np.empty(places[-1], np.uint64), np.empty(places[-1], np.uint8)
    if len(packed) == 0:
        return
    written = np.empty(len(sizes), np.int64)
    _write_near(len(sizes), *table, bounds, compared[2], before, *near, places, packed, distance, written)
    for place, size in zip(places[:-1], written, strict=True):
        near, bits = packed[place : place + size], distance[place : place + size]
        if masks.shape[1] == 2:
            kept = keep_near(near, bits, *compared, masks)
            near, bits = near[:kept].copy(), bits[:kept].copy()
        found.add(near, bits)


_NOT_NEAR = np.uint64(2**64 - 1)  # in place of two rows that are near in their leading words only


@kernel("void(int64[::1], int64[::1], int64, int64, boolean, boolean[::1], int64[::1])")
def _limit(starts, stops, bucket_limit, bucket_probe, own, large, left_out):
    """One thread a query: the end of its bucket becomes that of what is compared; see `compared_ranges`."""
    at = cuda.grid(1)
    if at >= len(starts):
        return
    start, end = starts[at], stops[at]
    is_large = end - start > bucket_limit
    if own:
        end, limited = at, at - start >= bucket_limit
    else:
        limited = is_large
    stop = min(start + bucket_probe, end) if limited else end
    stops[at], large[at], left_out[at] = stop, is_large, end - stop


@kernel("void(uint64[::1], uint64[::1], int64[::1], int64[::1], uint64, uint64[::1], uint32[::1])")
def _near_counts(words, queries, starts, stops, radius, before, num_near):
    """One thread a query: how many of its words, from its start to its stop, are near and new."""
    at = cuda.grid(1)
    if at >= len(queries):
        return
    word, place, stop, size = queries[at], np.uint64(starts[at]), np.uint64(stops[at]), np.uint32(0)
    while place < stop:
        differ = word ^ words[place]
        place += np.uint64(1)
        if np.uint64(cuda.popc(differ)) <= radius and is_new(differ, before):
            size += np.uint32(1)
    num_near[at] = size


@kernel(
    "void(uint64[::1], uint32[::1], uint64[::1], uint32[::1], int64[::1], int64[::1], uint64, uint64[::1], int64[::1],"
    " int64, int64, uint64[::1], uint8[::1])"
)
def _near_words(words, rows, queries, numbers, starts, stops, radius, before, ends, first, done, packed, distance):
    """One thread per query, from number `first` on: number << 32 | row of what `_near_counts` counts, from its end
    downwards.

    `ends` are the sums of the counts up to each query, and `done` is the sum before `first`.
    """
    query = first + cuda.grid(1)
    if query >= len(ends):
        return
    begin, end = (ends[query - 1] if query > first else done) - done, np.uint64(ends[query] - done)
    if np.uint64(begin) == end or end > np.uint64(len(packed)):
        return
    word, upper = queries[query], np.uint64(numbers[query]) << np.uint64(32)
    place, stop = np.uint64(starts[query]), np.uint64(stops[query])
    while place < stop:
        differ = word ^ words[place]
        bits = np.uint64(cuda.popc(differ))
        if bits <= radius and is_new(differ, before):
            end -= np.uint64(1)
            packed[end] = upper | np.uint64(rows[place])
            distance[end] = np.uint8(bits)
        place += np.uint64(1)


@kernel("void(uint64[:,::1], uint64[:,::1], uint64, uint64[:,::1], uint64[::1], uint8[::1])")
def _near_whole(upper, lower, radius, masks, packed, distance):
    """One thread a pair of 128-bit fingerprints whose leading words are near: _NOT_NEAR unless they are, and new."""
    at = cuda.grid(1)
    if at >= len(packed):
        return
    left, right = packed[at] >> np.uint64(32), packed[at] & np.uint64(2**32 - 1)
    first, second = upper[left, 0] ^ lower[right, 0], upper[left, 1] ^ lower[right, 1]
    bits = np.uint64(cuda.popc(first)) + np.uint64(cuda.popc(second))
    near, mask = bits <= radius, np.uint64(0)
    while near and mask < np.uint64(len(masks)):
        near = (first & masks[mask, 0]) | (second & masks[mask, 1]) != np.uint64(0)
        mask += np.uint64(1)
    if not near:
        packed[at] = _NOT_NEAR
    distance[at] = np.uint8(bits)


def compared_ranges(xp, words, queries, top, bucket_limit, bucket_probe, own):
    """Return where what is compared with each query begins and ends, whether its bucket is large, and how many words
    large buckets leave out, which is on the device.

    Of a large bucket, a query is compared with the first `bucket_probe`. `own` says that the queries are the words:
    each is compared with those of its bucket before it; from number `bucket_limit` on, counted from 0, with the first
    `bucket_probe` of them.
    """
    starts = xp.searchsorted(words, queries & top)
    stops = xp.searchsorted(words, queries | ~top, side="right")
    large, left_out = xp.empty(len(queries), bool), xp.empty(len(queries), np.int64)
    _limit.threads(len(queries), starts, stops, bucket_limit, bucket_probe, own, large, left_out)
    return starts, stops, large, xp.sum(left_out)


_PAIR_BYTES = 40  # of a pair that was found: its word and distance, twice where whole fingerprints are compared


def near_ends(xp, words, queries, ranges, radius, before):
    """Count the words that are near to each query and new, a thread per query: the sum up to each query.

    The last one is 0 without queries; so there is one more than there are queries.
    """
    num_near = xp.zeros(len(queries) + 1, np.uint32)
    _near_counts.threads(len(queries), words, queries, *ranges, np.uint64(radius), before, num_near)
    return xp.cumsum(num_near, dtype=np.int64)


def near_on_device(xp, table, queries, numbers, ranges, before, ends, total, upper, lower, radius, masks):
    """Yield (packed, distance) of what in `table`, words and rows, is near to each query and new; in few parts.

    `near_ends` has counted: its `ends`, and the last of them. Queries write their matches, as many at a time as fit in
    memory.
    """
    radius, most = np.uint64(radius), most_rows(_PAIR_BYTES)
    first = done = 0
    while done < total:
        last, until = len(queries), total
        if total - done > most:  # at least one query's
            last = max(first + 1, int(xp.searchsorted(ends, done + most, side="right")))
            until = int(ends[last - 1])
        packed, distance = xp.empty(until - done, np.uint64), xp.empty(until - done, np.uint8)
        _near_words.threads(
            last - first, *table, queries, numbers, *ranges, radius, before, ends, first, done, packed, distance
        )
        if masks.shape[1] == 2:
            _near_whole.threads(len(packed), upper, lower, radius, masks, packed, distance)
            near = xp.flatnonzero(packed != _NOT_NEAR)
            packed, distance = packed[near], distance[near]
        yield packed, distance
        first, done = last, until
