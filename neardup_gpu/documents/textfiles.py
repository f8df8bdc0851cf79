"""Text and HTML files, as one table of path and text."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from ..errors import InputError
from .ahead import Step, in_order
from .batches import PIECE_BYTES, ROW_BYTES, ReadRows
from .charsets import file_as_utf8, page_as_utf8
from .columns import bytes_are_utf8, is_binary
from .contract import WHOLE, Part, Reader, runs
from .edits import Items
from .files import File, Seen, State, relative_names
from .html import Markup, read_tree, without_markup
from .kept import writing
from .packed import PACKED_BYTES, PACKING, compression_of, unpacked, without_compression
from .reading import reading
from .reading_options import Reading
from .row_groups import ROW_GROUP_BYTES
from .skipped import Noted, Problem

HTML_EXTENSIONS = (".html", ".htm", ".xhtml")

FILES_AT_ONCE = 64
"""Files that are read in one step."""


class TextFiles(Reader):
    """All text and HTML files as one table of path and text."""

    own_ids = "path"
    reads_html = True
    schema = pa.schema([("path", pa.string()), ("text", pa.large_binary())])

    def __init__(self, files: list[File], policy: Reading, ids: list[str] | None = None, part: Part = WHOLE) -> None:
        self.files, self.policy, self.part = files, policy, part
        self.name = files[0].name if len(files) == 1 else files[0].root
        self.num_rows = len(files)
        self._stripped = bytearray(len(files))  # whether the page of a file was not parsed
        self.ids = relative_names(files) if ids is None else ids
        self.seen: list[Seen | None] = [None] * len(files)  # when each is first looked at
        self.are_strings = policy.holds != "bytes"  # whether all texts that have been read are UTF-8
        self.needs_strings = False  # whether a text that is not UTF-8 could not be written

    @property
    def stripped_pages(self) -> int:  # type: ignore[override]
        """Pages of the last reading that were not parsed."""
        return sum(self._stripped)

    def parts(self, most_bytes: int) -> list[Part]:
        """Runs of files."""
        sizes = []
        for row, file in enumerate(self.files):
            with contextlib.suppress(OSError):  # reading says what is wrong with it
                self.seen[row] = self.seen[row] or Seen(file)
            seen, packing = self.seen[row], 1 if self._compression(file) is None else PACKING
            sizes.append(ROW_BYTES + (0 if seen is None else packing * seen.size))
        return [
            Part(start, stop, stop - start, sum(sizes[start:stop]), start) for start, stop in runs(sizes, most_bytes)
        ]

    def states(self) -> list[State | None]:
        return [None if seen is None else seen.state for seen in self.seen]

    def steps(self, schema: pa.Schema, max_bytes: int) -> Iterator[Step[ReadRows | Problem]]:
        """A row is a file; some are read at once."""
        self._stripped = bytearray(len(self.files))
        for some in self._runs():
            yield Step(partial(self._found, some, schema, min(max_bytes, PIECE_BYTES)))

    def _runs(self) -> Iterator[range]:
        """The numbers of files that are read at once."""
        for start in range(0, len(self.files), FILES_AT_ONCE):
            yield range(start, min(start + FILES_AT_ONCE, len(self.files)))

    def _found(self, files: Iterable[int], schema: pa.Schema, max_bytes: int) -> Iterator[ReadRows | Problem]:
        noted = Noted(self.policy.skips)
        rows: list[int] = []
        texts: list[bytes] = []
        size = 0
        for row in files:
            try:
                text = self._text(row)
            except InputError as error:
                noted.add(error, self.files[row].name, row)
                yield from noted.drain()
                continue
            if texts and size + len(text) + ROW_BYTES > max_bytes:
                yield self._batch(rows, texts, schema)
                rows, texts, size = [], [], 0
            rows.append(row)
            texts.append(text)
            size += len(text) + ROW_BYTES
        yield self._batch(rows, texts, schema)

    def _compression(self, file: File) -> str | None:
        return None if self.policy.holds == "bytes" else compression_of(file.path)

    def _text(self, row: int) -> bytes:
        file, most = self.files[row], self.policy.max_document_bytes
        with reading(file.name):
            seen = self.seen[row] or Seen(file)
            if seen.size > most:
                raise _too_long(file, most)
            compression = self._compression(file)
            with (
                file.system.open_input_stream(file.path, compression=None) as packed,
                unpacked(packed, compression, file.name) as stream,
            ):
                expected = seen.size if compression is None else PACKING * seen.size
                data = stream.read(min(expected + 1, most + 1))
                # Damage is only found by reading to the end, however much there was.
                goes_on = compression is not None or len(data) > expected
                while goes_on and len(data) <= most:
                    more = stream.read(min(max(PACKED_BYTES, len(data)), most + 1 - len(data)))
                    data, goes_on = data + more, bool(more)
            seen.check(file)
        self.seen[row] = seen
        if len(data) > most:
            raise _too_long(file, most)
        if self.policy.holds == "bytes":
            return data
        if self.policy.html or without_compression(self.ids[row].lower()).endswith(HTML_EXTENSIONS):
            page = page_as_utf8(data, None, self.policy.encoding)
            if not self.policy.tree:
                return Markup(page)
            text, parsed = read_tree(page)
            self._stripped[row] = not parsed
            return text
        return file_as_utf8(data, self.policy.encoding)

    def _batch(self, rows: list[int], texts: list[bytes], schema: pa.Schema) -> ReadRows:
        ids = pa.array([self.ids[row] for row in rows], pa.string())
        arrays = [ids, pa.array(without_markup(texts), pa.large_binary())]
        found = ReadRows(pa.RecordBatch.from_arrays(arrays, schema=self.schema), np.array(rows, np.int64))
        if self.needs_strings:
            self._strings_of(found)
        elif self.are_strings and not bytes_are_utf8(arrays[1]):
            self.are_strings = False
        return found._replace(batch=found.batch.select(schema.names))

    def stored(self) -> Iterator[Items[int]]:
        return map(Items, self._runs())

    def write(self, folder: Path, name: str, kept: Iterator[Step[int]]) -> None:
        for _ in in_order((Step(partial(self._copy, folder, step)) for step in kept), lambda _: 0):
            pass

    def _copy(self, folder: Path, files: Step[int]) -> Iterable[None]:
        for row in files.make():
            target = folder / self.ids[row]
            with writing(target, folder), open(target, "wb") as output:
                for piece in self._stored_bytes(row):
                    output.write(piece)
        return ()

    def _stored_bytes(self, row: int) -> Iterator[bytes]:
        """Yield the bytes of a file as they are stored; errors name this file."""
        file, seen = self.files[row], self.seen[row]
        with reading(file.name), file.system.open_input_stream(file.path, compression=None) as source:
            while piece := source.read(1 << 20):
                yield piece
        if seen is not None:
            seen.check(file)

    def kept_schema(self) -> pa.Schema:
        """The text that a reader of each file sees: strings, unless a file that has been read is not UTF-8."""
        kind = pa.large_string() if self.are_strings else pa.large_binary()
        return pa.schema([("path", pa.string()), ("text", kind)])

    def batches(self, rows: Items[int], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        as_bytes = is_binary(schema.field("text").type)
        for found in self._found(rows.items, self.schema, ROW_GROUP_BYTES):
            if not isinstance(found, Problem):
                texts = found.batch.column(1) if as_bytes else self._strings_of(found)
                yield pa.RecordBatch.from_arrays([found.batch.column(0), texts], self.schema.names)

    def _strings_of(self, found: ReadRows) -> pa.Array:
        """Return the texts of some files as strings; raise InputError for a file that is not UTF-8."""
        texts = found.batch.column(1)
        with contextlib.suppress(pa.ArrowInvalid):
            return texts.cast(pa.large_string())
        for row, text in zip(found.rows.tolist(), texts.to_pylist(), strict=True):
            try:
                text.decode()
            except UnicodeDecodeError as error:
                wrong = f"{self.files[row].name}: is not UTF-8 at byte {error.start + 1:,}"
                if self.needs_strings:
                    raise not_for_json(wrong) from None
                raise InputError(
                    f"{wrong}, so its text cannot become a string; convert it, name its encoding, or leave out what "
                    "writes rows anew: another output_format, units, cuts, marks and counts."
                ) from None
        raise AssertionError("a text that Arrow refuses is valid UTF-8")


def not_for_json(wrong: str) -> InputError:
    """Return the error for text that is not UTF-8 and was to become lines of JSON."""
    return InputError(
        f"{wrong}, which JSON lines cannot hold; name its encoding with encoding='windows-1252' or another label, or "
        "write Parquet with output_format='parquet'."
    )


def _too_long(file: File, most: int) -> InputError:
    return InputError(
        f"{file.name}: longer than {most:,} bytes; leave it out, or allow more with max_document_bytes=..."
    )
