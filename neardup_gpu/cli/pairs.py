"""The command `neardup pairs`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from ..errors import ParameterError
from ..printable import shell_path
from ..settings import setting
from .console import say_written, shown_progress
from .options import MATCHING, OUTPUT, Output, RunningFlags, argument, flags, given


@dataclass(frozen=True, kw_only=True)
class Least:
    """Which pairs are written."""

    threshold: float | None = setting(None, "Least estimated resemblance.", metavar="X", shown="all candidates")


@dataclass(frozen=True, kw_only=True)
class Pairs(Output):
    """Where the pairs go."""

    output: str = setting("pairs.parquet", "Where the pairs go.", metavar="FILE", flag="--output -o")


LeastFlags: Any = flags(MATCHING, Least)
PairsFlags: Any = flags(OUTPUT, Pairs)


def pairs(
    *sketches: Annotated[str, argument("SKETCHES", "What `neardup sketch` wrote.")],
    least: LeastFlags = None,
    written: PairsFlags = None,
    running: RunningFlags = None,
) -> None:
    """Find pairs among sketches: the estimated resemblance of each, with its interval."""
    from .. import pipeline

    threshold = Least(**given(least)).threshold
    if threshold is not None and not 0 <= threshold <= 1:
        raise ParameterError(f"threshold {threshold} is outside 0 to 1; 0.8 is usual")
    shown = Pairs(**given(written))
    with shown_progress(shown.quiet) as progress:
        found = pipeline.find_pairs(
            list(sketches),
            shown.output,
            threshold=threshold,
            **given(running),
            overwrite=shown.overwrite,
            progress=progress,
        )
    say_written({"pairs": found.num_rows}, None, shown, f"neardup info {shell_path(shown.output)}")
