"""Tokens: text to the Rabin fingerprints of its words.

    t = NFKD(text), then each code point c of t becomes NFKD(casefold(c)); letters, numbers and `_` begin or continue a
    token, marks continue one, what is invisible (format characters and default-ignorable code points) vanishes,
    everything else divides; in scripts written without spaces each letter with its marks is a token. A token's
    fingerprint is Rabin's, of its UTF-8 bytes.

    A byte b of text that is not UTF-8 is a letter that equals only itself: the code point U+DC00 + b, which is not
    folded, spelled in the three bytes that UTF-8 would have for it (ED B2 80 to ED B3 BF). Valid text cannot hold these
    code points, so that two documents with the same tokens have the same invalid bytes in the same order.

    The bytes ED B0 80, U+DC00, are a border between two columns. Each is a token of its own. A document of borders
    alone, with or without marks, has no tokens. Text of one column may hold these bytes too: there they read as a
    border and are not counted as invalid.

    The place of a token, on request, is the range of bytes of the text as given from the first to the last code point
    that belongs to the token. A code point belongs to a token if what it becomes has a letter, a number, `_` or a mark
    of the token; an invalid byte, and a border, is a code point. So a place holds the marks of a token, and what is
    invisible between its code points. It does not hold what is invisible before or after them, nor marks that follow
    no letter. Places overlap in two cases:

    - A code point becomes characters of several tokens, as U+00BD (one half) does, and Thai U+0E33 after a consonant.
      It lies in the place of each.
    - U+0345, alone of all marks, becomes a letter, in canonical order after the other marks of its run. After a letter
      of a script written without spaces it begins a token, which other marks of the run may follow in the text: these
      lie in the place of the first token, and so does U+0345 between them.

    If the place of a token overlaps no other, text[begin:end] has this token alone. If it does, text[begin:end] has
    this token and perhaps others. A border is the exception: by the rule above, text that holds nothing else has no
    tokens.

Source: Manasse 2.1 (canonical characters, one delimiter, folded case) and 3.3 (fingerprints); Unicode's canonical
ordering of combining marks (The Unicode Standard 3.11). The tables are those of `_unicode_table`.

Cost: time linear in the bytes of text. On the CPU, ASCII is classified 64 bytes at a time and fingerprinted 8 bytes at
a time, a modular reduction each; other characters are first rewritten, one at a time, in a scratch copy of their
document. On a GPU, a thread finds where tokens begin in 32 bytes. Then a thread reads a token: first all tokens of
ASCII, with eight look-ups for eight bytes, then the others. Places take one more pass over the text: on the CPU 64
bytes of ASCII at a time, else a code point at a time.
"""

from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from . import _unicode_table as unicode_table
from ._constants import constants
from ._cpu import jit, shares, types
from ._folding import fold_documents
from ._gf2 import LANES, advance, advance_block, advance_by_tables, append_byte, byte_tables, prepare, rabin
from ._launch import (
    TABLES,
    Device,
    Sent,
    address_of,
    bounds_of,
    cuda,
    kernel,
    know,
    load,
    namespace,
    on_device,
    to_host,
)
from ._ragged import by_rows, sums_before
from ._token_beginnings import (
    APART,
    BEGIN,
    END,
    EXTEND,
    EXTEND_BEFORE,
    GROUP,
    NO_RUN,
    TABLE,
    begins_at,
    count_before,
    count_decoded,
    count_in_ascii,
    count_unless_borders,
    decode_at,
    fill_decoded,
    fill_in_ascii,
    follow,
    high_bits,
    mark_documents,
    packed_table,
    word_bytes,
)
from ._unicode_table import DIVIDE, MARK, SINGLE, VANISH, WORD
from ._utf8 import beyond_mask, decode, is_word, load_word, lower_eight, word_bits, word_mask
from ._vectors import population, trailing_zeros


def reference(text, offsets, poly, places=False):
    """Return the fingerprints of the tokens of each document, straight from the definition.

    Parameters
    ----------
    text : array of uint8, shape (n,)
        UTF-8, one document after another; each byte that is not UTF-8 is a letter.
    offsets : array of int64, shape (documents + 1,)
    poly : uint64
        q of the modulus x**64 + q.
    places : bool, default False
        Whether to return where the tokens are as well.

    Returns
    -------
    values : array of uint64
        Token fingerprints in text order.
    offsets : array of int64, shape (documents + 1,)
        Documents without tokens have no values.
    invalid : int
        The number of bytes that are not UTF-8.
    begins, ends : arrays of int64
        Only if `places`: token i is text[begins[i]:ends[i]].
    """
    values, new_offsets, invalid, spans = [], [0], 0, []
    for start, stop in zip(offsets[:-1], offsets[1:], strict=True):
        tokens, num_invalid = canonical_words(text[start:stop].tobytes())
        invalid += num_invalid
        for token in tokens:
            spellings, begins, ends = zip(*token, strict=True)
            values.append(rabin(b"".join(spellings), int(poly)))
            spans.append((start + min(begins), start + max(ends)))
        new_offsets.append(len(values))
    found = np.array(values, np.uint64), np.array(new_offsets, np.int64), invalid
    return (*found, *np.array(spans, np.int64).reshape(-1, 2).T.copy()) if places else found


def canonical_words(raw):
    """Return the tokens of a document, each as a list of (spelling, begin, end), and the number of invalid bytes.

    The spelling is what a code point at raw[begin:end] becomes, in UTF-8.
    """
    table = unicode_table.load()
    decoded = "\udc00".join(part.decode("utf-8", "surrogateescape") for part in raw.split(b"\xed\xb0\x80"))
    items, end = [], 0
    for character in decoded:
        begin, end = end, end + (1 if "\udc80" <= character <= "\udcff" else len(_spelled(character)))
        number = int(table.sequence[table.page[ord(character) >> 8], ord(character) & 255])
        if 2 <= number <= 4:
            items.append((0, number, (_spelled(character), begin, end)))
        else:
            for item in range(int(table.starts[number]), int(table.starts[number + 1])):
                spelling = table.spelling[table.spelled[item] : table.spelled[item + 1]].tobytes()
                items.append((int(table.combining[item]), int(table.kinds[item]), (spelling, begin, end)))
    first = 0
    for i in range(len(items) + 1):  # canonical order: each run of non-zero combining classes sorted, stably
        if i == len(items) or items[i][0] == 0:
            items[first:i] = sorted(items[first:i], key=lambda item: item[0])
            first = i + 1
    tokens, state = [], DIVIDE
    for _, kind, part in items:
        if kind == SINGLE or (kind == WORD and state != WORD):
            tokens.append([part])
            state = kind
        elif kind == WORD or (kind == MARK and state != DIVIDE):
            tokens[-1].append(part)
        elif kind != VANISH:
            state = DIVIDE
    if all(token[0][0] == b"\xed\xb0\x80" for token in tokens):
        tokens = []
    return tokens, sum("\udc80" <= character <= "\udcff" for character in decoded)


def _spelled(character):
    return character.encode("utf-8", "surrogatepass")


@jit()
def _load_eight(text, i):
    """Eight bytes from i on; beyond the array, zeros."""
    if i + 8 <= len(text):
        return load_word(text, i)
    word = np.uint64(0)
    for j in range(i, len(text)):
        word |= np.uint64(text[j]) << np.uint64(8 * (j - i))
    return word


@jit()
def _moving_and_staying(f, word, length):
    """A fingerprint extended by the first `length` bytes of `word`, 1 to 8 of them, in lower case, is one part,
    advanced, plus the other."""
    bits = np.uint64(8 * length)
    rest = np.uint64(64) - bits
    f ^= lower_eight(word & (np.uint64(0xFFFFFFFFFFFFFFFF) >> rest))
    return f << rest, (f >> np.uint64(1)) >> (bits - np.uint64(1))


@jit()
def _fingerprint(text, start, stop, q, modulus):
    """Rabin fingerprint of text[start:stop] in lower case, not empty; eight bytes a reduction."""
    f = q
    while stop - start > 8:
        f = advance(f ^ lower_eight(_load_eight(text, start)), modulus)
        start += 8
    moving, staying = _moving_and_staying(f, _load_eight(text, start), stop - start)
    return advance(moving, modulus) ^ staying


_STRETCH = 4096


@jit()
def _scratch():
    """Room for a stretch of text in `_split`: two arrays of places and two of runs, three of words."""
    turns = np.empty(_STRETCH + 10, np.int64)
    runs = np.empty((2, _STRETCH // 2 + 2), np.int64)
    words = np.empty((3, _STRETCH // 2 + 1 + LANES), np.uint64)
    return turns, runs[0], runs[1], words[0], words[1], words[2]


@jit()
def _split(text, start, stop, values, at, scratch, q, modulus):
    """Fingerprint the runs of word bytes into values[at:].

    For a stretch of text at a time: first the places where runs begin and end, in turn; then their first eight
    bytes, with one reduction each, several at once. Runs longer than that follow together, eight bytes a round. So
    no branch depends on the text, which the processor could not predict.
    """
    turns, later, ended, moving, staying, ending = scratch
    before = np.uint64(0)
    pending = 0  # 1 when turns[0] is the beginning of a run that the last stretch left open
    reach = len(text) - 8
    for stretch in range(start, stop, _STRETCH):
        count = pending
        for i in range(stretch, min(stretch + _STRETCH, stop), 64):
            mask = word_bits(text, i, stop)
            bits = mask ^ ((mask << np.uint64(1)) | before)
            before = mask >> np.uint64(63)
            following = count + population(bits)
            while count < following:
                for ahead in range(8):  # what this writes beyond `following` is written over
                    turns[np.uintp(count + ahead)] = i + trailing_zeros(bits)
                    bits &= bits - np.uint64(1)
                count += 8
            count = following
        if stretch + _STRETCH >= stop and count & 1:
            turns[count] = stop
            count += 1
        runs = count >> 1
        whole = runs  # runs that begin where eight bytes can be loaded
        while whole > 0 and turns[2 * whole - 2] > reach:
            whole -= 1
        num_later = 0
        for run in range(whole):
            begin = turns[np.uintp(2 * run)]
            length = turns[np.uintp(2 * run + 1)] - begin
            later[np.uintp(num_later)] = run
            num_later += length > 8
            a, b = _moving_and_staying(q, load_word(text, begin), min(length, 8))
            moving[np.uintp(run)] = a
            staying[np.uintp(run)] = b
        advance_block(moving, whole, modulus)
        for run in range(whole):
            values[np.uintp(at + run)] = moving[np.uintp(run)] ^ staying[np.uintp(run)]
        for k in range(num_later):
            moving[np.uintp(k)] = q
        while num_later > 0:
            for k in range(num_later):
                begin = turns[np.uintp(2 * later[np.uintp(k)])]
                moving[np.uintp(k)] ^= lower_eight(load_word(text, begin))
            advance_block(moving, num_later, modulus)
            still, num_ended = 0, 0
            for k in range(num_later):
                run = later[np.uintp(k)]
                begin = turns[np.uintp(2 * run)] + 8
                length = turns[np.uintp(2 * run + 1)] - begin
                f = moving[np.uintp(k)]
                a, b = _moving_and_staying(f, _load_eight(text, begin), min(length, 8))
                ended[np.uintp(num_ended)] = run
                ending[np.uintp(num_ended)] = a
                staying[np.uintp(num_ended)] = b
                num_ended += length <= 8
                later[np.uintp(still)] = run
                moving[np.uintp(still)] = f
                turns[np.uintp(2 * run)] = begin
                still += length > 8
            advance_block(ending, num_ended, modulus)
            for k in range(num_ended):
                values[np.uintp(at + ended[np.uintp(k)])] = ending[np.uintp(k)] ^ staying[np.uintp(k)]
            num_later = still
        for run in range(whole, runs):
            values[at + run] = _fingerprint(text, turns[2 * run], turns[2 * run + 1], q, modulus)
        at += runs
        pending = count & 1
        if pending:
            turns[0] = turns[count - 1]


@jit()
def _is_divided(text, start, stop):
    """Return whether no token of text[start:stop], which is ASCII, goes on after it."""
    return start == stop or not is_word(text[stop - 1])


@by_rows("uint8[::1], int64[::1], uint8[::1], int64[::1], int64[::1], int64[::1], uint64[::1], uint64", is_wide=True)
def _fill(begin, end, text, offsets, folded, begins, ends, new_offsets, values, q):
    modulus = prepare(q)
    scratch = _scratch()
    d, last = begin, end
    while d < last:
        first, d = d, d + 1
        if ends[first] >= 0:
            _split(folded, begins[first], ends[first], values, new_offsets[first], scratch, q, modulus)
            continue
        while d < last and ends[d] < 0 and _is_divided(text, offsets[first], offsets[d]):
            d += 1
        _split(text, offsets[first], offsets[d], values, new_offsets[first], scratch, q, modulus)


@jit()
def _place_ascii(text, i, stop, newest, state, begins, ends):
    """Write the places of the tokens in ASCII from byte i on, in up to 64 bytes of text[i:stop]; return its end, the
    number of the newest token, and the state after it."""
    size = min(trailing_zeros(beyond_mask(text, i)), stop - i)
    mask = word_mask(text, i)
    if size < 64:
        mask &= (np.uint64(1) << np.uint64(size)) - np.uint64(1)
    turns = mask ^ (mask << np.uint64(1))
    if state == WORD and mask & np.uint64(1) != np.uint64(0):  # the newest token goes on
        turns &= turns - np.uint64(1)
        ends[newest] = i + trailing_zeros(turns)
        turns &= turns - np.uint64(1)
    while turns != np.uint64(0):
        newest += 1
        begins[newest] = i + trailing_zeros(turns)
        turns &= turns - np.uint64(1)
        ends[newest] = i + trailing_zeros(turns)  # after the last byte if none is left
        turns &= turns - np.uint64(1)
    return i + size, newest, np.int64(WORD if is_word(text[i + size - 1]) else DIVIDE)


@jit()
def _place(text, i, stop, newest, page, sequence, starts, items, begins, ends):
    """Write the places of the tokens of text[i:stop], the first of them at `newest` + 1."""
    state, before = np.int64(DIVIDE), np.int64(NO_RUN)
    while i < stop:
        if text[i] < 128 and i + 64 <= len(text):
            i, newest, state = _place_ascii(text, i, stop, newest, state, begins, ends)
            before = np.int64(NO_RUN)
            continue
        first = last = length = np.int64(1)
        number = np.int64(WORD if is_word(text[i]) else DIVIDE)
        if text[i] >= 128:
            code, length, _ = decode(text, i, stop)
            number = np.int64(sequence[page[code >> 8], code & 255])
            first, last = np.int64(starts[number]), np.int64(starts[number + 1])
        for k in range(first, max(last, first + 1)):
            item = items[k] if first < last else number << 8
            state, before, deed = follow(item & 255, (item >> 8) & 255, state, before)
            if deed == BEGIN:
                newest += 1
                begins[newest] = i
            if deed in (BEGIN, EXTEND):
                ends[newest] = i + length
            elif deed == EXTEND_BEFORE:
                ends[newest - 1] = i + length
        i += length


@by_rows(
    "uint8[::1], int64[::1], int64[::1], uint16[::1], uint16[:, ::1], uint32[::1], int64[::1], int64[::1], int64[::1]"
)
def _place_documents(begin, end, text, offsets, new_offsets, page, sequence, starts, items, begins, ends):
    for d in range(begin, end):
        if new_offsets[d] < new_offsets[d + 1]:  # else it may be of borders alone
            newest = new_offsets[d] - 1
            _place(text, offsets[d], offsets[d + 1], newest, page, sequence, starts, items, begins, ends)


def cpu(text, offsets, poly, places=False):
    """Return what `reference` returns: documents in parallel, words found 64 bytes at a time."""
    bounds = shares(offsets)
    folded, begins, ends, counts, invalid = fold_documents(text, offsets, bounds)
    new_offsets = sums_before(counts)
    values = np.empty(new_offsets[-1], np.uint64)
    _fill(bounds, text, offsets, folded, begins, ends, new_offsets, values, np.uint64(poly))
    if not places:
        return values, new_offsets, invalid
    begins, ends = np.empty((2, len(values)), np.int64)
    _place_documents(bounds, text, offsets, new_offsets, *packed_table()[:4], begins, ends)
    return values, new_offsets, invalid, begins, ends


@Device
def _item(text, begins, n, i, k, page, sequence, starts, items):
    """Item k of the code point at i: (class, kind, length and place of its spelling, next code point, next item).

    The place is -1 where the code point stands for itself.
    """
    code, length, _ = decode_at(text, begins, n, i)
    number = np.int64(sequence[page[code >> 8], code & 255])
    first, end = np.int64(starts[number]), np.int64(starts[number + 1])
    if first == end:
        return 0, number, length, -1, i + length, 0
    item = items[first + k]
    if first + k + 1 == end:
        i, k = i + length, 0
    else:
        k += 1
    return item & 255, (item >> 8) & 255, (item >> 16) & 0xFFFF, item >> 32, i, k


@Device
def _append(f, source, place, length, tables):
    """The fingerprint f, extended by source[place:place + length]."""
    for j in range(place, place + length):
        f = np.uint64(append_byte(f, source[j], tables))
    return f


@Device
def _append_run(
    text, begins, n, i, k, page, sequence, starts, items, spelling, f, state, letters_only, tables
):  # fmt: skip
    """Extend a token by the run of items of non-zero class at item k of the code point at i, in canonical order.

    Classes are taken from the lowest up, each by a pass over the run: no room is needed for runs of any length.
    Returns (fingerprint, state, code point and item where the run ends, whether the token ends in it).
    """
    rank, ended = 0, False
    j, m = i, k
    while rank < 256 and not ended:
        following = 256
        j, m = i, k
        while j < n and (j == i or m > 0 or not begins_at(begins, j)):
            combining, kind, length, place, next_j, next_m = _item(
                text, begins, n, j, m, page, sequence, starts, items
            )  # fmt: skip
            if combining == 0:
                break
            if combining == rank:
                if kind == WORD and state == SINGLE:
                    ended = True
                elif kind == WORD or not letters_only:
                    f = _append(f, spelling, place, length, tables)
                if kind == WORD and not ended:
                    state = WORD
            elif combining > rank:
                following = min(following, combining)
            j, m = next_j, next_m
        rank = following
    return f, state, j, m, ended


@jit()
def _next_eight(low, high, i):
    """Eight bytes from byte i on, of the two words that they lie in."""
    shift = np.uint64(8) * (np.uint64(i) & np.uint64(7))
    return (np.uint64(low) >> shift) | ((np.uint64(high) << np.uint64(1)) << (np.uint64(63) - shift))


@jit()
def _run_length(word, begins):
    """How many of eight bytes, from the first on, are ASCII letters, digits or `_`, up to where a document begins: bit
    i of `begins` is that of byte i."""
    word, ends = np.uint64(word), np.uint64(begins) | np.uint64(0x100)
    ends |= ~np.uint64(word_bytes(word & np.uint64(0x7F7F7F7F7F7F7F7F)))
    ends |= np.uint64(high_bits(word))
    return np.int64(population((ends & (~ends + np.uint64(1))) - np.uint64(1)))


@Device
def _append_ascii(words, begins, i, known, f, tables):
    """Extend a token by what of eight bytes from i on are ASCII letters, digits and `_`, in eight look-ups.

    Returns (fingerprint, how many they are, whether the token ends there for certain). `known` is 1 if it does not end
    at i, whether or not a document begins there, else 0.
    """
    word = np.uint64(_next_eight(words[i >> 3], words[(i >> 3) + 1], i))
    starts = np.uint64(begins[i >> 5]) | np.uint64(begins[(i >> 5) + 1]) << np.uint64(32)
    starts = (starts >> (np.uint64(i) & np.uint64(31))) & ~np.uint64(known)
    length = np.int64(_run_length(word, starts))
    if length > 0:
        moving, staying = _moving_and_staying(np.uint64(f), word, length)
        f = np.uint64(advance_by_tables(np.uint64(moving), tables)) ^ np.uint64(staying)
    ends = starts | ~np.uint64(high_bits(word))  # what is ASCII and not in the run divides
    return f, length, length < 8 and (ends >> np.uint64(length)) & np.uint64(1) != np.uint64(0)


@Device
def _read_token(text, words, begins, n, i, k, page, sequence, starts, items, spelling, f, tables):
    """The fingerprint `f`, extended by the token that begins at item k of the code point at i."""
    begin, state = i, DIVIDE
    while i < n and (i == begin or k > 0 or not begins_at(begins, i)):
        byte = text[i]
        if byte < 128:
            if state == SINGLE or not is_word(byte):
                break
            state = WORD
            f, length, ended = _append_ascii(words, begins, i, np.uint64(1), f, tables)
            i += length
            if ended:
                break
            continue
        combining, kind, length, place, next_i, next_k = _item(text, begins, n, i, k, page, sequence, starts, items)
        if combining > 0:
            f, state, i, k, ended = _append_run(
                text, begins, n, i, k, page, sequence, starts, items, spelling, f, state, state == DIVIDE, tables
            )  # fmt: skip
            if ended:
                break
            continue
        if kind == DIVIDE or (kind == WORD and state == SINGLE) or (kind == SINGLE and state != DIVIDE):
            break
        if kind != VANISH:
            if place < 0:
                f = _append(f, text, i, length, tables)
            else:
                f = _append(f, spelling, place, length, tables)
            if kind != MARK:
                state = kind
        i, k = next_i, next_k
    return f


EACH = 8  # tokens of a thread, so that a block copies its tables once for 2,048
_BLOCK = 256
_TOKENS = EACH * _BLOCK


@kernel(f"void(uint8[::1], uint64[::1], uint32[::1], int64, {TABLE}, uint64, uint64[::1], uint64[::1])", block=_BLOCK)
def _fingerprint_tokens(text, words, begins, n, page, sequence, starts, items, spelling, q, tables, values):
    """One thread `EACH` tokens: read each from where it begins, which stands in `values`, and put its fingerprint
    there.

    First those of ASCII alone, eight bytes a step. A thread whose token ends goes on to its next one while its
    neighbours go on with theirs: else all would wait for the longest of 32. The others, which take many times as long,
    are set aside and then read side by side: else each would keep a warp waiting. See benchmarks/PROFILE.md.

    Neighbouring threads read neighbouring text, from the first-level cache; the look-ups are in shared memory, where
    about three of the 16 lanes served at a time meet in a bank. `words` and `begins` go on for 32 bytes after the text.
    """
    modulus = cuda.shared.array(TABLES, types.uint64)
    others = cuda.shared.array(_TOKENS, types.uint32)  # the simulator tells arrays apart by their lines
    num_others = cuda.shared.array(1, types.uint32)
    if cuda.threadIdx.x == 0:
        num_others[0] = np.uint32(0)
    load(tables, modulus)
    first = np.int64(cuda.blockIdx.x) * EACH * cuda.blockDim.x
    token, end = first + cuda.threadIdx.x, min(first + EACH * cuda.blockDim.x, len(values))
    i, f, known = np.int64(0), q, np.uint64(1)
    if token < end:
        i = np.int64(values[token] >> np.uint64(3))
    while token < end:
        f, length, ended = _append_ascii(words, begins, i, known, f, modulus)
        i, known = i + length, np.uint64(0)
        if length < 8:
            if ended:
                values[token] = f
            else:
                others[cuda.atomic.add(num_others, 0, np.uint32(1))] = np.uint32(token - first)
            token += cuda.blockDim.x
            f, known = q, np.uint64(1)
            if token < end:
                i = np.int64(values[token] >> np.uint64(3))
    cuda.syncthreads()
    at = np.int64(cuda.threadIdx.x)
    while at < np.int64(num_others[0]):
        token = first + np.int64(others[at])
        i, k = np.int64(values[token] >> np.uint64(3)), np.int64(values[token] & np.uint64(7))
        values[token] = _read_token(
            text, words, begins, n, i, k, page, sequence, starts, items, spelling, q, modulus
        )  # fmt: skip
        at += cuda.blockDim.x


@kernel(f"void(uint8[::1], uint32[::1], int64, {TABLE}, uint64[::1], int64, int64[::1], int64[::1])")
def _place_tokens(
    text, begins, n, page, sequence, starts, items, spelling, found, first, token_begins, token_ends
):  # fmt: skip
    """Write the place of one token in each thread; `found` says where tokens begin, counted from byte `first`."""
    token = cuda.grid(1)
    if token >= len(found):
        return
    i, k = np.int64(found[token] >> np.uint64(3)), np.int64(found[token] & np.uint64(7))
    begin, last, tokens = i, i, 0
    state, before = np.int64(DIVIDE), np.int64(NO_RUN)
    while i < n and (i == begin or k > 0 or not begins_at(begins, i)):
        rank, kind, _, _, next_i, next_k = _item(text, begins, n, i, k, page, sequence, starts, items)
        if rank == 0 and tokens > 1:  # the run ends in which another token began
            break
        state, before, deed = follow(rank, kind, state, before)
        tokens += deed == BEGIN
        if deed == END or (rank == 0 and tokens > 1):
            break
        if (tokens == 1 and deed != APART) or deed == EXTEND_BEFORE:
            last = i
        i, k = next_i, next_k
    _, length, _ = decode_at(text, begins, n, last)
    token_begins[token] = first + begin
    token_ends[token] = first + last + length


def _as_words(xp, text, first, n):
    """n bytes of text from `first` on, and the same as words; both go on for `GROUP` bytes or more, which mean nothing.

    Text that lies so already, as what was staged does, is not copied.
    """
    needed = GROUP * (-(-n // GROUP) + 1)
    part = text[first : first + needed]
    if len(part) < needed or address_of(part) % 8:
        part = xp.zeros(needed, np.uint8)
        part[:n] = text[first : first + n]
    return part, part.view(np.uint64)


def _without_lone_borders(xp, text, begins, n, places, offsets):
    """Leave out the tokens of documents of borders alone; `places` says where each token begins."""
    sizes = xp.empty(len(offsets) - 1, np.int64)
    count_unless_borders.threads(len(sizes), text, begins, n, places, offsets, sizes)
    new_offsets = xp.zeros(len(offsets), np.int64)
    xp.cumsum(sizes, out=new_offsets[1:])
    know(new_offsets, to_host(new_offsets))
    if bounds_of(new_offsets)[1] == len(places):
        return places, new_offsets
    document = xp.searchsorted(offsets[1:], xp.arange(len(places)), side="right")
    return places[(sizes > 0)[document]], new_offsets


SPREAD = 1 << 18  # threads that share the groups to decode: as many as a large GPU runs at a time


class Begun(NamedTuple):
    """The places where the tokens of texts on a device begin.

    Parameters
    ----------
    text, words : arrays
        The text from its first document on, and the same as words.
    begins : array of uint32
        A bit per byte: whether a document begins there.
    n, first : int
        Bytes of the text, and those before its first document.
    places : array of uint64
        For each token the byte at which it begins, times 8, plus the number of the item in its code point.
    offsets : array of int64
        Where the tokens of each document begin.
    invalid : int
        Bytes that are not UTF-8.
    """

    text: Any
    words: Any
    begins: Any
    n: int
    first: int
    places: Any
    offsets: Any
    invalid: int


class TokenCounting:
    """The tokens of texts, which a device counts; ahead of the rest, `sent` is on its way to the host."""

    def __init__(self, text, offsets, ahead=False):
        xp = namespace()
        self.of, (self.first, last) = offsets, bounds_of(offsets)
        text, offsets, self.n = on_device(text), on_device(offsets), last - self.first
        self.groups = -(-self.n // GROUP)
        counted = xp.zeros(len(offsets) + 3, np.int64)  # what is read back together
        self.offsets, num_decoded, odd = counted[:-3], counted[-3:-2], counted[-2:]  # odd: invalid bytes and borders
        self.text, self.words = _as_words(xp, text, self.first, self.n)
        self.begins = xp.zeros(self.groups + 2, np.uint32)
        if self.groups == 0:
            return
        offsets, table = offsets - self.first if self.first else offsets, constants(packed_table)
        mark_documents.threads(len(offsets), offsets, self.begins)
        texts = self.text, self.words, self.begins, self.n
        counts, self.decoded = xp.empty(self.groups, np.uint8), xp.empty(self.groups, np.uint32)
        count_in_ascii.threads(self.groups, *texts, counts, self.decoded, num_decoded)
        count_decoded.threads(
            min(self.groups, SPREAD), self.text, *texts[2:], *table, self.decoded, num_decoded, counts, odd
        )
        self.ends = xp.cumsum(counts, dtype=np.int64)
        count_before.threads(len(offsets), *texts, *table, self.ends, offsets, self.offsets)
        self.counted, self.sent = counted, Sent(counted) if ahead else None


_COUNTED: WeakValueDictionary[int, TokenCounting] = WeakValueDictionary()


def count_ahead(text, offsets):
    """Start to count tokens on the device. `begun` of the same offsets goes on from there while the result is held."""
    found = _COUNTED[id(offsets)] = TokenCounting(text, offsets, ahead=True)
    return found


def begun(text, offsets):
    """Find where tokens begin, by groups of bytes in parallel.

    The host waits once, for the number of tokens; where documents begin among them is `known` from then on. It waits
    again for a text with borders.
    """
    xp = namespace()
    found = _COUNTED.pop(id(offsets), None) or TokenCounting(text, offsets)
    text, words, begins, n, new_offsets = found.text, found.words, found.begins, found.n, found.offsets
    if found.groups == 0:
        know(new_offsets, np.zeros(len(offsets), np.int64))
        return Begun(text, words, begins, n, found.first, xp.empty(0, np.uint64), new_offsets, 0)
    counted = to_host(found.counted) if found.sent is None else found.sent.get()
    table = constants(packed_table)
    know(new_offsets, counted[:-3])
    places, to_decode = xp.empty(int(counted[-4]), np.uint64), int(counted[-3])
    fill_in_ascii.threads(found.groups, text, words, begins, n, found.ends, places)
    fill_decoded.threads(to_decode, text, begins, n, *table, found.decoded, to_decode, found.ends, places)
    if counted[-1]:
        places, new_offsets = _without_lone_borders(xp, text, begins, n, places, new_offsets)
    return Begun(text, words, begins, n, found.first, places, new_offsets, int(counted[-2]))


def gpu(text, offsets, poly, places=False):
    """As `reference`; beginnings of tokens found by groups of bytes in parallel, then tokens in parallel.

    One token is one thread's work, byte after byte: a megabyte without a space keeps all others waiting.
    """
    xp = namespace()
    text, words, begins, n, first, values, new_offsets, invalid = begun(text, offsets)
    table = constants(packed_table)
    placed = tuple(xp.empty(len(values), np.int64) for _ in range(2 * places))
    if places:
        _place_tokens.threads(len(values), text, begins, n, *table, values, first, *placed)
    (tables,) = constants(byte_tables, np.uint64(poly))
    _fingerprint_tokens.threads(
        -(-len(values) // EACH), text, words, begins, n, *table, np.uint64(poly), tables, values
    )
    return values, new_offsets, invalid, *placed
