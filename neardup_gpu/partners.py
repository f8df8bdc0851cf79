"""All pairs at the threshold: which there are, which decide, and which are listed.

V is the set of all pairs of representatives that the method finds and that resemble each other enough; for `exact`, all
that resemble each other enough. A crowd of n near-duplicates has n (n - 1) / 2 pairs in V. So pairs are found for each
document in order of priority, and only as many as matter:

    deciding    the pairs that decisions are made from; these are the decisions of V, always
    listed      (i, j), i better, where i is among the first `max_partners` partners in V of j that are better than j,
                or one of the two is removed and the other among its first `max_partners` kept partners

By a directed measure, as containment, a row can stand for worse ones alone: kept partners are better ones then, so that
all that is listed is among a row's better partners.

Both are the same however the work is divided. Documents that are added behind by priority change neither for those
before them, but that a removed document may list more kept partners.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neardup_gpu.kernels import components, runs as runs_kernel, standing
from neardup_gpu.kernels._sort import in_order
from neardup_gpu.kernels.prefixes import LONG, PLACE_BITS
from neardup_gpu.kernels.standing import KEPT, REMOVED, UNDECIDED

from .data import NO_PAIRS, Pairs
from .engine.arrays import same_device
from .engine.choice import kernel
from .errors import ResourceError
from .joining import LISTED, Common, Index, build_index, commonest, expected_comparisons, in_order_of, meet, stored
from .report import count
from .stages import Verified
from .verification import in_host_memory, verify_sets, verify_spooled

if TYPE_CHECKING:
    from .engine.clock import Clock
    from .engine.contract import Rows, Runtime
    from .measures import Measure
    from .methods.contract import Candidates
    from .recipe import Recipe

ASKED = 64
"""Candidates that are asked for at a time of each document, in the first round; twice as many in each further one."""

MOST_ASKED = 1024
"""Most candidates that are asked for at a time of each document."""

TOGETHER = 1 << 22
"""Candidates that are verified together, about."""

NAMED = 3
"""Shingles that are named where there are too many comparisons."""


class TooManyComparisonsError(ResourceError):
    """More comparisons than `max_comparisons` allows, and the shingles that most of them are for."""

    common: tuple[Common, ...] = ()


class Partners(NamedTuple):
    """What `find_partners` found; rows are representatives, by priority.

    listed, deciding : Verified
        In host memory.
    num_candidates : int
        Pairs that were compared.
    num_unlisted : int
        Pairs in V that are not listed, or a lower bound.
    counted : bool
        Whether `num_unlisted` is all that are not listed.
    looks : int
        Entries of runs that were looked at.
    """

    listed: Verified
    deciding: Verified
    num_candidates: int
    num_unlisted: int
    counted: bool
    looks: int


Accepts = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Which of some pairs (left, right) count: an array of bool."""

Waiting = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Candidates that wait to be verified: the number of each one's asked row, that row, and the other."""


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
            begins = np.concatenate([np.ones(min(1, len(packed)), bool), packed[1:] != packed[:-1]])
            self._resemblance = [np.concatenate([np.empty(0), *self._resemblance])[order[begins]]]
            self._packed = [packed[begins]]
        return self._packed[0], self._resemblance[0]


def packed_pairs(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Pairs of rows as words, whose order is that of the pairs."""
    return left.astype(np.uint64) << np.uint64(32) | right.astype(np.uint64)


def _unpacked(packed: np.ndarray) -> Pairs:
    """Pairs of words in order."""
    return Pairs((packed >> np.uint64(32)).astype(np.int64), (packed & np.uint64(2**32 - 1)).astype(np.int64))


def contains(words: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """Which of some words are among others, which are in order."""
    if len(words) == 0:
        return np.zeros(len(asked), bool)
    place = np.minimum(np.searchsorted(words, asked), len(words) - 1)
    return words[place] == asked


def _among(words: np.ndarray, some: np.ndarray) -> np.ndarray:
    """Which of some words in order are among others, which all are."""
    found = np.zeros(len(words), bool)
    found[np.searchsorted(words, some)] = True
    return found


@dataclass
class Search:
    """What the search for partners needs and keeps.

    index : list of Index
        Its parts.
    pinned : array of bool, shape (rows,)
        Rows of the reference set, which are no candidates of one another.
    accepts : callable
        Which of some pairs (left, right) the method finds: an array of bool.
    verify : callable
        The pairs at the threshold among some `Pairs`, as `Verified` in host memory.
    directed : bool
        Whether a row can stand for worse ones alone: the kept partners of a removed row are better ones then.
    most : int or None
        `max_partners`.
    max_comparisons : int or None
        Entries that may be looked at.
    folder : path
        Where temporary files go.
    together : int, optional
        Candidates that are verified together, about; `TOGETHER` unless given.
    """

    index: list[Index]
    pinned: np.ndarray
    accepts: Accepts
    verify: Callable[[Pairs], Verified]
    directed: bool
    most: int | None
    max_comparisons: int | None
    folder: Path
    clock: Clock
    runtime: Runtime
    together: int | None = None
    known: Known = field(default_factory=Known)
    num_candidates: int = 0
    looks: int = 0
    expected: int = 0
    """About how many looks there will be at most: more only where lists fill up and are gone on with."""

    @property
    def num_rows(self) -> int:
        return len(self.pinned)

    def placed(self, index: list[Index]) -> np.ndarray:
        """Whether each row is in a run."""
        there = np.zeros(self.num_rows, bool)
        for part in index:
            there |= np.diff(self.runtime.fetch(part.offsets)) > 0
        return there

    def labels(self) -> np.ndarray:
        """The first row of each row's component, by the pairs that are known."""
        pairs = self.known.all().pairs
        return components.cpu(self.num_rows, pairs.left, pairs.right)

    def only(self, rows: np.ndarray, index: list[Index] | None = None) -> list[Index]:
        """The index, or another one, with the entries of some rows alone, given as a bool for each."""

        def of_rows(part: Index) -> Index:
            return part.put(self.runtime).only(self.runtime.put(rows))

        chosen = self.index if index is None else index
        return stored((self.runtime.run(of_rows, part) for part in chosen), len(chosen), self.folder, self.runtime)

    def ask(
        self,
        index: list[Index],
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
        index : list of Index
        rows : array of int64, shape (asked,)
        first, stop : arrays of int64
            For each row of the index: its candidates are rows from the first on and before the second. Where a row's
            list is full, its `first` is moved behind the last one.
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
        together = self.together or TOGETHER
        for met in self._met(index, rows, first[rows], stop[rows], most):
            some = np.arange(done, done + len(met.rows))
            done += len(some)
            full[some] = met.counts == most
            ends = np.cumsum(met.counts)
            first[met.rows[full[some]]] = met.candidates[ends[full[some]] - 1] + 1
            waiting.append((np.repeat(some, met.counts), names[np.repeat(met.rows, met.counts)], names[met.candidates]))
            held += len(met.candidates)
            if held >= together:
                self._verify_all(waiting, before, accepts, found)
                waiting, held = [], 0
        if waiting:
            self._verify_all(waiting, before, accepts, found)
        return full, found

    def _met(self, index: list[Index], rows: np.ndarray, first: np.ndarray, stop: np.ndarray, most: int) -> Any:
        asked = meet(index, rows, first, stop, most, self.runtime, min(LISTED, max(most, self.together or LISTED)))
        while True:
            with self.clock.stage("join"):
                met = next(asked, None)
                if met is not None:
                    self.clock.report("join", met.looks, max(met.looks, self.expected - self.looks))
            if met is None:
                return
            self.looks += met.looks
            if self.max_comparisons is not None and self.looks > self.max_comparisons:
                raise TooManyComparisonsError(f"more than {count(self.max_comparisons, 'comparison')}")
            yield met

    def _verify_all(self, waiting: list[Waiting], before: np.ndarray, accepts: Accepts, found: np.ndarray) -> None:
        """Verify pairs that wait, and count those of each asked row that resemble each other enough.

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
        begins = np.concatenate([np.ones(min(1, len(packed)), bool), packed[1:] != packed[:-1]])
        pairs = _unpacked(packed[begins])
        self.num_candidates += len(pairs)
        verified = self.verify(pairs)
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
    first = np.zeros(search.num_rows, np.int64)
    is_open = np.zeros(search.num_rows, bool)
    first_partners(search, first, is_open, np.arange(search.num_rows))
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
        listed, deciding = selected(known, search.pinned, cluster, search.most, search.directed)
    unlisted = len(known.pairs) - len(listed.pairs)
    return Partners(listed, deciding, search.num_candidates, unlisted, not truncated, search.looks)


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
    """(number, removed row, kept row) of the pairs of a removed and a kept row, in the order of these rows.

    By a directed measure only those of which the better row is kept.
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
    everyone = np.arange(search.num_rows)
    rows = rows[(search.placed(search.index) & ~search.pinned)[rows]]
    found = np.zeros(search.num_rows, np.int64)
    # One more than is listed: where it is a partner, it is known that one is not.
    asked = ASKED if search.most is None else max(ASKED, min(search.most + 1, MOST_ASKED))
    while len(rows):
        full, true = search.ask(search.index, rows, first, everyone, asked)
        if told is not None:
            told()
        found[rows] += true
        enough = np.zeros(len(rows), bool) if search.most is None else found[rows] >= search.most
        is_open[rows[full & enough]] = True
        rows = rows[full & ~enough]
        asked = min(2 * asked, MOST_ASKED)


def _settle(search: Search, first: np.ndarray, is_open: np.ndarray) -> np.ndarray:
    """Find pairs enough to decide greedily as all of V would: until `standing` leaves no row undecided.

    Returns which rows may still have more partners among rows that are kept.

    Open rows that no known pair decides are asked for further partners, among rows that are not removed. The first
    undecided row can only have kept ones: so each round decides it, or goes on along its candidates.
    """
    everyone = np.arange(search.num_rows)
    is_open = is_open.copy()
    asked = ASKED
    while True:
        pairs = search.known.all().pairs
        state = standing.cpu(search.num_rows, pairs.left, pairs.right, search.pinned, is_open)
        rows = np.flatnonzero((state == UNDECIDED) & is_open)
        if len(rows) == 0:
            return is_open
        full, _ = search.ask(search.only(state != REMOVED), rows, first, everyone, asked)
        is_open[rows[~full]] = False
        asked = min(2 * asked, MOST_ASKED)


def _kept_partners(
    search: Search, first: np.ndarray, was_open: np.ndarray, is_open: np.ndarray, kept: np.ndarray
) -> None:
    """Find, for each removed row, its first `most` partners among kept rows, as far as they are not known.

    Two kinds of pairs may not be: of an open row with better rows that it has not looked at, and of rows with a worse
    one that was open, and was then asked for partners among rows that are not removed. Rows after the last one that a
    removed row would list do not matter.
    """
    assert search.most is not None
    everyone = np.arange(search.num_rows)
    _, removed, keeper = _with_kept_partners(search.known.all().pairs, kept, search.directed)
    last = _rank_within(removed) == search.most - 1
    end = np.full(search.num_rows, search.num_rows)
    end[removed[last]] = keeper[last]
    late = kept & was_open
    _ask_all(search, kept, is_open & ~kept, first.copy(), np.minimum(everyone, end))
    if not search.directed:
        _ask_all(search, late, ~kept, everyone + 1, end)


def _ask_all(search: Search, others: np.ndarray, rows: np.ndarray, first: np.ndarray, stop: np.ndarray) -> None:
    """Find the first `most` partners of some rows among others, both given as a bool for each row of the index."""
    asking = np.flatnonzero(rows & (first < stop) & search.placed(search.index))
    if len(asking) and others.any():
        ask_among(search, search.only(others), asking, first, stop)


def ask_among(
    search: Search,
    index: list[Index],
    asking: np.ndarray,
    first: np.ndarray,
    stop: np.ndarray,
    accepts: Accepts | None = None,
) -> None:
    """Find the first `most` partners of some rows in an index, from rows `first` on and before `stop`."""
    assert search.most is not None
    found = np.zeros(search.num_rows, np.int64)
    asked = max(ASKED, min(search.most, MOST_ASKED))
    while len(asking):
        full, true = search.ask(index, asking, first, stop, asked, accepts=accepts)
        found[asking] += true
        asking = asking[full & (found[asking] < search.most)]
        asked = min(2 * asked, MOST_ASKED)


def connect(
    search: Search,
    reached: np.ndarray,
    is_open: np.ndarray,
    labels: Callable[[], np.ndarray],
    at_once: int | None = None,
) -> None:
    """Find pairs enough to join all rows that V joins.

    Only pairs of rows in two components of those known so far are looked at. Rows are numbered by component for it, so
    that each looks for partners in earlier ones; candidates that were joined meanwhile are not verified, nor those that
    were verified before: all but pairs of an open row with rows from `reached` on. A row that was joined with all that
    it has not looked at looks no further. Pinned rows look for others alone. `labels` gives the first row of each row's
    component, of the pairs known so far; so many rows are asked `at_once`.
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

    def ask(some_rows: np.ndarray, asked: int) -> np.ndarray:
        now = labels()
        asking = _apart(now[order], some_rows, first, stop)

        def apart(left: np.ndarray, right: np.ndarray) -> np.ndarray:
            there = (now[left] != now[right]) & is_open[right] & (left >= reached[right])
            there[there] = search.accepts(left[there], right[there])
            return there

        full = np.zeros(len(asking), bool)
        for some, among in ((pinned[asking], others), (~pinned[asking], index)):
            full[some], _ = search.ask(among, asking[some], first, stop, asked, names=order, accepts=apart)
        return asking[full]

    asked = ASKED
    while len(rows):
        step = len(rows) if at_once is None else max(1, at_once // asked)
        rows = np.concatenate([ask(rows[begin : begin + step], asked) for begin in range(0, len(rows), step)])
        asked = min(2 * asked, MOST_ASKED)


def _apart(label: np.ndarray, rows: np.ndarray, first: np.ndarray, stop: np.ndarray) -> np.ndarray:
    """The rows with one of another component from `first` on and before `stop`; `first` is moved to that one."""
    ends = np.append(np.flatnonzero(label[1:] != label[:-1]) + 1, len(label))
    place = first[rows]
    own = (place < stop[rows]) & (label[np.minimum(place, len(label) - 1)] == label[rows])
    place[own] = ends[np.searchsorted(ends, place[own], side="right")]
    first[rows] = place
    return rows[place < stop[rows]]


def _renumbered(index: Index, number: np.ndarray, label: np.ndarray, runtime: Runtime) -> Index:
    """The runs of an index that hold rows of more than one component, with rows by other numbers."""
    fetch, put = runtime.fetch, runtime.put
    entries, starts = fetch(index.entries), fetch(index.starts)
    row = ((entries >> np.uint64(PLACE_BITS)) & np.uint64(2**32 - 1)).astype(np.int64)
    of = label[row]
    run = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    mixed = np.zeros(len(starts) - 1, bool)
    mixed[run[1:][(of[1:] != of[:-1]) & (run[1:] == run[:-1])]] = True
    some = mixed[run]
    low = np.uint64((1 << PLACE_BITS) - 1)
    renamed = (entries & (low | LONG)) | number[row].astype(np.uint64) << np.uint64(PLACE_BITS)
    # Runs are told apart by their highest bits, as those of shingles are.
    names = run.astype(np.uint64) << np.uint64(64 - max(1, len(starts).bit_length()))
    made = kernel(runs_kernel, runtime.backend)(put(names[some]), put(renamed[some]), len(number))
    sizes = np.empty_like(fetch(index.sizes))
    sizes[number] = fetch(index.sizes)
    return Index.of(made, put(sizes), index.needed, index.larger)


def _rank_within(values: np.ndarray) -> np.ndarray:
    """For each value, how many equal ones come before it."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    begins = np.flatnonzero(np.concatenate([np.ones(min(1, len(values)), bool), ordered[1:] != ordered[:-1]]))
    rank = np.empty(len(values), np.int64)
    rank[order] = np.arange(len(values)) - np.repeat(begins, np.diff(np.append(begins, len(values))))
    return rank


def _where(verified: Verified, chosen: np.ndarray) -> Verified:
    return Verified(verified.pairs.where(chosen), verified.resemblance[chosen])


def partners_of(
    keys: Any,
    pinned: np.ndarray,
    spool_rows: np.ndarray,
    spool: Rows,
    candidates: Candidates,
    recipe: Recipe,
    measure: Measure,
    max_comparisons: int | None,
    clock: Clock,
    runtime: Runtime,
    known: Verified | None = None,
    together: int | None = None,
    find: Callable[[Search, Verified, str], Partners] = find_partners,
) -> Partners:
    """Find the pairs of representatives at the threshold, for a method that verifies its candidates.

    `keys`, of a method that sketches, and `pinned` have a row for each; `known` are pairs that are verified already,
    `together` is that of `Search`, and `find` may take the place of `find_partners`.

    A method that sketches proposes pairs; the rows of its large buckets are joined by their shingles, of which those
    pairs count that it would have proposed if no bucket had been too large. By a measure that weighs shingles they are
    not joined, and the report says how many pairs were not compared.
    """
    method, threshold = recipe.method, recipe.threshold
    assert threshold is not None

    def accepts(left: np.ndarray, right: np.ndarray) -> np.ndarray:
        if not method.sketches:
            return np.ones(len(left), bool)
        return runtime.fetch(method.are_candidates(keys, *same_device(keys, left, right)))

    crowded = runtime.fetch(candidates.crowded)
    members = np.flatnonzero(np.zeros_like(crowded) if measure.weighted else crowded)
    with runtime.spool(spool.folder, runtime.shares.sets) as sets:
        index: list[Index] = []
        if len(members):
            with clock.stage("index"):
                index = build_index(spool, spool_rows, members, sets, method.measure, threshold, clock, runtime)
        if method.measure.directed:  # sets wait already
            verify = partial(_verified, verify_sets, spool, spool_rows, measure, threshold, clock, runtime)
        else:
            set_rows = np.empty(len(spool_rows), np.int64)
            set_rows[in_order_of(spool_rows, members)] = np.arange(len(members))
            verify = partial(_verified, verify_sets, sets, set_rows, measure, threshold, clock, runtime)
        explicit = Verified(NO_PAIRS, np.empty(0))
        search = Search(
            index,
            pinned,
            accepts,
            verify,
            method.measure.directed,
            recipe.max_partners,
            max_comparisons,
            spool.folder,
            clock,
            runtime,
            together,
        )
        if known is not None:
            search.known.add(known)
        search.expected = expected_comparisons(index, runtime)
        if search.expected:
            clock.say(f"joining: about {count(search.expected, 'comparison')}", "join", total=search.expected)
        with clock.turns():
            if method.sketches:
                with clock.stage("verify"):
                    settings = measure, threshold, clock, runtime
                    explicit = _verified(verify_spooled, spool, spool_rows, *settings, candidates.pairs)
            try:
                found = find(search, explicit, recipe.cluster)
            except TooManyComparisonsError as error:
                error.common = tuple(
                    commonest(index, spool, spool_rows, members, method.measure, threshold, NAMED, runtime)
                )
                raise
    return found._replace(num_candidates=found.num_candidates + len(candidates.pairs))


def _verified(
    verify: Callable[..., Verified],
    spool: Rows,
    spool_rows: np.ndarray,
    measure: Measure,
    threshold: float,
    clock: Clock,
    runtime: Runtime,
    pairs: Pairs,
) -> Verified:
    """The pairs at the threshold, in host memory."""
    found = runtime.run(verify, spool, spool_rows, pairs, measure, threshold, clock, runtime)
    return in_host_memory(found, runtime)
