"""Find repeated passages and write the corpus without them: open, read, find, place, decide, write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from .. import checks
from ..arguments import Arguments
from ..data import arrow
from ..definitions import report_head
from ..documents.columns import REPEATED, SEAMS
from ..documents.edits import Cuts, Edits
from ..documents.reading_options import Reading, chosen_reading
from ..documents.references import ReferenceSets
from ..documents.seams import new_seams, seams_as_text
from ..documents.skipped import count_skipped
from ..documents.source import opened_leniently
from ..documents.sources import Sources
from ..documents.units import check_action
from ..documents.writing_options import DECISIONS, ROWS, Writing, chosen_writing
from ..engine.clock import Clock, Progress, with_bars
from ..engine.heap import give_back
from ..engine.memory import check_memory, parse_size
from ..engine.settings import Engine, EngineName, as_engine, for_text
from ..errors import ParameterError
from ..keep_rule import keep_columns
from ..log import log
from ..recipe import token_recipe
from ..report import count
from ..results.nothing_removed import warn_if_empty
from ..settings import refuse_unused, settings_of
from ..store.artefacts import SUBSTRINGS, write_report
from ..store.parquet import write_tables
from ..tasks.begin import begun
from ..tasks.workers import Workers
from .corpus import CorpusColumns, TokenCorpus, TokenReader, joined_inputs
from .in_tasks import EDITS, PIECES, SubstringsInTasks
from .page import PAGE, page_of
from .places import Placed, PlacedTokens, TokenPieces
from .reading import SubstringsHere
from .repeats import RemovedPassages, cuts_of, find_windows, open_windows, passages_of, remove
from .result import REASONS, TABLES, Substrings, by_report, examples, spans_table
from .settings import NOTHING, SubstringSettings

STRETCH_BYTES = 240
"""Bytes that a search holds per run of windows that repeat, about, with the passages that it removes: 12 million token
ids, half of them alike, have 5.7 million runs, and the search held 1.3 GB besides the process."""


@with_bars
def substrings(
    source: Any,
    *,
    id_column: str | None = None,
    text_columns: str | Sequence[str] | None = None,
    against: Any = None,
    output: str | Path | None = None,
    engine: EngineName | Engine = "auto",
    memory: int | str | None = None,
    progress: Progress | bool | None = None,
    reading: Reading | None = None,
    writing: Writing | None = None,
    workers: Workers | None = None,
    **settings: Any,
) -> Substrings:
    """Find every passage of `length` or more words that occurs elsewhere, and write a corpus in which each stays once.

    Parameters
    ----------
    source : path, URI, glob, list of them, or a table
        The documents. They are read twice, and once more if kept/ is written.
    id_column : str, default None
        The column of ids. If None, ids are row numbers or relative paths.
    text_columns : str or sequence of str, default None
        The columns of text. If None, they are found by their names.
    against : path, URI, glob, table or `Reference`, default None
        A reference set. Passages of the input that occur in it are removed, too; it is left untouched. It is read
        like the input.
    output : path, default None
        A folder to write: spans.parquet, documents.parquet, substrings.html, substrings.json and, unless passages are
        only listed, kept/. It appears when it is complete.
    engine : Engine, "auto", "cpu", "gpu" or "reference", default "auto"
        What computes. Changes no result.
    memory : int or str, default None
        A bound on the memory of this process, such as "2GB". Arrays that grow with the text and find no room lie in
        temporary files, in the `temp_dir` of the engine or next to the output; their pages are not counted. Changes no
        result. If what repeats is so broken up that its list alone takes more, an error says how much is needed.
    progress : bool or callable, default None
        True shows bars. A function is called with the name of a stage, the number of documents done, and their total
        or None; see `dedup`.
    reading : Reading, default None
        How the documents are read: format, encoding, HTML, rows that cannot be read.
    writing : Writing, default None
        How kept/ is written, and a column `by` for whose values the report counts tokens, value by value. `overwrite`,
        `output_format`, `shard_bytes` and `by` count.
    workers : Workers, default None
        If given, slices of the input are read, searched and written by tasks that several processes or machines run. A
        search that was interrupted continues when it is started again with the same work folder. The output is the
        same, but kept/ has a file per slice. This process holds only the tokens of passages that may repeat.
    **settings : keywords
        The fields of `SubstringSettings`: tokens, length, keep, keep_copies, within, in_documents, action, cut
        and drop_below.

    Returns
    -------
    Substrings
        Tables of removed passages and of documents, and the report.

    Raises
    ------
    InputError
        If the documents cannot be read twice.
    NeardupError
        If something cannot be read or written, or settings are impossible; see `errors`.

    Notes
    -----
    Unless `keep` is "none", each removed passage stands whole in the text that is kept, at the place that `spans`
    names. A second run over kept/ removes nothing. Arrays take 8 bytes for each token, 32 for each seed (7% of the
    tokens at a length of 50), and about 20 for each repeated window; a GPU holds 45 bytes for each token. With
    `workers`, this process holds only the tokens of passages whose fingerprints repeat, in temporary files beyond
    `task_memory`.

    Examples
    --------
    >>> texts = ["He said: to be, or not to be!", "To be or not to be. That is the question."]
    >>> found = substrings({"text": texts}, length=6, action="list")
    >>> found.spans.select(["id", "begin", "end", "source_id", "source_begin"]).to_pylist()
    [{'id': 1, 'begin': 0, 'end': 18, 'source_id': 0, 'source_begin': 9}]
    """
    how = settings_of(SubstringSettings, "substrings", settings)
    recipe, engine = token_recipe(how.tokens, how.length), as_engine(engine)
    reading = chosen_reading(reading, id_column, text_columns, holds=recipe.shingles.token_kind.holds)
    writing = chosen_writing(writing, "substrings", DECISIONS)
    output = checks.optional(checks.path, "output", output)
    memory = None if memory is None else parse_size(memory)
    clock = Clock(progress, noun=None if workers is None else "task")
    kept_by = [] if how.keep == NOTHING else keep_columns(how.keep)
    columns = [CorpusColumns(order, tuple(how.within), writing.by) for order in ((), tuple(kept_by))]
    arguments = Arguments(
        source=source,
        against=against,
        reading=reading,
        recipe=recipe,
        output=None if output is None else str(output),
        writing=writing,
        engine=for_text(engine, lambda: None),
        memory=memory,
        progress=progress,
    )
    sources = _opened(arguments, columns)
    for remark in sources.remarks():
        log.warning(remark)
    if sources.reference is not None and how.keep_copies > 1:
        raise ParameterError("keep_copies and against: passages of the reference set are all removed; leave one out")
    if output is not None:
        writing = check_action(how.action, REPEATED, writing, sources.documents)
    else:
        refuse_unused(writing, "a search without output=...", ROWS)
    arguments = replace(arguments, writing=writing)
    begin = begun("substrings", arguments, workers, sources, clock, [PIECES, EDITS])
    with arguments.engine.start() as runtime, begin as (job, place):
        columns = columns[-len(sources.in_order) :]
        read: SubstringsHere | SubstringsInTasks
        if job is not None:
            read = SubstringsInTasks(job, sources, columns, length=how.length, cut=how.cut)
        else:
            reader = TokenReader.of(recipe, arguments.engine, runtime, clock)
            read = SubstringsHere(sources, columns, reader, writing, how.cut)
        found, edits = _SubstringSearch(sources, how, writing.by, read, runtime.backend, clock, memory).run()
        warn_if_empty(found.report["counts"])
        give_back()
        if place is not None:
            if how.action != "list":
                read.write(edits, place)
            with clock.stage("write"):
                write_tables(place, {name: getattr(found, name) for name in TABLES}, read.skipped)
                (place / PAGE).write_text(page_of(found, sources, recipe), encoding="utf-8")
        found.report.update(read.about)
        found.report["timings"], found.report["seconds"] = clock.seconds, clock.elapsed
        if place is not None:
            write_report(place, found.report, SUBSTRINGS)
    return found


def _opened(arguments: Arguments, columns: list[CorpusColumns]) -> Sources:
    """Open the reference set, if there is one, and the input, with the columns to read of each.

    Raises
    ------
    InputError
        If documents cannot be read twice.
    ParameterError
        If there are several reference sets.
    """
    documents = opened_leniently(arguments.source, arguments.reading, columns[1].names)
    sources = arguments.opened_reference(Sources(documents), arguments.reading, columns[0].names)
    if isinstance(sources.reference, ReferenceSets):
        raise ParameterError("against: passages are compared with one reference set; name a folder, or a list of files")
    columns[1].check(sources)
    return sources


class _SubstringSearch(NamedTuple):
    """The search in an input, and in the reference set before it if there is one."""

    sources: Sources
    settings: SubstringSettings
    by: str | None
    read: SubstringsHere | SubstringsInTasks
    backend: str
    clock: Clock
    memory: int | None

    def run(self) -> tuple[Substrings, Edits]:
        """Read, search, place and decide; return the result, and what becomes of each row of the input."""
        corpus, how = joined_inputs(self.read.corpora()), self.settings
        with self.clock.stage("search"):
            windows = find_windows(corpus, how, self.backend)
            corpus, pieces = corpus.without_tokens(), windows.pieces
            counts = windows.counts
        held, what = STRETCH_BYTES * len(windows.places), f"{count(len(windows.places), 'run')} of words that repeat"
        check_memory(self.memory, held, what, "a larger length")
        give_back()
        placed = Placed.of(pieces, self._placed(pieces, corpus))
        give_back()
        with self.clock.stage("decide"):
            windows, num_closed = open_windows(windows, placed)
            removed = remove(windows, how, self.backend)
            passages = passages_of(removed, placed)
            fates = _fates(passages, placed, corpus, how)
        found = _found(passages, fates, counts, corpus, how, self.read.skipped)
        found.report["counts"]["closed_windows"] = num_closed
        found.report.update({name: about for name, about in self.sources.describe().items() if about is not None})
        if self.by is not None:
            found.report["by"] = by_report(self.by, passages, fates.lost, corpus)
        return found, _edits(fates, passages, corpus, how)

    def _placed(self, pieces: TokenPieces, corpus: TokenCorpus) -> Iterator[PlacedTokens]:
        """Place the tokens of the pieces of each input."""
        known = corpus.num_known
        cut = int(np.searchsorted(pieces.documents, known))
        if known:
            yield from self.read.place(0, pieces.some(slice(cut)), corpus.sizes[:known])
        own = pieces.some(slice(cut, None))
        own = own._replace(documents=own.documents - known)
        yield from self.read.place(len(self.sources.in_order) - 1, own, corpus.sizes[known:])


class DocumentFates(NamedTuple):
    """Hold the decisions about documents.

    cuts : Cuts
        The bytes to cut out.
    lost : array of int64
        The number of tokens that each document loses.
    kept : array of bool
    """

    cuts: Cuts
    lost: np.ndarray
    kept: np.ndarray


def _fates(
    passages: RemovedPassages, placed: Placed, corpus: TokenCorpus, settings: SubstringSettings
) -> DocumentFates:
    """Decide about documents: those that have few tokens left are dropped, unless they keep a passage for others."""
    sizes = corpus.sizes
    cuts, lost = cuts_of(passages, placed, len(sizes))
    dropped = (lost > 0) & (sizes - lost < settings.drop_below)
    dropped[passages.source[passages.source >= 0]] = False
    return DocumentFates(cuts, lost, ~dropped)


def _edits(fates: DocumentFates, passages: RemovedPassages, corpus: TokenCorpus, settings: SubstringSettings) -> Edits:
    """Return what becomes of each row of the input."""
    known, number = corpus.num_known, len(fates.kept)
    if settings.action == "mark":
        offsets = np.searchsorted(passages.document, np.arange(number + 1))
        return Edits(np.ones(number, bool), Cuts(offsets, passages.begin, passages.end), REPEATED).of(known, number)
    if not fates.lost.any():
        return Edits(fates.kept[known:])
    owner = np.repeat(np.arange(number), np.diff(fates.cuts.offsets))
    kept = fates.kept[owner]
    offsets = np.searchsorted(owner[kept], np.arange(number + 1))
    seams = seams_as_text(new_seams(fates.cuts, corpus.seams))
    cuts = Cuts(offsets, fates.cuts.begins[kept], fates.cuts.ends[kept])
    return Edits(fates.kept, cuts, columns={SEAMS: seams}).of(known, number)


def _found(
    passages: RemovedPassages,
    fates: DocumentFates,
    windows: dict[str, int],
    corpus: TokenCorpus,
    settings: SubstringSettings,
    skipped: pa.Table | None,
) -> Substrings:
    """Return what was found, as tables and as a report."""
    head, about = report_head("substrings", settings, "tokens", "length")
    known = corpus.num_known
    sizes, lost, kept = (each[known:] for each in (corpus.sizes, fates.lost, fates.kept))
    reason = REASONS[settings.in_documents is None]
    in_reference = passages.source < known if "reference_documents" in corpus.counts else None
    spans = spans_table(passages, corpus.ids, reason, in_reference).replace_schema_metadata(about)
    left = np.where(kept, sizes - lost, 0)
    columns = {"id": corpus.ids[known:], "kept": arrow(kept), "words": arrow(sizes), "words_left": arrow(left)}
    table = pa.table(columns).replace_schema_metadata(about)
    counts = {
        **corpus.counts,
        **windows,
        "tokens_removed": int(lost.sum()),
        "tokens_left": int(left.sum()),
        "passages": len(passages.document),
        "documents_cut": int(np.count_nonzero(lost)),
        "emptied": int(np.count_nonzero((sizes > 0) & (left == 0))),
        "kept": int(kept.sum()),
        "dropped": int((~kept).sum()),
        "short_sources": int((kept & (lost > 0) & (sizes - lost < settings.drop_below)).sum()),
        "longest_document": int(sizes.max(initial=0)),
        **({"templates": len(passages.document)} if settings.keep == NOTHING and reason == REASONS[0] else {}),
    }
    if not settings.within:
        del counts["without_value"]
    counts |= count_skipped(skipped)
    return Substrings(spans, table, {**head, "counts": counts, **examples(passages, corpus.ids)})
