"""The sampled check of recall: some documents compared with all others, without the help of the method."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neardup_gpu.kernels import overlap
from neardup_gpu.kernels._gf2 import mix64_all
from neardup_gpu.kernels._launch import array_module

from . import theory
from .data import Pairs, Ragged
from .engine.arrays import same_device
from .engine.choice import kernel
from .engine.pieces import Span, spans
from .measures import shingle_sets
from .verification import verify_spooled

if TYPE_CHECKING:
    from .decisions import Decisions, Groups
    from .engine.clock import Clock
    from .engine.contract import Rows, Runtime
    from .recipe import Recipe

PARTNERS = 200
"""Documents that one sampled document is compared with, at most."""

ADDITIONS = 20_000
"""Shingles that a document may share with all sampled ones together, on average; beyond it, fewer are sampled."""

LONGEST = 1 << 15
"""Shingles of the longest document that is sampled, so that a sample fits in 50 MB."""

CONFIDENCE = 0.99


class Run(NamedTuple):
    """The parts of a run that the check needs; rows are representatives, in priority order.

    spool_rows : array of int64, shape (rows,)
        Where the shingles of each lie in the spool.
    crowded : array of bool, shape (rows,)
        Rows of which pairs may not have been compared, whatever their keys say.
    """

    spool_rows: np.ndarray
    groups: Groups
    decisions: Decisions
    measure: Any
    crowded: np.ndarray


class _Sample(NamedTuple):
    """Sampled rows, their shingle sets, and an inverted index of these sets."""

    rows: np.ndarray
    sets: Ragged
    inverted: tuple[Any, Any, Any]


def check_recall(
    run: Run, spool: Rows, recipe: Recipe, num_sampled: int, clock: Clock, runtime: Runtime
) -> dict[str, Any]:
    """Compare some documents with all others, and see which of their pairs the method finds.

    The sample is the `num_sampled` documents of smallest mixed hash, so it depends on their contents alone; of a
    document's possible near-duplicates, `PARTNERS` are taken in the same way, and fewer documents are sampled where
    they share too much (`ADDITIONS`).

    For each sampled document that has near-duplicates, the share of them that the method finds: the mean of these
    shares is the recall, whatever is missed counts. A method that sketches finds the pairs that its keys make
    candidates. Of the exact method a pair counts as found if it is listed, or left out by the rule of `max_partners`;
    so does a pair of two crowded documents where crowds are not joined.

    "one_removed" is the mean share of pairs of which one document was removed, so that not both are kept, whether the
    pair was found or not. Each interval holds for the mean of values in [0, 1] sampled without replacement, with the
    confidence given.

    Returns
    -------
    dict
        documents, the number sampled; with_duplicates, those that have any; pairs, all of theirs; recall, low, high;
        one_removed with share, low and high; confidence. A share is None where no sampled document has near-duplicates.
    """
    assert recipe.threshold is not None
    order = mix64_all(run.groups.document_hashes[:, 0])  # a random one, by contents
    sizes = np.diff(spool.offsets)[run.spool_rows]
    sample = _draw(run, spool, sizes, order, num_sampled, runtime)
    possible = _partners(run, spool, sample, sizes, order, recipe.threshold, clock, runtime)
    there = verify_spooled(spool, run.spool_rows, possible, run.measure, recipe.threshold, clock, runtime).pairs
    true = Pairs(runtime.fetch(there.left), runtime.fetch(there.right))
    removed = run.decisions.removed
    found = _mean_share(true, _found(run, true, recipe, runtime), sample.rows, len(run.spool_rows))
    settled = _mean_share(true, removed[true.left] | removed[true.right], sample.rows, len(run.spool_rows))
    return {
        "documents": len(sample.rows),
        "with_duplicates": len(np.intersect1d(sample.rows, np.concatenate([true.left, true.right]))),
        "pairs": len(true),
        "recall": found[0],
        "low": found[1],
        "high": found[2],
        "one_removed": dict(zip(("share", "low", "high"), settled, strict=True)),
        "confidence": CONFIDENCE,
    }


def _found(run: Run, true: Pairs, recipe: Recipe, runtime: Runtime) -> np.ndarray:
    """Which pairs the method finds: bool, shape (pairs,)."""
    if not recipe.method.sketches:
        return _listed(run, true, recipe)
    keys = run.groups.keys
    found = runtime.fetch(recipe.method.are_candidates(keys, *same_device(keys, true.left, true.right)))
    left_out = run.crowded[true.left] & run.crowded[true.right]
    return found & (~left_out | _listed(run, true, recipe)) if left_out.any() else found


def _listed(run: Run, true: Pairs, recipe: Recipe) -> np.ndarray:
    """Which pairs are listed, or left out by the rule of `max_partners`: bool, shape (pairs,)."""
    listed = run.decisions.verified.pairs
    most = len(run.spool_rows) if recipe.max_partners is None else recipe.max_partners
    by_right = np.sort(listed.right << 32 | listed.left)
    first, place = (np.searchsorted(by_right, true.right << 32 | left) for left in (0, true.left))
    there = place < len(by_right)
    there[there] = by_right[place[there]] == (true.right << 32 | true.left)[there]
    return there | (place - first >= most)  # so many better partners are listed before it


def _draw(run: Run, spool: Rows, sizes: np.ndarray, order: np.ndarray, num_sampled: int, runtime: Runtime) -> _Sample:
    """Draw the sample: fewer documents if they share too many shingles."""
    mine = np.flatnonzero(~run.groups.pinned & (sizes <= LONGEST))
    rows = mine[np.argsort(order[mine], kind="stable")[:num_sampled]]
    sample = _sampled(rows, spool, run.spool_rows, runtime)
    # What the sample shares with itself says what one document costs: too much where all pages are of one template.
    additions = float(np.square(np.diff(sample.inverted[1])).sum()) / max(1, len(rows))
    if additions > ADDITIONS:
        sample = _sampled(rows[: max(10, int(len(rows) * ADDITIONS / additions))], spool, run.spool_rows, runtime)
    return sample._replace(inverted=tuple(map(runtime.put, sample.inverted)))


def _sampled(rows: np.ndarray, spool: Rows, spool_rows: np.ndarray, runtime: Runtime) -> _Sample:
    """Sets of some rows, in host memory."""
    found = runtime.run(lambda: shingle_sets(spool.gather(spool_rows[rows]), runtime.backend))
    sets = Ragged(runtime.fetch(found.values), runtime.fetch(found.offsets))
    return _Sample(rows, sets, overlap.invert(sets.values, sets.offsets))


def _partners(
    run: Run,
    spool: Rows,
    sample: _Sample,
    sizes: np.ndarray,
    order: np.ndarray,
    threshold: float,
    clock: Clock,
    runtime: Runtime,
) -> Pairs:
    """For each sampled row, the first `PARTNERS` rows, in random order, that may resemble it enough."""
    need = None
    if run.measure.weighted:
        own = spool.gather(run.spool_rows[sample.rows])
        need = runtime.run(run.measure.least_shared, own, threshold, runtime.backend)
    in_file = np.argsort(run.spool_rows)
    which = partner = np.empty(0, np.int64)
    latest = np.full(len(sample.rows), np.iinfo(np.uint64).max)  # only partners before it are still wanted
    weights = 8 * (sizes[in_file] + len(sample.rows))  # a document counts its shingles and a row of shared counts
    ends = Span.of_sizes(weights).ends
    for first, last in spans(weights, runtime.shares.sets):
        near = partial(_near, run, spool, sample, in_file, need, threshold, order, latest, runtime)
        for rows, of in runtime.map(near, [Span(ends, first, last, "documents of the check")]):
            which, partner = np.append(which, of), np.append(partner, rows)
        which, partner = _first_partners(which, partner, order)
        full = np.flatnonzero(np.bincount(which, minlength=len(sample.rows)) == PARTNERS)
        latest[full] = order[partner[np.searchsorted(which, full, side="right") - 1]]
        clock.report("check", last, len(in_file))
    return Pairs.from_unsorted(sample.rows[which], partner)


def _near(
    run: Run,
    spool: Rows,
    sample: _Sample,
    in_file: np.ndarray,
    need: np.ndarray | None,
    threshold: float,
    order: np.ndarray,
    latest: np.ndarray,
    runtime: Runtime,
    span: Span,
) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a span that share enough shingles with sampled rows, each with the number of its sampled row."""
    rows = in_file[span.rows]
    shingles = spool.gather(run.spool_rows[rows])
    shared = kernel(overlap, runtime.backend)(shingles.values, shingles.offsets, *sample.inverted, len(sample.rows))
    sizes = np.asarray(sample.sets.sizes)
    if run.measure.directed:  # either may be contained; the sizes of the spool's rows are those of sets
        sizes = np.minimum(sizes, np.diff(spool.offsets)[run.spool_rows[rows]][:, None])
    # What resembles A by t shares t |A| shingles; one fewer makes up for rounding and is sorted out by `verify`.
    if need is None:
        need = np.maximum(1, np.ceil(threshold * sizes).astype(np.int64) - 1)
    least, place, most, row, self = same_device(shared, need, order[rows], latest, rows, sample.rows)
    wanted = (shared >= least) & (place[:, None] <= most) & (row[:, None] != self)
    near, of = map(runtime.fetch, array_module(shared).nonzero(wanted))
    return rows[near], of


def _first_partners(left: np.ndarray, right: np.ndarray, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each left row, its first `PARTNERS` right rows, in this order."""
    sort = np.lexsort((order[right], left))
    left, right = left[sort], right[sort]
    rank = np.arange(len(left)) - np.searchsorted(left, left)
    return left[rank < PARTNERS], right[rank < PARTNERS]


def _mean_share(true: Pairs, found: np.ndarray, sample: np.ndarray, num_rows: int) -> tuple[float | None, float, float]:
    """The share of each sampled row's pairs that was found: the mean of these shares, and the ends of its interval."""
    ends = np.concatenate([true.left, true.right])
    pairs_of = np.bincount(ends, minlength=num_rows)[sample]
    found_of = np.bincount(ends, np.tile(found, 2).astype(np.float64), minlength=num_rows)[sample]
    shares = found_of[pairs_of > 0] / pairs_of[pairs_of > 0]
    if len(shares) == 0:
        return None, 0.0, 1.0
    mean = float(shares.mean())
    return mean, *theory.mean_interval(mean, len(shares), 1 - CONFIDENCE)
