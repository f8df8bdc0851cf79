"""Whole documents: two Rabin fingerprints of each document's token sequence, by which exact duplicates are found.

Two moduli of degree 64 make a fingerprint of 128 bits. Source: Broder 1997, 4.1 (probability of collision at most
length / 2**(l - 1) a pair, for l bits); the leading 1 of the definition tells sequences of different lengths apart.

Cost: linear; four tokens a reduction, so that the chain of dependent products is short.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from .launch import jit, shares
from .scalar import advance, extend, prepare, rabin_words, window_weights


def reference(values, offsets, polys):
    """Fingerprints of whole rows, straight from the definition.

    Parameters
    ----------
    values : array of uint64
    offsets : array of int64, shape (rows + 1,)
    polys : array of uint64, shape (2,)

    Returns
    -------
    array of uint64, shape (rows, 2)
        Empty rows hold the fingerprint of nothing, which is the modulus itself.
    """
    rows = [values[start:stop] for start, stop in zip(offsets[:-1], offsets[1:], strict=True)]
    return np.array([[rabin_words(row, int(q)) for q in polys] for row in rows], np.uint64).reshape(-1, 2)


@jit(parallel=True)
def _fingerprints(values, offsets, bounds, q0, q1, weights0, weights1):
    modulus0, modulus1 = prepare(q0), prepare(q1)
    result = np.empty((len(offsets) - 1, 2), np.uint64)
    for part in prange(len(bounds) - 1):
        for d in range(bounds[part], bounds[part + 1]):
            i, stop = offsets[d], offsets[d + 1]
            f0, f1 = q0, q1
            while i + 4 <= stop:
                f0 = extend(f0, values, i, weights0, modulus0)
                f1 = extend(f1, values, i, weights1, modulus1)
                i += 4
            while i < stop:
                f0 = advance(f0 ^ values[i], modulus0)
                f1 = advance(f1 ^ values[i], modulus1)
                i += 1
            result[d, 0] = f0
            result[d, 1] = f1
    return result


def cpu(values, offsets, polys):
    """As `reference`; rows in parallel."""
    q0, q1 = np.asarray(polys, np.uint64)
    return _fingerprints(
        values, offsets, shares(offsets), q0, q1, tuple(window_weights(4, q0)), tuple(window_weights(4, q1))
    )
