"""Who is kept: greedy clustering in priority order, and connected components.

Greedy: in priority order, a row is removed exactly when it has a pair with a row already kept, unless it is pinned. So
no two kept rows are a pair, unless the later one is pinned, and one row of every group survives; chains a-b-c do not
drift. A removed row names its keeper: the kept row that it resembles most, ties to the lowest.

Connected: rows joined by a path of pairs share a label, the smallest row among them.

Source: Broder 1997, section 4.4 (greedy); Broder 2000, section 2 (connected components).
Cost: O(pairs + rows) for greedy; nearly that (union-find with path halving) for connected. One thread: both are bound
by the order of their steps and by cache misses, about 20 ns a pair on a million rows.
"""

from __future__ import annotations

import numpy as np

from .launch import jit


def greedy_reference(num_rows, left, right, weight, pinned):
    """Keeper of each row, from the definition.

    Parameters
    ----------
    num_rows : int
        Rows in priority order, row 0 the best.
    left, right : arrays of int64, shape (pairs,)
        left < right, in lexicographic order, each pair once, as in `Pairs`.
    weight : array of float64, shape (pairs,)
        Resemblance of each pair; not NaN.
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
def greedy_cpu(num_rows, left, right, weight, pinned):
    """As `greedy_reference`, in two passes over the pairs.

    Pairs are sorted by their left row, so when a row comes up as left, all its pairs with earlier rows have been seen.
    """
    covered = np.zeros(num_rows, np.bool_)
    for p in range(len(left)):
        if pinned[left[p]] or not covered[left[p]]:
            covered[right[p]] = True
    keeper, best = np.full(num_rows, -1, np.int64), np.empty(num_rows, np.float64)
    for row in range(num_rows):
        if pinned[row] or not covered[row]:
            keeper[row] = row
    kept = keeper >= 0
    for p in range(len(left)):
        a, b = left[p], right[p]
        if kept[a] == kept[b]:
            continue
        row, other = (b, a) if kept[a] else (a, b)
        w = weight[p]
        if keeper[row] < 0 or w > best[row] or (w == best[row] and other < keeper[row]):
            keeper[row], best[row] = other, w
    return keeper


def connected_reference(num_rows, left, right):
    """Smallest row of each row's component, from the definition.

    Parameters
    ----------
    num_rows : int
    left, right : arrays of int64, shape (pairs,)
        In any order.

    Returns
    -------
    array of int64, shape (num_rows,)
        A row without pairs is its own label.
    """
    label = list(range(num_rows))
    changed = True
    while changed:
        changed = False
        for a, b in zip(left.tolist(), right.tolist(), strict=True):
            if label[a] != label[b]:
                label[a] = label[b] = min(label[a], label[b])
                changed = True
    return np.array(label, np.int64)


@jit()
def _root(parent, row):
    """Root of a row's tree; halves the path on the way."""
    while parent[row] != row:
        parent[row] = parent[parent[row]]
        row = parent[row]
    return row


@jit()
def connected_cpu(num_rows, left, right):
    """As `connected_reference`, by union-find: the smaller root becomes the parent, so roots are the smallest rows."""
    parent = np.arange(num_rows)
    for p in range(len(left)):
        a, b = _root(parent, left[p]), _root(parent, right[p])
        parent[max(a, b)] = min(a, b)
    for row in range(num_rows):
        parent[row] = parent[parent[row]]
    return parent


@jit()
def blocks_of_pairs(left, right, sizes, budget):
    """Cut a list of pairs into blocks whose distinct rows hold at most `budget` values together.

    Parameters
    ----------
    left, right : arrays of int64, shape (pairs,)
    sizes : array of int64, shape (rows,)
    budget : int
        A pair larger than this is a block of its own.

    Returns
    -------
    array of int64, shape (blocks + 1,)
        Block i is pairs ``bounds[i]`` to ``bounds[i + 1]``.
    """
    bounds = np.empty(len(left) + 1, np.int64)
    bounds[0] = 0
    blocks = 0
    seen_in = np.full(len(sizes), -1, np.int64)
    held = 0
    for i in range(len(left)):
        a, b = left[i], right[i]
        more = (sizes[a] if seen_in[a] != blocks else 0) + (sizes[b] if seen_in[b] != blocks else 0)
        if held > 0 and held + more > budget:
            blocks += 1
            bounds[blocks] = i
            held = 0
            more = sizes[a] + sizes[b]
        held += more
        seen_in[a] = blocks
        seen_in[b] = blocks
    bounds[blocks + 1 if len(left) else 0] = len(left)
    return bounds[: blocks + 2 if len(left) else 1].copy()
