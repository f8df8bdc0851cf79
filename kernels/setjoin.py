"""The set join: for each row, its first candidates by priority, from runs of postings.

Rows are numbered by priority. Two rows meet in a run that holds both, the shingle of one of them in its short prefix.
They are candidates if three filters leave room for enough common elements. With i, j the places of the shingle, a <= b
the sizes and x, y the bitmaps of the smaller and the larger set:

    size      a >= least(a, b)
    place     min(a - i, b - j) >= least(a, b)
    bits      popcount(x ^ y) <= a + b - 2 least(a, b)      for resemblance
              popcount(x & ~y) <= a - least(a, b)           for containment

where `least` is least_overlap(a + b) for resemblance, and least_shared(a) for the containment of the smaller set in the
larger one (`_bounds`).

At the first element that two sets have in common, in the order of all elements, every pair at the threshold is
candidates (`prefixes`, and the lemma of `bitmaps`). A pair that fails there fails at every later element too, where
fewer elements are left.

A row whose runs have more entries than `SCAN` times the rows that they lie among looks at these rows themselves, from
the first to the last one, by their sizes and bitmaps: a pair is then looked at once, however many shingles it shares.

Source: Xiao, Wang, Lin and Yu 2008 (PPJoin), for the places; `prefixes` and `bitmaps` for the lemmas.
Cost: the entries or rows looked at, which are counted. A row whose list is full looks at nothing beyond the last of its
list, so that in a crowd of near-duplicates each row meets about as many as it asks for.
"""

from __future__ import annotations

import numpy as np

from ._bits import count_bits
from ._cpu import jit, parallel, shares
from ._launch import Device, cuda, kernel, namespace, on_device
from ._search import lower_bound
from .bitmaps import MOST_WORDS
from .prefixes import PLACE_BITS

SCAN = 4
"""Entries that take about as long as a row by its bitmap: they are met in any order."""

FEW = 32
"""Entries that are looked at one by one, whatever they lie among."""

WIDTH_BITS = 4
"""Bits of the width in what says where a bitmap is."""

_PLACE = np.uint64((1 << PLACE_BITS) - 1)
_ROW = np.uint64((1 << 32) - 1)
_WIDTH = np.uint64((1 << WIDTH_BITS) - 1)
_MOST_BITS = 64 * MOST_WORDS


def reference(
    entries, starts, splits, places, offsets, sizes, bitmaps, words, held, needed, both, rows, first, stop, most
):
    """The first candidates of some rows, by looking at one entry after the other.

    Parameters
    ----------
    entries, starts, splits, places, offsets : arrays
        As `runs` gives them.
    sizes : array of int32, shape (all rows,)
        Size of each row's set.
    bitmaps : array of int64, shape (all rows,)
        Where each row's bitmap is: 16 times its first word, and the binary logarithm of the number of its words.
    words : array of uint64
        The bitmaps of all rows that have places, as `bitmaps` makes them: flipped for resemblance.
    held : array of uint8, shape (all rows,)
        Not 0 for rows that may be candidates: those that have entries.
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
    looked_at : array of int64, shape (queries, 4)
        Number of entries or rows that were looked at for each query, and how many of them fail by size, by place and by
        bits. Each is counted by the first filter that it fails.
    """

    def bitmap(row):
        begin, width = int(bitmaps[row]) // 16, 2 ** (int(bitmaps[row]) % 16)
        return sum(word << 64 * at for at, word in enumerate(words[begin : begin + width].tolist())), 64 * width

    def folded(bits, width, narrow):
        while width > narrow:
            width //= 2
            halves = bits >> width, bits % 2**width
            bits = halves[0] ^ halves[1] if both else halves[0] | halves[1]
        return bits

    def failed(row, other, place, at):
        """0 for a candidate, or the number of the first filter that it fails."""
        small, large = sorted([row, other], key=lambda each: (sizes[each], each != row))
        a, b = int(sizes[small]), int(sizes[large])
        least = int(needed[a + both * b])
        if a < least:
            return 1
        if min(sizes[row] - place, sizes[other] - at) < least:
            return 2
        (x, width), (y, other_width) = bitmap(small), bitmap(large)
        narrow = min(width, other_width)
        x, y = folded(x, width, narrow), folded(y, other_width, narrow)
        return 3 * ((x ^ y).bit_count() > a + b - 2 * least if both else (x & ~y).bit_count() > a - least)

    found, looked_at = [], []
    for row, low, high in zip(rows.tolist(), first.tolist(), stop.tolist(), strict=True):
        best: list[int] = []
        looks = [0, 0, 0, 0]
        parts = []
        for word in places[offsets[row] : offsets[row + 1]].tolist():
            run, place = word // 2**31, word % 2**31
            short = place < sizes[row] - needed[(1 + both) * sizes[row]] + 1
            some = entries[starts[run] : splits[run]], entries[splits[run] : starts[run + 1]] if short else []
            parts += [(place, [(entry % 2**63 // 2**31, entry % 2**31) for entry in map(int, each)]) for each in some]
        met = sorted({other for _, some in parts for other, _ in some})
        total = sum(len(some) for _, some in parts)
        if total > max(FEW, SCAN * (min(high, met[-1] + 1) - max(low, met[0])) if met else 0):
            among = range(max(low, met[0]), min(high, met[-1] + 1))
            parts = [(0, [(other, 0) for other in among if held[other] and other != row])]
        for place, some in parts:
            for other, at in some:
                if not low <= other < high or (len(best) == most and other >= best[-1]):
                    continue
                looks[0] += 1
                reason = failed(row, other, place, at) if other != row else 0
                looks[reason] += reason > 0
                if other != row and reason == 0 and other not in best:
                    best = sorted([*best, other])[:most]
        found.append(best)
        looked_at.append(looks)
    return (
        np.array([other for best in found for other in best], np.int64),
        np.cumsum([0, *map(len, found)], dtype=np.int64),
        np.array(looked_at, np.int64).reshape(-1, 4),
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
def _insert(best, number, low, row):
    """Insert a row at a place of an ascending list of `number` rows; the last one goes if it is full."""
    last = min(number, len(best) - 1)
    for i in range(last, low, -1):
        best[i] = best[i - 1]
    best[low] = row
    return min(number + 1, len(best))


@jit()
def _ones(x, y, flip):
    """Return the number of ones by which two words of bitmaps differ, of a smaller and a larger set."""
    return np.uint32(count_bits(x & ~y | (y & ~x & flip)))


def _ones_by_popc(x, y, flip):
    """Do the same as `_ones` on a device, whose compiler does not find the instruction by itself."""
    return np.uint32(cuda.popc(x & ~y | (y & ~x & flip)))


Device(_ones_by_popc, _ones.py_func)


@jit()
def _folded(words, place, word, narrow, width, flip):
    """Return a word of a bitmap that is folded to `narrow` words."""
    found, at = words[place + np.uint64(word)], np.uint32(word + narrow)
    while at < width:
        more = words[place + np.uint64(at)]
        found = (found ^ more) & flip | (found | more) & ~flip
        at = np.uint32(at + narrow)
    return found


@jit()
def _differ(words, small, large, flip, most):
    """Return whether two bitmaps, of a smaller and a larger set, have more than `most` ones by which they differ.

    Widths and counts have 32 bits, as registers of a GPU do.
    """
    flip = np.uint64(0) - np.uint64(flip)  # all bits, or none
    place, other_place = np.uint64(small) >> np.uint64(WIDTH_BITS), np.uint64(large) >> np.uint64(WIDTH_BITS)
    width = np.uint32(np.uint32(1) << np.uint32(np.uint64(small) & _WIDTH))
    other_width = np.uint32(np.uint32(1) << np.uint32(np.uint64(large) & _WIDTH))
    narrow, most = width if width < other_width else other_width, np.uint32(min(most, np.int64(_MOST_BITS)))
    count, word = np.uint32(0), np.uint32(0)
    if width == other_width:
        count, word = _count_fours(words, place, other_place, width, flip, most)
    while word < narrow and count <= most:
        x = _folded(words, place, word, narrow, width, flip)
        count = np.uint32(count + _ones(x, _folded(words, other_place, word, narrow, other_width, flip), flip))
        word = np.uint32(word + np.uint32(1))
    return count > most


@jit()
def _count_fours(words, place, other_place, width, flip, most):
    """Return the number of ones by which the first words of two bitmaps of one width differ, and the number of words.

    Words are compared by fours, until there are more than `most` ones.
    """
    count, word = np.uint32(0), np.uint32(0)
    while np.uint32(word + np.uint32(4)) <= width and count <= most:
        for step in range(4):
            at = np.uint64(word) + np.uint64(step)
            count = np.uint32(count + _ones(words[place + at], words[other_place + at], flip))
        word = np.uint32(word + np.uint32(4))
    return count, word


def _count_none(words, place, other_place, width, flip, most):
    """Take the place of `_count_fours` on a device, where it would need too many registers."""
    return np.uint32(0), np.uint32(0)


Device(_count_none, _count_fours.py_func)


@jit()
def _rejected(sizes, bitmaps, words, both, row, other, least):
    """Return whether the bitmaps of two rows leave fewer than `least` common elements."""
    size, theirs = np.int64(sizes[row]), np.int64(sizes[other])
    small, large = (row, other) if size <= theirs else (other, row)
    most = size + theirs - least - least if both else min(size, theirs) - least
    return _differ(words, bitmaps[small], bitmaps[large], both, most)


@jit()
def _ends(entries, start, split, stop, first, last):
    """Return the first and the last row, from a run's entries and the given rows; both parts of the run ascend."""
    if start < split:
        first = min(first, _row_of(entries[start]))
        last = max(last, _row_of(entries[split - np.int64(1)]))
    if split < stop:
        first = min(first, _row_of(entries[split]))
        last = max(last, _row_of(entries[stop - np.int64(1)]))
    return first, last


@jit()
def _rows_to_scan(entries, starts, splits, places, begin, end, short, low, high):
    """Return the first of the rows that are looked at in place of a row's runs, and the one after the last.

    The first one is -1 where the runs have few entries enough.
    """
    total, first, last = np.int64(0), high, np.int64(-1)
    for at in range(begin, end):
        run = np.int64(places[at] >> np.uint64(PLACE_BITS))
        total += (starts[run + 1] if np.int64(places[at] & _PLACE) < short else splits[run]) - starts[run]
    if total <= FEW:
        return np.int64(-1), last
    for at in range(begin, end):
        run = np.int64(places[at] >> np.uint64(PLACE_BITS))
        stop = starts[run + 1] if np.int64(places[at] & _PLACE) < short else splits[run]
        first, last = _ends(entries, starts[run], splits[run], stop, first, last)
    first, last = max(low, first), min(high, last + np.int64(1))
    return (first if total > np.int64(SCAN) * (last - first) else np.int64(-1)), last


@jit()
def _scan(sizes, bitmaps, words, held, needed, both, row, other, stop, best, looked_at):
    """Write the first candidates of a row from `other` on, by sizes and bitmaps; return their number."""
    number, looks, by_size, by_bits = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    size = np.int64(sizes[row])
    while other < stop and number < len(best):
        if held[other] and other != row:
            looks += np.int64(1)
            theirs = np.int64(sizes[other])
            smaller = min(size, theirs)
            least = np.int64(needed[smaller + both * max(size, theirs)])
            if smaller < least:
                by_size += np.int64(1)
            elif _rejected(sizes, bitmaps, words, both, row, other, least):
                by_bits += np.int64(1)
            else:
                best[number] = other
                number += np.int64(1)
        other += np.int64(1)
    looked_at[0], looked_at[1], looked_at[2], looked_at[3] = looks, by_size, np.int64(0), by_bits
    return number


@jit()
def _meet(
    entries,
    starts,
    splits,
    places,
    sizes,
    bitmaps,
    words,
    needed,
    both,
    begin,
    end,
    short,
    row,
    low,
    high,
    best,
    looked_at,
):
    """Write the first candidates of a row, from the runs of its places; return their number."""
    one, number = np.int64(1), np.int64(0)
    looked_at[0], looked_at[1], looked_at[2], looked_at[3] = number, number, number, number
    size = np.int64(sizes[row])
    for step in range(begin + begin, end + end):  # two parts of each run: short entries, then those that are long alone
        word = places[step >> one]
        run, place = np.int64(word >> np.uint64(PLACE_BITS)), np.int64(word & _PLACE)
        i, until = starts[run], splits[run]
        if step & one:
            i, until = until, starts[run + one] if place < short else until
        if low > 0:
            i = _from(entries, i, until, low)
        while i < until:
            other = _row_of(entries[i])
            if other >= high:
                break
            looked_at[0] += one
            theirs = np.int64(sizes[other])
            smaller = min(size, theirs)
            least = np.int64(needed[smaller + both * max(size, theirs)])
            left = min(size - place, theirs - np.int64(entries[i] & _PLACE))
            i += one
            if other == row:
                continue
            if left < least:
                looked_at[one if smaller < least else one + one] += one
                continue
            at = lower_bound(best, 0, number, other)
            if at < number and best[at] == other:
                continue
            if _rejected(sizes, bitmaps, words, both, row, other, least):
                looked_at[3] += one
                continue
            number = _insert(best, number, at, other)
            if number == len(best):  # nothing beyond the last one of a full list
                high = best[number - one]
    return number


@jit()
def _probe(
    entries, starts, splits, places, offsets, sizes, bitmaps, words, held, needed, both, row, low, high, best, looked_at
):
    """Write the first candidates of a row to `best`, and what was looked at; return the number of candidates."""
    size, begin, end = np.int64(sizes[row]), offsets[row], offsets[row + 1]
    short = size - np.int64(needed[(1 + both) * size]) + 1
    first, stop = _rows_to_scan(entries, starts, splits, places, begin, end, short, low, high)
    if first >= 0:
        return _scan(sizes, bitmaps, words, held, needed, both, row, first, stop, best, looked_at)
    return _meet(
        entries,
        starts,
        splits,
        places,
        sizes,
        bitmaps,
        words,
        needed,
        both,
        begin,
        end,
        short,
        row,
        low,
        high,
        best,
        looked_at,
    )


@parallel(
    "uint64[::1], int64[::1], int64[::1], uint64[::1], int64[::1], int32[::1], int64[::1], uint64[::1], uint8[::1], "
    "int32[::1], int64, int64[::1], int64[::1], int64[::1], int64[::1], int64[:, ::1], int64[::1], int64[:, ::1]",
    is_wide=True,
)
def _probe_rows(
    lower,
    upper,
    entries,
    starts,
    splits,
    places,
    offsets,
    sizes,
    bitmaps,
    words,
    held,
    needed,
    both,
    rows,
    first,
    stop,
    bounds,
    best,
    number,
    looked_at,
):
    for part in range(lower, upper):
        for i in range(bounds[part], bounds[part + 1]):
            number[i + 1] = _probe(
                entries,
                starts,
                splits,
                places,
                offsets,
                sizes,
                bitmaps,
                words,
                held,
                needed,
                both,
                rows[i],
                first[i],
                stop[i],
                best[i],
                looked_at[i],
            )


@parallel("int64[:, ::1], int64[::1], int64[::1]")
def _gather_lists(begin, end, best, ends, found):
    for i in range(begin, end):
        for k in range(ends[i + 1] - ends[i]):
            found[ends[i] + k] = best[i, k]


def cpu(entries, starts, splits, places, offsets, sizes, bitmaps, words, held, needed, both, rows, first, stop, most):
    """As `reference`; rows in parallel."""
    best, ends = np.empty((len(rows), most), np.int64), np.zeros(len(rows) + 1, np.int64)
    looked_at = np.empty((len(rows), 4), np.int64)
    work = np.concatenate([np.zeros(1, np.int64), np.cumsum(offsets[rows + 1] - offsets[rows] + 1)])
    bounds = shares(work, 64)
    index = entries, starts, splits, places, offsets, sizes, bitmaps, words, held, needed, both
    _probe_rows(len(bounds) - 1, *index, rows, first, stop, bounds, best, ends, looked_at)
    np.cumsum(ends, out=ends)
    found = np.empty(ends[-1], np.int64)
    _gather_lists(len(best), best, ends, found)
    return found, ends, looked_at


for _function in (_from, _insert, _folded, _differ, _rejected, _ends, _rows_to_scan, _scan, _meet):
    Device(_function.py_func)  # the same, for kernels


_TO_SCAN = np.int64(-1)


@kernel(
    "void(uint64[::1], int64[::1], int64[::1], uint64[::1], int64[::1], int32[::1], int32[::1], int64, int64[::1], "
    "int64[::1], int64[::1], int64[::1], int64[:,::1])"
)
def _choose_all(entries, starts, splits, places, offsets, sizes, needed, both, rows, first, stop, number, looked_at):
    """One thread a row: whether it is to be scanned, and the rows to scan in place of what was looked at."""
    i = cuda.grid(1)
    if i < len(rows):
        row, one = rows[i], np.int64(1)
        size = np.int64(sizes[row])
        short = size - np.int64(needed[(one + both) * size]) + one
        runs = offsets[row], offsets[row + one]
        other, until = _rows_to_scan(entries, starts, splits, places, runs[0], runs[1], short, first[i], stop[i])
        number[i] = _TO_SCAN if other >= 0 else np.int64(0)
        looked_at[i, 0], looked_at[i, 1] = other, until


@kernel(
    "void(uint64[::1], int64[::1], int64[::1], uint64[::1], int64[::1], int32[::1], int64[::1], uint64[::1], "
    "int32[::1], int64, int64[::1], int64[::1], int64[::1], int64[:,::1], int64[::1], int64[:,::1])"
)
def _meet_all(
    entries,
    starts,
    splits,
    places,
    offsets,
    sizes,
    bitmaps,
    words,
    needed,
    both,
    rows,
    first,
    stop,
    best,
    number,
    looked_at,
):
    """One thread a row that is not to be scanned: its candidates into its list in `best`, and what was looked at."""
    i = cuda.grid(1)
    if i >= len(rows) or number[i] == _TO_SCAN:
        return
    row, one = rows[i], np.int64(1)
    size = np.int64(sizes[row])
    number[i] = _meet(
        entries,
        starts,
        splits,
        places,
        sizes,
        bitmaps,
        words,
        needed,
        both,
        offsets[row],
        offsets[row + one],
        size - np.int64(needed[(one + both) * size]) + one,
        row,
        first[i],
        stop[i],
        best[i],
        looked_at[i],
    )


@kernel(
    "void(int32[::1], int64[::1], uint64[::1], uint8[::1], int32[::1], int64, int64[::1], int64[:,::1], int64[::1], "
    "int64[:,::1])"
)
def _scan_all(sizes, bitmaps, words, held, needed, both, rows, best, number, looked_at):
    """One thread a row that is to be scanned: as `_meet_all`."""
    i = cuda.grid(1)
    if i < len(rows) and number[i] == _TO_SCAN:
        first, stop = looked_at[i, 0], looked_at[i, 1]
        number[i] = _scan(sizes, bitmaps, words, held, needed, both, rows[i], first, stop, best[i], looked_at[i])


def gpu(entries, starts, splits, places, offsets, sizes, bitmaps, words, held, needed, both, rows, first, stop, most):
    """Do the same as `reference`; one thread per row, whose list is in global memory.

    One kernel chooses the rows that are scanned, one looks at the runs of the others, and one scans. A single kernel
    would need too many registers.
    """
    xp = namespace()
    best, looked_at = xp.empty((len(rows), most), np.int64), xp.empty((len(rows), 4), np.int64)
    number = xp.empty(len(rows), np.int64)
    runs = tuple(map(on_device, (entries, starts, splits, places, offsets)))
    sets, found = tuple(map(on_device, (sizes, bitmaps, words))), (best, number, looked_at)
    held, needed, rows = on_device(held), on_device(needed), on_device(rows)
    asked = needed, both, rows, on_device(first), on_device(stop)
    _choose_all.threads(len(rows), *runs, sets[0], *asked, number, looked_at)
    _meet_all.threads(len(rows), *runs, *sets, *asked, *found)
    _scan_all.threads(len(rows), *sets, held, needed, both, rows, *found)
    ends = xp.zeros(len(rows) + 1, np.int64)
    ends[1:] = xp.cumsum(number)
    return best[xp.arange(most) < number[:, None]], ends, looked_at
