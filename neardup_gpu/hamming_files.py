"""Fingerprints in files, and what the commands of `neardup hamming` make of them.

    >>> build("simhashes.parquet", "index.hamming", radius=3)
    >>> join("crawled.parquet", "new.parquet", "pairs.parquet", radius=3)

A set of fingerprints is one file, several, or a folder of them, read in the order of their paths: Parquet or Arrow IPC
with a column of uint64 (64 bits) or of fixed-size lists of two (128 bits), or .npy of uint64, (rows,) or (rows, 2).
Null fingerprints are left out and counted. Rows without an id column are named by their numbers, from 0 over all files.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from . import hamming
from .artefacts import new_file
from .backend import Job, parse_size, running
from .data import arrow
from .errors import InputError, OutputError, ParameterError, RecipeMismatchError
from .hamming import BUCKET_LIMIT, BUCKET_PROBE, CHUNK_BYTES, HammingIndex, TableDesign
from .pipeline import Progress, _Clock, _threads
from .recipe import METADATA_KEY, AnyRecipe, SimhashRecipe, recipe_from_json

Paths = str | Path | list[str] | list[Path]

RADIUS = 3
"""Bits, where neither the caller nor the recipe says: Manku, Jain and Das Sarma's for 64."""

QUERY_BYTES = 8 << 20  # of queries that an index answers at once
WRITE_ROWS = 1 << 20  # of a table written at once, so that their ids stay below 2 GB
IPC = (".arrow", ".arrows", ".ipc", ".feather")
EXTENSIONS = (".parquet", ".pq", *IPC, ".npy")  # of what is read of a folder

# -------------------------------------------------------------------------------------------------------------- reading


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
    """

    files: list[Path]
    column: str
    id_column: str | None
    id_type: pa.DataType
    bits: int
    recipe: AnyRecipe | None

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
        """
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
        Files, or folders, of which every file of a known extension is read; hidden ones and those whose name begins
        with ``_`` are left out.
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
    files = _files([paths] if isinstance(paths, str | Path) else list(paths))
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
        _check_recipes(first.recipe, str(files[0]), other.recipe, str(path))
    named = first.id_type is not None
    return Fingerprints(
        files,
        column,
        (id_column or "id") if named else None,
        first.id_type if named else pa.int64(),
        first.bits,
        first.recipe,
    )


def _check_recipes(recipe: AnyRecipe | None, name: str, other: AnyRecipe | None, other_name: str) -> None:
    """Refuse fingerprints that cannot be compared.

    Raises
    ------
    RecipeMismatchError
        If they were made by different recipes, or only one by a recipe.
    """
    if recipe is not None and other is not None:
        recipe.check_sketches(other, other_name)
    elif recipe is not None or other is not None:
        raise _one_without(*((other_name, name) if other is None else (name, other_name)))


def _one_without(name: str, other: str) -> RecipeMismatchError:
    return RecipeMismatchError(f"{name}: holds no recipe, {other} does; nothing says that they were made alike")


class _Header(NamedTuple):
    bits: int
    id_type: pa.DataType | None
    recipe: AnyRecipe | None


def _files(paths: list[Any]) -> list[Path]:
    """The files that some paths name, each once, in the order of their paths."""
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
        found |= inside
    return list({os.path.realpath(file): file for file in sorted(found)}.values())


def _inspect(path: Path, column: str, id_column: str | None) -> _Header:
    """What a file says of its fingerprints, before they are read."""
    if path.suffix.lower() == ".npy":
        if id_column is not None:
            raise InputError(f"{path}: .npy has no columns; leave out --id-column, or write Parquet with ids")
        return _Header(_npy_bits(path), None, None)
    with _opened(path) as (schema, _):
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
        return _Header(
            bits,
            None if ids is None else _id_type(schema.field(ids).type, path, ids),
            None if stored is None else recipe_from_json(stored, str(path)),
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
    raise InputError(f"{path}: ids in column {name!r} are {kind}; they are integers or strings. Use --id-column")


def _npy_bits(path: Path) -> int:
    first = next(hamming.read_chunks(path, 16), None)  # which refuses what holds no fingerprints
    return 64 * (np.load(path) if first is None else first).ndim


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[tuple[pa.Schema, Any]]:
    """The schema of a Parquet or Arrow file, and the open file."""
    ipc = path.suffix.lower() in IPC
    try:
        with contextlib.ExitStack() as stack:
            if not ipc:
                file = stack.enter_context(pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20))
                yield file.schema_arrow, file
                return
            handle = stack.enter_context(pa.memory_map(str(path)))
            magic = handle.read(6)
            handle.seek(0)
            reader = stack.enter_context((pa.ipc.open_file if magic == b"ARROW1" else pa.ipc.open_stream)(handle))
            yield reader.schema, reader
    except InputError:
        raise
    except (OSError, pa.ArrowException) as error:
        why = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        raise InputError(f"{path}: cannot be read as {'Arrow IPC' if ipc else 'Parquet'} ({why})") from None


def _read(path: Path, column: str, id_column: str | None, max_bytes: int) -> Iterator[tuple[Any, pa.Array | None]]:
    """The fingerprints of a file, of .npy as an array of NumPy, else as Arrow's with nulls; and their ids."""
    if path.suffix.lower() == ".npy":
        for chunk in hamming.read_chunks(path, max(16, max_bytes // 2)):  # as much again are row numbers
            yield chunk, None
        return
    names = [column, *([] if id_column is None else [id_column])]
    most = min(1 << 16, max(1, max_bytes // 24))  # rows at once
    with _opened(path) as (_, file):
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


# --------------------------------------------------------------------------------------------------------- the settings


@dataclass(frozen=True)
class _Settings:
    """Radius and limits of a job: what the caller says, else the recipe, else the defaults."""

    radius: int
    bucket_limit: int
    bucket_probe: int

    @classmethod
    def of(
        cls, source: Fingerprints, radius: int | None, bucket_limit: int | None = None, bucket_probe: int | None = None
    ) -> _Settings:
        recipe = source.recipe if isinstance(source.recipe, SimhashRecipe) else None
        given = {"radius": radius, "bucket_limit": bucket_limit, "bucket_probe": bucket_probe}
        usual = {"radius": RADIUS, "bucket_limit": BUCKET_LIMIT, "bucket_probe": BUCKET_PROBE}
        chosen = {
            name: value if value is not None else usual[name] if recipe is None else getattr(recipe, name)
            for name, value in given.items()
        }
        settings = cls(**chosen)
        if not 0 <= settings.radius < source.bits:
            raise ParameterError(f"radius {settings.radius} is outside 0 to {source.bits - 1}; {RADIUS} is usual")
        if settings.bucket_limit < 2 or settings.bucket_probe < 1:
            raise ParameterError(
                f"bucket_limit {settings.bucket_limit} and bucket_probe {settings.bucket_probe}: "
                "the limit is at least 2, the probe at least 1"
            )
        return settings

    def described(self, source: Fingerprints) -> dict[str, Any]:
        """The recipe of what is found: the fingerprints' own with these settings, or no more than these."""
        values = {"radius": self.radius, "bucket_limit": self.bucket_limit, "bucket_probe": self.bucket_probe}
        if isinstance(source.recipe, SimhashRecipe):
            return source.recipe.with_(**values).describe()
        if source.recipe is not None:
            return source.recipe.describe()
        return {"method": "hamming", "bits": source.bits, **values}


@contextlib.contextmanager
def _job(
    output: str | Path | None,
    overwrite: bool,
    inputs: Iterable[Path],
    backend: str | None,
    device: int | None,
    gpu_memory: int | str | None,
    threads: int | None,
) -> Iterator[tuple[Path | None, Job]]:
    """What every command needs: a new file that is no input, threads and a backend."""
    if output is not None and any(os.path.realpath(output) == os.path.realpath(path) for path in inputs):
        raise OutputError(f"{output}: is read as input, which would be lost; name another output")
    with (
        _threads(threads),
        contextlib.nullcontext() if output is None else new_file(output, overwrite) as file,
        running(backend, device, gpu_memory) as job,
    ):
        yield file, job


# ------------------------------------------------------------------------------------------------------------- commands


def build(
    fingerprints: Paths,
    output: str | Path,
    *,
    radius: int | None = None,
    num_tables: int | None = None,
    leading_bits: int | None = None,
    memory: int | str | None = None,
    num_queries: int | None = None,
    column: str = "simhash",
    id_column: str | None = None,
    overwrite: bool = False,
    backend: str | None = None,
    device: int | None = None,
    gpu_memory: int | str | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Build an index of fingerprints in files, and save it.

    Parameters
    ----------
    fingerprints, column, id_column
        As in `open_fingerprints`.
    output : path
    radius : int, optional
        The largest distance that queries may ask for; the recipe's, else 3.
    num_tables, leading_bits, memory : int, optional
        At most one of them: take the design of most leading bits in at most so many tables; that of at least so many
        leading bits in each table; or the cheapest in so many bytes (or a size such as "2GB").
    num_queries : int, optional
        How many queries to expect in the index's life; as many as there are fingerprints, unless given.
    overwrite, backend, device, gpu_memory, threads, progress
        As in `pipeline.dedup`.

    Returns
    -------
    dict
        Counts, the design, bytes of the file, timings, and one fingerprint of the index.

    Raises
    ------
    InputError, RecipeMismatchError, OutputError, ParameterError
    """
    if sum(option is not None for option in (num_tables, leading_bits, memory)) > 1:
        raise ParameterError("--tables, --leading-bits and --memory each choose the design; give one of them")
    if num_queries is not None and (num_tables is not None or leading_bits is not None):
        raise ParameterError("--queries chooses among designs; leave it out where --tables or --leading-bits names one")
    budget = None if memory is None else parse_size(memory)
    clock = _Clock(progress)
    source = open_fingerprints(fingerprints, column=column, id_column=id_column)
    settings = _Settings.of(source, radius)
    design = _asked(source.bits, settings.radius, num_tables, leading_bits)
    if Path(output).exists() and not overwrite:  # before the work; `save` looks again
        raise OutputError(f"{output}: exists already; name another output or add --overwrite")
    with _job(None, overwrite, source.files, backend, device, gpu_memory, threads) as (_, job):
        with clock.stage("read"):
            rows = source.read()
        with clock.stage("build"):
            index = HammingIndex(
                rows.fingerprints,
                settings.radius,
                None if source.id_column is None and rows.num_null == 0 else _for_index(rows.ids),
                design=design,
                memory=math.inf if budget is None else budget,
                num_queries=num_queries,
                recipe=None if source.recipe is None else settings.described(source),
                backend=job.backend,
            )
        with clock.stage("write"):
            index.save(output, overwrite)
    return {
        "fingerprints": len(index),
        "null": rows.num_null,
        "bits": source.bits,
        "radius": settings.radius,
        "tables": index.design.num_tables,
        "leading_bits": index.design.prefix,
        "words_met": index.design.words_met(len(index)),
        "file_bytes": os.path.getsize(output),
        "example": hexadecimal(rows.fingerprints[0]) if len(index) else None,
        "recipe": index.recipe,
        "backend": job.backend,
        "timings": clock.seconds,
    }


def _asked(bits: int, radius: int, most_tables: int | None, leading: int | None) -> TableDesign | None:
    """The design that a number of tables or of leading bits names."""
    if leading is not None:
        return TableDesign(bits, radius, leading)
    if most_tables is None:
        return None
    if most_tables < 1:
        raise ParameterError(f"tables {most_tables}: an index has one at least")
    prefix = 0
    while prefix < min(64, bits - radius) and hamming.num_tables(bits, radius, prefix + 1) <= most_tables:
        prefix += 1
    return TableDesign(bits, radius, prefix)


def _for_index(ids: pa.Array) -> np.ndarray:
    """Ids as `HammingIndex` takes them."""
    if pa.types.is_integer(ids.type):
        return ids.to_numpy()
    text = pa.types.is_string(ids.type) or pa.types.is_large_string(ids.type)
    return np.array(ids.to_pylist(), np.str_ if text else np.bytes_)


def _from_index(ids: np.ndarray) -> pa.Array:
    return arrow(ids) if ids.dtype.kind in "iu" else pa.array(ids)


def query(
    index: str | Path,
    fingerprints: Paths | None = None,
    output: str | Path | None = None,
    *,
    values: list[str] | None = None,
    radius: int | None = None,
    nearest: int | None = None,
    column: str = "simhash",
    id_column: str | None = None,
    overwrite: bool = False,
    backend: str | None = None,
    device: int | None = None,
    gpu_memory: int | str | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    show: Any = None,
) -> dict[str, Any]:
    """Ask an index for what is near the fingerprints of files, or near some given as text.

    Parameters
    ----------
    index : path
        What `build` wrote.
    fingerprints, column, id_column
        As in `open_fingerprints`; they are read and answered part by part.
    output : path, optional
        Parquet of query_id, id and distance, the nearest first.
    values : list of str, optional
        Instead of files: hexadecimal, as `parse_fingerprint` reads it. They are their own ids.
    radius : int, optional
        The index's, unless given.
    nearest : int, optional
        At most so many for each query.
    show : callable, optional
        Called with each part of the matches, a pyarrow.Table, as it is found.
    overwrite, backend, device, gpu_memory, threads, progress
        As in `pipeline.dedup`.

    Returns
    -------
    dict
        Counts and timings.

    Raises
    ------
    InputError, RecipeMismatchError, OutputError, ParameterError
    """
    if bool(fingerprints) == bool(values):
        raise ParameterError("ask for the fingerprints of files or for some given by --fingerprint: one of the two")
    if nearest is not None and nearest < 1:
        raise ParameterError(f"nearest {nearest}: ask for one at least")
    clock = _Clock(progress)
    source = open_fingerprints(fingerprints, column=column, id_column=id_column) if fingerprints else None
    files = [] if source is None else source.files
    with _job(output, overwrite, [Path(index), *files], backend, device, gpu_memory, threads) as (file, job):
        opened = HammingIndex.load(index, backend=job.backend)
        bits = opened.design.bits
        if radius is not None and not 0 <= radius <= opened.radius:
            raise ParameterError(
                f"radius {radius} is outside 0 to {opened.radius}, this index's; for more build another with --radius"
            )
        radius = opened.radius if radius is None else radius
        described = {**(opened.recipe or {"method": "hamming", "bits": bits}), "radius": radius}
        if source is None:
            assert values is not None
            asked = np.array([parse_fingerprint(text, bits) for text in values], np.uint64)
            chunks: Iterable[Chunk] = [Chunk(asked, pa.array(values, pa.string()), 0)]
            query_type = pa.string()
        else:
            if source.bits != bits:
                raise InputError(f"{files[0]}: fingerprints of {source.bits} bits, those of {index} have {bits}")
            _check_index(opened.recipe, str(index), source)
            chunks, query_type = source.chunks(QUERY_BYTES), source.id_type
        none, _ = opened.query(np.empty((0, 2) if bits == 128 else 0, np.uint64))
        schema = pa.schema(
            [("query_id", query_type), ("id", _from_index(none.values).type), ("distance", pa.uint8())],
            {METADATA_KEY: json.dumps(described).encode()},
        )
        counts = {"queries": 0, "null": 0, "answered": 0, "matches": 0}
        with clock.stage("query"), _Writer(file, schema) as writer:
            for chunk in chunks:
                if nearest is None:
                    ids, distances = opened.query(chunk.fingerprints, radius)
                else:
                    ids, distances = opened.nearest(chunk.fingerprints, nearest)
                near = distances.values <= radius
                asking = np.repeat(np.arange(len(ids)), ids.sizes)[near]
                found, distance = ids.values[near], distances.values[near]
                for part in _parts(len(asking)):
                    columns = [chunk.ids.take(arrow(asking[part])), _from_index(found[part]), arrow(distance[part])]
                    table = pa.table(columns, schema=schema)
                    writer.write(table)
                    if show is not None:
                        show(table)
                counts["queries"] += len(ids)
                counts["null"] += chunk.num_null
                counts["answered"] += len(np.unique(asking))
                counts["matches"] += len(asking)
                clock.report("query", counts["queries"], None)
    return {
        **counts,
        "fingerprints": len(opened),
        "bits": bits,
        "radius": radius,
        "recipe": described,
        "backend": job.backend,
        "timings": clock.seconds,
    }


def _check_index(recipe: dict[str, Any], name: str, source: Fingerprints) -> None:
    """Refuse fingerprints of another recipe than an index's, or of one where the other has none."""
    sketching = {} if source.recipe is None else source.recipe.sketching()
    if bool(recipe) != bool(sketching):
        without, has = (str(source.files[0]), name) if recipe else (name, str(source.files[0]))
        raise _one_without(without, has)
    for key, value in sketching.items():
        if recipe.get(key) != value:
            raise RecipeMismatchError(
                f"{source.files[0]}: made with {key} = {value}, what is in {name} with {recipe.get(key)}; "
                "make them alike, or build another index"
            )


def join(
    existing: Paths,
    queries: Paths,
    output: str | Path,
    *,
    radius: int | None = None,
    bucket_limit: int | None = None,
    bucket_probe: int | None = None,
    column: str = "simhash",
    id_column: str | None = None,
    overwrite: bool = False,
    backend: str | None = None,
    device: int | None = None,
    gpu_memory: int | str | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Find which fingerprints of a large set are near some of a smaller one (section 3.3).

    The queries are held in memory, in tables; the existing fingerprints are read 64 MB at a time, and what matches is
    written as it is found.

    Parameters
    ----------
    existing, queries, column, id_column
        As in `open_fingerprints`.
    output : path
        Parquet of id_a (existing), id_b (query) and distance.
    radius, bucket_limit, bucket_probe : int, optional
        As in `hamming.scan`; the recipe's, unless given, else 3, 512 and 32.
    overwrite, backend, device, gpu_memory, threads, progress
        As in `pipeline.dedup`.

    Returns
    -------
    dict
        Counts and timings.

    Raises
    ------
    InputError, RecipeMismatchError, OutputError, ParameterError
    """
    clock = _Clock(progress)
    source = open_fingerprints(existing, column=column, id_column=id_column)
    asked = open_fingerprints(queries, column=column, id_column=id_column)
    if source.bits != asked.bits:
        raise InputError(
            f"{asked.files[0]}: fingerprints of {asked.bits} bits, {source.files[0]} has {source.bits}; use one length"
        )
    _check_recipes(source.recipe, str(source.files[0]), asked.recipe, str(asked.files[0]))
    settings = _Settings.of(asked, radius, bucket_limit, bucket_probe)
    recipe = settings.described(asked)
    counts = dict.fromkeys(("existing", "queries", "null", "matched", "pairs", "large_buckets", "uncompared_pairs"), 0)
    with _job(output, overwrite, [*source.files, *asked.files], backend, device, gpu_memory, threads) as (file, job):
        with clock.stage("read"):
            rows = asked.read()
        schema = _pairs_schema(source.id_type, rows.ids.type, recipe)
        held: deque[Chunk] = deque()

        def chunks() -> Iterator[np.ndarray]:
            for chunk in source.chunks(CHUNK_BYTES):
                held.append(chunk)
                yield chunk.fingerprints

        matched = np.zeros(len(rows.ids), bool)
        with clock.stage("match"), _Writer(file, schema) as writer:
            for found in hamming.scan(
                chunks(),
                rows.fingerprints,
                settings.radius,
                bucket_limit=settings.bucket_limit,
                bucket_probe=settings.bucket_probe,
                backend=job.backend,
            ):
                chunk = held.popleft()
                row = found.row - counts["existing"]
                for part in _parts(len(row)):
                    left, right = chunk.ids.take(arrow(row[part])), rows.ids.take(arrow(found.query[part]))
                    writer.write(pa.table([left, right, arrow(found.distance[part])], schema=schema))
                matched[found.query] = True
                counts["existing"] += len(chunk.ids)
                counts["null"] += chunk.num_null
                counts["pairs"] += len(row)
                counts["large_buckets"] += int(found.num_large)
                counts["uncompared_pairs"] += int(found.num_uncompared)
                clock.report("match", counts["existing"], None)
    counts["null"] += rows.num_null
    counts.update(queries=len(rows.ids), matched=int(matched.sum()))
    return {
        **counts,
        "bits": source.bits,
        "radius": settings.radius,
        "recipe": recipe,
        "backend": job.backend,
        "timings": clock.seconds,
    }


def pairs(
    fingerprints: Paths,
    output: str | Path,
    *,
    radius: int | None = None,
    bucket_limit: int | None = None,
    bucket_probe: int | None = None,
    column: str = "simhash",
    id_column: str | None = None,
    overwrite: bool = False,
    backend: str | None = None,
    device: int | None = None,
    gpu_memory: int | str | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Find all pairs of a set within a radius.

    Parameters
    ----------
    fingerprints, column, id_column
        As in `open_fingerprints`.
    output : path
        Parquet of id_a, id_b and distance, in input order: the pairs of distinct fingerprints, and one of distance 0
        from each repeat to the first row with its fingerprint.
    radius, bucket_limit, bucket_probe : int, optional
        As in `hamming.pairs`; the recipe's, unless given, else 3, 512 and 32.
    overwrite, backend, device, gpu_memory, threads, progress
        As in `pipeline.dedup`.

    Returns
    -------
    dict
        Counts, the design and timings.

    Raises
    ------
    InputError, RecipeMismatchError, OutputError, ParameterError
    """
    clock = _Clock(progress)
    source = open_fingerprints(fingerprints, column=column, id_column=id_column)
    settings = _Settings.of(source, radius, bucket_limit, bucket_probe)
    recipe = settings.described(source)
    with _job(output, overwrite, source.files, backend, device, gpu_memory, threads) as (file, job):
        with clock.stage("read"):
            rows = source.read()
        with clock.stage("match"):
            found = job.with_room(
                partial(
                    hamming.pairs,
                    rows.fingerprints,
                    settings.radius,
                    bucket_limit=settings.bucket_limit,
                    bucket_probe=settings.bucket_probe,
                    backend=job.backend,
                )
            )
        schema = _pairs_schema(rows.ids.type, rows.ids.type, recipe)
        with clock.stage("write"), _Writer(file, schema) as writer:
            for part in _parts(len(found.left)):
                left, right = rows.ids.take(arrow(found.left[part])), rows.ids.take(arrow(found.right[part]))
                writer.write(pa.table([left, right, arrow(found.distance[part])], schema=schema))
    return {
        "fingerprints": len(rows.ids),
        "null": rows.num_null,
        "identical": int(np.count_nonzero(found.first != np.arange(len(found.first)))),
        "pairs": len(found.left),
        "large_buckets": int(found.num_large),
        "uncompared_pairs": int(found.num_uncompared),
        "bits": source.bits,
        "radius": settings.radius,
        "tables": found.design.num_tables,
        "leading_bits": found.design.prefix,
        "recipe": recipe,
        "backend": job.backend,
        "timings": clock.seconds,
    }


def _pairs_schema(left: pa.DataType, right: pa.DataType, recipe: dict[str, Any]) -> pa.Schema:
    columns = [("id_a", left), ("id_b", right), ("distance", pa.uint8())]
    return pa.schema(columns, {METADATA_KEY: json.dumps(recipe).encode()})


def _parts(count: int) -> Iterator[slice]:
    return (slice(start, start + WRITE_ROWS) for start in range(0, count, WRITE_ROWS))


class _Writer(contextlib.AbstractContextManager):
    """A Parquet file that tables are added to; none where there is no path."""

    def __init__(self, path: Path | None, schema: pa.Schema) -> None:
        self._file = None if path is None else pq.ParquetWriter(path, schema, compression="zstd")

    def write(self, table: pa.Table) -> None:
        if self._file is not None:
            self._file.write_table(table)

    def __exit__(self, *_: Any) -> None:
        if self._file is not None:
            self._file.close()


# ------------------------------------------------------------------------------------------------------ as people write


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
