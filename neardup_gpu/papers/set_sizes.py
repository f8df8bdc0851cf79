"""Containment and distance of two sets, from their resemblance and sizes."""

from typing import Any

from .. import checks
from ..theory.elementwise import Numbers, elementwise


def containment_from_resemblance(resemblance: Numbers, size: Numbers, other: Numbers) -> Any:
    """Containment of a set in another, from their resemblance and sizes: c = J (|A| + |B|) / ((1 + J) |A|).

    Sketch files of min-hash hold the numbers of shingles, so they give the containment of known pairs. The error of
    an estimate of J grows by (|A| + |B|) / (|A| (1 + J)**2): that is fine for sets of about one size, and useless for
    excerpts.

    Parameters
    ----------
    resemblance : float from 0 to 1, or array
        J, or an estimate.
    size : float, or array
        |A|, of the contained set; above 0.
    other : float, or array
        |B|, of its container.

    Returns
    -------
    float, or array of float64
        From 0 to 1; 1 if J is more than two sets of the given sizes can have.

    Raises
    ------
    ParameterError, ArgumentTypeError
        For a resemblance outside [0, 1], a `size` below 1 or a negative `other`.

    Notes
    -----
    Source: the definitions of Broder 1997, section 2: |A n B| = J (|A| + |B|) / (1 + J).

    Examples
    --------
    >>> containment_from_resemblance(0.1, 10, 100)
    1.0
    >>> round(containment_from_resemblance(0.6, 20, 28), 6)
    0.9
    """
    return elementwise(_containment_from_resemblance, resemblance, size, other)


def _containment_from_resemblance(resemblance: float, size: float, other: float) -> float:
    resemblance = checks.fraction("resemblance", resemblance)
    size, other = checks.number("size", size, 1, 2**64), checks.number("other", other, 0, 2**64)
    return min(1.0, resemblance * (size + other) / ((1 + resemblance) * size))


def l1(resemblance: Numbers, a: Numbers, b: Numbers) -> Any:
    """The l1 distance of two weighted sets: (1 - J) / (1 + J) (a + b).

    The sums of the smaller and of the larger weights are a + b together, and J is their ratio; so the identity is
    exact. Of sets, a and b are their sizes and the distance is the number of elements that only one of them has.

    Parameters
    ----------
    resemblance : float from 0 to 1, or array
        J.
    a : float, or array
        Weight of the one set, at least 0; its number of elements, if it has no weights.
    b : float, or array
        Weight of the other.

    Returns
    -------
    float, or array of float64
        In the unit of a and b.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If `resemblance` is outside [0, 1], or a weight outside [0, 2**62].

    Examples
    --------
    >>> l1(0.5, 7, 8)  # such as 5 in common, 2 and 3 of their own
    5.0
    """
    return elementwise(_l1, resemblance, a, b)


def _l1(resemblance: float, a: float, b: float) -> float:
    resemblance = checks.fraction("resemblance", resemblance)
    a, b = (checks.number(name, value, 0, 2**62, "a weight") for name, value in (("a", a), ("b", b)))
    return (1 - resemblance) / (1 + resemblance) * (a + b)
