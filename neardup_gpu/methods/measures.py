"""Measures: what a pair of documents is worth, from its least value for a threshold to its name in tables.

A method names its measure; verification, the exact join, decisions, tables, reports and explanations ask it. In a pair,
the left document is the one of better priority. A new measure is a class here that does what `Measure` says.
Methods name measures before anything is computed, so kernels are imported where they are used.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, cast

from ..records import dataclass
from ._modules import arrays, choice, data, kernels, launch, np

if TYPE_CHECKING:
    from ..data import Ragged
    from .frequencies import Frequencies

MeasureName = Literal["resemblance", "containment"]


class Measure(Protocol):
    """The value of a pair of documents: a number from 0 to 1, which pairs at the threshold reach."""

    name: ClassVar[str]
    """The word for it, by which tables call its column."""

    directed: ClassVar[bool]
    """Whether it says something of the right document alone. Then only a left one can stand for a right one, documents
    of the input are taken by falling number of distinct shingles, and only ties by priority."""

    weighted: ClassVar[bool]
    """Whether it weighs elements. Then numbers of them bound nothing: crowds are not joined, nor are bags counted."""

    @property
    def with_reference(self) -> Measure:
        """The measure of pairs whose left document is in a reference set."""
        return self

    def knowing(self, statistics: Any) -> Measure:
        """The measure that weighs by these statistics, where it needs any."""
        return self

    def waiting(self, shingles: Ragged, backend: str | None) -> Ragged:
        """The form in which documents wait in the spool, from their shingles with repeats in the order of the text."""
        return shingles

    def prepared(self, waiting: Ragged, backend: str | None) -> Ragged:
        """The form in which documents are compared, from what waits of them."""

    def possible(self, sizes: Any, left: Any, right: Any, threshold: float) -> Any:
        """Numbers of the pairs that may reach the threshold, by the sizes of what is prepared; none is left out."""

    def counting(self, distinct: np.ndarray) -> np.ndarray:
        """Return those of some distinct shingles, ascending, that are compared."""
        return distinct

    def compare(self, prepared: Ragged, left: Any, right: Any, threshold: float, backend: str | None) -> Any:
        """The values of pairs: float64, shape (pairs,); any value below the threshold where it is not reached."""

    def of(self, common: Any, left: Any, right: Any) -> Any:
        """Return the values of pairs, given what is common and the sizes, as numbers or as weights: float64."""
        return kernels.resemblance.resemblance(common, left + right - common)


class JoinMeasure(Measure, Protocol):
    """A measure by which the exact join finds all pairs: it grows with the common elements; see kernels/setjoin.py."""

    both_sizes: ClassVar[int]
    """1 if `needed` is looked up at the sum of both sizes, 0 if at the smaller size."""

    def without(self, common: Frequencies) -> Measure:
        """Return the measure that leaves out some shingles."""

    def common(self, values: Any, left: Any, right: Any) -> Any:
        """Return the numbers of common elements of pairs, given their values and the sizes of either set: float64."""

    def least(self, left: Any, right: Any, threshold: float) -> Any:
        """The least number of common elements of pairs at the threshold, by the sizes of either: int64."""

    def needed(self, most: int, threshold: float) -> np.ndarray:
        """The least overlaps of pairs of sets at the threshold, where no set has more than `most`: int32."""


class UnweightedMeasure(JoinMeasure, Protocol):
    """A measure of sets that are compared by the number of their common elements."""

    weighted: ClassVar[bool] = False

    ignored: Any
    """Shingles that are not compared, ascending; or None."""

    def without(self, common: Frequencies) -> Measure:
        return replace(cast(Any, self), ignored=common.tokens)

    def counting(self, distinct: np.ndarray) -> np.ndarray:
        return distinct if self.ignored is None else np.setdiff1d(distinct, self.ignored, assume_unique=True)

    def possible(self, sizes: Any, left: Any, right: Any, threshold: float) -> Any:
        """Numbers of the pairs of sets that reach the threshold if the larger has all of the smaller.

        Both measures grow with what is common, also after rounding, which is monotone.
        """
        xp = launch.array_module(left)
        left, right = sizes[left], sizes[right]
        return xp.flatnonzero(self.of(xp.minimum(left, right), left, right) >= threshold)

    def compare(self, prepared: Ragged, left: Any, right: Any, threshold: float, backend: str | None) -> Any:
        """Return the values of pairs of sets, or less than 0 if they are below the threshold."""
        left, right = arrays.same_device(prepared.values, left, right)
        sizes = prepared.sizes[left], prepared.sizes[right]
        least = self.least(*sizes, threshold)
        common = choice.kernel(kernels.resemblance, backend)(prepared.values, prepared.offsets, left, right, least)
        # The sets of an index are in host memory, whatever compares them.
        (common,) = arrays.same_device(prepared.values, common)
        return self.of(common, *sizes)


@dataclass(frozen=True)
class Resemblance(UnweightedMeasure):
    """r(A, B) = |A n B| / |A u B|.

    Parameters
    ----------
    ignored : array of uint64, default None
        Shingles that are not compared, ascending.
    """

    ignored: Any = field(default=None, compare=False)

    name: ClassVar[str] = "resemblance"
    directed: ClassVar[bool] = False
    both_sizes: ClassVar[int] = 1

    def prepared(self, waiting: Ragged, backend: str | None) -> Ragged:
        return shingle_sets(waiting, backend)

    def common(self, values: Any, left: Any, right: Any) -> Any:
        return (values * (left + right) / (1 + values)).round()  # which errs by less than 2**-50 of the number

    def least(self, left: Any, right: Any, threshold: float) -> Any:

        return kernels._bounds.least_overlaps_of(left + right, threshold)

    def needed(self, most: int, threshold: float) -> np.ndarray:
        """By the sum of both sizes."""
        return kernels._bounds.least_overlaps(2 * most, threshold)


@dataclass(frozen=True)
class ContainmentMeasure(UnweightedMeasure):
    """|A n B| / |P|: how much of one document of a pair, the part P, the other one contains.

    Between documents of the input, P is the right document B.

    Parameters
    ----------
    direction : "in", "of" or "either", default "in"
        Which document is the part where the left one, A, is in a reference set: "in" is B, "of" is A, and "either" is
        the smaller one, by which the containment is the larger of the two.
    part : "right", "left" or "smaller", default "right"
        The part, in this measure.
    ignored : array of uint64, default None
        Shingles that are not compared, ascending.
    """

    direction: str = "in"
    part: str = "right"
    ignored: Any = field(default=None, compare=False)

    name: ClassVar[str] = "containment"
    directed: ClassVar[bool] = True
    both_sizes: ClassVar[int] = 0

    @property
    def with_reference(self) -> Measure:
        return replace(self, part={"in": "right", "of": "left", "either": "smaller"}[self.direction])

    def common(self, values: Any, left: Any, right: Any) -> Any:
        return (values * self.size_of_part(left, right)).round()

    def size_of_part(self, left: Any, right: Any) -> Any:
        """Return the size of the part, from the sizes of both sets."""
        if self.part == "smaller":
            return left + right - abs(left - right) >> 1  # for numbers and for arrays of any module
        return left if self.part == "left" else right

    def waiting(self, shingles: Ragged, backend: str | None) -> Ragged:
        """Sets, as their sizes say who comes first."""
        return shingle_sets(shingles, backend)

    def prepared(self, waiting: Ragged, backend: str | None) -> Ragged:
        return waiting

    def of(self, common: Any, left: Any, right: Any) -> Any:

        return kernels.resemblance.containment(common, self.size_of_part(left, right))

    def least(self, left: Any, right: Any, threshold: float) -> Any:

        return kernels._bounds.least_shares_of(self.size_of_part(left, right), threshold)

    def needed(self, most: int, threshold: float) -> np.ndarray:
        """By the smaller size; where the part is the larger set, a pair at the threshold has more than that."""
        return kernels._bounds.least_shares(most, threshold)


@dataclass(frozen=True)
class Weighted(Measure):
    """J_W(A, B), the sum of the smaller weights of each element over the sum of the larger ones.

    What is compared of a document is a row of `kernels/weighted_resemblance.py`.
    """

    weighting: str
    frequencies: Frequencies | None = None

    name: ClassVar[str] = "resemblance"
    directed: ClassVar[bool] = False
    weighted: ClassVar[bool] = True

    def knowing(self, statistics: Any) -> Measure:
        return replace(self, frequencies=statistics)

    def least_shared(self, shingles: Ragged, threshold: float, backend: str | None) -> np.ndarray:
        """How many elements any document at the threshold shares with each, at least; in host memory.

        The number whose heaviest elements of a document weigh t times all, as the shared ones weigh as much. One fewer
        makes up for rounding.
        """
        sets = self.prepared(shingles, backend)
        rows = np.split(choice.to_host(sets.values), choice.to_host(sets.offsets)[1:-1])
        least = np.ones(len(sets), np.int64)
        for number, row in enumerate(rows[: len(least)]):
            heaviest = np.cumsum(np.sort(row[len(row) // 2 :])[::-1].astype(np.int64))
            if len(heaviest):
                least[number] = max(1, int(np.searchsorted(heaviest, threshold * heaviest[-1])))
        return least

    def prepared(self, waiting: Ragged, backend: str | None) -> Ragged:
        from .weighting import weighted_sets

        return weighted_sets(self.weighting, waiting, self.frequencies, backend)

    def possible(self, sizes: Any, left: Any, right: Any, threshold: float) -> Any:
        """All: sizes say nothing of weights."""
        return launch.array_module(left).arange(len(left))

    def compare(self, prepared: Ragged, left: Any, right: Any, threshold: float, backend: str | None) -> Any:

        return kernels.resemblance.resemblance(
            *choice.kernel(kernels.weighted_resemblance, backend)(prepared.values, prepared.offsets, left, right)
        )

    def sums(self, shingles: Ragged) -> tuple[int, int, int]:
        """For two documents in host memory: the weight of what is common, and the weights of both."""
        sets = self.prepared(shingles, "cpu")
        left, right = np.array([0, 0, 1]), np.array([1, 0, 1])
        common, one, other = kernels.weighted_resemblance.cpu(sets.values, sets.offsets, left, right)[0].tolist()
        return common, one, other


RESEMBLANCE, CONTAINMENT = Resemblance(), ContainmentMeasure()


def shingle_sets(shingles: Ragged, backend: str | None) -> Ragged:
    """Sort each row and drop repeated values."""
    return data.Ragged._trusted(*choice.kernel(kernels.sets, backend)(shingles.values, shingles.offsets))


def worth(measure: Measure, prepared: Ragged, left: Any, right: Any, threshold: float, backend: str | None) -> Any:
    """Return the values of pairs: float64, shape (pairs,); -1 if sizes alone put it below the threshold."""
    found = launch.array_module(left).full(len(left), -1.0)
    some = measure.possible(prepared.sizes, left, right, threshold)
    found[some] = measure.compare(prepared, left[some], right[some], threshold, backend)
    return found
