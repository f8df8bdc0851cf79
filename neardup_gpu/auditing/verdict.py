"""Define `Audit`: what an audit found, as users see it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InputError
from ..printable import readable_id
from ..recipe import Recipe
from ..records import dataclass
from ..report import count, ending, percent, resemblance as in_digits, row, some, table_by
from ..results.fail_over import CountedShare, WithCounts, of_rows
from ..text.raw_text import to_bytes

if TYPE_CHECKING:
    from ..documents import Documents
    from ..jobs.comparison import Comparison

TABLES = ("lost", "missed", "clusters", "reasons")
"""The tables that an audit may have; each becomes a file."""

LIMITED = ("lost", "missed", "skipped")
"""The names of `Audit.limited`."""


@dataclass(frozen=True, eq=False, repr=False)
class Audit(WithCounts):
    """The result of an audit, which `audit` returns.

    Parameters
    ----------
    lost : pyarrow.Table
        The removed documents that resemble no kept document at the threshold: id, nearest (the id of the nearest kept
        document) and resemblance. Both are null if no kept document reaches `nearest_from`.
    missed : pyarrow.Table
        The pairs of kept documents at the threshold: id_a, id_b, kind and resemblance. Documents with the same words
        have one representative, and a pair with it each.
    clusters : pyarrow.Table or None
        For each cluster of at least two members: cluster, members, kept, lowest, id_a, id_b (the two members of the
        lowest resemblance), chain (the ids that join them) and links (the resemblance along the chain), and how many
        of the reasons for a removal hold. `chain` is null if the lowest resemblance reaches the threshold, and empty if
        nothing joins the two.
    reasons : pyarrow.Table or None
        The stated reasons: id, other, resemblance and holds.
    report : dict
        The contents of audit.json.
    recipe : Recipe
        The definition of a near-duplicate, and the threshold.
    documents : Documents
        The corpus, from which texts are read again.

    Examples
    --------
    >>> import neardup_gpu as nd
    >>> texts = ["to be or not to be that is the question"] * 2 + ["whether it is nobler in the mind to suffer"]
    >>> nd.audit({"id": [1, 2, 3], "text": texts}, kept={"id": [1]}, id_column="id").lost["id"].to_pylist()
    [3]
    """

    lost: pa.Table
    missed: pa.Table
    clusters: pa.Table | None
    reasons: pa.Table | None
    report: dict[str, Any]
    recipe: Recipe
    documents: Documents

    @property
    def limited(self) -> dict[str, CountedShare]:
        """The counts that limits are set for, each with the number that it is a share of.

        Lost documents are a share of the removed ones. The number of missed pairs has as its share that of the kept
        documents that are in a missed pair. Skipped rows of the corpus are a share of all its rows.
        """
        counts = self.counts
        return {
            "lost": CountedShare(counts["lost"], counts["lost"], counts["judged_removed"]),
            "missed": CountedShare(counts["missed"], counts["missed_documents"], counts["judged_kept"]),
            "skipped": of_rows(counts)["skipped"],
        }

    def explain(self, id: Any) -> Comparison:
        """Compare a lost document with its nearest kept one, or a kept document with one that it was missed for.

        Parameters
        ----------
        id : int or str
            The document's id.

        Returns
        -------
        Comparison
            The kept document is A, the document with the id is B. The corpus is read again for it.

        Raises
        ------
        InputError
            If the document is in no lost row and in no missed pair, or its lost row names no kept document.

        Examples
        --------
        >>> import neardup_gpu as nd
        >>> texts = ["to be or not to be that is the question", "to be or not to be that is a question"]
        >>> found = nd.audit({"id": [1, 2], "text": texts}, kept={"id": [1]}, id_column="id", nearest_from=0.3)
        >>> found.explain(2)
        Comparison(resemblance 0.5000: 4 of 8 shingles shared; B has 66.7% of A, A has 66.7% of B)
        """
        from ..documents.rereading import texts_of
        from ..jobs.comparison import compare

        other = self._other_of(id)
        wanted = pa.chunked_array([pa.array([other, id], self.lost["id"].type)])
        kept, removed = texts_of(self.documents, wanted, None)
        assert kept is not None and removed is not None
        return compare(to_bytes(kept), to_bytes(removed), shingles=self.recipe.shingles)

    def _other_of(self, id: Any) -> Any:
        for table, own, other in (
            (self.lost, "id", "nearest"),
            (self.missed, "id_b", "id_a"),
            (self.missed, "id_a", "id_b"),
        ):
            place = pc.index(table[own], pa.scalar(id, table[own].type)).as_py()
            if place >= 0:
                found = table[other][place].as_py()
                if found is None:
                    raise InputError(f"{id}: no kept document reaches {self.report['settings']['nearest_from']:g}")
                return found
        raise InputError(f"{id}: neither lost nor in a missed pair; there is nothing to explain")

    def __repr__(self) -> str:
        counts = self.counts
        return (
            f"Audit({count(counts['documents'], 'document')}: {counts['kept']:,} kept, {counts['removed']:,} removed; "
            f"{counts['lost']:,} lost, {counts['missed']:,} missed)"
        )

    def _sentences(self) -> list[str]:
        return sentences(self.report)


def sentences(report: dict[str, Any]) -> list[str]:
    """Return five sentences: what was judged, what was lost, what was missed, what is close, and what explains it."""
    counts, recipe = report["counts"], report["recipe"]
    threshold, measure = recipe["threshold"], report["measure"]
    of = f"{measure} of {threshold:g} by shingles of {recipe['shingle_size']} words"
    first = (
        f"Of {count(counts['documents'], 'document')}, {counts['kept']:,} were kept and {counts['removed']:,} removed "
        f"({_share(counts['removed'], counts['documents'])}); a near-duplicate has a {of}."
    )
    found = [first, _lost(report), _missed(report), _close(report)]
    return [*found, report["difference"]["sentence"]]


def _lost(report: dict[str, Any]) -> str:
    counts = report["counts"]
    lost, of = counts["lost"], counts["judged_removed"]
    if "sample" in report:
        return f"Of {of:,} removed documents drawn at random, {lost:,} are lost: {_interval(report, 'lost')}."
    if lost == 0:
        return "No document was lost: each removed document with words resembles a kept one."
    nearest = counts["lost_with_nearest"]
    highest = report["highest_lost"]
    more = f", at most {in_digits(highest)}" if highest is not None else ""
    return (
        f"{count(lost, 'removed document')} ({_share(lost, of)} of the removed) resemble no kept document and are "
        f"lost; {nearest:,} of them have a nearest kept document{more}."
    )


def _missed(report: dict[str, Any]) -> str:
    counts = report["counts"]
    if "sample" in report:
        return (
            f"Of {counts['judged_kept']:,} kept documents drawn at random, {counts['missed_documents']:,} resemble "
            f"another kept one: {_interval(report, 'missed')}."
        )
    if counts["missed"] == 0:
        return "No pair was missed: no two kept documents resemble each other."
    return (
        f"{count(counts['missed'], 'pair')} of kept documents resemble each other and were missed; "
        f"{counts['missed_documents']:,} kept documents ({_share(counts['missed_documents'], counts['kept'])}) are in "
        "such a pair."
    )


def _close(report: dict[str, Any]) -> str:
    counts = report["counts"]
    wordless = counts["without_words_kept"] + counts["without_words_removed"]
    return (
        f"{count(counts['close_removed'], 'removed document')} and {count(counts['close_kept'], 'pair')} of kept ones "
        f"are within {report['settings']['close']:g} of the threshold, where another definition of a word may decide; "
        f"{count(wordless, 'document')} without words {'is' if wordless == 1 else 'are'} not judged."
    )


def _share(part: int, whole: int) -> str:
    return percent(part / whole if whole else 0)


def _interval(report: dict[str, Any], name: str) -> str:
    found = report["sample"][name]
    return (
        f"{percent(found['low'])} to {percent(found['high'])} of all with {100 * report['sample']['confidence']:g}% "
        "confidence (exact binomial interval)"
    )


def matching_lines(report: dict[str, Any]) -> list[str]:
    """Return a line for each thing about the matching that a reader has to know."""
    found = report["matching"]
    by = "their texts" if found["by"] == "text" else "their ids"
    lines = [f"documents matched by {by}"]
    names = {
        "repeated": "kept or removed more often than the corpus holds them",
        "unknown": "not in the corpus, left out",
        "by_words": "matched by their words, because their text was changed",
        "other_spaces": "with the words of the corpus and another text",
        "changed": "with other words than in the corpus",
        "copies": "copies of an earlier text in the corpus; the first copies count as kept",
    }
    for name, what in names.items():
        if found.get(name):
            first = f" ({some(list(map(readable_id, found['first_unknown'])))})" if name == "unknown" else ""
            lines.append(f"{found[name]:,} {what}{first}")
    counts = report["counts"]
    if counts.get("skipped"):
        left_out = "cannot be read or have the id of an earlier one, and are not judged"
        lines.append(f"{count(counts['skipped'], 'row')} of the corpus {left_out}")
    if counts["kept"] == 0:
        lines.append("nothing was kept")
    if counts["removed"] == 0:
        lines.append("everything was kept")
    return lines


def reason_lines(report: dict[str, Any]) -> list[str]:
    """Return a line each for the stated reasons and for the clusters, if there are any."""
    counts, lines = report["counts"], []
    if "reasons" in counts:
        lines.append(f"{counts['reasons_holding']:,} of {count(counts['reasons'], 'stated reason')} hold")
    if "clusters" in counts:
        below = f"{counts['clusters_below']:,} of {count(counts['clusters'], 'cluster')}"
        lines.append(f"{below} have two members that do not resemble each other")
        reasons = count(counts["cluster_reasons"], "removed member")
        lines.append(f"{counts['cluster_reasons_holding']:,} of {reasons} of clusters resemble a kept member")
        if counts["clusters_without_kept"]:
            lines.append(f"{count(counts['clusters_without_kept'], 'cluster')} without a kept member")
    return lines


def summary(found: Audit, output: str | None, broken: list[str]) -> list[Any]:
    """Return a result as the command prints it."""
    report = found.report
    labels = ("judged", "lost", "missed", "close", "why")
    parts: list[Any] = [row(label, line) for label, line in zip(labels, sentences(report), strict=True)]
    parts += [row("" if i else "matched", line) for i, line in enumerate(matching_lines(report))]
    parts += [row("" if i else "reasons", line) for i, line in enumerate(reason_lines(report))]
    if "by" in report:
        names = ("documents", "kept", "removed", "lost", "in_missed_pairs")
        parts += table_by(report["settings"]["by"], report["by"], names, len(report["by"]), "audit.json")
        parts.append("")
    files = [*(f"{name}.parquet" for name in report["tables"]), "audit.html", "audit.json"]
    files += ["skipped.parquet"] if "skipped" in report["counts"] else []
    return [*parts, *ending(report["seconds"], output, files, broken)]
