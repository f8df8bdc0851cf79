"""Columns of Arrow as Parquet can hold them: dictionaries without nulls, views and nested values."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..arrow_versions import has_null_lists, is_about_null_lists
from ..data import arrow
from ..errors import InputError
from .columns import is_view, plain_type, with_inner_types


def check_parquet(schema: pa.Schema, name: str) -> None:
    """Raise InputError for a column of a type that Parquet lacks; `name` is the source."""
    for field in parquet_schema(schema):
        try:
            column = pa.nulls(1, field.type)  # Arrow refuses some types only once there is a row
            pq.write_table(pa.table({field.name: column}), pa.BufferOutputStream())
        except (pa.ArrowException, OSError) as error:  # the latter of binary values of length 0
            if is_about_null_lists(error):
                continue  # lists that are not null can be written: `parquet_columns` looks at each
            raise InputError(
                f"{name}: column {field.name!r} of type {field.type} cannot be written as Parquet; cast it or leave "
                "it out."
            ) from None


def parquet_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema with dictionaries that Arrow writes to Parquet."""
    return pa.schema([field.with_type(_parquet_type(field.type)) for field in schema], schema.metadata)


def _parquet_type(kind: pa.DataType) -> pa.DataType:
    """Return a dictionary of strings for one of views, and plain values for a dictionary of nested ones."""
    if not pa.types.is_dictionary(kind):
        return kind
    values = plain_type(kind.value_type) if is_view(kind.value_type) else kind.value_type
    if pa.types.is_nested(values) or pa.types.is_dictionary(values):
        return _parquet_type(values)
    return pa.dictionary(kind.index_type, values, kind.ordered)


def parquet_columns(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the batch with the types of `parquet_schema`, and without nulls among the values of dictionaries.

    Raises
    ------
    InputError
        If a column has nulls that this version of pyarrow could not read from Parquet again.
    """
    pairs = zip(batch.columns, schema.types, strict=True)
    columns = [_parquet_column(column, kind) for column, kind in pairs]
    for name, column in zip(schema.names, columns, strict=True):
        if not has_null_lists() and _has_null_list(column):
            raise InputError(
                f"column {name!r} has null in place of lists of one length, which pyarrow {pa.__version__} cannot keep "
                "in Parquet; install pyarrow 26 or newer, or cast the column to lists of any length."
            )
    if all(new is old for new, old in zip(columns, batch.columns, strict=True)):
        return batch
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _parquet_column(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        if not pa.types.is_dictionary(kind):
            return _parquet_column(column.dictionary_decode(), kind)
        if column.type == kind and not column.dictionary.null_count:
            return column
        values = column.dictionary.cast(kind.value_type)
        valid = np.asarray(values.is_valid())
        places = pa.array(np.cumsum(valid) - 1, mask=~valid).cast(kind.index_type)
        return pa.DictionaryArray.from_arrays(
            places.take(column.indices), values.filter(arrow(valid)), ordered=kind.ordered
        )
    if pa.types.is_nested(column.type) and _has_null_value(column):
        return column.cast(with_inner_types(kind, _without_dictionary)).cast(
            kind
        )  # dictionaries of the values that occur
    return column


def _has_null_list(column: pa.Array) -> bool:
    """Return whether a list of one length is null, in the column or inside of it."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return _has_null_list(column.storage)
    if pa.types.is_fixed_size_list(kind) and column.null_count:
        return True
    if pa.types.is_struct(kind):
        return any(map(_has_null_list, column.flatten()))
    if pa.types.is_map(kind):
        return _has_null_list(column.items)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _has_null_list(column.flatten())
    return False


def _has_null_value(column: pa.Array) -> bool:
    """Return whether a dictionary inside a nested column has a null among its values."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return column.dictionary.null_count > 0
    if pa.types.is_struct(kind):
        return any(_has_null_value(column.field(i)) for i in range(kind.num_fields))
    if pa.types.is_map(kind):
        return _has_null_value(column.keys) or _has_null_value(column.items)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _has_null_value(column.values)
    return False


def _without_dictionary(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind
