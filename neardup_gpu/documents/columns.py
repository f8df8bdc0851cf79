"""Columns: their types, decoded, copied and checked."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ..errors import InputError


def is_view(kind: pa.DataType) -> bool:
    return pa.types.is_string_view(kind) or pa.types.is_binary_view(kind)


def is_string(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    checks = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view)
    return is_string(kind) or any(check(kind) for check in checks) or pa.types.is_null(kind)


def is_key(kind: pa.DataType) -> bool:
    kind = plain_type(kind)
    return pa.types.is_integer(kind) or pa.types.is_fixed_size_binary(kind) or is_text(kind)


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type without dictionary or view, which one array for all batches could not keep."""
    if pa.types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_binary_view(kind):
        return pa.large_binary()
    return kind


def copied(column: pa.Array) -> pa.Array:
    """In memory of its own: a column of Arrow data may share one allocation with all others."""
    return pa.concat_arrays([column])


def decoded(column: pa.Array, kind: pa.DataType | None) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        values = column.dictionary
        column = pa.DictionaryArray.from_arrays(
            column.indices, values.cast(plain_type(values.type))
        ).dictionary_decode()
    return column if kind is None or column.type == kind else column.cast(kind)


def default_text_column(name: str, schema: pa.Schema) -> str:
    if "text" in schema.names:
        return "text"
    texts = [field.name for field in schema if is_text(field.type) and not pa.types.is_null(field.type)]
    if len(texts) == 1:
        return texts[0]
    problem = "no column of text" if not texts else "several columns of text"
    raise InputError(
        f"{name}: {problem} and none named 'text'; it has {listed(schema.names)}. Name one with --text-column."
    )


def check_ids(ids: pa.Array, column: str, name: str, row: int) -> None:
    if ids.null_count:
        first = row + int(np.flatnonzero(np.asarray(ids.is_null()))[0])
        raise InputError(f"{name}: column {column!r} is null in document {first + 1}; every document needs an id.")
    try:
        ids.validate(full=True)
    except (pa.ArrowInvalid, UnicodeDecodeError):
        raise InputError(
            f"{name}: column {column!r} is not valid UTF-8 near document {row + 1}; correct the id."
        ) from None


def listed(names: list[str]) -> str:
    shown = ", ".join(names[:20]) or "no columns"
    return f"{shown} and {len(names) - 20} more" if len(names) > 20 else shown
