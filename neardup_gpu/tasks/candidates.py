"""The stages that find candidates: of a method that sketches, by its keys; of one that does not, by rare shingles.

    keys         of a slice: what the tables of the method hold of its representatives
    merge        of a range of counters of shingles: those of all slices together
    postings     of some slices: the prefixes of their representatives, and which shingles they mark; `merge_marks`
    containers   `postings` of some slices again, by a directed measure: the further shingles that are marked
    collide      of some parts of the tables, or of a range of shingles: candidates, and crowded documents

Whatever finds them, candidates are pairs of ranks by the range of the right one, in files called "found", and the ranks
of crowded documents are in files called "crowded".
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ..stages.joining import MOST_MARK_BITS, mark, no_marks
from ..store.exchange import num_rows, read_arrays
from . import colliding, joining
from .columns import load, ranges_of, rows_of, save, save_by_ranges, schema_of
from .copies import stand_alone
from .layout import Layout
from .pairs import load_keys, no_keys
from .sizes import Counts, Exchange, Shape
from .sketching import COUNTED, ROWS, shingles_of, written_tables
from .work import WAITING_BESIDE, Files, file_name

if TYPE_CHECKING:
    from ..data import Ragged
    from ..documents.slices import Slice
    from ..engine.contract import Runtime

FOUND = pa.schema([("left", pa.int64()), ("right", pa.int64()), ("needed", pa.uint16())])
CROWDED = pa.schema([("rank", pa.int64())])
POSTED = pa.schema(dict(zip(joining.Posted._fields, map(pa.from_numpy_dtype, joining.POSTED_TYPES), strict=True)))
MARKS = pa.schema([("marks", pa.uint8())])


def written(c: Counts, shape: Shape) -> list[Exchange]:
    """Return the sizes of the files that the stages write."""
    slices, ranges, found = shape.slices, shape.partitions, []
    if shape.tables:
        parts = shape.tables * shape.table_parts(c).per_table
        given = c.entries, shape.entry_bytes * c.entries, shape.entry_columns, slices, parts
        found.append(Exchange("keys", "entries", *given))
    elif shape.posts:
        tasks, parts, beside = shape.posting_tasks(c), ranges_of(ranges), WAITING_BESIDE
        found += written_tables("merge", c.counters, parts)
        found.append(Exchange.of("postings postings", POSTED, c.postings, tasks, ranges, beside))
        if shape.directed:
            marks = min(c.counters, 1 << MOST_MARK_BITS)
            found.append(Exchange.of("postings marks", MARKS, tasks * marks, tasks, parts))
            found.append(Exchange.of("marks marks", MARKS, marks, parts))
            found.append(Exchange.of("containers postings", POSTED, c.containers, tasks, ranges, beside))
    if not shape.only_equal:
        finders = shape.collide_tasks(c)
        found.append(Exchange.of("collide found", FOUND, c.found, finders, ranges, WAITING_BESIDE))
        found.append(Exchange.of("collide crowded", CROWDED, c.crowded, finders, share=WAITING_BESIDE))
    return found


def representatives(files: Files, number: int, copies: list[str]) -> np.ndarray:
    """Rows of a slice that have tokens and that no other document stands for: int64."""
    num_tokens = load(files.place, file_name("sketch", number, "rows"), ROWS)["num_tokens"]
    present = num_tokens >= files.shared.recipe.unit.min_words
    return np.flatnonzero(stand_alone(files, number, len(num_tokens), copies) & present)


# ------------------------------------------------------------------------------------------------------- by their keys


def keys(files: Files, copies: list[str], layout: Layout, num_representatives: int, per_table: int) -> None:
    """Write what the tables of the method hold of the representatives of a slice."""
    recipe = files.shared.recipe
    rows = representatives(files, files.number, copies)
    ranks, found = layout.ranks_of(files, files.number)[rows], load_keys(files, files.number)[rows]
    given = colliding.exchanged(recipe.method, found, ranks, num_representatives, per_table, recipe.seed)
    number = per_table * len(recipe.method.buckets(num_representatives).masks)
    schema = schema_of(colliding.to_columns(_nothing(recipe, found, num_representatives), ranks[:0]))
    with files.exchange("entries", schema, number) as writer:
        for partition, columns in given:
            writer.add(partition, columns)


def _nothing(recipe: Any, keys: np.ndarray, num_representatives: int) -> Any:
    """Entries of no rows, which have the columns of all."""
    return next(iter(recipe.method.entries(keys[:0], num_representatives, seed=recipe.seed)))


def collide_keys(
    files: Files, names: list[str], parts: tuple[int, int], layout: Layout, num_representatives: int, per_table: int
) -> dict[str, Any]:
    """Find the candidates in some parts of the tables; `parts` is the first one and the one
    after the last."""
    shared = files.shared
    recipe = shared.recipe
    buckets = recipe.method.buckets(num_representatives)
    nothing = _nothing(recipe, no_keys(files), num_representatives)
    schema = schema_of(colliding.to_columns(nothing, np.empty(0, np.int64)))
    with _CandidateFiles(files, layout) as candidates, shared.start() as runtime:
        most_entries = shared.task_memory // 2 // colliding.ENTRY_BYTES
        how = layout.num_known, shared.task_memory // 8, runtime.backend, most_entries
        for part in range(*parts):

            def read(part: int = part) -> Iterator[colliding.Block]:
                for columns in rows_of(files.place, names, part, schema.names):
                    yield colliding.from_columns(dict(zip(schema.names, columns, strict=True)))

            collisions = colliding.TableCollisions(buckets, part // per_table, *how)
            for found in collisions.found(read, num_rows(files.place, names, part)):
                candidates.add(found)
    return candidates.facts


# --------------------------------------------------------------------------------------------------- by rare shingles


def _of_slices(
    files: Files, first: int, slices: list[Slice], layout: Layout, copies: list[str], runtime: Runtime
) -> Iterator[tuple[Ragged, np.ndarray]]:
    """(what waits of them, their ranks) of the representatives of some slices, some at a time."""
    for number, slice in enumerate(slices, first):
        ranks = layout.ranks_of(files, number)
        rows = representatives(files, number, copies)
        for shingles, some in shingles_of(files, number, slice, rows, runtime):
            yield shingles, ranks[some]


def merge(files: Files, counters: list[str], beyond: list[str], slots: list[str], bits: int) -> None:
    """Add a range of the tables of all slices that have one, and count what the others have in it.

    Parameters
    ----------
    counters, beyond : lists of str
        The files of the slices with tables.
    slots : list of str
        Those of the others.
    bits : int
        Of the whole table.
    """
    part, width = files.number, (1 << bits) // ranges_of(files.shared.partitions)
    tables = (
        _read_table(files, part, counters=[one], beyond=[other]) for one, other in zip(counters, beyond, strict=True)
    )
    table = joining.merged(tables) if counters else joining.no_counters(width)
    numbers = (some - np.uint32(part * width) for (some,) in rows_of(files.place, slots, part, ["slots"]))
    found, over = joining.with_slots(table, numbers, files.shared.engine.resolve())
    save(files, "counters", {"counters": found})
    save(files, "beyond", {"beyond": over})


def merge_marks(files: Files, marks: list[str]) -> None:
    """Join a range of the marks of all."""
    parts = (read_arrays(files.place, [name], files.number, MARKS)["marks"] for name in marks)
    save(files, "marks", {"marks": joining.merged_marks(parts)})


def _table(files: Files) -> joining.Table:
    """The table of all counters."""
    parts = range(ranges_of(files.shared.partitions))
    return _read_table(files, 0, **{what: [file_name("merge", part, what) for part in parts] for what in COUNTED})


def _read_table(files: Files, part: int, **names: list[str]) -> joining.Table:
    """Read a table of counters, or a part of one, from the files of both of its arrays."""
    counters, beyond = (read_arrays(files.place, names[what], part, schema)[what] for what, schema in COUNTED.items())
    return counters, beyond


def postings(
    files: Files, first: int, slices: list[Slice], copies: list[str], layout: Layout, marked: Sequence[str] = ()
) -> dict[str, Any]:
    """Write the postings of the representatives of some slices, by ranges of shingles.

    By a directed measure, write their marks as well; or, if all marks are given, further postings; see `postings_of`.
    Memory: the table of counters, marks, and a batch of documents.

    Parameters
    ----------
    first : int
        The number of the first slice. The slices follow one another.
    slices : list of Slice
    copies : list of str
        The files of copies by slices.
    layout : Layout
    marked : sequence of str
        The files of all marks.
    """
    shared, table = files.shared, _table(files)
    marks = read_arrays(files.place, marked, 0, MARKS)["marks"] if marked else None
    with files.exchange("postings", POSTED, shared.partitions, WAITING_BESIDE) as writer, shared.start() as runtime:
        join = _joiner(files, runtime)
        new = runtime.put(no_marks(table[0])) if join.measure.directed and marks is None else None
        for shingles, ranks in _of_slices(files, first, slices, layout, copies, runtime):
            range_of, posted = joining.postings(shingles, ranks, table, join, shared.partitions, marks)
            writer.add(range_of, posted._asdict())
            if new is not None:
                runtime.run(mark, new, runtime.put(posted.shingle))
        if new is not None:
            save_by_ranges(files, "marks", runtime.fetch(new))
    return {"postings": writer.close().num_rows}


def _joiner(files: Files, runtime: Runtime) -> joining.Joiner:
    """Return the join that the recipe asks for."""
    recipe = files.shared.recipe
    assert recipe.threshold is not None
    return joining.Joiner(recipe.method.measure, recipe.threshold, runtime)


def collide_shingles(files: Files, names: list[str], layout: Layout) -> dict[str, Any]:
    """Find the candidates of a range of shingles."""
    shared = files.shared
    sides = joining.Sides(layout.num_known, shared.recipe.method.direction, shared.recipe.only_against)

    def read() -> Iterator[joining.Posted]:
        for columns in rows_of(files.place, names, files.number, joining.Posted._fields):
            yield joining.Posted(*columns)

    with _CandidateFiles(files, layout) as candidates, shared.start() as runtime:
        for found in joining.collide_range(read, _joiner(files, runtime), sides, shared.task_memory // 4):
            candidates.add(found)
    return candidates.facts


class _CandidateFiles(contextlib.ExitStack):
    """The files of candidates and of crowded documents."""

    def __init__(self, files: Files, layout: Layout) -> None:
        super().__init__()
        self._layout = layout
        self._found = self.enter_context(files.exchange("found", FOUND, layout.partitions, WAITING_BESIDE))
        self._crowded = self.enter_context(files.exchange("crowded", CROWDED, 1, WAITING_BESIDE))
        counted = ("found", "crowded", "large_buckets", "uncompared_pairs")
        self.facts: dict[str, Any] = {"looks": [0] * 4, **dict.fromkeys(counted, 0)}

    def add(self, some: colliding.FoundPairs) -> None:
        """Write some pairs and crowded documents, and count them and what was looked at."""
        needed = np.ones(len(some.left), np.uint16) if some.needed is None else some.needed
        self._found.add(self._layout.range_of(some.right), {"left": some.left, "right": some.right, "needed": needed})
        crowded = np.unique(some.crowded)
        self._crowded.add_to(0, {"rank": crowded})
        self.facts["found"] += len(some.left)
        self.facts["crowded"] += len(crowded)
        self.facts["large_buckets"] += some.large_buckets
        self.facts["uncompared_pairs"] += some.uncompared_pairs
        self.facts["looks"] = (np.array(self.facts["looks"]) + some.looks).tolist()
