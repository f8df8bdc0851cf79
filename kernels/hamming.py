"""The Hamming-distance problem: which fingerprints differ from one another in at most k bits.

A table is a mask of p bits, the fingerprints with these bits moved to the top (in their order, the other bits after
them in theirs), sorted, and the row of each. Those that share the top p bits are a bucket. The masks of a design
(`neardup_gpu.hamming`) are such that whatever k bits differ, some mask has none of them: so two fingerprints that
differ in at most k bits share a bucket of some table, and it is enough to count the bits of the xor within buckets.

A bucket of m fingerprints has m (m - 1) / 2 pairs. With its rows numbered from 0 by priority, row j is compared with
row i < j exactly when i < bucket_probe or j < bucket_limit: the first `bucket_limit` rows all with all, a later one
with the first `bucket_probe`. So adding rows at the end never undoes a pair. A bucket of more than `bucket_limit`
rows is large; its rows are crowded, and the pairs that it leaves out are counted.

Fingerprints have 64 bits or 128, which are two words, the higher one first. Tables hold one word: the first 64 bits
of the permuted 128. Leading words of two fingerprints within k bits are within k bits, so what passes in a bucket is
then compared whole.

Source: Manku, Jain and Das Sarma 2007, section 3.
Cost: a radix sort per table, 24 bytes per row, of only the p bits if no more are needed; an xor and a count of bits per
pair of a bucket; 8 to 16 bytes per found pair.
"""

from __future__ import annotations

from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from ._bits import as_integers, in_columns, permuted_on_device, permuted_words, plan
from ._buckets import pairs_before, pairs_of_buckets
from ._cpu import parallel
from ._launch import check_rows, fetch_numbers, most_rows, namespace, on_device
from ._matches import DistinctPairs
from ._near import (
    add_near,
    bucket_bounds,
    bucket_stop,
    compared_ranges,
    near_ends,
    near_on_device,
    num_near_words,
    num_runs_of_table,
)
from ._sort import order_of, radix_sort

NO_LIMIT = 2**62
"""A `bucket_limit` that no bucket exceeds."""


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
        The first `bucket_limit` rows of a bucket are compared all with all, each later row with the first
        `bucket_probe`.

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
    crowded : array of bool, shape (rows,)
        Whether each row is in such a bucket of any table.
    """
    values = as_integers(fingerprints)
    buckets: dict[tuple[int, int], list[int]] = {}
    for table, mask in enumerate(as_integers(masks)):
        for row, value in enumerate(values):
            buckets.setdefault((table, value & mask), []).append(row)
    pairs, *counts = pairs_of_buckets(buckets.values(), bucket_limit, bucket_probe, len(values))
    distances = ((a, b, (values[a] ^ values[b]).bit_count()) for a, b in sorted(set(pairs)))
    found = [each for each in distances if each[2] <= radius]
    left, right, distance = np.array(found, np.int64).reshape(-1, 3).T.copy()
    return left, right, distance.astype(np.uint8), *counts


@parallel(
    "uint64[::1], uint32[::1], uint64, int64[::1], int64, int64, int64, uint32[::1], uint32[::1], "
    "boolean[::1], int64[:, ::1]"
)
def _count_pairs(
    lower, upper, words, rows, top, bounds, radius, bucket_limit, bucket_probe, num_near, stops, crowded, counts
):
    """Write each word's near ones after it, and the end of what it is compared with; and mark the rows of large buckets
    as crowded. `counts` are of each run: pairs, large buckets, and pairs left out.
    """
    for run in range(lower, upper):
        start, size = bounds[run], 0
        num_large = num_uncompared = 0
        while start < bounds[run + 1]:
            stop = bucket_stop(words, start, bounds[run + 1], top)
            m = stop - start
            whole = min(m, max(bucket_limit, bucket_probe))  # rows that are compared all with all
            if m > bucket_limit:
                num_large += 1
                left_out = np.int64(pairs_before(m, m) - pairs_before(whole, whole))
                num_uncompared += left_out - (m - whole) * bucket_probe
                for i in range(start, stop):
                    crowded[rows[i]] = True
            for i in range(start, start + whole):
                end = stop if i - start < bucket_probe else start + whole
                near = num_near_words(words[i], words, i + 1, end, radius)
                num_near[i], stops[i] = near, end
                size += near
            for i in range(start + whole, stop):
                num_near[i] = 0
            start = stop
        counts[run, 0], counts[run, 1], counts[run, 2] = size, num_large, num_uncompared


def cpu(fingerprints, masks, radius, bucket_limit, bucket_probe, found=None):
    """As `reference`: tables one after another, sorted by their leading bits; runs of buckets in parallel, twice.

    The first time near pairs are counted, eight words of a bucket at once; the second time those of the few words that
    have some are written, except what an earlier table found, as long as no bucket was large: large buckets leave pairs
    out, which a later table may find.

    Parameters
    ----------
    found : object, optional
        Takes pairs as they are found, by its method `add`, as `DistinctPairs` does. A pair may come several times. Then
        None is returned in place of each of the first three arrays.

    Raises
    ------
    ResourceError
        If there are 2**32 - 1 rows or more.
    """
    check_rows(len(fingerprints), "fingerprints")
    prepared, masks, values = plan(masks), in_columns(masks), np.ascontiguousarray(in_columns(fingerprints))
    pairs, num_large, num_uncompared = DistinctPairs() if found is None else found, 0, 0
    crowded = np.zeros(len(values), bool)
    for number, top in enumerate(prepared.tops):
        words, rows = radix_sort(permuted_words(values, prepared.moves[number]), int(top).bit_count())
        bounds = bucket_bounds(words, top, num_runs_of_table())
        num_near, stops = np.empty(len(words), np.uint32), np.empty(len(words), np.uint32)
        counts = np.empty((len(bounds) - 1, 3), np.int64)
        _count_pairs(
            len(counts), words, rows, top, bounds, radius, bucket_limit, bucket_probe, num_near, stops, crowded, counts
        )
        sizes, large, uncompared = counts[:, 0], int(counts[:, 1].sum()), int(counts[:, 2].sum())
        known = 0 if num_large else number
        before = prepared.before[number, :known]
        table, near = (words, rows, words, rows), (num_near, np.empty(0, np.uint32), stops)
        for some, of_each in _in_pieces(bounds, sizes, num_near):
            add_near(pairs, table, some, of_each, near, before, (values, values, radius), masks[:known])
        num_large += large
        num_uncompared += uncompared
    return *(pairs.result() if found is None else (None,) * 3), num_large, num_uncompared, crowded


_PIECE = 1 << 22  # pairs that are written at a time, or those of one row


def _in_pieces(bounds, sizes, num_near):
    """Yield (bounds of runs, pairs of each run), so that pieces of a table have few pairs to write."""
    if sizes.sum() <= _PIECE:
        yield bounds, sizes
        return
    ends = np.cumsum(num_near, dtype=np.int64)
    first = done = 0
    while first < len(ends):
        last = max(first + 1, int(np.searchsorted(ends, done + _PIECE, side="right")))
        shares = np.linspace(done, int(ends[last - 1]), len(bounds)).astype(np.int64)[1:-1]
        some = np.clip(np.searchsorted(ends, shares, side="right"), first, last)
        some = np.concatenate([[first], some, [last]]).astype(np.int64)
        before = np.where(some > 0, ends[some - 1], 0)
        yield some, np.diff(before)
        first, done = last, int(ends[last - 1])


_SLICE = 1 << 27  # fingerprints from which those of a pass are chosen at a time: 2.1 GB


_ROW_BYTES = 45  # most that a row takes while its table is compared; see `gpu`


def _rows_of_pass(xp, fingerprints, parts, split, upper):
    """(permuted words, rows) of the fingerprints whose `split` highest permuted bits are `upper`, in order of rows."""
    words, rows = [xp.empty(0, np.uint64)], [xp.empty(0, np.uint32)]
    for first in range(0, len(fingerprints), _SLICE):
        some = permuted_on_device(xp, fingerprints[first : first + _SLICE], parts)
        chosen = xp.flatnonzero(some >> np.uint64(64 - split) == np.uint64(upper))
        words.append(some[chosen])
        rows.append((chosen + first).astype(np.uint32))
    return xp.concatenate(words), xp.concatenate(rows)


_TOGETHER = 1 << 22  # rows of tables that are compared before the host waits for what there is to write


class _Compared(NamedTuple):
    """A table, or a pass of one, whose near pairs are counted; see `compared_ranges` and `near_ends`."""

    number: int
    words: Any
    rows: Any
    ranges: tuple[Any, Any]
    large: Any
    known: int
    ends: Any


def gpu(fingerprints, masks, radius, bucket_limit, bucket_probe, found=None, max_rows=None):
    """As `reference`, table by table. Fingerprints are permuted and sorted; one thread per row compares it with rows
    of its bucket that are before it; from number `bucket_limit` on, with the first `bucket_probe` of them.

    The host waits once for each table; once for several, where there are few rows, up to `_TOGETHER`. They are counted
    as if no bucket were large; after one that is, a table is counted again.

    Fingerprints stay on the device, 8 or 16 bytes each, and whether each is crowded, 1 byte. While a table is sorted a
    row takes 8 bytes for its word, 4 for its number and 16 for the sort; while its bucket is found, 33 in place of the
    16, which include 16 for its beginning and its end. Comparing takes less, and 9 bytes per found pair.

    Parameters
    ----------
    found : object, optional
        As for `cpu`.
    max_rows : int, optional
        Rows to sort at a time; by default as many rows as fit in half of the free memory. A larger table is built in
        passes: in pass p, from the words whose highest bits are p. So a bucket is always whole and the answer the same;
        a pass is larger than the others if fingerprints crowd, and there is at most one pass per prefix.

    Raises
    ------
    ResourceError
        If there are 2**32 - 1 rows or more.
    """
    check_rows(len(fingerprints), "fingerprints")
    xp, prepared = namespace(), plan(masks)
    values = in_columns(on_device(fingerprints))
    masks = in_columns(on_device(masks))
    passes = -(-len(values) // (max_rows or most_rows(_ROW_BYTES)))
    pairs, num_large, num_uncompared = DistinctPairs(xp) if found is None else found, 0, 0
    crowded = xp.zeros(len(values), bool)

    def count(number, words, ranges, known):
        return near_ends(xp, words, words, ranges, radius, on_device(prepared.before[number, :known]))

    def compare(number, split, upper):
        """A table, and its numbers: what is on the device."""
        top = prepared.tops[number]
        if split:
            words, rows = _rows_of_pass(xp, values, prepared.moves[number], split, upper)
        else:
            words, rows = permuted_on_device(xp, values, prepared.moves[number]), None
        order, _ = order_of(words, int(top).bit_count())
        words = words[order]
        rows = order if rows is None else rows[order]
        del order
        starts, stops, large, left_out = compared_ranges(xp, words, words, top, bucket_limit, bucket_probe, True)
        known, ranges = 0 if num_large else number, (starts, stops)
        made = _Compared(number, words, rows, ranges, large, known, count(number, words, ranges, known))
        firsts = large & (starts == xp.arange(len(words)))  # each bucket once, where it begins
        return made, (xp.count_nonzero(firsts), left_out, made.ends[-1])

    splits = [min(max(0, passes - 1).bit_length(), int(top).bit_count()) for top in prepared.tops]
    steps = ((number, split, upper) for number, split in enumerate(splits) for upper in range(1 << split))
    together = 1 if any(splits) else max(1, min(_TOGETHER, max_rows or _TOGETHER) // max(1, len(values)))
    while some := [compare(*step) for step in islice(steps, together)]:
        totals = fetch_numbers(*(number for _, numbers in some for number in numbers))
        for at, (made, _) in enumerate(some):
            large, uncompared, total = totals[3 * at : 3 * at + 3]
            if num_large and made.known:
                made = made._replace(known=0, ends=count(made.number, made.words, made.ranges, 0))
                (total,) = fetch_numbers(made.ends[-1])
            before = on_device(prepared.before[made.number, : made.known])
            whole = values, values, radius, masks[: made.known]
            table = (made.words, made.rows), made.words, made.rows, made.ranges
            for packed, distance in near_on_device(xp, *table, before, made.ends, total, *whole):
                pairs.add(packed << np.uint64(32) | packed >> np.uint64(32), distance)
            num_large += large
            num_uncompared += uncompared
            if large:
                crowded[made.rows] = crowded[made.rows] | made.large
        del some, made, table  # the next sort needs the room
    return *(pairs.result() if found is None else (None,) * 3), num_large, num_uncompared, crowded
