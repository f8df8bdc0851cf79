"""The forms in which fingerprints may be given: arrays of 64 or 128 bits, and text.

Fingerprints have 64 bits, an array of uint64 of shape (rows,), or 128, of shape (rows, 2), the higher word first. What
pyarrow, pandas and polars hold as uint64 is taken as well, and so are lists of integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from neardup_gpu.kernels._launch import check_rows

from .. import checks
from ..engine.choice import to_host
from ..errors import ParameterError
from ..methods.table_design import of_integers


class _HasArray(Protocol):
    """Any object that NumPy can read as an array: pandas', polars' and pyarrow's columns."""

    def __array__(self, *arguments: Any, **options: Any) -> Any: ...


Fingerprints = np.ndarray | Sequence[int] | Sequence[tuple[int, int]] | _HasArray
"""Any form in which functions take fingerprints."""


def as_fingerprints(values: Any, name: str, bits: int | None = None) -> np.ndarray:
    """Fingerprints as a contiguous array of uint64 on the host, shape (rows,) or (rows, 2).

    Parameters
    ----------
    values : Fingerprints
    name : str
        What messages call them.
    bits : {64, 128}, optional
        The length that they must have, where it is known.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If they are something else, such as signed or floating-point numbers, or null.
    ResourceError
        If there are too many.
    """
    if type(values).__module__.partition(".")[0] == "pyarrow" and hasattr(values, "null_count"):
        values = _from_arrow(values, name)
    elif hasattr(values, "__cuda_array_interface__"):
        values = to_host(values)
    array = values if isinstance(values, list | tuple) else checks.as_array(name, values)[0]
    if isinstance(array, list | tuple) or (array.dtype == object and array.ndim == 1):
        array = _from_objects(list(array), name, bits or 64)
    if not is_array_of_fingerprints(array.dtype, array.shape):
        raise ParameterError(
            f"{name}: {array.dtype} of shape {array.shape}; give uint64 of shape (rows,) for 64 bits, (rows, 2) for 128"
        )
    if bits not in (None, 64 * array.ndim):
        raise ParameterError(f"{name} must have {bits} bits, got {64 * array.ndim}; use one length")
    check_rows(len(array), name)
    return np.ascontiguousarray(array, np.uint64)


def is_array_of_fingerprints(dtype: np.dtype, shape: tuple[int, ...]) -> bool:
    """Whether an array of this dtype, in any byte order, and of this shape may hold fingerprints."""
    return dtype.newbyteorder("=") == np.uint64 and len(shape) in (1, 2) and shape[1:] in ((), (2,))


def _are_integers(values: Any, bits: int) -> bool:
    return all(
        isinstance(value, int | np.integer) and not isinstance(value, bool) and 0 <= value < 2**bits for value in values
    )


def _from_objects(values: list[Any], name: str, bits: int) -> np.ndarray:
    """Convert a list of integers, or of pairs of words, to an array."""
    if _are_integers(values, bits):
        return of_integers(values, bits)
    if all(
        isinstance(pair, list | tuple | np.ndarray) and len(pair) == 2 and _are_integers(pair, 64) for pair in values
    ):
        return np.array([tuple(pair) for pair in values], np.uint64)
    raise ParameterError(f"{name}: not all are integers from 0 to 2**{bits} - 1, or pairs of such words")


def _from_arrow(values: Any, name: str) -> np.ndarray:
    """Convert a pyarrow array of uint64 or of fixed-size lists to NumPy; `as_fingerprints` checks its dtype."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_fixed_size_list(values.type):
        if not values.null_count:
            words = pc.list_flatten(values)
            if not words.null_count:
                return words.to_numpy().reshape(-1, values.type.list_size)
    elif not values.null_count:
        return values.to_numpy(zero_copy_only=False) if isinstance(values, pa.Array) else values.to_numpy()
    raise ParameterError(f"{name}: some are null; leave them out, as they match nothing")


def parse_fingerprint(text: str, bits: int) -> Any:
    """Read a fingerprint from hexadecimal digits: any number after 0x, or all 16 (32 for 128 bits) without it.

    Returns
    -------
    int for 64 bits; for 128 bits a tuple of two, the higher word first

    Raises
    ------
    ParameterError
        If it is anything else, such as decimal.

    Examples
    --------
    >>> parse_fingerprint("0xff", 64), parse_fingerprint("00000000000000ff" * 2, 128)
    (255, (255, 255))
    """
    digits = text.strip().lower()
    prefixed = digits.startswith("0x")
    digits = digits.removeprefix("0x")
    full = bits // 4
    valid = bool(digits) and set(digits) <= set("0123456789abcdef")
    if not valid or len(digits) > full or (len(digits) < full and not prefixed):
        raise ParameterError(f"fingerprint {text!r} is not {full} hexadecimal digits; fewer may follow 0x, as in 0x1f")
    value = int(digits, 16)
    return value if bits == 64 else (value >> 64, value % 2**64)


def hexadecimal(fingerprint: Any) -> str:
    """Write a fingerprint, a uint64 or an array of two, so that `parse_fingerprint` can read it."""
    return "0x" + "".join(f"{int(word):016x}" for word in np.atleast_1d(fingerprint))
