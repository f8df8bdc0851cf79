"""The command `neardup substrings`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..documents.reading_options import Reading
from ..documents.writing_options import DECISIONS, Writing
from ..records import dataclass
from ..repeated_passages.settings import SubstringSettings
from ..settings import setting
from ..tasks.workers import Workers
from .options import OUTPUT, TASKS, Group, Inputs, ReadingFlags, SearchBound, SearchFlags, flags, given
from .verbs import ResultFolder, fail_over, limits_among, one_or_all, running, say_result

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


PassagesFlags: Any = flags(PASSAGES, SubstringSettings, PassagesOfReference)
OutputFlags: Any = flags(OUTPUT, SubstringsFolder, Writing, without=DECISIONS)
WorkersFlags: Any = flags(TASKS, Workers, without=("spool",))


def substrings(
    *inputs: Inputs,
    documents: ReadingFlags = None,
    passages: PassagesFlags = None,
    written: OutputFlags = None,
    engine: SearchFlags = None,
    tasks: WorkersFlags = None,
) -> int:
    """Find every passage that occurs more than once, and write a corpus in which each stays once."""
    shown = SubstringsFolder(**given(written, of=SubstringsFolder))
    limits = limits_among(shown, ("skipped", "removed"))
    from ..repeated_passages.result import summary
    from ..repeated_passages.substrings import substrings as finding

    with running(shown, Reading(**given(documents)), engine, tasks) as options:
        found = finding(
            one_or_all(inputs),
            output=shown.output,
            writing=Writing(**given(written, of=Writing)),
            **options,
            **given(engine, of=SearchBound),
            **given(passages),
        )
    return say_result(found, shown, limits, summary)
