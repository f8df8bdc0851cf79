"""The sources of a page: the tables and the report of a run, in memory or in a folder, and the place of its texts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..data import large_tables
from ..documents import Documents, open_documents
from ..documents.reading_options import reading_of
from ..documents.references import open_reference
from ..documents.sources import Sources
from ..errors import InputError
from ..methods.measures import Measure
from ..printable import shell_path, shell_word
from ..recipe import Recipe
from ..records import dataclass
from ..store.artefacts import DOCUMENTS, PAIRS, UNITS, parts_of
from ..store.parquet import read_table

_UNUSED = {"duplicate_of", "row", "near_reference", "reference_resemblance", "reference_containment"}
"""Columns of tables that no page needs; `group` names the kept document, too."""

Source = Callable[[], Documents]
"""Opens documents; raises InputError where they cannot be read again."""


@dataclass(frozen=True, eq=False)
class Run:
    """A finished run.

    Parameters
    ----------
    name : str
        What the page calls it.
    report : dict
        As in report.json.
    recipe : Recipe
    documents, pairs : pyarrow.Table
        As `Result` has them.
    measure : callable
        Gives the measure that decided, with its statistics.
    source, reference : callable
        Open the documents, and those of the reference set.
    command : callable
        What explains a document: the words before its id, the id, and the words after it.
    units : callable, optional
        Returns the table of units; None if each document is a unit.
    """

    name: str
    report: dict[str, Any]
    recipe: Recipe
    documents: pa.Table
    pairs: pa.Table
    measure: Callable[[], Measure]
    source: Source
    reference: Source
    command: Callable[[Any], tuple[str, str, str]]
    units: Callable[[], pa.Table] | None = None

    def __post_init__(self) -> None:
        for name, table in zip(("documents", "pairs"), large_tables(self.documents, self.pairs), strict=True):
            object.__setattr__(self, name, table)

    @property
    def column(self) -> str:
        """The column of both tables that says what a pair is worth."""
        return self.recipe.method.measure.name


def run_of_tables(
    documents: pa.Table,
    pairs: pa.Table,
    report: dict[str, Any],
    recipe: Recipe,
    frequencies: Any,
    sources: Callable[[], Sources],
    folder: str | None = None,
    units: pa.Table | None = None,
) -> Run:
    """The run of a `Result`, or of tables that are about to be written to `folder`."""

    def opened(number: int) -> Any:
        found = (sources().documents, sources().reference)[number]
        if found is None or not found.rewindable:
            raise InputError("the documents were a stream, which cannot be read again")
        return found

    return Run(
        "this result" if folder is None else folder,
        report,
        recipe,
        documents,
        pairs,
        lambda: recipe.measure_by(frequencies),
        partial(opened, 0),
        partial(opened, 1),
        _call if folder is None else partial(_words, folder),
        None if units is None else lambda: units,
    )


def run_of_folder(
    folder: Path,
    report: dict[str, Any],
    name: str,
    sources: tuple[Any, Any] = (None, None),
    statistics: Any = None,
) -> Run:
    """The run whose tables lie in a folder.

    Parameters
    ----------
    folder : path
    report : dict
        As in report.json, with `files`.
    name : str
        The folder as the user calls it.
    sources : tuple of (Documents or None, Documents or None)
        The documents and the reference set, where they are known; the others are opened from their description.
    statistics : Frequencies, optional
        Read from the folder unless given.
    """
    found = {}
    for table in (DOCUMENTS, PAIRS):
        parts = map(read_table, parts_of(folder, report["files"], table))
        found[table] = pa.concat_tables([part.drop_columns(sorted(_UNUSED & {*part.column_names})) for part in parts])
    recipe = Recipe.of(found[DOCUMENTS].schema, name)

    def measure() -> Any:
        known, measure = statistics, recipe.method.measure
        needs = recipe.ignored is not None or (measure.weighted and recipe.method.needs_statistics)
        if known is None and needs:
            from ..methods.frequencies import Frequencies

            known = Frequencies.load(folder / "frequencies.parquet")
        return recipe.measure_by(known)

    def opened(number: int, entry: str) -> Any:
        known = sources[number]
        if known is not None:
            return known
        if report[entry]["format"] == "memory":
            raise InputError("the documents were given in memory; only the result that dedup returned has them")
        return open_reference(report[entry])

    def units() -> pa.Table:
        return pa.concat_tables(map(read_table, parts_of(folder, report["files"], UNITS)))

    return Run(
        name,
        report,
        recipe,
        found[DOCUMENTS],
        found[PAIRS],
        measure,
        partial(opened, 0, "input"),
        partial(opened, 1, "against"),
        partial(_words, name),
        units if recipe.unit.divides else None,
    )


def given(description: dict[str, Any] | None, table: Any) -> Documents | None:
    """Documents in memory that are passed again, as they were read the first time; None where there are none."""
    if table is None or description is None or "sets" in description:
        return None
    return open_documents(table, reading=reading_of(description))


def _words(folder: str, id: Any) -> tuple[str, str, str]:
    """`neardup explain OUT ID`."""
    word = id.decode("utf-8", "surrogateescape") if isinstance(id, bytes) else str(id)
    dashes = "-- " if word.startswith("-") else ""
    return f"neardup explain {dashes}{shell_path(folder)} ", shell_word(word), ""


def _call(id: Any) -> tuple[str, str, str]:
    """`result.explain(id)`."""
    return "result.explain(", repr(id), ")"
