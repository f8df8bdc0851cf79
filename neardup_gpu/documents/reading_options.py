"""Define `Reading`: how documents are read, as an argument of every function that reads some and as flags of commands.

All options of reading travel in this object, and in no other way. A new option is a field here: it becomes a flag, its
value is checked in `__post_init__`, and readers use it as `self.policy.name`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, ClassVar, Literal

from .. import checks
from ..errors import ParameterError
from ..records import dataclass
from ..settings import setting
from .encodings import check_encoding

SEVERAL = "several"
"""The format of documents whose files are of several formats of `formats.TABLES`, in reports."""

INPUT_FORMATS = {
    "parquet": ".parquet",
    "jsonl": ".jsonl",
    "json": ".json",
    "csv": ".csv",
    "tsv": ".tsv",
    "arrow": ".arrow",
    "warc": ".warc",
    "text": ".txt",
    "html": ".html",
}
"""Formats that `input_format` accepts, with the extension of each."""

TREE = "tree"
"""The value of `html` by which pages are parsed into trees."""

MAX_DOCUMENT_BYTES = 1 << 30
"""Default for the maximum size in bytes of a line of JSON lines, a text or HTML file, or a WARC record."""


NULL_VALUES = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA"),
    *("NULL", "NaN", "None", "n/a", "nan", "null"),
)
"""Default markers of a missing value in a column that is compared: those of pandas.read_csv."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How documents are read.

    Parameters
    ----------
    text_columns : str or sequence of str, default None
        The columns of text, joined with a border between them, which is a token of its own. ``metadata.text`` is the
        member `text` of a struct column `metadata`, unless a column has the whole name. ``paragraphs[]`` is the text in
        each value of a list column, and ``messages[].content`` a member of each value. A newline joins the texts of a
        row, and nulls are left out. If None, the column is ``text``, else the only column of strings, which is never
        the id column, a column that is compared, or a column named ``id``.
    id_column : str, default None
        The column of integers or strings that names the documents, also ``metadata.id``. If None, ids are relative
        paths for text files, WARC-Record-ID for records of WARC files, else row numbers.
    html : bool or "tree", default False
        Whether the text is HTML. If so, the text that a reader sees is taken. Files ending in .html, .htm and .xhtml
        are always read so, and WARC records that are HTML. "tree" takes the text from the tree that a parser builds, at
        a tenth of the speed; the words are the same unless the markup is broken (docs/how_to/html.md).
    encoding : str, default None
        A label of the Encoding Standard, such as ``windows-1251``. Text files, CSV and JSON lines with all their
        columns, and text in columns of bytes are decoded by it. Strings of Parquet, Arrow and tables are always UTF-8.
        For HTML it is only the fallback for pages that name no encoding and are not valid UTF-8; there None means
        windows-1252. A byte order mark in a file takes precedence. If None, bytes that are not UTF-8 are letters that
        equal only themselves.
    glob : str, default None
        The pattern of the files of a folder to read, such as ``*.py`` (at any depth) or ``docs/**/*.md`` (from the
        folder down). With a pattern, files of unknown extension are text. If None, all files of a folder with a known
        extension are read.
    on_error : "stop" or "skip", default "stop"
        What to do with a row that cannot be read, such as a line that is not valid JSON, a null id, or a damaged file
        or row group:

        - "stop": raise InputError.
        - "skip": list the row in `Documents.skipped` and leave it out. This takes longer, because whole row groups are
          read before any of their rows is used.
    on_duplicate_id : "stop", "first" or "suffix", default "stop"
        What to do with a document whose id an earlier document of the same input has. Unless it is "stop", a job of
        tasks reads its input once more.

        - "stop": raise InputError.
        - "first": leave the document out, and list it in `Documents.skipped`. The first document keeps the id.
        - "suffix": compare the document under an id of its own: its id, a hyphen, and the first number from 2 on that
          no earlier document has there. Ids must be strings. Rows that are written keep the id that is stored.
    max_document_bytes : int, default 1 GiB
        Maximum size of a line of JSON lines, a row of CSV, a text or HTML file, and a record of a WARC file. A longer
        document counts as a row that cannot be read.
    null_values : str or sequence of str, default None
        Texts that mark a missing value in a column of CSV or JSON lines that is compared, such as the `keep` column. If
        None, they are "", "NA", "n/a", "NULL", "nan" and the others of pandas.read_csv. If all other values are
        numbers, they are compared as numbers.
    input_format : str, default None
        Read files as this format, whatever their names: "parquet", "jsonl", "json" (the same), "csv", "tsv", "arrow",
        "warc", "text" or "html". Of a folder, files are read whose names end so or have no extension. If None, names
        decide, and for files without an extension the first bytes, which never say CSV.
    delimiter : str, default None
        The delimiter between CSV fields. If None, it is a comma, or a tab in files whose names end in .tsv.

        - one ASCII character, but no quote, letter, digit or line ending.
        - "tab": a tab.
        - "auto": the one of comma, tab, semicolon and bar that the first line of each file has most often.
    header : bool, default True
        Whether the first row of CSV names the columns. Without a header they are f0, f1 and so on.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If a value is out of range or has another type.

    Examples
    --------
    >>> Reading(delimiter="tab").delimiter
    '\\t'
    """

    text_columns: str | Sequence[str] | None = setting(
        None,
        "Column of text. Several are joined.",
        metavar="NAME",
        flag="--text-column",
        shown="text, else the only one",
    )
    id_column: str | None = setting(
        None, "Column of unique ids.", metavar="NAME", shown="paths of files, ids of WARC records, else row numbers"
    )
    html: bool | Literal["tree"] = setting(
        False,
        "The text is HTML: compare its visible text. --html tree finds that with a parser's tree, which is slower.",
        metavar="[tree]",
    )
    encoding: str | None = setting(
        None,
        "Encoding of text that is not UTF-8, such as windows-1251. For HTML: encoding of pages that name none.",
        metavar="LABEL",
    )
    glob: str | None = setting(None, "Pattern of the files of a folder to read, such as '*.py'.", metavar="PATTERN")
    on_error: Literal["stop", "skip"] = setting(
        "stop",
        "If a row cannot be read: stop, or skip it and list it in skipped.parquet.",
        metavar="WHAT",
    )
    on_duplicate_id: Literal["stop", "first", "suffix"] = setting(
        "stop",
        "If a document has the id of an earlier one: stop, keep the first one only, or add a suffix to its id.",
        metavar="stop|first|suffix",
    )
    max_document_bytes: int = setting(
        MAX_DOCUMENT_BYTES,
        "Maximum bytes of a JSON line, text or HTML file or WARC record.",
        metavar="N",
        shown="1 GiB",
    )
    null_values: str | Sequence[str] | None = setting(
        None,
        "Marker of a missing value in compared columns of CSV and JSON lines, such as the --keep column.",
        metavar="WORD",
        shown="the markers of pandas: NA, n/a, NULL, nan and others",
    )
    input_format: str | None = setting(
        None,
        f"Read files as FORMAT, whatever their names: {', '.join(INPUT_FORMATS)}.",
        metavar="FORMAT",
        flag="--format",
        shown="by name, else by the first bytes",
    )
    delimiter: str | None = setting(
        None,
        "Delimiter between CSV fields: a character, tab, or auto to detect it in the first line.",
        metavar="CHAR",
        shown="a comma; a tab for .tsv",
    )
    header: bool = setting(True, "The first row of CSV is data. Columns are f0, f1 and so on.", flag="--no-header")

    holds: ClassVar[str] = "text"
    """The kind of documents: "text", "integers" (text columns hold lists of them) or "bytes" (of files as they are)."""

    unused: ClassVar[Mapping[str, str]] = {}
    """Options that would have no effect on such documents, and why."""

    def __post_init__(self) -> None:
        text_columns = checks.optional(checks.columns, "text_columns", self.text_columns)
        plain: dict[str, Any] = {
            "text_columns": None if text_columns is None else tuple(text_columns),
            "id_column": checks.optional(checks.text, "id_column", self.id_column, "give the name of a column"),
            "html": checks.flag_or("html", self.html, TREE),
            "glob": checks.optional(checks.text, "glob", self.glob, "give a pattern such as *.py"),
            "on_error": checks.one_of("on_error", self.on_error, ("stop", "skip")),
            "on_duplicate_id": checks.one_of("on_duplicate_id", self.on_duplicate_id, ("stop", "first", "suffix")),
            "max_document_bytes": checks.integer("max_document_bytes", self.max_document_bytes, 1),
            "null_values": checks.optional(checks.strings, "null_values", self.null_values),
            "input_format": checks.optional(checks.one_of, "input_format", self.input_format, tuple(INPUT_FORMATS)),
            "encoding": checks.optional(_encoding, "encoding", self.encoding),
            "delimiter": checks.optional(_delimiter, "delimiter", self.delimiter),
            "header": checks.flag("header", self.header),
        }
        vars(self).update(plain)
        for name, why in self.unused.items():
            if getattr(self, name):
                raise ParameterError(f"{name} and tokens {why}; leave it out")

    @property
    def integers(self) -> bool:
        """Whether text columns hold lists of integers."""
        return self.holds == "integers"

    @property
    def tree(self) -> bool:
        """Whether the text of HTML is taken from a parser's tree."""
        return self.html == TREE

    @property
    def markers(self) -> Sequence[str]:
        """Texts that mark a missing value in a column that is compared."""
        return NULL_VALUES if self.null_values is None else self.null_values

    @property
    def skips(self) -> bool:
        """Whether rows that cannot be read are left out."""
        return self.on_error == "skip"

    @property
    def leaves_out(self) -> bool:
        """Whether rows may be left out: those that cannot be read, or those whose id an earlier one has."""
        return self.skips or self.on_duplicate_id == "first"


class ReadingIntegers(Reading):
    """Options for documents that are lists of integers, such as token ids. A list with nulls counts as null."""

    holds: ClassVar[str] = "integers"
    unused: ClassVar[Mapping[str, str]] = {"html": "'ids': integers are not text"}


class ReadingBytes(Reading):
    """Options for documents that are bytes: files as they are, whatever their names, or columns of bytes."""

    holds: ClassVar[str] = "bytes"
    unused: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ["html", "encoding"], "'chunks': these are of bytes as they are"
    )


_KINDS = {kind.holds: kind for kind in (Reading, ReadingIntegers, ReadingBytes)}


def reading_of(description: Mapping[str, Any]) -> Reading:
    """Return the options among the entries of `Documents.describe`."""
    kind = next((kind for name, kind in _KINDS.items() if name != "text" and description.get(name)), Reading)
    return kind(**{each.name: description[each.name] for each in fields(Reading) if each.name in description})


def of_columns(reading: Reading, id_column: str | None, text_columns: Sequence[str] | None) -> Reading:
    """Return the options for other columns, without a pattern of files."""
    return replace(reading, id_column=id_column, text_columns=text_columns, glob=None)


def described(reading: Reading) -> dict[str, Any]:
    """Return the options that readers use, ready for JSON. Columns, `html` and `glob` are described elsewhere."""
    elsewhere = ("text_columns", "id_column", "html", "glob")
    found = {name: value for name, value in vars(reading).items() if name not in elsewhere}
    return {**found, **({} if reading.holds == "text" else {reading.holds: True})}


def chosen_reading(reading: Any, id_column: Any = None, text_columns: Any = None, *, holds: str = "text") -> Reading:
    """Return the reading options with the columns that were given directly; `holds` says what documents are.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If a column is given in both ways, or an argument has another type.
    """
    found = Reading() if reading is None else checks.instance("reading", reading, Reading)
    both = ("id_column", id_column), ("text_columns", text_columns)
    given = {name: value for name, value in both if value is not None}
    for name in given:
        if getattr(found, name) is not None:
            raise ParameterError(f"reading and {name}: the reading options name it already; leave one of them out")
    found, kind = replace(found, **given), _KINDS[holds]
    return found if isinstance(found, kind) else kind(**vars(found))


def _encoding(name: str, value: Any) -> str | None:
    return check_encoding(checks.text(name, value, "give a label such as windows-1251"))


def _delimiter(name: str, value: Any) -> str:
    """Return the character that divides the fields of CSV, or "auto"."""
    given = checks.text(name, value, 'give a character such as ";", or "tab" or "auto"')
    found = {"tab": "\t", "\\t": "\t"}.get(given, given)
    if found != "auto" and (len(found) != 1 or not found.isascii() or found.isalnum() or found in '"\r\n\0'):
        raise ParameterError(
            f'{name}: {checks.shown(value)} divides no fields; give one ASCII character such as ";", or "tab" or "auto"'
        )
    return found
