"""Folders that may be damaged, or that somebody else prepared: all that lies in them is opened here.

An index, a work folder and a result are folders of files. Whoever can write such a folder, or hand one over, can put
anything into it: a link to a file elsewhere, a pipe that never ends, a device. So the files of such a folder are opened

- relative to a descriptor of the folder, so that nobody can exchange the folder in between;
- without following a link, neither at the file nor at the inner folder that holds it (the folder itself may be reached
  through links, as the user named it);
- only if they are regular files, and without waiting for a writer of a pipe.

Whatever else is there under the name is an `OSError` whose text says what it is. Where a system cannot open files
relative to a folder, as Windows, the kind of the file is compared before it is opened and after.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from ..records import dataclass

OF_AN_INDEX = re.compile(r"manifest\.[0-9]{8,}")
"""Names of the files that make a folder an index that grows; see `index/manifest.py`."""

_RELATIVE = os.open in os.supports_dir_fd and os.unlink in os.supports_dir_fd
_NOT_WAITING = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_NOT_FOLLOWING = getattr(os, "O_NOFOLLOW", 0)


@dataclass(frozen=True)
class Folder:
    """A folder whose files may be anything.

    Parameters
    ----------
    path : Path
        The folder that the user named; links lead to it.
    inner : str, default ""
        A folder in it, which is not a link; "" is the folder itself.
    """

    path: Path
    inner: str = ""

    @classmethod
    def holding(cls, path: Path) -> Folder:
        """Return the inner folder that a file lies in, `segments` of `news/segments/00000001`."""
        return cls(path.parent.parent, path.parent.name)

    def path_of(self, name: str) -> Path:
        """Return the path of a file, for messages."""
        return self.path / self.inner / name

    def open(self, name: str, *, write: bool = False) -> BinaryIO:
        """Open a regular file for reading, or to be written as well.

        Raises
        ------
        OSError
            If there is none, if it is not a regular file, or if that is not allowed.
        """
        return os.fdopen(self._opened(name, os.O_RDWR if write else os.O_RDONLY), "r+b" if write else "rb")

    def read(self, name: str, most: int) -> bytes:
        """Read a whole file of at most `most` bytes.

        Raises
        ------
        OSError
            As `open` does, and if the file is larger.
        """
        with self.open(name) as file:
            return read_all(file, most)

    def create(self, name: str) -> int:
        """Create a file that is not there yet, to read and write; return its descriptor.

        Raises
        ------
        OSError
            If it cannot be made; FileExistsError if there is anything of this name.
        """
        return self._opened(name, os.O_RDWR | os.O_CREAT | os.O_EXCL)

    def open_own(self, name: str) -> int:
        """Open a file to read and write, and create it where there is none; return its descriptor.

        A file that has a second name elsewhere is refused, as what is written to it would change that file as well.

        Raises
        ------
        OSError
            If it is not a regular file, has a second name, or cannot be written.
        """
        file = self._opened(name, os.O_RDWR | os.O_CREAT)
        if os.fstat(file).st_nlink > 1:
            os.close(file)
            raise OSError(errno.EMLINK, "has another name elsewhere (a hard link)", os.fspath(self.path_of(name)))
        return file

    def names(self) -> list[str]:
        """Return the names of all that is in the folder, in no order.

        Raises
        ------
        OSError
            If it is not a folder, or cannot be listed.
        """
        with self._descriptor() as folder:
            return os.listdir(self.path / self.inner if folder is None else folder)

    def has(self, name: str) -> bool:
        """Return whether there is anything of this name, a link that leads nowhere included."""
        try:
            self.status(name)
        except FileNotFoundError:
            return False
        return True

    def is_file(self, name: str) -> bool:
        """Return whether there is a regular file of this name, and not a folder or nothing.

        Raises
        ------
        OSError
            If there is a link, a pipe, or the like.
        """
        try:
            return self.size(name) >= 0
        except OSError:
            if not self.has(name) or stat.S_ISDIR(self.status(name).st_mode):
                return False
            raise

    def status(self, name: str) -> os.stat_result:
        """Return what the system says of a name, of a link and not of what it leads to; raises OSError if it cannot."""
        with self._descriptor() as folder:
            if folder is None:
                return os.lstat(self.path_of(name))
            return os.stat(name, dir_fd=folder, follow_symlinks=False)

    def size(self, name: str) -> int:
        """Return the bytes of a regular file; raises what `open` raises."""
        found = self.status(name)
        if not stat.S_ISREG(found.st_mode):
            raise _not_regular(found.st_mode, self.path_of(name))
        return found.st_size

    def remove(self, name: str) -> None:
        """Remove a name from the folder; where it is a link, the link.

        Raises
        ------
        OSError
            If there is none, or it cannot be removed.
        """
        with self._descriptor() as folder:
            os.unlink(name if folder is not None else self.path_of(name), dir_fd=folder)

    def link(self, name: str, new: str) -> None:
        """Give a file a second name, which is not taken yet; raises OSError if that fails."""
        with self._descriptor() as folder:
            if folder is None:
                os.link(self.path_of(name), self.path_of(new))
            else:
                os.link(name, new, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)

    def rename(self, name: str, new: str) -> None:
        """Give a file another name, in the place of what has it; raises OSError if that fails."""
        with self._descriptor() as folder:
            if folder is None:
                os.replace(self.path_of(name), self.path_of(new))
            else:
                os.replace(name, new, src_dir_fd=folder, dst_dir_fd=folder)

    def make(self) -> None:
        """Make the inner folder if it is not there.

        Raises
        ------
        OSError
            If it cannot be made, or is not a folder.
        """
        if self.inner:
            with contextlib.suppress(FileExistsError), Folder(self.path)._descriptor() as folder:
                os.mkdir(self.inner if folder is not None else self.path / self.inner, dir_fd=folder)
        with self._descriptor():
            pass

    def sync(self) -> None:
        """Wait until the names in the folder are on disk; where a system cannot sync folders, return at once.

        Raises
        ------
        OSError
            If that fails.
        """
        with self._descriptor() as folder:
            if folder is None:
                return
            try:
                os.fsync(folder)
            except OSError as error:
                if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EROFS):
                    raise

    # ------------------------------------------------------------------------------------------------------ private

    @contextlib.contextmanager
    def _descriptor(self) -> Iterator[int | None]:
        """Open the folder; give None where files cannot be opened relative to a descriptor."""
        if not _RELATIVE:
            if self.inner and not stat.S_ISDIR(found := os.lstat(self.path / self.inner).st_mode):
                raise _not_a_folder(found, self.path / self.inner)
            yield None
            return
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        opened = os.open(self.path, flags)
        try:
            if self.inner:
                try:
                    inner = os.open(self.inner, flags | os.O_NOFOLLOW, dir_fd=opened)
                except OSError as error:
                    if error.errno not in (errno.ENOTDIR, errno.ELOOP):
                        raise
                    mode = os.stat(self.inner, dir_fd=opened, follow_symlinks=False).st_mode
                    raise _not_a_folder(mode, self.path / self.inner) from None
                os.close(opened)
                opened = inner
            yield opened
        finally:
            os.close(opened)

    def _opened(self, name: str, flags: int) -> int:
        with self._descriptor() as folder:
            return _open_regular(name, flags, folder, self.path_of(name))


def open_named(path: str | os.PathLike[str]) -> BinaryIO:
    """Open for reading a regular file that a user named; links are followed, and nothing is waited for.

    Raises
    ------
    OSError
        If it is not a regular file, or cannot be opened.
    """
    file = os.open(path, os.O_RDONLY | _NOT_WAITING)
    return os.fdopen(_checked(file, Path(path)), "rb")


def _open_regular(name: str, flags: int, folder: int | None, path: Path) -> int:
    """Open a regular file without following a link and without waiting; return its descriptor."""
    where = path if folder is None else name
    if not hasattr(os, "O_NOFOLLOW") and path.is_symlink():  # Windows
        raise _not_regular(stat.S_IFLNK, path)
    try:
        file = os.open(where, flags | _NOT_WAITING | _NOT_FOLLOWING, 0o666, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):  # a link, a pipe or socket, a folder
            mode = os.stat(where, dir_fd=folder, follow_symlinks=False).st_mode
            if not stat.S_ISREG(mode):
                raise _not_regular(mode, path) from None
        raise
    return _checked(file, path)


def _checked(file: int, path: Path) -> int:
    """Return a descriptor, if it is of a regular file; else close it and raise OSError."""
    mode = os.fstat(file).st_mode
    if not stat.S_ISREG(mode):
        os.close(file)
        raise _not_regular(mode, path)
    return file


def read_all(file: BinaryIO, most: int) -> bytes:
    """Read a file of at most `most` bytes from where it is; raises OSError if it is larger."""
    data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"is larger than {most:,} bytes")
    return data


def for_arrow(file: BinaryIO) -> pa.NativeFile:
    """Return the same file for Arrow, which reads it by itself; the one that is given is closed."""
    path = f"/dev/fd/{file.fileno()}"
    if not os.path.exists(path):  # Windows
        return pa.PythonFile(file)
    with file:
        return pa.OSFile(path)


_KINDS = (
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
)


def _described(mode: int) -> str:
    return next((name for is_kind, name in _KINDS if is_kind(mode)), "a device")


def _not_regular(mode: int, path: Path) -> OSError:
    return OSError(errno.EINVAL, f"is {_described(mode)}, not a regular file", os.fspath(path))


def _not_a_folder(mode: int, path: Path) -> OSError:
    what = "a regular file" if stat.S_ISREG(mode) else _described(mode)
    return NotADirectoryError(errno.ENOTDIR, f"is {what}, not a folder", os.fspath(path))
