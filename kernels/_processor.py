"""Finds the features of the processor and the number of threads that kernels may use, without importing NumPy."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from functools import cache
from pathlib import Path

HASWELL = frozenset(
    ["abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "pclmulqdq", "popcnt", "sse4_1", "sse4_2", "ssse3"]
)
"""Features of Intel's Haswell (2013), which all compiled modules for x86-64 use, as /proc/cpuinfo names them."""

ICE_LAKE = HASWELL.union(
    ["avx512_bitalg", "avx512_vbmi2", "avx512_vnni", "avx512_vpopcntdq", "avx512bw", "avx512cd", "avx512dq"],
    ["avx512f", "avx512ifma", "avx512vbmi", "avx512vl", "gfni", "vaes", "vpclmulqdq"],
)
"""Features of Intel's Ice Lake (2019) and AMD's Zen 4 (2022), which a further module uses."""

_ON_MACOS = {"abm": "lzcnt", "avx": "avx1.0", "sse4_1": "sse4.1", "sse4_2": "sse4.2"}


def is_x86() -> bool:
    """Return whether this is an x86-64 processor."""
    return platform.machine().lower() in ("x86_64", "amd64")


@cache
def features() -> frozenset[str]:
    """Return which of the features in `ICE_LAKE` an x86-64 processor has; empty where the system does not say."""
    if not is_x86():
        return frozenset()
    try:
        if sys.platform == "darwin":
            keys = ["machdep.cpu.features", "machdep.cpu.leaf7_features", "machdep.cpu.extfeatures"]
            printed = subprocess.run(["sysctl", "-n", *keys], capture_output=True, text=True, timeout=5, check=True)
            found = set(printed.stdout.lower().split())
            return frozenset(each for each in ICE_LAKE if _ON_MACOS.get(each, each) in found)
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("flags"):
                return ICE_LAKE & set(line.split())
    except (OSError, subprocess.SubprocessError):
        pass
    return frozenset()


def carryless_products() -> int:
    """Return how many carry-less products of words the processor computes at once: 0, 1 or 4.

    NEARDUP_CLMUL=0 or 128 (bits) asks for a slower way: 0 so that tests can take the way of tables, 128 for modules
    that older processors load.
    """
    asked, found = os.environ.get("NEARDUP_CLMUL"), features()
    if asked == "0" or "pclmulqdq" not in found:
        return 0
    return 4 if found >= ICE_LAKE and asked != "128" else 1


def most_threads() -> int:
    """Return how many threads kernels may use in this process: NUMBA_NUM_THREADS, else one for each processor."""
    given = os.environ.get("NUMBA_NUM_THREADS", "")
    if given.isdecimal() and int(given):
        return int(given)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
