"""Sizes of memory, and how the memory of a runtime is shared among what it holds."""

from __future__ import annotations

import contextlib
import numbers
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from .. import checks
from ..errors import ArgumentTypeError, ParameterError
from ..records import dataclass
from ..report import size

HOST_BATCH = 4 << 20
"""Text in a batch on the host. A few batches are computed at a time: their tokens and shingles fit a cache then."""

HOST_BYTES = 16 << 20
"""Shingles held at a time while candidates are verified on the host; on a GPU its memory decides."""

HOST_SORTED = 8 << 20
"""Shingles made into sets at a time on the host: with room to work in they fit a processor's last cache, about."""

BATCH_TIMES = 10
"""Approximate memory of the first stages for a batch, in multiples of its text; a few batches are at work at once."""

HOST_POSTINGS = 1 << 30
"""Memory that the index of rare shingles takes on the host while it is made, 48 bytes a posting."""

BATCH_BYTES = (32 << 20) - (4 << 10)
"""Most text in a batch on a GPU, with `ROW_BYTES` a document: it fills a slab of 32 MiB, as `Staging` rounds them.

A job overlaps reading, copying and computing from its second batch on, so small jobs need small batches; and by
benchmarks/gpu_model.py a batch of so much text computes for longer than its launches and its one wait take.
"""

TEXT_BYTES = {"set": 12, "circular": 12, "bag": 36, "spots": 44}
"""GPU memory that a byte of text needs while its batch is computed, at most, by the kind of shingling.

In addition to the slots of `Staging` (three of at most twice the batch and its offsets), for up to one token in two
bytes:

    tokens      1 for a copy (if the batch was halved), 1/2 for where documents and groups of bytes begin, 4 for
                fingerprints
    shingles    4 for tokens and 4 for shingles; bags up to 24 more: 16 per shingle while all are sorted by document and
                value, then up to 48 for their order and where runs of equal ones begin; spots up to 36 more: 8 to
                count the tokens that are not stop words, 4 for stop words and for places of other tokens, 24 for
                copies of places, ends of rows, and where chains begin and end
    the rest    goes to blocks of memory that do not fit

Text of more tokens than that (ligatures that stand for phrases) may exceed it: then the batch is halved.
"""

BESIDE_BYTES = 5
"""GPU memory that a byte of text needs for the batches before and after the one that is computed: 4 for shingles that
wait for the host, 1 for tokens that are counted."""

ROW_BYTES = 128
"""Bytes that a document counts in a batch in addition to its text; see `Documents.batches`."""


@dataclass(frozen=True)
class Shares:
    """How many bytes each kind of thing may take.

    keys : int
        Keys and document hashes kept on the GPU; beyond it they go to host memory. To join them takes as much.
    spool : int
        Shingles kept on the GPU; beyond it they go to a file.
    sets : int
        Sets of candidates held and compared at once.
    postings : int
        The index of rare shingles while it is made; beyond it, it is made and kept in parts, in files.
    sorted : int
        Shingles made into sets at once; on a GPU to sort them takes about eight times as much.
    batch : int
        Text in a batch on the host, by which the first stages hold up to about `BATCH_TIMES` as much; on a GPU see
        `batch_bytes`.
    """

    keys: int
    spool: int
    sets: int
    postings: int
    sorted: int
    batch: int = HOST_BATCH

    @classmethod
    def of_host(cls) -> Shares:
        """The limits for host memory."""
        return cls(keys=0, spool=0, sets=HOST_BYTES, postings=HOST_POSTINGS, sorted=HOST_SORTED)

    def bounded_by(self, memory: int) -> Shares:
        """Return shares that take no more host memory at a time than a bound of `memory` bytes leaves room for."""
        least = {
            "sets": memory // 8,
            "sorted": memory // 32,
            "postings": memory // 4,
            "batch": memory // (2 * BATCH_TIMES),
        }
        return replace(self, **{name: max(8, min(getattr(self, name), most)) for name, most in least.items()})

    @classmethod
    def of_gpu(cls, memory: int) -> Shares:
        """The limits for some bytes of a GPU's memory."""
        return cls(
            keys=memory // 4,
            spool=memory // 16 * 7,
            sets=max(1, memory // 16),
            postings=memory // 8,
            sorted=max(8, memory // 64),
        )


class MachineMemory(NamedTuple):
    """The memory of this machine, in bytes.

    Parameters
    ----------
    total : int
    free : int or None
        What new processes can use without swapping; None if the system does not report it.
    limit : int or None
        The limit of the container, if it is below `total`.
    """

    total: int
    free: int | None
    limit: int | None

    @property
    def usable(self) -> int | None:
        """Return the bytes that this job can use at most, or None if that is not known."""
        known = [number for number in (self.free, self.limit) if number is not None]
        return min(known, default=None)


def machine_memory() -> MachineMemory:
    """Return the memory of this machine as the system reports it now."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    free, limit = None, None
    with contextlib.suppress(OSError):
        found = re.search(r"^MemAvailable: +(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
        free = int(found[1]) * 1024 if found else None
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):  # "max" is no limit
            limit = int(Path("/sys/fs/cgroup", name).read_text())
            break
    return MachineMemory(total, free, limit if limit is not None and limit < total else None)


PROCESS = 285 << 20
"""Bytes of a process that has loaded the interpreter, libraries and compiled kernels."""


def check_memory(bound: int | None, held: int, what: str, instead: str) -> None:
    """Raise an error if a process that holds `held` bytes takes more than a bound. Without a bound, accept it.

    Parameters
    ----------
    bound : int or None
    held : int
        Bytes besides the interpreter and its libraries.
    what : str
        What the memory is for.
    instead : str
        What to do instead of allowing more memory.

    Raises
    ------
    ParameterError
        It says how much is needed.
    """
    if bound is not None and PROCESS + held > bound:
        least = size_as_flag(PROCESS + held)
        raise ParameterError(
            f"{size(bound)} of memory is not enough for {what}; give at least {least}, or {instead}", parameter="memory"
        )


def size_as_flag(num_bytes: int) -> str:
    """Return a number of bytes, rounded up, as a flag takes a size."""
    return f"{-(-num_bytes // 10**6):d}MB" if num_bytes < 10**10 else f"{-(-num_bytes // 10**9):d}GB"


def batch_bytes(memory: int, shingling: str, bytes_a_document: int) -> int:
    """Text to read at a time for a GPU of so much memory.

    Each document counts `ROW_BYTES` more, which covers the memory that it needs besides its text.
    """
    needed = 7 + BESIDE_BYTES + max(TEXT_BYTES[shingling], -(-(192 + 2 * bytes_a_document) // ROW_BYTES))
    return max(1, min(BATCH_BYTES, memory // 4 // needed))


def parse_size(value: Any, name: str = "memory") -> int:
    """A number of bytes: 8000000000, "8GB", "8 GB", "7.5GiB", "8G".

    Raises
    ------
    ParameterError, ArgumentTypeError
        If it is not a size.
    """
    how = "write 20GB, 20GiB or a number of bytes"
    if isinstance(value, bool) or not isinstance(value, (str, numbers.Real)):
        raise ArgumentTypeError(f"{name}: {checks.shown(value)} is not a size; {how}")
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(?:([kmgt])(i?)b?|b|bytes)?\s*", str(value), re.IGNORECASE)
    if found is None or len(found[1]) > 30:
        raise ParameterError(f"{name} {checks.shown(value)} is not a size; {how}", parameter=name)
    number, unit, binary = found.groups()
    power = "kmgt".index(unit.lower()) + 1 if unit else 0
    parsed = int(float(number) * (1024 if binary else 1000) ** power) if unit else int(float(number))
    if parsed < 1:
        raise ParameterError(f"{name} {checks.shown(value)} must be at least 1 byte; {how}")
    return parsed
