"""The command `neardup index compact`."""

from __future__ import annotations

from ...printable import shell_path
from ...report import size
from ..console import say_written, shown_progress
from ..options import given
from .options import IndexFolder, Said, SaidFlags


def compact(index: IndexFolder, /, *, written: SaidFlags = None) -> None:
    """Merge all segments of an index into one, without what was removed; adding merges by itself."""
    from ...index import Index

    shown = Said(output=index, **given(written))
    with shown_progress(shown), Index.open(index) as opened:
        num_bytes, documents = opened.compact(), len(opened)
    rows = [("documents", f"{documents:,}"), ("size", size(num_bytes))]
    found = {"documents": documents, "bytes": num_bytes}
    say_written(found, rows, shown, f"neardup index info {shell_path(index)}")
