"""The formats of files: their extensions and readers. A new format is a file with its reader, and one line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .contract import Reader
from .csv import Csv
from .files import File
from .ipc import Ipc
from .jsonlines import JsonLines
from .packed import COMPRESSIONS
from .parquet import Parquet
from .parts import Part
from .reading_options import INPUT_FORMATS
from .skipped import Policy
from .warc import Warc


@dataclass(frozen=True)
class Format:
    """A format of files.

    Parameters
    ----------
    extensions : tuple of str
        In lower case, with their dots.
    reader : callable, optional
        Makes the `Reader` of one file, or of a part of it. None for text, whose files are read together, by
        `textfiles.TextFiles`.
    compressions : tuple of str
        Extensions of compressions that may follow.
    """

    extensions: tuple[str, ...]
    reader: Callable[[File, Policy, Part], Reader] | None
    compressions: tuple[str, ...] = ()


FORMATS = {
    "parquet": Format((".parquet", ".pq"), Parquet),
    "jsonl": Format((".jsonl", ".ndjson", ".json"), JsonLines, tuple(COMPRESSIONS)),
    "csv": Format((".csv", ".tsv"), Csv, tuple(COMPRESSIONS)),
    "ipc": Format((".arrow", ".arrows", ".ipc", ".feather"), Ipc),
    "warc": Format((".warc", ".wet"), Warc, (".gz",)),
    "text": Format((".txt", ".md", ".rst", ".html", ".htm", ".xhtml"), None, tuple(COMPRESSIONS)),
}
"""All formats, by the names that reports call them."""


def format_of(path: str) -> str | None:
    """Name of a file's format, by its extension; None for an unknown one."""
    stem, dot, extension = path.rpartition("/")[2].lower().rpartition(".")
    compression = f"{dot}{extension}" if f"{dot}{extension}" in COMPRESSIONS else ""
    if compression:
        stem, dot, extension = stem.rpartition(".")
    name = _NAMES.get(f"{dot}{extension}") if stem else None
    return None if name is None or (compression and compression not in FORMATS[name].compressions) else name


def format_named(input_format: str) -> str:
    """Return the name of the format of a name of `INPUT_FORMATS`."""
    return _NAMES[INPUT_FORMATS[input_format]]


_NAMES = {extension: name for name, each in FORMATS.items() for extension in each.extensions}


def supported() -> str:
    """All extensions, as messages list them."""
    data: list[str] = []
    text: list[str] = []
    for each in FORMATS.values():
        listed = ", ".join(each.extensions)
        if each.compressions:
            listed += f" (plain, {', '.join(each.compressions)})"
        (text if each.reader is None else data).append(listed)
    return f"{', '.join(data)}; folders of {', '.join(text)}"
