"""Numbers, ranks and ranges: how tasks name documents.

A document's number is its place among all rows, in the order of slices, a reference set before the input. Its rank is
its place by priority, a reference set before the input again. Ranks are divided into ranges, one for each partition.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from neardup_gpu.kernels._cached import cached_property

from ..records import dataclass
from ..store.exchange import read_arrays
from .work import Files, file_name

RANKS = pa.schema([("rank", pa.int64())])
NUMBERS = pa.schema([("number", pa.int64())])


@dataclass(frozen=True)
class Layout:
    """Say where documents lie.

    Parameters
    ----------
    starts : tuple of int
        The first number of each slice, and the number of all documents.
    num_known : int
        Documents of the reference set.
    partitions : int
        Ranges of ranks.
    ordered : bool
        Whether ranks are numbers: the first in input order come first.
    """

    starts: tuple[int, ...]
    num_known: int
    partitions: int
    ordered: bool

    @property
    def num_rows(self) -> int:
        return self.starts[-1]

    @property
    def num_slices(self) -> int:
        return len(self.starts) - 1

    @cached_property
    def bounds(self) -> np.ndarray:
        """The first rank of each range, and the number of all: int64."""
        return np.array([self.num_rows * i // self.partitions for i in range(self.partitions + 1)], np.int64)

    def range_of(self, ranks: np.ndarray) -> np.ndarray:
        """The range in which each rank lies."""
        return np.searchsorted(self.bounds, ranks, side="right") - 1

    def slice_of(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The slice of each number, and the row in it."""
        starts = np.array(self.starts, np.int64)
        slices = np.searchsorted(starts, numbers, side="right") - 1
        return slices, numbers - starts[slices]

    def ranks_of(self, files: Files, number: int) -> np.ndarray:
        """The rank of each row of a slice: int64."""
        if self.ordered:
            return np.arange(self.starts[number], self.starts[number + 1])
        return read_arrays(files.place, [file_name("rows", number, "ranks")], 0, RANKS)["rank"]

    def numbers_of(self, files: Files, ranks: np.ndarray) -> np.ndarray:
        """The number of each rank: int64. Unless ranks are numbers, the file of each range that is needed is read."""
        if self.ordered:
            return ranks
        found, ranges = np.empty(len(ranks), np.int64), self.range_of(ranks)
        for number in np.unique(ranges).tolist():
            some = ranges == number
            of_range = read_arrays(files.place, [file_name("rank", number, "numbers")], 0, NUMBERS)["number"]
            found[some] = of_range[ranks[some] - self.bounds[number]]
        return found
