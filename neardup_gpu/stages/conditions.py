"""Conditions besides resemblance: which documents may be compared at all.

`--length-ratio R` compares two documents only if the shorter one has at least the share R of the tokens of the longer
one. Candidates that are shorter are left out before they are verified, listed or counted.

`--within COLUMN` compares only documents that have equal values in a column. No stage knows about values. Each
document gets a *group word*, which documents share exactly if their values are equal, and the words are mixed into all
that stages compare: shingles, keys and hashes of whole texts. So two documents of different values have nothing in
common, are nobody's candidates, and cost no comparison. Documents of equal values keep what they have in common, and
the order of their priority, so the result is that of one run for each value.

Words have 64 bits. Two values, or two shingles of different values, agree by accident as seldom as two fingerprints of
other shingles do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from ..data import numpy_of
from ..definitions import Material
from ..documents.batches import ragged
from ..errors import InputError
from ..kernels import texts
from ..kernels._gf2 import mix64_all
from ..kernels._launch import array_module
from ..report import count

WITHIN = "within"
"""The column of a file of sketches that holds group words."""

NO_KEY = np.uint64(0xFFFFFFFFFFFFFFFD)
"""Second word of the fingerprints of a document without a key; the first one is of its row."""

SOURCE_BITS = 40
"""Bits of the row in the number of a document without a value; the number of its source is above them."""


def group_words(columns: Sequence[pa.Array], source: int, first_row: int) -> tuple[np.ndarray, int]:
    """Return the group word of each document of a batch, and how many documents have no value.

    A document without a value, a null or NaN, in any of the columns has a word of its own.

    Parameters
    ----------
    columns : sequence of pyarrow.Array
        At least one, each with a value per document.
    source : int
        A number that no other source of the job has, nor another slice of it.
    first_row : int
        The row of the first document in the source.

    Returns
    -------
    (array of uint64, shape (documents,); int)
    """
    words, missing = np.zeros(len(columns[0]), np.uint64), np.zeros(len(columns[0]), bool)
    for column in columns:
        codes, own = words_of_values(column)
        missing |= codes < 0
        words = mix64_all(words ^ np.append(own, np.uint64(0))[codes])
    rows = np.flatnonzero(missing)
    if len(rows):
        words[rows] = _words_of_rows(source, first_row, rows)
    return words, len(rows)


def _words_of_rows(source: int, first_row: int, rows: np.ndarray) -> np.ndarray:
    """Return a word for each document without a value, which no other document has."""
    numbers = (source << SOURCE_BITS) + first_row + rows
    return mix64_all(mix64_all(numbers.astype(np.uint64)) ^ np.uint64(xxhash.xxh3_64_intdigest(b"no value")))


def _plain(column: pa.Array, parameter: str) -> pa.Array:
    """Return the values of a column that a parameter names as strings or bytes, with null in place of NaN."""
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
    is_bytes = pa.types.is_binary(column.type) or pa.types.is_fixed_size_binary(column.type)
    try:
        return column.cast(pa.large_binary() if is_bytes else pa.large_string())
    except pa.ArrowException:
        raise InputError(f"a column of {parameter} holds {column.type}; give strings, numbers or dates") from None


def words_of_values(column: pa.Array, parameter: str = WITHIN) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of each value among the distinct ones, -1 for none, and a word of each distinct one.

    `parameter` names the column in messages.
    """
    try:
        coded = column.dictionary_encode()
    except pa.ArrowException:
        coded = _plain(column, parameter).dictionary_encode()
    values = _plain(coded.dictionary, parameter)  # few of them are converted
    indices = pc.fill_null(coded.indices, -1) if coded.indices.null_count else coded.indices
    codes = numpy_of(indices).astype(np.int64)
    if values.null_count:
        codes[np.append(numpy_of(values.is_null()), True)[codes]] = -1
    words = [xxhash.xxh3_64_intdigest(value.as_buffer() or b"") for value in values]
    return codes, np.array(words, np.uint64)


def key_hashes(columns: Sequence[pa.Array], material: Material, source: int, first_row: int) -> tuple[np.ndarray, int]:
    """Return fingerprints that documents share exactly if their values are equal, and how many documents have none.

    A document without a value, a null or NaN, in any of the columns has fingerprints of its own.

    Parameters
    ----------
    columns : sequence of pyarrow.Array
        At least one, each with a value per document.
    material : Material
        The recipe's random constants.
    source : int
        A number that no other source of the job has, nor another slice of it.
    first_row : int
        The row of the first document in the source.

    Returns
    -------
    (array of uint64, shape (documents, 2); int)
    """
    hashes = np.zeros((len(columns[0]), 2), np.uint64)
    missing = np.zeros(len(hashes), bool)
    for column in columns:
        plain = _plain(column, "key").cast(pa.large_binary())
        missing |= numpy_of(plain.is_null())
        text = ragged(pc.fill_null(plain, b""))
        for place, polynomial in enumerate(material.documents):
            hashes[:, place] = mix64_all(hashes[:, place] ^ texts.cpu(text.values, text.offsets, polynomial))
    rows = np.flatnonzero(missing)
    hashes[rows] = np.column_stack([_words_of_rows(source, first_row, rows), np.full(len(rows), NO_KEY)])
    return hashes, len(rows)


def alike_in_length(num_tokens: Any, left: Any, right: Any, least: float) -> Any:
    """Return for each pair whether the shorter document has at least the share `least` of the longer one's tokens.

    >>> alike_in_length(np.array([4, 5, 6]), np.array([0, 0]), np.array([1, 2]), 0.8)
    array([ True, False])
    """
    return of_like_lengths(num_tokens[left], num_tokens[right], least)


def of_like_lengths(one: Any, other: Any, least: float) -> Any:
    """Return `alike_in_length` of pairs, from the tokens of one document and of the other one."""
    xp = array_module(one)
    return xp.minimum(one, other) / xp.maximum(one, other) >= least


def remarks_about(within: Sequence[str], counts: Mapping[str, int], key: Sequence[str] = ()) -> list[str]:
    """Return a sentence if no document has a value, so that nothing was compared."""
    found, documents = [], count(counts["documents"], "document")
    for name, columns, missing in (("within", within, "without_value"), ("key", key, "without_key")):
        if columns and 0 < counts["documents"] == counts[missing]:
            found.append(f"{name} {','.join(columns)}: none of {documents} has a value, so none is compared")
    return found
