"""The file of an index: arrays that are mapped, each part compared with its checksum before it is believed.

    preamble    48 bytes: see `_PREAMBLE`; its last field is the checksum of the others
    head        JSON that says what the arrays are; their checksums, one for each 64 KiB; zeros up to the next page
    arrays      one after another, each followed by zeros up to the next page

Opening reads the preamble and the head, whose checksum is in the preamble, and up to 16 MB of the smaller arrays. What
is left is compared block by block, each block once, when something reads it first: so a file larger than memory opens
in milliseconds, and each bit that counts in an answer has been compared before that is given.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from neardup_gpu.kernels._file_blocks import unread

from ..errors import DamagedError, InputError
from .checksums import changed, checksum

MAGIC = b"NEARDUPH"
VERSION = 3
BYTE_ORDER = 0x01020304
BLOCK_BYTES = 1 << 16
AT_ONCE = 16 << 20
"""Bytes of arrays, the smaller first, that are compared when a file is opened: it takes a millisecond or two."""

_PREAMBLE = np.dtype(
    [
        ("magic", "S8"),
        ("byte_order", "=u4"),
        ("version", "=u4"),
        ("text", "=u8"),  # bytes of the JSON
        ("blocks", "=u8"),  # of all arrays
        ("head", "=u8"),  # checksum of the head
        ("preamble", "=u8"),  # checksum of the fields before
    ]
)
_FIELDS = _PREAMBLE.itemsize - 8  # bytes of the fields before the last
_PAGE = 4096
_KINDS = {np.dtype(kind).str: np.dtype(kind) for kind in "bBhHiIlLqQ"}  # of arrays, in this machine's byte order


def write(file: Path, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write an index where nothing is yet; `header` becomes JSON beside what is said of the arrays."""
    described = {name: [array.dtype.str, array.shape] for name, array in arrays.items()}
    text = json.dumps({**header, "arrays": described}).encode()
    checksums = np.array([found for array in arrays.values() for found in _checksums(array)], np.uint64)
    head = text + bytes(-len(text) % 8) + checksums.tobytes()
    head += bytes(-(_PREAMBLE.itemsize + len(head)) % _PAGE)
    preamble = np.array((MAGIC, BYTE_ORDER, VERSION, len(text), len(checksums), checksum(head), 0), _PREAMBLE)
    preamble["preamble"] = checksum(preamble.tobytes()[:_FIELDS])
    with open(file, "wb") as out:
        out.write(preamble.tobytes() + head)
        for array in arrays.values():
            out.write(array.data)  # `tofile` does not say why it fails
            out.write(bytes(-array.nbytes % _PAGE))


def _checksums(array: np.ndarray) -> Iterator[int]:
    """Those of an array's blocks, the last one with the zeros that follow the array."""
    data = array.reshape(-1).view(np.uint8)
    for start in range(0, len(data), BLOCK_BYTES):
        block = data[start : start + BLOCK_BYTES]
        yield checksum(block, bytes(-len(block) % _PAGE))


def is_index(path: str | Path) -> bool:
    """Whether a file begins as an index does."""
    try:
        with open(path, "rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


class IndexFile:
    """A file that `write` wrote.

    header : dict
        As it was given, and "arrays".
    arrays : dict of arrays
        Mapped from the file. What was not verified may be anything.
    num_left : int
        Blocks that were not compared yet.

    Raises
    ------
    InputError
        If there is no such file, or it is no index, of another version or of another byte order.
    DamagedError
        If it is not as it was written, as far as was read here.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = path
        try:
            with open(path, "rb") as file:
                preamble = _preamble(path, file.read(_PREAMBLE.itemsize))
                size = os.fstat(file.fileno()).st_size
                num_text, num_blocks = int(preamble["text"]), int(preamble["blocks"])
                start = _PREAMBLE.itemsize + num_text + -num_text % 8 + 8 * num_blocks
                start += -start % _PAGE
                head = file.read(start - _PREAMBLE.itemsize) if start <= size else b""
        except FileNotFoundError:
            raise InputError(f"{path}: no such file") from None
        except InputError:
            raise
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}; name an index") from None
        if start > size:
            raise cut_short(path)
        if checksum(head) != preamble["head"]:
            raise changed(path)
        self._checksums = np.frombuffer(head, np.uint64, num_blocks, num_text + -num_text % 8)
        self._done = np.zeros(num_blocks, np.uint8)
        self.num_left = num_blocks
        self._blocks: dict[str, range] = {}
        self.header = _parsed(path, head[:num_text])
        self.arrays = self._mapped(start, size)
        total = 0
        for name in sorted(self.arrays, key=lambda name: self.arrays[name].nbytes):
            if (total := total + self.arrays[name].nbytes) <= AT_ONCE:
                self.verify(name)

    def _mapped(self, start: int, size: int) -> dict[str, np.ndarray]:
        """The arrays that the header describes."""
        kinds: dict[str, tuple[np.dtype, tuple[int, ...]]] = {}
        try:
            for name, (kind, shape) in self.header["arrays"].items():
                kinds[name] = _KINDS[kind], tuple(shape)
                if not all(type(length) is int and 0 <= length < 2**48 for length in shape) or len(shape) not in (1, 2):
                    raise ValueError
        except (AttributeError, KeyError, TypeError, ValueError):
            raise unreadable(self.path) from None
        self._places, end, number = {}, start, 0
        for name, (dtype, shape) in kinds.items():
            num_bytes = int(np.prod(shape, dtype=object)) * dtype.itemsize
            padded = num_bytes + -num_bytes % _PAGE
            self._places[name] = slice(end, end + num_bytes)
            self._blocks[name] = range(number, number + -(-padded // BLOCK_BYTES))
            end, number = end + padded, self._blocks[name].stop
        if number != len(self._checksums):
            raise unreadable(self.path)
        if size != end:
            raise cut_short(self.path) if size < end else changed(self.path)
        # Copied on write: nobody writes, and compiled code has one form for arrays that may be written to.
        self._bytes = np.memmap(self.path, np.uint8, "c").view(np.ndarray)
        return {
            name: self._bytes[self._places[name]].view(kind).reshape(shape) for name, (kind, shape) in kinds.items()
        }

    @property
    def verified(self) -> bool:
        """Whether all of the file is as it was written."""
        return self.num_left == 0

    def verify(self, name: str, starts: np.ndarray | None = None, stops: np.ndarray | None = None) -> None:
        """Compare what some reader is about to read with its checksums: all of an array, or some runs of its values.

        Parameters
        ----------
        starts, stops : arrays of int64
            Numbers of values; of an array of two dimensions row after row. Runs outside the array are cut off there.

        Raises
        ------
        DamagedError
            If a block is not as it was written.
        """
        blocks = self._blocks[name]
        if starts is None or stops is None:
            numbers = np.flatnonzero(self._done[blocks.start : blocks.stop] == 0) + blocks.start
        else:
            item = self.arrays[name].itemsize
            numbers = unread(starts, stops, item, BLOCK_BYTES, self._done[blocks.start : blocks.stop]) + blocks.start
        place = self._places[name]
        end = place.stop + -place.stop % _PAGE
        for number in numbers.tolist():
            start = place.start + (number - blocks.start) * BLOCK_BYTES
            if checksum(self._bytes[start : min(start + BLOCK_BYTES, end)]) != self._checksums[number]:
                raise changed(self.path)
            self.num_left -= not self._done[number]
            self._done[number] = 1

    def verify_all(self) -> None:
        """Compare all that was not compared before.

        Raises
        ------
        DamagedError
            If a block is not as it was written.
        """
        for name in self.arrays:
            self.verify(name)


def cut_short(path: str | Path) -> DamagedError:
    """What is raised where a file ends too early."""
    return DamagedError(f"{path}: was cut short; build the index again")


def unreadable(path: str | Path) -> InputError:
    """What is raised where a header is as it was written, but by no program of ours."""
    return InputError(f"{path}: its header cannot be read; build the index again")


def _preamble(path: str | Path, start: bytes) -> np.void:
    """The first fields of a file, if this version reads it."""
    if start[: len(MAGIC)] == MAGIC and len(start) < _PREAMBLE.itemsize:
        raise cut_short(path)
    found = np.frombuffer(start.ljust(_PREAMBLE.itemsize, b"\0"), _PREAMBLE)[0]
    ours = found.copy()
    ours["magic"], ours["byte_order"], ours["version"] = MAGIC, BYTE_ORDER, VERSION
    sound = checksum(ours.tobytes()[:_FIELDS]) == found["preamble"]
    if sound and found.tobytes() == ours.tobytes():
        return found
    if sound:  # it is of this version, but one of the three is not what it was
        raise changed(path)
    if found["magic"] != MAGIC:
        raise InputError(f"{path}: is no index of fingerprints; build one with neardup hamming build")
    if found["byte_order"] == int.from_bytes(BYTE_ORDER.to_bytes(4, "little"), "big"):
        raise InputError(f"{path}: of another byte order than this machine's ({sys.byteorder}); build it here")
    if found["version"] != VERSION and found["byte_order"] == BYTE_ORDER:
        age = "an earlier" if found["version"] < VERSION else "a later"
        raise InputError(
            f"{path}: an index of format {found['version']}, made by {age} version; this one reads format {VERSION}, "
            "build it again"
        )
    raise changed(path)


def _parsed(path: str | Path, text: bytes) -> dict[str, Any]:
    try:
        header = json.loads(text)
    except (ValueError, RecursionError):
        raise unreadable(path) from None
    if not isinstance(header, dict):
        raise unreadable(path)
    return header
