"""b-bit min-hash: a few bits of each sample, packed into words.

    group[d, i] = the upper k bits of mix64(signature[d, i] ^ salts[i])        k = 1, 2, 4 or 8

Group i lies in bits i k mod 64 and above of word i k // 64; what is left of the last word is 0. Two samples that are
equal give equal groups; two that differ do by accident, with probability 2**-k. So of documents of resemblance J the
share Q of equal groups has the mean J + (1 - J) / 2**k, and (2**k Q - 1) / (2**k - 1) estimates J without bias; it is
negative where fewer are equal than by accident.

Each sample has a salt of its own, as nothing less makes accidents independent. The lowest bit of a x + b (a odd) is
that of x, exclusive-or that of b: two documents of one shingle would agree in all samples or in none. The highest bits
of a minimum are nearly always 0: documents of many shingles would agree in all of them, whatever they say.

Source: Li and König 2010; Manasse 2012, section 2.4. Their terms for sets that fill their universe vanish, as samples
are mixed into 64 bits first.
Cost: a mixing for each sample.
"""

from __future__ import annotations

import numpy as np

from ._constants import constant
from ._cpu import jit, parallel
from ._gf2 import mix64, mixed
from ._launch import Kernel, cuda, kernel, namespace, on_device


def num_words(samples, bits):
    """Words that `samples` groups of `bits` bits take.

    >>> num_words(140, 1), num_words(64, 1)
    (3, 1)
    """
    return -(-samples * bits // 64)


def reference(signatures, salts, bits):
    """Packed words, straight from the definition.

    Parameters
    ----------
    signatures : array of uint32 or uint64, shape (documents, samples)
    salts : array of uint64, shape (samples,)
    bits : 1, 2, 4 or 8
        k.

    Returns
    -------
    array of uint64, shape (documents, ceil(samples * bits / 64))
    """
    packed = np.zeros((len(signatures), num_words(len(salts), bits)), np.uint64)
    for d, signature in enumerate(signatures.tolist()):
        whole = 0
        for i, (sample, salt) in enumerate(zip(signature, salts.tolist(), strict=True)):
            whole |= (mixed(sample ^ salt) >> (64 - bits)) << (i * bits)
        packed[d] = [whole >> 64 * word & 2**64 - 1 for word in range(packed.shape[1])]
    return packed


@jit()
def group(sample, salt, bits):
    """The group of a sample: the upper bits of what mixing gives."""
    return np.uint64(mix64(np.uint64(sample) ^ np.uint64(salt))) >> (np.uint64(64) - np.uint64(bits))


@parallel("uint32[:, ::1], uint64[::1], int64, uint64[:, ::1]", "uint64[:, ::1], uint64[::1], int64, uint64[:, ::1]")
def _pack(begin, end, signatures, salts, bits, packed):
    for d in range(begin, end):
        for i in range(len(salts)):
            at = i * bits
            packed[d, at >> 6] |= group(signatures[d, i], salts[i], bits) << np.uint64(at & 63)


def cpu(signatures, salts, bits):
    """As `reference`; documents in parallel."""
    packed = np.zeros((len(signatures), num_words(len(salts), bits)), np.uint64)
    _pack(len(packed), signatures, salts, bits, packed)
    return packed


def _pack_kernel(kind: str) -> Kernel:
    def pack(signatures, salts, bits, packed):
        """One thread a word."""
        at = cuda.grid(1)
        if at >= packed.size:
            return
        d, column = at // packed.shape[1], at % packed.shape[1]
        per_word = 64 // bits
        first = column * per_word
        word, shift = np.uint64(0), np.uint64(0)
        for i in range(first, min(first + per_word, len(salts))):
            word |= np.uint64(group(signatures[d, i], salts[i], bits)) << shift
            shift += np.uint64(bits)
        packed[d, column] = word

    return kernel(f"void({kind}[:,::1], uint64[::1], int64, uint64[:,::1])")(pack)


_PACK = {kind: _pack_kernel(kind) for kind in ("uint32", "uint64")}


def gpu(signatures, salts, bits):
    """As `reference`; words in parallel."""
    xp = namespace()
    signatures, salts = on_device(signatures), constant(salts)
    packed = xp.empty((len(signatures), num_words(len(salts), bits)), np.uint64)
    _PACK[signatures.dtype.name].threads(packed.size, signatures, salts, bits, packed)
    return packed
