"""The text of documents as bytes: columns joined, and HTML turned into what a reader sees of it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..data import arrow
from .columns import decoded
from .html import read_page


def joined(columns: list[pa.Array]) -> tuple[pa.Array, int]:
    """Columns of large binary, joined by newlines, without nulls; and how many rows are null in all of them."""
    if len(columns) == 1:
        (text,) = columns
        return (pc.fill_null(text, b"") if text.null_count else text), text.null_count
    empty = np.logical_and.reduce([np.asarray(column.is_null()) for column in columns])
    newline, nothing = pa.scalar(b"\n", pa.large_binary()), pa.scalar(b"", pa.large_binary())
    # The join leaves out a row that is null in every column, so one column gets an empty string there.
    first = pc.if_else(arrow(empty), nothing, columns[0])
    text = pc.binary_join_element_wise(first, *columns[1:], newline, null_handling="skip")
    return text, int(empty.sum())


def visible(column: pa.Array) -> tuple[pa.Array, int]:
    """What a reader sees of each HTML page, as large binary, and how many pages were not parsed; see `html.Page`."""
    # Text columns are UTF-8 whatever their markup claims; bytes may declare their own charset.
    declared = pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type)
    texts: list[bytes | None] = []
    num_stripped = 0
    for page in decoded(column, pa.large_binary()).to_pylist():
        if page is None:
            texts.append(None)
            continue
        read = read_page(page if declared else page.decode("utf-8", "replace"))
        num_stripped += not read.parsed
        texts.append(read.text.encode("utf-8"))
    return pa.array(texts, pa.large_binary()), num_stripped
