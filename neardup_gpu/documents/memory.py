"""Documents in memory: an Arrow table, or whatever gives one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import InputError
from .kept import ROW_GROUP_BYTES, Rows, filtered, write_parquet
from .reading import reading
from .skipped import Skipped
from .valid import named, validated


class Memory:
    """An Arrow table, stream, or anything that gives one through ``__arrow_c_stream__``."""

    name = "input"
    num_files = 0

    def __init__(self, source: Any) -> None:
        self.source = pa.table(source) if isinstance(source, pa.RecordBatch) else source
        # What has a length is a table and gives its rows again; a stream has none.
        self.rewindable = hasattr(self.source, "__len__") or isinstance(self.source, pa.Table)
        self.spent = False
        self.stream: pa.RecordBatchReader | None = self._open()
        self.schema: pa.Schema = named(self.stream.schema, self.name)

    def _open(self) -> pa.RecordBatchReader:
        if isinstance(self.source, pa.RecordBatchReader):
            return self.source
        if isinstance(self.source, pa.Table):
            return self.source.to_reader()
        with reading(self.name, f"{type(self.source).__name__} gives no Arrow table"):
            return pa.RecordBatchReader.from_stream(self.source)

    def _all(self) -> Iterator[pa.RecordBatch]:
        stream, self.stream = self.stream, None
        if stream is None:
            stream = self._open()
        self.spent = True
        with reading(self.name):
            for batch in stream:
                yield validated(batch)

    def read(
        self, schema: pa.Schema, max_bytes: int, skipped: Skipped | None = None
    ) -> Iterator[tuple[pa.RecordBatch, np.ndarray]]:
        row = 0
        for batch in self._all():
            yield batch.select(schema.names), np.arange(row, row + batch.num_rows)
            row += batch.num_rows

    def write(self, folder: Path, part: str, rows: Rows) -> None:
        for field in self.schema:
            try:
                pq.write_table(pa.schema([field]).empty_table(), pa.BufferOutputStream())
            except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
                raise InputError(
                    f"{self.name}: column {field.name!r} of type {field.type} cannot be written as Parquet; "
                    "cast it or leave it out."
                ) from None

        def kept() -> Iterator[pa.RecordBatch]:
            for whole in self._all():
                step = max(1, min(65_536, ROW_GROUP_BYTES * whole.num_rows // max(1, whole.nbytes)))
                for start in range(0, whole.num_rows, step):
                    batch = whole.slice(start, step)
                    yield filtered(batch, rows.take(batch.num_rows, self.name))

        write_parquet(folder, part, self.schema, kept())
