"""Standard input, written to a temporary file, as documents are read more than once.

The file is removed when the process ends. It is written once for each stream, so whatever reads standard input again in
the same process reads the same bytes.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from ..errors import InputError, ResourceError
from ..store import disk
from .files import File
from .formats import FIRST_BYTES, FORMATS, compression_of_bytes, first_bytes, format_of_bytes
from .local_names import escaped, local_system
from .packed import COMPRESSIONS
from .reading_options import INPUT_FORMATS

NAME = "-"
"""The name of standard input among inputs."""

SHOWN = "standard input"

_COPIED_BYTES = 1 << 20


def spooled(input_format: str | None) -> File:
    """Return the file that holds standard input.

    Parameters
    ----------
    input_format : str or None
        A name of `INPUT_FORMATS`; found out by the first bytes unless given.

    Raises
    ------
    InputError
        If there is no standard input, or its format is not known.
    ResourceError
        If the disk of temporary files is full.
    """
    stream = getattr(sys.stdin, "buffer", None)
    if stream is None:
        raise InputError(f"{SHOWN}: there is none; name a file.")
    if not _held or _held[0] is not stream:
        remove()
        folder = tempfile.mkdtemp(prefix="neardup-stdin-")
        _held[:] = [stream, folder, ""]
        try:
            _held[2] = _written(stream, folder, input_format)
        except InputError as error:
            _held[2] = error
    path = _held[2]
    if isinstance(path, InputError):
        raise path
    if not path:
        raise InputError(f"{SHOWN}: was read before, and gives its documents only once; write them to a file.")
    return File(local_system(path), path, SHOWN, os.path.dirname(path), path, how="stream")


def remove() -> None:
    """Remove the temporary file, if there is one."""
    if _held:
        shutil.rmtree(_held[1], ignore_errors=True)
        _held.clear()


_held: list[Any] = []
"""The stream that was read, its temporary folder, and the path of the file in it; "" before it is written, or why it
cannot be read."""

atexit.register(remove)


def _written(stream: Any, folder: str, input_format: str | None) -> str:
    """Write the stream to a file whose name ends as its format and compression need it; return its escaped path."""
    begins = b""
    while len(begins) < FIRST_BYTES and (more := stream.read(FIRST_BYTES - len(begins))):
        begins += more
    compression = compression_of_bytes(begins)
    ending = next((suffix for suffix, name in COMPRESSIONS.items() if name == compression), "")
    extension = _extension(begins, input_format) if input_format or compression is None else None
    path = os.path.join(folder, f"stdin{ending}")
    with open(path, "wb") as file:
        while begins:
            if (room := disk.room(Path(folder))) is not None and room < len(begins):
                raise ResourceError(f"{SHOWN}: the disk of {folder} is full; set TMPDIR to a folder with more room")
            file.write(begins)
            begins = stream.read(_COPIED_BYTES)
    if extension is None:
        extension = _extension(first_bytes(local_system(escaped(path)), escaped(path)) or b"", None)
    named = os.path.join(folder, f"stdin{extension}{ending}")
    os.rename(path, named)
    return escaped(named)


def _extension(begins: bytes, input_format: str | None) -> str:
    """Return the extension of a file of the given format or, without one, of the format that the first bytes say."""
    if input_format is not None:
        return INPUT_FORMATS[input_format]
    kind = format_of_bytes(begins)
    if kind is None:
        raise InputError(
            f"{SHOWN}: its first bytes do not say its format; name it with input_format=..., one of "
            f"{', '.join(INPUT_FORMATS)}"
        )
    return FORMATS[kind].extensions[0]
