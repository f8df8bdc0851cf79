"""How many groups of bits two packed rows have in common: b-bit min-hash, compared by exclusive-or and popcount.

    equal(A, B) = number of i < samples for which group i of A is group i of B

Rows are as `bbit` packs them: groups of k = 1, 2, 4 or 8 bits. A group differs where any bit of the exclusive-or does:
its bits are folded by "or" into its lowest one, and these are counted. Bits beyond the last group count for nothing.

Source: Li and König 2010; Manasse 2012, section 2.4.
Cost: for each pair and word a load from either row, an exclusive-or, at most three folds and a popcount.
"""

import numpy as np

from ._bits import count_bits
from ._cpu import jit, parallel
from ._launch import cuda, kernel, namespace, on_device

LOWEST = {1: 2**64 - 1, 2: 0x5555555555555555, 4: 0x1111111111111111, 8: 0x0101010101010101}
"""The lowest bit of each group of a word, by k."""


def reference(words, left, right, bits, samples):
    """Number of equal groups of each pair, straight from the definition.

    Parameters
    ----------
    words : array of uint64, shape (rows, ceil(samples * bits / 64))
    left, right : arrays of int64, shape (pairs,)
        Row numbers.
    bits : 1, 2, 4 or 8
        Length of a group.
    samples : int
        Groups in a row.

    Returns
    -------
    array of int64, shape (pairs,)
    """

    def groups(row):
        whole = sum(word << 64 * place for place, word in enumerate(words[row].tolist()))
        return [whole >> i * bits & 2**bits - 1 for i in range(samples)]

    pairs = zip(left.tolist(), right.tolist(), strict=True)
    equal = [sum(a == b for a, b in zip(groups(i), groups(j), strict=True)) for i, j in pairs]
    return np.array(equal, np.int64)


@jit()
def folded(word, bits):
    """A word whose groups of 1, 2, 4 or 8 bits are "or"-ed into their lowest bits; its other bits mean nothing."""
    word = np.uint64(word)
    if bits > 4:
        word |= word >> np.uint64(4)
    if bits > 2:
        word |= word >> np.uint64(2)
    if bits > 1:
        word |= word >> np.uint64(1)
    return word


@parallel("uint64[:, ::1], int64[::1], int64[::1], int64, int64, uint64, uint64, int64[::1]")
def _equal(lower, upper, words, left, right, bits, samples, lowest, last, equal):
    end = words.shape[1] - 1
    for p in range(lower, upper):
        i, j = left[p], right[p]
        differing = count_bits(folded(words[i, end] ^ words[j, end], bits) & last)
        for w in range(end):
            differing += count_bits(folded(words[i, w] ^ words[j, w], bits) & lowest)
        equal[p] = samples - np.int64(differing)


def _masks(bits, samples):
    """The lowest bit of each group, of a word and of the last word."""
    lowest, used = LOWEST[bits], (samples * bits - 1) % 64 + 1
    return np.uint64(lowest), np.uint64(lowest & 2**used - 1)


def cpu(words, left, right, bits, samples):
    """As `reference`; pairs in parallel."""
    equal = np.empty(len(left), np.int64)
    _equal(len(left), words, left, right, bits, samples, *_masks(bits, samples), equal)
    return equal


@kernel("void(uint64[:,::1], int64[::1], int64[::1], int64, int64, uint64, uint64, int64[::1])")
def _count(words, left, right, bits, samples, lowest, last, equal):
    """One thread a pair."""
    p = cuda.grid(1)
    if p >= len(equal):
        return
    i, j, end = left[p], right[p], words.shape[1] - 1
    differing = np.int64(cuda.popc(np.uint64(folded(words[i, end] ^ words[j, end], bits)) & last))
    for w in range(end):
        differing += np.int64(cuda.popc(np.uint64(folded(words[i, w] ^ words[j, w], bits)) & lowest))
    equal[p] = samples - differing


def gpu(words, left, right, bits, samples):
    """As `reference`; pairs in parallel."""
    xp = namespace()
    words, left, right = (on_device(array) for array in (words, left, right))
    equal = xp.empty(len(left), np.int64)
    _count.threads(len(left), words, left, right, bits, samples, *_masks(bits, samples), equal)
    return equal
