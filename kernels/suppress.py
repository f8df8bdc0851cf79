"""Suppression: which rows of a ranking show, where a row is hidden by one above that shows and is nearly the same.

    shown[i] = j, the first row j < i that shows and has at least r features in common with i, place by place; i itself
    if there is none, or if i is not present. A row that is not present hides none.

So a hidden row hides nobody, as in `greedy`, whose pairs need not be listed here: a page of search results is compared
as it is shown. Source: Manasse 6.1 (features of 16 bits, looked up while results are listed).

Cost: k comparisons for each row and each one above it that shows, many at once.
"""

from __future__ import annotations

import numpy as np

from ._cpu import jit
from ._launch import Kernel, cuda, kernel, namespace, on_device


def reference(features, present, r):
    """By which row each row is shown, straight from the definition.

    Parameters
    ----------
    features : array of uint16 or uint64, shape (rows, k)
        In rank order, the best first.
    present : array of bool, shape (rows,)
        False for rows without features.
    r : int
        Features that have to agree, at least 1.

    Returns
    -------
    array of int64, shape (rows,)
    """
    shown_by = list(range(len(features)))
    for i, row in enumerate(features):
        for j in range(i):
            agree = sum(int(a) == int(b) for a, b in zip(row, features[j], strict=True))
            if present[i] and present[j] and shown_by[j] == j and agree >= r:
                shown_by[i] = j
                break
    return np.array(shown_by, np.int64)


BLOCK = 256  # rows above that are compared at once, before it is asked whether one of them hides


@jit("uint16[:, ::1], boolean[::1], int64", "uint64[:, ::1], boolean[::1], int64")
def _suppress(features, present, r):
    num_rows, k = features.shape
    shown_by = np.arange(num_rows)
    columns = np.empty((k, num_rows), features.dtype)  # features of the rows that show, each place together
    shown = np.empty(num_rows, np.int64)
    agree = np.empty(BLOCK, np.uint16)
    num_shown = 0
    for i in range(num_rows):
        if not present[i]:
            continue
        for first in range(0, num_shown, BLOCK):
            length = min(BLOCK, num_shown - first)
            agree[:length] = np.uint16(0)
            for place in range(k):
                feature = features[i, place]
                column = columns[place, first : first + length]
                for j in range(length):
                    agree[j] += np.uint16(column[j] == feature)
            most = np.uint16(0)
            for j in range(length):
                most = max(most, agree[j])
            if most >= r:
                j = 0
                while agree[j] < r:
                    j += 1
                shown_by[i] = shown[first + j]
                break
        if shown_by[i] == i:
            for place in range(k):
                columns[place, num_shown] = features[i, place]
            shown[num_shown] = i
            num_shown += 1
    return shown_by


def cpu(features, present, r):
    """As `reference`: a row with many above it at once, place by place. One thread, as rows wait for one another."""
    return _suppress(features, present, r)


def _hide_kernel(kind: str) -> Kernel:
    def hide(features, present, r, shown_by):
        """One block: each row that shows, in turn, is compared with those below it, a thread a row."""
        num_rows, k = features.shape
        for i in range(num_rows):
            if present[i] and shown_by[i] == i:
                for j in range(i + 1 + cuda.threadIdx.x, num_rows, cuda.blockDim.x):
                    if present[j] and shown_by[j] == j:
                        agree = 0
                        for place in range(k):
                            agree += features[i, place] == features[j, place]
                        if agree >= r:
                            shown_by[j] = i
            cuda.syncthreads()

    return kernel(f"void({kind}[:,::1], boolean[::1], int64, int64[::1])")(hide)


_HIDE = {kind: _hide_kernel(kind) for kind in ("uint16", "uint64")}


def gpu(features, present, r):
    """As `reference`, by one block: for rankings that are on the device anyway, not to be faster."""
    xp = namespace()
    features, present = on_device(features), on_device(present)
    shown_by = xp.arange(len(features), dtype=np.int64)
    _HIDE[features.dtype.name].blocks(min(1, len(features)), features, present, r, shown_by)
    return shown_by
