"""Whether tests try all cases of a grid, or some of them, which is enough for a change elsewhere."""

import os
from collections.abc import Iterable
from itertools import cycle, product

import pytest

ALL = os.environ.get("NEARDUP_CASES") == "all"

weekly = pytest.mark.skipif(not ALL, reason="once a week and before a release: NEARDUP_CASES=all")
"""Marks a test of which another one that always runs shows most."""


def some(everything, few):
    """Return all values of a parameter, or a few of them."""
    return list(everything) if ALL else list(few)


def fewer(number: int) -> int:
    """Return how many examples hypothesis draws: all of them, or half."""
    return number if ALL else -(-number // 2)


def pairs_of(names: Iterable, others: Iterable) -> list[tuple]:
    """Return all pairs of two lists, or each name with one of the others in turn."""
    names, others = list(names), list(others)
    return some(product(names, others), zip(names, cycle(others), strict=False))
