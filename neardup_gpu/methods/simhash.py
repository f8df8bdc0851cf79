"""Simhash: angles between weighted vectors of tokens or shingles, and tables of permuted bits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from .. import checks
from ..errors import ParameterError
from ..records import dataclass
from ..settings import setting
from ._modules import choice, data, kernels, launch, np, pa
from .contract import Buckets, Candidates, Entries, RowEstimates, WeighingSketch, checked_frequencies, share_intervals

if TYPE_CHECKING:
    from ..data import Ragged
    from ..engine.contract import Backend
    from ..recipe import Recipe
    from .finding.contract import Finder
    from .finding.keeps import Keeps
    from .frequencies import Frequencies

Elements = Literal["tokens", "shingles"]
ELEMENTS = get_args(Elements)
Weighting = Literal["tf", "log", "tfidf"]
WEIGHTINGS = get_args(Weighting)


@dataclass(frozen=True, kw_only=True)
class SimHash(WeighingSketch):
    """Candidates are pairs whose simhashes differ in at most `radius` bits.

    Parameters
    ----------
    radius : int from 0 to 32, default 3
        Bits in which simhashes of near documents may differ.
    bits : 64 or 128, default 64
        Length of a simhash.
    elements : "tokens" or "shingles", default "tokens"
        What a document is a weighted set of.
    weighting : "tf", "log" or "tfidf", default "log"
        Weight of an element that a document has tf times, and that df of N documents have.

        - "tf": tf.
        - "log": 1 + log2 tf, which is right most often at radius 3 (docs/concepts/simhash.md).
        - "tfidf", for tokens only: tf (1 + log2((N + 1) / (df + 1))). By min-hash "tfidf" has 1 + log2 tf in place of
          tf.
    frequencies : Frequencies or path, default None
        The document frequencies that "tfidf" weighs by, or a file that an earlier run wrote. If None, they are counted
        in the documents and in the reference set. The recipe of a result holds their digest, 32 hexadecimal digits.
    bucket_limit : int, default 512
        In a bucket of a table, the first `bucket_limit` simhashes by priority are compared all with all.
    bucket_probe : int, default 32
        Each later simhash of the bucket is compared with the first `bucket_probe`.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If a value is out of its range or of another type.

    Examples
    --------
    >>> SimHash(radius=4, elements="shingles").sketching()
    {'bits': 64, 'elements': 'shingles', 'weighting': 'log', 'frequencies': None}
    """

    radius: int = setting(3, "Bits in which simhashes of near documents may differ.", metavar="K")
    bits: Literal[64, 128] = setting(64, "Bits of a simhash: 64 or 128.", metavar="L")
    elements: Elements = setting(
        "tokens", "The elements that a simhash summarises: tokens or shingles.", metavar="WHAT"
    )
    weighting: Weighting = setting("log", "How elements are weighted: tf, log or tfidf.", metavar="HOW")
    frequencies: Any = setting(
        None, "Document frequencies for tfidf, from an earlier run.", metavar="FILE", shown="counted"
    )
    bucket_limit: int = setting(512, "The first N documents of a bucket are compared all with all.", metavar="N")
    bucket_probe: int = setting(32, "Later documents of a bucket are compared with its first N.", metavar="N")

    name: ClassVar[str] = "simhash"
    tells_pairs: ClassVar[bool] = True
    estimates: ClassVar[str | None] = "cosine"
    usual_threshold: ClassVar[float | None] = None

    def __post_init__(self) -> None:
        plain: dict[str, Any] = {
            "radius": checks.integer("radius", self.radius, 0, 32, "3 is usual for 64 bits"),
            "bits": checks.one_of("bits", self.bits, (64, 128)),
            "elements": checks.one_of("elements", self.elements, ELEMENTS),
            "weighting": checks.one_of("weighting", self.weighting, WEIGHTINGS),
            "frequencies": checks.optional(checked_frequencies, "frequencies", self.frequencies),
            **self._checked_limits(),
        }
        vars(self).update(plain)
        if self.weighting == "tfidf" and self.elements != "tokens":
            raise ParameterError("weighting 'tfidf' is for tokens; of shingles take 'tf' or 'log'")
        self._check_frequencies()

    @property
    def key_columns(self) -> int:
        """Columns of the keys; 0 where they have one dimension."""
        return 0 if self.bits == 64 else 2

    @property
    def device_bytes(self) -> int:
        """Return the GPU memory per document that sketching needs, besides its text, tokens and shingles."""
        return 8 * self.bits + 40

    @property
    def sorts_elements(self) -> bool:
        """Whether sketching sorts the elements of each document, which takes as much memory as bags take."""
        return self.weighting != "tf"

    def sketching(self) -> dict[str, Any]:
        """The settings that sketches depend on: sketches of methods that agree in them can be compared."""
        return {name: getattr(self, name) for name in ("bits", "elements", "weighting", "frequencies")}

    def sketch(
        self,
        elements: Ragged,
        *,
        seed: int = 1,
        statistics: Frequencies | None = None,
        backend: Backend | None = None,
    ) -> Any:
        """Summarise each document's weighted elements by `bits` bits, which are alike where documents are alike.

        Two documents whose weights are vectors at an angle a differ in each bit with probability close to a / pi.

        Parameters
        ----------
        elements : Ragged of uint64
            Tokens or shingles, as `elements` says, with repeats.
        seed : int in [0, 2**64), default 1
            The recipe's. Only the check of `statistics` depends on it.
        statistics : Frequencies, default None
            For the weighting "tfidf".
        backend : "reference", "cpu" or "gpu", default None
            Where to run; on a GPU if there is one, unless given.

        Returns
        -------
        array of uint64, shape (documents,) for 64 bits, (documents, 2) for 128
            0 for documents without elements, as for others by chance. Cost: linear. Source: Manku, Jain and Das Sarma
            2007, section 2.

        Raises
        ------
        ParameterError, ArgumentTypeError, RecipeMismatchError
            If an argument is not as described above, if the weighting needs frequencies that are not given, the recipe
            names others, or the weighting takes none.

        Examples
        --------
        >>> import numpy as np
        >>> from neardup_gpu.stages import Ragged
        >>> elements = Ragged.from_rows([[7], [7, 7, 7, 4], []], np.uint64)
        >>> one, other, none = SimHash(weighting="tf").sketch(elements)
        >>> bool(one == other), int(none)  # 7 outweighs 4 in every bit
        (True, 0)
        """
        from .frequencies import counted

        elements = data.as_ragged("elements", elements, np.uint64)
        _, found = self.with_statistics(statistics, checks.seed(seed))
        if self.weighting == "tf":
            return choice.kernel(kernels.simhash, backend)(elements.values, elements.offsets, None, self.bits)
        return self.sketch_counted(*counted(elements, backend), found, backend=backend)

    def sketch_counted(
        self,
        distinct: Ragged,
        counts: Any,
        frequencies: Frequencies | None,
        *,
        seed: int = 1,
        backend: Backend | None,
    ) -> Any:
        """Sketch documents, given by their distinct elements, each with its count.

        Parameters
        ----------
        distinct : Ragged of uint64
            Distinct elements of each document.
        counts : array of int64, shape (elements,)
            How often the document has each.
        frequencies : Frequencies or None
            For the weighting "tfidf".
        seed : int in [0, 2**64), default 1
            The recipe's. Nothing here depends on it.
        backend : "reference", "cpu", "gpu" or None
            Where to run; on a GPU if there is one, if None.

        Returns
        -------
        array of uint64, shape (documents,) or (documents, 2)
            What `sketch` gives.

        Raises
        ------
        ParameterError
            If the weighting needs frequencies that are not given.

        Examples
        --------
        >>> import numpy as np
        >>> from neardup_gpu.stages import Ragged
        >>> distinct, counts = Ragged.from_rows([[7]], np.uint64), np.array([2])
        >>> simhash = SimHash().sketch_counted(distinct, counts, None, backend="cpu")
        >>> bool(simhash == SimHash().sketch(Ragged.from_rows([[7, 7]], np.uint64)))
        True
        """
        if self.weighting == "log":
            found = choice.kernel(kernels.log_weights, backend)(counts)
        elif frequencies is None:
            raise ParameterError("frequencies: the weighting 'tfidf' needs them; see Frequencies")
        else:
            found = counts * frequencies.weigh(distinct.values, backend=backend)
        return choice.kernel(kernels.simhash, backend)(distinct.values, distinct.offsets, found, self.bits)

    def sketch_weights(self, features: Ragged, weights: Any, *, seed: int = 1, backend: Backend | None = None) -> Any:
        """Sketch documents whose features have weights of any origin; the method's own weighting has no part in it.

        Two documents whose weights are vectors at an angle a differ in each bit with probability close to a / pi.

        Parameters
        ----------
        features : Ragged of uint64
            Features of each document, each once: numbers of your own, such as hashes of names. They need not be mixed.
        weights : array of int64, shape (features,)
            The weight of each, at least 0; of a document at most 2**48 together. Multiply fractions before you round
            them.
        seed : int in [0, 2**64), default 1
            The recipe's. Nothing here depends on it.
        backend : "reference", "cpu" or "gpu", default None
            Where to run; on a GPU if there is one, unless given.

        Returns
        -------
        array of uint64, shape (documents,) for 64 bits, (documents, 2) for 128
            What `sketch` gives. Cost: 64 additions per feature.

        Raises
        ------
        ParameterError, ArgumentTypeError
            If an argument is not as described above.

        Examples
        --------
        >>> import numpy as np
        >>> from neardup_gpu.stages import Ragged
        >>> features = Ragged.from_rows([[7, 4], [7]], np.uint64)
        >>> one, other = SimHash().sketch_weights(features, [3, 1, 5])
        >>> bool(one == other)  # 7 outweighs 4 in every bit
        True
        """
        from .weighting import checked_weights

        features = data.as_ragged("features", features, np.uint64)
        checks.seed(seed)
        found = checked_weights(weights, features)
        return choice.kernel(kernels.simhash, backend)(features.values, features.offsets, found, self.bits)

    def keys(self, sketches: Any, *, seed: int = 1, backend: Backend | None = None) -> Any:
        """The simhashes themselves, which collisions compare.

        Parameters
        ----------
        sketches : array of uint64, shape (documents,) or (documents, 2)
            What `sketch` gives.
        seed : int in [0, 2**64), default 1
            The recipe's.
        backend : "reference", "cpu" or "gpu", default None
            Where to run; on a GPU if there is one, unless given.

        Returns
        -------
        array of uint64, shape (documents,) or (documents, 2)
            The same array.

        Examples
        --------
        >>> import numpy as np
        >>> SimHash().keys(np.array([7, 5], np.uint64))
        array([7, 5], dtype=uint64)
        """
        return sketches

    def collide(
        self,
        keys: Any,
        *,
        seed: int = 1,
        present: Any = None,
        tasks: Sequence[int] | None = None,
        backend: Backend | None = None,
    ) -> Candidates:
        """Find all pairs of simhashes within the radius, by tables of permuted bits.

        Parameters
        ----------
        keys : array of uint64, shape (documents,) or (documents, 2)
            What `sketch` gives; rows in priority order, the best first: later rows of a large bucket are compared with
            its first alone.
        seed : int in [0, 2**64), default 1
            The recipe's. Nothing here depends on it.
        present : array of bool, shape (documents,), default None
            False for documents without elements, which are nobody's candidates. All, unless given.
        tasks : range, default None
            There is one task.
        backend : "reference", "cpu" or "gpu", default None
            Where to run; on a GPU if there is one, unless given.

        Returns
        -------
        Candidates
            Cost and source: see `hamming.pairs`.

        Raises
        ------
        ParameterError, ArgumentTypeError
            If an argument is not as described above.
        ResourceError
            If there are more rows than tables can hold.

        Examples
        --------
        >>> import numpy as np
        >>> found = SimHash(radius=1).collide(np.array([0b0111, 2**40, 0b0101], np.uint64))
        >>> found.pairs.left, found.pairs.right
        (array([0]), array([2]))
        """
        from .table_design import settled

        checks.seed(seed)
        keys = self._checked_keys(keys, "sketch")
        present = self._present(present, len(keys))
        placed = launch.on_device if choice.resolve(backend) == "gpu" else choice.to_host
        keys, present = placed(keys), placed(present)
        xp = launch.array_module(keys)
        rows, crowded = xp.flatnonzero(present), xp.zeros(len(keys), bool)
        keys = keys[rows]
        design, limits = settled(keys, self.radius, None, (self.bucket_limit, self.bucket_probe))
        run = choice.kernel(kernels.hamming, backend)
        left, right, _, large, uncompared, among = run(keys, design.array, self.radius, *limits)
        crowded[rows] = among
        left, right = rows[placed(left)], rows[placed(right)]
        return Candidates(data.Pairs._trusted(left, right), int(large), int(uncompared), crowded)

    def buckets(self, num_rows: int) -> Buckets:
        """The tables of permuted bits that are the cheapest for this number of rows: a bucket is rows of one prefix.

        Parameters
        ----------
        num_rows : int
            Rows of all entries together.

        Returns
        -------
        Buckets
            Those of `collide`. Of random simhashes no bucket outgrows `bucket_limit`: see `hamming.TableDesign`.

        Raises
        ------
        ParameterError
            If it would take too many tables.

        Examples
        --------
        >>> [len(SimHash(radius=3).buckets(10**power).masks) for power in (4, 6, 8)]
        [4, 4, 10]
        """
        from .table_design import design_for, limits_of

        design = design_for(num_rows, self.bits, self.radius, self.bucket_limit)
        return Buckets(design.array, self.radius, *limits_of(design, self.bucket_limit, self.bucket_probe))

    def entries(self, keys: Any, num_rows: int, *, seed: int = 1) -> Iterator[Entries]:
        """The simhash of each row, once for each table.

        Parameters
        ----------
        keys : array of uint64, shape (rows,) or (rows, 2)
            What `sketch` gives, of some of the rows.
        num_rows : int
            Rows of all entries together.
        seed : int in [0, 2**64), default 1
            The recipe's. Nothing here depends on it.

        Yields
        ------
        Entries
            Of one table after another, an entry for each row.

        Raises
        ------
        ParameterError, ArgumentTypeError
            If an argument is not as described above.

        Examples
        --------
        >>> import numpy as np
        >>> keys = np.array([7, 5], np.uint64)
        >>> [found.values.tolist() for found in SimHash(radius=1).entries(keys, 1_000_000)]
        [[7, 5], [7, 5]]
        """
        checks.seed(seed)
        keys = self._checked_keys(choice.to_host(keys), "sketch")
        rows = np.arange(len(keys))
        for table in range(len(self.buckets(num_rows).masks)):
            yield Entries(table, keys, rows)

    def are_candidates(self, keys: Any, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Whether pairs of rows would be candidates if no bucket were limited: bool, shape (pairs,)."""
        return distances(keys, left, right) <= self.radius

    def likeness(self, keys: np.ndarray, left: Any, right: Any) -> np.ndarray:
        """The share of equal bits: the nearer of two simhashes is the one that resembles a document more."""
        return 1 - distances(keys, left, right) / self.bits

    def pair_columns(self, keys: np.ndarray, left: np.ndarray, right: np.ndarray) -> dict[str, np.ndarray]:
        """The column `distance`: the number of bits in which the simhashes of each pair differ."""
        return {"distance": distances(keys, left, right)}

    def estimate_rows(self, sketches: Any, left: np.ndarray, right: np.ndarray) -> RowEstimates:
        """Estimate the cosine of the angle between the weights of each pair, as cos(pi d / bits) for d different bits.

        Bits are taken for independent trials, and the interval is that of their mean (Charikar 2002, section 3). It is
        the 99% interval of a pair that was chosen without a look at its simhashes. Of pairs that are chosen because
        their simhashes are near, fewer intervals hold the cosine: docs/concepts/simhash.md has measured shares.
        """
        bounds, apart = share_intervals(self.bits), distances(sketches, left, right).astype(np.int64)
        angle = np.pi * np.column_stack([apart / self.bits, bounds[apart, 1], bounds[apart, 0]])
        return RowEstimates(*np.cos(angle).T.copy())

    def finder(self, recipe: Recipe, keeps: Keeps) -> Finder:
        """Return the finder that looks bits up in sorted tables."""
        from .finding.simhash import ByBits

        if self.needs_statistics:
            raise ParameterError("weighting 'tfidf': an index cannot count all documents first; take 'tf' or 'log'")
        return ByBits(recipe, keeps)

    def expected_recall(self, threshold: float | None) -> float | None:
        """None: theory does not say which share of the pairs at a threshold become candidates."""
        return None

    def in_words(self, threshold: float | None) -> tuple[str, str]:
        """The label and the sentence that describe the candidates in a report."""
        verified = "" if threshold is None else f", verified at resemblance {threshold}"
        return "radius", f"{self.radius} of {self.bits} bits ({self.elements}, {self.weighting}){verified}"

    def schema(self) -> dict[str, pa.DataType]:
        """Return the method's own column of a sketch file, simhash: uint64, or two of them for 128 bits."""
        return {"simhash": pa.uint64() if self.bits == 64 else pa.list_(pa.uint64(), 2)}

    def to_columns(self, sketches: np.ndarray, keys: np.ndarray) -> dict[str, np.ndarray]:
        """The arrays of some columns, a row for each document."""
        return {"simhash": sketches}

    def from_columns(self, columns: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """The sketches and keys that `to_columns` made into columns."""
        return columns["simhash"], columns["simhash"]


def distances(simhashes: Any, left: Any, right: Any) -> np.ndarray:
    """Return the number of bits in which the simhashes of each pair differ: uint8, shape (pairs,), in host memory."""
    simhashes, left, right = map(choice.to_host, (simhashes, left, right))
    bits = np.bitwise_count(simhashes[left] ^ simhashes[right])
    return bits if simhashes.ndim == 1 else bits.sum(axis=1, dtype=np.uint8)
