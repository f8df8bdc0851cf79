"""The words of some blocks of compressed tables; `_huffman` has the format and its source.

Cost: decoding is serial within a block, for each word one look-up in a table of 8 kB and two shifts.
"""

import numpy as np

from ._cpu import Rare, jit, parallel
from ._huffman import (
    BLOCK_BITS,
    BLOCK_WORDS,
    LONGEST,
    ahead_of,
    bits_below,
    block_sizes,
    check_shapes,
    code_strings,
    damaged,
    decoding_tables,
    differ_of,
    next_word,
)
from ._launch import cuda, kernel, namespace, on_device, row_of
from ._ragged import sums_before


def reference(lengths, offsets, blocks, firsts, numbers):
    """The words of some blocks, straight from the definition.

    Parameters
    ----------
    lengths, offsets, blocks, firsts
        Of `Tables`.
    numbers : array of int64
        Of blocks, in any order, repeats allowed.

    Returns
    -------
    array of uint64
        The words of the blocks, one block after another.

    Raises
    ------
    ValueError
        If a block does not exist or has another number of words, or if the code lengths are invalid. Whatever else is
        wrong with a block gives wrong words.
    """
    check_shapes(lengths, offsets, blocks, firsts)
    words = []
    for number, size in zip(numbers.tolist(), block_sizes(np, firsts, numbers).tolist(), strict=True):
        table = next(t for t in range(len(lengths)) if number < offsets[t + 1])
        symbols = {code: symbol for symbol, code in code_strings(lengths[table]).items()}
        bits = "".join(f"{word:064b}" for word in blocks[number].tolist())
        word, at = int(bits[:64], 2), 64
        words.append(word)
        for _ in range(size - 1):
            code = next((bits[at : at + n] for n in range(1, LONGEST + 1) if bits[at : at + n] in symbols), None)
            if code is None:
                raise damaged(number)
            at += len(code)
            if symbol := symbols[code]:
                word ^= int("1" + bits[at : at + symbol - 1], 2)
                at += symbol - 1
            if at > BLOCK_BITS:
                raise damaged(number)
            words.append(word)
    return np.array(words, np.uint64)


@jit()
def _decode_block(block, book, words):
    """Decode the words of a block to their places, and say whether their number is that of the places."""
    word, at = block[0], np.uint64(64)
    words[0] = word
    for i in range(1, len(words)):
        word, at = next_word(block, book, word, at)
        if at > np.uint64(BLOCK_BITS):
            return False
        words[i] = word
    return True


@parallel(Rare("uint64[:, ::1], uint16[:, ::1], int64[::1], int64[::1], int64[::1], uint64[::1], boolean[::1]"))
def _decode_blocks(begin, end, blocks, books, tables, numbers, places, words, good):
    for i in range(begin, end):
        good[i] = _decode_block(blocks[numbers[i]], books[tables[i]], words[places[i] : places[i + 1]])


def cpu(lengths, offsets, blocks, firsts, numbers):
    """As `reference`; blocks in parallel."""
    check_shapes(lengths, offsets, blocks, firsts)
    places = sums_before(block_sizes(np, firsts, numbers))
    words, good = np.empty(places[-1], np.uint64), np.empty(len(numbers), bool)
    tables = np.searchsorted(offsets, numbers, side="right") - 1
    _decode_blocks(len(numbers), blocks, decoding_tables(lengths), tables, numbers, places, words, good)
    if not good.all():
        raise damaged(numbers[np.argmin(good)])
    return words


@kernel("void(uint64[:,::1], uint16[:,::1], int64[::1], int64[::1], int64[::1], uint64[::1], boolean[::1])")
def _decode(blocks, books, offsets, numbers, places, words, good):
    """One thread a block: decode its words to their places, and say whether their number is that of the places."""
    thread = cuda.grid(1)
    if thread >= len(numbers):
        return
    number = np.uint64(numbers[thread])
    table = np.uint64(row_of(offsets, numbers[thread]))
    i, stop = np.uint64(places[thread]), np.uint64(places[thread + 1])
    word, at, last = blocks[number, 0], np.uint64(64), np.uint64(BLOCK_WORDS - 1)
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


def gpu(lengths, offsets, blocks, firsts, numbers):
    """As `reference`; one thread per block."""
    check_shapes(lengths, offsets, blocks, firsts)
    xp = namespace()
    offsets, blocks = on_device(offsets), on_device(blocks)
    firsts, numbers = on_device(firsts), on_device(numbers)
    places = sums_before(block_sizes(xp, firsts, numbers))
    words, good = xp.empty(int(places[-1]), np.uint64), xp.empty(len(numbers), bool)
    books = xp.asarray(decoding_tables(lengths))
    _decode.threads(len(numbers), blocks, books, offsets, numbers, places, words, good)
    if not bool(good.all()):
        raise damaged(int(numbers[xp.flatnonzero(~good)[0]]))
    return words
