"""Which rows are identical: for each row the first one of the same words, its representative.

    representative[i] = min(j : words[j] = words[i])

Documents of identical token sequences have identical fingerprints, and so on: what is found here is done once for all.

Source: the definition; on the CPU a radix sort, least significant digit first (Knuth, The Art of Computer Programming,
volume 3, 5.2.5).
Cost: a radix sort for each column, 24 bytes a row on the CPU, 52 on a GPU.
"""

from __future__ import annotations

import numpy as np

from ._launch import check_rows, jit, namespace
from ._sort import radix_sort


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


@jit()
def _write_representatives(words, others, rows, representatives):
    """`words`, which are the rows' first column, are in order, and so are the rows within equal ones.

    `others` are the further columns, in the order of row numbers.
    """
    start = 0
    for i in range(len(words)):
        same = words[i] == words[start]
        for column in range(others.shape[1] if same else 0):
            same &= others[rows[i], column] == others[rows[start], column]
        if not same:
            start = i
        representatives[rows[i]] = rows[start]


def cpu(words):
    """As `reference`: sorted by the last column, then by the one before and so on, which brings equal rows together.

    Raises
    ------
    ResourceError
        If there are 2**32 - 1 rows or more.
    """
    check_rows(len(words), "words")
    columns = words.reshape(len(words), -1 if words.ndim > 1 and len(words) else 1)
    in_order, rows = radix_sort(columns[:, -1].copy(), 64)
    for column in range(columns.shape[1] - 2, -1, -1):
        in_order, order = radix_sort(columns[rows, column], 64)
        rows = rows[order]
    representatives = np.empty(len(words), np.int64)
    _write_representatives(in_order, columns[:, 1:], rows, representatives)
    return representatives


def gpu(words):
    """As `reference`: by stable radix sorts of all rows together, column by column, from the last to the first."""
    xp = namespace()
    columns = xp.ascontiguousarray(words)
    columns = columns.reshape(len(words), -1 if columns.ndim > 1 and len(words) else 1)
    order = xp.argsort(columns[:, -1], kind="stable")
    for column in range(columns.shape[1] - 2, -1, -1):
        order = order[xp.argsort(columns[:, column][order], kind="stable")]
    in_order = columns[order]
    begins = xp.ones(len(in_order), bool)
    begins[1:] = (in_order[1:] != in_order[:-1]).any(axis=1)
    representatives = xp.empty(len(in_order), np.int64)
    representatives[order] = order[begins][xp.cumsum(begins) - 1]
    return representatives
