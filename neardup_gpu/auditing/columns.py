"""Read columns of files that another tool wrote, by the readers of documents."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from .. import checks
from ..documents import nested, open_documents
from ..documents.ahead import closing
from ..documents.batches import PIECE_BYTES
from ..documents.columns import decoded, plain_type
from ..documents.contract import WHOLE, Reader, infers_types
from ..documents.find import find_files, with_kinds
from ..documents.formats import reader_of
from ..documents.memory import Memory, as_tables
from ..documents.reading import reading
from ..documents.reading_options import Reading
from ..documents.skipped import Problem
from ..errors import InputError
from ..report import some


class WrittenColumns:
    """The columns of files, or of tables in memory. All of them have the same columns.

    Parameters
    ----------
    source : path, list of paths, or a table
    what : str
        The argument that named them.
    """

    def __init__(self, source: Any, what: str) -> None:
        tables = as_tables(source)
        self.name = what
        self._lines: list[str] | None = None
        self._readers: list[Reader] = []
        if tables is not None:
            self._readers += [Memory(table) for table in tables.values()]
            return
        paths = checks.paths(what, source)
        files, kind = with_kinds(find_files(paths, None).files, paths)
        self.name = files[0].name
        if kind == "text":
            self._lines = paths
        else:
            self._readers += [reader_of(file.kind)(file, Reading(), WHOLE) for file in files]

    @property
    def is_lines(self) -> bool:
        """Whether the files are text, of an id per line."""
        return self._lines is not None

    def lines(self) -> pa.Array:
        """Return the lines of text files that are not blank."""
        found: list[str] = []
        for batch in open_documents(self._lines).batches():
            for row in range(batch.num_rows):
                text = batch.text[row].tobytes().decode("utf-8", "replace")
                found += [line.strip() for line in text.splitlines() if line.strip()]
        return pa.array(found, pa.large_string())

    def first_of(self, names: Sequence[str]) -> str | None:
        """Return the first of the names that all files have as a column; None if there is none."""
        for name in names:
            if all(self._has(reader, name) for reader in self._readers):
                return name
        return None

    def need(self, names: Sequence[str], what: str) -> str:
        """Return the first of the names that is a column.

        Raises
        ------
        InputError
            If none is.
        """
        found = self.first_of(names)
        if found is None:
            there = some(self._readers[0].schema.names) if self._readers else "lines of text"
            raise InputError(f"{self.name}: no column {' or '.join(map(repr, names))} for {what}; it has {there}")
        return found

    def _has(self, reader: Reader, name: str) -> bool:
        """Whether a file has the column."""
        if infers_types(reader):
            if not len(reader.schema):
                return True  # a file without rows has any column
            reader.look_for(name, typed=True, key=False)
        return nested.count(reader.schema, name) == 1

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield some columns, in the order of files and rows."""
        for reader in self._readers:
            if infers_types(reader) and not len(reader.schema):
                continue
            schema = pa.schema([nested.field(reader.schema, name) for name in dict.fromkeys(names)])
            with closing(reader.steps(schema, PIECE_BYTES)) as steps:
                for step in steps:
                    for item in step.make():
                        if isinstance(item, Problem):
                            raise InputError(f"{reader.name}: cannot be read")
                        with reading(reader.name):
                            yield nested.select(item.batch, names)

    def spanned(self, id: str, spans: str, wanted: bool) -> pa.Array:
        """Return the ids of lines of JSON in whose object `spans` a list holds something, or the other ids.

        The names of the lists differ from file to file, and the first one may come after millions of lines. So each
        line is read by itself.
        """
        found = []
        for reader in self._readers:
            file = reader.files[0]
            with reading(reader.name), file.system.open_input_stream(file.path) as stream:
                for line in io.BufferedReader(stream):
                    row = json.loads(line)
                    if any(row[spans].values()) == wanted:
                        found.append(row[id])
        return pa.array(found)

    def columns(self, names: Sequence[str]) -> list[pa.ChunkedArray]:
        """Return whole columns, without dictionaries; integers of several types become int64."""
        chunks: list[list[pa.Array]] = [[] for _ in names]
        for batch in self.batches(names):
            for column, name in zip(chunks, names, strict=True):
                values = batch.column(names.index(name))
                kind = plain_type(values.type)
                if pa.types.is_nested(kind):
                    raise InputError(f"{self.name}: column {name!r} holds {kind}; an audit needs strings or numbers")
                column.append(decoded(values, kind))
        return [one_type(column) for column in chunks]


def one_type(chunks: list[pa.Array]) -> pa.ChunkedArray:
    """Return chunks of a column as one column: integers of several types as int64, other types as strings."""
    kinds = {chunk.type for chunk in chunks}
    if len(kinds) <= 1:
        return pa.chunked_array(chunks, next(iter(kinds), pa.null()))
    if all(map(pa.types.is_integer, kinds)):
        return pa.chunked_array([chunk.cast(pa.int64()) for chunk in chunks])
    return pa.chunked_array([chunk.cast(pa.large_string()) for chunk in chunks])
