"""Letters: the words of a text as code points, for text in which words are misread or divided, such as noisy scans.

    letters = the code points of the words of `tokens` as it spells them, with one space between two words

A letter's fingerprint is Rabin's, of its UTF-8 bytes. So punctuation, white space and case never matter, and a letter
with marks is several tokens. The place of a letter is that of the code point that becomes it, perhaps with others. The
place of a space reaches from the end of the letter before it to the beginning of the letter after it; it is empty if
these overlap.

Source: Manasse 2.1 (canonical characters, one delimiter, folded case) and 3.3 (fingerprints).
Cost: linear. On the CPU, a look-up per letter of ASCII in folded text. On a GPU, a thread spells a word, first to count
its letters, then to write them.
"""

from functools import cache

import numpy as np

from ._constants import constants
from ._cpu import Rare, jit, shares, types
from ._folding import fold_documents
from ._gf2 import advance, advance_by_tables, byte_tables, prepare, rabin
from ._launch import TABLES, Device, bounds_of, cuda, kernel, load, namespace, on_device, row_of
from ._ragged import by_rows
from ._token_beginnings import BEGIN, NO_RUN, TABLE, follow, packed_table
from ._unicode_table import DIVIDE, MARK, SINGLE, VANISH, WORD
from ._utf8 import decode, is_word, sequence_bits, word_bits
from ._vectors import population
from .tokens import _moving_and_staying, begun, canonical_words, count_ahead as count_ahead

SPACE = np.uint64(0x20)


def reference(text, offsets, poly, places=False):
    """Return the fingerprints of the letters of each document, straight from the definition.

    Parameters
    ----------
    text, offsets, poly, places
        As `tokens` takes them.

    Returns
    -------
    values, offsets, invalid, begins, ends
        As `tokens` returns them.
    """
    values, new_offsets, invalid, spans = [], [0], 0, []
    for start, stop in zip(offsets[:-1], offsets[1:], strict=True):
        words, num_invalid = canonical_words(text[start:stop].tobytes())
        invalid += num_invalid
        for number, word in enumerate(words):
            if number:
                values.append(rabin(b" ", int(poly)))
                spans.append((spans[-1][1], max(spans[-1][1], start + word[0][1])))
            for spelling, begin, end in word:
                for letter in spelling.decode("utf-8", "surrogatepass"):
                    values.append(rabin(letter.encode("utf-8", "surrogatepass"), int(poly)))
                    spans.append((start + begin, start + end))
        new_offsets.append(len(values))
    found = np.array(values, np.uint64), np.array(new_offsets, np.int64), invalid
    return (*found, *np.array(spans, np.int64).reshape(-1, 2).T.copy()) if places else found


@jit()
def _count(source, start, stop):
    """Count the letters of source[start:stop], in which words are the runs of word bytes, and the spaces."""
    count, words, before = 0, 0, np.uint64(0)
    for i in range(start, stop, 64):
        mask = word_bits(source, i, stop)
        beyond, lead, _, _ = sequence_bits(source, i, stop)
        count += population(mask & ~(beyond & ~lead))
        words += population(mask & ~((mask << np.uint64(1)) | before))
        before = mask >> np.uint64(63)
    return count + max(words - 1, 0)


@jit()
def _split(source, i, stop, values, at, of_ascii, q, modulus):
    """Write the letters of source[i:stop], in which words are the runs of word bytes, into values[at:]."""
    first, inside = at, False
    while i < stop:
        byte = source[i]
        i += 1
        if not is_word(byte):
            inside = False
            continue
        if not inside and at > first:
            values[at] = of_ascii[32]
            at += 1
        inside = True
        if byte < 128:
            values[at] = of_ascii[byte]
        else:
            letter, length = np.uint64(byte), 1
            while i < stop and source[i] & 0xC0 == 0x80:
                letter |= np.uint64(source[i]) << np.uint64(8 * length)
                length += 1
                i += 1
            moving, staying = _moving_and_staying(q, letter, length)
            values[at] = advance(moving, modulus) ^ staying
        at += 1


@by_rows(Rare("uint8[::1], int64[::1], uint8[::1], int64[::1], int64[::1], int64[::1]"))
def _count_documents(begin, end, text, offsets, folded, begins, ends, counts):
    for d in range(begin, end):
        if ends[d] < 0:
            counts[d] = _count(text, offsets[d], offsets[d + 1])
        else:
            counts[d] = _count(folded, begins[d], ends[d])


@by_rows(
    Rare("uint8[::1], int64[::1], uint8[::1], int64[::1], int64[::1], int64[::1], uint64[::1], uint64[::1], uint64")
)
def _fill(begin, end, text, offsets, folded, begins, ends, new_offsets, values, of_ascii, q):
    modulus = prepare(q)
    for d in range(begin, end):
        if ends[d] < 0:
            _split(text, offsets[d], offsets[d + 1], values, new_offsets[d], of_ascii, q, modulus)
        else:
            _split(folded, begins[d], ends[d], values, new_offsets[d], of_ascii, q, modulus)


COUNT, SPELL, PLACE = range(3)
"""Choices of `wanted` in `_spell`."""


@jit()
def _take(source, place, length, begin, end, wanted, letters, begins, ends, at):
    """Count, write or place the letters that source[place:place + length] spells for the code point at `begin`."""
    j = place
    while j < place + length:
        letter, size = np.uint64(source[j]), 1
        j += 1
        while j < place + length and source[j] & 0xC0 == 0x80:
            letter |= np.uint64(source[j]) << np.uint64(8 * size)
            size += 1
            j += 1
        if wanted == SPELL:
            letters[at] = letter
        elif wanted == PLACE:
            begins[at] = begin
            ends[at] = end
        at += 1
    return at


@jit()
def _item(text, i, k, stop, table):
    """Return item k of the code point at i: (class, kind, length and place of its spelling, next code point and item,
    end of the code point).

    The place is -1 if the code point stands for itself.
    """
    page, sequence, starts, items, _ = table
    code, size, _ = decode(text, i, stop)
    number = np.int64(sequence[page[code >> 8], code & 255])
    first, last = np.int64(starts[number]), np.int64(starts[number + 1])
    end = np.int64(i + size)
    if first == last:
        return np.int64(0), number, np.int64(size), np.int64(-1), end, np.int64(0), end
    item = items[first + k]
    following, k = (end, np.int64(0)) if first + k + 1 == last else (np.int64(i), np.int64(k + 1))
    return item & 255, (item >> 8) & 255, (item >> 16) & 0xFFFF, item >> 32, following, k, end


@jit()
def _spell(text, i, k, stop, table, wanted, letters, begins, ends, at):
    """Spell the token that begins at item k of the code point at i, and return `at` plus the number of its letters.

    Runs of items of non-zero class are taken in canonical order, from the lowest class up, each by a pass over the run:
    no room is needed for runs of any length.
    """
    i, k, state, ended = np.int64(i), np.int64(k), np.int64(DIVIDE), False
    while i < stop and not ended:
        rank, kind, length, place, next_i, next_k, end = _item(text, i, k, stop, table)
        if rank == 0:
            if kind == DIVIDE or (kind == WORD and state == SINGLE) or (kind == SINGLE and state != DIVIDE):
                break
            if kind != VANISH:
                if place < 0:
                    at = _take(text, i, length, i, end, wanted, letters, begins, ends, at)
                else:
                    at = _take(table[4], place, length, i, end, wanted, letters, begins, ends, at)
                if kind != MARK:
                    state = kind
            i, k = next_i, next_k
            continue
        run_i, run_k, letters_only, wanted_rank = i, k, state == DIVIDE, np.int64(1)
        while wanted_rank < 256 and not ended:
            following = np.int64(256)
            i, k = run_i, run_k
            while i < stop:
                rank, kind, length, place, next_i, next_k, end = _item(text, i, k, stop, table)
                if rank == 0:
                    break
                if rank == wanted_rank:
                    if kind == WORD and state == SINGLE:
                        ended = True
                    elif kind == WORD or not letters_only:
                        at = _take(table[4], place, length, i, end, wanted, letters, begins, ends, at)
                    if kind == WORD and not ended:
                        state = np.int64(WORD)
                elif rank > wanted_rank:
                    following = min(following, rank)
                i, k = next_i, next_k
            wanted_rank = following
    return at


@jit()
def _place_space(begins, ends, at):
    """Write the place of the space at `at`, from those of the letters around it."""
    begins[at] = ends[at - 1]
    ends[at] = max(ends[at - 1], begins[at + 1])


@jit()
def _place(text, i, stop, table, begins, ends, at):
    """Write the places of the letters of text[i:stop], from `at` on."""
    page, sequence, starts, items, _ = table
    first_letter, letters = at, np.empty(0, np.uint64)
    state, before = np.int64(DIVIDE), np.int64(NO_RUN)
    while i < stop:
        code, length, _ = decode(text, i, stop)
        number = np.int64(sequence[page[code >> 8], code & 255])
        first, last = np.int64(starts[number]), np.int64(starts[number + 1])
        for k in range(first, max(last, first + 1)):
            item = items[k] if first < last else number << 8
            state, before, deed = follow(item & 255, (item >> 8) & 255, state, before)
            if deed == BEGIN:
                space = at
                at += at > first_letter
                at = _spell(text, i, k - first, stop, table, PLACE, letters, begins, ends, at)
                if space > first_letter:
                    _place_space(begins, ends, space)
        i += length


@by_rows(
    Rare(
        "uint8[::1], int64[::1], int64[::1], uint16[::1], uint16[:, ::1], uint32[::1], int64[::1], uint8[::1], "
        "int64[::1], int64[::1]"
    )
)
def _place_documents(
    begin, end, text, offsets, new_offsets, page, sequence, starts, items, spelling, begins, ends
):  # fmt: skip
    table = page, sequence, starts, items, spelling
    for d in range(begin, end):
        if new_offsets[d] < new_offsets[d + 1]:  # else it may be of borders alone
            _place(text, offsets[d], offsets[d + 1], table, begins, ends, new_offsets[d])


@cache
def _of_ascii(poly):
    """Return the fingerprint of each character of ASCII in lower case."""
    return np.array([rabin(bytes([byte]).lower(), poly) for byte in range(128)], np.uint64)


def cpu(text, offsets, poly, places=False):
    """Return what `reference` returns: documents in parallel, folded first unless they are ASCII."""
    bounds = shares(offsets)
    folded, begins, ends, _, invalid = fold_documents(text, offsets, bounds)
    new_offsets = np.zeros(len(offsets), np.int64)
    _count_documents(bounds, text, offsets, folded, begins, ends, new_offsets[1:])
    np.cumsum(new_offsets, out=new_offsets)
    values, q = np.empty(new_offsets[-1], np.uint64), np.uint64(poly)
    _fill(bounds, text, offsets, folded, begins, ends, new_offsets, values, _of_ascii(int(poly)), q)
    if not places:
        return values, new_offsets, invalid
    begins, ends = np.empty((2, len(values)), np.int64)
    _place_documents(bounds, text, offsets, new_offsets, *packed_table(), begins, ends)
    return values, new_offsets, invalid, begins, ends


for _function in (_take, _item, _spell):
    Device(_function.py_func)


@kernel(
    f"void(uint8[::1], int64[::1], int64[::1], uint64[::1], {TABLE}, int64, int64[::1], uint64[::1], int64[::1], "
    "int64[::1])"
)
def _spell_words(
    text, stops, word_offsets, found, page, sequence, starts, items, spelling, wanted, after, letters, begins, ends
):  # fmt: skip
    """Count, write or place the letters of one word in each thread, and of the space before it.

    `found` says where words begin, and after[w] the letters up to the end of word w; counted are they there, too.
    """
    word = cuda.grid(1)
    if word >= len(found):
        return
    d = row_of(word_offsets, word)
    is_later = np.int64(word > word_offsets[d])
    at = np.int64(0)
    if wanted != COUNT and word > 0:
        at = after[word - 1]
    if is_later == 1 and wanted == SPELL:
        letters[at] = SPACE
    i, k = np.int64(found[word] >> np.uint64(3)), np.int64(found[word] & np.uint64(7))
    table = page, sequence, starts, items, spelling
    at = _spell(text, i, k, stops[d], table, wanted, letters, begins, ends, at + is_later)
    if wanted == COUNT:
        after[word] = at


@kernel("void(int64[::1], int64[::1], int64[::1], int64[::1])")
def _place_spaces(word_offsets, after, begins, ends):
    """Write the place of the space before one word in each thread."""
    word = cuda.grid(1)
    if 0 < word < len(after) and word > word_offsets[row_of(word_offsets, word)]:
        _place_space(begins, ends, after[word - 1])


Device(_place_space.py_func)


@kernel("void(uint64[::1], uint64, uint64[::1])")
def _fingerprint_letters(letters, q, tables):
    """Replace the bytes of one letter by its fingerprint in each thread."""
    modulus = cuda.shared.array(TABLES, types.uint64)
    load(tables, modulus)
    at = cuda.grid(1)
    if at < len(letters):
        letter, length = letters[at], 1
        while length < 4 and letter >> np.uint64(8 * length) != np.uint64(0):
            length += 1
        moving, staying = _moving_and_staying(np.uint64(q), letter, length)
        letters[at] = np.uint64(advance_by_tables(np.uint64(moving), modulus)) ^ np.uint64(staying)


def gpu(text, offsets, poly, places=False):
    """Return what `reference` returns: a thread spells a word, and then a thread fingerprints a letter.

    The host waits twice, for the number of words and for that of letters.
    """
    xp = namespace()
    found = begun(text, offsets)
    stops, table, num_words = on_device(offsets)[1:] - found.first, constants(packed_table), len(found.places)
    after, nothing = xp.zeros(num_words + 1, np.int64), xp.empty(0, np.int64)
    words = found.text, stops, found.offsets, found.places, *table
    _spell_words.threads(num_words, *words, COUNT, after[1:], xp.empty(0, np.uint64), nothing, nothing)
    xp.cumsum(after, out=after)
    new_offsets = after[found.offsets]
    letters = xp.empty(bounds_of(new_offsets)[1], np.uint64)
    _spell_words.threads(num_words, *words, SPELL, after[1:], letters, nothing, nothing)
    (tables,) = constants(byte_tables, np.uint64(poly))
    _fingerprint_letters.threads(len(letters), letters, np.uint64(poly), tables)
    if not places:
        return letters, new_offsets, found.invalid
    begins, ends = xp.empty(len(letters), np.int64), xp.empty(len(letters), np.int64)
    _spell_words.threads(num_words, *words, PLACE, after[1:], letters, begins, ends)
    _place_spaces.threads(num_words, found.offsets, after[1:], begins, ends)
    return letters, new_offsets, found.invalid, begins + found.first, ends + found.first
