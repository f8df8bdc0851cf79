"""Min-hash: resemblance by linear permutations, supershingles, and pair tables under a filter [k, s, r].

Samples may be drawn faster than by permutations (`sampler`), and be stored by a few bits each (`sample_bits`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self, get_args

from .. import checks, theory
from ..definitions import draw, one_draw, polynomial
from ..errors import ParameterError
from ..records import dataclass
from ..report import percent
from ..settings import setting
from . import _bbit
from ._modules import arrays, choice, data, kernels, np, pa
from .contract import Buckets, Candidates, Entries, RowEstimates, WeighingSketch, checked_frequencies, share_intervals
from .measures import RESEMBLANCE, Measure, Weighted

if TYPE_CHECKING:
    from ..data import Ragged
    from ..engine.contract import Backend
    from ..recipe import Recipe
    from .finding.contract import Finder
    from .finding.keeps import Keeps
    from .frequencies import Frequencies

Weighting = Literal["none", "tf", "log", "tfidf"]
WEIGHTINGS = get_args(Weighting)

MOST_SAMPLES = 100_000
"""Most samples of a signature: one takes 400 kB then, and more would be a mistake."""

MOST_FAST_SAMPLES = 1 << 16
"""Most samples of a signature by the sampler "fast": its values have no room for more rounds."""

Sampler = Literal["permutations", "fast"]
SAMPLERS = get_args(Sampler)
CandidateKind = Literal["supershingles", "segments"]
CANDIDATES = get_args(CandidateKind)

FEATURES = {64: "uint64", 16: "uint16", 6: "uint8"}
"""The types that sketch files have for supershingles of some bits."""

SHORT = {"bing": 16, "files": 6}
"""The bits of a supershingle by filters that say it."""

MOST_TABLES = 5000
"""Pair tables of a filter: each sorts all documents."""


class Filter(NamedTuple):
    """[k, s, r]: two documents are candidates when at least r of their k supershingles of s samples each agree.

    Parameters
    ----------
    k : int
        Supershingles of a document.
    s : int
        Samples of a supershingle.
    r : int
        Supershingles that have to agree.

    Examples
    --------
    >>> Filter(6, 14, 2).samples, Filter(6, 14, 2).tables
    (84, 15)
    """

    k: int
    s: int
    r: int

    @property
    def samples(self) -> int:
        """Min-hash samples that the filter needs: k s."""
        return self.k * self.s

    @property
    def tables(self) -> int:
        """Pair tables: one for each r-subset of the k supershingles."""
        return math.comb(self.k, self.r)

    def __str__(self) -> str:
        return f"{self.k},{self.s},{self.r}"


@dataclass(frozen=True, kw_only=True)
class MinHash(WeighingSketch):
    """Candidates are pairs that share at least r of k supershingles of s min-hash samples each.

    Parameters
    ----------
    filter : str or tuple, default None
        [k, s, r] by name ("altavista", "bands", "bing", "files"), as "20,7,1" or as a tuple. If neither this nor k and
        s are given, it is chosen for the recipe's threshold.
    k : int, default None
        Supershingles of a document, given with `s` instead of `filter`.
    s : int, default None
        Samples of a supershingle, given with `k` instead of `filter`.
    r : int, default None
        Supershingles that have to agree; 1 unless given.
    recall : float in (0, 1), default None
        Share of the pairs at the threshold to find, where the filter is chosen; 0.99 unless given.
    bits : 32 or 64, default None
        Length of a min-hash sample. Unless given, 32 by permutations and 64 by the sampler "fast", which has no other.
    supershingle_bits : 64, 16 or 6, default None
        Length of a supershingle. Unless given, 16 by the filter "bing" (Manasse 6.1), 6 by "files" (Manasse 6.2), which
        is for chunks, else 64.
    sampler : "permutations" or "fast", default "permutations"
        How samples are drawn. "fast" takes about n + t ln t steps for t samples of n shingles, where permutations take
        n t: with 140 samples it is faster above some 350 shingles and much slower below (kernels/fast.py). Its
        estimates err less; what share of pairs a filter passes is measured, not known.
    sample_bits : 1, 2, 4 or 8, default None
        Bits that a sketch file keeps of each sample, packed in words, in place of the signature; all, unless given.
        `papers.bbit_error` is what an estimate costs.
    candidates : "supershingles" or "segments", default "supershingles"
        Candidates share r of k supershingles of s samples, or r of k segments of s one-bit samples. These are cut from
        the packed bits, so that a sketch file has no other keys; more unrelated pairs share them. The bits that made a
        pair a candidate count in its estimate too: pairs that share segments by accident read higher than they are.
    weighting : "none", "tf", "log" or "tfidf", default "none"
        Weight of a shingle that a document has tf times, and that df of N documents have. With weights the resemblance
        of two documents is the sum of the smaller weights of each shingle over the sum of the larger ones; samples have
        it, and pairs are verified by it.

        - "none": documents are sets.
        - "tf": tf.
        - "log": 1 + log2 tf.
        - "tfidf": (1 + log2 tf) (1 + log2((N + 1) / (df + 1))), rounded down to 256ths.
    frequencies : Frequencies or path, default None
        The document frequencies that "tfidf" weighs by, or a file that an earlier run wrote. If None, they are counted
        in the documents and in the reference set. The recipe of a result holds their digest, 32 hexadecimal digits.
    bucket_limit : int, default 64
        In a bucket of a pair table, the first `bucket_limit` documents by priority are compared all with all.
    bucket_probe : int, default 16
        Each later document of the bucket is compared with the first `bucket_probe`.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If a value is out of its range or of another type.

    Examples
    --------
    >>> MinHash(k=20, s=7).filter
    Filter(k=20, s=7, r=1)
    >>> round(MinHash(filter="altavista").expected_recall(0.95), 3)
    0.879
    >>> MinHash(sample_bits=1, candidates="segments").settled(0.8).filter
    Filter(k=17, s=10, r=2)
    """

    filter: Any = setting(
        None,
        "R of K supershingles of S samples agree; or altavista, bands, bing or files.",
        metavar="K,S,R",
        shown="by recall",
    )
    k: int | None = setting(None, "Supershingles of a document.", flag="")
    s: int | None = setting(None, "Samples of a supershingle.", flag="")
    r: int | None = setting(None, "Supershingles that have to agree.", flag="")
    recall: float | None = setting(None, "Share of the pairs at the threshold to find.", metavar="X", shown="0.99")
    bits: Literal[32, 64] | None = setting(None, "Bits of a min-hash sample: 32 or 64.", metavar="L", shown="32")
    supershingle_bits: Literal[64, 16, 6] | None = setting(
        None, "Bits of a supershingle: 64, 16 or 6.", metavar="L", shown="64, by bing 16, by files 6"
    )
    sampler: Sampler = setting(
        "permutations", "How samples are drawn: permutations, or fast for long documents.", metavar="NAME"
    )
    sample_bits: Literal[1, 2, 4, 8] | None = setting(
        None, "Bits that a sketch file keeps of each sample: 1, 2, 4 or 8.", metavar="B", shown="all"
    )
    candidates: CandidateKind = setting(
        "supershingles",
        "By minhash, what candidates share: supershingles, or segments of one-bit samples.",
        metavar="KIND",
    )
    weighting: Weighting = setting("none", "How shingles are weighted: none, tf, log or tfidf.", metavar="HOW")
    frequencies: Any = setting(
        None, "Document frequencies for tfidf, from an earlier run.", metavar="FILE", shown="counted"
    )
    bucket_limit: int = setting(64, "The first N documents of a bucket are compared all with all.", metavar="N")
    bucket_probe: int = setting(16, "Later documents of a bucket are compared with its first N.", metavar="N")

    name: ClassVar[str] = "minhash"

    def __post_init__(self) -> None:
        length: int | None = self.supershingle_bits
        if length is None:
            short = SHORT.get(self.filter.strip().lower()) if isinstance(self.filter, str) else None
            length = short if short is not None and self.candidates == "supershingles" else 64
        sampler = checks.one_of("sampler", self.sampler, SAMPLERS)
        usual_bits = 64 if sampler == "fast" else 32
        plain: dict[str, Any] = {
            "sampler": sampler,
            "bits": checks.one_of("bits", usual_bits if self.bits is None else self.bits, (32, 64)),
            "sample_bits": checks.optional(checks.one_of, "sample_bits", self.sample_bits, _bbit.LENGTHS),
            "candidates": checks.one_of("candidates", self.candidates, CANDIDATES),
            "supershingle_bits": checks.one_of("supershingle_bits", length, (*FEATURES,)),
            "weighting": checks.one_of("weighting", self.weighting, WEIGHTINGS),
            "frequencies": checks.optional(checked_frequencies, "frequencies", self.frequencies),
            **self._checked_limits(),
        }
        if sampler == "fast" and plain["bits"] != 64:
            raise ParameterError("bits 32: samples of the sampler 'fast' have 64 bits; leave it out")
        if plain["candidates"] == "segments" and plain["sample_bits"] != 1:
            raise ParameterError("candidates 'segments' are of one-bit samples; give sample_bits=1 as well")
        if plain["candidates"] == "segments" and length != 64:
            raise ParameterError("supershingle_bits: candidates by segments have no supershingles; leave it out")
        if self.recall is not None:
            plain["recall"] = checks.fraction("recall", self.recall, zero=False, one=False, hint="0.99 is usual")
        chosen = self._given()
        if chosen is not None:
            most = MOST_FAST_SAMPLES if sampler == "fast" else MOST_SAMPLES
            if chosen.samples > most:
                raise ParameterError(
                    f"filter {chosen} needs {chosen.samples:,} samples; choose k and s with at most {most:,}"
                )
            if plain["candidates"] == "segments" and chosen.s > 64:
                raise ParameterError(f"filter {chosen}: a segment has at most 64 samples; choose a smaller s")
            if chosen.tables > MOST_TABLES:
                raise ParameterError(
                    f"filter {chosen} needs {chosen.tables:,} pair tables; choose k and r with at most {MOST_TABLES:,}"
                )
            plain |= {"filter": chosen, **chosen._asdict()}
        vars(self).update(plain)
        if sampler == "fast" and self.weighting != "none":
            raise ParameterError(
                f"sampler 'fast' and weighting {self.weighting!r}: weights have a sampler of their own"
            )
        self._check_frequencies()

    def _given(self) -> Filter | None:
        """The filter given by name, as numbers, or as k, s and r; None if none is given."""
        parts = {name: getattr(self, name) for name in ("k", "s", "r") if getattr(self, name) is not None}
        if self.filter is None and not parts:
            return None
        if self.recall is not None:
            raise ParameterError("filter and recall: the filter decides the recall; leave one of them out")
        if self.filter is None:
            if "k" not in parts or "s" not in parts:
                raise ParameterError(f"{', '.join(parts)}: a filter needs both k and s; give both, or neither")
            return Filter(*theory.check_filter(*checks.three("filter", (parts["k"], parts["s"], parts.get("r", 1)))))
        text = isinstance(self.filter, str)
        found = Filter(
            *theory.check_filter(*checks.three("filter", theory.parse_filter(self.filter) if text else self.filter))
        )
        for name, value in parts.items():
            if value != getattr(found, name):
                raise ParameterError(f"filter {found} and {name} {checks.shown(value)} disagree; leave one of them out")
        return found

    @property
    def measure(self) -> Measure:
        """The measure of verified pairs: their resemblance, as sets or with weights."""
        return RESEMBLANCE if self.weighting == "none" else Weighted(self.weighting)

    @property
    def sorts_elements(self) -> bool:
        """Whether sketching sorts the elements of each document, which takes as much memory as bags take."""
        return self.weighting != "none"

    @property
    def key_columns(self) -> int:
        """Columns of the keys; 0 where they have one dimension."""
        return self._settled().k

    @property
    def device_bytes(self) -> int:
        """GPU memory that a document needs while it is sketched, in addition to its text, tokens and shingles."""
        settled = self._settled()
        packed = 0 if self.sample_bits is None else 8 * kernels.bbit.num_words(settled.samples, self.sample_bits)
        sample = self._bits() // 8 + (0 if self.weighting == "none" else 16)  # a dart's rank and name
        return settled.samples * sample + packed + 8 * settled.k + 16

    def settled(self, threshold: float | None) -> Self:
        """The method with a filter chosen for the threshold, unless one was given."""
        super().settled(threshold)
        if threshold is None or self.filter is not None:
            return self
        recall = 0.99 if self.recall is None else self.recall
        choose = theory.choose_segments if self.candidates == "segments" else theory.choose_filter
        return replace(self, filter=choose(threshold, recall), recall=None)

    def with_(self, **changes: Any) -> Self:
        """A copy with some settings changed; a filter takes the place of k, s and r, and they of it."""
        if "filter" in changes:
            changes |= {"k": None, "s": None, "r": None}
            if isinstance(changes["filter"], str):
                changes.setdefault("supershingle_bits", None)
        elif {"k", "s", "r"} & set(changes):
            changes["filter"] = None
        elif changes.get("recall") is not None:
            changes |= {"filter": None, "k": None, "s": None, "r": None}
        if "sampler" in changes:
            changes.setdefault("bits", None)
        return replace(self, **changes)

    def describe(self) -> dict[str, Any]:
        """All settings, as plain values."""
        described = super().describe()
        unsaid = ("weighting", "frequencies") if self.weighting == "none" else ()  # as before there were weights
        for name in ("k", "s", "r", "recall", *unsaid):
            del described[name]
        return {**described, "filter": str(self.filter)}

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        """The method that `describe` described."""
        if not isinstance(settings["filter"], str) or not re.fullmatch(r"\d{1,9},\d{1,9},\d{1,9}", settings["filter"]):
            raise ValueError
        return cls(**{**settings, "filter": tuple(map(int, settings["filter"].split(",")))})

    def sketching(self) -> dict[str, Any]:
        """The settings that sketches depend on: sketches of methods that agree in them can be compared."""
        names = ("k", "s", "sampler", "bits", "sample_bits", "candidates", "supershingle_bits")
        weights = () if self.weighting == "none" else ("weighting", "frequencies")
        return {name: getattr(self, name) for name in (*names, *weights)}

    def sketch(
        self,
        elements: Ragged,
        *,
        seed: int = 1,
        statistics: Frequencies | None = None,
        backend: Backend | None = None,
    ) -> Any:
        """Summarise each shingle set by k s minima: its signature; with weights, by k s consistent samples.

        The share of equal positions in two rows estimates the resemblance r with standard error
        sqrt(r (1 - r) / samples).

        Parameters
        ----------
        elements : Ragged of uint64
            Shingles of each document.
        seed : int in [0, 2**64), default 1
            The recipe's.
        statistics : Frequencies, default None
            For the weighting "tfidf".
        backend : "reference", "cpu" or "gpu", default None
            Where to run; on a GPU if there is one, unless given.

        Returns
        -------
        array of uint32 or uint64, shape (documents, samples)
            Rows of documents without shingles hold the greatest value. Cost: shingles times samples, by permutations;
            with weights about 1,000 darts for 140 samples, and one for each shingle. Source: Broder 2000, section 2; of
            the sampler "fast" Dahlgaard, Knudsen and Thorup 2017; of weights Christiani 2020 (`kernels/dart.py`).

        Raises
        ------
        ParameterError, ArgumentTypeError, RecipeMismatchError
            If an argument is not as described above, if the weighting needs frequencies that are not given, the recipe
            names others, or the weighting takes none.

        Examples
        --------
        >>> import numpy as np
        >>> from neardup_gpu.stages import Ragged
        >>> shingles = Ragged.from_rows([[1, 2, 3], [3, 2, 1, 1]], np.uint64)
        >>> signatures = MinHash(k=2, s=3).sketch(shingles)
        >>> signatures.shape, bool((signatures[0] == signatures[1]).all())  # the same set, so the same signature
        ((2, 6), True)
        """
        elements, seed = data.as_ragged("elements", elements, np.uint64), checks.seed(seed)
        _, found = self.with_statistics(statistics, seed)
        samples = self._settled().samples
        if self.sampler == "fast":
            return choice.kernel(kernels.fast, backend)(
                elements.values, elements.offsets, one_draw(seed, "fast"), samples
            )
        if self.weighting == "none":
            drawn = permutations(seed, samples, self._bits())
            return choice.kernel(kernels.minhash, backend)(elements.values, elements.offsets, *drawn)
        from .frequencies import counted

        return self.sketch_counted(*counted(elements, backend), found, seed=seed, backend=backend)

    def sketch_counted(
        self,
        distinct: Ragged,
        counts: Any,
        frequencies: Frequencies | None,
        *,
        seed: int = 1,
        backend: Backend | None,
    ) -> Any:
        """Sketch documents, given by their distinct shingles, each with its count.

        Parameters
        ----------
        distinct : Ragged of uint64
            Distinct shingles of each document.
        counts : array of int64, shape (shingles,)
            How often the document has each.
        frequencies : Frequencies or None
            For the weighting "tfidf".
        seed : int in [0, 2**64), default 1
            The recipe's.
        backend : "reference", "cpu", "gpu" or None
            Where to run; on a GPU if there is one, if None.

        Returns
        -------
        array of uint32 or uint64, shape (documents, samples)
            What `sketch` gives.

        Raises
        ------
        ParameterError
            If the weighting needs frequencies that are not given.

        Examples
        --------
        >>> import numpy as np
        >>> from neardup_gpu.stages import Ragged
        >>> method = MinHash(k=2, s=3, weighting="log")
        >>> found = method.sketch_counted(Ragged.from_rows([[7]], np.uint64), np.array([2]), None, backend="cpu")
        >>> bool((found == method.sketch(Ragged.from_rows([[7, 7]], np.uint64))).all())
        True
        """
        from .weighting import weights_of

        weights = weights_of(self.weighting, distinct, counts, frequencies, backend)
        return self._weighted(distinct, weights, seed, backend)

    def sketch_weights(self, features: Ragged, weights: Any, *, seed: int = 1, backend: Backend | None = None) -> Any:
        """Sketch documents whose features have weights of any origin; the method's own weighting has no part in it.

        The share of equal positions in two rows estimates the sum of the smaller weights over that of the larger ones.

        Parameters
        ----------
        features : Ragged of uint64
            Features of each document, each once.
        weights : array of int64, shape (features,)
            The weight of each, at least 0, which is absence; of a document at most 2**48 together. Darts take least
            time where most weights are near 256.
        seed : int in [0, 2**64), default 1
            All random constants are drawn from it.
        backend : "reference", "cpu" or "gpu", default None
            Where to run; on a GPU if there is one, unless given.

        Returns
        -------
        array of uint32 or uint64, shape (documents, samples)
            Rows of documents without weight hold the greatest value.

        Raises
        ------
        ParameterError, ArgumentTypeError
            If an argument is not as described above.

        Examples
        --------
        >>> import numpy as np
        >>> from neardup_gpu.stages import Ragged
        >>> features = Ragged.from_rows([[1, 2], [1, 2]], np.uint64)
        >>> method = MinHash(k=1000, s=10, weighting="tf")
        >>> sketches = method.sketch_weights(features, [300, 100, 100, 100])  # (100 + 100) / (300 + 100)
        >>> round(float((sketches[0] == sketches[1]).mean()), 1)
        0.5
        """
        from .weighting import checked_weights

        features = data.as_ragged("features", features, np.uint64)
        return self._weighted(features, checked_weights(weights, features), checks.seed(seed), backend)

    def _weighted(self, features: Ragged, weights: Any, seed: int, backend: Backend | None) -> Any:
        """Samples of documents by weights that are right."""
        salt = one_draw(seed, "darts")
        found = choice.kernel(kernels.dart, backend)(
            features.values, features.offsets, weights, salt, self._settled().samples
        )
        return found if self.bits == 64 else (found >> np.uint64(32)).astype(np.uint32)

    def stored(self, sketches: Any, *, seed: int = 1, backend: Backend | None = None) -> Any:
        """The signatures themselves, or `sample_bits` bits of each sample, packed: uint64, shape (documents, words)."""
        if self.sample_bits is None:
            return sketches
        return _bbit.packed(self._signatures(sketches), checks.seed(seed), self.sample_bits, backend)

    def keys(self, sketches: Any, *, seed: int = 1, backend: Backend | None = None) -> Any:
        """Fingerprint each signature's k groups of s samples: its supershingles. Or cut its segments.

        Parameters
        ----------
        sketches : array of uint32 or uint64, shape (documents, samples)
            Signatures, as `sketch` gives them.
        seed : int in [0, 2**64), default 1
            The recipe's.
        backend : "reference", "cpu" or "gpu", default None
            Where to run; on a GPU if there is one, unless given.

        Returns
        -------
        array of uint64, shape (documents, k)
            Two documents of resemblance x share a supershingle with probability x**s, a segment with probability
            ((1 + x) / 2)**s. Source: Broder 2000, section 3; Manasse 2.4.

        Raises
        ------
        ParameterError, ArgumentTypeError
            If an argument is not as described above.

        Examples
        --------
        >>> import numpy as np
        >>> signatures = np.array([[1, 2, 3, 4], [1, 2, 3, 5]], np.uint32)
        >>> keys = MinHash(k=2, s=2).keys(signatures)
        >>> keys[0] == keys[1]  # the first two samples agree, the others do not
        array([ True, False])
        """
        k, s, _ = self._settled()
        sketches = self._signatures(sketches)
        if self.candidates == "segments":
            return _bbit.segments(self.stored(sketches, seed=seed, backend=backend), k, s)
        modulus = polynomial(checks.seed(seed), "supershingles")
        return choice.kernel(kernels.supershingles, backend)(sketches, k, s, self.supershingle_bits, modulus)

    def permuted(self, seed: int) -> tuple[Any, ...] | None:
        """Return what the kernel `one_text` takes for signatures and supershingles; None if it does not make them."""
        if self.sampler == "fast" or self.weighting != "none" or self.candidates == "segments":
            return None
        k, s, _ = self._settled()
        drawn = permutations(seed, self._settled().samples, self._bits())
        return *drawn, k, s, self.supershingle_bits, polynomial(seed, "supershingles")

    def tasks(self) -> Sequence[int]:
        """Numbers of the pair tables."""
        return range(self._settled().tables)

    def collide(
        self,
        keys: Any,
        *,
        seed: int = 1,
        present: Any = None,
        tasks: Sequence[int] | None = None,
        backend: Backend | None = None,
    ) -> Candidates:
        """Find all pairs of documents that share at least r of their k supershingles, by sorted pair tables.

        Parameters
        ----------
        keys : array of uint64, shape (documents, k)
            Supershingles, as `keys` gives them; rows in priority order, the best first: later rows of a large bucket
            are compared with its first alone.
        seed : int in [0, 2**64), default 1
            The recipe's.
        present : array of bool, shape (documents,), default None
            False for documents without shingles, which are nobody's candidates. All, unless given.
        tasks : range, default None
            Numbers of the tables to look into. All, unless given.
        backend : "reference", "cpu" or "gpu", default None
            Where to run; on a GPU if there is one, unless given.

        Returns
        -------
        Candidates
            Cost: C(k, r) sorts of (key, row). Source: Manasse 3.1, 6.1; Broder 2000, 3.

        Raises
        ------
        ParameterError, ArgumentTypeError
            If an argument is not as described above.
        ResourceError
            If there are more rows than tables can hold.

        Examples
        --------
        >>> import numpy as np
        >>> found = MinHash(k=2, s=2).collide(np.array([[10, 11], [10, 12], [13, 14]], np.uint64))
        >>> found.pairs.left, found.pairs.right
        (array([0]), array([1]))
        """
        keys = self._checked_keys(keys)
        present = self._present(present, len(keys))
        limits = self.bucket_limit, self.bucket_probe
        modulus = polynomial(checks.seed(seed), "pair keys")
        some = checks.optional(checks.instance, "tasks", tasks, range, "a part of MinHash.tasks()")
        if some is not None and (some.step != 1 or not 0 <= some.start <= some.stop <= self.filter.tables):
            raise ParameterError(f"tasks {some} is not a part of {self.tasks()}")
        some = None if some is None or len(some) == self.filter.tables else some
        run = choice.kernel(kernels.pairtables, backend)
        left, right, large, uncompared, crowded = run(keys, present, self.filter.r, modulus, *limits, some)
        accidents = self._accidents(len(keys), self.filter.tables if some is None else len(some))
        return Candidates(data.Pairs._trusted(left, right), int(large), int(uncompared), crowded, accidents)

    def buckets(self, num_rows: int) -> Buckets:
        """The pair tables: a bucket is rows of one key.

        Parameters
        ----------
        num_rows : int
            Rows of all entries together.

        Returns
        -------
        Buckets

        Raises
        ------
        ParameterError
            If no filter is chosen yet.

        Examples
        --------
        >>> MinHash(k=6, s=14, r=2).buckets(1000).masks.shape
        (15,)
        """
        masks = np.full(self._settled().tables, 2**64 - 1, np.uint64)
        return Buckets(masks, 0, self.bucket_limit, self.bucket_probe)

    def entries(self, keys: Any, num_rows: int, *, seed: int = 1) -> Iterator[Entries]:
        """The key of each row in each pair table.

        Parameters
        ----------
        keys : array of uint64, shape (rows, k)
            What `keys` gives, of some of the rows.
        num_rows : int
            Rows of all entries together.
        seed : int in [0, 2**64), default 1
            The recipe's.

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
        >>> keys = np.array([[10, 11], [10, 12]], np.uint64)
        >>> [bool(found.values[0] == found.values[1]) for found in MinHash(k=2, s=2).entries(keys, 2)]
        [True, False]
        """
        keys = self._checked_keys(choice.to_host(keys))
        modulus, rows = polynomial(checks.seed(seed), "pair keys"), np.arange(len(keys))
        tables = kernels._buckets.keys_of_tables(np.ascontiguousarray(keys), self.filter.r, modulus)
        for table in self.tasks():
            yield Entries(table, next(tables), rows)

    def accidents(self, num_rows: int) -> float:
        """Pairs of this number of rows whose short features are expected to agree by accident."""
        return self._accidents(num_rows, self._settled().tables)

    def _accidents(self, num_rows: int, tables: int) -> float:
        length = self.filter.s if self.candidates == "segments" else self.supershingle_bits
        return tables * theory.accidental_pairs(num_rows, 1, 1, min(64, self.filter.r * length))

    def are_candidates(self, keys: Any, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Whether pairs of rows would be candidates if no bucket were limited: bool, shape (pairs,)."""
        return (keys[left] == keys[right]).sum(axis=1) >= self.filter.r

    def estimate_rows(self, sketches: Any, left: np.ndarray, right: np.ndarray) -> RowEstimates:
        """The share of equal samples, and its interval by `theory.mean_interval`; of kept bits see `_bbit.estimate`.

        Samples of the sampler "fast" are no less concentrated than independent ones (kernels/fast.py).
        """
        if self.sample_bits is not None:
            return _bbit.estimate(sketches, left, right, self.sample_bits, self.filter.samples)

        left, right = arrays.same_device(sketches, left, right)
        equal = choice.to_host((sketches[left] == sketches[right]).sum(axis=1))
        bounds = share_intervals(self.filter.samples)
        return RowEstimates(equal / np.float64(self.filter.samples), bounds[equal, 0], bounds[equal, 1])

    def merge(self, sketches: Sequence[Any]) -> np.ndarray:
        """The signature of the union of what each row's signatures are of; see `neardup_gpu.sketches.merge`."""
        if self.weighting != "none":
            raise ParameterError(f"weighting {self.weighting!r}: weighted samples do not tell those of unions")
        return np.minimum.reduce([choice.to_host(self._signatures(each)) for each in sketches])

    def finder(self, recipe: Recipe, keeps: Keeps) -> Finder:
        """Return the finder that looks features up in sorted tables."""
        from .finding.minhash import ByFeatures

        if self.weighting != "none":
            raise ParameterError(f"weighting {self.weighting!r}: an index compares sets without weights; leave it out")
        return ByFeatures(recipe, keeps)

    @property
    def label(self) -> str:
        """The name in the legend of a curve."""
        return f"filter {self.filter}" + (" of one-bit samples" if self.candidates == "segments" else "")

    def expected_recall(self, threshold: float | None) -> float | None:
        """Share of pairs exactly at the threshold that become candidates: P(k, s, r) there; None by "fast"."""
        return None if threshold is None or self.sampler == "fast" else self._passed(threshold)

    def _passed(self, resemblance: float) -> float:
        """Share of pairs of some resemblance that the filter passes, where samples are independent."""
        agree = theory.bbit_share(resemblance, 1) if self.candidates == "segments" else resemblance
        return theory.pass_probability(agree, *self._settled())

    def in_words(self, threshold: float | None) -> tuple[str, str]:
        """The label and the sentence that describe the candidates in a report."""
        worth = "resemblance" if self.weighting == "none" else f"resemblance by {self.weighting} weights"
        words = f"{self.filter}: {percent(self._passed(threshold or 0.0))} of pairs at {worth} {threshold} pass"
        words += ", if samples were independent" if self.sampler == "fast" else ", by theory"
        if self.candidates == "segments":
            words += f"; so do {percent(self._passed(0.0))} of unrelated pairs"
        return "filter", words

    def schema(self) -> dict[str, pa.DataType]:
        """Return the method's own columns of a sketch file.

        document_hash: two uint64 of the whole token sequence. signature: `samples` uint32 or uint64; with
        `sample_bits`, packed: uint64 words. supershingles: k uint64 or uint16, unless candidates share segments.
        """
        k, _, _ = settled = self._settled()
        sample, columns = pa.uint32() if self.bits == 32 else pa.uint64(), {"document_hash": pa.list_(pa.uint64(), 2)}
        if self.sample_bits is None:
            columns["signature"] = pa.list_(sample, settled.samples)
        else:
            columns["packed"] = pa.list_(pa.uint64(), kernels.bbit.num_words(settled.samples, self.sample_bits))
        feature = pa.list_(pa.type_for_alias(FEATURES[self.supershingle_bits or 64]), k)
        return columns if self.candidates == "segments" else {**columns, "supershingles": feature}

    def to_columns(self, sketches: np.ndarray, keys: np.ndarray) -> dict[str, np.ndarray]:
        """The arrays of some columns, a row for each document."""
        made = {"signature" if self.sample_bits is None else "packed": sketches}
        if self.candidates == "segments":
            return made
        return {**made, "supershingles": keys.astype(FEATURES[self.supershingle_bits or 64], copy=False)}

    def from_columns(self, columns: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """The sketches and keys that `to_columns` made into columns."""
        kept = columns["signature" if self.sample_bits is None else "packed"]
        if self.candidates == "segments":
            return kept, _bbit.segments(kept, *self._settled()[:2])
        return kept, columns["supershingles"].astype("uint64", copy=False)

    def _signatures(self, sketches: Any) -> Any:
        """Signatures, checked."""
        shape, hint = (None, self._settled().samples), "as MinHash.sketch gives"
        return checks.array("sketches", sketches, f"uint{self.bits}", shape, hint=hint)

    def _bits(self) -> int:
        """The length of a sample, which is known once the settings are checked."""
        assert self.bits is not None
        return self.bits

    def _settled(self) -> Filter:
        if self.filter is None:
            raise ParameterError("filter: none is chosen yet; take the method of a Recipe, or give k and s")
        return self.filter


@cache
def permutations(seed: int, samples: int, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """The linear permutations a x + b, a odd: two arrays of uint32 or uint64, shape (samples,)."""
    dtype, top = (np.uint32 if bits == 32 else np.uint64), 64 - bits
    a = np.array([draw(seed, "permutation a", i) >> top | 1 for i in range(samples)], dtype)
    return a, np.array([draw(seed, "permutation b", i) >> top for i in range(samples)], dtype)
