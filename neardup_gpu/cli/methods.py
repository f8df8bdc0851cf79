"""The settings of the methods as flags, and the recipe that was chosen by them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import ParameterError
from ..settings import setting
from .options import MATCHING, Given, flags, given, refuse_others

if TYPE_CHECKING:
    from ..recipe import AnyRecipe


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """What is near."""

    threshold: float | None = setting(None, "Least resemblance, above 0 to 1.", metavar="X", shown="0.8")


@dataclass(frozen=True, kw_only=True)
class Shingles:
    """What of a document is compared, and how random constants are drawn."""

    shingle_size: int = setting(5, "Words in a shingle.", metavar="W")
    shingling: str = setting("set", "How shingles are counted: set, bag or circular.", metavar="KIND")
    seed: int = setting(1, "Random constants are drawn from it.", metavar="N")


@dataclass(frozen=True, kw_only=True)
class MinHashSketch:
    """How min-hash summarises a document."""

    recall: float | None = setting(None, "Share of the pairs at the threshold to find.", metavar="X", shown="0.99")
    filter: str | None = setting(
        None,
        "R of K features of S samples must agree. Also altavista, bands or bing.",
        metavar="K,S,R",
        shown="chosen for --recall",
    )
    bits: int | None = setting(None, "Bits of a sample: 32 or 64.", metavar="L", shown="32")
    feature_bits: int | None = setting(None, "Bits of a feature: 64 or 16.", metavar="B", shown="64, 16 for bing")


@dataclass(frozen=True, kw_only=True)
class MinHash(MinHashSketch):
    """How min-hash finds pairs."""

    bucket_limit: int | None = setting(
        None, "Compare all with all in buckets of up to N documents.", metavar="N", shown="64"
    )
    bucket_probe: int | None = setting(
        None, "In larger buckets, compare each document with the first N.", metavar="N", shown="16"
    )


@dataclass(frozen=True, kw_only=True)
class SimHashSketch:
    """How simhash summarises a document."""

    bits: int | None = setting(None, "Bits of a simhash: 64 or 128.", metavar="L", shown="64")
    features: str | None = setting(
        None, "What a simhash summarises: tokens or shingles.", metavar="KIND", shown="tokens"
    )
    weighting: str | None = setting(None, "Weight of a feature: tf, log or tfidf.", metavar="KIND", shown="log")
    frequencies: str | None = setting(
        None, "Document frequencies for tfidf, from an earlier run.", metavar="FILE", shown="counted"
    )


@dataclass(frozen=True, kw_only=True)
class SimHash(SimHashSketch):
    """How simhash finds pairs."""

    radius: int | None = setting(None, "Bits in which near simhashes may differ.", metavar="K", shown="3")
    verify: bool = setting(
        False, "Remove near simhashes only if their resemblance reaches --threshold, as min-hash always does."
    )
    bucket_limit: int | None = setting(
        None, "Compare all with all in buckets of up to N documents.", metavar="N", shown="512"
    )
    bucket_probe: int | None = setting(
        None, "In larger buckets, compare each document with the first N.", metavar="N", shown="32"
    )


METHODS: dict[str, type] = {"minhash": MinHash, "simhash": SimHash}

ThresholdFlags: Any = flags(MATCHING, Threshold)
ShinglesFlags: Any = flags(MATCHING, Shingles)
MethodFlags: Any = flags(MATCHING, *METHODS.values())
MinHashFlags: Any = flags(MATCHING, MinHashSketch)
SimHashFlags: Any = flags(MATCHING, SimHashSketch)


def chosen_recipe(method: str, shingles: Given | None, settings: Given | None, **rest: Any) -> tuple[AnyRecipe, Any]:
    """The recipe of these flags, and the document frequencies to go with it, or None.

    Parameters
    ----------
    method : str
    shingles : Given or None
        Of `Shingles`.
    settings : Given or None
        Of the method.
    **rest
        Settings of the recipe that all methods have; those that are None are left to it.
    """
    from ..recipe import choose_recipe

    if method in METHODS:
        refuse_others("--method", METHODS[method], METHODS, settings)
    values = given(shingles, settings) | {name: value for name, value in rest.items() if value is not None}
    if "filter" in values and "recall" in values:
        raise ParameterError("filter and recall: the filter decides the recall; leave one of them out")
    if "shingle_size" in values:
        values["w"] = values.pop("shingle_size")
    if values.pop("verify", False):
        values.setdefault("threshold", 0.8)
    frequencies = values.pop("frequencies", None)
    return choose_recipe(method, **values), frequencies
