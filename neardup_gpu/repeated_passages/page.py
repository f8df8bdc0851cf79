"""The page of repeated passages: the longest ones and the most frequent ones, in their place and in their source."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

import numpy as np
import pyarrow as pa

from ..data import numpy_of
from ..documents.rereading import raw_texts
from ..documents.sources import Sources
from ..printable import readable_id
from ..recipe import Recipe
from ..report import count
from ..report_page.plain import by_section, count_table, flow_table, plain_page, section, side_by_side
from ..report_page.texts import clean
from ..stages import placed_text, utf8
from ..text.raw_text import readable_part
from ..text.token_kinds import noun_of
from .result import BY_COLUMNS, Substrings, sentences

PAGE = "substrings.html"

PASSAGES = 8
"""Passages that are shown of each kind."""

LOOKED_AT = 1000
"""Passages among which they are chosen."""

AROUND, LONGEST = 200, 2000
"""Bytes of text that are shown before and after a passage, and of a passage."""

KINDS = {"tokens": "The longest passages that are removed", "copies": "The most frequent passages that are removed"}
"""Columns by which passages are chosen, and the titles of their sections."""


def page_of(found: Substrings, sources: Sources, recipe: Recipe) -> str:
    """Return the page as one document of HTML; the texts of the passages are read again."""
    report = found.report
    lead = " ".join(f"{line[:1].upper()}{line[1:]}." for _, line in sentences(report))
    body: list[str] = []
    if (by := report.get("by")) is not None:
        body += by_section(by, BY_COLUMNS)
        title = f"Tokens that documents of one {by['column']} repeat from those of another"
        body += section(title, flow_table(by))
    chosen = {column: _chosen(found.spans, column) for column in KINDS}
    texts = _texts(sources, [row for rows in chosen.values() for row in rows])
    for column, passages in chosen.items():
        if passages:
            body += section(KINDS[column], _side_by_side(passages, texts, recipe))
    if report["sources"]:
        rows = ((readable_id(each["id"]), [f"{each['tokens']:,}"]) for each in report["sources"])
        body += section("Documents that keep the most for others", count_table("document", ["tokens"], rows))
    return plain_page("Substrings", report, lead, body)


def _chosen(spans: pa.Table, column: str) -> list[dict[str, Any]]:
    """Return the first passages by a column, each text and each document once."""
    chosen: list[dict[str, Any]] = []
    seen: set[tuple[Any, ...]] = set()
    order = np.lexsort((-numpy_of(spans["tokens"]), -numpy_of(spans[column])))
    for row in order[:LOOKED_AT].tolist():
        (each,) = spans.slice(row, 1).to_pylist()
        if each["source_id"] is None:
            text: tuple[Any, ...] = each["tokens"], each["copies"]
        else:
            text = each.get("source_in_reference"), each["source_id"], each["source_begin"]
        names = {("document", each["id"]), ("text", *text)}
        if seen.isdisjoint(names):
            seen |= names
            chosen.append(each)
        if len(chosen) == PASSAGES:
            break
    return chosen


def _texts(sources: Sources, rows: list[dict[str, Any]]) -> dict[tuple[bool, Any], bytes]:
    """Return the texts of documents and their sources, by whether they are in the reference set, and their ids."""
    wanted: dict[bool, set[Any]] = {False: {row["id"] for row in rows}, True: set()}
    for row in rows:
        if row["source_id"] is not None:
            wanted[bool(row.get("source_in_reference"))].add(row["source_id"])
    found = {}
    for in_reference, documents in ((False, sources.documents), (True, sources.reference)):
        if documents is not None and wanted[in_reference]:
            texts = raw_texts(documents, wanted[in_reference])
            found.update({(in_reference, id): text for id, text in texts.items()})
    return found


def _side_by_side(rows: list[dict[str, Any]], texts: dict[tuple[bool, Any], bytes], recipe: Recipe) -> Iterator[str]:
    """Yield each passage in its place, and in the document that keeps it."""
    holds, noun = recipe.shingles.token_kind.holds, noun_of(recipe.shingles.tokens)
    for row in rows:
        title = f"{count(row['tokens'], noun)} in {count(row['copies'], 'place')}"
        begin, end, source = row["begin"], row["end"], row["source_id"]
        removed = _marked(texts.get((False, row["id"]), b""), begin, end, "del", holds)
        sides = [(f"removed: {readable_id(row['id'])}", removed)]
        if source is not None:
            text, first = texts.get((bool(row.get("source_in_reference")), source), b""), row["source_begin"]
            last = _end(text, first, row["tokens"], recipe)
            sides.append((f"kept: {readable_id(source)}", _marked(text, first, last, "ins", holds)))
        yield side_by_side(title, sides)


def _end(text: bytes, begin: int, tokens: int, recipe: Recipe) -> int:
    """Return the place in a text where a run of tokens ends, whose first token begins at `begin` or after it."""
    placed = placed_text(utf8([text]), recipe, "cpu")[1]
    first = int(np.searchsorted(placed.begins, begin))
    return int(placed.ends[min(first + tokens, len(placed.ends)) - 1]) if len(placed.ends) else 0


def _marked(text: bytes, begin: int, end: int, mark: str, holds: str) -> str:
    """Return a passage as HTML, with some text around it; `holds` says what documents are."""
    parts = (max(0, begin - AROUND), begin), (begin, min(end, begin + LONGEST)), (end, end + AROUND)
    before, passage, after = (escape(clean(readable_part(text, *part, holds))) for part in parts)
    more = '<span class="cut"> [...] </span>' if end - begin > LONGEST else ""
    return f"{before}<{mark}>{passage}</{mark}>{more}{after}"
