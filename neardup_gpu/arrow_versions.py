"""Hides differences between versions of pyarrow from the rest of the package."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

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


def is_about_null_lists(error: BaseException | str) -> bool:
    """Return whether pyarrow before version 26 has refused a null among lists of one length."""
    return not has_null_lists() and _NULL_LISTS.search(str(error)) is not None
