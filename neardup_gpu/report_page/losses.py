"""Which files, or other sources of documents, lost how much."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..data import bools, numpy_of
from ..records import dataclass

LISTED = 200
"""Sources that a page lists: those that lost most documents."""

WARNED = 0.5
"""A source that loses a larger share of its documents is warned of,"""

LARGE = 20
"""if it has at least so many."""

TEXT_FILES = 20
"""More files than these, of fewer than two documents on average, are told by their folders."""


@dataclass(frozen=True, eq=False)
class Losses:
    """What each source lost.

    Parameters
    ----------
    kind : "file", "folder", or the name of a column
        What a source is.
    names : list of str
        Of all sources.
    codes : array of int, shape (documents,)
        The source of each document.
    documents, removed : arrays of int64, shape (sources,)
    """

    kind: str
    names: list[str]
    codes: np.ndarray
    documents: np.ndarray
    removed: np.ndarray

    def rows(self) -> list[dict[str, Any]]:
        """The sources that lost most, the most first."""
        order = np.lexsort((-self.documents, -self.removed))[:LISTED]
        return [self._row(source) for source in order.tolist()]

    def warnings(self) -> list[dict[str, Any]]:
        """The sources that lost more than half of what they had, the largest share first."""
        share = self.removed / self.documents
        found = np.flatnonzero((share > WARNED) & (self.documents >= LARGE))
        return [self._row(source) for source in found[np.lexsort((-self.removed[found], -share[found]))].tolist()]

    def _row(self, source: int) -> dict[str, Any]:
        documents, removed = int(self.documents[source]), int(self.removed[source])
        return {"name": self.names[source], "documents": documents, "removed": removed}


def losses(documents: pa.Table, values: Any = None, column: str | None = None) -> Losses | None:
    """What each source lost; None where documents have none.

    Parameters
    ----------
    documents : pyarrow.Table
        As `Result` has it.
    values : pyarrow.ChunkedArray, optional
        The source of each document; its file unless given.
    column : str, optional
        What the input calls these values.
    """
    if values is None:
        if "file" not in documents.column_names:
            return None
        values = documents["file"]
    if isinstance(values, pa.Array):
        values = pa.chunked_array([values])
    coded = pc.fill_null(values.cast(pa.large_string()), "(none)").combine_chunks().dictionary_encode()
    names, codes = coded.dictionary.to_pylist(), numpy_of(coded.indices)
    kind = column or "file"
    if column is None and len(names) > TEXT_FILES and 2 * len(names) > len(documents):
        folders: dict[str, int] = {}
        of_file = [folders.setdefault(name.rpartition("/")[0] or ".", len(folders)) for name in names]
        kind, names, codes = "folder", list(folders), np.array(of_file)[codes]
    removed = ~bools(documents["kept"].combine_chunks())
    counts = np.bincount(codes, minlength=len(names)), np.bincount(codes[removed], minlength=len(names))
    return Losses(kind, names, codes, *counts)
