r"""Names of local files that are not UTF-8: how they are written, and how such files are opened.

Names are bytes on most systems, and those of old archives are often in another encoding than UTF-8. Neither Arrow nor
JSON holds such a name. So a part of a path is escaped if it holds bytes that are not UTF-8: each such byte becomes
``\xe9``, and each backslash ``\\``. So that the way back is unique, a part is also escaped if it holds text that looks
like an escaped byte. All other names stay as they are.

Paths are escaped from where files are found, so that ids, reports, kept files and tasks have the escaped names.
`LocalNames` opens the files.
"""

from __future__ import annotations

import os
import re
from typing import Any

import pyarrow as pa
from pyarrow import fs

_ESCAPED = re.compile(r"\\x[0-9a-f]{2}")
_SIGNS = re.compile(rb"\\(?:x([0-9a-f]{2})|\\)")


def escaped(path: str) -> str:
    r"""Return a path with each part escaped whose name is not UTF-8; Python holds its bytes as surrogates.

    Examples
    --------
    >>> print(escaped("old/caf\udce9.txt"), escaped(r"a\b"), escaped(r"a\x41"))
    old/caf\xe9.txt a\b a\\x41
    """
    return "/".join(map(_escaped_part, path.split("/")))


def _escaped_part(name: str) -> str:
    data = _bytes(name)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = ""
    if text and (_ESCAPED.search(text) is None or os.name == "nt"):
        return text
    return data.replace(b"\\", rb"\\").decode("utf-8", "backslashreplace")


def _bytes(name: str) -> bytes:
    try:
        return os.fsencode(name)
    except UnicodeEncodeError:  # no name that the system gave
        return name.encode("utf-8", "surrogatepass")


def unescaped(path: str) -> str:
    r"""Return the path that `escaped` wrote, as Python opens it.

    Examples
    --------
    >>> unescaped(r"old/caf\xe9.txt"), unescaped(r"a\b"), unescaped(r"a\\x41")
    ('old/caf\udce9.txt', 'a\\b', 'a\\x41')
    """
    return os.fsdecode(b"/".join(map(_unescaped_part, path.split("/"))))


def _unescaped_part(name: str) -> bytes:
    return _SIGNS.sub(_sign, name.encode()) if is_escaped(name) else name.encode()


def _sign(found: re.Match[bytes]) -> bytes:
    return b"\\" if found[1] is None else bytes([int(found[1], 16)])


def is_escaped(path: str) -> bool:
    """Return whether any part of a path is escaped."""
    return _ESCAPED.search(path) is not None and os.name != "nt"


class LocalNames:
    """The files of this machine, by escaped paths: what documents need of a file system of Arrow."""

    type_name = "local"

    def __eq__(self, other: object) -> bool:
        return is_local(other)

    __hash__ = None  # type: ignore[assignment]

    def get_file_info(self, paths: Any) -> Any:
        """Return what is known of a path, or of each of several."""
        return _info(paths) if isinstance(paths, str) else [_info(path) for path in paths]

    def open_input_file(self, path: str) -> pa.NativeFile:
        """Return the opened file."""
        return pa.PythonFile(open(unescaped(path), "rb"), mode="r")

    def open_input_stream(self, path: str, compression: None = None) -> pa.NativeFile:
        """Return the opened file, still compressed."""
        return self.open_input_file(path)


def _info(path: str) -> fs.FileInfo:
    try:
        status = os.stat(unescaped(path))
    except FileNotFoundError:
        return fs.FileInfo(path, fs.FileType.NotFound)
    kind = fs.FileType.Directory if os.path.isdir(unescaped(path)) else fs.FileType.File
    return fs.FileInfo(path, kind, size=status.st_size, mtime_ns=status.st_mtime_ns)


def local_system(path: str) -> Any:
    """Return the file system that opens an escaped path of this machine."""
    return LocalNames() if is_escaped(path) else fs.LocalFileSystem()


def is_local(system: Any) -> bool:
    """Return whether a file system is that of this machine."""
    return isinstance(system, (fs.LocalFileSystem, LocalNames))
