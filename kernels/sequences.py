"""Whole documents: two Rabin fingerprints of each document's token sequence, by which exact duplicates are found.

Two moduli of degree 64 make a fingerprint of 128 bits. Source: Broder 1997, 4.1 (probability of collision at most
length / 2**(l - 1) a pair, for l bits); the leading 1 of the definition tells sequences of different lengths apart.

Cost: linear; four tokens a reduction, so that the chain of dependent products is short.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from .launch import CARRYLESS_MULTIPLY, jit, shares
from .scalar import _clmul, advance, prepare, rabin_words
from .shingles import _weights


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


@jit()
def _extend_four(f, values, at, weights, modulus):
    """Extend a fingerprint by four words with one reduction."""
    low, high = _clmul(f ^ values[at], weights[0])
    for j in range(1, 4):
        a, b = _clmul(values[at + j], weights[j])
        low ^= a
        high ^= b
    return high ^ advance(low, modulus)


if CARRYLESS_MULTIPLY:

    @jit(parallel=True)
    def _fingerprints(values, offsets, bounds, polys):
        q0, q1 = polys[0], polys[1]
        modulus0, modulus1 = prepare(q0), prepare(q1)
        weights0, weights1 = _weights(4, q0), _weights(4, q1)
        result = np.empty((len(offsets) - 1, 2), np.uint64)
        for part in prange(len(bounds) - 1):
            for d in range(bounds[part], bounds[part + 1]):
                i, stop = offsets[d], offsets[d + 1]
                f0, f1 = q0, q1
                while i + 4 <= stop:
                    f0 = _extend_four(f0, values, i, weights0, modulus0)
                    f1 = _extend_four(f1, values, i, weights1, modulus1)
                    i += 4
                while i < stop:
                    f0 = advance(f0 ^ values[i], modulus0)
                    f1 = advance(f1 ^ values[i], modulus1)
                    i += 1
                result[d, 0] = f0
                result[d, 1] = f1
        return result

else:

    @jit(parallel=True)
    def _fingerprints(values, offsets, bounds, polys):
        q0, q1 = polys[0], polys[1]
        modulus0, modulus1 = prepare(q0), prepare(q1)
        result = np.empty((len(offsets) - 1, 2), np.uint64)
        for part in prange(len(bounds) - 1):
            for d in range(bounds[part], bounds[part + 1]):
                f0, f1 = q0, q1
                for i in range(offsets[d], offsets[d + 1]):
                    f0 = advance(f0 ^ values[i], modulus0)
                    f1 = advance(f1 ^ values[i], modulus1)
                result[d, 0] = f0
                result[d, 1] = f1
        return result


def cpu(values, offsets, polys):
    """As `reference`; rows in parallel."""
    return _fingerprints(values, offsets, shares(offsets), np.asarray(polys, np.uint64))
