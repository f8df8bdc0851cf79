"""Check a training text for the items of evaluation sets: open, read the items, scan, tell, write."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import xxhash

from .. import checks
from ..arguments import Arguments, opened_set
from ..documents import Documents, open_documents
from ..documents.columns import CONTAMINATED, listed
from ..documents.files import File
from ..documents.find import find_files
from ..documents.local_names import escaped
from ..documents.memory import as_tables
from ..documents.reading_options import Reading, chosen_reading
from ..documents.references import references_of
from ..documents.rewritten import write_kept
from ..documents.skipped import check_skipped
from ..documents.source import names_of
from ..documents.sources import Sources
from ..documents.units import check_action
from ..documents.writing_options import DECISIONS, Writing, chosen_writing
from ..engine.clock import Clock, Progress, with_bars
from ..engine.settings import Engine, EngineName, as_engine, for_text
from ..errors import InputError, OutputError, ParameterError
from ..results.by_value import FILE, check_by
from ..results.nothing_removed import warn_if_empty
from ..store.artefacts import CERTIFICATE, KEPT, write_report
from ..store.parquet import write_tables
from ..store.uris import is_uri, masked
from ..tasks.begin import begun
from ..tasks.workers import Workers
from ..text.token_kinds import KINDS, TokensName
from .finding import Check, Scanned, found_by
from .in_tasks import ITEMS, scan_in_tasks
from .items import EvaluationItems, EvaluationSet, identities, opened_sets, reference_set, texts_of_items
from .page import PAGE, Shown, page_of
from .scanning import Passage, Scan
from .settings import Action, ContaminationSettings
from .verdicts import TABLES, Contamination


@with_bars
def contaminated(
    source: Any,
    evals: Any = None,
    *,
    id_column: str | None = None,
    text_columns: str | Sequence[str] | None = None,
    fields: str | Sequence[str] | None = None,
    tokens: TokensName = "words",
    length: int | None = None,
    within: str | Sequence[str] = (),
    against: Any = None,
    share: float = 0.5,
    action: Action = "list",
    output: str | Path | None = None,
    engine: EngineName | Engine = "auto",
    progress: Progress | bool | None = None,
    reading: Reading | None = None,
    writing: Writing | None = None,
    workers: Workers | None = None,
) -> Contamination:
    """Find the items of evaluation sets in a training text: where each stands, and who would call it contaminated.

    Parameters
    ----------
    source : path, URI, glob, list of them, or a table
        The training text. It is read once, and once more if kept/ is written.
    evals : path, URI, folder, list of them, or a dict of tables, default None
        The evaluation sets: JSON lines, Parquet, CSV or Arrow, a row per item. Each file is a set; in memory, each
        table of a dict is one, by its name. None if there is only a reference set.
    id_column : str, default None
        The column of ids of the training text. If None, ids are row numbers or relative paths.
    text_columns : str or sequence of str, default None
        The columns of the training text. If None, they are found by their names.
    fields : str or sequence of str, default None
        The fields of the evaluation sets to look for, such as "question" and "choices". Each is looked for on its own
        and, if there are several, all together, one after another. If None, each field that holds text.
    tokens : str, default "words"
        What a token is: "words", "letters", "lines", "code" or "ids"; see `Shingles`. For "ids", fields are lists of
        integers, and places count integers of the list, in place of bytes.
    length : int, default None
        The shortest run of tokens that counts, at most 64. If None, it is 40 letters, 2 lines, or 8 tokens of another
        kind. A shorter item counts if all of it occurs, from 5 tokens on, or 25 letters, or 2 lines.
    within : str or sequence of str, default ()
        Columns of the training text and of all evaluation sets. Documents are compared only with items of equal
        values; null equals nothing.
    against : path, URI, glob, table or `Reference`, default None
        A reference set, such as held-out documents, read like the training text: each document is an item of the set
        "against", or of the name of the `Reference`. It is left untouched.
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
        How kept/ is written, and a column `by` whose values hits are counted for, in the report, in the summary and on
        the page. `overwrite`, `output_format`, `shard_bytes` and `by` count.
    workers : Workers, default None
        If given, the training text is searched by tasks over slices of it, which several processes or machines run. A
        check that was interrupted continues when it is started again with the same work folder. The output is the
        same, but kept/ has a file per slice. Each task holds all items.

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
    settings = ContaminationSettings(
        fields=fields,
        tokens=tokens,
        length=length,  # type: ignore[arg-type]  # which chooses a number
        within=within,
        share=share,
        action=action,
    )
    holds, engine = KINDS[settings.tokens].holds, as_engine(engine)
    reading = chosen_reading(reading, id_column, text_columns, holds=holds)
    writing = chosen_writing(writing, "contaminated", DECISIONS)
    output = checks.optional(checks.path, "output", output)
    clock = Clock(progress, noun=None if workers is None else "task")
    if output is None and settings.action != "list":
        raise OutputError(f"action {settings.action!r}: writes kept/, so name an output folder", parameter="output")
    if evals is None and against is None:
        raise ParameterError("evals: none given; name files of evaluation sets, or a reference set with against=...")
    sets = [] if evals is None else opened_sets(evals)
    counted = [] if writing.by in (None, FILE) else [writing.by]
    try:
        documents = open_documents(source, reading=reading, other_columns=[*settings.within, *counted])
    except InputError:
        if as_tables(source) is None:  # an evaluation set among the files may be the reason
            _check_apart(find_files(names_of(source), reading.glob, reading.input_format).files, sets)
        raise
    for each in references_of(against):
        sets.append(reference_set(each.name or "against", opened_set(each, reading, settings.within)))
    _check_apart((file for reader in documents._readers for file in reader.files), sets)
    _check_columns(documents, sets, settings.within)
    if writing.by is not None:
        check_by(writing.by, documents)
    writing = check_action(action, CONTAMINATED, writing, documents)
    with clock.stage("read"):
        check = Check.of(documents, sets, settings, writing.by)
    arguments = Arguments(
        source=source,
        reading=reading,
        recipe=check.recipe,
        output=output,
        writing=writing,
        engine=engine,
        progress=progress,
    )
    given, reads = (workers, Sources(documents), clock, [ITEMS]), [file.path for each in sets for file in each.files]
    with begun("contaminated", arguments, *given, reads, unused=("partitions",)) as (job, place):
        if job is not None and place is not None:
            scanned = scan_in_tasks(check, job, place)
        else:
            scanned = scan_here(check, engine, clock)
            if place is not None and settings.action != "list":
                with clock.stage("write"):
                    edits = scanned.findings.edits(settings.action)
                    write_kept(documents, place / KEPT, edits, writing, partial(clock.report, "write"))
        found = found_by(check, scanned)
        warn_if_empty(found.report["counts"])
        found.report["evals"]["paths"] = _paths(evals)
        if against is not None:
            references = ((each.name, each.reference) for each in sets if each.reference is not None)
            found.report["against"] = [{"name": name, **documents.describe()} for name, documents in references]
        if place is not None:
            with clock.stage("write"):
                write_tables(place, {name: getattr(found, name) for name in TABLES}, scanned.skipped)
        found.report["timings"], found.report["seconds"] = clock.seconds, clock.elapsed
        if place is not None:
            shown = _shown(scanned.findings.passages, check.items, sets, settings)
            (place / PAGE).write_text(page_of(found, shown), encoding="utf-8")
            write_report(place, found.report, CERTIFICATE)
    return found


def scan_here(check: Check, engine: Engine, clock: Clock, only: pa.Array | None = None) -> Scanned:
    """Look for the items in the training text, or only in its documents with some ids, in this process.

    Raises
    ------
    InputError
        If no document can be read.
    """
    documents, texts = check.documents, xxhash.xxh3_128()
    with for_text(engine, lambda: None).start() as runtime:
        how = check.settings.action, runtime, clock, check.by, check.settings.within
        scan = Scan(check.items, check.wanted, check.recipe, *how)
        with clock.stage("search"):
            findings = scan.run(documents, engine.batch_bytes, texts.update, only)
    if findings.counts["documents"] == 0:
        check_skipped(documents.skipped)
    id_type = pa.uint64() if "wide" in documents._integers.found else documents._id_type
    return Scanned(findings, texts.hexdigest(), documents.skipped, id_type, {})


def _shown(
    chosen: list[Passage], items: EvaluationItems, sets: list[EvaluationSet], settings: ContaminationSettings
) -> list[Shown]:
    """Return the items to show, each with a passage."""
    texts = texts_of_items(sets, items, settings, [each.item for each in chosen])
    return [(items.sets[each.set], items.ids[each.item].as_py(), texts[each.item], each) for each in chosen]


def _paths(evals: Any) -> list[str] | None:
    """Return what opens evaluation sets again, whatever the working folder is then; None if they are in memory."""
    if evals is None:
        return []
    if not isinstance(evals, (str, list, tuple)) and not hasattr(evals, "__fspath__"):
        return None
    names = [str(name) for name in (evals if isinstance(evals, (list, tuple)) else [evals])]
    return [masked(name) if is_uri(name) else escaped(os.path.abspath(name)) for name in names]


def _check_apart(training: Iterable[File], sets: list[EvaluationSet]) -> None:
    """Refuse evaluation sets that are files of the training text, and two of the same name."""
    files, names = set(identities(training)), set[str]()
    for each in sets:
        for file in each.files:
            if not files.isdisjoint(identities([file])):
                raise InputError(
                    f"{file.name}: is an evaluation set and a file of the training text, so all of it would be found; "
                    "move it out of the training folder, or choose the files of the training text with glob=...",
                    parameter="evals",
                )
        if each.name in names:
            raise InputError(f"against: two sets are called {each.name!r}; give a Reference with a name of its own")
        names.add(each.name)


def _check_columns(documents: Documents, sets: list[EvaluationSet], within: Sequence[str]) -> None:
    """Refuse columns of `within` that the training text or an evaluation set lacks, or whose values are not plain."""
    for name in within:
        documents._check_plain(name, "within")
        for each in sets:
            names = each.reader.schema.names
            if each.reference is not None:
                each.reference._check_plain(name, "within")
            elif name not in names:
                raise InputError(f"{each.name}: no column {name!r} to compare within; it has {listed(names)}")
