"""Searching in sorted words: by interpolation on the CPU, by bisection on a GPU."""

import numpy as np

from ._cpu import jit
from ._launch import Device


@jit()
def lower_bound(values, low, high, value):
    """Return the place of the first of the ascending values[low:high] that is not below `value`; `high` if none is."""
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@jit()
def upper_bound(values, low, high, value):
    """Return the place of the first of the ascending values[low:high] that is above `value`; `high` if none is."""
    while low < high:
        middle = (low + high) >> 1
        if values[middle] <= value:
            low = middle + 1
        else:
            high = middle
    return low


Device(lower_bound.py_func)  # which kernels on a device call by the same name
Device(upper_bound.py_func)


@jit()
def interpolation_search(words, key, low, high):
    """Place of the first of words[low:high], in ascending order at least of the key's leading bits, not below `key`.

    By interpolation (Perl and Reingold 1977): a guess, and one a square root of what is left to the other side of it,
    between which it nearly always lies; wherever they leave more than half, the middle as well. `low` and `high` are
    such that it is between them.
    """
    below = np.float64(words[low - 1]) if low > 0 else 0.0
    above = np.float64(words[high]) if high < len(words) else 2.0**64
    while high - low > 128:
        size = high - low
        share = (np.float64(key) - below) / max(above - below, 1.0)
        guess = low + min(max(np.int64(share * size), 0), size - 1)
        step = np.int64(np.sqrt(size)) + 1
        if words[guess] < key:
            low, below = guess + 1, np.float64(words[guess])
            guess = min(guess + step, high - 1)
        else:
            high, above = guess, np.float64(words[guess])
            guess = max(guess - step, low)
        for _ in range(2):
            if low <= guess < high:
                if words[guess] < key:
                    low, below = guess + 1, np.float64(words[guess])
                else:
                    high, above = guess, np.float64(words[guess])
            if high - low <= size >> 1:
                break
            guess = (low + high) >> 1
    return lower_bound(words, low, high, key)


@jit()
def likely_bounds(words, key):
    """(low, high) between which the first of `words` not below `key` is: by a guess, as if they were random.

    Nothing waits for what is read here, so that the memory of several tables is read at once.
    """
    n = len(words)
    guess, step = np.int64(np.float64(key) / 2.0**64 * n), np.int64(np.sqrt(n)) + 1
    before, after = max(guess - step, 0), min(guess + step, n - 1)
    low = before if words[before] < key else 0
    high = n if words[after] < key else after
    return low, high


@Device
def first_not_below(values, start, stop, value):
    """Place of the first of the ascending values from `start` to `stop` that is not less than `value`; `stop` if none.

    By bisection; neighbouring threads that look for neighbouring values read the same places nearly to the end.
    """
    low, high = np.uint64(start), np.uint64(stop)
    while low < high:
        middle = (low + high) >> np.uint64(1)
        if values[middle] < value:
            low = middle + np.uint64(1)
        else:
            high = middle
    return low
