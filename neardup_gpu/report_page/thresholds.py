"""How many documents a run would remove at higher thresholds, as far as its listed pairs tell.

A run verified all its candidates at its own threshold t0, so at t >= t0 the same candidates give the pairs of V whose
value is at least t, V being all pairs of the run: what `Result.at` decides. Below t0 nothing is known.

Greedy decisions follow from pairs alone: a document is removed exactly when it has a pair, of at least t, with a better
document that is kept. Pairs are listed by their better document, so that all that decides on a document stands before
the first pair in which it decides on others: one pass settles every threshold at once, with a bit for each.

Where the lists of partners were cut (`max_partners`), a document with as many better partners as are listed may have
more, so it is only known to be removed, never known to be kept. The pass keeps two bits: surely removed, which a pair
with a surely kept document sets, and perhaps removed, which a pair with a document that is not surely removed sets.
Their counts bound the number, and are equal where no list was cut.

Documents that are identical or have the same words are listed with their representative alone, at 1, and go with it
wherever it goes: they are always removed. The column `kind` of the pairs tells them from near-duplicates.

By connected components every pair joins, so a cut list gives a lower bound, and the run's own decisions an upper one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup_gpu.kernels import components

from ..data import bools, numpy_of
from ..methods.contract import KINDS
from ..results.tables import KIND
from .run import Run

STEPS = 40
"""Thresholds above that of the run, at most; all fit the bits of a word."""

TOGETHER = 1 << 20
"""Pairs that are held as Python objects at a time."""


class CurveStep(NamedTuple):
    """Bounds for a threshold: documents removed, from `least` to `most`, and listed pairs that reach it."""

    threshold: float
    least: int
    most: int
    pairs: int


def curve(run: Run) -> list[CurveStep] | None:
    """Return the numbers that the run would remove at its own threshold and at higher ones; None if nothing was
    verified.

    Cost: one pass over the listed pairs, about a microsecond each, and 100 bytes for each document.
    """
    if run.recipe.threshold is None:
        return None
    thresholds = grid(run.recipe.threshold)
    edges = _edges(run)
    reaching = len(edges.values) - np.searchsorted(np.sort(edges.values), thresholds)
    bounds = _components if run.recipe.cluster == "components" else _greedy
    least, most = bounds(run, edges, thresholds)
    removed = run.report["counts"]["removed"]
    least[0] = most[0] = removed
    columns = zip(thresholds.tolist(), least.tolist(), most.tolist(), reaching.tolist(), strict=True)
    return [CurveStep(*row) for row in columns]


def grid(threshold: float) -> np.ndarray:
    """The run's threshold, higher ones in steps that read well, and 1."""
    if threshold == 1:
        return np.ones(1)
    step = next(step for step in (0.001, 0.002, 0.005, 0.01, 0.02, 0.05) if (1 - threshold) / step <= STEPS)
    first = int(np.floor(threshold / step + 1e-9)) + 1
    between = np.round(np.arange(first, round(1 / step)) * step, 3)
    return np.unique(np.concatenate([[threshold], between[between > threshold], [1.0]]))


class _Edges(NamedTuple):
    """The listed pairs by numbers of documents: the reference set from 0 on, then the input in its order.

    `copied` says which pairs are of a representative and a document of the same words.
    """

    num_known: int
    num_rows: int
    left: np.ndarray
    right: np.ndarray
    values: np.ndarray
    copied: np.ndarray


def _edges(run: Run) -> _Edges:
    pairs, ids = run.pairs, run.documents["id"].combine_chunks()
    known = np.zeros(len(pairs), bool)
    if "a_in_reference" in pairs.column_names:
        known = bools(pairs["a_in_reference"].combine_chunks())
    left = np.empty(len(pairs), np.int64)
    reference = pairs["id_a"].filter(pa.array(known)).combine_chunks()
    others = pc.unique(reference)
    num_known = len(others)
    left[known] = numpy_of(pc.index_in(reference, others))
    mine = pairs["id_a"].filter(pa.array(~known))
    left[~known] = num_known + numpy_of(pc.index_in(mine, ids))
    right = num_known + numpy_of(pc.index_in(pairs["id_b"], ids)).astype(np.int64)
    copied = bools(pc.not_equal(pairs[KIND].cast(pa.string()), KINDS[-1]).combine_chunks())
    return _Edges(num_known, num_known + len(ids), left, right, numpy_of(pairs[run.column]), copied)


def _is_whole(run: Run) -> bool:
    """Whether all pairs are listed."""
    limits = run.report["limits"]
    return not limits["unlisted_pairs"] and limits["all_counted"]


def _components(run: Run, edges: _Edges, thresholds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    least = np.zeros(len(thresholds), np.int64)
    for step, threshold in enumerate(thresholds):
        reaches = edges.values >= threshold
        first = components.cpu(edges.num_rows, edges.left[reaches], edges.right[reaches])
        least[step] = np.count_nonzero(first[edges.num_known :] != np.arange(edges.num_known, edges.num_rows))
    whole = _is_whole(run)
    return least, least.copy() if whole else np.full(len(thresholds), run.report["counts"]["removed"])


def _greedy(run: Run, edges: _Edges, thresholds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    num_rows, every = edges.num_rows, (1 << len(thresholds)) - 1
    better = np.bincount(edges.right[~edges.copied], minlength=num_rows)
    most_partners = run.report["limits"]["max_partners"]
    cut = np.zeros(num_rows, bool) if _is_whole(run) or most_partners is None else better >= most_partners
    surely = [0] * num_rows
    perhaps = np.where(cut, every, 0).tolist()
    reached = np.searchsorted(thresholds, edges.values, side="right")
    for begin in range(0, len(reached), TOGETHER):
        some = begin + np.flatnonzero(~edges.copied[begin : begin + TOGETHER])
        rows = zip(edges.left[some].tolist(), edges.right[some].tolist(), reached[some].tolist(), strict=True)
        for left, right, steps in rows:
            mask = (1 << steps) - 1
            surely[right] |= mask & ~perhaps[left]
            perhaps[right] |= mask & ~surely[left]
    least, most = _counts(surely, len(thresholds)), _counts(perhaps, len(thresholds))
    copies = np.count_nonzero(edges.copied)
    return least + copies, most + copies


def _counts(bits: Any, number: int) -> np.ndarray:
    """How many words have each of the lowest bits set."""
    words = np.asarray(bits, np.uint64)
    return np.array([np.count_nonzero(words >> np.uint64(bit) & np.uint64(1)) for bit in range(number)], np.int64)
