"""Check a training text for the items of evaluation sets: open, read the items, scan, tell, write."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from .. import __version__, checks
from ..definitions import METADATA_KEY, versions
from ..documents import Documents, open_documents
from ..documents.files import File
from ..documents.find import find_files
from ..documents.local_names import escaped
from ..documents.memory import as_tables
from ..documents.reading_options import Reading, chosen_reading
from ..documents.rewritten import check_writing, write_kept
from ..documents.source import names_of
from ..documents.units import check_divisible
from ..documents.writing_options import Writing, rewriting
from ..engine.clock import Clock, Progress, with_bars
from ..engine.settings import Engine, as_engine, for_text
from ..errors import InputError, OutputError
from ..recipe import Recipe, Shingles
from ..store.artefacts import CERTIFICATE, KEPT, write_report
from ..store.outputs import new_folder
from ..store.parquet import write_table
from ..store.uris import is_uri, masked
from .items import EvaluationItems, EvaluationSet, identities, opened_sets, read_items, texts_of_items, wanted_of
from .page import PAGE, Shown, page_of
from .scanning import MARKS, Scan, best_passages
from .settings import ContaminationSettings
from .verdicts import TABLES, Contamination, counts_of, evals_table, hits_table, sets_of


@with_bars
def contaminated(
    source: Any,
    evals: Any,
    *,
    id_column: str | None = None,
    text_columns: str | Sequence[str] | None = None,
    fields: str | Sequence[str] | None = None,
    tokens: str = "words",
    length: int = 8,
    share: float = 0.5,
    action: str = "list",
    output: str | Path | None = None,
    engine: str | Engine = "auto",
    progress: Progress | bool | None = None,
    reading: Reading | None = None,
    writing: Writing | None = None,
) -> Contamination:
    """Find the items of evaluation sets in a training text: where each stands, and who would call it contaminated.

    Parameters
    ----------
    source : path, URI, glob, list of them, or a table
        The training text. It is read once, and once more if kept/ is written.
    evals : path, URI, folder, list of them, or a dict of tables
        The evaluation sets: JSON lines, Parquet, CSV or Arrow, a row per item. Each file is a set; in memory, each
        table of a dict is one, by its name.
    id_column : str, default None
        The column of ids of the training text. If None, ids are row numbers or relative paths.
    text_columns : str or sequence of str, default None
        The columns of the training text. If None, they are found by their names.
    fields : str or sequence of str, default None
        The fields of the evaluation sets to look for, such as "question" and "choices". Each is looked for on its own
        and, if there are several, all together, one after another. If None, each field that holds text.
    tokens : "words" or "code", default "words"
        What a token is; see `Shingles`.
    length : int, default 8
        The shortest run of tokens that counts. A shorter item counts if all of it occurs, from 5 tokens on.
    share : float, default 0.5
        The share of an item's tokens from which the definitions of Llama 3, Tulu 3 and the longest run call it
        contaminated.
    action : str, default "list"
        What is done with the training text:

        - "list": nothing; hits are listed.
        - "drop": write kept/ without the documents that have a hit.
        - "cut": write kept/ without the hits.
        - "mark": write kept/ with a column `contaminated`: the hits of each document, in bytes of its text.
    output : path, default None
        A folder to write: hits.parquet, evals.parquet, contaminated.html, certificate.json and, as `action` says,
        kept/. It appears when it is complete.
    engine : Engine, "auto", "cpu", "gpu" or "reference", default "auto"
        What the check computes with. Changes no result.
    progress : bool or callable, default None
        True shows bars. A function is called with the name of a stage, the number of documents done, and their total
        or None; see `dedup`.
    reading : Reading, default None
        How the training text is read: format, encoding, HTML, rows that cannot be read.
    writing : Writing, default None
        How kept/ is written: `overwrite`, `output_format` and `shard_bytes` count.

    Returns
    -------
    Contamination
        Tables of hits and of items, and the report.

    Raises
    ------
    InputError
        If an evaluation set lies in the training text, or has no field of text.
    NeardupError
        If something cannot be read or written, or settings are impossible; see `errors`.

    Notes
    -----
    A document and an item are listed exactly if they share `length` consecutive tokens, or, if the item has fewer, all
    of it; tokens are compared one by one. Tokens ignore case, punctuation and line breaks. The items are held in
    memory, at up to 45 bytes per token; so are the hits.

    Examples
    --------
    >>> texts = ["Somebody asked: to be, or not to be? That is the question!", "Whether it is nobler in the mind"]
    >>> found = contaminated({"text": texts}, {"plays": {"question": ["To be or not to be, that is the question."]}})
    >>> found.hits.select(["id", "begin", "end", "run"]).to_pylist()
    [{'id': 0, 'begin': 16, 'end': 57, 'run': 10}]
    """
    settings = ContaminationSettings(fields=fields, tokens=tokens, length=length, share=share, action=action)
    reading, engine = chosen_reading(reading, id_column, text_columns), as_engine(engine)
    writing = Writing() if writing is None else checks.instance("writing", writing, Writing)
    output, clock = checks.optional(checks.path, "output", output), Clock(progress)
    if output is None and settings.action != "list":
        raise OutputError(f"action {settings.action!r}: writes kept/, so name an output folder", parameter="output")
    sets = opened_sets(evals)
    try:
        documents = open_documents(source, reading=reading)
    except InputError:
        if as_tables(source) is None:  # an evaluation set among the files may be the reason
            _check_apart(find_files(names_of(source), reading.glob, reading.input_format).files, sets)
        raise
    _check_apart((file for reader in documents._readers for file in reader.files), sets)
    writing = _checked_writing(settings.action, writing, documents)
    with contextlib.ExitStack() as stack:
        place = None
        if output is not None:
            reads = [*documents.local_files, *(each.file.path for each in sets if each.file is not None)]
            place = stack.enter_context(new_folder(output, writing.overwrite, reads))
        scan, found = searched(documents, sets, settings, engine, clock)
        found.report["evals"]["paths"] = _paths(evals)
        if place is not None:
            with clock.stage("write"):
                for name in TABLES:
                    write_table(getattr(found, name), place / f"{name}.parquet")
                if documents.skipped is not None:
                    about = found.hits.schema.metadata
                    write_table(documents.skipped.replace_schema_metadata(about), place / "skipped.parquet")
                if settings.action != "list":
                    progress = partial(clock.report, "write")
                    write_kept(documents, place / KEPT, scan.edits(), writing, progress)
        found.report["timings"], found.report["seconds"] = clock.seconds, clock.elapsed
        if place is not None:
            (place / PAGE).write_text(page_of(found, _shown(scan, sets, settings)), encoding="utf-8")
            write_report(place, found.report, CERTIFICATE)
    return found


def searched(
    documents: Documents,
    sets: list[EvaluationSet],
    settings: ContaminationSettings,
    engine: Engine,
    clock: Clock,
    only: pa.Array | None = None,
) -> tuple[Scan, Contamination]:
    """Look for the items of evaluation sets in documents, or only in those with some ids."""
    recipe = Recipe(shingles=Shingles(settings.length, tokens=settings.tokens))
    with clock.stage("read"):
        items = read_items(sets, settings.fields, recipe)
    engine = for_text(engine, lambda: None)
    with engine.start() as runtime:
        wanted = wanted_of(items, settings.length)
        items = items._replace(tokens=items.tokens[:0])  # the rows hold them now
        scan = Scan(items, wanted, recipe, settings.action, runtime, clock)
        scan.run(documents, engine.batch_bytes, only)
    return scan, _found(scan, items, settings, documents)


def _shown(scan: Scan, sets: list[EvaluationSet], settings: ContaminationSettings) -> list[Shown]:
    """Return the items to show, each with a passage."""
    items, chosen = scan.items, best_passages(scan.passages)
    texts = texts_of_items(sets, items, settings.fields, [each.item for each in chosen])
    return [(items.sets[each.set], items.ids[each.item].as_py(), texts[each.item], each) for each in chosen]


def _paths(evals: Any) -> list[str] | None:
    """Return what opens evaluation sets again, whatever the working folder is then; None if they are in memory."""
    if not isinstance(evals, (str, list, tuple)) and not hasattr(evals, "__fspath__"):
        return None
    names = [str(name) for name in (evals if isinstance(evals, (list, tuple)) else [evals])]
    return [masked(name) if is_uri(name) else escaped(os.path.abspath(name)) for name in names]


def _check_apart(training: Iterable[File], sets: list[EvaluationSet]) -> None:
    """Refuse evaluation sets that are files of the training text."""
    files = set(identities(training))
    for each in sets:
        if each.file is not None and not files.isdisjoint(identities([each.file])):
            raise InputError(
                f"{each.file.name}: is an evaluation set and a file of the training text, so all of it would be found; "
                "move it out of the training folder, or choose the files of the training text with glob=...",
                parameter="evals",
            )


def _checked_writing(action: str, writing: Writing, documents: Documents) -> Writing:
    """Return how kept/ is written; refuse what cannot be written before all work."""
    if action == "list":
        return writing
    if not documents.rewindable:
        raise InputError("the training text is a stream and cannot be read again to write kept/; pass a table or files")
    documents._check_kept()
    if action != "drop":
        check_divisible(f"action {action!r}", documents)
        writing = rewriting(writing, documents)
    if action == "mark" and any(MARKS in reader.schema.names for reader in documents._readers):
        raise InputError(f"the training text has a column {MARKS!r} already, which --action mark would add; rename it")
    check_writing(documents, writing)
    return writing


def _found(scan: Scan, items: EvaluationItems, settings: ContaminationSettings, documents: Documents) -> Contamination:
    """Return what the scan found, as tables and as a report."""
    evals = evals_table(items, scan.wanted, scan.tally, settings.length, settings.share)
    hits = hits_table(items, scan.listed, documents._id_type)
    recipe = {"tokens": settings.tokens, "length": settings.length, "share": settings.share, **versions()}
    about = {METADATA_KEY: json.dumps(recipe).encode()}
    hits, evals = hits.replace_schema_metadata(about), evals.replace_schema_metadata(about)
    counts = {
        "documents": scan.documents,
        "documents_hit": scan.contaminated,
        "tokens": scan.tokens,
        "text_bytes": scan.text_bytes,
        "invalid_utf8": scan.invalid_utf8,
        "null_text": scan.null_text,
        **counts_of(evals),
        "grams": scan.wanted.grams,
        "hits": hits.num_rows,
        "emptied": sum(map(len, scan.emptied)),
    }
    if documents.skipped is not None:
        counts["skipped"] = documents.skipped.num_rows
    report = {
        "version": __version__,
        "kind": "certificate",
        "recipe": recipe,
        "settings": asdict(settings),
        "input": {**documents.describe(), "digest": scan.digest},
        "evals": {"paths": None, "sets": items.described},
        "counts": counts,
        "sets": sets_of(evals, items.sets),
    }
    return Contamination(hits, evals, report)
