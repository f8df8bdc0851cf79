"""Notice that a source in memory, such as a query that runs again, gives other rows when it is read again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from ..data import numpy_of
from ..errors import InputError
from . import nested
from .batches import ragged
from .columns import decoded, is_text, plain_type


class SameRows:
    """Compares each pass over the rows of a source with the first one.

    Each column of strings, bytes, numbers, or lists of such values has a checksum of 64 bits, which does not depend on
    how rows are divided into batches. Columns of other types, such as structs, are not compared.

    Parameters
    ----------
    name : str
        Of the source, for messages.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._sums: dict[str, list[int]] = {}

    def watched(self, batches: Iterable[pa.RecordBatch], names: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        """Yield the batches of a pass.

        Parameters
        ----------
        batches : iterable of pyarrow.RecordBatch
        names : list of str or None
            The columns to compare; None for those of earlier passes.

        Raises
        ------
        InputError
            After the last batch, if a column is not that of an earlier pass.
        """
        sums = {name: [xxhash.xxh3_64(), xxhash.xxh3_64()] for name in (self._sums if names is None else names)}
        for batch in batches:
            for name, (sizes, values) in sums.items():
                _add(nested.column(batch, name), sizes, values)
            yield batch
        for name, column in sums.items():
            found = [each.intdigest() for each in column]
            if self._sums.setdefault(name, found) != found:
                raise InputError(
                    f"{self._name}: other rows, or another order, than when it was first read (column {name!r}); give "
                    "a query with one result, ordered by a key, or write it to a file."
                )


def _add(column: pa.Array, sizes: xxhash.xxh3_64, values: xxhash.xxh3_64) -> None:
    """Add a column of a batch to the checksums of its sizes and of its values."""
    column = decoded(column, plain_type(column.type))
    if nested.is_list(column.type):
        sizes.update(numpy_of(pc.fill_null(pc.list_value_length(column), -1)).tobytes())
        _add(column.flatten(), sizes, values)
    elif is_text(column.type):
        column = column.cast(pa.large_binary())
        sizes.update(numpy_of(pc.fill_null(pc.binary_length(column), -1)).tobytes())
        text = ragged(column.fill_null(b""))  # a null may have bytes, which mean nothing
        values.update(text.values[text.offsets[0] : text.offsets[-1]].data)
    elif pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        values.update(numpy_of(column.fill_null(0)).tobytes())
