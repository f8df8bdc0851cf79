"""Mod-m: resemblance and containment by the elements that a modulus chooses; candidates share a very small one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

from .. import checks
from ..definitions import one_draw
from ..errors import DamagedError, ParameterError
from ..records import dataclass
from ..report import percent
from ..settings import setting
from ._modules import arrays, choice, data, kernels, launch, np, pa
from .contract import SampledCounts
from .elements import OnePermutation, checked_leading, padded, sampled_counts, unpadded

if TYPE_CHECKING:
    from ..data import Ragged
    from ..engine.contract import Backend

USUAL = 8
"""The modulus, unless given."""

FEWEST = 50
"""Elements to expect of a document, at least, where the modulus adapts to it."""

ALL = 2**62
"""More elements than any union has."""


@dataclass(frozen=True, kw_only=True)
class ModM(OnePermutation):
    """Sketches hold a document's shingles whose image under one permutation is small: about one in m.

    L(A) = {y : y <= (2**64 - 1) // m}, y the images of the shingles of A. Of two sketches |L(A) n L(B)| / |L(A) u L(B)|
    estimates resemblance, and |L(A) n L(B)| / |L(A)| the containment of A in B, both without bias where the denominator
    is not 0; where it is, there is no estimate. A document of n shingles has no element with probability (1 - 1/m)**n.

    Sketches grow with documents, so that a short text is found in a long one, which no sketch of fixed size tells. With
    `adaptive`, m is the power of two by which 50 to 100 elements are expected of each document, and two documents meet
    at the coarser of their moduli: sketches are short, and say little of a short document in a long one.

    Candidates for resemblance share one of their b smallest elements, and not just any: a
    page's frame, which thousands of documents share, is in all of their sketches, and what resembles shares a small
    element as surely as a large one. Containment (`neardup pairs --containment`) is looked for by all elements.

    Parameters
    ----------
    m : int from 1 to 2**32, default None
        The modulus: 8, unless given or adaptive.
    adaptive : bool, default False
        The modulus of a document of n distinct shingles is 2**i for 50 * 2**i <= n < 100 * 2**i, and 1 for fewer.
    s : int from 1 to 65536, default None
        Keep the s smallest elements of each sketch alone; all, unless given. Two sketches meet in the s smallest of
        their union then.
    leading : int, default None
        b: candidates share one of the b smallest elements. Unless given, the fewest for which
        1 - (1 - threshold)**b reaches `recall`.
    recall : float in (0, 1), default None
        Share of the pairs at the threshold to find, where `leading` is chosen; 0.99 unless given. Documents whose
        sketch has fewer elements than that are missed more often.
    bucket_limit : int, default 64
        Of the documents that share an element, the first `bucket_limit` by priority are compared all with all.
    bucket_probe : int, default 16
        Each later one is compared with the first `bucket_probe`.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If a value is out of its range or of another type.

    Notes
    -----
    Source: Broder 1997, section 3. There, sizes of 100 * 2**i to 100 * 2**(i + 1) with modulus 2**i are expected to
    give 50 to 100 elements; they give 100 to 200.

    Examples
    --------
    >>> ModM(m=16).settled(0.8).leading
    3
    """

    m: int | None = setting(None, "One in M shingles is an element of a mod-m sketch.", metavar="M", shown="8")
    adaptive: bool = setting(False, "Choose the modulus of each document so that 50 to 100 elements are expected.")
    s: int | None = setting(
        None, "Keep the S smallest elements of a mod-m sketch alone.", metavar="S", flag="--sketch-size", shown="all"
    )
    leading: int | None = setting(
        None, "Candidates share one of their B smallest elements.", metavar="B", shown="by recall"
    )
    recall: float | None = setting(None, "Share of the pairs at the threshold to find.", metavar="X", shown="0.99")
    bucket_limit: int = setting(64, "The first N documents of a bucket are compared all with all.", metavar="N")
    bucket_probe: int = setting(16, "Later documents of a bucket are compared with its first N.", metavar="N")

    name: ClassVar[str] = "modm"

    def __post_init__(self) -> None:
        plain: dict[str, Any] = {
            "m": checks.optional(checks.integer, "m", self.m, 1, 1 << 32, f"{USUAL} is usual"),
            "adaptive": checks.flag("adaptive", self.adaptive),
            "s": checks.optional(checks.integer, "s", self.s, 1, 1 << 16),
        }
        if plain["adaptive"] and plain["m"] is not None:
            raise ParameterError(
                "m and adaptive: an adaptive modulus is chosen for each document; leave one of them out"
            )
        if not plain["adaptive"] and plain["m"] is None:
            plain["m"] = USUAL
        most = (1 << 16) if plain["s"] is None else plain["s"]
        vars(self).update(plain | checked_leading(self, most))

    @property
    def device_bytes(self) -> int:
        """GPU memory that a document needs while it is sketched, in addition to its text, tokens and shingles."""
        return 8 * self._leading() + 64

    def with_(self, **changes: Any) -> Self:
        """A copy with some settings changed; an adaptive modulus takes the place of m, and m of it."""
        if changes.get("adaptive"):
            changes.setdefault("m", None)
        elif changes.get("m") is not None:
            changes.setdefault("adaptive", False)
        return super().with_(**changes)

    def sketching(self) -> dict[str, Any]:
        """The settings that sketches depend on: sketches of methods that agree in them can be compared."""
        return {"m": self.m, "adaptive": self.adaptive, "s": self.s}

    def sketch(
        self, elements: Ragged, *, seed: int = 1, statistics: Any = None, backend: Backend | None = None
    ) -> Ragged:
        """The small images of each row's shingles under the permutation drawn from the seed.

        Parameters
        ----------
        elements : Ragged of uint64
            Shingles of each document.
        seed : int in [0, 2**64), default 1
            The recipe's.
        statistics : None, default None
            Mod-m takes no statistics.
        backend : "reference", "cpu" or "gpu", default None
            Where to run; on a GPU if there is one, unless given.

        Returns
        -------
        Ragged of uint64, a row for each document
            Ascending; a row may be empty. With `adaptive`, each row begins with its modulus.
            Source: Broder 1997, section 3.

        Raises
        ------
        ParameterError, ArgumentTypeError
            If an argument is not as described above.

        Examples
        --------
        >>> import numpy as np
        >>> from neardup_gpu.stages import Ragged
        >>> shingles = Ragged.from_rows([range(1000), range(500)], np.uint64)
        >>> ModM(m=16).sketch(shingles).sizes
        array([65, 31])
        """
        elements = data.as_ragged("elements", elements, np.uint64)
        salt = one_draw(checks.seed(seed), "mod-m")
        if self.adaptive:
            moduli = _moduli(
                choice.to_host(choice.kernel(kernels.distinct, backend)(elements.values, elements.offsets))
            )
        else:
            moduli = np.full(len(elements), self.m, np.uint64)
        values, offsets = choice.kernel(kernels.below, backend)(
            elements.values, elements.offsets, salt, np.uint64(2**64 - 1) // moduli
        )
        if self.s is not None:
            values, offsets = kernels.gather.beginnings(values, offsets, self.s)
        if not self.adaptive:
            return data.Ragged._trusted(values, offsets)
        xp = launch.array_module(values)
        joined = xp.empty(len(values) + len(moduli), np.uint64)
        joined[_after_moduli(offsets, len(values))] = values
        with_moduli = offsets + xp.arange(len(offsets))
        joined[with_moduli[:-1]] = xp.asarray(moduli)
        launch.know(with_moduli, launch.fetch_offsets(offsets) + np.arange(len(offsets)))
        return data.Ragged._trusted(joined, with_moduli)

    def keys(self, sketches: Ragged, *, seed: int = 1, backend: Backend | None = None) -> Any:
        """The leading elements of each sketch.

        Parameters
        ----------
        sketches : Ragged of uint64
            What `sketch` gives.
        seed : int in [0, 2**64), default 1
            The recipe's.
        backend : "reference", "cpu" or "gpu", default None
            Where to run; on a GPU if there is one, unless given.

        Returns
        -------
        array of uint64, shape (documents, leading)
            The smallest elements of each sketch; 2**64 - 1 stands for none.

        Raises
        ------
        ParameterError, ArgumentTypeError
            If an argument is not as described above.

        Examples
        --------
        >>> import numpy as np
        >>> from neardup_gpu.stages import Ragged
        >>> ModM(leading=2).keys(Ragged.from_rows([[5, 6, 7], [5]], np.uint64))[:, 0]
        array([5, 5], dtype=uint64)
        """
        checks.seed(seed)
        return padded(self.postings(sketches), self._leading())

    def postings(self, sketches: Ragged) -> Ragged:
        """The elements of each sketch, by which documents are found that have any in common."""
        sketches = data.as_ragged("sketches", sketches, np.uint64, "as ModM.sketch gives")
        return data.Ragged._trusted(*self._split(sketches)[:2]) if self.adaptive else sketches

    def sampled(self, sketches: Ragged, left: np.ndarray, right: np.ndarray) -> SampledCounts:
        """Count, for each pair of sketches, the elements of their union that are in both, in the left, and in the right
        one."""
        values, offsets, moduli = self._split(sketches)
        one, other = (moduli[rows] for rows in arrays.same_device(values, left, right))
        coarser = launch.array_module(values).maximum(one, other)
        most, s = np.uint64(2**64 - 1) // coarser, ALL if self.s is None else self.s
        sizes, whole = offsets[1:] - offsets[:-1], coarser == np.uint64(1)
        return sampled_counts(values, offsets, left, right, most, s, sizes, whole)

    def merge(self, sketches: Sequence[Ragged]) -> Ragged:
        """The sketch of the union of what each row's sketches are of; see `neardup_gpu.sketches.merge`."""
        if self.adaptive:
            raise ParameterError(
                "sketches: an adaptive modulus depends on the size of the union, which sketches do not tell; "
                "sketch with a fixed m"
            )
        rows = [
            choice.to_host(data.as_ragged("sketches", each, np.uint64, "as ModM.sketch gives")) for each in sketches
        ]
        for place, each in enumerate(rows):
            if not self._are_sketches(each):
                raise ParameterError(f"sketches[{place}]: holds no mod-m sketches of its recipe; give ModM.sketch's")
        number = np.concatenate([np.repeat(np.arange(len(each)), each.sizes) for each in rows])
        values = np.concatenate([each.values[each.offsets[0] : each.offsets[-1]] for each in rows])
        ends = np.cumsum(np.bincount(number, minlength=len(rows[0])))
        joined = values[np.argsort(number, kind="stable")]
        merged = data.Ragged(*kernels.sets.cpu(joined, np.append(np.zeros(1, np.int64), ends)))
        return merged if self.s is None else unpadded(padded(merged, self.s))

    def expected_recall(self, threshold: float | None) -> float | None:
        """Least share of the pairs at the threshold that become candidates; None where documents may be too short.

        With modulus 1, or with an adaptive one: 1 - (1 - t)**leading, less the chance that the union's sketch has fewer
        elements than that, which is at most P(N < leading) for N of Poisson's distribution of mean 50, as the union has
        50 m shingles or more (Anderson and Samuels 1967: the binomial distribution's tail below the mean is lighter).
        """
        if threshold is None or not (self.adaptive or self.m == 1) or self._leading() > FEWEST:
            return None
        found = 1 - (1 - threshold) ** self._leading()
        if self.m == 1:
            return found
        fewer = math.fsum(math.exp(i * math.log(FEWEST) - FEWEST - math.lgamma(i + 1)) for i in range(self._leading()))
        return max(0.0, found - fewer)

    def in_words(self, threshold: float | None) -> tuple[str, str]:
        """The label and the sentence that describe the candidates in a report."""
        kept = "50 to 100 elements" if self.adaptive else "all elements" if self.m == 1 else f"one element in {self.m}"
        found = f"the {self.leading} smallest of {kept}"
        expected = self.expected_recall(threshold)
        if expected is None:
            return "sketch", f"{found}: pairs share one; of short documents theory promises nothing"
        return "sketch", f"{found}: {percent(expected)} of pairs at resemblance {threshold} share one, by theory"

    def schema(self) -> dict[str, pa.DataType]:
        """Return the method's own columns of a sketch file.

        document_hash: two uint64 of the whole token sequence. elements: a list of uint64 of any length.
        """
        return {"document_hash": pa.list_(pa.uint64(), 2), "elements": pa.large_list(pa.uint64())}

    def to_columns(self, sketches: Ragged, keys: np.ndarray) -> dict[str, Any]:
        """The arrays of some columns, a row for each document."""
        return {"elements": sketches}

    def from_columns(self, columns: Mapping[str, Any]) -> tuple[Ragged, np.ndarray]:
        """The sketches and keys that `to_columns` made into columns."""
        sketches = columns["elements"]
        if not self._are_sketches(sketches):
            raise DamagedError("column 'elements' holds no mod-m sketches of its recipe; sketch it again")
        return sketches, self.keys(sketches)

    def _are_sketches(self, sketches: Ragged) -> bool:
        """Whether each row ascends without repeats, has no more elements than s, and none beyond its modulus."""
        if self.adaptive and not (sketches.sizes > 0).all():
            return False
        values, offsets, moduli = self._split(sketches)
        values, offsets = values[offsets[0] : offsets[-1]], offsets - offsets[0]
        rises = np.ones(len(values), bool)
        rises[1:] = values[1:] > values[:-1]
        rises[offsets[:-1][offsets[:-1] < len(values)]] = True
        if not rises.all() or (self.s is not None and (np.diff(offsets) > self.s).any()):
            return False
        moduli = np.repeat(moduli, np.diff(offsets))
        return bool((moduli > 0).all() and (values <= np.uint64(2**64 - 1) // np.maximum(moduli, 1)).all())

    def _split(self, sketches: Ragged) -> tuple[Any, Any, Any]:
        """(elements, offsets, modulus of each row)"""
        xp, rows = launch.array_module(sketches.values), len(sketches)
        if not self.adaptive:
            return sketches.values, sketches.offsets, xp.full(rows, self.m, np.uint64)
        ends = launch.fetch_offsets(sketches.offsets)
        values = sketches.values[int(ends[0]) : int(ends[-1])]
        begins = sketches.offsets - sketches.offsets[0]
        offsets = begins - xp.arange(rows + 1)
        launch.know(offsets, ends - ends[0] - np.arange(rows + 1))
        return values[_after_moduli(offsets, len(values) - rows)], offsets, values[begins[:-1]]


def _after_moduli(offsets: Any, number: int) -> Any:
    """Return the place of each element of ragged rows that each begin with a modulus; `offsets` are without these."""
    xp = launch.array_module(offsets)
    places = xp.arange(number)
    return places + xp.searchsorted(offsets[1:], places, side="right") + 1


def _moduli(sizes: np.ndarray) -> np.ndarray:
    """For each number n of distinct shingles 2**i with 50 * 2**i <= n < 100 * 2**i, and 1 below 100: uint64."""
    exponents = np.frexp((sizes // FEWEST).astype(np.float64))[1] - 1  # exact below 2**53
    return np.uint64(1) << np.maximum(exponents, 0).astype(np.uint64)
