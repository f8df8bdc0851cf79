"""The two containers: rows of different lengths, and pairs of rows. Frozen, and valid once made.

Their arrays are NumPy's, or CuPy's on a GPU.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from . import checks
from .arrow_versions import bytes_of, numpy_dtype
from .errors import ArgumentTypeError, ParameterError
from .records import dataclass
from .report import count

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Ragged:
    """Rows of different lengths: row i is ``values[offsets[i]:offsets[i + 1]]``.

    Parameters
    ----------
    values : array, shape (n,)
        The rows' contents, one row after another. A list becomes an array.
    offsets : array of int64, shape (rows + 1,)
        Never decreasing, from at least 0 to at most n. A slice may begin after 0. Other integers become int64.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If the offsets break these rules, or either argument is not such an array.

    Examples
    --------
    >>> Ragged([7, 8, 9], [0, 1, 1, 3])[2]
    array([8, 9])
    """

    values: np.ndarray
    offsets: np.ndarray

    def __post_init__(self) -> None:
        values = checks.values("Ragged values", self.values)
        offsets = checks.array("Ragged offsets", self.offsets, np.int64, convert=True)
        if len(offsets) == 0:
            raise ParameterError("Ragged offsets: none given; give [0] if there are no rows")
        valid = (offsets[0] >= 0) & (offsets[-1] <= len(values)) & (offsets[1:] >= offsets[:-1]).all()
        if not valid:  # the only place that waits for a GPU, if the offsets lie there
            raise ParameterError(f"Ragged offsets must not decrease and must lie within {count(len(values), 'value')}")
        vars(self).update(values=values, offsets=offsets)

    @classmethod
    def _trusted(cls, values: Any, offsets: Any) -> Ragged:
        """Rows that need no look at their offsets: what a kernel made, or rows of a Ragged.

        Checking offsets that lie on a GPU makes the host wait for all that the GPU has been given.
        """
        made = object.__new__(cls)
        vars(made).update(values=values, offsets=offsets)
        return made

    @classmethod
    def _joined(cls, parts: Sequence[Ragged]) -> Ragged:
        """Join rows, part after part. Each of the parts, at least one, has no values outside its rows."""
        offsets = np.append(0, np.cumsum(np.concatenate([part.sizes for part in parts])))
        return cls._trusted(np.concatenate([part.values for part in parts]), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> np.ndarray:
        if not 0 <= checks.integer("row", row, -(2**63)) < len(self):
            raise IndexError(f"row {row} of {len(self)}")
        return self.values[int(self.offsets[row]) : int(self.offsets[row + 1])]

    @property
    def sizes(self) -> np.ndarray:
        """Length of each row: int64, shape (rows,)."""
        return self.offsets[1:] - self.offsets[:-1]

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""
        return int(self.values.nbytes + self.offsets.nbytes)

    def __repr__(self) -> str:
        number = int(self.offsets[-1] - self.offsets[0])
        return f"Ragged({count(len(self), 'row')}, {count(number, f'{self.values.dtype} value')})"

    def __arrow_c_device_array__(self, requested_schema: Any = None, **options: Any) -> tuple[Any, Any]:
        """Export the rows by Arrow's device interface, as a large list; they are not copied and stay on their device.

        pyarrow, pylibcudf and other libraries take a Ragged by it: ``pa.array(ragged)``.
        """
        from . import interchange

        return interchange.export(self.values, self.offsets, requested_schema)

    @classmethod
    def from_rows(cls, rows: list[Any], dtype: Any) -> Ragged:
        """Copy a list of arrays (or of anything NumPy reads as one) into one Ragged of `dtype`.

        Parameters
        ----------
        rows : list of arrays
            One for each row.
        dtype : NumPy dtype
            Of the values.

        Raises
        ------
        ParameterError, ArgumentTypeError
            If a row is not such an array, or a value is not exactly one of `dtype`.

        Examples
        --------
        >>> Ragged.from_rows([[7], [], [8, 9]], np.uint64).offsets
        array([0, 1, 1, 3])
        """
        checks.instance("rows", rows, (list, tuple), "of an array for each row")
        arrays = [checks.array(f"rows[{i}]", row, dtype, convert=True) for i, row in enumerate(rows)]
        offsets = np.zeros(len(arrays) + 1, np.int64)
        np.cumsum([len(a) for a in arrays], out=offsets[1:])
        return cls(np.concatenate(arrays) if arrays else np.empty(0, dtype), offsets)


@dataclass(frozen=True, eq=False)
class Tokens(Ragged):
    """Tokens of each document, with their places.

    Parameters
    ----------
    values, offsets : arrays
        As in `Ragged`: the fingerprints of tokens.
    begins, ends : arrays of int64, shape (n,)
        Token i is ``text[begins[i]:ends[i]]``. `kernels/tokens.py` defines the place of a token.
    """

    begins: np.ndarray
    ends: np.ndarray


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of rows, left < right, in lexicographic order, each once.

    Parameters
    ----------
    left : array of int64, shape (n,)
        The better row of each pair. Lists and other integers become such an array.
    right : array of int64, shape (n,)
        The other row.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If a pair is out of order, repeated or not left < right, or either argument is not such an array.

    Examples
    --------
    >>> len(Pairs([0, 0], [1, 2]))
    2
    """

    left: np.ndarray
    right: np.ndarray

    def __post_init__(self) -> None:
        left = checks.array("Pairs left", self.left, np.int64, convert=True)
        right = checks.array("Pairs right", self.right, np.int64, convert=True)
        if left.shape != right.shape:
            raise ParameterError(f"Pairs: left and right must be of equal length, got {len(left):,} and {len(right):,}")
        oriented = ((left >= 0) & (left < right)).all()
        rising = ((left[1:] > left[:-1]) | ((left[1:] == left[:-1]) & (right[1:] > right[:-1]))).all()
        if not (oriented & rising):  # of arrays on a device the host waits once
            if not oriented:
                raise ParameterError("Pairs need 0 <= left < right; Pairs.from_unsorted orients them")
            raise ParameterError("Pairs must be sorted and unique; Pairs.from_unsorted does both")
        vars(self).update(left=left, right=right)

    def __len__(self) -> int:
        return len(self.left)

    def __repr__(self) -> str:
        return f"Pairs({len(self):,})"

    @classmethod
    def _trusted(cls, left: Any, right: Any) -> Pairs:
        """Make pairs of arrays that are known to be in order, unchecked."""
        pairs = object.__new__(cls)
        vars(pairs).update(left=left, right=right)
        return pairs

    @classmethod
    def from_unsorted(cls, left: Any, right: Any) -> Pairs:
        """Orient, sort and deduplicate pairs given in any order; pairs of a row with itself are dropped.

        Parameters
        ----------
        left : array of int64, shape (n,)
            One row of each pair.
        right : array of int64, shape (n,)
            The other row.

        Raises
        ------
        ParameterError, ArgumentTypeError
            If `left` and `right` differ in length, or are not row numbers from 0 to 2**63 - 1.

        Examples
        --------
        >>> pairs = Pairs.from_unsorted([2, 1, 3], [0, 2, 3])
        >>> pairs.left, pairs.right
        (array([0, 1]), array([2, 2]))
        """
        a = checks.array("left", left, np.int64, convert=True)
        b = checks.array("right", right, np.int64, convert=True)
        if a.shape != b.shape:
            raise ParameterError(f"Pairs: left and right must be of equal length, got {len(a):,} and {len(b):,}")
        xp: Any = np
        if not isinstance(a, np.ndarray) or not isinstance(b, np.ndarray):
            from neardup_gpu.kernels._launch import namespace

            xp = namespace()
            a, b = xp.asarray(a), xp.asarray(b)
        low, high = xp.minimum(a, b), xp.maximum(a, b)
        differ = xp.flatnonzero(low != high)
        low, high = low[differ], high[differ]
        order = xp.lexsort(xp.stack([high, low]))
        low, high = low[order], high[order]
        first = xp.ones(len(low), bool)
        first[1:] = (low[1:] != low[:-1]) | (high[1:] != high[:-1])
        first = xp.flatnonzero(first)
        return cls(low[first], high[first])

    def where(self, mask: np.ndarray) -> Pairs:
        """The pairs at which a mask holds.

        Parameters
        ----------
        mask : array of bool, shape (n,)

        Raises
        ------
        ParameterError, ArgumentTypeError
            If it is not such an array.

        Examples
        --------
        >>> Pairs([0, 0], [1, 2]).where([True, False])
        Pairs(1)
        """
        mask = checks.array("mask", mask, bool, (len(self),))
        return Pairs(self.left[mask], self.right[mask])


def as_ragged(name: str, value: Any, dtype: Any, hint: str = "") -> Ragged:
    """Return rows of different lengths, of values of one dtype. Columns of other libraries become rows."""
    from . import interchange

    if not isinstance(value, Ragged) and interchange.is_column(value):
        value = Ragged(*interchange.rows(name, value))
    if not isinstance(value, Ragged):
        hint = hint or f"Ragged.from_rows(rows, np.{np.dtype(dtype)})"
        raise ArgumentTypeError(f"{name}: {checks.shown(value)}; give a Ragged{checks.hinted(hint)}")
    if value.values.dtype == dtype:
        # Text comes from Arrow, whose memory cannot be written to, and that is what its kernels are compiled for.
        if dtype is np.uint8 or getattr(value.values.flags, "writeable", True):
            return value
        return Ragged(value.values.copy(), value.offsets)
    if len(value.values):
        wanted = f"of {np.dtype(dtype)} is needed{checks.hinted(hint)}"
        raise ParameterError(f"{name}: a Ragged of {value.values.dtype}; {wanted}")
    return Ragged(value.values.astype(dtype), value.offsets)


NO_PAIRS = Pairs(np.empty(0, np.int64), np.empty(0, np.int64))
"""No pairs."""


def pairs_within(name: str, value: Any, rows: int) -> Pairs:
    """Pairs whose row numbers are all below `rows`."""
    checks.instance(name, value, Pairs, "Pairs.from_unsorted(left, right) makes one")
    if len(value) and (last := int(value.right.max())) >= rows:
        raise ParameterError(f"{name}: a pair names row {last:,}, there are {rows:,} rows; they are counted from 0")
    return value


def arrow(values: np.ndarray, null: np.ndarray | None = None) -> pa.Array:
    """A NumPy array of numbers or bools as an Arrow array; `null` (bool) marks missing values.

    ``pa.array`` does the same, but imports pandas wherever that is installed, which costs 0.2 s at start-up.
    """

    def bits(mask: np.ndarray) -> pa.Buffer:
        return pa.py_buffer(np.packbits(mask, bitorder="little"))

    data = bits(values) if values.dtype == bool else pa.py_buffer(np.ascontiguousarray(values))
    kind = pa.bool_() if values.dtype == bool else pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(kind, len(values), [None if null is None else bits(~null), data])


def strings(values: list[str]) -> pa.Array:
    """A list of strings as an Arrow array, without pandas, like `arrow`."""
    encoded = [value.encode() for value in values]
    offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    return arrow_bytes(b"".join(encoded), offsets, pa.large_string())


def arrow_bytes(values: Any, offsets: np.ndarray, kind: pa.DataType | None = None) -> pa.Array:
    """Return values[offsets[i]:offsets[i + 1]] for each i as an Arrow array of large binary, without a copy.

    `kind` is another type of this layout, such as large strings.
    """
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(values)]
    return pa.Array.from_buffers(pa.large_binary() if kind is None else kind, len(offsets) - 1, buffers)


def read_only(array: np.ndarray) -> np.ndarray:
    """Return a view that cannot be written to: kernels are compiled for the arrays of batches, which are such."""
    array = array.view()
    array.flags.writeable = False
    return array


def bools(column: pa.Array) -> np.ndarray:
    """An Arrow array of bools without nulls as a NumPy array: the reverse of `arrow`."""
    bits = np.unpackbits(np.frombuffer(column.buffers()[1], np.uint8), bitorder="little")
    return bits[column.offset : column.offset + len(column)].astype(bool)


MOST_STRING_BYTES = 2**31 - 1
"""Bytes that one Arrow array of strings or binaries with offsets of 32 bits may hold."""


def large_enough(*columns: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Columns as they are or, if one holds more than 2 GB of strings or binaries, all such columns as large ones.

    Offsets of 32 bits cannot tell more in one array, and Arrow joins, takes and compares by one array. Ids of many
    documents are as much; so this is called wherever a column of them is needed whole.
    """
    kinds = [_large_type(column.type) for column in columns]
    if not any(kind and bytes_of(column) > MOST_STRING_BYTES for kind, column in zip(kinds, columns, strict=True)):
        return list(columns)
    return [column if kind is None else column.cast(kind) for kind, column in zip(kinds, columns, strict=True)]


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array, of a large type where it is needed."""
    return large_enough(column)[0].combine_chunks()


def large_tables(*tables: pa.Table) -> list[pa.Table]:
    """Tables whose columns may be joined and compared with one another, by `large_enough`."""
    columns = large_enough(*(column for table in tables for column in table.columns))
    made = []
    for table in tables:
        own, columns = columns[: table.num_columns], columns[table.num_columns :]
        same = [each.type for each in own] == table.schema.types
        made.append(table if same else type(table).from_arrays(own, table.column_names, metadata=table.schema.metadata))
    return made


def whole_in_pandas(table: pa.Table | None) -> pa.Table | None:
    """Return the table with a note for `to_pandas`, so that columns of integers with nulls do not become floats.

    A float has 53 bits, so that 2**60 + 1 would become another id.
    """
    if table is None:
        return None
    columns = [
        {
            "name": field.name,
            "field_name": field.name,
            "pandas_type": str(field.type),
            "numpy_type": str(field.type).replace("int", "Int").replace("uI", "UI"),
            "metadata": None,
        }
        for field, column in zip(table.schema, table.columns, strict=True)
        if pa.types.is_integer(field.type) and column.null_count
    ]
    if not columns:
        return table
    note = {"index_columns": [], "column_indexes": [], "columns": columns, "pandas_version": None}
    return table.replace_schema_metadata({**(table.schema.metadata or {}), b"pandas": json.dumps(note).encode()})


def look_up(ordered: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(place, there): where each value stands in an ascending array, and whether it is there at all."""
    if len(ordered) == 0:
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), bool)
    place = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
    return place, ordered[place] == wanted


def added_up(counts: Iterable[Mapping[T, int]]) -> dict[T, int]:
    """Add up counts by their keys, which stay in the order in which they first appear."""
    found: Counter[Any] = Counter()
    for each in counts:
        found.update(each)
    return dict(found)


def run_begins(*columns: np.ndarray) -> np.ndarray:
    """Return which rows differ from the row before them in any column, as bool; the first row counts as different."""
    changes = [column[1:] != column[:-1] for column in columns]
    return np.append(np.ones(min(1, len(columns[0])), bool), reduce(np.logical_or, changes))


def runs_of(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(where each run of equal neighbours begins, how long it is)."""
    begins = np.flatnonzero(run_begins(values))
    return begins, np.diff(begins, append=len(values))


def ranges(begins: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return the numbers begins[i] to begins[i] + sizes[i] for each i, one range after another.

    >>> ranges(np.array([5, 9]), np.array([2, 3]))
    array([ 5,  6,  9, 10, 11])
    """
    ends = np.cumsum(sizes)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(begins - (ends - sizes), sizes)


def taken(values: pa.Array, rows: pa.Array) -> pa.Array | pa.ChunkedArray:
    """Some values, in their own type: in several chunks where those of strings or binaries may be more than 2 GB."""
    if _large_type(values.type) is not None and len(rows) and len(values):
        longest = max(1, pc.max(pc.binary_length(values)).as_py() or 0)
        if len(rows) * longest > MOST_STRING_BYTES:
            step = max(1, MOST_STRING_BYTES // longest)
            return pa.chunked_array([values.take(rows.slice(start, step)) for start in range(0, len(rows), step)])
    return values.take(rows)


def _large_type(kind: pa.DataType) -> pa.DataType | None:
    """The type of the same strings or binaries with offsets of 64 bits; None for other types."""
    if pa.types.is_string(kind):
        return pa.large_string()
    return pa.large_binary() if pa.types.is_binary(kind) else None


def rows_of(data: pa.RecordBatch | pa.Table) -> Iterator[dict[str, Any]]:
    """Return rows as objects of Python; see `values_of`."""
    columns = [values_of(column) for column in data.columns]
    return (dict(zip(data.schema.names, row, strict=True)) for row in zip(*columns, strict=True))


def values_of(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Return values as objects of Python, without pandas; times that these cannot be are text.

    Those are times with nanoseconds, for which `to_pylist` of Arrow needs pandas, and times of years beyond 9999.
    """
    if isinstance(column, pa.ChunkedArray):
        return [value for chunk in column.chunks for value in values_of(chunk)]
    kind = column.type
    if not _holds_times(kind):
        found: list[Any] = column.to_pylist()
        return found
    if pa.types.is_struct(kind):
        names = [field.name for field in kind]
        rows = zip(*map(values_of, column.flatten()), strict=True)
        valid = bools(column.is_valid()).tolist()
        return [dict(zip(names, row, strict=True)) if here else None for row, here in zip(rows, valid, strict=True)]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        rest = iter(values_of(column.flatten()))  # which has no values of nulls
        sizes = pc.list_value_length(column).to_pylist()
        return [None if size is None else list(itertools.islice(rest, size)) for size in sizes]
    if pa.types.is_dictionary(kind):
        return values_of(column.dictionary_decode())
    if getattr(kind, "unit", None) == "ns":
        return _of_nanoseconds(column)
    try:
        found = column.to_pylist()
    except (OverflowError, ValueError):
        found = _as_text(column)
    return found


def _holds_times(kind: pa.DataType) -> bool:
    """Return whether values of a type are times or durations, or lists, structs or dictionaries of such."""
    if pa.types.is_dictionary(kind):
        return _holds_times(kind.value_type)
    nested = pa.types.is_struct, pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list
    if any(is_of(kind) for is_of in nested):
        return any(_holds_times(kind.field(number).type) for number in range(kind.num_fields))
    return bool(pa.types.is_temporal(kind))


def _of_nanoseconds(column: pa.Array) -> list[Any]:
    """Return times and durations; those that are not whole microseconds as text."""
    kind, numbers = column.type, numpy_of(column.cast(pa.int64()).fill_null(0))
    if pa.types.is_timestamp(kind):
        coarse, end = pa.timestamp("us", kind.tz), len("2000-01-01T00:00:00.000000")
    elif pa.types.is_time(kind):
        coarse, end = pa.time64("us"), len("00:00:00.000000")
    else:
        coarse, end = pa.duration("us"), 0
    whole: list[Any] = arrow(numbers // 1000, ~bools(column.is_valid())).cast(coarse).to_pylist()
    for row in np.flatnonzero(numbers % 1000).tolist():
        number = int(numbers[row])
        text = whole[row].isoformat(timespec="microseconds") if end else ""
        whole[row] = f"{text[:end]}{number % 1000:03}{text[end:]}" if end else f"{number} ns"
    return whole


def _as_text(times: pa.Array) -> list[str | None]:
    """Return times as text, by ISO 8601."""
    texts = [None if text is None else text.replace(" ", "T") for text in times.cast(pa.string()).to_pylist()]
    if getattr(times.type, "tz", None) is None:
        return texts
    zoned = (None if text is None else text.replace("Z", "+0000") for text in texts)
    return [None if text is None else f"{text[:-2]}:{text[-2:]}" for text in zoned]  # +0100 is +01:00


def numpy_of(column: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """An Arrow array of numbers, bools or fixed-size lists of numbers, without nulls, as a NumPy array.

    It is a view of Arrow's memory where that can be; `to_numpy` of Arrow imports pandas, if that is installed.
    """
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_boolean(column.type):
        return bools(column)
    if pa.types.is_fixed_size_list(column.type):
        return numpy_of(column.flatten()).reshape(len(column), column.type.list_size)
    dtype = numpy_dtype(column.type)
    return np.frombuffer(column.buffers()[1] or b"", dtype, len(column), column.offset * dtype.itemsize)
