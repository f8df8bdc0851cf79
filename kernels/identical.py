"""Which rows are identical: for each row the first one of the same words, its representative.

    representative[i] = min(j : words[j] = words[i])

Documents of identical token sequences have identical fingerprints, and so on: what is found here is done once for all.

Source: the definition; on the CPU rows are divided by a hash of their words, and each part has a table of hashes.
Cost: three passes over the hashes on the CPU, 36 bytes per row; a radix sort per column on a GPU, 44 bytes per row.
"""

from __future__ import annotations

import numpy as np

from ._cpu import parallel, shares
from ._gf2 import mix64
from ._launch import check_rows, namespace, on_device
from ._ragged import by_rows, longest_row
from ._sort import in_parts, order_of


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


@parallel("uint64[:, ::1], uint64[::1], uint64[::1]")
def _hash_rows(begin, end, columns, hashes, lasts):
    """Write a hash of the one or two words of each row, and its last word. Equal pairs of them come of equal rows.

    Words are mixed, as words that lie near each other would share places of a table.
    """
    for i in range(begin, end):
        hashed, last = np.uint64(0), np.uint64(0)
        for column in range(columns.shape[1]):
            last = columns[i, column]
            hashed = mix64(hashed ^ last)
        hashes[i] = hashed
        lasts[i] = last


@by_rows("uint64[::1], uint64[::1], uint32[::1], int64[::1], int64[::1]")
def _write_representatives(begin, end, hashes, lasts, rows, ends, representatives):
    """Find the first row of each hash and last word in each part, by a table of places that stays in a core's cache."""
    table = np.empty(4 * longest_row(ends, begin, end) + 2, np.uint32)
    for part in range(begin, end):
        start, size = ends[part], ends[part + 1] - ends[part]
        room = 2
        while room < 2 * size:
            room *= 2
        table[:room] = 0
        below = np.uint64(room - 1)
        for i in range(start, start + size):
            place, first = hashes[i] & below, i
            while table[place] != 0:
                other = start + np.int64(table[place]) - 1
                if hashes[other] == hashes[i] and lasts[other] == lasts[i]:
                    first = other
                    break
                place = (place + np.uint64(1)) & below
            if first == i:
                table[place] = i - start + 1
            representatives[rows[i]] = rows[first]


def cpu(words):
    """Find what `reference` finds. Rows are divided into parts by their hashes, and the table of a part fits a cache.

    Raises
    ------
    ResourceError
        If there are 2**32 - 1 rows or more.
    """
    check_rows(len(words), "words")
    columns = np.ascontiguousarray(words.reshape(len(words), -1 if words.ndim > 1 and len(words) else 1))
    if columns.shape[1] > 2:
        columns = np.stack([cpu(columns[:, :-1]).astype(np.uint64), columns[:, -1]], axis=1)
    hashes, lasts = np.empty(len(words), np.uint64), np.empty(len(words), np.uint64)
    _hash_rows(len(columns), columns, hashes, lasts)
    _, rows, *_ = in_parts(hashes, np.arange(len(words), dtype=np.uint32))
    hashes, lasts, ends, *_ = in_parts(hashes, lasts)
    representatives = np.empty(len(words), np.int64)
    _write_representatives(shares(ends, 64), hashes, lasts, rows, ends, representatives)
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
