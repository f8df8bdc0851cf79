"""Probing a sorted table of postings: for each query, the rows whose prefix shares a shingle with the query's.

Queries and rows are sets, of whose shingles one order is known to both; their prefixes are those of `prefixes`. A key
is a shingle with its lowest bit cleared, or set where the shingle is in the long prefix of its row alone: so the
postings of a shingle lie side by side, those of short prefixes first. (Two shingles that differ in that bit alone share
their postings, which costs a look.) Let i be the place of a shared shingle in the order of a query of a shingles. A row
of b shingles is looked for if

    a <= b and the shingle is in the query's short prefix, or a >= b and it is in the row's; and
    min(a - i, b) >= least_overlap(a + b)

as is so for the first shingle that the two sets of any pair at the threshold have in common (`prefixes`).

Source: Chaudhuri, Ganti and Kaushik 2006; Xiao, Wang, Lin and Yu 2008; the tables of `probe`.
Cost: a look into the table by interpolation for each shingle of a query's prefix, and one at each posting that is met,
up to the last row that is wanted; a heap merges the runs of a query, which ascend by rows.
"""

from __future__ import annotations

import numba
import numpy as np
from numba import prange

from ._bounds import least_overlap
from ._launch import jit
from .prefixes import LONG, PLACE_BITS
from .probe import _first_not_below, _first_row, _run_end

ONE = np.uint64(1)
"""The bit of a key whose shingle is in the long prefix of its row alone."""

_PLACE = np.uint64((1 << PLACE_BITS) - 1)


def keys_of(shingles, entries):
    """The keys of postings as `prefixes` gives them."""
    return (shingles & ~ONE) | (entries >= LONG).astype(np.uint64)


def reference(keys, rows, ends, shingles, entries, offsets, sizes, queries, threshold, first, stop, most, allowed):
    """The first rows for each query, from the definition.

    Parameters
    ----------
    keys : array of uint64, shape (postings,)
        Of the postings of all rows, ascending.
    rows : array of uint32, shape (postings,)
        Their rows, ascending among equal keys.
    ends : array of int64, shape (all rows + 1,)
        Row i has ends[i + 1] - ends[i] shingles.
    shingles, entries : arrays of uint64, shape (n,)
        The prefixes of queries as `prefixes` gives them, one after another.
    offsets : array of int64, shape (all queries + 1,)
        Where the prefix of each begins.
    sizes : array of int32, shape (all queries,)
        How many shingles each has.
    queries : array of int64, shape (asked,)
        Numbers of the queries that are asked.
    threshold : float
        In (0, 1].
    first, stop : arrays of int64, shape (asked,)
        Rows from the first on and before the second are looked for.
    most : array of int64, shape (asked,)
        Most rows that are wanted of each.
    allowed : array of uint8, shape (all rows,)
        Rows that are 0 there are passed over.

    Returns
    -------
    found : array of int64
        Query by query, ascending.
    offsets : array of int64, shape (asked + 1,)
        Where those of each begin.
    """
    postings: dict[int, list[tuple[bool, int]]] = {}
    for key, row in zip(keys.tolist(), rows.tolist(), strict=True):
        postings.setdefault(key // 2, []).append((key % 2 == 1, row))
    bounds = zip(first.tolist(), stop.tolist(), most.tolist(), strict=True)
    found = []
    for query, (low, high, wanted) in zip(queries.tolist(), bounds, strict=True):
        some, a = set(), int(sizes[query])
        for place in range(offsets[query], offsets[query + 1]):
            shingle, entry = int(shingles[place]), int(entries[place])
            for theirs_long, row in postings.get(shingle // 2, []):
                b = int(ends[row + 1] - ends[row])
                in_short = (a <= b and entry < 2**63) or (a >= b and not theirs_long)
                least = next(c for c in range(a + b + 1) if c == a + b or c / (a + b - c) >= threshold)
                if in_short and min(a - entry % 2**31, b) >= least and low <= row < high and allowed[row]:
                    some.add(row)
        found.append(sorted(some)[: max(0, wanted)])
    return np.array([row for some in found for row in some], np.int64), np.cumsum([0, *map(len, found)], dtype=np.int64)


@jit(parallel=True)
def _find_all(keys, rows, ends, shingles, entries, offsets, queries, first, stop, places, starts, stops, parts):
    """Write where the postings of each shingle of the asked prefixes lie whose rows are looked for, in two runs."""
    number = len(queries)
    for part in prange(parts):
        for asked in range(part * number // parts, (part + 1) * number // parts):
            query, at = queries[asked], places[asked]
            for place in range(offsets[query], offsets[query + 1]):
                key = shingles[place] & ~ONE
                start = _first_not_below(keys, np.int64(0), key)
                for run in range(2):
                    end = start
                    if start < keys.shape[1] and keys[0, start] == key and (run == 0 or entries[place] < LONG):
                        end = _run_end(keys, np.int64(0), start, key)
                    starts[at, run] = _first_row(rows, np.int64(0), start, end, first[asked])
                    stops[at, run] = _first_row(rows, np.int64(0), starts[at, run], end, stop[asked])
                    start, key = end, key | ONE
                at += 1


@jit()
def _sink(heap, number, at):
    """Let an entry of a heap, whose least comes first, sink to its place."""
    word = heap[at]
    while True:
        child = 2 * at + 1
        if child >= number:
            break
        if child + 1 < number and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= word:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = word


@jit()
def _merge(rows, ends, entries, begin, query_size, threshold, most, allowed, starts, stops, heap, found):
    """Merge the runs of a query, which moves its `starts`; returns how many rows were written to `found`.

    A word of the heap is a row and, in its lower half, the number of the run that it is the first one of.
    """
    number = 0
    for at in range(len(starts)):
        for run in range(2):
            if starts[at, run] < stops[at, run]:
                row = np.uint64(rows[0, starts[at, run]])
                heap[number] = row << np.uint64(32) | np.uint64(2 * at + run)
                number += 1
    for at in range(number // 2 - 1, -1, -1):
        _sink(heap, number, at)
    done, last = np.int64(0), np.int64(-1)
    while number and done < most:
        row, run = np.int64(heap[0] >> np.uint64(32)), np.int64(heap[0] & np.uint64(2**32 - 1))
        at, kind = run >> 1, run & 1
        starts[at, kind] += 1
        if starts[at, kind] < stops[at, kind]:
            heap[0] = np.uint64(rows[0, starts[at, kind]]) << np.uint64(32) | np.uint64(run)
        else:
            number -= 1
            heap[0] = heap[number]
        _sink(heap, number, 0)
        if row == last or allowed[row] == 0:
            continue
        size, entry = ends[row + 1] - ends[row], entries[begin + at]
        if not ((query_size <= size and entry < LONG) or (query_size >= size and kind == 0)):
            continue
        if min(query_size - np.int64(entry & _PLACE), size) >= least_overlap(query_size + size, threshold):
            found[done] = row
            done += 1
            last = row
    return done


@jit(parallel=True)
def _merge_all(
    rows, ends, entries, offsets, sizes, queries, threshold, most, allowed, places, starts, stops, room, found, counts, parts
):
    """Write the rows of each query from where it has room on, and count them."""
    number = len(queries)
    for part in prange(parts):
        begin, end = part * number // parts, (part + 1) * number // parts
        longest = 0
        for asked in range(begin, end):
            longest = max(longest, places[asked + 1] - places[asked])
        heap = np.empty(2 * longest + 1, np.uint64)
        for asked in range(begin, end):
            low, high, query = places[asked], places[asked + 1], queries[asked]
            counts[asked] = 0
            if room[asked] < room[asked + 1]:
                counts[asked] = _merge(
                    rows,
                    ends,
                    entries,
                    offsets[query],
                    np.int64(sizes[query]),
                    threshold,
                    most[asked],
                    allowed,
                    starts[low:high],
                    stops[low:high],
                    heap,
                    found[room[asked] : room[asked + 1]],
                )


def cpu(keys, rows, ends, shingles, entries, offsets, sizes, queries, threshold, first, stop, most, allowed):
    """As `reference`; queries in parallel, each with room for as many rows as it meets postings."""
    places = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.diff(offsets)[queries])])
    starts, stops = (np.empty((int(places[-1]), 2), np.int64) for _ in range(2))
    parts, keys, rows = min(len(queries), 8 * numba.get_num_threads()), keys[None, :], rows[None, :]
    _find_all(keys, rows, ends, shingles, entries, offsets, queries, first, stop, places, starts, stops, parts)
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum((stops - starts).sum(axis=1))])
    met = np.maximum(0, np.minimum(before[places[1:]] - before[places[:-1]], most))
    room = np.concatenate([np.zeros(1, np.int64), np.cumsum(met)])
    found, counts = np.empty(int(room[-1]), np.int64), np.empty(len(queries), np.int64)
    asked = sizes, queries, threshold, most, allowed, places, starts, stops, room, found, counts, parts
    _merge_all(rows, ends, entries, offsets, *asked)
    there = np.arange(len(found)) - np.repeat(room[:-1], met) < np.repeat(counts, met)
    return found[there], np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
