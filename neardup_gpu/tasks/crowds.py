"""The stages for crowded documents, which are joined with one another in one task, as in memory.

    members    one task: the crowded documents, and all that verified pairs connect with them, through others too
    crowd      one task: their pairs that decide and that are listed, and perhaps some more

What a crowd decides depends on its verified pairs with others, and on theirs, so those come along; of crowded documents
alone the shingles are needed. Both take memory for each member, and for each verified pair of members, and that is
bounded by `--task-memory`; pairs that are found are not held beyond a share of it (`partner_blocks.py`).
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from neardup_gpu.kernels import components, greedy_stream

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
from .deciding import are_set, renumbered, set_within
from .layout import Layout
from .pairs import VERIFIED, answered_facts, answered_keys, answered_sets, ask
from .work import WAITING_BESIDE, Files, file_name

MEMBERS = pa.schema([("rank", pa.int64()), ("crowded", pa.bool_())])

MEMBER_BYTES = 256
"""Approximate memory of a member while a crowd is joined, without its postings and its pairs."""

PAIR_BYTES = 160
"""Memory that a verified pair of a member takes meanwhile."""

LINK_BYTES = 128
"""Memory that a verified pair takes while it is decided whether it connects members."""

FOUND_BYTES = 160
"""Memory of a further pair, up to a quarter of the task's memory. More pairs are found block by block of the members,
and are written to the files of the task."""

CANDIDATE_BYTES = 192
"""Memory that a candidate takes until it is verified, up to an eighth of the task's."""


def members(files: Files, crowded: list[str], verified: list[str], layout: Layout) -> dict[str, Any]:
    """Find all members, save their verified pairs, and request the shingles of the crowded members.

    Memory: two bits for each rank of the job, 40 bytes for each member, and up to a quarter of the task's for pairs
    that may connect members. Too many members are refused.
    """
    are_crowded = np.zeros(-(-layout.num_rows // 64), np.uint64)
    for (some,) in rows_of(files.place, crowded, 0, CROWDED.names):
        greedy_stream.mark(are_crowded, 0, some)
    are_members = are_crowded.copy()
    num_pairs = 0
    if are_crowded.any():
        _connect(are_members, partial(_pairs, files, verified, layout), files.shared.task_memory // (4 * LINK_BYTES))
        num_pairs = sum(int(are_set(are_members, left).sum()) for left, *_ in _pairs(files, verified, layout))
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
        for left, right, resemblance in _pairs(files, verified, layout):
            mine = are_set(are_members, left)
            columns = {"left": left[mine], "right": right[mine], "resemblance": resemblance[mine]}
            writer.add_to(0, columns)
    ask(files, ranks[is_crowded], layout)
    return {"members": number, "crowded": int(is_crowded.sum())}


def _connect(are_members: np.ndarray, read: Callable[[], Iterable[list[np.ndarray]]], most: int) -> None:
    """Set the bits of all ranks that pairs connect with a member, through others too.

    Pairs are read once if their forest fits: the pairs that connect ranks as all pairs do, fewer than there are ranks
    with pairs. Otherwise it is let go of whenever it is too large, and all pairs are read again until nothing changes.

    Parameters
    ----------
    are_members : array of uint64
        A bit for each rank, which is set for members.
    read : callable
        Returns (left, right, ...) of all pairs, some at a time.
    most : int
        Pairs to hold at once, about.
    """
    whole = False
    while not whole:
        whole, grown = True, False
        held: list[tuple[np.ndarray, np.ndarray]] = []
        number = 0
        for some in itertools.chain(read(), [None]):
            if some is not None:
                left, right = some[:2]
                apart = ~(are_set(are_members, left) & are_set(are_members, right))
                held.append((left[apart], right[apart]))
                number += len(held[-1][0])
            if held and (some is None or number > most):
                new, *forest = _forest(are_members, *map(np.concatenate, zip(*held, strict=True)))
                greedy_stream.mark(are_members, 0, new)
                grown |= bool(len(new))
                fits = 2 * len(forest[0]) <= most
                whole &= fits
                held = [(forest[0], forest[1])] if fits else []
                number = len(forest[0]) if fits else 0
        whole |= not grown


def _forest(are_members: np.ndarray, left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the ranks that pairs connect with a member and that are not members yet, and a forest of the others."""
    ranks, at = renumbered(np.concatenate([left, right]))
    label = components.cpu(len(ranks), at[: len(left)].copy(), at[len(left) :].copy())
    known = are_set(are_members, ranks)
    reached = np.zeros(len(ranks), bool)
    reached[label[known]] = True
    joined = reached[label]
    rest = np.flatnonzero(~joined & (label != np.arange(len(ranks))))
    return ranks[joined & ~known], ranks[label[rest]], ranks[rest]


def _pairs(files: Files, names: list[str], layout: Layout) -> Iterator[list[np.ndarray]]:
    """(left, right, resemblance) of all pairs of some files by left ranges, some at a time."""
    for part in range(layout.partitions):
        yield from rows_of(files.place, names, part, VERIFIED.names)


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
