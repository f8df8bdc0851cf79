"""The stages that decide and name: who is kept, and which document stands for each that is removed.

decide    one task: a bit for each rank
name      of a range: which pairs are listed, and what became of each removed document
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ..store.exchange import read_arrays
from . import deciding
from .copies import BY_RANGE
from .keepers import keepers_of
from .layout import Layout
from .pairs import VERIFIED
from .work import Files, file_name

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
        given = stream(), layout.num_rows, layout.num_known, shared.task_memory // 2, Path(folder)
        if shared.recipe.cluster == "greedy":
            deciding.decide_greedily(*given)
        else:
            deciding.decide_by_components(*given)
        for what in (deciding.REMOVED, deciding.LABELS):
            if Path(folder, what).exists():
                with files.write(what) as file, open(Path(folder, what), "rb") as made:
                    shutil.copyfileobj(made, file)
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
    removed = _mapped(files, deciding.REMOVED, np.uint64)
    labels = None
    if recipe.cluster == "components":
        labels = _mapped(files, deciding.LABELS, np.int64).reshape(-1, 2)
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


def _mapped(files: Files, what: str, kind: type[np.generic]) -> np.ndarray:
    """What the stage "decide" wrote, as it lies in its file."""
    with files.place.open(file_name("decide", 0, what)) as file:
        return np.frombuffer(file.read_buffer(), np.dtype(kind).newbyteorder("<"))
