"""A job within a bound of memory: in memory if it fits there, else as tasks in a temporary folder."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .engine import heap
from .engine.memory import parse_size
from .errors import InputError, OutputError, ParameterError
from .log import log
from .report import count, size
from .tasks.scale_out import ScaleOut

if TYPE_CHECKING:
    from .documents import Documents
    from .engine.clock import Clock
    from .engine.settings import Engine
    from .planning.forecast import Division, Need
    from .recipe import Recipe
    from .result import Result

FORECAST_BYTES, FORECAST_DOCUMENTS = 1 << 28, 10**6
"""Text or documents of a job for which it is worth to say what it will need."""


WATCHED = 0.9
"""Share of a bound at which a job in memory goes on as tasks, before it holds more."""


EVERY = 0.02
"""Least seconds between two looks at what a process holds."""


class ExceededError(BaseException):
    """A job in memory holds nearly as much as it may; as tasks it need not. Nobody sees it who calls `dedup`."""


class GoingOn:
    """A progress callback of who goes on as tasks himself where `dedup` raises ExceededError."""

    def __init__(self, progress: Any) -> None:
        self._progress = progress if callable(progress) else None

    def __call__(self, name: str, done: int, total: int | None) -> None:
        if self._progress is not None:
            self._progress(name, done, total)


@contextlib.contextmanager
def watched(memory: int, divisible: bool, clock: Clock) -> Iterator[None]:
    """Raise ExceededError in the block once this process holds nearly as much as it may: more is alike than planned.

    A job that is not divisible, as it does not fit as tasks either, may hold all of it. It looks whenever a stage says
    how far it is. What the process held before, beyond what any does, is not the job's.
    """
    from .planning.forecast import PROCESS

    most = int(WATCHED * memory if divisible else memory) + max(0, resident() - PROCESS)
    looked = 0.0

    def look() -> None:
        nonlocal looked
        now = time.monotonic()
        if now >= looked + EVERY:
            looked = now
            if resident() > most:
                raise ExceededError

    clock.at_reports = look
    try:
        yield
    finally:
        clock.at_reports = None


def resident() -> int:
    """Bytes of memory that this process holds; 0 where the system does not say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


class Fit(NamedTuple):
    """How a job fits a bound.

    Parameters
    ----------
    need : Need
    room : int or None
        In memory, bytes for all that is not held of each document, into which it is cut.
    division : Division or None
        As tasks; None in memory.
    divisible : bool
        In memory, whether it fits as tasks, too, if much turns out to be alike.
    """

    need: Need
    room: int | None = None
    division: Division | None = None
    divisible: bool = False


def size_of(memory: Any, max_comparisons: Any = None) -> int:
    """A bound of memory in bytes. It excludes one of comparisons, as tasks count others than a job in memory."""
    if max_comparisons is not None:
        raise ParameterError(
            "max_comparisons and memory: a job within a bound of memory may run as tasks, which count "
            "otherwise; leave one of them out"
        )
    return parse_size(memory, "memory")


def fit(
    memory: int,
    documents: Documents,
    reference: Documents | None,
    recipe: Recipe,
    engine: Engine,
    check: int,
    *,
    tables: bool = False,
    page: bool = False,
    alike: bool = False,
) -> Fit:
    """How a job fits a bound, or why it does not.

    Parameters
    ----------
    memory : int
        Bytes of all processes together.
    documents, reference : Documents
    recipe : Recipe
    engine : Engine
    check : int
        Documents that are sampled.
    tables : bool, default False
        Whether the tables of the result are to be read in the end.
    page : bool, default False
        Whether report.html is to be written.
    alike : bool, default False
        Whether much is alike, as a job found that tried it in memory.

    Raises
    ------
    ParameterError
        If the bound is too small; it names the least.
    InputError
        If documents cannot be read in slices, or nothing tells how many there are.
    """
    from .engine.processors import most_threads
    from .planning import forecast

    backend = engine.resolve()
    if backend != "cpu":
        raise ParameterError(f"a bound of memory is kept by the backend cpu, not by {backend}; leave one of them out")
    if not all(each.rewindable for each in (documents, reference) if each is not None):
        raise InputError(
            "a stream gives its rows only once, so that no bound of memory can be kept; write it to files first"
        )
    load = forecast.load_of(documents, reference, check, ask=True)
    if load is None:
        raise InputError(
            "nothing tells how many documents there are, so that no bound of memory can be kept; pass a table or files"
        )
    threads = engine.threads or most_threads()
    room = forecast.room_in_memory(memory, load, recipe, threads)
    need = forecast.in_memory(load, recipe, threads, room)
    least = forecast.page_bytes(load) if page else 0
    in_memory = room is not None and not alike and (not page or forecast.page_bytes(load, recipe) <= memory)
    division = forecast.divided(memory, load, recipe, threads, alike or in_memory)
    if tables:
        least = max(least, forecast.tables_bytes(load, recipe))
    if in_memory:
        return Fit(need, room, divisible=division is not None and least <= memory)
    if division is None or least > memory:
        least = max(least, forecast.least(load, recipe, alike))
        work = f"{count(need.documents, 'document')} in {size(need.text_bytes)} of text"
        raise ParameterError(
            f"{size(memory)} of memory is not enough for {work}; give at least {_rounded(least)}", parameter="memory"
        )
    return Fit(division.need, division=division)


def _rounded(num_bytes: int) -> str:
    """A size that is no less, as flags take it."""
    return f"{-(-num_bytes // 10**6):d}MB" if num_bytes < 10**10 else f"{-(-num_bytes // 10**9):d}GB"


def foretold(documents: Documents, reference: Documents | None, recipe: Recipe, check: int) -> Need | None:
    """What a job in memory will need, where footers say how large it is; None for small ones, which have no time."""
    both = [each for each in (documents, reference) if each is not None]
    rows = [each.num_rows for each in both]
    if None in rows or any(each.format not in ("parquet", "memory") for each in both):
        return None
    small = sum(each or 0 for each in rows) < FORECAST_DOCUMENTS
    if small and sum(map(_file_bytes, both)) < FORECAST_BYTES:
        return None
    from .engine.processors import own_threads
    from .planning import forecast

    load = forecast.load_of(documents, reference, check, ask=False)
    return None if load is None else forecast.in_memory(load, recipe, own_threads())


def _file_bytes(documents: Documents) -> int:
    readers: list[Any] = documents._readers
    if documents.format == "memory":
        return sum(reader.source_bytes() or 0 for reader in readers)
    return sum(reader.seen.size for reader in readers)


def engine_of(division: Division, engine: Engine) -> Engine:
    """What each of the processes computes with."""
    return replace(engine, threads=division.threads)


def tell(need: Need, division: Division | None = None) -> None:
    """Say in one line what a job will need."""
    how = "" if division is None else f"; it runs as tasks over files, {division.workers} at once"
    log.info("%s%s", need, how)


@contextlib.contextmanager
def working(
    division: Division, output: str | Path | None, temp_dir: str | Path | None
) -> Iterator[tuple[ScaleOut, Path]]:
    """Where a job works that is cut into tasks: a folder beside its output that is removed afterwards.

    Yields
    ------
    scale_out : ScaleOut
    folder : path
        For other temporary files.
    """
    place = temp_dir or (None if output is None else Path(output).resolve().parent)
    try:
        suffix = ""
        if temp_dir is None and place is not None:
            Path(place).mkdir(parents=True, exist_ok=True)
            suffix = ".partial"  # by which `another_disk` knows that the output is on this disk
        made = tempfile.TemporaryDirectory(suffix, ".neardup-", place, ignore_cleanup_errors=True)
    except OSError as error:
        raise OutputError(f"{place}: {error.strerror}; name another folder with temp_dir=...") from None
    with made as name, heap.freed_at_once():
        folder = Path(name)
        (folder / "temporary").mkdir()
        scale_out = ScaleOut(
            work_dir=str(folder / "work"),
            workers=division.workers,
            slice_bytes=division.slice_bytes,
            partitions=division.partitions,
            task_memory=division.task_memory,
        )
        yield scale_out, folder


def result_of(folder: Path, recipe: Recipe, sources: tuple[Documents, Documents | None]) -> Result:
    """The result that tasks wrote into a folder, with its tables."""
    import pyarrow as pa

    from .methods.frequencies import Frequencies
    from .result import Report, Result
    from .store.artefacts import DOCUMENTS, PAIRS, parts_of, read_report
    from .store.parquet import read_table

    report = read_report(folder)
    files = report["files"]
    documents, pairs = (pa.concat_tables(map(read_table, parts_of(folder, files, name))) for name in (DOCUMENTS, PAIRS))
    return Result(
        documents=documents,
        pairs=pairs,
        report=Report(
            {name: value for name, value in report.items() if name not in ("files", "checksums", "checksum")}
        ),
        recipe=recipe.of(documents.schema, str(folder)),
        frequencies=Frequencies.load(folder / "frequencies.parquet") if "frequencies.parquet" in files else None,
        skipped=read_table(folder / "skipped.parquet") if "skipped.parquet" in files else None,
        sources=sources,
    )


def decided_in_tasks(
    division: Division,
    source: Any,
    sources: tuple[Documents, Documents | None],
    *,
    recipe: Recipe,
    output: str | None,
    temp_dir: str | None,
    frequencies: Any,
    engine: Engine,
    **options: Any,
) -> Result:
    """Run a job as tasks, and read the tables of its result; `options` are others of `dedup_in_tasks`."""
    from .tasks.job import dedup_in_tasks

    with working(division, output, temp_dir) as (scale_out, folder):
        if frequencies is not None and not isinstance(frequencies, (str, Path)):
            frequencies.write(folder / "frequencies.parquet")
            frequencies = folder / "frequencies.parquet"
        written = Path(output) if output is not None else folder / "result"
        only = {} if output is not None else {"output_format": None, "shard_bytes": None, "ids_only": True}
        dedup_in_tasks(
            source,
            **{**options, **only},
            recipe=recipe,
            output=str(written),
            temp_dir=str(folder / "temporary"),
            frequencies=frequencies,
            engine=engine_of(division, engine),
            scale_out=scale_out,
        )
        return result_of(written, recipe, sources)
