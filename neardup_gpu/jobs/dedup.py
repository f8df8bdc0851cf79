"""The job: find the near-duplicates among documents and decide which to keep.

`run` reads as the method section of a paper: sketch, rank, collapse, collide, verify, decide, check, tabulate.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa

from .. import checks
from ..arguments import Arguments
from ..data import NO_PAIRS
from ..documents import Documents
from ..documents.reading_options import Reading, chosen_reading
from ..documents.rewritten import check_writing, infers_columns, schema_of
from ..documents.sources import Sources
from ..documents.units import NO_PLACES
from ..documents.writing_options import Writing, chosen_writing, described
from ..engine.arrays import some_rows
from ..engine.clock import Clock, Progress, with_bars
from ..engine.contract import Rows
from ..engine.memory import parse_size
from ..engine.settings import Engine, EngineName, as_engine, for_text
from ..engine.threads import on_threads
from ..errors import InputError
from ..keep_rule import FIRST, keep_columns
from ..log import log
from ..methods import MethodName
from ..methods.contract import Candidates, Join, Sketch
from ..recipe import Recipe, check_reference, choose_recipe
from ..report_page import write_page
from ..results.by_value import lost_of
from ..results.commonest import too_many_comparisons
from ..results.result import EqualResult, Result
from ..results.saving import write_result
from ..results.tables import (
    Facts,
    JobFacts,
    check_shared,
    equal_tables,
    remarks_of,
    report_of_job,
    tables_of,
    unit_parts,
)
from ..stages.decisions import (
    Decisions,
    Groups,
    Ranked,
    by_priority,
    decide,
    nearest_partners,
    proposed,
    representatives,
    unverified,
)
from ..stages.equal_units import EqualUnits
from ..stages.joining import SpooledRows
from ..stages.partners import JoinedRows, JoinLimits, TooManyComparisonsError, partners_of
from ..stages.priority import documents_by_priority
from ..stages.recall import CheckedRun, check_recall
from ..stages.reread import TextRows
from ..stages.sketching import Sketcher
from ..stages.verification import Verified, in_host_memory, nearest_pairs
from ..store.artefacts import write_report
from ..store.outputs import new_folder
from ..tasks.job import run_in_tasks
from ..tasks.workers import Workers
from . import bounded


@with_bars
def dedup(
    source: Any,
    *,
    id_column: str | None = None,
    text_columns: str | Sequence[str] | None = None,
    method: MethodName | Join | Sketch = "exact",
    threshold: float | None = None,
    keep: str = "first",
    against: Any = None,
    output: str | Path | None = None,
    engine: EngineName | Engine = "auto",
    memory: int | str | None = None,
    progress: Progress | bool | None = None,
    reading: Reading | None = None,
    writing: Writing | None = None,
    recipe: Recipe | None = None,
    workers: Workers | None = None,
) -> Result:
    """Find the near-duplicates among documents and decide which to keep.

    Parameters
    ----------
    source : path, URI, glob, list of them, a table, an array or Series of strings, or an iterable of rows
        The documents. A list of texts is a column, ``{"text": texts}``. `open_documents` describes every form.
    id_column : str, default None
        The column of ids. If None, ids are row numbers or relative paths.
    text_columns : str or sequence of str, default None
        The columns of text. If None, they are found by their names.
    method : Join, Sketch, or a name in `METHODS`, default "exact"
        How candidates are found. Each method has a class that holds its settings, such as `MinHash`.

        - "exact": compare shingles. No pair at the threshold is missed.
        - "containment": remove a document if a larger one has its text, see `Containment`. No pair is missed.
        - "minhash", "bottomk", "modm", "simhash": compare sketches.
    threshold : float in (0, 1], default None
        Minimum resemblance of a removed document to the kept one, or its containment in the kept one. If None, it is
        0.8, or 0.9 for containment. For simhash, None means that nothing is verified, and the distance decides.
    keep : str, default "first"
        Which document of a group is kept: "first" in input order, the "longest", or the first by a column, as "date",
        "date:asc" or "date:desc". Several keys with commas between them decide in this order, as in
        "score:desc,longest,first"; the report counts how often each one decided. For containment they decide among
        documents with equal numbers of distinct shingles.
    against : what `source` takes, Reference, or a list of Reference, default None
        A reference set, or several. Documents that resemble a reference document, or are contained in one, are removed.
        The reference sets themselves are left untouched. They are read like the input, unless a `Reference` says how.
        If a set has a name, as each of several has, the column `reference` of the tables says which one it is.
    output : path, default None
        A folder to write: documents.parquet, pairs.parquet, kept/ and report.json. It appears when it is complete. A
        job of tasks writes documents/, pairs/ and kept/ in parts.
    engine : Engine, "auto", "cpu", "gpu" or "reference", default "auto"
        What the job computes with. Changes no result.
    memory : int or str, default None
        A bound on the resident memory of all processes of the job together, such as "2GB". Unless the job fits
        however much is alike, it runs as tasks over files in a temporary folder. The decisions are the same. Requires
        the backend "cpu", and documents that can be read more than once. Documents that are in memory already do not
        count, nor do the tables of the result of tasks, which are read when they are first used. Excludes `workers`.
    progress : bool or callable, default None
        True shows bars, on stderr or in a notebook. A function is called with the name of a stage, the number of items
        done (documents, pairs, comparisons or tasks), and their total, or None if the total is not known. If files do
        not state their number of documents, it is estimated from the bytes read so far. The number of comparisons is an
        estimate, too. The function is called from one thread at a time, which may not be the caller's thread while
        several threads write the kept rows. The log has a line per stage in any case.
    reading : Reading, default None
        How the documents are read: format, encoding, HTML, rows that cannot be read.
    writing : Writing, default None
        What is written and reported: format and size of files, ids only, overwriting, the page, the check of recall.
    recipe : Recipe, default None
        All settings that change results: shingles, seed, clustering, listed pairs, and the unit that is compared.
        Excludes `method`, `threshold` and `keep`, which a recipe holds as well.
    workers : Workers, default None
        If given, the job is cut into tasks over files in a work folder, which several processes or machines run. A job
        that was interrupted continues when it is started again with the same work folder.

    Returns
    -------
    Result
        The decisions, the pairs and the report. For min-hash with weights, `resemblance` is the weighted resemblance,
        which decided the pairs: see `MinHash`.

    Raises
    ------
    NeardupError
        If the input cannot be read, the output cannot be written, or the settings are impossible; see `errors`.

    Notes
    -----
    Memory: a process of about 300 MB, some batches, the listed pairs and, whatever the length of the text, 160 to 220
    bytes per document (290 for min-hash), and two and a half times its id if that is a string. The exact method also
    takes a counter of one byte per word, up to 1.06 GiB; 48 bytes per posting while postings are sorted, in parts
    beyond 1 GiB, and 16 afterwards; and 4 bytes for each sum that two sizes of sets may have. Containment takes another
    byte per word, up to 256 MiB. `memory` bounds all of it. Time: two passes over the input if `output` is given, else
    one. On a GPU, a batch that does not fit in its memory is halved.

    Memory of tasks: `task_memory` per task, and names of files and counts in the process that calls `dedup`. Keys,
    postings and pairs that do not fit a task are divided, or read block by block. In addition a task holds up to about
    100 bytes for each document of its slice or range of ranks, and a bit for each document of the job; smaller slices
    and more partitions make it less. Crowds, documents that share a rare shingle with too many others, are joined in
    one task, at 256 bytes per member and 160 per verified pair of members. Document frequencies that are counted for
    TF-IDF take up to half of each task that weighs, at 32 bytes per distinct token or shingle. The job ends with an
    error if crowds or frequencies need more than a task may hold. `comparisons`, `candidate_pairs` and the number of
    unlisted pairs in the report differ from those of a job in memory; decisions, pairs and kept rows are the same.

    Examples
    --------
    >>> texts = ["to be or not to be that is the question"] * 2 + ["whether it is nobler in the mind to suffer"]
    >>> dedup({"text": texts}).removed.column("duplicate_of").to_pylist()
    [0]
    >>> from neardup_gpu import Recipe, Shingles
    >>> dedup({"text": texts}, recipe=Recipe(shingles=Shingles(3), method="minhash")).removed.num_rows
    1
    """
    recipe = choose_recipe(recipe, "exact", units=True, method=method, threshold=threshold, keep=keep)
    arguments = Arguments(
        source=source,
        against=against,
        reading=chosen_reading(reading, id_column, text_columns, holds=recipe.shingles.token_kind.holds),
        recipe=recipe,
        output=checks.optional(checks.path, "output", output),
        writing=chosen_writing(writing, "dedup"),
        engine=as_engine(engine),
        memory=None if memory is None else parse_size(memory, "memory"),
        progress=progress,
    )
    check_reference(arguments.recipe, against)
    if arguments.writing.shared:
        check_shared(arguments.recipe)
    if workers is not None:
        return run_in_tasks(arguments, checks.instance("workers", workers, Workers))
    return _run_here(arguments)


def _run_here(arguments: Arguments) -> Result:
    """Run a job in this process; within a bound of memory, as tasks if it does not fit."""
    engine, writing, output, bound = arguments.engine, arguments.writing, arguments.output, arguments.memory
    num_checked, clock = arguments.num_checked, Clock(arguments.progress)
    recipe, statistics = arguments.recipe.with_statistics(None)
    engine.resolve()  # what cannot run here is refused before anything is opened
    sources = arguments.opened()
    engine = for_text(engine, lambda: bounded.text_bytes(sources))
    backend = engine.resolve()
    documents = sources.documents
    writing = arguments.writing_for(sources)
    if bound is not None and (division := bounded.division_of(arguments, sources, recipe)) is not None:
        bounded.tell(division.need, division)
        return bounded.decided_in_tasks(division, arguments, sources)
    limits = JoinLimits(engine.max_comparisons, bounded.candidates_at_once(arguments, sources, recipe))
    if backend == "cpu" and (need := bounded.foretold(sources, recipe, num_checked)) is not None:
        bounded.tell(need)
    with contextlib.ExitStack() as stack:
        stack.enter_context(on_threads(engine.threads))
        folder, reads = None, arguments.files_read(sources)
        if output is not None:
            folder = stack.enter_context(new_folder(output, writing.overwrite, reads))
        if folder is not None and not documents.rewindable and not writing.ids_only:
            raise InputError(
                "a stream cannot be read again to write the kept rows; pass a table, no output, or ids_only=True"
            )
        if folder is not None and not writing.ids_only:
            documents._check_kept()
        check_writing(documents, writing)
        schema = None if folder is None else _columns_to_write(documents, writing, clock)
        sources.check_ids_early()
        runtime = stack.enter_context(engine.start())
        place = engine.temp_dir or folder
        first_pass = None
        if recipe.method.needs_statistics and statistics is None:
            first_pass = stack.enter_context(contextlib.closing(recipe.method.first_pass(runtime, place)))
        spool = None
        if recipe.verifies:
            again = None
            if sources.rewindable and recipe.ignore_common is None:
                size = partial(bounded.text_bytes, sources)
                again = TextRows(arguments.opened, recipe, runtime, engine.batch_bytes, place, size)
            most = runtime.shares.spool // (1 if first_pass is None else 2)
            spool = stack.enter_context(runtime.spool(place, most, again))
        spare = None
        if recipe.ignore_common is not None:
            spare = stack.enter_context(runtime.spool(place, runtime.shares.spool))
        sketcher = Sketcher(
            *(recipe, runtime, clock, statistics, first_pass, spool),
            max_bytes=engine.batch_bytes,
            spare=spare,
            alone=recipe.ignore_common is None,  # the digest of common shingles has their words
            sized=writing.shared,
        )
        if recipe.only_equal and recipe.unit.divides:
            result: Result = run_equal(sources, sketcher)
        else:
            result = run(sources, sketcher, num_checked, limits, writing.counts)
        result.report.update(lost_of(result.documents))
        if writing.by is not None:
            with clock.stage("read"):
                result.report.update(result.by(writing.by).to_report(writing.by))
        if folder is None:
            result.report["seconds"] = clock.elapsed
        else:
            if told := described(writing):
                result.report["written"] = told
            write_result(folder, result, writing, clock, schema)
            if writing.report:
                write_page(folder, lambda: result._run(output))
            write_report(folder, result.report)
    return result


def run(
    sources: Sources,
    sketcher: Sketcher,
    num_checked: int,
    limits: JoinLimits,
    counts: bool = False,
) -> Result:
    """Do the whole job except writing; `counts` is that of `tables_of`."""
    runtime, clock = sketcher.runtime, sketcher.clock
    sketched = sketcher.sketch_all(sources, columns=keep_columns(sketcher.recipe.keep))
    spool = cast("Rows | None", sketcher.spool)
    recipe = sketcher.recipe  # which names its statistics by now
    for remark in remarks_of(recipe, sources, vars(sketched.counts)):
        log.warning(remark)
    measure = recipe.measure_by(sketcher.statistics)
    runtime.release()
    with clock.stage("collide"):
        number = len(sketched.ids)
        clock.report("collide", 0, number)
        sizes = None if spool is None or not recipe.method.measure.directed else np.diff(spool.offsets)
        ranked = by_priority(sketched, recipe.keep, sizes)
        groups = representatives(ranked, sketched, recipe, runtime, ordered=num_checked > 0)
        sketched = sketched._replace(keys=None, document_hashes=None, text_hashes=None)  # the candidates need the room
        runtime.release()
        candidates = proposed(groups, recipe, runtime)
        clock.report("collide", number, number)
    runtime.release()
    found = None
    rows = some_rows(ranked.rows, groups.ranks)
    spooled = None if spool is None else SpooledRows(spool, rows)
    if spooled is not None:
        try:
            found = partners_of(
                JoinedRows(
                    *(groups.keys, groups.pinned, spooled, groups.num_tokens, groups.owner),
                    read_later=num_checked > 0,
                ),
                candidates,
                recipe,
                measure,
                clock,
                runtime,
                limits,
            )
        except TooManyComparisonsError as error:
            raise too_many_comparisons(error, rows, sketched, sources, recipe) from None
        listed, deciding, near = found.listed, found.deciding, found.near
    else:
        listed = deciding = unverified(groups, candidates.pairs, recipe, runtime)
        near = nearest_pairs(int(groups.pinned.sum()), len(groups.ranks), in_host_memory(listed, runtime))
    with clock.stage("decide"):
        clock.report("decide", 0, number)
        nearest = nearest_partners(ranked, groups, near, recipe)
        decisions = decide(ranked, groups, deciding, listed, nearest, recipe, runtime)
        clock.report("decide", number, number)
    runtime.release()
    sampled = None
    if num_checked:
        with clock.stage("check"):
            crowded = runtime.fetch(candidates.crowded) & measure.weighted  # others were joined
            assert spooled is not None
            seen = CheckedRun(spooled, groups, decisions, measure, crowded)
            sampled = runtime.run(check_recall, seen, recipe, num_checked, clock, runtime)
            del seen
    groups = replace(groups, keys=None, order=None)
    runtime.release()
    with clock.stage("decide"):
        facts = Facts.of(ranked, groups, decisions, sketched, recipe, sizes)
        told = JobFacts(sketched.counts, candidates, found, recipe, runtime, sources)
        with ThreadPoolExecutor(1, "neardup-tables") as beside:
            tables = beside.submit(
                tables_of, facts, recipe, sources.documents.places(), against=sources.known_sets, counts=counts
            )
            report = report_of_job(facts, told, sampled)
    return Result(
        documents=tables.result().documents,
        pairs=tables.result().pairs,
        units=tables.result().units,
        report={**report, "timings": clock.seconds},
        recipe=recipe,
        frequencies=sketcher.statistics,
        skipped=sources.skipped,
        sources=sources,
        facts=facts,
    )


def run_equal(sources: Sources, sketcher: Sketcher) -> EqualResult:
    """Do the whole job except writing, for a recipe with `only_equal`: `run` without what only similar units need."""
    recipe, runtime, clock = sketcher.recipe, sketcher.runtime, sketcher.clock
    units = sketcher.equal = EqualUnits(recipe.keep == FIRST)
    sketched = sketcher.sketch_all(sources, columns=keep_columns(recipe.keep))
    for remark in remarks_of(recipe, sources, vars(sketched.counts)):
        log.warning(remark)
    known, number = sketched.num_known_documents, len(sketched.ids)
    with clock.stage("decide"):
        clock.report("decide", 0, number)
        tokens = np.concatenate([np.empty(0, np.int64), *sketched.counts.document_tokens])
        order = documents_by_priority(recipe.keep, tokens, sketched.columns, sketched.categories) + known
        fates = units.decide(np.concatenate([np.arange(known), order]), recipe)
        clock.report("decide", number, number)
        facts = Facts(
            *_nothing(units.num_compared(recipe.unit.min_words)),
            ids=sketched.ids,
            places=NO_PLACES,
            fates=fates.documents,
            num_known=known,
        )
        against = sources.known_sets
        tables = equal_tables(facts, fates, recipe, sources.documents.places(), against=against)
        candidates = Candidates(NO_PAIRS, 0, 0, np.empty(0, bool))
        report = report_of_job(facts, JobFacts(sketched.counts, candidates, None, recipe, runtime, sources), None)
    return EqualResult(
        tables.documents,
        tables.pairs,
        {**report, "timings": clock.seconds},
        recipe,
        skipped=sources.skipped,
        sources=sources,
        facts=facts,
        parts=lambda: unit_parts(units, sketched.ids, recipe, against=against),
    )


def _nothing(representatives: int) -> tuple[Ranked, Groups, Decisions]:
    """Return what `Facts` has of units, but for their number: they are decided about by their groups."""
    rows, values = np.empty(0, np.int64), np.empty(0)
    ranks = np.broadcast_to(np.int64(0), representatives)
    groups = Groups(rows, None, None, ranks, None, None, rows.astype(bool), rows)
    return Ranked(0, rows, rows), groups, Decisions(rows, values, rows.astype(bool), Verified(NO_PAIRS, values), None)


def _columns_to_write(documents: Documents, writing: Writing, clock: Clock) -> pa.Schema | None:
    """The columns of all files, where `rewritten.schema_of` reads them to find out; what cannot be written is found
    before all work."""
    if not writing.rewrites or not infers_columns(documents, writing):
        return None
    with clock.stage("columns"):
        return schema_of(documents, writing)
