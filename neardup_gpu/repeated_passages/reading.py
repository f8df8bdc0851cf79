"""The documents of a search for repeated passages, read and written in this process."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from ..documents.edits import Edits
from ..documents.rewritten import write_kept
from ..documents.sources import Sources
from ..documents.writing_options import Writing
from ..engine.clock import Clock
from ..engine.contract import Runtime
from ..recipe import Recipe
from ..store.artefacts import KEPT
from .corpus import CorpusColumns, TokenCorpus, read_corpus
from .places import PlacedTokens, TokenPieces, place_again


class CorpusReading(Protocol):
    """The reading of documents, here or by tasks. Inputs are numbered, a reference set first."""

    @property
    def skipped(self) -> pa.Table | None:
        """The rows that could not be read, after `corpora`; None unless they are skipped."""

    @property
    def about(self) -> dict[str, Any]:
        """Further entries of the report."""

    def corpora(self) -> list[TokenCorpus]:
        """Read the documents of each input: all tokens, or at least all windows that may repeat."""

    def place(self, number: int, pieces: TokenPieces, sizes: np.ndarray) -> list[PlacedTokens]:
        """Place the tokens of an input's pieces; see `place_again`."""

    def write(self, edits: Edits, folder: Path) -> None:
        """Write kept/ into the folder of the result."""


class CorporaHere(NamedTuple):
    """The reading of documents in this process.

    sources : Sources
    columns : list of CorpusColumns
        For each input, in the order of `Sources.in_order`.
    recipe : Recipe
    runtime : Runtime
    max_bytes : int
        Bytes of text that are read at once.
    writing : Writing
    clock : Clock
    cut : str
        That of `SubstringSettings`.
    memory : int or None
        The bytes that the tokens may take.
    """

    sources: Sources
    columns: list[CorpusColumns]
    recipe: Recipe
    runtime: Runtime
    max_bytes: int
    writing: Writing
    clock: Clock
    cut: str
    memory: int | None = None

    @property
    def skipped(self) -> pa.Table | None:
        """The rows that could not be read; see `CorpusReading`."""
        return self.sources.skipped

    @property
    def about(self) -> dict[str, Any]:
        """Further entries of the report: none."""
        return {}

    def corpora(self) -> list[TokenCorpus]:
        """Read all documents of each input."""
        how = self.runtime, self.max_bytes, self.clock
        inputs = enumerate(zip(self.sources.in_order, self.columns, strict=True))
        return [
            read_corpus(documents, self.recipe, own, *how, number, self.memory) for number, (documents, own) in inputs
        ]

    def place(self, number: int, pieces: TokenPieces, sizes: np.ndarray) -> list[PlacedTokens]:
        """Place the tokens of an input's pieces; see `place_again`."""
        how = self.recipe, self.runtime, self.max_bytes, self.clock, self.cut
        return place_again(self.sources.in_order[number], pieces, sizes, *how)

    def write(self, edits: Edits, folder: Path) -> None:
        """Write kept/ into the folder of the result."""
        with self.clock.stage("write"):
            write_kept(self.sources.documents, folder / KEPT, edits, self.writing, partial(self.clock.report, "write"))
