"""Show a document with the parts that were cut, and the source of each."""

from __future__ import annotations

import re
from typing import Any

from ..printable import readable_id
from ..text.raw_text import to_bytes, to_readable, to_string
from .diff import shortened

LISTED = 20
"""Copies that are listed in notes."""


def struck(rows: list[dict[str, Any]], text: str, *, full: bool) -> tuple[list[tuple[str, str]], list[str]]:
    """Return a text in which the parts that were cut are marked as removed, and notes on the copies that were not cut.

    Parameters
    ----------
    rows : list of dict
        The rows of `Result.units` of the document.
    text : str
        As `Documents._to_string` makes it of bytes.
    full : bool
        If False, long runs of words are shortened, and a document without cuts is not shown.

    Returns
    -------
    words : list of (op, text)
        In order: "equal" is kept, "removed" was cut, and "cut" is a note on what is before it.
    notes : list of str
    """
    data, at, ops = to_bytes(text), 0, []
    listed = [row for row in rows if row["kept"] and row["source_id"] is not None]
    for row in rows:
        if row["kept"]:
            continue
        ops.append(("equal", _words(data[at : row["begin"]])))
        ops.append(("removed", _words(data[row["begin"] : row["end"]])))
        ops.append(("cut", [f"[{_why(row)}]"]))
        at = row["end"]
    ops.append(("equal", _words(data[at:])))
    notes = [f"bytes {row['begin']:,} to {row['end']:,} were not cut: {_why(row)}" for row in listed[:LISTED]]
    if len(listed) > LISTED:
        notes.append(f"{len(listed) - LISTED:,} more copies were not cut; the table of units lists them")
    if at == 0 and not full:
        return [], notes
    return shortened([(op, words) for op, words in ops if words], notes, full=full), notes


def _words(data: bytes) -> list[str]:
    """Divide bytes after each run of white space."""
    return re.findall(r"\s*\S+\s*|\s+", to_readable(to_string(data)))


def _why(row: dict[str, Any]) -> str:
    """Say what a part repeats."""
    if row["source_id"] is None:
        return "dropped: too little of the document was left"
    where = " of the reference set" if row.get("in_reference") else ""
    source = f"part {row['source_unit']:,} of {readable_id(row['source_id'])}{where}"
    listed = {"copy": ", one of several copies", "seam": ", without which its neighbours become one", "overlaps": ""}
    if row["reason"] in listed:
        return f"repeats {source}{listed[row['reason']]}"
    return f"{'like' if row['reason'] == 'near' else 'same as'} {source}"
