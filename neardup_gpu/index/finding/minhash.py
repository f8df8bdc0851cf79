"""Min-hash in an index: a sorted table for each of k features; candidates share r of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neardup_gpu.kernels import probe

from ...engine.choice import kernel, to_host
from ...methods.minhash import MinHash
from ..segments import sorted_table
from .contract import Found

if TYPE_CHECKING:
    from ...recipe import Recipe
    from ..keeps import Keeps
    from ..order import Order
    from ..sketches import Sketched
    from ..snapshot import Snapshot


class ByFeatures:
    """Candidates share r of k features: `feature_keys` and `feature_rows`, shape (k, entries with words).

    Parameters
    ----------
    recipe : Recipe
    keeps : Keeps
    """

    def __init__(self, recipe: Recipe, keeps: Keeps) -> None:
        self.method: MinHash = recipe.method

    def prepared(self, sketches: Sketched, order: Order | None) -> tuple[Sketched, Order | None]:
        """As they are; features need no order."""
        return sketches, None

    def arrays(self, sketches: Sketched) -> dict[str, np.ndarray]:
        """The tables of the features of entries; those without words are in none."""
        rows = np.flatnonzero(sketches.tokens > 0).astype(np.uint32)
        found_keys = np.empty((sketches.keys.shape[1], len(rows)), np.uint64)
        found_rows = np.empty(found_keys.shape, np.uint32)
        for column in range(len(found_keys)):
            found_keys[column], found_rows[column] = sorted_table(sketches.keys[rows, column], rows)
        return {"feature_keys": found_keys, "feature_rows": found_rows}

    def first(
        self,
        snapshot: Snapshot,
        sketches: Sketched,
        first: np.ndarray,
        stop: np.ndarray,
        most: int,
        allowed: list[np.ndarray] | None = None,
    ) -> Found:
        """The first `most` entries that share r features with each document, from `first` on and before `stop`."""
        assert self.method.filter is not None
        run = kernel(probe, snapshot.backend)
        remaining = np.full(len(first), most, np.int64)
        parts: list[tuple[np.ndarray, np.ndarray]] = [(np.empty(0, np.int64), np.empty(0, np.int64))]
        for number, segment in enumerate(snapshot.segments):
            founders = segment["founders"]
            if not len(founders):
                continue
            some = np.flatnonzero((remaining > 0) & (first <= founders[-1]) & (stop > founders[0]))
            if not len(some):
                continue
            bounds = (np.searchsorted(founders, each[some]).astype(np.int64) for each in (first, stop))
            live = segment.live_entries if allowed is None else allowed[number]
            tables = segment["feature_keys"], segment["feature_rows"]
            keys = np.ascontiguousarray(sketches.keys[some])
            rows, offsets = map(to_host, run(*tables, keys, self.method.filter.r, *bounds, remaining[some], live))
            sizes = np.diff(offsets)
            remaining[some] -= sizes
            parts.append((np.repeat(some, sizes), founders[rows]))
        asked, entries = (np.concatenate(each) for each in zip(*parts, strict=True))
        order = np.argsort(asked, kind="stable")
        return Found(asked[order], entries[order])

    def keys(self, snapshot: Snapshot, entries: np.ndarray) -> np.ndarray:
        """The features of entries, restored from their tables: uint64, shape (entries, k)."""
        found = np.zeros((len(entries), self.method.key_columns), np.uint64)
        for segment, some, rows in snapshot.located(entries):
            everyone = np.zeros((segment.num_entries, found.shape[1]), np.uint64)
            for number, (keys, places) in enumerate(zip(segment["feature_keys"], segment["feature_rows"], strict=True)):
                everyone[places, number] = keys
            found[some] = everyone[rows]
        return found
