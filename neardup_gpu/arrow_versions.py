"""Hides differences between versions of pyarrow from the rest of the package."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa

_NULL_LISTS = re.compile(r"Expected all lists to be of size=|Lists with non-zero length null components")


def bytes_of(data: pa.Array | pa.ChunkedArray | pa.RecordBatch | pa.Table) -> int:
    """Return the bytes of the values of Arrow data, without what lies in its buffers outside of a slice.

    Before version 24, pyarrow counts no bytes of string views, binary views and list views (arrow's issue 47279). Data
    with any of them is then counted as the message that would carry it, which has some hundred bytes more per batch.
    """
    try:
        return data.nbytes
    except pa.ArrowTypeError:
        table = data if isinstance(data, pa.Table | pa.RecordBatch) else pa.table({"": data})
        batches = table.to_batches() if isinstance(table, pa.Table) else [table]
        return sum(map(pa.ipc.get_record_batch_size, batches))


def numpy_dtype(kind: pa.DataType) -> np.dtype[Any]:
    """Return the NumPy type of an Arrow type of bools, integers or floats.

    `to_pandas_dtype` does the same, and needs pandas for it before version 26 of pyarrow.
    """
    if pa.types.is_boolean(kind):
        return np.dtype(bool)
    if not pa.types.is_integer(kind) and not pa.types.is_floating(kind):
        raise TypeError(f"{kind} is not a type of numbers")
    letter = "f" if pa.types.is_floating(kind) else "u" if pa.types.is_unsigned_integer(kind) else "i"
    return np.dtype(f"{letter}{kind.bit_width // 8}")


def has_null_lists() -> bool:
    """Return whether a Parquet file may hold nulls among lists of one length.

    Before version 26, pyarrow does not read them back, and writes only some of them (arrow's issue 35692).
    """
    return int(pa.__version__.split(".")[0]) >= 26


def kept_lists(column: pa.FixedSizeListArray) -> pa.Array:
    """Return fixed-size lists, some of them null, in the form in which sketch files keep them.

    This version of pyarrow has to read them again: before version 26 they are kept as large lists.
    """
    if has_null_lists():
        return column
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    offsets = np.append(0, np.cumsum(valid * np.int64(column.type.list_size)))
    return pa.LargeListArray.from_arrays(pa.array(offsets), column.flatten(), mask=column.is_null())


def may_be_kept_as(wanted: pa.FixedSizeListType, kind: pa.DataType) -> bool:
    """Return whether a column of a sketch file may have a type where lists of one length are wanted.

    That holds for both types of `kept_lists`, whatever their values are called.
    """
    if pa.types.is_fixed_size_list(kind):
        return (kind.list_size, kind.value_type) == (wanted.list_size, wanted.value_type)
    return pa.types.is_large_list(kind) and kind.value_type == wanted.value_type


def restored_lists(column: pa.Array | pa.ChunkedArray, length: int) -> pa.Array | pa.ChunkedArray:
    """Reverse `kept_lists`; columns of all other types are returned as they are.

    Raises
    ------
    pyarrow.ArrowInvalid
        If not all large lists have this length.
    """
    if not pa.types.is_large_list(column.type):
        return column
    return column.cast(pa.list_(column.type.value_type, length))


def explained(error: BaseException | str) -> str:
    """Return what an error of pyarrow says, or what it means if it is about nulls among lists of one length."""
    if is_about_null_lists(error):
        return "null in place of lists of one length; pyarrow 26 or newer reads it"
    return str(error)


def is_about_null_lists(error: BaseException | str) -> bool:
    """Return whether pyarrow before version 26 has refused a null among lists of one length."""
    return not has_null_lists() and _NULL_LISTS.search(str(error)) is not None
