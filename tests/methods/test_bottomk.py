"""Bottom-k sketches: estimates against sets, candidates against theory, the whole job and sketch files."""

import math
import random

import numpy as np
import pyarrow as pa
import pytest

from neardup_gpu import BottomK, Recipe, dedup
from neardup_gpu.errors import ParameterError, RecipeMismatchError
from neardup_gpu.sketches import pairs, sketch
from neardup_gpu.stages import Pairs, Ragged


def two_sets(num_shared, num_own, seed):
    """Two rows of random fingerprints: shared ones, and as many of each row's own."""
    values = np.random.default_rng(seed).integers(0, 2**64, num_shared + 2 * num_own, np.uint64)
    shared, a, b = np.split(values, [num_shared, num_shared + num_own])
    return Ragged.from_rows([np.append(shared, a), np.append(shared, b)], np.uint64)


def estimated(method, rows, seed=1):
    sketches = method.sketch(rows, seed=seed)
    return method.estimate(sketches, Pairs([0], [1]))


def corpus(seed, num_pages=60):
    """Texts of which some are copies with a few words changed."""
    draw = random.Random(seed)
    words = [f"w{i}" for i in range(3000)]
    texts = []
    for _ in range(num_pages):
        page = draw.choices(words, k=draw.randrange(20, 200))
        texts.append(" ".join(page))
        for _ in range(draw.randrange(3)):
            copy = list(page)
            copy[draw.randrange(len(copy))] = draw.choice(words)
            texts.append(" ".join(copy))
    return texts


class TestEstimate:
    @pytest.mark.parametrize(("num_shared", "num_own"), [(0, 7), (7, 0), (5, 3), (1, 1), (90, 5)])
    def test_small_unions_are_exact(self, num_shared, num_own):
        found = estimated(BottomK(s=100), two_sets(num_shared, num_own, 3))
        expected = num_shared / (num_shared + 2 * num_own)
        assert found.estimate[0] == found.low[0] == found.high[0] == expected

    def test_mean_over_permutations(self):
        """The mean of 400 estimates of s = 64 lies within Hoeffding's bound at probability 1e-9 of resemblance 0.8.

        |M(A) n M(B)| / s, which some give for it, would have a mean of about 0.87.
        """
        rows, method, trials = two_sets(4000, 500, 5), BottomK(s=64), 400
        found = np.mean([estimated(method, rows, seed).estimate[0] for seed in range(trials)])
        tolerance = math.sqrt(math.log(2 / 1e-9) / (2 * method.s * trials))
        assert tolerance < 0.03
        assert abs(found - 0.8) < tolerance

    def test_intervals_hold(self):
        """Each holds with 99%; of 300 more than 20 miss with a probability below 1e-9 (binomial tail)."""
        rows, method = two_sets(3000, 1000, 8), BottomK(s=50)
        each = [estimated(method, rows, seed) for seed in range(300)]
        missed = sum(not found.low[0] <= 0.6 <= found.high[0] for found in each)
        tail = sum(math.comb(300, i) * 0.01**i * 0.99 ** (300 - i) for i in range(21, 301))
        assert tail < 1e-9
        assert missed <= 20

    def test_rows_without_elements(self):
        rows = Ragged.from_rows([[], [1, 2]], np.uint64)
        assert estimated(BottomK(s=4), rows).estimate[0] == 0
        method = BottomK(s=4, leading=2)
        assert len(method.collide(method.keys(method.sketch(rows))).pairs) == 0


class TestCandidates:
    @pytest.mark.parametrize("backend", ["cpu", "reference"])
    def test_those_that_share_a_leading_element(self, backend):
        draw = np.random.default_rng(2)
        rows = Ragged.from_rows([draw.integers(0, 40, 12, np.uint64) for _ in range(60)], np.uint64)
        method = BottomK(s=8, leading=3, bucket_limit=1000)
        keys = method.keys(method.sketch(rows, backend=backend))
        found = method.collide(keys, backend=backend)
        leading = [set(row.tolist()) for row in keys]
        expected = [(i, j) for i in range(60) for j in range(i + 1, 60) if leading[i] & leading[j]]
        assert list(zip(found.pairs.left.tolist(), found.pairs.right.tolist(), strict=True)) == expected
        assert found.large_buckets == found.uncompared_pairs == 0
        left, right = np.triu_indices(60, 1)
        assert method.are_candidates(keys, left, right).sum() == len(expected)

    def test_limits(self):
        keys = np.full((9, 1), 5, np.uint64)
        found = BottomK(leading=1, bucket_limit=8, bucket_probe=2).collide(keys)
        assert (len(found.pairs), found.large_buckets, found.uncompared_pairs) == (28 + 2, 1, 36 - 30)
        assert found.crowded.tolist() == [True] * 9

    def test_documents_are_crowded_by_any_of_their_elements(self):
        keys = np.array([[1, 2], [2, 3], [2, 4], [3, 5], [6, 7]], np.uint64)
        found = BottomK(s=2, leading=2, bucket_limit=2, bucket_probe=1).collide(keys)
        assert found.crowded.tolist() == [True, True, True, False, False]

    @pytest.mark.parametrize(("threshold", "leading"), [(0.8, 3), (0.5, 7), (1.0, 1), (0.9, 2)])
    def test_leading_is_chosen_for_the_threshold(self, threshold, leading):
        recipe = Recipe(method="bottomk", threshold=threshold)
        assert recipe.method.leading == leading
        assert recipe.expected_recall >= 0.99
        assert leading == 1 or 1 - (1 - threshold) ** (leading - 1) < 0.99


class TestJob:
    @pytest.mark.parametrize("backend", ["cpu", "reference"])
    def test_decides_as_min_hash_does(self, backend):
        """With as many leading elements as these documents need, all pairs at the threshold are found."""
        texts = corpus(4)
        found = dedup({"text": texts}, method=BottomK(leading=40), engine=backend)
        other = dedup({"text": texts}, method="minhash", engine="cpu")
        assert found.documents.equals(other.documents)
        assert found.report["counts"]["removed_near"] > 20
        assert found.report["recall"]["sampled"]["recall"] == 1

    def test_sketches_and_pairs(self, tmp_path):
        texts = corpus(6, 30)
        texts += texts[:1]
        counts = sketch(
            {"text": texts}, output=tmp_path / "s.parquet", recipe=Recipe(method=BottomK(s=64), threshold=0.7)
        )
        assert counts["recipe"]["leading"] == 4
        table = pairs(tmp_path / "s.parquet", threshold=0.6)
        found = {(row["id_a"], row["id_b"]): row for row in table.to_pylist()}
        assert found[0, len(texts) - 1]["estimate"] == 1
        exact = dedup({"text": texts}, threshold=0.6).pairs.to_pylist()
        known = {(row["id_a"], row["id_b"]): row["resemblance"] for row in exact}
        missed = [not row["low"] <= known[pair] <= row["high"] for pair, row in found.items() if pair in known]
        assert len(missed) > 10
        assert math.comb(len(missed), 7) * 0.01**7 < 1e-6  # above the chance that seven 99% intervals miss
        assert sum(missed) < 7

    def test_sketches_of_another_size(self, tmp_path):
        for s in (32, 64):
            sketch({"text": ["a b c d e f"]}, method=BottomK(s=s), output=tmp_path / f"{s}.parquet")
        with pytest.raises(RecipeMismatchError, match=r"64\.parquet: made with s = 64, .*32\.parquet with 32"):
            pairs([tmp_path / "32.parquet", tmp_path / "64.parquet"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"s": 0}, "s must be between 1 and"),
        ({"leading": 201}, "leading must be between 1 and 200"),
        ({"leading": 2, "recall": 0.9}, "leading and recall"),
        ({"recall": 1.0}, "recall"),
        ({"bucket_limit": 1}, "bucket_limit"),
    ],
)
def test_settings(settings, message):
    with pytest.raises(ParameterError, match=message):
        BottomK(**settings)


def test_a_threshold_that_needs_more_elements():
    with pytest.raises(ParameterError, match=r"s must be >= 44 to find the share .* at threshold 0\.1, got 20"):
        Recipe(method=BottomK(s=20), threshold=0.1)


def test_recipe_round_trip():
    recipe = Recipe(method=BottomK(s=50), threshold=0.6, seed=3)
    assert Recipe.from_json(recipe.to_json()) == recipe
    assert recipe.with_(recall=0.9).method.leading == 3
    assert isinstance(recipe.method.schema()["smallest"], pa.DataType)
