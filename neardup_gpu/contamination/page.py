"""The page of a check for contamination: the table of sets, and items with passages. It needs no network."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

from ..printable import printable, readable_id
from ..raw_text import to_readable, to_string
from ..report import percent, shorten
from ..report_page.plain import plain_page, section
from ..report_page.texts import SHOWN, clean
from .scanning import Passage
from .verdicts import DEFINITIONS, Contamination, sentences

PAGE = "contaminated.html"

COLUMNS = ("items", "too_short", "items_hit", *(f"items_{name}" for name in DEFINITIONS), "longest_run")
"""The columns of the table of sets."""

Shown = tuple[str, str, dict[str, str], Passage]
"""An evaluation set, an item, its texts by their fields, and a passage that it shares."""


def page_of(found: Contamination, shown: list[Shown]) -> str:
    """Return the page as one document of HTML."""
    lead = " ".join(f"{line[:1].upper()}{line[1:]}." for _, line in sentences(found.report))
    body = [*section("Evaluation sets", _sets(found.report))]
    if shown:
        body += section("Items and the passages that they share", map(_side_by_side, shown))
    return plain_page("Contaminated", found.report, lead, body)


def _sets(report: dict[str, Any]) -> Iterator[str]:
    """Yield the table of sets."""
    head = "".join(f'<th scope="col" class="number">{name.replace("_", " ")}</th>' for name in COLUMNS)
    yield f'<div class="scroll"><table><thead><tr><th scope="col">set</th>{head}</tr></thead><tbody>'
    for found in report["sets"]:
        cells = "".join(f'<td class="number">{found[name]:,}</td>' for name in COLUMNS)
        yield f'<tr><th scope="row"><bdi>{_name(found["name"])}</bdi></th>{cells}</tr>'
    yield "</tbody></table></div>"


def _side_by_side(shown: Shown) -> str:
    """Return an item and its passage side by side."""
    name, item, texts, passage = shown
    fields = "\n".join(f"{field}: {text}" for field, text in texts.items())[:SHOWN]
    parts = [escape(clean(to_readable(to_string(part)))) for part in (passage.before, passage.hit, passage.after)]
    sides = (
        (f"{name}: {item}", escape(clean(fields))),
        (readable_id(passage.id), f"{parts[0]}<ins>{parts[1]}</ins>{parts[2]}"),
    )
    boxes = "".join(f'<div class="side"><h5><bdi>{_name(title)}</bdi></h5><p>{text}</p></div>' for title, text in sides)
    title = f"{passage.run:,} tokens, {percent(passage.share)} of the item"
    return f'<div class="member"><h4>{title}</h4><div class="sides">{boxes}</div></div>'


def _name(text: str) -> str:
    return escape(printable(shorten(text, 200)))
