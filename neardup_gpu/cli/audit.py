"""The command `neardup audit`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..auditing.settings import AuditSettings
from ..documents.reading_options import Reading
from ..engine.settings import Engine
from ..methods.containment import Containment
from ..methods.exact import Exact
from ..records import dataclass
from ..settings import setting
from ..tasks.workers import Workers
from .console import goes_on, say, say_json, shown_progress
from .dedup import Bound
from .methods import ShingleSettings, chosen_recipe
from .options import (
    DOCUMENTS,
    MATCHING,
    OUTPUT,
    RUNNING,
    TASKS,
    Group,
    Inputs,
    ResultFolder,
    fail_over,
    flags,
    given,
    method_flags,
    one_or_all,
)

if TYPE_CHECKING:
    from ..auditing.verdict import Audit

JOINS: dict[str, tuple[type, ...]] = {"exact": (Exact,), "containment": (Containment,)}
"""The methods that miss no pair."""

RESULT = Group("The result to judge", sort_key=0.5)


@dataclass(frozen=True, kw_only=True)
class Claimed:
    """The files that the tool wrote."""

    kept: Sequence[str] | None = setting(
        None,
        "Documents that the tool kept: rows, ids, or a text file of ids. A file or folder; may be repeated.",
        metavar="FILE",
    )
    removed: Sequence[str] | None = setting(
        None, "Documents that the tool removed, in the same forms; may be repeated.", metavar="FILE"
    )
    clusters: str | None = setting(None, "The cluster of each document, if the tool writes it.", metavar="FILE")
    pairs: str | None = setting(
        None,
        "Stated reasons, if the tool writes them: pairs of ids of a removed and a kept document.",
        metavar="FILE",
    )


@dataclass(frozen=True, kw_only=True)
class JoinChoice:
    """How documents are compared, and which are near-duplicates."""

    method: str = setting("exact", "How documents are compared: exact or containment.", metavar="NAME")
    threshold: float | None = setting(
        None, "Minimum resemblance, or containment, above 0 and up to 1.", metavar="X", shown="0.8, 0.9 by containment"
    )


@dataclass(frozen=True, kw_only=True)
class Verdict(ResultFolder):
    """The verdict to write, and when it fails."""

    fail_over: Sequence[str] | None = fail_over("lost=N, missed=N or skipped=N, or a share such as lost=0.5%")


DocumentsFlags: Any = flags(DOCUMENTS, Reading)
ClaimedFlags: Any = flags(RESULT, Claimed, AuditSettings)
JoinFlags: Any = flags(MATCHING, JoinChoice, ShingleSettings)
MethodFlags: Any = method_flags(MATCHING, JOINS)
VerdictFlags: Any = flags(OUTPUT, Verdict)
RunningFlags: Any = flags(RUNNING, Engine, Bound)
WorkersFlags: Any = flags(TASKS, Workers)


def audit(
    *inputs: Inputs,
    documents: DocumentsFlags = None,
    claimed: ClaimedFlags = None,
    choice: JoinFlags = None,
    method: MethodFlags = None,
    written: VerdictFlags = None,
    running: RunningFlags = None,
    tasks: WorkersFlags = None,
) -> int:
    """Judge the result of any deduplication tool: what it lost, what it missed, and which of its reasons hold."""
    from ..auditing.verdict import LIMITED
    from ..results.fail_over import FAILED, exceeded, limits_of

    shown = Verdict(**given(written))
    limits = limits_of(shown.fail_over or (), LIMITED)
    recipe = chosen_recipe(JOINS, method, **given(choice))
    from ..auditing import audit as auditing
    from ..documents.writing_options import Writing

    workers = Workers(**given(tasks)) if given(tasks) else None
    with goes_on(workers), shown_progress(shown) as progress:
        found = auditing.audit(
            one_or_all(inputs),
            output=shown.output,
            recipe=recipe,
            reading=Reading(**given(documents, of=Reading)),
            writing=Writing(overwrite=shown.overwrite),
            engine=Engine(**given(running, of=Engine)),
            workers=workers,
            progress=progress,
            **given(running, of=Bound),
            **given(claimed),
        )
    broken = exceeded(limits, found.limited)
    _say(found, shown, broken)
    return FAILED if broken else 0


def _say(found: Audit, shown: Verdict, broken: list[str]) -> None:
    """Print the five sentences, the counts by source and the limits that were exceeded."""
    if shown.json:
        status = "failed" if broken else "done"
        say_json({"status": status, "output": shown.output, "exceeded": broken, **found.report})
    elif not shown.quiet:
        from ..auditing.verdict import summary

        say(*summary(found.report, shown.output, broken))
