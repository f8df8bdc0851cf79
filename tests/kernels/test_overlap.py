"""Shared shingles, against Python's own sets."""

import numpy as np
import pytest
from grids import fewer
from hypothesis import given, settings, strategies as st

from neardup_gpu.data import Ragged
from neardup_gpu.kernels import overlap

BACKENDS = [overlap.reference, overlap.cpu, pytest.param(overlap.gpu, marks=pytest.mark.launches)]
ROWS = st.lists(st.lists(st.integers(0, 20).map(lambda i: i << 58 | i), max_size=30), max_size=6)


@pytest.mark.parametrize("count", BACKENDS, ids=["reference", "cpu", "gpu"])
@settings(deadline=None, max_examples=fewer(40))
@given(documents=ROWS, sampled=ROWS)
def test_pairs_share_enough(count, documents: list[list[int]], sampled: list[list[int]]) -> None:
    rows = Ragged.from_rows(documents, np.uint64)
    sets = Ragged.from_rows([sorted(set(row)) for row in sampled], np.uint64)
    index = overlap.invert(sets.values, sets.offsets)
    least, bounds = np.arange(len(sampled)), np.full(len(documents), 3)
    common = [[len(set(row) & set(sample)) for sample in sampled] for row in documents]
    expected = [(d, i, n) for d, row in enumerate(common) for i, n in enumerate(row) if n and n >= min(i, 3)]
    found = count(rows.values, rows.offsets, *index, least, bounds)
    assert [array.dtype for array in found] == [np.int64, np.int64, np.int32]
    assert list(zip(*(array.tolist() for array in found), strict=True)) == expected
