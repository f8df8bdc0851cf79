"""Texts of some documents, taken from the input again, and the words in which pairs of them differ.

The input is read once, up to the last document that is wanted, whatever their number.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .. import diff
from ..data import numpy_of
from ..documents import Documents
from ..errors import InputError
from ..log import log
from ..printable import printable
from ..raw_text import to_bytes, to_readable, to_string
from ..recipe import Recipe
from ..report import count
from ..stages import shingle, tokenize, utf8
from .run import Run

LONGEST = 300_000
"""Bytes of the longest text that is compared; of longer ones nothing is shown."""

HELD = 64 << 20
"""Bytes of text that are held at a time, at most."""

SHOWN = 6_000
"""Characters of a pair of texts that are shown, at most."""

SAME = 1_200
"""Characters that are shown of texts that are the same."""

Words = list[tuple[str, str]]
"""(op, text) as in `Explanation`."""


class Pair(NamedTuple):
    """A kept and a removed document: rows of the table of documents.

    Parameters
    ----------
    kept : int or str
        The id of the kept document.
    row : int
        Of the removed one.
    in_reference : bool
        Whether the kept one is of the reference set.
    """

    kept: Any
    row: int
    in_reference: bool


class Difference(NamedTuple):
    """The words of two texts, and notes on them."""

    words: Words
    notes: list[str]


def compared(run: Run, pairs: Sequence[Pair]) -> dict[int, Difference]:
    """How each removed document differs from the kept one, by its row; documents that are too long are left out.

    Raises
    ------
    InputError
        If the input is gone or has changed, or cannot be read again.
    """
    if not pairs:
        return {}
    log.info("report: reads the input once more, for the texts of %s", count(len(pairs), "removed document"))
    ids = run.documents["id"]
    mine = [pair for pair in pairs if not pair.in_reference]
    places = pc.index_in(pa.array([pair.kept for pair in mine], ids.type), ids.combine_chunks()).to_pylist()
    kept_rows = dict(zip((pair.row for pair in mine), places, strict=True))
    wanted = sorted({pair.row for pair in pairs} | {row for row in places if row is not None})
    texts = dict(zip(wanted, _by_ids(run.source(), ids.take(pa.array(wanted)), wanted), strict=True))
    theirs = list(dict.fromkeys(pair.kept for pair in pairs if pair.in_reference))
    known: dict[Any, str | None] = {}
    if theirs:
        known = dict(zip(theirs, _by_ids(run.reference(), pa.chunked_array([pa.array(theirs, ids.type)])), strict=True))
    found, measure = {}, run.measure()
    worths = dict(zip(wanted, run.documents[run.column].take(pa.array(wanted)).to_pylist(), strict=True))
    for pair in pairs:
        kept = known[pair.kept] if pair.in_reference else texts[kept_rows[pair.row]]
        text = texts[pair.row]
        if kept is None or text is None:
            continue
        if worths[pair.row] is not None and worths[pair.row] != _worth(
            run, measure.with_reference if pair.in_reference else measure, kept, text
        ):
            raise InputError("its input has changed since the result was made")
        found[pair.row] = difference(kept, text, run.recipe)
    return found


def _worth(run: Run, measure: Any, kept: str, text: str) -> float:
    """What a pair of texts is worth, computed again as `explain` does."""
    ours = shingle(
        tokenize(utf8([to_bytes(kept), to_bytes(text)]), run.recipe, backend="cpu"), run.recipe, backend="cpu"
    )
    if measure.weighted:
        return float(measure.of(*measure.sums(ours)))
    left, right = np.unique(ours[0]), np.unique(ours[1])
    return float(measure.of(len(np.intersect1d(left, right, assume_unique=True)), len(left), len(right)))


def _by_ids(documents: Documents, ids: pa.ChunkedArray, rows: Sequence[int] | None = None) -> list[str | None]:
    """The texts of documents by their ids, of which the rows are known unless rows were skipped; None if too long."""
    wanted = ids.combine_chunks()
    if documents.describe()["on_error"] == "skip":  # a row may be skipped for a column that is not read here
        rows = None
    found: dict[int, str | None] = {}
    held = 0
    with contextlib.closing(documents.batches()) as batches:  # type: ignore[type-var]
        for batch in batches:
            for number, place in _places(batch, wanted, rows):
                if number in found:
                    continue
                if batch.ids[place].as_py() != wanted[number].as_py():
                    raise InputError("its input has changed since the result was made")
                text = batch.text[place]
                held += len(text) if len(text) <= LONGEST else 0
                fits = len(text) <= LONGEST and held <= HELD
                found[number] = to_string(text.tobytes()) if fits else None
            if len(found) == len(wanted):
                break
    if len(found) < len(wanted):
        raise InputError("its input no longer holds all documents")
    return [found[number] for number in range(len(wanted))]


def _places(batch: Any, wanted: pa.Array, rows: Sequence[int] | None) -> Iterable[tuple[int, int]]:
    """(number of a wanted document, its place in a batch) of those that the batch holds."""
    if rows is not None:
        first, last = np.searchsorted(rows, [batch.first_row, batch.first_row + batch.num_rows]).tolist()
        return [(number, rows[number] - batch.first_row) for number in range(first, last)]
    try:
        ids = batch.ids.cast(wanted.type)
    except pa.ArrowInvalid:  # integers that these ids cannot be
        return []
    numbers = pc.index_in(ids, wanted)
    places = np.flatnonzero(numpy_of(numbers.is_valid()))
    return zip(numbers.take(pa.array(places)).to_pylist(), places.tolist(), strict=True)


def difference(kept: str, text: str, recipe: Recipe) -> Difference:
    """Return the words in which a text differs from the kept one, made printable and cut to what a page can hold."""
    words, notes = diff.differences(kept, text, recipe, full=False)
    if not words:
        words = [("equal", to_readable(kept[:SAME]))] + ([("cut", "...")] if len(kept) > SAME else [])
    shown: Words = []
    left = SHOWN
    for op, words_of_it in words:
        part = clean(words_of_it[:left])
        shown.append((op, part))
        left -= len(part)
        if left <= 0:
            shown.append(("cut", "..."))
            notes = [*notes, f"shown: about the first {SHOWN:,} characters"]
            break
    return Difference(shown, [note.replace("full=True", "explain with full=True") for note in notes])


def clean(text: str) -> str:
    """Text as a page may show it: line breaks stay, whatever else is invisible is written as an escape."""
    return printable(text.replace("\r\n", "\n").replace("\t", "    "), lines=True)
