"""The parts of documents that an index keeps, in addition to its recipe: chosen when it is made, and never changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import checks
from ..errors import ParameterError
from ..methods.contract import Sketch
from ..records import dataclass

if TYPE_CHECKING:
    from ..recipe import Recipe


@dataclass(frozen=True)
class Keeps:
    """The parts that an index keeps; the manifest names them.

    sets : bool
        Whether the shingles of entries are stored. Without them resemblance is estimated, and nothing is verified.
    expected : int or None
        Documents that tables of simhashes were chosen for.
    leading : int or None
        The fewest bits that lead in each table, see `hamming.TableDesign`.
    containment : int or None
        The modulus by which segments keep elements of their entries (`containment.py`), if they do.
    """

    sets: bool = True
    expected: int | None = None
    leading: int | None = None
    containment: int | None = None

    def sketches(self, recipe: Recipe) -> bool:
        """Whether the sketch of each entry is stored, by which pairs are estimated, or their distance is computed."""
        return isinstance(recipe.method, Sketch) and (recipe.method.tells_pairs or not self.sets)


def chosen(recipe: Recipe, sets: bool | None, expected: int | None, containment: int | None) -> Keeps:
    """Return the parts that an index of a recipe keeps.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If its method cannot do with that.
    """
    modulus = checks.optional(checks.integer, "containment", containment, 1, 1 << 32, "16 is usual")
    expected = checks.optional(checks.integer, "expected", expected, 1, 2**40)
    sets = recipe.verifies if sets is None else checks.flag("sets", sets)
    if sets and not recipe.verifies:
        raise ParameterError(
            "sets: without a threshold nothing is compared by them; give a threshold, or leave sets out"
        )
    if not sets and recipe.verifies and recipe.method.estimates != "resemblance":
        raise ParameterError(
            f"sets: without them method {recipe.method.name} tells no resemblance, and the threshold needs it; keep "
            "sets, or give no threshold"
        )
    if modulus is not None and not sets:
        raise ParameterError("containment: is verified by sets, and none are kept; keep them, or leave containment out")
    keeps = recipe.method.finder(recipe, Keeps(sets, expected, containment=modulus)).keeps
    if expected is not None and keeps.leading is None:
        raise ParameterError("expected: chooses tables of simhashes; leave it out, or take method simhash")
    return keeps
