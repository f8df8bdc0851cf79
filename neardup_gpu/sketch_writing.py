"""Write a file of sketches while documents are still being sketched."""

from __future__ import annotations

import contextlib
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from .arrow_versions import kept_lists
from .data import Ragged, arrow, one_array
from .definitions import METADATA_KEY
from .documents.batches import one_integer_type
from .engine.arrays import joined
from .errors import InputError
from .methods.contract import Sketch
from .sketch_files import NUM_SHINGLES
from .store.parquet import TableWriter

if TYPE_CHECKING:
    from .recipe import Recipe

ROW_GROUP_BYTES = 64 << 20
"""Size of the sketches that become one row group, in bytes. Another row group of this size may be waiting."""


class SketchWriter(contextlib.AbstractContextManager):
    """Gather the columns of sketched documents, and write those that are complete as row groups.

    Another thread encodes and writes a row group while the next one is gathered, so memory does not depend on the
    number of documents.

    Parameters
    ----------
    path : Path
        The Parquet file to write.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._columns: dict[str, list[Any]] = {}
        self._num_bytes = 0
        self._file: TableWriter | None = None
        self._schema: pa.Schema | None = None
        self._open = contextlib.ExitStack()
        self._thread = self._open.enter_context(ThreadPoolExecutor(1, "neardup-sketches"))
        self._writing: Future[None] | None = None

    def add(self, **columns: Any) -> None:
        """Add rows to some columns. A row is complete once it is in all of them.

        Parameters
        ----------
        columns : arrays in host memory, a row per document
            `ids`, `num_tokens`, `sketches` and `keys`, as the method makes them; with some methods also `document_hash`
            and `num_shingles`. Those that are None are left out.
        """
        for name, rows in columns.items():
            if rows is not None:
                self._columns.setdefault(name, []).append(rows)
        if (rows := columns.get("sketches")) is not None:
            self._num_bytes += rows.values.nbytes + rows.offsets.nbytes if isinstance(rows, Ragged) else rows.nbytes

    @property
    def full(self) -> bool:
        """Whether the sketches gathered so far are large enough for a row group."""
        return self._num_bytes >= ROW_GROUP_BYTES

    def write(self, recipe: Recipe) -> None:
        """Write the rows whose sketches are there, if any; other columns may have more rows, which stay.

        Parameters
        ----------
        recipe : Recipe
            The recipe of the sketches. The first call stores it in the file.

        Raises
        ------
        InputError
            If the ids are of another type than those already written.
        """
        assert isinstance(recipe.method, Sketch)
        if "sketches" not in self._columns:
            return
        made, keys = joined(self._columns.pop("sketches")), joined(self._columns.pop("keys"))
        self._num_bytes = 0
        number = len(keys)
        num_tokens = self._take("num_tokens", number)
        columns: dict[str, Any] = {"id": self._take_ids(number), "num_tokens": arrow(num_tokens)}
        if "document_hash" in self._columns:
            columns["document_hash"] = _column(self._take("document_hash", number), np.zeros(number, bool))
        if NUM_SHINGLES in self._columns:
            columns[NUM_SHINGLES] = arrow(self._take(NUM_SHINGLES, number))
        for name, array in recipe.method.to_columns(made, keys).items():
            columns[name] = _column(array, num_tokens == 0)
        table = pa.table(columns).replace_schema_metadata({METADATA_KEY: recipe.to_json().encode()})
        if self._file is None:
            self._schema = table.schema
            self._file = self._open.enter_context(TableWriter(self._path, table.schema))
        if self._writing is not None:
            self._writing.result()
        self._writing = self._thread.submit(self._file.write, table)

    def _take(self, name: str, number: int) -> np.ndarray:
        """Remove the first rows from a column and return them."""
        parts = self._columns[name]
        rows = parts[0] if len(parts) == 1 else np.concatenate(parts)  # what is left of one array is not copied again
        self._columns[name] = [rows[number:]]
        return rows[:number]

    def _take_ids(self, number: int) -> pa.Array:
        ids = one_array(pa.chunked_array(one_integer_type(self._columns["ids"])))
        self._columns["ids"] = [ids.slice(number)]
        ids = ids.slice(0, number)
        if self._schema is None:
            return ids
        before = self._schema.field("id").type
        try:
            return ids.cast(before)
        except pa.ArrowInvalid:
            raise InputError(f"ids are {before} at first and {ids.type} later; make them one type") from None

    def __exit__(self, *error: Any) -> None:
        try:
            if self._writing is not None:
                self._writing.result()
        except BaseException as failed:
            self._open.__exit__(type(failed), failed, failed.__traceback__)
            raise
        self._open.__exit__(*error)


def _column(array: Any, null: np.ndarray) -> pa.Array:
    """Return an array as an Arrow column, of lists if it has two dimensions or is Ragged; `null` marks missing rows."""
    if isinstance(array, Ragged):
        return pa.LargeListArray.from_arrays(arrow(array.offsets), arrow(array.values), mask=arrow(null))
    if array.ndim == 1:
        return arrow(array, null)
    return kept_lists(pa.FixedSizeListArray.from_arrays(arrow(array.ravel()), array.shape[1], mask=arrow(null)))
