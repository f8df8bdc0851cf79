"""The command `neardup sketch`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..engine.settings import Engine
from ..printable import shell_path
from ..settings import setting
from .console import say_written, shown_progress
from .methods import SKETCHING, ShinglesFlags, SummaryFlags, chosen, method_flags
from .options import OUTPUT, EngineFlags, Inputs, Output, ReadingFlags, TemporaryFlags, flags, given, one_or_all


@dataclass(frozen=True, kw_only=True)
class Sketches(Output):
    """The file of sketches to write."""

    output: str = setting("sketches.parquet", "File to write the sketches to.", metavar="FILE", flag="--output -o")


SketchesFlags: Any = flags(OUTPUT, Sketches)
MethodFlags: Any = method_flags(SKETCHING)


def sketch(
    *inputs: Inputs,
    reading: ReadingFlags = None,
    choice: SummaryFlags = None,
    shingles: ShinglesFlags = None,
    settings: MethodFlags = None,
    written: SketchesFlags = None,
    engine: EngineFlags = None,
    temporary: TemporaryFlags = None,
) -> None:
    """Summarise documents by small sketches, to be compared by `neardup pairs`."""
    shown = Sketches(**given(written))
    how = chosen(SKETCHING, choice, shingles, settings)
    place = Engine(**given(engine))
    from .. import sketch_jobs

    with shown_progress(shown) as progress:
        counts = sketch_jobs.sketch(
            one_or_all(inputs),
            shown.output,
            **given(reading, temporary),
            **how,
            engine=place,
            overwrite=shown.overwrite,
            progress=progress,
        )
    say_written(counts, None, shown, f"neardup pairs {shell_path(shown.output)}")
