"""Forecast the needs of a job before it starts: memory, temporary disk and time, in memory or as tasks within a bound.

Both ways are planned by the counts that `expected` makes of documents and bytes. As tasks a job takes what the plan of
its tasks says; in memory its needs follow from the formulas here, with constants that were measured
(`benchmarks/forecast.py`).
"""

from __future__ import annotations

import contextlib
import math
from typing import Any, NamedTuple

import numpy as np

from neardup_gpu.kernels.bitmaps import num_words

from ..arrow_versions import bytes_of
from ..documents import Documents
from ..documents.ahead import AHEAD_BYTES, MOST_THREADS
from ..documents.batches import PIECE_BYTES
from ..documents.contract import Part
from ..documents.sources import Sources
from ..documents.units import divided as divided_batch
from ..engine.memory import BATCH_TIMES, HOST_BATCH, PROCESS, Shares
from ..methods.contract import Join
from ..recipe import Recipe
from ..report import count, duration, size
from ..stages.common_shingles import most_documents
from ..stages.joining import table_bits
from ..tasks.cutting import usual_partitions
from ..tasks.pairs import TOGETHER, TOGETHER_BYTES
from ..tasks.sizes import Counts, Shape
from ..text.unit_options import Unit
from .costs import load_rates, memory_of, of_units, stage_names, stages
from .counts import expected
from .files import exchanges, shape_of
from .settings import Machines, Workload

MARGIN = 1.1
"""Factor for freed memory that an allocator keeps."""

ROW = {"exact": 110, "containment": 140, "minhash": 330}
"""Bytes that a job in memory holds of a document at most, without its id."""

COUNTED_BYTES = 64
"""Bytes that a common shingle takes at most while a job in memory counts its documents."""

UNIT_ROW = 160
"""Bytes that a job holds in addition for each part of a document: its place, and its row of units.parquet."""

READING, READING_ALONE = 3 * AHEAD_BYTES, 3 * PIECE_BYTES
"""Bytes that reading and writing hold for each of several threads, and for one alone."""

LEAST_TASK = 16 << 20
"""Memory of a task at least."""

LEAST_TOGETHER = 1 << 18
"""Candidates that a job in memory verifies together at least: fewer take it longer."""

MOST_BLOCKS = 1 << 20
"""Blocks of files, slices times partitions, that a job is cut into at most to fit a bound."""


class Need(NamedTuple):
    """The needs of a job.

    Parameters
    ----------
    documents, text_bytes : int
    memory : int
        Bytes of all processes of the job together, the interpreter and its libraries with them.
    disk : int
        Bytes of temporary files.
    seconds : float
        On the machine that the rates were measured on.
    """

    documents: int
    text_bytes: int
    memory: int
    disk: int
    seconds: float

    def __str__(self) -> str:
        found = f"{count(self.documents, 'document')}, {size(self.text_bytes)} of text"
        need = f"{size(self.memory)} of memory, {size(self.disk)} of temporary disk"
        return f"{found}: about {need} and {duration(self.seconds)} are needed"


class Division(NamedTuple):
    """How a job is cut into tasks that stay within a bound.

    Parameters
    ----------
    workers : int
        Processes; with one, tasks run in the process that drives them.
    threads : int
        Of each.
    slice_bytes, partitions, task_memory : int
        As in `Workers`.
    need : Need
    """

    workers: int
    threads: int
    slice_bytes: int
    partitions: int
    task_memory: int
    need: Need


class Load(NamedTuple):
    """The documents of a job, as far as it is known what they are.

    Parameters
    ----------
    work : Workload
    held : int
        Bytes of a row group of the input, as it is read at once.
    largest : int
        Bytes of text of the largest part of the input that cannot be divided.
    """

    work: Workload
    held: int = 0
    largest: int = 0


def in_memory(load: Load, recipe: Recipe, threads: int) -> Need:
    """Return what a job in memory needs if few documents are alike."""
    work, method = load.work, recipe.method
    shares = Shares.of_host()
    counts = expected(work, _shape(load, recipe, 1, 1, 1 << 40), _least(recipe))
    first = BATCH_TIMES * min((1 + threads) * shares.batch, work.all_bytes)  # batches are made side by side
    joined = compared = spool = again = 0
    if recipe.verifies:
        compared = 2 * shares.sets + 8 * shares.sorted
        spool, again = 8 * counts.shingles, 8 * counts.wanted_shingles
    if isinstance(method, Join) and recipe.verifies:
        table = (17 << table_bits(counts.shingles, shares.postings * 17 // 16)) // 16
        making = 48 * counts.postings
        in_parts = making > shares.postings
        joined = table + (shares.postings if in_parts else making + making // 3)
        joined += _of_sets(counts, recipe)
        # Sets that are not compared as they wait are written over their shingles, unless a check reads these later.
        again = 4 * counts.shingles * (work.check > 0 and not method.measure.directed) + 32 * counts.postings * in_parts
        if recipe.ignore_common is not None:
            most = most_documents(recipe, counts.documents)
            joined, spool = joined + COUNTED_BYTES * counts.shingles // (most + 1), 2 * spool
    held = max(first, joined + compared) + _of_documents(load, recipe) + _reading(load, threads)
    rates = load_rates()["in memory"]
    measured = method.name if method.name in rates["methods"] else "minhash"
    rate = rates["methods"][of_units(measured, recipe.unit.divides, recipe.only_equal, rates)]
    seconds = counts.documents * rate["document_seconds"] + counts.text_bytes * rate["byte_seconds"]
    memory, disk = int(PROCESS + MARGIN * held), spool + again
    return Need(counts.documents, counts.text_bytes, memory, disk, rates["seconds"] + seconds)


def _of_sets(counts: Counts, recipe: Recipe) -> int:
    """Return the bytes of what the join knows of sets: 21 of each, as in `PostingsIndex`, and bitmaps of some."""
    number = min(counts.present, counts.postings)  # sets with a posting have a bitmap
    sizes = np.array([max(1, counts.shingles // max(1, counts.present))])
    words = num_words(sizes, _least(recipe), recipe.method.measure.both_sizes)
    return 21 * counts.documents + 8 * number * int(words[0])


def at_most(load: Load, recipe: Recipe, threads: int) -> int:
    """Return the bytes that a job in memory needs at most, however much is alike: as many pairs as may be listed."""
    number = int(load.work.documents + load.work.against_documents)
    pairs = number * (number - 1) // 2
    pairs = 0 if recipe.only_equal else pairs
    listed = pairs if recipe.max_partners is None else min(pairs, number * recipe.max_partners)
    held = listed * (24 + 2 * load.work.id_bytes) + min(pairs, LEAST_TOGETHER) * TOGETHER_BYTES
    return in_memory(load, recipe, threads).memory + int(MARGIN * held)


def candidates_at_once(memory: int, load: Load, recipe: Recipe, threads: int) -> int:
    """Return how many candidates a job in memory may verify together within a bound, which is at least `at_most`."""
    room = (memory - at_most(load, recipe, threads)) / (MARGIN * TOGETHER_BYTES)
    return min(TOGETHER, LEAST_TOGETHER + int(room))


def _reading(load: Load, threads: int) -> int:
    """Bytes that reading the input and writing the kept rows hold."""
    threads = min(threads, MOST_THREADS)
    each = READING_ALONE if threads == 1 else READING * threads
    return int(min(each, 3 * load.work.all_bytes)) + threads * load.held


def page_bytes(load: Load, recipe: Recipe | None = None) -> int:
    """Bytes of a process that makes the page of a result; with a recipe, of one that holds the job's documents, too."""
    held = 0 if recipe is None else MARGIN * _of_documents(load, recipe)
    return int(PROCESS + held + 600 * (load.work.documents + load.work.against_documents))


def _of_documents(load: Load, recipe: Recipe) -> int:
    """Bytes that a job in memory holds of all documents: ids twice, and once in each column that names documents by
    them."""
    work, pairs = load.work, 0.1 * load.work.documents if load.work.pairs is None else load.work.pairs
    documents = int(work.documents + work.against_documents)
    each = ROW.get(recipe.method.name, 170) + 4 * work.id_bytes + UNIT_ROW * recipe.unit.divides
    return int(documents * each + (24 + 2 * work.id_bytes) * (pairs + work.copies * work.documents))


def divided(memory: int, load: Load, recipe: Recipe, cores: int, alike: bool = False) -> Division | None:
    """How a job is cut into tasks that need no more than `memory` together, and least time; None if it cannot be.

    Parameters
    ----------
    memory : int
    load : Load
    recipe : Recipe
    cores : int
        Most processes.
    alike : bool, default False
        Whether each document may have as many partners as are listed.
    """
    found = []
    for workers in sorted({cores, *(1 << power for power in range(cores.bit_length()))}):
        processes = workers + 1 if workers > 1 else 1
        for threads in sorted({1, max(1, cores // workers)}):
            each = int((memory - processes * PROCESS) / workers / MARGIN) - _reading(load, threads)
            for share in (1.0, 0.75, 0.5, 0.35):
                division = _division(each, int(each * share), load, recipe, workers, threads, alike)
                found += [] if division is None else [division]
    return min(found, key=lambda division: (division.need.seconds, -division.threads), default=None)


def least(load: Load, recipe: Recipe, alike: bool = False) -> int:
    """The least bound, about, within which a job can be cut into tasks; `alike` is that of `divided`."""
    low, high = PROCESS, 1 << 50
    while high - low > high // 50:
        middle = (low + high) // 2
        low, high = (low, middle) if divided(middle, load, recipe, 1, alike) else (middle, high)
    return high


def _division(
    each: int, task_memory: int, load: Load, recipe: Recipe, workers: int, threads: int, alike: bool
) -> Division | None:
    """A job in tasks within a bound of memory, where no task holds more than `each`; None if that takes too many."""
    if task_memory < LEAST_TASK:
        return None
    work, total = load.work, load.work.all_bytes
    slices = min(max(2 * workers, -(-total // 10**9)), int(work.documents))
    partitions = usual_partitions(slices, total, workers)
    if alike and not recipe.only_equal:
        listed = (24 + 4 * (8 + work.id_bytes)) * (recipe.max_partners or 64) * work.documents  # as `memory_of` has it
        partitions = max(partitions, math.ceil(2 * listed / task_memory))
    while slices * partitions <= MOST_BLOCKS and partitions <= 1 << 16:
        held = max(
            1, min(slices, total // max(1, load.largest))
        )  # as many slices of one size would be as large as the largest
        shape = _shape(load, recipe, held, partitions, task_memory)
        counts = expected(work, shape, _least(recipe))
        most = max(_of_task(name, counts, shape) for name in stage_names(shape))
        if most <= each:
            break
        if slices * 2 <= work.documents and held == slices:
            slices *= 2
        elif held < slices and memory_of("sketch", counts, shape) > each:
            return None
        partitions *= 2
    else:
        return None
    shape = _shape(load, recipe, slices, partitions, task_memory)
    counts = expected(work, shape, _least(recipe))
    found = stages(counts, shape, Machines(cores=workers), load_rates())
    disk = sum(made.payload for made in exchanges(counts, shape))
    processes = workers + 1 if workers > 1 else 1
    memory = int(processes * PROCESS + MARGIN * workers * (each + _reading(load, threads)))
    seconds = load_rates()["in memory"]["seconds"] + sum(stage.seconds for stage in found)
    need = Need(counts.documents, counts.text_bytes, memory, disk, seconds)
    return Division(workers, threads, max(1, -(-total // slices)), partitions, task_memory, need)


def _of_task(stage: str, counts: Counts, shape: Shape) -> float:
    """Bytes of a task: those that it keeps, and a batch if it reads text."""
    reads = stage in ("sketch", "postings", "containers", "sets", "near", "drawn-sets", "near-sets", "write")
    batch = min(3 * BATCH_TIMES * HOST_BATCH, shape.task_memory // 2) if reads else 0
    return memory_of(stage, counts, shape) + batch


def _shape(load: Load, recipe: Recipe, slices: int, partitions: int, task_memory: int) -> Shape:
    work = load.work
    known = min(slices - 1, round(slices * work.against_bytes / work.all_bytes)) if work.against_bytes else 0
    return shape_of(
        recipe,
        max(1, int((1 - work.copies) * work.documents + work.against_documents)),
        slices=slices,
        partitions=partitions,
        task_memory=task_memory,
        known=known,
        checked=work.check > 0,
    )


def _least(recipe: Recipe) -> float:
    return 0.8 if recipe.threshold is None else recipe.threshold


def load_of(sources: Sources, check: int, recipe: Recipe | None = None, *, ask: bool) -> Load | None:
    """The documents of a job: as many and as much as footers say, or tables.

    Parameters
    ----------
    sources : Sources
    check : int
        Documents that are sampled.
    recipe : Recipe, optional
        If its units are parts of documents, they are counted in place of documents, by those of the first documents.
    ask : bool
        Where nothing says it, look at sizes of files and at the first documents.

    Returns
    -------
    Load or None
        None if nothing says it and no question is allowed.
    """
    unit = Unit() if recipe is None else recipe.unit
    found = [_extent(each, ask, recipe) for each in sources.each_set]
    known = [each for each in found if each is not None]
    if len(known) < len(found):
        return None
    mine, *sets = known[-1], *known[:-1]
    id_bytes = max(1, min(1000, max(each.id_bytes for each in known)))
    against_documents = sum(each.rows for each in sets)
    work = Workload(
        documents=max(1, mine.rows),
        text_bytes=max(1, mine.num_bytes),
        against_documents=against_documents,
        against_bytes=against_documents and max(1, sum(each.num_bytes for each in sets)),
        check=check,
        id_bytes=id_bytes,
        place_bytes=12 + id_bytes + UNIT_ROW * unit.divides,
        pairs=0.0 if recipe is not None and recipe.only_equal else None,
    )
    return Load(work, max(each.held for each in known), max(each.largest for each in known))


class _SourceExtent(NamedTuple):
    """Documents of a source: how many, their text, an id, the largest part that is read at once, and that a slice has.

    Bytes of compressed files are guessed from their sizes.
    """

    rows: int
    num_bytes: int
    id_bytes: int
    held: int
    largest: int


FIRST = 1 << 20
"""Text of the first documents, by which others are judged where nothing says how many there are."""

PART = 16 << 20
"""Text of a part of an input that is small, whether it can be divided or not."""

USUAL_ID = 24
"""Bytes of an id that is not a number, if no id is read."""


def _extent(documents: Documents, ask: bool, recipe: Recipe | None) -> _SourceExtent | None:
    readers = documents._readers
    rows = documents.num_rows
    if documents.format == "memory":
        sizes = [reader.source_bytes() for reader in readers]  # type: ignore[attr-defined]
        parts = [each for each in sizes if isinstance(each, int)]
        held = largest = 0
        if len(parts) < len(sizes) and not ask:
            return None
        num_bytes = sum(parts) if len(parts) == len(sizes) else 0
    elif documents.format == "parquet" or ask:
        found = [(reader, reader.parts(PART)) for reader in readers]
        parts = [part.num_bytes for _, each in found for part in each]
        num_bytes, largest = sum(parts), max(parts, default=0)
        # Columns of a row group are read as they are in the file, which is compressed.
        held = 0
        if documents.format == "parquet":
            held = max((_compressed(reader, each) for reader, each in found), default=0)
    else:
        return None
    id_bytes = USUAL_ID
    if documents.id_column is None:
        id_bytes = 8
    if ask:
        with contextlib.closing(documents.batches(max_bytes=FIRST)) as batches:  # type: ignore[type-var]
            batch = next((batch for batch in batches if batch.num_rows), None)
        if batch is None:
            rows = 0
        else:
            text = int(batch.text.offsets[-1] - batch.text.offsets[0])
            id_bytes = bytes_of(batch.ids) // batch.num_rows
            if rows is None:
                rows = max(batch.num_rows, num_bytes * batch.num_rows // max(1, text))
            num_bytes = num_bytes or rows * text // batch.num_rows
            if recipe is not None and recipe.unit.divides:
                rows = max(rows, rows * len(divided_batch(batch, recipe).text) // batch.num_rows)
    if rows is None:
        return None
    return _SourceExtent(rows, num_bytes, id_bytes, held, largest)


def _compressed(reader: Any, parts: list[Part]) -> int:
    """Bytes of the largest row group as it is in the file, about."""
    total = sum(part.num_bytes for part in parts)
    return reader.seen.size * max(part.num_bytes for part in parts) // total if total else 0
