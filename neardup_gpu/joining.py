"""The index of shingles that pairs are found in: which documents have a rare shingle among their rarest ones.

Made of the shingles in a spool in two passes: one counts them, one takes each document's prefix; see
`kernels/rarity.py`, `prefixes.py`, `runs.py` and `setjoin.py`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neardup_gpu.kernels import prefixes, rarity, runs as runs_kernel, setjoin
from neardup_gpu.kernels._bounds import least_overlaps
from neardup_gpu.kernels._launch import array_module
from neardup_gpu.kernels.prefixes import LONG, PLACE_BITS

from .engine.choice import kernel
from .engine.pieces import Span, spans

if TYPE_CHECKING:
    from .engine.clock import Clock
    from .engine.contract import Rows, Runtime

MOST_TABLE_BITS = 30
"""A table of counters takes at most 1.06 GiB."""


class Index(NamedTuple):
    """Runs of postings, where the backend wants them; see `kernels/runs.py` and `setjoin.py` for the arrays.

    Rows are representatives, by priority.
    """

    entries: Any
    starts: Any
    splits: Any
    places: Any
    offsets: Any
    sizes: Any
    needed: Any

    def only(self, rows: Any) -> Index:
        """The same with the entries of some rows alone, given as a bool for each; places stay as they are."""
        xp = array_module(self.entries)
        row = (self.entries >> np.uint64(PLACE_BITS)) & np.uint64(2**32 - 1)
        kept = rows[row.astype(np.int64)]
        before = xp.zeros(len(kept) + 1, np.int64)
        before[1:] = xp.cumsum(kept)
        return self._replace(entries=self.entries[kept], starts=before[self.starts], splits=before[self.splits])


def build_index(
    spool: Rows, spool_rows: np.ndarray, members: np.ndarray, threshold: float, clock: Clock, runtime: Runtime
) -> Index:
    """Index the prefixes of some documents.

    Parameters
    ----------
    spool : Rows
        Shingles of all documents.
    spool_rows : array of int64, shape (rows,)
        The row of the spool that holds each row's.
    members : array of int64
        Rows to index; the others have no places.
    """
    in_file = members[np.argsort(spool_rows[members], kind="stable")]
    parts = _parts(spool, spool_rows[in_file], runtime)
    table = _counted(spool, spool_rows[in_file], parts, runtime)
    take = partial(_taken, spool, spool_rows, in_file, table, threshold, runtime)
    done, shingles, entries = 0, [], []
    distinct = np.zeros(len(spool_rows), np.int32)
    for rows, some, theirs, size in runtime.map(take, parts):
        shingles.append(some)
        entries.append(theirs)
        distinct[rows] = runtime.fetch(size)
        done += len(rows)
        clock.report("index", done, len(in_file))
    del table
    made = runtime.run(partial(_runs, shingles, entries, len(spool_rows), runtime))
    needed = least_overlaps(2 * int(distinct.max(initial=0)), threshold)
    return Index(*made, runtime.put(distinct), runtime.put(needed))


def _parts(spool: Rows, spool_rows: np.ndarray, runtime: Runtime) -> list[Span]:
    """Some rows of a spool, in parts whose sets can be made at once."""
    weights = 8 * np.diff(spool.offsets)[spool_rows]
    ends = Span.of_sizes(weights).ends
    return [Span(ends, *bounds, "documents") for bounds in spans(weights, runtime.shares.sorted)]


def _counted(spool: Rows, spool_rows: np.ndarray, parts: list[Span], runtime: Runtime) -> Any:
    """The table of counters of all these shingles, of about as many counters as shingles."""
    num_values = int(np.diff(spool.offsets)[spool_rows].sum())
    bits = min(max(rarity.FEWEST_BITS, (num_values - 1).bit_length()), MOST_TABLE_BITS)
    tables: list[Any] = [None]

    def count(part: Span) -> None:  # counts that are too large, should this be called again, cost time alone
        shingles = spool.gather(spool_rows[part.rows])
        tables[0] = kernel(rarity, runtime.backend)(shingles.values, bits, tables[0])

    for _ in runtime.map(count, parts):
        pass
    return tables[0] if parts else kernel(rarity, runtime.backend)(np.empty(0, np.uint64), bits)


def _taken(
    spool: Rows, spool_rows: np.ndarray, in_file: np.ndarray, table: Any, threshold: float, runtime: Runtime, part: Span
) -> tuple[np.ndarray, Any, Any, Any]:
    """(rows, and their postings: shingles, entries and the sizes of sets) of some documents."""
    rows = in_file[part.rows]
    shingles = spool.gather(spool_rows[rows])
    take = kernel(prefixes, runtime.backend)
    return rows, *take(shingles.values, shingles.offsets, runtime.put(rows), *table, threshold)


def _runs(shingles: list[Any], entries: list[Any], num_rows: int, runtime: Runtime) -> Any:
    xp = array_module(shingles[0]) if shingles else np
    joined = [xp.concatenate([xp.empty(0, np.uint64), *arrays]) for arrays in (shingles, entries)]
    return kernel(runs_kernel, runtime.backend)(*joined, num_rows)


LOOKS = 1 << 24
"""Entries that are looked at before progress is told, about; a long run counts as `LONG_RUN`."""

LONG_RUN = 1 << 12

LISTED = 1 << 22
"""Places in lists of candidates at a time: 32 MB."""


class Met(NamedTuple):
    """The first candidates of some rows, in host memory.

    rows : array of int64, shape (asked,)
    candidates : array of int64
        Asked row by asked row.
    counts : array of int64, shape (asked,)
        How many candidates each has.
    looks : int
        Entries that were looked at.
    """

    rows: np.ndarray
    candidates: np.ndarray
    counts: np.ndarray
    looks: int


def meet(index: Index, rows: np.ndarray, first: np.ndarray, stop: np.ndarray, most: int, runtime: Runtime) -> Any:
    """The first `most` candidates of some rows, from rows `first` on and before `stop`: an iterator of `Met`."""
    run_sizes = runtime.fetch(index.starts)[1:] - runtime.fetch(index.starts)[:-1]
    places, offsets = runtime.fetch(index.places), runtime.fetch(index.offsets)
    looks = np.minimum(run_sizes, LONG_RUN)[(places >> np.uint64(PLACE_BITS)).astype(np.int64)]
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(looks)])
    weights = before[offsets[rows + 1]] - before[offsets[rows]] + 1
    weights = np.maximum(weights, LOOKS * most // LISTED)
    ends = Span.of_sizes(weights).ends

    def probe(part: Span) -> Met:
        asked = rows[part.rows]
        found, ends, looks = kernel(setjoin, runtime.backend)(
            *index, *map(runtime.put, (asked, first[part.rows], stop[part.rows])), most
        )
        return Met(asked, *map(runtime.fetch, (found, np.diff(runtime.fetch(ends)))), int(looks.sum()))

    return runtime.map(probe, (Span(ends, *bounds, "documents") for bounds in spans(weights, LOOKS)))


def expected_comparisons(index: Index, runtime: Runtime) -> int:
    """Entries that are looked at where each row looks once for all its better partners, from the lengths of runs.

    Two entries of a run meet unless both are of long prefixes alone. There will be fewer where rows have partners
    enough, and some more where the list of a row's candidates fills up and it has to go on.
    """
    return int(_comparisons(index, runtime).sum())


def _comparisons(index: Index, runtime: Runtime) -> np.ndarray:
    """Pairs of entries that meet in each run: float64, as they may be many."""
    starts, splits = runtime.fetch(index.starts), runtime.fetch(index.splits)
    all_of, long = (starts[1:] - starts[:-1]).astype(np.float64), (starts[1:] - splits).astype(np.float64)
    return (all_of * (all_of - 1) - long * (long - 1)) / 2


class Common(NamedTuple):
    """A shingle that many documents have in their prefixes.

    shingle : int
    num_documents : int
    row : int
        One of them.
    """

    shingle: int
    num_documents: int
    row: int


def commonest(
    index: Index,
    spool: Rows,
    spool_rows: np.ndarray,
    members: np.ndarray,
    threshold: float,
    most: int,
    runtime: Runtime,
) -> list[Common]:
    """The shingles for which most entries meet, from the first on.

    An index knows places, not shingles: so these are counted once more, which costs a pass over the spool.

    Parameters
    ----------
    index : Index
        As `build_index` made it of the other arguments.
    most : int
        How many, at most.
    """
    starts, entries = runtime.fetch(index.starts), runtime.fetch(index.entries)
    runs = np.argsort(-_comparisons(index, runtime), kind="stable")[:most]
    in_file = members[np.argsort(spool_rows[members], kind="stable")]
    table = _counted(spool, spool_rows[in_file], _parts(spool, spool_rows[in_file], runtime), runtime)
    found = []
    for run in runs.tolist():
        word = entries[starts[run]] & ~LONG
        row = np.array([word >> np.uint64(PLACE_BITS)], np.int64)
        (part,) = _parts(spool, spool_rows[row], runtime)
        _, shingles, theirs, _ = _taken(spool, spool_rows, row, table, threshold, runtime, part)
        there = (runtime.fetch(theirs) & ~LONG) == word
        for shingle in runtime.fetch(shingles)[there].tolist():
            found.append(Common(shingle, int(starts[run + 1] - starts[run]), int(row[0])))
    return found
