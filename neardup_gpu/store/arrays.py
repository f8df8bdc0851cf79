"""A file of named arrays that are mapped. Each part is compared with its checksum before it is used.

    preamble    48 bytes: see `_PREAMBLE`; its last field is the checksum of the others
    head        JSON: the caller's header and what the arrays are; a checksum for each 64 KiB of the arrays; zeros up to
                the next page
    arrays      one after another, each followed by zeros up to the next page

To open a file is to read the preamble and the head, whose checksum is in the preamble, and up to 16 MB of the smaller
arrays. All others are compared block by block, each block once, when something first reads it: so a file larger than
memory opens in milliseconds, and each bit that counts in an answer has been compared before the answer is given.

What the arrays mean is the caller's. A caller describes its kind of file by an `ArraysFormat`:

    SHELF = ArraysFormat(b"BOOKSHLF", 1, "a shelf of books", "fill one", "fill the shelf again")
    SHELF.write(path, {"owner": "us"}, {"words": words, "rows": rows})
    file = ArraysFile(path, SHELF)
    file.verify("rows", starts, stops)
    file.arrays["rows"]
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from neardup_gpu.kernels._blocks import blocks_of_runs

from ..errors import DamagedError, InputError
from ..records import dataclass
from .checksums import changed, checksum
from .folder import Folder, open_named

BYTE_ORDER = 0x01020304
BLOCK_BYTES = 1 << 16
AT_ONCE = 16 << 20
"""Bytes of arrays, the smaller arrays first, that are compared when a file is opened: it takes a millisecond or two."""

MOST_TEXT, MOST_ARRAYS = 1 << 24, 1 << 12
"""Bytes of the JSON of a file, and arrays that it describes, at most: a prepared file cannot ask for all memory."""

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


@dataclass(frozen=True)
class ArraysFormat:
    """One kind of files of named arrays: how its files are recognised, and their names in messages.

    Parameters
    ----------
    magic : bytes
        The first 8 bytes of each file.
    version : int
        Files of other versions are refused.
    name : str
        What such a file is, with its article: "a shelf of books".
    advice : str
        How to make one: "fill one".
    again : str
        What to do where a file is damaged or of another version: "fill the shelf again".
    """

    magic: bytes
    version: int
    name: str
    advice: str
    again: str

    def matches(self, path: str | Path) -> bool:
        """Whether a file begins as files of this kind do."""
        try:
            with open_named(path) as file:
                return file.read(len(self.magic)) == self.magic
        except OSError:
            return False

    def write(self, path: Path, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Write a file where there is none yet; `header` becomes JSON, next to the description of the arrays."""
        with open(path, "wb") as out:
            self.write_to(out, header, arrays)

    def write_to(self, out: BinaryIO, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Write what `write` writes to a file that is open."""
        text = _described(header, {name: (array.dtype, array.shape) for name, array in arrays.items()})
        out.write(self._beginning(text, [found for array in arrays.values() for found in _checksums(array)]))
        for array in arrays.values():
            out.write(array.data)  # `tofile` does not say why it fails
            out.write(bytes(-array.nbytes % _PAGE))

    @contextlib.contextmanager
    def filled(
        self, path: Path, header: dict[str, Any], shapes: Mapping[str, tuple[Any, tuple[int, ...]]]
    ) -> Iterator[Filling]:
        """Like `write`, for arrays that are put into the file some values at a time in the block; it is synced then.

        So a file may be larger than memory. Where the system can, its room on the disk is taken at the beginning, so
        that a full disk is an error sooner.

        Parameters
        ----------
        path : path
            In an inner folder, see `store/folder.py`; there is nothing of this name yet. The file is removed if the
            block fails.
        header : dict
            Becomes JSON.
        shapes : dict of str to (dtype, shape)
            The arrays.

        Raises
        ------
        OSError
            If it cannot be written.
        """
        described = {name: (np.dtype(dtype), tuple(shape)) for name, (dtype, shape) in shapes.items()}
        text = _described(header, described)
        sizes = [int(np.prod(shape, dtype=object)) * dtype.itemsize for dtype, shape in described.values()]
        padded = [size + -size % _PAGE for size in sizes]
        start = len(self._beginning(text, [0] * sum(-(-size // BLOCK_BYTES) for size in padded)))
        holder = Folder.holding(path)
        file = holder.create(path.name)
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file, 0, start + sum(padded))
            else:
                os.ftruncate(file, start + sum(padded))
            mapped = np.frombuffer(mmap.mmap(file, 0, access=mmap.ACCESS_READ), np.uint8)
            arrays, places, place = {}, {}, start
            for (name, (dtype, shape)), size, whole in zip(described.items(), sizes, padded, strict=True):
                arrays[name], places[name] = mapped[place : place + size].view(dtype).reshape(shape), place
                place += whole
            yield Filling(file, arrays, places)
            checksums = [found for array in arrays.values() for found in _checksums(array)]
            _write_at(file, self._beginning(text, checksums), 0)
            os.fsync(file)
        except BaseException:
            holder.remove(path.name)
            raise
        finally:
            os.close(file)

    def _beginning(self, text: bytes, checksums: list[int]) -> bytes:
        """The preamble and the head of a file."""
        head = text + bytes(-len(text) % 8) + np.array(checksums, np.uint64).tobytes()
        head += bytes(-(_PREAMBLE.itemsize + len(head)) % _PAGE)
        fields = self.magic, BYTE_ORDER, self.version, len(text), len(checksums), checksum(head), 0
        preamble = np.array(fields, _PREAMBLE)
        preamble["preamble"] = checksum(preamble.tobytes()[:_FIELDS])
        return preamble.tobytes() + head

    def cut_short(self, path: str | Path) -> DamagedError:
        """The error for a file that ends too early."""
        return DamagedError(f"{path}: was cut short; {self.again}")

    def unreadable(self, path: str | Path) -> InputError:
        """The error for a header that is as it was written, but not by this package."""
        return InputError(f"{path}: its header cannot be read; {self.again}")

    def read_preamble(self, path: str | Path, start: bytes) -> np.void:
        """The first fields of a file, if this version reads it."""
        if start[: len(self.magic)] == self.magic and len(start) < _PREAMBLE.itemsize:
            raise self.cut_short(path)
        found = np.frombuffer(start.ljust(_PREAMBLE.itemsize, b"\0"), _PREAMBLE)[0]
        ours = found.copy()
        ours["magic"], ours["byte_order"], ours["version"] = self.magic, BYTE_ORDER, self.version
        sound = checksum(ours.tobytes()[:_FIELDS]) == found["preamble"]
        if sound and found.tobytes() == ours.tobytes():
            return found
        if sound:  # the file is of this version, but one of the three fields is not what it was
            raise changed(path)
        if found["magic"] != self.magic:
            raise InputError(f"{path}: is not {self.name}; {self.advice}")
        if found["byte_order"] == int.from_bytes(BYTE_ORDER.to_bytes(4, "little"), "big"):
            raise InputError(
                f"{path}: was written in another byte order than this machine's ({sys.byteorder}); {self.again} here"
            )
        if found["version"] != self.version and found["byte_order"] == BYTE_ORDER:
            age = "an earlier" if found["version"] < self.version else "a later"
            raise InputError(
                f"{path}: was made by {age} version, in format {found['version']}; this version reads format "
                f"{self.version}; {self.again}"
            )
        raise changed(path)


class Filling:
    """The arrays of a file while they are filled, which `ArraysFormat.filled` gives.

    They are written by calls: to write to a mapped file is to wait for each of its pages, and when it is synced all
    processors wait while each page is protected.

    Attributes
    ----------
    arrays : dict of str to array
        To be read alone. What was not put yet is 0.
    """

    def __init__(self, file: int, arrays: dict[str, np.ndarray], places: dict[str, int]) -> None:
        self.arrays, self._file, self._places = arrays, file, places

    def put(self, name: str, values: np.ndarray, start: int = 0) -> None:
        """Write values of an array, whose rows follow one another, from the value of a number on.

        Raises
        ------
        OSError
            If they cannot be written.
        """
        array = self.arrays[name]
        data = np.ascontiguousarray(values, array.dtype).reshape(-1)
        if not 0 <= start <= start + len(data) <= array.size:
            raise ValueError(f"{name} has {array.size} values, not {start + len(data)}")
        _write_at(self._file, data.view(np.uint8).data, self._places[name] + start * array.itemsize)


def _write_at(file: int, data: Any, place: int) -> None:
    """Write bytes at a place of a file: a call may write fewer than all, and macOS refuses 2 GB."""
    left = memoryview(data)
    while len(left):
        written = os.pwrite(file, left[: 1 << 30], place)
        left, place = left[written:], place + written


def _described(header: dict[str, Any], arrays: Mapping[str, tuple[np.dtype, tuple[int, ...]]]) -> bytes:
    """The JSON of a header, and of what the arrays are."""
    described = {name: [dtype.str, shape] for name, (dtype, shape) in arrays.items()}
    return json.dumps({**header, "arrays": described}).encode()


def _checksums(array: np.ndarray) -> Iterator[int]:
    """The checksum of each block of an array, of the last block with the zeros that follow the array."""
    data = array.reshape(-1).view(np.uint8)
    for start in range(0, len(data), BLOCK_BYTES):
        block = data[start : start + BLOCK_BYTES]
        yield checksum(block, bytes(-len(block) % _PAGE))


@dataclass(frozen=True)
class Limits:
    """Limits of the values of an array, whatever its file says: code uses them as places without another check.

    A block is compared with its limits when it is compared with its checksum. So no value beyond them reaches compiled
    code, also where whoever prepared the file made its checksums right.

    Parameters
    ----------
    least, most : int
        The least and the greatest value.
    ascending : int, default 0
        Length of each ascending run of values; 0 if the order is any.
    strictly : bool, default False
        Whether values that ascend are distinct.
    whole : bool, default False
        Whether the first value is the least, and the last one the greatest: as of offsets.
    """

    least: int
    most: int
    ascending: int = 0
    strictly: bool = False
    whole: bool = False

    def admit(self, values: np.ndarray, before: Any, place: int, size: int) -> bool:
        """Return whether some values of an array may be as they are.

        Parameters
        ----------
        values : array
            They follow one another.
        before : number or None
            The value before the first of them; None if there is none.
        place, size : int
            Place of the first of them in the array, and how many values the array has.
        """
        if not len(values):
            return not self.whole or size > 0
        if int(values.min()) < self.least or int(values.max()) > self.most:
            return False
        if self.whole and place == 0 and values[0] != self.least:
            return False
        if self.whole and place + len(values) == size and values[-1] != self.most:
            return False
        if not self.ascending:
            return True
        if before is not None:
            values, place = np.concatenate([np.array([before], values.dtype), values]), place - 1
        down = values[1:] <= values[:-1] if self.strictly else values[1:] < values[:-1]
        falls = np.flatnonzero(down) + place + 1
        return not (falls % self.ascending).any()


class ArraysFile:
    """An open file of named arrays.

    Parameters
    ----------
    path : path
        A file that `ArraysFormat.write` wrote.
    kind : ArraysFormat
        The kind that the file has to be of.
    at_once : int, default None
        Bytes of the smaller arrays that are compared with their checksums now; `AT_ONCE` unless given.
    inside : bool, default False
        Whether the file lies in an inner folder of a folder that anybody may have prepared: then no link is followed.
    limits : callable, optional
        Takes the arrays, whose values may not be used yet, and returns the limits of arrays that have limits, by name.
        Raises ValueError if a file of this kind cannot have these arrays.

    Attributes
    ----------
    header : dict
        The caller's header, and "arrays".
    arrays : dict of str to array
        Mapped from the file. Values that were not verified may be anything.
    num_left : int
        Number of blocks that were not compared yet.

    Raises
    ------
    InputError
        If there is no such file, or it is of another kind, of another version or of another byte order.
    DamagedError
        If it is not as it was written, as far as was read here.
    """

    def __init__(
        self,
        path: str | Path,
        kind: ArraysFormat,
        at_once: int | None = None,
        *,
        inside: bool = False,
        limits: Callable[[dict[str, np.ndarray]], dict[str, Limits]] | None = None,
    ) -> None:
        self.path, self._kind = path, kind
        at_once = AT_ONCE if at_once is None else at_once
        try:
            with open_named(path) if not inside else Folder.holding(Path(path)).open(Path(path).name) as file:
                preamble = kind.read_preamble(path, file.read(_PREAMBLE.itemsize))
                size = os.fstat(file.fileno()).st_size
                num_text, num_blocks = int(preamble["text"]), int(preamble["blocks"])
                if num_text > MOST_TEXT or num_blocks > size // BLOCK_BYTES + MOST_ARRAYS:
                    raise kind.cut_short(path) if num_text <= MOST_TEXT else kind.unreadable(path)
                start = _PREAMBLE.itemsize + num_text + -num_text % 8 + 8 * num_blocks
                start += -start % _PAGE
                head = file.read(start - _PREAMBLE.itemsize) if start <= size else b""
                if start > size:
                    raise kind.cut_short(path)
                if checksum(head) != preamble["head"]:
                    raise changed(path)
                # Copied on write: nobody writes, and compiled code has one form for arrays that may be written to.
                self._memory = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY)
        except FileNotFoundError:
            raise InputError(f"{path}: no such file") from None
        except InputError:
            raise
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}; name {kind.name}") from None
        self._checksums = np.frombuffer(head, np.uint64, num_blocks, num_text + -num_text % 8)
        self._done = np.zeros(num_blocks, np.uint8)
        self.num_left, self._counting = num_blocks, threading.Lock()
        self._blocks: dict[str, range] = {}
        self.header, described = self._parse(head[:num_text])
        self.arrays = self._map(described, start, size)
        try:
            self._limits = {} if limits is None else limits(self.arrays)
        except (KeyError, ValueError):
            raise kind.unreadable(path) from None
        total = 0
        for name in sorted(self.arrays, key=lambda name: self.arrays[name].nbytes):
            if (total := total + self.arrays[name].nbytes) <= at_once:
                self.verify(name)

    def _parse(self, text: bytes) -> tuple[dict[str, Any], dict[str, tuple[np.dtype, tuple[int, ...]]]]:
        """Return the header, and the dtype and shape of each array that it describes."""
        described: dict[str, tuple[np.dtype, tuple[int, ...]]] = {}
        try:
            header = json.loads(text)
            if len(header["arrays"]) > MOST_ARRAYS:
                raise ValueError
            for name, (dtype, shape) in header["arrays"].items():
                described[name] = _KINDS[dtype], tuple(shape)
                if not all(type(length) is int and 0 <= length < 2**48 for length in shape) or len(shape) not in (1, 2):
                    raise ValueError
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
            raise self._kind.unreadable(self.path) from None
        return header, described

    def _map(
        self, described: dict[str, tuple[np.dtype, tuple[int, ...]]], start: int, size: int
    ) -> dict[str, np.ndarray]:
        """Map the arrays that the header describes; they begin at byte `start` of a file of `size` bytes."""
        self._places, end, number = {}, start, 0
        for name, (dtype, shape) in described.items():
            num_bytes = int(np.prod(shape, dtype=object)) * dtype.itemsize
            padded = num_bytes + -num_bytes % _PAGE
            self._places[name] = slice(end, end + num_bytes)
            self._blocks[name] = range(number, number + -(-padded // BLOCK_BYTES))
            end, number = end + padded, self._blocks[name].stop
        if number != len(self._checksums):
            raise self._kind.unreadable(self.path)
        if size != end:
            raise self._kind.cut_short(self.path) if size < end else changed(self.path)
        self._bytes = np.frombuffer(self._memory, np.uint8)
        return {
            name: self._bytes[self._places[name]].view(dtype).reshape(shape)
            for name, (dtype, shape) in described.items()
        }

    def check_size(self) -> None:
        """Check that the file is as large as when it was opened: what was cut off of a mapped file cannot be read.

        Raises
        ------
        DamagedError
            If it was cut.
        """
        if self._memory.size() < len(self._bytes):
            raise self._kind.cut_short(self.path)

    def verify(self, name: str, starts: np.ndarray | None = None, stops: np.ndarray | None = None) -> None:
        """Compare what a caller is about to read with its checksums: all of an array, or some runs of its values.

        Parameters
        ----------
        name : str
            Which array.
        starts, stops : arrays of int64, optional
            Numbers of the first value of each run and of the one after its last; an array of two dimensions is numbered
            row after row. Runs that reach beyond the array are cut off there.

        Raises
        ------
        DamagedError
            If a block is not as it was written.
        """
        if self.num_left == 0:
            return
        done = self.sound(name)
        if starts is None or stops is None:
            self.verify_blocks(name, np.flatnonzero(done == 0))
        else:
            self.verify_blocks(name, blocks_of_runs(starts, stops, self.arrays[name].itemsize, BLOCK_BYTES, done))

    def sound(self, name: str) -> np.ndarray:
        """Whether each block of an array was compared: uint8, which also shows blocks that are compared later."""
        blocks = self._blocks[name]
        return self._done[blocks.start : blocks.stop]

    def verify_blocks(self, name: str, numbers: np.ndarray) -> None:
        """Compare some blocks of an array, given by number.

        Raises
        ------
        DamagedError
            If one is not as it was written.
        """
        if len(numbers):
            self.check_size()
        place, first = self._places[name], self._blocks[name].start
        end = place.stop + -place.stop % _PAGE
        for number in numbers.tolist():
            start = place.start + number * BLOCK_BYTES
            if checksum(self._bytes[start : min(start + BLOCK_BYTES, end)]) != self._checksums[first + number]:
                raise changed(self.path)
            if name in self._limits and not self._within_limits(name, number):
                raise DamagedError(
                    f"{self.path}: its array {name!r} holds values that it cannot have; {self._kind.again}"
                )
            with self._counting:  # of several threads
                self.num_left -= not self._done[first + number]
                self._done[first + number] = 1

    def _within_limits(self, name: str, number: int) -> bool:
        """Return whether the values of a block of an array are within its limits."""
        values = self.arrays[name].reshape(-1)
        step = BLOCK_BYTES // values.itemsize
        first = number * step
        before = values[first - 1] if first else None
        return self._limits[name].admit(values[first : first + step], before, first, len(values))

    def verify_rows(self, offsets: str, values: str, numbers: np.ndarray) -> None:
        """Compare some rows of a ragged array, and the offsets that say where they are, with their checksums.

        Parameters
        ----------
        offsets, values : str
            Names of two arrays: row i is values[offsets[i]:offsets[i + 1]].
        numbers : array of int64
            Numbers of the rows.

        Raises
        ------
        DamagedError
            If a block is not as it was written.
        """
        if self.num_left == 0:
            return
        self.verify(offsets, numbers, numbers + 2)
        places = self.arrays[offsets]
        self.verify(values, places[numbers], places[numbers + 1])

    def verify_all(self) -> None:
        """Compare all that was not compared before.

        Raises
        ------
        DamagedError
            If a block is not as it was written.
        """
        for name in self.arrays:
            self.verify(name)
