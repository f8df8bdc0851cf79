"""Filter curves and the choice of a filter: mathematics only.

Resemblances and other real numbers may be arrays of NumPy; a function then returns an array for each of its values.
Whole numbers, such as k, s and r, are single ones.

Error bounds (`error_bounds`) and the mathematics of the method `exact` (`prefix_filter`) are reachable here as well.
`neardup_gpu.papers` has the formulas that no job uses.

A sketch of k*s independent min-hash samples is cut into k groups of s, and every group is fingerprinted into one
feature. A group agrees between two documents of resemblance x with probability x**s, so at least r of the k features
agree with

    P(k,s,r)(x) = sum over r <= i <= k of C(k, i) * x**(s*i) * (1 - x**s)**(k - i)

Source: Broder 2000, sections 3 and 4 (the filter and the choice of its parameters).
"""

import functools
import math
from collections.abc import Callable

from .. import checks
from ..errors import ParameterError
from .elementwise import Number, elementwise
from .error_bounds import MAX_BITS, accidental_pairs, bbit_resemblance, bbit_share, mean_interval
from .prefix_filter import PrefixLengths, least_overlap, prefix_lengths

__all__ = [
    "PRESETS",
    "PrefixLengths",
    "accidental_pairs",
    "bbit_resemblance",
    "bbit_share",
    "check_filter",
    "choose_filter",
    "choose_segments",
    "false_candidates",
    "filter_cost",
    "half_point",
    "inverse",
    "least_overlap",
    "mean_interval",
    "miss_probability",
    "parse_filter",
    "pass_probability",
    "prefix_lengths",
]


def __dir__() -> list[str]:
    return __all__


PRESETS: dict[str, tuple[int, int, int]] = {
    "altavista": (6, 14, 2),  # Broder 2000, section 1; Manasse 2.5: "clearly the same", half at 0.909
    "bands": (20, 5, 1),  # banded LSH: Leskovec, Rajaraman and Ullman, Mining of Massive Datasets, example 3.11
    "bing": (6, 5, 4),  # Manasse 6.1: features of 16 bits instead of 64
    "files": (12, 1, 5),  # Manasse 6.2: features of 6 bits, for chunks of files
}

MAX_FEATURES = 1000  # C(k, i) and the powers beside it stay inside a float64 up to here
MAX_GROUP = 2**20  # samples in a feature; far beyond it nothing but identical documents would agree
SEGMENT = 10  # one-bit samples of a segment, of which two have to agree; see `choose_segments`
MAX_SEGMENTS = 100  # 4950 pair tables

# The cost model of `choose_filter`, per document and core, for documents of Broder's typical size (1997, 4.1). The
# times were measured on an AMD EPYC (Zen 4, AVX-512), as differences between whole runs on bills and on pages made from
# templates.
SHINGLES = 1000
SAMPLE_NS = 0.057  # one min-hash sample of one shingle
TABLE_NS = 80.0  # one row of one pair table, of a million rows or more: key, sort, scan
CANDIDATE_NS = 4500.0  # exact resemblance of one candidate pair
NEIGHBOURS = 14.0  # scale of the prior of resemblance, see `false_candidates`
COLLECTION = 10_000  # documents of the collections that the prior was measured on


def check_filter(k: int, s: int, r: int) -> tuple[int, int, int]:
    """The filter in Python's integers.

    Parameters
    ----------
    k : int
        Supershingles of a document.
    s : int
        Samples of a supershingle.
    r : int
        Supershingles that have to agree.

    Raises
    ------
    ParameterError, ArgumentTypeError
        Unless 1 <= r <= k <= 1000 and 1 <= s <= 2**20 are whole numbers.

    Examples
    --------
    >>> check_filter(20, 7, 1)
    (20, 7, 1)
    """
    k, s, r = (
        checks.integer(f"filter {name}", value, -math.inf, hint="give k,s,r such as 6,14,2")
        for name, value in (("k", k), ("s", s), ("r", r))
    )
    if not (1 <= r <= k <= MAX_FEATURES and 1 <= s <= MAX_GROUP):
        raise ParameterError(
            f"filter {checks.shown(k)},{checks.shown(s)},{checks.shown(r)}: "
            f"needs 1 <= r <= k <= {MAX_FEATURES} and 1 <= s <= {MAX_GROUP:,} "
            "(r of k features, each of s samples); give k,s,r such as 6,14,2."
        )
    return k, s, r


def parse_filter(text: str) -> tuple[int, int, int]:
    """Read a filter from "k,s,r" or from the name of a preset.

    Parameters
    ----------
    text : str
        Three whole numbers divided by commas, or a key of PRESETS.

    Returns
    -------
    tuple of int (k, s, r)

    Raises
    ------
    ParameterError, ArgumentTypeError
        For anything else; the message lists the presets.

    Examples
    --------
    >>> parse_filter("altavista"), parse_filter("20, 5, 1")
    ((6, 14, 2), (20, 5, 1))
    """
    name = checks.text("filter", text, f"give k,s,r or one of {', '.join(PRESETS)}").strip().lower()
    if name in PRESETS:
        return PRESETS[name]
    try:
        k, s, r = (int(part) for part in name.split(","))
    except ValueError:
        raise ParameterError(
            f"filter {checks.shown(text)}: neither three whole numbers k,s,r nor one of {', '.join(PRESETS)}."
        ) from None
    return check_filter(k, s, r)


# The filter curve


def _agreement(x: float, s: int, bits: int | None = None) -> tuple[float, float]:
    """Probability that a feature of s samples agrees, and that it does not, each to full relative precision.

    x**s, and of features of some bits 2**-bits of the others by accident.
    """
    p, q = (0.0, 1.0) if x == 0 else (x**s, -math.expm1(s * math.log(x)))
    return (p, q) if bits is None else (p + q * 2.0**-bits, q * (1 - 2.0**-bits))


def _binomial(p: float, q: float, k: int, first: int, last: int) -> float:
    """Sum of C(k, i) * p**i * q**(k-i) over first <= i <= last: terms that are all positive, so no digit is lost."""
    return min(1.0, math.fsum(math.comb(k, i) * p**i * q ** (k - i) for i in range(first, last + 1)))


def pass_probability(x: Number, k: int, s: int, r: int, *, bits: int | None = None) -> Number:
    """Probability that two documents of resemblance x become candidates: P(k,s,r)(x).

    Parameters
    ----------
    x : float from 0 to 1, or array
        Resemblance.
    k : int
        Supershingles of a document.
    s : int
        Samples of a supershingle.
    r : int
        Supershingles that have to agree.
    bits : int, default None
        Bits of a supershingle, such as 16: then features that differ agree by accident with probability 2**-bits.
        Unless given, accidents are left out.

    Returns
    -------
    float, or array of float64
        1 at x = 1, and 0 at x = 0 where accidents are left out; small values are exact to about 1e-13 of themselves.
        Near 1 use `miss_probability`.

    Raises
    ------
    ParameterError, ArgumentTypeError
        For x outside [0, 1] or an impossible filter.

    Notes
    -----
    Cost: k - r terms. Source: Broder 2000, section 3; accidents, Manasse 6.1.

    Examples
    --------
    >>> round(pass_probability(0.909, 6, 14, 2), 2)
    0.5
    >>> import numpy as np
    >>> pass_probability(np.array([0.0, 0.909, 1.0]), 6, 14, 2).round(2)
    array([0. , 0.5, 1. ])
    """
    return elementwise(lambda x: _pass(checks.fraction("x", x), *check_filter(k, s, r), _bits(bits)), x)


def _bits(bits: int | None) -> int | None:
    return checks.optional(checks.integer, "bits", bits, 1, MAX_BITS)


def _pass(x: float, k: int, s: int, r: int, bits: int | None = None) -> float:
    return _binomial(*_agreement(x, s, bits), k, r, k)


def miss_probability(x: Number, k: int, s: int, r: int, *, bits: int | None = None) -> Number:
    """Probability that two documents of resemblance x are missed, 1 - P(k,s,r)(x), summed directly.

    Small values are exact to about 1e-13 of themselves, where 1 - `pass_probability` has no digits left. Arguments,
    errors and source as in `pass_probability`; cost: r terms.

    Parameters
    ----------
    x : float from 0 to 1, or array
        Resemblance.
    k : int
        Supershingles of a document.
    s : int
        Samples of a supershingle.
    r : int
        Supershingles that have to agree.
    bits : int, default None
        Bits of a supershingle, where accidents count.

    Examples
    --------
    >>> round(miss_probability(0.5, 2, 1, 1), 3)
    0.25
    """
    return elementwise(lambda x: _miss(checks.fraction("x", x), *check_filter(k, s, r), _bits(bits)), x)


def _miss(x: float, k: int, s: int, r: int, bits: int | None = None) -> float:
    return _binomial(*_agreement(x, s, bits), k, 0, r - 1)


def inverse(probability: Number, k: int, s: int, r: int) -> Number:
    """Resemblance at which the filter passes with the given probability.

    Parameters
    ----------
    probability : float from 0 to 1, or array
        Wanted probability of passing.
    k : int
        Supershingles of a document.
    s : int
        Samples of a supershingle.
    r : int
        Supershingles that have to agree.

    Returns
    -------
    float, or array of float64
        The x with P(k,s,r)(x) = probability, to the last bits of a float64; 0 and 1 map to 0 and 1.

    Raises
    ------
    ParameterError, ArgumentTypeError
        For a probability outside [0, 1] or an impossible filter.

    Notes
    -----
    P is strictly increasing in x, so bisection finds it; above one half it works on 1 - P, which keeps its digits
    there.

    Examples
    --------
    >>> round(inverse(0.75, 2, 1, 1), 3)
    0.5
    """
    return elementwise(lambda one: _inverse(checks.fraction("probability", one), *check_filter(k, s, r)), probability)


def _inverse(probability: float, k: int, s: int, r: int) -> float:
    if probability in (0.0, 1.0):
        return probability
    low, high = 0.0, 1.0
    while low < (middle := (low + high) / 2) < high:
        if probability <= 0.5:
            below = _pass(middle, k, s, r) < probability
        else:
            below = _miss(middle, k, s, r) > 1 - probability
        low, high = (middle, high) if below else (low, middle)
    return high


# Choosing parameters


def half_point(k: int, s: int, r: int) -> float:
    """The threshold that a filter stands for: the resemblance that passes with probability one half.

    It minimises the sum of the two areas of `papers.error_areas` (Broder 2000, section 4, first way). [6, 14, 2] gives
    0.909.

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
    >>> round(half_point(6, 14, 2), 3)
    0.909
    """
    return inverse(0.5, k, s, r)


def _simpson(function: Callable[[float], float], start: float, stop: float, intervals: int) -> float:
    """Integral of a smooth function by Simpson's rule over an even number of intervals."""
    step = (stop - start) / intervals
    inner = math.fsum((4 if i % 2 else 2) * function(start + i * step) for i in range(1, intervals))
    return (function(start) + inner + function(stop)) * step / 3


def false_candidates(threshold: Number, k: int, s: int, r: int) -> Number:
    """Candidates below the threshold that one document is expected to have.

    The prior: a document has NEIGHBOURS * (1 / x - 1) others that resemble it by more than x, up to the whole
    collection. In five real collections of 3,000 to 20,000 documents (bills, manuals, three kinds of software
    documentation; exact resemblance of random pairs, exact duplicates left out) that number is

        x                  0.01   0.02   0.05    0.1    0.2    0.3    0.5
        geometric mean      617    370    155     63     34     22      6
        arithmetic mean    4473   3341   2400   1165    400    155      9
        14/x - 14          1386    686    266    126     56     33     14

    Almost all pairs lie below 0.1, as Manasse 3.1 reports, yet enough lie between 0.1 and 0.6 to drown a filter that
    is not steep. 7/x - 7 would fit the geometric mean; the prior is twice that, because the mistakes are lopsided:
    pages made from one template have sixty times as many neighbours as a typical collection, and a filter that is too
    steep for the others costs them little.

    Parameters
    ----------
    threshold : float in (0, 1], or array
        Resemblance.
    k : int
        Supershingles of a document.
    s : int
        Samples of a supershingle.
    r : int
        Supershingles that have to agree.

    Returns
    -------
    float, or array of float64
        Expected number, to about 1e-4 of itself: the integral of P(x) * NEIGHBOURS / x**2 up to the threshold.

    Raises
    ------
    ParameterError, ArgumentTypeError
        For a threshold outside (0, 1] or an impossible filter.

    Examples
    --------
    >>> round(false_candidates(0.5, 1, 1, 1), 1)  # 14 * ln(0.5 * 10014 / 14)
    82.3
    """
    return elementwise(
        lambda one: _false_candidates(checks.fraction("threshold", one, zero=False), *check_filter(k, s, r)), threshold
    )


def _false_candidates(threshold: float, k: int, s: int, r: int) -> float:
    # In u = ln(x): P falls as C(k, r) * exp(s * r * u), so what lies below the start is less than exp(-30) of it.
    farthest = math.log(NEIGHBOURS / (COLLECTION + NEIGHBOURS))
    stop = math.log(threshold)
    start = max(farthest, min(stop, -math.log(math.comb(k, r)) / (s * r)) - 30 / (s * r))
    if start >= stop:
        return 0.0
    return _simpson(lambda u: NEIGHBOURS * math.exp(-u) * _pass(min(1.0, math.exp(u)), k, s, r), start, stop, 200)


def filter_cost(threshold: Number, k: int, s: int, r: int) -> Number:
    """Estimated nanoseconds a document on one core, of a filter whose candidates are verified.

        SHINGLES * SAMPLE_NS * k * s  +  TABLE_NS * C(k, r)  +  CANDIDATE_NS * false candidates

    Reading, tokens and shingles cost every filter the same and true candidates are wanted: neither is counted.
    Arguments and errors as in `false_candidates`.

    Parameters
    ----------
    threshold : float in (0, 1], or array
        Resemblance.
    k : int
        Supershingles of a document.
    s : int
        Samples of a supershingle.
    r : int
        Supershingles that have to agree.

    Examples
    --------
    >>> filter_cost(0.8, 15, 7, 1) < filter_cost(0.8, 30, 7, 1)
    True
    """
    return elementwise(
        lambda one: _cost(checks.fraction("threshold", one, zero=False), *check_filter(k, s, r)), threshold
    )


def _cost(threshold: float, k: int, s: int, r: int) -> float:
    return _fixed_cost(k, s, r) + CANDIDATE_NS * _false_candidates(threshold, k, s, r)


def _fixed_cost(k: int, s: int, r: int) -> float:
    """The part of `filter_cost` that does not depend on resemblances."""
    return SHINGLES * SAMPLE_NS * k * s + TABLE_NS * math.comb(k, r)


def choose_filter(threshold: float, recall: float = 0.99, *, max_samples: int = 256) -> tuple[int, int, int]:
    """The cheapest filter that lets at least `recall` of the pairs at the threshold pass.

    Every [k, s, r] with k * s <= max_samples and P(k,s,r)(threshold) >= recall is considered, `filter_cost` decides,
    ties go to fewer samples. For given s and r all three parts of the cost grow with k, so only the smallest
    sufficient k counts.

    Parameters
    ----------
    threshold : float in (0, 1]
        Resemblance. Pairs above it pass with a greater probability than those at it.
    recall : float in (0, 1), default 0.99
        Wanted probability at the threshold: no sketch is certain.
    max_samples : int, default 256
        Most min-hash samples of a document.

    Returns
    -------
    tuple of int (k, s, r)

    Raises
    ------
    ParameterError, ArgumentTypeError
        For values out of range, and where max_samples do not suffice: a low threshold with a high recall.

    Notes
    -----
    Cost: a fraction of a second, once.

    Examples
    --------
    >>> choose_filter(0.9)
    (11, 10, 1)
    """
    return _choose_filter(
        checks.fraction("threshold", threshold, zero=False),
        checks.fraction("recall", recall, zero=False, one=False, hint="0.99 is usual"),
        checks.integer("max_samples", max_samples, 1, MAX_GROUP, hint="256 is usual"),
    )


@functools.cache
def _choose_filter(threshold: float, recall: float, max_samples: int) -> tuple[int, int, int]:
    best: tuple[float, int, tuple[int, int, int]] | None = None
    most = min(max_samples, MAX_FEATURES)
    for r in range(1, most + 1):
        for s in range(1, max_samples // r + 1):
            # By Markov's inequality P <= k x**s / r, which bounds k and so the cost from below.
            fewest = max(r, math.ceil(recall * r / threshold**s * (1 - 1e-9)))
            if fewest > most or (best is not None and _fixed_cost(fewest, s, r) > best[0]):
                break
            k = _smallest_k(threshold, recall, s, r, min(most, max_samples // s))
            if k is None:
                break  # a longer group agrees less often
            if best is not None and _fixed_cost(k, s, r) > best[0]:
                continue
            option = _cost(threshold, k, s, r), k * s, (k, s, r)
            best = option if best is None else min(best, option)
    if best is None:
        raise ParameterError(
            f"no filter of {max_samples} samples passes {recall!r} of the pairs at threshold {threshold!r}; "
            "raise the threshold, lower the recall or allow more samples."
        )
    return best[2]


def choose_segments(threshold: float, recall: float = 0.99) -> tuple[int, int, int]:
    """The fewest segments of ten one-bit samples with which at least `recall` of the pairs at the threshold share two.

    A segment agrees with probability ((1 + J) / 2)**10, by accident with 2**-10. One of 20 segments agrees in 99.98% of
    the pairs at J = 0.8, and in 1.9% of unrelated ones, which are too many to look at among many documents; two agree
    in 99.8%, and in 0.018% of unrelated ones. (Segments that differ in one bit at most agree by accident in 19.4%, two
    of them in 1.9%: they are not looked for.)

    Parameters
    ----------
    threshold : float in (0, 1]
        Resemblance.
    recall : float in (0, 1), default 0.99
        Wanted probability at the threshold.

    Returns
    -------
    tuple of int (k, s, r)
        k segments of s = 10 samples; r = 2 segments have to agree.

    Raises
    ------
    ParameterError, ArgumentTypeError
        For values out of range, and where 100 segments do not suffice.

    Examples
    --------
    >>> choose_segments(0.8)
    (17, 10, 2)
    """
    threshold = checks.fraction("threshold", threshold, zero=False)
    recall = checks.fraction("recall", recall, zero=False, one=False, hint="0.99 is usual")
    k = _smallest_k(bbit_share(threshold, 1), recall, SEGMENT, 2, MAX_SEGMENTS)
    if k is None:
        raise ParameterError(
            f"no {MAX_SEGMENTS} segments of one-bit samples pass {recall!r} of the pairs at threshold {threshold!r}; "
            "raise the threshold, lower the recall or give a filter.",
            parameter="threshold",
        )
    return k, SEGMENT, 2


def _smallest_k(threshold: float, recall: float, s: int, r: int, most: int) -> int | None:
    """Smallest k, r <= k <= most, with P(k,s,r)(threshold) >= recall; None if no k suffices. P grows with k."""

    def enough(k: int) -> bool:
        return _miss(threshold, k, s, r) <= 1 - recall

    if most < r or not enough(most):
        return None
    low, high = r - 1, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
