"""The tokens, shingles and fingerprint of one text, in one compiled call on the calling thread.

The answer is that of `tokens`, `shingles`, `sequences` and `distinct` one after another. Called one by one, they would
take and release the interpreter's lock nine times for a text of 1,000 words, and threads that sketch texts at the same
time would wait for one another: this call halves the time of a text, and leaves the lock for most of it.

Source: those of the four kernels.
Cost: the sum of theirs: 35 microseconds for 1,000 words.
"""

from __future__ import annotations

import numpy as np

from . import _unicode_table as unicode_table, distinct, sequences, shingles, tokens
from ._cpu import jit
from ._folding import _fold_documents, _measure_folded
from ._gf2 import for_widths, kept_weights
from .distinct import _sizes
from .sequences import _fingerprints
from .shingles import _count, _fill as _fill_shingles, _label
from .tokens import _fill as _fill_tokens


def reference(text, token_poly, w, mode, shingle_poly, bag_poly, document_polys):
    """Tokens, shingles and fingerprint, by the definitions of the four kernels.

    Parameters
    ----------
    text : array of uint8
        UTF-8, and invalid bytes.
    token_poly : uint64
        The modulus of `tokens`.
    w : int
        Tokens in a shingle.
    mode : "set", "bag" or "circular"
    shingle_poly, bag_poly : uint64
        The moduli of `shingles`.
    document_polys : array of uint64, shape (2,)
        The moduli of `sequences`.

    Returns
    -------
    tokens : array of uint64
    shingles : array of uint64
        In text order, with repeats.
    fingerprint : array of uint64, shape (2,)
        Of all tokens.
    distinct : int
        Number of different shingles.
    """
    whole = np.array([0, len(text)])
    words, word_offsets, _ = tokens.reference(text, whole, token_poly)
    found, offsets = shingles.reference(words, word_offsets, w, mode, shingle_poly, bag_poly)
    fingerprint = sequences.reference(words, word_offsets, document_polys)[0]
    return words, found, fingerprint, int(distinct.reference(found, offsets)[0])


@jit(
    *for_widths(
        "uint8[::1], uint8[::1], uint16[::1], uint16[:, ::1], uint32[::1], uint8[::1], uint8[::1], uint32[::1], "
        "uint8[::1], uint64, boolean, boolean, uint64, WEIGHTS, uint64, uint64, uint64, (uint64,) * 5, (uint64,) * 5"
    )
)
def _features(
    text, widest, page, sequence, starts, combining, kinds, spelled, spelling,
    token_poly, is_bag, is_circular, shingle_poly, weights, bag_poly, q0, q1, weights0, weights1,
):  # fmt: skip
    offsets, bounds = np.array([0, len(text)]), np.array([0, 1])
    begins, ends = np.zeros(2, np.int64), np.full(1, -1, np.int64)
    _measure_folded(0, 1, text, offsets, bounds, widest, ends)
    begins[1] = max(ends[0], 0)
    folded = np.empty(begins[1], np.uint8)
    counts, invalid = np.zeros(1, np.int64), np.zeros(1, np.int64)
    _fold_documents(
        0, 1, text, offsets, bounds, begins, ends, folded,
        page, sequence, starts, combining, kinds, spelled, spelling, counts, invalid,
    )  # fmt: skip
    words, word_offsets = np.empty(counts[0], np.uint64), np.array([0, counts[0]])
    _fill_tokens(0, 1, text, offsets, bounds, folded, begins, ends, word_offsets, words, token_poly)
    shingle_offsets = np.zeros(2, np.int64)
    _count(word_offsets, len(weights) - 1, is_circular, shingle_offsets)
    found = np.empty(shingle_offsets[1], np.uint64)
    _fill_shingles(0, 1, words, word_offsets, shingle_offsets, bounds, found, weights, is_circular, shingle_poly)
    if is_bag:
        _label(0, 1, found, shingle_offsets, bounds, bag_poly)
    fingerprint, size = np.empty((1, 2), np.uint64), np.empty(1, np.int64)
    _fingerprints(0, 1, words, word_offsets, bounds, q0, q1, weights0, weights1, fingerprint)
    _sizes(0, 1, found, shingle_offsets, bounds, size)
    return words, found, fingerprint[0], size[0]


def cpu(text, token_poly, w, mode, shingle_poly, bag_poly, document_polys):
    """As `reference`, in one compiled call."""
    widest, *table = unicode_table.load()
    q, (q0, q1) = np.uint64(shingle_poly), np.asarray(document_polys, np.uint64)
    return _features(
        text, widest, *table, np.uint64(token_poly), mode == "bag", mode == "circular",
        q, kept_weights(w, q), np.uint64(bag_poly), q0, q1, kept_weights(4, q0), kept_weights(4, q1),
    )  # fmt: skip
