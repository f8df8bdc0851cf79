"""How many processors there are, and how new processes are told to use fewer: instant to import, without Numba."""

from __future__ import annotations

import os
import sys


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
