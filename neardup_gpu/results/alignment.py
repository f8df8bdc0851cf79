"""The words that two texts have in common: runs in the same order, and runs that stand elsewhere in the other text.

A word here is a token of the decision (`kernels/tokens.py`): its case, and the punctuation and white space around it,
do not count. First the longest runs of equal words that keep their order are aligned. Then the words of elements that
both texts have (shingles, or spots) are marked: those that are not aligned stand elsewhere in the other text, because a
passage was moved there or is repeated. In the second text, which was removed, they are marked wherever they stand. The
first text is often a large container with many phrases of the other one. There, a shingle that is aligned once is
marked at other places only in runs of at least twice its length, or if the second text has all shingles of the first.

The least number of common words. Let s be the number of common elements, w the number of words of an element (a spot
with c words after its stop word has w = c + 1), and n the number of words of either text. If s > 0, at least

    min(n, s + w - 1)

words of that text are aligned or stand elsewhere. Proof: each common element has a place in the text at which all its
words are aligned or marked, and s elements begin at s different words. The words that they cover are at least the s
first words and the w - 1 further words of the last element, unless circular shingles cover all n words; a text shorter
than w has one element, which covers it. An element of a bag is a shingle with the number of its occurrence, so that
shingles of bags are marked wherever they stand, and s elements begin at s different words as well. The decision states
s: containment c of a text with b elements means s = c b, and resemblance r of texts with a and b elements means
s = r (a + b) / (1 + r). A text whose containment is 1 has no words of its own, unless its elements are spots.

Cost: near-linear. Runs are found by tables of the runs of 5 words and then of 2 words, and few places of each run are
tried. Short stretches in between are aligned by their longest common subsequence, whose table is bits of integers.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..data import Tokens
from ..recipe import Recipe, Shingles
from ..stages import as_documents, place_tokens
from ..text import stop_words

RUNS = (5, 2, 1)
"""Words of the runs that are looked up: long runs before short ones, which match by chance."""

PLACES = 4
"""Places of a run in the other text that are tried, if it has five words or more: this many from the expected place on,
and this many from the beginning. Of shorter runs one each is tried."""

TABLE = 4_000_000
"""Bits of the largest table of a longest common subsequence."""

ALIGNED, ALONE = 0, -1
"""Marks of words: aligned, or in this text alone. Positive marks number the runs that stand elsewhere."""

Block = tuple[int, int, int]
"""A run of equal words: its start in the first text, its start in the second text, its length."""


class Words(NamedTuple):
    """The words of a text.

    Parameters
    ----------
    tokens : array of uint64, shape (n,)
        Fingerprints of the words.
    starts : array of int64, shape (n + 1,)
        Where each word starts in the text, together with the punctuation before it; the end of the text.
    """

    tokens: np.ndarray
    starts: np.ndarray


class Alignment(NamedTuple):
    """Which words of two texts are common.

    Parameters
    ----------
    blocks : list of (int, int, int)
        Aligned runs of equal words, in the order of both texts.
    first, second : array of int64
        For each word of either text `ALIGNED`, `ALONE`, or the number of a run that stands elsewhere in the other
        text. Neighbours of one number form a run of equal words there.
    """

    blocks: list[Block]
    first: np.ndarray
    second: np.ndarray


def words_of(text: str, recipe: Recipe, name: Any = None) -> Words:
    """Divide a text into the words that a decision by this recipe compares.

    Parameters
    ----------
    text : str
        As `Documents._to_string` makes it of bytes.
    recipe : Recipe
    name : str or other value, default None
        What the document is called; None if it is not known.

    Returns
    -------
    Words
    """
    tokens = tokens_of(text, recipe, name)
    begins = np.maximum.accumulate(tokens.begins)  # letters of a run of marks may be in another order
    after_space = np.array([match.end() for match in re.finditer(r"\s+(?=\S)", text)], np.int64)
    starts = np.append(begins, len(text))
    if len(after_space) and len(begins):
        nearest = after_space[np.maximum(np.searchsorted(after_space, begins, side="right") - 1, 0)]
        is_closer = (nearest <= begins) & (nearest > np.append(-1, begins[:-1]))
        starts[:-1][is_closer] = nearest[is_closer]
    starts[: len(begins)][:1] = 0
    return Words(tokens.values, starts)


def tokens_of(text: str, recipe: Recipe, name: Any = None) -> Tokens:
    """Return the tokens of a text, with their places in the string.

    Parameters
    ----------
    text : str
        A text as `Documents._to_string` makes it of bytes.
    recipe : Recipe
        The recipe whose seed decides the fingerprints.
    name : str or other value, default None
        What the document is called; None if it is not known.
    """
    tokens = place_tokens(as_documents([text], recipe), recipe, "cpu", [name])
    if recipe.shingles.token_kind.of_integers:
        spans = np.array([match.span() for match in re.finditer(r"\S+", text)], np.int64).reshape(-1, 2)
        return replace(tokens, begins=spans[:, 0], ends=spans[:, 1])
    if recipe.shingles.token_kind.holds == "bytes":  # two digits each
        return replace(tokens, begins=2 * tokens.begins, ends=2 * tokens.ends)
    if text.isascii():
        return tokens
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    is_invalid = (codes > 0xDC00) & (codes < 0xE000)
    sizes = np.where(is_invalid, 1, 1 + np.searchsorted([0x80, 0x800, 0x10000], codes, side="right"))
    starts = np.cumsum(sizes) - sizes
    begins, ends = np.searchsorted(starts, tokens.begins), np.searchsorted(starts, tokens.ends)
    return replace(tokens, begins=begins, ends=ends)


def align(first: np.ndarray, second: np.ndarray, recipe: Recipe) -> Alignment:
    """Find the words that two texts have in common.

    Parameters
    ----------
    first, second : array of uint64
        The tokens of either text, at least one each.
    recipe : Recipe
        Its shingles say which runs count as common wherever they stand.

    Returns
    -------
    Alignment
    """
    numbers = np.unique(np.concatenate([first, second]), return_inverse=True)[1].reshape(-1)
    a, b = numbers[: len(first)], numbers[len(first) :]
    blocks = _blocks(a, b)
    marks = np.full(len(a), ALONE), np.full(len(b), ALONE)
    for start_a, start_b, length in blocks:
        marks[0][start_a : start_a + length] = marks[1][start_b : start_b + length] = ALIGNED
    if recipe.shingles.kind == "spots":
        stops = stop_words.fingerprints(recipe.shingles.stop_words, int(recipe.material.tokens), recipe.shingles.fold)
        size = recipe.shingles.size
        spots = places_of_spots(np.isin(first, stops), size), places_of_spots(np.isin(second, stops), size)
        if len(spots[0]) or len(spots[1]):
            covered = _covered_by_spots(a, b, spots)
            for text, texts in enumerate(((a, b), (b, a))):
                wanted = covered[text] & (marks[text] == ALONE)
                _mark_elsewhere(marks[text], wanted, texts, texts, 1, len(texts[1]), everywhere=True)
            return Alignment(blocks, *marks)
    _mark_shingles(marks[0], a, b, recipe.shingles, everywhere=recipe.shingles.kind == "bag")
    _mark_shingles(marks[1], b, a, recipe.shingles, everywhere=True)
    return Alignment(blocks, *marks)


# --------------------------------------------------------------------------------------------- runs in the same order


def _blocks(a: np.ndarray, b: np.ndarray) -> list[Block]:
    """Align runs of equal words: what both texts begin and end with, and what lies in between."""
    shorter = min(len(a), len(b))
    differing = np.flatnonzero(a[:shorter] != b[:shorter])
    begin = int(differing[0]) if len(differing) else shorter
    rest = shorter - begin
    differing = np.flatnonzero(a[len(a) - rest :][::-1] != b[len(b) - rest :][::-1])
    end = int(differing[0]) if len(differing) else rest
    found = [(0, 0, begin)] if begin else []
    middle_a, middle_b = a[begin : len(a) - end], b[begin : len(b) - end]
    grams = {run: _grams(middle_a, middle_b, run) for run in RUNS if run > 1}
    stretch = 0, len(middle_a), 0, len(middle_b)
    between = _aligned(middle_a.tolist(), middle_b.tolist(), grams, RUNS, stretch)
    found += [(begin + start_a, begin + start_b, length) for start_a, start_b, length in between]
    return _joined([*found, (len(a) - end, len(b) - end, end)] if end else found)


def _joined(blocks: list[Block]) -> list[Block]:
    """Join each block to the next one if they touch in both texts."""
    joined: list[Block] = []
    for start_a, start_b, length in blocks:
        if joined and (start_a, start_b) == (joined[-1][0] + joined[-1][2], joined[-1][1] + joined[-1][2]):
            start_a, start_b, length = joined[-1][0], joined[-1][1], joined.pop()[2] + length
        joined.append((start_a, start_b, length))
    return joined


def _aligned(
    a: list[int],
    b: list[int],
    grams: dict[int, tuple[np.ndarray, np.ndarray]],
    runs: tuple[int, ...],
    stretch: tuple[int, int, int, int],
) -> Iterator[Block]:
    """Align a stretch of both texts, from the longest runs of words to the shortest ones."""
    from_a, to_a, from_b, to_b = stretch
    num_a, num_b = to_a - from_a, to_b - from_b
    if not runs or not num_a or not num_b:
        return
    size = runs[0]
    if size == 1:
        if num_a * num_b <= TABLE:  # in longer stretches without a common run of two words, words agree by chance
            for start_a, start_b, length in _longest_subsequence(a[from_a:to_a], b[from_b:to_b]):
                yield from_a + start_a, from_b + start_b, length
        return
    of_a = grams[size][0][from_a : max(from_a, to_a - size + 1)].tolist()
    of_b = grams[size][1][from_b : max(from_b, to_b - size + 1)].tolist()
    found = _equal_runs(of_a, of_b, a[from_a:to_a], b[from_b:to_b], _tried(size))
    at_a, at_b = from_a, from_b
    for start_a, start_b, length in _heaviest_chain(found):
        begin_a, begin_b = from_a + start_a, from_b + start_b
        yield from _aligned(a, b, grams, runs[1:], (at_a, begin_a, at_b, begin_b))
        yield begin_a, begin_b, length
        at_a, at_b = begin_a + length, begin_b + length
    yield from _aligned(a, b, grams, runs[1:], (at_a, to_a, at_b, to_b))


def _grams(a: np.ndarray, b: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Number the runs of `size` words of both texts, equal runs by equal numbers; a text has one for each word that
    begins a run."""
    most = max(a.max(initial=0), b.max(initial=0)) + 1
    words = np.concatenate([a, [most], b])  # a run that crosses from one text to the other equals no other run
    have, numbers = 1, words
    while have < size:
        more = min(have, size - have)
        both = numbers[: len(numbers) - more] * (int(numbers.max(initial=0)) + 1) + numbers[more:]
        numbers = np.unique(both, return_inverse=True)[1].reshape(-1)
        have += more
    return numbers[: max(0, len(a) - size + 1)], numbers[len(a) + 1 :]


def _tried(size: int) -> int:
    """Return how many places of a run of `size` words are tried on either side."""
    return PLACES if size >= RUNS[0] else 1


def _equal_runs(of_a: list[int], of_b: list[int], a: list[int], b: list[int], tried: int) -> list[Block]:
    """Find for the second text, from its beginning on, runs of words that the first text has anywhere.

    Parameters
    ----------
    of_a, of_b : list of int
        The numbers of the runs of some size of both texts.
    a, b : list of int
        The words.
    tried : int
        How many places of a run are tried on either side of the expected one.

    Returns
    -------
    list of (int, int, int)
        Runs that do not overlap in the second text, ascending there.
    """
    places = _places_of(of_a, set(of_b))
    found: list[Block] = []
    at = expected = 0
    while at < len(of_b):
        where = places.get(of_b[at])
        if where is None:
            at += 1
            continue
        length, place = _longest(where, expected, tried, a, b, at)
        found.append((place, at, length))
        expected, at = place + length, at + length
    return found


def _places_of(runs: list[int], wanted: set[int]) -> dict[int, list[int]]:
    """Return the places of each wanted run, ascending."""
    places: dict[int, list[int]] = {}
    for place, number in enumerate(runs):
        if number in wanted:
            places.setdefault(number, []).append(place)
    return places


def _longest(where: list[int], expected: int, tried: int, a: list[int], b: list[int], at_b: int) -> tuple[int, int]:
    """Return the length and the place in `a` of the longest run that begins at a place to try; the first if equal."""
    nearest = bisect_left(where, expected)
    longest = 0, 0
    for place in where[nearest : nearest + tried] + where[: min(nearest, tried)]:
        length = _equal_length(a, b, place, at_b)
        if length > longest[0]:
            longest = length, place
    return longest


def _equal_length(a: list[int], b: list[int], at_a: int, at_b: int) -> int:
    """Count the equal words from two places on."""
    most, length = min(len(a) - at_a, len(b) - at_b), 0
    while length < most and length < 16:
        if a[at_a + length] != b[at_b + length]:
            return length
        length += 1
    step, is_growing = 16, True
    while step:  # slices double until they differ, then they are halved
        from_a, from_b = at_a + length, at_b + length
        if length + step <= most and a[from_a : from_a + step] == b[from_b : from_b + step]:
            length += step
        else:
            is_growing = False
        step = 2 * step if is_growing else step // 2
    return length


def _heaviest_chain(runs: list[Block]) -> list[Block]:
    """Choose runs that ascend in both texts, with as many words as possible."""
    ends = sorted({start + length for start, _, length in runs})
    heaviest = [(0, -1)] * (len(ends) + 1)  # a Fenwick tree: the heaviest chain that ends at or before an end
    before = []
    for number, (start, _, length) in enumerate(runs):
        place, best = bisect_left(ends, start + 1), (0, -1)
        while place:
            best, place = max(best, heaviest[place]), place & (place - 1)
        before.append(best[1])
        found, place = (best[0] + length, number), bisect_left(ends, start + length) + 1
        while place <= len(ends):
            heaviest[place] = max(heaviest[place], found)
            place += place & -place
    place, best = len(ends), (0, -1)
    while place:
        best, place = max(best, heaviest[place]), place & (place - 1)
    chain, number = [], best[1]
    while number >= 0:
        chain.append(runs[number])
        number = before[number]
    return chain[::-1]


def _longest_subsequence(a: list[int], b: list[int]) -> list[Block]:
    """Align two short stretches by a longest common subsequence.

    Source: Hyyrö 2004, Bit-parallel LCS-length computation revisited; a row of the table is an integer, in which a 0
    stands where one more word of `b` adds one more common word.
    """
    bits: dict[int, int] = {}
    for place, word in enumerate(b):
        bits[word] = bits.get(word, 0) | 1 << place
    row = whole = (1 << len(b)) - 1
    rows = [row]
    for word in a:
        both = row & bits.get(word, 0)
        row = ((row + both) | (row - both)) & whole
        rows.append(row)
    words = []
    at_a, at_b = len(a), len(b)
    while at_a and at_b:
        if rows[at_a] >> (at_b - 1) & 1:
            at_b -= 1
        else:
            at_a -= 1
            if rows[at_a] >> (at_b - 1) & 1:
                at_b -= 1
                words.append((at_a, at_b, 1))
    return _joined(words[::-1])


# ------------------------------------------------------------------------------------------- runs that stand elsewhere


def _mark_shingles(
    marks: np.ndarray, mine: np.ndarray, other: np.ndarray, shingles: Shingles, *, everywhere: bool
) -> None:
    """Mark the words of `mine` that are not aligned but belong to a shingle that the other text has."""
    size, num_other = shingles.size, len(other)
    if shingles.kind == "circular":
        mine, other = (np.resize(text, len(text) + size - 1) for text in (mine, other))
    runs = _grams(mine, other, size)
    everywhere = everywhere or bool(np.isin(*runs).all())
    _mark_elsewhere(marks, marks == ALONE, (mine, other), runs, size, num_other, everywhere=everywhere)


def _mark_elsewhere(
    marks: np.ndarray,
    wanted: np.ndarray,
    texts: tuple[np.ndarray, np.ndarray],
    runs: tuple[np.ndarray, np.ndarray],
    size: int,
    num_other: int,
    *,
    everywhere: bool,
) -> None:
    """Number the wanted words of runs of `size` words that the other text has, by the run of equal words there.

    Parameters
    ----------
    marks : array of int64, shape (n,)
        Where numbers are written.
    wanted : array of bool, shape (n,)
    texts : tuple of two arrays of int64
        The words of this text and of the other one. Circular texts run on into their beginning.
    runs : tuple of two arrays of int64
        The numbers of their runs, as `_grams` gives.
    size : int
    num_other : int
        Words of the other text, before it runs on.
    everywhere : bool
        Also number short runs whose words are all aligned at another place of this text.
    """
    wanted = np.resize(wanted, len(texts[0]))
    before = np.append(0, np.cumsum(wanted))
    begins = np.flatnonzero(np.isin(runs[0], runs[1]) & (before[size:] > before[:-size]))
    are_aligned: set[int] = set()
    if not everywhere:
        aligned = np.append(0, np.cumsum(np.resize(marks == ALIGNED, len(texts[0]))))
        are_aligned = set(runs[0][aligned[size:] - aligned[:-size] == size].tolist())
    looked_up = runs[0][begins]
    places = _places_of(runs[1].tolist(), set(looked_up.tolist()))
    mine, other = texts[0].tolist(), texts[1].tolist()
    number = done = expected = 0
    for at, run in zip(begins.tolist(), looked_up.tolist(), strict=True):
        if at + size <= done:
            continue
        length, place = _longest(places[run], expected, _tried(size), other, mine, at)
        if run in are_aligned and before[at + length] - before[max(at, done)] < 2 * size:
            continue
        at_word, done, expected = max(at, done), at + length, place + length
        while at_word < done:  # a run ends where a circular text comes to its beginning again
            first = at_word % len(marks)
            rest = min(len(marks) - first, num_other - (place + at_word - at) % num_other)
            until, number = min(done, at_word + rest), number + 1
            marks[first : first + until - at_word][wanted[at_word:until]] = number
            at_word = until


def _covered_by_spots(
    a: np.ndarray, b: np.ndarray, spots: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return for each word of either text whether it belongs to a spot that both texts have."""
    rows = np.concatenate([a[spots[0]], b[spots[1]]])
    numbers = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)
    of_a, of_b = numbers[: len(spots[0])], numbers[len(spots[0]) :]
    covered = np.zeros(len(a), bool), np.zeros(len(b), bool)
    covered[0][spots[0][np.isin(of_a, of_b)]] = True
    covered[1][spots[1][np.isin(of_b, of_a)]] = True
    return covered


def places_of_spots(stops: np.ndarray, size: int) -> np.ndarray:
    """Return the places of the words of each spot, shape (spots, size + 1), from whether each word is a stop word."""
    others = np.flatnonzero(~stops)
    begins = np.flatnonzero(stops)
    following = np.searchsorted(others, begins)
    is_whole = following + size <= len(others)
    followers = following[is_whole][:, None] + np.arange(size)
    return np.column_stack([begins[is_whole], others[followers].reshape(-1, size)])
