"""Whole documents: two Rabin fingerprints of each document's token sequence, by which exact duplicates are found.

Two moduli of degree 64 make a fingerprint of 128 bits. Source: Broder 1997, 4.1 (probability of collision at most
length / 2**(l - 1) a pair, for l bits); the leading 1 of the definition tells sequences of different lengths apart.

Cost: linear; four tokens a reduction, so that the chain of dependent products is short.
"""

from __future__ import annotations

import numpy as np
from numba import prange, types

from ._gf2 import (
    advance,
    advance_by_tables,
    byte_tables,
    extend,
    kept_weights,
    multiply,
    power_of_x,
    prepare,
    rabin_words,
)
from ._launch import TABLES, cuda, jit, kernel, load, namespace, on_device, row_of, shares


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
    return _fingerprints(values, offsets, shares(offsets), q0, q1, kept_weights(4, q0), kept_weights(4, q1))


RUN = 64  # values that a thread takes


@jit()
def power_tables(q):
    """x**(64 m) modulo p for m = v * 256**i at [256 * i + v], i < 5: any distance below 2**40 in five products."""
    tables = np.empty(1280, np.uint64)
    for i in range(5):
        base = power_of_x(np.uint64(64) << np.uint64(8 * i), q)
        tables[256 * i] = np.uint64(1 << 63)
        for v in range(1, 256):
            tables[256 * i + v] = multiply(tables[256 * i + v - 1], base, q)
    return tables


@jit()
def shifted(f, distance, powers, q):
    """f * x**(64 distance) modulo p, by `power_tables`."""
    f, distance, place = np.uint64(f), np.uint64(distance), np.uint64(0)
    while distance != np.uint64(0):
        digit = distance & np.uint64(0xFF)
        if digit != np.uint64(0):
            f = multiply(f, powers[place + digit], q)
        place += np.uint64(256)
        distance >>= np.uint64(8)
    return f


@kernel("void(uint64[::1], int64[::1], uint64, uint64[::1], uint64[::1], int64, uint64[:,::1])")
def _accumulate(values, offsets, q, tables, powers, which, result):
    """One thread a run of `RUN` values, whatever their rows.

    A fingerprint is the sum of its parts, each shifted by what follows it in its row: so parts of a long row meet by
    atomic exclusive-or, and only they need to be shifted.
    """
    modulus = cuda.shared.array(TABLES, types.uint64)
    load(tables, modulus)
    shifts = cuda.shared.array(1280, types.uint64)
    load(powers, shifts)
    i = offsets[0] + np.int64(cuda.grid(1)) * RUN
    stop = min(i + RUN, offsets[-1])
    if i >= stop:
        return
    d = row_of(offsets, i)
    while i < stop:
        while offsets[d + 1] == i:  # empty rows
            d += 1
        end = min(offsets[d + 1], stop)
        f = q if i == offsets[d] else np.uint64(0)
        while i < end:
            f = advance_by_tables(f ^ values[i], modulus)
            i += 1
        cuda.atomic.xor(result, (d, which), np.uint64(shifted(np.uint64(f), offsets[d + 1] - end, shifts, q)))
        d += 1


def gpu(values, offsets, polys):
    """As `reference`; runs of values in parallel, their fingerprints shifted and added."""
    xp = namespace()
    values, offsets = on_device(values), on_device(offsets)
    polys = np.asarray(polys, np.uint64)
    empty = (offsets[1:] == offsets[:-1])[:, None]
    result = xp.where(empty, on_device(polys), np.uint64(0))
    runs = -(-int(offsets[-1] - offsets[0]) // RUN)
    for which, q in enumerate(polys):
        tables, powers = on_device(byte_tables(q)), on_device(power_tables(q))
        _accumulate.threads(runs, values, offsets, q, tables, powers, which, result)
    return result
