"""Make the tables of documents and of pairs, and the report of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .. import __version__
from ..data import arrow, strings, taken
from ..definitions import METADATA_KEY
from ..documents.references import NamedSets
from ..documents.skipped import summary_of
from ..documents.sources import Sources
from ..documents.units import (
    NO_PLACES,
    NO_REASON,
    REASONS,
    Fates,
    Places,
    UnitDecisions,
    are_repeats,
    fates_of,
    spared_copies,
)
from ..engine.contract import Runtime
from ..errors import ParameterError
from ..keep_rule import keep_columns
from ..kernels._cpu import num_threads
from ..methods.contract import KINDS, Candidates, Join, Sketch
from ..printable import readable_id
from ..recipe import Recipe
from ..stages.conditions import remarks_about
from ..stages.decisions import IS_NEAR, Decisions, Groups, Nearest, Ranked, resemblance_of_equal
from ..stages.equal_units import EqualFates, EqualUnits
from ..stages.joining import FILTERS
from ..stages.partners import Partners
from ..stages.priority import count_deciding, key_words, tells_deciding
from ..stages.sketching import Sketched, Sketches
from ..text.token_changes import remarks_on
from .nothing_removed import of_units, reasons, sizes_of


class UnitSources(NamedTuple):
    """The sources of units: arrays with a value per unit of the input.

    repeats : array of bool
        Whether each unit repeats its source.
    source : array of int64
        The unit that is kept in place of each one, among those of a reference set and of the input.
    copies : array of int64
        The number of units that have the same source, and the source.
    """

    repeats: np.ndarray
    source: np.ndarray
    copies: np.ndarray


class Facts(NamedTuple):
    """The decisions, in ranks of units; the ids of all documents; and where units are, if they are parts of them.

    `num_known` documents are of the reference set. `fates` and `sources` are those of the input. `columns` decide who
    is kept, and `sizes` are the numbers of distinct shingles of all rows, if they decide as well. `set_sizes` are these
    numbers, if tables tell how many shingles two documents share.
    """

    ranked: Ranked
    groups: Groups
    decisions: Decisions
    ids: pa.Array
    places: Places | None = None
    fates: Fates | None = None
    num_known: int = 0
    sources: UnitSources | None = None
    columns: Mapping[str, pa.ChunkedArray] = {}
    sizes: np.ndarray | None = None
    set_sizes: np.ndarray | None = None

    @classmethod
    def of(
        cls,
        ranked: Ranked,
        groups: Groups,
        decisions: Decisions,
        sketched: Sketched,
        recipe: Recipe,
        sizes: np.ndarray | None = None,
    ) -> Facts:
        """Collect the facts of a job; if units are parts of documents, decide about documents as well."""
        known, columns = sketched.num_known_documents, sketched.columns
        given = (ranked, groups, decisions, sketched.ids, sketched.places)
        facts = cls(*given, None, known, None, columns, sizes, sketched.set_sizes)
        return facts.with_decisions(decisions, recipe)

    def with_decisions(self, decisions: Decisions, recipe: Recipe) -> Facts:
        """Return the facts with other decisions."""
        if self.places is None:
            return self._replace(decisions=decisions)
        ranked, ranks, owner, unit = self.ranked, self.ranked.ranks, self.places.owner, recipe.unit
        known, known_units = self.num_known, self.ranked.num_known
        keeper = decisions.keeper[ranks]
        source, kind = ranked.rows[keeper], self.groups.kinds(ranks, keeper)
        repeats = are_repeats(unit, keeper != ranks, kind, owner[source] == owner)
        again = np.flatnonzero(repeats)
        spared = spared_copies(source[again], again if unit.inside else owner[again], ranks[again], unit)
        named = np.zeros(len(self.ids), bool)
        named[owner[source[again]]] = True
        copies = np.bincount(source, minlength=len(owner))[source]
        num_tokens = ranked.num_tokens[ranks[known_units:]]
        mine, spared = slice(known_units, None), again[spared] - known_units
        decided = UnitDecisions(repeats[mine], kind[mine], num_tokens, spared, named[known:])
        fates = fates_of(self.places.between(known_units, None, known), decided, recipe)
        sources = UnitSources(repeats[mine], source[mine], copies[mine])
        return self._replace(decisions=decisions, fates=fates, sources=sources)

    @property
    def num_tokens(self) -> np.ndarray:
        """The number of tokens of each document of the input."""
        return self.ranked.num_tokens[self.ranked.of_input] if self.fates is None else self.fates.num_tokens

    def ids_of(self, ranks: np.ndarray, null: np.ndarray | None = None) -> pa.Array | pa.ChunkedArray:
        """Return the ids of the documents of some ranks; null where `null`."""
        rows = self.ranked.rows[ranks]
        return taken(self.ids, arrow(rows if self.places is None else self.places.owner[rows], null))


class Tables(NamedTuple):
    """Documents, pairs and units as `Result` describes them."""

    documents: pa.Table
    pairs: pa.Table
    units: pa.Table | None = None


def tables_of(
    facts: Facts, recipe: Recipe, places: dict[str, pa.Array], *, against: NamedSets | None, counts: bool = False
) -> Tables:
    """Make the tables of a result, with the users' ids; `places` has the columns that say where documents are.

    `against` has the reference sets, by the numbers of their documents; None if there are none. If `counts`, the
    columns of `STANDS_FOR` are among those of documents.
    """
    pairs = pairs_table(_pairs_of(facts, recipe, against), recipe)
    if facts.fates is None or facts.places is None or facts.sources is None:
        documents = _documents_of(facts, recipe, places, against)
        if counts:
            documents = documents._replace(units=_stands_for(facts))
        return Tables(documents_table(documents, recipe), pairs)
    known, owner, (repeats, source, copies) = facts.num_known, facts.places.owner, facts.sources
    found = UnitColumns(
        ids=facts.ids[known:],
        places=facts.places.between(facts.ranked.num_known, None, known),
        repeats=repeats,
        source_ids=taken(facts.ids, arrow(owner[source], ~repeats)),
        source_units=facts.places.numbers[source],
        resemblance=facts.decisions.resemblance[facts.ranked.of_input],
        copies=copies,
        in_reference=None if against is None else source < facts.ranked.num_known,
        reference=None if against is None else against.column(owner[source], source >= facts.ranked.num_known),
    )
    documents = cut_documents(found, facts.fates, recipe, places)
    units = units_table(found, facts.fates.reason, facts.fates.unit_kept, recipe)
    return Tables(documents_table(documents, recipe), pairs, units)


def equal_tables(
    facts: Facts, found: EqualFates, recipe: Recipe, places: dict[str, pa.Array], *, against: NamedSets | None
) -> Tables:
    """Make the tables of documents and of pairs, of a job that looks for equal units alone."""
    pairs = pairs_table(_pairs_of(facts, recipe, against), recipe)
    is_known = np.arange(len(facts.ids)) < facts.num_known
    columns = UnitColumns(
        ids=facts.ids[facts.num_known :],
        source_ids=facts.ids,
        in_reference=None if against is None else is_known,
        reference=None if against is None else against.column(np.arange(len(is_known)), ~is_known),
    )
    fates = found.documents._replace(first=found.first_source)
    return Tables(documents_table(cut_documents(columns, fates, recipe, places), recipe), pairs)


def unit_parts(units: EqualUnits, ids: pa.Array, recipe: Recipe, *, against: NamedSets | None) -> Iterator[pa.Table]:
    """Yield the table of equal units, of some documents at a time; first a part of no units, which has its types.

    In the other parts, ids that are strings are dictionaries, which are made and encoded in less time.

    Parameters
    ----------
    units : EqualUnits
    ids : pyarrow.Array
        Of all documents.
    recipe : Recipe
    against : NamedSets or None
        The reference sets, by the numbers of their documents; None if there are none.
    """
    nobody = np.empty(0, bool)
    nothing = UnitColumns(
        ids[:0],
        ids[:0],
        in_reference=None if against is None else nobody,
        reference=None if against is None else against.column(NO_PLACES.owner, nobody),
    )
    yield units_table(nothing, np.empty(0, np.int8), nobody, recipe)
    for block, found in units.decided_blocks(recipe):
        columns = UnitColumns(
            ids=ids[block.first : block.first + block.num_documents],
            places=block.all_places(),
            repeats=found.repeats,
            source_ids=_source_ids(ids, arrow(found.document, ~found.repeats)),
            source_units=found.number,
            resemblance=np.ones(len(found.number)),
            copies=found.copies,
            in_reference=None if against is None else found.is_known,
            reference=None if against is None else against.column(found.document, ~found.is_known),
        )
        assert block.reason is not None and block.kept is not None
        yield units_table(columns, block.reason, block.kept, recipe)


def _source_ids(ids: pa.Array, rows: pa.Array) -> pa.Array | pa.ChunkedArray:
    """Return the ids of documents, strings as a dictionary, as most documents occur several times."""
    numbers = rows.dictionary_encode()
    values = taken(ids, numbers.dictionary)
    if not pa.types.is_string(ids.type) or isinstance(values, pa.ChunkedArray):
        return taken(ids, rows)
    return pa.DictionaryArray.from_arrays(numbers.indices, values)


class DocumentColumns(NamedTuple):
    """Hold the columns of the table of documents, for some documents of the input in their order.

    Parameters
    ----------
    ids, duplicate_of, group : pyarrow.Array
        The ids of the documents, of the documents that they repeat (null if kept), and of the kept ones.
    kept : array of bool
    kinds : array of int8
        Places in `KINDS` of removed documents; -1 where the column is null.
    resemblance : array of float64
        To the document that is kept; NaN where it is not known.
    places : dict of str to pyarrow.Array
        Columns that say where documents lie.
    told : dict of str to array
        The method's own columns.
    in_reference : array of bool, or None
        Whether the kept document is of the reference set; None if there is none.
    reference : pyarrow.Array or None
        The names of the reference sets that have these documents; None unless a set has a name.
    near_reference : pyarrow.Array or None
        The ids of the most similar documents of the reference set.
    near : array of float64, or None
        Their resemblance; NaN where there is none or it is not known.
    units : dict of str to array
        If documents are divided into units, how many each has, and how many are cut; or the columns of `STANDS_FOR`.
    """

    ids: pa.Array | pa.ChunkedArray
    kept: np.ndarray
    duplicate_of: pa.Array | pa.ChunkedArray
    group: pa.Array | pa.ChunkedArray
    kinds: np.ndarray
    resemblance: np.ndarray
    places: dict[str, pa.Array]
    told: dict[str, np.ndarray]
    in_reference: np.ndarray | None = None
    reference: pa.Array | None = None
    near_reference: pa.Array | pa.ChunkedArray | None = None
    near: np.ndarray | None = None
    units: Mapping[str, np.ndarray] = {}


def documents_table(found: DocumentColumns, recipe: Recipe) -> pa.Table:
    """Return the table of documents, or a part of it."""
    kept, measure = found.kept, recipe.method.measure.name
    columns = {
        "id": found.ids,
        "kept": arrow(kept),
        "duplicate_of": found.duplicate_of,
        KIND: kind_column(found.kinds, recipe, kept | (found.kinds < 0)),
        measure: arrow(found.resemblance, kept | np.isnan(found.resemblance)),
        "group": found.group,
        **found.places,
        **{name: arrow(values, kept) for name, values in found.told.items()},
        **{name: arrow(values, None if name not in STANDS_FOR else ~kept) for name, values in found.units.items()},
    }
    columns |= _reference_columns("in_reference", found.in_reference, found.reference)
    if found.near is not None:
        columns["near_reference"] = found.near_reference
        columns[f"reference_{measure}"] = arrow(found.near, np.isnan(found.near))
    return with_recipe(columns, recipe)


class PairColumns(NamedTuple):
    """Hold the columns of the table of pairs, for some pairs in their order; the names are as in `DocumentColumns`."""

    id_a: pa.Array | pa.ChunkedArray
    id_b: pa.Array | pa.ChunkedArray
    kinds: np.ndarray
    resemblance: np.ndarray
    told: dict[str, np.ndarray]
    a_in_reference: np.ndarray | None = None
    places: Mapping[str, np.ndarray] = {}
    reference: pa.Array | None = None
    shared: np.ndarray | None = None


def num_shared(
    values: np.ndarray, left: np.ndarray, right: np.ndarray, of_reference: np.ndarray, recipe: Recipe
) -> np.ndarray:
    """Return the numbers of shingles that pairs share, given their values, the numbers of either, and whether the left
    document is of a reference set: int64, 0 where the value is not known."""
    measure: Any = recipe.method.measure
    values = np.nan_to_num(values)
    found = np.where(
        of_reference, measure.with_reference.common(values, left, right), measure.common(values, left, right)
    )
    return found.astype(np.int64)


def check_shared(recipe: Recipe) -> None:
    """Raise ParameterError if pairs are not decided by the number of shingles that they share."""
    why = ""
    if not recipe.verifies or recipe.only_equal:
        why = "nothing is verified by shingles"
    elif recipe.method.measure.weighted:
        why = "pairs are compared by weights"
    elif recipe.ignore_common is not None:
        why = "common shingles are left out"
    if why:
        raise ParameterError(f"shared: {why}, so their number decides nothing; leave it out")


def pairs_table(found: PairColumns, recipe: Recipe) -> pa.Table:
    """Return the table of pairs, or a part of it."""
    columns = {
        "id_a": found.id_a,
        "id_b": found.id_b,
        KIND: kind_column(found.kinds, recipe),
        recipe.method.measure.name: arrow(found.resemblance, np.isnan(found.resemblance)),
        **({} if found.shared is None else {"shared": arrow(found.shared, np.isnan(found.resemblance))}),
        **{name: arrow(values) for name, values in found.told.items()},
    }
    columns |= _reference_columns("a_in_reference", found.a_in_reference, found.reference)
    columns |= {name: arrow(values) for name, values in found.places.items()}
    return with_recipe(columns, recipe)


def _documents_of(
    facts: Facts, recipe: Recipe, places: dict[str, pa.Array], against: NamedSets | None
) -> DocumentColumns:
    ranked, groups, decisions, ids, *_ = facts
    mine = ranked.of_input
    keeper, resemblance = decisions.keeper[mine], decisions.resemblance[mine]
    kept = keeper == mine
    told = {} if groups.all_keys is None else recipe.method.pair_columns(groups.all_keys, mine, keeper)
    found = DocumentColumns(
        ids=ids[ranked.num_known :],
        kept=kept,
        duplicate_of=facts.ids_of(keeper, kept),
        group=facts.ids_of(keeper),
        kinds=groups.kinds(mine, keeper),
        resemblance=resemblance,
        places=places,
        told=told,
    )
    if against is None:
        return found
    nearest = decisions.nearest
    if nearest is None:  # the reference set is empty
        nearest = Nearest(np.full(len(ranked), -1, np.int64), np.full(len(ranked), np.nan))
    partner = nearest.partner[mine]
    return found._replace(
        in_reference=keeper < ranked.num_known,
        reference=against.column(partner, partner < 0),
        near_reference=facts.ids_of(partner, partner < 0),
        near=nearest.resemblance[mine],
    )


class UnitColumns(NamedTuple):
    """Columns of the tables about documents that are divided into units: arrays with a value per unit.

    ids : pyarrow.Array
        The ids of the documents.
    source_ids : pyarrow.Array
        The ids of the documents of the sources; null for units that repeat no other one.
    places : Places
        There are no units unless given; so for the columns that follow.
    repeats : array of bool
        Whether each unit repeats its source.
    source_units : array of int64
        The numbers of the sources in their documents.
    resemblance : array of float64
        To the source; NaN where it is not known.
    copies : array of int64
        The number of units that have the same source, and the source.
    in_reference : array of bool, or None
        Whether the source is of the reference set; None if there is none.
    reference : pyarrow.Array or None
        The names of the reference sets that have the sources; None unless a set has a name.
    """

    ids: pa.Array
    source_ids: pa.Array | pa.ChunkedArray
    places: Places = NO_PLACES
    repeats: np.ndarray = np.empty(0, bool)
    source_units: np.ndarray = NO_PLACES.owner
    resemblance: np.ndarray = np.empty(0)
    copies: np.ndarray = NO_PLACES.owner
    in_reference: np.ndarray | None = None
    reference: pa.Array | None = None


def cut_documents(found: UnitColumns, fates: Fates, recipe: Recipe, places: dict[str, pa.Array]) -> DocumentColumns:
    """Return the columns of documents that are divided into units, and count their units and words.

    Units that overlap have words in common, which are not counted.
    """
    number, words = len(fates.kept), {"words": fates.num_tokens, "words_left": fates.num_left}
    duplicate_of = found.source_ids.take(arrow(fates.first, fates.kept))
    in_reference = found.in_reference
    if in_reference is not None:
        in_reference = ~fates.kept & (in_reference[fates.first] if len(in_reference) else False)
    return DocumentColumns(
        ids=found.ids,
        kept=fates.kept,
        duplicate_of=duplicate_of,
        group=pc.coalesce(duplicate_of, found.ids),
        kinds=np.full(number, -1, np.int8),
        resemblance=np.full(number, np.nan),
        places=places,
        told={},
        in_reference=in_reference,
        reference=None if found.reference is None else found.reference.take(arrow(fates.first, fates.kept)),
        units={"units": fates.num_units, "units_cut": fates.num_cut, **({} if recipe.unit.overlaps else words)},
    )


def units_table(found: UnitColumns, reason: np.ndarray, kept: np.ndarray, recipe: Recipe) -> pa.Table:
    """Return the table of units, or a part of it; `reason` and `kept` are those of `Fates`."""
    places, alone = found.places, ~found.repeats
    owner, is_dictionary = arrow(places.owner), pa.types.is_dictionary(found.source_ids.type)
    columns = {
        "id": pa.DictionaryArray.from_arrays(owner, found.ids) if is_dictionary else taken(found.ids, owner),
        **{name: arrow(values) for name, values in places.columns.items()},
        "kept": arrow(kept),
        "source_id": found.source_ids,
        "source_unit": arrow(found.source_units, alone),
        recipe.method.measure.name: arrow(found.resemblance, alone | np.isnan(found.resemblance)),
        "copies": arrow(found.copies),
        "reason": words_column(reason, REASONS, reason == NO_REASON),
    }
    columns |= _reference_columns("in_reference", found.in_reference, found.reference)
    return with_recipe(columns, recipe)


REFERENCE = "reference"
"""The column that names the reference set of a document, a pair or a unit, if a set has a name."""


def _reference_columns(name: str, are_known: np.ndarray | None, sets: pa.Array | None) -> dict[str, Any]:
    """Return the columns of a table that say which documents are of a reference set, and name their sets."""
    known = {} if are_known is None else {name: arrow(are_known)}
    return known if sets is None else {**known, REFERENCE: sets}


STANDS_FOR = ("copies", "near")
"""The columns that count the documents removed for a kept one: those of the same words, and others."""


def _stands_for(facts: Facts) -> dict[str, np.ndarray]:
    """Count, for each document of the input, the documents of the input that were removed for it."""
    mine, keeper, representative = facts.ranked.of_input, facts.decisions.keeper, facts.groups.representative
    gone = mine[keeper[mine] != mine]
    copied = representative[gone] == representative[keeper[gone]]
    number = len(facts.ranked)
    some = (gone[copied], gone[~copied])
    counts = (np.bincount(keeper[ranks], minlength=number)[mine] for ranks in some)
    return dict(zip(STANDS_FOR, counts, strict=True))


KIND = "kind"
"""The column that says how the two documents of a row are alike, in both tables."""


def kind_column(kinds: np.ndarray, recipe: Recipe, null: np.ndarray | None = None) -> pa.DictionaryArray:
    """Return places in `KINDS` as a column of the words that the method has for them; null where `null`."""
    return words_column(kinds, recipe.method.kinds, null)


def words_column(numbers: np.ndarray, words: Sequence[str], null: np.ndarray | None = None) -> pa.DictionaryArray:
    """Return numbers of words as a column of the words; null where `null`."""
    return pa.DictionaryArray.from_arrays(arrow(numbers, null), strings(list(words)).cast(pa.string()))


def _pairs_of(facts: Facts, recipe: Recipe, against: NamedSets | None) -> PairColumns:
    ranked, groups, verified = facts.ranked, facts.groups, facts.decisions.verified
    everyone = np.arange(len(ranked))
    copied = (groups.representative != everyone) & (everyone >= ranked.num_known)
    if recipe.only_against:
        copied &= groups.representative < ranked.num_known
    if facts.places is not None:  # the table of units names them
        copied[:] = False
    exact = np.flatnonzero(copied)
    a = np.concatenate([groups.ranks[verified.pairs.left], groups.representative[exact]])
    b = np.concatenate([groups.ranks[verified.pairs.right], exact])
    resemblance = np.concatenate([verified.resemblance, np.ones(len(exact))])
    if not recipe.verifies:
        resemblance = resemblance_of_equal(groups.kinds(a, b), recipe)
    order = np.lexsort((b, a))
    a, b, resemblance = a[order], b[order], resemblance[order]
    rows_of_a = ranked.rows[a] if facts.places is None else facts.places.owner[ranked.rows[a]]
    where: dict[str, np.ndarray] = {}
    if (places := facts.places) is not None:
        for side, rows in (("a", ranked.rows[a]), ("b", ranked.rows[b])):
            where |= {f"{name}_{side}": values[rows] for name, values in places.columns.items()}
    shared = None
    if facts.set_sizes is not None:
        left, right = (facts.set_sizes[ranked.rows[ranks]] for ranks in (a, b))
        shared = num_shared(resemblance, left, right, a < ranked.num_known, recipe)
    return PairColumns(
        id_a=facts.ids_of(a),
        id_b=facts.ids_of(b),
        kinds=groups.kinds(a, b),
        resemblance=resemblance,
        told={} if groups.all_keys is None else recipe.method.pair_columns(groups.all_keys, a, b),
        a_in_reference=None if against is None else a < ranked.num_known,
        places=where,
        reference=None if against is None else against.column(rows_of_a, a >= ranked.num_known),
        shared=shared,
    )


def with_recipe(columns: dict[str, Any], recipe: Recipe) -> pa.Table:
    return pa.table(columns).replace_schema_metadata({METADATA_KEY: recipe.to_json().encode()})


# ------------------------------------------------------------------------------------------------------------- report


class JobFacts(NamedTuple):
    """The facts of a job that a report adds to its decisions."""

    sketches: Sketches
    candidates: Candidates
    found: Partners | None
    recipe: Recipe
    runtime: Runtime
    sources: Sources


class Counted(NamedTuple):
    """Hold the counts of a job.

    Parameters
    ----------
    counts : dict of str to int
        In any order; `COUNTS` names them.
    sizes : dict
        `group_sizes`, `group_kinds` and `largest_groups`.
    limits : dict
        See `limits_of`.
    left_out : mapping
        Records of the input that were left out, by their reason.
    skipped : pyarrow.Table or None
        Rows that could not be read, if they were to be skipped.
    sampled : dict or None
        The check of recall.
    filtered : dict
        The number of comparisons that each filter of the join rejected.
    """

    counts: dict[str, Any]
    sizes: dict[str, Any]
    limits: dict[str, Any]
    left_out: Mapping[str, int] = {}
    skipped: pa.Table | None = None
    sampled: dict[str, Any] | None = None
    filtered: Mapping[str, int] = dict.fromkeys(FILTERS, 0)


def report_of(recipe: Recipe, source: dict[str, Any], engine: dict[str, Any], counted: Counted) -> dict[str, Any]:
    """Return the contents of report.json, without the times and warnings.

    Parameters
    ----------
    recipe : Recipe
    source : dict
        `input` and `against`, as `Sources.describe` returns them.
    engine : dict
        `backend`, `device` and `threads`.
    counted : Counted
    """
    skipped = None if counted.skipped is None else summary_of(counted.skipped)
    counts = counted.counts if skipped is None else {**counted.counts, "skipped": skipped["rows"]}
    absent = {"near_reference"} if source["against"] is None or recipe.unit.divides else set()
    absent |= set() if recipe.shingles.kind == "spots" else {"without_spots"}
    absent |= set() if recipe.within else {"without_value"}
    absent |= set() if recipe.method.equal_by else {"without_key"}
    own = dict(zip(REMOVED_COUNTS, (f"removed_{kind}" for kind in recipe.method.kinds), strict=True))
    absent |= set() if recipe.ignore_common is not None else {"common_shingles", "only_common"}
    absent |= {"only_dropped_words"} if recipe.shingles.drop_words is None else set()
    return {
        "version": __version__,
        "recipe": recipe.describe(),
        "measure": recipe.method.measure.name,
        **source,
        **engine,
        "counts": {own.get(name, name): counts[name] for name in COUNTS if name in counts and name not in absent},
        **({} if skipped is None else {"skipped": skipped}),
        **({"left_out_records": dict(counted.left_out)} if counted.left_out else {}),
        "filtered": dict(counted.filtered),
        **counted.sizes,
        "candidates": list(recipe.method.in_words(recipe.threshold)),
        "recall": {"expected": recipe.expected_recall, "sampled": counted.sampled},
        "limits": counted.limits,
    }


def report_of_job(facts: Facts, job: JobFacts, sampled: dict[str, Any] | None) -> dict[str, Any]:
    """Return the report of a job in memory, with its warnings."""
    candidates, found = job.candidates, job.found
    ranked, decided, sizes = facts.ranked, *decided_counts(facts, job.recipe)
    counts = {
        **decided,
        **{name: getattr(job.sketches, name) for name in SKETCH_COUNTS},
        "reference_documents": facts.num_known,
        "near_reference": decided.get("near_reference", 0),
        "empty": decided.get("empty", int(np.count_nonzero(ranked.num_tokens[ranked.of_input] == 0))),
        "representatives": len(facts.groups.ranks),
        "comparisons": 0 if found is None else int(found.looks[0]),
        "candidate_pairs": len(candidates.pairs) if found is None else found.num_candidates,
    }
    unlisted = None if found is None else (found.num_unlisted, found.counted)
    limits = limits_of(job.recipe, unlisted, candidates.large_buckets, candidates.uncompared_pairs)
    filtered = filtered_of(np.zeros(4, np.int64) if found is None else found.looks)
    records = job.sketches.left_out_records
    counted = Counted(counts, sizes, limits, records, job.sources.skipped, sampled, filtered)
    engine = {"backend": job.runtime.backend, "device": job.runtime.describe(), "threads": num_threads()}
    warnings = warnings_of(facts, job.recipe, job.sources, counts)
    return {**report_of(job.recipe, job.sources.describe(), engine, counted), "warnings": warnings}


def filtered_of(looks: Any) -> dict[str, int]:
    """Return the number of comparisons that each filter of the join rejected, from `Met.looks`."""
    return dict(zip(FILTERS, (int(number) for number in looks[1:]), strict=True))


def remarks_of(recipe: Recipe, sources: Sources, counts: Mapping[str, int]) -> list[str]:
    """Return remarks about files that are read twice, words that are left out, and columns that are compared."""
    return [
        *sources.remarks(),
        *remarks_on(dict(counts)),
        *sources.documents._remarks(keep_columns(recipe.keep)),
        *remarks_about(recipe.within, counts, recipe.method.equal_by or ()),
    ]


def warnings_of(facts: Facts, recipe: Recipe, sources: Sources, counts: Mapping[str, int]) -> list[str]:
    """Return remarks about columns that are compared, and those of `reasons`."""
    remarks = remarks_of(recipe, sources, counts)
    ranked, keeper = facts.ranked, facts.decisions.keeper[facts.ranked.of_input]
    removed = int(np.count_nonzero(keeper != ranked.of_input))
    if facts.places is not None:
        return [*remarks, *of_units(counts, recipe)]
    against = sources.reference is not None
    of_reference = sizes_of(ranked.num_tokens[: ranked.num_known]) if against else None
    of_input = sizes_of(ranked.num_tokens[ranked.of_input])
    return [*remarks, *reasons(removed, recipe, sources, of_input, of_reference)]


def limits_of(
    recipe: Recipe, unlisted: tuple[int, bool] | None, large_buckets: int, uncompared_pairs: int
) -> dict[str, Any]:
    """Return what was left out, and why.

    Parameters
    ----------
    recipe : Recipe
    unlisted : (int, bool) or None
        If pairs were verified, how many are known and not listed, and whether these are all that there are. Otherwise
        some were not looked for.
    large_buckets, uncompared_pairs : int
        What large buckets left out, if nothing is verified or crowds are not joined.
    """
    limits: dict[str, Any] = {}
    if unlisted is not None or isinstance(recipe.method, Join):
        number, counted = unlisted or (0, True)
        limits = {"max_partners": recipe.max_partners, "unlisted_pairs": number, "all_counted": counted}
    if isinstance(recipe.method, Sketch) and (unlisted is None or recipe.method.measure.weighted):
        limits |= {
            "bucket_limit": recipe.method.bucket_limit,
            "bucket_probe": recipe.method.bucket_probe,
            "large_buckets": large_buckets,
            "uncompared_pairs": uncompared_pairs,
        }
    return limits


SKETCH_COUNTS = (
    *("documents", "null_text", "invalid_utf8", "replaced_text", "garbled_text", "stripped_pages"),
    *("text_bytes", "tokens", "shingles", "only_dropped_words", "without_spots"),
    *("without_value", "without_key", "common_shingles", "only_common"),
)
"""Counts of a report that sketching finds."""

REMOVED_COUNTS = tuple(f"removed_{kind}" for kind in KINDS)
"""Names of the counts of removed documents by how they are like the kept one."""

UNIT_COUNTS = ("tokens_left", "units", "units_cut", "units_listed", "short_sources")
"""Further counts of a report about documents that are divided into units."""

NO_GROUPS = dict.fromkeys((*REMOVED_COUNTS, "removed_unverified", "groups"), 0)
"""Counts of a report about documents that are divided into units, which are in no groups."""

COUNTS = (
    *("documents", "kept", "removed", *REMOVED_COUNTS, "removed_unverified", "reference_documents", "near_reference"),
    *("empty", *SKETCH_COUNTS[1:], *UNIT_COUNTS),
    *("representatives", "comparisons", "candidate_pairs"),
    *("verified_pairs", "groups", "skipped"),
)
"""Names of all counts of a report, in their order."""


def counts_of_kinds(kinds: np.ndarray) -> dict[str, int]:
    """Count removed documents by their places in `KINDS`, as a report has them."""
    return dict(zip(REMOVED_COUNTS, np.bincount(kinds, minlength=len(KINDS)).tolist(), strict=True))


def kinds_of_groups(copies: np.ndarray, removed: np.ndarray) -> dict[str, int]:
    """Count groups by whether their documents have the same words.

    Parameters
    ----------
    copies, removed : array of int64, shape (groups,)
        The number of removed documents of each group that repeat the words of a document of better priority, and the
        number of all its removed documents.
    """
    same, different = (int(np.count_nonzero(which)) for which in (copies == removed, copies == 0))
    return {"same_words": same, "different_words": different, "mixed": len(removed) - same - different}


def decided_counts(facts: Facts, recipe: Recipe) -> tuple[dict[str, int], dict[str, Any]]:
    """Count the decisions and the sizes of groups, as a report has them."""
    ranked, groups, decisions, ids, *_ = facts
    listed = {"verified_pairs": len(decisions.verified.pairs) if recipe.verifies else 0}
    if facts.fates is not None:
        no_groups = {"group_sizes": [], "group_kinds": kinds_of_groups(*np.zeros((2, 0))), "largest_groups": []}
        return {**NO_GROUPS, **listed, **facts.fates.counts(recipe.unit)}, no_groups
    mine = ranked.of_input
    removed = decisions.keeper[mine] != mine
    gone = mine[removed]
    sizes = np.bincount(decisions.keeper[gone], minlength=len(ranked))
    copies = np.bincount(decisions.keeper[gone[groups.representative[gone] != gone]], minlength=len(ranked))
    found = np.flatnonzero(sizes)
    group_kinds = kinds_of_groups(copies[found], sizes[found])
    sizes[found] += 1  # the kept document
    largest = found[np.argsort(-sizes[found], kind="stable")[:5]]
    each, how_many = np.unique(sizes[found], return_counts=True)
    kinds = groups.kinds(gone, decisions.keeper[gone])
    counts = {
        "kept": int((~removed).sum()),
        "removed": int(removed.sum()),
        **counts_of_kinds(kinds),
        "removed_unverified": int(np.count_nonzero(np.isnan(decisions.resemblance[gone]) & (kinds == IS_NEAR))),
        **listed,
        "groups": len(found),
    }
    if decisions.nearest is not None:
        counts["near_reference"] = int(np.count_nonzero(decisions.nearest.partner[mine] >= 0))
    deciding = {"decided_by": _deciding(facts, recipe, gone)} if tells_deciding(recipe.keep) else {}
    return counts, {
        **deciding,
        "group_sizes": [[int(size), int(count)] for size, count in zip(each, how_many, strict=True)],
        "group_kinds": group_kinds,
        "largest_groups": [{"id": as_json(ids[int(ranked.rows[g])]), "size": int(sizes[g])} for g in largest],
    }


def _deciding(facts: Facts, recipe: Recipe, gone: np.ndarray) -> dict[str, int]:
    """Count the removed documents whose kept document is of the input by the key that decided between the two."""
    ranked, keeper = facts.ranked, facts.decisions.keeper[gone]
    mine = keeper >= ranked.num_known
    words = []
    for ranks in (keeper[mine], gone[mine]):
        rows = ranked.rows[ranks]
        columns = {name: values.take(arrow(rows - ranked.num_known)) for name, values in facts.columns.items()}
        sizes = None if facts.sizes is None else facts.sizes[rows]
        words.append(key_words(recipe.keep, ranked.num_tokens[ranks], columns, sizes))
    kept, removed = words
    return count_deciding(recipe.keep, facts.sizes is not None, kept, removed, keeper[mine] < gone[mine])


def as_json(id: pa.Scalar) -> int | str:
    """Convert an id to a value that JSON can hold."""
    value = id.as_py()
    return readable_id(value) if isinstance(value, bytes) else value
