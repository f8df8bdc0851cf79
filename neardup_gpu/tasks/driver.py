"""dedup_in_tasks: the order of the stages, and who does them.

The driver holds names of files and counts, and nothing for each document.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from .. import __version__, checks
from ..decisions import keep_column
from ..definitions import DEFINITIONS, versions
from ..documents import open_documents
from ..documents.skipped import MAX_DOCUMENT_BYTES
from ..documents.slices import Extent, Offset, offsets as offsets_of, slices_of
from ..documents.stored import stored
from ..documents.uris import is_uri
from ..engine.clock import Clock, Progress, with_bars
from ..engine.memory import parse_size
from ..engine.settings import Engine, as_engine
from ..errors import InputError, OutputError, ParameterError
from ..job import open_reference
from ..joining import table_bits
from ..recall import choose_check
from ..recipe import Recipe
from ..sketching import no_documents
from ..store.artefacts import write_report
from ..store.outputs import new_folder, try_to_lock
from ..store.parquet import write_table
from ..store.places import Place
from . import candidates, checking, colliding, copies, crowds, naming, pairs, ranking, results, sketching, unique
from .columns import name_of, tables_of, type_named
from .layout import Layout
from .reporting import report_of
from .scale_out import ScaleOut
from .work import Shared, Stage, Work

if TYPE_CHECKING:
    from ..documents import Documents
    from ..documents.slices import Slice


JOB = "job.json"

STORED = ("input", "against")
"""Where documents in memory are written: those of the input, and of a reference set."""

LARGEST_SLICE, SMALLEST_SLICE = 10**9, 1 << 25
"""Bytes of text of a slice, unless they are given."""

BYTES_A_WORD = 6
"""Of text, about: a table of counters has about as many counters as there are words."""


@dataclass(frozen=True)
class Job:
    """A job while it runs.

    Parameters
    ----------
    work : Work
    slices : list of Slice
        Of all documents, a reference set before the input.
    num_known : int
        Slices of the reference set.
    max_comparisons : int, optional
    num_checked : int
        Documents sampled to check the recall.
    """

    work: Work
    slices: list[Slice]
    num_known: int
    max_comparisons: int | None
    num_checked: int

    @property
    def recipe(self) -> Recipe:
        return self.work.shared.recipe

    @property
    def partitions(self) -> range:
        return range(self.work.shared.partitions)


def run(job: Job) -> Made:
    """Do all stages, in their order."""
    told_as = job.work.told_as
    with told_as("sketch"):
        sketched = _sketch(job)
        _check(job, sketched)
    with told_as("rank"):
        layout, order = _rank(job, sketched)
        settled = [sketched, *order]
        copied = _copies(job, "copies", "hashes", layout, settled)
        same = copied if job.recipe.verifies else _copies(job, "same", "same", layout, settled)
        settled.append(same)
    number = sketched.total("present") - same.total("copies")
    with told_as("collide"):
        propose = _by_keys if job.recipe.method.sketches else _by_shingles
        found = propose(job, layout, sketched, same, number, settled)
    with told_as("verify"):
        distinct, verified = _verify(job, layout, found, settled)
    crowd = None
    if job.recipe.verifies and not job.recipe.method.measure.weighted and found.total("crowded"):
        with told_as("join"):
            crowd = _join_crowd(job, layout, found, verified, settled)
    with told_as("decide"):
        named = _decide(job, layout, same, verified, crowd, settled)
    with told_as("write"):
        listed, tables, written = _write(job, layout, sketched, same, named, settled)
    checked = None
    if job.num_checked:
        with told_as("check"):
            checked = _sampled(job, layout, found, listed, settled)
    return Made(layout, number, sketched, copied, found, distinct, verified, crowd, listed, tables, written, checked)


class Made(NamedTuple):
    """The stages whose facts make the report."""

    layout: Layout
    num_representatives: int
    sketched: Stage
    copied: Stage
    found: Stage
    distinct: Stage
    verified: Stage
    crowd: Stage | None
    listed: Stage
    tables: Stage
    written: Stage
    checked: Stage | None


def _sketch(job: Job) -> Stage:
    words = sum(slice.num_bytes for slice in job.slices) // BYTES_A_WORD
    bits = table_bits(max(1, words), job.work.shared.task_memory // 4)
    given = bits, job.num_checked > 0
    arguments = [(slice, number >= job.num_known, *given) for number, slice in enumerate(job.slices)]
    covers = [slice.covers for slice in job.slices]
    return job.work.stage("sketch", sketching.sketch, arguments, covers=covers, on_device=True)


def _check(job: Job, sketched: Stage) -> None:
    """Refuse an input without documents, and ids that are not right, before anything else is computed."""
    if sum(facts["documents"] for facts in sketched.facts[job.num_known :]) == 0:
        raise no_documents(_skipped(job, sketched, of_known=False))
    extents = [_extent(facts) for facts in sketched.facts]
    unique.check(job, sketched, extents, _offsets(job, extents))
    _type_of_ids(job, sketched)


def _rank(job: Job, sketched: Stage) -> tuple[Layout, list[Stage]]:
    """Where documents lie, and the stages that say their ranks, where these are not numbers."""
    documents = [facts["documents"] for facts in sketched.facts]
    starts = tuple(itertools.accumulate(documents, initial=0))
    ordered = ranking.ranks_are_numbers(job.recipe)
    layout = Layout(starts, starts[job.num_known], len(job.partitions), ordered)
    if ordered:
        return layout, []
    stage, mine = job.work.stage, range(job.num_known, len(job.slices))
    sampled = stage("sample", ranking.sample, [(number, layout) for number in mine], after=[sketched])
    chosen = stage("choose", ranking.choose, [(len(mine), layout)], after=[sampled])
    spread = stage("spread", ranking.spread, [(number, layout) for number in mine], after=[sketched, chosen])
    sizes = [sum(each) for each in zip(*(facts["rows"] for facts in spread.facts), strict=True)]
    firsts = list(itertools.accumulate(sizes, initial=layout.num_known))[: len(job.partitions)]
    ranked = stage("order", ranking.order, [(first, len(mine), layout) for first in firsts], after=[spread])
    rows = stage("rows", ranking.rows, [(layout,)] * len(job.slices), after=[ranked])
    return layout, [rows, stage("rank", ranking.rank, [(layout,)] * len(job.partitions), after=[ranked])]


def _copies(job: Job, name: str, what: str, layout: Layout, settled: list[Stage]) -> Stage:
    arguments = [(settled[0].names(what), layout)] * len(job.partitions)
    return job.work.stage(name, copies.copies, arguments, after=settled)


def _by_keys(job: Job, layout: Layout, sketched: Stage, same: Stage, number: int, settled: list[Stage]) -> Stage:
    """Candidates of a method that sketches."""
    tables = len(job.recipe.method.buckets(number).masks)
    fits = max(1, job.work.shared.task_memory // (4 * colliding.ENTRY_BYTES))
    per_table = max(-(-len(job.partitions) // tables), -(-number // fits))
    given = same.names("slices"), layout, number, per_table
    keys = job.work.stage("keys", candidates.keys, [given] * len(job.slices), after=settled)
    parts = tables * per_table
    tasks = min(parts, max(len(job.partitions), -(-parts * number // (tables * fits))))
    cuts = [parts * task // tasks for task in range(tasks + 1)]
    arguments = [(keys.names("entries"), bounds, layout, number, per_table) for bounds in itertools.pairwise(cuts)]
    return job.work.stage("collide", candidates.collide_keys, arguments, after=[keys], on_device=True)


def _by_shingles(job: Job, layout: Layout, sketched: Stage, same: Stage, number: int, settled: list[Stage]) -> Stage:
    """Candidates of a method that compares shingles alone."""
    stage, names, slices = job.work.stage, same.names("slices"), job.slices
    ranges = candidates.ranges_of(len(job.partitions))
    given = sketched.names("counters"), sketched.names("beyond")
    merged = stage("merge", candidates.merge, [given] * ranges, after=[sketched])
    arguments = [(slice, names, layout) for slice in slices]
    after = [*settled, merged]
    posted = stage("postings", candidates.postings, arguments, after=after, on_device=True)
    files, after = posted.names("postings"), [posted]
    if job.recipe.method.measure.directed:
        marked = stage("marks", candidates.merge_marks, [(posted.names("marks"),)] * ranges, after=[posted])
        after = [*settled, merged, marked]
        more = stage("containers", candidates.containers, arguments, after=after, on_device=True)
        files, after = [*files, *more.names("postings")], [posted, more]
    given_ranges = [(files, layout)] * len(job.partitions)
    return stage("collide", candidates.collide_shingles, given_ranges, after=after, on_device=True)


def _asked(job: Job, name: str, names: list[str], settled: list[Stage], asking: Stage, *, keys: bool) -> Stage:
    """The stage in which slices answer who asked for documents: with their keys, or with what waits of them."""
    stage, after, slices = job.work.stage, [settled[0], asking], job.slices
    if keys:
        return stage(name, pairs.keys, [(names,)] * len(slices), after=after)
    arguments, on_device = [(names, slice) for slice in slices], not job.work.shared.spool
    return stage(name, pairs.sets, arguments, after=after, on_device=on_device)


def _verify(job: Job, layout: Layout, found: Stage, settled: list[Stage]) -> tuple[Stage, Stage]:
    """The stages that make candidates distinct, and that verify them."""
    arguments = [(found.names("found"), layout)] * len(job.partitions)
    distinct = job.work.stage("pairs", pairs.pairs, arguments, after=[found, *settled])
    keys = not job.recipe.verifies
    answered = _asked(job, "sets", distinct.names("wanted"), settled, distinct, keys=keys)
    names = answered.names("keys" if keys else "sets")
    arguments = [(names, layout)] * len(job.partitions)
    return distinct, job.work.stage("verify", pairs.verify, arguments, after=[distinct, answered], on_device=True)


def _join_crowd(job: Job, layout: Layout, found: Stage, verified: Stage, settled: list[Stage]) -> Stage:
    """The pairs of crowded documents with one another."""
    arguments = [(found.names("crowded"), verified.names("left"), layout)]
    asking = job.work.stage("members", crowds.members, arguments, after=[found, verified, *settled])
    names = asking.names("wanted")
    answered = [_asked(job, "crowd-sets", names, settled, asking, keys=False)]
    if job.recipe.method.sketches:
        answered.append(_asked(job, "crowd-keys", names, settled, asking, keys=True))
    keys = answered[-1].names("keys")
    given = answered[0].names("sets"), keys, layout, job.max_comparisons
    return job.work.stage("crowd", crowds.crowd, [given], after=[asking, *answered], on_device=True)


def _decide(job: Job, layout: Layout, same: Stage, verified: Stage, crowd: Stage | None, settled: list[Stage]) -> Stage:
    """Who is kept, and which document stands for each that is not."""
    known = [verified, *([] if crowd is None else [crowd])]
    by_left = [name for each in known for name in each.names("left")]
    decided = job.work.stage("decide", naming.decide, [(by_left, layout)], after=known)
    by_right = [] if crowd is None else crowd.names("right")
    arguments = [(by_left, by_right, same.names("ranges"), layout)] * len(job.partitions)
    return job.work.stage("name", naming.name, arguments, after=[decided, *known, *settled])


def _write(
    job: Job, layout: Layout, sketched: Stage, same: Stage, named: Stage, settled: list[Stage]
) -> tuple[Stage, Stage, Stage]:
    """Write the result; returns the stages that listed pairs, and that wrote these and documents."""
    stage, ranges, slices = job.work.stage, len(job.partitions), len(job.slices)
    given = named.names("listed"), same.names("ranges"), named.names("grouped"), layout
    listed = stage("listed", results.listed, [given] * ranges, after=[named, *settled])
    asking = stage("fates", results.fates, [(named.names("fates"), layout)] * slices, after=[named, *settled])
    wanted = [*listed.names("wanted"), *asking.names("wanted")]
    extents = [_extent(facts) for facts in sketched.facts]
    offsets = _offsets(job, extents)
    kind, against = _type_of_ids(job, sketched), job.num_known > 0
    given_slices = [(*each, wanted, kind) for each in zip(job.slices, offsets, strict=True)]
    answered = stage("ids", results.ids, given_slices, after=[sketched, listed, asking])
    names = answered.names("ids")
    given_ranges = [(names, kind, against, facts["largest"][0], layout) for facts in listed.facts]
    tables = stage("tables", results.tables, given_ranges, after=[listed, answered])
    mine = range(job.num_known, slices)
    arguments = [
        (number, job.slices[number], extents[number], offsets[number], names, kind, against, layout) for number in mine
    ]
    covers = [job.slices[number].covers for number in mine]
    written = stage("write", results.write, arguments, after=[named, answered, *settled], covers=covers)
    return listed, tables, written


def _sampled(job: Job, layout: Layout, found: Stage, listed: Stage, settled: list[Stage]) -> Stage:
    """Check the recall by a sample; returns the stage that says what was found."""
    copies = settled[-1].names("slices")

    def stage(name: str, function: Any, arguments: list[Any], after: list[Stage], on_device: bool = False) -> Stage:
        return job.work.stage(name, function, arguments, after=after, on_device=on_device)

    def answered(name: str, asking: Stage, keys: bool = False) -> Stage:
        return _asked(job, name, asking.names("wanted"), settled, asking, keys=keys)

    mine = range(job.num_known, len(job.slices))
    proposed = stage("draw", checking.draw, [(number, copies, layout, job.num_checked) for number in mine], settled)
    given = proposed.names("drawn"), layout, job.num_checked
    drawn = stage("drawn", checking.drawn, [given], [proposed, *settled])
    waiting = answered("drawn-sets", drawn)
    sampled = stage("sampled", checking.sampled, [(waiting.names("sets"),)], [drawn, waiting], on_device=True)
    of_slices = [(slice, copies, layout) for slice in job.slices]
    near = stage("near", checking.near, of_slices, [sampled, *settled], on_device=True)
    nearest = stage("nearest", checking.nearest, [(near.names("near"), layout)], [sampled, near, *settled])
    waiting = answered("near-sets", nearest)
    keys = [answered("near-keys", nearest, keys=True)] if job.recipe.method.sketches else []
    crowded = found.names("crowded") if job.recipe.method.measure.weighted else []  # others were joined
    files = waiting.names("sets"), [name for each in keys for name in each.names("keys")], crowded
    after = [sampled, nearest, waiting, *keys, found, listed]
    return stage("check", checking.check, [(*files, listed.names("pairs"))], after, on_device=True)


def _extent(facts: dict[str, Any]) -> Extent:
    """What the reading of a slice found."""
    plain = dict(facts["extent"])
    left_out = tuple(tuple(tuple(run) for run in part) for part in plain.pop("left_out"))
    integers = tuple(tuple(each) for each in plain.pop("integers"))
    documents, places = tuple(plain["num_documents"]), tuple(plain["num_places"])
    return Extent(documents, places, left_out, plain["num_skipped"], integers)


def _offsets(job: Job, extents: list[Extent]) -> list[Offset]:
    """The offset of each slice; rows of the reference set are numbered by themselves."""
    cut = job.num_known
    parts = (job.slices[:cut], extents[:cut]), (job.slices[cut:], extents[cut:])
    return [offset for slices, found in parts if slices for offset in offsets_of(slices, found)]


def _type_of_ids(job: Job, sketched: Stage) -> str:
    """The type of all ids.

    Raises
    ------
    InputError
        If those of the input and of the reference set have none in common.
    """
    cut = job.num_known
    known, mine = (
        [type_named(facts["id_type"]) for facts in part if "id_type" in facts]
        for part in (sketched.facts[:cut], sketched.facts[cut:])
    )
    kinds = [one_type_of(part) for part in (known, mine) if part]
    if len(kinds) == 2:
        rows_only = job.slices[0].ids_are_rows
        spans = [number for facts in sketched.facts for number in facts.get("id_span", ())]
        return name_of(common_type(kinds[1], kinds[0], spans, rows_only=rows_only))
    return name_of(kinds[0])


def one_type_of(kinds: list[pa.DataType]) -> pa.DataType:
    """The type of the ids of several slices."""
    return pa.uint64() if set(kinds) == {pa.int64(), pa.uint64()} else kinds[0]


def common_type(kind: pa.DataType, known: pa.DataType, spans: list[int], *, rows_only: bool) -> pa.DataType:
    """The type of ids of both the input and a reference set, whose row numbers may become strings.

    `spans` holds the least and the greatest of all integers, and perhaps others.
    """
    if kind == known:
        return kind
    if pa.types.is_integer(kind) and pa.types.is_integer(known):
        for low, high, large in ((-(2**63), 2**63, pa.int64()), (0, 2**64, pa.uint64())):
            if low <= min(spans) and max(spans) < high:
                return large
    for is_of, large in _FAMILIES:
        if is_of(kind) and is_of(known):
            return large
    if rows_only and pa.types.is_integer(known) and _FAMILIES[0][0](kind):
        return kind
    raise InputError(f"ids of the input are {kind}, ids of the reference set {known}; make them one type")


_FAMILIES = (
    (lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind), pa.large_string()),
    (lambda kind: pa.types.is_binary(kind) or pa.types.is_large_binary(kind), pa.large_binary()),
)


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
    engine: str | Engine = "auto",
    temp_dir: str | Path | None = None,
    max_comparisons: int | None = None,
    check: int | None = None,
    progress: Progress | bool | None = None,
) -> dict[str, Any]:
    """Like `dedup`, cut into tasks over files, which several processes or machines run, and which can be resumed.

    Parameters
    ----------
    source : path, URI, glob, list of them, or a table, default None
        The documents, as for `dedup`. What is in memory is written to the work folder first; streams are refused.
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
        A file of document frequencies, for the weighting "tfidf", which a job of tasks does not count itself.
    overwrite : bool, default False
        Replace the result that is at `output`.
    engine : Engine, "auto", "cpu", "gpu" or "reference", default "auto"
        What each task computes with. Its `threads` are those of a task; an equal share of all unless given.
    temp_dir : path, default None
        Where each task's own temporary files go; the system's temporary folder unless given.
    max_comparisons : int, default None
        End with an error after so many comparisons of two documents of a crowd.
    check : int, default None
        Documents sampled for the check of recall, as for `dedup`.
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
    Memory: of a task `task_memory`, of the driver names of files and counts; but crowds, documents that share a rare
    shingle with too many others, are joined in one task, at 256 bytes a member.

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
    scale_out = checks.instance("scale_out", scale_out, ScaleOut)
    if scale_out.work_dir is None:
        raise ParameterError("work_dir: give ScaleOut the folder in which tasks work")
    recipe = Recipe() if recipe is None else checks.instance("recipe", recipe, Recipe)
    num_checked = choose_check(check, recipe)
    clock, engine = Clock(progress, noun="task"), as_engine(engine)
    recipe, statistics = recipe.with_statistics(frequencies)
    if recipe.method.needs_statistics and statistics is None:
        raise ParameterError("frequencies: a job of tasks does not count them; give a file of them")
    engine = replace(engine, backend=engine.resolve())
    column, _ = keep_column(recipe.keep)
    reading: dict[str, Any] = {"text_columns": text_columns, "id_column": id_column, "html": html, "glob": glob}
    reading |= {"on_error": on_error, "max_document_bytes": max_document_bytes}
    reading["other_columns"] = [column] if column else []
    documents = open_documents(source, texts=texts, **reading)
    reference = None if against is None else open_reference(against, reading)
    if column and reference is not None and reference.format != "text":  # whose slices are not asked for the column
        reading |= {"text_columns": reference.text_columns, "other_columns": []}
        reference = open_reference(against, reading)
    reads = [*documents.local_files, *([] if reference is None else reference.local_files)]
    place = Place.of(scale_out.work_dir)
    _check_apart(place, checks.path("output", output), [documents, *([] if reference is None else [reference])])
    with _claimed(place), contextlib.ExitStack() as stack:
        folder = stack.enter_context(new_folder(output, overwrite, reads))
        begun = _begun(place)
        most = _slice_bytes(scale_out, begun, documents)
        known = [] if reference is None else _divided(reference, place.child(STORED[1]), most)
        slices = [*known, *_divided(documents, place.child(STORED[0]), most)]
        partitions = scale_out.partitions or begun.get("partitions") or max(len(slices), scale_out.num_workers())
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
        job = Job(Work(shared, workers, clock, identity), slices, len(known), max_comparisons, num_checked)
        made = run(job)
        with clock.stage("place"):
            skipped = job.work.repairing(lambda: _skipped(job, made.sketched))
            report = report_of(job, made, documents, reference, skipped)
            _move(made, Path(shared.result), folder)
            if skipped is not None:
                write_table(skipped, folder / "skipped.parquet")
            if statistics is not None:
                statistics.write(folder / "frequencies.parquet")
        report = {**report, "timings": clock.seconds, "seconds": clock.elapsed}
        write_report(folder, report)
        stack.close()
        if not scale_out.keep_work:
            job.work.remove()
            for name in STORED:
                place.child(name).remove_all()
            place.remove(JOB)
    return report


def _slice_bytes(scale_out: ScaleOut, begun: dict[str, Any], documents: Documents) -> int:
    """How large slices are: unless given, as in an earlier run, else so that each worker has two, within bounds."""
    if scale_out.slice_bytes is not None:
        return parse_size(scale_out.slice_bytes, "slice_bytes")
    if begun:
        return begun["slice_bytes"]
    if documents.format == "memory":
        return LARGEST_SLICE // 8
    total = sum(slice.num_bytes for slice in slices_of(documents, LARGEST_SLICE))
    return min(LARGEST_SLICE, max(SMALLEST_SLICE, total // (2 * scale_out.num_workers())))


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
def _claimed(place: Place) -> Iterator[None]:
    """Let no other driver work in the folder meanwhile, and remove it at the end if it is empty. Stores have no locks.

    Raises
    ------
    OutputError
        If another one does, or if the folder cannot be made.
    """
    folder = place.folder
    if folder is None:
        yield
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        why = "is a file, or lies below one" if isinstance(error, (FileExistsError, NotADirectoryError)) else None
        raise OutputError(f"{place}: {why or error.strerror}; name another folder with work_dir=...") from None
    try:
        if try_to_lock(lock) is False:
            raise OutputError(f"{place}: another run works in this folder; wait for it, or name another work_dir")
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                if not os.path.lexists(folder / JOB):
                    os.unlink(folder / "lock")
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
        others = [name for name in place.entries() if name not in ("lock", *STORED)]
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
    for name in [name for facts in (*made.tables.facts, *made.written.facts) for name in facts["files"]]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.move(result / name, folder / name)
    shutil.rmtree(result, ignore_errors=True)


def _skipped(job: Job, sketched: Stage, *, of_known: bool = True) -> pa.Table | None:
    """The rows that could not be read, of the input and then of the reference set; None unless they are skipped."""
    if not job.slices[-1].source.policy.skips:
        return None
    extents, found = [_extent(facts) for facts in sketched.facts], []
    offsets, names, known = _offsets(job, extents), sketched.names("skipped"), range(job.num_known)
    for number in [*range(job.num_known, len(job.slices)), *(known if of_known else ())]:
        tables = tables_of(job.work.place, [names[number]], 0)
        found += [offsets[number].skipped(table, extents[number]) for table in tables]
    return pa.concat_tables(found)
