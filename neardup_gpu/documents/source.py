"""Opening documents: paths, patterns, URIs, tables or texts -> `Documents`, which streams them in batches."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

from pyarrow import fs

from .. import checks
from ..errors import InputError, ParameterError
from ..log import log
from ..report import count, unread
from ..settings import arguments_for
from ..store.uris import is_masked, is_uri, masked
from .columns import artefact_kind
from .contract import Reader
from .files import POINTER, File
from .find import Found, find_files, one_kind
from .formats import FORMATS
from .html import TREE
from .local_names import escaped, unescaped
from .memory import Memory, as_tables, as_texts
from .parts import WHOLE, Part
from .reading_options import MAX_DOCUMENT_BYTES, Reading
from .seen import Seen
from .skipped import Entry, Policy, Skipped
from .standard_input import NAME as STDIN
from .stream import Batch, Documents
from .textfiles import TextFiles

__all__ = ["Batch", "Documents", "open_described", "open_documents"]


def open_documents(
    source: Any = None,
    *,
    texts: Any = None,
    text_columns: str | Sequence[str] | None = None,
    id_column: str | None = None,
    html: bool | Literal["tree"] = False,
    encoding: str | None = None,
    glob: str | None = None,
    other_columns: Iterable[str] = (),
    on_error: str = "stop",
    max_document_bytes: int = MAX_DOCUMENT_BYTES,
    null_values: str | Sequence[str] | None = None,
    input_format: str | None = None,
    delimiter: str | None = None,
    header: bool = True,
) -> Documents:
    """Open documents for streaming; only schemas and first lines are read here.

    Parameters
    ----------
    source : str, Path, list of them, or a table, default None
        A file (Parquet, Arrow IPC, WARC or WET; JSON lines, CSV, TSV, text or HTML plain, .gz, .zst, .bz2 or .xz), a
        folder of such files of one kind, a glob pattern, or a URI such as ``s3://bucket/x.parquet`` of pyarrow.fs or,
        where that has no such file system, of fsspec. A result of dedup gives the rows that it kept. Or a table:
        pyarrow, Polars, DuckDB, pandas, a Ray dataset, Hugging Face's Dataset, DatasetDict and IterableDataset, a dict
        of columns, a list of dicts.
    texts : list of str, array or Series of strings, default None
        The texts themselves, instead of `source`. Their ids are their row numbers; to name them, pass a table such as
        ``{"id": ids, "text": texts}``.
    text_columns : str or sequence of str, default None
        Columns that hold the text, joined with a border between them, which is a token of its own. ``metadata.text`` is
        the member `text` of a struct column `metadata`, unless a column has the whole name. ``paragraphs[]`` is the
        text in each value of a list column, and ``messages[].content`` a member of each value; a newline joins the
        texts of a row, and nulls are left out. Unless given, ``text``, else the only column of strings, which is never
        the id column, one of `other_columns`, or one named ``id``.
    id_column : str, default None
        Column of integers or strings that names the documents, also ``metadata.id``. Unless given, ids are relative
        paths for text files, WARC-Record-ID for records of WARC files, else row numbers.
    html : bool or "tree", default False
        The text is HTML: take what a reader sees of it. Files ending in .html, .htm and .xhtml are always read so, and
        of WARC records those that are HTML. "tree" takes it from the tree that a parser builds, at a tenth of the
        speed; the words are the same unless the markup is broken (docs/how_to/html.md).
    encoding : str, default None
        A label of the Encoding Standard, such as ``windows-1251``. It says how these are decoded: text files, CSV and
        JSON lines, with all their columns, and text in columns of bytes. Strings of Parquet, Arrow and tables are
        UTF-8, whatever this says. Of pages it is only the fallback, for those that name no encoding and are not valid
        UTF-8; windows-1252 unless given. A byte order mark in a file counts more. Unless given, bytes that are not
        UTF-8 are letters that equal only themselves.
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
        Bound on a line of JSON lines, on a row of CSV, on a text or HTML file, and on a record of a WARC file.
    null_values : str or list of str, default None
        What marks a missing value in a column of CSV or JSON lines that is compared, one of `other_columns`.
        Unless given, "", "NA", "n/a", "NULL", "nan" and the others of pandas.read_csv. If all other values are
        numbers, they are compared as numbers.
    input_format : str, default None
        Read files as this format, whatever their names: "parquet", "jsonl", "json" (the same), "csv", "tsv", "arrow",
        "warc", "text" or "html". Of a folder, those are read whose names end so or have no extension. Unless given,
        names decide, and of files without an extension the first bytes, which never say CSV.
    delimiter : str, default None
        What divides the fields of CSV. Unless given, a comma, or a tab in files whose names end in .tsv.

        - one ASCII character, but no quote, letter, digit or line ending.
        - "tab": a tab.
        - "auto": the one of comma, tab, semicolon and bar that the first line of each file has most often.
    header : bool, default True
        Whether the first row of CSV names the columns. Without a header they are named f0, f1 and so on.

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
    ``_`` or a dot, finished results of dedup and other files that neardup wrote, pipes and devices, README, LICENSE
    and the like beside data, and files of unknown extension. All files and folders that are left out are counted and
    named: in `Documents.left_out`, in the report, and in the log at INFO.

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
    read_as = checks.flag_or("html", html, TREE)
    glob = checks.optional(checks.text, "glob", glob, "give a pattern such as *.py")
    policy = Policy(**arguments_for(Policy, locals()), tree=read_as == TREE)
    options: dict[str, Any] = {"html": read_as, "policy": policy}
    options |= {"text_columns": text_columns, "id_column": id_column, "other_columns": other_columns}
    if (source is None) == (texts is None):
        raise ParameterError("source and texts: give one of them, paths or a table, or the texts themselves")
    if texts is not None:
        if text_columns is not None or id_column is not None or glob is not None:
            raise ParameterError(
                "texts: have no columns and no files; leave out text_columns, id_column and glob, or pass a table"
            )
        return Documents([Memory(as_texts(texts))], "memory", sources=[], glob=None, **options)
    tables = as_tables(source)
    if tables is not None:
        memory: list[Reader] = [Memory(table, split=name) for name, table in tables.items()]
        splits = [name for name in tables if name]
        return Documents(memory, "memory", sources=[], glob=None, splits=splits, **options)
    names = _names(source)
    found = find_files(names, glob, policy.input_format)
    kind = one_kind(found.files, names, policy.input_format)
    if policy.input_format == "html":
        options["html"] = read_as = read_as or True
    open_file = FORMATS[kind].reader
    readers: list[Reader]
    if open_file is None:
        readers = [TextFiles(found.files, read_as, options["policy"])]
        if text_columns is not None or id_column is not None:
            raise InputError(f"{masked(names[0])}: text files have no columns; leave out the text and id column.")
    else:
        readers, options["unreadable"] = _readers(open_file, found.files, options["policy"])
        readers = _without_our_files(readers, found)
    sources = [
        masked(name) if is_uri(name) else name if name == STDIN else escaped(os.path.abspath(name)) for name in names
    ]
    left_out = found.describe_left_out()
    documents = Documents(readers, kind, sources=sources, glob=glob, left_out=left_out, **options)
    if lines := unread(documents.describe()):
        log.info("%s: left out, %s", masked(names[0]), "; ".join(lines))
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
        raise InputError("no input: the list of paths is empty.", parameter="source")
    for name in names:
        if isinstance(name, bytes):  # what __fspath__ may give
            raise InputError("cannot read documents from bytes: give paths as str.")
        if not name:
            raise InputError(
                "no input: a path is empty; write . for the folder that you are in, or pass texts as texts=[...].",
                parameter="source",
            )
        if is_uri(name) and escaped(name) != name:
            raise InputError(f"{escaped(name)}: the URI is not UTF-8; rename what it names.")
    return names


def _without_our_files(readers: list[Reader], found: Found) -> list[Reader]:
    """The readers of documents, without files of this package that lie in a folder beside them."""
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


def _readers(
    open_file: Callable[[File, Policy, Part], Reader], files: list[File], policy: Policy
) -> tuple[list[Reader], list[Entry]]:
    """A reader for each file, and the files that have none because they cannot be read at all."""
    readers: list[Reader] = []
    skipped, errors = Skipped(policy.skips), []
    for file in files:
        num_bytes = None
        try:
            readers.append(open_file(file, policy, WHOLE))
        except InputError as problem:
            error = problem
            if _is_pointer(file):
                error = InputError(f"{file.name}: is a pointer of Git LFS, not the data; get them with git lfs pull.")
            with contextlib.suppress(OSError):
                num_bytes = Seen(file).size
            skipped.add(error, file.name, 0, rows=None, num_bytes=num_bytes)
            errors.append(error)
    if not readers:
        raise errors[0]
    return readers, [(file, None, rows, num_bytes, why) for file, _, rows, num_bytes, why in skipped.entries]


def _is_pointer(file: File) -> bool:
    """Whether a file is what Git LFS leaves in a clone in place of a large file that was not fetched."""
    if not isinstance(file.system, fs.LocalFileSystem):
        return False
    try:
        with Path(file.path).open("rb") as opened:
            return opened.read(len(POINTER)) == POINTER
    except OSError:  # what is wrong with it has been said
        return False


def open_described(description: dict[str, Any]) -> Documents:
    """Open again what `Documents.describe` described.

    Raises
    ------
    InputError
        If the documents were given in memory, or the number of files is another.
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
    paths = [path if is_uri(path) else unescaped(path) for path in description["paths"]]
    documents = open_documents(paths, **arguments_for(Reading, description))
    if documents.num_files != description["num_files"]:
        raise InputError(
            f"{description['paths'][0]}: {count(documents.num_files, 'file')}, but {description['num_files']:,} "
            "when the result was made; run dedup again."
        )
    return documents
