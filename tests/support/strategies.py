"""Inputs of kernels as Hypothesis draws them, by the generators of `neardup_gpu.installation.kernel_inputs`.

Hypothesis chooses sizes, settings, short arrays and texts value by value, so that it finds the smallest input that
fails; long arrays are filled from a seed.
"""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from neardup_gpu.installation.kernel_inputs import CHARACTERS, EXTREMES, ILL_FORMED, INPUTS, Draw, near_fingerprints

WORDS = st.one_of(st.sampled_from(EXTREMES), st.integers(0, 3), st.integers(0, 2**64 - 1))
SEEDS = st.integers(0, 2**32 - 1)
MODULI = st.integers(0, 2**64 - 1).map(lambda q: np.uint64(q | 1 << 63))
SIZES = st.sampled_from([0, 1, 2, 3, 5, 10, 20, 40, 120, 400])
PIECES = st.one_of(
    st.text(st.sampled_from(CHARACTERS), max_size=12).map(str.encode),
    st.text(max_size=8).map(str.encode),
    st.text(st.sampled_from("abcXYZ019_ ,"), max_size=150).map(str.encode),
    st.text(st.sampled_from("\u0301\u0323\u0345\u05b0"), max_size=80).map(str.encode),
    st.binary(max_size=6),
    st.sampled_from(ILL_FORMED),
)


class DrawExample(Draw):
    """A `Draw` of what Hypothesis chooses."""

    def __init__(self, draw) -> None:
        super().__init__(np.random.default_rng(draw(SEEDS)))
        self.draw = draw

    def option(self, options):
        return self.draw(st.sampled_from(options))

    def integer(self, low, high):
        return self.draw(st.integers(low, high))

    def chance(self):
        return self.draw(st.booleans())

    def modulus(self):
        return self.draw(MODULI)

    def words(self, num_values):
        if num_values > 40:
            return super().words(num_values)
        return np.array(self.draw(st.lists(WORDS, min_size=num_values, max_size=num_values)), np.uint64)

    def offsets(self, num_values, mean):
        """Any rows: also none, empty ones at both ends, and values before the first and after the last."""
        cuts = self.draw(st.lists(st.integers(0, num_values), min_size=1, max_size=9))
        if self.draw(st.booleans()):
            cuts += [min(cuts), max(cuts)]
        return np.sort(np.array(cuts, np.int64))

    def text(self, num_bytes):
        pieces = self.draw(st.lists(PIECES, max_size=num_bytes // 5 + 1))
        if pieces and self.draw(st.booleans()):
            pieces.insert(0, pieces[0] * self.draw(st.integers(1, 60)))
        return np.frombuffer(b"".join(pieces), np.uint8)


@st.composite
def inputs(draw, kernel):
    """Inputs of a kernel."""
    return INPUTS[kernel](DrawExample(draw), draw(SIZES))


@st.composite
def fingerprints(draw, num_words=1):
    """Fingerprints near one another in many ways."""
    return near_fingerprints(DrawExample(draw), draw(st.sampled_from([0, 1, 2, 30, 120])), num_words)
