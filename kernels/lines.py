"""Lines: the words of each line as one token, for configuration, lists and logs.

    token = the Rabin fingerprint of the fingerprints of the line's words, as `tokens` makes them

Lines end at CR, at LF, and at CR LF. Lines without words vanish. So do lines of borders alone. The place of a line
reaches from its first word to the end of its last two words, because a mark of the one may follow the other.

Source: Manasse 3.3 (fingerprints of fingerprints, by another polynomial).
Cost: that of `tokens`, and a reduction per word.
"""

import numpy as np

from . import sequences, tokens
from ._gf2 import rabin_words
from ._launch import array_module, bounds_of, know, on_device, to_host
from ._ragged import sums_before


def reference(text, offsets, poly, line_poly, places=False):
    """Return the fingerprints of the lines of each document, straight from the definition.

    Parameters
    ----------
    text, offsets, poly, places
        As `tokens` takes them.
    line_poly : uint64
        q of the modulus of lines.

    Returns
    -------
    values, offsets, invalid, begins, ends
        As `tokens` returns them.
    """
    values, new_offsets, invalid, spans = [], [0], 0, []
    for start, stop in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        for line in text[start:stop].tobytes().replace(b"\r", b"\n").split(b"\n"):
            end = start + len(line)
            words, _, num_invalid, begins, ends = tokens.reference(text, np.array([start, end]), poly, True)
            invalid += num_invalid
            if len(words):
                values.append(rabin_words(words, int(line_poly)))
                spans.append((begins[0], max(ends)))
            start = end + 1
        new_offsets.append(len(values))
    found = np.array(values, np.uint64), np.array(new_offsets, np.int64), invalid
    return (*found, *np.array(spans, np.int64).reshape(-1, 2).T.copy()) if places else found


def _lines(kernels, text, offsets, poly, line_poly, places):
    """Divide documents into lines, these into words, and fingerprint the words of each line."""
    make_tokens, make_sequences = kernels
    xp, (first, last) = array_module(text), bounds_of(offsets)
    stops = first + 1 + xp.flatnonzero((text[first:last] == ord("\n")) | (text[first:last] == ord("\r")))
    bounds = xp.unique(xp.concatenate([offsets, stops]))
    know(bounds, to_host(bounds))
    words, word_offsets, invalid, *placed = make_tokens(text, bounds, poly, places)
    values = make_sequences(words, word_offsets, np.array([line_poly, line_poly], np.uint64))[:, 0]
    full = word_offsets[1:] > word_offsets[:-1]
    new_offsets = sums_before(full)[xp.searchsorted(bounds, offsets)]
    found = xp.ascontiguousarray(values[full]), new_offsets, invalid
    if not places:
        return found
    begins, ends = placed
    first, last = word_offsets[:-1][full], word_offsets[1:][full] - 1
    return *found, begins[first], xp.maximum(ends[last], ends[xp.maximum(last - 1, first)])


def cpu(text, offsets, poly, line_poly, places=False):
    """Return what `reference` returns, from the kernels of words and sequences."""
    return _lines((tokens.cpu, sequences.cpu), text, offsets, poly, line_poly, places)


def gpu(text, offsets, poly, line_poly, places=False):
    """Return what `reference` returns, from the kernels of words and sequences."""
    return _lines((tokens.gpu, sequences.gpu), on_device(text), on_device(offsets), poly, line_poly, places)
