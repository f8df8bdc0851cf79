"""Seconds by stage, and progress as it is made: by a callback, in bars, or in lines of a log."""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

from ..errors import ArgumentTypeError
from ..log import log, progress_log
from ..report import count, duration, percent
from .stage_names import STAGES, Progress

SILENCE = 30.0
"""Seconds after which a stage that still runs logs how far it is."""

P = ParamSpec("P")
R = TypeVar("R")


class Clock:
    """Seconds by stage, and progress as it is made.

    Parameters
    ----------
    progress : callable or bool, optional
        Called at every step; see `Progress`. A bool is ignored here.
    noun : str, optional
        What all stages count; what `STAGES` says of each unless given.

    Attributes
    ----------
    seconds : dict of str to float
        Of each stage. The time in which Numba compiled kernels is not included: it is under "compile".
    """

    def __init__(self, progress: Progress | bool | None, *, noun: str | None = None) -> None:
        if not (progress is None or isinstance(progress, bool) or callable(progress)):
            raise ArgumentTypeError(
                f"progress: {type(progress).__name__} given; pass True for bars, or a function of a stage's name, "
                "what is done and of how much"
            )
        self.seconds: dict[str, float] = {}
        self._noun = noun
        self._begin = time.perf_counter()
        self._progress = progress if callable(progress) else None
        self._done: tuple[int, int | None] = (0, None)
        self._name = ""
        self._turns: dict[str, tuple[int, int | None, float, float]] | None = None
        from .compiling import Compiling

        self._compiling, self._compiled_before = Compiling(), 0.0

    @property
    def elapsed(self) -> float:
        """Seconds since the clock was made."""
        return round(time.perf_counter() - self._begin, 4)

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time what happens in the block, and log a line when it is done."""
        from .compiling import Compiling

        self._compiled_before += self._compiling.seconds
        start, self._compiling = time.perf_counter(), Compiling()
        self._name = name
        self.report(name, 0, None)
        quiet = self._turns is not None  # who takes turns is heard of from `turns`
        meanwhile = contextlib.nullcontext() if quiet else self._logged_meanwhile(start)
        with self._compiling.listens(), meanwhile:
            yield
        compiled = self._compiling.seconds
        seconds = max(0.0, time.perf_counter() - start - compiled)
        for key, value in ((name, seconds), ("compile", compiled)):
            if value or key == name:
                self.seconds[key] = round(self.seconds.get(key, 0.0) + value, 4)
        if self._turns is None:
            self._say_at_the_end(name, *self._done, seconds, compiled)
        else:
            _, _, before, compiled_before = self._turns.get(name, (0, None, 0.0, 0.0))
            self._turns[name] = *self._done, before + seconds, compiled_before + compiled

    @contextlib.contextmanager
    def turns(self) -> Iterator[None]:
        """Stages take turns in the block: what they do adds up, and each has one line at the end."""
        self._turns = {}
        try:
            with self._logged_meanwhile(time.perf_counter()):
                yield
            for name, turn in self._turns.items():
                self._say_at_the_end(name, *turn)
        finally:
            self._turns = None

    def say(self, line: str, name: str, total: int | None = None, **facts: Any) -> None:
        """Log a line on a stage; its record has the facts of it as `progress`, for those who log as JSON."""
        usual = dict.fromkeys(("done", "total", "rate", "seconds", "left", "compiling"))
        unit = self._noun or STAGES.get(name, (name, "document"))[1]
        told = {"stage": name, "unit": unit, **usual, "finished": False, "total": total, **facts}
        progress_log.info("%s", line, extra={"progress": told})

    def _say_at_the_end(self, name: str, done: int, total: int | None, seconds: float, compiled: float) -> None:
        line = _line_at_the_end(name, done, seconds, compiled, self._noun)
        self.say(line, name, finished=True, **_facts(done, total, seconds, compiled))

    def _say_so_far(self, start: float, compiled_before: float) -> None:
        compiled = self._compiled - compiled_before
        name, (done, total), seconds = self._name, self._done, time.perf_counter() - start - compiled
        line = _line_so_far(name, done, total, seconds, self._noun)
        if compiled:
            line += f", and {duration(compiled)} of compiling"
        if self._compiling.active:
            line += "; a kernel is being compiled"
        facts = _facts(done, total, seconds, compiled)
        if facts["rate"] and total is not None and total >= done:
            facts["left"] = round((total - done) / facts["rate"], 3)
        self.say(line, name, **facts)

    @property
    def _compiled(self) -> float:
        """Seconds of compiling since the clock was made."""
        return self._compiled_before + self._compiling.seconds

    def report(self, name: str, done: int, total: int | None) -> None:
        """Say how far a stage is, or its turn."""
        before = 0 if self._turns is None else self._turns.get(name, (0,))[0]
        done, total = before + done, None if total is None else before + total
        self._done = done, total
        if self._progress is not None:
            self._progress(name, done, total)

    @contextlib.contextmanager
    def _logged_meanwhile(self, start: float) -> Iterator[None]:
        """Log how far the stage is, every `SILENCE` seconds."""
        ended, compiled = threading.Event(), self._compiled

        def speak() -> None:
            while not ended.wait(SILENCE):
                if self._name:  # else no stage has begun
                    self._say_so_far(start, compiled)

        thread = threading.Thread(target=speak, name="neardup-progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


def _facts(done: int, total: int | None, seconds: float, compiled: float) -> dict[str, Any]:
    """How far a stage is; what is done is None where nothing is counted, and the rate also where it took no time."""
    return {
        "done": done if done or total is not None else None,
        "total": total,
        "rate": round(done / seconds, 1) if done and seconds >= 0.001 else None,
        "seconds": round(seconds, 3),
        "compiling": round(compiled, 3),
    }


def _line_at_the_end(name: str, done: int, seconds: float, compiled: float, noun: str | None = None) -> str:
    label, usual = STAGES.get(name, (name, "document"))
    amount = f"{count(done, noun or usual)} in " if done else ""
    compiling = f", and {duration(compiled)} of compiling" if compiled else ""
    return f"{label}: {amount}{duration(seconds)}{compiling}"


def _line_so_far(name: str, done: int, total: int | None, seconds: float, noun: str | None = None) -> str:
    """ "sketching: 1,200 of 5,000 documents (24.0%), 40 a second, 1 min 35 s left"."""
    label, usual = STAGES.get(name, (name, "document"))
    noun = noun or usual
    if not done:
        return f"{label}: {duration(seconds)} so far"
    rate = done / max(seconds, 0.001)
    amount, left = count(done, noun), ""
    if total is not None and total >= done:
        amount = f"{done:,} of {count(total, noun)} ({percent(done / total)})"
        left = f", {duration((total - done) / rate)} left"
    return f"{label}: {amount}, {rate:,.0f} a second{left}"


def with_bars(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator for functions that take `progress`: True shows bars while they run, on stderr or in a notebook."""

    @functools.wraps(function)
    def shown(*arguments: P.args, **options: P.kwargs) -> R:
        if options.get("progress") is not True:
            return function(*arguments, **options)
        with _harmless_bars() as report:
            options["progress"] = report
            return function(*arguments, **options)

    return shown


@contextlib.contextmanager
def _harmless_bars() -> Iterator[Progress | None]:
    """Draw bars for the duration of a block. If drawing fails, log that once, and let the block go on without bars."""
    from .bars import bars

    drawn, failed = bars(), False

    def give_up(error: Exception) -> None:
        nonlocal failed
        if not failed:
            with contextlib.suppress(ValueError):  # the stream that is closed is usually that of warnings as well
                log.warning("the bars of progress cannot be drawn (%s); the job goes on without them", error)
        failed = True

    def report(stage: str, done: int, total: int | None) -> None:
        if not failed:
            try:
                draw(stage, done, total)
            except Exception as error:
                give_up(error)

    try:
        draw = drawn.__enter__()
    except Exception as error:  # a closed stream, a notebook that captures the output, a terminal that is gone
        give_up(error)
        yield None
        return
    try:
        yield report
    except BaseException:
        with contextlib.suppress(Exception):
            drawn.__exit__(*sys.exc_info())
        raise
    try:
        drawn.__exit__(None, None, None)
    except Exception as error:
        give_up(error)
