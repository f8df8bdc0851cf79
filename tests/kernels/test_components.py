"""Who is kept: what the definition promises of any pairs, and examples small enough to check by eye."""

import numpy as np
import pytest
from grids import fewer, some
from hypothesis import given, settings, strategies as st
from strategies import inputs

from neardup_gpu.kernels import components, greedy, resemblance
from neardup_gpu.kernels._launch import to_host

GREEDY = [
    greedy.reference,
    greedy.cpu,
    pytest.param(greedy.gpu, marks=pytest.mark.launches),
]
CONNECTED = [
    components.reference,
    components.cpu,
    pytest.param(components.gpu, marks=pytest.mark.launches),
]
IDS = ["reference", "cpu", "gpu"]


def arrays(pairs):
    return np.array(pairs, np.int64).reshape(-1, 2).T.copy()


def keep(function, rows, pairs, weights=None, pinned=()):
    left, right = arrays(pairs)
    weight = np.ones(len(left)) if weights is None else np.array(weights, np.float64)
    return function(rows, left, right, weight, np.isin(np.arange(rows), pinned)).tolist()


@pytest.mark.parametrize("function", GREEDY, ids=IDS)
class TestGreedy:
    def test_the_end_of_a_chain_survives(self, function):
        assert keep(function, 4, [(0, 1), (1, 2)]) == [0, 0, 2, 3]

    def test_the_keeper_is_the_kept_row_of_greatest_weight(self, function):
        assert keep(function, 3, [(0, 2), (1, 2)], [0.8, 0.9]) == [0, 1, 1]

    def test_ties_go_to_the_lowest_row(self, function):
        assert keep(function, 3, [(0, 2), (1, 2)], [0.9, 0.9]) == [0, 1, 0]

    def test_the_keeper_may_come_later(self, function):
        assert keep(function, 3, [(0, 1), (1, 2)], [0.8, 0.9]) == [0, 2, 2]

    def test_a_removed_row_is_no_keeper(self, function):
        assert keep(function, 3, [(0, 1), (0, 2), (1, 2)], [0.8, 0.8, 1.0]) == [0, 0, 0]

    def test_pinned_rows_stay_and_remove_others(self, function):
        assert keep(function, 4, [(0, 1), (0, 3), (1, 2)], pinned=[0, 1]) == [0, 1, 1, 0]

    def test_no_rows_and_no_pairs(self, function):
        assert keep(function, 0, []) == []
        assert keep(function, 2, []) == [0, 1]


@settings(max_examples=fewer(100), deadline=None)
@given(inputs("greedy"))
def test_greedy_keeps_one_of_every_pair(arguments):
    rows, left, right, weight, pinned = arguments
    keeper = greedy.cpu(*arguments)
    kept = keeper == np.arange(rows)
    assert kept[pinned].all()
    assert not (kept[left] & kept[right] & ~pinned[right]).any()
    weights = dict(zip(zip(left.tolist(), right.tolist(), strict=True), weight.tolist(), strict=True))
    weights |= {(b, a): w for (a, b), w in weights.items()}
    for row in np.flatnonzero(~kept).tolist():
        rivals = [other for other in range(rows) if kept[other] and (row, other) in weights]
        assert keeper[row] in rivals
        assert any(other < row for other in rivals)
        assert weights[row, keeper[row]] == max(weights[row, other] for other in rivals)


@pytest.mark.parametrize("function", CONNECTED, ids=IDS)
def test_components_take_their_smallest_row(function):
    left, right = arrays([(1, 4), (2, 3), (3, 4), (5, 6)])
    assert function(8, left, right).tolist() == [0, 1, 1, 1, 1, 5, 5, 7]
    assert function(2, left[:0], right[:0]).tolist() == [0, 1]
    assert function(0, left[:0], right[:0]).tolist() == []


@settings(max_examples=fewer(100), deadline=None)
@given(inputs("components"))
def test_greedy_groups_lie_within_components(arguments):
    rows, left, right = arguments
    label = components.cpu(rows, left, right)
    keeper = greedy.cpu(rows, left, right, np.ones(len(left)), np.zeros(rows, bool))
    assert (label[left] == label[right]).all()
    assert (label[keeper] == label).all()
    assert (label <= np.arange(rows)).all() and (label[label] == label).all()
    assert (keeper[label] == label).all()  # the smallest row of a component is kept


@pytest.mark.parametrize(
    ("function", "n"),
    [
        pytest.param(components.cpu, 300_000, id="cpu"),
        pytest.param(components.gpu, 2000, marks=pytest.mark.launches, id="gpu"),
    ],
)
def test_a_long_chain_is_one_component(function, n):
    order = np.random.default_rng(0).permutation(n)
    a, b = order[:-1], order[1:]
    assert not function(n, np.minimum(a, b), np.maximum(a, b)).any()


@pytest.mark.launches
@pytest.mark.parametrize("more", some([0, 1, 9], [0, 9]))
def test_a_path_in_priority_order_is_finished_on_the_host(more, monkeypatch):
    """A round decides two rows of it: the host has what is left after `_ROUNDS`."""
    rows, finished = 2 * greedy._ROUNDS + more, []
    on_host = greedy._covered

    def covered(num_rows, left, right, pinned):
        finished.extend(left.tolist())
        return on_host(num_rows, left, right, pinned)

    monkeypatch.setattr(greedy, "_covered", covered)
    left = np.arange(rows - 1)
    arguments = rows, left, left + 1, np.ones(rows - 1), np.zeros(rows, bool)
    keeper = greedy.gpu(*arguments)
    assert keeper.tolist() == [row - row % 2 for row in range(rows)]
    assert finished == list(range(2 * greedy._ROUNDS, rows - 1))


@pytest.mark.launches
def test_a_random_order_takes_few_rounds(monkeypatch):
    """2000 pairs of 500 rows: far fewer rounds than the bound, none on the host."""
    monkeypatch.setattr(greedy, "_covered", None)
    rng = np.random.default_rng(0)
    pairs = np.unique(np.sort(rng.choice(500, (2000, 2)), axis=1), axis=0)
    left, right = pairs[pairs[:, 0] < pairs[:, 1]].T.copy()
    arguments = 500, left, right, rng.choice([0.8, 0.9], len(left)), rng.random(500) < 0.05
    expected = greedy.reference(*arguments)
    np.testing.assert_array_equal(to_host(greedy.gpu(*arguments)), expected)


@settings(deadline=None)
@given(
    pairs=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=40),
    sizes=st.lists(st.integers(0, 20), min_size=10, max_size=10),
    budget=st.integers(1, 60),
)
def test_blocks_of_pairs_hold_what_fits(pairs, sizes, budget):
    bounds = resemblance.blocks_of_pairs(*arrays(pairs), np.array(sizes, np.int64), budget).tolist()
    assert bounds[0] == 0 and bounds[-1] == len(pairs)
    assert all(first < last for first, last in zip(bounds[:-1], bounds[1:], strict=True))
    for first, last in zip(bounds[:-1], bounds[1:], strict=True):
        largest = max(sum(sizes[row] for row in set(pair)) for pair in pairs[first:last])
        held = sum(sizes[row] for row in {row for pair in pairs[first:last] for row in pair})
        assert held <= max(budget, largest)
