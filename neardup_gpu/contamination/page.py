"""The page of a check for contamination: the table of sets, and items with passages. It needs no network."""

from __future__ import annotations

from html import escape

from ..printable import readable_id
from ..report import count, percent, shown
from ..report_page.plain import by_section, count_table, plain_page, section, side_by_side
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
    rows = ((shown(each["name"]), [f"{each[name]:,}" for name in COLUMNS]) for each in found.report["sets"])
    body = [*section("Evaluation sets", count_table("set", COLUMNS, rows))]
    if (by := found.report.get("by")) is not None:
        body += by_section(by, BY_COLUMNS)
    if examples:
        tokens = found.report["settings"]["tokens"]
        body += section("Items and the passages that they share", (_side_by_side(each, tokens) for each in examples))
    return plain_page("Contaminated", found.report, lead, body)


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
