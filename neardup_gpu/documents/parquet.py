"""Read Parquet: several row groups are decoded at once, in batches sized from the statistics of their row group."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import InputError
from ..records import dataclass
from . import nested
from .ahead import Step
from .batches import PIECE_BYTES, ReadRows
from .contract import FileReader
from .files import File
from .kept import Batches, write_parquet
from .parts import WHOLE, Part, even_runs, runs
from .reading import reading
from .reading_options import Reading
from .row_groups import ROW_GROUP_BYTES
from .seen import changed
from .skipped import Loss, Problem
from .valid import with_readable_names

BATCH_ROWS = 16384
"""Most rows to decode at once: the size of a page that repeats one long value does not tell what memory it needs."""


class Parquet(FileReader):
    reads_columns_alone = True

    def __init__(self, file: File, policy: Reading = Reading(), part: Part = WHOLE) -> None:  # noqa: B008 (immutable)
        super().__init__(file, policy, part)
        self._footer: bytes | None = None
        with self._open() as parquet:
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
    def _open(self, opened: _OpenFile | None = None) -> Iterator[pq.ParquetFile]:
        """The file; its metadata are not read again where they were `opened` before."""
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
                        opened.metadata = file.metadata
                yield file

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
        """Runs of row groups."""
        several = list(self._runs())
        opened = _OpenFile(columns_at_once=len(several) == 1)
        for groups, row, size in several:
            yield Step(partial(self._found, opened, groups, row, schema.names, max_bytes), size)

    def _runs(self) -> Iterator[tuple[range, int, int]]:
        """Runs of row groups that are small together, or one alone: their first row, and about their bytes in the
        file."""
        sizes = [size for _, size in self._group_sizes]
        all_groups = range(len(sizes))[self.part.start : self.part.stop]
        share = self.seen.size / max(1, sum(sizes))  # of its size before compression that a row group has in the file
        row = 0
        for start, stop in runs([sizes[group] for group in all_groups], PIECE_BYTES):
            groups = all_groups[start:stop]
            yield groups, row, max(0, round(share * sum(sizes[group] for group in groups)))
            row += sum(self._group_sizes[group][0] for group in groups)

    def _found(
        self, opened: _OpenFile, groups: range, row: int, names: list[str], max_bytes: int
    ) -> Iterator[ReadRows | Problem]:
        """Yield the rows of some row groups; `row` is the number of the first row."""
        with self._open(opened) as parquet:
            for group in groups:
                num_rows = parquet.metadata.row_group(group).num_rows
                if self.policy.skips and (error := self._damage(parquet, group, max_bytes)) is not None:
                    yield Problem([Loss(self.name, row, None, num_rows, None, str(error))])
                    row += num_rows
                    continue
                for batch in _row_group(parquet, group, names, max_bytes, opened.columns_at_once):
                    yield ReadRows(batch, np.arange(row, row + batch.num_rows))
                    row += batch.num_rows

    def _damage(self, parquet: pq.ParquetFile, group: int, max_bytes: int) -> InputError | None:
        """Why a row group cannot be read, in any of its columns; found before any of its rows is used."""
        try:
            with reading(self.name, f"row group {group + 1} cannot be read"):
                for _ in _row_group(parquet, group, None, max_bytes):
                    pass
        except InputError as error:
            return error
        return None

    def stored(self) -> Iterator[Batches]:
        several = list(self._runs())
        opened = _OpenFile(columns_at_once=len(several) == 1)
        for groups, _, size in several:
            sizes = [self._group_sizes[group][0] for group in groups]
            yield Batches(sizes, partial(self._read, opened, groups), size)

    def _read(self, opened: _OpenFile, groups: range, wanted: list[int]) -> Iterator[pa.RecordBatch]:
        """Yield all columns of some row groups."""
        with self._open(opened) as parquet:
            for number in wanted:
                yield from _row_group(parquet, groups[number], None, ROW_GROUP_BYTES // 2, opened.columns_at_once)

    def write(self, folder: Path, name: str, kept: Iterator[Step[pa.RecordBatch]]) -> None:
        write_parquet(folder, name, self.schema, kept)


@dataclass
class _OpenFile:
    """A file in one reading.

    Parameters
    ----------
    columns_at_once : bool
        Whether threads of Arrow decode its columns, as there are no other row groups to decode meanwhile.
    metadata : pyarrow.parquet.FileMetaData, optional
        Once they were read, and are known to be those of the first reading.
    """

    columns_at_once: bool
    metadata: pq.FileMetaData | None = None


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


def _row_group(
    parquet: pq.ParquetFile, group: int, names: list[str] | None, max_bytes: int, columns_at_once: bool = False
) -> Iterator[pa.RecordBatch]:
    """A row group in batches of about `max_bytes`, at most `PIECE_BYTES`, by the mean size of its rows; all columns
    without `names`."""
    metadata = parquet.metadata.row_group(group)
    if metadata.num_rows == 0:
        return
    # Not by the sizes of the columns: where one's metadata cannot be read, to ask for it ends the process.
    size = metadata.total_byte_size
    rows = max(16, min(BATCH_ROWS, min(max_bytes, PIECE_BYTES) * metadata.num_rows // max(1, size)))
    found = 0
    read = None if names is None else [nested.before_lists(parquet.schema_arrow, name) for name in names]
    for batch in parquet.iter_batches(rows, row_groups=[group], columns=read, use_threads=columns_at_once):
        found += batch.num_rows
        yield batch if names is None else nested.select(batch, names)
    if found != metadata.num_rows:
        raise pa.ArrowInvalid(f"row group {group + 1} holds {found:,} rows, not {metadata.num_rows:,}")
