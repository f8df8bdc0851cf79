"""Candidates segment by segment, for finders that ask each segment by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from neardup_gpu.kernels._tables import sorted_tables

from .contract import EntryRange, FoundEntries

if TYPE_CHECKING:
    from ...index.segments import Segment
    from ...index.snapshot import Snapshot

SearchSegment = Callable[
    ["Segment", np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]
]
"""Searches a segment for some documents, given by their numbers. Returns the first allowed rows of each document in a
range of rows, up to a limit, as (rows, where the rows of each document begin)."""


def by_segment(snapshot: Snapshot, reach: EntryRange, search: SearchSegment) -> FoundEntries:
    """Return the first candidates of each document, as `Finder.first` says, by what `search` finds in each segment."""
    first, stop, most, _ = reach
    remaining = np.full(len(first), most, np.int64)
    parts: list[tuple[np.ndarray, np.ndarray]] = []
    for number, segment in enumerate(snapshot.segments):
        founders = segment["founders"]
        if not len(founders):
            continue
        some = np.flatnonzero((remaining > 0) & (first <= founders[-1]) & (stop > founders[0]))
        if not len(some):
            continue
        begin, end = (np.searchsorted(founders, each[some]).astype(np.int64) for each in (first, stop))
        live = reach.rows_of(number, segment)
        rows, offsets = search(segment, some, begin, end, remaining[some], live)
        sizes = np.diff(offsets)
        remaining[some] -= sizes
        parts.append((np.repeat(some, sizes), founders[rows]))
    return found_of(parts)


def found_of(parts: list[tuple[np.ndarray, np.ndarray]]) -> FoundEntries:
    """Candidates of one segment after another as those of one document after another."""
    if not parts:
        return FoundEntries(np.empty(0, np.int64), np.empty(0, np.int64))
    if len(parts) == 1:
        return FoundEntries(*parts[0])
    queries, entries = (np.concatenate(each) for each in zip(*parts, strict=True))
    order = np.argsort(queries, kind="stable")
    return FoundEntries(queries[order], entries[order])


def sorted_table(keys: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(key, row) by key, equal keys in the order given."""
    found, numbers = sorted_tables(np.ascontiguousarray(keys)[:, None], np.arange(len(keys), dtype=np.uint32))
    return found[0], rows[numbers[0]].astype(np.uint32)
