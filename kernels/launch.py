"""How kernels are compiled, cached and divided among threads.

Compiled code is cached in a folder whose name is a hash of all kernel sources. Numba's own check looks at one file at a
time, so it would go on using a kernel whose callee in another file has changed.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

# OpenMP threads that wait for work by spinning take the processor from those that have work whenever the machine is
# shared: two threads were then seen three times slower than one. The choice has to be made before OpenMP is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import llvmlite.binding
import numba
import numpy as np


def _carryless_width() -> int:
    """Bits of the x86 vectors whose 64-bit lanes can be multiplied without carries: 512, 256, 128, or 0 for none.

    The environment variable NEARDUP_CLMUL sets an upper bound, so that tests can take every path.
    """
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return 0
    has = llvmlite.binding.get_host_cpu_features().get
    widths = {
        512: has("vpclmulqdq", False) and has("avx512f", False),
        256: has("vpclmulqdq", False) and has("avx2", False),
        128: has("pclmul", False),
    }
    asked = os.environ.get("NEARDUP_CLMUL", "")
    bound = int(asked) if asked.isdecimal() else 512
    return max((width for width, usable in widths.items() if usable and width <= bound), default=0)


CARRYLESS_WIDTH = _carryless_width()


def _source_key() -> str:
    digest = hashlib.sha256()
    here = files(__package__)
    for source in sorted((f for f in here.iterdir() if f.name.endswith(".py")), key=lambda f: f.name):
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    digest.update(f"{numba.__version__} {np.__version__} {sys.version_info[:2]} {CARRYLESS_WIDTH}".encode())
    return digest.hexdigest()[:16]


def _cache_home() -> Path:
    """Where compiled kernels go: NEARDUP_CACHE_DIR, else the user's folder of caches."""
    get = os.environ.get
    if named := get("NEARDUP_CACHE_DIR"):
        return Path(named)
    if sys.platform == "win32":
        return Path(get("LOCALAPPDATA") or Path.home()) / "neardup_gpu" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "neardup_gpu"
    return Path(get("XDG_CACHE_HOME") or Path.home() / ".cache") / "neardup_gpu"


def _cache() -> Path | None:
    """This version's folder of compiled kernels, made and writable; None where there is none."""
    if not Path(__file__).is_file():  # Numba caches no function that lies in a zip
        return None
    try:
        folder = _cache_home() / _source_key()
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # RuntimeError: there is no home
        return None
    return folder if os.access(folder, os.W_OK) else None


CACHE = _cache()
"""Folder of this version's compiled kernels; None where nothing can be kept, and every run compiles."""

CACHE_WARM = CACHE is not None and any(CACHE.iterdir())
"""Whether an earlier run left compiled kernels there."""


def jit(**options: Any) -> Callable[[Callable], Callable]:
    """``numba.njit`` that releases the GIL and keeps its machine code in `CACHE`, where that can be written."""

    def decorate(function: Callable) -> Callable:
        before = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = str(CACHE or "")  # read while the decorator runs: only our functions are kept there
        try:
            return numba.njit(nogil=True, cache=CACHE is not None, **options)(function)
        finally:
            numba.config.CACHE_DIR = before

    return decorate


def shares(offsets: np.ndarray, per_thread: int = 8) -> np.ndarray:
    """Divide rows into runs of about equal total length, `per_thread` for each thread.

    Returns
    -------
    array of int64, shape (runs + 1,)
        Run p is rows ``bounds[p]`` to ``bounds[p + 1]``; some may be empty. A row is never divided.
    """
    runs = per_thread * numba.get_num_threads()
    targets = np.linspace(offsets[0], offsets[-1], runs + 1).astype(np.int64)
    bounds = np.searchsorted(offsets, targets, side="left").astype(np.int64)
    bounds[0], bounds[-1] = 0, len(offsets) - 1
    return np.minimum(bounds, len(offsets) - 1)
