"""The formats of files: their extensions and readers. A new format is a file with its reader, and one line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .contract import Reader
from .csv import Csv
from .files import File
from .ipc import Ipc
from .jsonlines import JsonLines
from .parquet import Parquet
from .parts import Part
from .skipped import Policy


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
    compressible : bool
        Whether files of this format are also read where the extension of a compression follows theirs.
    """

    extensions: tuple[str, ...]
    reader: Callable[[File, Policy, Part], Reader] | None
    compressible: bool = False


FORMATS = {
    "parquet": Format((".parquet", ".pq"), Parquet),
    "jsonl": Format((".jsonl", ".ndjson", ".json"), JsonLines, compressible=True),
    "csv": Format((".csv", ".tsv"), Csv, compressible=True),
    "ipc": Format((".arrow", ".arrows", ".ipc", ".feather"), Ipc),
    "text": Format((".txt", ".md", ".rst", ".html", ".htm", ".xhtml"), None),
}
"""All formats, by the names that reports call them."""

COMPRESSIONS = (".gz", ".zst")


def format_of(path: str) -> str | None:
    """Name of a file's format, by its extension; None for an unknown one."""
    stem, dot, extension = path.rpartition("/")[2].lower().rpartition(".")
    compressed = f"{dot}{extension}" in COMPRESSIONS
    if compressed:
        stem, dot, extension = stem.rpartition(".")
    name = _NAMES.get(f"{dot}{extension}") if stem else None
    return None if name is None or (compressed and not FORMATS[name].compressible) else name


_NAMES = {extension: name for name, each in FORMATS.items() for extension in each.extensions}


def supported() -> str:
    """All extensions, as messages list them."""
    data = []
    for each in FORMATS.values():
        if each.reader is not None:
            listed = ", ".join(each.extensions)
            data.append(f"{listed} (plain, {' or '.join(COMPRESSIONS)})" if each.compressible else listed)
    text = [extension for each in FORMATS.values() if each.reader is None for extension in each.extensions]
    return f"{', '.join(data)}; folders of {', '.join(text)}"
