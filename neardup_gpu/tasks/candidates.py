"""The stages that find candidates: of a method that sketches, by its keys; of one that does not, by rare shingles.

    keys         of a slice: what the tables of the method hold of its representatives
    merge        of a range of counters of shingles: those of all slices together
    postings     of some slices: the prefixes of their representatives, and which shingles they mark; `merge_marks`
    containers   of some slices, by a directed measure: the further shingles that are marked
    collide      of some parts of the tables, or of a range of shingles: candidates, and crowded documents

Whatever finds them, candidates are pairs of ranks by the range of the right one, in files called "found", and the ranks
of crowded documents are in files called "crowded".
"""

from __future__ import annotations

import collections
import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ..store.exchange import num_rows, read_arrays
from . import colliding, joining
from .columns import load, ranges_of, rows_of, save, save_by_ranges, schema_of
from .copies import stand_alone
from .layout import Layout
from .pairs import load_keys, no_keys
from .sketching import ROWS, shingles_of
from .work import WAITING_BESIDE, Files, file_name

if TYPE_CHECKING:
    from ..data import Ragged
    from ..documents.slices import Slice
    from ..engine.contract import Runtime

FOUND = pa.schema([("left", pa.int64()), ("right", pa.int64()), ("needed", pa.uint16())])
CROWDED = pa.schema([("rank", pa.int64())])
POSTED = pa.schema(
    [
        ("shingle", pa.uint64()),
        ("rank", pa.int64()),
        ("place", pa.uint32()),
        ("size", pa.int32()),
        ("bits", pa.uint64()),
    ]
)
COUNTERS = pa.schema([("counters", pa.uint8())])
BEYOND = pa.schema([("beyond", pa.uint32())])
MARKS = pa.schema([("marks", pa.uint8())])


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
        for part in range(*parts):

            def read(part: int = part) -> Iterator[colliding.Block]:
                for columns in rows_of(files.place, names, part, schema.names):
                    yield colliding.from_columns(dict(zip(schema.names, columns, strict=True)))

            for found in colliding.collide_stream(
                buckets,
                part // per_table,
                read,
                num_rows(files.place, names, part),
                most_entries=shared.task_memory // 2 // colliding.ENTRY_BYTES,
                num_known=layout.num_known,
                most_bytes=shared.task_memory // 8,
                backend=runtime.backend,
            ):
                candidates.add(found.left, found.right, found.needed, found.crowded)
                candidates.count(large_buckets=found.large_buckets, uncompared_pairs=found.uncompared_pairs)
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
        (
            read_arrays(files.place, [one], part, COUNTERS)["counters"],
            read_arrays(files.place, [other], part, BEYOND)["beyond"],
        )
        for one, other in zip(counters, beyond, strict=True)
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
    names = [[file_name("merge", part, what) for part in range(ranges_of(files.shared.partitions))] for what in _TABLE]
    counters, beyond = (
        read_arrays(files.place, of, 0, schema)[what]
        for of, what, schema in zip(names, _TABLE, (COUNTERS, BEYOND), strict=True)
    )
    return counters, beyond


_TABLE = ("counters", "beyond")


def postings(files: Files, first: int, slices: list[Slice], copies: list[str], layout: Layout) -> dict[str, Any]:
    """Write the postings of the representatives of some slices, by ranges of shingles; and, if it counts, their marks.

    Memory: the table of counters, and a batch of documents.

    Parameters
    ----------
    first : int
        The number of the first slice. The slices follow one another.
    slices : list of Slice
    copies : list of str
        The files of copies by slices.
    layout : Layout
    """
    shared = files.shared
    measure, threshold = shared.recipe.method.measure, shared.recipe.threshold
    assert threshold is not None
    table, number = _table(files), 0
    with (
        files.exchange("postings", POSTED, shared.partitions, WAITING_BESIDE) as writer,
        shared.start() as runtime,
    ):

        def written() -> Iterator[joining.Posted]:
            nonlocal number
            for shingles, ranks in _of_slices(files, first, slices, layout, copies, runtime):
                made = joining.postings(shingles, ranks, table, measure, threshold, runtime, shared.partitions)
                range_of, posted = made
                writer.add(range_of, posted._asdict())
                number += len(posted.shingle)
                yield posted

        if measure.directed:
            save_by_ranges(files, "marks", joining.mark(written(), table, runtime))
        else:
            collections.deque(written(), maxlen=0)
    return {"postings": number}


def containers(files: Files, first: int, slices: list[Slice], copies: list[str], layout: Layout) -> dict[str, Any]:
    """Write the further postings of the representatives of some slices, by a directed measure; as `postings`."""
    shared = files.shared
    threshold = shared.recipe.threshold
    assert threshold is not None
    table, number = _table(files), 0
    names = [file_name("marks", part, "marks") for part in range(ranges_of(shared.partitions))]
    marks = read_arrays(files.place, names, 0, MARKS)["marks"]
    with (
        files.exchange("postings", POSTED, shared.partitions, WAITING_BESIDE) as writer,
        shared.start() as runtime,
    ):
        for sets, ranks in _of_slices(files, first, slices, layout, copies, runtime):
            range_of, posted = joining.containing(sets, ranks, table, marks, threshold, runtime, shared.partitions)
            writer.add(range_of, posted._asdict())
            number += len(posted.shingle)
    return {"postings": number}


def collide_shingles(files: Files, names: list[str], layout: Layout) -> dict[str, Any]:
    """Find the candidates of a range of shingles."""
    shared = files.shared
    method, threshold = shared.recipe.method, shared.recipe.threshold
    assert threshold is not None

    def read() -> Iterator[joining.Posted]:
        for columns in rows_of(files.place, names, files.number, joining.Posted._fields):
            yield joining.Posted(*columns)

    with _CandidateFiles(files, layout) as candidates, shared.start() as runtime:
        most = shared.task_memory // 4
        found_of_range = joining.collide_range(
            read,
            method.measure,
            threshold,
            joining.Sides(layout.num_known, method.direction, shared.recipe.only_against),
            runtime,
            most,
        )
        for found in found_of_range:
            candidates.add(found.left, found.right, None, found.crowded)
            candidates.count_looks(found.looks)
    return candidates.facts


class _CandidateFiles:
    """The files of candidates and of crowded documents."""

    def __init__(self, files: Files, layout: Layout) -> None:
        self._layout, self._stack, self._files = layout, contextlib.ExitStack(), files
        self.facts: dict[str, Any] = {
            "found": 0,
            "crowded": 0,
            "looks": [0] * 4,
            "large_buckets": 0,
            "uncompared_pairs": 0,
        }

    def __enter__(self) -> _CandidateFiles:
        given = ("found", FOUND, self._layout.partitions), ("crowded", CROWDED, 1)
        made = [self._files.exchange(*each, WAITING_BESIDE) for each in given]
        self._found, self._crowded = map(self._stack.enter_context, made)
        return self

    def __exit__(self, *error: Any) -> Any:
        return self._stack.__exit__(*error)

    def add(self, left: np.ndarray, right: np.ndarray, needed: np.ndarray | None, crowded: np.ndarray) -> None:
        needed = np.ones(len(left), np.uint16) if needed is None else needed
        self._found.add(self._layout.range_of(right), {"left": left, "right": right, "needed": needed})
        crowded = np.unique(crowded)
        self._crowded.add_to(0, {"rank": crowded})
        self.facts["found"] += len(left)
        self.facts["crowded"] += len(crowded)

    def count_looks(self, looks: np.ndarray) -> None:
        """Add what was looked at, as in `joining.Met`."""
        self.facts["looks"] = (np.array(self.facts["looks"]) + looks).tolist()

    def count(self, **counts: int) -> None:
        for name, number in counts.items():
            self.facts[name] += number
