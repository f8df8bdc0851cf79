"""Return kept rows as a `Dataset` of Hugging Face's library."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ..arrow_versions import bytes_of
from ..errors import InputError
from .ahead import in_order
from .hugging_face import is_dataset
from .rewritten import new_names, write_rewritten
from .writing_options import Writing

if TYPE_CHECKING:
    from .kept import Rows
    from .stream import Documents


def kept_dataset(documents: Documents, keep: np.ndarray) -> Any:
    """The documents at which `keep` is true, with all their columns: see `Result.kept_dataset`."""
    try:
        import datasets
    except ImportError:
        raise InputError("kept_dataset: needs Hugging Face's library datasets; pip install 'neardup-gpu[hf]'") from None
    if not documents.rewindable:
        raise InputError(
            "the documents were a stream, which cannot be read again to give the kept rows; pass a Dataset to dedup, "
            "or filter the stream by Result.documents['kept']"
        )
    _, parts = documents._rows_to_keep(keep)
    names = documents.splits or [""]
    if documents.format == "memory":
        found = {
            name: _selected(reader, rows, datasets)
            for name, reader, rows in zip(names, documents._readers, parts, strict=True)
        }
        return datasets.DatasetDict(found) if documents.splits else found[""]
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder, "kept")
        if documents.format == "parquet":
            names = documents._kept_names
            documents.write_kept(kept, keep)
        else:  # the library would take other texts and numbers from CSV and JSON than were read here
            names = new_names(documents._kept_names, "parquet")
            write_rewritten(documents, kept, keep, Writing(output_format="parquet"))
        files = [str(kept / name) for name in names]
        with _quiet(datasets):
            return datasets.load_dataset(
                "parquet", data_files=files, split="train", cache_dir=f"{folder}/cache", keep_in_memory=True
            )


def _selected(reader: Any, rows: Rows, datasets: Any) -> Any:
    if is_dataset(reader.source):
        return reader.source.select(np.flatnonzero(rows.keep))
    return _of_batches(reader, rows, datasets)


def _of_batches(reader: Any, rows: Rows, datasets: Any) -> Any:
    """A Dataset in memory of the rows of a reader."""
    batches = in_order(reader.kept_steps(rows, reader.schema), bytes_of)
    return datasets.Dataset(pa.Table.from_batches(batches, reader.schema))


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
