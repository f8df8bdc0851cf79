"""Artefacts as Parquet: written with checksums, which are compared when they are read."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..arrow_versions import explained
from ..errors import InputError, NeardupError, raise_want
from .checksums import seal, verify
from .folder import for_arrow, open_named


class TableWriter(contextlib.AbstractContextManager):
    """A Parquet file that tables are added to, one after another; its checksums when the block ends well.

    Integers of the columns `ascending` are written as differences of neighbours.
    """

    def __init__(self, path: Path, schema: pa.Schema, ascending: Sequence[str] = ()) -> None:
        self._path = path
        how = encodings(schema, ascending)
        self._file = pq.ParquetWriter(path, schema, compression="zstd", write_page_checksum=True, **how)

    def write(self, table: pa.Table) -> None:
        self._file.write_table(table)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._file.close()
        if kind is None:
            seal(self._path)


def encodings(schema: pa.Schema, ascending: Sequence[str]) -> dict[str, Any]:
    """Return the options of Arrow's writer for the columns of a table; `ascending` as in `TableWriter`."""
    if not ascending:
        return {}
    dictionaries = [name for name in schema.names if name not in ascending]
    return {"use_dictionary": dictionaries, "column_encoding": dict.fromkeys(ascending, "DELTA_BINARY_PACKED")}


def write_table(table: pa.Table, path: Path, ascending: Sequence[str] = ()) -> None:
    """Write an artefact as Parquet; `ascending` as in `TableWriter`."""
    with TableWriter(path, table.schema, ascending) as file:
        file.write(table)


def write_tables(folder: Path, tables: Mapping[str, pa.Table], skipped: pa.Table | None) -> None:
    """Write artefacts by their names, and the rows that were skipped, if rows may be, with the same metadata."""
    for name, table in tables.items():
        write_table(table, folder / f"{name}.parquet")
    if skipped is not None:
        about = next(iter(tables.values())).schema.metadata
        write_table(skipped.replace_schema_metadata(about), folder / "skipped.parquet")


def read_table(path: str | Path) -> pa.Table:
    """Read an artefact.

    Raises
    ------
    InputError
        If it is missing or not a Parquet file.
    DamagedError
        If it is not as it was written.
    ResourceError
        If memory is too small for it.
    """
    with opened(path, whole=True) as file:
        table = file.read()
        table.validate(full=True)
        return table


@contextlib.contextmanager
def opened(path: str | Path, *, whole: bool = False) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file, ours or another; errors in the block are reported as errors of the file.

    Parameters
    ----------
    whole : bool
        Compare all of the file with its checksums, if it carries some, and not only the part at its end.

    Raises
    ------
    InputError, DamagedError, ResourceError
        As in `read_table`.
    """
    try:
        verify(path, whole=whole)
        source = for_arrow(open_named(path))
        with (
            source,
            pq.ParquetFile(source, pre_buffer=False, buffer_size=1 << 20, page_checksum_verification=True) as file,
        ):
            _refuse_encryption(path, file)
            yield file
    except NeardupError:
        raise
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, MemoryError, pa.ArrowException, ValueError) as error:
        raise_want(error)
        why = (explained(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        raise InputError(f"{path}: cannot be read as Parquet ({why})") from None


def _refuse_encryption(path: str | Path, file: pq.ParquetFile) -> None:
    """Raise InputError for encrypted columns, as asking for one of them would end the process: a footer that is longer
    than its metadata is signed, and the file has such columns."""
    with open_named(path) as end:
        end.seek(-8, 2)
        length = int.from_bytes(end.read(4), "little")
    if length != file.metadata.serialized_size:
        raise InputError(f"{path}: is encrypted, wholly or in part; write it again without encryption")
