"""Work done ahead: what a later stage will ask for is made by threads in the background, in order, in bounded memory.

A reader divides its file into steps, which are cheap to tell apart: row groups, blocks of lines, small files. What a
step gives can be made in any thread, several steps at once, as Arrow decodes and compresses without Python's lock. The
results come in the order of the steps, and so does an error: all that comes before it has been given by then.

What waits to be taken is bounded in bytes, not in number. Only the step whose results are taken now may go on when
the bound is reached, by one result at a time, so that there is always something to take.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar, copy_context
from dataclasses import field
from typing import Any, Generic, NamedTuple, TypeVar

from neardup_gpu.kernels._turn import rest

from ..engine.processors import own_threads, share_threads
from ..records import dataclass

AHEAD_BYTES = 16 << 20
"""Bytes that wait to be taken for each thread that makes them."""

MOST_THREADS = 16
"""Threads that make steps at once, however many there are: what they give is taken by one."""

_work: ContextVar[_StepQueue[Any] | None] = ContextVar("work that this thread makes steps of", default=None)


class StoppedError(BaseException):
    """Ends a step whose results nobody will take. Only the thread that makes the step sees it."""


def check_stopped() -> None:
    """End the step that this thread makes if nobody will take its results, as after an interrupt.

    Call it in each loop whose length an input decides: the one who interrupts waits for all threads.
    """
    work = _work.get()
    if work is not None and work.is_stopped:
        raise StoppedError


T = TypeVar("T")
I = TypeVar("I", bound=Iterable[Any])


class Step(NamedTuple, Generic[T]):
    """A part of a work, independent of the parts before it.

    Parameters
    ----------
    make : callable
        Gives the results, in order; called once, in any thread.
    num_bytes : int
        The approximate memory that it needs while it is being made, in addition to its results.
    """

    make: Callable[[], Iterable[T]]
    num_bytes: int = 0


def ahead(items: Iterable[T], most_bytes: int = 1, num_bytes: Callable[[T], int] = lambda _: 1) -> Iterator[T]:
    """The same items; a background thread makes the next ones while the caller works on this one.

    At most `most_bytes` of finished items wait, one item by default. `num_bytes` returns the size of an item.
    """
    return _in_background(iter([Step(lambda: items)]), 1, most_bytes, num_bytes)


def in_order(
    steps: Iterable[Step[T]],
    num_bytes: Callable[[T], int],
    threads: int | None = None,
    thread_bytes: int | None = None,
) -> Iterator[T]:
    """Yield the results of all steps, in order; several are made at once.

    Parameters
    ----------
    steps : iterable of Step
        Asked for one after another, by any thread, as far as there is room for what they give.
    num_bytes : callable
        The size of a result.
    threads : int, optional
        How many steps are made at once: all threads of the job unless given. With one, steps are made as their results
        are needed, in the caller's thread.
    thread_bytes : int, optional
        Bytes per thread for results that wait and for steps that are being made: `AHEAD_BYTES` unless given. A step
        that needs more than is left waits until it is the first one.

    Notes
    -----
    Memory: up to `thread_bytes` for each thread, with at most `MOST_THREADS`; a result and the
    `num_bytes` of a step for each thread; and one more result. When the caller stops early, no thread goes on, and
    generators that were begun are closed.
    """
    threads = min(own_threads() if threads is None else threads, MOST_THREADS)
    if threads <= 1:
        return _in_caller(iter(steps))
    return _in_background(iter(steps), threads, (thread_bytes or AHEAD_BYTES) * threads, num_bytes)


def _in_caller(steps: Iterator[Step[T]]) -> Iterator[T]:
    with closing(steps):
        for step in steps:
            with closing(step.make()) as items:
                yield from items


def _in_background(
    steps: Iterator[Step[T]], threads: int, most_bytes: int, num_bytes: Callable[[T], int]
) -> Iterator[T]:
    work = _StepQueue(steps, most_bytes, num_bytes)
    started: list[threading.Thread] = []
    try:
        for _ in range(threads):
            thread = threading.Thread(
                target=copy_context().run, args=(work.run, threads), name="neardup-ahead", daemon=True
            )
            try:
                thread.start()
            except RuntimeError:  # the system has no more; one is enough
                if not started:
                    raise
                break
            started.append(thread)
        while (lane := work.first()) is not None:
            while (result := work.take(lane)) is not _NOTHING:
                yield result
                del result
    finally:
        work.stop()
        for thread in started:
            if thread is not threading.current_thread():
                thread.join()
        work.close()


_NOTHING: Any = object()


@dataclass(eq=False)
class _Lane:
    """A step that was begun, what it has given so far and nobody has taken, and the error that follows."""

    step: Step[Any]
    results: deque[tuple[Any, int]] = field(default_factory=deque)
    done: bool = False
    error: BaseException | None = None


class _StepQueue(Generic[T]):
    """Steps that threads make, and what waits to be taken."""

    def __init__(self, steps: Iterator[Step[T]], most_bytes: int, num_bytes: Callable[[T], int]) -> None:
        self._steps, self._most, self._num_bytes = steps, most_bytes, num_bytes
        self._outer = _work.get()  # whose step takes the results
        self._asking = threading.Lock()  # for the next step
        lock = threading.RLock()  # a forgotten iterator may end in a thread that has it
        self._room, self._ready = threading.Condition(lock), threading.Condition(lock)  # for threads; for the caller
        self._lanes: deque[_Lane] = deque()  # in order; the first one is being taken from
        self._held = 0  # bytes that wait, and those of steps that are being made
        self._stopped = self._ended = False  # `_ended`: no more steps are to be begun

    # ------------------------------------------------------------------------------------------- threads that make

    def run(self, threads: int) -> None:
        """Run one thread."""
        share_threads(threads)
        _work.set(self)
        while (lane := self._next()) is not None:
            self._make(lane)

    def _next(self) -> _Lane | None:
        """Begin the next step; None if there is none."""
        with self._asking:
            rest()
            with self._room:
                self._room.wait_for(lambda: self._is_over or not self._lanes or self._held < self._most)
                if self._is_over:
                    return None
            step, error = None, None
            try:
                step = next(self._steps, None)
            except BaseException as raised:
                error = raised
            with self._room:
                if step is None:
                    self._end()
                if step is not None or error is not None:
                    lane = _Lane(step or Step(tuple), done=step is None, error=error)
                    self._lanes.append(lane)
                self._ready.notify()
                return None if step is None else lane

    @property
    def is_stopped(self) -> bool:
        """Whether nobody will take any more results."""
        return self._stopped or (self._outer is not None and self._outer.is_stopped)

    @property
    def _is_over(self) -> bool:
        return self._stopped or self._ended

    def _end(self) -> None:
        """Let no more steps be begun."""
        self._ended = True
        self._room.notify_all()

    def _make(self, lane: _Lane) -> None:
        size = lane.step.num_bytes
        with self._room:
            if not self._wait_for_room(size, lambda: self._is_first(lane)):
                return
        try:
            with closing(lane.step.make()) as results:
                for result in results:
                    if not self._put(lane, result):
                        return
        except BaseException as error:
            lane.error = error
        finally:
            with self._room:
                lane.done, lane.step = True, Step(tuple)  # frees what the step was made from, as its results may wait
                if lane.error is not None:
                    self._end()
                self._release(size)
                self._ready.notify()

    def _put(self, lane: _Lane, result: T) -> bool:
        """Let a result wait; False if nobody wants it any more."""
        size = self._num_bytes(result)
        with self._room:
            if not self._wait_for_room(size, lambda: self._is_first(lane) and not lane.results):
                return False
            lane.results.append((result, size))
            if self._is_first(lane):
                self._ready.notify()
        return True

    def _wait_for_room(self, size: int, regardless: Callable[[], bool]) -> bool:
        """Wait until there is room for this number of bytes, which are held from then on; False if the work was
        stopped."""
        rest()
        self._room.wait_for(lambda: self._stopped or self._held + size <= self._most or regardless())
        if not self._stopped:
            self._held += size
        return not self._stopped

    def _release(self, size: int) -> None:
        self._held -= size
        self._room.notify_all()

    def _is_first(self, lane: _Lane) -> bool:
        return self._lanes[0] is lane

    # --------------------------------------------------------------------------------------------- who takes results

    def first(self) -> _Lane | None:
        """The step whose results are to be taken now; None if there is none left."""
        with self._ready:
            self._ready.wait_for(lambda: self._lanes or self._ended)
            return self._lanes[0] if self._lanes else None

    def take(self, lane: _Lane) -> Any:
        """Return the next result of the first step, or `_NOTHING` after its last one."""
        rest()
        with self._ready:
            self._ready.wait_for(lambda: lane.results or lane.done)
            if lane.results:
                result, size = lane.results.popleft()
                self._release(size)
                return result
            if lane.error is not None:
                raise lane.error
            self._lanes.popleft()
            self._room.notify_all()
            return _NOTHING

    def stop(self) -> None:
        """Let all threads end."""
        with self._room:
            self._stopped = True
            self._room.notify_all()

    def close(self) -> None:
        """Close what gave the steps, after all threads have ended."""
        with closing(self._steps):
            pass


@contextlib.contextmanager
def closing(items: I) -> Iterator[I]:
    """The items, closed at the end if they can be: not all iterators are generators."""
    try:
        yield items
    finally:
        close = getattr(items, "close", None)
        if close is not None:
            close()
