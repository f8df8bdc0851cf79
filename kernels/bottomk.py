"""Bottom-k sketches: the s smallest elements of each row under one random permutation.

    y(f) = mix64(f ^ salt)        a permutation of the 64-bit integers
    MIN_s(A) = the s smallest of {y(f) : f in A}, ascending; all of them, if A has fewer

Sketches of fewer than s elements end with `EMPTY`, which thus stands for no element, nor for the one element that the
permutation takes to it.

Source: Broder 1997, section 3, there of a random permutation; mix64 is SplitMix64's finaliser.
Cost: a mixing for each value, a sort of little more than s of them, and s words a row.
"""

from itertools import pairwise

import numpy as np

from . import below, gather
from ._cpu import shares
from ._elements import BLOCK, EMPTY, beginnings, keep_small, zeros_above
from ._gf2 import mixed
from ._launch import fetch_offsets, namespace
from ._ragged import by_rows, longest_row
from .sets import distinct


def reference(values, offsets, salt, s):
    """Sketches, straight from the definition.

    Parameters
    ----------
    values : array of uint64, shape (n,)
        Elements of each row, in any order, repeats allowed.
    offsets : array of int64, shape (rows + 1,)
    salt : uint64
    s : int
        At least 1.

    Returns
    -------
    array of uint64, shape (rows, s)
        Each row ascending, without repeats but of `EMPTY`.
    """
    sketches = np.full((len(offsets) - 1, s), EMPTY)
    for row, (start, stop) in enumerate(pairwise(offsets)):
        images = {mixed(int(value) ^ int(salt)) for value in values[start:stop]}
        smallest = sorted(images)[:s]
        sketches[row, : len(smallest)] = smallest
    return sketches


@by_rows("uint64[::1], int64[::1], uint64, int64, uint64[:, ::1]")
def _sketch_rows(begin, end, values, offsets, salt, s, sketches):
    longest = longest_row(offsets, begin, end)
    kept, ordered = np.empty(longest + 1, np.uint64), np.empty(longest + 1, np.uint64)
    ends, block = np.empty(2 * longest + 1, np.uint32), np.empty(BLOCK, np.uint64)
    for d in range(begin, end):
        row = values[offsets[d] : offsets[d + 1]]
        wanted, most = np.uint64(s + s // 4 + 16), EMPTY
        if np.uint64(len(row)) > wanted:
            most = EMPTY // np.uint64(len(row)) * wanted
        while True:
            shift = zeros_above(most)  # as in `below`
            size = keep_small(row, salt, most, shift, block, kept)
            found = distinct(kept[:size], ordered, ends)
            if len(found) >= s or most == EMPTY:
                break
            most = most << np.uint64(1) if shift else EMPTY
        for i in range(min(s, len(found))):
            sketches[d, i] = found[i] >> shift


def cpu(values, offsets, salt, s):
    """As `reference`, rows in parallel: of n images only those are put in order that lie below a bound.

    About s + s / 4 + 16 lie below it if none is repeated. Where fewer than s distinct ones do, the bound is doubled.
    """
    sketches = np.full((len(offsets) - 1, s), EMPTY)
    _sketch_rows(shares(offsets), values, offsets, salt, s, sketches)
    return sketches


def gpu(values, offsets, salt, s):
    """As `reference`: of each row only the images below the bound of `cpu` are put in order, all rows together.

    Rows in which fewer than s distinct images lie below it are done again without a bound. The host waits once for
    each of the two.
    """
    xp = namespace()
    sizes, wanted = np.diff(fetch_offsets(offsets)).astype(np.uint64), np.uint64(s + s // 4 + 16)
    most = np.where(sizes > wanted, EMPTY // np.maximum(sizes, np.uint64(1)) * wanted, EMPTY)
    small, places = below.gpu(values, offsets, salt, most)
    sketches = beginnings(small, places, s)
    again = np.flatnonzero((np.diff(fetch_offsets(places)) < s) & (most < EMPTY))
    if len(again):
        some, places = gather.gpu(values, offsets, again)
        small, places = below.gpu(some, places, salt, np.full(len(again), EMPTY))
        sketches[xp.asarray(again)] = beginnings(small, places, s)
    return sketches
