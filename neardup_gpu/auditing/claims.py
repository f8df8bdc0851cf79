"""Which documents a tool says that it kept or removed, in which clusters, and for which reasons."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .. import checks
from ..documents.memory import as_tables, is_column
from ..errors import InputError
from ..printable import readable_id
from ..store.artefacts import DOCUMENTS, KEPT_IDS
from .columns import WrittenColumns, one_type
from .settings import AuditSettings
from .tools import LAYOUTS, OURS, ToolLayout

PAIRS_OF_COLUMNS = (("id", "duplicate_of"), ("id_a", "id_b"), ("id1", "id2"), ("removed", "kept"))
"""Usual names of the two columns of stated reasons."""


TwoColumns = tuple[pa.ChunkedArray, pa.ChunkedArray]

KEPT_WORDS = ("true", "1", "yes", "y", "t")
REMOVED_WORDS = ("false", "0", "no", "n", "f")
"""Words and numbers of the column `kept`, in any case."""


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
        if is_column(source):
            source = {self.id_names[0]: source}
        written = WrittenColumns(ids_file(source), what)
        if written.is_lines:  # of kept texts, which hold no ids, if it is a result
            written = WrittenColumns(_with_tables(source, DOCUMENTS), what)
        if written.is_lines:
            return pa.chunked_array([written.lines()])
        name = written.need(self.id_names, "ids (name it with kept_id_column=...)")
        if self._layout.spans is not None and written.first_of([self._layout.spans]):
            return pa.chunked_array([written.spanned(name, self._layout.spans, what == "removed")])
        mark = self._mark(written)
        found = written.columns([name] if mark is None else [name, mark])
        if mark is None:
            return found[0]
        kept = _is_first(found[1]) if mark == self._layout.place else _is_kept(written.name, found[1])
        return found[0].filter(kept if what == "kept" else pc.invert(kept))

    def _mark(self, written: WrittenColumns) -> str | None:
        """Return the column that says of each row whether it was kept; None if all rows of the files count."""
        if self._layout.place is not None:
            return written.first_of([self._layout.place])
        return written.first_of(["kept"]) if self._settings.tool in (None, "neardup") else None

    def clusters(self, source: Any) -> TwoColumns:
        """Return the ids of the documents that a file of clusters names, and the names of their clusters."""
        own = self._settings.cluster_column
        written = WrittenColumns(source, "clusters")
        ids = written.need(self.id_names, "ids (name it with kept_id_column=...)")
        names = [own] if own is not None else list(dict.fromkeys([*self._layout.clusters, *OURS]))
        label = written.need(names, "clusters (name it with cluster_column=...)")
        found, labels = written.columns([ids, label])
        there = pc.is_valid(labels)
        if self._layout.alone is not None:
            there = pc.and_(there, pc.not_equal(labels, self._layout.alone))
        return found.filter(there), labels.filter(there)

    def reasons(self, source: Any) -> TwoColumns:
        """Return the pairs of ids that a file of reasons states: documents, and the documents that represent them.

        Rows in which one of them is null state nothing.
        """
        sources = checks.paths("pairs", source) if as_tables(source) is None else [source]
        found = [_pairs_of(each) for each in sources]
        ids, others = (
            one_type([chunk for each in column for chunk in each.chunks]) for column in zip(*found, strict=True)
        )
        there = pc.and_(pc.is_valid(ids), pc.is_valid(others))
        return ids.filter(there), others.filter(there)


def _pairs_of(source: Any) -> TwoColumns:
    """Return the two columns of ids of a source of reasons."""
    written = WrittenColumns(source, "pairs")
    both = next((names for names in PAIRS_OF_COLUMNS if all(written.first_of([name]) for name in names)), None)
    if both is None:
        known = " or ".join(f"{a} and {b}" for a, b in PAIRS_OF_COLUMNS)
        raise InputError(f"{written.name}: no two columns of ids that state a reason; call them {known}")
    ids, others = written.columns(list(both))
    return ids, others


def ids_file(source: Any) -> Any:
    """Return the documents of a `Result`, the ids that a result without rows names, or the source itself."""
    documents = getattr(source, "documents", None)
    if isinstance(documents, pa.Table):
        return documents
    return _with_tables(source, KEPT_IDS)


def _with_tables(source: Any, table: str) -> Any:
    """Return a source with a table of each result in place of its folder, where that has the table."""
    if isinstance(source, (list, tuple)):
        return [_with_tables(each, table) for each in source]
    if not isinstance(source, (str, Path)):
        return source
    return next((str(path) for name in (f"{table}.parquet", table) if (path := Path(source, name)).exists()), source)


def _is_first(places: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return which documents are the first of their components, or in none."""
    try:
        return pc.equal(pc.fill_null(places.cast(pa.int64()), 0), 0)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InputError(f"the column of places in components has no integers ({error})") from None


def _is_kept(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return which rows the column `kept` of some files marks as kept, in truth values, words or numbers."""
    try:
        words = pc.utf8_lower(pc.utf8_trim_whitespace(column.cast(pa.large_string())))
    except pa.ArrowNotImplementedError:
        raise InputError(f"{name}: column 'kept' holds {column.type}; write true or false") from None
    kept = pc.is_in(words, pa.array(KEPT_WORDS, words.type))
    known = pc.or_(kept, pc.is_in(words, pa.array(REMOVED_WORDS, words.type)))
    row = pc.index(known, False).as_py()
    if row >= 0:
        value = "null" if (found := column[row].as_py()) is None else checks.shown(found)
        raise InputError(
            f"{name}: column 'kept' holds {value} in row {row + 1:,}; write true or false, or leave the column out"
        )
    return kept


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
