"""What a run decided, as users see it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from . import checks
from .data import arrow
from .documents import Documents
from .errors import InputError, ParameterError
from .recipe import Recipe
from .report import count

if TYPE_CHECKING:
    from .explanation import Explanation
    from .methods.contract import Statistics
    from .report_page.page import Page
    from .report_page.run import Run
    from .tables import Facts


class Report(dict[str, Any]):
    """The contents of report.json; called, as in ``result.report()``, it makes the page to look at.

    It knows the tables of its result, and not the result, which would keep both in memory until garbage is collected.
    """

    tables: tuple[Any, ...] = ()

    def __call__(
        self,
        path: str | Path | None = None,
        *,
        text: bool = True,
        source_column: str | None = None,
        overwrite: bool = False,
    ) -> Page:
        """Make a page of HTML to look at the result with; a notebook shows it.

        Parameters
        ----------
        path : path, default None
            A file to write it to as well.
        text : bool, default True
            Show texts, for which the documents are read once more, up to the last one that is shown.
        source_column : str, default None
            The column of the input that says where a document is from, for the table of losses; the file unless given.
        overwrite : bool, default False
            Replace an earlier page at `path`.

        Returns
        -------
        Page
            One file without anything to load: less than 5 MB, as what is long is sampled.

        Raises
        ------
        ParameterError
            If what draws it is not installed: ``pip install 'neardup-gpu[report]'``.
        InputError
            If there is no such column. Texts that cannot be read again are left out, and the page says why.
        OutputError
            If `path` is taken or cannot be written.
        """
        from .report_page.page import check_installed, make

        path, overwrite = checks.optional(checks.path, "path", path), checks.flag("overwrite", overwrite)
        check_installed()
        page = make(self.run(), text=text, source_column=source_column)
        if path is not None:
            page.write(path, overwrite)
        return page

    def run(self, folder: str | None = None) -> Run:
        """What a page is made from; where the tables are about to be written, to which folder."""
        from .report_page.run import run_of_tables

        documents, pairs, recipe, frequencies, sources = self.tables
        return run_of_tables(documents, pairs, self, recipe, frequencies, sources, folder)


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """What a run decided; `dedup` makes it.

    Parameters
    ----------
    documents : pyarrow.Table
        id, kept, duplicate_of, kind, resemblance, group; in input order. `duplicate_of`, `kind` and `resemblance` are
        null for kept documents. `kind` says how the document is like `duplicate_of`: "identical", the same text;
        "same_words", the same words in the same order, written differently; "near", other words. `group` is the id of
        the document that was kept. For files there are two more columns: file, the path below the folder that all files
        share, and row in it, from 1 (in JSON lines the line). For a DatasetDict, file is the split.
    pairs : pyarrow.Table
        id_a, id_b, kind, resemblance: the verified pairs between representatives, and one pair with resemblance 1 from
        each document to its representative, if another document of the same words stands for it. id_a has the better
        priority. By containment the column is called containment, in both tables: how much of the document
        `duplicate_of` contains, and of id_b id_a; id_a has more distinct shingles, or as many and the better priority,
        or is of the reference set.
    report : dict
        Recipe, counts, timings, recall, and what limits left out: the contents of report.json. Called, it makes a page
        to look at: ``result.report()`` shows it in a notebook, ``result.report("report.html")`` writes it to a file.
        The page needs ``pip install 'neardup-gpu[report]'``; its parameters are those of ``neardup report``: `text` and
        `source_column`, and `overwrite`.
    recipe : Recipe
        Everything that changed the results.
    frequencies : Frequencies, default None
        The document frequencies that tokens or shingles were weighed by.
    skipped : pyarrow.Table, default None
        file, row, rows, bytes, reason: rows that could not be read, with `on_error="skip"`; see `Documents.skipped`.
    sources : tuple of (Documents, Documents or None), default None
        The documents and the reference set, which `explain` reads again.
    facts : Facts, default None
        What decisions were made from, for `at`.

    Notes
    -----
    Where a reference set was given, `in_reference` and `a_in_reference` say which ids are of that set. For every
    document, kept or removed, `near_reference` is the id of the reference document that it resembles most, and
    `reference_resemblance` (or `reference_containment`) what the two are worth; both are null if no reference document
    reaches the threshold. Where nothing was verified, the nearest simhash takes the place. By simhash, both
    tables have a column `distance` (uint8), the bits in which simhashes differ. Where nothing was verified, resemblance
    is null except for documents of the same words.

    Examples
    --------
    >>> from neardup_gpu import dedup
    >>> dedup(texts=["to be or not to be", "to be or not to be", "that is the question"])
    Result(3 documents: 2 kept, 1 removed)
    """

    documents: pa.Table
    pairs: pa.Table
    report: Report
    recipe: Recipe
    frequencies: Statistics | None = None
    skipped: pa.Table | None = None
    sources: tuple[Documents, Documents | None] | None = None
    facts: Facts | None = None

    def __post_init__(self) -> None:
        report = Report(self.report)
        report.tables = self.documents, self.pairs, self.recipe, self.frequencies, self.sources
        object.__setattr__(self, "report", report)

    @property
    def warnings(self) -> tuple[str, ...]:
        """One sentence for each known reason why nothing was removed; empty if something was.

        Examples
        --------
        >>> from neardup_gpu import dedup
        >>> dedup(texts=["", ""]).warnings
        ('2 of 2 documents of the input have no words: check which columns hold the text',)
        """
        return tuple(self.report.get("warnings", ()))

    def explain(self, id: Any, *, full: bool = False) -> Explanation:
        """Say why a document stays or goes: the kept one, their resemblance, and the words in which they differ.

        Parameters
        ----------
        id : int or str
            The document's id; a number may be given as text.
        full : bool, default False
            Leave no words out of the diff.

        Returns
        -------
        Explanation
            It reads the documents again, up to the two that are compared.

        Raises
        ------
        InputError
            If there is no such document, or the documents were a stream, which cannot be read again, or have changed.
        ArgumentTypeError
            If `id` is of another type, or `full` neither True nor False.

        Examples
        --------
        >>> from neardup_gpu import dedup
        >>> result = dedup(texts=["to be or not to be"] * 2)
        >>> found = result.explain(1)
        >>> found.kept, found.duplicate_of, found.resemblance
        (False, 0, 1.0)
        """
        full = checks.flag("full", full)
        id = checks.instance("id", id.item() if isinstance(id, np.generic) else id, (int, str, bytes))
        from .explanation import explained

        if self.sources is None or not all(source.rewindable for source in self.sources if source is not None):
            raise InputError(
                "the documents were a stream, which cannot be read again to explain; pass a table to dedup"
            )
        documents, reference = self.sources
        return explained(
            lambda: [self.documents],
            self.recipe,
            self.recipe.method.measure.knowing(self.frequencies),
            id,
            lambda: documents,
            lambda: reference or documents,
            name="this result",
            full=full,
        )

    @property
    def kept(self) -> pa.Table:
        """Rows of `documents` that stay, in input order."""
        return self.documents.filter(self.documents["kept"])

    @property
    def removed(self) -> pa.Table:
        """Rows of `documents` that go, in input order."""
        return self.documents.filter(pc.invert(self.documents["kept"]))

    def kept_dataset(self) -> Any:
        """The documents that stay, with all their columns, for Hugging Face's library `datasets`.

        Returns
        -------
        datasets.Dataset or datasets.DatasetDict
            Of a Dataset its rows, selected without a copy, with its features; of a DatasetDict such a Dataset for each
            split; else a Dataset in memory, with the column `path` for text files.

        Raises
        ------
        InputError
            If the documents were a stream, which cannot be read again, or have changed; or if `datasets` is not
            installed, which ``pip install 'neardup-gpu[hf]'`` does.

        Examples
        --------
        >>> from neardup_gpu import dedup
        >>> dedup(texts=["to be or not to be"] * 2).kept_dataset()["text"][:]  # doctest: +SKIP
        ['to be or not to be']
        """
        if self.sources is None:
            raise InputError("this result has no documents, so nothing of them can be given; run dedup again")
        from .documents.hugging_face import kept_dataset

        return kept_dataset(self.sources[0], np.asarray(self.documents["kept"].combine_chunks()))

    def groups(self) -> pa.Table:
        """Documents that are near-duplicates of one another, the largest groups first.

        Returns
        -------
        pyarrow.Table
            group, the id of the document that was kept; members, the ids of the documents of the input, the kept one
            first if it is one of them, then in input order; size, the number of removed documents plus the kept one,
            which may be in the reference set. Documents that are nobody's duplicates are in no group.

        Examples
        --------
        >>> from neardup_gpu import dedup
        >>> dedup(texts=["to be or not to be", "that is the question", "to be or not to be"]).groups().to_pylist()
        [{'group': 0, 'members': [0, 2], 'size': 2}]
        """
        gone = self.removed
        keys = ["group", "in_reference"] if "in_reference" in gone.column_names else ["group"]
        grouped = gone.group_by(keys, use_threads=False).aggregate([("id", "list")])
        known = grouped["in_reference"] if len(keys) == 2 else pa.array(np.zeros(len(grouped), bool))
        members = [
            others if from_reference else [kept, *others]
            for kept, others, from_reference in zip(
                grouped["group"].to_pylist(), grouped["id_list"].to_pylist(), known.to_pylist(), strict=True
            )
        ]
        kind = pa.list_(self.documents.schema.field("id").type)
        size = pc.add(pc.list_value_length(grouped["id_list"]), 1)
        table = pa.table({"group": grouped["group"], "members": pa.array(members, kind), "size": size})
        order = np.argsort(-size.to_numpy(), kind="stable")
        return table.take(arrow(order))

    def at(self, threshold: float) -> Result:
        """The decisions at a higher threshold, from the verified pairs: nothing is read or computed again.

        Parameters
        ----------
        threshold : float in (0, 1]
            At least the threshold of this run.

        Returns
        -------
        Result
            What this run would have decided with that threshold and the same candidates. Its report has no sampled
            recall; `limits` says what this run left out.

        Raises
        ------
        ParameterError, ArgumentTypeError
            If the threshold is lower, nothing was verified, or not all pairs are listed, which may decide at a higher
            threshold: where a document has more partners than `max_partners`, as in a crowd.

        Examples
        --------
        >>> from neardup_gpu import dedup
        >>> result = dedup(texts=["to be or not to be", "to be or not"], shingle_size=2, threshold=0.5)
        >>> len(result.removed), len(result.at(0.9).removed)  # 3 of 4 shingles are shared
        (1, 0)
        """
        threshold = checks.fraction("threshold", threshold, zero=False)
        if self.recipe.threshold is None or self.facts is None:
            raise ParameterError("threshold: this result holds no verified pairs; give dedup a threshold")
        if threshold < self.recipe.threshold:
            raise ParameterError(
                f"threshold {threshold} is below {self.recipe.threshold}, the one of this run, which verified no more; "
                "run dedup again"
            )
        from .decisions import decide
        from .engine.settings import Engine
        from .partners import selected
        from .stages import at_least
        from .tables import decided_counts, tabulate, warnings_of

        if threshold == self.recipe.threshold:
            return self
        ranked, groups, before, _ = self.facts
        recipe = self.recipe.with_(threshold=threshold)
        limits = self.report["limits"]
        if limits["unlisted_pairs"] or not limits["all_counted"]:
            raise ParameterError(
                "threshold: this run did not list all pairs that may decide; run dedup again, with that threshold or "
                "with max_partners=None"
            )
        verified = before.verified
        verified = at_least(threshold, verified.pairs.left, verified.pairs.right, verified.resemblance)
        listed, deciding = selected(
            verified, groups.pinned, recipe.cluster, recipe.max_partners, recipe.method.measure.directed
        )
        with Engine(backend="cpu").start() as runtime:
            nearest = None if before.nearest is None else before.nearest.at_least(threshold)
            facts = self.facts._replace(decisions=decide(ranked, groups, deciding, listed, nearest, recipe, runtime))
        assert self.sources is not None
        tables = tabulate(facts, recipe, *self.sources)
        counts, sizes = decided_counts(facts, recipe)
        report = Report(self.report, recipe=recipe.describe(), counts=self.report["counts"] | counts, **sizes)
        report["limits"] = limits | {"unlisted_pairs": len(verified.pairs) - len(listed.pairs)}
        report["candidates"] = list(recipe.method.in_words(threshold))
        report["recall"] = {"expected": recipe.expected_recall, "sampled": None}
        documents, reference = self.sources
        report["warnings"] = warnings_of(facts, recipe, documents, reference is not None)
        found = {"documents": tables.documents, "pairs": tables.pairs, "report": report, "recipe": recipe}
        return replace(self, **found, facts=facts)

    def plot(self) -> Any:
        """Draw the resemblance, or the containment, of the listed pairs and the sizes of the groups.

        Returns
        -------
        matplotlib.figure.Figure
            Two histograms.

        Raises
        ------
        ParameterError
            If matplotlib is not installed.

        Examples
        --------
        >>> from neardup_gpu import dedup
        >>> figure = dedup(texts=["to be or not to be"] * 2).plot()  # doctest: +SKIP
        """
        from . import plot

        plot.matplotlib_of("plot")
        from matplotlib.figure import Figure

        figure = Figure(figsize=(10, 4), layout="constrained")
        left, right = figure.subplots(1, 2)
        plot.resemblances(self, ax=left)
        plot.groups(self, ax=right)
        return figure

    def __repr__(self) -> str:
        counts = self.report["counts"]
        return (
            f"Result({count(counts['documents'], 'document')}: {counts['kept']:,} kept, {counts['removed']:,} removed)"
        )

    def _repr_html_(self) -> str:
        from .report_page.notebook import shown

        return shown(self.report.run())
