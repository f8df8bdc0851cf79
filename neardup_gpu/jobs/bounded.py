"""A job within a bound of memory: in memory if it fits there, else as tasks in a temporary folder."""

from __future__ import annotations

import contextlib
import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..engine import heap
from ..engine.memory import size_as_flag
from ..errors import InputError, OutputError, ParameterError
from ..log import log
from ..report import count, size
from ..tasks.workers import Workers

if TYPE_CHECKING:
    from ..arguments import Arguments
    from ..documents import Documents
    from ..documents.sources import Sources
    from ..planning.forecast import Division, Load, Need
    from ..recipe import Recipe
    from ..results.result import Result

FORECAST_BYTES, FORECAST_DOCUMENTS = 1 << 28, 10**6
"""Text or documents of a job for which it is worth to say what it will need."""


def division_of(arguments: Arguments, sources: Sources, recipe: Recipe) -> Division | None:
    """Return how a job is cut into tasks that keep its bound of memory, or None if it keeps the bound in memory.

    A job runs in memory only if it keeps the bound however much is alike.

    Parameters
    ----------
    arguments : Arguments
        The job, with a bound of memory.
    sources : Sources
    recipe : Recipe

    Raises
    ------
    ParameterError
        If the bound is too small; it names the least.
    InputError
        If documents cannot be read in slices, or nothing tells how many there are.
    """
    from ..planning import forecast

    memory, engine = arguments.memory, arguments.engine
    assert memory is not None
    backend = engine.resolve()
    if backend != "cpu":
        raise ParameterError(f"a bound of memory is kept by the backend cpu, not by {backend}; leave one of them out")
    if not sources.rewindable:
        raise InputError(
            "a stream gives its rows only once, so that no bound of memory can be kept; write it to files first"
        )
    load, threads = _load_of(arguments, sources, recipe), _threads_of(arguments)
    page = arguments.writing.report
    if max(forecast.at_most(load, recipe, threads), forecast.page_bytes(load, recipe) if page else 0) <= memory:
        return None
    least = forecast.page_bytes(load) if page else 0
    division = None
    if forecast.in_memory(load, recipe, threads).memory <= memory:  # only what is alike may be too much
        division = forecast.divided(memory, load, recipe, threads, alike=True)
    if division is None:
        division = forecast.divided(memory, load, recipe, threads)
    if division is None or least > memory:
        least = max(least, forecast.least(load, recipe))
        work = f"{count(int(load.work.documents), 'document')} in {size(int(load.work.text_bytes))} of text"
        raise ParameterError(
            f"{size(memory)} of memory is not enough for {work}; give at least {size_as_flag(least)}",
            parameter="memory",
        )
    return division


def candidates_at_once(arguments: Arguments, sources: Sources, recipe: Recipe) -> int | None:
    """Return how many candidates a job in memory may verify together; None for the usual number, without a bound."""
    if arguments.memory is None:
        return None
    from ..planning import forecast

    load = _load_of(arguments, sources, recipe)
    return forecast.candidates_at_once(arguments.memory, load, recipe, _threads_of(arguments))


def _load_of(arguments: Arguments, sources: Sources, recipe: Recipe) -> Load:
    from ..planning import forecast

    load = forecast.load_of(sources, arguments.num_checked, recipe, ask=True)
    if load is None:
        raise InputError(
            "nothing tells how many documents there are, so that no bound of memory can be kept; pass a table or files"
        )
    return load


def _threads_of(arguments: Arguments) -> int:
    from ..engine.processors import most_threads

    return arguments.engine.threads or most_threads()


def foretold(sources: Sources, recipe: Recipe, check: int) -> Need | None:
    """Return what a job in memory will need, if footers say how large it is; None for small jobs, which are over soon.

    Footers do not say how many parts documents have, so that it is None for a unit, too.
    """
    rows, both = sources.num_rows, sources.each_set
    if recipe.unit.divides or rows is None or any(each.format not in ("parquet", "memory") for each in both):
        return None
    if rows < FORECAST_DOCUMENTS and sum(map(_file_bytes, both)) < FORECAST_BYTES:
        return None
    from ..engine.processors import own_threads
    from ..planning import forecast

    load = forecast.load_of(sources, check, ask=False)
    return None if load is None else forecast.in_memory(load, recipe, own_threads())


def text_bytes(sources: Sources) -> int | None:
    """Return about how many bytes of text a job reads: as footers and tables say, else the size of the files.

    None if nothing says it, as for a stream.
    """
    from ..planning import forecast

    load = forecast.load_of(sources, 0, ask=False)
    if load is not None:
        return int(load.work.text_bytes + load.work.against_bytes)
    return sum(os.path.getsize(path) for path in sources.local_files if os.path.isfile(path)) or None


def _file_bytes(documents: Documents) -> int:
    readers: list[Any] = documents._readers
    if documents.format == "memory":
        return sum(reader.source_bytes() or 0 for reader in readers)
    return sum(reader.seen.size for reader in readers)


def tell(need: Need, division: Division | None = None) -> None:
    """Say in one line what a job will need."""
    how = "" if division is None else f"; it runs as tasks over files, {division.workers} at once"
    log.info("%s%s", need, how)


def decided_in_tasks(division: Division, arguments: Arguments, sources: Sources) -> Result:
    """Run a job as tasks in a temporary folder, which is next to the output if there is one."""
    from ..tasks.job import run_in_tasks

    output, engine = arguments.output, arguments.engine
    made = temporary_folder(output, engine.temp_dir)
    folder = Path(made.name)
    with contextlib.ExitStack() as stack, heap.freed_at_once():
        stack.enter_context(made)
        (folder / "temporary").mkdir()
        workers = Workers(
            work_dir=str(folder / "work"),
            number=division.workers,
            slice_bytes=division.slice_bytes,
            partitions=division.partitions,
            task_memory=division.task_memory,
        )
        recipe = _with_stored_frequencies(arguments.recipe, folder)
        engine = replace(engine, threads=division.threads, temp_dir=str(folder / "temporary"))
        changes: dict[str, Any] = {"recipe": recipe, "engine": engine, "memory": None}
        if output is None:
            writing = replace(arguments.writing, output_format=None, shard_bytes=None, ids_only=True)
            changes |= {"output": str(folder / "result"), "writing": writing}
        found = run_in_tasks(replace(arguments, **changes), workers, sources, None if output is not None else made)
        if output is None:
            stack.pop_all()  # the folder lives as long as the result
    return found


def temporary_folder(output: str | Path | None, temp_dir: str | None) -> tempfile.TemporaryDirectory[str]:
    """Return a temporary folder, in `temp_dir` or next to the output."""
    place = temp_dir or (None if output is None else Path(output).resolve().parent)
    try:
        suffix = ""
        if temp_dir is None and place is not None:
            Path(place).mkdir(parents=True, exist_ok=True)
            suffix = ".partial"  # by which `another_disk` knows that the output is on this disk
        return tempfile.TemporaryDirectory(suffix, ".neardup-", place, ignore_cleanup_errors=True)
    except OSError as error:
        raise OutputError(f"{place}: {error.strerror}; name another folder with temp_dir=...") from None


def _with_stored_frequencies(recipe: Recipe, folder: Path) -> Recipe:
    """Return the recipe with the path of its document frequencies, if it holds an object, which is written there."""
    given = getattr(recipe.method, "frequencies", None)
    if given is None or isinstance(given, str):
        return recipe
    path = folder / "frequencies.parquet"
    given.write(path)
    return recipe.with_(frequencies=path)
