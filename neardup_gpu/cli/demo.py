"""The command `neardup demo`."""

from __future__ import annotations

import os

from .console import say, shown_progress, stdout
from .dedup import telling_example
from .options import Output

THRESHOLD = 0.8


def demo() -> None:
    """Find the near-duplicates in a small corpus that comes with neardup, and compare with what is known of it.

    The result is the folder neardup-demo, where the command is run.
    """
    from .. import demo as corpus
    from ..documents.writing_options import Writing
    from ..jobs import dedup as job
    from ..report import row, summary

    with shown_progress(Output()) as progress:
        found = job.dedup(
            list(corpus.FILES),
            text_columns="text",
            id_column="id",
            threshold=THRESHOLD,
            output=corpus.OUTPUT,
            writing=Writing(overwrite=_ran_before(corpus.OUTPUT)),
            progress=progress,
        )
    example = telling_example(found.documents, found.recipe.method.measure.name)
    say(
        *summary(found.report, stdout().width, output=corpus.OUTPUT),
        row("truth", corpus.compare(found.documents, THRESHOLD)),
        row("next", f"neardup explain {corpus.OUTPUT} {example}"),
        row("", f"{_before_report()}neardup report {corpus.OUTPUT}"),
    )


def _before_report() -> str:
    """Return the command that installs the packages for a page, or an empty string if they are installed."""
    from importlib.util import find_spec

    there = all(find_spec(name) for name in ("jinja2", "vl_convert"))
    return "" if there else "pip install 'neardup-gpu[report]' && "


def _ran_before(output: str) -> bool:
    """Whether the demonstration left this folder; what else has its name is refused."""
    from ..demo import is_demo
    from ..errors import OutputError
    from ..store.artefacts import read_report

    if not os.path.lexists(output) or (os.path.isdir(output) and not os.listdir(output)):
        return False
    try:
        if is_demo(read_report(output)):
            return True
    except OutputError:
        pass
    raise OutputError(f"{output}: exists, and no demonstration wrote it; rename it, or change to another folder")
