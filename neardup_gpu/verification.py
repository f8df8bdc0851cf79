"""The exact measure of pairs whose shingles wait in a spool, a bounded number of them held at a time."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from neardup_gpu.kernels import components, resemblance
from neardup_gpu.kernels._launch import array_module
from neardup_gpu.kernels._sort import in_order

from .data import Pairs, Ragged
from .engine.choice import kernel
from .engine.pieces import Numbers, Span, spans
from .measures import Measure, worth
from .stages import Verified, at_least

if TYPE_CHECKING:
    from .engine.clock import Clock
    from .engine.contract import Rows, Runtime


def verify_spooled(
    spool: Rows,
    spool_rows: np.ndarray,
    candidates: Pairs,
    measure: Measure,
    threshold: float,
    clock: Clock,
    runtime: Runtime,
) -> Verified:
    """Like `verify`, for shingles in a spool: row i of the candidates is row spool_rows[i] of the spool.

    The sets of all candidates are sorted once, into a spool of their own; then pairs are compared a connected component
    at a time, so that most sets are read back once. At most `runtime.shares.sets` bytes of sets are held at a time, or
    one pair's, if these are larger.
    """
    left, right = runtime.put(candidates.left), runtime.put(candidates.right)
    xp = array_module(left)
    wanted = xp.zeros(len(spool_rows), bool)
    wanted[left] = wanted[right] = True
    rows = runtime.fetch(xp.flatnonzero(wanted))
    rows = rows[np.argsort(spool_rows[rows])]
    place = np.empty(len(spool_rows), np.int64)
    place[rows] = np.arange(len(rows))
    place = runtime.put(place)
    with runtime.spool(spool.folder, runtime.shares.sets) as sets:
        sizes = 8 * np.diff(spool.offsets)[spool_rows[rows]]
        weights = Span.of_sizes(sizes)
        parts = (Span(weights.ends, first, last, "sets") for first, last in spans(sizes, runtime.shares.sorted))
        prepare = partial(_prepared, spool, spool_rows[rows], measure, runtime.backend)
        for made in runtime.map(prepare, parts):
            sets.append(made)
        found = _compare_spooled(sets, place[left], place[right], measure, threshold, clock, runtime)
    return at_least(threshold, left, right, found)


def in_host_memory(verified: Verified, runtime: Runtime) -> Verified:
    """The same pairs, wherever they were."""
    pairs = Pairs(runtime.fetch(verified.pairs.left), runtime.fetch(verified.pairs.right))
    return Verified(pairs, runtime.fetch(verified.resemblance))


def _prepared(spool: Rows, spool_rows: np.ndarray, measure: Measure, backend: str, part: Span) -> Ragged:
    return measure.prepared(spool.gather(spool_rows[part.rows]), backend)


def _compare_spooled(
    sets: Rows, left: Any, right: Any, measure: Measure, threshold: float, clock: Clock, runtime: Runtime
) -> Any:
    """Like `worth`, for what waits in a spool."""
    held_bytes = runtime.shares.sets
    if 8 * sets.num_values <= held_bytes:
        whole = sets.gather(np.arange(len(sets.offsets) - 1))
        return runtime.run(worth, measure, whole, left, right, threshold, runtime.backend)
    left, right = runtime.fetch(left), runtime.fetch(right)
    found = np.full(len(left), -1.0)
    sizes = np.diff(sets.offsets)
    pairs = measure.possible(sizes, left, right, threshold)
    component = runtime.fetch(kernel(components, runtime.backend)(len(sizes), left[pairs], right[pairs]))
    # Inside a giant component: all pairs of one tile of right rows, in the order of their left rows, which are then
    # read one after another.
    tile = np.cumsum(sizes) // (held_bytes // 16)
    # Pairs are in the order of their rows before.
    key = component[right[pairs]] * (int(tile[-1]) + 1) + tile[right[pairs]]
    pairs = pairs[in_order(key.astype(np.uint64))[1]]
    bounds = resemblance.blocks_of_pairs(left[pairs], right[pairs], sizes, held_bytes // 8)
    blocks = (Numbers(pairs[first:last], "pairs") for first, last in zip(bounds[:-1], bounds[1:], strict=True))
    compare, done = partial(_compare_block, sets, left, right, measure, threshold, runtime), 0
    for block, measured in runtime.map(compare, blocks):
        found[block] = measured
        done += len(block)
        clock.report("verify", done, len(pairs))
    return runtime.put(found)


def _compare_block(
    sets: Rows,
    left: np.ndarray,
    right: np.ndarray,
    measure: Measure,
    threshold: float,
    runtime: Runtime,
    block: Numbers,
) -> tuple[np.ndarray, np.ndarray]:
    """Compare the pairs of a block; returns them and what they are worth, in host memory."""
    pairs = block.numbers
    rows, at = np.unique(np.concatenate([left[pairs], right[pairs]]), return_inverse=True)
    left, right = at[: len(pairs)], at[len(pairs) :]
    return pairs, runtime.fetch(measure.compare(sets.gather(rows), left, right, threshold, runtime.backend))
