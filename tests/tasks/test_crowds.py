"""Members of crowds: what verified pairs connect with crowded documents, whatever the order of the pairs."""

import numpy as np
from hypothesis import HealthCheck, example, given, settings, strategies as st

from neardup_gpu.kernels import components, greedy_stream
from neardup_gpu.tasks import crowds
from neardup_gpu.tasks.deciding import set_within


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    crowded=st.lists(st.integers(0, 99), min_size=1, max_size=3),
    pairs=st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), max_size=150),
    at_once=st.integers(1, 20),
    most_bytes=st.integers(1, 1 << 14),
)
@example(crowded=[99], pairs=[(at, at + 1) for at in range(99)], at_once=1, most_bytes=1000)
def test_all_that_pairs_connect_are_members(tmp_path, crowded, pairs, at_once, most_bytes):
    left, right = (np.array([pair[side] for pair in pairs], np.int64) for side in range(2))
    label = components.reference(100, left, right)
    expected = np.flatnonzero(np.isin(label, label[crowded])).tolist()
    left, right = np.minimum(left, right), np.maximum(left, right)
    some = [slice(first, first + at_once) for first in range(0, len(left), at_once)]
    are_crowded = np.zeros(2, np.uint64)
    greedy_stream.mark(are_crowded, np.array(crowded, np.int64))
    found = crowds.connected(are_crowded, [(left[each], right[each]) for each in some], 100, most_bytes, tmp_path)
    assert set_within(found, 0, 100).tolist() == expected
