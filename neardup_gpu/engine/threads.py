"""One job at a time, on how many threads; and processes that were forked from one that had computed something.

A fork copies the thread that forks and no other. GNU's OpenMP, by which Numba mostly runs kernels, waits for ever for
the threads that its parent had, so Numba ends such a process. Here the forked thread runs kernels alone instead, which
needs no others; threads that it starts get others of their own. TBB and Numba's own layer begin anew by themselves.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import numba
import pyarrow as pa
from numba.core.compiler_lock import global_compiler_lock
from numba.np.ufunc import parallel

from ..errors import NeardupError, ParameterError, ResourceError, too_few_threads, want
from ..log import log
from .processors import most_threads, with_threads

SIDE_BY_SIDE = 4
"""Pieces of work that are computed at a time, at most: what is serial in one is done while others compute."""

_job = threading.RLock()
_kernel = threading.RLock()
_job_of: ContextVar[int | None] = ContextVar("thread of the job that this code is part of", default=None)
_alone: int | None = None  # the thread that forked this process, where it has to run kernels without others
_startable = 1  # threads that could be started at once when it was last tried


@contextlib.contextmanager
def on_threads(threads: int | None) -> Iterator[None]:
    """One job at a time, on this number of threads; all of this machine's for None.

    Raises
    ------
    ParameterError
        If this machine does not have that many threads.
    ResourceError
        If a stream that is being read starts a job, or if there is too little memory or there are too few threads for
        the code in the block.
    """
    most = most_threads()
    if threads is not None and not 1 <= threads <= most:
        raise ParameterError(
            f"threads must be between 1 and {most} (what this machine has), got {threads}", parameter="threads"
        )
    number = threads or most
    with _shortage_in_one_line(), _one_at_a_time(), with_threads(number):
        _try_to_start(number if number <= SIDE_BY_SIDE else 2 * number)  # pieces side by side have threads of their own
        before, of_arrow = numba.get_num_threads(), pa.cpu_count()
        try:
            if threads is not None:
                pa.set_cpu_count(threads)
            numba.set_num_threads(1 if _alone == threading.get_ident() else threads or before)
            yield
        finally:
            numba.set_num_threads(before)
            if threads is not None:
                pa.set_cpu_count(of_arrow)


@contextlib.contextmanager
def _one_at_a_time() -> Iterator[None]:
    here, outer = threading.get_ident(), _job_of.get()
    if outer not in (None, here):
        raise ResourceError(
            "a stream that a job is reading has started another job, which would wait for the first one for ever; "
            "compute before the stream is read, or in another process"
        )
    if not _job.acquire(blocking=False):
        log.info("waiting until another job of this process has ended")
        _job.acquire()
    token = _job_of.set(here)
    try:
        yield
    finally:
        _job_of.reset(token)
        _job.release()


@contextlib.contextmanager
def _shortage_in_one_line() -> Iterator[None]:
    """Turn errors for want of memory, threads or open files into one line."""
    try:
        yield
    except NeardupError:
        raise
    except Exception as error:
        wanting = want(error)
        if wanting is None:
            raise
        raise ResourceError(wanting) from error


def _try_to_start(wanted: int) -> None:
    """See whether this number of threads can run at once: OpenMP would end the process if they could not be started.

    Raises
    ------
    ResourceError
        If they cannot be started.
    """
    global _startable
    if wanted <= _startable or _alone == threading.get_ident():
        return
    stop, started = threading.Event(), []
    try:
        for _ in range(wanted - 1):
            thread = threading.Thread(target=stop.wait, daemon=True)
            thread.start()
            started.append(thread)
    except RuntimeError:
        raise ResourceError(too_few_threads(f"only {1 + len(started)} of {wanted}")) from None
    finally:
        stop.set()
        for thread in started:
            thread.join()
    _startable = wanted


def exclusive() -> contextlib.AbstractContextManager[Any]:
    """The context in which kernels are called: Numba's own layer aborts when two threads call kernels at once."""
    return _kernel if _layer() == "workqueue" else contextlib.nullcontext()


def runs_kernels_side_by_side() -> bool:
    """Whether several threads may call kernels at once, after a first kernel has run or threads were asked for."""
    return _layer() not in (None, "workqueue")


def _layer() -> str | None:
    """Numba's threading layer; None before the first kernel has run."""
    return parallel._threading_layer


# ---------------------------------------------------------------------------------------------- forked processes


def _before_fork() -> None:
    """Let no other thread be compiling or starting Numba's threads, which the new process could not bring to an end."""
    global_compiler_lock.acquire()
    parallel._backend_init_thread_lock.acquire()


def _after_fork() -> None:
    parallel._backend_init_thread_lock.release()
    global_compiler_lock.release()


def _in_child() -> None:
    global _job, _kernel, _alone, _startable
    _after_fork()
    _job, _kernel, _startable = threading.RLock(), threading.RLock(), 1
    _job_of.set(None)
    if _layer() is None:
        return
    parallel._is_initialized = False
    parallel._backend_init_process_lock = None  # others would wait for it if a process were killed while it held it
    numba.get_num_threads()  # starts Numba's threads, as in a process that was not forked
    if _layer() == "omp":
        numba.set_num_threads(1)
        _alone = threading.get_ident()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)
