"""Start a job with the options that all commands share, and print its result."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..documents.reading_options import Reading
from ..engine.settings import Engine
from ..records import dataclass
from ..settings import setting
from ..tasks.workers import Workers
from .console import say, say_json, shown_progress
from .options import Given, Output, given

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ..results.fail_over import Limit


@dataclass(frozen=True, kw_only=True)
class ResultFolder(Output):
    """The result to write, and the way to print it."""

    output: str | None = setting(
        None, "Folder to write, which appears when complete.", metavar="OUT", flag="--output -o"
    )


def fail_over(counts: str) -> Any:
    """Return the setting for the limits of a command; `counts` names what it counts, with examples."""
    return setting(None, f"Exit with status 3 if a count is larger: {counts}. May be repeated.", metavar="NAME=N|SHARE")


@dataclass(frozen=True, kw_only=True)
class RowLimits:
    """When a command that reads and removes documents fails."""

    fail_over: Sequence[str] | None = fail_over("skipped=N or removed=N, or a share such as removed=20%")


def one_or_all(inputs: tuple[str, ...]) -> str | list[str]:
    """Return the inputs as the library takes them: a single input as a string, several as a list."""
    return inputs[0] if len(inputs) == 1 else list(inputs)


@contextlib.contextmanager
def running(shown: Output, reading: Reading, engine: Given | None, tasks: Given | None) -> Iterator[dict[str, Any]]:
    """Show progress, and yield the options that every job takes; with a work folder, an interruption loses nothing."""
    workers = Workers(**given(tasks)) if given(tasks) else None
    run = Engine(**given(engine, of=Engine))
    try:
        with shown_progress(shown) as progress:
            yield {"reading": reading, "engine": run, "workers": workers, "progress": progress}
    except KeyboardInterrupt:
        if workers is None or workers.work_dir is None:
            raise
        from ..store.uris import masked

        work = masked(workers.work_dir)
        raise KeyboardInterrupt(f"interrupted; the same command goes on with what is in {work}") from None


def limits_among(shown: Any, names: Sequence[str]) -> list[Limit]:
    """Return the limits that `--fail-over` gives, each for one of some counts."""
    from ..results.fail_over import limits_of

    return limits_of(shown.fail_over or (), names)


def say_result(found: Any, shown: Output, limits: list[Limit], summary: Callable[..., list[RenderableType]]) -> int:
    """Print the summary of a result, or its report as JSON; return the exit status."""
    from ..results.fail_over import FAILED, exceeded

    broken = exceeded(limits, found.limited)
    if shown.json:
        status = "failed" if broken else "done"
        say_json({"status": status, "output": shown.output, "exceeded": broken, **found.report})
    elif not shown.quiet:
        say(*summary(found, shown.output, broken))
    return FAILED if broken else 0
