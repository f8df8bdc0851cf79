"""Shared shingles, against Python's own sets."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from neardup_gpu.data import Ragged
from neardup_gpu.kernels import overlap

BACKENDS = [overlap.reference, overlap.cpu, pytest.param(overlap.gpu, marks=pytest.mark.launches)]
ROWS = st.lists(st.lists(st.integers(0, 20).map(lambda i: i << 58 | i), max_size=30), max_size=6)


@pytest.mark.parametrize("count", BACKENDS, ids=["reference", "cpu", "gpu"])
@settings(deadline=None, max_examples=40)
@given(documents=ROWS, sampled=ROWS)
def test_counts_are_sizes_of_intersections(count, documents: list[list[int]], sampled: list[list[int]]) -> None:
    rows = Ragged.from_rows(documents, np.uint64)
    sets = Ragged.from_rows([sorted(set(row)) for row in sampled], np.uint64)
    index = overlap.invert(sets.values, sets.offsets)
    expected = [[len(set(row) & set(sample)) for sample in sampled] for row in documents]
    found = count(rows.values, rows.offsets, *index, len(sampled))
    assert found.dtype == np.int32
    assert found.tolist() == expected
