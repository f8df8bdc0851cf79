"""The command `neardup passages`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from ..documents.reading_options import Reading
from ..documents.writing_options import Writing
from ..engine.settings import Engine
from ..records import dataclass
from ..shared_passages.settings import PassageSettings
from ..tasks.workers import Workers
from .console import goes_on, say, say_json, shown_progress
from .options import DOCUMENTS, OUTPUT, RUNNING, TASKS, Group, ResultFolder, argument, fail_over, flags, given

PASSAGES = Group("Passages", sort_key=0.5)


@dataclass(frozen=True, kw_only=True)
class PassagesFolder(ResultFolder):
    """The result to write, and when the command fails."""

    fail_over: Sequence[str] | None = fail_over(
        "passages=N, documents=N or skipped=N, or a share of all tokens, documents or rows, such as passages=1%"
    )


DocumentsFlags: Any = flags(DOCUMENTS, Reading)
PassagesFlags: Any = flags(PASSAGES, PassageSettings)
OutputFlags: Any = flags(
    OUTPUT, PassagesFolder, Writing, without=("ids_only", "report", "check", "output_format", "shard_bytes")
)
RunningFlags: Any = flags(RUNNING, Engine, without=("max_comparisons", "temp_dir"))
WorkersFlags: Any = flags(TASKS, Workers, without=("spool", "partitions"))


def passages(
    a: Annotated[str, argument("A", "The documents: a file, a folder, a glob or a URI.")],
    b: Annotated[
        str | None,
        argument("B", "The documents that passages may come from; without it, all of A are compared.", required=False),
    ] = None,
    /,
    *,
    documents: DocumentsFlags = None,
    sought: PassagesFlags = None,
    written: OutputFlags = None,
    running: RunningFlags = None,
    tasks: WorkersFlags = None,
) -> int:
    """Find the passages that documents share: where each stands in both, and the words that differ."""
    from ..results.fail_over import FAILED, exceeded, limits_of
    from ..shared_passages.result import LIMITED, summary

    shown = PassagesFolder(**given(written, of=PassagesFolder))
    limits = limits_of(shown.fail_over or (), LIMITED)
    from ..shared_passages.search import passages as finding

    workers = Workers(**given(tasks, of=Workers)) if given(tasks, of=Workers) else None
    with goes_on(workers), shown_progress(shown) as progress:
        found = finding(
            a,
            b,
            output=shown.output,
            reading=Reading(**given(documents, of=Reading)),
            writing=Writing(**given(written, of=Writing)),
            engine=Engine(**given(running, of=Engine)),
            workers=workers,
            progress=progress,
            **given(sought, of=PassageSettings),
        )
    broken = exceeded(limits, found.limited)
    if shown.json:
        status = "failed" if broken else "done"
        say_json({"status": status, "output": shown.output, "exceeded": broken, **found.report})
    elif not shown.quiet:
        say(*summary(found, shown.output, broken))
    return FAILED if broken else 0
