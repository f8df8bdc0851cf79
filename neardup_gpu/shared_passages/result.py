"""`SharedText`: the passages that documents share, as users see them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ..data import arrow, numpy_of, strings, taken
from ..printable import readable_id
from ..records import dataclass
from ..repeated_passages.result import flow_lines, flow_report
from ..report import count, ending, percent, row, shorten, table_by
from ..results.by_value import Grouping
from ..results.fail_over import CountedShare, WithCounts, of_rows
from ..results.tables import as_json
from ..text.token_kinds import noun_of
from .finding import Coverage, FoundPassages
from .placing import PlacedSpans

BY_COLUMNS = ("documents", "tokens", "tokens_taken", "tokens_given")
"""The counts of each value of a column."""

EARLIER = ("source", "same", "document")
"""Which of two documents is earlier."""

LIMITED = ("passages", "documents", "skipped")
"""The names of `SharedText.limited`."""


@dataclass(frozen=True, eq=False, repr=False)
class SharedText(WithCounts):
    """The result of a search for shared passages, which `passages` returns.

    Parameters
    ----------
    passages : pyarrow.Table
        Each passage of a document that stands in a source: id, begin and end (bytes of its text), begin_token and
        tokens; source_id, source_begin, source_end, source_begin_token and source_tokens, the same of the source;
        tokens_equal, longest_run (tokens), share and source_share (tokens_equal in shares of the tokens of either
        document), earlier ("source", "document" or "same", by the column of dates; null without dates), and changes:
        the words in which the two differ, a list of structs with begin, end, words, source_begin, source_end and
        source_words.
    documents : pyarrow.Table
        Each document: id, tokens, tokens_taken (tokens in passages with any source), share (of its tokens), sources
        (documents that share a passage and come before it), source_id (the one that shares the most tokens) and
        tokens_common (tokens in runs that stand at too many places to be listed). If all documents are compared with
        one another, also tokens_given and takers, the same from the source's side.
    sources : pyarrow.Table or None
        Each document of the second input: id, tokens, tokens_given and takers. None if there is no second input.
    report : dict
        The contents of passages.json.

    Examples
    --------
    >>> import neardup_gpu as nd
    >>> nd.passages({"text": ["He said: to be or not to be, that is the question", "to be or not to be"]}, length=4)
    SharedText(1 passage in 1 of 2 documents)
    """

    passages: pa.Table
    documents: pa.Table
    sources: pa.Table | None
    report: dict[str, Any]

    @property
    def limited(self) -> dict[str, CountedShare]:
        """The counts that limits are set for, each with the number that it is a share of."""
        found = self.counts
        return {
            "passages": CountedShare(found["passages"], found["tokens_taken"], found["tokens"]),
            "documents": CountedShare(found["documents_taken"], found["documents_taken"], found["documents"]),
            **of_rows(found),
        }

    def _sentences(self) -> list[str]:
        return [line for _, line in sentences(self.report)]

    def __repr__(self) -> str:
        found = self.counts
        return (
            f"SharedText({count(found['passages'], 'passage')} in {found['documents_taken']:,} of "
            f"{count(found['documents'], 'document')})"
        )


def passages_table(
    found: FoundPassages,
    placed: tuple[PlacedSpans, PlacedSpans],
    ids: tuple[pa.Array, pa.Array],
    sizes: tuple[np.ndarray, np.ndarray],
    dates: tuple[np.ndarray, np.ndarray] | None,
) -> pa.Table:
    """Return the table of passages.

    Parameters
    ----------
    found : FoundPassages
        Documents and sources by their numbers in their own inputs.
    placed : PlacedSpans of documents and of sources
        The passages, and then the gaps.
    ids, sizes : of documents and of sources
    dates : arrays of int64, of documents and of sources, or None
        By number; see `DocumentLayout`.
    """
    passages, number = found.passages, len(found.passages.first)
    own, theirs = placed
    document, source = passages.document, passages.source
    earlier = np.zeros(number, np.int8)
    unknown = np.ones(number, bool)
    if dates is not None:
        date, of_source = dates[0][document], dates[1][source]
        unknown = (date < 0) | (of_source < 0)
        earlier = (1 + np.sign(of_source - date)).astype(np.int8)
    words = strings(list(EARLIER)).cast(pa.string())
    return pa.table(
        {
            "id": taken(ids[0], arrow(document)),
            "begin": arrow(own.begin[:number]),
            "end": arrow(own.end[:number]),
            "begin_token": arrow(passages.first),
            "tokens": arrow(passages.last - passages.first),
            "source_id": taken(ids[1], arrow(source)),
            "source_begin": arrow(theirs.begin[:number]),
            "source_end": arrow(theirs.end[:number]),
            "source_begin_token": arrow(passages.source_first),
            "source_tokens": arrow(passages.source_last - passages.source_first),
            "tokens_equal": arrow(passages.equal),
            "longest_run": arrow(passages.longest),
            "share": arrow(passages.equal / sizes[0][document]),
            "source_share": arrow(passages.equal / sizes[1][source]),
            "earlier": pa.DictionaryArray.from_arrays(arrow(earlier, unknown), words),
            "changes": _changes(found.gaps.passage, number, own, theirs),
        }
    )


def _changes(passage: np.ndarray, number: int, own: PlacedSpans, theirs: PlacedSpans) -> pa.Array:
    """Return the list of changes of each passage."""
    gaps = range(number, number + len(passage))
    changes = pa.StructArray.from_arrays(
        [
            arrow(own.begin[number:]),
            arrow(own.end[number:]),
            strings([own.text[gap] for gap in gaps]),
            arrow(theirs.begin[number:]),
            arrow(theirs.end[number:]),
            strings([theirs.text[gap] for gap in gaps]),
        ],
        ["begin", "end", "words", "source_begin", "source_end", "source_words"],
    )
    offsets = np.searchsorted(passage, np.arange(number + 1))
    return pa.LargeListArray.from_arrays(arrow(offsets.astype(np.int64)), changes)


def documents_table(coverage: Coverage, ids: pa.Array, sizes: np.ndarray, source_ids: pa.Array) -> pa.Table:
    """Return the table of the documents that are compared with others; arrays have a value per such document."""
    return pa.table(
        {
            "id": ids,
            "tokens": arrow(sizes),
            "tokens_taken": arrow(coverage.taken),
            "share": arrow(coverage.taken / np.maximum(sizes, 1)),
            "sources": arrow(coverage.sources),
            "source_id": taken(source_ids, arrow(np.maximum(coverage.best, 0), coverage.best < 0)),
            "tokens_common": arrow(coverage.common),
        }
    )


def sources_table(coverage: Coverage, ids: pa.Array, sizes: np.ndarray) -> pa.Table:
    """Return the table of the documents of the second input."""
    given = {"tokens_given": arrow(coverage.given), "takers": arrow(coverage.takers)}
    return pa.table({"id": ids, "tokens": arrow(sizes), **given})


def by_report(groups: Grouping, found: FoundPassages, sizes: np.ndarray) -> dict[str, Any]:
    """Return what passages.json says of the values of a column: counts of each, and tokens of each two."""
    coverage = found.coverage
    counts = zip(BY_COLUMNS[1:], map(groups.total, (sizes, coverage.taken, coverage.given)), strict=True)
    return flow_report(groups, dict(counts), found.flows)


SHOWN = 3
"""Passages and documents that the report names of each kind."""


def examples(passages: pa.Table, documents: pa.Table) -> dict[str, list[dict[str, Any]]]:
    """Return the passages with the longest runs, and the documents that take the most."""
    names = ["id", "begin", "end", "source_id", "source_begin", "source_end", "tokens_equal", "longest_run"]
    most = _rows_of(documents.select(["id", "tokens", "tokens_taken", "sources"]), "tokens_taken")
    return {
        "longest": _rows_of(passages.select(names), "longest_run"),
        "taken_most": [each for each in most if each["tokens_taken"]],
    }


def _rows_of(table: pa.Table, column: str) -> list[dict[str, Any]]:
    """Return the rows with the largest values of a column as a report holds them."""
    rows = np.argsort(-numpy_of(table[column]), kind="stable")[:SHOWN].tolist()
    return [{name: as_json(table[name][each]) for name in table.column_names} for each in rows]


def sentences(report: dict[str, Any]) -> list[tuple[str, str]]:
    """Return labelled sentences: what was looked for, and what was found."""
    counts, settings = report["counts"], report["settings"]
    noun = noun_of(settings["tokens"])
    least = count(settings["length"], noun)
    looked = (
        f"runs of {least} or more that {count(counts['documents'], 'document')} of "
        f"{count(counts['tokens'], noun)} {'shares' if counts['documents'] == 1 else 'share'} with "
        + (
            f"{count(counts['source_documents'], 'source')} of {count(counts['source_tokens'], noun)}"
            if "source_documents" in counts
            else "one another"
        )
    )
    lines = [("looked", looked)]
    if counts["longest_document"] < settings["length"]:
        lines.append(("found", f"nothing can be shared: no document has {least}"))
    elif counts.get("longest_source", settings["length"]) < settings["length"]:
        lines.append(("found", f"nothing can be shared: no source has {least}"))
    elif not counts["passages"]:
        lines.append(("found", "nothing: no two documents share a passage of this length"))
    else:
        share = percent(counts["tokens_taken"] / max(1, counts["tokens"]))
        lines.append(
            (
                "found",
                f"{count(counts['tokens_taken'], noun)} ({share}) of {count(counts['documents_taken'], 'document')} "
                f"stand in another one: {count(counts['passages'], 'passage')} of "
                f"{count(counts['pairs_listed'], 'pair')} of documents",
            )
        )
        if more := counts["pairs"] - counts["pairs_listed"]:
            best = f"the best {settings['max_partners']:,} sources of a document"
            lines.append(("", f"{count(more, 'pair')} beyond {best}: counted, not listed"))
    if counts["windows_common"]:
        common = f"{count(counts['tokens_common'], noun)} in runs that stand at more than {counts['most_places']:,}"
        lines.append(("common", f"{common} places, which begin no passage"))
    return lines


def summary(found: SharedText, output: str | None, broken: list[str]) -> list[Any]:
    """Return a result as the command prints it."""
    report, noun = found.report, noun_of(found.report["settings"]["tokens"])
    parts: list[Any] = [row(label, line) for label, line in sentences(report)]
    for first in report["longest"][:1]:
        names = (shorten(readable_id(first[name]), 40) for name in ("id", "source_id"))
        parts.append(
            row("longest", f"{count(first['longest_run'], noun)} of {next(names)}, which stand in {next(names)}")
        )
    if (by := report.get("by")) is not None:
        parts += table_by(by["column"], by["values"], BY_COLUMNS, by["num_values"], "passages.json")
        parts += flow_lines(by, "passages.json")
        parts.append("")
    files = ["passages.parquet", "documents.parquet", *(["sources.parquet"] if found.sources is not None else [])]
    return [*parts, *ending(report["seconds"], output, [*files, "passages.html", "passages.json"], broken)]
