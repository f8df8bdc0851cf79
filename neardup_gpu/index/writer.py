"""Writing: a batch of documents as a segment, deaths, and merges; each a commit."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup_gpu.kernels import identical

from ..data import arrow
from ..documents.units import joined_places
from ..errors import InputError, OutputError, ParameterError, ResourceError
from ..methods.finding.by_segment import sorted_table
from ..methods.finding.contract import SketchedEntries
from ..methods.finding.order import ORDER, Order, header_of
from ..stages.conditions import WITHIN
from ..store.folder import Folder
from ..store.ids import Ids
from .candidates import join
from .manifest import (
    DELETED,
    ID_TYPES,
    SEGMENTS,
    Manifest,
    SegmentPlace,
    check_newest,
    clean,
    commit,
    first_free_file,
    is_made,
    next_number,
)
from .segments import (
    AS_BEFORE,
    KEPT,
    OWNER,
    SEGMENT,
    UNIT_COLUMNS,
    Segment,
    copies_of,
    documents_in,
    words_of,
    write,
)
from .sketches import EntryTools, element_tables, stored
from .snapshot import Snapshot, hashes_of, order_of
from .uncommon import check_decides
from .validity import MOST_NUMBER

if TYPE_CHECKING:
    from ..documents.units import Places
    from ..methods.finding.contract import Finder
    from ..recipe import Recipe
    from .locking import WriterLock

MOST_ENTRIES = 2**32 - 2
"""Most documents of a segment: rows are 32 bits."""

SKIPPED_FILES = 10_000
"""Numbers of files that a writer with a lease skips: more than another one uses before it finds that it lost its."""

CLEANED_EVERY = 60.0
"""Seconds between two removals of old files where these stay for a while, as there are no locks."""

TOO_LARGE = "ids: an index takes integers below 2**63; give larger ones as strings"


class Decided(NamedTuple):
    """The decisions about documents that were added, from that time.

    kept : array of bool
    keeper : array of int64
        The entry that is kept for each.
    resemblance : array of float64
        To the keeper; 1 for copies of it; NaN where nothing is verified.
    entry : array of int64
        What each is a member of.
    """

    kept: np.ndarray
    keeper: np.ndarray
    resemblance: np.ndarray
    entry: np.ndarray


class Death(NamedTuple):
    """The dead documents and entries after some documents have been taken away.

    segments : list of Segment
        All, those that differ as copies.
    touched : list of int
        The numbers of segments that differ.
    disturbed : bool
        Whether an entry died, or lost its first member.
    documents : int
        How many died.
    """

    segments: list[Segment]
    touched: list[int]
    disturbed: bool
    documents: int


def kind_of(ids: pa.Array) -> str:
    """The kind of ids: "integer", "string" or "binary".

    Raises
    ------
    InputError
        If they are something else.
    """
    try:
        return Ids.of(ids[:0]).kind
    except ParameterError:
        raise InputError(f"ids: an index takes integers, strings or bytes, got {ids.type}") from None


def checked_ids(ids: pa.Array, manifest: Manifest) -> pa.Array:
    """Ids in the type in which an index keeps them.

    Raises
    ------
    InputError
        If they are of another type than those that are there, or not below 2**63.
    """
    kind = kind_of(ids)
    if manifest.id_kind not in (None, kind):
        raise InputError(f"ids: the index has ids of type {manifest.id_kind}, these are of type {kind}; convert them")
    try:
        return ids.cast(ID_TYPES[kind])
    except pa.ArrowInvalid:
        raise InputError(TOO_LARGE) from None


class Numbered(NamedTuple):
    """The numbers of new units, and where the units are.

    sequence : array of int64, shape (units,)
    stop : int
        Greater than all numbers of the units and of their documents.
    arrays : dict of str to array
        Further arrays of the segment, if units are parts of documents; see the head of `segments.py`.
    owner : array of int64, shape (units,)
        The number of the document of each unit.
    """

    sequence: np.ndarray
    stop: int
    arrays: dict[str, np.ndarray]
    owner: np.ndarray


def numbered(first: int, num_documents: int, places: Places | None) -> Numbered:
    """Number new units from `first` on. A document has the number of its first unit, or one of its own without units.

    Parameters
    ----------
    first, num_documents : int
    places : Places or None
        Where units are, if they are parts of documents.
    """
    if places is None:
        sequence = first + np.arange(num_documents, dtype=np.int64)
        return Numbered(sequence, first + num_documents, {}, sequence)
    sizes = np.bincount(places.owner, minlength=num_documents)
    first_unit = np.append(0, np.cumsum(sizes))
    ends = first + np.cumsum(np.maximum(1, sizes))
    document = ends - np.maximum(1, sizes)
    owner = document[places.owner]
    arrays = {"document": document, "first_unit": first_unit}
    arrays |= {name: getattr(places, name).astype(kind, copy=False) for name, kind in UNIT_COLUMNS.items()}
    stop = int(ends[-1]) if num_documents else first
    return Numbered(owner + np.arange(len(owner)) - first_unit[places.owner], stop, arrays, owner)


def segment_of(
    snapshot: Snapshot, ids: pa.Array, units: Numbered, sketches: SketchedEntries, tools: EntryTools
) -> tuple[Segment, Decided]:
    """Make the segment of some new documents, given by their ids and units, in memory."""
    recipe, keeps, finder = tools.recipe, tools.keeps, tools.finder
    number, sequence = len(ids), units.sequence
    entry = _entries(snapshot, sequence, sketches)
    founding = np.flatnonzero(entry == sequence)
    mine = sketches.take(founding)
    assert mine.are_written is not None
    some = np.flatnonzero(mine.are_written)
    mine, order = finder.prepared(mine, snapshot.order)
    kind = kind_of(ids)
    named = Ids.of(ids)
    hash_keys, hash_rows = sorted_table(mine.hashes[some, 0], some)
    id_keys, id_rows = sorted_table(hashes_of(ids, kind), np.arange(number))
    arrays = {
        "sequence": sequence,
        "entry": entry,
        "copies": copies_of(sequence, entry),
        "id_keys": id_keys,
        "id_rows": id_rows,
        **named.arrays,
        "founders": sequence[founding],
        "tokens": mine.tokens.astype(np.uint32),
        "hash_keys": hash_keys,
        "hash_rows": hash_rows,
        "hash_second": np.ascontiguousarray(mine.hashes[:, 1]),
        **finder.arrays(mine),
        **({} if keeps.containment is None else element_tables(mine.sets, keeps.containment, recipe, snapshot.backend)),
        **({"set_offsets": mine.sets.offsets, "set_values": mine.sets.values} if keeps.sets else {}),
        **({} if mine.sketch is None else {"sketch": mine.sketch}),
        **({} if mine.words is None else {WITHIN: mine.words}),
        **({**units.arrays, OWNER: units.owner[founding]} if units.arrays else {}),
    }
    new = Segment.in_memory(arrays, kind, order)
    grown = Snapshot(snapshot.segments, snapshot.backend, new, snapshot.marks)
    decide_entries(grown, mine, tools)
    return new, decided(grown, sequence, entry, units.owner if units.arrays and not recipe.unit.inside else None)


def decide_entries(snapshot: Snapshot, sketches: SketchedEntries, tools: EntryTools) -> dict[str, np.ndarray]:
    """Decide of new entries, which are the last segment of a snapshot, in memory; put what was found into its arrays.

    Returns
    -------
    dict of str to array
        These arrays: flags, pairs, and the keepers of what is not kept.
    """
    new, recipe = snapshot.segments[-1], tools.recipe
    found = join(snapshot, sketches, tools)
    new.arrays["flags"] = found.flags
    listed = slice(None if recipe.verifies else 0)  # `decide` finds unverified pairs anew
    keeper, value = _keepers(snapshot, new["founders"], found.left, found.right, found.resemblance, recipe)
    gone = np.flatnonzero(found.flags & KEPT == 0)
    if not recipe.verifies:
        value[gone] = np.nan
    arrays = {
        "flags": found.flags,
        "pair_left": found.left[listed],
        "pair_right": found.right[listed],
        "pair_resemblance": words_of(found.resemblance[listed]),
        "gone": gone.astype(np.uint32),
        "keeper": keeper[gone],
        "keeper_resemblance": words_of(value[gone]),
    }
    new.arrays |= arrays
    return arrays


def following(new: Segment, order: Order | None, finder: Finder) -> Segment:
    """Return a segment in memory with postings that follow an order: its tables are made again if they follow another.

    That happens where a merge has chosen another order since the segment was made. What was found for its entries
    meanwhile stays right: they and all others were compared by one order then.
    """
    if order is None or new.order is None or new.order.id == order.id:
        return new
    mine, _ = finder.prepared(stored([new], [np.arange(new.num_entries)]), order)
    return Segment.in_memory({**new.arrays, **finder.arrays(mine)}, new.id_kind, order)


def _entries(snapshot: Snapshot, sequence: np.ndarray, sketches: SketchedEntries) -> np.ndarray:
    """Return the entry of each new unit: that of a live one with the same words, else of the first new one.

    Documents without words have the entry of one with the same text; blank ones, and parts with too few words, have an
    entry each.
    """
    assert sketches.are_written is not None
    entry = sequence.copy()
    some = np.flatnonzero(sketches.are_written)
    hashes = np.ascontiguousarray(sketches.hashes[some])
    entry[some] = sequence[some[identical.cpu(hashes)]]
    representatives = np.flatnonzero((entry == sequence) & sketches.are_written)
    there = snapshot.same_words(np.ascontiguousarray(sketches.hashes[representatives]))
    known = np.flatnonzero(there >= 0)
    names = sequence.copy()
    names[representatives[known]] = there[known]
    return names[np.searchsorted(sequence, entry)]


def _keepers(
    snapshot: Snapshot,
    founders: np.ndarray,
    left: np.ndarray,
    right: np.ndarray,
    values: np.ndarray,
    recipe: Recipe,
) -> tuple[np.ndarray, np.ndarray]:
    """For each new entry, of its first `max_partners` kept partners the one that it resembles most, and how much."""
    keeper, value = founders.copy(), np.ones(len(founders))
    some = np.flatnonzero(snapshot.kept(left))
    order = some[np.lexsort((left[some], right[some]))]
    row = np.searchsorted(founders, right[order])
    begins = np.searchsorted(row, row)
    most = recipe.max_partners
    if most is not None:
        order, row = order[np.arange(len(row)) - begins < most], row[np.arange(len(row)) - begins < most]
    best = order[np.lexsort((left[order], -values[order], row))]
    rows, first = np.unique(np.searchsorted(founders, right[best]), return_index=True)
    best = best[first]
    gone = snapshot.segments[-1]["flags"][rows] & KEPT == 0
    keeper[rows[gone]], value[rows[gone]] = left[best[gone]], values[best[gone]]
    return keeper, value


def decided(snapshot: Snapshot, sequence: np.ndarray, entry: np.ndarray, owner: np.ndarray | None = None) -> Decided:
    """Return the decisions about live units when they were added.

    `owner` has the document of each unit, if equal parts of one document are all kept.
    """
    kept = entry == sequence
    kept[kept] = snapshot.kept(entry[kept])
    rest = np.flatnonzero(~kept)
    keeper, value = snapshot.keepers(entry[rest])
    if owner is not None:
        kept[rest] = (keeper == entry[rest]) & (snapshot.owners(keeper) == owner[rest])
    dead = ~snapshot.live(keeper)  # removed since: what is left of the same words stands for it
    keeper[dead], value[dead] = entry[rest[dead]], 1.0
    keepers, values = entry.copy(), np.ones(len(entry))
    keepers[rest], values[rest] = keeper, value
    return Decided(kept, keepers, values, entry)


class Writer:
    """The one writer of an index; each method ends in a commit.

    Parameters
    ----------
    folder : path
    manifest : Manifest
    segments : list of Segment
        Of the manifest.
    lock : WriterLock
        The right to write.

    Attributes
    ----------
    unpublished : set of str
        Paths, below the folder, of files that are being written, and that no manifest names yet.
    """

    def __init__(self, folder: Path, manifest: Manifest, segments: list[Segment], lock: WriterLock) -> None:
        self.folder, self.manifest, self.segments, self._lock = folder, manifest, segments, lock
        self.unpublished: set[str] = set()
        self._next_file = max(manifest.next_file, first_free_file(folder))
        self._cleaned = -CLEANED_EVERY
        if lock.is_lease:
            self._next_file += SKIPPED_FILES
            self.publish(segments, manifest.segments, set())  # who lost the lease finds the number taken

    def new_file(self, inner: str) -> tuple[int, Path]:
        """The number and the path of a file that is not there yet, in one of the index's folders.

        Where locks are of no use, another process may have written one of the next number.
        """
        place = Folder(self.folder, inner)
        while place.has(f"{self._next_file:08}"):
            self._next_file += 1
        self._next_file += 1
        return self._next_file - 1, place.path_of(f"{self._next_file - 1:08}")

    def clean(self) -> None:
        """Remove what the last commit has made superfluous, and what earlier writers left.

        Raises
        ------
        OutputError
            If that cannot be done, or this process may no longer write.
        """
        if self._lock.is_lease and time.monotonic() - self._cleaned < CLEANED_EVERY:
            return
        self._lock.check()
        self._cleaned = time.monotonic()
        try:
            below = self._next_file if self._lock.is_lease else MOST_NUMBER
            clean(self.folder, self.manifest, self.unpublished, below)
        except OSError as error:
            raise OutputError(f"{self.folder}: {error.strerror}; what was committed is safe") from None

    def change(self, new: Segment | None = None, death: Death | None = None, **changes: Any) -> None:
        """Commit a new segment, and a death that was prepared by `buried`.

        Raises
        ------
        OutputError
            If something cannot be written; the index is as before then.
        """
        manifest, segments = self.manifest, self.segments
        self._lock.check()
        for segment in self.segments:
            segment.check_size()
        check_newest(self.folder, manifest)
        places = list(manifest.segments)
        folders = {SEGMENTS}
        if death is not None and death.touched:
            segments = death.segments
            changes["disturbed"] = manifest.disturbed or death.disturbed
            for number in death.touched:
                places[number] = self.write_dead(segments[number], places[number], folders)
        if new is not None:
            order = next((each.order for each in places if each.order is not None), None)
            followed = order_of([*segments, new])  # refuses a new segment whose postings follow another order
            if order is None and new.order is not None:
                order = self.write_order(new.order)
            file, path = self.new_file(SEGMENTS)
            write(SEGMENT, path, header_of(None if followed is None else followed.id), new.arrays)
            place = place_of(new.arrays, file, manifest.next_sequence, changes["next_sequence"], path, order)
            segments = [*segments, Segment.load(self.folder, place, new.id_kind)]
            places.append(place)
        self.publish(segments, places, folders, **changes)

    def write_order(self, order: Order) -> int:
        """Write the file of an order; returns its number."""
        number, path = self.new_file(SEGMENTS)
        write(ORDER, path, header_of(order.id), order.arrays)
        return number

    def write_dead(self, segment: Segment, place: SegmentPlace, folders: set[str]) -> SegmentPlace:
        """Write which rows of a segment are dead; returns its place, and adds the folder that is to be synced."""
        file, path = self.new_file(DELETED)
        segment.write_dead(path)
        folders.add(DELETED)
        documents, entries = (
            int(np.count_nonzero(live == 0)) for live in (segment.live_documents, segment.live_entries)
        )
        return replace(place, deleted=file, dead_documents=documents, dead_entries=entries)

    def publish(self, segments: list[Segment], places: list[SegmentPlace], folders: set[str], **changes: Any) -> None:
        """Make these segments the index; their files are written and synced.

        Raises
        ------
        OutputError
            If the manifest cannot be written, or another process has written one or may write now.
        """
        before, number = self.manifest.number, next_number(self.folder, self.manifest)
        manifest = replace(self.manifest, number=number, segments=places, next_file=self._next_file, **changes)
        try:
            for folder in folders:
                Folder(self.folder, folder).sync()
            self._lock.check()
            commit(self.folder, manifest, before)
        except OutputError:  # the manifest of this number is another process's
            raise
        except BaseException as error:
            # It may be there although the folder could not be synced after it.
            there = is_made(self.folder, manifest.number)
            if there:
                self._take(manifest, segments)
            if isinstance(error, OSError):
                how = "the commit is there, but may not outlast a loss of power" if there else AS_BEFORE
                raise OutputError(f"{self.folder}: {error.strerror}; {how}") from None
            raise
        self._take(manifest, segments)

    def _take(self, manifest: Manifest, segments: list[Segment]) -> None:
        for segment, place in zip(segments, manifest.segments, strict=True):
            segment.place = place
        self.manifest, self.segments = manifest, segments


def place_of(
    arrays: dict[str, np.ndarray], file: int, first: int, stop: int, path: Path, order: int | None
) -> SegmentPlace:
    """The place of a segment that was written."""
    documents, entries = len(documents_in(arrays)), len(arrays["founders"])
    if max(entries, len(arrays["sequence"])) > MOST_ENTRIES:
        raise ResourceError(f"{entries:,} entries in a segment, and there may be {MOST_ENTRIES:,}; commit more often")
    num_pairs, num_bytes = len(arrays["pair_left"]), Folder.holding(path).size(path.name)
    return SegmentPlace(file, first, stop, documents, entries, num_pairs, num_bytes, order=order)


def buried(segments: list[Segment], dead: np.ndarray) -> Death:
    """The segments after the documents of some numbers have died, with all of their units.

    An entry dies with its last member. The given segments stay as they are.
    """

    found = [
        replace(each, live_documents=each.live_documents.copy(), live_entries=each.live_entries.copy())
        for each in segments
    ]
    touched, entries, disturbed, number_dead = set(), [np.empty(0, np.int64)], False, 0
    for number, segment in enumerate(found):
        places = np.flatnonzero(np.isin(segment.document_numbers, dead) & (segment.live_documents != 0))
        if len(places):
            segment.live_documents[places] = 0
            number_dead += len(places)
            touched.add(number)
            units = segment.units_of(places)
            theirs = segment["entry"][units]
            disturbed |= bool((theirs == segment["sequence"][units]).any())
            entries.append(theirs)
    changed = np.unique(np.concatenate(entries))
    alive = np.zeros(len(changed), bool)
    for segment in found:
        live = segment["entry"][segment.live_units != 0]
        alive |= np.isin(changed, live)
    died = changed[~alive]
    for number, segment in enumerate(found):
        rows = segment.rows_of(died)
        rows = rows[rows >= 0]
        if len(rows):
            segment.live_entries[rows] = 0
            touched.add(number)
    return Death(found, sorted(touched), disturbed or bool(len(died)), number_dead)


def ids_there(snapshot: Snapshot, ids: pa.Array, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """(numbers of the ids that live documents have, numbers of their documents)."""
    query, number, place = snapshot.with_ids(ids, kind)
    numbers = np.empty(len(query), np.int64)
    for at, segment in enumerate(snapshot.segments):
        some = number == at
        numbers[some] = segment.document_numbers[place[some]]
    return query, numbers


def table_of(
    ids: pa.Array, found: Decided, places: dict[str, np.ndarray], snapshot: Snapshot, recipe: Recipe
) -> pa.Table:
    """Return the decisions about documents, with the columns of documents.parquet; or about their parts.

    `ids` has the id of the document of each unit, and `places` where each unit is in it, unless it is the document.
    """
    names, of_keeper = snapshot.names_of(found.keeper, ids.type)
    kept = arrow(found.kept)
    others = pc.if_else(kept, pa.nulls(len(names), names.type), names)
    resemblance = arrow(found.resemblance, found.kept | np.isnan(found.resemblance))
    if recipe.unit.divides:
        columns = {
            "id": ids,
            **{name: arrow(values) for name, values in places.items()},
            "kept": kept,
            "source_id": others,
            "source_unit": arrow(of_keeper.get("unit", np.empty(0, np.int64)), found.kept),
            "resemblance": resemblance,
        }
        return pa.table(columns)
    columns = {"id": ids, "kept": kept, "duplicate_of": others, "resemblance": resemblance, "group": names}
    if recipe.method.tells_pairs:
        both = snapshot.sketches_of(np.concatenate([found.entry, found.keeper]))
        number = np.arange(len(ids))
        told = recipe.method.pair_columns(both, number, number + len(ids))
        columns |= {name: arrow(values, found.kept) for name, values in told.items()}
    return pa.table(columns)


AT_ONCE = 1 << 16
"""Documents whose decisions are read at a time."""


def decisions_of(snapshot: Snapshot, first: int, stop: int, kind: pa.DataType, recipe: Recipe) -> pa.RecordBatchReader:
    """Return the decisions about the live units with sequence numbers from `first` on and before `stop`.

    Raises
    ------
    ParameterError
        If the index does not decide when documents are added.
    """
    check_decides(recipe, "decisions")

    def tables() -> Iterator[pa.Table]:
        for segment in snapshot.segments:
            if segment.stop <= first or segment.first >= stop:
                continue
            sequence = segment["sequence"]
            units = np.flatnonzero((sequence >= first) & (sequence < stop) & (segment.live_units != 0))
            for start in range(0, len(units), AT_ONCE):
                some = units[start : start + AT_ONCE]
                documents = segment.owners(some)
                owner = segment.document_numbers[documents] if segment.is_divided and not recipe.unit.inside else None
                found = decided(snapshot, sequence[some], segment["entry"][some], owner)
                ids = segment.ids.arrow(documents).cast(kind)
                yield table_of(ids, found, segment.unit_columns(some), snapshot, recipe)

    nothing = np.empty(0, np.int64)
    none = Decided(nothing.astype(bool), nothing, nothing.astype(float), nothing)
    nowhere = joined_places([], recipe.unit)
    schema = table_of(pa.nulls(0, kind), none, {} if nowhere is None else nowhere.columns, snapshot, recipe).schema
    batches = (batch for table in tables() for batch in table.cast(schema).to_batches())
    return pa.RecordBatchReader.from_batches(schema, batches)
