"""Bottom-k sketches: the s smallest elements of each row under one random permutation.

    y(f) = mix64(f ^ salt)        a permutation of the 64-bit integers
    MIN_s(A) = the s smallest of {y(f) : f in A}, ascending; all of them, if A has fewer

Sketches of fewer than s elements end with `EMPTY`, which thus stands for no element, nor for the one element that the
permutation takes to it.

Source: Broder 1997, section 3, there of a random permutation; mix64 is SplitMix64's finaliser.
Cost: as `sets`, which puts the images of each row in order, and s words a row.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from . import sets
from ._launch import array_module, namespace

EMPTY = np.uint64(2**64 - 1)


def reference(values, offsets, salt, s):
    """Sketches, straight from the definition.

    Parameters
    ----------
    values : array of uint64, shape (n,)
        Elements of each row, in any order, repeats allowed.
    offsets : array of int64, shape (rows + 1,)
    salt : uint64
    s : int
        At least 1.

    Returns
    -------
    array of uint64, shape (rows, s)
        Each row ascending, without repeats but of `EMPTY`.
    """
    sketches = np.full((len(offsets) - 1, s), EMPTY)
    for row, (start, stop) in enumerate(pairwise(offsets)):
        images = {_mix64(int(value) ^ int(salt)) for value in values[start:stop]}
        smallest = sorted(images)[:s]
        sketches[row, : len(smallest)] = smallest
    return sketches


def _mix64(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
    return z ^ (z >> 31)


def cpu(values, offsets, salt, s):
    """As `reference`: the images of each row in order, rows in parallel, and the beginning of each row."""
    images, bounds = sets.cpu(_images(values, salt), offsets)
    return _beginnings(images, bounds, s)


def gpu(values, offsets, salt, s):
    """As `cpu`, on the GPU: all rows are put in order together."""
    xp = namespace()
    images, bounds = sets.gpu(_images(xp.asarray(values), salt), xp.asarray(offsets))
    return _beginnings(images, bounds, s)


def _images(values, salt):
    """y of each value."""
    z = values ^ salt
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _beginnings(values, offsets, s):
    """The first s values of each row, and `EMPTY` after them."""
    xp = array_module(values)
    places = offsets[:-1, None] + xp.arange(s)
    there = places < offsets[1:, None]
    sketches = xp.full(there.shape, EMPTY)
    sketches[there] = values[places[there]]
    return sketches
