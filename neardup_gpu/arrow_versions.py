"""Hides differences between versions of pyarrow from the rest of the package."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

_NULL_LISTS = re.compile(r"Expected all lists to be of size=|Lists with non-zero length null components")


def bytes_of(data: pa.Array | pa.ChunkedArray | pa.RecordBatch | pa.Table) -> int:
    """Return the bytes of the values of Arrow data, without what lies in its buffers outside of a slice.

    Before version 24, pyarrow counts no bytes of string views, binary views and list views (arrow's issue 47279). Data
    with any of them is then counted as the message that would carry it, which has some hundred bytes more per batch.
    """
    import pyarrow as pa

    try:
        return data.nbytes
    except pa.ArrowTypeError:
        table = data if isinstance(data, pa.Table | pa.RecordBatch) else pa.table({"": data})
        batches = table.to_batches() if isinstance(table, pa.Table) else [table]
        return sum(map(pa.ipc.get_record_batch_size, batches))


def has_null_lists() -> bool:
    """Return whether a Parquet file may hold nulls among lists of one length.

    Before version 26, pyarrow does not read them back, and writes only some of them (arrow's issue 35692).
    """
    import pyarrow as pa

    return int(pa.__version__.split(".")[0]) >= 26


def readable_lists(column: pa.FixedSizeListArray) -> pa.Array:
    """Return lists of one length as this version of pyarrow reads them back from Parquet.

    They become lists of any length if some are null and pyarrow is older than 26. A cast to the old type reverses that.
    """
    import pyarrow as pa

    if has_null_lists() or not column.null_count:
        return column
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    offsets = np.append(0, np.cumsum(valid * np.int64(column.type.list_size)))
    return pa.LargeListArray.from_arrays(pa.array(offsets), column.flatten(), mask=column.is_null())


def explained(error: BaseException | str) -> str:
    """Return what an error of pyarrow says, or what it means if it is about nulls among lists of one length."""
    if is_about_null_lists(error):
        return "null in place of lists of one length; pyarrow 26 or newer reads it"
    return str(error)


def is_about_null_lists(error: BaseException | str) -> bool:
    """Return whether pyarrow before version 26 has refused a null among lists of one length."""
    return not has_null_lists() and _NULL_LISTS.search(str(error)) is not None
