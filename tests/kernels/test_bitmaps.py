"""Bitmaps: the bounds of their lemma hold for all sets, and they reject as many pairs as the theory says."""

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from neardup_gpu.kernels import bitmaps
from neardup_gpu.papers import hoeffding

ELEMENTS = st.sets(st.integers(0, 30).map(lambda i: i * 0x9E3779B97F4A7C15 % 2**64) | st.integers(0, 2**64 - 1))


def bitmap(elements, words, flip):
    """The bitmap of a set as a whole number."""
    values = np.array(sorted(elements), np.uint64)
    found = bitmaps.cpu(values, np.array([0, len(values)]), np.array([words]), flip)
    return sum(word << 64 * place for place, word in enumerate(found.tolist()))


def folded(bits, words, flip):
    """A bitmap of two times as many words, folded."""
    low, high = bits % 2 ** (64 * words), bits >> 64 * words
    return low ^ high if flip else low | high


@settings(deadline=None)
@given(ELEMENTS, ELEMENTS, st.sampled_from([1, 2, 16]))
def test_the_bounds_of_the_lemma(a, b, words):
    flipped, joined = ([bitmap(each, words, flip) for each in (a, b)] for flip in (1, 0))
    assert 2 * len(a & b) <= len(a) + len(b) - (flipped[0] ^ flipped[1]).bit_count()
    assert len(a & b) <= len(a) - (joined[0] & ~joined[1]).bit_count()
    for flip, (whole, _) in ((1, flipped), (0, joined)):
        assert folded(bitmap(a, 2 * words, flip), words, flip) == whole


@pytest.mark.parametrize(("threshold", "flip"), [(1.0, 1), (0.8, 1), (0.5, 1), (1e-9, 1), (0.9, 0)])
def test_sizes_of_bitmaps(threshold, flip):
    """Powers of two up to `MOST_WORDS`, the least with so many bits for each element; none for an empty set."""
    sizes = np.concatenate([np.arange(3000), [10**5, 10**6, 10**9]])
    words = bitmaps.num_words(sizes, threshold, flip).tolist()
    each = 18 * (1 - threshold) / (1 + threshold) if flip else 4
    for size, number in zip(sizes.tolist(), words, strict=True):
        if size == 0:
            assert number == 0
            continue
        assert number.bit_count() == 1 and number <= bitmaps.MOST_WORDS
        assert number == bitmaps.MOST_WORDS or 64 * number >= each * size
        assert number == 1 or 32 * number < each * size


TRIALS = 200


@pytest.mark.parametrize("resemblance", [0.0, 0.2, 0.5, 0.7])
@pytest.mark.parametrize(
    ("size", "words", "threshold"),
    [(1000, 16, 0.8), (1000, 32, 0.8), (200, 8, 0.8), (1000, 64, 0.5), (50, 2, 0.8), (25, 1, 0.5), (1000, 4, 0.8)],
)
def test_the_rejection_rate(size, words, threshold, resemblance):
    """The mean popcount is that of the docstring, and so is the share of rejected pairs, for random sets.

    A popcount is a function of d independent places and changes by at most 2 with each, so the mean of all trials is
    off by s with probability at most 2 exp(-trials s**2 / (2 d)) (McDiarmid). The share of pairs that are not rejected
    is at most exp(-(m - L)**2 / (2 d)), and what was seen of it is off by Hoeffding's bound. Either fails with
    probability 1e-9.
    """
    random, bits = np.random.default_rng(size + words), 64 * words
    shared = round(2 * size * resemblance / (1 + resemblance))
    differing = 2 * (size - shared)
    most = 2 * size - 2 * math.ceil(2 * size * threshold / (1 + threshold))
    found = []
    for _ in range(TRIALS):
        drawn = random.integers(0, 2**64, 2 * size - shared, np.uint64)
        pair = np.concatenate([drawn[:size], drawn[size - shared :]])
        x, y = np.split(bitmaps.cpu(pair, np.array([0, size, 2 * size]), np.array([words, words]), 1), 2)
        found.append(int(np.bitwise_count(x ^ y).sum()))
    mean = bits / 2 * (1 - (1 - 2 / bits) ** differing)
    assert abs(np.mean(found) - mean) <= math.sqrt(2 * differing * math.log(2e9) / TRIALS)
    kept = np.mean(np.array(found) <= most)
    if mean > most:
        assert kept <= math.exp(-((mean - most) ** 2) / (2 * differing)) + hoeffding(TRIALS)
    if bits <= 2 * most:
        assert kept == 1
