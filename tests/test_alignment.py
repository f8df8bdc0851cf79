"""The words that two texts have in common, against the definitions of the values that they explain."""

import random
import time
import unicodedata
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from grids import fewer
from hypothesis import given, settings, strategies as st

from neardup_gpu import Recipe, Shingles, compare, dedup
from neardup_gpu.results.alignment import ALIGNED, ALONE, align, words_of
from neardup_gpu.results.diff import differences
from neardup_gpu.stages import shingle, tokenize

BLOCKS = st.lists(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=9), min_size=1, max_size=4)
"""Blocks of words of which texts are made."""


@st.composite
def texts_of_blocks(draw):
    """Two texts that repeat the same few blocks, in different orders, with words of their own."""
    blocks = draw(BLOCKS)
    texts = []
    for own in ("x", "y"):
        chosen = draw(st.lists(st.sampled_from([*blocks, [own]]), min_size=1, max_size=8))
        texts.append([word for block in chosen for word in block])
    return texts


def windows(words, shingles):
    """The shingles or spots of a text, each with the places of its words."""
    size, number = shingles.size, len(words)
    if shingles.kind == "spots":
        followers = [place for place, word in enumerate(words) if word != "a"]
        chains = []
        for place, word in enumerate(words):
            after = [other for other in followers if other > place][:size]
            if word == "a" and len(after) == size:
                chains.append((place, *after))
        if chains:
            return chains
    if shingles.kind == "circular":
        return [tuple((place + i) % number for i in range(size)) for place in range(number)]
    return [tuple(range(place, place + min(size, number))) for place in range(max(1, number - size + 1))]


def elements(words, shingles):
    """The set of a text's elements, from the definition."""
    found = [tuple(words[place] for place in places) for places in windows(words, shingles)]
    if shingles.kind == "bag":
        seen = Counter()
        for number, element in enumerate(found):
            seen[element] += 1
            found[number] = (element, seen[element])
    return set(found)


def occurs(run, words):
    return any(words[place : place + len(run)] == run for place in range(len(words) - len(run) + 1))


def runs_of(marks):
    """(mark, start, end) of neighbouring words of one mark."""
    ends = [*(np.flatnonzero(np.diff(marks)) + 1).tolist(), len(marks)]
    return [(int(marks[start]), start, end) for start, end in zip([0, *ends], ends, strict=False)]


KINDS = st.builds(Shingles, st.integers(1, 5), st.sampled_from(["set", "bag", "circular"])) | st.builds(
    lambda size: Shingles(size, "spots", ["a"]), st.integers(1, 3)
)


@settings(deadline=None, max_examples=fewer(400))
@given(texts=texts_of_blocks(), shingles=KINDS)
def test_common_words_are_equal_runs_and_as_many_as_the_value_requires(texts, shingles):
    """In both directions: resemblance and the containment of either text in the other state the same number."""
    recipe = Recipe(shingles=shingles)
    a, b = texts
    found = align(*(words_of(" ".join(words), recipe).tokens for words in texts), recipe)
    end_a = end_b = 0
    for start_a, start_b, length in found.blocks:
        assert start_a >= end_a and start_b >= end_b and length > 0
        assert a[start_a : start_a + length] == b[start_b : start_b + length]
        end_a, end_b = start_a + length, start_b + length
    assert (found.first == ALIGNED).sum() == (found.second == ALIGNED).sum() == sum(block[2] for block in found.blocks)
    shared = len(elements(a, shingles) & elements(b, shingles))
    sets = shingle(tokenize([" ".join(a), " ".join(b)], recipe, backend="cpu"), recipe, backend="cpu")
    assert shared == len(np.intersect1d(sets[0], sets[1]))  # the number that the decision states
    for mine, other, marks in ((a, b, found.first), (b, a, found.second)):
        for mark, start, end in runs_of(marks):
            assert mark <= ALIGNED or occurs(mine[start:end], other)
        common = int((marks != ALONE).sum())
        is_spot = shingles.kind == "spots" and len(windows(mine, shingles)[0]) == shingles.size + 1
        assert common >= (min(len(mine), shared + shingles.size + is_spot - 1) if shared else 0)
        every = Shingles(shingles.size) if shingles.kind == "bag" else shingles
        both = elements(mine, every) & elements(other, every)
        are_marked = set()
        for places in windows(mine, shingles):
            element = tuple(mine[place] for place in places)
            if element in both and (marks[list(places)] != ALONE).all():
                are_marked.add(element)
            assert mine is a or element not in both or (marks[list(places)] != ALONE).all()
        assert are_marked == both
        if both == elements(mine, every) and shingles.kind != "spots":
            assert (marks != ALONE).all()


@settings(deadline=None, max_examples=fewer(200))
@given(texts=texts_of_blocks(), shingles=KINDS)
def test_a_full_diff_has_these_words(texts, shingles):
    """What is shown rebuilds both texts, and its common words are at least as many as the value requires."""
    a, b = texts
    shown, notes = differences(" ".join(a), " ".join(b), Recipe(shingles=shingles), full=True)
    if not shown:
        assert a == b and notes
        return
    shared = len(elements(a, shingles) & elements(b, shingles))
    for mine, other, alone, elsewhere in ((a, b, "removed", "moved_from"), (b, a, "added", "moved_to")):
        parts = [(op, words.split()) for op, words in shown if op in ("equal", alone, elsewhere)]
        assert [word for _, words in parts for word in words] == mine
        common = [words for op, words in parts if op != alone]
        assert all(occurs(words, other) for words in common)
        assert sum(map(len, common)) >= (min(len(mine), shared + shingles.size - 1) if shared else 0)


@settings(deadline=None, max_examples=fewer(300))
@given(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
    | st.text("aé\u0301ñ½㍿ﷺ漢カ゚ｶﾞ가ﾡกำ\u200b\u00ad'_-. ", max_size=30)
)
def test_words_start_where_the_tokens_of_the_decision_do(text):
    recipe = Recipe()
    words = words_of(text, recipe)
    assert len(words.starts) == len(words.tokens) + 1
    assert words.starts[-1] == len(text) and (np.diff(words.starts) >= 0).all()
    if unicodedata.normalize("NFKD", text) != text:  # a character may be parts of several tokens, such as "½"
        return
    for number, (start, end) in enumerate(zip(words.starts, words.starts[1:], strict=False)):
        assert tokenize([text[start:end]], recipe, backend="cpu").values.tolist() == [words.tokens[number]]


PASSAGE = " ".join(f"passage{i}" for i in range(60))
FILLER = [" ".join(f"{name}{i}" for i in range(80)) for name in ("one", "two", "three")]


class TestContained:
    """A passage of containment 1.0 is shown as common."""

    @pytest.mark.parametrize(
        "kept",
        [
            f"{FILLER[0]} {PASSAGE} {FILLER[1]} {PASSAGE} {FILLER[2]}",
            " ".join([FILLER[0], *[PASSAGE] * 30, FILLER[1]]),
            f"{PASSAGE} {FILLER[0]} {PASSAGE}",
        ],
    )
    def test_a_passage_that_is_repeated(self, kept):
        """Its words are unique in neither text together."""
        table = pa.table({"text": [kept, PASSAGE]})
        found = dedup(table, method="containment", threshold=0.9).explain(1, full=True)
        assert found.containment == 1.0
        assert [op for op, _ in found.words if op in ("added", "moved_to")] == []
        assert sum(len(words.split()) for op, words in found.words if op == "equal") == 60

    def test_blocks_in_another_order(self):
        """No alignment in order has them all; the others stand elsewhere."""
        blocks = [" ".join(f"{name}{i}" for i in range(50)) for name in "abcd"]
        seams = [f"{' '.join(x.split()[-4:])} {' '.join(y.split()[:4])}" for x in blocks for y in blocks]
        kept = " ".join([*blocks, *seams])
        table = pa.table({"text": [kept, " ".join(blocks[::-1])]})
        found = dedup(table, method="containment", threshold=0.9).explain(1, full=True)
        assert found.containment == 1.0
        assert {op for op, _ in found.words} == {"equal", "moved_from", "moved_to", "removed"}

    def test_a_passage_deep_in_a_long_text(self):
        """It lies far after the first difference."""
        kept = " ".join(f"word{i}" for i in range(300_000))
        passage = " ".join(f"word{i}" for i in range(250_000, 250_100))
        shown, notes = differences(kept, passage, Recipe(), full=False)
        assert [op for op, _ in shown if op == "added"] == [] and notes == []


def test_case_and_punctuation_do_not_count():
    """The decision does not compare them, so a pair of resemblance 1.0 has no words that differ."""
    found = compare("To be, or NOT to be.", "to be or not (to be)")
    assert (found.resemblance, found.words) == (1.0, [])
    assert found.notes == ["the words are the same; only case, punctuation and white space differ"]
    found = compare("To be, or not to be well-known", "to be or not to be well-worn", full=True)
    assert found.words == [("equal", "To be, or not to be well-"), ("removed", "known"), ("added", "worn")]
    assert found.notes == ["2 common words are written with other case or punctuation in the other text"]


def test_texts_without_words():
    assert compare("...", "!").words == [("removed", "..."), ("added", "!")]
    assert compare("", "a b").words == [("added", "a b")]


@pytest.mark.parametrize("size", [1, 5])
@pytest.mark.parametrize("kind", ["blocks", "one word", "periodic", "edited", "unrelated"])
def test_the_time_is_near_linear(kind, size):
    """30,000 words with many repeats take about 0.3 s of the processor; ten times that is allowed."""
    draw = random.Random(5)
    many = [f"word{draw.randrange(20_000)}" for _ in range(30_000)]
    blocks = [many[start : start + 50] for start in range(0, 2_000, 50)]
    a, b = {
        "blocks": [[word for _ in range(600) for word in draw.choice(blocks)] for _ in range(2)],
        "one word": [["x", *["a"] * 30_000], ["y", *["a"] * 27_000]],
        "periodic": [["a", "b", "c"] * 10_000, ["b", "a", "c"] * 10_000],
        "edited": [many, [word if number % 7 else "new" for number, word in enumerate(many)]],
        "unrelated": [many, draw.sample(many, len(many))],
    }[kind]
    texts, recipe = (" ".join(a), " ".join(b)), Recipe(shingles=Shingles(size))
    began = time.process_time()
    differences(*texts, recipe, full=False)
    assert time.process_time() - began < 3
