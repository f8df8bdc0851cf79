"""Which repeated windows are removed, and the window in kept text that each repeats.

Windows of `length` tokens are taken in the order of their places. A window is removed exactly if `copies` windows with
equal tokens that end at or before its beginning have lost no token; the first of them is its source. A removed window
takes all of its tokens.

    sources = the place of the source of each window, -1 if it is not removed

Source: theorem 3 of the toolkit's design of repeated passages. All windows that overlap an earlier one begin before it
ends, so they are decided before it can be a source: the rule is well defined, and each source stays whole. No window
that is left has an earlier equal one that is whole, so a second run removes nothing (theorem 5).

Cost: linear in the windows, and a binary search among removed runs for each window that may be a source.
Memory: 33 bytes for each window.
A GPU decides windows in rounds: all that wait for no other window together. A round is a few passes over all windows.
Memory: 100 bytes for each window.
"""

import numpy as np

from ._cpu import Rare, jit
from ._launch import cuda, kernel, namespace, on_device, to_host
from ._search import lower_bound
from ._sort import order_of
from .gather import _new_offsets


def reference(places, classes, length, copies):
    """Decide about windows, straight from the definition.

    Parameters
    ----------
    places : array of int64, shape (windows,)
        Ascending.
    classes : array of int64, shape (windows,)
        Equal for windows with equal tokens; from 0 on.
    length : int
    copies : int
        At least 1.

    Returns
    -------
    array of int64, shape (windows,)
    """
    lost, sources = set(), []
    for i, (place, own) in enumerate(zip(places.tolist(), classes.tolist(), strict=True)):
        whole = [
            other
            for other, its in zip(places[:i].tolist(), classes[:i].tolist(), strict=True)
            if its == own and other + length <= place and lost.isdisjoint(range(other, other + length))
        ]
        removed = len(whole) >= copies
        sources.append(whole[0] if removed else -1)
        if removed:
            lost.update(range(place, place + length))
    return np.array(sources, np.int64)


@jit(Rare("int64[::1], int64[::1], (int64, int64), (int64[::1], int64[::1], int64[::1], int64[::1]), int64[::1]"))
def _decide(places, classes, rule, room, sources):
    """Write the source of each window.

    `room`: for each class, the next member that may be a source, and the number of whole ones; for each window, the
    next member of its class; and the beginnings, then the ends, of removed runs.
    """
    length, copies = rule
    asked, whole, following, runs = room
    n = len(places)
    begins, ends = runs[:n], runs[n:]
    last, first = np.full(len(asked), -1, np.int64), np.full(len(asked), -1, np.int64)
    removed = np.int64(0)
    for i in range(n):
        own, place = classes[i], places[i]
        if last[own] < 0:
            asked[own] = i
        else:
            following[last[own]] = i
        last[own] = i
        while whole[own] < copies and asked[own] >= 0:
            candidate = places[asked[own]]
            if candidate + length > place:
                break
            run = np.searchsorted(begins[:removed], candidate + length) - 1  # the last one that begins before its end
            if run < 0 or ends[run] <= candidate:
                if whole[own] == 0:
                    first[own] = candidate
                whole[own] += 1
            asked[own] = following[asked[own]]
        if whole[own] < copies:
            continue
        sources[i] = first[own]
        if removed > 0 and place <= ends[removed - 1]:
            ends[removed - 1] = place + length
        else:
            begins[removed], ends[removed] = place, place + length
            removed += 1


def cpu(places, classes, length, copies):
    """As `reference`: each class asks its members once, in their order, when they can no longer lose a token."""
    number = len(places)
    sources = np.full(number, -1, np.int64)
    several = int(classes.max(initial=-1)) + 1
    asked, whole = np.full(several, -1, np.int64), np.zeros(several, np.int64)
    room = asked, whole, np.full(number, -1, np.int64), np.empty(2 * number, np.int64)
    _decide(np.ascontiguousarray(places), np.ascontiguousarray(classes), (length, copies), room, sources)
    return sources


# --------------------------------------------------------------------------------------------------------- on a device

_ROUNDS = 64  # after which the host decides: windows so placed that each waits for the one before


@kernel("void(int64[::1], int64[::1], int64, int64[::1])")
def _count_ended(places, heads, length, stops):
    """One thread a window, class by class: write where those of its class end that end at or before its beginning."""
    at = np.int64(cuda.grid(1))
    if at < len(places):
        stops[at] = lower_bound(places, heads[at], at, places[at] - length + np.int64(1))


def _number_of(xp, marked, begins, ends):
    """Return the number of marks in each of some runs of an array."""
    before = _new_offsets(xp, marked)
    return before[ends] - before[begins]


def gpu(places, classes, length, copies):
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
    places, classes = on_device(places), on_device(classes)
    order, begins = order_of(classes.view(np.uint64))
    of_class = places[order]
    heads = xp.flatnonzero(begins)[xp.cumsum(begins) - 1]
    stops = xp.empty(len(order), np.int64)
    _count_ended.threads(len(order), of_class, heads, length, stops)
    overlapping = xp.searchsorted(places, places - length, side="right"), xp.searchsorted(places, places + length)
    removed, undecided = xp.zeros(len(places), bool), xp.ones(len(places), bool)
    for _ in range(_ROUNDS):
        possible = _number_of(xp, removed, *overlapping) == 0
        whole = possible & (_number_of(xp, undecided, *overlapping) == 0)
        removed[order] = _number_of(xp, whole[order], heads, stops) >= copies
        undecided[order] = _number_of(xp, possible[order], heads, stops) >= copies
        undecided &= ~removed
        if not undecided.any():
            break
    else:
        return on_device(cpu(to_host(places), to_host(classes), length, copies))
    whole, gone = (_number_of(xp, removed, *overlapping) == 0)[order], removed[order]
    sources = xp.full(len(places), -1, np.int64)
    sources[order[gone]] = of_class[xp.flatnonzero(whole)[_new_offsets(xp, whole)[heads[gone]]]]
    return sources
