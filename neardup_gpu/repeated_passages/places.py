"""The bytes of the tokens of some documents, and the boundaries between tokens at which no text is cut.

A passage may have to consist of whole lines or sentences. Then the first token of each one begins with it, and the last
one ends with it, so that its punctuation is cut out as well.

A boundary between two tokens is *closed* if both share a code point, or if nothing between them divides words and one
of them is a word of a script with spaces. No window begins or ends at a closed boundary, so no cut divides a code point
or joins two words. Between Han characters, all boundaries are open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from neardup_gpu.kernels._cpu import held, large

from ..contamination.cutting import in_parts, words_of
from ..data import Ragged, Tokens, arrow, numpy_of, ranges
from ..documents.batches import some_rows
from ..documents.stream import Batch, Documents
from ..engine.pieces import OfBatch, Span
from ..errors import InputError
from ..recipe import Recipe
from ..stages import count_tokens, placed_text, utf8
from .corpus import TokenReader


class TokenPieces(NamedTuple):
    """Intervals of tokens, by document and place. No two of them touch; arrays have a value per piece.

    documents : array of int64
        The number of the document.
    first, last : arrays of int64
        The piece is tokens `first` to `last` of the document.
    """

    documents: np.ndarray
    first: np.ndarray
    last: np.ndarray

    @property
    def offsets(self) -> np.ndarray:
        """The first token of each piece among the tokens of all pieces, and the number of all tokens."""
        return np.append(0, np.cumsum(self.last - self.first))

    def some(self, rows: Any) -> TokenPieces:
        """Return some of the pieces."""
        return TokenPieces(*(each[rows] for each in self))


class Placed(NamedTuple):
    """The places of the tokens of some pieces of documents.

    pieces : TokenPieces
    offsets : array of int64, shape (pieces + 1,)
        The tokens of piece i are `offsets[i]` to `offsets[i + 1]`.
    begins, ends : arrays of uint32 or int64
        The bytes of each token in the text of its document.
    text : array of int64, shape (pieces,)
        The bytes of the text of each piece's document.
    marks : array of uint8
        Of each token, see `marks_of`.
    """

    pieces: TokenPieces
    offsets: np.ndarray
    begins: np.ndarray
    ends: np.ndarray
    text: np.ndarray
    marks: np.ndarray

    @property
    def closed(self) -> np.ndarray:
        """Whether the boundary before each token is closed; False before the first token of a document."""
        return self.marks & CLOSED != 0

    @classmethod
    def of(cls, pieces: TokenPieces, parts: Iterable[PlacedTokens]) -> Placed:
        """Join the places of consecutive pieces as they come."""
        offsets, at = pieces.offsets, 0
        number, text = int(offsets[-1]), [np.empty(0, np.int64)]
        begins, ends, marks = (large(number, kind) for kind in (np.uint32, np.uint32, np.uint8))
        for part in parts:
            if part.begins.dtype.itemsize > begins.itemsize:  # the first document of more than 4 GiB
                begins, ends = (held(each.astype(np.int64)) for each in (begins, ends))
            some = slice(at, at := at + len(part.marks))
            begins[some], ends[some], marks[some] = part.begins, part.ends, part.marks
            text.append(part.sizes)
        return cls(pieces, offsets, begins, ends, np.concatenate(text), marks)

    def are_spaces(self, tokens: np.ndarray) -> np.ndarray:
        """Return which of some tokens are spaces between words of letters."""
        return self.marks[tokens] & GLUE != 0

    def whole_parts(self, first: np.ndarray, last: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the tokens from the first part that begins in each interval of tokens to the last one that ends there.

        If an interval has no whole part, the first one returned is not before the last one.
        """
        if (self.marks >= OPENS | CLOSES).all():  # each token is a part
            return first, last
        opens = np.append(np.flatnonzero(self.marks & OPENS), len(self.marks))
        closes = np.append(-1, np.flatnonzero(self.marks & CLOSES))
        return opens[np.searchsorted(opens, first)], closes[np.searchsorted(closes, last) - 1] + 1


class PlacedTokens(NamedTuple):
    """The places of the tokens of some pieces, which the next pieces' tokens follow.

    begins, ends : arrays of uint32 or int64
        The bytes of each token in the text of its document.
    sizes : array of int64, shape (pieces,)
        The bytes of the text of each piece's document.
    marks : array of uint8
        As in `Placed`.
    """

    begins: np.ndarray
    ends: np.ndarray
    sizes: np.ndarray
    marks: np.ndarray


def offset_type(sizes: np.ndarray) -> Any:
    """Return the type that holds the offsets of texts of some sizes."""
    return np.uint32 if sizes.max(initial=0) < 1 << 32 else np.int64


CLOSED, GLUE, OPENS, CLOSES = 1, 2, 4, 8
"""The marks of a token: the boundary before it is closed; it is the space between two words of letters; it is the
first, or the last, token of its line, sentence or, of letters, word. If passages may be cut at any token, each token
has the marks OPENS and CLOSES."""


class PlacedBatch(NamedTuple):
    """Some documents of a batch, read again.

    intervals : slice
        The intervals of tokens that lie in the documents.
    row : array of int64
        The row of `text` and `tokens` in which each interval lies.
    text : Ragged of uint8, or of int64
        From byte 0 on, or from integer 0 on if documents are lists of integers.
    tokens : Tokens
    """

    intervals: slice
    row: np.ndarray
    text: Ragged
    tokens: Tokens


T = TypeVar("T")


def placed_again(
    documents: Documents,
    owner: np.ndarray,
    sizes: np.ndarray,
    reader: TokenReader,
    work: Callable[[PlacedBatch], T],
) -> Iterator[T]:
    """Read documents again, place the tokens of some of them, and yield what `work` makes of them, in order.

    Parameters
    ----------
    documents : Documents
    owner : array of int64
        The number of the document of each interval of tokens, ascending. Tokens of other documents are not placed.
    sizes : array of int64
        The number of tokens of each document of the input at the first reading.
    reader : TokenReader
    work : callable
        Called for some documents at a time, by several threads at once.

    Raises
    ------
    InputError
        If a document of an interval has another number of tokens now.
    """
    recipe, runtime, max_bytes, clock = reader
    backend = "cpu" if runtime.backend == "gpu" else runtime.backend
    changed = InputError("the documents are not those of the first reading; run again on files that do not change")
    numbers = np.unique(owner)
    bounds = np.searchsorted(owner, np.append(numbers, len(sizes)))

    def place(piece: OfBatch) -> tuple[Batch, int, T]:
        batch: Batch = piece.batch
        first, last = batch.first_row + piece.span.first, batch.first_row + piece.span.last
        some = slice(*np.searchsorted(numbers, [first, last]).tolist())
        rows = numbers[some] - batch.first_row
        text = some_rows(batch.text, rows)
        text, tokens = placed_text(text, recipe, backend, batch.ids.take(arrow(rows)))
        if not np.array_equal(tokens.sizes, sizes[numbers[some]]):
            raise changed
        intervals = slice(*bounds[[some.start, some.stop]].tolist())
        row = np.searchsorted(numbers[some], owner[intervals])
        return batch, len(rows), work(PlacedBatch(intervals, row, text, tokens))

    with clock.stage("locate"):
        if len(numbers) == 0:
            return
        batches = documents.batches(max_bytes=max_bytes)
        pieces = (OfBatch(batch, Span.of_documents(batch.text.offsets, batch.ids)) for batch in batches)
        placed = 0
        for batch, number, result in runtime.map(place, pieces):
            placed += number
            clock.report("locate", batch.first_row + batch.num_rows, documents.num_rows)
            yield result
        if placed < len(numbers):
            raise changed


def place_again(
    documents: Documents, pieces: TokenPieces, sizes: np.ndarray, reader: TokenReader, cut: str
) -> Iterator[PlacedTokens]:
    """Read documents again and yield the places of the tokens of some pieces, in order.

    `sizes` has the number of tokens of each document, and `cut` is that of `SubstringSettings`.

    Raises
    ------
    InputError
        If a document of a piece has another number of tokens now.
    """
    recipe = reader.recipe

    def work(placed: PlacedBatch) -> PlacedTokens:
        some, row = pieces.some(placed.intervals), placed.row
        chosen = ranges(placed.tokens.offsets[row] + some.first, some.last - some.first)
        start = np.repeat(placed.text.offsets[row], some.last - some.first)
        tokens = placed.tokens
        if cut == "token" and recipe.shingles.tokens not in ("letters", "lines"):  # each token is a part
            values, begins, ends = (each[chosen] for each in (tokens.values, tokens.begins, tokens.ends))
            tokens, chosen = Tokens(values, some.offsets, begins, ends), np.arange(len(chosen))
        tokens, marks = marks_of(placed.text, tokens, recipe, cut)
        text = placed.text.sizes[row]
        begins, ends = ((each[chosen] - start).astype(offset_type(text)) for each in (tokens.begins, tokens.ends))
        return PlacedTokens(begins, ends, text, marks[chosen])

    return placed_again(documents, pieces.documents, sizes, reader, work)


def marks_of(text: Ragged, tokens: Tokens, recipe: Recipe, cut: str) -> tuple[Tokens, np.ndarray]:
    """Return the tokens, the outer ones of each part with the bytes up to its ends, and the marks of all tokens.

    Parameters
    ----------
    text : Ragged of uint8
        From byte 0 on.
    tokens : Tokens
    recipe : Recipe
        Says what a token is.
    cut : str
        That of `SubstringSettings`.
    """
    if recipe.shingles.tokens == "letters":
        return _marks_of_letters(text, tokens, recipe, cut)
    is_text = recipe.shingles.token_kind.holds == "text"
    shut = closed(text, tokens, recipe) if is_text else np.zeros(len(tokens.values), bool)
    marks = shut.astype(np.uint8) * CLOSED
    cut = "line" if recipe.shingles.tokens == "lines" else cut
    if cut == "token":
        return tokens, marks | (OPENS | CLOSES)
    parts = in_parts(text, tokens, cut)
    return parts.tokens, marks | (parts.is_first * OPENS | parts.is_last * CLOSES).astype(np.uint8)


def _marks_of_letters(text: Ragged, letters: Tokens, recipe: Recipe, cut: str) -> tuple[Tokens, np.ndarray]:
    """Return what `marks_of` returns for letters: a part is a word at least, between open boundaries.

    The place of a space is from the word after it to the word before it, so that a cut knows its neighbours.
    """
    words = words_of(letters, recipe)
    whole, of_words = marks_of(text, words.tokens, words.recipe, cut)
    if cut == "token":
        shut = of_words & CLOSED != 0
        of_words = (~shut * OPENS | ~np.append(shut[1:], False)[: len(shut)] * CLOSES).astype(np.uint8)
    marks, number = np.where(words.is_space, GLUE, 0).astype(np.uint8), words.number
    first, space = np.flatnonzero(words.is_first), np.flatnonzero(words.is_space)
    last = np.append(first[1:], len(marks))[: len(first)] - 1
    last -= words.is_space[last]
    marks[first] |= of_words & OPENS
    marks[last] |= of_words & CLOSES
    begins, ends = letters.begins.copy(), letters.ends.copy()
    begins[first], ends[last] = whole.begins, whole.ends
    begins[space], ends[space] = whole.begins[number[space] + 1], whole.ends[number[space]]
    return replace(letters, begins=begins, ends=ends), marks


def closed(text: Ragged, tokens: Tokens, recipe: Recipe) -> np.ndarray:
    """Return whether the boundary before each token is closed.

    Parameters
    ----------
    text : Ragged of uint8
        From byte 0 on.
    tokens : Tokens
    recipe : Recipe
        Says what a token is.
    """
    found = np.zeros(len(tokens.values), bool)
    if len(found) == 0:
        return found
    low, high = tokens.ends[:-1], tokens.begins[1:]
    between = text.values[np.minimum(low, len(text.values) - 1)]  # tokens of the last code point end with the text
    doubtful = np.append(False, (high <= low) | (between >= 128))  # others are divided by ASCII
    doubtful[tokens.offsets[:-1][tokens.sizes > 0]] = False
    at = np.flatnonzero(doubtful)
    low, high = low[at - 1], high[at - 1]
    found[at[high < low]] = True
    at, low, high = (each[high >= low] for each in (at, low, high))
    joins = _is_one_token(text.values, low, high, b"a", recipe)
    at, low, high = at[joins], low[joins], high[joins]
    left = _is_one_token(text.values, tokens.begins[at - 1], low, b"", recipe)
    right = _is_one_token(text.values, high, tokens.ends[at], b"", recipe)
    found[at] = left | right
    return found


def _is_one_token(
    values: np.ndarray, begins: np.ndarray, ends: np.ndarray, before: bytes, recipe: Recipe
) -> np.ndarray:
    """Return which pieces of text are one token, or none, with `before` before them and a letter after them."""
    sizes = ends - begins
    buffers = [None, pa.py_buffer(np.append(0, np.cumsum(sizes))), pa.py_buffer(values[ranges(begins, sizes)])]
    coded = pa.Array.from_buffers(pa.large_binary(), len(sizes), buffers).dictionary_encode()
    pieces = [before + piece + b"a" for piece in coded.dictionary.to_pylist()]
    single = count_tokens(utf8(pieces), recipe, "cpu")[0].sizes < 2
    return single[numpy_of(coded.indices)]
