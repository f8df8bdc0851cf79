"""Sketches of one permutation: what methods share that keep some of the smallest images of shingles.

A sketch holds some of the smallest images of a document's shingles. Keys are its very smallest ones, or fingerprints of
groups of them; of two sketches together the sampled union u is known, and estimates are shares of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Self

from .. import checks, theory
from ..errors import ParameterError
from ._modules import choice, data, kernels, launch, np
from .contract import Buckets, Candidates, Entries, RowEstimates, SampledCounts, Sketch

if TYPE_CHECKING:
    from ..data import Ragged


class OnePermutation(Sketch):
    """A sketch of the smallest images of shingles under one permutation, whose very smallest ones are keys.

    Candidates share one key, or `_least()` keys. The class has the fields `leading`, `recall` and `s`.
    """

    refused: ClassVar[Mapping[str, str]] = {
        "filter": "a filter [k,s,r] needs independent samples, and all elements of this sketch are of one permutation "
        "(Broder 2000, section 2)"
    }

    leading: int | None
    recall: float | None
    s: int | None

    @property
    def key_columns(self) -> int:
        """Columns of the keys: the number of leading elements."""
        return self._leading()

    def settled(self, threshold: float | None) -> Self:
        """Return the method with the fewest leading elements that reach the recall at the threshold, unless given.

        These are the fewest b for which 1 - (1 - threshold)**b is at least the recall, 0.99 unless given.
        """
        super().settled(threshold)
        if threshold is None or self.leading is not None:
            return self
        missed = 1 - (0.99 if self.recall is None else self.recall)
        leading = 1 if threshold == 1 else math.ceil(math.log(missed) / math.log1p(-threshold))
        if self.s is not None and leading > self.s:
            raise ParameterError(
                f"s must be >= {leading} to find the share of `recall` at threshold {threshold}, got {self.s}"
            )
        return super().with_(leading=leading, recall=None)

    def with_(self, **changes: Any) -> Self:
        """Return a copy with some settings changed; a recall takes the place of the leading elements."""
        if changes.get("recall") is not None:
            changes.setdefault("leading", None)
        return super().with_(**changes)

    def describe(self) -> dict[str, Any]:
        """Return all settings as plain values, without the recall, which has decided `leading`."""
        described = super().describe()
        del described["recall"]
        return described

    def collide(
        self,
        keys: Any,
        *,
        seed: int = 1,
        present: Any = None,
        tasks: Sequence[int] | None = None,
        backend: str | None = None,
    ) -> Candidates:
        """Find all pairs of documents that share enough keys, by one sorted table.

        Parameters
        ----------
        keys : array of uint64, shape (documents, columns)
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
            Cost: a sort of as many rows per document as there are keys.

        Raises
        ------
        ParameterError, ArgumentTypeError
            If an argument is not as described above.
        ResourceError
            If there are more elements than a table can hold.

        Examples
        --------
        >>> import numpy as np
        >>> from neardup_gpu import ModM
        >>> found = ModM(leading=2).collide(np.array([[5, 6], [6, 7], [8, 9]], np.uint64))
        >>> found.pairs.left, found.pairs.right
        (array([0]), array([1]))
        """
        checks.seed(seed)
        keys = self._checked_keys(keys)
        launch.check_rows(keys.size, "elements")
        present = self._present(present, len(keys))
        rows = unpadded(each_once(keys), present)
        run, limits = choice.kernel(kernels.shared, backend), (self.bucket_limit, self.bucket_probe)
        left, right, _, large, uncompared, crowded = run(rows.values, rows.offsets, self._least(), *limits)
        return Candidates(data.Pairs._trusted(left, right), int(large), int(uncompared), crowded)

    def buckets(self, num_rows: int) -> Buckets:
        """Return the one table: a bucket is the rows that have one of the keys.

        Parameters
        ----------
        num_rows : int
            Rows of all entries together.

        Returns
        -------
        Buckets

        Examples
        --------
        >>> from neardup_gpu import ModM
        >>> ModM(leading=2).buckets(1000).radius
        0
        """
        return Buckets(np.full(1, 2**64 - 1, np.uint64), 0, self.bucket_limit, self.bucket_probe)

    def entries(self, keys: Any, num_rows: int, *, seed: int = 1) -> Iterator[Entries]:
        """Yield the keys of each row, column by column.

        Parameters
        ----------
        keys : array of uint64, shape (rows, columns)
            What `keys` gives, of some of the rows.
        num_rows : int
            Rows of all entries together.
        seed : int in [0, 2**64), default 1
            The recipe's.

        Yields
        ------
        Entries
            Parts of the one table. Equal keys of a row are one entry.

        Raises
        ------
        ParameterError, ArgumentTypeError
            If an argument is not as described above.

        Examples
        --------
        >>> import numpy as np
        >>> from neardup_gpu import ModM
        >>> found = ModM(leading=2).entries(np.array([[5, 6], [6, 2**64 - 1]], np.uint64), 2)
        >>> [part.values.tolist() for part in found]
        [[5, 6], [6]]
        """
        checks.seed(seed)
        keys, least = each_once(self._checked_keys(choice.to_host(keys))), self._least()
        needed = np.minimum((keys != kernels.groups.EMPTY).sum(axis=1), least).astype(np.uint16) if least > 1 else None
        for column in keys.T:
            rows = np.flatnonzero(column != kernels.groups.EMPTY)
            yield Entries(0, column[rows], rows, None if needed is None else needed[rows])

    def keys_apart(self, keys: Any, words: Any) -> Any:
        """Return keys that agree only in documents of one group, ascending; see `conditions.py`."""
        xp = launch.array_module(keys)
        return xp.sort(
            xp.where(keys == kernels.groups.EMPTY, kernels.groups.EMPTY, super().keys_apart(keys, words)), axis=1
        )

    def are_candidates(self, keys: Any, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return whether pairs of rows share enough keys, or all of a row that has fewer: bool, shape (pairs,)."""
        xp, width, least = launch.array_module(keys), keys.shape[1], self._least()
        offsets = xp.arange(len(keys) + 1) * width
        both = in_unions(keys.ravel(), offsets, left, right, kernels.groups.EMPTY - np.uint64(1), 2 * width)[0]
        if least == 1:
            return both > 0
        sizes = (keys != kernels.groups.EMPTY).sum(axis=1)
        return both >= xp.maximum(1, xp.minimum(xp.minimum(sizes[left], sizes[right]), least))

    def estimate_rows(self, sketches: Any, left: np.ndarray, right: np.ndarray) -> RowEstimates:
        """Estimate resemblance: the share of the sampled union that both sketches have; NaN if it is empty."""
        found = self.sampled(sketches, left, right)
        return shares(found.both, found.left + found.right - found.both, found.whole)

    def _least(self) -> int:
        """The number of keys that candidates share."""
        return 1

    def _leading(self) -> int:
        if self.leading is None:
            raise ParameterError("leading: not chosen yet; take the method of a Recipe, or give it")
        return self.leading


def checked_leading(method: Any, most: int | None) -> dict[str, Any]:
    """The settings `leading`, `recall` and those of buckets in plain values."""
    plain: dict[str, Any] = {
        "leading": checks.optional(checks.integer, "leading", method.leading, 1, most),
        **method._checked_limits(),
    }
    if method.recall is not None:
        plain["recall"] = checks.fraction("recall", method.recall, zero=False, one=False, hint="0.99 is usual")
        if method.leading is not None:
            raise ParameterError("leading and recall: the one decides the other; leave one of them out")
    return plain


def padded(rows: Ragged, width: int) -> Any:
    """The first `width` values of each row, and 2**64 - 1 after them: uint64, shape (rows, width)."""
    return kernels._elements.beginnings(rows.values, rows.offsets, width)


def unpadded(keys: Any, present: Any = None) -> Ragged:
    """The values of each row that are not 2**64 - 1, of rows that are present. On a device the host waits once."""
    xp = launch.array_module(keys)
    there = keys != kernels.groups.EMPTY
    if present is not None:
        there &= xp.asarray(present)[:, None]
    if isinstance(keys, np.ndarray):
        return data.Ragged._trusted(keys[there], np.append(0, np.cumsum(there.sum(axis=1))))
    before = kernels._ragged.sums_before(there.ravel())
    offsets = before[:: keys.shape[1]].copy()
    values = xp.empty(int(launch.fetch_offsets(offsets)[-1]), np.uint64)
    kernels._sort.keep.threads(keys.size, keys.ravel(), before, values)
    return data.Ragged._trusted(values, offsets)


def each_once(keys: Any) -> Any:
    """The keys of each row in ascending order; of equal ones all but the first are 2**64 - 1."""
    keys = launch.array_module(keys).sort(keys, axis=1)
    keys[:, 1:][keys[:, 1:] == keys[:, :-1]] = kernels.groups.EMPTY
    return keys


def in_unions(values: Any, offsets: Any, left: Any, right: Any, most: Any, s: int) -> tuple[Any, Any, Any]:
    """The kernel `unions`, where the arrays are; `most` may be one word for all pairs."""
    xp = launch.array_module(values)
    left, right = xp.asarray(left), xp.asarray(right)
    bounds = xp.full(len(left), most, np.uint64) if isinstance(most, np.uint64) else most
    run = kernels.unions.cpu if isinstance(values, np.ndarray) else kernels.unions.gpu
    return run(values, offsets, left, right, bounds, s)


def sampled_counts(
    values: Any, offsets: Any, left: Any, right: Any, most: Any, s: int, sizes: Any, whole: Any
) -> SampledCounts:
    """Count the elements of sampled unions by the kernel `unions`.

    Parameters
    ----------
    values, offsets, left, right, most, s
        As for the kernel.
    sizes : array
        The number of elements of each sketch.
    whole : array of bool, shape (pairs,), or True
        False for pairs that the modulus leaves elements out of. Of the others, a union is that of the whole sets if
        both sketches have fewer than `s` elements, and all of them are in the union.
    """

    from ..engine.arrays import fetched

    whole = np.asarray(whole) if isinstance(whole, bool) else whole
    arrays = [*in_unions(values, offsets, left, right, most, s), sizes, whole, left, right]
    both, in_left, in_right, sizes, whole, left, right = fetched(arrays)
    for rows, found in ((left, in_left), (right, in_right)):
        whole = whole & (sizes[rows] < s) & (sizes[rows] == found)
    return SampledCounts(both, in_left, in_right, whole)


def shares(of_them: np.ndarray, number: np.ndarray, whole: np.ndarray) -> RowEstimates:
    """Shares of elements, NaN of none, and their 99% intervals.

    Elements are drawn without replacement, so `theory.mean_interval` holds (Hoeffding 1963, section 6). It is (0, 1)
    where none were drawn; what counts whole sets is exact.
    """

    with np.errstate(invalid="ignore"):
        estimate = of_them / number
    low, high = estimate.copy(), estimate.copy()
    drawn = np.flatnonzero(~whole | (number == 0))
    kinds, which = np.unique(of_them[drawn] << 32 | number[drawn], return_inverse=True)
    bounds = np.array([_interval(kind >> 32, kind & 0xFFFFFFFF) for kind in kinds.tolist()]).reshape(-1, 2)
    low[drawn], high[drawn] = bounds[which].T
    return RowEstimates(estimate, low, high)


def may_reach(of_them: np.ndarray, number: np.ndarray, least: float) -> np.ndarray:
    """Which shares could be `least` or more: those whose 99% interval of `shares` surely ends below it are sorted out.

    It does where `number` times the relative entropy of the two shares is more than ln(2 / 0.01); a hair is left to the
    interval itself.
    """

    share = of_them / np.maximum(number, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = np.where(share > 0, share * np.log(share / least), 0.0)
        if least < 1:
            entropy += (1 - share) * np.log((1 - share) / (1 - least))
        else:
            entropy[share < 1] = np.inf
    return (share >= least) | (number * entropy <= math.log(2 / 0.01) * (1 + 1e-9))


@cache
def _interval(of_them: int, number: int) -> tuple[float, float]:
    return theory.mean_interval(of_them / max(1, number), number, 0.01)
