"""Shingles that documents have in common, in words: for the line that ends a job of too many comparisons."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..documents.sources import Sources
from ..errors import ResourceError
from ..methods.contract import Sketch
from ..recipe import Recipe
from ..report import count, shorten
from ..stages import shingle
from ..stages.partners import TooManyComparisonsError
from ..stages.sketching import Sketched
from ..text.raw_text import to_readable
from ..text.stop_words import fingerprints
from ..text.token_kinds import OwnTokens
from .alignment import places_of_spots, tokens_of

WIDTH = 60
"""Characters of a shingle that are shown."""


def too_many_comparisons(
    error: TooManyComparisonsError,
    rows: np.ndarray,
    sketched: Sketched,
    sources: Sources,
    recipe: Recipe,
) -> ResourceError:
    """The error with the commonest shingles, in the words of documents that are read again.

    Parameters
    ----------
    error : TooManyComparisonsError
    rows : array of int64
        For each row that `error` names, the document's row: those of the reference set come before the input's.
    sketched : Sketched
        Of all these documents.
    sources : Sources
    recipe : Recipe
    """
    named, numbers, directed = [], [], recipe.method.measure.directed  # then an index has also documents that contain
    has = "in" if directed else "among the rarest of"
    for each in error.common:
        row = int(rows[each.row])
        text = sources.text_again(sketched.ids[row], row, sketched.num_known)
        own = each.shingle ^ int(sketched.words[row]) if recipe.within else each.shingle
        if text is not None and (words := words_of(own, text, recipe, sketched.ids[row].as_py())):
            named.append(f'"{shorten(words, WIDTH)}" ({has} {count(each.num_documents, "document")})')
        numbers.append(f"{each.num_documents:,}")
    # Min-hash measures resemblance alone.
    other = "" if isinstance(recipe.method, Sketch) or directed else ", or use method='minhash'"
    told = ", ".join(named) if named else f"{has} {', '.join(numbers)} documents"
    commonest = f"; most are for the shingles {told}" if numbers else ""
    return ResourceError(f"{error}{commonest}; allow more with max_comparisons=...{other}")


def words_of(fingerprint: int, text: str, recipe: Recipe, name: Any = None) -> str | None:
    """Return the words of a text that make a shingle, or a spot.

    Parameters
    ----------
    fingerprint : int
        The fingerprint of the shingle.
    text : str
        A text as `Documents._to_string` makes it of bytes.
    recipe : Recipe
    name : str or other value, default None
        What the document is called; None if it is not known.

    Returns
    -------
    str or None
        None if the text has no such shingle.

    Examples
    --------
    >>> from neardup_gpu import Recipe, Shingles
    >>> recipe = Recipe(shingles=Shingles(3))
    >>> third = shingle(tokens_of("To be, or not to be", recipe), recipe, backend="cpu")[0][2]
    >>> words_of(third, "To be, or not to be", recipe)
    'or not to'
    """
    if isinstance(recipe.shingles.tokens, OwnTokens) or recipe.shingles.token_kind.holds == "bytes":  # not shown
        return None
    tokens = tokens_of(text, recipe, name)
    found = np.flatnonzero(shingle(tokens, recipe, backend="cpu")[0] == np.uint64(fingerprint))
    if len(found) == 0:
        return None
    places = _places(int(found[0]), tokens.values, recipe)
    runs = np.split(places, np.flatnonzero(np.diff(places) != 1) + 1)
    words = " ".join(text[tokens.begins[run[0]] : tokens.ends[run].max()] for run in runs)
    return " ".join(to_readable(words).split())


def _places(index: int, tokens: np.ndarray, recipe: Recipe) -> np.ndarray:
    """Return the numbers of the tokens that make shingle or spot `index` of a document."""
    size, number = recipe.shingles.size, len(tokens)
    if recipe.shingles.stop_words is not None:
        stops = fingerprints(recipe.shingles.stop_words, int(recipe.material.tokens), recipe.shingles.fold)
        spots = places_of_spots(np.isin(tokens, stops), size)
        if len(spots):
            return spots[index]
    return (index + np.arange(min(size, number))) % number
