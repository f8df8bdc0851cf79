"""Filter curves, choice of filters and error bounds against printed numbers, exact rationals and their own laws.

Errata found in the sources while recomputing their numbers; the tests hold what the formulas give:

- Broder 2000, section 1: "at least 97.5% ... not share at least two features ... less than 0.01" computes to 0.0107.
- Broder 2000, section 1: "more than 2 common features" under the list should read "at least 2".
- Manasse 6.1: "0.7%, and 0.006%" for resemblance 0.7 and 0.5 are one feature's x**14; two of six give 0.067% and
  0.0000056%, as 3.2 of the same book says for 0.7 ("just under one in a thousand").
- Broder 1997, 4.2: the upper end of the sum for p(s, r, e) is printed s(r - e) and means s(r + e).
"""

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

from neardup_gpu import papers, theory
from neardup_gpu.errors import NeardupError, ParameterError

ALTAVISTA = (6, 14, 2)


def exact(x: float, k: int, s: int, r: int) -> Fraction:
    """P(k,s,r)(x) over the rationals, for the float x as it is."""
    p = Fraction(x) ** s
    return sum((math.comb(k, i) * p**i * (1 - p) ** (k - i) for i in range(r, k + 1)), Fraction(0))


@st.composite
def filters(draw: st.DrawFn) -> tuple[int, int, int]:
    k = draw(st.integers(1, 24))
    return k, draw(st.integers(1, 20)), draw(st.integers(1, k))


resemblances = st.floats(0, 1)


class TestFilterCurve:
    @pytest.mark.parametrize(
        "x, low, high, source",
        [
            (0.90, 0.41, 0.43, "AltaVista finds 42% at 0.9"),
            (0.80, 0.025, 0.035, "AltaVista finds 3% at 0.8"),
            (0.95, 0.87, 0.885, "Manasse 2.5: at least 87% at 0.95"),
            (0.75, 0.0, 0.015, "Manasse 2.5: below 1.5% at 0.75"),
            (0.70, 0.0005, 0.001, "Manasse 3.2: just under one in a thousand at 0.7"),
            (0.77, 0.0, 0.01, "Broder 2000: below 0.01 at 77%"),
            (0.50, 0.5e-7, 0.6e-7, "Broder 2000: below 0.6e-7 at 50%"),
        ],
    )
    def test_printed_chances(self, x: float, low: float, high: float, source: str) -> None:
        assert low <= theory.pass_probability(x, *ALTAVISTA) < high, source

    def test_printed_misses(self) -> None:
        assert theory.miss_probability(0.99, *ALTAVISTA) < 0.00022
        assert theory.miss_probability(0.975, *ALTAVISTA) == pytest.approx(0.0107, abs=5e-5)  # printed: less than 0.01

    def test_manasse_formula(self) -> None:
        for x in (0.5, 0.7, 0.95):
            p = x**14
            assert theory.miss_probability(x, *ALTAVISTA) == pytest.approx((1 - p) ** 5 * (1 + 5 * p), rel=1e-12)

    @pytest.mark.parametrize(
        "x, chance", [(0.2, 0.006), (0.3, 0.047), (0.4, 0.186), (0.5, 0.470), (0.6, 0.802), (0.7, 0.975), (0.8, 0.9996)]
    )
    def test_bands_of_the_textbook(self, x: float, chance: float) -> None:
        """Leskovec, Rajaraman and Ullman, example 3.11: 20 bands of 5 rows."""
        digits = 4 if x == 0.8 else 3
        assert theory.pass_probability(x, *theory.PRESETS["bands"]) == pytest.approx(chance, abs=0.6 * 10**-digits)

    @settings(deadline=None)
    @given(resemblances, filters())
    @example(1 - 2**-53, ALTAVISTA)
    @example(5e-324, (1, 1, 1))
    def test_exact_in_both_tails(self, x: float, ksr: tuple[int, int, int]) -> None:
        truth = exact(x, *ksr)
        for value, wanted in (
            (theory.pass_probability(x, *ksr), truth),
            (theory.miss_probability(x, *ksr), 1 - truth),
        ):
            if wanted > 1e-290:  # below, float64 has fewer digits
                assert abs(Fraction(value) / wanted - 1) < 1e-12
            else:
                assert value < 1e-280

    @settings(deadline=None)
    @given(resemblances, resemblances, filters())
    def test_grows_with_resemblance(self, x: float, y: float, ksr: tuple[int, int, int]) -> None:
        low, high = sorted((x, y))
        assert theory.pass_probability(low, *ksr) <= theory.pass_probability(high, *ksr) * (1 + 1e-12)

    @settings(deadline=None)
    @given(resemblances, filters())
    def test_grows_with_features_and_falls_with_demands(self, x: float, ksr: tuple[int, int, int]) -> None:
        k, s, r = ksr
        chance = theory.pass_probability(x, k, s, r) * (1 - 1e-12)
        assert theory.pass_probability(x, k + 1, s, r) >= chance
        assert theory.pass_probability(x, k + 1, s, r + 1) * (1 - 1e-12) <= theory.pass_probability(x, k + 1, s, r)
        assert theory.pass_probability(x, k, s + 1, r) * (1 - 1e-12) <= theory.pass_probability(x, k, s, r)

    def test_ends(self) -> None:
        for ksr in theory.PRESETS.values():
            assert theory.pass_probability(0, *ksr) == 0 == theory.miss_probability(1, *ksr)
            assert theory.pass_probability(1, *ksr) == 1 == theory.miss_probability(0, *ksr)

    def test_simulation(self) -> None:
        """Drawn features pass as often as the formula says; Hoeffding allows the difference with failure 1e-9."""
        rng, (k, s, r), x, trials = random.Random(1), ALTAVISTA, 0.9, 4000
        passed = sum(sum(all(rng.random() < x for _ in range(s)) for _ in range(k)) >= r for _ in range(trials))
        assert abs(passed / trials - theory.pass_probability(x, k, s, r)) < papers.hoeffding(trials)


class TestInverse:
    @settings(deadline=None)
    @given(st.floats(0, 1, exclude_min=True, exclude_max=True), filters())
    def test_is_where_the_chance_is_reached(self, probability: float, ksr: tuple[int, int, int]) -> None:
        """The wanted chance lies between those of the two neighbouring floats, up to rounding of P."""
        x = theory.inverse(probability, *ksr)
        below, above = math.nextafter(x, 0), math.nextafter(x, 1)
        if probability <= 0.5:
            assert theory.pass_probability(below, *ksr) <= probability * (1 + 1e-12)
            assert theory.pass_probability(above, *ksr) >= probability * (1 - 1e-12)
        else:
            assert theory.miss_probability(below, *ksr) >= (1 - probability) * (1 - 1e-12)
            assert theory.miss_probability(above, *ksr) <= (1 - probability) * (1 + 1e-12)

    @settings(deadline=None)
    @example(0.1171875, (19, 18, 19))
    @given(st.floats(0.05, 0.999), filters())
    def test_round_trip(self, x: float, ksr: tuple[int, int, int]) -> None:
        """x -> P(x) -> x, with the room that one rounding of P(x) leaves at the slope of P there."""
        chance = theory.pass_probability(x, *ksr)
        if chance in (0, 1):
            return
        back = theory.inverse(chance, *ksr)
        digits = 1e-12 if chance <= 0.5 else 1e-12 / theory.miss_probability(x, *ksr)
        digits = max(digits, 5e-324 / chance)  # the least step between floats, where these have fewer digits
        step = 1e-6 * min(x, 1 - x)
        side = theory.pass_probability if chance <= 0.5 else theory.miss_probability
        slope = abs(side(x + step, *ksr) - side(x - step, *ksr)) / (2 * step)
        room = 2 * digits * side(x, *ksr) / slope if slope else 1.0
        assert abs(back - x) <= room + 4 * math.ulp(x)

    def test_half_points(self) -> None:
        assert theory.half_point(*ALTAVISTA) == pytest.approx(0.909, abs=5e-4)  # Broder 2000, section 4: 0.909...
        assert theory.half_point(1, 1, 1) == 0.5

    def test_ends(self) -> None:
        assert theory.inverse(0, *ALTAVISTA) == 0
        assert theory.inverse(1, *ALTAVISTA) == 1


class TestChoosing:
    def test_slope(self) -> None:
        assert papers.slope_threshold(14) == pytest.approx(0.931, abs=5e-4)  # Broder 2000, section 4: 0.931...
        assert papers.slope_s(papers.slope_threshold(14)) == pytest.approx(14, rel=1e-12)

    @settings(deadline=None)
    @given(st.floats(0.1, 0.99), filters())
    def test_slope_is_greatest_there(self, threshold: float, ksr: tuple[int, int, int]) -> None:
        s = papers.slope_s(threshold)

        def slope(t: float) -> float:
            return t * threshold ** (t - 1)

        assert slope(s) >= max(slope(0.99 * s), slope(1.01 * s))

    @settings(deadline=None)
    @given(filters())
    def test_half_s_inverts_half_point(self, ksr: tuple[int, int, int]) -> None:
        k, s, r = ksr
        threshold = theory.half_point(k, s, r)
        assert papers.half_s(threshold, k, r) == pytest.approx(s, rel=1e-9)

    @pytest.mark.parametrize("ksr", theory.PRESETS.values(), ids=theory.PRESETS)
    def test_areas_are_least_at_the_half_point(self, ksr: tuple[int, int, int]) -> None:
        middle = theory.half_point(*ksr)
        least = sum(papers.error_areas(middle, *ksr))
        assert least < min(sum(papers.error_areas(middle + shift, *ksr)) for shift in (-0.02, 0.02))

    def test_areas_of_one_sample(self) -> None:
        """P(1,1,1)(x) = x: triangles."""
        assert papers.error_areas(0.6, 1, 1, 1) == pytest.approx((0.18, 0.08), abs=1e-12)

    def test_areas_against_the_polynomial(self) -> None:
        """1 - (1 - x**3)**2 = 2x**3 - x**6."""
        below, above = papers.error_areas(0.5, 2, 3, 1)
        assert below == pytest.approx(0.5**4 / 2 - 0.5**7 / 7, abs=1e-8)
        assert above == pytest.approx(0.5 - ((1 - 0.5**4) / 2 - (1 - 0.5**7) / 7), abs=1e-8)

    @pytest.mark.parametrize("ksr", [(12, 5, 1), ALTAVISTA, (1, 40, 1), (40, 7, 3), (3, 2, 2)])
    @pytest.mark.parametrize("threshold", [0.3, 0.8, 1.0])
    def test_false_candidates_against_a_fine_sum(self, threshold: float, ksr: tuple[int, int, int]) -> None:
        steps = 20_000
        start = math.log(theory.NEIGHBOURS / (theory.COLLECTION + theory.NEIGHBOURS))
        width = (math.log(threshold) - start) / steps
        points = [math.exp(start + (i + 0.5) * width) for i in range(steps)]
        total = math.fsum(theory.NEIGHBOURS / x * theory.pass_probability(x, *ksr) for x in points) * width
        assert theory.false_candidates(threshold, *ksr) == pytest.approx(total, rel=1e-4, abs=1e-12)

    @pytest.mark.parametrize("threshold", [0.3, 0.5, 0.8, 0.95, 0.99, 1.0])
    @pytest.mark.parametrize("recall", [0.5, 0.99, 0.9999])
    def test_keeps_its_promise(self, threshold: float, recall: float) -> None:
        k, s, r = theory.choose_filter(threshold, recall)
        assert k * s <= 256
        assert theory.pass_probability(threshold, k, s, r) >= recall

    @pytest.mark.parametrize("threshold, recall", [(0.8, 0.99), (0.95, 0.9), (1.0, 0.9)])
    def test_no_filter_is_cheaper(self, threshold: float, recall: float) -> None:
        """Against every filter of at most 40 samples, one by one."""
        chosen = theory.choose_filter(threshold, recall, max_samples=40)
        least = min(
            (theory.filter_cost(threshold, k, s, r), k * s, (k, s, r))
            for k, s in itertools.product(range(1, 41), repeat=2)
            if k * s <= 40
            for r in range(1, min(k, 4) + 1)
            if theory.pass_probability(threshold, k, s, r) >= recall
        )
        assert theory.filter_cost(threshold, *chosen) <= least[0]
        assert chosen[2] > 4 or chosen == least[2]

    def test_steeper_for_higher_thresholds(self) -> None:
        lengths = [theory.choose_filter(threshold)[1] for threshold in (0.4, 0.6, 0.8, 0.9)]
        assert lengths == sorted(lengths)

    @pytest.mark.parametrize("threshold, recall, samples", [(0.02, 0.9999, 256), (0.8, 0.99, 2)])
    def test_impossible(self, threshold: float, recall: float, samples: int) -> None:
        with pytest.raises(ParameterError, match="raise the threshold, lower the recall or allow more samples"):
            theory.choose_filter(threshold, recall, max_samples=samples)

    @pytest.mark.parametrize(
        "threshold, recall, samples",
        [(0, 0.9, 9), (1.5, 0.9, 9), (0.8, 1.0, 9), (0.8, 0, 9), (math.nan, 0.9, 9), (0.8, 0.9, 0)],
    )
    def test_out_of_range(self, threshold: float, recall: float, samples: int) -> None:
        with pytest.raises(ParameterError):
            theory.choose_filter(threshold, recall, max_samples=samples)


class TestParsing:
    @pytest.mark.parametrize("text, ksr", [("6,14,2", ALTAVISTA), (" 20, 5 ,1 ", (20, 5, 1)), ("Bing", (6, 5, 4))])
    def test_good(self, text: str, ksr: tuple[int, int, int]) -> None:
        assert theory.parse_filter(text) == ksr

    @pytest.mark.parametrize(
        "text", ["", "google", "6,14", "6,14,2,1", "6,14,7", "0,1,0", "6,0,2", "6,14,0", "6,1.5,2", "1001,1,1"]
    )
    def test_bad(self, text: str) -> None:
        with pytest.raises(ParameterError):
            theory.parse_filter(text)

    @pytest.mark.parametrize("bad", [(6, 14, 7), (6, 14, 2.0), (True, 1, 1), (6, -1, 2)])
    def test_functions_check_too(self, bad: tuple[int, int, int]) -> None:
        with pytest.raises(NeardupError, match="filter"):
            theory.pass_probability(0.5, *bad)

    @pytest.mark.parametrize("x", [-0.1, 1.1, math.nan])
    def test_resemblance_is_checked(self, x: float) -> None:
        with pytest.raises(ParameterError):
            theory.pass_probability(x, *ALTAVISTA)
        with pytest.raises(ParameterError):
            theory.inverse(x, *ALTAVISTA)


class TestBounds:
    @settings(deadline=None)
    @given(st.integers(0, 300), st.sampled_from([1, 2, 4, 8, 10, 16, 32, 64]))
    def test_collisions_are_exact(self, size: int, bits: int) -> None:
        m = 2**bits
        truth = size - m * (1 - Fraction(m - 1, m) ** size)
        assert papers.expected_collisions(size, bits) == pytest.approx(float(truth), rel=1e-9, abs=0)

    def test_collisions_of_a_typical_document(self) -> None:
        """Broder 1997, 4.1: about n**2 / 2**(bits + 1), for 1000 shingles and 40 bits."""
        assert papers.expected_collisions(1000, 40) == pytest.approx(1000 * 999 / 2**41, rel=1e-6)

    def test_collision_error(self) -> None:
        assert papers.collision_error(2**21, 32) == 1  # design: |A u B| / 2**21 at 32 bits
        assert papers.collision_error(1000, 64) == 1000 / 2**53

    @pytest.mark.parametrize("bits", [32, 40, 64])
    def test_collision_error_follows_from_markov(self, bits: int) -> None:
        """1000 times the expected collisions, counted in both the intersection and the union, stay below the bound."""
        size = 1000
        assert 2 * 1000 * papers.expected_collisions(size, bits) / size < papers.collision_error(size, bits)

    @settings(deadline=None)
    @given(st.integers(1, 60), resemblances, st.floats(0, 1))
    def test_within_is_the_binomial_sum(self, samples: int, x: float, error: float) -> None:
        p, middle, margin = Fraction(x), *(Fraction(v).limit_denominator(10**9) for v in (x, error))
        inside = [i for i in range(samples + 1) if abs(Fraction(i, samples) - middle) <= margin]
        truth = sum((math.comb(samples, i) * p**i * (1 - p) ** (samples - i) for i in inside), Fraction(0))
        assert papers.within_probability(samples, x, error) == pytest.approx(float(truth), rel=1e-10, abs=1e-300)

    def test_within_reads_decimals(self) -> None:
        """0.9 - 0.1 and 0.9 + 0.1 are 0.8 and 1: with 10 samples 8, 9 and 10 count."""
        wanted = 45 * 0.9**8 * 0.1**2 + 10 * 0.9**9 * 0.1 + 0.9**10
        assert papers.within_probability(10, 0.9, 0.1) == pytest.approx(wanted, rel=1e-12)

    def test_the_whole_web(self) -> None:
        """Broder 1997, 4.2: below 0.1% that any pair of 30,000,000 documents below 50% is estimated above 90%."""
        pairs = 30_000_000**2 / 2
        assert pairs * papers.exceed_probability(100, 0.5, 0.9) < 0.001

    def test_standard_error(self) -> None:
        assert papers.standard_error(0.5, 100) == 0.05
        assert papers.standard_error(1, 84) == 0

    @settings(deadline=None)
    @given(st.floats(0, 1), st.integers(1, 10**6), st.sampled_from([1e-12, 1e-9, 0.01, 0.5]))
    def test_interval_is_ordered_and_within_hoeffding(self, mean: float, trials: int, failure: float) -> None:
        low, high = theory.mean_interval(mean, trials, failure)
        assert 0 <= low <= mean <= high <= 1
        room = papers.hoeffding(trials, failure) + 1e-12
        assert mean - low <= room and high - mean <= room

    @pytest.mark.parametrize("trials", [1, 10, 1000])
    def test_interval_at_the_ends(self, trials: int) -> None:
        bound = 1 - 0.005 ** (1 / trials)
        assert theory.mean_interval(0, trials, 0.01) == pytest.approx((0, bound))
        assert theory.mean_interval(1, trials, 0.01) == pytest.approx((1 - bound, 1))

    def test_interval_of_nothing(self) -> None:
        assert theory.mean_interval(0.7, 0, 0.01) == (0, 1)

    @pytest.mark.parametrize("trials", [5, 30, 100])
    @pytest.mark.parametrize("truth", [0.01, 0.3, 0.5, 0.95])
    def test_interval_covers(self, trials: int, truth: float) -> None:
        """The exact chance, over all outcomes of `trials` coins, that the interval misses is below `failure`."""
        failure = 0.05
        missed = 0.0
        for heads in range(trials + 1):
            low, high = theory.mean_interval(heads / trials, trials, failure)
            if not low <= truth <= high:
                missed += math.comb(trials, heads) * truth**heads * (1 - truth) ** (trials - heads)
        assert missed <= failure

    def test_errors(self) -> None:
        for call in (
            lambda: papers.hoeffding(0),
            lambda: papers.hoeffding(10, 0),
            lambda: theory.mean_interval(1.5, 10, 0.1),
            lambda: theory.mean_interval(0.5, -1, 0.1),
            lambda: papers.within_probability(0, 0.5, 0.1),
            lambda: papers.exceed_probability(0, 0.5, 0.1),
            lambda: papers.standard_error(2, 10),
            lambda: papers.standard_error(0.5, 0),
            lambda: papers.slope_s(1),
            lambda: papers.half_s(0, 6, 2),
            lambda: papers.expected_collisions(-1, 8),
            lambda: theory.false_candidates(0, 6, 14, 2),
        ):
            with pytest.raises(ParameterError):
                call()


OF_ARRAYS = {
    "pass_probability": lambda x: theory.pass_probability(x, 6, 14, 2, bits=16),
    "miss_probability": lambda x: theory.miss_probability(x, 6, 14, 2),
    "inverse": lambda x: theory.inverse(x, 6, 14, 2),
    "false_candidates": lambda x: theory.false_candidates(x, 6, 14, 2),
    "filter_cost": lambda x: theory.filter_cost(x, 6, 14, 2),
    "bbit_share": lambda x: theory.bbit_share(x, 2),
    "bbit_resemblance": lambda x: theory.bbit_resemblance(x, 2),
    "mean_interval": lambda x: theory.mean_interval(x, 10, 0.1),
    "standard_error": lambda x: papers.standard_error(x, 100),
    "bbit_error": lambda x: papers.bbit_error(x, 100, 2),
    "sample_variance": lambda x: papers.sample_variance(x, 100),
    "bottomk_variance": lambda x: papers.bottomk_variance(x, 10, 100),
    "modm_variance": lambda x: papers.modm_variance(x, 16, 100),
    "bbit_variance": lambda x: papers.bbit_variance(x, 100, 2),
    "within_probability": lambda x: papers.within_probability(100, x, 0.05),
    "exceed_probability": lambda x: papers.exceed_probability(100, 0.5, x),
    "collision_error": lambda x: papers.collision_error(x, 64),
    "half_s": lambda x: papers.half_s(x, 6, 2),
    "slope_s": papers.slope_s,
    "containment_from_resemblance": lambda x: papers.containment_from_resemblance(x, 20, 28),
    "l1": lambda x: papers.l1(0.5, x, 3),
}


@pytest.mark.parametrize("name", OF_ARRAYS)
def test_of_an_array_each_value_is_that_of_its_element(name: str) -> None:
    function, values = OF_ARRAYS[name], np.array([[0.25, 0.5, 0.75], [0.8, 0.9, 0.99]])
    found, single = np.array(function(values)), np.array([function(float(x)) for x in values.flat])
    assert found.dtype == np.float64 and np.shape(function(np.empty((0, 2))))[-2:] == (0, 2)
    assert np.array_equal(found, single.T.reshape(found.shape))
    with pytest.raises(NeardupError) as caught:
        function(np.array([0.5, np.nan]))
    assert "\n" not in str(caught.value) and caught.value.parameter


def test_arrays_are_broadcast_and_whole_numbers_are_single() -> None:
    column, row = np.array([[0.2], [0.4]]), np.array([10, 20, 30])
    assert papers.l1(column, row, 5).shape == (2, 3)
    with pytest.raises(NeardupError, match=r"^filter k must be a whole number, got an ndarray"):
        theory.pass_probability(0.5, np.array([6, 7]), 14, 2)  # type: ignore[arg-type]
