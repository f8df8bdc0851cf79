"""Which rows are identical: for each row the first one of the same words, its representative.

    representative[i] = min(j : words[j] = words[i])

Documents of identical token sequences have identical fingerprints, and so on: what is found here is done once for all.

Source: the definition; on the CPU rows are brought together by a hash of their words, and then compared.
Cost: two passes over the hashes on the CPU, 32 bytes per row; a radix sort per column on a GPU, 44 bytes per row.
"""

from __future__ import annotations

import numpy as np

from ._cpu import jit, parallel, shares
from ._gf2 import mix64
from ._launch import check_rows, namespace, on_device
from ._sort import in_parts, order_of, sort_part


def reference(words):
    """Representatives, straight from the definition.

    Parameters
    ----------
    words : array of uint64, shape (rows,) or (rows, columns)
        Fewer than 2**32 - 1 rows; at least one column.

    Returns
    -------
    array of int64, shape (rows,)
        A row that no earlier one equals is its own representative.
    """
    seen: dict[tuple[int, ...], int] = {}
    rows = words.reshape(len(words), -1 if len(words) else 1).tolist()
    return np.array([seen.setdefault(tuple(row), number) for number, row in enumerate(rows)], np.int64)


@parallel("uint64[:, ::1], uint64[::1]")
def _hash_rows(begin, end, columns, hashes):
    """Write a hash of the words of each row: mixed, as words that lie near each other would sort slowly."""
    for i in range(begin, end):
        hashed = np.uint64(0)
        for column in range(columns.shape[1]):
            hashed = mix64(hashed ^ columns[i, column])
        hashes[i] = hashed


@jit()
def _first_equal(columns, rows, start, i, representatives):
    """The representative of the row at place `i`: among those from `start` on, whose hashes are the same."""
    for j in range(start, i):
        same = representatives[rows[j]] == rows[j]
        for column in range(columns.shape[1] if same else 0):
            same &= columns[rows[i], column] == columns[rows[j], column]
        if same:
            return rows[j]
    return rows[i]


@parallel("uint64[:, ::1], uint64[::1], uint32[::1], int64[::1], int64[::1], uint64, int64, int64[::1]")
def _write_representatives(begin, end, columns, hashes, rows, ends, bounds, shift, bits, representatives):
    for share in range(begin, end):
        largest = 0
        for part in range(bounds[share], bounds[share + 1]):
            largest = max(largest, ends[part + 1] - ends[part])
        room = np.empty((1 << bits) + 1, np.uint32), np.empty(largest, np.uint64), np.empty(largest, np.uint32)
        for part in range(bounds[share], bounds[share + 1]):
            some, theirs = hashes[ends[part] : ends[part + 1]], rows[ends[part] : ends[part + 1]]
            sort_part(some, theirs, shift, room)
            start = 0
            for i in range(len(some)):
                if some[i] != some[start]:
                    start = i
                representatives[theirs[i]] = _first_equal(columns, theirs, start, i, representatives)


def cpu(words):
    """As `reference`: rows of one hash are compared; they are brought together in the order of their numbers.

    Raises
    ------
    ResourceError
        If there are 2**32 - 1 rows or more.
    """
    check_rows(len(words), "words")
    columns = np.ascontiguousarray(words.reshape(len(words), -1 if words.ndim > 1 and len(words) else 1))
    hashes = np.empty(len(words), np.uint64)
    _hash_rows(len(columns), columns, hashes)
    hashes, rows, ends, shift, bits = in_parts(hashes, np.arange(len(words), dtype=np.uint32))
    representatives = np.empty(len(words), np.int64)
    bounds = shares(ends, 64)
    _write_representatives(len(bounds) - 1, columns, hashes, rows, ends, bounds, shift, bits, representatives)
    return representatives


def gpu(words):
    """As `reference`: by stable radix sorts of all rows together, column by column, from the last to the first."""
    xp = namespace()
    columns = on_device(words)
    columns = columns.reshape(len(words), -1 if columns.ndim > 1 and len(words) else 1)
    order, _ = order_of(columns[:, -1])
    for column in range(columns.shape[1] - 2, -1, -1):
        order = order[order_of(columns[:, column][order])[0]]
    in_order = columns[order]
    begins = xp.ones(len(in_order), bool)
    begins[1:] = (in_order[1:] != in_order[:-1]).any(axis=1)
    representatives = xp.empty(len(in_order), np.int64)
    representatives[order] = order[begins][xp.cumsum(begins) - 1]
    return representatives
