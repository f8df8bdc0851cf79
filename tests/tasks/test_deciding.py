"""Decisions as a stream, in ranges of any width: against the definitions, and within their memory."""

import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
from grids import fewer, pairs_of
from hypothesis import HealthCheck, example, given, settings, strategies as st

from neardup_gpu.kernels import components, greedy, standing
from neardup_gpu.tasks import deciding
from neardup_gpu.tasks.deciding import (
    LABELS,
    are_set,
    decide_by_components,
    decide_greedily,
    set_within,
)

WIDTHS = [1, 2, 5, 64, 100, 1000]


def arrays(pairs):
    left, right = np.array(sorted(set(pairs)), np.int64).reshape(-1, 2).T.copy()
    return left, right


def chunks(left, right, size):
    """Chunks of so many pairs, with an empty one before and between them."""
    for first in range(0, len(left), size):
        yield left[:0], right[:0]
        yield left[first : first + size], right[first : first + size]


def chain(rows):
    return list(pairwise(range(rows)))


def clique(rows):
    return [(a, b) for b in rows for a in rows if a < b]


@st.composite
def pairs_of_ranks(draw):
    """(rows, pinned, pairs): any pairs, near ones, paths, and cliques, in up to 200 rows."""
    rows = draw(st.sampled_from([0, 1, 2, 3, 7, 20, 64, 65, 130, 200]))
    if rows < 2:
        return rows, draw(st.integers(0, rows)), []
    rank = st.integers(0, rows - 1)
    apart = draw(st.sampled_from([1, 3, rows]))
    pairs = draw(st.lists(st.tuples(rank, st.integers(1, apart)), max_size=60))
    pairs = [(a, min(a + more, rows - 1)) for a, more in pairs if a < rows - 1]
    pairs += clique(draw(st.sets(rank, max_size=8)))
    if draw(st.booleans()):
        order = draw(st.permutations(range(rows)))
        pairs += [(min(pair), max(pair)) for pair in pairwise(order[: draw(rank)])]
    return rows, draw(st.sampled_from([0, 0, 1, rows // 10, rows // 2, rows])), pairs


def in_bits(rows, removed):
    """The words of a list of bool."""
    packed = np.packbits(removed, bitorder="little")
    return np.append(packed, np.zeros(-len(packed) % 8, np.uint8)).view("<u8")


def check_greedily(case, size):
    rows, num_known, pairs = case
    left, right = arrays(pairs)
    pinned = np.arange(rows) < num_known
    keeper = greedy.reference(rows, left, right, np.ones(len(left)), pinned)
    removed = keeper != np.arange(rows)
    state = standing.reference(rows, left, right, pinned, np.zeros(rows, bool))
    assert (removed == (state == standing.REMOVED)).all()
    for order in (np.lexsort((right, left)), np.lexsort((left, right)), np.argsort(right)):
        found = decide_greedily(chunks(left[order], right[order], size), rows, num_known)
        np.testing.assert_array_equal(found, in_bits(rows, removed))


def check_components(case, width, size, most, folder):
    rows, num_known, pairs = case
    left, right = arrays(pairs)
    shuffled = np.random.default_rng(0).permutation(len(left))
    label = components.reference(rows, left, right)
    removed = (label != np.arange(rows)) & (np.arange(rows) >= num_known)
    given = chunks(left[shuffled], right[shuffled], size)
    found, labels = deciding._decide_by_components(given, rows, num_known, width, most, folder)
    np.testing.assert_array_equal(found, in_bits(rows, removed))
    expected = np.column_stack([np.flatnonzero(removed), label[removed]])
    np.testing.assert_array_equal(labels, expected)
    assert (folder / LABELS).read_bytes() == expected.astype("<i8").tobytes()


def check(case, width, size, most, folder):
    check_greedily(case, size)
    check_components(case, width, size, most, folder)


class TestRanges:
    @settings(deadline=None, max_examples=fewer(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(pairs_of_ranks(), st.sampled_from(WIDTHS), st.sampled_from([1, 2, 7, 1000]), st.sampled_from([1, 3, 1000]))
    @example((3, 0, [(0, 1), (1, 2)]), 1, 1, 1)
    @example((4, 2, [(0, 2), (1, 3), (2, 3)]), 2, 1, 1)
    def test_against_the_definition(self, tmp_path, case, width, size, most):
        check(case, width, size, most, tmp_path)

    @pytest.mark.parametrize(("width", "num_known"), pairs_of(WIDTHS, [0, 1, 3, 150]))
    def test_chains_and_cliques(self, tmp_path, width, num_known):
        """Chains up, down and across, and cliques of which each has one pair with the one before."""
        across = [(min(a, b), max(a, b)) for a, b in pairwise([i * 61 % 150 for i in range(150)])]
        cliques = [pair for first in range(0, 150, 10) for pair in clique(range(first, first + 10))]
        cliques += [(first - 7, first + 4) for first in range(10, 150, 10)]
        for pairs in (chain(150), across, cliques):
            check((150, num_known, pairs), width, 7, 3, tmp_path)

    def test_a_row_with_more_pairs_than_fit(self, tmp_path):
        """Ranges of 5 rows, 3 pairs at a time: the last row has a pair with each, and the first one."""
        for pairs in ([(row, 199) for row in range(199)], [(0, row) for row in range(1, 200)]):
            check((200, 0, pairs), 5, 7, 3, tmp_path)

    def test_nothing(self, tmp_path):
        for rows in (0, 1, 64, 65):
            check((rows, 0, []), 5, 1, 1, tmp_path)


@pytest.mark.parametrize("most_bytes", [1 << 15, 1 << 18, 1 << 30])
def test_any_memory_gives_the_same(tmp_path, most_bytes):
    rng = np.random.default_rng(5)
    rows, num_known = 20_000, 300
    left, right = arrays(map(tuple, np.sort(rng.integers(0, rows, (9000, 2))).tolist()))
    left, right = left[left != right], right[left != right]
    pinned = np.arange(rows) < num_known
    given = chunks(left, right, 1000)
    found, labels = decide_by_components(given, rows, num_known, most_bytes, tmp_path)
    keeper = np.where(pinned, np.arange(rows), components.cpu(rows, left, right))
    np.testing.assert_array_equal(keeper[labels[:, 0]], labels[:, 1])
    expected = np.flatnonzero(keeper != np.arange(rows))
    assert 2000 < len(expected) < 18_000
    np.testing.assert_array_equal(set_within(found, 0, rows), expected)
    assert [path.name for path in tmp_path.iterdir()] == [LABELS]


@pytest.mark.parametrize("cluster", ["greedy", "components"])
def test_memory_is_bounded(tmp_path, cluster):
    """50,000 pairs in 400 kB, half of what they take."""
    rng = np.random.default_rng(3)
    most_bytes, each, rows = 400_000, 500, 200_000

    def decide(pairs, rows):
        return decide_greedily(pairs, rows, 0) if cluster == "greedy" else decide_by_components(pairs, rows, 0, *how)

    def given():
        for first in range(0, rows, rows // 100):
            left = first + np.sort(rng.integers(0, rows // 100, each))
            left = left[left < rows - 1]
            yield left, left + 1 + (rng.random(len(left)) * (rows - 1 - left)).astype(np.int64)

    how = most_bytes, tmp_path
    decide([(np.zeros(1, np.int64), np.ones(1, np.int64))], 2)  # compiles
    tracemalloc.start()
    try:
        decide(given(), rows)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < most_bytes


def test_bits_of_ranks():
    words = in_bits(130, np.isin(np.arange(130), [0, 63, 64, 65, 129]))
    assert set_within(words, 0, 130).tolist() == [0, 63, 64, 65, 129]
    assert set_within(words, 63, 129).tolist() == [63, 64, 65]
    assert set_within(words, 5, 5).tolist() == set_within(words, 1, 63).tolist() == []
    assert are_set(words, np.array([129, 0, 1, 128])).tolist() == [True, True, False, False]
