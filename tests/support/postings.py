"""The tables of an index, compared with those that are made of what it stores of its entries."""

import numpy as np

import neardup_gpu as nd
from neardup_gpu.index.sketches import element_tables, stored


def assert_tables_are_those_of_the_entries(index: nd.Index) -> None:
    """Raise AssertionError if a table of a segment is not that of its entries, or a segment names another order."""
    manifest, segments = index._opened.state
    finder = index.recipe.method.finder(index.recipe, manifest.keeps)
    assert len({segment.place.order for segment in segments} - {None}) <= 1
    for segment in segments:
        everyone = stored([segment], [np.arange(segment.num_entries)])
        made = finder.arrays(finder.remade(everyone, segment.order))
        if manifest.keeps.containment is not None:
            made |= element_tables(everyone.sets, manifest.keeps.containment, index.recipe, "cpu")
        for name, array in made.items():
            if name.endswith(("_keys", "_rows")):
                assert np.array_equal(segment[name], array), (segment.name, name)
        assert segment.file.header.get("order") == (None if segment.order is None else segment.order.id)
