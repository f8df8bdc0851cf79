"""Maximal runs of tokens that two documents have in common, by their repeated windows.

`repeats` gives stretches of repeated windows. `cut` cuts them into *pieces*, so that two pieces either have all of
their classes in common or none: pieces of equal classes have equal tokens. Pieces i and j *match* if they have equal
classes and the place of j lies below the limit of i. A run (i, j, n) is n matches, (i, j), (i + 1, j + 1) and so on, in
which each piece follows the one before it. It is maximal if no match continues it at either end. A class is *common* if
it has more than `most` pieces.

    found = all maximal runs in which not all classes are common, in the order of (i, j)

n pieces of w windows of L tokens that follow one another are w + L - 1 tokens, so these are all maximal runs of at
least L equal tokens, each with a window that is not common.

Source: theorem 7 of the toolkit's design of shared passages. Which tokens the seeds of `repeats` have changes no class,
so it changes no run.
A piece that is not common is compared with the pieces of its class. If the pieces before both are of equal classes
and not common, the run began earlier; members of this kind lie together and are skipped. Any other member begins a run,
unless a walk to the left, across common pieces, meets a piece that is not common.

Cost: linear in the pieces that are not common, in the runs, and in the pieces of the runs, where one that common
pieces divide in k parts is walked over up to twice. Memory: 64 bytes for each piece and 24 for each run.
"""

from typing import NamedTuple

import numpy as np

from ._cpu import Rare, parallel
from ._launch import Device, cuda, kernel, namespace, on_device
from ._ragged import counted_and_written


class Linked(NamedTuple):
    """Pieces of repeated windows, and the members of each class.

    Parameters
    ----------
    places, ends, classes : arrays of int64, shape (pieces,)
        The first token of the first window, of the last one plus 1, and the class; see `cut`.
    limits : array of int64, shape (pieces,)
        Pieces match only those whose places are below. Equal for pieces that follow one another.
    most : int
        The most pieces of a class that is not common.
    before : array of int64, shape (pieces,)
        The class of the piece that this one follows; -1 if it follows none, or one of a common class.
    members : array of int64
        The pieces of each class that is not common, by (class, the class before, place).
    skips : array of int64
        For each member, where in `members` those of its class end that have the same class before.
    heads : array of int64, shape (pieces + 1,)
        The members of class c are ``members[heads[c] : heads[c + 1]]``; a common class has none.
    """

    places: np.ndarray
    ends: np.ndarray
    classes: np.ndarray
    limits: np.ndarray
    most: int
    before: np.ndarray
    members: np.ndarray
    skips: np.ndarray
    heads: np.ndarray

    def on_device(self):
        """Return the same with all arrays on the device."""
        return Linked._make(each if isinstance(each, int) else on_device(each) for each in self)

    @property
    def pairs(self) -> np.ndarray:
        """The number of runs, at most, whose first piece that is not common is each piece."""
        begins = self.heads[self.classes[self.members]]
        first = np.ones(len(self.members), bool)
        first[1:] = (self.skips[1:] != self.skips[:-1]) | (begins[1:] != begins[:-1])
        own = np.cumsum(first)  # of each group, whose first member
        own = np.flatnonzero(first)[own - 1]
        np.subtract(self.skips, own, out=own)  # is this far from its end
        own[self.before[self.members] < 0] = 0
        own += begins
        size = np.zeros(len(self.places), np.int64)
        size[self.members] = self.heads[self.classes[self.members] + 1] - own
        return size


def cut(stretches):
    """Cut stretches of repeated windows into pieces, whose classes are numbered anew.

    Parameters
    ----------
    stretches : places, classes, sizes
        By `repeats`.

    Returns
    -------
    places, classes, sizes : arrays of int64
        The first window of each piece, its class, and the number of its windows. Pieces of equal classes have equal
        windows, and no others have.
    """
    places, classes, sizes = stretches
    bounds = np.unique(np.concatenate([classes, classes + sizes]))
    low, high = np.searchsorted(bounds, classes), np.searchsorted(bounds, classes + sizes)
    several = high - low
    owner = np.repeat(np.arange(len(places)), several)
    numbers = np.arange(len(owner)) + np.repeat(low - (np.cumsum(several) - several), several)
    begins = bounds[numbers] if len(owner) else numbers
    return places[owner] + begins - classes[owner], numbers, np.diff(bounds)[numbers] if len(owner) else numbers.copy()


def prepare(pieces, limits, most):
    """Return `Linked` for pieces by `cut`; see there."""
    places, classes, sizes = pieces
    ends = places + sizes
    number = len(places)
    counts = np.bincount(classes, minlength=number)[:number]
    usual = counts <= most
    before = np.full(number, -1, np.int64)
    follows = np.flatnonzero(ends[:-1] == places[1:])
    before[follows + 1] = np.where(usual[classes[follows]], classes[follows], -1)
    members = np.flatnonzero(usual[classes])
    members = members[np.lexsort((before[members], classes[members]))]  # stable, so places ascend
    heads = np.append(0, np.cumsum(np.where(usual, counts, 0)))
    new = np.ones(len(members) + 1, bool)
    new[1:-1] = (np.diff(classes[members]) != 0) | (np.diff(before[members]) != 0)
    bounds = np.flatnonzero(new)
    skips = np.repeat(bounds[1:], np.diff(bounds))
    return Linked(places, ends, classes, limits, int(most), before, members, skips, heads)


def reference(linked, begin, end):
    """Find the runs whose first piece is one of `begin` to `end`, straight from the definition.

    Parameters
    ----------
    linked : Linked
        By `prepare`. Only its places, ends, classes, limits and `most` are used here.
    begin, end : int
        Pieces that follow no other, or the number of pieces.

    Returns
    -------
    lefts, rights, numbers : arrays of int64
        Run k is ``numbers[k]`` pieces from the pieces ``lefts[k]`` and ``rights[k]`` on.
    """
    places, ends, classes, limits = (array.tolist() for array in linked[:4])
    counts = np.bincount(linked.classes, minlength=1).tolist()

    def match(i, j):
        return i < len(places) and j < len(places) and classes[i] == classes[j] and places[j] < limits[i]

    def follow(i):
        return 0 < i < len(places) and places[i] == ends[i - 1]

    found = []
    for i in range(begin, end):
        for j in range(len(places)):
            if not match(i, j) or (follow(i) and follow(j) and match(i - 1, j - 1)):
                continue
            n = 1
            while follow(i + n) and follow(j + n) and match(i + n, j + n):
                n += 1
            if any(counts[classes[i + t]] <= linked.most for t in range(n)):
                found.append((i, j, n))
    runs = np.array(found, np.int64).reshape(-1, 3)
    return tuple(np.ascontiguousarray(runs[:, column]) for column in range(3))


@parallel(
    Rare(
        "(int64[::1], int64[::1], int64[::1], int64[::1]), (int64[::1], int64[::1], int64[::1], int64[::1]), int64, "
        "int64[::1], "
        "(int64[::1], int64[::1], int64[::1])"
    ),
    least=256,
)
def _find(begin, end, pieces, links, first, counts, runs):
    """Count the runs by the first piece of each that is not common, or write them if there is room for runs."""
    places, ends, classes, limits = pieces
    before, members, skips, heads = links
    lefts, rights, numbers = runs
    for item in range(begin, end):
        w = first + item
        at = counts[item - 1] if item > 0 and len(lefts) > 0 else np.int64(0)
        own, position = before[w], heads[classes[w]]
        stop = heads[classes[w] + 1]
        while position < stop:
            v = members[position]
            if own >= 0 and before[v] == own:
                position = skips[position]
                continue
            position += 1
            if places[v] >= limits[w]:
                continue
            i, j, is_first = w, v, True
            while (
                i > 0
                and j > 0
                and ends[i - 1] == places[i]
                and ends[j - 1] == places[j]
                and classes[i - 1] == classes[j - 1]
            ):
                i, j = i - 1, j - 1
                if heads[classes[i] + 1] > heads[classes[i]]:  # not common: the run is found there
                    is_first = False
                    break
            if not is_first:
                continue
            if len(lefts) > 0:
                n = w - i + 1
                while (
                    i + n < len(places)
                    and j + n < len(places)
                    and places[i + n] == ends[i + n - 1]
                    and places[j + n] == ends[j + n - 1]
                    and classes[i + n] == classes[j + n]
                ):
                    n += 1
                lefts[at], rights[at], numbers[at] = i, j, n
            at += 1
        if len(lefts) == 0:
            counts[item] = at


def cpu(linked, begin, end):
    """Find what `reference` finds. Threads count the runs of some pieces each, and then write them."""
    runs = counted_and_written(_find, end - begin, linked[:4], linked[5:], begin)
    order = np.lexsort((runs[1], runs[0]))
    return tuple(each[order] for each in runs)


# --------------------------------------------------------------------------------------------------------- on a device


Device(_find.py_func)  # the same, for kernels


@kernel(
    "void(int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64, "
    "int64[::1], int64[:, ::1])"
)
def _find_runs(places, ends, classes, limits, before, members, skips, heads, first, counts, runs):
    """One thread a piece: count the runs that have it as their first piece that is not common, or write them."""
    at = np.int64(cuda.grid(1))
    if at < len(counts):
        pieces, links = (places, ends, classes, limits), (before, members, skips, heads)
        _find(at, at + np.int64(1), pieces, links, first, counts, (runs[0], runs[1], runs[2]))  # type: ignore[arg-type]


def gpu(linked, begin, end):
    """Find what `reference` finds. Threads count the runs of some pieces each, and then write them."""
    xp = namespace()
    linked = linked.on_device()
    arrays = (*linked[:4], *linked[5:])
    ends = xp.zeros(end - begin, np.int64)
    _find_runs.threads(len(ends), *arrays, begin, ends, xp.empty((3, 0), np.int64))
    ends = xp.cumsum(ends)
    number = int(ends[-1]) if len(ends) else 0
    runs = xp.empty((3, number), np.int64)
    if number:
        _find_runs.threads(len(ends), *arrays, begin, ends, runs)
    order = xp.lexsort(xp.stack([runs[1], runs[0]]))
    return tuple(xp.ascontiguousarray(each[order]) for each in runs)
