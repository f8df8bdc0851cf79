"""Locks of files that end with their process, and leases for file systems that have no locks.

A lock is `flock`'s. Some mounts of network file systems refuse it, and Windows does not have it. A lease is used there:
a small file that is created exclusively. It names the process that has it, and a thread writes it again every quarter
of `LEASE` seconds, so that its time of modification shows that the process lives.

A lease is stale if it was not renewed for `LEASE` seconds, or if its process ran on this machine and has ended. An age
is the difference between times that the file system itself gave to two files, so clocks of machines are never compared.

Whoever finds a stale lease renames it to a name that nobody else uses, and reads it again there. If that is no longer
the lease which was found stale, because another process was faster, it goes back to its name. Only after that is the
name free, and `O_EXCL` gives it to one process. A process that was held up for longer than its lease may still be
replaced while it works: it learns that from `holds`, and its user makes sure that what it does after its last look is
harmless (`index/manifest.py`: numbers of commits).
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import sys
import threading
import time
import weakref
from pathlib import Path
from typing import Any, NamedTuple

from .disk import rename_new
from .folder import Folder

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

HAS_LOCKS = fcntl is not None
"""Whether the system has locks of files; a file system may have none all the same."""

LEASE = 60.0
"""Seconds after which a lease that was not renewed is stale."""

_MOST_BYTES = 4096
"""Bytes of a lease file that are read."""

# ---------------------------------------------------------------------------------------------------------------- locks


def try_to_lock(file: int) -> bool | None:
    """Lock an open file for this process alone; False if another one has it, None where there are no locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


class FileLock:
    """An open file, with the lock that this process may have on it.

    A forked child inherits open files, and with them the lock. So the lock is given back explicitly when the file is
    closed, and a child closes the file at once when it is forked, without unlocking it.

    Parameters
    ----------
    file : binary file
        Open; closed by `close`.
    """

    def __init__(self, file: Any) -> None:
        self.file = file
        _INHERITED.add(self)

    def try_alone(self) -> bool | None:
        """Lock the file for this process alone, as `try_to_lock` does."""
        return try_to_lock(self.file.fileno())

    def share(self) -> bool:
        """Lock the file together with others that share it, and wait if necessary; False where there are no locks."""
        if fcntl is None:
            return False
        try:
            fcntl.flock(self.file.fileno(), fcntl.LOCK_SH)
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Give the lock back, and close the file."""
        if self.file.closed:
            return
        if fcntl is not None:
            with contextlib.suppress(OSError):
                fcntl.flock(self.file.fileno(), fcntl.LOCK_UN)
        self.file.close()

    def __del__(self) -> None:
        self.close()


_INHERITED: weakref.WeakSet[FileLock] = weakref.WeakSet()


def _close_in_child() -> None:
    for lock in list(_INHERITED):
        with contextlib.suppress(OSError):
            lock.file.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_child)

# --------------------------------------------------------------------------------------------------------------- leases


class _LeaseState(NamedTuple):
    """The state of a lease file when it was read."""

    content: bytes
    modified: int

    @property
    def fields(self) -> dict[str, Any]:
        """The content; empty if it is half written."""
        try:
            found = json.loads(self.content)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    @property
    def who(self) -> str:
        """Who has it, in words."""
        return str(self.fields.get("who") or "another process")


class FolderLease:
    """A lease of a folder: a file in it that one process can have at a time.

    Parameters
    ----------
    path : Path
        The file.
    """

    def __init__(self, path: Path) -> None:
        self.path, self._token, self._process = path, secrets.token_hex(8), os.getpid()
        self._content = json.dumps(
            {
                "owner": self._token,
                "who": this_process(),
                "process": self._process,
                "started": _status(self._process)[1],
                "machine": _machine(),
            }
        ).encode()
        self._ended = threading.Event()
        self._finalizer: weakref.finalize | None = None

    def take(self) -> str | None:
        """Take the lease, and renew it until `give_back`; return None, or in words who has it.

        Raises
        ------
        OSError
            If no file can be created exclusively in the folder, or what has the name is not a file.
        """
        for _ in range(100):  # another process may be taking it or giving it back
            if self._create():
                seen = _read_lease(self.path)
                if seen is None or seen.content != self._content:  # a file system that ignores O_EXCL
                    return "another process" if seen is None else seen.who
                self._remove_left_aside()
                given = self.path, self._content, self._ended
                threading.Thread(target=_keep, args=given, name="neardup-lease", daemon=True).start()
                self._finalizer = weakref.finalize(self, _give_back, *given, self._aside, self._process)
                return None
            seen = _read_lease(self.path)
            if seen is None:
                continue
            if not self._is_stale(seen):
                return seen.who
            _remove(self.path, seen, self._aside)
        return "other processes"

    def holds(self) -> bool:
        """Whether this process still has the lease."""
        for _ in range(20):
            with contextlib.suppress(OSError):
                seen = _read_lease(self.path)
                if seen is not None:
                    return seen.content == self._content
            time.sleep(0.05)  # another process may have renamed it, and is about to put it back
        return False

    def give_back(self) -> None:
        """Remove the lease if this process still has it, as happens at the latest with this object."""
        if self._finalizer is not None:
            self._finalizer()

    def _create(self) -> bool:
        folder = Folder(self.path.parent)
        try:
            file = folder.create(self.path.name)
        except FileExistsError:
            return False
        try:
            os.write(file, self._content)
            os.fsync(file)
        except BaseException:
            folder.remove(self.path.name)
            raise
        finally:
            os.close(file)
        return True

    def _is_stale(self, seen: _LeaseState) -> bool:
        """Whether the process that wrote a lease has ended, or did not renew the lease in time."""
        fields = seen.fields
        process, started = fields.get("process"), fields.get("started")
        if fields.get("machine") == _machine() and _has_ended(process, started):
            return True
        aside = self._aside
        folder = Folder(aside.parent)
        file = folder.create(aside.name)
        try:
            now = os.fstat(file).st_mtime_ns
        finally:
            os.close(file)
            folder.remove(aside.name)
        return abs(now - seen.modified) > LEASE * 1e9

    def _remove_left_aside(self) -> None:
        """Remove stale leases that a process renamed and did not remove, because it was killed in between."""
        folder = Folder(self.path.parent)
        for name in folder.names():
            if name.startswith(f"{self.path.name}.") and name != self._aside.name:
                with contextlib.suppress(OSError):  # the process that renamed it may remove it at the same time
                    seen = _read_lease(folder.path_of(name))
                    if seen is not None and self._is_stale(seen):
                        folder.remove(name)

    @property
    def _aside(self) -> Path:
        """A name that no other process uses."""
        return self.path.with_name(f"{self.path.name}.{self._token}")


def _read_lease(path: Path) -> _LeaseState | None:
    """Read a lease; return None if there is none."""
    try:
        file = Folder(path.parent).open(path.name)
    except FileNotFoundError:
        return None
    with file:
        return _LeaseState(file.read(_MOST_BYTES), os.fstat(file.fileno()).st_mtime_ns)


def _remove(path: Path, seen: _LeaseState, aside: Path) -> None:
    """Remove a lease if it is still the one that was seen, by way of a name that no other process uses."""
    try:
        os.rename(path, aside)
    except FileNotFoundError:
        return
    found = _read_lease(aside)
    if found is not None and found != seen:
        with contextlib.suppress(FileExistsError):  # a third process has the name: the owner learns it
            rename_new(aside, path)
            return
    with contextlib.suppress(FileNotFoundError):  # another process found that it was left here, and removed it
        os.unlink(aside)


def _keep(path: Path, content: bytes, ended: threading.Event) -> None:
    """Renew a lease until it is given back."""
    while not ended.wait(LEASE / 4):
        # If it fails, it is tried again, and `holds` says whether it came too late.
        with contextlib.suppress(OSError), Folder(path.parent).open(path.name, write=True) as opened:
            file = opened.fileno()
            if os.read(file, _MOST_BYTES) == content:
                os.lseek(file, 0, os.SEEK_SET)
                os.write(file, content)
                os.fsync(file)


def _give_back(path: Path, content: bytes, ended: threading.Event, aside: Path, process: int) -> None:
    """Remove a lease if this process still has it. A forked child does nothing."""
    if os.getpid() != process:
        return
    ended.set()
    with contextlib.suppress(OSError):
        seen = _read_lease(path)
        if seen is not None and seen.content == content:
            _remove(path, seen, aside)


def this_process() -> str:
    """Name this process, its machine and its command for a message."""
    command = " ".join(os.path.basename(word) if number == 0 else word for number, word in enumerate(sys.argv[:3]))
    name = f"process {os.getpid()} on {socket.gethostname()} ({command})"
    return name.encode("utf-8", "replace")[:500].decode("utf-8", "replace")


def _machine() -> list[str]:
    """The scope in which numbers of processes mean the same: the machine, since it was started, and the container."""
    found = [socket.gethostname()]
    with contextlib.suppress(OSError):
        found.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        found.append(os.readlink("/proc/self/ns/pid"))
    return found


def _status(process: int) -> tuple[str, str | None]:
    """Return the state of a process, and when it was started, in ticks, as Linux shows them; "" and None elsewhere."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return fields[0], fields[19]
    except (OSError, IndexError):
        return "", None


def _has_ended(process: Any, started: Any) -> bool:
    """Whether a process of this machine has certainly ended."""
    if type(process) is not int or not 0 < process < 2**31 or os.name == "nt":  # there, `os.kill` ends a process
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    state, now = _status(process)
    return state in ("Z", "X") or (now is not None and started is not None and now != started)
