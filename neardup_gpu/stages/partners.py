"""Find the pairs at the threshold that decide and that are listed.

V is the set of all pairs of representatives that the method finds and whose resemblance reaches the threshold. For
`exact` it has every pair at the threshold. A crowd of n near-duplicates has n (n - 1) / 2 pairs in V. So pairs are
found for each document in order of priority, and only those that matter:

    deciding    the pairs from which decisions are made; the decisions always equal those of V
    listed      (i, j), i better, where i is among the first `max_partners` partners in V of j that are better than j,
                or one of the two is removed and the other is among its first `max_partners` kept partners

With a directed measure, such as containment, a row can only stand for worse rows. Then kept partners are better
partners, so that every listed pair is between a row and one of its better partners.

Rows of a reference set come before all others. For each row of the input, `near` has its best pair in V with a row of
the reference set (`NearestReference`), even if that has many partners. For containment, the direction says
whether rows of the input look for rows of the reference set that contain them, or the other way round, or both. If only
the reference set removes documents, V has no pairs of two rows of the input.

Both sets are the same however the work is divided. Adding documents of lower priority changes neither set for earlier
documents, except that a removed document may list more kept partners.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..data import NO_PAIRS, Pairs, look_up, run_begins, runs_of
from ..engine.arrays import same_device
from ..errors import ResourceError
from ..kernels import components, standing
from ..kernels._sort import in_order
from ..kernels.prefixes import LONG, PLACE_BITS
from ..kernels.standing import KEPT, REMOVED, UNDECIDED
from ..methods.contract import Join, Sketch
from ..records import dataclass
from ..report import count
from .conditions import alike_in_length
from .joining import (
    LISTED,
    Common,
    Joiner,
    KnownSets,
    PostingsIndex,
    SpooledRows,
    build_index,
    commonest,
    expected_comparisons,
    meet,
    named_runs,
    raised,
    rows_of_entries,
    stored,
)
from .verification import (
    NearestReference,
    Verified,
    best_of_each,
    in_host_memory,
    nearest_pairs,
    verify_apart,
    verify_sets,
    verify_spooled,
)

if TYPE_CHECKING:
    from ..engine.clock import Clock
    from ..engine.contract import Runtime
    from ..methods.contract import Candidates
    from ..methods.measures import Measure
    from ..recipe import Recipe

ASKED = 64
"""Number of candidates per document in the first round. Each further round has twice as many."""

MOST_ASKED = 1024
"""Maximum number of candidates per document and round."""

BESTS = 16
"""Different thresholds, at most, above which the best pairs with a reference set are looked for at a time."""

TOGETHER = 1 << 22
"""Candidates that are verified together, about."""

SLOW_SECONDS, SLOW_COMPARED, SLOW_FOUND = 20.0, 10_000_000, 1_000
"""A join logs that its data is hard after `SLOW_SECONDS`, when it has compared `SLOW_COMPARED` pairs and found fewer
than one in `SLOW_FOUND`. It logs it again each time that the number of compared pairs has doubled."""

NAMED = 3
"""Shingles that are named where there are too many comparisons."""


class TooManyComparisonsError(ResourceError):
    """More comparisons than `max_comparisons` allows, and the shingles that most of them are for."""

    common: tuple[Common, ...] = ()


class Partners(NamedTuple):
    """Hold the result of `find_partners`. Rows are representatives, by priority.

    listed, deciding : Verified
        In host memory.
    near : Verified
        The best pair of each row of the input with a row of the reference set; in host memory.
    num_candidates : int
        Pairs that were compared.
    num_unlisted : int
        Pairs in V that are not listed, or a lower bound.
    counted : bool
        Whether `num_unlisted` is all that are not listed.
    looks : array of int64, shape (4,)
        As in `Met`.
    """

    listed: Verified
    deciding: Verified
    near: Verified
    num_candidates: int
    num_unlisted: int
    counted: bool
    looks: np.ndarray


Accepts = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Which of some pairs (left, right) count: an array of bool."""

Waiting = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Candidates that wait to be verified: the number of the searching row, that row, and the candidate."""


class Known:
    """Verified pairs that are known, in host memory."""

    def __init__(self) -> None:
        self._packed: list[np.ndarray] = []
        self._resemblance: list[np.ndarray] = []

    def add(self, found: Verified) -> None:
        """Add pairs, which may be known already."""
        self._packed.append(packed_pairs(found.pairs.left, found.pairs.right))
        self._resemblance.append(found.resemblance)

    def all(self) -> Verified:
        """All pairs in order, each once."""
        packed, resemblance = self._joined()
        return Verified(_unpacked(packed), resemblance)

    def packed(self) -> np.ndarray:
        """All pairs as words, in order."""
        return self._joined()[0]

    def _joined(self) -> tuple[np.ndarray, np.ndarray]:
        if len(self._packed) != 1:
            packed = np.concatenate([np.empty(0, np.uint64), *self._packed])
            packed, order = in_order(packed)
            begins = run_begins(packed)
            self._resemblance = [np.concatenate([np.empty(0), *self._resemblance])[order[begins]]]
            self._packed = [packed[begins]]
        return self._packed[0], self._resemblance[0]


class FirstAndBest(Known):
    """Collect verified pairs: for each right row its first pairs by left row, and its best one.

    Parameters
    ----------
    most : int or None
        How many of the first ones a row holds; None for all.
    at_once : int, default TOGETHER
        Pairs that are held, about, before others are let go of.
    """

    def __init__(self, most: int | None, at_once: int | None = None) -> None:
        super().__init__()
        self._most, self._num_added, self._at_once = most, 0, at_once or TOGETHER
        self._limit = self._at_once
        self.cut = False
        """Whether any pair was let go of."""

    def add(self, found: Verified) -> None:
        super().add(found)
        self._num_added += len(found.pairs)
        if self._num_added > self._limit:
            self._limit = max(self._at_once, 2 * len(self.held().pairs))

    def held(self) -> Verified:
        """Let go of all other pairs, and return those that are held."""
        found = self.all()
        if self._most is not None:
            stays = _rank_within(found.pairs.right) < self._most
            stays[best_of_each(found.pairs.left, found.pairs.right, found.resemblance)] = True
            self.cut |= not stays.all()
            found = _where(found, stays)
            self._packed = [packed_pairs(found.pairs.left, found.pairs.right)]
            self._resemblance = [found.resemblance]
        self._num_added = len(found.pairs)
        return found


def packed_pairs(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Pairs of rows as words, whose order is that of the pairs."""
    return left.astype(np.uint64) << np.uint64(32) | right.astype(np.uint64)


def _unpacked(packed: np.ndarray) -> Pairs:
    """Pairs of words in order."""
    return Pairs((packed >> np.uint64(32)).astype(np.int64), (packed & np.uint64(2**32 - 1)).astype(np.int64))


def contains(words: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return which of the wanted words are among `words`, which ascend."""
    return look_up(words, wanted)[1]


def _among(words: np.ndarray, some: np.ndarray) -> np.ndarray:
    """Which of some words in order are among others, which all are."""
    found = np.zeros(len(words), bool)
    found[np.searchsorted(words, some)] = True
    return found


class JoinLimits(NamedTuple):
    """Limits of a join.

    max_comparisons : int, optional
        Entries that may be looked at.
    verified_at_once : int, optional
        Candidates that are verified together, about; `TOGETHER` unless given.
    """

    max_comparisons: int | None = None
    verified_at_once: int | None = None


NO_LIMITS = JoinLimits()


@dataclass
class Search:
    """Search for partners.

    index : list of PostingsIndex
        Its parts.
    pinned : array of bool, shape (rows,)
        Rows of the reference set, which are not compared with one another.
    accepts : callable
        Which of some pairs (left, right) the method finds: an array of bool.
    verify : callable
        The pairs at the threshold among some `Pairs`, as `Verified` in host memory.
    recipe : Recipe
        Its method's measure made the index. By a directed measure, a row can stand for worse ones alone: the kept
        partners of a removed row are better ones then. The method's direction says which rows look for pairs with the
        reference set: those of the input, those of the reference set, or both.
    limits : JoinLimits
    folder : path
        Where temporary files go.
    """

    index: list[PostingsIndex]
    pinned: np.ndarray
    accepts: Accepts
    verify: Callable[[Pairs], Verified]
    recipe: Recipe
    limits: JoinLimits
    folder: Path
    clock: Clock
    runtime: Runtime
    known: Known = field(default_factory=Known)
    num_candidates: int = 0
    num_found: int = 0
    looks: np.ndarray = field(default_factory=lambda: np.zeros(4, np.int64))
    began: float = field(default_factory=perf_counter)
    said: int = 0
    """Number of compared pairs when `_say_if_slow` last logged a line."""

    expected: int = 0
    """About how many looks there will be at most: more only where lists fill up and are gone on with."""

    @property
    def num_rows(self) -> int:
        return len(self.pinned)

    @property
    def num_known(self) -> int:
        """Number of pinned rows, which come first."""
        return int(np.count_nonzero(self.pinned))

    def first_better(self) -> np.ndarray:
        """Return, for each row, the first row that it looks for: int64."""
        first = np.zeros(self.num_rows, np.int64)
        if self.recipe.method.direction == "of":
            first[self.num_known :] = self.num_known
        return first

    def last_better(self) -> np.ndarray:
        """Return, for each row, the row before which the rows that it looks for end: int64."""
        stop = np.arange(self.num_rows)
        return np.minimum(stop, self.num_known) if self.recipe.only_against else stop

    def placed(self, index: list[PostingsIndex]) -> np.ndarray:
        """Whether each row is in a run."""
        there = np.zeros(self.num_rows, bool)
        for part in index:
            there |= np.diff(self.runtime.fetch(part.offsets)) > 0
        return there

    def labels(self) -> np.ndarray:
        """The first row of each row's component, by the pairs that are known."""
        pairs = self.known.all().pairs
        return components.cpu(self.num_rows, pairs.left, pairs.right)

    def only(self, rows: np.ndarray, index: list[PostingsIndex] | None = None) -> list[PostingsIndex]:
        """The index, or another one, with the entries of some rows alone, given as a bool for each."""

        def of_rows(part: PostingsIndex) -> PostingsIndex:
            return part.put(self.runtime).only(self.runtime.put(rows))

        chosen = self.index if index is None else index
        return stored((self.runtime.run(of_rows, part) for part in chosen), len(chosen), self.folder, self.runtime)

    def raised(self, rows: np.ndarray, threshold: float) -> list[PostingsIndex]:
        """Return the index by which some rows find those of the reference set at a higher threshold."""
        join = Joiner(self.recipe.method.measure, threshold, self.runtime)
        parts = (raised(part, rows, self.pinned, join) for part in self.index)
        return stored(parts, len(self.index), self.folder, self.runtime)

    def ask(
        self,
        index: list[PostingsIndex],
        rows: np.ndarray,
        first: np.ndarray,
        stop: np.ndarray,
        most: int,
        *,
        names: np.ndarray | None = None,
        accepts: Accepts | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Ask for the next candidates of some rows, and verify them.

        Parameters
        ----------
        index : list of PostingsIndex
        rows : array of int64, shape (asked,)
        first, stop : arrays of int64
            For each row of the index: its candidates are rows from the first on and before the second. If a row's
            list is full, its `first` is moved past the last one.
        most : int
            Candidates of each row to ask for.
        names : array of int64, optional
            What rows of the index are called here; the same unless given.
        accepts : callable, optional
            Takes the place of the search's own.

        Returns
        -------
        full : array of bool, shape (asked,)
            Whether a row may have more candidates.
        found : array of int64, shape (asked,)
            How many of its candidates resemble it enough.
        """
        names = np.arange(self.num_rows) if names is None else names
        accepts = self.accepts if accepts is None else accepts
        full, found = np.zeros(len(rows), bool), np.zeros(len(rows), np.int64)
        waiting: list[Waiting] = []
        done, held, before = 0, 0, self.known.packed()
        verified_at_once = self.limits.verified_at_once or TOGETHER
        for met in self._meet_rows(index, rows, first[rows], stop[rows], most):
            some = np.arange(done, done + len(met.rows))
            done += len(some)
            full[some] = met.counts == most
            ends = np.cumsum(met.counts)
            first[met.rows[full[some]]] = met.candidates[ends[full[some]] - 1] + 1
            waiting.append((np.repeat(some, met.counts), names[np.repeat(met.rows, met.counts)], names[met.candidates]))
            held += len(met.candidates)
            if held >= verified_at_once:
                self._verify_all(waiting, before, accepts, found)
                waiting, held = [], 0
        if waiting:
            self._verify_all(waiting, before, accepts, found)
        return full, found

    def _meet_rows(
        self, index: list[PostingsIndex], rows: np.ndarray, first: np.ndarray, stop: np.ndarray, most: int
    ) -> Any:
        listed = min(LISTED, max(most, self.limits.verified_at_once or LISTED))
        found_in_turn = meet(index, rows, first, stop, most, self.runtime, listed, self.expected)
        while True:
            with self.clock.stage("join"):
                met = next(found_in_turn, None)
                if met is not None:
                    looks = int(met.looks[0])
                    self.clock.report("join", looks, max(looks, self.expected - int(self.looks[0])))
            if met is None:
                return
            self.looks += met.looks
            if self.limits.max_comparisons is not None and self.looks[0] > self.limits.max_comparisons:
                raise TooManyComparisonsError(f"more than {count(self.limits.max_comparisons, 'comparison')}")
            self._say_if_slow()
            yield met

    def _say_if_slow(self) -> None:
        """Log a line if most of the time goes into pairs that are not found; see `SLOW_SECONDS`."""
        compared = self.num_candidates + int(self.looks[-1])
        if (
            perf_counter() - self.began >= SLOW_SECONDS
            and compared >= max(SLOW_COMPARED, 2 * self.said)
            and compared > SLOW_FOUND * max(1, self.num_found)
        ):
            self.said = compared
            pairs, found = count(compared, "candidate"), count(self.num_found, "pair")
            line = f"{pairs} so far for {found}; this data has many half-similar documents"
            self.clock.say(line, "join", candidates=compared, pairs=self.num_found)

    def _verify_all(self, waiting: list[Waiting], before: np.ndarray, accepts: Accepts, found: np.ndarray) -> None:
        """Verify waiting pairs, and count for each searching row the pairs that reach the threshold.

        Pairs among `before`, words in order, were verified earlier.
        """
        with self.clock.stage("verify"):
            self._verify(waiting, before, accepts, found)

    def _verify(self, waiting: list[Waiting], before: np.ndarray, accepts: Accepts, found: np.ndarray) -> None:
        which, row, other = (np.concatenate(arrays) for arrays in zip(*waiting, strict=True))
        left, right = np.minimum(row, other), np.maximum(row, other)
        there = contains(before, packed_pairs(left, right))
        found += np.bincount(which[there], minlength=len(found))
        new = ~there & ~(self.pinned[left] & self.pinned[right])
        new[new] = accepts(left[new], right[new])
        which, left, right = which[new], left[new], right[new]
        packed, order = in_order(packed_pairs(left, right))
        begins = run_begins(packed)
        pairs = _unpacked(packed[begins])
        self.num_candidates += len(pairs)
        verified = self.verify(pairs)
        self.num_found += len(verified.pairs)
        self.clock.report("verify", len(pairs), None)
        passed = _among(packed[begins], packed_pairs(verified.pairs.left, verified.pairs.right))
        found += np.bincount(which[order[passed[np.cumsum(begins) - 1]]], minlength=len(found))
        self.known.add(verified)


def find_partners(search: Search, explicit: Verified, cluster: str) -> Partners:
    """Find the pairs that decide, and those that are listed.

    Parameters
    ----------
    search : Search
    explicit : Verified
        Pairs in V that are known already.
    cluster : "greedy" or "components"

    Returns
    -------
    Partners
    """
    search.known.add(explicit)
    first = search.first_better()
    is_open = np.zeros(search.num_rows, bool)
    cut = contained_references(search, search.num_known, search.num_rows, cluster)
    first_partners(search, first, is_open, np.arange(search.num_rows))
    near = further_reference(search, first, is_open)
    truncated = bool(is_open.any())
    was_open = is_open
    if truncated and cluster == "greedy":
        is_open = _settle(search, first, is_open)
    elif truncated:
        connect(search, first, is_open, search.labels)
    if truncated:
        kept = kept_rows(search.known.all().pairs, search.pinned, cluster)
        _kept_partners(search, first, was_open, is_open, kept)
    with search.clock.stage("verify"):
        known = search.known.all()
        recipe = search.recipe
        listed, deciding = selected(known, search.pinned, cluster, recipe.max_partners, recipe.method.measure.directed)
        near = nearest_pairs(search.num_known, search.num_rows, near, known)
    unlisted = len(known.pairs) - len(listed.pairs)
    return Partners(listed, deciding, near, search.num_candidates, unlisted, not (truncated or cut), search.looks)


def contained_references(search: Search, begin: int, stop: int, cluster: str) -> bool:
    """Find the pairs of the reference set with rows from `begin` on and before `stop`, by the rows of the set.

    Each row holds its best pair and, greedily, its first `most` ones: it is removed in any case. Components need all,
    as each joins two rows. Return whether a row may have more pairs than it holds.
    """
    if search.recipe.method.direction == "in":
        return False
    held = FirstAndBest(search.recipe.max_partners if cluster == "greedy" else None, search.limits.verified_at_once)
    first, end = np.full(search.num_rows, begin), np.full(search.num_rows, stop)
    nobody, rows = np.zeros(search.num_rows, bool), np.flatnonzero(search.pinned & search.placed(search.index))
    known, search.known = search.known, held
    try:
        ask_in_rounds(lambda some, number: search.ask(search.index, some, first, end, number), rows, None, nobody, None)
    finally:
        search.known = known
    search.known.add(held.held())
    return held.cut


def further_reference(search: Search, first: np.ndarray, is_open: np.ndarray) -> Verified:
    """Return the best pair with the reference set of each open row, if it is better than all that are known.

    A row of a crowd may have every document of the reference set as a partner. So the search only looks for pairs above
    the row's best one, with the prefixes of that threshold: see `joining.raised`. It starts where `first_partners` left
    `first`. A pair that is found later than an equal pair is not better. But a pair that was found from the other side
    may lie further on; then the search looks for equal pairs, too.
    """
    held, end = FirstAndBest(0, search.limits.verified_at_once), np.full(search.num_rows, search.num_known)
    rows = np.flatnonzero(is_open & (first < end) & ~search.pinned & search.placed(search.index))
    if search.recipe.method.direction == "of" or len(rows) == 0:
        return held.held()
    best, first, at_a_time, rounds = NearestReference(search.num_known, 0, search.num_rows), first.copy(), ASKED, 1
    found, known, search.known = search.known.all(), search.known, held
    try:
        while True:
            best.add(found.pairs.left, found.pairs.right, found.resemblance)
            going_on = [np.empty(0, np.int64)]
            to_beat, is_later = best.resemblance[rows], best.row[rows] >= first[rows]
            to_beat[is_later] = np.nextafter(to_beat[is_later], 0)
            for some, threshold in _above_their_best(rows, to_beat):
                index = search.raised(some, threshold)
                for _ in range(rounds):
                    full, _ = search.ask(index, some, first, end, at_a_time)
                    some = some[full]
                going_on.append(some)
            found, rows = held.held(), np.sort(np.concatenate(going_on))
            if len(rows) == 0:
                return found
            at_a_time, rounds = min(2 * at_a_time, MOST_ASKED), 2 * rounds
    finally:
        search.known = known


def _above_their_best(rows: np.ndarray, best: np.ndarray) -> Iterator[tuple[np.ndarray, float]]:
    """Yield rows of about the same best resemblance, which is below 1, and the least number above all of theirs."""
    order = np.argsort(best, kind="stable")
    rows, best = rows[order], best[order]
    values = np.unique(best)
    for some in np.array_split(values, min(BESTS, len(values))):
        if len(some) and some[0] < 1:
            begin, end = np.searchsorted(best, some[0]), np.searchsorted(best, some[-1], side="right")
            yield np.sort(rows[begin:end]), float(np.nextafter(some[0], 2))


def kept_rows(pairs: Pairs, pinned: np.ndarray, cluster: str) -> np.ndarray:
    """Which rows are kept, by pairs that suffice to decide: bool, shape (rows,)."""
    if cluster == "greedy":
        return standing.cpu(len(pinned), pairs.left, pairs.right, pinned, np.zeros(len(pinned), bool)) == KEPT
    label = components.cpu(len(pinned), pairs.left, pairs.right)
    return pinned | (label == np.arange(len(pinned)))


def selected(
    known: Verified, pinned: np.ndarray, cluster: str, most: int | None, directed: bool
) -> tuple[Verified, Verified]:
    """(listed, deciding) of pairs in V that suffice to decide and to list; see the head of this file."""
    kept = kept_rows(known.pairs, pinned, cluster)
    first_better, decides = among_first(known.pairs, kept, most, directed)
    listed = _where(known, first_better | decides)
    return listed, known if cluster == "components" else _where(known, decides)


def among_first(pairs: Pairs, kept: np.ndarray, most: int | None, directed: bool) -> tuple[np.ndarray, np.ndarray]:
    """Two bools of each pair: whether its left row is among the first better partners of its right row, and whether one
    of its rows is removed and the other among the first kept partners of that one, up to `most` of either kind."""
    if most is None:
        most = len(kept)
    first_better = _rank_within(pairs.right) < most  # as pairs ascend by left, so do the better partners of each row
    some, removed, _ = _with_kept_partners(pairs, kept, directed)
    decides = np.zeros(len(pairs), bool)
    decides[some] = _rank_within(removed) < most
    return first_better, decides


def _with_kept_partners(pairs: Pairs, kept: np.ndarray, directed: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (number, removed row, kept row) of each pair of a removed and a kept row, by removed and kept row.

    With a directed measure, the kept row has to be the better one.
    """
    some = kept[pairs.left] != kept[pairs.right]
    some = np.flatnonzero(some & kept[pairs.left] if directed else some)
    left, right = pairs.left[some], pairs.right[some]
    removed = np.where(kept[left], right, left)
    keeper = left + right - removed
    order = np.lexsort((keeper, removed))
    return some[order], removed[order], keeper[order]


def first_partners(
    search: Search,
    first: np.ndarray,
    is_open: np.ndarray,
    rows: np.ndarray,
    told: Callable[[], None] | None = None,
) -> None:
    """Find, for each of some rows, its first `most` partners among better rows, and mark in `is_open` those that may
    have more; `told` is called each time that some are known."""
    stop = search.last_better()

    def ask(some: np.ndarray, at_a_time: int) -> tuple[np.ndarray, np.ndarray]:
        answer = search.ask(search.index, some, first, stop, at_a_time)
        if told is not None:
            told()
        return answer

    rows = rows[(search.placed(search.index) & ~search.pinned)[rows]]
    # One more than is listed: where it is a partner, it is known that one is not.
    most = search.recipe.max_partners
    ask_in_rounds(ask, rows, most, is_open, None if most is None else most + 1)


def ask_in_rounds(
    ask: Callable[[np.ndarray, int], tuple[np.ndarray, np.ndarray]],
    rows: np.ndarray,
    most: int | None,
    is_open: np.ndarray,
    wanted: int | None,
) -> None:
    """Find the first `most` partners of some rows, and mark in `is_open` those that may have more.

    `ask` looks at a number of further candidates per row, at about `wanted` ones in the first round. It returns which
    rows may have more candidates, and how many of the candidates are partners.
    """
    found = np.zeros(len(is_open), np.int64)
    at_a_time = ASKED if wanted is None else max(ASKED, min(wanted, MOST_ASKED))
    while len(rows):
        full, true = ask(rows, at_a_time)
        found[rows] += true
        enough = np.zeros(len(rows), bool) if most is None else found[rows] >= most
        is_open[rows[full & enough]] = True
        rows = rows[full & ~enough]
        at_a_time = min(2 * at_a_time, MOST_ASKED)


def _settle(search: Search, first: np.ndarray, is_open: np.ndarray) -> np.ndarray:
    """Find pairs enough to decide greedily as all of V would: until `standing` leaves no row undecided.

    Returns which rows may still have more partners among rows that are kept.

    Each round looks for further partners of the open rows that no known pair decides, among rows that are not removed.
    All better rows of the first undecided row are decided, so a round decides it or goes on along its candidates.
    """
    stop, is_open = search.last_better(), is_open.copy()

    def states() -> np.ndarray:
        pairs = search.known.all().pairs
        return standing.cpu(search.num_rows, pairs.left, pairs.right, search.pinned, is_open)

    def ask(state: np.ndarray, rows: np.ndarray, at_a_time: int) -> np.ndarray:
        return search.ask(search.only(state != REMOVED), rows, first, stop, at_a_time)[0]

    settle(states, ask, is_open)
    return is_open


def settle(
    states: Callable[[], np.ndarray], ask: Callable[[np.ndarray, np.ndarray, int], np.ndarray], is_open: np.ndarray
) -> np.ndarray:
    """Look for further partners of open rows, until all open rows are decided. Return the states of all rows.

    `ask` looks for candidates of some rows and returns which rows may have more. The other rows are closed.
    """
    at_a_time = ASKED
    while len(rows := np.flatnonzero(((state := states()) == UNDECIDED) & is_open)):
        is_open[rows[~ask(state, rows, at_a_time)]] = False
        at_a_time = min(2 * at_a_time, MOST_ASKED)
    return state


def _kept_partners(
    search: Search, first: np.ndarray, was_open: np.ndarray, is_open: np.ndarray, kept: np.ndarray
) -> None:
    """Find, for each removed row, its first `most` partners among kept rows, as far as they are not known.

    Two kinds of pairs may be unknown: pairs of an open row with better rows that were not compared with it, and pairs
    of a row with a worse open row, which only looked for partners that are not removed. Rows after the last one that a
    removed row would list do not matter.
    """
    assert search.recipe.max_partners is not None
    everyone = np.arange(search.num_rows)
    _, removed, keeper = _with_kept_partners(search.known.all().pairs, kept, search.recipe.method.measure.directed)
    last = _rank_within(removed) == search.recipe.max_partners - 1
    end = np.full(search.num_rows, search.num_rows)
    end[removed[last]] = keeper[last]
    late = kept & was_open
    _ask_all(search, kept, is_open & ~kept, first.copy(), np.minimum(search.last_better(), end))
    if not search.recipe.method.measure.directed:
        _ask_all(search, late, ~kept, everyone + 1, end)


def _ask_all(search: Search, others: np.ndarray, rows: np.ndarray, first: np.ndarray, stop: np.ndarray) -> None:
    """Find the first `most` partners of some rows among others, both given as a bool for each row of the index."""
    asking = np.flatnonzero(rows & (first < stop) & search.placed(search.index))
    if len(asking) and others.any():
        ask_among(search, search.only(others), asking, first, stop)


def ask_among(
    search: Search,
    index: list[PostingsIndex],
    asking: np.ndarray,
    first: np.ndarray,
    stop: np.ndarray,
    accepts: Accepts | None = None,
) -> None:
    """Find the first `most` partners of some rows in an index, from rows `first` on and before `stop`."""

    def ask(some: np.ndarray, at_a_time: int) -> tuple[np.ndarray, np.ndarray]:
        return search.ask(index, some, first, stop, at_a_time, accepts=accepts)

    assert search.recipe.max_partners is not None
    ask_in_rounds(ask, asking, search.recipe.max_partners, np.zeros(search.num_rows, bool), search.recipe.max_partners)


def connect(
    search: Search,
    reached: np.ndarray,
    is_open: np.ndarray,
    labels: Callable[[], np.ndarray],
    at_once: int | None = None,
) -> None:
    """Find pairs enough to join all rows that V joins.

    Only pairs of rows in two known components are compared. Rows are numbered by component, so that each row looks for
    partners in earlier components. Candidates that were joined meanwhile are not verified, and neither are pairs that
    were verified before, which are all but the pairs of an open row with rows from `reached` on. A row stops when it is
    joined with all rows that remain. Pinned rows only look for rows that are not pinned. `labels` returns the first row
    of each row's component by the known pairs. At most `at_once` rows are searched for at a time.
    """
    label = labels()
    order = np.argsort(label, kind="stable")
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    begin = number[label]  # of each row: where its component begins, as a component's label is its first row
    parts = (_renumbered(part, number, label, search.runtime) for part in search.index)
    index = stored(parts, len(search.index), search.folder, search.runtime)
    first, stop = np.zeros(search.num_rows, np.int64), begin[order]
    rows = np.flatnonzero(search.placed(index) & (stop > 0))
    pinned = search.pinned[order]
    others = search.only(~pinned, index)

    def ask(some_rows: np.ndarray, at_a_time: int) -> np.ndarray:
        now = labels()
        asking = _apart(now[order], some_rows, first, stop)

        def apart(left: np.ndarray, right: np.ndarray) -> np.ndarray:
            there = (now[left] != now[right]) & is_open[right] & (left >= reached[right])
            there[there] = search.accepts(left[there], right[there])
            return there

        full = np.zeros(len(asking), bool)
        for some, among in ((pinned[asking], others), (~pinned[asking], index)):
            full[some], _ = search.ask(among, asking[some], first, stop, at_a_time, names=order, accepts=apart)
        return asking[full]

    at_a_time = ASKED
    while len(rows):
        step = len(rows) if at_once is None else max(1, at_once // at_a_time)
        rows = np.concatenate([ask(rows[begin : begin + step], at_a_time) for begin in range(0, len(rows), step)])
        at_a_time = min(2 * at_a_time, MOST_ASKED)


def _apart(label: np.ndarray, rows: np.ndarray, first: np.ndarray, stop: np.ndarray) -> np.ndarray:
    """The rows with one of another component from `first` on and before `stop`; `first` is moved to that one."""
    ends = np.append(np.flatnonzero(label[1:] != label[:-1]) + 1, len(label))
    place = first[rows]
    own = (place < stop[rows]) & (label[np.minimum(place, len(label) - 1)] == label[rows])
    place[own] = ends[np.searchsorted(ends, place[own], side="right")]
    first[rows] = place
    return rows[place < stop[rows]]


def _renumbered(index: PostingsIndex, number: np.ndarray, label: np.ndarray, runtime: Runtime) -> PostingsIndex:
    """The runs of an index that hold rows of more than one component, with rows by other numbers."""
    fetch, put = runtime.fetch, runtime.put
    entries, starts = fetch(index.entries), fetch(index.starts)
    row = rows_of_entries(entries)
    of = label[row]
    run = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    mixed = np.zeros(len(starts) - 1, bool)
    mixed[run[1:][(of[1:] != of[:-1]) & (run[1:] == run[:-1])]] = True
    some = mixed[run]
    low = np.uint64((1 << PLACE_BITS) - 1)
    renamed = (entries & (low | LONG)) | number[row].astype(np.uint64) << np.uint64(PLACE_BITS)
    made = named_runs(run[some], renamed[some], len(number), len(starts), runtime)
    order = np.argsort(number)
    sizes, folds, bitmaps = (put(fetch(array)[order]) for array in (index.sizes, index.folds, index.bitmaps))
    sets = KnownSets(sizes, folds, bitmaps, index.words)
    return PostingsIndex.of(made, sets, index.needed, index.both_sizes)


def _rank_within(values: np.ndarray) -> np.ndarray:
    """For each value, how many equal ones come before it."""
    order = np.argsort(values, kind="stable")
    rank = np.empty(len(values), np.int64)
    rank[order] = np.arange(len(values)) - np.repeat(*runs_of(values[order]))
    return rank


def _where(verified: Verified, chosen: np.ndarray) -> Verified:
    return Verified(verified.pairs.where(chosen), verified.resemblance[chosen])


class JoinedRows(NamedTuple):
    """Representatives in order of priority, among which a join finds the pairs at the threshold.

    keys : array, a row for each representative, or None
        The keys of a method that sketches.
    pinned : array of bool, shape (representatives,)
        The rows of the reference set.
    spooled : SpooledRows
        Where their shingles wait.
    num_tokens : array of int64, shape (representatives,), or None
        Only a recipe with a length ratio needs them.
    owner : array of int64, shape (representatives,), or None
        The document of each row, if pairs of one document do not count. The candidates have no such pair.
    known : Verified or None
        Pairs that are verified already.
    read_later : bool
        Whether the shingles are read after the join. Otherwise sets may be written over them.
    """

    keys: Any
    pinned: np.ndarray
    spooled: SpooledRows
    num_tokens: np.ndarray | None = None
    owner: np.ndarray | None = None
    known: Verified | None = None
    read_later: bool = True


def partners_of(
    joined: JoinedRows,
    candidates: Candidates,
    recipe: Recipe,
    measure: Measure,
    clock: Clock,
    runtime: Runtime,
    limits: JoinLimits = NO_LIMITS,
    find: Callable[[Search, Verified, str], Partners] = find_partners,
) -> Partners:
    """Find the pairs of representatives at the threshold, for a method that verifies its candidates.

    `find` may take the place of `find_partners`.

    A method that sketches proposes pairs. The rows of its large buckets are joined by their shingles, and a joined pair
    counts if the method would have proposed it without a limit on buckets. With a measure that weighs shingles, these
    rows are not joined, and the report says how many pairs were not compared.
    """
    method, threshold = recipe.method, recipe.threshold
    assert threshold is not None
    keys, pinned, spooled, num_tokens, owner, known, read_later = joined
    folder, join = spooled.spool.folder, Joiner(method.measure, threshold, runtime)

    def accepts(left: np.ndarray, right: np.ndarray) -> np.ndarray:
        counts = np.ones(len(left), bool) if owner is None else owner[left] != owner[right]
        if recipe.length_ratio is not None:
            counts &= alike_in_length(num_tokens, left, right, recipe.length_ratio)
        if isinstance(method, Join):
            return counts
        return counts & runtime.fetch(method.are_candidates(keys, *same_device(keys, left, right)))

    num_known = int(np.count_nonzero(pinned))

    def verified(verify: Callable[..., Verified], rows: SpooledRows, pairs: Pairs) -> Verified:
        """Return the pairs at the threshold, in host memory."""

        def by(pairs: Pairs, measure: Measure) -> Verified:
            return in_host_memory(runtime.run(verify, rows, pairs, measure, threshold, clock, runtime), runtime)

        return verify_apart(by, pairs, num_known, measure)

    crowded = runtime.fetch(candidates.crowded)
    members = np.flatnonzero(np.zeros_like(crowded) if measure.weighted else crowded)
    # A method that sketches reads shingles once more, and so does the error of too many comparisons.
    read_later |= isinstance(method, Sketch) or limits.max_comparisons is not None
    over = None if read_later else spooled.spool
    with runtime.spool(folder, runtime.shares.sets, over=over) as sets:
        index: list[PostingsIndex] = []
        if len(members):
            with clock.stage("index"):
                index = build_index(spooled, members, sets, join, clock)
        if method.measure.directed:  # sets wait already
            verify = partial(verified, verify_sets, spooled)
        else:
            places = np.empty(len(spooled.places), np.int64)
            places[spooled.in_order(members)] = np.arange(len(members))
            verify = partial(verified, verify_sets, SpooledRows(sets, places))
        explicit = Verified(NO_PAIRS, np.empty(0))
        search = Search(index, pinned, accepts, verify, recipe, limits, folder, clock, runtime)
        if known is not None:
            search.known.add(known)
        search.expected = expected_comparisons(index, runtime)
        if search.expected:
            clock.say(f"joining: about {count(search.expected, 'comparison')}", "join", total=search.expected)
        with clock.turns():
            if isinstance(method, Sketch):
                with clock.stage("verify"):
                    explicit = verified(verify_spooled, spooled, candidates.pairs)
            try:
                found = find(search, explicit, recipe.cluster)
            except TooManyComparisonsError as error:
                error.common = tuple(commonest(index, spooled, members, join, NAMED))
                raise
    return found._replace(num_candidates=found.num_candidates + len(candidates.pairs))
