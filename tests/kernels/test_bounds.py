"""The bounds of sizes and overlaps against `neardup_gpu.theory.prefix_filter`, which shares no line with them."""

import numpy as np
import pytest
from grids import fewer
from hypothesis import example, given, settings, strategies as st

from neardup_gpu.kernels import _bounds
from neardup_gpu.theory import prefix_filter

SIZES = st.integers(1, 60) | st.integers(1, 3000) | st.integers(1, 2**40)
THRESHOLDS = (
    st.integers(1, 1000).map(lambda i: i / 1000)
    | st.builds(lambda c, u: min(c, u) / max(c, u), st.integers(1, 5000), st.integers(1, 5000))  # ties
    | st.floats(1e-9, 1)
)
NEIGHBOURS = st.sampled_from([-1, 0, 1])


def beside(threshold, step):
    """A threshold, or the float next to it."""
    return threshold if step == 0 else float(min(1.0, np.nextafter(threshold, 2 * step)))


class TestAgainstTheTheory:
    @settings(deadline=None, max_examples=fewer(400))
    @given(SIZES, SIZES, THRESHOLDS, NEIGHBOURS)
    @example(30, 33, 0.8, 0)
    @example(1, 1, 1.0, 0)
    @example(100, 100, 0.07, 0)
    @example(2**40, 2**40 - 1, 1 / 3, 0)
    def test_one_pair(self, size_a, size_b, threshold, step):
        threshold = beside(threshold, step)
        assert _bounds.least_overlap(size_a + size_b, threshold) == prefix_filter.least_overlap(
            size_a, size_b, threshold
        )
        lengths = prefix_filter.prefix_lengths(size_a, threshold)
        assert _bounds.least_shared(size_a, threshold) == size_a - lengths.long + 1
        assert _bounds.prefix_lengths(size_a, threshold) == lengths

    @settings(deadline=None, max_examples=fewer(200))
    @given(st.lists(st.just(0) | SIZES, max_size=40), THRESHOLDS, NEIGHBOURS)
    @example([0], 0.8, 0)
    def test_an_array_of_sizes(self, sizes, threshold, step):
        threshold = beside(threshold, step)
        found = _bounds.prefix_lengths_of(np.array(sizes, np.int64), threshold)
        expected = [prefix_filter.prefix_lengths(size, threshold) for size in sizes]
        assert list(zip(*(lengths.tolist() for lengths in found), strict=True)) == expected

    @settings(deadline=None, max_examples=fewer(60))
    @given(st.integers(0, 800), THRESHOLDS, NEIGHBOURS)
    @example(0, 0.8, 0)
    @example(1, 1.0, 0)
    def test_a_table_of_overlaps(self, most, threshold, step):
        threshold = beside(threshold, step)
        found = _bounds.least_overlaps(most, threshold)
        assert found.dtype == np.int32
        expected = [
            prefix_filter.least_overlap(total // 2, (total + 1) // 2, threshold) for total in range(1, most + 1)
        ]
        assert found.tolist() == [0, *expected]
        assert _bounds.least_overlaps_of(np.arange(most + 1), threshold).tolist() == [0, *expected]

    @settings(deadline=None, max_examples=fewer(60))
    @given(st.integers(0, 800), THRESHOLDS, NEIGHBOURS)
    @example(0, 0.9, 0)
    @example(1, 1.0, 0)
    def test_a_table_of_shares(self, most, threshold, step):
        threshold = beside(threshold, step)
        found = _bounds.least_shares(most, threshold)
        assert found.dtype == np.int32
        expected = [size + 1 - prefix_filter.prefix_lengths(size, threshold).long for size in range(1, most + 1)]
        assert found.tolist() == [0, *expected]

    @pytest.mark.parametrize("per_mille", [1, 70, 333, 500, 667, 800, 950, 999, 1000])
    def test_every_size_to_3000(self, per_mille):
        """All three forms of each bound."""
        threshold = per_mille / 1000
        expected = [prefix_filter.prefix_lengths(size, threshold) for size in range(3001)]
        sizes = np.arange(3001)
        short, long = _bounds.prefix_lengths_of(sizes, threshold)
        assert np.array_equal(np.stack([short, long], 1), expected)
        assert [_bounds.prefix_lengths(size, threshold) for size in range(1, 3001)] == expected[1:]
        needed = _bounds.least_overlaps(6000, threshold)
        assert np.array_equal(sizes[1:] - needed[2:6001:2] + 1, short[1:])
        assert np.array_equal(_bounds.least_overlaps_of(np.arange(6001), threshold), needed)

    def test_every_thousandth_of_every_size_to_3000(self):
        sizes = np.arange(1, 3001)
        for per_mille in range(1, 1001):
            threshold = per_mille / 1000
            short, long = _bounds.prefix_lengths_of(sizes, threshold)
            needed, shared = sizes - short + 1, sizes - long + 1
            # Enough, and one less is not: that is least, as quotients ascend.
            assert (needed / (2 * sizes - needed) >= threshold).all() and (shared / sizes >= threshold).all()
            assert ((needed - 1) / (2 * sizes - needed + 1) < threshold).all() and (
                (shared - 1) / sizes < threshold
            ).all()
            table = _bounds.least_overlaps(6000, threshold)
            assert np.array_equal(table[2::2], needed)
            assert np.array_equal(_bounds.least_shares(3000, threshold)[1:], shared)
            odd = np.arange(3, 6000, 2)
            assert (table[3::2] / (odd - table[3::2]) >= threshold).all()
            assert ((table[3::2] - 1) / (odd - table[3::2] + 1) < threshold).all()

    @pytest.mark.parametrize("size", [50_000_000, 50_000_000 - 1])
    def test_great_sets_at_every_thousandth(self, size):
        for per_mille in range(1, 1001):
            lengths = prefix_filter.prefix_lengths(size, per_mille / 1000)
            assert _bounds.prefix_lengths(size, per_mille / 1000) == lengths
            both = _bounds.prefix_lengths_of(np.array([size]), per_mille / 1000)
            assert tuple(int(each[0]) for each in both) == lengths

    @settings(deadline=None)
    @given(SIZES, THRESHOLDS)
    def test_both_grow_by_0_or_1_with_the_size(self, size, threshold):
        assert _bounds.least_shared(size + 1, threshold) - _bounds.least_shared(size, threshold) in (0, 1)
        assert _bounds.least_overlap(size + 1, threshold) - _bounds.least_overlap(size, threshold) in (0, 1)

    @pytest.mark.parametrize("threshold", [5e-324, 2**-1000, 1e-12, 1 - 2**-53, 1.0])
    def test_extreme_thresholds(self, threshold):
        for size in (1, 2, 3, 7, 1000, 50_000_000):
            expected = prefix_filter.prefix_lengths(size, threshold)
            assert _bounds.prefix_lengths(size, threshold) == expected
            both = _bounds.prefix_lengths_of(np.array([size]), threshold)
            assert tuple(int(each[0]) for each in both) == expected
