"""Runs of postings: the documents that have a shingle in their prefix, shingle by shingle.

A run is the entries of one shingle, as `prefixes` makes them: those of short prefixes in order of rows, then those that
are in long prefixes alone, in order of rows. Two documents can only meet in a run if at least one of them has the
shingle in its short prefix; runs of one entry, and of long entries alone, are dropped.

A document's places are the runs that it is in, in the order of its elements: 2**31 times the number of the run, and
the place of the element among the document's.

Source: Broder 1997, section 4.2, for (shingle, document) in the order of shingles; see `prefixes`.
Cost: a radix sort by about log2(n) highest bits, in 11 bits a pass; 16 bytes for each entry that stays.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from ._launch import jit, namespace
from ._sort import radix_sort
from .prefixes import LONG, PLACE_BITS

_PLACE = np.uint64((1 << PLACE_BITS) - 1)
_ROW = np.uint64((1 << 32) - 1)


def reference(shingles, entries, num_rows):
    """Runs of postings, from the definition.

    Parameters
    ----------
    shingles, entries : arrays of uint64, shape (postings,)
        In any order; no entry twice.
    num_rows : int
        Rows are below it.

    Returns
    -------
    entries : array of uint64, shape (n,)
        Run by run, ascending in each.
    starts : array of int64, shape (runs + 1,)
        Where each run begins; runs are in the order of their shingles.
    splits : array of int64, shape (runs,)
        Where the entries of each that are of long prefixes alone begin.
    places : array of uint64, shape (n,)
        Row by row, ascending in each row's order of elements.
    offsets : array of int64, shape (num_rows + 1,)
        Where the places of each row begin.
    """
    of: dict[int, list[int]] = {}
    for shingle, entry in zip(shingles.tolist(), entries.tolist(), strict=True):
        of.setdefault(shingle, []).append(entry)
    runs = [sorted(run) for _, run in sorted(of.items()) if len(run) > 1 and min(run) < 2**63]
    places: list[list[tuple[int, int]]] = [[] for _ in range(num_rows)]
    for number, run in enumerate(runs):
        for entry in run:
            places[entry % 2**63 // 2**31].append((entry % 2**31, number))
    return (
        np.array([entry for run in runs for entry in run], np.uint64),
        np.cumsum([0, *map(len, runs)], dtype=np.int64),
        np.array([sum(map(len, runs[:i])) + sum(e < 2**63 for e in run) for i, run in enumerate(runs)], np.int64),
        np.array([run * 2**31 + place for row in places for place, run in sorted(row)], np.uint64),
        np.cumsum([0, *map(len, places)], dtype=np.int64),
    )


@jit()
def _finish(shingles, order):
    """Put words whose highest bits are in order into order altogether, by insertion; few are out of place."""
    for i in range(1, len(shingles)):
        shingle, number, place = shingles[i], order[i], i
        while place > 0 and shingles[place - 1] > shingle:
            shingles[place], order[place] = shingles[place - 1], order[place - 1]
            place -= 1
        shingles[place], order[place] = shingle, number


@jit()
def _bounds_of_runs(shingles):
    """Where each run of equal words begins, and the end."""
    size = 0
    for i in range(len(shingles)):
        size += i == 0 or shingles[i] != shingles[i - 1]
    starts = np.empty(size + 1, np.int64)
    size = 0
    for i in range(len(shingles)):
        if i == 0 or shingles[i] != shingles[i - 1]:
            starts[size] = i
            size += 1
    starts[size] = len(shingles)
    return starts


@jit(parallel=True)
def _sort_runs(starts, entries, sizes, splits):
    """Sort the entries of each run; write the size of each that stays, and how many short entries it has."""
    for run in prange(len(starts) - 1):
        some = entries[starts[run] : starts[run + 1]]
        if len(some) < 2:
            continue
        ascending = True
        for i in range(1, len(some)):
            ascending &= some[i - 1] < some[i]
        if not ascending:
            some.sort()
        short = 0
        while short < len(some) and some[short] < LONG:
            short += 1
        if short:
            sizes[run], splits[run] = len(some), short


@jit(parallel=True)
def _close_runs(starts, entries, which, new_starts, kept):
    for number in prange(len(which)):
        first = starts[which[number]]
        for i in range(new_starts[number + 1] - new_starts[number]):
            kept[new_starts[number] + i] = entries[first + i]


@jit()
def _place_rows(entries, starts, offsets):
    """The places of all rows: scattered by row, then each row's put in order by insertion or, if long, by a sort."""
    ends = offsets[:-1].copy()
    places = np.empty(len(entries), np.uint64)
    for run in range(len(starts) - 1):
        for i in range(starts[run], starts[run + 1]):
            row = (entries[i] >> np.uint64(PLACE_BITS)) & _ROW
            places[ends[row]] = (entries[i] & _PLACE) << np.uint64(32) | np.uint64(run)
            ends[row] += 1
    return places


@jit(parallel=True)
def _sort_places(places, offsets):
    """Put each row's places in order, which have the place above the run; then the run above the place."""
    for row in prange(len(offsets) - 1):
        some = places[offsets[row] : offsets[row + 1]]
        some.sort()
        for i in range(len(some)):
            some[i] = (some[i] & _ROW) << np.uint64(PLACE_BITS) | some[i] >> np.uint64(32)


@jit()
def _count_rows(entries, counts):
    for entry in entries:
        counts[((entry >> np.uint64(PLACE_BITS)) & _ROW) + np.uint64(1)] += 1


def cpu(shingles, entries, num_rows):
    """As `reference`: equal shingles brought together by a radix sort of their highest bits."""
    bits = min(64, len(shingles).bit_length() + 4)
    shingles, order = radix_sort(shingles.copy(), bits)
    _finish(shingles, order)
    entries, starts = entries[order], _bounds_of_runs(shingles)
    del shingles, order
    sizes, shorts = np.zeros(len(starts) - 1, np.int64), np.zeros(len(starts) - 1, np.int64)
    _sort_runs(starts, entries, sizes, shorts)
    which = np.flatnonzero(sizes)
    new_starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes[which])])
    kept = np.empty(new_starts[-1], np.uint64)
    _close_runs(starts, entries, which, new_starts, kept)
    offsets = np.zeros(num_rows + 1, np.int64)
    _count_rows(kept, offsets)
    np.cumsum(offsets, out=offsets)
    places = _place_rows(kept, new_starts, offsets)
    _sort_places(places, offsets)
    return kept, new_starts, new_starts[:-1] + shorts[which], places, offsets


def gpu(shingles, entries, num_rows):
    """As `reference`: by a sort of all entries, one by their shingles, and one of those that stay by row and place."""
    xp = namespace()
    shingles, entries = xp.asarray(shingles), xp.asarray(entries)
    order = xp.argsort(entries, kind="stable")
    order = order[xp.argsort(shingles[order], kind="stable")]
    shingles, entries = shingles[order], entries[order]
    begins = xp.ones(len(shingles), bool)
    begins[1:] = shingles[1:] != shingles[:-1]
    starts = xp.append(xp.flatnonzero(begins), xp.asarray(len(begins)))
    shorts = xp.zeros(len(entries) + 1, np.int64)
    shorts[1:] = xp.cumsum(entries < LONG)
    shorts, sizes = xp.diff(shorts[starts]), xp.diff(starts)
    stays = (sizes > 1) & (shorts > 0)
    kept = stays[xp.cumsum(begins) - 1]
    entries, run = entries[kept], (xp.cumsum(stays) - 1)[(xp.cumsum(begins) - 1)[kept]]
    starts = xp.zeros(int(stays.sum()) + 1, np.int64)
    starts[1:] = xp.cumsum(sizes[stays])
    elements = entries & ~LONG
    order = xp.argsort(elements, kind="stable")
    elements = elements[order]
    places = run[order].astype(np.uint64) << np.uint64(PLACE_BITS) | elements & _PLACE
    offsets = xp.searchsorted(elements, xp.arange(num_rows + 1, dtype=np.uint64) << np.uint64(PLACE_BITS))
    return entries, starts, starts[:-1] + shorts[stays], places, offsets
