"""Which fingerprints differ from one another in at most k bits: table designs, an index, batches, joins and pairs.

    >>> index = HammingIndex(simhashes, radius=3, ids=urls)
    >>> index.query(0x8F3A0C51D2E4B697)          # the ids within 3 bits, and their distances
    >>> found = pairs(simhashes, radius=3)       # all pairs of a set

Fingerprints have 64 bits, an array of uint64 of shape (rows,), or 128, of shape (rows, 2), the higher word first. What
pyarrow, pandas and polars hold of uint64 is taken as well, and so are lists of integers. A `TableDesign` may be of any
number of bits up to 512.

Source: Manku, Jain and Das Sarma 2007, section 3.
"""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple, Protocol, overload

import numpy as np

from neardup_gpu.kernels import (
    hamming as hamming_kernel,
    hamming_probe,
    hamming_table,
    huffman_encode,
    huffman_probe,
    identical,
)
from neardup_gpu.kernels._huffman import BLOCK_BITS, SYMBOLS, Tables as CompressedTables, information_bits
from neardup_gpu.kernels._launch import array_module, check_rows, most_rows, namespace, to_host
from neardup_gpu.kernels.hamming import NO_LIMIT

from .. import checks
from ..data import Ragged
from ..engine.choice import kernel, resolve, to_host as home
from ..engine.settings import BACKENDS
from ..errors import ArgumentTypeError, DamagedError, InputError, ParameterError, RecipeMismatchError
from ..recipe import Recipe
from ..store import arrays as index_file
from ..store.arrays import IndexFile
from ..store.ids import Ids
from ..store.outputs import new_file


class _HasArray(Protocol):
    """What NumPy can read as an array: pandas', polars' and pyarrow's columns."""

    def __array__(self, *arguments: Any, **options: Any) -> Any: ...


Fingerprints = np.ndarray | Sequence[int] | Sequence[tuple[int, int]] | _HasArray
"""What functions take for fingerprints."""

LEADING = 64
"""Most bits that may lead in a table: they are one word."""

MOST_BITS = 512
"""Of a design. What it takes to count tables grows faster than the bits."""

MOST_TABLES = 10_000
"""That a design may have to be used; others can only be counted."""

# ------------------------------------------------------------------------------------------------------ table designs


def blocks(bits: int, number: int) -> list[int]:
    """Sizes of `number` blocks of `bits` bits, as equal as can be, the larger first.

    Raises
    ------
    ParameterError, ArgumentTypeError
        Unless there are from 1 to `bits` blocks.

    >>> blocks(64, 6)
    [11, 11, 11, 11, 10, 10]
    """
    bits = checks.integer("bits", bits, 1, MOST_BITS)
    number = checks.integer("number", number, 1, bits)
    return _blocks(bits, number)


def _blocks(bits: int, number: int) -> list[int]:
    size, larger = divmod(bits, number)
    return [size + 1] * larger + [size] * (number - larger)


@cache
def _fewest(bits: int, radius: int, prefix: int) -> tuple[float, int]:
    """X(bits, radius, prefix) of `num_tables`, and the number of blocks that gives it; 0 for no further table."""
    if prefix <= 0:
        return 1, 0
    best, best_number = math.inf, 0
    for number in range(radius + 1, bits + 1):
        chosen = number - radius
        if math.comb(number, chosen) >= best:
            break  # each choice takes a table at least
        size, num_larger = divmod(bits, number)
        total: float = 0
        for larger in range(max(0, chosen - (number - num_larger)), min(chosen, num_larger) + 1):
            leading = chosen * size + larger
            ways = math.comb(num_larger, larger) * math.comb(number - num_larger, chosen - larger)
            total += ways * _fewest(bits - leading, radius, prefix - leading)[0]
        if total < best:
            best, best_number = total, number
    return best, best_number


def num_tables(bits: int, radius: int, prefix: int) -> int:
    """X of section 3.1.2: how many tables it takes for every table to have at least `prefix` leading bits.

    X(f, k, p) = 1 if p <= 0, else the minimum, over r > k blocks of the f bits, of the sum, over the choices of r - k
    of them, of X(f - c, k, p - c), where c is the number of bits chosen. The paper writes it for d = log2(n) and tau =
    d - p and for blocks of f / r bits, and stops where d < tau; blocks are whole here, and one stops at d <= tau.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If there are no such tables: `radius` bits have to remain.

    Examples
    --------
    >>> [num_tables(64, 3, p) for p in (16, 25, 28, 31)]
    [4, 10, 16, 20]
    """
    bits = checks.integer("bits", bits, 1, MOST_BITS)
    radius, prefix = (
        checks.integer(name, value, -math.inf) for name, value in (("radius", radius), ("prefix", prefix))
    )
    if not (0 <= radius < bits and 0 <= prefix <= bits - radius):
        raise ParameterError(
            f"no tables of {bits} bits with {checks.shown(prefix)} leading bits find all within radius "
            f"{checks.shown(radius)}; "
            "the radius is at least 0, and the leading bits at most the bits less the radius"
        )
    return int(_fewest(bits, radius, prefix)[0])


def _leading(places: list[int], radius: int, prefix: int) -> Iterator[list[int]]:
    """The leading places of each table of a design over some of the bits, `places`, the highest first."""
    number = _fewest(len(places), radius, prefix)[1]
    if number == 0:
        yield []
        return
    ends = np.cumsum([0, *_blocks(len(places), number)]).tolist()
    each = [places[start:stop] for start, stop in zip(ends[:-1], ends[1:], strict=True)]
    for choice in combinations(range(number), number - radius):
        chosen = [place for block in choice for place in each[block]]
        rest = [place for block in range(number) if block not in choice for place in each[block]]
        for further in _leading(rest, radius, prefix - len(chosen)):
            yield chosen + further


@dataclass(frozen=True)
class TableDesign:
    """The fewest tables whose every mask has at least `prefix` bits, for fingerprints within `radius` bits.

    The bits are split into r blocks. Whatever `radius` bits differ, some r - radius blocks are free of them: there is a
    table for each choice of so many blocks, which lead in it. Where they are too few bits, the others are split again,
    as in the 16 tables of example 3.1. The bits that lead keep their order, and so do the others.

    Parameters
    ----------
    bits : int
        Length of a fingerprint.
    radius : int
        Bits in which two fingerprints may differ.
    prefix : int
        Fewest bits that lead; raised to the most that as many tables can have, so that equal designs are equal. Of
        more than 64 leading bits the first 64 are taken: the table finds the same and more.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If there are no such tables, or `prefix` is more than 64.

    Examples
    --------
    >>> design = TableDesign(64, 3, 20)
    >>> design.num_tables, design.prefix, [f"{mask:016x}" for mask in design.masks][:2]
    (10, 25, ['ffffffc000000000', 'fff8003ffe000000'])
    """

    bits: int
    radius: int
    prefix: int

    def __post_init__(self) -> None:
        fewest = num_tables(self.bits, self.radius, self.prefix)
        for name in ("bits", "radius", "prefix"):
            object.__setattr__(self, name, int(getattr(self, name)))
        prefix = self.prefix
        if prefix > LEADING:
            raise ParameterError(f"{prefix} leading bits: a table has room for {LEADING} at most")
        while (
            prefix < min(LEADING, self.bits - self.radius) and num_tables(self.bits, self.radius, prefix + 1) == fewest
        ):
            prefix += 1
        object.__setattr__(self, "prefix", prefix)

    @property
    def num_tables(self) -> int:
        """One for each mask."""
        return num_tables(self.bits, self.radius, self.prefix)

    @cached_property
    def masks(self) -> tuple[int, ...]:
        """The leading bits of each table.

        Raises
        ------
        ParameterError
            If the tables are more than 10,000.
        """
        if self.num_tables > MOST_TABLES:
            raise ParameterError(f"{self}: no more than {MOST_TABLES:,} tables can be used; take a smaller radius")
        places = list(range(self.bits - 1, -1, -1))
        tables = _leading(places, self.radius, self.prefix)
        return tuple(sum(1 << place for place in table[:LEADING]) for table in tables)

    @cached_property
    def array(self) -> np.ndarray:
        """The masks as kernels take them: uint64, shape (tables,) or, of 128 bits, (tables, 2)."""
        return _of_integers(self.masks, self.bits)

    def memory(self, num_fingerprints: int) -> int:
        """Bytes of all tables, a word and a row of 4 bytes each; of 128 bits the fingerprints as well, once."""
        return (self.num_tables * 12 + (16 if self.bits > LEADING else 0)) * num_fingerprints

    def words_met(self, num_fingerprints: int) -> float:
        """How many words a query is compared with in all tables, on average, if fingerprints are random."""
        return sum(num_fingerprints / 2.0 ** mask.bit_count() for mask in self.masks)

    def __str__(self) -> str:
        return f"{self.num_tables:,} tables of {self.prefix} leading bits or more (radius {self.radius})"


BUILD, SEARCH, SORT, COMPARE = 50.0, 400.0, 20.0, 0.15
"""Nanoseconds on two cores: to put a fingerprint into a table, to find a query's bucket in one, to sort a query into
the order of one instead, and to compare two words. Only their ratios matter."""


def cost(design: TableDesign, num_fingerprints: int, num_queries: float, probe: float = SEARCH) -> float:
    """Nanoseconds to build a design's tables and to answer some queries, if fingerprints are random.

    tables * n * BUILD + queries * (tables * probe + sum over tables of n / 2**p * COMPARE), where `probe` is SEARCH for
    queries that come one by one, SORT for those that come together. All pairs of a set of n are n / 2 queries that are
    in order already: their `probe` is 0.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If an argument is no design, or no number of 0 or more.
    """
    checks.instance("design", design, TableDesign)
    for name, value in (("num_fingerprints", num_fingerprints), ("num_queries", num_queries), ("probe", probe)):
        checks.number(name, value, 0)
    tables, met = design.num_tables, design.words_met(num_fingerprints)
    return tables * num_fingerprints * BUILD + num_queries * (tables * probe + met * COMPARE)


def choose(
    num_fingerprints: int,
    radius: int,
    *,
    num_queries: float,
    bits: int = 64,
    probe: float = SEARCH,
    memory: float = math.inf,
    bucket_limit: float = math.inf,
    all_with_all: int = 0,
) -> TableDesign:
    """The design of least `cost` within a memory budget.

    Parameters
    ----------
    num_queries, probe
        As in `cost`.
    bits : int
        Length of a fingerprint.
    memory : float
        Bytes that all tables may take together.
    bucket_limit : float
        Buckets of random fingerprints have to stay below it: their mean size and eight standard deviations.
    all_with_all : int
        So many fingerprints may also be compared all with all, in one table without leading bits.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If the radius is impossible or nothing fits, or an argument is no number.
    """
    num_fingerprints = checks.integer("num_fingerprints", num_fingerprints, 0, 2**64)
    bits = checks.integer("bits", bits, 1, MOST_BITS)
    radius = checks.integer("radius", radius, 0, bits - 1)
    num_queries, probe = checks.number("num_queries", num_queries, 0, 2.0**96), checks.number("probe", probe, 0, 1e9)
    memory, bucket_limit = checks.number("memory", memory, 0), checks.number("bucket_limit", bucket_limit, 0)
    all_with_all = checks.integer("all_with_all", all_with_all)
    best, least, prefix = None, math.inf, 0
    while prefix <= min(LEADING, bits - radius):
        tables = num_tables(bits, radius, prefix)
        if tables * num_fingerprints * BUILD >= least or tables > MOST_TABLES:
            break
        design = TableDesign(bits, radius, prefix)
        mean = num_fingerprints / 2.0**design.prefix
        small = mean + 8 * math.sqrt(mean) <= bucket_limit or (design.prefix == 0 and num_fingerprints <= all_with_all)
        if design.memory(num_fingerprints) <= memory and small:
            found = cost(design, num_fingerprints, num_queries, probe)
            if found < least:
                best, least = design, found
        prefix = design.prefix + 1
    if best is None:
        limits = [f"{memory:,.0f} bytes of memory"] if memory < math.inf else []
        limits += [f"buckets of at most {bucket_limit:,.0f}"] if bucket_limit < math.inf else []
        within = f" with {' and '.join(limits)}" if limits else ""
        raise ParameterError(
            f"radius {radius}: no {MOST_TABLES:,} tables or fewer find all of {num_fingerprints:,} fingerprints"
            f"{within}; take a smaller radius{' or allow more' if limits else ''}"
        )
    return best


# ------------------------------------------------------------------------------------------------------------- batches

BUCKET_LIMIT, BUCKET_PROBE = 512, 32
"""In a bucket of more fingerprints than the first, each is compared with as many as the second only."""


ALL_WITH_ALL = 1 << 18
"""Most fingerprints that `pairs` compares all with all, within half a minute, where tables cost more: at radii of a
quarter of the bits or more, where random fingerprints are near one another too, and no limit keeps pairs few."""


class NearPairs(NamedTuple):
    """Pairs of rows within a radius.

    left, right : arrays of int64, shape (pairs,)
        left < right, in lexicographic order. Where identical fingerprints collapsed: the pairs of distinct ones, by
        their first rows, and one pair from each repeat to its first row.
    distance : array of uint8, shape (pairs,)
    first : array of int64, shape (rows,)
        The row that stands for each: the first one with the same fingerprint, or itself if nothing collapsed.
    num_large, num_uncompared : int
        Buckets above the limit, and pairs that they left out, over all tables. If there are none, nothing is missing.
    design : TableDesign
    """

    left: np.ndarray
    right: np.ndarray
    distance: np.ndarray
    first: np.ndarray
    num_large: int
    num_uncompared: int
    design: TableDesign


def _of_integers(values: Any, bits: int) -> np.ndarray:
    """Integers of 64 or 128 bits as an array of uint64, shape (n,) or (n, 2)."""
    if bits == 64:
        return np.array(values, np.uint64)
    if bits == 128:
        return np.array([divmod(int(value), 2**64) for value in values], np.uint64).reshape(-1, 2)
    raise ParameterError(f"a design of {bits} bits: fingerprints have 64 or 128")


def _are_integers(values: Any, bits: int) -> bool:
    return all(
        isinstance(value, int | np.integer) and not isinstance(value, bool) and 0 <= value < 2**bits for value in values
    )


def _from_arrow(values: Any, name: str) -> np.ndarray:
    """A pyarrow array of uint64 or of fixed-size lists as NumPy's; `_fingerprints` looks at what is in it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_fixed_size_list(values.type):
        if not values.null_count:
            words = pc.list_flatten(values)
            if not words.null_count:
                return words.to_numpy().reshape(-1, values.type.list_size)
    elif not values.null_count:
        return values.to_numpy(zero_copy_only=False) if isinstance(values, pa.Array) else values.to_numpy()
    raise ParameterError(f"{name}: some are null; leave them out, they match nothing")


def _fingerprints(values: Any, name: str, bits: int | None = None) -> np.ndarray:
    """Fingerprints as a contiguous array of uint64, shape (n,) or (n, 2); of so many bits, if that is known.

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
        values = home(values)
    array = values if isinstance(values, list | tuple) else checks.as_array(name, values)[0]
    if isinstance(array, list | tuple) or (array.dtype == object and array.ndim == 1):
        each = list(array)
        if _are_integers(each, bits or 64):
            array = _of_integers(each, bits or 64)
        elif all(
            isinstance(pair, list | tuple | np.ndarray) and len(pair) == 2 and _are_integers(pair, 64) for pair in each
        ):
            array = np.array([tuple(pair) for pair in each], np.uint64)
        else:
            raise ParameterError(f"{name}: not all are integers from 0 to 2**{bits or 64} - 1, or pairs of such words")
    if array.dtype.newbyteorder("=") != np.uint64 or array.ndim not in (1, 2) or array.shape[1:] not in ((), (2,)):
        raise ParameterError(
            f"{name}: {array.dtype} of shape {array.shape}; give uint64 of shape (rows,) for 64 bits, (rows, 2) for 128"
        )
    if bits not in (None, 64 * array.ndim):
        raise ParameterError(f"{name}: of {64 * array.ndim} bits, where {bits} are asked for; use one length")
    check_rows(len(array), name)
    return np.ascontiguousarray(array, np.uint64)


def _design(values: np.ndarray, radius: int, design: TableDesign | None, **load: Any) -> TableDesign:
    """The design that was asked for, or else the cheapest; by numbers alone, never by contents."""
    bits = 64 * values.ndim
    radius = checks.integer("radius", radius, 0, bits - 1)
    checks.optional(checks.instance, "design", design, TableDesign)
    if design is None:
        return choose(len(values), radius, bits=bits, **load)
    if design.bits != bits:
        raise ParameterError(f"a design of {design.bits} bits: fingerprints have {bits}")
    if design.radius < radius:
        raise ParameterError(f"a design for radius {design.radius} misses pairs at radius {radius}; design it for that")
    return design


def _limits(bucket_limit: Any, bucket_probe: Any) -> tuple[int, int]:
    """The limits of buckets, checked."""
    return (
        checks.integer("bucket_limit", bucket_limit, 1, NO_LIMIT),
        checks.integer("bucket_probe", bucket_probe, 1, NO_LIMIT),
    )


def pairs(
    fingerprints: Fingerprints,
    radius: int,
    *,
    design: TableDesign | None = None,
    bucket_limit: int = BUCKET_LIMIT,
    bucket_probe: int = BUCKET_PROBE,
    collapse: bool = True,
    backend: str | None = None,
) -> NearPairs:
    """All pairs of a set that differ in at most `radius` bits.

    Tables are made one after another, so that memory does not grow with their number.

    Parameters
    ----------
    fingerprints : array of uint64, shape (rows,) or (rows, 2)
        In priority order, the best first.
    design : TableDesign, optional
        The cheapest for their number, unless given.
    bucket_limit, bucket_probe : int
        In a bucket of more than `bucket_limit` fingerprints each is compared with the first `bucket_probe`. Without
        effect where all are compared with all.
    collapse : bool
        Whether identical fingerprints are one in the tables: the result grows with the repeats then, not with the pairs
        of them. If not, they are rows like others, all of whose pairs are found, up to `bucket_limit` of them: for
        callers that look at each pair.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If the radius is impossible, the fingerprints are none or another argument is not what is said above.
    """
    values = _fingerprints(fingerprints, "fingerprints")
    radius = checks.integer("radius", radius, 0, 64 * values.ndim - 1)
    collapse = checks.flag("collapse", collapse)
    bucket_limit, bucket_probe = _limits(bucket_limit, bucket_probe)
    load = {"num_queries": len(values) / 2, "probe": 0, "bucket_limit": bucket_limit}
    if 4 * radius >= 64 * values.ndim:
        load["all_with_all"] = ALL_WITH_ALL
    design = _design(values, radius, design, **load)
    if design.prefix == 0:
        bucket_limit = NO_LIMIT
    first = rows = np.arange(len(values))
    if collapse:
        first = to_host(kernel(identical, backend)(values))
        rows = np.flatnonzero(first == rows)
    distinct = values[rows] if len(rows) < len(values) else values
    found = kernel(hamming_kernel, backend)(distinct, design.array, radius, bucket_limit, bucket_probe)
    left, right, distance = map(to_host, found[:3])
    if len(rows) < len(values):
        repeats = np.flatnonzero(first != np.arange(len(values)))
        left, right = np.concatenate([rows[left], first[repeats]]), np.concatenate([rows[right], repeats])
        order = np.lexsort((right, left))
        left, right = left[order], right[order]
        distance = np.concatenate([distance, np.zeros(len(repeats), np.uint8)])[order]
    return NearPairs(left, right, distance, first, int(found[3]), int(found[4]), design)


class Matches(NamedTuple):
    """Which queries each row of a set is within a radius of.

    row, query : arrays of int64, shape (matches,)
        In lexicographic order.
    distance : array of uint8, shape (matches,)
    num_large, num_uncompared : int
        Buckets above the limit, and crowds of identical queries above it, that rows met, each time that one met it; and
        the queries that they left out. If there are none, nothing is missing.
    """

    row: np.ndarray
    query: np.ndarray
    distance: np.ndarray
    num_large: int
    num_uncompared: int


CHUNK_BYTES = 64 << 20
PART = 1 << 22
"""Most matches that identical fingerprints become at once, but for those of one row or query."""


class _Members(NamedTuple):
    """Which rows have each distinct fingerprint; the distinct ones are in the order of their first rows.

    offsets : array of int64, shape (distinct + 1,)
    rows : array of uint32, shape (rows,)
        Those of number i are rows[offsets[i]:offsets[i + 1]], in order.
    """

    offsets: np.ndarray
    rows: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray, backend: str | None) -> tuple[np.ndarray, _Members | None]:
        """(the distinct fingerprints, their members); the same and None if all are."""
        first = to_host(kernel(identical, backend)(values))
        rows = np.flatnonzero(first == np.arange(len(first)))
        if len(rows) == len(first):
            return values, None
        members = np.argsort(first, kind="stable")
        offsets = np.append(np.searchsorted(first[members], rows), len(first))
        return np.ascontiguousarray(values[rows]), cls(offsets, members.astype(np.uint32))

    def sizes(self, numbers: np.ndarray) -> np.ndarray:
        """How many rows have each of some distinct fingerprints.

        Raises
        ------
        InputError
            If they are of a damaged file, as far as that shows.
        """
        starts, stops = self.offsets[numbers], self.offsets[numbers + 1]
        if len(numbers) and (starts.min() < 0 or stops.max() > len(self.rows) or (starts >= stops).any()):
            raise DamagedError("the index is damaged (it names rows that it lacks); build it again")
        return stops - starts

    def expand(self, numbers: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(place in `numbers`, row) of the first `sizes` rows of each: int64."""
        if (sizes == 1).all():
            return np.arange(len(numbers)), self._rows(self.offsets[numbers])
        ends = np.cumsum(sizes)
        within = np.arange(ends[-1] if len(ends) else 0) + np.repeat(self.offsets[numbers] - ends + sizes, sizes)
        return np.repeat(np.arange(len(numbers)), sizes), self._rows(within)

    def _rows(self, places: np.ndarray) -> np.ndarray:
        rows = self.rows[places].astype(np.int64)
        if len(rows) and rows.max() >= len(self.rows):
            raise DamagedError("the index is damaged (it names rows that it lacks); build it again")
        return rows

    def fit(self, num_rows: int) -> bool:
        """Whether they are arrays of so many rows."""
        types = self.offsets.dtype == np.int64 and self.rows.dtype == np.uint32
        return types and self.offsets.ndim == 1 and self.rows.shape == (num_rows,)


def slices(owners: np.ndarray, sizes: np.ndarray, most: int) -> Iterator[slice]:
    """Successive slices whose sizes sum to `most` at most, or more for one owner: none is divided. One if empty.

    owners : array, in order
    """
    ends = np.flatnonzero(np.append(owners[1:] != owners[:-1], True)) + 1 if len(owners) else np.zeros(1, np.int64)
    totals = np.cumsum(np.append(0, sizes))[ends]
    at = start = done = 0
    while at < len(ends):
        at = max(at + 1, int(np.searchsorted(totals, done + most, "right")))
        yield slice(start, int(ends[at - 1]))
        start, done = int(ends[at - 1]), int(totals[at - 1])


def scan(
    chunks: Iterable[Fingerprints],
    queries: Fingerprints,
    radius: int,
    *,
    design: TableDesign | None = None,
    bucket_limit: int = BUCKET_LIMIT,
    bucket_probe: int = BUCKET_PROBE,
    backend: str | None = None,
) -> Iterator[Matches]:
    """Which of some existing fingerprints, read chunk by chunk, are within `radius` bits of some query (section 3.3).

    The tables are of the distinct queries, which are held in memory; a chunk is forgotten when the next one is asked
    for. Rows are counted on from chunk to chunk.

    Every match is found where no limit is exceeded (`num_large` is 0). Where one is, all that is reported is right, but
    some of the comparisons that were left out, of which `num_uncompared` is the number, may have been matches too,
    unless another table found those; and the identical queries that are not named were matches.

    Parameters
    ----------
    chunks : iterable of arrays of uint64
        Such as `read_chunks` reads from a file.
    queries : array of uint64, shape (queries,) or (queries, 2)
    bucket_limit, bucket_probe : int
        In a bucket of more than `bucket_limit` distinct queries, a row is compared with the first `bucket_probe`. Of
        more than `bucket_limit` identical queries, the first `bucket_probe` are named.

    Yields
    ------
    Matches
        One or more for each chunk, before the next is asked for. Where queries are identical, what a chunk matches is
        divided into parts of whole rows, of about four million matches at most.

    Raises
    ------
    ParameterError, ArgumentTypeError
        At once if the radius is impossible, the queries are no fingerprints or another argument is not what is said
        above; at a chunk that holds something else.
    """
    if isinstance(chunks, str | bytes | np.ndarray) or not hasattr(chunks, "__iter__"):
        raise ArgumentTypeError(f"chunks: {checks.shown(chunks)}; give a list or a generator of arrays")
    asked = _fingerprints(queries, "queries")
    limits = _limits(bucket_limit, bucket_probe)
    load = {"num_queries": CHUNK_BYTES / asked.itemsize / asked.ndim, "probe": SORT, "bucket_limit": limits[0]}
    design = _design(asked, radius, design, **load)
    return _scan(chunks, asked, int(radius), design, *limits, backend)


def _scan(
    chunks: Iterable[Fingerprints],
    asked: np.ndarray,
    radius: int,
    design: TableDesign,
    bucket_limit: int,
    bucket_probe: int,
    backend: str | None,
) -> Iterator[Matches]:
    distinct, members = _Members.of(asked, backend)
    tables = [kernel(hamming_table, backend)(distinct, mask, False) for mask in design.array]
    xp = array_module(tables[0][0])
    words, order = (xp.stack([table[part] for table in tables]) for part in (0, 1))
    del tables
    whole = None if asked.ndim == 1 else distinct
    probe, start = kernel(hamming_probe, backend), 0
    for chunk in chunks:
        values = _fingerprints(chunk, "a chunk", 64 * asked.ndim)
        found = probe(words, order, design.array, values, radius, bucket_limit, bucket_probe, whole)
        row, number, distance = map(to_host, found[:3])
        num_large, num_uncompared = int(found[3]), int(found[4])
        if members is None:
            yield Matches(row + start, number, distance, num_large, num_uncompared)
        else:
            sizes = members.sizes(number)
            named = np.where(sizes > bucket_limit, np.minimum(sizes, bucket_probe), sizes)
            for part in slices(row, named, PART):
                place, query = members.expand(number[part], named[part])
                rows, bits = row[part][place], distance[part][place]
                if (row[part][1:] == row[part][:-1]).any():
                    sequence = np.lexsort((query, rows))
                    rows, query, bits = rows[sequence], query[sequence], bits[sequence]
                num_large += int(np.count_nonzero(sizes[part] > bucket_limit))
                num_uncompared += int(np.sum(sizes[part] - named[part]))
                yield Matches(rows + start, query, bits, num_large, num_uncompared)
                num_large = num_uncompared = 0
        start += len(values)


def join(
    fingerprints: Fingerprints,
    queries: Fingerprints,
    radius: int,
    *,
    design: TableDesign | None = None,
    bucket_limit: int = BUCKET_LIMIT,
    bucket_probe: int = BUCKET_PROBE,
    backend: str | None = None,
) -> Matches:
    """`scan` of one set in memory against another; errors as there."""
    options: dict[str, Any] = {"bucket_limit": bucket_limit, "bucket_probe": bucket_probe, "backend": backend}
    chunks = [_fingerprints(fingerprints, "fingerprints")]
    parts = list(scan(chunks, queries, radius, design=design, **options))
    if len(parts) == 1:
        return parts[0]
    row, query, distance = (np.concatenate(columns) for columns in zip(*(part[:3] for part in parts), strict=True))
    counts = sum(part.num_large for part in parts), sum(part.num_uncompared for part in parts)
    return Matches(row, query, distance, *counts)


def read_chunks(path: str | Path, chunk_bytes: int = CHUNK_BYTES) -> Iterator[np.ndarray]:
    """The fingerprints of a .npy file of uint64, which may be larger than memory, about `chunk_bytes` at a time.

    Yields
    ------
    array of uint64, shape (n,) or (n, 2)
        As the file is. None if it is empty.

    Raises
    ------
    InputError
        If there is no such file or it holds something else.
    ParameterError, ArgumentTypeError
        At once, if `path` or `chunk_bytes` is none.
    """
    return _read_chunks(checks.path("path", path), checks.integer("chunk_bytes", chunk_bytes, 1))


def _read_chunks(path: str, chunk_bytes: int) -> Iterator[np.ndarray]:
    try:
        with open(path, "rb") as file:
            version = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, by_columns, dtype = read(file)
            if dtype.newbyteorder("=") != np.uint64 or len(shape) not in (1, 2) or shape[1:] not in ((), (2,)):
                raise InputError(
                    f"{path}: holds {dtype} of shape {shape}; fingerprints are uint64 of shape (rows,) or (rows, 2)"
                )
            if by_columns and len(shape) == 2:
                raise InputError(f"{path}: is stored column by column; save it in C order (numpy.ascontiguousarray)")
            num_words, remaining = len(shape), shape[0]
            while remaining:
                chunk = np.fromfile(file, dtype, num_words * min(remaining, max(1, chunk_bytes // (8 * num_words))))
                if len(chunk) < num_words:
                    raise InputError(f"{path}: ends {remaining:,} fingerprints early; write it again")
                chunk = chunk[: len(chunk) // num_words * num_words].astype(np.uint64, copy=False)
                chunk = chunk.reshape(-1, *shape[1:])
                remaining -= len(chunk)
                yield chunk
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except InputError:
        raise
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as .npy ({error})") from None


# --------------------------------------------------------------------------------------------------------------- index


class _Tables:
    """The tables of an index: whatever builds, keeps or asks them is here.

    words : array of uint64, shape (tables, n)
        Or instead, compressed, the arrays of `_huffman.Tables`.
    rows : array of uint32, shape (tables, n)
    fingerprints : array of uint64, shape (n, 2)
        Row by row, of 128 bits; a word of the tables is all of 64.
    """

    def __init__(self, **arrays: np.ndarray) -> None:
        self.arrays = arrays
        self._resident: dict[str, Any] | None = None

    @classmethod
    def build(cls, values: np.ndarray, design: TableDesign, compress: bool, backend: str | None) -> _Tables:
        """The tables of a design, one after another; compressed one by one, so that one at a time is there whole."""
        num_tables, n = design.num_tables, len(values)
        rows = np.empty((num_tables, n), np.uint32)
        words = np.empty((0 if compress else num_tables, n), np.uint64)
        encoded = []
        for number, mask in enumerate(design.array):
            table, order = kernel(hamming_table, backend)(values, mask, True)
            rows[number] = to_host(order)
            if compress:
                encoded.append([to_host(array) for array in kernel(huffman_encode, backend)(table[None])])
            else:
                words[number] = to_host(table)
        if compress:
            lengths, _, blocks, keys, firsts = zip(*encoded, strict=True)
            blocks_before = np.cumsum([0, *map(len, blocks)])
            starts = [array[:-1] + number * n for number, array in enumerate(firsts)]
            compressed = CompressedTables(
                np.concatenate(lengths),
                blocks_before.astype(np.int64),
                np.concatenate(blocks),
                np.concatenate(keys),
                np.concatenate([*starts, np.array([num_tables * n], np.int64)]),
            )
            arrays = {**compressed._asdict(), "rows": rows}
        else:
            arrays = {"words": words, "rows": rows}
        return cls(**arrays, **({} if values.ndim == 1 else {"fingerprints": values}))

    @property
    def compressed(self) -> bool:
        """Whether words are."""
        return "words" not in self.arrays

    @property
    def _names(self) -> tuple[str, ...]:
        """Of the arrays that `probe_*` takes first."""
        return (*(CompressedTables._fields if self.compressed else ("words",)), "rows")

    @property
    def bits_a_word(self) -> float:
        """What a word takes in a table, without its row."""
        taken = sum(self.arrays[name].nbytes for name in self._names[:-1])
        return 8 * taken / max(1, self.arrays["rows"].size)

    def __len__(self) -> int:
        return self.arrays["rows"].shape[1]

    def fit(self, design: TableDesign, num_fingerprints: int) -> bool:
        """Whether they are of that design and number."""
        num_tables, n = design.num_tables, num_fingerprints
        num_blocks = len(self.arrays.get("blocks", ()))
        known: dict[str, tuple[Any, tuple[int, ...]]] = {
            "words": (np.uint64, (num_tables, n)),
            "lengths": (np.uint8, (num_tables, SYMBOLS)),
            "offsets": (np.int64, (num_tables + 1,)),
            "blocks": (np.uint64, (num_blocks, BLOCK_BITS // 64)),
            "keys": (np.uint64, (num_blocks,)),
            "firsts": (np.int64, (num_blocks + 1,)),
            "rows": (np.uint32, (num_tables, n)),
            "fingerprints": (np.uint64, (n, 2)),
        }
        wanted = (*self._names, *(["fingerprints"] if design.bits == 128 else []))
        return set(self.arrays) == set(wanted) and all(
            (array.dtype, array.shape) == known[name] for name, array in self.arrays.items()
        )

    def probe(self, masks: np.ndarray, queries: np.ndarray, radius: int, backend: str | None) -> tuple:
        """(query, row, distance) of all within the radius, in lexicographic order.

        Raises
        ------
        InputError
            If the tables are damaged, as far as that shows.
        """
        arrays = self._on_device() if resolve(backend) == "gpu" else self.arrays
        tables, whole = [arrays[name] for name in self._names], arrays.get("fingerprints")
        probe = kernel(huffman_probe if self.compressed else hamming_probe, backend)
        try:
            found = probe(*tables, masks, queries, radius, NO_LIMIT, 0, whole)
        except ValueError as error:
            raise DamagedError(f"the index is damaged ({error}); build it again") from None
        query, row, distance = map(to_host, found[:3])
        if len(row) and row.max() >= len(self):
            raise DamagedError("the index is damaged (it names rows that it lacks); build it again")
        return query, row, distance

    def _on_device(self) -> dict[str, Any]:
        """The arrays copied to the device once, if half of its free memory holds them; else as they are, from where
        each query takes them there."""
        if self._resident is None:
            if most_rows(1) < sum(array.nbytes for array in self.arrays.values()):
                return self.arrays
            xp = namespace()
            self._resident = {name: xp.ascontiguousarray(array) for name, array in self.arrays.items()}
        return self._resident


class HammingIndex:
    """Sorted tables of fingerprints, in memory or mapped from a file, for queries one by one or together.

    Parameters
    ----------
    fingerprints : array of uint64, shape (rows,) or (rows, 2)
        Or what pyarrow, pandas or polars hold of such, or a list of integers.
    radius : int
        The largest distance that queries may ask for.
    ids : array or list of integers, strings or bytes, optional
        What queries answer; row numbers, unless given. Arrow's are taken without making Python objects of them.
    design : TableDesign, optional
        The cheapest, unless given, for `num_queries` within `memory`.
    memory : float
        Bytes that the tables may take, before they are compressed and without ids.
    num_queries : int, optional
        How many queries to expect in the index's life; as many as there are fingerprints, unless given.
    compress : bool
        Whether tables are kept as Huffman codes of where successive words differ (section 3.2), which takes 48 bits a
        word instead of 64 for a million random fingerprints, 44 for 16 million, and more time to ask.
    recipe : Recipe or dict, optional
        How the fingerprints were made: saved with the index, as JSON.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If the radius is impossible, ids and fingerprints differ in number, the budget is too small, the recipe is of
        min-hash sketches or no JSON, or another argument is not what is said above.

    Notes
    -----
    Tables are of distinct fingerprints. A table takes 12 bytes for each, 4 of them for the row; those of 128 bits take
    16 more, once. Where some are identical, each distinct one takes 8 bytes and each row 4, to know who has which. An
    integer id takes its own bytes, any other its own, of strings in UTF-8, and 8. A query of n random fingerprints
    searches each table by interpolation and compares n / 2**p words there.

    Examples
    --------
    >>> index = HammingIndex(np.array([7, 8, 2**63], np.uint64), 1, ids=["a", "b", "c"])
    >>> index.query(5)
    (array(['a'], dtype=object), array([1], dtype=uint8))
    """

    def __init__(
        self,
        fingerprints: Fingerprints,
        radius: int,
        ids: Any = None,
        *,
        design: TableDesign | None = None,
        memory: float = math.inf,
        num_queries: int | None = None,
        compress: bool = False,
        recipe: Recipe | dict[str, Any] | None = None,
        backend: str | None = None,
    ) -> None:
        values = _fingerprints(fingerprints, "fingerprints")
        radius = checks.integer("radius", radius, 0, 64 * values.ndim - 1)
        load = len(values) if num_queries is None else checks.integer("num_queries", num_queries)
        memory, compress = checks.number("memory", memory, 0), checks.flag("compress", compress)
        design = _design(values, radius, design, num_queries=load, memory=memory)
        named = None if ids is None else Ids.of(ids)
        if named is not None and len(named) != len(values):
            raise ParameterError(f"ids: {len(named):,} for {len(values):,} fingerprints; give one for each")
        described = _described(recipe)
        distinct, members = _Members.of(values, backend)
        tables = _Tables.build(distinct, design, compress, backend)
        self._set(design, radius, tables, members, named, described, backend)

    def _set(self, design, radius, tables, members, ids, recipe, backend) -> None:
        self.design: TableDesign = design
        self.radius: int = radius
        self.tables: _Tables = tables
        self.members: _Members | None = members
        self.ids: Ids | None = ids
        self.recipe: dict[str, Any] = recipe
        self.backend: str | None = backend
        self._file: IndexFile | None = None

    def __len__(self) -> int:
        return len(self.tables if self.members is None else self.members.rows)

    @property
    def num_bytes(self) -> int:
        """Bytes of the tables, of who has which fingerprint, and of ids."""
        return sum(array.nbytes for array in self._arrays().values())

    def _arrays(self) -> dict[str, np.ndarray]:
        members = {} if self.members is None else dict(zip(_MEMBERS, self.members, strict=True))
        return self.tables.arrays | members | ({} if self.ids is None else self.ids.arrays)

    def __repr__(self) -> str:
        return f"HammingIndex({len(self):,} fingerprints, {self.design}, {self.num_bytes:,} bytes)"

    def _repr_html_(self) -> str:
        lines = {
            "fingerprints": f"{len(self):,} of {self.design.bits} bits, {len(self.tables):,} of them distinct",
            "radius": f"{self.radius} bits",
            "tables": f"{self.design.num_tables}, of {self.design.prefix} leading bits or more",
            "words compared by a query": f"{self.design.words_met(len(self.tables)):,.1f} if fingerprints are random",
            "bytes": f"{self.num_bytes:,}",
            "bits a word": self._word_size(),
            "recipe": json.dumps(self.recipe),
        }
        cells = "".join(f"<tr><th>{name}</th><td>{html.escape(value)}</td></tr>" for name, value in lines.items())
        return f"<table>{cells}</table>"

    def _word_size(self) -> str:
        if not self.tables.compressed:
            return "64"
        least = information_bits(len(self.tables)) / max(1, len(self.tables))
        return f"{self.tables.bits_a_word:.1f} of 64; no code takes fewer than {least:.1f} if fingerprints are random"

    @overload
    def query(self, fingerprints: int | np.integer, radius: int | None = None) -> tuple[np.ndarray, np.ndarray]: ...

    @overload
    def query(self, fingerprints: Fingerprints, radius: int | None = None) -> tuple[Ragged, Ragged]: ...

    def query(self, fingerprints: Any, radius: int | None = None) -> tuple[Any, Any]:
        """What is within a radius of one fingerprint or of each of many, the nearest first, ties in row order.

        Parameters
        ----------
        fingerprints : int, or array of uint64, shape (n,) or (n, 2)
            Of the index's length.
        radius : int, optional
            The index's, unless given.

        Returns
        -------
        ids, distances : arrays, shape (found,), for one fingerprint; Ragged of n rows for many
            Integer ids are of their own type, strings and bytes objects; distances uint8.

        Raises
        ------
        ParameterError, ArgumentTypeError
            If the radius is larger than the index's, or the fingerprints are none.
        DamagedError
            If what decides the answer is not as it was written.
        """
        return self._ask(fingerprints, radius, None)

    @overload
    def nearest(self, fingerprints: int | np.integer, count: int) -> tuple[np.ndarray, np.ndarray]: ...

    @overload
    def nearest(self, fingerprints: Fingerprints, count: int) -> tuple[Ragged, Ragged]: ...

    def nearest(self, fingerprints: Any, count: int) -> tuple[Any, Any]:
        """As `query`, at most `count` for each fingerprint: the nearest that are within the index's radius.

        Raises
        ------
        ParameterError, ArgumentTypeError
            If `count` is no number of 1 or more, or the fingerprints are none.
        InputError
            As `query`.
        """
        checks.integer("count", count, 1)
        return self._ask(fingerprints, None, count)

    def _ask(self, fingerprints: Any, radius: int | None, count: int | None) -> tuple[Any, Any]:
        one = isinstance(fingerprints, int | np.integer)
        if one:
            bits = self.design.bits
            fingerprints = _of_integers([checks.integer("fingerprint", fingerprints, 0, 2**bits - 1)], bits)
        parts = list(self.parts(fingerprints, radius, count))
        query, row, distance = parts[0] if len(parts) == 1 else map(np.concatenate, zip(*parts, strict=True))
        ids = row if self.ids is None else self.ids.take(row)
        if one:
            return ids, distance
        offsets = np.searchsorted(query, np.arange(len(fingerprints) + 1))
        return Ragged(ids, offsets), Ragged(distance, offsets)

    def parts(
        self, fingerprints: Fingerprints, radius: int | None = None, count: int | None = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """As `query` of many, or as `nearest` where there is a count, but part by part: crowds may exceed memory.

        Yields
        ------
        query, row, distance : arrays of int64, int64 and uint8, shape (matches,)
            Of whole queries, about four million matches at most where there is more than one; `ids.take` names rows.

        Raises
        ------
        ParameterError, ArgumentTypeError, InputError
            As `query` and `nearest`; arguments are looked at at once.
        """
        radius = self.radius if radius is None else checks.integer("radius", radius, 0, self.radius)
        count = checks.optional(checks.integer, "count", count, 1)
        return self._parts(_fingerprints(fingerprints, "fingerprints", self.design.bits), radius, count)

    def _parts(
        self, queries: np.ndarray, radius: int, count: int | None
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        if self._file is not None:
            self._verify_tables(self._file, queries, radius)
        query, number, distance = self.tables.probe(self.design.array, queries, radius, self.backend)
        if len(query) > 1:
            order = np.lexsort((distance, query))
            query, number, distance = query[order], number[order], distance[order]
        if count is not None:  # each has as many before it as there are distinct ones, or more
            kept = _ranks(query) < count
            query, number, distance = query[kept], number[kept], distance[kept]
        if self.members is None:
            self._verify_ids(number)
            yield query, number, distance
            return
        self._verify_runs("member_offsets", "members", number)
        sizes = self.members.sizes(number)
        if (sizes == 1).all():
            row = self.members.expand(number, sizes)[1]
            self._verify_ids(row)
            yield query, row, distance
            return
        if count is not None:
            sizes = np.minimum(sizes, count - _ranks(query))
        for part in slices(query, sizes, PART):
            place, row = self.members.expand(number[part], sizes[part])
            tied = (query[part][1:] == query[part][:-1]) & (distance[part][1:] == distance[part][:-1])
            asking, bits = query[part][place], distance[part][place]
            if tied.any():
                order = np.lexsort((row, bits, asking))
                asking, row, bits = asking[order], row[order], bits[order]
            if count is not None:
                nearest = _ranks(asking) < count
                asking, row, bits = asking[nearest], row[nearest], bits[nearest]
            self._verify_ids(row)
            yield asking, row, bits

    def _verify_tables(self, file: IndexFile, queries: np.ndarray, radius: int) -> None:
        """Compare what a probe will read of the tables with its checksums."""
        if file.num_left == 0:
            return
        arrays, masks, found = self.tables.arrays, self.design.array, None
        some = 2 * len(masks) * len(queries) < file.num_left  # more queries touch most of what is left
        if some and resolve(self.backend) == "cpu":
            if self.tables.compressed:
                file.verify("lengths")
                file.verify("offsets")
                offsets, blocks, keys = (arrays[name] for name in ("offsets", "blocks", "keys"))
                found = huffman_probe.touched(offsets, blocks, keys, masks, queries)
            else:
                found = hamming_probe.touched(arrays["words"], masks, queries, radius)
        if found is None:
            for name in arrays:
                file.verify(name)
        elif self.tables.compressed:
            starts, stops = found
            file.verify("keys", starts, stops)
            file.verify("blocks", starts * arrays["blocks"].shape[1], stops * arrays["blocks"].shape[1])
            file.verify("firsts", starts, stops + 1)
            file.verify("rows", arrays["firsts"][starts], arrays["firsts"][stops])
        else:
            starts, stops, near = found
            file.verify("words", starts, stops)
            file.verify("rows", near, near + 1)
            if "fingerprints" in arrays:
                row = arrays["rows"].reshape(-1)[near].astype(np.int64)
                file.verify("fingerprints", 2 * row, 2 * row + 2)

    def _verify_runs(self, offsets: str, values: str, numbers: np.ndarray) -> None:
        """Compare some runs of an array with their checksums, and the offsets that say where they are."""
        if self._file is not None and self._file.num_left:
            self._file.verify(offsets, numbers, numbers + 2)
            places = self._file.arrays[offsets]
            self._file.verify(values, places[numbers], places[numbers + 1])

    def _verify_ids(self, rows: np.ndarray) -> None:
        """Compare the ids of some rows with their checksums."""
        if self.ids is None or self._file is None or not self._file.num_left:
            return
        if self.ids.kind == "integer":
            self._file.verify("ids", rows, rows + 1)
        else:
            self._verify_runs("id_offsets", "id_values", rows)

    def save(self, path: str | Path, overwrite: bool = False) -> None:
        """Write the index to a file, whole or not at all.

        Raises
        ------
        OutputError
            If the file exists and is not to be overwritten, is no index, or cannot be written.
        ParameterError, ArgumentTypeError
            If `path` or `overwrite` is none.
        """
        path, overwrite = checks.path("path", path), checks.flag("overwrite", overwrite)
        with new_file(path, overwrite, is_ours=index_file.is_index) as file:
            self.write(file)

    def write(self, path: Path) -> None:
        """As `save`, where nothing is yet."""
        if self._file is not None:  # or what is damaged would be written with checksums of its own
            self._file.verify_all()
        header = {
            "design": asdict(self.design),
            "masks": _hexadecimal(self.design),
            "radius": self.radius,
            "num_fingerprints": len(self),
            "ids": None if self.ids is None else self.ids.kind,
            "recipe": self.recipe,
        }
        index_file.write(path, header, self._arrays())

    @classmethod
    def load(
        cls,
        path: str | Path,
        recipe: Recipe | dict[str, Any] | None = None,
        *,
        check: bool = False,
        backend: str | None = None,
    ) -> HammingIndex:
        """An index mapped from its file: pages are read, and compared with their checksums, when queries need them.

        Parameters
        ----------
        recipe : Recipe or dict, optional
            What the queries' fingerprints were made by: the index has to be of the same, in all that simhashes depend
            on.
        check : bool
            Compare the whole file now.

        Raises
        ------
        InputError
            If there is no such file, or it is no index, of another version or of another byte order.
        DamagedError
            If it was cut short or is not as it was written.
        RecipeMismatchError
            If it is of another recipe, or of tables that this version designs otherwise.
        ParameterError, ArgumentTypeError
            If `path` is no path, `recipe` neither of simhashes nor a dict, or there is no backend of that name.
        """
        path = checks.path("path", path)
        checks.optional(checks.one_of, "backend", backend, BACKENDS)
        _described(recipe)
        file = IndexFile(path)
        if checks.flag("check", check):
            file.verify_all()
        header = file.header
        try:
            design = _design_of(header, path)
            n, radius, stored, kind = (header[key] for key in ("num_fingerprints", "radius", "recipe", "ids"))
            sound = all(type(number) is int for number in (n, radius)) and 0 <= radius <= design.radius
            sound &= isinstance(stored, dict) and kind in (None, "integer", "string", "binary")
        except RecipeMismatchError:
            raise
        except (KeyError, TypeError, ValueError):
            sound = False
        if not sound:
            raise index_file.unreadable(path)
        if recipe is not None:
            asked = _described(recipe)
            asked = recipe.sketching() if isinstance(recipe, Recipe) else {**dict.fromkeys(stored), **asked}
            for key, value in asked.items():
                if stored.get(key) != value:
                    raise RecipeMismatchError(
                        f"{path}: of fingerprints made with {key} = {stored.get(key)!r}, asked for {value!r}; "
                        "build the index again"
                    )
        arrays = dict(file.arrays)
        members, named = ({name: arrays.pop(name) for name in names if name in arrays} for names in (_MEMBERS, _IDS))
        ids = None if kind is None else Ids(kind, named)
        tables = _Tables(**arrays)
        belongs = _Members(*(members[name] for name in _MEMBERS)) if len(members) == len(_MEMBERS) else None
        sound = (belongs is not None and belongs.fit(n)) if members else True
        sound &= tables.fit(design, n if belongs is None else len(belongs.offsets) - 1)
        sound &= not named if ids is None else ids.fit(n)
        if not sound:
            raise index_file.unreadable(path)
        index = cls.__new__(cls)
        index._set(design, radius, tables, belongs, ids, stored, backend)
        index._file = file
        return index


_MEMBERS, _IDS = ("member_offsets", "members"), ("ids", "id_offsets", "id_values")  # of a file


def _ranks(query: np.ndarray) -> np.ndarray:
    """How many of the same query are before each; they are in order."""
    return np.arange(len(query)) - np.searchsorted(query, query)


def _described(recipe: Any) -> dict[str, Any]:
    """What is saved of a recipe."""
    if recipe is None or isinstance(recipe, Recipe):
        return {} if recipe is None else recipe.describe()
    if not isinstance(recipe, dict):
        raise ArgumentTypeError(f"recipe: {checks.shown(recipe)} is of no simhashes; give a Recipe or a dict")
    try:
        return json.loads(json.dumps(recipe))
    except (TypeError, ValueError, RecursionError) as error:
        raise ParameterError(f"recipe: the dict is no JSON ({error}); leave out what is not") from None


def _hexadecimal(design: TableDesign) -> list[str]:
    """Masks as a header holds them."""
    return [f"{mask:0{design.bits // 4}x}" for mask in design.masks]


def _design_of(header: dict[str, Any], path: str | Path) -> TableDesign:
    """The design of a stored index; KeyError, TypeError or ValueError if it names none.

    Raises
    ------
    RecipeMismatchError
        If its tables are others than this version designs.
    """
    found, masks = header["design"], header["masks"]
    bits, radius, prefix = (found[name] for name in ("bits", "radius", "prefix"))
    if not all(type(number) is int for number in (bits, radius, prefix)) or bits not in (64, 128):
        raise ValueError
    if not (0 <= radius < bits and 0 <= prefix <= min(LEADING, bits - radius)):
        raise ValueError
    # Their number first: there may be more masks than memory holds.
    if len(masks) == num_tables(bits, radius, prefix):
        design = TableDesign(bits, radius, prefix)
        if masks == _hexadecimal(design):
            return design
    raise RecipeMismatchError(f"{path}: its tables are of another design than this version's; build it again")
