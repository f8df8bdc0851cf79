"""Datasets of Ray Data, block by block. Ray is imported only where there is one."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import pyarrow as pa

from neardup_gpu.kernels._cached import cached_property

from ..errors import InputError, NeardupError
from ..store.uris import brief
from .batches import stream_of

T = TypeVar("T")


class RayDataset:
    """A dataset of Ray Data, whose rows come in the order of its blocks, all with one schema.

    Parameters
    ----------
    dataset : ray.data.Dataset
        Its schema is needed here, and Ray may have to compute the first rows for it.

    Raises
    ------
    InputError
        If that fails.
    """

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        with _computing():
            schema = dataset.schema()
            found = None if schema is None else schema.base_schema
            if found is not None and not isinstance(found, pa.Schema):  # blocks of pandas
                found = dataset.take_batch(1, batch_format="pyarrow").schema
        self.schema: pa.Schema = pa.schema([]) if found is None else found

    def __len__(self) -> int:
        with _computing():
            return self._dataset.count()

    def to_reader(self) -> pa.RecordBatchReader:
        """All rows, one block in memory after another; computed once, and kept by Ray as long as this object lives."""
        return _reader(self.schema, map(_fetched, self._blocks))

    @cached_property
    def _blocks(self) -> list[Any]:
        """References to all blocks, in order."""
        with _computing(), _in_order(self._dataset):
            return self._dataset.materialize().to_arrow_refs()

    def apply(self, function: Callable[[int, pa.RecordBatchReader], T]) -> list[T]:
        """Yield a function's results for the rows of each of Ray's tasks, in the order of rows; nothing else comes
        here.

        Parameters
        ----------
        function : callable
            Takes the number of the task, and its rows. It may be called again for the same ones.

        Raises
        ------
        NeardupError
            Whatever the function raises of this kind.
        InputError
            If the dataset cannot be computed.
        """
        from ray.data.block import BlockAccessor
        from ray.data.datasource import Datasink

        schema, found = self.schema, []

        class Sink(Datasink):
            def write(self, blocks: Iterable[Any], ctx: Any) -> tuple[int, Any]:
                tables = (BlockAccessor.for_block(block).to_arrow() for block in blocks)
                try:
                    return ctx.task_idx, function(ctx.task_idx, _reader(schema, tables))
                except NeardupError as error:  # which Ray would print, and change
                    return ctx.task_idx, error

            def on_write_complete(self, write_result: Any) -> None:
                found.extend(write_result.write_returns)

        with _computing(), _in_order(self._dataset):
            self._dataset.write_datasink(Sink())
        results = [result for _, result in sorted(found, key=lambda each: each[0])]
        for result in results:
            if isinstance(result, NeardupError):
                raise result
        return results


def _reader(schema: pa.Schema, tables: Iterable[pa.Table]) -> pa.RecordBatchReader:
    """The rows of tables, all with one schema. A block without rows may lack columns."""
    return stream_of(schema, (_conformed(table, schema) for table in tables if table.num_rows))


def _conformed(table: pa.Table, schema: pa.Schema) -> pa.Table:
    if table.schema.equals(schema):
        return table
    try:
        if table.num_columns == len(schema):
            return table.select(schema.names).cast(schema)
    except (KeyError, pa.ArrowException):
        pass
    raise InputError(
        f"input: a block of the Ray dataset has columns ({_listed(table.schema)}) unlike the first ones "
        f"({_listed(schema)}); give all rows the same columns and types, with Dataset.map_batches"
    )


def _listed(schema: pa.Schema) -> str:
    return brief(", ".join(f"{field.name}: {field.type}" for field in schema))


def _fetched(block: Any) -> pa.Table:
    import ray

    with _computing():
        return ray.get(block)


@contextlib.contextmanager
def _in_order(dataset: Any) -> Iterator[None]:
    """Let blocks keep their order while the dataset is computed, which Ray Data does not do by default."""
    options = dataset.context.execution_options
    before, options.preserve_order = options.preserve_order, True
    try:
        yield
    finally:
        options.preserve_order = before


@contextlib.contextmanager
def _computing() -> Iterator[None]:
    """Turn what Ray raises in the block, or what the dataset's own functions do, into one line."""
    try:
        yield
    except NeardupError:
        raise
    except Exception as error:
        lines = re.findall(r"(?m)^[A-Za-z_][\w.]*: .*", str(error))  # of a traceback, the line that says what happened
        what = lines[0] if lines else f"{type(error).__name__}: {error}"
        raise InputError(
            f"input: the Ray dataset cannot be computed ({brief(what)}); see that Dataset.materialize() succeeds"
        ) from error
