"""Probing sorted tables: for each query, the rows of several tables that share at least r keys with it.

Table t holds (key, row), sorted by key and among equal keys by row. A row shares table t with a query if the table has
the row under the query's key for table t. The answer is the first rows, in ascending order, that share at least r of
the k tables. The entries of one key are a run of ascending rows, so the k runs of a query are merged until enough rows
are found.

Source: the pair tables of Manasse 2012, 3.1 and 6.1, queried by documents that come later.
Cost: queries are sorted for each table. If there are many, the table is read along with them; otherwise they are looked
up by interpolation, as fingerprints are uniform, several at a time. Then the entries of runs are read up to the last
row of the answer, twice: they are counted before they are written. Where the runs of all queries have many rows that
are not allowed, they are read from a copy of the tables without such rows.
"""

from __future__ import annotations

import numpy as np

from ._launch import Device, cuda, kernel, namespace, on_device
from ._probing import find_rows, sort_queries
from ._search import lower_bound, upper_bound


def reference(keys, rows, queries, r, first, stop, most, allowed):
    """Find the first rows that share keys with each query, from the definition.

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
        Each query looks for rows from `first` on and before `stop`.
    most : array of int64, shape (queries,)
        The largest number of rows to find for each query.
    allowed : array of uint8, shape (all rows,)
        Rows whose value is 0 are left out.

    Returns
    -------
    found : array of int64
        Query by query, ascending.
    offsets : array of int64, shape (queries + 1,)
        The rows of query i are found[offsets[i]:offsets[i + 1]].
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


def cpu(keys, rows, queries, r, first, stop, most, allowed):
    """As `reference`; the queries of each table are sorted, and pieces of them run in parallel."""
    return find_rows(keys, rows, sort_queries(queries), r, first, stop, most, allowed)[:2]


@Device
def _merge_heads(rows, heads, ends, query, r, most, allowed, found, place):
    """Merge the runs of all tables as `_probing._merge` does, moving the `heads` of a query."""
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


@kernel("void(uint64[:,::1], uint32[:,::1], uint64[:,::1], int64[::1], int64[::1], int64[:,::1], int64[:,::1])")
def _find_each(keys, rows, queries, first, stop, starts, ends):
    """One thread per query and table, by bisection."""
    at = np.int64(cuda.grid(1))
    if at < queries.shape[0] * queries.shape[1]:
        query = at // queries.shape[1]
        table = at - query * queries.shape[1]
        key = queries[query, table]
        start = lower_bound(keys[table], np.int64(0), np.int64(keys.shape[1]), key)
        end = upper_bound(keys[table], start, np.int64(keys.shape[1]), key)
        start = lower_bound(rows[table], start, end, first[query])
        starts[query, table] = start
        ends[query, table] = lower_bound(rows[table], start, end, stop[query])


@kernel(
    "void(uint32[:,::1], int64[:,::1], int64[:,::1], int64, int64[::1], uint8[::1], int64[::1], int64[::1], int64[::1])"
)
def _merge_each(rows, heads, ends, r, most, allowed, found, places, counts):
    """One thread per query."""
    query = cuda.grid(1)
    if query < len(counts):
        counts[query] = _merge_heads(rows, heads, ends, query, r, most[query], allowed, found, places[query])


def gpu(keys, rows, queries, r, first, stop, most, allowed):
    """As `reference`; a thread per query and table, then a thread per query."""
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
