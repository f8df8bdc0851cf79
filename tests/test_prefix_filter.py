"""The lemma of `exact` on sets of all kinds, its bounds against their definition, and its cost against counting."""

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest
from grids import fewer
from hypothesis import assume, example, given, settings, strategies as st

from neardup_gpu import papers, theory
from neardup_gpu.errors import NeardupError

THRESHOLDS = np.array([i / 1000 for i in range(1, 1001)])
THRESHOLD = st.sampled_from(THRESHOLDS.tolist())
FIFTY_MILLION = 50_000_000


def ratios(total: int) -> np.ndarray:
    """c / (total - c) for c = 0, 1, ... until it is 1 or more: what two sets of `total` shingles can resemble."""
    common = np.arange((total + 1) // 2 + 1)
    return common / (total - common)


class TestBounds:
    @pytest.mark.parametrize(
        "sizes",
        [range(1, 301), range(307, 3001, 7)],
        ids=["to 300", "each seventh to 3000"],
    )
    def test_prefixes_of_sizes_at_every_thousandth(self, sizes: range) -> None:
        """Against all quotients of a size: the first that is not below the threshold, by search in their row."""
        for size in sizes:
            long = size + 1 - np.searchsorted(np.arange(size + 1) / size, THRESHOLDS)
            short = size + 1 - np.searchsorted(ratios(2 * size), THRESHOLDS)
            found = [theory.prefix_lengths(size, t) for t in THRESHOLDS.tolist()]
            assert np.array_equal(found, np.stack([short, long], 1)), size

    @pytest.mark.parametrize("size_a", [1, 2, 35, 299, 1500])
    def test_overlaps_of_sizes_at_every_thousandth(self, size_a: int) -> None:
        for size_b in range(1, 300):
            found = [theory.least_overlap(size_a, size_b, t) for t in THRESHOLDS.tolist()]
            assert np.array_equal(found, np.searchsorted(ratios(size_a + size_b), THRESHOLDS)), size_b

    @pytest.mark.parametrize("size", [FIFTY_MILLION, FIFTY_MILLION - 1, 2**52])
    def test_great_sets_at_every_thousandth(self, size: int) -> None:
        """Enough, and one less is not: that is least, as quotients are ascending."""
        short, long = np.array([theory.prefix_lengths(size, t) for t in THRESHOLDS.tolist()]).T
        least, overlap = size + 1 - long, size + 1 - short
        assert np.all(least / size >= THRESHOLDS) and np.all((least - 1) / size < THRESHOLDS)
        assert np.all(overlap / (2 * size - overlap) >= THRESHOLDS)
        assert np.all((overlap - 1) / (2 * size - overlap + 1) < THRESHOLDS)

    @settings(deadline=None)
    @given(st.integers(0, 60), st.integers(0, 60), THRESHOLD | st.floats(0, 1, exclude_min=True))
    @example(1, 1, 5e-324)
    @example(60, 60, 1 - 2**-53)
    def test_by_fractions(self, size_a: int, size_b: int, threshold: float) -> None:
        """One candidate after another; float(Fraction) is the true quotient, rounded once."""
        assume(size_a + size_b)
        total = size_a + size_b
        least = next(c for c in itertools.count() if float(Fraction(c, total - c)) >= threshold)
        assert theory.least_overlap(size_a, size_b, threshold) == least
        if size_a:
            least = next(c for c in itertools.count() if float(Fraction(c, size_a)) >= threshold)
            assert theory.prefix_lengths(size_a, threshold).long == size_a - least + 1

    def test_ties_to_the_last_bit(self) -> None:
        assert 28 / 35 == 0.8 and theory.least_overlap(30, 33, 0.8) == 28
        assert math.ceil(0.07 * 100) == 8 and theory.prefix_lengths(100, 0.07).long == 100 - 7 + 1

    def test_python_and_numpy_divide_alike(self) -> None:
        """Verification divides arrays; a bound divides two integers."""
        c, u = (np.random.default_rng(1).integers(1, 2**52, 1000) for _ in range(2))
        assert (c / u).tolist() == [int(a) / int(b) for a, b in zip(c, u, strict=True)]

    def test_ends(self) -> None:
        assert theory.prefix_lengths(0, 0.8) == (0, 0)
        assert theory.prefix_lengths(7, 1) == (1, 1)
        assert theory.prefix_lengths(7, 5e-324) == (7, 7)
        assert theory.least_overlap(0, 0, 0.8) == 1

    @settings(deadline=None)
    @given(st.integers(1, 2**52), st.floats(0, 1, exclude_min=True))
    def test_lengths_are_ordered(self, size: int, threshold: float) -> None:
        short, long = theory.prefix_lengths(size, threshold)
        assert 1 <= short <= long <= size

    @pytest.mark.parametrize(
        "bad", [(-1, 0.8), (2**52 + 1, 0.8), (7, 0), (7, 1.1), (7, math.nan), (7.0, 0.8), (True, 1)]
    )
    def test_errors(self, bad: tuple) -> None:
        size, threshold = bad
        for call in (
            lambda: theory.prefix_lengths(size, threshold),
            lambda: theory.least_overlap(size, 7, threshold),
            lambda: theory.least_overlap(7, size, threshold),
            lambda: papers.prefix_cost(size, threshold, [2]),
        ):
            with pytest.raises(NeardupError):
                call()


@st.composite
def pairs_of_sets(draw: st.DrawFn) -> tuple[set[int], set[int], list[int], float]:
    """Two sets that have something in common, an order of their elements, and often their very resemblance."""
    only_a, only_b, both = draw(st.integers(0, 12)), draw(st.integers(0, 12)), draw(st.integers(1, 30))
    order = draw(st.permutations(range(only_a + both + only_b)))
    a, b = set(range(only_a + both)), set(range(only_a, only_a + both + only_b))
    resemblance = both / len(order)
    return a, b, order, draw(st.just(resemblance) | st.floats(0, resemblance, exclude_min=True) | THRESHOLD)


class TestLemma:
    @settings(deadline=None, max_examples=fewer(500))
    @given(pairs_of_sets())
    def test_first_common_element_is_in_both_prefixes(self, drawn: tuple[set[int], set[int], list[int], float]) -> None:
        a, b, order, threshold = drawn
        assume(len(a & b) / len(a | b) >= threshold)
        for smaller, larger in ((a, b), (b, a)):
            if len(smaller) > len(larger):
                continue
            first = next(x for x in order if x in smaller and x in larger)
            i = [x for x in order if x in smaller].index(first)
            j = [x for x in order if x in larger].index(first)
            assert i < theory.prefix_lengths(len(smaller), threshold).short
            assert j < theory.prefix_lengths(len(larger), threshold).long
            assert min(len(smaller) - i, len(larger) - j) >= theory.least_overlap(len(a), len(b), threshold)

    @settings(deadline=None, max_examples=fewer(500))
    @given(pairs_of_sets())
    def test_of_containment(self, drawn: tuple[set[int], set[int], list[int], float]) -> None:
        """The first common element is in the long prefix of what is contained, and anywhere in its container."""
        a, b, order, resemblance = drawn
        for contained, container in ((a, b), (b, a)):
            share = len(a & b) / len(contained)
            first = next(x for x in order if x in contained and x in container)
            i = [x for x in order if x in contained].index(first)
            j = [x for x in order if x in container].index(first)
            for threshold in (share, min(share, resemblance)):
                assert i < theory.prefix_lengths(len(contained), threshold).long
                smaller = min(len(contained), len(container))
                least = smaller - theory.prefix_lengths(smaller, threshold).long + 1
                assert min(len(contained) - i, len(container) - j) >= least

    @pytest.mark.parametrize("threshold", [0.3, 0.5, 0.8, 0.9, 1.0])
    def test_no_prefix_is_longer_than_needed(self, threshold: float) -> None:
        """For every size there is a pair whose first common element is the last of the prefix."""
        for size in range(1, 60):
            lengths = theory.prefix_lengths(size, threshold)
            common = size - lengths.short + 1  # of two sets of this size, each beginning with its own elements
            assert common / (2 * size - common) >= threshold
            common = size - lengths.long + 1  # all of a smaller set
            assert common / size >= threshold

    def test_what_an_accident_changes(self) -> None:
        """What x and y of one fingerprint do to two sizes and an overlap: all the ways of it."""
        changes = set()
        for a, b in itertools.product(["", "x", "y", "xy"], repeat=2):
            seen_a, seen_b = ({"x" if each == "y" else each for each in text} for text in (a, b))
            changes.add((len(seen_a) - len(a), len(seen_b) - len(b), len(seen_a & seen_b) - len(set(a) & set(b))))
        assert changes == {(0, 0, 0), (0, 0, 1), (-1, 0, 0), (0, -1, 0), (-1, -1, -1)}


class TestAccidents:
    def test_the_number_of_moduli(self) -> None:
        """phi(2**64 - 1) / 64 primitive polynomials of degree 64, by the seven primes."""
        primes = (3, 5, 17, 257, 641, 65537, 6700417)
        assert math.prod(primes) == 2**64 - 1
        assert papers.expected_accidents(2, 1, 1) == 64 / math.prod(prime - 1 for prime in primes)

    def test_printed_numbers(self) -> None:
        assert papers.expected_accidents(10**9) == pytest.approx(24.3, abs=0.05)
        assert papers.expected_collisions(10**9, 64) == pytest.approx(0.027, abs=0.0005)

    @pytest.mark.parametrize("size", [2, 1000, 10**9])
    def test_bounds_what_random_fingerprints_would_do(self, size: int) -> None:
        assert papers.expected_accidents(size, 1, 1) > papers.expected_collisions(size, 64)

    def test_nothing_collides_with_nothing(self) -> None:
        assert papers.expected_accidents(0) == papers.expected_accidents(1) == 0

    def test_small_moduli(self) -> None:
        """The argument at degree 4, where all can be tried: two polynomials of degree up to d are equal under at most
        d // 4 of the phi(15) / 4 = 2 primitive moduli."""
        moduli = (0b10011, 0b11001)

        def rest(value: int, modulus: int) -> int:
            while (shift := value.bit_length() - 5) >= 0:
                value ^= modulus << shift
            return value

        for degree in range(1, 12):
            for difference in range(1, 2 << degree):
                assert sum(rest(difference, modulus) == 0 for modulus in moduli) <= (difference.bit_length() - 1) // 4


def binomial_below(length: int, trials: int, share: Fraction) -> Fraction:
    terms = (math.comb(trials, i) * share**i * (1 - share) ** (trials - i) for i in range(min(length, trials + 1)))
    return sum(terms, Fraction(0))


class TestCost:
    @pytest.mark.parametrize("size", [1, 2, 7, 40])
    @pytest.mark.parametrize("threshold", [0.3, 0.8, 1.0])
    def test_is_the_sum_of_the_docstring(self, size: int, threshold: float) -> None:
        counts = [1, 1, 1, 2, 2, 3, 8, 8, 20, 50]
        lengths, total = theory.prefix_lengths(size, threshold), sum(counts)
        postings = comparisons = Fraction(0)
        for place, count in enumerate(counts):
            if count == 1:
                continue
            share = Fraction(sum(counts[:place]), total - count)
            short, long = (binomial_below(length, size - 1, share) for length in lengths)
            postings += count * long
            comparisons += Fraction(count * (count - 1), 2) * (short**2 + 2 * short * (long - short))
        found = papers.prefix_cost(size, threshold, counts)
        assert found.postings == pytest.approx(float(postings), rel=1e-3, abs=1e-4 * total)
        assert found.comparisons == pytest.approx(float(comparisons), rel=1e-3, abs=1e-4 * total)

    @pytest.mark.parametrize("threshold", [0.5, 0.8])
    def test_against_counting(self, threshold: float) -> None:
        """On 2,000 sets of 30, drawn by Zipf's law from 20,000 shingles, the model is within 2%.

        That is what was counted for this seed, no theorem: elements of a set are distinct, the model's draws are not.
        """
        rng, size = np.random.default_rng(1), 30
        weight = 1 / np.arange(1, 20_001)
        # The smallest of exponential variables, divided by the weights, are a draw without replacement.
        sets = [np.argpartition(rng.exponential(size=len(weight)) / weight, size)[:size] for _ in range(2000)]
        counts = np.bincount(np.concatenate(sets), minlength=len(weight))
        lengths = theory.prefix_lengths(size, threshold)
        short, long = np.zeros(len(weight), np.int64), np.zeros(len(weight), np.int64)
        for each in sets:
            ordered = each[np.lexsort((each, counts[each]))]
            short[ordered[: lengths.short]] += 1
            long[ordered[: lengths.long]] += 1
        shared = counts > 1
        comparisons = short * (short - 1) // 2 + short * (long - short)
        found = papers.prefix_cost(size, threshold, counts[counts > 0])
        assert found.postings == pytest.approx(long[shared].sum(), rel=0.02)
        assert found.comparisons == pytest.approx(comparisons[shared].sum(), rel=0.02)

    def test_nothing_is_shared(self) -> None:
        for counts in ([], [1] * 100, [0, 1]):
            assert papers.prefix_cost(10, 0.8, counts) == (0, 0)

    def test_frequent_shingles_are_quadratic(self) -> None:
        cost = [papers.prefix_cost(30, 0.8, [documents // 2] * 60) for documents in (4_000, 8_000)]
        assert cost[1].postings == pytest.approx(2 * cost[0].postings, rel=1e-3)
        assert cost[1].comparisons == pytest.approx(4 * cost[0].comparisons, rel=1e-3)

    @settings(deadline=None)
    @given(st.lists(st.integers(1, 50), min_size=1, max_size=40), st.integers(1, 60), THRESHOLD)
    def test_is_bounded_and_forgets_the_order(self, counts: list[int], size: int, threshold: float) -> None:
        found = papers.prefix_cost(size, threshold, counts)
        assert 0 <= found.postings <= sum(counts)
        assert 0 <= found.comparisons <= sum(count * (count - 1) / 2 for count in counts) * (1 + 1e-12)
        random.Random(1).shuffle(counts)
        assert papers.prefix_cost(size, threshold, counts) == found

    def test_numbers_beside_hashing(self) -> None:
        """Those of the module's docstring."""
        assert [theory.prefix_lengths(1000, t).long for t in (0.95, 0.8, 0.5)] == [51, 201, 501]
        assert [theory.choose_filter(t)[0] for t in (0.95, 0.8, 0.5)] == [8, 20, 35]

    @pytest.mark.parametrize("counts", [[1.5], [-1], ["a"], [[1]], None, 3])
    def test_errors(self, counts: object) -> None:
        with pytest.raises(NeardupError, match="counts"):
            papers.prefix_cost(10, 0.8, counts)
