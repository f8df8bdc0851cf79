"""The page of an audit: five sentences, a table by source, and the worst cases side by side. It needs no network."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ..documents.rereading import texts_of
from ..printable import printable, readable_id
from ..report import percent, resemblance as in_digits, shorten, shown
from ..report_page.plain import count_table, plain_page, section, side_by_side
from ..report_page.texts import HELD, LONGEST, SHOWN, clean, difference
from .verdict import Audit, matching_lines, reason_lines, sentences

PAGE = "audit.html"

SHOWN_CASES = 12
"""Cases of each kind that the page shows, at most."""

LISTED = 200
"""Sources that the page lists, at most."""

SIDES = {"removed": ("del", 0), "moved_from": ("span", 0), "added": ("ins", 1), "moved_to": ("span", 1)}
"""The tag of words that only one text has, and the side where they stand."""


class Case(NamedTuple):
    """Two documents to show, by their ids; the first one is None if a lost document has no near one."""

    kept: Any
    other: Any
    worth: float | None
    note: str


def write_audit_page(found: Audit, path: Path) -> None:
    """Write the page of an audit."""
    path.write_text(page_of(found), encoding="utf-8")


def page_of(found: Audit) -> str:
    """Return the page of an audit as one document of HTML."""
    report = found.report
    body = [*_facts(report), *_sources(report), *_cases(found)]
    return plain_page("Audit", report, " ".join(sentences(report)), body)


def _facts(report: dict[str, Any]) -> Iterator[str]:
    def inner() -> Iterator[str]:
        lines = [*matching_lines(report), *reason_lines(report)]
        yield f"<ul>{''.join(f'<li>{escape(printable(line))}</li>' for line in lines)}</ul>"
        recipe = "".join(
            f"<dt>{escape(name.replace('_', ' '))}</dt><dd><code>{escape(str(value))}</code></dd>"
            for name, value in report["recipe"].items()
        )
        yield f'<details><summary>Definition of a near-duplicate</summary><dl class="facts">{recipe}</dl></details>'

    return section("What was judged", inner())


def _sources(report: dict[str, Any]) -> Iterator[str]:
    """Yield the table by source; without a column, a table of the whole corpus."""
    counts = report["counts"]
    column = report["settings"]["by"]
    whole = {name: counts[name] for name in ("documents", "kept", "removed", "lost")}
    rows = report.get("by") or [{"value": "all", **whole, "in_missed_pairs": counts["missed_documents"]}]
    names = ("documents", "kept", "removed", "lost", "in_missed_pairs")

    def inner() -> Iterator[str]:
        shares = (percent(row["lost"] / row["removed"]) if row["removed"] else "" for row in rows)
        cells = ([*(f"{row[name]:,}" for name in names), share] for row, share in zip(rows, shares, strict=True))
        named = zip((shown(row["value"]) for row in rows[:LISTED]), cells, strict=False)
        yield from count_table(column or "", [*names, "lost of the removed"], named)
        if len(rows) > LISTED:
            yield f'<p class="note">Listed are the {LISTED:,} largest of {len(rows):,}; audit.json has all.</p>'

    return section(f"By {column}" if column else "Counts", inner())


def _cases(found: Audit) -> Iterator[str]:
    """Yield the worst clusters, lost documents, broken reasons and missed pairs, side by side."""
    measure, kinds = found.report["measure"], list(_kinds(found))
    wanted = list(dict.fromkeys(id for _, cases in kinds for case in cases for id in case[:2] if id is not None))
    texts: dict[Any, str | None] = {}
    if wanted:
        ids = pa.chunked_array([pa.array(wanted, found.lost["id"].type)])
        read = texts_of(found.documents, ids, None, longest=LONGEST, at_most=HELD)
        texts = dict(zip(wanted, read, strict=True))
    for title, cases in kinds:
        yield from section(title, (_shown(case, texts, found, measure) for case in cases))


def _kinds(found: Audit) -> Iterator[tuple[str, list[Case]]]:
    """Yield the cases of each kind, the worst first."""
    measure = found.report["measure"]
    if found.clusters is not None and found.clusters.num_rows:
        threshold = found.recipe.threshold
        worst = found.clusters.filter(pc.less(found.clusters["lowest"], threshold)).slice(0, SHOWN_CASES)
        cases = [
            Case(row["id_a"], row["id_b"], row["lowest"], f"cluster of {row['members']:,}: {_chain(row)}")
            for row in worst.to_pylist()
        ]
        if cases:
            yield "Clusters whose members do not resemble each other", cases
    if found.lost.num_rows:
        order = pc.array_sort_indices(pc.fill_null(found.lost[measure], 2.0))  # those without any come last
        worst = found.lost.take(order[:SHOWN_CASES])
        yield (
            "Lost documents and their nearest kept documents",
            [Case(row["nearest"], row["id"], row[measure], "") for row in worst.to_pylist()],
        )
    if found.reasons is not None:
        broken = found.reasons.filter(pc.invert(found.reasons["holds"]))
        worst = broken.take(pc.sort_indices(broken, [(measure, "ascending")])[:SHOWN_CASES])
        if worst.num_rows:
            yield (
                "Reasons that do not hold",
                [Case(row["other"], row["id"], row[measure], "") for row in worst.to_pylist()],
            )
    if found.missed.num_rows:
        worst = found.missed.take(pc.sort_indices(found.missed, [(measure, "descending")])[:SHOWN_CASES])
        yield (
            "Missed pairs of kept documents",
            [Case(row["id_a"], row["id_b"], row[measure], "") for row in worst.to_pylist()],
        )


def _chain(row: dict[str, Any]) -> str:
    chain, links = row["chain"], row["links"]
    if not chain:
        return "no chain of shared shingles joins them"
    steps = "".join(f" - {in_digits(link)} - {readable_id(id)}" for id, link in zip(chain[1:], links, strict=True))
    return shorten(f"joined by {readable_id(chain[0])}{steps}", 400)


def _shown(case: Case, texts: dict[Any, str | None], found: Audit, measure: str) -> str:
    kept, other = texts.get(case.kept), texts[case.other]
    title = f"{measure} {in_digits(case.worth)}" if case.worth is not None else "no kept document is near"
    note = f" <span>{escape(printable(case.note))}</span>" if case.note else ""
    sides = ["", ""]
    if other is None or (case.kept is not None and kept is None):
        sides = ["(too long to be shown)"] * 2
    elif kept is None:
        sides[1] = escape(clean(other[:SHOWN]))
    else:
        for op, words in difference(kept, other, found.recipe).words:
            tag, side = SIDES.get(op, ("", -1))
            shown = escape(words)
            if side >= 0:
                sides[side] += f'<{tag} class="moved">{shown}</{tag}> ' if tag == "span" else f"<{tag}>{shown}</{tag}> "
            else:
                sides = [f"{each}{shown} " for each in sides]
    names = readable_id("(none)" if case.kept is None else case.kept), readable_id(case.other)
    return side_by_side(title, zip(names, sides, strict=True), note)
