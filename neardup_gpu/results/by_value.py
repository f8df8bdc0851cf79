"""Group documents by the values of a column; count a result by them: what each lost, and the pairs between two."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..data import bools, numpy_of, one_array
from ..documents.units import NEAR, REASONS
from ..errors import InputError
from ..recipe import Recipe
from ..records import dataclass
from ..report import count
from ..stages import count_tokens

WARNED = 0.5
"""A group that loses a larger share of its documents is reported,"""

LARGE = 20
"""if it has at least this many documents."""

TEXT_FILES = 20
"""More files than this number, with fewer than two documents on average, are grouped by their folders."""


@dataclass(frozen=True, eq=False)
class Grouping:
    """The groups of documents by a column.

    Parameters
    ----------
    column : str
        The column, or "file" or "folder".
    names : list of (str or None)
        The value of each group, in the order of their first documents; None for null.
    codes : array of int64, shape (documents,)
        The group of each document.
    """

    column: str
    names: list[str | None]
    codes: np.ndarray

    @classmethod
    def of(cls, column: str, values: pa.Array | pa.ChunkedArray) -> Grouping:
        """Group documents by their values, one per document.

        >>> Grouping.of("source", pa.array(["web", None, "web"])).names
        ['web', None]
        """
        chunks = values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])
        if not pa.types.is_dictionary(chunks.type):
            whole = one_array(chunks.cast(pa.large_string()))  # Arrow unifies no dictionaries that have nulls
            chunks = pa.chunked_array([whole.dictionary_encode(null_encoding="encode")])
        coded = chunks.unify_dictionaries().combine_chunks()
        coded = coded.chunk(0) if isinstance(coded, pa.ChunkedArray) else coded
        used = coded.indices.dictionary_encode()  # a dictionary may name files that have no documents
        names = coded.dictionary.take(used.dictionary).to_pylist()
        return cls(column, names, numpy_of(used.indices).astype(np.int64))

    @classmethod
    def of_files(cls, files: pa.Array | pa.ChunkedArray) -> Grouping:
        """Group documents by their files, or by the folders of the files if nearly each file is one document."""
        found = cls.of("file", files)
        if not _are_texts(len(found.names), len(found.codes)):
            return found
        folders: dict[str, int] = {}
        of_file = [folders.setdefault(folder_of(name), len(folders)) for name in found.names]
        return cls("folder", list(folders), np.array(of_file, np.int64)[found.codes])

    def count(self, where: np.ndarray | None = None) -> np.ndarray:
        """Count the documents of each group, all of them or only the given rows. A mask of rows will do as well."""
        return np.bincount(self.codes if where is None else self.codes[where], minlength=len(self.names))

    def total(self, numbers: np.ndarray) -> np.ndarray:
        """Add up numbers of documents, one per document, in each group: int64, shape (groups,)."""
        return np.bincount(self.codes, numbers, len(self.names)).astype(np.int64)

    def rows(self, **columns: Any) -> list[dict[str, Any]]:
        """Return one dict per group, the largest group first: its value, its documents, and each given count."""
        documents = self.count()
        return [
            {
                "value": self.names[group],
                "documents": int(documents[group]),
                **{name: int(numbers[group]) for name, numbers in columns.items()},
            }
            for group in np.argsort(-documents, kind="stable").tolist()
        ]

    def pairs(self, left: np.ndarray, right: np.ndarray) -> list[dict[str, Any]]:
        """Count pairs of rows by the groups of both, most pairs first. The group that comes first is `value_a`."""
        codes = np.sort(np.column_stack([self.codes[left], self.codes[right]]), axis=1)
        both, numbers = np.unique(codes, axis=0, return_counts=True)
        order = np.argsort(-numbers, kind="stable")
        return [
            {"value_a": self.names[a], "value_b": self.names[b], "pairs": number}
            for (a, b), number in zip(both[order].tolist(), numbers[order].tolist(), strict=True)
        ]


def folder_of(file: str | None) -> str:
    """Return the folder of a file."""
    return (file or "").rpartition("/")[0] or "."


def _are_texts(num_files: int, num_documents: int) -> bool:
    return num_files > TEXT_FILES and 2 * num_files > num_documents


def merged_files(parts: Iterable[Mapping[str, Sequence[int]]]) -> tuple[str, list[dict[str, Any]]]:
    """Add up counts of several parts of the documents; return "file" or "folder", and a dict per file or folder.

    Parameters
    ----------
    parts : iterable of mapping
        By file, its documents and its removed documents.
    """
    kind, documents, removed = "file", Counter[str](), Counter[str]()
    for part in parts:
        documents.update({file: numbers[0] for file, numbers in part.items()})
        removed.update({file: numbers[1] for file, numbers in part.items()})
    if _are_texts(len(documents), documents.total()):
        kind, documents, removed = "folder", _by_folder(documents), _by_folder(removed)
    return kind, [{"value": name, "documents": documents[name], "removed": removed[name]} for name in documents]


def _by_folder(numbers: Counter[str]) -> Counter[str]:
    found = Counter[str]()
    for file, number in numbers.items():
        found[folder_of(file)] += number
    return found


def most_lost(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the large groups that lost more than half of their documents, the largest share first."""
    found = [row for row in rows if row["documents"] >= LARGE and row["removed"] > WARNED * row["documents"]]
    found.sort(key=lambda row: (-row["removed"] / row["documents"], -row["removed"]))
    return [{name: row[name] for name in ("value", "documents", "removed")} for row in found]


FILE = "file"
"""The column that stands for the file of each document."""

LISTED = 1000
"""Values, and pairs of values, that a report lists: the largest ones."""

LOST = 20
"""Values that lost most of their documents and that a report names."""


class ByValue(NamedTuple):
    """The counts of a result by the values of a column.

    Parameters
    ----------
    values : pyarrow.Table
        One row per value, the one with most documents first: value (null for documents without a value), documents,
        kept, removed, and words, the tokens of all its documents.
    pairs : pyarrow.Table
        One row per two values, or one value twice, with listed pairs between them, most pairs first: value_a, value_b,
        pairs. Pairs with the reference set are left out. If units such as lines are compared, a unit that was cut as an
        exact copy counts as a pair with its source.

    Examples
    --------
    >>> from neardup_gpu import dedup
    >>> result = dedup({"text": ["to be or not"] * 3, "site": ["a", "b", "b"]}, text_columns="text")
    >>> result.by("site").pairs.to_pylist()
    [{'value_a': 'a', 'value_b': 'b', 'pairs': 2}]
    """

    values: pa.Table
    pairs: pa.Table

    @classmethod
    def of(
        cls,
        groups: Grouping,
        num_tokens: np.ndarray,
        documents: pa.Table,
        pairs: pa.Table,
        units: pa.Table | None = None,
    ) -> ByValue:
        """Count the documents and the pairs of a result.

        `num_tokens` has the words of each document. `units` is the table of units, None if documents are compared.
        """
        kept = _kept(documents)
        words = np.zeros(len(groups.names), np.int64)
        np.add.at(words, groups.codes, num_tokens)
        values = groups.rows(kept=groups.count(kept), removed=groups.count(~kept), words=words)
        if "a_in_reference" in pairs.column_names:
            pairs = pairs.filter(pc.invert(pairs["a_in_reference"]))
        ids = [(pairs["id_a"], pairs["id_b"]), *([] if units is None else [_copies(units)])]
        rows = [
            np.concatenate([numpy_of(pc.index_in(each[side], documents["id"]).combine_chunks()) for each in ids])
            for side in (0, 1)
        ]
        schema = pa.schema([("value_a", pa.large_string()), ("value_b", pa.large_string()), ("pairs", pa.int64())])
        between = groups.pairs(*rows) if len(rows[0]) else []
        return cls(pa.Table.from_pylist(values, _VALUES), pa.Table.from_pylist(between, schema))

    def to_report(self, column: str) -> dict[str, Any]:
        """Return the counts as report.json holds them: those of the largest `LISTED` values and pairs of values.

        If values of a column lost most of their documents, they take the place of files in `lost_most`.
        """
        by = {
            "column": column,
            "num_values": len(self.values),
            "values": self.values.slice(0, LISTED).to_pylist(),
            "num_pairs": len(self.pairs),
            "pairs": self.pairs.slice(0, LISTED).to_pylist(),
        }
        return {"by": by, **({} if column == FILE else lost_most(column, self.values.to_pylist()))}


def _copies(units: pa.Table) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """Return the ids of the sources of units that were cut as exact copies, and the ids of the units' documents."""
    exact = pc.is_in(units["reason"], value_set=pa.array(REASONS[:NEAR]))
    if "in_reference" in units.column_names:
        exact = pc.and_(exact, pc.invert(units["in_reference"]))
    copies = units.filter(exact)
    return copies["source_id"], copies["id"]


_VALUES = pa.schema(
    [("value", pa.large_string()), *((name, pa.int64()) for name in ("documents", "kept", "removed", "words"))]
)


def check_by(column: str, documents: Any) -> None:
    """Raise InputError unless documents can be counted by a column, which is read after the decisions."""
    if column == FILE:
        if not documents.num_files and not documents.splits:
            raise InputError("by 'file': documents in memory have no files; name a column")
        return
    if not documents.rewindable:
        raise InputError("by: a stream cannot be read again for the values of a column; pass a table, or leave by out")
    documents._check_plain(column, "by")


def read_groups(
    column: str, table: pa.Table, documents: Any, recipe: Recipe | None, num_tokens: np.ndarray | None = None
) -> tuple[Grouping, np.ndarray]:
    """Return the groups of the documents of a result, and the number of tokens of each document.

    Parameters
    ----------
    column : str
        A column of the input, or "file".
    table : pyarrow.Table
        `documents` of the result.
    documents : Documents
        The input, which is read once more for a column, or if `num_tokens` has to be counted.
    recipe : Recipe or None
        None if tokens are not needed. Then they are 0.
    num_tokens : array of int64, shape (documents,), default None

    Raises
    ------
    InputError
        If there is no such column, or the input has changed.
    """
    check_by(column, documents)
    values, counted, wanted = [], [], [] if column == FILE else [column]
    if wanted or (num_tokens is None and recipe is not None):
        for batch in documents.batches(wanted):
            values += [as_text(value, column) for value in batch.columns.values()]
            if num_tokens is None and recipe is not None:
                counted.append(count_tokens(batch.text, recipe, "cpu", batch.ids)[0].sizes)
        read = sum(map(len, counted or values))
        if read != len(table):
            raise InputError(f"the input has {count(read, 'document')}, not {len(table):,} as it had for this result")
    grouped = pa.chunked_array(values, pa.large_string()) if wanted else table[FILE]
    if num_tokens is None:
        num_tokens = np.concatenate(counted) if counted else np.zeros(len(table), np.int64)
    return Grouping.of(column, grouped), num_tokens


def as_text(values: pa.Array, column: str) -> pa.Array:
    """Return the values of a column as strings."""
    try:
        return values.cast(pa.large_string())
    except pa.ArrowException:
        raise InputError(f"column {column!r} holds {values.type} that is not text; name another one with by") from None


def hits_by_value(
    column: str, values: list[pa.Array], document: np.ndarray, item: np.ndarray, num_items: int
) -> dict[str, Any]:
    """Count the hits of a check for contamination by the values of a column, as certificate.json holds them.

    Parameters
    ----------
    column : str
    values : list of pyarrow.Array
        The values of consecutive documents, as strings.
    document, item : arrays of int64, shape (hits,)
    num_items : int
        Items of all evaluation sets.
    """
    groups = Grouping.of(column, pa.chunked_array(values, pa.large_string()))
    items = np.unique(groups.codes[document] * num_items + item) // num_items
    found = groups.rows(
        documents_hit=groups.count(np.unique(document)),
        items=np.bincount(items, minlength=len(groups.names)),
        hits=groups.count(document),
    )
    return {"column": column, "num_values": len(found), "values": found[:LISTED]}


def lost_most(kind: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the entry of a report that names the values that lost more than half of their documents, if any did."""
    found = most_lost(rows) if len(rows) > 1 else []
    return {"lost_most": {"by": kind, "number": len(found), "values": found[:LOST]}} if found else {}


def lost_of(documents: pa.Table) -> dict[str, Any]:
    """Return `lost_most` of the files or folders of a result, if it has files."""
    if FILE not in documents.column_names:
        return {}
    return lost_most(*merged_files([counts_of_files(documents[FILE], _kept(documents))]))


def counts_of_files(file: pa.Array | pa.ChunkedArray, kept: np.ndarray) -> dict[str, list[int]]:
    """Return, by file, its documents and its removed documents."""
    groups = Grouping.of(FILE, file)
    numbers = zip(groups.names, groups.count().tolist(), groups.count(~kept).tolist(), strict=True)
    return {str(name): [documents, removed] for name, documents, removed in numbers}


def _kept(documents: pa.Table) -> np.ndarray:
    """Return whether each document of a result is kept."""
    return np.concatenate([np.empty(0, bool), *map(bools, documents["kept"].chunks)])
