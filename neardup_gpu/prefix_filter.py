"""The prefix filter: why `exact` and `containment` find every pair at the threshold, and what it costs: mathematics.

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
least least(min(|A|, |B|)), which both of these allow.

**When hashing wins.** A min-hash filter keeps k numbers of a document, however long; the prefix filter keeps a posting
for each shingle of the long prefix that another document has too. Of 1,000 shingles these are at most 51, 201 and 501
at thresholds 0.95, 0.8 and 0.5, where `choose_filter` keeps 8, 20 and 35 numbers; often they are far fewer, as the
rarest shingles of a text may be in no other. So hashing wins where sets are large and the threshold is low; where all
shingles are frequent (texts made of few sentences: comparisons grow with the square of the documents, see
`prefix_cost`); and where only sketches are stored, as a document without its shingles has no prefix.

Sources: Chaudhuri, Ganti and Kaushik 2006 (the prefix filter); Bayardo, Ma and Srikant 2007 (the order by frequency,
bounds by size); Xiao, Wang, Lin and Yu 2008 (PPJoin: places, and the short prefix of the smaller set).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from . import checks

if TYPE_CHECKING:
    import numpy as np

MAX_SIZE = 2**52  # shingles of a set: the sum of two sizes is a float64 without rounding
MAX_COST_SIZE = 10_000  # of `prefix_cost`, which takes a step for each shingle of a prefix
PRIMITIVE = 2 * 4 * 16 * 256 * 640 * 65536 * 6700416 // 64  # phi(2**64 - 1) / 64 primitive polynomials of degree 64


class PrefixLengths(NamedTuple):
    """How many of a set's shingles, the rarest first, are looked at.

    Parameters
    ----------
    short : int
        In pairs of which the set is the smaller.
    long : int
        In pairs of which it is the larger; never less than `short`.

    Examples
    --------
    >>> PrefixLengths(2, 3).long
    3
    """

    short: int
    long: int


class PrefixCost(NamedTuple):
    """What a search by prefixes is expected to take.

    Parameters
    ----------
    postings : float
        Pairs (shingle, document) that are kept.
    comparisons : float
        Pairs of postings that meet, before sizes, places and repeats are looked at.

    Examples
    --------
    >>> PrefixCost(200.0, 100.0).postings
    200.0
    """

    postings: float
    comparisons: float


def least_overlap(size_a: int, size_b: int, threshold: float) -> int:
    """Least number of common shingles with which two sets of these sizes reach the threshold.

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


def expected_accidents(num_shingles: int, shingle_size: int = 5, word_bytes: int = 16) -> float:
    """Bound on the expected number of pairs of distinct shingles that have the same 64-bit fingerprint.

    Parameters
    ----------
    num_shingles : int
        Distinct shingles of all documents together.
    shingle_size : int, default 5
        Words of a shingle. A shingle that is labelled by its occurrence, as in bags, counts as two words more.
    word_bytes : int, default 16
        UTF-8 bytes of the longest word.

    Returns
    -------
    float
        n (n - 1) / 2 * (shingle_size + word_bytes // 8) / 143,890,337,947,975,680.

    Raises
    ------
    ParameterError, ArgumentTypeError
        For values out of range.

    Notes
    -----
    Two words that differ, as polynomials over GF(2) with a leading 1, differ by a polynomial of degree at most 8
    word_bytes. Their fingerprints are equal exactly if the modulus divides it, and at most word_bytes // 8 of the
    phi(2**64 - 1) / 64 primitive polynomials of degree 64 can, one of which was drawn. Two shingles whose words have
    other fingerprints differ by a polynomial of degree at most 64 shingle_size, to which the same applies, for another
    modulus. This is the bound of Broder 1997, 4.1, in its exact form. It holds for each pair over the choice of the
    seed: whoever writes texts after seeing the seed can break it. Were fingerprints random, 10**9 shingles would have
    0.027 accidents (`expected_collisions`); the bound is 24.

    What an accident can do. Let two shingles x and y have one fingerprint. Where one document has x alone and the
    other y alone, their overlap is counted one too high; a document that has both counts one shingle less, and two
    documents that both have both count one less in common. x and y share a posting and add up their counts, which may
    reorder shingles and costs time. All of it changes what resemblance *is*, for verification just as for min-hash:
    resemblance is that of sets of fingerprints. The lemma is about these sets, so `exact` loses none of their pairs.

    Examples
    --------
    >>> round(expected_accidents(10**9), 1), round(expected_accidents(10**6), 6)
    (24.3, 2.4e-05)
    """
    num_shingles = checks.integer("num_shingles", num_shingles, 0, 2**64)
    shingle_size = checks.integer("shingle_size", shingle_size, 1, 2**32)
    word_bytes = checks.integer("word_bytes", word_bytes, 1, MAX_SIZE)
    return num_shingles * (num_shingles - 1) // 2 * (shingle_size + word_bytes // 8) / PRIMITIVE


def prefix_cost(size: int, threshold: float, counts: Any) -> PrefixCost:
    """Expected numbers of postings and comparisons, from how many documents have each shingle.

    The model: all documents have `size` shingles, and beside a shingle x, those of a document are independent draws in
    proportion to the counts. A shingle of count c then has a posting in c P(long) documents, where P(length) is the
    binomial chance that less than `length` of the size - 1 others come before it. Postings of short prefixes meet one
    another and those of long prefixes:

        comparisons = sum over shingles of c (c - 1) / 2 * (P(short)**2 + 2 P(short) (P(long) - P(short)))

    Parameters
    ----------
    size : int
        Shingles of a document, 1 to 10,000.
    threshold : float in (0, 1]
        Resemblance.
    counts : array of int64, shape (shingles,)
        How many documents have each shingle, in any order.

    Returns
    -------
    PrefixCost (postings, comparisons)
        Shingles of count 1 add to neither, as they are skipped; without others both are 0.

    Raises
    ------
    ParameterError, ArgumentTypeError
        For values out of range, or counts that are not whole numbers.

    Notes
    -----
    A guide, not a bound: real shingles come in groups (copies, templates), which a model of independent draws does not
    have. The chances are interpolated, to about 1e-4.

    Examples
    --------
    1,000 documents of 40 shingles: 5 that no other has, 35 of 350 that each is in 100. Postings, then comparisons:

    >>> counts = [1] * 5_000 + [100] * 350
    >>> [round(prefix_cost(40, threshold, counts).postings) for threshold in (0.9, 0.8, 0.5)]
    [836, 4061, 15997]
    >>> [round(prefix_cost(40, threshold, counts).comparisons) for threshold in (0.9, 0.8, 0.5)]
    [3897, 55964, 519284]

    Texts of 30 sentences out of 60, in which no shingle is rare: twice the documents, four times the comparisons.

    >>> [f"{prefix_cost(30, 0.8, [documents // 2] * 60).comparisons:.2g}" for documents in (4_000, 8_000)]
    ['1.9e+07', '7.6e+07']
    """
    import numpy as np

    size = checks.integer("size", size, 1, MAX_COST_SIZE)
    threshold = checks.fraction("threshold", threshold, zero=False)
    count = np.sort(checks.within("counts", checks.array("counts", counts, np.int64, convert=True), 0, 2**32))
    count = count.astype(np.float64)
    before = np.cumsum(count) - count
    share = before / np.maximum(np.sum(count) - count, 1)  # of the other draws: what comes before each shingle
    count, share = count[count > 1], share[count > 1]
    # Evenly spaced in the arcsine of the root, where a binomial has the same width everywhere.
    places = np.sin(np.linspace(0, math.pi / 2, 64 * math.isqrt(size) + 1)) ** 2
    chances = _chances(places, size, prefix_lengths(size, threshold))
    short, long = (np.interp(share, places, chance) for chance in chances)
    comparisons = count * (count - 1) / 2 * (short**2 + 2 * short * (long - short))
    return PrefixCost(float(np.sum(count * long)), float(np.sum(comparisons)))


def _chances(places: np.ndarray, size: int, lengths: PrefixLengths) -> list[np.ndarray]:
    """Chance that less than each length of size - 1 draws come before a place, for places from 0 to 1."""
    import numpy as np

    inner = places[1:-1]
    log_odds = np.log(inner) - np.log1p(-inner)
    log_chance, total = (size - 1) * np.log1p(-inner), np.zeros(len(inner))
    found = []
    for length, start in zip(lengths, (0, lengths.short), strict=True):
        for drawn in range(start, length):
            total += np.exp(log_chance)
            if drawn < size - 1:
                log_chance += log_odds + math.log((size - 1 - drawn) / (drawn + 1))
        found.append(np.concatenate([[1.0], np.minimum(total, 1), [float(length >= size)]]))
    return found
