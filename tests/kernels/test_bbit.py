"""A few bits of each sample: estimates and errors as derived, and what happens without mixing.

Bounds are Hoeffding's, exceeded with a probability of at most 1e-9 a comparison; pairs of random sets are independent
of one another, and what one pair gives, in [0, 1], is one trial.
"""

import math

import numpy as np
import pytest

from neardup_gpu import papers, theory
from neardup_gpu.kernels import bbit, bbit_equal, minhash
from neardup_gpu.methods.minhash import permutations

SAMPLES = 256
SALTS = np.random.default_rng(11).integers(0, 2**64, SAMPLES, np.uint64)
LENGTHS = [1, 2, 4, 8]


def signatures(shared, own, pairs, seed, samples=SAMPLES):
    """Signatures of `pairs` pairs of random sets with `shared` elements in common and `own` each: two arrays."""
    values = np.random.default_rng(seed).integers(0, 2**64, (pairs, shared + 2 * own), np.uint64)
    made = []
    for columns in ([*range(shared + own)], [*range(shared), *range(shared + own, shared + 2 * own)]):
        rows = np.ascontiguousarray(values[:, columns])
        made.append(minhash.cpu(rows.ravel(), np.arange(pairs + 1) * rows.shape[1], *permutations(1, samples, 32)))
    return made


def estimates(left, right, bits, salts=SALTS):
    """The estimate of each pair of signatures."""
    samples = left.shape[1]
    words, pairs = bbit.cpu(np.concatenate([left, right]), salts[:samples], bits), np.arange(len(left))
    equal = bbit_equal.cpu(words, pairs, pairs + len(left), bits, samples)
    return np.array([theory.bbit_resemblance(share, bits) for share in (equal / samples).tolist()])


@pytest.mark.parametrize("bits", LENGTHS)
@pytest.mark.parametrize(("shared", "own"), [(80, 10), (50, 25), (0, 5), (0, 1)])
def test_without_bias(bits, shared, own):
    """2,000 pairs: shares of equal groups are within 0.0732 of theirs; of one bit that is 0.146 of resemblance."""
    found = estimates(*signatures(shared, own, 2000, seed=shared), bits)
    tolerance = papers.hoeffding(2000) / (1 - 2.0**-bits)
    assert abs(found.mean() - shared / (shared + 2 * own)) <= tolerance
    if shared == 0:
        assert found.min() < 0  # nothing is cut off


@pytest.mark.parametrize("bits", LENGTHS)
def test_errors_are_binomial(bits):
    """The share of estimates that are off by at most one derived standard deviation is the binomial's.

    20,000 pairs: within 0.0232. With whole samples in place of one bit the share would be 0.86 and not 0.68.
    """
    resemblance, pairs = 80 / 100, 20_000
    error = papers.bbit_error(resemblance, SAMPLES, bits)
    found = np.abs(estimates(*signatures(80, 10, pairs, seed=bits), bits) - resemblance) <= error
    share = theory.bbit_share(resemblance, bits)
    # An error of the share is that of the estimate times 1 - 2**-bits.
    expected = papers.within_probability(SAMPLES, share, error * (1 - 2.0**-bits))
    assert abs(found.mean() - expected) <= papers.hoeffding(pairs)
    whole = papers.within_probability(SAMPLES, resemblance, papers.bbit_error(resemblance, SAMPLES, 1))
    assert bits > 1 or whole - expected > 2 * papers.hoeffding(pairs)


def plain_bits(signature, bits, highest):
    """Groups of bits taken from samples as they are, not mixed."""
    return signature >> (32 - bits) if highest else signature & (2**bits - 1)


def plain_estimates(left, right, bits, highest):
    share = (plain_bits(left, bits, highest) == plain_bits(right, bits, highest)).mean(axis=1)
    return np.array([theory.bbit_resemblance(each, bits) for each in share.tolist()])


def test_low_bits_repeat_one_accident():
    """The lowest bit of a x + b, a odd, is that of x but for one of b: one-shingle documents agree always or never.

    So each estimate is 1 or -1, with the standard deviation 1 instead of 1/16; mixed, all 2,000 are within 0.48 of 0
    (Hoeffding, 1e-9 for all together).
    """
    left, right = signatures(0, 1, 2000, seed=5)
    plain = plain_estimates(left, right, 1, highest=False)
    assert set(plain.tolist()) == {-1.0, 1.0}
    assert papers.bbit_error(0, SAMPLES, 1) == 1 / 16
    assert np.abs(estimates(left, right, 1)).max() <= 2 * papers.hoeffding(SAMPLES, 1e-9 / 2000)


def test_one_salt_for_all_samples_is_not_enough():
    """Samples of a document that are the same number would then repeat one accident.

    Rows of one number each: with one salt their groups are all equal or all different, with salts of their own not.
    """
    left, right = (np.repeat(np.random.default_rng(i).integers(0, 2**32, (500, 1), np.uint32), 256, 1) for i in (1, 2))
    found = estimates(left, right, 1, np.full(SAMPLES, SALTS[0]))
    assert set(found.tolist()) == {-1.0, 1.0}
    assert np.abs(estimates(left, right, 1)).max() <= 2 * papers.hoeffding(SAMPLES, 1e-9 / 500)


def test_high_bits_say_nothing():
    """The least of n random numbers begins with a one with probability 2**-n.

    Two unrelated documents of five shingles have the mean 1 - 4 p (1 - p), p = 1/32, that is 0.879 in place of 0, and
    of 100 shingles 1 with a probability above 1 - 1e-27.
    """
    p = 2.0**-5
    found = plain_estimates(*signatures(0, 5, 2000, seed=6), 1, highest=True)
    assert 0.878 < 1 - 4 * p * (1 - p) < 0.880
    assert abs(found.mean() - (1 - 4 * p * (1 - p))) <= 2 * papers.hoeffding(2000)
    assert (plain_estimates(*signatures(0, 100, 50, seed=7), 1, highest=True) == 1).all()


def test_packed_by_hand():
    """mix64(0) is 0, and an extreme value by the published finaliser; groups begin in the lowest bits."""
    signature = np.array([[5, 7, 5]], np.uint32)
    for bits in LENGTHS:
        (word,) = bbit.cpu(signature, np.array([5, 7, 4], np.uint64), bits)[0].tolist()
        z = 0x5692161D100B05E5  # SplitMix64's finaliser of 1, as computed by its authors' C
        assert word == z >> (64 - bits) << 2 * bits
    assert bbit.num_words(1, 1) == bbit.num_words(64, 1) == bbit.num_words(8, 8) == 1
    assert bbit.num_words(65, 1) == bbit.num_words(9, 8) == 2


def test_numbers_of_the_papers():
    ratios = [(papers.bbit_error(0.8, 100, bits) / papers.standard_error(0.8, 100)) ** 2 for bits in LENGTHS]
    assert [round(ratio, 4) for ratio in ratios] == [2.25, 1.4167, 1.0833, 1.0049]
    for bits, ratio in zip(LENGTHS, ratios, strict=True):
        assert math.isclose(ratio, 1 + 1 / ((2**bits - 1) * 0.8))
    assert [round(papers.bbit_error(0, 256, bits), 4) for bits in (1, 2, 4)] == [0.0625, 0.0361, 0.0161]
    assert theory.bbit_resemblance(theory.bbit_share(0.3, 4), 4) == pytest.approx(0.3)
    assert theory.bbit_resemblance(0, 1) == -1


def test_numbers_of_segments():
    """20 segments of ten one-bit samples: of pairs at 0.8, and of unrelated ones; see `theory.choose_segments`."""
    agree, accident, neighbours = 0.9**10, 2.0**-10, 11 * 2.0**-10
    near = agree + 10 * 0.1 * 0.9**9
    assert (round(agree, 4), round(near, 4)) == (0.3487, 0.7361)

    def one(p):
        return 1 - (1 - p) ** 20

    def two(p):
        return one(p) - 20 * p * (1 - p) ** 19

    assert theory.pass_probability(0.9, 20, 10, 1) == pytest.approx(one(agree))
    assert theory.pass_probability(0.5, 20, 10, 2) == pytest.approx(two(accident))
    assert (round(one(agree), 4), round(one(accident), 3), round(one(neighbours), 3)) == (0.9998, 0.019, 0.194)
    assert (round(two(agree), 3), round(two(accident), 5), round(two(neighbours), 3)) == (0.998, 0.00018, 0.019)
    assert 1 - one(near) < 3e-12
