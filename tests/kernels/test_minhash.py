"""Estimates against truth: every bound is Hoeffding's, exceeded with a probability of at most 1e-9 a comparison.

The sets are random: under any permutation each value of a union is then as likely as any other to be the smallest, so
that a sample agrees with exactly the probability of the resemblance, but for collisions of L bits (below 1e-5 here).
Pairs are independent of one another; what one pair gives, in [0, 1], is one trial.
"""

import math

import numpy as np
import pytest
from grids import pairs_of

from neardup_gpu import MinHash, Recipe, theory
from neardup_gpu.data import Ragged
from neardup_gpu.kernels import minhash as kernel, pairtables
from neardup_gpu.methods.minhash import Filter

FAILURE = 1e-9


def hoeffding(trials, failure=FAILURE):
    """Deviation of a mean of `trials` independent values in [0, 1] exceeded with probability at most `failure`."""
    return math.sqrt(math.log(2 / failure) / (2 * trials))


def sets_of_resemblance(shared, own, pairs, seed):
    """`pairs` pairs of random sets with `shared` values in common and `own` each: rows 2 i and 2 i + 1."""
    generator = np.random.default_rng(seed)
    rows = []
    for _ in range(pairs):
        values = generator.integers(0, 2**64, shared + 2 * own, np.uint64)
        rows += [generator.permutation(values[: shared + own]), np.append(values[:shared], values[shared + own :])]
    return Ragged.from_rows(rows, np.uint64)


CASES = [(80, 10), (50, 25), (20, 40), (0, 30), (60, 0), (1, 0)]


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize(("shared", "own"), CASES)
def test_estimate_of_resemblance_is_unbiased(bits, shared, own):
    """1,000 pairs: the bound is 0.104, and its failure probability 1e-9."""
    trials = 1000
    recipe = Recipe(method=MinHash(bits=bits, filter=Filter(16, 8, 1)))
    signatures = recipe.method.sketch(sets_of_resemblance(shared, own, trials, seed=bits + shared), seed=recipe.seed)
    estimates = (signatures[::2] == signatures[1::2]).mean(axis=1)
    resemblance = shared / (shared + 2 * own)
    assert abs(estimates.mean() - resemblance) <= hoeffding(trials)
    if resemblance == 1:
        assert (estimates == 1).all()


@pytest.mark.parametrize(("shares", "bits"), pairs_of(CASES, [32, 64]))
def test_one_sample_agrees_with_the_probability_of_the_resemblance(bits, shares):
    """20,000 pairs in 8 runs, a permutation drawn for each: the bound is 0.024."""
    shared, own = shares
    dtype = np.uint32 if bits == 32 else np.uint64
    generator = np.random.default_rng(bits)
    agreed = 0
    for run in range(8):
        rows = sets_of_resemblance(shared, own, 2500, seed=run)
        a, b = generator.integers(0, 2**bits - 1, (2, 1), dtype, endpoint=True)
        signatures = kernel.cpu(rows.values, rows.offsets, a | dtype(1), b)
        agreed += np.count_nonzero(signatures[::2] == signatures[1::2])
    trials = 8 * 2500
    assert abs(agreed / trials - shared / (shared + 2 * own)) <= hoeffding(trials)


@pytest.mark.parametrize("bits", [32, 64])
def test_structured_shingles_are_mixed_first(bits):
    """Runs of integers: a x + b alone would be far off; mix64 makes them as good as random, and the bound the same."""
    trials = 1000
    start = np.random.default_rng(bits).integers(0, 2**63, trials)
    rows = [np.arange(s + shift, s + shift + 90, dtype=np.uint64) for s in start.tolist() for shift in (0, 10)]
    recipe = Recipe(method=MinHash(bits=bits, filter=Filter(16, 8, 1)))
    signatures = recipe.method.sketch(Ragged.from_rows(rows, np.uint64), seed=recipe.seed)
    assert abs((signatures[::2] == signatures[1::2]).mean() - 80 / 100) <= hoeffding(trials)


@pytest.mark.parametrize("supershingle_bits", [64, 16])
def test_supershingles_agree_with_the_probability_of_all_their_samples(supershingle_bits):
    """x**s, and for 16 bits a 2**-16 share of the rest by accident; 4,000 pairs, each with the mean over k."""
    trials, s = 4000, 6
    recipe = Recipe(method=MinHash(supershingle_bits=supershingle_bits, filter=Filter(8, s, 1)))
    features = recipe.method.keys(
        recipe.method.sketch(sets_of_resemblance(90, 5, trials, seed=3), seed=recipe.seed), seed=recipe.seed
    )
    expected = 0.9**s
    if supershingle_bits == 16:
        assert int(features.max()) < 2**16
        expected += (1 - expected) / 2**16
    assert abs((features[::2] == features[1::2]).mean() - expected) <= hoeffding(trials)


@pytest.mark.parametrize("filter_", [(6, 14, 2), (20, 5, 1), (6, 5, 4), (8, 4, 3)])
@pytest.mark.parametrize(("shared", "own"), [(90, 5), (80, 10), (60, 20)])
def test_the_filter_passes_as_theory_says(filter_, shared, own):
    """P(k, s, r)(x) of 4,000 pairs of resemblance x, passed or not: the bound is 0.052."""
    trials = 4000
    recipe = Recipe(method=MinHash(bits=64, filter=Filter(*filter_)))
    features = recipe.method.keys(
        recipe.method.sketch(sets_of_resemblance(shared, own, trials, seed=5), seed=recipe.seed), seed=recipe.seed
    )
    agreeing = (features[::2] == features[1::2]).sum(axis=1)
    expected = theory.pass_probability(shared / (shared + 2 * own), *filter_)
    assert abs((agreeing >= recipe.method.filter.r).mean() - expected) <= hoeffding(trials)
    present = np.ones(len(features), bool)
    left, right, *_ = pairtables.cpu(features, present, recipe.method.filter.r, np.uint64(1 << 63 | 27), 1000, 32)
    # 3.2e7 pairs in at most 56 tables: false collisions of 64-bit keys have an expectation below 1e-10.
    assert set(zip(left.tolist(), right.tolist(), strict=True)) >= {
        (2 * i, 2 * i + 1) for i in np.flatnonzero(agreeing >= recipe.method.filter.r).tolist()
    }
    assert len(left) == np.count_nonzero(agreeing >= recipe.method.filter.r)


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
def test_small_signatures_by_hand(dtype):
    """One shingle: a x + b; mixing is SplitMix64's, whose value for 0 is 0."""
    a, b = np.array([1, 3], dtype), np.array([5, 7], dtype)
    rows = Ragged.from_rows([[0], [], [0, 0]], np.uint64)
    greatest = np.iinfo(dtype).max
    for function in (kernel.reference, kernel.cpu):
        assert function(rows.values, rows.offsets, a, b).tolist() == [[5, 7], [greatest] * 2, [5, 7]]
