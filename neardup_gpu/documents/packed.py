"""Compressed files: how a file is packed, and its bytes one piece after another, also those before damage."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

import pyarrow as pa

PACKED_BYTES = 64 << 10  # decompressed at once where the bytes before damage are to be read
PACKING = 4  # about how many times as large as a compressed file its text is


COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
"""What Arrow calls compressions, by the extensions of their files."""


def compression_of(path: str) -> str | None:
    """What Arrow calls the compression that a file's name ends in; None for a plain file."""
    return COMPRESSIONS.get(PurePosixPath(path).suffix.lower())


@contextlib.contextmanager
def unpacked(file: Any, compression: str | None) -> Iterator[Any]:
    """The decompressed bytes of a file, as a stream."""
    if compression is None:
        yield file
    else:
        with pa.CompressedInputStream(file, compression) as stream:
            yield stream


def chunk_of(stream: Any, size: int, step: int, skips: bool) -> tuple[bytes, OSError | None]:
    """The next bytes of a stream, at most `size`, read `step` at once; and the error that follows them.

    Raises
    ------
    OSError
        That error, unless `skips`.
    """
    if not skips:
        return stream.read(size), None
    parts: list[bytes] = []
    held = 0
    while held < size:
        try:
            part = stream.read(min(step, size - held))
        except OSError as error:
            return b"".join(parts), error
        if not part:
            break
        parts.append(part)
        held += len(part)
    return b"".join(parts), None
