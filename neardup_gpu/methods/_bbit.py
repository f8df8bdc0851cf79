"""Min-hash with a few bits of each sample: packed rows, segments of them as keys, and estimates."""

from __future__ import annotations

from functools import cache
from typing import Any

from .. import theory
from ..definitions import draw
from ._modules import arrays, choice, kernels, launch, np
from .contract import RowEstimates

LENGTHS = (1, 2, 4, 8)
"""Bits that may be kept of each sample."""


@cache
def salts(seed: int, samples: int) -> np.ndarray:
    """Values that samples are mixed with: uint64, shape (samples,)."""
    return np.array([draw(seed, "b-bit", i) for i in range(samples)], np.uint64)


def packed(signatures: Any, seed: int, bits: int, backend: str | None) -> Any:
    """The rows of signatures, packed: uint64, shape (rows, words)."""
    return choice.kernel(kernels.bbit, backend)(signatures, salts(seed, signatures.shape[1]), bits)


def segments(words: Any, k: int, length: int) -> Any:
    """Cut packed rows into k segments of 1 to 64 bits each, as they follow one another: uint64, shape (rows, k)."""
    cut = launch.array_module(words).empty((len(words), k), np.uint64)
    for j in range(k):
        word, shift = divmod(j * length, 64)
        part = words[:, word] >> np.uint64(shift)
        if shift + length > 64:
            part = part | words[:, word + 1] << np.uint64(64 - shift)
        cut[:, j] = part & np.uint64(2**length - 1)
    return cut


def estimate(words: Any, left: np.ndarray, right: np.ndarray, bits: int, samples: int) -> RowEstimates:
    """(2**bits Q - 1) / (2**bits - 1), where Q is the share of equal groups of bits; see `theory.bbit_resemblance`.

    Groups are equal independently of one another, each with the probability `theory.bbit_share` of the resemblance. So
    the interval of that probability by `theory.mean_interval` becomes one of the resemblance with the same certainty,
    as the one is an increasing function of the other. Nothing is cut off below 0: an estimate or an end there stands
    for documents that have nothing in common.
    """

    left, right = arrays.same_device(words, left, right)
    backend = "cpu" if isinstance(words, np.ndarray) else "gpu"
    equal = choice.to_host(choice.kernel(kernels.bbit_equal, backend)(words, left, right, bits, samples))
    estimates, low, high = _intervals(samples, bits)[equal].T
    return RowEstimates(estimates, low, high)


@cache
def _intervals(samples: int, bits: int) -> np.ndarray:
    """For each number of equal groups the estimate and its 99% interval: rows of (estimate, low, high)."""
    shares = [equal / samples for equal in range(samples + 1)]
    rows = [(share, *theory.mean_interval(share, samples, 0.01)) for share in shares]
    return np.array([[theory.bbit_resemblance(value, bits) for value in row] for row in rows])
