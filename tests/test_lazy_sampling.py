"""Lazy samplers: consistent, uniform, in agreement with resemblance, and as many random bits as the formulas say."""

import math
from collections import Counter
from itertools import permutations

import numpy as np
import pytest

from neardup_gpu.errors import ArgumentTypeError, ParameterError
from neardup_gpu.papers import hoeffding, lazy_sampling as lazy
from neardup_gpu.papers.lazy_sampling import SAMPLERS, RandomBits, prefixes, runs


def samples(name, elements, number, seed=1):
    return list(SAMPLERS[name](elements, number, RandomBits(seed)))


def some(number, seed=5):
    return np.random.default_rng(seed).integers(0, 2**64, number, np.uint64).tolist()


def chi_square_bound(cells, failure):
    """Above it is a chi-square of cells - 1 degrees of freedom with at most that probability (Laurent and Massart
    2000, lemma 1)."""
    x, d = math.log(1 / failure), cells - 1
    return d + 2 * math.sqrt(d * x) + 2 * x


def chernoff(distribution, trials, mean, error):
    """Bound on the probability that the mean of so many draws is off by an error: exp(n (log E[exp(a x)] - a level)),
    the least over a grid of a, on both sides."""

    def beyond(level, tilt):
        moment = math.fsum(chance * math.exp(tilt * value) for value, chance in distribution.items())
        return trials * (math.log(moment) - tilt * level)

    tilts = np.geomspace(1e-4, 0.3, 200)
    return sum(math.exp(min(beyond(mean + sign * error, sign * tilt) for tilt in tilts)) for sign in (1, -1))


@pytest.mark.parametrize("name", SAMPLERS)
class TestSamples:
    def test_one_stays_while_its_element_stays(self, name):
        """Whatever else is taken out, in whatever order; each sample in its own right."""
        elements = some(150)
        whole = samples(name, elements, 130)
        draw = np.random.default_rng(7)
        for share in (0.9, 0.5, 0.1):
            part = [element for element in elements if draw.random() < share]
            found = samples(name, draw.permutation(np.array(part, np.uint64)).tolist(), 130)
            stays = [(a, b) for a, b in zip(whole, found, strict=True) if a in part]
            assert len(stays) > 3 and all(a == b for a, b in stays)
            assert set(found) <= set(part)

    def test_repeats_and_order_do_not_matter(self, name):
        elements = some(60)
        assert samples(name, elements, 20) == samples(name, elements[::-1] + elements, 20)

    def test_more_samples_begin_with_the_fewer(self, name):
        elements = some(60)
        assert samples(name, elements, 200)[:30] == samples(name, elements, 30)

    def test_few_elements(self, name):
        assert samples(name, [], 9) == []
        assert samples(name, [7], 9) == [7] * 9
        assert samples(name, [7, 8], 0) == []

    def test_each_element_as_often(self, name):
        """Chi-square of 4,096 samples of 16 elements. Above the bound with a probability of at most 1e-9, if it is
        chi-square distributed, which with 256 expected in each of the cells it is nearly."""
        counts = Counter(samples(name, some(16), 4096))
        statistic = sum((counts[element] - 256) ** 2 / 256 for element in some(16))
        assert statistic < chi_square_bound(16, 1e-9)

    def test_samples_are_independent(self, name):
        """Pairs of neighbouring samples, of 8 elements: 64 cells of 64, as above. Samples of a stream that shared bits
        would not fill them evenly."""
        elements = some(8)
        found = samples(name, elements, 8192)
        counts = Counter(zip(found[::2], found[1::2], strict=True))
        statistic = sum((counts[a, b] - 64) ** 2 / 64 for a in elements for b in elements)
        assert statistic < chi_square_bound(64, 1e-9)

    def test_agreement_is_resemblance(self, name):
        """Of 3,000 samples as many agree as sets resemble each other, 0.5, within Hoeffding's bound at 1e-9."""
        elements = some(40)
        a, b = (samples(name, part, 3000) for part in (elements[:30], elements[10:]))
        agree = np.mean([one == other for one, other in zip(a, b, strict=True)])
        assert abs(agree - 0.5) < hoeffding(3000) < 0.06


class TestBits:
    def test_naive(self):
        bits = RandomBits()
        list(lazy.naive(some(30), 20, bits))
        assert bits.used == {"whole": 64 * 30 * 20}

    def test_a_naive_sample_changes_with_probability_one_in_k(self):
        """Element k, counted from 0, becomes the sample with probability 1 / (k + 1), not 1 / k (Manasse, section 5.1,
        of active indices): over all orders of 5 elements, exactly."""
        (sample,) = samples("naive", some(5), 1)
        values = {element: RandomBits().of(element, 1, "").take(64) for element in some(5)}
        assert min(values, key=values.get) == sample
        changes = Counter()
        for order in permutations(values.values()):
            changes.update(k for k in range(5) if order[k] == min(order[: k + 1]))
        assert [changes[k] for k in range(5)] == [120 // (k + 1) for k in range(5)]

    def test_prefixes_take_33_bytes_of_32(self):
        """264/256 = 33/32 bytes, where the book has 65/64; a prefix of four bits takes one byte, which is less."""
        assert lazy.prefix_bytes(8) == 264 / 256 == 33 / 32 != 65 / 64
        assert lazy.prefix_bytes(4) == 1 < 33 / 32

    @pytest.mark.parametrize(
        ("number", "expected", "tie"), [(100, 1.21, 0.183), (1000, 3.99, 0.920), (10000, 39.06, 1)]
    )
    def test_ties_of_prefixes(self, number, expected, tie):
        """By counting the 256 values; four bits tie 16 times as often, and a book's page has 4.0 ties, not one."""
        by_value = [(256 - v) / 256 for v in range(257)]
        mean = sum(number / 256 * left ** (number - 1) for left in by_value[:256])
        assert lazy.least_prefixes(number) == pytest.approx((mean, tie), abs=5e-4)
        assert mean == pytest.approx(expected, abs=0.005)
        assert lazy.least_prefixes(1000, 4)[0] == pytest.approx(62.5, abs=0.01)

    def test_prefixes_as_the_formula_says(self):
        """Of 1,000 elements and 512 samples: a byte each, and 64 bits of each of those that tie. How many tie is known
        exactly, and so is Chernoff's bound on a mean of 512 that makes the bits differ by 1%."""
        bits = RandomBits()
        list(prefixes(some(1000), 512, bits, 1000))
        assert bits.used["leading"] == 8 * 1000 * 512
        tied = {
            count: math.fsum(math.comb(1000, count) / 256**count * (v / 256) ** (1000 - count) for v in range(256))
            for count in range(1, 200)
        }
        number, tie = lazy.least_prefixes(1000)
        assert math.fsum(count * chance for count, chance in tied.items()) == pytest.approx(number)
        assert 1 - tied[1] == pytest.approx(tie)
        mean, tied[0] = number - tied[1], tied.pop(1)  # one alone is decided without further bits
        formula = 8 + 64 * mean / 1000
        assert formula == pytest.approx(8 * lazy.prefix_bytes(8), rel=0.001)
        assert chernoff(tied, 512, mean, 0.01 * formula * 1000 / 64) < 1e-9
        assert bits.used.total() == pytest.approx(512_000 * formula, rel=0.01)

    def test_the_usual_buffer_costs_no_more(self):
        """A buffer of 16 decides now and then among elements that a lesser byte then beats: below 1% of all bits."""
        used = []
        for buffer in (16, 3000):
            bits = RandomBits()
            list(prefixes(some(3000), 64, bits, buffer))
            used.append(bits.used.total())
        assert used[1] <= used[0] < 1.01 * used[1]

    def test_the_buffer_changes_no_sample(self):
        elements = some(2000)
        expected = list(prefixes(elements, 5, RandomBits()))
        for buffer in (2, 3, 2000):
            assert list(prefixes(elements, 5, RandomBits(), buffer)) == expected

    def test_runs_take_two_bits(self):
        """256,000 runs take within 1% of 512,000 bits: that M bits have fewer ones than runs has a probability of
        exp(-2 M (1/2 - runs/M)**2) by Hoeffding, below 1e-11 on both sides. Ties take little."""
        bits = RandomBits()
        list(runs(some(2000), 128, bits))
        for number in (1.01 * 512_000, 0.99 * 512_000):
            assert math.exp(-2 * number * (0.5 - 256_000 / number) ** 2) < 1e-11
        assert bits.used["leading"] == pytest.approx(512_000, rel=0.01)
        assert bits.used.total() == pytest.approx(512_000, rel=0.01)

    def test_a_quarter_of_a_bit(self):
        """The book's first scheme takes 2 + e (log2 m + 4) bits of 128 samples, its second below 18; this one, which is
        the second, 12.74, and the entropy of the winners alone is 8.44."""
        assert 2 + math.e * (math.log2(128) + 4) == pytest.approx(31.9011, abs=1e-4)
        assert 31.9011 / 128 < 1 / 4
        share = 1 / 128
        entropy = -128 * (share * math.log2(share) + (1 - share) * math.log2(1 - share))
        assert entropy == pytest.approx(8.437, abs=5e-4)
        assert entropy + 2 < lazy.block_bits() < 18

    def test_how_many_win(self):
        """0.366438, 0.369323, 0.184662, 0.061069; and more than three with 1.85%, where the book has "under 1/2 of a
        percent", which holds for more than four."""
        chances = [lazy.winner_probability(number) for number in range(129)]
        assert chances[:4] == pytest.approx([0.366438, 0.369323, 0.184662, 0.061069], abs=1e-6)
        assert math.fsum(chances) == pytest.approx(1)
        assert math.fsum(chances[4:]) == pytest.approx(0.018509, abs=1e-6)
        assert 0.0030 < math.fsum(chances[5:]) < 0.0040

    def test_no_winner_at_all(self):
        """Of 1,024 elements none wins a sample with 0.000325, and one of 128 samples has no winner with 4.1%."""
        nobody = (127 / 128) ** 1024
        assert nobody == pytest.approx(3.2509e-4, abs=1e-8)
        assert 1 - (1 - nobody) ** 128 == pytest.approx(0.04076, abs=1e-5)

    def test_blocks_as_the_formula_says(self):
        """Winners of 75,000 elements: their bits, which have a distribution that is known, within 2% of the mean by
        Chernoff's bound, which is computed; and each place wins one in 128, within Hoeffding's at 1e-9."""
        distribution, trials = lazy.block_distribution(), 75_000
        assert math.fsum(distribution.values()) == pytest.approx(1)
        mean = lazy.block_bits()

        assert chernoff(distribution, trials, mean, 0.02 * mean) < 1e-9
        bits, wins = RandomBits(), Counter()
        for element in range(trials):
            stream = bits.of(element, -1, "leading")
            found = lazy.winners(stream)
            wins.update(found)
            for _ in found:
                stream.run()
        assert bits.used["leading"] == pytest.approx(trials * mean, rel=0.02)
        assert all(abs(wins[place] / trials - 1 / 128) < hoeffding(trials) for place in range(128))


@pytest.mark.parametrize("name", SAMPLERS)
class TestBadInput:
    @pytest.mark.parametrize(
        ("elements", "number", "says"),
        [
            ([1, -1], 3, r"elements\[1\] must be between 0 and 2\*\*64 - 1, got -1"),
            ([2**64], 3, r"elements\[0\] must be between 0 and 2\*\*64 - 1"),
            ([0.5], 3, r"elements\[0\] must be a whole number, got 0.5"),
            (["a"], 3, r"elements\[0\] must be a whole number, got 'a'"),
            (5, 3, "elements: 5; give integers from 0"),
            ([1], -1, "num_samples must be >= 0, got -1"),
            ([1], 1.5, "num_samples must be a whole number, got 1.5"),
        ],
    )
    def test_elements_and_numbers(self, name, elements, number, says):
        with pytest.raises((ArgumentTypeError, ParameterError), match=says) as error:
            samples(name, elements, number)
        assert "\n" not in str(error.value)

    def test_bits(self, name):
        with pytest.raises((ArgumentTypeError, ParameterError), match="bits: 1; give a RandomBits"):
            list(SAMPLERS[name]([1], 1, 1))

    def test_integers_of_numpy_are_those_of_python(self, name):
        elements = some(30)
        assert samples(name, np.array(elements, np.uint64), np.int64(9)) == samples(name, elements, 9)


@pytest.mark.parametrize("buffer", [1, 0, -5, 2.5])
def test_a_buffer_that_is_none(buffer):
    with pytest.raises((ArgumentTypeError, ParameterError), match="buffer must be"):
        list(prefixes([1, 2], 3, RandomBits(), buffer))


class TestPieces:
    def test_bits_are_those_of_the_words(self):
        """Taken in pieces, across words, as at once; runs are what lies between ones."""
        whole = RandomBits().of(3, 4, "x").take(500)
        stream = RandomBits().of(3, 4, "x")
        parts, at = 0, 0
        for size in (1, 63, 64, 65, 7, 0, 128, 172):
            parts |= stream.take(size) << at
            at += size
        assert (parts, at) == (whole, 500)
        text, stream = format(whole, "0500b")[::-1], RandomBits().of(3, 4, "x")
        for zeros in text.split("1")[:-1]:
            assert stream.run() == len(zeros)

    def test_a_run_through_words_of_zeros(self):
        counted = Counter()
        stream = lazy.BitStream(0, counted, "x")  # its first word has no one
        first = stream.run()
        assert first >= 64 and counted["x"] == first + 1

    def test_lowest_one(self):
        """All 64 powers, whatever stands above. By the mask of 20 digits that is printed, the same: what is above 64
        bits is in no word, so the misprint does no harm where integers are long, and no C compiler takes it."""
        for place in range(64):
            for above in (0, 2**64 - 1):
                assert lazy.lowest_one((1 << place | above << place + 1) & 2**64 - 1) == place
        assert len(f"{lazy.MASKS[1]:X}") == 16 and lazy.MASKS[1] == int("C" * 20, 16) & 2**64 - 1

    @pytest.mark.parametrize(("places", "number"), [(128, 0), (128, 1), (128, 2)])
    def test_every_set_of_places_has_one_rank(self, places, number):
        found = {lazy._combination(rank, number) for rank in range(math.comb(places, number))}
        assert len(found) == math.comb(places, number)
        assert all(len(set(each)) == number and all(0 <= place < places for place in each) for each in found)
