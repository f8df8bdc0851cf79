"""The windows of a corpus that repeat, those that are removed, and the passages and cuts that they make up.

The documents lie in the order of their priority here, one after another: this is the order of windows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from neardup_gpu.kernels import removals, repeats

from ..contamination.cutting import bytes_to_cut, united
from ..data import ranges
from ..documents.edits import Cuts
from ..engine.arrays import apart
from ..engine.choice import kernel, to_host
from ..stages.priority import rows_by_priority
from .corpus import TokenCorpus
from .places import Placed, TokenPieces
from .settings import NOTHING, SubstringSettings


class Steps(NamedTuple):
    """A number for each class, where most classes have that of the class before them.

    begins : array of int64
        The first class of each number, ascending.
    values : array of int64
        The numbers; that of the classes before the first one is 0.
    """

    begins: np.ndarray
    values: np.ndarray

    @classmethod
    def of(cls, classes: np.ndarray, sizes: np.ndarray, values: np.ndarray | int = 1) -> Steps:
        """Return the number of stretches that have each class, or the sum of their values."""
        begins, place = np.unique(np.concatenate([classes, classes + sizes]), return_inverse=True)
        values = np.broadcast_to(values, len(classes))
        changes = np.bincount(place, np.concatenate([values, -values]), len(begins))
        return cls(begins, np.cumsum(changes).astype(np.int64))

    def where(self, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the intervals of classes whose numbers are chosen: where each begins and ends."""
        edges = np.flatnonzero(np.diff(np.concatenate([[False], chosen[:-1], [False]])))
        return self.begins[edges[::2]], self.begins[edges[1::2]]


class Windows(NamedTuple):
    """Repeated windows, in stretches: windows of a document that follow one another, and whose classes do.

    Arrays have a value per stretch, in the order of the documents' priority and of places.

    length : int
    num_known : int
        The documents of the reference set, which have the first numbers and the highest priority.
    order : array of int64
        The documents by priority.
    offsets : array of int64
        The first token of each document by priority, among all tokens in that order.
    places : array of int64
        The first token of the first window of each stretch, ascending.
    classes : array of int64
        The class of that window. Windows of equal tokens are of one class.
    sizes : array of int64
        The number of windows.
    copies : Steps
        The number of windows of each class.
    """

    length: int
    num_known: int
    order: np.ndarray
    offsets: np.ndarray
    places: np.ndarray
    classes: np.ndarray
    sizes: np.ndarray
    copies: Steps

    @property
    def ranks(self) -> np.ndarray:
        """The place of the document of each stretch in `order`."""
        return self.ranks_of(self.places)

    @property
    def known(self) -> np.ndarray:
        """Whether each stretch lies in the reference set."""
        return self.places < self.offsets[self.num_known]

    @property
    def last(self) -> np.ndarray:
        """The token after each stretch."""
        return self.places + self.sizes + self.length - 1

    @property
    def counts(self) -> dict[str, int]:
        """The windows of the input, and its tokens in them."""
        own = self.some(~self.known)
        return {"windows": int(own.sizes.sum()), "tokens_covered": covered(own.places, own.last)}

    @property
    def pieces(self) -> TokenPieces:
        """The tokens of all windows, with one more on each side."""
        ranks = self.ranks
        first = np.maximum(self.places - 1, self.offsets[ranks])
        last = np.minimum(self.last + 1, self.offsets[ranks + 1])
        new = np.ones(len(first) + 1, bool)
        new[1:-1] = (np.diff(ranks) != 0) | (first[1:] > last[:-1])
        begins, ends = np.flatnonzero(new[:-1]), np.flatnonzero(new[1:])
        ranks, first, last = ranks[begins], first[begins], last[ends]
        documents, start = self.order[ranks], self.offsets[ranks]
        return TokenPieces(documents, first - start, last - start).some(np.argsort(documents, kind="stable"))

    def some(self, chosen: np.ndarray) -> Windows:
        """Return some of the stretches."""
        return self._replace(places=self.places[chosen], classes=self.classes[chosen], sizes=self.sizes[chosen])

    def ranks_of(self, places: np.ndarray) -> np.ndarray:
        """Return the place in `order` of the document in which each token lies."""
        return np.searchsorted(self.offsets, places, side="right") - 1

    def inside(self, numbers: np.ndarray, begins: np.ndarray, ends: np.ndarray) -> Windows:
        """Return the windows whose numbers lie in intervals, which ascend.

        `numbers` has the number of the first window of each stretch; those that follow have the numbers that follow.
        """
        low = np.searchsorted(ends, numbers, side="right")
        several = np.maximum(np.searchsorted(begins, numbers + self.sizes) - low, 0)
        owner, interval = np.repeat(np.arange(len(low)), several), ranges(low, several)
        first = numbers[owner]
        begin = np.maximum(begins[interval], first)
        sizes = np.minimum(ends[interval], first + self.sizes[owner]) - begin
        skipped = begin - first
        found = self.some(owner)
        found = found._replace(places=found.places + skipped, classes=found.classes + skipped, sizes=sizes)
        return found.some(sizes > 0)

    def in_placed(self, placed: Placed, places: np.ndarray, ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return, for windows of documents by rank, the placed piece of each, and its first token there."""
        sizes = np.empty(len(self.order), np.int64)
        sizes[self.order] = np.diff(self.offsets)
        starts, pieces = np.append(0, np.cumsum(sizes)), placed.pieces
        token = starts[self.order[ranks]] + places - self.offsets[ranks]  # among those of all documents by number
        begins = starts[pieces.documents] + pieces.first
        piece = np.searchsorted(begins, token, side="right") - 1
        return piece, placed.offsets[piece] + token - begins[piece]

    def fewest_copies(self, places: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """Return the least number of copies of `sizes` windows that follow one another, from each place on."""
        low, high = (np.searchsorted(self.places, each, side="right") - 1 for each in (places, places + sizes - 1))
        several = high - low + 1
        owner, stretch = np.repeat(np.arange(len(low)), several), ranges(low, several)
        begin = np.maximum(places[owner], self.places[stretch])
        end = np.minimum((places + sizes)[owner], self.places[stretch] + self.sizes[stretch])
        shift, (begins, values) = self.classes[stretch] - self.places[stretch], self.copies
        first = np.searchsorted(begins, begin + shift, side="right") - 1
        number = np.searchsorted(begins, end + shift) - first
        copies = values[ranges(first, number)]
        for sizes in (number, several):
            copies = np.minimum.reduceat(copies, np.cumsum(sizes) - sizes) if len(sizes) else copies
        return copies


def covered(places: np.ndarray, last: np.ndarray) -> int:
    """Return the number of tokens in intervals, which ascend and may overlap.

    >>> covered(np.array([0, 2, 9]), np.array([5, 7, 14]))
    12
    """
    return int(np.minimum(np.diff(places), (last - places)[:-1]).sum() + (last - places)[-1:].sum())


def find_windows(corpus: TokenCorpus, settings: SubstringSettings, backend: str, k: int | None = None) -> Windows:
    """Find the repeated windows; `k` is the number of tokens of a seed, which changes no result.

    Windows of the reference set that do not occur in the input are left out.
    """
    length, num_known, sizes = settings.length, corpus.num_known, corpus.sizes
    if corpus.words is not None:
        apart(corpus.tokens, corpus.words)
    rule = "first" if settings.keep == NOTHING else settings.keep
    order = rows_by_priority(rule, sizes[num_known:], corpus.columns, corpus.categories)
    order = np.concatenate([np.arange(num_known), num_known + order])
    ordered = corpus if rule == "first" else corpus.in_order(order, backend)
    rows = np.unique(np.concatenate([ordered.tokens.offsets, ordered.bars]))
    k = max(1, length // 2) if k is None else k
    stretches = kernel(repeats, backend)(ordered.tokens.values, rows, length, k)
    places, classes, sizes = map(to_host, stretches)
    offsets = np.append(0, np.cumsum(corpus.sizes[order]))
    whole = ordered.whole_places(places)
    found = Windows(length, num_known, order, offsets, whole, classes, sizes, Steps.of(classes, sizes))
    if num_known:
        own = found.some(~found.known)
        steps = Steps.of(own.classes, own.sizes)
        found = found.inside(found.classes, *steps.where(steps.values > 0))
    if settings.in_documents is not None:
        found = found.inside(found.classes, *_in_documents(found, corpus, settings.in_documents))
    return found


def _in_documents(windows: Windows, corpus: TokenCorpus, least: int | float) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes that occur in at least two documents, and in `least` documents or in this share of them.

    They are intervals: where each begins and ends.
    """
    beyond, ranks = int((windows.classes + windows.sizes).max(initial=0)) + 1, windows.ranks
    begins = windows.classes + ranks * beyond  # so that no two documents have a number in common
    ranks, begins, ends = united(ranks, begins, begins + windows.sizes)
    classes, sizes = begins - ranks * beyond, ends - begins
    having = Steps.of(classes, sizes)
    number = having.values
    if isinstance(least, int):
        return having.where(number >= max(2, least))
    compared: Any = max(1, len(corpus.sizes))
    if corpus.words is not None:
        _, group, members = np.unique(corpus.words, return_inverse=True, return_counts=True)
        compared = Steps.of(classes, sizes, members[group[windows.order[ranks]]]).values // np.maximum(number, 1)
        compared = np.maximum(compared, 1)
    return having.where((number >= 2) & (number / compared >= least))


class RemovedWindows(NamedTuple):
    """Runs of removed windows, which follow one another, and whose sources do.

    places, sizes : arrays of int64
        The first window of each run, and the number of windows.
    sources : array of int64
        The place of the window that the first one repeats; -1 if it has none.
    copies : array
        The number of copies of the window that has the fewest.
    windows : Windows
        All windows.
    """

    places: np.ndarray
    sizes: np.ndarray
    sources: np.ndarray
    copies: np.ndarray
    windows: Windows


def open_windows(windows: Windows, placed: Placed) -> tuple[Windows, int]:
    """Return the windows that begin and end at open boundaries, and the number of the input's other windows."""
    closed = np.flatnonzero(placed.closed)
    begins = closed - windows.length  # of windows that end at a closed boundary
    piece = np.searchsorted(placed.offsets, closed, side="right") - 1
    shut = np.union1d(closed, begins[begins >= placed.offsets[piece]])
    if len(shut) == 0:
        return windows, 0
    _, first = windows.in_placed(placed, windows.places, windows.ranks)
    left = windows.inside(first, np.append(0, shut + 1), np.append(shut, len(placed.marks)))
    return left, windows.counts["windows"] - left.counts["windows"]


def remove(windows: Windows, settings: SubstringSettings, backend: str) -> RemovedWindows:
    """Decide which windows between open boundaries are removed."""
    if settings.keep == NOTHING:
        own = windows.some(~windows.known)
        places, last, ranks = own.places, own.places + own.sizes - 1, own.ranks
        new = np.ones(len(places) + 1, bool)
        new[1:-1] = (places[1:] - last[:-1] > own.length) | (np.diff(ranks) != 0)
        first = np.flatnonzero(new[:-1])
        copies = own.fewest_copies(places, own.sizes)
        copies = np.minimum.reduceat(copies, first) if len(first) else copies
        places = places[first]
        sizes = last[np.flatnonzero(new[1:])] - places + 1
        return RemovedWindows(places, sizes, np.full(len(first), -1, np.int64), copies, windows)
    stretches, fixed = (windows.places, windows.classes, windows.sizes), int(windows.offsets[windows.num_known])
    found = kernel(removals, backend)(stretches, windows.length, settings.keep_copies, fixed)
    places, sources, sizes = map(to_host, found)
    return RemovedWindows(places, sizes, sources, windows.fewest_copies(places, sizes), windows)


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
    """Return the passages that removed windows make up: of each one, the whole parts."""
    windows, sources, copies = removed.windows, removed.sources, removed.copies
    owner, begin = windows.in_placed(placed, removed.places, windows.ranks_of(removed.places))
    end = begin + removed.sizes + windows.length - 1
    inner, last_part = placed.whole_parts(begin, end)
    whole = inner < last_part
    ahead, sources, owner, copies = (inner - begin)[whole], sources[whole], owner[whole], copies[whole]
    begin, end = inner[whole], last_part[whole]
    if len(sources) and sources[0] >= 0:
        source_owner, source = windows.in_placed(placed, sources, windows.ranks_of(sources))
        source += ahead
        source_begin = placed.begins[source].astype(np.int64)
        source_document = placed.pieces.documents[source_owner]
    else:
        source_document, source_begin = np.full(len(owner), -1), np.zeros(len(owner), np.int64)
    found = RemovedPassages(
        placed.pieces.documents[owner],
        placed.begins[begin].astype(np.int64),
        placed.ends[end - 1].astype(np.int64),
        begin - placed.offsets[owner] + placed.pieces.first[owner],
        end - begin,
        copies.astype(np.int64),
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
    text = np.zeros(len(owner), np.int64), placed.text[owner]
    begins, ends = bytes_to_cut(text, (placed.offsets, placed.begins, placed.ends), cut)
    document = pieces.documents[owner]
    # or with the word after it.
    size = last - first + (~has_space & (first > placed.offsets[owner]) & placed.are_spaces(first - 1))
    lost = np.bincount(document, size, num_documents).astype(np.int64)
    offsets = np.searchsorted(document, np.arange(num_documents + 1))
    return Cuts(offsets, begins, ends), lost
