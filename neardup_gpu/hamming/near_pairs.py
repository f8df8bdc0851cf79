"""All pairs of a set of fingerprints that differ in few bits."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from neardup_gpu.kernels import hamming as hamming_kernel
from neardup_gpu.kernels._launch import to_host
from neardup_gpu.kernels.hamming import NO_LIMIT

from .. import checks
from ..engine.choice import kernel
from ..engine.contract import Backend
from ..methods.table_design import TableDesign, settled
from .members import first_of_identical
from .sorted_runs import SortedRuns
from .values import Fingerprints, as_fingerprints

BUCKET_LIMIT, BUCKET_PROBE = 512, 32
"""The first BUCKET_LIMIT fingerprints of a bucket are compared all with all, later ones with the first BUCKET_PROBE."""


class NearPairs(NamedTuple):
    """Pairs of rows within a radius.

    Parameters
    ----------
    left : array of int64, shape (pairs,)
        The first row of each pair: left < right, in lexicographic order. Where identical fingerprints collapsed, there
        are the pairs of distinct fingerprints, by their first rows, and one pair from each repeat to its first row.
    right : array of int64, shape (pairs,)
        The second row of each pair.
    distance : array of uint8, shape (pairs,)
        Number of bits in which they differ.
    first : array of int64, shape (rows,)
        The row that stands for each row: the first one with the same fingerprint, or the row itself if nothing
        collapsed.
    num_large : int
        Number of buckets above the limit, over all tables.
    num_uncompared : int
        Number of pairs that these left out, over all tables. If both counts are 0, nothing is missing.
    crowded : array of bool, shape (rows,)
        Whether each row's fingerprint was in such a bucket of any table. What was left out are pairs of two such rows.
    design : TableDesign
        The design of the tables.

    Examples
    --------
    >>> from neardup_gpu import hamming
    >>> found = hamming.pairs([7, 2**40, 7, 5], 1)
    >>> found.left.tolist(), found.right.tolist(), found.first.tolist()
    ([0, 0], [2, 3], [0, 1, 0, 3])
    """

    left: np.ndarray
    right: np.ndarray
    distance: np.ndarray
    first: np.ndarray
    num_large: int
    num_uncompared: int
    crowded: np.ndarray
    design: TableDesign


def checked_limits(bucket_limit: Any, bucket_probe: Any) -> tuple[int, int]:
    """The bucket limits, checked, as integers."""
    return (
        checks.integer("bucket_limit", bucket_limit, 1, NO_LIMIT),
        checks.integer("bucket_probe", bucket_probe, 1, NO_LIMIT),
    )


def pairs(
    fingerprints: Fingerprints,
    radius: int,
    *,
    design: TableDesign | None = None,
    bucket_limit: int = BUCKET_LIMIT,
    bucket_probe: int = BUCKET_PROBE,
    collapse: bool = True,
    backend: Backend | None = None,
) -> NearPairs:
    """Find all pairs of a set that differ in at most `radius` bits.

    Tables are made one after another, so that memory does not grow with their number. Under one design, fingerprints
    added at the end never undo a pair; the cheapest design depends on how many there are.

    Parameters
    ----------
    fingerprints : array of uint64, shape (rows,) or (rows, 2)
        In priority order, the best first.
    radius : int
        Number of bits in which the two of a pair may differ.
    design : TableDesign, default None
        The design of the tables; the cheapest for the number of fingerprints, unless given.
    bucket_limit : int, default 512
        The first `bucket_limit` fingerprints of a bucket are compared all with all. Without effect where all
        fingerprints are compared with all.
    bucket_probe : int, default 32
        Each later fingerprint of the bucket is compared with the first `bucket_probe`.
    collapse : bool, default True
        Whether identical fingerprints are one entry of the tables: the result then grows with the repeats, not with the
        pairs of repeats. If False, they are rows like others, all of whose pairs are found, among the first
        `bucket_limit` rows of a bucket: for callers that look at each pair.
    backend : "reference", "cpu" or "gpu", default None
        Where to run; on a GPU if there is one, unless given.

    Returns
    -------
    NearPairs
        The pairs and their distances.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If the radius is impossible, `fingerprints` does not hold fingerprints, or another argument is not as
        described above.

    Examples
    --------
    >>> found = pairs([0b0111, 2**40, 0b0101], 1)
    >>> found.left, found.right, found.distance
    (array([0]), array([2]), array([1], dtype=uint8))
    """
    values = as_fingerprints(fingerprints, "fingerprints")
    radius = checks.integer("radius", radius, 0, 64 * values.ndim - 1)
    collapse = checks.flag("collapse", collapse)
    limits = checked_limits(bucket_limit, bucket_probe)
    return found_pairs(values, radius, limits, backend, design=design, collapse=collapse)


class _OfDistinct:
    """Adds pairs of distinct fingerprints to sorted runs, by the first row of each."""

    def __init__(self, found: SortedRuns, rows: np.ndarray) -> None:
        self._found, self._rows = found, rows.astype(np.uint64)

    def add(self, packed: Any, distance: Any = None) -> None:
        words = to_host(packed)
        left, right = words >> np.uint64(32), words & np.uint64(2**32 - 1)
        self._found.add(self._rows[left] << np.uint64(32) | self._rows[right])


def found_pairs(
    values: np.ndarray,
    radius: int,
    limits: tuple[int, int],
    backend: Backend | None,
    *,
    design: TableDesign | None = None,
    collapse: bool = True,
    runs: SortedRuns | None = None,
) -> NearPairs:
    """Find pairs like `pairs`. If `runs` are given, add the pairs to them, for more pairs than memory holds.

    Then the answer has everything but the pairs: `left`, `right` and `distance` are empty. The distance of a pair is
    `methods.simhash.distances` of its fingerprints.
    """
    design, limits = settled(values, radius, design, limits)
    first = first_of_identical(values, backend) if collapse else np.arange(len(values))
    is_first = first == np.arange(len(values))
    rows, repeats = np.flatnonzero(is_first), np.flatnonzero(~is_first)
    repeated = len(repeats) > 0
    compared = values[rows] if repeated else values, design.array, radius, *limits
    of_distinct: Any
    if runs is None or backend == "reference":
        left, right, distance, num_large, num_uncompared, of_distinct = kernel(hamming_kernel, backend)(*compared)
        columns = to_host(left), to_host(right), to_host(distance)
        if repeated:  # pairs of `rows`, and each repeat with its first row
            left, right, distance = columns
            left, right = np.concatenate([rows[left], first[repeats]]), np.concatenate([rows[right], repeats])
            order = np.lexsort((right, left))
            distance = np.concatenate([distance, np.zeros(len(repeats), np.uint8)])
            columns = left[order], right[order], distance[order]
        if runs is not None:
            runs.add(columns[0].astype(np.uint64) << np.uint64(32) | columns[1].astype(np.uint64))
    else:
        adding = _OfDistinct(runs, rows) if repeated else runs
        *_, num_large, num_uncompared, of_distinct = kernel(hamming_kernel, backend)(*compared, adding)
        runs.add(first[repeats].astype(np.uint64) << np.uint64(32) | repeats.astype(np.uint64))
    if runs is not None:
        columns = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.uint8)
    crowded = to_host(of_distinct)
    if repeated:
        crowded = np.zeros(len(values), bool)
        crowded[rows] = to_host(of_distinct)
        crowded = crowded[first]
    return NearPairs(*columns, first, int(num_large), int(num_uncompared), crowded, design)
