"""The contract of finders: what a file in this folder says of how an index finds candidates by a method.

A finder knows what is kept of entries in addition to what all methods keep (`index/segments.py`), and finds the
entries that may resemble some others. What becomes of candidates, see `index/candidates.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neardup_gpu.kernels import gather

from ...data import Ragged

if TYPE_CHECKING:
    from ...index.segments import Segment
    from ...index.snapshot import Snapshot
    from ...recipe import Recipe
    from .keeps import Keeps
    from .order import Order

WITHOUT_END = np.int64(2**62)
"""A number that no entry reaches."""


class SortedQueries(NamedTuple):
    """Keys that tables are searched for, as `sort_queries` in `kernels/_probing.py` returns them.

    Parameters
    ----------
    keys : array of uint64, shape (tables, queries)
    numbers : array of uint32, shape (tables, queries)
    sizes : array of int64, shape (tables,)
    """

    keys: np.ndarray
    numbers: np.ndarray
    sizes: np.ndarray


class SketchedEntries(NamedTuple):
    """Some units, which are documents or parts of documents, in host memory.

    hashes : array of uint64, shape (units, 2)
        The 128 bits of the word sequence of each; of documents without words, see `sketching.WORDLESS`.
    tokens : array of int64, shape (units,)
    keys : array, a row for each unit
        What `Sketch.keys` gives, uint64; of methods that do not sketch, no columns, or what their finder puts there.
    sets : Ragged of uint64
        Distinct shingles, ascending; of an index without sets, and of units that are not compared, no shingles.
    sketch : array, a row for each unit, or None
        What `Sketch.stored` gives, in an index that keeps it.
    words : array of uint64, shape (units,), or None
        The word of each unit's group, if only documents of equal values are compared. It is mixed into the hashes,
        the keys, the sets, and simhashes; see `conditions.py`.
    only_dropped_words : int
        Number of the units that have no words but dropped ones, where they are sketched.
    are_written : array of bool, shape (units,), or None
        Which ones count as one if they are equal: documents that are not blank, or parts with enough tokens. None for
        stored entries, which differ.
    """

    hashes: np.ndarray
    tokens: np.ndarray
    keys: Any
    sets: Ragged
    sketch: np.ndarray | None = None
    words: np.ndarray | None = None
    only_dropped_words: int = 0
    are_written: np.ndarray | None = None

    @property
    def num_bytes(self) -> int:
        """The number of bytes."""
        arrays = [self.hashes, self.tokens, self.keys, self.sets.values, self.sets.offsets]
        return sum(array.nbytes for array in arrays) + (0 if self.sketch is None else self.sketch.nbytes)

    def take(self, rows: np.ndarray) -> SketchedEntries:
        """Some of them."""
        if len(rows) == len(self.tokens) and (np.diff(rows) == 1).all():  # all
            return self
        sets = Ragged(*gather.cpu(self.sets.values, self.sets.offsets, rows))
        sketch = None if self.sketch is None else self.sketch[rows]
        words, written = (None if each is None else each[rows] for each in (self.words, self.are_written))
        keys = self.keys[rows]
        return SketchedEntries(self.hashes[rows], self.tokens[rows], keys, sets, sketch, words, are_written=written)


class EntryRange(NamedTuple):
    """The entries among which some documents look for candidates.

    first, stop : arrays of int64, shape (documents,)
        Each document looks among entries from `first` on and before `stop`.
    most : int
        The number of candidates at which each document stops.
    allowed : list of arrays of uint8, or None
        For each segment, the rows that count. None means the live ones.
    """

    first: np.ndarray
    stop: np.ndarray
    most: int
    allowed: list[np.ndarray] | None = None

    def rows_of(self, number: int, segment: Segment) -> np.ndarray:
        """Return which rows of a segment count, given also by its number."""
        return segment.live_entries if self.allowed is None else self.allowed[number]


class FoundEntries(NamedTuple):
    """Candidates of some documents.

    queries : array of int64, shape (candidates,)
        Number of the document, ascending.
    entries : array of int64, shape (candidates,)
        Its candidates, ascending for each.
    """

    queries: np.ndarray
    entries: np.ndarray


class Finder(ABC):
    """How an index finds candidates by a method; `Method.finder` makes one for a recipe.

    Unless it says otherwise, it stores no tables and no sketches, and needs no order of shingles.

    Parameters
    ----------
    recipe : Recipe
    keeps : Keeps
        What the index stores: as given, and completed for a new index.
    """

    least: float | None = None
    """The least threshold at which it finds all pairs; None if the threshold does not matter."""

    radius: int | None = None
    """The most bits in which simhashes that it finds differ; None if it does not find by distance."""

    def __init__(self, recipe: Recipe, keeps: Keeps) -> None:
        self.keeps, self.least_words = keeps, recipe.unit.min_words

    @property
    def tables(self) -> dict[str, int | None]:
        """The names of its tables, and how many tables lie under each; None where it is one, of one dimension."""
        return {}

    @property
    def sketch(self) -> tuple[str, tuple[int, ...]] | None:
        """The dtype of the array `sketch` and the shape of each of its rows; None if the method stores none."""
        return None

    def prepared(self, sketches: SketchedEntries, order: Order | None) -> tuple[SketchedEntries, Order | None]:
        """New entries as `arrays` and `first` take them, and the order of shingles of the whole index, if it needs one.

        The order is made from the entries if there is none yet. Queries are not prepared.
        """
        return sketches, None

    def remade(self, sketches: SketchedEntries, order: Order | None) -> SketchedEntries | None:
        """Return stored entries as `arrays` takes them, with keys that are made again; None where they cannot be.

        Parameters
        ----------
        sketches : SketchedEntries
            Words, sets and sketches of entries, as `sketches.stored` gives them.
        order : Order or None
            The order of the index, if it has one.
        """
        return sketches

    def lengths(self, segment: Segment) -> np.ndarray:
        """Return how many rows each entry of a segment should have in each table: one, if it has enough words."""
        return (segment["tokens"] >= self.least_words).astype(np.int64) * bool(self.tables)

    def arrays(self, sketches: SketchedEntries) -> dict[str, np.ndarray]:
        """The parts of entries that a segment keeps: columns named in `segments.COLUMNS`, and sorted tables.

        A table is two arrays, `X_keys` and `X_rows`; the rows are 32-bit numbers of entries. Both may have
        several tables as their rows. Merging keeps whatever tables there are.
        """
        return {}

    @abstractmethod
    def first(self, snapshot: Snapshot, sketches: SketchedEntries, reach: EntryRange) -> FoundEntries:
        """Return the first candidates of each document among the entries in its reach.

        A segment in memory holds the documents themselves. Each looks for entries before itself.
        """

    def keys(self, snapshot: Snapshot, entries: np.ndarray) -> np.ndarray:
        """Return the keys of some stored entries that `Sketch.collide` compares."""
        return np.empty((len(entries), 0), np.uint64)
