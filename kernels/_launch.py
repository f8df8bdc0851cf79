"""How kernels are compiled for a GPU, and launched there; and how text gets there."""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
import sys
import threading
import weakref
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from importlib.util import find_spec
from itertools import accumulate
from operator import attrgetter
from types import ModuleType
from typing import Any, TypeVar

import numpy as np

from neardup_gpu.errors import BackendUnavailableError, ResourceError

from ._cached import cached_property
from ._cpu import Function, StandIn, declared_kinds, linked

MOST_ROWS = 2**32 - 2
"""Maximum number of rows in a set: kernels count rows in 32 bits, and one number is reserved for "no row"."""


def check_rows(count: int, what: str) -> None:
    """Raise ResourceError if there are more than `MOST_ROWS` of something."""
    if count > MOST_ROWS:
        raise ResourceError(f"{what}: {count:,} rows, and there may be {MOST_ROWS:,}; divide them into several jobs")


# ---------------------------------------------------------------------------------------------------------- on a GPU


cuda: Any = StandIn("numba.cuda")
"""Stands for `numba.cuda` in kernels and device functions. The first launch imports it, because that takes 0.3 s."""


def simulated() -> bool:
    """Whether kernels run in Numba's simulator, on NumPy arrays (NUMBA_ENABLE_CUDASIM=1 before Numba is imported)."""
    return os.environ.get("NUMBA_ENABLE_CUDASIM", "0") not in ("", "0")


@cache
def namespace() -> ModuleType:
    """The module of array functions for `gpu`: CuPy, whose arrays lie on the device; NumPy under the simulator."""
    if simulated():
        return np
    import cupy

    return cupy


def on_device(array: Any) -> Any:
    """An array of NumPy's or the device's as one that kernels take: on the device, in C order; itself if it is one.

    CuPy's own functions take no NumPy array, `ascontiguousarray` among them.
    """
    if isinstance(array, np.ndarray) and array.nbytes >= PARTS * _PART and not simulated():
        return _uploaded(array)
    return namespace().asarray(array, order="C")


def to_host(array: Any) -> np.ndarray:
    """A device array (or a NumPy array, as it is) as a NumPy array. Waits for the device, unless it is `known`."""
    found = known(array)
    return array.get() if found is None else found


_KNOWN: dict[int, tuple[weakref.ref[Any], np.ndarray]] = {}


def know(array: Any, on_host: np.ndarray) -> None:
    """Remember the values of a device array, which nobody writes to any more, for as long as the array lives.

    A batch passes many kernels, and each kernel has to know how long its output is. That follows from where rows begin,
    which is read once per batch: each further reading would make the host wait for all work of the device.
    """
    if isinstance(array, np.ndarray):
        return
    number = id(array)
    _KNOWN[number] = weakref.ref(array, lambda _: _KNOWN.pop(number, None)), on_host


def known(array: Any) -> np.ndarray | None:
    """A NumPy array as it is, a device array's values if they are remembered, else None; never waits."""
    if isinstance(array, np.ndarray):
        return array
    reference, on_host = _KNOWN.get(id(array), (None, None))
    return on_host if reference is not None and reference() is array else None


class Sent:
    """Values on their way to the host, on a stream of their own: kernels that are launched later are not waited for.

    They come to page-locked memory. The memory on the device is held until they are there.

    Parameters
    ----------
    array : array
        On the device. It is written to by work on the current stream, and by nothing later.
    """

    def __init__(self, array: Any) -> None:
        self._array, self._slab = array, None
        if simulated() or known(array) is not None or not array.nbytes:
            return
        import cupy

        self._array = array = cupy.ascontiguousarray(array)
        self._like = array.nbytes, array.dtype, array.shape
        made, self._arrived = (cupy.cuda.Event(disable_timing=True) for _ in range(2))
        made.record(cupy.cuda.get_current_stream())
        stream = _returning(current_device())
        stream.wait_event(made)
        self._slab = SLABS.take(_slab_size(array.nbytes))
        array.data.copy_to_host_async(self._slab.ctypes.data, array.nbytes, stream)
        self._arrived.record(stream)

    def look(self) -> np.ndarray:
        """Wait for the values; they are valid for as long as this object is."""
        if self._slab is None:
            return to_host(self._array)
        self._arrived.synchronize()
        self._array = None
        return self._slab[: self._like[0]].view(self._like[1]).reshape(self._like[2])

    def get(self) -> np.ndarray:
        """Wait for the values, and return them in memory of their own."""
        found = self.look()
        return found if self._slab is None else found.copy()

    def __del__(self) -> None:
        if self._slab is not None:  # nothing writes to it any more when others get it
            with contextlib.suppress(Exception):
                self._arrived.synchronize()
                SLABS.give(self._slab)


@cache
def _returning(device: int) -> Any:
    """The stream by which values come from a device."""
    import cupy

    return cupy.cuda.Stream(non_blocking=True)


def fetch_offsets(offsets: Any) -> np.ndarray:
    """Return where rows begin, in host memory, and remember it; the host waits only if that is not `known`."""
    on_host = to_host(offsets)
    know(offsets, on_host)
    return on_host


def bounds_of(offsets: Any) -> tuple[int, int]:
    """Return where the first row of a ragged array begins and its last one ends. Waits once if that is not `known`."""
    found = known(offsets)
    ends = to_host(offsets[:: max(1, len(offsets) - 1)]) if found is None else found
    return int(ends[0]), int(ends[-1])


def fetch_numbers(*numbers: Any) -> list[int]:
    """Return some integers that lie on the device, each an array of no dimension. The host waits once for all."""
    xp = namespace()
    found: list[int] = to_host(xp.stack([xp.asarray(number, dtype=np.int64) for number in numbers])).tolist()
    return found


def address_of(array: Any) -> int:
    """Return the address of an array's first value."""
    return int(array.ctypes.data if isinstance(array, np.ndarray) else array.data.ptr)


def current_device() -> int:
    """The number of the device that is current; 0 in the simulator."""
    if simulated():
        return 0
    import cupy

    return int(cupy.cuda.runtime.getDevice())


def _linked(function: Callable) -> Callable:
    """Return the function with what it names of Numba's, and the device functions that it calls, in its globals."""
    named = {name: function.__globals__.get(name) for name in function.__code__.co_names}
    on_device = {name: _devices.get(value.py_func) for name, value in named.items() if isinstance(value, Function)}
    called = {name: value for name, value in (named | on_device).items() if isinstance(value, Device)}
    return linked(function, **{name: value.compiled for name, value in called.items()})


_devices: dict[Callable, Device] = {}
"""The device function made of each Python function. Kernels call it where they name the CPU's function."""


class Device:
    """Decorator: a function that kernels call, of arrays; those of scalars alone are `jit`, for the CPU as well.

    Kernels also call it where they name `stands_for`, the Python function of another function of the CPU.
    """

    def __init__(self, function: Callable, stands_for: Callable | None = None) -> None:
        self.function = function
        _devices[stands_for or function] = self

    @cached_property
    def compiled(self) -> Any:
        from numba import cuda as module

        return module.jit(device=True)(_linked(self.function))

    def __call__(self, *arguments: Any) -> Any:
        raise TypeError(f"{self.function.__name__} is for kernels, which are linked with its compiled form")


class Kernel:
    """A CUDA kernel of one signature: as it came with the package, else compiled when first launched and then kept in
    `CACHE`.

    Parameters
    ----------
    function : callable
        It indexes by ``cuda.grid(1)``, or by block and thread; it may rely on blocks of whole warps, but not on their
        size, which is 32 in the simulator.
    signature : str
        In Numba's notation, such as "void(uint64[::1], int64)".
    block : int
        Threads in a block, a multiple of 32.
    """

    def __init__(self, function: Callable, signature: str, block: int) -> None:
        self.function, self.signature, self.block = function, signature, block
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self._handles: dict[int, int] = {}
        self._rooms = threading.local()

    @cached_property
    def compiled(self) -> Any:
        from numba import cuda as module

        function = _linked(self.function)
        if simulated():
            _share_arrays()
            return module.jit(function)
        from numba.cuda.core import config

        from ._numba import CACHE, WHY_NOT_KEPT

        config.CUDA_LOW_OCCUPANCY_WARNINGS = 0  # small grids are small inputs here, nothing to be warned of
        before = config.CACHE_DIR
        config.CACHE_DIR = str(CACHE or "")
        try:
            return module.jit(self.signature, cache=not WHY_NOT_KEPT)(function)
        finally:
            config.CACHE_DIR = before

    def threads(self, count: int, *arguments: Any) -> None:
        """Launch at least `count` threads; none for 0."""
        block = 32 if simulated() else self.block
        self.blocks(-(-count // block), *arguments)

    def blocks(self, count: int, *arguments: Any) -> None:
        """Launch `count` blocks, on CuPy's current stream; none for 0.

        Raises
        ------
        TypeError
            If an argument is not the array that the signature says: a kernel of one signature takes what it is given.
        """
        on_device = namespace().ndarray
        for number, (wanted, argument) in enumerate(zip(self._arrays, arguments, strict=True)):
            if wanted is None:
                continue
            if not isinstance(argument, on_device):
                raise TypeError(f"{self.__name__}: argument {number} is a {type(argument).__name__}, no device array")
            if (argument.dtype, argument.ndim) != wanted or not _in_c_order(argument):
                layout = "" if argument.flags.c_contiguous else ", not in C order"
                raise TypeError(
                    f"{self.__name__}: argument {number} is {argument.dtype}, {argument.ndim} dimensions{layout}; "
                    f"it should be {wanted[0]}, {wanted[1]} dimensions, in C order"
                )
        if count > 0:
            self._launch(count, *arguments)

    @cached_property
    def _arrays(self) -> tuple[tuple[np.dtype, int] | None, ...]:
        """Type and dimensions of each argument that is an array."""
        return tuple(
            None if isinstance(kind, str) else kind[:2]
            for kind in declared_kinds(self.signature.removeprefix("void(").removesuffix(")"))
        )

    def _launch(self, count: int, *arguments: Any) -> None:
        if simulated():  # which writes every array back, also what is Arrow's and cannot be written to
            arguments = tuple(a.copy() if isinstance(a, np.ndarray) and not a.flags.writeable else a for a in arguments)
            self.compiled[count, 32](*arguments)
            return
        import cupy

        # By CuPy's driver: on an H100 Numba's own launch took 86 us, its views of CuPy's arrays made anew each time.
        slots = self.slots(arguments)
        room, pack, pointers = self._room(len(slots))
        pack(room, 8 * len(slots), *slots)
        stream = cupy.cuda.get_current_stream().ptr
        cupy.cuda.driver.launchKernel(self.handle(), count, 1, 1, self.block, 1, 1, 0, stream, pointers, 0)

    def _room(self, number: int) -> tuple[Any, Any, int]:
        """Return this thread's buffer of arguments for the driver, the function that writes its slots, and its address.

        It begins with a pointer to each slot. The driver has copied the slots when a launch returns.
        """
        found: tuple[Any, Any, int] | None = getattr(self._rooms, "room", None)
        if found is None:
            room, pack = ctypes.create_string_buffer(16 * number), struct.Struct(f"={number}Q").pack_into
            first = ctypes.addressof(room) + 8 * number
            pack(room, 0, *range(first, first + 8 * number, 8))
            found = self._rooms.room = room, pack, ctypes.addressof(room)
        return found

    def slots(self, arguments: Iterable[Any], address_of: Callable[[Any], int] = attrgetter("data.ptr")) -> list[int]:
        """Return the arguments of the compiled kernel: 64 bits per scalar, and Numba's layout of an array, which is two
        pointers to its owners (none here), items, bytes per item, address, and each dimension's length and stride.
        """
        found = []
        for kind, argument in zip(self._arrays, arguments, strict=True):
            if kind is None:
                found.append(int(argument) & _ALL_BITS)
                continue
            size, itemsize, address = argument.size, argument.itemsize, address_of(argument)
            if kind[1] == 1:
                found += (0, 0, size, itemsize, address, size, itemsize)
            else:
                found += (0, 0, size, itemsize, address, *argument.shape, *argument.strides)
        return found

    def handle(self) -> int:
        """Return the driver's handle of the compiled kernel, on the current device."""
        device = current_device()
        if device not in self._handles:
            from . import _compiled

            self._handles[device] = _compiled.load(self) or self._compiled_here()
        return self._handles[device]

    def _compiled_here(self) -> int:
        """As `handle`, by numba-cuda, which compiles the kernel unless it is kept in `CACHE`."""
        from . import _compiled

        if find_spec("numba_cuda") is None:
            why = _compiled.refused[self.__name__]
            raise BackendUnavailableError(
                f"kernel {self.__name__} has to be compiled ({why}), for which numba-cuda is not installed; "
                "install 'neardup-gpu[cuda13-clone]' or [cuda12-clone], or use backend='cpu'"
            )
        (overload,) = self.compiled.overloads.values()
        return int(overload._codelibrary.get_cufunc().handle)


_ALL_BITS = 2**64 - 1


@cache
def _share_arrays() -> None:
    """Mend the simulator, whose threads are given different arrays in shared memory if they ask at the same time."""
    from numba.cuda.simulator.kernelapi import FakeCUDAShared
    from numba.np.numpy_support import as_dtype

    def array(self: Any, shape: int, dtype: Any) -> np.ndarray:
        caller = sys._getframe(1)
        place = caller.f_code.co_filename, caller.f_lineno
        return self._allocations.setdefault(place, np.empty(shape, as_dtype(dtype)))  # at once, unlike Numba's

    FakeCUDAShared.array = array


def _in_c_order(array: Any) -> bool:
    """Whether values lie one after another; CuPy takes longest for `flags`, which most arrays do not need."""
    return (array.ndim == 1 and array.strides[0] == array.itemsize) or array.flags.c_contiguous


def kernel(signature: str, block: int = 256) -> Callable[[Callable], Kernel]:
    """Decorator: a `Kernel` of that signature and block size."""
    return lambda function: Kernel(function, signature, block)


TABLES = 2048
"""Entries of `_gf2.byte_tables`: 16 kB, which a block keeps in its shared memory."""


@Device
def load(source, target):
    """Copy an array into one in shared memory, by all threads of the block."""
    i, step, end = np.uint64(cuda.threadIdx.x), np.uint64(cuda.blockDim.x), np.uint64(len(target))
    while i < end:
        target[i] = source[i]
        i += step
    cuda.syncthreads()


@Device
def row_of(offsets, at):
    """The row that holds position `at` of a ragged array: the last that begins there or before, so never an empty one.

    By bisection; neighbouring threads mostly read the same offsets.
    """
    low, high = 0, len(offsets) - 1
    while high - low > 1:
        middle = (low + high) >> 1
        if offsets[middle] <= at:
            low = middle
        else:
            high = middle
    return low


# ------------------------------------------------------------------------------------------------ text to the device


def array_module(array: Any) -> Any:
    """The module of array functions that an array is of: NumPy, or `namespace` where it lies on the device."""
    return np if isinstance(array, np.ndarray) else namespace()


def out_of_memory(error: BaseException) -> bool:
    """Whether the device (in the simulator: the host) had too little memory."""
    # CuPy's allocator raises a MemoryError; status 2 of CUDA comes from CuPy's runtime, code 2 from Numba's driver, and
    # only its name from cuda.core, by which Numba launches.
    codes = getattr(error, "status", None), getattr(error, "code", None)
    return isinstance(error, MemoryError) or 2 in codes or "CUDA_ERROR_OUT_OF_MEMORY" in str(error)


_POOLS = threading.local()
"""State of the job that this thread runs: `job`, its pool, and whether the pool uses a `foreign` allocator."""


def memory_pool() -> Any:
    """Return the pool of this thread's device memory: that of its job, or else CuPy's default pool."""
    import cupy

    return getattr(_POOLS, "job", None) or cupy.get_default_memory_pool()


@contextlib.contextmanager
def job_pool(most: int) -> Iterator[Any]:
    """Take arrays of this thread from a pool of their own with at most `most` bytes, in a block.

    A bound of CuPy's default pool would bind nothing where the caller has given CuPy another allocator, such as RMM's
    or CUDA's asynchronous one. Then the pool takes its blocks from that one, so both are honoured.
    """
    import cupy

    theirs, foreign = cupy.cuda.get_allocator(), False
    if theirs == cupy.get_default_memory_pool().malloc:
        pool = cupy.cuda.MemoryPool()
    else:

        def block(num_bytes: int) -> Any:
            try:
                return theirs(num_bytes)
            except Exception as error:
                if not out_of_memory(error):
                    raise
            pool.free_all_blocks()  # which the pool does by itself only where CUDA says that it has none left
            return theirs(num_bytes)

        pool, foreign = cupy.cuda.MemoryPool(block), True
    pool.set_limit(size=most)
    before = _POOLS.__dict__.copy()
    _POOLS.job, _POOLS.foreign = pool, foreign
    try:
        with cupy.cuda.using_allocator(pool.malloc):
            yield pool
    finally:
        _POOLS.__dict__.clear()
        _POOLS.__dict__.update(before)
        pool.free_all_blocks()


def most_rows(row_bytes):
    """Rows that half of the device's free memory can sort, each in that many bytes; the other half is for the pairs
    found."""
    if simulated():
        return 2**32
    import cupy

    pool = memory_pool()
    free = cupy.cuda.runtime.memGetInfo()[0] + pool.free_bytes()
    if limit := pool.get_limit():
        left = limit - pool.used_bytes()
        free = left if getattr(_POOLS, "foreign", False) else min(free, left)
    return max(1, free // 2 // row_bytes)


T = TypeVar("T")

PARTS = 8  # threads that fill a slab: one core copies slower than the bus
_PART = 1 << 20  # bytes that are worth a thread
_LARGE = 1 << 28  # twins up to here are powers of two, so that few are made; page-locked slabs always are, by CuPy
_CHUNK = 1 << 25  # bytes of a large array that are copied to the device at a time
SLACK = 256  # bytes after a staged text, at least, that kernels may read; what they hold means nothing


class _Slabs:
    """Page-locked slabs that no job uses, kept for the next one: an H100's host locked 256 MiB in 0.13 s, and freed
    them in 0.04.

    At most `MOST` bytes are kept, the smallest slabs first.
    """

    MOST = 1 << 28

    def __init__(self) -> None:
        self._free: list[np.ndarray] = []
        self._lock = threading.Lock()

    def take(self, size: int) -> np.ndarray:
        """A slab of that many bytes, or up to twice as many."""
        with self._lock:
            for place, slab in enumerate(self._free):
                if size <= len(slab) <= 2 * size:
                    return self._free.pop(place)
        return _page_locked(size)

    def give(self, slab: np.ndarray) -> None:
        """Keep a slab, which nothing copies from any more; or free larger ones than are to be kept."""
        with self._lock:
            self._free = sorted([*self._free, slab], key=len)
            before = len(self._free)
            while sum(map(len, self._free)) > self.MOST:
                self._free.pop()
            dropped = len(self._free) < before
        del slab
        if dropped and not simulated():  # CuPy keeps what it locked, too
            import cupy

            cupy.get_default_pinned_memory_pool().free_all_blocks()


SLABS = _Slabs()


def _uploaded(array: np.ndarray) -> Any:
    """Copy an array to the device through two page-locked slabs: one is filled while the other is copied.

    CuPy would copy it to one such slab by a single thread first, which an H100's host did at 9 GB/s.
    """
    import cupy

    made, stream = cupy.empty(array.shape, array.dtype), cupy.cuda.get_current_stream()
    content = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    slabs = [(SLABS.take(_CHUNK), cupy.cuda.Event(block=True, disable_timing=True)) for _ in range(2)]
    try:
        with ThreadPoolExecutor(PARTS, "neardup-fill") as pool:
            for number, first in enumerate(range(0, len(content), _CHUNK)):
                slab, copied = slabs[number % 2]
                part = content[first : first + _CHUNK]
                copied.synchronize()
                _fill(pool, slab[: len(part)], [part])
                (made.data + first).copy_from_host_async(slab.ctypes.data, len(part), stream)
                copied.record(stream)
    finally:
        for slab, copied in slabs:
            copied.synchronize()
            SLABS.give(slab)
    return made


class _Now:
    """In the simulator, where everything has happened when the next line is reached: a stream and an event."""

    def record(self, stream: Any = None) -> None: ...
    def wait_event(self, event: Any) -> None: ...
    def synchronize(self) -> None: ...


class _Slot:
    """A page-locked slab, its twin on the device, and when each may be written again."""

    def __init__(self, event: Callable[[], Any]) -> None:
        self.slab, self.twin = np.empty(0, np.uint8), None
        self.copied, self.read = event(), event()


class Staging:
    """Text on its way to the device: one batch is copied there while the one before is computed.

    A batch is gathered into a page-locked slab by several threads, copied on a stream of its own, and computed on the
    stream that is current when this object is made. Events keep the order: a slab is not filled before its last copy
    has ended; its twin on the device is not overwritten before the kernels that read it have ended; kernels wait for
    the copy. The twins belong to the slots until all is computed, so no memory passes between streams.

    With three slots or more, kernels of a batch may still be launched when the next one has been taken.

    `use`, `fill` and `copy` are steps of `staged`; benchmarks/tracing.py times each.

    Parameters
    ----------
    slots : int
        Slabs, used in turn. With three, one is being read by kernels, one is copied and one is filled; with one,
        nothing overlaps.
    """

    def __init__(self, slots: int = 3) -> None:
        if simulated():
            self._compute = self.copying = _Now()
            event, use_device = _Now, None
        else:
            import cupy

            self._compute, self.copying = cupy.cuda.get_current_stream(), cupy.cuda.Stream(non_blocking=True)
            event, use_device = partial(cupy.cuda.Event, block=True, disable_timing=True), cupy.cuda.Device().use
        self._slots = [_Slot(event) for _ in range(slots)]
        self._in_use: deque[_Slot] = deque()  # whose kernels may still be launched
        self._staging = ThreadPoolExecutor(1, "neardup-stage", initializer=use_device)
        self._filling = ThreadPoolExecutor(PARTS, "neardup-fill")

    def __enter__(self) -> Staging:
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        self._staging.shutdown()
        self._filling.shutdown()
        try:
            self.copying.synchronize()
            self._compute.synchronize()
            for slot in self._slots:
                if len(slot.slab):
                    SLABS.give(slot.slab)
        except Exception:
            if kind is None:  # else the first error says more
                raise
        finally:
            self._slots = []

    def staged(
        self, items: Iterable[T], text_of: Callable[[T], tuple[list[np.ndarray], np.ndarray]]
    ) -> Iterator[tuple[T, tuple[Any, Any] | None]]:
        """The items, each with its text on the device, and the next one on its way there.

        Parameters
        ----------
        items : iterable
        text_of : callable
            An item's (parts, offsets): arrays of uint8, one after another, and int64, in host memory; the offsets may
            begin after 0.

        Yields
        ------
        item, (values, offsets)
            On the device, and valid until the item after the next is requested; until the next is, with fewer than
            three slots. The offsets begin at 0, and are `known`. After the text there are at least `SLACK` bytes of
            meaningless values. None in place of both if memory ran out.
        """
        waiting: deque[tuple[T, _Slot, Any]] = deque()
        self._in_use.clear()
        for number, item in enumerate(items):
            if len(waiting) == len(self._slots):
                yield from self.use(*waiting.popleft())
            slot = self._slots[number % len(self._slots)]
            waiting.append((item, slot, self._stage(slot, *text_of(item))))
            if len(waiting) == 2:
                yield from self.use(*waiting.popleft())
        while waiting:
            yield from self.use(*waiting.popleft())
        for slot in self._slots:
            slot.twin = None

    def use(self, item: T, slot: _Slot, staged: Any) -> Iterator[tuple[T, tuple[Any, Any] | None]]:
        """Give an item once its text is on the device, and let the slot be written again afterwards."""
        try:
            place, needed, from_zero = (0, 0, None) if staged is None else staged.result()
        except Exception as error:
            if not out_of_memory(error):
                raise
            staged = None
        if staged is None:
            yield item, None
        else:
            self._compute.wait_event(slot.copied)
            assert slot.twin is not None
            offsets = slot.twin[place:needed].view(np.int64)
            know(offsets, from_zero)
            yield item, (slot.twin[:place], offsets)
        self._in_use.append(slot)
        if len(self._in_use) > (len(self._slots) > 2):
            self._in_use.popleft().read.record(self._compute)

    def _stage(self, slot: _Slot, parts: list[np.ndarray], offsets: np.ndarray) -> Any:
        """A future of what `copy` gives; None without memory for the batch."""
        length = int(offsets[-1] - offsets[0])
        place = -(-length // 256) * 256 + SLACK
        needed = place + 8 * len(offsets)
        if slot.twin is None or needed > len(slot.twin):
            slot.twin = None
            try:
                slot.twin = namespace().empty(_slab_size(needed), np.uint8)
            except Exception as error:
                if not out_of_memory(error):
                    raise
                return None
            slot.read.record(self._compute)  # whatever used this memory before did so on that stream
        return self._staging.submit(self.copy, slot, parts, offsets, place, needed)

    def copy(self, slot: _Slot, parts: list[np.ndarray], offsets: np.ndarray, place: int, needed: int) -> tuple:
        """In a thread of its own: fill the slab and start its copy; (where offsets begin and end in it, and they)."""
        first, last = int(offsets[0]), int(offsets[-1])
        slot.copied.synchronize()
        if needed > len(slot.slab):
            if len(slot.slab):
                SLABS.give(slot.slab)
                slot.slab = np.empty(0, np.uint8)
            slot.slab = SLABS.take(_slab_size(needed))
        self.fill(slot.slab[: last - first], parts, first)
        from_zero = offsets - first
        slot.slab[place:needed].view(np.int64)[:] = from_zero
        self.copying.wait_event(slot.read)
        if simulated():
            slot.twin[:needed] = namespace().asarray(slot.slab[:needed])  # type: ignore[index]
        else:
            slot.twin.data.copy_from_host_async(slot.slab.ctypes.data, needed, self.copying)  # type: ignore[attr-defined]
        slot.copied.record(self.copying)
        return place, needed, from_zero

    def fill(self, target: np.ndarray, parts: list[np.ndarray], first: int) -> None:
        """Copy bytes by this object's threads."""
        _fill(self._filling, target, parts, first)


def _fill(pool: ThreadPoolExecutor, target: np.ndarray, parts: list[np.ndarray], first: int = 0) -> None:
    """Fill the target with the bytes of arrays, one after another, from byte `first` on.

    Several threads do it where it is worth it: NumPy does not hold the interpreter while it copies.
    """
    bounds = np.linspace(0, len(target), 1 + max(1, min(PARTS, len(target) // _PART))).astype(np.int64).tolist()
    begins = [*accumulate(map(len, parts), initial=-first)]

    def copy(begin: int, end: int) -> None:
        number = max(0, bisect_right(begins, begin) - 1)
        while begin < end:
            part = parts[number][begin - begins[number] : end - begins[number]]
            np.copyto(target[begin : begin + len(part)], part)
            begin, number = begin + len(part), number + 1

    list(pool.map(copy, bounds[:-1], bounds[1:]))


def _slab_size(needed: int) -> int:
    return 1 << (needed - 1).bit_length() if needed <= _LARGE else needed


def _page_locked(size: int) -> np.ndarray:
    """Return a page-locked slab, or an ordinary one where the system locks no memory, as in some containers."""
    if simulated():
        return np.empty(size, np.uint8)
    import cupy
    import cupyx

    try:
        return cupyx.empty_pinned(size, np.uint8)
    except (cupy.cuda.runtime.CUDARuntimeError, MemoryError) as error:
        _say_that_pages_are_not_locked(str(error))
        return np.empty(size, np.uint8)


@cache
def _say_that_pages_are_not_locked(why: str) -> None:
    import logging

    message = "text is copied to the GPU from pageable memory, which is slower: page-locking was refused (%s)"
    logging.getLogger("neardup_gpu").warning(message, why)
