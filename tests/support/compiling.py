"""A function that is compiled on demand, and not kept."""

import numba

from neardup_gpu.kernels import _numba  # noqa: F401 (it reports what Numba compiles)


def compile_a_function() -> None:
    numba.njit(lambda x: x * x + 3)(1.5)
