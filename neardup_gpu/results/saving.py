"""Write the tables and the kept rows of a result."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..documents.rewritten import write_kept
from ..documents.row_groups import write_groups
from ..documents.writing_options import Writing
from ..store.artefacts import ASCENDING, DOCUMENTS, KEPT, KEPT_IDS, PAIRS, UNITS
from ..store.checksums import seal
from ..store.parquet import encodings, write_table, write_tables


def write_result(
    folder: Path,
    result: Any,
    writing: Writing,
    clock: Any,
    schema: pa.Schema | None = None,
) -> None:
    """Write the tables of a result, its document frequencies if there are any, and kept/ or kept_ids.parquet.

    One thread writes the tables while other threads write the kept rows. The report is the caller's to write, last.
    `schema` has the columns of all files of kept/, if they are known.
    """
    with clock.stage("write"), ThreadPoolExecutor(1, "neardup-tables") as beside:
        tables = beside.submit(write_decisions, folder, result, writing.ids_only)
        if not writing.ids_only:
            write_kept(
                result.sources.documents,
                folder / KEPT,
                result._edits(),
                writing,
                partial(clock.report, "write"),
                schema=schema,
            )
        tables.result()
    result.report["seconds"] = clock.elapsed


def write_decisions(folder: Path, result: Any, ids_only: bool = False) -> None:
    """Write the tables of a result, its document frequencies if there are any, and kept_ids.parquet if `ids_only`."""
    write_tables(folder, {DOCUMENTS: result.documents, PAIRS: result.pairs}, result.skipped)
    if result.recipe.unit.divides:
        write_units(result._unit_parts(), folder)
    if result.frequencies is not None:
        result.frequencies.write(folder / "frequencies.parquet")
    if ids_only:
        write_table(ids_of_kept(result.documents), folder / f"{KEPT_IDS}.parquet")


def write_units(parts: Iterator[pa.Table], folder: Path) -> None:
    """Write the table of units, which is given in parts, at least one; several parts are encoded at once."""
    path, first = folder / f"{UNITS}.parquet", next(parts)
    schema, how = first.schema, encodings(first.schema, ASCENDING)
    with open(path, "wb") as file:
        write_groups(file, schema, chain([first], parts), **how)
    seal(path)


def ids_of_kept(documents: pa.Table) -> pa.Table:
    """Return the ids of the kept documents."""
    return documents.filter(documents["kept"]).select(["id"])
