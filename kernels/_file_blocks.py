"""Which blocks of a file hold values of some runs: what of a mapped file has to be checked before it is read."""

from __future__ import annotations

import numpy as np

from ._cpu import jit


@jit("int64[::1], int64[::1], int64, int64, uint8[::1]")
def _unread(starts, stops, item_bytes, block_bytes, done):
    """See `unread`; some may be there more than once."""
    size = 0
    for write in (False, True):
        found = np.empty(size if write else 0, np.int64)
        size = 0
        for i in range(len(starts)):
            first = max(starts[i], 0) * item_bytes // block_bytes
            last = (stops[i] * item_bytes - 1) // block_bytes if stops[i] > starts[i] else first - 1
            for block in range(first, min(last + 1, len(done))):
                if done[block]:
                    continue
                if write:
                    found[size] = block
                size += 1
    return found


def unread(starts, stops, item_bytes, block_bytes, done):
    """Numbers of the blocks of a file that hold values of some runs and are not `done`, in order, each once.

    Parameters
    ----------
    starts, stops : arrays of int64
    item_bytes, block_bytes : int
        Of a value and of a block; the file begins with value 0 and has as many blocks as `done`.
    done : array of uint8

    Returns
    -------
    array of int64
    """
    found = _unread(starts, stops, item_bytes, block_bytes, done)
    return np.unique(found) if len(found) > 1 else found
