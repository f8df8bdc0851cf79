"""Choose where kernels run: reference | cpu | gpu, chosen by argument, else by NEARDUP_BACKEND, else by the hardware.

A backend that is chosen by name runs or is refused, with the reason. Only the search for a GPU falls back, and it
says so in one line wherever there is a sign of one.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from types import ModuleType
from typing import Any, cast

from .. import checks
from ..errors import BackendUnavailableError, ParameterError
from ..log import log
from ..report import count
from .contract import BACKENDS, Backend
from .memory import parse_size

OLDEST = (8, 0)
"""Least compute capability: kernels are compiled and tested for 8.0 (A100) and 9.0 (H100)."""

OLDEST_CUPY = (14, 1)
"""Before it, a sort that ran out of memory returned wrong values and raised nothing."""


def resolve(backend: str | None, device: int | None = None, gpu_memory: int | str | None = None) -> Backend:
    """Name of the backend to use.

    Parameters
    ----------
    backend : "reference", "cpu" or "gpu", optional
        Without it the environment variable NEARDUP_BACKEND decides; without both, "gpu" if `device` or `gpu_memory`
        is given; else "gpu" if there is a usable one, else "cpu".
    device, gpu_memory : optional
        As in `Engine`.

    Raises
    ------
    ParameterError
        If there is no backend of that name, or `device` or `gpu_memory` is given for a backend other than "gpu".
    BackendUnavailableError
        If the backend was chosen by name and cannot run here.
    """
    checks.optional(checks.one_of, "backend", backend, BACKENDS)
    if gpu_memory is not None:
        parse_size(gpu_memory, "gpu_memory")
    options = {"device": device, "gpu_memory": gpu_memory}
    given = [f"{option} {value}" for option, value in options.items() if value is not None]
    chosen = backend or os.environ.get("NEARDUP_BACKEND") or ("gpu" if given else None)
    if chosen is None:
        return _detected()
    if chosen not in BACKENDS:
        raise ParameterError(f"backend {chosen!r} is not one of {', '.join(BACKENDS)}")
    if chosen != "gpu" and given:
        raise ParameterError(f"{given[0]} is for backend 'gpu', not {chosen!r}; leave one of them out")
    if chosen == "gpu":
        problem = _problem(device)
        if problem is not None:
            raise BackendUnavailableError(f"backend 'gpu': {problem}; or use backend='cpu'")
    return cast(Backend, chosen)


WORTH_A_GPU = 1_000_000_000
"""Least bytes of text of a job that is put on a GPU without a request, as measured once: see docs/decisions/gpu.md."""


def is_requested(backend: str | None, device: int | None, gpu_memory: int | str | None) -> bool:
    """Return whether an argument or NEARDUP_BACKEND decides about the backend, and not the hardware."""
    return any(each is not None for each in (backend, device, gpu_memory)) or bool(os.environ.get("NEARDUP_BACKEND"))


FEW_BYTES = 1 << 16
"""Least size of a kernel's input for several threads: below it, starting other threads takes about as long as the work
itself."""


def kernel(module: ModuleType, backend: str | None) -> Callable[..., Any]:
    """The function of a kernel file for a backend: its `reference`, `cpu` or `gpu`.

    A function that runs on the host takes arrays that lie on a GPU as well. Where no backend is named, `cpu` does what
    is little on the calling thread alone.
    """
    name = backend if isinstance(backend, str) and backend in ("cpu", "reference") else resolve(backend)
    return getattr(module, name) if name == "gpu" else _on_host(module, name, backend is None)


@cache
def _on_host(module: ModuleType, name: str, unnamed: bool) -> Callable[..., Any]:
    from neardup_gpu.kernels._cpu import alone, is_alone

    def run(*arguments: Any) -> Any:
        function = getattr(module, name)
        on_the_host = [to_host(a) if hasattr(a, "__cuda_array_interface__") else a for a in arguments]
        if unnamed and not is_alone() and sum(getattr(a, "nbytes", 0) for a in on_the_host) < FEW_BYTES:
            with alone():
                return function(*on_the_host)
        return function(*on_the_host)

    return run


def to_host(array: Any) -> Any:
    """An array as NumPy's, or a Ragged of such arrays, in host memory."""
    from neardup_gpu.kernels import _launch

    from ..data import Ragged

    if isinstance(array, Ragged):
        return Ragged._trusted(_launch.to_host(array.values), _launch.to_host(array.offsets))
    return _launch.to_host(array)


# ------------------------------------------------------------------------------------------------- is there a GPU?


def why_no_gpu() -> str | None:
    """Why the current GPU cannot be used, and what to do; None if it can be used."""
    return _problem(None)


def _comes_compiled() -> bool:
    """Whether GPU kernels came compiled with this installation; numba-cuda is needed only where they do not fit."""
    from neardup_gpu.kernels import _compiled

    return _compiled.archive()[0] is not None


def _simulated() -> bool:
    from neardup_gpu.kernels._launch import simulated

    return simulated()


@cache
def _detected() -> Backend:
    """ "gpu" if one is usable, else "cpu"; determined once, with a warning for a GPU that cannot be used."""
    if find_spec("cupy") is None and _driver()[1] == 0:
        return "cpu"
    if _simulated():  # only by name
        return "cpu"
    problem = _problem(None)
    if problem is None:
        return "gpu"
    log.warning("running on the CPU: %s", problem)
    return "cpu"


@cache
def _driver() -> tuple[int, int]:
    """(version of CUDA, number of GPUs) that the NVIDIA driver supports and shows; zeros where there is none.

    This asks the driver's own library, so neither CuPy nor a GPU is needed; without a driver it takes microseconds.
    """
    try:
        library = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        version, devices = ctypes.c_int(0), ctypes.c_int(0)
        library.cuDriverGetVersion(ctypes.byref(version))
        if library.cuInit(0) == 0:
            library.cuDeviceGetCount(ctypes.byref(devices))
        return version.value, devices.value
    except (OSError, AttributeError):
        return 0, 0


_forked = False  # whether this process was forked from one that had started CUDA, so that CUDA cannot be started again


def _in_child() -> None:
    global _forked
    _forked = _forked or (_driver.cache_info().currsize > 0 and _driver()[1] > 0)
    _detected.cache_clear()
    _problem.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


def _how_to_install(version: int) -> str:
    """Return how to install the packages for a driver of that version of CUDA."""
    kind = "" if _comes_compiled() else "-clone"
    if version == 0:
        return f"install 'neardup-gpu[cuda13{kind}]', or [cuda12{kind}] for an older driver"
    return f"install 'neardup-gpu[cuda{13 if version >= 13000 else 12}{kind}]'"


@cache
def _problem(device: int | None) -> str | None:
    """Why a GPU cannot be used, and what to do; None if it can be used. Without `device`, the current one is meant."""
    if device is not None and device < 0:
        return f"device {device} is negative; devices are counted from 0"
    if _simulated():
        return None if not device else f"device {device}: the simulator has one device, 0"
    if _forked:
        return "this process was forked from one that had used CUDA; start it by the method 'spawn' or 'forkserver'"
    version, _ = _driver()
    no_driver = "there is no NVIDIA driver (no libcuda); install one"
    compiles = not _comes_compiled()
    packages = {"cupy": "CuPy"} | ({"numba_cuda": "numba-cuda"} if compiles else {})
    missing = [title for name, title in packages.items() if find_spec(name) is None]
    if missing:
        also = "" if version else "; nor is there an NVIDIA driver"
        verb = "is" if len(missing) == 1 else "are"
        return f"{' and '.join(missing)} {verb} not installed{also}; {_how_to_install(version)}"
    if not version:
        return no_driver
    try:
        import cupy

        if compiles:
            from numba import cuda
            from numba.cuda import cudaimpl  # noqa: F401 (else imported by the first compilation; NumPy 2.5 is too new)
    except Exception as error:
        which = " or ".join(packages.values())
        return f"{which} cannot be imported ({_first_line(error)}); {_how_to_install(version)} anew"
    if tuple(int(part) for part in cupy.__version__.split(".")[:2]) < OLDEST_CUPY:
        found = f"CuPy {cupy.__version__} sorts wrongly when memory runs out (cupy issue 9894)"
        return f"{found}; {_how_to_install(version)} anew"
    try:
        number = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return _why_cuda_failed(error.status, _first_line(error), version, cupy.cuda.runtime.runtimeGetVersion())
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    among = "" if visible is None else f" (CUDA_VISIBLE_DEVICES={visible})"
    if device is not None and device >= number:
        return f"device {device}: there {'is' if number == 1 else 'are'} {count(number, 'GPU')}, counted from 0{among}"
    try:
        chosen = cupy.cuda.Device(device)  # the current one for None
        capability = (int(chosen.compute_capability[:-1]), int(chosen.compute_capability[-1]))
        if capability < OLDEST:
            return (
                f"device {chosen.id} has compute capability {capability[0]}.{capability[1]}; "
                f"{OLDEST[0]}.{OLDEST[1]} (A100) or later is needed"
            )
        if compiles and not cuda.is_available():
            return f"numba-cuda lacks its compiler libraries; {_how_to_install(version)}, which brings them"
    except Exception as error:
        return f"the GPU does not answer ({_first_line(error)}); see nvidia-smi"
    try:
        cupy.cuda.nvrtc.getVersion()
    except Exception as error:
        return f"CuPy lacks its compiler ({_first_line(error)}); {_how_to_install(version)}, which brings it"
    return None


def _why_cuda_failed(status: int, text: str, driver: int, runtime: int) -> str:
    """Explain why the CUDA runtime failed to start."""
    if status == 100:  # cudaErrorNoDevice
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        hint = "" if visible is None else f" that CUDA_VISIBLE_DEVICES={visible} shows"
        return f"there is a driver, but no GPU{hint}; see nvidia-smi"
    if status == 35:  # cudaErrorInsufficientDriver
        needs = f"this CuPy is for CUDA {runtime // 1000}"
        older = f" or {_how_to_install(driver)}" if driver >= 12000 else ""
        return f"the driver is too old: it supports CUDA {_version_text(driver)}, {needs}; update the driver{older}"
    return f"CUDA does not start ({text}); see nvidia-smi"


def _version_text(version: int) -> str:
    return f"{version // 1000}.{version % 1000 // 10}"


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip(" :=")]
    return lines[0] if lines else type(error).__name__
