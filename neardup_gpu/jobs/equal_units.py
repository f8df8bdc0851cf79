"""Jobs in memory that look for equal units alone: `run` of `dedup`, without what only similar units need."""

from __future__ import annotations

import numpy as np

from ..data import NO_PAIRS
from ..documents.sources import Sources
from ..documents.units import NO_PLACES
from ..keep_rule import FIRST, keep_columns
from ..log import log
from ..methods.contract import Candidates
from ..results.result import EqualResult
from ..results.tables import Facts, JobFacts, equal_tables, remarks_of, report_of_job, unit_parts
from ..stages.decisions import Decisions, Groups, Ranked
from ..stages.equal_units import EqualUnits
from ..stages.priority import documents_by_priority
from ..stages.sketching import Sketcher
from ..stages.verification import Verified


def run_equal(sources: Sources, sketcher: Sketcher) -> EqualResult:
    """Do the whole job except writing, for a recipe with `only_equal`."""
    recipe, runtime, clock = sketcher.recipe, sketcher.runtime, sketcher.clock
    units = sketcher.equal = EqualUnits(recipe.keep == FIRST)
    sketched = sketcher.sketch_all(sources, columns=keep_columns(recipe.keep))
    for remark in remarks_of(recipe, sources, vars(sketched.counts)):
        log.warning(remark)
    known, number = sketched.num_known_documents, len(sketched.ids)
    with clock.stage("decide"):
        clock.report("decide", 0, number)
        tokens = np.concatenate([np.empty(0, np.int64), *sketched.counts.document_tokens])
        order = documents_by_priority(recipe.keep, tokens, sketched.columns, sketched.categories) + known
        fates = units.decide(np.concatenate([np.arange(known), order]), recipe)
        clock.report("decide", number, number)
        facts = Facts(
            *_nothing(units.num_compared(recipe.unit.min_words)),
            ids=sketched.ids,
            places=NO_PLACES,
            fates=fates.documents,
            num_known=known,
        )
        against = sources.known_sets
        tables = equal_tables(facts, fates, recipe, sources.documents.places(), against=against)
        candidates = Candidates(NO_PAIRS, 0, 0, np.empty(0, bool))
        report = report_of_job(facts, JobFacts(sketched.counts, candidates, None, recipe, runtime, sources), None)
    return EqualResult(
        tables.documents,
        tables.pairs,
        {**report, "timings": clock.seconds},
        recipe,
        skipped=sources.skipped,
        sources=sources,
        facts=facts,
        parts=lambda: unit_parts(units, sketched.ids, recipe, against=against),
    )


def _nothing(representatives: int) -> tuple[Ranked, Groups, Decisions]:
    """Return what `Facts` has of units, but for their number: they are decided about by their groups."""
    rows, values = np.empty(0, np.int64), np.empty(0)
    ranks = np.broadcast_to(np.int64(0), representatives)
    groups = Groups(rows, None, None, ranks, None, None, rows.astype(bool), rows)
    return Ranked(0, rows, rows), groups, Decisions(rows, values, rows.astype(bool), Verified(NO_PAIRS, values), None)
