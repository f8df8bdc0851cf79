"""The page of a check for contamination: the table of sets, and items with passages. It needs no network."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Any

from ..printable import readable_id
from ..report import count, percent, shown
from ..report_page.plain import count_table, plain_page, section, side_by_side
from ..report_page.texts import SHOWN, clean
from ..text.raw_text import TO_STRING, to_readable
from ..text.token_kinds import KINDS, noun_of
from .scanning import Passage
from .verdicts import BY_COLUMNS, DEFINITIONS, Contamination, sentences

PAGE = "contaminated.html"

COLUMNS = ("items", "too_short", "items_hit", *(f"items_{name}" for name in DEFINITIONS), "longest_run")
"""The columns of the table of sets."""

Shown = tuple[str, str, dict[str, str], Passage]
"""An evaluation set, an item, its texts by their fields, and a passage that it shares."""


def page_of(found: Contamination, examples: list[Shown]) -> str:
    """Return the page as one document of HTML."""
    lead = " ".join(f"{line[:1].upper()}{line[1:]}." for _, line in sentences(found.report))
    sets = count_table("set", COLUMNS, _rows(COLUMNS, "name", found.report["sets"]))
    body = [*section("Evaluation sets", sets)]
    if (by := found.report.get("by")) is not None:
        values = count_table(by["column"], BY_COLUMNS, _rows(BY_COLUMNS, "value", by["values"]))
        body += section(f"By {by['column']}", values)
    if examples:
        tokens = found.report["settings"]["tokens"]
        body += section("Items and the passages that they share", (_side_by_side(each, tokens) for each in examples))
    return plain_page("Contaminated", found.report, lead, body)


def _rows(names: Sequence[str], named: str, rows: Iterable[dict[str, Any]]) -> Iterator[tuple[str, list[str]]]:
    """Yield the name of each row, which is its value `named`, and its counts."""
    for row in rows:
        yield shown(row[named]), [f"{row[name]:,}" for name in names]


def _side_by_side(example: Shown, tokens: str) -> str:
    """Return an item and its passage side by side; `tokens` is the kind of tokens."""
    name, item, texts, passage = example
    fields = "\n".join(f"{field}: {text}" for field, text in texts.items())[:SHOWN]
    shown_as = TO_STRING[KINDS[tokens].holds]
    parts = [escape(clean(to_readable(shown_as(part)))) for part in (passage.before, passage.hit, passage.after)]
    sides = (
        (f"{name}: {item}", escape(clean(fields))),
        (readable_id(passage.id), f"{parts[0]}<ins>{parts[1]}</ins>{parts[2]}"),
    )
    return side_by_side(f"{count(passage.run, noun_of(tokens))}, {percent(passage.share)} of the item", sides)
