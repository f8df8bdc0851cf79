"""Open a job of tasks: start what runs them, and return the result that they wrote."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..arguments import Arguments
from ..documents.sources import Sources
from ..engine.clock import Clock
from ..engine.tasks import Runner
from ..errors import ParameterError
from ..results.result import StoredResult
from ..store.artefacts import read_report
from ..text.token_kinds import OwnTokens
from .workers import Workers


def run_in_tasks(
    arguments: Arguments,
    workers: Workers,
    sources: Sources | None = None,
    kept_in: Any = None,
) -> StoredResult:
    """Run a job as tasks over files.

    Parameters
    ----------
    arguments : Arguments
    workers : Workers
    sources : Sources, default None
        The documents of the result; if None, those that the job opened.
    kept_in : object, default None
        What keeps the output until the result is gone, if it is in a temporary folder.

    Raises
    ------
    NeardupError
        As raised by `dedup`. Also if the work folder belongs to another job, if another process works in it, or if a
        task failed three times; after that the same call continues with the files that the other tasks wrote.
    """
    if arguments.output is None:
        raise ParameterError("output: tasks write their result into a folder; name one")
    with started(arguments, workers) as (runner, settled):
        from .running import run_job  # which workers import as well meanwhile

        opened = run_job(runner, settled, workers, Clock(arguments.progress, noun="task"))
    folder = Path(arguments.output).resolve()
    report, recipe = read_report(folder), arguments.recipe
    if recipe.method.needs_statistics:
        recipe = recipe.with_(frequencies=report["recipe"]["frequencies"])
    if recipe.ignore_common is not None:
        recipe = recipe.with_(**{name: report["recipe"][name] for name in ("ignore_common", "ignored")})
    return StoredResult(folder, report, recipe, sources or opened, kept_in)


def sketch_in_tasks(arguments: Arguments, workers: Workers) -> dict[str, Any]:
    """Sketch documents as tasks over files; return the report.

    Raises
    ------
    NeardupError
        As raised by `sketch`, and as by `run_in_tasks`.
    """
    if workers.spool:
        raise ParameterError("spool: sketching keeps no shingles; leave it out")
    with started(arguments, workers) as (runner, settled):
        from .sketch_job import run_sketch_job

        return run_sketch_job(runner, settled, workers, Clock(arguments.progress, noun="task"))


def work_folder(workers: Workers, memory: int | str | None) -> str:
    """Return the work folder of tasks.

    Raises
    ------
    ParameterError
        If there is none, or if there is a bound of memory as well.
    """
    if memory is not None:
        raise ParameterError(
            "memory and work_dir: a job of tasks is limited by task_memory for each task; leave one of them out"
        )
    if workers.work_dir is None:
        raise ParameterError("work_dir: tasks need a folder to work in; give one, or leave their other options out")
    return workers.work_dir


@contextlib.contextmanager
def started(arguments: Arguments, workers: Workers) -> Iterator[tuple[Runner, Arguments]]:
    """Start what runs tasks; yield it, and the arguments with the engine for tasks."""
    work_folder(workers, arguments.memory)
    frequencies = getattr(arguments.recipe.method, "frequencies", None)
    if not isinstance(frequencies, (str, type(None))):
        raise ParameterError("frequencies: tasks read them from a file; write them, and give its path")
    if isinstance(arguments.recipe.shingles.tokens, OwnTokens):
        arguments.recipe.shingles.tokens.check_picklable()
    runner, engine = workers.start(workers.resolved(arguments.engine), arguments.recipe)
    with runner:
        yield runner, replace(arguments, engine=engine)
