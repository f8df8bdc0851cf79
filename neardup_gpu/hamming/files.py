"""Fingerprints in files: Parquet, Arrow IPC and .npy, read part by part.

A set of fingerprints is one file, several, or a folder of them, read in the order of their paths: Parquet or Arrow IPC
with a column of uint64 (64 bits) or of fixed-size lists of two uint64 (128 bits), or .npy of uint64, of shape (rows,)
or (rows, 2). Null fingerprints are left out and counted. Rows without an id column are named by their numbers, from 0
over all files.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from neardup_gpu.kernels._launch import check_rows

from ..arrow_versions import bytes_of, may_be_kept_as, restored_lists
from ..data import arrow, one_array
from ..errors import InputError, NeardupError, raise_want
from ..log import log
from ..recipe import Recipe
from ..records import dataclass
from ..report import count, unread_names
from ..results.sketch_files import distinct_files
from ..store.folder import for_arrow, open_named
from ..store.parquet import opened
from .joins import CHUNK_BYTES, read_chunks
from .recipes import check_recipes, is_other_artefact, recipe_in

Paths = str | Path | list[str] | list[Path]

PARQUET = (".parquet", ".pq")
IPC = (".arrow", ".arrows", ".ipc", ".feather")
NPY = ".npy"
EXTENSIONS = (*PARQUET, *IPC, NPY)  # of the files that are read of a folder


class Chunk(NamedTuple):
    """Some consecutive rows.

    Attributes
    ----------
    fingerprints : array of uint64, shape (rows,) for 64 bits, (rows, 2) for 128
    ids : pyarrow.Array, length rows
        Of the id column, or int64 row numbers.
    num_null : int
        Number of rows between them that are left out, as their fingerprints are null.
    """

    fingerprints: np.ndarray
    ids: pa.Array
    num_null: int


@dataclass(frozen=True)
class FingerprintFiles:
    """A set of fingerprints in files; `open_fingerprints` makes it.

    Parameters
    ----------
    files : list of Path
    column : str
        The column that holds the fingerprints.
    id_column : str or None
        The column of ids; None if the rows are named by their numbers.
    id_type : pyarrow.DataType
    bits : {64, 128}
    recipe : Recipe or None
        What the first file records; the others agree with it in all that fingerprints depend on.
    num_rows : int
        The number of rows, as far as headers tell it.
    """

    files: list[Path]
    column: str
    id_column: str | None
    id_type: pa.DataType
    bits: int
    recipe: Recipe | None
    num_rows: int

    @property
    def name(self) -> str:
        """The name of the set in messages: its first file."""
        return str(self.files[0])

    def chunks(self, max_bytes: int) -> Iterator[Chunk]:
        """All rows, at most `max_bytes` of fingerprints and ids at a time, more only where ids are long.

        Raises
        ------
        InputError
            If a file is broken, or an id is null.
        """
        values: list[np.ndarray] = []
        ids: list[pa.Array] = []
        size = nulls = 0
        for piece in self._pieces(max_bytes):
            more = piece.fingerprints.nbytes + bytes_of(piece.ids)
            if values and size + more > max_bytes:
                yield Chunk(_stacked(values, self.bits), pa.concat_arrays(ids), nulls)
                values, ids, size, nulls = [], [], 0, 0
            values.append(piece.fingerprints)
            ids.append(piece.ids)
            size += more
            nulls += piece.num_null
        if values:
            yield Chunk(_stacked(values, self.bits), pa.concat_arrays(ids), nulls)

    def read(self) -> Chunk:
        """All rows at once.

        Raises
        ------
        InputError
            As in `chunks`; and if two rows have the same id.
        ResourceError
            If there are too many rows; before they are read, as far as headers tell their number.
        """
        check_rows(self.num_rows, "fingerprints")
        pieces = list(self._pieces(CHUNK_BYTES))
        values = _stacked([piece.fingerprints for piece in pieces], self.bits)
        chunks = pa.chunked_array([piece.ids for piece in pieces], self.id_type)
        ids = one_array(chunks)
        if self.id_column is not None and (num_ids := len(pc.unique(ids))) < len(ids):
            raise InputError(
                f"{self.name}: {len(ids):,} rows have {count(num_ids, 'id')} in column {self.id_column!r}; "
                "pass id_column=... with ids that are unique over all files"
            )
        return Chunk(values, ids, sum(piece.num_null for piece in pieces))

    def _pieces(self, max_bytes: int) -> Iterator[Chunk]:
        """Like `chunks`, but often smaller: as the files hold the rows."""
        start = 0
        for path in self.files:
            for fingerprints, ids in _read(path, self.column, self.id_column, max_bytes):
                numbers = arrow(np.arange(start, start + len(fingerprints)))
                start += len(fingerprints)
                if isinstance(fingerprints, np.ndarray):
                    yield Chunk(fingerprints, numbers, 0)
                    continue
                if ids is None:
                    ids = numbers
                elif ids.null_count:
                    raise InputError(
                        f"{path}: an id in column {self.id_column!r} is null; pass id_column=... to name another column"
                    )
                num_null = fingerprints.null_count
                if num_null:
                    valid = fingerprints.is_valid()
                    fingerprints, ids = fingerprints.filter(valid), ids.filter(valid)
                if pa.types.is_dictionary(ids.type):
                    ids = ids.dictionary_decode()
                yield Chunk(_words(fingerprints, path, self.column), ids.cast(self.id_type), num_null)


def open_fingerprints(paths: Paths, *, column: str = "simhash", id_column: str | None = None) -> FingerprintFiles:
    """Open files of fingerprints; only their headers are read here.

    Parameters
    ----------
    paths : path or list of paths
        Files, or folders: every file of a known extension in a folder is read. Left out of a folder are hidden files,
        those whose name begins with ``_``, and Parquet that neardup wrote without the column, such as pairs next to
        simhashes.
    column : str, default="simhash"
        The column that holds the fingerprints.
    id_column : str, optional
        The column that names the rows; ``id``, unless given, where there is such a column.

    Raises
    ------
    InputError
        If there is nothing to read, a column is missing or of another type, or the files differ in them.
    RecipeMismatchError
        If fingerprints were made by different recipes, or only some files record a recipe.
    """
    files = _list_files([paths] if isinstance(paths, str | Path) else list(paths), column)
    headers = [_read_header(path, column, id_column) for path in files]
    first = headers[0]
    for path, other in zip(files[1:], headers[1:], strict=True):
        _check_alike(files[0], first, path, other)
    named = first.id_type is not None
    return FingerprintFiles(
        files,
        column,
        (id_column or "id") if named else None,
        first.id_type if named else pa.int64(),
        first.bits,
        first.recipe,
        sum(header.num_rows for header in headers),
    )


class _Header(NamedTuple):
    """A file's description of its fingerprints, known before they are read."""

    bits: int
    id_type: pa.DataType | None
    recipe: Recipe | None
    num_rows: int  # 0 where only reading tells


def _check_alike(first_path: Path, first: _Header, path: Path, other: _Header) -> None:
    """Refuse two files that cannot be one set."""
    if other.bits != first.bits:
        raise InputError(f"{path}: fingerprints of {other.bits} bits, {first_path} has {first.bits}; use one length")
    if (other.id_type is None) != (first.id_type is None):
        without, has = (path, first_path) if other.id_type is None else (first_path, path)
        raise InputError(f"{without}: no column of ids, {has} has one; give ids to all files or to none")
    if other.id_type != first.id_type:
        raise InputError(f"{path}: ids are {other.id_type}, ids of {first_path} {first.id_type}; make them one type")
    check_recipes(first.recipe, str(first_path), other.recipe, str(path))


def _list_files(paths: list[Any], column: str) -> list[Path]:
    """The files that some paths name, each once, in an order that does not depend on that of the paths."""
    if not paths:
        raise InputError(
            "no fingerprints given; name files that `neardup sketch --method simhash` wrote, or other Parquet, Arrow "
            "or .npy files"
        )
    found: set[Path] = set()
    for path in map(Path, paths):
        if not path.exists():
            raise InputError(f"{path}: no such file or folder")
        found |= _files_in(path, column) if path.is_dir() else {path}
    return distinct_files(found)


def _files_in(folder: Path, column: str) -> set[Path]:
    """Find the files of fingerprints in a folder. The log names the others."""
    inside: set[Path] = set()
    left_out: dict[str, set[str]] = {}
    for file in folder.rglob("*"):
        parts = file.relative_to(folder).parts
        skipped = next((number for number, part in enumerate(parts) if part.startswith((".", "_"))), None)
        if skipped is not None:
            reason = "hidden" if parts[skipped].startswith(".") else "underscored"
            path = folder.joinpath(*parts[: skipped + 1])
            left_out.setdefault(reason, set()).add(f"{path}/" if path.is_dir() else str(path))
        elif file.is_file():
            if file.suffix.lower() in EXTENSIONS:
                inside.add(file)
            else:
                left_out.setdefault("other_kinds", set()).add(str(file))
    if not inside:
        raise InputError(f"{folder}: no file to read in this folder; it may hold {', '.join(EXTENSIONS)}")
    found = {file for file in inside if not _is_other(file, column)}
    if not found:
        way = "make some with `neardup sketch --method simhash`"
        raise InputError(f"{folder}: no file in this folder has column {column!r}; {way}")
    if found != inside:
        left_out["artefacts"] = set(map(str, inside - found))
    if left_out:
        lines = [unread_names(reason, sorted(names), len(names)) for reason, names in sorted(left_out.items())]
        log.info("%s: left out, %s", folder, "; ".join(lines))
    return found


def _is_other(path: Path, column: str) -> bool:
    """Whether neardup wrote a file, but not of fingerprints."""
    if path.suffix.lower() not in PARQUET:
        return False
    with _opened(path) as (schema, _):
        return is_other_artefact(schema, column)


def _read_header(path: Path, column: str, id_column: str | None) -> _Header:
    """Return a file's description of its fingerprints, before they are read."""
    if path.suffix.lower() == NPY:
        if id_column is not None:
            raise InputError(f"{path}: .npy has no columns; leave out id_column, or write Parquet with ids")
        first = next(read_chunks(path, 16), None)  # which refuses a file that does not hold fingerprints
        bits = 64 * (np.load(path) if first is None else first).ndim
        return _Header(bits, None, None, os.path.getsize(path) // (bits // 8))
    with _opened(path) as (schema, file):
        names = schema.names
        _check_one_column(path, names, "column", column)
        if id_column is not None:
            _check_one_column(path, names, "id_column", id_column)
        bits = _bits_of(schema.field(column).type, path, column)
        ids = id_column or ("id" if "id" in names and column != "id" else None)
        id_type = None if ids is None else _id_type(schema.field(ids).type, path, ids)
        num_rows = file.metadata.num_rows if isinstance(file, pq.ParquetFile) else 0
        return _Header(bits, id_type, recipe_in(schema, path), num_rows)


def _check_one_column(path: Path, names: list[str], parameter: str, name: str) -> None:
    """Refuse a file unless exactly one of its columns has the name that `parameter` gives."""
    count = names.count(name)
    if count != 1:
        problem = f"{count} columns are named" if count else "no column"
        raise InputError(
            f"{path}: {problem} {name!r}; it has {', '.join(names[:20])}; pass {parameter}=... to name one of them"
        )


def _bits_of(kind: pa.DataType, path: Path, column: str) -> int:
    """The length of the fingerprints that a column of some type holds."""
    if pa.types.is_uint64(kind):
        return 64
    if may_be_kept_as(pa.list_(pa.uint64(), 2), kind):
        return 128
    advice = "pass column=... to name another column"
    if pa.types.is_int64(kind):
        advice = "reinterpret its bits: .view('uint64') in NumPy, .reinterpret(signed=False) in Polars"
    raise InputError(
        f"{path}: column {column!r} is {kind}; fingerprints are uint64, or for 128 bits fixed-size lists of two "
        f"uint64; {advice}"
    )


def _id_type(kind: pa.DataType, path: Path, name: str) -> pa.DataType:
    """The type that ids are given in: without dictionary or view, which one array of all files could not keep."""
    if pa.types.is_dictionary(kind):
        return _id_type(kind.value_type, path, name)
    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_binary_view(kind):
        return pa.large_binary()
    checks = (pa.types.is_integer, pa.types.is_string, pa.types.is_large_string, pa.types.is_binary)
    if any(check(kind) for check in (*checks, pa.types.is_large_binary, pa.types.is_fixed_size_binary)):
        return kind
    raise InputError(
        f"{path}: ids in column {name!r} are {kind}; they must be integers or strings; pass id_column=... to name "
        "another column"
    )


@contextlib.contextmanager
def _opened(path: Path, *, whole: bool = False) -> Iterator[tuple[pa.Schema, Any]]:
    """The schema of a Parquet or Arrow file, and the open file; `whole`: all of it is going to be read."""
    if path.suffix.lower() not in IPC:
        with opened(path, whole=whole) as file:
            yield file.schema_arrow, file
        return
    try:
        with for_arrow(open_named(path)) as handle:  # a mapped file that is cut ends the process
            magic = handle.read(6)
            handle.seek(0)
            with (pa.ipc.open_file if magic == b"ARROW1" else pa.ipc.open_stream)(handle) as reader:
                yield reader.schema, reader
    except NeardupError:
        raise
    except (OSError, MemoryError, pa.ArrowException, ValueError) as error:
        raise_want(error)
        why = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        raise InputError(f"{path}: cannot be read as Arrow IPC ({why})") from None


def _read(path: Path, column: str, id_column: str | None, max_bytes: int) -> Iterator[tuple[Any, pa.Array | None]]:
    """The fingerprints of a file, of .npy as a NumPy array, else as an Arrow array with nulls; and their ids."""
    if path.suffix.lower() == NPY:
        for chunk in read_chunks(path, max(16, max_bytes // 2)):  # row numbers take as much again
            yield chunk, None
        return
    names = [column, *([] if id_column is None else [id_column])]
    most = min(1 << 16, max(1, max_bytes // 24))  # rows at once
    with _opened(path, whole=True) as (_, file):
        for batch in _batches(file, names, most):
            for first in range(0, batch.num_rows, most):
                part = batch.slice(first, most)
                try:
                    values = restored_lists(part.column(column), 2)
                except pa.ArrowInvalid:
                    raise InputError(
                        f"{path}: column {column!r} has lists of other lengths than 2; give two uint64 for 128 bits"
                    ) from None
                yield values, None if id_column is None else part.column(id_column)


def _batches(file: Any, names: list[str], most: int) -> Iterable[pa.RecordBatch]:
    """The record batches of an open Parquet or Arrow file; of Parquet, `most` rows of some columns at a time."""
    if isinstance(file, pq.ParquetFile):
        return file.iter_batches(most, columns=names)
    if isinstance(file, pa.ipc.RecordBatchFileReader):
        return (file.get_batch(number) for number in range(file.num_record_batches))
    return file


def _words(column: pa.Array, path: Path, name: str) -> np.ndarray:
    """Fingerprints without nulls as an array of their words."""
    if pa.types.is_uint64(column.type):
        return column.to_numpy()
    words = column.flatten()
    if words.null_count:
        raise InputError(f"{path}: column {name!r} has lists with a null in them; make the whole list null")
    return words.to_numpy().reshape(-1, 2)


def _stacked(arrays: list[np.ndarray], bits: int) -> np.ndarray:
    """Fingerprints of several pieces as one array; without pieces, an empty one."""
    if len(arrays) == 1:
        return arrays[0]
    return np.concatenate([np.empty((0, 2) if bits == 128 else 0, np.uint64), *arrays])
