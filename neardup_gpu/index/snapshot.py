"""A snapshot of an index: its segments in order of sequence, read as one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import xxhash

from neardup_gpu.kernels import gather
from neardup_gpu.kernels._cached import cached_property
from neardup_gpu.kernels._probing import sort_queries

from ..data import Ragged, arrow, look_up, numpy_of
from ..engine.contract import Backend
from ..errors import DamagedError
from ..methods.finding.contract import SortedQueries
from ..methods.finding.order import Order
from .marks import Marks
from .probing import TableList, find_segments, list_tables
from .segments import KEPT, OWNER, REBUILD, Segment

if TYPE_CHECKING:
    from .uncommon import UncommonEntries

WITHOUT_END = np.int64(2**62)


def hashes_of(ids: pa.Array, kind: str) -> np.ndarray:
    """Hashes by which ids are looked up: uint64, shape (ids,)."""
    if kind == "integer":
        values = numpy_of(ids).astype(np.int64).view(np.uint64)
        with np.errstate(over="ignore"):
            values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return values ^ (values >> np.uint64(31))
    return np.array([xxhash.xxh3_64_intdigest(value) for value in ids.cast(pa.large_binary()).to_pylist()], np.uint64)


def on_host(backend: Backend) -> Backend:
    """The backend that looks into tables: they are mapped from files, and too few values are looked up to send them to
    a GPU."""
    return "cpu" if backend == "gpu" else backend


def order_of(segments: Sequence[Segment]) -> Order | None:
    """Return the order that the postings of all these segments follow; None where no segment has postings.

    Raises
    ------
    DamagedError
        If the postings of a segment follow another order.
    """
    order = next((each.order for each in segments if each.order is not None), None)
    for segment in segments:
        named = None if segment.order is None else segment.order.id
        if segment.order_id not in (None, named) or (order is not None and named not in (None, order.id)):
            raise DamagedError(f"{segment.name}: its postings follow another order than those of the index; {REBUILD}")
    return order


class LiveUnits(NamedTuple):
    """Live units of some entries.

    numbers : array of int64
        The number of the entry, among those that are given.
    sequence : array of int64
    ids : pyarrow.Array
        Of the documents.
    columns : dict of str to array
        See `Segment.unit_columns`.
    """

    numbers: np.ndarray
    sequence: np.ndarray
    ids: pa.Array
    columns: dict[str, np.ndarray]


class Snapshot:
    """Some segments as one.

    Parameters
    ----------
    segments : sequence of Segment
        In order of sequence.
    backend : str
        Of the kernels that look into tables.
    new : Segment, optional
        One more, the last, for the entries of the query.
    marks : Marks, optional
        Of the segments but that one.
    """

    def __init__(
        self, segments: Sequence[Segment], backend: Backend, new: Segment | None = None, marks: Marks | None = None
    ) -> None:
        self.segments, self.backend, self.new = [*segments, *(() if new is None else (new,))], backend, new
        self.marks = marks
        self._lists: dict[str, TableList] = {}
        self.uncommon: UncommonEntries | None = None  # made by the first query, if common shingles are left out

    def possible(self, name: str, queries: SortedQueries) -> list[SortedQueries]:
        """Return, for each stored segment, the queries that its Bloom filter cannot rule out."""
        others = self.segments if self.new is None else self.segments[:-1]
        if self.marks is None:
            return [queries] * len(others)
        few, number = self.marks.drop_absent(name, queries, others)
        return [queries] * number + [few] * (len(others) - number)

    def sharing(self, name: str, query: np.ndarray, r: int) -> list[int]:
        """Return the numbers of the segments whose tables of a name have r keys of one query; all must have files.

        Raises
        ------
        DamagedError
            If the blocks that decide the answer do not match their checksums.
        """
        if name not in self._lists:
            tables = [segment.tables(name) for segment in self.segments]
            self._lists[name] = list_tables([(keys, sound[0]) for keys, _, sound in tables])
        shared, unread = find_segments(self._lists[name], query, r)
        for number in set(unread[:, 0].tolist()):
            self.segments[number].verify_keys(name, unread[unread[:, 0] == number, 1])
        return np.flatnonzero(shared).tolist()

    @cached_property
    def order(self) -> Order | None:
        """The order that the postings of all segments follow; None where no segment has postings.

        Raises
        ------
        DamagedError
            If the postings of a segment follow another order.
        """
        return order_of(self.segments)

    # ----------------------------------------------------------------------------------------- where entries are

    @cached_property
    def _starts(self) -> np.ndarray:
        return np.array([each.first for each in self.segments], np.int64)

    def located(self, entries: np.ndarray) -> Iterator[tuple[Segment, np.ndarray, np.ndarray]]:
        """(segment, which of the entries are stored there, their rows), of each segment that stores some.

        Entries that vanished when segments were merged are in none.
        """
        if not len(entries):
            return
        if (entries[1:] >= entries[:-1]).all():
            bounds = [*np.searchsorted(entries, self._starts).tolist(), len(entries)]
            parts = [np.arange(*pair) for pair in pairwise(bounds)]
        else:
            number = np.searchsorted(self._starts, entries, side="right") - 1
            parts = [np.flatnonzero(number == at) for at in range(len(self.segments))]
        for segment, some in zip(self.segments, parts, strict=True):
            if len(some):
                rows = segment.rows_of(entries[some])
                yield segment, some[rows >= 0], rows[rows >= 0]

    def _of_entries(
        self, entries: np.ndarray, absent: bool | int, of_rows: Callable[[Segment, np.ndarray], np.ndarray]
    ) -> np.ndarray:
        """Return a value per entry: what `of_rows` returns for rows of a segment, `absent` for entries in none."""
        found = np.full(len(entries), absent)
        for segment, some, rows in self.located(entries):
            found[some] = of_rows(segment, rows)
        return found

    def live(self, entries: np.ndarray) -> np.ndarray:
        """Whether each entry has a live member: bool."""
        return self._of_entries(entries, False, lambda segment, rows: segment.live_entries[rows] != 0)

    def kept(self, entries: np.ndarray) -> np.ndarray:
        """Whether each entry was kept when it was added, and lives: bool."""

        def are_kept(segment: Segment, rows: np.ndarray) -> np.ndarray:
            return (segment.some("flags", rows) & KEPT != 0) & (segment.live_entries[rows] != 0)

        return self._of_entries(entries, False, are_kept)

    def owners(self, entries: np.ndarray) -> np.ndarray:
        """Return the number of the document of each entry's founder, if parts of documents are compared: int64."""
        return self._of_entries(entries, -1, lambda segment, rows: segment.some(OWNER, rows))

    def keepers(self, entries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(the entry that was kept in place of each, their resemblance), from when it was added; itself and 1 if none.

        The resemblance is NaN where nothing is verified.
        """
        keeper, value = entries.copy(), np.ones(len(entries))
        for segment, some, rows in self.located(entries):
            place, there = look_up(segment["gone"].astype(np.int64), rows)
            keeper[some[there]] = segment["keeper"][place[there]]
            value[some[there]] = segment["keeper_resemblance"].view(np.float64)[place[there]]
        return keeper, value

    def awaits(self, entries: np.ndarray) -> np.ndarray:
        """Whether each entry was removed because of one that is gone, and may be kept by the next `decide`: bool."""
        keeper, _ = self.keepers(entries)
        return (keeper != entries) & ~self.live(keeper)

    def tokens(self, entries: np.ndarray) -> np.ndarray:
        """Words of each entry: int64."""
        return self._of_entries(entries, 0, lambda segment, rows: segment.some("tokens", rows))

    def sets_of(self, entries: np.ndarray) -> Ragged:
        """The shingles of some entries, which are stored; in the given order."""
        parts, order = [], []
        for segment, some, rows in self.located(entries):
            parts.append(segment.sets_of(rows))
            order.append(some)
        if not parts:
            return Ragged(np.empty(0, np.uint64), np.zeros(1, np.int64))
        stored, number = Ragged._joined(parts), np.concatenate(order)
        if (np.diff(number) > 0).all():
            return stored
        back = np.empty_like(number)
        back[number] = np.arange(len(number))
        return Ragged(*gather.cpu(stored.values, stored.offsets, back))

    def sketches_of(self, entries: np.ndarray) -> np.ndarray:
        """The kept parts of the sketches of some entries, which are stored; in the given order."""
        found = np.empty(0, np.uint64)
        for segment, some, rows in self.located(entries):
            part = segment.sketches_of(rows)
            if not len(found):
                found = np.zeros((len(entries), *part.shape[1:]), part.dtype)
            found[some] = part
        return found

    def set_sizes(self, entries: np.ndarray) -> np.ndarray:
        """How many shingles some entries have, which are stored: int64."""
        return self._of_entries(entries, 0, lambda segment, rows: segment.set_sizes(rows))

    # -------------------------------------------------------------------------------------------- looking things up

    def same_words(self, hashes: np.ndarray) -> np.ndarray:
        """The live entry of each word sequence, given by its 128 bits, uint64, shape (n, 2); -1 if none has them."""
        found = np.full(len(hashes), -1, np.int64)
        for number, query, row in self._looked_up("hash", hashes[:, 0]):
            segment = self.segments[number]
            same = np.flatnonzero(segment.some("hash_second", row) == hashes[query, 1])
            found[query[same]] = segment.some("founders", row[same])
        return found

    def with_ids(self, ids: pa.Array, kind: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(number of the id, number of the segment, place of the document) of live documents that have one of them."""
        found = [(np.empty(0, np.int64),) * 3]
        for number, query, place in self._looked_up("id", hashes_of(ids, kind)):
            theirs = self.segments[number].ids.arrow(place)
            wanted = ids.take(arrow(query)).cast(theirs.type)
            same = np.array(
                [one == other for one, other in zip(theirs.to_pylist(), wanted.to_pylist(), strict=True)], bool
            )
            found.append((query[same], np.full(int(same.sum()), number, np.int64), place[same]))
        queries, numbers, places = (np.concatenate(each) for each in zip(*found, strict=True))
        return queries, numbers, places

    def _looked_up(self, name: str, keys: np.ndarray) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """Yield (number of a segment, numbers of keys, rows) of the live rows that have one of the keys in a table.

        Segments without such a row are left out.
        """
        size = len(keys)
        bounds = np.zeros(size, np.int64), np.full(size, WITHOUT_END), np.full(size, WITHOUT_END)
        queries = SortedQueries(*sort_queries(np.ascontiguousarray(keys)[:, None]))
        for number, possible in enumerate(self.possible(name, queries)):
            if not possible.sizes.any():
                continue
            segment = self.segments[number]
            live = segment.live_documents if name == "id" else segment.live_entries
            found, offsets = segment.probe(name, possible, 1, *bounds, live)
            if len(found):
                yield number, np.repeat(np.arange(size), np.diff(offsets)), found

    def names_of(self, entries: np.ndarray, kind: pa.DataType) -> tuple[pa.Array, dict[str, np.ndarray]]:
        """(id of the document, `Segment.unit_columns`) of the first live unit of each entry; each has one."""
        wanted, back = np.unique(entries, return_inverse=True)
        order, parts, missing = [], [], np.ones(len(wanted), bool)
        columns: list[dict[str, np.ndarray]] = []
        for segment in self.segments:
            sequence = segment["sequence"]
            if not len(sequence):
                continue
            place, there = look_up(sequence, wanted)
            some = np.flatnonzero(there)[segment.live_documents[segment.owners(place[there])] != 0]
            order.append(some)
            parts.append(segment.ids.arrow(segment.owners(place[some])).cast(kind))
            columns.append(segment.unit_columns(place[some]))
            missing[some] = False
        if missing.any():  # their founders are gone
            lost = np.flatnonzero(missing)
            found = self.members(wanted[lost], kind)
            begins = np.flatnonzero(np.diff(found.numbers, prepend=-1))
            order.append(lost)
            parts.append(found.ids.take(arrow(begins)))
            columns.append({name: values[begins] for name, values in found.columns.items()})
        if not parts:
            return pa.nulls(0, kind), {}
        places = np.empty(len(wanted), np.int64)
        places[np.concatenate(order)] = np.arange(len(wanted))
        places = places[back]
        return pa.concat_arrays(parts).take(arrow(places)), _rows_of(columns, places)

    def members(self, entries: np.ndarray, kind: pa.DataType) -> LiveUnits:
        """The live units of some entries, in the order of (number of the entry, sequence number)."""
        numbers, sequences, ids = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [pa.nulls(0, kind)]
        columns: list[dict[str, np.ndarray]] = []
        least, most = (int(entries.min()), int(entries.max())) if len(entries) else (0, -1)
        for segment in self.segments if len(entries) else ():
            if segment.stop <= least or (segment.first > most and not len(segment.arrays["copies"])):
                continue  # members come behind the founder
            number, place = segment.members(entries)
            if len(number):
                numbers.append(number)
                sequences.append(segment.some("sequence", place))
                ids.append(segment.ids.arrow(segment.owners(place)).cast(kind))
                columns.append(segment.unit_columns(place))
        number, sequence = np.concatenate(numbers), np.concatenate(sequences)
        order = np.lexsort((sequence, number))
        joined = pa.concat_arrays(ids).take(arrow(order))
        return LiveUnits(number[order], sequence[order], joined, _rows_of(columns, order))


def _rows_of(parts: list[dict[str, np.ndarray]], rows: np.ndarray) -> dict[str, np.ndarray]:
    """Return some rows of columns that are given in parts."""
    return {name: np.concatenate([part[name] for part in parts])[rows] for name in (parts[0] if parts else ())}
