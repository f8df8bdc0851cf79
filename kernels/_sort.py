"""Sorting that several kernels share: radix sorts of words with their rows, of packed pairs, and within rows."""

import numpy as np

from ._cpu import jit, num_threads, parallel
from ._launch import Device, bounds_of, check_rows, cuda, kernel, namespace, on_device, row_of


@parallel("uint64[::1], uint64, int64[:, ::1]")
def _count_digits(begin, end, words, shift, counts):
    runs, n = len(counts), len(words)
    below = np.uint64(counts.shape[1] - 1)
    for run in range(begin, end):
        counts[run] = 0
        for i in range(run * n // runs, (run + 1) * n // runs):
            counts[run, (words[i] >> shift) & below] += 1


@jit("int64[:, ::1]")
def _place_digits(counts):
    """Replace how many words of a run have a digit by where the first of them belongs."""
    place = 0
    for digit in range(counts.shape[1]):
        for run in range(len(counts)):
            count = counts[run, digit]
            counts[run, digit] = place
            place += count


@parallel(
    "uint64[::1], uint32[::1], uint64, int64[:, ::1], uint64[::1], uint32[::1]",
    "uint64[::1], uint64[::1], uint64, int64[:, ::1], uint64[::1], uint64[::1]",
)
def _move_words(begin, end, words, rows, shift, counts, sorted_words, sorted_rows):
    runs, n = len(counts), len(words)
    below = np.uint64(counts.shape[1] - 1)
    for run in range(begin, end):
        for i in range(run * n // runs, (run + 1) * n // runs):
            word = words[i]
            digit = (word >> shift) & below
            at = counts[run, digit]
            counts[run, digit] = at + 1
            sorted_words[at], sorted_rows[at] = word, rows[i]


def _sort_digit(words, rows, shift, counts, sorted_words, sorted_rows):
    """Make one pass of a radix sort: by the bits from `shift` on that `counts` has columns for, ties in the order
    given; runs of words in parallel, one for each row of `counts`."""
    _count_digits(len(counts), words, shift, counts)
    _place_digits(counts)
    _move_words(len(counts), words, rows, shift, counts, sorted_words, sorted_rows)


_DIGIT_BITS = 11  # bits of most passes: 2048 places to write to, as many pages as a core remembers
_NARROW = 1 << 32  # words up to which places fit 32 bits


def radix_sort(words, num_bits):
    """Sort words by their `num_bits` highest bits, ties in the order given; `words` is written over.

    Returns
    -------
    words : array of uint64
    rows : array of uint32, or of uint64 if there are more than 2**32 words
        The place that each word came from.
    """
    rows = np.arange(len(words), dtype=np.uint32 if len(words) <= _NARROW else np.uint64)
    passes = -(-num_bits // _DIGIT_BITS)
    if passes:
        other_words, other_rows = np.empty_like(words), np.empty_like(rows)
    for number in range(passes):
        low, high = (64 - num_bits + num_bits * i // passes for i in (number, number + 1))
        counts = np.empty((num_threads(), 1 << (high - low)), np.int64)
        _sort_digit(words, rows, np.uint64(low), counts, other_words, other_rows)
        words, rows, other_words, other_rows = other_words, other_rows, words, rows
    return words, rows


_PART = 14  # 2**14 words in a part, about: with companions, and room to sort them, they fit a core's cache
_MOST_PARTS = 11
_MOST_MOVES = 16  # of a word, on average, while a part is sorted by insertion


def in_parts(words, companions):
    """Bring words, each with its companion, together by some of their highest bits, ties in the order given.

    Returns
    -------
    words, companions : arrays like those given
    ends : array of int64, shape (parts + 1,)
        Where the words that agree in these bits begin, in the order of the bits.
    shift : uint64
    bits : int
        The number of bits for `sort_part`. The bits begin at bit `shift`.
    """
    part_bits = min(max(len(words).bit_length() - _PART, 1), _MOST_PARTS)
    bits = max(len(words).bit_length() + 2 - part_bits, 1)
    found, theirs = np.empty_like(words), np.empty_like(companions)
    counts = np.empty((num_threads(), 1 << part_bits), np.int64)
    _sort_digit(words, companions, np.uint64(64 - part_bits), counts, found, theirs)
    ends = np.concatenate([np.zeros(1, np.int64), counts[-1]])
    return found, theirs, ends, np.uint64(64 - part_bits - bits), bits


@jit()
def sort_part(words, companions, shift, room):
    """Sort words that agree in their highest bits, with their companions: by the next bits, and then by insertion.

    Ties stay in the order given. `room` are arrays to work in: a counter for each value of the next bits and one more,
    words and companions. The next bits begin at bit `shift`; few words should agree in them that are not equal.
    """
    starts, other_words, theirs = room
    size, below = len(words), np.uint64(len(starts) - 2)
    starts[:] = 0
    for word in words:
        starts[np.int64((word >> shift) & below) + 1] += 1
    for digit in range(1, len(starts)):
        starts[digit] += starts[digit - 1]
    for i in range(size):
        digit = np.int64((words[i] >> shift) & below)
        other_words[starts[digit]], theirs[starts[digit]] = words[i], companions[i]
        starts[digit] += 1
    moves = 0
    for i in range(size):  # few are out of place
        word, companion, place = other_words[i], theirs[i], i
        while place > 0 and words[place - 1] > word:
            words[place], companions[place] = words[place - 1], companions[place - 1]
            place -= 1
        words[place], companions[place] = word, companion
        moves += i - place
        if moves > _MOST_MOVES * size:  # many words agree in the next bits
            order = np.argsort(other_words[:size], kind="mergesort")
            for j in range(size):
                words[j], companions[j] = other_words[order[j]], theirs[order[j]]
            return


def in_order(words):
    """(words in order, where each was before), equal ones in the order given; by the bits in which they differ."""
    if len(words) < 1 << 12:  # which NumPy sorts faster
        order = np.argsort(words, kind="stable")
        return words[order], order
    lowest = words.min()
    bits = max(1, int(words.max() - lowest).bit_length())
    _, order = radix_sort((words - lowest) << np.uint64(64 - bits), bits)
    return words[order], order


@jit("uint64[::1], int64")
def sort_unique(packed, bits):
    """The distinct values below 2**bits, sorted: radix sort by 11 bits at a time, the lowest first."""
    other = np.empty_like(packed)
    for shift in range(0, bits, 11):
        starts = np.zeros(2049, np.int64)
        for x in packed:
            starts[((x >> np.uint64(shift)) & np.uint64(2047)) + np.uint64(1)] += 1
        for digit in range(1, 2048):
            starts[digit] += starts[digit - 1]
        for x in packed:
            lowest = (x >> np.uint64(shift)) & np.uint64(2047)
            other[starts[lowest]] = x
            starts[lowest] += 1
        packed, other = other, packed
    size = 0
    for x in packed:
        if size == 0 or packed[size - 1] != x:
            packed[size] = x
            size += 1
    return packed[:size].copy()


# ------------------------------------------------------------------------------------------------------------ on a GPU

_EACH = 8  # keys of a thread


@kernel("void(uint64[::1], uint64, int64[::1], uint64, uint64, uint64[::1])")
def _pack(keys, top, offsets, row_bits, place_bits, words):
    """One thread some keys: the row of each, as many of its highest bits as there is room for, and its place."""
    at, one = np.int64(cuda.grid(1)), np.uint64(1)
    while at < len(words):
        row = np.uint64(row_of(offsets, offsets[0] + at))
        word = (row << one) << (np.uint64(63) - row_bits) | (keys[at] & top) >> row_bits
        words[at] = (word >> place_bits) << place_bits | np.uint64(at)
        at += cuda.gridsize(1)


@kernel("void(uint64[::1], uint64, uint32[::1], boolean[::1])")
def _unpack(words, place_bits, order, begins):
    """One thread some words, in order: the place of each, and whether what is above it differs from the word before."""
    at, below = np.int64(cuda.grid(1)), (np.uint64(1) << place_bits) - np.uint64(1)
    while at < len(words):
        word = words[at]
        order[at] = np.uint32(word & below)
        begins[at] = at == 0 or (words[at - 1] ^ word) >> place_bits != np.uint64(0)
        at += cuda.gridsize(1)


@Device
def _agree(words, at, place_bits):
    """Whether a word and the word before it have the same row and the same highest bits of a key."""
    return (words[at - 1] ^ words[at]) >> place_bits == np.uint64(0)


@Device
def _differ(keys, top, words, at, below):
    """Whether the whole keys of a word and of the word before it differ."""
    return (keys[words[at - 1] & below] ^ keys[words[at] & below]) & top != np.uint64(0)


@Device
def _is_before(keys, top, one, other):
    """Whether the key at the place `one` comes before the key at the place `other`; equal keys stay as they are."""
    x, y = keys[one] & top, keys[other] & top
    return x < y or (x == y and one < other)


@Device
def _sort_places(keys, top, order, first, last):
    """Sort order[first:last] by key, on this thread: heapsort."""
    root, end = (last - first) >> 1, last - first
    while end > 1:
        if root > 0:
            root -= 1
            moved = order[first + root]
        else:
            end -= 1
            moved = order[first + end]
            order[first + end] = order[first]
        hole, child = root, 2 * root + 1
        while child < end:
            if child + 1 < end and _is_before(keys, top, order[first + child], order[first + child + 1]):
                child += 1
            if not _is_before(keys, top, moved, order[first + child]):
                break
            order[first + hole] = order[first + child]
            hole, child = child, 2 * child + 1
        order[first + hole] = moved


@kernel("void(uint64[::1], uint64, uint64[::1], uint64, uint32[::1], boolean[::1])")
def _order_by_the_rest(keys, top, words, place_bits, order, begins):
    """One thread some words: put words in order that agree in all the bits that were sorted by, and whose keys differ.

    The thread at the first such difference of a run does so for the whole run; runs are read from `words`, which stay.
    """
    at, below = np.int64(cuda.grid(1)), (np.uint64(1) << place_bits) - np.uint64(1)
    while at < len(words):
        if at > 0 and _agree(words, at, place_bits) and _differ(keys, top, words, at, below):
            first = at - 1
            while first > 0 and _agree(words, first, place_bits) and not _differ(keys, top, words, first, below):
                first -= 1
            if first == 0 or not _agree(words, first, place_bits):
                last = at + 1
                while last < len(words) and _agree(words, last, place_bits):
                    last += 1
                _sort_places(keys, top, order, first, last)
                for i in range(first + 1, last):
                    begins[i] = (keys[order[i - 1]] ^ keys[order[i]]) & top != np.uint64(0)
        at += cuda.gridsize(1)


@kernel("void(boolean[::1], int64[::1], int64[::1])")
def _write_firsts(begins, numbers, firsts):
    """One thread a place: write it, where a run begins there, to the number of the run."""
    at = cuda.grid(1)
    if at < len(begins) and begins[at]:
        firsts[numbers[at] - 1] = at


def firsts_of(begins):
    """Find where runs begin, without a wait of the host for their number; for `gpu`.

    Parameters
    ----------
    begins : array of bool, shape (n,)
        Whether a run begins at each place; at the first place one does.

    Returns
    -------
    numbers : array of int64, shape (n,)
        The number of the run of each place, from 1 on.
    firsts : array of int64, shape (n,)
        Where each run begins; only as many values as there are runs mean something.
    """
    xp = namespace()
    numbers = xp.cumsum(begins)
    firsts = xp.empty(len(begins), np.int64)
    _write_firsts.threads(len(begins), begins, numbers, firsts)
    return numbers, firsts


@kernel("void(uint64[::1], uint32[::1], int64[::1], uint64[::1])")
def keep_in_order(values, order, before, kept):
    """One thread a place of an order: write its value if it is kept, as far as there is room in `kept`.

    `before` is `sums_before` of whether each place of the order is kept.
    """
    at = cuda.grid(1)
    if at < len(order) and before[at] < before[at + 1] and before[at] < len(kept):
        kept[before[at]] = values[order[at]]


@kernel("void(uint64[::1], int64[::1], uint64[::1])")
def keep(values, before, kept):
    """One thread a value: as `keep_in_order`, in the order given."""
    at = cuda.grid(1)
    if at < len(values) and before[at] < before[at + 1] and before[at] < len(kept):
        kept[before[at]] = values[at]


def sort_words(words):
    """Sort words where they lie, on the device; benchmarks/tracing.py times it."""
    words.sort()


def order_of(keys, num_bits=64, offsets=None):
    """Order keys by their `num_bits` highest bits, row by row if `offsets` are given, ties as they are; for `gpu`.

    What is sorted are words of 8 bytes: a key's row, as many of its highest bits as there is room for, and its place.
    CuPy sorts keys with places of 8 bytes alone, which moves twice as much: 264 bytes a key and not 136; by key and
    then by row it was 364. Keys of a row that differ only where there was no room are put in order afterwards, a thread
    for each run of them: of n uniform ones about n**3 / 2**65 pairs, 30 of 10 million. The host does not wait: CuPy's
    sorts do not, from version 14 on.

    Parameters
    ----------
    keys : array of uint64, shape (n,)
    num_bits : int
        From 0 to 64.
    offsets : array of int64, shape (rows + 1,), optional
        On the device. Row d are the keys from ``offsets[d] - offsets[0]`` on.

    Returns
    -------
    order : array of uint32, shape (n,)
        The place of each key, in order.
    begins : array of bool, shape (n,)
        Where, in that order, a key differs in those bits from the one before it or begins a row.

    Raises
    ------
    ResourceError
        If there are 2**32 - 1 keys or more.
    """
    xp, n = namespace(), len(keys)
    check_rows(n, "values to be sorted")
    keys, top = on_device(keys), np.uint64(2**64 - 2 ** (64 - num_bits))
    offsets = xp.zeros(1, np.int64) if offsets is None else offsets
    row_bits, place_bits = max(0, len(offsets) - 2).bit_length(), max(0, n - 1).bit_length()
    words, shift = xp.empty(n, np.uint64), np.uint64(place_bits)
    _pack.threads(-(-n // _EACH), keys, top, offsets, np.uint64(row_bits), shift, words)
    sort_words(words)
    order, begins = xp.empty(n, np.uint32), xp.empty(n, bool)
    _unpack.threads(-(-n // _EACH), words, shift, order, begins)
    if num_bits + row_bits + place_bits > 64:
        _order_by_the_rest.threads(-(-n // _EACH), keys, top, words, shift, order, begins)
    return order, begins


def order_in_rows(values, offsets):
    """The `order_of` the values of each row, row by row: places count from ``offsets[0]``."""
    first, last = bounds_of(offsets)
    return order_of(values[first:last], offsets=offsets)
