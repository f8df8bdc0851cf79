"""Documents in memory written to files, so that they can be divided into slices as documents in files are.

Those of a Ray dataset are written by Ray's tasks, where their blocks are.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import posixpath
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import fs

from .. import checks
from ..arrow_versions import bytes_of
from ..errors import NeardupError, OutputError, ResourceError, raise_want
from ..store.folder import Folder
from ..store.uris import brief, file_system, is_uri, masked
from .contract import Part, runs
from .memory import Memory, bounded
from .ray_data import RayDataset
from .row_groups import ROW_GROUP_BYTES
from .slices import Slice, SlicedFile, source_of
from .stream import Documents

FILES = re.compile(r"(part|part-[0-9]{5,}|split-[0-9]+)-[0-9]{5,}\.arrows(\.new)?")
"""The names of all files that `stored` writes, also of unfinished ones."""


def stored(documents: Documents, place_folder: str, slice_bytes: int) -> list[Slice]:
    """Write documents in memory to Arrow streams in a folder, and give the slices that read them.

    Parameters
    ----------
    documents : Documents
        In memory; `other_columns` name the columns that slices will read.
    place_folder : str
        A folder or a URI that tasks can read, too; made if it does not exist.
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
    place = checks.path("place_folder", place_folder)
    memories = []
    for reader in documents._readers:
        if not isinstance(reader, Memory) or not reader.rewindable:
            reader.parts(slice_bytes)  # says why it cannot be divided
            raise TypeError("documents in files are divided by slices_of")
        memories.append(reader)
    target = _Target(place if is_uri(place) else os.path.abspath(place))
    source = source_of(documents)
    slices: list[Slice] = []
    first_row = 0  # of the input
    for place_of_split, memory in enumerate(memories):
        if isinstance(memory.source, RayDataset):
            written = _written_by_ray(memory.source, target, slice_bytes)
            groups = runs([file.size for file in written], slice_bytes)
        else:
            written = target.write(f"split-{place_of_split}" if memory.split else "part", memory, slice_bytes)
            groups = ((number, number + 1) for number in range(len(written)))
        row = 0  # of the split
        for start, stop in groups:
            files, parts, names, rows_before = [], [], [], row
            for number in range(start, stop):
                each, name = written[number], f"{memory.split or 'part'}-{number:05}.parquet"
                state = each.size, None, None
                below = memory.split
                files.append(SlicedFile(target.path(each.name), memory.name, below, target.uri, state, each.digest))
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


class _Target:
    """A folder to write Arrow streams to, a path or a URI."""

    def __init__(self, place: str) -> None:
        self._place = place
        self.uri = place if is_uri(place) else ""
        self.system, self._folder = file_system(place) if self.uri else (fs.LocalFileSystem(), place)

    def __reduce__(self) -> tuple[type[_Target], tuple[str]]:
        return _Target, (self._place,)

    def path(self, name: str) -> str:
        return posixpath.join(self._folder, f"{name}.arrows")

    def write(self, prefix: str, memory: Memory, slice_bytes: int) -> list[_StoredFile]:
        """Write all rows, about `slice_bytes` to a file; at least one file."""
        shown, written = masked(self._place), list[_StoredFile]()
        with _writing(shown):
            self.system.create_dir(self._folder, recursive=True)
        for run in _runs(memory, slice_bytes):
            name = f"{prefix}-{len(written):05}"
            with _writing(f"{shown}/{name}.arrows"):
                written.append(_StoredFile(name, *_write(self.system, self.path(name), memory.schema, run)))
        return written

    def check(self, written: list[_StoredFile]) -> None:
        """Raise ResourceError unless the files that other processes wrote are here."""
        with _writing(masked(self._place)):
            found = self.system.get_file_info([self.path(file.name) for file in written])
        for file, info in zip(written, found, strict=True):
            if info.size != file.size:
                raise ResourceError(
                    f"{masked(self._place)}: {file.name}.arrows, which a node of Ray wrote, is not seen by this "
                    "machine; name a folder that all nodes share, or a URI such as s3://bucket/work"
                )


def _written_by_ray(dataset: RayDataset, target: _Target, slice_bytes: int) -> list[_StoredFile]:
    """The files with the rows of a dataset, in order, which are written where its blocks are."""
    found = dataset.apply(partial(_write_rows, target, slice_bytes))
    written = [file for files in found for file in files if file.num_rows]
    target.check(written)
    return written or target.write("part", Memory(dataset.schema.empty_table()), slice_bytes)


def _write_rows(target: _Target, slice_bytes: int, number: int, rows: pa.RecordBatchReader) -> list[_StoredFile]:
    return target.write(f"part-{number:05}", Memory(rows), slice_bytes)


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


def _write(
    system: fs.FileSystem, path: str, schema: pa.Schema, batches: Iterator[pa.RecordBatch]
) -> tuple[int, int, str]:
    """Write an Arrow stream, which takes its name when it is whole; gives its rows, its bytes and their digest."""
    num_rows = 0
    with _created(system, f"{path}.new") as stream:
        digested = _Digested(stream)
        with pa.ipc.new_stream(pa.PythonFile(digested, "w"), schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
                num_rows += batch.num_rows
    system.move(f"{path}.new", path)
    return num_rows, digested.size, digested.hash.hexdigest()


def _created(system: fs.FileSystem, path: str) -> Any:
    """Open a new file for writing; on this machine no link is followed, and what has the name is not written to."""
    if not isinstance(system, fs.LocalFileSystem):
        return system.open_output_stream(path, compression=None)
    folder = Folder.holding(Path(path))
    folder.make()
    with contextlib.suppress(FileNotFoundError):
        folder.remove(posixpath.basename(path))
    return os.fdopen(folder.create(posixpath.basename(path)), "wb")


class _Digested:
    """A stream that hashes and counts what is written to it."""

    closed = False

    def __init__(self, stream: pa.NativeFile) -> None:
        self._stream, self.hash, self.size = stream, hashlib.blake2b(digest_size=16), 0

    def write(self, data: bytes) -> int:
        self.hash.update(data)
        self._stream.write(data)
        self.size += len(data)
        return len(data)

    def flush(self) -> None:
        self._stream.flush()

    def close(self) -> None:
        """Nothing: who opened the stream closes it."""


@contextlib.contextmanager
def _writing(name: str) -> Iterator[None]:
    """Turn errors of the file system in the block into one line that names the file."""
    try:
        yield
    except NeardupError:
        raise
    except (OSError, pa.ArrowException) as error:
        raise_want(error)
        raise OutputError(f"{name}: cannot be written ({brief(error)}); choose another work folder.") from error
