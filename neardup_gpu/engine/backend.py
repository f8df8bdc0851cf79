"""Where kernels run: reference | cpu | gpu, chosen by argument, else NEARDUP_BACKEND, else by what is found here.

A backend that was asked for by name runs or is refused, with the reason. Only the search for a GPU falls back, and it
says so in one line wherever there is a sign of one.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import numbers
import os
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .. import checks
from ..data import Ragged
from ..errors import ArgumentTypeError, BackendUnavailableError, NeardupError, ParameterError, ResourceError
from ..log import log
from ..report import count, shorten, size
from ..store.spool import DeviceSpool, Spool
from .threads import exclusive

if TYPE_CHECKING:
    from ..documents import Batch

T = TypeVar("T")

BACKENDS = ("reference", "cpu", "gpu")

OLDEST = (8, 0)
"""Least compute capability: kernels are compiled and tested for 8.0 (A100) and 9.0 (H100)."""

OLDEST_CUPY = (14, 1)
"""Before it, a sort that ran out of memory returned wrong values and raised nothing."""


def resolve(backend: str | None, device: int | None = None, gpu_memory: int | str | None = None) -> str:
    """Name of the backend to use.

    Parameters
    ----------
    backend : "reference", "cpu" or "gpu", optional
        Without it the environment variable NEARDUP_BACKEND decides; without both, "gpu" if `device` or `gpu_memory` is
        given; else "gpu" if there is a usable one, else "cpu".
    device, gpu_memory : optional
        As in `running`.

    Raises
    ------
    ParameterError
        If there is no backend of that name, or it is not of the kind that the others are about.
    BackendUnavailableError
        If it was asked for by name and cannot run here.
    """
    checks.optional(checks.one_of, "backend", backend, BACKENDS)
    if gpu_memory is not None:
        parse_size(gpu_memory)
    options = {"--device": device, "--gpu-memory": gpu_memory}
    given = [f"{option} {value}" for option, value in options.items() if value is not None]
    asked = backend or os.environ.get("NEARDUP_BACKEND") or ("gpu" if given else None)
    if asked is None:
        return _detected()
    if asked not in BACKENDS:
        raise ParameterError(f"backend {asked!r} is not one of {', '.join(BACKENDS)}")
    if asked != "gpu" and given:
        raise ParameterError(f"{given[0]} is for backend 'gpu', not {asked!r}; leave one of them out")
    if asked == "gpu":
        problem = _problem(device)
        if problem is not None:
            raise BackendUnavailableError(f"backend 'gpu': {problem}; or use --backend cpu")
    return asked


def kernel(module: ModuleType, backend: str | None) -> Callable[..., Any]:
    """The function of a kernel file for a backend: its `reference`, `cpu` or `gpu`.

    Where it runs on the host, array arguments may lie on a GPU all the same.
    """
    name = resolve(backend)
    run = getattr(module, name)
    if name == "gpu":
        return run

    def on_host(*arguments: Any) -> Any:
        at_home = [home(a) if hasattr(a, "__cuda_array_interface__") else a for a in arguments]
        with exclusive():
            return run(*at_home)

    return on_host


def home(array: Any) -> np.ndarray:
    """An array as NumPy's, in host memory."""
    from neardup_gpu.kernels._launch import to_host

    return to_host(array)


# ------------------------------------------------------------------------------------------------- is there a GPU?


def _simulated() -> bool:
    from neardup_gpu.kernels._launch import simulated

    return simulated()


@cache
def _detected() -> str:
    """ "gpu" if one is usable, else "cpu"; found out once, and said once, where there is a sign of a GPU."""
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

    Asked of its own library, so that neither CuPy nor a GPU is needed, in microseconds where there is no driver.
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


_forked = False  # from a process in which CUDA had been started, which cannot be started again then


def _in_child() -> None:
    global _forked
    _forked = _forked or (_driver.cache_info().currsize > 0 and _driver()[1] > 0)
    _detected.cache_clear()
    _problem.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


def _extra(version: int) -> str:
    """How to install what a driver of that version of CUDA needs."""
    if version == 0:
        return "install 'neardup_gpu[cuda13]', or [cuda12] for an older driver"
    return f"install 'neardup_gpu[cuda{13 if version >= 13000 else 12}]'"


@cache
def _problem(device: int | None) -> str | None:
    """Why a GPU cannot be used, and what helps; None if it can. `device` is the current one, unless given."""
    if device is not None and device < 0:
        return f"device {device} is negative; devices are counted from 0"
    if _simulated():
        return None if not device else f"device {device}: the simulator has one device, 0"
    if _forked:
        return "this process was forked from one that had used CUDA; start it by the method 'spawn' or 'forkserver'"
    version, _ = _driver()
    no_driver = "there is no NVIDIA driver (no libcuda); install one"
    packages = {"cupy": "CuPy", "numba_cuda": "numba-cuda"}
    missing = [title for name, title in packages.items() if find_spec(name) is None]
    if missing:
        also = "" if version else "; nor is there an NVIDIA driver"
        verb = "is" if len(missing) == 1 else "are"
        return f"{' and '.join(missing)} {verb} not installed{also}; {_extra(version)}"
    if not version:
        return no_driver
    try:
        import cupy
        from numba import cuda
    except Exception as error:
        return f"CuPy or numba-cuda cannot be imported ({_brief(error)}); {_extra(version)} anew"
    if tuple(int(part) for part in cupy.__version__.split(".")[:2]) < OLDEST_CUPY:
        return f"CuPy {cupy.__version__} sorts wrongly when memory runs out (cupy issue 9894); {_extra(version)} anew"
    try:
        number = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return _refused(error.status, _brief(error), version, cupy.cuda.runtime.runtimeGetVersion())
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
        if not cuda.is_available():
            return f"numba-cuda lacks its compiler libraries; {_extra(version)}, which brings them"
    except Exception as error:
        return f"the GPU does not answer ({_brief(error)}); see nvidia-smi"
    try:
        cupy.cuda.nvrtc.getVersion()
    except Exception as error:
        return f"CuPy lacks its compiler ({_brief(error)}); {_extra(version)}, which brings it"
    return None


def _refused(status: int, text: str, driver: int, runtime: int) -> str:
    """What it means that CUDA's runtime does not start."""
    if status == 100:  # cudaErrorNoDevice
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        hint = "" if visible is None else f" that CUDA_VISIBLE_DEVICES={visible} shows"
        return f"there is a driver, but no GPU{hint}; see nvidia-smi"
    if status == 35:  # cudaErrorInsufficientDriver
        needs = f"this CuPy is for CUDA {runtime // 1000}"
        older = " or install 'neardup_gpu[cuda12]'" if driver >= 12000 else ""
        return f"the driver is too old: it supports CUDA {_dotted(driver)}, {needs}; update the driver{older}"
    return f"CUDA does not start ({text}); see nvidia-smi"


def _dotted(version: int) -> str:
    return f"{version // 1000}.{version % 1000 // 10}"


def _brief(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip(" :=")]
    return lines[0] if lines else type(error).__name__


# ---------------------------------------------------------------------------------------------- a job, and its memory

DEFAULT_SHARE = 0.8
"""Of the GPU memory that is free when a job begins, what it may use unless told; the rest is for compiled code, for
stacks and for others."""

SIMULATED_MEMORY = 1 << 30
"""What stands for the free memory in the simulator."""

BATCH_BYTES = 256 << 20
"""Most text in a batch on a GPU: larger ones cost memory, and kernels have enough to do with this."""

TEXT_BYTES = {"set": 12, "circular": 12, "bag": 36}
"""GPU memory that a byte of text needs while its batch is computed, at most, by the kind of shingling.

Beside the slots of `Staging` (three of at most twice the batch and its offsets), for up to one token in two bytes:

    tokens      1 for a copy, 1/2 for where documents and groups of bytes begin, 4 for fingerprints
    shingles    4 for tokens and 4 for shingles; bags up to 24 more while all are sorted by document and value: 4 a
                shingle for its row, 12 for its place, copies and the other buffer of the sort 32
    the rest    goes to blocks of memory that do not fit

Text of more tokens than that (ligatures that stand for phrases) may exceed it: then the batch is halved.
"""

ROW_BYTES = 128
"""What a document counts in a batch beside its text; see `Documents.batches`."""


def parse_size(text: int | str, name: str = "gpu memory") -> int:
    """A number of bytes: 8000000000, "8GB", "8 GB", "7.5GiB", "8G".

    Raises
    ------
    ParameterError, ArgumentTypeError
        If it is none.
    """
    if isinstance(text, bool) or not isinstance(text, (str, numbers.Real)):
        raise ArgumentTypeError(f"{name}: {checks.shown(text)} is no size; write 20GB, 20GiB or a number of bytes")
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(?:([kmgt])(i?)b?|b|bytes)?\s*", str(text), re.IGNORECASE)
    if found is None or len(found[1]) > 30:
        raise ParameterError(f"{name} {checks.shown(text)} is not a size; write 20GB, 20GiB or a number of bytes")
    number, unit, binary = found.groups()
    power = "kmgt".index(unit.lower()) + 1 if unit else 0
    parsed = int(float(number) * (1024 if binary else 1000) ** power) if unit else int(float(number))
    if parsed < 1:
        raise ParameterError(f"{name} {checks.shown(text)} is nothing; write 20GB, 20GiB or a number of bytes")
    return parsed


class Job:
    """Where a job runs, and what it may hold there.

    Parameters
    ----------
    backend : str
        Resolved.
    memory : int
        Bytes of GPU memory that it may use; 0 on the host.
    staging : Staging, optional
        For a GPU.
    device : dict, optional
        What report.json says of the GPU.
    """

    def __init__(
        self, backend: str, memory: int = 0, staging: Any = None, device: dict[str, Any] | None = None
    ) -> None:
        self.backend, self.memory = backend, memory
        self.on_gpu = backend == "gpu"
        self._staging, self._device = staging, device
        self._sketch_room = self.sketch_bytes
        self._most_bytes: int | None = None  # of text computed at once, since memory ran out
        self._batches = self._halvings = 0

    @property
    def sketch_bytes(self) -> int:
        """Features and fingerprints kept on the GPU; beyond it they go to host memory. To join them takes as much."""
        return self.memory // 4

    @property
    def spool_bytes(self) -> int:
        """Shingles kept on the GPU; beyond it they go to a file."""
        return self.memory // 16 * 7

    @property
    def sets_bytes(self) -> int:
        """Sets of candidates kept on the GPU, and compared at once."""
        return self.memory // 16

    @property
    def sorted_bytes(self) -> int:
        """Shingles made into sets at once; to sort them takes about eight times as much."""
        return self.memory // 64

    def batch_bytes(self, shingling: str, bytes_a_document: int) -> int | None:
        """Text to read at a time; None on the host, where the reader's own bound is right.

        Each document counts `ROW_BYTES` more, so what it needs beside its text is covered by that.
        """
        if not self.on_gpu:
            return None
        needed = 7 + max(TEXT_BYTES[shingling], -(-(192 + bytes_a_document) // ROW_BYTES))
        return max(1, min(BATCH_BYTES, self.memory // 4 // needed))

    def put(self, array: Any) -> Any:
        """An array in the memory of the backend."""
        if not self.on_gpu:
            return home(array)
        from neardup_gpu.kernels._launch import namespace

        return namespace().asarray(array)

    def holds(self, num_bytes: int) -> bool:
        """Whether so many more bytes of sketches may stay where they are; else they have to go to host memory."""
        if not self.on_gpu or self._sketch_room >= num_bytes:
            self._sketch_room -= num_bytes
            return True
        return False

    def spool(self, folder: Any, num_bytes: int) -> Spool | DeviceSpool:
        """An empty spool, of which `num_bytes` may lie on the GPU if there is one."""
        return DeviceSpool(folder, num_bytes) if self.on_gpu else Spool(folder)

    def staged(self, batches: Iterator[Batch]) -> Iterator[tuple[Batch, Ragged]]:
        """Each batch and its text: on the GPU, if there is one and it fits there."""
        if not self.on_gpu:
            yield from ((batch, batch.text) for batch in batches)
            return
        for batch, text in self._staging.staged(batches, lambda batch: (batch.text.values, batch.text.offsets)):
            self._batches += 1
            yield batch, batch.text if text is None else Ragged(*text)

    def compute(
        self, run: Callable[[int, int], T], offsets: np.ndarray, ids: Any, free: Callable[[], None] | None = None
    ) -> Iterator[T]:
        """What `run` gives for all rows; where the GPU's memory does not suffice, for runs of rows, one after another.

        Parameters
        ----------
        run : callable
            Called with (first row, last row + 1); it has no effect but its result.
        offsets : array of int64, shape (rows + 1,)
            Where each row's text begins.
        ids : pyarrow.Array
            For messages.
        free : callable, optional
            Frees what else it can of the GPU's memory, for a document that does not fit alone.

        Raises
        ------
        ResourceError
            If a document alone does not fit.
        """
        ends = offsets - offsets[0] + ROW_BYTES * np.arange(len(offsets))
        waiting = [(0, len(offsets) - 1)]
        while waiting:
            first, last = waiting.pop()
            all_bytes = int(ends[last] - ends[first])
            if self._most_bytes is None or all_bytes <= self._most_bytes or last - first <= 1:
                result = self._attempt(partial(run, first, last))
                if result is None and last - first <= 1 and free is not None:
                    free()
                    self.release()
                    result = self._attempt(partial(run, first, last))
                if result is not None:
                    yield result
                    result = None  # the next one needs the room
                    continue
                if last - first <= 1:
                    name, text = shorten(repr(ids[first].as_py()), 60), size(int(offsets[last] - offsets[first]))
                    raise ResourceError(
                        f"document {name}: {text} of text, more than can be computed in {size(self.memory)} of GPU "
                        "memory; use --backend cpu, or allow more with --gpu-memory"
                    )
                if self._halvings == 0:
                    log.info("GPU memory did not suffice for %s of text: batches are halved", size(all_bytes))
                self._halvings += 1
                self._most_bytes = max(1, all_bytes // 2)
            middle = int(np.searchsorted(ends, (ends[first] + ends[last]) // 2))
            middle = min(max(middle, first + 1), last - 1)
            waiting += [(middle, last), (first, middle)]

    def _attempt(self, run: Callable[[], Any]) -> Any:
        """What `run` gives, which is not None; None if the GPU's memory did not suffice, and then all that is free is
        given back."""
        try:
            return run()
        except Exception as error:
            from neardup_gpu.kernels._launch import out_of_memory

            if not self.on_gpu or not out_of_memory(error):
                raise
        # Only now does nothing hold on to the arrays of what failed.
        gc.collect()
        self.release()
        return None

    def with_room(self, run: Callable[[], Any], *frees: Callable[[], Any]) -> Any:
        """What `run` gives; where the GPU's memory does not suffice, again after each of `frees` in turn.

        Raises
        ------
        ResourceError
            If it still does not.
        """
        for free in (None, *frees):
            if free is not None:
                free()
                self.release()
            result = self._attempt(run)
            if result is not None:
                return result
        raise _too_little(self.memory)

    def release(self) -> None:
        """Give memory that no array uses back to the device, so that it can be divided anew."""
        if self.on_gpu and not _simulated():
            import cupy

            cupy.get_default_memory_pool().free_all_blocks()

    def wait(self) -> None:
        """Wait until the GPU has done all that it was given."""
        if self.on_gpu and not _simulated():
            import cupy

            cupy.cuda.get_current_stream().synchronize()

    def describe(self) -> dict[str, Any] | None:
        """What report.json says of the GPU; None on the host."""
        if self._device is None:
            return None
        return {**self._device, "gpu_memory": self.memory, "batches": self._batches, "halvings": self._halvings}


@contextlib.contextmanager
def running(
    backend: str | None, device: int | None = None, gpu_memory: int | str | None = None, slots: int = 3
) -> Iterator[Job]:
    """Run a job on a backend: on a GPU, on one stream of one device, within a bound of memory.

    Parameters
    ----------
    backend : "reference", "cpu" or "gpu", optional
        See `resolve`.
    device : int, optional
        Number of the GPU, as the driver counts those that CUDA_VISIBLE_DEVICES shows; CuPy's current one, unless given.
    gpu_memory : int or str, optional
        Bytes, or a size such as "20GB"; `DEFAULT_SHARE` of what is free, unless given.
    slots : int
        Of `Staging`.

    Raises
    ------
    ParameterError, BackendUnavailableError
        As `resolve`; and where there is not so much memory.
    ResourceError
        If the GPU's memory does not suffice for what the job does in the block.
    """
    wanted = None if gpu_memory is None else parse_size(gpu_memory)
    name = resolve(backend, device, gpu_memory)
    if name != "gpu":
        yield Job(name)
        return
    from neardup_gpu.kernels._launch import Staging

    if _simulated():
        memory = wanted or int(DEFAULT_SHARE * SIMULATED_MEMORY)
        with _in_words(memory), Staging(slots) as staging:
            yield Job(name, memory, staging, {"name": "Numba's simulator"})
        return
    import cupy

    with (
        cupy.cuda.Device(device) as chosen,
        _limited(chosen, wanted) as memory,
        _in_words(memory),
        cupy.cuda.Stream(non_blocking=True),
        Staging(slots) as staging,
    ):
        yield Job(name, memory, staging, describe_device(chosen.id))


@contextlib.contextmanager
def _in_words(memory: int) -> Iterator[None]:
    """What CUDA and CuPy raise for want of memory, as one line."""
    from neardup_gpu.kernels._launch import out_of_memory

    try:
        yield
    except Exception as error:
        if isinstance(error, NeardupError) or not out_of_memory(error):
            raise
        raise _too_little(memory) from error


def _too_little(memory: int) -> ResourceError:
    return ResourceError(
        f"{size(memory)} of GPU memory do not suffice; use --backend cpu, or allow more with --gpu-memory"
    )


@contextlib.contextmanager
def _limited(chosen: Any, wanted: int | None) -> Iterator[int]:
    """Bytes that CuPy may give to a job on a device; when the job ends, its bound is what it was."""
    import cupy
    from numba import cuda

    cupy.cuda.runtime.free(0)  # makes the device's primary context, which Numba then takes too
    if cuda.get_current_device().id != chosen.id:
        raise BackendUnavailableError(
            f"device {chosen.id}: Numba uses another device in this thread; close its context, or use another thread"
        )
    pool = cupy.get_default_memory_pool()
    pool.free_all_blocks()
    free, total = cupy.cuda.runtime.memGetInfo()
    if wanted is not None and wanted > free:
        raise ParameterError(
            f"gpu memory {size(wanted)}: {size(free)} of {size(total)} are free on device {chosen.id}; ask for less"
        )
    memory = wanted or int(DEFAULT_SHARE * free)
    before = pool.get_limit()
    held = pool.total_bytes()
    if before:  # CUPY_GPU_MEMORY_LIMIT, or the caller
        memory = max(1, min(memory, before - held))
    pool.set_limit(size=held + memory)
    try:
        yield memory
    finally:
        pool.set_limit(size=before)
        pool.free_all_blocks()


def describe_device(number: int | None = None) -> dict[str, Any]:
    """Name, number, compute capability and memory of a GPU: the current one, unless given."""
    import cupy

    chosen = cupy.cuda.Device(number)
    properties = cupy.cuda.runtime.getDeviceProperties(chosen.id)
    return {
        "name": properties["name"].decode("utf-8", "replace"),
        "number": chosen.id,
        "compute_capability": f"{properties['major']}.{properties['minor']}",
        "memory": int(properties["totalGlobalMem"]),
    }
