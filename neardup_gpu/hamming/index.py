"""An index of fingerprints: sorted tables in memory or in a file, for queries one by one or together."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, overload

import numpy as np

from .. import checks
from ..data import Ragged
from ..engine.contract import BACKENDS, Backend
from ..errors import ParameterError
from ..methods.table_design import TableDesign, given_or_cheapest, of_integers
from ..report import count
from ..store.ids import Ids
from ..store.outputs import new_file
from .members import Members, in_parts, slices
from .recipes import StoredRecipe, check_stored, described
from .storage import INDEX, IndexParts, read_index, write_index
from .tables import HammingTables
from .values import Fingerprints, as_fingerprints


class HammingIndex(IndexParts):
    """Sorted tables of fingerprints, in memory or mapped from a file, for queries one by one or together.

    Parameters
    ----------
    fingerprints : array of uint64, shape (rows,) or (rows, 2)
        A column of pyarrow, pandas or polars, or a list of integers, is taken as well.
    radius : int
        The largest distance that queries may ask for.
    ids : array or list of integers, strings or bytes, default None
        What queries answer with; row numbers, unless given. Arrow's are taken without making Python objects of them.
    design : TableDesign, default None
        The design of the tables. If None, it is the cheapest one for `num_queries`; `choose` finds the cheapest one
        within a bound of memory.
    num_queries : int, default None
        How many queries to expect in the index's life; the number of fingerprints, unless given.
    compress : bool, default False
        Whether tables are kept as Huffman codes of where successive words differ (section 3.2). A word then takes 48
        bits instead of 64 for a million random fingerprints, 44 for 16 million, and queries take more time.
    recipe : Recipe or dict, default None
        How the fingerprints were made: saved with the index, as JSON.
    backend : "reference", "cpu" or "gpu", default None
        Where to run; on a GPU if there is one, unless given.

    Attributes
    ----------
    design : TableDesign
    radius : int
    tables : HammingTables
        The tables, which hold the distinct fingerprints.
    members : Members or None
        Which rows have each distinct fingerprint; None if all are distinct.
    ids : Ids or None
        Names of the rows; None if the rows are named by their numbers.
    recipe : dict
        How the fingerprints were made; empty if that is not known.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If the radius is impossible, ids and fingerprints differ in number, the budget is too small, the recipe is of
        min-hash sketches or cannot be saved as JSON, or another argument is not as described above.

    Notes
    -----
    Tables hold the distinct fingerprints. A table takes 12 bytes for each, 4 of them for the row; fingerprints of 128
    bits take 16 bytes more, once. Where some are identical, each distinct one takes 8 bytes and each row 4 bytes more,
    to record which rows have which. An integer id takes its own bytes; any other id takes its own (of strings, in
    UTF-8) and 8 more. A query of n random fingerprints searches each table by interpolation and compares n / 2**p words
    there.

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
        num_queries: int | None = None,
        compress: bool = False,
        recipe: StoredRecipe | None = None,
        backend: Backend | None = None,
    ) -> None:
        values = as_fingerprints(fingerprints, "fingerprints")
        radius = checks.integer("radius", radius, 0, 64 * values.ndim - 1)
        load = len(values) if num_queries is None else checks.integer("num_queries", num_queries)
        compress = checks.flag("compress", compress)
        design = given_or_cheapest(design, values, radius, num_queries=load)
        named = None if ids is None else Ids.of(ids)
        if named is not None and len(named) != len(values):
            raise ParameterError(f"ids must be one for each of {count(len(values), 'fingerprint')}, got {len(named):,}")
        stored = described(recipe)
        distinct, members = Members.of(values, backend)
        tables = HammingTables.build(distinct, design, compress, backend)
        super().__init__(design, radius, tables, members, named, stored)
        self.backend: Backend | None = backend

    @property
    def num_bytes(self) -> int:
        """Bytes of the tables, of the members and of the ids."""
        return sum(array.nbytes for array in self.arrays.values())

    def __repr__(self) -> str:
        return f"HammingIndex({count(len(self), 'fingerprint')}, {self.design}, {self.num_bytes:,} bytes)"

    def _repr_html_(self) -> str:
        return _as_html(self)

    @overload
    def query(self, fingerprints: int | np.integer, radius: int | None = None) -> tuple[np.ndarray, np.ndarray]: ...

    @overload
    def query(self, fingerprints: Fingerprints, radius: int | None = None) -> tuple[Ragged, Ragged]: ...

    def query(self, fingerprints: Any, radius: int | None = None) -> tuple[Any, Any]:
        """Find the rows within a radius of one fingerprint, or of each of many; the nearest first, ties in row order.

        Parameters
        ----------
        fingerprints : int, or array of uint64, shape (n,) or (n, 2)
            Of the length that the index's fingerprints have.
        radius : int, default None
            The index's, unless given.

        Returns
        -------
        ids, distances : arrays, shape (found,), for one fingerprint; Ragged of n rows for many
            Integer ids have their own dtype, strings and bytes are objects; distances are uint8.

        Raises
        ------
        ParameterError, ArgumentTypeError
            If the radius is larger than the index's, or `fingerprints` does not hold fingerprints.
        DamagedError
            If the index is mapped from a file and what decides the answer is not as it was written.

        Examples
        --------
        >>> HammingIndex([7, 8, 2**63], 1).query(6)
        (array([0]), array([1], dtype=uint8))
        >>> rows, distances = HammingIndex([7, 8, 2**63], 1).query([6, 9, 100])
        >>> rows.sizes
        array([1, 1, 0])
        """
        return self._answer(fingerprints, radius, None)

    @overload
    def nearest(self, fingerprints: int | np.integer, count: int) -> tuple[np.ndarray, np.ndarray]: ...

    @overload
    def nearest(self, fingerprints: Fingerprints, count: int) -> tuple[Ragged, Ragged]: ...

    def nearest(self, fingerprints: Any, count: int) -> tuple[Any, Any]:
        """Like `query`, but at most `count` for each fingerprint: the nearest that are within the index's radius.

        Parameters
        ----------
        fingerprints : int, or array of uint64, shape (n,) or (n, 2)
            Of the length that the index's fingerprints have.
        count : int
            The most matches of a fingerprint, at least 1.

        Returns
        -------
        ids, distances : arrays, shape (found,), for one fingerprint; Ragged of n rows for many
            Integer ids have their own dtype, strings and bytes are objects; distances are uint8.

        Raises
        ------
        ParameterError, ArgumentTypeError
            If `count` is not an integer >= 1, or `fingerprints` does not hold fingerprints.
        DamagedError
            As in `query`.

        Examples
        --------
        >>> HammingIndex([7, 6, 4], 2).nearest(6, 2)
        (array([1, 0]), array([0, 1], dtype=uint8))
        """
        checks.integer("count", count, 1)
        return self._answer(fingerprints, None, count)

    def _answer(self, fingerprints: Any, radius: int | None, count: int | None) -> tuple[Any, Any]:
        one = isinstance(fingerprints, int | np.integer)
        if one:
            bits = self.design.bits
            fingerprints = of_integers([checks.integer("fingerprint", fingerprints, 0, 2**bits - 1)], bits)
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
        """Like `query` (or `nearest`, if `count` is given), but yields matches in chunks so that they fit in memory.

        Parameters
        ----------
        fingerprints : array of uint64, shape (n,) or (n, 2)
            Of the length that the index's fingerprints have.
        radius : int, default None
            The index's, unless given.
        count : int, default None
            At most this many matches for each fingerprint; all within the radius, unless given.

        Yields
        ------
        query, row, distance : arrays of int64, int64 and uint8, shape (matches,)
            All matches of one query or more; of several queries at most about four million. `ids.take` names rows.

        Raises
        ------
        ParameterError, ArgumentTypeError
            At once, as in `query` and `nearest`.
        DamagedError
            As in `query`.

        Examples
        --------
        >>> index = HammingIndex([7, 8, 2**63], 1)
        >>> [(query.tolist(), row.tolist()) for query, row, distance in index.parts([6, 9])]
        [([0, 1], [0, 1])]
        """
        radius = self.radius if radius is None else checks.integer("radius", radius, 0, self.radius)
        count = checks.optional(checks.integer, "count", count, 1)
        return self._matches(as_fingerprints(fingerprints, "fingerprints", self.design.bits), radius, count)

    def _matches(
        self, queries: np.ndarray, radius: int, count: int | None
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        def probe(some: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            return self.tables.probe(self.design.array, some, radius, self.backend)

        for first, (query, number, distance) in in_parts(probe, queries):
            if len(query) > 1:
                order = np.lexsort((distance, query))
                query, number, distance = query[order], number[order], distance[order]
            if count is not None:  # of `count` rows that are nearest, each has one of the `count` nearest fingerprints
                kept = _ranks(query) < count
                query, number, distance = query[kept], number[kept], distance[kept]
            query = query + first
            if self.members is None:
                yield query, number, distance
                continue
            sizes = self.members.sizes(number)
            if (sizes == 1).all():
                yield query, self.members.expand(number, sizes)[1], distance
            else:
                yield from _expanded(self.members, (query, number, distance), sizes, count)

    def save(self, path: str | Path, overwrite: bool = False) -> None:
        """Write the index to a file, which appears whole or not at all.

        Parameters
        ----------
        path : path
            Where to write.
        overwrite : bool, default False
            Whether to replace a file that is an index.

        Raises
        ------
        OutputError
            If the file exists and may not be overwritten, is not an index, or cannot be written.
        ParameterError, ArgumentTypeError
            If `path` is not a path, or `overwrite` is not a bool.

        Examples
        --------
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     HammingIndex([7, 8], 1).save(f"{folder}/x.index")
        ...     len(HammingIndex.load(f"{folder}/x.index"))
        2
        """
        path, overwrite = checks.path("path", path), checks.flag("overwrite", overwrite)
        with new_file(path, overwrite, is_ours=INDEX.matches) as file:
            self.write(file)

    def write(self, path: Path) -> None:
        """Like `save`, to a file that does not exist yet.

        Parameters
        ----------
        path : Path
            Where to write.

        Raises
        ------
        OutputError
            If the file cannot be written.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     HammingIndex([7, 8], 1).write(pathlib.Path(folder, "x.index"))
        ...     len(HammingIndex.load(pathlib.Path(folder, "x.index")))
        2
        """
        write_index(path, self)

    @classmethod
    def load(
        cls,
        path: str | Path,
        recipe: StoredRecipe | None = None,
        *,
        check: bool = False,
        backend: Backend | None = None,
    ) -> HammingIndex:
        """Map an index from its file: pages are read, and compared with their checksums, when queries need them.

        Parameters
        ----------
        path : path
            What `save` wrote.
        recipe : Recipe or dict, default None
            What made the fingerprints of the queries: the index has to be made by the same, in all that simhashes
            depend on.
        check : bool, default False
            Compare the whole file with its checksums now.
        backend : "reference", "cpu" or "gpu", default None
            Where to run; on a GPU if there is one, unless given.

        Returns
        -------
        HammingIndex
            The stored index.

        Raises
        ------
        InputError
            If there is no such file, or it is not an index, of another version or of another byte order.
        DamagedError
            If it was cut short or is not as it was written.
        RecipeMismatchError
            If its fingerprints were made by another recipe, or this version designs other tables.
        ParameterError, ArgumentTypeError
            If `path` is not a path, `recipe` is neither a Recipe by simhash nor a dict, or `backend` is not a backend.

        Examples
        --------
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     HammingIndex([7, 8], 1, ids=["a", "b"]).save(f"{folder}/x.index")
        ...     HammingIndex.load(f"{folder}/x.index", check=True).query(7)
        (array(['a'], dtype=object), array([0], dtype=uint8))
        """
        path = checks.path("path", path)
        checks.optional(checks.one_of, "backend", backend, BACKENDS)
        described(recipe)
        parts = read_index(path, check=checks.flag("check", check))
        if recipe is not None:
            check_stored(parts.recipe, recipe, path)
        index = cls.__new__(cls)
        vars(index).update(vars(parts), backend=backend)
        return index


def _ranks(query: np.ndarray) -> np.ndarray:
    """Number of earlier entries of the same query, for each entry; entries of a query are neighbours."""
    return np.arange(len(query)) - np.searchsorted(query, query)


def _expanded(
    members: Members, matches: tuple[np.ndarray, np.ndarray, np.ndarray], sizes: np.ndarray, count: int | None
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Turn matches with distinct fingerprints into matches with all rows that have these, in parts."""
    query, number, distance = matches
    if count is not None:
        sizes = np.minimum(sizes, count - _ranks(query))
    for part in slices(query, sizes):
        place, row = members.expand(number[part], sizes[part])
        tied = (query[part][1:] == query[part][:-1]) & (distance[part][1:] == distance[part][:-1])
        asking, bits = query[part][place], distance[part][place]
        if tied.any():
            order = np.lexsort((row, bits, asking))
            asking, row, bits = asking[order], row[order], bits[order]
        if count is not None:
            nearest = _ranks(asking) < count
            asking, row, bits = asking[nearest], row[nearest], bits[nearest]
        yield asking, row, bits


def _as_html(index: HammingIndex) -> str:
    """The table that notebooks show of an index."""
    tables = index.tables
    word = "64"
    if tables.compressed:
        least = f"{tables.least_bits_a_word:.1f}"
        word = f"{tables.bits_a_word:.1f} of 64; no code takes fewer than {least} if fingerprints are random"
    lines = {
        "fingerprints": f"{len(index):,} of {index.design.bits} bits, {len(tables):,} of them distinct",
        "radius": f"{index.radius} bits",
        "tables": f"{index.design.num_tables}, of {index.design.prefix} leading bits or more",
        "words compared by a query": f"{index.design.words_met(len(tables)):,.1f} if fingerprints are random",
        "bytes": f"{index.num_bytes:,}",
        "bits a word": word,
        "recipe": json.dumps(index.recipe),
    }
    cells = "".join(f"<tr><th>{name}</th><td>{html.escape(value)}</td></tr>" for name, value in lines.items())
    return f"<table>{cells}</table>"
