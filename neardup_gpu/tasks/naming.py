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
