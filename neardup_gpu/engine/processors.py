"""How many threads this code and new processes use: instant to import."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextvars import ContextVar

from neardup_gpu.kernels._processor import most_threads

from ..errors import ParameterError

MOST_THREADS = 1024
"""Upper bound for NUMBA_NUM_THREADS on machines with fewer processors: starting 100,000 threads takes minutes."""


def check_environment() -> None:
    """Check the environment variables that say how kernels run, or with which Numba could not compile them.

    Raises
    ------
    ParameterError
        If one has a value that Numba refuses.
    """
    get = os.environ.get
    threads, disabled = get("NUMBA_NUM_THREADS"), get("NUMBA_DISABLE_JIT")
    most = max(MOST_THREADS, os.cpu_count() or 1)
    number = threads.strip() if threads is not None else "1"
    if not (number.isdecimal() and len(number) <= 20 and 1 <= int(number) <= most):
        raise ParameterError(
            f"the environment variable NUMBA_NUM_THREADS must be a whole number between 1 and {most}, got {threads!r}; "
            "unset it to use all processors",
            parameter="NUMBA_NUM_THREADS",
        )
    if disabled not in (None, "", "0"):
        raise ParameterError(
            f"the environment variable NUMBA_DISABLE_JIT must be 0, got {disabled!r}; unset it, as kernels are "
            "compiled",
            parameter="NUMBA_DISABLE_JIT",
        )


_own: ContextVar[int | None] = ContextVar("threads that this code may use", default=None)


def thread_limits(threads: int) -> dict[str, str]:
    """The environment of a new process in which kernels and Arrow use this number of threads."""
    return {"NUMBA_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}


def own_threads() -> int:
    """Number of threads that this code may use in addition to those of kernels: those of its job, or its share of
    them."""
    return _own.get() or most_threads()


@contextlib.contextmanager
def with_threads(threads: int) -> Iterator[None]:
    """Let the code in the block use this number of threads."""
    token = _own.set(threads)
    try:
        yield
    finally:
        _own.reset(token)


def share_threads(among: int) -> None:
    """Let the code of this thread use its share from now on, where this number of threads do the same work."""
    _own.set(max(1, own_threads() // among))
