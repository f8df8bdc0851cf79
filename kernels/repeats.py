"""Repeated windows: runs of `length` tokens that stand in rows more than once.

A window is `length` consecutive tokens of one row. It is repeated if the same tokens stand in another window, of
another row or of the same one, where the two may overlap.

    places  = the first token of each repeated window, ascending
    classes = the number of the first repeated window that has the same tokens

Source: Schleimer, Wilkerson and Aiken 2003 (winnowing), Manasse 6.2. Of every w = length - k + 1 consecutive hashes of
k tokens the least is chosen, of equal ones the rightmost. The place that is chosen is a *seed*. Equal windows choose
the same relative place (theorem 1), so a repeated window has a seed whose hash is that of another seed: only such
windows survive. Their own hashes are sorted, and windows of equal hashes are compared with the first of them, token by
token (theorem 2). So neither k nor the hash changes what is found (theorem 4).

Cost: a token takes two products and a sorted word for each of 2 / (w + 1) seeds; a surviving window takes about four
passes of a radix sort. Memory: 24 bytes for a seed and 40 for a surviving window. A window that continues the match of
the one before it costs one comparison.
On a GPU there are no seeds: all windows are hashed and sorted. A window takes about ten products and its share of the
sort. Memory: 45 bytes for a window, and about 100 for a repeated one.
"""

import numpy as np

from ._cpu import Rare, jit, num_threads, parallel, shares
from ._launch import Device, cuda, kernel, namespace, on_device
from ._sort import in_order, order_of
from .gather import _new_offsets

FACTOR = 0xD1342543DE82EF95
"""The base of the rolling hash, odd."""


def reference(tokens, offsets, length, k):
    """Find the repeated windows by a dictionary of their tokens.

    Parameters
    ----------
    tokens : array of uint64
    offsets : array of int64, shape (rows + 1,)
    length : int
        At least 1.
    k : int
        From 1 to `length`; the tokens of a seed. It changes the work, not the result.

    Returns
    -------
    places, classes : arrays of int64
        A value per repeated window; places count in `tokens`.
    """
    text, found = tokens.tolist(), {}
    for start, stop in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        for i in range(start, stop - length + 1):
            found.setdefault(tuple(text[i : i + length]), []).append(i)
    firsts = {i: places[0] for places in found.values() if len(places) > 1 for i in places}
    numbers = {place: number for number, place in enumerate(sorted(firsts))}
    return np.array([*numbers], np.int64), np.array([numbers[firsts[place]] for place in numbers], np.int64)


@jit()
def _mixed(total):
    """Mix a rolling hash, so that the least of several is any of them."""
    h = (total ^ (total >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)
    return h ^ (h >> np.uint64(29))


@jit()
def _power(factor, exponent):
    result = np.uint64(1)
    for _ in range(exponent):
        result *= factor
    return result


@jit()
def _sum(tokens, first, size, factor):
    """Return the rolling hash of tokens[first:first + size]."""
    total = np.uint64(0)
    for i in range(first, first + size):
        total = total * factor + tokens[i]
    return total


@parallel(
    Rare(
        "uint64[::1], int64[::1], int64[::1], (int64, int64, uint64), (int64[::1], uint64[::1], int64[::1]), int64[::1]"
    )
)
def _choose(begin, end, tokens, offsets, bounds, sizes, seeds, counts):
    """Choose the seeds of rows: write the first window and the hash of each, and how many windows choose it.

    Each part writes into room of its own, and into its count.
    """
    length, k, factor = sizes
    w, leading = length - k + 1, _power(factor, k - 1)
    windows, hashes, numbers = seeds
    recent = np.empty(w, np.uint64)  # the hashes of the last w places
    for part in range(begin, end):
        at = offsets[bounds[part]] - offsets[0]
        begins = at
        for d in range(bounds[part], bounds[part + 1]):
            start, stop = offsets[d], offsets[d + 1]
            if stop - start < length:
                continue
            total, least, where = _sum(tokens, start, k, factor), np.uint64(0), np.int64(-1)
            for i in range(start, stop - k + 1):
                if i > start:
                    total = (total - tokens[i - 1] * leading) * factor + tokens[i + k - 1]
                h = _mixed(total)
                recent[i % w] = h
                window = i - w + 1
                chosen = where
                if chosen < 0 or h <= least:
                    least, where = h, i
                elif chosen < window:  # which has left
                    least, where = h, i
                    for j in range(i - 1, window - 1, -1):
                        if recent[j % w] < least:
                            least, where = recent[j % w], j
                if window < start:
                    continue
                if window > start and where == chosen:
                    numbers[at - 1] += 1
                else:
                    windows[at], hashes[at], numbers[at] = window, least, 1
                    at += 1
        counts[part] = at - begins


@parallel(Rare("uint64[::1], int64[::1], int64[::1], (int64, uint64), (int64[::1], uint64[::1])"), least=64)
def _hash_windows(begin, end, tokens, windows, ends, sizes, hashed):
    """Write the windows of each seed, and the hash of each window."""
    length, factor = sizes
    places, hashes = hashed
    leading = _power(factor, length - 1)
    for seed in range(begin, end):
        at = ends[seed - 1] if seed > 0 else np.int64(0)
        i = windows[seed]
        total = _sum(tokens, i, length, factor)
        while True:
            places[at], hashes[at] = i, _mixed(total)
            at += 1
            if at == ends[seed]:
                break
            total = (total - tokens[i] * leading) * factor + tokens[i + length]
            i += 1


@jit(Rare("uint64[::1], boolean[::1]"))
def _mark_repeated(words, repeated):
    """Mark sorted words that are equal to a neighbour."""
    for i in range(1, len(words)):
        if words[i] == words[i - 1]:
            repeated[i - 1] = repeated[i] = True


@parallel(Rare("uint64[::1], int64[::1], int64[::1], int64, boolean[::1]"), least=4096)
def _compare(begin, end, tokens, places, firsts, length, equal):
    """Compare windows, whose places ascend, with others, token by token."""
    for item in range(begin, end):
        i, j = places[item], firsts[item]
        n = np.int64(0)
        if item > begin and equal[item - 1] and places[item - 1] == i - 1 and firsts[item - 1] == j - 1:
            n = length - 1  # the window before it is equal, all but the last token are in both
        while n < length and tokens[i + n] == tokens[j + n]:
            n += 1
        equal[item] = n == length


def _equal(tokens, places, others, length):
    """Return which windows have the tokens of the others."""
    equal = np.empty(len(places), bool)
    _compare(len(places), tokens, places, others, length, equal)
    return equal


def _repeated(words):
    """Return words in order, the order, and which of them are equal to a neighbour, by their highest bits.

    Of n words, accidents make fewer than one pair equal in 2 log2(n) + 2 bits.
    """
    bits = min(64, 2 * len(words).bit_length() + 2)
    words, order = in_order(words >> np.uint64(64 - bits))
    repeated = np.zeros(len(words), bool)
    _mark_repeated(words, repeated)
    return words, order, repeated


def _firsts(words, order):
    """Return the first of equal neighbours for each place of `order`."""
    begins = np.append(True, words[1:] != words[:-1])[: len(words)]
    return order[np.flatnonzero(begins)][np.cumsum(begins) - 1]


def seeds(tokens, offsets, length, k):
    """Return the seeds of all rows: the first window that chooses each, its hash, and the windows that choose it."""
    bounds = shares(offsets)
    together = 2 * num_threads()  # parts at once; each has room for a seed per token, and leaves most of it empty
    rows = offsets[bounds].tolist()
    starts = range(0, len(rows) - 1, together)
    room = max(rows[min(start + together, len(rows) - 1)] - rows[start] for start in starts)
    windows, hashes, numbers = (np.empty(room, kind) for kind in (np.int64, np.uint64, np.int64))
    sizes, found = (length, k, np.uint64(FACTOR)), []
    for start in starts:
        some = bounds[start : start + together + 1]
        counts = np.zeros(len(some) - 1, np.int64)
        own, first = offsets[some[0] :], rows[start]
        _choose(len(counts), tokens, own, some - some[0], sizes, (windows, hashes, numbers), counts)
        for begin, count in zip(rows[start:], counts.tolist(), strict=False):
            part = slice(begin - first, begin - first + count)
            found.append([array[part].copy() for array in (windows, hashes, numbers)])
    return tuple(map(np.concatenate, zip(*found, strict=True)))


def _survivors(tokens, offsets, length, k):
    """Return the windows whose seeds occur twice, ascending, and the hash of each."""
    windows, hashes, numbers = seeds(tokens, offsets, length, k)
    _, order, repeated = _repeated(hashes)
    chosen = np.sort(order[repeated])
    ends = np.cumsum(numbers[chosen])
    number = int(ends[-1]) if len(ends) else 0
    places, found = np.empty(number, np.int64), np.empty(number, np.uint64)
    _hash_windows(len(chosen), tokens, windows[chosen], ends, (length, np.uint64(FACTOR)), (places, found))
    return places, found


def cpu(tokens, offsets, length, k):
    """As `reference`, by seeds and hashes; rows in parallel."""
    tokens, offsets = np.ascontiguousarray(tokens), np.ascontiguousarray(offsets)
    places, hashes = _survivors(tokens, offsets, length, k)
    words, order, repeated = _repeated(hashes)
    order, words = order[repeated], words[repeated]
    kept = np.zeros(len(places), bool)
    kept[order] = True
    order = (np.cumsum(kept) - 1)[order]
    places, hashes, classes = places[kept], hashes[kept], np.empty(len(order), np.int64)
    classes[order] = _firsts(words, order)
    left = np.flatnonzero(~_equal(tokens, places, places[classes], length))
    while len(left):  # other tokens with the same hash: compared with the first of those that are left
        by = left[np.argsort(hashes[left], kind="stable")]
        classes[by] = _firsts(hashes[by], by)
        left = left[~_equal(tokens, places[left], places[classes[left]], length)]
    several = np.bincount(classes, minlength=len(places))[classes] > 1
    return places[several], (np.cumsum(several) - 1)[classes[several]]


# --------------------------------------------------------------------------------------------------------- on a device


for _function in (_sum, _hash_windows, _compare):
    Device(_function.py_func)  # the same, for kernels


@kernel("void(uint64[::1], int64[::1], int64[::1], int64, uint64, int64[::1], uint64[::1])")
def _hash_pieces(tokens, windows, ends, length, factor, places, hashes):
    """One thread some windows that follow one another in a row: write the place and the hash of each."""
    at = np.int64(cuda.grid(1))
    if at < len(windows):
        _hash_windows(at, at + np.int64(1), tokens, windows, ends, (length, factor), (places, hashes))  # type: ignore[arg-type]


@kernel("void(uint64[::1], int64[::1], int64[::1], int64, int64, boolean[::1])")
def _compare_pieces(tokens, places, firsts, length, each, equal):
    """One thread some windows, whose places ascend: compare each with another one."""
    begin = np.int64(cuda.grid(1)) * each
    if begin < len(places):
        _compare(begin, min(begin + each, np.int64(len(places))), tokens, places, firsts, length, equal)


def _hashes(xp, tokens, offsets, length, each):
    """Return the place and the hash of each window; a thread rolls over `each` of them."""
    sizes = xp.maximum(xp.diff(offsets) - (length - 1), 0)
    pieces = _new_offsets(xp, (sizes + (each - 1)) // each)
    piece = xp.arange(int(pieces[-1]))
    rows = xp.searchsorted(pieces, piece, side="right") - 1
    begins = (piece - pieces[rows]) * each
    ends = xp.cumsum(xp.minimum(sizes[rows] - begins, each))
    number = int(ends[-1]) if len(ends) else 0
    places, hashes = xp.empty(number, np.int64), xp.empty(number, np.uint64)
    _hash_pieces.threads(len(ends), tokens, offsets[rows] + begins, ends, length, np.uint64(FACTOR), places, hashes)
    return places, hashes


def _first_equal(xp, tokens, places, runs, length, each):
    """Return the first window that is equal to each one; those of equal hashes, a run, lie together and ascend."""
    classes, left = xp.empty(len(places), np.int64), xp.arange(len(places))
    while len(left):
        some, begins, equal = places[left], xp.ones(len(left), bool), xp.empty(len(left), bool)
        begins[1:] = runs[left[1:]] != runs[left[:-1]]
        firsts = some[begins][xp.cumsum(begins) - 1]
        by_place = xp.argsort(some)  # so that a window is compared after the one before it
        left, some, firsts = left[by_place], some[by_place], firsts[by_place]
        _compare_pieces.threads(-(-len(left) // each), tokens, some, firsts, length, each, equal)
        classes[left[equal]] = firsts[equal]
        left = xp.sort(left[~equal])  # other tokens with the same hash: compared with the first of those that are left
    return classes


def gpu(tokens, offsets, length, k):
    """As `reference`; hashes of all windows are sorted, so `k` has no use, and windows are compared in parallel.

    A thread handles length // 8 + 1 windows. So a window takes few products, however long it is, and few comparisons if
    it continues the match of the window before.
    """
    xp, each = namespace(), length // 8 + 1
    tokens, offsets = on_device(tokens), on_device(offsets)
    places, hashes = _hashes(xp, tokens, offsets, length, each)
    order, begins = order_of(hashes)
    del hashes
    several = xp.ones(len(order), bool)
    several[:-1] = begins[1:]
    several = ~(several & begins)
    places, runs = places[order[several]], xp.cumsum(begins[several])
    firsts = _first_equal(xp, tokens, places, runs, length, each)
    by_place = xp.argsort(places)
    places, firsts = places[by_place], firsts[by_place]
    classes, several = xp.searchsorted(places, firsts), places != firsts
    several[classes[several]] = True
    return places[several], (xp.cumsum(several) - 1)[classes[several]]
