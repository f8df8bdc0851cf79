"""dedup_in_tasks: the job cut into tasks, from its arguments to its result, and the work folder that it may work in."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import __version__, checks
from ..decisions import keep_column
from ..definitions import DEFINITIONS, METADATA_KEY, versions
from ..documents import open_documents
from ..documents.rewritten import infers_columns, schema_of
from ..documents.skipped import MAX_DOCUMENT_BYTES
from ..documents.slices import slices_of, text_bytes_of
from ..documents.stored import stored
from ..documents.uris import is_uri
from ..documents.writing_options import Writing
from ..engine.clock import Clock, Progress, with_bars
from ..engine.memory import parse_size
from ..engine.settings import Engine, as_engine
from ..errors import InputError, OutputError, ParameterError
from ..job import check_page, check_writing, open_reference
from ..recall import choose_check
from ..recipe import Recipe
from ..store.artefacts import files_in, write_page, write_report
from ..store.leases import Lease
from ..store.outputs import new_folder, try_to_lock
from ..store.parquet import write_table
from ..store.places import Place
from .driver import Job, Made, run, skipped_rows
from .layout import usual_partitions
from .reporting import report_of
from .scale_out import ScaleOut
from .work import Shared, Work

if TYPE_CHECKING:
    import pyarrow as pa

    from ..documents import Documents
    from ..documents.slices import Slice


JOB, LOCK = "job.json", "lock"

STORED = ("input", "against")
"""Where documents in memory are written: those of the input, and of a reference set."""

LARGEST_SLICE, SMALLEST_SLICE = 10**9, 1 << 25
"""Bytes of text of a slice, unless they are given."""


@with_bars
def dedup_in_tasks(
    source: Any = None,
    *,
    output: str | Path,
    scale_out: ScaleOut,
    texts: Any = None,
    text_columns: str | list[str] | None = None,
    id_column: str | None = None,
    html: bool = False,
    glob: str | None = None,
    on_error: str = "stop",
    max_document_bytes: int = MAX_DOCUMENT_BYTES,
    against: Any = None,
    recipe: Recipe | None = None,
    frequencies: str | Path | None = None,
    overwrite: bool = False,
    output_format: str | None = None,
    shard_bytes: int | str | None = None,
    ids_only: bool = False,
    engine: str | Engine = "auto",
    temp_dir: str | Path | None = None,
    max_comparisons: int | None = None,
    check: int | None = None,
    report: bool = False,
    progress: Progress | bool | None = None,
) -> dict[str, Any]:
    """Like `dedup`, cut into tasks over files, which several processes or machines run, and which can be resumed.

    Parameters
    ----------
    source : path, URI, glob, list of them, or a table, default None
        The documents, as for `dedup`. What is in memory is written to the work folder first, a Ray dataset by Ray's
        tasks, block by block; streams are refused.
    output : path
        The folder to write, which all who run tasks see: documents/, pairs/ and kept/ in parts, and report.json. It
        appears whole or not at all.
    scale_out : ScaleOut
        Where the work folder is, and who runs tasks.
    texts : list of str, array or Series of strings, default None
        The texts themselves, instead of `source`.
    text_columns : str or list of str, default None
        The columns of text; found by their names unless given.
    id_column : str, default None
        The column of ids; without one, ids are row numbers or relative paths.
    html : bool, default False
        The text is HTML, of which the visible text is taken.
    glob : str, default None
        Which files of a folder to read.
    on_error : "stop" or "skip", default "stop"
        Whether a row that cannot be read stops the job, or is listed and left out.
    max_document_bytes : int, default 1 GiB
        A longer document counts as one that cannot be read.
    against : path, URI, glob, list of them, or a table, default None
        A reference set, as for `dedup`.
    recipe : Recipe, default None
        What counts as a near-duplicate, and who is kept; by the exact method at 0.8 unless given.
    frequencies : path, default None
        A file of document frequencies, for the weighting "tfidf"; unless given, they are counted in the documents and
        in the reference set, as by `dedup`.
    overwrite : bool, default False
        Replace the result that is at `output`.
    output_format : "parquet", "jsonl", "jsonl.gz", "jsonl.zst" or "arrow", default None
        The format of kept/, as for `dedup`.
    shard_bytes : int or str, default None
        Write kept/ in files of about this size, as `dedup` does, but each task its own: at least one for each slice.
    ids_only : bool, default False
        Write kept_ids/ in parts, with the ids of kept documents, and no kept/.
    engine : Engine, "auto", "cpu", "gpu" or "reference", default "auto"
        What each task computes with. Its `threads` are those of a task; an equal share of all unless given.
    temp_dir : path, default None
        Where each task's own temporary files go; the system's temporary folder unless given.
    max_comparisons : int, default None
        End with an error after so many comparisons of two documents of a crowd.
    check : int, default None
        Documents sampled for the check of recall, as for `dedup`.
    report : bool, default False
        Write report.html into `output` as well, a page to look at the result with, for which the input is read once
        more. It needs ``pip install 'neardup-gpu[report]'``, and about 600 bytes of memory for each document.
    progress : bool or callable, default None
        True shows bars; a function is called with a stage's name, the number of tasks done, and of how many.

    Returns
    -------
    dict
        The report, as in report.json. Decisions, pairs and kept rows are those of `dedup`, bit for bit; `comparisons`,
        `candidate_pairs` and the number of unlisted pairs say how much was looked at, which differs.

    Raises
    ------
    NeardupError
        As `dedup` does; if the work folder is of another job, or another driver works in it; if a task failed three
        times, after which the same call goes on with what the others made.

    Notes
    -----
    Memory: of a task `task_memory`, of the driver names of files and counts. Keys, postings and pairs that do not fit a
    task are divided, or read block by block. What is held of the documents of a slice, or of a range of ranks, is not:
    up to about 100 bytes each, and a bit for each one of all; smaller slices and more partitions make it less. Crowds,
    documents that share a rare shingle with too many others, are joined in one task, at 256 bytes a member and 160 for
    each verified pair of members; the job ends with an error if that is more than a task may hold. The pairs that are
    found of a crowd go to a file, block by block of its documents. Document frequencies, where TF-IDF weighs by those
    of the job, take up to half of each task that weighs, at 32 bytes a distinct token or shingle; if they are more, the
    job ends with an error.

    Examples
    --------
    >>> import tempfile
    >>> from neardup_gpu import ScaleOut
    >>> texts = ["to be or not to be that is the question"] * 2 + ["whether it is nobler in the mind to suffer"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     scale_out = ScaleOut(work_dir=f"{folder}/work", workers=1)
    ...     report = dedup_in_tasks(texts=texts, output=f"{folder}/out", scale_out=scale_out)
    >>> report["counts"]["removed"]
    1
    """
    output, overwrite = checks.path("output", output), checks.flag("overwrite", overwrite)
    temp_dir = checks.optional(checks.path, "temp_dir", temp_dir)
    max_comparisons = checks.optional(checks.integer, "max_comparisons", max_comparisons, 1)
    with_page = checks.flag("report", report)
    if with_page:
        check_page(output)
    scale_out = checks.instance("scale_out", scale_out, ScaleOut)
    if scale_out.work_dir is None:
        raise ParameterError("work_dir: give ScaleOut the folder in which tasks work")
    writing = Writing(output_format=output_format, shard_bytes=shard_bytes, ids_only=ids_only)
    recipe = Recipe() if recipe is None else checks.instance("recipe", recipe, Recipe)
    num_checked = choose_check(check, recipe)
    clock, engine = Clock(progress, noun="task"), as_engine(engine)
    recipe, statistics = recipe.with_statistics(frequencies)
    engine = scale_out.resolved(engine)
    column, _ = keep_column(recipe.keep)
    reading: dict[str, Any] = {"text_columns": text_columns, "id_column": id_column, "html": html, "glob": glob}
    reading |= {"on_error": on_error, "max_document_bytes": max_document_bytes}
    reading["other_columns"] = [column] if column else []
    documents = open_documents(source, texts=texts, **reading)
    reference = None if against is None else open_reference(against, reading)
    if column and reference is not None and reference.format != "text":  # whose slices are not asked for the column
        reading |= {"text_columns": reference.text_columns, "other_columns": []}
        reference = open_reference(against, reading)
    check_writing(documents, writing)
    reads = [*documents.local_files, *([] if reference is None else reference.local_files)]
    place = Place.of(scale_out.work_dir)
    _check_apart(place, output, [documents, *([] if reference is None else [reference])])
    with _claimed(place) as still_claimed, contextlib.ExitStack() as stack:
        folder = stack.enter_context(new_folder(output, overwrite, reads))
        begun = _begun(place)
        most = _slice_bytes(scale_out, begun, documents)
        known = [] if reference is None else _divided(reference, place.child(STORED[1]), most)
        slices = [*known, *_divided(documents, place.child(STORED[0]), most)]
        text_bytes = sum(slice.num_bytes for slice in slices)
        usual = usual_partitions(len(slices), text_bytes, scale_out.num_workers())
        partitions = scale_out.partitions or begun.get("partitions") or usual
        workers, engine = scale_out.start(engine)
        shared = Shared(
            place.uri,
            str(_result_folder(place, output)),
            recipe,
            engine,
            parse_size(scale_out.task_memory, "task_memory"),
            partitions,
            None if temp_dir is None else str(temp_dir),
            scale_out.spool,
            None if frequencies is None else str(frequencies),
        )
        identity = _identify(place, begun, shared, most, slices, len(known))
        stack.enter_context(workers)
        workers.check_folder(shared.work)
        work = Work(shared, workers, clock, identity, still_claimed)
        job = Job(work, slices, len(known), max_comparisons, num_checked, *_columns_of(documents, writing))
        made = run(job)
        with clock.stage("place"):
            skipped = job.work.repairing(lambda: skipped_rows(job, made.sketched))
            said = report_of(job, made, documents, reference, skipped)
            _move(made, Path(shared.result), folder)
            if skipped is not None:
                about = {METADATA_KEY: recipe.to_json().encode()}
                write_table(skipped.replace_schema_metadata(about), folder / "skipped.parquet")
            if statistics is not None:
                statistics.write(folder / "frequencies.parquet")
        if described := writing.describe():
            said["written"] = described
        said = {**said, "timings": clock.seconds, "seconds": clock.elapsed}
        if with_page:
            from ..report_page.run import run_of_folder

            written = {**said, "files": list(files_in(folder))}
            write_page(folder, run_of_folder(folder, written, output, (documents, reference), statistics))
        write_report(folder, said)
        stack.close()
        still_claimed()
        if not scale_out.keep_work:
            job.work.remove()
            for name in STORED:
                place.child(name).remove_all()
            place.remove(JOB)
    return said


def _columns_of(documents: Documents, writing: Writing) -> tuple[Writing, pa.Schema | None, bool]:
    """How kept rows are written, the columns of all files, and whether their types are inferred; see `Job`."""
    if not writing.rewrites:
        return writing, None, False
    writing = replace(writing, output_format=writing.format_for(documents))
    inferred = infers_columns(documents, writing)
    return writing, None if inferred else schema_of(documents, writing), inferred


def _slice_bytes(scale_out: ScaleOut, begun: dict[str, Any], documents: Documents) -> int:
    """How large slices are: unless given, as in an earlier run, else so that each worker has two, within bounds."""
    if scale_out.slice_bytes is not None:
        return parse_size(scale_out.slice_bytes, "slice_bytes")
    if begun:
        return begun["slice_bytes"]
    if documents.format == "memory":
        return LARGEST_SLICE // 8
    return min(LARGEST_SLICE, max(SMALLEST_SLICE, text_bytes_of(documents) // (2 * scale_out.num_workers())))


def _divided(documents: Documents, place: Place, slice_bytes: int) -> list[Slice]:
    """The slices of documents; what is in memory is written to a place first."""
    if documents.format == "memory":
        return stored(documents, place.uri, slice_bytes)
    return slices_of(documents, slice_bytes)


def _check_apart(place: Place, output: str, read: list[Documents]) -> None:
    """Refuse a work folder in the output or around it, and one whose files would be read as documents."""
    if place.folder is None:
        return
    work, target = place.folder.resolve(), Path(output).resolve()
    if work.is_relative_to(target) or target.is_relative_to(work):
        raise OutputError(f"{output}: is not apart from the work folder {place}; name another output or work_dir")
    for path in [path for documents in read for path in documents.describe()["paths"] if not is_uri(path)]:
        around = Path(path).resolve()
        inside = around.is_dir() and work.is_relative_to(around)
        if inside and not any(part.startswith(".") for part in work.relative_to(around).parts):  # those are not read
            raise OutputError(
                f"{place}: is in the input folder {path}, whose files are read as documents; name a work_dir outside, "
                "or one that begins with a dot"
            )


@contextlib.contextmanager
def _claimed(place: Place) -> Iterator[Callable[[], None]]:
    """Let no other driver work in the folder meanwhile, and remove it at the end if it is empty.

    Yields
    ------
    callable
        Sees that this still holds: in a store, which has no locks, there is a lease, as far as that goes.

    Raises
    ------
    OutputError
        If another one does, or if the folder cannot be made.
    """
    folder = place.folder
    if folder is None:
        with Lease(place, LOCK) as lease:
            yield lease.check
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        why = "is a file, or lies below one" if isinstance(error, (FileExistsError, NotADirectoryError)) else None
        raise OutputError(f"{place}: {why or error.strerror}; name another folder with work_dir=...") from None
    try:
        if try_to_lock(lock) is False:
            raise OutputError(f"{place}: another run works in this folder; wait for it, or name another work_dir")
        try:
            yield lambda: None
        finally:
            with contextlib.suppress(OSError):
                if not os.path.lexists(folder / JOB):
                    os.unlink(folder / LOCK)
                    folder.rmdir()
    finally:
        os.close(lock)


def _begun(place: Place) -> dict[str, Any]:
    """What an earlier run said of the job whose work the folder holds; nothing where it holds nothing.

    Raises
    ------
    OutputError
        If the folder holds anything else.
    """
    if not place.exists(JOB):
        others = [name for name in place.entries() if name not in (LOCK, *STORED)]
        if others:
            raise OutputError(
                f"{place}: holds {others[0]}, which is of no job; name a folder with work_dir=... that is new or empty"
            )
        return {}
    try:
        begun = json.loads(place.read_text(JOB))
    except (InputError, ValueError):
        begun = None
    if not isinstance(begun, dict) or not isinstance(begun.get("partitions"), int):
        raise OutputError(f"{place}: its {JOB} is damaged; remove the folder, or name another work_dir")
    return begun


def _identify(
    place: Place, begun: dict[str, Any], shared: Shared, slice_bytes: int, slices: list[Slice], num_known: int
) -> str:
    """A digest of what the job is.

    Raises
    ------
    OutputError
        If the folder is of another job.
    """
    digests = {
        "recipe": [shared.recipe.describe(), versions()],
        "input": [slice.to_json() for slice in slices[num_known:]],
        "reference set": [slice.to_json() for slice in slices[:num_known]],
    }
    facts = {
        "version": f"{__version__}, definitions {DEFINITIONS}",
        "slice_bytes": slice_bytes,
        "partitions": shared.partitions,
        "task_memory": shared.task_memory,
        "spool": shared.spool,
        **{name: _digest(fact) for name, fact in digests.items()},
    }
    others = [name for name in facts if begun and begun.get(name) != facts[name]]
    if "version" in others:
        raise OutputError(
            f"{place}: was begun by another version of neardup_gpu ({begun.get('version')}); go on with that one, name "
            "another work_dir, or remove this one"
        )
    if "slice_bytes" in others:  # then the slices differ anyway
        others = [name for name in others if name not in digests or name == "recipe"]
    if others:
        was = [name if name in digests else f"{name} ({begun.get(name)})" for name in others]
        raise OutputError(
            f"{place}: holds the work of a job with another {' and another '.join(was)}; give what was given to that "
            "one, name another work_dir, or remove this one"
        )
    if not begun:
        place.write_text(JOB, json.dumps(facts, indent=1))
    return _digest(facts)


def _digest(fact: Any) -> str:
    return hashlib.sha256(json.dumps(fact, sort_keys=True).encode()).hexdigest()


def _result_folder(place: Place, output: str | Path) -> Path:
    """Where files of the result wait: in the work folder, or beside the output where that is in no file system."""
    if place.folder is not None:
        return place.folder.resolve() / "result"
    target = Path(output).resolve()
    return target.parent / f".{target.name}.parts"


def _move(made: Made, result: Path, folder: Path) -> None:
    """Move the files of the result to the output, and remove what killed workers left beside them."""
    stages = *made.weighed, made.tables, made.written
    for name in [name for stage in stages for facts in stage.facts for name in facts["files"]]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.move(result / name, folder / name)
    shutil.rmtree(result, ignore_errors=True)
