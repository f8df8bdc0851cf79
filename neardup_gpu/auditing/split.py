"""The kept and the removed documents as files of their own, which the joins read.

Texts are written as they are compared: decoded, and HTML as its visible text. Ids are the rows of the corpus.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..data import Ragged
from ..documents import Documents
from ..documents.reading_options import Reading
from ..errors import InputError, NeardupError, raise_want
from ..store.spool import unwritable

OURS = "audit"
"""The file that marks a folder as the work folder of an audit, which removes its contents at the end."""

ROW, TEXT = "row", "text"
"""The columns of the files."""

READING = Reading(id_column=ROW, text_columns=TEXT)
"""How the files are read."""

SCHEMA = pa.schema([(ROW, pa.int64()), (TEXT, pa.large_binary())])


def write_parts(documents: Documents, num_rows: int, parts: Mapping[Path, np.ndarray]) -> None:
    """Write some rows of the corpus into each file; `parts` has a mask of rows per file.

    Raises
    ------
    InputError
        If the corpus has another number of documents than before.
    """
    with ExitStack() as stack:
        files = {path: stack.enter_context(pq.ParquetWriter(path, SCHEMA, compression="lz4")) for path in parts}
        rows = 0
        for batch in documents.batches():
            here = np.arange(batch.first_row, batch.first_row + batch.num_rows)
            rows += batch.num_rows
            if rows > num_rows:
                break
            text = _column_of(batch.text)
            for path, wanted in parts.items():
                places = pa.array(np.flatnonzero(wanted[here]))
                if len(places):
                    columns = [pa.array(here).take(places), text.take(places)]
                    files[path].write_batch(pa.record_batch(columns, schema=SCHEMA))
        if rows != num_rows:
            raise InputError("the corpus changed while it was read; run the audit again")


def write_subset(path: Path, source: Path, rows: np.ndarray) -> None:
    """Write the given rows of the corpus, ascending, that another file has, into a file."""
    state = hashlib.blake2b(rows.tobytes(), digest_size=16).hexdigest()
    write_once(path.with_suffix(".state"), state, partial(_write_subset, path, source, rows))


def write_once(note: Path, state: str, write: Callable[[], None]) -> None:
    """Write files, unless an interrupted audit with the same work folder has written them from the same state.

    Tasks that continue expect their input as it was, the time of its change included.

    Raises
    ------
    OutputError
        If the files cannot be written.
    """
    if note.exists() and note.read_text() == state:
        return
    try:
        note.unlink(missing_ok=True)
        write()
        note.write_text(state)
    except OSError as error:
        if isinstance(error, NeardupError):
            raise
        raise_want(error)
        why = error.strerror if error.errno is None else os.strerror(error.errno)
        raise unwritable(note.parent, why, "work_dir" if (note.parent / OURS).exists() else "temp_dir") from None


def _write_subset(path: Path, source: Path, rows: np.ndarray) -> None:
    with pq.ParquetFile(source) as file, pq.ParquetWriter(path, SCHEMA, compression="lz4") as written:
        for batch in file.iter_batches(batch_size=4096):
            chosen = np.isin(batch.column(0).to_numpy(), rows)
            if chosen.any():
                written.write_batch(batch.filter(pa.array(chosen)))


def _column_of(text: Ragged) -> pa.Array:
    """Return texts as a column, without a copy."""
    buffers = [None, pa.py_buffer(text.offsets), pa.py_buffer(text.values)]
    return pa.Array.from_buffers(pa.large_binary(), len(text), buffers)
