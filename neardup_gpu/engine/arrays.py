"""Arrays that may lie in host memory or on a GPU: brought together, taken from, joined."""

from __future__ import annotations

from typing import Any

import numpy as np

from neardup_gpu.kernels import gather
from neardup_gpu.kernels._launch import array_module, out_of_memory

from ..data import Ragged
from .choice import to_host


def same_device(array: Any, *others: Any) -> tuple[Any, ...]:
    """Other arrays where the first one is: in host memory, or on the GPU."""
    if isinstance(array, np.ndarray):
        return tuple(to_host(other) for other in others)
    return tuple(array_module(array).asarray(other) for other in others)


def take_rows(array: Any, rows: np.ndarray) -> Any:
    """Some rows of an array or of a Ragged, where it is."""
    if isinstance(array, Ragged):
        run = gather.cpu if isinstance(array.values, np.ndarray) else gather.gpu
        return Ragged._trusted(*run(array.values, array.offsets, *same_device(array.values, rows)))
    return array[same_device(array, rows)[0]]


def joined(parts: list[Any]) -> Any:
    """The rows of several arrays, or of several Ragged, as one; all in host memory, and at least one."""
    if not isinstance(parts[0], Ragged):
        return np.concatenate(parts)
    values = [part.values[part.offsets[0] : part.offsets[-1]] for part in parts]
    ends = np.cumsum(np.concatenate([part.sizes for part in parts]))
    return Ragged(np.concatenate(values), np.append(np.zeros(1, np.int64), ends))


def concat_and_clear(*lists: list[Any], dtype: Any, width: int = 0) -> Any:
    """Concatenate the arrays of several lists and clear the lists; on the GPU if all arrays and the room are there.

    `width` is the number of columns where there are no arrays; 0 for one dimension.
    """
    arrays = [array for each in lists for array in each]
    for each in lists:
        each.clear()
    if not arrays:
        return np.empty((0, width) if width else 0, dtype)
    if any(isinstance(array, np.ndarray) for array in arrays):
        arrays[:] = map(to_host, arrays)
    try:
        return array_module(arrays[0]).concatenate(arrays)
    except Exception as error:
        if not out_of_memory(error):
            raise
    return np.concatenate(list(map(to_host, arrays)))
