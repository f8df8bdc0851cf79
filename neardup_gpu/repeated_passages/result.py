"""`Substrings`: the repeated passages of a corpus, and what became of them, as users see it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ..data import arrow, strings, taken
from ..printable import readable_id
from ..records import dataclass
from ..report import beside, count, ending, heading, percent, row, shorten, shown, table_by
from ..results.by_value import LISTED, Grouping
from ..results.fail_over import CountedShare, WithCounts, of_rows
from ..results.tables import as_json
from ..text.token_kinds import KINDS, noun_of
from .corpus import TokenCorpus
from .repeats import RemovedPassages

TABLES = ("spans", "documents")
"""The tables of a result; each becomes a file."""

REASONS = ("template", "repeated")
"""Why a passage is removed that no document keeps: it occurs in many documents, or more than once."""


@dataclass(frozen=True, eq=False, repr=False)
class Substrings(WithCounts):
    """The result of a search for repeated passages, which `substrings` returns.

    Parameters
    ----------
    spans : pyarrow.Table
        Each passage that is removed: id of the document, begin and end (bytes of its text), begin_token, tokens, copies
        (the number of places where its rarest run of `length` tokens stands), source_id and source_begin (the document
        that keeps the passage, and the byte where it begins there) and reason (null if the passage has a source).
        Passages of one document overlap where the source changes. With a reference set, source_in_reference says
        whether the source is one of its documents.
    documents : pyarrow.Table
        Each document: id, kept, words, and words_left.
    report : dict
        The contents of substrings.json.

    Examples
    --------
    >>> import neardup_gpu as nd
    >>> nd.substrings({"text": ["to be or not to be", "or not to be: that"]}, length=4, action="list")
    Substrings(4 of 11 tokens, in 1 of 2 documents)
    """

    spans: pa.Table
    documents: pa.Table
    report: dict[str, Any]

    @property
    def limited(self) -> dict[str, CountedShare]:
        """The counts that limits are set for, each with the number that it is a share of."""
        removed = self.counts["tokens_removed"]
        return {**of_rows(self.counts), "removed": CountedShare(removed, removed, self.counts["tokens"])}

    def _sentences(self) -> list[str]:
        return [line for _, line in sentences(self.report)]

    def __repr__(self) -> str:
        found = self.counts
        return (
            f"Substrings({found['tokens_removed']:,} of {count(found['tokens'], 'token')}, in "
            f"{found['documents_cut']:,} of {count(found['documents'], 'document')})"
        )


def spans_table(passages: RemovedPassages, ids: pa.Array, reason: str, in_reference: np.ndarray | None) -> pa.Table:
    """Return the table of removed passages; `in_reference` says which sources are in the reference set, if any."""
    no_source = passages.source < 0
    words = strings(list(REASONS)).cast(pa.string())
    reasons = arrow(np.full(len(no_source), REASONS.index(reason), np.int8), ~no_source)
    extra = {} if in_reference is None else {"source_in_reference": arrow(in_reference, no_source)}
    return pa.table(
        {
            "id": taken(ids, arrow(passages.document)),
            "begin": arrow(passages.begin),
            "end": arrow(passages.end),
            "begin_token": arrow(passages.begin_token),
            "tokens": arrow(passages.tokens),
            "copies": arrow(passages.copies),
            "source_id": taken(ids, arrow(np.maximum(passages.source, 0), no_source)),
            "source_begin": arrow(passages.source_begin, no_source),
            **extra,
            "reason": pa.DictionaryArray.from_arrays(reasons, words),
        }
    )


BY_COLUMNS = ("documents", "words", "tokens_removed", "documents_cut", "tokens_given")
"""The counts of each value of a column."""


def by_report(column: str, passages: RemovedPassages, lost: np.ndarray, corpus: TokenCorpus) -> dict[str, Any]:
    """Return what substrings.json says of the values of a column: counts of each, and removed tokens of each two.

    Parameters
    ----------
    column : str
    passages : RemovedPassages
    lost : array of int64
        The tokens that each document loses. Passages of one document may overlap.
    corpus : TokenCorpus
    """
    groups = Grouping.of(column, pa.chunked_array(corpus.values, pa.large_string()))
    number, kept = len(groups.names), passages.source >= 0
    left, right = groups.codes[passages.document[kept]], groups.codes[passages.source[kept]]
    tokens = passages.tokens[kept]

    given = np.bincount(right, tokens, number).astype(np.int64)
    counts = [*map(groups.total, (corpus.sizes, lost, lost > 0)), given]
    both, place = np.unique(left * number + right, return_inverse=True)
    sums = np.bincount(place, tokens, len(both)).astype(np.int64)
    flows = {divmod(pair, number): some for pair, some in zip(both.tolist(), sums.tolist(), strict=True)}
    return flow_report(groups, dict(zip(BY_COLUMNS[1:], counts, strict=True)), flows)


def flow_report(groups: Grouping, counts: dict[str, np.ndarray], flows: dict[tuple[int, int], int]) -> dict[str, Any]:
    """Return what a report says of the values of a column.

    Parameters
    ----------
    groups : Grouping
    counts : dict of str to array of int64
        The counts of each value, besides its documents.
    flows : dict of (int, int) to int
        For each two groups, that of documents and that of their sources, a number of tokens.
    """
    rows = groups.rows(**counts)
    named = [
        {"value": groups.names[document], "source_value": groups.names[source], "tokens": tokens}
        for (document, source), tokens in sorted(flows.items(), key=lambda each: (-each[1], each[0]))
    ]
    return {
        "column": groups.column,
        "num_values": len(rows),
        "values": rows[:LISTED],
        "num_pairs": len(named),
        "pairs": named[:LISTED],
    }


SHOWN = 3
"""Passages and documents that the report names of each kind."""


def examples(passages: RemovedPassages, ids: pa.Array) -> dict[str, list[dict[str, Any]]]:
    """Return the longest passages, the most frequent ones, and the documents that keep the most tokens for others."""

    def named(rows: np.ndarray) -> list[dict[str, Any]]:
        names = ("begin", "end", "tokens", "copies")
        return [
            {
                "id": as_json(ids[int(passages.document[each])]),
                **{name: int(getattr(passages, name)[each]) for name in names},
            }
            for each in rows.tolist()
        ]

    longest = np.argsort(-passages.tokens, kind="stable")[:SHOWN]
    frequent = np.lexsort((-passages.tokens, -passages.copies))[:SHOWN]
    kept = passages.source >= 0
    tokens = np.bincount(passages.source[kept], passages.tokens[kept]).astype(np.int64)
    best = np.argsort(-tokens, kind="stable")[:SHOWN]
    sources = [{"id": as_json(ids[each]), "tokens": int(tokens[each])} for each in best.tolist() if tokens[each]]
    return {"longest": named(longest), "most_frequent": named(frequent), "sources": sources}


def sentences(report: dict[str, Any]) -> list[tuple[str, str]]:
    """Return labelled sentences: what was looked for, and what was found."""
    counts, settings = report["counts"], report["settings"]
    total, noun = max(1, counts["tokens"]), noun_of(settings["tokens"])

    def of_all(number: int) -> str:
        return f"{count(number, noun)} ({percent(number / total)})"

    looked = (
        f"passages of {count(settings['length'], noun)} or more in {count(counts['tokens'], noun)} of "
        f"{count(counts['documents'], 'document')}"
    )
    lines = [("looked", looked)]
    if counts["longest_document"] < settings["length"]:
        return [*lines, ("found", f"nothing can repeat: no document has {count(settings['length'], noun)}")]
    if counts["tokens_covered"] == 0:
        return [*lines, ("found", "nothing: no passage of this length occurs more than once")]
    lines.append(("found", f"{of_all(counts['tokens_covered'])} in passages that occur more than once"))
    where = f"in {count(counts['passages'], 'passage')} of {count(counts['documents_cut'], 'document')}"
    if settings["keep"] == "none":
        return [*lines, ("removed", f"{of_all(counts['tokens_removed'])} {where}; no document keeps them, by choice")]
    saved = counts["tokens_covered"] - counts["tokens_removed"]
    return [
        *lines,
        ("removed", f"{of_all(counts['tokens_removed'])} {where}; each stands whole in kept text"),
        ("", f"{of_all(saved)} would have no copy left if all that repeats were removed"),
    ]


def flow_lines(by: dict[str, Any], file: str) -> list[Any]:
    """Return the lines that say which value of a column feeds which; `file` lists all."""
    if not by["pairs"]:
        return []
    lines = ["", heading(f"  {'tokens of':24}{'stand in':24}{'tokens':>16}")]
    for each in by["pairs"][:20]:
        names = "".join(f"{shorten(shown(each[name]), 23):24}" for name in ("value", "source_value"))
        lines.append(beside(f"  {names}{each['tokens']:>16,}"))
    if by["num_pairs"] > 20:
        lines.append(beside(f"  and {by['num_pairs'] - 20:,} more in {file}"))
    return lines


def summary(found: Substrings, output: str | None, broken: list[str]) -> list[Any]:
    """Return a result as the command prints it."""
    report = found.report
    counts, action, noun = report["counts"], report["settings"]["action"], noun_of(report["settings"]["tokens"])
    parts: list[Any] = [row(label, line) for label, line in sentences(report)]
    unit = KINDS[report["settings"]["tokens"]].place
    for name, each in (("longest", "longest"), ("frequent", "most_frequent")):
        for first in report[each][:1]:
            where = f"{unit}s {first['begin']:,} to {first['end']:,} of {shorten(readable_id(first['id']), 40)}"
            parts.append(row(name, f"{count(first['tokens'], noun)} in {count(first['copies'], 'place')}: {where}"))
    if output is not None and action != "list":
        kept = f"{count(counts['tokens_left'], noun)} of {count(counts['kept'], 'document')}"
        if counts["dropped"]:
            least = report["settings"]["drop_below"]
            left = f"no {noun}s" if least == 1 else f"fewer than {least:,} {noun}s"
            kept += f"; {count(counts['dropped'], 'document')} dropped with {left} left"
        if counts["short_sources"]:
            kept += f"; {count(counts['short_sources'], 'source')} with as few {noun}s kept"
        parts.append(row("kept", kept if action == "cut" else "all documents, with marks"))
    if (by := report.get("by")) is not None:
        parts += table_by(by["column"], by["values"], BY_COLUMNS, by["num_values"], "substrings.json")
        parts += [*flow_lines(by, "substrings.json"), ""]
    kept_folder = ["kept/"] if action != "list" else []
    files = [*(f"{name}.parquet" for name in TABLES), *kept_folder, "substrings.html", "substrings.json"]
    return [*parts, *ending(report["seconds"], output, files, broken)]
