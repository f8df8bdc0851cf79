"""The tables of an index, compared with those that are made of what it stores of its entries."""

import numpy as np

import neardup_gpu as nd
from neardup_gpu.data import Ragged
from neardup_gpu.index.finding.exact import Prefixes
from neardup_gpu.index.segments import sorted_table


def assert_tables_are_those_of_the_sets(index: nd.Index) -> None:
    """Raise AssertionError if a posting of a segment is not that of its sets by its order, or one is missing."""
    recipe = index.recipe
    orders = {segment.place.order for segment in index._opened.state[1]} - {None}
    assert len(orders) <= 1
    for segment in index._opened.state[1]:
        if recipe.method.name != "exact" or segment.order is None:
            continue
        sets = Ragged(segment["set_values"], segment["set_offsets"])
        made = Prefixes.of(sets, segment.order, recipe.threshold, "cpu")
        rows = np.repeat(np.arange(len(sets)), np.diff(made.offsets))
        keys, rows = sorted_table(made.keys, rows)
        assert np.array_equal(segment["posting_keys"], keys) and np.array_equal(segment["posting_rows"], rows)
