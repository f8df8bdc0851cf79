"""Greedy decisions from a stream of pairs: a bit a row says whether it is removed, and there is no other state.

Pairs come by their left row. When a row comes as left, all its pairs with earlier rows have been seen, so its bit is
final: it is kept if it is pinned or its bit is not set. A row that is kept sets the bit of its right row, unless that
is pinned. Once all pairs have been seen, the bits are the decisions of `greedy`.

The rows of a range can be decided alone. Right rows after the range are returned, and their bits are set when their
range begins.

Source: Broder 1997, section 4.4, for the decisions; Chiang and others 1995, section 4, for messages that wait for their
range (time-forward processing).
Cost: one pass over the pairs, by one thread, bound by cache misses: a bit is looked up and one is set for each pair.
"""

from __future__ import annotations

import numpy as np

from ._cpu import jit


def reference(bits, first, stop, left, right, num_known):
    """The bits of a range of rows after some more pairs, from the definition.

    Parameters
    ----------
    bits : array of uint64, shape (words,)
        Whether each row from `first` on is removed as far as is known, 64 rows per word, the lowest bit first.
    first, stop : int
        The range is the rows from `first` on and before `stop`, for which the words have room.
    left, right : arrays of int64, shape (pairs,)
        left < right, ascending by left row, which is in the range.
    num_known : int
        Rows before this one are pinned: they are always kept.

    Returns
    -------
    bits : array of uint64, shape (words,)
    later : array of int64
        The right rows from `stop` on of the pairs whose left row is kept, in the order of the pairs.
    """
    removed = {first + at for at in range(64 * len(bits)) if int(bits[at // 64]) >> at % 64 & 1}
    later = []
    for a, b in zip(left.tolist(), right.tolist(), strict=True):
        if b >= num_known and (a < num_known or a not in removed):
            if b < stop:
                removed.add(b)
            else:
                later.append(b)
    words = [sum(1 << i for i in range(64) if first + 64 * word + i in removed) for word in range(len(bits))]
    return np.array(words, np.uint64), np.array(later, np.int64)


@jit("uint64[::1], int64, int64, int64[::1], int64[::1], int64")
def update(bits, first, stop, left, right, num_known):
    """Bring the bits up to date where they are; returns the right rows from `stop` on, as `reference` does."""
    later, num_later = np.empty(len(right), np.int64), 0
    for p in range(len(left)):
        row, other = left[p], right[p]
        at = row - first
        if other < num_known or (row >= num_known and (bits[at >> 6] >> np.uint64(at & 63)) & np.uint64(1)):
            continue
        if other < stop:
            at = other - first
            bits[at >> 6] |= np.uint64(1) << np.uint64(at & 63)
        else:
            later[num_later] = other
            num_later += 1
    return later[:num_later].copy()


@jit()
def mark(bits, first, rows):
    """Set the bits of some rows."""
    for row in rows:
        at = row - first
        bits[at >> 6] |= np.uint64(1) << np.uint64(at & 63)


def cpu(bits, first, stop, left, right, num_known):
    """As `reference`: `update` on a copy of the bits."""
    bits = bits.copy()
    return bits, update(bits, first, stop, left, right, num_known)
