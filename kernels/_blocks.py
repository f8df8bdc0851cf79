"""Blocks of an array that hold values of given runs."""

import numpy as np

from ._cpu import jit


@jit("int64[::1], int64[::1], int64, int64, uint8[::1]")
def _blocks_of_runs(starts, stops, item_bytes, block_bytes, done):
    """Return the blocks of `blocks_of_runs`, possibly several times."""
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


def blocks_of_runs(starts, stops, item_bytes, block_bytes, done):
    """Return the numbers of the blocks that hold values of some runs and are not `done`, ascending, each once.

    Parameters
    ----------
    starts, stops : arrays of int64
    item_bytes, block_bytes : int
        Bytes per value and per block; the array begins with value 0.
    done : array of uint8, shape (blocks,)

    Returns
    -------
    array of int64
    """
    found = _blocks_of_runs(starts, stops, item_bytes, block_bytes, done)
    return np.unique(found) if len(found) > 1 else found
