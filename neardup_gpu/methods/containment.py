"""Containment: every document that a larger one contains, by the prefix filter; nothing is sketched."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, get_args

from .. import checks
from ..records import dataclass
from ..settings import setting
from .contract import Join
from .measures import ContainmentMeasure, Measure

Direction = Literal["in", "of", "either"]
DIRECTIONS = get_args(Direction)


@dataclass(frozen=True, kw_only=True)
class Containment(Join):
    """A document goes when a larger one contains it: the excerpt goes, what it was taken from stays.

    The containment of B in A is |A n B| / |B|, the share of B's distinct shingles that A has. Documents are taken by
    falling number of distinct shingles, ties by priority (`keep`); one goes exactly when its containment in one that is
    kept already reaches the threshold. So nothing goes for a document that is smaller, and there are no cycles. The
    documents of a reference set come before all, and `direction` says what is compared with them. Nothing is missed:
    see `kernels/containers.py` and `prefix_filter`.

    A document of one shingle is contained in any that has it, and one of few soon is; the measure is exact and needs no
    interval, but it says little of them.

    Parameters
    ----------
    direction : "in", "of" or "either", default "in"
        When a document of the input is removed because of a document of the reference set, which `against` gives. Pairs
        of two documents of the input are compared as above in any case.

        - "in": the input document is contained in the reference document. Either may be the larger one.
        - "of": the reference document is contained in the input document, as a test item in a page that quotes it.
        - "either": one of the two; the containment is the larger one, |A n B| divided by the smaller size.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If a value is out of its range or of another type.

    Examples
    --------
    >>> from neardup_gpu import Recipe, Shingles, dedup
    >>> texts = ["is the question", "to be or not to be that is the question", "whether it is nobler"]
    >>> dedup({"text": texts}, recipe=Recipe(shingles=Shingles(2), method="containment")).removed.to_pylist()
    [{'id': 0, 'kept': False, 'duplicate_of': 1, 'kind': 'near', 'containment': 1.0, 'group': 1}]
    """

    direction: Direction = setting(
        "in",
        "With --against: remove documents contained in a reference document (in), that contain one (of), or either.",
        metavar="WAY",
    )

    name: ClassVar[str] = "containment"
    usual_threshold: ClassVar[float | None] = 0.9

    def __post_init__(self) -> None:
        object.__setattr__(self, "direction", checks.one_of("direction", self.direction, DIRECTIONS))

    @property
    def measure(self) -> Measure:
        """The measure of verified pairs: how much of the right one the left one contains."""
        return ContainmentMeasure(self.direction)

    def describe(self) -> dict[str, Any]:
        """All settings that are not usual, as plain values."""
        return {} if self.direction == "in" else {"direction": self.direction}
