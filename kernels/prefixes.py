"""Prefixes of sets: their rarest elements. Every pair at the threshold shares one of them.

Elements are ordered by (count, element), the counts by `rarity`. Of a set A the prefix is

    long    |A| - least_shared(|A|) + 1 elements         where A is the larger of a pair
    short   |A| - least_overlap(2 |A|) + 1 elements      where it is the smaller, or both are of one size

(`_bounds`). Let r(A, B) >= t, |A| <= |B|, and c = |A n B|. The first common element is followed by c - 1 common ones in
either set, so it is among the first |A| - c + 1 of A and the first |B| - c + 1 of B. Now c / (|A| + |B| - c) >= t. As
|A| <= |B| and c <= |A|, the denominator is at least 2 |A| - c and at least |B|: so c >= least_overlap(2 |A|) and
c >= least_shared(|B|), also after rounding, which is monotone. So it is in the short prefix of A and the long one of B.

A posting is an element of a prefix whose count is 2 or more: a shingle that is counted once is in no other document.
A posting's entry says whose it is: 2**63 if it is in the long prefix alone, the document's row times 2**31, and its
place in the order of the document's elements, from 0.

Some sets are so small that only an equal set resembles them by t. Their one posting may then be of a key of the whole
set instead of its rarest element, so that such a set meets only those that are equal, however common its elements are:

    key(A) = sum of the elements of A, times FACTOR, mod 2**64        where |A| / (|A| + 1) < t

Let r(A, B) >= t, |A| <= |B|, and A not equal to B. If the sizes are equal, |A n B| <= |A| - 1, so that r(A, B) is at
most (|A| - 1) / (|A| + 1). Else |A n B| <= |A| and |B| >= |A| + 1, so that it is at most |A| / (|A| + 1). Either is at
most |A| / (|A| + 1), and this is at most |B| / (|B| + 1), also after rounding. So neither of the last two is below t,
and neither set has a key: a set with a key resembles equal sets alone, which have the same key. It has one posting at
most: (|A| - 1) / |A| is below t as well, so least_shared(|A|) = |A|. Sets that have one key by chance cost time alone.

Source: Chaudhuri, Ganti and Kaushik 2006; Bayardo, Ma and Srikant 2007; Xiao, Wang, Lin and Yu 2008, for the places.
Cost: one look at the counter of each shingle; documents whose prefix has no posting, most of them where documents
differ, end there. The others are made into sets, which are kept for verification, and a counting sort by count takes
the prefix out.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from . import gather, sets
from ._bits import FACTOR
from ._bounds import least_shared, prefix_lengths, prefix_lengths_of
from ._cpu import jit, parallel, shares
from ._launch import cuda, fetch_offsets, kernel, know, namespace, on_device, row_of, to_host
from ._ragged import sums_before
from ._sort import order_of
from .rarity import MOST, SHARED_BITS, count_of, shift_of
from .sets import distinct

PLACE_BITS = 31
"""Bits of a place in an entry; above them is the row."""

LONG = np.uint64(1 << 63)
"""The bit of an entry that is in the long prefix alone."""


def reference(values, offsets, rows, counters, beyond, threshold, whole):
    """Postings of all prefixes, from the definition.

    Parameters
    ----------
    values : array of uint64, shape (n,)
        Shingles of each document, in any order, repeats allowed.
    offsets : array of int64, shape (documents + 1,)
    rows : array of int64, shape (documents,)
        The row that each is called by in entries, below 2**32.
    counters, beyond : arrays
        The table of `rarity`, in which all these shingles are counted.
    threshold : float
        In (0, 1].
    whole : int
        1 if the posting of a set that only equal sets resemble has the key of the set in place of a shingle.

    Returns
    -------
    shingles, entries : arrays of uint64, shape (postings,)
        Document by document, in the order of places.
    sizes : array of int32, shape (documents,)
        Distinct shingles of each document that has postings; 0 for others.
    elements : array of uint64, shape (sum of sizes,)
        The sets of the documents, one after another, each ascending.
    """
    shingles, entries, elements, sizes = [], [], [], np.zeros(len(rows), np.int32)
    shift = 64 - (len(counters).bit_length() - 1)

    def count(shingle):
        slot = shingle >> shift
        return int(counters[slot]) + (int(beyond[slot // 64]) if counters[slot] == 255 else 0)

    for d, (start, stop) in enumerate(pairwise(offsets)):
        ordered = sorted((count(x), x) for x in set(values[start:stop].tolist()))
        size = len(ordered)
        long = size - next((c for c in range(size + 1) if size and c / size >= threshold), 0) + 1
        short = size - next((c for c in range(size + 1) if size and c / (2 * size - c) >= threshold), 0) + 1
        key = sum(x for _, x in ordered) * int(FACTOR) % 2**64
        for place, (number, shingle) in enumerate(ordered[:long]):
            if number >= 2:
                shingles.append(key if whole and size / (size + 1) < threshold else shingle)
                entries.append((place >= short) * 2**63 + int(rows[d]) * 2**31 + place)
                sizes[d] = size
        if sizes[d]:
            elements += sorted(x for _, x in ordered)
    return np.array(shingles, np.uint64), np.array(entries, np.uint64), sizes, np.array(elements, np.uint64)


@jit()
def _most_postings(row, counters, beyond, shift, threshold):
    """Return the maximum number of postings of a document with the given shingles, which may repeat.

    Shingles that are counted once come first in its order, and have no posting: once they fill the prefix, none has.
    """
    most = min(len(row), len(row) - least_shared(max(len(row), 1), threshold) + 1)
    for x in row:
        if counters[x >> shift] < 2:
            most -= 1
            if most <= 0:
                return np.int64(0)
    return np.int64(most)


@jit()
def _take(row, counts, starts, need, chosen):
    """Write the first `need` numbers of elements of a set whose counts are 2 or more, by (count, element).

    `counts` have one byte. Elements whose counts stop at `MOST` come last, in the order of elements. Returns the number
    of elements before them, and of all. `starts` is room for 257 counts.
    """
    highest = 2
    for count in counts:
        highest = max(highest, np.int64(count))
    starts[: highest + 2] = 0
    for count in counts:
        starts[np.int64(count) + 1] += 1
    starts[1] = starts[2] = 0
    last = 2
    for count in range(2, highest + 1):
        starts[count + 1] += starts[count]
        if starts[count] < need:
            last = count
    before = starts[MOST] if last == MOST else need
    if last == MOST:
        need = starts[MOST + 1]
    for i in range(len(row)):
        count = np.int64(counts[i])
        if 2 <= count <= last:
            if starts[count] < need:
                chosen[starts[count]] = i
            starts[count] += 1
    return before, need


@jit()
def _is_alone(size, threshold):
    """Return whether only an equal set resembles a set of this size by the threshold."""
    return np.float64(size) / np.float64(size + 1) < threshold


@jit()
def _write_postings(row, number, counters, beyond, shift, threshold, whole, room, shingles, entries):
    """Write the postings of a set, whose row is `number`; returns how many there are. `room` are arrays to work in."""
    counts, chosen, starts = room
    counts, size, single = counts[: len(row)], len(row), 0
    for i in range(size):
        counts[i] = counters[row[i] >> shift]
        single += counts[i] < 2
    short, long = prefix_lengths(size, threshold)
    need = min(long - single, size - single)
    if need <= 0:
        return 0
    before, stop = _take(row, counts, starts, need, chosen)
    if stop > before:  # the commonest: by their full counts
        full = np.empty(stop - before, np.uint32)
        for i in range(before, stop):
            full[i - before] = beyond[(row[chosen[i]] >> shift) >> np.uint64(SHARED_BITS)]
        chosen[before:stop] = chosen[before:stop][np.argsort(full, kind="mergesort")]
    for i in range(need):
        place = single + i
        entry = np.uint64(number) << np.uint64(PLACE_BITS) | np.uint64(place)
        shingles[i], entries[i] = row[chosen[i]], entry | LONG if place >= short else entry
    if whole and _is_alone(size, threshold):
        key = np.uint64(0)
        for x in row:
            key += x
        shingles[0] = key * FACTOR
    return need


@parallel(
    "uint64[::1], int64[::1], int64[::1], int64[::1], (uint8[::1], uint32[::1], uint64), float64, int64, "
    "int64[::1], uint64[::1], uint64[::1], uint64[::1], int32[::1], int64[:, ::1]"
)
def _postings(
    lower, upper, values, offsets, rows, bounds, table, threshold, whole, room, shingles, entries, elements, sizes, made
):
    """Write what runs of documents have: postings from `room` on, sets from where a run begins; `made` counts them."""
    counters, beyond, shift = table
    for p in range(lower, upper):
        longest = 0
        for d in range(bounds[p], bounds[p + 1]):
            longest = max(longest, offsets[d + 1] - offsets[d])
        ends = np.empty(2 * longest + 1, np.uint32)
        work = np.empty(longest, np.uint8), ends, np.empty(257, np.int64)  # of `ends` there is no further need then
        first, begin = room[p], offsets[bounds[p]] - offsets[0]
        posting, element = first, begin
        for d in range(bounds[p], bounds[p + 1]):
            row = values[offsets[d] : offsets[d + 1]]
            if _most_postings(row, counters, beyond, shift, threshold) <= 0:
                continue
            found = distinct(row, elements[element : element + len(row)], ends)
            some, theirs = shingles[posting:], entries[posting:]
            number = _write_postings(found, rows[d], counters, beyond, shift, threshold, whole, work, some, theirs)
            if number:
                sizes[d] = len(found)
                posting += number
                element += len(found)
        made[p, 0], made[p, 1] = posting - first, element - begin


def cpu(values, offsets, rows, counters, beyond, threshold, whole):
    """As `reference`; runs of documents in parallel."""
    bounds = shares(offsets)
    begins = offsets[bounds] - offsets[0]
    # A document's long prefix is at most one longer than 1 - t of its elements, and rounding adds less than one to all.
    most = np.floor((1 - threshold) * np.diff(begins)).astype(np.int64) + np.diff(bounds) + 2
    room = sums_before(most)
    shingles, entries, elements = (np.empty(size, np.uint64) for size in (room[-1], room[-1], begins[-1]))
    sizes, made = np.zeros(len(rows), np.int32), np.empty((len(most), 2), np.int64)
    table = counters, beyond, shift_of(counters)
    made_of = values, offsets, rows, bounds, table, threshold, whole
    _postings(len(bounds) - 1, *made_of, room, shingles, entries, elements, sizes, made)
    of_postings, of_elements = map(sums_before, made.T)
    shingles, entries = (gather.copied(array, room[:-1], of_postings)[0] for array in (shingles, entries))
    return shingles, entries, sizes, gather.copied(elements, begins[:-1], of_elements)[0]


@kernel("void(uint64[::1], int64, uint8[::1], uint64, boolean[::1])")
def _mark_singles(values, first, counters, shift, single):
    """One thread a value: whether it was counted once."""
    at = cuda.grid(1)
    if at < len(single):
        single[at] = counters[values[first + at] >> shift] < np.uint8(2)


@kernel("void(uint64[::1], uint8[::1], uint32[::1], uint64, uint64[::1])")
def _write_counts(values, counters, beyond, shift, counts):
    """One thread an element: its count."""
    at = cuda.grid(1)
    if at < len(counts):
        counts[at] = np.uint64(count_of(counters, beyond, shift, values[at]))


def by_count(values, offsets, counters, beyond, shift, most):
    """Count elements, and order them by row and count, for `gpu`.

    Parameters
    ----------
    most : int
        The highest count of the table, or more.

    Returns
    -------
    counts : array of uint64, shape (n,)
    order : array of uint32, shape (n,)
        The place of each element, in order; elements of a row with equal counts stay as they are.
    """
    counts = namespace().empty(len(values), np.uint64)
    _write_counts.threads(len(counts), values, counters, beyond, shift, counts)
    num_bits = most.bit_length()
    order, _ = order_of(counts << np.uint64(64 - num_bits), num_bits, offsets)
    return counts, order


@kernel("void(uint64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], uint64[::1], uint64[::1])")
def _copy_postings(ordered, ends, new_offsets, singles, short, rows, shingles, entries):
    """One thread a posting: its shingle and its entry. The elements of its set are in the order of places."""
    at = np.int64(cuda.grid(1))
    if at >= len(shingles):
        return
    d = row_of(new_offsets, at)
    place = singles[d] + at - new_offsets[d]
    entry = np.uint64(rows[d]) << np.uint64(PLACE_BITS) | np.uint64(place)
    if place >= short[d]:
        entry |= LONG
    shingles[at], entries[at] = ordered[ends[d] + place], entry


def gpu(values, offsets, rows, counters, beyond, threshold, whole):
    """As `reference`; in a first pass those documents end whose prefix surely has no posting.

    The others become sets, each in the order of counts. Elements that are counted once come first there, so the number
    of them says how many postings a set has. The host waits three times: for which documents have postings, for the
    sizes of their sets, and for the numbers of their postings. It waits once more if `offsets` are not `known`. The
    sizes that are returned are `known`.
    """
    xp = namespace()
    ends = fetch_offsets(offsets)
    values, offsets = on_device(values), on_device(offsets)
    know(offsets, ends)
    counters, beyond, shift = xp.asarray(counters), xp.asarray(beyond), shift_of(counters)
    single = xp.empty(int(ends[-1] - ends[0]), bool)
    _mark_singles.threads(len(single), values, int(ends[0]), counters, shift, single)
    singles = xp.diff(sums_before(single)[offsets - int(ends[0])])
    found = xp.empty(len(ends), np.uint32)
    found[:-1] = prefix_lengths_of(xp.diff(offsets), threshold)[1] > singles
    found[-1:] = beyond.max()
    found = to_host(found)
    on_host, most = np.flatnonzero(found[:-1]), MOST + int(found[-1])
    which = on_device(on_host)
    know(which, on_host)
    elements, ends = sets.gpu(*gather.gpu(values, offsets, which))
    _, order = by_count(elements, ends, counters, beyond, shift, most)
    ordered, distinct_sizes, singles = elements[order], xp.diff(ends), singles[which]
    if whole:
        sums = xp.zeros(len(elements) + 1, np.uint64)
        sums[1:] = xp.cumsum(elements)
        keys, firsts = (sums[ends[1:]] - sums[ends[:-1]]) * FACTOR, ends[:-1]
        ordered[firsts] = xp.where(distinct_sizes / (distinct_sizes + 1) < threshold, keys, ordered[firsts])
    short, long = prefix_lengths_of(distinct_sizes, threshold)
    numbers = xp.zeros((2, len(which) + 1), np.int64)
    numbers[0, 1:] = xp.cumsum(xp.maximum(long - singles, 0))
    numbers[1, 1:] = xp.cumsum(xp.where(long > singles, distinct_sizes, 0))
    new_offsets, kept = numbers[0], numbers[1]
    numbers = to_host(numbers)
    know(kept, numbers[1])
    shingles, entries = (xp.empty(int(numbers[0, -1]), np.uint64) for _ in range(2))
    of_rows = singles, short, on_device(rows)[which]
    _copy_postings.threads(len(shingles), ordered, ends, new_offsets, *of_rows, shingles, entries)
    sizes = np.zeros(len(rows), np.int32)
    sizes[on_host] = np.diff(numbers[1])
    sizes_there = on_device(sizes)
    know(sizes_there, sizes)
    return shingles, entries, sizes_there, gather.copy_on_device(elements, ends[:-1], kept)[0]
