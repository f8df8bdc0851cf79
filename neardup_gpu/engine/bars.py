"""Bars of progress, drawn by rich on stderr or in a notebook."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import time
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn, TimeRemainingColumn
from rich.text import Text

from ..report import count
from .compiling import Compiling
from .stage_names import STAGES, Progress as Report


class _Rate(ProgressColumn):
    """ "40/s"."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text(f"{speed:,.0f}/s" if speed and task.completed > 1 else "", style="dim")


class _CompilingBar(Compiling):
    """A bar of its own for the time in which kernels are compiled, drawn from the first one on."""

    def __init__(self, drawn: Progress) -> None:
        super().__init__()
        self._drawn, self._task = drawn, TaskID(-1)

    def hear(self, begins: bool) -> None:
        super().hear(begins)
        if begins and self._task < 0:
            self._task = self._drawn.add_task("compiling kernels", total=None, amount="")
        elif begins and self._depth == 1:
            self._drawn.update(self._task, total=None)
        elif not self.active and self._task >= 0:
            amount = count(self.number, "kernel")
            self._drawn.update(self._task, total=self.number, completed=self.number, amount=amount)
            with contextlib.suppress(StopIteration):
                task = next(task for task in self._drawn.tasks if task.id == self._task)
                task.finished_time = self.seconds  # not what went by between two kernels


class _TextInNotebook(Progress):
    """Bars as text that is replaced in its place: in a notebook without ipywidgets, where rich cannot draw.

    Front ends of notebooks do not move a cursor upwards, so what is for terminals would be shown again and again.
    """

    SECONDS = 0.2  # between two texts

    def start(self) -> None:
        from IPython.display import display

        self._handle: Any = display({"text/plain": ""}, raw=True, display_id=True)
        self._next = 0.0

    def refresh(self) -> None:
        if time.monotonic() >= self._next:
            self._show()

    def update(self, *given: Any, **changes: Any) -> None:
        super().update(*given, **changes)
        self.refresh()

    def stop(self) -> None:
        self._show("" if self.live.transient else None)

    def _show(self, text: str | None = None) -> None:
        if text is None:
            console = Console(file=io.StringIO(), force_jupyter=False, force_terminal=False, width=79)
            console.print(self.get_renderable())
            text = console.file.getvalue()  # type: ignore[attr-defined]
        self._handle.update({"text/plain": text}, raw=True)
        self._next = time.monotonic() + self.SECONDS


@contextlib.contextmanager
def bars(console: Console | None = None, transient: bool = False) -> Iterator[Report]:
    """A callback that draws a bar for each stage: amount done, total, speed, and the time left or, at its end, taken.

    Kernels that are compiled meanwhile have a bar next to that of the stage.

    Parameters
    ----------
    console : rich's Console, optional
        Where bars are drawn. Default: stderr.
    transient : bool
        Whether the bars vanish in the end.
    """
    columns = (
        TextColumn("{task.description:18}"),
        BarColumn(18),
        TextColumn("{task.fields[amount]}", markup=False),
        _Rate(),
        TimeRemainingColumn(compact=True, elapsed_when_finished=True),
    )
    kind: type[Progress] = Progress
    if console is None:
        console = Console(stderr=True)
        if console.is_jupyter and importlib.util.find_spec("ipywidgets") is None:
            kind = _TextInNotebook
    with kind(*columns, console=console, transient=transient) as drawn, _CompilingBar(drawn).listens():
        tasks: dict[str, TaskID] = {}

        def finish() -> None:
            for task in drawn.tasks:
                if not task.finished:
                    total = max(1, task.completed)
                    drawn.update(task.id, total=total, completed=total)

        def report(stage: str, done: int, total: int | None) -> None:
            if stage not in tasks:
                finish()
                tasks[stage] = drawn.add_task(STAGES.get(stage, (stage, ""))[0], total=None, amount="")
            if done:
                amount = f"{done:,}" if total is None else f"{done:,} / {total:,}"
                drawn.update(tasks[stage], completed=done, total=total, amount=amount)

        yield report
        finish()
