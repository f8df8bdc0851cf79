"""Variances, sizes and accidents of sketches: recomputed over the rationals, and by simulation with fixed seeds.

Means of simulated values are within Hoeffding's or Bernstein's bound of what they should be, with failure 1e-9.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import neardup_gpu as nd
from neardup_gpu import papers, theory
from neardup_gpu.errors import ParameterError


class TestVariances:
    def test_printed(self):
        """80 shared shingles and 10 of each, s = 50; and 800, 100, 100, m = 16."""
        assert papers.bottomk_variance(0.8, 50, 100) == pytest.approx(0.001616, abs=5e-7)
        assert papers.modm_variance(0.8, 16, 1000) == pytest.approx(0.002442, abs=1e-6)
        ratios = [papers.bbit_variance(0.8, 9, k) / papers.sample_variance(0.8, 9) for k in (1, 2, 4, 8)]
        assert ratios == pytest.approx([2.25, 1.4167, 1.0833, 1.0049], abs=5e-5)
        assert papers.sample_variance(0.8, 140) == pytest.approx(papers.standard_error(0.8, 140) ** 2)

    @pytest.mark.parametrize(("common", "union", "s"), list(itertools.product((0, 3, 7, 9), (9,), (1, 4, 8, 9, 12))))
    def test_bottomk_over_all_samples(self, common, union, s):
        """Every choice of s of the union's elements is equally likely."""
        shares = [
            Fraction(sum(i < common for i in some), len(some))
            for some in itertools.combinations(range(union), min(s, union))
        ]
        mean = sum(shares) / len(shares)
        variance = sum((share - mean) ** 2 for share in shares) / len(shares)
        assert mean == Fraction(common, union)
        assert papers.bottomk_variance(common / union, s, union) == pytest.approx(float(variance), abs=1e-15)

    @pytest.mark.parametrize(("common", "size"), [(2, 5), (7, 9), (0, 4), (3, 3), (1, 1)])
    @pytest.mark.parametrize("modulus", [1, 2, 16])
    def test_modm_over_all_samples(self, common, size, modulus):
        """Each element is sampled by itself, with 1/m; given that one is, the share has this mean and variance."""
        p, total, mean, square = Fraction(1, modulus), Fraction(0), Fraction(0), Fraction(0)
        for sampled in itertools.product((0, 1), repeat=size):
            if not any(sampled):
                continue
            chance = p ** sum(sampled) * (1 - p) ** (size - sum(sampled))
            share = Fraction(sum(sampled[:common]), sum(sampled))
            total, mean, square = total + chance, mean + chance * share, square + chance * share**2
        mean, square = mean / total, square / total
        assert mean == Fraction(common, size)
        assert total == 1 - (1 - p) ** size
        assert papers.modm_variance(common / size, modulus, size) == pytest.approx(float(square - mean**2), abs=1e-14)

    def test_modm_of_many_elements_is_near_that_of_independent_ones(self):
        """N / m = 10,000 are sampled: (1 - 1/m) / (N / m), but for a share of 1e-4 or so."""
        wanted = 0.16 / 10_000 * (1 - 1 / 100)
        assert papers.modm_variance(0.2, 100, 10**6) == pytest.approx(wanted, rel=3e-4)

    @settings(deadline=None)
    @given(st.floats(0, 1), st.integers(1, 10**6), st.integers(1, 64))
    def test_bits_from_their_own_coin(self, x, samples, bits):
        """Q is the mean of coins of J + (1 - J) 2**-k; the estimate scales it by 2**k / (2**k - 1)."""
        j, agree = Fraction(x), Fraction(x) + (1 - Fraction(x)) / 2**bits
        wanted = agree * (1 - agree) / samples * Fraction(2**bits, 2**bits - 1) ** 2
        assert papers.bbit_variance(x, samples, bits) == pytest.approx(float(wanted), rel=1e-9, abs=1e-300)
        if x > 0:
            printed = j * (1 - j) / samples * (1 + 1 / ((2**bits - 1) * j))
            assert papers.bbit_variance(x, samples, bits) == pytest.approx(float(printed), rel=1e-9, abs=1e-300)

    @pytest.mark.parametrize("s", [20, 60, 120])
    def test_bottomk_simulated(self, s):
        """The method's own sketches of 20,000 pairs of 100 shingles each, 80 of them shared; bound by Bernstein."""
        trials, common, union = 20_000, 80, 120
        elements = np.random.default_rng(7).integers(0, 2**64, (trials, union), np.uint64)
        values = np.stack([elements[:, :100], elements[:, 20:]], axis=1).reshape(-1)
        rows, method = nd.stages.Ragged(values, np.arange(0, len(values) + 1, 100)), nd.BottomK(s=s, leading=1)
        left = np.arange(0, 2 * trials, 2)
        estimates = method.estimate(
            method.sketch(rows, seed=3, backend="cpu"), nd.stages.Pairs(left, left + 1)
        ).estimate
        truth, squares = common / union, (estimates - common / union) ** 2
        assert abs(estimates.mean() - truth) <= papers.hoeffding(trials)
        variance, size = papers.bottomk_variance(truth, s, union), min(s, union)
        ways = [math.comb(common, i) * math.comb(union - common, size - i) for i in range(size + 1)]
        fourth = sum(Fraction(way, sum(ways)) * (Fraction(i, size) - Fraction(2, 3)) ** 4 for i, way in enumerate(ways))
        room = bernstein(trials, float(fourth), 4 / 9)
        assert abs(squares.mean() - variance) <= room
        if s == 60:  # far from the binomial's, which has no (U - s) / (U - 1)
            assert abs(truth * (1 - truth) / s - variance) > 2 * room

    def test_modm_simulated(self):
        """1,000 elements, 800 of them shared, m = 16, 20,000 trials."""
        generator, trials = np.random.default_rng(8), 20_000
        shared, others = generator.binomial(800, 1 / 16, trials), generator.binomial(200, 1 / 16, trials)
        squares = (shared / (shared + others) - 0.8) ** 2
        variance = papers.modm_variance(0.8, 16, 1000)
        assert abs(squares.mean() - variance) <= bernstein(trials, variance * 0.64, 0.64)


def bernstein(trials, square, most, failure=1e-9):
    """Deviation of a mean of values in [0, most], whose squares have that mean, of its expectation (Bernstein)."""
    log = math.log(2 / failure)
    return math.sqrt(2 * square * log / trials) + 2 * most * log / (3 * trials)


class TestSizes:
    @pytest.mark.parametrize("error", [0.02, 0.05, 0.1, 0.3])
    @pytest.mark.parametrize("resemblance", [0.0, 0.1, 0.5, 0.8, 0.95, 1.0])
    def test_samples_suffice(self, error, resemblance):
        """The exact chance of a larger error is below the failure, for any resemblance and for this one."""
        few, enough = papers.samples_for(error, 0.01, resemblance), papers.samples_for(error, 0.01)
        assert 1 <= few <= enough == math.ceil(math.log(200) / (2 * error**2))
        for samples in (few, enough):
            assert papers.within_probability(samples, resemblance, error) >= 0.99
            assert papers.hoeffding(enough, 0.01) <= error

    def test_samples_are_fewest_by_the_bound(self):
        for resemblance, error in ((0.8, 0.1), (0.5, 0.05), (0.95, 0.1)):
            number = papers.samples_for(error, 1e-3, resemblance)

            def bound(t, resemblance=resemblance, error=error):
                found = 0.0
                for side in (resemblance + error, resemblance - error):
                    if side <= 1:
                        up, down = side * math.log(side / resemblance), 0.0
                        if side < 1:
                            down = (1 - side) * math.log((1 - side) / (1 - resemblance))
                        found += math.exp(-t * (up + down))
                return found

            assert bound(number) <= 1e-3 < bound(number - 1)

    def test_insertions(self):
        assert papers.expected_insertions(1000, 100) == pytest.approx(329.81, abs=5e-3)
        assert [papers.expected_insertions(n, 100) for n in (0, 7, 100)] == [0, 7, 100]
        for n, s in ((101, 100), (255, 3), (256, 3), (300, 299), (5000, 1), (100_000, 400)):
            exact = s + s * sum(Fraction(1, i) for i in range(s + 1, min(n, 600) + 1))
            wanted = float(exact) + s * math.fsum(1 / i for i in range(max(s, 600) + 1, n + 1))
            assert papers.expected_insertions(n, s) == pytest.approx(wanted, rel=1e-12)

    def test_insertions_counted(self):
        """Elements in random order, 400 times; at most n - s come after the first s: Hoeffding, failure 1e-9."""
        generator, trials, n, s, total = np.random.default_rng(3), 400, 300, 20, 0
        for _ in range(trials):
            smallest: list[float] = []
            for value in generator.random(n):
                if len(smallest) < s or value < smallest[-1]:
                    smallest = sorted([*smallest, value])[:s]
                    total += 1
        assert abs(total / trials - papers.expected_insertions(n, s)) <= (n - s) * papers.hoeffding(trials)


class TestAccidents:
    def test_rabin(self):
        """B97, section 4.1: shingles of 400 bits, l = 40; and 64."""
        assert papers.rabin_bound(400, 40) == pytest.approx(7.276e-10, rel=1e-4)
        assert papers.rabin_bound(400, 64) == pytest.approx(4.337e-17, rel=1e-4)
        assert papers.rabin_bound(10**9, 8) == 1

    def test_rabin_bounds_what_irreducible_polynomials_do(self):
        """All 30 of degree 8, and differences of 24 bits: at most three of them divide one."""

        def rest(value, modulus):
            while value.bit_length() > 8:
                value ^= modulus << (value.bit_length() - 9)
            return value

        irreducible = [p for p in range(256, 512) if all(divides(p, q) for q in range(2, 32))]
        assert len(irreducible) == 30
        triple = 1
        for p in irreducible[:3]:
            triple = product(triple, p)
        worst = sum(rest(triple, p) == 0 for p in irreducible)
        assert worst == 3 and triple.bit_length() == 25
        assert worst / 30 <= papers.rabin_bound(25, 8)

    def test_pairs(self):
        exact = Fraction(math.comb(10**9, 2) * 15, 2**64)
        assert theory.accidental_pairs(10**9, 6, 2) == pytest.approx(float(exact), rel=1e-12)
        assert theory.accidental_pairs(1, 6, 2) == theory.accidental_pairs(0, 6, 2) == 0
        assert theory.accidental_pairs(100, 6, 1, 16) == 4950 * 6 / 2**16

    @pytest.mark.parametrize("bits", [1, 4, 16, 64])
    @pytest.mark.parametrize("x", [0.0, 0.3, 0.9, 1.0])
    def test_inside_the_filter_curve(self, bits, x):
        p = Fraction(x) ** 5
        p += (1 - p) / 2**bits
        exact = sum(math.comb(6, i) * p**i * (1 - p) ** (6 - i) for i in (4, 5, 6))
        assert theory.pass_probability(x, 6, 5, 4, bits=bits) == pytest.approx(float(exact), rel=1e-12, abs=1e-300)
        missed = theory.miss_probability(x, 6, 5, 4, bits=bits)
        assert missed == pytest.approx(float(1 - exact), rel=1e-12, abs=1e-300)

    def test_pairs_of_short_keys_are_warned_of(self, tmp_path, caplog):
        """A key of one feature of 16 bits: among 300 documents, 300 * 299 / 2 * 6 / 2**16 = 4.1 pairs."""
        texts = [f"{i} a{i} b{i} c{i} d{i} e{i}" for i in range(300)]
        for bits, said in ((16, True), (64, False)):
            method = nd.MinHash(filter=(6, 5, 1), supershingle_bits=bits)
            nd.sketches.sketch({"text": texts}, method=method, output=tmp_path / f"{bits}.parquet")
            nd.sketches.pairs(tmp_path / f"{bits}.parquet", threshold=0.5)
            assert not caplog.records
            found = nd.sketches.pairs(tmp_path / f"{bits}.parquet")
            assert [record.getMessage() for record in caplog.records] == [
                "about 4 of the pairs are expected to agree by accident of fingerprints alone; give a threshold"
            ] * said
            assert (len(found) > 0) == said
            caplog.clear()

    def test_accidents_of_parts_are_added(self):
        keys = np.arange(600, dtype=np.uint64).reshape(100, 6)
        method = nd.MinHash(filter=(6, 5, 4), supershingle_bits=16)
        whole = method.collide(keys, backend="cpu").accidents
        parts = [method.collide(keys, tasks=part, backend="cpu").accidents for part in (range(7), range(7, 15))]
        assert whole == pytest.approx(sum(parts)) == pytest.approx(theory.accidental_pairs(100, 6, 4, 64))


def divides(p, q):
    """Whether a polynomial q over GF(2), of degree 1 to 4, leaves a remainder of p."""
    while p.bit_length() >= q.bit_length():
        p ^= q << (p.bit_length() - q.bit_length())
    return p != 0


def product(a, b):
    """a b over GF(2)."""
    found = 0
    while b:
        found ^= a if b & 1 else 0
        a, b = a << 1, b >> 1
    return found


def test_numbers_that_a_float_does_not_hold():
    """C(2**64, 2) C(1000, 500) / 2**64 is above 2**1057; and 2 / failure is infinite."""
    assert theory.accidental_pairs(2**64, 1000, 500) == math.inf
    failure = 5e-324  # 2**-1074
    assert papers.samples_for(0.1, failure) == math.ceil(1075 * math.log(2) / 0.02)
    assert papers.samples_for(1e-6) == math.ceil(math.log(200) / 2e-12)


@pytest.mark.parametrize(
    "call",
    [
        lambda: papers.sample_variance(1.1, 5),
        lambda: papers.sample_variance(0.5, 0),
        lambda: papers.bottomk_variance(0.5, 0, 5),
        lambda: papers.bottomk_variance(0.5, 5, 0),
        lambda: papers.modm_variance(0.5, 0, 5),
        lambda: papers.modm_variance(0.5, 2, 10**7 + 1),
        lambda: papers.bbit_variance(0.5, 5, 0),
        lambda: papers.samples_for(0),
        lambda: papers.samples_for(1e-300),
        lambda: papers.samples_for(9.9e-7, 0.1, 0.5),
        lambda: papers.samples_for(0.1, 1),
        lambda: papers.samples_for(0.1, 0.1, math.nan),
        lambda: papers.expected_insertions(-1, 5),
        lambda: papers.expected_insertions(5, 0),
        lambda: papers.fingerprint_bits(0),
        lambda: theory.accidental_pairs(5, 2, 3),
        lambda: papers.rabin_bound(-1, 64),
        lambda: theory.pass_probability(0.5, 6, 14, 2, bits=0),
    ],
)
def test_out_of_range(call):
    with pytest.raises(ParameterError):
        call()
