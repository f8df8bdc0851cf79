"""Copy tables and coefficients, which do not depend on a batch, to a device once.

Tables of Unicode and of polynomials are 424 kB, which were copied for each batch, in pieces that wait for one another.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ._launch import current_device, namespace, on_device, simulated

MOST = 64  # that are kept; the largest, the table of Unicode, is 0.3 MB

_HELD: OrderedDict[Any, tuple[Any, ...]] = OrderedDict()
_LOCK = threading.Lock()


def constants(make: Callable[..., Any], *arguments: Any) -> tuple[Any, ...]:
    """``make(*arguments)``, an array of NumPy's or several, on the current device: made and copied only once.

    Parameters
    ----------
    make : callable
        A function of its arguments alone, which can be keys of a dict.

    Returns
    -------
    tuple of arrays
        Not to be written to. The `MOST` arrays that were used last are kept, over all devices.
    """
    key = namespace().ndarray, current_device(), make, arguments
    with _LOCK:
        if key in _HELD:
            _HELD.move_to_end(key)
            return _HELD[key]
        made = make(*arguments)
        held = _HELD[key] = resident(made if isinstance(made, tuple) else (made,))
        if len(_HELD) > MOST:
            _HELD.popitem(last=False)
        return held


def constant(array: Any) -> Any:
    """A small array on the device: one of NumPy's is copied there once, by its values, and not in each batch."""
    if not isinstance(array, np.ndarray):
        return on_device(array)
    return constants(_from_bytes, array.tobytes(), array.dtype.str, array.shape)[0]


def _from_bytes(data: bytes, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    return np.frombuffer(data, dtype).reshape(shape).copy()


def resident(arrays: tuple[np.ndarray, ...]) -> tuple[Any, ...]:
    """Arrays on the device for as long as they are wanted, whatever job is running, to be read on any stream."""
    if simulated():
        return tuple(on_device(array) for array in arrays)
    import cupy

    with cupy.cuda.using_allocator(_pool().malloc):
        copied = tuple(on_device(array) for array in arrays)
    cupy.cuda.get_current_stream().synchronize()
    return copied


@cache
def _pool() -> Any:
    """Memory for constants alone: in a job's pool they would keep blocks of it beyond its end."""
    import cupy

    return cupy.cuda.MemoryPool()
