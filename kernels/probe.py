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

from ._probing import find_rows, sort_queries
from ._ragged import of_rows


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
    return of_rows(found, np.int64)


def cpu(keys, rows, queries, r, first, stop, most, allowed):
    """As `reference`; the queries of each table are sorted, and pieces of them run in parallel."""
    return find_rows((keys, rows), sort_queries(queries), r, first, stop, most, allowed)[:2]
