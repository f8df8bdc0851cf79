"""Table designs: which bits lead in each table, what tables cost, and the cheapest design for a load.

A table sorts fingerprints by some of their bits, which its mask names. The masks of a `TableDesign` are such that
whatever `radius` bits differ between two fingerprints, some mask avoids all differing bits: so the two fingerprints are
in one bucket of that table.

Source: Manku, Jain and Das Sarma 2007, section 3.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np

from neardup_gpu.kernels._cached import cached_property
from neardup_gpu.kernels.hamming import NO_LIMIT

from .. import checks
from ..errors import ParameterError
from ..records import dataclass
from ..report import count

LEADING = 64
"""The most bits that may lead in a table: they are one word."""

ALL_WITH_ALL = 1 << 18
"""The most fingerprints that `pairs` compares all with all, within half a minute, where tables cost more: at radii of a
quarter of the bits or more, where random fingerprints are near one another, too, and no limit keeps pairs few."""

MOST_BITS = 512
"""The most bits of a design. What it takes to count tables grows faster than the bits."""

MOST_TABLES = 10_000
"""The most tables of a design that is to be used; larger designs can only be counted."""


def blocks(bits: int, number: int) -> list[int]:
    """Split `bits` bits into `number` blocks of sizes as equal as possible, the larger blocks first.

    Parameters
    ----------
    bits : int
        Bits to split, from 1 to 512.
    number : int
        Number of blocks, from 1 to `bits`.

    Returns
    -------
    list of int
        The size of each block.

    Raises
    ------
    ParameterError, ArgumentTypeError
        Unless there are from 1 to `bits` blocks.

    Examples
    --------
    >>> blocks(64, 6)
    [11, 11, 11, 11, 10, 10]
    """
    bits = checks.integer("bits", bits, 1, MOST_BITS)
    number = checks.integer("number", number, 1, bits)
    return _blocks(bits, number)


def _blocks(bits: int, number: int) -> list[int]:
    size, num_larger = divmod(bits, number)
    return [size + 1] * num_larger + [size] * (number - num_larger)


@cache
def _fewest(bits: int, radius: int, prefix: int) -> tuple[float, int]:
    """X(bits, radius, prefix) of `num_tables`, and the number of blocks that gives it; 0 where no bits need to lead."""
    if prefix <= 0:
        return 1, 0
    best, best_number = math.inf, 0
    for number in range(radius + 1, bits + 1):
        chosen = number - radius
        if math.comb(number, chosen) >= best:
            break  # each choice takes one table or more
        size, num_larger = divmod(bits, number)
        total: float = 0
        for larger_chosen in range(max(0, chosen - (number - num_larger)), min(chosen, num_larger) + 1):
            leading = chosen * size + larger_chosen
            ways = math.comb(num_larger, larger_chosen) * math.comb(number - num_larger, chosen - larger_chosen)
            total += ways * _fewest(bits - leading, radius, prefix - leading)[0]
        if total < best:
            best, best_number = total, number
    return best, best_number


def num_tables(bits: int, radius: int, prefix: int) -> int:
    """X of section 3.1.2: how many tables it takes for every table to have at least `prefix` leading bits.

    X(f, k, p) = 1 if p <= 0, else the minimum, over r > k blocks of the f bits, of the sum, over the choices of r - k
    blocks, of X(f - c, k, p - c), where c is the number of bits chosen. The paper writes it for d = log2(n) and tau =
    d - p and for blocks of f / r bits, and stops where d < tau; here blocks are whole, and the recursion stops at
    d <= tau.

    Parameters
    ----------
    bits : int
        Length of a fingerprint.
    radius : int
        Number of bits in which two fingerprints may differ.
    prefix : int
        The fewest bits that lead in a table.

    Returns
    -------
    int
        The fewest tables.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If there are no such tables: at least `radius` bits have to remain in addition to the leading ones.

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
            f"no tables of {bits} bits with prefix {checks.shown(prefix)} find all fingerprints within radius "
            f"{checks.shown(radius)}; radius must be >= 0 and prefix between 0 and bits - radius"
        )
    return int(_fewest(bits, radius, prefix)[0])


def most_leading_bits(bits: int, radius: int, most_tables: int) -> TableDesign:
    """The design with the most leading bits in at most `most_tables` tables."""
    prefix = 0
    while prefix < min(LEADING, bits - radius) and num_tables(bits, radius, prefix + 1) <= most_tables:
        prefix += 1
    return TableDesign(bits, radius, prefix)


def _leading(places: list[int], radius: int, prefix: int) -> Iterator[list[int]]:
    """The leading places of each table of a design over the bits at `places`, the highest bit first."""
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


def of_integers(values: Any, bits: int) -> np.ndarray:
    """Convert integers of 64 or 128 bits to an array of uint64, shape (n,) or (n, 2)."""
    if bits == 64:
        return np.array(values, np.uint64)
    if bits == 128:
        return np.array([divmod(int(value), 2**64) for value in values], np.uint64).reshape(-1, 2)
    raise ParameterError(f"design must be of 64 or 128 bits, as fingerprints are, got one of {bits} bits")


@dataclass(frozen=True)
class TableDesign:
    """The fewest tables that find all fingerprints within `radius` bits and have `prefix` leading bits or more each.

    The bits are split into r blocks. Whatever `radius` bits differ, at least r - radius blocks are free of them: there
    is a table for each choice of r - radius blocks, and their bits lead in it. Where they are too few bits, the other
    blocks are split again, as in the 16 tables of example 3.1. The bits that lead keep their order, and so do the
    others.

    Parameters
    ----------
    bits : int
        Length of a fingerprint.
    radius : int
        Number of bits in which two fingerprints may differ.
    prefix : int
        The fewest bits that lead in a table. It is raised to the most that the same number of tables can have, so that
        equal designs are equal. Of more than 64 leading bits the first 64 are taken: the table finds the same
        fingerprints and more.

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
            raise ParameterError(
                f"prefix must be <= {LEADING}, the leading bits that a table has room for, got {prefix}"
            )
        while (
            prefix < min(LEADING, self.bits - self.radius) and num_tables(self.bits, self.radius, prefix + 1) == fewest
        ):
            prefix += 1
        object.__setattr__(self, "prefix", prefix)

    @property
    def num_tables(self) -> int:
        """The number of tables, one for each mask."""
        return num_tables(self.bits, self.radius, self.prefix)

    @cached_property
    def masks(self) -> tuple[int, ...]:
        """The leading bits of each table.

        Raises
        ------
        ParameterError
            If there are more than 10,000 tables.
        """
        if self.num_tables > MOST_TABLES:
            raise ParameterError(f"{self}: no more than {MOST_TABLES:,} tables can be used; take a smaller radius")
        places = list(range(self.bits - 1, -1, -1))
        tables = _leading(places, self.radius, self.prefix)
        return tuple(sum(1 << place for place in table[:LEADING]) for table in tables)

    @cached_property
    def array(self) -> np.ndarray:
        """The masks as kernels take them: uint64, shape (tables,) for 64 bits, (tables, 2) for 128."""
        return of_integers(self.masks, self.bits)

    def memory(self, num_fingerprints: int) -> int:
        """Bytes of all tables.

        Parameters
        ----------
        num_fingerprints : int
            Number of fingerprints in the tables.

        Returns
        -------
        int
            A word and a row of 4 bytes for each entry; for 128 bits also the fingerprints, once.

        Examples
        --------
        >>> TableDesign(64, 3, 16).memory(1000)  # 4 tables of 12 bytes a fingerprint
        48000
        """
        return (self.num_tables * 12 + (16 if self.bits > LEADING else 0)) * num_fingerprints

    def words_met(self, num_fingerprints: int) -> float:
        """Words that a query is compared with in all tables, on average, if fingerprints are random.

        Parameters
        ----------
        num_fingerprints : int
            Number of fingerprints in the tables.

        Returns
        -------
        float
            The sum over the tables of n / 2**p, where p is the number of leading bits.

        Examples
        --------
        >>> TableDesign(64, 3, 16).words_met(2**20)  # 4 tables of 2**16 buckets of 16 fingerprints
        64.0
        """
        return sum(num_fingerprints / 2.0 ** mask.bit_count() for mask in self.masks)

    def __str__(self) -> str:
        return f"{count(self.num_tables, 'table')} of {self.prefix} leading bits or more (radius {self.radius})"


BUILD, SEARCH, SORT, COMPARE = 50.0, 400.0, 20.0, 0.15
"""Nanoseconds on two cores: to put a fingerprint into a table; to find a query's bucket in a table by a search; to sort
a query into the order of a table instead; to compare two words. Only their ratios matter."""


def cost(design: TableDesign, num_fingerprints: int, num_queries: float, probe: float = SEARCH) -> float:
    """Nanoseconds to build a design's tables and to answer queries, if fingerprints are random.

    tables * n * BUILD + queries * (tables * probe + sum over tables of n / 2**p * COMPARE), where `probe` is SEARCH for
    queries that come one by one, SORT for queries that come together. All pairs of a set of n fingerprints are n / 2
    queries that are in order already: their `probe` is 0.

    Parameters
    ----------
    design : TableDesign
        The design of the tables.
    num_fingerprints : int
        Number of fingerprints in the tables.
    num_queries : float
        Number of queries.
    probe : float, default 400.0
        Nanoseconds to find a query's bucket in a table.

    Returns
    -------
    float
        Nanoseconds.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If `design` is not a TableDesign, or another argument is not a number >= 0.

    Examples
    --------
    >>> design = TableDesign(64, 3, 16)
    >>> cost(design, 1000, 0)  # to build 4 tables, 50 ns a fingerprint
    200000.0
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
    """Choose the design of least `cost` within a memory budget.

    Parameters
    ----------
    num_fingerprints : int
        Number of fingerprints in the tables.
    radius : int
        Number of bits in which two fingerprints may differ.
    num_queries : float
        How many queries to expect, as in `cost`.
    bits : int, default 64
        Length of a fingerprint.
    probe : float, default 400.0
        Nanoseconds to find a query's bucket, as in `cost`.
    memory : float, default infinity
        Bytes that all tables may take together.
    bucket_limit : float, default infinity
        Buckets of random fingerprints have to stay below it: their mean size and eight standard deviations.
    all_with_all : int, default 0
        Up to this number, fingerprints may also be compared all with all, in one table without leading bits.

    Returns
    -------
    TableDesign
        The cheapest design that fits.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If the radius is impossible, no design fits, or an argument is not a number.

    Examples
    --------
    >>> print(choose(1_000_000, 3, num_queries=1_000_000))
    4 tables of 16 leading bits or more (radius 3)
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
        raise _nothing_fits(num_fingerprints, radius, memory, bucket_limit)
    return best


def _nothing_fits(num_fingerprints: int, radius: int, memory: float, bucket_limit: float) -> ParameterError:
    limits = [f"{memory:,.0f} bytes of memory"] if memory < math.inf else []
    limits += [f"a bucket_limit of {bucket_limit:,.0f}"] if bucket_limit < math.inf else []
    limited = f" with {' and '.join(limits)}" if limits else ""
    return ParameterError(
        f"radius {radius}: no {MOST_TABLES:,} tables or fewer find all of {num_fingerprints:,} fingerprints"
        f"{limited}; take a smaller radius{' or allow more' if limits else ''}"
    )


def given_or_cheapest(design: TableDesign | None, values: np.ndarray, radius: int, **load: Any) -> TableDesign:
    """The design given by the caller, if it fits the fingerprints `values`; else the cheapest for their number.

    Parameters
    ----------
    load
        The arguments by name that `choose` takes.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If the radius is impossible, or the design is for other fingerprints or a smaller radius.
    """
    bits = 64 * values.ndim
    radius = checks.integer("radius", radius, 0, bits - 1)
    checks.optional(checks.instance, "design", design, TableDesign)
    if design is None:
        return choose(len(values), radius, bits=bits, **load)
    if design.bits != bits:
        raise ParameterError(f"design must be of {bits} bits, as the fingerprints are, got one of {design.bits} bits")
    if design.radius < radius:
        raise ParameterError(
            f"design must be for radius {radius} or more, got one for {design.radius}, which misses pairs"
        )
    return design


def design_for(num_fingerprints: int, bits: int, radius: int, bucket_limit: int) -> TableDesign:
    """The design by which `pairs` compares this number of fingerprints with one another, unless a design is given."""
    all_with_all = ALL_WITH_ALL if 4 * radius >= bits else 0
    load: dict[str, Any] = {"num_queries": num_fingerprints / 2, "probe": 0, "bucket_limit": bucket_limit}
    return choose(num_fingerprints, radius, bits=bits, all_with_all=all_with_all, **load)


def limits_of(design: TableDesign, bucket_limit: int, bucket_probe: int) -> tuple[int, int]:
    """The bucket limits that a design keeps: none, where it compares all with all."""
    return NO_LIMIT if design.prefix == 0 else bucket_limit, bucket_probe


def settled(
    values: np.ndarray, radius: int, design: TableDesign | None, limits: tuple[int, int]
) -> tuple[TableDesign, tuple[int, int]]:
    """Return the design given by the caller or else the cheapest one, and the bucket limits that it keeps."""
    if design is None:
        design = design_for(len(values), 64 * values.ndim, radius, limits[0])
    design = given_or_cheapest(design, values, radius)
    return design, limits_of(design, *limits)
