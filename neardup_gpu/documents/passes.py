"""What came of one pass over the documents: how many each reader gave, which rows it skipped, and where each one is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .contract import Reader
from .skipped import Skipped


@dataclass
class Pass:
    """One pass over the rows of one reader."""

    reader: Reader
    skipped: Skipped
    num_documents: int = 0

    def read_rows(self) -> np.ndarray:
        """Which of the reader's rows were read, and not skipped: bool, shape (rows,)."""
        return self.skipped.read(self.num_documents)

    def places(self, documents: np.ndarray) -> np.ndarray:
        """Where some of its documents, by their numbers from 0, are in their file: rows or lines, from 1."""
        rows = documents
        if self.skipped.ranges:
            rows = np.flatnonzero(self.read_rows())[documents]
        return self.reader.places(rows)


def place(passes: list[Pass], document: int) -> str:
    """File and row of a document, in words."""
    for each in passes:
        if document < each.num_documents:
            (row,) = each.places(np.array([document]))
            return f"{each.reader.name} {each.reader.row_word} {row}"
        document -= each.num_documents
    return f"document {document + 1}"


def over_all_rows(passes: list[Pass], keep: np.ndarray) -> np.ndarray:
    """A keep mask of documents as one of all rows, in which skipped rows are not kept."""
    if not any(each.skipped.ranges for each in passes):
        return keep
    parts, start = [], 0
    for each in passes:
        part = each.read_rows()
        part[part] = keep[start : start + each.num_documents]
        parts.append(part)
        start += each.num_documents
    return np.concatenate(parts)
