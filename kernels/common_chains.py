"""Maximal runs of tokens that two documents have in common, by their repeated windows.

`repeats` gives the place and the class of each repeated window. Windows i and j *match* if they have equal classes and
the place of j lies below the limit of i. A run (i, j, n) is n matches, (i, j), (i + 1, j + 1) and so on, in which the
places of both follow one another. It is maximal if no match continues it at either end. A class is *common* if it has
more than `most` windows.

    found = all maximal runs in which not all classes are common, in the order of (i, j)

n windows of L tokens that follow one another are n + L - 1 tokens, so these are all maximal runs of at least L equal
tokens, each with a window that is not common.

Source: theorem 7 of the toolkit's design of shared passages. Which tokens the seeds of `repeats` have changes no class,
so it changes no run.
A window that is not common is compared with the windows of its class. If the windows before both are of equal classes
and not common, the run began earlier; members of this kind lie together and are skipped. Any other member begins a run,
unless a walk to the left, across common windows, meets a window that is not common.

Cost: linear in the windows that are not common, in the runs, and in the lengths of the runs, where one that common
windows divide in k parts is walked over up to twice. Memory: 56 bytes for each window and 24 for each run.
"""

from typing import NamedTuple

import numpy as np

from ._cpu import Rare, parallel
from ._launch import Device, cuda, kernel, namespace, on_device


class Linked(NamedTuple):
    """Repeated windows, and the members of each class.

    Parameters
    ----------
    places, classes : arrays of int64, shape (windows,)
        By `repeats`.
    limits : array of int64, shape (windows,)
        Windows match only those whose places are below. Equal for windows that follow one another.
    most : int
        The most windows of a class that is not common.
    before : array of int64, shape (windows,)
        The class of the window that this one follows; -1 if it follows none, or one of a common class.
    members : array of int64
        The windows of each class that is not common, by (class, the class before, place).
    skips : array of int64
        For each member, where in `members` those of its class end that have the same class before.
    heads : array of int64, shape (windows + 1,)
        The members of class c are ``members[heads[c] : heads[c + 1]]``; a common class has none.
    """

    places: np.ndarray
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
        """The number of runs, at most, whose first window that is not common is each window."""
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


def prepare(places, classes, limits, most):
    """Return `Linked`; see there."""
    number = len(places)
    counts = np.bincount(classes, minlength=number)[:number]
    usual = counts <= most
    before = np.full(number, -1, np.int64)
    follows = np.flatnonzero(np.diff(places) == 1)
    before[follows + 1] = np.where(usual[classes[follows]], classes[follows], -1)
    members = np.flatnonzero(usual[classes])
    members = members[np.lexsort((before[members], classes[members]))]  # stable, so places ascend
    heads = np.append(0, np.cumsum(np.where(usual, counts, 0)))
    new = np.ones(len(members) + 1, bool)
    new[1:-1] = (np.diff(classes[members]) != 0) | (np.diff(before[members]) != 0)
    bounds = np.flatnonzero(new)
    skips = np.repeat(bounds[1:], np.diff(bounds))
    return Linked(places, classes, limits, int(most), before, members, skips, heads)


def reference(linked, begin, end):
    """Find the runs whose first window is one of `begin` to `end`, straight from the definition.

    Parameters
    ----------
    linked : Linked
        By `prepare`. Only its places, classes, limits and `most` are used here.
    begin, end : int
        Windows that follow no other, or the number of windows.

    Returns
    -------
    lefts, rights, numbers : arrays of int64
        Run k is ``numbers[k]`` windows from the windows ``lefts[k]`` and ``rights[k]`` on.
    """
    places, classes, limits = (array.tolist() for array in linked[:3])
    counts = np.bincount(linked.classes, minlength=1).tolist()

    def match(i, j):
        return i < len(places) and j < len(places) and classes[i] == classes[j] and places[j] < limits[i]

    def follow(i):
        return 0 < i < len(places) and places[i] == places[i - 1] + 1

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
        "(int64[::1], int64[::1], int64[::1]), (int64[::1], int64[::1], int64[::1], int64[::1]), int64, int64[::1], "
        "(int64[::1], int64[::1], int64[::1])"
    ),
    least=256,
)
def _find(begin, end, windows, links, first, ends, runs):
    """Count the runs by the first window of each that is not common, or write them if there is room for runs."""
    places, classes, limits = windows
    before, members, skips, heads = links
    lefts, rights, numbers = runs
    for item in range(begin, end):
        w = first + item
        at = ends[item - 1] if item > 0 and len(lefts) > 0 else np.int64(0)
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
                and places[i - 1] + 1 == places[i]
                and places[j - 1] + 1 == places[j]
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
                    and places[i + n] == places[i] + n
                    and places[j + n] == places[j] + n
                    and classes[i + n] == classes[j + n]
                ):
                    n += 1
                lefts[at], rights[at], numbers[at] = i, j, n
            at += 1
        if len(lefts) == 0:
            ends[item] = at


def cpu(linked, begin, end):
    """As `reference`: runs are counted, and then written, windows in parallel."""
    nothing = np.empty(0, np.int64)
    windows, links = linked[:3], linked[4:]
    ends = np.zeros(end - begin, np.int64)
    _find(end - begin, windows, links, begin, ends, (nothing, nothing, nothing))
    np.cumsum(ends, out=ends)
    number = int(ends[-1]) if len(ends) else 0
    if number == 0:
        return nothing, nothing.copy(), nothing.copy()
    runs = tuple(np.empty(number, np.int64) for _ in range(3))
    _find(end - begin, windows, links, begin, ends, runs)
    order = np.lexsort((runs[1], runs[0]))
    return tuple(each[order] for each in runs)


# --------------------------------------------------------------------------------------------------------- on a device


Device(_find.py_func)  # the same, for kernels


@kernel(
    "void(int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64, int64[::1], "
    "int64[:, ::1])"
)
def _find_runs(places, classes, limits, before, members, skips, heads, first, ends, runs):
    """One thread a window: count the runs that have it as their first window that is not common, or write them."""
    at = np.int64(cuda.grid(1))
    if at < len(ends):
        windows, links = (places, classes, limits), (before, members, skips, heads)
        _find(at, at + np.int64(1), windows, links, first, ends, (runs[0], runs[1], runs[2]))  # type: ignore[arg-type]


def gpu(linked, begin, end):
    """As `reference`: runs are counted, and then written, windows in parallel."""
    xp = namespace()
    linked = linked.on_device()
    arrays = (*linked[:3], *linked[4:])
    ends = xp.zeros(end - begin, np.int64)
    _find_runs.threads(len(ends), *arrays, begin, ends, xp.empty((3, 0), np.int64))
    ends = xp.cumsum(ends)
    number = int(ends[-1]) if len(ends) else 0
    runs = xp.empty((3, number), np.int64)
    if number:
        _find_runs.threads(len(ends), *arrays, begin, ends, runs)
    order = xp.lexsort(xp.stack([runs[1], runs[0]]))
    return tuple(xp.ascontiguousarray(each[order]) for each in runs)
