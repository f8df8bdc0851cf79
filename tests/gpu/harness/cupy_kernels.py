"""Every kernel that CuPy compiles for jobs on a GPU, compiled by NVRTC here, where there is none.

    python tests/gpu/harness/cupy_kernels.py [--capability 90] [--jobs NAME,NAME]    for sm_90, all jobs

Jobs of test_whole_job.py run as they do there, on arrays that stand for CuPy's. Whatever they ask of CuPy is also asked
of CuPy itself, on a device that computes nothing (`stub_device`): so CuPy writes the source of its kernels for these
types, dimensions and layouts, and NVRTC compiles it. Compiled kernels are kept in CUPY_CACHE_DIR; name an empty folder to
compile all of them. Not seen: what CuPy compiles only for arrays beyond 2**31 bytes. Exit status 1 if anything fails.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from contextlib import ExitStack
from typing import Any
from unittest import mock

import numpy as np
import stub_device


def like(array: np.ndarray) -> Any:
    """A copy of an array as CuPy's, in the same layout."""
    import cupy

    reach = [(n - 1) * stride for n, stride in zip(array.shape, array.strides, strict=True)] if array.size else [0]
    before, after = -sum(r for r in reach if r < 0), sum(r for r in reach if r > 0)
    content = np.zeros(before + after + array.itemsize, np.uint8)
    np.ndarray(array.shape, array.dtype, content, before, array.strides)[...] = array
    memory = cupy.cuda.UnownedMemory(content.ctypes.data, content.nbytes, content, 0)
    pointer = cupy.cuda.MemoryPointer(memory, before)
    return cupy.ndarray(array.shape, array.dtype, pointer, array.strides)


def twin(value: Any) -> Any:
    """CuPy's for what stands for it, also within lists, tuples and slices."""
    from cupy_calls import DeviceArray

    if isinstance(value, DeviceArray):
        return like(value.host)
    if isinstance(value, list | tuple):
        return type(value)(map(twin, value))
    if isinstance(value, slice):
        return slice(*map(twin, (value.start, value.stop, value.step)))
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


class Asked:
    """What was asked of CuPy, each form once, and how CuPy itself took it."""

    def __init__(self) -> None:
        self.forms: Counter[Any] = Counter()
        self.failed: dict[str, str] = {}

    def ask(self, name: str, call: Any, *arguments: Any, **options: Any) -> None:
        key = (name, form(arguments), form(sorted(options.items())))
        self.forms[key] += 1
        if self.forms[key] > 1:
            return
        try:
            call(*map(twin, arguments), **{name: twin(value) for name, value in options.items()})
        except Exception as error:  # whatever NVRTC or CuPy has to say
            self.failed[repr(key)] = f"{type(error).__name__}: {str(error)[:2000]}"


def watched(stack: ExitStack, asked: Asked) -> None:
    """While the stack lasts, what stands for CuPy passes on what it is asked."""
    import cupy
    import cupy_calls
    from cupy_calls import DeviceArray, Namespace

    def replace(owner: Any, name: str, value: Any) -> None:
        stack.enter_context(mock.patch.object(owner, name, value))

    def operation(name: str, real: Any) -> Any:
        def method(self: DeviceArray, *others: Any) -> Any:
            asked.ask(name, lambda mine, *rest: getattr(mine, name)(*rest), self, *others)
            return real(self, *others)

        return method

    for name in [n for n in vars(DeviceArray) if n.startswith("__") and n not in NOT_OPERATIONS]:
        if callable(getattr(DeviceArray, name)) and hasattr(cupy.ndarray, name):
            replace(DeviceArray, name, operation(name, getattr(DeviceArray, name)))
    of_array, of_module = DeviceArray.__getattr__, Namespace.__getattr__

    def attribute(self: DeviceArray, name: str) -> Any:
        real = of_array(self, name)
        if not callable(real):
            return real

        def call(*arguments: Any, **options: Any) -> Any:
            asked.ask(f"ndarray.{name}", lambda a, *rest, **o: getattr(a, name)(*rest, **o), self, *arguments, **options)
            return real(*arguments, **options)

        return call

    def member(self: Namespace, name: str) -> Any:
        real = of_module(self, name)
        if isinstance(real, type) or not callable(real):
            return real

        def call(*arguments: Any, **options: Any) -> Any:
            asked.ask(name, getattr(cupy, name), *arguments, **options)
            return real(*arguments, **options)

        return call

    replace(DeviceArray, "__getattr__", attribute)
    replace(cupy_calls.Namespace, "__getattr__", member)


NOT_OPERATIONS = {
    *("__init__", "__repr__", "__getattr__", "__array__", "__array_function__", "__class__"),
    *("__new__", "__hash__", "__dict__", "__weakref__", "__module__", "__doc__", "__len__", "__iter__"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--capability", type=int, default=90)
    parser.add_argument("--jobs", default="")
    parser.add_argument("--fill", type=int, default=1, help="what new memory holds in each 64 bits")
    args = parser.parse_args()
    stub = stub_device.start(args.capability, fill=args.fill)
    import cupy
    from cupy.cuda import compiler

    compiled: list[str] = []
    compile_source = compiler._compile_using_nvrtc_no_warning

    def noted(source: str, *arguments: Any, **options: Any) -> Any:
        compiled.append(source)
        return compile_source(source, *arguments, **options)

    compiler._compile_using_nvrtc_no_warning = noted
    import hostir
    from cupy_calls import DeviceArray
    from test_whole_job import OPTIONS, TABLE

    from neardup_gpu import dedup
    from neardup_gpu.kernels import _launch as launch

    names = [name.strip() for name in args.jobs.split(";")] if args.jobs else list(OPTIONS)
    asked, begun = Asked(), time.perf_counter()
    with hostir.device("lane"), ExitStack() as stack:
        stack.enter_context(mock.patch.object(launch, "simulated", lambda: True))
        stack.enter_context(mock.patch.object(DeviceArray, "__cuda_array_interface__", {}, create=True))
        watched(stack, asked)
        for name in names:
            dedup(TABLE, id_column="id", engine="gpu", **OPTIONS[name])
    versions = {"cupy": cupy.__version__, "nvrtc": ".".join(map(str, cupy.cuda.nvrtc.getVersion()))}
    print(
        json.dumps(
            {
                **versions,
                "jobs": len(names),
                "forms": len(asked.forms),
                "compiled": len(compiled),
                "loaded": stub_device.number(stub, "stub_modules"),
                "launches": stub_device.number(stub, "stub_launches"),
                "seconds": round(time.perf_counter() - begun, 1),
                "failed": asked.failed,
            },
            indent=1,
        )
    )
    sys.exit(bool(asked.failed))


if __name__ == "__main__":
    main()
