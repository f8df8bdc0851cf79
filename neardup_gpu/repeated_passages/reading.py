"""The inputs of a search for passages, read in this process, and kept/ of a search for repeated ones."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ..documents.edits import Edits
from ..documents.rewritten import write_kept
from ..documents.sources import Sources
from ..documents.writing_options import Writing
from ..records import dataclass
from ..store.artefacts import KEPT
from .corpus import CorpusColumns, TokenCorpus, TokenReader, read_corpus
from .places import PlacedTokens, TokenPieces, place_again


@dataclass(eq=False)
class CorporaHere:
    """The reading of the inputs of a search in this process; `CorporaInTasks` reads them by tasks.

    Parameters
    ----------
    sources : Sources
    columns : list of CorpusColumns
        For each input, in the order of `Sources.in_order`.
    reader : TokenReader
    """

    sources: Sources
    columns: list[CorpusColumns]
    reader: TokenReader

    @property
    def skipped(self) -> pa.Table | None:
        """The rows that could not be read, after `corpora`; None unless they are skipped."""
        return self.sources.skipped

    @property
    def about(self) -> dict[str, Any]:
        """Further entries of the report: none."""
        return {}

    def corpora(self) -> list[TokenCorpus]:
        """Read all documents of each input."""
        inputs = enumerate(zip(self.sources.in_order, self.columns, strict=True))
        return [read_corpus(*own, self.reader, number) for number, own in inputs]


@dataclass(eq=False)
class SubstringsHere(CorporaHere):
    """The reading of documents, the placing of tokens, and the writing of kept/, in this process.

    Parameters
    ----------
    writing : Writing
    cut : str
        That of `SubstringSettings`.
    """

    writing: Writing
    cut: str

    def place(self, number: int, pieces: TokenPieces, sizes: np.ndarray) -> Iterator[PlacedTokens]:
        """Place the tokens of an input's pieces; see `place_again`."""
        return place_again(self.sources.in_order[number], pieces, sizes, self.reader, self.cut)

    def write(self, edits: Edits, folder: Path) -> None:
        """Write kept/ into the folder of the result."""
        clock = self.reader.clock
        with clock.stage("write"):
            write_kept(self.sources.documents, folder / KEPT, edits, self.writing, partial(clock.report, "write"))
