"""Decode pages of Parquet into slabs of text, without Arrow: many pages of one row group can be decoded at once.

A column chunk is a sequence of pages, each after its header: perhaps one with a dictionary, then pages of values. The
values of a page are either stored one after another, each after its length (PLAIN), or are places in the dictionary.
Either way a page is decompressed, the places of its values are found, and the values are copied one after another.

This module decodes columns of strings or bytes outside of lists and structs, in these two encodings, compressed by
Zstandard, Snappy, LZ4 or gzip, or not compressed. Everything else, and everything that looks damaged, raises
`UnfitPagesError`. Arrow then reads those rows, and its answer counts.

Source: README.md, Encodings.md, Compression.md and parquet.thrift of apache/parquet-format.
"""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.types import is_primitive

from neardup_gpu.kernels import length_prefixed, packed_runs
from neardup_gpu.kernels._ragged import copy_rows

from ..log import log
from . import thrift
from .ahead import check_stopped
from .batches import ROW_BYTES
from .columns import is_contiguous, is_view, plain_type

WINDOW_BYTES = 4 << 20
"""Bytes of a file that are read at a time, unless a page is larger."""

_HEADER_BYTES = (1 << 10, 1 << 14, 16 << 20)
"""Bytes in which a page's header is looked for, one after another: it may hold statistics. Arrow has the same bound."""

_PAGE_BYTES = 1 << 10
"""About what a page takes in memory besides its bytes."""

_RUN_ROWS = 1 << 14
"""Rows whose places are held at a time: few bytes of a page can stand for many rows."""

_DATA, _DICTIONARY, _DATA_V2 = 0, 2, 3  # types of pages
_PLAIN, _PLAIN_DICTIONARY, _RLE, _BIT_PACKED, _RLE_DICTIONARY = 0, 2, 3, 4, 8  # encodings
_KNOWN = {_PLAIN, _PLAIN_DICTIONARY, _RLE, _BIT_PACKED, _RLE_DICTIONARY}
_ENCODINGS = {5: "DELTA_BINARY_PACKED", 6: "DELTA_LENGTH_BYTE_ARRAY", 7: "DELTA_BYTE_ARRAY", 9: "BYTE_STREAM_SPLIT"}
_CODECS = {0: None, 1: "snappy", 2: "gzip", 6: "zstd", 7: "lz4_raw"}
_OTHER_CODECS = {3: "LZO", 4: "Brotli", 5: "LZ4 in Hadoop's framing"}
_BYTE_ARRAY = 6
_NUMBERS = {_DATA: (5, 4), _DICTIONARY: (7, 2), _DATA_V2: (8, 6)}
"""For each type of page, the field of its own header, and up to which field of that there are numbers."""
_ROW_GROUPS, _COLUMNS = 4, 1  # fields of the footer, and of a row group

_DAMAGE = (LookupError, OSError, RecursionError, TypeError, ValueError, zlib.error, pa.ArrowException)
"""Errors that damaged data lead to."""


class UnfitPagesError(ValueError):
    """Pages that are not decoded here; the message says why."""


class ColumnChunk(NamedTuple):
    """The pages of one column in one row group.

    Parameters
    ----------
    begin, end : int
        Where they lie in the file.
    codec : str or None
        What they are compressed with, by the name that pyarrow has for it.
    is_optional : bool
        Whether values may be null.
    num_rows : int
        Number of values, nulls among them.
    num_bytes : int
        About their size before compression.
    """

    begin: int
    end: int
    codec: str | None
    is_optional: bool
    num_rows: int
    num_bytes: int


class StoredPage(NamedTuple):
    """A page as it is stored.

    Parameters
    ----------
    header : dict
        Fields of its PageHeader, by number.
    details : dict
        Fields of the header of its type.
    data : pyarrow.Buffer
        What follows the header.
    """

    header: dict[int, Any]
    details: dict[int, Any]
    data: pa.Buffer

    @property
    def num_rows(self) -> int:
        """Number of values, nulls among them."""
        return self.details[1]

    @property
    def num_bytes(self) -> int:
        """Size before compression."""
        return self.header[2]


class Dictionary(NamedTuple):
    """Values that places in pages stand for: value i is data[begins[i]:ends[i]]."""

    data: np.ndarray
    begins: np.ndarray
    ends: np.ndarray


class PageBlock(NamedTuple):
    """Consecutive pages of a row group.

    Parameters
    ----------
    group : int
        Number of the row group.
    first, num_rows : int
        Which of its rows.
    num_bytes : int
        About the size of their text, each row counted with `ROW_BYTES` more. Places in a dictionary may stand for more.
    pages : iterable of StoredPage
        Raises UnfitPagesError if the next page is not found.
    chunk : ColumnChunk
    dictionary : Dictionary, optional
        Unless it is one of the pages.
    """

    group: int
    first: int
    num_rows: int
    num_bytes: int
    pages: Iterable[StoredPage]
    chunk: ColumnChunk
    dictionary: Dictionary | None = None


# -------------------------------------------------------------------------------------------------- column chunks


class PagedColumn(NamedTuple):
    """A column whose pages are decoded here.

    Parameters
    ----------
    name : str
    kind : pyarrow.DataType
        Strings or bytes, without views.
    chunks : list of ColumnChunk
        Its pages in each row group.
    others : list of str
        The other columns that are read.
    """

    name: str
    kind: pa.DataType
    chunks: list[ColumnChunk]
    others: list[str]

    def block(self, file: Any, group: int, num_rows: int) -> PageBlock:
        """Return a row group, whose pages are read when they are needed."""
        chunk = self.chunks[group]
        num_bytes = max(0, chunk.num_bytes) + ROW_BYTES * num_rows
        return PageBlock(group, 0, num_rows, num_bytes, pages_of(file, chunk, num_rows), chunk)

    def blocks(self, file: Any, group: int, num_rows: int, most_bytes: int) -> Iterator[PageBlock]:
        """Yield a row group in blocks of pages that are in memory, each of about `most_bytes` before compression.

        Raises
        ------
        UnfitPagesError
            If the next page is not found.
        """
        whole = self.block(file, group, num_rows)
        dictionary: Dictionary | None = None
        pending: list[StoredPage] = []
        first = size = 0

        def block() -> PageBlock:
            rows = sum(page.num_rows for page in pending)
            about = size + (0 if dictionary is None else len(dictionary.data))
            return PageBlock(group, first, rows, about, pending, whole.chunk, dictionary)

        for page in whole.pages:
            if page.header[1] == _DICTIONARY:
                if pending or dictionary is not None:
                    raise UnfitPagesError("its dictionary is not its first page")
                dictionary = dictionary_of(page, whole.chunk.codec)
                continue
            more = page.num_bytes + ROW_BYTES * page.num_rows
            if pending and size + more > most_bytes:
                yield (found := block())
                first, pending, size = first + found.num_rows, [], 0
            pending.append(page)
            size += more + _PAGE_BYTES
        if pending:
            yield block()


def remark(reason: UnfitPagesError) -> None:
    """Log once why a large row group is not decoded by all threads."""
    log.info("one thread decodes each row group of Parquet: %s", reason, extra={"once": True})


def find_column(file: pq.ParquetFile, schema: pa.Schema, footer: bytes, names: list[str]) -> PagedColumn | None:
    """Return which of some columns is decoded here: the largest one of strings or bytes; None if all are numbers.

    Parameters
    ----------
    file : pyarrow.parquet.ParquetFile
    schema : pyarrow.Schema
        Its columns.
    footer : bytes
        Its metadata.
    names : list of str

    Raises
    ------
    UnfitPagesError
        If no column can be decoded here.
    """
    kinds: dict[int, pa.DataType] = {}
    for number in range(len(file.schema)):
        column = file.schema.column(number)
        name = column.name
        if name != column.path or name not in names or schema.names.count(name) != 1:
            continue
        kind = schema.field(name).type
        kind = plain_type(kind) if is_view(kind) else kind
        is_flat = column.max_repetition_level == 0 and column.max_definition_level <= 1
        if is_flat and column.physical_type == "BYTE_ARRAY" and is_contiguous(kind):
            kinds[number] = kind
    if not kinds:
        others = [name for name in names if name not in schema.names or not is_primitive(schema.field(name).type)]
        if others:
            raise UnfitPagesError(f"column {others[0]!r} holds its text in a dictionary, lists or structs")
        return None
    largest = min(kinds)
    try:
        groups = list(_chunks(footer, kinds))
        largest = max(kinds, key=lambda number: sum(group[number][3][6] for group in groups))
        column = file.schema.column(largest)
        chunks = [_chunk(group[largest], column.max_definition_level == 1) for group in groups]
    except _DAMAGE as error:
        raise UnfitPagesError(f"column {file.schema.column(largest).name!r}: {error}") from None
    return PagedColumn(column.name, kinds[largest], chunks, [name for name in names if name != column.name])


def _chunks(footer: bytes, columns: Container[int]) -> Iterator[dict[int, dict[int, Any]]]:
    """Yield, for each row group of a footer, the fields of ColumnChunk of some columns."""
    length, _, place = thrift.read_list(footer, thrift.place_of(footer, _ROW_GROUPS))
    for _ in range(length):
        number, found = 0, {}
        while footer[place]:
            number, kind, place = thrift.read_field(footer, place, number)
            if number != _COLUMNS:
                place = thrift.end_of(footer, place, kind)
                continue
            count, kind, place = thrift.read_list(footer, place)
            for column in range(count):
                if column in columns:
                    found[column], place = thrift.read_struct(footer, place)
                else:
                    place = thrift.end_of(footer, place, kind)
        place += 1
        yield found


def _chunk(column: dict[int, Any], is_optional: bool) -> ColumnChunk:
    metadata = column[3]
    begin, dictionary, codec = metadata[9], metadata.get(11, 0), metadata[4]
    begin = dictionary if 0 < dictionary < begin else begin
    others = sorted(set(metadata[2]) - _KNOWN)
    if metadata[1] != _BYTE_ARRAY or 1 in column or 8 in column or min(begin, metadata[7]) < 0:
        raise UnfitPagesError("its pages have another form")  # such as those in other files, and encrypted ones
    if others:
        raise UnfitPagesError(f"its encoding is {_ENCODINGS.get(others[0], others[0])}")
    if codec not in _CODECS:
        raise UnfitPagesError(f"it is compressed by {_OTHER_CODECS.get(codec, codec)}")
    return ColumnChunk(begin, begin + metadata[7], _CODECS[codec], is_optional, metadata[5], metadata[6])


def pages_of(file: Any, chunk: ColumnChunk, num_rows: int) -> Iterator[StoredPage]:
    """Read the pages of a column chunk, up to the last one of `num_rows` rows.

    Raises
    ------
    UnfitPagesError
        If they are not pages of this number of rows.
    """
    if num_rows != chunk.num_rows:
        raise UnfitPagesError("it has another number of values")
    place, rows, window = chunk.begin, 0, WINDOW_BYTES
    while rows < num_rows:
        check_stopped()
        left = chunk.end - place
        file.seek(place)
        read = file.read_buffer(min(window, left))
        used = 0
        while rows < num_rows and (found := _page(read, used)) is not None:
            page, used = found
            rows += 0 if page.header[1] == _DICTIONARY else page.num_rows
            if rows > num_rows:
                raise UnfitPagesError("its pages hold too many rows")
            yield page
        if rows < num_rows and used == 0 and len(read) < window:
            raise UnfitPagesError("its pages end too soon")
        place, window = place + used, WINDOW_BYTES if used else 2 * window


def _page(read: pa.Buffer, place: int) -> tuple[StoredPage, int] | None:
    """Return the page at a place, and where it ends; None if that is beyond what was read."""
    for most in _HEADER_BYTES:
        try:
            header, size = thrift.read_struct(read.slice(place, min(len(read) - place, most)).to_pybytes(), 0)
            break
        except IndexError:
            continue
        except (KeyError, ValueError, RecursionError):
            raise UnfitPagesError("a page has another header") from None
    else:
        return None
    try:
        field, most = _NUMBERS[header[1]]
        details = header[field]
        numbers = [header[2], header[3], *(details[number] for number in range(1, most + 1))]
    except (LookupError, TypeError):
        numbers = [None]
    if any(type(number) is not int or number < 0 for number in numbers):
        raise UnfitPagesError("a page has another header")
    begin, end = place + size, place + size + header[3]
    return None if end > len(read) else (StoredPage(header, details, read.slice(begin, header[3])), end)


# ---------------------------------------------------------------------------------------------------------- pages


def _unpacked(data: pa.Buffer, size: int, codec: str | None) -> pa.Buffer:
    """Decompress data to exactly this size, as bytes that pyarrow does not fill keep what was in memory before."""
    if size == 0 and len(data) == 0:
        return data
    if codec is None:
        unpacked = data
    elif codec == "gzip":
        stream = zlib.decompressobj(wbits=31)
        unpacked = pa.py_buffer(stream.decompress(data, size + 1))
        if not stream.eof or stream.unused_data:
            raise UnfitPagesError("a page has another size")
    else:
        stated = _stated_size(data.slice(0, min(len(data), 18)).to_pybytes(), codec)
        if stated not in (None, size):
            raise UnfitPagesError("a page has another size")
        unpacked = pa.Codec(codec).decompress(data, size)
        if stated is None and _fits(data, size - 1, codec):
            raise UnfitPagesError("a page has another size")
    if len(unpacked) != size:
        raise UnfitPagesError("a page has another size")
    return unpacked


def _fits(data: pa.Buffer, size: int, codec: str) -> bool:
    """Return whether data have at most this size without their compression."""
    try:
        pa.Codec(codec).decompress(data, max(0, size))
    except (OSError, pa.ArrowException):
        return False
    return size >= 0


def _stated_size(head: bytes, codec: str) -> int | None:
    """Return the size that compressed data state, which their decompression checks; None if they state none.

    `head` is how they begin.
    """
    if codec == "snappy":
        return thrift.unsigned(head, 0)[0]
    if codec == "zstd" and head[:4] == b"\x28\xb5\x2f\xfd":
        flags = head[4]
        is_single = flags >> 5 & 1
        place = 6 - is_single + (0, 1, 2, 4)[flags & 3]
        length = (is_single, 2, 4, 8)[flags >> 6]
        if length:
            return int.from_bytes(head[place : place + length], "little") + (256 if length == 2 else 0)
    return None


def _checked(page: StoredPage) -> pa.Buffer:
    if 4 in page.header and zlib.crc32(page.data) != page.header[4] & 0xFFFFFFFF:
        raise UnfitPagesError("a page has another checksum")
    return page.data


def _bytes(data: pa.Buffer) -> np.ndarray:
    return np.frombuffer(data, np.uint8)


def dictionary_of(page: StoredPage, codec: str | None) -> Dictionary:
    """Decode the page of a dictionary.

    Raises
    ------
    UnfitPagesError
        If it is damaged.
    """
    if page.details[2] not in (_PLAIN, _PLAIN_DICTIONARY):
        raise UnfitPagesError("the encoding of its dictionary is another one")
    with _decoding():
        data = _bytes(_unpacked(_checked(page), page.num_bytes, codec))
        if page.num_rows * 4 > len(data):
            raise UnfitPagesError("its dictionary has more values than bytes")
        places = length_prefixed.cpu(data, 0, page.num_rows)
    return Dictionary(data, places[:-1] + 4, places[1:])


@contextlib.contextmanager
def _decoding() -> Iterator[None]:
    """Turn errors of damaged data into `UnfitPagesError`."""
    try:
        yield
    except _DAMAGE as error:
        raise error if isinstance(error, UnfitPagesError) else UnfitPagesError(f"a page is damaged ({error})") from None


class _PageRows(NamedTuple):
    """Consecutive rows of a page: row i is data[begins[i]:ends[i]], and null where `valid` says so."""

    data: np.ndarray
    begins: np.ndarray
    ends: np.ndarray
    valid: np.ndarray | None


def _runs(page: StoredPage, chunk: ColumnChunk, dictionary: Dictionary | None) -> Iterator[_PageRows]:
    """Yield the rows of a page of values, at most `_RUN_ROWS` at a time."""
    details = page.details
    stored, is_second = _checked(page), page.header[1] == _DATA_V2
    encoding, size = details[4 if is_second else 2], page.num_bytes
    levels = np.empty(0, np.uint8)
    if is_second:
        first, length = details[6], details[5]
        if first + length > min(len(stored), size) or details[3] != page.num_rows:
            raise UnfitPagesError("levels of a page are longer than the page, or its rows are other ones")
        levels = _bytes(stored)[first : first + length]
        codec = chunk.codec if details.get(7, True) else None
        data = _bytes(_unpacked(stored.slice(first + length), size - first - length, codec))
    else:
        data = _bytes(_unpacked(stored, size, chunk.codec))
        if chunk.is_optional:
            length = int.from_bytes(data[:4].tobytes(), "little")
            if details[3] != _RLE or 4 + length > len(data):
                raise UnfitPagesError("levels of a page are longer than the page, or have another encoding")
            levels, data = data[4 : 4 + length], data[4 + length :]
    if encoding not in (_PLAIN, _PLAIN_DICTIONARY, _RLE_DICTIONARY) or (encoding != _PLAIN and dictionary is None):
        raise UnfitPagesError(f"the encoding of a page is {_ENCODINGS.get(encoding, encoding)}")
    width = int(data[0]) if encoding != _PLAIN and len(data) else 0
    if width > 32:
        raise UnfitPagesError("places in the dictionary have more than 32 bits")
    level_state, state, place = np.zeros(2, np.int64), np.zeros(2, np.int64), 0
    for first in range(0, page.num_rows, _RUN_ROWS):
        check_stopped()
        count = min(_RUN_ROWS, page.num_rows - first)
        valid = None
        if chunk.is_optional:
            present, level_state = packed_runs.cpu(levels, 1, level_state, count)
            if present.max() > 1:
                raise UnfitPagesError("a level is too high")
            count = int(np.count_nonzero(present))
            valid = None if count == len(present) else present.astype(bool)
        if encoding == _PLAIN:
            places = length_prefixed.cpu(data, place, count)
            place = int(places[-1])
            run = _PageRows(data, places[:-1] + 4, places[1:], valid)
        else:
            assert dictionary is not None
            numbers, state = packed_runs.cpu(data[1:], width, state, count)
            if count and numbers.max() >= len(dictionary.begins):
                raise UnfitPagesError("a place is beyond the dictionary")
            run = _PageRows(dictionary.data, dictionary.begins[numbers], dictionary.ends[numbers], valid)
        yield run if valid is None else run._replace(begins=_spread(run.begins, valid), ends=_spread(run.ends, valid))


def _spread(values: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """Return the values at the rows that are not null, and 0 at the others."""
    spread = np.zeros(len(valid), np.int64)
    spread[valid] = values
    return spread


# ---------------------------------------------------------------------------------------------------------- slabs


class Slab:
    """Memory into which values of pages are copied, one after another: arrays of Arrow.

    Parameters
    ----------
    kind : pyarrow.DataType
        Of strings or bytes, with offsets of 32 or 64 bits.
    blocks : sequence of PageBlock
        Whose rows it will hold.
    most_bytes : int
        Size of an array, each row counted with `ROW_BYTES` more, unless one row is larger.

    Attributes
    ----------
    total : int
        Number of rows that were ever copied.
    """

    def __init__(self, kind: pa.DataType, blocks: Sequence[PageBlock], most_bytes: int) -> None:
        # Twice the size, as a dictionary holds equal texts once. Memory is not there before it is written to.
        self._kind, self._most = kind, min(most_bytes, 2 * sum(block.num_bytes for block in blocks))
        self._is_large = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
        self.total = 0
        self._clear()

    def _clear(self) -> None:
        self._values = np.empty(0, np.uint8)
        self._offsets = [np.zeros(1, np.int64)]
        self._valid: list[np.ndarray] = []
        self._used = self._num_rows = 0

    def decoded(self, block: PageBlock) -> Iterator[pa.Array]:
        """Yield the rows of a block as far as they fill arrays; `rest` has the others.

        Raises
        ------
        UnfitPagesError
            If a page is not decoded here. All rows before it stay.
        """
        dictionary = block.dictionary
        for page in block.pages:
            with _decoding():
                if page.header[1] != _DICTIONARY:
                    for run in _runs(page, block.chunk, dictionary):
                        yield from self._add(run)
                elif dictionary is None:
                    dictionary = dictionary_of(page, block.chunk.codec)
                else:
                    raise UnfitPagesError("it has two dictionaries")

    def _add(self, run: _PageRows) -> Iterator[pa.Array]:
        ends = np.append(0, np.cumsum(run.ends - run.begins))
        counted = ends[1:] + ROW_BYTES * np.arange(1, len(ends))
        start = 0
        while start < len(run.begins):
            before = int(counted[start - 1]) if start else 0
            room = self._most - self._used - ROW_BYTES * self._num_rows
            stop = int(np.searchsorted(counted, before + room, side="right"))
            if stop <= start and self._num_rows:
                yield from self.rest()
                continue
            stop = max(stop, start + 1)
            offsets = ends[start : stop + 1] - ends[start] + self._used
            if not self._num_rows:
                self._values = np.frombuffer(pa.allocate_buffer(max(self._most, int(offsets[-1]))), np.uint8)
            copy_rows(run.data, run.begins[start:stop], offsets, self._values)
            self._offsets.append(offsets[1:])
            self._valid.append(np.ones(stop - start, bool) if run.valid is None else run.valid[start:stop])
            self._used = int(offsets[-1])
            self._num_rows += stop - start
            self.total += stop - start
            start = stop

    def rest(self) -> Iterator[pa.Array]:
        """Yield the rows that have not been given, if there are any."""
        if not self._num_rows:
            return
        offsets, valid = np.concatenate(self._offsets), np.concatenate(self._valid)
        offsets = offsets if self._is_large else offsets.astype(np.int32)
        validity = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
        buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(self._values)]
        array = pa.Array.from_buffers(self._kind, self._num_rows, buffers)
        self._clear()
        yield array


class OtherColumns:
    """Other columns of the same rows, as Arrow reads them.

    Parameters
    ----------
    names : list of str
    batches : iterator of pyarrow.RecordBatch
    """

    def __init__(self, names: list[str], batches: Iterator[pa.RecordBatch]) -> None:
        self._names, self._batches = names, batches
        self._left: pa.RecordBatch | None = None

    def take(self, num_rows: int) -> pa.RecordBatch:
        """Return the next rows."""
        parts: list[pa.RecordBatch] = []
        while num_rows and self._names:
            if self._left is None or not len(self._left):
                self._left = next(self._batches)
            parts.append(self._left[:num_rows])
            self._left = self._left[len(parts[-1]) :]
            num_rows -= len(parts[-1])
        return parts[0] if len(parts) == 1 else pa.concat_batches(parts) if parts else pa.record_batch({})
