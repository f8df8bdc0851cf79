"""The parts of documents that an index keeps, in addition to its recipe."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...records import dataclass
from ..contract import Sketch

if TYPE_CHECKING:
    from ...recipe import Recipe


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
    tokens : str or None
        The kind of the tokens that are kept of documents, with their texts (`texts.py`), if they are.
    """

    sets: bool = True
    expected: int | None = None
    leading: int | None = None
    containment: int | None = None
    tokens: str | None = None

    def sketches(self, recipe: Recipe) -> bool:
        """Whether the sketch of each entry is stored, by which pairs are estimated, or their distance is computed."""
        return isinstance(recipe.method, Sketch) and (recipe.method.tells_pairs or not self.sets)
