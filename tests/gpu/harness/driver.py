"""What a launch is given, and what it costs the host, by a driver that says success and records: driver.c.

    python tests/gpu/harness/driver.py            print a line of JSON

CuPy's arrays and its call of the driver are real, the memory is the host's; the kernel's handle, the current device and
stream are made up. On a machine with a driver it is not used: this process loads the one that is made here.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

SOURCE = Path(__file__).with_name("driver.c")
HANDLE, STREAM = 0x1234, 0x5678


def load() -> ctypes.CDLL:
    """The driver, compiled by gcc when it has changed, and found by whoever loads libcuda in this process."""
    from hostir import cache_folder

    folder = cache_folder() / f"driver-{hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]}"
    library = folder / "libcuda.so.1"
    if not library.exists():
        with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
            made = Path(scratch) / "libcuda.so.1"
            command = ["gcc", "-O2", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", made, SOURCE]
            subprocess.run(command, check=True)
            folder.mkdir(exist_ok=True)
            made.rename(library)
    return ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)


def array(shape: tuple[int, ...], dtype: Any) -> Any:
    """An array of CuPy's in host memory."""
    import cupy
    import numpy as np

    held = np.zeros(shape, dtype)
    memory = cupy.cuda.UnownedMemory(held.ctypes.data, max(1, held.nbytes), held, 0)
    return cupy.ndarray(shape, dtype, memptr=cupy.cuda.MemoryPointer(memory, 0))


def arguments_of(kernel: Any) -> list[Any]:
    """Small arrays, and 7 for each scalar."""
    return [7 if kind is None else array((3,) * kind[1], kind[0]) for kind in kernel._arrays]


def launched(driver: ctypes.CDLL, kernel: Any, repeat: int) -> dict[str, Any]:
    """Whether a kernel's launch was given what it should be, and microseconds a launch, the least of five runs."""
    arguments = arguments_of(kernel)
    slots = kernel.slots(arguments)
    driver.expect(len(slots))
    kernel.blocks(5, *arguments)
    found = (ctypes.c_uint64 * (5 + len(slots)))()
    driver.last(found)
    right = list(found)[1:] == [HANDLE, STREAM, 5, kernel.block, *slots]
    times = []
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(repeat):
            kernel.blocks(5, *arguments)
        times.append(1e6 * (time.perf_counter() - start) / repeat)
    arrays = sum(kind is not None for kind in kernel._arrays)
    return {"right": right, "arrays": arrays, "slots": len(slots), "us": round(min(times), 2)}


def main() -> None:
    """Every kernel that a batch launches."""
    driver = load()
    import cupy
    from kernel_list import all_kernels

    from neardup_gpu.kernels import _launch as launch

    stream = SimpleNamespace(ptr=STREAM)
    repeat = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    with (
        mock.patch.object(launch.Kernel, "handle", lambda kernel: HANDLE),
        mock.patch.object(cupy.cuda, "get_current_stream", lambda: stream),
        mock.patch.object(launch, "namespace", lambda: cupy),
    ):
        print(json.dumps({name: launched(driver, kernel, repeat) for name, kernel in all_kernels().items()}))


if __name__ == "__main__":
    main()
