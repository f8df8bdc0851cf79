"""Ids: integers as tokens, such as those that a language model's tokenizer made.

    token = the Rabin fingerprint of the integer's 8 little-endian bytes

A document is its integers one after another, of 8 bytes each. Integers below 0 are in two's complement. The place of a
token is the 8 bytes of its integer.

Source: Manasse 3.3 (fingerprints); a shingle of one token is the same function.
Cost: linear; a reduction per integer.
"""

import numpy as np

from . import shingles
from ._gf2 import rabin_words
from ._launch import array_module, bounds_of, know, known, on_device


def reference(text, offsets, poly, places=False):
    """Return the fingerprints of the integers of each document, straight from the definition.

    Parameters
    ----------
    text : array of uint8, shape (8 n,)
        Integers of 8 bytes, one document after another.
    offsets : array of int64, shape (documents + 1,)
        Multiples of 8.
    poly : uint64
        q of the modulus x**64 + q.
    places : bool, default False
        Whether to return where the integers are as well.

    Returns
    -------
    values, offsets, invalid, begins, ends
        As `tokens` returns them; no byte is invalid.
    """
    span = range(int(offsets[0]), int(offsets[-1]), 8)
    values = [rabin_words([int.from_bytes(text[i : i + 8].tobytes(), "little")], int(poly)) for i in span]
    found = np.array(values, np.uint64), (offsets - offsets[0]) // 8, 0
    return (*found, np.array(span, np.int64), np.array(span, np.int64) + 8) if places else found


def _tokens(make_shingles, text, offsets, poly, places):
    xp = array_module(text)
    firsts = offsets >> 3
    on_host = known(offsets)
    if on_host is not None:
        know(firsts, on_host >> 3)
    values, new_offsets = make_shingles(text.view(np.uint64), firsts, 1, "set", poly, poly)
    if not places:
        return values, new_offsets, 0
    begins = xp.arange(*bounds_of(offsets), 8)
    return values, new_offsets, 0, begins, begins + 8


def cpu(text, offsets, poly, places=False):
    """Return what `reference` returns: shingles of one integer each."""
    return _tokens(shingles.cpu, np.require(text, requirements="A"), offsets, poly, places)


def gpu(text, offsets, poly, places=False):
    """Return what `reference` returns: shingles of one integer each."""
    return _tokens(shingles.gpu, on_device(text), on_device(offsets), poly, places)
