"""The formats of files: their extensions, first bytes and readers. A new format is a file with its reader, and one line
here.

A reader is imported when the first file of its format is opened.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import PurePosixPath

from pyarrow import fs

from ..records import dataclass
from .charsets import BOM_UTF16
from .contract import Part, Reader
from .files import File
from .json_blocks import MARK
from .packed import COMPRESSIONS, compression_of, unpacked, without_compression
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


# ------------------------------------------------------------------------------------------------- by first bytes

FIRST_BYTES = 4096

_COMPRESSIONS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2", b"\xfd7zXZ\0": "xz"}
"""How compressed files begin (RFC 1952, RFC 8878, and the formats of bzip2 and xz)."""

_FORMATS = {b"PAR1": "parquet", b"ARROW1": "ipc", b"\xff\xff\xff\xff": "ipc", b"WARC/": "warc"}
_JSON = re.compile(rb'\s*(?:\{\s*["}]|\[\s*[\]{])')

_CONTROL = bytes({*range(32), 127} - {*b"\a\b\t\n\v\f\r\x1b"})
"""Bytes that no text has, as the command `file` judges."""


def format_of_bytes(begins: bytes) -> str | None:
    """Return the name of the format of a file that begins so; None if the bytes fit several, as those of CSV do."""
    for magic, kind in _FORMATS.items():
        if begins.startswith(magic):
            return kind
    return "jsonl" if _JSON.match(begins.removeprefix(MARK)) else None


def compression_of_bytes(begins: bytes) -> str | None:
    """Return the name of the compression of a file that begins so; None for a plain file."""
    return next((name for magic, name in _COMPRESSIONS.items() if begins.startswith(magic)), None)


def are_text(begins: bytes) -> bool:
    """Return whether a file that begins so is text."""
    return begins.startswith(BOM_UTF16) or begins.translate(None, _CONTROL) == begins


def first_bytes(system: fs.FileSystem, path: str) -> bytes | None:
    """Return the first bytes of a file, unpacked as its name says; None if they cannot be read."""
    try:
        with (
            system.open_input_stream(path, compression=None) as packed,
            unpacked(packed, compression_of(path), path) as stream,
        ):
            return stream.read(FIRST_BYTES)
    except MemoryError:
        raise
    except Exception:  # a file system of fsspec may raise any exception
        return None


def has_extension(path: str) -> bool:
    """Return whether a file's name has an extension besides that of a compression."""
    return bool(PurePosixPath(without_compression(path)).suffix)


def formats_of(system: fs.FileSystem, paths: Iterable[str]) -> dict[str, str]:
    """Return the formats of files, by their names or, without an extension, by their first bytes.

    Files of one folder whose names differ only in digits, such as ``part-00000`` and ``part-00001``, are of one format:
    that of the first one that says it. Files of unknown format are left out.
    """
    found: dict[str, str] = {}
    groups: dict[str, list[str]] = {}
    for path in paths:
        if (kind := format_of(path)) is not None:
            found[path] = kind
        elif not has_extension(path):
            groups.setdefault(re.sub(r"\d+", "0", path), []).append(path)
    for group in groups.values():
        for path in sorted(group):
            begins = first_bytes(system, path)
            if begins:  # an empty part says nothing
                if (kind := format_of_bytes(begins)) is not None:
                    found |= dict.fromkeys(group, kind)
                break
    return found
