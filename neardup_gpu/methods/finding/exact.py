"""The exact join in an index: a sorted table of the postings of prefixes, in an order of shingles that is frozen.

No pair at the threshold is missed: `kernels/prefixes.py` has the proof, for any order that all sets share. `dedup`
skips shingles that one document alone has; here nothing is skipped, as the next document may have them.

With a threshold of 1, only units of equal tokens are alike. Equal units are members of one entry, so entries are never
alike, and only a query has to be looked up, in the table of word hashes that every index has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neardup_gpu.kernels import gather, prefix_probe, prefixes
from neardup_gpu.kernels._bounds import prefix_lengths_of
from neardup_gpu.kernels.prefixes import LONG, PLACE_BITS

from ...data import Ragged
from ...engine.choice import kernel
from ...records import dataclass
from .by_segment import by_segment, found_of, sorted_table
from .contract import EntryRange, Finder, FoundEntries, SketchedEntries
from .keeps import Keeps
from .order import Order

if TYPE_CHECKING:
    from ...index.segments import Segment
    from ...index.snapshot import Snapshot
    from ...recipe import Recipe


@dataclass(frozen=True, eq=False)
class Prefixes:
    """The prefixes of some sets.

    keys, places : arrays
        Of shingles, see `kernels/prefix_probe.py`.
    offsets : array of int64, shape (sets + 1,)
        Where those of each set begin.
    sizes : array of int32, shape (sets,)
    """

    keys: np.ndarray
    places: np.ndarray
    offsets: np.ndarray
    sizes: np.ndarray

    @classmethod
    def of(cls, sets: Ragged, order: Order, threshold: float, backend: str) -> Prefixes:
        """The prefixes of sets, in an order."""
        run, numbers = kernel(prefixes, backend), np.arange(len(sets))
        shingles, entries, sizes, _ = run(sets.values, sets.offsets, numbers, *order.table, threshold, 0)
        rows = ((entries & ~LONG) >> np.uint64(PLACE_BITS)).astype(np.int64)
        keys, places = prefix_probe.keys_of(shingles, entries)
        return cls(keys, places, np.searchsorted(rows, np.arange(len(sets) + 1)), sizes)

    def __getitem__(self, rows: np.ndarray) -> Prefixes:
        """The prefixes of some of the sets."""
        keys, offsets = gather.cpu(self.keys, self.offsets, rows)
        return Prefixes(keys, gather.cpu(self.places, self.offsets, rows)[0], offsets, self.sizes[rows])


class ByPrefixes(Finder):
    """Candidates share a shingle of their prefixes: `posting_keys` and `posting_rows`, see `kernels/prefix_probe.py`.

    Parameters
    ----------
    recipe : Recipe
    keeps : Keeps
    """

    def __init__(self, recipe: Recipe, keeps: Keeps) -> None:
        assert recipe.threshold is not None
        super().__init__(recipe, keeps)
        self.threshold = self.least = recipe.threshold

    @property
    def tables(self) -> dict[str, int | None]:
        """The table of postings."""
        return {"posting": None}

    def prepared(self, sketches: SketchedEntries, order: Order | None) -> tuple[SketchedEntries, Order | None]:
        """With prefixes for keys; the order is frozen with the first documents that have shingles."""
        if order is None and not len(sketches.sets.values):
            return sketches, None
        order = order or Order.of(sketches.sets)
        return sketches._replace(keys=Prefixes.of(sketches.sets, order, self.threshold, "cpu")), order

    def remade(self, sketches: SketchedEntries, order: Order | None) -> SketchedEntries | None:
        """Return stored entries with their prefixes for keys."""
        return sketches if order is None else self.prepared(sketches, order)[0]

    def lengths(self, segment: Segment) -> np.ndarray:
        """Return how many postings each entry of a segment should have: those of its long prefix."""
        sizes = segment.set_sizes(np.arange(segment.num_entries))
        return np.minimum(prefix_lengths_of(sizes, self.threshold)[1], sizes)

    def arrays(self, sketches: SketchedEntries) -> dict[str, np.ndarray]:
        """The table of the postings of entries."""
        keys, rows = np.empty(0, np.uint64), np.empty(0, np.int64)
        if isinstance(sketches.keys, Prefixes):
            mine: Prefixes = sketches.keys
            keys, rows = mine.keys, np.repeat(np.arange(len(mine.sizes)), np.diff(mine.offsets))
        keys, rows = sorted_table(keys, rows)
        return {"posting_keys": keys, "posting_rows": rows}

    def first(self, snapshot: Snapshot, sketches: SketchedEntries, reach: EntryRange) -> FoundEntries:
        """Return the first entries in reach that share a shingle of prefixes with each document."""
        run, mine = kernel(prefix_probe, snapshot.backend), sketches.keys
        if snapshot.order is not None and not isinstance(mine, Prefixes):
            mine = Prefixes.of(sketches.sets, snapshot.order, self.threshold, snapshot.backend)

        def search(segment: Segment, some: np.ndarray, *bounds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            if segment.order is None:  # of entries without shingles
                return np.empty(0, np.int64), np.zeros(len(some) + 1, np.int64)
            asking = mine if len(some) == len(reach.first) else mine[some]
            table = segment["posting_keys"], segment["posting_rows"], segment["set_offsets"]
            return run(*table, asking.keys, asking.places, asking.offsets, asking.sizes, self.threshold, *bounds)

        return by_segment(snapshot, reach, search)


class ByEquality(Finder):
    """Find the entry of equal words of each query; there are no tables."""

    least: float | None = 1.0

    def first(self, snapshot: Snapshot, sketches: SketchedEntries, reach: EntryRange) -> FoundEntries:
        """Return the entry of equal words of each query; new entries have none."""
        first, stop, *_ = reach
        if snapshot.new is not None or not len(first):
            return found_of([])
        found = snapshot.same_words(np.ascontiguousarray(sketches.hashes))
        queries = np.flatnonzero((found >= first) & (found < stop))
        return FoundEntries(queries, found[queries])
