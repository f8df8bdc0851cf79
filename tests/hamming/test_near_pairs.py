"""All pairs of a set: repeats, crowded buckets, and what is refused."""

from functools import partial

import numpy as np
import pytest
from grids import some
from near import brute, brute_pairs, of_integers, planted, rows_of

from neardup_gpu import hamming
from neardup_gpu.errors import NeardupError, ParameterError
from neardup_gpu.hamming import HammingIndex, TableDesign
from neardup_gpu.kernels import _matches, hamming as kernel


@pytest.mark.parametrize("num_words", [1, 2])
def test_few_fingerprints_are_compared_all_with_all_where_tables_cost_more(num_words):
    """From a quarter of the bits on; whatever the limit, as nothing is left out then."""
    values = planted(np.random.default_rng(12), 20, num_words)
    radius = 16 * num_words
    found = hamming.pairs(values, radius, bucket_limit=10, bucket_probe=2, collapse=False)
    assert (found.design.num_tables, found.num_large) == (1, 0)
    assert rows_of(found) == brute_pairs(values, radius)
    assert hamming.pairs(values, radius - 1, bucket_limit=10).design.num_tables > 1


@pytest.mark.parametrize("num_words", some([1, 2], [2]))
def test_what_tables_find_again_is_not_held_again(num_words, monkeypatch):
    """With large buckets each of 66 tables finds the pairs of one crowd; at most three times as many are held."""
    generator = np.random.default_rng(13)
    crowd = [1 << int(place) for place in generator.integers(0, 40, 300)]  # two bits from one another at most
    values = of_integers(crowd + [int.from_bytes(generator.bytes(8 * num_words)) for _ in range(100)], num_words)
    design = TableDesign(64 * num_words, 10, 12)
    most, drop_repeats = [], _matches.DistinctPairs._drop_repeats

    def noted(matches):
        most.append(matches.num_held)
        drop_repeats(matches)

    monkeypatch.setattr(kernel, "DistinctPairs", partial(_matches.DistinctPairs, at_least=0))
    monkeypatch.setattr(_matches.DistinctPairs, "_drop_repeats", noted)
    found = hamming.pairs(values, 10, design=design, bucket_limit=299, collapse=False)
    expected = kernel.reference(values, design.array, 10, 299, hamming.BUCKET_PROBE)
    assert rows_of(found) == rows_of(expected) and found.num_large == expected[3] > 2
    assert len(most) > 3 and max(most) <= 3 * len(found.left)


def test_repeats_are_pairs_with_their_first_alone():
    values = np.array([5, 9, 5, 4, 5, 9, 2**64 - 1], np.uint64)
    found = hamming.pairs(values, 1)
    assert list(zip(found.left, found.right, found.distance, strict=True)) == [
        (0, 2, 0), (0, 3, 1), (0, 4, 0), (1, 5, 0),
    ]  # fmt: skip
    assert found.first.tolist() == [0, 1, 0, 3, 0, 1, 6]
    assert (found.left.dtype, found.right.dtype, found.distance.dtype) == (np.int64, np.int64, np.uint8)


def test_repeats_are_crowded_as_the_first_of_them_is():
    """Six fingerprints, two of them twice, share the bucket of a leading half; another, thrice there, does not."""
    lone, design = 5 << 40 | 1, TableDesign(64, 1, 32)
    values = np.array([1, lone, 2, 1, 4, 8, lone, 16, 32, lone, 8], np.uint64)
    found = hamming.pairs(values, 1, design=design, bucket_limit=4, bucket_probe=1)
    assert found.crowded.tolist() == (values != lone).tolist() and found.num_large == 1
    assert not hamming.pairs(values, 1, design=design, bucket_limit=9).crowded.any()


def test_a_million_empty_pages_are_a_million_pairs():
    values = np.zeros(10**6, np.uint64)
    found = hamming.pairs(values, 3)
    assert len(found.left) == 10**6 - 1 and not found.left.any() and found.num_large == 0


def test_identical_fingerprints_that_do_not_collapse_are_rows_like_others():
    values = np.array([5, 9, 5, 4, 5], np.uint64)
    found = hamming.pairs(values, 1, collapse=False)
    assert rows_of(found) == [(0, 2, 0), (0, 3, 1), (0, 4, 0), (2, 3, 1), (2, 4, 0), (3, 4, 1)]
    assert found.first.tolist() == [0, 1, 2, 3, 4]
    crowd = hamming.pairs(np.zeros(1000, np.uint64), 3, collapse=False, design=TableDesign(64, 3, 16))
    expected = [(a, b, 0) for a in range(512) for b in range(a + 1, 1000 if a < 32 else 512)]
    assert rows_of(crowd) == expected
    assert (crowd.num_large, crowd.num_uncompared) == (4, 4 * (1000 * 999 // 2 - len(expected)))
    assert crowd.crowded.all()


@pytest.mark.parametrize("num_words", [1, 2])
def test_crowded_buckets_are_cut_and_counted(num_words):
    """2**16 fingerprints that differ in one block only: they are one bucket of every table but one."""
    values = of_integers([value << 16 for value in range(2**16)], num_words)
    design = TableDesign(64 * num_words, 3, 16 * num_words)
    crowded = sum(mask & 0xFFFF << 16 == 0 for mask in design.masks)
    assert (design.num_tables, crowded) == (4, 3)
    options = {"design": design, "bucket_limit": 512, "bucket_probe": 32}
    found, rest = hamming.pairs(values, 3, **options), 2**16 - 32
    compared = 512 * 511 // 2 + (2**16 - 512) * 32
    assert found.num_large == 3 and found.num_uncompared == 3 * (2**16 * (2**16 - 1) // 2 - compared)
    near = [pair for pair in brute(values[:512], values, 3) if pair[0] < pair[1]]
    assert rows_of(found) == [(a, b, bits) for a, b, bits in near if a < 32 or b < 512]
    assert found.crowded.all()
    joined = hamming.join(values[:100], values, 3, **options)
    assert joined.num_large == 300 and joined.num_uncompared == 300 * rest
    near_first = [match for match in brute(values[:100], values, 3) if match[1] < 32 or match[0] == match[1]]
    assert rows_of(joined) == near_first


@pytest.mark.parametrize("radius", [-1, 64, 100, 2.5])
def test_impossible_radius(radius):
    for call in (hamming.pairs, lambda values, radius: hamming.join(values, [1], radius), HammingIndex):
        with pytest.raises(NeardupError, match=f"radius must be (between 0 and 63|a whole number), got {radius}"):
            call([1, 2], radius)


def test_a_design_for_a_smaller_radius_is_refused():
    for call in (hamming.pairs, HammingIndex):
        with pytest.raises(ParameterError, match="design must be for radius 3 or more, got one for 2"):
            call([1, 2], 3, design=TableDesign(64, 2, 5))
    for call in (hamming.pairs, HammingIndex):
        for bits in (12, 128):
            with pytest.raises(ParameterError, match=rf"design must be of 64 bits.*, got one of {bits} bits"):
                call([1, 2], 3, design=TableDesign(bits, 3, 5))
    with pytest.raises(ParameterError, match=r"design must be of 128 bits.*, got one of 64 bits"):
        hamming.pairs([(1, 2)], 3, design=TableDesign(64, 3, 5))
