"""The stage "copies": the first document by priority of each group that counts as one.

NUMBER-slices    row and representative's rank of each copy, by the slice of the copy
NUMBER-ranges    rank and representative's rank of each copy, by the range of the representative
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from neardup_gpu.kernels import identical

from ..data import numpy_of
from ..engine.choice import kernel
from ..store.exchange import num_rows, read_partition
from .columns import mixed
from .layout import Layout
from .work import Files

BY_SLICE = pa.schema([("row", pa.int64()), ("representative", pa.int64())])
BY_RANGE = pa.schema([("rank", pa.int64()), ("representative", pa.int64())])

ROW_BYTES = 96
"""What a row takes while it is compared: words, ranks, and copies of them."""


def copies(files: Files, names: list[str], layout: Layout) -> dict[str, Any]:
    """Find the representatives of a range of hashes, and name them to all others.

    Parameters
    ----------
    names : list of str
        The file of each slice with words and rows, see `sketching`.
    layout : Layout

    Returns
    -------
    dict
        `copies`, their number, and `copies_of_input`, that of those that are not of a reference set.

    Notes
    -----
    Memory: 96 bytes a row, in parts that fit, unless one hash has more rows than that.
    """
    most = max(1, files.shared.task_memory // (4 * ROW_BYTES))
    parts = -(-num_rows(files.place, names, files.number) // most)
    found = of_input = 0
    with (
        files.exchange("slices", BY_SLICE, layout.num_slices) as by_slice,
        files.exchange("ranges", BY_RANGE, layout.partitions) as by_range,
    ):
        for part in range(parts):
            words, ranks, slices, rows = _rows(files, names, layout, part, parts)
            first = _first(words, files)
            least = ranks.copy()
            np.minimum.at(least, first, ranks)
            representative = least[first]
            copied = np.flatnonzero(representative != ranks)
            found += len(copied)
            of_input += int((ranks[copied] >= layout.num_known).sum())
            of = {"representative": representative[copied]}
            by_slice.add(slices[copied], {"row": rows[copied], **of})
            by_range.add(layout.range_of(of["representative"]), {"rank": ranks[copied], **of})
    return {"copies": found, "copies_of_input": of_input}


def _first(words: np.ndarray, files: Files) -> np.ndarray:
    backend = files.shared.engine.backend  # which is decided, and may be none that this process can run on
    return kernel(identical, "cpu" if backend == "gpu" else backend)(words)


def _rows(
    files: Files, names: list[str], layout: Layout, part: int, parts: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(words, ranks, slices, rows) of the rows of a part."""
    words, ranks, slices, rows = [np.empty((0, 2), np.uint64)], *([np.empty(0, np.int64)] for _ in range(3))
    for slice, name in enumerate(names):
        of_slice = layout.ranks_of(files, slice)
        for batch in read_partition(files.place, [name], files.number):
            high, low, some = (numpy_of(batch.column(column)) for column in ("high", "low", "row"))
            both = np.stack([high, low], axis=1)
            if parts > 1:  # by bits that the partition did not take
                mine = mixed(high) % np.uint64(parts) == part
                both, some = both[mine], some[mine]
            words.append(both)
            ranks.append(of_slice[some])
            slices.append(np.full(len(some), slice))
            rows.append(some)
    return np.concatenate(words), np.concatenate(ranks), np.concatenate(slices), np.concatenate(rows)


def stand_alone(files: Files, number: int, num_documents: int, names: list[str]) -> np.ndarray:
    """Which rows of a slice no other stands for: bool; `names` are the files of copies by slices."""
    alone = np.ones(num_documents, bool)
    for batch in read_partition(files.place, names, number, ["row"]):
        alone[numpy_of(batch.column("row"))] = False
    return alone
