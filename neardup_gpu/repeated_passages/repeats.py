"""The windows of a corpus that repeat, those that are removed, and the passages and cuts that they make up.

The documents lie in the order of their priority here, one after another: this is the order of windows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from neardup_gpu.kernels import removals, repeats

from ..contamination.cutting import bytes_to_cut, united
from ..data import look_up
from ..documents.edits import Cuts
from ..engine.arrays import apart
from ..engine.choice import kernel, to_host
from ..engine.memory import check_memory
from ..report import count
from ..stages.priority import rows_by_priority
from .corpus import TokenCorpus
from .places import Placed, TokenPieces
from .settings import NOTHING, SubstringSettings

AT_ONCE = 1 << 20
"""Windows that are looked up at once among placed tokens."""


class Windows(NamedTuple):
    """Repeated windows, in the order of their documents' priority and of their places.

    length : int
    num_known : int
        The documents of the reference set, which have the first numbers and the highest priority.
    order : array of int64
        The documents by priority.
    offsets : array of int64
        The first token of each document by priority, among all tokens in that order.
    places : array of int64, shape (windows,)
        The first token of each window, ascending.
    classes : array of int64, shape (windows,)
        Equal for windows of equal tokens.
    copies : array of int64, shape (windows,)
        The number of windows of equal tokens.
    """

    length: int
    num_known: int
    order: np.ndarray
    offsets: np.ndarray
    places: np.ndarray
    classes: np.ndarray
    copies: np.ndarray

    @property
    def ranks(self) -> np.ndarray:
        """The place of the document of each window in `order`."""
        if len(self.places) == 0:
            return np.empty(0, np.int64)
        low, high = (np.searchsorted(self.offsets, self.places[[0, -1]], side="right") - 1).tolist()
        windows = np.diff(np.searchsorted(self.places, self.offsets[low : high + 2]))
        return np.repeat(np.arange(low, high + 1), windows)

    @property
    def known(self) -> np.ndarray:
        """Whether each window lies in the reference set."""
        return self.places < self.offsets[self.num_known]

    @property
    def covered(self) -> int:
        """The number of tokens of the input in repeated windows."""
        return covered(self.places[~self.known], self.length)

    @property
    def pieces(self) -> TokenPieces:
        """The tokens of all windows, with one more on each side."""
        ranks = self.ranks
        first = np.maximum(self.places - 1, self.offsets[ranks])
        last = np.minimum(self.places + self.length + 1, self.offsets[ranks + 1])
        new = np.ones(len(first) + 1, bool)
        new[1:-1] = (np.diff(ranks) != 0) | (first[1:] > last[:-1])
        begins, ends = np.flatnonzero(new[:-1]), np.flatnonzero(new[1:])
        ranks, first, last = ranks[begins], first[begins], last[ends]
        documents, start = self.order[ranks], self.offsets[ranks]
        return TokenPieces(documents, first - start, last - start).some(np.argsort(documents, kind="stable"))

    def some(self, chosen: np.ndarray | slice) -> Windows:
        """Return some of the windows."""
        return self._replace(places=self.places[chosen], classes=self.classes[chosen], copies=self.copies[chosen])

    def in_placed(self, placed: Placed, places: np.ndarray, ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return, for windows of documents by rank, the placed piece of each, and its first token there."""
        sizes = np.empty(len(self.order), np.int64)
        sizes[self.order] = np.diff(self.offsets)
        starts, pieces = np.append(0, np.cumsum(sizes)), placed.pieces
        token = starts[self.order[ranks]] + places - self.offsets[ranks]  # among those of all documents by number
        begins = starts[pieces.documents] + pieces.first
        piece = np.searchsorted(begins, token, side="right") - 1
        return piece, placed.offsets[piece] + token - begins[piece]


def covered(places: np.ndarray, length: int) -> int:
    """Return the number of tokens in some windows, whose places ascend.

    >>> covered(np.array([0, 2, 9]), 5)
    12
    """
    return int(np.minimum(np.diff(places), length).sum()) + length if len(places) else 0


WINDOW_BYTES = 130
"""Bytes that a search holds per repeated window at most; for 20,418 bills it was 118."""


def check_windows(
    memory: int | None, tokens: np.ndarray, rows: np.ndarray, length: int, bytes_per_window: int = WINDOW_BYTES
) -> None:
    """Raise an error if the windows that may repeat take more than `memory` bytes. Without a bound, accept them.

    Raises
    ------
    ParameterError
    """
    if memory is None:
        return
    _, hashes, windows = repeats.seeds(tokens, rows, length, max(1, length // 2))
    every = np.sort(hashes)
    number = int(windows[look_up(np.unique(every[1:][every[1:] == every[:-1]]), hashes)[1]].sum())
    what = f"{count(len(tokens), 'token')} with {count(number, 'place')} where a passage may repeat"
    check_memory(memory, 8 * len(tokens) + bytes_per_window * number, what, "a larger length")


def find_windows(
    corpus: TokenCorpus, settings: SubstringSettings, backend: str, k: int | None = None, memory: int | None = None
) -> Windows:
    """Find the repeated windows; `k` is the number of tokens of a seed, which changes no result.

    Windows of the reference set that do not occur in the input are left out. A search that needs more than `memory`
    bytes is refused.
    """
    length, num_known, sizes = settings.length, corpus.num_known, corpus.sizes
    if corpus.words is not None:
        apart(corpus.tokens, corpus.words)
    rule = "first" if settings.keep == NOTHING else settings.keep
    order = rows_by_priority(rule, sizes[num_known:], corpus.columns, corpus.categories)
    order = np.concatenate([np.arange(num_known), num_known + order])
    ordered = corpus if rule == "first" else corpus.in_order(order, backend)
    rows = np.unique(np.concatenate([ordered.tokens.offsets, ordered.bars]))
    check_windows(memory, ordered.tokens.values, rows, length)
    k = max(1, length // 2) if k is None else k
    places, classes = map(to_host, kernel(repeats, backend)(ordered.tokens.values, rows, length, k))
    offsets = np.append(0, np.cumsum(sizes[order]))
    copies = np.bincount(classes)[classes]
    found = Windows(length, num_known, order, offsets, ordered.whole_places(places), classes, copies)
    wanted = np.ones(len(places), bool)
    if num_known:
        wanted = np.bincount(classes, ~found.known)[classes] > 0
    if settings.in_documents is not None:
        wanted &= _in_documents(found, corpus, settings.in_documents)
    return found if wanted.all() else found.some(wanted)


def _in_documents(windows: Windows, corpus: TokenCorpus, least: int | float) -> np.ndarray:
    """Return which windows occur in at least two documents, and in `least` documents or in this share of them."""
    by_class = np.argsort(windows.classes, kind="stable")
    classes, ranks = windows.classes[by_class], windows.ranks
    number = len(classes)
    new = np.ones(number, bool)
    new[1:] = (classes[1:] != classes[:-1]) | (ranks[by_class[1:]] != ranks[by_class[:-1]])
    having = np.bincount(classes[new], minlength=number)[windows.classes]
    if isinstance(least, int):
        return having >= max(2, least)
    if corpus.words is None:
        return (having >= 2) & (having / max(1, len(corpus.sizes)) >= least)
    _, group, sizes = np.unique(corpus.words, return_inverse=True, return_counts=True)
    return (having >= 2) & (having / sizes[group[windows.order[ranks]]] >= least)


class RemovedWindows(NamedTuple):
    """The windows that are removed.

    windows : Windows
    sources : array of int64, shape (windows,)
        The place of the window that each one repeats; -1 if it has none.
    """

    windows: Windows
    sources: np.ndarray


def open_windows(windows: Windows, placed: Placed) -> tuple[Windows, int]:
    """Return the windows that begin and end at open boundaries, and the number of the input's other windows."""
    blocks = [windows.some(slice(at, at + AT_ONCE)) for at in range(0, len(windows.places), AT_ONCE)]
    shut = np.concatenate([np.empty(0, bool), *(_shut(block, placed) for block in blocks)])
    number = int(shut[~windows.known].sum())
    return windows.some(~shut) if shut.any() else windows, number


def _shut(windows: Windows, placed: Placed) -> np.ndarray:
    """Return which windows begin or end at a closed boundary."""
    owner, first = windows.in_placed(placed, windows.places, windows.ranks)
    end = first + windows.length
    last = end < placed.offsets[owner + 1]
    return placed.closed[first] | (last & np.append(placed.closed, False)[np.where(last, end, -1)])


def remove(windows: Windows, settings: SubstringSettings, backend: str) -> RemovedWindows:
    """Decide which windows between open boundaries are removed."""
    if settings.keep == NOTHING:
        windows = windows.some(~windows.known)
        return RemovedWindows(windows, np.full(len(windows.places), -1, np.int64))
    if windows.num_known:  # the first window of each class stands for all in the reference set, so none is removed
        known = np.flatnonzero(windows.known)
        stays = ~windows.known
        stays[known[np.unique(windows.classes[known], return_index=True)[1]]] = True
        windows = windows.some(stays)
    sources = to_host(kernel(removals, backend)(windows.places, windows.classes, windows.length, settings.keep_copies))
    gone = sources >= 0
    return RemovedWindows(windows.some(gone), sources[gone])


class RemovedPassages(NamedTuple):
    """Removed passages, by document and place; arrays have a value per passage.

    document : array of int64
        The number of the document.
    begin, end : arrays of int64
        Bytes of its text.
    begin_token, tokens : arrays of int64
    copies : array of int64
        The number of places where its rarest window occurs.
    source : array of int64
        The number of the document that keeps it; -1 if none does.
    source_begin : array of int64
        The byte of that document's text with which it begins.
    """

    document: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    begin_token: np.ndarray
    tokens: np.ndarray
    copies: np.ndarray
    source: np.ndarray
    source_begin: np.ndarray


def passages_of(removed: RemovedWindows, placed: Placed) -> RemovedPassages:
    """Join removed windows that follow one another, and whose sources do, to passages: of each one, the whole parts."""
    windows, sources = removed.windows, removed.sources
    places, length = windows.places, windows.length
    new = np.ones(len(places), bool)
    gap = np.diff(places)
    if len(sources) and sources[0] < 0:
        new[1:] = (gap > length) | (np.diff(windows.ranks) != 0)
    else:
        new[1:] = (gap != 1) | (np.diff(sources) != 1)
    first = np.flatnonzero(new)
    last = np.append(first[1:], len(places))[: len(first)] - 1
    owner, begin = windows.in_placed(placed, places[first], windows.ranks[first])
    end = begin + places[last] - places[first] + length
    inner, last_part = placed.whole_parts(begin, end)
    copies = np.minimum.reduceat(windows.copies, first) if len(first) else np.empty(0, np.int64)
    whole = inner < last_part
    ahead, first, owner, copies = (inner - begin)[whole], first[whole], owner[whole], copies[whole]
    begin, end = inner[whole], last_part[whole]
    if len(sources) and sources[0] >= 0:
        source_ranks = np.searchsorted(windows.offsets, sources[first], side="right") - 1
        source_owner, source = windows.in_placed(placed, sources[first], source_ranks)
        source += ahead
        source_begin = placed.begins[source] - placed.text[source_owner]
        source_document = placed.pieces.documents[source_owner]
    else:
        source_document, source_begin = np.full(len(first), -1), np.zeros(len(first), np.int64)
    start = placed.text[owner]
    found = RemovedPassages(
        placed.pieces.documents[owner],
        placed.begins[begin] - start,
        placed.ends[end - 1] - start,
        begin - placed.offsets[owner] + placed.pieces.first[owner],
        end - begin,
        copies,
        source_document,
        source_begin,
    )
    order = np.lexsort((found.begin_token, found.document))
    return RemovedPassages(*(each[order] for each in found))


def cuts_of(passages: RemovedPassages, placed: Placed, num_documents: int) -> tuple[Cuts, np.ndarray]:
    """Return the bytes to cut out of all documents, and the number of tokens that each loses."""
    pieces = placed.pieces
    beyond = int(pieces.last.max(initial=0)) + 1
    key = pieces.documents * beyond + pieces.first
    owner = np.searchsorted(key, passages.document * beyond + passages.begin_token, side="right") - 1
    begin = placed.offsets[owner] + passages.begin_token - pieces.first[owner]
    end = begin + passages.tokens
    # A space vanishes with the word before it,
    end += (end < placed.offsets[owner + 1]) & placed.are_spaces(np.minimum(end, len(placed.marks) - 1))
    owner, first, last = united(owner, begin, end)
    has_space = placed.are_spaces(last - 1)
    cut = owner, first, last - has_space
    begins, ends = bytes_to_cut(placed.text, (placed.offsets, placed.begins, placed.ends), cut)
    document = pieces.documents[owner]
    # or with the word after it.
    size = last - first + (~has_space & (first > placed.offsets[owner]) & placed.are_spaces(first - 1))
    lost = np.bincount(document, size, num_documents).astype(np.int64)
    offsets = np.searchsorted(document, np.arange(num_documents + 1))
    return Cuts(offsets, begins - placed.text[owner], ends - placed.text[owner]), lost
