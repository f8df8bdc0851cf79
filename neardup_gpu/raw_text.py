"""Texts of documents as strings that keep what is not text: invalid bytes, and borders between columns.

In such a string an invalid byte is U+DC00 + byte, as Python's `surrogateescape` has it, and a border is U+DC00. So the
tokens of the string are those of its bytes (`kernels/tokens.py`). Nobody is shown these code points: `to_readable`.
"""

from __future__ import annotations

import re

BORDER = "\udc00"
"""A border between two columns, in a string."""

BORDER_BYTES = b"\xed\xb0\x80"
"""A border between two columns, in the text of a document."""

_LINE_BREAK = re.compile(f"{BORDER}\n?")
_INVALID = re.compile("[\udc80-\udcff]")


def to_string(text: bytes) -> str:
    """Return the text of a document as a string, from which `to_bytes` makes the same bytes again."""
    return BORDER.join(part.decode("utf-8", "surrogateescape") for part in text.split(BORDER_BYTES))


def to_bytes(text: str) -> bytes:
    """Return the bytes that `to_string` made a string from."""
    return BORDER_BYTES.join(part.encode("utf-8", "surrogateescape") for part in text.split(BORDER))


def to_readable(text: str) -> str:
    """Return a string as people are shown it: U+FFFD for each invalid byte, a line break for each border."""
    return text if text.isascii() else _INVALID.sub("\ufffd", _LINE_BREAK.sub("\n", text))
