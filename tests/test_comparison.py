"""Two texts compared, by the definitions of both measures."""

import pytest
from hypothesis import given, settings, strategies as st

from neardup_gpu import Recipe, Shingles, compare, dedup
from neardup_gpu.errors import ArgumentTypeError
from neardup_gpu.results.diff import wrapped

WORDS = st.lists(st.sampled_from("abcde"), max_size=12)


@settings(deadline=None)
@given(a=WORDS, b=WORDS, size=st.integers(1, 4))
def test_measures_are_those_of_shingle_sets(a, b, size):
    def shingles(words):
        return {tuple(words[i : i + size]) for i in range(max(1, len(words) - size + 1))} if words else set()

    mine, theirs = shingles(a), shingles(b)
    found = compare(" ".join(a), " ".join(b), shingles=Shingles(size))
    shared, united = len(mine & theirs), len(mine | theirs)
    assert (found.shared, found.num_a, found.num_b) == (shared, len(mine), len(theirs))
    assert float(found) == found.resemblance == (shared / united if united else 0)
    assert found.containment_a == (shared / len(mine) if mine else 0)
    assert found.containment_b == (shared / len(theirs) if theirs else 0)


def test_it_is_what_dedup_verifies():
    texts = ["one two three four five six seven eight", "one two three four five six seven nine"]
    pairs = dedup({"text": texts}, recipe=Recipe(shingles=Shingles(3), threshold=0.1)).pairs
    assert pairs["resemblance"].to_pylist() == [compare(*texts, shingles=Shingles(3)).resemblance]


def test_the_words_in_which_they_differ():
    found = compare("to be or not to be", "to be or not to bee")
    assert [(op, text.strip()) for op, text in found.words if op != "equal"] == [("removed", "be"), ("added", "bee")]
    assert ">be</del>" in found._repr_html_()
    assert found.to_dict()["notes"] == found.notes


def test_html_is_escaped():
    assert "<script>" not in compare("<script>alert(1)</script> a", "b")._repr_html_()


@pytest.mark.parametrize(
    ("arguments", "options", "error"),
    [
        ((1, "a"), {}, ArgumentTypeError),
        (("a", None), {}, ArgumentTypeError),
        (("a", "b"), {"shingles": 5}, ArgumentTypeError),
        (("a", "b"), {"full": 1}, ArgumentTypeError),
    ],
)
def test_wrong_arguments(arguments, options, error):
    with pytest.raises(error):
        compare(*arguments, **options)


def test_lines_end_after_spaces_and_between_letters_of_scripts_without_spaces():
    text = "  one don't 漢字かな。カナ two-three\n\u0e01\u0e33\u0e01 one"
    lines = [line.plain for line in wrapped([("equal", text), ("cut", "... 5 words ...")], 6, True)]
    assert lines == [
        "one",
        "don't",
        "漢字か",
        "な。カ",
        "ナ",
        "two-three",
        "\u0e01\u0e33\u0e01",
        "one",
        "... 5",
        "words",
        "...",
    ]
    (line,) = wrapped([("equal", text)], 1000, True)
    assert line.plain == " ".join(text.split())
