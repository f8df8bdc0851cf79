"""The step of first_contact.py that measures how fast a device decompresses pages of Parquet files, by nvCOMP.

A decompressor on the device is worth building only if pages of 3 MB by zstd reach 25 GB/s of text: then the bus would
carry compressed text, and the host would decompress nothing. nvCOMP is called by ctypes; it comes with the package
nvidia-libnvcomp-cu13, or -cu12. Each line has the rate of one thread of the host as well.
"""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from neardup_gpu.kernels._launch import simulated

from .findings import Items, NotRun, Settings
from .first_jobs import text_of

SIZES = {"64 kB": 1 << 16, "256 kB": 1 << 18, "1 MB": 1 << 20, "3 MB": 3 << 20, "12 MB": 12 << 20}
CODECS = {"zstd": "Zstd", "snappy": "Snappy"}
"""nvCOMP's name of each codec."""

TOTAL = 256 << 20
"""Bytes of all pages together, before they are compressed."""

OLDEST = 6000
"""Least version of nvCOMP, which has changed the order of arguments between versions."""

ALIGNED = 256
"""Bytes by which the beginnings of pages are aligned on the device; nvCOMP asks for 8 at most."""


class Options(ctypes.Structure):
    """nvCOMP's options of decompression: 0 lets it choose."""

    _fields_ = (("backend", ctypes.c_int), ("reserved", ctypes.c_char * 60))


class Properties(ctypes.Structure):
    """The version of nvCOMP and that of the CUDA runtime it was built with."""

    _fields_ = (("version", ctypes.c_uint32), ("cudart", ctypes.c_uint32))


def pages(settings: Settings) -> Items:
    """Pages of each size by each codec, on the device and on one thread of the host."""
    return {
        f"{codec}, {name}": partial(_decompressed, settings, codec, size)
        for codec in CODECS
        for name, size in SIZES.items()
    }


def pages_of(settings: Settings, size: int) -> list[bytes]:
    """Return text as it lies in data pages of this size: each document after its length in 4 bytes."""
    text = text_of(settings, min(TOTAL, 32 << 20))
    lengths = np.diff(text.offsets).astype("<u4")
    whole = b"".join(
        length.tobytes() + text.values[first:last].tobytes()
        for length, (first, last) in zip(lengths, pairwise(text.offsets.tolist()), strict=True)
    )
    whole *= max(1, int(TOTAL * settings.scale) // len(whole))
    return [whole[first : first + size] for first in range(0, len(whole), size)]


def library() -> Any:
    """Return nvCOMP.

    Raises
    ------
    NotRun
        If it is not installed, cannot be loaded, or is another version.
    """
    found = find_spec("nvidia")
    places = [Path(place) for place in (found.submodule_search_locations or []) if found] if found else []
    files = [file for place in places for file in sorted(place.glob("libnvcomp/lib64/libnvcomp.so.*"))]
    if not files:
        raise NotRun("nvCOMP is not installed: pip install nvidia-libnvcomp-cu13")
    try:
        made = ctypes.CDLL(str(files[0]))
    except OSError as error:
        raise NotRun(f"nvCOMP cannot be loaded: {error}") from None
    properties = Properties()
    made.nvcompGetProperties(ctypes.byref(properties))
    if not OLDEST <= properties.version < OLDEST + 1000:
        raise NotRun(f"nvCOMP is version {properties.version}; this knows {OLDEST} and its successors below 7000")
    return made


def temporary_bytes(made: Any, codec: str, number: int, size: int, total: int) -> int:
    """Return the device memory that nvCOMP works in, for some pages of at most `size` bytes."""
    function = getattr(made, f"nvcompBatched{CODECS[codec]}DecompressGetTempSize")
    function.argtypes = [ctypes.c_size_t, ctypes.c_size_t, Options, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
    found = ctypes.c_size_t()
    check(function(number, size, Options(), ctypes.byref(found), total, None))
    return found.value


def check(status: int) -> None:
    """Raise RuntimeError if nvCOMP did not succeed."""
    if status:
        raise RuntimeError(f"nvCOMP: status {status}")


def _decompressed(settings: Settings, codec: str, size: int) -> dict[str, Any]:
    whole = pages_of(settings, size)
    total, compressor = sum(map(len, whole)), pa.Codec(codec)
    packed = [compressor.compress(page, asbytes=True) for page in whole]
    start = time.perf_counter()
    for page, small in zip(whole, packed, strict=True):
        compressor.decompress(small, decompressed_size=len(page))
    rate = total / (time.perf_counter() - start) / 1e9
    found = {"pages": len(whole), "ratio": round(total / sum(map(len, packed)), 3), "host_gb_per_s": round(rate, 3)}
    if settings.cpu or simulated():
        return {**found, "says": f"{rate:.2f} GB/s on one thread of the host"}
    seconds = list(_on_device(codec, size, whole, packed))
    median = total / statistics.median(seconds) / 1e9
    says = f"{median:.1f} GB/s on the device, {rate:.2f} on one thread of the host"
    return {**found, "device_gb_per_s": round(median, 3), "says": says}


def _placed(sizes: list[int]) -> np.ndarray:
    """Return the aligned beginnings of pages of the given sizes, and the end of the last page."""
    return np.cumsum([0, *(-(-size // ALIGNED) * ALIGNED for size in sizes)], dtype=np.int64)


def _on_device(codec: str, size: int, whole: list[bytes], packed: list[bytes]) -> Iterator[float]:
    """Yield the seconds of five runs, once the bytes are found to be right."""
    import cupy

    made, number = library(), len(whole)
    from_places, to_places = _placed(list(map(len, packed))), _placed(list(map(len, whole)))
    source, target = cupy.empty(from_places[-1], np.uint8), cupy.empty(to_places[-1], np.uint8)
    for place, page in zip(from_places.tolist(), packed, strict=False):
        source[place : place + len(page)] = cupy.asarray(np.frombuffer(page, np.uint8))
    room = cupy.empty(temporary_bytes(made, codec, number, size, sum(map(len, whole))), np.uint8)
    sizes = [cupy.asarray(np.array(list(map(len, each)), np.uint64)) for each in (packed, whole)]
    written, statuses = cupy.zeros(number, np.uint64), cupy.zeros(number, np.int32)
    starts = [
        cupy.asarray(places[:-1].astype(np.uint64) + np.uint64(array.data.ptr))
        for places, array in ((from_places, source), (to_places, target))
    ]
    function, pointer = getattr(made, f"nvcompBatched{CODECS[codec]}DecompressAsync"), ctypes.c_void_p
    function.argtypes = [*[pointer] * 4, ctypes.c_size_t, pointer, ctypes.c_size_t, pointer, Options, pointer, pointer]
    stream = cupy.cuda.get_current_stream()
    arguments = [starts[0], *sizes, written]

    def run() -> float:
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record(stream)
        addresses = [array.data.ptr for array in arguments]
        after = starts[1].data.ptr, Options(), statuses.data.ptr, stream.ptr
        check(function(*addresses, number, room.data.ptr, room.nbytes, *after))
        end.record(stream)
        end.synchronize()
        return float(cupy.cuda.get_elapsed_time(begin, end)) / 1e3

    run()
    if statuses.any() or not (written == sizes[1]).all():
        raise RuntimeError("nvCOMP did not decompress every page")
    for place, page in zip(to_places.tolist(), whole, strict=False):
        if target[place : place + len(page)].get().tobytes() != page:
            raise RuntimeError("nvCOMP gave other bytes than were compressed")
    for _ in range(5):
        yield run()


STEPS = {"pages": pages}
