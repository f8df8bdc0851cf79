"""Runs of postings: the documents that have a shingle in their prefix, shingle by shingle.

A run is the entries of one shingle, as `prefixes` makes them: those of short prefixes in order of rows, then those that
are in long prefixes alone, in order of rows. Two documents can only meet in a run if at least one of them has the
shingle in its short prefix; runs of one entry, and of long entries alone, are dropped.

A document's places are the runs that it is in: 2**31 times the number of the run, and the place of the element among
the document's.

Source: Broder 1997, section 4.2, for (shingle, document) in the order of shingles; see `prefixes`.
Cost: a radix sort by about log2(n) highest bits, in 11 bits a pass; 16 bytes for each entry that stays.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from . import gather
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
        Where each run begins. Runs are in the order of the rows of their first entries, so that those of one row lie
        near each other; where these are equal, in the order of shingles.
    splits : array of int64, shape (runs,)
        Where the entries of each that are of long prefixes alone begin.
    places : array of uint64, shape (n,)
        Row by row, ascending in each.
    offsets : array of int64, shape (num_rows + 1,)
        Where the places of each row begin.
    """
    of: dict[int, list[int]] = {}
    for shingle, entry in zip(shingles.tolist(), entries.tolist(), strict=True):
        of.setdefault(shingle, []).append(entry)
    runs = [sorted(run) for _, run in sorted(of.items()) if len(run) > 1 and min(run) < 2**63]
    runs.sort(key=lambda run: run[0] // 2**31)
    places: list[list[int]] = [[] for _ in range(num_rows)]
    for number, run in enumerate(runs):
        for entry in run:
            places[entry % 2**63 // 2**31].append(number * 2**31 + entry % 2**31)
    return (
        np.array([entry for run in runs for entry in run], np.uint64),
        np.cumsum([0, *map(len, runs)], dtype=np.int64),
        np.array([sum(map(len, runs[:i])) + sum(e < 2**63 for e in run) for i, run in enumerate(runs)], np.int64),
        np.array([place for row in places for place in row], np.uint64),
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
def _first_rows(entries, starts, which):
    first = np.empty(len(which), np.uint64)
    for number in prange(len(which)):
        first[number] = (entries[starts[which[number]]] >> np.uint64(PLACE_BITS)) & _ROW
    return first


@jit(parallel=True)
def _close_runs(starts, entries, which, new_starts, kept):
    for number in prange(len(which)):
        first = starts[which[number]]
        for i in range(new_starts[number + 1] - new_starts[number]):
            kept[new_starts[number] + i] = entries[first + i]


@jit()
def _place_rows(entries, starts, offsets):
    """The places of all rows, scattered by row in the order of runs."""
    ends = offsets[:-1].copy()
    places = np.empty(len(entries), np.uint64)
    for run in range(len(starts) - 1):
        for i in range(starts[run], starts[run + 1]):
            row = (entries[i] >> np.uint64(PLACE_BITS)) & _ROW
            places[ends[row]] = np.uint64(run) << np.uint64(PLACE_BITS) | (entries[i] & _PLACE)
            ends[row] += 1
    return places


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
    bits = num_rows.bit_length()
    which = which[radix_sort(_first_rows(entries, starts, which) << np.uint64(64 - bits), bits)[1]]
    new_starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes[which])])
    kept = np.empty(new_starts[-1], np.uint64)
    _close_runs(starts, entries, which, new_starts, kept)
    offsets = np.zeros(num_rows + 1, np.int64)
    _count_rows(kept, offsets)
    np.cumsum(offsets, out=offsets)
    places = _place_rows(kept, new_starts, offsets)
    return kept, new_starts, new_starts[:-1] + shorts[which], places, offsets


def gpu(shingles, entries, num_rows):
    """As `reference`: by stable sorts of all entries, of runs by the rows of their first, and of what stays by rows."""
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
    shorts = xp.diff(shorts[starts])
    which = xp.flatnonzero((xp.diff(starts) > 1) & (shorts > 0))
    which = which[xp.argsort(entries[starts[which]] >> np.uint64(PLACE_BITS), kind="stable")]
    entries, starts = gather.gpu(entries, starts, which)
    run = xp.zeros(len(entries), np.uint64)
    run[starts[1:-1]] = np.uint64(1)
    run = xp.cumsum(run)
    rows = entries >> np.uint64(PLACE_BITS) & _ROW
    order = xp.argsort(rows, kind="stable")
    places = (run << np.uint64(PLACE_BITS) | entries & _PLACE)[order]
    offsets = xp.searchsorted(rows[order], xp.arange(num_rows + 1, dtype=np.uint64))
    return entries, starts, starts[:-1] + shorts[which], places, offsets
