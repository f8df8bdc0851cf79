"""Bottom-k: resemblance by the s smallest elements of one permutation; candidates share one of the very smallest."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from .. import checks, theory
from ..definitions import draw, polynomial
from ..errors import ParameterError
from ..measures import RESEMBLANCE, Measure
from ..settings import setting
from .contract import Candidates, Estimate

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from ..data import Ragged


@dataclass(frozen=True, kw_only=True)
class BottomK:
    """Candidates are pairs whose sketches share one of their smallest elements.

    A sketch is MIN_s(A), the s smallest of a document's shingles under one random permutation. With u, the s smallest
    of the union of two sketches, |u n A n B| / |u| estimates resemblance without bias: u = MIN_s(A u B).

    Of the b smallest of A u B each is common to A and B with probability J, the resemblance, and a common one is among
    the b smallest of both. So a pair is a candidate, unless a bucket is too large, with probability at least
    1 - (1 - J)**b.

    Parameters
    ----------
    s : int from 1 to 65536, default 200
        Elements of a sketch. The standard error of an estimate is at most sqrt(J (1 - J) / s).
    leading : int, default None
        b, the number of smallest elements of which candidates share one. Unless given, the fewest that find the share
        `recall` of the pairs at the threshold.
    recall : float in (0, 1), default None
        Share of the pairs at the threshold to find, where `leading` is chosen; 0.99 unless given.
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
    bucket_limit: int = setting(64, "The first N documents of a bucket are compared all with all.", metavar="N")
    bucket_probe: int = setting(16, "Later documents of a bucket are compared with its first N.", metavar="N")

    name: ClassVar[str] = "bottomk"
    sketches: ClassVar[bool] = True
    tells_pairs: ClassVar[bool] = False
    measure: ClassVar[Measure] = RESEMBLANCE
    usual_threshold: ClassVar[float | None] = 0.8

    def __post_init__(self) -> None:
        plain: dict[str, Any] = {
            "s": checks.integer("s", self.s, 1, 1 << 16, "200 is usual"),
            "leading": checks.optional(checks.integer, "leading", self.leading, 1, self.s),
            "bucket_limit": checks.integer("bucket_limit", self.bucket_limit, 2, 2**31 - 1),
            "bucket_probe": checks.integer("bucket_probe", self.bucket_probe, 1, 2**31 - 1),
        }
        if self.recall is not None:
            plain["recall"] = checks.fraction("recall", self.recall, zero=False, one=False, hint="0.99 is usual")
            if self.leading is not None:
                raise ParameterError("leading and recall: the one decides the other; leave one of them out")
        for name, value in plain.items():
            object.__setattr__(self, name, value)

    @property
    def elements(self) -> str:
        """What it sketches: "shingles"."""
        return "shingles"

    @property
    def sorts_elements(self) -> bool:
        """Whether sketching sorts the elements of each document, which takes as much memory as bags take."""
        return True

    @property
    def needs_statistics(self) -> bool:
        """Whether it has to know something of all documents before it can sketch one."""
        return False

    @property
    def key_columns(self) -> int:
        """Columns of the keys; 0 where they have one dimension."""
        return self._leading()

    @property
    def device_bytes(self) -> int:
        """GPU memory that a document needs while it is sketched, beside its text, tokens and shingles."""
        return 8 * self.s + 8 * self._leading() + 16

    def settled(self, threshold: float | None) -> Self:
        """The method with the fewest leading elements that reach the recall at the threshold, unless given."""
        if threshold is None:
            raise ParameterError("threshold: bottom-k needs one, as its candidates are verified; 0.8 is usual")
        if self.leading is not None:
            return self
        missed = math.log(1 - (0.99 if self.recall is None else self.recall))
        leading = 1 if threshold == 1 else math.ceil(missed / math.log1p(-threshold))
        if leading > self.s:
            raise ParameterError(f"s must be >= {leading} to find that share at threshold {threshold}, got {self.s}")
        return replace(self, leading=leading, recall=None)

    def with_(self, **changes: Any) -> Self:
        """A copy with some settings changed."""
        if changes.get("recall") is not None:
            changes.setdefault("leading", None)
        return replace(self, **changes)

    def describe(self) -> dict[str, Any]:
        """All settings, as plain values."""
        described = asdict(self)
        del described["recall"]
        return described

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        """The method that `describe` described."""
        return cls(**settings)

    def sketching(self) -> dict[str, Any]:
        """The settings that sketches depend on: sketches of methods that agree in them can be compared."""
        return {"s": self.s}

    def with_statistics(self, given: Any, seed: int) -> tuple[Self, None]:
        """The method itself, which takes no statistics."""
        if given is not None:
            raise ParameterError("frequencies: only the weighting 'tfidf' takes them; leave them out")
        return self, None

    def first_pass(self, runtime: Any, folder: Any) -> Any:
        """Nothing: it needs no statistics."""
        raise NotImplementedError("bottom-k needs no statistics")

    def sketch(self, elements: Ragged, *, seed: int = 1, statistics: Any = None, backend: str | None = None) -> Any:
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
        >>> from neardup_gpu import Ragged
        >>> shingles = Ragged.from_rows([[1, 2, 3], [3, 2, 1, 1]], np.uint64)
        >>> sketches = BottomK(s=2, leading=1).sketch(shingles)
        >>> sketches.shape, bool((sketches[0] == sketches[1]).all())  # the same set, so the same sketch
        ((2, 2), True)
        """
        import numpy as np

        from neardup_gpu.kernels import bottomk

        from ..data import as_ragged
        from ..engine.choice import kernel

        elements = as_ragged("elements", elements, np.uint64)
        salt = np.uint64(draw(checks.seed(seed), "bottom-k", 0))
        return kernel(bottomk, backend)(elements.values, elements.offsets, salt, self.s)

    def keys(self, sketches: Any, *, seed: int = 1, backend: str | None = None) -> Any:
        """The leading elements of each sketch.

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
        array of uint64, shape (documents, leading)
            The smallest elements of each sketch.

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
        import numpy as np

        sketches = checks.array("sketches", sketches, np.uint64, (None, self.s), hint="as BottomK.sketch gives")
        return sketches[:, : self._leading()].copy()

    def tasks(self) -> Sequence[int]:
        """One: all elements lie in one table."""
        return range(1)

    def collide(
        self,
        keys: Any,
        *,
        seed: int = 1,
        present: Any = None,
        tasks: Sequence[int] | None = None,
        backend: str | None = None,
    ) -> Candidates:
        """Find all pairs of documents that share one of their leading elements, by one sorted table of elements.

        Parameters
        ----------
        keys : array of uint64, shape (documents, leading)
            What `keys` gives; rows in priority order, the best first.
        seed : int in [0, 2**64), default 1
            The recipe's.
        present : array of bool, shape (documents,), default None
            False for documents without shingles, which are nobody's candidates. All, unless given.
        tasks : range, default None
            There is one task.
        backend : "reference", "cpu" or "gpu", default None
            Where to run; on a GPU if there is one, unless given.

        Returns
        -------
        Candidates
            Cost: a sort of leading rows for each document.

        Raises
        ------
        ParameterError, ArgumentTypeError
            If an argument is not as described above.
        ResourceError
            If there are more elements than a table can hold.

        Examples
        --------
        >>> import numpy as np
        >>> found = BottomK(s=3, leading=2).collide(np.array([[5, 6], [6, 7], [8, 9]], np.uint64))
        >>> found.pairs.left, found.pairs.right
        (array([0]), array([1]))
        """
        import numpy as np

        from neardup_gpu.kernels import bottomk, pairtables
        from neardup_gpu.kernels._launch import array_module, check_rows

        from ..data import Pairs
        from ..engine.arrays import same_device
        from ..engine.choice import kernel

        keys = checks.array("keys", keys, np.uint64, (None, self._leading()), hint="as BottomK.keys gives")
        check_rows(keys.size, "elements")
        if present is None:
            present = np.ones(len(keys), bool)
        present = checks.array("present", present, bool, (len(keys),), hint="one for each document")
        there = (keys != bottomk.EMPTY) & same_device(keys, present)[0][:, None]
        modulus = polynomial(checks.seed(seed), "pair keys")
        limits = self.bucket_limit, self.bucket_probe
        run = kernel(pairtables, backend)
        left, right, large, uncompared, crowded = run(keys.reshape(-1, 1), there.ravel(), 1, modulus, *limits)
        xp = array_module(left)  # an element is a row of the table; elements of one document never share a bucket
        left, right = (xp.floor_divide(side, self._leading()) for side in (left, right))
        crowded = crowded.reshape(keys.shape).any(axis=1)
        return Candidates(Pairs.from_unsorted(left, right), int(large), int(uncompared), crowded)

    def are_candidates(self, keys: Any, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Whether pairs of rows would be candidates if no bucket were limited: bool, shape (pairs,)."""
        from neardup_gpu.kernels import bottomk

        mine, theirs = keys[left][:, :, None], keys[right][:, None, :]
        return ((mine == theirs) & (mine != bottomk.EMPTY)).any(axis=(1, 2))

    def likeness(self, keys: np.ndarray, left: Any, right: Any) -> np.ndarray:
        """Nothing: candidates are verified, so a threshold is needed."""
        raise ParameterError("threshold: bottom-k needs one, as its candidates are verified; 0.8 is usual")

    def pair_columns(self, keys: np.ndarray, left: np.ndarray, right: np.ndarray) -> dict[str, np.ndarray]:
        """Nothing beside resemblance."""
        return {}

    def estimate(self, sketches: Any, left: np.ndarray, right: np.ndarray) -> Estimate:
        """|u n A n B| / |u|, u the s smallest of the union; exact where the union has no more than s elements.

        Elements of u are drawn without replacement, so `theory.mean_interval` holds (Hoeffding 1963, section 6).
        """
        import numpy as np

        from neardup_gpu.kernels import bottomk

        from ..engine.choice import to_host

        both = np.concatenate([to_host(sketches[left]), to_host(sketches[right])], axis=1)
        whole = (both[:, [self.s - 1, -1]] == bottomk.EMPTY).all(axis=1)  # all elements of both documents
        both.sort(axis=1)
        there = both != bottomk.EMPTY
        again = np.zeros(both.shape, bool)
        again[:, 1:] = there[:, 1:] & (both[:, 1:] == both[:, :-1])
        rank = np.cumsum(there & ~again, axis=1)  # of each element in the union
        size = np.minimum(rank[:, -1], self.s)
        shared = (again & (rank <= self.s)).sum(axis=1)
        estimate = shared / np.maximum(size, 1)
        low, high = estimate.copy(), estimate.copy()
        sampled = ~whole | (rank[:, -1] > self.s)
        if sampled.any():
            bounds = np.array([theory.mean_interval(each / self.s, self.s, 0.01) for each in range(self.s + 1)])
            low[sampled], high[sampled] = bounds[shared[sampled]].T
        return Estimate(estimate, low, high)

    def expected_recall(self, threshold: float | None) -> float | None:
        """Least share of the pairs at the threshold that become candidates: 1 - (1 - t)**leading."""
        return None if threshold is None else 1 - (1 - threshold) ** self._leading()

    def in_words(self, threshold: float | None) -> tuple[str, str]:
        """The label and the sentence that describe the candidates in a report."""
        from ..report import percent

        expected = percent(self.expected_recall(threshold) or 0.0)
        found = f"{self.leading} of {self.s} elements"
        return "sketch", f"{found}: {expected} of pairs at resemblance {threshold} share one, by theory"

    def schema(self) -> dict[str, pa.DataType]:
        """The method's own columns of a sketch file, by name."""
        import pyarrow as pa

        return {"document_hash": pa.list_(pa.uint64(), 2), "smallest": pa.list_(pa.uint64(), self.s)}

    def column_bits(self) -> dict[str, int]:
        """None: all columns use all bits of their type."""
        return {}

    def to_columns(self, sketches: np.ndarray, keys: np.ndarray) -> dict[str, np.ndarray]:
        """The arrays of these columns, a row for each document."""
        return {"smallest": sketches}

    def from_columns(self, columns: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """The sketches and keys of which `to_columns` made columns."""
        return columns["smallest"], self.keys(columns["smallest"])

    def _leading(self) -> int:
        if self.leading is None:
            raise ParameterError("leading: not chosen yet; take the method of a Recipe, or give it")
        return self.leading
