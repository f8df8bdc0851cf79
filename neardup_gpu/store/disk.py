"""Calls of the system: renames that never replace, exchanges of two names in one step, and syncs."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import io
import os
import shutil
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

SYNCED_ONE_BY_ONE = 100
"""Most files that are synced one by one; if there are more, the whole file system is synced, which is faster."""

LEFT_FREE = 16 << 20
"""Bytes of a disk that temporary files leave to others; of a small disk a hundredth."""

_NO_EXCHANGE = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP)
_NO_LINKS = (*_NO_EXCHANGE, errno.EPERM, errno.EACCES, errno.EMLINK)


def _system_rename() -> Callable[[bytes, bytes, bool], int] | None:
    """The call that renames onto nothing, or exchanges; None where this system has none."""
    try:
        library = ctypes.CDLL(None, use_errno=True)
        if sys.platform == "darwin":
            mac = library.renamex_np
            return lambda source, target, exchange: mac(source, target, ctypes.c_uint(2 if exchange else 4))
        linux, here = library.renameat2, -100  # AT_FDCWD
        return lambda source, target, exchange: linux(here, source, here, target, ctypes.c_uint(2 if exchange else 1))
    except (AttributeError, OSError, TypeError):
        return None


_SYSTEM_RENAME = _system_rename()


def start_writing(file: Any, first: int, num_bytes: int) -> None:
    """Ask the system to write some bytes of an open file to its disk soon, so that a later sync has less to wait for.

    The call does not wait. Nothing happens outside Linux, for a file in memory, and on file systems that cannot do it.
    """
    with contextlib.suppress(io.UnsupportedOperation):
        if (call := _sync_file_range()) is not None:
            call(file.fileno(), ctypes.c_int64(first), ctypes.c_int64(num_bytes), 2)  # SYNC_FILE_RANGE_WRITE


@cache
def _sync_file_range() -> Any:
    """Return the function of the C library; None in a system without it."""
    return getattr(ctypes.CDLL(None), "sync_file_range", None) if sys.platform == "linux" else None


def room(folder: Path) -> int | None:
    """Bytes that temporary files may still take on the disk of a folder; None if that is unknown."""
    try:
        disk = shutil.disk_usage(folder)
    except OSError:
        return None
    return max(0, disk.free - min(LEFT_FREE, disk.total // 100))


class Room:
    """Watch the room on the disk of a folder while files are written there.

    It asks the system once per 64 MB, because an answer takes about 90 microseconds.

    Parameters
    ----------
    folder : Path
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._unasked = folder, 0

    def lacks(self, num_bytes: int) -> bool:
        """Return whether there is no room for more bytes; if there is, they are taken to be written."""
        if self._unasked < num_bytes:
            left = room(self._folder)
            if left is not None and left < num_bytes:
                return True
            self._unasked = max(num_bytes, _ASKED_EVERY if left is None else min(_ASKED_EVERY, left))
        self._unasked -= num_bytes
        return False


_ASKED_EVERY = 64 << 20


def renamed(source: Path, target: Path, exchange: bool) -> bool:
    """Rename onto nothing, or exchange two names; False where the system or the file system cannot."""
    if _SYSTEM_RENAME is None:
        return False
    if _SYSTEM_RENAME(os.fsencode(source), os.fsencode(target), exchange) == 0:
        return True
    code = ctypes.get_errno()
    if code in _NO_EXCHANGE:
        return False
    raise OSError(code, os.strerror(code), str(source), None, str(target))


def rename_new(source: Path, target: Path) -> None:
    """Rename, and fail with FileExistsError where something has the name."""
    if renamed(source, target, exchange=False):
        return
    if os.name == "nt":  # where a plain rename never replaces
        os.rename(source, target)
    elif source.is_dir():
        target.mkdir()
        try:
            os.rename(source, target)  # onto a folder only while it is empty
        except OSError as error:
            if error.errno == errno.ENOTEMPTY:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target)) from None
            raise
    else:
        try:
            os.link(source, target)
            source.unlink()
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            os.replace(source, target)


def exchange(file: Path, path: Path) -> Path:
    """Swap two names, in one step where the system can; returns where the file that was called `path` is then."""
    if renamed(file, path, exchange=True):
        return file
    earlier = file.parent.with_name("old") / file.name
    earlier.parent.mkdir(exist_ok=True)
    os.rename(path, earlier)
    rename_new(file, path)
    return earlier


def sync(folder: Path) -> None:
    """Make sure that all of a folder is on disk, so that not even a loss of power leaves half of it under a name."""
    if os.name == "nt":  # where only handles that write can be synced
        return
    entries = [Path(place, name) for place, _, names in os.walk(folder) for name in ("", *names)]
    if len(entries) > SYNCED_ONE_BY_ONE and _sync_file_system(folder):
        return
    with ThreadPoolExecutor(8) as pool:  # the disk writes its journal once for several
        list(pool.map(lambda path: sync_folder(path) if path.is_dir() else sync_file(path), entries))


def sync_file(path: Path) -> None:
    """Make sure that a file is on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder(path: Path) -> None:
    """Make sure that the names in a folder are on disk."""
    with contextlib.suppress(OSError):  # not all systems can
        sync_file(path)


def _sync_file_system(folder: Path) -> bool:
    """Sync the whole file system that a folder is on; False where this system has no such call."""
    try:
        sync = ctypes.CDLL(None, use_errno=True).syncfs
    except (AttributeError, OSError, TypeError):
        return False
    handle = os.open(folder, os.O_RDONLY)
    try:
        if sync(handle):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    finally:
        os.close(handle)
    return True
