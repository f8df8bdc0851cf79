"""Compressed files: how a file is packed, its bytes one piece after another, also those before damage, and new ones.

Arrow does not unpack gzip, bz2 and xz up to the place where they are damaged. A file of them holds one stream after
another, as programs with several threads write them; all are read.
"""

from __future__ import annotations

import bz2
import contextlib
import lzma
import zlib
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa

from ..log import log
from ..report import count
from .ahead import Step, check_stopped, closing, in_order
from .charsets import StreamAsUtf8

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


INPUT_BYTES = 64 << 10
"""Compressed bytes read at once."""


class _GzipDecompressor:
    """Unpack a member of gzip, as `bz2.BZ2Decompressor` does for bz2, and all of it that comes before damage."""

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(31)
        self._error: OSError | None = None
        self.damaged = b""  # bytes from the damaged one on

    @property
    def eof(self) -> bool:
        return self._inflate.eof

    @property
    def unused_data(self) -> bytes:
        return self.damaged or self._inflate.unused_data

    @property
    def needs_input(self) -> bool:
        return not self._inflate.unconsumed_tail and self._error is None

    def decompress(self, data: bytes, max_length: int) -> bytes:
        """Return some of the next bytes, at most `max_length`; raise OSError where the member is damaged."""
        if self._error is not None:
            raise self._error
        data = self._inflate.unconsumed_tail + data
        before = self._inflate.copy()
        try:
            return self._inflate.decompress(data, max_length)
        except zlib.error as error:
            self._error = OSError(str(error).partition("data: ")[2] or str(error))
        # The failed call gave nothing, so its bytes are unpacked again, one by one.
        parts: list[bytes] = []
        for place in range(len(data)):
            try:
                parts.append(before.decompress(data[place : place + 1]))
            except zlib.error:
                self.damaged = data[place:]
                break
        found = b"".join(parts)
        if not found:
            raise self._error
        return found


DECOMPRESSORS: dict[str, Any] = {"gzip": _GzipDecompressor, "bz2": bz2.BZ2Decompressor, "xz": lzma.LZMADecompressor}
COMPRESSORS = {"bz2": bz2.BZ2Compressor, "xz": lzma.LZMACompressor}


class Unpacked:
    """The decompressed bytes of a file, as a stream.

    Parameters
    ----------
    file : file object
    compression : str
        A name of `DECOMPRESSORS`.
    name : str
        The file, as messages name it.
    """

    def __init__(self, file: Any, compression: str, name: str) -> None:
        self._file, self._compression, self._name = file, compression, name
        self._stream: Any = None  # of compressed bytes; None between two streams
        self._held = b""  # compressed bytes that are not unpacked yet
        self._error: OSError | None = None
        self._members = self._zeros = 0  # begun members or streams, and zeros after a member of gzip

    def read(self, size: int) -> bytes:
        """Return the next bytes, at most `size`; none at the end.

        Raises
        ------
        OSError
            If the file is damaged or cut off, after all bytes before that place were returned.
        """
        parts: list[bytes] = []
        while size > 0 and self._error is None:
            try:
                part = self._some(size)
            except OSError as error:
                self._error = error
                if self._file.seekable():
                    self._file.seek(self._file.tell() - len(self._held))  # where reading failed, for who counts bytes
                break
            if part is None:
                break
            parts.append(part)
            size -= len(part)
        found = b"".join(parts)
        if self._error is not None and not found:
            raise self._error
        return found

    def _some(self, size: int) -> bytes | None:
        """Return some of the next bytes, perhaps none; None at the end."""
        if self._stream is None:
            self._held = self._held or self._file.read(INPUT_BYTES)
            if not self._held:
                self._warn_of_zeros()
                return None
            if self._compression == "xz":
                self._held = self._held.lstrip(b"\0")  # padding between streams
            elif self._compression == "gzip" and self._members:
                rest = self._held.lstrip(b"\0")
                self._zeros, self._held = self._zeros + len(self._held) - len(rest), rest
                if rest and self._zeros:
                    raise OSError(f"{count(self._zeros, 'zero')} between members of the gzip stream")
            if not self._held:
                return b""
            self._members += 1
            self._stream = DECOMPRESSORS[self._compression]()
        if not self._held and self._stream.needs_input:
            self._held = self._file.read(INPUT_BYTES)
            if not self._held:
                raise OSError(f"the {self._compression} stream is cut off")
        try:
            part = self._stream.decompress(self._held, size)
        except (OSError, lzma.LZMAError, EOFError) as error:
            raise OSError(f"the {self._compression} stream is damaged: {error}") from None
        self._held = self._stream.unused_data
        if self._stream.eof:
            self._stream = None
        return part

    def _warn_of_zeros(self) -> None:
        if self._zeros:
            zeros = count(self._zeros, "zero")
            problem = f"ends in {zeros} after its last gzip member; if it was copied only in part, copy it again"
            log.warning("%s: %s", self._name, problem, extra={"once": True})


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
