"""A file to read, and the names under which the kept rows of files are written again."""

from __future__ import annotations

import itertools
import os
import re
from collections import Counter
from dataclasses import field
from urllib.parse import unquote

from pyarrow import fs

from ..errors import InputError
from ..records import dataclass

POINTER = b"version https://git-lfs.github.com/spec/"
"""How a file begins that Git LFS leaves in place of another one."""


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
