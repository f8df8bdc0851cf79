"""CuPy without a device: NumPy does the work, and CuPy's real signatures and known limits decide what may be asked.

`Namespace` stands for the module `cupy`: a function that CuPy lacks, or an argument that it does not take, fails where
it is called. `DeviceArray` stands for `cupy.ndarray`: it has the methods that CuPy's has, turns into no NumPy array by
itself, meets none in an operation, and gives arrays of no dimension where NumPy gives scalars. Besides:

- No `repeat` by an array, no `lexsort` of a tuple, no `unique(axis=)`, no method of a ufunc (`reduceat`, `accumulate`).
- Integers that became floating-point numbers without being asked to fail, as uint64 and int64 do when they meet.
- Values assigned to the same place by an index with repeats fail: on a GPU any of them may win.
- Memory that was not set holds 0xA5.

Every call is counted in `Namespace.calls`, by name: "cumsum", "ndarray.astype"; and in `Namespace.waits` each for which
the host has to wait until the device has done all that it was given: an array that is fetched or turned into a number,
a result whose size depends on values. A sort does not wait: CuPy 14 runs Thrust's with `par_nosync`, as its file
cupy/cuda/cupy_thrust.cu says. `Namespace.uploads` lists the bytes of each copy of a host's array.
"""

from __future__ import annotations

import inspect
import operator
import re
from collections import Counter
from functools import cache
from types import SimpleNamespace
from typing import Any, ClassVar

import cupy
import numpy as np

FROM_HOST = {"asarray", "array"}
"""Functions that take NumPy arrays and lists of numbers."""

FROM_NOTHING = {"zeros", "ones", "empty", "full", "arange", "eye", "linspace"}
"""Functions that take no array."""

WAITING = {"flatnonzero", "nonzero", "unique", "bincount", "isin", "array_equal"}
"""Functions for which the host waits: most of CuPy's whose result is as long as values say."""

ONLY_CUPY = {"blocking", "stream"}
"""Parameters that NumPy's function of the same name lacks; they say how, not what."""


def on_host(value: Any) -> Any:
    """NumPy's for CuPy's: arrays, also within lists and tuples."""
    if isinstance(value, DeviceArray):
        return value.host
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return type(value)(map(on_host, value))
    return value


def on_device(value: Any) -> Any:
    """CuPy's for what a function of NumPy returned: arrays, also of no dimension, and tuples of arrays."""
    if isinstance(value, tuple):
        return tuple(map(on_device, value))
    if isinstance(value, np.ndarray | np.generic):
        return DeviceArray(np.asarray(value))
    return value


def refuse_host_arrays(name: str, values: Any) -> None:
    """CuPy raises TypeError where a NumPy array meets one of its own."""
    for value in values:
        if isinstance(value, np.ndarray):
            raise TypeError(f"{name}: CuPy takes no NumPy array; copy it to the device by asarray")
        if isinstance(value, list | tuple):
            refuse_host_arrays(name, value)


def refuse_floats(name: str, operands: Any, result: Any) -> None:
    """Integers and booleans stay so."""
    kinds = [
        np.asarray(on_host(x)).dtype.kind for x in operands if isinstance(x, DeviceArray | np.generic | int | float)
    ]
    results = result if isinstance(result, tuple) else (result,)
    if "f" not in kinds and any(isinstance(r, np.ndarray | np.generic) and r.dtype.kind == "f" for r in results):
        raise TypeError(f"{name}: integers became floating-point numbers; do their types agree?")


def poisoned(array: np.ndarray) -> np.ndarray:
    """The array, filled with what nothing should rest on."""
    array.view(np.uint8 if array.ndim else array.dtype)[...] = 1 if array.dtype == bool else 0xA5
    return array


@cache
def method_signature(name: str) -> inspect.Signature:
    """Signature of a method of `cupy.ndarray`, which Cython keeps as the first line of its docstring."""
    method = getattr(cupy.ndarray, name)
    try:
        found = inspect.signature(method)
        return found.replace(parameters=list(found.parameters.values())[1:])
    except ValueError:
        match = re.match(rf"\w+\.{name}\(self(?:, )?(.*?)\)(?: ->.*)?$", method.__doc__.splitlines()[0])
        assert match, f"the docstring of cupy.ndarray.{name} does not begin with a signature: {method.__doc__!r}"
        parameters = re.sub(r"\b(?:int|tuple|_ndarray_base|Py_ssize_t) (?=\w)", "", match[1])
        return inspect.signature(eval(f"lambda {parameters}: None"))


class DeviceArray:
    """An array as CuPy would have it; `host` holds its values."""

    __array_priority__ = 100
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, host: np.ndarray) -> None:
        self.host = host

    def __repr__(self) -> str:
        return f"DeviceArray({self.host!r})"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(cupy.ndarray, name):
            raise AttributeError(f"cupy.ndarray has no attribute {name!r}")
        if not callable(getattr(cupy.ndarray, name)):
            return on_device(getattr(self.host, name)) if name in ("T", "real", "imag") else getattr(self.host, name)
        signature = method_signature(name)

        def call(*arguments: Any, **options: Any) -> Any:
            Namespace.calls[f"ndarray.{name}"] += 1
            if name in WAITING or name in ("tolist", "item", "tobytes"):
                Namespace.waits[f"ndarray.{name}"] += 1
            bound = signature.bind(*arguments, **options)
            refuse_host_arrays(f"ndarray.{name}", bound.arguments.values())
            check_limits(name, bound.arguments)
            options = {key: on_host(value) for key, value in options.items() if key not in ONLY_CUPY}
            result = getattr(self.host, name)(*map(on_host, arguments), **options)
            if name not in ("astype", "view", "mean", "std", "var"):
                refuse_floats(f"ndarray.{name}", (self,), result)
            return result if name in ("tolist", "item", "tobytes") else on_device(result)

        return call

    def get(self, stream: Any = None, order: str = "C", out: Any = None, blocking: bool = True) -> np.ndarray:
        Namespace.calls["ndarray.get"] += 1
        Namespace.waits["get"] += 1
        return self.host.copy()

    @property
    def data(self) -> Any:
        """As far as it is asked for: the address."""
        return SimpleNamespace(ptr=self.host.ctypes.data)

    def __array__(self, *arguments: Any, **options: Any) -> np.ndarray:
        raise TypeError("CuPy turns no array into NumPy's by itself; use launch.to_host")

    def __array_function__(self, function: Any, *rest: Any) -> Any:
        raise TypeError(f"numpy.{function.__name__} of a CuPy array; call that of `namespace()`")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if method != "__call__" or options:
            raise TypeError(f"numpy.{ufunc.__name__}.{method} of a CuPy array")
        return elementwise(ufunc.__name__, ufunc, *inputs)

    def __len__(self) -> int:
        return len(self.host)

    def __bool__(self) -> bool:
        Namespace.waits["bool"] += 1
        return bool(self.host)

    def __int__(self) -> int:
        Namespace.waits["int"] += 1
        return int(self.host)

    def __float__(self) -> float:
        Namespace.waits["float"] += 1
        return float(self.host)

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: Any) -> DeviceArray:
        refuse_host_arrays("an index", index if isinstance(index, tuple) else (index,))
        if isinstance(index, DeviceArray) and index.host.dtype == bool:
            Namespace.waits["an index of bools"] += 1
        return DeviceArray(np.asarray(self.host[on_host(index)]))

    def __setitem__(self, index: Any, value: Any) -> None:
        refuse_host_arrays("an assignment", (*(index if isinstance(index, tuple) else (index,)), value))
        index, value = on_host(index), on_host(value)
        scattered = isinstance(index, np.ndarray) and index.dtype.kind in "iu" and np.ndim(value) > 0
        if scattered and len(np.unique(index)) < index.size:
            raise ValueError("values assigned by an index with repeats: on a GPU any of them may win")
        self.host[index] = value


def elementwise(name: str, function: Any, *operands: Any) -> Any:
    """An operation of arrays and scalars, element by element."""
    refuse_host_arrays(name, operands)
    for operand in operands:
        if not isinstance(operand, DeviceArray | np.generic | int | float):
            raise TypeError(f"{name}: CuPy takes no {type(operand).__name__}")
    result = function(*map(on_host, operands))
    if name != "__truediv__":
        refuse_floats(name, operands, result)
    return on_device(result)


def _operators() -> None:
    """Give `DeviceArray` the operators of `cupy.ndarray`."""

    def define(name: str, function: Any, reflected: bool) -> None:
        def method(self: DeviceArray, *others: Any) -> Any:
            return elementwise(name, function, *((*others, self) if reflected else (self, *others)))

        setattr(DeviceArray, name, method)

    def define_in_place(name: str, function: Any) -> None:
        def method(self: DeviceArray, other: Any) -> DeviceArray:
            refuse_host_arrays(name, (other,))
            self.host = function(self.host, on_host(other))
            return self

        setattr(DeviceArray, name, method)

    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "and", "or", "xor"):
        function = getattr(operator, f"__{name}__")
        for full, reflected in ((f"__{name}__", False), (f"__r{name}__", True)):
            if hasattr(cupy.ndarray, full):
                define(full, function, reflected)
        if hasattr(cupy.ndarray, f"__i{name}__"):
            define_in_place(f"__i{name}__", getattr(operator, f"__i{name}__"))
    for name in ("eq", "ne", "lt", "le", "gt", "ge", "neg", "pos", "invert", "abs"):
        define(f"__{name}__", getattr(operator, f"__{name}__"), False)


_operators()


def check_limits(name: str, arguments: dict[str, Any]) -> None:
    """What CuPy's signature lets through and CuPy does not do, or does wrong (shared/gpu.md)."""
    if name == "repeat" and not isinstance(arguments["repeats"], int | np.integer):
        raise TypeError("CuPy's repeat takes one count, not one for each element")
    if name == "lexsort" and not isinstance(arguments["keys"], DeviceArray):
        raise TypeError("CuPy's lexsort takes an array of shape (k, n), no tuple")
    if name == "unique" and arguments.get("axis") is not None:
        raise TypeError("CuPy's unique(axis=) misorders values of 2**63 and above")
    if name == "searchsorted" and not isinstance(arguments["v"], DeviceArray | np.ndarray | int | float):
        raise NotImplementedError("CuPy's searchsorted takes arrays and Python's numbers, but no number of NumPy's")
    if name in ("sort", "argsort") and arguments.get("kind") not in (None, "stable"):
        raise ValueError("CuPy knows one kind of sort, which is stable")


class Namespace:
    """Stands for the module `cupy`."""

    calls: ClassVar[Counter[str]] = Counter()
    waits: ClassVar[Counter[str]] = Counter()
    uploads: ClassVar[list[int]] = []
    ndarray = DeviceArray

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(cupy, name):
            raise AttributeError(f"cupy has no {name!r}")
        real = getattr(cupy, name)
        if isinstance(real, type) or not callable(real):
            if real is getattr(np, name, None) or isinstance(real, int | float | type(None)):
                return real  # CuPy's scalar types and constants are NumPy's
            raise NotImplementedError(f"cupy_calls.py has nothing that stands for cupy.{name}")
        return ufunc(name, real) if isinstance(real, cupy.ufunc) else function(name, real)


def ufunc(name: str, real: Any) -> Any:
    """A function that stands for a ufunc of CuPy; without its methods."""

    def call(*arguments: Any, **options: Any) -> Any:
        Namespace.calls[name] += 1
        if not real.nin <= len(arguments) <= real.nargs:
            raise TypeError(f"cupy.{name} takes {real.nin} to {real.nargs} arrays, not {len(arguments)}")
        if unknown := set(options) - {"out", "dtype"}:
            raise TypeError(f"cupy.{name} does not take {', '.join(sorted(unknown))}")
        numpys = getattr(np, name)
        options = {key: on_host(value) for key, value in options.items()}
        return elementwise(name, lambda *operands: numpys(*operands, **options), *arguments)

    return call


def function(name: str, real: Any) -> Any:
    """A function that stands for one of CuPy: bound to its signature, done by NumPy's of the same name."""
    signature = inspect.signature(real)

    def call(*arguments: Any, **options: Any) -> Any:
        Namespace.calls[name] += 1
        Namespace.waits[name] += name in WAITING
        bound = signature.bind(*arguments, **options)
        check_limits(name, bound.arguments)
        first = next(iter(bound.arguments.values()), None)
        if name in FROM_HOST:
            copy = isinstance(first, np.ndarray)  # a device's memory is its own
            Namespace.uploads += [first.nbytes] if copy else []
            options = {key: value for key, value in options.items() if key not in ONLY_CUPY}
            result = getattr(np, name)(on_host(first), *arguments[1:], **options)
            return DeviceArray(result.copy() if copy else result)
        refuse_host_arrays(name, bound.arguments.values())
        if name not in FROM_NOTHING:
            parts = first if isinstance(first, list | tuple) and name != "lexsort" else [first]
            if not all(isinstance(part, DeviceArray) for part in parts):
                raise TypeError(f"cupy.{name} takes arrays, not {type(first).__name__}")
        options = {key: on_host(value) for key, value in options.items() if key not in ONLY_CUPY}
        result = getattr(np, name)(*map(on_host, arguments), **options)
        if name not in FROM_NOTHING and "dtype" not in bound.arguments:
            refuse_floats(name, parts + list(bound.arguments.values())[1:], result)
        return on_device(poisoned(result) if name in ("empty", "empty_like") else result)

    return call
