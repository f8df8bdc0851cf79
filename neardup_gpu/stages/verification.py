"""The exact measure of pairs whose shingles wait in a spool, a bounded number of them held at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..data import Pairs, Ragged, run_begins
from ..engine.choice import kernel
from ..engine.clock import Clock
from ..engine.contract import Runtime
from ..engine.pieces import Numbers, Span
from ..kernels import components, resemblance
from ..kernels._launch import array_module
from ..kernels._sort import in_order
from ..methods.measures import Measure, worth
from .joining import SpooledRows


class Verified(NamedTuple):
    """Pairs at or above the threshold, and their exact resemblance.

    Parameters
    ----------
    pairs : Pairs
        Rows of the documents.
    resemblance : array of float64, shape (pairs,)
        Exact resemblance of each pair.

    Examples
    --------
    >>> Verified(Pairs([0], [2]), np.array([0.9]))
    Verified(pairs=Pairs(1), resemblance=array([0.9]))
    """

    pairs: Pairs
    resemblance: np.ndarray


def at_least(threshold: float, left: Any, right: Any, found: Any) -> Verified:
    """Return the pairs whose value reaches the threshold. On a device the host waits once, for their number."""
    passed = array_module(found).flatnonzero(found >= threshold)
    return Verified(Pairs._trusted(left[passed], right[passed]), found[passed])


def verify_spooled(
    spooled: SpooledRows, candidates: Pairs, measure: Measure, threshold: float, clock: Clock, runtime: Runtime
) -> Verified:
    """Like `verify`, for shingles in a spool.

    The sets of all candidates are sorted once, into a spool of their own, for `verify_sets`.
    """
    rows = _rows_of(candidates, spooled, runtime)
    with runtime.spool(spooled.spool.folder, runtime.shares.sets) as sets:

        def prepare(part: Span) -> Ragged:
            return measure.prepared(spooled.gather(rows[part.rows]), runtime.backend)

        for made in runtime.map(prepare, spooled.parts(rows, runtime.shares.sorted, "sets")):
            sets.append(made)
        places = np.empty(len(spooled.places), np.int64)
        places[rows] = np.arange(len(rows))
        return verify_sets(SpooledRows(sets, places), candidates, measure, threshold, clock, runtime)


def verify_apart(
    verify: Callable[[Pairs, Measure], Verified], pairs: Pairs, num_known: int, measure: Measure
) -> Verified:
    """Verify pairs, those with a document of a reference set by the measure's `with_reference`.

    Parameters
    ----------
    verify : callable
        Verifies some pairs by a measure.
    pairs : Pairs
    num_known : int
        Rows below it are in the reference set.
    measure : Measure
    """
    of_reference = measure.with_reference
    if of_reference == measure:
        return verify(pairs, measure)
    cut = int(np.searchsorted(pairs.left, num_known))
    parts = [
        verify(Pairs(pairs.left[:cut], pairs.right[:cut]), of_reference),
        verify(Pairs(pairs.left[cut:], pairs.right[cut:]), measure),
    ]
    left, right = (np.concatenate([getattr(part.pairs, side) for part in parts]) for side in ("left", "right"))
    return Verified(Pairs(left, right), np.concatenate([part.resemblance for part in parts]))


def verify_sets(
    sets: SpooledRows, candidates: Pairs, measure: Measure, threshold: float, clock: Clock, runtime: Runtime
) -> Verified:
    """Like `verify`, for what is prepared already and waits in a spool.

    Pairs are compared a connected component at a time, so that most sets are read once. At most `runtime.shares.sets`
    bytes of sets are held at a time, or one pair's, if these are larger.
    """
    left, right = runtime.put(candidates.left), runtime.put(candidates.right)
    rows = _rows_of(candidates, sets, runtime)
    place = np.empty(len(sets.places), np.int64)
    place[rows] = np.arange(len(rows))
    place = runtime.put(place)
    one, other = place[left], place[right]
    held_bytes, sizes = runtime.shares.sets, sets.sizes(rows)
    if 8 * int(sizes.sum()) <= held_bytes:
        found = runtime.run(worth, measure, sets.gather(rows), one, other, threshold, runtime.backend)
        return at_least(threshold, left, right, found)
    one, other = runtime.fetch(one), runtime.fetch(other)
    found = np.full(len(one), -1.0)
    pairs = measure.possible(sizes, one, other, threshold)
    component = runtime.fetch(kernel(components, runtime.backend)(len(sizes), one[pairs], other[pairs]))
    # Inside a giant component: all pairs of one tile of right rows, in the order of their left rows, which are then
    # read one after another.
    tile = np.cumsum(sizes) // (held_bytes // 16)
    # Pairs are in the order of their rows before.
    key = component[other[pairs]] * (int(tile[-1]) + 1) + tile[other[pairs]]
    pairs = pairs[in_order(key.astype(np.uint64))[1]]
    bounds = resemblance.blocks_of_pairs(one[pairs], other[pairs], sizes, held_bytes // 8)
    blocks = (Numbers(pairs[first:last], "pairs") for first, last in zip(bounds[:-1], bounds[1:], strict=True))

    def compare(block: Numbers) -> tuple[np.ndarray, np.ndarray]:
        """Compare the pairs of a block; returns them and what they are worth, in host memory."""
        some = block.numbers
        own, at = np.unique(np.concatenate([one[some], other[some]]), return_inverse=True)
        ends = at[: len(some)], at[len(some) :]
        return some, runtime.fetch(measure.compare(sets.gather(rows[own]), *ends, threshold, runtime.backend))

    done = 0
    for block, measured in runtime.map(compare, blocks):
        found[block] = measured
        done += len(block)
        clock.report("verify", done, len(pairs))
    return at_least(threshold, left, right, runtime.put(found))


def _rows_of(pairs: Pairs, spooled: SpooledRows, runtime: Runtime) -> np.ndarray:
    """All rows of some pairs, in the order in which they lie in a spool; in host memory."""
    left, right = runtime.put(pairs.left), runtime.put(pairs.right)
    xp = array_module(left)
    wanted = xp.zeros(len(spooled.places), bool)
    wanted[left] = wanted[right] = True
    return spooled.in_order(runtime.fetch(xp.flatnonzero(wanted)))


def in_host_memory(verified: Verified, runtime: Runtime) -> Verified:
    """The same pairs, wherever they were."""
    pairs = Pairs(runtime.fetch(verified.pairs.left), runtime.fetch(verified.pairs.right))
    return Verified(pairs, runtime.fetch(verified.resemblance))


# ------------------------------------------------------------------------------------ the best in a reference set


class NearestReference:
    """The row of the reference set with which each row of a range makes its best pair.

    The best pair is the one of the highest resemblance; of equal ones, the one whose reference row comes first.

    Parameters
    ----------
    num_known : int
        Rows below it are in the reference set; they have no partner there themselves.
    first, stop : int
        The range is the rows from `first` on and before `stop`.
    """

    def __init__(self, num_known: int, first: int, stop: int) -> None:
        self._num_known, self._first = num_known, first
        self.row = np.full(stop - first, -1, np.int64)
        """The partner of each row of the range, or -1."""
        self.resemblance = np.full(stop - first, np.nan)
        """The resemblance to the partner, or NaN."""

    def add(self, left: np.ndarray, right: np.ndarray, resemblance: np.ndarray) -> None:
        """Add verified pairs whose right row is in the range: in any order, also repeated."""
        some = np.flatnonzero((left < self._num_known) & (right >= self._num_known))
        if len(some) == 0:
            return
        left, right, resemblance = left[some], right[some] - self._first, resemblance[some]
        best = best_of_each(left, right, resemblance)
        left, right, resemblance = left[best], right[best], resemblance[best]
        held, theirs = self.resemblance[right], self.row[right]
        better = (theirs < 0) | (resemblance > held) | ((resemblance == held) & (left < theirs))
        self.row[right[better]], self.resemblance[right[better]] = left[better], resemblance[better]


def best_of_each(left: np.ndarray, right: np.ndarray, resemblance: np.ndarray) -> np.ndarray:
    """Return the numbers of the best pair of each right row, ascending by that row."""
    order = np.lexsort((left, -resemblance, right))
    return order[run_begins(right[order])]


def nearest_pairs(num_known: int, num_rows: int, *parts: Verified) -> Verified:
    """Return the best pair of each row of the input with a row of the reference set, among some verified pairs."""
    found = NearestReference(num_known, 0, num_rows)
    for verified in parts:
        found.add(verified.pairs.left, verified.pairs.right, verified.resemblance)
    right = np.flatnonzero(found.row >= 0)
    left = found.row[right]
    order = np.argsort(left, kind="stable")
    return Verified(Pairs(left[order], right[order]), found.resemblance[right][order])
