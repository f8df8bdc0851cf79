"""The command `neardup index check`."""

from __future__ import annotations

from typing import Any

from ...records import dataclass
from ...report import row, size
from ...settings import setting
from ..console import say, say_json
from ..options import DOCUMENTS, JsonFlags, flags, given
from .options import IndexFolder


@dataclass(frozen=True, kw_only=True)
class ComparedTables:
    """Which tables are compared with the sets that they were made of."""

    all: bool = setting(False, "Compare the tables of all documents with the stored sets, not those of a sample.")


ComparedFlags: Any = flags(DOCUMENTS, ComparedTables)


def check(index: IndexFolder, /, *, compared: ComparedFlags = None, printed: JsonFlags = None) -> None:
    """Compare every file of an index with its checksums, and its tables with the stored sets."""
    from ...index import Index

    with Index.open(index) as opened:
        found = opened.check(**given(compared))
    if given(printed).get("json"):
        say_json({"status": "sound", "index": index, **found})
        return
    rows = [(name, size(value) if name == "bytes" else f"{value:,}") for name, value in found.items()]
    say(*(row(label, text, 12) for label, text in (*rows, ("", "all of it is as it was written"))))
