"""Equal units in an index: the table of word hashes, which every index has, is all that is needed.

With a threshold of 1, only units of equal tokens are alike. Equal units are members of one entry, so entries are never
alike, and only a query has to be looked up.
"""

from __future__ import annotations

import numpy as np

from .contract import FoundEntries, SketchedEntries, StoredEntries, StoredSegment
from .keeps import Keeps
from .order import Order


class ByEquality:
    """Find the entry of equal words of each query; there are no tables.

    Parameters
    ----------
    keeps : Keeps
    """

    radius: int | None = None
    least: float | None = 1.0

    def __init__(self, keeps: Keeps) -> None:
        self.keeps = keeps

    @property
    def tables(self) -> dict[str, int | None]:
        """No tables."""
        return {}

    @property
    def sketch(self) -> None:
        """Nothing is stored of the method."""
        return None

    def prepared(self, sketches: SketchedEntries, order: Order | None) -> tuple[SketchedEntries, Order | None]:
        """Return the entries as they are."""
        return sketches, None

    def remade(self, sketches: SketchedEntries, order: Order | None) -> SketchedEntries | None:
        """Return the entries as they are."""
        return sketches

    def lengths(self, segment: StoredSegment) -> np.ndarray:
        """Return zeros: no entry is in a table."""
        return np.zeros(segment.num_entries, np.int64)

    def arrays(self, sketches: SketchedEntries) -> dict[str, np.ndarray]:
        """Return no arrays."""
        return {}

    def first(
        self,
        snapshot: StoredEntries,
        sketches: SketchedEntries,
        first: np.ndarray,
        stop: np.ndarray,
        most: int,
        allowed: list[np.ndarray] | None = None,
    ) -> FoundEntries:
        """Return the entry of equal words of each query; new entries have none."""
        if snapshot.new is not None or not len(first):
            return FoundEntries(np.empty(0, np.int64), np.empty(0, np.int64))
        found = snapshot.same_words(np.ascontiguousarray(sketches.hashes))
        queries = np.flatnonzero((found >= first) & (found < stop))
        return FoundEntries(queries, found[queries])

    def keys(self, snapshot: StoredEntries, entries: np.ndarray) -> np.ndarray:
        """Return no keys of each entry."""
        return np.empty((len(entries), 0), np.uint64)
