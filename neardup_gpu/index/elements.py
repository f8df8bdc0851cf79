"""Elements of entries, which an index made with a modulus keeps for containment: see `containment.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..methods.finding.by_segment import sorted_table
from ..methods.modm import ModM

if TYPE_CHECKING:
    from ..data import Ragged
    from ..engine.contract import Backend
    from ..recipe import Recipe


def elements_of(sets: Ragged, modulus: int, recipe: Recipe, backend: Backend) -> Ragged:
    """The elements of some sets: uint64, ascending."""
    return ModM(m=modulus).sketch(sets, seed=recipe.seed, backend=backend)


def tables(sets: Ragged, modulus: int, recipe: Recipe, backend: Backend) -> dict[str, np.ndarray]:
    """The arrays that a segment keeps, of the sets of its entries."""
    elements = elements_of(sets, modulus, recipe, backend)
    rows = np.repeat(np.arange(len(elements), dtype=np.uint32), elements.sizes)
    keys, rows = sorted_table(elements.values, rows)
    return {"contained_keys": keys, "contained_rows": rows}
