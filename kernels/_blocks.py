"""Which blocks of a file hold some runs of values.

A file of values of `item_bytes` bytes is read, and compared with its checksums, in blocks of `block_bytes` bytes: value
v lies in block v * item_bytes // block_bytes and, where values straddle blocks, in the next one, too.

Cost: a step for each block of each run.
"""

from __future__ import annotations

import numpy as np

from ._launch import jit


@jit()
def _unread(starts, stops, item_bytes, block_bytes, done):
    """See `unread`; a block may be there more than once."""
    size = 0
    for write in (False, True):
        found = np.empty(size if write else 0, np.int64)
        size = 0
        for i in range(len(starts)):
            first = max(starts[i], 0) * item_bytes // block_bytes
            last = (stops[i] * item_bytes - 1) // block_bytes if stops[i] > starts[i] else first - 1
            for block in range(first, min(last + 1, len(done))):
                if not done[block]:
                    if write:
                        found[size] = block
                    size += 1
    return found


def unread(starts, stops, item_bytes, block_bytes, done):
    """Numbers of the blocks that hold values of some runs and are not `done`, in order, each once.

    Parameters
    ----------
    starts, stops : arrays of int64, shape (runs,)
        Numbers of the first value of each run and of the one after its last.
    item_bytes, block_bytes : int
        Size of a value and of a block. The first block begins with value 0.
    done : array of uint8, shape (blocks,)
        Other than 0 for the blocks that are not asked for. Runs that reach beyond the last block are cut off there.

    Returns
    -------
    array of int64
    """
    found = _unread(starts, stops, item_bytes, block_bytes, done)
    return np.unique(found) if len(found) > 1 else found
