"""The runs that two documents share, the best sources of each document, and the passages that runs make up.

Runs are found for some documents at a time, so that memory is bounded; a document with many runs is searched alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from neardup_gpu.kernels import common_chains, joined_runs, repeats
from neardup_gpu.kernels._cpu import large

from ..data import ranges, run_begins
from ..engine.choice import kernel, to_host
from ..engine.heap import give_back
from ..engine.pieces import runs_within
from .layout import DocumentLayout
from .settings import PassageSettings

AT_ONCE = 1 << 20
"""Runs that are found at once, unless one document has more."""


class Runs(NamedTuple):
    """Runs of equal tokens, by document, source and place; tokens count in the order of the layout.

    document, source : arrays of int64
        Ranks.
    left, right, size : arrays of int64
        The first token in the document and in the source, and the number of tokens.
    """

    document: np.ndarray
    source: np.ndarray
    left: np.ndarray
    right: np.ndarray
    size: np.ndarray

    def some(self, chosen: np.ndarray) -> Runs:
        """Return some of the runs."""
        return Runs(*(each[chosen] for each in self))

    @property
    def pairs(self) -> np.ndarray:
        """The first run of each pair of documents, and then the number of runs."""
        new = np.ones(len(self.left) + 1, bool)
        new[1:-1] = (np.diff(self.document) != 0) | (np.diff(self.source) != 0)
        return np.flatnonzero(new)


class SharedPassages(NamedTuple):
    """Passages by document, place and source; arrays have a value per passage. Tokens count in each document.

    document, source : arrays of int64
        The numbers of the documents.
    first, last, source_first, source_last : arrays of int64
        The passage is tokens `first` to `last` of the document.
    equal, longest : arrays of int64
        The number of equal tokens, and the number of tokens of the longest run.
    """

    document: np.ndarray
    source: np.ndarray
    first: np.ndarray
    last: np.ndarray
    source_first: np.ndarray
    source_last: np.ndarray
    equal: np.ndarray
    longest: np.ndarray


class PassageGaps(NamedTuple):
    """The tokens in which a passage differs from its source, by passage and place; arrays have a value per gap.

    passage : array of int64
    first, last, source_first, source_last : arrays of int64
        As in `SharedPassages`; either side may be empty.
    """

    passage: np.ndarray
    first: np.ndarray
    last: np.ndarray
    source_first: np.ndarray
    source_last: np.ndarray


class Coverage(NamedTuple):
    """The tokens that documents take from sources, and give; arrays have a value per document, by number.

    taken : array of int64
        Tokens in passages with any source.
    sources : array of int64
        The number of documents that share a passage with it and may be its sources.
    best : array of int64
        The number of the source that shares the most tokens; -1 if there is none.
    given, takers : arrays of int64
        The same from the source's side.
    common : array of int64
        Tokens in common runs.
    """

    taken: np.ndarray
    sources: np.ndarray
    best: np.ndarray
    given: np.ndarray
    takers: np.ndarray
    common: np.ndarray


class FoundPassages(NamedTuple):
    """The result of a search.

    passages : SharedPassages
    gaps : PassageGaps
    coverage : Coverage
    flows : dict of (int, int) to int
        For each two groups, that of documents and that of sources, the tokens of documents that sources share.
    counts : dict of str to int
    """

    passages: SharedPassages
    gaps: PassageGaps
    coverage: Coverage
    flows: dict[tuple[int, int], int]
    counts: dict[str, int]


class _CoverageTally:
    """The numbers of all documents, added up over some documents at a time. Arrays are by rank, `given` is by token."""

    def __init__(self, layout: DocumentLayout) -> None:
        number = len(layout.order)
        self.layout = layout
        self.given = large(len(layout.tokens.values) + 1, np.int32)
        self.given[:] = 0
        self.taken, self.sources, self.takers = (np.zeros(number, np.int64) for _ in range(3))
        self.best, self.best_tokens = np.full(number, -1, np.int64), np.zeros(number, np.int64)
        self.flows: dict[tuple[int, int], int] = {}
        self.counts = {"runs": 0, "pairs": 0, "pairs_listed": 0}

    def add(self, runs: Runs, pairs: np.ndarray) -> np.ndarray:
        """Count the runs of some documents; return the pairs, for each document from those that share most on.

        Of pairs that share as many tokens of the document as another one, the one with the earlier source comes first.
        """
        np.add.at(self.given, runs.right, np.int32(1))  # an int of Python would be slow
        np.add.at(self.given, runs.right + runs.size, np.int32(-1))
        by_place, low, high = np.argsort(runs.left), int(runs.document[0]), int(runs.document[-1]) + 1
        of_documents = (runs.document - low)[by_place], runs.left[by_place], runs.size[by_place]
        self.taken[low:high] = _tokens_of(*of_documents, high - low)  # no other call has runs of these documents
        pair = np.repeat(np.arange(len(pairs) - 1), np.diff(pairs))
        tokens = _tokens_of(pair, runs.left, runs.size, len(pairs) - 1)
        document, source = runs.document[pairs[:-1]], runs.source[pairs[:-1]]
        np.add.at(self.sources, document, 1)
        np.add.at(self.takers, source, 1)
        ranked = np.lexsort((source, -tokens, document))
        first = ranked[np.append(True, np.diff(document) != 0)[: len(ranked)]]  # `document` ascends
        self.best[document[first]], self.best_tokens[document[first]] = source[first], tokens[first]
        self.counts["runs"] += len(runs.left)
        self.counts["pairs"] += len(tokens)
        if self.layout.groups is not None:
            self._flow(runs)
        return ranked

    def _flow(self, runs: Runs) -> None:
        """Count the tokens that documents of one group share with sources of another one."""
        assert self.layout.groups is not None
        codes, number = self.layout.groups.codes[self.layout.order], len(self.layout.groups.names)
        keys, inverse = np.unique(runs.document * number + codes[runs.source], return_inverse=True)
        order = np.lexsort((runs.left, inverse))
        of_keys = _tokens_of(inverse[order], runs.left[order], runs.size[order], len(keys))
        kinds, of_key = np.unique(codes[keys // number] * number + keys % number, return_inverse=True)
        tokens = np.bincount(of_key, of_keys, len(kinds)).astype(np.int64)
        for kind, some in zip(kinds.tolist(), tokens.tolist(), strict=True):
            pair = divmod(kind, number)
            self.flows[pair] = self.flows.get(pair, 0) + some

    def coverage(self, common: np.ndarray) -> Coverage:
        """Return the coverage of all documents by number; `common` has the tokens in common runs by rank."""
        order, offsets = self.layout.order, self.layout.tokens.offsets

        def by_number(of_rank: np.ndarray) -> np.ndarray:
            found = np.empty_like(of_rank)
            found[order] = of_rank
            return found

        given = self.given  # written over twice: it has a value per token
        np.cumsum(given, out=given)
        np.cumsum(given[:-1] > 0, out=given[1:], dtype=np.int32)
        given[0] = 0
        given = np.diff(given[offsets]).astype(np.int64)
        best = np.where(self.best < 0, -1, np.append(order, -1)[self.best])
        return Coverage(
            by_number(self.taken),
            by_number(self.sources),
            by_number(best),
            by_number(given),
            by_number(self.takers),
            by_number(common),
        )


def find(layout: DocumentLayout, settings: PassageSettings, backend: str, k: int | None = None) -> FoundPassages:
    """Find the passages; `k` is the number of tokens of a seed, which changes no result."""
    length, offsets = settings.length, layout.tokens.offsets
    k = max(1, length // 2) if k is None else k
    stretches = kernel(repeats, backend)(layout.tokens.values, layout.rows, length, k)
    pieces = common_chains.cut(tuple(map(to_host, stretches)))
    places, classes, sizes = pieces
    rank = np.searchsorted(offsets, places, side="right") - 1
    most = settings.most_places(len(layout.order))
    linked = common_chains.prepare(pieces, layout.limits[rank], most)
    is_common = (np.bincount(classes, minlength=1) > most)[classes]
    tokens = sizes[is_common] + length - 1
    common = _tokens_of(rank[is_common], places[is_common], tokens, len(layout.order))
    counted = {"windows_common": int(sizes[is_common].sum()), "tokens_common": int(common.sum())}
    num_windows = int(sizes.sum())
    give_back()
    tally = _CoverageTally(layout)
    passages: list[SharedPassages] = []
    gaps: list[PassageGaps] = []
    for runs in _runs(layout, linked, length, backend):
        pairs = runs.pairs
        chosen = _best(runs.document[pairs[:-1]], tally.add(runs, pairs), settings.max_partners)
        tally.counts["pairs_listed"] += len(chosen)
        listed = runs.some(ranges(pairs[chosen], np.diff(pairs)[chosen]))
        before = sum(len(each.first) for each in passages)
        own, differing = _joined(layout, listed, settings.gap, backend)
        gaps.append(differing._replace(passage=differing.passage + before))
        passages.append(own)
    found, differing = _in_order(passages, gaps)
    counts = {**tally.counts, "windows": num_windows, **counted, "most_places": most}
    return FoundPassages(found, differing, tally.coverage(common), tally.flows, counts)


def _tokens_of(owner: np.ndarray, left: np.ndarray, size: np.ndarray, number: int) -> np.ndarray:
    """Return how many tokens of documents the runs of each owner cover; runs lie in the order of (owner, left)."""
    beyond = int(left.max(initial=0) + size.max(initial=0)) + 1
    begin = left + owner * beyond  # so that no two owners have a token in common
    reached = np.maximum.accumulate(begin + size)
    new = begin + size - np.maximum(begin, np.append(0, reached[:-1]))
    return np.bincount(owner, np.maximum(new, 0), number).astype(np.int64)


def _runs(layout: DocumentLayout, linked: common_chains.Linked, length: int, backend: str) -> Iterator[Runs]:
    """Yield the runs of some documents at a time."""
    offsets = layout.tokens.offsets
    first = np.searchsorted(linked.places, offsets)
    pairs = linked.pairs
    most = np.append(np.cumsum(pairs, out=pairs), 0)[first - 1]
    del pairs
    places, ends = linked.places, linked.ends
    linked = linked.on_device() if backend == "gpu" else linked
    number = len(layout.order)
    for begin, end in runs_within(most, AT_ONCE):
        if most[end] > most[begin]:
            found = kernel(common_chains, backend)(linked, int(first[begin]), int(first[end]))
            left, right, size = map(to_host, found)
            size = ends[left + size - 1] - places[left] + length - 1
            left, right = places[left], places[right]
            document, source = (np.searchsorted(offsets, each, side="right") - 1 for each in (left, right))
            order = np.argsort(document * number + source, kind="stable")  # by left and right in each pair
            if len(order):
                yield Runs(document, source, left, right, size).some(order)


def _best(document: np.ndarray, ranked: np.ndarray, most: int) -> np.ndarray:
    """Return the first `most` pairs of each document, ascending; `document` has that of each pair and ascends."""
    place = np.arange(len(ranked)) - np.searchsorted(document, document)
    return np.sort(ranked[place < most])


def _joined(layout: DocumentLayout, runs: Runs, gap: int, backend: str) -> tuple[SharedPassages, PassageGaps]:
    """Join runs to passages, and return the gaps between the runs of each."""
    given = runs.left, runs.right, runs.size, runs.pairs, gap
    passage, skipped = map(to_host, kernel(joined_runs, backend)(*given))
    order = np.argsort(passage, kind="stable")
    runs, skipped, passage = runs.some(order), skipped[order], passage[order]
    new = run_begins(passage)
    first = np.flatnonzero(new)
    last = np.append(first[1:], len(passage))[: len(first)] - 1
    base, source_base = layout.tokens.offsets[runs.document], layout.tokens.offsets[runs.source]
    begin, end = runs.left + skipped - base, runs.left + runs.size - base
    source_begin, source_end = runs.right + skipped - source_base, runs.right + runs.size - source_base
    equal = runs.size - skipped
    nothing = np.empty(0, np.int64)
    found = SharedPassages(
        layout.order[runs.document[first]],
        layout.order[runs.source[first]],
        begin[first],
        end[last],
        source_begin[first],
        source_end[last],
        np.add.reduceat(equal, first) if len(first) else nothing,
        np.maximum.reduceat(equal, first) if len(first) else nothing,
    )
    inner = np.flatnonzero(~new)
    number = (np.cumsum(new) - 1)[inner]
    gaps = PassageGaps(number, end[inner - 1], begin[inner], source_end[inner - 1], source_begin[inner])
    return found, gaps


def _in_order(passages: list[SharedPassages], gaps: list[PassageGaps]) -> tuple[SharedPassages, PassageGaps]:
    """Put passages in the order of (document, place, source, place there), and their gaps, too."""
    nothing = np.empty(0, np.int64)
    found = SharedPassages(*map(np.concatenate, zip([nothing] * 8, *passages, strict=True)))
    differing = PassageGaps(*map(np.concatenate, zip([nothing] * 5, *gaps, strict=True)))
    order = np.lexsort((found.source_first, found.source, found.last, found.first, found.document))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    number = place[differing.passage]
    by_passage = np.lexsort((differing.first, number))
    found = SharedPassages(*(each[order] for each in found))
    return found, PassageGaps(number[by_passage], *(each[by_passage] for each in differing[1:]))
