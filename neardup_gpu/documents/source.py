"""Readers and writers: Parquet, JSON lines, Arrow, text and HTML files -> batches of documents, and the kept rows back.

Input order is (sorted path, row). Text flows through in batches bounded in bytes; a background thread decodes the next
batch while the caller works on this one. Text leaves here as bytes, exactly as it was stored: nobody checks UTF-8
before the token kernel does.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs

from .. import checks
from ..data import Ragged, arrow, strings
from ..errors import ArgumentTypeError, InputError, ParameterError
from ..log import log
from ..report import shorten
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
from .find import LEFT_OUT, File, Found, escaped_name, find_files, names_below, one_kind
from .html import read_page
from .ipc import Ipc
from .jsonlines import JsonLines, json_words, mixed_integers
from .kept import Rows, filtered, writing
from .memory import Memory, as_table, as_texts
from .parquet import Parquet
from .reading import reading
from .skipped import MAX_DOCUMENT_BYTES, SCHEMA, Policy, Skipped
from .textfiles import TextFiles
from .uris import is_masked, is_uri, masked
from .valid import valid

READERS = {"parquet": Parquet, "jsonl": JsonLines, "ipc": Ipc}
"""The reader of one file of each format; text files are read together."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Some consecutive documents.

    Parameters
    ----------
    first_row : int
        Number of the first document, in input order.
    ids : pyarrow.Array, length n
        The id column (dictionaries decoded, views as large strings); relative paths for text files; else int64 row
        numbers. Rows that cannot be read and are skipped have numbers too. Integers of JSON lines are uint64 in batches
        that hold one from 2**63 on.
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
    on_error: str = "stop",
    max_document_bytes: int = MAX_DOCUMENT_BYTES,
) -> Documents:
    """Open documents for streaming; only schemas and first lines are read here.

    Parameters
    ----------
    source : str, Path, list of them, or a table, default None
        A file (Parquet, JSON lines plain, .gz or .zst, Arrow IPC), a folder of such files of one kind or of text and
        HTML files, a glob pattern, or a URI such as ``s3://bucket/x.parquet`` of pyarrow.fs or, where that has no such
        file system, of fsspec. A result of dedup gives the rows that it kept. Or a table: pyarrow, Polars, DuckDB,
        pandas, a Hugging Face dataset, a dict of columns, a list of dicts.
    texts : list of str, array or Series of strings, default None
        The texts themselves, instead of `source`. Their ids are their row numbers; to name them, pass a table such as
        ``{"id": ids, "text": texts}``.
    text_columns : str or sequence of str, default None
        Columns that hold the text, joined by a newline. Unless given, ``text``, else the only column of strings, which
        is never the id column, one of `other_columns`, or one named ``id``.
    id_column : str, default None
        Column of integers or strings that names the documents. Unless given, ids are relative paths for text files,
        else row numbers.
    html : bool, default False
        The text is HTML: take what a reader sees of it. Files ending in .html, .htm and .xhtml are always read so.
    glob : str, default None
        Which files of a folder to read, such as ``*.py`` (at any depth) or ``docs/**/*.md`` (from the folder down).
        With it, files of unknown extension are text. Without it, a folder gives all files of a known extension.
    other_columns : iterable of str, default ()
        Columns that hold something else than text, such as dates to decide by.
    on_error : "stop" or "skip", default "stop"
        What to do at a row that cannot be read (a line that is not valid JSON, a null id, a text file or row group that
        is damaged): raise InputError, or note it in `Documents.skipped` and go on. To skip takes longer, as whole row
        groups are read before any of their rows is used.
    max_document_bytes : int, default 1 GiB
        Bound on a line of JSON lines, and on a text or HTML file.

    Returns
    -------
    Documents

    Raises
    ------
    InputError
        If there is nothing to read, or it cannot be read, or the columns are not as said.
    ParameterError, ArgumentTypeError
        If another argument is not what is said above.

    Notes
    -----
    Links are followed; a file that is reached several times, also by several names of its own (hard links), is read
    once. Folders leave out what is hidden, names that begin with ``_``, finished results of dedup and what else
    neardup wrote, pipes and devices, README, LICENSE and the like beside data, and files of unknown extension: all but
    the first are counted, named in the log at INFO, and in the report.

    Examples
    --------
    >>> open_documents(texts=["to be", "or not to be"]).num_rows
    2
    >>> documents = open_documents({"name": ["a", "b"], "text": ["to be", "or not to be"]}, id_column="name")
    >>> [batch.ids.to_pylist() for batch in documents.batches()]
    [['a', 'b']]
    """
    text_columns = checks.optional(checks.columns, "text_columns", text_columns)
    id_column = checks.optional(checks.text, "id_column", id_column, "give the name of a column")
    other_columns = checks.columns("other_columns", other_columns, none=True)
    html, glob = checks.flag("html", html), checks.optional(checks.text, "glob", glob, "give a pattern such as *.py")
    options: dict[str, Any] = {"html": html, "policy": Policy(on_error, max_document_bytes)}
    options |= {"text_columns": text_columns, "id_column": id_column, "other_columns": other_columns}
    if (source is None) == (texts is None):
        raise ParameterError("source and texts: give one of them, paths or a table, or the texts themselves")
    if texts is not None:
        if text_columns is not None or id_column is not None or glob is not None:
            raise ParameterError(
                "texts: have no columns and no files; leave out text_columns, id_column and glob, or pass a table"
            )
        return Documents([Memory(as_texts(texts))], "memory", sources=[], glob=None, **options)
    table = as_table(source)
    if table is not None:
        return Documents([Memory(table)], "memory", sources=[], glob=None, **options)
    names = _names(source)
    found = find_files(names, glob)
    kind = one_kind(found.files, names)
    readers: list[Any]
    if kind == "text":
        readers = [TextFiles(found.files, html, options["policy"])]
        if text_columns is not None or id_column is not None:
            raise InputError(f"{masked(names[0])}: text files have no columns; leave out the text and id column.")
    else:
        readers, options["unreadable"] = _readers(READERS[kind], found.files, options["policy"])
        readers = _without_artefacts(readers, found)
    sources = [masked(name) if is_uri(name) else os.path.abspath(name) for name in names]
    documents = Documents(readers, kind, sources=sources, glob=glob, left_out=found.left_out, **options)
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
        if not name:
            raise InputError(
                "no input: a path is empty; write . for the folder that you are in, or pass texts as texts=[...]."
            )
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
        log.info("%s: left out, %s", source, "; ".join(parts))


def _readers(kind: Any, files: list[File], policy: Policy) -> tuple[list[Any], list[dict[str, object]]]:
    """A reader for each file, and the files that have none because they cannot be read at all."""
    readers, skipped, errors = [], Skipped(policy.skips), []
    for file in files:
        try:
            readers.append(kind(file, policy))
        except InputError as error:
            skipped.add(error, file.name, 0, rows=None)
            errors.append(error)
    if not readers:
        raise errors[0]
    return readers, [{**entry, "row": None} for entry in skipped.entries]


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
        on_error=description.get("on_error", "stop"),
        max_document_bytes=description.get("max_document_bytes", MAX_DOCUMENT_BYTES),
    )
    if documents.num_files != description["num_files"]:
        raise InputError(
            f"{description['paths'][0]}: {documents.num_files} files, but there were {description['num_files']} "
            "when the result was made; run dedup again."
        )
    return documents


class Documents:
    """Documents of one source: see `open_documents`, which makes them.

    Examples
    --------
    >>> documents = open_documents(texts=["to be", "or not to be"])
    >>> documents.format, documents.num_files, documents.rewindable
    ('memory', 0, True)
    """

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
        policy: Policy,
        other_columns: Iterable[str] = (),
        left_out: dict[str, list[str]] | None = None,
        unreadable: Sequence[dict[str, object]] = (),
    ) -> None:
        self._readers, self._sources, self._glob = readers, sources, glob
        self._policy, self._unreadable = policy, unreadable
        self._read = (0, 0.0)  # documents and bytes of files that have been read
        self._stripped = 0
        self._left_out = left_out or {}
        self._passed: list[_Passed] = []
        self._unique = False
        self._names = ["part-00000.parquet"]  # of the files that kept rows are written to, one for each reader
        if kind not in ("memory", "text"):
            self._names = names_below([reader.file for reader in readers])
        self.format = kind
        self.html = html
        self.id_column = id_column
        if kind == "text":
            self.text_columns: list[str] = ["text"]
            return
        # A JSON-lines file without lines says nothing about its columns.
        if kind == "jsonl" and text_columns is None and not any(map(is_string, readers[0].schema.types)):
            readers[0].look_for("text", typed=False)
        schemas = [r.schema for r in readers if kind != "jsonl" or len(r.schema)]
        if text_columns is None:
            self.text_columns = [self._default_text(schemas, [*other_columns, *([id_column] if id_column else [])])]
        else:
            self.text_columns = [text_columns] if isinstance(text_columns, str) else list(text_columns)
        if not self.text_columns:
            raise InputError(f"{readers[0].name}: the list of text columns is empty.")
        if schemas:
            for name in self.text_columns:
                self._check(name, is_text, "text", "text_columns")
            if id_column is not None:
                self._check(id_column, is_key, "integers or strings", "id_column")
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
        log.info("%s: the text is column %r", self._readers[0].name, column)
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
        """What `open_described` needs to open the same documents, ready for JSON.

        Examples
        --------
        >>> open_documents(texts=["to be"]).describe()["format"]
        'memory'
        """
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
            "on_error": self._policy.on_error,
            "max_document_bytes": self._policy.max_document_bytes,
        }

    @property
    def skipped(self) -> pa.Table | None:
        """Rows that the last reading left out, in input order: file, row, rows, reason. None unless rows are skipped.

        `row` counts from 1, in JSON lines the lines of the file; it is null where the whole file cannot be read. `rows`
        is how many there are from there on: null where that cannot be known, as behind damage in a compressed file.
        """
        if not self._policy.skips:
            return None
        entries = [*self._unreadable, *(entry for passed in self._passed for entry in passed.skipped.entries)]
        return pa.Table.from_pylist(entries, SCHEMA)

    def batches(self, columns: Iterable[str] = (), max_bytes: int = 16 << 20) -> Iterator[Batch]:
        """Stream all documents, in input order.

        Parameters
        ----------
        columns : iterable of str, default ()
            Extra columns to bring along.
        max_bytes : int, default 16 MiB
            Bound on the text of a batch, each row counted with 128 bytes more. A longer document is a batch of its own.

        Returns
        -------
        iterator of Batch
            The same documents for any `max_bytes`; nothing for an empty source.

        Raises
        ------
        InputError
            At once for a missing column or a spent stream; while reading for broken data and null ids.
        ParameterError, ArgumentTypeError
            If `columns` are no names, or `max_bytes` is no number of bytes.

        Examples
        --------
        >>> documents = open_documents({"text": ["to be", "or not"], "year": [1599, 1603]})
        >>> [batch.columns["year"].to_pylist() for batch in documents.batches(["year"])]
        [[1599, 1603]]
        """
        names = list(dict.fromkeys(checks.columns("columns", columns, none=True)))
        max_bytes = checks.integer("max_bytes", max_bytes)
        for name in names:
            # What arrays and objects in JSON hold is not known.
            self._check(name, lambda kind: self.format != "jsonl" or not pa.types.is_nested(kind), "a value", "keep")
        types = {name: self._type(name) for name in names}
        if not self.rewindable and self._readers[0].spent:
            raise InputError("the stream has been read and gives its documents only once; pass a table instead.")
        return self._batches(types, max(1, max_bytes))

    def _batches(self, types: dict[str, pa.DataType], max_bytes: int) -> Iterator[Batch]:
        first_row = self._stripped = 0
        for piece, num_null in ahead(coalesce(self._pieces(types, max_bytes), max_bytes)):
            ids = copied(piece.column(1))
            extra = {name: copied(piece.column(2 + i)) for i, name in enumerate(types)}
            yield Batch(first_row, ids, ragged(piece.column(0)), num_null, extra)
            first_row += piece.num_rows

    def _pieces(self, types: dict[str, pa.DataType], max_bytes: int) -> Iterator[tuple[pa.RecordBatch, int]]:
        """(text as large_binary without nulls, id, extra columns) and the number of nulls there were."""
        key = "path" if self.format == "text" else self.id_column
        key_type = None if key is None else self._type(key)
        wanted = {name: pa.field(name, pa.string()) for name in self.text_columns}
        wanted |= {name: pa.field(name, kind) for name, kind in types.items()}
        if key is not None and key_type is not None:
            wanted[key] = pa.field(key, key_type, nullable=pa.types.is_null(key_type))
        schema = pa.schema(list(wanted.values()))
        signs = _Signs(key)
        self._passed = []
        first = num_documents = 0  # first row of the file, among the rows of all files, and documents so far
        num_bytes = 0.0
        for reader in self._readers:
            skipped = Skipped(self._policy.skips)
            passed = _Passed(reader, skipped)
            self._passed.append(passed)
            for read, all_rows in reader.read(schema, max_bytes, skipped):
                start = 0
                for batch in sliced(read, self.text_columns, self.html):
                    rows = all_rows[start : start + batch.num_rows]
                    start += batch.num_rows
                    if key is not None:
                        with reading(reader.name):
                            ids = self._ids(valid(batch.column(key)), key_type)
                        batch, rows, ids = _identified(batch, rows, ids, key, passed)
                        signs.check(ids, reader.name)
                    else:
                        ids = arrow(rows + first)
                    with reading(reader.name):
                        text, num_null = self._text(batch)
                        extra = [decoded(batch.column(name), kind) for name, kind in types.items()]
                    arrays = [text, ids, *extra]
                    num_documents += len(rows)
                    self._read = num_documents, num_bytes + reader.share * reader.num_bytes
                    yield pa.RecordBatch.from_arrays(arrays, [str(i) for i in range(len(arrays))]), num_null
                    passed.num_documents += len(rows)
            first += passed.num_documents + skipped.num_rows
            num_bytes += reader.num_bytes

    def _ids(self, column: pa.Array, kind: pa.DataType | None) -> pa.Array:
        """Ids as they are given; integers of JSON lines stay as wide as they had to be read."""
        if self.format == "jsonl" and pa.types.is_integer(column.type):
            return column
        return decoded(column, kind)

    def places(self) -> dict[str, pa.Array]:
        """Where the documents of the last reading lie: columns `file`, its path below the folder that all files share,
        and `row` in it, from 1 (of JSON lines the line); nothing for documents in memory.

        Examples
        --------
        >>> open_documents(texts=["to be"]).places()
        {}
        """
        if self.format == "memory":
            return {}
        if self.format == "text":
            (passed,) = self._passed
            names, files = np.flatnonzero(passed.skipped.read(passed.num_documents)), passed.reader.ids
            rows = np.ones(passed.num_documents, np.int64)
        else:
            names = np.repeat(np.arange(len(self._passed)), [passed.num_documents for passed in self._passed])
            files = self._names
            numbers = [passed.places(np.arange(passed.num_documents)) for passed in self._passed]
            rows = np.concatenate(numbers) if numbers else np.empty(0, np.int64)
        file = pa.DictionaryArray.from_arrays(arrow(names.astype(np.int32)), strings(files))
        return {"file": file, "row": arrow(rows)}

    def check_unique(self, ids: pa.Array | pa.ChunkedArray, what: str = "input") -> None:
        """Raise InputError if two documents of the last reading have the same id.

        Parameters
        ----------
        ids : pyarrow.Array or ChunkedArray
            Of all documents, in input order.
        what : str, default "input"
            What messages call the documents.

        Examples
        --------
        >>> open_documents(texts=["to be", "or not"]).check_unique(pa.array([0, 1]))
        """
        if self._unique or len(pc.unique(ids)) == len(ids):
            return
        counts = pc.value_counts(ids)
        repeated = counts.filter(pc.greater(counts.field("counts"), 1))[0]
        first = pc.index(ids, repeated["values"]).as_py()
        second = pc.index(ids.slice(first + 1), repeated["values"]).as_py() + first + 1
        number, shown = repeated["counts"].as_py(), shorten(repr(repeated["values"].as_py()), 60)
        raise InputError(
            f"{what}: id {shown} stands for {number:,} documents ({self._place(first)}, {self._place(second)}"
            f"{', ...' if number > 2 else ''}); name a column of unique ids with id_column=..., or leave it out to "
            "use row numbers"
        )

    def _place(self, number: int) -> str:
        """File and row of a document of the last reading."""
        for passed in self._passed:
            if number < passed.num_documents:
                (row,) = passed.places(np.array([number]))
                return f"{passed.reader.name} {'line' if self.format == 'jsonl' else 'row'} {row}"
            number -= passed.num_documents
        return f"document {number + 1}"

    def check_ids_early(self, what: str = "input") -> None:
        """Raise InputError for null and repeated ids, where the ids can be read without the text: before all work.

        Nothing is done where rows are skipped, as some of the repeated ids may be among those.

        Parameters
        ----------
        what : str, default "input"
            What messages call the documents.

        Examples
        --------
        >>> open_documents(texts=["to be", "or not"]).check_ids_early()
        """
        if self.id_column is None or self.format not in ("parquet", "ipc") or self._policy.skips:
            return
        if not all(reader.reads_columns_alone for reader in self._readers):
            return
        kind = self._type(self.id_column)
        schema = pa.schema([pa.field(self.id_column, kind)])
        chunks: list[pa.Array] = []
        self._passed = []
        for reader in self._readers:
            passed = _Passed(reader, Skipped(False))
            self._passed.append(passed)
            for batch, rows in reader.read(schema, 16 << 20):
                with reading(reader.name):
                    ids = decoded(valid(batch.column(0)), kind)
                check_ids(ids, self.id_column, reader.name, int(rows[0]) if len(rows) else 0)
                chunks.append(copied(ids))
                passed.num_documents += len(ids)
        if chunks:
            self.check_unique(pa.chunked_array(chunks), what)
        self._unique = True  # unless a file changes, which is noticed

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

        One file for each data file, also where nothing of it stays, and the text files that stay, each under its path
        below the folder that all of them share. ``key=value`` folders, which hold a column's value where data is
        partitioned, stay even if all files share them. Documents in memory become ``part-00000.parquet``. The
        caller renames the folder around `folder` once all is written.

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
        ParameterError, ArgumentTypeError
            If `folder` is no path, or `keep` no such array.

        Examples
        --------
        >>> import tempfile
        >>> documents = open_documents({"text": ["to be", "or not"]})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     documents.write_kept(Path(folder, "kept"), np.array([True, False]))
        ...     open_documents(f"{folder}/kept").num_rows
        1
        """
        if not self.rewindable:
            raise InputError("a stream cannot be read again to write the kept rows; pass a table instead.")
        folder, keep = Path(checks.path("folder", folder)), checks.array("keep", keep, bool)
        rows = Rows(self._all_rows(keep))
        with writing(folder, folder):
            folder.mkdir(parents=True, exist_ok=True)
        for name, reader in zip(self._names, self._readers, strict=True):
            reader.write(folder, name, rows)
        rows.finish()

    def _all_rows(self, keep: np.ndarray) -> np.ndarray:
        """The keep mask with the rows that the last reading left out, which do not stay."""
        if not any(passed.skipped.ranges for passed in self._passed):
            return keep
        parts, start = [], 0
        for passed in self._passed:
            part = passed.skipped.read(passed.num_documents)
            part[part] = keep[start : start + passed.num_documents]
            parts.append(part)
            start += passed.num_documents
        return np.concatenate(parts)

    def texts(self, rows: Iterable[int]) -> dict[int, str]:
        """Text of a few documents, by row number; reads the source up to the last of them.

        Parameters
        ----------
        rows : iterable of int
            Numbers of rows, from 0.

        Raises
        ------
        InputError
            If there is no such row.
        ParameterError, ArgumentTypeError
            If they are no numbers of rows.

        Examples
        --------
        >>> open_documents(texts=["to be", "or not", "to be"]).texts([1])
        {1: 'or not'}
        """
        if isinstance(rows, str) or not hasattr(rows, "__iter__"):
            raise ArgumentTypeError(f"rows: {checks.shown(rows)}; give a list of row numbers")
        wanted = sorted({checks.integer("rows", row) for row in rows})
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
            # Where nothing is skipped, a first line without id is an error as well.
            if self.format == "jsonl" and len(reader.schema) and (self._policy.skips or name != self.id_column):
                reader.look_for(name, typed=name not in self.text_columns)
                if self._policy.skips and name in self.text_columns and reader.holds_text(name):
                    continue
            schema = reader.schema
            if self.format == "jsonl" and len(schema) == 0:
                continue
            count = schema.names.count(name)
            if count != 1:
                problem = "no column" if count == 0 else f"{count} columns named"
                extent = " in the first 100 lines" if self.format == "jsonl" else ""
                there = f"it has {listed(schema.names)}{extent}"
                raise InputError(f"{reader.name}: {problem} {name!r}; {there}. Name one with {option}=...")
            kind = schema.field(name).type
            if not fits(kind):
                where, holds = reader.name, str(kind)
                if self.format == "jsonl":
                    where, holds = f"{where} line {reader.decided[name]}", json_words(kind)
                raise InputError(f"{where}: column {name!r} holds {holds}, not {what}. Name one with {option}=...")

    def _type(self, name: str) -> pa.DataType:
        """The type that the column is given in: one for all files."""
        kinds: dict[pa.DataType, str] = {}
        for reader in self._readers:
            if name in reader.schema.names:
                kind = plain_type(reader.schema.field(name).type)
                if self.format == "jsonl" and pa.types.is_null(kind):
                    kind = pa.string()
                kinds.setdefault(kind, reader.name)
        if self.format == "jsonl" and name != self.id_column and any(map(pa.types.is_integer, kinds)):
            return self._number_type(name, kinds)
        if len(kinds) <= 1:
            return next(iter(kinds), pa.string())
        if all(is_text(kind) for kind in kinds):
            return pa.large_string() if all(is_string(kind) for kind in kinds) else pa.large_binary()
        if all(pa.types.is_integer(kind) for kind in kinds):
            unsigned = all(pa.types.is_unsigned_integer(kind) for kind in kinds)
            return pa.uint64() if unsigned or self.format == "jsonl" else pa.int64()
        if all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in kinds) and name != self.id_column:
            return pa.float64()
        raise self._unlike(name, kinds)

    def _number_type(self, name: str, kinds: dict[pa.DataType, str]) -> pa.DataType:
        """The type of an extra column of JSON lines that begins with integers: what holds all its numbers."""
        if not all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in kinds):
            raise self._unlike(name, kinds)
        if any(map(pa.types.is_floating, kinds)):
            return pa.float64()
        found: set[str] = set().union(*(reader.numbers(name) for reader in self._readers))
        if "float" in found or {"negative", "wide"} <= found:
            return pa.float64()
        return pa.uint64() if "wide" in found else pa.int64()

    def _unlike(self, name: str, kinds: dict[pa.DataType, str]) -> InputError:
        (kind_a, file_a), (kind_b, file_b) = list(kinds.items())[:2]
        return InputError(
            f"{file_b}: column {name!r} holds {kind_b}, but {kind_a} in {file_a}. Make them the same type."
        )


@dataclass
class _Passed:
    """What came of one reader in the last reading."""

    reader: Any
    skipped: Skipped
    num_documents: int = 0

    def places(self, numbers: np.ndarray) -> np.ndarray:
        """Rows in their file, from 1, of some of its documents; of JSON lines the lines."""
        rows = numbers
        if self.skipped.ranges:
            rows = np.flatnonzero(self.skipped.read(self.num_documents))[numbers]
        return self.reader.places(rows) if isinstance(self.reader, JsonLines) else rows + 1


def _identified(
    batch: pa.RecordBatch, rows: np.ndarray, ids: pa.Array, key: str, passed: _Passed
) -> tuple[pa.RecordBatch, np.ndarray, pa.Array]:
    """The documents that have an id."""
    try:
        if len(rows):
            check_ids(ids, key, passed.reader.name, int(rows[0]))
        return batch, rows, ids
    except InputError:
        if not passed.skipped.skips:
            raise
    good = np.ones(len(rows), bool)
    for i in range(len(rows)):
        try:
            check_ids(ids.slice(i, 1), key, passed.reader.name, int(rows[i]))
        except InputError as error:
            passed.skipped.add(error, passed.reader.name, int(rows[i]))
            good[i] = False
    return filtered(batch, good), rows[good], ids.filter(arrow(good))


class _Signs:
    """Integer ids, which are int64 here and uint64 there in JSON lines: no negative one with one from 2**63 on."""

    def __init__(self, column: str | None) -> None:
        self.column = column
        self.found: dict[str, str] = {}  # "negative" and "wide", and the file that holds such an id

    def check(self, ids: pa.Array, name: str) -> None:
        if pa.types.is_int64(ids.type) and (pc.min(ids).as_py() or 0) < 0:
            self.found.setdefault("negative", name)
        elif pa.types.is_uint64(ids.type) and (pc.max(ids).as_py() or 0) >= 2**63:
            self.found.setdefault("wide", name)
        if len(self.found) == 2:
            other = self.found["negative"] if self.found["wide"] == name else self.found["wide"]
            raise mixed_integers(name, self.column or "", other)
