"""Passages: runs of two documents that lie near one another in both, in one order.

A run (i, j, n) says that n tokens from i on in one document equal n tokens from j on in another one. The runs of each
pair of documents are taken in the order of (i, j). A run joins one of the 16 passages of its pair that were begun last
if it follows that passage in both documents, with at most `gap` tokens between them in each. Where it overlaps the
passage in one of the documents, its first tokens are left out. It joins the passage with the fewest tokens between, of
several the first one. Otherwise, it begins a passage.

    passages = for each run, the first run of its passage
    skipped  = for each run, how many of its first tokens are left out

Source: the toolkit's design of shared passages; `gap` is its option.

Cost: up to 16 comparisons for each run. Memory: 40 bytes for each run.
"""

import numpy as np

from ._cpu import Rare, parallel
from ._launch import Device, cuda, kernel, namespace, on_device

LAST = 16
"""The passages of a pair that a run may join: those that were begun last."""


def reference(lefts, rights, sizes, offsets, gap):
    """Join runs, straight from the definition.

    Parameters
    ----------
    lefts, rights, sizes : arrays of int64, shape (runs,)
        The runs of each pair in the order of (left, right).
    offsets : array of int64, shape (pairs + 1,)
        The runs of pair p are those from ``offsets[p]`` to ``offsets[p + 1]``.
    gap : int
        At least 0.

    Returns
    -------
    passages, skipped : arrays of int64, shape (runs,)
        From run ``offsets[0]`` to run ``offsets[-1]``; passages count from the first run of all.
    """
    passages, skipped = [], []
    for start, stop in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        ends: dict[int, tuple[int, int]] = {}
        for run in range(start, stop):
            i, j, n = int(lefts[run]), int(rights[run]), int(sizes[run])
            fitting = []
            for first, (left, right) in list(ends.items())[-LAST:]:
                skip = max(0, left - i, right - j)
                between = i + skip - left, j + skip - right
                if skip < n and max(between) <= gap:
                    fitting.append((sum(between), first, skip))
            _, first, skip = min(fitting, default=(0, run, 0))
            ends[first] = i + n, j + n
            passages.append(first)
            skipped.append(skip)
    return np.array(passages, np.int64), np.array(skipped, np.int64)


@parallel(
    Rare("(int64[::1], int64[::1], int64[::1]), int64[::1], int64, (int64[::1], int64[::1]), int64[:, ::1]"), least=16
)
def _join(begin, end, runs, offsets, gap, joined, room):
    """Join the runs of pairs. `room`: the first run of each passage of a pair, and where each ends."""
    lefts, rights, sizes = runs
    passages, skipped = joined
    base = offsets[0]
    for pair in range(begin, end):
        start, number = offsets[pair] - base, np.int64(0)
        for run in range(offsets[pair], offsets[pair + 1]):
            i, j, n = lefts[run], rights[run], sizes[run]
            best, skip_of_best, least = np.int64(-1), np.int64(0), np.int64(0)
            for k in range(max(np.int64(0), number - LAST), number):
                left, right = room[1, start + k], room[2, start + k]
                skip = max(np.int64(0), left - i, right - j)
                one, other = i + skip - left, j + skip - right
                if skip < n and one <= gap and other <= gap and (best < 0 or one + other < least):
                    best, skip_of_best, least = k, skip, one + other
            if best < 0:
                best, number = number, number + 1
                room[0, start + best] = run
            room[1, start + best], room[2, start + best] = i + n, j + n
            passages[run - base], skipped[run - base] = room[0, start + best], skip_of_best


def cpu(lefts, rights, sizes, offsets, gap):
    """As `reference`, pairs in parallel."""
    number = int(offsets[-1] - offsets[0])
    joined = np.empty(number, np.int64), np.empty(number, np.int64)
    _join(len(offsets) - 1, (lefts, rights, sizes), offsets, gap, joined, np.empty((3, number), np.int64))
    return joined


# --------------------------------------------------------------------------------------------------------- on a device


Device(_join.py_func)  # the same, for kernels


@kernel("void(int64[::1], int64[::1], int64[::1], int64[::1], int64, int64[::1], int64[::1], int64[:, ::1])")
def _join_pair(lefts, rights, sizes, offsets, gap, passages, skipped, room):
    """One thread a pair: join its runs."""
    at = np.int64(cuda.grid(1))
    if at < len(offsets) - np.int64(1):
        _join(at, at + np.int64(1), (lefts, rights, sizes), offsets, gap, (passages, skipped), room)  # type: ignore[arg-type]


def gpu(lefts, rights, sizes, offsets, gap):
    """As `reference`, pairs in parallel."""
    xp = namespace()
    lefts, rights, sizes, offsets = map(on_device, (lefts, rights, sizes, offsets))
    number = int(offsets[-1] - offsets[0])
    passages, skipped, room = (xp.empty(shape, np.int64) for shape in (number, number, (3, number)))
    _join_pair.threads(len(offsets) - 1, lefts, rights, sizes, offsets, gap, passages, skipped, room)
    return passages, skipped
