"""Postings that wait to be sorted: in memory up to a bound, beyond it in temporary files, by slices of shingles."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..data import Ragged
from .spool import Spool, host

SLICE_BITS = 8
"""Postings in files are divided by this number of highest bits of their shingles."""

SORTED_BYTES = 48
"""Memory that a posting takes at most while runs are made of it."""


class Postings:
    """Pairs of words, shingle and entry, in the order in which they are added.

    Parameters
    ----------
    folder : path
        Where files go.
    num_bytes : int
        Memory that one part of them may take while runs are made of it.
    """

    def __init__(self, folder: Path | str, num_bytes: int) -> None:
        self.folder, self._most = folder, max(1, num_bytes // SORTED_BYTES)
        self._held: list[tuple[Any, Any]] = []
        self._files: tuple[Spool, Spool] | None = None
        self._counts = np.zeros(1 << SLICE_BITS, np.int64)
        self.num_postings = 0

    def __enter__(self) -> Postings:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.clear()
        for file in self._files or ():
            file.__exit__()

    def add(self, shingles: Any, entries: Any) -> None:
        """Add postings; arrays of uint64."""
        self.num_postings += len(shingles)
        self._held.append((shingles, entries))
        if self._files is None and self.num_postings > self._most:
            with contextlib.ExitStack() as stack:
                self._files = stack.enter_context(Spool(self.folder)), stack.enter_context(Spool(self.folder))
                stack.pop_all()
        if self._files is not None:
            for held in self._held:
                self._write(*map(host, held))
            self._held.clear()

    def _write(self, shingles: np.ndarray, entries: np.ndarray) -> None:
        assert self._files is not None
        slices = (shingles >> np.uint64(64 - SLICE_BITS)).astype(np.uint8)
        order = np.argsort(slices, kind="stable")
        counts = np.bincount(slices, minlength=1 << SLICE_BITS)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        self._counts += counts
        for file, values in zip(self._files, (shingles, entries), strict=True):
            file.append(Ragged(values[order], offsets))

    @property
    def divided(self) -> bool:
        """Whether there are several parts."""
        return self._files is not None

    def parts(self) -> Iterator[tuple[list[Any], list[Any]]]:
        """Lists of shingles and of entries whose arrays nobody else holds: all postings of a shingle in one."""
        if self._files is None:
            shingles, entries = [held[0] for held in self._held], [held[1] for held in self._held]
            self._held.clear()
            yield shingles, entries
            return
        num_slices = 1 << SLICE_BITS
        writes = (len(self._files[0].offsets) - 1) // num_slices
        numbers = np.cumsum(self._counts) // self._most
        bounds = [0, *(1 + np.flatnonzero(np.diff(numbers))).tolist(), num_slices]
        for first, last in zip(bounds[:-1], bounds[1:], strict=True):
            rows = (np.arange(writes)[:, None] * num_slices + np.arange(first, last)).ravel()
            yield [self._files[0].gather(rows).values], [self._files[1].gather(rows).values]
