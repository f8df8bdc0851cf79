"""Streams of bz2 and xz, which Arrow does not unpack up to the place where they are damaged.

A file holds one stream after another, as programs with several threads write them; all are read.
"""

from __future__ import annotations

import bz2
import lzma
from typing import Any

INPUT_BYTES = 64 << 10
"""Compressed bytes read at once."""

DECOMPRESSORS = {"bz2": bz2.BZ2Decompressor, "xz": lzma.LZMADecompressor}
COMPRESSORS = {"bz2": bz2.BZ2Compressor, "xz": lzma.LZMACompressor}


class Unpacked:
    """The decompressed bytes of a file, as a stream.

    Parameters
    ----------
    file : file object
    compression : str
        A name of `DECOMPRESSORS`.
    """

    def __init__(self, file: Any, compression: str) -> None:
        self._file, self._compression = file, compression
        self._stream: Any = None  # of compressed bytes; None between two streams
        self._held = b""  # compressed bytes that are not unpacked yet
        self._error: OSError | None = None

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
                return None
            if self._compression == "xz":
                self._held = self._held.lstrip(b"\0")  # padding between streams
                if not self._held:
                    return b""
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
