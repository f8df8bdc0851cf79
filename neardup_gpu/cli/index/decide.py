"""The command `neardup index decide`."""

from __future__ import annotations

from typing import Any

from ...engine.settings import Engine
from ...errors import ParameterError
from ...printable import shell_path
from ...records import dataclass
from ...settings import setting
from ..console import say_written, shown_progress
from ..options import DECIDING, OUTPUT, EngineFlags, flags, given
from ..verbs import ResultFolder
from .options import IndexFolder


@dataclass(frozen=True, kw_only=True)
class IndexKeeping:
    """Which documents are kept."""

    keep: str = setting(
        "first",
        "Which document of a group to keep: first, longest, or by a column of the index, such as date:desc; or several "
        "keys, as in score:desc,longest,first.",
        metavar="RULE",
    )
    counts: bool = setting(
        False, "Count the copies and near-duplicates that each kept document stands for, in columns copies and near."
    )
    cluster: str = setting("greedy", "How groups are made: greedy or components.", metavar="RULE")


KeepingFlags: Any = flags(DECIDING, IndexKeeping)
ResultFlags: Any = flags(OUTPUT, ResultFolder)


def decide(
    index: IndexFolder,
    /,
    *,
    keeping: KeepingFlags = None,
    result: ResultFlags = None,
    engine: EngineFlags = None,
) -> None:
    """Decide which documents of an index to keep: what `neardup dedup` of them would, but for their rows."""
    from ...index import Index

    shown = ResultFolder(**given(result))
    if shown.output is None:
        raise ParameterError("--output: name a folder for the result")
    with shown_progress(shown) as progress, Index.open(index, engine=Engine(**given(engine))) as opened:
        how = given(keeping)
        found = opened.decide(output=shown.output, overwrite=shown.overwrite, progress=progress, **how)
    names = ("units", "units_cut") if found.recipe.unit.divides else ("verified_pairs",)
    counts = {name: found.report["counts"][name] for name in ("documents", "kept", "removed", *names)}
    say_written(counts, None, shown, f"neardup info {shell_path(shown.output)}")
