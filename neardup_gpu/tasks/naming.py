"""The stages that decide and name: who is kept, and which document stands for each that is removed.

decide    one task: a bit for each rank
name      of a range: which pairs are listed, and what became of each removed document
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ..store.exchange import read_arrays
from . import deciding
from .columns import AT_ONCE, load, save
from .copies import BY_RANGE
from .keepers import keepers_of
from .layout import Layout
from .pairs import VERIFIED
from .work import Files, file_name

REMOVED = pa.schema([("words", pa.uint64())])
LABELS = pa.schema([("rank", pa.int64()), ("label", pa.int64())])
FATES = pa.schema([("row", pa.int64()), ("keeper", pa.int64()), ("resemblance", pa.float64())])
GROUPED = pa.schema([("keeper", pa.int64())])


def decide(files: Files, names: list[str], layout: Layout) -> dict[str, Any]:
    """Decide who is removed; `names` are the files of verified pairs by their left range.

    Memory: half of the task's for decisions, and the pairs of a range.
    """
    shared = files.shared

    def stream() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for part in range(layout.partitions):
            found = read_arrays(files.place, names, part, VERIFIED)
            order = np.argsort(found["left"], kind="stable")
            yield found["left"][order], found["right"][order]

    with tempfile.TemporaryDirectory(dir=shared.temporary, prefix="neardup-") as folder:
        greedy = shared.recipe.cluster == "greedy"
        decide: Any = deciding.decide_greedily if greedy else deciding.decide_by_components
        made = decide(stream(), layout.num_rows, layout.num_known, shared.task_memory // 2, Path(folder))
        words, labels = made if isinstance(made, tuple) else (made, np.empty((0, 2), np.int64))
        save(files, "removed", {"words": words})
        with files.exchange("labels", LABELS, layout.partitions) as writer:
            for first in range(0, len(labels), AT_ONCE):
                ranks, label = labels[first : first + AT_ONCE].T
                writer.add(layout.range_of(ranks), {"rank": ranks, "label": label})
    return {}


def name(files: Files, by_left: list[str], by_right: list[str], copied: list[str], layout: Layout) -> dict[str, Any]:
    """Choose what is listed of the pairs of a range, and name the keeper of each removed document and of its copies.

    Parameters
    ----------
    by_left : list of str
        Files of verified pairs by their left range; the task of the same number of "verify" has those of the range by
        their right rank.
    by_right : list of str
        Those of a crowd by their right range.
    copied : list of str
        Copies by the range of their representative.
    """
    shared, part = files.shared, files.number
    recipe, place = shared.recipe, files.place
    first, stop = layout.bounds[part], layout.bounds[part + 1]
    own = [
        read_arrays(place, [file_name("verify", part, "right")], 0, VERIFIED),
        read_arrays(place, by_left, part, VERIFIED),
        read_arrays(place, by_right, part, VERIFIED),
    ]
    left, right, resemblance = (np.concatenate([each[column] for each in own]) for column in VERIFIED.names)
    removed = load(place, file_name("decide", 0, "removed"), REMOVED)["words"]
    labels = None
    if recipe.cluster == "components":
        of_range = read_arrays(place, [file_name("decide", 0, "labels")], part, LABELS)
        labels = np.column_stack([of_range["rank"], of_range["label"]])
    most = recipe.max_partners if recipe.verifies else None
    directed = recipe.method.measure.directed
    found = keepers_of(first, stop, left, right, resemblance, removed, most, directed, labels)
    keeper, worth = np.arange(first, stop), np.ones(stop - first)
    keeper[found.removed - first], worth[found.removed - first] = found.keeper, found.resemblance
    copies = read_arrays(place, copied, part, BY_RANGE)
    of = copies["representative"] - first
    ranks = np.concatenate([found.removed, copies["rank"]])
    keepers, worths = np.concatenate([found.keeper, keeper[of]]), np.concatenate([found.resemblance, worth[of]])
    mine = ranks >= layout.num_known
    ranks, keepers, worths = ranks[mine], keepers[mine], worths[mine]
    with files.exchange("listed", VERIFIED, layout.partitions) as writer:
        columns = {"left": found.left, "right": found.right, "resemblance": found.listed_resemblance}
        writer.add(layout.range_of(found.left), columns)
    with files.exchange("fates", FATES, layout.num_slices) as writer:
        slices, rows = layout.slice_of(layout.numbers_of(files, ranks))
        writer.add(slices, {"row": rows, "keeper": keepers, "resemblance": worths})
    with files.exchange("grouped", GROUPED, layout.partitions) as writer:
        writer.add(layout.range_of(keepers), {"keeper": keepers})
    return {"pairs": len(left)}
