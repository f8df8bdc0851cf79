"""Bitmaps of sets, by which a pair that is below the threshold is rejected without a look at the sets.

A bitmap of W bits, W a power of two, has a bit for each value of h(x) mod W. Here h(x) is x * FACTOR mod 2**64, without
its lowest 32 bits. Let A be a set and a its bitmap:

    flipped    bit j of a is 1 if an odd number of elements x of A have h(x) mod W = j
    joined     bit j of a is 1 if any element x of A has h(x) mod W = j

**Folding.** The halves of a bitmap, put together by exclusive-or if flipped and by or if joined, are the bitmap of
W / 2 bits, because h(x) mod W / 2 = (h(x) mod W) mod W / 2. So two bitmaps are compared as two of the smaller W.

**Lemma.** |A n B| <= (|A| + |B| - popcount(a ^ b)) / 2, if flipped. |A n B| <= |A| - popcount(a & ~b), if joined.

Proof. An element that both sets have flips the same bit of a and b, which leaves a ^ b as it was. So a ^ b is the
bitmap of the symmetric difference, and each of its ones was flipped by at least one element of that, different ones by
different elements: popcount(a ^ b) <= |A| + |B| - 2 |A n B|. If joined, each one of a & ~b is the bit of at least one
element of A that is not in B, as it would be in b; and different bits are those of different elements.

**How many are rejected.** Let flipped bitmaps have W bits, and the symmetric difference d elements, whose h are
independent and uniform. A bit is 1 with probability (1 - (1 - 2 / W)**d) / 2, so the popcount has the mean

    m(d) = W / 2 * (1 - (1 - 2 / W)**d)

and one element changes it by at most 2, so by McDiarmid's inequality it is below m(d) - s with probability at most
exp(-s**2 / (2 d)). A pair at threshold t differs by at most L = (|A| + |B|) (1 - t) / (1 + t) elements. So a pair that
differs by d elements, with m(d) > L, is not rejected with probability at most exp(-(m(d) - L)**2 / (2 d)). Two sets of
1,000 elements and resemblance 0.2 differ by 1,333: then m is 474 in 1,024 bits, L is 222 at t = 0.8, and the bound is
exp(-23). As m(d) < W / 2, no pair is rejected where W <= 2 L: `num_words` gives each element 18 (1 - t) / (1 + t) bits,
two at t = 0.8 and six at 0.5, by which L is at most W / 9 for two sets of equal sizes.

Source: bitmap filters as of Sandes, Teodoro and Melo 2020, "Bitmap filter: speeding up exact set similarity joins".
Cost: one product and one bit for each element.
"""

from __future__ import annotations

import numpy as np

from ._bits import FACTOR
from ._cpu import shares
from ._launch import array_module, bounds_of, cuda, kernel, namespace, on_device, row_of
from ._ragged import by_rows, sums_before

MOST_WORDS = 1 << 10
"""Words of 64 bits in the largest bitmap."""


def num_words(sizes, threshold, flip):
    """Return the number of words of the bitmap of each set, from its size: int64, powers of two, 0 for a size of 0.

    Joined bitmaps get four bits for each element, as they are held against those of larger sets.
    """
    xp = array_module(sizes)
    bits = 18 * (1 - threshold) / (1 + threshold) if flip else 4.0
    powers = xp.asarray([1 << i for i in range(MOST_WORDS.bit_length())], np.int64)
    at_least = xp.ceil(bits / 64 * sizes).astype(np.int64)
    found = powers[xp.minimum(xp.searchsorted(powers, at_least), len(powers) - 1)]
    return xp.where(sizes > 0, found, 0)


def reference(values, offsets, words, flip):
    """Bitmaps of sets, from the definition.

    Parameters
    ----------
    values : array of uint64, shape (n,)
        The elements of each set, without repeats.
    offsets : array of int64, shape (sets + 1,)
    words : array of int64, shape (sets,)
        The number of words of each bitmap: powers of two, or 0 for none.
    flip : int
        1 for flipped bitmaps, 0 for joined ones.

    Returns
    -------
    array of uint64, shape (sum of words,)
        The bitmaps one after another; bit j of a bitmap is bit j % 64 of its word j // 64.
    """
    found = []
    for row, number in enumerate(words.tolist()):
        bitmap = 0
        for x in values[offsets[row] : offsets[row + 1]].tolist() if number else []:
            bit = 1 << (x * int(FACTOR) % 2**64 // 2**32) % (64 * number)
            bitmap = bitmap ^ bit if flip else bitmap | bit
        found += [bitmap >> 64 * word & 2**64 - 1 for word in range(number)]
    return np.array(found, np.uint64)


@by_rows("uint64[::1], int64[::1], int64[::1], int64, uint64[::1]")
def _write_bitmaps(lower, upper, values, offsets, begins, flip, bitmaps):
    for row in range(lower, upper):
        begin, number = begins[row], begins[row + 1] - begins[row]
        for word in range(begin, begin + number):
            bitmaps[word] = np.uint64(0)
        mask = np.uint64(64 * number - 1)
        for i in range(offsets[row], offsets[row + 1] if number else offsets[row]):
            bit = ((values[i] * FACTOR) >> np.uint64(32)) & mask
            at, one = begin + np.int64(bit >> np.uint64(6)), np.uint64(1) << (bit & np.uint64(63))
            bitmaps[at] = bitmaps[at] ^ one if flip else bitmaps[at] | one


def cpu(values, offsets, words, flip):
    """Do the same as `reference`; several threads take runs of sets with about equally many elements."""
    begins = sums_before(words)
    bitmaps = np.empty(int(begins[-1]), np.uint64)
    _write_bitmaps(shares(offsets), values, offsets, begins, flip, bitmaps)
    return bitmaps


@kernel("void(uint64[::1], int64[::1], int64[::1], int64, uint64[::1])")
def _note_elements(values, offsets, begins, flip, bitmaps):
    """One thread an element: it flips or sets its bit."""
    at = offsets[0] + np.int64(cuda.grid(1))
    if at >= offsets[len(offsets) - 1]:
        return
    row = row_of(offsets, at)
    number = begins[row + 1] - begins[row]
    if number == 0:
        return
    bit = ((values[at] * FACTOR) >> np.uint64(32)) & np.uint64(64 * number - 1)
    word, one = begins[row] + np.int64(bit >> np.uint64(6)), np.uint64(1) << (bit & np.uint64(63))
    if flip:
        cuda.atomic.xor(bitmaps, word, one)
    else:
        cuda.atomic.or_(bitmaps, word, one)


def gpu(values, offsets, words, flip):
    """Do the same as `reference`; one thread per element changes its word by an atomic operation.

    The host waits for the numbers of elements and words, unless `offsets` and `words` are in its memory.
    """
    begins = sums_before(words)
    (first, last), (_, size) = bounds_of(offsets), bounds_of(begins)
    values, offsets, begins = on_device(values), on_device(offsets), on_device(begins)
    bitmaps = namespace().zeros(size, np.uint64)
    _note_elements.threads(last - first, values, offsets, begins, flip, bitmaps)
    return bitmaps
