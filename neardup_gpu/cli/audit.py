"""The command `neardup audit`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..auditing.settings import AuditSettings
from ..documents.reading_options import Reading
from ..engine.settings import Engine
from ..methods.containment import Containment
from ..methods.exact import Exact
from ..records import dataclass
from ..settings import setting
from ..tasks.workers import Workers
from .dedup import Bound
from .methods import Choice, ShingleSettings, chosen_recipe
from .options import MATCHING, OUTPUT, RUNNING, TASKS, Group, Inputs, ReadingFlags, flags, given, method_flags
from .verbs import ResultFolder, fail_over, limits_among, one_or_all, running, say_result

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
    clusters: Sequence[str] | None = setting(
        None, "The cluster of each document, if the tool writes it; may be repeated.", metavar="FILE"
    )
    pairs: Sequence[str] | None = setting(
        None,
        "Stated reasons, if the tool writes them: pairs of ids of a removed and a kept document; may be repeated.",
        metavar="FILE",
    )


@dataclass(frozen=True, kw_only=True)
class JoinChoice(Choice):
    """How documents are compared, and which are near-duplicates."""

    method: str = setting("exact", "How documents are compared: exact or containment.", metavar="NAME")


@dataclass(frozen=True, kw_only=True)
class Verdict(ResultFolder):
    """The verdict to write, and when it fails."""

    fail_over: Sequence[str] | None = fail_over("lost=N, missed=N or skipped=N, or a share such as lost=0.5%")


ClaimedFlags: Any = flags(RESULT, Claimed, AuditSettings)
JoinFlags: Any = flags(MATCHING, JoinChoice, ShingleSettings)
MethodFlags: Any = method_flags(MATCHING, JOINS)
VerdictFlags: Any = flags(OUTPUT, Verdict)
RunningFlags: Any = flags(RUNNING, Engine, Bound)
WorkersFlags: Any = flags(TASKS, Workers)


def audit(
    *inputs: Inputs,
    documents: ReadingFlags = None,
    claimed: ClaimedFlags = None,
    choice: JoinFlags = None,
    method: MethodFlags = None,
    written: VerdictFlags = None,
    engine: RunningFlags = None,
    tasks: WorkersFlags = None,
) -> int:
    """Judge the result of any deduplication tool: what it lost, what it missed, and which of its reasons hold."""
    from ..auditing.verdict import LIMITED, summary

    shown = Verdict(**given(written))
    limits = limits_among(shown, LIMITED)
    recipe = chosen_recipe(JOINS, method, **given(choice))
    from ..auditing import audit as auditing
    from ..documents.writing_options import Writing

    with running(shown, Reading(**given(documents)), engine, tasks) as options:
        found = auditing.audit(
            one_or_all(inputs),
            output=shown.output,
            recipe=recipe,
            writing=Writing(overwrite=shown.overwrite),
            **options,
            **given(engine, of=Bound),
            **given(claimed),
        )
    return say_result(found, shown, limits, summary)
