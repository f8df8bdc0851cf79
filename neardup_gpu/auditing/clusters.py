"""Stated reasons and clusters of a tool, measured pair by pair.

The shingles of all documents that a reason or a cluster names wait in a spool. Of a cluster all pairs of members are
measured, which takes a number of comparisons that grows with the square of its members, in bounded memory. Where two
members resemble each other less than the threshold, the chain that joins them is the path between them in a maximum
spanning tree: the chain whose weakest pair is as strong as that of any chain can be.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..data import Pairs
from ..documents import Documents
from ..documents.batches import some_rows
from ..engine.clock import Clock
from ..engine.contract import Rows
from ..engine.settings import Engine
from ..methods.measures import Measure
from ..recipe import Recipe
from ..records import dataclass
from ..stages import count_shingles, count_tokens
from ..stages.joining import SpooledRows
from ..stages.verification import verify_spooled

MOST_PAIRS = 1 << 22
"""Pairs that are measured at a time."""


class Measured(NamedTuple):
    """The resemblance of pairs of rows of the corpus."""

    left: np.ndarray
    right: np.ndarray
    resemblance: np.ndarray


class MeasuringSpool:
    """Measures pairs of documents whose shingles wait in a spool.

    Parameters
    ----------
    spool : Rows
    rows : array of int64
        The rows of the corpus that wait in the spool, ascending.
    wordless : array of bool
        Which of them have no words.
    measure : Measure
    clock : Clock
    runtime : Runtime
    """

    def __init__(
        self, spool: Rows, rows: np.ndarray, wordless: np.ndarray, measure: Measure, clock: Clock, runtime: Any
    ) -> None:
        self._spool, self._rows, self._measure, self._clock, self._runtime = spool, rows, measure, clock, runtime
        self._wordless = wordless

    def has_words(self, rows: np.ndarray) -> np.ndarray:
        """Return which rows of the corpus have words."""
        return ~self._wordless[np.searchsorted(self._rows, rows)]

    def measured(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return the resemblance of pairs of different rows of the corpus, in any order."""
        if len(left) == 0:
            return np.empty(0)
        low, high = np.minimum(left, right), np.maximum(left, right)
        keys = np.searchsorted(self._rows, low) * len(self._rows) + np.searchsorted(self._rows, high)
        unique, places = np.unique(keys, return_inverse=True)
        pairs = Pairs(unique // len(self._rows), unique % len(self._rows))
        everyone = SpooledRows(self._spool, np.arange(len(self._rows)))
        found = verify_spooled(everyone, pairs, self._measure, 0.0, self._clock, self._runtime)
        return np.asarray(self._runtime.fetch(found.resemblance))[places]


@contextlib.contextmanager
def measuring(documents: Documents, wanted: np.ndarray, recipe: Recipe, folder: Path) -> Iterator[MeasuringSpool]:
    """Let the shingles of the wanted documents, a mask of rows, wait in a spool, so that pairs can be measured."""
    measure = recipe.method.measure
    if measure.directed:
        measure = replace(measure, part="smaller")
    with Engine(backend="cpu").start() as runtime, runtime.spool(folder) as spool:
        without: list[np.ndarray] = []
        for batch in documents.batches():
            places = np.flatnonzero(wanted[batch.first_row : batch.first_row + batch.num_rows])
            if len(places):
                tokens, _ = count_tokens(some_rows(batch.text, places), recipe, "cpu")
                shingles, _ = count_shingles(tokens, recipe, "cpu")
                spool.append(measure.waiting(shingles, "cpu"))
                without.append(tokens.sizes == 0)
        rows = np.flatnonzero(wanted)
        wordless = np.concatenate(without) if without else np.empty(0, bool)
        yield MeasuringSpool(spool, rows, wordless, measure, Clock(None), runtime)


# -------------------------------------------------------------------------------------------------------- clusters


@dataclass
class ClusterFacts:
    """The measurements of a cluster.

    Parameters
    ----------
    label : int
        The number of the cluster.
    members : array of int64
        Rows of the corpus.
    lowest : float
        The lowest resemblance of two members with words; NaN if fewer than two members have words.
    pair : (int, int) or None
        The two members.
    chain : list of int
        The rows that join the two, the two among them, if their resemblance is below the threshold; empty if nothing
        joins them.
    links : list of float
        The resemblance of each pair of neighbours in the chain.
    reasons, holding : int
        The removed members that have words, and those of them that resemble a kept member at the threshold.
    """

    label: int
    members: np.ndarray
    lowest: float = float("nan")
    pair: tuple[int, int] | None = None
    chain: list[int] = field(default_factory=list)
    links: list[float] = field(default_factory=list)
    reasons: int = 0
    holding: int = 0


def measure_clusters(
    labels: np.ndarray, rows: np.ndarray, kept: np.ndarray, spool: MeasuringSpool, threshold: float
) -> list[ClusterFacts]:
    """Measure all clusters of two members or more, in the order of their labels.

    Parameters
    ----------
    labels, rows : arrays of int64
        The cluster of each document, and its row in the corpus.
    kept : array of bool
        Which rows of the corpus were kept.
    spool : MeasuringSpool
    threshold : float
    """
    order = np.lexsort((rows, labels))
    labels, rows = labels[order], rows[order]
    begins = np.flatnonzero(np.diff(labels)) + 1
    found: list[ClusterFacts] = []
    small: list[_ClusterWork] = []
    waiting = 0
    for label, group in zip(np.split(labels, begins), np.split(rows, begins), strict=True):
        if len(group) < 2:
            continue
        number = len(group) * (len(group) - 1) // 2
        if small and waiting + number > MOST_PAIRS:
            found += _measured_together(small, spool)
            small, waiting = [], 0
        small.append(_ClusterWork(int(label[0]), group, kept, spool, threshold))
        waiting += number
    return found + _measured_together(small, spool)


def _measured_together(clusters: list[_ClusterWork], spool: MeasuringSpool) -> list[ClusterFacts]:
    """Measure several clusters, whose pairs are few enough to be measured at once, or one larger cluster."""
    if len(clusters) == 1:
        _measure_alone(clusters[0], spool)
    elif clusters:
        sides = [np.triu_indices(len(each.members), 1) for each in clusters]
        left = np.concatenate([each.members[side[0]] for each, side in zip(clusters, sides, strict=True)])
        right = np.concatenate([each.members[side[1]] for each, side in zip(clusters, sides, strict=True)])
        worth = np.split(spool.measured(left, right), np.cumsum([len(side[0]) for side in sides])[:-1])
        for each, side, values in zip(clusters, sides, worth, strict=True):
            each.add(*side, values)
    return [each.done() for each in clusters]


def _measure_alone(cluster: _ClusterWork, spool: MeasuringSpool) -> None:
    """Measure a cluster of any size, a block of its pairs at a time."""
    group, first = cluster.members, 0
    while first < len(group) - 1:
        last = first + 1
        while last < len(group) - 1 and (last + 1 - first) * len(group) <= MOST_PAIRS:
            last += 1
        left = np.repeat(np.arange(first, last), len(group) - 1 - np.arange(first, last))
        right = np.concatenate([np.arange(each + 1, len(group)) for each in range(first, last)])
        cluster.add(left, right, spool.measured(group[left], group[right]))
        first = last


class _ClusterWork:
    """Gathers what pairs of a cluster say, block by block."""

    def __init__(
        self, label: int, group: np.ndarray, kept: np.ndarray, spool: MeasuringSpool, threshold: float
    ) -> None:
        self.members, self._facts, self._threshold = group, ClusterFacts(label, group), threshold
        self._worded, self._kept = spool.has_words(group), kept[group]
        self._best = np.zeros(len(group))  # of each member with a member that was kept
        self._edges: list[Measured] = []

    def add(self, left: np.ndarray, right: np.ndarray, worth: np.ndarray) -> None:
        """Add some pairs, as places in the cluster."""
        for mine, other in ((left, right), (right, left)):
            of_kept = self._kept[other]
            np.maximum.at(self._best, mine[of_kept], worth[of_kept])
        there = np.flatnonzero(self._worded[left] & self._worded[right])
        if len(there) == 0:
            return
        left, right, worth = left[there], right[there], worth[there]
        least = int(worth.argmin())
        facts = self._facts
        if not worth[least] >= facts.lowest:  # which may be NaN
            facts.lowest = float(worth[least])
            facts.pair = int(left[least]), int(right[least])
        some = worth > 0
        self._edges.append(Measured(left[some], right[some], worth[some]))
        if len(self._edges) > 1:
            self._edges = [_spanning(len(self._kept), self._edges)]

    def done(self) -> ClusterFacts:
        """Return the facts once all pairs were added."""
        facts = self._facts
        removed = ~self._kept & self._worded
        facts.reasons = int(removed.sum())
        facts.holding = int((removed & (self._best >= self._threshold)).sum())
        if facts.pair is not None and facts.lowest < self._threshold:
            path = _path(_spanning(len(self._kept), self._edges), *facts.pair)
            facts.chain = [int(facts.members[place]) for place, _ in path]
            facts.links = [value for _, value in path[1:]]
        if facts.pair is not None:
            facts.pair = int(facts.members[facts.pair[0]]), int(facts.members[facts.pair[1]])
        return facts


def _spanning(number: int, parts: list[Measured]) -> Measured:
    """Return the edges of a maximum spanning forest among those of all parts (Kruskal)."""
    left, right, worth = (np.concatenate(arrays) for arrays in zip(*parts, strict=True)) if parts else [np.empty(0)] * 3
    parent = list(range(number))

    def root(node: int) -> int:
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    chosen = []
    order = np.argsort(-worth, kind="stable")
    for edge, a, b in zip(order.tolist(), left[order].tolist(), right[order].tolist(), strict=True):
        a, b = root(a), root(b)
        if a != b:
            parent[a] = b
            chosen.append(edge)
            if len(chosen) == number - 1:
                break
    return Measured(left[chosen], right[chosen], worth[chosen])


def _path(tree: Measured, start: int, stop: int) -> list[tuple[int, float]]:
    """Return the nodes from `start` to `stop` in a forest, each with the worth of the edge to it; empty without any."""
    near: dict[int, list[tuple[int, float]]] = {}
    for a, b, worth in zip(*(array.tolist() for array in tree), strict=True):
        near.setdefault(a, []).append((b, worth))
        near.setdefault(b, []).append((a, worth))
    before: dict[int, tuple[int, float]] = {start: (start, 1.0)}
    waiting = [start]
    while waiting:
        node = waiting.pop()
        for other, worth in near.get(node, ()):
            if other not in before:
                before[other] = (node, worth)
                waiting.append(other)
    if stop not in before:
        return []
    path = [(stop, before[stop][1])]
    while path[-1][0] != start:
        node = before[path[-1][0]][0]
        path.append((node, before[node][1]))
    return path[::-1]
