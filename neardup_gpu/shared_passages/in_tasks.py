"""A search as a job of tasks: slices of the inputs are read, and their passages placed.

read     of a slice: the tokens of its documents, and what else is known of them; the rows that were skipped
locate   of a slice: the bytes of passages in its documents, and the words that differ

The driver holds the tokens of all documents and searches.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import xxhash

from ..data import Ragged, arrow, numpy_of, one_array
from ..documents.batches import one_integer_type
from ..documents.compared import one_order
from ..documents.skipped import check_skipped
from ..documents.slices import Slice, extent_of
from ..documents.sources import Sources
from ..engine.clock import Clock
from ..engine.contract import Runtime
from ..errors import OutputError, ParameterError
from ..jobs.arguments import Arguments
from ..records import dataclass
from ..repeated_passages.corpus import CorpusColumns, TokenCorpus, corpus_of
from ..store.outputs import new_folder
from ..tasks.columns import TABLE, add_table, load, save, tables_of
from ..tasks.driver import Job, extent_in, offsets_in, skipped_rows
from ..tasks.job import started
from ..tasks.running import columns_of, working
from ..tasks.work import FILES, Files, Stage, file_name, plain
from ..tasks.workers import Workers
from .placing import PlacedSpans, TokenSpans, place_spans

SPANS = "spans"
"""The folder of the file of intervals to place, a partition per slice."""

TOKENS = pa.schema([("token", pa.uint64())])


@contextlib.contextmanager
def in_tasks(
    sources: Sources, arguments: Arguments, columns: CorpusColumns, workers: Workers, clock: Clock
) -> Iterator[tuple[Path, ReadInTasks]]:
    """Begin a job of tasks; yield the folder of the output, which appears after the block, and the reading.

    Parameters
    ----------
    sources : Sources
    arguments : Arguments
    columns : CorpusColumns
    workers : Workers
    clock : Clock

    Raises
    ------
    NeardupError
        As raised by `run_in_tasks`.
    """
    if workers.spool:
        raise ParameterError("spool: a search for passages keeps no shingles; leave it out")
    if arguments.output is None:
        raise OutputError("output: tasks write their result into a folder; name one", parameter="output")
    with started(arguments, workers) as (runner, settled):
        output = new_folder(arguments.output, arguments.writing.overwrite, sources.local_files)
        given = runner, settled, workers, clock, sources, arguments.recipe, output, "passages"
        with working(*given) as (work, slices, known, place):
            rewritten = columns_of(sources.documents, arguments.writing)
            job = Job(work, slices, sum(known.values()), None, 0, *rewritten)
            yield place, ReadInTasks(job, sources, columns)
            if not workers.keep_work:
                work.place.clear(SPANS, FILES)


@dataclass(eq=False)
class ReadInTasks:
    """The reading of the inputs of a search, by tasks.

    Parameters
    ----------
    job : Job
    sources : Sources
    columns : CorpusColumns

    Attributes
    ----------
    skipped : pyarrow.Table or None
        The rows that could not be read, after `corpora`; None unless they are skipped.
    lengths : list of int
        The number of documents of each slice, after `corpora`.
    """

    job: Job
    sources: Sources
    columns: CorpusColumns
    skipped: pa.Table | None = None
    lengths: list[int] = field(default_factory=list)

    @property
    def about(self) -> dict[str, Any]:
        """Further entries of the report: the numbers of workers and slices, and how many tasks an earlier run did."""
        work = self.job.work
        tasks = {"workers": work.workers.num_workers, "slices": len(self.job.slices), "resumed": work.resumed}
        return {"tasks": tasks}

    def corpora(self) -> list[TokenCorpus]:
        """Read all documents; see `read_corpus`."""
        work, slices, columns = self.job.work, self.job.slices, self.columns
        calls: list[Any] = [
            (slice, list(columns.order), list(columns.within), columns.by, number)
            for number, slice in enumerate(slices)
        ]
        with work.told_as("read"):
            covers = [slice.covers for slice in slices]
            stage = work.stage("read", read, calls, covers=covers, on_device=True)
            return work.repairing(lambda: self._corpora(stage))

    def _corpora(self, stage: Stage) -> list[TokenCorpus]:
        """Join the corpora of all slices, by input."""
        job, parts = self.job, []
        extents = [extent_in(facts) for facts in stage.facts]
        offsets = offsets_in(job, extents)
        for number, (slice, offset) in enumerate(zip(job.slices, offsets, strict=True)):
            part = _corpus(job, number, stage.facts[number])
            parts.append(part._replace(ids=offset.ids(part.ids, slice)))
        self.skipped, self.lengths = skipped_rows(job, stage), [len(part.ids) for part in parts]
        cut, found = job.num_known, []
        for documents, some in zip(self.sources.in_order, [parts[:cut], parts[cut:]][cut == 0 :], strict=True):
            corpus = _joined(some)
            if corpus.counts["documents"] == 0:
                check_skipped(self.skipped)
            documents.check_unique(corpus.ids)
            found.append(corpus)
        return found

    def place(self, number: int, spans: TokenSpans, from_text: int, sizes: np.ndarray) -> PlacedSpans:
        """Place intervals of tokens of one input; see `place_spans`."""
        job, work = self.job, self.job.work
        mine = range(job.num_known) if number == 0 and job.num_known else range(job.num_known, len(job.slices))
        bounds = np.cumsum([0, *(self.lengths[each] for each in mine)]).tolist()
        digest, chosen = xxhash.xxh3_128(), []
        with work.shared.files(SPANS, number).exchange(SPANS, TABLE, len(job.slices)) as out:
            for each, begin, end in zip(mine, bounds, bounds[1:], strict=False):
                rows = np.flatnonzero((spans.document >= begin) & (spans.document < end))
                chosen.append(rows)
                table = pa.table(
                    {
                        "document": arrow(spans.document[rows] - begin),
                        "first": arrow(spans.first[rows]),
                        "last": arrow(spans.last[rows]),
                        "has_text": arrow(rows >= from_text),
                    }
                )
                add_table(out, each, table)
                add_table(out, each, pa.table({"size": arrow(sizes[begin:end])}))
                for array in (spans.document[rows], spans.first[rows], spans.last[rows], rows >= from_text):
                    digest.update(np.ascontiguousarray(array).tobytes())
        calls: list[Any] = [(job.slices[each], number, each, digest.hexdigest()) for each in mine]
        covers = [job.slices[each].covers for each in mine]
        with work.told_as("locate"):
            stage = work.stage(f"locate-{number}", locate, calls, covers=covers)
            return work.repairing(lambda: self._placed(stage, chosen, len(spans.first)))

    def _placed(self, stage: Stage, chosen: list[np.ndarray], number: int) -> PlacedSpans:
        """Join the places of all slices of an input."""
        found = PlacedSpans(np.empty(number, np.int64), np.empty(number, np.int64), {})
        for name, rows in zip(stage.names("placed"), chosen, strict=True):
            places, texts = tables_of(self.job.work.place, [name], 0)
            found.begin[rows], found.end[rows] = numpy_of(places["begin"]), numpy_of(places["end"])
            at = rows[numpy_of(texts["span"])].tolist()
            found.text.update(zip(at, texts["text"].to_pylist(), strict=True))
        return found


def read(
    files: Files, slice: Slice, order: list[str], within: list[str], by: str | None, number: int
) -> dict[str, Any]:
    """Read a slice. Memory: the tokens of its documents, and a batch."""
    shared, documents = files.shared, slice.open()
    with shared.start() as runtime:
        columns, most = CorpusColumns(tuple(order), tuple(within), by), _batch_bytes(files, runtime)
        corpus = corpus_of(documents, shared.recipe, columns, runtime, most, Clock(None), number)
    save(files, "tokens", {"token": corpus.tokens.values})
    with files.exchange("corpus", TABLE, 1) as out:
        for table in _tables(corpus):
            add_table(out, 0, table)
    if documents.skipped is not None:
        with files.exchange("skipped", TABLE, 1) as out:
            add_table(out, 0, documents.skipped)
    return {"counts": corpus.counts, "categories": corpus.categories, "extent": plain(extent_of(documents))}


def _batch_bytes(files: Files, runtime: Runtime) -> int:
    """Return the bytes of text that a task reads at once."""
    return files.shared.engine.batch_bytes or runtime.batch_bytes("set", 0)


def locate(files: Files, slice: Slice, number: int, partition: int, digest: str) -> dict[str, Any]:
    """Place the intervals of a slice. Memory: a batch, and the intervals of the slice.

    Parameters
    ----------
    slice : Slice
    number : int
        The input.
    partition : int
        The number of the slice.
    digest : str
        A digest of all intervals.
    """
    spans, sizes = tables_of(files.place, [file_name(SPANS, number, SPANS)], partition)
    has_text = numpy_of(spans["has_text"])
    from_text = int(np.argmax(has_text)) if has_text.any() else len(has_text)  # intervals with a text come last
    given = TokenSpans(*(numpy_of(spans[name]) for name in TokenSpans._fields))
    with files.shared.start() as runtime:
        sized = numpy_of(sizes["size"])
        most = _batch_bytes(files, runtime)
        placed = place_spans(slice.open(), given, from_text, sized, files.shared.recipe, runtime, most, Clock(None))
    with files.exchange("placed", TABLE, 1) as out:
        add_table(out, 0, pa.table({"begin": arrow(placed.begin), "end": arrow(placed.end)}))
        rows = sorted(placed.text)
        texts = pa.array([placed.text[row] for row in rows], pa.large_string())
        add_table(out, 0, pa.table({"span": pa.array(rows, pa.int64()), "text": texts}))
    return {}


def _tables(corpus: TokenCorpus) -> list[pa.Table]:
    """Return all of a corpus but its tokens and counts as tables."""
    nothing = pa.nulls(0, pa.int64())
    return [
        pa.table({"size": arrow(corpus.tokens.sizes), "id": corpus.ids}),
        pa.table({"bar": arrow(corpus.bars)}),
        pa.table(corpus.columns),
        pa.table({"word": nothing if corpus.words is None else arrow(corpus.words)}),
        pa.table({"value": pa.chunked_array(corpus.values, pa.large_string())}),
    ]


def _corpus(job: Job, number: int, facts: dict[str, Any]) -> TokenCorpus:
    """Return the corpus of a slice, of whose reading the facts are known."""
    place = job.work.place
    tokens = load(place, file_name("read", number, "tokens"), TOKENS)["token"]
    documents, bars, columns, words, values = tables_of(place, [file_name("read", number, "corpus")], 0)
    sizes = numpy_of(documents["size"])
    return TokenCorpus(
        tokens=Ragged._trusted(tokens, np.append(0, np.cumsum(sizes))),
        bars=numpy_of(bars["bar"]),
        seams=Ragged._trusted(np.empty(0, np.int64), np.zeros(len(sizes) + 1, np.int64)),
        ids=one_array(documents["id"]),
        columns={name: columns[name] for name in columns.column_names},
        categories=facts["categories"],
        words=numpy_of(words["word"]).astype(np.uint64) if len(words) == len(sizes) else None,
        values=values["value"].chunks,
        counts=facts["counts"],
    )


def _joined(parts: list[TokenCorpus]) -> TokenCorpus:
    """Join the corpora of consecutive slices of an input."""
    before = np.cumsum([0, *(len(part.tokens.values) for part in parts)]).tolist()
    sizes = np.concatenate([part.tokens.sizes for part in parts])
    counts = {name: sum(part.counts[name] for part in parts) for name in parts[0].counts}
    full = [part for part in parts if len(part.ids)] or parts[:1]
    ids = one_array(pa.chunked_array(one_integer_type([part.ids for part in full])))
    words = [part.words for part in full if part.words is not None]
    columns = {name: _chunks([part.columns[name] for part in full]) for name in full[0].columns}
    orders = {name: [part.categories[name] for part in full if name in part.categories] for name in columns}
    return TokenCorpus(
        tokens=Ragged._trusted(np.concatenate([part.tokens.values for part in parts]), np.append(0, np.cumsum(sizes))),
        bars=np.concatenate([part.bars + start for part, start in zip(parts, before, strict=False)]),
        seams=Ragged._trusted(np.empty(0, np.int64), np.zeros(len(sizes) + 1, np.int64)),
        ids=ids,
        columns=columns,
        categories={name: one_order(several, name) for name, several in orders.items() if several},
        words=np.concatenate(words) if words else None,
        values=[chunk for part in full for chunk in part.values],
        counts=counts,
    )


def _chunks(columns: list[pa.ChunkedArray]) -> pa.ChunkedArray:
    """Return columns of one type as one, with the chunks of all."""
    return pa.chunked_array([chunk for column in columns for chunk in column.chunks], columns[0].type)
