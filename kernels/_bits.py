"""Bits of fingerprints: how they are counted, and moved to the top of a word by a table's mask.

Fingerprints have 64 bits or 128, which are two words, the higher one first. A mask names at most 64 of their bits.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ._cpu import jit, parallel
from ._launch import cuda, kernel, on_device, to_host

FACTOR = np.uint64(0x9E3779B97F4A7C15)
"""2**64 divided by the golden ratio, made odd: the upper bits of a product with it are a hash of the other factor."""


def as_integers(words):
    """Each fingerprint or mask as one integer: as it is, or of two words."""
    return words.tolist() if words.ndim == 1 else [high << 64 | low for high, low in words.tolist()]


@jit()
def count_bits(word):
    """Number of ones in a uint64. LLVM knows these steps and puts one instruction in their place; NVIDIA's compiler
    does not, so kernels call `cuda.popc`."""
    v = np.uint64(word)
    v -= (v >> np.uint64(1)) & np.uint64(0x5555555555555555)
    v = (v & np.uint64(0x3333333333333333)) + ((v >> np.uint64(2)) & np.uint64(0x3333333333333333))
    v = (v + (v >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (v * np.uint64(0x0101010101010101)) >> np.uint64(56)


@jit()
def move(word, part, left):
    """The bits of `word` in `part`, rotated left by 0 to 63."""
    kept = np.uint64(word) & np.uint64(part)
    return (kept << np.uint64(left)) | (kept >> ((np.uint64(64) - np.uint64(left)) & np.uint64(63)))


def moves(mask, num_words=1):
    """Return the parts of a table's permutation: (part, rotation to the left) of each run of bits that move together.

    Returns
    -------
    array of uint64, shape (num_words * parts, 2)
        Equally many parts per word of a fingerprint, those of the first word first, filled up with empty parts.
    """
    num_bits, mask = 64 * num_words, int(mask)
    places = sorted(range(num_bits), key=lambda place: (not mask >> place & 1, -place))[:64]
    parts: list[dict[int, int]] = [{} for _ in range(num_words)]
    for target, place in enumerate(places):
        of_word, left = parts[num_words - 1 - place // 64], (63 - target - place) % 64
        of_word[left] = of_word.get(left, 0) | 1 << place % 64
    filled = np.zeros((num_words, max(map(len, parts)), 2), np.uint64)
    for word, some in enumerate(parts):
        filled[word, : len(some)] = np.array([(part, left) for left, part in some.items()], np.uint64).reshape(-1, 2)
    return filled.reshape(-1, 2)


class PermutationPlan(NamedTuple):
    """How fingerprints are permuted by each of some masks.

    moves : array of uint64, shape (tables, parts, 2)
        Equally many parts per word of a fingerprint, filled up with empty parts.
    tops : array of uint64, shape (tables,)
        The leading bits.
    before : array of uint64, shape (tables, tables); (tables, 0) for 128 bits
        before[t, :t] are the earlier masks, permuted as table t is: two words of it that agree in the bits of one of
        them were in one bucket before. Of 128 bits one word does not say.
    """

    moves: np.ndarray
    tops: np.ndarray
    before: np.ndarray


@lru_cache(16)
def _plan(masks: bytes, num_words: int) -> PermutationPlan:
    size = 8 * num_words
    each = [int.from_bytes(masks[at : at + size], "big") for at in range(0, len(masks), size)]
    if any(mask.bit_count() > 64 for mask in each):
        raise ValueError("a mask of more than 64 bits: they have to fit into one word")
    parts = [moves(mask, num_words).reshape(num_words, -1, 2) for mask in each]
    padded = np.zeros((len(each), num_words, max((some.shape[1] for some in parts), default=1), 2), np.uint64)
    for table, some in enumerate(parts):
        padded[table, :, : some.shape[1]] = some
    padded = padded.reshape(len(each), num_words * padded.shape[2], 2)
    tops = np.array([~(2**64 - 1 >> mask.bit_count()) & 2**64 - 1 for mask in each], np.uint64)
    before = np.zeros((len(each), len(each) if num_words == 1 else 0), np.uint64)
    for table in range(before.shape[1]):
        before[table, :table] = permuted_words(np.array(each[:table], np.uint64).reshape(-1, 1), padded[table])
    return PermutationPlan(padded, tops, before)


def plan(masks):
    """The `PermutationPlan` of some masks; kept for the next call, as a query takes less time than making it."""
    masks = to_host(masks)
    return _plan(masks.astype(">u8").tobytes(), masks.ndim)


def in_columns(fingerprints):
    """Fingerprints or masks of either length with a column for each word: shape (rows, 1) or (rows, 2)."""
    return fingerprints.reshape(len(fingerprints), fingerprints.ndim)


@jit()
def permuted_word(fingerprint, parts):
    """Return the first 64 bits of one fingerprint, of shape (words,), with the mask's bits leading."""
    word = np.uint64(0)
    per_word = len(parts) // len(fingerprint)
    for column in range(len(fingerprint)):
        for part in range(column * per_word, (column + 1) * per_word):
            word |= move(fingerprint[column], parts[part, 0], parts[part, 1])
    return word


@parallel("uint64[:, ::1], uint64[:, ::1], uint64[::1]", least=4096)
def _permute_words(begin, end, fingerprints, parts, words):
    for i in range(begin, end):
        words[i] = permuted_word(fingerprints[i], parts)


def permuted_words(fingerprints, parts):
    """Return `permuted_word` of each fingerprint, of shape (rows, words)."""
    words = np.empty(len(fingerprints), np.uint64)
    _permute_words(len(words), fingerprints, parts, words)
    return words


@kernel("void(uint64[:,::1], uint64[:,::1], uint64[::1])")
def _permute(fingerprints, parts, words):
    """One thread a fingerprint: its bits moved part by part."""
    at = cuda.grid(1)
    if at >= len(words):
        return
    word, part, column = np.uint64(0), np.uint64(0), np.uint64(0)
    num_words = np.uint64(fingerprints.shape[1])
    per_word = np.uint64(len(parts)) // num_words
    while column < num_words:
        column += np.uint64(1)
        while part < column * per_word:
            word |= np.uint64(move(fingerprints[at, column - np.uint64(1)], parts[part, 0], parts[part, 1]))
            part += np.uint64(1)
    words[at] = word


def permuted_on_device(xp, fingerprints, parts):
    """As `permuted_words`, on the device."""
    words = xp.empty(len(fingerprints), np.uint64)
    _permute.threads(len(words), fingerprints, on_device(parts), words)
    return words
