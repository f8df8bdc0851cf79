"""Error bounds of estimates: means of bounded values, bits of samples, and accidents of fingerprints.

Sources: Hoeffding 1963, sections 4 and 6 (means); Li and König 2010 (bits).
"""

import math

from .. import checks
from .elementwise import Number, elementwise

MAX_BITS = 1000  # of an id; 2**bits is a float64


def bbit_share(resemblance: Number, bits: int) -> Number:
    """Expected share of equal groups where `bits` bits are kept of each min-hash sample: J + (1 - J) / 2**bits.

    Samples of the share 1 - J differ, and agree in their mixed bits by accident.

    Parameters
    ----------
    resemblance : float from 0 to 1, or array
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
    bits = checks.integer("bits", bits, 1, MAX_BITS)

    def share(one: float) -> float:
        one = checks.fraction("resemblance", one)
        return one + (1 - one) / 2.0**bits

    return elementwise(share, resemblance)


def bbit_resemblance(share: Number, bits: int) -> Number:
    """Estimate resemblance by the share of equal groups of bits: the inverse of `bbit_share`, without bias.

    (2**bits share - 1) / (2**bits - 1), from -1 / (2**bits - 1) on: below 0, fewer agree than by accident.

    Parameters
    ----------
    share : float from 0 to 1, or array
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
    accident = 2.0 ** -checks.integer("bits", bits, 1, MAX_BITS)
    return elementwise(lambda one: (checks.fraction("share", one) - accident) / (1 - accident), share)


def mean_interval(mean: Number, trials: int, failure: float) -> tuple[Number, Number]:
    """Interval that holds the true mean of values in [0, 1], from the mean of a sample of them.

    All m with trials * KL(mean, m) <= ln(2 / failure), where KL is the relative entropy of two coins,
    KL(a, m) = a ln(a / m) + (1 - a) ln((1 - a) / (1 - m)).

    Parameters
    ----------
    mean : float from 0 to 1, or array
        Mean of the sampled values.
    trials : int
        Number of sampled values; 0 gives (0, 1).
    failure : float
        Probability, in (0, 1), that the interval may miss the true mean; half of it on each side.

    Returns
    -------
    tuple of float, or of two arrays of float64 (low, high)
        low <= mean <= high. At mean 0 exactly (0, 1 - (failure / 2)**(1 / trials)), at mean 1 the mirror image; never
        wider than `papers.hoeffding` on either side.

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
    trials = checks.integer("trials", trials, 0, 2**64)
    failure = checks.fraction("failure", failure, zero=False, one=False, hint="0.01 is usual")
    return elementwise(lambda one: _interval(checks.fraction("mean", one), trials, failure), mean, results=2)


def _interval(mean: float, trials: int, failure: float) -> tuple[float, float]:
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


def accidental_pairs(documents: int, k: int, r: int, bits: int = 64) -> float:
    """Expected pairs of documents that agree in a key of r of k features by accident alone: C(m, 2) C(k, r) 2**-bits.

    Parameters
    ----------
    documents : int
        m, 0 or more.
    k : int
        Features of a document, 1 to 1000.
    r : int
        Features of a key, 1 to k.
    bits : int, default 64
        Bits of a key. There is a key for each choice of r features. It has 64 bits in a pair table, and 16 r bits if
        features have 16 bits.

    Returns
    -------
    float
        Where it is above 1 and nothing is verified, some pairs are expected to be no near-duplicates at all. Infinite
        where it is more than a float64 holds.

    Raises
    ------
    ParameterError, ArgumentTypeError
        For a number that is out of range.

    Examples
    --------
    >>> accidental_pairs(2**22, 6, 2) < 1 < accidental_pairs(2**31, 6, 2)
    True
    """
    documents, k = checks.integer("documents", documents, 0, 2**64), checks.integer("k", k, 1, 1000)
    r, bits = checks.integer("r", r, 1, k), checks.integer("bits", bits, 1, MAX_BITS)
    try:
        return math.comb(documents, 2) * math.comb(k, r) / 2**bits
    except OverflowError:
        return math.inf
