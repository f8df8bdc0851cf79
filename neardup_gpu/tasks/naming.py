"""The stages that decide and name: who is kept, and which document stands for each that is removed.

decide    one task: a bit for each rank
name      of a range: which pairs are listed, what became of each removed document, and, where there is a reference
          set, the best partner there of each document
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ..stages.verification import NearestReference
from ..store.exchange import num_rows, read_arrays
from .columns import AT_ONCE, load, rows_of, save
from .copies import BY_RANGE
from .deciding import are_set, decide_by_components, decide_greedily
from .dividing import Rows, divided, join_rows
from .keepers import keepers_of, within_reach
from .layout import Layout
from .pairs import VERIFIED
from .sizes import Counts, Exchange, Shape
from .work import WAITING_BESIDE, Files, file_name

REMOVED = pa.schema([("words", pa.uint64())])
LABELS = pa.schema([("rank", pa.int64()), ("label", pa.int64())])
FATES = pa.schema([("row", pa.int64()), ("keeper", pa.int64()), ("resemblance", pa.float64())])
NEAR = pa.schema([("row", pa.int64()), ("partner", pa.int64()), ("resemblance", pa.float64())])
GROUPED = pa.schema([("keeper", pa.int64()), ("copy", pa.uint8())])
"""For each removed document, the kept one, and `COPY`, `OF_KEEPER` or both, or 0."""

COPY, OF_KEEPER = 1, 2
"""Bits that say that a removed document has the words of a document of better priority, and those of the kept one."""

SORTED_BYTES = 64
"""Memory that a pair takes while those of a range are sorted for decisions."""

KEEPER_BYTES = 240
"""Memory that a pair takes while keepers are chosen."""


def written(c: Counts, shape: Shape) -> list[Exchange]:
    """Return the sizes of the files that the stages write."""
    ranges, slices = shape.partitions, shape.slices
    found = [
        Exchange.of("decide removed", REMOVED, -(-c.documents // 64), 1),
        Exchange.of("decide labels", LABELS, 0, 1, ranges),
        Exchange.of("name listed", VERIFIED, c.listed, ranges, ranges, WAITING_BESIDE),
        Exchange.of("name fates", FATES, c.removed, ranges, slices),
        Exchange.of("name grouped", GROUPED, c.removed, ranges, ranges),
    ]
    return [*found, Exchange.of("name near", NEAR, c.near_known, ranges, slices)] if shape.known else found


def decide(files: Files, by_right: list[str], layout: Layout) -> dict[str, Any]:
    """Decide who is removed; the parameters are those of `name`.

    Memory: a bit for each rank, half of the task's memory for components, and an eighth for pairs while they are
    sorted.
    """
    shared = files.shared
    pairs = itertools.chain.from_iterable(_sorted(files, by_right, part, layout) for part in range(layout.partitions))
    with tempfile.TemporaryDirectory(dir=shared.temporary, prefix="neardup-") as folder:
        ranks, labels = (layout.num_rows, layout.num_known), np.empty((0, 2), np.int64)
        if shared.recipe.cluster == "greedy":
            words = decide_greedily(pairs, *ranks)
        else:
            words, labels = decide_by_components(pairs, *ranks, shared.task_memory // 2, Path(folder))
        save(files, "removed", {"words": words})
        with files.exchange("labels", LABELS, layout.partitions) as writer:
            for first in range(0, len(labels), AT_ONCE):
                rank, label = labels[first : first + AT_ONCE].T
                writer.add(layout.range_of(rank), {"rank": rank, "label": label})
    return {}


def _sorted(files: Files, by_right: list[str], part: int, layout: Layout) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the pairs of a range of right ranks, ascending by these, in chunks."""
    first, stop = layout.bounds[part : part + 2].tolist()
    most = max(1, files.shared.task_memory // (8 * SORTED_BYTES))
    read = partial(_of_range, files, by_right, part, ("right", "left"))
    for some in divided(read, _number(files, by_right, part), 2, first, stop, most, files.shared.temporary):
        if some.stop - some.first == 1:
            for right, left in some.rows:
                yield left, right
        else:
            right, left = join_rows(some.rows, (np.int64, np.int64))
            order = np.argsort(right, kind="stable")
            yield left[order], right[order]


def _sources(by_right: list[str], part: int) -> list[tuple[list[str], int]]:
    """Return the files of the verified pairs of a range of right ranks, and the partitions of them."""
    return [([file_name("verify", part, "right")], 0), (by_right, part)]


def _of_range(files: Files, by_right: list[str], part: int, columns: Sequence[str]) -> Iterator[list[np.ndarray]]:
    """Yield the verified pairs of a range of right ranks, some at a time."""
    for names, at in _sources(by_right, part):
        yield from rows_of(files.place, names, at, columns)


def _number(files: Files, by_right: list[str], part: int) -> int:
    """Return the number of the verified pairs of a range of right ranks."""
    return sum(num_rows(files.place, names, at) for names, at in _sources(by_right, part))


def name(files: Files, by_left: list[str], by_right: list[str], copied: list[str], layout: Layout) -> dict[str, Any]:
    """Choose what is listed of the pairs of a range, and name the keeper of each removed document and of its copies.

    Parameters
    ----------
    by_left : list of str
        Files of verified pairs by their left range.
    by_right : list of str
        Those of a crowd by their right range; of other pairs, the task of the same number of "verify" has those of the
        range by their right rank.
    copied : list of str
        Copies by the range of their representative.

    Notes
    -----
    Memory: `KEEPER_BYTES` a pair, up to a quarter of the task's, unless all pairs are to be listed and one rank has
    more; a bit for each rank of the job, and about 100 bytes for each one of the range.
    """
    shared, part = files.shared, files.number
    recipe, place = shared.recipe, files.place
    first, stop = layout.bounds[part : part + 2].tolist()
    removed = load(place, file_name("decide", 0, "removed"), REMOVED)["words"]
    labels = None
    if recipe.cluster == "components":
        of_range = read_arrays(place, [file_name("decide", 0, "labels")], part, LABELS)
        labels = np.column_stack([of_range["rank"], of_range["label"]])
    partners = recipe.max_partners if recipe.verifies else None
    directed = recipe.method.measure.directed
    num_pairs = _number(files, by_right, part) + num_rows(place, by_left, part)

    def read() -> Rows:
        """All pairs by their right ranks; by their left ranks those that may decide about these."""
        for left, right, resemblance in _of_range(files, by_right, part, VERIFIED.names):
            yield right, left, right, resemblance
        for left, right, resemblance in rows_of(place, by_left, part, VERIFIED.names):
            some = are_set(removed, left) & ~are_set(removed, right)
            yield left[some], left[some], right[some], resemblance[some]

    keeper, worth = np.arange(first, stop), np.ones(stop - first)
    goes = [np.empty(0, np.int64)]
    most = max(1, shared.task_memory // (4 * KEEPER_BYTES))
    with files.exchange("listed", VERIFIED, layout.partitions, WAITING_BESIDE) as writer:
        for some in divided(read, num_pairs, 4, first, stop, most, shared.temporary):
            if some.stop - some.first == 1 and partners is not None:
                columns = within_reach(some.rows, some.first, removed, partners)
            else:
                _, *columns = join_rows(some.rows, (np.int64, np.int64, np.int64, np.float64))
            given = *columns, removed, partners, directed, labels
            found = keepers_of(range(some.first, some.stop), *given)
            listed = {"left": found.left, "right": found.right, "resemblance": found.listed_resemblance}
            writer.add(layout.range_of(found.left), listed)
            goes.append(found.removed)
            keeper[found.removed - first], worth[found.removed - first] = found.keeper, found.resemblance
    copies = read_arrays(place, copied, part, BY_RANGE)
    if layout.num_known:
        partner, near = _nearest(files, by_right, layout)
        _write_near(files, partner, near, copies, layout)
        if recipe.only_against:
            leaks = partner >= 0
            keeper[leaks], worth[leaks] = partner[leaks], near[leaks]
    of = np.concatenate([*goes, copies["representative"]]) - first
    ranks, keepers, worths = np.concatenate([*goes, copies["rank"]]), keeper[of], worth[of]
    is_copy = np.arange(len(ranks)) >= len(ranks) - len(copies["rank"])
    of_keeper = is_copy & (of + first == keepers)
    mine = ranks >= layout.num_known
    if recipe.only_against:
        mine &= keepers < layout.num_known  # copies inside the input are kept
    ranks, keepers, worths = ranks[mine], keepers[mine], worths[mine]
    is_copy, of_keeper = is_copy[mine].astype(np.uint8), of_keeper[mine].astype(np.uint8)
    with files.exchange("fates", FATES, layout.num_slices) as writer:
        slices, rows = layout.slice_of(layout.numbers_of(files, ranks))
        writer.add(slices, {"row": rows, "keeper": keepers, "resemblance": worths})
    with files.exchange("grouped", GROUPED, layout.partitions) as writer:
        writer.add(layout.range_of(keepers), {"keeper": keepers, "copy": is_copy * COPY + of_keeper * OF_KEEPER})
    return {"pairs": num_pairs}


def _nearest(files: Files, by_right: list[str], layout: Layout) -> tuple[np.ndarray, np.ndarray]:
    """Find the best partner in the reference set of each rank of a range: ranks, -1 for none, and resemblances.

    A document of the reference set is its own partner there: it is that of its copies.
    """
    first, stop = layout.bounds[files.number : files.number + 2].tolist()
    found = NearestReference(layout.num_known, first, stop)
    for left, right, resemblance in _of_range(files, by_right, files.number, VERIFIED.names):
        found.add(left, right, resemblance)
    known = np.arange(first, min(stop, layout.num_known))
    found.row[known - first], found.resemblance[known - first] = known, 1.0
    return found.row, found.resemblance


def _write_near(
    files: Files, partner: np.ndarray, near: np.ndarray, copies: dict[str, np.ndarray], layout: Layout
) -> None:
    """Write the partners of the documents of the input: those of a range, and copies of documents of the range."""
    first, stop = layout.bounds[files.number : files.number + 2].tolist()
    ranks = np.concatenate([np.arange(first, stop), copies["rank"]])
    of = np.concatenate([np.arange(first, stop), copies["representative"]]) - first
    mine = (ranks >= layout.num_known) & (partner[of] >= 0)
    ranks, of = ranks[mine], of[mine]
    with files.exchange("near", NEAR, layout.num_slices) as writer:
        slices, rows = layout.slice_of(layout.numbers_of(files, ranks))
        writer.add(slices, {"row": rows, "partner": partner[of], "resemblance": near[of]})
