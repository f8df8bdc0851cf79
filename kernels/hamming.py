"""The Hamming-distance problem: which fingerprints differ from one another in at most k bits.

A table is a mask of p bits, the fingerprints with these bits moved to the top (in their order, the other bits after
them in theirs), sorted, and the row of each. Those that share the top p bits are a bucket. The masks of a design
(`neardup_gpu.hamming`) are such that whatever k bits differ, some mask has none of them: so two fingerprints that
differ in at most k bits share a bucket of some table, and it is enough to count the bits of the xor within buckets.

A bucket of m fingerprints has m (m - 1) / 2 pairs. Above a limit, all are compared only with the bucket's first
`bucket_probe`, and the pairs that this leaves out are counted.

Fingerprints have 64 bits or 128, which are two words, the higher one first. Tables hold one word: the first 64 bits
of the permuted 128. Leading words of two fingerprints within k bits are within k bits, so what passes in a bucket is
then compared whole.

Source: Manku, Jain and Das Sarma 2007, section 3.
Cost: for each table a radix sort, 24 bytes a row, of the p bits alone where more is not asked for; for each pair of a
bucket an xor and a count of bits; 8 to 16 bytes for each pair found.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import NamedTuple

import numba
import numpy as np
from numba import prange

from ._launch import Device, check_rows, cuda, jit, kernel, namespace, to_host
from .pairtables import most_rows

NO_LIMIT = 2**62
"""A `bucket_limit` that no bucket exceeds."""


def _integers(words):
    """Each fingerprint or mask as one integer: as it is, or of two words."""
    return words.tolist() if words.ndim == 1 else [high << 64 | low for high, low in words.tolist()]


def reference(fingerprints, masks, radius, bucket_limit, bucket_probe):
    """Pairs of rows that differ in at most `radius` bits and agree under some mask, from the definition.

    Parameters
    ----------
    fingerprints : array of uint64, shape (rows,) or (rows, 2)
        In priority order, the best first; fewer than 2**32 - 1.
    masks : array of uint64, shape (tables,) or (tables, 2)
        Of at most 64 bits each.
    radius : int
        In bits.
    bucket_limit, bucket_probe : int
        In a bucket of more than `bucket_limit` rows, rows are compared with its first `bucket_probe` rows only.

    Returns
    -------
    left, right : arrays of int64, shape (pairs,)
        left < right, in lexicographic order, each pair once. Empty without rows.
    distance : array of uint8, shape (pairs,)
        Bits in which they differ.
    num_large : int
        Buckets above the limit, over all tables.
    num_uncompared : int
        Pairs of rows of such a bucket that this bucket did not compare, over all tables.
    """
    values = _integers(fingerprints)
    pairs, num_large, num_uncompared = {}, 0, 0
    for mask in _integers(masks):
        buckets: dict[int, list[int]] = {}
        for row, value in enumerate(values):
            buckets.setdefault(value & mask, []).append(row)
        for bucket in buckets.values():
            large = len(bucket) > bucket_limit
            first = bucket[:bucket_probe] if large else bucket
            compared = {(a, b): (values[a] ^ values[b]).bit_count() for a in first for b in bucket if a < b}
            pairs |= {pair: bits for pair, bits in compared.items() if bits <= radius}
            num_large += large
            num_uncompared += len(bucket) * (len(bucket) - 1) // 2 - len(compared)
    left, right = np.array(sorted(pairs), np.int64).reshape(-1, 2).T.copy()
    return left, right, np.array([pairs[pair] for pair in sorted(pairs)], np.uint8), num_large, num_uncompared


def first_reference(fingerprints):
    """The first row with the same fingerprint, for each row: int64, shape (rows,)."""
    seen: dict[int, int] = {}
    return np.array([seen.setdefault(value, row) for row, value in enumerate(_integers(fingerprints))], np.int64)


def table_reference(fingerprints, mask, whole):
    """One table: the first 64 bits of the permuted fingerprints in order, and their rows.

    Parameters
    ----------
    fingerprints : array of uint64, shape (rows,) or (rows, 2)
    mask : uint64, or array of uint64, shape (2,)
        The bits that lead.
    whole : bool
        Whether all 64 bits decide the order, or only those that lead. What ties keeps the order of rows.

    Returns
    -------
    words : array of uint64, shape (rows,)
    rows : array of uint32, shape (rows,)
    """
    (mask,), num_bits = _integers(np.asarray(mask)[None]), 64 * fingerprints.ndim
    places = sorted(range(num_bits), key=lambda place: (not mask >> place & 1, -place))  # highest permuted bit first
    num_sorted = 64 if whole else mask.bit_count()
    table = []
    for row, value in enumerate(_integers(fingerprints)):
        bits = "".join(str(value >> place & 1) for place in places[:64])
        table.append((bits[:num_sorted], row, int(bits, 2)))
    table.sort()
    return np.array([word for _, _, word in table], np.uint64), np.array([row for _, row, _ in table], np.uint32)


def probe_reference(words, rows, masks, queries, radius, bucket_limit, bucket_probe, fingerprints=None):
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
    values = [] if fingerprints is None else _integers(fingerprints)
    for table, order, mask in zip(words.tolist(), rows.tolist(), masks, strict=True):
        others = 64 - int(np.bitwise_count(mask).sum())
        permuted, numbers = table_reference(queries, mask, False)
        for query, word in zip(numbers.tolist(), permuted.tolist(), strict=True):
            bucket = [i for i, other in enumerate(table) if (word ^ other) >> others == 0]
            large = len(bucket) > bucket_limit
            compared = bucket[:bucket_probe] if large else bucket
            num_large += large
            num_uncompared += len(bucket) - len(compared)
            distances = {(query, order[i]): (word ^ table[i]).bit_count() for i in compared}
            if fingerprints is not None:
                asked = _integers(queries)[query]
                distances = {(query, row): (asked ^ values[row]).bit_count() for _, row in distances}
            found |= {pair: bits for pair, bits in distances.items() if bits <= radius}
    query, row = np.array(sorted(found), np.int64).reshape(-1, 2).T.copy()
    return query, row, np.array([found[pair] for pair in sorted(found)], np.uint8), num_large, num_uncompared


# ------------------------------------------------------------------------------------------------------------- shared


@jit()
def count_bits(word):
    """Number of ones in a uint64. LLVM knows these steps and puts one instruction in their place; NVIDIA's compiler
    does not, so kernels call `cuda.popc`."""
    v = np.uint64(word)
    v -= (v >> np.uint64(1)) & np.uint64(0x5555555555555555)
    v = (v & np.uint64(0x3333333333333333)) + ((v >> np.uint64(2)) & np.uint64(0x3333333333333333))
    v = (v + (v >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (v * np.uint64(0x0101010101010101)) >> np.uint64(56)


@jit()
def move(word, part, left):
    """The bits of `word` in `part`, rotated left by 0 to 63."""
    kept = np.uint64(word) & np.uint64(part)
    return (kept << np.uint64(left)) | (kept >> ((np.uint64(64) - np.uint64(left)) & np.uint64(63)))


def moves(mask, num_words=1):
    """What a table's permutation is made of: (part, rotation to the left) of each run of bits that move together.

    Returns
    -------
    array of uint64, shape (num_words * parts, 2)
        Of each word of a fingerprint as many, the first word's first, filled up with parts of no bits.
    """
    num_bits, mask = 64 * num_words, int(mask)
    places = sorted(range(num_bits), key=lambda place: (not mask >> place & 1, -place))[:64]
    parts: list[dict[int, int]] = [{} for _ in range(num_words)]
    for target, place in enumerate(places):
        of_word, left = parts[num_words - 1 - place // 64], (63 - target - place) % 64
        of_word[left] = of_word.get(left, 0) | 1 << place % 64
    filled = np.zeros((num_words, max(map(len, parts)), 2), np.uint64)
    for word, some in enumerate(parts):
        filled[word, : len(some)] = np.array([(part, left) for left, part in some.items()], np.uint64).reshape(-1, 2)
    return filled.reshape(-1, 2)


class _Plan(NamedTuple):
    """What a set of masks comes to.

    moves : array of uint64, shape (tables, parts, 2)
        Filled up with parts of no bits, of each word of a fingerprint as many.
    tops : array of uint64, shape (tables,)
        The leading bits.
    before : array of uint64, shape (tables, tables); (tables, 0) for 128 bits
        before[t, :t] are the earlier masks, permuted as table t is: two words of it that agree in the bits of one of
        them were in one bucket before. Of 128 bits one word does not say.
    """

    moves: np.ndarray
    tops: np.ndarray
    before: np.ndarray


@lru_cache(16)
def _plan(masks: bytes, num_words: int) -> _Plan:
    size = 8 * num_words
    each = [int.from_bytes(masks[at : at + size], "big") for at in range(0, len(masks), size)]
    if any(mask.bit_count() > 64 for mask in each):
        raise ValueError("a mask of more than 64 bits: they have to fit into one word")
    parts = [moves(mask, num_words).reshape(num_words, -1, 2) for mask in each]
    padded = np.zeros((len(each), num_words, max((some.shape[1] for some in parts), default=1), 2), np.uint64)
    for table, some in enumerate(parts):
        padded[table, :, : some.shape[1]] = some
    padded = padded.reshape(len(each), num_words * padded.shape[2], 2)
    tops = np.array([~(2**64 - 1 >> mask.bit_count()) & 2**64 - 1 for mask in each], np.uint64)
    before = np.zeros((len(each), len(each) if num_words == 1 else 0), np.uint64)
    for table in range(before.shape[1]):
        before[table, :table] = _permuted(np.array(each[:table], np.uint64).reshape(-1, 1), padded[table])
    return _Plan(padded, tops, before)


def plan(masks):
    """The `_Plan` of some masks; remembered, as a query takes less time than this."""
    masks = to_host(masks)
    return _plan(masks.astype(">u8").tobytes(), masks.ndim)


def _columns(fingerprints):
    """Fingerprints or masks of either length with a column for each word: shape (rows, 1) or (rows, 2)."""
    return fingerprints.reshape(len(fingerprints), fingerprints.ndim)


@jit(parallel=True)
def _permuted(fingerprints, parts):
    """The first 64 bits of each fingerprint, of shape (rows, words), with the mask's bits leading."""
    words = np.empty(len(fingerprints), np.uint64)
    per_word = len(parts) // fingerprints.shape[1]
    for i in prange(len(fingerprints)):
        word = np.uint64(0)
        for column in range(fingerprints.shape[1]):
            for part in range(column * per_word, (column + 1) * per_word):
                word |= move(fingerprints[i, column], parts[part, 0], parts[part, 1])
        words[i] = word
    return words


# ------------------------------------------------------------------------------------------------------------ on a CPU


@jit(parallel=True)
def _sort_digit(words, rows, shift, bits, counts, sorted_words, sorted_rows):
    """One pass of a radix sort: by `bits` bits from `shift` on, ties in the order given; runs of words in parallel."""
    runs, digits, n = len(counts), 1 << bits, len(words)
    below = np.uint64(digits - 1)
    for run in prange(runs):
        counts[run] = 0
        for i in range(run * n // runs, (run + 1) * n // runs):
            counts[run, (words[i] >> shift) & below] += 1
    place = 0
    for digit in range(digits):
        for run in range(runs):
            count = counts[run, digit]
            counts[run, digit] = place
            place += count
    for run in prange(runs):
        for i in range(run * n // runs, (run + 1) * n // runs):
            word = words[i]
            digit = (word >> shift) & below
            at = counts[run, digit]
            counts[run, digit] = at + 1
            sorted_words[at], sorted_rows[at] = word, rows[i]


_DIGIT = 11  # bits of most passes: 2048 places to write to, as many pages as a core remembers


def _sorted(words, num_bits):
    """(words, rows) sorted by the `num_bits` highest bits; `words` is written over."""
    rows = np.arange(len(words), dtype=np.uint32)
    passes = -(-num_bits // _DIGIT)
    if passes:
        other_words, other_rows = np.empty_like(words), np.empty_like(rows)
        counts = np.empty((numba.get_num_threads(), 1 << -(-num_bits // passes)), np.int64)
    for number in range(passes):
        low, high = (64 - num_bits + num_bits * i // passes for i in (number, number + 1))
        _sort_digit(words, rows, np.uint64(low), high - low, counts, other_words, other_rows)
        words, rows, other_words, other_rows = other_words, other_rows, words, rows
    return words, rows


def table_cpu(fingerprints, mask, whole):
    """As `table_reference`: by radix sort, 11 bits at a time."""
    check_rows(len(fingerprints), "fingerprints")
    prepared = plan(mask.reshape(1, *mask.shape))
    words = _permuted(np.ascontiguousarray(_columns(fingerprints)), prepared.moves[0])
    return _sorted(words, 64 if whole else int(prepared.tops[0]).bit_count())


@jit()
def _write_first(words, others, rows, first):
    """`words` are in order, those that are equal in that of `others`, which are by row; no `others` for 64 bits."""
    start = 0
    for i in range(len(words)):
        if words[i] != words[start] or (len(others) and others[rows[i]] != others[rows[start]]):
            start = i
        first[rows[i]] = rows[start]


def first_cpu(fingerprints):
    """As `first_reference`: by sorting, which puts the rows of each fingerprint side by side, the first one first."""
    check_rows(len(fingerprints), "fingerprints")
    columns = _columns(fingerprints)
    lower = np.ascontiguousarray(columns[:, 1]) if columns.shape[1] == 2 else np.empty(0, np.uint64)
    if len(lower):
        by_lower = _sorted(lower.copy(), 64)[1]
        words, order = _sorted(columns[by_lower, 0], 64)
        rows = by_lower[order]
    else:
        words, rows = _sorted(columns[:, 0].copy(), 64)
    first = np.empty(len(words), np.int64)
    _write_first(words, lower, rows, first)
    return first


@jit()
def _bucket_bounds(words, top, num_runs):
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
def _num_near(word, words, start, stop, radius):
    """How many of words[start:stop] differ from `word` in at most `radius` bits: eight at once, all being unsigned."""
    near, most = np.uint64(0), np.uint64(radius)
    for j in range(np.uint64(start), np.uint64(stop)):
        near += np.uint64(count_bits(word ^ words[j]) <= most)
    return np.int64(near)


@jit()
def _is_new(differ, before):
    """Whether some bits differ under each mask of `before`."""
    for mask in before:
        if differ & mask == np.uint64(0):
            return False
    return True


@jit()
def _bucket_stop(words, start, stop, top):
    """Where the bucket that begins at `start` ends, at most at `stop`: by doubled steps, then bisection."""
    word, step, low = words[start], 1, start
    while low + step < stop and (words[low + step] ^ word) & top == np.uint64(0):
        low += step
        step += step
    high = min(low + step, stop)  # words[low] is in the bucket, words[high] is not
    while high - low > 1:
        middle = (low + high) >> 1
        if (words[middle] ^ word) & top == np.uint64(0):
            low = middle
        else:
            high = middle
    return high


@jit(parallel=True)
def _count_pairs(words, top, bounds, radius, bucket_limit, bucket_probe, num_near, stops):
    """Each word's near ones after it, and its bucket's end; (pairs of each run, large buckets, pairs left out)."""
    sizes = np.zeros(len(bounds) - 1, np.int64)
    num_large = num_uncompared = 0
    for run in prange(len(bounds) - 1):
        start, size = bounds[run], 0
        while start < bounds[run + 1]:
            stop = _bucket_stop(words, start, bounds[run + 1], top)
            m = stop - start
            compared = m
            if m > bucket_limit:
                compared = min(bucket_probe, m)
                num_large += 1
                num_uncompared += (m - compared) * (m - compared - 1) // 2
            for i in range(start, start + compared):
                near = _num_near(words[i], words, i + 1, stop, radius)
                num_near[i], stops[i] = near, stop
                size += near
            for i in range(start + compared, stop):
                num_near[i] = 0
            start = stop
        sizes[run] = size
    return sizes, num_large, num_uncompared


@jit(parallel=True)
def _write_pairs(words, rows, bounds, radius, before, num_near, stops, places, packed, distance):
    """left << 32 | right of each run's pairs, from its place on; how many, without those found before."""
    sizes = np.zeros(len(places) - 1, np.int64)
    for run in prange(len(bounds) - 1):
        at = places[run]
        for i in range(bounds[run], bounds[run + 1]):
            if num_near[i]:
                for j in range(i + 1, np.int64(stops[i])):
                    differ = words[i] ^ words[j]
                    bits = count_bits(differ)
                    if bits <= np.uint64(radius) and _is_new(differ, before):
                        packed[at] = np.uint64(rows[i]) << np.uint64(32) | np.uint64(rows[j])
                        distance[at] = bits
                        at += 1
        sizes[run] = at - places[run]
    return sizes


@jit()
def _keep_near(packed, distance, upper, lower, radius, masks):
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


class _Matches:
    """What tables find: a word for each pair of rows and their distance.

    Where buckets are large, tables find the same again; so what is held is made unique whenever it has doubled.

    upper, lower : arrays of uint64, shape (rows, words)
        The fingerprints that the halves of such a word count.
    """

    def __init__(self, upper, lower, radius):
        self.packed, self.distance = [np.empty(0, np.uint64)], [np.empty(0, np.uint8)]
        self.compared = upper, lower, radius
        self.num_unique = 0  # when it was last made so

    def add(self, write, sizes, masks):
        """What `write(places, packed, distance)` writes: in each run as many as it says, at most `sizes`.

        `masks`, of shape (tables, words), are those under which pairs were found already.
        """
        places = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        packed, distance = np.empty(places[-1], np.uint64), np.empty(places[-1], np.uint8)
        if len(packed):
            for place, size in zip(places[:-1], write(places, packed, distance), strict=True):
                near, bits = packed[place : place + size], distance[place : place + size]
                if masks.shape[1] == 2:
                    kept = _keep_near(near, bits, *self.compared, masks)
                    near, bits = near[:kept].copy(), bits[:kept].copy()
                self.packed.append(near)
                self.distance.append(bits)
        if sum(map(len, self.packed)) > 2 * self.num_unique + _SOME:
            self._make_unique()

    def _make_unique(self):
        packed, order = _sorted(np.concatenate(self.packed), 64)
        once = np.ones(len(packed), bool)
        once[1:] = packed[1:] != packed[:-1]
        self.packed, self.distance = [packed[once]], [np.concatenate(self.distance)[order[once]]]
        self.num_unique = len(self.packed[0])

    def result(self):
        """(upper halves, lower halves, distances), sorted, each once."""
        self._make_unique()
        return *_unpacked(self.packed[0]), self.distance[0]


_SOME = 1 << 22  # pairs that may be there more than once


def _runs():
    """Runs of a table that threads share out: some more than threads, as some hold more pairs than others."""
    return 16 * numba.get_num_threads()


def _unpacked(packed):
    """(upper, lower halves) of sorted words, as int64."""
    return (packed >> np.uint64(32)).view(np.int64), (packed & np.uint64(2**32 - 1)).view(np.int64)


def cpu(fingerprints, masks, radius, bucket_limit, bucket_probe):
    """As `reference`: tables one after another, sorted by their leading bits; runs of buckets in parallel, twice.

    The first time near pairs are counted, eight words of a bucket at once; the second time those of the few words that
    have some are written, except what an earlier table found, as long as no bucket was large: large buckets leave pairs
    out, which a later table may find.

    Raises
    ------
    ResourceError
        If there are 2**32 - 1 rows or more.
    """
    check_rows(len(fingerprints), "fingerprints")
    prepared, masks, values = plan(masks), _columns(masks), np.ascontiguousarray(_columns(fingerprints))
    found, num_large, num_uncompared = _Matches(values, values, radius), 0, 0
    for number, top in enumerate(prepared.tops):
        words, rows = _sorted(_permuted(values, prepared.moves[number]), int(top).bit_count())
        bounds = _bucket_bounds(words, top, _runs())
        num_near, stops = np.empty(len(words), np.uint32), np.empty(len(words), np.uint32)
        sizes, large, uncompared = _count_pairs(words, top, bounds, radius, bucket_limit, bucket_probe, num_near, stops)
        known = 0 if num_large else number
        before = prepared.before[number, :known]
        found.add(partial(_write_pairs, words, rows, bounds, radius, before, num_near, stops), sizes, masks[:known])
        num_large += large
        num_uncompared += uncompared
    return *found.result(), num_large, num_uncompared


@jit()
def interpolation_search(words, key, low, high):
    """Place of the first of words[low:high], in ascending order at least of the key's leading bits, not below `key`.

    By interpolation (Perl and Reingold 1977): a guess, and one a square root of what is left to the other side of it,
    between which it nearly always lies; wherever they leave more than half, the middle as well. `low` and `high` are
    such that it is between them.
    """
    below = np.float64(words[low - 1]) if low > 0 else 0.0
    above = np.float64(words[high]) if high < len(words) else 2.0**64
    while high - low > 128:
        size = high - low
        share = (np.float64(key) - below) / max(above - below, 1.0)
        guess = low + min(max(np.int64(share * size), 0), size - 1)
        step = np.int64(np.sqrt(size)) + 1
        if words[guess] < key:
            low, below = guess + 1, np.float64(words[guess])
            guess = min(guess + step, high - 1)
        else:
            high, above = guess, np.float64(words[guess])
            guess = max(guess - step, low)
        for _ in range(2):
            if low <= guess < high:
                if words[guess] < key:
                    low, below = guess + 1, np.float64(words[guess])
                else:
                    high, above = guess, np.float64(words[guess])
            if high - low <= size >> 1:
                break
            guess = (low + high) >> 1
    while low < high:
        middle = (low + high) >> 1
        if words[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low


@jit()
def _around(words, key):
    """(low, high) between which the first of `words` not below `key` is: by a guess, as if they were random.

    Nothing waits for what is read here, so that the memory of several tables is read at once.
    """
    n = len(words)
    guess, step = np.int64(np.float64(key) / 2.0**64 * n), np.int64(np.sqrt(n)) + 1
    before, after = max(guess - step, 0), min(guess + step, n - 1)
    low = before if words[before] < key else 0
    high = n if words[after] < key else after
    return low, high


@jit()
def _unique(packed, distance):
    """Move the distinct of some sorted words, and their distances, to the front; how many there are."""
    size = 1
    for i in range(1, len(packed)):
        if packed[i] != packed[size - 1]:
            packed[size], distance[size] = packed[i], distance[i]
            size += 1
    return size


@jit()
def _search(words, rows, queries, parts, tops, before, radius, bucket_limit, bucket_probe):
    """(query << 32 | row, distance) of all that is found, sorted; large buckets, and what they left out.

    Of 128 bits: all whose leading words are near.
    """
    packed, distance, size = np.empty(16, np.uint64), np.empty(16, np.uint8), 0
    num_large = num_uncompared = 0
    n = words.shape[1]
    permuted, places = np.empty(len(words), np.uint64), np.empty((len(words), 2), np.int64)
    per_word = parts.shape[1] // queries.shape[1]
    for query in range(len(queries) if n else 0):
        begin, any_large = size, False
        for table in range(len(words)):
            word = np.uint64(0)
            for column in range(queries.shape[1]):
                for part in range(column * per_word, (column + 1) * per_word):
                    word |= move(queries[query, column], parts[table, part, 0], parts[table, part, 1])
            permuted[table] = word
            places[table] = _around(words[table], word & tops[table])
        for table in range(len(words)):
            word, top, column = permuted[table], tops[table], words[table]
            start = interpolation_search(column, word & top, places[table, 0], places[table, 1])
            if start == n or (column[start] ^ word) & top != np.uint64(0):
                continue
            stop = _bucket_stop(column, start, n, top)
            earlier = before[table, : 0 if any_large else table]
            if stop - start > bucket_limit:
                any_large = True
                end = min(stop, start + bucket_probe)
                num_large += 1
                num_uncompared += stop - end
                stop = end
            near = _num_near(word, column, start, stop, radius)
            if size + near > len(packed):
                packed = np.concatenate((packed, np.empty(size + near, np.uint64)))
                distance = np.concatenate((distance, np.empty(size + near, np.uint8)))
            if near:
                for j in range(start, stop):
                    differ = word ^ column[j]
                    bits = count_bits(differ)
                    if bits <= np.uint64(radius) and _is_new(differ, earlier):
                        packed[size] = np.uint64(query) << np.uint64(32) | np.uint64(rows[table, j])
                        distance[size] = bits
                        size += 1
        if size - begin > 1:
            order = begin + np.argsort(packed[begin:size])
            packed[begin:size], distance[begin:size] = packed[order], distance[order]
            if any_large or queries.shape[1] > 1:
                size = begin + _unique(packed[begin:size], distance[begin:size])
    return packed[:size], distance[:size], num_large, num_uncompared


@jit()
def _touched(words, queries, parts, tops, radius):
    """See `touched`."""
    num_tables, n = words.shape
    starts = np.empty(len(queries) * num_tables, np.int64)
    stops, near, size = np.empty_like(starts), np.empty(16, np.int64), 0
    permuted, places = np.empty(num_tables, np.uint64), np.empty((num_tables, 2), np.int64)
    per_word = parts.shape[1] // queries.shape[1]
    for query in range(len(queries)):
        for table in range(num_tables):
            word = np.uint64(0)
            for column in range(queries.shape[1]):
                for part in range(column * per_word, (column + 1) * per_word):
                    word |= move(queries[query, column], parts[table, part, 0], parts[table, part, 1])
            permuted[table] = word
            places[table] = _around(words[table], word & tops[table])
        for table in range(num_tables):
            word, top, column = permuted[table], tops[table], words[table]
            start = stop = interpolation_search(column, word & top, places[table, 0], places[table, 1])
            if start < n and (column[start] ^ word) & top == np.uint64(0):
                stop = _bucket_stop(column, start, n, top)
            at = query * num_tables + table
            starts[at], stops[at] = table * n + max(start - 1, 0), table * n + min(stop + 1, n)
            more = _num_near(word, column, start, stop, radius)
            if size + more > len(near):
                near = np.concatenate((near, np.empty(size + more, np.int64)))
            if more:
                for j in range(start, stop):
                    if count_bits(word ^ column[j]) <= np.uint64(radius):
                        near[size] = table * n + j
                        size += 1
    return starts, stops, near[:size]


def touched(words, masks, queries, radius):
    """What of some tables decides the answer of `probe_cpu` to a few queries; None for many, which read everything.

    Of each query's bucket in each table the words, the one before and the one after. Whatever else a search reads on
    its way may be damaged: a search that ends between two words in order, the one below what is sought and the other
    not, has ended where it had to. `probe_cpu` searches alike, so it ends there, too.

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
    return _touched(words, np.ascontiguousarray(_columns(queries)), prepared.moves, prepared.tops, radius)


@jit(parallel=True)
def _count_near(words, queries, top, bounds, radius, bucket_limit, bucket_probe, num_near, starts, stops):
    """Where each query's bucket begins and ends, and how many in it are near; (matches of each run, large, left out).

    Both are in the order of their leading bits: each run of queries is merged with its part of the words, by steps
    that double where the queries are few.
    """
    sizes = np.zeros(len(bounds) - 1, np.int64)
    num_large = num_uncompared = 0
    n = len(words)
    for run in prange(len(bounds) - 1):
        size, start, stop = 0, 0, 0
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
                    stop = _bucket_stop(words, start, n, top)
            end = stop
            if stop - start > bucket_limit:
                end = min(stop, start + bucket_probe)
                num_large += 1
                num_uncompared += stop - end
            near = _num_near(queries[i], words, start, end, radius)
            num_near[i], starts[i], stops[i] = near, start, end
            size += near
        sizes[run] = size
    return sizes, num_large, num_uncompared


@jit(parallel=True)
def _write_near(
    words, rows, queries, numbers, bounds, radius, before, num_near, starts, stops, places, packed, distance
):
    """query << 32 | row of each run's matches, from its place on; how many, without those found before."""
    sizes = np.zeros(len(places) - 1, np.int64)
    for run in prange(len(bounds) - 1):
        at = places[run]
        for i in range(bounds[run], bounds[run + 1]):
            if num_near[i]:
                for j in range(np.int64(starts[i]), np.int64(stops[i])):
                    differ = queries[i] ^ words[j]
                    bits = count_bits(differ)
                    if bits <= np.uint64(radius) and _is_new(differ, before):
                        packed[at] = np.uint64(numbers[i]) << np.uint64(32) | np.uint64(rows[j])
                        distance[at] = bits
                        at += 1
        sizes[run] = at - places[run]
    return sizes


def _merge(words, rows, masks, prepared, queries, radius, bucket_limit, bucket_probe, fingerprints):
    """As `probe_cpu`: for each table the queries sorted as it is, and the two merged."""
    found, num_large, num_uncompared = _Matches(queries, fingerprints, radius), 0, 0
    for number, top in enumerate(prepared.tops):
        permuted, numbers = _sorted(_permuted(queries, prepared.moves[number]), int(top).bit_count())
        bounds = _bucket_bounds(permuted, top, _runs())
        num_near, starts, stops = (np.empty(len(permuted), np.uint32) for _ in range(3))
        sizes, large, uncompared = _count_near(
            words[number], permuted, top, bounds, radius, bucket_limit, bucket_probe, num_near, starts, stops
        )
        known = 0 if num_large else number
        before = prepared.before[number, :known]
        write = partial(
            _write_near, words[number], rows[number], permuted, numbers, bounds, radius, before, num_near, starts, stops
        )
        found.add(write, sizes, masks[:known])
        num_large += large
        num_uncompared += uncompared
    return *found.result(), num_large, num_uncompared


_FEW = 512  # queries for less than one in so many words are faster searched for than sorted


def probe_cpu(words, rows, masks, queries, radius, bucket_limit, bucket_probe, fingerprints=None):
    """As `probe_reference`: a few queries each by interpolation search, many sorted and merged with each table.

    Raises
    ------
    ResourceError
        If there are 2**32 - 1 queries or more.
    """
    check_rows(len(queries), "queries")
    prepared, masks, queries = plan(masks), _columns(masks), np.ascontiguousarray(_columns(queries))
    if len(queries) * _FEW > words.shape[1]:
        return _merge(words, rows, masks, prepared, queries, radius, bucket_limit, bucket_probe, fingerprints)
    packed, distance, num_large, num_uncompared = _search(
        words, rows, queries, *prepared, radius, bucket_limit, bucket_probe
    )
    if fingerprints is not None:
        size = _keep_near(packed, distance, queries, fingerprints, radius, masks[:0])
        packed, distance = packed[:size], distance[:size]
    return *_unpacked(packed), distance, num_large, num_uncompared


# ------------------------------------------------------------------------------------------------------------ on a GPU

_SLICE = 1 << 27  # fingerprints from which those of a pass are chosen at a time: 2.1 GB
_ROW_BYTES = 52  # most that a row takes while its table is sorted; see `gpu`
_NONE = np.uint64(2**64 - 1)  # in place of two rows that are near in their leading words only


@kernel("void(uint64[:,::1], uint64[:,::1], uint64[::1])")
def _permute(fingerprints, parts, words):
    """One thread a fingerprint: its bits moved part by part."""
    at = cuda.grid(1)
    if at >= len(words):
        return
    word, part, column = np.uint64(0), np.uint64(0), np.uint64(0)
    num_words = np.uint64(fingerprints.shape[1])
    per_word = np.uint64(len(parts)) // num_words
    while column < num_words:
        column += np.uint64(1)
        while part < column * per_word:
            word |= np.uint64(move(fingerprints[at, column - np.uint64(1)], parts[part, 0], parts[part, 1]))
            part += np.uint64(1)
    words[at] = word


@kernel("void(int64[::1], int64[::1], int64, int64, boolean, boolean[::1], int64[::1])")
def _limit(starts, stops, bucket_limit, bucket_probe, own, large, left_out):
    """One thread a query: the end of its bucket becomes that of what is compared; see `_compared`."""
    at = cuda.grid(1)
    if at >= len(starts):
        return
    start, end = starts[at], stops[at]
    is_large = end - start > bucket_limit
    stop = min(start + bucket_probe, end) if is_large else end
    if own:
        is_large = is_large and start == at
        stop, end = min(stop, at), at
    stops[at], large[at], left_out[at] = stop, is_large, end - stop


@Device
def _differs_under_all(differ, before):
    """As `_is_new`, for kernels."""
    mask = np.uint64(0)
    while mask < np.uint64(len(before)):
        if differ & before[mask] == np.uint64(0):
            return False
        mask += np.uint64(1)
    return True


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
        if np.uint64(cuda.popc(differ)) <= radius and _differs_under_all(differ, before):
            size += np.uint32(1)
    num_near[at] = size


@kernel(
    "void(uint64[::1], uint32[::1], uint64[::1], uint32[::1], int64[::1], int64[::1], uint64, uint64[::1], int64[::1],"
    " int64[::1], uint64[::1], uint8[::1])"
)
def _near_words(words, rows, queries, numbers, starts, stops, radius, before, chosen, ends, packed, distance):
    """One thread a chosen query: number << 32 | row of what `_near_counts` counts, from its end downwards."""
    at = cuda.grid(1)
    if at >= len(chosen):
        return
    query, end = np.uint64(chosen[at]), np.uint64(ends[at])
    word, upper = queries[query], np.uint64(numbers[query]) << np.uint64(32)
    place, stop = np.uint64(starts[query]), np.uint64(stops[query])
    while place < stop:
        differ = word ^ words[place]
        bits = np.uint64(cuda.popc(differ))
        if bits <= radius and _differs_under_all(differ, before):
            end -= np.uint64(1)
            packed[end] = upper | np.uint64(rows[place])
            distance[end] = np.uint8(bits)
        place += np.uint64(1)


@kernel("void(uint64[:,::1], uint64[:,::1], uint64, uint64[:,::1], uint64[::1], uint8[::1])")
def _near_whole(upper, lower, radius, masks, packed, distance):
    """One thread a pair of 128-bit fingerprints whose leading words are near: _NONE unless they are, and new."""
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
        packed[at] = _NONE
    distance[at] = np.uint8(bits)


def _compared(xp, words, queries, top, bucket_limit, bucket_probe, own):
    """(where what is compared with each query begins and ends, large buckets, what they leave out)

    `own` says that the queries are the words: each is compared with those before it, and a bucket counts once.
    """
    starts = xp.searchsorted(words, queries & top)
    stops = xp.searchsorted(words, queries | ~top, side="right")
    large, left_out = xp.empty(len(queries), bool), xp.empty(len(queries), np.int64)
    _limit.threads(len(queries), starts, stops, bucket_limit, bucket_probe, own, large, left_out)
    return starts, stops, int(xp.count_nonzero(large)), int(xp.sum(left_out))


def _near(xp, table, queries, numbers, starts, stops, before, upper, lower, radius, masks):
    """(packed, distance) of what in `table`, words and rows, is near to each query and new; the rest as in `_Matches`.

    One thread a query counts what it finds, and those that find some write it.
    """
    radius, num_near = np.uint64(radius), xp.empty(len(queries), np.uint32)
    _near_counts.threads(len(queries), table[0], queries, starts, stops, radius, before, num_near)
    chosen = xp.flatnonzero(num_near)
    ends = xp.cumsum(num_near[chosen], dtype=np.int64)
    total = int(ends[-1]) if len(ends) else 0
    packed, distance = xp.empty(total, np.uint64), xp.empty(total, np.uint8)
    _near_words.threads(
        len(chosen), *table, queries, numbers, starts, stops, radius, before, chosen, ends, packed, distance
    )
    if masks.shape[1] == 2:
        _near_whole.threads(total, upper, lower, radius, masks, packed, distance)
        near = xp.flatnonzero(packed != _NONE)
        packed, distance = packed[near], distance[near]
    return packed, distance


class _Found:
    """As `_Matches`, of pairs that are on the device."""

    def __init__(self, xp):
        self.xp, self.packed, self.distance = xp, [xp.empty(0, np.uint64)], [xp.empty(0, np.uint8)]
        self.num_unique = 0

    def add(self, packed, distance):
        """(packed, distance) of a table."""
        self.packed.append(packed)
        self.distance.append(distance)
        if sum(map(len, self.packed)) > 2 * self.num_unique + _SOME:
            self._make_unique()

    def _make_unique(self):
        packed, distance = self.xp.concatenate(self.packed), self.xp.concatenate(self.distance)
        order = self.xp.argsort(packed, kind="stable")
        packed = packed[order]
        once = self.xp.ones(len(packed), bool)
        once[1:] = packed[1:] != packed[:-1]
        self.packed, self.distance = [packed[once]], [distance[order[once]]]
        self.num_unique = len(self.packed[0])

    def result(self):
        """As `_Matches.result`."""
        self._make_unique()
        packed = self.packed[0]
        upper, lower = packed >> np.uint64(32), packed & np.uint64(2**32 - 1)
        return upper.view(np.int64), lower.view(np.int64), self.distance[0]


def _permuted_gpu(xp, fingerprints, parts):
    words = xp.empty(len(fingerprints), np.uint64)
    _permute.threads(len(words), fingerprints, xp.ascontiguousarray(parts), words)
    return words


def _chosen(xp, fingerprints, parts, split, upper):
    """(permuted words, rows) of the fingerprints whose `split` highest permuted bits are `upper`, in order of rows."""
    words, rows = [xp.empty(0, np.uint64)], [xp.empty(0, np.uint32)]
    for first in range(0, len(fingerprints), _SLICE):
        some = _permuted_gpu(xp, fingerprints[first : first + _SLICE], parts)
        chosen = xp.flatnonzero(some >> np.uint64(64 - split) == np.uint64(upper))
        words.append(some[chosen])
        rows.append((chosen + first).astype(np.uint32))
    return xp.concatenate(words), xp.concatenate(rows)


def first_gpu(fingerprints):
    """As `first_reference`; all rows sorted together, of two words by the second one first."""
    xp = namespace()
    columns = _columns(xp.ascontiguousarray(fingerprints))
    order = xp.argsort(columns[:, -1], kind="stable")
    if columns.shape[1] == 2:
        order = order[xp.argsort(columns[:, 0][order], kind="stable")]
    words = columns[order]
    begins = xp.ones(len(words), bool)
    begins[1:] = (words[1:] != words[:-1]).any(axis=1)
    first = xp.empty(len(words), np.int64)
    first[order] = order[begins][xp.cumsum(begins) - 1]
    return first


def table_gpu(fingerprints, mask, whole):
    """As `table_reference`: one thread a fingerprint, then a radix sort."""
    check_rows(len(fingerprints), "fingerprints")
    xp, prepared = namespace(), plan(mask.reshape(1, *mask.shape))
    words = _permuted_gpu(xp, _columns(xp.ascontiguousarray(fingerprints)), prepared.moves[0])
    order = xp.argsort(words if whole else words & prepared.tops[0], kind="stable")
    return words[order], order.astype(np.uint32)


def gpu(fingerprints, masks, radius, bucket_limit, bucket_probe, max_rows=None):
    """As `reference`: table by table, fingerprints permuted and sorted, then one thread a row compares it with the rows
    of its bucket that are before it; in a large one, with those of the first `bucket_probe` that are.

    Fingerprints stay on the device, 8 or 16 bytes each. While a table is sorted a row takes 8 bytes for its word, 4 for
    its number, 8 for the leading bits and 32 for the sort of these: 8 for a copy, 8 for int64 indices, 16 for the other
    buffer of both. Comparing takes less, and 9 bytes for each pair found.

    Parameters
    ----------
    max_rows : int, optional
        Rows to sort at a time; as many as half of the free memory takes, unless given. A larger table is built in
        passes: in pass p, from the words whose highest bits are p. So a bucket is always whole and the answer the same;
        a pass is larger than the others where fingerprints crowd, and there are at most as many as there are prefixes.

    Raises
    ------
    ResourceError
        If there are 2**32 - 1 rows or more.
    """
    check_rows(len(fingerprints), "fingerprints")
    xp, prepared = namespace(), plan(masks)
    values = _columns(xp.ascontiguousarray(fingerprints))
    masks = _columns(xp.ascontiguousarray(masks))
    passes = -(-len(values) // (max_rows or most_rows(_ROW_BYTES)))
    found, num_large, num_uncompared = _Found(xp), 0, 0
    for number, top in enumerate(prepared.tops):
        known = 0 if num_large else number
        before = xp.ascontiguousarray(prepared.before[number, :known])
        split = min(max(0, passes - 1).bit_length(), int(top).bit_count())
        for upper in range(1 << split):
            if split:
                words, rows = _chosen(xp, values, prepared.moves[number], split, upper)
            else:
                words, rows = _permuted_gpu(xp, values, prepared.moves[number]), None
            order = xp.argsort(words & top, kind="stable")
            words = words[order]
            rows = order.astype(np.uint32) if rows is None else rows[order]
            del order
            starts, stops, large, uncompared = _compared(xp, words, words, top, bucket_limit, bucket_probe, True)
            whole = values, values, radius, masks[:known]
            packed, distance = _near(xp, (words, rows), words, rows, starts, stops, before, *whole)
            found.add(packed << np.uint64(32) | packed >> np.uint64(32), distance)
            num_large += large
            num_uncompared += uncompared
    return *found.result(), num_large, num_uncompared


def probe_gpu(words, rows, masks, queries, radius, bucket_limit, bucket_probe, fingerprints=None):
    """As `probe_reference`: table by table, one thread a query to find its bucket, and one to compare it.

    Tables in host memory go to the device one at a time, fingerprints whole.

    Raises
    ------
    ResourceError
        If there are 2**32 - 1 queries or more.
    """
    check_rows(len(queries), "queries")
    xp, prepared = namespace(), plan(masks)
    queries, masks = _columns(xp.ascontiguousarray(queries)), _columns(xp.ascontiguousarray(masks))
    values = queries if fingerprints is None else xp.ascontiguousarray(fingerprints)
    numbers = xp.arange(len(queries), dtype=np.uint32)
    found, num_large, num_uncompared = _Found(xp), 0, 0
    for number, top in enumerate(prepared.tops):
        known = 0 if num_large else number
        before = xp.ascontiguousarray(prepared.before[number, :known])
        table, order = xp.ascontiguousarray(words[number]), xp.ascontiguousarray(rows[number])
        permuted = _permuted_gpu(xp, queries, prepared.moves[number])
        starts, stops, large, uncompared = _compared(xp, table, permuted, top, bucket_limit, bucket_probe, False)
        num_large += large
        num_uncompared += uncompared
        whole = queries, values, radius, masks[:known]
        found.add(*_near(xp, (table, order), permuted, numbers, starts, stops, before, *whole))
    return *found.result(), num_large, num_uncompared
