"""Merging of sorted runs of (key, row) into one.

    merged = the entries of all runs, sorted by key; equal keys in the order of their runs, and as they are in each

So where the rows of a later run are all greater than those of an earlier one, rows ascend among equal keys again.

Cost: of r runs each entry is moved log2(r) + 2 times within a cache: pieces that lie between two keys are merged one by
one, and several side by side.
"""

import numpy as np

from ._cpu import jit, parallel
from ._search import lower_bound

PIECE = 1 << 12
"""Entries of a piece, about: with room to merge them they fit a core's cache."""


def reference(keys, rows, offsets):
    """All runs as one, by a stable sort.

    Parameters
    ----------
    keys : array of uint64, shape (entries,)
        Run after run, ascending in each.
    rows : array of uint32, shape (entries,)
    offsets : array of int64, shape (runs + 1,)
        Where each run begins, from 0 on.

    Returns
    -------
    keys, rows : arrays like those given
    """
    del offsets
    order = np.argsort(keys, kind="stable")
    return keys[order], rows[order]


@parallel("uint64[::1], int64[::1], uint64[::1], int64[:, ::1]")
def _cut(begin, end, keys, offsets, splitters, cuts):
    """Write where each run has its first key that is not below a splitter: int64, shape (splitters, runs)."""
    for number in range(begin, end):
        for run in range(len(offsets) - 1):
            cuts[number, run] = lower_bound(keys, offsets[run], offsets[run + 1], splitters[number])


@jit()
def _merge_two(some_keys, some_rows, here, start, middle, end):
    """Merge two neighbouring runs, which are in `here` of two arrays, into the same places of the other one."""
    keys, rows, into_keys, into_rows = some_keys[here], some_rows[here], some_keys[1 - here], some_rows[1 - here]
    one, other, place = start, middle, start
    while one < middle and other < end:
        second = keys[other] < keys[one]  # not to be foretold, so nothing is skipped by it
        into_keys[place] = keys[other] if second else keys[one]
        into_rows[place] = rows[other] if second else rows[one]
        other += np.int64(second)
        one += np.int64(not second)
        place += np.int64(1)
    while one < middle:
        into_keys[place], into_rows[place] = keys[one], rows[one]
        one, place = one + np.int64(1), place + np.int64(1)
    while other < end:
        into_keys[place], into_rows[place] = keys[other], rows[other]
        other, place = other + np.int64(1), place + np.int64(1)


@parallel("uint64[::1], uint32[::1], int64[:, ::1], int64[::1], uint64[::1], uint32[::1]")
def _merge(lower, upper, keys, rows, cuts, places, merged_keys, merged_rows):
    """Merge piece by piece: its runs are brought together, and merged by twos until there is one."""
    for piece in range(lower, upper):
        size, number = places[piece + 1] - places[piece], np.int64(cuts.shape[1])
        some_keys, some_rows = np.empty((2, size), np.uint64), np.empty((2, size), np.uint32)
        ends, at, here = np.zeros(number + 1, np.int64), np.int64(0), np.int64(0)
        for run in range(number):
            for place in range(cuts[piece, run], cuts[piece + 1, run]):
                some_keys[0, at], some_rows[0, at] = keys[place], rows[place]
                at += np.int64(1)
            ends[run + 1] = at
        while number > np.int64(1):
            there, fewer = np.int64(1) - here, (number + np.int64(1)) // np.int64(2)
            for run in range(fewer):
                middle, end = min(number, np.int64(2) * run + np.int64(1)), min(number, np.int64(2) * run + np.int64(2))
                _merge_two(some_keys, some_rows, here, ends[2 * run], ends[middle], ends[end])
            for run in range(fewer):
                ends[run + 1] = ends[min(number, np.int64(2) * run + np.int64(2))]
            here, number = there, fewer
        for place in range(size):
            merged_keys[places[piece] + place] = some_keys[here, place]
            merged_rows[places[piece] + place] = some_rows[here, place]


def cpu(keys, rows, offsets):
    """As `reference`; pieces between some keys of the longest run in parallel."""
    merged_keys, merged_rows = np.empty_like(keys), np.empty_like(rows)
    if len(offsets) < 2 or len(keys) == 0:
        return merged_keys, merged_rows
    pieces = 1 + len(keys) // PIECE
    longest = int(np.argmax(np.diff(offsets)))
    places = np.linspace(offsets[longest], offsets[longest + 1], pieces + 1).astype(np.int64)[1:-1]
    inner = np.empty((len(places), len(offsets) - 1), np.int64)
    _cut(len(inner), keys, offsets, keys[places], inner)
    cuts = np.concatenate([offsets[None, :-1], inner, offsets[None, 1:]])
    starts = (cuts - offsets[:-1]).sum(axis=1)
    _merge(len(cuts) - 1, keys, rows, cuts, starts, merged_keys, merged_rows)
    return merged_keys, merged_rows
