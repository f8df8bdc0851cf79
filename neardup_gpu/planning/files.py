"""The files by which tasks exchange what they found, and how a job is divided."""

from __future__ import annotations

import numpy as np

from ..methods.contract import Sketch
from ..recipe import Recipe
from ..tasks import candidates, checking, copies, naming, pairs, ranking, results, sketching, unit_results
from ..tasks.colliding import to_columns
from ..tasks.sizes import Counts, Exchange, Shape


def shape_of(
    recipe: Recipe,
    representatives: int,
    *,
    slices: int,
    partitions: int,
    task_memory: int,
    spool: bool = False,
    known: int = 0,
    checked: bool = False,
) -> Shape:
    """How a job is divided, as its method says.

    Parameters
    ----------
    recipe : Recipe
    representatives : int
        Documents that are compared, on which the number of tables may depend.
    slices, partitions, task_memory, spool, known, checked
        As in `Shape`.

    Examples
    --------
    >>> from neardup_gpu import Recipe
    >>> shape_of(Recipe(method="minhash"), 1000, slices=2, partitions=2, task_memory=10**9).entry_bytes
    14
    """
    method, of_keys = recipe.method, {}
    if isinstance(method, Sketch):
        keys = np.empty((0, method.key_columns) if method.key_columns else 0, np.uint64)
        entries = list(method.entries(keys, representatives, seed=recipe.seed))
        columns = to_columns(entries[0], np.empty(0, np.int64))
        tables = len(method.buckets(representatives).masks)
        of_keys = {
            "tables": tables,
            "keys": max(1, method.key_columns),
            "entries": len(entries) // tables,
            "entry_bytes": sum(column.itemsize for column in columns.values()),
            "entry_columns": len(columns),
        }
    size, step = recipe.unit.grouped
    return Shape(
        method=method.name,
        slices=slices,
        partitions=partitions,
        task_memory=task_memory,
        spool=spool and recipe.verifies,
        verifies=recipe.verifies,
        directed=method.measure.directed,
        known=known,
        checked=checked and recipe.verifies,
        only_equal=recipe.only_equal,
        divides=recipe.unit.divides,
        inside=recipe.unit.inside,
        spares=recipe.unit.keep_copies > 1 and not recipe.unit.overlaps,
        components=recipe.cluster == "components",
        overlap=size / step,
        **of_keys,
    )


def exchanges(counts: Counts, shape: Shape) -> list[Exchange]:
    """Return the sizes of all files of the work folder, in the order of the stages."""
    stages = [sketching, *([ranking] if shape.directed else []), copies, candidates, pairs, naming, results]
    stages += [unit_results] if shape.divides else []
    stages += [checking] if shape.checked else []
    return [file for stage in stages for file in stage.written(counts, shape)]
