"""Probing a sorted table of postings: for each query, the rows whose prefix shares a shingle with the query's.

Queries and rows are sets, of whose shingles one order is known to both; their prefixes are those of `prefixes`. A key
is mix64(shingle) with its lowest bit cleared, or set where the shingle is in the long prefix of its set alone: so the
postings of a shingle lie side by side, those of short prefixes first, and keys are uniform, where the first shingles of
an order may not be. (Two shingles whose keys differ in that bit alone share their postings, which costs a look.) Let i
be the place of a shared shingle in the order of a query of a shingles. A row of b shingles is looked for if

    a <= b and the shingle is in the query's short prefix, or a >= b and it is in the row's; and
    min(a - i, b) >= least_overlap(a + b)

as is so for the first shingle that the two sets of any pair at the threshold have in common (`prefixes`).

Source: Chaudhuri, Ganti and Kaushik 2006; Xiao, Wang, Lin and Yu 2008; the tables of `probe`.
Cost: a look into the table by interpolation for each shingle of a query's prefix, in about the order of keys, and one
at each posting that is met, up to the last row that is wanted: a heap merges a query's runs, which ascend by rows.
Where these runs have many rows that are not allowed, they are read from a copy of the table without such rows.
"""

from __future__ import annotations

import numpy as np

from ._bounds import least_overlap
from ._cpu import jit, num_threads, parallel
from ._gf2 import mix64_all
from ._probing import without_others
from ._ragged import of_rows, sums_before
from ._search import lower_bound
from ._sort import radix_sort
from ._table_search import first_not_below, near, run_end
from .prefixes import LONG, PLACE_BITS

ONE = np.uint64(1)
"""The bit of a key whose shingle is in the long prefix of its row alone."""


_FEW = 1 << 12
"""Shingles that take turns as they come."""

_CLOSE = 64
"""Postings to a shingle, on average, where one that was found says better where the next will be than its key does."""


def keys_of(shingles, entries):
    """(keys, places in their set's order: uint32) of postings as `prefixes` gives them."""
    places = (entries & np.uint64((1 << PLACE_BITS) - 1)).astype(np.uint32)
    return (mix64_all(shingles) & ~ONE) | (entries >= LONG).astype(np.uint64), places


def reference(keys, rows, ends, elements, places, offsets, sizes, threshold, first, stop, most, allowed):
    """The first rows for each query, from the definition.

    Parameters
    ----------
    keys : array of uint64, shape (postings,)
        Of the postings of all rows, ascending.
    rows : array of uint32, shape (postings,)
        Their rows, ascending among equal keys.
    ends : array of int64, shape (all rows + 1,)
        Row i has ends[i + 1] - ends[i] shingles.
    elements : array of uint64, shape (n,)
        The keys of the prefixes of queries, one after another.
    places : array of uint32, shape (n,)
        The place of each in its query's order, from 0.
    offsets : array of int64, shape (queries + 1,)
        Where the prefix of each begins.
    sizes : array of int32, shape (queries,)
        How many shingles each has.
    threshold : float
        In (0, 1].
    first, stop : arrays of int64, shape (queries,)
        Rows from the first on and before the second are looked for.
    most : array of int64, shape (queries,)
        Most rows that are wanted of each.
    allowed : array of uint8, shape (all rows,)
        Rows that are 0 there are passed over.

    Returns
    -------
    found : array of int64
        Query by query, ascending.
    offsets : array of int64, shape (queries + 1,)
        Where those of each begin.
    """
    postings: dict[int, list[tuple[bool, int]]] = {}
    for key, row in zip(keys.tolist(), rows.tolist(), strict=True):
        postings.setdefault(key // 2, []).append((key % 2 == 1, row))
    bounds = zip(first.tolist(), stop.tolist(), most.tolist(), strict=True)
    found = []
    for query, (low, high, wanted) in enumerate(bounds):
        some, a = set(), int(sizes[query])
        for at in range(offsets[query], offsets[query + 1]):
            key, place = int(elements[at]), int(places[at])
            for theirs_long, row in postings.get(key // 2, []):
                b = int(ends[row + 1] - ends[row])
                in_short = (a <= b and key % 2 == 0) or (a >= b and not theirs_long)
                least = next(c for c in range(a + b + 1) if c == a + b or c / (a + b - c) >= threshold)
                if in_short and min(a - place, b) >= least and low <= row < high and allowed[row]:
                    some.add(row)
        found.append(sorted(some)[: max(0, wanted)])
    return of_rows(found, np.int64)


@parallel(
    "uint64[:, ::1], uint32[:, ::1], uint64[::1], uint32[::1], int64[::1], int64[::1], int64[::1], "
    "int64[:, ::1], int64[:, ::1], int64"
)
def _find_all(lower, upper, keys, rows, words, turns, queries, first, stop, starts, stops, parts):
    """Write where the postings of each shingle lie whose rows are looked for, in two runs, where there are any.

    `words` are keys of shingles, which take turns: neighbouring ones are nearly in order of `words`, and so look at
    neighbouring places of the table.
    """
    number, close = keys.shape[1], len(words) > _FEW and 0 < keys.shape[1] < _CLOSE * len(words)
    for part in range(lower, upper):
        start = np.int64(-1)
        for turn in range(part * len(words) // parts, (part + 1) * len(words) // parts):
            word = words[turn]
            key = word & ~ONE
            if close and start >= 0:
                start = near(keys, np.int64(0), key, min(start, number - 1))
            else:
                start = first_not_below(keys, np.int64(0), key)
            for run in range(2):
                end = start
                if start < number and keys[0, start] == key and (run == 0 or word & ONE == np.uint64(0)):
                    end = run_end(keys, np.int64(0), start, key)
                    at = np.int64(turns[turn])
                    begin = lower_bound(rows[0], start, end, first[queries[at]])
                    last = lower_bound(rows[0], begin, end, stop[queries[at]])
                    if begin < last:
                        starts[at, run], stops[at, run] = begin, last
                start, key = end, key | ONE


@jit()
def _sift_down(heap, number, at):
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
def _merge(rows, ends, elements, places, query_size, threshold, most, allowed, starts, stops, heap, found):
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
        _sift_down(heap, number, at)
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
        _sift_down(heap, number, 0)
        if row == last or allowed[row] == 0:
            continue
        size, in_short = ends[row + 1] - ends[row], elements[at] & ONE == np.uint64(0)
        if not ((query_size <= size and in_short) or (query_size >= size and kind == 0)):
            continue
        if min(query_size - np.int64(places[at]), size) >= least_overlap(query_size + size, threshold):
            found[done] = row
            done += 1
            last = row
    return done


@parallel(
    "uint32[:, ::1], int64[::1], uint64[::1], uint32[::1], int64[::1], int32[::1], float64, int64[::1], "
    "uint8[::1], int64[:, ::1], int64[:, ::1], int64[::1], int64[::1], int64[::1], int64",
    "uint32[:, ::1], int64[::1], uint64[::1], uint64[::1], int64[::1], int32[::1], float64, int64[::1], "
    "uint8[::1], int64[:, ::1], int64[:, ::1], int64[::1], int64[::1], int64[::1], int64",
)
def _merge_all(
    lower,
    upper,
    rows,
    ends,
    elements,
    places,
    offsets,
    sizes,
    threshold,
    most,
    allowed,
    starts,
    stops,
    room,
    found,
    counts,
    parts,
):
    """Write the rows of each query from where it has room on, and count them."""
    number = len(sizes)
    for part in range(lower, upper):
        begin, end = part * number // parts, (part + 1) * number // parts
        longest = 0
        for query in range(begin, end):
            longest = max(longest, offsets[query + 1] - offsets[query])
        heap = np.empty(2 * longest + 1, np.uint64)
        for query in range(begin, end):
            low, high = offsets[query], offsets[query + 1]
            counts[query] = 0
            if room[query] < room[query + 1]:
                counts[query] = _merge(
                    rows,
                    ends,
                    elements[low:high],
                    places[low:high],
                    np.int64(sizes[query]),
                    threshold,
                    most[query],
                    allowed,
                    starts[low:high],
                    stops[low:high],
                    heap,
                    found[room[query] : room[query + 1]],
                )


def cpu(keys, rows, ends, elements, places, offsets, sizes, threshold, first, stop, most, allowed):
    """As `reference`; shingles in parallel, then queries, each with room for as many rows as it meets postings."""
    starts, stops = (np.zeros((len(elements), 2), np.int64) for _ in range(2))
    keys, rows, queries = keys[None, :], rows[None, :], np.repeat(np.arange(len(sizes)), np.diff(offsets))
    words, turns = radix_sort(elements.copy(), len(elements).bit_length() if len(elements) > _FEW else 0)
    parts = 8 * num_threads()
    some = min(len(elements), parts)
    _find_all(some, keys, rows, words, turns, queries, first, stop, starts, stops, some)
    rows, starts, stops = without_others(rows, 0, starts, stops, 2 * offsets[1:], most, allowed)
    before = sums_before(stops[:, 0] - starts[:, 0] + stops[:, 1] - starts[:, 1])
    met = np.maximum(0, np.minimum(np.diff(before[offsets]), most))
    room = sums_before(met)
    found, counts = np.empty(int(room[-1]), np.int64), np.empty(len(sizes), np.int64)
    some = min(len(sizes), parts)
    how = sizes, threshold, most, allowed, starts, stops, room, found, counts, some
    _merge_all(some, rows, ends, elements, places, offsets, *how)
    there = np.arange(len(found)) - np.repeat(room[:-1], met) < np.repeat(counts, met)
    return found[there], sums_before(counts)
