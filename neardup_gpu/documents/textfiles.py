"""Text and HTML files, as one table of path and text."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from ..errors import InputError
from .batches import ROW_BYTES
from .charsets import as_utf8
from .files import File, relative_names
from .html import Markup, read_page, without_markup
from .kept import ROW_GROUP_BYTES, Rows, filtered, writing
from .parts import WHOLE, Part, runs
from .reading import reading
from .seen import Seen, State
from .skipped import Policy, Skipped

HTML_EXTENSIONS = (".html", ".htm", ".xhtml")


class TextFiles:
    """All text and HTML files as one table of path and text."""

    rewindable = True
    reads_columns_alone = infers_types = spent = False
    own_ids = "path"
    usual_ids = None
    reads_html = True
    left_out: dict[str, int] = {}  # noqa: RUF012 (none, ever)
    row_word = "row"
    num_bytes = 0
    share = 0.0
    schema = pa.schema([("path", pa.string()), ("text", pa.large_binary())])

    def __init__(
        self,
        files: list[File],
        html: bool | str,
        policy: Policy = Policy(),  # noqa: B008 (immutable)
        ids: list[str] | None = None,
        part: Part = WHOLE,
    ) -> None:
        self.files, self.html, self.policy, self.part = files, html, policy, part
        self.name = files[0].name if len(files) == 1 else files[0].root
        self.num_rows = len(files)
        self.stripped_pages = 0
        self.ids = relative_names(files) if ids is None else ids
        self.seen: list[Seen | None] = [None] * len(files)  # when each is first looked at

    def parts(self, most_bytes: int) -> list[Part]:
        """Runs of files."""
        sizes = []
        for row, file in enumerate(self.files):
            with contextlib.suppress(OSError):  # reading says what is wrong with it
                self.seen[row] = self.seen[row] or Seen(file)
            seen = self.seen[row]
            sizes.append(ROW_BYTES + (0 if seen is None else seen.size))
        return [
            Part(start, stop, stop - start, sum(sizes[start:stop]), start) for start, stop in runs(sizes, most_bytes)
        ]

    def states(self) -> list[State | None]:
        return [None if seen is None else seen.state for seen in self.seen]

    def rows_before(self) -> int:
        return self.part.first_place or 0

    def num_places(self, num_rows: int) -> int:
        return num_rows

    def read(
        self, schema: pa.Schema, max_bytes: int, skipped: Skipped | None = None
    ) -> Iterator[tuple[pa.RecordBatch, np.ndarray]]:
        """Batches of the columns, and the row numbers of each: a row is a file."""
        skipped = skipped or Skipped(self.policy.skips)
        rows: list[int] = []
        texts: list[bytes] = []
        size = self.stripped_pages = 0
        for row, file in enumerate(self.files):
            try:
                text = self._text(row)
            except InputError as error:
                skipped.add(error, file.name, row)
                continue
            if texts and size + len(text) + ROW_BYTES > max_bytes:
                yield self._batch(rows, texts, schema)
                rows, texts, size = [], [], 0
            rows.append(row)
            texts.append(text)
            size += len(text) + ROW_BYTES
        yield self._batch(rows, texts, schema)

    def _text(self, row: int) -> bytes:
        file, most = self.files[row], self.policy.max_document_bytes
        with reading(file.name):
            seen = self.seen[row] or Seen(file)
            if seen.size > most:
                raise _too_long(file, most)
            with file.system.open_input_stream(file.path, compression=None) as stream:
                data = stream.read(min(seen.size + 1, most + 1))
                data += stream.read(most + 1 - len(data)) if len(data) > seen.size else b""
            seen.check(file)
        self.seen[row] = seen
        if len(data) > most:
            raise _too_long(file, most)
        if self.html or self.ids[row].lower().endswith(HTML_EXTENSIONS):
            if not self.policy.tree:
                return Markup(as_utf8(data))
            page = read_page(data, tree=True)
            self.stripped_pages += not page.parsed
            return page.text.encode("utf-8", "replace")
        return _as_utf8(data)

    def _batch(self, rows: list[int], texts: list[bytes], schema: pa.Schema) -> tuple[pa.RecordBatch, np.ndarray]:
        ids = pa.array([self.ids[row] for row in rows], pa.string())
        arrays = [ids, pa.array(without_markup(texts), pa.large_binary())]
        batch = pa.RecordBatch.from_arrays(arrays, schema=self.schema).select(schema.names)
        return batch, np.array(rows, np.int64)

    def places(self, rows: np.ndarray) -> np.ndarray:
        """Numbers of the files, from 1."""
        return rows + 1 + self.rows_before()

    def write(self, folder: Path, name: str, rows: Rows) -> None:
        for path, file, seen in zip(self.ids, self.files, self.seen, strict=True):
            if not rows.take(1, file.name)[0]:
                continue
            target = folder / path
            with writing(target, folder):
                with reading(file.name):
                    source = file.system.open_input_stream(file.path, compression=None)
                with source, open(target, "wb") as output:
                    shutil.copyfileobj(source, output, 1 << 20)
                if seen is not None:
                    seen.check(file)

    def kept_schema(self) -> pa.Schema:
        """The text that a reader of each file sees."""
        return pa.schema([("path", pa.string()), ("text", pa.large_string())])

    def kept(self, rows: Rows, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        row, skipped = 0, Skipped(self.policy.skips)
        for batch, numbers in self.read(self.schema, ROW_GROUP_BYTES, skipped):
            keep = (
                rows.take(int(numbers[-1]) + 1 - row, self.name)[numbers - row] if len(numbers) else np.empty(0, bool)
            )
            row += int(numbers[-1]) + 1 - row if len(numbers) else 0
            texts = [text.decode("utf-8", "replace") for text in filtered(batch, keep).column(1).to_pylist()]
            arrays = [filtered(batch, keep).column(0), pa.array(texts, pa.large_string())]
            yield pa.RecordBatch.from_arrays(arrays, schema.names)
        rows.take(self.num_rows - row, self.name)


def _as_utf8(data: bytes) -> bytes:
    """A text file as UTF-8; a byte order mark, if there is one, says in which encoding it was."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace").encode("utf-8", "replace")
    return data.removeprefix(b"\xef\xbb\xbf")


def _too_long(file: File, most: int) -> InputError:
    return InputError(
        f"{file.name}: longer than {most:,} bytes; leave it out, or allow more with max_document_bytes=..."
    )
