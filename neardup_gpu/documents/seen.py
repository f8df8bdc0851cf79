"""The state of a file when it was first opened, so that a later reading notices if the file has changed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from pyarrow import fs

from ..errors import InputError
from .files import File
from .local_names import unescaped
from .reading import reading

State = tuple[int | None, int | None, str | None]
"""Size, time of change in nanoseconds, and version of a file; None where the file system does not say."""

VERSIONS = ("ETag", "etag", "generation", "version_id", "LastModified", "last_modified", "created")
"""Names under which object stores give the version of an object, the best first."""


class Seen:
    """Size, time of change and version of a file and, where it is local, its inode, as they were when this was made.

    Raises
    ------
    OSError
        If there is no such file.
    """

    def __init__(self, file: File) -> None:
        self._state = _state(file)

    @property
    def size(self) -> int:
        """Bytes in the file; 0 where the file system does not say."""
        return self._state[0] or 0

    @property
    def state(self) -> State:
        """A value that shows, on any machine, whether the file has changed."""
        size, time, _, version = self._state
        return size, time, version

    def check_since(self, state: State, file: File) -> None:
        """Raise InputError if the file was changed between an earlier `state` and this one, as far as both say."""
        for before, now in zip(state, self.state, strict=True):
            if None not in (before, now) and before != now:
                raise changed(file.name)

    def check(self, file: File) -> None:
        """Raise InputError if the file is no longer the one that was seen."""
        with reading(file.name):
            now = _state(file)
        if now != self._state:
            raise changed(file.name)

    @contextlib.contextmanager
    def unchanged(self, file: File) -> Iterator[None]:
        """Raise InputError if the file changes before or while the block reads it."""
        self.check(file)
        try:
            yield
        except Exception:
            self.check(file)  # an error because the file was changed says so
            raise
        self.check(file)


def changed(name: str) -> InputError:
    """The error for a file that has changed."""
    return InputError(f"{name}: has changed since it was first read; run again on files that do not change.")


def _state(file: File) -> tuple[int | None, int | None, int | None, str | None]:
    """Size, time of change, inode, version."""
    if isinstance(file.system, fs.LocalFileSystem):
        found = os.stat(unescaped(file.path))
        return found.st_size, found.st_mtime_ns, found.st_ino, None
    info = file.system.get_file_info(file.path)
    if info.type == fs.FileType.NotFound:
        raise FileNotFoundError(file.name)
    return info.size, info.mtime_ns, None, _version(file)


def _version(file: File) -> str | None:
    """Return the version of an object in an object store of fsspec; None if the store gives none."""
    if not isinstance(file.system, fs.PyFileSystem) or not isinstance(file.system.handler, fs.FSSpecHandler):
        return None
    info = file.system.handler.fs.info(file.path)
    return next((str(info[name]) for name in VERSIONS if info.get(name) is not None), None)
