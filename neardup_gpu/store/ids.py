"""Ids of rows, kept as they were given: integers in their own type, strings and bytes each in its own length.

>>> Ids.of(["a", "bb"]).take(np.array([1]))
array(['bb'], dtype=object)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..data import arrow, arrow_bytes, numpy_of
from ..errors import DamagedError, ParameterError

if TYPE_CHECKING:
    import pyarrow as pa

    from .arrays import ArraysFile


KINDS = ("integer", "string", "binary")
NAMES = ("ids", "id_offsets", "id_values")
"""Names of the arrays that hold ids."""


class Ids:
    """One id for each row, in memory or mapped from a file.

    Parameters
    ----------
    kind : {"integer", "string", "binary"}
    arrays : dict of str to array
        For integers `ids`, shape (rows,). For the others `id_offsets`, int64, shape (rows + 1,), and `id_values`,
        uint8: the id of row i is id_values[id_offsets[i]:id_offsets[i + 1]], a string in UTF-8.
    file : ArraysFile, optional
        The file that the arrays are mapped from. What is read of them is compared with its checksums before.

    Notes
    -----
    An integer takes its own bytes, a string or bytes take their own and 8. Only the ids that are taken are read and
    decoded.
    """

    def __init__(self, kind: str, arrays: dict[str, np.ndarray], file: ArraysFile | None = None) -> None:
        self.kind, self.arrays, self._file = kind, arrays, file

    @classmethod
    def of(cls, ids: Any) -> Ids:
        """Take ids from pyarrow, NumPy, pandas, polars or a list: integers, strings or bytes.

        Raises
        ------
        ParameterError
            If they are something else, of several kinds, or null.
        """
        if type(ids).__module__.partition(".")[0] == "pyarrow" and hasattr(ids, "null_count"):
            return cls._of_arrow(ids)
        if isinstance(ids, list | tuple) and ids and all(isinstance(value, str | bytes) for value in ids):
            return cls._of_texts(ids)  # NumPy would cut trailing zeros, and make strings of bytes
        array = np.asarray(ids)
        if array.ndim == 1 and array.dtype.kind in "OTUSf":
            each = ids if isinstance(ids, list | tuple) else array.tolist()
            if all(isinstance(value, str | bytes) for value in each):
                return cls._of_texts(each)
            if all(isinstance(value, int | np.integer) and 0 <= value < 2**64 for value in each):
                array = np.array(each, np.uint64)  # some of them need 64 bits
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise _unfit_ids(f"an array of {array.ndim} dimensions of {array.dtype}")
        return cls("integer", {"ids": np.ascontiguousarray(array, array.dtype.newbyteorder("="))})

    @classmethod
    def _of_texts(cls, texts: Any) -> Ids:
        kind = "binary" if len(texts) and isinstance(texts[0], bytes) else "string"
        if not all(isinstance(text, bytes if kind == "binary" else str) for text in texts):
            raise _unfit_ids("both strings and bytes")
        try:
            values = texts if kind == "binary" else [text.encode() for text in texts]
        except UnicodeEncodeError as error:
            raise ParameterError(f"ids: {error.object!r} is not valid Unicode; give such ids as bytes") from None
        offsets = np.cumsum([0, *map(len, values)], dtype=np.int64)
        return cls(kind, {"id_offsets": offsets, "id_values": np.frombuffer(b"".join(values), np.uint8)})

    @classmethod
    def _of_arrow(cls, ids: pa.Array | pa.ChunkedArray) -> Ids:
        import pyarrow as pa

        types = pa.types
        binary = types.is_binary, types.is_large_binary, types.is_fixed_size_binary, types.is_binary_view
        if types.is_dictionary(ids.type):
            ids = ids.cast(ids.type.value_type)
        kind = ids.type
        if types.is_integer(kind):
            target, name = kind, "integer"
        elif types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
            target, name = pa.large_string(), "string"
        elif any(check(kind) for check in binary):
            target, name = pa.large_binary(), "binary"
        else:
            raise _unfit_ids(str(kind))
        if ids.null_count:
            raise _unfit_ids(f"{kind} with nulls")
        ids = ids if kind == target else ids.cast(target)
        if isinstance(ids, pa.ChunkedArray):
            ids = ids.combine_chunks()
        if name == "integer":
            return cls(name, {"ids": np.ascontiguousarray(numpy_of(ids))})
        _, offsets, values = ids.buffers()
        starts = np.frombuffer(offsets, np.int64)[ids.offset :][: len(ids) + 1] if len(ids) else np.zeros(1, np.int64)
        bytes_ = np.frombuffer(values or b"", np.uint8)[starts[0] : starts[-1]]
        return cls(name, {"id_offsets": starts - starts[0], "id_values": bytes_})

    def __len__(self) -> int:
        return len(self.arrays["ids"]) if self.kind == "integer" else len(self.arrays["id_offsets"]) - 1

    def fit(self, num_rows: int) -> bool:
        """Whether the arrays have the dtypes and shapes that `num_rows` ids of this kind have."""
        found = {name: (array.dtype.kind, array.dtype.itemsize, array.shape) for name, array in self.arrays.items()}
        if self.kind == "integer":
            kind, _, shape = found.pop("ids", ("", 0, ()))
            return kind in ("i", "u") and shape == (num_rows,) and not found
        kind, size, shape = found.pop("id_values", ("", 0, ()))
        sound = self.kind in ("string", "binary") and (kind, size, len(shape)) == ("u", 1, 1)
        return sound and found == {"id_offsets": ("i", 8, (num_rows + 1,))}

    def take(self, rows: np.ndarray) -> np.ndarray:
        """The ids of some rows: integers in their own dtype, others as an array of str or bytes objects.

        Raises
        ------
        DamagedError
            If the ids are mapped from a file in which these ids are not as they were written.
        """
        self._verify(rows)
        if self.kind == "integer":
            return self.arrays["ids"][rows]
        starts, stops = self._bounds(rows)
        memory = self.arrays["id_values"].data
        each: list[Any] = [bytes(memory[a:b]) for a, b in zip(starts.tolist(), stops.tolist(), strict=True)]
        if self.kind == "string":
            try:
                each = [value.decode() for value in each]
            except UnicodeDecodeError:
                raise _damaged() from None
        found = np.empty(len(rows), object)
        found[:] = each
        return found

    def arrow(self, rows: np.ndarray) -> pa.Array:
        """Like `take`, as an Arrow array: integers in their own type, others as large_string or large_binary."""
        import pyarrow as pa

        self._verify(rows)
        if self.kind == "integer":
            return arrow(self.arrays["ids"][rows])
        self._bounds(rows)  # Arrow reads these rows alone, and checks none of their bounds
        kept = arrow_bytes(self.arrays["id_values"], self.arrays["id_offsets"]).take(arrow(rows))
        try:
            return kept if self.kind == "binary" else kept.cast(pa.large_string())
        except pa.ArrowInvalid:
            raise _damaged() from None

    def sizes(self, rows: np.ndarray) -> np.ndarray:
        """Size in bytes of the ids of some rows: int64, shape (rows,)."""
        self._verify(rows)
        if self.kind == "integer":
            return np.full(len(rows), self.arrays["ids"].itemsize)
        starts, stops = self._bounds(rows)
        return stops - starts

    def _verify(self, rows: np.ndarray) -> None:
        """Compare the ids of some rows with the checksums of their file."""
        if self._file is None:
            return
        if self.kind == "integer":
            self._file.verify("ids", rows, rows + 1)
        else:
            self._file.verify_rows("id_offsets", "id_values", rows)

    def _bounds(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        offsets = self.arrays["id_offsets"]
        starts, stops = offsets[rows], offsets[rows + 1]
        if len(rows) and (starts.min() < 0 or stops.max() > len(self.arrays["id_values"]) or (starts > stops).any()):
            raise _damaged()
        return starts, stops


def _unfit_ids(found: str) -> ParameterError:
    return ParameterError(f"ids must be one integer or one string for each fingerprint, got {found}")


def _damaged() -> DamagedError:
    return DamagedError("the index is damaged: its ids are not valid; build it again")
