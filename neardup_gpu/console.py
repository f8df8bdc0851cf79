"""What commands print: notes and progress on stderr, counts or JSON on stdout."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from typing import Any, TextIO

import typer

from .report import Style, duration, size


def style_of(stream: TextIO) -> Style:
    terminal = stream.isatty()
    colour = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    try:
        "█▁…".encode(stream.encoding or "ascii")
        blocks = True
    except UnicodeEncodeError:
        blocks = False
    return Style(colour, blocks, max(40, min(100, shutil.get_terminal_size().columns)) if terminal else 80)


LABELS = {
    "sketch": "sketching",
    "weigh": "weighing",
    "build": "building tables",
    "query": "asking",
    "match": "comparing",
    "read": "reading",
    "collide": "finding candidates",
    "estimate": "estimating",
    "verify": "verifying",
    "decide": "deciding",
    "check": "checking recall",
    "write": "writing",
}


@contextlib.contextmanager
def notes(show: bool = True) -> Iterator[None]:
    """What the library logs, on stderr, a line each; nothing of it unless `show`."""
    import logging

    class Notes(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if show:
                print(*record.getMessage().split(), file=sys.stderr)

    log, handler = logging.getLogger("neardup_gpu"), Notes()
    before = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before)


@contextlib.contextmanager
def progress_bars(quiet: bool) -> Iterator[Callable[[str, int, int | None], None] | None]:
    """A progress callback: bars on a terminal; what the library logs is shown as well."""
    if quiet:
        with notes(show=False):
            yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description:18}"),
        BarColumn(),
        TextColumn("{task.fields[amount]:>20}"),
        TimeElapsedColumn(),
    )
    bars_on = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    with bars_on as bars, notes():
        tasks: dict[str, Any] = {}

        def report(stage: str, done: int, total: int | None) -> None:
            if stage not in tasks:
                for task in tasks.values():
                    bars.update(task, total=1, completed=1)
                tasks[stage] = bars.add_task(LABELS.get(stage, stage), total=None, amount="")
            amount = f"{done:,}" if total is None else f"{done:,} / {total:,}"
            bars.update(tasks[stage], completed=done, total=total, amount=amount if done or total else "")

        yield report


def print_json(value: dict[str, Any]) -> None:
    ascii_only = "utf" not in (sys.stdout.encoding or "").lower()
    typer.echo(json.dumps(value, indent=2, ensure_ascii=ascii_only, default=_plain))


def _plain(value: Any) -> Any:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def print_counts(counts: dict[str, Any], output: str, as_json: bool, quiet: bool, following: str) -> None:
    if as_json:
        print_json({**counts, "output": output})
    elif not quiet:
        numbers = {name.replace("_", " "): value for name, value in counts.items() if isinstance(value, int)}
        rows = [(name, size(value) if name == "text bytes" else f"{value:,}") for name, value in numbers.items()]
        if "timings" in counts:
            rows.append(("time", duration(sum(counts["timings"].values()))))
        for label, text in (*rows, ("written", output), ("next", following)):
            typer.echo(f"{style_of(sys.stdout).bold(f'{label:12}')} {text}")
