"""A notebook's view of a result: the facts, a histogram, and the largest groups with texts. No script."""

from __future__ import annotations

import html as _html
from typing import Any

import numpy as np
import pyarrow.compute as pc

from ..errors import InputError
from ..printable import printable, readable_id
from ..report import count, html, shorten
from ..results.diff import in_html
from .groups import GroupTable, groups_of
from .run import Run
from .texts import compared

LARGEST = 3
"""Groups that are shown with texts."""

READ = 32 << 20
"""Bytes of text of the largest input that is read again for a display,"""

GROUPED = 2_000_000
"""and documents of the largest result whose groups are shown."""

BINS = 40


def shown(run: Run) -> str:
    """HTML for a notebook; everything from documents is escaped."""
    parts = [html(run.report), _histogram(run)]
    text_bytes = run.report["counts"]["text_bytes"]
    if text_bytes is None:  # of an index, which keeps no texts
        return "".join(parts)
    if text_bytes > READ or len(run.documents) > GROUPED:
        parts.append("<p>result.write_report(path) shows texts; it reads the input once more.</p>")
    else:
        groups = groups_of(run)
        largest = np.argsort(-groups.sizes, kind="stable")[:LARGEST].tolist()
        parts.append(_texts(run, groups, largest))
    return "".join(parts)


def _histogram(run: Run) -> str:
    """A histogram of the values of pairs, from the threshold to 1; the count of 1 itself is text, as copies would hide
    the others."""
    worth = pc.drop_null(run.pairs[run.column]).to_numpy()
    lowest = run.recipe.threshold
    if lowest is None or lowest == 1 or not len(worth):
        return ""
    counts, edges = np.histogram(worth[worth < 1], BINS, (lowest, 1))
    bars = "".join(
        f"<span title='{count(int(number), 'pair')} from {low:.3f} to {high:.3f}' style='display:inline-block; "
        f"width:9px; margin-right:1px; background:#4c9; height:{60 * number / max(1, counts.max()):.0f}px'></span>"
        for number, low, high in zip(counts, edges[:-1], edges[1:], strict=True)
    )
    same = int((worth == 1).sum())
    told = f"{run.column} of {count(len(worth), 'listed pair')}, from {lowest:g} to 1"
    told += f"; {same:,} of exactly 1 are not drawn" if same else ""
    label = f"role='img' aria-label='Histogram: {told}'"
    return f"<div style='margin-top:1em'>{told}</div><div {label} style='height:62px; line-height:0'>{bars}</div>"


def _texts(run: Run, groups: GroupTable, largest: list[int]) -> str:
    """The largest groups, each with the removed text that agrees least with the kept one."""
    if not largest:
        return ""
    pairs = [groups.pair(group, groups.members(group, 1)[0]) for group in largest]
    try:
        found = compared(run, pairs)
    except InputError as error:
        return f"<p>Texts are not shown: {_escaped(str(error))}.</p>"
    parts = []
    for group, pair in zip(largest, pairs, strict=True):
        if pair.row in found:
            told = f"{_name(pair.kept)} stands for {count(int(groups.sizes[group]) - 1, 'document')}"
            other = _name(run.documents["id"][pair.row].as_py())
            legend = f"{told}; <strong>{other}</strong> has <del>less</del> and <ins>more</ins>"
            parts.append(f"<p style='text-align:left'>{legend}<br>{in_html(found[pair.row].words)}</p>")
    return "".join(parts)


def _name(id: Any) -> str:
    return _escaped(shorten(readable_id(id), 60))


def _escaped(text: str) -> str:
    return _html.escape(printable(" ".join(text.split())))
