"""Containment: every document that a larger one contains, by the prefix filter; nothing is sketched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from .. import checks
from ..errors import ParameterError
from ..measures import Containment as ContainmentMeasure, Measure
from ..settings import setting

DIRECTIONS = ("in", "of", "either")


@dataclass(frozen=True, kw_only=True)
class Containment:
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
    >>> from neardup_gpu import dedup
    >>> texts = ["is the question", "to be or not to be that is the question", "whether it is nobler"]
    >>> dedup(texts=texts, method="containment", shingle_size=2).removed.to_pylist()
    [{'id': 0, 'kept': False, 'duplicate_of': 1, 'kind': 'near', 'containment': 1.0, 'group': 1}]
    """

    direction: str = setting(
        "in",
        "With --against: remove documents contained in a reference document (in), that contain one (of), or either.",
        metavar="WAY",
    )

    name: ClassVar[str] = "containment"
    sketches: ClassVar[bool] = False
    tells_pairs: ClassVar[bool] = False
    usual_threshold: ClassVar[float | None] = 0.9

    def __post_init__(self) -> None:
        object.__setattr__(self, "direction", checks.one_of("direction", self.direction, DIRECTIONS))

    @property
    def measure(self) -> Measure:
        """What verified pairs are worth: how much of the right one the left one contains."""
        return ContainmentMeasure(self.direction)

    @property
    def elements(self) -> str:
        """What it compares: "shingles"."""
        return "shingles"

    @property
    def sorts_elements(self) -> bool:
        """Whether sets are made of the elements of each document while it is read; they are, to know their sizes."""
        return True

    @property
    def needs_statistics(self) -> bool:
        """Whether it has to know something of all documents before it can sketch one; nothing is sketched."""
        return False

    @property
    def key_columns(self) -> int:
        """Columns of the keys; there are none."""
        return 0

    @property
    def device_bytes(self) -> int:
        """GPU memory that a document needs while it is read, beside its text, tokens and shingles."""
        return 16

    def settled(self, threshold: float | None) -> Self:
        """The method itself: nothing depends on the threshold."""
        if threshold is None:
            raise ParameterError("threshold: containment needs one; 0.9 is usual")
        return self

    def with_(self, **changes: Any) -> Self:
        """A copy with some settings changed."""
        return replace(self, **changes)

    def describe(self) -> dict[str, Any]:
        """All settings that are not usual, as plain values."""
        return {} if self.direction == "in" else {"direction": self.direction}

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        """The method that `describe` described."""
        return cls(**settings)

    def with_statistics(self, given: Any, seed: int) -> tuple[Self, None]:
        """The method itself, which takes no statistics."""
        if given is not None:
            raise ParameterError("frequencies: only the weighting 'tfidf' takes them; leave them out")
        return self, None

    def expected_recall(self, threshold: float | None) -> float | None:
        """Share of the pairs at the threshold that become candidates: all."""
        return None if threshold is None else 1.0

    def in_words(self, threshold: float | None) -> tuple[str, str]:
        """The label and the sentence that describe the candidates in a report."""
        return "recall", f"100% (exact): every pair at containment {threshold} or above counts"
