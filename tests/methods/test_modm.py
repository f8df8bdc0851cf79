"""Sketches of one permutation: estimates against theory and sets, mod-m, merging, groups."""

import math
import random

import numpy as np
import pytest

from neardup_gpu import BottomK, MinHash, ModM, Recipe, SimHash, dedup, papers
from neardup_gpu.errors import ParameterError
from neardup_gpu.kernels import bottomk, distinct, groups, shared
from neardup_gpu.sketches import merge
from neardup_gpu.stages import Pairs, Ragged

FAILURE = 1e-9
"""Probability that a statistical test of this file fails though all is right."""


def bernstein(variance, width, trials):
    """Deviation of a mean of independent values within `width` of their mean, exceeded with `FAILURE` at most.

    Bernstein's inequality, solved for the deviation: sqrt(2 v L / n) + 2 w L / (3 n) is no smaller.
    """
    log = math.log(2 / FAILURE)
    return math.sqrt(2 * variance * log / trials) + 2 * width * log / (3 * trials)


def overlapping(shared_size, own, number, seed):
    """Pairs of random sets: rows of A, and rows of B, which have `shared_size` elements in common with A."""
    size = shared_size + own
    values = np.random.default_rng(seed).integers(0, 2**64, (number, shared_size + 2 * own), np.uint64)
    a, b = np.ascontiguousarray(values[:, :size]), np.ascontiguousarray(values[:, own:])
    return Ragged(np.append(a, b), np.arange(2 * number + 1) * size)


def estimates(method, shared_size, own, number, seed, found="estimate_rows"):
    rows = overlapping(shared_size, own, number, seed)
    pairs = np.arange(number), number + np.arange(number)
    return getattr(method, found)(method.sketch(rows), *pairs)


def hypergeometric(total, good, drawn):
    """(possible numbers of good ones among those drawn, probability of each)"""
    low, high = max(0, drawn - (total - good)), min(good, drawn)
    ways = [math.lgamma(n + 1) for n in range(total + 1)]

    def choose(n, k):
        return ways[n] - ways[k] - ways[n - k]

    number = np.arange(low, high + 1)
    logs = [choose(good, k) + choose(total - good, drawn - k) - choose(total, drawn) for k in number.tolist()]
    return number, np.exp(logs)


def moments(total, good, sizes):
    """(variance, fourth central moment) of the share of good ones in samples of random size, {size: probability}."""
    mean, second, fourth = good / total, 0.0, 0.0
    for drawn, weight in sizes.items():
        number, chance = hypergeometric(total, good, drawn)
        second += weight * float((chance * (number / drawn - mean) ** 2).sum())
        fourth += weight * float((chance * (number / drawn - mean) ** 4).sum())
    return second, fourth


def sizes_of_sketches(total, m):
    """The distribution of the number of elements of a sketch that has any: binomial."""
    top = math.lgamma(total + 1)
    chances = {
        n: math.exp(
            top
            - math.lgamma(n + 1)
            - math.lgamma(total - n + 1)
            + n * math.log(1 / m)
            + (total - n) * math.log1p(-1 / m)
        )
        for n in range(1, total + 1)
    }
    return {n: chance / (1 - (1 - 1 / m) ** total) for n, chance in chances.items() if chance > 1e-14}


class TestVariance:
    """Means and variances over random sets, within Bernstein's bound of what theory says."""

    def test_mod_m(self):
        """800 shared, 100 and 100 of their own, m = 16: p (1 - p) E[(N - K) / (K (N - 1))] = 0.00244."""
        variance, fourth = moments(1000, 800, sizes_of_sketches(1000, 16))
        assert 0.002441 < variance < 0.002443
        found = np.concatenate([estimates(ModM(m=16), 800, 100, 4000, seed).estimate for seed in range(10)])
        assert abs(found.mean() - 0.8) < bernstein(variance, 0.8, len(found)) < 0.003
        assert abs(((found - 0.8) ** 2).mean() - variance) < bernstein(fourth, 0.64, len(found)) < 0.2 * variance

    def test_bottom_k(self):
        """80 shared, 10 and 10 of their own, s = 50: J (1 - J) / s (U - s) / (U - 1), not J (1 - J) / s."""
        variance, fourth = moments(100, 80, {50: 1.0})
        assert math.isclose(variance, 0.8 * 0.2 / 50 * (100 - 50) / (100 - 1), rel_tol=1e-9)
        found = estimates(BottomK(s=50), 80, 10, 40000, 1).estimate
        assert abs(found.mean() - 0.8) < bernstein(variance, 0.8, len(found)) < 0.003
        assert abs(((found - 0.8) ** 2).mean() - variance) < bernstein(fourth, 0.64, len(found)) < 0.25 * variance

    def test_what_some_take_for_the_estimate_of_bottom_k(self):
        """|M(A) n M(B)| / s is biased: at 0.8 its mean is above that by more than chance allows."""
        rows = overlapping(800, 100, 4000, 2)
        sketches = BottomK(s=100).sketch(rows)
        naive = [len(np.intersect1d(*pair)) / 100 for pair in zip(sketches[:4000], sketches[4000:], strict=True)]
        assert np.mean(naive) - papers.hoeffding(4000, FAILURE) > 0.8
        assert abs(estimates(BottomK(s=100), 800, 100, 4000, 2).estimate.mean() - 0.8) < papers.hoeffding(4000, FAILURE)

    def test_containment(self):
        """By mod-m and by bottom-k, without bias where the denominator is not 0: 180 of 200 shingles, in 600."""
        values = np.random.default_rng(5).integers(0, 2**64, (20000, 620), np.uint64)
        rows = Ragged(
            np.append(values[:, :200], values[:, 20:]),
            np.append(np.arange(20001) * 200, 4000000 + np.arange(1, 20001) * 600),
        )
        for method in (ModM(m=16), BottomK(s=50), ModM(m=4, s=40)):
            found = method.sampled(method.sketch(rows), np.arange(20000), 20000 + np.arange(20000))
            there = found.left > 0
            share = found.both[there] / found.left[there]
            assert there.mean() > 0.99
            assert abs(share.mean() - 0.9) < papers.hoeffding(int(there.sum()), FAILURE) < 0.03

    def test_empty_sketches(self):
        """Of 20 shingles, m = 16, none is an element with (1 - 1/16)**20 = 27.5%: then there is no estimate."""
        empty = (1 - 1 / 16) ** 20
        assert round(empty, 3) == 0.275
        rows = overlapping(20, 0, 40000, 3)
        sketches = ModM(m=16).sketch(rows)
        assert abs((sketches.sizes == 0).mean() - empty) < papers.hoeffding(len(sketches), FAILURE)
        found = ModM(m=16).estimate(sketches, Pairs(np.arange(40000), 40000 + np.arange(40000)))
        none = sketches.sizes[:40000] == 0
        assert np.isnan(found.estimate[none]).all() and (found.estimate[~none] == 1).all()
        assert (found.low[none] == 0).all() and (found.high[none] == 1).all()

    @pytest.mark.parametrize("method", [ModM(m=8), BottomK(s=64), ModM(m=2, s=64)])
    def test_intervals_hold(self, method):
        """Each misses with 1% at most: the share of misses exceeds that by more than the bound with 1e-9 at most."""
        found = estimates(method, 600, 200, 2000, 7)
        missed = (found.low > 0.6) | (found.high < 0.6)
        assert missed.mean() < 0.01 + bernstein(0.01, 1, 2000)
        assert ((found.low <= found.estimate) & (found.estimate <= found.high)).all()

    def test_union_sizes(self):
        """(s - 1) 2**64 / y of 20,000 sketches of 1,000 elements: variance below n**2 / (s - 2), Chebyshev's bound."""
        rows = overlapping(1000, 0, 10000, 9)
        method = BottomK(s=100)
        found = method.union_sizes(method.sketch(rows)[:10000]) / 1000
        # Independent, of mean 1; none is above 3 but with e**-100, as 300 expected elements would be below 100.
        assert abs(np.minimum(found, 3).mean() - 1) < bernstein(1 / 98, 3, 10000) < 0.02
        few = BottomK(s=10).sketch(Ragged.from_rows([[1, 2, 3], []], np.uint64))
        assert BottomK(s=10).union_sizes(few).tolist() == [3, 0]
        assert np.isnan(BottomK(s=1).union_sizes(np.array([[5]], np.uint64)))[0]


class TestModulus:
    def test_modulus_1_is_exact(self):
        found = estimates(ModM(m=1), 60, 20, 50, 2)
        assert (found.estimate == 0.6).all() and (found.low == 0.6).all() and (found.high == 0.6).all()

    @pytest.mark.parametrize(("fine", "coarse"), [(1, 2), (3, 5), (16, 17), (7, 1000)])
    def test_coarsening_is_sketching_coarser(self, fine, coarse):
        """L_m is in L_m' for every m >= m', also where m' does not divide m."""
        rows = overlapping(500, 100, 10, 4)
        one, other = ModM(m=fine).sketch(rows), ModM(m=coarse).sketch(rows)
        for row in range(len(rows)):
            assert one[row][one[row] <= np.uint64((2**64 - 1) // coarse)].tolist() == other[row].tolist()

    def test_the_smallest_of_them(self):
        """MIN_s of MOD_m."""
        rows = overlapping(300, 100, 5, 4)
        every, some = ModM(m=2).sketch(rows), ModM(m=2, s=20).sketch(rows)
        assert all(every[row][:20].tolist() == some[row].tolist() for row in range(10))
        assert estimates(ModM(m=2, s=20), 5, 5, 1, 3).estimate.shape == (1,)

    def test_adaptive(self):
        """Moduli 2**i for 50 * 2**i <= n < 100 * 2**i, and else 1; so 50 to 100 elements are expected (erratum 3)."""
        sizes = [1, 49, 50, 99, 100, 199, 200, 399, 400, 6399, 6400]
        rows = Ragged.from_rows(
            [np.tile(np.arange(n, dtype=np.uint64) + np.uint64(7 * n), 2) for n in sizes], np.uint64
        )
        sketches = ModM(adaptive=True).sketch(rows)
        moduli = [int(sketches[row][0]) for row in range(len(sizes))]
        assert moduli == [1, 1, 1, 1, 2, 2, 4, 4, 8, 64, 128]
        assert all(50 <= n / m < 100 for n, m in zip(sizes[2:], moduli[2:], strict=True))
        for row, m in enumerate(moduli):
            fixed = ModM(m=m).sketch(Ragged.from_rows([rows[row]], np.uint64))
            assert sketches[row][1:].tolist() == fixed[0].tolist()

    def test_two_moduli_meet_at_the_coarser(self):
        draw = np.random.default_rng(8)
        values = draw.integers(0, 2**64, 3000, np.uint64)
        rows = Ragged.from_rows([values[:400], values, values[200:900]], np.uint64)
        method, at = ModM(adaptive=True), (np.array([0, 0, 1, 2]), np.array([1, 2, 2, 2]))
        found = method.estimate_rows(method.sketch(rows), *at).estimate
        for pair, m in enumerate((32, 8, 32, 8)):
            fixed = ModM(m=m)
            each = (at[0][[pair]], at[1][[pair]])
            assert found[pair] == fixed.estimate_rows(fixed.sketch(rows), *each).estimate[0]

    def test_recall(self):
        assert ModM().settled(0.8).expected_recall(0.8) is None
        assert ModM(m=1, leading=3).expected_recall(0.8) == 1 - 0.2**3
        assert 0.9919 < ModM(adaptive=True, leading=3).expected_recall(0.8) <= 1 - 0.2**3
        assert ModM(adaptive=True, leading=60).expected_recall(0.05) is None

    def test_a_bound_of_recall_that_holds(self):
        """The share of 4,000 pairs at resemblance 0.8, with an adaptive modulus, that share a leading element."""
        method = ModM(adaptive=True, leading=2)
        rows = overlapping(400, 50, 4000, 6)
        keys = method.keys(method.sketch(rows))
        found = method.are_candidates(keys, np.arange(4000), 4000 + np.arange(4000)).mean()
        assert found > method.expected_recall(0.8) - papers.hoeffding(4000, FAILURE)
        assert method.expected_recall(0.8) > 0.95

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"m": 0}, "m must be between 1 and"),
            ({"m": 2**32 + 1}, "m must be between 1 and"),
            ({"s": 0}, "s must be between 1 and"),
            ({"m": 2, "adaptive": True}, "m and adaptive"),
            ({"leading": 0}, "leading must be"),
            ({"s": 5, "leading": 6}, "leading must be between 1 and 5"),
        ],
    )
    def test_settings(self, settings, message):
        with pytest.raises(ParameterError, match=message):
            ModM(**settings)

    def test_recipes(self):
        recipe = Recipe(method=ModM(adaptive=True, s=70), threshold=0.6, seed=3)
        assert Recipe.from_json(recipe.to_json()) == recipe
        assert recipe.with_(m=4).method.adaptive is False
        assert Recipe(method="modm").with_(adaptive=True).method.m is None
        for method in ("modm", "bottomk"):
            with pytest.raises(
                ParameterError, match=r"filter is not a setting .* needs independent samples.*section 2"
            ):
                Recipe(method=method).with_(filter=(6, 14, 2))
        with pytest.raises(ParameterError, match="s must be >= 44"):
            Recipe(method=ModM(s=20), threshold=0.1)


class TestMerge:
    """The sketch of a union is made of the sketches of its parts."""

    @pytest.mark.parametrize(
        "method",
        [
            MinHash(k=3, s=4),
            MinHash(k=3, s=4, bits=64),
            BottomK(s=1, leading=1),
            BottomK(s=30),
            ModM(m=1),
            ModM(m=7),
            ModM(m=2, s=9),
        ],
    )
    @pytest.mark.parametrize("parts", [1, 2, 3])
    def test_of_a_union(self, method, parts):
        draw, recipe = np.random.default_rng(3), Recipe(method=method, threshold=0.99)
        sets = [[draw.integers(0, 90, n, np.uint64) for n in (0, 0, 1, 20, 60, 300)] for _ in range(parts)]
        if parts > 1:
            sets[1][0] = sets[0][5]
        unions = [np.concatenate(rows) for rows in zip(*sets, strict=True)]
        made = [recipe.method.sketch(Ragged.from_rows(rows, np.uint64)) for rows in sets]
        whole, found = recipe.method.sketch(Ragged.from_rows(unions, np.uint64)), merge(made, recipe)
        if isinstance(whole, Ragged):
            assert found.values.tolist() == whole.values.tolist() and found.offsets.tolist() == whole.offsets.tolist()
        else:
            assert found.dtype == whole.dtype and np.array_equal(found, whole)

    def test_of_some_rows_of_a_ragged(self):
        """Values before the first row and after the last are none of its own."""
        whole = Ragged.from_rows([[9], [1, 2], [3], [0]], np.uint64)
        some = Ragged(whole.values, whole.offsets[1:-1])
        found = merge([some, Ragged.from_rows([[2], [5]], np.uint64)], Recipe(method=ModM(m=4)))
        assert [row.tolist() for row in (found[0], found[1])] == [[1, 2], [3, 5]]

    def test_what_cannot_be_merged(self):
        for method, message in (
            (SimHash(), "simhash cannot merge"),
            (ModM(adaptive=True), "adaptive modulus"),
        ):
            with pytest.raises(ParameterError, match=message) as error:
                merge([np.zeros(3, np.uint64)] * 2, Recipe(method=method))
            assert "\n" not in str(error.value)
        with pytest.raises(ParameterError, match="exact cannot merge sketches"):
            merge([np.zeros(3, np.uint64)], Recipe())
        for method, wrong in (
            (ModM(m=4), [2, 1]),
            (ModM(m=4), [1, 1]),
            (ModM(m=4), [2**62]),
            (ModM(m=1, s=2), [1, 2, 3]),
        ):
            parts = [Ragged.from_rows([[0], row], np.uint64) for row in ([1], wrong)]
            with pytest.raises(ParameterError, match=r"sketches\[1\]: holds no mod-m sketches of its recipe"):
                merge(parts, Recipe(method=method, threshold=0.99))
        rows = [np.zeros((n, 200), np.uint64) for n in (2, 3)]
        with pytest.raises(ParameterError, match="of 2 and of 3 rows"):
            merge(rows, Recipe(method="bottomk"))
        with pytest.raises(ParameterError, match="sketches: none given"):
            merge([], Recipe(method="bottomk"))


class TestGroups:
    @pytest.mark.parametrize(
        ("resemblance", "share"), [(0.5, 0.505), (0.7, 0.79), (0.8, 0.91), (0.9, 0.97), (0.95, 0.995), (0.99, 1.0)]
    )
    def test_shares_that_were_measured_before(self, resemblance, share):
        """Pairs that share a group, of 1,000 shingles each and s = 100: another program's 400 pairs had these shares.

        Each of the two means is off by Hoeffding's bound at most, with half of the failure each.
        """
        shared_size = round(2000 * resemblance / (1 + resemblance))
        method = BottomK(s=100, candidates="groups", shared_groups=1)
        keys = method.keys(method.sketch(overlapping(shared_size, 1000 - shared_size, 2000, 4)))
        found = method.are_candidates(keys, np.arange(2000), 2000 + np.arange(2000)).mean()
        assert abs(found - share) < papers.hoeffding(400, FAILURE / 2) + papers.hoeffding(2000, FAILURE / 2)

    def test_a_group_ends_after_one_in_ten(self):
        """10 elements a group: of 20,000 elements a tenth end one, within Hoeffding's bound, and the last does."""
        sketches = bottomk.cpu(np.arange(20000, dtype=np.uint64), np.array([0, 20000]), np.uint64(3), 20000)
        number = (groups.cpu(sketches, np.uint64(5), 20000) != groups.EMPTY).sum()
        assert abs(number / 20000 - 0.1) < papers.hoeffding(20000, FAILURE) + 1 / 20000

    def test_one_element_changes_one_group(self):
        elements = np.sort(np.random.default_rng(1).integers(0, 2**64, 101, np.uint64))
        without = np.delete(elements, 50)
        one, other = (set(groups.cpu(row[None], np.uint64(9), 60)[0].tolist()) for row in (elements, without))
        assert len(one - other) <= 2 and len(other - one) <= 2 and len(one & other) > 3

    @pytest.mark.parametrize("backend", ["cpu", "reference"])
    def test_candidates(self, backend):
        """Those that share so many groups, or all of a document that has fewer."""
        draw = np.random.default_rng(2)
        base = draw.integers(0, 2**64, (6, 60), np.uint64)
        rows = [
            np.append(each[: 60 - 2 * i], draw.integers(0, 2**64, 2 * i, np.uint64)) for i in range(4) for each in base
        ]
        rows += [np.arange(3, dtype=np.uint64)] * 2 + [np.empty(0, np.uint64)] * 2
        method = BottomK(s=60, candidates="groups", shared_groups=3, bucket_limit=1000)
        keys = method.keys(method.sketch(Ragged.from_rows(rows, np.uint64), backend=backend), backend=backend)
        assert keys.shape == (28, method.key_columns) and (keys[:, 1:] >= keys[:, :-1]).all()
        each = [set(row.tolist()) - {2**64 - 1} for row in keys]
        expected = [
            (i, j)
            for i in range(28)
            for j in range(i + 1, 28)
            if len(each[i] & each[j]) >= max(1, min(3, len(each[i]), len(each[j])))
        ]
        found = method.collide(keys, backend=backend).pairs
        assert list(zip(found.left.tolist(), found.right.tolist(), strict=True)) == expected
        assert (24, 25) in expected and len(expected) > 5
        left, right = np.triu_indices(28, 1)
        assert method.are_candidates(keys, left, right).sum() == len(expected)

    def test_a_whole_job(self):
        draw = random.Random(3)
        words = [f"w{i}" for i in range(2000)]
        pages = [draw.choices(words, k=150) for _ in range(30)]
        texts = [" ".join(page) for page in pages] + [" ".join([*page[:-1], "other"]) for page in pages]
        found = dedup({"text": texts}, method=BottomK(candidates="groups"))
        assert found.report["recall"]["expected"] is None
        assert found.report["recall"]["sampled"]["recall"] > 0.9
        assert found.documents.column("kept").to_pylist() == [True] * 30 + [False] * 30

    def test_settings(self):
        for name, value in (("leading", 3), ("recall", 0.9)):
            with pytest.raises(ParameterError, match=f"{name} and candidates"):
                BottomK(candidates="groups", **{name: value})
        with pytest.raises(ParameterError, match="candidates 'x' is not one of leading, groups"):
            BottomK(candidates="x")
        with pytest.raises(ParameterError, match="shared_groups: only candidates by groups share some"):
            BottomK(shared_groups=3)
        assert BottomK(candidates="groups").with_(candidates="leading").shared_groups is None
        recipe = Recipe(method=BottomK(candidates="groups", shared_groups=3))
        assert Recipe.from_json(recipe.to_json()) == recipe
        assert (
            "candidates" not in Recipe(method="bottomk").describe()
        )  # as recipes were stored before there were groups
        assert Recipe(method="bottomk").with_(candidates="groups").method.leading is None


class TestKernels:
    def test_sizes_of_sets_of_zeros(self):
        rows = Ragged.from_rows([[0], [0, 0, 1], [], [5, 0, 5]], np.uint64)
        assert distinct.cpu(rows.values, rows.offsets).tolist() == [1, 2, 0, 2]

    def test_shared_elements_in_parts(self, monkeypatch):
        """However few elements are counted at a time."""
        draw = np.random.default_rng(4)
        rows = Ragged.from_rows([np.unique(draw.integers(0, 30, 12, np.uint64)) for _ in range(40)], np.uint64)
        expected = shared.reference(rows.values, rows.offsets, 2, 20, 3)
        for chunk in (1, 7, 50):
            monkeypatch.setattr(shared, "_CHUNK", chunk)
            found = shared.cpu(rows.values, rows.offsets, 2, 20, 3)
            assert all(np.array_equal(one, other) for one, other in zip(expected, found, strict=True))
        assert expected[3] > 0 and len(expected[0]) > 100

    def test_a_row_of_many_repeats_of_few_elements(self):
        """A bottom-k sketch doubles its bound until there are enough."""
        row = np.append(np.zeros(5000, np.uint64), np.arange(50, dtype=np.uint64))
        arguments = row, np.array([0, len(row)]), np.uint64(7), 40
        assert np.array_equal(bottomk.cpu(*arguments), bottomk.reference(*arguments))


def test_containment_from_resemblance():
    """Exact on integers."""
    draw = random.Random(1)
    for _ in range(200):
        a, b = ({draw.randrange(40) for _ in range(draw.randrange(1, 30))} for _ in range(2))
        resemblance = len(a & b) / len(a | b)
        c = papers.containment_from_resemblance(resemblance, len(a), len(b))
        assert math.isclose(c, len(a & b) / len(a), abs_tol=1e-12)
