"""Code: identifiers, numbers and operators of source code, without its comments.

    identifier or number = a run of ASCII letters, digits, `_` and bytes beyond ASCII
    operator             = each other character of ASCII that is printed, but for the space

Case is kept, and nothing is decomposed. A token's fingerprint is Rabin's, of its bytes; its place is its bytes. What
lies in comments, and borders between columns, divide tokens and belong to none.

Comments are found by the rules of the document's language. A rule is a row of four words: the bytes that open it, the
bytes that close it, both little-endian; their numbers, (closing << 8) | opening; and `COMMENT`, or 0 for a string, with
other flags. At each byte outside of comments and strings, the first rule that opens there is taken. Where it closes,
the next byte is outside again. Language 0 stands for an unknown one: its rules find borders alone.

Source: Manasse 3.3 (fingerprints). The rules are those of `neardup_gpu/text/comments.py`.
Cost: linear. On the CPU, a document is one thread's work. On a GPU, a document's comments are one thread's work, and so
is each token.
"""

import re
from functools import cache

import numpy as np

from ._constants import constants
from ._cpu import Rare, jit, shares, types
from ._gf2 import advance, append_byte, byte_tables, prepare, rabin
from ._launch import TABLES, Device, bounds_of, cuda, kernel, load, namespace, on_device, row_of
from ._ragged import by_rows
from ._token_beginnings import _continues, begins_at, decode_at, mark_documents
from ._utf8 import decode, is_ascii, is_word, load_word

COMMENT, LINE, ESCAPE, NESTED, AFTER_SPACE, AT_LINE_START, AFTER_NO_WORD, LETTER, FIRST = (1 << bit for bit in range(9))
"""Flags of a rule.

- COMMENT: what it finds is left out.
- LINE: it ends before the end of the line, too.
- ESCAPE: a byte after a backslash does not close it.
- NESTED: it may be opened again inside.
- AFTER_SPACE: it opens only at the beginning, and after white space or one of ``;|&()`` and backquotes.
- AT_LINE_START, AFTER_NO_WORD: it opens only there.
- LETTER: it opens only around one character or one escape, so that other quotes open nothing.
- FIRST: a document begins inside.
"""

_BEFORE = b";|&()`"
_LETTER = re.compile(rb"'(\\.[^'\r\n]*|[^\\\x80-\xff]|[\xc0-\xff][\x80-\xbf]+)'", re.DOTALL)
_TOKEN = re.compile(rb"[0-9A-Za-z_\x80-\xff]+|[!-~]")


def reference(text, offsets, poly, languages, rules, firsts, openings, places=False):
    """Return the fingerprints of the tokens of each document, straight from the definition.

    Parameters
    ----------
    text, offsets, poly, places
        As `tokens` takes them.
    languages : array of uint8, shape (documents,)
        The number of each document's language; 0 if it is not known.
    rules : array of uint64, shape (rules, 4)
        See above.
    firsts : array of int64, shape (languages + 1,)
        The rules of language i are firsts[i] to firsts[i + 1].
    openings : array of uint64, shape (languages, 4)
        Bit b of a language's 256 bits: a rule of the language opens with byte b.

    Returns
    -------
    values, offsets, invalid, begins, ends
        As `tokens` returns them.
    """
    values, new_offsets, invalid, spans = [], [0], 0, []
    for d, (start, stop) in enumerate(zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)):
        raw = text[start:stop].tobytes()
        of_language = rules[firsts[languages[d]] : firsts[languages[d] + 1]].tolist()
        for match in _TOKEN.finditer(_without_comments(raw, of_language)):
            values.append(rabin(match[0], int(poly)))
            spans.append((start + match.start(), start + match.end()))
        new_offsets.append(len(values))
        for part in raw.split(b"\xed\xb0\x80"):
            invalid += sum("\udc80" <= each <= "\udcff" for each in part.decode("utf-8", "surrogateescape"))
    found = np.array(values, np.uint64), np.array(new_offsets, np.int64), invalid
    return (*found, *np.array(spans, np.int64).reshape(-1, 2).T.copy()) if places else found


def _without_comments(raw, rules):
    """Return the bytes of a document with spaces in place of its comments."""
    rules = [
        (opening.to_bytes(8, "little")[: sizes & 255], closing.to_bytes(8, "little")[: sizes >> 8], flags)
        for opening, closing, sizes, flags in rules
    ]
    left, i = bytearray(raw), 0
    for opening, closing, flags in rules:
        if flags & FIRST:
            i = _end_of(raw, -len(opening), opening, closing, flags)
    while i < len(raw):
        for opening, closing, flags in rules:
            if raw.startswith(opening, i) and _may_open(raw, i, flags):
                end = _end_of(raw, i, opening, closing, flags)
                if flags & COMMENT:
                    left[i:end] = b" " * (end - i)
                i = end
                break
        else:
            i += 1
    return bytes(left)


def _may_open(raw, i, flags):
    before = raw[i - 1 : i] or b"\n"
    if flags & LETTER and not _LETTER.match(raw, i):
        return False
    return not (
        (flags & AFTER_SPACE and before > b" " and before not in _BEFORE)
        or (flags & AT_LINE_START and before not in b"\r\n")
        or (flags & AFTER_NO_WORD and re.match(rb"[0-9A-Za-z_\x80-\xff]", before))
    )


def _end_of(raw, i, opening, closing, flags):
    """Return the end of the comment or string that opens at i."""
    i, depth = i + len(opening), 1
    while i < len(raw) and (closing or flags & LINE):
        if flags & ESCAPE and raw[i] == ord("\\"):
            i += 2
        elif flags & LINE and raw[i] in b"\r\n":
            break
        elif closing and raw.startswith(closing, i):
            i, depth = i + len(closing), depth - 1
            if depth == 0:
                break
        elif flags & NESTED and raw.startswith(opening, i):
            i, depth = i + len(opening), depth + 1
        else:
            i += 1
    return min(i, len(raw))


@jit()
def _matches(text, i, stop, word, size):
    """Whether text[i:stop] begins with the `size` lowest bytes of a word."""
    if i + size > stop:
        return False
    for j in range(size):
        if np.uint64(text[i + j]) != (word >> np.uint64(8 * j)) & np.uint64(0xFF):
            return False
    return True


@jit()
def _is_letter(text, i, stop):
    """Whether quotes at i stand around one character or one escape."""
    j = i + 1
    if j >= stop:
        return False
    if text[j] == 0x5C:
        j += 2
        while j < stop and text[j] != 0x27:
            if text[j] == 0x0A or text[j] == 0x0D:
                return False
            j += 1
        return j < stop
    is_wide = text[j] >= 0xC0
    if text[j] >= 0x80 and not is_wide:
        return False
    j += 1
    first = j
    while is_wide and j < stop and text[j] & 0xC0 == 0x80:
        j += 1
    return j < stop and text[j] == 0x27 and (j > first or not is_wide)


@jit()
def _divides(byte):
    """Whether a byte is white space, or one of `_BEFORE`."""
    is_sign = byte == 0x3B or byte == 0x7C or byte == 0x26 or byte == 0x28 or byte == 0x29 or byte == 0x60
    return byte <= 32 or is_sign


@jit()
def _opens(text, i, start, stop, flags):
    """Whether a rule with these flags may open at i, of a document that begins at `start`."""
    before = np.int64(text[i - 1]) if i > start else np.int64(0x0A)
    if flags & LETTER != 0 and not _is_letter(text, i, stop):
        return False
    if flags & AFTER_SPACE != 0 and not _divides(before):
        return False
    if flags & AT_LINE_START != 0 and before != 0x0A and before != 0x0D:
        return False
    return flags & AFTER_NO_WORD == 0 or not is_word(before)


@jit()
def _end(text, i, stop, opening, closing, sizes, flags):
    """Return the end of a comment or string whose opening bytes end at i."""
    open_size, close_size, depth = sizes & 255, sizes >> 8, 1
    if close_size == 0 and flags & LINE == 0:
        return i
    while i < stop:
        if flags & ESCAPE != 0 and text[i] == 0x5C:
            i += 2
        elif flags & LINE != 0 and (text[i] == 0x0A or text[i] == 0x0D):
            break
        elif close_size > 0 and _matches(text, i, stop, closing, close_size):
            i += close_size
            depth -= 1
            if depth == 0:
                break
        elif flags & NESTED != 0 and _matches(text, i, stop, opening, open_size):
            i += open_size
            depth += 1
        else:
            i += 1
    return min(i, stop)


@jit()
def _clear(text, start, stop, language, rules, firsts, openings, left):
    """Write spaces into `left` in place of the comments of text[start:stop]."""
    i, first, last = np.int64(start), np.int64(firsts[language]), np.int64(firsts[language + 1])
    for r in range(first, last):
        if np.int64(rules[r, 3]) & FIRST != 0:
            i = np.int64(_end(text, i, stop, rules[r, 0], rules[r, 1], np.int64(rules[r, 2]), np.int64(rules[r, 3])))
    while i < stop:
        byte = np.int64(text[i])
        if (openings[language, byte >> 6] >> np.uint64(byte & 63)) & np.uint64(1) != np.uint64(0):
            r = first
            while r < last:
                sizes, flags = np.int64(rules[r, 2]), np.int64(rules[r, 3])
                if _matches(text, i, stop, rules[r, 0], sizes & 255) and _opens(text, i, start, stop, flags):
                    break
                r += 1
            if r < last:
                sizes, flags = np.int64(rules[r, 2]), np.int64(rules[r, 3])
                end = np.int64(_end(text, i + (sizes & 255), stop, rules[r, 0], rules[r, 1], sizes, flags))
                if flags & COMMENT != 0:
                    for j in range(i, end):
                        left[j] = 32
                i = end
                continue
        i += 1


@jit()
def _is_operator(byte):
    return 32 < byte < 127 and not is_word(byte)


@jit()
def _end_of_token(text, i, stop):
    """Return the end of the token that begins at i."""
    j = i + 1
    while is_word(text[i]) and j < stop and is_word(text[j]):
        j += 1
    return j


@jit()
def _count_tokens(text, start, stop):
    count, inside = 0, False
    for i in range(start, stop):
        begun = is_word(text[i])
        count += (begun and not inside) or _is_operator(text[i])
        inside = begun
    return count


@jit()
def _count_invalid(text, i, stop):
    count = 0
    while i < stop:
        _, length, wrong = decode(text, i, stop)
        count += wrong
        i += length
    return count


@by_rows(
    Rare(
        "uint8[::1], int64[::1], uint8[::1], (uint64[:, ::1], int64[::1], uint64[:, ::1]), uint8[::1], "
        "int64[::1], int64[::1]"
    )
)
def _clear_documents(begin, end, text, offsets, languages, table, left, counts, invalid):
    rules, firsts, openings = table
    for d in range(begin, end):
        _clear(text, offsets[d], offsets[d + 1], languages[d], rules, firsts, openings, left)
        counts[d] = _count_tokens(left, offsets[d], offsets[d + 1])
        if not is_ascii(text, offsets[d], offsets[d + 1]):
            invalid[d] = _count_invalid(text, offsets[d], offsets[d + 1])


@jit()
def _fingerprint(text, start, stop, q, modulus):
    """Rabin fingerprint of text[start:stop], not empty; eight bytes a reduction."""
    f = q
    while stop - start > 8:
        f = advance(f ^ load_word(text, start), modulus)
        start += 8
    word = np.uint64(0)
    if start + 8 <= len(text):
        word = load_word(text, start) & (np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - 8 * (stop - start)))
    else:
        for j in range(start, stop):
            word |= np.uint64(text[j]) << np.uint64(8 * (j - start))
    f, bits = f ^ word, np.uint64(8 * (stop - start))
    return advance(f << (np.uint64(64) - bits), modulus) ^ ((f >> np.uint64(1)) >> (bits - np.uint64(1)))


@by_rows(Rare("uint8[::1], int64[::1], int64[::1], uint64[::1], uint64, uint64[::1], int64[:, ::1]"))
def _fill(begin, end, text, offsets, new_offsets, of_operators, q, values, placed):
    modulus = prepare(q)
    for d in range(begin, end):
        i, stop, at = offsets[d], offsets[d + 1], new_offsets[d]
        while i < stop:
            j = _end_of_token(text, i, stop)
            if _is_operator(text[i]):
                values[at] = of_operators[text[i]]
            elif is_word(text[i]):
                values[at] = _fingerprint(text, i, j, q, modulus)
            else:
                i = j
                continue
            if placed.shape[1] > 0:
                placed[0, at] = i
                placed[1, at] = j
            at += 1
            i = j


@cache
def _of_ascii(poly):
    """Return the fingerprint of each character of ASCII."""
    return np.array([rabin(bytes([byte]), poly) for byte in range(128)], np.uint64)


def cpu(text, offsets, poly, languages, rules, firsts, openings, places=False):
    """Return what `reference` returns: documents in parallel."""
    left = text.copy()
    counts, invalid = clear_comments(text, offsets, languages, (rules, firsts, openings), left)
    new_offsets = np.append(0, np.cumsum(counts))
    values = np.empty(new_offsets[-1], np.uint64)
    placed = np.empty((2, len(values) if places else 0), np.int64)
    q = np.uint64(poly)
    _fill(shares(offsets), left, offsets, new_offsets, _of_ascii(int(poly)), q, values, placed)
    found = values, new_offsets, invalid
    return (*found, *placed) if places else found


def clear_comments(text, offsets, languages, table, left):
    """Write spaces into `left`, of the size of the text, where comments are; `table` has rules, firsts and openings.

    Returns
    -------
    counts : array of int64, shape (documents,)
        The number of tokens that `left` has of each document.
    invalid : int
        Bytes of the text that are not UTF-8.
    """
    counts, invalid = np.zeros((2, len(languages)), np.int64)
    _clear_documents(shares(offsets), text, offsets, languages, table, left, counts, invalid)
    return counts, int(invalid.sum())


for _function in (_matches, _is_letter, _opens, _end, _clear, _end_of_token):
    Device(_function.py_func)


@kernel("void(uint8[::1], int64[::1], uint8[::1], uint64[:, ::1], int64[::1], uint64[:, ::1], uint8[::1])", block=32)
def _clear_each(text, offsets, languages, rules, firsts, openings, left):
    """Write spaces in place of the comments of one document in each thread."""
    d = cuda.grid(1)
    if d < len(languages):
        _clear(text, offsets[d], offsets[d + 1], np.int64(languages[d]), rules, firsts, openings, left)


@kernel("void(uint8[::1], uint8[::1], uint32[::1], uint8[::1], int64[::1])")
def _mark(text, left, begins, is_begun, invalid):
    """Mark in each thread whether a token begins at a byte, and count the byte if it is invalid."""
    i = np.int64(cuda.grid(1))
    if i >= len(is_begun):
        return
    is_later = i > 0 and not begins_at(begins, i) and is_word(left[i - 1])
    is_begun[i] = np.uint8(_is_operator(left[i]) or (is_word(left[i]) and not is_later))
    if text[i] >= 0x80 and not _continues(text, begins, np.int64(len(is_begun)), i):
        _, _, wrong = decode_at(text, begins, np.int64(len(is_begun)), i)
        if wrong:
            cuda.atomic.add(invalid, 0, 1)


@kernel("void(uint8[::1], int64[::1], int64[::1], int64[::1], uint64, uint64[::1], uint64[::1], int64[::1])")
def _fingerprint_tokens(text, offsets, new_offsets, begins, q, tables, values, ends):
    """Fingerprint one token in each thread, byte by byte."""
    modulus = cuda.shared.array(TABLES, types.uint64)
    load(tables, modulus)
    at = cuda.grid(1)
    if at >= len(values):
        return
    end = _end_of_token(text, begins[at], offsets[row_of(new_offsets, at) + 1])
    f = np.uint64(q)
    for i in range(begins[at], end):
        f = np.uint64(append_byte(f, text[i], modulus))
    values[at] = f
    ends[at] = end


def gpu(text, offsets, poly, languages, rules, firsts, openings, places=False):
    """Return what `reference` returns: comments of documents in parallel, then tokens in parallel.

    The host waits twice, for the number of tokens and for that of invalid bytes.
    """
    xp = namespace()
    first, last = bounds_of(offsets)
    text, offsets = on_device(text)[first:last], on_device(offsets) - first
    left, begins, invalid = text.copy(), xp.zeros((last - first) // 32 + 2, np.uint32), xp.zeros(1, np.int64)
    mark_documents.threads(len(offsets), offsets, begins)
    of_languages = on_device(languages), *map(on_device, (rules, firsts, openings))
    _clear_each.threads(len(languages), text, offsets, *of_languages, left)
    is_begun = xp.zeros(last - first, np.uint8)
    _mark.threads(last - first, text, left, begins, is_begun, invalid)
    found = xp.flatnonzero(is_begun)
    new_offsets = xp.searchsorted(found, offsets)
    values, ends = xp.empty(len(found), np.uint64), xp.empty(len(found), np.int64)
    (tables,) = constants(byte_tables, np.uint64(poly))
    _fingerprint_tokens.threads(len(found), left, offsets, new_offsets, found, np.uint64(poly), tables, values, ends)
    placed = (found + first, ends + first) if places else ()
    return values, new_offsets, int(invalid[0]), *placed
