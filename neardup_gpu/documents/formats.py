"""The formats of files: their extensions and readers. A new format is a file with its reader, and one line here.

A reader is imported when the first file of its format is opened.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from ..records import dataclass
from .contract import Reader
from .files import File
from .packed import COMPRESSIONS
from .parts import Part
from .reading_options import INPUT_FORMATS, Reading


@dataclass(frozen=True)
class Format:
    """A format of files.

    Parameters
    ----------
    extensions : tuple of str
        In lower case, with their dots.
    home : str
        The module and class of its reader, such as "parquet.Parquet"; "" for text, whose files are read together, by
        `textfiles.TextFiles`.
    compressions : tuple of str
        Extensions of compressions that may follow.
    """

    extensions: tuple[str, ...]
    home: str
    compressions: tuple[str, ...] = ()


FORMATS = {
    "parquet": Format((".parquet", ".pq"), "parquet.Parquet"),
    "jsonl": Format((".jsonl", ".ndjson", ".json"), "jsonlines.JsonLines", tuple(COMPRESSIONS)),
    "csv": Format((".csv", ".tsv"), "csv.Csv", tuple(COMPRESSIONS)),
    "ipc": Format((".arrow", ".arrows", ".ipc", ".feather"), "ipc.Ipc"),
    "warc": Format((".warc", ".wet"), "warc.Warc", (".gz",)),
    "text": Format((".txt", ".md", ".rst", ".html", ".htm", ".xhtml"), "", tuple(COMPRESSIONS)),
}
"""All formats, by the names that reports call them."""

TABLES = ("parquet", "jsonl", "csv", "ipc")
"""Formats of rows with named columns, which may be read together."""


def reader_of(kind: str) -> Callable[[File, Reading, Part], Reader]:
    """Return the class that makes the `Reader` of one file, or of a part of it, for a format other than text."""
    module, _, name = FORMATS[kind].home.partition(".")
    made: Callable[[File, Reading, Part], Reader] = getattr(import_module(f"{__package__}.{module}"), name)
    return made


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
        (data if each.home else text).append(listed)
    return f"{', '.join(data)}; folders of {', '.join(text)}"
