"""The sampled check of recall: some documents compared with all others, without the help of the method."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import theory
from ..data import Pairs, Ragged
from ..engine.arrays import same_device
from ..engine.choice import kernel
from ..engine.pieces import Span
from ..kernels import overlap
from ..kernels._gf2 import mix64_all
from ..methods.contract import Join, Sketch
from ..methods.measures import Measure, shingle_sets
from .conditions import alike_in_length
from .joining import SpooledRows
from .verification import in_host_memory, verify_apart, verify_spooled

if TYPE_CHECKING:
    from ..engine.clock import Clock
    from ..engine.contract import Runtime
    from ..recipe import Recipe
    from .decisions import Decisions, Groups
    from .verification import Verified

SAMPLED = 200
"""Documents that are sampled by default, if the method may miss pairs."""

PARTNERS = 200
"""Documents that one sampled document is compared with, at most."""

ADDITIONS = 20_000
"""Shingles that a document may share with all sampled ones together, on average; beyond it, fewer are sampled."""

LONGEST = 1 << 15
"""Shingles of the longest document that is sampled, so that a sample fits in 50 MB."""

LOOKED_AT = 1 << 20
"""Documents that are looked at between two reports of progress."""

CONFIDENCE = 0.99


def choose_check(check: int | None, recipe: Recipe) -> int:
    """Return how many documents are sampled: `check`, or if it is None the usual number; 0 if nothing is verified."""
    if not recipe.verifies:
        return 0
    return (SAMPLED if isinstance(recipe.method, Sketch) else 0) if check is None else check


def random_order(document_hashes: np.ndarray) -> np.ndarray:
    """Words that put documents in a random order, which depends on their contents alone: uint64, shape (documents,)."""
    return mix64_all(document_hashes[:, 0])


class CheckedRun(NamedTuple):
    """The parts of a run that the check needs; rows are representatives, in priority order.

    spooled : SpooledRows
        Where their shingles wait.
    crowded : array of bool, shape (rows,)
        Rows whose pairs may not have been compared, whatever their keys say.
    """

    spooled: SpooledRows
    groups: Groups
    decisions: Decisions
    measure: Any
    crowded: np.ndarray


class Sample(NamedTuple):
    """The sampled documents.

    rows : array of int64, shape (samples,)
        Their rows, in random order.
    sets : Ragged
        Their shingle sets, in host memory.
    inverted : tuple of arrays
        See `overlap.invert`.
    need : array of int64, shape (samples,), or None
        By a measure of weights, how many shingles each shares with whatever reaches the threshold, at least.
    """

    rows: np.ndarray
    sets: Ragged
    inverted: tuple[Any, Any, Any]
    need: np.ndarray | None


def check_recall(run: CheckedRun, recipe: Recipe, num_sampled: int, clock: Clock, runtime: Runtime) -> dict[str, Any]:
    """Compare some documents with all others, and see which of their pairs the method finds.

    The sample is the `num_sampled` documents of smallest mixed hash, so it depends on their contents alone; of a
    document's possible near-duplicates, `PARTNERS` are taken in the same way, and fewer documents are sampled where
    they share too much (`ADDITIONS`). Returns what `shares_of` does.
    """
    threshold = recipe.threshold
    assert threshold is not None
    order = run.groups.order
    assert order is not None
    rows = np.empty(0, np.int64)
    for begin in range(0, len(order), LOOKED_AT):
        some = begin + np.flatnonzero(~run.groups.pinned[begin : begin + LOOKED_AT])
        rows = np.concatenate([rows, some])
        rows = draw(rows, run.spooled.sizes(rows), order[rows], num_sampled)
    sample = sample_of(rows, run.spooled, run.measure, threshold, runtime)
    in_file = np.argsort(run.spooled.places)
    search = SampledSearch.of(sample, run.measure, threshold, runtime)
    for begin in range(0, len(in_file), LOOKED_AT):
        some = in_file[begin : begin + LOOKED_AT]

        def take(first: int, last: int, some: np.ndarray = some) -> tuple[Ragged, np.ndarray, np.ndarray]:
            rows = some[first:last]
            return run.spooled.gather(rows), rows, order[rows]

        search.look(run.spooled.sizes(some), take)
        clock.report("check", begin + len(some), len(in_file))
    possible = Pairs.from_unsorted(sample.rows[search.nearest.sampled], search.nearest.rows)
    pinned = run.groups.pinned
    possible = run.groups.apart(possible)
    if recipe.only_against:
        possible = possible.where(pinned[possible.left])
    if recipe.length_ratio is not None:
        sizes = run.groups.num_tokens
        possible = possible.where(alike_in_length(sizes, possible.left, possible.right, recipe.length_ratio))

    def verify(pairs: Pairs, measure: Measure) -> Verified:
        there = verify_spooled(run.spooled, pairs, measure, threshold, clock, runtime)
        return in_host_memory(there, runtime)

    true = verify_apart(verify, possible, int(np.count_nonzero(pinned)), run.measure).pairs
    listed = run.decisions.verified.pairs

    def are_listed() -> np.ndarray:
        return listed_of([(listed.left, listed.right)], true, recipe.max_partners)

    both_crowded = run.crowded[true.left] & run.crowded[true.right]
    found = found_of(true, run.groups.keys, both_crowded, are_listed, recipe, runtime)
    removed = run.decisions.removed
    return shares_of(true, found, removed[true.left] | removed[true.right], sample.rows)


# --------------------------------------------------------------------------------------------------------- the sample


def draw(rows: np.ndarray, sizes: np.ndarray, order: np.ndarray, number: int) -> np.ndarray:
    """The first rows in random order, without those of more than `LONGEST` shingles; equal ones in their own order."""
    some = sizes <= LONGEST
    rows, order = rows[some], order[some]
    if 0 < number < len(rows):
        first = order <= np.partition(order, number - 1)[number - 1]
        rows, order = rows[first], order[first]
    return rows[np.lexsort((rows, order))[:number]]


def sample_of(rows: np.ndarray, spooled: SpooledRows, measure: Any, threshold: float, runtime: Runtime) -> Sample:
    """Some rows as a sample: the first ones alone if they share too many shingles (`ADDITIONS`)."""
    sample = _sampled(rows, spooled, runtime)
    # What the sample shares with itself says what one document costs: too much where all pages are of one template.
    additions = float(np.square(np.diff(sample.inverted[1])).sum()) / max(1, len(rows))
    if additions > ADDITIONS:
        sample = _sampled(rows[: max(10, int(len(rows) * ADDITIONS / additions))], spooled, runtime)
    if not measure.weighted:
        return sample
    own = spooled.gather(sample.rows)
    return sample._replace(need=runtime.run(measure.least_shared, own, threshold, runtime.backend))


def _sampled(rows: np.ndarray, spooled: SpooledRows, runtime: Runtime) -> Sample:
    """Sets of some rows, in host memory."""
    found = runtime.run(lambda: shingle_sets(spooled.gather(rows), runtime.backend))
    sets = Ragged(runtime.fetch(found.values), runtime.fetch(found.offsets))
    return Sample(rows, sets, overlap.invert(sets.values, sets.offsets), None)


# -------------------------------------------------------------------------------------------------- possible partners


class SampledPartners:
    """For each sampled document, its first `PARTNERS` possible partners in random order, of all that were added.

    sampled : array of int64
        Numbers of sampled documents, ascending.
    rows, order : arrays of int64 and uint64
        Possible partners of each, and their words in random order.
    """

    def __init__(self, num_sampled: int) -> None:
        self.sampled = self.rows = np.empty(0, np.int64)
        self.order = np.empty(0, np.uint64)
        self.latest = np.full(num_sampled, np.iinfo(np.uint64).max)  # only partners before it are still wanted

    def add(self, sampled: np.ndarray, rows: np.ndarray, order: np.ndarray) -> None:
        """Add possible partners; equal ones in random order count in the order in which they come."""
        both = (self.sampled, sampled), (self.rows, rows), (self.order, order)
        sampled, rows, order = map(np.concatenate, both)
        sort = np.lexsort((order, sampled))
        place = np.arange(len(sort)) - np.searchsorted(sampled[sort], sampled[sort])
        first = sort[place < PARTNERS]
        self.sampled, self.rows, self.order = sampled[first], rows[first], order[first]
        full = np.flatnonzero(np.bincount(self.sampled, minlength=len(self.latest)) == PARTNERS)
        self.latest[full] = self.order[np.searchsorted(self.sampled, full, side="right") - 1]


class SampledSearch(NamedTuple):
    """The data that finds the possible partners of a sample."""

    sample: Sample
    nearest: SampledPartners
    inverted: tuple[Any, Any, Any]
    measure: Any
    threshold: float
    runtime: Runtime

    @classmethod
    def of(cls, sample: Sample, measure: Any, threshold: float, runtime: Runtime) -> SampledSearch:
        """One that has seen no document."""
        keys, first_holder, holders = map(runtime.put, sample.inverted)
        inverted = keys, first_holder, holders
        return cls(sample, SampledPartners(len(sample.rows)), inverted, measure, threshold, runtime)

    def look(
        self,
        sizes: np.ndarray,
        take: Callable[[int, int], tuple[Ragged, np.ndarray, np.ndarray]],
    ) -> None:
        """Look at some documents, whose numbers of shingles are given.

        Parameters
        ----------
        sizes : array of int64, shape (documents,)
        take : callable
            Gives what waits of the documents from a first to before a last one, their rows, and their words in random
            order.
        """
        weights = 8 * sizes + 4 * len(self.sample.rows)  # its shingles and, on a GPU, a row of shared counts
        parts = Span.divided(weights, self.runtime.shares.sets, "documents of the check")
        for found in self.runtime.map(partial(self._among, take), parts):
            self.nearest.add(*found)

    def _among(
        self, take: Callable[[int, int], tuple[Ragged, np.ndarray, np.ndarray]], span: Span
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Sampled documents, rows of a span that share enough shingles with them, and their order."""
        shingles, rows, order = take(span.first, span.last)
        need, bounds = self._least(self.sample.sets.sizes), np.full(len(rows), LONGEST + 1)
        if self.sample.need is not None:
            need = np.array(self.sample.need)
        elif self.measure.directed:  # either may be contained; what waits are sets
            bounds = self._least(self.runtime.fetch(shingles.sizes))
        search = kernel(overlap, self.runtime.backend)
        found = search(shingles.values, shingles.offsets, *self.inverted, need, bounds)
        near, of = map(self.runtime.fetch, found[:2])
        wanted = (order[near] <= self.nearest.latest[of]) & (rows[near] != self.sample.rows[of])
        near, of = near[wanted], of[wanted]
        return of, rows[near], order[near]

    def _least(self, sizes: Any) -> np.ndarray:
        """Return the least number of common shingles: t |A|, and one less for rounding, which `verify` corrects."""
        return np.maximum(1, np.ceil(self.threshold * np.asarray(sizes)).astype(np.int64) - 1)


# --------------------------------------------------------------------------------------------------- what was found


def found_of(
    true: Pairs,
    keys: Any,
    both_crowded: np.ndarray,
    are_listed: Callable[[], np.ndarray],
    recipe: Recipe,
    runtime: Runtime,
) -> np.ndarray:
    """Which pairs of rows of keys the method finds: bool, shape (pairs,).

    Parameters
    ----------
    both_crowded : array of bool, shape (pairs,)
        Pairs of two crowded documents, where crowds are not joined.
    are_listed : callable
        Gives what `listed_of` does.
    """
    if isinstance(recipe.method, Join):
        return are_listed()
    found = runtime.fetch(recipe.method.are_candidates(keys, *same_device(keys, true.left, true.right)))
    return found & (~both_crowded | are_listed()) if both_crowded.any() else found


def listed_of(parts: Iterable[Sequence[np.ndarray]], true: Pairs, max_partners: int | None) -> np.ndarray:
    """Which pairs are listed, or left out by the rule of `max_partners`: bool, shape (pairs,).

    Parameters
    ----------
    parts : iterable of (left, right)
        The listed pairs in any order, each once, some at a time.
    """
    rights, of = np.unique(true.right, return_inverse=True)
    width = int(true.left.max(initial=-1)) + 1  # behind it no pair matters
    wanted = of * width + true.left
    there, better = np.zeros(len(true), bool), np.zeros(len(true), np.int64)
    for left, right in parts:
        mine = (left < width) & np.isin(right, rights)
        words = np.sort(np.searchsorted(rights, right[mine]) * width + left[mine])
        place = np.searchsorted(words, wanted)
        better += place - np.searchsorted(words, of * width)
        known = place < len(words)
        there[known] |= words[place[known]] == wanted[known]
    # If so many better partners are listed, it is left out.
    return there if max_partners is None else there | (better >= max_partners)


def shares_of(true: Pairs, found: np.ndarray, one_removed: np.ndarray, sample: np.ndarray) -> dict[str, Any]:
    """Return the result of the check, from the true pairs of some sampled rows.

    The recall is the mean, over the sampled documents with near-duplicates, of the share of near-duplicates that the
    method finds. A method that sketches finds the pairs that its keys make candidates. With the exact method, a pair
    counts as found if it is listed, or left out by the rule of `max_partners`; so does a pair of two crowded documents
    if crowds are not joined.

    "one_removed" is the mean share of pairs with one removed document, so that not both are kept, whether the
    pair was found or not. Each interval holds for the mean of values in [0, 1] sampled without replacement, with the
    confidence given.

    Returns
    -------
    dict
        documents, the number sampled; with_duplicates, those that have any; pairs, all of theirs; recall, low, high;
        one_removed with share, low and high; confidence. A share is None where no sampled document has near-duplicates.
    """
    recall, settled = _mean_share(true, found, sample), _mean_share(true, one_removed, sample)
    return {
        "documents": len(sample),
        "with_duplicates": len(np.intersect1d(sample, np.concatenate([true.left, true.right]))),
        "pairs": len(true),
        "recall": recall[0],
        "low": recall[1],
        "high": recall[2],
        "one_removed": dict(zip(("share", "low", "high"), settled, strict=True)),
        "confidence": CONFIDENCE,
    }


def _mean_share(true: Pairs, found: np.ndarray, sample: np.ndarray) -> tuple[float | None, float, float]:
    """Return the mean share of found pairs over sampled rows, and the ends of its interval."""
    rows, at = np.unique(np.concatenate([sample, true.left, true.right]), return_inverse=True)
    own, ends = at[: len(sample)], at[len(sample) :]
    pairs_of = np.bincount(ends, minlength=len(rows))[own]
    found_of = np.bincount(ends, np.tile(found, 2).astype(np.float64), minlength=len(rows))[own]
    shares = found_of[pairs_of > 0] / pairs_of[pairs_of > 0]
    if len(shares) == 0:
        return None, 0.0, 1.0
    mean = float(shares.mean())
    return mean, *theory.mean_interval(mean, len(shares), 1 - CONFIDENCE)
