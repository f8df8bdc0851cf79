"""Samples of weighted sets: logarithms, darts, resemblance, and what samples agree in, against the definitions.

Shares of equal samples are means of independent trials, so they lie within Hoeffding's bound of the resemblance but
with a probability of 1e-9 in each test; seeds are fixed.
"""

import math
import random
from decimal import Decimal, localcontext
from fractions import Fraction

import ioffe
import numpy as np
import pytest

from neardup_gpu.kernels import dart, weighted_resemblance
from neardup_gpu.kernels._logarithm import log2, table

SAMPLERS = pytest.mark.parametrize("sampler", [ioffe, dart], ids=["ioffe", "dart"])
SAMPLES = 100_000
TOLERANCE = math.sqrt(math.log(2 / 1e-9) / (2 * SAMPLES))
"""Hoeffding 1963: no mean of so many trials is farther off, with a probability of 1 - 1e-9. It is 0.0104."""

A, B = (10, 25, 3, 40), (7, 10, 15, 42)
"""{1, 2.5, 0.3, 4} and {1.5, 1, 4.2, 0.7} so paired that their resemblance is 0.6521739 (6 / 9.2)."""


def resemblance(a, b):
    """From the definition, of dicts."""
    features = {*a, *b}
    low, high = (sum(choose(a.get(f, 0), b.get(f, 0)) for f in features) for choose in (min, max))
    return Fraction(low, high)


def expanded(weights):
    """The first rung: a feature of weight w is the w elements (feature, 1) to (feature, w)."""
    return {(f, n) for f, weight in weights.items() for n in range(1, weight + 1)}


def sketches(sampler, *documents, samples=SAMPLES, salt=5):
    features = np.array([f for document in documents for f in document], np.uint64)
    weights = np.array([w for document in documents for w in document.values()], np.int64)
    offsets = np.cumsum([0, *map(len, documents)], dtype=np.int64)
    return sampler.cpu(features, offsets, weights, np.uint64(salt), samples)


def share(sampler, a, b, **options):
    one, other = sketches(sampler, a, b, **options)
    return float((one == other).mean())


def named(weights, scale=1):
    return {1000 + 77 * i: scale * weight for i, weight in enumerate(weights)}


def drawn(seed, features=30, most=9):
    """Two weighted sets of few features, some of which both have."""
    draw = random.Random(seed)
    names = [draw.getrandbits(64) for _ in range(features)]
    return [{f: draw.randint(1, most) for f in names if draw.random() < 0.8} for _ in range(2)]


class TestLogarithms:
    def test_the_table(self):
        with localcontext() as context:
            context.prec = 40
            two = Decimal(2).ln()
            exact = [(Decimal(4096 + i) / 4096).ln() / two * 2**32 for i in range(4097)]
        assert table().tolist() == [math.floor(each) for each in exact]

    def test_never_above_and_hardly_below(self):
        draw = random.Random(3)
        values = [draw.getrandbits(bits) | 1 << bits - 1 for bits in range(1, 65) for _ in range(30)]
        with localcontext() as context:
            context.prec = 40
            two = Decimal(2).ln()
            missing = [Decimal(x).ln() / two * 2**32 - int(log2(np.uint64(x), table())) for x in values]
        assert min(missing) >= 0
        assert 30 < max(missing) < 50

    def test_never_decreases(self):
        draw = random.Random(4)
        values = sorted({1, 2, 2**63, 2**64 - 1, *(draw.getrandbits(draw.randrange(1, 65)) or 1 for _ in range(3000))})
        values = sorted({*values, *(x + 1 for x in values if x < 2**64 - 1)})
        found = [int(log2(np.uint64(x), table())) for x in values]
        assert found == sorted(found)
        assert int(log2(np.uint64(2**32 - 1), table())) < 32 << 32  # so that no uniform has a logarithm of 0


class TestDarts:
    def test_poisson(self):
        with localcontext() as context:
            context.prec = 50
            least = Decimal(-1).exp()
            sums = [sum(least / math.factorial(i) for i in range(q + 1)) * 2**64 for q in range(21)]
        assert dart.poisson().tolist() == [math.floor(each) for each in sums]

    @pytest.mark.parametrize("samples", [1, 2, 3, 128, 140, 100_000])
    def test_as_many_as_are_expected_to_do(self, samples):
        real = samples * math.log(samples) + 2 * samples
        assert real * (1 - 1e-8) - 1 < dart.first_darts(samples) <= real

    @pytest.mark.parametrize("expected", [1, 50, 40_000])
    def test_how_far_they_are_looked_for_changes_nothing(self, expected):
        rows = [*drawn(8), named((3, 2**30, 700)), {5: 1}]
        found = sketches(dart, *rows, samples=200)
        features = np.array([f for row in rows for f in row], np.uint64)
        weights = np.array([w for row in rows for w in row.values()], np.int64)
        offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        again = np.empty_like(found)
        bounds = np.array([0, len(rows)])
        salt, first = np.uint64(5), np.uint64(expected)
        dart._throw_rows(bounds, features, offsets, weights, salt, first, dart.poisson(), again)
        assert (again == found).all()

    def test_where_ranks_are_coarse(self):
        """Of the heaviest documents a few darts have each rank; some samples get none at the least ones."""
        heavy = dict.fromkeys(range(50), 2**48 // 50)
        found = sketches(dart, heavy, dict.fromkeys(range(50), 2**45 // 50), samples=3000)
        assert (found != dart.EMPTY).all()
        for samples in range(1, 40):
            assert (sketches(dart, heavy, samples=samples) != dart.EMPTY).all()


class TestResemblance:
    def test_worked_example(self):
        assert resemblance(named(A), named(B)) == Fraction(60, 92)

    def test_expansion(self):
        """It is the resemblance of the expansions, which are sets."""
        for seed in range(50):
            a, b = drawn(seed)
            one, other = expanded(a), expanded(b)
            words = [np.array([*sorted(d), *(d[f] for f in sorted(d))], np.uint64) for d in (a, b)]
            offsets = np.array([0, len(words[0]), len(words[0]) + len(words[1])])
            sums = weighted_resemblance.cpu(np.concatenate(words), offsets, np.array([0, 0]), np.array([1, 0]))
            assert (sums[0][0], sums[1][0]) == (len(one & other), len(one | other))
            assert sums[0][1] == sums[1][1] == len(one)
            assert Fraction(int(sums[0][0]), int(sums[1][0])) == resemblance(a, b)

    def test_weights_near_the_greatest(self):
        rows = np.array([1, 2, 2**48 - 5, 5, 2, 9, 2**47, 2**47], np.uint64)
        found = weighted_resemblance.cpu(rows, np.array([0, 4, 8]), np.array([0]), np.array([1]))
        assert [int(each[0]) for each in found] == [5, 2**48 - 5 + 2**47 + 2**47]


@SAMPLERS
class TestSamples:
    @pytest.mark.parametrize("scale", [1, 256, 2**33])
    def test_worked_example(self, sampler, scale):
        assert abs(share(sampler, named(A, scale), named(B, scale)) - 60 / 92) < TOLERANCE

    @pytest.mark.parametrize("seed", range(4))
    def test_small_weights_meet_as_their_expansions_do(self, sampler, seed):
        a, b = drawn(seed)
        one, other = expanded(a), expanded(b)
        expected = len(one & other) / len(one | other)
        assert 0.2 < expected < 0.9
        assert abs(share(sampler, a, b) - expected) < TOLERANCE

    def test_a_feature_is_drawn_in_proportion_to_its_weight(self, sampler):
        """Where it is, its sample is the one that it has alone."""
        whole = named((1, 300, 2**20, 77_000, 5000))
        found = sketches(sampler, whole, *({f: weight} for f, weight in whole.items()))
        held = found[1:] == found[0]
        assert (held.sum(axis=0) == 1).all()
        for shares, weight in zip(held.mean(axis=1), whole.values(), strict=True):
            assert abs(shares - weight / sum(whole.values())) < TOLERANCE

    def test_a_sample_stays_where_weights_grow_elsewhere(self, sampler):
        """Consistency: of three sets, each within the next, what the first and the last share the second has, too."""
        small = named((256, 1000, 300, 90_000))
        middle = {f: 2 * weight for f, weight in small.items()} | {3: 5000}
        large = {f: 3 * weight for f, weight in middle.items()} | {4: 10**6}
        one, two, three = sketches(sampler, small, middle, large)
        assert 0 < (one == three).sum() < (one == two).sum()
        assert (two[one == three] == one[one == three]).all()

    def test_weight_0_is_absence(self, sampler):
        some = named(A)
        found = sketches(sampler, some, {**some, 5: 0, 6: 0}, {5: 0}, {}, samples=500)
        assert (found[0] == found[1]).all()
        assert (found[2:] == sampler.EMPTY).all()
        assert (found[0] != sampler.EMPTY).all()

    def test_one_giant_weight(self, sampler):
        giant = {9: 2**48 - 300, **named((100, 200))}
        half = {9: 2**47, **named((100, 200))}
        assert abs(share(sampler, giant, half) - float(resemblance(giant, half))) < TOLERANCE
        one, alone = sketches(sampler, giant, {9: 2**48 - 300}, samples=2000)
        assert (one == alone).all()  # all but with a probability of 2e-9

    def test_the_order_of_features_does_not_matter(self, sampler):
        a, _ = drawn(3)
        one, other = sketches(sampler, a, dict(reversed(a.items())), samples=2000)
        assert (one == other).all()

    def test_other_features_and_other_salts_share_nothing(self, sampler):
        a, b = named(A), {f + 1: weight for f, weight in named(A).items()}
        assert share(sampler, a, b) == 0
        assert not (sketches(sampler, a) == sketches(sampler, a, salt=6)).any()


def test_both_samplers_agree_in_law():
    """They share no bits, but each pair meets as often by either, within both bounds together."""
    a, b = drawn(11, most=2000)
    assert abs(share(ioffe, a, b) - share(dart, a, b)) < 2 * TOLERANCE


def test_the_misprints_of_manasse():
    """Erratum E9: the ceiling for the floor, or q = 1 / vv' for r = vv', in real numbers and by other randomness.

    The floor with r meets with J = 0.652; the ceiling with about 0.71, the other base with about 0.45: both are farther
    off than Hoeffding's bound at 1e-9. Whichever feature wins, without its t, would meet with about 0.69.
    """
    random = np.random.default_rng(7)
    u, u2, v, v2, b = random.random((5, SAMPLES, len(A)))
    r, c = -np.log(v * v2), -np.log(u * u2)

    def meets(rounded, exponent):
        winners = []
        for weights in (A, B):
            t = rounded(np.log(np.array(weights) / 256) / r + b)
            least = np.argmin(c / (np.exp(r * (t - b)) * np.exp(exponent)), axis=1)
            winners.append((least, t[np.arange(SAMPLES), least]))
        (one, t), (other, t2) = winners
        return ((one == other) & (t == t2)).mean(), (one == other).mean()

    right, without_t = meets(np.floor, r)
    assert abs(right - 60 / 92) < TOLERANCE
    assert meets(np.ceil, r)[0] > 60 / 92 + 4 * TOLERANCE
    assert meets(np.floor, -r)[0] < 60 / 92 - 4 * TOLERANCE
    assert without_t > 60 / 92 + 2 * TOLERANCE  # "0-bit" samples, which are not offered
