"""Rows of ranks in parts that fit: all of them, each rank in one part, none larger than it has to be."""

import numpy as np
import pytest
from grids import fewer
from hypothesis import HealthCheck, given, settings, strategies as st

from neardup_gpu.tasks.dividing import divided, join_rows

DTYPES = np.int64, np.uint64, np.float64


@st.composite
def some_rows(draw):
    """(first rank, last + 1, ranks): some ranks have many rows; ranges wider and narrower than the number of slots."""
    width = draw(st.sampled_from([0, 1, 2, 9, 300, 10**6]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    ranks = rng.integers(0, width, draw(st.sampled_from([0, 1, 40, 500]))) if width else np.empty(0, np.int64)
    if len(ranks):
        ranks[rng.random(len(ranks)) < draw(st.sampled_from([0, 0.5]))] = ranks[0]
        near = rng.random(len(ranks)) < draw(st.sampled_from([0, 0.4]))
        ranks[near] = ranks[-1] // 16 * 16 + rng.integers(0, min(16, width - ranks[-1] // 16 * 16), int(near.sum()))
    first = draw(st.sampled_from([0, 77]))
    return first, first + width, first + ranks


@settings(deadline=None, max_examples=fewer(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(some_rows(), st.sampled_from([1, 7, 60, 10**6]))
def test_parts(tmp_path, case, most):
    first, stop, ranks = case
    values = np.arange(len(ranks)).astype(np.uint64) + np.uint64(2**63)
    columns = ranks, values, np.sqrt(np.arange(len(ranks)))

    def read():
        for begin in range(0, len(ranks), 30):
            yield [column[begin : begin + 30] for column in columns]

    found, before = [], first
    for part in divided(read, len(ranks), 3, first, stop, most, tmp_path):
        rows = join_rows(part.rows, DTYPES)
        assert part.first == before and part.stop <= stop
        before = part.stop
        assert ((rows[0] >= part.first) & (rows[0] < part.stop)).all()
        assert len(rows[0]) <= most or part.stop - part.first == 1
        found.append(rows)
    assert before == stop
    for column, parts in zip(columns, zip(*found, strict=True), strict=True):
        assert all(part.dtype == column.dtype for part in parts)
    together_again = [np.concatenate(parts) for parts in zip(*found, strict=True)]
    order = np.argsort(together_again[1])
    for column, again in zip(columns, together_again, strict=True):
        np.testing.assert_array_equal(again[order], column)


def test_few_parts_of_many_rows(tmp_path):
    """What is read again is read a few times, not once for each part."""
    ranks, times = np.random.default_rng(1).integers(0, 10_000, 50_000), []

    def read():
        times.append(1)
        yield [ranks]

    parts = [join_rows(part.rows, (np.int64,))[0] for part in divided(read, len(ranks), 1, 0, 10_000, 1000, tmp_path)]
    assert sum(map(len, parts)) == len(ranks)
    assert len(times) == 2
    assert len(parts) <= 2 * 50 + 1


@pytest.mark.parametrize("most", [1, 10])
def test_one_rank_is_one_part(tmp_path, most):
    ranks = np.full(100, 5)
    [part] = divided(lambda: [[ranks]], 100, 1, 5, 6, most, tmp_path)
    assert len(join_rows(part.rows, (np.int64,))[0]) == 100
