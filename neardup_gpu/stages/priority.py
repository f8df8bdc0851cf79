"""The rule by which documents are kept, and the order of priority that it gives them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..data import arrow
from ..documents.compared import ranks_of
from ..errors import InputError


def keep_column(rule: str) -> tuple[str | None, bool]:
    """The column that a keep rule names, or None for "first" and "longest", and whether it is descending."""
    if rule in ("first", "longest"):
        return None, False
    name, colon, direction = rule.rpartition(":")
    if colon and direction in ("asc", "desc"):
        return name, direction == "desc"
    return rule, False


def rows_by_priority(
    rule: str,
    num_tokens: np.ndarray,
    column: pa.ChunkedArray | None,
    categories: Sequence[str] | None = None,
    owner: np.ndarray | None = None,
    num_documents: int = 0,
    parameter: str = "keep",
) -> np.ndarray:
    """Return the rows from the best priority to the worst.

    Units that are parts of documents have the priority of their document, and those of one document keep their order.

    Parameters
    ----------
    rule : str
    num_tokens : array of int64, shape (units,)
    column : pyarrow.ChunkedArray or None
        The column that the rule names, of documents.
    categories : sequence of str, default None
        The order of its values, if these are ordered categories.
    owner : array of int64, shape (units,), default None
        The document of each unit, of `num_documents`; None if each document is a unit.
    parameter : str, default "keep"
        The name of the rule in errors.

    Returns
    -------
    array of int64, shape (units,)
        Ties fall to input order; nulls and NaN come last.

    Raises
    ------
    InputError
        If the column has no order.
    """
    rows = np.arange(len(num_tokens), dtype=np.int64)
    if rule == "first" or not len(rows):
        return rows
    if owner is not None:
        of_documents = np.bincount(owner, num_tokens, num_documents)
        order = rows_by_priority(rule, of_documents, column, categories)
        return np.argsort(np.argsort(order)[owner], kind="stable")
    if rule == "longest":
        return np.argsort(-num_tokens, kind="stable")
    assert column is not None
    name, descending = keep_column(rule)
    if categories is not None:
        column = ranks_of(column, categories, name or "")
    if pa.types.is_string_view(column.type):
        column = column.cast(pa.large_string())
    if pa.types.is_float16(column.type):
        column = column.cast(pa.float32())
    if pa.types.is_floating(column.type):  # NaN becomes null, so that both come last in either direction
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
    try:
        order = pc.sort_indices(
            pa.table({"value": column, "row": arrow(rows)}),
            sort_keys=[("value", "descending" if descending else "ascending"), ("row", "ascending")],
        )
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError, pa.ArrowInvalid):
        raise InputError(f"{parameter} {rule}: column {name!r} of type {column.type} has no order") from None
    return order.to_numpy().astype(np.int64)
