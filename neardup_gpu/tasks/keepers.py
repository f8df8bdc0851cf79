"""Which pairs of a range of ranks are listed, and which kept document stands for each that is removed.

The rules are those of the job in memory, and so are the functions: `partners.among_first`, the kernel `greedy` and
`decisions.resemblance_to`. Each looks at the pairs of one row alone, so that a range needs no more than its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from neardup_gpu.kernels import greedy

from ..data import Pairs, run_begins
from ..stages.decisions import resemblance_to
from ..stages.partners import among_first
from ..stages.verification import Verified
from .deciding import are_set, renumbered, set_within
from .dividing import Rows


class Keepers(NamedTuple):
    """Hold the result of `keepers_of`.

    Parameters
    ----------
    left, right : arrays of int64, shape (listed,)
        Ranks of the listed pairs, in lexicographic order, each once.
    listed_resemblance : array of float64, shape (listed,)
    removed : array of int64, shape (removed,)
        The ranks of the range that are removed, ascending.
    keeper : array of int64, shape (removed,)
        The rank that stands for each.
    resemblance : array of float64, shape (removed,)
        To the keeper; NaN where that pair was not verified.
    """

    left: np.ndarray
    right: np.ndarray
    listed_resemblance: np.ndarray
    removed: np.ndarray
    keeper: np.ndarray
    resemblance: np.ndarray


def within_reach(rows: Rows, rank: int, removed: np.ndarray, most: int) -> list[np.ndarray]:
    """Return the pairs of a rank that `keepers_of` may list or name, one array per column.

    Parameters
    ----------
    rows : iterable of (key, left, right, resemblance)
        Some at a time, in any order, also repeated; what of them matters is held. The key is left out.
    rank : int
    removed, most
        As for `keepers_of`.

    Returns
    -------
    left, right, resemblance : arrays
        With the first `most` better ranks, and the first `most` that are kept.
    """
    held = [np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)]
    for _, *more in rows:
        held = [np.concatenate([one, other.view(one.dtype)]) for one, other in zip(held, more, strict=True)]
        others, at = np.unique(held[0] + held[1] - rank, return_index=True)
        first = np.arange(len(others)) < min(most, int(np.searchsorted(others, rank)))
        first[np.flatnonzero(~are_set(removed, others))[:most]] = True
        held = [column[at[first]] for column in held]
    return held


def keepers_of(
    span: range,
    left: np.ndarray,
    right: np.ndarray,
    resemblance: np.ndarray,
    removed: np.ndarray,
    most: int | None,
    directed: bool,
    labels: np.ndarray | None = None,
) -> Keepers:
    """Choose what is listed of the pairs of a range of ranks, and a keeper for each of its ranks that is removed.

    A pair is listed by the range of its right rank if its left one is among the first better partners of that, and by
    the range of its removed rank if its other one is among the first kept partners of that. So it may be listed by two
    ranges.

    Parameters
    ----------
    span : range
    left, right : arrays of int64, shape (pairs,)
        All verified pairs with a rank in the range, in any order, perhaps repeated. Other pairs change nothing.
    resemblance : array of float64, shape (pairs,)
    removed : array of uint64, shape (words,)
        The bits of all ranks, as `decide_greedily` or `decide_by_components` gives them; it may be mapped.
    most : int or None
        Most partners of each kind, at least 1; None for all.
    directed : bool
        Whether a rank can stand for worse ones alone.
    labels : array of int64, shape (removed ranks, 2), optional
        As `decide_by_components` gives it, of all ranks or of the range; it may be mapped. Given, each rank goes to its
        label; else to that one of its first kept partners that it resembles most, ties to the best priority.

    Returns
    -------
    Keepers
        Cost: sorts of the pairs. Memory: about 200 bytes per pair, and a byte per rank of the range.
    """
    first, stop = span.start, span.stop
    goes = set_within(removed, first, stop)
    labelled = np.empty(0, np.int64)
    if labels is not None:
        begin, end = np.searchsorted(labels[:, 0], [first, stop])
        labelled = np.asarray(labels[begin:end, 1])
    ranks, places = renumbered(np.concatenate([left, right, goes, labelled]))
    places_left, places_right, places_goes, places_labelled = np.split(
        places, np.cumsum([len(left), len(right), len(goes)])
    )
    order = np.lexsort((places_right, places_left))
    a, b = places_left[order], places_right[order]
    new = run_begins(a, b)
    pairs, worth = Pairs(a[new], b[new]), resemblance[order[new]]
    kept = ~are_set(removed, ranks)
    here = (ranks >= first) & (ranks < stop)
    first_better, decides = among_first(pairs, kept, most, directed)
    decides &= here[np.where(kept[pairs.left], pairs.right, pairs.left)]
    listed = (first_better & here[pairs.right]) | decides
    some = Pairs(pairs.left[decides], pairs.right[decides])
    if labels is None:
        keeper = greedy.cpu(len(ranks), some.left, some.right, worth[decides], kept)
        found = resemblance_to(keeper, Verified(some, worth[decides]))
    else:
        keeper = np.arange(len(ranks))
        keeper[places_goes] = places_labelled
        found = resemblance_to(keeper, Verified(pairs, worth))
    return Keepers(
        ranks[pairs.left[listed]],
        ranks[pairs.right[listed]],
        worth[listed],
        goes,
        ranks[keeper[places_goes]],
        found[places_goes],
    )
