"""Tallying posting lists: for each query, the rows that several of its lists hold, and how many do.

A list is the run of entries of one key in a sorted table, each with another row. A query has one list per key, while a
query of `probe` has one list in each of k tables. A row is found if at least the required number of the query's lists
hold it.

Source: Broder 1997, section 3, for (element, document) in the order of elements; counted as in his section 4.2.
Cost: the entries of a query's lists are gathered and sorted, 4 bytes each on the CPU; on a GPU 8 bytes, all together.
"""

from __future__ import annotations

import numpy as np

from ._cpu import jit, parallel
from ._launch import namespace, on_device
from ._ragged import sums_before


def reference(rows, starts, stops, offsets, least, allowed):
    """Rows and numbers of lists, from the definition.

    Parameters
    ----------
    rows : array of uint32, shape (entries,)
        Of a table.
    starts, stops : arrays of int64, shape (lists,)
        Which entries each list is; no row is twice in a list.
    offsets : array of int64, shape (queries + 1,)
        Where the lists of each query begin.
    least : array of int64, shape (queries,)
        Lists that have to hold a row, at least 1.
    allowed : array of uint8, shape (all rows,)
        Rows that are 0 there are passed over.

    Returns
    -------
    found : array of int64
        Rows, query by query, ascending.
    shared : array of int64
        How many lists hold each.
    offsets : array of int64, shape (queries + 1,)
        Where those of each query begin.
    """
    found: list[int] = []
    shared: list[int] = []
    ends = [0]
    for query in range(len(offsets) - 1):
        lists: dict[int, int] = {}
        for start, stop in zip(
            starts[offsets[query] : offsets[query + 1]], stops[offsets[query] : offsets[query + 1]], strict=True
        ):
            for row in rows[start:stop].tolist():
                lists[row] = lists.get(row, 0) + 1
        some = sorted(row for row, number in lists.items() if number >= least[query] and allowed[row])
        found += some
        shared += [lists[row] for row in some]
        ends.append(len(found))
    return np.array(found, np.int64), np.array(shared, np.int64), np.array(ends, np.int64)


@jit()
def _count(some, least, place, found, shared):
    """Number of the rows that are often enough among sorted ones; written from `place` on, unless that is negative."""
    number = begin = 0
    for at in range(1, len(some) + 1):
        if at == len(some) or some[at] != some[begin]:
            if at - begin >= least:
                if place >= 0:
                    found[place + number] = some[begin]
                    shared[place + number] = at - begin
                number += 1
            begin = at
    return number


@parallel(
    "uint32[::1], int64[::1], int64[::1], int64[::1], int64[::1], uint8[::1], int64[::1], uint32[::1], "
    "int64[::1], int64[::1]"
)
def _gather_all(lower, upper, rows, starts, stops, offsets, least, allowed, places, gathered, sizes, counts):
    """Gather and sort what the lists of each query hold, and count what is found."""
    nothing = np.empty(0, np.int64)
    for query in range(lower, upper):
        begin = end = places[query]
        for each in range(offsets[query], offsets[query + 1]):
            for at in range(starts[each], stops[each]):
                if allowed[rows[at]] != 0:
                    gathered[end] = rows[at]
                    end += 1
        gathered[begin:end].sort()
        sizes[query] = end - begin
        counts[query] = _count(gathered[begin:end], least[query], -1, nothing, nothing)


@parallel("uint32[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1]")
def _write_all(begin, end, gathered, places, sizes, least, new_offsets, found, shared):
    for query in range(begin, end):
        some = gathered[places[query] : places[query] + sizes[query]]
        _count(some, least[query], new_offsets[query], found, shared)


def cpu(rows, starts, stops, offsets, least, allowed):
    """As `reference`; queries in parallel."""
    before = sums_before(stops - starts)
    places = before[offsets]  # where the entries of each query begin
    gathered = np.empty(places[-1] - places[0], np.uint32)
    places = places - places[0]
    sizes, counts = np.empty(len(offsets) - 1, np.int64), np.empty(len(offsets) - 1, np.int64)
    _gather_all(len(offsets) - 1, rows, starts, stops, offsets, least, allowed, places, gathered, sizes, counts)
    new_offsets = sums_before(counts)
    found, shared = np.empty(new_offsets[-1], np.int64), np.empty(new_offsets[-1], np.int64)
    _write_all(len(sizes), gathered, places, sizes, least, new_offsets, found, shared)
    return found, shared, new_offsets


def gpu(rows, starts, stops, offsets, least, allowed):
    """As `reference`: (query, row) of all entries side by side, in one sort."""
    xp = namespace()
    rows, starts, stops, offsets, least, allowed = map(on_device, (rows, starts, stops, offsets, least, allowed))
    number = len(offsets) - 1
    first, last = int(offsets[0]), int(offsets[-1])
    starts, ends = starts[first:last], xp.cumsum(stops[first:last] - starts[first:last])
    at = xp.arange(int(ends[-1]) if len(ends) else 0)
    each = xp.searchsorted(ends, at, side="right")  # the list of each entry
    begins = ends - (stops[first:last] - starts)
    held = rows[starts[each] + at - begins[each]]
    query = xp.searchsorted(offsets[1:] - first, each, side="right")
    there = allowed[held] != 0
    packed = xp.sort(query[there].astype(np.uint64) << np.uint64(32) | held[there].astype(np.uint64))
    begins = xp.ones(len(packed), bool)
    begins[1:] = packed[1:] != packed[:-1]
    begins = xp.flatnonzero(begins)
    shared = xp.diff(xp.append(begins, len(packed)))
    packed = packed[begins]
    query = (packed >> np.uint64(32)).astype(np.int64)
    enough = shared >= least[query]
    found = (packed & np.uint64(2**32 - 1)).astype(np.int64)
    new_offsets = xp.searchsorted(query[enough], xp.arange(number + 1))
    return found[enough], shared[enough].astype(np.int64), new_offsets.astype(np.int64)
