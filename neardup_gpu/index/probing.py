"""Look keys up in the tables of several segments at once, and look rows of a segment up in its own tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from neardup_gpu.kernels._probing import count_earlier, merge_runs, runs_of_rows, tables_with_keys, write_earlier_runs


class TableList(NamedTuple):
    """Key tables of several segments, as compiled code takes them: see `list_tables`.

    Parameters
    ----------
    addresses : array of int64, shape (segments, 4)
        Address of the keys, entries per table, address of the flags of their blocks, and number of blocks.
    arrays : sequence of (array, array)
        The arrays at these addresses, which stay in memory as long as the list does.
    """

    addresses: np.ndarray
    arrays: Sequence[tuple[np.ndarray, np.ndarray]]


def list_tables(arrays: Sequence[tuple[np.ndarray, np.ndarray]]) -> TableList:
    """Return a list of tables for `find_segments`.

    Parameters
    ----------
    arrays : sequence of (array of uint64, shape (k, entries), array of uint8)
        The ascending keys of each segment's tables, and for each of their blocks whether it was verified. The flags
        may change later. An empty array of flags means that the keys need no verification.
    """
    if not all(each.flags.c_contiguous for pair in arrays for each in pair):
        raise ValueError("tables in a list have to be contiguous")
    addresses = [(keys.ctypes.data, keys.shape[1], sound.ctypes.data, len(sound)) for keys, sound in arrays]
    return TableList(np.array(addresses, np.int64).reshape(-1, 4), arrays)


def find_segments(tables: TableList, query: np.ndarray, r: int) -> tuple[np.ndarray, np.ndarray]:
    """Find the segments whose tables have r keys of one query; no other segment can have a candidate.

    A look into one segment takes some microseconds. Most of them are spent on handing arrays to compiled code, and on
    waiting for memory. One call for all segments pays for both once.

    Parameters
    ----------
    tables : TableList
    query : array of uint64, shape (k,)
    r : int

    Returns
    -------
    found : array of bool, shape (segments,)
    unread : array of int64, shape (n, 2)
        Segment and block that have to be verified before the answer is used; a pair may be listed twice.
    """
    number = len(tables.addresses)
    found, unread = np.zeros(number, np.bool_), np.empty((2 * number * len(query), 2), np.int64)
    size = tables_with_keys(tables.addresses, query, np.int64(r), found, unread)
    return found, unread[:size]


class EarlierRuns(NamedTuple):
    """For each row of some tables, the runs of earlier rows with the same keys: see `find_earlier_runs`.

    Parameters
    ----------
    runs : array of int64, shape (runs, 3)
        Table, first place and the place after the last one, row by row.
    ends : array of int64, shape (rows,)
        Row i has the runs from `ends[i - 1]` to `ends[i]`.
    """

    runs: np.ndarray
    ends: np.ndarray


def find_earlier_runs(keys: np.ndarray, rows: np.ndarray, number: int) -> EarlierRuns:
    """Find the runs of earlier rows that have a key in common with each of `number` rows.

    `keys` and `rows` are the tables, as in `kernels/probe.py`.
    """
    tables, entries = keys.shape
    sizes = np.zeros((tables, max(1, min(64, entries // 4096))), np.int64)
    count_earlier(sizes.size, keys, rows, sizes)
    ends = np.zeros(number, np.int64)
    if not sizes.any():
        return EarlierRuns(np.empty((0, 3), np.int64), ends)
    return EarlierRuns(write_earlier_runs(keys, rows, int(sizes.sum()), ends), ends)


def find_earlier_rows(
    rows: np.ndarray,
    earlier: EarlierRuns,
    wanted: np.ndarray,
    r: int,
    first: np.ndarray,
    most: np.ndarray,
    allowed: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Find, for each row of `wanted`, the earlier rows that share r keys with it.

    `rows`, `r`, `first`, `most`, `allowed` and the two arrays that are returned are as in `kernels/probe.py`.
    """
    runs, ends = runs_of_rows(rows, *earlier, wanted, first)
    return merge_runs(rows, runs, ends, np.int64(r), most, allowed)
