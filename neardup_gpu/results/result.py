"""Define `Result`: the decisions of a run, as users see them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .. import checks, plot
from ..data import NO_PAIRS, arrow, bools, one_array, whole_in_pandas
from ..documents import open_described
from ..documents.edits import Edits
from ..documents.kept_dataset import kept_dataset, rows_of
from ..documents.references import described_again, open_reference
from ..documents.sources import Sources
from ..documents.writing_options import Writing
from ..engine.settings import Engine
from ..errors import InputError, ParameterError
from ..kernels._cached import cached_property
from ..recipe import Recipe
from ..records import dataclass
from ..report import count
from ..report_page.run import Run, run_of_tables
from ..store.artefacts import DOCUMENTS, PAIRS, UNITS, parts_of, read_report, using_report
from ..store.parquet import opened, read_table

if TYPE_CHECKING:
    from ..methods.frequencies import Frequencies
    from ..report_page.page import Page
    from .by_value import ByValue
    from .explanation import Explanation
    from .tables import Facts


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """The decisions of a run, which `dedup` returns.

    Parameters
    ----------
    documents : pyarrow.Table
        One row per document, in input order, with the columns id, kept, duplicate_of, kind, resemblance and group.
        `duplicate_of`, `kind` and `resemblance` are null for kept documents. `group` is the id of the kept document.
        `kind` compares the document with `duplicate_of`:

        - "identical": the same text.
        - "same_words": the same words in the same order, with other punctuation, spaces or letter case.
        - "same_key": the same values of the key columns, by the method "identical" with a key, which has this word in
          place of "same_words". `resemblance` is null then.
        - "near": other words.

        With a unit such as "line", the columns units, units_cut, words and words_left count the parts of a document,
        those that were cut, and its words before and after. A document is removed if parts of it are cut and too few
        words are left; `duplicate_of` keeps the first of its cut parts, and `kind` and `resemblance` are null.

        Files add two columns: file, the path below the folder that all files share, and row, counted from 1 (in JSON
        lines the line). For a DatasetDict, file is the split.
    pairs : pyarrow.Table
        The verified pairs between representatives, with the columns id_a, id_b, kind and resemblance. If another
        document with the same words represents a document, there is also a pair with resemblance 1 between the two.
        id_a has the better priority. With the method containment, the column is called containment in both tables: the
        share of the document that `duplicate_of` contains, and the share of id_b that id_a contains. Then id_a is in
        the reference set, or has more distinct shingles, or an equal number and the better priority. With a
        unit such as "line", pairs are of parts that are not equal, and unit_a, begin_a, end_a, unit_b, begin_b and
        end_b say which.
    report : dict
        The contents of report.json: recipe, counts, timings, recall, and the numbers of pairs and documents that limits
        left out. `write_report` makes a page of them.
    recipe : Recipe
        Everything that changed the results.
    frequencies : Frequencies, default None
        The document frequencies that gave tokens or shingles their weights.
    skipped : pyarrow.Table, default None
        With `on_error="skip"`, the rows that could not be read, with the columns file, row, rows, bytes and reason; see
        `Documents.skipped`.
    sources : Sources, default None
        The documents and the reference set, which `explain` reads again.
    facts : Facts, default None
        The intermediate results of the decisions, which `at` uses.
    units : pyarrow.Table, default None
        With a `unit`, one row per part of a document, in order, with the columns id, unit (numbered from 0 in each
        document), begin and end (bytes of its text), kept, source_id and source_unit (the part that it repeats, which
        is kept), resemblance, copies and reason:

        - "identical", "same_words", "near": it was cut, as it repeats its source in this way.
        - "copy": it was kept as one of `keep_copies`.
        - "seam": it was kept, as its neighbours would become one unit without it.
        - "overlaps": it was kept, as it shares text with other units.
        - "dropped": it is not a copy, but too little of its document was left.

    Notes
    -----
    With a reference set, the columns `in_reference` and `a_in_reference` show which ids belong to it. For every
    document, kept or removed, `near_reference` is the id of the reference document that it resembles most, and
    `reference_resemblance` (or `reference_containment`) is their resemblance. Both are null if no reference document
    reaches the threshold. If nothing was verified, `near_reference` is the document with the nearest simhash.

    With the method simhash, both tables have a column `distance` (uint8), the number of bits in which simhashes differ.
    If nothing was verified, resemblance is null except for documents with the same words.

    Examples
    --------
    >>> from neardup_gpu import dedup
    >>> dedup({"text": ["to be or not to be", "to be or not to be", "that is the question"]})
    Result(3 documents: 2 kept, 1 removed)
    """

    documents: pa.Table
    pairs: pa.Table
    report: dict[str, Any]
    recipe: Recipe
    frequencies: Frequencies | None = None
    skipped: pa.Table | None = None
    sources: Sources | None = None
    facts: Facts | None = None
    units: pa.Table | None = None

    def __post_init__(self) -> None:
        for name in ("documents", "pairs", "units"):
            object.__setattr__(self, name, whole_in_pandas(getattr(self, name)))

    @staticmethod
    def load(folder: str | Path) -> Result:
        """Return the result that a command or an earlier session wrote.

        Parameters
        ----------
        folder : path
            What `neardup dedup -o` or `dedup(output=...)` wrote.

        Returns
        -------
        Result
            Its tables are read when they are first used, and the input is read again where texts are shown. `at` runs
            the job again, because a folder does not hold all that decides.

        Raises
        ------
        OutputError
            If the folder is not a finished result.
        DamagedError
            If it is not as it was written.

        Examples
        --------
        >>> from neardup_gpu import Result, dedup
        >>> texts = {"text": ["to be or not to be"] * 2}
        >>> written = dedup(texts, output="decided")  # doctest: +SKIP
        >>> len(Result.load("decided").removed)  # doctest: +SKIP
        1
        """
        folder = Path(checks.path("folder", folder)).resolve()
        with using_report(folder):
            report = read_report(folder)
            first = parts_of(folder, report["files"], DOCUMENTS)[0]
            with opened(first) as file:
                recipe = Recipe.of(file.schema_arrow, str(first))
            return StoredResult(folder, report, recipe, None)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Remarks, such as one on short texts, and known reasons why nothing was removed: one sentence each.

        Examples
        --------
        >>> from neardup_gpu import dedup
        >>> dedup({"text": ["", ""]}).warnings
        ('2 of 2 documents of the input have no words: check which columns hold the text',)
        """
        return tuple(self.report.get("warnings", ()))

    def explain(self, id: Any, *, full: bool = False) -> Explanation:
        """Explain why a document is kept or removed: its kept document, their resemblance and their different words.

        Parameters
        ----------
        id : int or str
            The document's id; a number may be given as text.
        full : bool, default False
            Show all words of both texts in the diff.

        Returns
        -------
        Explanation
            The documents are read again for it, up to the two that are compared.

        Raises
        ------
        InputError
            If no document has this id, or the documents were a stream, which cannot be read again, or have changed.
        ArgumentTypeError
            If `id` has another type, or `full` is not a bool.

        Examples
        --------
        >>> from neardup_gpu import dedup
        >>> result = dedup({"text": ["to be or not to be"] * 2})
        >>> found = result.explain(1)
        >>> found.kept, found.duplicate_of, found.resemblance
        (False, 0, 1.0)
        """
        full = checks.flag("full", full)
        id = checks.instance("id", id.item() if isinstance(id, np.generic) else id, (int, str, bytes))
        from .explanation import explained

        sources = self._input
        if not sources.rewindable:
            raise InputError(
                "the documents were a stream, which cannot be read again to explain; pass a table to dedup"
            )
        return explained(
            lambda: [self.documents],
            lambda: self.units,
            self.recipe,
            self.recipe.measure_by(self.frequencies),
            id,
            (lambda: sources.documents, lambda: sources.reference or sources.documents),
            name="this result",
            full=full,
        )

    @property
    def kept(self) -> pa.Table:
        """Rows of `documents` that are kept, in input order."""
        return self.documents.filter(self.documents["kept"])

    @property
    def removed(self) -> pa.Table:
        """Rows of `documents` that are removed, in input order."""
        return self.documents.filter(pc.invert(self.documents["kept"]))

    def kept_rows(self) -> pa.Table:
        """Return the rows of the input that are kept, with all their columns. The input is read again.

        Returns
        -------
        pyarrow.Table
            In input order. With a `unit`, texts are as the input has them.

        Raises
        ------
        InputError
            If the documents were a stream, which cannot be read again, or have changed.

        Examples
        --------
        >>> from neardup_gpu import dedup
        >>> texts = {"text": ["to be or not to be"] * 2, "page": [7, 8]}
        >>> dedup(texts, text_columns="text").kept_rows()["page"].to_pylist()
        [7]
        """
        return self._rows(bools(self.documents["kept"].combine_chunks()))

    def removed_rows(self) -> pa.Table:
        """Return the rows of the input that are removed, with all their columns. The input is read again.

        Returns
        -------
        pyarrow.Table
            In input order.

        Raises
        ------
        InputError
            If the documents were a stream, which cannot be read again, or have changed.

        Examples
        --------
        >>> from neardup_gpu import dedup
        >>> texts = {"text": ["to be or not to be"] * 2, "page": [7, 8]}
        >>> dedup(texts, text_columns="text").removed_rows()["page"].to_pylist()
        [8]
        """
        return self._rows(~bools(self.documents["kept"].combine_chunks()))

    def _rows(self, chosen: np.ndarray) -> pa.Table:
        return rows_of(self._input.documents, chosen)

    @property
    def _input(self) -> Sources:
        if self.sources is None:
            raise InputError(
                "this result holds no documents to read again: an index keeps none, and pickle carries none; run dedup"
            )
        return self.sources

    @property
    def _decided_again(self) -> Result:
        raise InputError("this result does not hold all that decides, which pickle does not carry; run dedup again")

    def kept_dataset(self) -> Any:
        """Return the kept documents with all their columns, for Hugging Face's library `datasets`.

        Returns
        -------
        datasets.Dataset or datasets.DatasetDict
            For a Dataset, its kept rows, selected without a copy, with its features. For a DatasetDict, a Dataset of
            kept rows per split. For other sources, a Dataset in memory; for text files it has the column `path`.

        Raises
        ------
        InputError
            If the documents were a stream, which cannot be read again, or have changed. Also if `datasets` is not
            installed: ``pip install 'neardup-gpu[hf]'`` installs it.

        Examples
        --------
        >>> from neardup_gpu import dedup
        >>> dedup({"text": ["to be or not to be"] * 2}).kept_dataset()["text"][:]  # doctest: +SKIP
        ['to be or not to be']
        """
        if self.facts is None and self.recipe.unit.divides:
            raise InputError("this result was read from its folder, which tells no cuts; open the kept/ of the folder")
        return kept_dataset(self._input.documents, self._edits())

    def _unit_parts(self) -> Iterator[pa.Table]:
        """Yield the table of units, part by part; nothing if documents are compared."""
        if self.units is not None:
            yield self.units

    def _edits(self) -> Edits:
        """Return what becomes of each document."""
        if self.facts is not None and self.facts.fates is not None:
            return self.facts.fates.edits
        from .tables import STANDS_FOR

        names = [name for name in STANDS_FOR if name in self.documents.column_names]
        columns = {name: one_array(self.documents[name]) for name in names}
        return Edits(bools(self.documents["kept"].combine_chunks()), columns=columns)

    def groups(self) -> pa.Table:
        """Return the groups of near-duplicates, the largest groups first.

        Returns
        -------
        pyarrow.Table
            One row per group, with three columns. `group` is the id of the kept document. `members` has the ids of all
            documents of the input in the group: first the kept one, if it is in the input, then the others in input
            order. `size` is the number of removed documents plus the kept one, which may be in the reference set.
            Documents without near-duplicates are in no group.

        Examples
        --------
        >>> from neardup_gpu import dedup
        >>> dedup({"text": ["to be or not to be", "that is the question", "to be or not to be"]}).groups().to_pylist()
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
        """Decide again at a higher threshold, from the verified pairs. No document is read or compared again.

        A result that was read from files is the exception: the first call runs the whole job again, in memory.

        Parameters
        ----------
        threshold : float in (0, 1]
            At least the threshold of this run.

        Returns
        -------
        Result
            The decisions that this run would have made with that threshold and the same candidates. Its report has no
            sampled recall; `limits` shows what this run left out.

        Raises
        ------
        ParameterError, ArgumentTypeError
            If the threshold is lower or nothing was verified. Also if some pairs are not listed that may decide at a
            higher threshold, because a document has more partners than `max_partners`.
        InputError
            If the result was read from files, and its input has changed or was given in memory.

        Examples
        --------
        >>> from neardup_gpu import Shingles, dedup
        >>> texts = {"text": ["to be or not to be", "to be or not"]}
        >>> result = dedup(texts, recipe=Recipe(shingles=Shingles(2), threshold=0.5))
        >>> len(result.removed), len(result.at(0.9).removed)  # 3 of 4 shingles are shared
        (1, 0)
        """
        threshold = checks.fraction("threshold", threshold, zero=False)
        if self.recipe.threshold is None:
            raise ParameterError("threshold: this result holds no verified pairs; give dedup a threshold")
        if threshold < self.recipe.threshold:
            raise ParameterError(
                f"threshold {threshold} is below {self.recipe.threshold}, the threshold of this run, so not all pairs "
                "are known; run dedup again"
            )
        from ..stages.decisions import decide
        from ..stages.partners import selected
        from ..stages.verification import Verified, at_least
        from .by_value import lost_of
        from .tables import STANDS_FOR, decided_counts, tables_of, warnings_of

        if threshold == self.recipe.threshold:
            return self
        if self.facts is None:
            return self._decided_again.at(threshold)
        ranked, groups, before, *_ = self.facts
        recipe = self.recipe.with_(threshold=threshold)
        limits = self.report["limits"]
        if limits["unlisted_pairs"] or not limits["all_counted"]:
            raise ParameterError(
                "threshold: this run did not list all pairs that may decide; run dedup again with that threshold, or "
                "with max_partners=None"
            )
        verified = before.verified
        if recipe.only_equal:  # whatever the shingles say
            verified = Verified(NO_PAIRS, np.empty(0))
        verified = at_least(threshold, verified.pairs.left, verified.pairs.right, verified.resemblance)
        listed, deciding = selected(
            verified, groups.pinned, recipe.cluster, recipe.max_partners, recipe.method.measure.directed
        )
        with Engine(backend="cpu").start() as runtime:
            nearest = None if before.nearest is None else before.nearest.at_least(threshold)
            decisions = decide(ranked, groups, deciding, listed, nearest, recipe, runtime)
        facts = self.facts.with_decisions(decisions, recipe)
        sources = self._input
        tables = tables_of(
            facts,
            recipe,
            sources.documents.places(),
            against=sources.known_sets,
            counts=STANDS_FOR[0] in self.documents.column_names,
        )
        counts, sizes = decided_counts(facts, recipe)
        report = dict(self.report, recipe=recipe.describe(), counts=self.report["counts"] | counts, **sizes)
        report.pop("by", None)  # the columns would have to be read again: see `by`
        report.pop("lost_most", None)
        report |= lost_of(tables.documents)
        report["limits"] = limits | {"unlisted_pairs": len(verified.pairs) - len(listed.pairs)}
        report["candidates"] = list(recipe.method.in_words(threshold))
        report["recall"] = {"expected": recipe.expected_recall, "sampled": None}
        report["warnings"] = warnings_of(facts, recipe, sources, report["counts"])
        return replace(self, **tables._asdict(), report=report, recipe=recipe, facts=facts)

    def by(self, column: str) -> ByValue:
        """Count documents, and near-duplicates between them, by the values of a column.

        Parameters
        ----------
        column : str
            A column of the input, or "file".

        Returns
        -------
        ByValue
            Two tables. The input is read once more, unless the column is "file" and the result is of a job in memory.

        Raises
        ------
        InputError
            If there is no such column, or the documents were a stream or have changed.
        ParameterError, ArgumentTypeError
            If `column` is not the name of a column.

        Examples
        --------
        >>> from neardup_gpu import dedup
        >>> table = {"text": ["to be or not"] * 3, "site": ["a", "b", "b"]}
        >>> dedup(table, text_columns="text").by("site").values.to_pylist()[0]
        {'value': 'b', 'documents': 2, 'kept': 0, 'removed': 2, 'words': 8}
        """
        from .by_value import ByValue, read_groups

        column = checks.text("column", column)
        num_tokens = None if self.facts is None else self.facts.num_tokens
        groups, num_tokens = read_groups(column, self.documents, self._input.documents, self.recipe, num_tokens)
        return ByValue.of(groups, num_tokens, self.documents, self.pairs, self.units)

    def write_report(
        self, path: str | Path, *, text: bool = True, by: str | None = None, overwrite: bool = False
    ) -> Page:
        """Write an HTML page that shows the result.

        Parameters
        ----------
        path : path
            The file to write.
        text : bool, default True
            Show texts. For this the documents are read once more, up to the last one that is shown.
        by : str, default None
            The column of the input by whose values documents are counted, or "file". If None, it is the column of
            `Writing.by`, else the file.
        overwrite : bool, default False
            Replace an earlier page at `path`.

        Returns
        -------
        Page
            The page, which a notebook displays. It is one file that loads nothing else. It has less than 5 MB, because
            long lists are sampled.

        Raises
        ------
        ParameterError
            If the packages that draw it are not installed: ``pip install 'neardup-gpu[report]'``.
        InputError
            If there is no column `by`. Texts that cannot be read again are left out, and the page says why.
        OutputError
            If `path` exists already or cannot be written.

        Examples
        --------
        >>> from neardup_gpu import dedup
        >>> page = dedup({"text": ["to be or not to be"] * 2}).write_report("page.html")  # doctest: +SKIP
        """
        from ..report_page.page import check_installed, make

        path, overwrite = checks.path("path", path), checks.flag("overwrite", overwrite)
        check_installed()
        page = make(self._run(), text=text, by=by)
        page.write(path, overwrite)
        return page

    def _run(self, folder: str | None = None) -> Run:
        """Return the input of a page. `folder` is where the tables are about to be written, if they are."""
        tables = self.documents, self.pairs, self.report, self.recipe, self.frequencies
        return run_of_tables(*tables, lambda: self._input, folder, self.units)

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
        >>> figure = dedup({"text": ["to be or not to be"] * 2}).plot()  # doctest: +SKIP
        """
        plot.matplotlib_of("plot")
        figure = plot.shown_figure(figsize=(10, 4))
        left, right = figure.subplots(1, 2)
        plot.resemblances(self, ax=left)
        plot.groups(self, ax=right)
        return figure

    def __len__(self) -> int:
        return len(self.documents)

    def __bool__(self) -> bool:
        return True

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what `pickle` carries: the result, without the documents that it was made from."""
        left_out = ("sources", "facts")
        return Result, tuple(None if each.name in left_out else getattr(self, each.name) for each in fields(Result))

    def __repr__(self) -> str:
        counts = self.report["counts"]
        return (
            f"Result({count(counts['documents'], 'document')}: {counts['kept']:,} kept, {counts['removed']:,} removed)"
        )

    def _repr_html_(self) -> str:
        from ..report_page.notebook import shown

        return shown(self._run())


class StoredResult(Result):
    """A result that tasks wrote into a folder. Its tables are read when they are first used.

    Parameters
    ----------
    folder : path
    report : dict
        As `read_report` returned it.
    recipe : Recipe
    sources : Sources or None
        If None, the documents are opened from their description in the report when they are first used.
    kept_in : object, default None
        What keeps the folder until the result is gone, if it is a temporary one.
    """

    _folder: Path
    _stored: dict[str, Any]

    def __init__(
        self,
        folder: Path,
        report: dict[str, Any],
        recipe: Recipe,
        sources: Sources | None,
        kept_in: Any = None,
    ) -> None:
        told = {name: value for name, value in report.items() if name not in ("files", "checksums", "checksum")}
        self.__dict__.update(report=told, recipe=recipe, facts=None)
        self.__dict__.update(_folder=folder, _stored=report, _kept_in=kept_in)
        if sources is not None:
            self.__dict__.update(sources=sources)

    def _read(self, name: str) -> Any:
        """Read a table of the folder, if it still holds this result."""
        folder, stored = self._folder, self._stored
        if read_report(folder) != stored:
            raise InputError(f"{folder}: holds another result by now; the tables of this one are gone")
        if name in (DOCUMENTS, PAIRS, UNITS):
            return whole_in_pandas(pa.concat_tables(map(read_table, parts_of(folder, stored["files"], name))))
        return whole_in_pandas(read_table(folder / name)) if name in stored["files"] else None

    @cached_property
    def sources(self) -> Sources:  # type: ignore[override]
        given, against = self._stored["input"], self._stored["against"]
        return Sources(open_described(given), None if against is None else open_reference(against))

    @cached_property
    def documents(self) -> pa.Table:  # type: ignore[override]
        return self._read(DOCUMENTS)

    @cached_property
    def pairs(self) -> pa.Table:  # type: ignore[override]
        return self._read(PAIRS)

    @cached_property
    def units(self) -> pa.Table | None:  # type: ignore[override]
        return self._read(UNITS) if self.recipe.unit.divides else None

    @cached_property
    def _decided_again(self) -> Result:  # type: ignore[override]
        """The result of the same job, run again in memory."""
        import neardup_gpu  # a job is on a floor above

        [source] = described_again(self._stored["input"])
        recipe = replace(self.recipe, ignored=None)
        if recipe.method.needs_statistics:
            recipe = recipe.with_(frequencies=self.frequencies)
        against = described_again(self._stored["against"]) or None
        how: dict[str, Any] = {"recipe": recipe, "reading": source.reading, "against": against}
        found = neardup_gpu.dedup(source.source, **how, writing=Writing(counts="copies" in self.documents.column_names))
        names = ["id", "kept", "duplicate_of"]
        if not found.documents.select(names).equals(self.documents.select(names)):
            raise InputError(f"{self._folder}: its input has changed since the result was made; run dedup again")
        return found

    @cached_property
    def skipped(self) -> pa.Table | None:  # type: ignore[override]
        return self._read("skipped.parquet")

    @cached_property
    def frequencies(self) -> Frequencies | None:  # type: ignore[override]
        from ..methods.frequencies import Frequencies

        name = "frequencies.parquet"
        return Frequencies.load(self._folder / name) if name in self._stored["files"] else None


class EqualResult(Result):
    """A result whose units are kept as in `stages.equal_units`: a few bytes each.

    Parameters
    ----------
    documents, pairs : pyarrow.Table
    report : dict
    recipe : Recipe
    parts : callable
        Yields the table of units, part by part.
    **others
        Further fields of `Result`.
    """

    _parts: Callable[[], Iterator[pa.Table]]

    def __init__(
        self,
        documents: pa.Table,
        pairs: pa.Table,
        report: dict[str, Any],
        recipe: Recipe,
        *,
        parts: Callable[[], Iterator[pa.Table]],
        **others: Any,
    ) -> None:
        tables = {"documents": whole_in_pandas(documents), "pairs": whole_in_pandas(pairs)}
        self.__dict__.update(tables, report=report, recipe=recipe, _parts=parts, **others)

    @cached_property
    def units(self) -> pa.Table | None:  # type: ignore[override]
        first, *parts = self._parts()
        return whole_in_pandas(pa.concat_tables([first, *(part.cast(first.schema) for part in parts)]))

    def _unit_parts(self) -> Iterator[pa.Table]:
        return self._parts()
