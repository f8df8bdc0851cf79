"""The contract of finders: what a file in this folder says of how an index finds candidates by a method.

A finder knows what is kept of entries in addition to what all methods keep (`segments.py`), and finds the entries that
may resemble some others. What becomes of candidates, see `candidates.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

if TYPE_CHECKING:
    from ..keeps import Keeps
    from ..order import Order
    from ..segments import Segment
    from ..sketches import SketchedEntries
    from ..snapshot import Snapshot


class FoundEntries(NamedTuple):
    """Candidates of some documents.

    queries : array of int64, shape (candidates,)
        Number of the document, ascending.
    entries : array of int64, shape (candidates,)
        Its candidates, ascending for each.
    """

    queries: np.ndarray
    entries: np.ndarray


class Finder(Protocol):
    """How an index finds candidates by a method; `Method.finder` makes one for a recipe.

    keeps : Keeps
        What the index stores: as given, and completed for a new index.
    least : float or None
        The least threshold at which it finds all pairs; None if the threshold does not matter.
    radius : int or None
        The most bits in which simhashes that it finds differ; None if it does not find by distance.
    """

    keeps: Keeps
    least: float | None
    radius: int | None

    @property
    def tables(self) -> dict[str, int | None]:
        """The names of its tables, and how many tables lie under each; None where it is one, of one dimension."""
        ...

    @property
    def sketch(self) -> tuple[str, tuple[int, ...]] | None:
        """The dtype of the array `sketch` and the shape of each of its rows; None if the method stores none."""
        ...

    def prepared(self, sketches: SketchedEntries, order: Order | None) -> tuple[SketchedEntries, Order | None]:
        """New entries as `arrays` and `first` take them, and the order of shingles of the whole index, if it needs one.

        The order is made from the entries if there is none yet. Queries are not prepared.
        """
        ...

    def remade(self, sketches: SketchedEntries, order: Order | None) -> SketchedEntries | None:
        """Return stored entries as `arrays` takes them, with keys that are made again; None where they cannot be.

        Parameters
        ----------
        sketches : SketchedEntries
            Words, sets and sketches of entries, as `sketches.stored` gives them.
        order : Order or None
            The order of the index, if it has one.
        """
        ...

    def lengths(self, segment: Segment) -> np.ndarray:
        """Return how many rows each entry of a segment should have in each of its tables."""
        ...

    def arrays(self, sketches: SketchedEntries) -> dict[str, np.ndarray]:
        """The parts of entries that a segment keeps: columns named in `segments.COLUMNS`, and sorted tables.

        A table is two arrays, `X_keys` and `X_rows`; the rows are 32-bit numbers of entries. Both may have
        several tables as their rows. Merging keeps whatever tables there are.
        """
        ...

    def first(
        self,
        snapshot: Snapshot,
        sketches: SketchedEntries,
        first: np.ndarray,
        stop: np.ndarray,
        most: int,
        allowed: list[np.ndarray] | None = None,
    ) -> FoundEntries:
        """The first `most` candidates of each document among entries from `first` on and before `stop`.

        A segment in memory holds the documents themselves. Each looks for entries before itself.

        first, stop : arrays of int64, shape (documents,)
        allowed : list of arrays of uint8
            Of each segment, which rows count; the live ones, unless given.
        """
        ...

    def keys(self, snapshot: Snapshot, entries: np.ndarray) -> np.ndarray:
        """Return the keys of some stored entries that `Sketch.collide` compares."""
        ...
