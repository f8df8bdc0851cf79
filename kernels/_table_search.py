"""Search sorted tables of uniform keys, one table per row of an array. Kernels that probe share these functions."""

import numpy as np

from ._cpu import carray, intrinsic, ir, jit, parallel, types
from ._search import lower_bound, upper_bound


@intrinsic
def _pointer(_, address):
    """A number as the address that it is."""

    def cast(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())

    return types.voidptr(types.int64), cast


@jit()
def array_at(address, rows, columns):
    """The array of uint64 at an address, which somebody else keeps alive: so that many are given as one array of
    numbers, where each array by itself would take 0.2 us to be given."""
    return carray(_pointer(address), (rows, columns), np.uint64)


@jit()
def bytes_at(address, size):
    """The same of bytes."""
    return carray(_pointer(address), (size,), np.uint8)


@jit()
def first_guess(entries, key):
    """Return the expected place of a key among `entries` uniform keys."""
    return np.int64(((key >> np.uint64(32)) * np.uint64(entries)) >> np.uint64(32))


@jit()
def better_guess(keys, table, key, guess):
    """Return the expected place of a key among uniform keys, given its distance from the key at an earlier guess."""
    number = np.int64(keys.shape[1])
    distance = np.int64(key >> np.uint64(32)) - np.int64(keys[table, guess] >> np.uint64(32))
    further = (distance * min(number, np.int64(1) << np.int64(30))) >> np.int64(32)
    return max(np.int64(0), min(number - np.int64(1), guess + further))


@jit()
def near(keys, table, key, guess):
    """Place of the first key of a table, which has some, that is not below a key, and is not far from a guess."""
    number, step = np.int64(keys.shape[1]), np.int64(2)
    if keys[table, guess] < key:
        low = guess + np.int64(1)
        while low + step < number and keys[table, low + step - np.int64(1)] < key:
            low += step
            step *= np.int64(2)
        high = min(number, low + step)
    else:
        high = guess
        while high - step > np.int64(0) and keys[table, high - step] >= key:
            high -= step
            step *= np.int64(2)
        low = max(np.int64(0), high - step)
    return lower_bound(keys[table], low, high, key)


@jit()
def first_not_below(keys, table, key):
    """Place of the first key of a table that is not below a key: near where it would be among uniform keys."""
    number = np.int64(keys.shape[1])
    if number == 0:
        return np.int64(0)
    return near(keys, table, key, better_guess(keys, table, key, first_guess(number, key)))


@jit()
def run_end(keys, table, start, key):
    """Return the place after the last entry of a key, whose run begins at `start`."""
    number, step = np.int64(keys.shape[1]), np.int64(1)
    low = start
    while low + step <= number and keys[table, low + step - np.int64(1)] == key:
        low += step
        step *= np.int64(2)
    return upper_bound(keys[table], low, min(number, low + step), key)


@parallel("uint64[:, ::1], uint32[:, ::1], uint64[:, ::1], int64[::1], int64[::1], int64[:, ::1], int64[:, ::1], int64")
def find_all(lower, upper, keys, rows, queries, first, stop, starts, ends, parts):
    """Write where the entries of each query's runs lie whose rows are looked for, one table after another: so what is
    looked at of it stays in a core's cache."""
    for part in range(lower, upper):
        for table in range(queries.shape[1]):
            for query in range(part * len(queries) // parts, (part + 1) * len(queries) // parts):
                key = queries[query, table]
                start = first_not_below(keys, table, key)
                end = run_end(keys, table, start, key)
                start = lower_bound(rows[table], start, end, first[query])
                starts[query, table] = start
                ends[query, table] = lower_bound(rows[table], start, end, stop[query])
