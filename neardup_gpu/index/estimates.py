"""RowEstimates pairs from stored sketches, if there are no sets to compare."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..methods.contract import RowEstimates

if TYPE_CHECKING:
    from ..methods.finding.contract import SketchedEntries
    from ..recipe import Recipe
    from .snapshot import Snapshot

TOGETHER = 1 << 14
"""Pairs whose sketches are compared together."""


def estimated(
    snapshot: Snapshot, sketches: SketchedEntries, queries: np.ndarray, entries: np.ndarray, recipe: Recipe
) -> RowEstimates:
    """The method's estimates for documents, given by number, and stored entries, with 99% intervals."""
    assert sketches.sketch is not None
    found = RowEstimates(*(np.empty(len(queries)) for _ in range(3)))
    for start in range(0, len(queries), TOGETHER):
        some = slice(start, start + TOGETHER)
        documents, left = np.unique(queries[some], return_inverse=True)
        there, right = np.unique(entries[some], return_inverse=True)
        both = np.concatenate([sketches.sketch[documents], snapshot.sketches_of(there)])
        for whole, part in zip(found, recipe.method.estimate_rows(both, left, right + len(documents)), strict=True):
            whole[some] = part
    return found
