"""Files that runs leave behind, each with its recipe, and how they are told from others."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from .data import bools
from .errors import InputError, OutputError, ResourceError, want
from .recipe import METADATA_KEY

if TYPE_CHECKING:
    from .documents import Documents
    from .pipeline import Result

REPORT, KEPT = "report.json", "kept"

LITTER = (".DS_Store",)
"""What file managers put into every folder that they show; it is nobody's work."""

CLOCK_SECONDS = 2
"""Steps in which the coarsest file systems count time."""


TABLES = (
    {"id", "num_tokens", "fingerprint", "signature", "features"},
    {"id", "num_tokens", "simhash"},
    {"token", "documents"},
    {"id_a", "id_b", "estimate", "low", "high"},
    {"id_a", "id_b", "distance"},
    {"query_id", "id", "distance"},
)
"""Columns of the Parquet files that are written by themselves: sketches, simhashes, frequencies, pairs and matches."""


def is_table(path: Path) -> bool:
    """Whether a file is Parquet as this package writes it: a recipe, and the columns of an artefact and no others."""
    try:
        schema = pq.read_schema(path)
    except MemoryError:
        raise
    except (OSError, pa.ArrowException):
        return False
    return METADATA_KEY in (schema.metadata or {}) and set(schema.names) in TABLES


def foreign_files(folder: Path) -> list[str] | None:
    """What a folder holds that the run which made it did not write, or that is another since; None for no result.

    A file is as it was if it has the size that the report lists, and is not younger than the report, which is written
    last.
    """
    try:
        report, written = read_report(folder), (folder / REPORT).stat().st_mtime
        files = report["files"]
        if METADATA_KEY not in (pq.read_schema(folder / "documents.parquet").metadata or {}):
            return None
        sizes = {**files, REPORT: (folder / REPORT).stat().st_size}
    except MemoryError:
        raise
    except (KeyError, OSError, OutputError, TypeError, pa.ArrowException):
        return None
    folders = {str(parent) for name in sizes for parent in Path(name).parents} | {KEPT}
    foreign = []
    for place, inner, names in os.walk(folder):
        here = Path(place).relative_to(folder)
        for name in inner:
            if str(here / name) not in folders or os.path.islink(Path(place, name)):
                foreign.append(f"{here / name}/")
        for name in names:
            found = os.lstat(Path(place, name))
            as_written = stat.S_ISREG(found.st_mode) and found.st_size == sizes.get((here / name).as_posix())
            if name not in LITTER and not (as_written and found.st_mtime <= written + CLOCK_SECONDS):
                foreign.append(str(here / name))
    return sorted(foreign)


def write_result(folder: Path, result: Result, documents: Documents) -> None:
    """Write what a run decided: documents.parquet, pairs.parquet, document frequencies where there are some, and kept/.

    `write_report` comes last and says how long this took.
    """
    write_table(result.documents, folder / "documents.parquet")
    write_table(result.pairs, folder / "pairs.parquet")
    if result.frequencies is not None:
        result.frequencies.write(folder / "frequencies.parquet")
    documents.write_kept(folder / KEPT, bools(result.documents["kept"].combine_chunks()))


def write_report(folder: Path, report: dict[str, Any]) -> None:
    """Write report.json, which makes a result a finished one, and lists all other files and their bytes."""
    files = sorted(Path(place, name) for place, _, names in os.walk(folder) for name in names)
    sizes = {path.relative_to(folder).as_posix(): path.stat().st_size for path in files}
    text = json.dumps({**report, "files": sizes}, indent=1, default=str)
    (folder / REPORT).write_text(text + "\n", encoding="utf-8")


def write_table(table: pa.Table, path: Path) -> None:
    """Write an artefact as Parquet."""
    pq.write_table(table, path, compression="zstd")


def read_report(folder: str | Path) -> dict[str, Any]:
    """The report of a finished run.

    Raises
    ------
    OutputError
        If the folder is not a finished result.
    """
    try:
        report = json.loads((Path(folder) / REPORT).read_text(encoding="utf-8"))
        if isinstance(report, dict):
            return report
    except (OSError, ValueError, RecursionError):
        pass
    raise OutputError(f"{folder}: not a finished result, there is no readable {REPORT}")


def read_table(path: str | Path) -> pa.Table:
    """Read an artefact.

    Raises
    ------
    InputError
        If it is missing or not a Parquet file.
    """
    try:
        return pq.read_table(path)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, pa.ArrowException) as error:
        if wanting := want(error):
            raise ResourceError(wanting) from error
        raise InputError(f"{path}: cannot be read as Parquet ({str(error).splitlines()[0]})") from None
