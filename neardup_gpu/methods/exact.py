"""Exact: every pair at the threshold, by the prefix filter; nothing is sketched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from ..errors import ParameterError
from ..measures import RESEMBLANCE, Measure


@dataclass(frozen=True, kw_only=True)
class Exact:
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
    sketches: ClassVar[bool] = False
    tells_pairs: ClassVar[bool] = False
    usual_threshold: ClassVar[float | None] = 0.8

    @property
    def measure(self) -> Measure:
        """What verified pairs are worth: their resemblance."""
        return RESEMBLANCE

    @property
    def elements(self) -> str:
        """What it compares: "shingles"."""
        return "shingles"

    @property
    def sorts_elements(self) -> bool:
        """Whether sketching sorts the elements of each document; nothing is sketched."""
        return False

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
            raise ParameterError("threshold: the exact method needs one; 0.8 is usual")
        return self

    def with_(self, **changes: Any) -> Self:
        """A copy with some settings changed."""
        return replace(self, **changes)

    def describe(self) -> dict[str, Any]:
        """All settings, as plain values; there are none."""
        return {}

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
        return "recall", f"100% (exact): every pair at resemblance {threshold} or above counts"
