"""Search results hidden by their features: against the greedy rule, from sketch files, and what chance does."""

import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from grids import fewer
from hypothesis import given, settings, strategies as st
from witnesses import greedy

from neardup_gpu import BottomK, MinHash, NeardupError, Recipe, papers, theory
from neardup_gpu.papers import suppress
from neardup_gpu.sketches import sketch

BING = Recipe(method=MinHash(filter="bing"), threshold=0.9)
ROWS = st.integers(0, 25).flatmap(lambda n: st.lists(st.lists(st.integers(0, 2), min_size=6, max_size=6), max_size=n))


@settings(max_examples=fewer(200), deadline=None)
@given(ROWS, st.integers(1, 6), st.sampled_from([16, 64]))
def test_what_shows_is_what_the_greedy_rule_keeps(rows, r, bits):
    recipe = Recipe(method=MinHash(filter=(6, 5, r), supershingle_bits=bits))
    found = suppress(rows, recipe).tolist()
    alike = [sum(map(int.__eq__, a, b)) >= r for a in rows for b in rows]
    pairs = [(i, j) for j in range(len(rows)) for i in range(j) if alike[i * len(rows) + j]]
    shown = greedy(len(rows), pairs)
    assert [by == row for row, by in enumerate(found)] == shown
    for row, by in enumerate(found):
        if by != row:
            assert by == min(i for i, j in pairs if j == row and shown[i])


def test_a_hidden_row_hides_none():
    chain = [[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 2, 2], [3, 3, 1, 1, 2, 2]]
    assert suppress(chain, BING).tolist() == [0, 0, 2]


def test_rows_without_shingles_show_and_hide_none():
    same = np.zeros((4, 6), np.uint16)
    assert suppress(same, BING).tolist() == [0, 0, 0, 0]
    assert suppress(same, BING, present=[False, True, False, True]).tolist() == [0, 1, 2, 1]


@pytest.mark.parametrize("num_rows", [255, 256, 257, 600])
def test_the_first_of_many_rows_hides(num_rows):
    """Rows are compared with 256 above them at a time."""
    features = np.arange(num_rows * 6, dtype=np.uint16).reshape(-1, 6)
    for place in (0, 254, 255, 256, num_rows - 2):
        if place < num_rows - 1:
            last = np.append(features[:-1], features[place : place + 1], axis=0)
            assert suppress(last, BING).tolist() == [*range(num_rows - 1), place]


def test_of_no_rows():
    assert suppress(np.empty((0, 6), np.uint16), BING).tolist() == suppress([], BING).tolist() == []


@pytest.mark.parametrize(
    ("features", "recipe", "message"),
    [
        (np.zeros((3, 5), np.uint16), BING, "features: uint16 of shape"),
        (np.full((1, 6), 1 << 16, np.uint64), BING, "features: uint64 of shape"),
        (np.zeros((3, 6), np.uint16), BING.with_(supershingle_bits=64), "uint64 of shape .* is needed"),
        ([[1, 2, 3, 4, 5, -1]], BING, "features"),
        (
            np.zeros((3, 6), np.uint16),
            Recipe(),
            "recipe.method: an Exact; give a MinHash; other methods have no features",
        ),
        (np.zeros((3, 6), np.uint16), Recipe(method=BottomK()), "recipe.method: a BottomK; give a MinHash"),
        (np.zeros((3, 6), np.uint16), BING.method, "recipe: a MinHash; give a Recipe"),
    ],
)
def test_what_is_refused(features, recipe, message):
    with pytest.raises(NeardupError, match=message):
        suppress(features, recipe)


def test_features_of_16_bits_take_12_bytes_a_document(tmp_path):
    """By the filter of Bing; and what is read back is what pair tables take."""
    words = [f"w{i}" for i in range(400)]
    texts = [" ".join(words), " ".join(words[:-1]), " ".join(words[200:]), ""]
    sketch(pa.table({"text": texts}), tmp_path / "s.parquet", recipe=BING)
    table = pq.read_table(tmp_path / "s.parquet")
    column = table["supershingles"].combine_chunks()
    assert len(column.flatten()) * column.type.value_type.bit_width == 3 * 12 * 8  # and nothing for the empty text
    present = [row is not None for row in column.to_pylist()]
    features = [row or [0] * 6 for row in column.to_pylist()]
    assert suppress(features, Recipe.of(table.schema, "s"), present=present).tolist() == [0, 0, 2, 3]


@pytest.mark.parametrize("bits", [16, 64])
def test_the_column_of_a_sketch_file_as_it_is(bits, tmp_path):
    """Null lists are of rows without shingles, which show and hide none, also where slices begin at any row."""
    recipe = Recipe(method=MinHash(filter="bing", supershingle_bits=bits), threshold=0.9)
    sketch({"text": ["", "a b c d e f", "a b c d e f", "", "x y z"]}, output=tmp_path / "s.parquet", recipe=recipe)
    column = pq.read_table(tmp_path / "s.parquet")["supershingles"]
    halves = pa.chunked_array([column.combine_chunks()[:2], column.combine_chunks()[2:]])
    for each in (column, column.combine_chunks(), halves):
        assert suppress(each, recipe).tolist() == [0, 1, 1, 3, 4]
        assert suppress(each, recipe, present=[True, False, True, True, True]).tolist() == [0, 1, 2, 3, 4]
        assert suppress(each[2:], recipe).tolist() == [0, 1, 2] and suppress(each[:0], recipe).tolist() == []
    kind = pa.list_(column.type.value_type, 6)
    with pytest.raises(NeardupError, match="features: lists with a null in them"):
        suppress(pa.array([[1, 2, 3, 4, 5, None]], kind), recipe)
    with pytest.raises(NeardupError, match="features: not all lists have 6 values"):
        suppress(pa.array([[1] * 6, [1] * 5], pa.large_list(pa.uint64())), recipe)
    for wrong in (pa.array([[1] * 5], pa.list_(pa.uint16(), 5)), pa.array([["x"] * 6], pa.list_(pa.string(), 6))):
        with pytest.raises(NeardupError, match=r"^features: .* is needed"):
            suppress(wrong, recipe)


class TestTheory:
    """Numbers of Manasse 6.1, recomputed; misprints by their numbers are in test_errata.py."""

    @pytest.mark.parametrize(
        ("x", "bing", "altavista"), [(0.95, 0.86633, 0.878638), (0.75, 0.03129, 0.00454), (0.7, 0.00898, 0.000678)]
    )
    def test_the_two_filters(self, x, bing, altavista):
        assert theory.pass_probability(x, *theory.PRESETS["bing"]) == pytest.approx(bing, abs=6e-6)
        assert theory.pass_probability(x, *theory.PRESETS["altavista"]) == pytest.approx(altavista, abs=6e-6)
        p = Fraction(x).limit_denominator(100) ** 5
        exact = sum(math.comb(6, i) * p**i * (1 - p) ** (6 - i) for i in (4, 5, 6))
        assert theory.pass_probability(x, 6, 5, 4) == pytest.approx(float(exact), rel=1e-9)

    def test_half(self):
        assert theory.half_point(6, 5, 4) == pytest.approx(0.89634, abs=5e-6)

    def test_accidents_of_random_features(self):
        """Rows of random features of 4 bits, by the same rule: one pair in 1 / P(2**-4); Hoeffding, failure 1e-9."""
        features, pairs = np.random.default_rng(5).integers(0, 16, (2, 200_000, 6), np.uint16), 200_000
        alike = ((features[0] == features[1]).sum(axis=1) >= 2).mean()
        assert abs(alike - theory.pass_probability(2**-4, 6, 1, 2)) < papers.hoeffding(pairs)
        some = features[:, :2000]
        found = [suppress(some[:, i], BING.with_(filter=(6, 5, 2)))[1] == 0 for i in range(2000)]
        assert found == ((some[0] == some[1]).sum(axis=1) >= 2).tolist()
