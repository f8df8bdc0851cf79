"""The command `neardup dedup`."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, fields
from functools import partial
from inspect import signature
from typing import TYPE_CHECKING, Any

from ..documents.writing_options import Writing
from ..engine.settings import Engine
from ..errors import ParameterError
from ..settings import setting
from ..tasks.scale_out import ScaleOut
from . import methods
from .console import say, say_json, shown_progress, stdout
from .methods import ChoiceFlags, ShinglesFlags, chosen, method_flags
from .options import (
    DECIDING,
    DOCUMENTS,
    OUTPUT,
    RUNNING,
    TASKS,
    EngineFlags,
    Inputs,
    Output,
    ReadingFlags,
    TemporaryFlags,
    flags,
    given,
    one_or_all,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from ..recipe import Recipe


@dataclass(frozen=True, kw_only=True)
class Reference:
    """Other documents to compare with."""

    against: str | None = setting(
        None, "Also remove documents that resemble these, which are left untouched.", metavar="REFERENCE"
    )
    only_against: bool = setting(
        False, "Remove only documents that resemble those of --against; copies inside the input are kept."
    )


@dataclass(frozen=True, kw_only=True)
class Keeping:
    """Which documents are kept, and which pairs are listed."""

    keep: str = setting(
        "first", "Which document of a group to keep: first, longest, or by a column such as date:desc.", metavar="RULE"
    )
    cluster: str = setting("greedy", "How groups are made: greedy or components.", metavar="RULE")
    max_partners: str = setting(
        "64",
        "Maximum number of listed pairs per document with better documents, and again with kept documents; or all.",
        metavar="N",
    )


@dataclass(frozen=True, kw_only=True)
class Result(Output):
    """The result to write, and the way to print it."""

    output: str | None = setting(
        None, "Folder to write, which appears when complete.", metavar="OUT", flag="--output -o"
    )
    dry_run: bool = setting(False, "Decide, but write nothing.")
    report: bool = setting(False, "Also write OUT/report.html, a page that shows the result.")
    verbose: bool = setting(False, "Print stages, pairs and the recipe as well.", flag="--verbose -v")


@dataclass(frozen=True, kw_only=True)
class Check:
    """How the recall is estimated."""

    check: int | None = setting(
        None,
        "Number of documents sampled to estimate the recall.",
        metavar="N",
        shown="200, none by exact and containment",
    )


@dataclass(frozen=True, kw_only=True)
class Effort:
    """A limit on the work."""

    max_comparisons: int | None = setting(
        None, "End with an error after N comparisons of documents that share a shingle.", metavar="N"
    )


@dataclass(frozen=True, kw_only=True)
class Bound:
    """A limit on the memory of a job."""

    memory: str | None = setting(
        None, "Memory of all processes together, such as 2GB. A job that needs more works on files.", metavar="SIZE"
    )


ReferenceFlags: Any = flags(DOCUMENTS, Reference)
KeepingFlags: Any = flags(DECIDING, Keeping)
MethodFlags: Any = method_flags(methods.DECIDING)
ResultFlags: Any = flags(OUTPUT, Result)
WritingFlags: Any = flags(OUTPUT, Writing)
CheckFlags: Any = flags(RUNNING, Check, Effort)
BoundFlags: Any = flags(RUNNING, Bound)
TaskFlags: Any = flags(TASKS, ScaleOut)


def dedup(
    *inputs: Inputs,
    reading: ReadingFlags = None,
    reference: ReferenceFlags = None,
    choice: ChoiceFlags = None,
    shingles: ShinglesFlags = None,
    settings: MethodFlags = None,
    keeping: KeepingFlags = None,
    result: ResultFlags = None,
    writing: WritingFlags = None,
    engine: EngineFlags = None,
    temporary: TemporaryFlags = None,
    bound: BoundFlags = None,
    checked: CheckFlags = None,
    tasks: TaskFlags = None,
) -> None:
    """Remove near-duplicates. OUT holds the kept rows, and for each removed row its kept document and resemblance."""
    shown = Result(**given(result))
    if shown.output is None and not shown.dry_run:
        raise ParameterError("say where the result goes with --output OUT, or only decide with --dry-run")
    where = None if shown.dry_run else shown.output
    how = chosen(methods.DECIDING, choice, shingles, settings)
    kept = given(keeping)
    if "max_partners" in kept:
        kept["max_partners"] = number_or_all(kept["max_partners"])
    place = Engine(**given(engine))
    options = {**given(reading, reference, writing, temporary, checked), **how, **kept}
    if tasks is not None and given(tasks):
        if given(bound):
            raise ParameterError("--memory cannot be combined with --work-dir; use --task-memory to limit each task")
        _in_tasks(ScaleOut(**given(tasks)), one_or_all(inputs), shown, place, options)
        return
    if given(bound):
        _bounded(given(bound)["memory"], one_or_all(inputs), shown, place, options, where)
        return
    with shown_progress(shown) as progress:
        found = _run(one_or_all(inputs), shown, place, options, where, progress)
    _say(found, shown, where)


def _run(
    inputs: str | list[str], shown: Result, engine: Engine, options: dict[str, Any], where: str | None, progress: Any
) -> Any:
    """Run the job in memory and return its result."""
    from .. import job

    return job.dedup(
        inputs,
        **options,
        engine=engine,
        output=where,
        overwrite=shown.overwrite,
        report=shown.report,
        progress=progress,
    )


def _say(found: Any, shown: Result, where: str | None) -> None:
    """Print what a job in memory did."""
    if shown.json:
        say_json(_line(found.report, where))
    elif not shown.quiet:
        from ..report import summary

        example = None if where is None else telling_example(found.documents, found.recipe.method.measure.name)
        width, page = stdout().width, shown.report
        say(*summary(found.report, width, output=where, example=example, verbose=shown.verbose, page=page))


def _in_tasks(
    scale_out: ScaleOut, inputs: str | list[str], shown: Result, engine: Engine, options: dict[str, Any]
) -> None:
    """Run the job as tasks over files."""
    if scale_out.work_dir is None:
        raise ParameterError("work_dir: tasks need a folder to work in; give one, or leave their other options out")
    if shown.output is None or shown.dry_run:
        raise ParameterError("dry_run: a job of tasks writes its result; say where it goes with --output OUT")
    from ..store.uris import masked

    recipe, others = _recipe(options)
    try:
        with shown_progress(shown) as progress:
            report = _run_tasks(scale_out, inputs, shown, engine, recipe, others, shown.output, progress)
    except KeyboardInterrupt:
        work = masked(scale_out.work_dir)
        raise KeyboardInterrupt(f"interrupted; the same command goes on with what is in {work}") from None
    _say_tasks(report, shown, shown.output)


def _bounded(
    memory: str, inputs: str | list[str], shown: Result, engine: Engine, options: dict[str, Any], where: str | None
) -> None:
    """Run the job within a memory limit: in memory if it fits, else as tasks in a temporary folder.

    The library's `dedup` does the same and then reads the tables of the result, which are not needed here.
    """
    from .. import bounded, job
    from ..recall import choose_check

    recipe, others = _recipe(options)
    reading = {name: value for name, value in others.items() if name in signature(job.open_documents).parameters}
    most = bounded.size_of(memory, others.get("max_comparisons"))
    with shown_progress(shown) as progress:
        documents, reference = job.opened(inputs, None, others.get("against"), reading, recipe)
        number = choose_check(others.get("check"), recipe)
        fit = partial(bounded.fit, most, documents, reference, recipe, engine, number, page=shown.report)
        need, _, division, _ = fit()
        found = None
        if division is None:
            with contextlib.suppress(bounded.ExceededError):
                going_on = bounded.GoingOn(progress)
                found = _run(inputs, shown, engine, {**options, "memory": memory}, where, going_on)
            if found is None:
                need, _, division, _ = fit(alike=True)
        if division is not None:
            bounded.tell(need, division)
            with bounded.working(division, where, others.get("temp_dir")) as (scale_out, folder):
                others["temp_dir"] = str(folder / "temporary")
                if where is None:
                    others["ids_only"] = True
                output = where or str(folder / "result")
                engine = bounded.engine_of(division, engine)
                report = _run_tasks(scale_out, inputs, shown, engine, recipe, others, output, progress)
    if found is None:
        _say_tasks(report, shown, where)
    else:
        _say(found, shown, where)


def _recipe(options: dict[str, Any]) -> tuple[Recipe, dict[str, Any]]:
    """Split the options into the recipe and the other options."""
    from ..recipe import Recipe, choose_recipe

    settings = {*signature(choose_recipe).parameters, *(field.name for field in fields(Recipe))}
    of_recipe = {name: value for name, value in options.items() if name in settings}
    others = {name: value for name, value in options.items() if name not in settings}
    return choose_recipe(usual="exact", **of_recipe), others


def _run_tasks(
    scale_out: ScaleOut,
    inputs: str | list[str],
    shown: Result,
    engine: Engine,
    recipe: Recipe,
    others: dict[str, Any],
    output: str,
    progress: Any,
) -> dict[str, Any]:
    from ..tasks.job import dedup_in_tasks

    return dedup_in_tasks(
        inputs,
        **others,
        recipe=recipe,
        output=output,
        overwrite=shown.overwrite,
        engine=engine,
        scale_out=scale_out,
        report=shown.report,
        progress=progress,
    )


def _say_tasks(report: dict[str, Any], shown: Result, where: str | None) -> None:
    """Print what a job of tasks did."""
    if shown.json:
        say_json(_line(report, where))
    elif not shown.quiet:
        from ..report import summary

        page = shown.report
        say(*summary(report, stdout().width, output=where, verbose=shown.verbose, page=page))


def _line(report: dict[str, Any], output: str | None) -> dict[str, Any]:
    """Return the object that --json prints: the entries that pipelines need first, then the rest of the report."""
    first = {"status": "done", "output": output}
    return {**first, **{name: report[name] for name in ("seconds", "counts", "recall")}, **report}


def number_or_all(word: str) -> int | None:
    """Return the number that --max-partners gives; None for "all"."""
    if word == "all":
        return None
    try:
        return int(word)
    except ValueError:
        raise ParameterError(f"max_partners {word}: give a whole number, or all") from None


def telling_example(documents: pa.Table, measure: str) -> str | None:
    """Return the id of the removed document that resembles its kept one least: its diff is the most telling."""
    import pyarrow as pa
    import pyarrow.compute as pc

    removed = documents.select(["id", "kept", measure]).filter(pc.invert(documents["kept"]))
    if removed.num_rows == 0:
        return None
    least = pc.min(removed[measure])
    row = 0 if not least.is_valid else pc.index(removed[measure], least).as_py()
    found = removed["id"][row]
    if pa.types.is_binary(found.type) or pa.types.is_large_binary(found.type):
        return found.as_py().decode("utf-8", "surrogateescape")
    return str(found.as_py())
