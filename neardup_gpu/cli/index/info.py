"""The command `neardup index info`."""

from __future__ import annotations

from ...report import recipe_lines, row, size
from ..console import say, say_json
from ..options import JsonFlags, given
from .options import IndexFolder


def info(index: IndexFolder, /, *, printed: JsonFlags = None) -> None:
    """Say what an index holds."""
    from ...index import Index

    with Index.open(index) as opened:
        found = opened.info()
    if given(printed).get("json"):
        say_json({"index": index, **found})
        return
    names = ("documents", "entries", "pairs", "dead_documents", "segments")
    rows = [(name.replace("_", " "), f"{found[name]:,}") for name in names]
    if not found["sets"]:
        rows.append(("sets", "none: nothing is verified"))
    if found["expected"] is not None:
        rows.append(("expected", f"{found['expected']:,}"))
    whole = sum(each["whole"] for each in found["inputs"])
    rows += [("size", size(found["bytes"])), ("files added", f"{whole:,}")]
    rows += [("half added", f"{each['path']}, {each['rows']:,} rows") for each in found["inputs"] if not each["whole"]]
    say(*(row(label, text, 15) for label, text in rows), *recipe_lines(found["recipe"]))
