"""Misprints of the papers by their numbers: the right value recomputed, and that the printed one is another.

B00 is Broder 2000, B97 Broder 1997, M Manasse's book, G Manku, Jain and Das Sarma 2007. Not here, as they are words or
code that this package does not have: E4 (B97, sections 3 and 4.1: elements of W for those of I), E8 (G 4.3: the file Q
for the file F), E16 (M 3.2, code) and, of E17 (M 3.3, code), all but the number of primitive polynomials.
"""

import math
import sys
from fractions import Fraction
from itertools import permutations, product
from pathlib import Path

import numpy as np
import pytest

from neardup_gpu import MinHash, papers, theory
from neardup_gpu.hamming import TableDesign
from neardup_gpu.papers.lazy_sampling import winner_probability

sys.path.append(str(Path(__file__).parent.parent))

from benchmarks.simhash import BUCKETS, Corpus, distribution

ALTAVISTA, BING = theory.PRESETS["altavista"], theory.PRESETS["bing"]


def binomial(n, p, values):
    """Chance that one of some numbers of n coins fall heads, over the rationals."""
    p = Fraction(p).limit_denominator(10**6)
    return float(sum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in values))


def primitive(degree):
    """Number of primitive polynomials of a degree, each tried: x has the order 2**degree - 1."""
    found = 0
    for low in range(1, 1 << degree, 2):
        modulus, power, order = 1 << degree | low, 2 % (1 << degree | low) if degree > 1 else 1, 1
        while power != 1 and order <= 1 << degree:
            power <<= 1
            power ^= modulus if power >> degree else 0
            order += 1
        found += order == (1 << degree) - 1
    return found


def totient(n):
    return sum(math.gcd(i, n) == 1 for i in range(1, n + 1))


def test_e1_misses_of_altavista():
    """B00, section 1: pairs of 0.975 are missed with "less than 0.01"."""
    missed = binomial(6, 0.975**14, (0, 1))
    assert missed == pytest.approx(0.0107, abs=5e-5) and not missed < 0.01
    assert theory.miss_probability(0.975, *ALTAVISTA) == pytest.approx(missed, rel=1e-4)


def test_e2_the_upper_end_of_the_sum():
    """B97, section 4.2: p(s, r, e) is summed to s(r + e); s(r - e), as printed, leaves one term."""
    right = binomial(100, 0.8, range(70, 91))
    assert papers.within_probability(100, 0.8, 0.1) == pytest.approx(right, rel=1e-9)
    assert right == pytest.approx(0.991607, abs=5e-7)
    assert papers.within_probability(200, 0.8, 0.1) == pytest.approx(0.999677, abs=5e-7)
    assert binomial(100, 0.8, range(70, 71)) < 0.01


@pytest.mark.parametrize("i", range(12))
def test_e3_elements_of_adaptive_sketches(i):
    """B97, section 3: of sizes 100 2**i to 100 2**(i+1), the modulus 2**i expects 100 to 200, and not 50 to 100."""
    smallest, largest = 100 * 2**i, 100 * 2 ** (i + 1)
    assert (smallest / 2**i, largest / 2**i) == (100, 200)
    assert (smallest / 2 ** (i + 1), largest / 2 ** (i + 1)) == (50, 100)


def test_e5_bits_of_fingerprints():
    """B00, section 2: of 2 log2 m + 20 bits, 64 suffice to m = 2**22, not for 30 or 200 million documents."""
    assert papers.fingerprint_bits(2**22) == 64 < papers.fingerprint_bits(2**22 + 1)
    for documents, bits in ((30_000_000, 69.677), (200_000_000, 75.151), (50_000_000_000, 91.08)):
        assert papers.fingerprint_bits(documents) == pytest.approx(bits, abs=5e-3)
        assert math.log2(documents**2 * 2**20) == pytest.approx(bits, abs=5e-3)


def test_e6_probes_within_three_bits():
    """G, section 3: C(64, 3) = 41,664 are the fingerprints at three bits; at most three are 43,745."""
    assert math.comb(64, 3) == 41_664
    assert sum(math.comb(64, i) for i in range(4)) == 43_745


def test_e7_bytes_of_eight_billion_fingerprints():
    """G, sections 3.1 and 4.1: 8 billion are 2**33, of 64 GB; 2**34 have 137 GB."""
    assert abs(8e9 / 2**33 - 1) < 0.07 < abs(8e9 / 2**34 - 1)
    assert (8e9 * 8, round(2**34 * 8 / 1e9)) == (64e9, 137)
    assert TableDesign(64, 3, 20).bits // 8 == 8


def test_e9_consistent_weighted_samples():
    """M 5.2: floor, where the text has the ceiling, and q = 1 / (v v'), where it has v v'; his code is right.

    Samples agree as often as the weighted resemblance 15/23 says, up to Hoeffding's bound with failure 1e-9; those of
    the text, either way, do not.
    """
    trials, generator = 200_000, np.random.default_rng(1)
    a, b = np.array([1, 3, 3, 4.0]), np.array([1.5, 2, 2, 2.5])
    u1, u2, v1, v2, beta = 1 - generator.random((5, trials, 4))
    right, room = np.minimum(a, b).sum() / np.maximum(a, b).sum(), papers.hoeffding(trials)
    assert right == pytest.approx(15 / 23)

    def agree(round_, log_q):
        def sample(weights):
            t = round_(np.log(weights) / log_q + beta)
            key = (-np.log(u1) - np.log(u2)) / np.exp(log_q * (t - beta) + log_q)  # c / z, z = y q
            best = key.argmin(axis=1)
            return best, t[np.arange(trials), best]

        (first, t), (second, other) = sample(a), sample(b)
        return ((first == second) & (t == other)).mean()

    assert abs(agree(np.floor, -np.log(v1 * v2)) - right) < room
    assert abs(agree(np.ceil, -np.log(v1 * v2)) - right) > 5 * room
    assert abs(agree(np.floor, np.log(v1 * v2)) - right) > 5 * room
    assert abs(agree(np.ceil, np.log(v1 * v2)) - right) > 5 * room


@pytest.mark.parametrize(("n", "eight", "four"), [(100, 1.21, 6.26), (1000, 3.99, 62.5), (10_000, 39.06, 625)], ids=str)
def test_e10_bytes_of_lazy_prefixes(n, eight, four):
    """M 3.2: 264/256 bytes are 33/32 and not 65/64; and the ties that the least prefix leaves are far from few."""
    assert 1 + Fraction(8, 256) == Fraction(264, 256) == Fraction(33, 32) != Fraction(65, 64)
    for bits, wanted in ((8, eight), (4, four)):
        p = 2.0**-bits
        shared = math.fsum(n * p * (1 - value * p) ** (n - 1) for value in range(2**bits))
        assert shared == pytest.approx(wanted, abs=0.006 * max(1, wanted / 10))


def test_e11_winners_of_a_biased_block():
    """M 4.2: more than three of 128 begin with a zero in 1.85%, not under half of a percent; more than four, 0.35%."""
    chances = [binomial(128, Fraction(1, 128), [i]) for i in range(4)]
    assert chances == pytest.approx([0.366438, 0.369323, 0.184662, 0.061069], abs=5e-7)
    assert 1 - sum(chances) == pytest.approx(0.018509, abs=5e-7) and not 1 - sum(chances) < 0.005
    assert binomial(128, Fraction(1, 128), range(5, 129)) == pytest.approx(0.0035, abs=5e-5)


def test_e12_two_of_six_supershingles():
    """M 6.1: 0.7% and 0.006% at 0.7 and 0.5 are chances of one feature; of two of six, 0.068% and 0.0000056%."""
    for x, right, printed in ((0.7, 6.8e-4, 0.007), (0.5, 5.6e-8, 0.00006)):
        assert theory.pass_probability(x, *ALTAVISTA) == pytest.approx(right, rel=0.01)
        assert x**14 == pytest.approx(printed, rel=0.04)
    assert theory.pass_probability(0.95, *ALTAVISTA) == pytest.approx(0.87, abs=0.01)


def test_e13_accidents_of_16_bits():
    """M 6.1: two of six agree by accident in one pair of 286 million, not of "a few billion"; four, of 1.2e18."""
    for r, pairs in ((2, 2.863e8), (4, 1.230e18)):
        exact = binomial_exactly(6, Fraction(1, 2**16), range(r, 7))
        assert float(1 / exact) == pytest.approx(pairs, rel=5e-4)
        assert theory.pass_probability(0, 6, 5, r, bits=16) == pytest.approx(float(exact), rel=1e-12)
    assert pytest.approx(2.863e8, rel=5e-4) == 2**32 / 15 < 1e9
    assert theory.pass_probability(0.7, *BING, bits=16) == pytest.approx(theory.pass_probability(0.7, *BING), rel=1e-3)


def binomial_exactly(n, p, values):
    return sum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in values)


def test_e14_files_with_common_chunks():
    """M 6.2: of 12 samples of six bits five agree with 0.40 where a third is common, which is not "very likely"."""

    def five(common):
        return binomial(12, common + (1 - common) / 64, range(5, 13))

    assert five(0) == pytest.approx(6.7e-7, abs=5e-9)
    assert [five(common) for common in (1 / 3, 0.4, 0.5)] == pytest.approx([0.398, 0.588, 0.821], abs=2e-3)


@pytest.mark.parametrize("k", range(1, 6))
def test_e15_active_indices(k):
    """M 5.1: index k, counted from 0, is active with probability 1 / (k + 1): it holds the greatest of k + 1 values."""
    orders = list(permutations(range(6)))
    active = sum(order[k] == max(order[: k + 1]) for order in orders)
    assert Fraction(active, len(orders)) == Fraction(1, k + 1) != Fraction(1, k)


@pytest.mark.parametrize("degree", range(2, 10))
def test_e17_number_of_primitive_polynomials(degree):
    """M 3.3: phi(2**k - 1) / k, and not phi(n) / (n - 1)."""
    order = 2**degree - 1
    assert primitive(degree) == totient(order) // degree
    assert totient(order) % degree == 0
    if order > 3:
        assert primitive(degree) != Fraction(totient(order), order - 1)


def test_e18_share_of_primitive_polynomials():
    """M 3.3: of those of degree 64 with a constant term one in 64.10 is primitive, so not "at least one in k"."""
    factors = (3, 5, 17, 257, 641, 65537, 6700417)
    assert math.prod(factors) == 2**64 - 1
    number = math.prod(factor - 1 for factor in factors) // 64
    assert float(Fraction(2**63, number)) == pytest.approx(64.1000, abs=5e-5)
    assert Fraction(number, 2**63) < Fraction(1, 64)
    assert math.prod(factor - 1 for factor in factors) / (2**64 - 1) == pytest.approx(0.49921989, abs=5e-9)


def test_e19_a_mask_of_64_bits():
    """M 4.3: 0xCCCC... has 16 digits; 20, as printed, do not fit."""
    assert int("C" * 16, 16).bit_length() == 64 < int("C" * 20, 16).bit_length()
    pairs = sum(0b11 << shift for shift in range(2, 64, 4))
    assert int("C" * 16, 16) == pairs


def test_e20_bytes_of_altavista_s_features():
    """G, section 2: Broder's six features take 48 bytes; 24 is six of 32 bits, and 12 those of Bing."""

    def stored(name):
        kind = MinHash(filter=name).schema()["supershingles"]
        return kind.list_size * kind.value_type.bit_width // 8

    assert (stored("altavista"), stored("bing"), 6 * 32 // 8) == (48, 12, 24)


def test_e21_near_segments():
    """M 2.5: at 0.5 nine of ten bits agree with 0.244, and 4.88 of 20 segments do; not "over 1/5" and "roughly 4"."""
    near = binomial(10, Fraction(3, 4), (9, 10))
    assert near == pytest.approx(0.244, abs=5e-4) and 20 * near == pytest.approx(4.88, abs=5e-3)
    assert round(20 * near) == 5 != 4
    match = papers.bbit_variance(0.5, 1, 1)  # of one bit, p (1 - p) (2**1 / (2**1 - 1))**2 with p = 3/4
    assert match == pytest.approx(3 / 4 * 1 / 4 * 4)


FEATURES, SAMPLES = 1024, 128
"""Features per document and samples that section 4.2 of M assumes."""


def without_winner(block):
    """Return the chance that no feature of a document wins a sample, in blocks of `block` samples."""
    return (1 - 1 / block) ** FEATURES


def test_e22_bits_of_samples_without_winners():
    """M 4.2 and 4.4: the twelfth of a bit is for all 128 samples of a feature, so 0.251 and 0.500, not 1/3 and 7/12."""
    more = {block: 2 * SAMPLES * without_winner(block) for block in (64, 128)}  # bits per feature
    assert more[128] == pytest.approx(1 / 12, abs=2e-4)
    assert (32 + more[128]) / SAMPLES == pytest.approx(0.251, abs=5e-4) and pytest.approx(1 / 3) == 1 / 4 + 1 / 12
    assert (64 + more[64]) / SAMPLES == pytest.approx(0.500, abs=5e-4) and pytest.approx(7 / 12) == 1 / 2 + 1 / 12


def test_e23_corrections_of_blocks_of_64():
    """M 4.2: one document in 79,000 needs the correction at m = 64, not one in "a few thousand"."""
    needed = {block: 1 - (1 - without_winner(block)) ** SAMPLES for block in (64, 128)}
    assert without_winner(128) == pytest.approx(3.25e-4, abs=5e-7) and 1 / 25 < needed[128] < 1 / 24
    assert 1 / needed[64] == pytest.approx(79_000, abs=500)


def test_e24_winners_of_a_block():
    """M 4.2: the repetition as printed finds 1.69 winners and exactly one in 0.234; a binomial has 1 and 0.369."""
    m = SAMPLES
    further = [1 - (1 - 1 / m) ** (m - found) for found in range(m)]
    assert math.fsum(np.cumprod(further)) == pytest.approx(1.69, abs=5e-3)
    assert further[0] * (1 - further[1]) == pytest.approx(0.234, abs=5e-4)
    chances = [winner_probability(number) for number in range(m + 1)]
    assert math.fsum(number * chance for number, chance in enumerate(chances)) == pytest.approx(1)
    assert chances[1] == pytest.approx(0.369323052, abs=5e-10)


def test_e25_a_gap_of_ten_times_the_mean():
    """M 6.2: of 20,000 gaps one is ten times the mean with 0.6, which is not "very likely"."""
    gaps = 20_000_000 // 1000
    assert gaps * math.exp(-10) == pytest.approx(0.91, abs=5e-3)
    assert 1 - (1 - math.exp(-10)) ** gaps == pytest.approx(0.597, abs=5e-4)
    assert 1 - (1 - (1 - 1 / 1000) ** 10_000) ** gaps == pytest.approx(0.595, abs=5e-4)


def test_e26_more_than_four_accidental_matches():
    """M 6.2: 0.67 of a million files agree by accident in five or more of 12 samples, which is not "unlikely"."""
    four, five = (binomial_exactly(12, Fraction(1, 64), range(least, 13)) for least in (4, 5))
    assert float(10**6 * four) == pytest.approx(27, abs=0.5)
    assert float(10**6 * five) == pytest.approx(0.67, abs=5e-3)
    assert 1 - float(1 - five) ** 10**6 == pytest.approx(0.49, abs=5e-3)


def test_e27_the_largest_factor():
    """M 3.3: 2**64 - 1 is no prime; the factor of 2**192 - 1 that has 64 bits is 2**64 - 2**32 + 1."""
    largest = 2**64 - 2**32 + 1
    assert (2**192 - 1) % largest == 0 and largest.bit_length() == 64
    below = (2, 3, 5, 17, 257, 65537)  # the primes of largest - 1; by Lucas, 7 of the full order shows a prime
    assert math.prod(below) * 2**31 == largest - 1 and pow(7, largest - 1, largest) == 1
    assert all(pow(7, (largest - 1) // factor, largest) != 1 for factor in below)
    others, rest = [3, 5, 17, 257, 641, 65537, 6700417], (2**192 - 1) // largest // (2**64 - 1)
    assert math.prod(others) == 2**64 - 1
    for factor in range(2, 5000):
        while rest % factor == 0:
            others.append(factor)
            rest //= factor
    assert rest < 5000**2 and max(*others, rest) < 2**25 < largest  # so what is left is a prime


@pytest.mark.parametrize(("own", "others"), [(1, 1), (2, 1), (1, 3), (3, 2), (4, 4)], ids=str)
def test_e28_the_distribution_of_a_maximum(own, others):
    """M 5.1, p. 55: v**S is the distribution of the maximum of S values; the others have to be smaller, not larger."""
    values = 5
    drawn = list(product(range(1, values + 1), repeat=own))
    for value in range(1, values + 1):
        up_to = Fraction(value, values) ** own
        assert Fraction(sum(max(each) <= value for each in drawn), len(drawn)) == up_to
        least = Fraction(sum(min(each) <= value for each in drawn), len(drawn))
        assert least == 1 - (1 - Fraction(value, values)) ** own and (own == 1 or value == values or least != up_to)
    smaller = own * Fraction(1, own + others)  # the integral of v**(own - 1) v**others
    larger = own * sum(Fraction((-1) ** i * math.comb(others, i), own + i) for i in range(others + 1))
    assert smaller == Fraction(own, own + others)
    assert (larger == smaller) == (own == 1)


@pytest.mark.parametrize(("m", "mean"), [(16, 0.60), (64, 0.58)], ids=str)
def test_e29_the_mean_gap_between_cuts(m, mean):
    """M 6.2: a cut at the rightmost least of the next m values, and so on, are 0.60 m and 0.58 m apart, not m/2."""
    streams, dropped, counted = 20_000, 10, 10
    generator, places, gaps = np.random.default_rng(1), np.arange(m), np.zeros(streams)
    window = generator.random((streams, m), np.float32)
    for number in range(dropped + counted):
        cut = m - window[:, ::-1].argmin(axis=1)  # values up to the cut
        gaps += cut if number >= dropped else 0
        follow = places + cut[:, None]
        known = np.take_along_axis(window, np.minimum(follow, m - 1), axis=1)
        window = np.where(follow < m, known, generator.random((streams, m), np.float32))
    share, room = gaps.mean() / counted / m, papers.hoeffding(streams)
    assert abs(share - mean) < room < share - (m + 1) / (2 * m)


def test_e30_intervals_of_fingerprints():
    """G 4.2, figure 2b: 128 intervals of equal size are the leading seven bits; the remainder by 128 is the last."""

    none = np.empty(0)

    def fullest(words):
        return distribution(Corpus("made", [], none, none, none, none), words, "made")[1]["fullest"]

    of_one_interval = np.arange(BUCKETS, dtype=np.uint64)
    beginnings = of_one_interval << np.uint64(64 - 7)
    for words, remainders, in_fullest in ((of_one_interval, BUCKETS, BUCKETS), (beginnings, 1, 1)):
        assert len(np.unique(words % np.uint64(BUCKETS))) == remainders
        assert fullest(words) == in_fullest
