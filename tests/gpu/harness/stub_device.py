"""CuPy itself, with a device that takes everything and computes nothing (`stub_cuda.c`): arrays, compiling, launches.

CuPy's extension modules hold CUDA's runtime within them, whose start needs NVIDIA's driver. So a jump to the function
of the same name in the stub is written over each function of it, in memory; a function that the stub lacks succeeds and
does nothing. This cannot be undone: it is for processes of their own, on Linux and x86-64 (`POSSIBLE`).
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib
import mmap
import os
import platform
import re
import struct
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

STUB = Path(__file__).with_name("stub_cuda.c")
MODULES = ("cupy_backends.cuda.api.runtime", "cupy.cuda.thrust", "cupy.cuda.cub")
"""CuPy's extension modules that hold CUDA's runtime, of those that are used."""

POSSIBLE = sys.platform == "linux" and platform.machine() == "x86_64"
"""Whether the jumps are of this processor's instructions."""


@cache
def library() -> ctypes.CDLL:
    """`stub_cuda.c`, compiled, under the name of the driver's library: who asks for that one gets this."""
    folder = Path(os.environ.get("NEARDUP_TEST_CACHE") or tempfile.gettempdir())
    path = folder / f"stub_cuda-{hashlib.sha256(STUB.read_bytes()).hexdigest()[:16]}.so"
    if not path.exists():
        with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
            made = Path(scratch) / "stub.so"
            words = ["gcc", "-O1", "-w", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", made, STUB]
            subprocess.run(words, check=True)
            made.rename(path)
    return ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)


def number(stub: ctypes.CDLL, name: str, value: int | None = None) -> int:
    """A number that the stub keeps; set first, if a value is given."""
    kept = ctypes.c_int.in_dll(stub, name)
    if value is not None:
        kept.value = value
    return kept.value


def array(stub: ctypes.CDLL, name: str, length: int) -> list[int]:
    """The first of an array of 64-bit numbers that the stub keeps."""
    return list((ctypes.c_uint64 * length).in_dll(stub, name))


def shape(stub: ctypes.CDLL) -> tuple[int, int]:
    """Blocks of the last launch, and threads in a block."""
    blocks, threads = (ctypes.c_uint32 * 2).in_dll(stub, "stub_shape")
    return blocks, threads


def function(stub: ctypes.CDLL) -> str:
    """Name of the function that was launched last."""
    return (ctypes.c_char_p.in_dll(stub, "stub_function").value or b"").decode()


def start(capability: int = 90, fill: int = 0) -> ctypes.CDLL:
    """From here on CuPy has a device of that compute capability, whose new memory holds `fill` in each 64 bits."""
    assert "cupy" not in sys.modules, "CuPy has begun to look for a device already"
    stub = library()
    number(stub, "stub_capability", capability)
    number(stub, "stub_fill", fill)
    for name in MODULES:
        _redirect(importlib.import_module(name).__file__, stub)
    return stub


def _redirect(path: str, stub: ctypes.CDLL) -> None:
    """Write the jumps over CUDA's runtime in an extension module that is loaded."""
    path = os.path.realpath(path)
    base = min(
        int(line.split("-")[0], 16) for line in Path("/proc/self/maps").read_text().splitlines() if line.endswith(path)
    )
    symbols = subprocess.run(["readelf", "-sW", path], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^\s*\d+: (\w{16})\s+(\d+) FUNC .* (cuda[A-Z]\w+)$", symbols, re.MULTILINE)
    assert len(found) > 100, f"{path} holds no runtime of CUDA"
    for address, size, name in found:
        base_name = re.sub(r"_pt[sd][zs]$", "", name)
        function: Any = getattr(stub, f"stub_{base_name}", stub.stub_anything)
        target = ctypes.cast(function, ctypes.c_void_p).value
        jump = _jump(target or 0)
        if int(size) >= len(jump):
            _write(base + int(address, 16), jump)


def _jump(target: int) -> bytes:
    return b"\x48\xb8" + struct.pack("<Q", target) + b"\xff\xe0"  # mov rax, target; jmp rax


def _write(address: int, code: bytes) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    page = mmap.PAGESIZE
    first = address // page * page
    length = -(-(address + len(code) - first) // page) * page
    if libc.mprotect(ctypes.c_void_p(first), ctypes.c_size_t(length), 7):
        raise OSError(ctypes.get_errno(), "mprotect")
    ctypes.memmove(address, code, len(code))
