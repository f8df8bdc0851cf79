"""The two contracts of methods: `Join` compares shingles alone, `Sketch` summarises documents.

A method inherits one of them, as a frozen dataclass of settings. `METHODS` lists all by name.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self, cast

from .. import checks, theory
from ..errors import ParameterError
from ._modules import choice, data, launch, np
from .measures import RESEMBLANCE, Measure

if TYPE_CHECKING:
    import pyarrow as pa

    from neardup_gpu.kernels.cluster_stream import Stream

    from ..data import Pairs, Ragged
    from ..engine.contract import Backend
    from ..recipe import Recipe
    from .finding.contract import Finder
    from .finding.keeps import Keeps
    from .frequencies import Frequencies, FrequencyPass


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

    left, right = ([choice.to_host(getattr(part.pairs, side)) for part in parts] for side in ("left", "right"))
    pairs = data.Pairs.from_unsorted(np.concatenate(left), np.concatenate(right))
    crowded = np.logical_or.reduce([choice.to_host(part.crowded) for part in parts])
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
    """The content of one table for some rows, in host memory.

    Parameters
    ----------
    table : int
        Number of the table.
    values : array of uint64, shape (entries,) or (entries, 2)
        What is compared.
    rows : array of int64, shape (entries,)
        The row of each entry.
    needed : array of uint16, shape (entries,), default None
        In how many buckets a pair has to be compared to be a candidate: the smaller number of its two rows decides.
        None means once.

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


class RowEstimates(NamedTuple):
    """Estimates of pairs of rows in any order, and their 99% intervals: what a sketch of your own returns.

    Parameters
    ----------
    estimate : array of float64, shape (pairs,)
        As in `Estimate`.
    low : array of float64, shape (pairs,)
        Lower end of each interval.
    high : array of float64, shape (pairs,)
        Upper end of each interval.

    Examples
    --------
    >>> import numpy as np
    >>> from neardup_gpu import SimHash
    >>> SimHash().estimate_rows(np.array([7, 7], np.uint64), np.array([1]), np.array([0])).estimate
    array([1.])
    """

    estimate: np.ndarray
    low: np.ndarray
    high: np.ndarray


class Estimate(NamedTuple):
    """Pairs, their estimates and 99% intervals; each interval is a pair's own, see `theory.mean_interval`.

    Parameters
    ----------
    pairs : Pairs
        The pairs of rows.
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
    >>> from neardup_gpu.stages import Pairs
    >>> SimHash().estimate(np.array([7, 7], np.uint64), Pairs([0], [1])).estimate
    array([1.])
    """

    pairs: Pairs
    estimate: np.ndarray
    low: np.ndarray
    high: np.ndarray


class SampledCounts(NamedTuple):
    """For each pair, the number of elements of the sampled union that are in both, in the left, in the right sketch,
    and whether the union is that of the whole sets."""

    both: np.ndarray
    left: np.ndarray
    right: np.ndarray
    whole: np.ndarray


class FirstPass(Protocol):
    """Buffer for a method that needs statistics of all documents: what it keeps of each until they are known."""

    def measure(self, elements: Ragged, backend: Backend) -> Any:
        """Measure some documents; has no effect on the buffer."""

    def on_host(self, measured: Any) -> list[Any]:
        """Return the arrays of the result of `measure` that `add` wants in host memory."""

    def add(self, measured: Any) -> None:
        """Keep the result of `measure`."""

    def finish(self, recipe: Any, report: Any) -> tuple[Frequencies, Iterable[np.ndarray]]:
        """The statistics of all documents, and their sketches, some at a time, in host memory."""

    def close(self) -> None:
        """Free everything."""


KINDS = ("identical", "same_words", "near")
"""How two documents are alike: the same text; the same sequence of words, written differently; other words."""


def checked_frequencies(name: str, value: Any) -> Any:
    """Return document frequencies, their path, or their digest."""
    if isinstance(value, (str, os.PathLike)):
        return checks.path(name, value)
    from .frequencies import Frequencies

    return checks.instance(name, value, Frequencies, "or the path of a file that holds some")


class Method(ABC):
    """The settings and the words that joins and sketches share.

    A method is a frozen dataclass of settings that inherits `Join` or `Sketch`.
    """

    name: ClassVar[str]
    """The name in recipes and on the command line. Recipes are read back by it, so `METHODS` has to list it."""

    usual_threshold: ClassVar[float | None] = 0.8
    """The threshold unless one is given; None if candidates need not be verified."""

    refused: ClassVar[Mapping[str, str]] = {}
    """Why the method lacks settings that other methods have, by their names."""

    tells_pairs: ClassVar[bool] = False
    """Whether result tables have columns that `Sketch.pair_columns` makes."""

    estimates: ClassVar[str | None] = None
    """The quantity that sketches estimate, in one word; None if there are no sketches."""

    elements: str = "shingles"
    """The elements that the method compares or sketches: "tokens" or "shingles"."""

    direction: str = "in"
    """Which document of a pair with a reference document has to contain the other; see `Containment`."""

    @property
    def equal_by(self) -> tuple[str, ...] | None:
        """Return the columns whose values make documents equal, if only equal ones are found; () for the bytes of text.

        None if documents of the same words count as one, and others may be near-duplicates.
        """
        return None

    @property
    def kinds(self) -> tuple[str, str, str]:
        """The words for how two documents are alike: the same text; the same words or key; otherwise."""
        return KINDS

    @property
    def measure(self) -> Measure:
        """The value that verified pairs have: their resemblance, unless overridden."""
        return RESEMBLANCE

    @property
    def sorts_elements(self) -> bool:
        """Whether the elements of each document are sorted, which takes as much memory as bags take."""
        return True

    @property
    @abstractmethod
    def device_bytes(self) -> int:
        """GPU memory per document, besides its text, tokens and shingles."""

    @property
    def key_columns(self) -> int:
        """Columns of the keys; 0 if they have one dimension, or if there are none."""
        return 0

    @property
    def needs_statistics(self) -> bool:
        """Whether the method needs statistics of all documents before it can sketch one."""
        return False

    def settled(self, threshold: float | None) -> Self:
        """Return the method with everything decided that depends on the threshold.

        Raises
        ------
        ParameterError
            If it needs a threshold, or cannot reach the one given.
        """
        if threshold is None and self.usual_threshold is not None:
            raise ParameterError(
                f"threshold: method {self.name} needs one, as it verifies pairs; {self.usual_threshold} is usual"
            )
        return self

    def with_(self, **changes: Any) -> Self:
        """Return a copy with some settings changed."""
        return replace(cast(Any, self), **changes)

    def describe(self) -> dict[str, Any]:
        """Return all settings as plain values."""
        settings = {each.name: getattr(self, each.name) for each in fields(cast(Any, self))}
        return {name: getattr(value, "digest", value) for name, value in settings.items()}

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        """Return the method that `describe` described."""
        return cls(**settings)

    def with_statistics(self, given: Any, seed: int) -> tuple[Self, Frequencies | None]:
        """Return the method that uses the given statistics (an object or a path), and the statistics.

        Raises
        ------
        ParameterError, RecipeMismatchError
            If it takes no statistics, needs others, or names some that were not given.
        """
        if given is not None:
            raise ParameterError("frequencies: only the weighting 'tfidf' takes them; leave them out")
        return self, None

    @abstractmethod
    def expected_recall(self, threshold: float | None) -> float | None:
        """Return the least share of the pairs exactly at the threshold that become candidates; None if unknown."""

    @abstractmethod
    def in_words(self, threshold: float | None) -> tuple[str, str]:
        """Return the label and the sentence that describe the candidates in a report."""

    def finder(self, recipe: Recipe, keeps: Keeps) -> Finder:
        """Return the finder of candidates in an index. Only methods that override this have indexes.

        Parameters
        ----------
        recipe : Recipe
            The index's, whose method this is.
        keeps : Keeps
            What the index stores.

        Raises
        ------
        ParameterError
            If an index cannot store what these settings need.
        """
        raise NotImplementedError


class Join(Method):
    """A method that compares the shingles of documents and misses no pair at the threshold. It keeps no sketches.

    Pairs come from the prefix filter (`kernels/prefixes.py`) under the method's `measure`, a `measures.JoinMeasure`. A
    join defines `name`, and overrides what differs from resemblance.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from neardup_gpu import dedup
    >>> from neardup_gpu.stages import Join
    >>> @dataclass(frozen=True)
    ... class Strict(Join):
    ...     name = "strict"
    ...     usual_threshold = 1.0
    >>> dedup({"text": ["to be or not to be", "To be, or not to be", "the question"]}, method=Strict()).removed.num_rows
    1
    """

    @property
    def sorts_elements(self) -> bool:
        """Whether elements are sorted while documents are read: to know sizes, by a directed measure."""
        return self.measure.directed

    @property
    def device_bytes(self) -> int:
        """GPU memory per document while it is read, besides its text, tokens and shingles."""
        return 16

    def expected_recall(self, threshold: float | None) -> float | None:
        """Return the share of the pairs at the threshold that become candidates: all."""
        return None if threshold is None else 1.0

    def in_words(self, threshold: float | None) -> tuple[str, str]:
        """Return the label and the sentence that describe the candidates in a report."""
        return "recall", f"100% (exact): every pair at {self.measure.name} {threshold} or above counts"


class Sketch(Method):
    """A method that summarises each document, and proposes pairs of documents whose summaries collide.

    A sketch represents a document in files: a row of an array or, if sketches differ in length, of a Ragged. Collisions
    compare its keys, which have one length and are kept in memory for every document, so they are small. `seed` is the
    recipe's.

    A sketch overrides all that is abstract here. `pair_columns`, `postings` with `sampled`, `merge`, `stream` and
    `finder` are abilities that only some methods have: one that lacks an ability does not override it, and is refused
    where the ability is needed.

    Examples
    --------
    >>> from neardup_gpu.stages import METHODS, Sketch
    >>> issubclass(METHODS["modm"], Sketch), issubclass(METHODS["exact"], Sketch)
    (True, False)
    """

    estimates: ClassVar[str | None] = "resemblance"
    """Name of the estimated quantity: "resemblance" or "cosine"."""

    bucket_limit: int
    """The first `bucket_limit` documents of a bucket, by priority, are compared all with all."""

    bucket_probe: int
    """Each later document of a bucket is compared with the first `bucket_probe`."""

    def _present(self, present: Any, number: int) -> Any:
        """Return which documents are present, as an array; all of them if None."""
        every = np.ones(number, bool) if present is None else present
        return checks.array("present", every, bool, (number,), hint="one for each document")

    def _checked_keys(self, keys: Any, made_by: str = "keys") -> Any:
        """Return keys, checked; `made_by` is the name of the method that returns them."""
        if hasattr(keys, "shape"):
            launch.check_rows(max(keys.shape[:1], default=0), "documents")  # first, as what follows may copy them
        shape = (None, self.key_columns) if self.key_columns else (None,)
        return checks.array("keys", keys, np.uint64, shape, hint=f"as {type(self).__name__}.{made_by} gives")

    def _checked_limits(self) -> dict[str, int]:
        """Return the limits of buckets, checked."""
        least = {"bucket_limit": 2, "bucket_probe": 1}
        return {name: checks.integer(name, getattr(self, name), low, 2**31 - 1) for name, low in least.items()}

    @property
    def label(self) -> str:
        """The name in the legend of a curve of `expected_recall`."""
        return f"{self.name} (at least)"

    @abstractmethod
    def sketching(self) -> dict[str, Any]:
        """Return the settings that sketches depend on. Sketches of methods that agree in them can be compared."""

    def first_pass(self, runtime: Any, folder: Any) -> FirstPass:
        """Return the buffer for a first pass over all documents; only if `needs_statistics`."""
        raise NotImplementedError

    @abstractmethod
    def sketch(self, elements: Ragged, *, seed: int, statistics: Any = None, backend: Backend | None = None) -> Any:
        """Summarise each row of elements: return an array with a row for each, or a Ragged."""

    def stored(self, sketches: Any, *, seed: int = 1, backend: Backend | None = None) -> Any:
        """Return what a file stores of sketches, and `estimate` takes: the sketches, unless overridden."""
        return sketches

    @abstractmethod
    def keys(self, sketches: Any, *, seed: int, backend: Backend | None = None) -> Any:
        """Return what collisions compare: uint64, shape (rows,) or (rows, key_columns)."""

    def keys_apart(self, keys: Any, words: Any) -> Any:
        """Return keys that agree only in documents of one group; see `conditions.py`.

        Parameters
        ----------
        keys : array of uint64, shape (rows,) or (rows, key_columns)
            What `keys` returns.
        words : array of uint64, shape (rows,)
            The word of each document's group.
        """
        return keys ^ (words if keys.ndim == 1 else words[:, None])

    def permuted(self, seed: int) -> tuple[Any, ...] | None:
        """Return what the kernel `one_text` takes if it makes sketches and keys; None if it does not."""
        return None

    def tasks(self) -> Sequence[int]:
        """Return the numbers of the independent tasks that together find all collisions: one, unless overridden."""
        return range(1)

    @abstractmethod
    def collide(
        self,
        keys: Any,
        *,
        seed: int,
        present: Any = None,
        tasks: Sequence[int] | None = None,
        backend: Backend | None = None,
    ) -> Candidates:
        """Find the candidates, by all tasks or by some. Rows are in priority order, the best first."""

    @abstractmethod
    def buckets(self, num_rows: int) -> Buckets:
        """Return the tables in which the `entries` of `num_rows` rows collide, as `collide` says."""

    @abstractmethod
    def entries(self, keys: Any, num_rows: int, *, seed: int) -> Iterator[Entries]:
        """Yield the entries of some of `num_rows` rows, table by table; a table may come in several parts."""

    def accidents(self, num_rows: int) -> float:
        """Return how many pairs are expected to be candidates by accident of short fingerprints alone."""
        return 0.0

    @abstractmethod
    def are_candidates(self, keys: Any, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return whether pairs of rows would be candidates if no bucket were limited: bool, shape (pairs,)."""

    def likeness(self, keys: np.ndarray, left: Any, right: Any) -> np.ndarray:
        """Return how alike the keys of pairs are, from 0 to 1; only if `usual_threshold` is None."""
        raise NotImplementedError

    def pair_columns(self, keys: np.ndarray, left: np.ndarray, right: np.ndarray) -> dict[str, np.ndarray]:
        """Return the columns that tables have for pairs of rows besides resemblance, if `tells_pairs`."""
        return {}

    def estimate(self, sketches: Any, pairs: Pairs) -> Estimate:
        """Estimate what `estimates` names, for pairs of rows of what is `stored`.

        Raises
        ------
        ParameterError, ArgumentTypeError
            If `pairs` are not Pairs of rows of the sketches.
        """
        pairs = data.pairs_within("pairs", pairs, len(sketches))
        return Estimate(pairs, *self.estimate_rows(sketches, pairs.left, pairs.right))

    @abstractmethod
    def estimate_rows(self, sketches: Any, left: np.ndarray, right: np.ndarray) -> RowEstimates:
        """Estimate like `estimate`, for rows in any order."""

    def postings(self, sketches: Any) -> Ragged:
        """Return the elements of each sketch, by which containment is found."""
        raise NotImplementedError

    def sampled(self, sketches: Any, left: np.ndarray, right: np.ndarray) -> SampledCounts:
        """Count the elements that each pair of sketches samples together."""
        raise NotImplementedError

    def merge(self, sketches: Sequence[Any]) -> Any:
        """Return the sketch of the union of what each row's sketches are of."""
        raise NotImplementedError

    def stream(self, threshold: float, commonest: bool) -> Stream:
        """Return what puts sketches into greedy clusters; see `Clusters`."""
        raise NotImplementedError

    @abstractmethod
    def schema(self) -> dict[str, pa.DataType]:
        """Return the method's own columns of a sketch file, by name."""

    @abstractmethod
    def to_columns(self, sketches: Any, keys: np.ndarray) -> dict[str, Any]:
        """Return the arrays of some columns, or Ragged ones, a row per document, from what is `stored`."""

    @abstractmethod
    def from_columns(self, columns: Mapping[str, Any]) -> tuple[Any, np.ndarray]:
        """Return what was `stored`, and the keys, from the columns that `to_columns` made."""


class WeighingSketch(Sketch):
    """A sketch of elements with weights, for which document frequencies may have to be known."""

    weighting: str
    frequencies: Any

    @property
    def needs_statistics(self) -> bool:
        """Whether the method needs document frequencies before it can sketch a document."""
        return self.weighting == "tfidf"

    def with_statistics(self, given: Any, seed: int) -> tuple[Self, Frequencies | None]:
        """Return the method that uses these document frequencies (an object or a path), and the frequencies."""
        from .weighting import with_frequencies

        return with_frequencies(self, given, seed)

    def first_pass(self, runtime: Any, folder: Any) -> FrequencyPass:
        """Return the buffer for a first pass over all documents, which counts document frequencies."""
        from .frequencies import FrequencyPass

        return FrequencyPass(folder, runtime)

    def _check_frequencies(self) -> None:
        """Raise ParameterError for document frequencies that the weighting does not use."""
        if not self.needs_statistics and self.frequencies is not None:
            raise ParameterError(
                f"weighting {self.weighting!r} takes no document frequencies; 'tfidf' does", parameter="frequencies"
            )


@cache
def share_intervals(number: int) -> np.ndarray:
    """Return the 99% interval of the mean of `number` trials for each count of successes: rows of (low, high)."""
    return np.array([theory.mean_interval(count / number, number, 0.01) for count in range(number + 1)])
