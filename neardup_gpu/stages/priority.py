"""The order of priority that a rule gives to documents, and which of its keys decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..data import arrow, one_array
from ..documents.compared import ranks_of
from ..documents.units import Places, keep_apart, per_document
from ..errors import InputError
from ..keep_rule import FIRST, LONGEST, Key, compares_lengths, keys_of
from .conditions import words_of_values

SHINGLES = "shingles"
"""The key that comes before all others for a directed measure: the number of distinct shingles."""


def rows_by_priority(
    rule: str | Key,
    num_tokens: np.ndarray,
    columns: Mapping[str, pa.ChunkedArray],
    categories: Mapping[str, Sequence[str]] | None = None,
    *,
    parameter: str = "keep",
) -> np.ndarray:
    """Return the rows from the best priority to the worst.

    Parameters
    ----------
    rule : str or Key
        A rule, or its only key, whose column may have a comma in its name.
    num_tokens : array of int64, shape (rows,)
    columns : dict of str to pyarrow.ChunkedArray
        At least those that the rule names.
    categories : dict of str to sequence of str, default None
        The order of the values of each column that has ordered categories.
    parameter : str, default "keep"
        The name of the rule in errors.

    Returns
    -------
    array of int64, shape (rows,)
        Ties fall to input order; nulls and NaN come last.

    Raises
    ------
    InputError
        If a column has no order.
    """
    rows = np.arange(len(num_tokens), dtype=np.int64)
    if rule == FIRST or not len(rows):
        return rows
    if rule == LONGEST:
        return np.argsort(-num_tokens, kind="stable")
    values, directions = [], []
    text, keys = (rule.text, [rule]) if isinstance(rule, Key) else (rule, keys_of(rule))
    for key in keys:
        if key.column is None:
            values.append(arrow(-num_tokens if key.text == LONGEST else rows))
        else:
            own = (categories or {}).get(key.column)
            values.append(_with_order(f"{parameter} {text}", key.column, columns[key.column], own))
        directions.append("descending" if key.descending else "ascending")
    table = pa.table([*values, arrow(rows)], [str(place) for place in range(len(values) + 1)])
    found = pc.sort_indices(table, sort_keys=list(zip(table.column_names, [*directions, "ascending"], strict=True)))
    return found.to_numpy().astype(np.int64)


def units_by_priority(
    rule: str,
    num_tokens: np.ndarray,
    columns: Mapping[str, pa.ChunkedArray],
    categories: Mapping[str, Sequence[str]] | None,
    places: Places | None,
    num_documents: int,
) -> np.ndarray:
    """Return the units of `num_documents` documents from the best priority to the worst; see `rows_by_priority`.

    Units that are parts of documents, where `places` says, have the priority of their document, and those of one
    document keep their order. `columns` are those of documents.
    """
    if places is None or rule == FIRST:
        return rows_by_priority(rule, num_tokens, columns, categories)
    of_documents, owner = per_document(places, num_tokens, num_documents), places.owner
    order = documents_by_priority(rule, of_documents, columns, categories)
    if len(order) > num_documents:
        owner = np.where(keep_apart(places), num_documents + owner, owner)
    return np.argsort(np.argsort(order)[owner], kind="stable")


def documents_by_priority(
    rule: str,
    num_tokens: np.ndarray,
    columns: Mapping[str, pa.ChunkedArray],
    categories: Mapping[str, Sequence[str]] | None = None,
) -> np.ndarray:
    """Return the documents from the best priority to the worst, for their units.

    If the rule compares lengths, each document is there twice. Its second number, with that of all documents added, is
    for units that keep their neighbours apart, and comes after the first ones of all: a copy may have to stay there,
    and cuts make documents shorter. When the result is deduplicated again, it must not be better than the copy for
    which others were cut.
    """
    order = rows_by_priority(rule, num_tokens, columns, categories)
    return np.append(order, order + len(order)) if compares_lengths(rule) else order


def _with_order(
    rule: str, name: str, column: pa.ChunkedArray, categories: Sequence[str] | None
) -> pa.ChunkedArray | pa.Array:
    """Return the values of a column in a type that can be sorted, with null in place of NaN, so that both come last."""
    if categories is not None:
        column = ranks_of(column, categories, name)
    if pa.types.is_string_view(column.type):
        column = column.cast(pa.large_string())
    if pa.types.is_float16(column.type):
        column = column.cast(pa.float32())
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
    try:
        pc.sort_indices(pa.table({"value": column.slice(0, 1)}), sort_keys=[("value", "ascending")])
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError, pa.ArrowInvalid):
        raise InputError(f"{rule}: column {name!r} of type {column.type} has no order") from None
    return column


# --------------------------------------------------------------------------------------------------- the deciding key


def tells_deciding(rule: str) -> bool:
    """Return whether a report says how often each key decided: not if the order of the input alone decides."""
    return rule != FIRST


def key_words(
    rule: str, num_tokens: np.ndarray, columns: Mapping[str, Any], sizes: np.ndarray | None = None
) -> np.ndarray:
    """Return a word for each key of a rule: documents have equal values in a key exactly if their words are equal.

    Parameters
    ----------
    rule : str
    num_tokens : array of int64, shape (documents,)
    columns : dict of str to array
        The columns that the rule names. A column that is missing counts as null.
    sizes : array of int64, shape (documents,), default None
        The numbers of distinct shingles, for a directed measure.

    Returns
    -------
    array of uint64, shape (documents, keys)
        Without a word for "first", in which all documents differ.
    """
    words = [] if sizes is None else [sizes]
    for key in keys_of(rule):
        if key.text == LONGEST:
            words.append(num_tokens)
        elif key.column is not None:
            column = columns.get(key.column)
            words.append(np.zeros(len(num_tokens), np.uint64) if column is None else _words(column))
    return np.column_stack([np.empty((len(num_tokens), 0), np.uint64), *(each.astype(np.uint64) for each in words)])


ANOTHER = "another"
"""Counts removed documents that name a kept document of worse priority, which they resemble most: another decided."""


def count_deciding(
    rule: str, directed: bool, kept: np.ndarray, removed: np.ndarray, is_better: np.ndarray
) -> dict[str, int]:
    """Count removed documents by the key that decides: the first in which the kept one named for them differs.

    Parameters
    ----------
    rule : str
    directed : bool
        Whether the measure is directed, so that the number of distinct shingles comes before all keys.
    kept, removed : arrays of uint64, shape (pairs, keys)
        What `key_words` returns for the kept and for the removed document of each pair.
    is_better : array of bool, shape (pairs,)
        Whether the kept document has the better priority.

    Returns
    -------
    dict of str to int
        By key, in their order; "first", and then `ANOTHER`.
    """
    names = [*([SHINGLES] if directed else []), *(key.text for key in keys_of(rule) if key.text != FIRST), FIRST]
    differ = np.column_stack([kept != removed, np.ones(len(kept), bool)])[is_better]
    counts = np.bincount(differ.argmax(axis=1), minlength=len(names)).tolist()
    return dict(zip([*names, ANOTHER], [*counts, int(np.count_nonzero(~is_better))], strict=True))


def _words(column: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """Return the word of each value; 0 for null and NaN."""
    codes, words = words_of_values(one_array(column) if isinstance(column, pa.ChunkedArray) else column, "keep")
    return np.append(words, np.uint64(0))[codes]
