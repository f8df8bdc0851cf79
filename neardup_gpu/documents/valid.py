"""Arrow data that comes from outside: whether its offsets, lengths and indices stay within its own memory."""

from __future__ import annotations

import contextlib

import pyarrow as pa

from ..errors import InputError
from .columns import with_inner_types


def with_readable_names(schema: pa.Schema, name: str) -> pa.Schema:
    """The same schema, after checking that the names of its columns can be read.

    Raises
    ------
    InputError
        If one of them is not UTF-8.
    """
    try:
        _ = schema.names
    except UnicodeDecodeError:
        raise InputError(f"{name}: the name of a column is not UTF-8; rename it.") from None
    return schema


def validated(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same batch, after checking that its buffers can be read without reading beyond them.

    Strings are not looked at as UTF-8: text may be invalid, and other columns are written as they were.

    Raises
    ------
    pyarrow.ArrowInvalid
        If an offset, a length or an index leads outside.
    """
    batch.validate()
    for column in batch.columns:
        validated_column(column)
    return batch


def validated_column(column: pa.Array) -> pa.Array:
    """`validated` for one column."""
    kind = with_inner_types(column.type, _bytes_for_strings)
    looked_at = column
    if kind != column.type:
        with contextlib.suppress(pa.ArrowNotImplementedError, pa.ArrowInvalid):
            looked_at = column.view(kind)
    looked_at.validate(full=True)
    return column


def _bytes_for_strings(kind: pa.DataType) -> pa.DataType:
    """Return the type with bytes in place of strings; `with_inner_types` calls it for what is in structs and lists."""
    if pa.types.is_string(kind):
        return pa.binary()
    if pa.types.is_large_string(kind):
        return pa.large_binary()
    if pa.types.is_string_view(kind):
        return pa.binary_view()
    if pa.types.is_dictionary(kind):
        values = with_inner_types(kind.value_type, _bytes_for_strings)
        return pa.dictionary(kind.index_type, values, kind.ordered)
    return kind
