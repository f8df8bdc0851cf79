"""Texts: a Rabin fingerprint of the bytes of each document, which tells identical texts from texts of the same words.

    row = the text as little-endian words, the last one filled up with zeros, and then the number of its bytes

A document's fingerprint is Rabin's, of its row. Source: Broder 1997, 4.1: two different texts of at most n bytes have
the same fingerprint with a probability of at most (8 n + 128) / 2**63.

Cost: linear. On the CPU, 128 bytes a reduction, at the end of a text 32 and 8. On a GPU, the words are laid out first,
one a thread.
"""

import numpy as np

from . import sequences
from ._cpu import jit, shares
from ._gf2 import advance, extend, kept_weights, prepare, rabin_words
from ._launch import cuda, kernel, know, namespace, on_device, row_of, to_host
from ._ragged import by_rows, sums_before
from ._utf8 import load_word


def reference(text, offsets, poly):
    """Fingerprints of whole texts, straight from the definition.

    Parameters
    ----------
    text : array of uint8, shape (n,)
        One document after another.
    offsets : array of int64, shape (documents + 1,)
    poly : uint64
        q of the modulus x**64 + q.

    Returns
    -------
    array of uint64, shape (documents,)
        An empty text has the fingerprint of one word, 0.
    """
    found = []
    for start, stop in zip(offsets[:-1], offsets[1:], strict=True):
        data = text[start:stop].tobytes()
        words = [int.from_bytes(data[i : i + 8], "little") for i in range(0, len(data), 8)]
        found.append(rabin_words([*words, len(data)], int(poly)))
    return np.array(found, np.uint64)


@jit()
def _last_word(text, i, start, stop):
    """The bytes from i to stop, 1 to 7 of them, as the low bytes of a word; the text begins at `start`."""
    if stop - start >= 8:
        return load_word(text, stop - 8) >> np.uint64(8 * (8 - (stop - i)))
    word = np.uint64(0)
    for j in range(i, stop):
        word |= np.uint64(text[j]) << np.uint64(8 * (j - i))
    return word


@jit()
def _extend_by_text(f, text, i, words, weights, modulus):
    """Extend the fingerprint f by the len(weights) - 1 words of text from i on, with one reduction."""
    for j in range(len(weights) - 1):
        words[j] = load_word(text, i + 8 * j)
    return extend(f, words, 0, weights, modulus)


@by_rows("uint8[::1], int64[::1], uint64, (uint64,) * 5, (uint64,) * 17, uint64[::1]")
def _fingerprints(begin, end, text, offsets, q, few, many, result):
    modulus = prepare(q)
    words = np.empty(len(many) - 1, np.uint64)
    for d in range(begin, end):
        start, stop = offsets[d], offsets[d + 1]
        i, f = start, q
        while i + 128 <= stop:
            f = _extend_by_text(f, text, i, words, many, modulus)
            i += 128
        while i + 32 <= stop:
            f = _extend_by_text(f, text, i, words, few, modulus)
            i += 32
        while i + 8 <= stop:
            f = advance(f ^ load_word(text, i), modulus)
            i += 8
        if i < stop:
            f = advance(f ^ _last_word(text, i, start, stop), modulus)
        result[d] = advance(f ^ np.uint64(stop - start), modulus)


def cpu(text, offsets, poly):
    """As `reference`; documents in parallel."""
    q = np.uint64(poly)
    result = np.empty(len(offsets) - 1, np.uint64)
    _fingerprints(shares(offsets), text, offsets, q, kept_weights(4, q), kept_weights(16, q), result)
    return result


@kernel("void(uint8[::1], int64[::1], int64[::1], uint64[::1])")
def _lay_out(text, offsets, firsts, words):
    """Lay out the words of all rows; the words of row d begin at firsts[d]. One thread per word."""
    k = np.int64(cuda.grid(1))
    if k >= len(words):
        return
    d = row_of(firsts, k)
    stop = offsets[d + 1]
    i = offsets[d] + np.int64(8) * (k - firsts[d])
    word = np.uint64(0)
    if i < stop:
        j, end = i, min(i + np.int64(8), stop)
        while j < end:
            word |= np.uint64(text[j]) << np.uint64(8 * (j - i))
            j += np.int64(1)
    else:
        word = np.uint64(stop - offsets[d])
    words[k] = word


def gpu(text, offsets, poly):
    """As `reference`; the words of all rows are laid out in parallel, then fingerprinted by `sequences`."""
    xp = namespace()
    on_host = sums_before((np.diff(to_host(offsets)) + 15) // 8)  # a word for the number of bytes, too
    text, offsets = on_device(text), on_device(offsets)
    firsts, words = xp.zeros(len(offsets), np.int64), xp.empty(int(on_host[-1]), np.uint64)
    xp.cumsum((offsets[1:] - offsets[:-1] + 15) // 8, out=firsts[1:])
    know(firsts, on_host)
    _lay_out.threads(len(words), text, offsets, firsts, words)
    return xp.ascontiguousarray(sequences.gpu(words, firsts, np.array([poly, poly], np.uint64))[:, 0])
