"""The two containers are valid once made, and only then."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, strategies as st

from neardup_gpu import Pairs, Ragged


def int64(*values):
    return np.array(values, np.int64)


class TestRagged:
    def test_rows(self):
        rows = Ragged(np.arange(10), int64(2, 4, 4, 9))
        assert [rows[i].tolist() for i in range(len(rows))] == [[2, 3], [], [4, 5, 6, 7, 8]]
        assert rows.sizes.tolist() == [2, 0, 5]
        assert "3 rows, 7 int64 values" in repr(rows)

    def test_rows_are_views(self):
        rows = Ragged(np.arange(4), int64(0, 2, 4))
        assert rows[1].base is rows.values

    @pytest.mark.parametrize("row", [-1, 2])
    def test_rows_out_of_range(self, row):
        with pytest.raises(IndexError, match="of 2"):
            Ragged(np.arange(4), int64(0, 2, 4))[row]

    def test_no_rows(self):
        assert len(Ragged(np.empty(0), int64(0))) == 0
        assert len(Ragged.from_rows([], np.uint64)) == 0
        assert Ragged.from_rows([[], [1]], np.uint64).sizes.tolist() == [0, 1]

    @pytest.mark.parametrize(
        ("values", "offsets"),
        [
            (np.arange(4), int64()),
            (np.arange(4), int64(0, 5)),
            (np.arange(4), int64(-1, 2)),
            (np.arange(4), int64(0, 3, 2)),
            (np.arange(4), np.array([0, 4], np.int32)),
            (np.arange(4).reshape(2, 2), int64(0, 2)),
        ],
    )
    def test_invalid(self, values, offsets):
        with pytest.raises(ValueError, match="Ragged"):
            Ragged(values, offsets)

    def test_frozen(self):
        with pytest.raises(dataclasses.FrozenInstanceError):
            Ragged(np.arange(4), int64(0, 4)).values = np.arange(5)


class TestPairs:
    @given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9))))
    def test_from_unsorted(self, given_pairs):
        pairs = Pairs.from_unsorted([a for a, _ in given_pairs], [b for _, b in given_pairs])
        expected = sorted({(min(p), max(p)) for p in given_pairs if p[0] != p[1]})
        assert list(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)) == expected
        assert len(pairs) == len(expected)

    def test_where(self):
        pairs = Pairs(int64(0, 0, 1), int64(1, 2, 2)).where(np.array([True, False, True]))
        assert (pairs.left.tolist(), pairs.right.tolist()) == ([0, 1], [1, 2])

    @pytest.mark.parametrize(
        ("left", "right"),
        [
            (int64(1), int64(1)),
            (int64(2), int64(1)),
            (int64(-1), int64(1)),
            (int64(0, 0), int64(1, 1)),
            (int64(0, 0), int64(2, 1)),
            (int64(1, 0), int64(2, 1)),
            (int64(0), int64(1, 2)),
            (np.array([0]), np.array([1], np.int32)),
        ],
    )
    def test_invalid(self, left, right):
        with pytest.raises(ValueError, match="Pairs"):
            Pairs(left, right)
