"""Arrow IPC: files and streams."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa

from ..errors import InputError
from .batches import ahead
from .find import File, partition_of
from .kept import Rows, filtered, writing
from .reading import reading


class Ipc:
    rewindable = True
    num_files = 1
    num_rows = None
    num_bytes = 0
    share = 0.0  # of the file that has been read; not known of a stream before its end

    def __init__(self, file: File) -> None:
        self.file, self.name = file, file.name
        with self._open() as reader:
            self.schema: pa.Schema = reader.schema
            self.is_file = isinstance(reader, pa.ipc.RecordBatchFileReader)

    @contextlib.contextmanager
    def _open(self, names: list[str] | None = None) -> Iterator[Any]:
        with (
            reading(self.name, "not a readable Arrow IPC file"),
            self.file.system.open_input_file(self.file.path) as handle,
        ):
            self.num_bytes = handle.size()
            magic = handle.read(6)
            handle.seek(0)
            if magic.startswith(b"FEA1"):
                raise InputError(f"{self.name}: Feather version 1 is not supported; write it again as version 2.")
            fields = None if names is None else [self.schema.get_field_index(name) for name in names]
            options = pa.ipc.IpcReadOptions(included_fields=fields)
            opener = pa.ipc.open_file if magic == b"ARROW1" else pa.ipc.open_stream
            with opener(handle, options=options) as reader:
                yield reader

    def _all(self, names: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        with self._open(names) as reader:
            if self.is_file:
                for i in range(reader.num_record_batches):
                    self.share = (i + 1) / reader.num_record_batches
                    yield reader.get_batch(i)
            else:
                yield from reader

    def read(self, schema: pa.Schema, max_bytes: int) -> Iterator[pa.RecordBatch]:
        for batch in self._all(schema.names):
            yield batch.select(schema.names)

    def write(self, folder: Path, part: str, rows: Rows) -> None:
        extension = PurePosixPath(self.file.path).suffix.lower()
        path = folder / f"{partition_of(self.file.path)}{part}{extension}"
        # As pyarrow does by itself: Feather files are compressed, other Arrow files are not.
        options = pa.ipc.IpcWriteOptions(
            compression="lz4" if extension == ".feather" else None,
            emit_dictionary_deltas=True,
            unify_dictionaries=False,
        )
        kept = (filtered(batch, rows.take(batch.num_rows, self.name)) for batch in self._all())
        opener = pa.ipc.new_file if self.is_file else pa.ipc.new_stream
        with writing(path, folder), opener(str(path), self.schema, options=options) as writer:
            for batch in ahead(kept):
                writer.write_batch(batch)
