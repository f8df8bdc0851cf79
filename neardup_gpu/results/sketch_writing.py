"""Write files of sketches while documents are still being sketched."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arrow_versions import kept_lists
from ..data import Ragged, arrow, one_array
from ..definitions import METADATA_KEY
from ..documents.batches import one_integer_type
from ..documents.row_groups import ROW_GROUP_BYTES, RowGroupWriter, encoded
from ..documents.skipped import summary_of
from ..engine.arrays import joined
from ..engine.processors import own_threads
from ..errors import InputError
from ..log import log
from ..stages.conditions import WITHIN, remarks_about
from ..store.artefacts import SKETCHES, part_name, write_report
from ..store.checksums import seal
from ..store.outputs import new_files, new_folder
from ..store.parquet import write_table
from ..text.token_changes import remarks_on
from .nothing_removed import warn_if_empty
from .sketch_files import NUM_SHINGLES

if TYPE_CHECKING:
    from ..arguments import Arguments
    from ..recipe import Recipe

FREQUENCIES = "frequencies.parquet"
"""The file of document frequencies in a folder of sketches."""


class SketchFiles(contextlib.AbstractContextManager):
    """Write tables of sketches into one Parquet file, or into several files of about one size.

    The rows of a row group depend on the sizes of the rows, and not on how the tables divide them, so the bytes of the
    files do not either. Other threads encode row groups while the next ones are added: memory depends on the number of
    threads, and not on the number of documents.

    Parameters
    ----------
    paths : iterator of Path
        The files to write. The first one is written even if there are no rows.
    shard_bytes : int, default None
        Size after which a file ends. If None, all rows are written to the first file.
    """

    def __init__(self, paths: Iterator[Path], shard_bytes: int | None = None) -> None:
        self._paths, self._shard_bytes = paths, shard_bytes
        self._group_bytes = ROW_GROUP_BYTES if shard_bytes is None else max(1, min(ROW_GROUP_BYTES, shard_bytes // 8))
        self._waiting: list[pa.Table] = []
        self._waiting_bytes = 0
        self._schema: pa.Schema | None = None
        self._threads = max(1, own_threads() // 4)  # the others read and sketch, which takes longer
        self._encoding = deque[Future[list[memoryview]]]()
        self._open = contextlib.ExitStack()
        self._pool = self._open.enter_context(ThreadPoolExecutor(self._threads, "neardup-sketches"))
        self._file: tuple[Any, RowGroupWriter] | None = None
        self.written: list[Path] = []
        """The files, in the order of their rows."""

    def add(self, table: pa.Table) -> None:
        """Add rows, and write the row groups that they fill.

        Raises
        ------
        InputError
            If the ids are of another type than those that were added before.
        """
        if self._schema is None:
            self._schema = table.schema
        elif table.schema != self._schema:
            before, kind = (schema.field("id").type for schema in (self._schema, table.schema))
            try:
                table = table.cast(self._schema)
            except pa.ArrowInvalid:
                raise InputError(f"ids are {before} at first and {kind} later; make them one type") from None
        ends = self._waiting_bytes + np.cumsum(_row_bytes(table))
        while len(ends) and ends[-1] >= self._group_bytes:
            stop = int(np.searchsorted(ends, self._group_bytes)) + 1
            self._waiting.append(table.slice(0, stop))
            self._encode()
            table, ends = table.slice(stop), ends[stop:] - ends[stop - 1]
        self._waiting.append(table)
        if len(ends):
            self._waiting_bytes = int(ends[-1])

    def _encode(self) -> None:
        """Let a thread encode the rows that wait; if all threads have work, write the oldest row group first."""
        if len(self._encoding) == self._threads:
            self._write()
        group = pa.concat_tables(self._waiting).combine_chunks()
        self._waiting, self._waiting_bytes = [], 0
        self._encoding.append(self._pool.submit(encoded, group.schema, group))

    def _write(self) -> None:
        """Write the oldest row group that is being encoded."""
        (group,) = self._encoding.popleft().result()
        file, output = self._opened()
        output.add(group)
        if self._shard_bytes is not None and file.tell() >= self._shard_bytes:
            self._finish()

    def _opened(self) -> tuple[Any, RowGroupWriter]:
        """Return the file to write to."""
        if self._file is None:
            self.written.append(next(self._paths))
            file = self._open.enter_context(self.written[-1].open("wb"))
            self._file = file, RowGroupWriter(file, self._schema)
        return self._file

    def _finish(self) -> None:
        """Complete the file."""
        file, output = self._opened()
        output.finish()
        file.close()
        seal(self.written[-1])
        self._file = None

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        with self._open:
            if kind is not None:
                return
            if self._schema is not None and any(map(len, self._waiting)):
                self._encode()
            while self._encoding:
                self._write()
            if self._schema is not None and (self._file is not None or not self.written):
                self._finish()


class SketchPlaces(NamedTuple):
    """The places for what `sketch` writes.

    Parameters
    ----------
    sketches : iterator of Path
        The files of sketches, in their order.
    frequencies, skipped : Path
        The files of document frequencies and of rows that cannot be read, if there are any.
    folder : Path or None
        The folder of all of them, if there may be several files of sketches.
    """

    sketches: Iterator[Path]
    frequencies: Path
    skipped: Path
    folder: Path | None


@contextlib.contextmanager
def new_places(arguments: Arguments, reads: list[str], *, counts_first: bool) -> Iterator[SketchPlaces]:
    """Yield the places for the files that take the names of the output when the block ends well.

    Parameters
    ----------
    arguments : Arguments
    reads : list of str
        The files that the job reads, which are not replaced.
    counts_first : bool
        Whether document frequencies are counted and written.
    """
    output, writing = str(arguments.output), arguments.writing
    if writing.shard_bytes is not None:
        with new_folder(output, writing.overwrite, reads) as folder:
            (folder / SKETCHES).mkdir()
            shards = (folder / part_name(SKETCHES, number) for number in itertools.count())
            yield SketchPlaces(shards, folder / FREQUENCIES, folder / "skipped.parquet", folder)
        return
    others = {frequencies_path(output): counts_first, skipped_path(output): arguments.reading.leaves_out}
    with new_files([output, *(path for path, wanted in others.items() if wanted)], writing.overwrite, reads) as files:
        frequencies, skipped = (files[0].with_name(path.name) for path in others)
        yield SketchPlaces(iter(files[:1]), frequencies, skipped, None)


def frequencies_path(output: str | Path) -> Path:
    """Return the path of the document frequencies that `sketch` counts, next to the file of sketches."""
    return _path_beside(output, "frequencies")


def skipped_path(output: str | Path) -> Path:
    """Return the path of the list of rows that `sketch` could not read, next to the file of sketches."""
    return _path_beside(output, "skipped")


def _path_beside(output: str | Path, what: str) -> Path:
    """Return the path of a file next to `output`: s.frequencies.parquet for s.parquet, s.frequencies.pq for s.pq."""
    path, suffix = os.path.splitext(os.path.realpath(output) if os.path.islink(output) else output)
    return Path(f"{path}.{what}{suffix}")


def counted(recipe: Recipe) -> list[str]:
    """Return the names of the counts of a report, as `Sketches` has them."""
    names = ["documents", "null_text", "invalid_utf8", "replaced_text", "garbled_text", "stripped_pages"]
    spots = recipe.shingles.kind == "spots" and recipe.method.elements == "shingles"
    special = ["only_dropped_words"] if recipe.shingles.drop_words is not None else []
    special += ["without_spots"] if spots else []
    return [*names, "text_bytes", "tokens", *special, *(["without_value"] if recipe.within else [])]


def reported(
    arguments: Arguments,
    recipe: Recipe,
    places: SketchPlaces,
    counts: dict[str, Any],
    left_out: dict[str, int],
    skipped: pa.Table | None,
    about: dict[str, Any],
) -> dict[str, Any]:
    """Write the rows that were skipped and, in a folder, the report; return the report.

    Parameters
    ----------
    recipe : Recipe
        The recipe of the sketches.
    counts, left_out, skipped
        The counts, the number of records that are not documents by their kinds, and the rows that cannot be read.
    about : dict
        Where the job ran, and its timings.
    """
    warn_if_empty(counts)
    for remark in (*remarks_on(counts), *remarks_about(recipe.within, counts)):
        log.warning(remark)
    report = {**counts, **({"left_out_records": left_out} if left_out else {})}
    if skipped is not None:
        report["skipped"] = summary_of(skipped)["rows"]
        write_table(skipped.replace_schema_metadata({METADATA_KEY: recipe.to_json().encode()}), places.skipped)
    report |= {**about, "recipe": recipe.describe()}
    if places.frequencies.exists():
        output, folder = str(arguments.output), places.folder
        report["frequencies"] = str(frequencies_path(output) if folder is None else Path(output, FREQUENCIES))
    if places.folder is not None:
        report["shards"] = len(list((places.folder / SKETCHES).iterdir()))
        write_report(places.folder, report)
    return report


class SketchWriter:
    """Gather the columns of sketched documents, and hand the rows that are complete to `SketchFiles`.

    Parameters
    ----------
    files : SketchFiles
    """

    def __init__(self, files: SketchFiles) -> None:
        self._files = files
        self._columns: dict[str, list[Any]] = {}
        self._num_bytes = 0

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
        """Whether the sketches gathered so far are worth handing over."""
        return self._num_bytes >= ROW_GROUP_BYTES // 4

    def write(self, recipe: Recipe) -> None:
        """Hand over the rows whose sketches are there, if any; other columns may have more rows, which stay.

        Parameters
        ----------
        recipe : Recipe
            The recipe of the sketches, which the files store.

        Raises
        ------
        InputError
            If the ids are of another type than those already written.
        """
        if "sketches" not in self._columns:
            return
        made, keys = joined(self._columns.pop("sketches")), joined(self._columns.pop("keys"))
        self._num_bytes = 0
        ids = one_array(pa.chunked_array(one_integer_type(self._columns["ids"])))
        self._columns["ids"] = [ids.slice(len(keys))]
        columns = {name: self._take(name, len(keys)) for name in [*self._columns] if name != "ids"}
        columns |= recipe.method.to_columns(made, keys)  # type: ignore[attr-defined]
        self._files.add(table_of(recipe, ids.slice(0, len(keys)), columns))

    def _take(self, name: str, number: int) -> np.ndarray:
        """Remove the first rows from a column and return them."""
        parts = self._columns[name]
        rows = parts[0] if len(parts) == 1 else np.concatenate(parts)  # what is left of one array is not copied again
        self._columns[name] = [rows[number:]]
        return rows[:number]


def table_of(recipe: Recipe, ids: pa.Array, columns: dict[str, Any]) -> pa.Table:
    """Return rows of a file of sketches.

    Parameters
    ----------
    recipe : Recipe
        The recipe of the sketches, which the table holds.
    ids : pyarrow.Array
    columns : dict of str to array
        The columns of `columns_of`, in host memory. The sketches of documents without tokens become null.
    """
    num_tokens, every_row = columns["num_tokens"], np.zeros(len(ids), bool)
    made = {"id": ids, **{name: arrow(columns[name]) for name in recipe.unit.columns}, "num_tokens": arrow(num_tokens)}
    if "document_hash" in columns:
        made["document_hash"] = _column(columns["document_hash"], every_row)
    if NUM_SHINGLES in columns:
        made[NUM_SHINGLES] = arrow(columns[NUM_SHINGLES])
    if recipe.within:
        made[WITHIN] = arrow(columns[WITHIN])
    for name in recipe.method.schema():  # type: ignore[attr-defined]
        if name not in made:
            made[name] = _column(columns[name], num_tokens == 0)
    return pa.table(made).replace_schema_metadata({METADATA_KEY: recipe.to_json().encode()})


def _column(array: Any, null: np.ndarray) -> pa.Array:
    """Return an array as an Arrow column, of lists if it has two dimensions or is Ragged; `null` marks missing rows."""
    if isinstance(array, Ragged):
        return pa.LargeListArray.from_arrays(arrow(array.offsets), arrow(array.values), mask=arrow(null))
    if array.ndim == 1:
        return arrow(array, null)
    return kept_lists(pa.FixedSizeListArray.from_arrays(arrow(array.ravel()), array.shape[1], mask=arrow(null)))


def _row_bytes(table: pa.Table) -> np.ndarray:
    """Return the bytes of each row, without the id: int64."""
    sizes = np.zeros(table.num_rows, np.int64)
    for column in table.columns[1:]:
        kind = column.type
        if pa.types.is_fixed_size_list(kind):
            sizes += kind.list_size * kind.value_type.bit_width // 8
        elif pa.types.is_large_list(kind):
            lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy()
            sizes += 8 + lengths * (kind.value_type.bit_width // 8)
        else:
            sizes += kind.bit_width // 8
    return sizes
