"""Compressed tables of sorted words: Huffman codes of where successive words differ, in blocks of 1,024 bytes.

Two successive words of a sorted table share their leading bits. Let h, from 0 to 63, be the position of the highest
bit in which they differ, counted from the lowest. What tells a word from the one before it is h and the h bits below:

    block     the first word whole (64 bits); then for each word the code of its symbol, and the h bits below
              position h of its xor with the word before; zeros once the next word no longer fits
    symbol    h + 1, and 0 for a word equal to the one before, which the paper does not name
    code      canonical, from a table's 65 code lengths: in the order of (length, symbol) each symbol takes the next
              code. Lengths are those of the shortest code of at most 12 bits for the table's own counts, so that one
              look-up decodes a symbol. A symbol alone has a code of 1 bit: so no block holds more than 8,129 words.
    key       of a block: its last word

Bits are counted from the highest of a block's first uint64 on. Several tables of n words, as `hamming.probe_*` takes
them, are encoded one after another, each with a code and blocks of its own.

The code takes less than H + 1.03 bits a symbol, H the entropy of the symbols: lengths ceil(-log2 q) with q = (1 - e) p
+ e / 65 and e = 65 / 4096 are at most 12, and the shortest code is no longer than these. n random words take about n
(64 - log2 n + log2 e) bits in any code (`information_bits`), in this one 2.0 more each, and 2% more for first words,
block ends, keys and numbers (`expected_bits`).

Source: Manku, Jain and Das Sarma 2007, section 3.2. Code lengths: Larmore and Hirschberg 1990 (package-merge).
Cost: decoding is serial within a block, for each word one look-up in a table of 8 kB and two shifts.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numba
import numpy as np
from numba import prange

from . import gather, hamming
from ._launch import cuda, jit, kernel, namespace, row_of, to_host
from .hamming import count_bits, interpolation_search, move

BLOCK_BITS = 8 * 1024
SYMBOLS = 65
LONGEST = 12
"""Bits of the longest code."""

_WORDS = BLOCK_BITS // 64
_ROOM = BLOCK_BITS - 64  # for codes, after the first word
_MOST = 1 + _ROOM  # words of a block, each but the first of a bit or more
_FEWEST = 1 + _ROOM // (LONGEST + 63)  # words of a block that another follows


class Tables(NamedTuple):
    """Compressed tables of n words each.

    lengths : array of uint8, shape (tables, 65)
        Bits of each symbol's code, 0 for symbols that the table lacks.
    offsets : array of int64, shape (tables + 1,)
        Number of the first block of each table.
    blocks : array of uint64, shape (num_blocks, 128)
    keys : array of uint64, shape (num_blocks,)
        The last word of each block.
    firsts : array of int64, shape (num_blocks + 1,)
        How many words come before each block, over all tables: those of table t are numbered from t n on.
    """

    lengths: np.ndarray
    offsets: np.ndarray
    blocks: np.ndarray
    keys: np.ndarray
    firsts: np.ndarray


def code_lengths(counts):
    """Bits of each symbol in a code that takes the fewest for these counts, none of more than 12.

    Package-merge: 12 times the symbols and the pairs of the round before are put in order, and paired; a symbol's
    length is how often it is in the first m - 1 pairs of the last round, m symbols occurring. What weighs the same is
    ordered by the numbers of its symbols.

    Parameters
    ----------
    counts : sequence of at most 65 numbers

    Returns
    -------
    array of uint8
        0 for each count that is 0; 1 for one that alone is not.
    """
    leaves: list[tuple[float, tuple[int, ...]]] = [(n, (symbol,)) for symbol, n in enumerate(counts) if n > 0]
    pairs: list[tuple[float, tuple[int, ...]]] = []
    lengths = np.zeros(len(counts), np.uint8)
    if len(leaves) == 1:
        lengths[leaves[0][1]] = 1
    for _ in range(LONGEST):
        merged = sorted(leaves + pairs)
        pairs = [(a + b, some + others) for (a, some), (b, others) in zip(merged[::2], merged[1::2], strict=False)]
    for _, symbols in pairs[: max(0, len(leaves) - 1)]:
        for symbol in symbols:
            lengths[symbol] += 1
    return lengths


def _codes(lengths):
    """{symbol: its code, as a string of 0 and 1}; ValueError if there is no such code."""
    codes, code, before = {}, -1, 0
    for length, symbol in sorted((length, symbol) for symbol, length in enumerate(lengths.tolist()) if length):
        code = code + 1 << length - before
        before = length
        if length > LONGEST or code >> length:
            raise ValueError("these code lengths are of no prefix code of at most 12 bits")
        codes[symbol] = f"{code:0{length}b}"
    return codes


def encode_reference(words):
    """Compress tables, from the definition.

    Parameters
    ----------
    words : array of uint64, shape (tables, n)
        Each row in ascending order, for its code to be short; `probe_*` needs the order of the leading bits, and
        `decode_*` none.

    Returns
    -------
    Tables
        Without blocks if there are no words.
    """
    lengths, offsets, blocks, keys, firsts = [], [0], [], [], []
    for number, table in enumerate(words.tolist()):
        symbols = [(a ^ b).bit_length() for a, b in zip(table, table[1:], strict=False)]
        lengths.append(code_lengths([symbols.count(symbol) for symbol in range(SYMBOLS)]))
        codes = _codes(lengths[-1])
        bits: list[str] = []
        for i, word in enumerate(table):
            h = max(symbols[i - 1] - 1, 0) if i else 64
            below = f"{word ^ table[i - 1]:064b}"[64 - h :] if i else ""
            coded = codes[symbols[i - 1]] + below if i else ""
            if i == 0 or len(bits[-1]) + len(coded) > BLOCK_BITS:
                bits.append(f"{word:064b}")
                keys.append(word)
                firsts.append(number * len(table) + i)
            else:
                bits[-1] += coded
                keys[-1] = word
        padded = [block.ljust(BLOCK_BITS, "0") for block in bits]
        blocks += [[int(block[at : at + 64], 2) for at in range(0, BLOCK_BITS, 64)] for block in padded]
        offsets.append(len(blocks))
    return Tables(
        np.array(lengths, np.uint8).reshape(-1, SYMBOLS),
        np.array(offsets, np.int64),
        np.array(blocks, np.uint64).reshape(-1, _WORDS),
        np.array(keys, np.uint64),
        np.array([*firsts, words.size], np.int64),
    )


def decode_reference(lengths, offsets, blocks, firsts, numbers):
    """The words of some blocks.

    Parameters
    ----------
    lengths, offsets, blocks, firsts
        Of `Tables`.
    numbers : array of int64
        Of blocks, in any order, repeats allowed.

    Returns
    -------
    array of uint64
        The words of each of these blocks, one block after another.

    Raises
    ------
    ValueError
        If there is no such block, its words are not so many, or the code lengths are of no code. Whatever else is
        wrong with a block gives wrong words.
    """
    _check(lengths, offsets, blocks, firsts)
    words = []
    for number, size in zip(numbers.tolist(), _sizes(np, firsts, numbers).tolist(), strict=True):
        table = next(t for t in range(len(lengths)) if number < offsets[t + 1])
        symbols = {code: symbol for symbol, code in _codes(lengths[table]).items()}
        bits = "".join(f"{word:064b}" for word in blocks[number].tolist())
        word, at = int(bits[:64], 2), 64
        words.append(word)
        for _ in range(size - 1):
            code = next((bits[at : at + n] for n in range(1, LONGEST + 1) if bits[at : at + n] in symbols), None)
            if code is None:
                raise _damaged(number)
            at += len(code)
            if symbol := symbols[code]:
                word ^= int("1" + bits[at : at + symbol - 1], 2)
                at += symbol - 1
            if at > BLOCK_BITS:
                raise _damaged(number)
            words.append(word)
    return np.array(words, np.uint64)


def probe_reference(
    lengths,
    offsets,
    blocks,
    keys,
    firsts,
    rows,
    masks,
    queries,
    radius,
    bucket_limit,
    bucket_probe,
    fingerprints=None,
):
    """As `hamming.probe_reference` answers, from compressed tables.

    Parameters
    ----------
    lengths, offsets, blocks, keys, firsts
        As in `Tables`.
    rows : array of uint32, shape (tables, n)
    masks, queries, radius, bucket_limit, bucket_probe, fingerprints
        As for `hamming.probe_reference`.

    Returns
    -------
    query, row, distance, num_large, num_uncompared
        As of `hamming.probe_reference`, from the tables that were compressed.

    Raises
    ------
    ValueError
        As `decode_reference`, if a block that is decoded gives reason.
    """
    _check(lengths, offsets, blocks, firsts, keys, rows)
    words = decode_reference(lengths, offsets, blocks, firsts, np.arange(len(blocks)))
    words = words.reshape(rows.shape)
    return hamming.probe_reference(words, rows, masks, queries, radius, bucket_limit, bucket_probe, fingerprints)


# ------------------------------------------------------------------------------------------------------- how much it is


def expected_counts(n, bits=64):
    """How often n random words of some bits, in order, have each symbol: its expectation, exactly.

    Words split at position h wherever, of the words that agree above, some have a 0 there and some a 1. With x = n
    words, d = bits - 1 - h bits above and q = 2**-d, this is so for each of 2**d beginnings with probability 1 - 2 (1 -
    q / 2)**n + (1 - q)**n. Equal to the word before are all others.

    Parameters
    ----------
    n : int
        1 or more.

    Returns
    -------
    list of bits + 1 floats, which add up to n - 1
    """
    splits = []
    for depth in range(bits - 1, -1, -1):
        q = 2.0**-depth
        none = math.exp(n * math.log1p(-q / 2))  # no word with this beginning goes on with a 0: probability
        # 1 - 2 none + (1 - q)**n is (1 - none)**2 + (1 - q)**n - none**2, in which nothing is lost where n q is small
        ratio = -n * math.log1p(q * q / (4 * (1 - q))) if depth else -math.inf  # log of (1 - q)**n / none**2
        both = none**2 * math.expm1(ratio)
        splits.append(2.0**depth * max(0.0, (1 - none) ** 2 + both))
    return [max(0.0, n - 1 - sum(splits)), *splits]


def expected_bits(n, bits=64):
    """Bits that `Tables` of one table of n random words take, on average: blocks, keys and numbers of first words.

    The codes are those of `expected_counts`, without symbols that a table is as likely to lack. Blocks end as in a
    renewal process, as if what successive words take were independent: the word at which a block ends takes E X^2 / E X
    bits, by which it is the likelier to be met, and leaves E X^2 / (2 E X) - 1/2 of them unused.
    """
    counts = expected_counts(n, bits)
    lengths = code_lengths([count if count >= 0.5 else 0 for count in counts]).tolist()
    taken = [length + max(symbol - 1, 0) for symbol, length in enumerate(lengths)]
    total, squares = (sum(c * bits**power for c, bits in zip(counts, taken, strict=True)) for power in (1, 2))
    blocks = 1.0
    if total > _ROOM:
        met = squares / total
        more = met - (met / 2 - 0.5)  # a block takes so much less than its room out of the total, and the last one half
        blocks = (total + more) / (_ROOM + more) + 0.5
    return blocks * (BLOCK_BITS + 128) + 64


def information_bits(n, bits=64):
    """log2 of the number of sets of n words: what such a set, if random, takes in any code, on average.

    n is small beside 2**bits. By the formulas of Stirling and of Euler and Maclaurin: with x = n / 2**bits the sum of
    ln(1 - i / 2**bits) over i < n is -2**bits ((1 - x) ln(1 - x) + x) - ln(1 - x) / 2, to within x / 2**bits.
    """
    words = 2.0**bits
    x = n / words
    log = n * math.log(words) - words * ((1 - x) * math.log1p(-x) + x) - math.log1p(-x) / 2 - math.lgamma(n + 1)
    return log / math.log(2)


# ------------------------------------------------------------------------------------------------------------- shared


def _damaged(number):
    return ValueError(f"block {number} does not hold the words that it should: the table is damaged")


def _check(lengths, offsets, blocks, firsts, keys=None, rows=None):
    """ValueError unless the arrays of `Tables` are as long as one another says; what they hold is seen when decoded."""
    offsets = to_host(offsets)
    if (
        lengths.shape != (len(offsets) - 1, SYMBOLS)
        or blocks.shape != (int(offsets[-1]), _WORDS)
        or len(firsts) != len(blocks) + 1
        or (keys is not None and len(keys) != len(blocks))
        or (rows is not None and (len(rows) != len(lengths) or int(firsts[-1]) != rows.size))
        or offsets[0] != 0
        or (offsets[1:] < offsets[:-1]).any()
    ):
        raise ValueError("these arrays are not of the same compressed tables")


def _sizes(xp, firsts, numbers):
    """How many words some blocks have; ValueError if there is no such block, or none can have so many."""
    if len(numbers) and not 0 <= int(xp.min(numbers)) <= int(xp.max(numbers)) < len(firsts) - 1:
        raise ValueError(f"there are {len(firsts) - 1} blocks, and none of them has some of these numbers")
    starts, stops = firsts[numbers], firsts[numbers + 1]
    sizes = stops - starts
    if len(sizes) and not 1 <= int(xp.min(sizes)) <= int(xp.max(sizes)) <= _MOST:
        raise ValueError(f"some block should hold fewer words than 1 or more than {_MOST:,}: the table is damaged")
    if len(sizes) and not 0 <= int(xp.min(starts)) <= int(xp.max(stops)) <= int(firsts[-1]):
        raise ValueError(f"some block should hold words not among the {int(firsts[-1]):,}: the table is damaged")
    return sizes


@lru_cache(16)
def _books_of(lengths):
    books = []
    for table in np.frombuffer(lengths, np.uint8).reshape(-1, SYMBOLS):
        book, at = np.zeros(1 << LONGEST, np.uint16), 0
        for length, symbol in sorted((length, symbol) for symbol, length in enumerate(table.tolist()) if length):
            after = at + (1 << LONGEST >> length)
            if length > LONGEST or after > len(book):
                raise ValueError("these code lengths are of no prefix code of at most 12 bits")
            book[at:after] = symbol << 4 | length
            at = after
        books.append(book)
    return np.array(books, np.uint16).reshape(-1, 1 << LONGEST)


def _books(lengths):
    """What the next 12 bits begin with: symbol << 4 | length of its code, 0 for no code; uint16, (tables, 4096)."""
    return _books_of(to_host(lengths).tobytes())


def _codes_of(lengths):
    """Each symbol's code, as the highest of 12 bits; uint16."""
    book = _books(lengths)[0]
    return np.array([np.argmax(book >> 4 == symbol) if lengths[symbol] else 0 for symbol in range(SYMBOLS)], np.uint16)


def _bits_of(lengths):
    """What a word of each symbol takes: int64."""
    return lengths + np.maximum(np.arange(-1, SYMBOLS - 1), 0)


@jit()
def symbol_of(differ):
    """The length in bits of an xor of two words."""
    v = np.uint64(differ)
    for shift in (np.uint64(1), np.uint64(2), np.uint64(4), np.uint64(8), np.uint64(16), np.uint64(32)):
        v |= v >> shift
    return np.uint64(count_bits(v))


@jit()
def bits_below(symbol):
    """How many bits follow a symbol's code."""
    symbol = np.uint64(symbol)
    return symbol - np.uint64(symbol > np.uint64(0))


@jit()
def differ_of(symbol, ahead):
    """The xor of two words: its highest bit by the symbol, and those below as the highest bits of `ahead`."""
    symbol, ahead = np.uint64(symbol), np.uint64(ahead)
    some = np.uint64(symbol > np.uint64(0))
    h = symbol - some
    return (some << h) | ((ahead >> np.uint64(1)) >> (np.uint64(63) - h))


@jit()
def ahead_of(word, after, at):
    """64 bits, from bit `at` modulo 64 of `word` on, continued in `after`."""
    shift = np.uint64(at) & np.uint64(63)
    return (np.uint64(word) << shift) | ((np.uint64(after) >> np.uint64(1)) >> (np.uint64(63) - shift))


@jit()
def rest_of(bits, at):
    """What of 64 bits, put down at bit `at` modulo 64 of a word, is left for the next word."""
    return (np.uint64(bits) << np.uint64(1)) << (np.uint64(63) - (np.uint64(at) & np.uint64(63)))


def _once(xp, packed, distance):
    """(query, row, distance) of query << 32 | row, in order, each once."""
    order = xp.argsort(packed, kind="stable")
    packed = packed[order]
    once = xp.ones(len(packed), bool)
    once[1:] = packed[1:] != packed[:-1]
    packed, distance = packed[once], distance[order][once]
    return (packed >> np.uint64(32)).view(np.int64), (packed & np.uint64(2**32 - 1)).view(np.int64), distance


def _touched(xp, keys, heads, queries, top):
    """Numbers of the blocks that hold a bucket of some query, or where it would be, in order."""
    first = xp.searchsorted(keys, queries & top)
    after = xp.searchsorted(heads, queries | ~top, side="right")
    there = first < after
    begun, ended = (xp.bincount(places[there], minlength=len(keys) + 1) for places in (first, after))
    return xp.flatnonzero(xp.cumsum(begun - ended)[:-1] > 0)


def _probe_by_blocks(xp, backend, tables, rows, masks, queries, *limits):
    """As `probe_reference`: of each table the blocks that some query touches are decoded, each once, and then probed.

    What is decoded of a table is a table too, without the rows that no query comes near: the same buckets, in the same
    order.
    """
    table, decode, gathered, probe = backend
    lengths, offsets, blocks, keys, firsts = tables
    packed, distances, num_large, num_uncompared = [xp.empty(0, np.uint64)], [xp.empty(0, np.uint8)], 0, 0
    places = to_host(offsets).tolist()
    for number, top in enumerate(hamming.plan(masks).tops):
        here = slice(places[number], places[number + 1])
        permuted, _ = table(queries, masks[number], False)
        chosen = places[number] + _touched(xp, keys[here], xp.ascontiguousarray(blocks[here, 0]), permuted, top)
        words = decode(lengths, offsets, blocks, firsts, chosen)
        order, _ = gathered(rows.reshape(-1), firsts, chosen)
        one = masks[number : number + 1]
        found = probe(words[None], order.astype(np.uint32)[None], one, queries, *limits)
        query, row, distance, large, uncompared = found
        packed.append(query.view(np.uint64) << np.uint64(32) | row.view(np.uint64))
        distances.append(distance)
        num_large += large
        num_uncompared += uncompared
    return *_once(xp, xp.concatenate(packed), xp.concatenate(distances)), num_large, num_uncompared


# ------------------------------------------------------------------------------------------------------------ on a CPU


@jit(parallel=True)
def _count_symbols(words, counts):
    """How often each run of words, a row of `counts`, has each symbol."""
    runs, n = len(counts), len(words)
    for run in prange(runs):
        for i in range(max(1, run * n // runs), (run + 1) * n // runs):
            counts[run, symbol_of(words[i] ^ words[i - 1])] += 1


@jit()
def _block_starts(words, bits, starts):
    """Where blocks begin, one after another; how many."""
    number, room = 0, -1
    for i in range(len(words)):
        if i:
            room -= bits[symbol_of(words[i] ^ words[i - 1])]
        if room < 0:
            starts[number] = i
            number += 1
            room = _ROOM
    return number


@jit(parallel=True)
def _write_blocks(words, starts, codes, lengths, blocks):
    for number in prange(len(blocks)):
        block, word = blocks[number], words[starts[number]]
        block[0] = word
        place, at, held = np.uint64(1), np.uint64(0), np.uint64(0)
        for i in range(starts[number] + 1, starts[number + 1]):
            differ = words[i] ^ word
            word = words[i]
            symbol = symbol_of(differ)
            h = bits_below(symbol)
            for piece in range(2):
                if piece == 0:
                    bits, size = np.uint64(codes[symbol]) << np.uint64(64 - LONGEST), np.uint64(lengths[symbol])
                else:
                    bits, size = (differ << np.uint64(1)) << (np.uint64(63) - h), h
                held |= bits >> at
                if at + size >= np.uint64(64):
                    block[place] = held
                    place += np.uint64(1)
                    held = rest_of(bits, at)
                at = (at + size) & np.uint64(63)
        if at:
            block[place] = held


def encode_cpu(words):
    """As `encode_reference`; symbols are counted in parallel, blocks are divided by one thread and written by all."""
    lengths, offsets = np.empty((len(words), SYMBOLS), np.uint8), np.zeros(len(words) + 1, np.int64)
    blocks, keys, firsts = [np.empty((0, _WORDS), np.uint64)], [np.empty(0, np.uint64)], []
    for number, table in enumerate(words):
        counts = np.zeros((numba.get_num_threads(), SYMBOLS), np.int64)
        _count_symbols(table, counts)
        lengths[number] = code_lengths(counts.sum(0).tolist())
        starts = np.empty(len(table) // _FEWEST + 2, np.int64)
        some = _block_starts(table, _bits_of(lengths[number]), starts)
        starts[some] = len(table)
        blocks.append(np.zeros((some, _WORDS), np.uint64))
        _write_blocks(table, starts, _codes_of(lengths[number]), lengths[number], blocks[-1])
        keys.append(table[starts[1 : some + 1] - 1])
        firsts.append(number * len(table) + starts[:some])
        offsets[number + 1] = offsets[number] + some
    firsts.append(np.array([words.size], np.int64))
    return Tables(lengths, offsets, np.concatenate(blocks), np.concatenate(keys), np.concatenate(firsts))


@jit()
def _ahead(block, at):
    """The next 64 bits of a block; after its end, any."""
    place, last = at >> np.uint64(6), np.uint64(_WORDS - 1)
    return ahead_of(block[min(place, last)], block[min(place + np.uint64(1), last)], at)


@jit()
def _next(block, book, word, at):
    """(the word after `word`, where what follows it begins); beyond the block's end if there is no such word."""
    ahead = _ahead(block, at)
    entry = np.uint64(book[ahead >> np.uint64(64 - LONGEST)])
    symbol, length = entry >> np.uint64(4), entry & np.uint64(15)
    if entry == np.uint64(0):
        return word, np.uint64(BLOCK_BITS + 1)
    h = bits_below(symbol)
    below = ahead << length if length + h <= np.uint64(64) else _ahead(block, at + length)
    return word ^ differ_of(symbol, below), at + length + h


@jit()
def _decode_block(block, book, words):
    """Whether a block holds as many words as there are places, to which they go."""
    word, at = block[0], np.uint64(64)
    words[0] = word
    for i in range(1, len(words)):
        word, at = _next(block, book, word, at)
        if at > np.uint64(BLOCK_BITS):
            return False
        words[i] = word
    return True


@jit(parallel=True)
def _decode_blocks(blocks, books, tables, numbers, places, words, good):
    for i in prange(len(numbers)):
        good[i] = _decode_block(blocks[numbers[i]], books[tables[i]], words[places[i] : places[i + 1]])


def decode_cpu(lengths, offsets, blocks, firsts, numbers):
    """As `decode_reference`; blocks in parallel."""
    _check(lengths, offsets, blocks, firsts)
    places = np.concatenate([np.zeros(1, np.int64), np.cumsum(_sizes(np, firsts, numbers))])
    words, good = np.empty(places[-1], np.uint64), np.empty(len(numbers), bool)
    tables = np.searchsorted(offsets, numbers, side="right") - 1
    _decode_blocks(blocks, _books(lengths), tables, numbers, places, words, good)
    if not good.all():
        raise _damaged(numbers[np.argmin(good)])
    return words


_DAMAGED = -1  # in place of the number of large buckets, the block's number after it
_FEW = 32  # queries of which each decodes what it touches; more if there are two blocks of each table for each query


@jit()
def _search(books, offsets, blocks, keys, firsts, rows, queries, parts, tops, radius, bucket_limit, bucket_probe):
    """(query << 32 | row, distance) of all that is found, some more than once; large buckets, and what they left out.

    From the block that a bucket begins in words are decoded until it ends, and compared meanwhile. As soon as a bucket
    is known to be large, no more than its last block is decoded, to see where it ends.
    """
    packed, distance, size = np.empty(16, np.uint64), np.empty(16, np.uint8), 0
    num_large = num_uncompared = 0
    n = rows.shape[1]
    for query in range(len(queries)):
        for table in range(len(tops)):
            here = keys[offsets[table] : offsets[table + 1]]
            word = np.uint64(0)
            for part in range(parts.shape[1]):
                word |= move(queries[query], parts[table, part, 0], parts[table, part, 1])
            low, high = word & tops[table], word | ~tops[table]
            number = offsets[table] + interpolation_search(here, low, 0, len(here))
            stop = offsets[table + 1]
            met, few = 0, size  # words of the bucket so far; matches among its first `bucket_probe`
            while number < stop and blocks[number, 0] <= high:
                first = firsts[number]
                count = firsts[number + 1] - first
                place = first - table * n
                if place < 0 or count < 1 or place + count > n:
                    return packed, distance, _DAMAGED, number
                other, at = blocks[number, 0], np.uint64(64)
                for i in range(count):
                    if i:
                        other, at = _next(blocks[number], books[table], other, at)
                        if at > np.uint64(BLOCK_BITS):
                            return packed, distance, _DAMAGED, number
                    if other > high:
                        break
                    if other >= low:
                        if met < bucket_probe or met < bucket_limit:
                            bits = count_bits(word ^ other)
                            if bits <= np.uint64(radius):
                                if size == len(packed):
                                    packed = np.concatenate((packed, np.empty(size, np.uint64)))
                                    distance = np.concatenate((distance, np.empty(size, np.uint8)))
                                packed[size] = np.uint64(query) << np.uint64(32) | np.uint64(rows[table, place + i])
                                distance[size] = bits
                                size += 1
                            if met < bucket_probe:
                                few = size
                        met += 1
                number += 1
                if met > bucket_limit and met >= bucket_probe and number < stop and blocks[number, 0] <= high:
                    after = stop
                    if high < np.uint64(2**64 - 1):
                        after = offsets[table] + interpolation_search(here, high + np.uint64(1), 0, len(here))
                    last = after if after < stop and blocks[after, 0] <= high else after - 1
                    if last > number:
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
            word = np.uint64(0)
            for part in range(parts.shape[1]):
                word |= move(queries[query], parts[table, part, 0], parts[table, part, 1])
            low, high = word & tops[table], word | ~tops[table]
            start, stop = interpolation_search(here, low, 0, len(here)), len(here)
            if high < np.uint64(2**64 - 1):
                stop = min(interpolation_search(here, high + np.uint64(1), 0, len(here)) + 2, stop)
            at = query * num_tables + table
            starts[at], stops[at] = offsets[table] + max(start - 1, 0), offsets[table] + stop
    return starts, stops


def touched(offsets, blocks, keys, masks, queries):
    """Which blocks, and keys, decide the answer of `probe_cpu` to a few queries; None for many.

    Of each query and table: from the block before the one in which its bucket begins, or would, to the second whose key
    is beyond the bucket. As in `hamming.touched`, whatever else a search reads on its way may be damaged.

    Returns
    -------
    starts, stops : arrays of int64, shape (queries x tables,)
        Runs of blocks.
    """
    if not _are_few(blocks, masks, queries):
        return None
    prepared = hamming.plan(masks)
    return _runs_touched(offsets, keys, queries, prepared.moves, prepared.tops)


def probe_cpu(
    lengths,
    offsets,
    blocks,
    keys,
    firsts,
    rows,
    masks,
    queries,
    radius,
    bucket_limit,
    bucket_probe,
    fingerprints=None,
):
    """As `probe_reference`: a few queries decode what they touch, as they go; for many each block is decoded once.

    For many this takes 12 bytes for each word of the blocks of a table that some query touches, at most the raw table.
    """
    _check(lengths, offsets, blocks, firsts, keys, rows)
    if not _are_few(blocks, masks, queries):
        backend, limits = (hamming.table_cpu, decode_cpu, gather.cpu, hamming.probe_cpu), (bucket_limit, bucket_probe)
        tables = lengths, offsets, blocks, keys, firsts
        return _probe_by_blocks(np, backend, tables, rows, masks, queries, radius, *limits, fingerprints)
    prepared = hamming.plan(masks)
    packed, distance, num_large, num_uncompared = _search(
        _books(lengths), offsets, blocks, keys, firsts, rows, queries, prepared.moves, prepared.tops, radius,
        bucket_limit, bucket_probe,
    )  # fmt: skip
    if num_large == _DAMAGED:
        raise _damaged(num_uncompared)
    return *_once(np, packed, distance), num_large, num_uncompared


# ------------------------------------------------------------------------------------------------------------ on a GPU


@kernel("void(uint64[::1], uint8[::1])")
def _symbols(words, symbols):
    """One thread a word but the first: its symbol."""
    at = cuda.grid(1) + 1
    if at < len(words):
        symbols[at] = np.uint8(symbol_of(words[at] ^ words[at - 1]))


@kernel("void(uint64[::1], int64[::1], uint16[::1], uint8[::1], uint64[:,::1])")
def _encode(words, starts, codes, lengths, blocks):
    """One thread a block."""
    number = cuda.grid(1)
    if number >= len(blocks):
        return
    i, stop = np.uint64(starts[number]), np.uint64(starts[number + 1])
    word = words[i]
    blocks[number, 0] = word
    place, at, held = np.uint64(1), np.uint64(0), np.uint64(0)
    i += np.uint64(1)
    while i < stop:
        differ = words[i] ^ word
        word = words[i]
        symbol = np.uint64(symbol_of(differ))
        h = np.uint64(bits_below(symbol))
        bits, size = np.uint64(codes[symbol]) << np.uint64(64 - LONGEST), np.uint64(lengths[symbol])
        piece = np.uint64(0)
        while piece < np.uint64(2):
            held |= bits >> at
            if at + size >= np.uint64(64):
                blocks[number, place] = held
                place += np.uint64(1)
                held = np.uint64(rest_of(bits, at))
            at = (at + size) & np.uint64(63)
            bits, size = (differ << np.uint64(1)) << (np.uint64(63) - h), h
            piece += np.uint64(1)
        i += np.uint64(1)
    if at > np.uint64(0):
        blocks[number, place] = held


def _block_starts_gpu(xp, taken):
    """Where blocks begin, and the number of words; `taken` are the bits of each word, 0 for the first.

    From each word the next beginning is found by bisection of the sums; with the first 2**k beginnings and how far
    2**k steps lead from each word, the next 2**k are known.
    """
    n = len(taken)
    sums = xp.cumsum(taken)
    steps = xp.append(xp.searchsorted(sums, sums + np.int64(_ROOM), side="right"), xp.asarray(np.array([n])))
    starts = xp.zeros(1, np.int64)
    while int(starts[-1]) < n:
        starts = xp.concatenate([starts, steps[starts]])
        steps = steps[steps]
    return starts[: int(xp.searchsorted(starts, np.int64(n))) + 1]


def encode_gpu(words):
    """As `encode_reference`: one thread a word for its symbol, one a block to write it.

    The code lengths are made on the host from the 65 counts. Takes 56 bytes a word of one table, besides the tables.
    """
    xp = namespace()
    words = xp.ascontiguousarray(words)
    lengths, offsets = np.empty((len(words), SYMBOLS), np.uint8), np.zeros(len(words) + 1, np.int64)
    blocks, keys, firsts = [xp.empty((0, _WORDS), np.uint64)], [xp.empty(0, np.uint64)], []
    for number, table in enumerate(words):
        symbols = xp.zeros(len(table), np.uint8)
        _symbols.threads(len(table) - 1, table, symbols)
        lengths[number] = code_lengths(to_host(xp.bincount(symbols[1:], minlength=SYMBOLS)).tolist())
        if len(table) == 0:
            continue
        taken = xp.asarray(_bits_of(lengths[number]))[symbols.astype(np.int64)]
        taken[0] = 0
        starts = _block_starts_gpu(xp, taken)
        blocks.append(xp.zeros((len(starts) - 1, _WORDS), np.uint64))
        codes, bits = xp.asarray(_codes_of(lengths[number])), xp.asarray(lengths[number])
        _encode.threads(len(blocks[-1]), table, starts, codes, bits, blocks[-1])
        keys.append(table[starts[1:] - 1])
        firsts.append(starts[:-1] + np.int64(number * len(table)))
        offsets[number + 1] = offsets[number] + len(blocks[-1])
    firsts.append(xp.asarray(np.array([words.size], np.int64)))
    return Tables(
        xp.asarray(lengths), xp.asarray(offsets), xp.concatenate(blocks), xp.concatenate(keys), xp.concatenate(firsts)
    )


@kernel("void(uint64[:,::1], uint16[:,::1], int64[::1], int64[::1], int64[::1], uint64[::1], boolean[::1])")
def _decode(blocks, books, offsets, numbers, places, words, good):
    """One thread a block: whether it holds as many words as there are places, to which they go."""
    thread = cuda.grid(1)
    if thread >= len(numbers):
        return
    number = np.uint64(numbers[thread])
    table = np.uint64(row_of(offsets, numbers[thread]))
    i, stop = np.uint64(places[thread]), np.uint64(places[thread + 1])
    word, at, last = blocks[number, 0], np.uint64(64), np.uint64(_WORDS - 1)
    words[i] = word
    i += np.uint64(1)
    while i < stop:
        place = min(np.uint64(at >> np.uint64(6)), last)
        after = min(place + np.uint64(1), last)
        ahead = np.uint64(ahead_of(blocks[number, place], blocks[number, after], at))
        entry = np.uint64(books[table, ahead >> np.uint64(64 - LONGEST)])
        symbol = entry >> np.uint64(4)
        at += entry & np.uint64(15)
        place = min(np.uint64(at >> np.uint64(6)), last)
        after = min(place + np.uint64(1), last)
        ahead = np.uint64(ahead_of(blocks[number, place], blocks[number, after], at))
        at += np.uint64(bits_below(symbol))
        if entry == np.uint64(0) or at > np.uint64(BLOCK_BITS):
            break
        word ^= np.uint64(differ_of(symbol, ahead))
        words[i] = word
        i += np.uint64(1)
    good[thread] = i >= stop


def decode_gpu(lengths, offsets, blocks, firsts, numbers):
    """As `decode_reference`; one thread a block."""
    _check(lengths, offsets, blocks, firsts)
    xp = namespace()
    offsets, blocks = xp.ascontiguousarray(offsets), xp.ascontiguousarray(blocks)
    firsts, numbers = xp.ascontiguousarray(firsts), xp.ascontiguousarray(numbers)
    places = xp.zeros(len(numbers) + 1, np.int64)
    places[1:] = xp.cumsum(_sizes(xp, firsts, numbers))
    words, good = xp.empty(int(places[-1]), np.uint64), xp.empty(len(numbers), bool)
    books = xp.asarray(_books(lengths))
    _decode.threads(len(numbers), blocks, books, offsets, numbers, places, words, good)
    if not bool(good.all()):
        raise _damaged(int(numbers[xp.flatnonzero(~good)[0]]))
    return words


def _gather_rows(rows, firsts, numbers):
    """As `gather.gpu`, whose values are words."""
    return gather.gpu(rows.astype(np.uint64), firsts, numbers)


def probe_gpu(
    lengths,
    offsets,
    blocks,
    keys,
    firsts,
    rows,
    masks,
    queries,
    radius,
    bucket_limit,
    bucket_probe,
    fingerprints=None,
):
    """As `probe_reference`; of each table the blocks that some query touches are decoded, each once, and probed."""
    _check(lengths, offsets, blocks, firsts, keys, rows)
    xp = namespace()
    backend = hamming.table_gpu, decode_gpu, _gather_rows, hamming.probe_gpu
    tables = lengths, offsets, *(xp.ascontiguousarray(array) for array in (blocks, keys, firsts))
    rows, limits = xp.ascontiguousarray(rows), (radius, bucket_limit, bucket_probe)
    return _probe_by_blocks(xp, backend, tables, rows, to_host(masks), queries, *limits, fingerprints)
