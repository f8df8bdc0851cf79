"""The command `neardup substrings`."""

from __future__ import annotations

from typing import Any

from ..documents.reading_options import Reading
from ..documents.writing_options import Writing
from ..engine.settings import Engine
from ..repeated_passages.settings import SubstringSettings
from .console import say, say_json, shown_progress
from .options import DOCUMENTS, OUTPUT, RUNNING, Group, Inputs, ResultFolder, flags, given, one_or_all

PASSAGES = Group("Passages", sort_key=0.5)


DocumentsFlags: Any = flags(DOCUMENTS, Reading)
PassagesFlags: Any = flags(PASSAGES, SubstringSettings)
OutputFlags: Any = flags(OUTPUT, ResultFolder, Writing, without=("ids_only", "report", "check", "by"))
RunningFlags: Any = flags(RUNNING, Engine, without=("max_comparisons", "temp_dir"))


def substrings(
    *inputs: Inputs,
    documents: DocumentsFlags = None,
    passages: PassagesFlags = None,
    written: OutputFlags = None,
    running: RunningFlags = None,
) -> int:
    """Find every passage that occurs more than once, and write a corpus in which each stays once."""
    shown = ResultFolder(**given(written, of=ResultFolder))
    from ..repeated_passages.result import summary
    from ..repeated_passages.substrings import substrings as finding

    with shown_progress(shown) as progress:
        found = finding(
            one_or_all(inputs),
            output=shown.output,
            reading=Reading(**given(documents, of=Reading)),
            writing=Writing(**given(written, of=Writing)),
            engine=Engine(**given(running, of=Engine)),
            progress=progress,
            **given(passages, of=SubstringSettings),
        )
    if shown.json:
        say_json({"status": "done", "output": shown.output, **found.report})
    elif not shown.quiet:
        say(*summary(found, shown.output))
    return 0
