"""Large arrays: in memory while a bound leaves room, and beyond it in temporary files that the system maps."""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import tempfile
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from neardup_gpu.kernels._cpu import LargeArrays, large_arrays_by

from ..errors import ParameterError, raise_want
from ..report import size
from ..store.disk import room
from ..store.spool import disk_full, temporary_file, unwritable
from .heap import freed_at_once
from .memory import PROCESS, size_as_flag

SMALL = 1 << 12
"""Bytes of arrays that always lie in memory, and are not counted."""

FILE_BYTES = 64 << 20
"""Bytes of a file at least: arrays share files, as a process may open few of them."""

LEAST = PROCESS + (128 << 20)
"""The least bound of a search: besides the process itself, a few batches of text that are read."""


@contextlib.contextmanager
def large_arrays_within(memory: int | None, folder: str | Path | None) -> Iterator[None]:
    """Let a search hold no more than `memory` bytes in the block, the process included; without a bound, do nothing.

    Parameters
    ----------
    memory : int or None
    folder : path or None
        Where arrays go for which there is no room; the system's temporary folder if None.

    Raises
    ------
    ParameterError
        If no search takes as little memory.
    """
    if memory is None:
        yield
        return
    if memory < LEAST:
        raise ParameterError(
            f"{size(memory)} of memory is not enough for a search; give at least {size_as_flag(LEAST)}",
            parameter="memory",
        )
    with freed_at_once(), large_arrays_by(MappedArrays.within(memory, folder)):
        yield


class MappedArrays(LargeArrays):
    """The maker of the arrays of a job that grow with its text.

    Pages of a mapped file lie in memory as well, but the system writes them to the file and takes them back when
    memory is short. Files vanish with their arrays.

    Parameters
    ----------
    memory : int
        Bytes that arrays in memory may take together.
    folder : path, default None
        Where temporary files go; the system's temporary folder unless given.

    Raises
    ------
    OutputError
        If a file cannot be written, which is found at once, or when the disk has no room for the whole array.
    """

    def __init__(self, memory: int, folder: str | Path | None = None) -> None:
        self._left, self.folder = memory, Path(folder or tempfile.gettempdir())
        temporary_file(self.folder).close()  # so that a folder that cannot be written is refused at once
        self._changing = threading.RLock()  # for several threads, and for arrays that become free in between
        self._free, self._in_files = np.empty(0, np.uint8), 0  # of the newest file; the bytes of all files so far

    @classmethod
    def within(cls, memory: int, folder: str | Path | None) -> MappedArrays:
        """Return the maker for a process that may hold `memory` bytes.

        Half of what the process leaves is for large arrays. What is found, and work with a part of one, take the rest.
        """
        return cls(max(0, memory - LEAST) // 2, folder)

    def empty(self, size: int, dtype: Any) -> np.ndarray:
        """Return an array without values."""
        needed = size * np.dtype(dtype).itemsize
        if needed <= SMALL:
            return np.empty(size, dtype)
        if needed > self._left:
            return self._mapped(needed).view(dtype)
        return self._counted(np.empty(size, dtype))

    def held(self, array: np.ndarray) -> np.ndarray:
        """Return an array that stays for long: itself if there is room, else a copy in a file."""
        if array.nbytes <= SMALL:
            return array
        if array.nbytes <= self._left:
            return self._counted(array)
        copy = self.empty(array.size, array.dtype).reshape(array.shape)
        copy[:] = array
        return copy

    def _counted(self, array: np.ndarray) -> np.ndarray:
        """Count an array until it is free."""
        self._change(-array.nbytes)
        weakref.finalize(array, self._change, array.nbytes).atexit = False
        return array

    def _change(self, num_bytes: int) -> None:
        with self._changing:
            self._left += num_bytes

    def _mapped(self, num_bytes: int) -> np.ndarray:
        """Return bytes of a file, which is there as long as one of its arrays."""
        with self._changing:
            if num_bytes > len(self._free):
                self._free = np.frombuffer(self._file_for(num_bytes), np.uint8)
                self._in_files += len(self._free)
            found, self._free = self._free[:num_bytes], self._free[-(-num_bytes // 64) * 64 :]
        return found

    def _file_for(self, num_bytes: int) -> mmap.mmap:
        """Return a new file with room for an array, and for others if the disk has room."""
        left = room(self.folder)
        if left is not None and left < num_bytes:
            raise disk_full(self.folder, num_bytes)
        larger = max(FILE_BYTES, self._in_files // 8)
        if left is None or left > 2 * larger:
            num_bytes = max(num_bytes, larger)
        with temporary_file(self.folder) as file:
            try:
                file.truncate(num_bytes)
                try:
                    os.posix_fallocate(file.fileno(), 0, num_bytes)
                except (AttributeError, OSError) as error:  # where a system cannot, a full disk ends the process
                    if isinstance(error, OSError) and error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                        raise
                return mmap.mmap(file.fileno(), num_bytes)
            except OSError as error:
                raise_want(error)
                if error.errno in (errno.ENOSPC, errno.EDQUOT):
                    raise disk_full(self.folder, num_bytes, os.strerror(error.errno)) from None
                raise unwritable(self.folder, error.strerror) from None
