"""The exact join of a user's own sets, against a comparison of all pairs."""

from itertools import combinations

import numpy as np
import pytest
from grids import fewer
from hypothesis import given, settings, strategies as st

from neardup_gpu import Recipe, Shingles, dedup
from neardup_gpu.data import Ragged
from neardup_gpu.errors import ArgumentTypeError, ParameterError
from neardup_gpu.stages import join, shingle, tokenize, verify

ROWS = st.lists(st.lists(st.integers(0, 12), max_size=9), max_size=12)
THRESHOLDS = st.sampled_from([0.1, 0.5, 0.6, 2 / 3, 0.8, 1.0])


def all_pairs(rows, threshold, measure):
    """Compare every two rows: {(left, right): value}."""
    sets, found = [set(row) for row in rows], {}
    for i, j in combinations(range(len(rows)), 2):
        a, b = sets[i], sets[j]
        if not a or not b:
            continue
        if measure == "resemblance":
            value = len(a & b) / len(a | b)
        else:
            value = len(a & b) / min(len(a), len(b))
        if value >= threshold:
            found[i, j] = value
    return found


def joined(rows, threshold, **options):
    found = join(Ragged.from_rows(rows, np.uint64), threshold, **options)
    pairs = list(zip(found.pairs.left.tolist(), found.pairs.right.tolist(), strict=True))
    assert pairs == sorted(set(pairs))
    return dict(zip(pairs, found.resemblance.tolist(), strict=True))


@settings(max_examples=fewer(60), deadline=None)
@given(rows=ROWS, threshold=THRESHOLDS, measure=st.sampled_from(["resemblance", "containment"]))
def test_every_pair_is_found(rows, threshold, measure):
    assert joined(rows, threshold, measure=measure, backend="cpu") == all_pairs(rows, threshold, measure)


@pytest.mark.parametrize("measure", ["resemblance", "containment"])
def test_the_definition_of_the_kernels(measure):
    rows = [[1, 2, 3], [3, 2, 1, 4], [], [7, 7], [7], [2**64 - 1, 1, 2, 3]]
    found = joined(rows, 0.5, measure=measure, backend="reference")
    assert found == all_pairs(rows, 0.5, measure) == joined(rows, 0.5, measure=measure, backend="cpu")


def test_small_numbers_are_spread():
    """The elements 0 to 2,999 have equal upper bits, by which a table counts them."""
    draw = np.random.default_rng(1)
    rows = [draw.choice(3_000, 40, replace=False).tolist() for _ in range(300)]
    rows += [[*row[:36], 5_000 + i] for i, row in enumerate(rows[:100])]
    found = joined(rows, 0.8, backend="cpu")
    assert found == all_pairs(rows, 0.8, "resemblance") and len(found) >= 100


def test_pairs_are_those_of_a_job():
    draw = np.random.default_rng(2)
    words = [f"w{i}" for i in range(60)]
    texts = [" ".join(draw.choice(words, 30)) for _ in range(40)]
    texts += [" ".join([*text.split()[:27], "x", "y", "z"]) for text in texts[:20]]
    recipe = Recipe(shingles=Shingles(2), threshold=0.6, max_partners=None)
    shingles = shingle(tokenize(texts, recipe), recipe, backend="cpu")
    found, pairs = join(shingles, 0.6, backend="cpu"), dedup({"text": texts}, recipe=recipe, engine="cpu").pairs
    listed = sorted(sorted(pair) for pair in zip(pairs["id_a"].to_pylist(), pairs["id_b"].to_pylist(), strict=True))
    assert listed == [list(pair) for pair in zip(found.pairs.left.tolist(), found.pairs.right.tolist(), strict=True)]
    again = verify(shingles, found.pairs, 0.6, backend="cpu")
    assert np.array_equal(again.resemblance, found.resemblance) and len(listed) >= 20


def test_nothing_to_join():
    assert joined([], 0.5) == joined([[], []], 0.5) == joined([[1], [2]], 0.5) == {}


def test_what_is_no_set_of_rows():
    rows = Ragged.from_rows([[1], [1]], np.uint64)
    with pytest.raises(ParameterError, match="threshold must be > 0"):
        join(rows, 0)
    with pytest.raises(ParameterError, match="measure 'cosine' is not one of resemblance, containment"):
        join(rows, 0.5, measure="cosine")
    with pytest.raises(ArgumentTypeError, match="shingles"):
        join([[1], [1]], 0.5)
    with pytest.raises(ParameterError, match="backend"):
        join(rows, 0.5, backend="tpu")
