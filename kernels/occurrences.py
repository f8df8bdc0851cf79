"""Occurrences: how often each value occurs in all; of the distinct values of rows, in how many rows.

Source: counting; Manning, Raghavan and Schütze 2008 (Introduction to Information Retrieval), 6.2, for the document
frequency, which is the occurrences of each document's distinct features.
Cost: on the CPU one look-up in a hash table a value, and a sort of the distinct ones; on a GPU a sort of all.
"""

from collections import Counter

import numpy as np

from . import counts as counts_of_rows
from ._launch import namespace, on_device
from ._sort import firsts_of, order_of


def reference(values):
    """Count the occurrences of values, straight from the definition.

    Parameters
    ----------
    values : array of uint64, shape (n,)

    Returns
    -------
    distinct : array of uint64, shape (m,)
        Ascending.
    counts : array of int64, shape (m,)
    """
    found = Counter(values.tolist())
    return np.array(sorted(found), np.uint64), np.array([found[x] for x in sorted(found)], np.int64)


def cpu(values):
    """As `reference`; counted in a hash table as one row, then the distinct values are sorted."""
    distinct, _, counts = counts_of_rows.cpu(values, np.array([0, len(values)]))
    order = np.argsort(distinct)
    return distinct[order], counts[order]


def gpu(values):
    """As `reference`; by sorting all. The host waits once, for the number of distinct values."""
    xp = namespace()
    values = on_device(values)
    if len(values) == 0:
        return values, xp.empty(0, np.int64)
    order, begins = order_of(values)
    numbers, firsts = firsts_of(begins)
    size = int(numbers[-1])
    firsts = xp.append(firsts[:size], xp.full(1, len(values), np.int64))
    return values[order[firsts[:-1]]], xp.diff(firsts)


def merge(tables):
    """The occurrences of batches, at least one, as those of all their values.

    >>> one = np.array([3, 5], np.uint64), np.array([1, 2])
    >>> merge([one, (np.array([5], np.uint64), np.array([1]))])
    (array([3, 5], dtype=uint64), array([1, 3]))
    """
    values, counts = (np.concatenate(arrays) for arrays in zip(*tables, strict=True))
    order = np.argsort(values, kind="stable")
    distinct, first = np.unique(values[order], return_index=True)
    return distinct, np.add.reduceat(counts[order], first) if len(first) else counts
