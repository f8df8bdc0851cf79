"""Who is kept for certain: the greedy decisions that pairs found so far allow, whatever further pairs there are.

In priority order a row is kept if it is pinned; removed if it has a pair with an earlier row that is kept; undecided if
it has none, but has a pair with an earlier undecided row, or is open: not all its pairs with earlier rows are known.
Otherwise it is kept. Once no row is undecided, the decisions are those of `greedy` for all pairs.

Source: Broder 1997, section 4.4, for the greedy decisions.
Cost: one pass over the pairs, by one thread.
"""

from __future__ import annotations

import numpy as np

from ._cpu import jit

UNDECIDED, KEPT, REMOVED = np.int8(0), np.int8(1), np.int8(2)


def reference(num_rows, left, right, pinned, is_open):
    """Decide each row, straight from the definition.

    Parameters
    ----------
    num_rows : int
        Rows in priority order.
    left, right : arrays of int64, shape (pairs,)
        left < right, in lexicographic order, each pair once.
    pinned : array of bool, shape (num_rows,)
        Rows that are always kept.
    is_open : array of bool, shape (num_rows,)
        Rows that may have further pairs with earlier rows.

    Returns
    -------
    array of int8, shape (num_rows,)
        `UNDECIDED`, `KEPT` or `REMOVED`.
    """
    earlier: list[list[int]] = [[] for _ in range(num_rows)]
    for a, b in zip(left.tolist(), right.tolist(), strict=True):
        earlier[b].append(a)
    state: list[int] = []
    for row in range(num_rows):
        theirs = {state[other] for other in earlier[row]}
        if pinned[row]:
            state.append(1)
        elif 1 in theirs:
            state.append(2)
        else:
            state.append(0 if is_open[row] or 0 in theirs else 1)
    return np.array(state, np.int8)


@jit("int64, int64[::1], int64[::1], boolean[::1], boolean[::1]", is_wide=True)
def cpu(num_rows, left, right, pinned, is_open):
    """As `reference`: pairs ascend by their left row, whose pairs with earlier rows have all been seen by then."""
    covered, doubtful = np.zeros(num_rows, np.bool_), is_open.copy()
    for p in range(len(left)):
        row = left[p]
        if pinned[row] or not (covered[row] or doubtful[row]):
            covered[right[p]] = True
        elif not covered[row]:
            doubtful[right[p]] = True
    state = np.empty(num_rows, np.int8)
    for row in range(num_rows):
        if pinned[row]:
            state[row] = KEPT
        elif covered[row]:
            state[row] = REMOVED
        else:
            state[row] = UNDECIDED if doubtful[row] else KEPT
    return state
