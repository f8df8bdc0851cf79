"""Check a certificate: scan the training text again, or only the documents that it lists hits of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from ..data import one_array
from ..documents import open_described
from ..documents.local_names import unescaped
from ..engine.clock import Clock
from ..engine.settings import Engine
from ..errors import DamagedError
from ..report import count
from ..store.artefacts import CERTIFICATE, read_report, using_report
from ..store.parquet import read_table
from ..store.uris import is_uri
from .contaminated import scan_here
from .finding import Check, found_by
from .items import opened_sets, reference_set
from .settings import ContaminationSettings
from .verdicts import TABLES, Contamination


def check_again(folder: Path, hits_only: bool) -> str:
    """Compare a certificate with what another scan finds; its files are as they were written.

    Parameters
    ----------
    folder : Path
    hits_only : bool
        Look only through the documents that have hits.

    Returns
    -------
    str
        What was done, for people.

    Raises
    ------
    DamagedError
        If the scan finds something else.
    InputError
        If the training text or the evaluation sets cannot be read.
    """
    report = read_report(folder, CERTIFICATE)
    with using_report(folder):
        source, evals, settings = report["input"], report["evals"], ContaminationSettings(**report["settings"])
        paths = evals["paths"]
        against = report.get("against", [])
        in_memory = paths is None or any(each["format"] == "memory" for each in (source, *against))
    if in_memory:
        return " (no scan was made again: the training text or the evaluation sets were in memory)"
    hits, table = (read_table(folder / f"{name}.parquet") for name in TABLES)
    only = one_array(hits["id"]).unique()
    sets = opened_sets([path if is_uri(path) else unescaped(path) for path in paths]) if paths else []
    sets += [reference_set(each["name"], open_described(each, settings.within)) for each in against]
    documents = open_described(source, settings.within)
    check = Check.of(documents, sets, settings)
    found = found_by(check, scan_here(check, Engine(), Clock(None), only if hits_only else None))
    _compare(folder, report["evals"]["sets"], found.report["evals"]["sets"], "the evaluation sets")
    if not hits_only:
        _compare(folder, source["digest"], found.report["input"]["digest"], "the training text")
        _compare(folder, table, found.evals, "the table of items")
    _compare(folder, hits, found.hits, "the table of hits")
    return _told(found, hits_only)


def _told(found: Contamination, hits_only: bool) -> str:
    counts = found.counts
    number, hits = count(counts["documents"], "document"), count(counts["hits"], "hit")
    if hits_only:
        return f", and its {hits} (by a scan of {number} alone: no document without a listed hit was looked through)"
    return f", and its {hits} and verdicts (by another scan of {number})"


def _compare(folder: Path, stored: Any, found: Any, what: str) -> None:
    """Raise DamagedError unless what was stored is what was found."""
    same = stored.equals(found.cast(stored.schema)) if isinstance(stored, pa.Table) else stored == found
    if not same:
        raise DamagedError(f"{folder}: {what}: not what is found now; check for contamination again")
