"""Kernels of the processor: how they are declared, which compiled code runs, and how threads divide the work.

A function is declared with the signatures that Python calls it by:

    @jit("uint64[::1], int64")
    def below(values, bound): ...

    @parallel("uint64[::1], uint64[::1]")
    def _mix(begin, end, values, mixed): ...

    _mix(len(values), values, mixed)  # begin and end are filled in, for each thread that takes part

A signature's code comes from an extension module that was built with the package (`_ahead.py`). Where there is none of
these sources, Numba compiles the function when it is first called, and keeps its code (`_numba.py`). Only then is Numba
imported: this file and every kernel name Numba's modules by stand-ins, which are `types`, `ir` and `carray`.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import count as counted
from types import FunctionType
from typing import Any

import numpy as np

from ._processor import most_threads

# ------------------------------------------------------------------------------------------------- what Numba has


class StandIn:
    """Something of Numba's or LLVM's that kernels name, imported when it is first used.

    Parameters
    ----------
    module : str
    name : str
        An attribute of the module; empty for the module itself.
    """

    def __init__(self, module: str, name: str = "") -> None:
        self._module, self._name = module, name

    @cached_property
    def original(self) -> Any:
        """The thing itself."""
        module = importlib.import_module(self._module)
        return getattr(module, self._name) if self._name else module

    def __getattr__(self, name: str) -> Any:
        return getattr(self.original, name)


types: Any = StandIn("numba.core.types")
ir: Any = StandIn("llvmlite.ir")
carray: Any = StandIn("numba", "carray")


class intrinsic:
    """Decorator: a function for kernels whose LLVM code is written by hand, as `numba.extending.intrinsic`."""

    def __init__(self, function: Callable) -> None:
        self.function = function

    @cached_property
    def original(self) -> Any:
        """Numba's intrinsic."""
        from numba.extending import intrinsic as of_numba

        return of_numba(linked(self.function))


def linked(function: Callable, **names: Any) -> FunctionType:
    """Return the function with what `jit`, `intrinsic` and `StandIn` stand for in its globals, and `names`."""
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        if name not in names and isinstance(value, (Function, StandIn, intrinsic)):
            names[name] = value.original
    return FunctionType(
        function.__code__,
        {**function.__globals__, **names},
        function.__name__,
        function.__defaults__,
        _linked_closure(function),
    )


def _linked_closure(function: Callable) -> Any:
    if not function.__closure__:
        return function.__closure__
    return tuple(
        (lambda value: (lambda: value).__closure__[0])(cell.cell_contents.original)  # a new cell
        if isinstance(cell.cell_contents, (Function, StandIn, intrinsic))
        else cell
        for cell in function.__closure__
    )


# --------------------------------------------------------------------------------------------------- functions


class _Array:
    """The kind of an array in a signature: `uint64[:, ::1]`."""

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


def _declared(kind: Any) -> Any:
    """Return the kind of an argument as `_kinds` gives it, of what a signature says."""
    if isinstance(kind, _Array):
        return kind.dtype.kind.replace("u", "i")
    if isinstance(kind, tuple) and not isinstance(kind[0], np.dtype):
        return tuple(map(_declared, kind))
    return kind


def declared_kinds(signature: str) -> tuple[Any, ...]:
    """Return the kind of each argument of a signature: as `_kinds` gives those of arguments."""
    return tuple(map(_declared, eval(f"({signature},)", dict(_NAMES))))


def _kinds(arguments: Any) -> tuple[Any, ...]:
    """Return the kind of each argument: of an array dtype, dimensions and whether it is in C order; of numbers a
    letter, as compiled code converts them itself."""
    found: list[Any] = []
    for each in arguments:
        if type(each) is np.ndarray:
            found.append((each.dtype, each.ndim, each.flags.c_contiguous))
        elif type(each) is tuple:
            found.append(_kinds(each))
        else:
            found.append(_SCALARS.get(type(each)) or _scalar(each))
    return tuple(found)


_SCALARS: dict[type, str] = {int: "i", bool: "b", float: "f"}


def _scalar(value: Any) -> str:
    kind = np.dtype(type(value)).kind.replace("u", "i") if isinstance(value, np.generic) else type(value).__name__
    _SCALARS[type(value)] = kind
    return kind


def _fits(declared: Any, given: Any) -> bool:
    """Whether a function of a declared signature takes arguments of these kinds."""
    if isinstance(declared, tuple) and isinstance(given, tuple):
        if declared and isinstance(declared[0], np.dtype):
            return given[:2] == declared[:2] and (given[2] or not declared[2])
        return len(declared) == len(given) and all(map(_fits, declared, given))
    return declared == given or (declared, given) == ("f", "i")


class Function:
    """A function of arrays and numbers that is compiled.

    Parameters
    ----------
    function : callable
        In the part of Python that Numba compiles.
    signatures : tuple of str
        What Python calls it by: names of NumPy's types, with [::1] for arrays in C order, [:] for others, and
        parentheses around tuples. None for functions that only kernels call.
    """

    def __init__(self, function: Callable, signatures: tuple[str, ...]) -> None:
        self.py_func, self.signatures = function, signatures
        self.__name__, self.__doc__, self.__module__ = function.__name__, function.__doc__, function.__module__
        self._entries: dict[tuple[Any, ...], Callable] = {}

    @property
    def name(self) -> str:
        """What tells it from all other functions: its file and its name in it."""
        return f"{self.__module__.rpartition('.')[2]}.{self.py_func.__qualname__}"

    @cached_property
    def original(self) -> Any:
        """Numba's function, which compiles it."""
        from ._numba import function

        return function(self)

    def __call__(self, *arguments: Any) -> Any:
        return self.entry(arguments)(*arguments)

    def entry(self, arguments: tuple[Any, ...]) -> Callable:
        """Return the compiled code for arguments of these kinds."""
        kinds = _kinds(arguments)
        try:
            return self._entries[kinds]
        except KeyError:
            found = self._entries[kinds] = self._find(kinds)
            return found

    def _find(self, kinds: tuple[Any, ...]) -> Callable:
        from ._ahead import entry

        for signature in self.signatures:
            if _fits(declared_kinds(signature), kinds):
                return entry(self.name, signature) or self.compiled(signature)
        return self.original

    def compiled(self, signature: str) -> Callable:
        """Return the code of a declared signature, kept or compiled now."""
        from ._numba import compiled

        return compiled(self.original, signature)


class Parallel(Function):
    """A function of a range of items, which threads divide among themselves.

    It is called with the number of items in place of the range's begin and end. The thread that calls takes part, and
    returns when all is done. Threads take a share of the items at a time, so an error or an interrupt is raised after
    the shares that are being computed. Few items stay on the calling thread.

    Parameters
    ----------
    function, signatures
        As `Function`; the first two arguments, `begin` and `end`, are left out in the signatures.
    least : int
        Items that are worth a share.
    """

    def __init__(self, function: Callable, signatures: tuple[str, ...], least: int) -> None:
        super().__init__(function, tuple(f"int64, int64, {each}" for each in signatures))
        self._least = least

    def __call__(self, count: int, *arguments: Any) -> None:
        entry = self.entry((0, 0, *arguments))
        threads = num_threads()
        share = max(self._least, -(-count // (_SHARES * threads)))
        if share >= count:
            if count > 0:
                entry(0, count, *arguments)
            return
        begins, failed = counted(0, share), threading.Event()

        def work() -> None:
            try:
                for begin in begins:  # each thread takes the next one
                    if begin >= count or failed.is_set():
                        return
                    entry(begin, min(begin + share, count), *arguments)
            except BaseException:
                failed.set()
                raise

        shares = -(-count // share)
        with _others(min(threads, shares) - 1, work):
            work()


_SHARES = 8
"""Shares of the items for each thread: as threads are not equally fast, and so that an interrupt is heard."""


def jit(*signatures: str) -> Callable[[Callable], Function]:
    """Return a decorator that makes a `Function`."""
    return lambda function: Function(function, signatures)


def parallel(*signatures: str, least: int = 1) -> Callable[[Callable], Parallel]:
    """Return a decorator that makes a function that is `Parallel`."""
    return lambda function: Parallel(function, signatures, least)


# ----------------------------------------------------------------------------------------------------- threads


class _Here(threading.local):
    number: int | None = None


_here = _Here()
_pool: ThreadPoolExecutor | None = None


def num_threads() -> int:
    """Return how many threads run the kernels that this thread calls."""
    return _here.number or most_threads()


def set_num_threads(number: int | None) -> None:
    """Set how many threads run the kernels that this thread calls; None for all of this machine's."""
    _here.number = number


@contextlib.contextmanager
def on_threads(number: int | None) -> Iterator[None]:
    """Let kernels that this thread calls in the block run on so many threads."""
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


@contextlib.contextmanager
def _others(number: int, work: Callable[[], None]) -> Iterator[None]:
    """Let other threads do work in the block, and wait until they have ended; those that have not begun never do.

    Where no thread can be started, as at the interpreter's exit, fewer take part.
    """
    global _pool
    begun = []
    if number > 0:
        with contextlib.suppress(RuntimeError):
            if _pool is None:
                _pool = ThreadPoolExecutor(most_threads(), "neardup-kernels")
            for _ in range(number):
                begun.append(_pool.submit(work))
    try:
        yield
    finally:
        ended = [each for each in begun if not each.cancel()]
        errors = [each.exception() for each in ended]
    for error in errors:
        if error is not None:
            raise error


def _forget_pool() -> None:
    global _pool
    _pool = None  # its threads are the parent's


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)


def shares(offsets: np.ndarray, per_thread: int = 8) -> np.ndarray:
    """Divide rows into runs of about equal total length, `per_thread` for each thread.

    Returns
    -------
    array of int64, shape (runs + 1,)
        Run p is rows ``bounds[p]`` to ``bounds[p + 1]``; some may be empty. A row is never divided.
    """
    threads = num_threads()
    if threads == 1 and offsets[-1] - offsets[0] < _LITTLE:
        return np.array([0, len(offsets) - 1])
    runs = per_thread * threads
    targets = np.linspace(offsets[0], offsets[-1], runs + 1).astype(np.int64)
    bounds = np.searchsorted(offsets, targets, side="left").astype(np.int64)
    bounds[0], bounds[-1] = 0, len(offsets) - 1
    return np.minimum(bounds, len(offsets) - 1)


_LITTLE = 1 << 16
"""Elements that one thread computes at a time: dividing them would take longer."""

# --------------------------------------------------------------------------------------------------- compiling

listeners: list[Callable[[bool], None]] = []
"""Functions that are called with True when a thread begins to compile, and with False when it has ended."""
