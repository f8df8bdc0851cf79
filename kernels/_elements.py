"""Elements of sketches under one permutation: images, and which of them are small."""

import numpy as np

from ._cpu import jit
from ._gf2 import mix64
from ._launch import array_module

EMPTY = np.uint64(2**64 - 1)
"""Stands for no element in a sketch of fixed width."""


def beginnings(values, offsets, width):
    """The first `width` values of each row, and `EMPTY` after them, where they lie: uint64, shape (rows, width)."""
    xp = array_module(values)
    if len(values) == 0:
        return xp.full((len(offsets) - 1, width), EMPTY)
    places = offsets[:-1, None] + xp.arange(width)
    return xp.where(places < offsets[1:, None], values[xp.minimum(places, len(values) - 1)], EMPTY)


@jit()
def zeros_above(most):
    """How many of the highest bits are zero in all words up to `most`; 63 at most."""
    shift = np.uint64(0)
    while shift < np.uint64(63) and (most << shift) < np.uint64(1 << 63):
        shift += np.uint64(1)
    return shift


BLOCK = 512
"""Images that are computed together, as vectors."""


@jit()
def _write_images(values, salt, written):
    for i in range(len(values)):
        written[i] = mix64(values[i] ^ salt)


@jit()
def _compact(images, most, shift, kept):
    """Write the images up to `most`, shifted, to `kept`; each, and the next one over it unless it is small."""
    size = 0
    for i in range(len(images)):
        kept[size] = images[i] << shift
        size += images[i] <= most
    return size


@jit()
def keep_small(values, salt, most, shift, block, kept):
    """Write the images up to `most` of some values, shifted to the left, to `kept`; returns how many they are.

    `block` is room for `BLOCK` words, `kept` for one more than there are values.
    """
    size = 0
    for first in range(0, len(values), BLOCK):
        some = values[first : first + BLOCK]
        _write_images(some, salt, block)
        size += _compact(block[: len(some)], most, shift, kept[size:])
    return size
