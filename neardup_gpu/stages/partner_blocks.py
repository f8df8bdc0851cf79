"""Find the pairs of `stages/partners.py` block by block of the rows, if too many pairs are found to be held.

    first      for the rows of a block: their first partners among better rows
    settled    greedily: which rows of the block are kept; all better rows are decided by then
    connected  by components: a label per row stands for all known pairs
    kept       for removed rows: their first kept partners, block by block again

The pairs of a block are held until they are used, and are then passed on. A block ends when it has enough pairs. The
found pairs suffice to decide and to list as with all pairs, as in `stages/partners.py`. Each row looks for the same
partners as there, or for more, because the number of partners that it has already is no longer known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field

import numpy as np

from ..data import NO_PAIRS, Pairs
from ..kernels import components, standing
from ..kernels.standing import KEPT, REMOVED
from ..records import dataclass
from . import partners
from .partners import (
    Known,
    Partners,
    Search,
    ask_among,
    connect,
    contained_references,
    contains,
    first_partners,
    further_reference,
    packed_pairs,
    settle,
)
from .verification import Verified


def pairs_a_row(most: int | None, at_most: int) -> int:
    """About how many pairs are found of each row: its first partners; `at_most`, where all are wanted."""
    return at_most if most is None else max(partners.ASKED, most + 1)


@dataclass
class BlockSearch:
    """Finds partners like `find_partners`, and hands them on; it may take its place.

    Parameters
    ----------
    most_pairs : int
        Pairs to hold, about.
    hand_on : callable
        Takes `Verified` pairs that were not known before: in any order, and some of them twice.
    """

    most_pairs: int
    hand_on: Callable[[Verified], None]
    handed_on: int = field(default=0, init=False)
    _label: np.ndarray | None = field(default=None, init=False)

    def __call__(self, search: Search, explicit: Verified, cluster: str) -> Partners:
        """The numbers of what was found; no pairs."""
        search.known.add(explicit)
        self._search, self._known = search, search.known.all()
        self._words = packed_pairs(self._known.pairs.left, self._known.pairs.right)
        self._by_right = np.argsort(self._known.pairs.right, kind="stable")
        self._rights = self._known.pairs.right[self._by_right]
        num_rows = search.num_rows
        self._everyone = np.arange(num_rows)
        self._label = None if cluster == "greedy" else self._everyone
        first, is_open, state = search.first_better(), np.zeros(num_rows, bool), np.full(num_rows, KEPT)
        reached, was_open = first.copy(), is_open.copy()
        most, cut = search.recipe.max_partners, False
        width = max(1, self.most_pairs // pairs_a_row(most, partners.MOST_ASKED))
        for begin in range(0, num_rows, width):
            rows = self._everyone[begin : begin + width]

            def hand_on_now(rows: np.ndarray = rows) -> None:
                self._end()
                self._begin(rows)

            self._begin(rows)
            inputs, words = max(begin, search.num_known), self._words
            if inputs < begin + len(rows):
                cut |= contained_references(search, inputs, begin + len(rows), cluster)
                if most is None:  # then pairs are forgotten while more are found, and may be found again
                    found = search.known.all().pairs
                    hand_on_now()
                    self._words = np.union1d(words, packed_pairs(found.left, found.right))
            first_partners(search, first, is_open, rows, hand_on_now if most is None else None)
            of_block = (self._everyone >= begin) & is_open
            search.known.add(further_reference(search, first, of_block))
            if most is not None and cluster == "greedy":
                reached[rows], was_open[rows] = first[rows], is_open[rows]
                self._settle(state, first, is_open, begin, begin + len(rows))
            self._end()
            self._words = words
        if cluster == "components":
            reached, was_open = first, is_open
        truncated = bool(was_open.any())
        if truncated and cluster == "components":
            connect(search, first, is_open, self._labels, self.most_pairs)
            self._end()
        further = self.handed_on  # of those that follow some may be known
        if truncated:
            kept = state == KEPT if self._label is None else search.pinned | (self._label == self._everyone)
            self._better_partners(kept, is_open & ~kept, first.copy())
            self._worse_partners(kept & was_open, ~kept, reached)
        nothing = Verified(NO_PAIRS, np.empty(0))
        return Partners(nothing, nothing, nothing, search.num_candidates, further, not (truncated or cut), search.looks)

    def _settle(self, state: np.ndarray, first: np.ndarray, is_open: np.ndarray, begin: int, stop: int) -> None:
        """Decide the rows of a block; see `partners._settle`."""
        search = self._search

        def states() -> np.ndarray:
            state[begin:stop] = self._standing(state, is_open, begin, stop)
            return state  # nobody outside of the block is undecided

        def ask(state: np.ndarray, rows: np.ndarray, at_a_time: int) -> np.ndarray:
            index = search.only((state != REMOVED) & (self._everyone < stop))
            return search.ask(index, rows, first, search.last_better(), at_a_time)[0]

        settle(states, ask, is_open)

    def _standing(self, state: np.ndarray, is_open: np.ndarray, begin: int, stop: int) -> np.ndarray:
        """Return the pairs that matter to a block. Earlier rows are decided, and the kept ones count as one row."""
        pairs = self._search.known.all().pairs
        earlier = pairs.left < begin
        matters = ~earlier | (state[pairs.left] == KEPT)
        left = np.where(earlier, 0, pairs.left - begin + 1)[matters]
        right = (pairs.right - begin + 1)[matters]
        order = np.argsort(left, kind="stable")
        pinned = np.concatenate([[True], self._search.pinned[begin:stop]])
        opened = np.concatenate([[False], is_open[begin:stop]])
        return standing.cpu(len(pinned), left[order], right[order], pinned, opened)[1:]

    def _better_partners(self, kept: np.ndarray, rows: np.ndarray, first: np.ndarray) -> None:
        """Find the first partners of some rows among better ones that are kept, which they have not looked at."""
        search = self._search
        stop = search.last_better()
        asking = np.flatnonzero(rows & (first < stop) & search.placed(search.index))
        if len(asking) and kept.any():
            index = search.only(kept)
            for some in self._blocks(asking):
                self._begin(some)
                ask_among(search, index, some, first, stop)
                self._end()

    def _worse_partners(self, late: np.ndarray, rows: np.ndarray, reached: np.ndarray) -> None:
        """Find the first partners of some rows among worse ones that are kept and looked at rows before `reached`."""
        search = self._search
        asking = np.flatnonzero(rows & search.placed(search.index))
        if search.recipe.method.measure.directed or len(asking) == 0 or not late.any():
            return

        def accepts(left: np.ndarray, right: np.ndarray) -> np.ndarray:
            new = left >= reached[right]
            new[new] = search.accepts(left[new], right[new])
            return new

        index, stop = search.only(late), np.full(search.num_rows, search.num_rows)
        for some in self._blocks(asking):
            begin, end = np.searchsorted(self._known.pairs.left, [some[0], some[-1] + 1])
            self._add(np.arange(begin, end))
            ask_among(search, index, some, self._everyone + 1, stop, accepts)
            self._end()

    def _blocks(self, rows: np.ndarray) -> Iterator[np.ndarray]:
        width = max(1, self.most_pairs // pairs_a_row(self._search.recipe.max_partners, partners.MOST_ASKED))
        return (rows[at : at + width] for at in range(0, len(rows), width))

    def _begin(self, rows: np.ndarray) -> None:
        """Know again the pairs that were known before of some rows, ascending, with better ones."""
        begin, end = np.searchsorted(self._rights, [rows[0], rows[-1] + 1])
        self._add(np.sort(self._by_right[begin:end]))

    def _add(self, numbers: np.ndarray) -> None:
        pairs = self._known.pairs
        some = Pairs(pairs.left[numbers], pairs.right[numbers])
        self._search.known = Known()
        self._search.known.add(Verified(some, self._known.resemblance[numbers]))

    def _end(self) -> None:
        """Hand on the pairs that were found, and know no more of them than what they join."""
        search, found = self._search, self._search.known.all()
        search.known = Known()
        if len(found.pairs) == 0:
            return
        left, right = found.pairs.left, found.pairs.right
        new = ~contains(self._words, packed_pairs(left, right))
        self.handed_on += int(new.sum())
        self.hand_on(Verified(found.pairs.where(new), found.resemblance[new]))
        if self._label is not None:
            own = np.flatnonzero(self._label != self._everyone)
            left, right = np.concatenate([self._label[own], left]), np.concatenate([own, right])
            self._label = components.cpu(search.num_rows, left, right)

    def _labels(self) -> np.ndarray:
        """The first row of each row's component, by all pairs so far."""
        self._end()
        assert self._label is not None
        return self._label
