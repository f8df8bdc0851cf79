"""The host as a place to run: pieces of work side by side, on the backends "cpu" and "reference"."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from itertools import chain, islice
from typing import Any

import pyarrow as pa

from neardup_gpu.kernels._cpu import num_threads, on_threads
from neardup_gpu.kernels._turn import rest

from ..store.spool import Spool
from . import heap
from .arrays import some_rows
from .choice import to_host
from .contract import Backend, P, Q, R
from .memory import Shares
from .threads import SIDE_BY_SIDE


class _FreeThreads:
    """The threads of a job that no piece has taken.

    Parameters
    ----------
    threads, pieces : int
        How many threads there are, and how many pieces are computed side by side: no more than threads.
    """

    def __init__(self, threads: int, pieces: int) -> None:
        self._number, self._share, self._first = threads, -(-threads // pieces), pieces
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def some(self) -> Iterator[None]:
        """Run the kernels of the block on some of the free threads; wait while none is free.

        The first pieces take half of the free threads each, so that few pieces have nearly all. Later ones have equal
        shares.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._number)
            taken = -(-self._number // 2) if self._first > 0 else min(self._share, self._number)
            self._first -= 1
            self._number -= taken
        try:
            with on_threads(taken):
                yield
        finally:
            with self._changed:
                self._number += taken
                self._changed.notify_all()


class HostRuntime:
    """A `Runtime` in this process; kernels use the threads of the job.

    Parameters
    ----------
    backend : "cpu" or "reference"
    """

    def __init__(self, backend: Backend) -> None:
        self.backend, self.shares = backend, Shares.of_host()

    def map(self, run: Callable[[P], R], pieces: Iterable[P], begin: Callable[[P], Any] | None = None) -> Iterator[R]:
        """Yield a function's results for pieces, in order; some at a time, each by a thread that has a share of all
        threads."""
        pieces = iter(pieces)
        first = list(islice(pieces, 2))
        threads = num_threads()
        if len(first) < 2 or threads == 1:
            yield from map(run, chain(first, pieces))
            return
        waiting: deque[Future[R]] = deque()
        number = min(threads, SIDE_BY_SIDE)
        free = _FreeThreads(threads, number)
        pool = ThreadPoolExecutor(number, "neardup-map")

        def run_and_rest(piece: P) -> R:
            try:
                with free.some():
                    return run(piece)
            finally:
                rest()

        def first_result() -> R:
            rest()
            return waiting.popleft().result()

        try:
            for piece in chain(first, pieces):
                waiting.append(pool.submit(copy_context().run, run_and_rest, piece))
                if len(waiting) > number:
                    yield first_result()
            while waiting:
                yield first_result()
        finally:
            pool.shutdown(cancel_futures=True)

    def fold(self, prepare: Callable[[P], Q], add: Callable[[Q, R], R], value: R, pieces: Iterable[P]) -> R:
        for prepared in self.map(prepare, pieces):
            value = add(prepared, value)
        return value

    def run(self, function: Callable[..., R], *arguments: Any) -> R:
        return function(*arguments)

    def put(self, array: Any) -> Any:
        return to_host(array)

    def fetch(self, array: Any) -> Any:
        return to_host(array)

    def take(self, array: Any, rows: Any, *, last: bool = False) -> Any:
        return some_rows(array, rows, last=last)

    def keeps(self, num_bytes: int) -> bool:
        return True

    def spool(self, folder: Any, num_bytes: int | None = None, again: Any = None, over: Any = None) -> Any:
        return Spool(folder, over)

    def staged(self, batches: Iterator[Any]) -> Iterator[tuple[Any, Any]]:
        return ((batch, batch.text) for batch in batches)

    def batch_bytes(self, shingling: str, bytes_a_document: int) -> int:
        return self.shares.batch

    def release(self) -> None:
        heap.give_back()  # also what was freed between arrays that are still needed
        pa.default_memory_pool().release_unused()

    def wait(self) -> None:
        return None

    def describe(self) -> None:
        return None
