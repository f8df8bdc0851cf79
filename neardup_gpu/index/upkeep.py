"""Look after an index: merge all segments into one, copy it, check it, and say what it holds."""

from __future__ import annotations

import contextlib
import html
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import OutputError
from ..methods.finding.order import Order
from ..report import count, size
from ..store.arrays import ArraysFile
from ..store.folder import Folder
from ..store.outputs import new_folder
from .manifest import DELETED, SEGMENTS, Held
from .merging import merge_last
from .opened import Opened
from .remaking import check_tables, rebuild
from .segments import Segment
from .snapshot import order_of


def compact(opened: Opened, again: bool) -> int:
    """Merge all segments into one, in which nothing is dead; returns its bytes.

    With `again`, also make its tables, pairs and decisions again from what is stored of its entries.
    """
    with opened.running() as runtime:
        writer = opened.write()
        if again:
            rebuild(opened, runtime)
            return num_bytes(opened)
        some = writer.manifest.segments
        if len(some) > 1 or any(each.deleted is not None for each in some):
            merge_last(writer, len(some))
            opened.committed(writer)
    return num_bytes(opened)


def num_bytes(opened: Opened) -> int:
    """Bytes of all files that the manifest names."""
    files = (name.split("/") for name in opened.manifest.files())
    return sum(Folder(opened.folder, inner).size(name) for inner, name in files)


def copy(folder: Path, output: str) -> int:
    """Copy the newest commit into a new folder, even while another process writes; return the bytes of its files.

    The manifest is held meanwhile, so that the writer removes none of its files.
    """
    if os.path.lexists(output) and not (os.path.isdir(output) and not os.listdir(output)):
        raise OutputError(f"{output}: exists already; name another folder")
    with contextlib.closing(Held(folder)) as held, new_folder(output, reads=[folder]) as new:
        for inner in (SEGMENTS, DELETED):
            Folder(new, inner).make()
        total = 0
        for name in (held.path.name, *sorted(held.manifest.files())):
            inner, _, own = name.rpartition("/")
            made = Folder(new, inner)
            with Folder(folder, inner).open(own) as source, os.fdopen(made.create(own), "wb") as target:
                shutil.copyfileobj(source, target, 1 << 20)
                target.flush()
                os.fsync(target.fileno())
                total += target.tell()
        for inner in (SEGMENTS, DELETED, ""):
            Folder(new, inner).sync()
    return total


def check(opened: Opened, everything: bool) -> dict[str, Any]:
    """Compare every file with its checksums, and tables with what is stored of entries; returns what was looked at.

    Parameters
    ----------
    opened : Opened
    everything : bool
        Compare the tables of all entries; of a sample of them otherwise, see `remaking.py`.

    Raises
    ------
    DamagedError
        If a file is not as it was written, or a table is not that of the stored entries.
    """
    opened.check_open()
    folder, (manifest, segments) = opened.folder, opened.state
    for number in {place.order for place in manifest.segments if place.order is not None}:
        _verify(Order.load(folder / SEGMENTS / f"{number:08}").file)
    for place in manifest.segments:
        _verify(Segment.load(folder, place, manifest.id_kind or "integer").file)
    order_of(segments)
    random, compared = np.random.default_rng(), 0
    with opened.running():
        for segment in segments:
            compared += check_tables(segment, opened.recipe, manifest.keeps, everything, random)
    held = info(opened)
    return {
        "files": 1 + len(manifest.files()),
        **{name: held[name] for name in ("bytes", "documents", "entries", "pairs")},
        "compared": compared,
    }


def _verify(file: ArraysFile | None) -> None:
    """Compare all of a file with its checksums and limits."""
    if file is not None:
        file.verify_all()


def info(opened: Opened) -> dict[str, Any]:
    """Counts, bytes, the recipe and the inputs, ready for JSON."""
    opened.check_open()
    manifest, segments = opened.state
    units = sum(int(np.count_nonzero(each.live_units)) for each in segments if each.is_divided)
    return {
        "documents": manifest.documents,
        **({"units": units} if opened.recipe.unit.divides else {}),
        "entries": manifest.entries,
        "pairs": sum(each.pairs for each in manifest.segments),
        "dead_documents": sum(each.dead_documents for each in manifest.segments),
        "segments": len(manifest.segments),
        "bytes": num_bytes(opened),
        "next_sequence": manifest.next_sequence,
        "ids": manifest.id_kind,
        "containment": manifest.keeps.containment,
        "columns": manifest.columns,
        "reading": manifest.reading,
        "commit": manifest.number,
        "sets": manifest.keeps.sets,
        "tokens": manifest.keeps.tokens,
        "expected": manifest.keeps.expected,
        "inputs": [{"path": each.name, "rows": each.rows, "whole": each.whole} for each in manifest.inputs],
        "recipe": opened.recipe.describe(),
    }


def as_html(opened: Opened) -> str:
    """The table that notebooks show of an index."""
    manifest, recipe = opened.manifest, opened.recipe
    near = f"{recipe.method.measure.name} of {recipe.threshold:g} or more," if recipe.verifies else "found"
    ids = f", whose ids are {manifest.id_type}" if manifest.id_kind else ""
    lines = {
        "documents": f"{manifest.documents:,}{ids}",
        "distinct sequences of words": f"{manifest.entries:,}",
        "columns": ", ".join(f"{name} ({kind})" for name, kind in manifest.columns.items()) or "none",
        "near-duplicates": f"{near} by {recipe.method.name}",
        "size": f"{size(num_bytes(opened))} in {count(len(manifest.segments), 'segment')}",
        "folder": opened.folder.name,
    }
    cells = "".join(f"<tr><th>{name}</th><td>{html.escape(value)}</td></tr>" for name, value in lines.items())
    return f"<table>{cells}</table>"
