"""Queries: which live documents resemble some texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ..data import Ragged, arrow
from ..engine.choice import to_host
from ..errors import InputError
from ..measures import worth
from .finding import finder_of
from .manifest import Manifest
from .opened import Opened
from .sketches import Sketched, sketched
from .snapshot import WITHOUT_END, Snapshot

if TYPE_CHECKING:
    from ..engine.contract import Runtime
    from ..recipe import Recipe

TOGETHER = 1 << 16
"""Pairs that are verified together, about."""


_NOTHING = pa.table(
    {
        "query_id": pa.array([], pa.int64()),
        "id": pa.array([], pa.int64()),
        **{name: pa.array([], pa.float64()) for name in ("resemblance", "low", "high")},
        **{name: pa.array([], pa.bool_()) for name in ("exact", "kept")},
    }
)


def ask_text(opened: Opened, text: str, html: bool | str, least: float, nearest: int | None) -> pa.Table:
    """What resembles one text, on one thread; `html` says how its markup is read, if it has any."""
    if html:
        from ..documents.html import read_page

        text = read_page(text, tree=html == "tree").text
    with opened.alone() as runtime:
        data = np.frombuffer(text.encode("utf-8", "replace"), np.uint8)
        offsets = np.array([0, len(data)], np.int64)
        offsets.flags.writeable = False
        sketches = sketched(Ragged(data, offsets), opened.recipe, runtime)
        return answered(*opened.snapshot(runtime), pa.array([0]), sketches, least, nearest, opened.recipe, runtime)


def ask(opened: Opened, source: Any, reading: dict[str, Any], least: float, nearest: int | None) -> pa.Table:
    """What resembles each of many documents.

    Raises
    ------
    InputError
        If they cannot be read, or there are none.
    """
    from ..documents import open_documents

    with opened.running() as runtime:
        recipe, snapshot = opened.recipe, opened.snapshot(runtime)
        tables = [
            answered(*snapshot, batch.ids, sketched(batch.text, recipe, runtime), least, nearest, recipe, runtime)
            for batch in open_documents(source, **reading).batches(max_bytes=1 << 22)
        ]
    if not tables:
        raise InputError("the input holds no documents; there is nothing to ask")
    return pa.concat_tables(tables, promote_options="permissive")


def answered(
    manifest: Manifest,
    snapshot: Snapshot,
    query_ids: pa.Array,
    sketches: Sketched,
    least: float,
    nearest: int | None,
    recipe: Recipe,
    runtime: Runtime,
) -> pa.Table:
    """Answer queries: query_id, id, resemblance, low, high, exact, kept; best first, ties by sequence number."""
    present = np.flatnonzero(sketches.tokens > 0)
    never, ever = np.zeros(len(present), np.int64), np.full(len(present), WITHOUT_END)
    found = finder_of(recipe).first(snapshot, sketches.take(present), never, ever, int(WITHOUT_END))
    query, entry = present[found.asked], found.entries  # copies too, which share all features
    value = np.empty(len(query))
    for start in range(0, len(query), TOGETHER):
        some = slice(start, start + TOGETHER)
        value[some] = _resemblance(snapshot, sketches, query[some], entry[some], least, recipe, runtime)
    enough = value >= least
    return _table(snapshot, query_ids, query[enough], entry[enough], value[enough], manifest.id_type, nearest)


def _resemblance(
    snapshot: Snapshot,
    sketches: Sketched,
    query: np.ndarray,
    entry: np.ndarray,
    threshold: float,
    recipe: Recipe,
    runtime: Runtime,
) -> np.ndarray:
    """Exact resemblance of texts and entries; less than 0 where it is below the threshold."""
    texts, left = np.unique(query, return_inverse=True)
    entries, right = np.unique(entry, return_inverse=True)
    mine, theirs = sketches.take(texts).sets, snapshot.sets_of(entries)
    sizes = np.concatenate([mine.sizes, theirs.sizes])
    sets = Ragged(
        np.concatenate([mine.values, theirs.values]), np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    )
    right = right + len(texts)
    return to_host(runtime.run(worth, recipe.method.measure, sets, left, right, threshold, runtime.backend))


def _table(
    snapshot: Snapshot,
    query_ids: pa.Array,
    query: np.ndarray,
    entry: np.ndarray,
    value: np.ndarray,
    kind: pa.DataType,
    nearest: int | None,
) -> pa.Table:
    """The live documents of entries, in order."""
    if not len(entry):
        return _NOTHING.set_column(0, "query_id", query_ids[:0]).set_column(1, "id", pa.array([], kind))
    kept = snapshot.kept(entry)
    row, number, ids = snapshot.members(entry, kind)
    first = np.diff(row, prepend=-1) != 0
    order = np.lexsort((number, -value[row], query[row]))
    if nearest is not None:
        asked = query[row[order]]
        order = order[np.arange(len(order)) - np.searchsorted(asked, asked) < nearest]
    row, stays = row[order], kept[row[order]] & first[order]
    found = value[row]
    return pa.table(
        {
            "query_id": query_ids.take(arrow(query[row])),
            "id": ids.take(arrow(order)),
            "resemblance": arrow(found),
            "low": arrow(found),
            "high": arrow(found),
            "exact": arrow(np.ones(len(found), bool)),
            "kept": arrow(stays),
        }
    )
