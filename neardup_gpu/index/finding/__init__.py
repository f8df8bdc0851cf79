"""Finders: how an index finds candidates, a method a file under the contract of `contract.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import ParameterError
from .contract import Finder, Found
from .exact import ByPrefixes
from .minhash import ByFeatures
from .simhash import ByBits

if TYPE_CHECKING:
    from ...recipe import Recipe
    from ..keeps import Keeps

FINDERS: dict[str, type] = {"minhash": ByFeatures, "exact": ByPrefixes, "simhash": ByBits}


def finder_of(recipe: Recipe, keeps: Keeps) -> Finder:
    """The finder of a recipe, in an index that keeps this.

    Raises
    ------
    ParameterError
        If an index cannot keep what its method needs.
    """
    method = recipe.method
    if method.name not in FINDERS:
        names = " or ".join(FINDERS)
        raise ParameterError(f"method {method.name}: an index finds candidates by {names}; name one of these")
    if method.measure.weighted:
        raise ParameterError(f"weighting {method.weighting!r}: an index compares sets without weights; leave it out")
    if method.needs_statistics:
        raise ParameterError(
            f"weighting {method.weighting!r}: an index cannot count all documents first; take 'tf' or 'log'"
        )
    return FINDERS[method.name](recipe, keeps)


__all__ = ["FINDERS", "Finder", "Found", "finder_of"]
