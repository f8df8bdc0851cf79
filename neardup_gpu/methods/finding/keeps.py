"""The parts of documents that an index keeps, in addition to its recipe."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...records import dataclass
from ...settings import setting
from ..contract import Sketch

if TYPE_CHECKING:
    from ...recipe import Recipe


@dataclass(frozen=True, kw_only=True)
class KeptTables:
    """The sets and tables that an index is to keep: `Index.create` describes each."""

    sets: bool | None = setting(
        None, "Keep no shingles: estimate resemblance from samples and verify nothing.", flag="--no-sets"
    )
    expected: int | None = setting(
        None,
        "Expected number of documents, for which tables of simhashes are chosen.",
        metavar="N",
        shown="1000000 by simhash",
    )
    containment: int | None = setting(
        None,
        "Keep one in M shingles in a table, so that queries can search by containment; 16 is usual.",
        metavar="M",
        shown="none",
    )
    keep_tokens: bool = setting(
        False,
        "Keep texts and tokens: `neardup index query --passages` then finds what a text shares with documents.",
    )


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
