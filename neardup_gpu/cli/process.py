"""The command `neardup` as a process: signals, standard streams and the exit status.

Nothing here is slow to import, so that signals find their handler from the start.
"""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
import time
from types import FrameType
from typing import Any, TextIO

TYPE_CHECKING = False  # as typing's, which is slow to import

BUG = 70
"""Exit status of a mistake in this package, as sysexits.h has it."""


def run() -> int:
    """Run the installed command: `main`, and the end of the process."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # of which NumPy would start one for each core, for nothing
    sys.meta_path.insert(0, _WithoutPandas)
    done: list[int] = []
    atexit.register(_leave, done)  # called last, as nothing was registered before
    status = main()
    if status != 0:
        # Nothing waits for what is left of the job, and nothing can fail again. Besides, Python makes a status of 130 a
        # death by SIGINT where the interrupt went through `exec`.
        _leave([status])
    for number in _ending():
        signal.signal(number, signal.SIG_DFL)
    done.append(status)
    return status


class _WithoutPandas:
    """Hide pandas, which pyarrow would import: that takes a fifth of a second, and no command uses it."""

    @staticmethod
    def find_spec(name: str, *_: Any) -> None:
        """Refuse pandas, and leave all other modules to other finders."""
        if name == "pandas":
            raise ModuleNotFoundError("pandas is hidden from pyarrow", name=name)


def _leave(done: list[int]) -> None:
    """End the process with the status in `done`, if there is one, and leave its modules and objects to the system.

    Python would take them apart one by one, which lasts as long as a short job.
    """
    for status in done:
        for stream in (sys.stdout, sys.stderr):
            _flush(stream)
        os._exit(status)


def main(arguments: list[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    arguments : list of str, optional
        Those of the process unless given.

    Returns
    -------
    int
        Exit status: 0; 2 for bad input, with one line on stderr; 3 if a count exceeds a limit of `--fail-over`; 130
        when interrupted; 1 when nobody reads stdout, or the self-test found a difference; 70 for a mistake in this
        package, after its traceback.
    """
    interrupted = "interrupted; nothing was written"
    with _Signals() as signals, _Streams():
        try:
            status = _run(arguments)
        except KeyboardInterrupt as error:
            status, interrupted = 130, str(error) or interrupted
        except Exception as error:
            # What was interrupted may raise something else: Numba does while it compiles, NumPy while it is imported.
            status = 130 if signals.came else _status_of(error)
        if status == 130:
            _complain(interrupted)
        if spooling := sys.modules.get("neardup_gpu.documents.standard_input"):
            spooling.remove()
        return status


def _run(arguments: list[str] | None) -> int:
    try:
        os.getcwd()
    except FileNotFoundError:
        _complain("the working folder was removed; change to one that exists")
        return 2
    if not getattr(sys, "_is_gil_enabled", lambda: True)():  # `kernels/_cpu.py` refuses it too
        _complain("this Python is free-threaded, and kernels need its global lock; set PYTHON_GIL=1")
        return 2
    from .console import log_as_json, say

    words = sys.argv[1:] if arguments is None else arguments
    log_as_json("--log-json" in words)  # also of what cannot be parsed
    if words[:1] == ["--version"]:
        from .. import __version__

        say(f"neardup {__version__}")
        status = 0
    else:
        gc.set_threshold(100_000)  # of 700: what is imported stays, and to look for garbage in it takes 30 ms
        from ..engine.heap import share
        from ..engine.processors import most_threads
        from .app import run as run_command

        share(most_threads())
        status = run_command(words)
    sys.stdout.flush()
    return status


def _status_of(error: Exception) -> int:
    """Say what went wrong, in one line unless it is a mistake in this package; the exit status."""
    from cyclopts import CycloptsError

    from ..errors import NeardupError, want

    if isinstance(error, BrokenPipeError):
        _drop(sys.stdout)
        return 1
    if isinstance(error, OSError) and str(error) == f"[Errno {error.errno}] {error.strerror}":  # no file is named
        _drop(sys.stdout)
        _complain(f"standard output cannot be written ({error.strerror})")
    elif isinstance(error, CycloptsError):
        from .errors import usage_message

        _complain(usage_message(error))
    elif isinstance(error, NeardupError):
        _complain(str(error))
    elif missing := want(error):
        from .errors import ENGINE, in_flags

        _complain(in_flags(missing, ENGINE))
    elif isinstance(error, OSError) and error.errno is not None:
        _complain(f"{error.filename}: {error.strerror}" if isinstance(error.filename, str) else str(error))
    else:
        from .console import note_bug

        note_bug(error)
        return BUG
    return 2


def _flush(stream: TextIO | None) -> None:
    if stream is not None:
        try:
            stream.flush()
        except OSError:
            _drop(stream)


def _drop(stream: TextIO) -> None:
    """Drop the unwritten output, so that it cannot fail again when the process ends."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)


def _complain(message: str) -> None:
    from .console import note

    note(f"neardup: {message}")


# ------------------------------------------------------------------------------------------------------------- signals


def _ending() -> list[int]:
    """Return the signals that ask a process to end, as far as this system has them."""
    return [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


class _Signals:
    """Raise KeyboardInterrupt at the first signal that asks the process to end; the second one ends it at once.

    Signals that were ignored before (by nohup) stay ignored. The caller's handlers are restored at the end.
    """

    def __init__(self) -> None:
        self.came = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> _Signals:
        try:
            for number in _ending():
                before = signal.getsignal(number)
                if before not in (signal.SIG_IGN, None):  # None: not set by Python, which could not set it again
                    signal.signal(number, self._first)
                    self._before[number] = before
        except ValueError:
            pass  # signals are the main thread's
        self._hook, sys.unraisablehook = sys.unraisablehook, self._lost
        return self

    def __exit__(self, *_: object) -> None:
        sys.unraisablehook = self._hook
        for number, before in self._before.items():
            signal.signal(number, before)

    def _first(self, number: int, frame: FrameType | None) -> None:
        self.came = True
        ending = list(self._before)
        # `timeout`, shells and terminals send a signal to the process and to its group: twice means once here.
        for each in ending:
            signal.signal(each, signal.SIG_IGN)
        time.sleep(0.1)
        for each in ending:  # by the system, as no handler would be called while C code runs
            signal.signal(each, signal.SIG_DFL)
        raise KeyboardInterrupt

    def _lost(self, what: sys.UnraisableHookArgs) -> None:
        """Handle an exception that Python drops, as in callbacks of the garbage collector and of imports."""
        if issubclass(what.exc_type, KeyboardInterrupt) and self.came and hasattr(signal, "setitimer"):
            self._before.setdefault(signal.SIGALRM, signal.signal(signal.SIGALRM, self._again))
            signal.setitimer(signal.ITIMER_REAL, 0.01)  # in a moment, where it is not dropped
        elif self.came and "ignored due to race condition" in str(what.exc_value):
            pass  # Python's words for a signal that came with the first one
        elif not issubclass(what.exc_type, MemoryError):  # others follow
            self._hook(what)

    def _again(self, number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt


# ---------------------------------------------------------------------------------------------------- standard streams


class _Streams:
    """Standard streams that are there, and a standard output that takes every character.

    Where a descriptor is closed, the next file that is opened would get its number, and the printed lines with it.
    """

    def __enter__(self) -> None:
        for descriptor in range(3):
            try:
                os.fstat(descriptor)
            except OSError:
                os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
        self._before, self._errors = sys.stdout, getattr(sys.stdout, "errors", None)
        if sys.stdout is None:
            sys.stdout = open(os.devnull, "w", encoding="utf-8")
        elif hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(errors="backslashreplace")

    def __exit__(self, *_: object) -> None:
        sys.stdout = self._before
        if self._errors is not None and hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(errors=self._errors)
