"""Opening documents: paths, patterns, URIs, tables or texts -> `Documents`, which streams them in batches."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from .. import checks
from ..errors import InputError, ParameterError
from ..log import log
from ..report import count, unread
from ..store.uris import is_masked, is_uri, masked
from .columns import artefact_kind
from .contract import WHOLE, Reader
from .files import POINTER, File, Seen
from .find import FoundFiles, find_files, with_kinds
from .formats import reader_of
from .local_names import escaped, unescaped
from .memory import Memory, as_tables
from .reading_options import Reading, chosen_reading, reading_of
from .row_sources import RowSource
from .skipped import Entry, Noted
from .standard_input import NAME as STDIN
from .stream import Batch, Documents
from .textfiles import TextFiles

__all__ = ["Batch", "Documents", "open_described", "open_documents"]


def open_documents(
    source: Any,
    *,
    id_column: str | None = None,
    text_columns: str | Sequence[str] | None = None,
    other_columns: Iterable[str] = (),
    reading: Reading | None = None,
) -> Documents:
    """Open documents for streaming; only schemas and first lines are read here.

    Parameters
    ----------
    source : str, Path, list of them, a table, an array or Series of strings, or an iterable of rows
        The documents:

        - A file (Parquet, Arrow IPC, WARC or WET; JSON lines, CSV, TSV, text or HTML plain, .gz, .zst, .bz2 or .xz), a
          folder of such files of one kind, a glob pattern, or a URI such as ``s3://bucket/x.parquet`` of pyarrow.fs or,
          where that has no such file system, of fsspec. A list names several. The output of dedup gives the rows that
          it kept.
        - A table: pyarrow, Polars, DuckDB, pandas, a Ray dataset, Hugging Face's Dataset, DatasetDict and
          IterableDataset, a dataset of pyarrow, a dict of columns, a list of dicts or of record batches.
        - A generator, or another iterable, of dicts, texts or record batches. A generator is a stream, which is read
          once. An object whose `__iter__` begins anew can be read again, as writing the kept rows requires. If it has
          an attribute `schema`, a pyarrow.Schema, columns have these types; otherwise the first 1,024 rows decide.
        - The texts themselves: an array or a Series of strings. A list of texts is a column, ``{"text": texts}``,
          because a list of strings is a list of paths.
    id_column : str, default None
        The column of ids. If None, ids are row numbers or relative paths. See `Reading`.
    text_columns : str or sequence of str, default None
        The columns of text. If None, they are found by their names. See `Reading`.
    other_columns : iterable of str, default ()
        Columns that hold something else than text, such as dates to decide by.
    reading : Reading, default None
        How the documents are read.

    Returns
    -------
    Documents

    Raises
    ------
    InputError
        If there is nothing to read, or it cannot be read, or a column is missing or of another type.
    ParameterError, ArgumentTypeError
        If another argument is not as described above.

    Notes
    -----
    Links are followed; a file that is reached several times, also by several names of its own (hard links), is read
    once.

    A file that `source` names, or that a pattern selects, is read whatever its name; a pattern selects names that
    begin with a dot only if it writes the dot, as ``.github/*.md`` does. A named file of unknown extension is read as
    text, unless its contents are not text. Without a pattern, these are left out of a folder: names that begin with
    ``_`` or a dot, finished results and other files that neardup wrote, pipes and devices, README, LICENSE and
    the like next to data, and files of unknown extension. All files and folders that are left out are counted and
    named: in `Documents.left_out`, in the report, and in the log at INFO.

    Examples
    --------
    >>> open_documents({"text": ["to be", "or not to be"]}).num_rows
    2
    >>> documents = open_documents({"name": ["a", "b"], "text": ["to be", "or not to be"]}, id_column="name")
    >>> [batch.ids.to_pylist() for batch in documents.batches()]
    [['a', 'b']]
    """
    documents = opened_leniently(source, chosen_reading(reading, id_column, text_columns), other_columns)
    refuse_without_effect(documents)
    return documents


def refuse_without_effect(documents: Documents, *others: Documents) -> None:
    """Raise ParameterError for an option of reading that changes nothing for files, nor for the `others`."""
    for name, needed in documents.without_effect.items():
        if not any(name in other.in_effect for other in others):
            raise ParameterError(f"{name}: {needed} is read; leave it out")


_NEEDED = {
    "glob": "no folder",
    "delimiter": "no CSV file",
    "header": "no CSV file",
    "encoding": "no text",
    "null_values": "no compared column of CSV or JSON lines",
    "max_document_bytes": "no text file, line or record",
}
"""Why an option of reading has no effect on files, or on tables."""


def opened_leniently(source: Any, reading: Reading, other_columns: Iterable[str] = ()) -> Documents:
    """Open documents as `open_documents` does; `refuse_without_effect` checks the options that change nothing."""
    options: dict[str, Any] = {"other_columns": checks.columns("other_columns", other_columns, none=True)}
    tables, given, has_text = as_tables(source), reading, not reading.integers
    if tables is not None:
        memory: list[Reader] = [Memory(table, split=name) for name, table in tables.items()]
        if any(isinstance(table, RowSource) and table.is_empty for table in tables.values()):
            wanted = [reading.id_column, *(reading.text_columns or ["text"]), *options["other_columns"]]
            memory = [Memory(pa.table({name: pa.nulls(0, pa.string()) for name in wanted if name is not None}))]
        documents = Documents(memory, "memory", reading, sources=[], **options)
        return _with_effects(documents, given, {**dict.fromkeys(_NEEDED, False), "encoding": has_text})
    names = names_of(source)
    if reading.holds == "bytes" and not (reading.text_columns or reading.id_column or reading.input_format):
        reading = replace(reading, glob=reading.glob or "*", input_format="text")  # every file, as it is
    found = find_files(names, reading.glob, reading.input_format)
    files, kind = with_kinds(found.files, names, reading.input_format)
    if reading.input_format == "html":
        reading = replace(reading, html=reading.html or True)
    readers: list[Reader]
    if kind == "text":
        readers = [TextFiles(files, reading)]
        if reading.text_columns is not None or reading.id_column is not None:
            raise InputError(f"{masked(names[0])}: text files have no columns; leave out the text and id column.")
    else:
        readers, options["unreadable"] = _readers(files, reading)
        readers = _without_our_files(readers, found)
    sources = [
        masked(name) if is_uri(name) else name if name == STDIN else escaped(os.path.abspath(name)) for name in names
    ]
    documents = Documents(readers, kind, reading, sources=sources, left_out=found.describe_left_out(), **options)
    if lines := unread(documents.describe()):
        log.info("%s: left out, %s", masked(names[0]), "; ".join(lines))
    kinds = {file.kind for file in files}
    is_csv, is_typed = not kinds.isdisjoint({"csv", "tsv"}), not kinds.isdisjoint({"csv", "tsv", "jsonl"})
    has_effect = {
        "glob": any(file.how == "folder" for file in files),
        "delimiter": is_csv,
        "header": is_csv,
        "encoding": has_text or "jsonl" in kinds,
        "null_values": is_typed and bool(options["other_columns"]),
        "max_document_bytes": not kinds <= {"parquet", "ipc"},
    }
    return _with_effects(documents, given, has_effect)


def _with_effects(documents: Documents, given: Reading, has_effect: dict[str, bool]) -> Documents:
    """Note which options that were given have an effect on documents; those that are not named are not looked at."""
    usual = Reading()
    names = [name for name in has_effect if getattr(given, name) != getattr(usual, name)]
    documents.in_effect = [name for name in names if has_effect[name]]
    documents.without_effect = {name: _NEEDED[name] for name in names if not has_effect[name]}
    return documents


def names_of(source: Any) -> list[str]:
    """Paths, patterns and URIs as strings."""
    paths = [source] if isinstance(source, (str, os.PathLike)) else source
    if isinstance(paths, (list, tuple)) and any(isinstance(path, bytes) for path in paths):
        raise InputError("cannot read documents from bytes: give paths as str, or texts as {'text': texts}.")
    if not isinstance(paths, (list, tuple)) or not all(isinstance(p, (str, os.PathLike)) for p in paths):
        raise InputError(
            f"cannot read documents from {type(source).__name__}: give a path, a list of paths, a table, an iterable "
            "of dicts or texts, or texts as {'text': texts}."
        )
    names = [os.fspath(path) for path in paths]
    if not names:
        raise InputError("no input: the list of paths is empty.", parameter="source")
    for name in names:
        if isinstance(name, bytes):  # what __fspath__ may give
            raise InputError("cannot read documents from bytes: give paths as str.")
        if not name:
            raise InputError(
                "no input: a path is empty; write . for the folder that you are in, or pass texts as {'text': texts}.",
                parameter="source",
            )
        if is_uri(name) and escaped(name) != name:
            raise InputError(f"{escaped(name)}: the URI is not UTF-8; rename what it names.")
    return names


def _without_our_files(readers: list[Reader], found: FoundFiles) -> list[Reader]:
    """The readers of documents, without files of this package that lie in the same folder."""
    kinds = [artefact_kind(reader.schema) for reader in readers]
    if all(kinds):
        return readers
    documents = []
    for reader, kind in zip(readers, kinds, strict=True):
        if kind is None or reader.files[0].how == "name":
            documents.append(reader)
        else:
            found.leave_out("artefacts", reader.name)
    return documents


def _readers(files: list[File], reading: Reading) -> tuple[list[Reader], list[Entry]]:
    """A reader for each file, and the files that have none because they cannot be read at all."""
    readers: list[Reader] = []
    noted, errors = Noted(reading.skips), []
    for file in files:
        num_bytes = None
        try:
            readers.append(reader_of(file.kind)(file, reading, WHOLE))
        except InputError as problem:
            error = problem
            if _is_pointer(file):
                error = InputError(f"{file.name}: is a pointer of Git LFS, not the data; get them with git lfs pull.")
            with contextlib.suppress(OSError):
                num_bytes = Seen(file).size
            noted.add(error, file.name, 0, rows=None, num_bytes=num_bytes)
            errors.append(error)
    if not readers:
        raise errors[0]
    losses = [loss for problem in noted.drain() for loss in problem.losses]
    return readers, [(each.file, None, each.rows, each.num_bytes, each.message) for each in losses]


def _is_pointer(file: File) -> bool:
    """Whether a file is what Git LFS leaves in a clone in place of a large file that was not fetched."""
    with contextlib.suppress(Exception), file.system.open_input_file(file.path) as opened:  # what is wrong was said
        return opened.read(len(POINTER)) == POINTER
    return False


def paths_described(description: dict[str, Any]) -> list[str]:
    """Return the paths that `Documents.describe` described.

    Raises
    ------
    InputError
        If the documents cannot be opened again, as they were given in memory.
    """
    if description["format"] == "memory":
        raise InputError("the documents were given in memory, so they cannot be opened again from their description.")
    if STDIN in description["paths"]:
        raise InputError(
            "the documents came from standard input, which gives them only once, so they cannot be opened again; write "
            "them to a file, and run dedup again."
        )
    for path in description["paths"]:
        if is_masked(path):
            raise InputError(
                f"{path}: was read with credentials, which no report keeps, so it cannot be opened again; set them in "
                "the environment and run dedup again without them in the URI."
            )
    return [path if is_uri(path) else unescaped(path) for path in description["paths"]]


def open_described(description: dict[str, Any], other_columns: Sequence[str] = ()) -> Documents:
    """Open again what `Documents.describe` described, to read some other columns as well.

    Raises
    ------
    InputError
        If the documents were given in memory, or the number of files is another.
    """
    documents = opened_leniently(paths_described(description), reading_of(description), other_columns)
    if documents.num_files != description["num_files"]:
        raise InputError(
            f"{description['paths'][0]}: {count(documents.num_files, 'file')}, but {description['num_files']:,} "
            "when the result was made; run dedup again."
        )
    return documents
