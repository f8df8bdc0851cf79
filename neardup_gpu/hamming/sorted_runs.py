"""Pairs of fingerprints that are more than memory holds: sorted, written to a temporary file in runs, and merged."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from neardup_gpu.kernels._launch import to_host
from neardup_gpu.kernels._sort import sort_unique

from ..data import Ragged
from ..store.spool import Spool

HELD = 1 << 22
"""Pairs that are held, about, before they are written, and that are merged at a time: 8 bytes each, and 8 to sort."""

BLOCK = 1 << 12
"""Pairs of a run that are read at a time."""


class SortedRuns:
    """Distinct pairs of rows, which are added in any order and as often as they are found, and read in order.

    Parameters
    ----------
    num_rows : int
    spool : Spool
        Takes what is not held: 8 bytes for each pair that is added, less repeats among those that are written together.
    """

    def __init__(self, num_rows: int, spool: Spool) -> None:
        self._bits = max(1, (num_rows - 1).bit_length())
        self._spool = spool
        self._waiting: list[np.ndarray] = []
        self._held = 0
        self._first: list[np.ndarray] = []  # the first word of each block
        self._last: list[np.ndarray] = []

    def add(self, packed: Any, distance: Any = None) -> None:
        """Add pairs, first row << 32 | second row; distances are not kept."""
        words = to_host(packed)
        low = words & np.uint64(2**32 - 1)
        self._waiting.append((words >> np.uint64(32) << np.uint64(self._bits)) | low)
        self._held += len(words)
        if self._held > HELD:
            self._write()

    def _sorted(self) -> np.ndarray:
        words = np.concatenate([np.empty(0, np.uint64), *self._waiting])
        self._waiting, self._held = [], 0
        return sort_unique(words, 2 * self._bits)

    def _write(self) -> None:
        words = self._sorted()
        bounds = np.append(np.arange(0, len(words), BLOCK), len(words))
        self._first.append(words[bounds[:-1]])
        self._last.append(words[bounds[1:] - 1])
        self._spool.append(Ragged(words, bounds))

    def read(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield (left, right) of all pairs, each once, in lexicographic order: int64; only once."""
        if not self._first:
            yield self._rows(self._sorted())
            return
        if self._held:
            self._write()
        first, last = np.concatenate(self._first), np.concatenate(self._last)
        starts = np.sort(first)[:: max(1, HELD // BLOCK)]
        for start, until in pairwise(np.append(starts, np.uint64(2**64 - 1))):  # which no pair of two rows is
            words = self._spool.gather(np.flatnonzero((last >= start) & (first < until))).values
            yield self._rows(sort_unique(words[(words >= start) & (words < until)], 2 * self._bits))

    def _rows(self, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        right = words & np.uint64((1 << self._bits) - 1)
        return (words >> np.uint64(self._bits)).view(np.int64), right.view(np.int64)
