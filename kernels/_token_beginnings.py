"""Find where tokens begin, on a GPU: each thread finds the beginnings in a group of 32 bytes by itself.

A group of ASCII takes a few operations on whole words. In other groups each character is decoded. They are listed and
done together, because one of them among groups of ASCII keeps 31 threads waiting. On an H100, counting 256 MB in which
one word in 200 has a letter beyond ASCII took 3.3 ms without the list, and 1.8 ms with it. At that time CuPy made the
list, in 0.7 ms of the 1.8.

A thread can work alone because only the last item before its bytes that is neither a mark nor vanishing matters: a word
character begins a token unless that item was one too. Only marks are ever reordered, with one exception. U+0345 folds
to the letter iota, but has a combining class, the greatest of all. It stays a word character that comes after all marks
of its run.
"""

from functools import cache

import numpy as np

from . import _unicode_table as unicode_table
from ._cpu import jit, types
from ._launch import Device, cuda, kernel
from ._unicode_table import BORDER, DIVIDE, MARK, SINGLE, VANISH, WORD
from ._utf8 import decode, is_word
from ._vectors import population

APART, BEGIN, EXTEND, EXTEND_BEFORE, END = range(5)
"""The deeds of an item, see `follow`."""

NO_RUN = -1
"""Stands for the state before a run of marks where no such run is read."""

GROUP = 32  # bytes of text whose token beginnings one thread finds

_UNKNOWN = -1  # state before a group, until something depends on it


@cache
def packed_table():
    """Return (page, sequence, starts, items, spelling): `unicode_table` with one word per item.

    A word holds the item's class and kind, and the length and the place of its spelling.
    """
    table = unicode_table.load()
    places = table.spelled.astype(np.int64)
    items = (
        table.combining.astype(np.int64)
        | table.kinds.astype(np.int64) << 8
        | (places[1:] - places[:-1]) << 16
        | places[:-1] << 32
    )
    return table.page, table.sequence, table.starts, items, table.spelling


TABLE = "uint16[::1], uint16[:,::1], uint32[::1], int64[::1], uint8[::1]"


_decode_on_device = Device(decode.py_func)


@jit()
def follow(rank, kind, state, before):
    """Follow tokens item by item, in the order of the text. Runs of marks need not be sorted.

    Parameters
    ----------
    rank, kind : int
        The combining class and the kind of the next item.
    state : int
        Kind of the last item that is neither a mark nor vanishing; DIVIDE at the beginning.
    before : int
        The state before the run, in a run of items of non-zero class; NO_RUN outside. In canonical order the letter
        U+0345 comes after all marks of its run, so all these marks belong to the token before the run.

    Returns
    -------
    state, before : int
        Their values after the item.
    deed : int
        - APART: the item belongs to no token.
        - BEGIN: a token begins with the item.
        - EXTEND: the item belongs to the newest token.
        - EXTEND_BEFORE: the item belongs to the token before the newest one.
        - END: the item belongs to no token, and the newest token has ended.
    """
    if rank > 0:
        before = state if before == NO_RUN else before
        if kind == WORD:
            return WORD, before, EXTEND if state == WORD else BEGIN
        if before == DIVIDE:
            return state, before, APART
        return state, before, EXTEND if state == before else EXTEND_BEFORE
    if kind == DIVIDE:
        return DIVIDE, NO_RUN, END
    if kind == SINGLE or (kind == WORD and state != WORD):
        return kind, NO_RUN, BEGIN
    return state, NO_RUN, APART if kind == VANISH or state == DIVIDE else EXTEND


@jit()
def _gathered(mask):
    """Return the highest bits of eight bytes, whose other bits are 0, as the bits of one byte."""
    return ((mask >> np.uint64(7)) * np.uint64(0x0102040810204080)) >> np.uint64(56)


@jit()
def high_bits(word):
    """Bit i: byte i of eight is not ASCII."""
    return _gathered(np.uint64(word) & np.uint64(0x8080808080808080))


@jit()
def word_bytes(word):
    """Bit i: byte i of eight ASCII bytes is a letter, a digit or `_`. Sums set a byte's high bit from a bound on."""
    word = np.uint64(word)
    small = word | np.uint64(0x2020202020202020)
    letters = (small + np.uint64(0x1F1F1F1F1F1F1F1F)) & ~(small + np.uint64(0x0505050505050505))
    digits = (word + np.uint64(0x5050505050505050)) & ~(word + np.uint64(0x4646464646464646))
    others = (word ^ np.uint64(0x5F5F5F5F5F5F5F5F)) + np.uint64(0x7F7F7F7F7F7F7F7F)
    mask = (letters | digits | ~others) & np.uint64(0x8080808080808080)
    return _gathered(mask)


@jit()
def _begun(words, before, begins):
    """Bit i: a token begins at byte i, where bit i of `words` says that byte i is of a word, and bit i of `begins`
    that a document begins there; `before` is 1 when the byte before is of a word."""
    words, before, begins = np.uint64(words), np.uint64(before), np.uint64(begins)
    return words & (~((words << np.uint64(1)) | before) | begins)


@jit()
def _count_bits(mask):
    return population(np.uint64(mask))


@Device
def begins_at(begins, i):
    """Whether a document begins at byte i."""
    return (np.int64(begins[i >> 5]) >> (i & 31)) & 1 != 0


@Device
def decode_at(text, begins, n, i):
    """`decode` of the sequence at i, which ends with its document."""
    stop = i + 1
    while stop < n and stop < i + 4 and not begins_at(begins, stop):
        stop += 1
    return _decode_on_device(text, i, stop)


@Device
def _continues(text, begins, n, i):
    """Whether byte i belongs to a sequence that began before it."""
    j = i
    while j > i - 3 and text[j] & 0xC0 == 0x80 and not begins_at(begins, j):
        j -= 1
    if j == i or text[j] & 0xC0 == 0x80:
        return False
    _, length, _ = decode_at(text, begins, n, j)
    return j + length > i


@Device
def _state_before(text, begins, n, i, page, sequence, starts, items):
    """Kind of the last item before byte i that is neither a mark nor vanishing; DIVIDE where the document begins."""
    while not begins_at(begins, i):
        i -= 1
        while _continues(text, begins, n, i):
            i -= 1
        code, _, _ = decode_at(text, begins, n, i)
        number = np.int64(sequence[page[code >> 8], code & 255])
        if number in (WORD, SINGLE):
            return number
        item = np.int64(starts[number + 1])
        while item > starts[number]:
            item -= 1
            kind = (items[item] >> 8) & 255
            if kind != MARK and kind != VANISH:
                return kind
    return DIVIDE


@Device
def _find_beginnings(text, begins, n, i, end, page, sequence, starts, items, found, at, wanted):
    """Find the items at which tokens begin, of code points that begin in text[i:end], one after another.

    If `wanted`, their places go to found[at:]: byte times 8 plus the number of the item in its code point, below 7.
    Returns their number, the number of invalid bytes, and the number of borders. The state before i is looked for only
    when a word character comes before anything that settles it; so no byte is gone back over by more than one thread.
    """
    while i < end and _continues(text, begins, n, i):
        i += 1
    count, invalid, borders, state = 0, 0, 0, _UNKNOWN
    while i < end:
        if begins_at(begins, i):
            state = DIVIDE
        code, length, wrong = decode_at(text, begins, n, i)
        if wrong:
            invalid += 1
        if code == BORDER:
            borders += 1
        number = np.int64(sequence[page[code >> 8], code & 255])
        first = np.int64(starts[number])
        num_items = np.int64(starts[number + 1]) - first
        if num_items == 0:  # it stands for itself
            num_items = np.int64(1)
        for item in range(num_items):
            kind = number if number in (WORD, SINGLE, MARK) else (items[first + item] >> 8) & 255
            if kind == WORD and state == _UNKNOWN:
                state = _state_before(text, begins, n, i, page, sequence, starts, items)
            if kind == SINGLE or (kind == WORD and state != WORD):
                if wanted:
                    found[at + count] = np.uint64((i << 3) | item)
                count += 1
            if kind != MARK and kind != VANISH:
                state = kind
        i += length
    return count, invalid, borders


@Device
def _ascii_beginnings(text, words, begins, n, group):
    """(whether a group and the byte before it are ASCII, bits of the bytes at which its tokens begin)."""
    first = 4 * group
    every = words[first] | words[first + 1] | words[first + 2] | words[first + 3]
    last = text[32 * group - 1] if group > 0 else np.uint8(0)
    if every & np.uint64(0x8080808080808080) != np.uint64(0) or last >= 128:
        return False, np.uint64(0)
    mask = np.uint64(0)
    for i in range(4):
        mask |= np.uint64(word_bytes(words[first + i])) << np.uint64(8 * i)
    mask = np.uint64(_begun(mask, np.uint64(1) if is_word(last) else np.uint64(0), begins[group]))
    if n - 32 * group < 32:  # what follows the text means nothing
        mask &= (np.uint64(1) << np.uint64(n - 32 * group)) - np.uint64(1)
    return True, mask


@kernel("void(int64[::1], uint32[::1])")
def mark_documents(offsets, begins):
    """One thread a document, and one for the end: set the bit of its first byte, if it has one; and of the byte after
    the text, where no token goes on."""
    d, last = cuda.grid(1), len(offsets) - 1
    if d == last or (d < last and offsets[d] < offsets[d + 1]):
        i = offsets[d]
        cuda.atomic.or_(begins, i >> 5, np.uint32(1 << (i & 31)))


@kernel("void(uint8[::1], uint64[::1], uint32[::1], int64, uint8[::1], uint32[::1], int64[::1])")
def count_in_ascii(text, words, begins, n, counts, decoded, num_decoded):
    """One thread a group: how many tokens begin there; a group that has to be decoded is listed in place of that.

    A block counts its listed groups first, and then takes places in the list for all of them at once.
    """
    number = cuda.shared.array(1, types.int32)
    base = cuda.shared.array(1, types.int64)
    if cuda.threadIdx.x == 0:
        number[0] = np.int32(0)
    cuda.syncthreads()
    group, place = cuda.grid(1), np.int64(-1)
    if group < len(counts):
        ascii, mask = _ascii_beginnings(text, words, begins, n, group)
        if ascii:
            counts[group] = np.uint8(_count_bits(mask))
        else:
            place = np.int64(cuda.atomic.add(number, 0, np.int32(1)))
    cuda.syncthreads()
    if cuda.threadIdx.x == 0 and number[0] > 0:
        base[0] = cuda.atomic.add(num_decoded, 0, np.int64(number[0]))
    cuda.syncthreads()
    if place >= 0:
        decoded[base[0] + place] = np.uint32(group)


@kernel(f"void(uint8[::1], uint32[::1], int64, {TABLE}, uint32[::1], int64[::1], uint8[::1], int64[::1])")
def count_decoded(text, begins, n, page, sequence, starts, items, spelling, decoded, num_decoded, counts, odd):
    """Threads take in turn the groups that have to be decoded, whose number is known on the device alone: how many
    tokens begin there, at most 66 (11 sequences of 3 bytes, each of 6 tokens).

    The number of invalid bytes is added to odd[0], and that of borders to odd[1].
    """
    found = cuda.local.array(1, types.uint64)
    at, step = np.int64(cuda.grid(1)), np.int64(cuda.gridDim.x) * cuda.blockDim.x
    while at < num_decoded[0]:
        group = np.int64(decoded[at])
        i, end = GROUP * group, min(GROUP * (group + 1), n)
        count, invalid, borders = _find_beginnings(
            text, begins, n, i, end, page, sequence, starts, items, found, 0, False
        )  # fmt: skip
        counts[group] = np.uint8(count)
        if invalid:
            cuda.atomic.add(odd, 0, invalid)
        if borders:
            cuda.atomic.add(odd, 1, borders)
        at += step


@kernel("void(uint8[::1], uint64[::1], uint32[::1], int64, int64[::1], uint64[::1])")
def fill_in_ascii(text, words, begins, n, ends, places):
    """One thread a group: where its tokens begin, as `_find_beginnings` writes it, unless that takes decoding.

    `ends` counts tokens to the end of each group.
    """
    group = cuda.grid(1)
    if group >= len(ends):
        return
    at = ends[group - 1] if group > 0 else 0
    ascii, mask = _ascii_beginnings(text, words, begins, n, group)
    while ascii and mask != np.uint64(0):
        lowest = mask & (~mask + np.uint64(1))
        i = GROUP * group + np.int64(_count_bits(lowest - np.uint64(1)))
        places[at] = np.uint64(i << 3)
        at += 1
        mask ^= lowest


@kernel(f"void(uint8[::1], uint32[::1], int64, {TABLE}, uint32[::1], int64, int64[::1], uint64[::1])")
def fill_decoded(text, begins, n, page, sequence, starts, items, spelling, decoded, num_decoded, ends, places):
    """Find where tokens begin, in each thread for one group that has to be decoded."""
    number = cuda.grid(1)
    if number >= num_decoded:
        return
    group = np.int64(decoded[number])
    at = ends[group - 1] if group > 0 else 0
    i, end = GROUP * group, min(GROUP * (group + 1), n)
    _find_beginnings(text, begins, n, i, end, page, sequence, starts, items, places, at, True)


@kernel(f"void(uint8[::1], uint64[::1], uint32[::1], int64, {TABLE}, int64[::1], int64[::1], int64[::1])")
def count_before(text, words, begins, n, page, sequence, starts, items, spelling, ends, offsets, new_offsets):
    """One thread a document, and one for the end: how many tokens begin before it."""
    d = cuda.grid(1)
    if d >= len(offsets):
        return
    group = offsets[d] >> 5
    before = ends[group - 1] if group > 0 else 0
    i = GROUP * group
    if i < offsets[d]:
        ascii, mask = _ascii_beginnings(text, words, begins, n, group)
        if ascii:
            below = (np.uint64(1) << np.uint64(offsets[d] - i)) - np.uint64(1)
            before += np.int64(_count_bits(mask & below))
        else:
            found = cuda.local.array(1, types.uint64)
            count, _, _ = _find_beginnings(
                text, begins, n, i, offsets[d], page, sequence, starts, items, found, 0, False
            )  # fmt: skip
            before += count
    new_offsets[d] = before


@kernel("void(uint8[::1], uint32[::1], int64, uint64[::1], int64[::1], int64[::1])")
def count_unless_borders(text, begins, n, places, offsets, sizes):
    """Count the tokens of a document in each thread: 0 if each of them begins with a border."""
    d = cuda.grid(1)
    if d >= len(sizes):
        return
    at, end = offsets[d], offsets[d + 1]
    while at < end:
        code, _, _ = decode_at(text, begins, n, np.int64(places[at] >> np.uint64(3)))
        if code != BORDER:
            break
        at += 1
    sizes[d] = end - offsets[d] if at < end else 0
