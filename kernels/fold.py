"""Folding: texts rewritten so that some differences between them vanish before they are divided into tokens.

There are three folds, and any of them can be chosen:

    marks    the vowel signs of Arabic, the points of Hebrew, and the accents of Latin letters vanish, as does the
             tatweel that stretches Arabic words. Marks of other scripts stay, as they make other letters there.
    hyphens  a word that a hyphen divides at the end of a line is joined: a hyphen or soft hyphen after a letter or
             mark, spaces and tabs, one line end, spaces and tabs, all before a letter. It stays before a capital and a
             small letter, as between "Anglo-" and "Saxon", which are parts of a name.
    digits   each run of decimal digits, of any script, becomes one 0. So every number is the same, however long.

Characters are seen as `tokens` sees them, decomposed: a superscript 2 is a digit, and a letter is Latin if its
decomposition ends with a Latin letter and marks. What is invisible divides neither a letter from its accents, nor two
digits; a vowel sign that vanishes does not divide digits either. A mark after a byte that is not UTF-8 stays, so that
two such bytes never become one character. Code points that are not folded keep their bytes.

The place of a byte of folded text is that of the code point that it comes from, and of the marks and digits after it
that vanished. So the place of a token in folded text reaches from the beginning of its first byte's place to the end of
its last byte's place.

Source: Manasse 2.1 (canonical characters).
Cost: linear; a few look-ups in a table for each code point.
"""

from functools import cache

import numpy as np

from . import _unicode_table as unicode_table
from ._constants import constants
from ._cpu import Rare, intrinsic, jit, shares
from ._launch import Device, bounds_of, cuda, kernel, know, namespace, on_device, row_of, to_host
from ._ragged import by_rows
from ._unicode_table import BORDER, DIVIDE, INVALID, MARK, OWN_MARK, OWN_SINGLE, OWN_WORD, SINGLE, VANISH, WORD
from ._utf8 import decode, mask_of_block
from ._vectors import trailing_zeros

POINTS = (
    *((0x591, 0x5BD), (0x5BF, 0x5BF), (0x5C1, 0x5C2), (0x5C4, 0x5C5), (0x5C7, 0x5C7), (0x610, 0x61A), (0x640, 0x640)),
    *((0x64B, 0x652), (0x656, 0x65F), (0x670, 0x670), (0x6D6, 0x6DC), (0x6DF, 0x6E4), (0x6E7, 0x6E8), (0x6EA, 0x6ED)),
    *((0x898, 0x89F), (0x8CA, 0x8E1), (0x8E3, 0x8FF), (0xFB1E, 0xFB1E)),
)
"""Points of Hebrew, vowel signs of Arabic, and the tatweel. Madda and hamza are parts of letters."""

ACCENTS = ((0x300, 0x344), (0x346, 0x36F), (0x1AB0, 0x1ACE), (0x1DC0, 0x1DFF))
"""Accents, which vanish after Latin letters."""

LATIN_LETTERS = (
    *((0x41, 0x5A), (0x61, 0x7A), (0xC0, 0xD6), (0xD8, 0xF6), (0xF8, 0x2AF), (0x1D00, 0x1D25), (0x1D6B, 0x1D77)),
    *((0x1D79, 0x1D9A), (0x1E00, 0x1EFF), (0x2184, 0x2184), (0x2C60, 0x2C7F), (0xA722, 0xA787), (0xA78B, 0xA7FF)),
    *((0xAB30, 0xAB5A), (0xAB60, 0xAB64), (0xAB66, 0xAB68), (0x1DF00, 0x1DF1E)),
)

ZEROS = (
    *(0x30, 0x660, 0x6F0, 0x7C0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66, 0xDE6, 0xE50, 0xED0),
    *(0xF20, 0x1040, 0x1090, 0x17E0, 0x1810, 0x1946, 0x19D0, 0x1A80, 0x1A90, 0x1B50, 0x1BB0, 0x1C40, 0x1C50, 0xA620),
    *(0xA8D0, 0xA900, 0xA9D0, 0xA9F0, 0xAA50, 0xABF0, 0x104A0, 0x10D30, 0x11066, 0x110F0, 0x11136, 0x111D0, 0x112F0),
    *(0x11450, 0x114D0, 0x11650, 0x116C0, 0x11730, 0x118E0, 0x11950, 0x11C50, 0x11D50, 0x11DA0, 0x16A60, 0x16AC0),
    *(0x16B50, 0x1E140, 0x1E2F0, 0x1E950),
)
"""The zero of each ten decimal digits that have no decomposition."""

HYPHENS = (0x2D, 0xAD, 0x2010)

POINT, ACCENT, LATIN, PASSED, INVISIBLE, DIGIT_FIRST, DIGIT_LAST, HYPHEN, BEFORE, AFTER, UPPER, LOWER, NO_TEXT = (
    1 << bit for bit in range(13)
)
"""Bits of a code point's entry in the table.

- POINT vanishes, and ACCENT vanishes after LATIN and code points that are PASSED.
- INVISIBLE code points have no part in tokens.
- DIGIT_FIRST begins with a digit, and DIGIT_LAST ends with one.
- HYPHEN may divide a word after BEFORE and before AFTER, unless an UPPER letter begins there, with a LOWER one next.
- NO_TEXT is an invalid byte or a border.
"""


def _codes(ranges):
    return frozenset(code for first, last in ranges for code in range(first, last + 1))


_POINTS, _ACCENTS, _LATIN = map(_codes, (POINTS, ACCENTS, LATIN_LETTERS))
_DIGITS = _codes((zero, zero + 9) for zero in ZEROS)


@cache
def table(*folds):
    """Return the table for some folds.

    Returns
    -------
    entries : array of uint32, shape (0x110000,)
        Bits of each code point. The upper half is the number of its replacement; 0 if it has none.
    starts : array of int64, shape (replacements + 1,)
    spelling : array of uint8
        Replacement r is spelling[starts[r]:starts[r + 1]]. Replacement 0 is empty.
    """
    known = unicode_table.load()
    numbers = known.sequence[known.page].reshape(-1)
    by_number, spellings = np.zeros(len(known.starts) - 1, np.uint32), {b"": 0}
    for number, kind in ((OWN_WORD, WORD), (OWN_MARK, MARK), (VANISH, VANISH)):
        by_number[number] = _entry([(0, kind)], folds, spellings)
    for number in range(OWN_MARK + 1, len(by_number)):
        items = range(int(known.starts[number]), int(known.starts[number + 1]))
        parts = [
            (ord(character), int(known.kinds[item]))
            for item in items
            for character in known.spelling[known.spelled[item] : known.spelled[item + 1]]
            .tobytes()
            .decode(errors="replace")
            or "\0"
        ]
        by_number[number] = _entry(parts, folds, spellings)
    entries = by_number[numbers]
    for code in _POINTS | _ACCENTS | _LATIN | _DIGITS | {ord("_")}:
        if numbers[code] in _OWN:
            entries[code] = _entry([(code, _OWN[numbers[code]])], folds, spellings)
    entries[0x345] = PASSED  # the one mark that becomes a letter
    entries[BORDER], entries[INVALID + 0x80 : INVALID + 0x100] = NO_TEXT, NO_TEXT
    if "hyphens" in folds:
        entries[list(HYPHENS)] |= HYPHEN
        for code in np.flatnonzero(entries & AFTER).tolist():
            entries[code] |= UPPER * chr(code).isupper() | LOWER * chr(code).islower()
    starts = np.zeros(len(spellings) + 1, np.int64)
    np.cumsum([len(each) for each in spellings], out=starts[1:])
    return entries, starts, np.frombuffer(b"".join(spellings), np.uint8)


_OWN = {OWN_WORD: WORD, OWN_SINGLE: SINGLE, OWN_MARK: MARK}


def _entry(parts, folds, spellings):
    """Return the entry of a code point that becomes some (code, kind), and add its replacement to `spellings`."""
    kinds, kept, is_latin = {kind for _, kind in parts}, list(parts), False
    entry = PASSED * (kinds <= {MARK, VANISH}) | INVISIBLE * (kinds == {VANISH})
    if "marks" in folds:
        kept = []
        for code, kind in parts:
            if code not in _POINTS and not (is_latin and kind == MARK and code in _ACCENTS):
                kept.append((code, kind))
            if kind not in (MARK, VANISH):
                is_latin = kind == WORD and code in _LATIN
        is_accent = all(kind == MARK and code in _ACCENTS for code, kind in parts)
        entry |= LATIN * is_latin | POINT * (not kept) | ACCENT * is_accent
    if "digits" in folds and kept:
        digits = [kind in (WORD, SINGLE) and code in _DIGITS for code, kind in kept]
        entry |= DIGIT_FIRST * digits[0] | DIGIT_LAST * digits[-1]
        folded = [(ord("0"), WORD) if is_digit else part for part, is_digit in zip(kept, digits, strict=True)]
        kept = [folded[0], *(folded[i] for i in range(1, len(folded)) if not (digits[i - 1] and digits[i]))]
    if "hyphens" in folds:
        first, last = (
            kind == WORD and code != ord("_") and code not in _DIGITS for code, kind in (parts[0], parts[-1])
        )
        entry |= AFTER * first | BEFORE * (last or parts[-1][1] == MARK)
    if kept and (kept != parts or entry & (DIGIT_FIRST | DIGIT_LAST)):
        spelled = [{DIVIDE: " ", VANISH: ""}.get(kind, chr(code)) for code, kind in kept]
        spelling = "".join(spelled).encode()
        entry |= spellings.setdefault(spelling, len(spellings)) << 16
    return entry


def reference(text, offsets, folds, places=False):
    """Return the folded text of each document, straight from the definition.

    Parameters
    ----------
    text : array of uint8, shape (n,)
        UTF-8, one document after another; a byte that is not UTF-8 is a letter.
    offsets : array of int64, shape (documents + 1,)
    folds : tuple of str
        Some of "marks", "hyphens" and "digits".
    places : bool, default False
        Whether to return where the bytes are from as well.

    Returns
    -------
    folded : array of uint8
    offsets : array of int64, shape (documents + 1,)
    begins, ends : arrays of int64
        Only if `places`: the place in `text` of each byte of `folded`.
    """
    known = table(*folds)
    folded, new_offsets, spans = bytearray(), [0], []
    for start, stop in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        for spelling, begin, end in _folded(text[start:stop].tobytes(), *known):
            folded += spelling
            spans += [(start + begin, start + end)] * len(spelling)
        new_offsets.append(len(folded))
    found = np.frombuffer(bytes(folded), np.uint8), np.array(new_offsets, np.int64)
    return (*found, *np.array(spans, np.int64).reshape(-1, 2).T.copy()) if places else found


def _folded(raw, entries, starts, spelling):
    """Return (spelling, begin, end) of each code point that stays in a document."""
    decoded = "\udc00".join(part.decode("utf-8", "surrogateescape") for part in raw.split(b"\xed\xb0\x80"))
    codes, places = [ord(character) for character in decoded], [0]
    for code in codes:
        is_byte = INVALID < code <= INVALID + 0xFF
        places.append(places[-1] + (1 if is_byte else len(chr(code).encode("utf-8", "surrogatepass"))))
    flags = [int(entries[code]) for code in codes] + [0]
    kept, joins, after_latin, after_digit, i = [], -1, False, False, 0
    while i < len(codes):
        before, here = flags[i - 1] if i else 0, flags[i]
        after = _after_hyphen(codes, flags, i) if before & BEFORE and here & HYPHEN else i
        if after > i:
            joins, after_latin, after_digit, i = len(kept), False, False, after
            continue
        begin, end, number = places[i], places[i + 1], here >> 16
        spelled = spelling[starts[number] : starts[number + 1]].tobytes() if number else raw[begin:end]
        if here & DIGIT_FIRST and after_digit:
            spelled = spelled[1:]
        if (here & POINT and not before & NO_TEXT) or (here & ACCENT and after_latin):
            spelled = b""
        if spelled:
            kept.append([spelled, begin, end, here & INVISIBLE])
        elif kept and joins < len(kept):  # it belongs to the last code point that is not invisible
            owner = next((each for each in reversed(kept[max(joins, 0) :]) if not each[3]), None)
            if owner is not None:
                owner[2] = end
        after_latin = bool(here & LATIN or (after_latin and here & PASSED))
        after_digit = bool(here & DIGIT_LAST or (after_digit and here & (INVISIBLE | POINT)))
        i += 1
    return [tuple(each[:3]) for each in kept]


def _after_hyphen(codes, flags, i):
    """Return the letter at which a word goes on that the hyphen at i divides; i if it divides none."""

    def skip(j, characters):
        while j < len(codes) and codes[j] in characters:
            j += 1
        return j

    j = skip(i + 1, (0x20, 0x09))
    line_end = 2 if codes[j : j + 2] == [0x0D, 0x0A] else 1 if codes[j : j + 1] in ([0x0A], [0x0D]) else 0
    j = skip(j + line_end, (0x20, 0x09))
    if not line_end or not flags[j] & AFTER:
        return i
    following = j + 1
    while flags[following] & PASSED:
        following += 1
    return i if flags[j] & UPPER and flags[following] & LOWER else j


@jit()
def _read(text, i, stop, entries):
    """Return the entry of the code point at i, and where it ends."""
    code, length, _ = decode(text, i, stop)
    return np.int64(entries[code]), np.int64(i + length)


@jit()
def _size(entry, length, starts):
    """Return the bytes that a code point takes, before `_walk` looks at the code points before it."""
    number = entry >> 16
    if entry & POINT:
        return np.int64(0)
    return np.int64(starts[number + 1] - starts[number]) if number else np.int64(length)


@jit()
def _skip_blanks(text, j, stop):
    while j < stop and (text[j] == 0x20 or text[j] == 0x09):
        j += 1
    return np.int64(j)


@jit()
def _joined_at(text, i, stop, entries):
    """Return the letter at which a word goes on that a hyphen at i divides; i if there is no such hyphen."""
    hyphen, j = _read(text, i, stop, entries)
    if hyphen & HYPHEN == 0:
        return np.int64(i)
    end = _skip_blanks(text, j, stop)
    j = end
    if j < stop and text[j] == 0x0D:
        j += 1
    if j < stop and text[j] == 0x0A:
        j += 1
    if j == end:
        return np.int64(i)
    j = _skip_blanks(text, j, stop)
    if j == stop:
        return np.int64(i)
    first, following = _read(text, j, stop, entries)
    if first & AFTER == 0:
        return np.int64(i)
    if first & UPPER:
        while following < stop:
            entry, end = _read(text, following, stop, entries)
            if entry & LOWER:
                return np.int64(i)
            if entry & PASSED == 0:
                break
            following = end
    return np.int64(j)


@jit()
def _walk(text, i, stop, entries, sizes):
    """Change the sizes of the code points that follow the one at i as it says, and return where it ends.

    No code point is changed by two others, so that threads may do this in any order. Each is looked at by few others.
    """
    entry, following = _read(text, i, stop, entries)
    if following == stop:
        return following
    if entry & NO_TEXT:
        other, end = _read(text, following, stop, entries)
        if other & POINT:
            sizes[following] = np.uint8(end - following)
    if entry & LATIN:
        other, j, end = np.int64(PASSED), following, following
        while other & PASSED and j < stop:
            other, end = _read(text, j, stop, entries)
            if other & ACCENT:
                sizes[j] = np.uint8(0)
            j = end
    if entry & DIGIT_LAST:
        other, j, end = np.int64(POINT), following, following
        while other & (INVISIBLE | POINT) and j < stop:
            other, end = _read(text, j, stop, entries)
            if other & DIGIT_FIRST:
                sizes[j] = np.uint8(sizes[j] - 1)
            j = end
    if entry & BEFORE:
        for j in range(following, _joined_at(text, following, stop, entries)):
            sizes[j] = np.uint8(0)
    return following


@jit()
def _end_of_place(text, i, stop, entries, sizes):
    """Return where the place of the code point at i ends: after the code points after it that vanished."""
    entry, j = _read(text, i, stop, entries)
    last = j
    while j < stop and entry & INVISIBLE == 0:
        other, end = _read(text, j, stop, entries)
        if sizes[j] == 0 and other & HYPHEN == 0:
            last = end
        elif sizes[j] == 0 or other & INVISIBLE == 0:
            break
        j = end
    return last


@jit()
def _write(text, i, stop, known, sizes, folded, begins, ends, at):
    """Write the code point at i to folded[at:], and its place if there is room; return where it ends there."""
    entries, starts, spelling = known
    entry, following = _read(text, i, stop, entries)
    size, number = np.int64(sizes[i]), entry >> 16
    last = following if len(begins) == 0 else _end_of_place(text, i, stop, entries, sizes)
    for k in range(size):
        if number:
            folded[at + k] = spelling[starts[number + 1] - size + k]
        else:
            folded[at + k] = text[i + k]
        if len(begins):
            begins[at + k] = i
            ends[at + k] = last
    return at + size


def _emit_may_fold(builder, block, text):
    digit = builder.icmp_unsigned("<", builder.sub(text, block.constant(ord("0"))), block.constant(10))
    hyphen = builder.icmp_unsigned("==", text, block.constant(ord("-")))
    return builder.or_(builder.or_(digit, hyphen), builder.icmp_signed("<", text, block.constant(0)))


@intrinsic
def _may_fold_mask(typingctx, array, index):
    """Bit i: array[index + i] is a digit, a hyphen, or beyond ASCII. Only blanks and line ends are folded besides."""
    return mask_of_block(array, _emit_may_fold)


@jit()
def _calm(text, i, stop):
    """Return the number of bytes from i on, 64 at most, before the first digit, hyphen or byte beyond ASCII."""
    if i + 64 <= len(text):
        return min(trailing_zeros(_may_fold_mask(text, i)), 64, stop - i)
    count = 0
    while i + count < stop and text[i + count] < 128 and text[i + count] != 45 and not 48 <= text[i + count] < 58:
        count += 1
    return count


@by_rows(Rare("uint8[::1], int64[::1], uint32[::1], int64[::1], uint8[::1], int64[::1]"))
def _measure_documents(begin, end, text, offsets, entries, starts, sizes, counts):
    """Change the sizes of bytes, which are 1 at first, and count the folded bytes of each document.

    Of calm bytes only the last one is looked at: it may be a letter before an accent or a hyphen.
    """
    for d in range(begin, end):
        stop = offsets[d + 1]
        for is_walk in (False, True):
            i = offsets[d]
            while i < stop:
                calm = _calm(text, i, stop)
                if calm > 1:
                    i += calm - 1
                elif is_walk:
                    i = _walk(text, i, stop, entries, sizes)
                else:
                    entry, following = _read(text, i, stop, entries)
                    sizes[i] = np.uint8(_size(entry, following - i, starts))
                    sizes[i + 1 : following] = 0
                    i = following
        count = 0
        for i in range(offsets[d], stop):
            count += sizes[i]
        counts[d] = count


@by_rows(
    Rare(
        "uint8[::1], int64[::1], int64[::1], (uint32[::1], int64[::1], uint8[::1]), uint8[::1], uint8[::1], "
        "int64[::1], int64[::1]"
    )
)
def _write_documents(begin, end, text, offsets, new_offsets, known, sizes, folded, begins, ends):
    for d in range(begin, end):
        i, stop, at = offsets[d], offsets[d + 1], new_offsets[d]
        while i < stop:
            calm = _calm(text, i, stop) if sizes[i] and len(begins) == 0 else 0
            folded[at : at + calm] = text[i : i + calm]
            if sizes[i] and calm == 0:
                at = _write(text, i, stop, known, sizes, folded, begins, ends, at)
            at += calm
            i += max(calm, 1)


def cpu(text, offsets, folds, places=False):
    """Return what `reference` returns: documents in parallel, first the size of each code point, then its bytes."""
    known, sizes = table(*folds), np.ones(len(text), np.uint8)
    bounds, new_offsets = shares(offsets), np.zeros(len(offsets), np.int64)
    _measure_documents(bounds, text, offsets, *known[:2], sizes, new_offsets[1:])
    np.cumsum(new_offsets, out=new_offsets)
    folded = np.empty(new_offsets[-1], np.uint8)
    begins, ends = np.empty((2, len(folded) if places else 0), np.int64)
    _write_documents(bounds, text, offsets, new_offsets, known, sizes, folded, begins, ends)
    return (folded, new_offsets, begins, ends) if places else (folded, new_offsets)


for _function in (decode, _read, _size, _skip_blanks, _joined_at, _walk, _end_of_place, _write):
    Device(_function.py_func)

GROUP = 32  # bytes of text that a thread takes


@Device
def _first_in(text, i, start, stop):
    """Return the first code point of text[start:stop] that begins at i or later."""
    for back in range(1, 4):
        if i - back < start:
            break
        if text[i - back] >= 0xC0:
            _, length, _ = decode(text, i - back, stop)
            return max(i, i - back + length)
        if text[i - back] < 0x80:
            break
    return i


@kernel("void(uint8[::1], int64[::1], uint32[::1], int64[::1], boolean, uint8[::1])")
def _measure(text, offsets, entries, starts, is_walk, sizes):
    """Write the sizes of the code points in 32 bytes in each thread; if `is_walk`, change sizes instead."""
    i = offsets[0] + GROUP * np.int64(cuda.grid(1))
    last = min(i + GROUP, offsets[-1])
    if i >= last:
        return
    d = row_of(offsets, i)
    i = _first_in(text, i, offsets[d], offsets[d + 1])
    while i < last:
        while offsets[d + 1] <= i:
            d += 1
        stop = offsets[d + 1]
        if is_walk:
            i = _walk(text, i, stop, entries, sizes)
        else:
            entry, following = _read(text, i, stop, entries)
            sizes[i] = np.uint8(_size(entry, following - i, starts))
            i = following


@kernel("void(int64[::1], uint8[::1], int64[::1], int64[::1])")
def _count_before(offsets, sizes, ends, new_offsets):
    """Count the folded bytes before a document in each thread. `ends` counts them up to the end of each group."""
    d = cuda.grid(1)
    if d >= len(offsets):
        return
    group = (offsets[d] - offsets[0]) // GROUP
    before = ends[group - 1] if group > 0 else np.int64(0)
    for i in range(offsets[0] + group * GROUP, offsets[d]):
        before += np.int64(sizes[i])
    new_offsets[d] = before


@kernel(
    "void(uint8[::1], int64[::1], uint32[::1], int64[::1], uint8[::1], uint8[::1], int64[::1], uint8[::1], int64[::1], "
    "int64[::1])"
)
def _write_groups(text, offsets, entries, starts, spelling, sizes, group_ends, folded, begins, ends):
    """Write the code points that begin in 32 bytes in each thread."""
    group = np.int64(cuda.grid(1))
    i = offsets[0] + GROUP * group
    last = min(i + GROUP, offsets[-1])
    if i >= last:
        return
    at = group_ends[group - 1] if group > 0 else np.int64(0)
    d, known = row_of(offsets, i), (entries, starts, spelling)
    while i < last:
        while offsets[d + 1] <= i:
            d += 1
        if sizes[i] != 0:
            at = _write(text, i, offsets[d + 1], known, sizes, folded, begins, ends, at)
        i += 1


def gpu(text, offsets, folds, places=False):
    """Return what `reference` returns: 32 bytes of text in each thread. The host waits for the length of the result."""
    xp = namespace()
    text, offsets, known = on_device(text), on_device(offsets), constants(table, *folds)
    first, last = bounds_of(offsets)
    groups = -(-(last - first) // GROUP)
    sizes = xp.zeros(first + groups * GROUP, np.uint8)
    for is_walk in (False, True):
        _measure.threads(groups, text, offsets, *known[:2], is_walk, sizes)
    ends = xp.cumsum(sizes[first:].reshape(-1, GROUP).sum(axis=1, dtype=np.int64))
    new_offsets = xp.zeros(len(offsets), np.int64)
    _count_before.threads(len(offsets), offsets, sizes, ends, new_offsets)
    on_host = to_host(new_offsets)
    know(new_offsets, on_host)
    folded = xp.empty(int(on_host[-1]), np.uint8)
    places_of = xp.empty((2, len(folded) if places else 0), np.int64)
    _write_groups.threads(groups, text, offsets, *known, sizes, ends, folded, places_of[0], places_of[1])
    return (folded, new_offsets, places_of[0], places_of[1]) if places else (folded, new_offsets)
