"""Readers and writers: Parquet, JSON lines, Arrow, text and HTML files -> batches of documents, and the kept rows back.

Input order is (sorted path, row). Text flows through in batches bounded in bytes; a background thread decodes the next
batch while the caller works on this one. Text leaves here as bytes, exactly as it was stored: nobody checks UTF-8
before the token kernel does.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs

from ..data import Ragged, arrow
from ..errors import InputError, ParameterError
from ..html import read_page
from .batches import ahead, coalesce, ragged, sliced
from .columns import (
    artefact_kind,
    check_ids,
    copied,
    decoded,
    default_text_column,
    is_key,
    is_string,
    is_text,
    listed,
    plain_type,
    refuse_artefact,
)
from .find import LEFT_OUT, File, Found, escaped_name, find_files, one_kind
from .ipc import Ipc
from .jsonlines import JsonLines, json_words
from .kept import Rows, writing
from .memory import Memory, as_table, as_texts
from .parquet import Parquet
from .reading import reading
from .textfiles import TextFiles
from .uris import is_masked, is_uri, masked

logger = logging.getLogger("neardup_gpu")

READERS = {"parquet": Parquet, "jsonl": JsonLines, "ipc": Ipc}
"""The reader of one file of each format; text files are read together."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Some consecutive documents.

    Parameters
    ----------
    first_row : int
        Row number of the first document, in input order.
    ids : pyarrow.Array, length n
        The id column (dictionaries decoded, views as large strings); relative paths for text files; else int64 row
        numbers.
    text : Ragged of uint8, n rows
        The documents' bytes; nulls are empty.
    num_null : int
        Documents whose text is null.
    columns : dict of str to pyarrow.Array, each of length n
        The extra columns that were asked for, dictionaries decoded. Like the ids, they do not hold on to the text's
        memory.
    """

    first_row: int
    ids: pa.Array
    text: Ragged
    num_null: int
    columns: dict[str, pa.Array]

    @property
    def num_rows(self) -> int:
        """Number of documents."""
        return len(self.text)


def open_documents(
    source: Any = None,
    *,
    texts: Any = None,
    text_columns: str | Sequence[str] | None = None,
    id_column: str | None = None,
    html: bool = False,
    glob: str | None = None,
    other_columns: Iterable[str] = (),
) -> Documents:
    """Open documents for streaming; only schemas and first lines are read here.

    Parameters
    ----------
    source : str, Path, list of them, or a table
        A file (Parquet, JSON lines plain, .gz or .zst, Arrow IPC), a folder of such files of one kind or of text and
        HTML files, a glob pattern, or a URI such as ``s3://bucket/x.parquet`` of pyarrow.fs or, where that has no such
        file system, of fsspec. A result of dedup gives the rows that it kept. Or a table: pyarrow, Polars, DuckDB,
        pandas, a Hugging Face dataset, a dict of columns, a list of dicts.
    texts : list of str, array or Series of strings, optional
        The texts themselves, instead of `source`. Their ids are their row numbers; to name them, pass a table such as
        ``{"id": ids, "text": texts}``.
    text_columns : str or sequence of str, optional
        Columns that hold the text, joined by a newline. Default: ``text``, else the only one of strings, which is never
        the id column, one of `other_columns`, or one named ``id``.
    id_column : str, optional
        Column of integers or strings that names the documents. Default: relative paths for text files, else row
        numbers.
    html : bool
        The text is HTML: take what a reader sees of it. Files ending in .html, .htm and .xhtml are always read so.
    glob : str, optional
        Which files of a folder to read, such as ``*.py`` (at any depth) or ``docs/**/*.md`` (from the folder down).
        With it, files of unknown extension are text. Without it, a folder gives all files of a known extension.
    other_columns : iterable of str
        Columns that hold something else than text, such as dates to decide by.

    Returns
    -------
    Documents

    Raises
    ------
    InputError
        If there is nothing to read, or it cannot be read, or the columns are not as said.

    Notes
    -----
    Links are followed; a file that is reached several times, also by several names of its own (hard links), is read
    once. Folders leave out what is hidden, names that begin with ``_``, finished results of dedup and what else
    neardup wrote, pipes and devices, README, LICENSE and the like beside data, and files of unknown extension: all but
    the first are counted, named in the log at INFO, and in the report.
    """
    columns: dict[str, Any] = {"text_columns": text_columns, "id_column": id_column, "other_columns": other_columns}
    if (source is None) == (texts is None):
        raise ParameterError("source and texts: give one of them, paths or a table, or the texts themselves")
    if texts is not None:
        if text_columns is not None or id_column is not None or glob is not None:
            raise ParameterError(
                "texts: have no columns and no files; leave out text_columns, id_column and glob, or pass a table"
            )
        return Documents([Memory(as_texts(texts))], "memory", sources=[], glob=None, html=html, **columns)
    table = as_table(source)
    if table is not None:
        return Documents([Memory(table)], "memory", sources=[], glob=None, html=html, **columns)
    names = _names(source)
    found = find_files(names, glob)
    kind = one_kind(found.files, names)
    readers: list[Any]
    if kind == "text":
        readers = [TextFiles(found.files, html)]
        if text_columns is not None or id_column is not None:
            raise InputError(f"{masked(names[0])}: text files have no columns; leave out the text and id column.")
    else:
        readers = _without_artefacts([READERS[kind](file) for file in found.files], found)
    sources = [masked(name) if is_uri(name) else os.path.abspath(name) for name in names]
    documents = Documents(readers, kind, sources=sources, glob=glob, html=html, left_out=found.left_out, **columns)
    _tell(masked(names[0]), found.left_out)
    return documents


def _names(source: Any) -> list[str]:
    """Paths, patterns and URIs as strings."""
    paths = [source] if isinstance(source, (str, os.PathLike)) else source
    if isinstance(paths, (list, tuple)) and any(isinstance(path, bytes) for path in paths):
        raise InputError("cannot read documents from bytes: give paths as str, or texts as texts=[...].")
    if not isinstance(paths, (list, tuple)) or not all(isinstance(p, (str, os.PathLike)) for p in paths):
        raise InputError(
            f"cannot read documents from {type(source).__name__}: give a path, a list of paths, a table, "
            "or texts as texts=[...]."
        )
    names = [os.fspath(path) for path in paths]
    if not names:
        raise InputError("no input: the list of paths is empty.")
    for name in names:
        if isinstance(name, bytes):  # what __fspath__ may give
            raise InputError("cannot read documents from bytes: give paths as str.")
        if escaped_name(name) != name:
            raise InputError(f"{escaped_name(name)}: the name is not UTF-8; rename it.")
    return names


def _without_artefacts(readers: list[Any], found: Found) -> list[Any]:
    """Without what this package wrote, where it lies in a folder beside documents."""
    kinds = [artefact_kind(reader.schema) for reader in readers]
    if all(kinds):
        return readers
    documents = []
    for reader, kind in zip(readers, kinds, strict=True):
        if kind is None or reader.file.how == "name":
            documents.append(reader)
        else:
            found.leave_out("artefacts", reader.name)
    return documents


def _tell(source: str, left_out: dict[str, list[str]]) -> None:
    """Log what is not read, on one line."""
    parts = []
    for reason, names in left_out.items():
        more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
        parts.append(f"{LEFT_OUT[reason]}: {len(names):,} ({', '.join(names[:3])}{more})")
    if parts:
        logger.info("%s: left out, %s", source, "; ".join(parts))


def open_described(description: dict[str, Any]) -> Documents:
    """Open again what `Documents.describe` described.

    Raises
    ------
    InputError
        If the documents were given in memory, or are no longer as many files.
    """
    if description["format"] == "memory":
        raise InputError("the documents were given in memory, so they cannot be opened again from their description.")
    for path in description["paths"]:
        if is_masked(path):
            raise InputError(
                f"{path}: was read with credentials, which no report keeps, so it cannot be opened again; set them in "
                "the environment and run dedup again without them in the URI."
            )
    documents = open_documents(
        description["paths"],
        text_columns=description["text_columns"],
        id_column=description["id_column"],
        html=description["html"],
        glob=description["glob"],
    )
    if documents.num_files != description["num_files"]:
        raise InputError(
            f"{description['paths'][0]}: {documents.num_files} files, but there were {description['num_files']} "
            "when the result was made; run dedup again."
        )
    return documents


class Documents:
    """Documents of one source: see `open_documents`, which makes them."""

    def __init__(
        self,
        readers: list[Any],
        kind: str,
        *,
        sources: list[str],
        glob: str | None,
        text_columns: str | Sequence[str] | None,
        id_column: str | None,
        html: bool,
        other_columns: Iterable[str] = (),
        left_out: dict[str, list[str]] | None = None,
    ) -> None:
        self._readers, self._sources, self._glob = readers, sources, glob
        self._read = (0, 0.0)  # documents and bytes of files that have been read
        self._stripped = 0
        self._left_out = left_out or {}
        self.format = kind
        self.html = html
        self.id_column = id_column
        if kind == "text":
            self.text_columns: list[str] = ["text"]
            return
        # A JSON-lines file without lines says nothing about its columns.
        schemas = [r.schema for r in readers if kind != "jsonl" or len(r.schema)]
        if text_columns is None:
            self.text_columns = [self._default_text(schemas, [*other_columns, *([id_column] if id_column else [])])]
        else:
            self.text_columns = [text_columns] if isinstance(text_columns, str) else list(text_columns)
        if not self.text_columns:
            raise InputError(f"{readers[0].name}: the list of text columns is empty.")
        if schemas:
            for name in self.text_columns:
                self._check(name, is_text, "text", "--text-column")
            if id_column is not None:
                self._check(id_column, is_key, "integers or strings", "--id-column")
                self._type(id_column)

    def _default_text(self, schemas: list[pa.Schema], others: list[str]) -> str:
        """The column of text where none was named: the same whatever the order of the files."""
        for reader in self._readers:
            kind = artefact_kind(reader.schema)
            if kind is not None:
                refuse_artefact(reader.name, kind)
        if not schemas or ("text" not in others and any("text" in schema.names for schema in schemas)):
            return "text"
        column = default_text_column(self._readers[0].name, schemas[0], others)
        logger.info("%s: the text is column %r", self._readers[0].name, column)
        return column

    @property
    def rewindable(self) -> bool:
        """Whether the documents can be read more than once."""
        return all(reader.rewindable for reader in self._readers)

    @property
    def num_files(self) -> int:
        """Number of input files; 0 for documents in memory."""
        return sum(reader.num_files for reader in self._readers)

    @property
    def num_rows(self) -> int | None:
        """Number of documents. Where files do not say it, it is estimated from the share of their bytes that has been
        read; None before that, and for streams."""
        numbers = [reader.num_rows for reader in self._readers]
        if None not in numbers:
            return sum(numbers)
        rows, num_bytes = self._read
        whole = sum(reader.num_bytes for reader in self._readers)
        return max(rows, round(rows * whole / num_bytes)) if rows and num_bytes and whole else None

    @property
    def stripped_pages(self) -> int:
        """Pages of HTML of the last pass that would have taken a parser too long: their tags were taken out."""
        return self._stripped + sum(reader.stripped_pages for reader in self._readers if self.format == "text")

    @property
    def local_files(self) -> list[str]:
        """Paths of the input files that are on this machine."""
        files: list[File] = []
        for reader in self._readers:
            files += getattr(reader, "files", None) or ([reader.file] if hasattr(reader, "file") else [])
        return [file.path for file in files if isinstance(file.system, fs.LocalFileSystem)]

    def describe(self) -> dict[str, Any]:
        """What `open_described` needs to open the same documents, ready for JSON."""
        return {
            "paths": self._sources,
            "glob": self._glob,
            "format": self.format,
            "text_columns": None if self.format == "text" else self.text_columns,
            "id_column": self.id_column,
            "html": self.html,
            "num_files": self.num_files,
            "left_out": {
                reason: {"files": len(names), "first": names[:10]} for reason, names in self._left_out.items()
            },
        }

    def batches(self, columns: Iterable[str] = (), max_bytes: int = 16 << 20) -> Iterator[Batch]:
        """Stream all documents, in input order.

        Parameters
        ----------
        columns : iterable of str
            Extra columns to bring along.
        max_bytes : int
            Bound on the text of a batch, each row counted with 128 bytes more. A longer document is a batch of its own.

        Returns
        -------
        iterator of Batch
            The same documents for any `max_bytes`; nothing for an empty source.

        Raises
        ------
        InputError
            At once for a missing column or a spent stream; while reading for broken data and null ids.
        """
        names = list(dict.fromkeys(columns))
        for name in names:
            # What arrays and objects in JSON hold is not known.
            self._check(name, lambda kind: self.format != "jsonl" or not pa.types.is_nested(kind), "a value", "--keep")
        types = {name: self._type(name) for name in names}
        if not self.rewindable and self._readers[0].spent:
            raise InputError("the stream has been read and gives its documents only once; pass a table instead.")
        return self._batches(types, max(1, max_bytes))

    def _batches(self, types: dict[str, pa.DataType], max_bytes: int) -> Iterator[Batch]:
        first_row = self._stripped = 0
        for piece, num_null in ahead(coalesce(self._pieces(types, max_bytes), max_bytes)):
            text = piece.column(0)
            if self.id_column is not None or self.format == "text":
                ids = copied(piece.column(1))
            else:
                ids = arrow(np.arange(first_row, first_row + piece.num_rows, dtype=np.int64))
            extra = {name: copied(piece.column(2 + i)) for i, name in enumerate(types)}
            yield Batch(first_row, ids, ragged(text), num_null, extra)
            first_row += piece.num_rows

    def _pieces(self, types: dict[str, pa.DataType], max_bytes: int) -> Iterator[tuple[pa.RecordBatch, int]]:
        """(text as large_binary without nulls, id, extra columns) and the number of nulls there were."""
        key = "path" if self.format == "text" else self.id_column
        key_type = None if key is None else self._type(key)
        rows, num_bytes = 0, 0.0
        for reader in self._readers:
            wanted = {name: pa.string() for name in self.text_columns}
            wanted |= types
            if key is not None and key_type is not None:
                wanted[key] = key_type
            row = 0
            for read in reader.read(pa.schema(list(wanted.items())), max_bytes):
                for batch in sliced(read, self.text_columns, self.html):
                    with reading(reader.name):
                        text, num_null = self._text(batch)
                        ids = text if key is None else decoded(batch.column(key), key_type)
                        extra = [decoded(batch.column(name), kind) for name, kind in types.items()]
                    if key is not None:
                        check_ids(ids, key, reader.name, row)
                    arrays = [text, ids, *extra]
                    row += batch.num_rows
                    self._read = rows + row, num_bytes + reader.share * reader.num_bytes
                    yield pa.RecordBatch.from_arrays(arrays, [str(i) for i in range(len(arrays))]), num_null
            rows, num_bytes = rows + row, num_bytes + reader.num_bytes

    def _text(self, batch: pa.RecordBatch) -> tuple[pa.Array, int]:
        arrays = [self._visible(batch.column(name)) for name in self.text_columns]
        if len(arrays) == 1:
            (text,) = arrays
            return (pc.fill_null(text, b"") if text.null_count else text), text.null_count
        empty = np.logical_and.reduce([np.asarray(array.is_null()) for array in arrays])
        newline, nothing = pa.scalar(b"\n", pa.large_binary()), pa.scalar(b"", pa.large_binary())
        # The join leaves out a row that is null in every column, so one column gets an empty string there.
        first = pc.if_else(arrow(empty), nothing, arrays[0])
        text = pc.binary_join_element_wise(first, *arrays[1:], newline, null_handling="skip")
        return text, int(empty.sum())

    def _visible(self, column: pa.Array) -> pa.Array:
        text = decoded(column, pa.large_binary())
        if not self.html or self.format == "text":
            return text
        # Text columns are UTF-8 whatever their markup claims; bytes may declare their own charset.
        declared = pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type)

        def visible(page: bytes) -> bytes:
            read = read_page(page if declared else page.decode("utf-8", "replace"))
            self._stripped += not read.parsed
            return read.text.encode("utf-8")

        return pa.array([None if page is None else visible(page) for page in text.to_pylist()], pa.large_binary())

    def write_kept(self, folder: Path, keep: np.ndarray) -> None:
        """Write the rows to keep, all their columns, in the input's format.

        One part for each input file (``part-00000.parquet`` and so on), also where it keeps nothing; text files are
        copied under their relative paths. Parts stay in their ``key=value`` folders, such as
        ``year=2020/part-00000.parquet``, which hold a column's value where data is partitioned. Documents in memory
        become Parquet. The caller renames the folder around `folder` once all is written.

        Parameters
        ----------
        folder : Path
            Made if it does not exist.
        keep : array of bool, shape (documents,)
            In input order.

        Raises
        ------
        InputError
            If the source is a stream, which gives its rows only once, or no longer holds as many documents, or is in
            memory and has a column of a type that Parquet lacks.
        OutputError
            If the folder cannot be written. Files are named from `folder` on: the folder around it is temporary.
        """
        if not self.rewindable:
            raise InputError("a stream cannot be read again to write the kept rows; pass a table instead.")
        rows = Rows(np.asarray(keep, bool))
        with writing(folder, folder):
            folder.mkdir(parents=True, exist_ok=True)
        for number, reader in enumerate(self._readers):
            reader.write(folder, f"part-{number:05d}", rows)
        rows.finish()

    def texts(self, rows: Iterable[int]) -> dict[int, str]:
        """Text of a few documents, by row number; reads the source up to the last of them.

        Raises
        ------
        InputError
            If there is no such row.
        """
        wanted = sorted(set(rows))
        found: dict[int, str] = {}
        with contextlib.closing(self.batches()) as batches:  # type: ignore[type-var]
            for batch in batches:
                last = batch.first_row + batch.num_rows
                for row in wanted:
                    if batch.first_row <= row < last:
                        found[row] = batch.text[row - batch.first_row].tobytes().decode("utf-8", "replace")
                if not wanted or wanted[-1] < last:
                    break
        for row in wanted:
            if row not in found:
                raise InputError(f"{self._readers[0].name}: no document in row {row}.")
        return found

    def _check(self, name: str, fits: Callable[[pa.DataType], bool], what: str, option: str) -> None:
        """Every file has the column, once, and of a fitting type."""
        for reader in self._readers:
            schema = reader.schema
            if self.format == "jsonl" and len(schema) == 0:
                continue
            count = schema.names.count(name)
            if count != 1:
                problem = "no column" if count == 0 else f"{count} columns named"
                extent = " (the first 100 lines are looked at)" if self.format == "jsonl" else ""
                raise InputError(
                    f"{reader.name}: {problem} {name!r}; it has {listed(schema.names)}{extent}. Name one with {option}."
                )
            kind = schema.field(name).type
            if not fits(kind):
                where, holds = reader.name, str(kind)
                if self.format == "jsonl":
                    where, holds = f"{where} line {reader.decided[name]}", json_words(kind)
                raise InputError(f"{where}: column {name!r} holds {holds}, not {what}. Name one with {option}.")

    def _type(self, name: str) -> pa.DataType:
        """The type that the column is given in: one for all files."""
        kinds: dict[pa.DataType, str] = {}
        for reader in self._readers:
            if name in reader.schema.names:
                kind = plain_type(reader.schema.field(name).type)
                if self.format == "jsonl" and name != self.id_column and pa.types.is_integer(kind):
                    kind = pa.float64() if reader.has_float(name) else kind
                elif self.format == "jsonl" and pa.types.is_null(kind):
                    kind = pa.string()
                kinds.setdefault(kind, reader.name)
        if len(kinds) <= 1:
            return next(iter(kinds), pa.string())
        if all(is_text(kind) for kind in kinds):
            return pa.large_string() if all(is_string(kind) for kind in kinds) else pa.large_binary()
        if all(pa.types.is_integer(kind) for kind in kinds):
            unsigned = all(pa.types.is_unsigned_integer(kind) for kind in kinds)
            return pa.uint64() if unsigned or self.format == "jsonl" else pa.int64()
        if all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in kinds) and name != self.id_column:
            return pa.float64()
        (kind_a, file_a), (kind_b, file_b) = list(kinds.items())[:2]
        raise InputError(
            f"{file_b}: column {name!r} holds {kind_b}, but {kind_a} in {file_a}. Make them the same type."
        )
