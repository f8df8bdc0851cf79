"""Bottom-k: resemblance by the s smallest elements of one permutation; candidates share one of the very smallest, or
groups of elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from .. import checks
from ..definitions import one_draw
from ..errors import DamagedError, ParameterError
from ..records import dataclass
from ..report import percent
from ..settings import setting
from ._modules import choice, data, kernels, launch, np, pa
from .contract import SampledCounts
from .elements import OnePermutation, checked_leading, each_once, sampled_counts, unpadded

if TYPE_CHECKING:
    from neardup_gpu.kernels.cluster_stream import Stream

    from ..data import Ragged
    from ..engine.contract import Backend


@dataclass(frozen=True, kw_only=True)
class BottomK(OnePermutation):
    """Candidates are pairs whose sketches share one of their smallest elements, or groups of elements.

    A sketch is MIN_s(A), the s smallest of a document's shingles under one random permutation. With u, the s smallest
    of the union of two sketches, |u n A n B| / |u| estimates resemblance without bias: u = MIN_s(A u B).

    Of the b smallest of A u B each is common to A and B with probability J, the resemblance, and a common one is among
    the b smallest of both. So a pair is a candidate, unless a bucket is too large, with probability at least
    1 - (1 - J)**b.

    Supershingles cannot be made of such a sketch: a filter [k, s, r] needs independent samples (Broder 2000, section
    2), and here one permutation decides all. The way out of Manasse 2012, section 3.1, are groups: the sketch is cut
    after each element whose second hash is 0 modulo 10, and candidates share some groups. With s = 100, two documents
    of 1,000 shingles were seen to share one with 0.47, 0.80, 0.90, 0.98 and 0.997 at resemblance 0.5, 0.7, 0.8, 0.9 and
    0.95: a device for recall, hardly selective, and theory promises nothing; so the default is two.

    Parameters
    ----------
    s : int from 1 to 65536, default 200
        Elements of a sketch. The standard error of an estimate is at most sqrt(J (1 - J) / s).
    leading : int, default None
        b: candidates share one of the b smallest elements. Unless given, the fewest that find the share
        `recall` of the pairs at the threshold.
    recall : float in (0, 1), default None
        Share of the pairs at the threshold to find, where `leading` is chosen; 0.99 unless given.
    candidates : "leading" or "groups", default "leading"
        Whether candidates share a leading element or groups of elements.
    shared_groups : int, default None
        Groups that candidates share; those of a document of fewer groups share all of them.
    bucket_limit : int, default 64
        Of the documents that share an element, the first `bucket_limit` by priority are compared all with all.
    bucket_probe : int, default 16
        Each later one is compared with the first `bucket_probe`.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If a value is out of its range or of another type.

    Examples
    --------
    >>> BottomK(s=100).settled(0.8).leading
    3
    """

    s: int = setting(200, "Elements of a bottom-k sketch.", metavar="S", flag="--sketch-size")
    leading: int | None = setting(
        None, "Candidates share one of their B smallest elements.", metavar="B", shown="by recall"
    )
    recall: float | None = setting(None, "Share of the pairs at the threshold to find.", metavar="X", shown="0.99")
    candidates: Literal["leading", "groups"] = setting(
        "leading", "By bottomk, what candidates share: leading elements or groups of elements.", metavar="WHAT"
    )
    shared_groups: int | None = setting(None, "Groups of elements that candidates share.", metavar="N", shown="2")
    bucket_limit: int = setting(64, "The first N documents of a bucket are compared all with all.", metavar="N")
    bucket_probe: int = setting(16, "Later documents of a bucket are compared with its first N.", metavar="N")

    name: ClassVar[str] = "bottomk"

    def __post_init__(self) -> None:
        plain: dict[str, Any] = {
            "s": checks.integer("s", self.s, 1, 1 << 16, "200 is usual"),
            "candidates": checks.one_of("candidates", self.candidates, ("leading", "groups")),
            "shared_groups": checks.optional(
                checks.integer, "shared_groups", self.shared_groups, 1, 1 << 16, hint="2 is usual"
            ),
        }
        if plain["candidates"] == "groups" and self.shared_groups is None:
            plain["shared_groups"] = 2
        if plain["candidates"] == "leading" and self.shared_groups is not None:
            raise ParameterError(
                "shared_groups: only candidates by groups share some; give candidates='groups' as well"
            )
        plain |= checked_leading(self, plain["s"])
        if plain["candidates"] == "groups":
            for name in ("leading", "recall"):
                if plain.get(name) is not None:
                    raise ParameterError(
                        f"{name} and candidates: it is for leading elements, not for groups; leave it out"
                    )
        vars(self).update(plain)

    @property
    def key_columns(self) -> int:
        """Columns of the keys; 0 where they have one dimension."""
        return self._leading() if self.candidates == "leading" else self.s // 5 + 8  # groups: twice as many as expected

    @property
    def device_bytes(self) -> int:
        """GPU memory that a document needs while it is sketched, in addition to its text, tokens and shingles."""
        return 8 * self.s + 8 * self.key_columns + 16

    def settled(self, threshold: float | None) -> Self:
        """Return the method with enough leading elements for the threshold; groups do not depend on it."""
        return self if self.candidates == "groups" else super().settled(threshold)

    def with_(self, **changes: Any) -> Self:
        """Return a copy with some settings changed."""
        if changes.get("candidates") == "groups":
            changes.setdefault("leading", None)
        if changes.get("candidates") == "leading":
            changes.setdefault("shared_groups", None)
        return super().with_(**changes)

    def describe(self) -> dict[str, Any]:
        """All settings, as plain values; those of groups where they count, as recipes were stored without them."""
        described = super().describe()
        if self.candidates == "leading":
            del described["candidates"], described["shared_groups"]
        return described

    def sketching(self) -> dict[str, Any]:
        """The settings that sketches depend on: sketches of methods that agree in them can be compared."""
        return {"s": self.s}

    def sketch(self, elements: Ragged, *, seed: int = 1, statistics: Any = None, backend: Backend | None = None) -> Any:
        """The s smallest shingles of each row under the permutation drawn from the seed.

        Parameters
        ----------
        elements : Ragged of uint64
            Shingles of each document.
        seed : int in [0, 2**64), default 1
            The recipe's.
        statistics : None, default None
            Bottom-k takes no statistics.
        backend : "reference", "cpu" or "gpu", default None
            Where to run; on a GPU if there is one, unless given.

        Returns
        -------
        array of uint64, shape (documents, s)
            Ascending; documents of fewer shingles end with 2**64 - 1. Source: Broder 1997, section 3.

        Raises
        ------
        ParameterError, ArgumentTypeError
            If an argument is not as described above.

        Examples
        --------
        >>> import numpy as np
        >>> from neardup_gpu.stages import Ragged
        >>> shingles = Ragged.from_rows([[1, 2, 3], [3, 2, 1, 1]], np.uint64)
        >>> sketches = BottomK(s=2, leading=1).sketch(shingles)
        >>> sketches.shape, bool((sketches[0] == sketches[1]).all())  # the same set, so the same sketch
        ((2, 2), True)
        """
        elements = data.as_ragged("elements", elements, np.uint64)
        salt = one_draw(checks.seed(seed), "bottom-k")
        return choice.kernel(kernels.bottomk, backend)(elements.values, elements.offsets, salt, self.s)

    def keys(self, sketches: Any, *, seed: int = 1, backend: Backend | None = None) -> Any:
        """The leading elements of each sketch, or its groups.

        Parameters
        ----------
        sketches : array of uint64, shape (documents, s)
            What `sketch` gives.
        seed : int in [0, 2**64), default 1
            The recipe's.
        backend : "reference", "cpu" or "gpu", default None
            Where to run; on a GPU if there is one, unless given.

        Returns
        -------
        array of uint64, shape (documents, leading) or (documents, s // 5 + 8)
            The smallest elements of each sketch, or the fingerprints of its groups, ascending; 2**64 - 1 stands for
            none. Source of groups: Manasse 2012, section 3.1.

        Raises
        ------
        ParameterError, ArgumentTypeError
            If an argument is not as described above.

        Examples
        --------
        >>> import numpy as np
        >>> BottomK(s=3, leading=2).keys(np.array([[5, 6, 7]], np.uint64))
        array([[5, 6]], dtype=uint64)
        """
        sketches = self._checked_sketches(sketches)
        salt = one_draw(checks.seed(seed), "groups")
        if self.candidates == "leading":
            return sketches[:, : self._leading()].copy()
        found = choice.kernel(kernels.groups, backend)(sketches, salt, self.key_columns)
        found.sort(axis=1)
        return found

    def postings(self, sketches: Any) -> Ragged:
        """The elements of each sketch, by which documents are found that have any in common."""
        return unpadded(sketches)

    def sampled(self, sketches: Any, left: np.ndarray, right: np.ndarray) -> SampledCounts:
        """Count, for each pair of sketches, the elements of u that are in both, in the left, and in the right one.

        The elements of u in A are a sample of A without replacement, so |u n A n B| / |u n A| estimates the
        containment of A in B without bias. The larger B is, the smaller is the sample.
        """
        offsets = launch.array_module(sketches).arange(len(sketches) + 1) * self.s
        most = kernels.bottomk.EMPTY - kernels.bottomk.EMPTY.dtype.type(1)
        sizes = (sketches != kernels.bottomk.EMPTY).sum(axis=1)
        return sampled_counts(sketches.ravel(), offsets, left, right, most, self.s, sizes, True)

    def merge(self, sketches: Sequence[Any]) -> np.ndarray:
        """The sketch of the union of what each row's sketches are of; see `neardup_gpu.sketches.merge`."""
        rows = [choice.to_host(self._checked_sketches(each)) for each in sketches]
        return np.sort(each_once(np.concatenate(rows, axis=1)), axis=1)[:, : self.s].copy()

    def union_sizes(self, sketches: Any) -> np.ndarray:
        """Estimate how many distinct shingles each sketch is of: (s - 1) 2**64 / y, y its greatest element.

        Of merged sketches, these are the shingles of the union.

        Parameters
        ----------
        sketches : array of uint64, shape (documents, s)
            What `sketch` or `merge` gives.

        Returns
        -------
        array of float64, shape (documents,)
            Without bias, of relative standard deviation 1 / sqrt(s - 2); exact for sketches of fewer than s elements.
            By s = 1, NaN where there is an element: its expectation is infinite. Source: Beyer, Haas, Reinwald,
            Sismanis and Gemulla 2007 (On synopses for distinct-value estimation under multiset operations).

        Raises
        ------
        ParameterError, ArgumentTypeError
            If the argument is not as described above.

        Examples
        --------
        >>> import numpy as np
        >>> BottomK(s=3).union_sizes(np.array([[1, 2, 2**63], [1, 2, 2**64 - 1]], np.uint64))
        array([4., 2.])
        """
        sketches = choice.to_host(self._checked_sketches(sketches))
        number = (sketches != kernels.bottomk.EMPTY).sum(axis=1).astype(np.float64)
        if self.s == 1:
            return np.where(number < 1, number, np.nan)
        greatest = np.maximum(sketches[:, -1].astype(np.float64), 1.0)
        return np.where(number < self.s, number, (self.s - 1) * 2.0**64 / greatest)

    def stream(self, threshold: float, commonest: bool) -> Stream:
        """Return what puts sketches into greedy clusters; see `Clusters`."""
        return kernels.cluster_stream.Stream(self.s, threshold, commonest)

    def expected_recall(self, threshold: float | None) -> float | None:
        """Least share of the pairs at the threshold that become candidates: 1 - (1 - t)**leading; None by groups."""
        if threshold is None or self.candidates == "groups":
            return None
        return 1 - (1 - threshold) ** self._leading()

    def in_words(self, threshold: float | None) -> tuple[str, str]:
        """The label and the sentence that describe the candidates in a report."""
        if self.candidates == "groups":
            groups = "a group" if self.shared_groups == 1 else f"{self.shared_groups} groups"
            return "sketch", f"{self.s} elements: pairs share {groups} of them, cut by content"
        expected = percent(self.expected_recall(threshold) or 0.0)
        found = f"{self.leading} of {self.s} elements"
        return "sketch", f"{found}: {expected} of pairs at resemblance {threshold} share one, by theory"

    def schema(self) -> dict[str, pa.DataType]:
        """Return the method's own columns of a sketch file.

        document_hash: two uint64 of the whole token sequence. smallest: s uint64.
        """
        return {"document_hash": pa.list_(pa.uint64(), 2), "smallest": pa.list_(pa.uint64(), self.s)}

    def to_columns(self, sketches: np.ndarray, keys: np.ndarray) -> dict[str, np.ndarray]:
        """The arrays of some columns, a row for each document."""
        return {"smallest": sketches}

    def from_columns(self, columns: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """The sketches and keys that `to_columns` made into columns."""
        sketches = columns["smallest"]
        if ((sketches[:, 1:] <= sketches[:, :-1]) & (sketches[:, 1:] != kernels.bottomk.EMPTY)).any():
            raise DamagedError("column 'smallest' holds no bottom-k sketches of its recipe; sketch it again")
        return sketches, self.keys(sketches)

    def _checked_sketches(self, sketches: Any) -> Any:
        return checks.array("sketches", sketches, np.uint64, (None, self.s), hint="as BottomK.sketch gives")

    def _least(self) -> int:
        return self.shared_groups or 1
