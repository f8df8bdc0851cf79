"""A report as a page of HTML to open: what a run removed, why, and what another threshold would change.

run.py         what a page is made from: a result in memory, or a folder
thresholds.py  how many documents other thresholds would remove
groups.py      groups, and those that are listed
texts.py       texts, taken from the input again, and the words in which they differ
charts.py      drawings
plain.py       other pages, which have no script
page.py        the page, from template.html, page.css and page.js
summary.py     the first page: five sentences, a picture, and pairs to check by hand
notebook.py    what a notebook shows of a result, without a page
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from .. import checks
from ..log import log
from ..store.artefacts import PAGE, read_report, using_report
from ..store.outputs import new_file
from .page import Page, check_installed, check_outside, is_page, make
from .run import given, run_of_folder


def of_folder(
    folder: str | Path,
    *,
    output: str | Path | None = None,
    text: bool = True,
    by: str | None = None,
    overwrite: bool = False,
    source: Any = None,
    against: Any = None,
) -> Page:
    """Make the page of a finished run from its folder; `Result.write_report` makes that of a result.

    Parameters
    ----------
    folder : path
        What `dedup` wrote.
    output : path, default None
        A file to write, outside the folder.
    text : bool, default True
        Show texts, for which the input is read once more; it must still be where it was, else the page says why it
        shows none.
    by : str, default None
        The column of the input by whose values documents are counted, or "file". If None, it is the column by which
        the run counted, else the file.
    overwrite : bool, default False
        Replace an earlier page at `output`.
    source : table, default None
        The documents, if `dedup` was given them in memory.
    against : table, default None
        The reference set, if `dedup` was given it in memory.

    Returns
    -------
    Page
        `write` writes it; a notebook shows it.

    Raises
    ------
    OutputError
        If the folder is not a finished result, or `output` is taken, or lies in the folder.
    DamagedError
        If the result is not as it was written.
    InputError
        If there is no such column.
    ParameterError
        If what draws pages is not installed.

    Notes
    -----
    Memory: about 400 bytes for each document and 200 for each listed pair, ids among them, and the texts that are
    shown.
    """
    folder, output = checks.path("folder", folder), checks.optional(checks.path, "output", output)
    overwrite = checks.flag("overwrite", overwrite)
    check_installed()
    report = read_report(folder)
    if output is not None:
        check_outside(output, folder)
    with using_report(folder):
        sources = given(report["input"], source), given(report["against"], against)
        run = run_of_folder(Path(folder), report, folder, sources)
        if output is None:
            return make(run, text=text, by=by)
        with new_file(output, overwrite, is_ours=is_page) as file:
            page = make(run, text=text, by=by)
            file.write_text(page.html, encoding="utf-8")
    return page


def write_page(folder: Path, run: Callable[[], Any]) -> None:
    """Write report.html from what `run` returns.

    If the page cannot be made, a warning says so: the result may have taken a night, and is complete without it.
    """
    try:
        text = make(run()).html
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        log.warning("%s could not be made (%s); the result is complete without it: try neardup report", PAGE, why)
    else:
        (folder / PAGE).write_text(text, encoding="utf-8")
