"""How far estimates may be off: variances, sizes of samples, and accidents of fingerprints.

Sources: Broder 1997, sections 3 to 4.2; Broder 2000, section 2; Li and Koenig 2010 (b bits); Ioffe 2010 and Manasse 5
(weights); Hoeffding 1963, theorem 1.
"""

import math
from fractions import Fraction
from typing import Any

from .. import checks
from ..theory.elementwise import Number, Numbers, elementwise
from ..theory.error_bounds import MAX_BITS

MAX_TRIALS = 10**7  # a sum has a term for each trial, and then takes seconds
MOST = 2**64  # documents, shingles or samples
LEAST_ERROR = 1e-6  # below it, a float64 cannot hold the relative entropy of two coins so near to each other


# ---------------------------------------------------------------------------------------------- variances of estimates


def sample_variance(resemblance: Number, samples: int) -> Number:
    """Variance of the share of equal samples, where samples are independent: J (1 - J) / t.

    So for min-hash, and for weighted samples, whose J is the weighted one: sum of minima / sum of maxima.

    Parameters
    ----------
    resemblance : float from 0 to 1, or array
        J, of the two documents.
    samples : int
        t, 1 or more.

    Returns
    -------
    float, or array of float64
        The square of `standard_error`.

    Raises
    ------
    ParameterError, ArgumentTypeError
        For a resemblance outside [0, 1], or fewer than one sample.

    Notes
    -----
    Source: Broder 1997, section 4.2; of weights, Manasse 5.2.

    Examples
    --------
    >>> sample_variance(0.5, 100)
    0.0025
    """
    return elementwise(lambda resemblance: _sample_variance(resemblance, samples), resemblance)


def _sample_variance(resemblance: float, samples: int) -> float:
    resemblance = checks.fraction("resemblance", resemblance)
    return resemblance * (1 - resemblance) / checks.integer("samples", samples, 1, MOST)


def bottomk_variance(resemblance: Number, s: int, union_size: int) -> Number:
    """Variance of the estimate by the s smallest elements of a union: J (1 - J) / s * (U - s) / (U - 1).

    The s elements are drawn from the union without replacement, so that the number of common ones is hypergeometric;
    Broder 1997, section 4.2, says so and goes on with the binomial, which is larger.

    Parameters
    ----------
    resemblance : float from 0 to 1, or array
        J, of the two documents.
    s : int
        Elements of a sketch, 1 or more.
    union_size : int
        U, the distinct shingles of both documents together, 1 or more.

    Returns
    -------
    float, or array of float64
        0 for a union of at most s elements: then the estimate is exact.

    Raises
    ------
    ParameterError, ArgumentTypeError
        For a resemblance outside [0, 1], or sizes below 1.

    Examples
    --------
    >>> round(bottomk_variance(0.8, 50, 100), 6)
    0.001616
    """
    return elementwise(lambda resemblance: _bottomk_variance(resemblance, s, union_size), resemblance)


def _bottomk_variance(resemblance: float, s: int, union_size: int) -> float:
    resemblance = checks.fraction("resemblance", resemblance)
    s, union = checks.integer("s", s, 1, MOST), checks.integer("union_size", union_size, 1, MOST)
    if union <= s:
        return 0.0
    return resemblance * (1 - resemblance) / s * (union - s) / (union - 1)


def modm_variance(share: Number, modulus: int, size: int) -> Number:
    """Variance of the estimate of a share by the elements that are 0 modulo m, given that there is one.

    The share is resemblance, among the U elements of a union, or containment, among the |A| of a document. K of its N
    elements are sampled, K binomial of (N, 1/m); given K, the estimate has the variance p (1 - p) (N - K) / (K (N - 1))
    of draws without replacement. That is averaged over K > 0.

    Parameters
    ----------
    share : float from 0 to 1, or array
        p, which is estimated.
    modulus : int
        m, 1 or more.
    size : int
        N, the elements that the share is of, 1 to 10**7.

    Returns
    -------
    float, or array of float64
        0 for the modulus 1, which samples all. The estimate is without bias, given that a sampled element is there;
        none is with probability (1 - 1/m)**N.

    Raises
    ------
    ParameterError, ArgumentTypeError
        For a share outside [0, 1], or a modulus or size out of range.

    Notes
    -----
    Source: Broder 1997, section 3, theorem 1. Cost: a term for each K within 40 standard deviations of N / m.

    Examples
    --------
    >>> round(modm_variance(0.8, 16, 1000), 6)
    0.002442
    """
    return elementwise(lambda share: _modm_variance(share, modulus, size), share)


def _modm_variance(share: float, modulus: int, size: int) -> float:
    share = checks.fraction("share", share)
    modulus, size = checks.integer("modulus", modulus, 1, MOST), checks.integer("size", size, 1, MAX_TRIALS)
    if modulus == 1 or size == 1:
        return 0.0
    mean, reach = size / modulus, 40 * math.sqrt(size / modulus) + 40
    first, last = max(1, math.floor(mean - reach)), min(size, math.ceil(mean + reach))
    terms = enumerate(_binomial_terms(size, 1 / modulus, first, last), first)
    rest = math.fsum(term * (size - k) / (k * (size - 1)) for k, term in terms)
    return share * (1 - share) * rest / -math.expm1(size * math.log1p(-1 / modulus))


def bbit_variance(resemblance: Number, samples: int, bits: int) -> Number:
    """Variance of the estimate by samples of k bits: J (1 - J) / t * (1 + 1 / ((2**k - 1) J)).

    A share Q of the samples has all k bits equal; (2**k Q - 1) / (2**k - 1) is the estimate, without bias where unequal
    samples have equal bits with probability 2**-k.

    Parameters
    ----------
    resemblance : float from 0 to 1, or array
        J, of the two documents.
    samples : int
        t, 1 or more.
    bits : int
        k, bits of a sample, 1 or more.

    Returns
    -------
    float, or array of float64
        1 / ((2**k - 1) t) at J = 0.

    Raises
    ------
    ParameterError, ArgumentTypeError
        For a resemblance outside [0, 1], or fewer than one sample or bit.

    Notes
    -----
    Source: Li and Koenig 2010, theorem 2, with r1 = r2 = 0; Manasse 2.4.

    Examples
    --------
    >>> bbit_variance(0.8, 100, 1) / sample_variance(0.8, 100)
    2.25
    """
    return elementwise(lambda resemblance: _bbit_variance(resemblance, samples, bits), resemblance)


def _bbit_variance(resemblance: float, samples: int, bits: int) -> float:
    resemblance = checks.fraction("resemblance", resemblance)
    samples, bits = checks.integer("samples", samples, 1, MOST), checks.integer("bits", bits, 1, MAX_BITS)
    others = 2.0**bits - 1
    return (1 - resemblance) * (1 / others + resemblance) / samples


# ------------------------------------------------------------------------------------------------------------- sizes


def samples_for(error: float, failure: float = 0.01, resemblance: float | None = None) -> int:
    """Independent samples with which an estimate of resemblance is off by `error` at most, but for `failure`.

    Parameters
    ----------
    error : float in [1e-6, 1)
        Greatest error of the estimate.
    failure : float in (0, 1), default 0.01
        Probability that the error may be larger.
    resemblance : float from 0 to 1, default None
        Of the two documents; whatever it is, unless given.

    Returns
    -------
    int
        By Hoeffding's inequality ln(2 / failure) / (2 error**2); for a given resemblance J the fewest t for which
        exp(-t KL(J + error, J)) + exp(-t KL(J - error, J)) <= failure, KL being the relative entropy of two coins.
        Sketches of the s smallest elements need no more. It is a bound: `within_probability` says what is exactly true.

    Raises
    ------
    ParameterError, ArgumentTypeError
        For an error outside [1e-6, 1), a failure outside (0, 1), or a resemblance outside [0, 1].

    Notes
    -----
    Source: Hoeffding 1963, theorem 1, (2.1) and (2.3).

    Examples
    --------
    >>> samples_for(0.1), samples_for(0.1, resemblance=0.9)
    (265, 104)
    """
    error = checks.fraction("error", error, zero=False, one=False, hint="0.05 is usual")
    checks.number("error", error, LEAST_ERROR, hint="0.05 is usual")
    failure = checks.fraction("failure", failure, zero=False, one=False, hint="0.01 is usual")
    resemblance = checks.optional(checks.fraction, "resemblance", resemblance)
    enough = math.ceil((math.log(2) - math.log(failure)) / (2 * error) / error)
    if resemblance is None:
        return enough
    rates = [_entropy(side, resemblance) for side in (resemblance + error, resemblance - error) if 0 <= side <= 1]

    def missed(samples: int) -> float:
        return math.fsum(math.exp(-samples * rate) for rate in rates)

    low, high = 0, enough  # by Pinsker's inequality, KL >= 2 error**2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if missed(middle) <= failure else (middle, high)
    return high


def _entropy(a: float, b: float) -> float:
    """Relative entropy of two coins, KL(a, b); infinite where b rules out what a allows."""
    found = 0.0
    for p, q in ((a, b), (1 - a, 1 - b)):
        if p > 0:
            found += p * math.log(p / q) if q > 0 else math.inf
    return max(0.0, found)


def expected_insertions(size: int, s: int) -> float:
    """Expected number of elements that enter a sketch of the s smallest, while `size` elements come in random order.

    The k-th element is among the s smallest so far with probability s / k, so that it is s + s (H_n - H_s), H_n being
    the sum of 1 / i up to n.

    Parameters
    ----------
    size : int
        n, the distinct elements, 0 or more.
    s : int
        Elements of a sketch, 1 or more.

    Returns
    -------
    float
        `size` where that is at most s.

    Raises
    ------
    ParameterError, ArgumentTypeError
        For a negative size, or s below 1.

    Notes
    -----
    Source: Broder 1997, section 4.1 (the cost of the heap).

    Examples
    --------
    >>> round(expected_insertions(1000, 100), 2)
    329.81
    """
    size, s = checks.integer("size", size, 0, MOST), checks.integer("s", s, 1, MOST)
    if size <= s:
        return float(size)
    return s + s * (_harmonic(size) - _harmonic(s))


def _harmonic(n: int) -> float:
    """1 + 1/2 + ... + 1/n; from 256 on by Euler and Maclaurin, to the last bits."""
    if n < 256:
        return math.fsum(1 / i for i in range(1, n + 1))
    euler = 0.5772156649015329
    return math.log(n) + euler + 1 / (2 * n) - 1 / (12 * n**2) + 1 / (120 * n**4)


# ------------------------------------------------------------------------------------------ accidents of fingerprints


def fingerprint_bits(documents: int) -> float:
    """Bits of a feature with which accidents among all pairs of documents are about one in a million: 2 log2 m + 20.

    Parameters
    ----------
    documents : int
        m, 1 or more.

    Returns
    -------
    float
        64 bits hold to 2**22 documents; 30 million need 70 bits, 200 million 75.2.

    Raises
    ------
    ParameterError, ArgumentTypeError
        For fewer than one document.

    Notes
    -----
    Source: Broder 2000, section 2, who adds that in practice 64 bits suffice: where pairs are verified, or r of k
    features have to agree, `theory.accidental_pairs` says how many are to be expected.

    Examples
    --------
    >>> round(fingerprint_bits(30_000_000), 2)
    69.68
    """
    return 2 * math.log2(checks.integer("documents", documents, 1, MOST)) + 20


def rabin_bound(num_bits: int, bits: int) -> float:
    """Bound on the probability that two texts, whoever chose them, have one Rabin fingerprint: n / 2**(l - 1).

    Parameters
    ----------
    num_bits : int
        n, the length of the longer text in bits, 0 or more.
    bits : int
        l, the degree of the random irreducible polynomial, 1 or more.

    Returns
    -------
    float
        At most 1.

    Raises
    ------
    ParameterError, ArgumentTypeError
        For a negative length, or fewer than one bit.

    Notes
    -----
    Two texts have one fingerprint if the polynomial divides their difference, which has at most n / l factors of that
    degree, among at least (2**l - 2**(l/2 + 1)) / l polynomials. Source: Broder 1997, section 4.1; Rabin 1981.

    Examples
    --------
    >>> rabin_bound(400, 40) < 1e-9
    True
    """
    return min(1.0, checks.integer("num_bits", num_bits, 0, MOST) / 2.0 ** (checks.integer("bits", bits, 1, 1000) - 1))


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


def collision_error(union_size: Number, bits: int) -> Number:
    """Bound on the error of resemblance by collisions of `bits`-bit ids: |A u B| / 2**(bits - 11).

    It holds with probability above 99.9% over the choice of the ids. Source: Broder 1997, section 4.1. For a million
    shingles: 0.48 at 32 bits, 1.1e-10 at 64; for a thousand at 32 bits, 0.00048.

    Parameters
    ----------
    union_size : float, or array
        Shingles of both documents together.
    bits : int
        Length of an id, 1 or more.

    Examples
    --------
    >>> collision_error(1024, 32)
    0.00048828125
    """
    return elementwise(lambda union_size: _collision_error(union_size, bits), union_size)


def _collision_error(union_size: float, bits: int) -> float:
    return checks.number("union_size", union_size, 0, 2**64) / 2.0 ** (checks.integer("bits", bits, 1, MAX_BITS) - 11)


def standard_error(resemblance: Number, samples: int) -> Number:
    """Standard deviation of the share of equal samples: sqrt(x * (1 - x) / samples) (Broder 1997, section 4.2).

    Parameters
    ----------
    resemblance : float from 0 to 1, or array
        Resemblance of the two documents.
    samples : int
        Min-hash samples, 1 or more.

    Examples
    --------
    >>> standard_error(0.5, 100)
    0.05
    """
    return elementwise(lambda resemblance: math.sqrt(_sample_variance(resemblance, samples)), resemblance)


def bbit_error(resemblance: Number, samples: int, bits: int) -> Number:
    """Standard deviation of the estimate of resemblance by `bits` bits of each of some samples.

    The square root of J (1 - J) / samples * (1 + 1 / ((2**bits - 1) J)): at 0.8, one bit has 2.25 times the variance of
    whole samples, two 1.42, four 1.08 and eight 1.005 times.

    Parameters
    ----------
    resemblance : float from 0 to 1, or array
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
    Source: Manasse 2012, section 2.4; Li and König 2010. At J = 0 it is that of `bbit_variance`.

    Examples
    --------
    >>> bbit_error(0, 256, 1)
    0.0625
    """
    return elementwise(lambda resemblance: math.sqrt(_bbit_variance(resemblance, samples, bits)), resemblance)


def within_probability(samples: int, resemblance: Numbers, error: Numbers) -> Any:
    """Probability that the estimate of resemblance by independent samples is off by at most `error`.

    Parameters
    ----------
    samples : int
        Min-hash samples, 1 or more.
    resemblance : float from 0 to 1, or array
        True resemblance. Read as the simplest fraction within 1e-9, so that 0.9 - 0.1 means 0.8 and not one bit more.
    error : float from 0 to 1, or array
        Greatest error of the estimate, read in the same way.

    Returns
    -------
    float, or array of float64
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
    return elementwise(lambda resemblance, error: _within_probability(samples, resemblance, error), resemblance, error)


def _within_probability(samples: int, resemblance: float, error: float) -> float:
    samples = checks.integer("samples", samples, 1, MAX_TRIALS)
    resemblance, error = checks.fraction("resemblance", resemblance), checks.fraction("error", error)
    middle, margin = (_simplest(value) for value in (resemblance, error))
    first = max(0, math.ceil(samples * (middle - margin)))
    last = min(samples, math.floor(samples * (middle + margin)))
    return min(1.0, math.fsum(_binomial_terms(samples, resemblance, first, last)))


def exceed_probability(samples: int, resemblance: Numbers, estimate: Numbers) -> Any:
    """Probability that a pair of true `resemblance` has more than the share `estimate` of independent samples equal.

    Arguments, reading of decimals and errors as in `within_probability`. Broder 1997, section 4.2, uses it for the
    whole web.

    Parameters
    ----------
    samples : int
        Min-hash samples, 1 or more.
    resemblance : float from 0 to 1, or array
        True resemblance.
    estimate : float from 0 to 1, or array
        Share of the samples, read as the simplest fraction within 1e-9.

    Examples
    --------
    >>> round(exceed_probability(2, 0.5, 0.5), 3)
    0.25
    """
    return elementwise(
        lambda resemblance, estimate: _exceed_probability(samples, resemblance, estimate), resemblance, estimate
    )


def _exceed_probability(samples: int, resemblance: float, estimate: float) -> float:
    samples = checks.integer("samples", samples, 1, MAX_TRIALS)
    resemblance, estimate = checks.fraction("resemblance", resemblance), checks.fraction("estimate", estimate)
    first = math.floor(samples * _simplest(estimate)) + 1
    return min(1.0, math.fsum(_binomial_terms(samples, resemblance, first, samples)))


def _simplest(share: float) -> Fraction:
    """Return the simplest fraction within 1e-9."""
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
