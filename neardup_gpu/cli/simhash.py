"""The command `neardup simhash`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..printable import shell_path
from ..settings import setting
from .console import say_written, shown_progress
from .methods import ShinglesFlags, SimHashFlags, chosen_recipe
from .options import OUTPUT, Inputs, Output, ReadingFlags, SpoolingFlags, flags, given, one_or_all


@dataclass(frozen=True, kw_only=True)
class Simhashes(Output):
    """Where the simhashes go."""

    output: str = setting("simhashes.parquet", "Where the simhashes go.", metavar="FILE", flag="--output -o")


SimhashesFlags: Any = flags(OUTPUT, Simhashes)


def simhash(
    *inputs: Inputs,
    reading: ReadingFlags = None,
    settings: SimHashFlags = None,
    shingles: ShinglesFlags = None,
    written: SimhashesFlags = None,
    running: SpoolingFlags = None,
) -> None:
    """Summarise documents by 64 or 128 bits, alike where they are alike, to be compared by `neardup hamming`."""
    shown = Simhashes(**given(written))
    recipe, frequencies = chosen_recipe("simhash", shingles, settings)
    from .. import pipeline

    with shown_progress(shown.quiet) as progress:
        counts = pipeline.sketch(
            one_or_all(inputs),
            shown.output,
            **given(reading, running),
            recipe=recipe,
            frequencies=frequencies,
            overwrite=shown.overwrite,
            progress=progress,
        )
    say_written(counts, None, shown, f"neardup hamming pairs {shell_path(shown.output)}")
