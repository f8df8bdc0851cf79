"""Attempts at tasks, the same whoever runs them: one attempt in a worker, and what follows from how it ended."""

from __future__ import annotations

import logging
import os
import pickle
import traceback
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any

from ..errors import NeardupError, want
from ..log import log, progress_log
from ..records import dataclass
from .processors import thread_limits
from .tasks import ATTEMPTS, Task, TaskFailedError


@dataclass(frozen=True)
class Failure:
    """Why an attempt gave no result: one line, and where it has them the traceback and an error of the user's."""

    line: str
    trace: str = ""
    error: NeardupError | None = None


@dataclass(frozen=True)
class Outcome:
    """The message that a worker sends back: a result unless there is a failure, and what was logged meanwhile."""

    result: Any
    failure: Failure | None
    records: Sequence[logging.LogRecord] = ()


@dataclass(eq=False)
class Attempted:
    """A task, its place among the others, and how often it was begun."""

    task: Task
    place: int
    begun: int = 0


class Attempts:
    """Which of some tasks wait, and which were given up.

    Parameters
    ----------
    tasks : sequence of Task
    devices : bool
        Whether some worker has a device, so that tasks for one wait for it.
    """

    def __init__(self, tasks: Sequence[Task], *, devices: bool = False) -> None:
        self.num_open = self._num_tasks = len(tasks)
        self._waiting: dict[bool, deque[Attempted]] = {False: deque(), True: deque()}
        self._devices = devices
        self._given_up: list[tuple[Attempted, Failure]] = []
        for place, task in enumerate(tasks):
            self._wait(Attempted(task, place))

    def num_waiting(self, on_device: bool) -> int:
        """How many tasks of a kind wait."""
        return len(self._waiting[on_device])

    def take(self, *on_device: bool) -> Attempted | None:
        """Begin the next task of the first kind that has one: for a device, or not."""
        for kind in on_device:
            if self._waiting[kind]:
                attempted = self._waiting[kind].popleft()
                attempted.begun += 1
                return attempted
        return None

    def share(self, attempted: Attempted, num_workers: int) -> int:
        """Return how many workers' processors a task should use.

        It is more than one for the last tasks, if there are at least twice as many workers as tasks that are left
        after all workers have had the same number of tasks.
        """
        left = self._num_tasks % num_workers
        return num_workers // left if attempted.place >= self._num_tasks - left else 1

    def done(self, attempted: Attempted, outcome: Outcome) -> list[tuple[Task, Any]]:
        """The task with its result; nothing where it failed.

        Raises
        ------
        NeardupError
            If the attempt raised one.
        """
        for record in outcome.records:
            logger = logging.getLogger(record.name)
            if logger.isEnabledFor(record.levelno):
                logger.handle(record)
        if outcome.failure is not None:
            self.failed(attempted, outcome.failure)
            return []
        self.num_open -= 1
        return [(attempted.task, outcome.result)]

    def failed(self, attempted: Attempted, failure: Failure) -> None:
        """Let a task wait again, or give it up."""
        if failure.error is not None:
            raise failure.error
        log.debug("%s, attempt %d: %s", attempted.task.describe(), attempted.begun, failure.trace or failure.line)
        if attempted.begun < ATTEMPTS:
            self._wait(attempted)
        else:
            self._given_up.append((attempted, failure))
            self.num_open -= 1

    def end(self) -> None:
        """Raise the error of tasks that were given up, if there are any.

        Raises
        ------
        TaskFailedError
        """
        if self._given_up:
            first, failure = min(self._given_up, key=lambda given_up: given_up[0].place)
            others = len(self._given_up) - 1
            also = f"; so did {others} other {'task' if others == 1 else 'tasks'}" if others else ""
            raise TaskFailedError(
                f"{first.task.describe()} failed {ATTEMPTS} times, at last with: {failure.line}"
                f"{also}. What other tasks made is kept for the next run"
            )

    def _wait(self, attempted: Attempted) -> None:
        self._waiting[self._devices and attempted.task.on_device].append(attempted)


def attempt(task: Task) -> Outcome:
    """Run a task, and keep what it raises."""
    try:
        return Outcome(task.run(), None)
    except Exception as error:
        line = want(error) or f"{type(error).__name__}: {' '.join(str(error).split())}"
        return Outcome(None, Failure(line, traceback.format_exc(), error if isinstance(error, NeardupError) else None))


class InlineWorkers:
    """A `Runner` in this process, one task after another: nothing is started, and nothing survives its death."""

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


# --------------------------------------------------------------------------------------------- for other processes


_unsent: list[logging.LogRecord] = []
"""Records of `warm_up` for the first outcome that this worker, or one that is forked from it, sends."""


def warm_up(packed: bytes, level: int) -> None:
    """Run a task and keep only its messages about this machine: that no compiled kernel can be kept."""
    records = outcome_of(attempt_apart(packed, level)).records
    _unsent.extend(record for record in records if getattr(record, "once", False))


def attempt_apart(packed: bytes, level: int, threads: int | None = None) -> bytes:
    """Run a task in a worker and return the pickled outcome.

    Parameters
    ----------
    packed : bytes
        The pickled task.
    level : int
        The level of the log that the caller reads.
    threads : int, default None
        Number of threads to run the task on. If None, the number that the environment gives.
    """
    if threads is not None:
        import pyarrow as pa

        os.environ.update(thread_limits(threads))
        pa.set_cpu_count(threads)
    with _TaskLog(level) as kept:
        kept.records += _unsent
        _unsent.clear()
        try:
            outcome = attempt(pickle.loads(packed))
        except Exception as error:
            outcome = Outcome(None, Failure(f"the task cannot be read by a worker ({error})", traceback.format_exc()))
    failure = outcome.failure
    if failure is not None and failure.error is not None and not _can_be_sent(failure.error):
        failure = Failure(failure.line, failure.trace, NeardupError(str(failure.error)))
    try:
        return pickle.dumps(Outcome(outcome.result, failure, kept.records))
    except Exception as error:
        line = f"what it returned ({type(outcome.result).__name__}) cannot be sent between processes ({error})"
        return pickle.dumps(Outcome(None, Failure(line, traceback.format_exc()), kept.records))


def outcome_of(packed: bytes) -> Outcome:
    """The outcome that a worker sent."""
    try:
        return pickle.loads(packed)
    except Exception as error:
        return Outcome(None, Failure(f"what it returned cannot be read here ({error})", traceback.format_exc()))


def _can_be_sent(error: Exception) -> bool:
    try:
        return type(pickle.loads(pickle.dumps(error))) is type(error)
    except Exception:
        return False


@dataclass(eq=False)
class _TaskLog:
    """The package's log while a task runs, without its progress."""

    level: int
    records: list[logging.LogRecord] = field(default_factory=list)

    def __enter__(self) -> _TaskLog:
        self._before = log.level, log.propagate
        self._handler = logging.Handler()
        self._handler.emit = self._keep  # type: ignore[method-assign]
        log.addHandler(self._handler)
        log.setLevel(self.level)
        log.propagate = False
        return self

    def __exit__(self, *_: object) -> None:
        level, log.propagate = self._before
        log.setLevel(level)
        log.removeHandler(self._handler)

    def _keep(self, record: logging.LogRecord) -> None:
        if record.name != progress_log.name:
            record.msg, record.args, record.exc_info = record.getMessage(), None, None
            self.records.append(record)
