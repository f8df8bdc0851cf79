"""Which rows have which of the distinct fingerprints of a set, and parts of what they expand to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from neardup_gpu.kernels import identical
from neardup_gpu.kernels._launch import to_host

from ..engine.choice import kernel
from ..engine.pieces import runs_within
from ..records import dataclass
from ..store.arrays import ArraysFile

PART = 1 << 22
"""The most matches that identical fingerprints become at once; a single row or query may have more."""

FIRST = 1 << 12
"""Fingerprints that are looked up at first, before it is known how many matches each has."""


def first_of_identical(values: np.ndarray, backend: str | None) -> np.ndarray:
    """The first row that has the same fingerprint as each row: int64, shape (rows,)."""
    return to_host(kernel(identical, backend)(values))


@dataclass(frozen=True)
class Members:
    """Which rows have each distinct fingerprint; distinct fingerprints are numbered in the order of their first rows.

    Parameters
    ----------
    offsets : array of int64, shape (distinct + 1,)
    rows : array of uint32, shape (rows,)
        Fingerprint number i is that of the rows rows[offsets[i]:offsets[i + 1]], which are in order.
    file : ArraysFile, optional
        The file that both are mapped from. Parts are compared with its checksums before they are read.
    """

    offsets: np.ndarray
    rows: np.ndarray
    file: ArraysFile | None = None

    NAMES = ("member_offsets", "members")
    """The names of both arrays in a file."""

    @classmethod
    def of(cls, values: np.ndarray, backend: str | None) -> tuple[np.ndarray, Members | None]:
        """The distinct fingerprints and their members; if all are distinct, `values` and None."""
        first = first_of_identical(values, backend)
        rows = np.flatnonzero(first == np.arange(len(first)))
        if len(rows) == len(first):
            return values, None
        members = np.argsort(first, kind="stable")
        offsets = np.append(np.searchsorted(first[members], rows), len(first))
        return np.ascontiguousarray(values[rows]), cls(offsets, members.astype(np.uint32))

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """Both arrays by their names in a file."""
        return dict(zip(self.NAMES, (self.offsets, self.rows), strict=True))

    def sizes(self, numbers: np.ndarray) -> np.ndarray:
        """Number of rows that have each of some distinct fingerprints.

        Raises
        ------
        DamagedError
            If the file that they are mapped from is damaged.
        """
        if self.file is not None:
            self.file.verify_rows(*self.NAMES, numbers)
        return self.offsets[numbers + 1] - self.offsets[numbers]

    def expand(self, numbers: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """List the first `sizes` rows of each fingerprint, as (place in `numbers`, row): int64.

        Only numbers that were given to `sizes` before may be given here.
        """
        if (sizes == 1).all():
            return np.arange(len(numbers)), self._rows(self.offsets[numbers])
        ends = np.cumsum(sizes)
        places = np.arange(ends[-1] if len(ends) else 0) + np.repeat(self.offsets[numbers] - ends + sizes, sizes)
        return np.repeat(np.arange(len(numbers)), sizes), self._rows(places)

    def _rows(self, places: np.ndarray) -> np.ndarray:
        return self.rows[places].astype(np.int64)

    def fit(self, num_rows: int) -> bool:
        """Whether the arrays have the dtypes and shapes that members of `num_rows` rows have."""
        types = self.offsets.dtype == np.int64 and self.rows.dtype == np.uint32
        return types and self.offsets.ndim == 1 and self.rows.shape == (num_rows,)


def in_parts(probe: Callable[[np.ndarray], Any], values: np.ndarray) -> Iterator[tuple[int, Any]]:
    """Look up some values at a time, so that each part finds about `PART` matches; there is at least one part.

    Parameters
    ----------
    probe : callable
        Takes fingerprints, and returns a tuple of arrays, with an element for each match.
    values : array of uint64

    Yields
    ------
    int
        The number of the first fingerprint of the part.
    tuple of arrays
        What `probe` returned for the part.
    """
    begin, number = 0, FIRST
    while True:
        found = probe(values[begin : begin + number])
        yield begin, found
        begin += number
        if begin >= len(values):
            return
        number = max(1, min(4 * number, number * PART // max(1, len(found[0]))))


def slices(owners: np.ndarray, sizes: np.ndarray, most: int | None = None) -> Iterator[slice]:
    """Successive slices whose sizes sum to at most `most`, or more for a single owner, who is never divided.

    Parameters
    ----------
    owners : array, in order
        Equal neighbours have the same owner.
    sizes : array of int64, of the same length
    most : int, optional
        PART unless given.

    Yields
    ------
    slice
        One where there are no owners.
    """
    most = PART if most is None else most
    ends = np.flatnonzero(np.append(owners[1:] != owners[:-1], True)) + 1 if len(owners) else np.zeros(1, np.int64)
    bounds = np.append(0, ends)
    for first, last in runs_within(np.cumsum(np.append(0, sizes))[bounds], most):
        yield slice(int(bounds[first]), int(bounds[last]))
