"""Some rows of a ragged array, copied together: how shingles of candidates are brought from where they wait.

    gathered = values[offsets[r0]:offsets[r0 + 1]], values[offsets[r1]:offsets[r1 + 1]], ...    for rows r0, r1, ...

Cost: one copy of what is asked for.
"""

import numpy as np

from ._cpu import parallel, shares
from ._launch import cuda, kernel, namespace, on_device, row_of


def reference(values, offsets, rows):
    """Rows, straight from the definition.

    Parameters
    ----------
    values : array of uint64
    offsets : array of int64, shape (all rows + 1,)
    rows : array of int64, shape (rows,)
        In any order, repeats allowed.

    Returns
    -------
    values : array of uint64
    offsets : array of int64, shape (rows + 1,)
        From 0 on.
    """
    found = [values[offsets[row] : offsets[row + 1]].tolist() for row in rows]
    return np.array([x for row in found for x in row], np.uint64), np.cumsum([0, *map(len, found)], dtype=np.int64)


def _new_offsets(xp, sizes):
    """Where each row begins among those gathered, by the module of array functions `xp`."""
    new_offsets = xp.zeros(len(sizes) + 1, np.int64)
    new_offsets[1:] = xp.cumsum(sizes)
    return new_offsets


@parallel(
    "uint32[::1], int64[::1], int64[::1], int64[::1], uint64[::1]",
    "uint64[::1], int64[::1], int64[::1], int64[::1], uint64[::1]",
    "uint8[::1], int64[::1], int64[::1], int64[::1], uint64[::1]",
)
def _copy_rows(begin, end, values, starts, new_offsets, bounds, gathered):
    for part in range(begin, end):
        for i in range(bounds[part], bounds[part + 1]):
            for j in range(new_offsets[i + 1] - new_offsets[i]):
                gathered[new_offsets[i] + j] = values[starts[i] + j]


def cpu(values, offsets, rows):
    """As `reference`; rows in parallel."""
    starts = offsets[rows]
    new_offsets = _new_offsets(np, offsets[rows + 1] - starts)
    gathered = np.empty(new_offsets[-1], np.uint64)
    bounds = shares(new_offsets)
    _copy_rows(len(bounds) - 1, values, starts, new_offsets, bounds, gathered)
    return gathered, new_offsets


@kernel("void(uint64[::1], int64[::1], int64[::1], uint64[::1])")
def _copy_values(values, starts, new_offsets, gathered):
    """One thread a value: its row by bisection, then its place in it."""
    at = cuda.grid(1)
    if at < len(gathered):
        row = row_of(new_offsets, at)
        gathered[at] = values[starts[row] + at - new_offsets[row]]


def gpu(values, offsets, rows):
    """As `reference`; values in parallel, neighbours from neighbouring places."""
    xp = namespace()
    values, offsets, rows = on_device(values), on_device(offsets), on_device(rows)
    starts = offsets[rows]
    new_offsets = _new_offsets(xp, offsets[rows + 1] - starts)
    gathered = xp.empty(int(new_offsets[-1]), np.uint64)
    _copy_values.threads(len(gathered), values, starts, new_offsets, gathered)
    return gathered, new_offsets
