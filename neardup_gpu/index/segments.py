"""Segments: what is known of some consecutive documents, as named arrays in a file or in memory; never changed.

    sequence       int64    units       number of each unit, ascending; without parts, each document is a unit
    entry          int64    units       the entry of each unit
    copies         uint32   some        places of units that are copies of an entry, by (entry, place)
    id_keys        uint64   documents   hashes of ids, ascending; id_rows, uint32, has their places
    ids, or id_offsets and id_values    see `store/ids.py`
    columns        uint8    bytes       the kept columns of documents besides their texts, if any; see `columns.py`
    text_offsets, text_values and word_offsets, word_values     the kept texts and tokens, if any; see `texts.py`

    founders       int64    entries     names of the entries that are stored here, ascending
    tokens         uint32   entries     words of each
    flags          uint8    entries     KEPT, OPEN
    hash_keys      uint64   entries     first halves of the 128 bits of entries not blank, ascending; hash_rows, uint32
    hash_second    uint64   entries     second half of each entry
    what candidates are found by        see `methods/finding/`, and for containment `containment.py`
    set_offsets    int64    entries + 1 where each entry's shingles begin in set_values, uint64; of an index with sets
    sketch         see `Sketch.stored`  a row of each entry; of an index that needs them, see `Keeps.sketches`
    pair_left, pair_right    int64      entries of each stored pair, which was found when the right one was added
    pair_resemblance  uint64            the bits of a float64
    gone           uint32   some        places of entries that were removed when added; for each of them
    keeper, keeper_resemblance          int64, bits of a float64: the kept entry that stood for it then

If parts of documents are compared:

    document       int64    documents   number of each document, ascending: its first unit has the same one
    first_unit     int64    documents + 1   where the units of each document begin among all units
    begin, end     int64    units       bytes of the text of the document
    after, marks   int32, uint8         as in `documents.units.Places`
    owner          int64    entries     number of the document of the founder

The dead documents and entries are not written in a segment but next to it, see `Segment.dead`.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from neardup_gpu.kernels import gather
from neardup_gpu.kernels._cached import cached_property
from neardup_gpu.kernels._probing import find_rows
from neardup_gpu.kernels._tables import place_of_copies

from ..data import Ragged, ranges
from ..errors import DamagedError, OutputError
from ..methods.finding.contract import SortedQueries
from ..methods.finding.order import ORDER, Order
from ..records import dataclass
from ..stages.conditions import WITHIN
from ..store.arrays import ArraysFile, ArraysFormat, Limits
from ..store.folder import Folder
from ..store.ids import NAMES, Ids
from .keeps import KEPT_TEXTS
from .manifest import DELETED, SEGMENTS, SegmentPlace
from .probing import find_earlier_rows, find_earlier_runs

SEGMENT = replace(ORDER, magic=b"NEARDUPX", name="a segment of an index")
DEAD = replace(ORDER, magic=b"NEARDUPD", name="a list of what is dead in an index")

AS_BEFORE = "the index is as it was committed last"
"""Advice in messages if a file could not be written."""

REBUILD = "`neardup index compact --rebuild` makes the tables of an index again"
"""Advice in messages if tables are not those of the stored sets."""

MANY = 64
"""Values of an array for each that is read, up to which all of it is compared with its checksums."""


KEPT, OPEN = np.uint8(1), np.uint8(2)

OWNER = "owner"
"""The array that names the document of each founder, if parts of documents are compared."""

COLUMNS = ("founders", "tokens", "flags", "hash_second", "sketch", WITHIN, OWNER)
"""Arrays that have a row for each entry; a segment has those that its method keeps."""

UNIT_COLUMNS = {"begin": np.int64, "end": np.int64, "after": np.int32, "marks": np.uint8}
"""Arrays that have a row for each unit, if these are parts of documents, and their dtypes."""


def words_of(values: np.ndarray) -> np.ndarray:
    """The bits of numbers as words, as files keep them."""
    return np.ascontiguousarray(values, np.float64).view(np.uint64)


@dataclass
class Segment:
    """Some consecutive documents and the entries that they founded.

    arrays : dict of str to array
        See the head of this file.
    id_kind : str
    place : SegmentPlace or None
        None for one that is in memory alone.
    order : Order or None
        What its prefixes are taken by; None where there are none.
    file : ArraysFile or None
        What the arrays are mapped from. They are compared with their checksums when they are first used.
    live_documents, live_entries : arrays of uint8
        0 for each that is dead.
    """

    arrays: dict[str, np.ndarray]
    id_kind: str
    live_documents: np.ndarray
    live_entries: np.ndarray
    place: SegmentPlace | None = None
    file: ArraysFile | None = None
    order: Order | None = None
    _sound: set[str] = field(default_factory=set)
    _known_tables: dict[str, Any] = field(default_factory=dict)
    _runs: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def in_memory(cls, arrays: dict[str, np.ndarray], id_kind: str, order: Order | None = None) -> Segment:
        """A segment without dead documents that is in no file."""
        documents, entries = (np.ones(len(each), np.uint8) for each in (documents_in(arrays), arrays["founders"]))
        return cls(arrays, id_kind, documents, entries, order=order)

    @classmethod
    def load(cls, folder: Path, place: SegmentPlace, id_kind: str) -> Segment:
        """Map a segment, and read which of it is dead.

        Raises
        ------
        InputError, DamagedError
            If a file is not there, or not as it was written.
        """
        path = folder / SEGMENTS / f"{place.file:08}"
        file = ArraysFile(path, SEGMENT, at_once=0, inside=True, limits=partial(limits_of, place, id_kind))
        order = None if place.order is None else Order.load(folder / SEGMENTS / f"{place.order:08}")
        segment = cls.in_memory(file.arrays, id_kind, order)
        segment.place, segment.file = place, file
        if place.deleted is not None:
            segment.read_dead(folder / DELETED / f"{place.deleted:08}", place)
        return segment

    def read_dead(self, path: Path, place: SegmentPlace) -> None:
        """Read which documents and entries are dead; the manifest says how many."""
        found = ArraysFile(path, DEAD, inside=True, limits=partial(_limits_of_dead, self))
        found.verify_all()
        for live, name in ((self.live_documents, "documents"), (self.live_entries, "entries")):
            live[:] = ~np.unpackbits(found.arrays[name], count=len(live)).astype(bool)
        dead = [int(np.count_nonzero(live == 0)) for live in (self.live_documents, self.live_entries)]
        if dead != [place.dead_documents, place.dead_entries]:
            raise DamagedError(f"{path}: is not the file that the manifest names; {DEAD.again}")

    def write_dead(self, path: Path) -> None:
        """Write which documents and entries are dead, and sync it."""
        arrays = {
            "documents": np.packbits(self.live_documents == 0),
            "entries": np.packbits(self.live_entries == 0),
        }
        write(DEAD, path, {}, arrays)

    def __getitem__(self, name: str) -> np.ndarray:
        """An array, after comparing it with its checksums."""
        if self.file is not None and name not in self._sound:
            self.file.verify(name)
            self._sound.add(name)
        return self.arrays[name]

    @property
    def name(self) -> str:
        """Its name in messages: the path of its file."""
        return "a segment in memory" if self.file is None else f"{self.file.path}"

    @property
    def order_id(self) -> str | None:
        """The id of the order that its postings follow; None where it has none, or an earlier version wrote it."""
        if self.file is not None:
            return self.file.header.get("order")
        return None if self.order is None else self.order.id

    def check_size(self) -> None:
        """Raise DamagedError if a file that is mapped was cut."""
        for file in (self.file, None if self.order is None else self.order.file):
            if file is not None:
                file.check_size()

    @property
    def first(self) -> int:
        """All its documents and entries have this number or a greater one, and a smaller one than the next segment."""
        return int(documents_in(self.arrays)[0]) if self.place is None else self.place.first

    @property
    def stop(self) -> int:
        """All its documents and entries have a smaller number."""
        if self.place is not None:
            return self.place.stop
        return 1 + max(int(each[-1]) for each in (documents_in(self.arrays), self.arrays["sequence"]) if len(each))

    @cached_property
    def ids(self) -> Ids:
        """Ids of the documents."""
        return Ids(self.id_kind, {name: self.arrays[name] for name in NAMES if name in self.arrays}, self.file)

    @property
    def num_entries(self) -> int:
        """Entries that are stored here, dead ones too."""
        return len(self.arrays["founders"])

    @property
    def num_documents(self) -> int:
        """Documents that are stored here, dead ones too."""
        return len(self.live_documents)

    @property
    def is_divided(self) -> bool:
        """Whether units are parts of documents; if not, each document is a unit."""
        return "first_unit" in self.arrays

    @property
    def document_numbers(self) -> np.ndarray:
        """The number of each document, ascending."""
        return self["document" if self.is_divided else "sequence"]

    @property
    def live_units(self) -> np.ndarray:
        """0 for each unit of a dead document, else 1."""
        return np.repeat(self.live_documents, np.diff(self["first_unit"])) if self.is_divided else self.live_documents

    def owners(self, units: np.ndarray) -> np.ndarray:
        """Return the places of the documents of some units, given by their places."""
        return np.searchsorted(self["first_unit"], units, side="right") - 1 if self.is_divided else units

    def units_of(self, documents: np.ndarray) -> np.ndarray:
        """Return the places of the units of some documents, given by their places, document by document."""
        if not self.is_divided:
            return documents
        starts, stops = self["first_unit"][documents], self["first_unit"][documents + 1]
        return ranges(starts, stops - starts)

    def unit_columns(self, units: np.ndarray) -> dict[str, np.ndarray]:
        """Return the columns `Unit.columns` of some units, given by their places; none if these are documents."""
        if not self.is_divided:
            return {}
        number = units - self["first_unit"][self.owners(units)]
        return {"unit": number, "begin": self.some("begin", units), "end": self.some("end", units)}

    def some(self, name: str, rows: np.ndarray) -> np.ndarray:
        """Some rows of an array, after comparing these alone with their checksums; or all of it, if they are many."""
        if len(rows) > len(self.arrays[name]) // MANY:
            return self[name][rows]
        if self.file is not None and name not in self._sound:
            self.file.verify(name, rows, rows + 1)
        return self.arrays[name][rows]

    def rows_of(self, entries: np.ndarray) -> np.ndarray:
        """The row of each entry; -1 for entries that are not stored here."""
        return self._places("founders", entries)

    def _places(self, name: str, numbers: np.ndarray) -> np.ndarray:
        """Return the places of some numbers in an ascending array; -1 for missing ones."""
        values = self.arrays[name]
        if not len(values):
            return np.full(len(numbers), -1)
        if len(numbers) > len(values) // MANY:
            values = self[name]
        if len(numbers) == len(values) and (numbers == values).all():
            return np.arange(len(values))
        places = np.searchsorted(values, numbers)
        if self.file is not None and name not in self._sound:  # what is beside it shows that a number is not there
            self.file.verify(name, np.maximum(places - 1, 0), np.minimum(places + 1, len(values)))
        places = np.minimum(places, len(values) - 1)
        return np.where(values[places] == numbers, places, -1)

    def probe(
        self,
        name: str,
        queries: SortedQueries,
        r: int,
        first: np.ndarray,
        stop: np.ndarray,
        most: np.ndarray,
        allowed: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return what `kernels/probe.py` finds in the tables of a name.

        The blocks of the file that decide the answer are compared with their checksums.
        """
        keys, rows, sound = self.tables(name)
        if self.file is None or self.file.num_left == 0:
            return find_rows((keys, rows), queries, r, first, stop, most, allowed)[:2]
        found, offsets, wanted = find_rows((keys, rows), queries, r, first, stop, most, allowed, sound)
        for part, blocks in zip(("keys", "rows"), wanted, strict=True):
            if blocks[-1]:
                self.file.verify_blocks(f"{name}_{part}", np.flatnonzero(blocks[:-1]))
        return found, offsets

    def verify_keys(self, name: str, blocks: np.ndarray) -> None:
        """Compare blocks of the keys of a name, given by number, with their checksums.

        Raises
        ------
        DamagedError
            If one is not as it was written.
        """
        assert self.file is not None
        self.file.verify_blocks(f"{name}_keys", blocks)

    def earlier(
        self, name: str, wanted: np.ndarray, r: int, first: np.ndarray, most: np.ndarray, allowed: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Like `probe`, for some rows of this segment, which is in memory: find the rows before each of them."""
        keys, rows, _ = self.tables(name)
        if name not in self._runs:
            self._runs[name] = find_earlier_runs(keys, rows, self.num_entries)
        return find_earlier_rows(rows, self._runs[name], wanted, r, first, most, allowed)

    def keys(self, name: str) -> np.ndarray:
        """The keys of the tables of a name, shape (tables, rows), all of them compared with their checksums."""
        return np.atleast_2d(self[f"{name}_keys"])

    def tables(self, name: str) -> tuple[np.ndarray, np.ndarray, Any]:
        """Keys and rows of the tables of a name, shape (tables, rows), and which of their blocks were compared."""
        if name not in self._known_tables:
            names = f"{name}_keys", f"{name}_rows"
            sound = None if self.file is None else tuple(map(self.file.sound, names))
            self._known_tables[name] = *(np.atleast_2d(self.arrays[each]) for each in names), sound
        return self._known_tables[name]

    def sets_of(self, rows: np.ndarray) -> Ragged:
        """The shingles of some entries."""
        if self.file is not None:
            self.file.verify_rows("set_offsets", "set_values", rows)
        return Ragged(*gather.cpu(self.arrays["set_values"], self.arrays["set_offsets"], rows))

    def sketches_of(self, rows: np.ndarray) -> np.ndarray:
        """Return the kept parts of the sketches of some entries."""
        sketch = self.arrays["sketch"]
        if self.file is not None:
            width = sketch[:1].size
            self.file.verify("sketch", rows * width, (rows + 1) * width)
        return sketch[rows]

    def set_sizes(self, rows: np.ndarray) -> np.ndarray:
        """How many shingles some entries have."""
        if self.file is not None and "set_offsets" not in self._sound:
            self.file.verify("set_offsets", rows, rows + 2)
        offsets = self.arrays["set_offsets"]
        return offsets[rows + 1] - offsets[rows]

    def members(self, entries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(number of the entry, place) of the live units of some entries that lie here, in this order."""
        numbers = places = np.empty(0, np.int64)
        if len(entries) and entries.max() >= self.first:  # members come behind the founder
            founders = self._places("sequence", entries)
            numbers = np.flatnonzero(founders >= 0)
            numbers = numbers[self.some("entry", founders[numbers]) == entries[numbers]]
            places = founders[numbers]
        if len(self.arrays["copies"]):
            starts, stops = place_of_copies(self["entry"], self["copies"], entries)
            sizes = stops - starts
            if sizes.any():
                copied, at = np.repeat(np.arange(len(entries)), sizes), ranges(starts, sizes)
                numbers, places = np.concatenate([numbers, copied]), np.concatenate([places, self["copies"][at]])
                order = np.argsort(numbers, kind="stable")
                numbers, places = numbers[order], places[order]
        if not len(numbers):
            return numbers, places
        live = self.live_documents[self.owners(places)] != 0
        return numbers[live], places[live].astype(np.int64)


def limits_of(place: SegmentPlace, id_kind: str, arrays: dict[str, np.ndarray]) -> dict[str, Limits]:
    """Return the limits of the arrays of a segment's file: what code that looks into a segment takes for granted.

    All numbers of documents and entries are below the segment's end, all rows and places are of the segment, offsets
    ascend from 0 to the end of their values, and what is searched by bisection ascends. What candidates are found by
    has the shapes that a finder reads; whether it is all that the recipe asks for, `check_arrays` says.

    Raises
    ------
    KeyError
        If an array is missing.
    ValueError
        If one has another dtype or shape than it has to have.
    """
    documents, entries, pairs = place.documents, place.entries, place.pairs
    gone, units = len(arrays["gone"]), len(arrays["sequence"]) if "first_unit" in arrays else documents
    shapes: dict[str, tuple[Any, tuple[int, ...]]] = {
        "sequence": (np.int64, (units,)),
        "entry": (np.int64, (units,)),
        "copies": (np.uint32, (len(arrays["copies"]),)),
        "founders": (np.int64, (entries,)),
        "tokens": (np.uint32, (entries,)),
        "flags": (np.uint8, (entries,)),
        "hash_second": (np.uint64, (entries,)),
        "pair_left": (np.int64, (pairs,)),
        "pair_right": (np.int64, (pairs,)),
        "pair_resemblance": (np.uint64, (pairs,)),
        "gone": (np.uint32, (gone,)),
        "keeper": (np.int64, (gone,)),
        "keeper_resemblance": (np.uint64, (gone,)),
        "id_keys": (np.uint64, (documents,)),
        "hash_keys": (np.uint64, (len(arrays["hash_keys"]),)),
    }
    limits = {
        "sequence": Limits(place.first, place.stop - 1, units, strictly=True),
        "entry": Limits(0, place.stop - 1),
        "copies": Limits(0, units - 1),
        "founders": Limits(place.first, place.stop - 1, entries, strictly=True),
        "flags": Limits(0, int(KEPT | OPEN)),
        "pair_left": Limits(0, place.stop - 1),
        "pair_right": Limits(0, place.stop - 1),
        "gone": Limits(0, entries - 1, gone, strictly=True),
        "keeper": Limits(0, place.stop - 1),
    }
    for name in [each.removesuffix("_keys") for each in arrays if each.endswith("_keys")]:
        keys, rows = f"{name}_keys", f"{name}_rows"
        size = arrays[keys].shape[-1]
        shapes |= {keys: (np.uint64, arrays[keys].shape), rows: (np.uint32, arrays[keys].shape)}
        limits[keys] = Limits(0, 2**64 - 1, size)
        limits[rows] = Limits(0, (documents if name == "id" else entries) - 1)
    kinds = {"set": np.uint64, "id": np.uint8, **KEPT_TEXTS}
    for name, kind in kinds.items():
        rows_of = entries if name == "set" else documents
        offsets, values = f"{name}_offsets", f"{name}_values"
        if offsets in arrays or values in arrays:
            shapes |= {
                offsets: (np.int64, (rows_of + 1,)),
                values: (kind, (arrays[values].size,)),
            }
            limits[offsets] = Limits(0, arrays[values].size, rows_of + 1, whole=True)
    if "sketch" in arrays:
        shapes["sketch"] = arrays["sketch"].dtype, (entries, *arrays["sketch"].shape[1:])
    if WITHIN in arrays:
        shapes[WITHIN] = np.uint64, (entries,)
    if "first_unit" in arrays:
        shapes |= {"document": (np.int64, (documents,)), "first_unit": (np.int64, (documents + 1,))}
        shapes |= {name: (kind, (units,)) for name, kind in UNIT_COLUMNS.items()} | {OWNER: (np.int64, (entries,))}
        limits["document"] = Limits(place.first, place.stop - 1, documents, strictly=True)
        limits["first_unit"] = Limits(0, units, documents + 1, whole=True)
    if "columns" in arrays:
        shapes["columns"] = np.uint8, (arrays["columns"].size,)
    for name, (dtype, shape) in shapes.items():
        if arrays[name].dtype != dtype or arrays[name].shape != shape:
            raise ValueError(name)
    ids = Ids(id_kind, {name: arrays[name] for name in NAMES if name in arrays})
    if not ids.fit(documents):
        raise ValueError("ids")
    return limits


def _limits_of_dead(segment: Segment, arrays: dict[str, np.ndarray]) -> dict[str, Limits]:
    """Check the shapes of a file of what is dead; no value of it is a place."""
    for name, number in (("documents", segment.num_documents), ("entries", segment.num_entries)):
        if arrays[name].dtype != np.uint8 or arrays[name].shape != (-(-number // 8),):
            raise ValueError(name)
    return {}


def documents_in(arrays: dict[str, np.ndarray]) -> np.ndarray:
    """Return the array of a segment that numbers documents."""
    return arrays["document" if "first_unit" in arrays else "sequence"]


def copies_of(sequence: np.ndarray, entry: np.ndarray) -> np.ndarray:
    """The array `copies`."""
    some = np.flatnonzero(sequence != entry)
    return some[np.argsort(entry[some], kind="stable")].astype(np.uint32)


def write(kind: ArraysFormat, path: Path, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write a file where there is none yet, and sync it.

    Raises
    ------
    OutputError
        If it cannot be written; nothing is left of it then, if that can be.
    """
    holder = Folder.holding(path)
    try:
        created = holder.create(path.name)
        try:
            with os.fdopen(created, "wb") as file:
                kind.write_to(file, header, {name: np.ascontiguousarray(array) for name, array in arrays.items()})
                file.flush()
                os.fsync(created)
        except BaseException:
            with contextlib.suppress(OSError):
                holder.remove(path.name)
            raise
    except OSError as error:
        raise OutputError(f"{path}: {error.strerror}; {AS_BEFORE}") from None
