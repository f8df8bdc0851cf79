"""The command `neardup substrings`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..documents.reading_options import Reading
from ..documents.writing_options import Writing
from ..engine.settings import Engine
from ..records import dataclass
from ..repeated_passages.settings import SubstringSettings
from ..settings import setting
from ..tasks.workers import Workers
from .console import goes_on, say, say_json, shown_progress
from .options import (
    DOCUMENTS,
    OUTPUT,
    RUNNING,
    TASKS,
    Group,
    Inputs,
    ResultFolder,
    fail_over,
    flags,
    given,
    one_or_all,
)

PASSAGES = Group("Passages", sort_key=0.5)


@dataclass(frozen=True, kw_only=True)
class PassagesOfReference:
    """Other documents to compare with."""

    against: str | None = setting(
        None, "Also remove passages that occur in these documents, which are left untouched.", metavar="REFERENCE"
    )


@dataclass(frozen=True, kw_only=True)
class SubstringsFolder(ResultFolder):
    """The result to write, and when the command fails."""

    fail_over: Sequence[str] | None = fail_over(
        "skipped=N or removed=N, or a share of all rows or tokens, such as removed=20%"
    )


DocumentsFlags: Any = flags(DOCUMENTS, Reading)
PassagesFlags: Any = flags(PASSAGES, SubstringSettings, PassagesOfReference)
OutputFlags: Any = flags(OUTPUT, SubstringsFolder, Writing, without=("ids_only", "report", "check"))
RunningFlags: Any = flags(RUNNING, Engine, without=("max_comparisons", "temp_dir"))
WorkersFlags: Any = flags(TASKS, Workers, without=("spool",))


def substrings(
    *inputs: Inputs,
    documents: DocumentsFlags = None,
    passages: PassagesFlags = None,
    written: OutputFlags = None,
    running: RunningFlags = None,
    tasks: WorkersFlags = None,
) -> int:
    """Find every passage that occurs more than once, and write a corpus in which each stays once."""
    from ..results.fail_over import FAILED, exceeded, limits_of

    shown = SubstringsFolder(**given(written, of=SubstringsFolder))
    limits = limits_of(shown.fail_over or (), ("skipped", "removed"))
    from ..repeated_passages.result import summary
    from ..repeated_passages.substrings import substrings as finding

    workers = Workers(**given(tasks, of=Workers)) if given(tasks, of=Workers) else None
    with goes_on(workers), shown_progress(shown) as progress:
        found = finding(
            one_or_all(inputs),
            output=shown.output,
            reading=Reading(**given(documents, of=Reading)),
            writing=Writing(**given(written, of=Writing)),
            engine=Engine(**given(running, of=Engine)),
            workers=workers,
            progress=progress,
            **given(passages, of=PassagesOfReference),
            **given(passages, of=SubstringSettings),
        )
    broken = exceeded(limits, found.limited)
    if shown.json:
        status = "failed" if broken else "done"
        say_json({"status": status, "output": shown.output, "exceeded": broken, **found.report})
    elif not shown.quiet:
        say(*summary(found, shown.output, broken))
    return FAILED if broken else 0
