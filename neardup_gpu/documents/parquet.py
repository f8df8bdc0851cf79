"""Parquet: decoded row group by row group, in batches sized from the row group's own statistics."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from .find import File, partition_of
from .kept import ROW_GROUP_BYTES, Rows, filtered, write_parquet
from .reading import reading


class Parquet:
    rewindable = True
    num_files = 1
    num_bytes = 0
    share = 0.0

    def __init__(self, file: File) -> None:
        self.file, self.name = file, file.name
        with self._open() as parquet:
            self.schema: pa.Schema = parquet.schema_arrow
            self.num_rows: int = parquet.metadata.num_rows

    @contextlib.contextmanager
    def _open(self) -> Iterator[pq.ParquetFile]:
        with (
            reading(self.name, "not a readable Parquet file"),
            self.file.system.open_input_file(self.file.path) as handle,
            # Without pre_buffer only one row group's columns are in memory.
            pq.ParquetFile(handle, pre_buffer=False) as file,
        ):
            yield file

    def read(self, schema: pa.Schema, max_bytes: int) -> Iterator[pa.RecordBatch]:
        with self._open() as parquet:
            for group in range(parquet.num_row_groups):
                yield from _row_group(parquet, group, schema.names, max_bytes)

    def write(self, folder: Path, part: str, rows: Rows) -> None:
        write_parquet(folder, partition_of(self.file.path) + part, self.schema, self._kept(rows))

    def _kept(self, rows: Rows) -> Iterator[pa.RecordBatch]:
        with self._open() as parquet:
            for group in range(parquet.num_row_groups):
                keep = rows.take(parquet.metadata.row_group(group).num_rows, self.name)
                if not keep.any():
                    continue
                start = 0
                for batch in _row_group(parquet, group, None, ROW_GROUP_BYTES // 2):
                    yield filtered(batch, keep[start : start + batch.num_rows])
                    start += batch.num_rows


def _row_group(
    parquet: pq.ParquetFile, group: int, names: list[str] | None, max_bytes: int
) -> Iterator[pa.RecordBatch]:
    """A row group in batches of about `max_bytes`, by the mean size of its rows; all columns without `names`."""
    metadata = parquet.metadata.row_group(group)
    if metadata.num_rows == 0:
        return
    size = 0
    for i in range(metadata.num_columns):
        column = metadata.column(i)
        # A path has dots between levels; names may have dots too.
        if names is None or any(f"{column.path_in_schema}.".startswith(f"{name}.") for name in names):
            size += column.total_uncompressed_size
    rows = max(16, min(65_536, max_bytes * metadata.num_rows // max(1, size)))
    for batch in parquet.iter_batches(rows, row_groups=[group], columns=names):
        yield batch if names is None else batch.select(names)
