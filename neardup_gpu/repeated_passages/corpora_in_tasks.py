"""The tokens of the inputs of a search, read by tasks over slices and joined in the driver."""

from __future__ import annotations

from dataclasses import field
from typing import Any

import numpy as np
import pyarrow as pa

from neardup_gpu.kernels._cpu import held

from ..data import Ragged, arrow, numpy_of, one_array
from ..documents.batches import one_integer_type
from ..documents.compared import one_order
from ..documents.skipped import check_skipped
from ..documents.slices import Slice, extent_of
from ..documents.sources import Sources
from ..engine.clock import Clock
from ..engine.contract import Runtime
from ..records import dataclass
from ..store.places import Place
from ..tasks.columns import load, save, save_tables, tables_of
from ..tasks.driver import Job, extents_in, offsets_in, skipped_rows
from ..tasks.work import Files, Stage, file_name
from .corpus import CorpusColumns, TokenCorpus, TokenReader, corpus_of, joined_tokens

TOKENS = pa.schema([("token", pa.uint64())])


@dataclass(eq=False)
class CorporaInTasks:
    """The reading of the inputs of a search, by tasks.

    Parameters
    ----------
    job : Job
    sources : Sources
    columns : list of CorpusColumns
        For each input, in the order of `Sources.in_order`.

    Attributes
    ----------
    skipped : pyarrow.Table or None
        The rows that could not be read, after `corpora`; None unless they are skipped.
    lengths : list of int
        The number of documents of each slice, after `corpora`.
    """

    job: Job
    sources: Sources
    columns: list[CorpusColumns]
    skipped: pa.Table | None = None
    lengths: list[int] = field(default_factory=list)

    @property
    def about(self) -> dict[str, Any]:
        """Further entries of the report."""
        return self.job.about

    def corpora(self) -> list[TokenCorpus]:
        """Read all documents; see `read_corpus`."""
        work, slices, known = self.job.work, self.job.slices, self.job.num_known
        calls: list[Any] = []
        for number, slice in enumerate(slices):
            columns = self.columns[0 if number < known else -1]
            calls.append((slice, list(columns.order), list(columns.within), columns.by, number))
        with work.told_as("read"):
            stage = work.stage("read", read, calls, on_device=True)
            self.prepare(stage)
            return work.repairing(lambda: self._corpora(stage))

    def prepare(self, reading: Stage) -> None:
        """Do further stages before the corpora are loaded: none."""

    def load(self, number: int, facts: dict[str, Any]) -> TokenCorpus:
        """Return the corpus of a slice, of whose reading the facts are known."""
        return load_corpus(self.job.work.place, number, facts)

    def slices_of(self, number: int) -> range:
        """Return the slices of an input."""
        known = self.job.num_known
        return range(known) if number == 0 and known else range(known, len(self.job.slices))

    def _corpora(self, stage: Stage) -> list[TokenCorpus]:
        """Join the corpora of all slices, by input."""
        job, parts = self.job, []
        extents = extents_in(job, stage)
        offsets = offsets_in(job, extents)
        for number, (slice, offset) in enumerate(zip(job.slices, offsets, strict=True)):
            part = self.load(number, stage.facts[number])
            parts.append(part._replace(ids=offset.ids(part.ids, slice)))
        self.skipped, self.lengths = skipped_rows(job, stage), [len(part.ids) for part in parts]
        found = []
        for number, documents in enumerate(self.sources.in_order):
            mine = self.slices_of(number)
            corpus = _joined(parts[mine.start : mine.stop])
            if corpus.counts["documents"] == 0:
                check_skipped(self.skipped)
            documents.check_unique(corpus.ids)
            found.append(corpus)
        return found


def read(
    files: Files, slice: Slice, order: list[str], within: list[str], by: str | None, number: int
) -> dict[str, Any]:
    """Read a slice. Memory: the tokens of its documents, and a batch."""
    shared, documents = files.shared, slice.open()
    with shared.start() as runtime:
        columns = CorpusColumns(tuple(order), tuple(within), by)
        corpus = corpus_of(documents, columns, reader_of(files, runtime), number)
    save(files, "tokens", {"token": corpus.tokens.values})
    save_tables(files, "corpus", _tables(corpus))
    if documents.skipped is not None:
        save_tables(files, "skipped", [documents.skipped])
    return {"counts": corpus.counts, "categories": corpus.categories, "extent": extent_of(documents)}


def reader_of(files: Files, runtime: Runtime) -> TokenReader:
    """Return the means by which a task reads documents."""
    return TokenReader.of(files.shared.recipe, files.shared.engine, runtime, Clock(None))


def _tables(corpus: TokenCorpus) -> list[pa.Table]:
    """Return all of a corpus but its tokens and counts as tables."""
    nothing = pa.nulls(0, pa.int64())
    return [
        pa.table({"size": arrow(corpus.tokens.sizes), "id": corpus.ids, "seams": arrow(corpus.seams.sizes)}),
        pa.table({"bar": arrow(corpus.bars)}),
        pa.table({"seam": arrow(corpus.seams.values)}),
        pa.table(corpus.columns),
        pa.table({"word": nothing if corpus.words is None else arrow(corpus.words)}),
        pa.table({"value": pa.chunked_array(corpus.values, pa.large_string())}),
    ]


def load_corpus(place: Place, number: int, facts: dict[str, Any], *, with_tokens: bool = True) -> TokenCorpus:
    """Return the corpus of a slice, of whose reading the facts are known; without tokens, it has their offsets."""
    tokens = np.empty(0, np.uint64)
    if with_tokens:
        tokens = held(load(place, file_name("read", number, "tokens"), TOKENS)["token"])
    tables = tables_of(place, [file_name("read", number, "corpus")], 0)
    documents, bars, seams, columns, words, values = tables
    sizes, num_seams = numpy_of(documents["size"]), numpy_of(documents["seams"])
    return TokenCorpus(
        tokens=Ragged._trusted(tokens, np.append(0, np.cumsum(sizes))),
        bars=numpy_of(bars["bar"]),
        seams=Ragged._trusted(numpy_of(seams["seam"]), np.append(0, np.cumsum(num_seams))),
        ids=one_array(documents["id"]),
        columns={name: columns[name] for name in columns.column_names},
        categories=facts["categories"],
        words=numpy_of(words["word"]).astype(np.uint64) if len(words) == len(sizes) else None,
        values=values["value"].chunks,
        counts=facts["counts"],
    )


def _joined(parts: list[TokenCorpus]) -> TokenCorpus:
    """Join the corpora of consecutive slices of an input."""
    counts = {name: sum(part.counts[name] for part in parts) for name in parts[0].counts}
    full = [part for part in parts if len(part.ids)] or parts[:1]
    ids = one_array(pa.chunked_array(one_integer_type([part.ids for part in full])))
    words = [part.words for part in full if part.words is not None]
    columns = {name: _chunks([part.columns[name] for part in full]) for name in full[0].columns}
    orders = {name: [part.categories[name] for part in full if name in part.categories] for name in columns}
    return joined_tokens(parts)._replace(
        ids=ids,
        columns=columns,
        categories={name: one_order(several, name) for name, several in orders.items() if several},
        words=np.concatenate(words) if words else None,
        counts=counts,
    )


def _chunks(columns: list[pa.ChunkedArray]) -> pa.ChunkedArray:
    """Return columns of one type as one, with the chunks of all."""
    return pa.chunked_array([chunk for column in columns for chunk in column.chunks], columns[0].type)
