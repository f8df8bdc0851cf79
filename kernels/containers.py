"""Postings of containers: the elements of a set beyond its prefix that another set may have in its own.

The containment of A in B is c(A, B) = |A n B| / |A|. Where it is t or more, B has one of the first
|A| - least_shared(|A|) + 1 elements of A, by (count, element): the prefix of a set that is contained, which `prefixes`
finds as the long prefix for resemblance. Of B it may be any element. So B needs a posting for each of its elements that
is in a prefix of some set, as a table of marks says; these are few.

A posting's entry is as `prefixes` makes it, marked as long, with the length of the set's own prefix for its place: its
place is that or a later one, so that it never rules out more than the true place.

Cost: one look at the counter and at the mark of each element; a counting sort of the counts of sets that have marked
ones says which of them are beyond the prefix.
"""

from itertools import pairwise

import numpy as np

from ._bounds import least_shared, prefix_lengths_of
from ._cpu import jit, shares
from ._launch import bounds_of, cuda, kernel, namespace, on_device, row_of
from ._ragged import by_rows, longest_row
from .prefixes import LONG, PLACE_BITS, by_count
from .rarity import MOST, SHARED_BITS, shift_of


def reference(values, offsets, rows, counters, beyond, marks, threshold):
    """Postings of all marked elements beyond the prefixes, from the definition.

    Parameters
    ----------
    values : array of uint64, shape (n,)
        Each row ascending and without repeats, as `sets` makes them.
    offsets : array of int64, shape (documents + 1,)
    rows : array of int64, shape (documents,)
        The row that each is called by in entries, below 2**32.
    counters, beyond : arrays
        The table of `rarity`, in which all these elements are counted.
    marks : array of uint8, shape (2**bits,)
        Not 0 for the highest bits of elements that are in prefixes.
    threshold : float
        In (0, 1].

    Returns
    -------
    shingles, entries : arrays of uint64, shape (postings,)
        Document by document, ascending. An element that is counted once is in no other document, and has none.
    """
    shingles, entries = [], []
    shift, mark_shift = (64 - (len(table).bit_length() - 1) for table in (counters, marks))

    def count(shingle):
        slot = shingle >> shift
        return int(counters[slot]) + (int(beyond[slot // 64]) if counters[slot] == 255 else 0)

    for d, (start, stop) in enumerate(pairwise(offsets)):
        ordered = sorted((count(x), x) for x in values[start:stop].tolist())
        size = len(ordered)
        short = size - next((c for c in range(size + 1) if size and c / size >= threshold), 0) + 1
        for number, shingle in sorted(ordered[short:], key=lambda pair: pair[1]):
            if number >= 2 and marks[shingle >> mark_shift]:
                shingles.append(shingle)
                entries.append(2**63 + int(rows[d]) * 2**31 + short)
    return np.array(shingles, np.uint64), np.array(entries, np.uint64)


@by_rows("uint64[::1], int64[::1], uint8[::1], uint64, uint8[::1], uint64, int64[::1]")
def _room(begin, end, values, offsets, counters, shift, marks, mark_shift, room):
    """Write how many postings each document may have, at most."""
    for d in range(begin, end):
        most = 0
        for x in values[offsets[d] : offsets[d + 1]]:
            if marks[x >> mark_shift] and counters[x >> shift] >= 2:
                most += 1
        room[d + 1] = most


@jit()
def _last_count(counts, short, starts):
    """(the count of one byte that the last of `short` elements by count has, how many of that count are among them).

    `starts` is room for 256 numbers.
    """
    starts[:] = 0
    for count in counts:
        starts[count] += 1
    left, last = short, 0
    while left > starts[last]:
        left -= starts[last]
        last += 1
    return last, left


@jit()
def _write_postings(row, number, tables, threshold, room, shingles, entries):
    """Write the postings of a set, whose row is `number`; returns how many there are. `room` are arrays to work in."""
    counters, beyond, shift, marks, mark_shift = tables
    counts, within, starts = room
    size = len(row)
    counts, within = counts[:size], within[:size]
    for i in range(size):
        counts[i] = counters[row[i] >> shift]
    short = size - least_shared(size, threshold) + 1
    last, left = _last_count(counts, short, starts)
    many = starts[last] > left
    if many and last == MOST:  # by their full counts
        for i in range(size):
            within[i] = counts[i] == MOST
        some = np.flatnonzero(within)
        full = np.empty(len(some), np.uint32)
        for i in range(len(some)):
            full[i] = beyond[(row[some[i]] >> shift) >> np.uint64(SHARED_BITS)]
        within[:] = False
        within[some[np.argsort(full, kind="mergesort")[:left]]] = True
    found, entry = 0, LONG | np.uint64(number) << np.uint64(PLACE_BITS) | np.uint64(short)
    for i in range(size):
        count = np.int64(counts[i])
        if count == last and many and last < MOST:
            within[i] = left > 0
            left -= 1
        if count < 2 or count < last or (count == last and (not many or within[i])):
            continue
        if marks[row[i] >> mark_shift]:
            shingles[found], entries[found] = row[i], entry
            found += 1
    return found


@by_rows(
    "uint64[::1], int64[::1], int64[::1], (uint8[::1], uint32[::1], uint64, uint8[::1], uint64), float64, "
    "int64[::1], uint64[::1], uint64[::1], int64[::1]"
)
def _postings(begin, end, values, offsets, rows, tables, threshold, room, shingles, entries, number):
    longest = longest_row(offsets, begin, end)
    work = np.empty(longest, np.uint8), np.empty(longest, np.bool_), np.empty(256, np.int64)
    for d in range(begin, end):
        first, stop = room[d], room[d + 1]
        if first < stop:
            row, own, their = values[offsets[d] : offsets[d + 1]], shingles[first:stop], entries[first:stop]
            number[d] = _write_postings(row, rows[d], tables, threshold, work, own, their)


def cpu(values, offsets, rows, counters, beyond, marks, threshold):
    """As `reference`, documents in parallel."""
    shift, mark_shift = shift_of(counters), shift_of(marks)
    bounds, room = shares(offsets), np.zeros(len(rows) + 1, np.int64)
    _room(bounds, values, offsets, counters, shift, marks, mark_shift, room)
    np.cumsum(room, out=room)
    shingles, entries = np.empty(room[-1], np.uint64), np.empty(room[-1], np.uint64)
    number = np.zeros(len(rows), np.int64)
    tables = counters, beyond, shift, marks, mark_shift
    _postings(bounds, values, offsets, rows, tables, threshold, room, shingles, entries, number)
    ends = np.cumsum(number)
    there = np.arange(number.sum()) + np.repeat(room[:-1] - (ends - number), number)
    return shingles[there], entries[there]


@kernel("void(uint64[::1], uint64[::1], int64[::1], int64[::1], uint64[::1], uint8[::1], uint64, uint64[::1])")
def _write_containers(counts, elements, offsets, short, words, marks, shift, entries):
    """One thread an element, in the order of places: its posting's entry, or 0; `words` are entries of documents."""
    at = np.int64(cuda.grid(1))
    if at >= len(counts):
        return
    d, entry = row_of(offsets, at), np.uint64(0)
    if counts[at] >= np.uint64(2) and at - offsets[d] >= short[d] and marks[elements[at] >> shift]:
        entry = words[d]
    entries[at] = entry


def gpu(values, offsets, rows, counters, beyond, marks, threshold):
    """As `reference`. Documents are in the order of counts, so an element's place says whether it is beyond.

    The host waits for the highest count and for which elements have postings, and once more if `offsets` are not
    `known`.
    """
    xp = namespace()
    first, last = bounds_of(offsets)
    values, offsets = on_device(values[first:last]), on_device(offsets) - first
    counters, beyond, marks = xp.asarray(counters), xp.asarray(beyond), xp.asarray(marks)
    most = MOST + int(beyond.max())
    counts, order = by_count(values, offsets, counters, beyond, shift_of(counters), most)
    _, short = prefix_lengths_of(xp.diff(offsets), threshold)
    words = LONG | xp.asarray(rows).astype(np.uint64) << np.uint64(PLACE_BITS) | short.astype(np.uint64)
    ordered, entries = xp.empty(len(counts), np.uint64), xp.empty(len(counts), np.uint64)
    _write_containers.threads(
        len(counts), counts[order], values[order], offsets, short, words, marks, shift_of(marks), ordered
    )
    entries[order] = ordered
    there = xp.flatnonzero(entries)
    return values[there], entries[there]
