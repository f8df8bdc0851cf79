"""A job of tasks from its input to its result, and the work folder that it may work in."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from io import FileIO
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from .. import __version__
from ..arguments import Arguments
from ..definitions import DEFINITIONS, METADATA_KEY, versions
from ..documents import Documents
from ..documents.references import ReferenceSets
from ..documents.rewritten import check_writing, infers_columns, schema_of
from ..documents.slices import Slice, slices_of, text_bytes_of, with_repeats
from ..documents.sources import Sources
from ..documents.stored import FILES, stored
from ..documents.writing_options import Writing, described, format_for
from ..engine.clock import Clock
from ..engine.memory import machine_memory, parse_size
from ..engine.tasks import Runner
from ..errors import InputError, OutputError
from ..keep_rule import keep_columns
from ..recipe import Recipe
from ..report_page import write_page
from ..report_page.run import run_of_folder
from ..results.by_value import ByValue, read_groups
from ..store.artefacts import DOCUMENTS, PAIRS, UNITS, files_in, write_report
from ..store.disk import room
from ..store.folder import Folder
from ..store.leases import Lease
from ..store.locks import FileLock
from ..store.outputs import new_folder
from ..store.parquet import read_table, write_table
from ..store.places import Place
from ..store.uris import is_uri
from .cutting import BYTES_A_WORD, usual_partitions
from .driver import Job, run, skipped_rows
from .reporting import report_of
from .sketching import tokens_of_documents
from .work import Shared, Stage, Work, plain
from .workers import Workers

T = TypeVar("T")

JOB, LOCK, LEASE = "job.json", "lock", "lease"

STORED = ("input", "against")
"""Names of the folders to which documents in memory are written: the input and the reference set.

Further reference sets have numbers after the second name.
"""

LARGEST_SLICE, SMALLEST_SLICE = 10**9, 1 << 25
"""Bytes of text of a slice, unless they are given."""


def run_job(runner: Runner, arguments: Arguments, workers: Workers, clock: Clock) -> Sources:
    """Run a job on a runner that has been started, and return the documents that it read."""
    writing, output = arguments.writing, str(arguments.output)
    recipe, statistics = arguments.recipe.with_statistics(None)
    sources = arguments.opened()
    documents = sources.documents
    if keep_columns(recipe.keep) and sources.reference is not None:
        sources = arguments.without_keep_columns(sources)
    writing = arguments.writing_for(sources)
    check_writing(documents, writing)
    if not writing.ids_only:
        documents._check_kept()
    output_folder = new_folder(output, writing.overwrite, arguments.files_read(sources))
    with working(runner, arguments, workers, clock, sources, recipe, output_folder) as begun:
        work, slices, known, folder = begun
        most_comparisons, num_checked = arguments.engine.max_comparisons, arguments.num_checked
        sets = known if isinstance(sources.reference, ReferenceSets) else {}
        rewritten = columns_of(documents, writing)
        job = Job(work, slices, sum(known.values()), most_comparisons, num_checked, *rewritten, sets)
        made = run(job)
        with clock.stage("place"):
            skipped = job.work.repairing(lambda: skipped_rows(job, made.sketched))
            said = report_of(job, made, sources, skipped)
            move_files([*made.weighed, made.tables, made.written], Path(work.shared.result), folder)
            if skipped is not None:
                about = {METADATA_KEY: recipe.to_json().encode()}
                write_table(skipped.replace_schema_metadata(about), folder / "skipped.parquet")
            if statistics is not None:
                statistics.write(folder / "frequencies.parquet")
        if told := described(writing):
            said["written"] = told
        if writing.by is not None:
            with clock.stage("read"):
                said.update(_counted_by(writing.by, job, folder, documents).to_report(writing.by))
        said = {**said, "timings": clock.seconds, "seconds": clock.elapsed}
        if writing.report:
            written = {**said, "files": list(files_in(folder))}
            known_sources = (documents, sources.reference)
            write_page(folder, lambda: run_of_folder(folder, written, output, known_sources, statistics))
        write_report(folder, said)
    return sources


@contextlib.contextmanager
def working(
    runner: Runner,
    arguments: Arguments,
    workers: Workers,
    clock: Clock,
    sources: Sources,
    recipe: Recipe,
    output: contextlib.AbstractContextManager[T],
    verb: str = "dedup",
) -> Iterator[tuple[Work, list[Slice], dict[str, int], T]]:
    """Begin a job in its work folder, or continue it; after the block, place the output and remove the work.

    Parameters
    ----------
    runner : Runner
        A runner that has been started.
    sources : Sources
        The opened documents.
    recipe : Recipe
        The recipe, which names the frequencies that `arguments` may hold.
    output : context manager
        Gives the place for the output, which it has at the end.
    verb : str, default "dedup"
        The command of the job. A work folder of another command is refused.

    Yields
    ------
    work, slices, known, place
        The work; the slices of all documents; how many of them are of each reference set; what `output` gave.
    """
    documents = sources.documents
    frequencies = getattr(arguments.recipe.method, "frequencies", None)
    place = Place.of(str(workers.work_dir))
    check_apart(place, str(arguments.output), sources)
    with _claimed(place) as still_claimed, contextlib.ExitStack() as stack:
        target = stack.enter_context(output)
        begun = _begun(place)
        most = _slice_bytes(workers, begun, documents)
        known = _divided_sets(sources.reference, place, most)
        slices = [each for own in known.values() for each in own] + _divided(documents, place, STORED[0], most)
        number = sum(map(len, known.values()))
        text_bytes = sum(slice.num_bytes for slice in slices)
        usual = usual_partitions(len(slices), text_bytes, workers.num_workers())
        shared = Shared(
            place.uri,
            str(_result_folder(place, str(arguments.output))),
            recipe,
            arguments.engine,
            parse_size(workers.task_memory, "task_memory"),
            workers.partitions or begun.get("partitions") or usual,
            arguments.engine.temp_dir,
            verb == "dedup" and _keeps_shingles(workers, begun, recipe, place, text_bytes, runner.one_machine),
            frequencies,
            sized=arguments.writing.shared,
        )
        identity = _identify(place, begun, verb, shared, most, slices, number)
        runner.check_folder(shared.work)
        work = Work(shared, runner, clock, identity, still_claimed)
        yield work, slices, {name: len(own) for name, own in known.items()}, target
        shutil.rmtree(shared.result, ignore_errors=True)  # with what killed workers left there
        stack.close()
        still_claimed()
        if not workers.keep_work:
            work.remove()
            for name in (STORED[0], *_stored_sets(known)):
                place.clear(name, FILES)
            place.remove(JOB)


def columns_of(documents: Documents, writing: Writing) -> tuple[Writing, pa.Schema | None, bool]:
    """How kept rows are written, the columns of all files, and whether their types are inferred; see `Job`."""
    if not writing.rewrites:
        return writing, None, False
    writing = replace(writing, output_format=format_for(writing, documents))
    inferred = infers_columns(documents, writing)
    return writing, None if inferred else schema_of(documents, writing), inferred


def _counted_by(column: str, job: Job, folder: Path, documents: Documents) -> ByValue:
    """Count the documents of a result by a column; takes memory for all documents and pairs, as a page does."""
    names = (DOCUMENTS, PAIRS, *([UNITS] if job.work.shared.recipe.unit.divides else []))
    parts = [map(read_table, sorted((folder / name).iterdir())) for name in names]
    tables = [pa.concat_tables(some) for some in parts]
    mine, files = range(job.num_known, len(job.slices)), job.work.shared.files("by", 0)
    num_tokens = np.concatenate([tokens_of_documents(files, number) for number in mine])
    groups, _ = read_groups(column, tables[0], documents, None, num_tokens)
    return ByValue.of(groups, num_tokens, *tables)


def _slice_bytes(workers: Workers, begun: dict[str, Any], documents: Documents) -> int:
    """How large slices are: unless given, as in an earlier run, else so that each worker has two, within bounds."""
    if workers.slice_bytes is not None:
        return parse_size(workers.slice_bytes, "slice_bytes")
    if begun:
        return begun["slice_bytes"]
    if documents.format == "memory":
        return LARGEST_SLICE // 8
    return min(LARGEST_SLICE, max(SMALLEST_SLICE, -(-text_bytes_of(documents) // (2 * workers.num_workers()))))


def _keeps_shingles(
    workers: Workers, begun: dict[str, Any], recipe: Recipe, place: Place, text_bytes: int, one_machine: bool
) -> bool:
    """Return whether shingles are kept in files, by the rule that `Workers` states; as in an earlier run, if any."""
    if workers.spool is not None:
        return workers.spool
    if begun:
        return bool(begun.get("spool"))
    if not recipe.verifies or not one_machine or place.folder is None:
        return False
    num_bytes, memory, disk = 8 * text_bytes // BYTES_A_WORD, machine_memory().usable, room(place.folder)
    return memory is not None and disk is not None and 2 * num_bytes <= memory and 4 * num_bytes <= disk


def _divided_sets(
    reference: Documents | ReferenceSets | None, place: Place, slice_bytes: int
) -> dict[str, list[Slice]]:
    """The slices of each reference set, by its name; "" for one without a name."""
    if reference is None:
        return {}
    sets = reference.sets if isinstance(reference, ReferenceSets) else {"": reference}
    where = zip(sets.items(), _stored_sets(sets), strict=True)
    return {name: _divided(each, place, folder, slice_bytes) for (name, each), folder in where}


def _stored_sets(sets: Iterable[str]) -> list[str]:
    """The folders in which reference sets in memory are written."""
    return [STORED[1] if number == 0 else f"{STORED[1]}-{number}" for number, _ in enumerate(sets)]


def _divided(documents: Documents, place: Place, folder: str, slice_bytes: int) -> list[Slice]:
    """The slices of documents; what is in memory is written to a folder of a place first."""
    in_memory = documents.format == "memory"
    slices = stored(documents, place, folder, slice_bytes) if in_memory else slices_of(documents, slice_bytes)
    return with_repeats(slices, documents)


def check_apart(place: Place, output: str | None, sources: Sources) -> None:
    """Refuse a work folder in the output or around it, and one whose files would be read as documents."""
    if place.folder is None:
        return
    work, target = place.folder.resolve(), None if output is None else Path(output).resolve()
    if target is not None and (work.is_relative_to(target) or target.is_relative_to(work)):
        raise OutputError(f"{output}: is not apart from the work folder {place}; name another output or work_dir")
    for path in [path for path in sources.paths if not is_uri(path)]:
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
        Sees that this still holds: where there are no locks, as in a store, there is a lease, as far as that goes.

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
        lock = Folder(folder).open_own(LOCK)
    except OSError as error:
        why = "is a file, or lies below one" if isinstance(error, (FileExistsError, NotADirectoryError)) else None
        raise OutputError(f"{place}: {why or error.strerror}; name another folder with work_dir=...") from None
    with contextlib.closing(FileLock(FileIO(lock, "r+"))) as file:
        locked = file.try_alone()
        if locked is False:
            raise OutputError(f"{place}: another run works in this folder; wait for it, or name another work_dir")
        try:
            if locked:
                yield lambda: None
            else:
                with Lease(place, LEASE) as lease:
                    yield lease.check
        finally:
            with contextlib.suppress(OSError):
                if not Folder(folder).has(JOB):
                    Folder(folder).remove(LOCK)
                    folder.rmdir()


def _begun(place: Place) -> dict[str, Any]:
    """Return the description of the job to which the work folder belongs, or an empty dict if it is empty.

    Raises
    ------
    OutputError
        If the folder holds anything else.
    """
    if not place.exists(JOB):
        ours = {LOCK, LEASE, *STORED}
        others = [name for name in place.entries() if name not in ours and name.partition("-")[0] != STORED[1]]
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
    place: Place, begun: dict[str, Any], verb: str, shared: Shared, slice_bytes: int, slices: list[Slice], known: int
) -> str:
    """A digest of what the job is.

    Raises
    ------
    OutputError
        If the folder is of another job.
    """
    digests = {
        "recipe": [shared.recipe.describe(), versions()],
        "input": plain(slices[known:]),
        "reference set": plain(slices[:known]),
    }
    facts = {
        "version": f"{__version__}, definitions {DEFINITIONS}",
        "slice_bytes": slice_bytes,
        "partitions": shared.partitions,
        "task_memory": shared.task_memory,
        "spool": shared.spool,
        **{name: _digest(fact) for name, fact in digests.items()},
        **({} if verb == "dedup" else {"verb": verb}),
        **({"shared": True} if shared.sized else {}),
    }
    if begun and (other := begun.get("verb", "dedup")) != verb:
        raise OutputError(f"{place}: holds the work of `neardup {other}`; name another work_dir, or remove this one")
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
    """Return the folder in which files of the result wait: in the work folder, or next to the output if the work folder
    is in an object store."""
    if place.folder is not None:
        return place.folder.resolve() / "result"
    target = Path(output).resolve()
    return target.parent / f".{target.name}.parts"


def move_files(stages: Iterable[Stage], result: Path, folder: Path) -> None:
    """Move the files of the result that some stages wrote to the output."""
    for name in [name for stage in stages for facts in stage.facts for name in facts["files"]]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.move(result / name, folder / name)
