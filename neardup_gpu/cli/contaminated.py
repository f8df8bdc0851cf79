"""The command `neardup contaminated`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..contamination.settings import ContaminationSettings
from ..documents.reading_options import Reading
from ..documents.writing_options import DECISIONS, Writing
from ..records import dataclass
from ..settings import setting
from ..tasks.workers import Workers
from .options import OUTPUT, TASKS, EngineFlags, Group, Inputs, ReadingFlags, flags, given
from .verbs import ResultFolder, fail_over, limits_among, one_or_all, running, say_result

LOOKED_FOR = Group("What is looked for", sort_key=0.5)


@dataclass(frozen=True, kw_only=True)
class Evals:
    """The texts that are looked for."""

    evals: Sequence[str] | None = setting(
        None,
        "Evaluation sets: JSON lines, Parquet, CSV, a folder or a URI of such files. May be repeated.",
        metavar="DIR",
    )
    against: str | None = setting(
        None, "Also look for these documents, which are left untouched; each is an item.", metavar="REFERENCE"
    )


@dataclass(frozen=True, kw_only=True)
class Certificate(ResultFolder):
    """The certificate to write, and when it fails."""

    fail_over: Sequence[str] | None = fail_over(
        "items=N, documents=N, gpt3=N or skipped=N, or a share such as items=0.1%"
    )


EvalsFlags: Any = flags(LOOKED_FOR, Evals, ContaminationSettings)
CertificateFlags: Any = flags(OUTPUT, Certificate, Writing, without=DECISIONS)
WorkersFlags: Any = flags(TASKS, Workers, without=("spool", "partitions"))


def contaminated(
    *inputs: Inputs,
    documents: ReadingFlags = None,
    looked_for: EvalsFlags = None,
    written: CertificateFlags = None,
    engine: EngineFlags = None,
    tasks: WorkersFlags = None,
) -> int:
    """Find the items of evaluation sets in a training text: where each stands, and what each definition says of it."""
    shown, sought = Certificate(**given(written, of=Certificate)), given(looked_for)
    from ..contamination.verdicts import LIMITED, summary

    limits = limits_among(shown, LIMITED)
    from ..contamination import contaminated as checking

    with running(shown, Reading(**given(documents)), engine, tasks) as options:
        writing = Writing(**given(written, of=Writing))
        found = checking.contaminated(one_or_all(inputs), output=shown.output, writing=writing, **options, **sought)
    return say_result(found, shown, limits, summary)
