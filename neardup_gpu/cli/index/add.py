"""The command `neardup index add`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...documents.reading_options import Reading
from ...engine.settings import Engine
from ...printable import shell_path
from ...records import dataclass
from ...settings import setting
from ..console import say_json, say_written, shown_progress
from ..options import OUTPUT, RUNNING, EngineFlags, Inputs, Output, ReadingFlags, flags, given
from ..verbs import RowLimits, limits_among, one_or_all
from .options import IndexFolder


@dataclass(frozen=True, kw_only=True)
class DecisionsFile(RowLimits, Output):
    """The file of decisions to write, and when the command fails."""

    output: str | None = setting(
        None,
        "Parquet file to write, with the decision about each added document.",
        metavar="FILE",
        flag="--output -o",
        shown="none",
    )


@dataclass(frozen=True, kw_only=True)
class AddSettings:
    """How documents are added."""

    commit_every: int = setting(10_000, "Documents of a commit, which nothing takes back.", metavar="N")
    replace: bool = setting(False, "Let a document take the place of an earlier one with its id.")


@dataclass(frozen=True, kw_only=True)
class PrintedDecisions:
    """Whether decisions are printed."""

    decisions: bool = setting(False, "Print the decision about each added document as a line of JSON.")


DecisionsFlags: Any = flags(OUTPUT, DecisionsFile, PrintedDecisions)
AddingFlags: Any = flags(RUNNING, AddSettings)


def add(
    index: IndexFolder,
    /,
    *inputs: Inputs,
    reading: ReadingFlags = None,
    adding: AddingFlags = None,
    written: DecisionsFlags = None,
    engine: EngineFlags = None,
) -> int:
    """Add documents to an index, and decide of each whether it is kept."""
    from ...index import Index
    from ...index.uncommon import check_decides
    from ...results.fail_over import FAILED, exceeded, of_rows

    output = given(written)
    decisions = output.pop("decisions", False)
    shown = DecisionsFile(**output)
    limits = limits_among(shown, ("skipped", "removed"))
    with shown_progress(shown) as progress, Index.open(index, engine=Engine(**given(engine))) as opened:
        if decisions:
            check_decides(opened.recipe, "decisions")
        try:
            added = opened.add(
                one_or_all(inputs),
                **given(adding),
                reading=Reading(**given(reading)),
                output=shown.output,
                overwrite=shown.overwrite,
                progress=progress,
            )
        except KeyboardInterrupt:
            raise KeyboardInterrupt("interrupted; the same command continues after the last commit") from None
        found = {**added._asdict(), "total": len(opened)}
        broken = exceeded(limits, of_rows(found))
        if opened.recipe.ignore_common is not None:  # which `decide` counts
            found = {name: found[name] for name in found if name not in ("kept", "removed")}
        if opened.recipe.unit.divides:
            found = {f"units_{name}" if name in ("kept", "removed") else name: found[name] for name in found}
    if decisions:
        for batch in added.decisions:
            for row in batch.to_pylist():
                say_json(row)
        if not shown.json:
            return FAILED if broken else 0
    shown = shown if shown.output is not None else replace(shown, output=index)
    return say_written(found, None, shown, f"neardup index query {shell_path(index)} --text TEXT", broken)
