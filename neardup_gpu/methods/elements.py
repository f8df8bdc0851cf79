"""What sketches of one permutation have in common: bottom-k and mod-m.

A sketch holds some of the smallest images of a document's shingles. Keys are its very smallest ones, or fingerprints of
groups of them; of two sketches together the sampled union u is known, and estimates are shares of it.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import checks, theory
from ..errors import ParameterError
from .contract import Buckets, Candidates, Entries, Estimate

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np

    from ..data import Ragged

NO_FILTER = (
    "a filter [k,s,r] needs independent samples, and all elements of this sketch are of one permutation "
    "(Broder 2000, section 2)"
)
"""Why there is none."""


class Counts(NamedTuple):
    """Of each pair, how many elements of the sampled union are in both, in the left, in the right sketch, and whether
    the union is that of the whole sets."""

    both: np.ndarray
    left: np.ndarray
    right: np.ndarray
    whole: np.ndarray


def fewest_leading(threshold: float, recall: float | None) -> int:
    """The fewest b for which 1 - (1 - threshold)**b reaches the recall, 0.99 unless given."""
    if threshold == 1:
        return 1
    return math.ceil(math.log(1 - (0.99 if recall is None else recall)) / math.log1p(-threshold))


def checked_leading(method: Any, most: int | None) -> dict[str, Any]:
    """The settings `leading`, `recall` and those of buckets in plain values."""
    plain: dict[str, Any] = {
        "leading": checks.optional(checks.integer, "leading", method.leading, 1, most),
        "bucket_limit": checks.integer("bucket_limit", method.bucket_limit, 2, 2**31 - 1),
        "bucket_probe": checks.integer("bucket_probe", method.bucket_probe, 1, 2**31 - 1),
    }
    if method.recall is not None:
        plain["recall"] = checks.fraction("recall", method.recall, zero=False, one=False, hint="0.99 is usual")
        if method.leading is not None:
            raise ParameterError("leading and recall: the one decides the other; leave one of them out")
    return plain


def padded(rows: Ragged, width: int) -> Any:
    """The first `width` values of each row, and 2**64 - 1 after them: uint64, shape (rows, width)."""
    import numpy as np

    from neardup_gpu.kernels._launch import array_module
    from neardup_gpu.kernels.bottomk import EMPTY

    xp = array_module(rows.values)
    places = rows.offsets[:-1, None] + xp.arange(width)
    there = places < rows.offsets[1:, None]
    found = xp.full(there.shape, EMPTY, np.uint64)
    found[there] = rows.values[places[there]]
    return found


def unpadded(keys: Any, present: Any = None) -> Ragged:
    """The values of each row that are not 2**64 - 1, of rows that are present."""
    import numpy as np

    from neardup_gpu.kernels._launch import array_module
    from neardup_gpu.kernels.bottomk import EMPTY

    from ..data import Ragged

    xp = array_module(keys)
    there = keys != EMPTY
    if present is not None:
        there &= xp.asarray(present)[:, None]
    offsets = xp.zeros(len(keys) + 1, np.int64)
    offsets[1:] = xp.cumsum(there.sum(axis=1))
    return Ragged(keys[there], offsets)


def collide(keys: Any, present: Any, method: Any, least: int, backend: str | None) -> Candidates:
    """Pairs of rows that share `least` of their keys; a row of fewer keys has to share all of them."""
    import numpy as np

    from neardup_gpu.kernels import shared
    from neardup_gpu.kernels._launch import check_rows

    from ..data import Pairs
    from ..engine.arrays import same_device
    from ..engine.choice import kernel

    check_rows(keys.size, "elements")
    if present is None:
        present = np.ones(len(keys), bool)
    present = checks.array("present", present, bool, (len(keys),), hint="one for each document")
    rows = unpadded(_each_once(keys), present)
    run, limits = kernel(shared, backend), (method.bucket_limit, method.bucket_probe)
    left, right, counts, large, uncompared, crowded = run(rows.values, rows.offsets, 1, *limits)
    if least > 1:
        (sizes,) = same_device(left, rows.sizes)
        enough = counts >= np.minimum(np.minimum(sizes[left], sizes[right]), least)
        left, right = left[enough], right[enough]
    return Candidates(Pairs(left, right), int(large), int(uncompared), crowded)


def _each_once(keys: Any) -> Any:
    """The keys of each row in ascending order; of equal ones all but the first are 2**64 - 1."""
    from neardup_gpu.kernels._launch import array_module
    from neardup_gpu.kernels.bottomk import EMPTY

    keys = array_module(keys).sort(keys, axis=1)
    keys[:, 1:][keys[:, 1:] == keys[:, :-1]] = EMPTY
    return keys


def buckets(method: Any) -> Buckets:
    """The one table of all keys."""
    import numpy as np

    return Buckets(np.full(1, 2**64 - 1, np.uint64), 0, method.bucket_limit, method.bucket_probe)


def entries(keys: np.ndarray, least: int) -> Iterator[Entries]:
    """The entries of rows that have to share `least` of their keys, or all where one of the two has fewer."""
    import numpy as np

    from neardup_gpu.kernels.bottomk import EMPTY

    keys = _each_once(keys)
    needed = np.minimum((keys != EMPTY).sum(axis=1), least).astype(np.uint16) if least > 1 else None
    for column in keys.T:
        rows = np.flatnonzero(column != EMPTY)
        yield Entries(0, column[rows], rows, None if needed is None else needed[rows])


def are_candidates(keys: Any, left: Any, right: Any, least: int) -> Any:
    """Whether pairs of rows share `least` of their keys, or all of a row that has fewer: bool, shape (pairs,)."""
    import numpy as np

    from neardup_gpu.kernels._launch import array_module
    from neardup_gpu.kernels.bottomk import EMPTY

    xp = array_module(keys)
    width = keys.shape[1]
    both = in_unions(keys.ravel(), xp.arange(len(keys) + 1) * width, left, right, EMPTY - np.uint64(1), 2 * width)[0]
    if least == 1:
        return both > 0
    sizes = (keys != EMPTY).sum(axis=1)
    return both >= xp.maximum(1, xp.minimum(xp.minimum(sizes[left], sizes[right]), least))


def in_unions(values: Any, offsets: Any, left: Any, right: Any, most: Any, s: int) -> tuple[Any, Any, Any]:
    """The kernel `unions`, where the arrays are; `most` may be one word for all pairs."""
    import numpy as np

    from neardup_gpu.kernels import unions
    from neardup_gpu.kernels._launch import array_module

    xp = array_module(values)
    left, right = xp.asarray(left), xp.asarray(right)
    bounds = xp.full(len(left), most, np.uint64) if isinstance(most, np.uint64) else most
    run = unions.cpu if xp is np else unions.gpu
    return run(values, offsets, left, right, bounds, s)


def shares(of_them: np.ndarray, number: np.ndarray, whole: np.ndarray) -> Estimate:
    """Shares of elements, NaN of none, and their 99% intervals.

    Elements are drawn without replacement, so `theory.mean_interval` holds (Hoeffding 1963, section 6). It is (0, 1)
    where none were drawn; what counts whole sets is exact.
    """
    import numpy as np

    with np.errstate(invalid="ignore"):
        estimate = of_them / number
    low, high = estimate.copy(), estimate.copy()
    drawn = np.flatnonzero(~whole | (number == 0))
    kinds, which = np.unique(of_them[drawn] << 32 | number[drawn], return_inverse=True)
    bounds = np.array([_interval(kind >> 32, kind & 0xFFFFFFFF) for kind in kinds.tolist()]).reshape(-1, 2)
    low[drawn], high[drawn] = bounds[which].T
    return Estimate(estimate, low, high)


def may_reach(of_them: np.ndarray, number: np.ndarray, least: float) -> np.ndarray:
    """Which shares could be `least` or more: those whose 99% interval of `shares` surely ends below it are sorted out.

    It does where `number` times the relative entropy of the two shares is more than ln(2 / 0.01); a hair is left to the
    interval itself.
    """
    import numpy as np

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
