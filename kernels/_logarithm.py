"""Logarithms to the base 2 in 32.32 fixed point, by one table: the same bits on every machine.

    L(x) = 2**32 e + y[i] + floor((y[i + 1] - y[i]) f / 2**32)        x = 2**e (1 + (i + f / 2**32) / 4096)

y[i] = floor(2**32 log2(1 + i / 4096)) exactly, from y[0] = 0 to y[4096] = 2**32; i and f are the next 12 and 32 bits of
x below its highest. So L never decreases, and lies below 2**32 log2(x) by less than 50: a chord of log2 lies below it
by at most log2(e) / 8 / 4096**2, which is 46.2 in units of 2**-32, and roundings add less than 3.

Cost: two look-ups and a multiplication.
"""

from functools import cache

import numpy as np

from ._cpu import jit

ONE = 1 << 32
"""The logarithm of 2."""

_GUARD = 128  # bits of a number while it is squared again and again: each step loses less than one of them


@cache
def table():
    """y: array of uint64, shape (4097,)."""
    return np.array([*map(_digits, range(4096)), ONE], np.uint64)


def _digits(i):
    """floor(2**32 log2(1 + i / 4096)), digit by digit: a number whose square is 2 or more has 1/2 in its logarithm."""
    x, found = (4096 + i) << _GUARD - 12, 0
    for _ in range(32):
        x = x * x >> _GUARD
        found <<= 1
        if x >> _GUARD + 1:
            x >>= 1
            found |= 1
    return found


@jit()
def exponent(x):
    """Place of the highest bit of a uint64 that is not 0."""
    e = np.uint64(0)
    for step in (np.uint64(32), np.uint64(16), np.uint64(8), np.uint64(4), np.uint64(2), np.uint64(1)):
        if x >> step:
            x >>= step
            e += step
    return e


@jit("uint64, uint64[::1]")
def log2(x, y):
    """L of a uint64 that is not 0; `y` is the table."""
    e = np.uint64(exponent(x))
    x <<= np.uint64(63) - e
    i = (x >> np.uint64(51)) & np.uint64(4095)
    f = (x >> np.uint64(19)) & np.uint64(0xFFFFFFFF)
    low = y[i]
    return (e << np.uint64(32)) + low + (((y[i + np.uint64(1)] - low) * f) >> np.uint64(32))
