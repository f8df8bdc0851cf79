"""Shared shingles, against Python's own sets."""

import numpy as np
from hypothesis import given, strategies as st

from neardup_gpu.data import Ragged
from neardup_gpu.kernels import overlap

ROWS = st.lists(st.lists(st.integers(0, 20).map(lambda i: i << 58 | i), max_size=30), max_size=6)


@given(documents=ROWS, sampled=ROWS)
def test_counts_are_sizes_of_intersections(documents: list[list[int]], sampled: list[list[int]]) -> None:
    rows = Ragged.from_rows(documents, np.uint64)
    sets = Ragged.from_rows([sorted(set(row)) for row in sampled], np.uint64)
    index = overlap.invert(sets.values, sets.offsets)
    expected = [[len(set(row) & set(sample)) for sample in sampled] for row in documents]
    for backend in (overlap.reference, overlap.cpu):
        found = backend(rows.values, rows.offsets, *index, len(sampled))
        assert found.dtype == np.int32
        assert found.tolist() == expected
