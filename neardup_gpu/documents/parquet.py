"""Read Parquet: several row groups are decoded at once, in batches sized from the statistics of their row group."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Iterator, Sequence
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import InputError
from ..records import dataclass
from . import nested
from .ahead import Step
from .batches import PIECE_BYTES, ROW_BYTES, ReadRows, numbered
from .columns import with_readable_names
from .contract import FileReader, Part, even_runs, runs
from .files import File, changed
from .kept import Batches, write_parquet
from .pages import OtherColumns, PageBlock, PagedColumn, Slab, UnfitPagesError, find_column, remark
from .reading import reading
from .reading_options import Reading
from .row_groups import ROW_GROUP_BYTES
from .skipped import Loss, Problem

BATCH_ROWS = 16384
"""Most rows to decode at once: the size of a page that repeats one long value does not tell what memory it needs."""


class Parquet(FileReader):
    reads_columns_alone = True

    def __init__(self, file: File, policy: Reading, part: Part) -> None:
        super().__init__(file, policy, part)
        self._footer: bytes | None = None
        with self._open() as (parquet, _):
            self.schema: pa.Schema = with_readable_names(parquet.schema_arrow, self.name)
            groups = map(parquet.metadata.row_group, range(parquet.num_row_groups))
            self._group_sizes = [(group.num_rows, group.total_byte_size) for group in groups]
            self.num_rows: int = parquet.metadata.num_rows if part.num_rows is None else part.num_rows

    def parts(self, most_bytes: int) -> list[Part]:
        """Runs of row groups."""
        sizes, found, first_row = [size for _, size in self._group_sizes], [], 0
        for start, stop in even_runs(sizes, most_bytes):
            num_rows = sum(rows for rows, _ in self._group_sizes[start:stop])
            found.append(Part(start, stop, num_rows, sum(sizes[start:stop]), first_row))
            first_row += num_rows
        return found

    @contextlib.contextmanager
    def _open(self, opened: _OpenFile | None = None) -> Iterator[tuple[pq.ParquetFile, Any]]:
        """Open the file for Arrow, and for reading bytes; metadata that were `opened` before are not read again."""
        known = None if opened is None else opened.metadata
        with self.opened("not a readable Parquet file") as handle:
            footer = None if known is not None else self._checked_footer(handle)
            # Without pre_buffer only one row group's columns are in memory.
            with pq.ParquetFile(handle, metadata=known, pre_buffer=False, page_checksum_verification=True) as file:
                if footer is not None:
                    # A footer that is longer than its metadata is signed: the file has encrypted columns, and asking
                    # for one of them would end the process.
                    if len(footer) != file.metadata.serialized_size:
                        raise self._encrypted()
                    self._footer = hashlib.sha256(footer).digest()
                    if opened is not None:
                        with opened.lock:
                            if opened.metadata is None and opened.names:
                                try:
                                    opened.text = find_column(file, self.schema, footer, opened.names)
                                except UnfitPagesError as error:
                                    opened.unfit = error
                            opened.metadata = file.metadata
                yield file, handle

    def _checked_footer(self, handle: Any) -> bytes:
        """The metadata at the end of the file, which are those that were read first."""
        footer = _footer(handle)
        if self._footer not in (None, hashlib.sha256(footer).digest()):
            raise changed(self.name)
        if footer == b"PARE":
            raise self._encrypted()
        return footer

    def _encrypted(self) -> InputError:
        return InputError(f"{self.name}: is encrypted, wholly or in part; write it again without encryption.")

    def steps(self, schema: pa.Schema, max_bytes: int) -> Iterator[Step[ReadRows | Problem]]:
        """Runs of row groups, and runs of the pages of a large row group."""
        several = list(self._runs())
        opened = _OpenFile(schema.names, min(max_bytes, PIECE_BYTES), columns_at_once=len(several) == 1)
        for groups, row, size in several:
            if sum(self._group_sizes[group][1] for group in groups) > PIECE_BYTES and not self.policy.skips:
                yield from self._steps_within(opened, groups.start, row, size)
            else:
                yield Step(partial(self._found, opened, groups, row), size)

    def _runs(self) -> Iterator[tuple[range, int, int]]:
        """Runs of row groups that are small together, or one alone: their first row, and about their bytes in the
        file."""
        sizes = [size + ROW_BYTES * num_rows for num_rows, size in self._group_sizes]
        all_groups = range(len(sizes))[self.part.start : self.part.stop]
        share = self.seen.size / max(1, sum(sizes))  # of its size before compression that a row group has in the file
        row = 0
        for start, stop in runs([sizes[group] for group in all_groups], PIECE_BYTES):
            groups = all_groups[start:stop]
            yield groups, row, max(0, round(share * sum(sizes[group] for group in groups)))
            row += sum(self._group_sizes[group][0] for group in groups)

    def _steps_within(self, opened: _OpenFile, group: int, row: int, size: int) -> Iterator[Step[ReadRows | Problem]]:
        """Yield the steps of a large row group. Its pages are read between the steps, and decoded by them."""
        done, num_rows = 0, self._group_sizes[group][0]
        with self._open(opened) as (parquet, handle):
            text = opened.text
            if text is not None:
                others = OtherColumns(text.others, self._row_group(parquet, group, text.others, opened))
                try:
                    for block in text.blocks(handle, group, num_rows, PIECE_BYTES):
                        make = partial(self._of_block, opened, block, others.take(block.num_rows), row + done)
                        yield Step(make, sum(len(page.data) for page in block.pages))
                        done += block.num_rows
                except UnfitPagesError as error:
                    opened.unfit = error
        if done < num_rows:
            yield Step(partial(self._by_arrow, opened, group, range(done, num_rows), row), size)

    def _of_block(self, opened: _OpenFile, block: PageBlock, others: pa.RecordBatch, row: int) -> Iterator[ReadRows]:
        return numbered(self._decoded(opened, [block], OtherColumns([*others.schema.names], iter([others]))), row)

    def _by_arrow(self, opened: _OpenFile, group: int, rows: range, row: int) -> Iterator[ReadRows]:
        """Yield some rows of a row group, whose first row has the number `row`."""
        with self._open(opened) as (parquet, _):
            yield from numbered(self._row_group(parquet, group, opened.names, opened, rows), row + rows.start)
        if opened.unfit is not None:
            remark(opened.unfit)  # not before, as damage ends in an error

    def _found(self, opened: _OpenFile, groups: range, row: int) -> Iterator[ReadRows | Problem]:
        """Yield the rows of some row groups; `row` is the number of the first row."""
        with self._open(opened) as (parquet, handle):
            for some in [range(group, group + 1) for group in groups] if self.policy.skips else [groups]:
                num_rows = sum(self._group_sizes[group][0] for group in some)
                error = self._damage(parquet, some.start, opened) if self.policy.skips else None
                if error is not None:
                    yield Problem([Loss(self.name, row, None, num_rows, None, str(error))])
                else:
                    yield from numbered(self._batches(opened, parquet, handle, some), row)
                row += num_rows

    def _batches(
        self, opened: _OpenFile, parquet: pq.ParquetFile, handle: Any, groups: range
    ) -> Iterator[pa.RecordBatch]:
        """Yield some row groups."""
        text = opened.text
        names = opened.names if text is None else text.others
        read = (batch for group in groups for batch in self._row_group(parquet, group, names, opened))
        if text is None:
            return read
        blocks = [text.block(handle, group, self._group_sizes[group][0]) for group in groups]
        return self._decoded(opened, blocks, OtherColumns(names, read))

    def _decoded(
        self, opened: _OpenFile, blocks: Sequence[PageBlock], others: OtherColumns
    ) -> Iterator[pa.RecordBatch]:
        """Yield blocks of pages that follow one another. Where one is not decoded here, Arrow reads what is left."""
        text = opened.text
        assert text is not None
        slab = Slab(text.kind, blocks, opened.max_bytes)

        def texts() -> Iterator[pa.Array]:
            for block in blocks:
                before = slab.total
                try:
                    yield from slab.decoded(block)
                except UnfitPagesError:
                    yield from slab.rest()
                    rows = range(block.first + slab.total - before, block.first + block.num_rows)
                    with self._open(opened) as (parquet, _):
                        for batch in self._row_group(parquet, block.group, [text.name], opened, rows):
                            yield batch.column(0)
            yield from slab.rest()

        for array in texts():
            beside = others.take(len(array))
            columns = [array if name == text.name else beside.column(name) for name in opened.names]
            yield pa.RecordBatch.from_arrays(columns, opened.names)

    def _damage(self, parquet: pq.ParquetFile, group: int, opened: _OpenFile) -> InputError | None:
        """Why a row group cannot be read, in any of its columns; found before any of its rows is used."""
        try:
            for _ in self._row_group(parquet, group, None, opened):
                pass
        except InputError as error:
            return error
        return None

    def stored(self) -> Iterator[Batches]:
        several = list(self._runs())
        opened = _OpenFile([], ROW_GROUP_BYTES // 2, columns_at_once=len(several) == 1)
        for groups, _, size in several:
            sizes = [self._group_sizes[group][0] for group in groups]
            yield Batches(sizes, partial(self._read, opened, groups), size)

    def _read(self, opened: _OpenFile, groups: range, wanted: list[int]) -> Iterator[pa.RecordBatch]:
        """Yield all columns of some row groups."""
        with self._open(opened) as (parquet, _):
            for number in wanted:
                yield from self._row_group(parquet, groups[number], None, opened)

    def _row_group(
        self,
        parquet: pq.ParquetFile,
        group: int,
        names: list[str] | None,
        opened: _OpenFile,
        rows: range | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield a row group, or some of its rows, as Arrow reads it; all columns without `names`.

        Batches have about `opened.max_bytes`, by the mean size of rows.
        """
        num_rows, size = self._group_sizes[group]
        if num_rows == 0 or names == []:
            return
        # Not by the sizes of the columns: where one's metadata cannot be read, to ask for it ends the process.
        step = max(16, min(BATCH_ROWS, opened.max_bytes * num_rows // max(1, size)))
        read = None if names is None else [nested.before_lists(parquet.schema_arrow, name) for name in names]
        found = 0
        with reading(self.name, f"row group {group + 1} cannot be read"):
            for batch in parquet.iter_batches(
                step, row_groups=[group], columns=read, use_threads=opened.columns_at_once
            ):
                first, found = found, found + batch.num_rows
                if rows is not None:
                    batch = batch[max(0, rows.start - first) : max(0, rows.stop - first)]
                    if not len(batch):
                        continue
                yield batch if names is None else nested.select(batch, names)
            if found != num_rows:
                raise pa.ArrowInvalid(f"it holds {found:,} rows, not {num_rows:,}")

    def write(self, folder: Path, name: str, kept: Iterator[Step[pa.RecordBatch]]) -> None:
        write_parquet(folder, name, self.schema, kept)


@dataclass
class _OpenFile:
    """A file in one reading.

    Parameters
    ----------
    names : list of str
        The columns to read; none where all are read as they are stored.
    max_bytes : int
        About the size of batches.
    columns_at_once : bool
        Whether threads of Arrow decode its columns, as there are no other row groups to decode meanwhile.
    metadata : pyarrow.parquet.FileMetaData, optional
        Once they were read, and are known to be those of the first reading.
    text : PagedColumn, optional
        The column whose pages are decoded without Arrow; known with the metadata.
    unfit : UnfitPagesError, optional
        Why there is no such column, or why pages of a large row group are not decoded so.
    lock : threading.Lock
        Held by the thread that looks for this column, as all begin at once.
    """

    names: list[str]
    max_bytes: int
    columns_at_once: bool
    metadata: pq.FileMetaData | None = None
    text: PagedColumn | None = None
    unfit: UnfitPagesError | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


def _footer(handle: Any) -> bytes:
    """The metadata at the end of the file; "PARE" if they are encrypted, empty if there are none."""
    size = handle.size()
    if size < 12:
        return b""
    handle.seek(size - 8)
    end = handle.read(8)
    length = int.from_bytes(end[:4], "little")
    if end[4:] == b"PARE":
        return b"PARE"
    if end[4:] != b"PAR1" or length > size - 12:
        return b""
    handle.seek(size - 8 - length)
    return handle.read(length)
