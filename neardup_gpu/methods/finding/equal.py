"""Equal units in an index: the table of word hashes, which every index has, is all that is needed.

With a threshold of 1, only units of equal tokens are alike. Equal units are members of one entry, so entries are never
alike, and only a query has to be looked up.
"""

from __future__ import annotations

import numpy as np

from .contract import EntryRange, Finder, FoundEntries, SketchedEntries, StoredEntries


class ByEquality(Finder):
    """Find the entry of equal words of each query; there are no tables."""

    least: float | None = 1.0

    def first(self, snapshot: StoredEntries, sketches: SketchedEntries, reach: EntryRange) -> FoundEntries:
        """Return the entry of equal words of each query; new entries have none."""
        first, stop, *_ = reach
        if snapshot.new is not None or not len(first):
            return FoundEntries(np.empty(0, np.int64), np.empty(0, np.int64))
        found = snapshot.same_words(np.ascontiguousarray(sketches.hashes))
        queries = np.flatnonzero((found >= first) & (found < stop))
        return FoundEntries(queries, found[queries])
