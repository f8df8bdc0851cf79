"""The stages that rank documents by a priority other than their order: a sort by ranges.

    sample    of a slice: some of its rows, as `choose` wants them
    choose    one task: rows that divide all into parts of about one size
    spread    of a slice: its rows, by the parts
    order     of a part: its rows in order; their ranks by slice, and their numbers by range of ranks
    rows      of a slice: the rank of each row
    rank      of a range: the number of each rank

A part is sorted as the whole is in memory, and rows that are equal in all else are in the order of their numbers, so the
parts do not show in the result.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ..data import arrow
from ..decisions import keep_column, rows_by_priority
from ..store.exchange import read_arrays, read_partition
from .columns import load, load_column, save, type_named
from .layout import Layout
from .sketching import ROWS
from .work import Files, file_name

SAMPLED = 1 << 16
"""Rows that are sampled together to divide all: parts differ by a percent or so."""

RANKED = pa.schema([("row", pa.int64()), ("rank", pa.int64())])
NUMBERED = pa.schema([("rank", pa.int64()), ("number", pa.int64())])


def ranks_are_numbers(recipe: Any) -> bool:
    """Whether documents in the order of the input are in the order of their priority."""
    return recipe.keep == "first" and not recipe.method.measure.directed


def sample(files: Files, number: int, layout: Layout, kind: str) -> None:
    """Save evenly spaced rows of a slice."""
    rows = _Rows.of_slice(files, number, layout, kind)
    most = max(1, SAMPLED // layout.num_slices)
    rows.take(np.arange(0, len(rows), -(-len(rows) // most) or 1)).save(files, "sample")


def choose(files: Files, layout: Layout, kind: str) -> None:
    """Save the rows that divide all into a part for each partition."""
    names = [file_name("sample", number, "sample") for number in _input(layout)]
    rows = _Rows.load(files, names, kind)
    order = rows.order(files)
    cuts = [len(order) * part // layout.partitions for part in range(1, layout.partitions)]
    rows.take(order[cuts] if len(order) else order).save(files, "cuts")


def spread(files: Files, number: int, layout: Layout, kind: str) -> dict[str, Any]:
    """Write the rows of a slice by parts; `rows` says how many each has."""
    cuts = _Rows.load(files, [file_name("choose", 0, "cuts")], kind)
    rows = _Rows.of_slice(files, number, layout, kind)
    both = cuts.and_(rows)
    by_number = np.argsort(both.numbers, kind="stable")  # a row that divides comes before itself
    order = by_number[both.take(by_number).order(files)]
    is_cut = order < len(cuts)
    part = np.cumsum(is_cut)[~is_cut]
    mine = order[~is_cut] - len(cuts)
    with files.exchange("parts", rows.schema, layout.partitions) as writer:
        writer.add(part, rows.take(mine).columns)
    return {"rows": np.bincount(part, minlength=layout.partitions).tolist()}


def order(files: Files, first: int, layout: Layout, kind: str) -> None:
    """Rank the rows of a part, from rank `first` on."""
    names = [file_name("spread", number, "parts") for number in _input(layout)]
    rows = _Rows.load(files, names, kind, files.number)
    numbers = rows.numbers[rows.order(files)]
    ranks = np.arange(first, first + len(numbers))
    slices, places = layout.slice_of(numbers)
    with files.exchange("slices", RANKED, layout.num_slices) as by_slice:
        by_slice.add(slices, {"row": places, "rank": ranks})
    with files.exchange("ranges", NUMBERED, layout.partitions) as by_range:
        by_range.add(layout.range_of(ranks), {"rank": ranks, "number": numbers})


def rows(files: Files, layout: Layout) -> None:
    """Save the rank of each row of a slice; those of a reference set are their numbers."""
    first, last = layout.starts[files.number], layout.starts[files.number + 1]
    ranks = np.arange(first, last)
    names = [file_name("order", part, "slices") for part in range(layout.partitions)]
    for batch in read_partition(files.place, names, files.number):
        ranks[batch.column("row").to_numpy()] = batch.column("rank").to_numpy()
    save(files, "ranks", {"rank": ranks})


def rank(files: Files, layout: Layout) -> None:
    """Save the number of each rank of a range."""
    first, last = layout.bounds[files.number], layout.bounds[files.number + 1]
    numbers = np.arange(first, last)
    names = [file_name("order", part, "ranges") for part in range(layout.partitions)]
    for batch in read_partition(files.place, names, files.number):
        numbers[batch.column("rank").to_numpy() - first] = batch.column("number").to_numpy()
    save(files, "numbers", {"number": numbers})


def _input(layout: Layout) -> range:
    """The slices of the input."""
    return range(int(np.searchsorted(layout.starts, layout.num_known, side="left")), layout.num_slices)


class _Rows:
    """Rows with what their priority depends on."""

    def __init__(self, numbers: np.ndarray, num_tokens: np.ndarray, size: np.ndarray, column: pa.Array | None) -> None:
        self.numbers, self.num_tokens, self.size, self.column = numbers, num_tokens, size, column

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def columns(self) -> dict[str, Any]:
        plain = {"number": self.numbers, "num_tokens": self.num_tokens, "size": self.size}
        return plain if self.column is None else {**plain, "column": self.column}

    @property
    def schema(self) -> pa.Schema:
        kinds = [(name, pa.int64()) for name in ("number", "num_tokens", "size")]
        return pa.schema(kinds if self.column is None else [*kinds, ("column", self.column.type)])

    @classmethod
    def of_slice(cls, files: Files, number: int, layout: Layout, kind: str) -> _Rows:
        """All rows of a slice; `kind` is the name of the column's type."""
        plain = load(files.place, file_name("sketch", number, "rows"), ROWS)
        column = None
        if keep_column(files.shared.recipe.keep)[0] is not None:
            name = file_name("sketch", number, "column")
            column = load_column(files.place, [name], 0, "column", type_named(kind))
        numbers = layout.starts[number] + np.arange(len(plain["size"]))
        return cls(numbers, plain["num_tokens"], plain["size"], column)

    @classmethod
    def load(cls, files: Files, names: list[str], kind: str, partition: int = 0) -> _Rows:
        """Rows of some files."""
        plain = {name: pa.int64() for name in ("number", "num_tokens", "size")}
        found = read_arrays(files.place, names, partition, pa.schema(list(plain.items())))
        column = None
        if keep_column(files.shared.recipe.keep)[0] is not None:
            column = load_column(files.place, names, partition, "column", type_named(kind))
        return cls(found["number"], found["num_tokens"], found["size"], column)

    def take(self, rows: np.ndarray) -> _Rows:
        column = None if self.column is None else self.column.take(arrow(rows))
        return _Rows(self.numbers[rows], self.num_tokens[rows], self.size[rows], column)

    def and_(self, others: _Rows) -> _Rows:
        column = None
        if self.column is not None and others.column is not None:
            column = pa.concat_arrays([self.column, others.column])
        arrays = zip(
            (self.numbers, self.num_tokens, self.size), (others.numbers, others.num_tokens, others.size), strict=True
        )
        return _Rows(*(np.concatenate(each) for each in arrays), column)

    def order(self, files: Files) -> np.ndarray:
        """The rows from the best priority to the worst; of equal ones those that come first."""
        recipe = files.shared.recipe
        column = None if self.column is None else pa.chunked_array([self.column])
        found = rows_by_priority(recipe.keep, self.num_tokens, column)
        if recipe.method.measure.directed:
            found = found[np.argsort(-self.size[found], kind="stable")]
        return found

    def save(self, files: Files, what: str) -> None:
        save(files, what, self.columns)
