"""Shingles: w consecutive tokens, as Rabin fingerprints of the w token fingerprints.

    set       tokens i .. i + w - 1 for every i; a document of 1 to w - 1 tokens has one shingle, of all of them
    bag       the same, each fingerprinted once more with its occurrence number n = 1, 2, ...: (shingle, n)
    circular  one for each token, the text running on into its beginning as often as needed

Values are in text order with repeats; `sets` makes the set of them. Source: Broder 1997, section 2 (options B and
A); Manasse 2.1 (circular); Broder 2000, section 2. Shingles and bags have polynomials of their own, as a fingerprint of
fingerprints must not reuse one (Manasse 2.2).

Cost: w + 2 carry-less products a shingle, or 8 w table look-ups where the processor has none; on a GPU 16 look-ups,
whatever w; bags add a sort a document.
"""

from __future__ import annotations

import numpy as np

from ._constants import constants
from ._cpu import jit, shares, types
from ._gf2 import (
    advance,
    advance_by_tables,
    byte_tables,
    for_widths,
    kept_weights,
    prepare,
    rabin_words,
    tables_of_shift,
    windows,
)
from ._launch import TABLES, bounds_of, cuda, kernel, know, known, load, namespace, on_device, row_of
from ._ragged import by_rows, sums_before
from ._sort import firsts_of, order_in_rows


def reference(tokens, offsets, w, mode, poly, bag_poly):
    """Shingle fingerprints of each document, straight from the definition.

    Parameters
    ----------
    tokens : array of uint64
    offsets : array of int64, shape (documents + 1,)
    w : int
        Tokens in a shingle, at least 1.
    mode : "set", "bag" or "circular"
    poly, bag_poly : uint64
        Moduli for shingles and for labelled shingles.

    Returns
    -------
    values : array of uint64
    offsets : array of int64, shape (documents + 1,)
        Documents without tokens have no shingles.
    """
    values, new_offsets = [], [0]
    for start, stop in zip(offsets[:-1], offsets[1:], strict=True):
        words = [int(t) for t in tokens[start:stop]]
        if mode == "circular":
            windows = [[words[(i + j) % len(words)] for j in range(w)] for i in range(len(words))]
        else:
            windows = [words[i : i + w] for i in range(max(1, len(words) - w + 1))] if words else []
        fingerprints = [rabin_words(window, int(poly)) for window in windows]
        if mode == "bag":
            seen: dict[int, int] = {}
            for i, f in enumerate(fingerprints):
                seen[f] = seen.get(f, 0) + 1
                fingerprints[i] = rabin_words([f, seen[f]], int(bag_poly))
        values.extend(fingerprints)
        new_offsets.append(len(values))
    return np.array(values, np.uint64), np.array(new_offsets, np.int64)


def _new_offsets(xp, offsets, w, mode):
    """Return where each document's shingles begin, by the module of array functions `xp`."""
    sizes = xp.diff(offsets)
    counts = sizes if mode == "circular" else xp.where(sizes > 0, xp.maximum(sizes - (w - 1), 1), 0)
    return sums_before(counts)


@jit("int64[::1], int64, boolean, int64[::1]")
def _count(offsets, w, circular, new_offsets):
    """Write `new_offsets` as `_new_offsets` does, in one call; the first one is 0 already."""
    for d in range(len(offsets) - 1):
        size = offsets[d + 1] - offsets[d]
        new_offsets[d + 1] = new_offsets[d] + (size if circular or size == 0 else max(size - (w - 1), 1))


@by_rows(*for_widths("uint64[::1], int64[::1], int64[::1], uint64[::1], WEIGHTS, boolean, uint64"), is_wide=True)
def _fill(begin, end, tokens, offsets, new_offsets, values, weights, circular, q):
    modulus = prepare(q)
    w = len(weights) - 1
    for d in range(begin, end):
        start, length, out = offsets[d], offsets[d + 1] - offsets[d], new_offsets[d]
        whole = max(0, length - w + 1)
        windows(tokens, start, whole, weights, modulus, values, out)
        for i in range(whole, new_offsets[d + 1] - out):  # windows that wrap, or the one of a short document
            f = q
            for j in range(i, i + (w if circular else length)):
                f = advance(f ^ tokens[start + (j if j < length else j % length)], modulus)
            values[out + i] = f


@by_rows("uint64[::1], int64[::1], uint64")
def _label(begin, end, values, offsets, bag_poly):
    """Replace each shingle by the fingerprint of (shingle, occurrence number)."""
    modulus = prepare(bag_poly)
    for d in range(begin, end):
        row = values[offsets[d] : offsets[d + 1]]
        order = np.argsort(row, kind="mergesort")
        occurrence = np.uint64(0)
        previous = np.uint64(0)
        for i in order:
            shingle = row[i]
            occurrence = occurrence + np.uint64(1) if occurrence and shingle == previous else np.uint64(1)
            previous = shingle
            row[i] = advance(advance(bag_poly ^ shingle, modulus) ^ occurrence, modulus)


def cpu(tokens, offsets, w, mode, poly, bag_poly):
    """As `reference`; documents in parallel, a window's products summed before one reduction."""
    q = np.uint64(poly)
    new_offsets = np.zeros(len(offsets), np.int64)
    _count(offsets, w, mode == "circular", new_offsets)
    values = np.empty(new_offsets[-1], np.uint64)
    _fill(shares(offsets), tokens, offsets, new_offsets, values, kept_weights(w, q), mode == "circular", q)
    if mode == "bag":
        _label(shares(new_offsets), values, new_offsets, np.uint64(bag_poly))
    return values, new_offsets


EACH = 8  # shingles of a thread, so that a block copies its tables once for 2,048


@kernel(
    "void(uint64[::1], int64[::1], int64[::1], int64, boolean, uint64, uint64[::1], uint64[::1], uint64, uint64[::1])"
)
def _fingerprint(tokens, offsets, new_offsets, w, circular, q, tables, leaving, leading, values):
    """One thread `EACH` shingles in a row: the first of them, and of a document, by w reductions, and each other from
    the one before, from which the first token is taken and to which the next one is added.

        f(i + 1) = (f(i) + t(i + w)) x**64 + (t(i) + leading) x**(64 (w + 1)),     leading = 1 + x**64

    as the leading 1 of the definition moves on like a token that is taken and put back. 16 look-ups of 8 bytes at
    random places of shared memory, where w reductions take 8 w: about three of the 16 lanes served at a time meet in a
    bank.
    """
    modulus = cuda.shared.array(TABLES, types.uint64)
    load(tables, modulus)
    shift = cuda.shared.array(TABLES, types.uint64)
    load(leaving, shift)
    at = np.int64(cuda.grid(1)) * EACH
    end = min(at + EACH, len(values))
    if at >= end:  # type: ignore[operator]
        return
    d, f, begins = row_of(new_offsets, at), np.uint64(0), True
    while at < end:  # type: ignore[operator]
        while new_offsets[d + 1] <= at:
            d += 1
            begins = True
        start, length = offsets[d], offsets[d + 1] - offsets[d]
        i = at - new_offsets[d]
        if begins:
            f, left = q, w if circular else min(w, length - i)
            while left > 0:
                f = np.uint64(advance_by_tables(f ^ tokens[start + i], modulus))
                left -= 1
                i += 1
                if i == length:
                    i = 0
            begins = False
        else:
            following = i - 1 + w
            if following >= length:
                following %= length
            f = np.uint64(advance_by_tables(f ^ tokens[start + following], modulus))
            f ^= np.uint64(advance_by_tables(tokens[start + i - 1] ^ leading, shift))
        values[at] = f
        at += 1


@kernel("void(uint64[::1], uint32[::1], int64[::1], uint64, uint64[::1], uint64[::1])")
def _label_in_order(values, order, firsts, q, tables, labelled):
    """One thread a shingle, in sorted order; `firsts` is where its run of equal ones begins."""
    modulus = cuda.shared.array(TABLES, types.uint64)
    load(tables, modulus)
    at = cuda.grid(1)
    if at < len(values):
        occurrence = np.uint64(at - firsts[at] + 1)
        f = advance_by_tables(q ^ values[order[at]], modulus)
        labelled[order[at]] = advance_by_tables(f ^ occurrence, modulus)


def gpu(tokens, offsets, w, mode, poly, bag_poly):
    """As `reference`; shingles in parallel. Bags sort all shingles by document and value."""
    xp = namespace()
    on_host = known(offsets)
    tokens, offsets = on_device(tokens), on_device(offsets)
    new_offsets = _new_offsets(xp, offsets, w, mode)
    if on_host is not None:
        know(new_offsets, _new_offsets(np, on_host, w, mode))
    values = xp.empty(bounds_of(new_offsets)[1], np.uint64)
    q, circular = np.uint64(poly), mode == "circular"
    (tables,), (leaving,) = constants(byte_tables, q), constants(tables_of_shift, np.uint64(w + 1), q)
    shared = w, circular, q, tables, leaving, q ^ np.uint64(1 << 63)
    _fingerprint.threads(-(-len(values) // EACH), tokens, offsets, new_offsets, *shared, values)
    if mode != "bag" or len(values) == 0:
        return values, new_offsets
    order, begins = order_in_rows(values, new_offsets)
    numbers, firsts = firsts_of(begins)
    labelled = xp.empty_like(values)
    (tables,) = constants(byte_tables, np.uint64(bag_poly))
    _label_in_order.threads(len(values), values, order, firsts[numbers - 1], np.uint64(bag_poly), tables, labelled)
    return labelled, new_offsets
