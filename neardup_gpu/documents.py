"""Readers and writers: Parquet, JSON lines, Arrow, text and HTML files -> batches of documents, and the kept rows back.

Input order is (sorted path, row). Text flows through in batches bounded in bytes; a background thread decodes the next
batch while the caller works on this one. Text leaves here as bytes, exactly as it was stored: nobody checks UTF-8
before the token kernel does.

JSON lines. A row is a line that is not blank. Blocks of whole lines are parsed by pyarrow.json (570 MB/s on
bills_116_small, one core; json.loads with its copies gives 110 MB/s), and again by json.loads, line by line, only where
that fails: to name the broken line, or to read what json.loads accepts (lone surrogates, which become U+FFFD). Kept
lines are written as the bytes they were, with their own line endings; blank lines and a byte order mark are left out.
The columns are those of the first hundred lines. Integers stay integers: int64, or uint64 where the first hundred lines
hold one above 2**63 - 1. An extra column of integers becomes float64 only if the file holds a number in it with a
fraction or an exponent, or beyond 64 bits.

Parquet. Decoding goes row group by row group, in batches sized from the row group's own statistics.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json
import pyarrow.parquet as pq
from pyarrow import fs

from .data import Ragged, arrow
from .errors import InputError, OutputError
from .html import visible_text

EXTENSIONS = {
    "parquet": (".parquet", ".pq"),
    "jsonl": (".jsonl", ".ndjson", ".json"),
    "ipc": (".arrow", ".arrows", ".ipc", ".feather"),
    "text": (".txt", ".md", ".rst", ".html", ".htm", ".xhtml"),
}
HTML_EXTENSIONS = (".html", ".htm", ".xhtml")
COMPRESSIONS = (".gz", ".zst")
SUPPORTED = (
    ".parquet, .pq, .jsonl, .ndjson, .json (these three also .gz, .zst), .arrow, .arrows, .ipc, .feather; "
    "folders of .txt, .md, .rst, .html, .htm, .xhtml"
)
BLOCK_BYTES = 4 << 20  # of JSON lines parsed at once
ROW_GROUP_BYTES = 16 << 20  # of kept rows, before compression, written as one row group
ROW_BYTES = 128  # what a row counts beside its text, so that a batch of tiny documents stays small too

T = TypeVar("T")


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
    source: Any,
    *,
    text_columns: str | Sequence[str] | None = None,
    id_column: str | None = None,
    html: bool = False,
    glob: str | None = None,
) -> Documents:
    """Open documents for streaming; only schemas and first lines are read here.

    Parameters
    ----------
    source : str, Path, list of them, or an object with ``__arrow_c_stream__``
        A file (Parquet, JSON lines plain, .gz or .zst, Arrow IPC), a folder of such files of one kind or of text and
        HTML files, a glob pattern, or a pyarrow.fs URI such as ``s3://bucket/x.parquet``. In folders, hidden files and
        those whose name begins with ``_`` are left out, and finished results of dedup inside the folder. Or a table:
        pyarrow, Polars, DuckDB, pandas.
    text_columns : str or sequence of str, optional
        Columns that hold the text, joined by a newline. Default: ``text``, else the only string column.
    id_column : str, optional
        Column of integers or strings that names the documents. Default: relative paths for text files, else row
        numbers.
    html : bool
        The text is HTML: take what a reader sees of it. Files ending in .html, .htm and .xhtml are always read so.
    glob : str, optional
        Which files of a folder to read, such as ``*.py`` (at any depth) or ``docs/**/*.md`` (from the folder down).
        With it, files of unknown extension are text. Without it, a folder gives all files of a known extension.

    Returns
    -------
    Documents

    Raises
    ------
    InputError
        If there is nothing to read, or it cannot be read, or the columns are not as said.
    """
    options: dict[str, Any] = {"text_columns": text_columns, "id_column": id_column, "html": html}
    if hasattr(source, "__arrow_c_stream__") or isinstance(source, pa.RecordBatch):
        return Documents([_Memory(source)], "memory", sources=[], glob=None, **options)
    paths = [source] if isinstance(source, (str, os.PathLike)) else source
    if not isinstance(paths, (list, tuple)) or not all(isinstance(p, (str, os.PathLike)) for p in paths):
        raise InputError(
            f"cannot read documents from {type(source).__name__}: give a path, a list of paths or an Arrow table."
        )
    names = [os.fspath(p) for p in paths]
    if not names:
        raise InputError("no input: the list of paths is empty.")
    found: dict[str, _File] = {}
    for name in names:
        if _shown(name) != name:
            raise InputError(f"{_shown(name)}: the name is not UTF-8; rename it.")
        for file in _find(name, glob):
            # Under several roots, the same whatever their order: the shorter root gives the longer id.
            found[file.path] = min(found.get(file.path, file), file, key=lambda f: len(f.root))
    files = [found[path] for path in sorted(found)]
    kind = _one_kind(files, names)
    readers: list[Any]
    if kind == "text":
        readers = [_TextFiles(files, html)]
        if text_columns is not None or id_column is not None:
            raise InputError(f"{names[0]}: text files have no columns; leave out the text and id column.")
    else:
        readers = [{"parquet": _Parquet, "jsonl": _JsonLines, "ipc": _Ipc}[kind](file) for file in files]
    sources = [name if "://" in name else os.path.abspath(name) for name in names]
    return Documents(readers, kind, sources=sources, glob=glob, **options)


def open_described(description: dict[str, Any]) -> Documents:
    """Open again what `Documents.describe` described.

    Raises
    ------
    InputError
        If the documents were given in memory, or are no longer as many files.
    """
    if description["format"] == "memory":
        raise InputError("the documents were given in memory, so they cannot be opened again from their description.")
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
    ) -> None:
        self._readers, self._sources, self._glob = readers, sources, glob
        self.format = kind
        self.html = html
        self.id_column = id_column
        if kind == "text":
            self.text_columns: list[str] = ["text"]
            return
        # A JSON-lines file without lines says nothing about its columns.
        schemas = [r.schema for r in readers if kind != "jsonl" or len(r.schema)]
        first = schemas[0] if schemas else pa.schema([])
        if text_columns is None:
            self.text_columns = [_default_text_column(readers[0].name, first)] if schemas else ["text"]
        else:
            self.text_columns = [text_columns] if isinstance(text_columns, str) else list(text_columns)
        if not self.text_columns:
            raise InputError(f"{readers[0].name}: the list of text columns is empty.")
        if schemas:
            for name in self.text_columns:
                self._check(name, _is_text, "text", "--text-column")
            if id_column is not None:
                self._check(id_column, _is_key, "integers or strings", "--id-column")
                self._type(id_column)

    @property
    def rewindable(self) -> bool:
        """Whether the documents can be read more than once."""
        return all(reader.rewindable for reader in self._readers)

    @property
    def num_files(self) -> int:
        """Number of input files; 0 for documents in memory."""
        return sum(reader.num_files for reader in self._readers)

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
        first_row = 0
        for piece, num_null in _ahead(_coalesce(self._pieces(types, max_bytes), max_bytes)):
            text = piece.column(0)
            if self.id_column is not None or self.format == "text":
                ids = _copied(piece.column(1))
            else:
                ids = arrow(np.arange(first_row, first_row + piece.num_rows, dtype=np.int64))
            extra = {name: _copied(piece.column(2 + i)) for i, name in enumerate(types)}
            yield Batch(first_row, ids, _ragged(text), num_null, extra)
            first_row += piece.num_rows

    def _pieces(self, types: dict[str, pa.DataType], max_bytes: int) -> Iterator[tuple[pa.RecordBatch, int]]:
        """(text as large_binary without nulls, id, extra columns) and the number of nulls there were."""
        key = "path" if self.format == "text" else self.id_column
        key_type = None if key is None else self._type(key)
        for reader in self._readers:
            wanted = {name: pa.string() for name in self.text_columns}
            wanted |= types
            if key is not None and key_type is not None:
                wanted[key] = key_type
            row = 0
            for read in reader.read(pa.schema(list(wanted.items())), max_bytes):
                for batch in _sliced(read, self.text_columns, self.html):
                    with _named(reader.name):
                        text, num_null = self._text(batch)
                        ids = text if key is None else _decoded(batch.column(key), key_type)
                        extra = [_decoded(batch.column(name), kind) for name, kind in types.items()]
                    if key is not None:
                        _check_ids(ids, key, reader.name, row)
                    arrays = [text, ids, *extra]
                    yield pa.RecordBatch.from_arrays(arrays, [str(i) for i in range(len(arrays))]), num_null
                    row += batch.num_rows

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
        text = _decoded(column, pa.large_binary())
        if not self.html or self.format == "text":
            return text
        # Text columns are UTF-8 whatever their markup claims; bytes may declare their own charset.
        declared = pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type)

        def visible(page: bytes) -> bytes:
            return visible_text(page if declared else page.decode("utf-8", "replace")).encode("utf-8")

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
        rows = _Rows(np.asarray(keep, bool))
        with _writing(folder, folder):
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
                    f"{reader.name}: {problem} {name!r}; it has {_listed(schema.names)}{extent}. "
                    f"Name one with {option}."
                )
            kind = schema.field(name).type
            if not fits(kind):
                where, holds = reader.name, str(kind)
                if self.format == "jsonl":
                    where, holds = f"{where} line {reader.decided[name]}", _json_words(kind)
                raise InputError(f"{where}: column {name!r} holds {holds}, not {what}. Name one with {option}.")

    def _type(self, name: str) -> pa.DataType:
        """The type that the column is given in: one for all files."""
        kinds: dict[pa.DataType, str] = {}
        for reader in self._readers:
            if name in reader.schema.names:
                kind = _plain(reader.schema.field(name).type)
                if self.format == "jsonl" and name != self.id_column and pa.types.is_integer(kind):
                    kind = pa.float64() if reader.has_float(name) else kind
                elif self.format == "jsonl" and pa.types.is_null(kind):
                    kind = pa.string()
                kinds.setdefault(kind, reader.name)
        if len(kinds) <= 1:
            return next(iter(kinds), pa.string())
        if all(_is_text(kind) for kind in kinds):
            return pa.large_string() if all(_is_string(kind) for kind in kinds) else pa.large_binary()
        if all(pa.types.is_integer(kind) for kind in kinds):
            unsigned = all(pa.types.is_unsigned_integer(kind) for kind in kinds)
            return pa.uint64() if unsigned or self.format == "jsonl" else pa.int64()
        if all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in kinds) and name != self.id_column:
            return pa.float64()
        (kind_a, file_a), (kind_b, file_b) = list(kinds.items())[:2]
        raise InputError(
            f"{file_b}: column {name!r} holds {kind_b}, but {kind_a} in {file_a}. Make them the same type."
        )


# Finding files


@dataclass(frozen=True)
class _File:
    system: fs.FileSystem
    path: str  # as the file system names it
    name: str  # as messages name it
    root: str  # the folder that the user named, or that holds the file


def _find(source: str, glob: str | None) -> list[_File]:
    """Files that a path, URI, folder or pattern names."""
    is_uri = "://" in source
    base, pattern = source, ""
    if not is_uri and os.path.exists(source):
        pass
    elif re.search(r"[*\[]" if is_uri else r"[*?\[]", source):
        parts = source.split("/")
        first = next(i for i, part in enumerate(parts) if re.search(r"[*?\[]", part))
        base, pattern = "/".join(parts[:first]) or ("/" if first else "."), "/".join(parts[first:])
    with _named(source):
        if is_uri:
            system, path = fs.FileSystem.from_uri(base)
        else:
            system, path = fs.LocalFileSystem(), Path(os.path.abspath(base)).as_posix()
        info = system.get_file_info(path)
        if info.type == fs.FileType.NotFound:
            raise InputError(f"{source}: no such file or folder.")
        if info.type != fs.FileType.Directory:
            return [_File(system, path, source, path.rpartition("/")[0])]
        recursive = not pattern or "/" in pattern
        infos = system.get_file_info(fs.FileSelector(path, recursive=recursive))
    root = path.rstrip("/")
    found = {_path(info)[len(root) + 1 :]: _path(info) for info in infos if info.type == fs.FileType.File}
    results = _results(found)
    files = []
    for inside, path in found.items():
        if inside.startswith(results):
            continue
        if any(part.startswith((".", "_")) for part in inside.split("/")):
            continue
        if pattern and not _matches(pattern, inside):
            continue
        if not pattern and glob is not None and not _matches(glob if "/" in glob else f"**/{glob}", inside):
            continue
        if not pattern and glob is None and _kind(inside) is None:
            continue
        shown = inside if base == "." else f"{base.rstrip('/')}/{inside}"
        if _shown(shown) != shown:
            raise InputError(f"{_shown(shown)}: the file's name is not UTF-8; rename it.")
        files.append(_File(system, path, shown, root))
    if not files:
        if pattern or glob is not None:
            raise InputError(f"{source}: no file matches {pattern or glob!r}.")
        raise InputError(f"{source}: no file to read in this folder; it may hold {SUPPORTED}. Other files: --glob.")
    return files


def _path(info: fs.FileInfo) -> str:
    try:
        return info.path
    except UnicodeDecodeError as error:
        return error.object.decode("utf-8", "surrogateescape")


def _shown(name: str) -> str:
    """The name as it can be printed: bytes that are not UTF-8 as escapes."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _results(paths: dict[str, str]) -> tuple[str, ...]:
    """Sub-folders that hold a finished result of dedup; they are not input."""
    folders = [path.removesuffix("report.json") for path in paths if path.endswith("/report.json")]
    return tuple(folder for folder in folders if f"{folder}documents.parquet" in paths)


def _partition(path: str) -> str:
    """The ``key=value`` folders that the file lies in, as ``key=value/.../``; else nothing."""
    partition = ""
    for folder in reversed(path.split("/")[:-1]):
        if not re.fullmatch("[^=]+=.*", folder, re.DOTALL):
            break
        partition = f"{folder}/{partition}"
    return partition


def _matches(pattern: str, path: str) -> bool:
    """Whether the whole path fits: ``*`` and ``?`` stay within a name, ``**/`` is any number of folders."""
    expression = ""
    for part in re.findall(r"\*\*/|\*|\?|\[!?[^\]]+\]|.", pattern, re.DOTALL):
        if part == "**/":
            expression += "(?:[^/]+/)*"
        elif part in "*?":
            expression += "[^/]*" if part == "*" else "[^/]"
        elif len(part) > 1:
            expression += part.replace("\\", "\\\\").replace("[!", "[^")
        else:
            expression += re.escape(part)
    try:
        return re.fullmatch(expression, path) is not None
    except re.error:
        raise InputError(f"{pattern!r} is not a file pattern.") from None


def _kind(path: str) -> str | None:
    """Format of a file, by its extension."""
    name = PurePosixPath(path)
    packed = name.suffix.lower() in COMPRESSIONS
    extension = PurePosixPath(name.stem).suffix.lower() if packed else name.suffix.lower()
    for kind, extensions in EXTENSIONS.items():
        if extension in extensions and (kind == "jsonl" or not packed):
            return kind
    return None


def _one_kind(files: list[_File], sources: list[str]) -> str:
    """The format that all files share. Files of unknown extension are text where a pattern picked them."""
    kinds: dict[str, _File] = {}
    for file in files:
        kind = _kind(file.path)
        if kind is None:
            if file.name in sources:
                raise InputError(f"{file.name}: unknown kind of file; supported are {SUPPORTED}.")
            kind = "text"
        kinds.setdefault(kind, file)
    if len(kinds) > 1:
        (a, b) = list(kinds.values())[:2]
        raise InputError(
            f"{a.name} and {b.name} are of different kinds; pick one with --glob, such as '*{_suffix(a)}'."
        )
    return next(iter(kinds))


def _suffix(file: _File) -> str:
    """The extension, with that of its compression."""
    suffixes = PurePosixPath(file.path).suffixes
    return "".join(suffixes[-2:] if suffixes[-1:] and suffixes[-1].lower() in COMPRESSIONS else suffixes[-1:])


# Readers: each has name, schema, num_files, rewindable, read(schema, max_bytes) and write(folder, part, rows)


class _Parquet:
    rewindable = True
    num_files = 1

    def __init__(self, file: _File) -> None:
        self.file, self.name = file, file.name
        with self._open() as parquet:
            self.schema: pa.Schema = parquet.schema_arrow

    @contextlib.contextmanager
    def _open(self) -> Iterator[pq.ParquetFile]:
        with (
            _named(self.name, "not a readable Parquet file"),
            self.file.system.open_input_file(self.file.path) as handle,
            # Without pre_buffer only one row group's columns are in memory.
            pq.ParquetFile(handle, pre_buffer=False) as file,
        ):
            yield file

    def read(self, schema: pa.Schema, max_bytes: int) -> Iterator[pa.RecordBatch]:
        with self._open() as parquet:
            for group in range(parquet.num_row_groups):
                yield from _row_group(parquet, group, schema.names, max_bytes)

    def write(self, folder: Path, part: str, rows: _Rows) -> None:
        _write_parquet(folder, _partition(self.file.path) + part, self.schema, self._kept(rows))

    def _kept(self, rows: _Rows) -> Iterator[pa.RecordBatch]:
        with self._open() as parquet:
            for group in range(parquet.num_row_groups):
                keep = rows.take(parquet.metadata.row_group(group).num_rows, self.name)
                if not keep.any():
                    continue
                start = 0
                for batch in _row_group(parquet, group, None, ROW_GROUP_BYTES // 2):
                    yield _filtered(batch, keep[start : start + batch.num_rows])
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


class _JsonLines:
    rewindable = True
    num_files = 1

    def __init__(self, file: _File) -> None:
        self.file, self.name = file, file.name
        packed = PurePosixPath(file.path).suffix.lower()
        self.compression = {".gz": "gzip", ".zst": "zstd"}.get(packed)
        self.decided: dict[str, int] = {}  # line that decided a column's type
        self.schema: pa.Schema = self._sample()

    def _blocks(self, size: int = BLOCK_BYTES) -> Iterator[_Block]:
        """Blocks of whole lines, at least `size` bytes but for the last."""
        with (
            _named(self.name),
            self.file.system.open_input_stream(self.file.path, compression=self.compression) as stream,
        ):
            pending: list[bytes] = []
            line, first = 1, True
            while True:
                chunk = stream.read(size)
                if first and chunk.startswith(b"\xef\xbb\xbf"):
                    chunk = chunk[3:]
                    if not chunk:
                        chunk = stream.read(size)
                first = False
                cut = chunk.rfind(b"\n") + 1
                if chunk and not cut:
                    pending.append(chunk)
                    continue
                data = b"".join([*pending, chunk[:cut]])
                if data:
                    block = _Block.of(data, line)
                    line = block.next_line
                    yield block
                if not chunk:
                    return
                pending = [chunk[cut:]] if cut < len(chunk) else []

    def _sample(self) -> pa.Schema:
        """Columns and types seen in the first hundred lines."""
        kinds: dict[str, pa.DataType] = {}
        with contextlib.closing(self._blocks(1 << 16)) as blocks:  # type: ignore[type-var]
            seen = 0
            for block in blocks:
                if seen == 0 and block.num_rows and block.data[block.starts[0] : block.starts[0] + 1] == b"[":
                    raise InputError(f"{self.name}: a JSON array; write one object on each line (jq -c '.[]').")
                for row in range(min(block.num_rows, 100 - seen)):
                    for name, value in self._object(block, row).items():
                        kind = _json_type(value)
                        before = kinds.get(name, pa.null())
                        if name not in kinds or before == pa.null() != kind or kind in _WIDER.get(before, ()):
                            kinds[name] = kind
                            self.decided[name] = int(block.lines[row])
                seen += block.num_rows
                if seen >= 100:
                    break
        return pa.schema(list(kinds.items()))

    def _object(self, block: _Block, row: int) -> dict[str, Any]:
        where = f"{self.name} line {block.lines[row]}"
        line = block.data[block.starts[row] : block.ends[row]]
        try:
            value = json.loads(line.decode("utf-8", "surrogateescape"), strict=False)
        except json.JSONDecodeError as error:
            raise InputError(
                f"{where}: not valid JSON ({error.msg} at column {error.colno}); correct or remove it."
            ) from None
        except (ValueError, RecursionError) as error:
            raise InputError(f"{where}: not valid JSON ({_brief(error)}); correct or remove it.") from None
        if not isinstance(value, dict):
            raise InputError(f'{where}: not a JSON object; each line must be one, such as {{"text": ...}}.')
        return value

    def has_float(self, name: str) -> bool:
        """Whether a column of integers may hold, further down, a number that is none, or one beyond 64 bits."""
        digits = 21 if self.schema.field(name).type == pa.uint64() else 20
        keys = {json.dumps(name).encode(), json.dumps(name, ensure_ascii=False).encode("utf-8", "replace")}
        key = b"|".join(re.escape(key) for key in sorted(keys))
        number = re.compile(rb"(?:%s)\s*:\s*-?(?:\d+[.eE]|\d{%d})" % (key, digits))
        return any(number.search(block.data) for block in self._blocks())

    def read(self, schema: pa.Schema, max_bytes: int) -> Iterator[pa.RecordBatch]:
        parse = pa.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
        for block in self._blocks():
            if block.num_rows == 0:
                continue
            table = None
            if block.is_plain and len(block.data) < 1 << 30:
                size = max(1 << 20, int((block.ends - block.starts).max()) + 64)
                with contextlib.suppress(pa.ArrowInvalid, UnicodeDecodeError):
                    # A UnicodeDecodeError comes from Arrow's message about the value.
                    table = pa.json.read_json(
                        pa.BufferReader(block.data), pa.json.ReadOptions(block_size=size), parse_options=parse
                    )
            if table is None or table.num_rows != block.num_rows:
                yield self._by_line(block, schema)
            else:
                yield from table.select(schema.names).to_batches()

    def _by_line(self, block: _Block, schema: pa.Schema) -> pa.RecordBatch:
        columns: list[list[Any]] = [[] for _ in schema]
        for row in range(block.num_rows):
            value = self._object(block, row)
            for column, field in zip(columns, schema, strict=True):
                where = f"{self.name} line {block.lines[row]}: column {field.name!r}"
                column.append(_json_value(value.get(field.name), field.type, where))
        arrays = []
        for column, kind in zip(columns, schema.types, strict=True):
            # Strings as bytes first: they may hold what is not UTF-8.
            arrays.append(
                pa.array(column, pa.binary()).view(kind) if pa.types.is_string(kind) else pa.array(column, kind)
            )
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def write(self, folder: Path, part: str, rows: _Rows) -> None:
        path = folder / f"{_partition(self.file.path)}{part}{_suffix(self.file)}"
        with _writing(path, folder), pa.output_stream(str(path), compression=self.compression) as stream:
            for block in _ahead(self._blocks()):
                keep = rows.take(block.num_rows, self.name)
                for start, stop in block.runs(keep):
                    stream.write(memoryview(block.data)[start:stop])


@dataclass(frozen=True, eq=False)
class _Block:
    """Whole lines of a JSON-lines file; a row is a line that is not blank."""

    data: bytes
    starts: np.ndarray  # of each row
    ends: np.ndarray  # without trailing blanks and line ending
    nexts: np.ndarray  # where the next line begins
    lines: np.ndarray  # line number, from 1
    next_line: int

    @classmethod
    def of(cls, data: bytes, line: int) -> _Block:
        values = np.frombuffer(data, np.uint8)
        nexts = np.flatnonzero(values == 10) + 1
        if not data.endswith(b"\n"):
            nexts = np.append(nexts, len(data))
        starts = np.concatenate([[0], nexts[:-1]]).astype(np.int64)
        ends = nexts.copy()
        # The line ending is stripped from all lines at once, what blanks remain line by line: few lines have any.
        blank = np.zeros(256, bool)
        blank[[9, 10, 13, 32]] = True
        for _ in range(2):
            ends -= (ends > starts) & blank[values[ends - 1]]
        for i in np.flatnonzero((ends > starts) & blank[values[ends - 1]]):
            ends[i] = starts[i] + len(data[starts[i] : ends[i]].rstrip(b" \t\r\n"))
        full = ends > starts
        return cls(data, starts[full], ends[full], nexts[full], line + np.flatnonzero(full), line + len(nexts))

    @property
    def num_rows(self) -> int:
        return len(self.starts)

    @property
    def is_plain(self) -> bool:
        """Whether each line begins and ends as an object does, so that no object runs over two lines."""
        values = np.frombuffer(self.data, np.uint8)
        return bool(np.all(values[self.starts] == ord("{")) and np.all(values[self.ends - 1] == ord("}")))

    def runs(self, keep: np.ndarray) -> Iterator[tuple[int, int]]:
        """Byte ranges of the kept lines, neighbours joined."""
        starts, stops = self.starts[keep], self.nexts[keep]
        if len(starts) == 0:
            return
        breaks = np.flatnonzero(starts[1:] != stops[:-1])
        firsts, lasts = np.concatenate([[0], breaks + 1]), np.append(breaks, len(stops) - 1)
        yield from zip(starts[firsts].tolist(), stops[lasts].tolist(), strict=True)


_WIDER = {pa.int64(): (pa.uint64(), pa.float64()), pa.uint64(): (pa.float64(),)}


def _json_type(value: Any) -> pa.DataType:
    if value is None:
        return pa.null()
    if isinstance(value, str):
        return pa.string()
    if isinstance(value, bool):
        return pa.bool_()
    if isinstance(value, int) and -(2**63) <= value < 2**64:
        return pa.int64() if value < 2**63 else pa.uint64()
    if isinstance(value, list):
        return pa.list_(pa.null())
    return pa.struct([]) if isinstance(value, dict) else pa.float64()


def _json_words(kind: pa.DataType) -> str:
    """What a JSON column of this type holds, for messages."""
    if pa.types.is_list(kind):
        return "an array"
    if pa.types.is_struct(kind):
        return "an object"
    if pa.types.is_boolean(kind):
        return "true or false"
    return "an integer" if pa.types.is_integer(kind) else "a number with a fraction or beyond 64 bits"


def _json_value(value: Any, kind: pa.DataType, where: str) -> Any:
    """A value as Arrow takes it: strings as UTF-8, lone surrogates replaced."""
    if value is None:
        return None
    if pa.types.is_string(kind) and isinstance(value, str):
        try:
            return value.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            return re.sub("[\ud800-\udc7f\udd00-\udfff]", "\ufffd", value).encode("utf-8", "surrogateescape")
    if isinstance(value, bool) == pa.types.is_boolean(kind):
        if pa.types.is_boolean(kind) or (pa.types.is_floating(kind) and isinstance(value, (int, float))):
            return value
        low, high = (0, 2**64) if kind == pa.uint64() else (-(2**63), 2**63)
        if pa.types.is_integer(kind) and isinstance(value, int) and low <= value < high:
            return value
    words = {dict: "an object", list: "an array", str: "a string", bool: "true or false"}
    names = {pa.string(): "text", pa.float64(): "a number", pa.int64(): "a 64-bit integer", pa.bool_(): "true or false"}
    names[pa.uint64()] = "an unsigned 64-bit integer"
    found, wanted = words.get(type(value), "a number"), names.get(kind, str(kind))
    if found == "a number" and pa.types.is_integer(kind):
        found = f"the number {value}"
    raise InputError(f"{where} holds {found}, not {wanted}; correct the line or name another column.")


class _Ipc:
    rewindable = True
    num_files = 1

    def __init__(self, file: _File) -> None:
        self.file, self.name = file, file.name
        with self._open() as reader:
            self.schema: pa.Schema = reader.schema
            self.is_file = isinstance(reader, pa.ipc.RecordBatchFileReader)

    @contextlib.contextmanager
    def _open(self, names: list[str] | None = None) -> Iterator[Any]:
        with (
            _named(self.name, "not a readable Arrow IPC file"),
            self.file.system.open_input_file(self.file.path) as handle,
        ):
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
                    yield reader.get_batch(i)
            else:
                yield from reader

    def read(self, schema: pa.Schema, max_bytes: int) -> Iterator[pa.RecordBatch]:
        for batch in self._all(schema.names):
            yield batch.select(schema.names)

    def write(self, folder: Path, part: str, rows: _Rows) -> None:
        extension = PurePosixPath(self.file.path).suffix.lower()
        path = folder / f"{_partition(self.file.path)}{part}{extension}"
        # As pyarrow does by itself: Feather files are compressed, other Arrow files are not.
        options = pa.ipc.IpcWriteOptions(
            compression="lz4" if extension == ".feather" else None,
            emit_dictionary_deltas=True,
            unify_dictionaries=False,
        )
        kept = (_filtered(batch, rows.take(batch.num_rows, self.name)) for batch in self._all())
        opener = pa.ipc.new_file if self.is_file else pa.ipc.new_stream
        with _writing(path, folder), opener(str(path), self.schema, options=options) as writer:
            for batch in _ahead(kept):
                writer.write_batch(batch)


class _TextFiles:
    """All text and HTML files as one table of path and text."""

    rewindable = True
    schema = pa.schema([("path", pa.string()), ("text", pa.large_binary())])

    def __init__(self, files: list[_File], html: bool) -> None:
        self.files, self.html = files, html
        self.name = files[0].name if len(files) == 1 else files[0].root
        self.num_files = len(files)
        root = os.path.commonpath([file.root for file in files]) if files[0].root else ""
        self.ids = [file.path[len(root) :].lstrip("/") for file in files]

    def read(self, schema: pa.Schema, max_bytes: int) -> Iterator[pa.RecordBatch]:
        paths: list[str] = []
        texts: list[bytes] = []
        size = 0
        for path, file in zip(self.ids, self.files, strict=True):
            with _named(file.name), file.system.open_input_stream(file.path, compression=None) as stream:
                data = stream.read()
            if self.html or path.lower().endswith(HTML_EXTENSIONS):
                text = visible_text(data).encode("utf-8", "replace")
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

    def write(self, folder: Path, part: str, rows: _Rows) -> None:
        for path, file in zip(self.ids, self.files, strict=True):
            if not rows.take(1, file.name)[0]:
                continue
            target = folder / path
            with _writing(target, folder):
                with _named(file.name):
                    source = file.system.open_input_stream(file.path, compression=None)
                with source, open(target, "wb") as output:
                    shutil.copyfileobj(source, output, 1 << 20)


def _plain_text(data: bytes) -> bytes:
    """A text file as UTF-8: its byte order mark, if any, says what it was."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace").encode("utf-8", "replace")
    return data.removeprefix(b"\xef\xbb\xbf")


class _Memory:
    """An Arrow table, stream, or anything that gives one through ``__arrow_c_stream__``."""

    name = "input"
    num_files = 0

    def __init__(self, source: Any) -> None:
        self.source = pa.table(source) if isinstance(source, pa.RecordBatch) else source
        # What has a length is a table and gives its rows again; a stream has none.
        self.rewindable = hasattr(self.source, "__len__") or isinstance(self.source, pa.Table)
        self.spent = False
        self.stream: pa.RecordBatchReader | None = self._open()
        self.schema: pa.Schema = self.stream.schema

    def _open(self) -> pa.RecordBatchReader:
        if isinstance(self.source, pa.RecordBatchReader):
            return self.source
        if isinstance(self.source, pa.Table):
            return self.source.to_reader()
        with _named(self.name, f"{type(self.source).__name__} gives no Arrow table"):
            return pa.RecordBatchReader.from_stream(self.source)

    def _all(self) -> Iterator[pa.RecordBatch]:
        stream, self.stream = self.stream, None
        if stream is None:
            stream = self._open()
        self.spent = True
        with _named(self.name):
            yield from stream

    def read(self, schema: pa.Schema, max_bytes: int) -> Iterator[pa.RecordBatch]:
        for batch in self._all():
            yield batch.select(schema.names)

    def write(self, folder: Path, part: str, rows: _Rows) -> None:
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
                    yield _filtered(batch, rows.take(batch.num_rows, self.name))

        _write_parquet(folder, part, self.schema, kept())


# Streams of record batches


class _Rows:
    """The keep mask, handed out file by file."""

    def __init__(self, keep: np.ndarray) -> None:
        self.keep, self.position = keep, 0

    def take(self, count: int, name: str) -> np.ndarray:
        self.position += count
        if self.position > len(self.keep):
            raise InputError(
                f"{name}: more documents than when it was first read; run again on files that do not change."
            )
        return self.keep[self.position - count : self.position]

    def finish(self) -> None:
        if self.position != len(self.keep):
            raise InputError(
                f"{len(self.keep):,} documents were read first, and now {self.position:,}; "
                "run again on files that do not change."
            )


def _filtered(batch: pa.RecordBatch, keep: np.ndarray) -> pa.RecordBatch:
    if keep.all():
        return batch
    mask = arrow(keep)
    columns = [_filtered_column(column, keep, mask) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _filtered_column(column: pa.Array, keep: np.ndarray, mask: pa.Array) -> pa.Array:
    if _is_view(column.type):  # which Arrow cannot filter
        return column.cast(_plain(column.type)).filter(mask).cast(column.type)
    with contextlib.suppress(pa.ArrowNotImplementedError):
        return column.filter(mask)
    with contextlib.suppress(pa.ArrowNotImplementedError):  # views inside lists and structs
        return column.cast(_without_views(column.type)).filter(mask).cast(column.type)
    # Run-end encoded: the kept runs, one after another.
    edges = np.flatnonzero(np.diff(keep.astype(np.int8), prepend=0, append=0))
    runs = [column.slice(start, stop - start) for start, stop in edges.reshape(-1, 2).tolist()]
    return pa.concat_arrays(runs or [column.slice(0, 0)])


def _without_views(kind: pa.DataType) -> pa.DataType:
    """The type with strings and bytes in place of views, also inside lists, structs and maps."""

    def plain(field: pa.Field) -> pa.Field:
        return field.with_type(_without_views(field.type))

    if pa.types.is_struct(kind):
        return pa.struct([plain(field) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(plain(kind.key_field), plain(kind.item_field), kind.keys_sorted)
    if pa.types.is_list(kind):
        return pa.list_(plain(kind.value_field))
    if pa.types.is_large_list(kind):
        return pa.large_list(plain(kind.value_field))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(plain(kind.value_field), kind.list_size)
    return _plain(kind) if _is_view(kind) else kind


def _is_view(kind: pa.DataType) -> bool:
    return pa.types.is_string_view(kind) or pa.types.is_binary_view(kind)


def _write_parquet(folder: Path, part: str, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
    """One file, decoded in a second thread while this one encodes; row groups of about 16 MiB."""
    path = folder / f"{part}.parquet"
    with _writing(path, folder), pq.ParquetWriter(str(path), schema, compression="zstd") as writer:
        pending: list[pa.RecordBatch] = []
        size = 0
        for batch in _ahead(batches):
            if batch.num_rows:
                pending.append(batch)
                size += batch.nbytes
            if size >= ROW_GROUP_BYTES:
                writer.write_table(pa.Table.from_batches(pending, schema))
                pending, size = [], 0
        if pending:
            writer.write_table(pa.Table.from_batches(pending, schema))


def _sliced(batch: pa.RecordBatch, text_columns: list[str], html: bool) -> Iterator[pa.RecordBatch]:
    """The batch in parts of 1,024 rows where its text has to be copied, else whole."""
    kinds = [batch.schema.field(name).type for name in text_columns]
    contiguous = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    whole = len(kinds) == 1 and not html and any(check(kinds[0]) for check in contiguous)
    step = batch.num_rows if whole else 1024
    for start in range(0, batch.num_rows, max(1, step)):
        yield batch.slice(start, step)


def _coalesce(pieces: Iterator[tuple[pa.RecordBatch, int]], max_bytes: int) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Cut pieces that are too large, without a copy; join those below a quarter of the bound."""
    pending: list[pa.RecordBatch] = []
    size = nulls = 0
    for whole, num_null in pieces:
        for piece, piece_size in _cut(whole, max_bytes):
            if pending and size + piece_size > max_bytes:
                yield _joined(pending), nulls
                pending, size, nulls = [], 0, 0
            nulls, num_null = nulls + num_null, 0
            pending.append(piece)
            size += piece_size
            if size * 4 >= max_bytes:
                yield _joined(pending), nulls
                pending, size, nulls = [], 0, 0
    if pending:
        yield _joined(pending), nulls


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """One batch, copied only where there are several."""
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _cut(batch: pa.RecordBatch, max_bytes: int) -> Iterator[tuple[pa.RecordBatch, int]]:
    if batch.num_rows == 0:
        return
    offsets = _ragged(batch.column(0)).offsets
    ends = offsets[1:] - offsets[0] + ROW_BYTES * np.arange(1, len(offsets))
    parts = -(-int(ends[-1]) // max_bytes)
    goal = min(max_bytes, -(-int(ends[-1]) // parts))
    start = done = 0
    while start < batch.num_rows:
        # About equal parts while that is possible within the bound.
        stop = int(np.searchsorted(ends, done + goal))
        stop += stop < batch.num_rows and ends[stop] - done <= max_bytes
        stop = max(stop, start + 1)
        yield batch.slice(start, stop - start), int(ends[stop - 1]) - done
        start, done = stop, int(ends[stop - 1])


def _ragged(text: pa.Array) -> Ragged:
    """Large binary without nulls as bytes and offsets, without a copy."""
    _, offsets, values = text.buffers()
    if offsets is None or len(text) == 0:
        return Ragged(np.empty(0, np.uint8), np.zeros(1, np.int64))
    numbers = np.frombuffer(offsets, np.int64)[text.offset : text.offset + len(text) + 1]
    return Ragged(np.empty(0, np.uint8) if values is None else np.frombuffer(values, np.uint8), numbers)


def _ahead(items: Iterator[T]) -> Iterator[T]:
    """The same items, the next one made in a background thread."""
    ready: queue.Queue[tuple[bool, Any]] = queue.Queue(1)
    stop = threading.Event()

    def put(entry: tuple[bool, Any]) -> None:
        while not stop.is_set():
            with contextlib.suppress(queue.Full):
                ready.put(entry, timeout=0.1)
                return

    def work() -> None:
        try:
            for item in items:
                put((True, item))
                if stop.is_set():
                    break
            put((False, None))
        except BaseException as error:
            put((False, error))
        finally:
            if hasattr(items, "close"):
                items.close()

    thread = threading.Thread(target=work, name="neardup-read", daemon=True)
    thread.start()
    try:
        while True:
            more, value = ready.get()
            if more:
                yield value
            elif value is None:
                return
            else:
                raise value
    finally:
        stop.set()
        thread.join()


# Types and errors


def _is_string(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return _is_text(kind.value_type)
    checks = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view)
    return _is_string(kind) or any(check(kind) for check in checks) or pa.types.is_null(kind)


def _is_key(kind: pa.DataType) -> bool:
    kind = _plain(kind)
    return pa.types.is_integer(kind) or pa.types.is_fixed_size_binary(kind) or _is_text(kind)


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type without dictionary or view, which one array for all batches could not keep."""
    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_binary_view(kind):
        return pa.large_binary()
    return kind


def _copied(column: pa.Array) -> pa.Array:
    """In memory of its own: a column of Arrow data may share one allocation with all others."""
    return pa.concat_arrays([column])


def _decoded(column: pa.Array, kind: pa.DataType | None) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        values = column.dictionary
        column = pa.DictionaryArray.from_arrays(column.indices, values.cast(_plain(values.type))).dictionary_decode()
    return column if kind is None or column.type == kind else column.cast(kind)


def _default_text_column(name: str, schema: pa.Schema) -> str:
    if "text" in schema.names:
        return "text"
    texts = [field.name for field in schema if _is_text(field.type) and not pa.types.is_null(field.type)]
    if len(texts) == 1:
        return texts[0]
    problem = "no column of text" if not texts else "several columns of text"
    raise InputError(
        f"{name}: {problem} and none named 'text'; it has {_listed(schema.names)}. Name one with --text-column."
    )


def _check_ids(ids: pa.Array, column: str, name: str, row: int) -> None:
    if ids.null_count:
        first = row + int(np.flatnonzero(np.asarray(ids.is_null()))[0])
        raise InputError(f"{name}: column {column!r} is null in document {first + 1}; every document needs an id.")
    try:
        ids.validate(full=True)
    except (pa.ArrowInvalid, UnicodeDecodeError):
        raise InputError(
            f"{name}: column {column!r} is not valid UTF-8 near document {row + 1}; correct the id."
        ) from None


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:20]) or "no columns"
    return f"{shown} and {len(names) - 20} more" if len(names) > 20 else shown


def _brief(error: BaseException | str) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= 200 else f"{text[:200]}..."


@contextlib.contextmanager
def _named(name: str, problem: str = "cannot be read") -> Iterator[None]:
    """Turn what Arrow and the system raise while reading into one line that names the file."""
    try:
        yield
    except (InputError, OutputError):
        raise
    except FileNotFoundError:
        raise InputError(f"{name}: no such file or folder.") from None
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise InputError(f"{name}: {problem} ({_brief(error)}).") from error


@contextlib.contextmanager
def _writing(path: Path, folder: Path) -> Iterator[None]:
    """Make the file's folder; turn what fails into one line that names the file from `folder` on."""
    try:
        if path != folder:
            path.parent.mkdir(parents=True, exist_ok=True)
        yield
    except (InputError, OutputError):
        raise
    except (OSError, pa.ArrowException) as error:
        name = (folder.name / path.relative_to(folder)).as_posix()
        # What is around the folder has a temporary name until all is written.
        why = _brief(str(error).replace(str(folder), folder.name or "."))
        raise OutputError(f"{name}: cannot be written ({why}); choose another output folder.") from error
