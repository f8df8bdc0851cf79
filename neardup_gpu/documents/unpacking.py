"""Streams of gzip, bz2 and xz, which Arrow does not unpack up to the place where they are damaged.

A file holds one stream after another, as programs with several threads write them; all are read.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from typing import Any

from ..log import log
from ..report import count

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
