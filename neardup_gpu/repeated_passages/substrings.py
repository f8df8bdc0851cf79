"""Find repeated passages and write the corpus without them: open, read, find, place, decide, write."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from .. import __version__, checks
from ..data import arrow
from ..definitions import METADATA_KEY, versions
from ..documents import Documents, open_documents
from ..documents.edits import Cuts, Edits
from ..documents.reading_options import Reading, chosen_reading
from ..documents.rewritten import write_kept
from ..documents.seams import find_seams, new_seams, seams_as_text
from ..documents.units import check_action
from ..documents.writing_options import Writing
from ..engine.clock import Clock, Progress, with_bars
from ..engine.settings import Engine, as_engine, for_text
from ..errors import InputError
from ..keep_rule import keep_columns
from ..recipe import Recipe, Shingles
from ..settings import settings_of
from ..store.artefacts import KEPT, SUBSTRINGS, write_report
from ..store.outputs import new_folder
from ..store.parquet import write_tables
from .corpus import CorpusColumns, TokenCorpus, read_corpus
from .places import ChosenDocuments, Placed, place_again
from .repeats import RemovedPassages, Windows, cuts_of, find_windows, passages_of, remove
from .result import REASONS, TABLES, Substrings, examples, spans_table
from .settings import NOTHING, SubstringSettings

MARKS = "repeated"
"""The column of marked passages."""


@with_bars
def substrings(
    source: Any,
    *,
    id_column: str | None = None,
    text_columns: str | Sequence[str] | None = None,
    output: str | Path | None = None,
    engine: str | Engine = "auto",
    progress: Progress | bool | None = None,
    reading: Reading | None = None,
    writing: Writing | None = None,
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
    output : path, default None
        A folder to write: spans.parquet, documents.parquet, substrings.json and, unless passages are only listed,
        kept/. It appears when it is complete.
    engine : Engine, "auto", "cpu", "gpu" or "reference", default "auto"
        What computes. Changes no result.
    progress : bool or callable, default None
        True shows bars. A function is called with the name of a stage, the number of documents done, and their total
        or None; see `dedup`.
    reading : Reading, default None
        How the documents are read: format, encoding, HTML, rows that cannot be read.
    writing : Writing, default None
        How kept/ is written: `overwrite`, `output_format` and `shard_bytes` count.
    **settings : keywords
        The fields of `SubstringSettings`: tokens, length, keep, keep_copies, within, in_documents, action and
        drop_below.

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
    names. A second run over kept/ removes nothing. The tokens of all documents are held in memory, 8 bytes each, and
    about 100 bytes for each repeated window; a GPU holds 45 bytes for each token.

    Examples
    --------
    >>> texts = ["He said: to be, or not to be!", "To be or not to be. That is the question."]
    >>> found = substrings({"text": texts}, length=6, action="list")
    >>> found.spans.select(["id", "begin", "end", "source_id", "source_begin"]).to_pylist()
    [{'id': 1, 'begin': 0, 'end': 18, 'source_id': 0, 'source_begin': 9}]
    """
    how = settings_of(SubstringSettings, "substrings", settings)
    reading, engine = chosen_reading(reading, id_column, text_columns), as_engine(engine)
    writing = Writing() if writing is None else checks.instance("writing", writing, Writing)
    output, clock = checks.optional(checks.path, "output", output), Clock(progress)
    kept_by = [] if how.keep == NOTHING else keep_columns(how.keep)
    columns = CorpusColumns(tuple(kept_by), tuple(how.within))
    documents = open_documents(source, reading=reading, other_columns=columns.names)
    if not documents.rewindable:
        raise InputError("the input is a stream and passages are placed by a second reading; pass a table or files")
    find_seams(documents)
    if output is not None:
        writing = check_action(how.action, MARKS, writing, documents)
    engine = for_text(engine, lambda: None)
    with contextlib.ExitStack() as stack:
        place = None
        if output is not None:
            place = stack.enter_context(new_folder(output, writing.overwrite, documents.local_files))
        with engine.start() as runtime:
            most = runtime.batch_bytes("set", 0) if engine.batch_bytes is None else engine.batch_bytes
            recipe = Recipe(shingles=Shingles(min(64, how.length), tokens=how.tokens))
            corpus = read_corpus(documents, recipe, columns, runtime, most, clock)
            with clock.stage("search"):
                windows = find_windows(corpus, how, runtime.backend)
            chosen = ChosenDocuments(windows.documents, corpus.tokens.sizes[windows.documents])
            placed = place_again(documents, chosen, recipe, runtime, most, clock)
            with clock.stage("decide"):
                removed = remove(windows, placed, how, runtime.backend)
                passages = passages_of(removed, placed)
        fates = _fates(passages, placed, corpus, how)
        found = _found(passages, fates, windows, corpus, how, documents)
        found.report["counts"]["closed_windows"] = removed.num_closed
        if place is not None:
            with clock.stage("write"):
                write_tables(place, {name: getattr(found, name) for name in TABLES}, documents.skipped)
                if how.action != "list":
                    edits = _edits(fates, passages, corpus, how)
                    write_kept(documents, place / KEPT, edits, writing, partial(clock.report, "write"))
        found.report["timings"], found.report["seconds"] = clock.seconds, clock.elapsed
        if place is not None:
            write_report(place, found.report, SUBSTRINGS)
    return found


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
    sizes = corpus.tokens.sizes
    cuts, lost = cuts_of(passages, placed, len(sizes))
    dropped = (lost > 0) & (sizes - lost < settings.drop_below)
    dropped[passages.source[passages.source >= 0]] = False
    return DocumentFates(cuts, lost, ~dropped)


def _edits(fates: DocumentFates, passages: RemovedPassages, corpus: TokenCorpus, settings: SubstringSettings) -> Edits:
    """Return what becomes of each row."""
    if settings.action == "mark":
        keep = np.ones(len(fates.kept), bool)
        offsets = np.searchsorted(passages.document, np.arange(len(keep) + 1))
        return Edits(keep, Cuts(offsets, passages.begin, passages.end), MARKS)
    if not fates.lost.any():
        return Edits(fates.kept)
    owner = np.repeat(np.arange(len(fates.kept)), np.diff(fates.cuts.offsets))
    kept = fates.kept[owner]
    offsets = np.searchsorted(owner[kept], np.arange(len(fates.kept) + 1))
    seams = seams_as_text(new_seams(fates.cuts, corpus.seams))
    return Edits(fates.kept, Cuts(offsets, fates.cuts.begins[kept], fates.cuts.ends[kept]), seams=seams)


def _found(
    passages: RemovedPassages,
    fates: DocumentFates,
    windows: Windows,
    corpus: TokenCorpus,
    settings: SubstringSettings,
    documents: Documents,
) -> Substrings:
    """Return what was found, as tables and as a report."""
    recipe = {"tokens": settings.tokens, "length": settings.length, **versions()}
    about = {METADATA_KEY: json.dumps(recipe).encode()}
    sizes, (_, lost, kept) = corpus.tokens.sizes, fates
    reason = REASONS[settings.in_documents is None]
    spans = spans_table(passages, corpus.ids, reason).replace_schema_metadata(about)
    left = np.where(kept, sizes - lost, 0)
    columns = {"id": corpus.ids, "kept": arrow(kept), "words": arrow(sizes), "words_left": arrow(left)}
    table = pa.table(columns).replace_schema_metadata(about)
    counts = {
        **corpus.counts,
        "windows": len(windows.places),
        "tokens_covered": windows.covered,
        "tokens_removed": int(lost.sum()),
        "tokens_left": int(left.sum()),
        "passages": len(passages.document),
        "documents_cut": int(np.count_nonzero(lost)),
        "emptied": int(np.count_nonzero((sizes > 0) & (left == 0))),
        "kept": int(kept.sum()),
        "dropped": int((~kept).sum()),
        "longest_document": int(sizes.max(initial=0)),
        **({"templates": len(passages.document)} if settings.keep == NOTHING and reason == REASONS[0] else {}),
    }
    if not settings.within:
        del counts["without_value"]
    if documents.skipped is not None:
        counts["skipped"] = documents.skipped.num_rows
    report = {
        "version": __version__,
        "kind": "substrings",
        "recipe": recipe,
        "settings": asdict(settings),
        "input": documents.describe(),
        "counts": counts,
        **examples(passages, corpus.ids),
    }
    return Substrings(spans, table, report)
