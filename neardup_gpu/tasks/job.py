"""dedup_in_tasks: the job cut into tasks, as it is called. This file is quick to import, so that workers start soon."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from .. import checks
from ..documents.reading_options import MAX_DOCUMENT_BYTES, Reading
from ..documents.writing_options import Writing
from ..engine.clock import Clock, Progress, with_bars
from ..engine.settings import Engine, as_engine
from ..errors import ParameterError
from ..settings import arguments_for
from .scale_out import ScaleOut

if TYPE_CHECKING:
    from ..recipe import Recipe


@with_bars
def dedup_in_tasks(
    source: Any = None,
    *,
    output: str | Path,
    scale_out: ScaleOut,
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
    texts, text_columns, id_column, html, encoding, glob, on_error, max_document_bytes, null_values
        As for `dedup`.
    input_format, delimiter, header, against
        As for `dedup`.
    recipe : Recipe, default None
        What counts as a near-duplicate, and who is kept; by the exact method at 0.8 unless given.
    frequencies : path, default None
        A file of document frequencies, for the weighting "tfidf"; unless given, they are counted in the documents and
        in the reference set, as by `dedup`.
    overwrite, output_format, check, report
        As for `dedup`.
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
    arguments = locals()
    output, overwrite = checks.path("output", output), checks.flag("overwrite", overwrite)
    temp_dir = checks.optional(checks.path, "temp_dir", temp_dir)
    max_comparisons = checks.optional(checks.integer, "max_comparisons", max_comparisons, 1)
    with_page = checks.flag("report", report)
    if with_page:
        from ..job import check_page

        check_page(output)
    scale_out = checks.instance("scale_out", scale_out, ScaleOut)
    if scale_out.work_dir is None:
        raise ParameterError("work_dir: give ScaleOut the folder in which tasks work")
    writing = Writing(output_format=output_format, shard_bytes=shard_bytes, ids_only=ids_only)
    if recipe is not None:
        from ..documents.units import check_whole
        from ..recipe import Recipe

        check_whole(checks.instance("recipe", recipe, Recipe), "work_dir")
    workers, engine = scale_out.start(scale_out.resolved(as_engine(engine)), recipe)
    with workers:
        from .running import run_job  # which workers import as well meanwhile

        return run_job(
            workers,
            engine,
            Clock(progress, noun="task"),
            source,
            texts=texts,
            against=against,
            reading=arguments_for(Reading, arguments),
            recipe=recipe,
            frequencies=frequencies,
            output=output,
            overwrite=overwrite,
            writing=writing,
            scale_out=scale_out,
            temp_dir=temp_dir,
            max_comparisons=max_comparisons,
            check=check,
            with_page=with_page,
        )
