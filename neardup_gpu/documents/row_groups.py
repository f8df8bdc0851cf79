"""Parquet files whose row groups are encoded by several threads at once.

Arrow's writer encodes one row group after another, and one column after another. Here each row group is encoded as a
file of its own, in memory; its pages are then put after those of the row groups before it, and a footer is written
that names all of them: theirs, with the places of their pages moved by as much as the pages were. The bytes are those
that one writer of Arrow would have written.

Footers are structs of Thrift (`thrift.py`). Of a footer, the number of rows and the row groups change; of a row group,
its ordinal and the places that `_places` lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..arrow_versions import bytes_of
from ..errors import OutputError
from ..store.disk import start_writing
from .ahead import Step, closing, in_order
from .thrift import end_of, list_header, place_of, read_field, read_list, signed, written

ROW_GROUP_BYTES = 16 << 20  # of kept rows, before compression, written as one row group
PAGE_BYTES = 256 << 10
"""Size of a page before compression. Zstandard compresses pages of at most 256 KiB with smaller tables: short texts are
encoded in 36.5 instead of 44.3 ms for 16 MiB, and take 0.3% more space. For longer texts it makes no difference."""

MAGIC = b"PAR1"
_TAIL = 8  # bytes of the length of the footer and of the magic behind it

_NUM_ROWS = 3  # of FileMetaData; the row groups follow
_COLUMNS, _FILE_OFFSET, _ORDINAL = 1, 5, 7  # of RowGroup
_CHUNK_OFFSET, _META_DATA, _OFFSET_INDEX, _COLUMN_INDEX = 2, 3, 4, 6  # of ColumnChunk
_DATA_PAGE, _INDEX_PAGE, _DICTIONARY_PAGE, _BLOOM_FILTER = 9, 10, 11, 14  # of ColumnMetaData
_MOST_ORDINAL = 2**15 - 1


def encoded_in_order(
    schema: pa.Schema, tables: Iterable[pa.Table], threads: int | None = None, **how: Any
) -> Iterator[memoryview]:
    """Yield each table as a Parquet file of its own, in order, to be added to a `RowGroupWriter`.

    `how` has further options of Arrow's writer. A column of a table may be a dictionary of the type in `schema`, which
    is encoded in less time and read as that type.

    Memory: for each thread a table, as much again to encode it, and an encoded one that waits to be written.
    """

    def step(table: pa.Table) -> Step[memoryview]:
        return Step(partial(encoded, schema, table, **how), 2 * bytes_of(table))

    def steps() -> Iterator[Step[memoryview]]:
        with closing(tables):
            yield from map(step, tables)  # a loop would hold each table while the next one is made

    return in_order(steps(), len, threads, 3 * ROW_GROUP_BYTES)


def encoded(schema: pa.Schema, table: pa.Table | None, **how: Any) -> list[memoryview]:
    """Return a table as a Parquet file of its own, alone in a list; None stands for a table without row groups."""
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink,
        schema if table is None else table.schema,
        compression="zstd",
        data_page_size=PAGE_BYTES,
        write_page_checksum=True,
        **how,
    ) as writer:
        if table is not None:
            writer.write_table(table)
    return [memoryview(sink.getvalue())]


class RowGroupWriter:
    """A Parquet file that encoded row groups are added to.

    Parameters
    ----------
    file : file object
        Open for writing, empty.
    schema : pyarrow.Schema
    **how
        As for `encoded_in_order`.
    """

    def __init__(self, file: Any, schema: pa.Schema, **how: Any) -> None:
        self._file = file
        self._footer = _divided(encoded(schema, None, **how)[0])[1]  # of no row groups
        self._to_num_rows = place_of(self._footer, _NUM_ROWS)
        self._groups: list[bytes] = []
        self._num_rows = self._num_groups = 0
        self._size = len(MAGIC)
        file.write(MAGIC)

    def add(self, encoded: memoryview) -> None:
        """Add the row groups of a file of `encoded_in_order`.

        Raises
        ------
        OutputError
            If its columns are not those of the file.
        """
        pages, footer = _divided(encoded)
        place = self._to_num_rows
        if footer[:place] != self._footer[:place]:
            name = getattr(self._file, "name", "the output")
            raise OutputError(f"{name}: rows with other columns than those before; write them to another file")
        num_rows, place = signed(footer, place)
        number, _, place = read_list(footer, place + 1)  # behind the byte that says: the next field is a list
        edits = _places(self._size - len(MAGIC))
        for ordinal in range(self._num_groups, self._num_groups + number):
            edits[_ORDINAL] = lambda _, ordinal=ordinal: min(ordinal, _MOST_ORDINAL)
            place = _edit(footer, place, edits, self._groups)
        self._file.write(pages)
        start_writing(self._file, self._size, len(pages))
        self._size += len(pages)
        self._num_rows += num_rows
        self._num_groups += number

    def finish(self) -> None:
        """Write the footer."""
        _, place = signed(self._footer, self._to_num_rows)
        _, kind, rest = read_list(self._footer, place + 1)
        before = self._footer[: self._to_num_rows] + written(self._num_rows) + self._footer[place : place + 1]
        groups = [list_header(self._num_groups, kind), *self._groups]
        footer = b"".join([before, *groups, self._footer[rest:]])
        self._file.write(footer)
        self._file.write(len(footer).to_bytes(4, "little") + MAGIC)


def write_groups(file: Any, schema: pa.Schema, tables: Iterable[pa.Table], **how: Any) -> None:
    """Write tables into a Parquet file; several are encoded at once."""
    output = RowGroupWriter(file, schema, **how)
    with closing(encoded_in_order(schema, tables, **how)) as groups:
        for group in groups:
            output.add(group)
    output.finish()


def _divided(encoded: memoryview) -> tuple[memoryview, bytes]:
    """The pages of a file, and its footer."""
    end = len(encoded) - _TAIL
    start = end - int.from_bytes(encoded[end : end + 4], "little")
    return encoded[len(MAGIC) : start], bytes(encoded[start:end])


# ------------------------------------------------------------------------------------------------- compact protocol


def _places(by: int) -> dict[int, Any]:
    """The edits of a row group whose pages are moved; a place of 0 means that there is none."""

    def moved(place: int) -> int:
        return place + by if place else 0

    pages = dict.fromkeys((_DATA_PAGE, _INDEX_PAGE, _DICTIONARY_PAGE, _BLOOM_FILTER), moved)
    chunk = {**dict.fromkeys((_CHUNK_OFFSET, _OFFSET_INDEX, _COLUMN_INDEX), moved), _META_DATA: pages}
    return {_COLUMNS: [chunk], _FILE_OFFSET: moved}


def _edit(data: bytes, place: int, edits: dict[int, Any], out: list[bytes]) -> int:
    """Add the struct at a place to `out`, some of its fields edited, and give where it ends.

    An edit is a function of an integer, or edits of a struct, or a list of the edits of all structs of a list.
    """
    number, copied = 0, place
    while data[place]:
        number, kind, place = read_field(data, place, number)
        edit = edits.get(number)
        if edit is None:
            place = end_of(data, place, kind)
            continue
        if isinstance(edit, dict):
            out.append(data[copied:place])
            place = _edit(data, place, edit, out)
        elif isinstance(edit, list):
            length, _, start = read_list(data, place)
            out.append(data[copied:start])
            place = start
            for _ in range(length):
                place = _edit(data, place, edit[0], out)
        else:
            out.append(data[copied:place])
            value, place = signed(data, place)
            out.append(written(edit(value)))
        copied = place
    out.append(data[copied : place + 1])
    return place + 1
