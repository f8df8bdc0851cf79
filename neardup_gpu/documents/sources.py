"""The documents of a job and of its reference set, as one value."""

from __future__ import annotations

import contextlib
import os
from typing import Any

import pyarrow as pa

from ..errors import InputError
from ..records import dataclass
from ..report import some
from .columns import is_string
from .references import DocumentsInOrder, NamedSets, ReferenceSets, ids_of, in_first_type, types_for_all
from .rereading import text_of
from .stream import Documents


@dataclass(frozen=True, eq=False)
class Sources(DocumentsInOrder):
    """The documents that a job reads.

    Parameters
    ----------
    documents : Documents
        The input.
    reference : Documents or ReferenceSets, default None
        The reference set, or several, if there are any.
    """

    documents: Documents
    reference: Documents | ReferenceSets | None = None

    @property
    def known_sets(self) -> NamedSets | None:
        """The names of the reference sets and the ends of their rows, as the last reading found them."""
        if self.reference is None:
            return None
        return NamedSets() if isinstance(self.reference, Documents) else self.reference.known_sets()

    @property
    def in_order(self) -> list[Any]:
        """The reference set, if there is one, and then the input: the order of rows in all stages."""
        return [self.documents] if self.reference is None else [self.reference, self.documents]

    @property
    def paths(self) -> list[str]:
        """The paths and URIs from which all documents are read."""
        return [path for each in self.each_set for path in each.describe()["paths"]]

    @property
    def each_set(self) -> list[Documents]:
        """The reference sets, each by itself, and then the input."""
        sets = self.reference.sets.values() if isinstance(self.reference, ReferenceSets) else [self.reference]
        return [each for each in [*sets, self.documents] if each is not None]

    @property
    def skipped(self) -> pa.Table | None:
        """Rows that were skipped, the input's first; None if rows were not to be skipped."""
        tables = [each.skipped for each in reversed(self.in_order)]
        return None if tables[0] is None else pa.concat_tables(tables)

    def remarks(self) -> list[str]:
        """Return a sentence if files of the reference set are read as input as well."""
        if self.reference is None:
            return []
        known = {os.path.realpath(path) for path in self.reference.local_files}
        twice = [path for path in self.documents.local_files if os.path.realpath(path) in known]
        if not twice:
            return []
        return [f"against: is read as input as well, so its documents match themselves: {some(twice)}"]

    def describe(self) -> dict[str, Any]:
        """Return the input and the reference set as a report describes them."""
        return {
            "input": self.documents.describe(),
            "against": None if self.reference is None else self.reference.describe(),
        }

    def check_ids_early(self) -> None:
        """Raise InputError for null and repeated ids, if the ids can be read without the text."""
        self.documents.check_ids_early("input")
        if self.reference is not None:
            self.reference.check_ids_early("reference set")

    def joined_ids(self, known: list[pa.Array], ids: list[pa.Array]) -> pa.Array:
        """Join the ids of all batches, those of the reference set (`known`) before the input's; empty both lists.

        Raises
        ------
        InputError
            If two documents of the input, or of the reference set, have the same id, or the ids have different types.
        """
        of_input = ids_of(self.documents, ids)
        if self.documents.id_column is not None:  # row numbers and paths are unique
            self.documents.check_unique(of_input, "input")
        if self.reference is None:
            return of_input
        if isinstance(self.reference, ReferenceSets):
            of_reference = self.reference.joined_ids(known, "reference set")
        else:
            of_reference = ids_of(self.reference, known)
            self.reference.check_unique(of_reference, "reference set")
        of_input, of_reference = one_type_of_ids(of_input, of_reference)
        return pa.concat_arrays([of_reference, of_input]) if len(of_reference) else of_input

    def text_again(self, id: pa.Scalar, row: int, num_known: int) -> str | None:
        """Return the text of a row of all documents; None if it cannot be read again.

        Parameters
        ----------
        id : pyarrow.Scalar
        row : int
        num_known : int
            Rows of the reference set, which come first.
        """
        first = 0 if row < num_known else num_known
        documents: Any = self.documents if self.reference is None or first else self.reference
        if isinstance(documents, ReferenceSets):
            documents, row = documents.at(row)
        if not documents.rewindable:
            return None
        with contextlib.suppress(InputError):
            return text_of(documents, id, row - first)
        return None


def one_type_of_ids(ids: pa.Array, known: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Give the ids of the input and of the reference set one type; integers become strings if others are strings.

    Raises
    ------
    InputError
        If no type holds both, as for bytes and strings.
    """
    if len(known) == 0 or ids.type == known.type:
        return ids, known if len(known) else pa.nulls(0, ids.type)
    found = types_for_all({ids.type, known.type})
    texts = [kind for kind in (ids.type, known.type) if is_string(kind)]
    found = texts if found and len(texts) == 1 else found
    named = f"the input are {ids.type}, ids of the reference set {known.type}"
    ids, known = in_first_type([ids, known], found, named)
    return ids, known
