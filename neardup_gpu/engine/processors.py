"""How many processors there are, and how new processes are told to use fewer: instant to import, without Numba."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from contextvars import ContextVar

from ..errors import ParameterError

LAYERS = ("default", "safe", "forksafe", "threadsafe", "tbb", "omp", "workqueue")
"""Values of NUMBA_THREADING_LAYER."""

MOST_THREADS = 1024
"""Upper bound for NUMBA_NUM_THREADS on machines with fewer processors: starting 100,000 threads takes minutes."""


def check_environment() -> None:
    """Check the environment variables with which Numba cannot be imported or cannot run kernels.

    Raises
    ------
    ParameterError
        If one has a value that Numba refuses.
    """
    imported = "numba" in sys.modules
    get = os.environ.get
    threads, layer, disabled = get("NUMBA_NUM_THREADS"), get("NUMBA_THREADING_LAYER"), get("NUMBA_DISABLE_JIT")
    if imported:
        threads = str(most_threads())
    most = max(MOST_THREADS, os.cpu_count() or 1)
    number = threads.strip() if threads is not None else "1"
    if not (number.isdecimal() and len(number) <= 20 and 1 <= int(number) <= most):
        raise ParameterError(
            f"the environment variable NUMBA_NUM_THREADS must be a whole number between 1 and {most}, got {threads!r}; "
            "unset it to use all processors",
            parameter="NUMBA_NUM_THREADS",
        )
    if imported:
        return
    if layer is not None and layer not in LAYERS:
        raise ParameterError(
            f"the environment variable NUMBA_THREADING_LAYER must be one of {', '.join(LAYERS)}, got {layer!r}; unset "
            "it to let Numba choose",
            parameter="NUMBA_THREADING_LAYER",
        )
    if disabled not in (None, "", "0"):
        raise ParameterError(
            f"the environment variable NUMBA_DISABLE_JIT must be 0, got {disabled!r}; unset it, as kernels are "
            "compiled",
            parameter="NUMBA_DISABLE_JIT",
        )


_own: ContextVar[int | None] = ContextVar("threads that this code may use", default=None)


def most_threads() -> int:
    """How many threads kernels may use in this process: as many as Numba has, or will have once it is imported."""
    if "numba" in sys.modules:
        return int(sys.modules["numba"].config.NUMBA_NUM_THREADS)
    given = os.environ.get("NUMBA_NUM_THREADS", "")
    if given.isdecimal() and int(given):
        return int(given)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def thread_limits(threads: int) -> dict[str, str]:
    """The environment of a new process in which kernels and Arrow use this number of threads."""
    return {"NUMBA_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}


def own_threads() -> int:
    """How many threads this code may use beside those of kernels: those of its job, or its share of them."""
    return _own.get() or most_threads()


@contextlib.contextmanager
def with_threads(threads: int) -> Iterator[None]:
    """Let the code in the block use so many threads."""
    token = _own.set(threads)
    try:
        yield
    finally:
        _own.reset(token)


def share_threads(among: int) -> None:
    """Let the code of this thread use its share from now on, where so many threads do the same work."""
    _own.set(max(1, own_threads() // among))
