"""Make the tables of documents and of pairs, and the report of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from neardup_gpu.kernels._cpu import num_threads

from . import __version__
from .data import arrow, strings, taken
from .decisions import KINDS, Decisions, Groups, Nearest, Ranked
from .definitions import METADATA_KEY
from .documents import Documents
from .documents.skipped import summary_of
from .documents.units import Fates, Places, fates_of
from .methods.contract import Join, Sketch
from .nothing_removed import reasons, sizes_of
from .printable import readable_id
from .sketching import Sketched, Sketches

if TYPE_CHECKING:
    from .engine.contract import Runtime
    from .methods.contract import Candidates
    from .partners import Partners
    from .recipe import Recipe


class Facts(NamedTuple):
    """The decisions, in ranks of units; the ids of all documents; and where units are, if they are parts of them."""

    ranked: Ranked
    groups: Groups
    decisions: Decisions
    ids: pa.Array
    places: Places | None = None
    fates: Fates | None = None

    @classmethod
    def of(cls, ranked: Ranked, groups: Groups, decisions: Decisions, sketched: Sketched) -> Facts:
        """Collect the facts of a job; if units are parts of documents, decide about documents as well."""
        facts = cls(ranked, groups, decisions, sketched.ids, sketched.places)
        if facts.places is None:
            return facts
        ranks = ranked.ranks
        keeper, num_tokens = ranked.rows[decisions.keeper[ranks]], ranked.num_tokens[ranks]
        return facts._replace(fates=fates_of(facts.places, keeper, num_tokens, len(facts.ids)))

    def ids_of(self, ranks: np.ndarray, null: np.ndarray | None = None) -> pa.Array | pa.ChunkedArray:
        """Return the ids of the documents of some ranks; null where `null`."""
        rows = self.ranked.rows[ranks]
        return taken(self.ids, arrow(rows if self.places is None else self.places.owner[rows], null))


class Tables(NamedTuple):
    """Documents and pairs as `Result` describes them."""

    documents: pa.Table
    pairs: pa.Table


def tabulate(facts: Facts, recipe: Recipe, documents: Documents, reference: Documents | None) -> Tables:
    """Make the tables of a result, with the users' ids."""
    return tables_of(facts, recipe, documents.places(), against=reference is not None)


def tables_of(facts: Facts, recipe: Recipe, places: dict[str, pa.Array], *, against: bool) -> Tables:
    """Like `tabulate`, where it is given which columns say where documents lie."""
    if facts.fates is None:
        documents = _documents_table(facts, recipe, places, against)
    else:
        documents = _cut_documents_table(facts.ids, facts.fates, recipe, places)
    return Tables(documents, _pairs_table(facts, recipe, against))


def _documents_table(facts: Facts, recipe: Recipe, places: dict[str, pa.Array], against: bool) -> pa.Table:
    ranked, groups, decisions, ids, *_ = facts
    mine = ranked.of_input
    keeper, resemblance = decisions.keeper[mine], decisions.resemblance[mine]
    kept = keeper == mine
    columns = {
        "id": ids[ranked.num_known :],
        "kept": arrow(kept),
        "duplicate_of": facts.ids_of(keeper, kept),
        KIND: kind_column(groups.kinds(mine, keeper), kept),
        recipe.method.measure.name: arrow(resemblance, kept | np.isnan(resemblance)),
        "group": facts.ids_of(keeper),
        **places,
    }
    if groups.all_keys is not None:
        told = recipe.method.pair_columns(groups.all_keys, mine, keeper)
        columns |= {name: arrow(values, kept) for name, values in told.items()}
    if against:
        columns["in_reference"] = arrow(keeper < ranked.num_known)
        nearest = decisions.nearest
        if nearest is None:  # the reference set is empty
            nearest = Nearest(np.full(len(ranked), -1, np.int64), np.full(len(ranked), np.nan))
        partner, resemblance = nearest.partner[mine], nearest.resemblance[mine]
        columns["near_reference"] = facts.ids_of(partner, partner < 0)
        columns[near_column(recipe)] = arrow(resemblance, np.isnan(resemblance))
    return with_recipe(columns, recipe)


def _cut_documents_table(ids: pa.Array, fates: Fates, recipe: Recipe, places: dict[str, pa.Array]) -> pa.Table:
    """Make the table of documents that are divided into units, and count the units that are cut."""
    columns = {
        "id": ids,
        "kept": arrow(fates.kept),
        "duplicate_of": taken(ids, arrow(fates.keeper, fates.kept)),
        KIND: kind_column(np.zeros(len(ids), np.int8), np.ones(len(ids), bool)),
        recipe.method.measure.name: pa.nulls(len(ids), pa.float64()),
        "group": taken(ids, arrow(fates.keeper)),
        **places,
        f"{recipe.unit}s": arrow(fates.num_units),
        f"{recipe.unit}s_cut": arrow(fates.num_cut),
    }
    return with_recipe(columns, recipe)


def _cut_counts(fates: Fates, recipe: Recipe) -> dict[str, int]:
    """Count the decisions about documents that are divided into units."""
    return {
        "kept": int(fates.kept.sum()),
        "removed": int((~fates.kept).sum()),
        **dict.fromkeys((*REMOVED_COUNTS, "removed_unverified", "verified_pairs", "groups"), 0),
        f"{recipe.unit}s": int(fates.num_units.sum()),
        f"{recipe.unit}s_cut": int(fates.num_cut.sum()),
        "empty": int(np.count_nonzero(fates.num_tokens == 0)),
    }


KIND = "kind"
"""The column that says how the two documents of a row are alike, in both tables."""


def kind_column(kinds: np.ndarray, null: np.ndarray | None = None) -> pa.DictionaryArray:
    """Return places in `KINDS` as a column of the words in `KINDS`; null where `null`."""
    return pa.DictionaryArray.from_arrays(arrow(kinds, null), strings(list(KINDS)).cast(pa.string()))


def near_column(recipe: Recipe) -> str:
    """Name the column that holds what a document and its best partner in the reference set are worth."""
    return f"reference_{recipe.method.measure.name}"


def _pairs_table(facts: Facts, recipe: Recipe, against: bool) -> pa.Table:
    ranked, groups, verified = facts.ranked, facts.groups, facts.decisions.verified
    everyone = np.arange(len(ranked))
    copied = (groups.representative != everyone) & (everyone >= ranked.num_known)
    if recipe.only_against:
        copied &= groups.representative < ranked.num_known
    exact = np.flatnonzero(copied)
    a = np.concatenate([groups.ranks[verified.pairs.left], groups.representative[exact]])
    b = np.concatenate([groups.ranks[verified.pairs.right], exact])
    resemblance = np.concatenate([verified.resemblance, np.ones(len(exact))])
    if not recipe.verifies:
        resemblance = np.where(groups.representative[a] == groups.representative[b], 1.0, np.nan)
    order = np.lexsort((b, a))
    a, b, resemblance = a[order], b[order], resemblance[order]
    columns = {
        "id_a": facts.ids_of(a),
        "id_b": facts.ids_of(b),
        KIND: kind_column(groups.kinds(a, b)),
        recipe.method.measure.name: arrow(resemblance, np.isnan(resemblance)),
    }
    if groups.all_keys is not None:
        told = recipe.method.pair_columns(groups.all_keys, a, b)
        columns |= {name: arrow(values) for name, values in told.items()}
    if against:
        columns["a_in_reference"] = arrow(a < ranked.num_known)
    if facts.places is not None:
        for side, ranks in (("a", a), ("b", b)):
            rows = ranked.rows[ranks]
            columns |= {f"begin_{side}": arrow(facts.places.begin[rows]), f"end_{side}": arrow(facts.places.end[rows])}
    return with_recipe(columns, recipe)


def with_recipe(columns: dict[str, Any], recipe: Recipe) -> pa.Table:
    return pa.table(columns).replace_schema_metadata({METADATA_KEY: recipe.to_json().encode()})


# ------------------------------------------------------------------------------------------------------------- report


class Job(NamedTuple):
    """The facts of a job that a report adds to its decisions."""

    sketches: Sketches
    candidates: Candidates
    found: Partners | None
    recipe: Recipe
    runtime: Runtime
    documents: Documents
    reference: Documents | None


def report_of(facts: Facts, job: Job, sampled: dict[str, Any] | None) -> dict[str, Any]:
    """Make the contents of report.json, without the times."""
    candidates, reference = job.candidates, job.reference
    ranked, decided, sizes = facts.ranked, *decided_counts(facts, job.recipe)
    counts = {
        "documents": job.sketches.documents,
        **{name: decided[name] for name in ("kept", "removed", *REMOVED_COUNTS, "removed_unverified")},
        "reference_documents": ranked.num_known,
        **({} if reference is None else {"near_reference": decided.get("near_reference", 0)}),
        "empty": decided.get("empty", int(np.count_nonzero(ranked.num_tokens[ranked.of_input] == 0))),
        **{name: getattr(job.sketches, name) for name in _COUNTED},
        **{name: value for name, value in decided.items() if name.startswith(job.recipe.unit)},
        **({"without_spots": job.sketches.without_spots} if job.recipe.shingles.kind == "spots" else {}),
        "representatives": len(facts.groups.ranks),
        "comparisons": 0 if job.found is None else job.found.looks,
        "candidate_pairs": len(candidates.pairs) if job.found is None else job.found.num_candidates,
        **{name: decided[name] for name in ("verified_pairs", "groups")},
    }
    skipped = all_skipped(job.documents, reference)
    if skipped is not None:
        counts["skipped"] = summary_of(skipped)["rows"]
    return {
        "version": __version__,
        "recipe": job.recipe.describe(),
        "measure": job.recipe.method.measure.name,
        "input": job.documents.describe(),
        "against": None if reference is None else reference.describe(),
        "backend": job.runtime.backend,
        "device": job.runtime.describe(),
        "threads": num_threads(),
        "counts": counts,
        **({} if skipped is None else {"skipped": summary_of(skipped)}),
        **({"left_out_records": left_out} if (left_out := job.sketches.left_out_records) else {}),
        **sizes,
        "candidates": list(job.recipe.method.in_words(job.recipe.threshold)),
        "recall": {"expected": job.recipe.expected_recall, "sampled": sampled},
        "limits": _limits(job),
        "warnings": warnings_of(facts, job.recipe, job.documents, reference is not None),
    }


def warnings_of(facts: Facts, recipe: Recipe, documents: Documents, against: bool) -> list[str]:
    """Return remarks about columns that are compared, and the reasons for which nothing was removed."""
    ranked, keeper = facts.ranked, facts.decisions.keeper[facts.ranked.of_input]
    removed = int(np.count_nonzero(keeper != ranked.of_input))
    if removed or facts.places is not None:
        return documents._remarks()
    of_reference = sizes_of(ranked.num_tokens[: ranked.num_known]) if against else None
    of_input = sizes_of(ranked.num_tokens[ranked.of_input])
    return [*documents._remarks(), *reasons(removed, recipe, documents, of_input, of_reference)]


def _limits(job: Job) -> dict[str, Any]:
    """Count the pairs that were not listed and, if nothing is verified or crowds are not joined, not compared.

    `unlisted_pairs` is the number of verified pairs that are known and not listed. These are all if `all_counted`; else
    more may exist that were not looked for.
    """
    found, method = job.found, job.recipe.method
    limits: dict[str, Any] = {}
    if found is not None or isinstance(method, Join):
        limits |= {
            "max_partners": job.recipe.max_partners,
            "unlisted_pairs": 0 if found is None else found.num_unlisted,
            "all_counted": found is None or found.counted,
        }
    if isinstance(method, Sketch) and (found is None or method.measure.weighted):
        limits |= unverified_limits(job.candidates, job.recipe)
    return limits


def unverified_limits(candidates: Candidates, recipe: Recipe) -> dict[str, Any]:
    """Return what large buckets left out, for a report."""
    return {
        "bucket_limit": recipe.method.bucket_limit,
        "bucket_probe": recipe.method.bucket_probe,
        "large_buckets": candidates.large_buckets,
        "uncompared_pairs": candidates.uncompared_pairs,
    }


_COUNTED = (
    *("null_text", "invalid_utf8", "replaced_text", "garbled_text", "stripped_pages"),
    *("text_bytes", "tokens", "shingles"),
)


REMOVED_COUNTS = tuple(f"removed_{kind}" for kind in KINDS)
"""Names of the counts of removed documents by how they are like the kept one."""


def counts_of_kinds(kinds: np.ndarray) -> dict[str, int]:
    """Count removed documents by their places in `KINDS`, as a report has them."""
    return dict(zip(REMOVED_COUNTS, np.bincount(kinds, minlength=len(KINDS)).tolist(), strict=True))


def decided_counts(facts: Facts, recipe: Recipe) -> tuple[dict[str, int], dict[str, Any]]:
    """Count the decisions and the sizes of groups, as a report has them."""
    if facts.fates is not None:
        return _cut_counts(facts.fates, recipe), {"group_sizes": [], "largest_groups": []}
    ranked, groups, decisions, ids, *_ = facts
    mine = ranked.of_input
    removed = decisions.keeper[mine] != mine
    sizes = np.bincount(decisions.keeper[mine][removed], minlength=len(ranked))
    sizes[sizes > 0] += 1  # the kept document
    found = np.flatnonzero(sizes)
    largest = found[np.argsort(-sizes[found], kind="stable")[:5]]
    each, how_many = np.unique(sizes[found], return_counts=True)
    kinds = groups.kinds(mine[removed], decisions.keeper[mine[removed]])
    counts = {
        "kept": int((~removed).sum()),
        "removed": int(removed.sum()),
        **counts_of_kinds(kinds),
        "removed_unverified": int(np.count_nonzero(removed & np.isnan(decisions.resemblance[mine]))),
        "verified_pairs": len(decisions.verified.pairs) if recipe.verifies else 0,
        "groups": len(found),
    }
    if decisions.nearest is not None:
        counts["near_reference"] = int(np.count_nonzero(decisions.nearest.partner[mine] >= 0))
    return counts, {
        "group_sizes": [[int(size), int(count)] for size, count in zip(each, how_many, strict=True)],
        "largest_groups": [{"id": as_json(ids[int(ranked.rows[g])]), "size": int(sizes[g])} for g in largest],
    }


def all_skipped(documents: Documents, reference: Documents | None) -> pa.Table | None:
    """Rows of the input and of the reference set that were skipped; None if rows were not to be skipped."""
    if documents.skipped is None or reference is None:
        return documents.skipped
    return pa.concat_tables([documents.skipped, reference.skipped])


def as_json(id: pa.Scalar) -> int | str:
    """Convert an id to a value that JSON can hold."""
    value = id.as_py()
    return readable_id(value) if isinstance(value, bytes) else value
