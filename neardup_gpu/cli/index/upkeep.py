"""The commands `neardup index compact`, `copy`, `check` and `info`."""

from __future__ import annotations

from typing import Annotated, Any

from ...printable import shell_path
from ...records import dataclass
from ...report import count, recipe_lines, row, size
from ...settings import setting
from ..console import say, say_json, say_written, shown_progress
from ..options import DOCUMENTS, JsonFlags, argument, flags, given
from .options import IndexFolder, Said, SaidFlags


@dataclass(frozen=True, kw_only=True)
class Rebuilding:
    """The parts of the index to make again."""

    rebuild: bool = setting(False, "Also make tables, pairs and decisions again from the stored documents.")


@dataclass(frozen=True, kw_only=True)
class ComparedTables:
    """Which tables are compared with the sets that they were made of."""

    all: bool = setting(False, "Compare the tables of all documents with the stored sets, not those of a sample.")


RebuildingFlags: Any = flags(DOCUMENTS, Rebuilding)
ComparedFlags: Any = flags(DOCUMENTS, ComparedTables)
Copy = Annotated[str, argument("COPY", "Folder to create. It appears when the copy is complete.")]


def compact(index: IndexFolder, /, *, how: RebuildingFlags = None, written: SaidFlags = None) -> None:
    """Merge all segments of an index into one, without what was removed; adding merges by itself."""
    from ...index import Index

    shown = Said(output=index, **given(written))
    with shown_progress(shown), Index.open(index) as opened:
        num_bytes, documents = opened.compact(**given(how)), len(opened)
    _say_size(documents, num_bytes, shown, f"neardup index info {shell_path(index)}")


def copy(index: IndexFolder, copy: Copy, /, *, written: SaidFlags = None) -> None:
    """Copy the newest commit of an index, even while another process writes to it: a backup."""
    from ...index import Index

    shown = Said(output=copy, **given(written))
    with shown_progress(shown), Index.open(index) as opened:
        num_bytes, documents = opened.copy(copy), len(opened)
    _say_size(documents, num_bytes, shown, f"neardup index check {shell_path(copy)}")


def _say_size(documents: int, num_bytes: int, shown: Said, following: str) -> None:
    """Print how large the index is that was written."""
    rows = [("documents", f"{documents:,}"), ("size", size(num_bytes))]
    say_written({"documents": documents, "bytes": num_bytes}, rows, shown, following)


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
