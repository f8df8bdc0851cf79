"""The bytes of the tokens of some documents, and the boundaries between tokens at which no text is cut.

A boundary between two tokens is *closed* if both share a code point, or if nothing between them divides words and one
of them is a word of a script with spaces. No window begins or ends at a closed boundary, so no cut divides a code point
or joins two words. Between Han characters, all boundaries are open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar

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


class Placed(NamedTuple):
    """The places of the tokens of some documents.

    documents : array of int64
        The numbers of the documents, ascending.
    offsets : array of int64, shape (documents + 1,)
        The tokens of document i are `offsets[i]` to `offsets[i + 1]`.
    begins, ends : arrays of int64
        The bytes of each token, in the joined texts of the documents.
    text : array of int64, shape (documents + 1,)
        The bytes of document i are `text[i]` to `text[i + 1]`.
    closed : array of bool
        Whether the boundary before each token is closed; False before the first token of a document.
    """

    documents: np.ndarray
    offsets: np.ndarray
    begins: np.ndarray
    ends: np.ndarray
    text: np.ndarray
    closed: np.ndarray


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
    documents: Documents, chosen: ChosenDocuments, recipe: Recipe, runtime: Runtime, max_bytes: int, clock: Clock
) -> Placed:
    """Read documents again and place the tokens of the chosen ones.

    Raises
    ------
    InputError
        If a chosen document has another number of tokens now.
    """

    def work(placed: PlacedBatch) -> tuple[Tokens, np.ndarray, np.ndarray]:
        return placed.tokens, placed.text.sizes, closed(placed.text, placed.tokens, recipe)

    found = list(placed_again(documents, chosen, recipe, runtime, max_bytes, clock, work))
    before = np.cumsum([0, *(int(text.sum()) for _, text, _ in found)]).tolist()
    none = np.empty(0, np.int64)
    return Placed(
        documents=chosen.numbers,
        offsets=np.append(0, np.cumsum(chosen.sizes)),
        begins=np.concatenate([none, *(each[0].begins + start for each, start in zip(found, before, strict=False))]),
        ends=np.concatenate([none, *(each[0].ends + start for each, start in zip(found, before, strict=False))]),
        text=np.append(0, np.cumsum(np.concatenate([none, *(text for _, text, _ in found)]))),
        closed=np.concatenate([np.empty(0, bool), *(each for _, _, each in found)]),
    )


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
