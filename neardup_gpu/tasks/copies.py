"""The stage "copies": the first document by priority of each group that counts as one.

NUMBER-slices    row and representative's rank of each copy, by the slice of the copy
NUMBER-ranges    rank and representative's rank of each copy, by the range of the representative
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from neardup_gpu.kernels import identical
from neardup_gpu.kernels._gf2 import mix64_all

from ..data import numpy_of
from ..engine.arrays import concat_and_clear
from ..engine.choice import kernel
from ..stages.sketching import WORDLESS
from ..store.exchange import num_rows, read_partition
from .columns import rows_of
from .layout import Layout
from .sizes import Counts, Exchange, Shape
from .work import WAITING_BESIDE, Files

BY_SLICE = pa.schema([("row", pa.int64()), ("representative", pa.int64())])
BY_RANGE = pa.schema([("rank", pa.int64()), ("representative", pa.int64())])

HASHES = ("high", "low", "row")

ROW_BYTES = 256
"""Memory of a row while it is compared: its words, its rank, and copies of them."""


def written(c: Counts, shape: Shape) -> list[Exchange]:
    """Return the sizes of the files that the stage writes."""
    return [
        Exchange.of("copies slices", BY_SLICE, c.copies, shape.partitions, shape.slices, WAITING_BESIDE),
        Exchange.of("copies ranges", BY_RANGE, c.copies, shape.partitions, shape.partitions, WAITING_BESIDE),
    ]


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
        `copies`: the number of copies; `wordless`: the number of copies without words.

    Notes
    -----
    Memory: 256 bytes per row, up to three eighths of the task's memory. Rows that do not fit are divided. The rows of
    one hash are read twice, a part at a time, so that their number does not matter.
    """
    most = max(1, files.shared.task_memory // (4 * ROW_BYTES))
    parts = -(-num_rows(files.place, names, files.number) // most)
    found = wordless = 0
    with (
        files.exchange("slices", BY_SLICE, layout.num_slices, WAITING_BESIDE) as by_slice,
        files.exchange("ranges", BY_RANGE, layout.partitions, WAITING_BESIDE) as by_range,
    ):
        for part in range(parts):
            for words, ranks, slices, rows, representative in _represented(files, names, layout, part, parts, most):
                copied = np.flatnonzero(representative != ranks)
                found += len(copied)
                wordless += int(np.count_nonzero(words[copied, 1] == WORDLESS))
                of = {"representative": representative[copied]}
                by_slice.add(slices[copied], {"row": rows[copied], **of})
                by_range.add(layout.range_of(of["representative"]), {"rank": ranks[copied], **of})
    return {"copies": found, "wordless": wordless}


def _represented(
    files: Files, names: list[str], layout: Layout, part: int, parts: int, most: int
) -> Iterator[tuple[np.ndarray, ...]]:
    """Yield (words, ranks, slices, rows, ranks of their representatives) of the rows of a part, about 1.5 `most` at a
    time."""
    read = partial(_blocks, files, names, layout, part, parts, most + most // 2)
    words, least, number = np.empty((0, 2), np.uint64), np.empty(0, np.int64), 0
    for some, ranks, *where in read():  # the distinct words so far, and the least rank of each
        words, least = np.concatenate([words, some]), np.concatenate([least, ranks])
        first = _first(words, files)
        np.minimum.at(least, first, least.copy())
        number += 1
        if number == 1:
            block = some, ranks, *where, least[first]
        distinct = np.flatnonzero(first == np.arange(len(first)))
        words, least = words[distinct], least[distinct]
    if number == 1:
        yield block
        return
    for some, ranks, *where in read():
        first = _first(np.concatenate([words, some]), files)[len(words) :]
        yield some, ranks, *where, least[first]


def _first(words: np.ndarray, files: Files) -> np.ndarray:
    return kernel(identical, files.shared.engine.resolve())(words)


def _blocks(
    files: Files, names: list[str], layout: Layout, part: int, parts: int, most: int
) -> Iterator[list[np.ndarray]]:
    """Yield (words, ranks, slices, rows) of the rows of a part, about `most` rows at a time."""
    held: list[tuple[np.ndarray, ...]] = []
    number = 0
    for slice, name in enumerate(names):
        of_slice = layout.ranks_of(files, slice)
        for high, low, some in rows_of(files.place, [name], files.number, HASHES):
            both = np.stack([high, low], axis=1)
            if parts > 1:  # by bits that the partition did not take
                mine = mix64_all(high) % np.uint64(parts) == part
                both, some = both[mine], some[mine]
            held.append((both, of_slice[some], np.full(len(some), slice), some))
            number += len(some)
            if number >= most:
                yield _joined(held)
                number = 0
    if number:
        yield _joined(held)


def _joined(held: list[tuple[np.ndarray, ...]]) -> list[np.ndarray]:
    """The columns of some blocks, whose list is cleared."""
    columns = [list(arrays) for arrays in zip(*held, strict=True)]
    held.clear()
    return [concat_and_clear(arrays, dtype=np.int64) for arrays in columns]


def stand_alone(files: Files, number: int, num_documents: int, names: list[str]) -> np.ndarray:
    """Which rows of a slice no other stands for: bool; `names` are the files of copies by slices."""
    alone = np.ones(num_documents, bool)
    for batch in read_partition(files.place, names, number, ["row"]):
        alone[numpy_of(batch.column("row"))] = False
    return alone
