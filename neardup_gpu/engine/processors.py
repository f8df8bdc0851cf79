"""How many processors there are, and how new processes are told to use fewer: instant to import, without Numba."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from contextvars import ContextVar

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
