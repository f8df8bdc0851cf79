"""Documents in memory written to files, so that they can be divided into slices as documents in files are."""

from __future__ import annotations

import contextlib
import hashlib
import os
import posixpath
from collections.abc import Iterator

import pyarrow as pa
from pyarrow import fs

from .. import checks
from ..errors import NeardupError, OutputError, ResourceError, want
from .kept import ROW_GROUP_BYTES
from .memory import Memory, bounded
from .parts import Part
from .reading import brief
from .slices import Slice, SlicedFile, source_of
from .stream import Documents
from .uris import file_system, is_uri, masked


def stored(documents: Documents, place_folder: str, slice_bytes: int) -> list[Slice]:
    """Write documents in memory to Arrow streams in a folder, and give the slices that read them.

    Parameters
    ----------
    documents : Documents
        In memory; `other_columns` name the columns that slices will be asked for.
    place_folder : str
        A folder or a URI that tasks can read, too; made if it does not exist.
    slice_bytes : int
        About the bytes of a slice, all columns.

    Returns
    -------
    list of Slice
        At least one. Their texts, ids, types and kept rows are those of the documents; slice 3 writes its kept rows as
        ``part-00003.parquet``. The same documents give equal slices, also if they are written again.

    Raises
    ------
    InputError
        If the documents are a stream, or cannot be read.
    OutputError
        If the files cannot be written.
    ParameterError, ArgumentTypeError
        If an argument is not as described.
    """
    slice_bytes = checks.integer("slice_bytes", slice_bytes, 1)
    place = checks.path("place_folder", place_folder)
    (memory,) = documents._readers
    if not isinstance(memory, Memory) or not memory.rewindable:
        memory.parts(slice_bytes)  # says why it cannot be divided
        raise TypeError("documents in files are divided by slices_of")
    uri = place if is_uri(place) else ""
    system, folder = file_system(uri) if uri else (fs.LocalFileSystem(), os.path.abspath(place))
    source = source_of(documents)
    shown = masked(place)
    slices: list[Slice] = []
    first_row = 0
    with _writing(shown):
        system.create_dir(folder, recursive=True)
    for run in _runs(memory, slice_bytes):
        name = f"part-{len(slices):05}"
        path = posixpath.join(folder, f"{name}.arrows")
        with _writing(f"{shown}/{name}.arrows"):
            num_rows, size, digest = _write(system, path, memory.schema, run)
        part = Part(0, None, num_rows, size, first_row)
        file = SlicedFile(path, memory.name, f"{name}.parquet", uri, (size, None, None), digest)
        slices.append(Slice(len(slices), source, (file,), (part,), (f"{name}.parquet",), first_row))
        first_row += num_rows
    return slices


def _runs(memory: Memory, most_bytes: int) -> Iterator[Iterator[pa.RecordBatch]]:
    """The batches of each slice, which have to be used before the next slice is asked for; at least one slice."""
    batches = (part for batch in memory.whole_batches() for part in bounded(batch, min(most_bytes, ROW_GROUP_BYTES)))
    following = next(batches, None)

    def run() -> Iterator[pa.RecordBatch]:
        nonlocal following
        total = 0
        while following is not None and (total == 0 or total + following.nbytes <= most_bytes):
            total += following.nbytes
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
    with system.open_output_stream(f"{path}.new", compression=None) as stream:
        digested = _Digested(stream)
        with pa.ipc.new_stream(pa.PythonFile(digested, "w"), schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
                num_rows += batch.num_rows
    system.move(f"{path}.new", path)
    return num_rows, digested.size, digested.hash.hexdigest()


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
        if wanting := want(error):
            raise ResourceError(wanting) from error
        raise OutputError(f"{name}: cannot be written ({brief(error)}); choose another work folder.") from error
