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

AVX512 = HASWELL | {"avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"}
"""Features of Intel's Skylake for servers (2017) and AMD's Zen 4 (2022), which a further module uses."""

_ON_MACOS = {"abm": "lzcnt", "avx": "avx1.0", "sse4_1": "sse4.1", "sse4_2": "sse4.2"}


def is_x86() -> bool:
    """Return whether this is an x86-64 processor."""
    return platform.machine().lower() in ("x86_64", "amd64")


@cache
def features() -> frozenset[str]:
    """Return which of the features in `AVX512` an x86-64 processor has; empty where the system does not say."""
    if not is_x86():
        return frozenset()
    try:
        if sys.platform == "darwin":
            keys = ["machdep.cpu.features", "machdep.cpu.leaf7_features", "machdep.cpu.extfeatures"]
            printed = subprocess.run(["sysctl", "-n", *keys], capture_output=True, text=True, timeout=5, check=True)
            found = set(printed.stdout.lower().split())
            return frozenset(each for each in AVX512 if _ON_MACOS.get(each, each) in found)
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("flags"):
                return AVX512 & set(line.split())
    except (OSError, subprocess.SubprocessError):
        pass
    return frozenset()


def has_carryless_product() -> bool:
    """Return whether kernels use the processor's carry-less product: not if NEARDUP_CLMUL=0, so that tests can take
    the other path."""
    return os.environ.get("NEARDUP_CLMUL") != "0" and "pclmulqdq" in features()


def most_threads() -> int:
    """Return how many threads kernels may use in this process: NUMBA_NUM_THREADS, else one for each processor."""
    given = os.environ.get("NUMBA_NUM_THREADS", "")
    if given.isdecimal() and int(given):
        return int(given)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
