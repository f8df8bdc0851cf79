"""Which repeated windows are removed, and the window in kept text that each repeats.

Windows of `length` tokens are taken in the order of their places. A window is removed exactly if `copies` windows with
equal tokens that end at or before its beginning have lost no token; the first of them is its source. A removed window
takes all of its tokens. Windows that begin before a place, those of a reference set, are never removed.

    places  = the first window of each run of removed windows that follow one another, and whose sources do, ascending
    sources = the place of its source
    sizes   = the number of windows of each run

Source: theorem 3 of the toolkit's design of repeated passages. All windows that overlap an earlier one begin before it
ends, so they are decided before it can be a source: the rule is well defined, and each source stays whole. No window
that is left has an earlier equal one that is whole, so a second run removes nothing (theorem 5).

Cost: linear in the windows. Memory: 8 bytes for each class, 16 with several copies, and what is given and found.
A GPU decides windows in rounds: all that wait for no other window together. A round is a few passes over all windows.
Memory: 100 bytes for each window.
"""

import numpy as np

from ._cpu import Rare, jit, large
from ._launch import cuda, kernel, namespace, on_device, to_host
from ._ragged import sums_before
from ._search import lower_bound
from ._sort import order_of
from .repeats import windows_of


def reference(stretches, length, copies, fixed):
    """Decide about windows, straight from the definition.

    Parameters
    ----------
    stretches : places, classes, sizes
        Repeated windows; see `repeats`.
    length : int
    copies : int
        At least 1.
    fixed : int
        Windows that begin before this place are never removed.

    Returns
    -------
    places, sources, sizes : arrays of int64
    """
    lost: set[int] = set()
    seen: dict[int, list[int]] = {}
    removed: list[list[int]] = []
    for first, number, size in zip(*(each.tolist() for each in stretches), strict=True):
        for step in range(size):
            place, its = first + step, seen.setdefault(number + step, [])
            whole = [
                other for other in its if other + length <= place and lost.isdisjoint(range(other, other + length))
            ]
            its.append(place)
            if place < fixed or len(whole) < copies:
                continue
            lost.update(range(place, place + length))
            if removed and [place, whole[0]] == [each + removed[-1][2] for each in removed[-1][:2]]:
                removed[-1][2] += 1
            else:
                removed.append([place, whole[0], 1])
    return tuple(np.array([each[column] for each in removed], np.int64) for column in range(3))


@jit(Rare("(int64[::1], int64[::1], int64[::1]), (int64, int64, int64), (int64[::1], int64[::1])"))
def _decide(stretches, rule, by_class):
    """Return the removed windows, as `reference` has them, in rows.

    Two places move over the windows. At the second one, windows are decided. At the first one, which is `length` tokens
    before, they can no longer lose a token: those that have lost none become sources. `by_class` are the source and,
    unless one copy is enough, the number of whole windows of each class.
    """
    places, classes, sizes = stretches
    length, copies, fixed = rule
    sources, whole = by_class
    found, number, passed = np.empty((3, 1024), np.int64), np.int64(0), np.int64(0)
    asked, step = np.int64(0), np.int64(0)
    for stretch in range(len(places)):
        for own in range(sizes[stretch]):
            place, kind = places[stretch] + own, classes[stretch] + own
            while places[asked] + step + length <= place:
                other = places[asked] + step
                while passed < number and found[0, passed] + found[2, passed] + length - 1 <= other:
                    passed += 1
                if passed == number or found[0, passed] >= other + length:
                    its = classes[asked] + step
                    if sources[its] < 0:
                        sources[its] = other
                    if copies > 1:
                        whole[its] += 1
                step += 1
                if step == sizes[asked]:
                    asked, step = asked + 1, np.int64(0)
            source = sources[kind]
            if place < fixed or source < 0 or (copies > 1 and whole[kind] < copies):
                continue
            last = number - 1
            if last >= 0 and found[0, last] + found[2, last] == place and found[1, last] + found[2, last] == source:
                found[2, last] += 1
                continue
            if number == found.shape[1]:
                more = np.empty((3, 2 * number), np.int64)
                more[:, :number] = found
                found = more
            found[0, number], found[1, number], found[2, number] = place, source, 1
            number += 1
    return found[:, :number].copy()


def cpu(stretches, length, copies, fixed):
    """Find what `reference` finds, in one pass over the windows."""
    _, classes, sizes = stretches = tuple(map(np.ascontiguousarray, stretches))
    several = int((classes + sizes).max(initial=0))
    sources, whole = large(several, np.int64), large(several if copies > 1 else 0, np.int64)
    sources[:], whole[:] = -1, 0
    return tuple(_decide(stretches, (length, copies, fixed), (sources, whole)))


# --------------------------------------------------------------------------------------------------------- on a device

_ROUNDS = 64  # after which the host decides: windows so placed that each waits for the one before


@kernel("void(int64[::1], int64[::1], int64, int64[::1])")
def _count_ended(places, heads, length, stops):
    """One thread a window, class by class: write where those of its class end that end at or before its beginning."""
    at = np.int64(cuda.grid(1))
    if at < len(places):
        stops[at] = lower_bound(places, heads[at], at, places[at] - length + np.int64(1))


def _number_of(marked, begins, ends):
    """Return the number of marks in each of some runs of an array."""
    before = sums_before(marked)
    return before[ends] - before[begins]


def gpu(stretches, length, copies, fixed):
    """As `reference`, in rounds: whichever windows wait for no other are decided together.

    A window is lost if a window that overlaps it, or it itself, is removed. It is whole if these are all decided, and
    none of them is removed. In each round, a window is removed if `copies` windows that may be its source are whole; it
    is kept if all but fewer than `copies` are lost.

    That is the sequential answer, by induction over the rounds. A window that may be a source ends at or before the
    beginning of the one that asks, so all windows that overlap it come earlier in the sequence, and nothing that is
    decided later changes whether it is whole. Rounds end, because the first undecided window waits for none.

    If each window waits for the one before, a round decides one window. Text has only short chains like this. If
    windows are undecided after `_ROUNDS` rounds, the host decides about all windows again.
    """
    xp = namespace()
    places, classes = windows_of(tuple(map(on_device, stretches)))
    order, begins = order_of(classes.view(np.uint64))
    of_class = places[order]
    heads = xp.flatnonzero(begins)[xp.cumsum(begins) - 1]
    stops = xp.empty(len(order), np.int64)
    _count_ended.threads(len(order), of_class, heads, length, stops)
    overlapping = xp.searchsorted(places, places - length, side="right"), xp.searchsorted(places, places + length)
    may_go = (places >= fixed)[order]
    removed, undecided = xp.zeros(len(places), bool), places >= fixed
    for _ in range(_ROUNDS):
        possible = _number_of(removed, *overlapping) == 0
        whole = possible & (_number_of(undecided, *overlapping) == 0)
        removed[order] = (_number_of(whole[order], heads, stops) >= copies) & may_go
        undecided[order] = (_number_of(possible[order], heads, stops) >= copies) & may_go
        undecided &= ~removed
        if not undecided.any():
            break
    else:
        return tuple(map(on_device, cpu(tuple(map(to_host, stretches)), length, copies, fixed)))
    whole, gone = (_number_of(removed, *overlapping) == 0)[order], removed[order]
    sources = xp.full(len(places), -1, np.int64)
    sources[order[gone]] = of_class[xp.flatnonzero(whole)[sums_before(whole)[heads[gone]]]]
    places, sources = places[removed], sources[removed]
    new = xp.ones(len(places), bool)
    new[1:] = (xp.diff(places) != 1) | (xp.diff(sources) != 1)
    begins = xp.flatnonzero(new)
    return places[begins], sources[begins], xp.diff(xp.append(begins, len(places)))
