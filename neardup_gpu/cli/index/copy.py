"""The command `neardup index copy`."""

from __future__ import annotations

from typing import Annotated

from ...printable import shell_path
from ...report import size
from ..console import say_written, shown_progress
from ..options import argument, given
from .options import IndexFolder, Said, SaidFlags

Copy = Annotated[str, argument("COPY", "Folder to create. It appears when the copy is complete.")]


def copy(index: IndexFolder, copy: Copy, /, *, written: SaidFlags = None) -> None:
    """Copy the newest commit of an index, even while another process writes to it: a backup."""
    from ...index import Index

    shown = Said(output=copy, **given(written))
    with shown_progress(shown), Index.open(index) as opened:
        num_bytes, documents = opened.copy(copy), len(opened)
    rows = [("documents", f"{documents:,}"), ("size", size(num_bytes))]
    found = {"documents": documents, "bytes": num_bytes}
    say_written(found, rows, shown, f"neardup index check {shell_path(copy)}")
