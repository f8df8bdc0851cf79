"""The stages for crowded documents, which are joined with one another in one task, as in memory.

    members    one task: the crowded documents, and all that verified pairs connect with them, through others too
    crowd      one task: their pairs that decide and that are listed

What a crowd decides depends on its verified pairs with others, and on theirs, so those come along; of crowded documents
alone the shingles are needed. Both take memory for each member, and that is bounded by `--task-memory`.
"""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pyarrow as pa

from ..data import NO_PAIRS, Pairs, numpy_of
from ..engine.clock import Clock
from ..errors import ResourceError
from ..methods.contract import Candidates
from ..partners import partners_of
from ..report import count, size
from ..stages import Verified
from ..store.exchange import read_arrays, read_partition
from .candidates import CROWDED
from .columns import load, save
from .layout import Layout
from .pairs import VERIFIED, answered_keys, answered_sets, ask
from .work import Files, file_name

MEMBERS = pa.schema([("rank", pa.int64()), ("crowded", pa.bool_())])

MEMBER_BYTES = 256
"""Memory that a member takes while a crowd is joined, beside its postings, about."""


def members(files: Files, crowded: list[str], verified: list[str], layout: Layout) -> dict[str, Any]:
    """Find all members, save their verified pairs, and ask for what waits of those that are crowded."""
    ranks = np.unique(read_arrays(files.place, crowded, 0, CROWDED)["rank"])
    is_member = np.zeros(layout.num_rows, bool)
    is_member[ranks] = True
    grown = len(ranks) > 0
    while grown:
        grown = False
        for part in range(layout.partitions):
            for batch in read_partition(files.place, verified, part, ["left", "right"]):
                left, right = (numpy_of(batch.column(name)) for name in ("left", "right"))
                one = is_member[left] != is_member[right]
                grown |= bool(one.any())
                is_member[left[one]] = is_member[right[one]] = True
    all_ranks = np.flatnonzero(is_member)
    needed = MEMBER_BYTES * len(all_ranks)
    if needed > files.shared.task_memory:
        raise ResourceError(
            f"{count(len(all_ranks), 'document')} share shingles with too many others to be joined by ranges, and take "
            f"about {size(needed)} of memory in one task; pass a larger task_memory"
        )
    save(files, "members", {"rank": all_ranks, "crowded": np.isin(all_ranks, ranks)})
    with files.exchange("verified", VERIFIED, 1) as writer:
        for part in range(layout.partitions):
            for batch in read_partition(files.place, verified, part):
                mine = is_member[numpy_of(batch.column("left"))]
                columns = {name: numpy_of(batch.column(name))[mine] for name in VERIFIED.names}
                writer.add_to(0, columns)
    ask(files, ranks, layout)
    return {"members": len(all_ranks), "crowded": len(ranks)}


def crowd(
    files: Files, sets: list[str], keys: list[str], layout: Layout, max_comparisons: int | None
) -> dict[str, Any]:
    """Join the crowded documents with one another; `sets` and `keys` are the files of what was answered."""
    shared = files.shared
    recipe, statistics = shared.settled()
    of = load(files.place, file_name("members", 0, "members"), MEMBERS)
    pairs = read_arrays(files.place, [file_name("members", 0, "verified")], 0, VERIFIED)
    ranks, crowded = of["rank"], of["crowded"]
    left, right = (np.searchsorted(ranks, pairs[name]) for name in ("left", "right"))
    order = np.lexsort((right, left))
    explicit = Verified(Pairs(left[order], right[order]), pairs["resemblance"][order])
    measure = recipe.method.measure.knowing(statistics)
    with contextlib.ExitStack() as stack:
        by_left = stack.enter_context(files.exchange("left", VERIFIED, layout.partitions))
        by_right = stack.enter_context(files.exchange("right", VERIFIED, layout.partitions))
        runtime = stack.enter_context(shared.start())
        spool = stack.enter_context(runtime.spool(shared.temporary))
        answered, places = answered_sets(files, sets, 0, spool, runtime)
        rows = np.zeros(len(ranks), np.int64)
        rows[np.searchsorted(ranks, answered)] = places
        of_keys = None
        if recipe.method.sketches:
            answered, some = answered_keys(files, keys, 0)
            of_keys = np.zeros((len(ranks), *some.shape[1:]), np.uint64)
            of_keys[np.searchsorted(ranks, answered)] = some
        found = partners_of(
            of_keys,
            ranks < layout.num_known,
            rows,
            spool,
            Candidates(NO_PAIRS, 0, 0, crowded),
            recipe,
            measure,
            max_comparisons,
            Clock(None),
            runtime,
            known=explicit,
        )
        for verified in (found.listed, found.deciding):
            columns = {
                "left": ranks[verified.pairs.left],
                "right": ranks[verified.pairs.right],
                "resemblance": verified.resemblance,
            }
            by_left.add(layout.range_of(columns["left"]), columns)
            by_right.add(layout.range_of(columns["right"]), columns)
    return {
        "candidates": found.num_candidates,
        "looks": found.looks,
        "further": len(found.listed.pairs) + found.num_unlisted - len(explicit.pairs),
        "counted": found.counted,
    }
