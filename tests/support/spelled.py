"""Texts of given tokens, as documents of each kind of token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

KINDS = ("words", "code", "lines", "ids")
"""Kinds of which a letter is a token."""


def spelled(texts: Sequence[Sequence[str]], kind: str, column: str | None = None) -> pa.Table:
    """Return documents whose tokens are letters; tokens of text are two bytes apart, those of integers one place."""
    if kind == "ids":
        rows: Any = pa.array([[ord(letter) for letter in text] for text in texts], pa.list_(pa.int64()))
        return pa.table({column or "input_ids": rows})
    return pa.table({column or "text": [("\n" if kind == "lines" else " ").join(text) for text in texts]})
