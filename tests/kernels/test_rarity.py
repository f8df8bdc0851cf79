"""Counts of shingles: never too small, however many threads count, and counting goes on in the same table."""

from collections import Counter

import numpy as np
import pytest

from neardup_gpu.kernels import _launch as launch, rarity

RUNS = [
    "reference",
    "cpu",
    pytest.param("gpu", marks=pytest.mark.launches),
]
BITS = rarity.FEWEST_BITS


def counted(backend, batches):
    """The table of all batches, as NumPy arrays."""
    table = None
    for values in batches:
        table = getattr(rarity, backend)(values, BITS, table)
    return tuple(map(launch.to_host, table))


def counts_of(table, values):
    """What the table says of values, by its docstring."""
    counters, beyond = table
    slots = (values >> rarity.shift_of(counters)).astype(np.int64)
    return counters[slots].astype(np.int64) + np.where(counters[slots] == rarity.MOST, beyond[slots // 64], 0)


def batches():
    """Values of which some are counted about as often as a counter of one byte can, in several batches."""
    random = np.random.default_rng(5)
    values = random.integers(0, 2**64, 60, np.uint64)
    all_values = np.repeat(values, random.choice([1, 2, 254, 255, 256, 300], len(values)))
    random.shuffle(all_values)
    return np.array_split(all_values, 3)


@pytest.mark.parametrize("backend", RUNS)
def test_counting_goes_on_in_the_table(backend):
    expected = rarity.reference(np.concatenate(batches()), BITS)
    for one, other in zip(expected, counted(backend, batches()), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("backend", RUNS)
def test_no_count_is_too_small(backend):
    true = Counter(np.concatenate(batches()).tolist())
    values = np.array(list(true), np.uint64)
    found = counts_of(counted(backend, batches()), values)
    assert (found >= list(true.values())).all()
    alone = np.array([n == 1 for n in true.values()])
    assert (found[alone] == 1).any()


@pytest.mark.parametrize("backend", RUNS)
def test_four_counters_of_one_word(backend):
    """On a GPU four counters share the word that is changed by compare-and-swap, and none runs over into the next."""
    values = np.repeat(np.arange(4, dtype=np.uint64) << np.uint64(64 - BITS), [300, 255, 254, 1])
    np.random.default_rng(1).shuffle(values)
    counters, beyond = counted(backend, [values])
    assert (counters[:5].tolist(), beyond[:2].tolist()) == ([255, 255, 254, 1, 0], [45, 0])
