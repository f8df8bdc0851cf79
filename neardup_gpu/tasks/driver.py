"""dedup_in_tasks: the order of the stages, and the report of what they found.

The driver holds names of files and counts, and nothing for each document.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import shutil
import socket
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import __version__, checks
from ..definitions import versions
from ..documents import open_documents
from ..documents.slices import slices_of
from ..engine.clock import Clock, Progress, with_bars
from ..engine.memory import parse_size
from ..engine.settings import Engine, as_engine
from ..errors import InputError, OutputError, ParameterError
from ..log import log
from ..recipe import Recipe
from ..report import count
from ..store.outputs import new_folder
from ..store.places import Place
from . import candidates, copies, crowds, naming, pairs, ranking, results, sketching
from .columns import name_of
from .layout import Layout
from .scale_out import ScaleOut
from .work import Shared, Stage, Work

if TYPE_CHECKING:
    from ..documents import Documents
    from ..documents.slices import Slice
    from .contract import Workers


@dataclass(frozen=True)
class Job:
    """A job while it runs.

    Parameters
    ----------
    work : Work
    slices : list of Slice
        Of all documents, a reference set before the input.
    num_known : int
        Slices of the reference set.
    max_comparisons : int, optional
    """

    work: Work
    slices: list[Slice]
    num_known: int
    max_comparisons: int | None

    @property
    def recipe(self) -> Recipe:
        return self.work.shared.recipe

    @property
    def partitions(self) -> range:
        return range(self.work.shared.partitions)


def run(job: Job) -> Made:
    """Do all stages, in their order."""
    sketched = _sketch(job)
    layout, order = _rank(job, sketched)
    settled = [sketched, *order]
    copied = _copies(job, "copies", "hashes", layout, settled)
    same = copied if job.recipe.verifies else _copies(job, "same", "same", layout, settled)
    settled.append(same)
    number = sketched.total("present") - same.total("copies")
    propose = _by_keys if job.recipe.method.sketches else _by_shingles
    found = propose(job, layout, sketched, same, number, settled)
    verified = _verify(job, layout, found, settled)
    crowd = _join_crowd(job, layout, found, verified, settled)
    listed, written = _decide(job, layout, sketched, same, verified, crowd, settled)
    return Made(layout, number, sketched, copied, found, verified, crowd, listed, written)


class Made(NamedTuple):
    """The stages whose facts make the report."""

    layout: Layout
    num_representatives: int
    sketched: Stage
    copied: Stage
    found: Stage
    verified: Stage
    crowd: Stage | None
    listed: Stage
    written: Stage


def _sketch(job: Job) -> Stage:
    arguments = [(slice, number >= job.num_known) for number, slice in enumerate(job.slices)]
    covers = [slice.describe() for slice in job.slices]
    return job.work.stage("sketch", sketching.sketch, arguments, covers=covers, on_device=True)


def _rank(job: Job, sketched: Stage) -> tuple[Layout, list[Stage]]:
    """Where documents lie, and the stages that say their ranks, where these are not numbers."""
    documents = [facts["documents"] for facts in sketched.facts]
    starts = tuple(itertools.accumulate(documents, initial=0))
    ordered = ranking.ranks_are_numbers(job.recipe)
    layout = Layout(starts, starts[job.num_known], len(job.partitions), ordered)
    if ordered:
        return layout, []
    stage, mine = job.work.stage, range(job.num_known, len(job.slices))
    sampled = stage("sample", ranking.sample, [(number, layout) for number in mine], after=[sketched])
    chosen = stage("choose", ranking.choose, [(len(mine), layout)], after=[sampled])
    spread = stage("spread", ranking.spread, [(number, layout) for number in mine], after=[sketched, chosen])
    sizes = [sum(each) for each in zip(*(facts["rows"] for facts in spread.facts), strict=True)]
    firsts = list(itertools.accumulate(sizes, initial=layout.num_known))[: len(job.partitions)]
    ranked = stage("order", ranking.order, [(first, len(mine), layout) for first in firsts], after=[spread])
    rows = stage("rows", ranking.rows, [(layout,)] * len(job.slices), after=[ranked])
    return layout, [rows, stage("rank", ranking.rank, [(layout,)] * len(job.partitions), after=[ranked])]


def _copies(job: Job, name: str, what: str, layout: Layout, settled: list[Stage]) -> Stage:
    arguments = [(settled[0].names(what), layout)] * len(job.partitions)
    return job.work.stage(name, copies.copies, arguments, after=settled)


def _by_keys(
    job: Job, layout: Layout, sketched: Stage, same: Stage, number: int, settled: list[Stage]
) -> Stage:
    """Candidates of a method that sketches."""
    tables = len(job.recipe.method.buckets(number).masks)
    fits = max(1, job.work.shared.task_memory // (4 * colliding.ENTRY_BYTES))
    per_table = max(-(-len(job.partitions) // tables), -(-number // fits))
    given = same.names("slices"), layout, number, per_table
    keys = job.work.stage("keys", candidates.keys, [given] * len(job.slices), after=settled)
    parts = tables * per_table
    tasks = min(parts, max(len(job.partitions), -(-parts * number // (tables * fits))))
    cuts = [parts * task // tasks for task in range(tasks + 1)]
    arguments = [
        (keys.names("entries"), bounds, layout, number, per_table) for bounds in itertools.pairwise(cuts)
    ]
    return job.work.stage("collide", candidates.collide_keys, arguments, after=[keys], on_device=True)


def _by_shingles(
    job: Job, layout: Layout, sketched: Stage, same: Stage, number: int, settled: list[Stage]
) -> Stage:
    """Candidates of a method that compares shingles alone."""
    stage, names, slices = job.work.stage, same.names("slices"), job.slices
    bits = candidates.counters_of(job.work.shared, sketched.total("waiting"))
    tables = min(len(slices), len(job.partitions))
    cuts = [len(slices) * task // tables for task in range(tables + 1)]
    arguments = [
        ([(each, slices[each]) for each in range(*bounds)], names, layout, bits) for bounds in itertools.pairwise(cuts)
    ]
    counted = stage("count", candidates.count, arguments, after=settled, on_device=True, label="index")
    ranges = candidates.ranges_of(len(job.partitions))
    given = counted.names("counters"), counted.names("beyond")
    merged = stage("merge", candidates.merge, [given] * ranges, after=[counted], label="index")
    arguments = [(slice, names, layout) for slice in slices]
    after = [*settled, merged]
    posted = stage("postings", candidates.postings, arguments, after=after, on_device=True, label="index")
    files, after = posted.names("postings"), [posted]
    if job.recipe.method.measure.directed:
        marked = stage("marks", candidates.merge_marks, [(posted.names("marks"),)] * ranges, after=[posted])
        after = [*settled, merged, marked]
        more = stage("containers", candidates.containers, arguments, after=after, on_device=True, label="index")
        files, after = [*files, *more.names("postings")], [posted, more]
    arguments = [(files, layout)] * len(job.partitions)
    return stage("collide", candidates.collide_shingles, arguments, after=after, on_device=True)


def _asked(job: Job, name: str, names: list[str], settled: list[Stage], asking: Stage, *, keys: bool) -> Stage:
    """The stage in which slices answer who asked for documents: with their keys, or with what waits of them."""
    if keys:
        return job.work.stage(name, pairs.keys, [(names,)] * len(job.slices), after=[settled[0], asking])
    arguments = [(names, slice) for slice in job.slices]
    return job.work.stage(name, pairs.sets, arguments, after=[settled[0], asking], on_device=not job.work.shared.spool)


def _verify(job: Job, layout: Layout, found: Stage, settled: list[Stage]) -> Stage:
    """The pairs of all candidates that are verified, or likely where nothing is."""
    arguments = [(found.names("found"), layout)] * len(job.partitions)
    distinct = job.work.stage("pairs", pairs.pairs, arguments, after=[found, *settled])
    keys = not job.recipe.verifies
    answered = _asked(job, "sets", distinct.names("wanted"), settled, distinct, keys=keys)
    names = answered.names("keys" if keys else "sets")
    arguments = [(names, layout)] * len(job.partitions)
    return job.work.stage("verify", pairs.verify, arguments, after=[distinct, answered], on_device=True)


def _join_crowd(job: Job, layout: Layout, found: Stage, verified: Stage, settled: list[Stage]) -> Stage | None:
    """The pairs of crowded documents with one another; None where there are none, or crowds are not joined."""
    if not job.recipe.verifies or job.recipe.method.measure.weighted or not found.total("crowded"):
        return None
    arguments = [(found.names("crowded"), verified.names("left"), layout)]
    asking = job.work.stage("members", crowds.members, arguments, after=[found, verified, *settled], label="join")
    names = asking.names("wanted")
    answered = [_asked(job, "crowd-sets", names, settled, asking, keys=False)]
    if job.recipe.method.sketches:
        answered.append(_asked(job, "crowd-keys", names, settled, asking, keys=True))
    keys = answered[-1].names("keys")
    arguments = [(answered[0].names("sets"), keys, layout, job.max_comparisons)]
    return job.work.stage("crowd", crowds.crowd, arguments, after=[asking, *answered], on_device=True, label="join")


def _decide(
    job: Job, layout: Layout, sketched: Stage, same: Stage, verified: Stage, crowd: Stage | None, settled: list[Stage]
) -> tuple[Stage, Stage]:
    """Decide, and write the result; returns the stages that listed pairs and that wrote documents."""
    stage, ranges, slices = job.work.stage, len(job.partitions), len(job.slices)
    known = [verified, *([] if crowd is None else [crowd])]
    by_left = [name for each in known for name in each.names("left")]
    decided = stage("decide", naming.decide, [(by_left, layout)], after=known)
    by_right = [] if crowd is None else crowd.names("right")
    given = by_left, by_right, same.names("ranges"), layout
    named = stage("name", naming.name, [given] * ranges, after=[decided, *known, *settled], label="decide")
    given = named.names("listed"), same.names("ranges"), named.names("grouped"), layout
    listed = stage("listed", results.listed, [given] * ranges, after=[named, *settled], label="decide")
    asking = stage("fates", results.fates, [(named.names("fates"), layout)] * slices, after=[named, *settled])
    kind = _common_type(job, sketched)
    firsts = _first_rows(job, sketched)
    wanted = [*listed.names("wanted"), *asking.names("wanted")]
    arguments = [(wanted, kind, first) for first in firsts]
    after = [sketched, listed, asking]
    answered = stage("ids", results.ids, arguments, after=after, label="write")
    names, against = answered.names("ids"), job.num_known > 0
    arguments = [(names, kind, against, layout)] * ranges
    stage("tables", results.tables, arguments, after=[listed, answered], label="write")
    lines = _first_places(job, sketched)
    mine = range(job.num_known, slices)
    arguments = [
        (number, job.slices[number], names, kind, firsts[number], lines[number], against, layout) for number in mine
    ]
    covers = [job.slices[number].describe() for number in mine]
    written = stage("write", results.write, arguments, after=[named, answered, *settled], covers=covers)
    return listed, written
