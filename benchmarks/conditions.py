"""Measure the processor seconds of jobs with `within` and `ignore_common`, and of the same jobs without them.

`within` compares bills by a column of one value, which only costs, and by one of four values. `ignore_common` leaves
common shingles out of pages that were made from one template.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from neardup_gpu import Recipe, dedup

from .measure import Bench, figure, ratio
from .samples import by_turns

BILLS, PAGES = "bills_116", "winps_docs"
VALUES = (1, 4)
"""Numbers of values of the column."""

BOUNDS = (5_000, 1_413, 141, 50)
"""Documents that a shingle may have."""


def part(bench: Bench) -> list[dict]:
    """Whole jobs in turns, without files to write."""
    return _within(bench) + _ignoring(bench)


def _within(bench: Bench) -> list[dict]:
    table = pq.read_table(bench.corpus(BILLS), columns=["id", "text"])
    drawn = np.random.default_rng(0).random(len(table))
    recipes = {"without": Recipe()}
    for number in VALUES:
        table = table.append_column(f"of {number}", pa.array((number * drawn).astype(np.int64)))
        recipes[f"within {number}"] = Recipe(within=f"of {number}")
    seconds = _timed(bench, table, recipes)
    return [
        ratio(f"{name} values, beside all", seconds[name], seconds["without"], corpus=BILLS)
        for name in recipes
        if name != "without"
    ]


def _ignoring(bench: Bench) -> list[dict]:
    table = pq.read_table(bench.corpus(PAGES), columns=["id", "text"])
    plain = Recipe(threshold=0.5, max_partners=None)
    recipes = {"all shingles": plain} | {f"up to {bound:,}": plain.with_(ignore_common=bound) for bound in BOUNDS}
    seconds = _timed(bench, table, recipes)
    return [figure(name, each, "processor s", corpus=PAGES) for name, each in seconds.items()]


def _timed(bench: Bench, table: pa.Table, recipes: dict[str, Recipe]) -> dict[str, list[float]]:
    calls = {
        name: lambda recipe=recipe: dedup(table, id_column="id", text_columns="text", recipe=recipe)
        for name, recipe in recipes.items()
    }
    return by_turns(bench.repeat, calls)  # type: ignore[arg-type]
