"""Columns: their types, decoded, copied and checked."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..data import arrow_bytes
from ..definitions import METADATA_KEY, TELLING
from ..errors import InputError
from .nested import is_list, likeliest

SEAMS = "seams"
"""The column of the bytes of a text at which passages were cut out, as numbers with spaces between them."""

REPEATED, CONTAMINATED = MARK_COLUMNS = "repeated", "contaminated"
"""The columns of marked spans, which `substrings` and `contaminated` write."""


def is_view(kind: pa.DataType) -> bool:
    return pa.types.is_string_view(kind) or pa.types.is_binary_view(kind)


def is_string(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def is_binary(kind: pa.DataType) -> bool:
    """Return whether values of this type are bytes of any length."""
    return pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind)


def is_contiguous(kind: pa.DataType) -> bool:
    """Return whether values of this type are strings or bytes that lie one after another."""
    return (is_string(kind) or is_binary(kind)) and not is_view(kind)


def is_text(kind: pa.DataType) -> bool:
    """Whether a column of this type can hold text: strings, bytes, or nothing but nulls."""
    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    if isinstance(kind, pa.BaseExtensionType):
        return is_text(kind.storage_type)
    return is_string(kind) or is_binary(kind) or pa.types.is_null(kind)


def is_integers(kind: pa.DataType) -> bool:
    """Return whether a column of this type can hold lists of integers; JSON does not say what its arrays hold."""
    kind = plain_type(kind)
    return is_list(kind) and (pa.types.is_integer(kind.value_type) or pa.types.is_null(kind.value_type))


def is_key(kind: pa.DataType) -> bool:
    """Whether values of this type can be ids."""
    kind = plain_type(kind)
    return pa.types.is_integer(kind) or pa.types.is_fixed_size_binary(kind) or is_text(kind)


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of the same values without dictionary, view or extension; UUIDs become strings."""
    if pa.types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if isinstance(kind, pa.UuidType):
        return pa.large_string()
    if isinstance(kind, pa.BaseExtensionType):
        return plain_type(kind.storage_type)
    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_binary_view(kind):
        return pa.large_binary()
    return kind


def copied(column: pa.Array) -> pa.Array:
    """The column in memory of its own: columns of Arrow data may all share one allocation."""
    return pa.concat_arrays([column])


def with_inner_types(kind: pa.DataType, inner: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """Return a type in which `inner` has replaced each type that is not a struct, map or list."""

    def replaced(field: pa.Field) -> pa.Field:
        return field.with_type(with_inner_types(field.type, inner))

    if pa.types.is_struct(kind):
        return pa.struct([replaced(field) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(replaced(kind.key_field), replaced(kind.item_field), kind.keys_sorted)
    if pa.types.is_list(kind):
        return pa.list_(replaced(kind.value_field))
    if pa.types.is_large_list(kind):
        return pa.large_list(replaced(kind.value_field))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(replaced(kind.value_field), kind.list_size)
    return inner(kind)


def decoded(column: pa.Array, kind: pa.DataType | None) -> pa.Array:
    """Return the column without dictionary or extension, cast to `kind` if that is given."""
    if isinstance(column.type, pa.BaseExtensionType):
        column = uuids(column.storage) if isinstance(column.type, pa.UuidType) else decoded(column.storage, None)
    if pa.types.is_dictionary(column.type):
        values = column.dictionary
        column = pa.DictionaryArray.from_arrays(
            column.indices, values.cast(plain_type(values.type))
        ).dictionary_decode()
    return column if kind is None or column.type == kind else column.cast(kind)


def without_view_dictionary(column: pa.Array) -> pa.Array:
    """Return the column; if it is a dictionary of views, as Polars makes them, one of strings, which files can hold."""
    if not pa.types.is_dictionary(column.type) or not is_view(column.type.value_type):
        return column
    dictionary = column.dictionary.cast(plain_type(column.type.value_type))
    return pa.DictionaryArray.from_arrays(column.indices, dictionary, ordered=column.type.ordered)


def uuids(column: pa.FixedSizeBinaryArray) -> pa.Array:
    """Return values of 16 bytes as strings such as 67e55044-10b1-426f-9247-bb680e5fe0c8."""
    values = column.fill_null(bytes(16))
    digits = np.frombuffer(b"".join(values.to_pylist()).hex().encode(), np.uint8).reshape(-1, 32)
    texts = np.full((len(column), 36), ord("-"), np.uint8)
    texts[:, np.setdiff1d(np.arange(36), (8, 13, 18, 23))] = digits
    strings = arrow_bytes(texts, np.arange(len(column) + 1) * 36, pa.large_string())
    return pc.if_else(column.is_valid(), strings, pa.scalar(None, pa.large_string()))


def default_text_column(name: str, schema: pa.Schema, others: Collection[str], paths: Iterable[str]) -> str:
    """The column named text, else the only one of strings or bytes, leaving out `others`, which hold something else.

    `paths` lead to strings within columns; the message of the error names one of them if no column holds strings.

    Raises
    ------
    InputError
        If there is none, or several.
    """
    texts = [field.name for field in schema if is_text(field.type) and not pa.types.is_null(field.type)]
    texts = [column for column in texts if column not in others and column != SEAMS]
    if "text" in schema.names and "text" not in others:
        return "text"
    if len(texts) == 1 and texts[0].lower() != "id":
        return texts[0]
    problem = "no column of text" if len(texts) < 2 else "several columns of text"
    used = [column for column in dict.fromkeys(others) if column in schema.names]
    apart = f" besides {' and '.join(map(repr, used))}" if used else ""
    path = None if texts else likeliest(paths)
    raise InputError(
        f"{name}: {problem}{apart} and none named 'text'; it has {listed(schema.names)}. "
        f"{'Name one with text_columns=...' if path is None else f'Try text_columns={path!r}.'}"
    )


_OWN_STRINGS = {
    "id",
    "id_a",
    "id_b",
    "query_id",
    "duplicate_of",
    "near_reference",
    "source_id",
    "founder",
    "group",
    "file",
    "reason",
    "kind",
    "eval_set",
    "eval_id",
    "field",
}


def artefact_kind(schema: pa.Schema) -> str | None:
    """Which table of this package has this schema; None for documents, even if a table of this package was joined to
    them. Tables of this package have a recipe in their metadata."""
    if METADATA_KEY not in (schema.metadata or {}):
        return None
    if any(is_text(field.type) and field.name not in _OWN_STRINGS for field in schema):
        return None
    return next((kind for kind, column in TELLING.items() if column in schema.names), "artefact")


def refuse_artefact(name: str, kind: str) -> None:
    """Raise InputError for what has no text, and say what to name instead."""
    instead = {
        "sketches": "the documents that they were made from, or find pairs among sketches with neardup pairs",
        "documents": "the documents themselves, or the folder of this result for the rows it kept",
        "pairs": "the documents themselves",
    }.get(kind, "documents")
    what = "what dedup decided" if kind == "documents" else kind if kind != "artefact" else "what neardup wrote"
    raise InputError(f"{name}: holds {what}, not text, so nothing could be compared or verified; name {instead}.")


def check_ids(ids: pa.Array, column: str, name: str, row: int) -> None:
    """Raise InputError if an id is null or not valid UTF-8; the first of them is in row `row` of the file `name`."""
    if ids.null_count:
        first = row + int(np.flatnonzero(np.asarray(ids.is_null()))[0])
        raise InputError(f"{name}: column {column!r} is null in document {first + 1}; every document needs an id.")
    if not is_utf8(ids):
        first = row + next(number for number in range(len(ids)) if not is_utf8(ids[number : number + 1]))
        raise InputError(f"{name}: column {column!r} is not valid UTF-8 in document {first + 1}; correct the id.")


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


def nulls_as_strings(schema: pa.Schema) -> pa.Schema:
    """Return a schema of inferred types with strings where nothing but nulls was found."""

    def as_string(kind: pa.DataType) -> pa.DataType:
        return pa.string() if pa.types.is_null(kind) else kind

    return pa.schema([field.with_type(with_inner_types(field.type, as_string)) for field in schema], schema.metadata)


def is_utf8(column: pa.Array | pa.ChunkedArray) -> bool:
    """Return whether all strings of a column are valid UTF-8."""
    try:
        column.validate(full=True)
    except (pa.ArrowInvalid, UnicodeDecodeError):
        return False
    return True


def bytes_are_utf8(column: pa.Array) -> bool:
    """Return whether all values of a column of large binary are valid UTF-8."""
    try:
        column.cast(pa.large_string())  # which looks at each byte, and copies none
    except pa.ArrowInvalid:
        return False
    return True


def listed(names: list[str]) -> str:
    """The names in one line, at most 20 of them."""
    shown = ", ".join(names[:20]) or "no columns"
    return f"{shown} and {len(names) - 20} more" if len(names) > 20 else shown


def mixed_integers(name: str, column: str, other: str) -> InputError:
    """The error for a column that no integer type can hold."""
    where = "" if other == name else f" (some of them in {other})"
    return InputError(
        f"{name}: column {column!r} holds negative integers and integers from 2**63 on{where}, which no integer type "
        "holds together; write them as strings."
    )


def outside_int64(value: int) -> str:
    """Return what an error says of an integer that cannot be a token."""
    return f"the number {value}, not a 64-bit integer with a sign; correct it or name another column."


def holds_floats(kind: pa.DataType) -> bool:
    """Whether a type is of floating-point numbers, or a member of it is."""
    children = [kind.field(i).type for i in range(kind.num_fields)]
    return pa.types.is_floating(kind) or any(map(holds_floats, children))
