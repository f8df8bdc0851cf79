"""How documents are read: parameters of `open_documents`, `dedup` and `sketch`, and flags of the commands."""

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
"""Formats as which files can be read whatever their names, and extensions of such files."""

MAX_DOCUMENT_BYTES = 1 << 30
"""Bytes of one line of JSON lines, text or HTML file, or record of a WARC file, unless told otherwise."""


NULL_VALUES = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA"),
    *("NULL", "NaN", "None", "n/a", "nan", "null"),
)
"""What marks a missing value in a column that is compared, unless other markers are given: as in pandas.read_csv."""


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
        "The text is HTML: compare what a reader sees of it. As --html tree, by the tree that a parser builds: slower.",
        metavar="[tree]",
    )
    encoding: str | None = setting(
        None,
        "Encoding of text that is not UTF-8, such as windows-1251; of pages, that of those that name none.",
        metavar="LABEL",
    )
    glob: str | None = setting(None, "Which files of a folder to read, such as '*.py'.", metavar="PATTERN")
    on_error: str = setting(
        "stop",
        "What to do at a row that cannot be read: stop, or skip it and list it in skipped.parquet.",
        metavar="WHAT",
    )
    max_document_bytes: int = setting(
        MAX_DOCUMENT_BYTES, "Longest line of JSON lines, text or HTML file, or WARC record.", metavar="N", shown="1 GiB"
    )
    null_values: str | Sequence[str] | None = setting(
        None,
        "What marks a missing value in the columns of CSV and JSON lines that are compared, as by --keep.",
        metavar="WORD",
        shown="those of pandas: NA, n/a, NULL, nan and others",
    )
    input_format: str | None = setting(
        None,
        f"Read files as FORMAT, whatever their names: {', '.join(INPUT_FORMATS)}.",
        metavar="FORMAT",
        flag="--format",
        shown="by their names, else their first bytes",
    )
    delimiter: str | None = setting(
        None,
        "What divides the fields of CSV: a character, tab, or auto to find out by the first line.",
        metavar="CHAR",
        shown="a comma; a tab for .tsv",
    )
    header: bool = setting(True, "The first row of CSV is data; its columns are f0, f1 and so on.", flag="--no-header")
