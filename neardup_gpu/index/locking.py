"""Who may write to an index, and which old files readers still need.

Where the file system has locks (`flock`), they end with the process that has them:

    writer.lock          the writer holds an exclusive lock; the file says who it is
    manifest.00000042    a reader holds a shared lock on the manifest that it reads

Where it has none, the writer has a lease, `writer.lease` (`store/locks.py`). A process may be held up for so long that
another one takes the lease. Whoever takes a lease therefore commits the index again under the next number before it
removes anything, and skips numbers of files. The first process finds its number taken when it commits, and is refused.

Readers write nothing. Without locks nobody knows what they read, so an old manifest and its files stay for `KEPT`
seconds after the next manifest came. A reader that may write to the folder makes its manifest young again whenever it
is used, so what is in use stays.
"""

from __future__ import annotations

import contextlib
import os
import time
from io import FileIO
from pathlib import Path

from ..errors import InputError, OutputError
from ..store import locks
from ..store.folder import Folder, read_all
from ..store.locks import FileLock, FolderLease, this_process

LOCK, LEASE_FILE = "writer.lock", "writer.lease"

KEPT = 3600.0
"""Seconds for which files that a newer commit has replaced stay where there are no locks."""

TOUCHED_EVERY = KEPT / 12
"""Seconds after which a reader that is used makes its manifest young again."""


class WriterLock(contextlib.AbstractContextManager["WriterLock"]):
    """The right to write to an index, which one process has at a time, in the block.

    Parameters
    ----------
    folder : Path
        Of the index.

    Raises
    ------
    OutputError
        If another process has it, which the message names; or if the folder cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock: FileLock | None = None
        self._lease: FolderLease | None = None

    @property
    def is_lease(self) -> bool:
        """Whether another process might have taken over, as there are no locks."""
        return self._lease is not None

    def __enter__(self) -> WriterLock:
        with contextlib.ExitStack() as failed:
            failed.callback(self.__exit__)
            self._take()
            failed.pop_all()
        return self

    def _take(self) -> None:
        try:
            lock = self._lock = FileLock(FileIO(Folder(self._folder).open_own(LOCK), "r+"))
        except OSError as error:
            raise OutputError(
                f"{self._folder}: {error.strerror}; an index is written by whoever may write its folder"
            ) from None
        file = lock.file.fileno()
        locked = lock.try_alone()
        if locked is False:
            raise self._refusal(os.read(file, 1000).decode("utf-8", "replace").strip() or "another process")
        if locked is None or Folder(self._folder).has(LEASE_FILE):
            self._take_lease()
        with contextlib.suppress(OSError):  # a full disk: others are refused all the same
            os.ftruncate(file, 0)
            os.write(file, this_process().encode())

    def _take_lease(self) -> None:
        lease = FolderLease(self._folder / LEASE_FILE)
        try:
            other = lease.take()
        except OSError as error:
            raise OutputError(
                f"{self._folder}: files cannot be locked here, and {LEASE_FILE} cannot be made ({error.strerror}); "
                "write the index on another file system"
            ) from None
        if other is not None:
            raise self._refusal(other, f"; if that was killed, try again after {locks.LEASE:.0f} seconds")
        self._lease = lease

    def _refusal(self, who: str, more: str = "") -> OutputError:
        return OutputError(f"{self._folder}: is being written by {who}; wait until it has ended{more}")

    def check(self) -> None:
        """See that this process may still write.

        Raises
        ------
        OutputError
            If another folder has taken the place of the index, such as a backup; if this process lost its lease; or if
            another process, which has no locks, has taken one.
        """
        assert self._lock is not None
        if not _is_at(self._lock.file.fileno(), self._folder / LOCK):  # whose segments a commit would not name
            raise OutputError(
                f"{self._folder}: the folder was moved or replaced while this process wrote to it; open the index again"
            )
        if self._lease is None:
            if Folder(self._folder).has(LEASE_FILE):
                raise OutputError(
                    f"{self._folder}: another process, on a machine that cannot lock files here, writes to the index; "
                    "open it again, and let one write at a time"
                )
        elif not self._lease.holds():
            raise OutputError(
                f"{self._folder}: this process lost the right to write: it was held up for more than {locks.LEASE:.0f} "
                f"seconds, or {LEASE_FILE} was removed; what was committed is safe; open the index again"
            )

    def __exit__(self, *_: object) -> None:
        if self._lease is not None:
            self._lease.give_back()
        if self._lock is not None:
            self._lock.close()
        self._lease = self._lock = None


class Hold:
    """A manifest that a reader has open: its files stay until it is closed, see the head of this file.

    Parameters
    ----------
    path : Path
        The manifest.

    Raises
    ------
    OSError
        If it cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = FileLock(Folder(path.parent).open(path.name))
        self._locked = self._lock.share()
        self._touched = time.monotonic()

    def is_in_place(self) -> bool:
        """Return whether the path still leads to this manifest, and not to that of a folder that took its place."""
        return _is_at(self._lock.file.fileno(), self.path)

    def read(self, most: int) -> bytes:
        """Read the manifest, which has at most `most` bytes; raises OSError if it has more."""
        return read_all(self._lock.file, most)

    def check(self) -> None:
        """See that the files are still there, where that is not certain, and let them stay.

        Raises
        ------
        InputError
            If they may have been removed.
        """
        if self._locked:
            return
        if not Folder(self.path.parent).has(self.path.name):
            raise InputError(
                f"{self.path.parent}: this snapshot was not used for more than {KEPT / 60:.0f} minutes, and its files "
                "may have been removed; refresh it, or open the index again"
            )
        if time.monotonic() - self._touched > TOUCHED_EVERY:
            self._touched = time.monotonic()
            with contextlib.suppress(OSError):  # the reader may not write
                os.utime(self.path)

    def close(self) -> None:
        """Let the writer remove the files."""
        self._lock.close()


def _is_at(file: int, path: Path) -> bool:
    """Return whether an open file is the one at a path."""
    try:
        return os.path.samestat(os.fstat(file), os.lstat(path))
    except FileNotFoundError:
        return False


def remove_unread(folder: Folder, name: str, since: float, now: float) -> bool:
    """Remove an old manifest, unless a reader may still need its files; return whether it was removed.

    Parameters
    ----------
    folder : Folder
    name : str
        Of the manifest.
    since, now : float
        When the next manifest was written, and the newest one, as their file system says.
    """
    try:
        file = folder.open(name, write=True)  # NFS locks for one process alone only what is open to be written
    except PermissionError:
        file = folder.open(name)
    with contextlib.closing(FileLock(file)) as lock:
        alone = lock.try_alone()
        if alone is None:
            alone = now - max(since, os.fstat(file.fileno()).st_mtime) > KEPT
        if alone:
            folder.remove(name)
    return alone
