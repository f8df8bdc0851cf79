"""Min-hash in an index: a sorted table for each of k features; candidates share r of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from neardup_gpu.kernels._probing import sort_queries
from neardup_gpu.kernels._tables import sorted_tables

from ...data import Ragged
from ...engine.arrays import apart
from .by_segment import found_of
from .contract import WITHOUT_END, EntryRange, Finder, FoundEntries, SketchedEntries, SortedQueries
from .keeps import Keeps
from .order import Order

if TYPE_CHECKING:
    from ...index.snapshot import Snapshot
    from ...recipe import Recipe
    from ..minhash import MinHash


class ByFeatures(Finder):
    """Candidates share r of k features: `feature_keys` and `feature_rows`, shape (k, entries with words).

    Parameters
    ----------
    recipe : Recipe
    keeps : Keeps
    """

    def __init__(self, recipe: Recipe, keeps: Keeps) -> None:
        self.method: MinHash = recipe.method
        super().__init__(recipe, keeps)
        self.seed = recipe.seed

    @property
    def tables(self) -> dict[str, int | None]:
        """A table for each feature."""
        return {"feature": self.method.key_columns}

    @property
    def sketch(self) -> tuple[str, tuple[int, ...]]:
        """A signature, or its packed bits."""
        schema = self.method.schema()
        kind = schema["packed" if "packed" in schema else "signature"]
        return str(kind.value_type), (kind.list_size,)

    def remade(self, sketches: SketchedEntries, order: Order | None) -> SketchedEntries | None:
        """Return stored entries with their features for keys: made of the sets, or of samples if these are whole."""
        how: Any = {"seed": self.seed, "backend": "cpu"}
        if self.keeps.sets:
            sets = sketches.sets
            if sketches.words is not None:  # the sketch was made without them
                sets = apart(Ragged(sets.values.copy(), sets.offsets), sketches.words)
            keys = self.method.keys(self.method.sketch(sets, **how), **how)
        elif self.method.sample_bits is None:
            keys = self.method.keys(sketches.sketch, **how)
        elif self.method.candidates == "segments":
            assert sketches.sketch is not None
            keys = self.method.from_columns({"packed": sketches.sketch})[1]
        else:
            return None
        return sketches._replace(keys=keys if sketches.words is None else self.method.keys_apart(keys, sketches.words))

    def arrays(self, sketches: SketchedEntries) -> dict[str, np.ndarray]:
        """The tables of the features of entries; those with too few words are in none."""
        rows = np.flatnonzero(sketches.tokens >= self.least_words).astype(np.uint32)
        found = sorted_tables(sketches.keys, rows)
        return dict(zip(("feature_keys", "feature_rows"), found, strict=True))

    def first(self, snapshot: Snapshot, sketches: SketchedEntries, reach: EntryRange) -> FoundEntries:
        """Return the first entries in reach that share r features with each document."""
        assert self.method.filter is not None
        first, stop, most, _ = reach
        size, r = len(first), self.method.filter.r
        if size == 0:
            return found_of([])
        (nearest, latest), (earliest, farthest) = _ends(first), _ends(stop)
        remaining, nowhere = np.full(size, most, np.int64), (np.zeros(size, np.int64), np.full(size, WITHOUT_END))
        parts: list[tuple[np.ndarray, np.ndarray]] = []
        queries, numbers = None, list(range(len(snapshot.segments)))
        if size == 1 and snapshot.new is None:
            numbers = snapshot.sharing("feature", sketches.keys[0], r)
        for number in numbers:
            segment = snapshot.segments[number]
            begin, end = segment.first, segment.stop
            if begin == end or farthest <= begin or nearest >= end:
                continue
            bounds = nowhere
            if latest > begin or earliest < end:
                founders = segment["founders"]
                bounds = np.searchsorted(founders, first), np.searchsorted(founders, stop)
            live = reach.rows_of(number, segment)
            if snapshot.new is not None and segment is snapshot.new:
                rows, offsets = segment.earlier("feature", bounds[1], r, bounds[0], remaining, live)
            else:
                if queries is None:
                    queries = snapshot.possible("feature", _sorted_features(sketches, snapshot))
                rows, offsets = segment.probe("feature", queries[number], r, *bounds, remaining, live)
            if len(rows):
                sizes = np.diff(offsets)
                remaining -= sizes
                parts.append((np.repeat(np.arange(size), sizes), segment.some("founders", rows)))
        return found_of(parts)

    def keys(self, snapshot: Snapshot, entries: np.ndarray) -> np.ndarray:
        """The features of entries, restored from their tables: uint64, shape (entries, k)."""
        found = np.zeros((len(entries), self.method.key_columns), np.uint64)
        for segment, some, rows in snapshot.located(entries):
            everyone = np.zeros((segment.num_entries, found.shape[1]), np.uint64)
            for number, (keys, places) in enumerate(zip(segment["feature_keys"], segment["feature_rows"], strict=True)):
                everyone[places, number] = keys
            found[some] = everyone[rows]
        return found


def _sorted_features(sketches: SketchedEntries, snapshot: Snapshot) -> SortedQueries:
    """Return the features of documents as sorted queries: the tables of the new segment, if it has just these."""
    new = snapshot.new
    if new is not None and new.num_entries == len(sketches.keys) == new["feature_keys"].shape[1]:
        sizes = np.full(len(new["feature_keys"]), new.num_entries)
        return SortedQueries(new["feature_keys"], new["feature_rows"], sizes)
    return SortedQueries(*sort_queries(sketches.keys))


def _ends(numbers: np.ndarray) -> tuple[int, int]:
    """The least and the greatest."""
    return (int(numbers[0]),) * 2 if len(numbers) == 1 else (int(numbers.min()), int(numbers.max()))
