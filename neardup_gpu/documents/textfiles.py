"""Text and HTML files, as one table of path and text."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from ..html import read_page
from .batches import ROW_BYTES
from .find import HTML_EXTENSIONS, File, relative_names
from .kept import Rows, writing
from .reading import reading


class TextFiles:
    """All text and HTML files as one table of path and text."""

    rewindable = True
    num_bytes = 0
    share = 0.0
    schema = pa.schema([("path", pa.string()), ("text", pa.large_binary())])

    def __init__(self, files: list[File], html: bool) -> None:
        self.files, self.html = files, html
        self.name = files[0].name if len(files) == 1 else files[0].root
        self.num_files = self.num_rows = len(files)
        self.stripped_pages = 0
        self.ids = relative_names(files)

    def read(self, schema: pa.Schema, max_bytes: int) -> Iterator[pa.RecordBatch]:
        paths: list[str] = []
        texts: list[bytes] = []
        size = self.stripped_pages = 0
        for path, file in zip(self.ids, self.files, strict=True):
            with reading(file.name), file.system.open_input_stream(file.path, compression=None) as stream:
                data = stream.read()
            if self.html or path.lower().endswith(HTML_EXTENSIONS):
                page = read_page(data)
                self.stripped_pages += not page.parsed
                text = page.text.encode("utf-8", "replace")
            else:
                text = _plain_text(data)
            if texts and size + len(text) + ROW_BYTES > max_bytes:
                yield self._batch(paths, texts, schema)
                paths, texts, size = [], [], 0
            paths.append(path)
            texts.append(text)
            size += len(text) + ROW_BYTES
        yield self._batch(paths, texts, schema)

    def _batch(self, paths: list[str], texts: list[bytes], schema: pa.Schema) -> pa.RecordBatch:
        arrays = [pa.array(paths, pa.string()), pa.array(texts, pa.large_binary())]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema).select(schema.names)

    def write(self, folder: Path, part: str, rows: Rows) -> None:
        for path, file in zip(self.ids, self.files, strict=True):
            if not rows.take(1, file.name)[0]:
                continue
            target = folder / path
            with writing(target, folder):
                with reading(file.name):
                    source = file.system.open_input_stream(file.path, compression=None)
                with source, open(target, "wb") as output:
                    shutil.copyfileobj(source, output, 1 << 20)


def _plain_text(data: bytes) -> bytes:
    """A text file as UTF-8: its byte order mark, if any, says what it was."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace").encode("utf-8", "replace")
    return data.removeprefix(b"\xef\xbb\xbf")
