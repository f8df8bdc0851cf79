"""Weights of counts: logarithms as integers in 256ths, so that every machine gives the same bits.

    logarithmic   1 + log2(tf)                            tf: how often the document has the feature
    inverse       1 + log2((N + 1) / (df + 1))            df: how many of N documents have it

The kernel computes the first; `inverse` is made of it. Each logarithm is floor(256 log2 n), exactly: the length in bits
of n**256, less 1. So a weight is below its real value by less than 1/256 (inverse: off by less than that). Every weight
is at least 1: no document with features is without weight. With n < 2**40 it is at most 41, and 2**48 occurrences in a
document stay below the bound of `simhash`.

TF-IDF is `inverse` for each occurrence, so a feature weighs tf times as much. The 1 + in both terms is the usual
smoothing, which also gives a weight to features that no document has (df = 0): the greatest.

Source: Manning, Raghavan and Schütze 2008 (Introduction to Information Retrieval), 6.4.1 (1 + log tf) and 6.2 (idf,
TF-IDF).
Cost: one or two look-ups a count.
"""

import math
from functools import cache

import numpy as np

from ._constants import constants
from ._launch import namespace

ONE = 256
"""The weight 1."""


def reference(counts):
    """Weights of counts, straight from the definition.

    Parameters
    ----------
    counts : array of int64
        From 1 to 2**40 - 1.

    Returns
    -------
    array of int64, of the same shape
        256 + floor(256 log2(count)).
    """
    return np.array([ONE + (int(n) ** 256).bit_length() - 1 for n in counts], np.int64)


@cache
def _least_counts(bits=40):
    """Entry k is the least integer whose logarithm is k / 256 or more: the 256th root of 2**k, rounded up."""
    least = [1]
    for k in range(1, 256 * bits):
        root = 2**k - 1
        for _ in range(8):
            root = math.isqrt(root)
        least.append(root + 1)
    return np.array(least, np.int64)


@cache
def _of_small_counts():
    """The weights of counts below 1,024."""
    return np.searchsorted(_least_counts(10), np.arange(1024), side="right") + (ONE - 1)


def cpu(counts):
    """As `reference`; small counts looked up, others by bisection among the least of each logarithm."""
    weights, large = _of_small_counts()[np.minimum(counts, 1023)], counts > 1023
    if large.any():
        weights[large] = np.searchsorted(_least_counts(), counts[large], side="right") + (ONE - 1)
    return weights


def gpu(counts):
    """As `cpu`."""
    xp = namespace()
    return xp.searchsorted(constants(_least_counts)[0], xp.asarray(counts), side="right") + (ONE - 1)


def inverse(frequencies, documents):
    """Weights of features by the number of documents that hold them.

    Parameters
    ----------
    frequencies : array of int64
        From 0 to `documents`.
    documents : int
        N, at most 2**40 - 2.

    Returns
    -------
    array of int64, of the same shape
        256 + floor(256 log2(N + 1)) - floor(256 log2(df + 1)): 256 for a feature of every document.
    """
    return ONE + cpu(np.array([documents + 1])) - cpu(frequencies + 1)
