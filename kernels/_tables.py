"""Sorted tables of uniform keys and their rows, and a list of places in the order of what is there."""

import numpy as np

from ._cpu import jit, parallel
from ._sort import sort_part

_PART_BITS = 14
"""2**14 entries in a part, about: with room to sort them they fit a core's cache."""

_MOST_PARTS = 11
_FEWEST = 2048
"""Entries of a table below which it is one part."""


@parallel("uint64[:, ::1], uint32[::1], uint64[:, ::1], int64[::1]")
def _transposed(begin, end, keys, rows, found, bounds):
    """Write the keys of some rows column by column."""
    for part in range(begin, end):
        for place in range(bounds[part], bounds[part + 1]):
            for column in range(keys.shape[1]):
                found[column, place] = keys[rows[place], column]


@parallel("uint64[:, ::1], uint32[::1], int64, int64, uint64[:, ::1], uint32[:, ::1]")
def _sort(begin, end, keys, rows, part_bits, bits, found, numbers):
    """Tables in parallel: entries are brought together by their highest bits, and sorted part by part."""
    for table in range(begin, end):
        shift = np.uint64(64 - part_bits)
        ends = np.zeros((1 << part_bits) + 1, np.int64)
        for key in keys[table]:
            ends[np.int64(key >> shift) + 1] += 1
        largest = np.int64(0)
        for part in range(1, len(ends)):
            largest = max(largest, ends[part])
            ends[part] += ends[part - 1]
        places = ends.copy()
        for place in range(keys.shape[1]):
            key = keys[table, place]
            part = np.int64(key >> shift)
            found[table, places[part]], numbers[table, places[part]] = key, rows[place]
            places[part] += 1
        room = np.empty((1 << bits) + 1, np.uint32), np.empty(largest, np.uint64), np.empty(largest, np.uint32)
        for part in range(len(ends) - 1):
            some = slice(ends[part], ends[part + 1])
            sort_part(found[table, some], numbers[table, some], shift - np.uint64(bits), room)


def sorted_tables(keys, rows):
    """A table for each column of some keys: sorted by key, equal keys in the order given.

    Parameters
    ----------
    keys : array of uint64, shape (all rows, tables)
        Fingerprints: of others that agree in many bits sorting is slow.
    rows : array of uint32, shape (rows,)
        Those that enter the tables.

    Returns
    -------
    keys : array of uint64, shape (tables, rows)
    rows : array of uint32, shape (tables, rows)
    """
    size = len(rows)
    columns = np.empty((keys.shape[1], size), np.uint64)
    bounds = np.linspace(0, size, 1 + max(1, min(64, size // _FEWEST))).astype(np.int64)
    _transposed(len(bounds) - 1, keys, rows, columns, bounds)
    part_bits = min(max(size.bit_length() - _PART_BITS, 1), _MOST_PARTS)
    bits = max(size.bit_length() + 2 - part_bits, 1)
    found, numbers = np.empty_like(columns), np.empty(columns.shape, np.uint32)
    _sort(len(columns), columns, rows, part_bits, bits, found, numbers)
    return found, numbers


@jit("int64[::1], uint32[::1], int64[::1]")
def place_of_copies(entry, copies, wanted):
    """Return where the copies of some entries begin and end, in the order of `entry[copies]`: two arrays of int64."""
    found = np.empty((2, len(wanted)), np.int64)
    for number in range(len(wanted)):
        for side in range(2):
            low, high = np.int64(0), np.int64(len(copies))
            while low < high:
                middle = (low + high) >> np.int64(1)
                if entry[copies[middle]] < wanted[number] + side:
                    low = middle + np.int64(1)
                else:
                    high = middle
            found[side, number] = low
    return found[0], found[1]
