"""Let a formula of numbers take arrays as well."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

if TYPE_CHECKING:
    import numpy as np

Number = TypeVar("Number", float, "np.ndarray")
"""A number, or an array of them: what a formula is given decides what it returns."""

Numbers: TypeAlias = "float | np.ndarray"
"""A number or an array, for a formula that takes both."""


def elementwise(formula: Callable[..., Any], *values: Any, results: int = 1) -> Any:
    """Apply a formula to numbers, or to each element of arrays, which are broadcast.

    Parameters
    ----------
    formula : callable
        Takes a number for each of the values, and checks them.
    values : number or array
        Arrays of NumPy, pandas or polars. What is neither is given to the formula, which refuses it.
    results : int, default 1
        The number of values that the formula returns.

    Returns
    -------
    object
        The formula's result; of arrays, an array of float64 of their common shape, or a tuple of `results` arrays.
    """
    if not any(map(_is_array, values)):
        return formula(*values)
    import numpy as np

    arrays = np.broadcast_arrays(*map(np.asarray, values))
    found = [formula(*row) for row in zip(*(array.ravel().tolist() for array in arrays), strict=True)]
    columns = np.array(found, np.float64).reshape(*arrays[0].shape, results)
    return tuple(np.moveaxis(columns, -1, 0)) if results > 1 else columns[..., 0]


def _is_array(value: Any) -> bool:
    """Whether a value is an array in host memory without masked elements."""
    if not hasattr(value, "dtype") or not getattr(value, "shape", ()) or hasattr(value, "__cuda_array_interface__"):
        return False
    return "numpy.ma" not in sys.modules or not isinstance(value, sys.modules["numpy.ma"].MaskedArray)
