"""Tell the C library how much freed memory to keep: all of it while a job runs, nothing within a bound.

A page that went back to the system has to be fetched again, one fault after another, by whoever writes to it first. Of
a job on short documents that was a third of the time, in which the same few buffers came and went for each batch. So a
running job keeps what it frees, until `give_back` is called between stages and at its end. Within `--memory`
freed memory goes back at once instead. Both are settings of glibc (mallopt(3)); other C libraries have none of them. A
process whose environment sets them itself is left alone.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
from collections.abc import Iterator
from functools import cache
from typing import Any

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # as M_TRIM_THRESHOLD of mallopt
_VARIABLE = "MALLOC_MMAP_THRESHOLD_"

KEPT = 1 << 30, 1 << 30
"""(bytes from which on an allocation is mapped by itself, most that stays free at the top of the heap) of a job."""

MAPPED = 1 << 17, 1 << 17
"""The same within a bound."""

USUAL = 32 << 20, 64 << 20
"""The most that glibc comes to by itself, as it learns from what is freed."""

_changing = threading.Lock()
_jobs, _bounds = 0, 0

if hasattr(os, "register_at_fork"):  # else a process forked while a thread changes this would wait for that thread
    os.register_at_fork(before=_changing.acquire, after_in_parent=_changing.release, after_in_child=_changing.release)


@cache
def _of_c_library(name: str) -> Any:
    """A function of glibc; None in another C library."""
    return None if os.name == "nt" else getattr(ctypes.CDLL(None), name, None)


def share(heaps: int) -> None:
    """Let all threads of this process take memory from at most this number of heaps.

    glibc would make a heap for each of the first threads, eight for each processor. What a thread frees at the end of a
    heap stays there, and `give_back` cannot return it. Call `share` before the first thread is started, in a process
    that is the command's own, as it cannot be undone.
    """
    if "MALLOC_ARENA_MAX" not in os.environ and (set_option := _of_c_library("mallopt")) is not None:
        set_option(_ARENA_MAX, heaps)


def give_back() -> None:
    """Let everything that is free go back to the system. It takes about a millisecond."""
    if (trim := _of_c_library("malloc_trim")) is not None:
        trim(0)


def _change(jobs: int = 0, bounds: int = 0) -> None:
    """One job or bound more, or less."""
    global _jobs, _bounds
    with _changing:
        before = _wanted()
        _jobs, _bounds = _jobs + jobs, _bounds + bounds
        if _wanted() != before and (set_option := _of_c_library("mallopt")) is not None:
            mapped, trimmed = _wanted()
            if not set_option(_MMAP_THRESHOLD, mapped):  # some versions allow no more than:
                set_option(_MMAP_THRESHOLD, USUAL[0])
            set_option(_TRIM_THRESHOLD, trimmed)


def _wanted() -> tuple[int, int]:
    return MAPPED if _bounds else KEPT if _jobs else USUAL


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """Let memory that is freed in the block be used again, and go back to the system only afterwards."""
    if _VARIABLE in os.environ:
        yield
        return
    _change(jobs=1)
    try:
        yield
    finally:
        _change(jobs=-1)
        if not _jobs:
            give_back()


@contextlib.contextmanager
def freed_at_once() -> Iterator[None]:
    """Let memory that is freed in the block go back to the system, here and in processes that are started.

    Otherwise glibc and Arrow's allocators keep some of it for later.
    """
    import pyarrow as pa

    given = {_VARIABLE: str(MAPPED[0]), "ARROW_DEFAULT_MEMORY_POOL": "system"}
    before, pool = {name: os.environ.get(name) for name in given}, pa.default_memory_pool()
    _change(bounds=1)
    os.environ.update(given)
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        _change(bounds=-1)
        pa.set_memory_pool(pool)
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
