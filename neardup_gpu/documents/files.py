"""A file to read, its state when it was first opened, and the names under which kept rows are written again."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import field
from urllib.parse import unquote

from pyarrow import fs

from ..errors import InputError
from ..records import dataclass
from ..store.uris import of_fsspec
from .local_names import unescaped
from .reading import reading

POINTER = b"version https://git-lfs.github.com/spec/"
"""How a file begins that Git LFS leaves in place of another one."""

_UTF16 = "is UTF-16; read it with encoding='utf-16'."
FOREIGN = {b"\xff\xfe": _UTF16, b"\xfe\xff": _UTF16, b"\x1f\x8b": "is compressed by gzip; let its name end in .gz."}
"""Why a file is not read as text whose first two bytes are these."""


@dataclass(frozen=True)
class File:
    """A file to read."""

    system: fs.FileSystem
    path: str  # as the file system names it
    name: str  # as messages name it; it holds no secret
    root: str  # the folder that the user named, or that holds the file
    real: str = ""  # the same for all paths that lead to one file
    by_link: bool = False
    how: str = "name"  # it was found by its "name", by a "pattern", in a "folder", or is that of a "stream"
    uri: str = field(default="", repr=False)  # one that names the file system, with its secrets; none if it is local
    kind: str = ""  # the format, as find.py found it


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
    store = of_fsspec(file.system)
    info = {} if store is None else store.info(file.path)
    return next((str(info[name]) for name in VERSIONS if info.get(name) is not None), None)


def check_relative(inside: str, name: str) -> None:
    """Refuse a relative name that, below another folder, would be no file of that folder: the one place where names
    that are not ours are allowed to become paths to write.

    Raises
    ------
    InputError
        Keys of an object store may hold anything: ``..``, empty parts, another system's separators.
    """
    for part in inside.split("/"):
        if part in ("", ".", "..") or "\0" in part or (os.sep == "\\" and re.search(r"[\\:]", part)):
            raise InputError(
                f"{name}: the part {part!r} of its name cannot name a file or folder; copy it to another name."
            )


def relative_names(files: list[File]) -> list[str]:
    """Each file's path from the folder that all roots share: different, and safe to write below another folder.

    Raises
    ------
    InputError
        If there are none, as where two object stores hold the same key.
    """
    roots = sorted({tuple(file.root.split("/")) for file in files})
    pairs = zip(roots[0], roots[-1], strict=False) if all(f.system == files[0].system for f in files) else iter(())
    shared = "/".join(a for a, _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
    names = [file.path.removeprefix(shared).removeprefix("/") for file in files]
    taken = set(names)
    if len(taken) < len(names):
        same = Counter(names).most_common(1)[0][0]
        raise InputError(f"{files[0].name}: two files are called {same!r} within their stores; read them one by one.")
    for name, file in zip(names, files, strict=True):
        check_relative(name, file.name)
        folder = name.rpartition("/")[0]
        while folder:
            if folder in taken:
                raise InputError(f"{file.name}: {folder!r} is a file as well as a folder; rename one of them.")
            folder = folder.rpartition("/")[0]
    return names


def names_below(files: list[File]) -> list[str]:
    """`relative_names` with the ``key=value`` folders that all files lie in, which hold a column where data is
    partitioned."""
    names = relative_names(files)
    return [partition_of(file.path.removesuffix(name)) + name for file, name in zip(files, names, strict=True)]


def folder_columns(path: str) -> dict[str, str | None]:
    """Return the columns that the ``key=value`` folders of a file stand for, and the value of each.

    As in Hive, values are escaped as in URIs, and ``__HIVE_DEFAULT_PARTITION__`` is null.
    """
    found: dict[str, str | None] = {}
    for folder in partition_of(path).split("/")[:-1]:
        key, _, value = folder.partition("=")
        found[unquote(key)] = None if value == "__HIVE_DEFAULT_PARTITION__" else unquote(value)
    return found


def partition_of(path: str) -> str:
    """The ``key=value`` folders that the file lies in, as ``key=value/.../``; else nothing."""
    partition = ""
    for folder in reversed(path.split("/")[:-1]):
        if not re.fullmatch("[^=]+=.*", folder, re.DOTALL):
            break
        partition = f"{folder}/{partition}"
    if partition:
        check_relative(partition.removesuffix("/"), path)
    return partition
