"""Parts of the Hamming kernels: search, passes on a GPU, permuted words, counts of bits."""

import os

import numpy as np
import pytest
from agreement import on_host
from grids import fewer, pairs_of
from hypothesis import given, settings, strategies as st
from near import of_integers, planted
from strategies import inputs

from neardup_gpu.errors import ResourceError
from neardup_gpu.kernels import _sort, hamming as kernel, hamming_probe, hamming_table
from neardup_gpu.kernels._bits import count_bits, moves, plan
from neardup_gpu.kernels._launch import to_host
from neardup_gpu.kernels._matches import DistinctPairs
from neardup_gpu.kernels._search import interpolation_search

BACKENDS = [kernel.reference, kernel.cpu, pytest.param(kernel.gpu, marks=pytest.mark.launches)]
IDS = ["reference", "cpu", "gpu"]


def same(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(to_host(one) if isinstance(other, np.ndarray) else one, other)


def test_pairs_of_which_32_bits_do_not_count_all(monkeypatch):
    """With a limit of 4,096 words in place of 2**32 the places of 5,000 pairs take 64 bits."""
    monkeypatch.setattr(_sort, "_NARROW", 1 << 12)
    packed = np.random.default_rng(3).integers(0, 3000, 5000, np.uint64) * np.uint64(2**32 + 1)
    assert _sort.radix_sort(packed.copy(), 64)[1].dtype == np.uint64
    pairs = DistinctPairs()
    pairs.add(packed.copy(), packed.astype(np.uint8))
    left, right, distance = pairs.result()
    assert left.tolist() == right.tolist() == np.unique(packed % 2**32).tolist()
    assert distance.tolist() == (left % 256).tolist()


@settings(max_examples=fewer(40), deadline=None)
@given(arguments=inputs("hamming_probe"))
def test_few_queries_are_answered_as_many(arguments):
    few, found = hamming_probe._FEW, []
    try:
        for hamming_probe._FEW in (0, 2**40):
            found.append(hamming_probe.cpu(*arguments))
    finally:
        hamming_probe._FEW = few
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_interpolation_search_finds_the_place_in_any_order_of_sizes():
    generator = np.random.default_rng(5)
    for values in (
        generator.integers(0, 2**64, 50_000, np.uint64),
        np.uint64(2) ** generator.integers(0, 64, 5000, np.uint64),
        np.concatenate([np.zeros(4000, np.uint64), generator.integers(2**64 - 5000, 2**64, 4000, np.uint64)]),
        np.full(3000, 2**64 - 1, np.uint64),
    ):
        values.sort()
        extremes = np.array([0, 2**64 - 1], np.uint64)
        for key in np.concatenate([values[::97], generator.integers(0, 2**64, 200, np.uint64), extremes]):
            assert interpolation_search(values, key, 0, len(values)) == np.searchsorted(values, key)


@pytest.mark.parametrize("find", BACKENDS, ids=IDS)
@pytest.mark.parametrize(("rows", "pairs"), [(64, 2016), (65, 2032), (100, 2592)])
def test_a_bucket_grows_by_its_probe(find, rows, pairs):
    values, masks = np.arange(rows, dtype=np.uint64), np.array([1 << 63], np.uint64)
    left, _, _, num_large, num_uncompared, crowded = find(values, masks, 7, 64, 16)
    assert (len(left), num_large, num_uncompared) == (pairs, rows > 64, rows * (rows - 1) // 2 - pairs)
    assert (to_host(crowded) == (rows > 64)).all()


@pytest.mark.parametrize("find", BACKENDS, ids=IDS)
@settings(max_examples=fewer(25), deadline=None, derandomize="CI" in os.environ)
@given(arguments=inputs("hamming"), share=st.floats(0, 1))
def test_rows_added_behind_never_undo_a_pair(find, arguments, share):
    """Nor do they add one before them."""
    values, *rest = arguments
    number = int(share * len(values))
    before, after = (on_host(find(some, *rest)) for some in (values[:number], values))
    earlier = after[1] < number
    same([column[earlier] for column in after[:3]], before[:3])
    assert not (before[5] & ~after[5][:number]).any()


@pytest.mark.launches
@pytest.mark.parametrize(("max_rows", "limit"), pairs_of([7, 39, 1000], [0, 4, 1000]))
@pytest.mark.parametrize("num_words", [1, 2])
def test_passes_change_nothing_on_a_gpu(max_rows, limit, num_words, monkeypatch):
    """Masks of 64, 4, 1 and no leading bits: of the last there is one pass, whatever its size."""
    monkeypatch.setattr(kernel, "_SLICE", 23)
    generator = np.random.default_rng(max_rows)
    values = generator.choice(planted(generator, 2, num_words, 12), 60)
    masks = of_integers([2**64 - 1, 0xF << 30, 1 << 64 * (num_words - 1), 0], num_words)
    expected = kernel.reference(values, masks, 2, limit, 3)
    same(kernel.gpu(values, masks, 2, limit, 3, max_rows=max_rows), expected)


def test_masks_of_more_than_a_word_are_refused():
    with pytest.raises(ValueError, match="a mask of more than 64 bits"):
        plan(np.array([[1, 2**64 - 1]], np.uint64))


def test_a_table_keeps_every_bit():
    values = np.random.default_rng(1).integers(0, 2**64, 50, np.uint64)
    for mask in (0, 1, 2**63, 0xFF00FF00FF00FF00, 2**64 - 1, 0x8000000000000001):
        parts = moves(mask)
        assert np.bitwise_or.reduce(parts[:, 0]) == 2**64 - 1
        words, rows = hamming_table.cpu(values, np.uint64(mask), True)
        assert (np.diff(words.astype(object)) >= 0).all()
        np.testing.assert_array_equal(np.bitwise_count(words), np.bitwise_count(values[rows]))


def test_a_word_of_two_rows_has_room_for_both():
    with pytest.raises(ResourceError, match="4,294,967,295 rows"):
        kernel.cpu(np.broadcast_to(np.uint64(0), 2**32 - 1), np.array([0], np.uint64), 3, 5, 5)


@pytest.mark.parametrize("word", [0, 1, 2**63, 2**64 - 1, 0x5555555555555555, 0x0123456789ABCDEF])
def test_bits_are_counted(word):
    assert count_bits(np.uint64(word)) == word.bit_count()
