"""Chunks: bytes between cuts that move with the content, for files that are not text.

    h(i)  = the mixed hash of the `run` bytes from i on, as `repeats` hashes tokens
    cuts  = of every `window` consecutive h, the place that the window before chose, if it is there and still least;
            else the place of the least h, of equal ones the rightmost
    token = the Rabin fingerprint of the bytes from a cut, or the beginning of the document, to the next cut or the end,
            as `texts` makes it

A document with fewer than `window` hashes is one chunk, and an empty document has none. Bytes that are inserted at the
front change the first chunk alone: a window of old bytes chooses what it chose, unless it has equal least hashes.

Source: Manasse 6.2 (chunks and their checksums); Schleimer, Wilkerson and Aiken 2003 (winnowing, and robust winnowing,
which keeps the earlier choice). The search does not begin again after a cut, as Manasse's does: two equal windows whose
least hash is there once share a cut. Constant bytes have a cut every `window` bytes, and not at every byte. Two
different chunks of at most n bytes have the same token with a probability of at most (8 n + 128) / 2**63.

Cost: two products per byte, and a look at `window` hashes for each cut that follows without a smaller hash. A thread
takes whole documents. Memory: 8 bytes per chunk. On a GPU, a thread hashes `run` bytes for each place and finds the
cut that would follow a cut there, after about log(window) hashes; then a thread follows the cuts of each document.
Memory: 17 bytes per byte.
"""

import numpy as np

from . import texts
from ._cpu import Rare, parallel, shares
from ._gf2 import rabin_words
from ._launch import Device, array_module, bounds_of, cuda, kernel, know, namespace, on_device, row_of, to_host
from .repeats import FACTOR, _mixed, _power, _sum


def reference(text, offsets, poly, run, window, places=False):
    """Return the fingerprints of the chunks of each document, straight from the definition.

    Parameters
    ----------
    text, offsets, poly, places
        As `tokens` takes them.
    run : int
        Bytes that are hashed at a place, at least 1.
    window : int
        The number of places from which one is chosen, at least 1.

    Returns
    -------
    values, offsets, invalid, begins, ends
        As `tokens` returns them; no byte is invalid.
    """
    values, new_offsets, spans = [], [0], []
    for start, stop in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        hashes = [_hash(text[i : i + run].tolist()) for i in range(start, stop - run + 1)]
        cuts, chosen = {start} if stop > start else set(), -1
        for first in range(len(hashes) - window + 1):
            least = min(hashes[first : first + window])
            if chosen < first or hashes[chosen] > least:
                chosen = max(i for i in range(first, first + window) if hashes[i] == least)
            cuts.add(start + chosen)
        bounds = [*sorted(cuts), stop]
        for begin, end in zip(bounds[:-1], bounds[1:], strict=True):
            data = text[begin:end].tobytes()
            words = [int.from_bytes(data[i : i + 8], "little") for i in range(0, len(data), 8)]
            values.append(rabin_words([*words, len(data)], int(poly)))
            spans.append((begin, end))
        new_offsets.append(len(values))
    found = np.array(values, np.uint64), np.array(new_offsets, np.int64), 0
    return (*found, *np.array(spans, np.int64).reshape(-1, 2).T.copy()) if places else found


def _hash(run):
    total = 0
    for byte in run:
        total = (total * FACTOR + byte) % 2**64
    h = ((total ^ (total >> 32)) * 0x9E3779B97F4A7C15) % 2**64
    return h ^ (h >> 29)


def _chunks(fingerprints, text, offsets, cuts, poly, places):
    """Return the tokens of the chunks that begin at `cuts`, ascending."""
    xp = array_module(text)
    bounds = xp.concatenate([cuts, offsets[-1:]])
    know(bounds, to_host(bounds))
    found = fingerprints(text, bounds, poly), xp.searchsorted(cuts, offsets), 0
    return (*found, bounds[:-1].copy(), bounds[1:].copy()) if places else found


@parallel(Rare("uint8[::1], int64[::1], int64[::1], (int64, int64, uint64), int64[::1], int64[::1]"))
def _cut(begin, end, text, offsets, bounds, sizes, cuts, counts):
    """Write where the chunks of rows begin. Each part writes into room of its own, and into its count."""
    run, window, factor = sizes
    leaving = _power(factor, run)
    recent = np.empty(window, np.uint64)  # the hashes of the last `window` places
    for part in range(begin, end):
        at = offsets[bounds[part]] - offsets[0]
        begins = at
        for d in range(bounds[part], bounds[part + 1]):
            start, stop = offsets[d], offsets[d + 1]
            if stop == start:
                continue
            cuts[at] = start
            at += 1
            last = stop - run
            if last - start + 1 < window:
                continue
            total, least, chosen = _sum(text, start, run, factor), np.uint64(0), np.int64(-1)
            slot = np.int64(0)  # of place i among the recent ones
            for i in range(start, last + 1):
                if i > start:
                    total = total * factor + np.uint64(text[i + run - 1]) - np.uint64(text[i - 1]) * leaving
                h = _mixed(total)
                recent[slot] = h
                slot = slot + 1 if slot + 1 < window else np.int64(0)
                if chosen >= 0 and i - chosen < window:
                    if h >= least:
                        continue
                    chosen, least = i, h
                elif i - start + 1 < window:
                    continue
                else:
                    chosen, least, back = i, h, slot  # which is that of the oldest place now
                    for j in range(1, window + 1):  # from the latest place backwards
                        back = back - 1 if back > 0 else window - 1
                        if recent[back] < least:
                            chosen, least = i - j + 1, recent[back]
                if chosen > start:
                    cuts[at] = chosen
                    at += 1
        counts[part] = at - begins


def cpu(text, offsets, poly, run, window, places=False):
    """As `reference`, documents in parallel.

    Each hash is made from the one before it. An array holds the hashes of the last `window` places.
    """
    bounds = shares(offsets)
    cuts, counts = np.empty(int(offsets[-1] - offsets[0]), np.int64), np.zeros(len(bounds) - 1, np.int64)
    _cut(len(counts), text, offsets, bounds, (run, window, np.uint64(FACTOR)), cuts, counts)
    begins = (offsets[bounds[:-1]] - offsets[0]).tolist()
    found = np.concatenate([cuts[i : i + n] for i, n in zip(begins, counts.tolist(), strict=True)])
    return _chunks(texts.cpu, text, offsets, found, poly, places)


Device(_sum.py_func)  # the same, for kernels


@kernel("void(uint8[::1], int64[::1], int64, int64, uint64, uint64[::1])")
def _hash_places(text, offsets, first, run, factor, hashes):
    """One thread a place: hash its run, unless the document ends before."""
    k = np.int64(cuda.grid(1))
    if k < len(hashes) and first + k + run <= offsets[row_of(offsets, first + k) + 1]:
        hashes[k] = _mixed(_sum(text, first + k, run, factor))


@Device
def _least(hashes, first, window):
    """Return the rightmost place of the least of `window` hashes."""
    chosen = first
    for i in range(first + 1, first + window):
        if hashes[i] <= hashes[chosen]:
            chosen = i
    return chosen


@kernel("void(uint64[::1], int64[::1], int64, int64, int64, int64[::1])")
def _find_next(hashes, offsets, first, run, window, following):
    """One thread a place: find the cut that follows if it is a cut; -1 if none does.

    The next cut is the first of the next `window` places that has a smaller hash. If there is none, it is the place of
    the least hash among them. So it depends on nothing before the place.
    """
    k = np.int64(cuda.grid(1))
    if k >= len(hashes):
        return
    last = offsets[row_of(offsets, first + k) + 1] - first - run  # the last place of the document that has a hash
    following[k] = -1
    i, end = k + np.int64(1), min(k + window, last)
    while i <= end:
        if hashes[i] < hashes[k]:
            following[k] = i
            return
        i += np.int64(1)
    if k + window <= last:
        following[k] = _least(hashes, k + np.int64(1), window)


@kernel("void(uint64[::1], int64[::1], int64[::1], int64, int64, boolean[::1])")
def _follow(hashes, offsets, following, run, window, is_cut):
    """One thread a document: mark its beginning, and its cuts one after another."""
    d = np.int64(cuda.grid(1))
    if d + 1 >= len(offsets) or offsets[d] == offsets[d + 1]:
        return
    start, last = offsets[d] - offsets[0], offsets[d + 1] - offsets[0] - run
    is_cut[start] = True
    if last - start + 1 < window:
        return
    k = _least(hashes, start, window)
    while k >= 0:
        is_cut[k] = True
        k = following[k]


def gpu(text, offsets, poly, run, window, places=False):
    """As `reference`. Threads hash all places, and find for each one the cut that would follow it."""
    xp, (first, last) = namespace(), bounds_of(offsets)
    text, offsets = on_device(text), on_device(offsets)
    hashes, following = xp.empty(last - first, np.uint64), xp.empty(last - first, np.int64)
    is_cut = xp.zeros(last - first, bool)
    _hash_places.threads(len(hashes), text, offsets, first, run, np.uint64(FACTOR), hashes)
    _find_next.threads(len(hashes), hashes, offsets, first, run, window, following)
    _follow.threads(len(offsets) - 1, hashes, offsets, following, run, window, is_cut)
    return _chunks(texts.gpu, text, offsets, first + xp.flatnonzero(is_cut), poly, places)
