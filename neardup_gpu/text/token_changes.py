"""Changes of texts and tokens before shingles are made: texts are folded, words are dropped and stemmed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..data import Ragged
from ..engine.choice import kernel
from ..report import count
from . import stop_words

if TYPE_CHECKING:
    from ..recipe import Recipe


class TokenCounts(NamedTuple):
    """Counts of a batch of documents.

    Parameters
    ----------
    invalid : int
        Bytes that are not UTF-8.
    only_dropped_words : int
        Documents that have no words but dropped ones, and keep them all.
    """

    invalid: int
    only_dropped_words: int


def begin_tokens(text: Ragged, recipe: Recipe) -> Any:
    """Start to count the tokens of documents that lie on a device. Hold what is returned until `make_tokens` is called.

    Texts that are folded have other tokens, so nothing is counted before that.
    """
    on_host = isinstance(text.offsets, np.ndarray)
    return None if on_host or recipe.shingles.fold is not None else recipe.shingles.token_kind.begin(text)


def make_tokens(text: Ragged, recipe: Recipe, backend: str | None, names: Any, places: bool) -> tuple[Any, ...]:
    """Fold and tokenize documents, and drop and stem words, as the recipe says.

    Parameters
    ----------
    text : Ragged of uint8
    recipe : Recipe
    backend : str or None
    names : array, sequence or None
        What the documents are called.
    places : bool
        Whether to return where each token lies in the text as well.

    Returns
    -------
    values : array of uint64
    offsets : array of int64, shape (documents + 1,)
    counts : TokenCounts
    begins, ends : arrays of int64
        Only if `places`.
    """
    made_of, only_dropped, of_bytes = recipe.shingles, 0, []
    poly = recipe.material.tokens
    if made_of.fold is not None:
        from ..kernels import fold

        folded, offsets, *of_bytes = kernel(fold, backend)(text.values, text.offsets, made_of.fold, places)
        text = Ragged._trusted(folded, offsets)
    values, offsets, invalid, *placed = made_of.token_kind.run(
        text, recipe, backend, names, places or made_of.stem is not None
    )
    found = values
    if made_of.stem is not None:
        from .stemming import stems_of

        begins, ends = placed
        found = stems_of(values, text, begins, ends, made_of.stem, poly)
        placed = placed if places else []
    if of_bytes:
        placed = _places_before(*of_bytes, *placed)
    if made_of.drop_words is not None:
        from ..kernels import drop

        listed = stop_words.fingerprints(made_of.drop_words, int(poly), made_of.fold)
        kept, offsets, only_dropped = kernel(drop, backend)(values, offsets, listed)
        found, *placed = (array[kept] for array in (found, *placed))
    return found, offsets, TokenCounts(invalid, only_dropped), *placed


def _places_before(first: Any, last: Any, begins: Any, ends: Any) -> list[Any]:
    """Return the places that tokens of folded text had before, from the places that its bytes had.

    An empty place, as the space between overlapping letters has, stays where the byte before it ends.
    """
    if not len(begins):
        return [begins, ends]
    ends_before = last[ends - 1]
    is_empty = begins == ends
    begins_before = first[begins - is_empty]
    begins_before[is_empty] = ends_before[is_empty]
    return [begins_before, ends_before]


def remarks_on(counts: dict[str, Any]) -> list[str]:
    """Return a sentence if documents kept the words that were to be dropped."""
    number = counts.get("only_dropped_words")
    if not number:
        return []
    which = "all documents have" if number == counts["documents"] else f"{count(number, 'document')} with"
    return [f"drop_words: {which} only words of the list, so that these documents are compared by all their words"]
