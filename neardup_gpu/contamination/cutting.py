"""The bytes to cut out of texts, so that tokens vanish and all others stay as they are.

A cut goes from the first byte of its first token to the last byte of its last token. Of the separators on both sides
the longer one stays. No cut divides a token: where a code point belongs to several tokens, all of them are cut. And
none joins two words: where no separator would stay between two words, the word before the cut is cut as well.

Letters are cut word by word, and lines as a whole, with what stands before their first and after their last word.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..data import Ragged, Tokens
from ..documents.edits import inside
from ..kernels._gf2 import rabin
from ..recipe import Recipe, token_recipe
from ..stages import count_tokens, utf8
from ..text import boundaries
from ..text.unit_options import BOUNDARIES


def united(owner: np.ndarray, begin: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Unite intervals of tokens that overlap or touch; tokens of different owners never do.

    >>> united(np.array([0, 0, 1]), np.array([2, 0, 5]), np.array([4, 2, 7]))
    (array([0, 1]), array([0, 5]), array([4, 7]))
    """
    order = np.lexsort((begin, owner))
    owner, begin, end = owner[order], begin[order], end[order]
    reached = np.maximum.accumulate(end)
    new = np.ones(len(order), bool)
    new[1:] = (owner[1:] != owner[:-1]) | (begin[1:] > reached[:-1])
    first = np.flatnonzero(new)
    last = np.append(first[1:], len(order)) - 1 if len(first) else first
    return owner[first], begin[first], reached[last]


class Parts(NamedTuple):
    """Tokens as parts of texts.

    tokens : Tokens
        The first token of each part begins with it, and the last one ends with it.
    is_first, is_last : arrays of bool
    """

    tokens: Tokens
    is_first: np.ndarray
    is_last: np.ndarray


def in_parts(text: Ragged, tokens: Tokens, part: str) -> Parts:
    """Return tokens as parts of a text, such as "line" or "sentence"; the text begins at byte 0."""
    if len(tokens.values) == 0:
        return Parts(tokens, np.empty(0, bool), np.empty(0, bool))
    spans = getattr(boundaries, BOUNDARIES[part])(text.values, text.offsets)
    number = np.searchsorted(spans.begin, tokens.begins, side="right") - 1
    is_first = np.append(True, np.diff(number) != 0)
    is_last = np.append(is_first[1:], True)
    begins = np.where(is_first, np.minimum(spans.begin[number], tokens.begins), tokens.begins)
    ends = np.where(is_last, np.maximum(spans.end[number], tokens.ends), tokens.ends)
    return Parts(replace(tokens, begins=begins, ends=ends), is_first, is_last)


class LetterWords(NamedTuple):
    """The words that letters make up.

    tokens : Tokens
        The words.
    number : array of int64
        Of each letter, the number of its word among all words; of a space, that of the word before it.
    is_space : array of bool
        Whether each letter is a space between two words.
    recipe : Recipe
        That of words.
    """

    tokens: Tokens
    number: np.ndarray
    is_space: np.ndarray
    recipe: Recipe

    @property
    def is_first(self) -> np.ndarray:
        """Whether each letter is the first one of its word."""
        return np.append(True, np.diff(self.number) != 0)[: len(self.number)]


def words_of(letters: Tokens, recipe: Recipe) -> LetterWords:
    """Return the words that letters make up; `recipe` is that of the letters."""
    is_space = letters.values == np.uint64(rabin(b" ", int(recipe.material.tokens)))
    is_first = np.append(True, is_space[:-1])[: len(is_space)]
    is_first[letters.offsets[:-1][letters.sizes > 0]] = True
    first = np.flatnonzero(is_first)
    offsets = np.append(0, np.cumsum(is_first))[letters.offsets]
    begins, ends = letters.begins, np.where(is_space, 0, letters.ends)
    if len(first):
        begins, ends = np.minimum.reduceat(begins, first), np.maximum.reduceat(ends, first)
    words = Tokens(letters.values[first], offsets, begins, ends)
    return LetterWords(words, np.cumsum(is_first) - 1, is_space, token_recipe("words"))


def cut_spans(
    text: Ragged, tokens: Tokens, recipe: Recipe, cut: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the bytes that cut intervals of tokens.

    Parameters
    ----------
    text : Ragged of uint8
        The documents, from byte 0 on.
    tokens : Tokens
    recipe : Recipe
        Says what a token is.
    cut : owner, begin, end
        By `united`: the document of each interval, and its tokens.

    Returns
    -------
    owner, begins, ends : arrays of int64
        The document and the bytes of each cut, counted from the beginning of the document.
    stays : array of bool
        Whether each token stays.
    """
    if recipe.shingles.tokens == "letters":
        return _cut_words(text, tokens, recipe, cut)
    if recipe.shingles.tokens == "lines":
        tokens = in_parts(text, tokens, "line").tokens
    if recipe.shingles.token_kind.of_integers:
        owner, first, last = cut
        begins, ends = tokens.begins[first] - text.offsets[owner], tokens.ends[last - 1] - text.offsets[owner]
        return owner, begins, ends, ~inside(first, last, len(tokens.values))
    owner, first, last = _whole_code_points(tokens, cut)
    while True:
        gaps = _Gaps(text, tokens, owner, first, last)
        joined = gaps.joining(recipe)
        if len(joined) == 0:
            break
        first[joined] -= 1
        owner, first, last = _whole_code_points(tokens, united(owner, first, last))
    start = text.offsets[owner]
    return owner, gaps.begins - start, gaps.ends - start, ~inside(first, last, len(tokens.values))


def _cut_words(
    text: Ragged, letters: Tokens, recipe: Recipe, cut: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return what `cut_spans` returns for letters: the words that an interval reaches into are cut."""
    words = words_of(letters, recipe)
    owner, first, last = cut
    first, last = words.number[first] + words.is_space[first], words.number[last - 1] + 1
    owner, first, last = united(*(each[first < last] for each in (owner, first, last)))
    owner, begins, ends, word_stays = cut_spans(text, words.tokens, words.recipe, (owner, first, last))
    before = np.append(0, np.cumsum(word_stays))
    stays = word_stays[words.number]
    document = np.repeat(np.arange(len(letters.offsets) - 1), letters.sizes)
    space = np.flatnonzero(words.is_space)
    left = before[words.number[space] + 1] - before[words.tokens.offsets[document[space]]]
    stays[space] = (left > 0) & word_stays[words.number[space] + 1]  # of the words before it, one is left
    return owner, begins, ends, stays


def _whole_code_points(
    tokens: Tokens, cut: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Extend intervals over tokens that share a code point with one of theirs."""
    owner, first, last = cut
    while True:
        start, stop = tokens.offsets[owner], tokens.offsets[owner + 1]
        inner = first > start
        low = inner & (tokens.ends[np.maximum(first - 1, 0)] > tokens.begins[first])
        outer = last < stop
        high = outer & (tokens.begins[np.minimum(last, len(tokens.begins) - 1)] < tokens.ends[last - 1])
        if not (low.any() or high.any()):
            return owner, first, last
        owner, first, last = united(owner, first - low, last + high)


def bytes_to_cut(
    text: tuple[np.ndarray, np.ndarray], tokens: tuple[np.ndarray, ...], cut: tuple[np.ndarray, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the bytes that cut intervals of tokens, with the shorter of the separators on both sides.

    Parameters
    ----------
    text : two arrays of int64
        The first byte of the document of each interval, and the byte after its last one.
    tokens : offsets, begins, ends
        As in `Tokens`; begins and ends are of any type of integers.
    cut : owner, first, last
        By `united`.
    """
    (offsets, token_begins, token_ends), (owner, first, last) = tokens, cut
    begins, ends = token_begins[first].astype(np.int64), token_ends[last - 1].astype(np.int64)
    most = len(token_begins) - 1
    low = np.where(first > offsets[owner], token_ends[np.maximum(first - 1, 0)], text[0])
    high = np.where(last < offsets[owner + 1], token_begins[np.minimum(last, most)], text[1])
    longer = begins - low >= high - ends
    return np.where(longer, begins, low), np.where(longer, high, ends)


class _Gaps:
    """Cuts, and what is between the tokens on both sides of each.

    begins, ends : arrays of int64
        The bytes of each cut, in the text of all documents: the shorter separator goes along.
    """

    def __init__(self, text: Ragged, tokens: Tokens, owner: np.ndarray, first: np.ndarray, last: np.ndarray) -> None:
        self._text, self._tokens, self._first, self._last = text, tokens, first, last
        self._before, self._after = first > tokens.offsets[owner], last < tokens.offsets[owner + 1]
        places = tokens.offsets, tokens.begins, tokens.ends
        whole = text.offsets[owner], text.offsets[owner + 1]
        self.begins, self.ends = bytes_to_cut(whole, places, (owner, first, last))

    def joining(self, recipe: Recipe) -> np.ndarray:
        """Return the cuts after which two words are one."""
        found, pieces, sizes = [], [], []
        values, tokens = self._text.values, self._tokens
        for cut in np.flatnonzero(self._before & self._after).tolist():
            first, last = int(self._first[cut]) - 1, int(self._last[cut])
            gap = np.concatenate(
                [
                    values[tokens.ends[first] : self.begins[cut]],
                    values[self.ends[cut] : tokens.begins[last]],
                ]
            )
            if not (gap < 128).any():  # ASCII between tokens divides them
                parts = values[tokens.begins[first] : self.begins[cut]], values[self.ends[cut] : tokens.ends[last]]
                found.append(cut)
                pieces.append(b"".join(part.tobytes() for part in parts))
                # Several tokens may share the code point that begins or ends there.
                begin = np.searchsorted(tokens.begins, tokens.begins[first])
                sizes.append(np.searchsorted(tokens.ends, tokens.ends[last], side="right") - last + first + 1 - begin)
        if not found:
            return np.empty(0, np.int64)
        return np.array(found)[count_tokens(utf8(pieces), recipe, "cpu")[0].sizes < sizes]
