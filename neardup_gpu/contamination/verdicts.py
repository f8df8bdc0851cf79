"""The definitions of a contaminated item, and `Contamination`: what a check found, as users see it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..data import arrow, numpy_of, strings
from ..printable import readable_id
from ..records import dataclass
from ..report import beside, count, ending, heading, percent, row, shorten, table_by
from ..results.fail_over import CountedShare, WithCounts, of_rows
from ..text.token_kinds import KINDS, noun_of
from .items import EvaluationItems, Wanted
from .settings import LEAST
from .tally import LONG, SHORT, Tally

if TYPE_CHECKING:
    from .scanning import BatchHits

DEFINITIONS = ("gpt3", "datatrove", "llama3", "tulu3", "longest")
"""The columns of verdicts."""

DATATROVE = 12
"""The tokens of the n-grams of datatrove."""

BY_COLUMNS = ("documents", "documents_hit", "items", "hits")
"""The counts of each value of a column."""

TABLES = ("hits", "evals")
"""The tables of a check; each becomes a file."""


@dataclass(frozen=True, eq=False, repr=False)
class Contamination(WithCounts):
    """The result of a check for contamination, which `contaminated` returns.

    Parameters
    ----------
    hits : pyarrow.Table
        Each maximal run that a document shares with an item: eval_set, eval_id, field (null for all fields of an item
        together), id of the document, begin and end (bytes of its text), run (tokens) and share_of_item.
    evals : pyarrow.Table
        Each item, and each of its fields if it has several: eval_set, eval_id, field, tokens, too_short, longest_run,
        share_8 and share_13 (the share of its tokens in shared n-grams), documents, frequency_13 (documents with the
        rarest of its 13-grams that any document has; null if none has one), and a verdict per definition: gpt3,
        datatrove, llama3, tulu3 and longest. Verdicts are null if the item is too short, or if the runs that count are
        too long to tell.
    report : dict
        The contents of certificate.json.

    Examples
    --------
    >>> import neardup_gpu as nd
    >>> item = {"question": ["To be, or not to be: that is the question."]}
    >>> nd.contaminated({"text": ["He said: to be or not to be, that is the question"]}, {"plays": item})
    Contamination(1 of 1 item, in 1 of 1 document)
    """

    hits: pa.Table
    evals: pa.Table
    report: dict[str, Any]

    @property
    def limited(self) -> dict[str, CountedShare]:
        """The counts that limits are set for, each with the number that it is a share of."""
        found = self.counts
        return {
            "items": CountedShare(found["items_hit"], found["items_hit"], found["items"]),
            "documents": CountedShare(found["documents_hit"], found["documents_hit"], found["documents"]),
            **{
                name: CountedShare(found[f"items_{name}"], found[f"items_{name}"], found["items"])
                for name in DEFINITIONS
            },
            **of_rows(found),
        }

    def __repr__(self) -> str:
        found = self.counts
        return (
            f"Contamination({found['items_hit']:,} of {count(found['items'], 'item')}, in "
            f"{found['documents_hit']:,} of {count(found['documents'], 'document')})"
        )

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(chr(10).join(map(str, table_lines(self.report))))}</pre>"


LIMITED = ("items", "documents", *DEFINITIONS, "skipped")
"""The names of `Contamination.limited`."""


def evals_table(items: EvaluationItems, wanted: Wanted, tally: Tally, share: float) -> pa.Table:
    """Return the table of items and fields with their verdicts."""
    sizes, told = items.targets.size, wanted.widths > 0
    longest = tally.longest
    short, long = tally.covered_short(), tally.covered_long()
    rarest = tally.rarest()
    least, whole = share * sizes, np.maximum(sizes, 1)

    def verdict(of: np.ndarray, size: int) -> pa.Array:
        """Return a verdict that needs runs of `size` tokens, or of the whole item."""
        return arrow(of & told, ~told | (np.minimum(sizes, size) < wanted.widths))

    def shares(covered: np.ndarray, size: int) -> pa.Array:
        return arrow(covered / whole, ~told | (np.minimum(sizes, size) < wanted.widths))

    return pa.table(
        {
            **named(items, np.arange(len(sizes))),
            "tokens": arrow(sizes),
            "too_short": arrow(~told),
            "longest_run": arrow(longest, ~told),
            "share_8": shares(short, SHORT),
            "share_13": shares(long, LONG),
            "documents": arrow(tally.documents, ~told),
            "frequency_13": arrow(rarest, rarest == 0),
            "gpt3": verdict(longest >= np.minimum(sizes, LONG), LONG),
            "datatrove": verdict(longest >= np.minimum(sizes, DATATROVE), DATATROVE),
            "llama3": verdict(short >= least, SHORT),
            "tulu3": verdict(tally.most > least, SHORT),
            "longest": arrow((longest >= least) & told, ~told),
        }
    )


def hits_table(items: EvaluationItems, listed: list[BatchHits], id_type: pa.DataType) -> pa.Table:
    """Return the table of hits, by document, place and target. Ids that are integers get the type `id_type`.

    `listed` has at least one part, which may have no hits.
    """
    parts = []
    for hits, ids in listed:
        columns = {
            **named(items, hits.target),
            "id": ids.cast(id_type) if pa.types.is_integer(ids.type) else ids,
            "begin": arrow(hits.begin),
            "end": arrow(hits.end),
            "run": arrow(hits.length),
            "share_of_item": arrow(hits.length / items.targets.size[hits.target]),
        }
        parts.append(pa.table(columns))
    return pa.concat_tables(parts, promote_options="permissive")


def named(items: EvaluationItems, targets: np.ndarray) -> dict[str, pa.Array]:
    """Return the set, the item and the field of targets as columns."""
    item, field = items.targets.item[targets], items.targets.field[targets]
    sets = pa.DictionaryArray.from_arrays(arrow(items.set_of[item]), strings(items.sets).cast(pa.string()))
    names = strings(items.fields).cast(pa.string())
    fields = pa.DictionaryArray.from_arrays(arrow(np.maximum(field, 0), field < 0), names)
    return {"eval_set": sets, "eval_id": items.ids.take(arrow(item)).combine_chunks(), "field": fields}


def counts_of(evals: pa.Table) -> dict[str, int]:
    """Count the items: verdicts by the rows with all their fields, and hits by any of their rows."""
    whole = evals.filter(evals["field"].is_null())
    item = np.cumsum(numpy_of(evals["field"].is_null()))
    hit = numpy_of(pc.fill_null(pc.greater(evals["longest_run"], 0), False))
    found = {"items": whole.num_rows, "too_short": pc.sum(whole["too_short"]).as_py() or 0}
    found["items_hit"] = len(np.unique(item[hit]))
    return found | {f"items_{name}": pc.sum(whole[name]).as_py() or 0 for name in DEFINITIONS}


SHOWN = 3
"""Items of a set that are named as examples."""


def sets_of(evals: pa.Table, names: list[str]) -> list[dict[str, Any]]:
    """Return the counts of each set, its longest run, and the items with the longest runs."""
    found = []
    for name in names:
        rows = evals.filter(pc.equal(evals["eval_set"].cast(pa.string()), name))
        runs = numpy_of(pc.fill_null(rows["longest_run"], 0))
        best = np.argsort(-runs, kind="stable")[: 10 * SHOWN]
        ids = rows["eval_id"].take(arrow(best[runs[best] > 0])).to_pylist()
        examples = list(dict.fromkeys(ids))[:SHOWN]
        found.append({"name": name, **counts_of(rows), "longest_run": int(runs.max(initial=0)), "examples": examples})
    return found


def table_lines(report: dict[str, Any], width: int = 28) -> list[Any]:
    """Return a table: a line per set with its items and how many each definition calls contaminated."""
    names = ["items", "short", "hit", *DEFINITIONS, "run"]
    keys = ["items", "too_short", "items_hit", *(f"items_{name}" for name in DEFINITIONS), "longest_run"]
    lines = [heading(f"  {'set':{width}}" + "".join(f"{name:>10}" for name in names) + "  examples")]
    for found in report["sets"]:
        numbers = "".join(f"{found[key]:>10,}" for key in keys)
        examples = ", ".join(shorten(readable_id(each), 20) for each in found["examples"])
        lines.append(beside(f"  {shorten(found['name'], width):{width}}{numbers}  {examples}"))
    return lines


def sentences(report: dict[str, Any]) -> list[tuple[str, str]]:
    """Return labelled sentences: what was looked for, and what was found."""
    counts, settings = report["counts"], report["settings"]
    noun = noun_of(settings["tokens"])
    looked = (
        f"{count(counts['grams'], 'n-gram')} of {count(counts['items'], 'item')} in {count(counts['tokens'], noun)} "
        f"of {count(counts['documents'], 'document')}; a run counts from {count(settings['length'], noun)} on"
    )
    lines = [("looked", looked)]
    if counts["too_short"]:
        least = count(KINDS[settings["tokens"]].as_much_as(LEAST), noun)
        lines.append(("", f"{count(counts['too_short'], 'item')} of fewer than {least}: too short to tell"))
    if counts["items_hit"]:
        found = (
            f"{counts['items_hit']:,} of {count(counts['items'], 'item')} "
            f"({percent(counts['items_hit'] / counts['items'])}) in {count(counts['documents_hit'], 'document')} "
            f"({percent(counts['documents_hit'] / counts['documents'])}), by {count(counts['hits'], 'hit')}"
        )
    else:
        found = f"nothing: no document shares a run of {noun}s with an item"
    return [*lines, ("found", found)]


def summary(found: Contamination, output: str | None, broken: list[str]) -> list[Any]:
    """Return a result as the command prints it."""
    report = found.report
    parts: list[Any] = [row(label, line) for label, line in sentences(report)]
    parts += ["", *table_lines(report)]
    if (by := report.get("by")) is not None:
        parts += table_by(by["column"], by["values"], BY_COLUMNS, by["num_values"], "certificate.json")
    parts.append("")
    counts, action = report["counts"], report["settings"]["action"]
    if output is not None and action != "list":
        done = {
            "drop": f"{count(counts['documents_hit'], 'document')} left out",
            "cut": f"hits cut out of {count(counts['documents_hit'], 'document')}, {counts['emptied']:,} of them left "
            "out because nothing else was in them",
            "mark": f"hits marked in {count(counts['documents_hit'], 'document')}",
        }[action]
        parts.append(row("kept", done))
        if number := counts["across_seams"]:
            new = f"{count(number, 'run')} of tokens {'is' if number == 1 else 'are'} new, across the seams of cuts"
            parts.append(row("", f"{new}; no check of kept/ counts {'it' if number == 1 else 'them'}"))
    files = [*(f"{name}.parquet" for name in TABLES), *(["kept/"] if action != "list" else [])]
    files += ["contaminated.html", "certificate.json"]
    return [*parts, *ending(report["seconds"], output, files, broken)]
