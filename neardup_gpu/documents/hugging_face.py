"""Objects of Hugging Face's library `datasets`, which is recognised without importing it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from ..errors import InputError, NeardupError
from ..store.uris import brief
from .batches import stream_of
from .row_sources import is_kind

BATCH_ROWS = 1000  # taken at once from a dataset


def is_dataset(source: Any) -> bool:
    """Whether it is a Dataset, which has an Arrow form but not Arrow's protocol."""
    return is_kind("datasets", "Dataset", source)


def splits_of(source: Any) -> dict[str, Any] | None:
    """The splits of a DatasetDict or IterableDatasetDict, in its order; None for anything else.

    Raises
    ------
    InputError
        If it is empty.
    """
    if not any(is_kind("datasets", name, source) for name in ("DatasetDict", "IterableDatasetDict")):
        return None
    if not source:
        raise InputError(f"input: the {type(source).__name__} has no splits; pass one with documents.")
    return {str(name): split for name, split in source.items()}


def stream_of_dataset(dataset: Any) -> pa.RecordBatchReader:
    """All columns, whatever the dataset's format shows; selected and shuffled rows as its indices say."""
    arrow = dataset.with_format("arrow")
    schema = arrow[:0].schema
    return stream_of(schema, (table.cast(schema) for table in arrow.iter(batch_size=BATCH_ROWS)))


def stream_of_iterable(dataset: Any, name: str) -> pa.RecordBatchReader:
    """The rows of an IterableDataset, once. Its features give the columns, else its first rows do.

    Raises
    ------
    InputError
        If its first rows cannot be had. What is wrong with later ones is raised when they are read.
    """
    tables = _computed(iter(dataset.with_format("arrow").iter(batch_size=BATCH_ROWS)), name)
    if dataset.features is not None:
        schema = dataset.features.arrow_schema
    else:
        first = next(tables, pa.table({}))
        schema, tables = first.schema, itertools.chain([first], tables)
    return stream_of(schema, (_conformed(table, schema, name) for table in tables))


def _computed(tables: Iterator[pa.Table], name: str) -> Iterator[pa.Table]:
    """The tables; whatever the dataset's functions and files raise becomes one line."""
    try:
        yield from tables
    except (NeardupError, MemoryError):
        raise
    except Exception as error:  # of functions of the user, and of any file system
        what = brief(f"{type(error).__name__}: {error}")
        raise InputError(
            f"{name}: the IterableDataset cannot be read ({what}); see that next(iter(...)) works."
        ) from error


def _conformed(table: pa.Table, schema: pa.Schema, name: str) -> pa.Table:
    columns = []
    for field in schema:
        try:
            column = table[field.name] if field.name in table.schema.names else pa.nulls(len(table), field.type)
            columns.append(column.cast(field.type))
        except pa.ArrowException:
            raise InputError(
                f"{name}: column {field.name!r} holds {table[field.name].type}, but {field.type} in the first "
                f"{BATCH_ROWS:,} rows; say what it holds with IterableDataset.cast_column."
            ) from None
    return pa.Table.from_arrays(columns, schema=schema)
