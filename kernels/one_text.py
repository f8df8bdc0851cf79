"""All that is computed of one text, in one compiled call on the calling thread.

The answer is that of `tokens`, `shingles`, `sequences`, `distinct`, `minhash` and `supershingles` one after another.
They would take and release Python's global lock eleven times for a text, so that threads that sketch texts at the same
time would wait for one another.

Source: those of the six kernels.
Cost: the sum of theirs: 50 microseconds for 1,000 words.
"""

from __future__ import annotations

import numpy as np

from . import _unicode_table as unicode_table, distinct, minhash, sequences, shingles, supershingles, tokens
from ._cpu import Rare, jit
from ._folding import _fold_documents, _measure_folded
from ._gf2 import for_widths, kept_weights, window_weights
from .distinct import _sizes
from .minhash import _signatures, padded
from .sequences import _fingerprints
from .shingles import _count, _fill as _fill_shingles, _label
from .supershingles import _features as _fill_features
from .tokens import _fill as _fill_tokens


def reference(text, token_poly, w, mode, shingle_poly, bag_poly, document_polys, a, b, k, s, bits, feature_poly):
    """Everything of one text, by the definitions of the six kernels.

    Parameters
    ----------
    text : array of uint8
        UTF-8, and invalid bytes.
    token_poly : uint64
        The modulus of `tokens`.
    w : int
        Tokens in a shingle.
    mode : "set", "bag", "circular" or "none"
        By "none" the text has no shingles.
    shingle_poly, bag_poly : uint64
        The moduli of `shingles`.
    document_polys : array of uint64, shape (2,)
        The moduli of `sequences`.
    a, b : arrays of uint32 or of uint64, shape (samples,)
        The permutations of `minhash`; of length 0 for texts that need no signature.
    k, s, bits, feature_poly
        What `supershingles` takes.

    Returns
    -------
    tokens : array of uint64
    shingles : array of uint64
        In text order, with repeats.
    fingerprint : array of uint64, shape (2,)
        Of all tokens.
    distinct : int
        Number of different shingles.
    signature : array of a's dtype, shape (1, samples)
    features : array of uint64, shape (1, k)
    """
    whole = np.array([0, len(text)])
    words, word_offsets, _ = tokens.reference(text, whole, token_poly)
    found, offsets = words[:0], np.zeros(2, np.int64)
    if mode != "none":
        found, offsets = shingles.reference(words, word_offsets, w, mode, shingle_poly, bag_poly)
    fingerprint = sequences.reference(words, word_offsets, document_polys)[0]
    size = int(distinct.reference(found, offsets)[0])
    signature = minhash.reference(found, offsets, a, b)
    return words, found, fingerprint, size, signature, supershingles.reference(signature, k, s, bits, feature_poly)


_OF_ALL = (
    "uint8[::1], uint8[::1], uint16[::1], uint16[:, ::1], uint32[::1], uint8[::1], uint8[::1], uint32[::1], "
    "uint8[::1], uint64, boolean, boolean, boolean, uint64, WEIGHTS, uint64, uint64, uint64, (uint64,) * 5, "
    "(uint64,) * 5, {0}[::1], {0}[::1], int64, uint64, int64, int64, int64, uint64[::1], uint64"
)


@jit(*for_widths(_OF_ALL.format("uint32")), *map(Rare, for_widths(_OF_ALL.format("uint64"))[:1]))
def _of_text(
    text, widest, page, sequence, starts, combining, kinds, spelled, spelling,
    token_poly, is_bag, is_circular, is_none, shingle_poly, weights, bag_poly, q0, q1, weights0, weights1,
    a, b, samples, shift, k, s, bits, feature_weights, feature_poly,
):  # fmt: skip
    offsets = np.array([0, len(text)])
    begins, ends = np.zeros(2, np.int64), np.full(1, -1, np.int64)
    _measure_folded(0, 1, text, offsets, widest, ends)
    begins[1] = max(ends[0], 0)
    folded = np.empty(begins[1], np.uint8)
    counts, invalid = np.zeros(1, np.int64), np.zeros(1, np.int64)
    _fold_documents(
        0, 1, text, offsets, begins, ends, folded,
        page, sequence, starts, combining, kinds, spelled, spelling, counts, invalid,
    )  # fmt: skip
    words, word_offsets = np.empty(counts[0], np.uint64), np.array([0, counts[0]])
    _fill_tokens(0, 1, text, offsets, folded, begins, ends, word_offsets, words, token_poly)
    shingle_offsets = np.zeros(2, np.int64)
    if not is_none:
        _count(word_offsets, len(weights) - 1, is_circular, shingle_offsets)
    found = np.empty(shingle_offsets[1], np.uint64)
    if not is_none:
        _fill_shingles(0, 1, words, word_offsets, shingle_offsets, found, weights, is_circular, shingle_poly)
    if is_bag:
        _label(0, 1, found, shingle_offsets, bag_poly)
    fingerprint, size = np.empty((1, 2), np.uint64), np.empty(1, np.int64)
    _fingerprints(0, 1, words, word_offsets, q0, q1, weights0, weights1, fingerprint)
    _sizes(0, 1, found, shingle_offsets, size)
    signature, features = np.empty((1, samples), a.dtype), np.empty((1, k), np.uint64)
    if samples > 0:
        _signatures(0, 1, found, shingle_offsets, a, b, samples, shift, signature)
        _fill_features(0, 1, signature, k, s, bits, feature_weights, feature_poly, features)
    return words, found, fingerprint[0], size[0], signature, features


def ready(token_poly, w, mode, shingle_poly, bag_poly, document_polys, a, b, k, s, bits, feature_poly):
    """Return `cpu` as a function of the text alone, for the other arguments of `reference`."""
    widest, *table = unicode_table.load()
    q, (q0, q1) = np.uint64(shingle_poly), np.asarray(document_polys, np.uint64)
    feature_poly = np.uint64(feature_poly)
    given = (
        widest, *table, np.uint64(token_poly), mode == "bag", mode == "circular", mode == "none", q, kept_weights(w, q),
        np.uint64(bag_poly), q0, q1, kept_weights(4, q0), kept_weights(4, q1), *padded(a, b), len(a),
        np.uint64(64 - 8 * a.itemsize), k, s, bits, window_weights(s, feature_poly), feature_poly,
    )  # fmt: skip
    return lambda text: _of_text(text, *given)


def cpu(text, *others):
    """Compute what `reference` does, in one compiled call."""
    return ready(*others)(text)
