"""The first page of a report, for the one who pays: five sentences, a picture, and pairs to check by hand."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..data import numpy_of
from ..methods.contract import Join
from ..recipe import Recipe
from ..report import count, percent, resemblance as in_digits, size
from . import charts
from .groups import GroupTable, worth_of
from .run import Run
from .texts import Difference, Pair

DRAWN = 20
"""Pairs that are drawn,"""

NEAREST = 100
"""among the removed documents nearest to the threshold, at most."""

SOURCES = 6
"""Sources in the picture, those that lost most documents."""

WORDS = 110
"""Characters of differing words that are shown of a pair."""


class DrawnPairs(NamedTuple):
    """Removed documents that are drawn among those nearest to the threshold.

    Parameters
    ----------
    pairs : list of Pair
        In ascending order of what they are worth.
    worth : array of float64
        What each is worth; NaN where nothing was verified.
    among : int
        The number of removed documents that they were drawn from.
    """

    pairs: list[Pair]
    worth: np.ndarray
    among: int


def draw(run: Run, groups: GroupTable) -> DrawnPairs:
    """Draw pairs among the removed documents that agree least with their kept one, always the same ones."""
    rows, group = groups.rows, np.repeat(np.arange(len(groups)), np.diff(groups.offsets))
    table = run.documents.take(rows)
    worth = worth_of(table, run.column)
    if run.recipe.threshold is None and "distance" in table.column_names:
        order = np.argsort(-numpy_of(table["distance"].fill_null(0)), kind="stable")
    else:
        order = np.argsort(worth, kind="stable")
        order = order[worth[order] < 1]
    nearest = order[:NEAREST]
    chosen = nearest[np.sort(np.random.default_rng(1).permutation(len(nearest))[:DRAWN])]
    pairs = [groups.pair(at, row) for at, row in zip(group[chosen].tolist(), rows[chosen].tolist(), strict=True)]
    return DrawnPairs(pairs, worth[chosen], len(nearest))


def shown_pairs(drawn: DrawnPairs, differences: dict[int, Difference], ids: Any, shown: Any) -> list[dict[str, Any]]:
    """Return the drawn pairs as a table shows them: both ids, what they are worth, and some of the differing words."""
    found = []
    for pair, worth in zip(drawn.pairs, drawn.worth.tolist(), strict=True):
        words: list[tuple[str, str]] = []
        left = WORDS
        for op, part in differences[pair.row].words if pair.row in differences else ():
            text = " ".join(part.split())
            if op in ("removed", "added") and text and left > 0:
                words.append((op, text if len(text) <= left else f"{text[:left]}..."))
                left -= len(text)
        found.append(
            {
                "removed": shown(ids[pair.row].as_py()),
                "kept": shown(pair.kept),
                "worth": "" if np.isnan(worth) else in_digits(worth),
                "words": words,
            }
        )
    return found


def five(run: Run, losses: dict[str, Any] | None, drawn: DrawnPairs) -> list[str]:
    """Return five sentences: how much was removed, from where, how sure that is, what it saves, what to check."""
    counts = run.report["counts"]
    documents, removed = counts["documents"], counts["removed"]
    share = removed / max(1, documents)
    text = "" if counts["text_bytes"] is None else f" ({size(counts['text_bytes'])} of text)"
    cut = (
        f", and {counts['units_cut']:,} of {count(counts['units'], 'part')} are cut" if run.recipe.unit.divides else ""
    )
    return [
        f"Of {count(documents, 'document')}{text}, {counts['kept']:,} are kept and {removed:,} are removed "
        f"({percent(share)}){cut}.",
        _from_where(losses, removed),
        _how_sure(run),
        _saves(counts, run.recipe),
        _to_check(losses, drawn),
    ]


def _from_where(losses: dict[str, Any] | None, removed: int) -> str:
    if not removed:
        return "No source lost a document."
    if losses is None or losses["number"] < 2:
        return "All removed documents are from one source."
    rows = [row for row in losses["rows"][:3] if row["removed"]]
    most = [f"{row['name']} ({row['removed']:,} of {row['documents']:,})" for row in rows]
    if len(rows) == 1:
        return f"All removed documents are from {most[0]}."
    return f"The sources that lost most are {', '.join(most)}."


def _how_sure(run: Run) -> str:
    recipe, found = run.recipe, run.report["recall"]
    if recipe.threshold is None:
        return "This is an estimate: the distance of sketches alone decided, and nothing was verified."
    if recipe.method.equal_by is not None:
        return f"Each removed document has the same {', '.join(recipe.method.equal_by) or 'bytes'} as its kept one."
    if recipe.unit.divides and recipe.only_equal:
        return f"Each part that is cut has the same {recipe.shingles.token_kind.noun}s, in their order, as a kept part."
    other = "part" if recipe.unit.divides else "document"
    verified = f"Each removal is verified: {run.column} with the kept {other} is {recipe.threshold:g} or more"
    if isinstance(recipe.method, Join):
        return f"{verified}, and no pair at that threshold was missed."
    sampled = found["sampled"]
    if sampled and sampled["with_duplicates"]:
        return f"{verified}; in a sample, {percent(sampled['recall'])} of such pairs were found (at least " + (
            f"{percent(sampled['low'])}, with {sampled['confidence']:.0%} confidence)."
        )
    if found["expected"] is not None:
        return f"{verified}; of pairs just at it, {percent(found['expected'])} are expected to be found."
    return f"{verified}; how many such pairs were missed is not known."


def _saves(counts: dict[str, Any], recipe: Recipe) -> str:
    share, what = counts["removed"] / max(1, counts["documents"]), "documents"
    if "tokens_left" in counts:
        share, what = 1 - counts["tokens_left"] / max(1, counts["tokens"]), f"{recipe.shingles.token_kind.noun}s"
    saved = f"{percent(share)} of the {what} need not be stored, read or trained on"
    if not counts["text_bytes"]:
        return f"It saves this: {saved}."
    return f"It saves about {size(share * counts['text_bytes'])} of text, if all are of average length: {saved}."


def _to_check(losses: dict[str, Any] | None, drawn: DrawnPairs) -> str:
    warned = [] if losses is None else [row["name"] for row in losses["warnings"][:2]]
    of_whom = "its" if len(warned) == 1 else "their"
    half = f"why {' and '.join(warned)} lost more than half of {of_whom} documents" if warned else ""
    if not drawn.pairs:
        return f"Check by hand {half}." if half else "There is no pair below full agreement to check by hand."
    pairs = (
        f"the {count(len(drawn.pairs), 'pair')} below, drawn from the {count(drawn.among, 'removed document')} that "
        f"{'agrees' if drawn.among == 1 else 'agree'} least with the kept one"
    )
    return f"Check by hand {pairs}{f', and {half}' if half else ''}."


def picture(counts: dict[str, Any], losses: dict[str, Any] | None) -> str:
    """Draw what was kept and removed of each source."""
    rows = [] if losses is None else [(row["name"], row["documents"], row["removed"]) for row in losses["rows"]]
    listed = rows[:SOURCES]
    others = counts["documents"] - sum(row[1] for row in listed), counts["removed"] - sum(row[2] for row in listed)
    if others[0] or not listed:
        listed.append(("all others" if listed else "all documents", *others))
    return charts.kept_and_removed(listed)
