"""Units: the parts of documents that are compared, between reading and sketching.

Every stage from sketching to deciding counts units and knows no documents. Tables and edits know which document owns
each unit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ..data import Ragged, arrow, ranges, read_only, runs_of
from ..engine.processors import own_threads
from ..errors import InputError, ParameterError
from ..keep_rule import compares_lengths
from ..recipe import Recipe
from ..records import dataclass
from ..settings import refuse_unused
from ..text import boundaries
from ..text.boundaries import Spans, full, grouped
from ..text.token_kinds import open_code
from ..text.unit_options import Unit
from .ahead import ahead
from .batches import spans_of
from .edits import Cuts, Edits, inside
from .joined_text import BETWEEN_COLUMNS, COLUMN_END
from .nested import holder, steps_of
from .rewritten import EXTRACTED, check_writing
from .stream import Batch, Documents
from .writing_options import ROWS, Writing, rewriting


class Places(NamedTuple):
    """The places of units: arrays with a value per unit, by ascending document and place.

    owner : array of int64
        The number of the document that a unit is part of.
    begin, end : arrays of int64
        The bytes of the text of the document, without what divides the unit from others.
    before, after : arrays of int32
        Bytes that divide the unit from the one before it and from the one after it; 0 if there are none.
    marks : array of uint8
        As in `boundaries.Spans`.
    """

    owner: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    before: np.ndarray
    after: np.ndarray
    marks: np.ndarray

    @property
    def numbers(self) -> np.ndarray:
        """The number of each unit in its document, from 0."""
        return np.arange(len(self.owner)) - np.repeat(*runs_of(self.owner))

    @property
    def touches(self) -> np.ndarray:
        """Whether each unit begins where the one before it, with what divides the two, ends."""
        is_same = self.owner[1:] == self.owner[:-1]
        return np.append(False, is_same & (self.begin[1:] == self.end[:-1] + self.after[:-1]))[: len(self.owner)]

    @property
    def columns(self) -> dict[str, np.ndarray]:
        """The columns that say where each unit is; see `Unit.columns`."""
        return {"unit": self.numbers, "begin": self.begin, "end": self.end}

    def between(self, unit: int, stop: int | None, document: int) -> Places:
        """Return the places of units `unit` to `stop`, or to the last, with documents numbered from `document` on."""
        mine = Places(*(array[unit:stop] for array in self))
        return mine._replace(owner=mine.owner - document)


NO_PLACES = Places(*(np.empty(0, kind) for kind in (np.int64, np.int64, np.int64, np.int32, np.int32, np.uint8)))
"""The places of no units."""


def per_document(places: Places | None, values: np.ndarray, num_documents: int) -> np.ndarray:
    """Add up integers of the units of each document; as they are if each document is a unit."""
    return values if places is None else np.bincount(places.owner, values, num_documents).astype(np.int64)


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
    ends : array of int64, optional
        Where each unit ends in the values of `text`, if other bytes without words follow it in its row.
    """

    text: Ragged
    batch: Batch
    places: Places | None = None
    ends: np.ndarray | None = None

    @property
    def ids(self) -> Any:
        """The id of the document of each unit."""
        return self.batch.ids if self.places is None else self.batch.ids.take(arrow(self.places.owner))

    @property
    def names(self) -> Any:
        """The id of the document of each unit, for messages: no id is copied."""
        ids = self.batch.ids
        return ids if self.places is None else pa.DictionaryArray.from_arrays(arrow(self.places.owner), ids)

    @property
    def first_unit(self) -> np.ndarray:
        """The number of the first unit of each document, and the number of all units: int64."""
        documents = np.arange(self.batch.num_rows + 1)
        return documents if self.places is None else np.searchsorted(self.places.owner, documents)

    @property
    def columns(self) -> dict[str, np.ndarray]:
        """The columns that a file of sketches has of each unit; none if each document is a unit."""
        return {} if self.places is None else self.places.columns


def units_in(
    documents: Documents,
    recipe: Recipe,
    columns: Iterable[str],
    max_bytes: int,
    *,
    at_least_one: bool = False,
    with_gaps: bool = False,
) -> Iterator[Units]:
    """Yield the units of batches of documents, of about `max_bytes`; the next documents are divided meanwhile.

    If `at_least_one`, and there are no documents, yield units of none, so that there are sketches of none.
    `with_gaps` is that of `divided`.
    """
    unit = recipe.unit

    def made() -> Iterator[Units]:
        size, step = unit.grouped
        batches = documents.batches(columns=columns, max_bytes=max(1, max_bytes * step // size))
        first = next(batches, None)
        if first is None and at_least_one:
            first = Batch(0, pa.nulls(0, pa.int64()), Ragged(np.empty(0, np.uint8), np.zeros(1, np.int64)), 0, {})
        while first is not None:
            if unit.divides and len(documents.text_columns) > 1:
                first = replace(first, text=_with_blank_lines(first.text))
            yield divided(first, recipe, with_gaps) if unit.divides else Units(first.text, first)
            first = next(batches, None)

    return ahead(made()) if unit.divides and own_threads() > 1 else made()


def _with_blank_lines(text: Ragged) -> Ragged:
    """Return joined columns with blank lines between columns, so that no unit is part of two."""
    values = text.values.tobytes().replace(COLUMN_END, BETWEEN_COLUMNS)  # of the same size
    return Ragged._trusted(np.frombuffer(values, np.uint8), text.offsets)


def divided(batch: Batch, recipe: Recipe, with_gaps: bool = False) -> Units:
    """Divide the documents of a batch. Parts of nothing but white space and control characters are not units.

    If `with_gaps`, the text of lines and paragraphs is that of the batch, and what divides two units follows the first
    one: nothing is copied, and words of consecutive units are found in less time. Of code, the text of a unit that
    begins or ends inside a comment or a string is blank, so that it is never cut: without it, what follows would have
    other tokens.
    """
    text, unit = batch.text, recipe.unit
    values, offsets = text.values[text.offsets[0] : text.offsets[-1]], text.offsets - text.offsets[0]
    spans: Spans = getattr(boundaries, unit.boundaries)(values, offsets)
    document = np.repeat(np.arange(batch.num_rows), np.diff(np.searchsorted(spans.begin, offsets)))
    before = spans.begin - np.append(0, spans.end[:-1])[: len(spans.end)]
    before[np.append(-1, document[:-1])[: len(document)] != document] = 0
    if unit.boundaries != "words":
        filled = np.flatnonzero(full(values, spans))  # numbers take less time than a mask for each array
        spans, document, before = spans.some(filled), document[filled], before[filled]
    size, step = unit.grouped
    if size > 1:
        spans, first = grouped(spans, np.bincount(document, minlength=batch.num_rows), size, step)
        document, before = document[first], before[first]
    start, after = offsets[document], spans.stop - spans.end
    places = Places(
        *(document, spans.begin - start, spans.end - start, before.astype(np.int32), after.astype(np.int32)),
        spans.marks,
    )
    if with_gaps and unit.boundaries in ("lines", "paragraphs") and not unit.overlaps and len(spans.begin):
        first = spans.begin[0]
        rows = Ragged._trusted(read_only(values[first:]), read_only(np.append(spans.begin, len(values)) - first))
        return Units(rows, batch, places, spans.end - first)
    if recipe.shingles.tokens == "code" and recipe.method.equal_by is None and not unit.overlaps:
        is_open = open_code(Ragged._trusted(values, offsets), recipe, batch.ids)
        blank = is_open[spans.begin]
        follows = spans.end < offsets[document + 1]
        blank[follows] |= is_open[spans.end[follows]]
        values = np.where(inside(spans.begin[blank], spans.end[blank], len(values)), np.uint8(ord(" ")), values)
    return Units(_texts(values, spans), batch, places)


def _texts(values: np.ndarray, spans: Spans) -> Ragged:
    """Return the texts of some spans."""
    if (spans.begin[1:] >= spans.end[:-1]).all():
        return spans_of(values, spans.begin, spans.end)
    sizes = spans.end - spans.begin
    return Ragged._trusted(read_only(values[ranges(spans.begin, sizes)]), read_only(np.append(0, np.cumsum(sizes))))


def joined_places(places: list[Places], unit: Unit) -> Places | None:
    """Join the places of several batches; None if each document is a unit."""
    return Places(*map(np.concatenate, zip(NO_PLACES, *places, strict=True))) if unit.divides else None


def placed_after(sizes: list[int], places: list[Places | None]) -> Places | None:
    """Join the places of consecutive documents, given the number of documents of each part; None if there are none."""
    before, parts = np.cumsum([0, *sizes]).tolist(), []
    for number, each in zip(before[:-1], places, strict=True):
        if each is None:
            return None
        parts.append(each._replace(owner=each.owner + number))
    return Places(*map(np.concatenate, zip(NO_PLACES, *parts, strict=True)))


def _is_inside(schema: pa.Schema, name: str) -> bool:
    """Return whether a column is inside another one; JSON lines list such a column next to the other one."""
    outer, *inner = steps_of(name)
    return holder(schema, name) != name or bool(inner and outer in schema.names)


def check_divisible(what: str, documents: Documents) -> None:
    """Raise ParameterError if parts of documents cannot be cut; `what` is the option that cuts them."""
    names, readers = documents.text_columns, documents._readers
    if any(_is_inside(reader.schema, name) for reader in readers for name in names):
        raise ParameterError(
            f"{what}: needs columns of text that are not inside another one, not {', '.join(names)}; name them "
            "with text_columns"
        )
    if documents.extracts_text and any(EXTRACTED in reader.schema.names for reader in readers):
        raise ParameterError(
            f"{what}: the text would be written as the column {EXTRACTED!r}, which is there already; rename it, "
            f"or name it with text_columns"
        )


def check_action(action: str, marks: str, writing: Writing, documents: Documents) -> Writing:
    """Return how kept/ is written after an action on texts; refuse, before all work, what cannot be written.

    Parameters
    ----------
    action : "list", "drop", "cut" or "mark"
    marks : str
        The column that "mark" adds.
    writing : Writing
    documents : Documents

    Raises
    ------
    InputError, ParameterError
        If the documents cannot be read again, their texts cannot be cut, or columns cannot be written.
    """
    if action == "list":
        refuse_unused(writing, "action 'list'", ROWS)
        return writing
    if not documents.rewindable:
        raise InputError("the input is a stream and cannot be read again to write kept/; pass a table or files")
    documents._check_kept()
    if action != "drop":
        check_divisible(f"action {action!r}", documents)
        writing = rewriting(writing, documents)
    for name in documents.text_columns if action == "cut" and documents._policy.integers else ():
        schemas = [reader.schema for reader in documents._readers if name in reader.schema.names]
        if any(pa.types.is_fixed_size_list(schema.field(name).type) for schema in schemas):
            raise InputError(f"action 'cut': column {name!r} holds lists of one length; cast it to lists of any length")
    if action == "mark" and any(marks in reader.schema.names for reader in documents._readers):
        raise InputError(f"the input has a column {marks!r} already, which --action mark would add; rename it")
    check_writing(documents, writing)
    return writing


class UnitDecisions(NamedTuple):
    """The decisions about the units of some documents: arrays with a value per unit.

    repeats : array of bool
        Whether each unit repeats another one, its source; see `are_repeats`.
    kind : array of int8
        How the unit is like its source: a place in `decisions.KINDS`.
    num_tokens : array of int64
    spared : array of int64
        The units that are kept as copies; see `spared_copies`.
    named : array of bool, shape (documents,)
        Whether a unit of each document is a source.
    """

    repeats: np.ndarray
    kind: np.ndarray
    num_tokens: np.ndarray
    spared: np.ndarray
    named: np.ndarray


REASONS = ("identical", "same_words", "near", "copy", "seam", "overlaps", "dropped")
"""Why a unit is not kept, or is kept though it repeats a source:

- identical, same_words, near: it is cut, as it repeats its source in this way.
- copy: it is kept as one of several copies.
- seam: it is kept, as its neighbours would grow together to one unit.
- overlaps: it is kept, as it shares text with other units.
- dropped: it is not a copy, but its document is dropped.
"""

NO_REASON = -1
NEAR, COPY, SEAM, OVERLAPS, DROPPED = range(2, 7)


class Fates(NamedTuple):
    """Decisions about documents that are divided into units, and about the units.

    num_units, num_cut, num_tokens, num_left : arrays of int64, shape (documents,)
        Units of each document, those of them that are cut, tokens of all its units, and tokens that are left.
    kept : array of bool, shape (documents,)
        Whether each document is kept.
    is_source : array of bool, shape (documents,)
        Whether a document has few tokens left, and is kept because it has a source.
    first : array of int64, shape (documents,)
        The first unit that is cut of each document that is dropped, else -1.
    edits : Edits
    reason : array of int8, shape (units,)
        A place in `REASONS`, or `NO_REASON`.
    unit_kept : array of bool, shape (units,)
    """

    num_units: np.ndarray
    num_cut: np.ndarray
    num_tokens: np.ndarray
    num_left: np.ndarray
    kept: np.ndarray
    is_source: np.ndarray
    first: np.ndarray
    edits: Edits
    reason: np.ndarray
    unit_kept: np.ndarray

    def counts(self, unit: Unit) -> dict[str, int]:
        """Count the decisions, as a report has them."""
        return {
            "kept": int(self.kept.sum()),
            "removed": int((~self.kept).sum()),
            "units": int(self.num_units.sum()),
            "units_cut": int(self.num_cut.sum()),
            "units_listed": int(np.count_nonzero((self.reason != NO_REASON) & self.unit_kept)),
            **({} if unit.overlaps else {"tokens_left": int(self.num_left.sum())}),
            "short_sources": int(self.is_source.sum()),
            "empty": int(np.count_nonzero(self.num_tokens == 0)),
        }


def are_repeats(unit: Unit, has_source: np.ndarray, kind: np.ndarray, same_document: np.ndarray) -> np.ndarray:
    """Return which units repeat another one. Equal units of one document do not, unless `inside`.

    Parameters
    ----------
    unit : Unit
    has_source : array of bool
        Whether another unit is kept in place of each unit.
    kind : array of int8
        How the two are alike: a place in `decisions.KINDS`.
    same_document : array of bool
        Whether they are of the same document.
    """
    return has_source if unit.inside else has_source & ((kind == NEAR) | ~same_document)


def fates_of(places: Places, decided: UnitDecisions, recipe: Recipe) -> Fates:
    """Decide about documents, whose units have the places `places`."""
    owner, repeats, number, unit = places.owner, decided.repeats, len(decided.named), recipe.unit
    reason = np.where(repeats, decided.kind, NO_REASON).astype(np.int8)
    cut = repeats.copy()
    if unit.overlaps:
        reason[cut], cut = OVERLAPS, np.zeros(len(cut), bool)
    reason[decided.spared], cut[decided.spared] = COPY, False
    joins = (_all_joining if compares_lengths(recipe.keep) else _joining)(places, cut)
    reason[joins], cut[joins] = SEAM, False
    first_unit = np.searchsorted(owner, np.arange(number + 1))
    num_cut, num_left, tokens = (
        np.diff(np.append(0, np.cumsum(values))[first_unit])
        for values in (cut, np.where(cut, 0, decided.num_tokens), decided.num_tokens)
    )
    is_short = (num_cut > 0) & (num_left < unit.drop_below)
    kept = ~is_short | decided.named
    dropped = ~kept[owner]
    reason[dropped] = np.where(repeats, decided.kind, DROPPED)[dropped]
    first = np.full(number, -1)
    cut_first = np.flatnonzero(cut & dropped)[::-1]  # the first one of a document is assigned last
    first[owner[cut_first]] = cut_first
    return Fates(
        num_units=np.diff(first_unit),
        num_cut=num_cut,
        num_tokens=tokens,
        num_left=np.where(kept, num_left, 0),
        kept=kept,
        is_source=is_short & decided.named,
        first=first,
        edits=Edits(kept, _cuts(places, cut & ~dropped, number)),
        reason=reason,
        unit_kept=~(cut | dropped),
    )


def spared_copies(source: np.ndarray, holder: np.ndarray, rank: np.ndarray, unit: Unit) -> np.ndarray:
    """Return which of some repeats are kept, so that `keep_copies` holders of each source have it.

    The first holders by the rank of their first copy keep it, besides that of the source. A holder is a document or,
    if equal units of one document repeat each other, a unit.
    """
    if unit.keep_copies == 1 or unit.overlaps:
        return np.empty(0, np.int64)
    order = np.argsort(rank, kind="stable")
    pairs = np.stack([source[order], holder[order]], axis=1)
    _, first, number = np.unique(pairs, axis=0, return_index=True, return_inverse=True)
    chosen = np.argsort(first, kind="stable")
    by_source = chosen[np.argsort(source[order[first[chosen]]], kind="stable")]
    sources = source[order[first[by_source]]]
    begins = np.searchsorted(sources, sources)
    place = np.empty(len(first), np.int64)
    place[by_source] = np.arange(len(first)) - begins
    return order[place[number.reshape(-1)] < unit.keep_copies - 1]


def _joining(places: Places, cut: np.ndarray) -> np.ndarray:
    """Return the cut units that have to stay, as their neighbours would become one unit without them.

    Of a run of units that are cut, the last ones stay until what stands before them and after them stays apart.
    """
    stays: list[np.ndarray] = []
    if len(cut) == 0 or (places.marks == boundaries.ALWAYS).all():
        return np.empty(0, np.int64)
    cut, touches = cut.copy(), places.touches
    while True:
        follows = np.append(False, cut[:-1]) & cut & touches
        first = np.flatnonzero(cut & ~follows)
        last = np.flatnonzero(cut & ~np.append(follows[1:], False))
        between = touches[first] & np.append(touches, False)[last + 1]
        first, last = first[between], last[between]
        last = last[~boundaries.stay_apart(places.marks[first - 1], places.marks[last + 1])]
        if len(last) == 0:
            return np.concatenate([np.empty(0, np.int64), *stays])
        stays.append(last)
        cut[last] = False


def _all_joining(places: Places, cut: np.ndarray) -> np.ndarray:
    """Return the cut units that have to stay, if units are cut one after another until no more of them can be cut.

    So each unit that stays keeps its neighbours apart. A unit that did so from the start is cut only after a neighbour.
    """
    gone = cut & ~keep_apart(places)
    gone[_joining(places, gone)] = False
    while True:
        left = np.flatnonzero(~gone)
        loose = cut[left] & ~keep_apart(places, left)
        if not loose.any():
            return np.flatnonzero(cut & ~gone)
        number = np.arange(len(loose))
        loose &= (number - np.maximum.accumulate(np.where(loose, -1, number))) % 2 == 1  # not two neighbours at once
        gone[left[loose]] = True


def keep_apart(places: Places, left: np.ndarray | slice = slice(None)) -> np.ndarray:
    """Return which units keep the units before and after them apart: without one, the two would become one unit.

    `left` has the numbers of the units that are not cut; all, unless given.
    """
    found = np.zeros(len(places.marks[left]), bool)
    if len(found) > 2 and not (places.marks == boundaries.ALWAYS).all():
        gaps, marks = np.cumsum(~places.touches)[left], places.marks[left]
        found[1:-1] = (gaps[:-2] == gaps[2:]) & ~boundaries.stay_apart(marks[:-2], marks[2:])
    return found


def _cuts(places: Places, cut: np.ndarray, num_documents: int) -> Cuts:
    """Return the spans that cut units leave: each takes along what divides it from the unit after it.

    The last one of a text, if nothing follows it, takes what divides it from the unit before it.
    """
    last = np.append(places.owner[1:] != places.owner[:-1], True)[: len(cut)]
    some = np.flatnonzero(cut)
    owner, begins, ends, before, after = (array[some] for array in places[:5])
    ends = ends + after
    follows = np.append(False, (owner[1:] == owner[:-1]) & (begins[1:] == ends[:-1]))[: len(begins)]
    run = np.maximum.accumulate(np.where(follows, 0, np.arange(len(begins))))[(after == 0) & last[cut]]
    begins[run] -= before[run]
    return Cuts(np.searchsorted(owner, np.arange(num_documents + 1)), begins, ends)
