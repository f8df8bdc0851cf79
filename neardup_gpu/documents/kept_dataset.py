"""Return kept rows as a `Dataset` of Hugging Face's library."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ..arrow_versions import bytes_of
from ..errors import InputError
from ..store.parquet import read_table
from .ahead import in_order
from .contract import Reader
from .edits import EditQueue, Edits, as_stored, kept_rows
from .hugging_face import is_dataset
from .rewritten import new_names, write_rewritten
from .stream import Documents
from .writing_options import Writing


def kept_dataset(documents: Documents, edits: Edits) -> Any:
    """Return the documents after some edits, with all their columns: see `Result.kept_dataset`."""
    try:
        import datasets
    except ImportError:
        raise InputError("kept_dataset: needs Hugging Face's library datasets; pip install 'neardup-gpu[hf]'") from None
    if not documents.rewindable:
        raise InputError(
            "the documents were a stream, which cannot be read again to give the kept rows; pass a Dataset to dedup, "
            "or filter the stream by Result.documents['kept']"
        )
    _, parts = documents._queued(edits)
    names = documents.splits or [""]
    if documents.format == "memory" and edits.cuts is None:
        found = {
            name: _selected(reader, part, datasets)
            for name, reader, part in zip(names, documents._readers, parts, strict=True)
        }
        return datasets.DatasetDict(found) if documents.splits else found[""]
    with tempfile.TemporaryDirectory() as folder:
        files = [str(path) for path in _write(documents, edits, Path(folder))]
        with _quiet(datasets):
            return datasets.load_dataset(
                "parquet", data_files=files, split="train", cache_dir=f"{folder}/cache", keep_in_memory=True
            )


def rows_of(documents: Documents, chosen: np.ndarray) -> pa.Table:
    """Return some documents with all columns of their source; `chosen` has a bool for each document."""
    if not documents.rewindable:
        raise InputError("the documents were a stream, which cannot be read again; pass a table or files to dedup")
    edits = Edits(chosen)
    if documents.format != "memory":
        with tempfile.TemporaryDirectory() as folder:
            return pa.concat_tables(map(read_table, _write(documents, edits, Path(folder))))
    _, parts = documents._queued(edits)
    return pa.concat_tables(map(_table_of, documents._readers, parts))


def _write(documents: Documents, edits: Edits, folder: Path) -> list[Path]:
    """Write the documents after some edits into Parquet files, and return their paths."""
    kept, names = folder / "kept", documents._kept_names
    if documents.format == "parquet" and edits.cuts is None:
        documents.write_kept(kept, edits.keep)
    else:  # other libraries would take other texts and numbers from CSV and JSON than were read here
        names = new_names(names, "parquet")
        write_rewritten(documents, kept, edits, Writing(output_format="parquet"))
    return [kept / name for name in names]


def _selected(reader: Any, part: EditQueue, datasets: Any) -> Any:
    """Return the kept rows of a reader as a Dataset."""
    if is_dataset(reader.source):
        return reader.source.select(np.flatnonzero(part.edits.keep))
    return datasets.Dataset(_table_of(reader, part))


def _table_of(reader: Reader, part: EditQueue) -> pa.Table:
    """Return the kept rows of a reader as a table."""
    return pa.Table.from_batches(in_order(kept_rows(reader, part, as_stored), bytes_of), reader.schema)


@contextlib.contextmanager
def _quiet(datasets: Any) -> Iterator[None]:
    """Without the library's own bars."""
    shown = datasets.is_progress_bar_enabled()
    datasets.disable_progress_bars()
    try:
        yield
    finally:
        if shown:
            datasets.enable_progress_bars()
