"""Streams of record batches: what readers give, cut and joined."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from neardup_gpu.kernels._cached import cached_property

from ..arrow_versions import bytes_of
from ..data import Ragged, arrow, arrow_bytes, read_only
from .columns import is_contiguous
from .skipped import Problem

ROW_BYTES = 128  # added for each row to the size of its text, so that a batch of tiny documents stays small too
PIECE_BYTES = 16 << 20  # decoded at once, about: what waits to be taken is bounded, and several threads decode


class ReadRows(NamedTuple):
    """Rows that a reader found.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
    rows : array of int64
        The number of each of its rows, from 0.
    share : float
        Share of the file that has been read by then; 0 where it is not known.
    """

    batch: pa.RecordBatch
    rows: np.ndarray
    share: float = 0.0


def numbered(batches: Iterable[pa.RecordBatch], row: int, share: float = 0.0) -> Iterator[ReadRows]:
    """Yield batches with the numbers of their rows, from `row` on."""
    for batch in batches:
        yield ReadRows(batch, np.arange(row, row + batch.num_rows), share)
        row += batch.num_rows


def size_of(item: Any) -> int:
    """Bytes of what a reader gives, or of what is made of it: a batch and more, or a `Problem`."""
    return 0 if isinstance(item, Problem) else bytes_of(item.batch)


def stream_of(schema: pa.Schema, tables: Iterable[pa.Table]) -> pa.RecordBatchReader:
    """Return the rows of tables, all with one schema."""
    return pa.RecordBatchReader.from_batches(schema, (batch for table in tables for batch in table.to_batches()))


def sliced(batch: pa.RecordBatch, text_columns: list[str], html: bool | str) -> Iterator[pa.RecordBatch]:
    """The batch in parts of 1,024 rows where its text has to be copied, else whole."""
    kinds = [batch.schema.field(name).type for name in text_columns]
    whole = len(kinds) == 1 and not html and is_contiguous(kinds[0])
    step = batch.num_rows if whole else 1024
    for start in range(0, batch.num_rows, max(1, step)):
        yield batch.slice(start, step)


class TextParts(Ragged):
    """Texts in several arrays, one after another; they are joined by the first who needs them in one array.

    A slab for a GPU is filled from the parts, so nothing joins them there.

    Parameters
    ----------
    arrays : list of pyarrow.LargeBinaryArray
        Without nulls.
    """

    parts: list[np.ndarray]
    _arrays: list[pa.Array]
    _begins: np.ndarray

    def __init__(self, arrays: list[pa.Array]) -> None:
        texts = list(map(ragged, arrays))
        parts = [text.values[text.offsets[0] : text.offsets[-1]] for text in texts]
        ends = np.cumsum(np.concatenate([np.zeros(1, np.int64), *(text.sizes for text in texts)]))
        ends.flags.writeable = False
        begins = np.cumsum([0, *map(len, parts[:-1])])
        self.__dict__.update(parts=parts, offsets=ends, _arrays=arrays, _begins=begins)

    def __getitem__(self, row: int) -> np.ndarray:
        """Return one text, without joining all."""
        if not 0 <= row < len(self):
            raise IndexError(f"row {row} of {len(self)}")
        begin, end = self.offsets[row : row + 2].tolist()
        number = int(np.searchsorted(self._begins, begin, side="right")) - 1
        return self.parts[number][begin - self._begins[number] : end - self._begins[number]]

    @cached_property
    def values(self) -> np.ndarray:  # type: ignore[override]
        return ragged(pa.concat_arrays(self._arrays)).values


Rows = tuple[list[pa.Array], pa.RecordBatch, int]
"""The text of some rows in parts, their other columns, and the number of nulls that the text had."""


def coalesce(pieces: Iterator[tuple[pa.RecordBatch, int]], max_bytes: int) -> Iterator[Rows]:
    """Cut pieces that are too large, and bring small ones together; no text is copied.

    A batch above `PIECE_BYTES` is for a device, and is filled as far as its last row fits. Others are joined before
    they are computed, so only pieces below a quarter of the bound are brought together.
    """
    least = max_bytes // 4 if max_bytes <= PIECE_BYTES else max_bytes
    pending: list[pa.RecordBatch] = []
    size = nulls = 0
    for whole, num_null in pieces:
        left = max_bytes - size if least == max_bytes else max_bytes
        for piece, piece_size in _cut(whole, max_bytes, left):
            if pending and size + piece_size > max_bytes:
                yield *_brought_together(pending), nulls
                pending, size, nulls = [], 0, 0
            nulls, num_null = nulls + num_null, 0
            pending.append(piece)
            size += piece_size
            if size >= least:
                yield *_brought_together(pending), nulls
                pending, size, nulls = [], 0, 0
    if pending:
        yield *_brought_together(pending), nulls


def _brought_together(batches: list[pa.RecordBatch]) -> tuple[list[pa.Array], pa.RecordBatch]:
    """The first column of each, and all other columns as one batch, which holds on to nobody's memory."""
    texts, names = [batch.column(0) for batch in batches], batches[0].schema.names[1:]
    columns = [one_integer_type(list(each)) for each in zip(*(batch.columns[1:] for batch in batches), strict=True)]
    return texts, pa.RecordBatch.from_arrays(list(map(pa.concat_arrays, columns)), names)


def one_integer_type(arrays: list[pa.Array]) -> list[pa.Array]:
    """The arrays in one type, where some are int64 and others had to be uint64; all other arrays as they are.

    Raises
    ------
    pyarrow.ArrowInvalid
        If no type holds them all.
    """
    kinds = {array.type for array in arrays}
    return [array.cast(pa.uint64()) for array in arrays] if kinds == {pa.int64(), pa.uint64()} else arrays


def _cut(batch: pa.RecordBatch, max_bytes: int, left: int) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Slices of about equal size, none above `max_bytes` unless one row is, and the size of each.

    If `left`, the room in the batch before, is less than `max_bytes`, the first slice fills it as far as rows fit.
    """
    if batch.num_rows == 0:
        return
    offsets = ragged(batch.column(0)).offsets
    ends = offsets[1:] - offsets[0] + ROW_BYTES * np.arange(1, len(offsets))
    start = done = 0
    if left < min(max_bytes, ends[-1]) and (start := int(np.searchsorted(ends, left, side="right"))):
        done = int(ends[start - 1])
        yield batch.slice(0, start), done
    parts = -(-(int(ends[-1]) - done) // max_bytes)
    goal = min(max_bytes, -(-(int(ends[-1]) - done) // parts))
    while start < batch.num_rows:
        # About equal parts while that is possible within the bound.
        stop = int(np.searchsorted(ends, done + goal))
        stop += stop < batch.num_rows and ends[stop] - done <= max_bytes
        stop = max(stop, start + 1)
        yield batch.slice(start, stop - start), int(ends[stop - 1]) - done
        start, done = stop, int(ends[stop - 1])


def ragged(text: pa.Array) -> Ragged:
    """Large binary without nulls as bytes and offsets, without a copy."""
    _, offsets, values = text.buffers()
    if offsets is None or len(text) == 0:
        return Ragged(np.empty(0, np.uint8), np.zeros(1, np.int64))
    numbers = read_only(np.frombuffer(offsets, np.int64))[text.offset : text.offset + len(text) + 1]
    return Ragged(np.empty(0, np.uint8) if values is None else read_only(np.frombuffer(values, np.uint8)), numbers)


def some_rows(text: Ragged, rows: np.ndarray) -> Ragged:
    """Return some rows of text, from byte 0 on."""
    return ragged(arrow_bytes(text.values, text.offsets).take(arrow(rows)))


def spans_of(values: np.ndarray, begins: np.ndarray, ends: np.ndarray) -> Ragged:
    """Return the bytes of some spans, which ascend and do not overlap."""
    bounds = np.empty(2 * len(begins) + 1, np.int64)  # spans and what is between
    bounds[:-1:2], bounds[1::2], bounds[-1] = begins, ends, len(values)
    return some_rows(Ragged._trusted(values, bounds), np.arange(0, len(bounds) - 1, 2))
