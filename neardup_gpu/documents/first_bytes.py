"""The format and the compression of a file by its first bytes, where its name does not say it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from pyarrow import fs

from .charsets import BOM_UTF16
from .formats import format_of
from .json_blocks import MARK
from .packed import COMPRESSIONS, compression_of, unpacked, without_compression

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


SUFFIXES = {name: suffix for suffix, name in COMPRESSIONS.items()}
"""Extensions of compressions, by their names."""
