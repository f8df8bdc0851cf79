"""The command `neardup passages`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from ..documents.reading_options import Reading
from ..documents.writing_options import DECISIONS, ROWS, Writing
from ..records import dataclass
from ..shared_passages.settings import PassageSettings
from ..tasks.workers import Workers
from .options import OUTPUT, TASKS, Group, ReadingFlags, SearchBound, SearchFlags, argument, flags, given
from .verbs import ResultFolder, fail_over, limits_among, running, say_result

PASSAGES = Group("Passages", sort_key=0.5)


@dataclass(frozen=True, kw_only=True)
class PassagesFolder(ResultFolder):
    """The result to write, and when the command fails."""

    fail_over: Sequence[str] | None = fail_over(
        "passages=N, documents=N or skipped=N, or a share of all tokens, documents or rows, such as passages=1%"
    )


PassagesFlags: Any = flags(PASSAGES, PassageSettings)
OutputFlags: Any = flags(OUTPUT, PassagesFolder, Writing, without=(*DECISIONS, *ROWS))
WorkersFlags: Any = flags(TASKS, Workers, without=("spool", "partitions"))


def passages(
    a: Annotated[str, argument("A", "The documents: a file, a folder, a glob or a URI.")],
    b: Annotated[
        str | None,
        argument("B", "The documents that passages may come from; without it, all of A are compared.", required=False),
    ] = None,
    /,
    *,
    documents: ReadingFlags = None,
    sought: PassagesFlags = None,
    written: OutputFlags = None,
    engine: SearchFlags = None,
    tasks: WorkersFlags = None,
) -> int:
    """Find the passages that documents share: where each stands in both, and the words that differ."""
    from ..shared_passages.result import LIMITED, summary

    shown = PassagesFolder(**given(written, of=PassagesFolder))
    limits = limits_among(shown, LIMITED)
    from ..shared_passages.search import passages as finding

    with running(shown, Reading(**given(documents)), engine, tasks) as options:
        writing = Writing(**given(written, of=Writing))
        options |= given(engine, of=SearchBound) | given(sought)
        found = finding(a, b, output=shown.output, writing=writing, **options)
    return say_result(found, shown, limits, summary)
