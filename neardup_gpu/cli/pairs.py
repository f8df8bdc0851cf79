"""The command `neardup pairs`."""

from __future__ import annotations

from typing import Annotated, Any

from ..engine.settings import Engine
from ..methods import names_with
from ..printable import shell_path
from ..records import dataclass
from ..settings import setting
from .console import say_written, shown_progress
from .options import MATCHING, EngineFlags, PairsFile, PairsFlags, argument, flags, given

_METHODS = " or ".join(names_with("postings"))


@dataclass(frozen=True, kw_only=True)
class Least:
    """Which pairs are written."""

    threshold: float | None = setting(
        None, "Minimum estimated resemblance, or cosine for simhash.", metavar="X", shown="all candidates"
    )
    containment: float | None = setting(
        None, f"Find documents if another one contains at least the share X of them; for {_METHODS}.", metavar="X"
    )


LeastFlags: Any = flags(MATCHING, Least)


def pairs(
    *sketches: Annotated[str, argument("SKETCHES", "Files that `neardup sketch` wrote.")],
    least: LeastFlags = None,
    written: PairsFlags = None,
    engine: EngineFlags = None,
) -> None:
    """Find pairs of sketches and estimate the resemblance of each pair, its containment, or its cosine for simhash."""
    from ..jobs import sketch_jobs

    shown, place = PairsFile(**given(written)), Engine(**given(engine))
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
