"""Fingerprints in files: Parquet, Arrow IPC and .npy, read part by part.

A set of fingerprints is one file, several, or a folder of them, read in the order of their paths: Parquet or Arrow IPC
with a column of uint64 (64 bits) or of fixed-size lists of two (128 bits), or .npy of uint64, (rows,) or (rows, 2).
Null fingerprints are left out and counted. Rows without an id column are named by their numbers, from 0 over all files.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from neardup_gpu.kernels._launch import check_rows

from ..data import arrow
from ..definitions import METADATA_KEY
from ..errors import InputError, NeardupError, ParameterError, RecipeMismatchError, ResourceError, want
from ..recipe import Recipe
from ..sketch_files import check_columns, distinct_files
from ..store.parquet import opened
from . import index as hamming
from .index import CHUNK_BYTES

Paths = str | Path | list[str] | list[Path]

IPC = (".arrow", ".arrows", ".ipc", ".feather")
EXTENSIONS = (".parquet", ".pq", *IPC, ".npy")  # of what is read of a folder


class Chunk(NamedTuple):
    """Some consecutive rows.

    fingerprints : array of uint64, shape (rows,) for 64 bits, (rows, 2) for 128
    ids : pyarrow.Array, length rows
        Of the id column, or int64 row numbers.
    num_null : int
        Rows between them that are left out, as their fingerprints are null.
    """

    fingerprints: np.ndarray
    ids: pa.Array
    num_null: int


@dataclass(frozen=True)
class Fingerprints:
    """Fingerprints of one set of files: see `open_fingerprints`, which makes them.

    files : list of Path
    column : str
    id_column : str or None
        None: rows are named by their numbers.
    id_type : pyarrow.DataType
    bits : 64 or 128
    recipe : Recipe, SimhashRecipe or None
        What the first file says; the others agree in what fingerprints depend on.
    num_rows : int
        As far as headers say.
    """

    files: list[Path]
    column: str
    id_column: str | None
    id_type: pa.DataType
    bits: int
    recipe: Recipe | None
    num_rows: int

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
            more = piece.fingerprints.nbytes + piece.ids.nbytes
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
            As `chunks`; and if two rows have the same id.
        ResourceError
            If there are too many; before they are read, as far as headers say.
        """
        check_rows(self.num_rows, "fingerprints")
        pieces = list(self._pieces(CHUNK_BYTES))
        values = _stacked([piece.fingerprints for piece in pieces], self.bits)
        chunks = pa.chunked_array([piece.ids for piece in pieces], self.id_type)
        if chunks.nbytes >= 2**31 and pa.types.is_string(chunks.type):  # too long for one array of 32-bit offsets
            chunks = chunks.cast(pa.large_string())
        ids = chunks.combine_chunks()
        if self.id_column is not None and len(pc.unique(ids)) < len(ids):
            raise InputError(
                f"{self.files[0]}: {len(ids):,} rows have {len(pc.unique(ids)):,} ids in column {self.id_column!r}; "
                "name a column of ids that are unique over all files with --id-column"
            )
        return Chunk(values, ids, sum(piece.num_null for piece in pieces))

    def _pieces(self, max_bytes: int) -> Iterator[Chunk]:
        """As `chunks`, but often smaller: as the files hold them."""
        start = 0
        for path in self.files:
            for fingerprints, ids in _read(path, self.column, self.id_column, max_bytes):
                first = start
                start += len(fingerprints)
                if isinstance(fingerprints, np.ndarray):
                    yield Chunk(fingerprints, arrow(np.arange(first, start)), 0)
                    continue
                if ids is None:
                    ids = arrow(np.arange(first, start))
                elif ids.null_count:
                    raise InputError(
                        f"{path}: an id in column {self.id_column!r} is null; name another column with --id-column"
                    )
                num_null = fingerprints.null_count
                if num_null:
                    there = fingerprints.is_valid()
                    fingerprints, ids = fingerprints.filter(there), ids.filter(there)
                yield Chunk(_words(fingerprints, str(path), self.column), _plain(ids, self.id_type), num_null)


def open_fingerprints(paths: Paths, *, column: str = "simhash", id_column: str | None = None) -> Fingerprints:
    """Open files of fingerprints; only their headers are read here.

    Parameters
    ----------
    paths : path or list of paths
        Files, or folders, of which every file of a known extension is read; hidden ones, those whose name begins with
        ``_``, and Parquet of neardup's own without the column, such as pairs beside simhashes, are left out.
    column : str
        What holds the fingerprints.
    id_column : str, optional
        What names the rows; ``id``, unless given, where there is such a column.

    Raises
    ------
    InputError
        If there is nothing to read, a column is missing or of another type, or the files differ in them.
    RecipeMismatchError
        If fingerprints were made by different recipes, or some by a recipe and some by none.
    """
    files = _files([paths] if isinstance(paths, str | Path) else list(paths), column)
    found = [_inspect(path, column, id_column) for path in files]
    first = found[0]
    for path, other in zip(files[1:], found[1:], strict=True):
        if other.bits != first.bits:
            raise InputError(f"{path}: fingerprints of {other.bits} bits, {files[0]} has {first.bits}; use one length")
        if (other.id_type is None) != (first.id_type is None):
            without, has = (path, files[0]) if other.id_type is None else (files[0], path)
            raise InputError(f"{without}: no column of ids, {has} has one; give ids to all files or to none")
        if other.id_type != first.id_type:
            raise InputError(
                f"{path}: ids are {other.id_type}, those of {files[0]} {first.id_type}; make them one type"
            )
        check_recipes(first.recipe, str(files[0]), other.recipe, str(path))
    named = first.id_type is not None
    return Fingerprints(
        files,
        column,
        (id_column or "id") if named else None,
        first.id_type if named else pa.int64(),
        first.bits,
        first.recipe,
        sum(header.num_rows for header in found),
    )


def check_recipes(recipe: Recipe | None, name: str, other: Recipe | None, other_name: str) -> None:
    """Refuse fingerprints that cannot be compared.

    Raises
    ------
    RecipeMismatchError
        If they were made by different recipes, or only one by a recipe.
    """
    if recipe is not None and other is not None:
        recipe.check_sketches(other, other_name)
    elif recipe is not None or other is not None:
        raise one_without(*((other_name, name) if other is None else (name, other_name)))


def one_without(name: str, other: str) -> RecipeMismatchError:
    return RecipeMismatchError(f"{name}: holds no recipe, {other} does; nothing says that they were made alike")


class _Header(NamedTuple):
    bits: int
    id_type: pa.DataType | None
    recipe: Recipe | None
    num_rows: int  # 0 where only reading tells


def _files(paths: list[Any], column: str) -> list[Path]:
    """The files that some paths name, each once, in an order of their own."""
    if not paths:
        raise InputError("no fingerprints given; name files that neardup simhash wrote, other Parquet, Arrow or .npy")
    found: set[Path] = set()
    for path in map(Path, paths):
        if not path.exists():
            raise InputError(f"{path}: no such file or folder")
        if not path.is_dir():
            found.add(path)
            continue
        inside = {
            file
            for file in path.rglob("*")
            if file.suffix.lower() in EXTENSIONS
            and file.is_file()
            and not any(part.startswith((".", "_")) for part in file.relative_to(path).parts)
        }
        if not inside:
            raise InputError(f"{path}: no file to read in this folder; it may hold {', '.join(EXTENSIONS)}")
        others = {file for file in inside if _is_other(file, column)}
        if inside == others:
            raise InputError(f"{path}: no file in this folder has column {column!r}; make some with neardup simhash")
        found |= inside - others
    return distinct_files(found)


def _is_other(path: Path, column: str) -> bool:
    """Whether neardup wrote a file, but not of fingerprints."""
    if path.suffix.lower() not in (".parquet", ".pq"):
        return False
    with _opened(path) as (schema, _):
        return METADATA_KEY in (schema.metadata or {}) and column not in schema.names


def _inspect(path: Path, column: str, id_column: str | None) -> _Header:
    """What a file says of its fingerprints, before they are read."""
    if path.suffix.lower() == ".npy":
        if id_column is not None:
            raise InputError(f"{path}: .npy has no columns; leave out --id-column, or write Parquet with ids")
        bits = _npy_bits(path)
        return _Header(bits, None, None, os.path.getsize(path) // (bits // 8))
    with _opened(path) as (schema, file):
        names = schema.names
        for name in (column, *([] if id_column is None else [id_column])):
            if names.count(name) != 1:
                problem = f"{names.count(name)} columns named" if name in names else "no column"
                option = "--column" if name == column else "--id-column"
                raise InputError(f"{path}: {problem} {name!r}; it has {', '.join(names[:20])}. Name one with {option}")
        kind = schema.field(column).type
        if pa.types.is_uint64(kind):
            bits = 64
        elif pa.types.is_fixed_size_list(kind) and pa.types.is_uint64(kind.value_type) and kind.list_size == 2:
            bits = 128
        else:
            advice = "name another column with --column"
            if pa.types.is_int64(kind):
                advice = "reinterpret its bits: .view('uint64') in NumPy, .reinterpret(signed=False) in Polars"
            raise InputError(
                f"{path}: column {column!r} is {kind}; fingerprints are uint64, or for 128 bits fixed-size lists of "
                f"two uint64; {advice}"
            )
        ids = id_column or ("id" if "id" in names and column != "id" else None)
        stored = (schema.metadata or {}).get(METADATA_KEY)
        recipe = None if stored is None else Recipe.from_json(stored, str(path))
        if recipe is not None:
            check_columns(schema, recipe, path)
        num_rows = file.metadata.num_rows if isinstance(file, pq.ParquetFile) else 0
        return _Header(bits, None if ids is None else _id_type(schema.field(ids).type, path, ids), recipe, num_rows)


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
    raise InputError(f"{path}: ids in column {name!r} are {kind}; they are integers or strings. Use --id-column")


def _npy_bits(path: Path) -> int:
    first = next(hamming.read_chunks(path, 16), None)  # which refuses what holds no fingerprints
    return 64 * (np.load(path) if first is None else first).ndim


@contextlib.contextmanager
def _opened(path: Path, *, whole: bool = False) -> Iterator[tuple[pa.Schema, Any]]:
    """The schema of a Parquet or Arrow file, and the open file; `whole`: it is going to be read."""
    if path.suffix.lower() not in IPC:
        with opened(path, whole=whole) as file:
            yield file.schema_arrow, file
        return
    try:
        with pa.memory_map(str(path)) as handle:
            magic = handle.read(6)
            handle.seek(0)
            with (pa.ipc.open_file if magic == b"ARROW1" else pa.ipc.open_stream)(handle) as reader:
                yield reader.schema, reader
    except NeardupError:
        raise
    except (OSError, MemoryError, pa.ArrowException, ValueError) as error:
        if wanting := want(error):
            raise ResourceError(wanting) from error
        why = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        raise InputError(f"{path}: cannot be read as Arrow IPC ({why})") from None


def _read(path: Path, column: str, id_column: str | None, max_bytes: int) -> Iterator[tuple[Any, pa.Array | None]]:
    """The fingerprints of a file, of .npy as an array of NumPy, else as Arrow's with nulls; and their ids."""
    if path.suffix.lower() == ".npy":
        for chunk in hamming.read_chunks(path, max(16, max_bytes // 2)):  # as much again are row numbers
            yield chunk, None
        return
    names = [column, *([] if id_column is None else [id_column])]
    most = min(1 << 16, max(1, max_bytes // 24))  # rows at once
    with _opened(path, whole=True) as (_, file):
        if isinstance(file, pq.ParquetFile):
            batches: Iterable[pa.RecordBatch] = file.iter_batches(most, columns=names)
        elif isinstance(file, pa.ipc.RecordBatchFileReader):
            batches = (file.get_batch(i) for i in range(file.num_record_batches))
        else:
            batches = file
        for whole in batches:
            for first in range(0, whole.num_rows, most):
                batch = whole.slice(first, most)
                yield batch.column(column), None if id_column is None else batch.column(id_column)


def _words(column: pa.Array, name: str, column_name: str) -> np.ndarray:
    """Fingerprints without nulls as an array of their words."""
    if pa.types.is_uint64(column.type):
        return column.to_numpy()
    words = column.flatten()
    if words.null_count:
        raise InputError(f"{name}: column {column_name!r} has lists with a null in them; make the whole list null")
    return words.to_numpy().reshape(-1, 2)


def _plain(ids: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(ids.type):
        ids = ids.dictionary_decode()
    return ids if ids.type == kind else ids.cast(kind)


def _stacked(arrays: list[np.ndarray], bits: int) -> np.ndarray:
    if len(arrays) == 1:
        return arrays[0]
    return np.concatenate([np.empty((0, 2) if bits == 128 else 0, np.uint64), *arrays])


def parse_fingerprint(text: str, bits: int) -> Any:
    """A fingerprint from hexadecimal: as 0x and digits, or as all of its digits (16, or 32 for 128 bits).

    Returns
    -------
    int for 64 bits; for 128 bits two, of which the first has the first digits

    Raises
    ------
    ParameterError
        If it is anything else, such as decimal.

    Examples
    --------
    >>> parse_fingerprint("0xff", 64), parse_fingerprint("00000000000000ff" * 2, 128)
    (255, (255, 255))
    """
    digits = text.strip().lower()
    prefixed = digits.startswith("0x")
    digits = digits.removeprefix("0x")
    full = bits // 4
    valid = bool(digits) and set(digits) <= set("0123456789abcdef")
    if not valid or len(digits) > full or (len(digits) < full and not prefixed):
        raise ParameterError(
            f"fingerprint {text!r}: not {full} hexadecimal digits of {bits} bits; fewer may follow 0x, as in 0x1f"
        )
    value = int(digits, 16)
    return value if bits == 64 else (value >> 64, value % 2**64)


def hexadecimal(fingerprint: Any) -> str:
    """A fingerprint, uint64 or two of them, as `parse_fingerprint` reads it."""
    return "0x" + "".join(f"{int(word):016x}" for word in np.atleast_1d(fingerprint))
