"""Runs of postings: the documents that have a shingle in their prefix, shingle by shingle.

A run is the entries of one shingle, as `prefixes` makes them: those of short prefixes in order of rows, then those that
are in long prefixes alone, in order of rows. Two documents can only meet in a run if at least one of them has the
shingle in its short prefix; runs of one entry, and of long entries alone, are dropped.

A document's places are the runs that it is in: 2**31 times the number of the run, and the place of the element among
the document's.

Source: Broder 1997, section 4.2, for (shingle, document) in the order of shingles; see `prefixes`.
Cost: on the CPU postings are scattered once, by their highest bits, into parts that are sorted in a core's cache;
runs are then ordered by the rows of their first entries. 16 bytes for each entry that stays.
"""

from __future__ import annotations

import numpy as np

from . import gather
from ._cpu import jit, parallel, shares
from ._launch import namespace
from ._ragged import by_rows, longest_row, of_rows, sums_before
from ._sort import in_parts, order_of, radix_sort, sort_part
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
    entries, starts = of_rows(runs, np.uint64)
    splits = [start + sum(e < 2**63 for e in run) for start, run in zip(starts.tolist(), runs, strict=False)]
    return entries, starts, np.array(splits, np.int64), *of_rows(places, np.uint64)


@jit()
def _keep_runs(shingles, entries, lengths, shorts):
    """Move the runs that stay to the beginning, their entries in order; returns how many they are.

    Writes the length of each and how many short entries it has.
    """
    begin = kept = number = 0
    while begin < len(shingles):
        end, ascending = begin + 1, True
        while end < len(shingles) and shingles[end] == shingles[begin]:
            ascending &= entries[end - 1] < entries[end]
            end += 1
        run = entries[begin:end]
        if not ascending:
            run.sort()
        if len(run) > 1 and run[0] < LONG:
            short = 1
            while short < len(run) and run[short] < LONG:
                short += 1
            lengths[number], shorts[number] = len(run), short
            for i in range(len(run)):
                entries[kept + i] = run[i]
            kept += len(run)
            number += 1
        begin = end
    return number


@by_rows("uint64[::1], uint64[::1], int64[::1], uint64, int64, uint32[::1], uint32[::1], int64[::1]")
def _sort_parts(begin, end, shingles, entries, ends, shift, bits, lengths, shorts, numbers):
    """Sort each part, and keep its runs; those that begin at `at` lie from `at // 2` on in `lengths` and `shorts`."""
    largest = longest_row(ends, begin, end)
    room = np.empty((1 << bits) + 1, np.uint32), np.empty(largest, np.uint64), np.empty(largest, np.uint64)
    for part in range(begin, end):
        first, last = ends[part], ends[part + 1]
        some, theirs = shingles[first:last], entries[first:last]
        sort_part(some, theirs, shift, room)
        numbers[part + 1] = _keep_runs(some, theirs, lengths[first // 2 :], shorts[first // 2 :])


@parallel(
    "uint64[::1], int64[::1], int64[::1], uint32[::1], uint32[::1], int64[::1], int64[::1], int64[::1], uint64[::1]"
)
def _describe_runs(lower, upper, entries, ends, numbers, all_lengths, all_shorts, begins, lengths, shorts, first_rows):
    """Write of each run that stays where it begins, its length, its short entries, and the row of its first entry."""
    for part in range(lower, upper):
        begin, before = ends[part], ends[part] // 2 - numbers[part]
        for run in range(numbers[part], numbers[part + 1]):
            begins[run], lengths[run], shorts[run] = begin, all_lengths[before + run], all_shorts[before + run]
            first_rows[run] = (entries[begin] >> np.uint64(PLACE_BITS)) & _ROW
            begin += lengths[run]


@jit("uint64[::1], int64[::1], int64[::1], uint64[::1]")
def _place_rows(entries, starts, offsets, places):
    """Write the places of all rows, scattered by row in the order of runs."""
    ends = offsets[:-1].copy()
    for run in range(len(starts) - 1):
        for i in range(starts[run], starts[run + 1]):
            row = (entries[i] >> np.uint64(PLACE_BITS)) & _ROW
            places[ends[row]] = np.uint64(run) << np.uint64(PLACE_BITS) | (entries[i] & _PLACE)
            ends[row] += 1


@jit("uint64[::1], int64[::1]")
def _count_rows(entries, counts):
    for entry in entries:
        counts[((entry >> np.uint64(PLACE_BITS)) & _ROW) + np.uint64(1)] += 1


def cpu(shingles, entries, num_rows):
    """As `reference`: postings in parts by the highest bits of their shingles, which are sorted in parallel."""
    shingles, entries, ends, shift, bits = in_parts(shingles, entries)
    lengths, shorts = (np.empty(len(shingles) // 2 + 1, np.uint32) for _ in range(2))
    numbers = np.zeros(len(ends), np.int64)
    _sort_parts(shares(ends, 64), shingles, entries, ends, shift, bits, lengths, shorts, numbers)
    del shingles
    np.cumsum(numbers, out=numbers)
    of_all = np.empty(numbers[-1], np.int64), np.empty(numbers[-1], np.int64), np.empty(numbers[-1], np.int64)
    first_rows = np.empty(numbers[-1], np.uint64)
    _describe_runs(len(ends) - 1, entries, ends, numbers, lengths, shorts, *of_all, first_rows)
    begins, lengths, shorts = of_all
    bits = num_rows.bit_length()
    which = radix_sort(first_rows << np.uint64(64 - bits), bits)[1]
    kept, starts = gather.copied(entries, begins[which], sums_before(lengths[which]))
    offsets = np.zeros(num_rows + 1, np.int64)
    _count_rows(kept, offsets)
    np.cumsum(offsets, out=offsets)
    places = np.empty_like(kept)
    _place_rows(kept, starts, offsets, places)
    return kept, starts, starts[:-1] + shorts[which], places, offsets


def gpu(shingles, entries, num_rows):
    """As `reference`: by stable sorts of all entries, of runs by the rows of their first, and of what stays by rows."""
    xp = namespace()
    shingles, entries = xp.asarray(shingles), xp.asarray(entries)
    order = xp.argsort(entries, kind="stable")
    again, begins = order_of(shingles[order])
    entries = entries[order[again]]
    starts = xp.append(xp.flatnonzero(begins), xp.asarray(len(begins)))
    shorts = xp.diff(sums_before(entries < LONG)[starts])
    which = xp.flatnonzero((xp.diff(starts) > 1) & (shorts > 0))
    which = which[order_of(entries[starts[which]], 64 - PLACE_BITS)[0]]
    entries, starts = gather.gpu(entries, starts, which)
    run = xp.zeros(len(entries), np.uint64)
    run[starts[1:-1]] = np.uint64(1)
    run = xp.cumsum(run)
    rows = entries >> np.uint64(PLACE_BITS) & _ROW
    order, _ = order_of(rows << np.uint64(32), 32)
    places = (run << np.uint64(PLACE_BITS) | entries & _PLACE)[order]
    offsets = xp.searchsorted(rows[order], xp.arange(num_rows + 1, dtype=np.uint64))
    return entries, starts, starts[:-1] + shorts[which], places, offsets
