"""Merging: neighbouring segments become one; what is dead vanishes.

Segments are of tiers: tier t has 8**t documents and fewer than 8**(t + 1). Where eight of the last segments of an index
are of a tier, and none of a higher one, they are merged, and what is among them of lower tiers. So of equal batches
there are at most seven of a tier, and each document is written again once for each tier that it rises.

While documents are added, a second thread does this, into a file that no manifest names. The
thread that adds puts it into the place of its parts after its next commit: one thread alone writes manifests.

Only some numbers of each document and entry, of 8 bytes, and what is looked at in a range of keys are in memory: arrays
are read from mapped files and written some values at a time, tables range of keys by range.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from neardup_gpu.kernels import gather, merge as merge_kernel
from neardup_gpu.kernels._cpu import alone

from ..engine.pieces import runs_within
from ..errors import DamagedError, OutputError
from ..methods.finding.contract import Finder
from ..methods.finding.order import MOST_COUNTED, Order, header_of
from ..recipe import Recipe
from ..store.arrays import Filling
from .columns import merge_columns, merged_columns
from .keeps import KEPT_TEXTS
from .manifest import SEGMENTS, SegmentPlace, check_newest
from .segments import AS_BEFORE, COLUMNS, REBUILD, SEGMENT, UNIT_COLUMNS, Segment, copies_of
from .sketches import stored
from .snapshot import Snapshot, order_of
from .writer import Writer, place_of

RATIO = 8
"""Segments of a tier that are merged, and how much larger those of the next tier are."""

AT_ONCE = 1 << 18
"""Entries of a table, or bytes of other arrays by eight, that are merged at a time: they fit a cache."""


def tier(documents: int) -> int:
    """The tier of a segment of this number of documents."""
    found = 0
    while documents >= RATIO:
        documents //= RATIO
        found += 1
    return found


def num_due(places: list[SegmentPlace]) -> int:
    """How many segments, from the last one back, are to be merged now: 0, or 8 or more."""
    tiers = [tier(each.documents) for each in places]
    for level in sorted(set(tiers)):
        number = 0
        while number < len(tiers) and tiers[-1 - number] <= level:
            number += 1
        if tiers[len(tiers) - number :].count(level) >= RATIO:
            return number
    return 0


Again = Callable[[list[Segment], list[np.ndarray]], tuple[dict[str, np.ndarray], Order | None]]
"""Makes arrays of a merged segment anew instead of copying them, given its parts and which rows of entries stay.

Returns them by name, and the order of shingles that the postings among them follow, if it made a new one.
"""


class Merge:
    """A merge of neighbouring segments: it is begun, written and published, each once, in this order.

    What was alive when it was begun is written, by any thread, while others read the index and commit to it. Documents
    that died until it is published are dead in the merged segment, too.

    Parameters
    ----------
    writer : Writer
    start, stop : int
        Numbers of the first of its segments and of the one after the last.
    again : callable, optional
        Makes some arrays of the merged segment anew, see `Again`. If it makes a new order of shingles, these have to be
        all segments until the merge is published.

    Raises
    ------
    OutputError
        If another process has written to the index.
    """

    def __init__(self, writer: Writer, start: int, stop: int, again: Again | None = None) -> None:
        check_newest(writer.folder, writer.manifest)
        self._writer, self._stopped = writer, threading.Event()
        self._before, self._parts = writer.segments[:start], writer.segments[start:stop]
        self._files = [each.file for each in writer.manifest.segments[start:stop]]
        self._file, self._path = writer.new_file(SEGMENTS)
        self._arrays: dict[str, np.ndarray] = {}
        self._order: Order | None = None
        self._again = again
        writer.unpublished.add(self._name)

    @property
    def _name(self) -> str:
        return f"{SEGMENTS}/{self._path.name}"

    @property
    def stop(self) -> int:
        """The number of the segment after its last one, now."""
        return 1 + [each.file for each in self._writer.manifest.segments].index(self._files[-1])

    def write(self) -> None:
        """Write the merged segment.

        Raises
        ------
        OutputError
            If it cannot be written; there is no file then.
        DamagedError
            If one of the segments is not as it was written.
        GivenUpError
            If `give_up` was called meanwhile.
        """
        try:
            for segment in self._parts:
                self._go_on()
                if segment.file is not None:
                    segment.file.verify_all()
            self._arrays, self._order = merged(self._before, self._parts, self._path, self._again, self._go_on)
        except OSError as error:
            raise OutputError(f"{self._path}: {error.strerror}; {AS_BEFORE}") from None

    def _go_on(self) -> None:
        if self._stopped.is_set():
            raise GivenUpError

    def give_up(self) -> None:
        """Let `write` end soon, and nothing be published; another one begins anew."""
        self._stopped.set()
        self._writer.unpublished.discard(self._name)

    def publish(self, **changes: Any) -> None:
        """Put the merged segment into the place of its parts, and commit; `changes` are of the manifest.

        Raises
        ------
        OutputError
            If it cannot be written; the index is as before then.
        """
        writer, start, stop = self._writer, self.stop - len(self._files), self.stop
        check_newest(writer.folder, writer.manifest)
        segments, places, folders = [*writer.segments], [*writer.manifest.segments], {SEGMENTS}
        parts, of_parts = segments[start:stop], places[start:stop]
        segments[start:stop], places[start:stop] = [], []
        if self._arrays:
            order = next((each.order for each in of_parts if each.order is not None), None)
            if self._order is not None:
                order = writer.write_order(self._order)
            place = place_of(self._arrays, self._file, of_parts[0].first, of_parts[-1].stop, self._path, order)
            segment = Segment.load(writer.folder, place, parts[0].id_kind)
            for name in ("live_documents", "live_entries"):
                pairs = zip(self._parts, parts, strict=True)
                alive = [getattr(now, name)[getattr(then, name) != 0] for then, now in pairs]
                getattr(segment, name)[:] = np.concatenate(alive)
            if not (segment.live_documents.all() and segment.live_entries.all()):
                place = writer.write_dead(segment, place, folders)
            segments.insert(start, segment)
            places.insert(start, place)
        try:
            writer.publish(segments, places, folders, **changes)
        finally:
            writer.unpublished.discard(self._name)


class GivenUpError(Exception):
    """A merge was given up while it was being written."""


def _renewing(writer: Writer, number: int) -> Again | None:
    """Return what makes postings by a new order where the last `number` segments are merged, if they should have one.

    Where all segments become one, and are few documents, these say better than the first ones did what is common.
    """
    if number < len(writer.segments) or all(each.order is None for each in writer.segments):
        return None
    if sum(len(each.arrays["set_values"]) for each in writer.segments) > MOST_COUNTED:
        return None
    recipe = Recipe.from_json(writer.manifest.recipe, f"{writer.folder}")
    return partial(_renewed, recipe.method.finder(recipe, writer.manifest.keeps))


def _renewed(
    finder: Finder, segments: list[Segment], rows: list[np.ndarray]
) -> tuple[dict[str, np.ndarray], Order | None]:
    """Return the postings of some entries by an order of their own shingles; nothing if they have none."""
    mine, order = finder.prepared(stored(segments, rows), None)
    return ({} if order is None else finder.arrays(mine)), order


def merge_last(writer: Writer, number: int) -> None:
    """Merge the last segments of an index into one, without what is dead, and commit.

    Raises
    ------
    OutputError, DamagedError
        As `merge_now` does.
    """
    merge_now(Merge(writer, len(writer.segments) - number, len(writer.segments), _renewing(writer, number)))


def merge_now(merge: Merge, **changes: Any) -> None:
    """Write a merge and publish it, with other changes of the manifest.

    Raises
    ------
    OutputError
        If it cannot be written; the index is as before then.
    DamagedError
        If one of them is not as it was written.
    """
    try:
        merge.write()
        merge.publish(**changes)
    except BaseException:
        merge.give_up()
        raise


class Merges(contextlib.AbstractContextManager["Merges"]):
    """Merges of an index that documents are added to in the block: one at a time, by a second thread.

    That thread runs kernels by itself. A merge that goes on at the end of the block is given up; whoever writes next
    does it again.

    Parameters
    ----------
    writer : Writer
    committed : callable
        Called after each commit of a merge.
    beside : bool
        Whether there may be a second thread; otherwise the thread that adds merges.
    outlives : bool, default False
        Whether the block outlives the calls that add, so that none of them waits until all is merged.
    """

    def __init__(self, writer: Writer, committed: Callable[[], None], beside: bool, outlives: bool = False) -> None:
        self._writer, self._committed, self._outlives = writer, committed, outlives
        self._pool = ThreadPoolExecutor(1, "neardup-merge") if beside else None
        self._under_way: tuple[Merge, Future[None]] | None = None

    def turn(self) -> None:
        """Publish a merge that was written, and begin the next one that is due; called after each commit.

        Merges that are due after a running one are made now, so that there are never many segments of a tier.

        Raises
        ------
        OutputError, DamagedError
            As `Merge` does.
        """
        behind = 0
        if self._under_way is not None:
            merge, written = self._under_way
            if written.done():
                self._publish()
            else:
                behind = merge.stop
        while number := num_due(self._writer.manifest.segments[behind:]):
            if self._pool is not None and self._under_way is None and _renewing(self._writer, number) is None:
                last = len(self._writer.segments)
                merge = Merge(self._writer, last - number, last)
                self._under_way = merge, self._pool.submit(_alone, merge.write)
                return
            merge_last(self._writer, number)
            self._committed()

    def finish(self) -> None:
        """Merge all that is due, and publish it, unless the block outlives the call that adds.

        Raises
        ------
        OutputError, DamagedError
            As `Merge` does.
        """
        self.turn()
        while self._under_way is not None and not self._outlives:
            self._publish()
            self.turn()

    def _publish(self) -> None:
        """Wait for the merge that is under way, and publish it."""
        assert self._under_way is not None
        merge, written = self._under_way
        written.result()
        merge.publish()
        self._under_way = None
        self._committed()

    def __exit__(self, *_: object) -> None:
        if self._under_way is not None:
            self._under_way[0].give_up()
        if self._pool is not None:
            self._pool.shutdown()


def _alone(write: Callable[[], None]) -> None:
    with alone():
        write()


def merged(
    before: list[Segment],
    segments: list[Segment],
    path: Path,
    again: Again | None,
    go_on: Callable[[], None],
) -> tuple[dict[str, np.ndarray], Order | None]:
    """Write the segment of several neighbours; returns its arrays, or nothing, and no file, if all is dead.

    Also the order of shingles that `again` made, if it was given and made one.
    `go_on` is called now and then, and may end it by an error; there is no file then.
    """
    first = segments[0].arrays
    live = [(each.live_documents, each.live_entries, each.live_units) for each in segments]
    live_documents, live_entries, live_units = map(list, zip(*live, strict=True))
    documents, entries, units = (list(map(np.flatnonzero, of)) for of in (live_documents, live_entries, live_units))
    if not any(map(len, entries)) and not any(map(len, documents)):
        return {}, None
    new_rows = _renumbered([each.num_entries for each in segments], entries)
    new_places = _renumbered([each.num_documents for each in segments], documents)
    sequence = np.concatenate([each["sequence"][some] for each, some in zip(segments, units, strict=True)])
    entry = np.concatenate([each["entry"][some] for each, some in zip(segments, units, strict=True)])
    made = {"sequence": sequence, "entry": entry, "copies": copies_of(sequence, entry)}
    if segments[0].is_divided:
        pairs_of = list(zip(segments, documents, strict=True))
        unit_counts = [np.diff(each["first_unit"])[some] for each, some in pairs_of]
        made["document"] = np.concatenate([each["document"][some] for each, some in pairs_of])
        made["first_unit"] = np.append(0, np.cumsum(np.concatenate(unit_counts)))
    anew, order = ({}, None) if again is None else again(segments, entries)
    order_id = _order_id(segments) if order is None else order.id
    stays: dict[str, list[np.ndarray]] = {
        **dict.fromkeys(UNIT_COLUMNS, live_units),
        "ids": live_documents,
        **dict.fromkeys(COLUMNS, live_entries),
    }
    if "flags" not in anew:  # else what was decided is made anew, and nothing of it is copied
        everything = Snapshot([*before, *segments], "cpu")
        pairs = [everything.live(each["pair_left"]) & everything.live(each["pair_right"]) for each in segments]
        gone = [each.live_entries[each["gone"]] != 0 for each in segments]
        stays |= dict.fromkeys(("pair_left", "pair_right", "pair_resemblance"), pairs)
        stays |= dict.fromkeys(("keeper", "keeper_resemblance"), gone)
        renamed = [new[each["gone"][some]] for each, new, some in zip(segments, new_rows, gone, strict=True)]
        made["gone"] = np.concatenate(renamed).astype(np.uint32)
    made |= anew
    stays = {name: some for name, some in stays.items() if name in first and name not in made}
    lists = {"id": documents, "set": entries, **dict.fromkeys(KEPT_TEXTS, documents)}
    lists = {name: rows for name, rows in lists.items() if f"{name}_values" in first}
    sizes = {
        name: [np.diff(each[f"{name}_offsets"])[some] for each, some in zip(segments, rows, strict=True)]
        for name, rows in lists.items()
    }
    tables = [name.removesuffix("_keys") for name in first if name.endswith("_keys") and name not in made]
    renumbered = {name: new_places if name == "id" else new_rows for name in tables}
    table_shapes = {name: _merged_shape(segments, name, renumbered[name]) for name in tables}
    shapes: dict[str, tuple[Any, tuple[int, ...]]] = {
        **{name: (array.dtype, array.shape) for name, array in made.items()},
        **{name: (first[name].dtype, (_total(some), *first[name].shape[1:])) for name, some in stays.items()},
        **{f"{name}_offsets": (np.int64, (1 + sum(map(len, each)),)) for name, each in sizes.items()},
        **{f"{name}_values": (first[f"{name}_values"].dtype, (_total(each),)) for name, each in sizes.items()},
        **merged_columns(segments, documents),
        **{f"{name}_keys": (np.uint64, shape) for name, shape in table_shapes.items()},
        **{f"{name}_rows": (np.uint32, shape) for name, shape in table_shapes.items()},
    }
    with SEGMENT.filled(path, header_of(order_id), shapes) as filling:
        for name, array in made.items():
            filling.put(name, array)
        for name, some in stays.items():
            go_on()
            _concatenate(filling, name, segments, some)
        merge_columns(segments, documents, filling)
        for name, rows in lists.items():
            _gather_ragged(filling, name, segments, rows, sizes[name], go_on)
        for name in tables:
            parts = [_table(each, name) for each in segments]
            for number in range(len(parts[0][0])):
                go_on()
                of_parts = [(keys[number], places[number]) for keys, places in parts]
                place, end = (each * table_shapes[name][-1] for each in (number, number + 1))
                for keys, places in merge_tables(of_parts, renumbered[name]):
                    if place + len(keys) <= end:
                        filling.put(f"{name}_keys", keys, place)
                        filling.put(f"{name}_rows", places, place)
                    place += len(keys)
                if place != end:  # tables of one name hold the same entries
                    raise DamagedError(f"{path.parent.parent}: its {name} tables contradict one another; {REBUILD}")
        return filling.arrays, order


def _order_id(segments: list[Segment]) -> str | None:
    """Return the id of the order that the postings of all segments follow; None where that of one is not known."""
    order = order_of(segments)
    known = all(each.order is None or each.order_id is not None for each in segments)
    return order.id if order is not None and known else None


def _table(segment: Segment, name: str) -> tuple[np.ndarray, np.ndarray]:
    """(keys, rows) of tables, each of shape (tables, rows)."""
    return np.atleast_2d(segment[f"{name}_keys"]), np.atleast_2d(segment[f"{name}_rows"])


def merge_tables(
    tables: list[tuple[np.ndarray, np.ndarray]], new_rows: list[np.ndarray]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(keys, rows) of several sorted tables merged, range of keys by range; rows whose new number is -1 vanish."""
    whole = [bool((new >= 0).all()) for new in new_rows]
    most = max(len(table[0]) for table in tables)
    longest = next(table[0] for table in tables if len(table[0]) == most)
    cuts = [np.zeros(len(tables), np.int64)]
    step = max(1, AT_ONCE // len(tables))
    for place in range(step, most, step):
        cuts.append(np.array([np.searchsorted(table[0], longest[place]) for table in tables]))
    cuts.append(np.array([len(table[0]) for table in tables]))
    for starts, stops in zip(cuts[:-1], cuts[1:], strict=True):
        some_keys, some_rows = [], []
        for (table_keys, table_rows), new, all_stay, start, stop in zip(
            tables, new_rows, whole, starts, stops, strict=True
        ):
            if all_stay:
                some_keys.append(table_keys[start:stop])
                some_rows.append(table_rows[start:stop] + np.uint32(new[0] if len(new) else 0))
                continue
            numbers = new[table_rows[start:stop]]
            there = numbers >= 0
            some_keys.append(table_keys[start:stop][there])
            some_rows.append(numbers[there].astype(np.uint32))
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum([len(each) for each in some_keys])])
        yield merge_kernel.cpu(np.concatenate(some_keys), np.concatenate(some_rows), offsets)


def _renumbered(sizes: list[int], stay: list[np.ndarray]) -> list[np.ndarray]:
    """Return the new number of each row of several segments, in order; -1 for rows that do not stay."""
    found, start = [], 0
    for size, rows in zip(sizes, stay, strict=True):
        new = np.full(size, -1, np.int64)
        new[rows] = start + np.arange(len(rows))
        found.append(new)
        start += len(rows)
    return found


def _merged_shape(segments: list[Segment], name: str, renumbered: list[np.ndarray]) -> tuple[int, ...]:
    """The shape of a merged table, from which rows without a new number have vanished."""
    rows = [_table(each, name)[1][:1] for each in segments]
    number = 0
    for new, each in zip(renumbered, rows, strict=True):
        if (new >= 0).all():
            number += each.shape[1]
            continue
        for start in range(0, each.shape[1], AT_ONCE):
            number += int(np.count_nonzero(new[each[0, start : start + AT_ONCE]] >= 0))
    return (*segments[0][f"{name}_rows"].shape[:-1], number)


def _total(numbers: list[np.ndarray]) -> int:
    return sum(int(each.sum()) for each in numbers)


def _concatenate(filling: Filling, name: str, segments: list[Segment], some: list[np.ndarray]) -> None:
    """Copy the chosen rows of an array of each segment, a part at a time; `some` has a flag for each row."""
    start = 0
    for segment, chosen in zip(segments, some, strict=True):
        array, rows = segment[name], np.flatnonzero(chosen)
        step = max(1, AT_ONCE // max(1, array[:1].size))
        for begin in range(0, len(rows), step):
            places = slice(begin, begin + step)
            part = array[places] if len(rows) == len(array) else array[rows[places]]
            filling.put(name, part, start)
            start += part.size


def _gather_ragged(
    filling: Filling,
    name: str,
    segments: list[Segment],
    some: list[np.ndarray],
    sizes: list[np.ndarray],
    go_on: Callable[[], None],
) -> None:
    """Copy some ragged rows of each segment, whose sizes are given, a part at a time."""
    number, done = 0, 0
    for segment, rows, theirs in zip(segments, some, sizes, strict=True):
        ends = np.cumsum(theirs)
        filling.put(f"{name}_offsets", done + ends, number + 1)
        number += len(rows)
        values, offsets = segment[f"{name}_values"], segment[f"{name}_offsets"]
        for start, stop in runs_within(np.append(0, ends), AT_ONCE):
            go_on()
            if len(rows) == len(offsets) - 1:
                part = values[offsets[start] : offsets[stop]]
            else:
                part, _ = gather.cpu(values, offsets, rows[start:stop])
            filling.put(f"{name}_values", part, done)
            done += len(part)
