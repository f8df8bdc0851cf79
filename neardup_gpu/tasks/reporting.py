"""Make the report of a job of tasks from the counts of its stages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ..data import added_up
from ..documents.sources import Sources
from ..log import log
from ..results.by_value import lost_most, merged_files
from ..results.nothing_removed import merged, of_units, reasons
from ..results.tables import (
    REMOVED_COUNTS,
    SKETCH_COUNTS,
    UNIT_COUNTS,
    Counted,
    filtered_of,
    limits_of,
    report_of as table_report,
)
from ..stages.conditions import remarks_about
from ..text.token_changes import remarks_on
from .driver import Job, Made, remarks
from .results import LARGEST


def report_of(job: Job, made: Made, sources: Sources, skipped: pa.Table | None) -> dict[str, Any]:
    """Make the contents of report.json, without the times; the same keys as of a job in memory."""
    recipe, written = job.recipe, made.written
    kept, documents = written.total("kept"), [facts["documents"] for facts in made.sketched.facts]
    removed = sum(documents[job.num_known :]) - kept
    mine = made.sketched.facts[job.num_known :]
    looked = [facts["looks"] for made_by in (made.found, made.crowd) if made_by for facts in made_by.facts]
    looks = np.array([[0, 0, 0, 0], *looked]).sum(axis=0)
    counts = {
        **{name: sum(facts[name] for facts in mine) for name in SKETCH_COUNTS},
        **{name: written.total(name) for name in (*REMOVED_COUNTS, "near_reference", "empty")},
        "kept": kept,
        "removed": removed,
        "removed_unverified": written.total("unverified"),
        "reference_documents": sum(documents[: job.num_known]),
        "representatives": made.num_representatives,
        "comparisons": int(looks[0]),
        "candidate_pairs": made.distinct.total("pairs") + _of_crowd(made, "candidates"),
        "verified_pairs": made.listed.total("listed") if recipe.verifies else 0,
        "groups": made.listed.total("groups"),
    }
    if recipe.ignore_common is not None:
        counts["common_shingles"] = made.weighed[0].facts[0]["elements"]
    if recipe.unit.divides:
        counts |= {name: written.total(name) for name in written.facts[0] if name in UNIT_COUNTS}
    unlisted = None
    if recipe.verifies:  # of a crowd, pairs that are not listed may not be known
        known = made.verified.total("verified") + _of_crowd(made, "further")
        counted = made.crowd is None or made.crowd.facts[0]["counted"]
        unlisted = known - made.listed.total("listed"), counted
    limits = limits_of(recipe, unlisted, made.found.total("large_buckets"), made.found.total("uncompared_pairs"))
    sampled = None if made.checked is None else made.checked.facts[0]["sampled"]
    of_input, of_reference = (
        merged(facts["sizes"] for facts in part) for part in (mine, made.sketched.facts[: job.num_known])
    )
    notes = [*sources.documents._columns_lacking(), *remarks(job, made.sketched), *sources.remarks()]
    notes += remarks_on(counts)
    notes += remarks_about(recipe.within, counts, recipe.method.equal_by or ())
    for note in notes:
        log.warning(note)
    threads = min(facts["threads"] for facts in made.sketched.facts)
    engine = {"backend": job.work.shared.engine.backend, "device": None, "threads": threads}
    records = sorted(added_up(facts["left_out_records"] for facts in mine).items())
    counted_all = Counted(counts, _groups(made), limits, dict(records), skipped, sampled, filtered_of(looks))
    known_sizes = None if sources.reference is None else of_reference
    return {
        **table_report(recipe, sources.describe(), engine, counted_all),
        **lost_most(*merged_files([facts["by_file"] for facts in written.facts])),
        "warnings": [
            *notes,
            *(
                of_units(counts, recipe)
                if recipe.unit.divides
                else reasons(removed, recipe, sources, of_input, known_sizes)
            ),
        ],
        "tasks": {**job.about["tasks"], "partitions": len(job.partitions)},
    }


def _of_crowd(made: Made, fact: str) -> int:
    """Return a count of the task that joined crowded documents."""
    return 0 if made.crowd is None else made.crowd.facts[0][fact]


def _groups(made: Made) -> dict[str, Any]:
    """Return the sizes and kinds of groups, and the largest groups: of equal ones, the first by their kept document."""
    sizes = added_up(dict(zip(*listed["group_sizes"], strict=True)) for listed in made.listed.facts)
    largest: list[tuple[int, int, Any]] = []
    for listed, tables in zip(made.listed.facts, made.tables.facts, strict=True):
        ranks, members = listed["largest"]
        largest += zip(members, ranks, tables["largest"], strict=True)
    largest.sort(key=lambda group: (-group[0], group[1]))
    told = [facts["decided_by"] for facts in made.written.facts if "decided_by" in facts]
    return {
        **({"decided_by": added_up(told)} if told else {}),
        "group_sizes": [[size, number] for size, number in sorted(sizes.items())],
        "group_kinds": added_up(listed["group_kinds"] for listed in made.listed.facts),
        "largest_groups": [{"id": id, "size": size} for size, _, id in largest[:LARGEST]],
    }
