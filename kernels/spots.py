"""Spots: stop words with the c words that follow them, as Rabin fingerprints of the token fingerprints.

    A spot is a chain (a, b1, ..., bc): a stop word a at some place of a document, and the next c tokens after it that
    are not stop words. A place after which fewer than c such tokens are left has no spot. A document without spots has
    shingles instead: its c consecutive tokens, as of `shingles`, and so is never like every other one without spots.

Headlines, captions and lists hardly have stop words, sentences do, so that spots are features of a story, however
a page is decorated. The stop word belongs to its feature, as in the paper, whose spots of "At a rally to kick off" at
"a", with c = 2, are a:rally:kick; the paper's distance d is 1 here, and every stop word is an antecedent.

Values are in text order with repeats; `sets` makes the set of them. A spot has c + 1 tokens and a shingle here at most
c, so the leading 1 of Rabin fingerprints keeps the two apart. Source: Theobald, Siddharth and Paepcke 2008, section 3;
Manasse 2.1.

Cost: a look-up a token, and c + 1 products a spot.
"""

from itertools import islice

import numpy as np

from ._constants import constant, constants
from ._cpu import Rare, jit, shares, types
from ._gf2 import (
    advance,
    advance_by_tables,
    byte_tables,
    extend,
    for_widths,
    kept_weights,
    prepare,
    rabin_words,
    windows,
)
from ._launch import TABLES, cuda, kernel, load, namespace, on_device, row_of
from ._ragged import by_rows, sums_before


def reference(tokens, offsets, stops, c, poly):
    """Features of each document, straight from the definition.

    Parameters
    ----------
    tokens : array of uint64
        Fingerprints of tokens, in text order.
    offsets : array of int64, shape (documents + 1,)
    stops : array of uint64
        Fingerprints of the stop words, ascending, each once.
    c : int
        Tokens that follow a stop word in a spot, at least 1.
    poly : uint64
        Modulus of the features.

    Returns
    -------
    values : array of uint64
    offsets : array of int64, shape (documents + 1,)
        Documents without tokens have no features.
    without : int
        Documents that have tokens and no spots, so that they have shingles.
    """
    stop_words = {int(stop) for stop in stops}
    values, new_offsets, without = [], [0], 0
    for start, end in zip(offsets[:-1], offsets[1:], strict=True):
        words = [int(token) for token in tokens[start:end]]
        chains = []
        for at, word in enumerate(words):
            following = list(islice((other for other in islice(words, at + 1, None) if other not in stop_words), c))
            if word in stop_words and len(following) == c:
                chains.append([word, *following])
        if words and not chains:
            without += 1
            chains = [words[i : i + c] for i in range(max(1, len(words) - c + 1))]
        values.extend(rabin_words(chain, int(poly)) for chain in chains)
        new_offsets.append(len(values))
    return np.array(values, np.uint64), np.array(new_offsets, np.int64), without


# A table of stop words: free places hold the first of them, which needs no place of its own.


@jit()
def _table_of(stops):
    """Stop words by their lowest bits, at most a quarter of the places taken; empty if there are none."""
    places = 0
    if len(stops):
        places = 4
        while places < 4 * len(stops):
            places *= 2
    table = np.empty(places, np.uint64)
    if places:
        table[:] = stops[0]
        for stop in stops[1:]:
            at = stop & np.uint64(places - 1)
            while table[at] != stops[0]:
                at = (at + np.uint64(1)) & np.uint64(places - 1)
            table[at] = stop
    return table


@jit()
def _in_table(token, table, first):
    at = token & np.uint64(len(table) - 1)
    while table[at] != token and table[at] != first:
        at = (at + np.uint64(1)) & np.uint64(len(table) - 1)
    return table[at] == token


@by_rows("uint64[::1], int64[::1], uint64[::1], int64, boolean[::1], int64[::1], boolean[::1]")
def _mark(begin, end, tokens, offsets, stops, c, is_stop, counts, without):
    """Mark the stop words, and count the features of each document."""
    table = _table_of(stops)
    for d in range(begin, end):
        following = spots = 0
        for i in range(offsets[d + 1] - 1, offsets[d] - 1, -1):
            stop = len(table) > 0 and _in_table(tokens[i], table, stops[0])
            is_stop[i] = stop
            following += not stop
            spots += stop and following >= c
        length = offsets[d + 1] - offsets[d]
        without[d] = length > 0 and spots == 0
        counts[d] = max(1, length - c + 1) if without[d] else spots


@by_rows(
    *map(
        Rare,
        for_widths(
            "uint64[::1], int64[::1], int64[::1], boolean[::1], boolean[::1], uint64[::1], int64[::1], uint64[::1], "
            "WEIGHTS, uint64"
        ),
    ),
    is_wide=True,
)
def _fill(lower, upper, tokens, offsets, new_offsets, is_stop, without, others, places, values, weights, q):
    """`others` and `places` are buffers for the tokens of each document that are not stop words, and for their places.

    No branch depends on which tokens are stop words, which the processor could not predict.
    """
    modulus = prepare(q)
    c = len(weights) - 1
    for d in range(lower, upper):
        start, end, out = offsets[d], offsets[d + 1], new_offsets[d]
        if without[d]:
            whole = max(0, end - start - c + 1)
            windows(tokens, start, whole, weights, modulus, values, out)
            if whole == 0:
                f = q
                for i in range(start, end):
                    f = advance(f ^ tokens[i], modulus)
                values[out] = f
            continue
        other = place = start
        for i in range(start, end):
            others[other], places[place] = tokens[i], i
            other += not is_stop[i]
            place += is_stop[i]
        for j in range(new_offsets[d + 1] - out):  # chains that the document does not cut off come first
            i = places[start + j]
            values[out + j] = extend(advance(q ^ tokens[i], modulus), others, i - j, weights, modulus)


def cpu(tokens, offsets, stops, c, poly):
    """As `reference`; documents in parallel, the chain of a spot summed before one reduction."""
    q, num_rows = np.uint64(poly), len(offsets) - 1
    is_stop, without = np.empty(len(tokens), np.bool_), np.empty(num_rows, np.bool_)
    bounds, new_offsets = shares(offsets), np.zeros(num_rows + 1, np.int64)
    _mark(bounds, tokens, offsets, stops, c, is_stop, new_offsets[1:], without)
    np.cumsum(new_offsets, out=new_offsets)
    values, others = np.empty(new_offsets[-1], np.uint64), np.empty(len(tokens), np.uint64)
    places, weights = np.empty(len(tokens), np.int64), kept_weights(c, q)
    _fill(bounds, tokens, offsets, new_offsets, is_stop, without, others, places, values, weights, q)
    return values, new_offsets, int(np.count_nonzero(without))


EACH = 8  # features of a thread, so that a block copies its tables once for 2,048


@kernel(
    "void(uint64[::1], uint64[::1], int64[::1], int64[::1], int64[::1], boolean[::1], int64[::1], int64[::1], int64, "
    "uint64, uint64[::1], uint64[::1])"
)
def _fingerprint(tokens, others, places, begins, firsts, without, offsets, new_offsets, c, q, tables, values):
    """One thread `EACH` features: of a spot, at a stop word and then along `others`; of a shingle, along the tokens."""
    modulus = cuda.shared.array(TABLES, types.uint64)
    load(tables, modulus)
    at = np.int64(cuda.blockIdx.x) * EACH * cuda.blockDim.x + cuda.threadIdx.x
    end = min(at + EACH * cuda.blockDim.x, len(values))
    d = -1
    while at < end:
        if d < 0 or new_offsets[d + 1] <= at:
            d = row_of(new_offsets, at)
        i = at - new_offsets[d]
        f = q
        if without[d]:
            first = offsets[d] + i
            for j in range(first, min(first + c, offsets[d + 1])):
                f = np.uint64(advance_by_tables(f ^ tokens[j], modulus))
        else:
            spot = firsts[d] + i
            f = np.uint64(advance_by_tables(f ^ tokens[places[spot]], modulus))
            for j in range(begins[spot], begins[spot] + c):
                f = np.uint64(advance_by_tables(f ^ others[j], modulus))
        values[at] = f
        at += cuda.blockDim.x


def gpu(tokens, offsets, stops, c, poly):
    """As `reference`: stop words by bisection, the other tokens gathered, then features in parallel."""
    xp = namespace()
    tokens, offsets, stops = on_device(tokens), on_device(offsets), constant(stops)
    is_stop = xp.zeros(len(tokens), bool)
    if len(stops):
        is_stop = stops[xp.minimum(xp.searchsorted(stops, tokens), len(stops) - 1)] == tokens
    before = sums_before(~is_stop)
    others = tokens[~is_stop]
    places = xp.flatnonzero(is_stop)  # of spots, when those outside documents and of too short chains have gone
    places = places[(places >= offsets[0]) & (places < offsets[-1])]
    ends = offsets[xp.searchsorted(offsets, places, side="right")]
    places = places[before[places] + c <= before[ends]]
    firsts = xp.searchsorted(places, offsets)
    sizes, spots = xp.diff(offsets), xp.diff(firsts)
    without = (sizes > 0) & (spots == 0)
    new_offsets = sums_before(xp.where(without, xp.maximum(sizes - (c - 1), 1), spots))
    values = xp.empty(int(new_offsets[-1]), np.uint64)
    (tables,) = constants(byte_tables, np.uint64(poly))
    _fingerprint.threads(
        -(-len(values) // EACH),
        tokens,
        others,
        places,
        before[places],
        firsts,
        without,
        offsets,
        new_offsets,
        c,
        np.uint64(poly),
        tables,
        values,
    )
    return values, new_offsets, int(without.sum())
