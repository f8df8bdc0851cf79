"""Shingles: what each shingling gives, small enough to check by eye, and what it means for whole documents."""

import numpy as np
import pytest
from grids import fewer
from hypothesis import given, settings, strategies as st
from witnesses import fingerprint, token_strings

from neardup_gpu import Recipe, Shingles, compare
from neardup_gpu.kernels import shingles
from neardup_gpu.stages import Ragged, shingle, tokenize

Q, BAG_Q = (np.uint64(q | 1 << 63) for q in (0x1234_5678_9ABC_DEF1, 0x0FED_CBA9_8765_4321))
BOTH = pytest.mark.parametrize("function", [shingles.reference, shingles.cpu], ids=["reference", "cpu"])
A, B, C, D, E = range(101, 106)


def of(words, q=Q):
    """Fingerprint of a window of tokens, by the witness."""
    return fingerprint(b"".join(word.to_bytes(8, "little") for word in words), q)


def run(function, rows, w, mode="set"):
    tokens = Ragged.from_rows(rows, np.uint64)
    found = Ragged(*function(tokens.values, tokens.offsets, w, mode, Q, BAG_Q))
    return [found[row].tolist() for row in range(len(found))]


@BOTH
class TestByEye:
    def test_every_w_consecutive_tokens(self, function):
        assert run(function, [[A, B, C, D]], 3) == [[of([A, B, C]), of([B, C, D])]]

    def test_a_short_document_has_one_shingle_of_all_its_tokens(self, function):
        assert run(function, [[A], [A, B], [A, B, C]], 3) == [[of([A])], [of([A, B])], [of([A, B, C])]]

    def test_a_document_without_tokens_has_none(self, function):
        for mode in ("set", "bag", "circular"):
            assert run(function, [[], [A, B, C], []], 2, mode)[::2] == [[], []]
            assert run(function, [], 2, mode) == []

    def test_repeats_stay_in_text_order(self, function):
        assert run(function, [[A, A, A, B]], 2) == [[of([A, A]), of([A, A]), of([A, B])]]

    def test_bags_number_the_occurrences_from_1(self, function):
        aa, ab = of([A, A]), of([A, B])
        expected = [
            of([aa, 1], BAG_Q),
            of([aa, 2], BAG_Q),
            of([ab, 1], BAG_Q),
            of([of([B, A]), 1], BAG_Q),
            of([aa, 3], BAG_Q),
        ]
        assert run(function, [[A, A, A, B, A, A], [A, A]], 2, "bag") == [expected, expected[:1]]

    def test_circular_text_runs_on_into_its_beginning(self, function):
        assert run(function, [[A, B, C]], 2, "circular") == [[of([A, B]), of([B, C]), of([C, A])]]

    def test_circular_text_runs_on_as_often_as_needed(self, function):
        assert run(function, [[A, B]], 5, "circular") == [[of([A, B, A, B, A]), of([B, A, B, A, B])]]
        assert run(function, [[A]], 3, "circular") == [[of([A, A, A])]]

    @pytest.mark.parametrize("w", [1, 16, 17, 40])
    def test_other_widths(self, function, w):
        words = list(range(1, 60))
        assert run(function, [words], w) == [[of(words[i : i + w]) for i in range(60 - w)]]


@settings(max_examples=fewer(60), deadline=None)
@given(st.lists(st.sampled_from([A, B, C, D, E]), max_size=30), st.integers(1, 6))
def test_circular_shingles_do_not_depend_on_where_the_text_begins(words, w):
    turned = words[len(words) // 3 :] + words[: len(words) // 3]
    first, second = run(shingles.cpu, [words, turned], w, "circular")
    assert sorted(first) == sorted(second)


@settings(max_examples=fewer(60), deadline=None)
@given(st.lists(st.sampled_from([A, B]), max_size=40), st.integers(1, 4))
def test_a_bag_has_no_repeats_and_as_many_shingles_as_the_text(words, w):
    (bag,) = run(shingles.cpu, [words], w, "bag")
    assert len(set(bag)) == len(bag) == len(run(shingles.cpu, [words], w)[0])


def test_the_stages_shingle_text_as_the_definition_says():
    texts = ["The cat sat on the mat, the cat sat on the mat!", "漢字かな", "", "ok"]
    recipe = Recipe(threshold=0.8)
    found = shingle(tokenize(texts, recipe), recipe)
    sizes = []
    for text in texts:
        words = token_strings(text)
        sizes.append(len({tuple(words[i : i + 5]) for i in range(max(1, len(words) - 4))}) if words else 0)
    assert [len(set(found[row].tolist())) for row in range(len(found))] == sizes == [6, 1, 0, 1]


class TestPrinted:
    """Examples of the papers and slides."""

    def test_circular_phrases(self):
        """Manasse 2.1: eight words have eight phrases of three, the last two of them running on."""
        text = "Now is the time for all good men"
        recipe = Recipe(shingles=Shingles(3, "circular"))
        found = shingle(tokenize([text], recipe), recipe)[0].tolist()
        words = text.split()
        phrases = [" ".join((words + words)[i : i + 3]) for i in range(8)]
        assert phrases[6:] == ["good men Now", "men Now is"]
        plain = Recipe(shingles=Shingles(3))
        assert found == [shingle(tokenize([phrase], plain), plain)[0].tolist()[0] for phrase in phrases]
        assert len(set(found)) == 8

    def test_jack_london(self):
        """The slides: bigrams of three sentences; 3 of 8 are shared, and none."""
        first = "Jack London travelled to Oakland"
        second = "Jack London travelled to the city of Oakland"
        third = "Jack travelled from Oakland to London"
        near, far = (compare(first, other, shingles=Shingles(2)) for other in (second, third))
        assert (near.num_a, near.num_b, far.num_b) == (4, 7, 5)
        assert (near.shared, near.resemblance) == (3, 3 / 8)
        assert (far.shared, far.resemblance) == (0, 0)

    @pytest.mark.parametrize(("kind", "alike"), [("set", True), ("bag", True), ("circular", False)])
    def test_texts_that_are_not_the_same_may_have_the_same_shingles(self, kind, alike):
        """Broder 1997, section 2: (a,c,a,b,a) and (a,b,a,c,a), w = 2; circular ones add aa alone, here to both."""
        found = compare("a c a b a", "a b a c a", shingles=Shingles(2, kind))
        assert found.resemblance == 1
        assert found.num_a == (4 if alike else 5)


@settings(max_examples=fewer(100), deadline=None)
@given(*[st.lists(st.sampled_from("abc"), min_size=1, max_size=25)] * 2, st.integers(1, 3))
def test_resemblance_of_bags_is_that_of_counts(one, other, w):
    """Manasse 5.1: the sum of minima divided by the sum of maxima, over how often each shingle occurs."""
    counts = []
    for words in (one, other):
        found: dict[tuple, int] = {}
        for i in range(max(1, len(words) - w + 1)):
            key = tuple(words[i : i + w])
            found[key] = found.get(key, 0) + 1
        counts.append(found)
    a, b = counts
    least = sum(min(a.get(key, 0), b.get(key, 0)) for key in a | b)
    most = sum(max(a.get(key, 0), b.get(key, 0)) for key in a | b)
    found = compare(" ".join(one), " ".join(other), shingles=Shingles(w, "bag"))
    assert (found.shared, found.num_a + found.num_b - found.shared) == (least, most)
    assert found.resemblance == least / most
