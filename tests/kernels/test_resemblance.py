"""Resemblance against sets of Python, Broder's own example, and rows that defeat a distribution by upper bits."""

import numpy as np
import pytest

from neardup_gpu.data import Ragged
from neardup_gpu.kernels import resemblance, sets, shingles

POLY, BAG_POLY = np.uint64(0xD800000000000000), np.uint64(0x8000000000000001)
MERGES = [resemblance.reference, resemblance.cpu, pytest.param(resemblance.gpu, marks=pytest.mark.launches)]
UNIQUES = [
    sets.reference,
    sets.cpu,
    pytest.param(sets.gpu, marks=pytest.mark.launches),
]
IDS = ["reference", "cpu", "gpu"]


@pytest.mark.parametrize(
    ("mode", "w", "ratio"),
    [
        ("bag", 1, 7 / 10),
        ("bag", 2, 5 / 10),
        ("bag", 3, 3 / 10),
        ("set", 1, 3 / 5),
        ("set", 2, 3 / 6),
        ("set", 3, 3 / 7),
    ],
)
def test_the_roses_of_broder_1997(mode, w, ratio):
    """Section 2: 70%, 50%, 30% under option A (bags) and 60%, 50%, 42.85% under option B (sets)."""
    words = {"a": 11, "rose": 12, "is": 13, "flower": 14, "which": 15}
    texts = ["a rose is a rose is a rose", "a rose is a flower which is a rose"]
    tokens = Ragged.from_rows([[words[word] for word in text.split()] for text in texts], np.uint64)
    values, offsets = shingles.cpu(tokens.values, tokens.offsets, w, mode, POLY, BAG_POLY)
    values, offsets = sets.cpu(values, offsets)
    common = resemblance.cpu(values, offsets, np.array([0]), np.array([1]), np.array([0]))
    assert resemblance.resemblance(common, offsets[-1] - common).tolist() == [ratio]


@pytest.mark.parametrize("merge", MERGES, ids=IDS)
def test_sizes_by_eye(merge):
    sets = Ragged.from_rows([[1, 2, 3, 2**64 - 1], [], [2, 3, 4], [2**64 - 1]], np.uint64)
    left, right = np.array([0, 0, 0, 1, 2, 1]), np.array([2, 1, 3, 1, 2, 0])
    assert merge(sets.values, sets.offsets, left, right, np.zeros(6, int)).tolist() == [2, 0, 1, 0, 3, 0]
    least = np.array([2, 1, 2, 0, 4, 0])
    assert merge(sets.values, sets.offsets, left, right, least).tolist() == [2, -1, -1, 0, -1, 0]


@pytest.mark.parametrize("merge", MERGES, ids=IDS)
def test_a_set_of_few_and_one_of_many(merge):
    """The larger is searched, not merged: at its ends, beyond them, and with nothing in common."""
    many = list(range(10, 4010, 2))
    few = [[10, 500, 4008], [1, 11, 5000], [], [4008], [0, 2**64 - 1], [9, 10, 11, 12, 13]]
    sets = Ragged.from_rows([many, *few], np.uint64)
    rows = np.arange(1, 7)
    for left, right in ((np.zeros(6, np.int64), rows), (rows, np.zeros(6, np.int64))):
        for least, found in (([0] * 6, [3, 0, 0, 1, 0, 2]), ([3, 1, 1, 1, 0, 3], [3, -1, -1, 1, 0, -1])):
            assert merge(sets.values, sets.offsets, left, right, np.array(least)).tolist() == found


def test_ratios():
    intersection, union, size = np.array([3, 0, 4]), np.array([4, 0, 5]), np.array([3, 0, 5])
    assert resemblance.resemblance(intersection, union).tolist() == [0.75, 0.0, 0.8]
    assert resemblance.containment(intersection, size).tolist() == [1.0, 0.0, 0.8]


@pytest.mark.parametrize("unique", UNIQUES, ids=IDS)
def test_unique_rows_by_eye(unique):
    values, offsets = unique(np.array([9, 5, 3, 5, 7, 7], np.uint64), np.array([1, 1, 4, 6]))
    assert values.tolist() == [3, 5, 7]
    assert offsets.tolist() == [0, 0, 2, 3]


def crowded_rows():
    generator = np.random.default_rng(0)
    uniform = generator.integers(0, 2**64, 50_000, np.uint64)
    return {
        "uniform": uniform,
        "one value": uniform * np.uint64(0),
        "equal upper bits": uniform >> np.uint64(32),
        "few values": generator.choice(uniform[:10], len(uniform)),
        "one value between others": np.where(np.arange(len(uniform)) % 2, uniform, uniform[0]),
        "descending": np.sort(uniform)[::-1].copy(),
    }


@pytest.mark.parametrize("name", crowded_rows())
def test_unique_agrees_with_numpy_on_long_rows(name):
    row = crowded_rows()[name]
    values, offsets = sets.cpu(row, np.array([0, len(row)]))
    np.testing.assert_array_equal(values, np.unique(row))
    assert offsets.tolist() == [0, len(values)]


@pytest.mark.parametrize(
    ("merge", "sizes"),
    [
        pytest.param(resemblance.cpu, (1, 100, 20_000, 60_000), id="cpu"),
        pytest.param(
            resemblance.gpu, (1, 31, 32, 33, 1000), marks=pytest.mark.launches, id="gpu"
        ),  # blocks of 32 threads
    ],
)
def test_merge_agrees_with_numpy_on_long_rows(merge, sizes):
    generator = np.random.default_rng(1)
    pool = generator.integers(0, 2**64, max(sizes) // 2, np.uint64)
    sets = Ragged.from_rows([np.unique(generator.choice(pool, n)) for n in sizes], np.uint64)
    left, right = np.triu_indices(len(sizes))
    common = merge(sets.values, sets.offsets, left, right, np.zeros(len(left), int))
    expected = [len(np.intersect1d(sets[a], sets[b])) for a, b in zip(left.tolist(), right.tolist(), strict=True)]
    assert common.tolist() == expected
    assert merge(sets.values, sets.offsets, left, right, common).tolist() == expected
    assert merge(sets.values, sets.offsets, left, right, common + 1).tolist() == [-1] * len(left)
