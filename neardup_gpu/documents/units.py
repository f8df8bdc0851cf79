"""Units: the parts of documents that are compared, between reading and sketching.

Every stage from sketching to deciding counts units and knows no documents. Tables and edits know which document owns
each unit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from ..data import Ragged, arrow
from ..errors import ParameterError
from ..records import dataclass
from .edits import Cuts, Edits, inside
from .nested import holder
from .stream import Batch, Documents

if TYPE_CHECKING:
    from ..recipe import Recipe


class Places(NamedTuple):
    """The places of units: arrays with a value per unit, by ascending document and place.

    owner : array of int64
        The number of the document that a unit is part of.
    begin, end : arrays of int64
        The bytes of the text of the document; a line is given without its line break.
    before, after : arrays of uint8
        Bytes of the line break before the unit and of the one after it; 0 if there is none.
    """

    owner: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    before: np.ndarray
    after: np.ndarray


@dataclass(frozen=True, eq=False)
class Units:
    """The units of consecutive documents.

    Parameters
    ----------
    text : Ragged of uint8
        One row per unit.
    batch : Batch
        The documents.
    places : Places, optional
        Where the units are, with the numbers of documents in the batch; None if each document is a unit.
    """

    text: Ragged
    batch: Batch
    places: Places | None = None

    @property
    def ids(self) -> Any:
        """The id of the document of each unit."""
        return self.batch.ids if self.places is None else self.batch.ids.take(arrow(self.places.owner))


def units_in(
    documents: Documents, unit: str, columns: Iterable[str], max_bytes: int, *, at_least_one: bool = False
) -> Iterator[Units]:
    """Yield the units of batches of documents, of about `max_bytes`.

    If `at_least_one`, and there are no documents, yield units of none, so that there are sketches of none.
    """
    batches = documents.batches(columns=columns, max_bytes=max_bytes)
    first = next(batches, None)
    if first is None and at_least_one:
        first = Batch(0, pa.nulls(0, pa.int64()), Ragged(np.empty(0, np.uint8), np.zeros(1, np.int64)), 0, {})
    while first is not None:
        yield Units(first.text, first) if unit == "document" else Units(*_lines_of(first.text, first))
        first = next(batches, None)


def _lines_of(text: Ragged, batch: Batch) -> tuple[Ragged, Batch, Places]:
    r"""Divide texts at each ``\n``, with a ``\r`` before it; a line of nothing but white space is not a unit."""
    values, offsets = text.values[text.offsets[0] : text.offsets[-1]], text.offsets - text.offsets[0]
    is_stop = np.append(False, values == ord("\n"))
    is_stop[offsets[1:]] = True
    is_stop[0] = False
    stops = np.flatnonzero(is_stop)
    begins = np.append(0, stops[:-1])[: len(stops)]
    ended = values[stops - 1] == ord("\n")
    after = ended.astype(np.uint8) + (ended & (stops - begins > 1) & (values[stops - 2] == ord("\r")))
    owner = np.searchsorted(offsets, begins, side="right") - 1
    before = np.append(np.uint8(0), after[:-1])[: len(stops)] * (begins > offsets[owner])
    ends = stops - after
    full = np.logical_or.reduceat(values > ord(" "), begins) if len(stops) else ended
    begins, ends, owner = begins[full], ends[full], owner[full]
    lines = values[inside(begins, ends, len(values))]
    found = Ragged._trusted(lines, np.append(0, np.cumsum(ends - begins)))
    for array in (found.values, found.offsets):
        array.flags.writeable = False  # like those of a batch: kernels are compiled for one kind of array
    start = offsets[owner]
    return found, batch, Places(owner, begins - start, ends - start, before[full], after[full])


def joined_places(places: list[Places], unit: str) -> Places | None:
    """Join the places of several batches; None if each document is a unit."""
    if unit == "document":
        return None
    none = Places(*(np.empty(0, np.int64) for _ in range(3)), *(np.empty(0, np.uint8) for _ in range(2)))
    return Places(*map(np.concatenate, zip(none, *places, strict=True)))


def check_whole(recipe: Recipe, option: str) -> None:
    """Raise ParameterError if a recipe has units for which an option does not work yet."""
    if recipe.unit != "document":
        raise ParameterError(f"unit {recipe.unit!r} and {option}: only a job in memory cuts {recipe.unit}s")


def check_divisible(unit: str, documents: Documents, against: Any) -> None:
    """Raise ParameterError if documents cannot be divided into such units, or their parts cannot be cut."""
    if against is not None:
        raise ParameterError(f"unit {unit!r} and against: {unit}s are compared within the input; leave one of them out")
    if documents.html:
        raise ParameterError(f"unit {unit!r} and html: markup cannot be cut; extract the text first, or leave html out")
    names = documents.text_columns
    if len(names) > 1 or any(holder(reader.schema, names[0]) != names[0] for reader in documents._readers):
        raise ParameterError(
            f"unit {unit!r}: needs one column of text, not inside another one, not {', '.join(names)}; name it "
            "with text_columns"
        )


class Fates(NamedTuple):
    """Decisions about documents that are divided into units.

    num_units, num_cut, num_tokens : arrays of int64, shape (documents,)
        Units of each document, those of them that are cut, and tokens of all its units.
    kept : array of bool, shape (documents,)
        A document is dropped if units of it are cut and no words are left.
    keeper : array of int64, shape (documents,)
        The document itself if it is kept, else the one that keeps its first unit. That one is kept.
    edits : Edits
    """

    num_units: np.ndarray
    num_cut: np.ndarray
    num_tokens: np.ndarray
    kept: np.ndarray
    keeper: np.ndarray
    edits: Edits


def fates_of(places: Places, keeper: np.ndarray, num_tokens: np.ndarray, num_documents: int) -> Fates:
    """Decide about documents.

    Parameters
    ----------
    places : Places
    keeper, num_tokens : arrays of int64, shape (units,)
        The unit that each unit is cut for, itself if it is not cut; and its number of tokens.
    num_documents : int
    """
    cut = keeper != np.arange(len(keeper))
    owner = places.owner
    num_units, num_cut, num_left, tokens = (
        np.bincount(owner, weights, num_documents).astype(np.int64)
        for weights in (None, cut, np.where(cut, 0, num_tokens), num_tokens)
    )
    kept = (num_cut == 0) | (num_left > 0)
    keepers = np.arange(num_documents)
    first = np.flatnonzero(cut & ~kept[owner])[::-1]  # the first one of a document is assigned last
    keepers[owner[first]] = owner[keeper[first]]
    return Fates(
        num_units, num_cut, tokens, kept, keepers, Edits(kept, _cuts(places, cut & kept[owner], num_documents))
    )


def _cuts(places: Places, cut: np.ndarray, num_documents: int) -> Cuts:
    """Return the spans that cut units leave: each takes the line break after it along.

    A last line without a line break takes the one before it, so that the text ends without one, as it did.
    """
    owner, begins, ends, before, after = (array[cut] for array in places)
    ends = ends + after
    follows = np.append(False, (owner[1:] == owner[:-1]) & (begins[1:] == ends[:-1]))[: len(begins)]
    run = np.maximum.accumulate(np.where(follows, 0, np.arange(len(begins))))[after == 0]
    begins[run] -= before[run]
    return Cuts(np.searchsorted(owner, np.arange(num_documents + 1)), begins, ends)
