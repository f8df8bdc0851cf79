"""Group documents by the values of a column, and count in each group."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .data import numpy_of
from .records import dataclass

NO_VALUE = "(none)"
"""The name of the group of documents whose value is null."""


@dataclass(frozen=True, eq=False)
class Grouping:
    """The groups of documents by a column.

    Parameters
    ----------
    column : str
    names : list of str
        The name of each group, in the order of their first documents.
    codes : array of int64, shape (documents,)
        The group of each document.
    """

    column: str
    names: list[str]
    codes: np.ndarray

    @classmethod
    def of(cls, column: str, values: pa.Array | pa.ChunkedArray) -> Grouping:
        """Group documents by their values, one per document.

        >>> Grouping.of("source", pa.array(["web", None, "web"])).names
        ['web', '(none)']
        """
        text = pc.fill_null(values.cast(pa.large_string()), NO_VALUE)
        chunks = text if isinstance(text, pa.ChunkedArray) else pa.chunked_array([text])
        coded = chunks.combine_chunks().dictionary_encode()
        return cls(column, coded.dictionary.to_pylist(), numpy_of(coded.indices).astype(np.int64))

    def count(self, where: np.ndarray | None = None) -> np.ndarray:
        """Count the documents of each group, all of them or only the given rows. A mask of rows will do as well."""
        return np.bincount(self.codes if where is None else self.codes[where], minlength=len(self.names))

    def rows(self, **columns: Any) -> list[dict[str, Any]]:
        """Return one dict per group, the largest group first: its name, its documents, and each given count."""
        documents = self.count()
        return [
            {
                self.column: self.names[group],
                "documents": int(documents[group]),
                **{name: int(numbers[group]) for name, numbers in columns.items()},
            }
            for group in np.argsort(-documents, kind="stable").tolist()
        ]
