"""The contract of methods: what a file in this folder says of a way to find candidates.

A method is a frozen dataclass of settings. Nobody inherits; `METHODS` names all that there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import numpy as np
    import pyarrow as pa

    from ..data import Pairs, Ragged
    from ..measures import Measure


class Candidates(NamedTuple):
    """Pairs that a method proposes, and what the bucket limit left out.

    Parameters
    ----------
    pairs : Pairs
        The candidates.
    large_buckets : int
        Buckets of more than `bucket_limit` documents, over all tables.
    uncompared_pairs : int
        Pairs inside them that the limit left out, counted table by table.
    crowded : array of bool, shape (documents,)
        Whether each document was in such a bucket of any table. What was left out are pairs of two such documents.
    accidents : float, default 0.0
        Pairs that are expected to be candidates by accident of short fingerprints alone.

    Examples
    --------
    >>> import numpy as np
    >>> from neardup_gpu import SimHash
    >>> SimHash().collide(np.array([7, 5], np.uint64)).pairs
    Pairs(1)
    """

    pairs: Pairs
    large_buckets: int
    uncompared_pairs: int
    crowded: Any
    accidents: float = 0.0


def merged(parts: Sequence[Candidates]) -> Candidates:
    """The candidates of several tasks as one."""
    if len(parts) == 1:
        return parts[0]
    import numpy as np

    from ..data import Pairs
    from ..engine.choice import to_host

    left, right = ([to_host(getattr(part.pairs, side)) for part in parts] for side in ("left", "right"))
    pairs = Pairs.from_unsorted(np.concatenate(left), np.concatenate(right))
    crowded = np.logical_or.reduce([to_host(part.crowded) for part in parts])
    counts = sum(part.large_buckets for part in parts), sum(part.uncompared_pairs for part in parts)
    return Candidates(pairs, *counts, crowded, sum(part.accidents for part in parts))


class Buckets(NamedTuple):
    """How entries become candidates, whatever the method: see `kernels.hamming`, whose tables these are.

    Entries of a table that agree in the bits of its mask are a bucket. Two of a bucket that differ in at most `radius`
    bits are candidates, as far as the limits let them be compared.

    Parameters
    ----------
    masks : array of uint64, shape (tables,) or (tables, 2)
        The bits that lead in each table.
    radius : int
        Bits in which the values of two candidates may differ.
    bucket_limit, bucket_probe : int
        The first `bucket_limit` rows of a bucket by priority are compared all with all, each later one with the first
        `bucket_probe`.

    Examples
    --------
    >>> from neardup_gpu import SimHash
    >>> len(SimHash(radius=3).buckets(100_000_000).masks)
    10
    """

    masks: np.ndarray
    radius: int
    bucket_limit: int
    bucket_probe: int


class Entries(NamedTuple):
    """What one table holds of some rows, in host memory.

    Parameters
    ----------
    table : int
        Number of the table.
    values : array of uint64, shape (entries,) or (entries, 2)
        What is compared.
    rows : array of int64, shape (entries,)
        The row of each entry.
    needed : array of uint16, shape (entries,), or None
        In how many buckets a pair has to be compared to be a candidate: the smaller number of its two rows decides.
        Once, if None.

    Examples
    --------
    >>> import numpy as np
    >>> from neardup_gpu import ModM
    >>> [found] = ModM(leading=1).entries(np.array([[5], [2**64 - 1]], np.uint64), 2)
    >>> found.values, found.rows
    (array([5], dtype=uint64), array([0]))
    """

    table: int
    values: np.ndarray
    rows: np.ndarray
    needed: np.ndarray | None = None


class Estimate(NamedTuple):
    """Estimates of pairs and their 99% intervals; each interval is a pair's own, see `theory.mean_interval`.

    Parameters
    ----------
    estimate : array of float64, shape (pairs,)
        What the method estimates, such as resemblance; NaN where the sketches say nothing of it.
    low : array of float64, shape (pairs,)
        Lower end of each interval.
    high : array of float64, shape (pairs,)
        Upper end of each interval.

    Examples
    --------
    >>> import numpy as np
    >>> from neardup_gpu import SimHash
    >>> SimHash().estimate(np.array([7, 7], np.uint64), np.array([0]), np.array([1])).estimate
    array([1.])
    """

    estimate: np.ndarray
    low: np.ndarray
    high: np.ndarray


class Statistics(Protocol):
    """Facts about all documents that a method needs before it can sketch one, such as document frequencies."""

    @property
    def digest(self) -> str:
        """A name for the statistics in a recipe."""
        ...

    @property
    def elements(self) -> str:
        """What they are of, as `Recipe.elements` says."""
        ...

    def write(self, file: Any) -> None:
        """Write the statistics to a new file."""
        ...


class FirstPass(Protocol):
    """Buffer for a method that needs statistics of all documents: what it keeps of each until they are known."""

    def measure(self, elements: Ragged, backend: str) -> Any:
        """Measure some documents; has no effect on the buffer."""
        ...

    def add(self, measured: Any) -> None:
        """Keep the result of `measure`."""
        ...

    def finish(self, recipe: Any, report: Any) -> tuple[Statistics, Iterable[np.ndarray]]:
        """The statistics of all documents, and their sketches, some at a time, in host memory."""
        ...

    def close(self) -> None:
        """Free everything."""
        ...


class Method(Protocol):
    """How documents are summarised, and how those summaries make pairs candidates.

    A sketch stands for a document in files: a row of an array or, where sketches are of different lengths, of a Ragged.
    Collisions compare its keys, which are kept in memory for every document, so they are small, and of one length.
    `seed` is the recipe's.
    """

    name: ClassVar[str]
    usual_threshold: ClassVar[float | None]
    """Threshold where none is given; None if candidates need not be verified."""

    @property
    def measure(self) -> Measure:
        """What verified pairs are worth."""
        ...

    sketches: ClassVar[bool]
    """Whether it summarises documents. A method that does not compares their shingles alone: of this contract it has
    only what is said of settings and of words."""

    tells_pairs: ClassVar[bool]
    """Whether `pair_columns` tells anything."""

    estimates: ClassVar[str]
    """What `estimate` estimates, in one word: "resemblance" or "cosine"."""

    @property
    def bucket_limit(self) -> int:
        """How many documents of a bucket, the first by priority, are all compared with one another."""
        ...

    @property
    def bucket_probe(self) -> int:
        """How many, the first by priority, each later document of the bucket is compared with."""
        ...

    @property
    def elements(self) -> str:
        """What it sketches: "tokens" or "shingles"."""
        ...

    @property
    def key_columns(self) -> int:
        """Columns of the keys; 0 where they have one dimension."""
        ...

    @property
    def device_bytes(self) -> int:
        """GPU memory that a document needs while it is sketched, beside its text, tokens and shingles."""
        ...

    @property
    def sorts_elements(self) -> bool:
        """Whether sketching sorts the elements of each document, which takes as much memory as bags take."""
        ...

    def settled(self, threshold: float | None) -> Self:
        """The method with everything decided that depends on the threshold.

        Raises
        ------
        ParameterError
            If it needs a threshold, or cannot reach one.
        """
        ...

    def with_(self, **changes: Any) -> Self:
        """A copy with some settings changed."""
        ...

    def describe(self) -> dict[str, Any]:
        """All settings, as plain values."""
        ...

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        """The method that `describe` described."""
        ...

    def sketching(self) -> dict[str, Any]:
        """The settings that sketches depend on: sketches of methods that agree in them can be compared."""
        ...

    def with_statistics(self, given: Any, seed: int) -> tuple[Self, Statistics | None]:
        """The method that uses these statistics (an object or a path), and the statistics.

        Raises
        ------
        ParameterError, RecipeMismatchError
            If it takes no statistics, needs others, or names some that were not given.
        """
        ...

    @property
    def needs_statistics(self) -> bool:
        """Whether it has to know something of all documents before it can sketch one."""
        ...

    def first_pass(self, runtime: Any, folder: Any) -> FirstPass:
        """The buffer for a first pass over all documents, which counts the statistics."""
        ...

    def sketch(self, elements: Ragged, *, seed: int, statistics: Any = None, backend: str | None = None) -> Any:
        """Summarise each row of elements: an array with a row for each, or a Ragged."""
        ...

    def stored(self, sketches: Any, *, seed: int, backend: str | None = None) -> Any:
        """What a file of sketches keeps of them, and `estimate` takes: an array with a row for each."""
        ...

    def keys(self, sketches: Any, *, seed: int, backend: str | None = None) -> Any:
        """What collisions compare: uint64, shape (rows,) or (rows, key_columns)."""
        ...

    def tasks(self) -> Sequence[int]:
        """Numbers of the independent tasks that together find all collisions."""
        ...

    def collide(
        self,
        keys: Any,
        *,
        seed: int,
        present: Any = None,
        tasks: Sequence[int] | None = None,
        backend: str | None = None,
    ) -> Candidates:
        """Find the candidates, by all tasks or by some. Rows are in priority order, the best first."""
        ...

    def buckets(self, num_rows: int) -> Buckets:
        """The tables in which `entries` of so many rows collide, in whatever parts they come, as `collide` says."""
        ...

    def entries(self, keys: Any, num_rows: int, *, seed: int) -> Iterator[Entries]:
        """The entries of some of `num_rows` rows, table by table; a table may come in several parts."""
        ...

    def accidents(self, num_rows: int) -> float:
        """Pairs of so many rows that are expected to be candidates by accident of short fingerprints alone."""
        ...

    def are_candidates(self, keys: Any, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Whether pairs of rows would be candidates if no bucket were limited: bool, shape (pairs,)."""
        ...

    def likeness(self, keys: np.ndarray, left: Any, right: Any) -> np.ndarray:
        """How alike the keys of pairs of rows are, from 0 to 1, where nothing is verified."""
        ...

    def pair_columns(self, keys: np.ndarray, left: np.ndarray, right: np.ndarray) -> dict[str, np.ndarray]:
        """Columns that result tables have for pairs of rows, beside resemblance."""
        ...

    def estimate(self, sketches: Any, left: np.ndarray, right: np.ndarray) -> Estimate:
        """Estimate what `estimates` names, of pairs of rows of what is `stored`."""
        ...

    def postings(self, sketches: Any) -> Ragged:
        """The elements of each sketch, by which documents are found of which one may contain the other.

        Raises
        ------
        ParameterError
            If sketches do not tell containment.
        """
        ...

    def sampled(self, sketches: Any, left: np.ndarray, right: np.ndarray) -> Any:
        """How many elements each pair of sketches samples together; see `elements.Counts`."""
        ...

    def merge(self, sketches: Sequence[Any]) -> Any:
        """The sketch of the union of what each row's sketches are of.

        Raises
        ------
        ParameterError
            If sketches do not tell that.
        """
        ...

    def expected_recall(self, threshold: float | None) -> float | None:
        """Share of the pairs exactly at the threshold that become candidates; None where theory does not say."""
        ...

    def in_words(self, threshold: float | None) -> tuple[str, str]:
        """The label and the sentence that describe the candidates in a report."""
        ...

    def schema(self) -> dict[str, pa.DataType]:
        """The method's own columns of a sketch file, by name."""
        ...

    def to_columns(self, sketches: Any, keys: np.ndarray) -> dict[str, Any]:
        """The arrays of these columns, or Ragged ones, a row for each document, of what is `stored`."""
        ...

    def from_columns(self, columns: Mapping[str, Any]) -> tuple[Any, np.ndarray]:
        """What was `stored`, and the keys, of which `to_columns` made columns."""
        ...
