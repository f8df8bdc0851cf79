"""Other ways to choose a filter: the remaining formulas of Broder 2000, section 4.

`neardup_gpu.theory.choose_filter` is what jobs use.
"""

import math

from .. import checks
from ..errors import ParameterError
from ..theory import MAX_GROUP, _simpson, check_filter, inverse, miss_probability, pass_probability
from ..theory.elementwise import Number, elementwise

MAX_AREA = 50_000  # k * k * s of `error_areas`, which has k terms at each of many steps a sample


def half_s(threshold: Number, k: int, r: int) -> Number:
    """Samples a group, as a real number, for which [k, s, r] passes `threshold` with probability one half.

    The first way of Broder 2000, section 4, solved for s: x**s has to be the p at which r or more of k happen half
    the time.

    Parameters
    ----------
    threshold : float in (0, 1), or array
        Resemblance.
    k : int
        Supershingles of a document.
    r : int
        Supershingles that have to agree.

    Raises
    ------
    ParameterError, ArgumentTypeError
        For a threshold outside (0, 1) or an impossible k, r.

    Examples
    --------
    >>> round(half_s(0.5, 1, 1), 3)
    1.0
    """
    return elementwise(lambda threshold: _half_s(threshold, k, r), threshold)


def _half_s(threshold: float, k: int, r: int) -> float:
    threshold = checks.fraction("threshold", threshold, zero=False, one=False)
    return math.log(inverse(0.5, k, 1, r)) / math.log(threshold)


def slope_s(threshold: Number) -> Number:
    """Samples a group, as a real number, for which x**s is steepest at the threshold: s = 1 / ln(1 / threshold).

    The second way of Broder 2000, section 4; s = 14 belongs to 0.931.

    Parameters
    ----------
    threshold : float in (0, 1), or array
        Resemblance.

    Raises
    ------
    ParameterError, ArgumentTypeError
        For a threshold outside (0, 1).

    Examples
    --------
    >>> round(slope_s(0.931), 1)
    14.0
    """
    return elementwise(_slope_s, threshold)


def _slope_s(threshold: float) -> float:
    return -1 / math.log(checks.fraction("threshold", threshold, zero=False, one=False))


def slope_threshold(s: int) -> float:
    """The threshold at which x**s is steepest, exp(-1 / s): the inverse of `slope_s`.

    Parameters
    ----------
    s : int
        Samples of a supershingle.

    Examples
    --------
    >>> round(slope_threshold(14), 3)
    0.931
    """
    return math.exp(-1 / checks.integer("s", s, 1, MAX_GROUP))


def error_areas(threshold: float, k: int, s: int, r: int) -> tuple[float, float]:
    """Areas of false acceptance and of false rejection: the integrals of P below and of 1 - P above the threshold.

    Parameters
    ----------
    threshold : float from 0 to 1
        Resemblance.
    k : int
        Supershingles of a document.
    s : int
        Samples of a supershingle.
    r : int
        Supershingles that have to agree.

    Returns
    -------
    tuple of float
        (accepted below, rejected above): the chances of either error for a pair whose resemblance is uniform on [0, 1],
        to about 1e-8. Their sum is least where P(threshold) = 1/2.

    Raises
    ------
    ParameterError, ArgumentTypeError
        For a threshold outside [0, 1] or an impossible filter.

    Notes
    -----
    Source: Broder 2000, section 4, who calls the uniform prior unrealistic; `choose_filter` uses a measured one.

    Examples
    --------
    >>> [round(area, 3) for area in error_areas(0.5, 1, 1, 1)]
    [0.125, 0.125]
    """
    threshold = checks.fraction("threshold", threshold)
    k, s, r = check_filter(k, s, r)
    if k * k * s > MAX_AREA:
        raise ParameterError(f"filter {k},{s},{r}: too large for its areas; k * k * s is {MAX_AREA:,} at most")
    intervals = 32 * k * s + 512
    below = _simpson(lambda x: pass_probability(x, k, s, r), 0.0, threshold, intervals)
    above = _simpson(lambda x: miss_probability(min(x, 1.0), k, s, r), threshold, 1.0, intervals)
    return below, above
