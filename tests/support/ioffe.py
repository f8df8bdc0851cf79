"""Ioffe's consistent weighted samples, the oracle for the law of `kernels.dart`.

    J_W(A, B) = sum over f of min(a[f], b[f]) / sum over f of max(a[f], b[f])

For each sample and feature of weight w, with u, u', v, v' and b uniform in (0, 1) and drawn from feature and sample:

    r = -ln v v'        c = -ln u u'        t = floor(ln w / r + b)        ln y = r (t - b)

The sample is the pair (feature, t) of the feature with the least c / (y e**r). It stays while weights change little: y
is the lower end of the interval of weights around w that have this t. The feature without t would be biased.

In integers: logarithms are those of `_logarithm`, to the base 2, which changes r and ln alike. With
h = mix64(feature ^ salt), the words mix64(g + G), mix64(g + 2 G), mix64(g + 3 G) of the stream g = mix64(h + (j + 1) G)
of sample j hold v and v', u and u', and b: 32 bits each, the lowest of which is 1, so that none is 0, and 24 bits. A
sample is stored as mix64(h + t G). Ties of the key fall to the smaller feature. Weights of 0 are absence. Rows without
weight hold `EMPTY`.

Source: Ioffe 2010 (Improved consistent sampling, weighted minhash and L1 sketching), as in Manasse 5.2. The code of
Manasse's page 57 is followed, which calls vv' q. His text on page 56 takes the ceiling for the floor, and the base q
where r is meant (erratum E9): neither gives samples by which sets meet with J_W.
"""

from itertools import pairwise

import numpy as np

from neardup_gpu.kernels._gf2 import mix64_all
from neardup_gpu.kernels._logarithm import table
from neardup_gpu.kernels.dart import EMPTY

_STEP = np.uint64(0x9E3779B97F4A7C15)  # G, SplitMix64's increment


def cpu(features, offsets, weights, salt, samples):
    """Return the samples of rows: array of uint64, shape (rows, samples)."""
    sketches = np.full((len(offsets) - 1, samples), EMPTY)
    numbers = np.arange(1, samples + 1, dtype=np.uint64)
    for row, (start, stop) in enumerate(pairwise(offsets.tolist())):
        least = np.full(samples, 2**63 - 1)
        for i in sorted(range(start, stop), key=lambda i: features[i]):
            if weights[i] > 0:
                key, name = _drawn(features[i : i + 1], weights[i : i + 1].astype(np.uint64), salt, numbers)
                smaller = key < least
                least[smaller], sketches[row, smaller] = key[smaller], name[smaller]
    return sketches


def _drawn(feature, weight, salt, numbers):
    """Return (key, name) of one feature for each sample. What is not the key stays below 2**63."""
    h = mix64_all(feature ^ salt)
    g = mix64_all(h + numbers * _STEP)
    first, second, third = (mix64_all(g + np.full(1, i, np.uint64) * _STEP) for i in (1, 2, 3))
    r, c = (np.uint64(64 << 32) - _log2_of_halves(word) for word in (first, second))
    b, log_weight = third >> np.uint64(40), _log2(weight)
    t = log_weight // r
    t += ((log_weight - t * r) << np.uint64(24)) >= r * (np.uint64(1 << 24) - b)  # floor(ln w / r + b)
    log_y = (r * t).astype(np.int64) - ((r * b) >> np.uint64(24)).astype(np.int64)
    return _log2(c).astype(np.int64) - log_y - r.astype(np.int64), mix64_all(h + t * _STEP)


def _log2_of_halves(words):
    """Return the sum of the logarithms of both halves of words, whose lowest bits are taken for 1."""
    low, one = np.uint64(0xFFFFFFFF), np.uint64(1)
    return _log2((words >> np.uint64(32)) | one) + _log2((words & low) | one)


def _log2(x):
    """Return `kernels._logarithm.log2` of each element of an array."""
    y, e, rest = table(), np.zeros_like(x), x
    for step in (np.uint64(1 << i) for i in range(5, -1, -1)):
        is_large = rest >> step > 0
        e, rest = e + step * is_large, np.where(is_large, rest >> step, rest)
    x = x << (np.uint64(63) - e)
    i, f = (x >> np.uint64(51)) & np.uint64(4095), (x >> np.uint64(19)) & np.uint64(0xFFFFFFFF)
    return (e << np.uint64(32)) + y[i] + (((y[i + np.uint64(1)] - y[i]) * f) >> np.uint64(32))
