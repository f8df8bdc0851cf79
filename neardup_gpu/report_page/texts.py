"""Texts of some documents, taken from the input again, and the words in which pairs of them differ.

The input is read once, up to the last document that is wanted, whatever their number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..documents.references import ReferenceSets
from ..documents.rereading import columns_of, texts_of
from ..engine.arrays import apart
from ..errors import InputError
from ..log import log
from ..printable import printable
from ..recipe import Recipe
from ..report import count
from ..results import diff
from ..results.tables import REFERENCE
from ..stages import as_documents, count_tokens, shingle
from ..stages.conditions import group_words
from ..text.raw_text import to_readable
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
    limits = {"longest": LONGEST, "at_most": HELD}
    texts = dict(zip(wanted, texts_of(run.source(), ids.take(pa.array(wanted)), wanted, **limits), strict=True))
    sets = run.documents[REFERENCE] if REFERENCE in run.documents.column_names else None
    theirs: dict[str | None, dict[Any, None]] = {}
    for pair in pairs:
        if pair.in_reference:
            theirs.setdefault(None if sets is None else sets[pair.row].as_py(), {})[pair.kept] = None
    known: dict[Any, str | None] = {}
    for name, wanted_ids in theirs.items():
        reference: Any = run.reference()
        reference = reference.named(name) if isinstance(reference, ReferenceSets) else reference
        their_ids = pa.chunked_array([pa.array(list(wanted_ids), ids.type)])
        found_texts = texts_of(reference, their_ids, None, **limits)
        known |= zip(((name, id) for id in wanted_ids), found_texts, strict=True)
    found, measure, rows = {}, run.measure(), sorted(pair.row for pair in pairs)
    words = dict.fromkeys(rows, np.uint64(0))
    if run.recipe.ignored is not None and run.recipe.within:  # common shingles are those of a group
        values = columns_of(run.source(), ids.take(pa.array(rows)), rows, run.recipe.within)
        words = dict(zip(rows, group_words(values, 0, 0)[0], strict=True))
    worths = dict(zip(wanted, run.documents[run.column].take(pa.array(wanted)).to_pylist(), strict=True))
    for pair in pairs:
        name = None if sets is None else sets[pair.row].as_py()
        kept = known[name, pair.kept] if pair.in_reference else texts[kept_rows[pair.row]]
        text, names = texts[pair.row], (pair.kept, ids[pair.row].as_py())
        if kept is None or text is None:
            continue
        if worths[pair.row] is not None and worths[pair.row] != _worth(
            run, measure.with_reference if pair.in_reference else measure, kept, text, names, words[pair.row]
        ):
            raise InputError("its input has changed since the result was made")
        found[pair.row] = difference(kept, text, run.recipe, names)
    return found


def _worth(run: Run, measure: Any, kept: str, text: str, names: tuple[Any, Any], word: np.uint64) -> float:
    """Return the value of a pair of texts, computed again as `explain` does; `word` is mixed into their shingles."""
    if diff.are_identical(kept, text):
        return 1.0  # also without shingles
    tokens, _ = count_tokens(as_documents([kept, text], run.recipe), run.recipe, "cpu", names)
    ours = apart(shingle(tokens, run.recipe, backend="cpu"), np.repeat(word, 2))
    if measure.weighted:
        return float(measure.of(*measure.sums(ours)))
    left, right = (measure.counting(np.unique(ours[number])) for number in (0, 1))
    return float(measure.of(len(np.intersect1d(left, right, assume_unique=True)), len(left), len(right)))


def difference(kept: str, text: str, recipe: Recipe, names: tuple[Any, Any] = (None, None)) -> Difference:
    """Return the words in which a text differs from the kept one, made printable and cut to what a page can hold."""
    words, notes = diff.differences(kept, text, recipe, full=False, names=names)
    if not words:
        words = [("equal", to_readable(kept[:SAME]))] + ([("cut", "...")] if len(kept) > SAME else [])
    shown, whole = beginning(words)
    notes = notes if whole else [*notes, f"shown: about the first {SHOWN:,} characters"]
    return Difference(shown, [note.replace("full=True", "explain with full=True") for note in notes])


def beginning(words: Words) -> tuple[Words, bool]:
    """Return about the first `SHOWN` characters, made printable, and whether nothing follows them."""
    shown: Words = []
    left = SHOWN
    for op, part in words:
        shown.append((op, clean(part[: max(0, left)])))
        left -= len(part)
        if left < 0:
            return [*shown, ("cut", "...")], False
    return shown, True


def clean(text: str) -> str:
    """Text as a page may show it: line breaks stay, whatever else is invisible is written as an escape."""
    return printable(text.replace("\r\n", "\n").replace("\t", "    "), lines=True)
