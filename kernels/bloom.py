"""Bloom filters of tables: find the keys that may be in a table without a look at the table.

A filter is an array of words, in blocks of one word. The highest bits of a key choose its word, and its lowest 18 bits
choose three bits of that word, which may be equal. A key is marked if all its bits are set. To add a key is to
set its bits; so a key that was added is always marked.

Queries in ascending order read the words in order, and there are few words, whereas a look into a large table waits for
the memory. Of n keys in w words, another key is marked with a probability of about (1 - exp(-3 n / 64 w))**3, and a
little more because words are not filled alike: about 1% at 16 bits per key.

Source: Putze, Sanders and Singler, Cache-, hash- and space-efficient Bloom filters, WEA 2007.
Cost: a word is read, and for keys written, for each key and each query.
"""

import numpy as np

from ._cpu import jit, parallel


def reference(marks, keys, queries, numbers, sizes):
    """Mark the keys of some tables, and keep the queries whose keys are marked then.

    Parameters
    ----------
    marks : array of uint64, shape (tables, words)
        The filter of each table; words are a power of two, and at least two. `cpu` changes it in place.
    keys : array of uint64, shape (tables, keys)
        Keys to add to each filter.
    queries : array of uint64, shape (tables, queries)
    numbers : array of uint32, shape (tables, queries)
        A number that stays with each query.
    sizes : array of int64, shape (tables,)
        How many queries there are for each table, in its first places.

    Returns
    -------
    marks, queries, numbers, sizes :
        Like those given. Of the queries only those that are marked are left, in their order, and zeros follow them.
    """
    marks, found, theirs = marks.copy(), np.zeros_like(queries), np.zeros_like(numbers)
    left = np.zeros_like(sizes)
    bits = marks.shape[1].bit_length() - 1

    def places(key):
        return key >> (64 - bits), {key % 64, (key >> 6) % 64, (key >> 12) % 64}

    for table in range(len(marks)):
        for key in keys[table].tolist():
            word, some = places(key)
            marks[table, word] |= np.uint64(sum(1 << bit for bit in some))
        for query, number in zip(queries[table, : sizes[table]].tolist(), numbers[table].tolist(), strict=False):
            word, some = places(query)
            if all(int(marks[table, word]) >> bit & 1 for bit in some):
                found[table, left[table]], theirs[table, left[table]] = query, number
                left[table] += 1
    return marks, found, theirs, left


@jit()
def _bits(key):
    """Return the bits of a key in its word."""
    low = np.uint64(63)
    first, second, third = key & low, (key >> np.uint64(6)) & low, (key >> np.uint64(12)) & low
    return (np.uint64(1) << first) | (np.uint64(1) << second) | (np.uint64(1) << third)


@parallel("uint64[:, ::1], uint64, uint64[:, ::1]")
def _mark(begin, end, keys, shift, marks):
    """Set the bits of each key of each table."""
    for table in range(begin, end):
        for key in keys[table]:
            marks[table, np.int64(key >> shift)] |= _bits(key)


@parallel("uint64[:, ::1], uint64, uint64[:, ::1], uint32[:, ::1], uint64[:, ::1], uint32[:, ::1], int64[::1]")
def _keep_marked(begin, end, marks, shift, queries, numbers, found, theirs, sizes):
    """Copy the queries that are marked, and write how many each table has."""
    for table in range(begin, end):
        size, entries = np.int64(0), sizes[table]
        for place in range(entries):
            key = queries[table, place]
            bits = _bits(key)
            found[table, size], theirs[table, size] = key, numbers[table, place]
            size += np.int64(marks[table, np.int64(key >> shift)] & bits == bits)
        if size < entries:  # the last query that was not marked
            found[table, size], theirs[table, size] = np.uint64(0), np.uint32(0)
        sizes[table] = size


def _shift(marks):
    return np.uint64(65 - marks.shape[1].bit_length())


def cpu(marks, keys, queries, numbers, sizes):
    """As `reference`; tables in parallel."""
    shift = _shift(marks)
    if keys.size:
        _mark(len(keys), keys, shift, marks)
    found, theirs, sizes = np.zeros_like(queries), np.zeros_like(numbers), sizes.copy()
    if queries.size:
        _keep_marked(len(queries), marks, shift, queries, numbers, found, theirs, sizes)
    return marks, found, theirs, sizes
