"""Define how documents are read: parameters of `open_documents`, `dedup` and `sketch`, and flags of the commands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..settings import setting

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

MAX_DOCUMENT_BYTES = 1 << 30
"""Default for the maximum size in bytes of a line of JSON lines, a text or HTML file, or a WARC record."""


NULL_VALUES = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA"),
    *("NULL", "NaN", "None", "n/a", "nan", "null"),
)
"""Default markers of a missing value in a column that is compared: those of pandas.read_csv."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How documents are read; see `open_documents`."""

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
    html: bool | str = setting(
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
    on_error: str = setting(
        "stop",
        "If a row cannot be read: stop, or skip it and list it in skipped.parquet.",
        metavar="WHAT",
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
