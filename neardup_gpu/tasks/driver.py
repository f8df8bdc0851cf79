"""The order of the stages of a job of tasks: what each reads and is called with.

The driver holds names of files and counts, and nothing for each document.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import field, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ..data import numpy_of
from ..documents.batches import one_integer_type
from ..documents.columns import nulls_as_strings
from ..documents.compared import SeenStrings, one_order, remark
from ..documents.formats import reader_of
from ..documents.kept import united
from ..documents.passes import place
from ..documents.references import NamedSets, one_type_of_sets
from ..documents.rewritten import new_names
from ..documents.row_ids import stands_for_several
from ..documents.skipped import check_skipped
from ..documents.slices import Extent, Offset, Slice, offsets as offsets_of
from ..documents.sources import one_type_of_ids
from ..documents.textfiles import TextFiles, not_for_json
from ..documents.writing_options import OUTPUT_FORMATS, Writing
from ..errors import ParameterError
from ..keep_rule import keep_columns
from ..methods.contract import Sketch
from ..recipe import Recipe
from ..records import dataclass
from ..stages.common_shingles import most_documents
from ..store.exchange import read_partition
from ..store.places import Place
from . import candidates, checking, copies, crowds, frequencies, naming, pairs, ranking, results, sketching
from .columns import load_column, schema_of_text, tables_of, type_of_text
from .cutting import counter_bits, counts_in_table, posting_tasks, table_parts
from .layout import Layout
from .work import Stage, Work, file_name


@dataclass(frozen=True)
class Job:
    """A job while it runs.

    Parameters
    ----------
    work : Work
    slices : list of Slice
        Of all documents, a reference set before the input.
    num_known : int
        Slices of the reference set, or of all.
    sets : dict of str to int
        If reference sets have names, the number of slices of each.
    max_comparisons : int, optional
    num_checked : int
        Documents sampled to check the recall.
    writing : Writing
        How the kept rows are written.
    schema : pyarrow.Schema, optional
        The columns of all files, where these are to have the same and types are known.
    infers_columns : bool
        Whether types are inferred of columns that are written.
    """

    work: Work
    slices: list[Slice]
    num_known: int
    max_comparisons: int | None
    num_checked: int
    writing: Writing = Writing()
    schema: pa.Schema | None = None
    infers_columns: bool = False
    sets: dict[str, int] = field(default_factory=dict)

    @property
    def of_sets(self) -> list[range]:
        """The slices of each reference set, and then those of the input."""
        ends = list(itertools.accumulate(self.sets.values() if self.sets else [self.num_known], initial=0))
        return [range(first, stop) for first, stop in itertools.pairwise([*ends, len(self.slices)]) if first < stop]

    @property
    def recipe(self) -> Recipe:
        return self.work.shared.recipe

    @property
    def partitions(self) -> range:
        return range(self.work.shared.partitions)

    @property
    def about(self) -> dict[str, Any]:
        """An entry of a report: the numbers of workers and slices, and how many tasks an earlier run did."""
        work = self.work
        return {"tasks": {"workers": work.workers.num_workers, "slices": len(self.slices), "resumed": work.resumed}}


def run(job: Job) -> Made:
    """Do all stages, in their order."""
    told_as, weighed = job.work.told_as, weigh(job)
    with told_as("sketch"):
        sketched = _sketch(job, weighed)
        check_sketched(job, sketched)
    with told_as("rank"):
        layout, order = _rank(job, sketched)
        settled = [sketched, *order]
        arguments = [(sketched.names("hashes"), layout)] * len(job.partitions)
        copied = job.work.stage("copies", copies.copies, arguments, after=settled)
        settled.append(copied)
    number = sketched.total("present") - (copied.total("copies") - copied.total("wordless"))
    with told_as("collide"):
        if job.recipe.only_equal:  # no candidates and no verified pairs
            found = job.work.stage("verify", pairs.no_pairs, [(layout,)] * len(job.partitions), after=settled)
        elif isinstance(job.recipe.method, Sketch):
            found = _by_keys(job, layout, copied, number, settled)
        else:
            found = _by_shingles(job, layout, sketched, copied, settled)
    with told_as("verify"):
        distinct, verified = (found, found) if job.recipe.only_equal else _verify(job, layout, found, settled)
    crowd = None
    if job.recipe.verifies and not job.recipe.method.measure.weighted and found.total("crowded"):
        with told_as("join"):
            crowd = _join_crowd(job, layout, found, verified, settled)
    with told_as("decide"):
        named = _decide(job, layout, copied, verified, crowd, settled)
    with told_as("write"):
        listed, tables, written = _write(job, layout, sketched, copied, named, settled)
    checked = None
    if job.num_checked:
        with told_as("check"):
            checked = _sampled(job, layout, found, listed, settled)
    made = weighed, sketched, found, distinct, verified, crowd, listed, tables, written, checked
    return Made(layout, number, *made)


class Made(NamedTuple):
    """The stages whose facts make the report."""

    layout: Layout
    num_representatives: int
    weighed: list[Stage]
    sketched: Stage
    found: Stage
    distinct: Stage
    verified: Stage
    crowd: Stage | None
    listed: Stage
    tables: Stage
    written: Stage
    checked: Stage | None


def weigh(job: Job) -> list[Stage]:
    """Count document frequencies, which the recipe of all later tasks names, if it needs any that are not known."""
    known = job.work.shared.frequencies is not None or not job.recipe.method.needs_statistics
    if known and job.recipe.ignore_common is None:
        return []
    with job.work.told_as("weigh"):
        return [_weighed(job)]


def _weighed(job: Job) -> Stage:
    """Count document frequencies in two stages, and name their file in the recipe."""
    work, elements = job.work, [(slice,) for slice in job.slices]
    counted = work.stage("count", frequencies.count, elements, on_device=True)
    recipe, number = job.recipe, counted.total("documents")
    most = 0 if recipe.ignore_common is None else most_documents(recipe, number)
    given = [(counted.names("counts"), most)] * len(job.partitions)
    summed = work.stage("sum", frequencies.add_up, given, after=[counted])
    totals = number, summed.total("elements")
    weighed = work.stage("frequencies", frequencies.frequencies, [totals], after=[summed])
    digest = weighed.facts[0]["digest"]
    if recipe.ignore_common is None:
        recipe = replace(recipe, method=replace(recipe.method, frequencies=digest))  # type: ignore[type-var]
    else:
        recipe = replace(recipe, ignore_common=most, ignored=digest)
    work.shared = replace(work.shared, recipe=recipe, num_counted=number)
    return weighed


def _sketch(job: Job, weighed: list[Stage]) -> Stage:
    bits, checked = _counter_bits(job), job.num_checked > 0
    arguments = [
        (slice, number >= job.num_known, bits, counts_in_table(slice.num_bytes, bits), checked)
        for number, slice in enumerate(job.slices)
    ]
    return job.work.stage("sketch", sketching.sketch, arguments, after=weighed, on_device=True)


def _counter_bits(job: Job) -> int:
    return counter_bits(sum(slice.num_bytes for slice in job.slices), job.work.shared.task_memory)


def check_sketched(job: Job, sketched: Stage) -> None:
    """Refuse an input without a readable row, and wrong ids, before anything else is computed."""
    if sum(facts["documents"] for facts in sketched.facts[job.num_known :]) == 0:
        check_skipped(skipped_rows(job, sketched, of_known=False))
    extents = extents_in(job, sketched)
    _check_unique(job, sketched, extents, offsets_in(job, extents))
    type_of_ids(job, sketched)


def _check_unique(job: Job, sketched: Stage, extents: Sequence[Extent], offsets: Sequence[Offset]) -> None:
    """Raise InputError, as in memory, if an id stands for several documents of the input or of the reference set.

    Files of the stages "unique" and "known" are those of the stage "copies", of ids in place of documents: numbers
    within either set in place of ranks.
    """
    parts = [("unique", "input", job.num_known, len(job.slices))]
    for number, own in enumerate(job.of_sets[:-1]):
        name = f" {list(job.sets)[number]}" if job.sets else ""
        parts.append(("known" if number == 0 else f"known-{number}", f"reference set{name}", own.start, own.stop))
    for stage, what, first, stop in parts:
        if first == stop or not sketching.has_names(job.slices[first]):
            continue
        documents = [facts["documents"] for facts in sketched.facts[first:stop]]
        starts = tuple(itertools.accumulate(documents, initial=0))
        layout = Layout(starts, 0, len(job.partitions), ordered=True)
        arguments = [(sketched.names("named")[first:stop], layout)] * len(job.partitions)
        found = job.work.stage(stage, copies.copies, arguments, after=[sketched])
        if found.total("copies") == 0:
            continue
        number, *two = _first_repeated(job.work.place, found.names("ranges"), layout)
        slices, rows = (each.tolist() for each in layout.slice_of(np.array(two)))
        where = []
        for slice, row in zip(slices, rows, strict=True):
            where.append(_where(job, first + slice, row, extents[first + slice], offsets[first + slice]))
        own = type_of_text(sketched.facts[first + slices[0]]["id_type"])
        ids = load_column(job.work.place, [file_name("sketch", first + slices[0], "ids")], 0, "id", own)
        raise stands_for_several(what, ids[rows[0]].as_py(), number, where)


def _first_repeated(place: Place, names: list[str], layout: Layout) -> tuple[int, int, int]:
    """Return how many documents have the first id that comes again, and the numbers of the first two."""
    first, second, number = layout.num_rows, layout.num_rows, 0
    for part in range(layout.partitions):
        for batch in read_partition(place, names, part):
            numbers, representatives = (numpy_of(batch.column(name)) for name in ("rank", "representative"))
            if (least := int(representatives.min())) < first:
                first, second, number = least, layout.num_rows, 1
            if least == first:
                same = numbers[representatives == first]
                second, number = min(second, int(same.min())), number + len(same)
        if number:
            break
    return number, first, second


def _where(job: Job, number: int, row: int, extent: Extent, offset: Offset) -> str:
    """Return the file and the row of a document of a slice, in words."""
    slice = job.slices[number]
    if slice.source.format == "memory":
        return place(slice.open(extent)._passes, row)
    found = offset.places(results.places_of(job.work.shared.files("unique", 0), number, slice), extent)
    file = found["file"][row].as_py()
    sliced = next(each for each in slice.files if each.below == file)
    reader: Any = reader_of(sliced.kind)
    return f"{sliced.name} {reader.row_word} {found['row'][row].as_py()}"


def _rank(job: Job, sketched: Stage) -> tuple[Layout, list[Stage]]:
    """Return the layout of the documents, and the stages that rank them, if ranks are not numbers of documents."""
    starts = tuple(itertools.accumulate((facts["units"] for facts in sketched.facts), initial=0))
    ordered = ranking.ranks_are_numbers(job.recipe)
    layout = Layout(starts, starts[job.num_known], len(job.partitions), ordered)
    if (fewest := -(-(layout.num_rows**2) >> 62)) > layout.partitions:  # a pair of a range is told by 63 bits
        raise ParameterError(
            f"partitions {layout.partitions}: {layout.num_rows:,} documents need at least {fewest} partitions"
        )
    if ordered:
        return layout, []
    stage, mine = job.work.stage, range(job.num_known, len(job.slices))
    categories = _categories(job, sketched)
    given = [(number, layout, categories) for number in mine]
    sampled = stage("sample", ranking.sample, given, after=[sketched])
    chosen = stage("choose", ranking.choose, [(len(mine), layout)], after=[sampled])
    spread = stage("spread", ranking.spread, given, after=[sketched, chosen])
    sizes = [sum(each) for each in zip(*(facts["rows"] for facts in spread.facts), strict=True)]
    firsts = list(itertools.accumulate(sizes, initial=layout.num_known))[: len(job.partitions)]
    ranked = stage("order", ranking.order, [(first, len(mine), layout) for first in firsts], after=[spread])
    rows = stage("rows", ranking.rows, [(layout,)] * len(job.slices), after=[ranked])
    return layout, [rows, stage("rank", ranking.rank, [(layout,)] * len(job.partitions), after=[ranked])]


def _categories(job: Job, sketched: Stage) -> dict[str, list[str]]:
    """Return the order of the values of each column that decides and has ordered categories."""
    found = {}
    for name in keep_columns(job.recipe.keep):
        mine = [facts.get("categories", {}).get(name) for facts in sketched.facts[job.num_known :]]
        if orders := [order for order in mine if order]:
            found[name] = one_order(orders, name)
    return found


def remarks(job: Job, sketched: Stage) -> list[str]:
    """Return a sentence for each column that decides, is compared as text and holds numbers."""
    ordered = _categories(job, sketched)
    extents = [extent_in(facts) for facts in sketched.facts]
    mine = list(zip(sketched.facts, extents, offsets_in(job, extents), strict=True))[job.num_known :]
    found = []
    for name in keep_columns(job.recipe.keep):
        if name not in ordered:
            seen = [(SeenStrings(*facts["strings"][name]), extent, offset) for facts, extent, offset in mine]
            found.append(remark(name, [offset.strings(strings, extent) for strings, extent, offset in seen]))
    return [each for each in found if each is not None]


def _by_keys(job: Job, layout: Layout, copied: Stage, number: int, settled: list[Stage]) -> Stage:
    """Candidates of a method that sketches."""
    tables = len(job.recipe.method.buckets(number).masks)
    per_table, tasks = table_parts(tables, number, len(job.partitions), job.work.shared.task_memory)
    given = copied.names("slices"), layout, number, per_table
    keys = job.work.stage("keys", candidates.keys, [given] * len(job.slices), after=settled)
    parts = tables * per_table
    cuts = [parts * task // tasks for task in range(tasks + 1)]
    arguments = [(keys.names("entries"), bounds, layout, number, per_table) for bounds in itertools.pairwise(cuts)]
    return job.work.stage("collide", candidates.collide_keys, arguments, after=[keys], on_device=True)


def _by_shingles(job: Job, layout: Layout, sketched: Stage, copied: Stage, settled: list[Stage]) -> Stage:
    """Candidates of a method that compares shingles alone."""
    stage, names, slices = job.work.stage, copied.names("slices"), job.slices
    ranges = candidates.ranges_of(len(job.partitions))
    bits = _counter_bits(job)
    tables = [counts_in_table(slice.num_bytes, bits) for slice in slices]
    counters, beyond = (list(itertools.compress(sketched.names(what), tables)) for what in ("counters", "beyond"))
    slots = list(itertools.compress(sketched.names("slots"), [not each for each in tables]))
    merged = stage("merge", candidates.merge, [(counters, beyond, slots, bits)] * ranges, after=[sketched])
    text_bytes = sum(slice.num_bytes for slice in slices)
    tasks = posting_tasks(len(slices), text_bytes, bits, len(job.partitions))
    cuts = itertools.pairwise(len(slices) * task // tasks for task in range(tasks + 1))
    arguments = [(first, slices[first:stop], names, layout) for first, stop in cuts]
    after = [*settled, merged]
    posted = stage("postings", candidates.postings, arguments, after=after, on_device=True)
    files, after = posted.names("postings"), [posted]
    if job.recipe.method.measure.directed:
        merged_marks = stage("marks", candidates.merge_marks, [(posted.names("marks"),)] * ranges, after=[posted])
        after = [*settled, merged, merged_marks]
        marked = [(*given, merged_marks.names("marks")) for given in arguments]
        more = stage("containers", candidates.postings, marked, after=after, on_device=True)
        files, after = [*files, *more.names("postings")], [posted, more]
    given_ranges = [(files, layout)] * len(job.partitions)
    return stage("collide", candidates.collide_shingles, given_ranges, after=after, on_device=True)


def _answer_requests(job: Job, name: str, settled: list[Stage], asking: Stage, *, keys: bool = False) -> Stage:
    """Return the stage in which slices answer what `asking` requests: shingles of documents, or their keys."""
    stage, after, slices, names = job.work.stage, [settled[0], asking], job.slices, asking.names("wanted")
    if keys:
        return stage(name, pairs.keys, [(names,)] * len(slices), after=after)
    return stage(name, pairs.sets, [(names, slice) for slice in slices], after=after, on_device=True)


def _verify(job: Job, layout: Layout, found: Stage, settled: list[Stage]) -> tuple[Stage, Stage]:
    """The stages that make candidates distinct, and that verify them."""
    arguments = [(found.names("found"), layout)] * len(job.partitions)
    distinct = job.work.stage("pairs", pairs.pairs, arguments, after=[found, *settled])
    keys = not job.recipe.verifies
    answered = _answer_requests(job, "sets", settled, distinct, keys=keys)
    names = answered.names("keys" if keys else "sets")
    arguments = [(names, layout)] * len(job.partitions)
    return distinct, job.work.stage("verify", pairs.verify, arguments, after=[distinct, answered], on_device=True)


def _join_crowd(job: Job, layout: Layout, found: Stage, verified: Stage, settled: list[Stage]) -> Stage:
    """The pairs of crowded documents with one another."""
    arguments = [(found.names("crowded"), verified.names("right"), layout)]
    asking = job.work.stage("members", crowds.members, arguments, after=[found, verified, *settled])
    answered = [_answer_requests(job, "crowd-sets", settled, asking)]
    if isinstance(job.recipe.method, Sketch):
        answered.append(_answer_requests(job, "crowd-keys", settled, asking, keys=True))
    keys = answered[-1].names("keys")
    given = answered[0].names("sets"), keys, layout, job.max_comparisons
    return job.work.stage("crowd", crowds.crowd, [given], after=[asking, *answered], on_device=True)


def _decide(
    job: Job, layout: Layout, copied: Stage, verified: Stage, crowd: Stage | None, settled: list[Stage]
) -> Stage:
    """Who is kept, and which document stands for each that is not."""
    known = [verified, *([] if crowd is None else [crowd])]
    by_left = [name for each in known for name in each.names("left")]
    by_right = [] if crowd is None else crowd.names("right")
    decided = job.work.stage("decide", naming.decide, [(by_right, layout)], after=known)
    arguments = [(by_left, by_right, copied.names("ranges"), layout)] * len(job.partitions)
    return job.work.stage("name", naming.name, arguments, after=[decided, *known, *settled])


def _write(
    job: Job, layout: Layout, sketched: Stage, copied: Stage, named: Stage, settled: list[Stage]
) -> tuple[Stage, Stage, Stage]:
    """Write the result; returns the stages that listed pairs, and that wrote these and documents."""
    stage, ranges, slices = job.work.stage, len(job.partitions), len(job.slices)
    given = named.names("listed"), copied.names("ranges"), named.names("grouped"), job.writing.counts, layout
    listed = stage("listed", results.listed, [given] * ranges, after=[named, *settled])
    near = named.names("near") if layout.num_known else []
    asking = stage("fates", results.fates, [(named.names("fates"), near, layout)] * slices, after=[named, *settled])
    wanted = [*listed.names("wanted"), *asking.names("wanted")]
    extents = [extent_in(facts) for facts in sketched.facts]
    offsets = offsets_in(job, extents)
    kind, against = type_of_ids(job, sketched), known_sets(job, layout)
    claims = asking.names("claims") if job.recipe.unit.divides else []
    given_slices = [(*each, wanted, claims, kind, layout) for each in zip(job.slices, offsets, strict=True)]
    answered = stage("ids", results.ids, given_slices, after=[sketched, listed, asking])
    ids = results.AnsweredIds(answered.names("ids"), kind, against)
    given_ranges = [(ids, facts["largest"][0], layout) for facts in listed.facts]
    tables = stage("tables", results.tables, given_ranges, after=[listed, answered])
    mine, how = range(job.num_known, slices), how_written(job, extents[job.num_known :])
    arguments = [
        (number, job.slices[number], extents[number], offsets[number], ids, layout, each)
        for number, each in zip(mine, how, strict=True)
    ]
    written = stage("write", results.write, arguments, after=[named, answered, *settled])
    return listed, tables, written


def how_written(job: Job, extents: Sequence[Extent]) -> list[results.Written]:
    """Return how the kept rows of each slice of the input are written; `extents` has an extent for each."""
    writing, mine = job.writing, job.slices[job.num_known :]
    if not writing.rewrites:
        return [results.Written(writing)] * len(mine)
    schema = job.schema
    if not all(extent.are_strings for extent in extents):
        schema = TextFiles.schema
    if job.infers_columns:
        found = job.work.stage("columns", results.columns, [(slice,) for slice in mine])
        schemas = [schema_of_text(facts["schema"]) for facts in found.facts]
        as_strings = all(facts["as_strings"] for facts in found.facts)
        found_types = united(schemas, mine[0].covers, as_strings)
        schema = nulls_as_strings(found_types)
    kind = job.writing.output_format or ""
    counted = [len(slice.kept_names) for slice in mine]
    if mine[0].source.format == "text":
        names = [f"part-{number:05}{OUTPUT_FORMATS[kind]}" for number in range(len(mine))]
        counted = [1] * len(mine)
    else:
        names = new_names([name for slice in mine for name in slice.kept_names], kind)
    cuts = list(itertools.accumulate(counted, initial=0))
    return [results.Written(writing, tuple(names[a:b]), schema) for a, b in itertools.pairwise(cuts)]


def _sampled(job: Job, layout: Layout, found: Stage, listed: Stage, settled: list[Stage]) -> Stage:
    """Check the recall by a sample; returns the stage that says what was found."""
    stage, copies = job.work.stage, settled[-1].names("slices")
    mine = range(job.num_known, len(job.slices))
    of_mine = [(number, copies, layout, job.num_checked) for number in mine]
    proposed = stage("draw", checking.draw, of_mine, after=settled)
    given = proposed.names("drawn"), layout, job.num_checked
    drawn = stage("drawn", checking.drawn, [given], after=[proposed, *settled])
    waiting = _answer_requests(job, "drawn-sets", settled, drawn)
    sampled = stage("sampled", checking.sampled, [(waiting.names("sets"),)], after=[drawn, waiting], on_device=True)
    of_slices = [(slice, copies, layout) for slice in job.slices]
    near = stage("near", checking.near, of_slices, after=[sampled, *settled], on_device=True)
    nearest = stage("nearest", checking.nearest, [(near.names("near"), layout)], after=[sampled, near, *settled])
    waiting = _answer_requests(job, "near-sets", settled, nearest)
    keys = []
    if isinstance(job.recipe.method, Sketch):
        keys.append(_answer_requests(job, "near-keys", settled, nearest, keys=True))
    crowded = found.names("crowded") if job.recipe.method.measure.weighted else []  # others were joined
    files = waiting.names("sets"), [name for each in keys for name in each.names("keys")], crowded
    after = [sampled, nearest, waiting, *keys, found, listed]
    return stage("check", checking.check, [(*files, listed.names("pairs"), layout)], after=after, on_device=True)


def extents_in(job: Job, read: Stage) -> list[Extent]:
    """Return the extents of all slices as their first reading found them.

    Raises
    ------
    InputError
        If text files are not UTF-8 and were to become lines of JSON.
    """
    extents = [extent_in(facts) for facts in read.facts]
    for slice, extent in zip(job.slices[job.num_known :], extents[job.num_known :], strict=True):
        if (job.writing.output_format or "").startswith("jsonl") and not extent.are_strings:
            raise not_for_json(f"{slice.covers}: there is text that is not UTF-8")
    return extents


def extent_in(facts: dict[str, Any]) -> Extent:
    """Return the extent of a slice as its reading found it."""
    plain = dict(facts["extent"])
    left_out = tuple(tuple(tuple(run) for run in part) for part in plain.pop("left_out"))
    integers = tuple(tuple(each) for each in plain.pop("integers"))
    documents, places = tuple(plain["num_documents"]), tuple(plain["num_places"])
    return Extent(documents, places, left_out, plain["num_skipped"], integers, plain["are_strings"])


def offsets_in(job: Job, extents: list[Extent]) -> list[Offset]:
    """The offset of each slice; rows of each reference set are numbered by themselves."""
    parts = [(job.slices[own.start : own.stop], extents[own.start : own.stop]) for own in job.of_sets]
    return [offset for slices, found in parts for offset in offsets_of(slices, found)]


def type_of_ids(job: Job, sketched: Stage) -> pa.DataType:
    """The type of all ids.

    Raises
    ------
    InputError
        If those of the input and of the reference set have none in common.
    """
    known, mine = (
        [pa.array(facts.get("id_span", [None]), type_of_text(facts["id_type"])) for facts in part if "id_type" in facts]
        for part in (sketched.facts[: job.num_known], sketched.facts[job.num_known :])
    )
    if not mine:
        source = job.slices[-1].source
        mine = [pa.nulls(1, pa.int64() if source.key is None else source.types.field(source.key).type)]
    ids = _of_one_type(mine)
    if known:
        ids, _ = one_type_of_ids(ids, one_type_of_sets(known) if job.sets else _of_one_type(known))
    return ids.type


def _of_one_type(ids: list[pa.Array]) -> pa.Array:
    """Join ids of several slices of one source, in the type that all its ids have."""
    arrays = one_integer_type(ids)
    return pa.concat_arrays([each.cast(arrays[0].type) for each in arrays])


def known_sets(job: Job, layout: Layout) -> NamedSets | None:
    """Return the reference sets, by the numbers of their units; None if there are none."""
    if not job.num_known:
        return None
    return NamedSets(tuple(job.sets), tuple(layout.starts[own.stop] for own in job.of_sets[:-1]) if job.sets else ())


def skipped_rows(job: Job, sketched: Stage, *, of_known: bool = True) -> pa.Table | None:
    """The rows that could not be read, of the input and then of the reference set; None unless they are skipped."""
    if not job.slices[-1].source.policy.leaves_out:
        return None
    extents, found = [extent_in(facts) for facts in sketched.facts], []
    offsets, names, known = offsets_in(job, extents), sketched.names("skipped"), range(job.num_known)
    for number in [*range(job.num_known, len(job.slices)), *(known if of_known else ())]:
        tables = tables_of(job.work.place, [names[number]], 0)
        found += [offsets[number].skipped(table, extents[number]) for table in tables]
    return pa.concat_tables(found)
