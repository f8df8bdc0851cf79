"""Repeated windows: runs of `length` tokens that stand in rows more than once.

A window is `length` consecutive tokens of one row. It is repeated if the same tokens stand in another window, of
another row or of the same one, where the two may overlap. Windows of equal tokens are a class; repeated classes are
numbered in the order of their first windows. A *stretch* is repeated windows of one row that follow one another, and
whose classes do. Text repeats in long passages, so one stretch has many windows.

    places  = the first token of the first window of each stretch, ascending
    classes = the class of that window
    sizes   = the number of windows

Source: Schleimer, Wilkerson and Aiken 2003 (winnowing), Manasse 6.2. Of every w = length - k + 1 consecutive hashes of
k tokens the least is chosen, of equal ones the rightmost. The place that is chosen is a *seed*. Equal windows choose
the same relative place (theorem 1), so a repeated window has a seed whose hash is that of another seed: only such
windows survive. The seeds of each hash are a group. Windows of a group are looked up in a hash table of its own, by
hash and then token by token (theorem 2). So neither k nor the hash changes what is found (theorem 4).

Cost: a token takes two products and a sorted word for each of 2 / (w + 1) seeds. A surviving window takes two products
and a look into a table that lies in the cache; if it continues the match of the window before it, one comparison.
Memory: 32 bytes for a seed, where the caller puts large arrays (`_cpu.large_arrays_by`), 24 for a run of windows, and 8
for each surviving window of `SEEDS_AT_ONCE` seeds.
On a GPU there are no seeds: all windows are hashed and sorted. A window takes about ten products and its share of the
sort. Memory: 45 bytes for a window, and about 100 for a repeated one.
"""

import numpy as np

from ._buckets import sort_by_key
from ._cpu import Rare, held, jit, joined, large, num_threads, parallel, shares
from ._launch import Device, array_module, cuda, kernel, namespace, on_device
from ._ragged import sums_before
from ._search import upper_bound
from ._sort import order_of

FACTOR = 0xD1342543DE82EF95
"""The base of the rolling hash, odd."""

SEEDS_AT_ONCE = 1 << 17
"""Seeds whose windows are looked up at a time, about, where there are more."""

RUNS_AT_ONCE = 1 << 20
"""Runs of windows that are brought into the order of their places at a time, about."""

_SLOTS = 1 << 12
"""The entries of a hash table that is not made anew for each group of seeds."""


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
    places, classes, sizes : arrays of int64
        A value per stretch; places count in `tokens`.
    """
    text, found = tokens.tolist(), {}
    for row, (start, stop) in enumerate(zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)):
        for i in range(start, stop - length + 1):
            found.setdefault(tuple(text[i : i + length]), []).append((i, row))
    several = sorted(places for places in found.values() if len(places) > 1)
    stretches: list[list[int]] = []
    ahead = None
    for place, row, number in sorted((*each, number) for number, places in enumerate(several) for each in places):
        if (place, row, number) == ahead:
            stretches[-1][2] += 1
        else:
            stretches.append([place, number, 1])
        ahead = place + 1, row, number + 1
    return tuple(np.array([each[column] for each in stretches], np.int64) for column in range(3))


def windows_of(stretches):
    """Return the place and the class of each window of some stretches.

    >>> windows_of((np.array([4, 9]), np.array([7, 0]), np.array([2, 1])))
    (array([4, 5, 9]), array([7, 8, 0]))
    """
    xp = array_module(stretches[0])
    places, classes, sizes = stretches
    ends = xp.cumsum(sizes)
    number = xp.arange(int(ends[-1]) if len(ends) else 0)
    stretch = xp.searchsorted(ends, number, side="right")  # CuPy's repeat takes one count for all
    return tuple(number + (first - (ends - sizes))[stretch] for first in (places, classes))


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
            newest = np.int64(-1)
            for i in range(start, stop - k + 1):
                if i > start:
                    total = (total - tokens[i - 1] * leading) * factor + tokens[i + k - 1]
                h = _mixed(total)
                newest = newest + 1 if newest + 1 < w else np.int64(0)
                recent[newest] = h
                window = i - w + 1
                chosen = where
                if chosen < 0 or h <= least:
                    least, where = h, i
                elif chosen < window:  # which has left
                    least, where = h, i
                    before = newest
                    for j in range(i - 1, window - 1, -1):
                        before = before - 1 if before > 0 else w - 1
                        if recent[before] < least:
                            least, where = recent[before], j
                if window < start:
                    continue
                if window > start and where == chosen:
                    numbers[at - 1] += 1
                else:
                    windows[at], hashes[at], numbers[at] = window, least, 1
                    at += 1
        counts[part] = at - begins


@jit(Rare("uint64[::1], boolean[::1]"))
def _mark_repeated(words, repeated):
    """Mark sorted words that are equal to a neighbour."""
    for i in range(1, len(words)):
        if words[i] == words[i - 1]:
            repeated[i - 1] = repeated[i] = True


@jit()
def _place(window, owner, seeds):
    """Return the place of a window among the tokens; `owner` is its seed."""
    places, numbers, ends = seeds
    return places[owner] + window - (ends[owner] - numbers[owner])


@parallel(
    Rare("uint64[::1], (int64[::1], int64[::1], int64[::1]), (int64[::1], int64[::1]), (int64, uint64), int64[::1]"),
    least=256,
)
def _classify(begin, end, tokens, seeds, groups, sizes, firsts):
    """Write the place of the first window that is equal to each one, or -1 if no other is.

    Windows count by seed, seeds by place.

    Equal windows have seeds of equal hashes, which are a group. The windows of a group that are equal to none before
    them lie in a hash table. A window that follows one that was equal to another is compared with the next one there.
    """
    places, numbers, ends = seeds
    order, bounds = groups
    length, factor = sizes
    leading = _power(factor, length - 1)
    hashes, entries, owners = np.empty(_SLOTS, np.uint64), np.empty(_SLOTS, np.int64), np.empty(_SLOTS, np.int64)
    for group in range(begin, end):
        size, used, several = np.int64(16), np.int64(0), np.int64(0)
        for k in range(bounds[group], bounds[group + 1]):
            several += numbers[order[k]]
        while size < 2 * several and size < _SLOTS:
            size *= 2
        entries[:size] = -1
        for k in range(bounds[group], bounds[group + 1]):
            seed = order[k]
            at, total, owner, other = ends[seed] - numbers[seed], np.uint64(0), np.int64(-1), np.int64(0)
            for i in range(places[seed], places[seed] + numbers[seed]):
                if i == places[seed]:
                    total = _sum(tokens, i, length, factor)
                else:
                    total = (total - tokens[i - 1] * leading) * factor + tokens[i + length - 1]
                if owner >= 0:  # all but the last token are equal
                    other += 1
                    last = _place(other, owner, seeds) + length - 1
                    if other == ends[owner] or tokens[last] != tokens[i + length - 1]:
                        owner = -1
                if owner < 0:
                    h = _mixed(total)
                    slot = np.int64(h & np.uint64(size - 1))
                    while entries[slot] >= 0:
                        if hashes[slot] == h:
                            owner, other = owners[slot], entries[slot]
                            j, n = _place(other, owner, seeds), np.int64(0)
                            while n < length and tokens[i + n] == tokens[j + n]:
                                n += 1
                            if n == length:
                                break
                            owner = -1
                        slot = (slot + 1) & (size - 1)
                    if owner < 0:
                        hashes[slot], entries[slot], owners[slot] = h, at, seed
                        used += 1
                if owner < 0:
                    firsts[at] = -1
                else:
                    if firsts[other] < 0:
                        firsts[other] = _place(other, owner, seeds)
                    firsts[at] = firsts[other]
                at += 1
                if 2 * used > size:  # the table is half full, so it is made twice as large
                    old, former, its = hashes[:size].copy(), entries[:size].copy(), owners[:size].copy()
                    size *= 2
                    if size > len(entries):
                        hashes, entries, owners = (
                            np.empty(size, np.uint64),
                            np.empty(size, np.int64),
                            np.empty(size, np.int64),
                        )
                    entries[:size] = -1
                    for item in range(len(former)):
                        if former[item] >= 0:
                            slot = np.int64(old[item] & np.uint64(size - 1))
                            while entries[slot] >= 0:
                                slot = (slot + 1) & (size - 1)
                            hashes[slot], entries[slot], owners[slot] = old[item], former[item], its[item]


@jit(Rare("(int64[::1], int64[::1]), int64[::1], int64[::1], int64[:, ::1]"))
def _join(seeds, offsets, firsts, runs):
    """Return the number of runs of windows of one row that follow one another, and whose first equal windows do.

    Write the place, the first equal window and the number of windows of each run if there is room.
    """
    places, ends = seeds
    found, row, at = np.int64(-1), np.int64(0), np.int64(0)
    place, first, size = np.int64(-1), np.int64(-1), np.int64(0)  # after the last window of the last run
    for seed in range(len(places)):
        i = places[seed]
        while offsets[row + 1] <= i:
            row += 1
            place = np.int64(-1)
        while at < ends[seed]:
            if firsts[at] >= 0:
                if i != place or firsts[at] != first:
                    found, size = found + 1, np.int64(0)
                    if runs.shape[1] > 0:
                        runs[0, found], runs[1, found] = i, firsts[at]
                size += 1
                if runs.shape[1] > 0:
                    runs[2, found] = size
                place, first = i + 1, firsts[at] + 1
            at += 1
            i += 1
    return found + 1


@jit(Rare("int64[:, ::1], (int64[::1], int64[::1]), int64[::1]"))
def _number(runs, heads, offsets):
    """Replace runs by stretches, and return their number. Heads are the runs of first windows: places and classes."""
    places, classes = heads
    found, head, row = np.int64(-1), np.int64(0), np.int64(0)
    for i in range(runs.shape[1]):
        place, first, size = runs[0, i], runs[1, i], runs[2, i]
        if first < places[head] or (head + 1 < len(places) and first >= places[head + 1]):
            head += 1  # runs that follow one another often repeat others that do
            if head == len(places) or first < places[head] or (head + 1 < len(places) and first >= places[head + 1]):
                head = upper_bound(places, np.int64(0), np.int64(len(places)), first) - 1
        number = classes[head] + first - places[head]
        is_new = found < 0 or place != runs[0, found] + runs[2, found] or number != runs[1, found] + runs[2, found]
        while offsets[row + 1] <= place:
            row += 1
            is_new = True
        if is_new:
            found += 1
            runs[0, found], runs[1, found], runs[2, found] = place, number, size
        else:
            runs[2, found] += size
    return found + 1


def _groups(hashes):
    """Return the seeds whose hash is that of another one by hash and place, and where those of each hash begin."""
    words, order, _ = sort_by_key(hashes, np.arange(len(hashes), dtype=np.uint32))
    repeated = np.zeros(len(words), bool)
    _mark_repeated(words, repeated)
    words = words[repeated]
    return order[repeated].astype(np.int64), np.flatnonzero(
        np.append(np.append(True, words[1:] != words[:-1])[: len(words)], True)
    )


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
            found.append([held(array[part].copy()) for array in (windows, hashes, numbers)])
    return tuple(joined(list(arrays)) for arrays in zip(*found, strict=True))


@jit(Rare("uint64[::1], uint64, int64[::1], int64[::1]"))
def _divide(hashes, last, ends, order):
    """Write the seeds by the last bits of their hashes, seeds of equal ones by place; `ends` begins with the begins."""
    for seed in range(len(hashes)):
        part = np.int64(hashes[seed] & last)  # the first bits of the least of several hashes are mostly 0
        order[ends[part]] = seed
        ends[part] += 1


def _parts(hashes):
    """Yield the seeds of some hashes at a time, by place."""
    bits = max(0, max(len(hashes) - 1, 0).bit_length() - SEEDS_AT_ONCE.bit_length() + 1)
    if bits == 0:
        yield slice(None)
        return
    last = (1 << bits) - 1
    ends = np.zeros(last + 2, np.int64)
    for some in range(0, len(hashes), SEEDS_AT_ONCE):
        part = (hashes[some : some + SEEDS_AT_ONCE] & np.uint64(last)).astype(np.int64)
        ends[1:] += np.bincount(part, minlength=last + 1)
    bounds, order = np.cumsum(ends), large(len(hashes), np.int64)
    _divide(hashes, np.uint64(last), bounds[:-1].copy(), order)
    for begin, end in zip(bounds.tolist(), bounds[1:].tolist(), strict=False):
        yield order[begin:end]


def _runs(tokens, offsets, places, hashes, numbers, length):
    """Return the runs of windows of some seeds: their places, first equal windows and numbers of windows."""
    order, bounds = _groups(hashes)
    chosen = np.sort(order)
    places, numbers = places[chosen], numbers[chosen]
    order, ends = np.searchsorted(chosen, order), np.cumsum(numbers)
    firsts = large(int(ends[-1]) if len(ends) else 0, np.int64)
    _classify(len(bounds) - 1, tokens, (places, numbers, ends), (order, bounds), (length, np.uint64(FACTOR)), firsts)
    runs = np.empty((3, 0), np.int64)
    number = _join((places, ends), offsets, firsts, runs)
    if number:
        runs = np.empty((3, number), np.int64)
        _join((places, ends), offsets, firsts, runs)
    return held(runs)


def _by_place(parts, offsets):
    """Yield the runs of some rows at a time, by place, and the offsets of the rows."""
    if len(parts) == 1:
        yield np.stack(parts[0]), offsets
        return
    pieces = 1 + sum(len(part[0]) for part in parts) // RUNS_AT_ONCE
    targets = np.linspace(offsets[0], offsets[-1], pieces + 1).astype(np.int64)
    rows = np.unique(np.searchsorted(offsets, targets))
    bounds = [np.searchsorted(part[0], offsets[rows]).tolist() for part in parts]
    for piece, (row, end) in enumerate(zip(rows.tolist(), rows[1:].tolist(), strict=False)):
        some = [
            np.stack([array[its[piece] : its[piece + 1]] for array in part])
            for part, its in zip(parts, bounds, strict=True)
        ]
        runs = np.concatenate(some, axis=1)
        yield np.take(runs, np.argsort(runs[0], kind="stable"), axis=1), offsets[row : end + 1]


def cpu(tokens, offsets, length, k):
    """Find what `reference` finds, by seeds: those of some hashes at a time, which threads divide by hash."""
    tokens, offsets = np.ascontiguousarray(tokens), np.ascontiguousarray(offsets)
    places, hashes, numbers = seeds(tokens, offsets, length, k)
    parts = [_runs(tokens, offsets, places[some], hashes[some], numbers[some], length) for some in _parts(hashes)]
    del places, hashes, numbers
    firsts = [held(runs[::2, runs[0] == runs[1]]) for runs, _ in _by_place(parts, offsets)]
    heads, sizes = (joined(list(arrays)) for arrays in zip(*firsts, strict=True))
    del firsts
    classes, found = np.cumsum(sizes, out=large(len(sizes), np.int64)), [np.empty((3, 0), np.int64)]
    classes -= sizes
    for runs, rows in _by_place(parts, offsets):
        if runs.shape[1]:
            found.append(runs[:, : _number(runs, (heads, classes), rows)].copy())
    return tuple(np.concatenate(found, axis=1))


# --------------------------------------------------------------------------------------------------------- on a device


Device(_sum.py_func)  # the same, for kernels


@kernel("void(uint64[::1], int64[::1], int64[::1], int64, uint64, int64[::1], uint64[::1])")
def _hash_pieces(tokens, windows, ends, length, factor, places, hashes):
    """One thread some windows that follow one another in a row: write the place and the hash of each."""
    piece = np.int64(cuda.grid(1))
    if piece >= len(windows):
        return
    at, i = ends[piece - 1] if piece > 0 else np.int64(0), windows[piece]
    total, leading = _sum(tokens, i, length, factor), _power(factor, length - 1)
    while True:
        places[at], hashes[at] = i, _mixed(total)
        at += 1
        if at == ends[piece]:
            break
        total = (total - tokens[i] * leading) * factor + tokens[i + length]
        i += 1


@kernel("void(uint64[::1], int64[::1], int64[::1], int64, int64, boolean[::1])")
def _compare_pieces(tokens, places, firsts, length, each, equal):
    """One thread some windows, whose places ascend: compare each with another one, token by token."""
    begin = np.int64(cuda.grid(1)) * each
    for item in range(begin, min(begin + each, np.int64(len(places)))):
        i, j = places[item], firsts[item]
        n = np.int64(0)
        if item > begin and equal[item - 1] and places[item - 1] == i - 1 and firsts[item - 1] == j - 1:
            n = length - 1  # the window before it is equal, all but the last token are in both
        while n < length and tokens[i + n] == tokens[j + n]:
            n += 1
        equal[item] = n == length


def _hashes(xp, tokens, offsets, length, each):
    """Return the place and the hash of each window; a thread rolls over `each` of them."""
    sizes = xp.maximum(xp.diff(offsets) - (length - 1), 0)
    pieces = sums_before((sizes + (each - 1)) // each)
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
    first = xp.zeros(len(places), bool)
    first[classes[several]] = True
    numbers = xp.cumsum(first) - 1
    several |= first
    places, classes = places[several], numbers[classes[several]]
    rows, new = xp.searchsorted(offsets, places, side="right"), xp.ones(len(places), bool)
    new[1:] = (xp.diff(places) != 1) | (xp.diff(classes) != 1) | (xp.diff(rows) != 0)
    begins = xp.flatnonzero(new)
    return places[begins], classes[begins], xp.diff(xp.append(begins, len(places)))
