"""Compile every kernel with numba-cuda-mlir, which is to succeed numba-cuda: what works, and why the others do not.

    python tests/gpu/harness/successor.py

Ends with exit status 1 if a kernel is not compiled. Needs the package next to requirements.txt's, and no GPU.
"""

from __future__ import annotations

import sys

import numba
from numba_cuda_mlir import cuda, tools

tools._cached_cc = (9, 0)  # instead of asking a driver, which is not there, for the current device
sys.modules["numba.cuda"] = numba.cuda = cuda  # which kernels import by that name

import kernel_list  # noqa: E402

from neardup_gpu.kernels import _launch as launch  # noqa: E402


def failure_of(kernel: launch.Kernel) -> str | None:
    """Return why a kernel is not compiled, in one line; None if it is."""
    try:
        cuda.compile(launch._linked(kernel.function), kernel.signature, device=False, cc=(9, 0), abi="numba")
    except Exception as error:
        words = " ".join(str(error).split())
        return f"{type(error).__name__}: {words[:300]}"
    return None


def main() -> int:
    """Print a line for each kernel; return 1 if one was not compiled."""
    failures = {name: failure_of(kernel) for name, kernel in kernel_list.all_kernels().items()}
    for name, why in failures.items():
        print(f"{name:<50}{'compiled' if why is None else why}", flush=True)
    compiled = sum(why is None for why in failures.values())
    print(f"{compiled} of {len(failures)} kernels compiled")
    return int(compiled < len(failures))


if __name__ == "__main__":
    sys.exit(main())
