"""Write the kept rows: filtered columns, united schemas, columns as Parquet can hold them, Parquet files."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..arrow_versions import bytes_of, has_null_lists, is_about_null_lists
from ..data import arrow
from ..engine.processors import own_threads
from ..errors import InputError, NeardupError, OutputError, raise_want
from ..records import dataclass
from ..store.uris import brief
from .ahead import Step, closing, in_order
from .columns import is_view, plain_type, with_inner_types
from .row_groups import ROW_GROUP_BYTES, write_groups


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
        # Dictionaries become those of the values that occur.
        return column.cast(with_inner_types(kind, _without_dictionary)).cast(kind)
    return column


def _with_inner(column: pa.Array) -> Iterator[pa.Array]:
    """Yield a column and all columns inside of it, but not those that extension types are stored as."""
    kind = column.type
    inner: list[pa.Array] = []
    if pa.types.is_map(kind):
        inner = [column.keys, column.items]
    elif pa.types.is_struct(kind):
        inner = column.flatten()
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        inner = [column.flatten()]
    yield column
    for each in inner:
        yield from _with_inner(each)


def _has_null_list(column: pa.Array) -> bool:
    """Return whether a list of one length is null, in the column or inside of it."""
    return any(
        _has_null_list(each.storage)
        if isinstance(each.type, pa.BaseExtensionType)
        else pa.types.is_fixed_size_list(each.type) and each.null_count
        for each in _with_inner(column)
    )


def _has_null_value(column: pa.Array) -> bool:
    """Return whether a dictionary inside a nested column has a null among its values."""
    return any(pa.types.is_dictionary(each.type) and each.dictionary.null_count for each in _with_inner(column))


def _without_dictionary(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


@dataclass(frozen=True, eq=False)
class Batches:
    """Rows that are record batches, in groups that are read when they are needed.

    Parameters
    ----------
    sizes : list of int
        Number of rows of each group.
    read : callable
        Gives the batches of some groups, by their numbers.
    num_bytes : int
        About the memory that reading takes besides the batches.
    keep : array of bool, optional
        The rows to read; None for all.
    """

    sizes: list[int]
    read: Callable[[list[int]], Iterable[pa.RecordBatch]]
    num_bytes: int = 0
    keep: np.ndarray | None = None

    @classmethod
    def of(cls, batch: pa.RecordBatch | None, num_rows: int) -> Batches:
        """Make one of a batch that has been read; None, whose rows are damaged, must not be selected."""
        return cls([num_rows], lambda groups: [batch for _ in groups])

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return sum(self.sizes)

    def select(self, keep: np.ndarray) -> Batches:
        """Return the rows at which `keep` is true."""
        return replace(self, keep=keep)

    def raw(self, keep: np.ndarray) -> Iterator[pa.RecordBatch]:
        """Yield the rows at which `keep` is true."""
        return self.select(keep).batches()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows; a group without a row to read is never read."""
        keep = np.ones(self.num_rows, bool) if self.keep is None else self.keep
        of_groups = np.split(keep, np.cumsum(self.sizes)[:-1])
        groups = [number for number, of_group in enumerate(of_groups) if of_group.any()]
        rest = np.concatenate([of_groups[number] for number in groups]) if groups else keep[:0]
        for batch in self.read(groups):
            yield filtered(batch, rest[: batch.num_rows])
            rest = rest[batch.num_rows :]


def filtered(batch: pa.RecordBatch, keep: np.ndarray) -> pa.RecordBatch:
    """The rows of the batch at which `keep` is true."""
    if keep.all():
        return batch
    mask = arrow(keep)
    columns = [_filtered_column(column, keep, mask) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _filtered_column(column: pa.Array, keep: np.ndarray, mask: pa.Array) -> pa.Array:
    if is_view(column.type):  # which Arrow cannot filter
        return column.cast(plain_type(column.type)).filter(mask).cast(column.type)
    with contextlib.suppress(pa.ArrowNotImplementedError):
        return column.filter(mask)
    with contextlib.suppress(pa.ArrowNotImplementedError):  # views inside lists and structs
        return column.cast(with_inner_types(column.type, _without_view)).filter(mask).cast(column.type)
    # Run-end encoded: the kept runs, one after another.
    edges = np.flatnonzero(np.diff(keep.astype(np.int8), prepend=0, append=0))
    runs = [column.slice(start, stop - start) for start, stop in edges.reshape(-1, 2).tolist()]
    return pa.concat_arrays(runs or [column.slice(0, 0)])


def _without_view(kind: pa.DataType) -> pa.DataType:
    return plain_type(kind) if is_view(kind) else kind


def united(schemas: list[pa.Schema], name: str, as_strings: bool = False) -> pa.Schema:
    """One schema with the columns of all; `name` is the source, for messages. With `as_strings`, as in CSV, whatever
    has no one type is of strings."""
    fields: dict[str, pa.Field] = {}
    for field in (field for schema in schemas for field in schema):
        before = fields.setdefault(field.name, field.with_nullable(True))
        if before.type == field.type:
            continue
        try:
            pair = [pa.schema([each]) for each in (before, field.with_nullable(True))]
            fields[field.name] = pa.unify_schemas(pair, promote_options="permissive").field(0)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            if as_strings:
                fields[field.name] = pa.field(field.name, pa.string())
                continue
            raise InputError(
                f"{name}: column {field.name!r} holds {before.type} in some rows and {field.type} in others, so it "
                "cannot become one column; write JSON lines with output_format='jsonl'."
            ) from None
    return pa.schema(list(fields.values()))


def write_parquet(folder: Path, name: str, schema: pa.Schema, steps: Iterable[Step[pa.RecordBatch]]) -> None:
    """One file of the rows that steps give, in row groups of about 16 MiB; several steps are decoded, and several row
    groups encoded at once."""
    path, threads, schema = folder / name, own_threads(), parquet_schema(schema)
    with writing(path, folder), open(path, "wb") as file:
        # To encode takes about twice as long as to decode.
        batches = in_order(steps, bytes_of, max(1, threads // 3))
        write_groups(file, schema, in_groups(batches, schema, ROW_GROUP_BYTES))


def each_in_order(write: Callable[..., None], *columns: Sequence[Any]) -> None:
    """Call `write` for each row of some columns, several at once; the first error is that of the first row that has
    one."""
    steps: Iterator[Step[None]] = (Step(partial(_call, write, row)) for row in zip(*columns, strict=True))
    for _ in in_order(steps, lambda _: 0, min(own_threads(), len(columns[0]))):
        pass


def _call(write: Callable[..., None], row: tuple[Any, ...]) -> tuple[()]:
    write(*row)
    return ()


def in_groups(batches: Iterable[pa.RecordBatch], schema: pa.Schema, most_bytes: int) -> Iterator[pa.Table]:
    """Yield tables of about `most_bytes`, none without rows, with the types of a `parquet_schema`."""
    pending: list[pa.RecordBatch] = []
    size = 0

    def table() -> pa.Table:
        """Return what is pending, and hold it no longer."""
        made = pa.Table.from_batches(pending, schema)
        pending.clear()
        return made

    with closing(batches):
        for batch in batches:
            if batch.num_rows:
                pending.append(parquet_columns(batch, schema))
                size += bytes_of(batch)
            if size >= most_bytes:
                size = 0
                yield table()
    if pending:
        yield table()


@contextlib.contextmanager
def writing(path: Path, folder: Path) -> Iterator[None]:
    """Make the file's folder; turn errors in the block into one line that names the file, from `folder` on."""
    try:
        if path != folder:
            path.parent.mkdir(parents=True, exist_ok=True)
        yield
    except NeardupError:
        raise
    except (OSError, MemoryError, pa.ArrowException) as error:
        raise_want(error)
        name = (folder.name / path.relative_to(folder)).as_posix()
        # The folder around this one has a temporary name until everything is written.
        why = brief(str(error).replace(str(folder), folder.name or "."))
        is_full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
        place = next((each.parent for each in (folder, *folder.parents) if each.name.startswith(".")), folder)
        way = f"the disk of {place} is full" if is_full else "choose another output folder"
        raise OutputError(f"{name}: cannot be written ({why}); {way}.") from error
