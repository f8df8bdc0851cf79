"""Simhash in an index: sorted tables of leading bits; candidates are simhashes within the radius.

The masks of a `TableDesign` are such that two simhashes within the radius agree in all bits of some mask. A table keeps
these bits of each entry as its keys, at the top of a word: the entries of a bucket lie together then, in the order of
their numbers. The kernel `probe` merges the buckets of a document in all tables, and what is not within the radius is
passed over. The simhashes themselves are the column `sketch`.

The design is chosen when the index is made, for the documents that are expected, and segments of one index have the
same tables, as they are merged. In an index that outgrows it buckets grow, and nothing is missed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neardup_gpu.kernels import probe
from neardup_gpu.kernels._bits import in_columns, permuted_words, plan

from ...engine.choice import kernel, to_host
from ...hamming.design import SEARCH, TableDesign, choose
from ...methods.simhash import SimHash
from ..segments import sorted_table
from .contract import Found

if TYPE_CHECKING:
    from ...recipe import Recipe
    from ..keeps import Keeps
    from ..segments import Segment
    from ..sketches import Sketched
    from ..snapshot import Snapshot

MOST_TABLES = 64
"""Tables of an index at most: each takes 12 bytes of an entry."""

MET = 100
"""How much longer it takes to look at an entry of a bucket than `hamming.design` says, which compares sorted words."""

FIRST_ASKED, MOST_ASKED = 256, 1 << 14
"""Entries of a document's buckets that are looked at together, at first and later."""

TOGETHER = 1 << 22
"""Entries of buckets that are looked at together for all documents, at most about."""


def design_for(expected: int, method: SimHash) -> TableDesign:
    """The tables for an index of so many documents, each of which asks once."""
    memory = (12 * MOST_TABLES + 16) * expected
    return choose(
        expected, method.radius, bits=method.bits, num_queries=MET * expected, probe=SEARCH / MET, memory=memory
    )


class ByBits:
    """Candidates are within the radius: `simhash_keys` and `simhash_rows`, shape (tables, entries with words).

    Parameters
    ----------
    recipe : Recipe
    keeps : Keeps
        Says how many bits lead in a table at least.
    """

    def __init__(self, recipe: Recipe, keeps: Keeps) -> None:
        assert keeps.leading is not None
        self.method: SimHash = recipe.method
        self.design = TableDesign(self.method.bits, self.method.radius, keeps.leading)

    def _buckets(self, simhashes: np.ndarray) -> np.ndarray:
        """The leading bits of simhashes in each table: uint64, shape (tables, simhashes)."""
        made, columns = plan(self.design.array), np.ascontiguousarray(in_columns(simhashes))
        found = np.empty((len(made.tops), len(columns)), np.uint64)
        for number, top in enumerate(made.tops):
            np.bitwise_and(permuted_words(columns, made.moves[number]), top, out=found[number])
        return found

    def arrays(self, sketches: Sketched) -> dict[str, np.ndarray]:
        """The tables of entries, those without words are in none."""
        rows = np.flatnonzero(sketches.tokens > 0).astype(np.uint32)
        keys = self._buckets(sketches.keys[rows])
        found_rows = np.empty(keys.shape, np.uint32)
        for number in range(len(keys)):
            keys[number], found_rows[number] = sorted_table(keys[number], rows)
        return {"simhash_keys": keys, "simhash_rows": found_rows}

    def first(
        self,
        snapshot: Snapshot,
        sketches: Sketched,
        first: np.ndarray,
        stop: np.ndarray,
        most: int,
        allowed: list[np.ndarray] | None = None,
    ) -> Found:
        """The first `most` entries within the radius of each document, from `first` on and before `stop`."""
        buckets = np.ascontiguousarray(self._buckets(sketches.keys).T)
        remaining = np.full(len(first), most, np.int64)
        parts: list[tuple[np.ndarray, np.ndarray]] = [(np.empty(0, np.int64), np.empty(0, np.int64))]
        for number, segment in enumerate(snapshot.segments):
            founders = segment["founders"]
            if not len(founders):
                continue
            some = np.flatnonzero((remaining > 0) & (first <= founders[-1]) & (stop > founders[0]))
            low, high = (np.searchsorted(founders, each[some]).astype(np.int64) for each in (first, stop))
            live = segment.live_entries if allowed is None else allowed[number]
            asked = FIRST_ASKED
            while len(some):
                step = max(1, TOGETHER // asked)
                goes_on = np.zeros(len(some), bool)
                for begin in range(0, len(some), step):
                    part = slice(begin, begin + step)
                    query, rows, full = self._near(
                        segment,
                        sketches.keys,
                        buckets,
                        some[part],
                        low[part],
                        high[part],
                        asked,
                        live,
                        snapshot.backend,
                    )
                    place = np.searchsorted(query, query)
                    fits = np.arange(len(query)) - place < remaining[query]
                    query, rows = query[fits], rows[fits]
                    remaining -= np.bincount(query, minlength=len(remaining))
                    parts.append((query, founders[rows]))
                    goes_on[part] = full
                goes_on &= remaining[some] > 0
                some, low, high = some[goes_on], low[goes_on], high[goes_on]
                asked = min(4 * asked, MOST_ASKED)
        query, entries = (np.concatenate(each) for each in zip(*parts, strict=True))
        order = np.argsort(query, kind="stable")
        return Found(query[order], entries[order])

    def _near(
        self,
        segment: Segment,
        simhashes: np.ndarray,
        buckets: np.ndarray,
        some: np.ndarray,
        low: np.ndarray,
        high: np.ndarray,
        asked: int,
        live: np.ndarray,
        backend: str,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(document, row within the radius, whether each document's buckets may have more) of the next entries.

        `low` is moved on behind the last entry that was looked at.
        """
        tables = segment["simhash_keys"], segment["simhash_rows"]
        most = np.full(len(some), asked, np.int64)
        rows, offsets = map(to_host, kernel(probe, backend)(*tables, buckets[some], 1, low, high, most, live))
        sizes = np.diff(offsets)
        full = sizes == asked
        low[full] = rows[offsets[1:][full] - 1] + 1
        query = np.repeat(some, sizes)
        bits = np.bitwise_count(simhashes[query] ^ segment.sketches_of(rows))
        near = (bits if bits.ndim == 1 else bits.sum(axis=1)) <= self.method.radius
        return query[near], rows[near], full

    def keys(self, snapshot: Snapshot, entries: np.ndarray) -> np.ndarray:
        """The simhashes of entries: uint64, shape (entries,) or (entries, 2)."""
        return snapshot.sketches_of(entries)
