"""Arrow IPC: files and streams. Whatever they hold is validated before anything is made of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa

from ..arrow_versions import bytes_of
from ..errors import InputError
from ..report import count
from . import nested
from .ahead import Step, closing, in_order
from .batches import ReadRows
from .columns import validated, with_readable_names
from .contract import FileReader, Part
from .files import File
from .kept import Batches, writing
from .reading import reading
from .reading_options import Reading
from .skipped import Noted, Problem


class Ipc(FileReader):
    def __init__(self, file: File, policy: Reading, part: Part) -> None:
        super().__init__(file, policy, part)
        with self._open() as (reader, _):
            self.schema: pa.Schema = with_readable_names(reader.schema, self.name)
            self.is_file = isinstance(reader, pa.ipc.RecordBatchFileReader)
        self.reads_columns_alone = self.is_file

    def parts(self, most_bytes: int) -> list[Part]:
        """Runs of record batches, which are taken to be of one size; a stream whole."""
        size = self.seen.size
        with self._open() as (reader, _):
            batches = reader.num_record_batches if self.is_file else 1
        number = max(1, min(batches, -(-size // most_bytes)))
        return [
            Part(start, stop if self.is_file else None, None, size // number, None if start else 0)
            for start, stop in pairwise(batches * i // number for i in range(number + 1))
        ]

    def rows_before(self) -> int:
        if self.part.first_place is not None:
            return self.part.first_place
        before = Ipc(self.file, self.policy, replace(self.part, start=0, stop=self.part.start, first_place=0))
        names = None if self.policy.skips else self.schema.names[:1]
        return sum(num_rows for num_rows, _ in before._all(Noted(self.policy.skips), names))

    @contextlib.contextmanager
    def _open(self, names: list[str] | None = None) -> Iterator[tuple[Any, Any]]:
        """The reader, and the file that it reads."""
        with self.opened("not a readable Arrow IPC file") as handle:
            self.num_bytes = handle.size()
            magic = handle.read(6)
            handle.seek(0)
            if magic.startswith(b"FEA1"):
                raise InputError(f"{self.name}: Feather version 1 is not supported; write it again as version 2.")
            fields = (
                None
                if names is None
                else sorted({self.schema.get_field_index(nested.holder(self.schema, name)) for name in names})
            )
            options = pa.ipc.IpcReadOptions(included_fields=fields)
            opener = pa.ipc.open_file if magic == b"ARROW1" else pa.ipc.open_stream
            with opener(handle, options=options) as reader:
                yield reader, handle

    def _all(self, noted: Noted, names: list[str] | None = None) -> Iterator[tuple[int, pa.RecordBatch | None]]:
        """Number of rows and, where they can be read, the rows of each batch."""
        with self._open(names) as (reader, handle):
            row, number = 0, self.part.start
            last = handle.tell()
            stop = reader.num_record_batches if self.is_file and self.part.stop is None else self.part.stop
            while stop is None or number < stop:
                batch, num_rows = None, None
                number += 1
                self.share = 0.0 if stop is None else (number - self.part.start) / (stop - self.part.start)
                try:
                    with reading(self.name, f"batch {number} is damaged"):
                        batch = reader.get_batch(number - 1) if self.is_file else reader.read_next_batch()
                        validated(batch)
                        num_rows = batch.num_rows
                except StopIteration:
                    self._check_end(handle, last, noted, row)
                    return
                except InputError as error:
                    if batch is not None and batch.num_rows >= 0:
                        num_rows = batch.num_rows
                    left = None if num_rows is not None else handle.size() - last
                    noted.add(error, self.name, row, rows=num_rows, num_bytes=left)
                    yield num_rows or 0, None
                    if batch is None and not self.is_file:  # where the next batch begins is unknown
                        return
                else:
                    yield num_rows, batch
                row += num_rows or 0
                last = handle.tell()

    def _check_end(self, handle: Any, last: int, noted: Noted, row: int) -> None:
        """Skip or raise unless the stream ends with its mark, and the file ends there too."""
        end, size = handle.tell(), handle.size()
        if end == last:
            problem = "ends without the mark that ends an Arrow stream, so it was cut off; write it again"
            noted.add(InputError(f"{self.name}: {problem}."), self.name, row, rows=None, num_bytes=0)
        elif end < size:
            more = count(size - end, "byte")
            problem = f"has {more} after the end of the Arrow stream; put each stream into a file of its own"
            noted.add(InputError(f"{self.name}: {problem}."), self.name, row, rows=None, num_bytes=size - end)

    def steps(self, schema: pa.Schema, max_bytes: int) -> Iterator[Step[ReadRows | Problem]]:
        """One step: record batches are not decoded but mapped, or decoded by threads of Arrow."""
        # A batch is left out whole, even if nobody asked for its damaged column: kept rows have all columns.
        names = None if self.policy.skips else schema.names
        yield Step(partial(self._found, schema.names, names))

    def _found(self, wanted: list[str], names: list[str] | None) -> Iterator[ReadRows | Problem]:
        row, noted = 0, Noted(self.policy.skips)
        for num_rows, batch in self._all(noted, names):
            yield from noted.drain()
            if batch is not None:
                yield ReadRows(nested.select(batch, wanted), np.arange(row, row + num_rows), self.share)
            row += num_rows
        yield from noted.drain()

    def stored(self) -> Iterator[Batches]:
        for num_rows, batch in self._all(Noted(self.policy.skips)):
            yield Batches.of(batch, num_rows or 0)

    def write(self, folder: Path, name: str, kept: Iterator[Step[pa.RecordBatch]]) -> None:
        extension, path = PurePosixPath(name).suffix.lower(), folder / name
        # As pyarrow does by itself: Feather files are compressed, other Arrow files are not.
        options = pa.ipc.IpcWriteOptions(
            compression="lz4" if extension == ".feather" else None,
            emit_dictionary_deltas=True,
            unify_dictionaries=False,
        )
        opener = pa.ipc.new_file if self.is_file else pa.ipc.new_stream
        with (
            writing(path, folder),
            opener(str(path), self.schema, options=options) as writer,
            closing(in_order(kept, bytes_of)) as batches,
        ):
            for batch in batches:
                writer.write_batch(batch)
