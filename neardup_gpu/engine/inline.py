"""Tasks in this process, one after another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .attempts import Attempts, attempt
from .tasks import Task


class InlineWorkers:
    """A `Runner` in this process: nothing is started, and nothing survives its death."""

    num_workers, one_machine = 1, True

    def check_folder(self, folder: str) -> None:
        """True: this process can read its own files."""

    def run(self, tasks: Sequence[Task]) -> Iterator[tuple[Task, Any]]:
        """See `Runner.run`."""
        attempts = Attempts(tasks)
        while (attempted := attempts.take(False)) is not None:
            yield from attempts.done(attempted, attempt(attempted.task))
        attempts.end()

    def __enter__(self) -> InlineWorkers:
        return self

    def __exit__(self, *_: object) -> None:
        return None
