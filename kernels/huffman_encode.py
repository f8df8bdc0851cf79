"""Compress sorted tables of words; `_huffman` has the format and its source.

Cost: on the CPU symbols are counted and blocks written in parallel, and one thread divides the words among blocks. On a
GPU 56 bytes per word of one table, besides the tables.
"""

from __future__ import annotations

import numpy as np

from ._cpu import Rare, jit, num_threads, parallel
from ._huffman import (
    BLOCK_BITS,
    BLOCK_WORDS,
    CODE_BITS,
    FEWEST_WORDS,
    LONGEST,
    SYMBOLS,
    HuffmanTables,
    bits_below,
    bits_of_symbols,
    code_lengths,
    code_strings,
    codes_as_words,
    rest_of,
    symbol_of,
)
from ._launch import Device, cuda, kernel, namespace, on_device, to_host


def reference(words):
    """Compress tables, from the definition.

    Parameters
    ----------
    words : array of uint64, shape (tables, n)
        Each row in ascending order, for its code to be short; `huffman_probe` needs the order of the leading
        bits, and `huffman_decode` none.

    Returns
    -------
    HuffmanTables
        Without blocks if there are no words.
    """
    lengths, offsets, blocks, keys, firsts = [], [0], [], [], []
    for number, table in enumerate(words.tolist()):
        symbols = [(a ^ b).bit_length() for a, b in zip(table, table[1:], strict=False)]
        lengths.append(code_lengths([symbols.count(symbol) for symbol in range(SYMBOLS)]))
        codes = code_strings(lengths[-1])
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
    return HuffmanTables(
        np.array(lengths, np.uint8).reshape(-1, SYMBOLS),
        np.array(offsets, np.int64),
        np.array(blocks, np.uint64).reshape(-1, BLOCK_WORDS),
        np.array(keys, np.uint64),
        np.array([*firsts, words.size], np.int64),
    )


@parallel(Rare("uint64[::1], int64[:, ::1]"))
def _count_symbols(begin, end, words, counts):
    """How often each run of words, a row of `counts`, has each symbol."""
    runs, n = len(counts), len(words)
    for run in range(begin, end):
        for i in range(max(1, run * n // runs), (run + 1) * n // runs):
            counts[run, symbol_of(words[i] ^ words[i - 1])] += 1


@jit(Rare("uint64[::1], int64[::1], int64[::1]"))
def _block_starts(words, bits, starts):
    """Write where blocks begin, one after another; return their number."""
    number, room = 0, -1
    for i in range(len(words)):
        if i:
            room -= bits[symbol_of(words[i] ^ words[i - 1])]
        if room < 0:
            starts[number] = i
            number += 1
            room = CODE_BITS
    return number


@jit()
def _write_block(words, i, stop, codes, lengths, block):
    """Write words[i:stop], at least one word, to a block of zeros."""
    word, place, at, held = words[i], np.uint64(1), np.uint64(0), np.uint64(0)
    block[0] = word
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
                block[place] = held
                place += np.uint64(1)
                held = np.uint64(rest_of(bits, at))
            at = (at + size) & np.uint64(63)
            bits, size = (differ << np.uint64(1)) << (np.uint64(63) - h), h
            piece += np.uint64(1)
        i += np.uint64(1)
    if at > np.uint64(0):
        block[place] = held


Device(_write_block.py_func)


@parallel(Rare("uint64[::1], int64[::1], uint16[::1], uint8[::1], uint64[:, ::1]"))
def _write_blocks(begin, end, words, starts, codes, lengths, blocks):
    for number in range(begin, end):
        start, stop = np.uint64(starts[number]), np.uint64(starts[number + 1])
        _write_block(words, start, stop, codes, lengths, blocks[number])


def cpu(words):
    """As `reference`; symbols are counted in parallel, blocks are divided by one thread and written by all."""
    lengths, offsets = np.empty((len(words), SYMBOLS), np.uint8), np.zeros(len(words) + 1, np.int64)
    blocks, keys, firsts = [np.empty((0, BLOCK_WORDS), np.uint64)], [np.empty(0, np.uint64)], []
    for number, table in enumerate(words):
        counts = np.zeros((num_threads(), SYMBOLS), np.int64)
        _count_symbols(len(counts), table, counts)
        lengths[number] = code_lengths(counts.sum(0).tolist())
        starts = np.empty(len(table) // FEWEST_WORDS + 2, np.int64)
        some = _block_starts(table, bits_of_symbols(lengths[number]), starts)
        starts[some] = len(table)
        blocks.append(np.zeros((some, BLOCK_WORDS), np.uint64))
        _write_blocks(len(blocks[-1]), table, starts, codes_as_words(lengths[number]), lengths[number], blocks[-1])
        keys.append(table[starts[1 : some + 1] - 1])
        firsts.append(number * len(table) + starts[:some])
        offsets[number + 1] = offsets[number] + some
    firsts.append(np.array([words.size], np.int64))
    return HuffmanTables(lengths, offsets, np.concatenate(blocks), np.concatenate(keys), np.concatenate(firsts))


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
    if number < len(blocks):
        start, stop = np.uint64(starts[number]), np.uint64(starts[number + 1])
        _write_block(words, start, stop, codes, lengths, blocks[number])


def _block_starts_on_device(xp, taken):
    """Return where blocks begin, and the number of words; `taken` has the bits of each word, 0 for the first.

    From each word the next beginning is found by bisection of the sums; with the first 2**k beginnings and how far
    2**k steps lead from each word, the next 2**k are known.
    """
    n = len(taken)
    sums = xp.cumsum(taken)
    steps = xp.append(xp.searchsorted(sums, sums + np.int64(CODE_BITS), side="right"), xp.asarray(np.array([n])))
    starts = xp.zeros(1, np.int64)
    while int(starts[-1]) < n:
        starts = xp.concatenate([starts, steps[starts]])
        steps = steps[steps]
    return starts[: int(xp.searchsorted(starts, int(n))) + 1]


def gpu(words):
    """As `reference`: one thread per word for its symbol, and one per block to write it.

    The code lengths are made on the host from the 65 counts. Takes 56 bytes per word of one table, besides the tables.
    """
    xp = namespace()
    words = on_device(words)
    lengths, offsets = np.empty((len(words), SYMBOLS), np.uint8), np.zeros(len(words) + 1, np.int64)
    blocks, keys, firsts = [xp.empty((0, BLOCK_WORDS), np.uint64)], [xp.empty(0, np.uint64)], []
    for number, table in enumerate(words):
        symbols = xp.zeros(len(table), np.uint8)
        _symbols.threads(len(table) - 1, table, symbols)
        lengths[number] = code_lengths(to_host(xp.bincount(symbols[1:], minlength=SYMBOLS)).tolist())
        if len(table) == 0:
            continue
        taken = xp.asarray(bits_of_symbols(lengths[number]))[symbols.astype(np.int64)]
        taken[0] = 0
        starts = _block_starts_on_device(xp, taken)
        blocks.append(xp.zeros((len(starts) - 1, BLOCK_WORDS), np.uint64))
        codes, bits = xp.asarray(codes_as_words(lengths[number])), xp.asarray(lengths[number])
        _encode.threads(len(blocks[-1]), table, starts, codes, bits, blocks[-1])
        keys.append(table[starts[1:] - 1])
        firsts.append(starts[:-1] + np.int64(number * len(table)))
        offsets[number + 1] = offsets[number] + len(blocks[-1])
    firsts.append(xp.asarray(np.array([words.size], np.int64)))
    return HuffmanTables(
        xp.asarray(lengths), xp.asarray(offsets), xp.concatenate(blocks), xp.concatenate(keys), xp.concatenate(firsts)
    )
