"""Group documents by the values of a column, and count in each group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ..data import numpy_of, one_array
from ..records import dataclass

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
        return cls(column, coded.dictionary.to_pylist(), numpy_of(coded.indices).astype(np.int64))

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
