"""Compressed files: how a file is packed, its bytes one piece after another, also those before damage, and new ones."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa

from .ahead import Step, check_stopped, closing, in_order
from .charsets import StreamAsUtf8
from .unpacking import COMPRESSORS, DECOMPRESSORS, Unpacked

PACKED_BYTES = 64 << 10  # decompressed at once where the bytes before damage are to be read
PACKING = 4  # about how many times as large as a compressed file its text is


COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2", ".xz": "xz"}
"""Names of compressions, those of Arrow where it has one, by the extensions of their files."""


def compression_of(path: str) -> str | None:
    """Return the name of the compression that a file's name ends in; None for a plain file."""
    return COMPRESSIONS.get(PurePosixPath(path).suffix.lower())


def without_compression(path: str) -> str:
    """Return the path without the extension of a compression."""
    return path if compression_of(path) is None else path[: path.rindex(".")]


@contextlib.contextmanager
def unpacked(file: Any, compression: str | None, name: str, encoding: str | None = None) -> Iterator[Any]:
    """Yield the decompressed bytes of a file, as a stream; as UTF-8 if they are in another encoding.

    `name` is the file, as messages name it.
    """
    with contextlib.ExitStack() as opened:
        if compression in DECOMPRESSORS:
            file = Unpacked(file, compression, name)
        elif compression is not None:
            file = opened.enter_context(pa.CompressedInputStream(file, compression))
        yield file if encoding in (None, "utf-8") else StreamAsUtf8(file, encoding)


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
        check_stopped()
        try:
            part = stream.read(min(step, size - held))
        except OSError as error:
            return b"".join(parts), error
        if not part:
            break
        parts.append(part)
        held += len(part)
    return b"".join(parts), None


def write_packed(path: Path, compression: str | None, pieces: Iterable[bytes]) -> None:
    """Write a file of some bytes, compressed as `compression_of` says; by gzip, several pieces at once."""
    if compression == "gzip":
        pieces, compression = _gzipped(pieces), None
    elif compression in COMPRESSORS:
        pieces, compression = _compressed(pieces, COMPRESSORS[compression]()), None
    with closing(pieces) as packed, pa.output_stream(str(path), compression=compression) as stream:
        for piece in packed:
            stream.write(piece)


def _compressed(pieces: Iterable[bytes], packer: Any) -> Iterator[bytes]:
    """One stream of bz2 or xz."""
    with closing(pieces):
        for piece in pieces:
            yield packer.compress(piece)
    yield packer.flush()


GZIP_LEVEL = 9  # as Arrow has it
_WINDOW = 32 << 10  # bytes back to which gzip refers
_HEAD = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff"  # no name and no time; compressed best; any system (RFC 1952)


def _gzipped(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """One member of gzip. Each piece ends at a byte, and refers back to those before it as if there were no pieces."""
    checksum = size = 0

    def steps() -> Iterator[Step[bytes]]:
        nonlocal checksum, size
        before = b""
        with closing(pieces):
            for piece in pieces:
                checksum, size = zlib.crc32(piece, checksum), size + len(piece)
                yield Step(partial(_deflated, piece, before), len(piece))
                before = (before + piece)[-_WINDOW:] if len(piece) < _WINDOW else piece[-_WINDOW:]

    yield _HEAD
    yield from in_order(steps(), len)
    yield zlib.compressobj(wbits=-15).flush()  # the end
    yield checksum.to_bytes(4, "little") + (size % 2**32).to_bytes(4, "little")


def _deflated(piece: bytes, before: bytes) -> list[bytes]:
    packer = zlib.compressobj(GZIP_LEVEL, wbits=-15, zdict=before)
    return [packer.compress(piece) + packer.flush(zlib.Z_SYNC_FLUSH)]
