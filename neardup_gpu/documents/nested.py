"""Columns within columns: ``metadata.id`` is the member `id` of the struct column `metadata`.

A column whose own name is ``metadata.id`` wins. In JSON lines, whose lines are objects of their own, that is so in each
line that has a value under that name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

NOTHING = object()
"""That an object has no such member."""


def count(schema: pa.Schema, name: str) -> int:
    """Number of columns that the name stands for."""
    number = schema.names.count(name)
    return number or int(_member(schema, name) is not None)


def field(schema: pa.Schema, name: str) -> pa.Field:
    """The column that the name stands for, called by the whole name; there has to be one."""
    if name in schema.names:
        return schema.field(name)
    found = _member(schema, name)
    assert found is not None
    return found.with_name(name)


def column(batch: pa.RecordBatch, name: str) -> pa.Array:
    """The values that the name stands for; null where a struct on the way is null."""
    if name in batch.schema.names:
        return batch.column(name)
    first, *others = name.split(".")
    return pc.struct_field(batch.column(first), others)


def select(batch: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
    """The columns that the names stand for, called by the whole names."""
    if all(name in batch.schema.names for name in names):
        return batch.select(names)
    return pa.RecordBatch.from_arrays([column(batch, name) for name in names], list(names))


def holder(schema: pa.Schema, name: str) -> str:
    """The column of the schema that holds what the name stands for."""
    return name if name in schema.names else name.partition(".")[0]


def value(members: dict[str, Any], name: str) -> Any:
    """What an object of JSON holds under the name; NOTHING if it has no such member."""
    found = members.get(name, NOTHING)
    if (found is not NOTHING and found is not None) or "." not in name:
        return found
    inner: Any = members
    for part in name.split("."):
        inner = inner.get(part, NOTHING) if isinstance(inner, dict) else NOTHING
    return found if inner is NOTHING else inner


def nearest(schema: pa.Schema, name: str) -> tuple[str, list[str]]:
    """The longest beginning of the path that is a struct, and the names of its members; "" and the columns if none."""
    within, names, kind = "", schema.names, None
    for part in name.split(".")[:-1]:
        if names.count(part) != 1:
            break
        kind = (schema if kind is None else kind).field(part).type
        if not pa.types.is_struct(kind):
            break
        within, names = f"{within}.{part}".removeprefix("."), [each.name for each in kind]
    return within, names


def _member(schema: pa.Schema, name: str) -> pa.Field | None:
    """The member of structs that the path leads to."""
    first, *others = name.split(".")
    if not others or schema.names.count(first) != 1:
        return None
    found = schema.field(first)
    for part in others:
        kind = found.type
        if not pa.types.is_struct(kind) or kind.get_field_index(part) < 0:
            return None
        found = kind.field(part).with_nullable(found.nullable or kind.field(part).nullable)
    return found
