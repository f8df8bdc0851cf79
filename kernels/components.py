"""Connected components: rows joined by a path of pairs share a label, the smallest row among them.

Source: Broder 2000, section 2.
Cost: nearly O(pairs + rows), by union-find with path halving; on the CPU by one thread, bound by cache misses: about
20 ns a pair on a million rows. On a GPU pairs go in any order and the answer is the same; `gpu` says why.
"""

import numpy as np

from ._cpu import jit
from ._launch import Device, cuda, kernel, namespace, on_device


def reference(num_rows, left, right):
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


@jit("int64, int64[::1], int64[::1]")
def cpu(num_rows, left, right):
    """As `reference`, by union-find: the smaller root becomes the parent, so roots are the smallest rows."""
    parent = np.arange(num_rows)
    for p in range(len(left)):
        a, b = _root(parent, left[p]), _root(parent, right[p])
        parent[max(a, b)] = min(a, b)
    for row in range(num_rows):
        parent[row] = parent[parent[row]]
    return parent


_root_on_device = Device(_root.py_func)  # the same, for kernels


@kernel("void(int64[::1], int64[::1], int64[::1])")
def _unite(left, right, parent):
    """One thread a pair: the greater of its rows' roots gets the smaller as parent, if it still is a root.

    If not, its parent by now is what to go on from.
    """
    at = cuda.grid(1)
    if at >= len(left):
        return
    a, b = _root_on_device(parent, left[at]), _root_on_device(parent, right[at])
    while a != b:
        low, high = min(a, b), max(a, b)
        found = cuda.atomic.cas(parent, high, high, low)
        if found == high:
            return
        a, b = low, _root_on_device(parent, found)


@kernel("void(int64[::1])")
def _flatten(parent):
    """One thread a row: its root, found without halving the path.

    A thread that halved paths could write a grandparent, read before, over the root that another thread has found.
    """
    at = cuda.grid(1)
    if at >= len(parent):
        return
    row = np.int64(at)
    while parent[row] != row:
        row = parent[row]
    parent[at] = row


def gpu(num_rows, left, right):
    """As `reference`: union-find by all pairs at once, without locks; then every row takes its root.

    It ends, because parents are never greater than their rows and a root that gets a parent never is a root again: so
    each step to a parent goes down, and where another thread was faster (compare-and-swap finds a parent) the greater
    of the two rows is replaced by a smaller one. It is right, because trees only grow by pairs, and a thread ends when
    its two rows have a common ancestor: so in the end a tree is a component, and its root the smallest row. A read may
    be out of date, as other threads halve the same paths, but what was an ancestor once is one for ever; and only
    compare-and-swap, which is never out of date, makes a parent of a root.

    Source: Jayanti and Tarjan 2016 (concurrent union-find); Jaiganesh and Burtscher 2018 (ECL-CC, on GPUs). Two
    kernels, no rounds, nothing waits for the device.
    """
    xp = namespace()
    parent = xp.arange(num_rows, dtype=np.int64)
    _unite.threads(len(left), on_device(left), on_device(right), parent)
    _flatten.threads(num_rows, parent)
    return parent
