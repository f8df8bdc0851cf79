"""The stages that rank documents by a priority other than their order: a sort by ranges.

    sample    of a slice: some of its rows, as `choose` wants them
    choose    one task: rows that divide all into parts of about one size
    spread    of a slice: its rows, by the parts
    order     of a part: its rows in order; their ranks by slice, and their numbers by range of ranks
    rows      of a slice: the rank of each row
    rank      of a range: the number of each rank

A part is sorted as the whole is in memory, and rows that are equal in all else are in the order of their numbers, so
the parts do not show in the result.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ..data import arrow, numpy_of
from ..documents.compared import ranks_of
from ..documents.units import keep_apart
from ..keep_rule import compares_lengths, keep_columns
from ..recipe import Recipe
from ..stages.priority import rows_by_priority
from ..store.exchange import read_partition
from .columns import TABLE, add_table, load, save, save_tables, tables_of
from .layout import NUMBERS, RANKS, Layout
from .sizes import Counts, Exchange, Shape
from .sketching import ROWS, places_of_units, tokens_of_documents
from .work import Files, file_name

SAMPLED = 1 << 16
"""Rows that are sampled together to divide all: parts differ by a percent or so."""

RANKED = pa.schema([("row", pa.int64()), ("rank", pa.int64())])
NO_ROWS = pa.table({name: pa.nulls(0, pa.int64()) for name in ("number", "num_tokens", "size")})
NUMBERED = pa.schema([("rank", pa.int64()), ("number", pa.int64())])


def written(c: Counts, shape: Shape) -> list[Exchange]:
    """Return the sizes of the files that the stages write, for a rank that depends on the number of shingles."""
    slices, ranges, mine = shape.slices, shape.partitions, shape.slices - shape.known
    number = c.documents - c.known_documents
    sampled, row = min(number, SAMPLED + mine), 8 * NO_ROWS.num_columns
    return [
        Exchange("sample", "sample", sampled, row * sampled, 1, mine, tables=mine),
        Exchange("choose", "cuts", ranges, row * ranges, 1, 1, tables=1),
        Exchange("spread", "parts", number, row * number, 1, mine, ranges, tables=mine * ranges),
        Exchange.of("order slices", RANKED, number, ranges, slices),
        Exchange.of("order ranges", NUMBERED, number, ranges, ranges),
        Exchange.of("rows ranks", RANKS, c.documents, slices),
        Exchange.of("rank numbers", NUMBERS, c.documents, ranges),
    ]


def ranks_are_numbers(recipe: Recipe) -> bool:
    """Whether documents in the order of the input are in the order of their priority."""
    return recipe.keep == "first" and not recipe.method.measure.directed


def sample(files: Files, number: int, layout: Layout, categories: dict[str, list[str]]) -> None:
    """Save evenly spaced rows of a slice; `categories` is the order of values by column."""
    rows = _RankedRows.of_slice(files, number, layout, categories)
    most = max(1, SAMPLED // layout.num_slices)
    rows.take(np.arange(0, len(rows), -(-len(rows) // most) or 1)).save(files, "sample")


def choose(files: Files, tasks: int, layout: Layout) -> None:
    """Save the rows that divide all into a part for each partition; `tasks` have sampled."""
    names = [file_name("sample", task, "sample") for task in range(tasks)]
    rows = _RankedRows.load(files, names)
    order = rows.order(files.shared.recipe)
    cuts = [len(order) * part // layout.partitions for part in range(1, layout.partitions)]
    rows.take(order[cuts] if len(order) else order).save(files, "cuts")


def spread(files: Files, number: int, layout: Layout, categories: dict[str, list[str]]) -> dict[str, Any]:
    """Write the rows of a slice by parts; `rows` says how many each has."""
    cuts = _RankedRows.load(files, [file_name("choose", 0, "cuts")])
    rows = _RankedRows.of_slice(files, number, layout, categories)
    both = cuts.and_(rows)
    by_number = np.argsort(both.numbers, kind="stable")  # a row that divides comes before itself
    order = by_number[both.take(by_number).order(files.shared.recipe)]
    is_cut = order < len(cuts)
    part = np.cumsum(is_cut)[~is_cut]
    mine = order[~is_cut] - len(cuts)
    with files.exchange("parts", TABLE, layout.partitions) as writer:
        for number in np.unique(part).tolist():
            add_table(writer, number, rows.take(mine[part == number]).table)
    return {"rows": np.bincount(part, minlength=layout.partitions).tolist()}


def order(files: Files, first: int, tasks: int, layout: Layout) -> None:
    """Rank the rows of a part, from rank `first` on; `tasks` have spread theirs."""
    names = [file_name("spread", task, "parts") for task in range(tasks)]
    rows = _RankedRows.load(files, names, files.number)
    numbers = rows.numbers[rows.order(files.shared.recipe)]
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
        ranks[numpy_of(batch.column("row"))] = numpy_of(batch.column("rank"))
    save(files, "ranks", {"rank": ranks})


def rank(files: Files, layout: Layout) -> None:
    """Save the number of each rank of a range."""
    first, last = layout.bounds[files.number], layout.bounds[files.number + 1]
    numbers = np.arange(first, last)
    names = [file_name("order", part, "ranges") for part in range(layout.partitions)]
    for batch in read_partition(files.place, names, files.number):
        numbers[numpy_of(batch.column("rank")) - first] = numpy_of(batch.column("number"))
    save(files, "numbers", {"number": numbers})


_COLUMN = "column "
"""How the names of columns that decide begin, so that they are not those of other columns."""


def deciding_columns(files: Files, number: int) -> dict[str, pa.ChunkedArray]:
    """Return the columns of a slice of the input that decide who is kept, if there are any."""
    names = keep_columns(files.shared.recipe.keep)
    if not names:
        return {}
    (own,) = tables_of(files.place, [file_name("sketch", number, "columns")], 0)
    return {name: own[name] for name in names}


class _RankedRows:
    """Rows with what their priority depends on: a table of number, num_tokens, size, and the columns that decide.

    The bits of `num_tokens` are inverted for units that come last, as in `documents_by_priority`.
    """

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __len__(self) -> int:
        return len(self.table)

    @property
    def numbers(self) -> np.ndarray:
        return numpy_of(self.table["number"])

    @classmethod
    def of_slice(cls, files: Files, number: int, layout: Layout, categories: dict[str, list[str]]) -> _RankedRows:
        """Return all rows of a slice, with the ranks of ordered categories in place of their values."""
        columns = load(files.place, file_name("sketch", number, "rows"), ROWS)
        plain = {"number": layout.starts[number] + np.arange(len(columns["size"])), **columns}
        owner = None
        if files.shared.recipe.unit.divides:  # units have the priority of their document
            places = places_of_units(files, number)
            owner = places.owner
            plain["num_tokens"] = tokens_of_documents(files, number)[owner]
            if compares_lengths(files.shared.recipe.keep):
                plain["num_tokens"] ^= -keep_apart(places).astype(np.int64)
        table = pa.table({name: arrow(column) for name, column in plain.items()})
        if len(table):
            for name, column in deciding_columns(files, number).items():
                column = ranks_of(column, categories[name], name) if name in categories else column
                table = table.append_column(_COLUMN + name, column if owner is None else column.take(arrow(owner)))
        return cls(table)

    @classmethod
    def load(cls, files: Files, names: list[str], partition: int = 0) -> _RankedRows:
        """Rows of some files."""
        tables = tables_of(files.place, names, partition)
        return cls(pa.concat_tables(tables or [NO_ROWS]))

    def take(self, rows: np.ndarray) -> _RankedRows:
        return _RankedRows(self.table.take(arrow(rows)))

    def and_(self, others: _RankedRows) -> _RankedRows:
        return _RankedRows(pa.concat_tables([part.table for part in (self, others) if len(part)] or [NO_ROWS]))

    def order(self, recipe: Recipe) -> np.ndarray:
        """The rows from the best priority to the worst; of equal ones those that come first."""
        if len(self) == 0:
            return np.empty(0, np.int64)
        columns = {name: self.table[_COLUMN + name] for name in keep_columns(recipe.keep)}
        num_tokens = numpy_of(self.table["num_tokens"])
        found = rows_by_priority(recipe.keep, num_tokens ^ (num_tokens >> 63), columns)
        found = found[np.argsort(num_tokens[found] < 0, kind="stable")]
        if recipe.method.measure.directed:
            found = found[np.argsort(-numpy_of(self.table["size"])[found], kind="stable")]
        return found

    def save(self, files: Files, what: str) -> None:
        save_tables(files, what, [self.table] if len(self) else [])
