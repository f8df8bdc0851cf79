"""The set join: for each row, its first candidates by priority, from runs of postings.

Rows are numbered by priority. Two rows are candidates at a run that holds both, the shingle of one of them in its short
prefix, if the sizes of their sets and the places of the shingle leave room for enough common elements: with i, j the
places and a <= b the sizes,

    min(a - i, b - j) >= least(a, b)

where `least` is least_overlap(a + b) for resemblance, and least_shared(a) for the containment of the smaller set in the
larger one (`_bounds`).

At the first element that two sets have in common, in the order of all elements, every pair at the threshold is
candidates (`prefixes`). A pair that fails there fails at every later element too, where fewer elements are left.

Source: Xiao, Wang, Lin and Yu 2008 (PPJoin), for the places; `prefixes` for the lemma.
Cost: the entries looked at, which are counted. A row whose list is full looks at no entry beyond the last of its list,
so that in a crowd of near-duplicates each row meets about as many as it asks for.
"""

from __future__ import annotations

import numpy as np

from ._cpu import jit, parallel, shares
from ._launch import Device, cuda, kernel, namespace, on_device
from ._search import lower_bound
from .prefixes import PLACE_BITS

_PLACE = np.uint64((1 << PLACE_BITS) - 1)
_ROW = np.uint64((1 << 32) - 1)


def reference(entries, starts, splits, places, offsets, sizes, needed, both, rows, first, stop, most):
    """The first candidates of some rows, by looking at one entry after the other.

    Parameters
    ----------
    entries, starts, splits, places, offsets : arrays
        As `runs` gives them.
    sizes : array of int32, shape (all rows,)
        Size of each row's set.
    needed : array of int32
        The least number of common elements of two sets, by the smaller size plus `both` times the larger size. The
        short prefix of a set has the places up to its size less what two sets of that size need.
    both : int
        1 for resemblance, whose least overlap depends on both sizes; 0 for containment.
    rows : array of int64, shape (queries,)
        The rows whose candidates are looked for.
    first, stop : arrays of int64, shape (queries,)
        The candidates of each query are rows from `first` on and before `stop`.
    most : int
        The largest number of candidates per query; at least 1.

    Returns
    -------
    candidates : array of int64
        Query by query, ascending, each once: the first `most` from `first` on, or all if there are fewer.
    ends : array of int64, shape (queries + 1,)
        Where the candidates of each query begin.
    looked_at : array of int64, shape (queries,)
        Number of entries that were looked at for each query.
    """
    found, looked_at = [], []
    for row, low, high in zip(rows.tolist(), first.tolist(), stop.tolist(), strict=True):
        best: list[int] = []
        looks = 0
        for word in places[offsets[row] : offsets[row + 1]].tolist():
            run, place = word // 2**31, word % 2**31
            short = place < sizes[row] - needed[(1 + both) * sizes[row]] + 1
            parts = [entries[starts[run] : splits[run]], entries[splits[run] : starts[run + 1]] if short else []]
            for entry in (int(entry) for part in parts for entry in part):
                other, at = entry % 2**63 // 2**31, entry % 2**31
                if not low <= other < high or (len(best) == most and other >= best[-1]):
                    continue
                looks += 1
                least = needed[min(sizes[row], sizes[other]) + both * max(sizes[row], sizes[other])]
                if other != row and other not in best and min(sizes[row] - place, sizes[other] - at) >= least:
                    best = sorted([*best, other])[:most]
        found.append(best)
        looked_at.append(looks)
    return (
        np.array([other for best in found for other in best], np.int64),
        np.cumsum([0, *map(len, found)], dtype=np.int64),
        np.array(looked_at, np.int64),
    )


@jit()
def _row_of(entry):
    return np.int64((entry >> np.uint64(PLACE_BITS)) & _ROW)


@jit()
def _from(entries, start, stop, row):
    """Return the place of the first entry from `start` to `stop` whose row is not before `row`."""
    while start < stop:
        middle = (start + stop) >> 1
        if _row_of(entries[middle]) < row:
            start = middle + 1
        else:
            stop = middle
    return start


@jit()
def _insert(best, number, row):
    """Insert a row into an ascending list of `number` rows, unless it is there; the last one goes if it is full."""
    low = lower_bound(best, 0, number, row)
    if low < number and best[low] == row:
        return number
    last = min(number, len(best) - 1)
    for i in range(last, low, -1):
        best[i] = best[i - 1]
    best[low] = row
    return min(number + 1, len(best))


@jit()
def _scan(entries, start, stop, sizes, needed, both, row, place, low, high, seen, best, number):
    """Look at a part of a run, whose entries ascend; return (candidates in `best`, entries looked at).

    `seen` remembers each candidate by some bits of its number, so most repeats need no search in the list.
    """
    looks, size = 0, np.int64(sizes[row])
    if low > 0 and stop - start > 8:
        start = _from(entries, start, stop, low)
    for i in range(start, stop):
        other = _row_of(entries[i])
        if other < low:
            continue
        if other >= high or (number == len(best) and other >= best[number - 1]):
            break
        looks += 1
        if other == row or seen[other & 255] == other:
            continue
        theirs = np.int64(sizes[other])
        least = needed[min(size, theirs) + both * max(size, theirs)]
        if size - place >= least and theirs - np.int64(entries[i] & _PLACE) >= least:
            seen[other & 255] = other
            number = _insert(best, number, other)
    return number, looks


@jit()
def _probe(entries, starts, splits, places, offsets, sizes, needed, both, row, low, high, seen, best):
    """Find the first candidates of a row; return (how many are in `best`, entries looked at)."""
    number = looks = 0
    size = np.int64(sizes[row])
    short = size - needed[(1 + both) * size] + 1
    for word in places[offsets[row] : offsets[row + 1]]:
        run, place = np.int64(word >> np.uint64(PLACE_BITS)), np.int64(word & _PLACE)
        start, split, stop = starts[run], splits[run], starts[run + 1]
        number, some = _scan(entries, start, split, sizes, needed, both, row, place, low, high, seen, best, number)
        looks += some
        if split < stop and place < short:
            number, some = _scan(entries, split, stop, sizes, needed, both, row, place, low, high, seen, best, number)
            looks += some
    return number, looks


@parallel(
    "uint64[::1], int64[::1], int64[::1], uint64[::1], int64[::1], int32[::1], int32[::1], int64, "
    "int64[::1], int64[::1], int64[::1], int64[::1], int64[:, ::1], int64[::1], int64[::1]"
)
def _probe_rows(
    begin,
    end,
    entries,
    starts,
    splits,
    places,
    offsets,
    sizes,
    needed,
    both,
    rows,
    first,
    stop,
    bounds,
    best,
    number,
    looks,
):
    for part in range(begin, end):
        seen = np.empty(256, np.int64)
        for i in range(bounds[part], bounds[part + 1]):
            if offsets[rows[i]] < offsets[rows[i] + 1]:
                seen[:] = -1
                number[i + 1], looks[i] = _probe(
                    entries,
                    starts,
                    splits,
                    places,
                    offsets,
                    sizes,
                    needed,
                    both,
                    rows[i],
                    first[i],
                    stop[i],
                    seen,
                    best[i],
                )


@parallel("int64[:, ::1], int64[::1], int64[::1]")
def _gather_lists(begin, end, best, ends, found):
    for i in range(begin, end):
        for k in range(ends[i + 1] - ends[i]):
            found[ends[i] + k] = best[i, k]


def cpu(entries, starts, splits, places, offsets, sizes, needed, both, rows, first, stop, most):
    """As `reference`; rows in parallel."""
    best, ends = np.empty((len(rows), most), np.int64), np.zeros(len(rows) + 1, np.int64)
    looks = np.zeros(len(rows), np.int64)
    work = np.concatenate([np.zeros(1, np.int64), np.cumsum(offsets[rows + 1] - offsets[rows] + 1)])
    bounds = shares(work, 64)
    probed = entries, starts, splits, places, offsets, sizes, needed, both
    _probe_rows(len(bounds) - 1, *probed, rows, first, stop, bounds, best, ends, looks)
    np.cumsum(ends, out=ends)
    found = np.empty(ends[-1], np.int64)
    _gather_lists(len(best), best, ends, found)
    return found, ends, looks


_from_on_device = Device(_from.py_func)  # the same, for kernels
_insert_on_device = Device(_insert.py_func)


@kernel(
    "void(uint64[::1], int64[::1], int64[::1], uint64[::1], int64[::1], int32[::1], int32[::1], "
    "int64, int64[::1], int64[::1], int64[::1], int64[:,::1], int64[::1], int64[::1])"
)
def _probe_all(entries, starts, splits, places, offsets, sizes, needed, both, rows, first, stop, best, number, looks):
    """One thread a row: its candidates into its list in `best`, how many they are, and the entries looked at."""
    at = cuda.grid(1)
    if at >= len(rows):
        return
    row, low, high, mine = rows[at], first[at], stop[at], best[at]
    size, held, looked = np.int64(sizes[row]), np.int64(0), np.int64(0)
    word_at, behind = offsets[row], offsets[row + np.int64(1)]
    while word_at < behind:
        run, place = np.int64(places[word_at] >> np.uint64(PLACE_BITS)), np.int64(places[word_at] & _PLACE)
        i, until, last = starts[run], splits[run], splits[run]
        if place < size - np.int64(needed[(np.int64(1) + both) * size]) + np.int64(1):
            last = starts[run + np.int64(1)]
        while i < last:  # once for each part of the run: short entries, then those that are long alone
            if i == until:
                until = last
            if low > 0:
                i = _from_on_device(entries, i, until, low)
            while i < until:
                other = _row_of(entries[i])
                if other >= high or (held == len(mine) and other >= mine[held - 1]):
                    break
                looked += np.int64(1)
                if other != row:
                    theirs = np.int64(sizes[other])
                    least = np.int64(needed[min(size, theirs) + both * max(size, theirs)])
                    if size - place >= least and theirs - np.int64(entries[i] & _PLACE) >= least:
                        held = _insert_on_device(mine, held, other)
                i += np.int64(1)
            i = until
        word_at += np.int64(1)
    number[at], looks[at] = held, looked


def gpu(entries, starts, splits, places, offsets, sizes, needed, both, rows, first, stop, most):
    """As `reference`; a thread a row, its list in global memory. Repeats are searched for in the list alone."""
    xp = namespace()
    best = xp.empty((len(rows), most), np.int64)
    number, looks = xp.empty(len(rows), np.int64), xp.empty(len(rows), np.int64)
    index = map(on_device, (entries, starts, splits, places, offsets, sizes, needed))
    queries = map(on_device, (rows, first, stop))
    _probe_all.threads(len(rows), *index, both, *queries, best, number, looks)
    ends = xp.zeros(len(rows) + 1, np.int64)
    ends[1:] = xp.cumsum(number)
    return best[xp.arange(most) < number[:, None]], ends, looks
