"""Columns within columns: ``metadata.id`` is the member `id` of the struct column `metadata`.

``messages[].content`` is the member `content` of each struct in the list column `messages`, and ``paragraphs[]`` is
each value of the list column `paragraphs`. Such a column holds a list per row, however many lists the path leads
through; nulls on the way add nothing to it.

A column whose own name is ``metadata.id`` wins. In JSON lines, whose lines are objects of their own, that is so in each
line that has a value under that name; there a path with ``[]`` is never the name of a column.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..data import arrow

NOTHING = object()
"""Stands for a member that an object does not have."""

EACH = "[]"
"""The step of a path that leads to each value of a list."""


class UnfitError(ValueError):
    """A value on the way that is not of the type that the path needs; the message says which, and what it is not."""


def is_listed(name: str) -> bool:
    """Return whether the name is a path through a list."""
    return EACH in name


def is_list(kind: pa.DataType) -> bool:
    """Return whether values of this type are lists, of whatever layout."""
    views = pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind)
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind) or views


def steps_of(name: str) -> list[str]:
    """Return the steps of a path: names of members, and `EACH`.

    >>> steps_of("messages[].content")
    ['messages', '[]', 'content']
    """
    steps = []
    for part in name.split("."):
        bare = part
        while bare.endswith(EACH):
            bare = bare[: -len(EACH)]
        steps += [bare, *[EACH] * ((len(part) - len(bare)) // len(EACH))]
    return steps


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
    """The values that the name stands for; null where a struct on the way is null, and empty where a list is."""
    if name in batch.schema.names:
        return batch.column(name)
    first, *others = steps_of(name)
    return follow(batch.column(first), others)


def follow(values: pa.Array, steps: Sequence[str]) -> pa.Array:
    """Return what the steps of a path lead to from the values of a column: a large list per row if any is `EACH`."""
    offsets: np.ndarray | None = None
    for step in steps:
        if step != EACH:
            values = pc.struct_field(values, [step])
            continue
        lengths = np.asarray(pc.fill_null(pc.list_value_length(values).cast(pa.int64()), 0))
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        offsets = ends if offsets is None else ends[offsets]
        values = pc.list_flatten(values)
    return values if offsets is None else pa.LargeListArray.from_arrays(arrow(offsets), values)


def select(batch: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
    """The columns that the names stand for, called by the whole names."""
    if all(name in batch.schema.names for name in names):
        return batch.select(names)
    return pa.RecordBatch.from_arrays([column(batch, name) for name in names], list(names))


def holder(schema: pa.Schema, name: str) -> str:
    """The column of the schema that holds what the name stands for."""
    return name if name in schema.names else steps_of(name)[0]


def before_lists(schema: pa.Schema, name: str) -> str:
    """Return the path as far as the first list, which is all that Parquet can read of it alone."""
    return name if name in schema.names else name.partition(EACH)[0]


def value(members: dict[str, Any], name: str) -> Any:
    """Return the value of an object of JSON under the name; NOTHING if it has no such member.

    Raises
    ------
    UnfitError
        If the path leads through a list that is not an array, or through values of a list that are not objects.
    """
    if is_listed(name):
        return _values(members, steps_of(name), "")
    found = members.get(name, NOTHING)
    if (found is not NOTHING and found is not None) or "." not in name:
        return found
    inner: Any = members
    for part in name.split("."):
        inner = inner.get(part, NOTHING) if isinstance(inner, dict) else NOTHING
    return found if inner is NOTHING else inner


def _values(found: Any, steps: list[str], path: str) -> Any:
    """Return the value of JSON where the steps lead: a list of values as soon as one step is `EACH`."""
    for number, step in enumerate(steps):
        if found is NOTHING or found is None:
            return found
        is_fit = isinstance(found, list if step == EACH else dict)
        if not is_fit:
            raise UnfitError(f"{path!r} is not {'an array' if step == EACH else 'an object'}")
        if step == EACH:
            path, others = f"{path}{EACH}", steps[number + 1 :]
            several: list[Any] = []
            for each in found:
                below = _values(each, others, path)
                if below is not NOTHING:
                    several += below if EACH in others and below is not None else [below]
            return several
        path, found = f"{path}.{step}".removeprefix("."), found.get(step, NOTHING)
    return found


def nearest(schema: pa.Schema, name: str) -> tuple[str, list[str]]:
    """The longest beginning of the path that is a struct, and the names of its members; "" and the columns if none."""
    holder_name, names = "", schema.names
    first, *others = name.split(".")
    for end in range(len(others)):
        path = ".".join([first, *others[:end]])
        found = _member(schema, path) or (schema.field(path) if schema.names.count(path) == 1 else None)
        kind = None if found is None else found.type.value_type if is_listed(path) else found.type
        if kind is None or not pa.types.is_struct(kind):
            break
        holder_name, names = path, [each.name for each in kind]
    return holder_name, names


def texts_within(name: str, kind: pa.DataType) -> Iterator[str]:
    """Yield the paths that lead from a column of this type to strings."""
    if pa.types.is_struct(kind):
        for each in kind:
            yield from texts_within(f"{name}.{each.name}", each.type)
    elif is_list(kind):
        yield from texts_within(f"{name}{EACH}", kind.value_type)
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        yield name


def texts_within_value(name: str, value: Any) -> Iterator[str]:
    """Yield the paths that lead from a value of JSON to strings; `name` is the path to the value."""
    if isinstance(value, dict):
        for member, inner in value.items():
            yield from texts_within_value(f"{name}.{member}", inner)
    elif isinstance(value, list):
        for inner in value[:10]:
            yield from texts_within_value(f"{name}{EACH}", inner)
    elif isinstance(value, str):
        yield name


_LIKELY = ("content", "text", "value")
"""Usual names of members with the text of a conversation, the likeliest first."""


def likeliest(paths: Iterable[str]) -> str | None:
    """Return the path that most likely leads to text; None if there is none."""
    found = list(dict.fromkeys(paths))
    for name in _LIKELY:
        for path in found:
            if path.rpartition(".")[2].removesuffix(EACH) == name:
                return path
    return found[0] if found else None


def _member(schema: pa.Schema, name: str) -> pa.Field | None:
    """The member of structs and lists that the path leads to; of type list where it leads through lists."""
    first, *others = steps_of(name)
    if not others or schema.names.count(first) != 1:
        return None
    found = schema.field(first)
    for step in others:
        kind = found.type
        if step == EACH:
            if not is_list(kind):
                return None
            found = pa.field(name, kind.value_type)
        elif not pa.types.is_struct(kind) or kind.get_field_index(step) < 0:
            return None
        else:
            found = kind.field(step).with_nullable(found.nullable or kind.field(step).nullable)
    return pa.field(name, pa.list_(found.type)) if is_listed(name) else found
