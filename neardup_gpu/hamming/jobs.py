"""What the commands of `neardup hamming` make of fingerprints in files.

>>> build("simhashes.parquet", "index.hamming", radius=3)
>>> join("crawled.parquet", "new.parquet", "pairs.parquet", radius=3)
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from neardup_gpu.kernels._huffman import information_bits

from ..data import arrow
from ..definitions import METADATA_KEY
from ..engine.clock import Clock, Progress, with_bars
from ..engine.contract import Runtime as Job
from ..engine.memory import parse_size
from ..engine.settings import Engine
from ..errors import InputError, ParameterError, RecipeMismatchError
from ..methods.simhash import SimHash
from ..store.arrays import is_index
from ..store.artefacts import is_table
from ..store.outputs import new_file
from ..store.parquet import TableWriter
from . import index as hamming
from .files import (
    Chunk,
    Fingerprints,
    Paths,
    check_recipes,
    hexadecimal,
    one_without,
    open_fingerprints,
    parse_fingerprint,
)
from .index import CHUNK_BYTES, HammingIndex, TableDesign

QUERY_BYTES = 8 << 20  # of queries that an index answers at once
WRITE_ROWS = 1 << 20  # of a table written at once, so that their ids stay below 2 GB
WRITE_BYTES = 1 << 28  # of the same, and of the ids that an index answers

# --------------------------------------------------------------------------------------------------------- the settings


@dataclass(frozen=True)
class _Settings:
    """Radius and limits of a job: what the caller says, else the recipe, else a recipe's defaults."""

    radius: int
    bucket_limit: int
    bucket_probe: int

    @classmethod
    def of(
        cls, source: Fingerprints, radius: int | None, bucket_limit: int | None = None, bucket_probe: int | None = None
    ) -> _Settings:
        recipe = SimHash() if source.recipe is None else source.recipe.method
        given = {"radius": radius, "bucket_limit": bucket_limit, "bucket_probe": bucket_probe}
        settings = cls(**{name: getattr(recipe, name) if value is None else value for name, value in given.items()})
        if not 0 <= settings.radius < source.bits:
            raise ParameterError(f"radius {settings.radius} is outside 0 to {source.bits - 1}; 3 is usual")
        if settings.bucket_limit < 2 or settings.bucket_probe < 1:
            raise ParameterError(
                f"bucket_limit {settings.bucket_limit} and bucket_probe {settings.bucket_probe}: "
                "the limit is at least 2, the probe at least 1"
            )
        return settings

    def described(self, source: Fingerprints) -> dict[str, Any]:
        """The recipe of what is found: the fingerprints' own with these settings, or no more than these."""
        values = {"radius": self.radius, "bucket_limit": self.bucket_limit, "bucket_probe": self.bucket_probe}
        if source.recipe is not None and source.recipe.method.name == "simhash":
            return source.recipe.with_(**values).describe()
        if source.recipe is not None:
            return source.recipe.describe()
        return {"method": "hamming", "bits": source.bits, **values}


@contextlib.contextmanager
def _job(
    output: str | Path | None,
    overwrite: bool,
    reads: Iterable[Path],
    backend: str | None,
    device: int | None,
    gpu_memory: int | str | None,
    threads: int | None,
    is_ours: Callable[[Path], bool] = is_table,
) -> Iterator[tuple[Path | None, Job]]:
    """What every command needs: a new file that is no input, threads and a backend."""
    with (
        contextlib.nullcontext() if output is None else new_file(output, overwrite, reads, is_ours) as file,
        Engine(backend=backend, device=device, memory=gpu_memory, threads=threads).start() as job,
    ):
        yield file, job


# ------------------------------------------------------------------------------------------------------------- commands


@with_bars
def build(
    fingerprints: Paths,
    output: str | Path,
    *,
    radius: int | None = None,
    num_tables: int | None = None,
    leading_bits: int | None = None,
    memory: int | str | None = None,
    num_queries: int | None = None,
    compress: bool = False,
    column: str = "simhash",
    id_column: str | None = None,
    overwrite: bool = False,
    backend: str | None = None,
    device: int | None = None,
    gpu_memory: int | str | None = None,
    threads: int | None = None,
    progress: Progress | bool | None = None,
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
        How many queries to expect in the index's life, 0 at least; as many as there are fingerprints, unless given.
    compress : bool
        See `HammingIndex`.
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
    if num_queries is not None and num_queries < 0:
        raise ParameterError(f"--queries {num_queries}: expect 0 at least")
    budget = None if memory is None else parse_size(memory, "--memory")
    clock = Clock(progress)
    source = open_fingerprints(fingerprints, column=column, id_column=id_column)
    settings = _Settings.of(source, radius)
    design = _asked(source.bits, settings.radius, num_tables, leading_bits)
    with _job(output, overwrite, source.files, backend, device, gpu_memory, threads, is_index) as (file, job):
        assert file is not None
        with clock.stage("read"):
            rows = source.read()
        with clock.stage("build"):
            index = HammingIndex(
                rows.fingerprints,
                settings.radius,
                None if source.id_column is None and rows.num_null == 0 else rows.ids,
                design=design,
                memory=math.inf if budget is None else budget,
                num_queries=num_queries,
                compress=compress,
                recipe=None if source.recipe is None else settings.described(source),
                backend=job.backend,
            )
        with clock.stage("write"):
            index.write(file)
            num_bytes = file.stat().st_size
    return {
        "fingerprints": len(index),
        "null": rows.num_null,
        "bits": source.bits,
        "radius": settings.radius,
        "tables": index.design.num_tables,
        "leading_bits": index.design.prefix,
        "bits_a_word": index.tables.bits_a_word,
        "least_bits_a_word": information_bits(len(index.tables)) / max(1, len(index.tables)),
        "words_met": index.design.words_met(len(index.tables)),
        "file_bytes": num_bytes,
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


def _answered(index: HammingIndex, rows: np.ndarray) -> pa.Array:
    """What names some rows of an index."""
    return arrow(rows) if index.ids is None else index.ids.arrow(rows)


@with_bars
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
    progress: Progress | bool | None = None,
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
    if values and (id_column is not None or column != "simhash"):
        raise ParameterError("--column and --id-column say how files are read; leave them out with --fingerprint")
    if nearest is not None and nearest < 1:
        raise ParameterError(f"nearest {nearest}: ask for one at least")
    clock = Clock(progress)
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
        id_type = _answered(opened, np.empty(0, np.int64)).type
        schema = pa.schema(
            [("query_id", query_type), ("id", id_type), ("distance", pa.uint8())],
            {METADATA_KEY: json.dumps(described).encode()},
        )
        counts = {"queries": 0, "null": 0, "answered": 0, "matches": 0}
        with clock.stage("query"), _writer(file, schema) as write:
            for chunk in chunks:
                for asking, row, distance in opened.parts(chunk.fingerprints, radius, nearest):
                    if not len(row):
                        continue
                    sizes = np.full(len(row), WRITE_BYTES // WRITE_ROWS)
                    if opened.ids is not None:
                        sizes += opened.ids.sizes(row)
                    for part in hamming.slices(np.arange(len(row)), sizes, WRITE_BYTES):
                        columns = [chunk.ids.take(arrow(asking[part])), _answered(opened, row[part])]
                        table = pa.table([*columns, arrow(distance[part])], schema=schema)
                        write(table)
                        if show is not None:
                            show(table)
                    counts["answered"] += len(np.unique(asking))
                    counts["matches"] += len(asking)
                counts["queries"] += len(chunk.ids)
                counts["null"] += chunk.num_null
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
        raise one_without(without, has)
    for key, value in sketching.items():
        if recipe.get(key) != value:
            raise RecipeMismatchError(
                f"{source.files[0]}: made with {key} = {value}, what is in {name} with {recipe.get(key)}; "
                "make them alike, or build another index"
            )


@with_bars
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
    progress: Progress | bool | None = None,
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
    clock = Clock(progress)
    source = open_fingerprints(existing, column=column, id_column=id_column)
    asked = open_fingerprints(queries, column=column, id_column=id_column)
    if source.bits != asked.bits:
        raise InputError(
            f"{asked.files[0]}: fingerprints of {asked.bits} bits, {source.files[0]} has {source.bits}; use one length"
        )
    check_recipes(source.recipe, str(source.files[0]), asked.recipe, str(asked.files[0]))
    settings = _Settings.of(asked, radius, bucket_limit, bucket_probe)
    recipe = settings.described(asked)
    counts = dict.fromkeys(("existing", "queries", "null", "matched", "pairs", "large_buckets", "uncompared_pairs"), 0)
    with _job(output, overwrite, [*source.files, *asked.files], backend, device, gpu_memory, threads) as (file, job):
        with clock.stage("read"):
            rows = asked.read()
        schema = _pairs_schema(source.id_type, rows.ids.type, recipe)
        held: list[Chunk] = []

        def chunks() -> Iterator[np.ndarray]:
            """Each chunk is counted when the next one is asked for: what it matches has been written by then."""
            for chunk in source.chunks(CHUNK_BYTES):
                held[:] = [chunk]
                yield chunk.fingerprints
                counts["existing"] += len(chunk.ids)
                counts["null"] += chunk.num_null
                clock.report("match", counts["existing"], None)

        matched = np.zeros(len(rows.ids), bool)
        with clock.stage("match"), _writer(file, schema) as write:
            for found in hamming.scan(
                chunks(),
                rows.fingerprints,
                settings.radius,
                bucket_limit=settings.bucket_limit,
                bucket_probe=settings.bucket_probe,
                backend=job.backend,
            ):
                (chunk,) = held
                row = found.row - counts["existing"]
                for part in _parts(len(row)):
                    left, right = chunk.ids.take(arrow(row[part])), rows.ids.take(arrow(found.query[part]))
                    write(pa.table([left, right, arrow(found.distance[part])], schema=schema))
                matched[found.query] = True
                counts["pairs"] += len(row)
                counts["large_buckets"] += int(found.num_large)
                counts["uncompared_pairs"] += int(found.num_uncompared)
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


@with_bars
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
    progress: Progress | bool | None = None,
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
    clock = Clock(progress)
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
        with clock.stage("write"), _writer(file, schema) as write:
            for part in _parts(len(found.left)):
                left, right = rows.ids.take(arrow(found.left[part])), rows.ids.take(arrow(found.right[part]))
                write(pa.table([left, right, arrow(found.distance[part])], schema=schema))
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


@contextlib.contextmanager
def _writer(path: Path | None, schema: pa.Schema) -> Iterator[Callable[[pa.Table], None]]:
    """What adds tables to a Parquet file; nothing does where there is no path."""
    if path is None:
        yield lambda table: None
        return
    with TableWriter(path, schema) as file:
        yield file.write
