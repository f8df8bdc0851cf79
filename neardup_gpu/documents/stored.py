"""Documents in memory written to files, so that they can be divided into slices as documents in files are.

Those of a Ray dataset are written by Ray's tasks, where their blocks are.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Iterator
from functools import partial
from typing import BinaryIO, NamedTuple

import pyarrow as pa

from .. import checks
from ..arrow_versions import bytes_of
from ..errors import ResourceError
from ..store.places import Place
from ..store.uris import is_uri
from .contract import Part, runs
from .memory import Memory, bounded
from .ray_data import RayDataset
from .row_groups import ROW_GROUP_BYTES
from .slices import Slice, SlicedFile, source_of
from .stream import Documents

FILES = re.compile(r"\.?(part|part-[0-9]{5,}|split-[0-9]+)-[0-9]{5,}\.arrows(\..*)?")
"""The names of all files that `stored` writes, also of unfinished ones."""


def stored(documents: Documents, place: Place, folder: str, slice_bytes: int) -> list[Slice]:
    """Write documents in memory to Arrow streams in a folder of a place, and give the slices that read them.

    Parameters
    ----------
    documents : Documents
        In memory; `other_columns` name the columns that slices will read.
    place : Place
        One that tasks can read, too; made if it does not exist.
    folder : str
        The name of a folder in `place`, without a slash. A link of this name is refused.
    slice_bytes : int
        About the bytes of a slice, all columns.

    Returns
    -------
    list of Slice
        At least one. Their texts, ids, types and kept rows are those of the documents; file 3 of all files has its kept
        rows in ``part-00003.parquet``. The same documents give equal slices, also if they are written again; those of a
        Ray dataset if they come in the same blocks.

    Raises
    ------
    InputError
        If the documents are a stream, or cannot be read.
    OutputError
        If the files cannot be written.
    ResourceError
        If the nodes of Ray do not write to the folder that this process sees.
    ParameterError, ArgumentTypeError
        If an argument is not as described.
    """
    slice_bytes = checks.integer("slice_bytes", slice_bytes, 1)
    memories = []
    for reader in documents._readers:
        if not isinstance(reader, Memory) or not reader.rewindable:
            reader.parts(slice_bytes)  # says why it cannot be divided
            raise TypeError("documents in files are divided by slices_of")
        memories.append(reader)
    source, uri = source_of(documents), place.uri if is_uri(place.uri) else ""
    slices: list[Slice] = []
    first_row = 0  # of the input
    for place_of_split, memory in enumerate(memories):
        if isinstance(memory.source, RayDataset):
            written = _written_by_ray(memory.source, place, folder, slice_bytes)
            groups = runs([file.size for file in written], slice_bytes)
        else:
            prefix = f"{folder}/split-{place_of_split}" if memory.split else f"{folder}/part"
            written = _written(place, prefix, memory, slice_bytes)
            groups = ((number, number + 1) for number in range(len(written)))
        row = 0  # of the split
        for start, stop in groups:
            files, parts, names, rows_before = [], [], [], row
            for number in range(start, stop):
                each, name = written[number], f"{memory.split or 'part'}-{number:05}.parquet"
                state = each.size, None, None
                below = memory.split
                files.append(SlicedFile(place._path(each.name), memory.name, below, uri, state, each.digest))
                parts.append(Part(0, None, each.num_rows, each.size, row))
                names.append(name)
                row += each.num_rows
            slices.append(Slice(len(slices), source, tuple(files), tuple(parts), tuple(names), first_row))
            first_row += row - rows_before
    return slices


class _StoredFile(NamedTuple):
    """A file that was written."""

    name: str
    num_rows: int
    size: int
    digest: str


def _written(place: Place, prefix: str, memory: Memory, slice_bytes: int) -> list[_StoredFile]:
    """Write all rows as Arrow streams, about `slice_bytes` to a file; at least one file."""
    written: list[_StoredFile] = []
    for run in _runs(memory, slice_bytes):
        name, num_rows = f"{prefix}-{len(written):05}.arrows", 0
        with place.write(name) as file:
            digested = _Digested(file)
            with pa.ipc.new_stream(pa.PythonFile(digested, "w"), memory.schema) as writer:
                for batch in run:
                    writer.write_batch(batch)
                    num_rows += batch.num_rows
        written.append(_StoredFile(name, num_rows, digested.size, digested.hash.hexdigest()))
    return written


def _written_by_ray(dataset: RayDataset, place: Place, folder: str, slice_bytes: int) -> list[_StoredFile]:
    """The files with the rows of a dataset, in order, which are written where its blocks are."""
    found = dataset.apply(partial(_write_rows, place, folder, slice_bytes))
    written = [file for files in found for file in files if file.num_rows]
    with place.reading(folder):
        seen = place._opened[0].get_file_info([place._path(file.name) for file in written])
    for file, info in zip(written, seen, strict=True):
        if info.size != file.size:
            raise ResourceError(
                f"{place.child(folder)}: {posixpath.basename(file.name)}, which a node of Ray wrote, is not seen by "
                "this machine; name a folder that all nodes share, or a URI such as s3://bucket/work"
            )
    return written or _written(place, f"{folder}/part", Memory(dataset.schema.empty_table()), slice_bytes)


def _write_rows(
    place: Place, folder: str, slice_bytes: int, number: int, rows: pa.RecordBatchReader
) -> list[_StoredFile]:
    return _written(place, f"{folder}/part-{number:05}", Memory(rows), slice_bytes)


def _runs(memory: Memory, most_bytes: int) -> Iterator[Iterator[pa.RecordBatch]]:
    """The batches of each slice, which have to be used before the next slice is read; at least one slice."""
    batches = (part for batch in memory.whole_batches() for part in bounded(batch, min(most_bytes, ROW_GROUP_BYTES)))
    following = next(batches, None)

    def run() -> Iterator[pa.RecordBatch]:
        nonlocal following
        total = 0
        while following is not None and (total + (size := bytes_of(following)) <= most_bytes or total == 0):
            total += size
            yield following
            following = next(batches, None)

    yield run()
    while following is not None:
        yield run()


class _Digested:
    """A stream that hashes and counts what is written to it."""

    closed = False

    def __init__(self, file: BinaryIO) -> None:
        self._file, self.hash, self.size = file, hashlib.blake2b(digest_size=16), 0

    def write(self, data: bytes) -> int:
        self.hash.update(data)
        self.size += len(data)
        return self._file.write(data)

    def close(self) -> None:
        """Nothing: who opened the file closes it."""
