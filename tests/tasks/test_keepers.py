"""What is listed and who stands for whom, range by range: against the functions of the job in memory."""

from types import SimpleNamespace

import numpy as np
import pytest
from grids import fewer
from hypothesis import HealthCheck, given, settings, strategies as st

from neardup_gpu.data import Pairs
from neardup_gpu.stages import Verified, choose_keepers
from neardup_gpu.stages.decisions import resemblance_to
from neardup_gpu.stages.partners import kept_rows, selected
from neardup_gpu.tasks.deciding import decide_by_components, decide_greedily
from neardup_gpu.tasks.keepers import keepers_of, within_reach


@st.composite
def verified_pairs(draw):
    """(rows, pinned, pairs of which not both are pinned), many of equal worth: crowds, and any pairs."""
    rows = draw(st.sampled_from([1, 2, 5, 12, 30, 70]))
    num_known = draw(st.sampled_from([0, 0, 1, rows // 3]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    crowd = rng.integers(0, draw(st.sampled_from([2, 4, 20])), rows)
    left, right = np.triu_indices(rows, 1)
    share = np.where(crowd[left] == crowd[right], draw(st.sampled_from([0.3, 0.8, 1.0])), 0.02)
    some = (rng.random(len(left)) < share) & (right >= num_known)
    worth = rng.choice([0.8, 0.85, 0.9, 1.0], int(some.sum()))
    return rows, num_known, Verified(Pairs(left[some], right[some]), worth)


def in_memory(rows, num_known, verified, cluster, most, directed):
    """({listed pair: worth}, keeper, resemblance) as the job in memory finds them."""
    pinned = np.arange(rows) < num_known
    listed, deciding = selected(verified, pinned, cluster, most, directed)
    measure = SimpleNamespace(directed=directed)
    keeper = choose_keepers(rows, deciding, cluster, measure, pinned, "reference")
    assert ((keeper == np.arange(rows)) == kept_rows(verified.pairs, pinned, cluster)).all()
    return as_dict(listed.pairs.left, listed.pairs.right, listed.resemblance), keeper, resemblance_to(keeper, deciding)


def as_dict(left, right, worth):
    return dict(zip(zip(left.tolist(), right.tolist(), strict=True), worth.tolist(), strict=True))


@pytest.mark.parametrize("width", [1, 3, 7, 100])
@pytest.mark.parametrize("cluster", ["greedy", "components"])
@settings(deadline=None, max_examples=fewer(80), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(verified_pairs(), st.sampled_from([1, 2, 64, None]), st.booleans(), st.integers(0, 2**32))
def test_ranges_together_are_the_whole(tmp_path, width, cluster, case, most, directed, seed):
    rows, num_known, verified = case
    (left, right), worth = (verified.pairs.left, verified.pairs.right), verified.resemblance
    expected, keeper, resemblance = in_memory(rows, num_known, verified, cluster, most, directed)
    decided = [(left, right)], rows, num_known
    if cluster == "greedy":
        removed, labels = decide_greedily(*decided), None
    else:
        removed, labels = decide_by_components(*decided, 1 << 20, tmp_path)
    found, told, rng = {}, [], np.random.default_rng(seed)
    for first in range(0, rows, width):
        stop = min(first + width, rows)
        mine = np.flatnonzero(((left >= first) & (left < stop)) | ((right >= first) & (right < stop)))
        others = rng.integers(0, len(left), rng.integers(0, 5)) if len(left) else mine
        if width == 1 and most is not None:  # of one rank, a few at a time, some repeated
            parts = np.array_split(rng.permutation(np.concatenate([mine, mine[::3]])), 4)
            columns = within_reach(((left[a], left[a], right[a], worth[a]) for a in parts), first, removed, most)
            assert len(columns[0]) <= 2 * most
        else:
            mine = rng.permutation(np.concatenate([mine, others]))  # in any order, some repeated, some of other ranges
            columns = left[mine], right[mine], worth[mine]
        of = keepers_of(range(first, stop), *columns, removed, most, directed, labels)
        listed = as_dict(of.left, of.right, of.listed_resemblance)
        assert list(listed) == sorted(set(listed)) and len(listed) == len(of.left)
        assert all(found.get(pair, value) == value for pair, value in listed.items())
        found |= listed
        told += zip(of.removed.tolist(), of.keeper.tolist(), of.resemblance.tolist(), strict=True)
    assert found == expected
    goes = np.flatnonzero(keeper != np.arange(rows))
    assert [rank for rank, _, _ in told] == goes.tolist()
    assert [other for _, other, _ in told] == keeper[goes].tolist()
    np.testing.assert_array_equal([value for _, _, value in told], resemblance[goes])


def test_a_label_that_was_not_verified_has_no_resemblance(tmp_path):
    left, right, worth = np.array([0, 1]), np.array([1, 2]), np.array([0.8, 0.9])
    removed, labels = decide_by_components([(left, right)], 3, 0, 1 << 20, tmp_path)
    found = keepers_of(range(3), left, right, worth, removed, 64, False, labels)
    assert found.removed.tolist() == [1, 2] and found.keeper.tolist() == [0, 0]
    np.testing.assert_array_equal(found.resemblance, [0.8, np.nan])


def test_a_range_without_pairs():
    removed = decide_greedily([], 100, 0)
    none = np.empty(0, np.int64)
    assert all(len(column) == 0 for column in keepers_of(range(10, 90), none, none, none * 0.5, removed, None, False))
