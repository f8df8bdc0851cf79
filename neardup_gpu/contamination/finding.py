"""Read the items of a check, and make its result of what the scan found."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ..definitions import report_head
from ..documents import Documents
from ..documents.seams import find_seams
from ..documents.skipped import count_skipped
from ..recipe import Recipe, token_recipe
from ..results.by_value import hits_by_value
from .items import EvaluationItems, EvaluationSet, Wanted, read_items, wanted_of
from .scanning import NO_HITS, BatchHits, Findings
from .settings import ContaminationSettings
from .tally import Tally
from .verdicts import Contamination, counts_of, evals_table, hits_table, sets_of


class Check(NamedTuple):
    """The training text, the items, the rows to look for, and how tokens are made and compared.

    The rows have the tokens of the items, which `items` lacks.
    """

    documents: Documents
    items: EvaluationItems
    wanted: Wanted
    settings: ContaminationSettings
    recipe: Recipe
    by: str | None

    @classmethod
    def of(
        cls, documents: Documents, sets: list[EvaluationSet], settings: ContaminationSettings, by: str | None = None
    ) -> Check:
        """Read the items of evaluation sets. Hits are counted by the column `by`, if there is one.

        Raises
        ------
        InputError
            If items cannot be read, or the training text has seams of another text.
        """
        find_seams(documents)
        recipe = token_recipe(settings.tokens, settings.length)
        items = read_items(sets, settings.fields, recipe, settings.within)
        wanted = wanted_of(items, settings.length, settings.least)
        return cls(documents, items._replace(tokens=items.tokens[:0]), wanted, settings, recipe, by)


class Scanned(NamedTuple):
    """The results of the scan of a whole training text.

    findings : Findings
    digest : str
        XXH3 with 128 bits of the fingerprints of all texts.
    skipped : pyarrow.Table or None
        The rows that could not be read; None unless they are skipped.
    id_type : pyarrow.DataType
        The type of ids that are integers.
    about : dict
        Further entries of the report.
    """

    findings: Findings
    digest: str
    skipped: pa.Table | None
    id_type: pa.DataType
    about: dict[str, Any]


def found_by(check: Check, scanned: Scanned) -> Contamination:
    """Return what a scan found, as tables and as a report."""
    documents, items, wanted, settings, _, by = check
    tally = Tally.of(items.targets.size)
    for hits, _ in scanned.findings.listed:
        tally.add(hits.document, hits.target, hits.place, hits.length)
    evals = evals_table(items, wanted, tally, settings.share)
    listed = scanned.findings.listed or [BatchHits(NO_HITS, pa.array([], scanned.id_type))]
    hits_found = hits_table(items, listed, scanned.id_type)
    head, about = report_head("certificate", settings, "tokens", "length", "share")
    hits_found, evals = hits_found.replace_schema_metadata(about), evals.replace_schema_metadata(about)
    counts = {
        **scanned.findings.counts,
        **counts_of(evals),
        "grams": wanted.grams,
        "hits": hits_found.num_rows,
    }
    counts |= count_skipped(scanned.skipped)
    if not settings.within:
        del counts["without_value"]
    report = {
        **head,
        "input": {**documents.describe(), "digest": scanned.digest},
        "evals": {"paths": None, "sets": items.described},
        "counts": counts,
        "sets": sets_of(evals, items.sets),
        **scanned.about,
    }
    if by is not None:
        every = zip(NO_HITS[:2], *(each.hits[:2] for each in scanned.findings.listed), strict=True)
        document, target = map(np.concatenate, every)
        item = items.targets.item[target]
        report["by"] = hits_by_value(by, scanned.findings.values, document, item, len(items.set_of))
    return Contamination(hits_found, evals, report)
