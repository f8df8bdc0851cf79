"""Rebuilding: all that is derived from the stored entries of an index is made again, as if they were added anew.

First all segments become one, with tables that are made again (`remaking.py`) and no decisions: each entry is marked as
kept, and as one with pairs that are not stored, so that `decide` finds all pairs anew. Then all entries are decided of
at once, and the segment is written again with their pairs. So the index answers rightly after either commit.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..data import Ragged
from ..methods.finding.contract import SketchedEntries
from .merging import Merge, merge_now
from .opened import Opened
from .remaking import new_order, tables_of
from .segments import KEPT, OPEN, Segment
from .snapshot import Snapshot, on_host
from .writer import decide_entries

if TYPE_CHECKING:
    from ..engine.contract import Runtime
    from ..methods.finding.keeps import Keeps
    from ..methods.finding.order import Order
    from ..recipe import Recipe


def rebuild(opened: Opened, runtime: Runtime) -> None:
    """Make all tables, pairs and decisions of an index again, in one segment in which nothing is dead.

    Raises
    ------
    OutputError
        If the index is being written by another process, or cannot be written.
    DamagedError
        If what is stored of entries is not as it was written.
    """
    writer, recipe = opened.write(), opened.recipe
    keeps = writer.manifest.keeps
    if writer.segments:
        merge_now(Merge(writer, 0, len(writer.segments), partial(_with_tables, recipe, keeps)), disturbed=True)
        opened.committed(writer)
    if writer.segments:
        (segment,) = writer.segments
        disturbed = not np.isin(segment["founders"], segment["sequence"]).all()
        merge_now(Merge(writer, 0, 1, partial(_with_decisions, recipe, keeps, runtime)), disturbed=disturbed)
        opened.committed(writer)


def _with_tables(
    recipe: Recipe, keeps: Keeps, segments: list[Segment], rows: list[np.ndarray]
) -> tuple[dict[str, np.ndarray], Order | None]:
    """Return the tables of some entries, made again, and decisions that say nothing; see `merging.Again`."""
    has_postings = any(each.order is not None for each in segments)
    order = new_order(segments, rows) if has_postings else None
    number = sum(map(len, rows))
    undecided: dict[str, np.ndarray] = {"flags": np.full(number, KEPT | OPEN, np.uint8), "gone": np.empty(0, np.uint32)}
    for name in ("pair_left", "pair_right", "keeper"):
        undecided[name] = np.empty(0, np.int64)
    for name in ("pair_resemblance", "keeper_resemblance"):
        undecided[name] = np.empty(0, np.uint64)
    return {**tables_of(segments, rows, recipe, keeps, order), **undecided}, order


def _with_decisions(
    recipe: Recipe, keeps: Keeps, runtime: Runtime, segments: list[Segment], rows: list[np.ndarray]
) -> tuple[dict[str, np.ndarray], Order | None]:
    """Return the pairs and decisions of all entries of the one segment, found anew; see `merging.Again`."""
    (segment,), (everyone,) = segments, rows
    assert len(everyone) == segment.num_entries
    number, finder = len(everyone), recipe.method.finder(recipe, keeps)
    sets = Ragged(np.empty(0, np.uint64), np.zeros(number + 1, np.int64))
    if keeps.sets:
        sets = Ragged(segment["set_values"], segment["set_offsets"])
    keys = finder.keys(Snapshot(segments, "cpu"), segment["founders"])
    sketch = segment["sketch"] if "sketch" in segment.arrays else None
    tokens = segment["tokens"].astype(np.int64)
    mine, _ = finder.prepared(
        SketchedEntries(np.empty((number, 2), np.uint64), tokens, keys, sets, sketch), segment.order
    )
    new = Segment.in_memory(dict(segment.arrays), segment.id_kind, segment.order)
    new.place = segment.place  # it says where entries begin whose founders are dead
    return decide_entries(Snapshot([], on_host(runtime.backend), new), mine, recipe, keeps, runtime), None
