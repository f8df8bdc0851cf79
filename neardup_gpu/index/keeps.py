"""What an index keeps of documents, beside what its recipe says: chosen when it is made, and never changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .. import checks
from ..errors import ParameterError

if TYPE_CHECKING:
    from ..recipe import Recipe

EXPECTED = 1_000_000
"""Documents that tables of simhashes are chosen for, unless others are expected."""


@dataclass(frozen=True)
class Keeps:
    """What an index keeps; the manifest names it.

    sets : bool
        Whether the shingles of entries are stored. Without them resemblance is estimated, and nothing is verified.
    expected : int or None
        Documents that tables of simhashes were chosen for.
    leading : int or None
        The fewest bits that lead in each of these tables, see `hamming.TableDesign`.
    containment : int or None
        The modulus by which segments keep elements of their entries (`containment.py`), if they do.
    """

    sets: bool = True
    expected: int | None = None
    leading: int | None = None
    containment: int | None = None

    def sketches(self, recipe: Recipe) -> bool:
        """Whether the sketch of each entry is stored, by which pairs are estimated, or their distance told."""
        return recipe.method.tells_pairs or not self.sets


def chosen(recipe: Recipe, sets: bool | None, expected: int | None, containment: int | None) -> Keeps:
    """What an index of a recipe keeps.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If its method cannot do with that.
    """
    modulus = checks.optional(checks.integer, "containment", containment, 1, 1 << 32, "16 is usual")
    by_distance = recipe.method.name == "simhash"
    sets = recipe.verifies if sets is None else checks.flag("sets", sets)
    if sets and not recipe.verifies:
        raise ParameterError(
            "sets: without a threshold nothing is compared by them; give a threshold, or leave sets out"
        )
    if not sets and recipe.verifies and recipe.method.name != "minhash":
        name = "simhashes tell no resemblance" if by_distance else f"{recipe.method.name} tells no resemblance"
        raise ParameterError(f"sets: without them {name}, and a threshold is of that; keep sets, or take no threshold")
    if modulus is not None and not sets:
        raise ParameterError("containment: is verified by sets, and none are kept; keep them, or leave containment out")
    if not by_distance:
        if expected is not None:
            raise ParameterError("expected: chooses tables of simhashes; leave it out, or take method simhash")
        return Keeps(sets, containment=modulus)
    from .finding.simhash import design_for

    expected = EXPECTED if expected is None else checks.integer("expected", expected, 1, 2**40)
    return Keeps(sets, expected, design_for(expected, recipe.method).prefix, modulus)
