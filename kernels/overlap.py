"""Which documents share enough shingles with a few sampled ones: the truth that recall is checked with.

    shared[d, i] = |A_i n B_d|    A_i the i-th sampled set, B_d the set of document d's shingles

A pair (d, i) is found where shared[d, i] is at least 1 and at least min(least[i], bounds[d]). Whatever resembles A_i by
t shares at least t |A_i| shingles with it, so no near-duplicate of a sampled document is missed and no filter is
involved. Source: exhaustive counting; Broder 1997, section 2, for the sets.

Cost: one look-up per shingle, which nearly always ends at a table of 32 to 64 bits per sampled shingle; then one
addition for each sampled document that holds the shingle. On the CPU found documents are counted twice; on a GPU each
document takes 4 bytes for each sampled one.
"""

from __future__ import annotations

import numpy as np

from ._cpu import jit, shares
from ._launch import cuda, kernel, namespace, on_device, row_of
from ._ragged import by_rows
from ._search import first_not_below


def invert(sample_values, sample_offsets):
    """The sampled sets turned inside out: each distinct shingle and the documents that hold it.

    Parameters
    ----------
    sample_values : array of uint64
        Sampled sets, each without repeats.
    sample_offsets : array of int64, shape (samples + 1,)

    Returns
    -------
    keys : array of uint64, shape (n,)
        All sampled shingles, sorted, each once.
    first_holder : array of int64, shape (n + 1,)
    holders : array of int64
        Samples that hold key i are ``holders[first_holder[i]:first_holder[i + 1]]``.
    """
    first, last = sample_offsets[0], sample_offsets[-1]
    owners = np.repeat(np.arange(len(sample_offsets) - 1), np.diff(sample_offsets))
    order = np.argsort(sample_values[first:last], kind="stable")
    keys, first_holder = np.unique(sample_values[first:last][order], return_index=True)
    return keys, np.append(first_holder, len(order)).astype(np.int64), owners[order]


def reference(values, offsets, keys, first_holder, holders, least, bounds):
    """Pairs that share enough, straight from the definition.

    Parameters
    ----------
    values : array of uint64
        Shingles of each document, in any order, repeats allowed.
    offsets : array of int64, shape (documents + 1,)
    keys, first_holder, holders : arrays
        The sampled sets, from `invert`.
    least : array of int64, shape (samples,)
    bounds : array of int64, shape (documents,)

    Returns
    -------
    documents, samples : arrays of int64, shape (pairs,)
        In lexicographic order.
    shared : array of int32, shape (pairs,)
        Sizes of their intersections.
    """
    place = {int(key): i for i, key in enumerate(keys)}
    found = []
    for d, (start, stop) in enumerate(zip(offsets[:-1], offsets[1:], strict=True)):
        sharing = [0] * len(least)
        for i in {place[f] for f in values[start:stop].tolist() if f in place}:
            for holder in holders[first_holder[i] : first_holder[i + 1]]:
                sharing[holder] += 1
        found += [(d, i, n) for i, n in enumerate(sharing) if n >= max(1, min(least[i], bounds[d]))]
    documents, samples, shared = np.array(found, np.int64).reshape(-1, 3).T.copy()
    return documents, samples, shared.astype(np.int32)


@jit("int64")
def _table_bits(num_keys):
    """Highest bits of a shingle that are looked up: enough for a table of 32 to 64 bits a key."""
    bits = 6
    while (1 << bits) < 32 * num_keys:
        bits += 1
    return bits


@jit()
def _look_up_tables(keys):
    """(shift, bits that say whether a key begins like that, where such keys begin), by a shingle's highest bits."""
    bits = _table_bits(len(keys))
    shift = np.uint64(64 - bits)
    maybe = np.zeros(1 << (bits - 6), np.uint64)
    begins = np.zeros((1 << (bits - 6)) + 1, np.int64)
    for key in keys:
        at = key >> shift
        maybe[at >> np.uint64(6)] |= np.uint64(1) << (at & np.uint64(63))
        begins[(at >> np.uint64(6)) + np.uint64(1)] += 1
    for i in range(1, len(begins)):
        begins[i] += begins[i - 1]
    return shift, maybe, begins


@jit()
def _count_holders(row, d, tables, keys, first_holder, holders, seen_in, shared):
    """Add up in `shared` how many shingles of a document each sample has; returns whether any has one."""
    (shift, maybe, begins), any_has = tables, False
    for value in row:
        at = value >> shift
        word = at >> np.uint64(6)
        if not (maybe[word] >> (at & np.uint64(63))) & np.uint64(1):
            continue
        place, stop = begins[word], begins[word + np.uint64(1)]
        while place < stop and keys[place] != value:
            place += 1
        if place == stop or seen_in[place] == d:
            continue
        seen_in[place] = d
        any_has = True
        for holder in range(first_holder[place], first_holder[place + 1]):
            shared[np.uintp(holders[np.uintp(holder)])] += np.int32(1)
    return any_has


@by_rows(
    "uint64[::1], int64[::1], uint64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], "
    "(int64[::1], int64[::1], int32[::1])",
)
def _find_pairs(begin, end, values, offsets, keys, first_holder, holders, least, bounds, ends, out):
    """Count the pairs of each document into `ends` or, once the counts are summed up, write the pairs; runs of
    documents in parallel."""
    tables = _look_up_tables(keys)
    documents, samples, counts = out
    seen_in, shared = np.full(len(keys), -1, np.int64), np.zeros(len(least), np.int32)
    for d in range(begin, end):
        at = ends[d] if len(documents) else 0
        if len(documents) and at == ends[d + 1]:
            continue
        row = values[offsets[d] : offsets[d + 1]]
        if not _count_holders(row, d, tables, keys, first_holder, holders, seen_in, shared):
            continue
        for i in range(len(least)):
            if shared[i] > 0 and shared[i] >= min(least[i], bounds[d]):
                if len(documents):
                    documents[at], samples[at], counts[at] = d, i, shared[i]
                at += 1
            shared[i] = 0
        if len(documents) == 0:
            ends[d + 1] = at


def cpu(values, offsets, keys, first_holder, holders, least, bounds):
    """As `reference`; documents in parallel, and those that have pairs once more, to write them."""
    runs, ends = shares(offsets, 2), np.zeros(len(offsets), np.int64)

    def found(size):
        out = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int32)
        _find_pairs(runs, values, offsets, keys, first_holder, holders, least, bounds, ends, out)
        return out

    nothing = found(0)
    np.cumsum(ends, out=ends)
    return found(ends[-1]) if ends[-1] else nothing


_NOWHERE = np.uint64(2**64 - 1)


@kernel("void(uint64[::1], uint64, uint64[::1])")
def _note(keys, shift, maybe):
    """One thread a key: its bit of the table."""
    at = cuda.grid(1)
    if at < len(keys):
        upper = keys[at] >> shift
        cuda.atomic.or_(maybe, upper >> np.uint64(6), np.uint64(1) << (upper & np.uint64(63)))


@kernel("void(uint64[::1], int64[::1], uint64[::1], uint64, uint64[::1], uint64[::1])")
def _find(values, offsets, keys, shift, maybe, found):
    """One thread a shingle: document << 32 | place among the keys, or `_NOWHERE`.

    One shingle in 32 to 64 goes beyond the table without being a key; so about half of all warps bisect.
    """
    at = cuda.grid(1)
    if at >= len(found):
        return
    value = values[offsets[0] + at]
    upper, word = value >> shift, _NOWHERE
    if (maybe[upper >> np.uint64(6)] >> (upper & np.uint64(63))) & np.uint64(1):
        place = first_not_below(keys, 0, len(keys), value)
        if place < np.uint64(len(keys)) and keys[place] == value:
            word = np.uint64(row_of(offsets, offsets[0] + at)) << np.uint64(32) | place
    found[at] = word


@kernel("void(uint64[::1], int64[::1], int64[::1], int32[:,::1])")
def _count(found, first_holder, holders, shared):
    """One thread a document's key: one more for each sample that holds it."""
    at = cuda.grid(1)
    if at >= len(found):
        return
    d, place = found[at] >> np.uint64(32), found[at] & np.uint64(0xFFFFFFFF)
    for i in range(first_holder[place], first_holder[place + np.uint64(1)]):
        cuda.atomic.add(shared, (d, holders[i]), np.int32(1))


def gpu(values, offsets, keys, first_holder, holders, least, bounds):
    """As `reference`; shingles in parallel, those found sorted to count each once a document.

    The result takes 8 bytes per shingle until its size is known.
    """
    xp = namespace()
    values, offsets, keys = on_device(values), on_device(offsets), on_device(keys)
    least, bounds = on_device(least), on_device(bounds)
    bits = _table_bits(len(keys))
    shift, maybe = np.uint64(64 - bits), xp.zeros(1 << (bits - 6), np.uint64)
    _note.threads(len(keys), keys, shift, maybe)
    found = xp.empty(int(offsets[-1] - offsets[0]), np.uint64)
    _find.threads(len(found), values, offsets, keys, shift, maybe, found)
    found = xp.unique(found[found != _NOWHERE])
    shared = xp.zeros((len(offsets) - 1, len(least)), np.int32)
    _count.threads(len(found), found, on_device(first_holder), on_device(holders), shared)
    documents, samples = xp.nonzero((shared > 0) & (shared >= xp.minimum(least, bounds[:, None])))
    return documents, samples, shared[documents, samples]
