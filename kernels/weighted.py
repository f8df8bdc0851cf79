"""Consistent weighted samples: two weighted sets have a sample in common with the probability of their resemblance.

    J_W(A, B) = sum over f of min(a[f], b[f]) / sum over f of max(a[f], b[f])

For each sample and feature of weight w, with u, u', v, v' and b uniform in (0, 1) and drawn from feature and sample:

    r = -ln v v'        c = -ln u u'        t = floor(ln w / r + b)        ln y = r (t - b)

The sample is the pair (feature, t) of the feature where c / (y e**r) is least. It stays while weights change little: y
is the lower end of the interval of weights around w that have this t. The feature without t would be biased.

In integers: logarithms are those of `_logarithm`, to the base 2, which changes r and ln alike. With
h = mix64(feature ^ salt), the words mix64(g + G), mix64(g + 2 G), mix64(g + 3 G) of the stream g = mix64(h + (j + 1) G)
of sample j hold v and v', u and u', and b: 32 bits each, the lowest of which is 1, so that none is 0, and 24 bits. A
sample is stored as mix64(h + t G). Ties of the key fall to the smaller feature. Weights of 0 are absence; rows without
weight hold `EMPTY`.

Source: Ioffe 2010 (Improved consistent sampling, weighted minhash and L1 sketching), as in Manasse 5.2. The code of
Manasse's page 57 is followed, which calls vv' q. His text on page 56 takes the ceiling for the floor, and the base q
where r is meant (erratum E9): neither gives samples by which sets meet with J_W.

Cost: for each feature and sample four mixings, five logarithms and a division. `dart` is for use, this is its oracle.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ._cpu import jit, parallel, shares
from ._gf2 import mix64
from ._launch import cuda, kernel, namespace, on_device
from ._logarithm import log2, log2_on_device, table

EMPTY = np.uint64(2**64 - 1)
_STEP = np.uint64(0x9E3779B97F4A7C15)  # G, SplitMix64's increment


def reference(features, offsets, weights, salt, samples):
    """Samples, straight from the definition.

    Parameters
    ----------
    features : array of uint64, shape (n,)
        Of each row, each once, in any order.
    offsets : array of int64, shape (rows + 1,)
    weights : array of int64, shape (n,)
        At least 0, and of each row at most 2**48 together.
    salt : uint64
    samples : int

    Returns
    -------
    array of uint64, shape (rows, samples)
    """
    logarithms = [int(y) for y in table()]
    words, step = 1 << 64, int(_STEP)

    def mix(z):
        z = z % words
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % words
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % words
        return z ^ (z >> 31)

    def logarithm(x):
        e = x.bit_length() - 1
        i, f = divmod((x << 44 >> e) - (1 << 44), 1 << 32)
        return (e << 32) + logarithms[i] + ((logarithms[i + 1] - logarithms[i]) * f >> 32)

    def one(feature, weight, j):
        h = mix(feature ^ int(salt))
        g = mix(h + (j + 1) * step)
        first, second, third = (mix(g + i * step) for i in (1, 2, 3))
        r, c = (2 * (32 << 32) - logarithm(word >> 32 | 1) - logarithm(word % 2**32 | 1) for word in (first, second))
        b = third >> 40
        t = (logarithm(weight) * 2**24 + b * r) // (r * 2**24)  # floor(ln w / r + b), where b counts 2**-24
        log_y = r * t - (r * b >> 24)
        return logarithm(c) - log_y - r, feature, mix(h + t * step)

    sketches = np.full((len(offsets) - 1, samples), EMPTY)
    for row, (start, stop) in enumerate(pairwise(offsets.tolist())):
        held = [(int(features[i]), int(weights[i])) for i in range(start, stop) if weights[i] > 0]
        for j in range(samples if held else 0):
            sketches[row, j] = min(one(feature, weight, j) for feature, weight in held)[2]
    return sketches


@jit()
def _uniforms(h, j):
    """v, v', u, u' in units of 2**-32 and b in units of 2**-24, of the feature that `h` is an image of."""
    g = mix64(h + (j + np.uint64(1)) * _STEP)
    first = mix64(g + _STEP)
    second = mix64(g + np.uint64(2) * _STEP)
    third = mix64(g + np.uint64(3) * _STEP)
    low, one = np.uint64(0xFFFFFFFF), np.uint64(1)
    return (
        (first >> np.uint64(32)) | one,
        (first & low) | one,
        (second >> np.uint64(32)) | one,
        (second & low) | one,
        third >> np.uint64(40),
    )


@jit()
def _name(h, t):
    """What stands for a feature's sample t."""
    return mix64(h + t * _STEP)


@jit()
def _chosen(log_weight, r, b, log_c):
    """(key, t). All but the key stays below 2**63: log_weight < 2**38, 0 < r <= 2**38, b < 2**24."""
    t = log_weight // r
    if ((log_weight - t * r) << np.uint64(24)) >= r * (np.uint64(1 << 24) - b):
        t += np.uint64(1)
    log_y = np.int64(r * t) - np.int64((r * b) >> np.uint64(24))
    return np.int64(log_c) - log_y - np.int64(r), t


@parallel("uint64[::1], int64[::1], int64[::1], int64[::1], uint64, uint64[::1], uint64[:, ::1]")
def _sample_rows(begin, end, features, offsets, bounds, weights, salt, y, sketches):
    samples, both = sketches.shape[1], np.uint64(64 << 32)
    for part in range(begin, end):
        least = np.empty(samples, np.int64)
        which = np.empty(samples, np.int64)
        ticks = np.empty(samples, np.uint64)
        for d in range(bounds[part], bounds[part + 1]):
            which[:] = -1
            for i in range(offsets[d], offsets[d + 1]):
                if weights[i] <= 0:
                    continue
                h = mix64(features[i] ^ salt)
                log_weight = log2(np.uint64(weights[i]), y)
                for j in range(samples):
                    v, v2, u, u2, b = _uniforms(h, np.uint64(j))
                    r = both - log2(v, y) - log2(v2, y)
                    c = both - log2(u, y) - log2(u2, y)
                    key, t = _chosen(log_weight, r, b, log2(c, y))
                    at = which[j]
                    if at < 0 or key < least[j] or (key == least[j] and features[i] < features[at]):
                        least[j], which[j], ticks[j] = key, i, t
            for j in range(samples):
                at = which[j]
                sketches[d, j] = EMPTY if at < 0 else _name(mix64(features[at] ^ salt), ticks[j])


def cpu(features, offsets, weights, salt, samples):
    """As `reference`; rows in parallel, feature by feature."""
    sketches = np.empty((len(offsets) - 1, samples), np.uint64)
    bounds = shares(offsets)
    _sample_rows(len(bounds) - 1, features, offsets, bounds, weights, salt, table(), sketches)
    return sketches


@kernel("void(uint64[::1], int64[::1], int64[::1], uint64, uint64[::1], uint64[:,::1])", block=128)
def _sample(features, offsets, weights, salt, y, sketches):
    """One thread a row and sample: neighbouring threads read the same features."""
    at = cuda.grid(1)
    samples = np.int64(sketches.shape[1])
    if at >= np.int64(sketches.shape[0]) * samples:
        return
    d, j = at // samples, at % samples
    both, least, which, tick = np.uint64(64 << 32), np.int64(0), np.int64(-1), np.uint64(0)
    i, stop = offsets[d], offsets[d + 1]
    while i < stop:
        if weights[i] > 0:
            h = np.uint64(mix64(features[i] ^ salt))
            v, v2, u, u2, b = _uniforms(h, np.uint64(j))
            r = both - log2_on_device(np.uint64(v), y) - log2_on_device(np.uint64(v2), y)
            c = both - log2_on_device(np.uint64(u), y) - log2_on_device(np.uint64(u2), y)
            log_weight = log2_on_device(np.uint64(weights[i]), y)
            key, t = _chosen(log_weight, r, np.uint64(b), log2_on_device(c, y))
            if which < 0 or key < least or (key == least and features[i] < features[which]):
                least, which, tick = np.int64(key), i, np.uint64(t)
        i += np.int64(1)
    found = EMPTY
    if which >= 0:
        found = np.uint64(_name(np.uint64(mix64(features[which] ^ salt)), tick))
    sketches[d, j] = found


def gpu(features, offsets, weights, salt, samples):
    """As `reference`; rows and samples in parallel, each a loop over the features of its row."""
    xp = namespace()
    features, offsets, weights = (on_device(array) for array in (features, offsets, weights))
    sketches = xp.empty((len(offsets) - 1, samples), np.uint64)
    _sample.threads(sketches.size, features, offsets, weights, salt, xp.asarray(table()), sketches)
    return sketches
