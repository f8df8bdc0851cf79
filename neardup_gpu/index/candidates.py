"""Find the partners of new entries: their candidates that are at the threshold, as far as decisions need them.

V is the set of all pairs of live entries that the method makes candidates and that resemble each other enough: by their
sets; of an index without sets by what the method estimates; without a threshold all candidates do. The pairs of new
entries with earlier ones, old or new, are found in order of sequence, as in `stages/partners.py`:

    1. the first `max_partners` better partners of each; an entry with more candidates than were looked at is open
    2. further ones among what is not removed, until it is certain who is kept
    3. of an open entry that is removed, its first `max_partners` kept partners; of one that is kept, all the rest,
       as it may be among the first kept partners of what is removed

So all pairs are found that decide and that are listed, whatever comes later; and of entries that are not open, all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from neardup_gpu.kernels import components, standing
from neardup_gpu.kernels.standing import KEPT as IS_KEPT, REMOVED, UNDECIDED

from ..data import Pairs, run_begins
from ..methods.finding.contract import WITHOUT_END, EntryRange, FoundEntries
from ..stages.conditions import of_like_lengths
from ..stages.partners import TOGETHER, ask_in_rounds, settle
from ..stages.verification import Verified
from .comparing import compared, estimated
from .segments import KEPT, OPEN, OWNER, Segment
from .snapshot import Snapshot

if TYPE_CHECKING:
    from ..methods.finding.contract import SketchedEntries
    from .sketches import EntryTools


class JoinedEntries(NamedTuple):
    """The findings about new entries.

    left, right : arrays of int64, shape (pairs,)
        Entries, in the order of (left, right); the right one is new, and the left one earlier.
    resemblance : array of float64, shape (pairs,)
    flags : array of uint8, shape (new entries,)
        KEPT, OPEN.
    """

    left: np.ndarray
    right: np.ndarray
    resemblance: np.ndarray
    flags: np.ndarray


class EntryJoin:
    """The search for the partners of some new entries.

    Parameters
    ----------
    snapshot : Snapshot
        What there is, and last the segment of the new entries, in memory.
    sketches : SketchedEntries
        The new entries.
    tools : EntryTools
    """

    def __init__(self, snapshot: Snapshot, sketches: SketchedEntries, tools: EntryTools) -> None:
        self.snapshot, self.sketches, self.finder = snapshot, sketches, tools.finder
        self.recipe, self.keeps, self.runtime = tools
        self.new: Segment = snapshot.segments[-1]
        self.founders = self.new["founders"]
        self.most: int | None = self.recipe.max_partners
        self._apart = self.recipe.unit.divides and not self.recipe.unit.inside
        self._found: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def ask(
        self,
        rows: np.ndarray,
        first: np.ndarray,
        most: int,
        allowed: list[np.ndarray] | None = None,
        label: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Ask for the next candidates of some new rows and verify them; `first`, of all rows, is moved on where a list
        is full. Returns whether each list is full, and how many of its candidates resemble the row enough.

        If entries have a label, those alone are verified that have another one than the row."""
        full, found = np.zeros(len(rows), bool), np.zeros(len(rows), np.int64)
        step = max(1, TOGETHER // min(most, 1 << 12))
        for begin in range(0, len(rows), step):
            some = slice(begin, begin + step)
            asking = rows[some]
            mine = self.sketches.take(asking)
            candidates = self.finder.first(
                self.snapshot, mine, EntryRange(first[asking], self.founders[asking], most, allowed)
            )
            counts = np.bincount(candidates.queries, minlength=len(asking))
            full[some] = counts == most
            last = np.cumsum(counts)[full[some]] - 1
            first[asking[full[some]]] = candidates.entries[last] + 1
            if label is not None:
                apart = label[candidates.entries] != label[self.founders[asking[candidates.queries]]]
                candidates = FoundEntries(candidates.queries[apart], candidates.entries[apart])
            if self._apart:
                of_others = self.snapshot.owners(candidates.entries) != self.new[OWNER][asking[candidates.queries]]
                candidates = FoundEntries(candidates.queries[of_others], candidates.entries[of_others])
            if self.recipe.length_ratio is not None:
                sizes = self.sketches.tokens[asking[candidates.queries]], self.snapshot.tokens(candidates.entries)
                near = of_like_lengths(*sizes, self.recipe.length_ratio)
                candidates = FoundEntries(candidates.queries[near], candidates.entries[near])
            worthy, values = self._worthy(candidates.entries, asking[candidates.queries])
            found[some] = np.bincount(candidates.queries[worthy], minlength=len(asking))
            right = self.founders[asking[candidates.queries[worthy]]]
            self._found.append((candidates.entries[worthy], right, values))
        return full, found

    def _worthy(self, entries: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of the pairs of entries and new rows that resemble each other enough, and what they are worth."""
        if self.keeps.sets or not len(entries):
            given = self.snapshot, self.sketches, rows, entries, self.recipe.method.measure
            values = compared(*given, self.recipe.threshold, self.runtime, entry_first=True)
        else:
            values = estimated(self.snapshot, self.sketches, rows, entries, self.recipe).estimate
        worthy = np.arange(len(rows))
        if self.recipe.threshold is not None:
            worthy = np.flatnonzero(values >= self.recipe.threshold)
        return worthy, values[worthy]

    def pairs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(left, right, resemblance) of all pairs that are known, each once, in order."""
        if len(self._found) != 1:
            nothing = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
            left, right, values = (np.concatenate(each) for each in zip(nothing, *self._found, strict=True))
            order = np.lexsort((right, left))
            left, right, values = left[order], right[order], values[order]
            begins = run_begins(left, right)
            self._found = [(left[begins], right[begins], values[begins])]
        return self._found[0]

    def states(self, is_open: np.ndarray) -> np.ndarray:
        """Return the decision about each new row, see kernels/standing.py."""
        left, right, _ = self.pairs()
        old = left < self.founders[0]
        rows = np.searchsorted(self.founders, right)
        covered = np.unique(rows[old][self.snapshot.kept(left[old])])
        # A row before all others, which is kept, stands for all old ones.
        lefts = np.concatenate([np.zeros(len(covered), np.int64), 1 + np.searchsorted(self.founders, left[~old])])
        rights = 1 + np.concatenate([covered, rows[~old]])
        pinned = np.zeros(1 + len(self.founders), bool)
        pinned[0] = True
        return standing.cpu(len(pinned), lefts, rights, pinned, np.append(False, is_open))[1:]

    def among(self, state: np.ndarray, wanted: tuple[int, ...]) -> list[np.ndarray]:
        """Return the live rows of each segment that are in one of some states; for old ones, as flags say."""
        allowed = []
        for segment in self.snapshot.segments[:-1]:
            kept = segment["flags"] & KEPT != 0
            allowed.append(((segment.live_entries != 0) & (kept if IS_KEPT in wanted else ~kept)).view(np.uint8))
        return [*allowed, np.isin(state, wanted).view(np.uint8)]


def join(snapshot: Snapshot, sketches: SketchedEntries, tools: EntryTools) -> JoinedEntries:
    """Find the pairs of new entries, which are the last segment of a snapshot, and decide of them.

    If common shingles are left out, `decide` finds all pairs, and every entry is kept until then.
    """
    if not len(sketches.tokens) or tools.recipe.ignore_common is not None:
        nothing = np.empty(0, np.int64)
        return JoinedEntries(nothing, nothing, np.empty(0), np.full(len(sketches.tokens), KEPT))
    search = EntryJoin(snapshot, sketches, tools)
    first, is_open = _first_partners(search)
    was_open, reached = is_open.copy(), first.copy()

    def ask(state: np.ndarray, rows: np.ndarray, at_a_time: int) -> np.ndarray:
        return search.ask(rows, first, at_a_time, search.among(state, (int(IS_KEPT), int(UNDECIDED))))[0]

    state = settle(lambda: search.states(is_open), ask, is_open)
    if was_open.any():
        _kept_partners(search, state, was_open & (state == REMOVED), first)
        late = np.flatnonzero(was_open & (state == IS_KEPT))
        if len(late):
            search.ask(late, reached, int(WITHOUT_END), search.among(state, (int(REMOVED),)))
            was_open[late] = False
    flags = np.where(state == IS_KEPT, KEPT, np.uint8(0)) | np.where(was_open, OPEN, np.uint8(0))
    return JoinedEntries(*search.pairs(), flags.astype(np.uint8))


def _first_partners(search: EntryJoin) -> tuple[np.ndarray, np.ndarray]:
    """Find the first `max_partners` better partners of all new rows; returns where each goes on, and which are open."""
    number, most = len(search.founders), search.most
    first, is_open = np.zeros(number, np.int64), np.zeros(number, bool)
    rows = np.flatnonzero(search.sketches.tokens >= search.recipe.unit.min_words)
    wanted = None if most is None else most + 1
    ask_in_rounds(lambda some, at_a_time: search.ask(some, first, at_a_time), rows, most, is_open, wanted)
    return first, is_open


def all_joined(
    snapshot: Snapshot, sketches: SketchedEntries, tools: EntryTools
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(left, right, resemblance) of pairs that join all that V joins, and of the first `max_partners` better partners.

    The entries, numbered from 0, are the one segment. Of an open one only candidates of another component are compared.
    """
    search = EntryJoin(snapshot, sketches, tools)
    first, is_open = _first_partners(search)

    def ask(rows: np.ndarray, at_a_time: int) -> tuple[np.ndarray, np.ndarray]:
        left, right, _ = search.pairs()
        return search.ask(rows, first, at_a_time, label=components.cpu(len(search.founders), left, right))

    ask_in_rounds(ask, np.flatnonzero(is_open), None, np.zeros_like(is_open), None)
    return search.pairs()


def _kept_partners(search: EntryJoin, state: np.ndarray, rows: np.ndarray, first: np.ndarray) -> None:
    """Find the first `max_partners` kept partners of some rows that are removed."""
    assert search.most is not None
    allowed = search.among(state, (int(IS_KEPT),))

    def ask(some: np.ndarray, at_a_time: int) -> tuple[np.ndarray, np.ndarray]:
        return search.ask(some, first, at_a_time, allowed)

    ask_in_rounds(ask, np.flatnonzero(rows), search.most, np.zeros(len(rows), bool), search.most)


def as_verified(left: np.ndarray, right: np.ndarray, values: np.ndarray) -> Verified:
    """Pairs of rows in either order, as `stages/partners.py` takes them."""
    low, high = np.minimum(left, right), np.maximum(left, right)
    order = np.lexsort((high, low))
    return Verified(Pairs(low[order], high[order]), values[order])
