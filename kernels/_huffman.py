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

Bits are counted from the highest of a block's first uint64 on. Several tables of n words, as `hamming_probe` takes
them, are encoded one after another, each with a code and blocks of its own.

The code takes less than H + 1.03 bits a symbol, H the entropy of the symbols: lengths ceil(-log2 q) with q = (1 - e) p
+ e / 65 and e = 65 / 4096 are at most 12, and the shortest code is no longer than these. n random words take about n
(64 - log2 n + log2 e) bits in any code (`information_bits`), in this one 2.0 more each, and 2% more for first words,
block ends, keys and numbers (`papers/compressed_tables.py`).

Source: Manku, Jain and Das Sarma 2007, section 3.2. Code lengths: Larmore and Hirschberg 1990 (package-merge).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ._bits import count_bits
from ._cpu import jit
from ._launch import to_host

BLOCK_BITS = 8 * 1024


SYMBOLS = 65


LONGEST = 12
"""Bits of the longest code."""


BLOCK_WORDS = BLOCK_BITS // 64


CODE_BITS = BLOCK_BITS - 64  # for codes, after the first word


MOST_WORDS = 1 + CODE_BITS  # words of a block, each but the first of a bit or more


FEWEST_WORDS = 1 + CODE_BITS // (LONGEST + 63)  # words of a block that another follows


class HuffmanTables(NamedTuple):
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


def code_strings(lengths):
    """{symbol: its code, as a string of 0 and 1}; ValueError if there is no such code."""
    codes, code, before = {}, -1, 0
    for length, symbol in sorted((length, symbol) for symbol, length in enumerate(lengths.tolist()) if length):
        code = code + 1 << length - before
        before = length
        if length > LONGEST or code >> length:
            raise ValueError("these code lengths are of no prefix code of at most 12 bits")
        codes[symbol] = f"{code:0{length}b}"
    return codes


def information_bits(n, bits=64):
    """log2 of the number of sets of n words: what such a set, if random, takes in any code, on average.

    n is small compared with 2**bits. By the formulas of Stirling and of Euler and Maclaurin: with x = n / 2**bits the
    sum of ln(1 - i / 2**bits) over i < n is -2**bits ((1 - x) ln(1 - x) + x) - ln(1 - x) / 2, to within x / 2**bits.
    """
    words = 2.0**bits
    x = n / words
    log = n * math.log(words) - words * ((1 - x) * math.log1p(-x) + x) - math.log1p(-x) / 2 - math.lgamma(n + 1)
    return log / math.log(2)


# ------------------------------------------------------------------------------------------------- what kernels share


def damaged(number):
    return ValueError(f"block {number} does not hold the words that it should: the table is damaged")


def check_shapes(lengths, offsets, blocks, firsts, keys=None, rows=None):
    """Raise ValueError if the lengths of the arrays of `HuffmanTables` disagree; decoding checks their contents."""
    offsets = to_host(offsets)
    if (
        lengths.shape != (len(offsets) - 1, SYMBOLS)
        or blocks.shape != (int(offsets[-1]), BLOCK_WORDS)
        or len(firsts) != len(blocks) + 1
        or (keys is not None and len(keys) != len(blocks))
        or (rows is not None and (len(rows) != len(lengths) or int(firsts[-1]) != rows.size))
        or offsets[0] != 0
        or (offsets[1:] < offsets[:-1]).any()
    ):
        raise ValueError("these arrays are not of the same compressed tables")


def block_sizes(xp, firsts, numbers):
    """Number of words in each of some blocks; ValueError if a block does not exist or cannot hold that number."""
    if len(numbers) and not 0 <= int(xp.min(numbers)) <= int(xp.max(numbers)) < len(firsts) - 1:
        raise ValueError(f"there are {len(firsts) - 1} blocks, and some of the given numbers are not among them")
    starts, stops = firsts[numbers], firsts[numbers + 1]
    sizes = stops - starts
    if len(sizes) and not 1 <= int(xp.min(sizes)) <= int(xp.max(sizes)) <= MOST_WORDS:
        raise ValueError(f"some block should hold fewer words than 1 or more than {MOST_WORDS:,}: the table is damaged")
    if len(sizes) and not 0 <= int(xp.min(starts)) <= int(xp.max(stops)) <= int(firsts[-1]):
        raise ValueError(f"some block should hold words not among the {int(firsts[-1]):,}: the table is damaged")
    return sizes


@lru_cache(16)
def _decoding_tables_of(lengths):
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


def decoding_tables(lengths):
    """Return what each 12 bits begin with: symbol << 4 | length of its code, 0 for no code; uint16, (tables, 4096)."""
    return _decoding_tables_of(to_host(lengths).tobytes())


def codes_as_words(lengths):
    """Each symbol's code, as the highest of 12 bits; uint16."""
    book = decoding_tables(lengths)[0]
    return np.array([np.argmax(book >> 4 == symbol) if lengths[symbol] else 0 for symbol in range(SYMBOLS)], np.uint16)


def bits_of_symbols(lengths):
    """Return the bits that a word of each symbol takes: int64."""
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
    """Return the bits that are left for the next word when 64 bits are written at bit `at` modulo 64 of a word."""
    return (np.uint64(bits) << np.uint64(1)) << (np.uint64(63) - (np.uint64(at) & np.uint64(63)))


@jit()
def bits_ahead(block, at):
    """The next 64 bits of a block; after its end, any."""
    place, last = at >> np.uint64(6), np.uint64(BLOCK_WORDS - 1)
    return ahead_of(block[min(place, last)], block[min(place + np.uint64(1), last)], at)


@jit()
def next_word(block, book, word, at):
    """(the word after `word`, where what follows it begins); beyond the block's end if there is no such word."""
    ahead = bits_ahead(block, at)
    entry = np.uint64(book[ahead >> np.uint64(64 - LONGEST)])
    symbol, length = entry >> np.uint64(4), entry & np.uint64(15)
    if entry == np.uint64(0):
        return word, np.uint64(BLOCK_BITS + 1)
    h = bits_below(symbol)
    below = ahead << length if length + h <= np.uint64(64) else bits_ahead(block, at + length)
    return word ^ differ_of(symbol, below), at + length + h
