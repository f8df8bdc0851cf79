"""Whether tests try all cases of a grid, or some of them, which is enough for a change elsewhere."""

import os
from collections.abc import Iterable
from itertools import cycle, product

ALL = os.environ.get("NEARDUP_CASES") == "all"


def some(everything, few):
    """Return all values of a parameter, or a few of them."""
    return list(everything) if ALL else list(few)


def pairs_of(names: Iterable, others: Iterable) -> list[tuple]:
    """Return all pairs of two lists, or each name with one of the others in turn."""
    names, others = list(names), list(others)
    return some(product(names, others), zip(names, cycle(others), strict=False))
