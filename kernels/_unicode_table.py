"""Make one table, for every backend and every Python, of what each Unicode code point contributes to tokens.

    t = NFKD(text); each code point c of t becomes NFKD(casefold(c)); the result's categories decide where tokens
    divide.

Decomposition and case folding work code point by code point, so a table holds them; only the canonical order of
combining marks looks at neighbours, and for it each item keeps its combining class. Text holds no surrogates, so that
some of them stand for what is not text: U+DC80 to U+DCFF are the letters of invalid bytes, and U+DC00 is a border
between columns, a token of its own. Both are spelled in the three bytes that UTF-8 would have for them. The table is
pinned to one Unicode version, that of the oldest Python supported, so that every Python can check it against its own
unicodedata. tests/support/unicode_data.py made _unicode_table.npz, and says what each code point becomes.
"""

from __future__ import annotations

import io
from functools import cache
from pkgutil import get_data
from typing import NamedTuple

import numpy as np

DIVIDE, VANISH, WORD, SINGLE, MARK = range(5)
"""Classes: divides tokens; as if absent; begins or continues a token; a token of its own; continues the token before
it."""

OWN_WORD, OWN_SINGLE, OWN_MARK = 2, 3, 4
"""Sequence numbers of code points that stand for themselves; 0 and 1 are DIVIDE and VANISH; the rest are spelled
out."""

INVALID = 0xDC00
"""An invalid byte of text stands for the code point `INVALID` + byte, as Python's `surrogateescape` decodes it."""

BORDER = 0xDC00
"""The code point of a border between columns: the one of byte 0, which is never invalid."""


class Table(NamedTuple):
    """The table as arrays, in the order in which kernels take them.

    widest : uint8 (17408,)     code point >> 6 -> most bytes that a code point there becomes, separators included
    page : uint16 (4352,)       code point >> 8 -> block
    sequence : uint16 (blocks, 256)  block, code point & 255 -> sequence number
    starts : uint32 (sequences + 1,) sequence number -> items
    combining : uint8 (items,)  canonical combining class, 0 for starters
    kinds : uint8 (items,)      class
    spelled : uint32 (items + 1,) item -> bytes
    spelling : uint8            folded UTF-8
    """

    widest: np.ndarray
    page: np.ndarray
    sequence: np.ndarray
    starts: np.ndarray
    combining: np.ndarray
    kinds: np.ndarray
    spelled: np.ndarray
    spelling: np.ndarray


@cache
def load() -> Table:
    """The committed table (about 0.5 MB), read once."""
    with np.load(io.BytesIO(get_data(__package__, "_unicode_table.npz") or b"")) as stored:
        return Table(**{name: stored[name] for name in Table._fields})


DIGEST = "c830f424fae8e547"
"""Hash of the table's contents, which is part of every recipe; a test compares it with the table."""
