"""Remaking: the tables by which candidates are found, made again from what is stored of entries; and comparing them.

Which tables can be made again:

    posting     of the exact join, from the sets of entries and the order of shingles
    feature     of min-hash, from the sets; in an index without sets from the stored samples, if they have all their
                bits or candidates share segments of the stored bits. Otherwise they cannot be made again.
    simhash     from the stored simhashes. The simhashes themselves were made from the texts, which are not stored.
    contained   from the sets

Tables of ids and of word hashes are not among them.

How many entries are compared
-----------------------------
A table is wrong where it lacks a row that it should have, or has a row that it should not have. Let at least the
share w = `WRONG` of the rows that it should have be missing, or at least that share of the rows that it has be foreign.
`check` draws n rows at random from those that the table has, and n from those that it should have, and compares all
rows of their entries both ways. Each draw of one of the two kinds meets a wrong row with probability w or more, so all
of them miss with probability (1 - w)**n at most. That is at most 1 - `FOUND` if n is ln(1 - FOUND) / ln(1 - w) or more:
342 for w = 0.02 and FOUND = 0.999. The same holds where w is the share of wrong rows among all of both kinds, which is
a mean of the two shares and thus not above the greater one.

Rows that a table has are drawn by their places in it. Rows that it should have are drawn by drawing entries in
proportion to the rows that each should have. For containment these are not known before all elements are; so shingles
are drawn, and those that are elements are kept.

Rebuilding
----------
`rebuild` makes all that is derived from the stored entries again, as if they were added anew. First all segments become
one, with tables that are made again and no decisions: each entry is marked as kept, and as one with pairs that are not
stored, so that `decide` finds all pairs anew. Then all entries are decided of at once, and the segment is written again
with their pairs. So the index answers rightly after either commit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..data import Ragged
from ..errors import DamagedError
from ..methods.finding.contract import SketchedEntries
from ..methods.finding.order import MOST_COUNTED, Order
from .merging import Merge, merge_now, merge_tables
from .opened import Opened
from .segments import KEPT, OPEN, REBUILD, Segment
from .sketches import EntryTools, element_tables, elements_of, stored
from .snapshot import Snapshot, on_host
from .writer import decide_entries

if TYPE_CHECKING:
    from ..engine.contract import Runtime
    from ..methods.finding.keeps import Keeps
    from ..recipe import Recipe

WRONG, FOUND = 0.02, 0.999
"""A sampled check finds a table with this share of wrong rows with this probability at least."""

DRAWN = math.ceil(math.log(1 - FOUND) / math.log(1 - WRONG))
"""Rows that are drawn from those that a table has, and again from those that it should have."""

BLOCK_SHINGLES = 6 << 20
"""Shingles of entries whose tables are made at once, at most about."""

AT_ONCE = 1 << 20
"""Rows of a table that are compared at a time."""


def new_order(segments: list[Segment], rows: list[np.ndarray]) -> Order | None:
    """Return an order of the shingles of some entries, of a sample if they have many; None if they have none."""
    total = sum(int(segment.set_sizes(some).sum()) for segment, some in zip(segments, rows, strict=True))
    step = max(1, -(-total // MOST_COUNTED))
    sets = stored(segments, [some[::step] for some in rows]).sets
    return Order.of(sets) if total else None


def tables_of(
    segments: list[Segment], rows: list[np.ndarray], recipe: Recipe, keeps: Keeps, order: Order | None
) -> dict[str, np.ndarray]:
    """Return the tables of some entries, made again; entries are numbered from 0 in the order given.

    Takes 24 bytes of memory for each row of a table.

    Parameters
    ----------
    segments : list of Segment
    rows : list of arrays of int64
        Rows of entries, ascending, for each segment.
    order : Order or None
        The order that postings follow, in an index that has some.
    """
    finder, start = recipe.method.finder(recipe, keeps), 0
    parts, numbers = list[dict[str, np.ndarray]](), list[np.ndarray]()
    for segment, some in _blocks(segments, rows):
        here = stored([segment], [some])
        made: dict[str, np.ndarray] = {}
        if (sketches := finder.remade(here, order)) is not None:
            made |= finder.arrays(sketches)
        if keeps.containment is not None:
            made |= element_tables(here.sets, keeps.containment, recipe, "cpu")
        parts.append(made)
        numbers.append(np.arange(start, start + len(some)))
        start += len(some)
    return parts[0] if len(parts) == 1 else _merged(parts, numbers)


def _blocks(segments: list[Segment], rows: list[np.ndarray]) -> Iterator[tuple[Segment, np.ndarray]]:
    """Yield entries of one segment after another, at most about `BLOCK_SHINGLES` shingles at a time; at least once."""
    for segment, some in zip(segments, rows, strict=True):
        sizes = segment.set_sizes(some) if "set_values" in segment.arrays else np.ones(len(some), np.int64)
        cuts = np.flatnonzero(np.diff(np.cumsum(sizes) // BLOCK_SHINGLES)) + 1
        for part in np.split(some, cuts):
            yield segment, part


def _merged(parts: list[dict[str, np.ndarray]], numbers: list[np.ndarray]) -> dict[str, np.ndarray]:
    """Return the tables of blocks as one, given the numbers of the entries of each block."""
    found: dict[str, np.ndarray] = {}
    for name in (name.removesuffix("_keys") for name in list(parts[0]) if name.endswith("_keys")):
        dimensions = parts[0][f"{name}_keys"].ndim
        of_parts = [tuple(np.atleast_2d(part.pop(f"{name}_{kind}")) for kind in ("keys", "rows")) for part in parts]
        made = []
        for number in range(len(of_parts[0][0])):
            ranges = list(merge_tables([(keys[number], rows[number]) for keys, rows in of_parts], numbers))
            made.append([np.concatenate(each) for each in zip(*ranges, strict=True)])
        keys, rows = (np.stack(each) if dimensions == 2 else each[0] for each in zip(*made, strict=True))
        found |= {f"{name}_keys": keys, f"{name}_rows": rows}
    return found


def check_tables(segment: Segment, recipe: Recipe, keeps: Keeps, everything: bool, random: np.random.Generator) -> int:
    """Compare the tables of a segment with those made again, of a sample of its entries or of all.

    Returns
    -------
    int
        How many entries were compared.

    Raises
    ------
    DamagedError
        If a table has a row that it should not have, or lacks one.
    """
    rows = np.arange(segment.num_entries) if everything else _drawn(segment, recipe, keeps, random)
    made = tables_of([segment], [rows], recipe, keeps, segment.order)
    chosen = np.zeros(segment.num_entries, bool)
    chosen[rows] = True
    for name in (name.removesuffix("_keys") for name in made if name.endswith("_keys")):
        expected = np.atleast_2d(made[f"{name}_keys"]), np.atleast_2d(made[f"{name}_rows"])
        keys, numbers = segment.keys(name), np.atleast_2d(segment[f"{name}_rows"])
        if keys.shape != numbers.shape or len(keys) != len(expected[0]):
            raise _wrong(segment, name)
        for number in range(len(keys)):
            _compare(segment, name, (keys[number], numbers[number]), [each[number] for each in expected], rows, chosen)
    return len(rows) if made else 0


def _wrong(segment: Segment, name: str) -> DamagedError:
    return DamagedError(f"{segment.name}: its {name} table is not that of the entries stored in it; {REBUILD}")


def _compare(
    segment: Segment,
    name: str,
    table: tuple[np.ndarray, np.ndarray],
    expected: list[np.ndarray],
    rows: np.ndarray,
    chosen: np.ndarray,
) -> None:
    """Compare those rows of a table that are of chosen entries with what they should be; and the order of its keys."""
    place, before = 0, np.uint64(0)
    for start in range(0, len(table[0]), AT_ONCE):
        keys, numbers = (each[start : start + AT_ONCE] for each in table)
        if keys[0] < before or (keys[1:] < keys[:-1]).any() or int(numbers.max()) >= len(chosen):
            raise _wrong(segment, name)
        before = keys[-1]
        some = np.flatnonzero(chosen[numbers])
        here = slice(place, place + len(some))
        if not np.array_equal(keys[some], expected[0][here]) or not np.array_equal(
            numbers[some], rows[expected[1][here]]
        ):
            raise _wrong(segment, name)
        place += len(some)
    if place != len(expected[0]):
        raise _wrong(segment, name)


def _drawn(segment: Segment, recipe: Recipe, keeps: Keeps, random: np.random.Generator) -> np.ndarray:
    """Return the rows of the entries that a sampled check compares, ascending: see the head of this file."""
    finder, number = recipe.method.finder(recipe, keeps), segment.num_entries
    lengths = finder.lengths(segment)
    found = [_weighted(lengths, random)]
    for name in (
        name for name in segment.arrays if name.endswith("_rows") and name != "id_rows" and name != "hash_rows"
    ):
        has = segment[name].reshape(-1)
        if len(has):
            found.append(has[random.integers(len(has), size=DRAWN)].astype(np.int64))
    if keeps.containment is not None:
        found.append(_with_elements(segment, recipe, keeps.containment, random))
    rows = np.unique(np.concatenate(found))
    if len(rows) and rows[-1] >= number:
        raise _wrong(segment, "row")
    return rows


def _weighted(lengths: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Return rows of entries drawn in proportion to their lengths."""
    ends = np.cumsum(lengths)
    if not len(ends) or not ends[-1]:
        return np.empty(0, np.int64)
    return np.searchsorted(ends, random.integers(ends[-1], size=DRAWN), side="right")


def _with_elements(segment: Segment, recipe: Recipe, modulus: int, random: np.random.Generator) -> np.ndarray:
    """Return rows of entries drawn in proportion to their elements.

    Of the shingles that are drawn, about every m-th is an element. Twice as many as are needed are enough with a
    probability above 1 - 1e-30 (Chernoff); if that is all shingles or more, all are looked at instead.
    """
    offsets = segment["set_offsets"]
    total = int(offsets[-1])
    if 2 * DRAWN * modulus >= total:
        lengths = elements_of(segment.sets_of(np.arange(segment.num_entries)), modulus, recipe, "cpu").sizes
        return _weighted(np.asarray(lengths), random)
    places = random.integers(total, size=2 * DRAWN * modulus)
    values = segment["set_values"][places]
    sizes = elements_of(Ragged(values, np.arange(len(values) + 1)), modulus, recipe, "cpu").sizes
    return np.searchsorted(offsets, places[np.flatnonzero(sizes)], side="right") - 1


# ---------------------------------------------------------------------------------------------------------- rebuilding


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
        merge_now(
            Merge(writer, 0, 1, partial(_with_decisions, EntryTools(recipe, keeps, runtime))), disturbed=disturbed
        )
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
    tools: EntryTools, segments: list[Segment], rows: list[np.ndarray]
) -> tuple[dict[str, np.ndarray], Order | None]:
    """Return the pairs and decisions of all entries of the one segment, found anew; see `merging.Again`."""
    (segment,), (everyone,) = segments, rows
    assert len(everyone) == segment.num_entries
    number, finder = len(everyone), tools.finder
    sets = Ragged(np.empty(0, np.uint64), np.zeros(number + 1, np.int64))
    if tools.keeps.sets:
        sets = Ragged(segment["set_values"], segment["set_offsets"])
    keys = finder.keys(Snapshot(segments, "cpu"), segment["founders"])
    sketch = segment["sketch"] if "sketch" in segment.arrays else None
    tokens = segment["tokens"].astype(np.int64)
    mine, _ = finder.prepared(
        SketchedEntries(np.empty((number, 2), np.uint64), tokens, keys, sets, sketch), segment.order
    )
    new = Segment.in_memory(dict(segment.arrays), segment.id_kind, segment.order)
    new.place = segment.place  # it says where entries begin whose founders are dead
    return decide_entries(Snapshot([], on_host(tools.runtime.backend), new), mine, tools), None
