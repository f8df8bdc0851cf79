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

Most entries fail by their sizes, places, or bitmaps folded to one word, which are alike for all entries: so up to 64 of
them are looked at together on a CPU, without a branch, and only what is left is looked at one by one. A pair that fails
by its folded bitmaps fails by the whole ones, too, because folding adds no ones to what differs.

At the first element that two sets have in common, in the order of all elements, every pair at the threshold is
candidates (`prefixes`, and the lemma of `bitmaps`). A pair that fails there fails at every later element too, where
fewer elements are left.

A row whose runs have more entries than `SCAN` times the rows that they lie among looks at these rows themselves, from
the first to the last one, by their sizes and bitmaps: a pair is then looked at once, however many shingles it shares.

Source: Xiao, Wang, Lin and Yu 2008 (PPJoin), for the places; `prefixes` and `bitmaps` for the lemmas.
Cost: the entries or rows looked at, which are counted. A row whose list is full stops after the last row of its
list, so that each row of a crowd of near-duplicates meets about as many rows as its list has places.
"""

from __future__ import annotations

import numpy as np

from ._bits import count_bits
from ._cpu import jit, shares
from ._launch import Device, cuda, kernel, namespace, on_device
from ._ragged import by_rows, of_rows, sums_before
from ._search import lower_bound
from .bitmaps import MOST_WORDS
from .gather import copied
from .prefixes import PLACE_BITS

SCAN = 4
"""Entries that take about as long as a row by its bitmap: they are met in any order."""

FEW = 32
"""Entries that are looked at one by one, whatever they lie among."""

REMEMBERED = 64
"""Rows that a processor remembers to have compared with the same row: near-duplicates meet in many runs."""

WIDTH_BITS = 4
"""Bits of the width in what says where a bitmap is."""

_PLACE = np.uint64((1 << PLACE_BITS) - 1)
_ROW = np.uint64((1 << 32) - 1)
_WIDTH = np.uint64((1 << WIDTH_BITS) - 1)
_SLOT = np.uint64(REMEMBERED - 1)
_MOST_BITS = 64 * MOST_WORDS


def reference(
    entries, starts, splits, places, offsets, sizes, folds, bitmaps, words, held, needed, both, rows, first, stop, most
):
    """The first candidates of some rows, by looking at one entry after the other.

    Parameters
    ----------
    entries, starts, splits, places, offsets : arrays
        As `runs` gives them.
    sizes : array of int32, shape (all rows,)
        Size of each row's set.
    folds : array of uint64, shape (all rows,)
        Each row's bitmap, folded to one word.
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
    return *of_rows(found, np.int64), np.array(looked_at, np.int64).reshape(-1, 4)


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
def _ones_of(word):
    """Return the number of ones of a word."""
    return np.uint32(count_bits(word))


def _popc(word):
    """Do the same as `_ones_of` on a device, whose compiler does not find the instruction by itself."""
    return np.uint32(cuda.popc(word))


Device(_popc, _ones_of.py_func)


@jit()
def _ones(x, y, flip):
    """Return the number of ones by which two words of bitmaps differ, of a smaller and a larger set."""
    return _ones_of(x & ~y | (y & ~x & flip))


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
def _is_candidate(known, needed, both, row, other):
    """Return whether the bitmaps of two rows leave room for enough common elements."""
    sizes, _, bitmaps, words = known
    size, theirs = np.int64(sizes[row]), np.int64(sizes[other])
    small, large = (row, other) if size <= theirs else (other, row)
    smaller = min(size, theirs)
    least = np.int64(needed[smaller + both * max(size, theirs)])
    most = size + theirs - least - least if both else smaller - least
    return not _differ(words, bitmaps[small], bitmaps[large], both, most)


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
def _rows_to_scan(runs, sizes, needed, both, row, low, high):
    """Return the first of the rows that are looked at in place of a row's runs, and the one after the last.

    The first one is -1 where the runs have few entries enough.
    """
    entries, starts, splits, places, offsets = runs
    one, size = np.int64(1), np.int64(sizes[row])
    short = size - np.int64(needed[(one + both) * size]) + one
    total, first, last = np.int64(0), high, np.int64(-1)
    for at in range(offsets[row], offsets[row + one]):
        run = np.int64(places[at] >> np.uint64(PLACE_BITS))
        total += (starts[run + one] if np.int64(places[at] & _PLACE) < short else splits[run]) - starts[run]
    if total <= FEW:
        return np.int64(-1), last
    for at in range(offsets[row], offsets[row + one]):
        run = np.int64(places[at] >> np.uint64(PLACE_BITS))
        stop = starts[run + one] if np.int64(places[at] & _PLACE) < short else splits[run]
        first, last = _ends(entries, starts[run], splits[run], stop, first, last)
        if total <= np.int64(SCAN) * (min(high, last + one) - max(low, first)):  # as more rows can only follow
            return np.int64(-1), last
    return max(low, first), min(high, last + one)


@jit()
def _lowest(word):
    """Return the number of the lowest one of a word."""
    return np.int64(_ones_of((word & (~word + np.uint64(1))) - np.uint64(1)))


@jit()
def _first_bits(number):
    """Return a word whose first bits, up to 64, are ones."""
    return ~np.uint64(0) >> np.uint64(64 - number) if number > 0 else np.uint64(0)


@jit()
def _failures(left, size, theirs, fold, other_fold, needed, both):
    """Return whether a pair fails by its sizes, by what is left of its sets, and by folded bitmaps: 0 or 1."""
    smaller = min(size, theirs)
    least = np.int64(needed[np.uint64(smaller + both * max(size, theirs))])
    most = size + theirs - least - least if both else smaller - least
    x, y = (fold, other_fold) if size <= theirs else (other_fold, fold)
    ones = np.int64(_ones(x, y, np.uint64(0) - np.uint64(both)))
    return np.uint64(smaller < least), np.uint64(min(left, smaller) < least), np.uint64(ones > most)


@jit()
def _look_at_entries(entries, begin, number, known, needed, both, row, place):
    """Return which of up to 64 entries fail by size, by size or place, and by any filter, as bits; its own is left."""
    by_size, by_place, failed = np.uint64(0), np.uint64(0), np.uint64(0)
    sizes, folds, _, _ = known
    size, fold = np.int64(sizes[row]), folds[row]
    for k in range(np.uint64(number)):
        entry = entries[np.uint64(begin) + k]
        other = (entry >> np.uint64(PLACE_BITS)) & _ROW
        theirs = np.int64(sizes[other])
        left = min(size - place, theirs - np.int64(entry & _PLACE))
        for_size, for_place, for_bits = _failures(left, size, theirs, fold, folds[other], needed, both)
        differs = np.uint64(other != np.uint64(row))
        by_size |= (for_size & differs) << k
        by_place |= (for_place & differs) << k
        failed |= ((for_place | for_bits) & differs) << k
    return by_size, by_place, failed


@jit()
def _look_at_rows(begin, number, known, held, needed, both, row):
    """Return which of up to 64 rows may be candidates, and which fail by size and by any filter, as bits."""
    there, by_size, failed = np.uint64(0), np.uint64(0), np.uint64(0)
    sizes, folds, _, _ = known
    size, fold = np.int64(sizes[row]), folds[row]
    for k in range(np.uint64(number)):
        other = np.uint64(begin) + k
        theirs = np.int64(sizes[other])
        for_size, _, for_bits = _failures(size, size, theirs, fold, folds[other], needed, both)
        there |= np.uint64(np.int64(held[other] != 0) & np.int64(other != np.uint64(row))) << k
        by_size |= for_size << k
        failed |= (for_size | for_bits) << k
    return there, by_size & there, failed & there


@jit()
def _count_looks(looked_at, looks, by_size, by_place, failed):
    """Add what was looked at, and what failed by each filter, from the bits of each."""
    before, placed = np.int64(_ones_of(by_size)), np.int64(_ones_of(by_place))
    looked_at[0] += np.int64(_ones_of(looks))
    looked_at[1] += before
    looked_at[2] += placed - before
    looked_at[3] += np.int64(_ones_of(failed)) - placed


@jit()
def _scan(known, held, needed, both, row, begin, stop, best, looked_at):
    """Write the first candidates of a row from `begin` on, by sizes and bitmaps; return their number."""
    number, one = np.int64(0), np.uint64(1)
    looked_at[0], looked_at[1], looked_at[2], looked_at[3] = number, number, number, number
    while begin < stop and number < len(best):
        seen = min(stop - begin, np.int64(64))
        there, by_size, failed = _look_at_rows(begin, seen, known, held, needed, both, row)
        left = there & ~failed
        while left and number < len(best):
            k = _lowest(left)
            left &= left - one
            if _is_candidate(known, needed, both, row, begin + k):
                best[number] = begin + k
                number += np.int64(1)
                seen = k + np.int64(1) if number == len(best) else seen
            else:
                failed |= one << np.uint64(k)
        mask = _first_bits(seen)
        _count_looks(looked_at, there & mask, by_size & mask, by_size & mask, failed & mask)
        begin += np.int64(64)
    return number


def _scan_one_by_one(known, held, needed, both, row, begin, stop, best, looked_at):
    """Do the same as `_scan` on a device; see `_meet_one`."""
    number, looks, by_size, by_bits = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    sizes, size = known[0], np.int64(known[0][row])
    while begin < stop and number < len(best):
        if held[begin] and begin != row:
            looks += np.int64(1)
            theirs = np.int64(sizes[begin])
            smaller = min(size, theirs)
            if smaller < np.int64(needed[smaller + both * max(size, theirs)]):
                by_size += np.int64(1)
            elif _is_candidate(known, needed, both, row, begin):
                best[number] = begin
                number += np.int64(1)
            else:
                by_bits += np.int64(1)
        begin += np.int64(1)
    looked_at[0], looked_at[1], looked_at[2], looked_at[3] = looks, by_size, np.int64(0), by_bits
    return number


Device(_scan_one_by_one, _scan.py_func)


@jit()
def _meet_some(entries, i, until, known, needed, both, row, place, high, number, best, memo, looked_at):
    """Look at up to 64 entries of a run, from entry `i` on, of rows before `high`.

    Returns the number of candidates, and the next entry, or `until` if there is none. For each value of the lowest
    bits of a row, `memo` has the last row that was compared: twice its number, plus 1 if it was rejected.
    """
    one, seen = np.int64(1), min(until - i, np.int64(64))
    if _row_of(entries[i + seen - one]) >= high:
        until = _from(entries, i, i + seen, high)
        seen = until - i
    by_size, by_place, failed = _look_at_entries(entries, i, seen, known, needed, both, row, place)
    left = ~failed & _first_bits(seen)
    while left:
        k = _lowest(left)
        left &= left - np.uint64(1)
        other = _row_of(entries[i + k])
        slot = np.uint64(other) & _SLOT
        if memo[slot] >> one == other:
            failed |= np.uint64(memo[slot] & one) << np.uint64(k)
            continue
        if other == row:
            continue
        at = lower_bound(best, 0, number, other)
        is_known = at < number and best[at] == other
        fails = np.int64(not is_known and not _is_candidate(known, needed, both, row, other))
        memo[slot] = other << one | fails
        if fails or is_known:
            failed |= np.uint64(fails) << np.uint64(k)
            continue
        number = _insert(best, number, at, other)
        if number == len(best):  # nothing beyond the last one of a full list
            seen = max(k + one, _from(entries, i, i + seen, best[number - one]) - i)
            left &= _first_bits(seen)
    mask = _first_bits(seen)
    _count_looks(looked_at, mask, by_size & mask, by_place & mask, failed & mask)
    return number, min(i + np.int64(64), until)


def _meet_one(entries, i, until, known, needed, both, row, place, high, number, best, memo, looked_at):
    """Do the same as `_meet_some` for one entry on a device, where words of bits would take too many registers.

    `memo` is not used, so any array may be given: rows that are remembered would take memory for each thread.
    """
    one, sizes = np.int64(1), known[0]
    other = _row_of(entries[i])
    looked_at[0] += one
    size, theirs = np.int64(sizes[row]), np.int64(sizes[other])
    smaller = min(size, theirs)
    least = np.int64(needed[smaller + both * max(size, theirs)])
    left = min(size - place, theirs - np.int64(entries[i] & _PLACE))
    if other != row:
        if left < least:
            looked_at[one if smaller < least else one + one] += one
        else:
            at = lower_bound(best, 0, number, other)
            if at == number or best[at] != other:
                if _is_candidate(known, needed, both, row, other):
                    number = _insert(best, number, at, other)
                else:
                    looked_at[3] += one
    return number, i + one


Device(_meet_one, _meet_some.py_func)


@jit()
def _meet(runs, known, needed, both, row, low, high, best, memo, looked_at):
    """Write the first candidates of a row, from the runs of its places; return their number."""
    entries, starts, splits, places, offsets = runs
    one, number, size = np.int64(1), np.int64(0), np.int64(known[0][row])
    short = size - np.int64(needed[(one + both) * size]) + one
    begin, end = offsets[row], offsets[row + one]
    looked_at[0], looked_at[1], looked_at[2], looked_at[3] = number, number, number, number
    for step in range(begin + begin, end + end):  # two parts of each run: short entries, then those that are long alone
        word = places[step >> one]
        run, place = np.int64(word >> np.uint64(PLACE_BITS)), np.int64(word & _PLACE)
        i, until = starts[run], splits[run]
        if step & one:
            i, until = until, starts[run + one] if place < short else until
        if low > 0:
            i = _from(entries, i, until, low)
        while i < until and _row_of(entries[i]) < high:
            number, i = _meet_some(
                entries, i, until, known, needed, both, row, place, high, number, best, memo, looked_at
            )
            if number == len(best):  # nothing beyond the last one of a full list
                high = best[number - one]
    return number


@jit()
def _probe(runs, known, held, needed, both, row, low, high, best, memo, looked_at):
    """Write the first candidates of a row to `best`, and what was looked at; return the number of candidates."""
    first, stop = _rows_to_scan(runs, known[0], needed, both, row, low, high)
    if first >= 0:
        return _scan(known, held, needed, both, row, first, stop, best, looked_at)
    memo[:] = np.int64(-2)
    return _meet(runs, known, needed, both, row, low, high, best, memo, looked_at)


@by_rows(
    "(uint64[::1], int64[::1], int64[::1], uint64[::1], int64[::1]), (int32[::1], uint64[::1], int64[::1], "
    "uint64[::1]), uint8[::1], int32[::1], int64, int64[::1], int64[::1], int64[::1], int64[:, ::1], "
    "int64[::1], int64[:, ::1]",
    is_wide=True,
)
def _probe_rows(lower, upper, runs, known, held, needed, both, rows, first, stop, best, number, looked_at):
    memo = np.empty(REMEMBERED, np.int64)
    for i in range(lower, upper):
        low, high = first[i], stop[i]
        number[i] = _probe(runs, known, held, needed, both, rows[i], low, high, best[i], memo, looked_at[i])


def cpu(
    entries, starts, splits, places, offsets, sizes, folds, bitmaps, words, held, needed, both, rows, first, stop, most
):
    """As `reference`; rows in parallel."""
    best, number = np.empty((len(rows), most), np.int64), np.empty(len(rows), np.int64)
    looked_at = np.empty((len(rows), 4), np.int64)
    work = sums_before(offsets[rows + 1] - offsets[rows] + 1)
    runs, known = (entries, starts, splits, places, offsets), (sizes, folds, bitmaps, words)
    asked = held, needed, both, rows, first, stop
    _probe_rows(shares(work, 64), runs, known, *asked, best, number, looked_at)
    found, ends = copied(best.view(np.uint64).ravel(), np.arange(len(rows)) * most, sums_before(number))
    return found.view(np.int64), ends, looked_at


for _function in (_from, _insert, _ones, _folded, _differ, _is_candidate, _ends, _rows_to_scan, _meet):
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
        runs = entries, starts, splits, places, offsets
        other, until = _rows_to_scan(runs, sizes, needed, both, rows[i], first[i], stop[i])
        number[i] = _TO_SCAN if other >= 0 else np.int64(0)
        looked_at[i, 0], looked_at[i, 1] = other, until


@kernel(
    "void(uint64[::1], int64[::1], int64[::1], uint64[::1], int64[::1], int32[::1], uint64[::1], int64[::1], "
    "uint64[::1], int32[::1], int64, int64[::1], int64[::1], int64[::1], int64[:,::1], int64[::1], int64[:,::1])"
)
def _meet_all(
    entries,
    starts,
    splits,
    places,
    offsets,
    sizes,
    folds,
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
    if i < len(rows) and number[i] != _TO_SCAN:
        runs, known = (entries, starts, splits, places, offsets), (sizes, folds, bitmaps, words)
        number[i] = _meet(runs, known, needed, both, rows[i], first[i], stop[i], best[i], best[i], looked_at[i])


@kernel(
    "void(int32[::1], uint64[::1], int64[::1], uint64[::1], uint8[::1], int32[::1], int64, int64[::1], int64[:,::1], "
    "int64[::1], int64[:,::1])"
)
def _scan_all(sizes, folds, bitmaps, words, held, needed, both, rows, best, number, looked_at):
    """One thread a row that is to be scanned: as `_meet_all`."""
    i = cuda.grid(1)
    if i < len(rows) and number[i] == _TO_SCAN:
        known, first, stop = (sizes, folds, bitmaps, words), looked_at[i, 0], looked_at[i, 1]
        number[i] = _scan(known, held, needed, both, rows[i], first, stop, best[i], looked_at[i])


def gpu(
    entries, starts, splits, places, offsets, sizes, folds, bitmaps, words, held, needed, both, rows, first, stop, most
):
    """Do the same as `reference`; one thread per row, whose list is in global memory.

    One kernel chooses the rows that are scanned, one looks at the runs of the others, and one scans. A single kernel
    would need too many registers.
    """
    xp = namespace()
    best, looked_at = xp.empty((len(rows), most), np.int64), xp.empty((len(rows), 4), np.int64)
    number = xp.empty(len(rows), np.int64)
    runs = tuple(map(on_device, (entries, starts, splits, places, offsets)))
    sets, found = tuple(map(on_device, (sizes, folds, bitmaps, words))), (best, number, looked_at)
    held, needed, rows = on_device(held), on_device(needed), on_device(rows)
    asked = needed, both, rows, on_device(first), on_device(stop)
    _choose_all.threads(len(rows), *runs, sets[0], *asked, number, looked_at)
    _meet_all.threads(len(rows), *runs, *sets, *asked, *found)
    _scan_all.threads(len(rows), *sets, held, needed, both, rows, *found)
    return best[xp.arange(most) < number[:, None]], sums_before(number), looked_at
