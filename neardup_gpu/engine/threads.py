"""One job at a time in a process, and the number of threads that it uses."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from contextvars import ContextVar

import pyarrow as pa

from neardup_gpu.kernels import _cpu

from ..errors import NeardupError, ParameterError, ResourceError, too_few_threads, want
from ..log import log
from .processors import most_threads, with_threads

SIDE_BY_SIDE = 16
"""Pieces of work that are computed at a time, at most: what is serial in one is done while others compute."""

_job = threading.RLock()
_job_of: ContextVar[int | None] = ContextVar("thread of the job that this code is part of", default=None)
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
        of_arrow = pa.cpu_count()
        try:
            if threads is not None:
                pa.set_cpu_count(threads)
            with _cpu.on_threads(threads or _cpu.num_threads()):
                yield
        finally:
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
    """See whether this number of threads can run at once.

    Raises
    ------
    ResourceError
        If they cannot be started.
    """
    global _startable
    if wanted <= _startable:
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


# ---------------------------------------------------------------------------------------------- forked processes


def _in_child() -> None:
    global _job, _startable
    _job, _startable = threading.RLock(), 1
    _job_of.set(None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
