"""The text of documents as bytes: columns joined, and HTML turned into what a reader sees of it."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..data import arrow, arrow_bytes
from ..text.raw_text import BORDER_BYTES
from .batches import ragged
from .charsets import page_as_utf8
from .columns import bytes_are_utf8, decoded, is_binary, plain_type
from .encodings import decode
from .html import read_tree, visible_pages

COLUMN_END = BORDER_BYTES + b"\n"
"""The bytes between two columns."""

BETWEEN_COLUMNS = b"\n" * len(COLUMN_END)
"""Bytes that are written in place of `COLUMN_END` where the text is divided into units: blank lines."""


@cache
def _border() -> pa.Scalar:
    """Return what stands between two columns, made when it is first needed, as `pa.scalar` imports pandas.

    The line break ends words and marks, so that both columns keep their own tokens.
    """
    return pa.scalar(COLUMN_END, pa.large_binary())


_NO_BORDER = BORDER_BYTES[:1] + "\u00ad".encode() + BORDER_BYTES[1:]
"""Three invalid bytes and no border: a soft hyphen between them vanishes from the tokens."""


def joined(columns: list[pa.Array]) -> tuple[pa.Array, int]:
    """Join columns of large binary, with a border between any two that are not null.

    A border is a token that no text can hold (`kernels/tokens.py`), so that rows whose words are divided between the
    columns in different ways differ. A null leaves no border: ("a", null), (null, "a") and "a" are equal, and differ
    from ("a", ""). Bytes of a text that would read as a border are rewritten, and still count as three invalid bytes.

    Returns
    -------
    text : pyarrow.Array of large binary
        Without nulls.
    num_null : int
        The number of rows that are null in all columns.
    """
    if len(columns) == 1:
        (text,) = columns
        return (pc.fill_null(text, b"") if text.null_count else text), text.null_count
    empty = np.logical_and.reduce([np.asarray(column.is_null()) for column in columns])
    # Valid UTF-8 holds no border.
    columns = [column if bytes_are_utf8(column) else _without_borders(column) for column in columns]
    # The join leaves out a row that is null in every column, so one column gets an empty string there.
    first = pc.if_else(arrow(empty), pa.scalar(b"", pa.large_binary()), columns[0])
    text = pc.binary_join_element_wise(first, *columns[1:], _border(), null_handling="skip")
    return text, int(empty.sum())


def _without_borders(column: pa.Array) -> pa.Array:
    """Rewrite bytes that would read as a border, so that they read as three invalid bytes."""
    return pc.replace_substring(column, BORDER_BYTES, _NO_BORDER)


def as_bytes(column: pa.Array, encoding: str | None) -> pa.Array:
    """Return a column of text as large binary; `encoding` is that of values of bytes."""
    texts = decoded(column, pa.large_binary())
    if encoding in (None, "utf-8") or not _is_declared(column):
        return texts
    return pa.array([text and decode(text, encoding).encode() for text in texts.to_pylist()], pa.large_binary())


class OutsideError(ValueError):
    """An integer is not one of 64 bits with a sign.

    Parameters
    ----------
    row : int
        The row of its list.
    value : int
    """

    def __init__(self, row: int, value: int) -> None:
        super().__init__(row, value)
        self.row, self.value = row, value


def integers_as_bytes(column: pa.Array) -> pa.Array:
    """Return lists of integers as large binary of 8 little-endian bytes each; null where a list has a null.

    Raises
    ------
    OutsideError
    """
    lists = decoded(column, None)
    is_valid, flat = np.array(lists.is_valid()), pc.list_flatten(lists)
    try:
        values = flat.cast(pa.int64())
    except pa.ArrowInvalid:
        place = pc.index(pc.greater(flat, pa.scalar(2**63 - 1, pa.uint64())), True).as_py()
        raise OutsideError(pc.list_parent_indices(lists)[place].as_py(), flat[place].as_py()) from None
    sizes = np.asarray(pc.fill_null(pc.list_value_length(lists), 0), np.int64)
    if values.null_count:
        owners = np.repeat(np.arange(len(lists)), sizes)
        is_valid[owners[np.asarray(values.is_null())]] = False
        values = values.filter(arrow(is_valid[owners]))
        sizes = np.where(is_valid, sizes, 0)
    offsets = np.append(0, np.cumsum(8 * sizes))
    validity = arrow(is_valid).buffers()[1]
    data = pa.py_buffer(np.ascontiguousarray(values.to_numpy(zero_copy_only=False), np.int64))
    return pa.Array.from_buffers(pa.large_binary(), len(lists), [validity, pa.py_buffer(offsets), data])


_REPLACED = re.compile("\ufffd".encode())

_BLOCK = 1 << 17
"""Bytes that are searched at a time for the first byte of U+FFFD: they stay in a core's cache."""

GARBLED = 0.05
"""The share of characters that are U+FFFD, beyond which a text counts as garbled."""


def count_replaced(text: pa.Array) -> tuple[int, int]:
    """Return the number of texts with U+FFFD, and the number of texts in which more than `GARBLED` of the characters
    are U+FFFD.

    Parameters
    ----------
    text : pyarrow.Array of large binary, without nulls
    """
    values, offsets = (given := ragged(text)).values, given.offsets
    if not _holds_replaced(values[offsets[0] : offsets[-1]]):
        return 0, 0
    replaced = np.asarray(pc.count_substring(text, pattern="\ufffd"))
    rows = np.flatnonzero(replaced)
    characters = [np.count_nonzero(values[offsets[row] : offsets[row + 1]] & 0xC0 != 0x80) for row in rows]
    return len(rows), int(np.count_nonzero(replaced[rows] > GARBLED * np.array(characters)))


def _holds_replaced(values: np.ndarray) -> bool:
    """Return whether U+FFFD is among some bytes. Its first byte is rare in most texts, and is found sooner."""
    first = _REPLACED.pattern[:1]
    if values.max(initial=0) < first[0]:  # which holds for most texts, and takes the least time
        return False
    blocks = (values[begin : begin + _BLOCK + 2].tobytes() for begin in range(0, len(values), _BLOCK))
    return any(first in block and _REPLACED.search(block) for block in blocks)


def joined_lists(lists: pa.LargeListArray, texts: pa.Array) -> pa.Array:
    """Return the texts of each list joined by newlines; null where a list has none.

    Parameters
    ----------
    lists : pyarrow.LargeListArray
    texts : pyarrow.Array of large binary
        The texts of all its values, without nulls.
    """
    offsets = np.asarray(lists.offsets) - lists.offsets[0].as_py()
    if texts.null_count:
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.asarray(texts.is_valid()))])
        offsets, texts = ends[offsets], texts.drop_null()
    text = pc.binary_join(pa.LargeListArray.from_arrays(arrow(offsets), texts), pa.scalar(b"\n", pa.large_binary()))
    return pc.if_else(arrow(np.diff(offsets) == 0), pa.scalar(None, pa.large_binary()), text)


def visible(column: pa.Array, tree: bool = False, encoding: str | None = None) -> tuple[pa.Array, int]:
    """Return what a reader sees of each HTML page, as large binary, and how many pages were not parsed.

    See `html.HtmlPage`. `encoding` is that of pages of bytes that name none and are not valid UTF-8.
    """
    pages = _pages_as_utf8(column, encoding)
    if tree:
        read = [(None, True) if page is None else read_tree(page) for page in pages.to_pylist()]
        return pa.array([text for text, _ in read], pa.large_binary()), sum(not parsed for _, parsed in read)
    validity = None if pages.null_count == 0 else pages.is_valid()
    given = ragged(pages.fill_null(b"") if pages.null_count else pages)
    texts = arrow_bytes(*visible_pages(given.values, given.offsets))
    return (texts if validity is None else pc.if_else(validity, texts, pa.scalar(None, pa.large_binary()))), 0


def _is_declared(column: pa.Array) -> bool:
    """Return whether a column holds bytes. Strings are UTF-8, whatever their markup claims."""
    return is_binary(plain_type(column.type))


def _pages_as_utf8(column: pa.Array, encoding: str | None) -> pa.Array:
    """Return pages as large binary that is UTF-8."""
    pages = decoded(column, pa.large_binary())
    if _is_declared(column):
        return pa.array([page and page_as_utf8(page, None, encoding) for page in pages.to_pylist()], pa.large_binary())
    if bytes_are_utf8(pages):
        return pages
    texts = [page and page.decode("utf-8", "replace").encode() for page in pages.to_pylist()]
    return pa.array(texts, pa.large_binary())
