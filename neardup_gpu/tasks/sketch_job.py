"""The stages of `neardup sketch` as a job of tasks; those that count document frequencies come before them.

sketch   of a slice: its sketches in NUMBER-sketches, with the columns of a file of sketches, except for the id
         its ids, and the rows that were skipped, as in the stage of the same name of `dedup`
unique   whether each id stands for one document
write    the files of the result, of all slices or, with shards, of one slice each
"""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ..arguments import Arguments
from ..data import Ragged, added_up, arrow
from ..documents.slices import Offset, Slice
from ..documents.sources import Sources
from ..engine.clock import Clock
from ..engine.tasks import Runner
from ..methods.contract import Sketch
from ..recipe import Recipe
from ..results.sketch_files import array_of, columns_of
from ..results.sketch_writing import SketchFiles, counted, new_places, reported, table_of
from ..stages.sketching import Sketcher
from ..store.artefacts import SKETCHES
from ..store.exchange import ExchangeWriter, read_partition
from . import frequencies
from .columns import lists_of
from .driver import Job, check_sketched, extent_in, offsets_in, skipped_rows, type_of_ids, weigh
from .results import ids_of
from .running import move_files, working
from .sketching import check_sizes, places_of_units, save_documents
from .work import Files, Stage, file_name
from .workers import Workers


class _SketchExchange:
    """Hands sketches on as they are made: the `SketchStore` of a task."""

    full = False

    def __init__(self, writer: ExchangeWriter, method: Sketch) -> None:
        self._writer, self._method = writer, method

    def add(self, *, ids: Any = None, sketches: Any = None, keys: Any = None, **columns: Any) -> None:
        if sketches is not None:
            columns |= self._method.to_columns(sketches, keys)
            made = {name: lists_of(each) if isinstance(each, Ragged) else each for name, each in columns.items()}
            self._writer.add_to(0, {name: each for name, each in made.items() if each is not None})

    def write(self, recipe: Recipe) -> None:
        """Nothing waits here."""


def sketch(files: Files, slice: Slice) -> dict[str, Any]:
    """Sketch the documents of a slice. Memory: a batch, the slice's ids, and rows that wait to be written."""
    shared = files.shared
    recipe, statistics = shared.settled()
    method, documents, columns = recipe.method, slice.open(), columns_of(recipe)
    assert isinstance(method, Sketch)
    schema = _schema_of(recipe)
    with shared.start() as runtime, files.exchange("sketches", schema, 1) as writer:
        store, hashed = _SketchExchange(writer, method), "document_hash" in columns
        sketcher = Sketcher(recipe, runtime, Clock(None), statistics, store=store, hashed=hashed, number=files.number)
        sketched = sketcher.sketch_part(Sources(documents))
        check_sizes(slice, sketched, shared.task_memory)
    facts = save_documents(files, slice, documents, sketched)
    return {**facts, "empty": int(np.count_nonzero(sketched.num_tokens == 0))}


def _schema_of(recipe: Recipe) -> pa.Schema:
    """Return the columns that tasks hand on; places of units are in files of their own."""
    return pa.schema([(name, kind) for name, kind in columns_of(recipe).items() if name not in recipe.unit.columns])


def write(
    files: Files, first: int, slices: list[Slice], offsets: list[Offset], kind: pa.DataType, most_bytes: int | None
) -> dict[str, Any]:
    """Write the sketches of consecutive slices, from number `first` on."""
    recipe, result = files.shared.recipe, Path(files.shared.result)
    schema = _schema_of(recipe)
    empty = pa.RecordBatch.from_pylist([], schema=schema)
    middle = "" if most_bytes is None else f"-{files.number:05}"
    (result / SKETCHES).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=result, prefix=".part-") as folder:
        paths = (Path(folder, f"part{middle}-{number:05}.parquet") for number in itertools.count())
        with SketchFiles(paths, most_bytes) as out:
            for number, (slice, offset) in enumerate(zip(slices, offsets, strict=True), first):
                ids, row = ids_of(files, number, slice, offset, kind), 0
                units: dict[str, np.ndarray] = {}
                if recipe.unit.divides:
                    places = places_of_units(files, number)
                    ids, units = ids.take(arrow(places.owner)), places.columns
                batches = read_partition(files.place, [file_name("sketch", number, "sketches")], 0)
                for batch in itertools.chain([empty], batches):
                    found = {name: array_of(pa.chunked_array([batch.column(name)])) for name in schema.names}
                    made = {**{name: each[row : row + batch.num_rows] for name, each in units.items()}, **found}
                    out.add(table_of(recipe, ids.slice(row, batch.num_rows), made))
                    row += batch.num_rows
        names = [f"{SKETCHES}/{path.name}" for path in out.written]
        for path, name in zip(out.written, names, strict=True):
            os.replace(path, result / name)
    return {"files": names}


class SketchStages(NamedTuple):
    """The stages that the report and the result are made from."""

    weighed: list[Stage]
    sketched: Stage
    written: Stage


def run(job: Job, shard_bytes: int | None) -> SketchStages:
    """Do all stages, in their order."""
    told_as, weighed = job.work.told_as, weigh(job)
    with told_as("sketch"):
        arguments = [(slice,) for slice in job.slices]
        sketched = job.work.stage("sketch", sketch, arguments, after=weighed, on_device=True)
        check_sketched(job, sketched)
    with told_as("write"):
        offsets = offsets_in(job, [extent_in(facts) for facts in sketched.facts])
        kind = type_of_ids(job, sketched) if sketched.total("documents") else pa.int64()
        given: list[tuple[Any, ...]] = [(0, job.slices, offsets, kind, None)]
        if shard_bytes is not None:
            both = enumerate(zip(job.slices, offsets, strict=True))
            given = [(number, [slice], [offset], kind, shard_bytes) for number, (slice, offset) in both]
        written = job.work.stage("write", write, given, after=[sketched])
    return SketchStages(weighed, sketched, written)


def run_sketch_job(runner: Runner, arguments: Arguments, workers: Workers, clock: Clock) -> dict[str, Any]:
    """Run a job on a runner that has been started, and return its report."""
    recipe, statistics = arguments.recipe.with_statistics(None)
    sources = arguments.opened()
    counts_first = recipe.method.needs_statistics and statistics is None
    output = new_places(arguments, arguments.files_read(sources), counts_first=counts_first)
    with working(runner, arguments, workers, clock, sources, recipe, output, "sketch") as (work, slices, _, places):
        job = Job(work, slices, 0, None, 0)
        made = run(job, arguments.writing.most_bytes)
        with clock.stage("place"):
            result = Path(work.shared.result)
            if places.folder is not None:
                move_files([*made.weighed, made.written], result, places.folder)
            else:
                (name,) = made.written.facts[0]["files"]
                shutil.move(result / name, next(places.sketches))
                if counts_first:
                    shutil.move(result / frequencies.FILE, places.frequencies)
            skipped = work.repairing(lambda: skipped_rows(job, made.sketched))
        counts = {name: made.sketched.total(name) for name in [*counted(recipe), "empty"]}
        counts |= sources.documents._repeated_counts
        if recipe.unit.divides:
            counts["units"] = made.sketched.total("units")
        left_out = sorted(added_up(facts["left_out_records"] for facts in made.sketched.facts).items())
        backend = work.shared.engine.backend
        about = {"backend": backend, "device": None, "timings": clock.seconds, **job.about}
        return reported(arguments, work.shared.recipe, places, counts, dict(left_out), skipped, about)
