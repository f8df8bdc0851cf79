"""Exact binomial intervals (Clopper and Pearson 1934).

Of n documents drawn at random, k have a property. The interval holds the shares p for which neither "at least k" nor
"at most k" of n is rarer than (1 - confidence) / 2. It covers the true share with at least the stated confidence,
whatever the share is. Where documents are drawn without replacement, the number varies less, so the interval is wider
than it has to be.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .. import checks
from ..errors import ParameterError


class Interval(NamedTuple):
    """The least and the greatest share."""

    low: float
    high: float


def exact_binomial(successes: int, trials: int, confidence: float = 0.95) -> Interval:
    """Return the exact interval of a share after `successes` in `trials` independent draws.

    Parameters
    ----------
    successes : int from 0 to trials
    trials : int
        If 0, nothing is known, and the interval is from 0 to 1.
    confidence : float in (0, 1), default 0.95
        The least chance with which the interval covers the share.

    Returns
    -------
    Interval
        Each end is found by bisection, and is the outer one of the last two numbers. Cost: about 45 sums of up to
        `trials` terms for each end.

    Examples
    --------
    >>> low, high = exact_binomial(0, 100)
    >>> low, round(high, 4)  # 1 - 0.025 ** (1 / 100)
    (0.0, 0.0362)
    """
    trials = checks.integer("trials", trials, 0)
    successes = checks.integer("successes", successes, 0, trials)
    if not 0 < confidence < 1:
        raise ParameterError(f"confidence must be > 0 and < 1, got {confidence}")
    rare = (1 - confidence) / 2
    low = 0.0 if successes == 0 else 1 - _largest_with(trials - successes, trials, rare)
    high = 1.0 if successes == trials else _largest_with(successes, trials, rare)
    return Interval(max(0.0, low), min(1.0, high))


def _largest_with(successes: int, trials: int, rare: float) -> float:
    """Return the share p at which at most `successes` of `trials` has the chance `rare`, rounded up."""
    low, high = successes / trials, 1.0
    count = np.arange(successes + 1)
    factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, trials + 1)))])
    choose = factorials[trials] - factorials[count] - factorials[trials - count]
    while high - low > 1e-13:
        p = (low + high) / 2
        if not low < p < high:
            break
        chance = math.fsum(np.exp(choose + count * math.log(p) + (trials - count) * math.log1p(-p)))
        low, high = (p, high) if chance > rare else (low, p)
    return high
