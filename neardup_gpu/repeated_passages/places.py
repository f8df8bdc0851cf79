"""The bytes of the tokens of some documents, and the boundaries between tokens at which no text is cut.

A boundary between two tokens is *closed* if both share a code point, or if nothing between them divides words and one
of them is a word of a script with spaces. No window begins or ends at a closed boundary, so no cut divides a code point
or joins two words. Between Han characters, all boundaries are open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from ..contamination.items import ranges
from ..data import Ragged, Tokens, arrow, numpy_of
from ..documents.batches import some_rows
from ..documents.stream import Batch, Documents
from ..engine.clock import Clock
from ..engine.contract import Runtime
from ..engine.pieces import OfBatch, Span
from ..errors import InputError
from ..recipe import Recipe
from ..stages import count_tokens, place_tokens, utf8


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
    begins, ends : arrays of int64
        The bytes of each token, in the joined texts of the documents of all pieces.
    text : array of int64, shape (pieces + 1,)
        The text of the document of piece i is bytes `text[i]` to `text[i + 1]`.
    closed : array of bool
        Whether the boundary before each token is closed; False before the first token of a document.
    """

    pieces: TokenPieces
    offsets: np.ndarray
    begins: np.ndarray
    ends: np.ndarray
    text: np.ndarray
    closed: np.ndarray

    @classmethod
    def of(cls, pieces: TokenPieces, parts: list[PlacedTokens]) -> Placed:
        """Join the places of consecutive pieces."""
        begins, ends, sizes, shut = map(np.concatenate, zip(NO_PLACES, *parts, strict=True))
        text, offsets = np.append(0, np.cumsum(sizes)), pieces.offsets
        start = np.repeat(text[:-1], np.diff(offsets))
        return cls(pieces, offsets, begins + start, ends + start, text, shut)


class PlacedTokens(NamedTuple):
    """The places of the tokens of some pieces, which the next pieces' tokens follow.

    begins, ends : arrays of int64
        The bytes of each token in the text of its document.
    sizes : array of int64, shape (pieces,)
        The bytes of the text of each piece's document.
    closed : array of bool
        As in `Placed`.
    """

    begins: np.ndarray
    ends: np.ndarray
    sizes: np.ndarray
    closed: np.ndarray


_NOTHING = np.empty(0, np.int64)
NO_PLACES = PlacedTokens(_NOTHING, _NOTHING, _NOTHING, np.empty(0, bool))


class ChosenDocuments(NamedTuple):
    """Documents whose tokens are placed.

    numbers : array of int64
        Ascending.
    sizes : array of int64
        The number of tokens of each at the first reading.
    """

    numbers: np.ndarray
    sizes: np.ndarray


class PlacedBatch(NamedTuple):
    """Some documents of a batch, read again.

    documents : slice
        Which of the chosen documents they are.
    text : Ragged of uint8
    tokens : Tokens
        From byte 0 of the text on.
    """

    documents: slice
    text: Ragged
    tokens: Tokens


T = TypeVar("T")


def placed_again(
    documents: Documents,
    chosen: ChosenDocuments,
    recipe: Recipe,
    runtime: Runtime,
    max_bytes: int,
    clock: Clock,
    work: Callable[[PlacedBatch], T],
) -> Iterator[T]:
    """Read documents again, place the tokens of the chosen ones, and yield what `work` makes of them, in order.

    Parameters
    ----------
    documents : Documents
    chosen : ChosenDocuments
    recipe : Recipe
    runtime : Runtime
    max_bytes : int
    clock : Clock
    work : callable
        Called for some documents at a time, by several threads at once.

    Raises
    ------
    InputError
        If a chosen document has another number of tokens now.
    """
    backend = "cpu" if runtime.backend == "gpu" else runtime.backend
    changed = InputError("the documents are not those of the first reading; run again on files that do not change")

    def place(piece: OfBatch) -> tuple[Batch, int, T]:
        batch: Batch = piece.batch
        first, last = batch.first_row + piece.span.first, batch.first_row + piece.span.last
        some = slice(*np.searchsorted(chosen.numbers, [first, last]).tolist())
        rows = chosen.numbers[some] - batch.first_row
        text = some_rows(batch.text, rows)
        tokens = place_tokens(text, recipe, backend, batch.ids.take(arrow(rows)))
        if not np.array_equal(tokens.sizes, chosen.sizes[some]):
            raise changed
        return batch, len(rows), work(PlacedBatch(some, text, tokens))

    with clock.stage("locate"):
        batches = documents.batches(max_bytes=max_bytes)
        pieces = (OfBatch(batch, Span.of_documents(batch.text.offsets, batch.ids)) for batch in batches)
        placed = 0
        for batch, number, result in runtime.map(place, pieces):
            placed += number
            clock.report("locate", batch.first_row + batch.num_rows, documents.num_rows)
            yield result
        if placed < len(chosen.numbers):
            raise changed


def place_again(
    documents: Documents,
    pieces: TokenPieces,
    sizes: np.ndarray,
    recipe: Recipe,
    runtime: Runtime,
    max_bytes: int,
    clock: Clock,
) -> list[PlacedTokens]:
    """Read documents again and place the tokens of some pieces; `sizes` has the number of tokens of each document.

    Raises
    ------
    InputError
        If a document of a piece has another number of tokens now.
    """
    numbers = np.unique(pieces.documents)
    bounds = np.searchsorted(pieces.documents, np.append(numbers, len(sizes)))

    def work(placed: PlacedBatch) -> PlacedTokens:
        some = pieces.some(slice(*bounds[[placed.documents.start, placed.documents.stop]].tolist()))
        row = np.searchsorted(numbers[placed.documents], some.documents)
        chosen = ranges(placed.tokens.offsets[row] + some.first, some.last - some.first)
        start = np.repeat(placed.text.offsets[row], some.last - some.first)
        shut = closed(placed.text, placed.tokens, recipe)[chosen]
        tokens = placed.tokens
        return PlacedTokens(tokens.begins[chosen] - start, tokens.ends[chosen] - start, placed.text.sizes[row], shut)

    given = ChosenDocuments(numbers, sizes[numbers])
    return list(placed_again(documents, given, recipe, runtime, max_bytes, clock, work))


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
