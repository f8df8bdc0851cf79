"""What resemblance and the sizes of two sets say together: containment, and the distance of the sets."""

from . import checks


def containment_from_resemblance(resemblance: float, size: float, other: float) -> float:
    """Containment of a set in another, from their resemblance and sizes: c = J (|A| + |B|) / ((1 + J) |A|).

    By it min-hash sketches, whose files hold the numbers of shingles, tell the containment of known pairs. The error of
    an estimate of J grows by (|A| + |B|) / (|A| (1 + J)**2): that is fine for sets of about one size, and useless for
    excerpts.

    Parameters
    ----------
    resemblance : float from 0 to 1
        J, or an estimate.
    size : float
        |A|, of the contained set; above 0.
    other : float
        |B|, of its container.

    Returns
    -------
    float
        From 0 to 1; an estimate of J that is more than any two sets of these sizes have gives 1.

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
    resemblance = checks.fraction("resemblance", resemblance)
    size, other = checks.number("size", size, 1, 2**64), checks.number("other", other, 0, 2**64)
    return min(1.0, resemblance * (size + other) / ((1 + resemblance) * size))


def l1(resemblance: float, size: float, other: float) -> float:
    """l1 distance of two sets or weighted sets, from their resemblance and sizes: (1 - J) / (1 + J) (|A| + |B|).

    For sets it is the number of elements that one of them alone has; for weights, the sum of differences.

    Parameters
    ----------
    resemblance : float from 0 to 1
        J, of weights the sum of minima over the sum of maxima; or an estimate.
    size : float
        |A|, of weights their sum.
    other : float
        |B|, likewise.

    Returns
    -------
    float
        Exact for the true J: with m the sum of minima and M that of maxima, J = m / M and |A| + |B| = m + M, so it is
        M - m. Source: Manasse 2012, section 5.

    Raises
    ------
    ParameterError, ArgumentTypeError
        For a resemblance outside [0, 1] or a negative size.

    Examples
    --------
    >>> round(l1(0.6, 20, 28), 6)  # 18 shared, 2 and 10 of their own
    12.0
    """
    resemblance = checks.fraction("resemblance", resemblance)
    size, other = checks.number("size", size, 0, 2**64), checks.number("other", other, 0, 2**64)
    return (1 - resemblance) / (1 + resemblance) * (size + other)
