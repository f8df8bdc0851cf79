"""Files that runs leave behind: written whole or not at all, each with its recipe."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from .data import bools
from .errors import InputError, OutputError

if TYPE_CHECKING:
    from .documents import Documents
    from .pipeline import Result

REPORT = "report.json"


@contextlib.contextmanager
def new_folder(path: str | Path, overwrite: bool = False) -> Iterator[Path]:
    """A temporary folder beside `path` that takes its name when the block ends well, and vanishes when it does not.

    Raises
    ------
    OutputError
        If `path` exists and is not an empty folder (unless `overwrite`), or cannot be written.
    """
    path = Path(path)
    _check_free(path, overwrite)
    with _beside(path) as partial:
        yield partial
        _take_place(partial, path)


@contextlib.contextmanager
def new_file(path: str | Path, overwrite: bool = False) -> Iterator[Path]:
    """Like `new_folder`, for one file."""
    path = Path(path)
    _check_free(path, overwrite)
    with _beside(path) as partial:
        yield partial / path.name
        _take_place(partial / path.name, path)


def _check_free(path: Path, overwrite: bool) -> None:
    try:
        taken = path.exists() and not (path.is_dir() and not any(path.iterdir()))
    except OSError as error:
        raise OutputError(f"{path}: {error.strerror}; name another output") from None
    if taken and not overwrite:
        raise OutputError(f"{path}: exists already; name another output or add --overwrite")
    if taken and path.is_dir() and not (path / REPORT).exists():
        raise OutputError(f"{path}: holds other files than a result; --overwrite replaces only earlier results")


@contextlib.contextmanager
def _beside(path: Path) -> Iterator[Path]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}.partial-"))
    except OSError as error:
        raise OutputError(f"{path}: {error.strerror}; name an output that can be written") from None
    try:
        yield partial
    except OSError as error:
        if isinstance(error, OutputError) or error.errno is None:
            raise
        raise OutputError(f"{path}: {error.strerror}; nothing was written") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _take_place(partial: Path, path: Path) -> None:
    """Rename to the final name; what was there before is first moved aside, and deleted once the new one is in
    place."""
    umask = os.umask(0)
    os.umask(umask)
    partial.chmod((0o777 if partial.is_dir() else 0o666) & ~umask)  # mkdtemp makes private folders
    if path.exists() and partial.is_dir():
        aside = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}.old-"))
        path.rename(aside / path.name)
        partial.rename(path)
        shutil.rmtree(aside, ignore_errors=True)
    else:
        partial.replace(path)


def write_result(
    folder: Path, result: Result, documents: Documents, progress: Callable[[int, int], None] = lambda done, total: None
) -> None:
    """Write a finished run: documents.parquet, pairs.parquet, kept/ and, last, report.json."""
    write_table(result.documents, folder / "documents.parquet")
    write_table(result.pairs, folder / "pairs.parquet")
    keep = bools(result.documents["kept"].combine_chunks())
    documents.write_kept(folder / "kept", keep)
    (folder / REPORT).write_text(json.dumps(result.report, indent=1, default=str) + "\n")


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
    path = Path(folder) / REPORT
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        raise OutputError(f"{folder}: not a finished result, there is no readable {REPORT}") from None


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
        raise InputError(f"{path}: cannot be read as Parquet ({str(error).splitlines()[0]})") from None
