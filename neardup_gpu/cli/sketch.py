"""The command `neardup sketch`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..documents.reading_options import Reading
from ..engine.settings import Engine
from ..printable import shell_path
from ..records import dataclass
from ..settings import setting
from ..tasks.workers import Workers
from ..text.unit_options import Unit
from .console import say_written
from .methods import SKETCHING, Conditions, ShingleSettings, Summary, chosen_recipe
from .options import MATCHING, OUTPUT, RUNNING, TASKS, Inputs, Output, ReadingFlags, flags, given, method_flags
from .verbs import fail_over, limits_among, one_or_all, running


@dataclass(frozen=True, kw_only=True)
class SketchesFile(Output):
    """The files of sketches to write."""

    output: str = setting("sketches.parquet", "File to write the sketches to.", metavar="FILE", flag="--output -o")
    shard_bytes: int | str | None = setting(
        None, "Write the sketches into files of about this size, in a folder.", metavar="SIZE", shown="one file"
    )
    fail_over: Sequence[str] | None = fail_over("skipped=N, or a share such as skipped=0.1%")


SketchesFlags: Any = flags(OUTPUT, SketchesFile)
ChoiceFlags: Any = flags(MATCHING, Summary, ShingleSettings, Conditions, without=("length_ratio", "ignore_common"))
UnitFlags: Any = flags(MATCHING, Unit, without=("keep_copies", "drop_below"))
MethodFlags: Any = method_flags(MATCHING, SKETCHING)
SketchingFlags: Any = flags(RUNNING, Engine, without=("max_comparisons",))
WorkersFlags: Any = flags(TASKS, Workers, without=("spool",))


def sketch(
    *inputs: Inputs,
    reading: ReadingFlags = None,
    choice: ChoiceFlags = None,
    unit: UnitFlags = None,
    method: MethodFlags = None,
    written: SketchesFlags = None,
    engine: SketchingFlags = None,
    tasks: WorkersFlags = None,
) -> int:
    """Summarise documents by small sketches, to be compared by `neardup pairs`."""
    from ..results.fail_over import exceeded, of_rows

    shown = SketchesFile(**given(written))
    limits = limits_among(shown, ("skipped",))
    recipe = chosen_recipe(SKETCHING, method, **given(choice), unit=Unit(**given(unit)))
    from ..jobs import sketch_jobs

    with running(shown, Reading(**given(reading)), engine, tasks) as options:
        options |= {"shard_bytes": shown.shard_bytes, "overwrite": shown.overwrite}
        counts = sketch_jobs.sketch(one_or_all(inputs), shown.output, recipe=recipe, **options)
    broken = exceeded(limits, of_rows(counts))
    return say_written(counts, None, shown, f"neardup pairs {shell_path(shown.output)}", broken)
