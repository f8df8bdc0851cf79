"""The command `neardup sketch`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..printable import shell_path
from ..settings import setting
from .console import say_written, shown_progress
from .methods import MinHashFlags, ShinglesFlags, ThresholdFlags, chosen_recipe
from .options import OUTPUT, Inputs, Output, ReadingFlags, RunningFlags, flags, given, one_or_all


@dataclass(frozen=True, kw_only=True)
class Sketches(Output):
    """Where the sketches go."""

    output: str = setting("sketches.parquet", "Where the sketches go.", metavar="FILE", flag="--output -o")


SketchesFlags: Any = flags(OUTPUT, Sketches)


def sketch(
    *inputs: Inputs,
    reading: ReadingFlags = None,
    threshold: ThresholdFlags = None,
    settings: MinHashFlags = None,
    shingles: ShinglesFlags = None,
    written: SketchesFlags = None,
    running: RunningFlags = None,
) -> None:
    """Summarise documents by fixed-size sketches, to be compared by `neardup pairs`."""
    shown = Sketches(**given(written))
    recipe, _ = chosen_recipe("minhash", shingles, settings, **given(threshold))
    from .. import pipeline

    with shown_progress(shown.quiet) as progress:
        counts = pipeline.sketch(
            one_or_all(inputs),
            shown.output,
            **given(reading, running),
            recipe=recipe,
            overwrite=shown.overwrite,
            progress=progress,
        )
    say_written(counts, None, shown, f"neardup pairs {shell_path(shown.output)}")
