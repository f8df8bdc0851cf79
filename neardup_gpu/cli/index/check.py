"""The command `neardup index check`."""

from __future__ import annotations

from ...report import row, size
from ..console import say, say_json
from ..options import JsonFlags, given
from .options import IndexFolder


def check(index: IndexFolder, /, *, printed: JsonFlags = None) -> None:
    """Compare every file of an index with its checksums."""
    from ...index import Index

    with Index.open(index) as opened:
        found = opened.check()
    if given(printed).get("json"):
        say_json({"status": "sound", "index": index, **found})
        return
    rows = [(name, size(value) if name == "bytes" else f"{value:,}") for name, value in found.items()]
    say(*(row(label, text, 12) for label, text in (*rows, ("", "all of it is as it was written"))))
