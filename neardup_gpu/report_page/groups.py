"""Groups of near-duplicates: all of them as arrays, and those that a page lists."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..data import bools, numpy_of
from .run import Run
from .texts import Pair

MEMBERS = 6
"""Removed documents that a page names of a group: those that agree least with the kept one."""


class GroupTable(NamedTuple):
    """All groups, in the order of their first removed document.

    Parameters
    ----------
    kept : pyarrow.Array
        The id of the kept document.
    in_reference : array of bool
        Whether it is of the reference set.
    sizes : array of int64
        Removed documents, and the kept one.
    least, most : arrays of float64
        Bounds of what the removed ones are worth; NaN where nothing was verified.
    rows : array of int64
        Rows of removed documents, by group, those that agree least first.
    offsets : array of int64, shape (groups + 1,)
        Where each group begins in `rows`.
    """

    kept: pa.Array
    in_reference: np.ndarray
    sizes: np.ndarray
    least: np.ndarray
    most: np.ndarray
    rows: np.ndarray
    offsets: np.ndarray

    def __len__(self) -> int:
        return len(self.sizes)

    def members(self, group: int, number: int = MEMBERS) -> list[int]:
        """Rows of the first removed documents of a group."""
        first, last = self.offsets[group], self.offsets[group + 1]
        return self.rows[first : min(last, first + number)].tolist()

    def pair(self, group: int, row: int) -> Pair:
        """Return the kept document of a group and a removed one, which is in this row of the documents."""
        return Pair(self.kept[group].as_py(), row, bool(self.in_reference[group]))


def groups_of(run: Run) -> GroupTable:
    """All groups of a run."""
    documents = run.documents
    removed = np.flatnonzero(~bools(documents["kept"].combine_chunks()))
    gone = documents.take(pa.array(removed))
    known = np.zeros(len(gone), bool)
    if "in_reference" in gone.column_names and len(gone):
        known = bools(gone["in_reference"].combine_chunks())
    coded = gone["group"].combine_chunks().dictionary_encode()
    codes = numpy_of(coded.indices).astype(np.int64) * 2 + known
    _, first, codes = np.unique(codes, return_index=True, return_inverse=True)
    place = np.argsort(np.argsort(first))  # by the first removed document
    first, codes = np.sort(first), place[codes] if len(first) else codes
    worth = worth_of(gone, run.column)
    agreeing = worth if "distance" not in gone.column_names else -numpy_of(gone["distance"].fill_null(0)).astype(float)
    order = np.lexsort((removed, agreeing, codes))
    offsets = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=len(first)))])
    starts = offsets[:-1]
    least = np.fmin.reduceat(worth[order], starts) if len(first) else np.empty(0)
    most = np.fmax.reduceat(worth[order], starts) if len(first) else np.empty(0)
    kept = gone["group"].combine_chunks().take(pa.array(first))
    return GroupTable(kept, known[first], np.diff(offsets) + 1, least, most, removed[order], offsets)


def worth_of(table: pa.Table, column: str) -> np.ndarray:
    """Return a column of numbers, with NaN for null."""
    return numpy_of(pc.fill_null(table[column].cast(pa.float64()), float("nan")))


def chosen(groups: GroupTable, number: int) -> tuple[np.ndarray, str | None]:
    """Groups that are listed, and how they were chosen; None where all are.

    The first 40% are the largest, 30% those with the least resemblance, and the rest a random sample, always the same.
    Whoever takes the first ones of the answer has them in these shares.
    """
    orders = (
        np.argsort(-groups.sizes, kind="stable"),
        np.argsort(groups.least, kind="stable"),  # NaN comes last
        np.random.default_rng(1).permutation(len(groups)),
    )
    by_size, by_worth, at_random = (iter(order.tolist()) for order in orders)
    found: dict[int, None] = {}
    while len(found) < min(number, len(groups)):
        for turn in [by_size] * 4 + [by_worth] * 3 + [at_random] * 3:
            new = next((group for group in turn if group not in found), None)
            if new is not None and len(found) < number:
                found[new] = None
    told = "the largest, those that agree least with their kept document, and a random sample"
    return np.array(list(found), np.int64), told if number < len(groups) else None
