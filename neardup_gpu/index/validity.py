"""Check manifests and segments before anything is made of them.

A checksum shows that a file is as somebody wrote it, and not who that was. So what a manifest says is compared with the
types, ranges and relations that every manifest of this package has, and the arrays of a segment with those that the
recipe asks for. What single values of arrays may be, `segments.limits_of` says.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ..errors import InputError, ParameterError
from ..stages.conditions import WITHIN
from ..store.ids import KINDS, NAMES, Ids
from .columns import kept_as, type_named
from .keeps import KEPT_TEXTS, TOKENS

if TYPE_CHECKING:
    from ..methods.finding.contract import Finder
    from ..methods.finding.keeps import Keeps
    from ..recipe import Recipe
    from .manifest import Manifest
    from .segments import Segment

MOST_SEGMENTS = 1 << 12
"""Segments of an index, at most: merging leaves fewer than 200, however many documents there are."""

MOST_NUMBER = 1 << 53
"""Numbers of documents, files and commits are below this."""


def _is_number(value: Any, least: int = 0) -> bool:
    return type(value) is int and least <= value < MOST_NUMBER


def problems_of(manifest: Manifest) -> Iterator[str]:
    """Yield what is wrong with a manifest, in words."""
    given = () if manifest.next_document is None else ("next_document",)
    for name, least in (("number", 1), *((name, 0) for name in ("next_sequence", "next_file", *given))):
        if not _is_number(getattr(manifest, name), least):
            yield f"{name} is {getattr(manifest, name)!r:.40}"
    if not isinstance(manifest.recipe, str):
        yield "recipe is not text"
    if manifest.id_kind not in (None, *KINDS):
        yield f"id_kind is {manifest.id_kind!r:.40}"
    if type(manifest.disturbed) is not bool:
        yield f"disturbed is {manifest.disturbed!r:.40}"
    yield from _problems_of_types(manifest)
    yield from _problems_of_keeps(manifest.keeps)
    yield from _problems_of_reading(manifest.reading)
    if len(manifest.segments) > MOST_SEGMENTS:
        yield f"{len(manifest.segments):,} segments are named, and there may be {MOST_SEGMENTS:,}"
    yield from _problems_of_segments(manifest)
    for each in manifest.inputs:
        numbers = _is_number(each.rows) and _is_number(each.first)
        if not isinstance(each.name, str) or not numbers or type(each.whole) is not bool:
            yield f"an input is {each!r:.60}"
        described = each.files if isinstance(each.files, list) else [None]
        for file in described:
            sound = isinstance(file, list) and len(file) == 3 and isinstance(file[0], str)
            if not sound or not all(type(number) is int for number in file[1:]):
                yield f"a file of an input is {file!r:.60}"


def _problems_of_types(manifest: Manifest) -> Iterator[str]:
    columns, orders = manifest.columns, manifest.categories
    if not isinstance(columns, dict) or not all(isinstance(kind, str) for kind in columns.values()):
        yield f"columns is {columns!r:.60}"
        return
    lists = list(orders.values()) if isinstance(orders, dict) else [None]
    if not all(isinstance(each, list) and all(isinstance(category, str) for category in each) for each in lists):
        yield f"categories is {orders!r:.60}"
    try:
        if manifest.id_as is not None and Ids.of(pa.nulls(0, type_named(manifest.id_as))).kind != manifest.id_kind:
            yield f"id_as is {manifest.id_as!r:.40}"
        for column, kind in manifest.column_types.items():
            if kept_as(column, kind) != kind:
                yield f"a column has the type {kind!s:.40}"
    except (InputError, ParameterError, TypeError, ValueError, pa.ArrowException):
        yield "an index does not keep ids or columns of this type"


def _problems_of_reading(reading: Any) -> Iterator[str]:
    """Yield what is wrong with the way of reading that a manifest remembers, see `adding.checked_reading`."""
    if reading is None:
        return
    sound = isinstance(reading, dict) and reading.keys() == {"html", "text_columns"}
    sound = sound and (type(reading["html"]) is bool or reading["html"] == "tree")
    names = reading["text_columns"] if sound else None
    if not (isinstance(names, list) and names and all(isinstance(name, str) for name in names)):
        yield f"reading is {reading!r:.60}"


def _problems_of_keeps(keeps: Keeps) -> Iterator[str]:
    if type(keeps.sets) is not bool:
        yield f"keeps.sets is {keeps.sets!r:.40}"
    if keeps.tokens not in (None, *TOKENS):
        yield f"keeps.tokens is {keeps.tokens!r:.40}"
    for name, most in (("expected", 1 << 40), ("leading", 64), ("containment", 1 << 32)):
        value = getattr(keeps, name)
        if value is not None and not (type(value) is int and (0 if name == "leading" else 1) <= value <= most):
            yield f"keeps.{name} is {value!r:.40}"


def _problems_of_segments(manifest: Manifest) -> Iterator[str]:
    """Yield what is wrong with the places of segments: they follow one another, and hold no more than their bytes."""
    files, before = set(), 0
    if manifest.segments and manifest.id_kind is None:
        yield "segments are named, and the kind of their ids is not"
    for place in manifest.segments:
        numbers = "file", "first", "stop", "documents", "entries", "pairs", "num_bytes"
        for name in (*numbers, "dead_documents", "dead_entries"):
            if not _is_number(getattr(place, name)):
                yield f"{name} of a segment is {getattr(place, name)!r:.40}"
                return
        for name in ("deleted", "order"):
            if getattr(place, name) is not None and not _is_number(getattr(place, name)):
                yield f"{name} of a segment is {getattr(place, name)!r:.40}"
                return
        numbers_of_files = [each for each in (place.file, place.deleted, place.order) if each is not None]
        sound = all(number < manifest.next_file for number in numbers_of_files)
        sound &= before <= place.first <= place.stop <= manifest.next_sequence
        sound &= max(place.entries, place.documents) <= place.stop - place.first
        sound &= place.entries <= place.documents or manifest.next_document is not None  # but of parts of documents
        sound &= place.dead_documents <= place.documents and place.dead_entries <= place.entries
        sound &= 16 * place.documents + 16 * place.entries + 24 * place.pairs <= place.num_bytes
        if not sound or place.file in files:
            yield f"segment {place.file:08} has numbers that contradict one another"
            return
        files.add(place.file)
        before = place.stop
    if len({place.order for place in manifest.segments if place.order is not None}) > 1:
        yield "segments follow several orders of shingles"


def misses(segment: Segment, finder: Finder, recipe: Recipe, keeps: Keeps, columns: dict[str, str]) -> str | None:
    """Return the name of an array that a segment of a recipe lacks or has in another form, or None if all is there."""
    arrays = segment.arrays
    tables: dict[str, int | None] = {"id": None, "hash": None, **finder.tables}
    if keeps.containment is not None:
        tables["contained"] = None
    for name, number in tables.items():
        keys = arrays.get(f"{name}_keys")
        if keys is None or (keys.ndim != 1 if number is None else keys.ndim != 2 or len(keys) != number):
            return f"{name}_keys"
    if keeps.sets and ("set_offsets" not in arrays or "set_values" not in arrays):
        return "set_values"
    if keeps.sketches(recipe) and finder.sketch is not None:
        dtype, width = finder.sketch
        sketch = arrays.get("sketch")
        if sketch is None or sketch.dtype != np.dtype(dtype) or sketch.shape[1:] != width:
            return "sketch"
    if recipe.within and WITHIN not in arrays:
        return WITHIN
    for name in KEPT_TEXTS if keeps.tokens is not None else ():
        if f"{name}_offsets" not in arrays or f"{name}_values" not in arrays:
            return f"{name}_values"
    if columns and "columns" not in arrays:
        return "columns"
    if recipe.unit.divides != segment.is_divided:
        return "first_unit"
    expected = {f"{name}_{part}" for name in tables for part in ("keys", "rows")} | set(NAMES)
    foreign = {name for name in arrays if name.endswith(("_keys", "_rows"))} - expected
    return min(foreign, default=None)
