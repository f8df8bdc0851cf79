"""Every kernel that CuPy compiles for jobs on a GPU, compiled by NVRTC where there is none.

    python tests/gpu/harness/cupy_kernels.py record FILE     what the jobs of test_whole_job.py ask of CuPy
    python tests/gpu/harness/cupy_kernels.py replay FILE     and CuPy, asked for it: needs CuPy and NumPy alone

`record` keeps, of each form that a call takes (types, dimensions, layout, whether small), the first. `replay` asks CuPy
itself for it, on a device that computes nothing (`stub_device`), so that CuPy writes the sources of its kernels, and
NVRTC compiles them. What is compiled is kept in CUPY_CACHE_DIR, as always. Not seen: what CuPy compiles only for arrays
beyond 2**31 bytes, or once a kernel has found more than one element. Exit status 1 if anything fails.
"""

from __future__ import annotations

import json
import pickle
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

# -------------------------------------------------------------------------------------------------------------- record


@dataclass(frozen=True)
class Given:
    """An array on the device: its bytes, where in them it begins, and its layout."""

    content: bytes
    begin: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str

    @classmethod
    def of(cls, array: np.ndarray) -> Given:
        reach = [(n - 1) * step for n, step in zip(array.shape, array.strides, strict=True)] if array.size else [0]
        begin, rest = -sum(r for r in reach if r < 0), sum(r for r in reach if r > 0)
        content = np.zeros(begin + rest + array.itemsize, np.uint8)
        np.ndarray(array.shape, array.dtype, content, begin, array.strides)[...] = array
        return cls(content.tobytes(), begin, array.shape, array.strides, array.dtype.str)


Call = tuple[str, tuple, dict[str, Any]]


def given(value: Any) -> Any:
    """A value without what stands for CuPy's arrays."""
    from cupy_calls import DeviceArray

    if isinstance(value, DeviceArray):
        return Given.of(value.host)
    if isinstance(value, list | tuple):
        return type(value)(map(given, value))
    if isinstance(value, slice):
        return slice(*map(given, (value.start, value.stop, value.step)))
    return value


def form(value: Any) -> Any:
    """What of a value CuPy's choice of a kernel depends on."""
    from cupy_calls import DeviceArray

    if isinstance(value, DeviceArray | np.ndarray):
        array = value if isinstance(value, np.ndarray) else value.host
        return str(array.dtype), array.ndim, array.flags.c_contiguous, min(array.size, 2), array.size > 1000
    if isinstance(value, list | tuple):
        return tuple(map(form, value))
    if isinstance(value, slice):
        return "slice", form(value.start), form(value.stop), form(value.step)
    if isinstance(value, int | float | np.generic) and not isinstance(value, bool):
        return type(value).__name__
    return str(value)


NO_OPERATIONS = {
    *("__init__", "__new__", "__repr__", "__getattr__", "__array__", "__array_function__", "__class__"),
    *("__hash__", "__len__", "__iter__"),
}


@contextmanager
def recorded() -> Iterator[dict[Any, Call]]:
    """While it lasts, whatever is asked of what stands for CuPy (`cupy_calls`): {form: the first such call}."""
    import cupy
    from cupy_calls import DeviceArray, Namespace

    calls: dict[Any, Call] = {}

    def note(name: str, arguments: tuple, options: dict[str, Any]) -> None:
        key = name, form(arguments), form(sorted(options.items()))
        if key not in calls:
            calls[key] = name, given(arguments), {option: given(value) for option, value in options.items()}

    def noting(name: str, real: Any, *own: Any) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            note(name, (*own, *arguments), options)
            return real(*arguments, **options)

        return call

    def operation(name: str, real: Any) -> Any:
        def method(self: DeviceArray, *others: Any) -> Any:
            note(f"ndarray.{name}", (self, *others), {})
            return real(self, *others)

        return method

    of_array, of_module = DeviceArray.__getattr__, Namespace.__getattr__

    def attribute(self: DeviceArray, name: str) -> Any:
        real = of_array(self, name)
        return noting(f"ndarray.{name}", real, self) if callable(real) else real

    def member(self: Namespace, name: str) -> Any:
        real = of_module(self, name)
        return noting(name, real) if callable(real) and not isinstance(real, type) else real

    with ExitStack() as stack:
        for name in vars(DeviceArray).keys() - NO_OPERATIONS:
            real = getattr(DeviceArray, name)
            if name.startswith("__") and callable(real) and hasattr(cupy.ndarray, name):
                stack.enter_context(mock.patch.object(DeviceArray, name, operation(name, real)))
        stack.enter_context(mock.patch.object(DeviceArray, "__getattr__", attribute))
        stack.enter_context(mock.patch.object(Namespace, "__getattr__", member))
        yield calls


def record(target: Path) -> None:
    """All jobs of test_whole_job.py."""
    import hostir
    from cupy_calls import DeviceArray
    from flat import flat
    from test_whole_job import OPTIONS, TABLE

    from neardup_gpu import dedup, passages, substrings
    from neardup_gpu.kernels import _launch as launch

    with (
        hostir.device("lane"),
        mock.patch.object(launch, "simulated", lambda: True),
        mock.patch.object(DeviceArray, "__cuda_array_interface__", {}, create=True),
        recorded() as calls,
    ):
        for options in OPTIONS.values():
            flat(dedup, TABLE, id_column="id", engine="gpu", **options)
        substrings(TABLE, id_column="id", length=6, keep="longest", action="list", engine="gpu")
        passages(TABLE, id_column="id", length=6, engine="gpu")
    target.write_bytes(pickle.dumps(list(calls.values())))
    print(f"{len(calls)} calls")


# -------------------------------------------------------------------------------------------------------------- replay


def as_cupys(value: Any) -> Any:
    """A recorded value with CuPy's arrays, in memory of the host, where the stub has its device's."""
    import cupy

    if isinstance(value, Given):
        content = np.frombuffer(bytearray(value.content), np.uint8)
        memory = cupy.cuda.UnownedMemory(content.ctypes.data, content.nbytes, content, 0)
        pointer = cupy.cuda.MemoryPointer(memory, value.begin)
        return cupy.ndarray(value.shape, value.dtype, pointer, value.strides)
    if isinstance(value, list | tuple):
        return type(value)(map(as_cupys, value))
    if isinstance(value, slice):
        return slice(*map(as_cupys, (value.start, value.stop, value.step)))
    return value


def replay(source: Path) -> dict[str, Any]:
    """Ask CuPy for the recorded calls; what came of it."""
    import stub_device

    stub = stub_device.start(capability=90, fill=1)
    import cupy
    from cupy.cuda import compiler

    cupy.cuda.set_allocator(None)  # memory that was used before would hold something else
    cupy.cuda.set_pinned_memory_allocator(None)
    compiled, begun = [], time.perf_counter()
    compile_source = compiler._compile_using_nvrtc_no_warning

    def noted(source: str, *arguments: Any, **options: Any) -> Any:
        compiled.append(source)
        return compile_source(source, *arguments, **options)

    calls: list[Call] = pickle.loads(source.read_bytes())
    failed = {}
    with mock.patch.object(compiler, "_compile_using_nvrtc_no_warning", noted):
        for name, arguments, options in calls:
            first, *rest = as_cupys(arguments) if arguments else (None,)
            try:
                if name.startswith("ndarray."):
                    getattr(first, name.partition(".")[2])(*rest, **as_cupys_of(options))
                else:
                    getattr(cupy, name)(*([first] if arguments else []), *rest, **as_cupys_of(options))
            except Exception as error:  # whatever NVRTC and CuPy have to say
                failed[f"{name} {[describe(a) for a in arguments]}"] = f"{type(error).__name__}: {str(error)[:2000]}"
    return {
        "cupy": cupy.__version__,
        "nvrtc": ".".join(map(str, cupy.cuda.nvrtc.getVersion())),
        "calls": len(calls),
        "compiled": len(compiled),
        "loaded": stub_device.number(stub, "stub_modules"),
        "launches": stub_device.number(stub, "stub_launches"),
        "seconds": round(time.perf_counter() - begun, 1),
        "failed": failed,
    }


def as_cupys_of(options: dict[str, Any]) -> dict[str, Any]:
    return {name: as_cupys(value) for name, value in options.items()}


def describe(value: Any) -> str:
    return f"{value.dtype} {value.shape}" if isinstance(value, Given) else repr(value)[:80]


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("record", "replay"):
        sys.exit(__doc__)
    if sys.argv[1] == "record":
        sys.modules["cupy_kernels"] = sys.modules["__main__"]
        Given.__module__ = "cupy_kernels"
        record(Path(sys.argv[2]))
    else:
        sys.modules["cupy_kernels"] = sys.modules["__main__"]
        found = replay(Path(sys.argv[2]))
        print(json.dumps(found, indent=1))
        sys.exit(bool(found["failed"]))
