"""The records of a WARC file, one after another, each with the bytes of the file that hold it.

A record is a header that ends with a blank line, as many bytes as its Content-Length says, and two line ends. In a
compressed file each record is a gzip member, as the standard recommends; other compressed files are read as well. A
file that breaks off, a member that is damaged, a length that is wrong: each is found before the record is used, and
reading can go on where the next record begins. FastWARC 2.0.1, which parses what is in a record, ends without an error
where a compressed file breaks off, so records are divided here.

Source: ISO 28500:2017 (WARC/1.1), section 4 and annex D.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from typing import Any

from ..records import dataclass
from ..report import count
from .ahead import check_stopped

CHUNK = 1 << 18
"""Bytes read, or unpacked, at a time."""

MAX_HEADER = 1 << 20
"""Bytes of the longest header of a record."""

BEGIN, END = b"WARC/", b"\r\n\r\n"
_LENGTH = re.compile(rb"^content-length[ \t]*:[ \t]*([^\r\n]*?)[ \t]*\r$", re.IGNORECASE | re.MULTILINE)
_NUMBER = re.compile(rb"\d{1,18}")
_RECORD = re.compile(rb"WARC/\d\.\d+\r\n(?=[A-Za-z-]+:)")
_MAGIC = re.compile(rb"\x1f\x8b\x08")
_OVERLAP = 64
"""Bytes that the longest match of a pattern may need from the next chunk."""


class DamagedRecordError(Exception):
    """A record that cannot be read.

    Parameters
    ----------
    place : int
        The byte of the file at which it, or the damaged gzip member, begins.
    problem : str
        What is wrong, with the record as the subject.
    """

    def __init__(self, place: int, problem: str) -> None:
        super().__init__(place, problem)
        self.place, self.problem = place, problem


@dataclass(frozen=True)
class Framed:
    """A record of a file.

    Parameters
    ----------
    start : int
        The byte of the file at which it begins or, if it is compressed, the gzip member that holds its first byte.
    stop : int or None
        Where its bytes, or those of its members, end; None where these hold something else as well.
    header : bytes
        With the blank line that ends it.
    length : int
        Bytes of its content.
    content : bytes or None
        None if it was passed over.
    """

    start: int
    stop: int | None
    header: bytes
    length: int
    content: bytes | None


class Records:
    """The records of an open file, which is seekable.

    Memory: the content of one record, if it is wanted, and two chunks.
    """

    def __init__(self, file: Any) -> None:
        self._file = file
        self.packed = _MAGIC.match(file.read(3)) is not None
        self._input = self._buffer = b""  # what was read and not unpacked, and what was unpacked
        self._at = 0  # how much of the buffer was used
        self._member = self._next = 0  # where the member, or the buffer, and the following one begin
        self._first = False  # whether the buffer is the first of its member
        self._inflate: Any = None  # unpacks the member, unless that has ended
        self._start, self._inside = 0, False  # of the record, and whether the next byte is one of it
        self._restart: int | None = None  # where to go on, if that is known
        self._seek(0)

    def next(self, wanted: Callable[[bytes, int], bool]) -> Framed | None:
        """The next record; None at the end of the file.

        Parameters
        ----------
        wanted : callable
            Says of the header and the length of the content whether this is held.

        Raises
        ------
        DamagedRecordError
            If the record cannot be read; `resume` goes on after it.
        """
        self._inside = False
        while True:
            if self._at == len(self._buffer) and not self._more():
                return None
            if self._buffer[self._at] not in b"\r\n":  # blank lines between records
                break
            self._at += 1
        self._start, alone = self.place, self._first and self._at == 0
        self._inside = True
        header = self._header()
        found = _LENGTH.findall(header)
        if len(found) != 1 or not _NUMBER.fullmatch(found[0]):  # as where two headers were joined
            problem = "has several Content-Lengths" if len(found) > 1 else "has no Content-Length that is a number"
            raise DamagedRecordError(self._start, problem if found else "has no Content-Length")
        length = int(found[0])
        self._check_extent(length)
        content = b"".join(self._parts(length)) if wanted(header, length) else None
        held = len(content) if content is not None else sum(map(len, self._parts(length)))
        if held < length:
            raise DamagedRecordError(self._start, f"is cut off {count(length - held, 'byte')} before its end")
        self._check_end(b"".join(self._parts(len(END))))
        if not self.packed:
            return Framed(self._start, self.place, header, length, content)
        while self._at == len(self._buffer) and self._inflate is not None:
            self._unpack()  # the end of the member, with its checksum
        alone = alone and self._at == len(self._buffer)
        return Framed(self._start, self._next if alone else None, header, length, content)

    def resume(self) -> bool:
        """Go on where a record begins after the damaged one; False if none does."""
        place = self._restart
        if place is None and self.packed:
            place = self._find(self.place + 1, _MAGIC, self._begins_record)
        elif place is None:
            place = self._find(self._start + 1, _RECORD, lambda _: True)
        if place is not None:
            self._seek(place)
        return place is not None

    # ----------------------------------------------------------------------------------------------- parts of a record

    def _header(self) -> bytes:
        """The header of a record, with the blank line after it."""
        header, end = b"", -1
        while end < 0:
            if self._at == len(self._buffer) and not self._more():
                raise DamagedRecordError(self._start, "is cut off in its header")
            before, size = self._at, len(header)
            if size == 0 and (end := self._buffer.find(END, before)) >= 0:  # by far the most frequent case
                self._at = end + len(END)
                header = self._buffer[before : self._at]
            else:
                header += self._buffer[before:]
                end = header.find(END)
                self._at = len(self._buffer) if end < 0 else before + end + len(END) - size
                header = header if end < 0 else header[: end + len(END)]
            if header[: len(BEGIN)] != BEGIN[: len(header)]:
                raise DamagedRecordError(self._start, f"is not a WARC record: it begins with {header[:16]!r}")
            if end < 0 and len(header) > MAX_HEADER:
                raise DamagedRecordError(self._start, f"has a header of more than {MAX_HEADER:,} bytes")
        return header

    def _check_extent(self, length: int) -> None:
        """Raise DamagedRecordError if a plain file has no end of a record where its length says.

        So a wrong length costs no more than a look at one place, however many records the file has. `next` compares
        the end again, after the content.
        """
        if self.packed or self._at + length + len(END) <= len(self._buffer):
            return
        place = self.place
        self._file.seek(0, 2)
        size = self._file.tell()
        if place + length > size:
            raise DamagedRecordError(self._start, f"is cut off {count(place + length - size, 'byte')} before its end")
        self._file.seek(place + length)
        self._check_end(self._file.read(len(END)))
        self._file.seek(place + len(self._buffer) - self._at)

    def _check_end(self, end: bytes) -> None:
        """Raise DamagedRecordError unless these bytes end a record."""
        if end != END:
            cut = END.startswith(end)
            raise DamagedRecordError(self._start, "is cut off" if cut else "is longer or shorter than it says")

    def _parts(self, size: int) -> Any:
        """The next bytes of a record, in parts; fewer where the file ends."""
        while size and (self._at < len(self._buffer) or self._more()):
            check_stopped()
            part = self._buffer[self._at : self._at + size]
            self._at += len(part)
            size -= len(part)
            yield part

    # ----------------------------------------------------------------------------------------------- bytes of the file

    def _seek(self, place: int) -> None:
        """Go on at a byte of the file at which a record, or the gzip member of one, begins."""
        self._file.seek(place)
        self._input = self._buffer = b""
        self._at, self._member, self._next, self._start = 0, place, place, place
        self._first, self._inflate, self._restart = False, None, None

    @property
    def place(self) -> int:
        """The next byte of the file or, if it is compressed, where the member begins that holds the next byte."""
        return self._member if self.packed else self._member + self._at

    def _more(self) -> bool:
        """Fill the buffer after all of it was used; False at the end of the file."""
        self._at, size = 0, len(self._buffer)
        self._buffer = b""
        if not self.packed:
            self._member += size
            self._buffer = self._file.read(CHUNK)
            return bool(self._buffer)
        while not self._buffer:
            if self._inflate is None:
                if not self._begin_member():
                    return False
                while self._inflate is not None and len(self._buffer) < len(BEGIN):
                    self._unpack()
                self._first = True
                if self._inside and self._buffer.startswith(BEGIN):
                    self._restart = self._member
                    raise DamagedRecordError(self._start, "is cut off: its gzip member ends, and another record begins")
            else:
                self._unpack()
                self._first = False
        return True

    def _begin_member(self) -> bool:
        """Begin to unpack the member that follows; False at the end of the file."""
        zeros = 0
        while True:
            self._input = self._input or self._file.read(CHUNK)
            if not self._input:
                return False
            rest = self._input.lstrip(b"\0")
            zeros += len(self._input) - len(rest)
            self._input = rest
            if rest:
                break
        if zeros:  # which only the end of a file may hold
            self._member = self._start = self._next
            raise DamagedRecordError(self._next, f"is missing: its place holds {count(zeros, 'zero')}")
        self._member, self._inflate = self._next, zlib.decompressobj(31)
        return True

    def _unpack(self) -> None:
        """Unpack more of the member, after what is in the buffer; at its end, compare the checksum."""
        self._input = self._input or self._file.read(CHUNK)
        if not self._input:
            raise DamagedRecordError(self._member, "is cut off: the file ends in its gzip member")
        try:
            self._buffer += self._inflate.decompress(self._input, CHUNK)
        except zlib.error as error:
            reason = str(error).partition(": ")[2] or str(error)
            raise DamagedRecordError(self._member, f"has a damaged gzip member ({reason})") from None
        self._input = self._inflate.unconsumed_tail
        if self._inflate.eof:
            self._input = self._inflate.unused_data
            self._next = self._file.tell() - len(self._input)
            self._inflate = None

    def _find(self, start: int, pattern: re.Pattern[bytes], fits: Callable[[int], bool]) -> int | None:
        """The first match of a pattern from a byte of the file on that fits."""
        held = b""
        while True:
            check_stopped()
            self._file.seek(start + len(held))
            chunk = self._file.read(CHUNK)
            held += chunk
            for match in pattern.finditer(held):
                if fits(start + match.start()):
                    return start + match.start()
            if not chunk:
                return None
            start, held = start + max(0, len(held) - _OVERLAP), held[-_OVERLAP:]

    def _begins_record(self, place: int) -> bool:
        """Whether a gzip member begins at a byte of the file, and a record in it."""
        self._file.seek(place)
        try:
            return zlib.decompressobj(31).decompress(self._file.read(1 << 14), len(BEGIN)) == BEGIN
        except zlib.error:
            return False
