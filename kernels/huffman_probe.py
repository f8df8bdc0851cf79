"""Probing compressed tables: as `hamming_probe` answers, from tables that `huffman_encode` compressed.

Source: Manku, Jain and Das Sarma 2007, section 3.2.
Cost: for a few queries, the blocks that their buckets lie in are decoded, one after another; for many, each block that
some query touches is decoded once.
"""

import numpy as np

from . import gather, hamming_probe, hamming_table, huffman_decode
from ._bits import count_bits, permuted_word, plan
from ._cpu import Rare, jit
from ._huffman import BLOCK_BITS, MOST_WORDS, check_shapes, damaged, decoding_tables, next_word
from ._launch import namespace, on_device, to_host
from ._matches import DistinctPairs
from ._search import interpolation_search


def reference(
    lengths, offsets, blocks, keys, firsts, rows, masks, queries, radius, bucket_limit, bucket_probe, fingerprints=None
):
    """As `hamming_probe.reference` answers, from compressed tables.

    Parameters
    ----------
    lengths, offsets, blocks, keys, firsts
        As in `_huffman.HuffmanTables`.
    rows : array of uint32, shape (tables, n)
    masks, queries, radius, bucket_limit, bucket_probe, fingerprints
        As for `hamming_probe.reference`.

    Returns
    -------
    query, row, distance, num_large, num_uncompared
        As of `hamming_probe.reference`, from the tables that were compressed.

    Raises
    ------
    ValueError
        As `huffman_decode.reference`, if a block that is decoded gives reason.
    """
    check_shapes(lengths, offsets, blocks, firsts, keys, rows)
    words = huffman_decode.reference(lengths, offsets, blocks, firsts, np.arange(len(blocks)))
    words = words.reshape(rows.shape)
    return hamming_probe.reference(words, rows, masks, queries, radius, bucket_limit, bucket_probe, fingerprints)


def _touched_blocks(xp, keys, heads, queries, top):
    """Numbers of the blocks that hold a bucket of some query, or where it would be, in order."""
    first = xp.searchsorted(keys, queries & top)
    after = xp.searchsorted(heads, queries | ~top, side="right")
    there = first < after
    begun, ended = (xp.bincount(places[there], minlength=len(keys) + 1) for places in (first, after))
    return xp.flatnonzero(xp.cumsum(begun - ended)[:-1] > 0)


def _probe_by_blocks(xp, backend, tables, rows, masks, queries, *limits):
    """As `reference`: of each table the blocks that some query touches are decoded, each once, and then probed.

    What is decoded of a table is a table too, without the rows that no query comes near: the same buckets, in the same
    order.
    """
    table, decode, gathered, probe = backend
    lengths, offsets, blocks, keys, firsts = tables
    found, num_large, num_uncompared = DistinctPairs(None if xp is np else xp, in_runs=True), 0, 0
    places = to_host(offsets).tolist()
    for number, top in enumerate(plan(masks).tops):
        here = slice(places[number], places[number + 1])
        permuted, _ = table(queries, masks[number], False)
        chosen = places[number] + _touched_blocks(xp, keys[here], xp.ascontiguousarray(blocks[here, 0]), permuted, top)
        words = decode(lengths, offsets, blocks, firsts, chosen)
        order, _ = gathered(rows.reshape(-1), firsts, chosen)
        one = masks[number : number + 1]
        query, row, distance, large, uncompared = probe(
            words[None], order.astype(np.uint32)[None], one, queries, *limits
        )
        found.add(query.view(np.uint64) << np.uint64(32) | row.view(np.uint64), distance)
        num_large += large
        num_uncompared += uncompared
    return *found.result(), num_large, num_uncompared


_DAMAGED = -1  # in place of the number of large buckets, the block's number after it


_FEW = 32  # queries of which each decodes what it touches; more if there are two blocks of each table for each query


@jit()
def _compare_block(block, book, rows, word, low, high, radius, bucket, matches, upper):
    """Decode a block until the bucket, from `low` to `high`, ends; keep which of its first words are near to `word`.

    Parameters
    ----------
    rows : array of uint32
        One for each word of the block.
    bucket : (int, int, int)
        How many words of the bucket came before this block, how many to compare at most, and of how many the matches
        count even if the bucket is large.
    matches : (array of uint64, array of uint8, int, int)
        Arrays for ``upper | row`` and the distance of matches, for their number, and for the number that counts.

    Returns
    -------
    met, size, few : int
        Words of the bucket, matches, and matches that count, with this block's; `met` is -1 if the block is damaged.
    """
    met, most, probe = bucket
    packed, distance, size, few = matches
    other, at = block[0], np.uint64(64)
    for i in range(len(rows)):
        if i:
            other, at = next_word(block, book, other, at)
            if at > np.uint64(BLOCK_BITS):
                return -1, size, few
        if other > high:
            break
        if other < low:
            continue
        if met < most:
            bits = count_bits(word ^ other)
            if bits <= np.uint64(radius):
                packed[size] = upper | np.uint64(rows[i])
                distance[size] = bits
                size += 1
            if met < probe:
                few = size
        met += 1
    return met, size, few


@jit()
def _last_of_bucket(blocks, keys, first, stop, high):
    """The last block, from number `first` to before `stop`, that holds a word of the bucket which ends at `high`.

    Of `first` it is known that it does; `keys` are those of the blocks of the table, which ends at `stop`.
    """
    after = stop
    if high < np.uint64(2**64 - 1):
        after = stop - len(keys) + interpolation_search(keys, high + np.uint64(1), 0, len(keys))
    last = after if after < stop and blocks[after, 0] <= high else after - 1
    return max(first, last)


@jit(
    Rare(
        "uint16[:, ::1], int64[::1], uint64[:, ::1], uint64[::1], int64[::1], uint32[:, ::1], uint64[::1], "
        "uint64[:, :, ::1], uint64[::1], int64, int64, int64"
    )
)
def _search(books, offsets, blocks, keys, firsts, rows, queries, parts, tops, radius, bucket_limit, bucket_probe):
    """(query << 32 | row, distance) of all that is found, some more than once; large buckets, and what they left out.

    From the block that a bucket begins in words are decoded until it ends, and compared meanwhile. As soon as a bucket
    is known to be large, no more than its last block is decoded, to see where it ends. The number of large buckets is
    _DAMAGED if a block is, whose number stands in place of what they left out.
    """
    packed, distance, size = np.empty(MOST_WORDS, np.uint64), np.empty(MOST_WORDS, np.uint8), 0
    num_large = num_uncompared = 0
    n, most = rows.shape[1], max(bucket_limit, bucket_probe)
    for query in range(len(queries)):
        for table in range(len(tops)):
            here, stop = keys[offsets[table] : offsets[table + 1]], offsets[table + 1]
            word = permuted_word(queries[query : query + 1], parts[table])
            low, high = word & tops[table], word | ~tops[table]
            number = offsets[table] + interpolation_search(here, low, 0, len(here))
            met, few = 0, size  # words of the bucket so far; matches among its first `bucket_probe`
            while number < stop and blocks[number, 0] <= high:
                count, place = firsts[number + 1] - firsts[number], firsts[number] - table * n
                if place < 0 or count < 1 or place + count > n:
                    return packed, distance, _DAMAGED, number
                if size + count > len(packed):
                    packed = np.concatenate((packed, np.empty(size + count, np.uint64)))
                    distance = np.concatenate((distance, np.empty(size + count, np.uint8)))
                met, size, few = _compare_block(
                    blocks[number], books[table], rows[table, place : place + count], word, low, high, radius,
                    (met, most, bucket_probe), (packed, distance, size, few), np.uint64(query) << np.uint64(32),
                )  # fmt: skip
                if met < 0:
                    return packed, distance, _DAMAGED, number
                number += 1
                if met > bucket_limit and met >= bucket_probe and number < stop and blocks[number, 0] <= high:
                    last = _last_of_bucket(blocks, here, number, stop, high)
                    met += firsts[last] - firsts[number]
                    number = last
            if met > bucket_limit:
                num_large += 1
                num_uncompared += met - min(met, bucket_probe)
                size = few
    return packed[:size], distance[:size], num_large, num_uncompared


def _are_few(blocks, masks, queries):
    """Whether queries decode what they touch, each by itself."""
    return len(queries) <= max(_FEW, len(blocks) // (2 * max(1, len(masks)))) and queries.ndim == 1


@jit()
def _runs_touched(offsets, keys, queries, parts, tops):
    """See `touched`."""
    num_tables = len(tops)
    starts = np.empty(len(queries) * num_tables, np.int64)
    stops = np.empty_like(starts)
    for query in range(len(queries)):
        for table in range(num_tables):
            here = keys[offsets[table] : offsets[table + 1]]
            word = permuted_word(queries[query : query + 1], parts[table])
            low, high = word & tops[table], word | ~tops[table]
            start, stop = interpolation_search(here, low, 0, len(here)), len(here)
            if high < np.uint64(2**64 - 1):
                stop = min(interpolation_search(here, high + np.uint64(1), 0, len(here)) + 2, stop)
            at = query * num_tables + table
            starts[at], stops[at] = offsets[table] + max(start - 1, 0), offsets[table] + stop
    return starts, stops


def touched(offsets, blocks, keys, masks, queries):
    """Which blocks, and keys, decide the answer of `cpu` to a few queries; None for many.

    Of each query and table: from the block before the one in which its bucket begins, or would, to the second whose key
    is beyond the bucket. As in `hamming_probe.touched`, whatever else a search reads on its way may be damaged.

    Returns
    -------
    starts, stops : arrays of int64, shape (queries x tables,)
        Runs of blocks.
    """
    if not _are_few(blocks, masks, queries):
        return None
    prepared = plan(masks)
    return _runs_touched(offsets, keys, queries, prepared.moves, prepared.tops)


def cpu(
    lengths, offsets, blocks, keys, firsts, rows, masks, queries, radius, bucket_limit, bucket_probe, fingerprints=None
):
    """As `reference`: a few queries decode what they touch, as they go; for many each block is decoded once.

    For many this takes 12 bytes for each word of the blocks of a table that some query touches, at most the raw table.
    """
    check_shapes(lengths, offsets, blocks, firsts, keys, rows)
    if not _are_few(blocks, masks, queries):
        backend = hamming_table.cpu, huffman_decode.cpu, gather.cpu, hamming_probe.cpu
        limits = bucket_limit, bucket_probe
        tables = lengths, offsets, blocks, keys, firsts
        return _probe_by_blocks(np, backend, tables, rows, masks, queries, radius, *limits, fingerprints)
    prepared = plan(masks)
    packed, distance, num_large, num_uncompared = _search(
        decoding_tables(lengths), offsets, blocks, keys, firsts, rows, queries, prepared.moves, prepared.tops, radius,
        bucket_limit, bucket_probe,
    )  # fmt: skip
    if num_large == _DAMAGED:
        raise damaged(num_uncompared)
    found = DistinctPairs()
    found.add(packed, distance)
    return *found.result(), num_large, num_uncompared


def _gather_rows(rows, firsts, numbers):
    """As `gather.gpu`, whose values are words."""
    return gather.gpu(rows.astype(np.uint64), firsts, numbers)


def gpu(
    lengths, offsets, blocks, keys, firsts, rows, masks, queries, radius, bucket_limit, bucket_probe, fingerprints=None
):
    """As `reference`; of each table the blocks that some query touches are decoded, each once, and probed."""
    check_shapes(lengths, offsets, blocks, firsts, keys, rows)
    xp = namespace()
    backend = hamming_table.gpu, huffman_decode.gpu, _gather_rows, hamming_probe.gpu
    tables = lengths, offsets, *(on_device(array) for array in (blocks, keys, firsts))
    rows, limits = on_device(rows), (radius, bucket_limit, bucket_probe)
    return _probe_by_blocks(xp, backend, tables, rows, to_host(masks), queries, *limits, fingerprints)
