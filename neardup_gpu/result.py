"""What a run decided, as users see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from . import checks
from .documents import Documents
from .errors import InputError
from .recipe import Recipe

if TYPE_CHECKING:
    from .explanation import Explanation
    from .methods.frequencies import Frequencies


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """What a run decided.

    documents : pyarrow.Table
        id, kept, duplicate_of, resemblance, group; in input order. `duplicate_of` and `resemblance` are null for kept
        documents; `group` is the id of the document that was kept. Of files also file, the path below the folder that
        all of them share, and row in it, from 1 (of JSON lines the line).
    pairs : pyarrow.Table
        id_a, id_b, resemblance: the verified pairs between representatives, and one pair with resemblance 1 from each
        exact duplicate to its representative. id_a has the better priority.
    report : dict
        Recipe, counts, timings, recall, what limits left out: what report.json holds.
    recipe : Recipe
    frequencies : Frequencies, optional
        What tokens were weighed by.
    skipped : pyarrow.Table, optional
        file, row, rows, reason: what could not be read, with `on_error="skip"`; see `Documents.skipped`.
    sources : tuple of (Documents, Documents or None), optional
        The documents and the reference set, which `explain` reads again.

    Where a reference set was given, `in_reference` and `a_in_reference` say which ids are of that set. By simhash, both
    tables have a column `distance` (uint8), the bits in which simhashes differ. Where nothing was verified, documents
    of one simhash have one representative, and resemblance is null but for exact duplicates.
    """

    documents: pa.Table
    pairs: pa.Table
    report: dict[str, Any]
    recipe: Recipe
    frequencies: Frequencies | None = None
    skipped: pa.Table | None = None
    sources: tuple[Documents, Documents | None] | None = None

    def explain(self, id: Any, *, full: bool = False) -> Explanation:
        """Say why a document stays or goes: the kept one, their resemblance, and the words in which they differ.

        Parameters
        ----------
        id : int or str
            Read as the ids' own type.
        full : bool
            Leave no words out of the diff.

        Returns
        -------
        Explanation
            It reads the documents again, up to the two that are compared.

        Raises
        ------
        InputError
            If there is no such document, or the documents were a stream, which cannot be read again, or have changed.
        ArgumentTypeError
            If `id` is of another type, or `full` neither True nor False.
        """
        full = checks.flag("full", full)
        id = checks.instance("id", id.item() if isinstance(id, np.generic) else id, (int, str, bytes))
        from .explanation import explained

        if self.sources is None or not all(source.rewindable for source in self.sources if source is not None):
            raise InputError(
                "the documents were a stream, which cannot be read again to explain; pass a table to dedup"
            )
        documents, reference = self.sources
        return explained(
            self.documents,
            self.recipe,
            id,
            lambda: documents,
            lambda: reference or documents,
            name="this result",
            full=full,
        )

    @property
    def kept(self) -> pa.Table:
        """Rows of `documents` that stay, in input order."""
        return self.documents.filter(self.documents["kept"])

    @property
    def removed(self) -> pa.Table:
        """Rows of `documents` that go, in input order."""
        return self.documents.filter(pc.invert(self.documents["kept"]))

    def __repr__(self) -> str:
        counts = self.report["counts"]
        return f"Result({counts['documents']:,} documents: {counts['kept']:,} kept, {counts['removed']:,} removed)"

    def _repr_html_(self) -> str:
        from .report import html

        return html(self.report)
