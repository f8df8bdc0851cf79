"""Writing the kept rows: the keep mask, filtered columns, Parquet parts."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..data import arrow
from ..errors import InputError, NeardupError, OutputError, ResourceError, want
from .batches import ahead
from .columns import is_view, plain_type
from .reading import brief

ROW_GROUP_BYTES = 16 << 20  # of kept rows, before compression, written as one row group


class Rows:
    """The keep mask, handed out file by file.

    Parameters
    ----------
    keep : array of bool
    progress : callable, optional
        Called with how many rows were handed out, and of how many.
    """

    def __init__(self, keep: np.ndarray, progress: Callable[[int, int], None] | None = None) -> None:
        self.keep, self.position, self.progress = keep, 0, progress

    def take(self, count: int, name: str) -> np.ndarray:
        """The mask of the next `count` rows, which are those of the file `name`."""
        self.position += count
        if self.position > len(self.keep):
            raise InputError(
                f"{name}: more documents than when it was first read; run again on files that do not change."
            )
        if self.progress is not None:
            self.progress(self.position, len(self.keep))
        return self.keep[self.position - count : self.position]

    def finish(self) -> None:
        """Raise InputError unless the mask of every row has been taken."""
        if self.position != len(self.keep):
            raise InputError(
                f"{len(self.keep):,} documents were read first, and now {self.position:,}; "
                "run again on files that do not change."
            )


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
        return column.cast(_without_views(column.type)).filter(mask).cast(column.type)
    # Run-end encoded: the kept runs, one after another.
    edges = np.flatnonzero(np.diff(keep.astype(np.int8), prepend=0, append=0))
    runs = [column.slice(start, stop - start) for start, stop in edges.reshape(-1, 2).tolist()]
    return pa.concat_arrays(runs or [column.slice(0, 0)])


def _without_views(kind: pa.DataType) -> pa.DataType:
    """The type with strings and bytes in place of views, also inside lists, structs and maps."""

    def without_views(field: pa.Field) -> pa.Field:
        return field.with_type(_without_views(field.type))

    if pa.types.is_struct(kind):
        return pa.struct([without_views(field) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(without_views(kind.key_field), without_views(kind.item_field), kind.keys_sorted)
    if pa.types.is_list(kind):
        return pa.list_(without_views(kind.value_field))
    if pa.types.is_large_list(kind):
        return pa.large_list(without_views(kind.value_field))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(without_views(kind.value_field), kind.list_size)
    return plain_type(kind) if is_view(kind) else kind


def check_parquet(schema: pa.Schema, name: str) -> None:
    """Raise InputError for a column of a type that Parquet lacks; `name` is the source."""
    for field in schema:
        try:
            pq.write_table(pa.schema([field]).empty_table(), pa.BufferOutputStream())
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
            raise InputError(
                f"{name}: column {field.name!r} of type {field.type} cannot be written as Parquet; cast it or leave "
                "it out."
            ) from None


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


def write_parquet(folder: Path, name: str, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
    """One file, decoded in a second thread while this one encodes; row groups of about 16 MiB."""
    path = folder / name
    with (
        writing(path, folder),
        pq.ParquetWriter(str(path), schema, compression="zstd", write_page_checksum=True) as writer,
    ):
        pending: list[pa.RecordBatch] = []
        size = 0
        for batch in ahead(batches):
            if batch.num_rows:
                pending.append(batch)
                size += batch.nbytes
            if size >= ROW_GROUP_BYTES:
                writer.write_table(pa.Table.from_batches(pending, schema))
                pending, size = [], 0
        if pending:
            writer.write_table(pa.Table.from_batches(pending, schema))


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
        if wanting := want(error):
            raise ResourceError(wanting) from error
        name = (folder.name / path.relative_to(folder)).as_posix()
        # The folder around this one has a temporary name until everything is written.
        why = brief(str(error).replace(str(folder), folder.name or "."))
        raise OutputError(f"{name}: cannot be written ({why}); choose another output folder.") from error
