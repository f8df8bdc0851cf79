"""The command `neardup report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from ..records import dataclass
from ..settings import setting
from .console import notes, say
from .options import OUTPUT, argument, flags, given


@dataclass(frozen=True, kw_only=True)
class ReportFile:
    """The page to write, and its contents."""

    output: str = setting("report.html", "File to write.", metavar="FILE", flag="--output -o")
    overwrite: bool = setting(False, "Replace an existing page.")
    no_text: bool = setting(False, "Leave texts out. The input is not read then.")
    by: str | None = setting(
        None,
        "Column of the input by whose values documents are counted, or file.",
        metavar="COLUMN",
        shown="that of the run, else file",
    )
    quiet: bool = setting(False, "Print nothing.", flag="--quiet -q")


WrittenFlags: Any = flags(OUTPUT, ReportFile)


def report(
    out: Annotated[str, argument("OUT", "A folder that `neardup dedup` wrote.")],
    /,
    *,
    written: WrittenFlags = None,
) -> None:
    """Write a page that shows a result: one HTML file, which a browser opens without a network."""
    from .. import report_page

    shown = ReportFile(**given(written))
    with notes(quiet=shown.quiet):
        report_page.of_folder(
            out,
            output=shown.output,
            text=not shown.no_text,
            by=shown.by,
            overwrite=shown.overwrite,
        )
    if not shown.quiet:
        from ..report import row, size

        say(row("written", f"{shown.output}: {size(Path(shown.output).stat().st_size)}; open it in a browser"))
