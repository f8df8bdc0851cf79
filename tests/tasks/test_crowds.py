"""Members of crowds: what verified pairs connect with crowded documents, whatever the order of the pairs."""

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

from neardup_gpu.kernels import components
from neardup_gpu.tasks import crowds
from neardup_gpu.tasks.deciding import set_within


def connected(crowded, pairs, most, at_once, num_ranks=100):
    """Return the members among 100 ranks, and how often the pairs were read."""
    words = np.zeros(-(-num_ranks // 64), np.uint64)
    crowds.greedy_stream.mark(words, 0, np.array(crowded, np.int64))
    left, right = (np.array(side, np.int64) for side in zip(*pairs, strict=True)) if pairs else ([], [])
    passes = 0

    def read():
        nonlocal passes
        passes += 1
        for first in range(0, len(left), at_once):
            some = slice(first, first + at_once)
            yield [left[some], right[some], np.ones(len(left[some]))]

    crowds._connect(words, read, most)
    return set_within(words, 0, num_ranks).tolist(), passes


@settings(deadline=None)
@given(
    crowded=st.lists(st.integers(0, 99), min_size=1, max_size=3),
    pairs=st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), max_size=150),
    most=st.integers(0, 40),
    at_once=st.integers(1, 20),
)
@example(crowded=[99], pairs=[(at, at + 1) for at in range(99)], most=3, at_once=1)
def test_all_that_pairs_connect_are_members(crowded, pairs, most, at_once):
    left, right = (np.array([pair[side] for pair in pairs], np.int64) for side in range(2))
    label = components.reference(100, left, right)
    expected = np.flatnonzero(np.isin(label, label[crowded])).tolist()
    assert connected(crowded, pairs, most, at_once)[0] == expected


@pytest.mark.parametrize("ascending", [True, False])
def test_a_chain_is_joined_in_one_pass(ascending):
    """Its pairs are far more than are held, but its forest fits, as each pair is there many times."""
    chain = [(at, at + 1) for at in range(99)][:: 1 if ascending else -1]
    assert connected([0], chain * 10, 300, 7) == (list(range(100)), 1)
