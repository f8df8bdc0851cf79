"""Segments: what is known of some consecutive documents, as named arrays in a file or in memory; never changed.

    sequence       int64    documents   number of each document, ascending
    entry          int64    documents   the entry that it is a member of
    copies         uint32   some        places of documents that founded no entry, in the order of (entry, place)
    id_keys        uint64   documents   hashes of ids, ascending; id_rows, uint32, has their places
    ids, or id_offsets and id_values    see `store/ids.py`
    columns        uint8    bytes       what is kept of documents beside their texts, if anything is, see `columns.py`

    founders       int64    entries     names of the entries that are stored here, ascending
    tokens         uint32   entries     words of each
    flags          uint8    entries     KEPT, OPEN
    hash_keys      uint64   entries     first halves of the 128 bits of entries with words, ascending; hash_rows, uint32
    hash_second    uint64   entries     second half of each entry
    what candidates are found by        see `finding/`, and for containment `containment.py`
    set_offsets    int64    entries + 1 where each entry's shingles begin in set_values, uint64; of an index with sets
    sketch         see `Method.stored`  a row of each entry; of an index that needs them, see `Keeps.sketches`
    pair_left, pair_right    int64      entries of each stored pair, which was found when the right one was added
    pair_resemblance  uint64            the bits of a float64
    gone           uint32   some        places of entries that were removed when added; for each of them
    keeper, keeper_resemblance          int64, bits of a float64: the kept entry that stood for it then

Which documents and entries are dead is no part of a segment: it is beside it, see `Segment.dead`.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from neardup_gpu.kernels import gather
from neardup_gpu.kernels.pairtables import sort_by_key

from ..data import Ragged
from ..errors import OutputError
from ..store.arrays import ArraysFile, ArraysFormat
from ..store.ids import NAMES, Ids
from .manifest import DELETED, SEGMENTS, Place
from .order import Order

SEGMENT = ArraysFormat(
    magic=b"NEARDUPX",
    version=1,
    name="a segment of an index",
    advice="neardup index create makes an index",
    again="make the index again from its documents",
)
DEAD = ArraysFormat(
    magic=b"NEARDUPD",
    version=1,
    name="a list of what is dead in an index",
    advice="neardup index create makes an index",
    again="make the index again from its documents",
)

AS_BEFORE = "the index is as it was committed last"
"""What messages say where a file could not be written."""

KEPT, OPEN = np.uint8(1), np.uint8(2)

COLUMNS = ("founders", "tokens", "flags", "hash_second", "sketch")
"""Arrays that have a row for each entry; a segment has those that its method keeps."""


def words_of(values: np.ndarray) -> np.ndarray:
    """The bits of numbers as words, as files keep them."""
    return np.ascontiguousarray(values, np.float64).view(np.uint64)


def sorted_table(keys: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(key, row) by key, equal keys in the order given."""
    if len(keys) == 0:
        return np.empty(0, np.uint64), np.empty(0, np.uint32)
    if len(keys) < 1 << 12:  # which NumPy sorts faster
        order = np.argsort(keys, kind="stable")
        return keys[order], rows[order].astype(np.uint32)
    return sort_by_key(np.ascontiguousarray(keys), rows.astype(np.uint32))[:2]


@dataclass
class Segment:
    """Some consecutive documents and the entries that they founded.

    arrays : dict of str to array
        See the head of this file.
    id_kind : str
    place : Place or None
        None for one that is in memory alone.
    order : Order or None
        What its prefixes are taken by; None where there are none.
    file : ArraysFile or None
        What the arrays are mapped from. They are compared with their checksums when they are first asked for.
    live_documents, live_entries : arrays of uint8
        0 for each that is dead.
    """

    arrays: dict[str, np.ndarray]
    id_kind: str
    live_documents: np.ndarray
    live_entries: np.ndarray
    place: Place | None = None
    file: ArraysFile | None = None
    order: Order | None = None
    _sound: set[str] = field(default_factory=set)

    @classmethod
    def in_memory(cls, arrays: dict[str, np.ndarray], id_kind: str, order: Order | None = None) -> Segment:
        """A segment of which nothing is dead, and which is in no file."""
        documents, entries = (np.ones(len(arrays[name]), np.uint8) for name in ("sequence", "founders"))
        return cls(arrays, id_kind, documents, entries, order=order)

    @classmethod
    def load(cls, folder: Path, place: Place, id_kind: str) -> Segment:
        """Map a segment, and read which of it is dead.

        Raises
        ------
        InputError, DamagedError
            If a file is not there, or not as it was written.
        """
        file = ArraysFile(folder / SEGMENTS / f"{place.file:08}", SEGMENT, at_once=0)
        documents, entries = (np.ones(len(file.arrays[name]), np.uint8) for name in ("sequence", "founders"))
        order = None if place.order is None else Order(folder / SEGMENTS / f"{place.order:08}")
        segment = cls(file.arrays, id_kind, documents, entries, place, file, order)
        if place.deleted is not None:
            segment.read_dead(folder / DELETED / f"{place.deleted:08}")
        return segment

    def read_dead(self, path: Path) -> None:
        """Read which documents and entries are dead."""
        found = ArraysFile(path, DEAD)
        found.verify_all()
        for live, name in ((self.live_documents, "documents"), (self.live_entries, "entries")):
            live[:] = ~np.unpackbits(found.arrays[name], count=len(live)).astype(bool)

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
    def first(self) -> int:
        """All its documents and entries have this number or a greater one, and a smaller one than the next segment."""
        return int(self.arrays["sequence"][0]) if self.place is None else self.place.first

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
        return len(self.arrays["sequence"])

    def rows_of(self, entries: np.ndarray) -> np.ndarray:
        """The row of each entry; -1 of those that are not stored here."""
        founders = self["founders"]
        rows = np.minimum(np.searchsorted(founders, entries), max(0, len(founders) - 1))
        return np.where(founders[rows] == entries, rows, -1) if len(founders) else np.full(len(entries), -1)

    def sets_of(self, rows: np.ndarray) -> Ragged:
        """The shingles of some entries."""
        if self.file is not None:
            self.file.verify_rows("set_offsets", "set_values", rows)
        return Ragged(*gather.cpu(self.arrays["set_values"], self.arrays["set_offsets"], rows))

    def sketches_of(self, rows: np.ndarray) -> np.ndarray:
        """What is kept of the sketches of some entries."""
        sketch = self.arrays["sketch"]
        if self.file is not None:
            width = sketch[:1].size
            self.file.verify("sketch", rows * width, (rows + 1) * width)
        return sketch[rows]

    def set_sizes(self, rows: np.ndarray) -> np.ndarray:
        """How many shingles some entries have."""
        offsets = self["set_offsets"]
        return offsets[rows + 1] - offsets[rows]

    def members(self, entry: int) -> np.ndarray:
        """Places of the live documents of an entry that lie here, ascending."""
        of, copies = self["entry"], self["copies"]
        founder = np.searchsorted(self["sequence"], entry)
        found = []
        if founder < len(of) and self["sequence"][founder] == entry and of[founder] == entry:
            found.append(founder)
        start, stop = (_place_of_copy(of, copies, each) for each in (entry, entry + 1))
        places = np.array([*found, *copies[start:stop].tolist()], np.int64)
        return places[self.live_documents[places] != 0]


def _place_of_copy(entry: np.ndarray, copies: np.ndarray, wanted: int) -> int:
    """Place of the first copy of an entry that is not before the wanted one."""
    low, high = 0, len(copies)
    while low < high:
        middle = (low + high) // 2
        if entry[copies[middle]] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


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
    try:
        try:
            open(path, "xb").close()
            kind.write(path, header, {name: np.ascontiguousarray(array) for name, array in arrays.items()})
            with open(path, "rb") as file:
                os.fsync(file.fileno())
        except FileExistsError:  # another process's
            raise
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(path)
            raise
    except OSError as error:
        raise OutputError(f"{path}: {error.strerror}; {AS_BEFORE}") from None
