"""Folding of text on the CPU: documents that are not ASCII rewritten so that their tokens are their runs of word bytes.

What becomes of a code point, and in which order marks come, `tokens` defines; `_unicode_table` has it point by point.
"""

import numpy as np

from . import _unicode_table
from ._cpu import jit
from ._ragged import by_rows
from ._unicode_table import BORDER, DIVIDE, MARK, SINGLE, VANISH, WORD
from ._utf8 import beyond_mask, copy_block, count_words, decode, is_ascii, is_word, sequence_bits
from ._vectors import population, trailing_zeros

SEPARATOR = np.uint8(0x20)

_INVALID_ROOM = 4
"""Bytes that an invalid byte may take besides itself: its letter has three, with a separator on either side."""


@jit()
def _append_item(kind, source, begin, end, out, at, state):
    """Append one item to the folded text; returns (new end, new state). A separator stands wherever tokens divide."""
    if kind in (DIVIDE, VANISH) or (kind == MARK and state == DIVIDE):
        if kind == DIVIDE and state != DIVIDE:
            out[at] = SEPARATOR
            return at + 1, DIVIDE
        return at, state
    if (kind == WORD and state == SINGLE) or (kind == SINGLE and state != DIVIDE):
        out[at] = SEPARATOR
        at += 1
    for j in range(begin, end):
        out[at] = source[j]
        at += 1
    return at, (state if kind == MARK else kind)


@jit()
def _collect_run(text, i, item, stop, page, sequence, starts, combining, items):
    """Gather a run of items of non-zero combining class from item `item` of the code point at i on.

    Returns (items, their number, code point and item where the run ends).
    """
    count = 0
    while i < stop:
        code, length, _ = decode(text, i, stop)
        number = sequence[page[code >> 8], code & 255]
        for number_item in range(starts[number] + item, starts[number + 1]):
            if combining[number_item] == 0:
                return items, count, i, number_item - np.int64(starts[number])
            if count == len(items):
                larger = np.empty(2 * count, np.int64)
                larger[:count] = items
                items = larger
            items[count] = number_item
            count += 1
        if starts[number] == starts[number + 1]:  # a code point that stands for itself is a starter
            return items, count, i, 0
        i += length
        item = 0
    return items, count, i, 0


@jit()
def _fold(text, start, stop, out, at, page, sequence, starts, combining, kinds, spelled, spelling):
    """Rewrite text[start:stop] into out[at:] so that its tokens are its runs of word bytes.

    ASCII is copied, 64 bytes at a time; other code points are replaced by what the table says. Marks arrive in
    canonical order nearly always; where a class falls below the one before it, the run is taken back, sorted and
    written again.
    Returns the end of the folded text, the number of invalid bytes, and the number of borders.
    """
    i, item, state, invalid, borders = start, 0, DIVIDE, 0, 0
    last = 0  # combining class of the last item; its run began at run_*
    run_i, run_item, run_at, run_state = start, 0, at, DIVIDE
    buffer = np.empty(32, np.int64)
    while i < stop:
        if text[i] < 128 and item == 0:
            if state == SINGLE and is_word(text[i]):
                out[at] = SEPARATOR
                at += 1
            if i + 64 <= stop:
                copy_block(text, i, out, at)
                ascii = min(trailing_zeros(beyond_mask(text, i)), 64)
            else:
                ascii = 0
                while i + ascii < stop and text[i + ascii] < 128:
                    out[at + ascii] = text[i + ascii]
                    ascii += 1
            i += ascii
            at += ascii
            state = WORD if is_word(text[i - 1]) else DIVIDE
            last = 0
            continue
        code, length, wrong = decode(text, i, stop)
        invalid += wrong  # invalid bytes and borders have one item, so that each is decoded here once
        borders += code == BORDER
        number = np.int64(sequence[page[code >> 8], code & 255])
        begin, end = np.int64(starts[number]), np.int64(starts[number + 1])
        if begin == end:
            at, state = _append_item(number, text, i, i + length, out, at, state)
            i += length
            last = 0
            continue
        disordered = False
        for k in range(begin + item, end):
            rank = np.int64(combining[k])
            if rank > 0 and last == 0:
                run_i, run_item, run_at, run_state = i, k - begin, at, state
            if rank > 0 and rank < last:
                disordered = True
                break
            at, state = _append_item(np.int64(kinds[k]), spelling, spelled[k], spelled[k + 1], out, at, state)
            last = rank
        if not disordered:
            i += length
            item = 0
            continue
        buffer, count, i, item = _collect_run(text, run_i, run_item, stop, page, sequence, starts, combining, buffer)
        at, state, last = run_at, run_state, 0
        order = np.argsort(combining[buffer[:count]], kind="mergesort")
        for k in buffer[:count][order]:
            at, state = _append_item(np.int64(kinds[k]), spelling, spelled[k], spelled[k + 1], out, at, state)
    return at, invalid, borders


@jit()
def _folded_bytes(text, start, stop, widest):
    """Return a bound on the bytes that `_fold` writes, with the 64 that it may write too many; it is seldom far off.

    An invalid byte takes `_INVALID_ROOM` bytes more. A byte that continues no sequence is invalid. A sequence that ends
    too early has at most three invalid bytes, with those that would have continued it; if it is overlong, a
    surrogate or beyond U+10FFFF, each of its bytes is invalid.
    """
    room = stop - start + 64
    continued = np.uint64(0)  # which of the next bytes have to continue the sequences before them
    for i in range(start, stop, 64):
        beyond, lead, three, four = sequence_bits(text, i, stop)
        expected = continued | lead << np.uint64(1) | three << np.uint64(2) | four << np.uint64(3)
        continued = lead >> np.uint64(63) | three >> np.uint64(62) | four >> np.uint64(61)
        continues = beyond & ~lead
        if continues != expected:
            room += _INVALID_ROOM * (population(continues & ~expected) + 3 * population(expected & ~continues))
        while lead != np.uint64(0):
            at = i + trailing_zeros(lead)
            lead &= lead - np.uint64(1)
            if at + 1 >= stop:
                continue
            byte, second = np.int64(text[at]), np.int64(text[at + 1]) & 63
            if byte < 0xE0:
                room += widest[byte & 31] if byte >= 0xC2 else 2 * _INVALID_ROOM
            elif byte < 0xF0:
                block = (byte & 15) << 6 | second
                is_valid = block >= 32 and block >> 5 != 0xD800 >> 11
                room += widest[block] if is_valid else 3 * _INVALID_ROOM
            elif at + 2 < stop:
                block = (byte & 15) << 12 | second << 6 | np.int64(text[at + 2]) & 63
                room += widest[block] if 1024 <= block < len(widest) else 4 * _INVALID_ROOM
    return room + 3 * _INVALID_ROOM * population(continued)


@by_rows("uint8[::1], int64[::1], uint8[::1], int64[::1]")
def _measure_folded(begin, end, text, offsets, widest, ends):
    for d in range(begin, end):
        if not is_ascii(text, offsets[d], offsets[d + 1]):
            ends[d] = _folded_bytes(text, offsets[d], offsets[d + 1], widest)


def place_folded(text, offsets, bounds, widest):
    """Return where each document that is not ASCII may be folded to, in one array for all.

    Returns
    -------
    begins : array of int64, shape (documents + 1,)
        Where each document begins; and the size of the array.
    ends : array of int64, shape (documents,)
        -1 for documents that are ASCII.
    """
    begins, ends = np.zeros(len(offsets), np.int64), np.full(len(offsets) - 1, -1, np.int64)
    _measure_folded(bounds, text, offsets, widest, ends)
    np.cumsum(np.maximum(ends, 0), out=begins[1:])
    return begins, ends


@by_rows(
    "uint8[::1], int64[::1], int64[::1], int64[::1], uint8[::1], uint16[::1], uint16[:, ::1], uint32[::1], "
    "uint8[::1], uint8[::1], uint32[::1], uint8[::1], int64[::1], int64[::1]"
)
def _fold_documents(
    begin, end, text, offsets, begins, ends, folded,
    page, sequence, starts, combining, kinds, spelled, spelling, counts, invalid,
):  # fmt: skip
    for d in range(begin, end):
        if ends[d] < 0:
            counts[d] = count_words(text, offsets[d], offsets[d + 1])
        else:
            ends[d], num_invalid, num_borders = _fold(
                text, offsets[d], offsets[d + 1], folded, begins[d],
                page, sequence, starts, combining, kinds, spelled, spelling,
            )  # fmt: skip
            invalid[d] = num_invalid
            counts[d] = count_words(folded, begins[d], ends[d])
            if counts[d] == num_borders:  # no token but borders
                counts[d], ends[d] = 0, begins[d]


def fold_documents(text, offsets, bounds):
    """Count tokens; documents that are not ASCII are folded first. `bounds` are of runs of documents; see `shares`.

    Returns
    -------
    folded : array of uint8
    begins, ends : arrays of int64, shape (documents + 1,) and (documents,)
        Document d is folded[begins[d]:ends[d]]. If it is ASCII, it is not folded, and its end is -1.
    counts : array of int64, shape (documents,)
        Tokens, 0 if a document is of borders alone.
    invalid : int
        The number of bytes that are not UTF-8.
    """
    widest, *table = _unicode_table.load()
    begins, ends = place_folded(text, offsets, bounds, widest)
    folded = np.empty(begins[-1], np.uint8)  # as `rarity` says of huge pages
    counts, invalid = np.zeros((2, len(offsets) - 1), np.int64)
    _fold_documents(bounds, text, offsets, begins, ends, folded, *table, counts, invalid)
    return folded, begins, ends, counts, int(invalid.sum())
