"""Remaking: the tables by which candidates are found, made again from what is stored of entries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..data import Ragged
from .sketches import Sketched

if TYPE_CHECKING:
    from .segments import Segment


def stored(segments: list[Segment], rows: list[np.ndarray]) -> Sketched:
    """Return what segments store of some of their entries: words, sets and sketches; there are no hashes and no keys.

    Parameters
    ----------
    segments : list of Segment
    rows : list of arrays of int64
        Rows of entries, ascending, for each segment.
    """
    pairs = list(zip(segments, rows, strict=True))
    number = sum(map(len, rows))
    values, sizes, sketch = [np.empty(0, np.uint64)], [np.zeros(1, np.int64)], None
    if segments and "set_values" in segments[0].arrays:
        parts = [segment.sets_of(some) for segment, some in pairs]
        values, sizes = [each.values for each in parts], [*sizes, *(each.sizes for each in parts)]
    else:
        sizes.append(np.zeros(number, np.int64))
    if segments and "sketch" in segments[0].arrays:
        sketch = np.concatenate([segment.sketches_of(some) for segment, some in pairs])
    tokens = np.concatenate([np.empty(0, np.int64), *(segment["tokens"][some] for segment, some in pairs)])
    nothing = np.empty((number, 0), np.uint64)
    sets = Ragged(np.concatenate(values), np.cumsum(np.concatenate(sizes)))
    return Sketched(nothing, tokens, nothing, sets, sketch)
