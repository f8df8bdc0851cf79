"""Kernels of the processor: how they are declared, which compiled code runs, and how threads divide the work.

A function is declared with the signatures that Python calls it by:

    @jit("uint64[::1], int64")
    def below(values, bound): ...

    @parallel("uint64[::1], uint64[::1]")
    def _mix(begin, end, values, mixed): ...

    _mix(len(values), values, mixed)  # begin and end are filled in, for each thread that takes part

A signature's code comes from an extension module that was built with the package (`_ahead.py`). If no module was built
from the present sources, Numba compiles the function when it is first called, and keeps its code (`_numba.py`). Only
then is Numba imported: this file and every kernel name Numba's modules by stand-ins, `types`, `ir` and `carray`.
"""

from __future__ import annotations

import contextlib
import math
import operator
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from queue import SimpleQueue
from time import perf_counter
from typing import Any

import numpy as np

from ._cached import cached_property
from ._processor import most_threads
from ._stand_ins import Replaced, StandIn, carray, intrinsic, ir, linked, listeners, types  # noqa: F401 (for kernels)
from ._turn import rest

if not getattr(sys, "_is_gil_enabled", lambda: True)():
    raise ImportError("neardup_gpu needs Python's global lock; on a free-threaded Python, set PYTHON_GIL=1")

# --------------------------------------------------------------------------------------------------- functions


class _Array:
    """A type in a signature: of numbers by itself, and of arrays if indexed, as in `uint64[:, ::1]`."""

    def __init__(self, dtype: np.dtype) -> None:
        self.dtype = dtype

    def __getitem__(self, dimensions: Any) -> tuple[np.dtype, int, bool]:
        last = dimensions[-1] if isinstance(dimensions, tuple) else dimensions
        return self.dtype, len(dimensions) if isinstance(dimensions, tuple) else 1, last.step == 1


_NUMBERS = ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float32", "float64")
_NAMES: dict[str, Any] = {name: _Array(np.dtype(name)) for name in _NUMBERS} | {
    "boolean": _Array(np.dtype(bool)),
    "none": "NoneType",
}


def declared_kinds(signature: str) -> tuple[Any, ...]:
    """Return the kind of each argument of a signature.

    The kind of an array is (dtype, number of dimensions, whether it must be in C order), and that of a number a letter:
    "i", "f" or "b". The kind of a tuple is the tuple of its elements' kinds.
    """
    return tuple(map(_declared, eval(f"({signature},)", dict(_NAMES))))


def _declared(kind: Any) -> Any:
    if isinstance(kind, _Array):
        return kind.dtype.kind.replace("u", "i")
    if isinstance(kind, tuple) and not isinstance(kind[0], np.dtype):
        return tuple(map(_declared, kind))
    return kind


class _Describers(dict[type, Callable[[Any], Any]]):
    """For each type of argument, the function that describes an argument, as far as compiled code depends on it.

    It returns (dtype, number of dimensions, bits of `flags`) for an array, a tuple for a tuple, and else the type:
    compiled code converts numbers itself. Every call of a kernel describes its arguments, so functions in C do it.
    """

    def __missing__(self, kind: type) -> Callable[[Any], Any]:
        self[kind] = type
        return type


_describers = _Describers()
_describers[np.ndarray] = _describers[np.memmap] = operator.attrgetter("dtype", "ndim", "flags.num")


def _described(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple([_describers[type(each)](each) for each in arguments])


_describers[tuple] = _described

_C_ORDER, _ALIGNED = 1, 0x100  # bits of an array's `flags.num`


def _fits(declared: Any, given: Any) -> bool:
    """Return whether code for a declared kind takes an argument that is described so."""
    if isinstance(declared, str):
        return isinstance(given, type) and _letter(given) in (declared, "i" if declared == "f" else declared)
    is_array = isinstance(given, tuple) and len(given) > 0 and isinstance(given[0], np.dtype)
    if isinstance(declared[0], np.dtype):
        needed = _ALIGNED | _C_ORDER * declared[2]
        return is_array and given[:2] == declared[:2] and given[2] & needed == needed
    return (
        isinstance(given, tuple) and not is_array and len(given) == len(declared) and all(map(_fits, declared, given))
    )


def _letter(kind: type) -> str:
    if kind in (bool, int, float) or issubclass(kind, np.generic):
        return np.dtype(kind).kind.replace("u", "i")
    return kind.__name__


_MAKERS = frozenset(
    (
        *("arange", "argsort", "array", "carray", "concatenate", "copy", "cumsum", "empty", "empty_like"),
        *("flatnonzero", "full", "nonzero", "ones", "sort", "unique", "zeros", "zeros_like"),
    )
)
"""NumPy's functions that make arrays, as far as kernels use them. Numba refuses to compile a function that makes arrays
in a way that is not listed."""


class Rare(str):
    """A signature that few jobs need. A build from source leaves it to be compiled when it is first called."""


class Function(Replaced):
    """A compiled function of arrays and numbers.

    Arguments that fit no declared signature are compiled for as well, when they are first given. Whoever calls makes
    sure that the function may write the arrays that it writes: compiled code does not look whether an array is
    read-only.

    Parameters
    ----------
    function : callable
        In the part of Python that Numba compiles.
    signatures : tuple of str
        The types of arguments that Python calls it with: names of NumPy's types, with [::1] for arrays in C order, [:]
        for any array, and parentheses around tuples. Empty for functions that only kernels call. Numbers have 64 bits,
        since compiled code would cut a number to fewer bits without an error.
    is_wide : bool
        Whether it is also compiled ahead of time for processors with vectors of 512 bits.
    """

    def __init__(self, function: Callable, signatures: tuple[str, ...], is_wide: bool) -> None:
        self.py_func, self.signatures, self.is_wide = function, signatures, is_wide
        self.__name__, self.__doc__, self.__module__ = function.__name__, function.__doc__, function.__module__
        self._entries: dict[tuple[Any, ...], Callable] = {}

    @property
    def name(self) -> str:
        """Name of its file and its name there, which no two functions share."""
        return f"{self.__module__.rpartition('.')[2]}.{self.py_func.__qualname__}"

    @cached_property
    def makes_arrays(self) -> bool:
        """Whether it makes arrays, or calls a function that does. Only then does compiled code count references."""
        names = self.py_func.__code__.co_names
        called = [self.py_func.__globals__.get(name) for name in names]
        called += [cell.cell_contents for cell in self.py_func.__closure__ or ()]
        return not _MAKERS.isdisjoint(names) or any(isinstance(each, Function) and each.makes_arrays for each in called)

    @cached_property
    def original(self) -> Any:
        """Numba's function, which compiles it."""
        from ._numba import function

        return function(self)

    def __call__(self, *arguments: Any) -> Any:
        return self.entry(arguments)(*arguments)

    def entry(self, arguments: tuple[Any, ...]) -> Callable:
        """Return the code that was compiled for the types of the arguments."""
        try:
            return self._entries[tuple([_describers[type(each)](each) for each in arguments])]
        except KeyError:
            found = self._entries[_described(arguments)] = self._find(_described(arguments))
            return found

    def _find(self, described: tuple[Any, ...]) -> Callable:
        from ._ahead import entry

        for signature in self.signatures:
            if _fits(declared_kinds(signature), described):
                return entry(self.name, signature) or self.compiled(signature)
        return self.original

    def compiled(self, signature: str) -> Callable:
        """Return the code for a declared signature from Numba, which loads or compiles it."""
        from ._numba import compiled

        return compiled(self.original, signature)


class Parallel(Function):
    """A function of a range of items, which threads divide among themselves.

    It is called with the number of items in place of the range's begin and end. The calling thread takes part, and
    returns when all items are done. Each thread takes one share of the items after another. After an error or an
    interrupt no thread takes another share, and the error is raised when no thread computes any more.

    Parameters
    ----------
    function, signatures, is_wide
        As for `Function`; signatures leave out the first two arguments, `begin` and `end`.
    least : int
        Fewest items that are worth a share.
    """

    def __init__(self, function: Callable, signatures: tuple[str, ...], is_wide: bool, least: int) -> None:
        super().__init__(function, tuple(type(each)(f"int64, int64, {each}") for each in signatures), is_wide)
        self._least = least
        self._pace = math.inf  # seconds for an item, as found out last
        self._trusted = 0  # calls for which that is believed

    def __call__(self, count: int, *arguments: Any) -> None:
        count = operator.index(count)
        entry = self.entry(arguments)
        if count <= self._least:
            if count > 0:
                entry(0, count, *arguments)
            return
        threads = min(num_threads(), -(-count // self._least))
        work = _SharedItems(entry, arguments, count, self._least, threads)
        try:
            if self._pace * count < _LITTLE_TIME or (self._trusted <= 0 and self._pace < math.inf):
                work.try_alone(self._pace)
                self._pace, self._trusted = work.pace, _TRUSTED
            else:
                self._trusted -= 1
            for _ in range(work.helpers(self._pace)):
                if not _invite(work):
                    break
            work.compute()
        finally:
            work.end()
        if self._pace == math.inf:
            self._pace = work.pace
        if work.error is not None:
            try:
                raise work.error
            finally:
                work.error = None  # its traceback holds this frame

    def _find(self, described: tuple[Any, ...]) -> Callable:
        return super()._find((int, int, *described))  # begin and end


def jit(*signatures: str, is_wide: bool = False) -> Callable[[Callable], Function]:
    """Return a decorator that makes a `Function`."""
    return lambda function: Function(function, signatures, is_wide)


def parallel(*signatures: str, is_wide: bool = False, least: int = 1) -> Callable[[Callable], Parallel]:
    """Return a decorator that makes a function that is `Parallel`."""
    return lambda function: Parallel(function, signatures, is_wide, least)


# ----------------------------------------------------------------------------------------------------- threads


class _Here(threading.local):
    number: int | None = None


_here = _Here()


def num_threads() -> int:
    """Return how many threads run the kernels that this thread calls."""
    return _here.number or most_threads()


def set_num_threads(number: int | None) -> None:
    """Set how many threads run the kernels that this thread calls; None for one per processor."""
    _here.number = number


@contextlib.contextmanager
def on_threads(number: int | None) -> Iterator[None]:
    """Run the kernels that this thread calls in the block on this number of threads; None for one per processor."""
    before, _here.number = _here.number, number
    try:
        yield
    finally:
        _here.number = before


def alone() -> contextlib.AbstractContextManager[None]:
    """Return the context in which this thread runs kernels by itself."""
    return on_threads(1)


def is_alone() -> bool:
    """Return whether this thread runs kernels by itself."""
    return num_threads() == 1


class _SharedItems:
    """The items of one call of a parallel function, from which threads take shares.

    Shares begin small and double, as threads are not equally fast. Shares that take long are halved, so that an
    interrupt is soon noticed.
    """

    def __init__(self, entry: Callable, arguments: tuple[Any, ...], count: int, least: int, threads: int) -> None:
        self.error: BaseException | None = None
        self.pace = math.inf  # seconds for an item, of the thread that waited least for others
        self._entry, self._arguments = entry, arguments
        self._count, self._least, self._threads = count, least, threads
        self._next = self._helping = 0  # the first item that nobody has taken; the number of helpers that compute
        self._lock, self._helped = threading.Lock(), threading.Event()

    def helpers(self, pace: float) -> int:
        """Return how many helpers pay: each thread is to have work for longer than it takes to wake it."""
        left = self._count - self._next
        return int(min(self._threads - 1, pace * left / _LITTLE_TIME)) if left else 0

    @property
    def first_share(self) -> int:
        """Number of items of the first share that a thread takes."""
        return max(self._count // (64 * self._threads), self._least)

    def try_alone(self, pace: float) -> None:
        """Compute without helpers for a little time, which takes less than waking them."""
        quick = min(self._count, _LITTLE_TIME / 4 / pace) if pace else self._count
        self._compute(max(self.first_share, int(quick)), self._count, _LITTLE_TIME)

    def compute(self) -> None:
        """Take shares until none is left, or until a thread has failed."""
        self._compute(self.first_share, -(-self._count // (8 * self._threads)), math.inf)

    def _compute(self, size: int, most: int, seconds: float) -> None:
        count, done, since = self._count, 0, perf_counter()
        before = since
        try:
            while before - since < seconds:
                size = max(size, self._least)
                with self._lock:
                    begin = self._next
                    end = self._next = min(begin + size, count)
                if begin == count:
                    break
                self._entry(begin, end, *self._arguments)
                now = perf_counter()
                done += end - begin
                size = min(2 * size, most) if now - before < _LONG else size // 2
                before = now
        except BaseException as error:
            with self._lock:
                self.error = self.error or error
                self._next = count
        if done:
            self.pace = min(self.pace, (before - since) / done)

    def help(self, helper: _Helper) -> None:
        """Compute on a helper's thread, unless there is nothing left to take."""
        with self._lock:
            takes_part = self._next < self._count
            self._helping += takes_part
        if takes_part:
            self.compute()
        rest()
        _idle.append(helper)  # first, so that the next call of the thread that waits finds it
        if takes_part:
            with self._lock:
                self._helping -= 1
                if not self._helping:  # and nobody will begin, as nothing is left to take
                    self._helped.set()

    def end(self) -> None:
        """Let no thread take another share, and wait for helpers.

        An interrupt does not end the waiting, since helpers write the caller's arrays.
        """
        interrupt: BaseException | None = None
        while True:
            try:
                with self._lock:
                    self._next = self._count
                    is_done = not self._helping
                if is_done:
                    break
                rest()
                if self._helped.wait():
                    break
            except BaseException as error:
                interrupt = error
        if interrupt is not None:
            raise interrupt


_TRUSTED = 16
"""Calls after which a thread finds out again, without helpers, how long an item takes: those had made it seem longer if
they waited for others."""

_LONG = 0.1
"""Seconds after which a share was too large."""

_LITTLE_TIME = 1e-4
"""Seconds that one thread computes before it wakes others."""


class _Helper(threading.Thread):
    """A thread that waits for work of threads that call parallel functions."""

    def __init__(self) -> None:
        super().__init__(name="neardup-kernels", daemon=True)
        self.given: SimpleQueue[_SharedItems] = SimpleQueue()

    def run(self) -> None:
        while True:
            self.given.get().help(self)


_idle: list[_Helper] = []
_starting = threading.Lock()
_started = 0


def _invite(work: _SharedItems) -> bool:
    """Give the work to a helper; return False if none is idle and no other thread can be started."""
    global _started
    try:
        helper = _idle.pop()
    except IndexError:
        with _starting:
            if _started >= most_threads():
                return False
            helper = _Helper()
            try:
                helper.start()
            except RuntimeError:  # the system's limit, or the interpreter is about to exit
                return False
            _started += 1
    helper.given.put(work)
    return True


def _forget_helpers() -> None:
    """Begin without helpers in a forked process, which has only the thread that forked."""
    global _idle, _starting, _started
    _idle, _starting, _started = [], threading.Lock(), 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_helpers)


def shares(offsets: np.ndarray, per_thread: int = 8) -> np.ndarray:
    """Divide rows into runs of about equal total length, `per_thread` for each thread, and more of long ones.

    Returns
    -------
    array of int64, shape (runs + 1,)
        Run p is rows ``bounds[p]`` to ``bounds[p + 1]``; some may be empty. A row is never divided.
    """
    threads = num_threads()
    if threads == 1 and offsets[-1] - offsets[0] < _LITTLE:
        return np.array([0, len(offsets) - 1])
    runs = max(per_thread * threads, int(offsets[-1] - offsets[0]) // _MUCH)
    targets = np.linspace(offsets[0], offsets[-1], runs + 1).astype(np.int64)
    bounds = np.searchsorted(offsets, targets, side="left").astype(np.int64)
    bounds[0], bounds[-1] = 0, len(offsets) - 1
    return np.minimum(bounds, len(offsets) - 1)


_LITTLE = 1 << 16
"""Number of elements below which dividing rows takes longer than it saves."""

_MUCH = 1 << 18
"""Number of elements that a run has at most, unless it is one row: threads hear of interrupts between runs."""

# ------------------------------------------------------------------------------------------------ large arrays


class LargeArrays:
    """The maker of the arrays that grow with the text. This one leaves all in memory, wherever they are."""

    def empty(self, size: int, dtype: Any) -> np.ndarray:
        """Return an array without values."""
        return np.empty(size, dtype)

    def held(self, array: np.ndarray) -> np.ndarray:
        """Return an array that stays for long: itself, or a copy elsewhere."""
        return array


_IN_MEMORY = LargeArrays()
_maker: ContextVar[LargeArrays] = ContextVar("large arrays")


@contextlib.contextmanager
def large_arrays_by(maker: LargeArrays) -> Iterator[None]:
    """Let `maker` make the large arrays in the block."""
    token = _maker.set(maker)
    try:
        yield
    finally:
        _maker.reset(token)


def large(size: int, dtype: Any) -> np.ndarray:
    """Return an array without values that grows with the text; see `large_arrays_by`."""
    return _maker.get(_IN_MEMORY).empty(size, dtype)


def held(array: np.ndarray) -> np.ndarray:
    """Return an array that grows with the text and stays for long: itself, or a copy; see `large_arrays_by`."""
    return _maker.get(_IN_MEMORY).held(array)


def joined(arrays: list[np.ndarray], give_back: Callable[[], None] | None = None) -> np.ndarray:
    """Join arrays of one type into a large one, and empty the list, so that they become free one by one.

    `give_back` is called whenever `GIVEN_BACK` more values are free.
    """
    end = left = sum(map(len, arrays))
    found = large(end, arrays[-1].dtype if arrays else np.int64)
    while arrays:
        last = arrays.pop()
        found[end - len(last) : end] = last
        end -= len(last)
        if give_back is not None and left - end >= GIVEN_BACK:
            del last
            give_back()
            left = end
    return found


GIVEN_BACK = 1 << 22
"""Values after which memory that is free goes back to the system."""


# --------------------------------------------------------------------------------------------------- compiling
