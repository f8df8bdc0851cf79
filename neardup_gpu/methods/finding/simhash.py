"""Simhash in an index: sorted tables of leading bits; candidates are simhashes within the radius.

The masks of a `TableDesign` are such that two simhashes within the radius agree in all bits of some mask. A table keeps
these bits of each entry as its keys, at the top of a word: the entries of a bucket lie together then, in the order of
their numbers, and the kernel `bucket_probe` looks for the first ones within the radius. The simhashes themselves are
the column `sketch`.

The design is chosen when the index is made, for the documents that are expected, and segments of one index have the
same tables, as they are merged. In an index that outgrows it buckets grow, and nothing is missed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from neardup_gpu.kernels import bucket_probe

from ...engine.choice import kernel
from ..table_design import SEARCH, TableDesign, choose
from .by_segment import by_segment, sorted_table
from .contract import EntryRange, Finder, FoundEntries, SketchedEntries
from .keeps import Keeps
from .order import Order

if TYPE_CHECKING:
    from ...index.segments import Segment
    from ...index.snapshot import Snapshot
    from ...recipe import Recipe
    from ..simhash import SimHash

EXPECTED = 1_000_000
"""Documents that tables are chosen for, unless others are expected."""

MOST_TABLES = 64
"""Tables of an index at most: each takes 12 bytes of an entry."""

MET = 100
"""How much longer it takes to look at an entry of a bucket than `table_design` says, which compares sorted words."""


def design_for(expected: int, method: SimHash) -> TableDesign:
    """The tables for an index of this number of documents, if each is looked up once."""
    memory = (12 * MOST_TABLES + 16) * expected
    return choose(
        expected, method.radius, bits=method.bits, num_queries=MET * expected, probe=SEARCH / MET, memory=memory
    )


class ByBits(Finder):
    """Candidates are within the radius: `simhash_keys` and `simhash_rows`, shape (tables, entries with words).

    Parameters
    ----------
    recipe : Recipe
    keeps : Keeps
        Says how many bits lead in a table at least; of a new index, how many documents are expected.
    """

    def __init__(self, recipe: Recipe, keeps: Keeps) -> None:
        self.method: SimHash = recipe.method
        self.radius = self.method.radius
        if keeps.leading is None:
            expected = keeps.expected or EXPECTED
            keeps = replace(keeps, expected=expected, leading=design_for(expected, self.method).prefix)
        assert keeps.leading is not None
        super().__init__(recipe, keeps)
        self.design = TableDesign(self.method.bits, self.method.radius, keeps.leading)

    @property
    def tables(self) -> dict[str, int | None]:
        """A table for each mask of the design."""
        return {"simhash": self.design.num_tables}

    @property
    def sketch(self) -> tuple[str, tuple[int, ...]]:
        """A simhash of 64 or 128 bits."""
        return "uint64", () if self.method.bits == 64 else (2,)

    def remade(self, sketches: SketchedEntries, order: Order | None) -> SketchedEntries | None:
        """Return stored entries with their simhashes for keys, which are stored."""
        return sketches._replace(keys=sketches.sketch)

    def arrays(self, sketches: SketchedEntries) -> dict[str, np.ndarray]:
        """The tables of entries; those with too few words are in none."""
        rows = np.flatnonzero(sketches.tokens >= self.least_words).astype(np.uint32)
        keys = bucket_probe.buckets(sketches.keys[rows], self.design.array)
        found_rows = np.empty(keys.shape, np.uint32)
        for number in range(len(keys)):
            keys[number], found_rows[number] = sorted_table(keys[number], rows)
        return {"simhash_keys": keys, "simhash_rows": found_rows}

    def first(self, snapshot: Snapshot, sketches: SketchedEntries, reach: EntryRange) -> FoundEntries:
        """Return the first entries in reach that are within the radius of each document."""
        run = kernel(bucket_probe, snapshot.backend)

        def search(segment: Segment, some: np.ndarray, *bounds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            tables = segment["simhash_keys"], segment["simhash_rows"], self.design.array, segment["sketch"]
            return run(*tables, sketches.keys[some], self.method.radius, *bounds)

        return by_segment(snapshot, reach, search)

    def keys(self, snapshot: Snapshot, entries: np.ndarray) -> np.ndarray:
        """The simhashes of entries: uint64, shape (entries,) or (entries, 2)."""
        return snapshot.sketches_of(entries)
