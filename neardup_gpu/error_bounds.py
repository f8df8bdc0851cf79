"""Error bounds of estimates: collisions of fingerprints, the size of a sample, and means of bounded values.

Sources: Broder 1997, sections 4.1 and 4.2 (collisions of fingerprints, size of the sample); Hoeffding 1963, sections 4
and 6 (means of bounded values).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from . import checks

if TYPE_CHECKING:
    from fractions import Fraction

MAX_TRIALS = 10**7  # of sums with a term for each trial, which take seconds then
MAX_BITS = 1000  # of an id; 2**bits is a float64


def expected_collisions(size: int, bits: int) -> float:
    """Expected number of elements that a set loses when its elements become random ids of `bits` bits.

    Parameters
    ----------
    size : int
        Distinct shingles, 0 or more.
    bits : int
        Length of an id, 1 or more.

    Returns
    -------
    float
        size - 2**bits * (1 - (1 - 2**-bits)**size), close to size**2 / 2**(bits + 1) while that is small.

    Raises
    ------
    ParameterError, ArgumentTypeError
        For a negative size or fewer than one bit.

    Notes
    -----
    Source: Broder 1997, section 4.1. Summed as the series C(n,2)/m - C(n,3)/m**2 + ... where n < m / 4, since the
    difference of the closed form would lose every digit.

    Examples
    --------
    >>> expected_collisions(2, 1)
    0.5
    """
    size = checks.integer("size", size, 0, 2**64)
    bits = checks.integer("bits", bits, 1, MAX_BITS)
    ids = 2**bits
    if size >= max(2, ids / 4):
        return size + ids * math.expm1(size * math.log1p(-1 / ids))
    total, term, i = 0.0, size * (size - 1) / 2 / ids, 2
    while abs(term) > 1e-17 * abs(total):
        total += term
        term *= -(size - i) / ((i + 1) * ids)
        i += 1
    return total


def collision_error(union_size: float, bits: int) -> float:
    """Bound on the error of resemblance by collisions of `bits`-bit ids: |A u B| / 2**(bits - 11).

    It holds with probability above 99.9% over the choice of the ids. Source: Broder 1997, section 4.1. For a million
    shingles: 0.48 at 32 bits, 1.1e-10 at 64; for a thousand at 32 bits, 0.00048.

    Parameters
    ----------
    union_size : float
        Shingles of both documents together.
    bits : int
        Length of an id, 1 or more.

    Examples
    --------
    >>> collision_error(1024, 32)
    0.00048828125
    """
    return checks.number("union_size", union_size, 0, 2**64) / 2.0 ** (checks.integer("bits", bits, 1, MAX_BITS) - 11)


def standard_error(resemblance: float, samples: int) -> float:
    """Standard deviation of the share of equal samples: sqrt(x * (1 - x) / samples) (Broder 1997, section 4.2).

    Parameters
    ----------
    resemblance : float from 0 to 1
        Resemblance of the two documents.
    samples : int
        Min-hash samples, 1 or more.

    Examples
    --------
    >>> standard_error(0.5, 100)
    0.05
    """
    resemblance = checks.fraction("resemblance", resemblance)
    samples = checks.integer("samples", samples, 1, 2**64)
    return math.sqrt(resemblance * (1 - resemblance) / samples)


def bbit_share(resemblance: float, bits: int) -> float:
    """Expected share of equal groups where `bits` bits are kept of each min-hash sample: J + (1 - J) / 2**bits.

    Samples of the share 1 - J differ, and agree in their mixed bits by accident.

    Parameters
    ----------
    resemblance : float from 0 to 1
        J, the resemblance of the two documents.
    bits : int
        Bits kept of each sample, 1 or more.

    Raises
    ------
    ParameterError, ArgumentTypeError
        For a resemblance outside [0, 1] or fewer than one bit.

    Notes
    -----
    Source: Li and König 2010, theorem 1, whose further terms vanish where samples are mixed into 64 bits first.

    Examples
    --------
    >>> bbit_share(0.5, 1)
    0.75
    """
    resemblance = checks.fraction("resemblance", resemblance)
    return resemblance + (1 - resemblance) / 2.0 ** checks.integer("bits", bits, 1, MAX_BITS)


def bbit_resemblance(share: float, bits: int) -> float:
    """Estimate resemblance by the share of equal groups of bits: the inverse of `bbit_share`, without bias.

    (2**bits share - 1) / (2**bits - 1), from -1 / (2**bits - 1) on: below 0, fewer agree than by accident.

    Parameters
    ----------
    share : float from 0 to 1
        Equal groups, divided by all.
    bits : int
        Bits kept of each sample, 1 or more.

    Raises
    ------
    ParameterError, ArgumentTypeError
        For a share outside [0, 1] or fewer than one bit.

    Examples
    --------
    >>> bbit_resemblance(0.75, 1), bbit_resemblance(0.25, 1)
    (0.5, -0.5)
    """
    share, accident = checks.fraction("share", share), 2.0 ** -checks.integer("bits", bits, 1, MAX_BITS)
    return (share - accident) / (1 - accident)


def bbit_error(resemblance: float, samples: int, bits: int) -> float:
    """Standard deviation of the estimate of resemblance by `bits` bits of each of some samples.

    The square root of J (1 - J) / samples * (1 + 1 / ((2**bits - 1) J)): at 0.8, one bit has 2.25 times the variance of
    whole samples, two 1.42, four 1.08 and eight 1.005 times.

    Parameters
    ----------
    resemblance : float from 0 to 1
        J, the resemblance of the two documents.
    samples : int
        Min-hash samples, 1 or more.
    bits : int
        Bits kept of each sample, 1 or more.

    Raises
    ------
    ParameterError, ArgumentTypeError
        For a resemblance outside [0, 1], or fewer than one sample or bit.

    Notes
    -----
    Source: Manasse 2012, section 2.4; Li and König 2010. Computed as Q (1 - Q) / samples / (1 - 2**-bits)**2, Q the
    `bbit_share`, which is the same and has a value at J = 0.

    Examples
    --------
    >>> bbit_error(0, 256, 1)
    0.0625
    """
    share, accident = bbit_share(resemblance, bits), 2.0 ** -checks.integer("bits", bits, 1, MAX_BITS)
    return standard_error(share, samples) / (1 - accident)


def within_probability(samples: int, resemblance: float, error: float) -> float:
    """Probability that the estimate of resemblance by independent samples is off by at most `error`.

    Parameters
    ----------
    samples : int
        Min-hash samples, 1 or more.
    resemblance : float from 0 to 1
        True resemblance. Read as the simplest fraction within 1e-9, so that 0.9 - 0.1 means 0.8 and not one bit more.
    error : float from 0 to 1
        Greatest error of the estimate, read in the same way.

    Returns
    -------
    float
        p(s, r, e): the binomial chance of s*(r - e) <= equal samples <= s*(r + e).

    Raises
    ------
    ParameterError, ArgumentTypeError
        For a resemblance or an error outside [0, 1], or fewer than one sample.

    Notes
    -----
    Source: Broder 1997, section 4.2, where the sum's upper end is misprinted as s*(r - e).

    Examples
    --------
    >>> round(within_probability(2, 0.5, 0.1), 3)
    0.5
    """
    samples = checks.integer("samples", samples, 1, MAX_TRIALS)
    resemblance, error = checks.fraction("resemblance", resemblance), checks.fraction("error", error)
    middle, margin = (_simplest(value) for value in (resemblance, error))
    first = max(0, math.ceil(samples * (middle - margin)))
    last = min(samples, math.floor(samples * (middle + margin)))
    return min(1.0, math.fsum(_binomial_terms(samples, resemblance, first, last)))


def exceed_probability(samples: int, resemblance: float, estimate: float) -> float:
    """Probability that a pair of true `resemblance` has more than the share `estimate` of independent samples equal.

    Arguments, reading of decimals and errors as in `within_probability`. Broder 1997, section 4.2, uses it for the
    whole web.

    Parameters
    ----------
    samples : int
        Min-hash samples, 1 or more.
    resemblance : float from 0 to 1
        True resemblance.
    estimate : float from 0 to 1
        Share of the samples, read as the simplest fraction within 1e-9.

    Examples
    --------
    >>> round(exceed_probability(2, 0.5, 0.5), 3)
    0.25
    """
    samples = checks.integer("samples", samples, 1, MAX_TRIALS)
    resemblance, estimate = checks.fraction("resemblance", resemblance), checks.fraction("estimate", estimate)
    first = math.floor(samples * _simplest(estimate)) + 1
    return min(1.0, math.fsum(_binomial_terms(samples, resemblance, first, samples)))


def _simplest(share: float) -> Fraction:
    """Return the simplest fraction within 1e-9."""
    from fractions import Fraction  # slow to import, as is `decimal`, which it needs

    return Fraction(share).limit_denominator(10**9)


def _binomial_terms(trials: int, p: float, first: int, last: int) -> list[float]:
    """C(n, i) * p**i * (1-p)**(n-i) for first <= i <= last, through logarithms: any number of trials."""
    if p in (0.0, 1.0):
        return [float(i == trials * p) for i in range(first, last + 1)]
    top, log_p, log_q = math.lgamma(trials + 1), math.log(p), math.log1p(-p)
    return [
        math.exp(top - math.lgamma(i + 1) - math.lgamma(trials - i + 1) + i * log_p + (trials - i) * log_q)
        for i in range(first, last + 1)
    ]


def hoeffding(trials: int, failure: float = 1e-9) -> float:
    """Deviation of a mean of `trials` values in [0, 1] exceeded with probability <= failure.

    sqrt(ln(2 / failure) / (2 * trials)), either side (Hoeffding 1963, theorem 1); with or without replacement
    (section 6).

    Parameters
    ----------
    trials : int
        Number of values, 1 or more.
    failure : float in (0, 1), default 1e-9
        Probability that the deviation may be larger.

    Raises
    ------
    ParameterError, ArgumentTypeError
        For fewer than one trial or a failure outside (0, 1).

    Examples
    --------
    >>> round(hoeffding(1000, 0.01), 3)
    0.051
    """
    trials = checks.integer("trials", trials, 1, 2**64)
    failure = checks.fraction("failure", failure, zero=False, one=False, hint="0.01 is usual")
    return math.sqrt(math.log(2 / failure) / (2 * trials))


def mean_interval(mean: float, trials: int, failure: float) -> tuple[float, float]:
    """Interval that holds the true mean of values in [0, 1], from the mean of a sample of them.

    All m with trials * KL(mean, m) <= ln(2 / failure), where KL is the relative entropy of two coins,
    KL(a, m) = a ln(a / m) + (1 - a) ln((1 - a) / (1 - m)).

    Parameters
    ----------
    mean : float
        Mean of the sampled values, 0 to 1.
    trials : int
        Number of sampled values; 0 gives (0, 1).
    failure : float
        Probability, in (0, 1), that the interval may miss the true mean; half of it on each side.

    Returns
    -------
    tuple of float (low, high)
        low <= mean <= high. At mean 0 exactly (0, 1 - (failure / 2)**(1 / trials)), at mean 1 the mirror image; never
        wider than `hoeffding` on either side.

    Raises
    ------
    ParameterError, ArgumentTypeError
        For a mean outside [0, 1], negative trials or a failure outside (0, 1).

    Notes
    -----
    The Chernoff bound in its sharpest form, Hoeffding 1963, theorem 1, (2.1); by section 6 it also holds for sampling
    without replacement from a finite collection.

    Examples
    --------
    >>> [round(end, 3) for end in mean_interval(0.5, 100, 0.01)]
    [0.341, 0.659]
    """
    mean = checks.fraction("mean", mean)
    trials = checks.integer("trials", trials, 0, 2**64)
    failure = checks.fraction("failure", failure, zero=False, one=False, hint="0.01 is usual")
    if trials == 0:
        return 0.0, 1.0
    margin = math.log(2 / failure) / trials
    return min(mean, 1 - _upper_mean(1 - mean, margin)), _upper_mean(mean, margin)


def _upper_mean(mean: float, margin: float) -> float:
    """Greatest m >= mean with KL(mean, m) <= margin, by bisection; the end points in closed form."""
    if mean == 1:
        return 1.0
    if mean == 0:
        return -math.expm1(-margin)
    low, high = mean, 1.0
    while low < (middle := (low + high) / 2) < high:
        entropy = mean * math.log(mean / middle) + (1 - mean) * math.log((1 - mean) / (1 - middle))
        low, high = (middle, high) if entropy <= margin else (low, middle)
    return high
