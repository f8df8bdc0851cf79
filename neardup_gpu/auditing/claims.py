"""Which documents a tool says that it kept or removed, in which clusters, and for which reasons."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..data import bools
from ..errors import InputError
from ..printable import readable_id
from ..store.artefacts import KEPT_IDS
from .columns import WrittenColumns
from .settings import AuditSettings
from .tools import LAYOUTS, OURS, ToolLayout

PAIRS_OF_COLUMNS = (("id", "duplicate_of"), ("id_a", "id_b"), ("id1", "id2"), ("removed", "kept"))
"""Usual names of the two columns of stated reasons."""


class ClaimReader:
    """Reads what a tool wrote.

    Parameters
    ----------
    settings : AuditSettings
    id_column : str or None
        The column of ids of the corpus.
    """

    def __init__(self, settings: AuditSettings, id_column: str | None) -> None:
        self._settings = settings
        self._layout = LAYOUTS.get(settings.tool or "", ToolLayout())
        own = settings.kept_id_column
        names = [own] if own is not None else [*([id_column] if id_column else []), *self._layout.ids]
        self.id_names = tuple(dict.fromkeys(names))

    def ids(self, source: Any, what: str) -> pa.ChunkedArray:
        """Return the ids of the documents that the files of `what`, "kept" or "removed", name."""
        written = WrittenColumns(ids_file(source), what)
        if written.is_lines:
            return pa.chunked_array([written.lines()])
        name = written.need(self.id_names, "ids (name it with kept_id_column=...)")
        if self._layout.spans is not None and written.first_of([self._layout.spans]):
            return pa.chunked_array([written.spanned(name, self._layout.spans, what == "removed")])
        marks = self._marks(written)
        found = written.columns([name, *marks])
        if not marks:
            return found[0]
        kept = np.ones(len(found[0]), bool)
        for mark, column in zip(marks, found[1:], strict=True):
            kept &= _kept_by(mark, column)
        return found[0].filter(pa.array(kept if what == "kept" else ~kept))

    def _marks(self, written: WrittenColumns) -> list[str]:
        """Return the columns that say of each row whether it was kept; none if all rows of the files count."""
        place = self._layout.place
        if place is None:
            kinds = written.types_of("kept") if self._settings.tool in (None, "neardup") else []
            for kind in kinds:
                if not pa.types.is_boolean(kind):
                    raise InputError(
                        f"{written.name}: column 'kept' holds {kind}, not true or false; convert it, or give ids alone"
                    )
            return ["kept"] if kinds else []
        return [place] if written.first_of([place]) else []

    def clusters(self, source: Any) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
        """Return the ids of the documents that a file of clusters names, and the names of their clusters."""
        own = self._settings.cluster_column
        written = WrittenColumns(source, "clusters")
        ids = written.need(self.id_names, "ids (name it with kept_id_column=...)")
        label = written.need([own] if own is not None else [*self._layout.clusters, *OURS], "clusters")
        found, labels = written.columns([ids, label])
        there = pc.is_valid(labels)
        if self._layout.alone is not None:
            there = pc.and_(there, pc.not_equal(labels, self._layout.alone))
        return found.filter(there), labels.filter(there)

    def reasons(self, source: Any) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
        """Return the pairs of ids that a file of reasons states: documents, and the documents that represent them.

        Rows in which one of them is null state nothing.
        """
        written = WrittenColumns(source, "pairs")
        both = next((names for names in PAIRS_OF_COLUMNS if all(written.first_of([name]) for name in names)), None)
        if both is None:
            known = " or ".join(f"{a} and {b}" for a, b in PAIRS_OF_COLUMNS)
            raise InputError(f"{written.name}: no two columns of ids that state a reason; call them {known}")
        ids, others = written.columns(list(both))
        there = pc.and_(pc.is_valid(ids), pc.is_valid(others))
        return ids.filter(there), others.filter(there)


def ids_file(source: Any) -> Any:
    """Return the documents of a `Result`, the ids that a result without rows names, or the source itself."""
    documents = getattr(source, "documents", None)
    if isinstance(documents, pa.Table):
        return documents
    if isinstance(source, (str, Path)):
        for name in (f"{KEPT_IDS}.parquet", KEPT_IDS):
            if Path(source, name).exists():
                return str(Path(source, name))
    return source


def _kept_by(name: str, column: pa.ChunkedArray) -> np.ndarray:
    """Return which rows a column marks as kept: true, 0 or null."""
    if pa.types.is_boolean(column.type):
        return bools(pc.fill_null(column, True).combine_chunks())
    if pa.types.is_integer(column.type):
        return bools(pc.equal(pc.fill_null(column, 0), 0).combine_chunks())
    raise InputError(f"column {name!r}: {column.type}, which does not say which documents are kept")


def check_type(ids: pa.ChunkedArray, corpus: pa.DataType, what: str) -> pa.ChunkedArray:
    """Return ids in the type of the corpus's ids.

    Raises
    ------
    InputError
        If they are of another type, or cannot be ids of the corpus.
    """
    kind = ids.type
    integers = pa.types.is_integer(kind) and pa.types.is_integer(corpus)
    texts = not pa.types.is_integer(kind) and not pa.types.is_integer(corpus)
    if len(ids) and not (integers or texts or pa.types.is_null(kind)):
        raise InputError(
            f"{what}: its ids are {_in_words(kind)}, and those of the corpus are {_in_words(corpus)}; name the columns "
            "of the same ids with id_column=... and kept_id_column=..."
        )
    try:
        return ids.cast(corpus)
    except pa.ArrowException as error:
        raise InputError(f"{what}: its ids cannot be ids of the corpus ({error})") from None


def _in_words(kind: pa.DataType) -> str:
    return "integers" if pa.types.is_integer(kind) else "strings"


def first_few(values: pa.ChunkedArray | pa.Array, number: int = 3) -> str:
    """Return the first values as words, and how many more there are."""
    some = values[:number].to_pylist()
    more = f" and {len(values) - number:,} more" if len(values) > number else ""
    return f"{', '.join(map(readable_id, some))}{more}"
