"""Probing sorted tables: for each query, the rows of several tables that share at least r keys with it.

Table t holds (key, row), sorted by key and among equal keys by row. A row shares table t with a query if the table has
the row under the query's key of that number. What is asked for are the first rows, in ascending order, that share at
least r of the k tables: the entries of one key are a run of ascending rows, so the k runs of a query are merged, and
the merging ends with the last row that is wanted.

Source: the pair tables of Manasse 2012, 3.1 and 6.1, asked by documents that come later.
Cost: a query looks into each table by interpolation, as fingerprints are uniform, and then at the entries of its runs,
up to the last row that it finds, twice: they are counted before they are written.
"""

from __future__ import annotations

import numba
import numpy as np
from numba import prange

from ._launch import Device, cuda, jit, kernel, namespace, on_device


def reference(keys, rows, queries, r, first, stop, most, allowed):
    """The first rows that share keys with each query, from the definition.

    Parameters
    ----------
    keys : array of uint64, shape (k, entries)
        The keys of each table, ascending.
    rows : array of uint32, shape (k, entries)
        Their rows; ascending among equal keys, and each once.
    queries : array of uint64, shape (queries, k)
    r : int
        Tables that have to be shared, from 1 to k.
    first, stop : arrays of int64, shape (queries,)
        Rows from the first on and before the second are looked for.
    most : array of int64, shape (queries,)
        Most rows that are wanted of each.
    allowed : array of uint8, shape (all rows,)
        Rows that are 0 there are passed over.

    Returns
    -------
    found : array of int64
        Query by query, ascending.
    offsets : array of int64, shape (queries + 1,)
        Where those of each begin.
    """
    tables = []
    for some_keys, some_rows in zip(keys.tolist(), rows.tolist(), strict=True):
        runs: dict[int, list[int]] = {}
        for key, row in zip(some_keys, some_rows, strict=True):
            runs.setdefault(key, []).append(row)
        tables.append(runs)
    found = []
    for query, low, high, wanted in zip(queries.tolist(), first.tolist(), stop.tolist(), most.tolist(), strict=True):
        shared: dict[int, int] = {}
        for key, table in zip(query, tables, strict=True):
            for row in table.get(key, []):
                shared[row] = shared.get(row, 0) + 1
        some = sorted(row for row, count in shared.items() if count >= r and low <= row < high and allowed[row])
        found.append(some[: max(0, wanted)])
    return np.array([row for some in found for row in some], np.int64), np.cumsum([0, *map(len, found)], dtype=np.int64)


@jit()
def _further(keys, table, key, guess):
    """About how many places from a guess on a key would be, by how far the key there is from it."""
    there, number = keys[table, guess] >> np.uint64(32), np.int64(keys.shape[1])
    distance = np.int64(key >> np.uint64(32)) - np.int64(there)
    return (distance * min(number, np.int64(1) << np.int64(30))) >> np.int64(32)


@jit()
def _first_not_below(keys, table, key):
    """Place of the first key of a table that is not below a key: near where it would be among uniform keys."""
    number = np.int64(keys.shape[1])
    if number == 0:
        return np.int64(0)
    guess = np.int64(((key >> np.uint64(32)) * np.uint64(number)) >> np.uint64(32))
    guess = max(np.int64(0), min(number - np.int64(1), guess + _further(keys, table, key, guess)))
    return _near(keys, table, key, guess)


@jit()
def _near(keys, table, key, guess):
    """Place of the first key of a table, which has some, that is not below a key, and is not far from a guess."""
    number = np.int64(keys.shape[1])
    low, high, step = np.int64(0), number, np.int64(4)
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
    while low < high:
        middle = (low + high) >> np.int64(1)
        if keys[table, middle] < key:
            low = middle + np.int64(1)
        else:
            high = middle
    return low


@jit()
def _run_end(keys, table, start, key):
    """Place behind the last entry of a key, whose run begins at `start`."""
    number, step = np.int64(keys.shape[1]), np.int64(1)
    low = start
    while low + step <= number and keys[table, low + step - np.int64(1)] == key:
        low += step
        step *= np.int64(2)
    high = min(number, low + step)
    while low < high:
        middle = (low + high) >> np.int64(1)
        if keys[table, middle] == key:
            low = middle + np.int64(1)
        else:
            high = middle
    return low


@jit()
def _first_row(rows, table, low, high, row):
    """Place of the first entry of a run whose row is not below a row."""
    while low < high:
        middle = (low + high) >> np.int64(1)
        if np.int64(rows[table, middle]) < row:
            low = middle + np.int64(1)
        else:
            high = middle
    return low


@jit()
def _find(keys, rows, queries, query, table, first, stop, starts, ends):
    """Write where the entries of a query's run lie whose rows are looked for."""
    key = queries[query, table]
    start = _first_not_below(keys, table, key)
    end = _run_end(keys, table, start, key)
    start = _first_row(rows, table, start, end, first[query])
    starts[query, table] = start
    ends[query, table] = _first_row(rows, table, start, end, stop[query])


@jit()
def _merge(rows, heads, ends, query, r, most, allowed, found, place):
    """Merge the runs of a query, which moves its `heads`; returns how many rows there are.

    They are written to `found` from `place` on, unless that is negative.
    """
    number, tables = np.int64(0), heads.shape[1]
    while number < most:
        least = np.int64(1) << np.int64(40)
        for table in range(tables):
            if heads[query, table] < ends[query, table]:
                least = min(least, np.int64(rows[table, heads[query, table]]))
        if least == np.int64(1) << np.int64(40):
            break
        shared = np.int64(0)
        for table in range(tables):
            if heads[query, table] < ends[query, table] and np.int64(rows[table, heads[query, table]]) == least:
                heads[query, table] += np.int64(1)
                shared += np.int64(1)
        if shared >= r and allowed[least] != np.uint8(0):
            if place >= np.int64(0):
                found[place + number] = least
            number += np.int64(1)
    return number


@jit(parallel=True)
def _find_all(keys, rows, queries, first, stop, starts, ends, parts):
    """One table after another, so that what is looked at of it stays in a core's cache."""
    for part in prange(parts):
        for table in range(queries.shape[1]):
            for query in range(part * len(queries) // parts, (part + 1) * len(queries) // parts):
                _find(keys, rows, queries, query, table, first, stop, starts, ends)


@jit(parallel=True)
def _merge_all(rows, starts, ends, r, most, allowed, found, places, counts):
    """Count the rows of each query, or write them, if there is a place for each."""
    heads = starts.copy()
    for query in prange(len(starts)):
        place = places[query] if len(places) else np.int64(-1)
        counts[query] = _merge(rows, heads, ends, query, r, most[query], allowed, found, place)


def cpu(keys, rows, queries, r, first, stop, most, allowed):
    """As `reference`; queries in parallel."""
    starts, ends = np.empty(queries.shape, np.int64), np.empty(queries.shape, np.int64)
    _find_all(keys, rows, queries, first, stop, starts, ends, min(len(queries), 4 * numba.get_num_threads()))
    counts, nothing = np.empty(len(queries), np.int64), np.empty(0, np.int64)
    r = np.int64(r)
    _merge_all(rows, starts, ends, r, most, allowed, nothing, nothing, counts)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    found = np.empty(int(offsets[-1]), np.int64)
    if len(found):
        _merge_all(rows, starts, ends, r, most, allowed, found, offsets[:-1], counts)
    return found, offsets


@Device
def _key_place(keys, table, low, high, key, behind):
    """Place of the first key of a table that is not below a key, or of the first one behind it."""
    while low < high:
        middle = (low + high) >> 1
        if keys[table, middle] < key or (behind and keys[table, middle] == key):
            low = middle + 1
        else:
            high = middle
    return low


_first_row_on_device, _merge_on_device = Device(_first_row.py_func), Device(_merge.py_func)


@kernel("void(uint64[:,::1], uint32[:,::1], uint64[:,::1], int64[::1], int64[::1], int64[:,::1], int64[:,::1])")
def _find_each(keys, rows, queries, first, stop, starts, ends):
    """One thread a query and table, by bisection."""
    at = np.int64(cuda.grid(1))
    if at < queries.shape[0] * queries.shape[1]:
        query = at // queries.shape[1]
        table = at - query * queries.shape[1]
        key = queries[query, table]
        start = _key_place(keys, table, np.int64(0), np.int64(keys.shape[1]), key, False)
        end = _key_place(keys, table, start, np.int64(keys.shape[1]), key, True)
        start = _first_row_on_device(rows, table, start, end, first[query])
        starts[query, table] = start
        ends[query, table] = _first_row_on_device(rows, table, start, end, stop[query])


@kernel(
    "void(uint32[:,::1], int64[:,::1], int64[:,::1], int64, int64[::1], uint8[::1], int64[::1], int64[::1], "
    "int64[::1])",
)
def _merge_each(rows, heads, ends, r, most, allowed, found, places, counts):
    """One thread a query."""
    query = cuda.grid(1)
    if query < len(counts):
        counts[query] = _merge_on_device(rows, heads, ends, query, r, most[query], allowed, found, places[query])


def gpu(keys, rows, queries, r, first, stop, most, allowed):
    """As `reference`; a thread for each query and table, then one for each query."""
    xp = namespace()
    keys, rows, queries, allowed = on_device(keys), on_device(rows), on_device(queries), on_device(allowed)
    first, stop, most = on_device(first), on_device(stop), on_device(most)
    starts, ends = xp.empty(queries.shape, np.int64), xp.empty(queries.shape, np.int64)
    _find_each.threads(queries.size, keys, rows, queries, first, stop, starts, ends)
    counts, found = xp.zeros(len(queries), np.int64), xp.empty(1, np.int64)
    places = xp.full(len(queries), -1, np.int64)
    _merge_each.threads(len(queries), rows, starts.copy(), ends, r, most, allowed, found, places, counts)
    offsets = xp.zeros(len(queries) + 1, np.int64)
    offsets[1:] = xp.cumsum(counts)
    found, places = xp.empty(int(offsets[-1]), np.int64), offsets[:-1].copy()
    if len(found):
        _merge_each.threads(len(queries), rows, starts, ends, r, most, allowed, found, places, counts)
    return found, offsets
