"""Text from outside (names, ids, arguments, words of documents) as a terminal and a log may show it."""

from __future__ import annotations

import shlex
import unicodedata
from collections.abc import Callable

JOINERS = "\u200c\u200d"
"""Invisible, but parts of words in Persian and Indic scripts, and of emoji."""


def _escaped(character: str) -> str:
    if "\udc80" <= character <= "\udcff":  # how Python keeps a byte of a name that is not UTF-8
        return f"\\x{ord(character) - 0xDC00:02x}"
    return character.encode("unicode_escape").decode()


def printable(text: str, *, lines: bool = False, escape: Callable[[str], str] = _escaped) -> str:
    """The text with escapes for everything that could steer a terminal, forge a line or stay invisible.

    These are all characters that are not visible: control characters (C0 and C1), line breaks, marks that turn the
    writing direction, invisible and unassigned characters, and bytes that are not UTF-8. Spaces of all widths and
    `JOINERS` stay.

    Parameters
    ----------
    text : str
    lines : bool
        Whether line breaks stay.
    escape : callable
        Writes a character as its escape. Default: as in Python.
    """
    if text.isprintable():
        return text
    if lines:
        return "\n".join(printable(line, escape=escape) for line in text.split("\n"))
    return "".join(c if c.isprintable() or c in JOINERS or unicodedata.category(c) == "Zs" else escape(c) for c in text)


def readable_id(id: object) -> str:
    """Return an id as text; bytes that are not UTF-8 become escapes, so that different ids stay different."""
    return id.decode("utf-8", "backslashreplace") if isinstance(id, bytes) else str(id)


def encodable(text: str, encoding: str | None) -> str:
    """The text, with characters that the encoding lacks written as escapes."""
    encoding = encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def shell_word(text: str) -> str:
    """One word for a shell, such that the command can be copied from a terminal: ``'two words'``, ``$'a\\033[2J'``."""
    if printable(text) == text:
        return shlex.quote(text)
    text = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"$'{printable(text, escape=_octal)}'"


def _octal(character: str) -> str:
    kept = "surrogateescape" if "\udc80" <= character <= "\udcff" else "surrogatepass"
    return "".join(f"\\{byte:03o}" for byte in character.encode("utf-8", kept))


def shell_path(path: str) -> str:
    """`shell_word` of a path; where it begins with a dash, ``./`` is put before it, so that it is not an option."""
    return shell_word(f"./{path}" if path.startswith("-") else path)
