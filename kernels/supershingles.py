"""Supershingles: fingerprints of groups of min-hash samples, the features by which candidates are found.

    feature[d, j] = Rabin fingerprint of (j, signature[d, j s], ..., signature[d, j s + s - 1])

Two documents of resemblance x share a feature with probability x**s (and by accident with 2**-bits). The group's number
goes first, so that equal samples in different groups do not collide. A shortened feature keeps the upper bits of mix64.
Source: Broder 2000, section 3; Manasse 2.5.

Cost: k s carry-less products and k reductions a document; where the processor has none, and on a GPU, k s reductions.
"""

from __future__ import annotations

import numpy as np

from ._constants import constants
from ._cpu import shares, types
from ._gf2 import (
    LANES,
    advance,
    advance_by_tables,
    byte_tables,
    columns,
    mix64,
    mixed,
    prepare,
    rabin_words,
    window_weights,
)
from ._launch import TABLES, Kernel, cuda, kernel, load, namespace, on_device
from ._ragged import by_rows


def reference(signatures, k, s, bits, poly):
    """Features of each signature, straight from the definition.

    Parameters
    ----------
    signatures : array of uint32 or uint64, shape (documents, at least k s)
    k, s : int
        Number of features, samples in each.
    bits : int from 1 to 64
    poly : uint64

    Returns
    -------
    array of uint64, shape (documents, k)
    """
    features = np.empty((len(signatures), k), np.uint64)
    for d, signature in enumerate(signatures):
        for j in range(k):
            f = rabin_words([j, *signature[j * s : (j + 1) * s]], int(poly))
            if bits < 64:
                f = mixed(f) >> 64 - bits
            features[d, j] = f
    return features


@by_rows(
    "uint32[:, ::1], int64, int64, int64, uint64[::1], uint64, uint64[:, ::1]",
    "uint64[:, ::1], int64, int64, int64, uint64[::1], uint64, uint64[:, ::1]",
)
def _features(begin, end, signatures, k, s, bits, weights, q, features):
    modulus = prepare(q)
    width = -(-k // LANES) * LANES
    begins = np.zeros(width, np.uint64)
    for j in range(k):
        begins[j] = advance(q ^ np.uint64(j), modulus)
    words, found = np.zeros(width * s, np.uint64), np.empty(width, np.uint64)
    for d in range(begin, end):
        for j in range(k):
            for i in range(s):
                words[i * width + j] = np.uint64(signatures[d, j * s + i])
            words[j] ^= begins[j]
        columns(words, width, weights, modulus, found)
        for j in range(k):
            features[d, j] = mix64(found[j]) >> np.uint64(64 - bits) if bits < 64 else found[j]


def cpu(signatures, k, s, bits, poly):
    """As `reference`; documents in parallel, the products of a feature summed before one reduction, some at once."""
    q = np.uint64(poly)
    features = np.empty((len(signatures), k), np.uint64)
    _features(shares(np.arange(len(signatures) + 1)), signatures, k, s, bits, window_weights(s, q), q, features)
    return features


def _feature_kernel(kind: str) -> Kernel:
    def compute(signatures, k, s, bits, q, tables, features):
        """One thread a feature."""
        modulus = cuda.shared.array(TABLES, types.uint64)
        load(tables, modulus)
        at = cuda.grid(1)
        if at >= len(signatures) * k:
            return
        d, j = at // k, at % k
        f = advance_by_tables(q ^ np.uint64(j), modulus)
        for i in range(j * s, (j + 1) * s):
            f = advance_by_tables(f ^ np.uint64(signatures[d, i]), modulus)
        features[d, j] = mix64(np.uint64(f)) >> np.uint64(64 - bits) if bits < 64 else f

    return kernel(f"void({kind}[:,::1], int64, int64, int64, uint64, uint64[::1], uint64[:,::1])")(compute)


_FEATURES = {kind: _feature_kernel(kind) for kind in ("uint32", "uint64")}


def gpu(signatures, k, s, bits, poly):
    """As `reference`; features in parallel, eight look-ups in shared memory for each sample."""
    xp = namespace()
    signatures, (tables,) = on_device(signatures), constants(byte_tables, np.uint64(poly))
    features = xp.empty((len(signatures), k), np.uint64)
    run = _FEATURES[signatures.dtype.name]
    run.threads(len(signatures) * k, signatures, k, s, bits, np.uint64(poly), tables, features)
    return features
