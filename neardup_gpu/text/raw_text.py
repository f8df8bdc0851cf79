"""Texts of documents as strings that keep what is not text: invalid bytes, and borders between columns.

In such a string an invalid byte is U+DC00 + byte, as Python's `surrogateescape` has it, and a border is U+DC00. So the
tokens of the string are those of its bytes (`kernels/tokens.py`). Nobody is shown these code points: `to_readable`.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

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


def integers_to_string(text: bytes) -> str:
    """Return a document of 8 bytes per integer as a string of them, with spaces in between."""
    return " ".join(map(str, struct.unpack(f"<{len(text) // 8}q", text)))


def integers_to_bytes(text: str) -> bytes:
    """Return the bytes that `integers_to_string` made a string from."""
    numbers = [int(word) for word in text.split()]
    return struct.pack(f"<{len(numbers)}q", *numbers)


TO_STRING: dict[str, Callable[[bytes], str]] = {"text": to_string, "integers": integers_to_string, "bytes": bytes.hex}
"""The function that makes a string of a document, by what documents are: see `TokenKind.holds`."""

TO_BYTES: dict[str, Callable[[str], bytes]] = {"text": to_bytes, "integers": integers_to_bytes, "bytes": bytes.fromhex}
"""The function that makes the document again."""

UNIT_BYTES = {"text": 1, "integers": 8, "bytes": 1}
"""The bytes of what places count, by what documents are: bytes, or integers."""


def readable_part(text: bytes, begin: int, end: int, holds: str = "text") -> str:
    """Return a part of a document as people are shown it; `holds` says what documents are.

    Integers are counted by integers, and bytes are shown as hexadecimal digits.

    >>> readable_part(integers_to_bytes("7 8 9"), 1, 3, "integers"), readable_part(b"to be", 3, 5)
    ('8 9', 'be')
    """
    size = UNIT_BYTES[holds]
    return to_readable(TO_STRING[holds](text[size * begin : size * end]))


def size_of(text: bytes, holds: str) -> int:
    """Return the number of bytes of a document, or of its integers."""
    return len(text) // UNIT_BYTES[holds]


def count_invalid(text: str) -> int:
    """Count the invalid bytes of a string that `to_string` made."""
    return 0 if text.isascii() else len(_INVALID.findall(text))


def to_readable(text: str) -> str:
    """Return a string as people are shown it: U+FFFD for each invalid byte, a line break for each border."""
    return text if text.isascii() else _INVALID.sub("\ufffd", _LINE_BREAK.sub("\n", text))
