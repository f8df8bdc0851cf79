"""The page of shared passages: a map of sources, and pairs of documents side by side, with their passages linked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..data import numpy_of
from ..documents.rereading import raw_texts
from ..documents.stream import Documents
from ..printable import printable, readable_id
from ..report import count, percent, shorten, shown
from ..report_page.plain import by_section, flow_table, plain_page, section, side_by_side
from ..report_page.texts import clean
from ..text.raw_text import readable_part, size_of
from ..text.token_kinds import KINDS
from .result import BY_COLUMNS, SharedText, sentences

PAGE = "passages.html"

PAIRS = 8
"""Pairs of documents that are shown."""

EACH = 40
"""Passages of a pair that are shown, at most."""

AROUND, LONGEST = 160, 3000
"""Bytes of text that are shown before and after a passage, and of a passage."""

MAPPED = 14
"""Values of a column that the map shows."""


def page_of(found: SharedText, documents: Documents, sources: Documents) -> str:
    """Return the page as one document of HTML; documents and their sources are read again."""
    lead = " ".join(f"{line[:1].upper()}{line[1:]}." for _, line in sentences(found.report))
    body: list[str] = []
    if (by := found.report.get("by")) is not None:
        body += section(f"Which {by['column']} feeds which", _map(by))
        body += by_section(by, BY_COLUMNS)
    if pairs := shown_pairs(found, documents, sources):
        note = '<p class="note">Each passage is a link to the same passage in the other document.</p>'
        body += section("Documents that share the most", [note, *pairs])
    return plain_page("Passages", found.report, lead, body)


# ------------------------------------------------------------------------------------------------------------ the map


def _map(by: dict[str, Any]) -> Iterator[str]:
    """Yield a map: a row for each value, a column for each value of sources, the darker the more tokens they share."""
    tokens: dict[tuple[str, str], int] = {}
    for each in by["pairs"]:
        pair = shown(each["value"]), shown(each["source_value"])
        tokens[pair] = tokens.get(pair, 0) + each["tokens"]
    if not tokens:
        yield "<p>No value shares a passage with another one, or with itself.</p>"
        return
    largest = sorted(tokens, key=lambda pair: (-tokens[pair], pair))
    names = list(dict.fromkeys(name for pair in largest for name in pair))[:MAPPED]
    left, top, size = 190, 120, 46
    width, height = left + size * len(names) + 60, top + size * len(names) + 8
    most = np.log1p(max(tokens.values()))
    shape = f'viewBox="0 0 {width} {height}" style="max-width: {width}px"'
    yield f'<figure class="chart"><svg {shape} role="img" aria-label="Tokens by source">'
    for place, name in enumerate(names):
        text, middle = escape(printable(shorten(name, 24))), place * size + size / 2
        yield f'<text x="{left - 8}" y="{top + middle + 4}" text-anchor="end" font-size="13">{text}</text>'
        turned = f'transform="translate({left + middle + 4} {top - 8}) rotate(-45)"'
        yield f'<text {turned} font-size="13">{text}</text>'
    for row, name in enumerate(names):
        for column, source in enumerate(names):
            number = tokens.get((name, source), 0)
            x, y, dark = left + column * size, top + row * size, np.log1p(number) / most
            yield (
                f'<rect x="{x}" y="{y}" width="{size - 2}" height="{size - 2}" fill="var(--accent)" '
                f'fill-opacity="{dark:.2f}" stroke="var(--line)"><title>{escape(printable(name))} from '
                f"{escape(printable(source))}: {count(number, 'token')}</title></rect>"
            )
    yield "</svg><figcaption>Rows are the documents, columns their sources. The darker a square, the more tokens of "
    yield "the row stand in documents of the column, on a logarithmic scale.</figcaption></figure>"
    yield from flow_table(by)


# --------------------------------------------------------------------------------------------------- pairs of documents


def shown_pairs(found: SharedText, documents: Documents, sources: Documents) -> list[str]:
    """Return the pairs of documents that share the most tokens, as HTML side by side; each document and source once.

    A click on a passage leads to the same passage on the other side.
    """
    table = found.passages
    if not len(table):
        return []
    keys = pa.table({"id": table["id"], "source_id": table["source_id"], "equal": table["tokens_equal"]})
    pairs = keys.group_by(["id", "source_id"], use_threads=False).aggregate([("equal", "sum")])
    chosen: dict[tuple[Any, Any], int] = {}
    for row in np.argsort(-numpy_of(pairs["equal_sum"]), kind="stable").tolist():
        name, source = pairs["id"][row].as_py(), pairs["source_id"][row].as_py()
        if all(name != other and source != taken for other, taken in chosen):
            chosen[name, source] = row
        if len(chosen) == PAIRS:
            break
    own = raw_texts(documents, {name for name, _ in chosen})
    theirs = raw_texts(sources, {source for _, source in chosen})
    made, holds = [], KINDS[found.report["settings"]["tokens"]].holds
    for number, ((name, source), row) in enumerate(chosen.items()):
        of_pair = (pc.equal(table[column], pairs[column][row]) for column in ("id", "source_id"))
        rows, equal = table.filter(pc.and_(*of_pair)), pairs["equal_sum"][row].as_py()
        passages = rows.slice(0, EACH).to_pylist()
        more = "" if len(passages) == len(rows) else f", the first {EACH} of {len(rows):,} shown"
        title = f"{count(equal, 'equal token')} in {count(len(rows), 'passage')}{more}: "
        title += f"{percent(sum(rows['share'].to_pylist()))} of the document, "
        title += f"{percent(sum(rows['source_share'].to_pylist()))} of the source"
        sides = (
            (f"document: {readable_id(name)}", _marked(own[name], holds, passages, number, "")),
            (f"source: {readable_id(source)}", _marked(theirs[source], holds, passages, number, "source_")),
        )
        made.append(side_by_side(title, sides))
    return made


def _marked(text: bytes, holds: str, passages: Sequence[dict[str, Any]], pair: int, side: str) -> str:
    """Return a text as HTML: each passage is a link to the same passage on the other side, with its changes marked.

    Text far from any passage is cut. `holds` says what documents are.
    """

    def escaped(begin: int, end: int) -> str:
        return escape(clean(readable_part(text, begin, end, holds)))

    own, other = ("b", "a") if side else ("a", "b")
    spans = sorted((each[f"{side}begin"], each[f"{side}end"], number) for number, each in enumerate(passages))
    parts, at = [], 0
    for begin, end, number in spans:
        begin = max(begin, at)
        parts.append(_between(escaped, at, begin, at == 0, False))
        last = min(end, begin + LONGEST)
        changes = [(each[f"{side}begin"], each[f"{side}end"]) for each in passages[number]["changes"]]
        shown_text = _with_changes(escaped, begin, last, changes, "del" if side else "ins")
        cut = '<span class="cut">...</span>' if end > last else ""
        mark = f'id="p{pair}-{number}{own}" href="#p{pair}-{number}{other}" title="passage {number + 1}"'
        parts.append(f'<a class="passage" {mark}>{shown_text or number + 1}{cut}</a>')
        at = max(at, end)
    return "".join([*parts, _between(escaped, at, size_of(text, holds), False, True)])


def _with_changes(
    escaped: Callable[[int, int], str], begin: int, end: int, changes: Iterable[tuple[int, int]], mark: str
) -> str:
    """Return the bytes `begin` to `end` of a text as HTML, with the changes among them in elements `mark`."""
    parts, at = [], begin
    for low, high in changes:
        low, high = max(low, at), min(high, end)
        if low < high:
            parts += [escaped(at, low), f"<{mark}>{escaped(low, high)}</{mark}>"]
            at = high
    return "".join([*parts, escaped(at, end)])


def _between(escaped: Callable[[int, int], str], begin: int, end: int, first: bool, last: bool) -> str:
    """Return text outside of passages; of a long one, what is near a passage."""
    if end - begin <= 2 * AROUND:
        return escaped(begin, end)
    cut = '<span class="cut"> [...] </span>'
    before = "" if first else escaped(begin, begin + AROUND)
    return before + cut + ("" if last else escaped(end - AROUND, end))
