"""The arguments of `dedup`, checked: one object for all who open a job, in memory or as tasks."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from .documents.reading_options import Reading, chosen_reading
from .documents.references import Reference, ReferenceSets, references_of
from .documents.source import opened_leniently, refuse_without_effect
from .documents.sources import Sources
from .documents.units import check_divisible
from .documents.writing_options import Writing, rewriting
from .engine.clock import Progress
from .engine.settings import Engine
from .errors import InputError, ParameterError
from .keep_rule import keep_columns
from .recipe import Recipe
from .records import dataclass
from .results.by_value import FILE, check_by
from .stages.recall import choose_check


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """The arguments of one call of `dedup`.

    Parameters
    ----------
    source : documents, as `open_documents` takes them
    against : documents, `Reference`, a list of these, or None
        None if there is no reference set.
    reading : Reading
    recipe : Recipe
        As it was given: its method may hold document frequencies, or their path.
    output : str or None
    writing : Writing
    engine : Engine
    memory : int or None
        A bound of memory in bytes.
    progress : callable or None

    Raises
    ------
    ParameterError
        If arguments exclude each other, or need another one that is missing.
    """

    source: Any
    against: Any = None
    reading: Reading
    recipe: Recipe
    output: str | None
    writing: Writing
    engine: Engine
    memory: int | None = None
    progress: Progress | bool | None

    def __post_init__(self) -> None:
        if self.writing.report:
            from .report_page.page import check_installed

            if self.output is None:
                raise ParameterError("report: is written into the output; name one with output=...")
            check_installed()
        if self.writing.counts and self.recipe.unit.divides:
            raise ParameterError(
                f"counts and unit '{self.recipe.unit}': parts are counted in units.parquet; leave one out"
            )
        if self.memory is not None and self.engine.max_comparisons is not None:
            raise ParameterError(
                "max_comparisons and memory: a job within a bound of memory may run as tasks, which count otherwise; "
                "leave one of them out"
            )

    @property
    def num_checked(self) -> int:
        """Number of documents that are sampled to estimate the recall."""
        return choose_check(self.writing.check, self.recipe)

    def writing_for(self, sources: Sources) -> Writing:
        """Return how kept rows are written: cut documents and counts of copies need new ones."""
        cuts = self.recipe.unit.divides or self.writing.counts
        return rewriting(self.writing, sources.documents) if cuts else self.writing

    def opened(self) -> Sources:
        """Open the input and the reference set. Columns that are compared are never treated as text."""
        compared = [*keep_columns(self.recipe.keep), *self.recipe.compared_columns]
        counted = [] if self.writing.by in (None, FILE) else [self.writing.by]
        documents = opened_leniently(self.source, self.reading, [*compared, *counted])
        if self.recipe.unit.divides:
            check_divisible(f"unit '{self.recipe.unit}'", documents)
        if self.writing.by is not None:
            check_by(self.writing.by, documents)
        sources = self.opened_reference(Sources(documents), self.reading, compared)
        for each in sources.in_order:
            for parameter, names in (("within", self.recipe.within), ("key", self.recipe.method.equal_by or ())):
                for name in names:
                    each._check_plain(name, parameter)
        return sources

    def opened_reference(self, sources: Sources, reading: Reading, compared: list[str]) -> Sources:
        """Open the reference set, read like the input; columns are not named if it consists of text files."""
        sets = references_of(self.against)
        opened = [opened_set(each, reading, compared) for each in sets]
        refuse_without_effect(sources.documents, *opened)
        if not sets:
            return sources
        if len(sets) == 1 and sets[0].name is None:
            return replace(sources, reference=opened[0])
        names = [str(each.name) for each in sets]
        return replace(sources, reference=ReferenceSets(dict(zip(names, opened, strict=True))))

    def without_keep_columns(self, sources: Sources) -> Sources:
        """Open the reference sets again without the columns that decide who is kept, which their slices lack.

        The text columns are those that were found when these columns were known.
        """
        sets, found = references_of(self.against), sources.reference
        known: list[Any] = list(found.sets.values()) if isinstance(found, ReferenceSets) else [found]
        opened: list[Any] = [
            documents
            if documents is None or documents.format == "text"
            else opened_set(
                replace(each, reading=replace(each.reading or self.reading, text_columns=documents.text_columns)),
                self.reading,
                self.recipe.compared_columns,
            )
            for each, documents in zip(sets, known, strict=True)
        ]
        if isinstance(found, ReferenceSets):
            return replace(sources, reference=ReferenceSets(dict(zip(found.sets, opened, strict=True))))
        return replace(sources, reference=opened[0])

    def files_read(self, sources: Sources) -> list[str]:
        """Return all files on this machine that the job reads."""
        frequencies = getattr(self.recipe.method, "frequencies", None)
        return [*sources.local_files, *([frequencies] if isinstance(frequencies, str) else [])]


def opened_set(reference: Reference, reading: Reading, compared: Sequence[str]) -> Any:
    """Open a reference set, read like the input unless it says how.

    Text files, and a table in memory of nothing but texts, have no columns to be named.
    """
    own = reading
    if reference.reading is not None:
        own = chosen_reading(reference.reading, None, None, holds=reading.holds)
    try:
        return opened_leniently(reference.source, own, compared)
    except InputError as error:
        with contextlib.suppress(InputError):
            unnamed = replace(own, text_columns=None, id_column=None)
            files = opened_leniently(reference.source, unnamed, compared)
            only_texts = reference.reading is None and files.format == "memory" and files.num_columns == 1
            if files.format == "text" or only_texts:
                return files
        for name, flag in (("text_columns", "--against-text-column"), ("id_column", "--against-id-column")):
            if (advice := f"Name one with {name}=...") in str(error):
                way = f"name its column with {flag} of dedup, or Reference(reading=...)"
                problem = str(error).replace(f". {advice}", "").replace(f"; {advice.lower()}", "")
                raise InputError(f"{problem}. The reference set is read like the input; {way}.") from None
        raise
