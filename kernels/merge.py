"""Merging of sorted runs of (key, row) into one.

    merged = the entries of all runs, sorted by key; equal keys in the order of their runs, and as they are in each

So where the rows of a later run are all greater than those of an earlier one, rows ascend among equal keys again.

Cost: each entry is compared with the first entries of all runs. Pieces of about equal size, which lie between two keys,
are merged side by side.
"""

from __future__ import annotations

import numba
import numpy as np
from numba import prange

from ._launch import jit, on_device
from ._sort import order_of


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


@jit(parallel=True)
def _cuts(keys, offsets, splitters):
    """Where each run has its first key that is not below a splitter: int64, shape (splitters, runs)."""
    cuts = np.empty((len(splitters), len(offsets) - 1), np.int64)
    for number in prange(len(splitters)):
        for run in range(len(offsets) - 1):
            low, high = offsets[run], offsets[run + 1]
            while low < high:
                middle = (low + high) >> 1
                if keys[middle] < splitters[number]:
                    low = middle + 1
                else:
                    high = middle
            cuts[number, run] = low
    return cuts


@jit(parallel=True)
def _merge(keys, rows, cuts, places, merged_keys, merged_rows):
    for piece in prange(len(cuts) - 1):
        heads, ends = cuts[piece].copy(), cuts[piece + 1]
        for place in range(places[piece], places[piece + 1]):
            best = -1
            for run in range(len(heads)):
                if heads[run] < ends[run] and (best < 0 or keys[heads[run]] < keys[heads[best]]):
                    best = run
            merged_keys[place], merged_rows[place] = keys[heads[best]], rows[heads[best]]
            heads[best] += 1


def cpu(keys, rows, offsets):
    """As `reference`; pieces between some keys of the longest run in parallel."""
    merged_keys, merged_rows = np.empty_like(keys), np.empty_like(rows)
    if len(offsets) < 2 or len(keys) == 0:
        return merged_keys, merged_rows
    pieces = min(8 * numba.get_num_threads(), 1 + len(keys) // 1024)
    longest = int(np.argmax(np.diff(offsets)))
    places = np.linspace(offsets[longest], offsets[longest + 1], pieces + 1).astype(np.int64)[1:-1]
    inner = _cuts(keys, offsets, keys[places])
    cuts = np.concatenate([offsets[None, :-1], inner, offsets[None, 1:]])
    starts = (cuts - offsets[:-1]).sum(axis=1)
    _merge(keys, rows, cuts, starts, merged_keys, merged_rows)
    return merged_keys, merged_rows


def gpu(keys, rows, offsets):
    """As `reference`."""
    del offsets
    keys, rows = on_device(keys), on_device(rows)
    order, _ = order_of(keys)
    return keys[order], rows[order]
