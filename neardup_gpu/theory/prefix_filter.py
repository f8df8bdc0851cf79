"""The prefix filter: why `exact` and `containment` find every pair at the threshold.

Shingles are put in one order, the same for all documents: by (documents that have it, fingerprint), the rarest first.
A set A has a *long prefix*, its first |A| - least(|A|) + 1 shingles, where least(u) is the least whole number c with
c / u >= t in float64, and a *short prefix*, its first |A| - m + 1, where m is the least c with c / (2|A| - c) >= t.

**Lemma.** Let |A| <= |B| and o / (|A| + |B| - o) >= t > 0 in float64, where o = |A n B|: resemblance as verification
computes it. Then the first shingle that both have, in the order, lies in the short prefix of A and in the long prefix
of B. If i and j are its places there, counted from 0, then min(|A| - i, |B| - j) >= `least_overlap(|A|, |B|, t)`.

Proof. Division in float64 is the true quotient, rounded, and rounding never reverses an order. So c / u, as computed,
never falls when c grows or u shrinks. As t > 0, o is at least 1, and there is a first common shingle.

1. |A| + |B| - o >= |B|, so o / |B| >= t and therefore o >= least(|B|).
2. |A| + |B| - o >= 2|A| - o, so o / (2|A| - o) >= t and therefore o >= m.
3. o is itself one of the c with c / (|A| + |B| - c) >= t, so o >= `least_overlap(|A|, |B|, t)`.
4. All o common shingles stand at place i or later in A, so o <= |A| - i; and likewise o <= |B| - j.
5. From 2 and 4, i <= |A| - m: the place is one of the first |A| - m + 1. From 1 and 4, j <= |B| - least(|B|), in the
   same way. From 3 and 4 comes the last statement.

Nothing in it depends on which order it is, so a count that is too high costs time and never a pair. A shingle that one
document alone has is in no pair and needs no posting; so a count must never be too low, as a shingle wrongly counted
once would be skipped. In a pair of equal sizes either set may be the smaller.

**The lemma for containment.** Let o / |A| >= t > 0 in float64: B contains A by t. Then in the order, the first shingle
that both have lies in the first |A| - least(|A|) + 1 shingles of A, which is the long prefix above, and anywhere in B.

Proof. o >= least(|A|) by definition, as quotients never fall when o grows; and o <= |A| - i as in 4. So
i <= |A| - least(|A|), whichever set is the larger.

So a container needs postings for those of its shingles that are in a prefix of some set: it is marked which are, and of
a set's shingles beyond its own prefix the others have none. Two sets are looked at where min(|A| - i, |B| - j) is at
least least(min(|A|, |B|)), which both lemmas allow.

**When hashing wins.** A min-hash filter keeps k numbers of a document, however long; the prefix filter keeps a posting
for each shingle of the long prefix that another document has too. Of 1,000 shingles these are at most 51, 201 and 501
at thresholds 0.95, 0.8 and 0.5, where `choose_filter` keeps 8, 20 and 35 numbers; often they are far fewer, as the
rarest shingles of a text may be in no other. So hashing wins where sets are large and the threshold is low; where all
shingles are frequent (texts made of few sentences: comparisons grow with the square of the documents, see
`papers.prefix_cost`); and where only sketches are stored, as a document without its shingles has no prefix.

Sources: Chaudhuri, Ganti and Kaushik 2006 (the prefix filter); Bayardo, Ma and Srikant 2007 (the order by frequency,
bounds by size); Xiao, Wang, Lin and Yu 2008 (PPJoin: places, and the short prefix of the smaller set).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from .. import checks

MAX_SIZE = 2**52  # shingles of a set: the sum of two sizes is a float64 without rounding


class PrefixLengths(NamedTuple):
    """How many of a set's shingles, the rarest first, are looked at.

    Parameters
    ----------
    short : int
        The length for pairs in which the set is the smaller one.
    long : int
        The length for pairs in which the set is the larger one; at least `short`.

    Examples
    --------
    >>> PrefixLengths(2, 3).long
    3
    """

    short: int
    long: int


def least_overlap(size_a: int, size_b: int, threshold: float) -> int:
    """Return the least number of common shingles with which two sets of the given sizes reach the threshold.

    The least whole number c with c / (size_a + size_b - c) >= threshold in the float64 division of verification.

    Parameters
    ----------
    size_a : int
        Shingles of one set, 0 to 2**52.
    size_b : int
        Shingles of the other.
    threshold : float in (0, 1]
        Resemblance.

    Returns
    -------
    int
        At least 1. More than the smaller size where the sizes are too far apart for any such pair.

    Raises
    ------
    ParameterError, ArgumentTypeError
        For sizes or a threshold out of range.

    Notes
    -----
    Found by stepping from an estimate that is at most a few steps off; no tolerance takes part.

    Examples
    --------
    >>> least_overlap(30, 33, 0.8)  # 28 / 35
    28
    >>> least_overlap(10, 100, 0.8)  # no set of 10 has as many
    49
    """
    total = checks.integer("size_a", size_a, 0, MAX_SIZE) + checks.integer("size_b", size_b, 0, MAX_SIZE)
    return _least_overlap(total, checks.fraction("threshold", threshold, zero=False))


def prefix_lengths(size: int, threshold: float) -> PrefixLengths:
    """Lengths of the two prefixes of a set, by which no pair at the threshold is lost (the lemma above).

    Parameters
    ----------
    size : int
        Shingles of the set, 0 to 2**52.
    threshold : float in (0, 1]
        Resemblance.

    Returns
    -------
    PrefixLengths (short, long)
        1 <= short <= long <= size; both are 0 for a set without shingles.

    Raises
    ------
    ParameterError, ArgumentTypeError
        For a size or a threshold out of range.

    Notes
    -----
    About (1 - t) / (1 + t) and 1 - t of the size. Stepped to, as in `least_overlap`.

    Examples
    --------
    >>> prefix_lengths(1000, 0.8), prefix_lengths(1000, 0.5)
    (PrefixLengths(short=112, long=201), PrefixLengths(short=334, long=501))
    >>> 0.07 * 100, prefix_lengths(100, 0.07).long  # 7 / 100 is 0.07: all but 6 shingles, not all but 7
    (7.000000000000001, 94)
    """
    size = checks.integer("size", size, 0, MAX_SIZE)
    threshold = checks.fraction("threshold", threshold, zero=False)
    least = _first(math.ceil(threshold * size), lambda c: c / max(size, 1) >= threshold)
    return PrefixLengths(size - _least_overlap(2 * size, threshold) + 1 if size else 0, size - least + 1)


def _least_overlap(total: int, threshold: float) -> int:
    """`least_overlap` of two sizes that add up to `total`."""
    estimate = math.ceil(threshold * total / (1 + threshold))
    return _first(estimate, lambda c: c / max(total - c, 1) >= threshold)


def _first(estimate: int, enough: Callable[[int], bool]) -> int:
    """The first whole number, from 0, that is enough, where all later ones are too: by steps from an estimate."""
    while not enough(estimate):
        estimate += 1
    while estimate and enough(estimate - 1):
        estimate -= 1
    return estimate
