"""Jobs on fingerprints in files: build an index, query it, join two sets, find the pairs of one."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from .. import checks
from ..data import arrow
from ..engine.clock import Clock, Progress, with_bars
from ..engine.contract import Backend, Runtime
from ..engine.memory import parse_size
from ..engine.settings import Engine, EngineName, as_engine
from ..errors import InputError, ParameterError
from ..fingerprint_options import FingerprintColumns, Near, NearQueries, Query, TableOptions, options_of
from ..methods.simhash import distances
from ..methods.table_design import LEADING, TableDesign, given_or_cheapest, most_leading_bits
from ..store.artefacts import is_table
from ..store.outputs import new_file
from ..store.parquet import TableWriter
from ..store.spool import Spool
from . import joins, near_pairs
from .files import Chunk, FingerprintFiles, Paths
from .index import HammingIndex
from .joins import CHUNK_BYTES
from .members import slices
from .recipes import MatchSettings, check_queries, check_recipes, schema_with
from .sorted_runs import SortedRuns
from .storage import INDEX
from .values import as_fingerprints, hexadecimal, parse_fingerprint

QUERY_BYTES = 8 << 20  # of queries that an index answers at once
WRITE_ROWS = 1 << 20  # of a table that is written at once, so that their ids stay below 2 GB
WRITE_BYTES = 1 << 28  # of the same, and of the ids that an index answers with

Write = Callable[[list[pa.Array]], None]


@contextlib.contextmanager
def _job(
    output: str | Path | None,
    overwrite: bool,
    reads: Iterable[Path],
    engine: EngineName | Engine,
    is_ours: Callable[[Path], bool] = is_table,
) -> Iterator[tuple[Path | None, Runtime]]:
    """Open the new file, which must not be one of the inputs, and start the engine."""
    with (
        contextlib.nullcontext() if output is None else new_file(output, overwrite, reads, is_ours) as file,
        as_engine(engine).start() as job,
    ):
        yield file, job


# -------------------------------------------------------------------------------------------------------------- build


@with_bars
def build(
    fingerprints: Paths,
    output: str | Path,
    *,
    radius: int | None = None,
    tables: TableOptions | None = None,
    columns: FingerprintColumns | None = None,
    overwrite: bool = False,
    engine: EngineName | Engine = "auto",
    progress: Progress | bool | None = None,
) -> dict[str, Any]:
    """Build an index of fingerprints in files, and save it.

    Parameters
    ----------
    fingerprints : path or list of paths
        The fingerprints: Parquet or Arrow IPC with a column of fingerprints, .npy of uint64, or a folder of such files.
    output : path
        Where the index goes.
    radius : int, default None
        The largest distance that queries may ask for; the recipe's, else 3, unless given.
    tables : TableOptions, default None
        Which design the tables have, and whether they are compressed.
    columns : FingerprintColumns, default None
        The columns of fingerprints and of ids.
    overwrite : bool, default False
        Replace the file that is at `output`.
    engine : Engine, "auto", "cpu", "gpu" or "reference", default "auto"
        Where to run. Changes no result.
    progress : bool or callable, default None
        True shows bars. A function is called with a stage's name, the number of items done and their total.

    Returns
    -------
    dict
        Counts, the design, bytes of the file, timings, and one fingerprint of the index.

    Raises
    ------
    InputError, RecipeMismatchError, OutputError, ParameterError
        If a file cannot be read or written, fingerprints may not be compared, or a setting is impossible.
    """
    tables, clock = options_of(TableOptions, tables), Clock(progress)
    budget = math.inf if tables.table_memory is None else parse_size(tables.table_memory, "table_memory")
    source = options_of(FingerprintColumns, columns).open(fingerprints)
    settings = MatchSettings.of(source.recipe, source.bits, asdict(Near(radius=radius)))
    design = _asked_design(source.bits, settings.radius, tables.num_tables, tables.leading_bits)
    with _job(output, overwrite, source.files, engine, INDEX.matches) as (file, job):
        assert file is not None
        with clock.stage("read"):
            rows = _read(source, clock)
        with clock.stage("build"):
            if design is None and budget < math.inf:
                load = len(rows.ids) if tables.num_queries is None else tables.num_queries
                values = as_fingerprints(rows.fingerprints, "fingerprints")
                design = given_or_cheapest(None, values, settings.radius, num_queries=load, memory=budget)
            index = HammingIndex(
                rows.fingerprints,
                settings.radius,
                None if source.id_column is None and rows.num_null == 0 else rows.ids,
                design=design,
                num_queries=tables.num_queries,
                compress=tables.compress,
                recipe=None if source.recipe is None else settings.described(source.recipe, source.bits),
                backend=job.backend,
            )
        with clock.stage("write"):
            index.write(file)
            file_bytes = file.stat().st_size
    return {
        "fingerprints": len(index),
        "null": rows.num_null,
        "bits": index.design.bits,
        "radius": index.radius,
        "tables": index.design.num_tables,
        "leading_bits": index.design.prefix,
        "bits_a_word": index.tables.bits_a_word,
        "least_bits_a_word": index.tables.least_bits_a_word,
        "words_met": index.design.words_met(len(index.tables)),
        "example": hexadecimal(rows.fingerprints[0]) if len(index) else None,
        "recipe": index.recipe,
        "file_bytes": file_bytes,
        "backend": job.backend,
        "timings": clock.seconds,
    }


def _asked_design(bits: int, radius: int, most_tables: int | None, leading_bits: int | None) -> TableDesign | None:
    """The design for a number of tables or of leading bits; None if neither is given."""
    if leading_bits is not None:
        return TableDesign(bits, radius, checks.integer("leading_bits", leading_bits, 0, min(LEADING, bits - radius)))
    if most_tables is not None:
        return most_leading_bits(bits, radius, checks.integer("num_tables", most_tables, 1))
    return None


# -------------------------------------------------------------------------------------------------------------- query


@with_bars
def query(
    index: str | Path,
    fingerprints: Paths | None = None,
    output: str | Path | None = None,
    *,
    query: Query | None = None,
    overwrite: bool = False,
    engine: EngineName | Engine = "auto",
    progress: Progress | bool | None = None,
    show: Callable[[pa.Table], None] | None = None,
) -> dict[str, Any]:
    """Query an index with the fingerprints of files, or with fingerprints given as text.

    Parameters
    ----------
    index : path
        What `build` wrote.
    fingerprints : path or list of paths, default None
        The queries, which are read and answered part by part: Parquet or Arrow IPC with a column of fingerprints, .npy
        of uint64, or a folder of such files.
    output : path, default None
        Parquet of query_id, id and distance, the nearest first.
    query : Query, default None
        Queries in place of files, as hexadecimal text; the columns of files; the radius and the most matches.
    overwrite : bool, default False
        Replace the file that is at `output`.
    engine : Engine, "auto", "cpu", "gpu" or "reference", default "auto"
        Where to run. Changes no result.
    progress : bool or callable, default None
        True shows bars. A function is called with a stage's name, the number of items done and their total.
    show : callable, default None
        Called with each part of the matches, as it is found.

    Returns
    -------
    dict
        Counts and timings.

    Raises
    ------
    InputError, RecipeMismatchError, OutputError, ParameterError
        If a file cannot be read or written, fingerprints may not be compared, or a setting is impossible.
    """
    query, clock = options_of(Query, query), Clock(progress)
    values, radius = list(query.values or ()), query.radius
    if bool(fingerprints) == bool(values):
        raise ParameterError(
            "values and fingerprints: give one of the two, hexadecimal values or files of fingerprints"
        )
    source = query.open(fingerprints) if fingerprints else None
    reads = [Path(index), *(source.files if source else [])]
    with _job(output, overwrite, reads, engine) as (file, job):
        opened = HammingIndex.load(index, backend=job.backend)
        advice = "that is the index's radius, for more build another index"
        radius = opened.radius if radius is None else checks.integer("radius", radius, 0, opened.radius, hint=advice)
        recipe = {**(opened.recipe or {"method": "hamming", "bits": opened.design.bits}), "radius": radius}
        chunks, query_type = _queries(opened, str(index), source, values)
        id_type = _ids_of(opened, np.empty(0, np.int64)).type
        schema = schema_with([("query_id", query_type), ("id", id_type), ("distance", pa.uint8())], recipe)
        counts = {"queries": 0, "null": 0, "answered": 0, "matches": 0}
        with clock.stage("query"), _writer(file, schema, show) as write:
            for chunk in chunks:
                for found in _answers(opened, chunk, radius, query.nearest, counts):
                    write(found)
                clock.report("query", counts["queries"], _of(source, counts["queries"]))
    facts = {"fingerprints": len(opened), "bits": opened.design.bits, "radius": radius, "recipe": recipe}
    return {**counts, **facts, "backend": job.backend, "timings": clock.seconds}


def _queries(
    index: HammingIndex, name: str, source: FingerprintFiles | None, values: list[str] | None
) -> tuple[Iterable[Chunk], pa.DataType]:
    """The queries for an index, from files or from text, chunk by chunk; and the type of their ids."""
    bits = index.design.bits
    if source is None:
        assert values is not None
        fingerprints = np.array([parse_fingerprint(text, bits) for text in values], np.uint64)
        return [Chunk(fingerprints, pa.array(values, pa.string()), 0)], pa.string()
    if source.bits != bits:
        raise InputError(f"{source.name}: fingerprints of {source.bits} bits, {name} has {bits}")
    check_queries(index.recipe, name, source.recipe, source.name)
    return source.chunks(QUERY_BYTES), source.id_type


def _answers(
    index: HammingIndex, chunk: Chunk, radius: int, nearest: int | None, counts: dict[str, int]
) -> Iterator[list[pa.Array]]:
    """Yield the answers of an index to a chunk of queries, as columns of bounded size; add to `counts`."""
    for asking, row, distance in index.parts(chunk.fingerprints, radius, nearest):
        for part in _slices_to_write(index, row):
            yield [chunk.ids.take(arrow(asking[part])), _ids_of(index, row[part]), arrow(distance[part])]
        counts["answered"] += len(np.unique(asking))
        counts["matches"] += len(asking)
    counts["queries"] += len(chunk.ids)
    counts["null"] += chunk.num_null


def _slices_to_write(index: HammingIndex, rows: np.ndarray) -> Iterator[slice]:
    """Slices of some rows of an index, small enough for their ids to be written at once; none if empty."""
    if not len(rows):
        return
    sizes = np.full(len(rows), WRITE_BYTES // WRITE_ROWS)
    if index.ids is not None:
        sizes += index.ids.sizes(rows)
    yield from slices(np.arange(len(rows)), sizes, WRITE_BYTES)


def _ids_of(index: HammingIndex, rows: np.ndarray) -> pa.Array:
    """The ids of some rows of an index, or the row numbers if it has no ids."""
    return arrow(rows) if index.ids is None else index.ids.arrow(rows)


# --------------------------------------------------------------------------------------------------------------- join


@with_bars
def join(
    existing: Paths,
    queries: Paths,
    output: str | Path,
    *,
    near: NearQueries | None = None,
    columns: FingerprintColumns | None = None,
    overwrite: bool = False,
    engine: EngineName | Engine = "auto",
    progress: Progress | bool | None = None,
) -> dict[str, Any]:
    """Find which fingerprints of a large set are near some of a smaller one (section 3.3).

    The queries are held in memory, in tables; the existing fingerprints are read 64 MB at a time, and matches are
    written as they are found.

    Parameters
    ----------
    existing : path or list of paths
        The large set: Parquet or Arrow IPC with a column of fingerprints, .npy of uint64, or a folder of such files.
    queries : path or list of paths
        The smaller set: Parquet or Arrow IPC with a column of fingerprints, .npy of uint64, or a folder of such files.
    output : path
        Parquet of id_a (existing), id_b (query) and distance.
    near : NearQueries, default None
        The radius, and which fingerprints of large buckets are compared.
    columns : FingerprintColumns, default None
        The columns of fingerprints and of ids.
    overwrite : bool, default False
        Replace the file that is at `output`.
    engine : Engine, "auto", "cpu", "gpu" or "reference", default "auto"
        Where to run. Changes no result.
    progress : bool or callable, default None
        True shows bars. A function is called with a stage's name, the number of items done and their total.

    Returns
    -------
    dict
        Counts and timings.

    Raises
    ------
    InputError, RecipeMismatchError, OutputError, ParameterError
        If a file cannot be read or written, fingerprints may not be compared, or a setting is impossible.
    """
    clock, near, columns = Clock(progress), options_of(NearQueries, near), options_of(FingerprintColumns, columns)
    source, query_source = columns.open(existing), columns.open(queries)
    if source.bits != query_source.bits:
        raise InputError(
            f"{query_source.name}: fingerprints of {query_source.bits} bits, {source.name} has {source.bits}; use one "
            "length"
        )
    check_recipes(source.recipe, source.name, query_source.recipe, query_source.name)
    settings = MatchSettings.of(query_source.recipe, query_source.bits, asdict(near))
    recipe = settings.described(query_source.recipe, query_source.bits)
    with _job(output, overwrite, [*source.files, *query_source.files], engine) as (file, job):
        with clock.stage("read"):
            rows = _read(query_source, clock)
        schema = _pairs_schema(source.id_type, rows.ids.type, recipe)
        with clock.stage("match"), _writer(file, schema) as write:
            counts = _scan_files(source, rows, settings, write, clock, job.backend)
    facts = {"bits": source.bits, "radius": settings.radius, "recipe": recipe}
    return {**counts, **facts, "backend": job.backend, "timings": clock.seconds}


def _scan_files(
    source: FingerprintFiles, queries: Chunk, settings: MatchSettings, write: Write, clock: Clock, backend: Backend
) -> dict[str, int]:
    """Write the matches of existing fingerprints, read chunk by chunk; returns the counts."""
    chunk, start = Chunk(np.empty(0, np.uint64), pa.array([]), 0), 0  # the scanned chunk, and its first row
    num_null, matched = queries.num_null, np.zeros(len(queries.ids), bool)

    def chunks() -> Iterator[np.ndarray]:
        """A chunk is finished when the next one is read: what it matches has been written by then."""
        nonlocal chunk, start, num_null
        for chunk in source.chunks(CHUNK_BYTES):
            yield chunk.fingerprints
            start += len(chunk.ids)
            num_null += chunk.num_null
            clock.report("match", start, _of(source, start))

    counts = {"pairs": 0, "large_buckets": 0, "uncompared_pairs": 0}
    for found in joins.scan(chunks(), queries.fingerprints, **asdict(settings), backend=backend):
        for part in _parts(len(found.row)):
            left, right = chunk.ids.take(arrow(found.row[part] - start)), queries.ids.take(arrow(found.query[part]))
            write([left, right, arrow(found.distance[part])])
        matched[found.query] = True
        counts["pairs"] += len(found.row)
        counts["large_buckets"] += int(found.num_large)
        counts["uncompared_pairs"] += int(found.num_uncompared)
    sizes = {"existing": start, "queries": len(queries.ids), "null": num_null, "matched": int(matched.sum())}
    return {**sizes, **counts}


# -------------------------------------------------------------------------------------------------------------- pairs


@with_bars
def pairs(
    fingerprints: Paths,
    output: str | Path,
    *,
    near: Near | None = None,
    columns: FingerprintColumns | None = None,
    overwrite: bool = False,
    engine: EngineName | Engine = "auto",
    progress: Progress | bool | None = None,
) -> dict[str, Any]:
    """Find all pairs of a set within a radius.

    Pairs that are too many for memory wait in a temporary file, 8 bytes for each time that a pair is found.

    Parameters
    ----------
    fingerprints : path or list of paths
        The set: Parquet or Arrow IPC with a column of fingerprints, .npy of uint64, or a folder of such files.
    output : path
        Parquet of id_a, id_b and distance, in input order: the pairs of distinct fingerprints, and one of distance 0
        from each repeat to the first row with its fingerprint.
    near : Near, default None
        The radius, and which fingerprints of large buckets are compared.
    columns : FingerprintColumns, default None
        The columns of fingerprints and of ids.
    overwrite : bool, default False
        Replace the file that is at `output`.
    engine : Engine, "auto", "cpu", "gpu" or "reference", default "auto"
        Where to run. Changes no result.
    progress : bool or callable, default None
        True shows bars. A function is called with a stage's name, the number of items done and their total.

    Returns
    -------
    dict
        Counts, the design and timings.

    Raises
    ------
    InputError, RecipeMismatchError, OutputError, ParameterError
        If a file cannot be read or written, fingerprints may not be compared, or a setting is impossible.
    """
    clock, near = Clock(progress), options_of(Near, near)
    source = options_of(FingerprintColumns, columns).open(fingerprints)
    settings = MatchSettings.of(source.recipe, source.bits, asdict(near))
    recipe = settings.described(source.recipe, source.bits)
    temporary = as_engine(engine).temp_dir or Path(output).parent
    with _job(output, overwrite, source.files, engine) as (file, job), Spool(temporary) as spool:
        with clock.stage("read"):
            rows = _read(source, clock)
        values = as_fingerprints(rows.fingerprints, "fingerprints")
        with clock.stage("match"):
            runs = SortedRuns(len(values), spool)
            limits = settings.bucket_limit, settings.bucket_probe
            find = partial(near_pairs.found_pairs, values, settings.radius, limits, job.backend, runs=runs)
            clock.report("match", 0, len(values))
            found = job.run(find)
            clock.report("match", len(values), len(values))
        schema, num_pairs = _pairs_schema(rows.ids.type, rows.ids.type, recipe), 0
        with clock.stage("write"), _writer(file, schema) as write:
            for left, right in runs.read():
                num_pairs += len(left)
                distance = distances(values, left, right)
                for part in _parts(len(left)):
                    ids = (rows.ids.take(arrow(each[part])) for each in (left, right))
                    write([*ids, arrow(distance[part])])
    return {
        "fingerprints": len(rows.ids),
        "null": rows.num_null,
        "identical": int(np.count_nonzero(found.first != np.arange(len(found.first)))),
        "pairs": num_pairs,
        "large_buckets": found.num_large,
        "uncompared_pairs": found.num_uncompared,
        "tables": found.design.num_tables,
        "leading_bits": found.design.prefix,
        "bits": source.bits,
        "radius": settings.radius,
        "recipe": recipe,
        "backend": job.backend,
        "timings": clock.seconds,
    }


# ------------------------------------------------------------------------------------------------------ their progress


def _read(source: FingerprintFiles, clock: Clock) -> Chunk:
    """All fingerprints of some files."""
    rows = source.read()
    clock.report("read", len(rows.ids), len(rows.ids))
    return rows


def _of(source: FingerprintFiles | None, done: int) -> int | None:
    """Return the total number of rows, if the headers of the files state it."""
    return source.num_rows if source is not None and source.num_rows >= done else None


# -------------------------------------------------------------------------------------------------------- their output


def _pairs_schema(left: pa.DataType, right: pa.DataType, recipe: dict[str, Any]) -> pa.Schema:
    return schema_with([("id_a", left), ("id_b", right), ("distance", pa.uint8())], recipe)


def _parts(count: int) -> Iterator[slice]:
    """Slices of `count` rows, each written at once."""
    return (slice(start, start + WRITE_ROWS) for start in range(0, count, WRITE_ROWS))


@contextlib.contextmanager
def _writer(path: Path | None, schema: pa.Schema, show: Callable[[pa.Table], None] | None = None) -> Iterator[Write]:
    """Give a function that adds columns to a Parquet file, if there is a path, and shows them, if there is `show`."""
    with contextlib.nullcontext() if path is None else TableWriter(path, schema) as file:

        def write(columns: list[pa.Array]) -> None:
            table = pa.table(columns, schema=schema)
            if file is not None:
                file.write(table)
            if show is not None:
                show(table)

        yield write
