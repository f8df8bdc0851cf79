"""What a job of tasks says: its report, from what the stages counted."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..documents.skipped import summary_of
from ..log import log
from ..nothing_removed import merged, reasons
from ..tables import REMOVED_COUNTS
from .driver import remarks
from .results import LARGEST
from .sketching import COUNTED

if TYPE_CHECKING:
    import pyarrow as pa

    from ..documents import Documents
    from .driver import Job, Made


def report_of(
    job: Job, made: Made, documents: Documents, reference: Documents | None, skipped: pa.Table | None
) -> dict[str, Any]:
    """Make the contents of report.json, without the times; the same keys as of a job in memory."""
    recipe, layout = job.recipe, made.layout
    kept = made.written.total("kept")
    removed = layout.num_rows - layout.num_known - kept
    mine = made.sketched.facts[job.num_known :]
    counted = {name: sum(facts[name] for facts in mine) for name in COUNTED}
    left_out: Counter[str] = Counter()
    for facts in mine:
        left_out.update(facts["left_out_records"])
    counts = {
        "documents": counted["documents"],
        "kept": kept,
        "removed": removed,
        **{name: made.written.total(name) for name in REMOVED_COUNTS},
        "removed_unverified": made.written.total("unverified"),
        "reference_documents": layout.num_known,
        **({} if reference is None else {"near_reference": made.written.total("near_reference")}),
        "empty": made.written.total("empty"),
        **{name: counted[name] for name in COUNTED if name != "documents"},
        **({"without_spots": sum(facts["without_spots"] for facts in mine)} if recipe.shingles.kind == "spots" else {}),
        "representatives": made.num_representatives,
        "comparisons": made.found.total("looks") + _of_crowd(made, "looks"),
        "candidate_pairs": made.distinct.total("pairs") + _of_crowd(made, "candidates"),
        "verified_pairs": made.listed.total("listed") if recipe.verifies else 0,
        "groups": made.listed.total("groups"),
    }
    sampled = None if made.checked is None else made.checked.facts[0]["sampled"]
    if skipped is not None:
        counts["skipped"] = summary_of(skipped)["rows"]
    of_input, of_reference = (
        merged(facts["sizes"] for facts in part) for part in (mine, made.sketched.facts[: job.num_known])
    )
    known = None if reference is None else of_reference
    notes = [*documents._columns_lacking(), *remarks(job, made.sketched)]
    for note in notes:
        log.warning(note)
    return {
        "version": __version__,
        "recipe": recipe.describe(),
        "measure": recipe.method.measure.name,
        "input": documents.describe(),
        "against": None if reference is None else reference.describe(),
        "backend": job.work.shared.engine.backend,
        "device": None,
        "threads": min(facts["threads"] for facts in made.sketched.facts),
        "counts": counts,
        **({} if skipped is None else {"skipped": summary_of(skipped)}),
        **({"left_out_records": dict(sorted(left_out.items()))} if left_out else {}),
        **_groups(made),
        "candidates": list(recipe.method.in_words(recipe.threshold)),
        "recall": {"expected": recipe.expected_recall, "sampled": sampled},
        "limits": _limits(job, made),
        "warnings": [*notes, *reasons(removed, recipe, documents, of_input, known)],
        "tasks": {
            "workers": job.work.workers.num_workers,
            "slices": len(job.slices),
            "partitions": len(job.partitions),
            "resumed": job.work.resumed,
        },
    }


def _of_crowd(made: Made, fact: str) -> int:
    """What the task of crowded documents counted."""
    return 0 if made.crowd is None else made.crowd.facts[0][fact]


def _groups(made: Made) -> dict[str, Any]:
    """The sizes of groups, and the largest ones: of equal ones those whose kept document comes first."""
    sizes: Counter[int] = Counter()
    largest: list[tuple[int, int, Any]] = []
    for listed, tables in zip(made.listed.facts, made.tables.facts, strict=True):
        sizes.update(dict(zip(*listed["group_sizes"], strict=True)))
        ranks, members = listed["largest"]
        largest += zip(members, ranks, tables["largest"], strict=True)
    largest.sort(key=lambda group: (-group[0], group[1]))
    return {
        "group_sizes": [[size, sizes[size]] for size in sorted(sizes)],
        "largest_groups": [{"id": id, "size": size} for size, _, id in largest[:LARGEST]],
    }


def _limits(job: Job, made: Made) -> dict[str, Any]:
    """What was left out, and why, as in memory; of a crowd, pairs that are not listed may not be known."""
    recipe, method = job.recipe, job.recipe.method
    limits: dict[str, Any] = {}
    if recipe.verifies:
        known = made.verified.total("verified") + _of_crowd(made, "further")
        limits |= {
            "max_partners": recipe.max_partners,
            "unlisted_pairs": known - made.listed.total("listed"),
            "all_counted": made.crowd is None or made.crowd.facts[0]["counted"],
        }
    if not recipe.verifies or method.measure.weighted:
        limits |= {
            "bucket_limit": method.bucket_limit,
            "bucket_probe": method.bucket_probe,
            "large_buckets": made.found.total("large_buckets"),
            "uncompared_pairs": made.found.total("uncompared_pairs"),
        }
    return limits
