"""Checksums of stored files: they show whether a file is still as it was written.

Parquet that this package writes carries checksums of itself, 24 bytes between its pages and its footer, where readers
of Parquet look at nothing:

    marker    8 bytes, "NEARDUPC"
    pages     checksum of all that is before the marker
    footer    checksum of the marker, of the checksum before, and of all that is after this one

So each bit of the file is covered by one of the two checksums. To compare that of the footer (schema, recipe, places of
pages) takes microseconds, and it is done whenever a file is opened; that of the pages is compared where they are read.
Pages have the format's own checksums as well, which other programs can verify. A file without a marker was rewritten by
another program, and whether it is as it was cannot be known.

A checksum is XXH3 with 64 bits: it runs at the speed of memory, and misses a change with probability 2**-64.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any, BinaryIO

import xxhash

from ..errors import DamagedError, OutputError
from .folder import open_named

CHECKSUM_BYTES = 8
_MARKER = b"NEARDUPC"
_SEAL = struct.Struct("<8sQQ")
_PARQUET_END = struct.Struct("<I4s")  # length of the footer, and the format's name
_READ = 1 << 20  # bytes at a time


def checksum(*parts: Any) -> int:
    """XXH3 with 64 bits of the buffers `parts`, one after another."""
    found = xxhash.xxh3_64()
    for part in parts:
        found.update(part)
    return found.intdigest()


def changed(path: str | Path) -> DamagedError:
    """The error for a file with a wrong checksum."""
    return DamagedError(f"{path}: has changed since it was written (a checksum differs); make it again")


def checksum_of_file(path: str | Path) -> str:
    """Checksum of all bytes of a file: 16 hexadecimal digits.

    Raises
    ------
    OSError
        If it cannot be read.
    """
    with open_named(path) as file:
        return f"{_checksum_of(file, os.fstat(file.fileno()).st_size):016x}"


def seal(path: Path) -> None:
    """Add checksums to a Parquet file that is complete.

    Raises
    ------
    OutputError
        If the file does not end as Parquet does: another program has written to it.
    """
    with open(path, "r+b") as file:
        end = _end(file)
        if end is None:
            raise OutputError(
                f"{path}: does not end as the Parquet file that was written; let no other program write there, and "
                "run again",
                path=str(path),
            )
        pages = _checksum_of(file, end)
        file.seek(end)
        footer = file.read()
        file.seek(end)
        header = _SEAL.pack(_MARKER, pages, 0)[:-CHECKSUM_BYTES]
        file.write(header + checksum(header, footer).to_bytes(CHECKSUM_BYTES, "little") + footer)


def verify(path: str | Path, *, whole: bool = False) -> bool:
    """Compare the checksum of a footer, and with `whole` that of the rest. Return whether the file has checksums.

    Raises
    ------
    DamagedError
        If what was compared is not as it was written.
    OSError
        If it cannot be read.
    """
    with open_named(path) as file:
        found = _sealed(path, file)
        if whole and found is not None and _checksum_of(file, found[0]) != found[1]:
            raise changed(path)
        return found is not None


def _sealed(path: str | Path, file: BinaryIO) -> tuple[int, int] | None:
    """(where the pages end, their checksum), as the footer records them; None for a file without checksums."""
    end = _end(file)
    if end is None or end < _SEAL.size:
        return None
    file.seek(end - _SEAL.size)
    start, footer = file.read(_SEAL.size), file.read()
    marker, pages, stored = _SEAL.unpack(start)
    if marker != _MARKER:
        return None
    if checksum(start[:-CHECKSUM_BYTES], footer) != stored:
        raise changed(path)
    return end - _SEAL.size, pages


def _end(file: BinaryIO) -> int | None:
    """Return the offset of the footer of a Parquet file; None if the file is not Parquet."""
    size = file.seek(0, os.SEEK_END)
    if size < 2 * _PARQUET_END.size:
        return None
    file.seek(size - _PARQUET_END.size)
    length, name = _PARQUET_END.unpack(file.read())
    end = size - _PARQUET_END.size - length
    return end if name == b"PAR1" and end > 0 else None


def _checksum_of(file: BinaryIO, num_bytes: int) -> int:
    """Checksum of the first `num_bytes` bytes of a file."""
    found = xxhash.xxh3_64()
    file.seek(0)
    while num_bytes > 0 and (data := file.read(min(_READ, num_bytes))):
        found.update(data)
        num_bytes -= len(data)
    return found.intdigest()
