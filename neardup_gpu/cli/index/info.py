"""The command `neardup index info`."""

from __future__ import annotations

from ...report import count, recipe_lines, row, size
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
    names = ("documents", *(("units",) if "units" in found else ()), "entries", "pairs", "dead_documents", "segments")
    rows = [(name.replace("_", " "), f"{found[name]:,}") for name in names]
    if not found["sets"]:
        rows.append(("sets", "none: nothing is verified"))
    if found["expected"] is not None:
        rows.append(("expected", f"{found['expected']:,}"))
    whole = sum(each["whole"] for each in found["inputs"])
    if found["containment"] is not None:
        rows.append(("containment", f"by one shingle in {found['containment']:,}"))
    if found["tokens"] is not None:
        rows.append(("tokens", f"{found['tokens']} are kept, with the texts: passages can be found"))
    rows += [("size", size(found["bytes"])), ("files added", f"{whole:,}")]
    if found["columns"]:
        rows.append(("columns", ", ".join(f"{name} ({kind})" for name, kind in found["columns"].items())))
    half = [each for each in found["inputs"] if not each["whole"]]
    rows += [("half added", f"{each['path']}, {count(each['rows'], 'row')}") for each in half]
    say(*(row(label, text, 15) for label, text in rows), *recipe_lines(found["recipe"]))
