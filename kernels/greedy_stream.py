"""Greedy decisions from a stream of pairs: a bit a row says whether it is removed, and there is no other state.

Pairs come by their left row, or they come by their right row. Either way, when a row comes as left, all its pairs with
earlier rows have been seen, so its bit is final: it is kept if it is pinned or its bit is not set. A row that is kept
sets the bit of its right row, unless that is pinned. Once all pairs have been seen, the bits are the decisions of
`greedy`.

Source: Broder 1997, section 4.4.
Cost: one pass over the pairs, by one thread, bound by cache misses: a bit is looked up and one is set for each pair.
"""

from __future__ import annotations

import numpy as np

from ._cpu import jit


def reference(bits, left, right, num_known):
    """The bits after some more pairs, from the definition.

    Parameters
    ----------
    bits : array of uint64, shape (words,)
        Whether each row is removed as far as is known, 64 rows per word, the lowest bit first.
    left, right : arrays of int64, shape (pairs,)
        left < right, ascending by left row or by right row.
    num_known : int
        Rows before this one are pinned: they are always kept.

    Returns
    -------
    array of uint64, shape (words,)
    """
    removed = {row for row in range(64 * len(bits)) if int(bits[row // 64]) >> row % 64 & 1}
    for a, b in zip(left.tolist(), right.tolist(), strict=True):
        if b >= num_known and (a < num_known or a not in removed):
            removed.add(b)
    words = [sum(1 << i for i in range(64) if 64 * word + i in removed) for word in range(len(bits))]
    return np.array(words, np.uint64)


@jit("uint64[::1], int64[::1], int64[::1], int64")
def update(bits, left, right, num_known):
    """Bring the bits up to date where they are."""
    for p in range(len(left)):
        row, other = left[p], right[p]
        if other < num_known or (row >= num_known and (bits[row >> 6] >> np.uint64(row & 63)) & np.uint64(1)):
            continue
        bits[other >> 6] |= np.uint64(1) << np.uint64(other & 63)


@jit()
def mark(bits, rows):
    """Set the bits of some rows."""
    for row in rows:
        bits[row >> 6] |= np.uint64(1) << np.uint64(row & 63)


def cpu(bits, left, right, num_known):
    """As `reference`: `update` on a copy of the bits."""
    bits = bits.copy()
    update(bits, left, right, num_known)
    return bits
