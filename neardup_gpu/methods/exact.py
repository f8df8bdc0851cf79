"""Exact: every pair at the threshold, by the prefix filter; nothing is sketched."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from ..records import dataclass
from .contract import Join

if TYPE_CHECKING:
    from ..recipe import Recipe
    from .finding.contract import Finder
    from .finding.keeps import Keeps


@dataclass(frozen=True, kw_only=True)
class Exact(Join):
    """Candidates are all pairs that may resemble each other enough: no pair at the threshold is missed.

    In the order of all shingles from the rarest, two documents at the threshold share one of the first few shingles of
    each: see `kernels/prefixes.py` for how few, and for the proof. Documents that do so are compared.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If a value is out of its range or of another type.

    Examples
    --------
    >>> Exact().expected_recall(0.8)
    1.0
    """

    name: ClassVar[str] = "exact"

    def finder(self, recipe: Recipe, keeps: Keeps) -> Finder:
        """Return the finder that joins stored sets by their prefixes, or looks up equal units."""
        from .finding.exact import ByEquality, ByPrefixes

        return ByEquality(recipe, keeps) if recipe.only_equal else ByPrefixes(recipe, keeps)
