"""Greedy clustering in priority order: which rows are kept, and which kept row stands for each removed row.

In priority order, a row is removed exactly when it has a pair with a row already kept, unless it is pinned. So no two
kept rows are a pair, unless the later one is pinned, and one row of every group survives; chains a-b-c do not drift. A
removed row names its keeper: the kept row that it resembles most, ties to the lowest.

Source: Broder 1997, section 4.4.
Cost: O(pairs + rows), on the CPU by one thread, bound by cache misses: about 20 ns a pair on a million rows. On a GPU
pairs go in any order and the answer is the same; `gpu` says why.
"""

from __future__ import annotations

import numpy as np

from ._cpu import jit
from ._launch import cuda, kernel, namespace, on_device, to_host


def reference(num_rows, left, right, weight, pinned):
    """Keeper of each row, from the definition.

    Parameters
    ----------
    num_rows : int
        Rows in priority order, row 0 the best.
    left, right : arrays of int64, shape (pairs,)
        left < right, in lexicographic order, each pair once, as in `Pairs`.
    weight : array of float64, shape (pairs,)
        Resemblance of each pair, from 0 to 1.
    pinned : array of bool, shape (num_rows,)
        Rows that are always kept.

    Returns
    -------
    array of int64, shape (num_rows,)
        The row itself if it is kept; else, of the kept rows that it has a pair with, that of greatest weight, ties to
        the lowest. This one may come later in priority than the row, which then has an earlier one too.
    """
    weights: list[dict[int, float]] = [{} for _ in range(num_rows)]
    for a, b, w in zip(left.tolist(), right.tolist(), weight.tolist(), strict=True):
        weights[a][b] = weights[b][a] = w
    kept: set[int] = set()
    for row in range(num_rows):
        if pinned[row] or not any(other < row for other in kept & weights[row].keys()):
            kept.add(row)
    keeper = [
        row if row in kept else max(kept & weights[row].keys(), key=lambda other: (weights[row][other], -other))
        for row in range(num_rows)
    ]
    return np.array(keeper, np.int64)


@jit()
def _covered(num_rows, left, right, pinned):
    """Whether each row has a pair with an earlier row that is kept.

    Pairs are sorted by their left row, so when a row comes up as left, all its pairs with earlier rows have been seen.
    """
    covered = np.zeros(num_rows, np.bool_)
    for p in range(len(left)):
        if pinned[left[p]] or not covered[left[p]]:
            covered[right[p]] = True
    return covered


@jit("int64, int64[::1], int64[::1], float64[::1], boolean[::1]")
def cpu(num_rows, left, right, weight, pinned):
    """As `reference`, in two passes over the pairs."""
    covered = _covered(num_rows, left, right, pinned)
    keeper, best, kept = np.full(num_rows, -1, np.int64), np.empty(num_rows, np.float64), np.zeros(num_rows, np.bool_)
    for row in range(num_rows):
        if pinned[row] or not covered[row]:
            keeper[row], kept[row] = row, True
    for p in range(len(left)):
        a, b = left[p], right[p]
        if kept[a] == kept[b]:
            continue
        row, other = (b, a) if kept[a] else (a, b)
        w = weight[p]
        if keeper[row] < 0 or w > best[row] or (w == best[row] and other < keeper[row]):
            keeper[row], best[row] = other, w
    return keeper


_UNDECIDED, _KEPT, _REMOVED = np.int8(0), np.int8(1), np.int8(2)


_ROUNDS = 64  # after which the host finishes: priorities so ordered along a path that each row waits for the one before


@kernel("void(int64[::1], int8, int8[::1])")
def _wait(right, step, waits):
    """One thread an undecided pair: its right row waits in this round, which `step` stamps on it."""
    at = cuda.grid(1)
    if at < len(right):
        waits[right[at]] = step


@kernel("void(int64[::1], int64[::1], int8, int8[::1], int8[::1])")
def _choose(left, right, step, waits, state):
    """One thread an undecided pair: a left row that does not wait is kept, so its right row is removed.

    Rows that are kept do not wait and rows that are removed do: threads that write the same row write the same.
    """
    at = cuda.grid(1)
    if at < len(left) and waits[left[at]] != step:
        state[left[at]] = _KEPT
        state[right[at]] = _REMOVED


@kernel("void(int64[::1], int64[::1], uint64[::1], boolean[::1], uint64[::1])")
def _heaviest(left, right, weight, kept, best):
    """One thread a pair of a kept and a removed row: the removed row's greatest weight."""
    at = cuda.grid(1)
    if at >= len(left):
        return
    a, b = left[at], right[at]
    if kept[a] != kept[b]:
        cuda.atomic.max(best, b if kept[a] else a, weight[at])


@kernel("void(int64[::1], int64[::1], uint64[::1], boolean[::1], uint64[::1], int64[::1])")
def _lowest_of_heaviest(left, right, weight, kept, best, keeper):
    """One thread a pair of a kept and a removed row: the lowest of the kept rows of greatest weight."""
    at = cuda.grid(1)
    if at >= len(left):
        return
    a, b = left[at], right[at]
    if kept[a] != kept[b]:
        row, other = (b, a) if kept[a] else (a, b)
        if weight[at] == best[row]:
            cuda.atomic.min(keeper, row, other)


def _undecided(xp, left, right, state):
    """Return the pairs of two undecided rows, in the given order."""
    pairs = xp.flatnonzero((state[left] | state[right]) == _UNDECIDED)
    return left[pairs], right[pairs]


def gpu(num_rows, left, right, weight, pinned):
    """As `reference`, in rounds: whichever rows wait for no earlier row are decided together.

    A pair is undecided while both its rows are, and a row waits while it is the right one of an undecided pair. Pinned
    rows are kept and the rows after them that they have pairs with removed; then, in each round, every row that waits
    for none is kept and the later rows of its pairs are removed.

    That is the sequential answer, by induction over the decisions: if all made so far are the sequential ones, so is
    the next. A row is removed when an earlier one that it has a pair with is kept, as the rule says. A row is kept when
    every earlier row that it has a pair with is decided. No earlier row with which it has a pair was
    kept, as that would have removed it; so the rule keeps it. Rounds end, because the first row of an undecided pair
    never waits; rows that are then undecided have no undecided pair and are kept for the same reason.

    For priorities in random order O(log(n)**2) rounds are enough with high probability (Blelloch, Fineman and Shun
    2012); documents in groups of g need at most g. A path in priority order needs a round for every second row: what
    is undecided after `_ROUNDS` rounds is finished by the sequential loop on the host. A round is two passes over the
    undecided pairs, their selection, and one wait for the device. Weights are compared as the bits of float64, whose
    order is that of the numbers, as none is negative.
    """
    xp = namespace()
    left, right, weight, pinned = (on_device(array) for array in (left, right, weight, pinned))
    state = xp.zeros(num_rows, np.int8)
    state[pinned] = _KEPT
    state[right[pinned[left] & ~pinned[right]]] = _REMOVED
    waits = xp.zeros(num_rows, np.int8)
    some_left, some_right = _undecided(xp, left, right, state)
    step = np.int8(0)
    while len(some_left) and step < _ROUNDS:
        step = np.int8(step + 1)
        _wait.threads(len(some_left), some_right, step, waits)
        _choose.threads(len(some_left), some_left, some_right, step, waits, state)
        some_left, some_right = _undecided(xp, some_left, some_right, state)
    if len(some_left):
        covered = _covered(num_rows, to_host(some_left), to_host(some_right), np.zeros(num_rows, bool))
        state[on_device(covered)] = _REMOVED
    kept, weight = state != _REMOVED, weight.view(np.uint64)
    best = xp.zeros(num_rows, np.uint64)
    keeper = xp.where(kept, xp.arange(num_rows, dtype=np.int64), num_rows)
    _heaviest.threads(len(left), left, right, weight, kept, best)
    _lowest_of_heaviest.threads(len(left), left, right, weight, kept, best, keeper)
    return keeper
