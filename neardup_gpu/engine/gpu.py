"""One GPU as a place to run: pinned staging of batches, a share of its memory, and halving where that runs out."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from neardup_gpu.kernels import _compiled, _launch
from neardup_gpu.kernels._launch import Staging

from ..data import Ragged
from ..errors import BackendUnavailableError, NeardupError, ParameterError, ResourceError
from ..log import log
from ..report import size
from ..store.spool import DeviceSpool
from .arrays import take_rows
from .choice import to_host
from .contract import Backend, P, Q, R
from .memory import Shares, batch_bytes

DEFAULT_SHARE = 0.8
"""Share of the free GPU memory that a job may use by default; the rest is for compiled code, for
stacks and for others."""

SLOTS = 3
"""Batches that are on their way to the GPU at once; see `memory.TEXT_BYTES`."""

SIMULATED_MEMORY = 1 << 30
"""The simulator's free memory."""

_NOTHING = object()
"""Stands for the result of an attempt that ran out of memory."""


class GpuRuntime:
    """A `Runtime` on one GPU.

    Parameters
    ----------
    memory : int
        Bytes of its memory that may be used.
    staging : Staging
    device : dict
        What report.json says of it.
    """

    def __init__(self, memory: int, staging: Any, device: dict[str, Any]) -> None:
        self.backend: Backend = "gpu"
        self.memory, self.shares = memory, Shares.of_gpu(memory)
        self._staging, self._device = staging, device
        self._room = self.shares.keys
        self._spools: list[DeviceSpool] = []
        self._most_bytes: dict[str, int] = {}  # of a kind of piece, since memory ran out
        self._batches = self._halvings = 0

    def map(self, run: Callable[[P], R], pieces: Iterable[P], begin: Callable[[P], Any] | None = None) -> Iterator[R]:
        if begin is not None:
            yield from self._two_at_a_time(run, pieces, begin)
            return
        for piece in pieces:
            yield from self._results(run, piece)

    def _two_at_a_time(self, run: Callable[[P], R], pieces: Iterable[P], begin: Callable[[P], Any]) -> Iterator[R]:
        """`map`, with the next piece begun before a piece is run, and with each result given after the next piece ran.

        So the host waits for a piece, and for its result on the way back, while the device has work. A piece for which
        memory does not suffice meanwhile is run alone.
        """
        current: Any = None
        begun: Any = _NOTHING
        made: Any = _NOTHING
        for following in chain(pieces, [None]):
            next_begun = _NOTHING
            if following is not None and self._fits(following):
                next_begun = self._attempt(partial(begin, following))
            if current is not None:
                result = _NOTHING if begun is _NOTHING else self._attempt(partial(run, current))
                begun = _NOTHING
                if made is not _NOTHING:
                    yield made
                made, result = result, _NOTHING
                if made is _NOTHING:
                    next_begun = _NOTHING
                    yield from self._results(run, current)
            current, begun = following, next_begun
        if made is not _NOTHING:
            yield made

    def _fits(self, piece: Any) -> bool:
        most = self._most_bytes.get(piece.kind)
        return most is None or piece.num_bytes <= most

    def _results(self, run: Callable[[P], R], whole: P) -> Iterator[R]:
        """Yield the result for a piece, or those for smaller pieces where memory runs out."""
        waiting = [whole]
        while waiting:
            piece = waiting.pop()
            smaller = piece.split()
            if not smaller:
                yield self._whole(partial(run, piece), piece)
                continue
            result: Any = _NOTHING
            if self._fits(piece):
                result = self._attempt(partial(run, piece))
                if result is _NOTHING:
                    self._halved(piece)
            if result is _NOTHING:
                waiting += reversed(smaller)
            else:
                yield result
                result = _NOTHING  # the next one needs the room

    def fold(self, prepare: Callable[[P], Q], add: Callable[[Q, R], R], value: R, pieces: Iterable[P]) -> R:
        def added(piece: P) -> None:
            nonlocal value
            value = add(prepare(piece), value)

        for _ in self.map(added, pieces):
            pass
        return value

    def run(self, function: Callable[..., R], *arguments: Any) -> R:
        return self._whole(partial(function, *arguments), None)

    def _halved(self, piece: Any) -> None:
        if self._halvings == 0:
            log.info("GPU memory did not suffice for all %s at once: they are halved", piece.kind)
        self._halvings += 1
        self._most_bytes[piece.kind] = max(1, piece.num_bytes // 2)

    def _whole(self, run: Callable[[], R], piece: Any) -> R:
        """Return the result of a function that cannot be divided; where memory runs out, try again with all spools in
        their files."""
        result = self._attempt(run)
        if result is _NOTHING:
            for spool in self._spools:
                spool.spill()
            self.release()
            result = self._attempt(run)
        if result is not _NOTHING:
            return result
        described = "" if piece is None else piece.describe()
        if described:
            raise ResourceError(
                f"{described}, more than can be computed in {size(self.memory)} of GPU memory; "
                "use backend='cpu', or allow more with gpu_memory=..."
            )
        raise too_little(self.memory)

    def _attempt(self, run: Callable[[], R]) -> Any:
        """Return the result of `run`. If the GPU's memory runs out, free all unused memory and return `_NOTHING`."""
        try:
            return run()
        except Exception as error:
            if not _launch.out_of_memory(error):
                raise
        # Only now does nothing hold on to the arrays of what failed.
        gc.collect()
        self.release()
        return _NOTHING

    def put(self, array: Any) -> Any:
        if isinstance(array, Ragged):
            offsets = self.put(array.offsets)
            if isinstance(array.offsets, np.ndarray):
                _launch.know(offsets, array.offsets)
            return Ragged._trusted(self.put(array.values), offsets)
        return _launch.namespace().asarray(array)

    def fetch(self, array: Any) -> Any:
        return to_host(array)

    def take(self, array: Any, rows: Any, *, last: bool = False) -> Any:
        return self.run(take_rows, array, rows)

    def keeps(self, num_bytes: int) -> bool:
        if self._room >= num_bytes:
            self._room -= num_bytes
            return True
        return False

    def spool(self, folder: Any, num_bytes: int | None = None, again: Any = None, over: Any = None) -> DeviceSpool:
        self._spools.append(DeviceSpool(folder, self.shares.spool if num_bytes is None else num_bytes, again))
        return self._spools[-1]

    def staged(self, batches: Iterator[Any]) -> Iterator[tuple[Any, Ragged]]:
        for batch, text in self._staging.staged(batches, _parts_of):
            self._batches += 1
            yield batch, batch.text if text is None else Ragged._trusted(*text)

    def batch_bytes(self, shingling: str, bytes_a_document: int) -> int:
        return batch_bytes(self.memory, shingling, bytes_a_document)

    def release(self) -> None:
        if not _launch.simulated():
            _launch.memory_pool().free_all_blocks()

    def wait(self) -> None:
        if not _launch.simulated():
            import cupy

            cupy.cuda.get_current_stream().synchronize()

    def describe(self) -> dict[str, Any]:
        return {**self._device, "gpu_memory": self.memory, "batches": self._batches, "halvings": self._halvings}


def _parts_of(batch: Any) -> tuple[list[np.ndarray], np.ndarray]:
    """The bytes of a batch's text, in the arrays in which they lie, and where documents begin in them."""
    text = batch.text
    return getattr(text, "parts", None) or [text.values], text.offsets


@contextlib.contextmanager
def on_gpu(device: int | None, wanted: int | None) -> Iterator[GpuRuntime]:
    """A runtime on one stream of one device, within a bound of memory.

    Parameters
    ----------
    device : int or None
        Its number; CuPy's current one for None.
    wanted : int or None
        Bytes of memory; `DEFAULT_SHARE` of what is free for None.
    """
    if _launch.simulated():
        memory = wanted or int(DEFAULT_SHARE * SIMULATED_MEMORY)
        with _memory_in_words(memory), Staging(SLOTS) as staging:
            yield GpuRuntime(memory, staging, {"name": "Numba's simulator"})
        return
    import cupy

    with (
        cupy.cuda.Device(device) as chosen,
        _limited(chosen, wanted) as memory,
        _memory_in_words(memory),
        cupy.cuda.Stream(non_blocking=True),
        Staging(SLOTS) as staging,
    ):
        yield GpuRuntime(memory, staging, describe_device(chosen.id))


@contextlib.contextmanager
def _memory_in_words(memory: int) -> Iterator[None]:
    """Turn what CUDA and CuPy raise for want of memory into one line."""
    try:
        yield
    except Exception as error:
        if isinstance(error, NeardupError) or not _launch.out_of_memory(error):
            raise
        raise too_little(memory) from error


def too_little(memory: int) -> ResourceError:
    """The error for a GPU whose memory is too small."""
    return ResourceError(
        f"{size(memory)} of GPU memory do not suffice; use backend='cpu', or allow more with gpu_memory=..."
    )


@contextlib.contextmanager
def _limited(chosen: Any, wanted: int | None) -> Iterator[int]:
    """Bytes that CuPy may give to a job on a device, from a pool of the job's own.

    Where the caller has given CuPy an allocator of another kind (RMM's, CUDA's asynchronous one), the pool's memory
    comes from there. Nobody knows how much that has left: the default is then a share of what the device has free,
    which may be little, and a larger bound is accepted up to the device's memory.
    """
    import cupy

    cupy.cuda.runtime.free(0)  # makes the device's primary context, which Numba then takes too
    if _compiled.archive()[0] is None:  # else CuPy loads the kernels, where it is
        from numba import cuda

        if cuda.get_current_device().id != chosen.id:
            raise BackendUnavailableError(
                f"device {chosen.id}: Numba uses another device in this thread; "
                "close its context, or use another thread"
            )
    pool = cupy.get_default_memory_pool()
    pool.free_all_blocks()
    free, total = cupy.cuda.runtime.memGetInfo()
    theirs = cupy.cuda.get_allocator() != pool.malloc
    if wanted is not None and wanted > (total if theirs else free):
        raise ParameterError(
            f"memory {size(wanted)}: {size(free)} of {size(total)} are free on device {chosen.id}; ask for less"
        )
    memory = wanted or max(1, int(DEFAULT_SHARE * free))
    if not theirs and (bound := pool.get_limit()):  # CUPY_GPU_MEMORY_LIMIT, or the caller
        memory = max(1, min(memory, bound - pool.total_bytes()))
    with _launch.job_pool(memory):
        yield memory


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
