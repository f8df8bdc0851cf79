"""Recipes: everything that changes results, and the random material drawn from its seed."""

from __future__ import annotations

import json
import math
import re
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from . import checks, theory
from .errors import ArgumentTypeError, InputError, ParameterError, RecipeMismatchError

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

DEFINITIONS = 2
"""Version of the definitions of token, shingle, sketch and decision; raised when any of them changes a result."""

METADATA_KEY = b"neardup_gpu"

TELLING = {
    "documents": "duplicate_of",
    "pairs": "id_a",
    "matches": "query_id",
    "sketches": "signature",
    "simhashes": "simhash",
    "frequencies": "token",
}
"""A column by which each kind of table that carries a recipe is known."""

MOST_SAMPLES = 100_000
"""Of a signature: one takes 400 kB then, and more would be a mistake."""

METHODS = ("minhash", "simhash")
SHINGLINGS = ("set", "bag", "circular")
CLUSTERINGS = ("greedy", "components")
FEATURES = ("tokens", "shingles")
WEIGHTINGS = ("tf", "log", "tfidf")


class Filter(NamedTuple):
    """[k, s, r]: two documents are candidates when at least r of their k features of s samples each agree."""

    k: int
    s: int
    r: int

    @property
    def samples(self) -> int:
        """Min-hash samples that the filter needs: k s."""
        return self.k * self.s

    @property
    def tables(self) -> int:
        """Pair tables: one for each r-subset of the k features."""
        return math.comb(self.k, self.r)

    def __str__(self) -> str:
        return f"{self.k},{self.s},{self.r}"


@dataclass(frozen=True, kw_only=True)
class _Common:
    """What recipes of both methods say, and what they do alike."""

    threshold: float | None = None
    w: int = 5
    shingling: str = "set"
    seed: int = 1
    keep: str = "first"
    cluster: str = "greedy"
    bucket_limit: int = 64
    bucket_probe: int = 16

    method: ClassVar[str]
    _sketched: ClassVar[tuple[str, ...]]  # names that sketches depend on

    def _check(self, **choices: tuple[str | int, ...]) -> None:
        """Make each value the Python object that it stands for; `choices` are the allowed values of further fields.

        Raises
        ------
        ParameterError, ArgumentTypeError
            If one is out of its range or of another type.
        """
        plain: dict[str, Any] = {
            "w": checks.integer("w", self.w, 1, 64, "shingles have 1 to 64 tokens, 5 is usual"),
            "seed": checks.integer("seed", self.seed, 0, 2**64 - 1),
            "keep": checks.text("keep", self.keep),
            "bucket_limit": checks.integer("bucket_limit", self.bucket_limit, 2, 2**31 - 1),
            "bucket_probe": checks.integer("bucket_probe", self.bucket_probe, 1, 2**31 - 1),
        }
        if self.threshold is not None or self.method == "minhash":
            plain["threshold"] = checks.fraction("threshold", self.threshold, zero=False)
        for name, allowed in {"shingling": SHINGLINGS, "cluster": CLUSTERINGS, **choices}.items():
            plain[name] = checks.one_of(name, getattr(self, name), allowed)
        for name, value in plain.items():
            object.__setattr__(self, name, value)

    def to_json(self) -> str:
        """`describe`, as JSON."""
        return json.dumps(self.describe())

    def describe(self) -> dict[str, Any]:
        """The method, all fields, the definitions' version and the Unicode table's hash."""
        from neardup_gpu.kernels._unicode_table import DIGEST

        return {"method": self.method, **asdict(self), "definitions": DEFINITIONS, "unicode_table": DIGEST}

    @classmethod
    def from_json(cls, text: str | bytes, name: str = "recipe") -> Self:
        """The recipe that `to_json` wrote; `name` says in errors where it was read.

        Raises
        ------
        RecipeMismatchError
            If it was written under other definitions or another Unicode table, is of the other method, or is no recipe.
        ArgumentTypeError
            If it is no text.
        """
        checks.instance("text", text, (str, bytes), "that Recipe.to_json gave")
        found = recipe_from_json(text, name)
        if not isinstance(found, cls):
            raise RecipeMismatchError(f"{name}: a recipe of method {found.method}, not {cls.method}; make it again")
        return found

    def sketching(self) -> dict[str, Any]:
        """The part that sketches depend on: sketches of recipes that agree in it can be compared."""
        described = self.describe()
        return {name: described[name] for name in ("method", *self._sketched, "definitions", "unicode_table")}

    def check_sketches(self, other: AnyRecipe, name: str) -> None:
        """Raise RecipeMismatchError, naming the first difference, unless `other`'s sketches can meet this recipe's."""
        checks.recipe_of_kind(other)
        mine, theirs = self.sketching(), other.sketching()
        for key, value in mine.items():
            if theirs.get(key) != value:
                raise RecipeMismatchError(
                    f"{name}: made with {key} = {theirs.get(key)}, asked for {value}; sketch it again"
                )

    def with_(self, **changes: Any) -> Self:
        """A copy with some fields changed."""
        return replace(self, **changes)


@dataclass(frozen=True)
class Recipe(_Common):
    """Everything that changes results. Two runs with equal recipes over the same documents decide the same.

    Parameters
    ----------
    filter : Filter
        Which documents become candidates; `Recipe.choose` finds one for a threshold and a recall.
    bits : 32 or 64
        Length L of a min-hash sample.
    feature_bits : 64 or 16
        Length of a supershingle.
    threshold : float, in (0, 1]
        A document is removed for a resemblance of at least this.
    w : int
        Tokens in a shingle.
    shingling : "set", "bag" or "circular"
    seed : int, in [0, 2**64)
        All random material is drawn from it.
    keep : str
        Priority: "first" (input order), "longest" (most tokens), or a column, as "date", "date:asc" or "date:desc".
    cluster : "greedy" or "components"
    bucket_limit, bucket_probe : int
        In a bucket of a pair table with more than `bucket_limit` documents each is compared with the first
        `bucket_probe` by priority only.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If a value is out of its range or of another type.
    """

    filter: Filter
    bits: int = 32
    feature_bits: int = 64
    threshold: float = field(default=0.8, kw_only=True)

    method: ClassVar[str] = "minhash"
    _sketched: ClassVar[tuple[str, ...]] = ("k", "s", "w", "shingling", "bits", "feature_bits", "seed")

    def __post_init__(self) -> None:
        object.__setattr__(self, "filter", Filter(*theory.check_filter(*checks.three("filter", self.filter))))
        if self.filter.samples > MOST_SAMPLES:
            raise ParameterError(
                f"filter {self.filter} needs {self.filter.samples:,} samples; choose k and s with at most "
                f"{MOST_SAMPLES:,}"
            )
        if self.filter.tables > 5000:
            raise ParameterError(
                f"filter {self.filter} needs {self.filter.tables:,} pair tables; choose k and r with at most 5,000"
            )
        self._check(bits=(32, 64), feature_bits=(64, 16))

    @classmethod
    def choose(
        cls, threshold: float = 0.8, recall: float = 0.99, filter: str | tuple[int, int, int] | None = None, **rest: Any
    ) -> Recipe:
        """A recipe for a threshold: the filter by name or "k,s,r", or else the cheapest that finds the share `recall`.

        Raises
        ------
        ParameterError, ArgumentTypeError
            If the threshold, the recall or the filter is impossible or of another type.
        """
        threshold = checks.fraction("threshold", threshold, zero=False)
        recall = checks.fraction("recall", recall, zero=False, one=False, hint="0.99 is usual")
        if filter is None:
            filter = theory.choose_filter(threshold, recall)
        elif isinstance(filter, str):
            if filter.strip().lower() == "bing":  # features of 16 bits are part of what Bing does (Manasse 6.1)
                rest.setdefault("feature_bits", 16)
            filter = theory.parse_filter(filter)
        return cls(Filter(*checks.three("filter", filter)), threshold=threshold, **rest)

    @property
    def expected_recall(self) -> float:
        """Share of pairs exactly at the threshold that become candidates: P(k, s, r) there."""
        return theory.pass_probability(self.threshold, *self.filter)

    @property
    def material(self) -> Material:
        """The constants drawn for it."""
        return material(self.seed, self.filter.samples, self.bits)

    def describe(self) -> dict[str, Any]:
        """The method, all fields, the definitions' version and the Unicode table's hash."""
        return {**super().describe(), "filter": str(self.filter)}

    def sketching(self) -> dict[str, Any]:
        """The part that sketches depend on: sketches of recipes that agree in it can be compared."""
        described = self.describe() | {"k": self.filter.k, "s": self.filter.s}
        return {name: described[name] for name in ("method", *self._sketched, "definitions", "unicode_table")}


@dataclass(frozen=True, kw_only=True)
class SimhashRecipe(_Common):
    """As `Recipe`, for simhashes.

    Parameters
    ----------
    radius : int, from 0 to 32
        Simhashes that differ in at most so many bits are near.
    bits : 64 or 128
        Length of a simhash.
    features : "tokens" or "shingles"
        What a document is a set of.
    weighting : "tf", "log" or "tfidf"
        A feature weighs as often as the document has it; 1 and the logarithm of that, which of the three is right most
        often at radius 3 (notebook 03); or as often, times the inverse document frequency (tokens only).
    frequencies : str, optional
        Digest of the document-frequency table that "tfidf" weighs by; None until one is made of the documents.
    threshold : float, in (0, 1], optional
        Near documents are removed for a resemblance of at least this; unless given, without being verified.
    w, shingling, seed, keep, cluster, bucket_limit, bucket_probe
        As in `Recipe`. Shingles are made where they are features, and to verify resemblance. Buckets are those of
        tables of simhashes.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If a value is out of its range or of another type.
    """

    radius: int = 3
    bits: int = 64
    features: str = "tokens"
    weighting: str = "log"
    frequencies: str | None = None
    bucket_limit: int = 512
    bucket_probe: int = 32

    method: ClassVar[str] = "simhash"
    _sketched: ClassVar[tuple[str, ...]] = ("bits", "features", "weighting", "frequencies", "seed")

    def __post_init__(self) -> None:
        radius = checks.integer("radius", self.radius, 0, 32, "3 is usual for 64 bits")
        object.__setattr__(self, "radius", radius)
        frequencies = checks.optional(checks.text, "frequencies", self.frequencies, "give the digest of a table")
        object.__setattr__(self, "frequencies", frequencies)
        self._check(bits=(64, 128), features=FEATURES, weighting=WEIGHTINGS)
        if self.weighting == "tfidf" and self.features != "tokens":
            raise ParameterError("weighting 'tfidf' is for tokens; of shingles take 'tf' or 'log'")
        if self.weighting != "tfidf" and self.frequencies is not None:
            raise ParameterError(f"weighting {self.weighting!r} takes no document frequencies; 'tfidf' does")

    @property
    def material(self) -> Material:
        """The constants drawn for it."""
        return material(self.seed, 0, 32)

    def sketching(self) -> dict[str, Any]:
        """The part that sketches depend on: sketches of recipes that agree in it can be compared."""
        found = super().sketching()
        return {**found, "w": self.w, "shingling": self.shingling} if self.features == "shingles" else found


AnyRecipe = Recipe | SimhashRecipe


def choose_recipe(
    method: str = "minhash",
    threshold: float | None = None,
    recall: float | None = None,
    filter: str | tuple[int, int, int] | None = None,
    radius: int | None = None,
    **rest: Any,
) -> AnyRecipe:
    """The recipe that `dedup` and `sketch` take when they are given these; `rest` as in `Recipe` or `SimhashRecipe`.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If one is impossible, of another type or of the other method.
    """
    if checks.one_of("method", method, METHODS) == "minhash":
        if radius is not None:
            raise ParameterError(f"radius {checks.shown(radius)} is for simhashes; add method simhash or leave it out")
        return Recipe.choose(
            0.8 if threshold is None else threshold, 0.99 if recall is None else recall, filter, **rest
        )
    for name, value in (("recall", recall), ("filter", filter)):
        if value is not None:
            raise ParameterError(
                f"{name} {checks.shown(value)} is for min-hash; by simhash the radius decides what is near"
            )
    return SimhashRecipe(threshold=threshold, radius=3 if radius is None else radius, **rest)


def recipe_from_json(text: str | bytes, name: str) -> AnyRecipe:
    """As `from_json`, of either method."""
    from neardup_gpu.kernels._unicode_table import DIGEST

    stored = stored_recipe(text, name)
    for key, here in (("definitions", DEFINITIONS), ("unicode_table", DIGEST)):
        found = stored.get(key)
        if found is None:
            raise _unreadable(name)
        if type(found) is not type(here) or found != here:
            shown = found[:60] if isinstance(found, str) else checks.shown(found)
            raise RecipeMismatchError(f"{name}: made under {key} {shown}, this version has {here}; make it again")
    kind: Any = {"minhash": Recipe, "simhash": SimhashRecipe}.get(str(stored.get("method")))
    if kind is None or set(stored) != {each.name for each in fields(kind)} | _BESIDE_FIELDS:
        raise _unreadable(name)
    values: dict[str, Any] = {each.name: stored[each.name] for each in fields(kind)}
    try:
        if kind is Recipe:
            if not re.fullmatch(r"\d{1,9},\d{1,9},\d{1,9}", values["filter"]):
                raise _unreadable(name)
            values["filter"] = Filter(*map(int, values["filter"].split(",")))
        return kind(**values)
    except (ArgumentTypeError, ParameterError, TypeError) as error:
        raise _unreadable(name, str(error)) from None


_BESIDE_FIELDS = {"method", "definitions", "unicode_table"}  # what `describe` says


def stored_recipe(text: str | bytes, name: str) -> dict[str, Any]:
    """What is stored of a recipe, or of the settings of a job without one, as far as it is JSON of plain values.

    Raises
    ------
    RecipeMismatchError
        If it is not.
    """
    try:
        stored = json.loads(text)
    except (ValueError, RecursionError):
        raise _unreadable(name) from None
    if not isinstance(stored, dict) or any(isinstance(value, dict | list) for value in stored.values()):
        raise _unreadable(name)
    return stored


def _unreadable(name: str, why: str = "") -> RecipeMismatchError:
    return RecipeMismatchError(f"{name}: its recipe cannot be read{f' ({why})' if why else ''}; make it again")


def recipe_of(schema: pa.Schema, name: str) -> AnyRecipe:
    """The recipe in an artefact's schema metadata.

    Raises
    ------
    InputError
        If there is none.
    """
    stored = (schema.metadata or {}).get(METADATA_KEY)
    if stored is None:
        raise InputError(f"{name}: holds no recipe; it was not written by neardup")
    return recipe_from_json(stored, name)


def mix64(z: int) -> int:
    """SplitMix64's finaliser on Python integers."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
    return z ^ (z >> 31)


def draw(seed: int, purpose: str, index: int) -> int:
    """The random 64-bit integer of (seed, purpose, index): output `index` of SplitMix64 started from a key of the
    first two."""
    key = mix64(seed)
    for byte in purpose.encode():
        key = mix64(key ^ byte)
    return mix64((key + (index + 1) * 0x9E3779B97F4A7C15) % 2**64)


@cache
def polynomial(seed: int, purpose: str) -> int:
    """q of the first primitive polynomial x**64 + q among the draws for a purpose; about one in 64 is."""
    from neardup_gpu.kernels._gf2 import first_primitive

    index = 0
    while True:
        block = [draw(seed, f"polynomial {purpose}", index + i) | 1 << 63 for i in range(64)]
        found = first_primitive(_uint64(block))
        if found >= 0:
            return block[found]
        index += 64


def _uint64(values: list[int]) -> np.ndarray:
    import numpy as np

    return np.array(values, np.uint64)


class Material(NamedTuple):
    """The random constants of a recipe, as kernels take them.

    tokens, shingles, bags, supershingles, keys : uint64
        Moduli of Rabin fingerprints, one for each use, as a fingerprint of fingerprints must not reuse one.
    documents : array of uint64, shape (2,)
    a, b : arrays of uint32 or uint64, shape (samples,)
        The linear permutations a x + b, a odd.
    """

    tokens: np.uint64
    shingles: np.uint64
    bags: np.uint64
    supershingles: np.uint64
    keys: np.uint64
    documents: np.ndarray
    a: np.ndarray
    b: np.ndarray


@cache
def material(seed: int, samples: int, bits: int) -> Material:
    """Draw a recipe's constants."""
    import numpy as np

    dtype = np.uint32 if bits == 32 else np.uint64
    top = 64 - bits
    return Material(
        tokens=np.uint64(polynomial(seed, "tokens")),
        shingles=np.uint64(polynomial(seed, "shingles")),
        bags=np.uint64(polynomial(seed, "bags")),
        supershingles=np.uint64(polynomial(seed, "supershingles")),
        keys=np.uint64(polynomial(seed, "pair keys")),
        documents=_uint64([polynomial(seed, "documents 0"), polynomial(seed, "documents 1")]),
        a=np.array([draw(seed, "permutation a", i) >> top | 1 for i in range(samples)], dtype),
        b=np.array([draw(seed, "permutation b", i) >> top for i in range(samples)], dtype),
    )
