"""The command `neardup contaminated`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..contamination.settings import ContaminationSettings
from ..documents.reading_options import Reading
from ..documents.writing_options import Writing
from ..engine.settings import Engine
from ..records import dataclass
from ..settings import setting
from ..tasks.workers import Workers
from .console import goes_on, say, say_json, shown_progress
from .options import DOCUMENTS, OUTPUT, RUNNING, TASKS, Group, Inputs, ResultFolder, fail_over, flags, given, one_or_all

if TYPE_CHECKING:
    from ..contamination.verdicts import Contamination

LOOKED_FOR = Group("What is looked for", sort_key=0.5)


@dataclass(frozen=True, kw_only=True)
class Evals:
    """The evaluation sets."""

    evals: Sequence[str] | None = setting(
        None,
        "Evaluation sets: JSON lines, Parquet, CSV, a folder or a URI of such files. May be repeated.",
        metavar="DIR",
    )


@dataclass(frozen=True, kw_only=True)
class Certificate(ResultFolder):
    """The certificate to write, and when it fails."""

    fail_over: Sequence[str] | None = fail_over(
        "items=N, documents=N, gpt3=N or skipped=N, or a share such as items=0.1%"
    )


DocumentsFlags: Any = flags(DOCUMENTS, Reading)
EvalsFlags: Any = flags(LOOKED_FOR, Evals, ContaminationSettings)
CertificateFlags: Any = flags(OUTPUT, Certificate, Writing, without=("ids_only", "report", "check"))
RunningFlags: Any = flags(RUNNING, Engine, without=("max_comparisons", "temp_dir"))
WorkersFlags: Any = flags(TASKS, Workers, without=("spool", "partitions"))


def contaminated(
    *inputs: Inputs,
    documents: DocumentsFlags = None,
    looked_for: EvalsFlags = None,
    written: CertificateFlags = None,
    running: RunningFlags = None,
    tasks: WorkersFlags = None,
) -> int:
    """Find the items of evaluation sets in a training text: where each stands, and what each definition says of it."""
    from ..errors import ParameterError
    from ..results.fail_over import FAILED, exceeded, limits_of

    shown, evals = Certificate(**given(written, of=Certificate)), given(looked_for, of=Evals)
    if not evals:
        raise ParameterError("evals: name the evaluation sets, as in evals=['benchmarks/']")
    from ..contamination.verdicts import LIMITED

    limits = limits_of(shown.fail_over or (), LIMITED)
    from ..contamination import contaminated as checking

    workers = Workers(**given(tasks, of=Workers)) if given(tasks, of=Workers) else None
    with goes_on(workers), shown_progress(shown) as progress:
        found = checking.contaminated(
            one_or_all(inputs),
            evals["evals"],
            output=shown.output,
            reading=Reading(**given(documents, of=Reading)),
            writing=Writing(**given(written, of=Writing)),
            engine=Engine(**given(running, of=Engine)),
            workers=workers,
            progress=progress,
            **given(looked_for, of=ContaminationSettings),
        )
    broken = exceeded(limits, found.limited)
    _say(found, shown, broken)
    return FAILED if broken else 0


def _say(found: Contamination, shown: Certificate, broken: list[str]) -> None:
    """Print the table of evaluation sets and the limits that were exceeded."""
    if shown.json:
        status = "failed" if broken else "done"
        say_json({"status": status, "output": shown.output, "exceeded": broken, **found.report})
    elif not shown.quiet:
        from ..contamination.verdicts import summary

        say(*summary(found.report, shown.output, broken))
