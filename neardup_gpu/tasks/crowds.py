"""The stages for crowded documents, which are joined with one another in one task, as in memory.

    members    one task: the crowded documents, and all that verified pairs connect with them, through others too
    crowd      one task: their pairs that decide and that are listed, and perhaps some more

What a crowd decides depends on its verified pairs with others, and on theirs, so those come along; of crowded documents
alone the shingles are needed. Both take memory for each member, and for each verified pair of members, and that is
bounded by `--task-memory`; pairs that are found are not held beyond a share of it (`partner_blocks.py`).
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from neardup_gpu.kernels import greedy_stream

from ..data import NO_PAIRS, Pairs
from ..engine.clock import Clock
from ..errors import ResourceError
from ..methods.contract import Candidates, Sketch
from ..report import count, size
from ..stages.joining import SpooledRows
from ..stages.partner_blocks import BlockSearch, pairs_a_row
from ..stages.partners import JoinedRows, JoinLimits, find_partners, partners_of
from ..stages.verification import Verified
from ..store.exchange import read_arrays
from .candidates import CROWDED
from .columns import AT_ONCE, load, rows_of, save
from .deciding import RankPairs, are_set, decide_by_components, set_within
from .layout import Layout
from .pairs import VERIFIED, answered_facts, answered_keys, answered_sets, ask
from .work import WAITING_BESIDE, Files, file_name

MEMBERS = pa.schema([("rank", pa.int64()), ("crowded", pa.bool_())])

MEMBER_BYTES = 256
"""Approximate memory of a member while a crowd is joined, without its postings and its pairs."""

PAIR_BYTES = 160
"""Memory that a verified pair of a member takes meanwhile."""

FOUND_BYTES = 160
"""Memory of a further pair, up to a quarter of the task's memory. More pairs are found block by block of the members,
and are written to the files of the task."""

CANDIDATE_BYTES = 192
"""Memory that a candidate takes until it is verified, up to an eighth of the task's."""


def members(files: Files, crowded: list[str], verified: list[str], layout: Layout) -> dict[str, Any]:
    """Find all members, save their verified pairs, and request the shingles of the crowded members.

    Memory: three bits for each rank of the job, 40 bytes for each member, and up to a quarter of the task's for pairs
    that may connect members. Too many members are refused.
    """
    are_crowded = np.zeros(-(-layout.num_rows // 64), np.uint64)
    for (some,) in rows_of(files.place, crowded, 0, CROWDED.names):
        greedy_stream.mark(are_crowded, some)
    are_members, num_pairs = are_crowded, 0
    all_pairs = partial(rows_of, files.place, verified, 0, VERIFIED.names)
    if are_crowded.any():
        links = ((left, right) for left, right, _ in all_pairs())
        with tempfile.TemporaryDirectory(dir=files.shared.temporary, prefix="neardup-") as folder:
            most_bytes = files.shared.task_memory // 4
            are_members = connected(are_crowded, links, layout.num_rows, most_bytes, Path(folder))
        num_pairs = sum(int(are_set(are_members, left).sum()) for left, *_ in all_pairs())
    number = sum(len(some) for some in _set(are_members, layout))
    needed = MEMBER_BYTES * number + PAIR_BYTES * num_pairs
    if needed > files.shared.task_memory:
        raise ResourceError(
            f"{count(number, 'document')} share shingles with too many others to be joined by ranges, or have verified "
            f"pairs with such ones, {count(num_pairs, 'pair')} in all, and take about {size(needed)} of memory in one "
            "task; pass a larger task_memory"
        )
    ranks = np.concatenate([np.empty(0, np.int64), *_set(are_members, layout)])
    is_crowded = are_set(are_crowded, ranks)
    save(files, "members", {"rank": ranks, "crowded": is_crowded})
    with files.exchange("verified", VERIFIED, 1) as writer:
        for left, right, resemblance in all_pairs():
            mine = are_set(are_members, left)
            columns = {"left": left[mine], "right": right[mine], "resemblance": resemblance[mine]}
            writer.add_to(0, columns)
    ask(files, ranks[is_crowded], layout)
    return {"members": number, "crowded": int(is_crowded.sum())}


def connected(are_crowded: np.ndarray, pairs: RankPairs, num_rows: int, most_bytes: int, folder: Path) -> np.ndarray:
    """Return the bits of all ranks that pairs connect with a crowded one, through others too.

    Parameters
    ----------
    are_crowded : array of uint64
        A bit for each rank, which is set for crowded ones.
    pairs, num_rows, most_bytes, folder
        As for `decide_by_components`.
    """
    found = are_crowded.copy()
    _, labels = decide_by_components(pairs, num_rows, 0, most_bytes, folder)
    parts = [labels[first : first + AT_ONCE] for first in range(0, len(labels), AT_ONCE)]
    for ranks, firsts in (np.array(part).T for part in parts):
        greedy_stream.mark(found, firsts[are_set(are_crowded, ranks)])
    for ranks, firsts in (np.array(part).T for part in parts):
        greedy_stream.mark(found, ranks[are_set(found, firsts)])
    return found


def _set(words: np.ndarray, layout: Layout) -> Iterator[np.ndarray]:
    """The ranks whose bits are set, some at a time."""
    for first in range(0, layout.num_rows, AT_ONCE):
        yield set_within(words, first, min(first + AT_ONCE, layout.num_rows))


def crowd(
    files: Files, sets: list[str], keys: list[str], layout: Layout, max_comparisons: int | None
) -> dict[str, Any]:
    """Join the crowded documents with one another; `sets` and `keys` are the files of what was answered."""
    shared = files.shared
    recipe, statistics = shared.settled()
    of = load(files.place, file_name("members", 0, "members"), MEMBERS)
    pairs = read_arrays(files.place, [file_name("members", 0, "verified")], 0, VERIFIED)
    ranks, crowded = of["rank"], of["crowded"]
    left, right = (np.searchsorted(ranks, pairs.pop(name)) for name in ("left", "right"))
    order = np.lexsort((right, left))
    explicit = Verified(Pairs(left[order], right[order]), pairs.pop("resemblance")[order])
    del left, right, order
    measure = recipe.method.measure.knowing(statistics)
    with contextlib.ExitStack() as stack:
        by_left = stack.enter_context(files.exchange("left", VERIFIED, layout.partitions, WAITING_BESIDE))
        by_right = stack.enter_context(files.exchange("right", VERIFIED, layout.partitions, WAITING_BESIDE))

        def hand_on(verified: Verified) -> None:
            for first in range(0, len(verified.pairs), AT_ONCE):
                some = slice(first, first + AT_ONCE)
                columns = {
                    "left": ranks[verified.pairs.left[some]],
                    "right": ranks[verified.pairs.right[some]],
                    "resemblance": verified.resemblance[some],
                }
                by_left.add(layout.range_of(columns["left"]), columns)
                by_right.add(layout.range_of(columns["right"]), columns)

        runtime = stack.enter_context(shared.start())
        spool = stack.enter_context(runtime.spool(shared.temporary))
        answered, places = answered_sets(files, sets, 0, spool, runtime)
        rows = np.zeros(len(ranks), np.int64)
        rows[np.searchsorted(ranks, answered)] = places
        facts: dict[str, Any] = {"num_tokens": np.ones(len(ranks), np.int64)}
        for name, column in answered_facts(files, sets, 0).items():
            facts[name] = np.ones(len(ranks), np.int64)
            facts[name][np.searchsorted(ranks, answered)] = column
        of_keys = None
        if isinstance(recipe.method, Sketch):
            answered, some = answered_keys(files, keys, 0)
            of_keys = np.zeros((len(ranks), *some.shape[1:]), np.uint64)
            of_keys[np.searchsorted(ranks, answered)] = some
        most = shared.task_memory // (4 * FOUND_BYTES)
        fits = len(explicit.pairs) + len(ranks) * pairs_a_row(recipe.max_partners, len(ranks)) <= most
        find: Any = find_partners if fits else BlockSearch(max(1, most), hand_on)
        found = partners_of(
            JoinedRows(of_keys, ranks < layout.num_known, SpooledRows(spool, rows), known=explicit, **facts),
            Candidates(NO_PAIRS, 0, 0, crowded),
            recipe,
            measure,
            Clock(None),
            runtime,
            JoinLimits(max_comparisons, max(1, shared.task_memory // (8 * CANDIDATE_BYTES))),
            find,
        )
        further = found.num_unlisted
        if find is find_partners:
            further += len(found.listed.pairs) - len(explicit.pairs)
            hand_on(found.listed)
            hand_on(found.deciding)
            hand_on(found.near)
    return {
        "candidates": found.num_candidates,
        "looks": found.looks.tolist(),
        "further": further,
        "counted": found.counted,
    }
