"""Finders: how an index finds candidates, a method a file under the contract of `contract.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import ParameterError
from .contract import Finder, Found
from .minhash import ByFeatures

if TYPE_CHECKING:
    from ...recipe import Recipe

FINDERS: dict[str, type] = {"minhash": ByFeatures}


def finder_of(recipe: Recipe) -> Finder:
    """The finder of a recipe.

    Raises
    ------
    ParameterError
        If an index cannot keep what its method needs.
    """
    method = recipe.method
    if method.name not in FINDERS:
        names = " and ".join(FINDERS)
        raise ParameterError(f"method {method.name}: an index keeps what {names} needs; leave method out")
    if method.measure.weighted:
        raise ParameterError(f"weighting {method.weighting!r}: an index compares sets without weights; leave it out")
    return FINDERS[method.name](method)


__all__ = ["FINDERS", "Finder", "Found", "finder_of"]
