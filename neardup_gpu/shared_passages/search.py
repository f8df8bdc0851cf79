"""Find the passages that documents share: open, read, search, place, tell, write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .. import checks
from ..arguments import Arguments
from ..definitions import report_head
from ..documents.reading_options import Reading, chosen_reading
from ..documents.skipped import count_skipped
from ..documents.source import opened_leniently, refuse_without_effect
from ..documents.sources import Sources
from ..documents.writing_options import DECISIONS, ROWS, Writing, chosen_writing
from ..engine.clock import Clock, Progress, with_bars
from ..engine.contract import Backend
from ..engine.heap import give_back
from ..engine.memory import check_memory, parse_size
from ..engine.settings import Engine, EngineName, as_engine, for_text
from ..recipe import token_recipe
from ..repeated_passages.corpus import CorpusColumns, TokenCorpus, TokenReader
from ..report import count
from ..results.nothing_removed import warn_if_empty
from ..settings import settings_of
from ..store.artefacts import PASSAGES, write_report
from ..store.parquet import write_tables
from ..tasks.begin import begun
from ..tasks.workers import Workers
from .finding import FoundPassages, PassageGaps, SharedPassages, find
from .in_tasks import SPANS, ReadInTasks
from .layout import DocumentLayout, lay_out
from .page import PAGE, page_of
from .placing import PlacedSpans, ReadHere, TokenSpans
from .result import SharedText, by_report, documents_table, examples, passages_table, sources_table
from .settings import PassageSettings

PASSAGE_BYTES = 700
"""Bytes that a search holds per listed passage, at most."""


@with_bars
def passages(
    source: Any,
    other: Any = None,
    *,
    id_column: str | None = None,
    text_columns: str | Sequence[str] | None = None,
    output: str | Path | None = None,
    engine: EngineName | Engine = "auto",
    memory: int | str | None = None,
    progress: Progress | bool | None = None,
    reading: Reading | None = None,
    writing: Writing | None = None,
    workers: Workers | None = None,
    **settings: Any,
) -> SharedText:
    """Find the passages that documents share, and the places of each in both documents.

    Parameters
    ----------
    source : path, URI, glob, list of them, or a table
        The documents whose passages are looked for. They are read twice.
    other : path, URI, glob, list of them, or a table, default None
        The documents that passages may come from. If None, all documents of `source` are compared with one another,
        and of two documents the first one is the source: the earlier one, or without dates the one that is read first.
    id_column : str, default None
        The column of ids. If None, ids are row numbers or relative paths.
    text_columns : str or sequence of str, default None
        The columns of text. If None, they are found by their names.
    output : path, default None
        A folder to write: passages.parquet, documents.parquet, passages.html, passages.json and, with `other`,
        sources.parquet. It appears when it is complete.
    engine : Engine, "auto", "cpu", "gpu" or "reference", default "auto"
        What computes. Changes no result.
    memory : int or str, default None
        A bound on the memory of this process, such as "2GB". Arrays that grow with the text and find no room lie in
        temporary files; see `substrings`. A search that lists more passages than there is room for, at 700 bytes each,
        ends with an error that says how much is needed.
    progress : bool or callable, default None
        True shows bars. A function is called with the name of a stage, the number of documents done, and their total
        or None; see `dedup`.
    reading : Reading, default None
        How the documents of both inputs are read: format, encoding, HTML, rows that cannot be read.
    writing : Writing, default None
        `overwrite`, and a column `by` for whose values the report counts tokens, value by value.
    workers : Workers, default None
        If given, slices of the inputs are read, and their passages placed, by tasks that several processes or machines
        run. A search that was interrupted continues when it is started again with the same work folder. The output is
        the same. This process holds all tokens and searches.
    **settings : keywords
        The fields of `PassageSettings`: tokens, length, gap, within, date, max_partners and ignore_common. No two
        machines or backends give different results for equal settings.

    Returns
    -------
    SharedText
        Tables of passages, of documents and of sources, and the report.

    Raises
    ------
    InputError
        If the documents cannot be read twice.
    NeardupError
        If something cannot be read or written, or settings are impossible; see `errors`.

    Notes
    -----
    Every run of at least `length` equal tokens that two documents share is found, unless each of its parts of `length`
    tokens is common, and it is as long as it can be; tokens are compared one by one. Tokens ignore case, punctuation
    and line breaks. Arrays take 12 bytes for each token, 32 for each seed, those of repeated runs, and about 700 bytes
    for each listed passage.

    Examples
    --------
    >>> import neardup_gpu as nd
    >>> texts = ["He said: to be or not to be!", "Well, to be or not to be, that is the question."]
    >>> found = nd.passages({"text": texts}, length=4)
    >>> found.passages.select(["id", "begin", "end", "source_id", "source_begin", "tokens_equal"]).to_pylist()
    [{'id': 1, 'begin': 6, 'end': 24, 'source_id': 0, 'source_begin': 9, 'tokens_equal': 6}]
    """
    how = settings_of(PassageSettings, "passages", settings)
    recipe, engine = token_recipe(how.tokens, how.length), as_engine(engine)
    reading = chosen_reading(reading, id_column, text_columns, holds=recipe.shingles.token_kind.holds)
    writing = chosen_writing(writing, "passages", (*DECISIONS, *ROWS))
    output = checks.optional(checks.path, "output", output)
    memory = None if memory is None else parse_size(memory)
    clock = Clock(progress, noun=None if workers is None else "task")
    columns = CorpusColumns(() if how.date is None else (how.date,), tuple(how.within), writing.by)
    given = [source] if other is None else [source, other]
    inputs = [opened_leniently(each, reading, columns.names) for each in given][::-1]
    refuse_without_effect(*inputs)
    sources = Sources(inputs[-1], inputs[0] if other is not None else None)
    columns.check(sources, how.date)
    arguments = Arguments(
        source=source,
        against=other,
        reading=reading,
        recipe=recipe,
        output=output,
        writing=writing,
        engine=for_text(engine, lambda: None),
        memory=memory,
        progress=progress,
    )
    columns_of_each = [columns] * len(sources.in_order)
    begin = begun("passages", arguments, workers, sources, clock, [SPANS], unused=("partitions",))
    with arguments.engine.start() as runtime, begin as (job, place):
        read: ReadHere | ReadInTasks
        if job is not None:
            read = ReadInTasks(job, sources, columns_of_each)
        else:
            reader = TokenReader.of(recipe, arguments.engine, runtime, clock)
            read = ReadHere(sources, columns_of_each, reader)
        found = PassageSearch(sources, how, columns.by, read, runtime.backend, clock, memory).run()
        warn_if_empty(found.report["counts"])
        if place is not None:
            with clock.stage("write"):
                tables = {"passages": found.passages, "documents": found.documents}
                tables |= {} if found.sources is None else {"sources": found.sources}
                write_tables(place, tables, read.skipped)
                (place / PAGE).write_text(page_of(found, inputs[-1], inputs[0]), encoding="utf-8")
        found.report["timings"], found.report["seconds"] = clock.seconds, clock.elapsed
        if place is not None:
            write_report(place, found.report, PASSAGES)
    return found


class PassageSearch(NamedTuple):
    """The search in one input, or in two, the sources first."""

    sources: Sources
    settings: PassageSettings
    by: str | None
    read: ReadHere | ReadInTasks
    backend: Backend
    clock: Clock
    memory: int | None = None

    def run(self) -> SharedText:
        """Read, search and place; return the result."""
        corpora = self.read.corpora()
        with self.clock.stage("search"):
            layout = lay_out(corpora, self.settings, self.by, self.backend)
            corpora = [corpus.without_tokens() for corpus in corpora]
            most = self.settings.most_places(sum(corpus.counts["documents"] for corpus in corpora))
            found = find(layout, replace(self.settings, ignore_common=most), self.backend)
        give_back()
        number = len(found.passages.first)
        check_memory(self.memory, PASSAGE_BYTES * number, count(number, "passage"), "a smaller max_partners")
        split = layout.num_sources or 0
        own = found._replace(passages=found.passages._replace(document=found.passages.document - split))
        placed = self._placed(own, corpora)
        return self._result(own, layout, corpora, placed)

    def _placed(self, found: FoundPassages, corpora: list[TokenCorpus]) -> tuple[PlacedSpans, PlacedSpans]:
        """Place passages and gaps in documents and in sources."""
        passages, gaps = found.passages, found.gaps
        own, theirs = _spans(passages, gaps, True), _spans(passages, gaps, False)
        number = len(passages.first)
        if len(corpora) == 2:
            documents, sources = corpora[1].tokens.sizes, corpora[0].tokens.sizes
            return self.read.place(1, own, number, documents), self.read.place(0, theirs, number, sources)
        both = TokenSpans(
            *(
                np.concatenate([a[:number], b[:number], a[number:], b[number:]])
                for a, b in zip(own, theirs, strict=True)
            )
        )
        placed = self.read.place(0, both, 2 * number, corpora[0].tokens.sizes)
        more = len(gaps.first)
        return _part(placed, 0, 2 * number, number, more), _part(placed, number, 2 * number + more, number, more)

    def _result(
        self,
        found: FoundPassages,
        layout: DocumentLayout,
        corpora: list[TokenCorpus],
        placed: tuple[PlacedSpans, PlacedSpans],
    ) -> SharedText:
        """Return the tables and the report."""
        settings, split = self.settings, layout.num_sources or 0
        own, theirs = corpora[-1], corpora[0]
        sizes = own.tokens.sizes, theirs.tokens.sizes
        dates = None if layout.dates is None else (layout.dates[split:], layout.dates)
        table = passages_table(found, placed, (own.ids, theirs.ids), sizes, dates)
        coverage = type(found.coverage)(*(each[split:] for each in found.coverage))
        documents = documents_table(coverage, own.ids, sizes[0], theirs.ids)
        sources = None
        if len(corpora) == 2:
            sources = sources_table(type(coverage)(*(each[:split] for each in found.coverage)), theirs.ids, sizes[1])
        else:
            given = sources_table(coverage, own.ids, sizes[0])
            for name in ("tokens_given", "takers"):
                documents = documents.append_column(name, given[name])
        counts = {
            **own.counts,
            **({f"source_{name}": value for name, value in theirs.counts.items()} if len(corpora) == 2 else {}),
            **found.counts,
            "passages": len(found.passages.first),
            "documents_taken": int(np.count_nonzero(coverage.taken)),
            "tokens_taken": int(coverage.taken.sum()),
            "longest_document": int(sizes[0].max(initial=0)),
            **({"longest_source": int(sizes[1].max(initial=0))} if len(corpora) == 2 else {}),
        }
        counts = {name: value for name, value in counts.items() if settings.within or "without_value" not in name}
        counts |= count_skipped(self.read.skipped)
        head, about = report_head("passages", settings, "tokens", "length")
        report = {
            **head,
            "input": self.sources.documents.describe(),
            **({} if self.sources.reference is None else {"sources": self.sources.reference.describe()}),
            "counts": counts,
            **examples(table, documents),
            **self.read.about,
        }
        if layout.groups is not None:
            report["by"] = by_report(layout.groups, found, np.concatenate([each.tokens.sizes for each in corpora]))
        table, documents = (each.replace_schema_metadata(about) for each in (table, documents))
        return SharedText(table, documents, None if sources is None else sources.replace_schema_metadata(about), report)


def _spans(passages: SharedPassages, gaps: PassageGaps, own: bool) -> TokenSpans:
    """Return the intervals of passages, and then those of gaps, in documents or in sources."""
    of = passages.document if own else passages.source
    begin, end, low, high = (
        (passages.first, passages.last, gaps.first, gaps.last)
        if own
        else (passages.source_first, passages.source_last, gaps.source_first, gaps.source_last)
    )
    return TokenSpans(np.concatenate([of, of[gaps.passage]]), np.concatenate([begin, low]), np.concatenate([end, high]))


def _part(placed: PlacedSpans, passages: int, gaps: int, number: int, more: int) -> PlacedSpans:
    """Return the passages and the gaps of one side, from places of both sides."""
    rows = np.append(np.arange(passages, passages + number), np.arange(gaps, gaps + more))
    text = {number + gap: placed.text[gaps + gap] for gap in range(more)}
    return PlacedSpans(placed.begin[rows], placed.end[rows], text)
