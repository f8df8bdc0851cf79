"""How rare shingles are: a table of counters. Many shingles may share a counter.

A shingle's counter is named by its highest bits. It is one byte that stops at 255, and 64 neighbouring counters share a
word that goes on counting from there. So the count of a shingle is never too small, and too large only where others
share its counter. It is only used for an order of all shingles by (count, shingle): a count that is too large
costs time, never a pair. A shingle that is counted once is in one document only.

Source: Chaudhuri, Ganti and Kaushik 2006, for the order from the rarest element; Broder 1997, 4.1, drops the common.
Cost: on the CPU the numbers of counters are first scattered by their highest bits, so that a core's cache holds the
counters of a part: 20 bytes read and 4 written a value. The table takes 17 bytes for 16 counters.
"""

import numpy as np

from ._cpu import num_threads, parallel
from ._launch import Device, cuda, kernel, namespace, on_device

MOST = 255
"""Maximum of a counter of one byte."""

SHARED_BITS = 6
"""2**6 neighbouring counters share a word for what comes after `MOST`."""

FEWEST_BITS = 14
"""Least size of a table, as a number of bits; the number of a counter takes at most 32."""


def new_table(xp, bits):
    """A table of 2**bits counters of 0, by the module of array functions `xp`: (counters, beyond)."""
    return xp.zeros(1 << bits, np.uint8), xp.zeros(1 << (bits - SHARED_BITS), np.uint32)


@Device
def count_of(counters, beyond, shift, value):
    """The count of a value: never less than how often it was counted. `shift` is 64 less the bits of the table."""
    slot = value >> shift
    count = np.int64(counters[slot])
    return count if count < MOST else count + np.int64(beyond[slot >> np.uint64(SHARED_BITS)])


def shift_of(counters):
    """How far values are shifted to number their counters."""
    return np.uint64(64 - (len(counters).bit_length() - 1))


def reference(values, bits, table=None):
    """Count values, from the definition.

    Parameters
    ----------
    values : array of uint64, shape (n,)
    bits : int
        The table has 2**bits counters; at least `FEWEST_BITS`.
    table : (counters, beyond), optional
        What was counted so far, which is written over; nothing, unless given.

    Returns
    -------
    counters : array of uint8, shape (2**bits,)
        Number of values whose highest bits are those of the counter's number, at most `MOST`.
    beyond : array of uint32, shape (2**(bits - 6),)
        By how much 64 neighbouring counters together would have passed it.
    """
    counters, beyond = new_table(np, bits) if table is None else table
    for value in values.tolist():
        slot = value >> (64 - bits)
        if counters[slot] < MOST:
            counters[slot] += 1
        else:
            beyond[slot // 2**SHARED_BITS] += 1
    return counters, beyond


_PART_BITS = 6  # parts of the table that are counted in by themselves: 1 MB each, of a table of 64 MB


@parallel("uint64[::1], int64[:, ::1]")
def _count_parts(begin, end, values, places):
    runs, n, top = len(places), len(values), np.uint64(64 - _PART_BITS)
    for run in range(begin, end):
        for i in range(run * n // runs, (run + 1) * n // runs):
            places[run, values[i] >> top] += 1


@parallel("uint64[::1], int64[:, ::1], uint64, uint32[::1]")
def _scatter(begin, end, values, places, shift, slots):
    runs, n, top = len(places), len(values), np.uint64(64 - _PART_BITS)
    for run in range(begin, end):
        for i in range(run * n // runs, (run + 1) * n // runs):
            part = values[i] >> top
            slots[places[run, part]] = np.uint32(values[i] >> shift)
            places[run, part] += 1


@parallel("uint32[::1], int64[::1], uint8[::1], uint32[::1]")
def _count(begin, end, slots, ends, counters, beyond):
    for part in range(begin, end):
        for i in range(ends[part], ends[part + 1]):
            slot = slots[i]
            if counters[slot] < MOST:
                counters[slot] += np.uint8(1)
            else:
                beyond[slot >> np.uint32(SHARED_BITS)] += np.uint32(1)


def cpu(values, bits, table=None):
    """Return what `reference` returns. Numbers of counters are scattered by their highest bits, runs of them in
    parallel; then parts of the table are counted in parallel: each is one thread's, so no update is lost."""
    counters, beyond = new_table(np, bits) if table is None else table
    # NumPy asks the system for huge pages, compiled code does not.
    slots = np.empty(len(values), np.uint32)
    places, ends = np.zeros((num_threads(), 1 << _PART_BITS), np.int64), np.zeros((1 << _PART_BITS) + 1, np.int64)
    _count_parts(len(places), values, places)
    np.cumsum(places.sum(axis=0), out=ends[1:])
    places = ends[:-1] + np.cumsum(places, axis=0) - places  # where each run writes the first value of a part
    _scatter(len(places), values, places, np.uint64(64 - bits), slots)
    _count(1 << _PART_BITS, slots, ends, counters, beyond)
    return counters, beyond


@kernel("void(uint64[::1], uint64, uint32[::1], uint32[::1])")
def _count_all(values, shift, words, beyond):
    """One thread a value: its byte of a word that holds four counters is increased by compare-and-swap, or `beyond`.

    A byte that was read as `MOST` stays so; where another thread changed the word meanwhile, it is tried again.
    """
    at = cuda.grid(1)
    if at >= len(values):
        return
    slot = values[at] >> shift
    number, low = slot >> np.uint64(2), np.uint32((slot & np.uint64(3)) << np.uint64(3))
    found = words[number]
    while (found >> low) & np.uint32(MOST) != np.uint32(MOST):
        before = found
        found = cuda.atomic.cas(words, number, before, np.uint32(before + (np.uint32(1) << low)))
        if found == before:
            return
    cuda.atomic.add(beyond, slot >> np.uint64(SHARED_BITS), np.uint32(1))


def gpu(values, bits, table=None):
    """As `reference`; values in parallel, and no update is lost: a word is changed by compare-and-swap alone."""
    xp = namespace()
    counters, beyond = new_table(xp, bits) if table is None else table
    values = on_device(values)
    _count_all.threads(len(values), values, np.uint64(64 - bits), counters.view(np.uint32), beyond)
    return counters, beyond
