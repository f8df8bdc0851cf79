"""Files that runs leave behind: written whole or not at all, each with its recipe."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
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

REPORT = "report.json"


@contextlib.contextmanager
def new_folder(path: str | Path, overwrite: bool = False, inputs: Iterable[str] = ()) -> Iterator[Path]:
    """A temporary folder beside `path` that takes its name when the block ends well, and vanishes when it does not.

    Parameters
    ----------
    path : path
        Links are followed.
    overwrite : bool
        Replace an earlier result, and nothing else.
    inputs : iterable of str
        Paths and globs that are being read: none of them may lie in what is replaced.

    Raises
    ------
    OutputError
        If `path` is taken, holds an input, or cannot be written.
    """
    asked, path = path, Path(os.path.realpath(path))
    with _named(asked):
        if path.exists() and not path.is_dir():
            raise OutputError(f"{asked}: is a file; name a folder")
        taken = path.is_dir() and any(path.iterdir())
    if Path.cwd().is_relative_to(path):
        raise OutputError(f"{asked}: is where you are; name a folder of its own")
    if taken and not overwrite:
        raise OutputError(f"{asked}: exists already; name another output or add --overwrite")
    if taken and not (path / REPORT).exists():
        raise OutputError(f"{asked}: holds other files than a result; --overwrite replaces only earlier results")
    for name in inputs:
        if "://" not in name and Path(os.path.realpath(_GLOB.split(name)[0])).is_relative_to(path):
            raise OutputError(f"{asked}: holds the input {name}, which would be lost; name another output")
    with _beside(path, asked) as partial:
        yield partial
        _take_place(partial, path)


@contextlib.contextmanager
def new_file(
    path: str | Path, overwrite: bool = False, is_ours: Callable[[Path], bool] | None = None
) -> Iterator[Path]:
    """Like `new_folder`, for one file; only one of ours is replaced: Parquet that carries a recipe, or as `is_ours`
    says."""
    asked, path = path, Path(os.path.realpath(path))
    with _named(asked):
        if path.is_dir():
            raise OutputError(f"{asked}: is a folder; name a file")
        taken = path.exists()
    if taken and not overwrite:
        raise OutputError(f"{asked}: exists already; name another output or add --overwrite")
    if taken and not (is_ours or _is_artefact)(path):
        raise OutputError(f"{asked}: was not written by neardup; --overwrite replaces only what was")
    with _beside(path, asked) as partial:
        yield partial / path.name
        _take_place(partial / path.name, path)


_GLOB = re.compile(r"[^/\\]*[*?\[]")  # what a glob's fixed part ends before


@contextlib.contextmanager
def _named(path: str | Path) -> Iterator[None]:
    try:
        yield
    except OutputError:
        raise
    except OSError as error:
        raise OutputError(f"{path}: {error.strerror}; name another output") from None


def _is_artefact(path: Path) -> bool:
    try:
        return METADATA_KEY in (pq.read_schema(path).metadata or {})
    except MemoryError:
        raise
    except (OSError, pa.ArrowException):
        return False


@contextlib.contextmanager
def _beside(path: Path, asked: str | Path) -> Iterator[Path]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}.partial-"))
    except OSError as error:
        raise OutputError(f"{asked}: {error.strerror}; name an output that can be written") from None
    try:
        yield partial
    except OSError as error:
        if isinstance(error, OutputError) or error.errno is None:
            raise
        # Not `strerror`: pyarrow's names the temporary file.
        raise OutputError(f"{asked}: {os.strerror(error.errno)}; nothing was written") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _take_place(partial: Path, path: Path) -> None:
    """Rename to the final name. An earlier folder is moved aside first, and comes back if the new one cannot take its
    place."""
    umask = os.umask(0)
    os.umask(umask)
    partial.chmod((0o777 if partial.is_dir() else 0o666) & ~umask)  # mkdtemp makes private folders
    if not path.is_dir():
        partial.replace(path)
        return
    aside = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}.old-"))
    try:
        path.rename(aside / path.name)
        try:
            partial.rename(path)
        except BaseException:
            (aside / path.name).rename(path)
            raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def write_result(folder: Path, result: Result, documents: Documents) -> None:
    """Write a finished run: documents.parquet, pairs.parquet, document frequencies where there are some, kept/ and,
    last, report.json."""
    write_table(result.documents, folder / "documents.parquet")
    write_table(result.pairs, folder / "pairs.parquet")
    if result.frequencies is not None:
        result.frequencies.write(folder / "frequencies.parquet")
    documents.write_kept(folder / "kept", bools(result.documents["kept"].combine_chunks()))
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
        if wanting := want(error):
            raise ResourceError(wanting) from error
        raise InputError(f"{path}: cannot be read as Parquet ({str(error).splitlines()[0]})") from None
