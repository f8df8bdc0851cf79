"""Runs of tokens that documents have in common with listed rows, such as the items of an evaluation set.

A run is (i, j, n): tokens i to i + n of a document equal tokens j to j + n of a row. It is maximal if neither the
tokens before both are equal nor those after both; where a document or a row begins or ends, there are none. Each row
has a width, the least length of a run that counts; a row of width 0 has no runs.

    found = all maximal runs of at least the width of their row, in the order of (i, the width, j)

Tokens are compared one by one, so hashing cannot change what is found.

Source: theorem 6 of the toolkit's design of contamination checks: a document and a row have a run if and only if they
share as many consecutive tokens as the width.
A row is looked for by its n-grams, n its width. Every n-gram holds a shorter one, of q tokens, that begins at a
multiple of n - q + 1 tokens from the beginning of the document. So only these places are looked at, in a bit filter of
all shorter ones of the rows; n-grams around a place that passes are looked up in a hash table.

Cost: a document's token takes about two products, and a look into the filter each fourth token, for n = 8 and q = 5.
A GPU uses no filter: each token takes n products and a look into the hash table, for each width.
Memory: up to 35 bytes for each token of the rows. What follows is linear in the number of places where an n-gram of a
document stands in rows.
"""

from typing import NamedTuple

import numpy as np

from ._cpu import Rare, jit, parallel, shares
from ._launch import Device, bounds_of, check_rows, cuda, kernel, namespace, on_device, row_of
from ._ragged import counted_and_written
from ._search import upper_bound


class Tier(NamedTuple):
    """The filter for rows of some widths.

    Parameters
    ----------
    lengths : array of int64
        The widths, ascending.
    size : int
        The tokens of the shorter n-grams.
    step : int
        Places of a document from one look to the next.
    marks : array of uint64
        Two bits of a word for each shorter n-gram of the rows.
    """

    lengths: np.ndarray
    size: int
    step: int
    marks: np.ndarray


class Listed(NamedTuple):
    """Rows to look for, and the tables that find their n-grams.

    Parameters
    ----------
    tokens : array of uint64
        Fewer than 2**32 - 1.
    offsets : array of int64, shape (rows + 1,)
    widths : array of int64, shape (rows,)
        The least length of a run, at most the length of the row and at most 255; 0 for a row that is not looked for.
    tiers : tuple of Tier
        One for the largest width, and one for all others.
    factors : array of uint64
        Odd numbers, by which the tokens of an n-gram are multiplied.
    slots : array of uint64
        A hash table: the lower half of the hash of an n-gram, and the place plus 1 where it first stands; 0 is free.
    following : array of uint32, shape (tokens,)
        The place plus 1 where the n-gram that begins at a token stands next; 0 if it does not stand again.
    """

    tokens: np.ndarray
    offsets: np.ndarray
    widths: np.ndarray
    tiers: tuple[Tier, ...]
    factors: np.ndarray
    slots: np.ndarray
    following: np.ndarray

    @property
    def num_bytes(self) -> int:
        """The memory of all arrays."""
        marks = sum(tier.marks.nbytes for tier in self.tiers)
        return marks + sum(array.nbytes for array in self if isinstance(array, np.ndarray))

    def on_device(self):
        """Return the rows and the table with all arrays that `gpu` reads on the device."""
        names = "tokens", "offsets", "widths", "factors", "slots", "following"
        return self._replace(**{name: on_device(getattr(self, name)) for name in names})


def reference(tokens, offsets, listed):
    """Find the runs, straight from the definition.

    Parameters
    ----------
    tokens : array of uint64
    offsets : array of int64, shape (documents + 1,)
    listed : Listed
        By `prepare`. Only its tokens, offsets and widths are used here.

    Returns
    -------
    places, positions, lengths : arrays of int64
        Run k is tokens `places[k]` to `places[k] + lengths[k]` of the documents, and the same from `positions[k]` on of
        the listed tokens.
    """
    wanted, rows, widths = listed.tokens.tolist(), listed.offsets.tolist(), listed.widths.tolist()
    positions_of: dict[int, list[tuple[int, int, int, int]]] = {}
    for row, width in enumerate(widths):
        for position in range(rows[row], rows[row + 1]) if width else ():
            entry = width, position, rows[row], rows[row + 1]
            positions_of.setdefault(wanted[position], []).append(entry)
    found, text = [], tokens.tolist()
    for start, stop in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        for i in range(start, stop):
            for width, j, first, last in positions_of.get(text[i], ()):
                if i > start and j > first and text[i - 1] == wanted[j - 1]:
                    continue
                n = 0
                while i + n < stop and j + n < last and text[i + n] == wanted[j + n]:
                    n += 1
                if n >= width:
                    found.append((i, width, j, n))
    runs = np.array(sorted(found), np.int64).reshape(-1, 4)
    return tuple(np.ascontiguousarray(runs[:, column]) for column in (0, 2, 3))


# --------------------------------------------------------------------------------------------------------- the tables


@jit()
def _hash(total, length):
    """Mix the sum of the products of an n-gram with its length."""
    h = (total ^ np.uint64(length)) * np.uint64(0x9E3779B97F4A7C15)
    h = (h ^ (h >> np.uint64(32))) * np.uint64(0xD1342543DE82EF95)
    return h ^ (h >> np.uint64(29))


@jit()
def _bits(h):
    """Return the two bits of an n-gram in its word of the filter."""
    low = np.uint64(63)
    return (np.uint64(1) << (h & low)) | (np.uint64(1) << ((h >> np.uint64(6)) & low))


@jit()
def _slot_of(tokens, i, length, h, listed, slots):
    """Return the slot of the n-gram tokens[i:i + length], or the free one where it would be."""
    wanted, rows, widths = listed
    last, low = np.uint64(len(slots) - 1), np.uint64(0xFFFFFFFF)
    slot = (h >> np.uint64(32)) & last
    while slots[slot] != np.uint64(0):
        entry = slots[slot]
        if entry >> np.uint64(32) == h & low:
            first, k = np.int64(entry & low) - np.int64(1), np.int64(0)
            while k < length and first + k < len(wanted) and tokens[i + k] == wanted[first + k]:
                k += np.int64(1)
            if k == length and widths[upper_bound(rows, 0, len(rows), first) - 1] == length:
                return slot
        slot = (slot + np.uint64(1)) & last
    return slot


@jit()
def _hash_at(tokens, i, length, factors):
    """Return the hash of tokens[i:i + length]."""
    total = np.uint64(0)
    for k in range(length):
        total += tokens[i + k] * factors[k]
    return _hash(total, length)


@jit(Rare("uint64[::1], int64[::1], int64[::1], uint64[::1], uint64[::1], uint32[::1]"))
def _fill_table(tokens, offsets, widths, factors, slots, following):
    """Enter the n-grams of all rows, the last one first, so that the places of each ascend."""
    for row in range(len(widths) - 1, -1, -1):
        width = widths[row]
        for i in range(offsets[row + 1] - width, offsets[row] - 1 if width > 0 else offsets[row + 1], -1):
            h = _hash_at(tokens, i, width, factors)
            slot = _slot_of(tokens, i, width, h, (tokens, offsets, widths), slots)
            following[i] = slots[slot] & np.uint64(0xFFFFFFFF)
            slots[slot] = (h << np.uint64(32)) | np.uint64(i + 1)


@jit(Rare("uint64[::1], int64[::1], boolean[::1], uint64[::1], int64, uint64[::1]"))
def _fill_marks(tokens, offsets, chosen, factors, size, marks):
    """Mark the n-grams of `size` tokens of the chosen rows."""
    last = np.uint64(len(marks) - 1)
    for row in range(len(chosen)):
        for i in range(offsets[row], offsets[row + 1] - size + 1 if chosen[row] else offsets[row]):
            h = _hash_at(tokens, i, size, factors)
            marks[(h >> np.uint64(32)) & last] |= _bits(h)


def _tier(tokens, offsets, widths, factors, lengths):
    """Return the filter for the rows of some widths."""
    least = int(lengths[0])
    size = min(8, max(min(4, least), (least + 2) // 2))
    chosen = np.isin(widths, lengths)
    grams = int(np.maximum(np.diff(offsets)[chosen] - size + 1, 0).sum())
    marks = np.zeros(1 << max(4, (grams // 4).bit_length()), np.uint64)
    _fill_marks(tokens, offsets, chosen, factors, size, marks)
    return Tier(lengths, size, least - size + 1, marks)


def prepare(tokens, offsets, widths):
    """Return `Listed` for rows of tokens and the width of each; see there."""
    check_rows(len(tokens), "tokens to look for")
    tokens, looked_for = np.ascontiguousarray(tokens), widths > 0
    most = int((np.diff(offsets) - widths + 1)[looked_for].sum())
    factors = np.random.default_rng(8).integers(0, 2**64, max(8, int(widths.max(initial=0))), np.uint64) | np.uint64(1)
    slots = np.zeros(1 << max(4, (most + most // 2).bit_length()), np.uint64)
    following = np.zeros(len(tokens), np.uint32)
    _fill_table(tokens, offsets, widths, factors, slots, following)
    lengths = np.unique(widths[looked_for]).astype(np.int64)
    groups = [group for group in (lengths[-1:], lengths[:-1].copy()) if len(group)]
    tiers = tuple(_tier(tokens, offsets, widths, factors, group) for group in groups)
    return Listed(tokens, offsets, widths, tiers, factors, slots, following)


# ------------------------------------------------------------------------------------------------------------ the scan


@parallel(
    Rare(
        "uint64[::1], int64[::1], int64[::1], (int64[::1], int64, int64, uint64[::1]), "
        "(uint64[::1], (uint64[::1], int64[::1], int64[::1]), uint64[::1]), (int64[::1], uint32[::1]), int64[::1]"
    )
)
def _find(begin, end, tokens, offsets, bounds, tier, tables, found, counts):
    """Find the n-grams of documents in the table: write their places, and the first ones among the listed tokens.

    Each part writes into room of its own.
    """
    lengths, size, step, marks = tier
    factors, listed, slots = tables
    places, firsts = found
    last = np.uint64(len(marks) - 1)
    for part in range(begin, end):
        at = begins = len(lengths) * (offsets[bounds[part]] - offsets[0])
        for d in range(bounds[part], bounds[part + 1]):
            start, stop = offsets[d], offsets[d + 1]
            for look in range(start, stop - size + 1, step):
                h = _hash_at(tokens, look, size, factors)
                bits = _bits(h)
                if marks[(h >> np.uint64(32)) & last] & bits != bits:
                    continue
                for i in range(max(start, look - step + 1), look + 1):  # those of which this is the first look
                    for length in lengths:
                        if i + length > stop:
                            break
                        h = _hash_at(tokens, i, length, factors)
                        entry = slots[_slot_of(tokens, i, length, h, listed, slots)]
                        if entry != np.uint64(0):
                            places[at], firsts[at] = i, (entry & np.uint64(0xFFFFFFFF)) - np.uint64(1)
                            at += 1
        counts[part] = at - begins


@parallel(
    Rare(
        "uint64[::1], (int64[::1], uint32[::1], int64[::1], int64[::1]), "
        "(uint64[::1], int64[::1], uint32[::1]), int64[::1], (int64[::1], int64[::1], int64[::1])"
    ),
    least=256,
)
def _extend(begin, end, tokens, hits, listed, ends, runs):
    """Count the runs that begin at each n-gram that was found, or write them if there is room for runs."""
    places, firsts, starts, stops = hits
    wanted, rows, following = listed
    run_places, run_positions, run_lengths = runs
    for hit in range(begin, end):
        i, entry = places[hit], np.int64(firsts[hit]) + 1
        at = ends[hit - 1] if hit > 0 and len(run_places) > 0 else np.int64(0)
        while entry != 0:
            j = entry - 1
            entry = np.int64(following[j])
            row = np.searchsorted(rows, j, side="right") - 1
            if i > starts[hit] and j > rows[row] and tokens[i - 1] == wanted[j - 1]:
                continue
            if len(run_places) > 0:
                n, most = np.int64(0), min(stops[hit] - i, rows[row + 1] - j)
                while n < most and tokens[i + n] == wanted[j + n]:
                    n += 1
                run_places[at], run_positions[at], run_lengths[at] = i, j, n
            at += 1
        if len(run_places) == 0:
            ends[hit] = at


def _found_by(tier, tokens, offsets, listed):
    """Return the places of the n-grams of a tier in documents, and the first place of each among the listed tokens."""
    bounds, per_token = shares(offsets), len(tier.lengths)
    room = per_token * int(offsets[-1] - offsets[0])
    places, firsts = np.empty(room, np.int64), np.empty(room, np.uint32)  # memory that is not written costs nothing
    counts = np.empty(len(bounds) - 1, np.int64)
    tables = listed.factors, (listed.tokens, listed.offsets, listed.widths), listed.slots
    _find(len(counts), tokens, offsets, bounds, tuple(tier), tables, (places, firsts), counts)
    begins = (per_token * (offsets[bounds[:-1]] - offsets[0])).tolist()
    parts = [slice(begin, begin + count) for begin, count in zip(begins, counts.tolist(), strict=True)]
    return tuple(np.concatenate([array[part] for part in parts]) for array in (places, firsts))


def cpu(tokens, offsets, listed):
    """As `reference`: n-grams are looked up, documents in parallel; runs are counted, and then written."""
    nothing = np.empty(0, np.int64)
    if len(listed.tiers) == 0 or offsets[0] == offsets[-1]:
        return nothing, nothing.copy(), nothing.copy()
    found = [_found_by(tier, tokens, offsets, listed) for tier in listed.tiers]
    places, firsts = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
    if len(found) > 1:
        widths = listed.widths[np.searchsorted(listed.offsets, firsts, side="right") - 1]
        order = np.lexsort((widths, places))
        places, firsts = places[order], firsts[order]
    documents = np.searchsorted(offsets, places, side="right")
    hits = places, firsts, offsets[documents - 1], offsets[documents]
    rows = listed.tokens, listed.offsets, listed.following
    return counted_and_written(_extend, len(places), tokens, hits, rows)


# --------------------------------------------------------------------------------------------------------- on a device


Device(_hash_at.py_func)  # the same, for kernels
Device(_slot_of.py_func)


@kernel(
    "void(uint64[::1], int64[::1], int64, uint64[::1], uint64[::1], int64[::1], int64[::1], uint64[::1], uint32[::1])"
)
def _look_up(tokens, offsets, length, factors, wanted, rows, widths, slots, firsts):
    """One thread a token: find the n-gram that begins there in the table."""
    at = np.int64(cuda.grid(1))
    if at >= len(firsts):
        return
    i = offsets[0] + at
    if i + length <= offsets[row_of(offsets, i) + 1]:
        h = np.uint64(_hash_at(tokens, i, length, factors))
        slot = _slot_of(tokens, i, length, h, (wanted, rows, widths), slots)
        firsts[at] = np.uint32(slots[slot] & np.uint64(0xFFFFFFFF))


@kernel("void(uint32[::1], uint32[::1], int64[::1])")
def _count_places(firsts, following, counts):
    """One thread an n-gram that was found: count the places where it stands in rows."""
    hit = np.int64(cuda.grid(1))
    if hit >= len(firsts):
        return
    entry, number = np.int64(firsts[hit]), np.int64(0)
    while entry != np.int64(0):
        number += np.int64(1)
        entry = np.int64(following[entry - np.int64(1)])
    counts[hit] = number


@kernel("void(uint32[::1], uint32[::1], int64[::1], int64[::1], int64[::1])")
def _list_places(firsts, following, begins, hits, positions):
    """One thread an n-gram that was found: write each place where it stands in rows."""
    hit = np.int64(cuda.grid(1))
    if hit >= len(firsts):
        return
    entry, at = np.int64(firsts[hit]), begins[hit]
    while entry != np.int64(0):
        hits[at], positions[at] = hit, entry - np.int64(1)
        entry = np.int64(following[entry - np.int64(1)])
        at += np.int64(1)


@kernel("void(uint64[::1], int64[::1], int64[::1], uint64[::1], int64[::1], int64[::1], int64[::1])")
def _measure(tokens, offsets, places, wanted, rows, positions, lengths):
    """One thread a place in a document and one in a row: the length of the run that begins at both; 0 if none does."""
    at = np.int64(cuda.grid(1))
    if at >= len(places):
        return
    i, j = places[at], positions[at]
    d, row = row_of(offsets, i), row_of(rows, j)
    if i > offsets[d] and j > rows[row] and tokens[i - np.int64(1)] == wanted[j - np.int64(1)]:
        return
    n, most = np.int64(0), min(offsets[d + 1] - i, rows[row + 1] - j)
    while n < most and tokens[i + n] == wanted[j + n]:
        n += np.int64(1)
    lengths[at] = n


def gpu(tokens, offsets, listed):
    """As `reference`; n-grams are looked up in parallel, then all their places in rows are compared in parallel.

    Memory: 4 bytes for each token and width, and 32 for each place of an n-gram in rows.
    """
    xp = namespace()
    begin, end = bounds_of(offsets)
    if len(listed.tiers) == 0 or begin == end:
        return tuple(xp.empty(0, np.int64) for _ in range(3))
    listed, tokens, offsets = listed.on_device(), on_device(tokens), on_device(offsets)
    lengths = sorted(int(length) for tier in listed.tiers for length in tier.lengths)
    firsts = xp.zeros((len(lengths), end - begin), np.uint32)
    for length, found in zip(lengths, firsts, strict=True):
        table = listed.factors, listed.tokens, listed.offsets, listed.widths, listed.slots
        _look_up.threads(end - begin, tokens, offsets, length, *table, found)
    firsts = xp.ascontiguousarray(firsts.T).ravel()  # by place, and then by width
    hits = xp.flatnonzero(firsts)
    firsts, places = firsts[hits], hits // len(lengths) + begin
    counts = xp.empty(len(firsts), np.int64)
    _count_places.threads(len(firsts), firsts, listed.following, counts)
    ends = xp.cumsum(counts)
    number = int(ends[-1]) if len(ends) else 0
    of_hit, positions, sizes = (xp.zeros(number, np.int64) for _ in range(3))
    _list_places.threads(len(firsts), firsts, listed.following, ends - counts, of_hit, positions)
    places = places[of_hit]
    _measure.threads(number, tokens, offsets, places, listed.tokens, listed.offsets, positions, sizes)
    runs = sizes > 0
    return places[runs], positions[runs], sizes[runs]
