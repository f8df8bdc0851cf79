"""Dropped words: which tokens of each document are kept, if listed tokens are left out.

    a token is kept if it is not listed, or if all tokens of its document are listed

So a document of listed words alone keeps all its words, and is compared like any other.

Source: Manasse 2.1, where shingles are made without common words.
Cost: a look-up per token.
"""

import numpy as np

from ._constants import constant
from ._cpu import Rare, shares
from ._launch import know, namespace, on_device, to_host
from ._ragged import by_rows, sums_before
from .spots import _in_table, _table_of


def reference(tokens, offsets, listed):
    """Return which tokens are kept, straight from the definition.

    Parameters
    ----------
    tokens : array of uint64
        Fingerprints of tokens.
    offsets : array of int64, shape (documents + 1,)
    listed : array of uint64
        Fingerprints of the listed words, ascending, each once.

    Returns
    -------
    kept : array of bool, shape (tokens,)
        False for tokens outside of documents.
    offsets : array of int64, shape (documents + 1,)
        Where the documents are among the kept tokens.
    alone : int
        Number of documents that have tokens, all of them listed.
    """
    words, kept, new_offsets, alone = {int(word) for word in listed}, np.zeros(len(tokens), bool), [0], 0
    for start, stop in zip(offsets[:-1], offsets[1:], strict=True):
        others = [i for i in range(start, stop) if int(tokens[i]) not in words]
        if not others and start < stop:
            others, alone = list(range(start, stop)), alone + 1
        kept[others] = True
        new_offsets.append(new_offsets[-1] + len(others))
    return kept, np.array(new_offsets, np.int64), alone


@by_rows(Rare("uint64[::1], int64[::1], uint64[::1], boolean[::1], int64[::1], boolean[::1]"))
def _mark(begin, end, tokens, offsets, listed, kept, sizes, alone):
    table = _table_of(listed)
    for d in range(begin, end):
        size = 0
        for i in range(offsets[d], offsets[d + 1]):
            kept[i] = len(table) == 0 or not _in_table(tokens[i], table, listed[0])
            size += kept[i]
        alone[d] = size == 0 and offsets[d] < offsets[d + 1]
        if alone[d]:
            kept[offsets[d] : offsets[d + 1]] = True
            size = offsets[d + 1] - offsets[d]
        sizes[d] = size


def cpu(tokens, offsets, listed):
    """Return what `reference` returns: documents in parallel, listed words in a table."""
    kept, alone = np.zeros(len(tokens), np.bool_), np.empty(len(offsets) - 1, np.bool_)
    new_offsets = np.zeros(len(offsets), np.int64)
    _mark(shares(offsets), tokens, offsets, listed, kept, new_offsets[1:], alone)
    np.cumsum(new_offsets, out=new_offsets)
    return kept, new_offsets, int(np.count_nonzero(alone))


def gpu(tokens, offsets, listed):
    """Return what `reference` returns: listed words by bisection. The host waits for the number of kept tokens."""
    xp = namespace()
    tokens, offsets, listed = on_device(tokens), on_device(offsets), constant(listed)
    kept = xp.ones(len(tokens), bool)
    if len(listed):
        kept = listed[xp.minimum(xp.searchsorted(listed, tokens), len(listed) - 1)] != tokens
    before = sums_before(kept)
    sizes, others = xp.diff(offsets), before[offsets[1:]] - before[offsets[:-1]]
    alone = (sizes > 0) & (others == 0)
    places = xp.arange(len(tokens))
    rows = xp.searchsorted(offsets, places, side="right") - 1
    inside = (places >= offsets[0]) & (places < offsets[-1])
    if len(alone):
        kept |= alone[xp.clip(rows, 0, len(alone) - 1)]
    new_offsets = sums_before(xp.where(alone, sizes, others))
    on_host = to_host(new_offsets)
    know(new_offsets, on_host)
    return kept & inside, new_offsets, int(alone.sum())
