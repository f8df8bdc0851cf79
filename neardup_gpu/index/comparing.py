"""Compare the texts of queries with stored entries: by their sets, or by sketches if there are no sets."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from neardup_gpu.kernels.resemblance import blocks_of_pairs

from ..data import Ragged
from ..engine.choice import to_host
from ..methods.contract import RowEstimates
from ..methods.measures import worth

if TYPE_CHECKING:
    from ..engine.contract import Runtime
    from ..methods.finding.contract import SketchedEntries
    from ..methods.measures import Measure
    from ..recipe import Recipe
    from .snapshot import Snapshot


FEW = 16
"""Pairs whose sets are held together, whatever their sizes."""

SKETCHES_TOGETHER = 1 << 14
"""Pairs whose sketches are compared together."""


def compared(
    snapshot: Snapshot,
    sketches: SketchedEntries,
    query: np.ndarray,
    entry: np.ndarray,
    measure: Measure,
    least: float | None,
    runtime: Runtime,
    *,
    entry_first: bool = False,
) -> np.ndarray:
    """Return the values of pairs of texts and entries: float64, shape (pairs,); less than 0 if they are below the
    least.

    Sets are held a block of pairs at a time, unless there are few.

    Parameters
    ----------
    snapshot : Snapshot
        With the sets of entries.
    sketches : SketchedEntries
        The texts.
    query, entry : arrays of int64, shape (pairs,)
        Numbers of texts, and entries, which are stored; in this order.
    measure : Measure
        Of the text and the entry, or of the entry and the text if `entry_first`.
    least : float or None
    runtime : Runtime
    """
    value = np.full(len(query), -1.0)
    if not len(query):
        return value
    entries, row = np.unique(entry, return_inverse=True)
    number = len(sketches.sets)
    left, right = (number + row, query) if entry_first else (query, number + row)
    possible, bounds = np.arange(len(query)), np.array([0, len(query)])
    if len(query) > FEW:
        sizes = np.concatenate([sketches.sets.sizes, snapshot.set_sizes(entries)])
        if least is not None:
            possible = measure.possible(sizes, left, right, least)
        bounds = blocks_of_pairs(left[possible], right[possible], sizes, max(1, runtime.shares.sets // 8))
    for start, stop in pairwise(bounds.tolist()):
        some = possible[start:stop]
        rows, places = np.unique(np.concatenate([left[some], right[some]]), return_inverse=True)
        mine = sketches.take(rows[rows < number]).sets
        sets = Ragged._joined([mine, snapshot.sets_of(entries[rows[rows >= number] - number])])
        ends = places[: len(some)], places[len(some) :]
        value[some] = to_host(runtime.run(worth, measure, sets, *ends, least, runtime.backend))
    return value


def estimated(
    snapshot: Snapshot, sketches: SketchedEntries, queries: np.ndarray, entries: np.ndarray, recipe: Recipe
) -> RowEstimates:
    """The method's estimates for documents, given by number, and stored entries, with 99% intervals."""
    assert sketches.sketch is not None
    found = RowEstimates(*(np.empty(len(queries)) for _ in range(3)))
    for start in range(0, len(queries), SKETCHES_TOGETHER):
        some = slice(start, start + SKETCHES_TOGETHER)
        documents, left = np.unique(queries[some], return_inverse=True)
        there, right = np.unique(entries[some], return_inverse=True)
        both = np.concatenate([sketches.sketch[documents], snapshot.sketches_of(there)])
        for whole, part in zip(found, recipe.method.estimate_rows(both, left, right + len(documents)), strict=True):
            whole[some] = part
    return found
