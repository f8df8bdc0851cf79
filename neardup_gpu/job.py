"""The job: find the near-duplicates among documents and decide which to keep.

`run` reads as the method section of a paper: sketch, rank, collapse, collide, verify, decide, check, tabulate.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from . import bounded, checks
from .commonest import too_many_comparisons
from .decisions import (
    by_priority,
    decide,
    nearest_partners,
    proposed,
    representatives,
    unverified,
)
from .documents import Documents, open_documents
from .documents.reading_options import MAX_DOCUMENT_BYTES, Reading
from .documents.rewritten import check_types, infers_columns, schema_of
from .documents.writing_options import Writing
from .engine import heap
from .engine.arrays import some_rows
from .engine.clock import Clock, Progress, with_bars
from .engine.settings import Engine, as_engine
from .engine.threads import on_threads
from .errors import InputError, ParameterError
from .log import log
from .nearest_reference import nearest_pairs
from .partners import TooManyComparisonsError, partners_of
from .priority import keep_column
from .recall import Run, check_recall, choose_check
from .recipe import Recipe, check_reference, choose_recipe
from .report_page import write_page
from .report_page.page import check_installed
from .result import Report, Result
from .saving import write_result
from .settings import arguments_for
from .sketching import Sketcher
from .store.artefacts import write_report
from .store.outputs import new_folder
from .tables import Facts, Job, all_skipped, report_of, tabulate
from .verification import in_host_memory

if TYPE_CHECKING:
    import pyarrow as pa

    from .engine.contract import Rows
    from .methods.contract import Join, Sketch
    from .methods.frequencies import Frequencies


@with_bars
def dedup(
    source: Any = None,
    *,
    texts: Any = None,
    text_columns: str | list[str] | None = None,
    id_column: str | None = None,
    html: bool | Literal["tree"] = False,
    encoding: str | None = None,
    glob: str | None = None,
    on_error: str = "stop",
    max_document_bytes: int = MAX_DOCUMENT_BYTES,
    null_values: str | Sequence[str] | None = None,
    input_format: str | None = None,
    delimiter: str | None = None,
    header: bool = True,
    against: Any = None,
    direction: str | None = None,
    only_against: bool = False,
    method: str | Join | Sketch = "exact",
    threshold: float | None = None,
    shingle_size: int = 5,
    shingling: str = "set",
    stop_words: Any = None,
    bucket_limit: int | None = None,
    seed: int = 1,
    keep: str = "first",
    cluster: str = "greedy",
    max_partners: int | None = 64,
    recipe: Recipe | None = None,
    frequencies: Frequencies | str | Path | None = None,
    output: str | Path | None = None,
    overwrite: bool = False,
    output_format: str | None = None,
    shard_bytes: int | str | None = None,
    ids_only: bool = False,
    engine: str | Engine = "auto",
    temp_dir: str | Path | None = None,
    batch_bytes: int | None = None,
    memory: int | str | None = None,
    max_comparisons: int | None = None,
    check: int | None = None,
    report: bool = False,
    progress: Progress | bool | None = None,
) -> Result:
    """Find the near-duplicates among documents and decide which to keep.

    Parameters
    ----------
    source : path, URI, glob, list of them, or a table, default None
        The documents. `open_documents` describes every form.
    texts : list of str, array or Series of strings, default None
        The texts themselves, instead of `source`. Their ids are row numbers.
    text_columns : str or list of str, default None
        The columns of text. If None, they are found by their names.
    id_column : str, default None
        The column of ids. If None, ids are row numbers or relative paths.
    html : bool or "tree", default False
        Whether the text is HTML. If so, its visible text is compared; "tree" finds it with a parser's tree. See
        `open_documents`.
    encoding : str, default None
        The encoding of text files, CSV, JSON lines and bytes that are not UTF-8, such as "windows-1251". For HTML, the
        encoding of pages that name none. See `open_documents`.
    glob : str, default None
        Pattern of the files of a folder to read, such as "*.py".
    on_error : "stop" or "skip", default "stop"
        What to do with a row that cannot be read:

        - "stop": end the job with an error.
        - "skip": list the row and leave it out.
    max_document_bytes : int, default 1 GiB
        Maximum size of a document. A longer document counts as a row that cannot be read.
    null_values : str or list of str, default None
        Texts that mark a missing value in a column of CSV or JSON lines that is compared, such as the `keep` column. If
        None, they are "", "NA", "n/a", "NULL", "nan" and the others of pandas.read_csv. If all other values are
        numbers, they are compared as numbers.
    input_format : str, default None
        Read files as this format, whatever their names: "jsonl", "csv" and others, see `open_documents`.
    delimiter : str, default None
        The delimiter between CSV fields: a character, "tab" or "auto". If None, it is a comma, or a tab for .tsv.
    header : bool, default True
        Whether the first row of CSV names the columns. Without a header they are f0, f1 and so on.
    against : path, URI, glob, list of them, or a table, default None
        A reference set. Documents that resemble a reference document, or are contained in one, are removed. The
        reference set itself is left untouched.
    direction : "in", "of" or "either", default None
        For containment: which document of a pair with the reference set is contained in the other one. If None, it is
        "in". Pairs of two documents of the input are compared as without it.

        - "in": the document of the input is contained in the document of `against`.
        - "of": the document of `against` is contained in the document of the input, as a test item in a page that
          quotes it.
        - "either": one of the two is contained in the other.
    only_against : bool, default False
        Remove a document only if it resembles a document of `against`, which `duplicate_of` then names. Documents of
        the input are not compared with one another, so copies within the input are kept. Excludes `cluster`.
    method : Join, Sketch, or a name in `METHODS`, default "exact"
        How candidates are found. The exact method and containment miss no pair at the threshold. The other methods
        compare sketches. Containment removes a document if a larger one has its text, see `Containment`.
    threshold : float in (0, 1], default None
        Minimum resemblance of a removed document to the kept one, or its containment in the kept one. If None, it is
        0.8, or 0.9 for containment. For simhash, None means that nothing is verified, and the distance decides.
    shingle_size : int from 1 to 64, default 5
        Number of tokens in a shingle.
    shingling : "set", "bag", "circular" or "spots", default "set"
        How shingles are made; see `Shingles`.

        - "set": a shingle counts once, however often it occurs.
        - "bag": repeats count.
        - "circular": shingles continue from the end of a text at its beginning.
        - "spots": stop words, each with the next `shingle_size` words that are not stop words.
    stop_words : str, path or list of str, default None
        For spots only: a language, a file of words, or the words themselves; "en" if None.
    bucket_limit : int, default None
        Maximum number of documents of a bucket, the first by priority, that are all compared with one another. If None,
        the method chooses it. If pairs are verified, larger buckets are joined by their shingles. Weighted shingles are
        not joined; then the report counts the pairs that are not compared. The exact method has no buckets.
    seed : int in [0, 2**64), default 1
        Seed for all random constants.
    keep : str, default "first"
        Which document of a group is kept: "first" in input order, the "longest", or the first by a column, as "date",
        "date:asc" or "date:desc". For containment it decides among documents with equal numbers of distinct shingles.
    cluster : "greedy" or "components", default "greedy"
        Which documents are removed:

        - "greedy": a document is removed exactly when it has a pair with a document that is already kept.
        - "components": each connected component of pairs keeps its first document.
    max_partners : int, default 64
        Pairs of a document are listed with at most `max_partners` documents of better priority and, if it is removed,
        with at most `max_partners` kept documents. None lists all pairs. The number does not change which documents
        are kept. A removed document names the listed kept document that it resembles most. It has no effect if nothing
        is verified.
    recipe : Recipe, default None
        A complete recipe. Excludes method, threshold, shingle_size, shingling, stop_words, bucket_limit, seed, keep,
        cluster, max_partners, direction and only_against.
    frequencies : Frequencies or path of such a file, default None
        Document frequencies for the weighting "tfidf". If None, they are counted in the input and in `against`.
    output : path, default None
        A folder to write: documents.parquet, pairs.parquet, kept/ and report.json. It appears when it is complete.
    overwrite : bool, default False
        Replace the file or folder at `output`.
    output_format : "parquet", "jsonl", "jsonl.gz", "jsonl.zst" or "arrow", default None
        The format of kept/. If None, it is the format of the input.
    shard_bytes : int or str, default None
        Write kept/ in files of about this size, such as "1GB", which hold the rows of all input files one after
        another. If None, kept/ has one file per input file.
    ids_only : bool, default False
        Write kept_ids.parquet, with the ids of kept documents, instead of kept/.
    engine : Engine, "auto", "cpu", "gpu" or "reference", default "auto"
        Where to run. Changes no result.
    temp_dir : path, default None
        Folder where shingles wait for verification, 8 bytes each. If None, it is next to `output`, or in the
        system's temporary folder if there is no output. With a GPU they wait in its memory, as far as they fit there.
    batch_bytes : int, default None
        Bytes of text to read at a time. Changes no result. If None, it is 4 MiB; with a GPU, the most that fits its
        memory, up to 256 MiB.
    memory : int or str, default None
        A bound on the resident memory of all processes of the job together, such as "2GB". Data that exceeds it is
        divided. A job that does not fit at all runs as tasks over files in a temporary folder, in `temp_dir` or next to
        `output`; it writes tables and kept/ in parts. The decisions are the same. Requires the backend "cpu", and
        documents that can be read more than once. Documents that are in memory already do not count.
    max_comparisons : int, default None
        End with an error after this number of comparisons of two documents that share a shingle. None sets no limit. It
        has no effect if nothing is verified, nor on weighted shingles, which are not joined. Excludes `memory`.
    check : int, default None
        Number of documents sampled to estimate the recall; 0 for none. If None, it is 200, or 0 for the exact method
        and containment, which miss no pair. It has no effect if nothing is verified.
    report : bool, default False
        Write report.html into `output` as well, a page that shows the result. For this the input is read once more. It
        needs ``pip install 'neardup-gpu[report]'``, and about 600 bytes of memory per document.
    progress : bool or callable, default None
        True shows bars, on stderr or in a notebook. A function is called with the name of a stage, the number of items
        done (documents, pairs or comparisons), and their total, or None if the total is not known. If files do not
        state their number of documents, it is estimated from the bytes read so far. The number of comparisons is an
        estimate, too. The function is called from one thread at a time, which may not be the caller's thread while
        several threads write the kept rows. The log has a line per stage in any case.

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

    Examples
    --------
    >>> texts = ["to be or not to be that is the question"] * 2 + ["whether it is nobler in the mind to suffer"]
    >>> dedup(texts=texts).removed.column("duplicate_of").to_pylist()
    [0]
    """
    output, overwrite = checks.optional(checks.path, "output", output), checks.flag("overwrite", overwrite)
    temp_dir = checks.optional(checks.path, "temp_dir", temp_dir)
    batch_bytes = checks.optional(checks.integer, "batch_bytes", batch_bytes, 1)
    max_comparisons = checks.optional(checks.integer, "max_comparisons", max_comparisons, 1)
    bound = None if memory is None else bounded.size_of(memory, max_comparisons)
    with_page = checks.flag("report", report)
    if with_page:
        check_page(output)
    writing = Writing(output_format=output_format, shard_bytes=shard_bytes, ids_only=ids_only)
    recipe = choose_recipe(
        recipe,
        usual="exact",
        method=method,
        threshold=threshold,
        shingle_size=shingle_size,
        shingling=shingling,
        stop_words=stop_words,
        bucket_limit=bucket_limit,
        direction=direction,
        seed=seed,
        keep=keep,
        cluster=cluster,
        max_partners=max_partners,
        only_against=only_against,
    )
    check_reference(recipe, direction, against)
    num_checked = choose_check(check, recipe)
    clock, engine = Clock(progress), as_engine(engine)
    asked = recipe
    recipe, statistics = recipe.with_statistics(frequencies)
    backend = engine.resolve()  # before anything is opened
    reading = arguments_for(Reading, locals())
    documents, reference = opened(source, texts, against, reading, recipe)
    room, divisible = None, False

    def in_tasks(need: bounded.Need, division: bounded.Division) -> Result:
        bounded.tell(need, division)
        return bounded.decided_in_tasks(
            division,
            source,
            (documents, reference),
            texts=texts,
            against=against,
            recipe=asked,
            frequencies=frequencies,
            output=output,
            overwrite=overwrite,
            engine=engine,
            temp_dir=temp_dir,
            max_comparisons=max_comparisons,
            check=check,
            report=with_page,
            progress=progress,
            **reading,
            output_format=output_format,
            shard_bytes=shard_bytes,
            ids_only=ids_only,
        )

    if bound is None:
        need = bounded.foretold(documents, reference, recipe, num_checked) if backend == "cpu" else None
    else:
        fit = partial(
            bounded.fit, bound, documents, reference, recipe, engine, num_checked, tables=True, page=with_page
        )
        need, room, division, divisible = fit()
        if division is not None:
            return in_tasks(need, division)
    if need is not None:
        bounded.tell(need)
    result = None
    going_on = contextlib.suppress(*([] if isinstance(progress, bounded.GoingOn) else [bounded.ExceededError]))
    with going_on, contextlib.ExitStack() as stack:
        stack.enter_context(on_threads(engine.threads))
        folder, reads = None, files_read(documents, reference, frequencies)
        if output is not None:
            folder = stack.enter_context(new_folder(output, overwrite, reads))
        if folder is not None and not documents.rewindable and not writing.ids_only:
            raise InputError(
                "a stream cannot be read again to write the kept rows; pass a table, no output, or ids_only=True"
            )
        if folder is not None and not writing.ids_only:
            documents._check_kept()
        check_writing(documents, writing)
        schema = None if folder is None else _columns_to_write(documents, writing, clock)
        documents.check_ids_early("input")
        if reference is not None:
            reference.check_ids_early("reference set")
        runtime = stack.enter_context(engine.start())
        if bound is not None:
            stack.enter_context(heap.freed_at_once())
        if room is not None:
            runtime.shares = runtime.shares.within(room)
            batch_bytes = min(runtime.shares.batch, batch_bytes or runtime.shares.batch)
        place = temp_dir or folder
        first_pass = None
        if recipe.method.needs_statistics and statistics is None:
            first_pass = stack.enter_context(contextlib.closing(recipe.method.first_pass(runtime, place)))
        spool = None
        if recipe.verifies:
            spool = stack.enter_context(runtime.spool(place, runtime.shares.spool // (1 if first_pass is None else 2)))
        sketcher = Sketcher(recipe, runtime, clock, statistics, first_pass, spool, max_bytes=batch_bytes)
        with contextlib.nullcontext() if bound is None else bounded.watched(bound, divisible, clock):
            result = run(documents, reference, sketcher, num_checked, max_comparisons)
        if folder is None:
            result.report["seconds"] = clock.elapsed
        else:
            if described := writing.describe():
                result.report["written"] = described
            write_result(folder, result, documents, writing, clock, schema)
            if with_page:
                write_page(folder, lambda: result.report.run(output))
            write_report(folder, result.report)
    if result is None:
        need, _, division, _ = fit(alike=True)
        assert division is not None
        return in_tasks(need, division)
    return result


def run(
    documents: Documents, reference: Documents | None, sketcher: Sketcher, num_checked: int, max_comparisons: int | None
) -> Result:
    """Do the whole job except writing."""
    runtime, clock, spool = sketcher.runtime, sketcher.clock, cast("Rows | None", sketcher.spool)
    column, _ = keep_column(sketcher.recipe.keep)
    sketched = sketcher.sketch_all(documents, reference, column=column)
    for remark in documents._remarks():
        log.warning(remark)
    recipe = sketcher.recipe  # which names its statistics by now
    measure = recipe.method.measure.knowing(sketcher.statistics)
    runtime.release()
    with clock.stage("collide"):
        number = len(sketched.ids)
        clock.report("collide", 0, number)
        sizes = None if spool is None or not recipe.method.measure.directed else np.diff(spool.offsets)
        ranked = by_priority(sketched, recipe.keep, sizes)
        groups = representatives(ranked, sketched, recipe, runtime)
        sketched = sketched._replace(keys=None, document_hashes=None, text_hashes=None)  # the candidates need the room
        runtime.release()
        candidates = proposed(groups, recipe, runtime)
        clock.report("collide", number, number)
    runtime.release()
    found = None
    rows = some_rows(ranked.rows, groups.ranks)
    if spool is not None:
        try:
            found = partners_of(
                groups.keys, groups.pinned, rows, spool, candidates, recipe, measure, max_comparisons, clock, runtime
            )
        except TooManyComparisonsError as error:
            raise too_many_comparisons(error, rows, sketched, documents, reference, recipe) from None
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
            seen = Run(rows, groups, decisions, measure, crowded)
            sampled = runtime.run(check_recall, seen, spool, recipe, num_checked, clock, runtime)
            del seen
    groups = replace(groups, keys=None, order=None)
    runtime.release()
    with clock.stage("decide"):
        facts = Facts(ranked, groups, decisions, sketched.ids)
        tables = tabulate(facts, recipe, documents, reference)
        report = report_of(
            facts, Job(sketched.counts, candidates, found, recipe, runtime, documents, reference), sampled
        )
    return Result(
        documents=tables.documents,
        pairs=tables.pairs,
        report=Report({**report, "timings": clock.seconds}),
        recipe=recipe,
        frequencies=sketcher.statistics,
        skipped=all_skipped(documents, reference),
        sources=(documents, reference),
        facts=facts,
    )


def check_page(output: str | None) -> None:
    """Raise ParameterError unless a page can be made and written into the output."""
    if output is None:
        raise ParameterError("report: is written into the output; name one with output=...")
    check_installed()


def files_read(
    documents: Documents, reference: Documents | None, frequencies: Frequencies | str | Path | None
) -> list[str]:
    """All files on this machine that a job reads."""
    files = documents.local_files + ([] if reference is None else reference.local_files)
    return [*files, str(frequencies)] if isinstance(frequencies, (str, Path)) else files


def opened(
    source: Any, texts: Any, against: Any, reading: dict[str, Any], recipe: Recipe
) -> tuple[Documents, Documents | None]:
    """Open the input and the reference set. The `keep` column is never treated as text."""
    column, _ = keep_column(recipe.keep)
    reading = {**reading, "other_columns": [column] if column else []}
    documents = open_documents(source, texts=texts, **reading)
    return documents, None if against is None else open_reference(against, reading)


def check_writing(documents: Documents, writing: Writing) -> None:
    """Refuse a way to write kept rows in which these documents cannot be written, before all work."""
    if writing.rewrites:
        check_types(documents, writing)


def _columns_to_write(documents: Documents, writing: Writing, clock: Clock) -> pa.Schema | None:
    """The columns of all files, where `rewritten.schema_of` reads them to find out; what cannot be written is found
    before all work."""
    if not writing.rewrites or not infers_columns(documents, writing):
        return None
    with clock.stage("columns"):
        return schema_of(documents, writing)


def open_reference(against: Any, reading: dict[str, Any]) -> Documents:
    """Open a reference set, read like the input; column names are left out if it consists of text files."""
    try:
        return open_documents(against, **reading)
    except InputError:
        with contextlib.suppress(InputError):
            files = open_documents(against, **reading | {"text_columns": None, "id_column": None})
            if files.format == "text":
                return files
        raise
