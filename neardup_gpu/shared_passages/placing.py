"""The bytes of passages, and the words in which a passage and its source differ: documents are read again."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..documents.stream import Documents
from ..records import dataclass
from ..repeated_passages.corpus import TokenReader
from ..repeated_passages.places import PlacedBatch, placed_again
from ..repeated_passages.reading import CorporaHere
from ..text.raw_text import TO_STRING, to_readable


class TokenSpans(NamedTuple):
    """Intervals of tokens; arrays have a value per interval.

    document : array of int64
        The number of the document in its input.
    first, last : arrays of int64
        Tokens `first` to `last` of the document. An empty interval is preceded by a token.
    """

    document: np.ndarray
    first: np.ndarray
    last: np.ndarray


class PlacedSpans(NamedTuple):
    """The bytes of intervals, in their documents' text, and the text of some of them.

    begin, end : arrays of int64
    text : dict of int to str
    """

    begin: np.ndarray
    end: np.ndarray
    text: dict[int, str]


def place_spans(
    documents: Documents, spans: TokenSpans, from_text: int, sizes: np.ndarray, reader: TokenReader
) -> PlacedSpans:
    """Place intervals of tokens; from the interval `from_text` on, return their texts as well.

    Parameters
    ----------
    documents : Documents
    spans : TokenSpans
    from_text : int
    sizes : array of int64
        The number of tokens of each document at the first reading.
    reader : TokenReader

    Raises
    ------
    InputError
        If the documents have changed.
    """
    order = np.argsort(spans.document, kind="stable")
    document, first, last = (each[order] for each in spans)
    found = PlacedSpans(np.empty(len(order), np.int64), np.empty(len(order), np.int64), {})

    to_string = TO_STRING[reader.recipe.shingles.token_kind.holds]

    def work(placed: PlacedBatch) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[int, str]]:
        some, row = placed.intervals, placed.row
        tokens, start = placed.tokens, placed.text.offsets[row]
        low, high = tokens.offsets[row] + first[some], tokens.offsets[row] + last[some]
        end = tokens.ends[high - 1]
        begin = np.where(low < high, tokens.begins[np.minimum(low, len(tokens.begins) - 1)], end)
        text = {
            int(order[some][span]): to_readable(to_string(placed.text.values[begin[span] : end[span]].tobytes()))
            for span in np.flatnonzero(order[some] >= from_text).tolist()
        }
        return order[some], begin - start, end - start, text

    for number, begin, end, text in placed_again(documents, document, sizes, reader, work):
        found.begin[number], found.end[number] = begin, end
        found.text.update(text)
    return found


@dataclass(eq=False)
class ReadHere(CorporaHere):
    """The reading of the inputs of a search, and the placing of its passages, in this process."""

    def place(self, number: int, spans: TokenSpans, from_text: int, sizes: np.ndarray) -> PlacedSpans:
        """Place intervals of tokens of an input; see `place_spans`."""
        return place_spans(self.sources.in_order[number], spans, from_text, sizes, self.reader)
