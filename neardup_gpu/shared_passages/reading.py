"""The inputs of a search, read in this process: their tokens, and then the bytes of passages."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from ..documents.sources import Sources
from ..engine.clock import Clock
from ..engine.contract import Runtime
from ..recipe import Recipe
from ..repeated_passages.corpus import CorpusColumns, TokenCorpus, read_corpus
from .placing import PlacedSpans, TokenSpans, place_spans


class PassageReading(Protocol):
    """The reading of the inputs of a search, here or by tasks. Inputs are numbered, the sources first."""

    @property
    def skipped(self) -> pa.Table | None:
        """The rows that could not be read, after `corpora`; None unless they are skipped."""

    @property
    def about(self) -> dict[str, Any]:
        """Further entries of the report."""

    def corpora(self) -> list[TokenCorpus]:
        """Read all documents of each input."""

    def place(self, number: int, spans: TokenSpans, from_text: int, sizes: np.ndarray) -> PlacedSpans:
        """Place intervals of tokens of an input; see `place_spans`."""


class ReadHere(NamedTuple):
    """The reading of the inputs of a search in this process.

    sources : Sources
    columns : CorpusColumns
    recipe : Recipe
    runtime : Runtime
    max_bytes : int
        Bytes of text that are read at once.
    clock : Clock
    memory : int or None
        The bytes that the tokens may take.
    """

    sources: Sources
    columns: CorpusColumns
    recipe: Recipe
    runtime: Runtime
    max_bytes: int
    clock: Clock
    memory: int | None = None

    @property
    def skipped(self) -> pa.Table | None:
        """The rows that could not be read; see `PassageReading`."""
        return self.sources.skipped

    @property
    def about(self) -> dict[str, Any]:
        """Further entries of the report: none."""
        return {}

    def corpora(self) -> list[TokenCorpus]:
        """Read all documents of each input."""
        how = self.recipe, self.columns, self.runtime, self.max_bytes, self.clock
        inputs = enumerate(self.sources.in_order)
        return [read_corpus(documents, *how, number, self.memory) for number, documents in inputs]

    def place(self, number: int, spans: TokenSpans, from_text: int, sizes: np.ndarray) -> PlacedSpans:
        """Place intervals of tokens of an input; see `place_spans`."""
        how = self.recipe, self.runtime, self.max_bytes, self.clock
        return place_spans(self.sources.in_order[number], spans, from_text, sizes, *how)
