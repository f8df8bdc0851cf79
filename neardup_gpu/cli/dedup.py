"""The command `neardup dedup`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from ..documents.reading_options import Reading
from ..documents.writing_options import Writing
from ..engine.settings import Engine
from ..errors import ParameterError
from ..records import dataclass
from ..settings import setting
from ..tasks.workers import Workers
from ..text.unit_options import Unit
from . import methods
from .console import say, say_json, stdout
from .methods import Choice, Conditions, Listing, ShingleSettings, chosen_recipe, listed
from .options import DECIDING, DOCUMENTS, MATCHING, OUTPUT, RUNNING, TASKS, Inputs, flags, given, method_flags
from .verbs import ResultFolder, RowLimits, limits_among, one_or_all, running

if TYPE_CHECKING:
    import pyarrow as pa

    from ..documents.references import Reference
    from ..results.result import Result


@dataclass(frozen=True, kw_only=True)
class Against:
    """Other documents to compare with."""

    against: list[str] | None = setting(
        None,
        "Also remove documents that resemble these, which are left untouched. Several sets are named in the result, by "
        "NAME=PATH or by their files.",
        metavar="REFERENCE",
        shown="none",
    )
    against_text_column: list[str] | None = setting(
        None, "Column of text of the reference sets.", metavar="NAME", shown="that of the input"
    )
    against_id_column: str | None = setting(
        None, "Column of unique ids of the reference sets.", metavar="NAME", shown="that of the input"
    )
    against_html: bool | Literal["tree"] = setting(
        False, "The text of the reference sets is HTML, as --html says it of the input.", metavar="[tree]"
    )
    only_against: bool = setting(
        False, "Remove only documents that resemble those of --against; copies inside the input are kept."
    )


@dataclass(frozen=True, kw_only=True)
class Keeping:
    """Which documents are kept, and which pairs are listed."""

    keep: str = setting(
        "first",
        "Which document of a group to keep: first, longest, or by a column such as date:desc; or several keys, as in "
        "score:desc,longest,first.",
        metavar="RULE",
    )
    cluster: str = setting("greedy", "How groups are made: greedy or components.", metavar="RULE")


@dataclass(frozen=True, kw_only=True)
class DedupOutput(RowLimits, ResultFolder):
    """The result to write, the way to print it, and when the command fails."""

    dry_run: bool = setting(False, "Decide, but write nothing.")
    verbose: bool = setting(False, "Print stages, pairs and the recipe as well.", flag="--verbose -v")


@dataclass(frozen=True, kw_only=True)
class Bound:
    """A limit on the memory of a job."""

    memory: str | None = setting(
        None, "Memory of all processes together, such as 2GB. A job that needs more works on files.", metavar="SIZE"
    )


DocumentsFlags: Any = flags(DOCUMENTS, Reading, Against)
ChoiceFlags: Any = flags(MATCHING, Choice, ShingleSettings, Conditions)
MethodFlags: Any = method_flags(MATCHING, methods.DECIDING)
KeepingFlags: Any = flags(DECIDING, Keeping, Listing, Unit)
OutputFlags: Any = flags(OUTPUT, DedupOutput, Writing)
RunningFlags: Any = flags(RUNNING, Engine, Bound)
WorkersFlags: Any = flags(TASKS, Workers)


def dedup(
    *inputs: Inputs,
    documents: DocumentsFlags = None,
    choice: ChoiceFlags = None,
    method: MethodFlags = None,
    keeping: KeepingFlags = None,
    written: OutputFlags = None,
    engine: RunningFlags = None,
    tasks: WorkersFlags = None,
) -> int:
    """Remove near-duplicates. OUT holds the kept rows, and for each removed row its kept document and resemblance."""
    from ..results.fail_over import FAILED, exceeded, of_rows

    shown = DedupOutput(**given(written, of=DedupOutput))
    limits = limits_among(shown, ("skipped", "removed"))
    if shown.output is None and not shown.dry_run:
        raise ParameterError("say where the result goes with --output OUT, or only decide with --dry-run")
    output = None if shown.dry_run else shown.output
    kept, reference = given(keeping, of=Keeping) | listed(keeping), given(documents, of=Against)
    kept["unit"] = Unit(**given(keeping, of=Unit))
    reading = Reading(**given(documents, of=Reading))
    against = _references(reference.pop("against", None), reading, reference)
    recipe = chosen_recipe(methods.DECIDING, method, **given(choice), **kept, **reference)
    writing = Writing(**given(written, of=Writing))
    if writing.check and not recipe.verifies:
        raise ParameterError("check: nothing is verified, so no recall can be estimated; leave it out")
    from ..jobs import dedup as job

    with running(shown, reading, engine, tasks) as options:
        found = job.dedup(
            one_or_all(inputs),
            against=against,
            recipe=recipe,
            output=output,
            writing=writing,
            **options,
            **given(engine, of=Bound),
        )
    broken = exceeded(limits, of_rows(found.report["counts"]))
    _say(found, shown, output, writing.report, broken)
    return FAILED if broken else 0


def _references(words: list[str] | None, reading: Reading, settings: dict[str, Any]) -> list[Reference] | None:
    """Return the reference sets that flags name; the settings of their reading are taken out of `settings`."""
    from ..documents.references import named_reference

    names = {"text_column": "text_columns", "id_column": "id_column", "html": "html"}
    own = {name: settings.pop(key) for word, name in names.items() if (key := f"against_{word}") in settings}
    if words is None:
        if own:
            raise ParameterError("against: there is no reference set to read so; give --against as well")
        return None
    return [named_reference(word, replace(reading, **own) if own else None) for word in words]


def _say(found: Result, shown: DedupOutput, output: str | None, page: bool, broken: list[str]) -> None:
    """Print what a job did, and the limits that were exceeded."""
    if shown.json:
        say_json(_line(found.report, output, broken))
    elif not shown.quiet:
        from ..report import row, summary
        from ..results.result import StoredResult

        example = None
        if output is not None and not isinstance(found, StoredResult):  # whose tables may not fit in memory
            example = telling_example(found.documents, found.recipe.method.measure.name)
        width = stdout().width
        lines = summary(found.report, width, output=output, example=example, verbose=shown.verbose, page=page)
        say(*lines, *(row("failed", line) for line in broken))


def _line(report: dict[str, Any], output: str | None, broken: list[str]) -> dict[str, Any]:
    """Return the object that --json prints: the entries that pipelines need first, then the rest of the report."""
    first = {"status": "failed" if broken else "done", "output": output}
    return {**first, **{name: report[name] for name in ("seconds", "counts", "recall")}, "exceeded": broken, **report}


def telling_example(documents: pa.Table, measure: str) -> str | None:
    """Return the id of the removed document that resembles its kept one least: its diff is the most telling.

    If parts of documents are cut, return that of the kept document from which most parts are cut, if there is one.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    shown = documents.select(["id", measure]).filter(pc.invert(documents["kept"]))
    values, told = shown[measure], pc.min(shown[measure])
    if "units_cut" in documents.column_names:
        some = pc.and_(documents["kept"], pc.greater(documents["units_cut"], 0))
        if pc.any(some).as_py():
            shown = documents.select(["id", "units_cut"]).filter(some)
            values, told = shown["units_cut"], pc.max(shown["units_cut"])
    if shown.num_rows == 0:
        return None
    row = 0 if not told.is_valid else pc.index(values, told).as_py()
    found = shown["id"][row]
    if pa.types.is_binary(found.type) or pa.types.is_large_binary(found.type):
        return found.as_py().decode("utf-8", "surrogateescape")
    return str(found.as_py())
