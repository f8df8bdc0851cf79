"""Edits: which documents are kept and what is cut out of their texts, handed out file by file.

A reader yields its rows in pieces, as they are stored, and knows no edits: `kept_rows` chooses the rows of each piece.
`rewritten` cuts, on Arrow batches.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from ..data import arrow
from ..errors import InputError
from ..records import dataclass
from ..report import count
from .ahead import Step, closing

if TYPE_CHECKING:
    import pyarrow as pa

    from .contract import Reader
    from .passes import Pass

T = TypeVar("T")


class StoredRows(Protocol):
    """Consecutive rows as they are stored in a file."""

    @property
    def num_rows(self) -> int: ...

    @property
    def num_bytes(self) -> int: ...

    def raw(self, keep: np.ndarray) -> Iterable[Any]:
        """Return the rows at which `keep` is true in the form in which the reader writes them."""

    def select(self, keep: np.ndarray) -> Self:
        """Return the rows at which `keep` is true, to be read as Arrow batches."""


@dataclass(frozen=True, eq=False)
class Items(Generic[T]):
    """Rows that are files or records: each is an item by itself."""

    items: Sequence[T]
    num_bytes: int = 0

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return len(self.items)

    def raw(self, keep: np.ndarray) -> list[T]:
        """Return the items at which `keep` is true."""
        return [item for item, is_kept in zip(self.items, keep.tolist(), strict=True) if is_kept]

    def select(self, keep: np.ndarray) -> Items[T]:
        """Return the rows at which `keep` is true."""
        return Items(self.raw(keep))


class Cuts(NamedTuple):
    """Spans to cut out of texts, in bytes of each text as it is compared.

    offsets : array of int64, shape (documents + 1,)
        The spans of document i are `offsets[i]` to `offsets[i + 1]`.
    begins, ends : arrays of int64, shape (spans,)
        Within a document, spans ascend. They may overlap.
    """

    offsets: np.ndarray
    begins: np.ndarray
    ends: np.ndarray

    def of(self, first: int, stop: int) -> Cuts:
        """Return the spans of documents `first` to `stop`."""
        spans = slice(self.offsets[first], self.offsets[stop])
        return Cuts(self.offsets[first : stop + 1] - self.offsets[first], self.begins[spans], self.ends[spans])


def inside(begins: np.ndarray, ends: np.ndarray, size: int) -> np.ndarray:
    """Return which of `size` bytes lie inside some spans, which ascend and do not overlap: bool, shape (size,)."""
    runs = np.empty(2 * len(begins) + 1, np.int64)  # outside, inside, and so on
    runs[::2] = np.append(begins, size) - np.append(0, ends)
    runs[1::2] = ends - begins
    return np.repeat(np.arange(len(runs)) % 2 == 1, runs)


@dataclass(frozen=True, eq=False)
class Edits:
    """A decision per document: to keep it, to drop it, or to cut spans out of its text.

    Parameters
    ----------
    keep : array of bool, shape (documents,)
        Whether each document is kept, with or without cuts.
    cuts : Cuts, optional
        The spans of all documents; None if nothing is cut. A dropped document has none.
    marks : str, optional
        The name of a new column, which gets the spans; they are not cut then.
    columns : dict of str to pyarrow.Array
        The values of further new columns. `columns.SEAMS` names the one that says where each document was cut.
    """

    keep: np.ndarray
    cuts: Cuts | None = None
    marks: str | None = None
    columns: dict[str, pa.Array] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.keep)

    def of(self, first: int, stop: int) -> Edits:
        """Return the edits of documents `first` to `stop`."""
        cuts = None if self.cuts is None else self.cuts.of(first, stop)
        columns = {name: values.slice(first, stop - first) for name, values in self.columns.items()}
        return Edits(self.keep[first:stop], cuts, self.marks, columns)

    def over_all_rows(self, passes: list[Pass]) -> Edits:
        """Return the edits of all rows that readers have: rows that were skipped are dropped."""
        if not any(each.skipped.ranges for each in passes):
            return self
        read = np.concatenate([each.read_rows() for each in passes])
        keep = np.zeros(len(read), bool)
        keep[read] = self.keep
        before = np.concatenate([[0], np.cumsum(read)])  # documents before each row
        cuts = None if self.cuts is None else self.cuts._replace(offsets=self.cuts.offsets[before])
        columns = {name: values.take(arrow(before[:-1], ~read)) for name, values in self.columns.items()}
        return Edits(keep, cuts, self.marks, columns)

    def cuts_of_kept(self) -> Cuts | None:
        """Return the spans of the kept documents alone."""
        if self.cuts is None:
            return None
        kept = np.append(np.flatnonzero(self.keep), len(self))
        return self.cuts._replace(offsets=self.cuts.offsets[kept])

    def columns_of_kept(self) -> dict[str, pa.Array]:
        """Return the values of new columns of the kept documents alone."""
        return {name: values.filter(arrow(self.keep)) for name, values in self.columns.items()}


class EditQueue:
    """The edits of all rows, handed out file by file.

    Parameters
    ----------
    edits : Edits
    progress : callable, optional
        Called with the number of rows that were handed out, and the number of all.
    """

    def __init__(self, edits: Edits, progress: Callable[[int, int], None] | None = None) -> None:
        self.edits, self.position, self.progress = edits, 0, progress
        self._counting = threading.Lock()
        self._whole: EditQueue | None = None

    def divided(self, numbers: Sequence[int]) -> list[EditQueue]:
        """Divide the edits into consecutive parts; several threads may take from them, each from its own."""
        ends = np.cumsum(numbers).tolist()
        ends[-1] = len(self.edits)
        parts = [EditQueue(self.edits.of(first, stop)) for first, stop in pairwise([0, *ends])]
        for part in parts:
            part._whole = self
        return parts

    def take(self, number: int, name: str) -> Edits:
        """Return the edits of the next `number` rows, which are in the file `name`."""
        first, whole = self.position, self if self._whole is None else self._whole
        with whole._counting:
            self.position += number
            if whole is not self:
                whole.position += number
            if self.position > len(self.edits):
                raise InputError(
                    f"{name}: more documents than when it was first read; run again on files that do not change."
                )
            if whole.progress is not None:
                whole.progress(whole.position, len(whole.edits))
        return self.edits.of(first, self.position)

    def finish(self) -> None:
        """Raise InputError unless the edits of all rows have been taken."""
        if self.position != len(self.edits):
            raise InputError(
                f"{count(len(self.edits), 'document')} at the first reading, and now {self.position:,}; "
                "run again on files that do not change."
            )


def kept_rows(reader: Reader, queue: EditQueue, use: Callable[[Any, Edits], Iterable[T]]) -> Iterator[Step[T]]:
    """Yield steps over the pieces of a reader that have kept rows.

    Parameters
    ----------
    reader : Reader
    queue : EditQueue
        The edits of the rows of the reader.
    use : callable
        Gives the results of a step, from a piece and the edits of its rows.
    """
    with closing(reader.stored()) as pieces:
        for piece in pieces:
            edits = queue.take(piece.num_rows, reader.name)
            if edits.keep.any():
                yield Step(partial(use, piece, edits), piece.num_bytes)


def as_stored(piece: StoredRows, edits: Edits) -> Iterable[Any]:
    """Return the kept rows of a piece in the form in which its reader writes them."""
    return piece.raw(edits.keep)
