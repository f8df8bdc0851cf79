"""The cost of a search by prefixes, and the chance that two shingles have one fingerprint.

`neardup_gpu/theory/prefix_filter.py` has the lemma and its sources.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .. import checks
from ..theory.prefix_filter import MAX_SIZE, PrefixLengths, prefix_lengths

PRIMITIVE = 2 * 4 * 16 * 256 * 640 * 65536 * 6700416 // 64  # phi(2**64 - 1) / 64 primitive polynomials of degree 64
MAX_COST_SIZE = 10_000  # of `prefix_cost`, which takes a step for each shingle of a prefix


class PrefixCost(NamedTuple):
    """The expected cost of a search by prefixes.

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
    word_bytes. Their fingerprints are equal exactly if the modulus divides it. The modulus was drawn among the
    phi(2**64 - 1) / 64 primitive polynomials of degree 64, and at most word_bytes // 8 of the polynomials can. Two
    shingles whose words have other fingerprints differ by a polynomial of degree at most 64 shingle_size, to which the
    same applies, for another modulus. This is the bound of Broder 1997, 4.1, in its exact form. It holds for each pair
    over the choice of the seed: whoever writes texts after seeing the seed can break it. Were fingerprints random,
    10**9 shingles would have 0.027 accidents (`expected_collisions`); the bound is 24.

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

    The model: all documents have `size` shingles, and besides a shingle x, the shingles of a document are independent
    draws in proportion to the counts. A shingle of count c then has a posting in c P(long) documents, where P(length)
    is the binomial chance that less than `length` of the size - 1 others come before it. Postings of short prefixes
    meet one another and those of long prefixes:

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
    size = checks.integer("size", size, 1, MAX_COST_SIZE)
    threshold = checks.fraction("threshold", threshold, zero=False)
    count = np.sort(checks.numbers_between("counts", checks.array("counts", counts, np.int64, convert=True), 0, 2**32))
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
