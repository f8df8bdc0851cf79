"""How many shingles a few sampled documents share with every document: the truth that a filter's recall is checked
with.

    shared[d, i] = |A_i n B_d|    A_i the i-th sampled set, B_d the set of document d's shingles

Whatever resembles A_i by t shares at least t |A_i| shingles with it, so no near-duplicate of a sampled document is
missed and no filter is involved. Source: exhaustive counting; Broder 1997, section 2, for the sets.

Cost: one look-up a shingle, nearly all of which end at a bit table of 32 to 64 bits a sampled shingle; then a binary
search and one addition for each sampled document that holds the shingle.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from .launch import jit, shares


def reference(values, offsets, sample_values, sample_offsets):
    """Sizes of intersections, straight from the definition.

    Parameters
    ----------
    values : array of uint64
        Shingles of each document, in any order, repeats allowed.
    offsets : array of int64, shape (documents + 1,)
    sample_values : array of uint64
        Sampled sets: each sorted and without repeats.
    sample_offsets : array of int64, shape (samples + 1,)

    Returns
    -------
    array of int32, shape (documents, samples)
    """
    sampled = [set(sample_values[a:b].tolist()) for a, b in zip(sample_offsets[:-1], sample_offsets[1:], strict=True)]
    documents = [set(values[a:b].tolist()) for a, b in zip(offsets[:-1], offsets[1:], strict=True)]
    counts = [[len(document & sample) for sample in sampled] for document in documents]
    return np.array(counts, np.int32).reshape(len(documents), len(sampled))


@jit(parallel=True)
def _shared(values, offsets, bounds, keys, first_holder, holders, samples):
    bits = 6
    while (1 << bits) < 32 * len(keys):
        bits += 1
    shift = np.uint64(64 - bits)  # a fingerprint's highest bits choose the bit that says whether to look further
    maybe = np.zeros(1 << (bits - 6), np.uint64)
    for key in keys:
        at = key >> shift
        maybe[at >> np.uint64(6)] |= np.uint64(1) << (at & np.uint64(63))
    shared = np.zeros((len(offsets) - 1, samples), np.int32)
    for part in prange(len(bounds) - 1):
        seen_in = np.full(len(keys), -1, np.int64)
        for d in range(bounds[part], bounds[part + 1]):
            for i in range(offsets[d], offsets[d + 1]):
                at = values[i] >> shift
                if not (maybe[at >> np.uint64(6)] >> (at & np.uint64(63))) & np.uint64(1):
                    continue
                place = np.searchsorted(keys, values[i])
                if place == len(keys) or keys[place] != values[i] or seen_in[place] == d:
                    continue
                seen_in[place] = d
                for holder in range(first_holder[place], first_holder[place + 1]):
                    shared[d, holders[holder]] += 1
    return shared


def cpu(values, offsets, sample_values, sample_offsets):
    """As `reference`; documents in parallel, against one sorted list of all sampled shingles and their holders."""
    first, last = sample_offsets[0], sample_offsets[-1]
    owners = np.repeat(np.arange(len(sample_offsets) - 1), np.diff(sample_offsets))
    order = np.argsort(sample_values[first:last], kind="stable")
    keys, first_holder = np.unique(sample_values[first:last][order], return_index=True)
    first_holder = np.append(first_holder, len(order)).astype(np.int64)
    return _shared(values, offsets, shares(offsets), keys, first_holder, owners[order], len(sample_offsets) - 1)
