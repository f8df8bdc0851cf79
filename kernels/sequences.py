"""Whole documents: two Rabin fingerprints of each document's token sequence, by which exact duplicates are found.

Two moduli of degree 64 make a fingerprint of 128 bits. Source: Broder 1997, 4.1 (probability of collision at most
length / 2**(l - 1) a pair, for l bits); the leading 1 of the definition tells sequences of different lengths apart.

Cost: linear; four tokens a reduction, so that the chain of dependent products is short.
"""

import numpy as np

from ._constants import constant, constants
from ._cpu import jit, shares, types
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
from ._launch import TABLES, Device, bounds_of, cuda, kernel, load, namespace, on_device, row_of
from ._ragged import by_rows


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


@by_rows("uint64[::1], int64[::1], uint64, uint64, (uint64,) * 5, (uint64,) * 5, uint64[:, ::1]")
def _fingerprints(begin, end, values, offsets, q0, q1, weights0, weights1, result):
    modulus0, modulus1 = prepare(q0), prepare(q1)
    for d in range(begin, end):
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


def cpu(values, offsets, polys):
    """As `reference`; rows in parallel."""
    q0, q1 = np.asarray(polys, np.uint64)
    result = np.empty((len(offsets) - 1, 2), np.uint64)
    weights = kept_weights(4, q0), kept_weights(4, q1)
    _fingerprints(shares(offsets), values, offsets, q0, q1, *weights, result)
    return result


RUN = 64  # values that a thread takes


@jit("uint64")
def power_tables(q):
    """x**(64 m) modulo p for m = v * 256**i at [256 * i + v], i < 5: any distance below 2**40 in five products."""
    tables = np.empty(1280, np.uint64)
    for i in range(5):
        base = power_of_x(np.uint64(64) << np.uint64(8 * i), q)
        tables[256 * i] = np.uint64(1 << 63)
        for v in range(1, 256):
            tables[256 * i + v] = multiply(tables[256 * i + v - 1], base, q)
    return tables


@Device
def shifted(f, distance, powers, q):
    """f * x**(64 distance) modulo p, by `power_tables`."""
    f, distance, place = np.uint64(f), np.uint64(distance), np.uint64(0)
    while distance != np.uint64(0):
        digit = distance & np.uint64(0xFF)
        if digit != np.uint64(0):
            f = np.uint64(multiply(f, powers[place + digit], q))
        place += np.uint64(256)
        distance >>= np.uint64(8)
    return f


@kernel(
    "void(uint64[::1], int64[::1], uint64, uint64, uint64[::1], uint64[::1], uint64[::1], uint64[::1], uint64[:,::1])"
)
def _accumulate(values, offsets, q0, q1, tables0, tables1, powers0, powers1, result):
    """One thread a run of `RUN` values, whatever their rows, by both moduli.

    A fingerprint is the sum of its parts, each shifted by what follows it in its row: so parts of a long row meet by
    atomic exclusive-or, and only they need to be shifted. The tables of powers are read so seldom that they stay in
    global memory.
    """
    modulus0 = cuda.shared.array(TABLES, types.uint64)
    load(tables0, modulus0)
    modulus1 = cuda.shared.array(TABLES, types.uint64)
    load(tables1, modulus1)
    i = offsets[0] + np.int64(cuda.grid(1)) * RUN
    stop = min(i + RUN, offsets[-1])
    if i >= stop:
        return
    d = row_of(offsets, i)
    while i < stop:
        while offsets[d + 1] == i:  # empty rows
            d += 1
        end = min(offsets[d + 1], stop)
        f0, f1 = np.uint64(0), np.uint64(0)
        if i == offsets[d]:
            f0, f1 = q0, q1
        while i < end:
            value = values[i]
            f0 = np.uint64(advance_by_tables(f0 ^ value, modulus0))
            f1 = np.uint64(advance_by_tables(f1 ^ value, modulus1))
            i += 1
        following = offsets[d + 1] - end
        cuda.atomic.xor(result, (d, 0), np.uint64(shifted(f0, following, powers0, q0)))
        cuda.atomic.xor(result, (d, 1), np.uint64(shifted(f1, following, powers1, q1)))
        d += 1


def gpu(values, offsets, polys):
    """As `reference`; runs of values in parallel, their fingerprints shifted and added."""
    xp = namespace()
    first, last = bounds_of(offsets)
    values, offsets = on_device(values), on_device(offsets)
    q0, q1 = polys = np.asarray(polys, np.uint64)
    empty = (offsets[1:] == offsets[:-1])[:, None]
    result = xp.where(empty, constant(polys), np.uint64(0))
    tables = [constants(make, q)[0] for make in (byte_tables, power_tables) for q in (q0, q1)]
    _accumulate.threads(-(-(last - first) // RUN), values, offsets, q0, q1, *tables, result)
    return result
