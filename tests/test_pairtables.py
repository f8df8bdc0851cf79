"""Pair tables find what they promise, and count what a limit leaves out."""

from itertools import combinations
from math import comb

import numpy as np
import pytest

from neardup_gpu.kernels import pairtables

POLY = np.uint64(0xD800000000000000)  # x**64 + x**4 + x**3 + x + 1
BACKENDS = [pairtables.reference, pairtables.cpu]


def shared_features(features):
    """{(a, b): number of equal features} for all pairs of rows, by brute force."""
    rows = range(len(features))
    return {(a, b): int((features[a] == features[b]).sum()) for a, b in combinations(rows, 2)}


def pairs_of(left, right):
    return list(zip(left.tolist(), right.tolist(), strict=True))


@pytest.mark.parametrize("find", BACKENDS, ids=["reference", "cpu"])
@pytest.mark.parametrize(("k", "r"), [(6, 1), (6, 2), (6, 4), (6, 6), (14, 1)])
def test_a_pair_collides_exactly_when_it_shares_r_features(find, k, r):
    generator = np.random.default_rng(k * r)
    features = generator.choice(generator.integers(0, 2**64, 12, np.uint64), (80, k))
    present = generator.random(80) < 0.9
    left, right, num_large, num_uncompared = find(features, present, r, POLY, 1000, 10)
    shared = shared_features(features)
    expected = [pair for pair, n in shared.items() if n >= r and present[list(pair)].all()]
    assert pairs_of(left, right) == sorted(expected)
    assert (num_large, num_uncompared) == (0, 0)


def test_a_feature_in_another_position_is_another_feature():
    features = np.array([[1, 2], [2, 1]], np.uint64)
    left, _, _, _ = pairtables.cpu(features, np.ones(2, bool), 1, POLY, 1000, 10)
    assert len(left) == 0


@pytest.mark.parametrize("find", BACKENDS, ids=["reference", "cpu"])
def test_a_large_bucket_is_compared_with_its_first_rows(find):
    features = np.array([[5], [6], [5], [5], [5], [6], [5]], np.uint64)
    left, right, num_large, num_uncompared = find(features, np.ones(7, bool), 1, POLY, 4, 2)
    assert pairs_of(left, right) == [(0, 2), (0, 3), (0, 4), (0, 6), (1, 5), (2, 3), (2, 4), (2, 6)]
    assert (num_large, num_uncompared) == (1, comb(5, 2) - 7)


@pytest.mark.parametrize("find", BACKENDS, ids=["reference", "cpu"])
def test_a_bucket_at_its_limit_is_compared_whole(find):
    features = np.full((4, 1), 5, np.uint64)
    assert find(features, np.ones(4, bool), 1, POLY, 4, 1)[2:] == (0, 0)
    assert find(features, np.ones(4, bool), 1, POLY, 3, 1)[2:] == (1, 3)


@pytest.mark.parametrize("find", BACKENDS, ids=["reference", "cpu"])
def test_a_later_table_finds_what_a_large_bucket_left_out(find):
    features = np.array([[5, 1], [5, 2], [5, 3], [5, 3]], np.uint64)
    left, right, num_large, num_uncompared = find(features, np.ones(4, bool), 1, POLY, 3, 1)
    assert pairs_of(left, right) == [(0, 1), (0, 2), (0, 3), (2, 3)]
    assert (num_large, num_uncompared) == (1, 3)


def test_identical_rows_cost_the_probe_and_not_the_square():
    rows, probe = 100_000, 8
    features = np.tile(np.arange(6, dtype=np.uint64), (rows, 1))
    left, right, num_large, num_uncompared = pairtables.cpu(features, np.ones(rows, bool), 2, POLY, 1000, probe)
    assert len(left) == probe * rows - probe * (probe + 1) // 2
    assert (left < right).all() and left.max() == probe - 1
    assert num_large == comb(6, 2)
    assert num_uncompared == comb(6, 2) * (comb(rows, 2) - len(left))


def test_repeats_across_tables_are_dropped_as_they_grow():
    """More candidates, by far, than are kept before repeats go: 91 tables of 200 buckets, half of them large."""
    features = np.repeat(np.arange(200, dtype=np.uint64), 100)[:, None] + np.zeros(14, np.uint64)
    sizes = np.where(np.arange(200) % 2, 50, 100)
    present = (np.arange(100) < sizes[:, None]).ravel()
    left, right, num_large, _ = pairtables.cpu(features, present, 2, POLY, 60, 3)
    expected = [
        (100 * bucket + a, 100 * bucket + b)
        for bucket, m in enumerate(sizes)
        for a in range(3 if m > 60 else m)
        for b in range(a + 1, m)
    ]
    assert pairs_of(left, right) == expected
    assert num_large == 91 * 100


@pytest.mark.parametrize("distinct", [1, 2, 1000, 2**63])
@pytest.mark.parametrize("shift", [0, 32])
def test_a_table_is_sorted_by_key_then_row(distinct, shift):
    """Crowded upper bits too, which fingerprints do not have unless they repeat."""
    keys = np.random.default_rng(0).integers(0, distinct, 20_000, np.uint64) >> np.uint64(shift)
    rows = np.arange(len(keys), dtype=np.uint32)
    sorted_keys, sorted_rows = pairtables._sort(keys, rows)
    np.testing.assert_array_equal(sorted_rows, np.argsort(keys, kind="stable"))
    np.testing.assert_array_equal(sorted_keys, np.sort(keys))


@pytest.mark.parametrize("find", BACKENDS, ids=["reference", "cpu"])
def test_no_rows(find):
    for rows, present in ((0, True), (3, False)):
        left, right, *counts = find(np.zeros((rows, 3), np.uint64), np.full(rows, present), 2, POLY, 10, 2)
        assert left.shape == right.shape == (0,) and left.dtype == right.dtype == np.int64 and counts == [0, 0]
