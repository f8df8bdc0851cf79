"""Which fingerprints of a large set are near some of a smaller one: a scan, chunk by chunk, and a join in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from neardup_gpu.kernels import hamming_probe, hamming_table
from neardup_gpu.kernels._launch import array_module, to_host

from .. import checks
from ..engine.choice import kernel
from ..engine.contract import Backend
from ..errors import ArgumentTypeError, InputError
from ..methods.table_design import SORT, TableDesign, given_or_cheapest
from ..report import count
from ..store.folder import open_named
from .members import Members, in_parts, slices
from .near_pairs import BUCKET_LIMIT, BUCKET_PROBE, checked_limits
from .values import Fingerprints, as_fingerprints, is_array_of_fingerprints

CHUNK_BYTES = 64 << 20
"""Bytes of fingerprints that are read from a file at once."""


class Matches(NamedTuple):
    """Which queries each row of a set is within a radius of.

    Parameters
    ----------
    row : array of int64, shape (matches,)
        Rows of the set, ascending.
    query : array of int64, shape (matches,)
        The queries, ascending for each row.
    distance : array of uint8, shape (matches,)
        Number of bits in which row and query differ.
    num_large : int
        How often a row met a bucket above the limit, or more identical queries than the limit.
    num_uncompared : int
        Number of queries that these left out. If both counts are 0, nothing is missing.

    Examples
    --------
    >>> from neardup_gpu import hamming
    >>> found = hamming.join([5, 2**40], [4, 7], 1)
    >>> found.row.tolist(), found.query.tolist(), found.num_large
    ([0, 0], [0, 1], 0)
    """

    row: np.ndarray
    query: np.ndarray
    distance: np.ndarray
    num_large: int
    num_uncompared: int


def scan(
    chunks: Iterable[Fingerprints],
    queries: Fingerprints,
    radius: int,
    *,
    design: TableDesign | None = None,
    bucket_limit: int = BUCKET_LIMIT,
    bucket_probe: int = BUCKET_PROBE,
    backend: Backend | None = None,
) -> Iterator[Matches]:
    """Find which existing fingerprints, read chunk by chunk, are within `radius` bits of some query (section 3.3).

    The tables hold the distinct queries, in memory; a chunk is forgotten when the next one is read. Rows are
    numbered from 0 over all chunks.

    Every match is found where no limit is exceeded (`num_large` is 0). Where one is, all matches that are reported are
    right, but some of the `num_uncompared` comparisons that were left out may have been matches, too, unless another
    table found them; and the identical queries that are not named were matches. The rule that limits the pairs of one
    set (see `pairs`) does not apply, as a row has no place among the queries: queries added may take matches away.

    Parameters
    ----------
    chunks : iterable of arrays of uint64
        Fingerprints, such as `read_chunks` reads from a file.
    queries : array of uint64, shape (queries,) or (queries, 2)
        Of the same length as the fingerprints of the chunks.
    radius : int
        Number of bits in which a row and a query may differ.
    design : TableDesign, default None
        The design of the tables; the cheapest for the number of queries, unless given.
    bucket_limit : int, default 512
        In a bucket of more distinct queries, a row is compared with the first `bucket_probe` only. Of more identical
        queries, the first `bucket_probe` are named.
    bucket_probe : int, default 32
        Number of queries that are compared in a larger bucket.
    backend : "reference", "cpu" or "gpu", default None
        Where to run; on a GPU if there is one, unless given.

    Yields
    ------
    Matches
        One or more for each chunk, before the next chunk is read: parts of whole rows, of about four million
        matches at most.

    Raises
    ------
    ParameterError, ArgumentTypeError
        At once if the radius is impossible, `queries` does not hold fingerprints, or another argument is not as
        described above; at a chunk that does not hold fingerprints.

    Examples
    --------
    >>> for found in scan([[5, 2**40], [6]], [7], 1):
    ...     print(found.row, found.query, found.distance)
    [0] [0] [1]
    [2] [0] [1]
    """
    if isinstance(chunks, str | bytes | np.ndarray) or not hasattr(chunks, "__iter__"):
        raise ArgumentTypeError(f"chunks must be a list or a generator of arrays, got {checks.shown(chunks)}")
    query_values = as_fingerprints(queries, "queries")
    limits = checked_limits(bucket_limit, bucket_probe)
    load = {
        "num_queries": CHUNK_BYTES / query_values.itemsize / query_values.ndim,
        "probe": SORT,
        "bucket_limit": limits[0],
    }
    tables = given_or_cheapest(design, query_values, radius, **load)

    def found_in_chunks() -> Iterator[Matches]:
        distinct, members = Members.of(query_values, backend)
        probe = _tables_to_probe(distinct, tables, int(radius), limits, backend)
        start = 0
        for chunk in chunks:
            values = as_fingerprints(chunk, "a chunk", 64 * query_values.ndim)
            for first, found in in_parts(probe, values):
                for part in [found] if members is None else _expanded(found, members, *limits):
                    yield part._replace(row=part.row + start + first)
            start += len(values)

    return found_in_chunks()


def _tables_to_probe(
    distinct: np.ndarray, design: TableDesign, radius: int, limits: tuple[int, int], backend: Backend | None
) -> Callable[[np.ndarray], Matches]:
    """Build the tables of distinct queries, and return a function that finds the matches of fingerprints in them."""
    tables = [kernel(hamming_table, backend)(distinct, mask, False) for mask in design.array]
    xp = array_module(tables[0][0])
    words, order = (xp.stack([table[part] for table in tables]) for part in (0, 1))
    whole = None if distinct.ndim == 1 else distinct

    def probe(values: np.ndarray) -> Matches:
        row, number, distance, num_large, num_uncompared = kernel(hamming_probe, backend)(
            words, order, design.array, values, radius, *limits, whole
        )
        return Matches(to_host(row), to_host(number), to_host(distance), int(num_large), int(num_uncompared))

    return probe


def _expanded(found: Matches, members: Members, bucket_limit: int, bucket_probe: int) -> Iterator[Matches]:
    """Turn matches with distinct queries into matches with all identical queries, in parts of whole rows."""
    row, number, distance, num_large, num_uncompared = found
    sizes = members.sizes(number)
    named = np.where(sizes > bucket_limit, np.minimum(sizes, bucket_probe), sizes)
    for part in slices(row, named):
        place, query = members.expand(number[part], named[part])
        rows, bits = row[part][place], distance[part][place]
        if (row[part][1:] == row[part][:-1]).any():
            sequence = np.lexsort((query, rows))
            rows, query, bits = rows[sequence], query[sequence], bits[sequence]
        num_large += int(np.count_nonzero(sizes[part] > bucket_limit))
        num_uncompared += int(np.sum(sizes[part] - named[part]))
        yield Matches(rows, query, bits, num_large, num_uncompared)
        num_large = num_uncompared = 0


def join(
    fingerprints: Fingerprints,
    queries: Fingerprints,
    radius: int,
    *,
    design: TableDesign | None = None,
    bucket_limit: int = BUCKET_LIMIT,
    bucket_probe: int = BUCKET_PROBE,
    backend: Backend | None = None,
) -> Matches:
    """Find which fingerprints of one set in memory are within `radius` bits of some of another.

    Parameters
    ----------
    fingerprints : array of uint64, shape (rows,) or (rows, 2)
        The larger set.
    queries : array of uint64, shape (queries,) or (queries, 2)
        Better the smaller set, as the tables hold it.
    radius : int
        Number of bits in which a row and a query may differ.
    design : TableDesign, default None
        The design of the tables; the cheapest for the number of queries, unless given.
    bucket_limit : int, default 512
        In a bucket of more distinct queries, a row is compared with the first `bucket_probe` only. Of more identical
        queries, the first `bucket_probe` are named.
    bucket_probe : int, default 32
        Number of queries that are compared in a larger bucket.
    backend : "reference", "cpu" or "gpu", default None
        Where to run; on a GPU if there is one, unless given.

    Returns
    -------
    Matches
        Of all rows.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If the radius is impossible, one of the sets does not hold fingerprints, or another argument is not as
        described above.

    Examples
    --------
    >>> found = join([5, 2**40], [4, 7], 1)
    >>> found.row, found.query, found.distance
    (array([0, 0]), array([0, 1]), array([1, 1], dtype=uint8))
    """
    options: dict[str, Any] = {"bucket_limit": bucket_limit, "bucket_probe": bucket_probe, "backend": backend}
    chunks = [as_fingerprints(fingerprints, "fingerprints")]
    parts = list(scan(chunks, queries, radius, design=design, **options))
    if len(parts) == 1:
        return parts[0]
    row, query, distance = (np.concatenate(columns) for columns in zip(*(part[:3] for part in parts), strict=True))
    counts = sum(part.num_large for part in parts), sum(part.num_uncompared for part in parts)
    return Matches(row, query, distance, *counts)


def read_chunks(path: str | Path, chunk_bytes: int = CHUNK_BYTES) -> Iterator[np.ndarray]:
    """Read the fingerprints of a .npy file of uint64, which may be larger than memory, chunk by chunk.

    Parameters
    ----------
    path : path
        The file.
    chunk_bytes : int, default 64 MiB
        About how many bytes to read at a time.

    Yields
    ------
    array of uint64, shape (n,) or (n, 2)
        As the file is. There are no chunks if it is empty.

    Raises
    ------
    InputError
        If there is no such file or it holds something else.
    ParameterError, ArgumentTypeError
        At once, if `path` is not a path or `chunk_bytes` is not a positive integer.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/fingerprints.npy", np.array([5, 6, 7], np.uint64))
    ...     [chunk.tolist() for chunk in read_chunks(f"{folder}/fingerprints.npy", chunk_bytes=16)]
    [[5, 6], [7]]
    """
    return _read_chunks(checks.path("path", path), checks.integer("chunk_bytes", chunk_bytes, 1))


def _read_chunks(path: str, chunk_bytes: int) -> Iterator[np.ndarray]:
    try:
        with open_named(path) as file:
            shape, dtype = _read_npy_header(file, path)
            num_words, remaining = len(shape), shape[0]
            while remaining:
                chunk = np.fromfile(file, dtype, num_words * min(remaining, max(1, chunk_bytes // (8 * num_words))))
                if len(chunk) < num_words:
                    raise InputError(f"{path}: ends {count(remaining, 'fingerprint')} early; write it again")
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


def _read_npy_header(file: Any, path: str) -> tuple[tuple[int, ...], np.dtype]:
    """The shape and dtype of an open .npy file, which must hold fingerprints row by row."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, by_columns, dtype = read(file)
    if not is_array_of_fingerprints(dtype, shape):
        raise InputError(
            f"{path}: holds {dtype} of shape {shape}; fingerprints are uint64 of shape (rows,) or (rows, 2)"
        )
    if by_columns and len(shape) == 2:
        raise InputError(f"{path}: is stored column by column; save it in C order (numpy.ascontiguousarray)")
    return shape, dtype
