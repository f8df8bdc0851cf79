"""The command `neardup index compact`."""

from __future__ import annotations

from typing import Any

from ...printable import shell_path
from ...records import dataclass
from ...report import size
from ...settings import setting
from ..console import say_written, shown_progress
from ..options import DOCUMENTS, flags, given
from .options import IndexFolder, Said, SaidFlags


@dataclass(frozen=True, kw_only=True)
class Rebuilding:
    """The parts of the index to make again."""

    rebuild: bool = setting(False, "Also make tables, pairs and decisions again from the stored documents.")


RebuildingFlags: Any = flags(DOCUMENTS, Rebuilding)


def compact(index: IndexFolder, /, *, how: RebuildingFlags = None, written: SaidFlags = None) -> None:
    """Merge all segments of an index into one, without what was removed; adding merges by itself."""
    from ...index import Index

    shown = Said(output=index, **given(written))
    with shown_progress(shown), Index.open(index) as opened:
        num_bytes, documents = opened.compact(**given(how)), len(opened)
    rows = [("documents", f"{documents:,}"), ("size", size(num_bytes))]
    found = {"documents": documents, "bytes": num_bytes}
    say_written(found, rows, shown, f"neardup index info {shell_path(index)}")
