"""Some rows of a ragged array, copied together: how shingles of candidates are brought from where they wait.

    gathered = values[offsets[r0]:offsets[r0 + 1]], values[offsets[r1]:offsets[r1 + 1]], ...    for rows r0, r1, ...

Cost: one copy of the gathered rows.
"""

import numpy as np

from ._cpu import large, shares
from ._launch import array_module, cuda, fetch_offsets, kernel, know, known, namespace, on_device, row_of
from ._ragged import by_rows, of_rows, sums_before


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
    return of_rows([values[offsets[row] : offsets[row + 1]].tolist() for row in rows], np.uint64)


@by_rows(
    "uint32[::1], int64[::1], int64[::1], uint64[::1]",
    "uint64[::1], int64[::1], int64[::1], uint64[::1]",
    "uint8[::1], int64[::1], int64[::1], uint64[::1]",
)
def _copy_rows(begin, end, values, starts, new_offsets, gathered):
    for i in range(begin, end):
        for j in range(new_offsets[i + 1] - new_offsets[i]):
            gathered[new_offsets[i] + j] = values[starts[i] + j]


def cpu(values, offsets, rows):
    """As `reference`; rows in parallel."""
    starts = offsets[rows]
    return copied(values, starts, sums_before(offsets[rows + 1] - starts))


def copied(values, starts, new_offsets):
    """Copy words of rows that begin at `starts` and are as long as `new_offsets` says, in host memory and in parallel.

    Returns
    -------
    values : array of uint64
    new_offsets : array of int64
        As given.
    """
    gathered = large(int(new_offsets[-1]), np.uint64)
    _copy_rows(shares(new_offsets), values, starts, new_offsets, gathered)
    return gathered, new_offsets


@kernel("void(uint64[::1], int64[::1], int64[::1], uint64[::1])")
def _copy_values(values, starts, new_offsets, gathered):
    """One thread a value: its row by bisection, then its place in it."""
    at = cuda.grid(1)
    if at < len(gathered):
        row = row_of(new_offsets, at)
        gathered[at] = values[starts[row] + at - new_offsets[row]]


def copy_on_device(values, starts, new_offsets):
    """Copy the values of rows that begin at `starts` and are as long as `new_offsets` says, on the device.

    Values are copied in parallel, neighbours from neighbouring places. The host waits unless `new_offsets` are `known`.
    """
    gathered = namespace().empty(int(fetch_offsets(new_offsets)[-1]), np.uint64)
    _copy_values.threads(len(gathered), values, starts, new_offsets, gathered)
    return gathered, new_offsets


def gpu(values, offsets, rows):
    """As `reference`. The host waits for the number of values, unless rows and where they begin are `known`."""
    ends, numbers = known(offsets), known(rows)
    if ends is not None and numbers is not None:
        on_host = sums_before(ends[numbers + 1] - ends[numbers])
        starts, new_offsets = on_device(ends[numbers]), on_device(on_host)
        know(new_offsets, on_host)
    else:
        offsets, rows = on_device(offsets), on_device(rows)
        starts = offsets[rows]
        new_offsets = sums_before(offsets[rows + 1] - starts)
    return copy_on_device(on_device(values), starts, new_offsets)


def beginnings(values, offsets, most):
    """Return the first `most` values of each row, where they lie: values and offsets, as `gpu` returns them."""
    xp = array_module(values)
    new_offsets = sums_before(xp.minimum(offsets[1:] - offsets[:-1], most))
    if xp is np:
        return copied(values, offsets[:-1], new_offsets)
    if (ends := known(offsets)) is not None:
        know(new_offsets, sums_before(np.minimum(np.diff(ends), most)))
    return copy_on_device(values, offsets[:-1], new_offsets)
