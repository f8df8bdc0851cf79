"""Deciding: the job's `keep` over live entries and their pairs, with any priority.

Stored pairs suffice where all pairs of live entries are among them, or where nothing was ever taken away and what came
first is kept, which is how they were chosen. Otherwise the candidates are found again among stored features, and
verified from stored sets, by the stages of `dedup`: the answer is that of `dedup` over the live documents either way.

Of an index without sets, pairs of min-hash are found anew as they are when documents are added, all of them at once in
order of priority. Where nothing is verified no pairs are stored: `dedup` compares the simhashes in its own tables,
whose largest buckets leave pairs out, so that its answer depends on the tables.
"""

from __future__ import annotations

import contextlib
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import pyarrow as pa

from ..data import Ragged, look_up, one_array
from ..documents.units import NO_PLACES, Places, joined_places
from ..engine.processors import own_threads
from ..keep_rule import keep_columns
from ..methods.finding.contract import SketchedEntries
from ..results.result import Result
from ..results.saving import write_decisions
from ..results.tables import Counted, Facts, decided_counts, limits_of, report_of, tables_of
from ..stages.conditions import group_words
from ..stages.decisions import Groups, Ranked, decide as decide_ranked, proposed, unverified
from ..stages.joining import SpooledRows
from ..stages.partners import JoinedRows, partners_of, selected
from ..stages.priority import units_by_priority
from ..stages.verification import Verified, in_host_memory
from ..store.artefacts import write_report
from ..store.outputs import new_folder
from .candidates import all_joined, as_verified, join
from .columns import as_given, of_live
from .opened import Opened
from .segments import OPEN, OWNER, UNIT_COLUMNS, Segment
from .sketches import EntryTools
from .snapshot import Snapshot
from .uncommon import StoredSets, count_common

if TYPE_CHECKING:
    from ..engine.clock import Clock
    from ..engine.contract import Rows, Runtime
    from ..recipe import Recipe
    from ..stages.common_shingles import CommonShingles
    from ..text.unit_options import Unit
    from .manifest import Manifest


class Live(NamedTuple):
    """All live documents, in order of sequence.

    ids : pyarrow.Array
        Of documents.
    entry, tokens : arrays of int64, shape (units,)
    places : Places or None
        Where units are; None if each document is a unit.
    """

    ids: pa.Array
    entry: np.ndarray
    tokens: np.ndarray
    places: Places | None

    @classmethod
    def of(cls, snapshot: Snapshot, kind: pa.DataType, unit: Unit) -> Live:
        """The documents of a snapshot, which are divided into units."""
        ids, entries, places, number = [], [np.empty(0, np.int64)], [NO_PLACES], 0
        for segment in snapshot.segments:
            documents = np.flatnonzero(segment.live_documents)
            units = segment.units_of(documents)
            ids.append(segment.ids.arrow(documents))
            entries.append(segment["entry"][units])
            if unit.divides:
                owner = number + np.repeat(np.arange(len(documents)), np.diff(segment["first_unit"])[documents])
                begin, end, after, marks = (segment[name][units] for name in UNIT_COLUMNS)
                places.append(Places(owner, begin, end, np.zeros(len(units), np.int32), after, marks))
            number += len(documents)
        entry = np.concatenate(entries)
        joined = as_given(pa.concat_arrays(ids), kind) if ids else pa.array([], kind)
        return cls(joined, entry, snapshot.tokens(entry), joined_places(places, unit))


def stored_pairs(snapshot: Snapshot, entries: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(left, right, resemblance) of all stored pairs of two of some entries, given in order: places among these."""
    parts = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))]
    for segment in snapshot.segments:
        (left, one), (right, other) = (look_up(entries, segment[name]) for name in ("pair_left", "pair_right"))
        there, values = one & other, segment["pair_resemblance"].view(np.float64)
        parts.append((left[there], right[there], values[there]))
    left, right, values = (np.concatenate(each) for each in zip(*parts, strict=True))
    return left, right, values


def suffice(snapshot: Snapshot, disturbed: bool, recipe: Recipe) -> bool:
    """Whether the stored pairs are enough for the decisions of this recipe.

    If parts of the same document are not compared, a pair is stored if the founders are of two documents. No pairs are
    stored if common shingles are left out.
    """
    if recipe.ignore_common is not None:
        return False
    as_added = not disturbed and recipe.keep == "first"
    if as_added and recipe.cluster == "greedy":
        return True
    if recipe.unit.divides and not recipe.unit.inside and not as_added:
        return False
    return not any(((each["flags"] & OPEN != 0) & (each.live_entries != 0)).any() for each in snapshot.segments)


def decide(
    opened: Opened, recipe: Recipe, output: str | None, overwrite: bool, clock: Clock, counts: bool = False
) -> Result:
    """Decide of all live documents, and write what was decided to a folder, if one is given.

    Raises
    ------
    OutputError
        If the output cannot be written.
    DamagedError
        If the index is not as it was written.
    """
    with contextlib.ExitStack() as stack:
        folder = None if output is None else stack.enter_context(new_folder(output, overwrite))
        runtime = stack.enter_context(opened.running())
        manifest, snapshot = opened.snapshot(runtime)
        place = folder or Path(tempfile.gettempdir())
        result = decided(manifest, snapshot, recipe, clock, runtime, place, counts)
        if folder is not None:
            write_decisions(folder, result)
            write_report(folder, {**result.report, "seconds": clock.elapsed})
    return result


def decided(
    manifest: Manifest,
    snapshot: Snapshot,
    recipe: Recipe,
    clock: Clock,
    runtime: Runtime,
    folder: Path,
    counts: bool = False,
) -> Result:
    """Decide of all live documents.

    Parameters
    ----------
    manifest : Manifest
    snapshot : Snapshot
    recipe : Recipe
        The index's recipe, with the chosen priority and clustering.
    folder : path
        Where temporary files go, if pairs have to be found anew.
    """
    live, common = Live.of(snapshot, manifest.id_type, recipe.unit), None
    if recipe.ignore_common is not None:
        with clock.stage("count"):
            common = count_common(snapshot, recipe, folder, runtime)
            recipe = common.settled(recipe)
    tools = EntryTools(recipe, manifest.keeps, runtime)
    with clock.stage("collide"):
        types = manifest.column_types
        columns = {name: of_live(snapshot, name, types[name]) for name in keep_columns(recipe.keep)}
        categories, places = manifest.categories, live.places
        rows = units_by_priority(recipe.keep, live.tokens, columns, categories, places, len(live.ids))
        ranked = Ranked(0, rows, live.tokens[rows])
        representative, keys, alone = _best_members(live.entry[rows]), None, np.empty(0, np.int64)
        if common is not None:  # documents that have common shingles alone are like no document
            alone = _of_common_alone(snapshot, live.entry[rows], common, runtime, folder)
            representative[alone] = alone
        if recipe.method.tells_pairs:
            keys = tools.finder.keys(snapshot, live.entry[rows])
        compared = ranked.num_tokens >= recipe.unit.min_words
        ranks = np.flatnonzero((representative == np.arange(len(rows))) & compared)
        mine = live.entry[rows[ranks]]  # the entry of each representative
        tokens = ranked.num_tokens[ranks]
        owner = None if places is None or recipe.unit.inside else places.owner[rows[ranks]]
        groups = Groups(representative, None, keys, ranks, None, None, np.zeros(len(ranks), bool), tokens, owner)
    limits = {"max_partners": recipe.max_partners, "unlisted_pairs": 0, "all_counted": False}
    if not recipe.verifies:
        with clock.stage("collide"):
            keyed = groups if keys is None else replace(groups, keys=runtime.put(keys[ranks]))
            candidates = proposed(keyed, recipe, runtime)
            listed = deciding = in_host_memory(unverified(groups, candidates.pairs, recipe, runtime), runtime)
            limits = limits_of(recipe, None, candidates.large_buckets, candidates.uncompared_pairs)
    elif suffice(snapshot, manifest.disturbed, recipe):
        with clock.stage("verify"):
            order = np.argsort(mine, kind="stable")
            left, right, values = stored_pairs(snapshot, mine[order])
            known = as_verified(order[left], order[right], values)
            listed, deciding = selected(known, groups.pinned, recipe.cluster, recipe.max_partners, False)
    elif tools.keeps.sets:
        sets = StoredSets(snapshot, np.sort(mine), folder)
        if common is not None:
            sets.leave_out(common.frequencies, runtime)
        listed, deciding = _found_anew(sets, groups, mine, tools, clock)
    else:
        with clock.stage("collide"):
            listed, deciding = _estimated_anew(snapshot, groups, mine, tools)
    with clock.stage("decide"):
        decisions = decide_ranked(ranked, groups, deciding, listed, None, recipe, runtime)
        facts = Facts(ranked, groups, decisions, live.ids, live.places, columns=columns)
        facts = facts.with_decisions(decisions, recipe)
        tables = tables_of(facts, recipe, {}, against=None, counts=counts)
    frequencies = None if common is None else common.frequencies
    left_out = {} if frequencies is None else {"common_shingles": len(frequencies), "only_common": len(alone)}
    if recipe.within:
        columns_within = [one_array(of_live(snapshot, name, types[name])) for name in recipe.within]
        left_out["without_value"] = group_words(columns_within, 0, 0)[1]
    report = _report(facts, tools, limits, clock, left_out)
    return Result(
        tables.documents, tables.pairs, report, recipe, frequencies=frequencies, units=tables.units, facts=facts
    )


def _best_members(entry: np.ndarray) -> np.ndarray:
    """The first document with the same entry, for each document; entries are given in order of priority."""
    everyone = np.arange(len(entry))
    if (entry[1:] > entry[:-1]).all():
        return everyone
    entries, back = np.unique(entry, return_inverse=True)
    best = np.full(len(entries), len(entry), np.int64)
    np.minimum.at(best, back, everyone)
    return best[back]


def _of_common_alone(
    snapshot: Snapshot, entries: np.ndarray, common: CommonShingles, runtime: Runtime, folder: Path
) -> np.ndarray:
    """Return the places of entries that have shingles, and none that is not common."""
    sets = StoredSets(snapshot, entries, folder)
    before = np.diff(sets.offsets)
    sets.leave_out(common.frequencies, runtime)
    return np.flatnonzero((before > 0) & (np.diff(sets.offsets) == 0))


def _found_anew(
    sets: StoredSets, groups: Groups, entries: np.ndarray, tools: EntryTools, clock: Clock
) -> tuple[Verified, Verified]:
    """(listed, deciding) of entries in order of priority by the stages of the job, from stored features and sets."""
    recipe, _, runtime = tools
    keys = tools.finder.keys(sets.snapshot, entries)
    with clock.stage("collide"):
        groups = replace(groups, keys=runtime.put(keys))
        candidates = proposed(groups, recipe, runtime)
    rows = np.searchsorted(sets.entries, entries)
    measure, spooled = recipe.method.measure, SpooledRows(cast("Rows", sets), rows)
    joined = JoinedRows(groups.keys, groups.pinned, spooled, groups.num_tokens, groups.owner)
    found = partners_of(joined, candidates, recipe, measure, clock, runtime)
    return found.listed, found.deciding


def _estimated_anew(
    snapshot: Snapshot, groups: Groups, entries: np.ndarray, tools: EntryTools
) -> tuple[Verified, Verified]:
    """(listed, deciding) of entries in order of priority, from stored features and samples."""
    number, finder, recipe = len(entries), tools.finder, tools.recipe
    nothing = Ragged(np.empty(0, np.uint64), np.zeros(number + 1, np.int64))
    keys, sketch = finder.keys(snapshot, entries), snapshot.sketches_of(entries)
    tokens = groups.num_tokens
    sketches = SketchedEntries(np.empty((number, 2), np.uint64), tokens, keys, nothing, sketch)
    ranks = np.arange(number)
    arrays = {"sequence": ranks, "entry": ranks, "founders": ranks, "tokens": tokens, "sketch": sketch}
    arrays |= finder.arrays(sketches) | ({} if groups.owner is None else {OWNER: groups.owner})
    by_rank = Snapshot([], snapshot.backend, Segment.in_memory(arrays, "integer"))
    found = all_joined if recipe.cluster == "components" else join
    left, right, values = found(by_rank, sketches, tools)[:3]
    known = as_verified(left, right, values)
    return selected(known, groups.pinned, recipe.cluster, recipe.max_partners, False)


_TEXTS = {"format": "memory", "text_columns": None, "id_column": None, "html": False}
"""The place of an index's documents: only the user who added them knows it."""


def _report(
    facts: Facts, tools: EntryTools, limits: dict[str, Any], clock: Clock, left_out: dict[str, int]
) -> dict[str, Any]:
    recipe = tools.recipe
    decided, sizes = decided_counts(facts, recipe)
    label, words = recipe.method.in_words(recipe.threshold)
    if recipe.verifies and not tools.keeps.sets:
        decided["verified_pairs"] = 0
        words += "; resemblance is estimated from samples, and nothing verified"
    tokens = facts.ranked.num_tokens
    counts: dict[str, Any] = {
        **decided,
        **left_out,
        "documents": len(facts.ids),
        "reference_documents": 0,
        "empty": decided.get("empty", int(np.count_nonzero(tokens == 0))),
        "null_text": 0,
        "invalid_utf8": 0,
        "text_bytes": None,
        "tokens": int(tokens.sum()),
        "representatives": len(facts.groups.ranks),
    }
    engine = {"backend": tools.runtime.backend, "device": None, "threads": own_threads()}
    found = report_of(recipe, {"input": _TEXTS, "against": None}, engine, Counted(counts, sizes, limits))
    return {**found, "candidates": [label, words], "timings": clock.seconds}
