"""The exact join in an index: a sorted table of the postings of prefixes, in an order of shingles that is frozen.

No pair at the threshold is missed: `kernels/prefixes.py` has the proof, for any order that all sets share. `dedup`
skips shingles that one document alone has; here nothing is skipped, as the next document may have them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from neardup_gpu.kernels import prefix_probe, prefixes
from neardup_gpu.kernels.prefixes import LONG, PLACE_BITS

from ...data import Ragged
from ...engine.choice import kernel
from ..order import Order
from ..segments import sorted_table
from .contract import Found

if TYPE_CHECKING:
    from ...recipe import Recipe
    from ..sketches import Sketched
    from ..snapshot import Snapshot


class Prefixes(NamedTuple):
    """The prefixes of some sets, as `kernels/prefixes.py` gives them; `rows` are the numbers of the sets."""

    shingles: np.ndarray
    entries: np.ndarray
    sizes: np.ndarray

    @classmethod
    def of(cls, sets: Ragged, order: Order, threshold: float, backend: str) -> Prefixes:
        """Those of sets, in an order."""
        run = kernel(prefixes, backend)
        return cls(*run(sets.values, sets.offsets, np.arange(len(sets)), *order.table, threshold)[:3])

    @property
    def rows(self) -> np.ndarray:
        """The number of each posting's set."""
        return ((self.entries & ~LONG) >> np.uint64(PLACE_BITS)).astype(np.int64)

    @property
    def offsets(self) -> np.ndarray:
        """Where the postings of each set begin."""
        number = np.bincount(self.rows, minlength=len(self.sizes))
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(number)])


class ByPrefixes:
    """Candidates share a shingle of their prefixes: `posting_keys` and `posting_rows`, see `kernels/prefix_probe.py`.

    Parameters
    ----------
    recipe : Recipe
    """

    def __init__(self, recipe: Recipe) -> None:
        assert recipe.threshold is not None
        self.threshold = recipe.threshold

    def order(self, sketches: Sketched) -> Order | None:
        """The order that is frozen with the first documents that have shingles."""
        return Order.of(sketches.sets) if len(sketches.sets.values) else None

    def arrays(self, sketches: Sketched, order: Order | None) -> dict[str, np.ndarray]:
        """The table of the postings of entries."""
        keys, rows = np.empty(0, np.uint64), np.empty(0, np.int64)
        if order is not None:
            found = Prefixes.of(sketches.sets, order, self.threshold, "cpu")
            keys, rows = prefix_probe.keys_of(found.shingles, found.entries), found.rows
        keys, rows = sorted_table(keys, rows)
        return {"posting_keys": keys, "posting_rows": rows}

    def first(
        self,
        snapshot: Snapshot,
        sketches: Sketched,
        first: np.ndarray,
        stop: np.ndarray,
        most: int,
        allowed: list[np.ndarray] | None = None,
    ) -> Found:
        """The first `most` entries whose prefix shares a shingle with each document's, from `first` and before `stop`."""
        parts: list[tuple[np.ndarray, np.ndarray]] = [(np.empty(0, np.int64), np.empty(0, np.int64))]
        run, order = kernel(prefix_probe, snapshot.backend), snapshot.order
        if order is not None:
            mine = Prefixes.of(sketches.sets, order, self.threshold, snapshot.backend)
            asking, remaining = (mine.shingles, mine.entries, mine.offsets, mine.sizes), np.full(len(first), most)
        for number, segment in enumerate(snapshot.segments):
            founders = segment["founders"]
            if order is None or not len(founders):
                continue
            some = np.flatnonzero((remaining > 0) & (first <= founders[-1]) & (stop > founders[0]))
            if not len(some):
                continue
            bounds = (np.searchsorted(founders, each[some]).astype(np.int64) for each in (first, stop))
            live = segment.live_entries if allowed is None else allowed[number]
            table = segment["posting_keys"], segment["posting_rows"], segment["set_offsets"]
            rows, offsets = run(*table, *asking, some, self.threshold, *bounds, remaining[some], live)
            sizes = np.diff(offsets)
            remaining[some] -= sizes
            parts.append((np.repeat(some, sizes), founders[rows]))
        asked, entries = (np.concatenate(each) for each in zip(*parts, strict=True))
        by_asked = np.argsort(asked, kind="stable")
        return Found(asked[by_asked], entries[by_asked])

    def keys(self, snapshot: Snapshot, entries: np.ndarray) -> np.ndarray:
        """Nothing of each entry: documents are joined by their shingles."""
        return np.empty((len(entries), 0), np.uint64)
