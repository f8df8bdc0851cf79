"""The command `neardup pairs`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from ..engine.settings import Engine
from ..methods import names_with
from ..printable import shell_path
from ..settings import setting
from .console import say_written, shown_progress
from .options import MATCHING, OUTPUT, EngineFlags, Output, argument, flags, given

_METHODS = " or ".join(names_with("postings"))


@dataclass(frozen=True, kw_only=True)
class Least:
    """Which pairs are written."""

    threshold: float | None = setting(
        None, "Least estimated resemblance, or cosine by simhash.", metavar="X", shown="all candidates"
    )
    containment: float | None = setting(
        None, f"Look for documents of which another contains the share X, by {_METHODS}.", metavar="X"
    )


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
    engine: EngineFlags = None,
) -> None:
    """Find pairs among sketches and estimate the resemblance of each, its containment or, by simhash, its cosine."""
    from .. import sketch_jobs

    shown, place = Pairs(**given(written)), Engine(**given(engine))
    with shown_progress(shown) as progress:
        found = sketch_jobs.pairs(
            list(sketches),
            shown.output,
            **given(least),
            engine=place,
            overwrite=shown.overwrite,
            progress=progress,
        )
    say_written({"pairs": found.num_rows}, None, shown, f"neardup info {shell_path(shown.output)}")
