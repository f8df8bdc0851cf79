"""Tokens: text to the Rabin fingerprints of its words.

    t = NFKD(text), then each code point c of t becomes NFKD(casefold(c)); letters, numbers and `_` begin or continue a
    token, marks continue one, what is invisible (format characters and default-ignorable code points) vanishes,
    everything else divides; in scripts written without spaces each letter with its marks is a token. A token's
    fingerprint is Rabin's, of its UTF-8 bytes.

Source: Manasse 2.1 (canonical characters, one delimiter, folded case) and 3.3 (fingerprints); Unicode's canonical
ordering of combining marks (The Unicode Standard 3.11). The tables are those of `unicode_table`.

Cost: time linear in the bytes of text. On the CPU, ASCII is classified 64 bytes at a time and fingerprinted 8 bytes at
a time, a modular reduction each; other characters are first rewritten, one at a time, in a scratch copy of their
document. On a GPU, tokens' beginnings are found 32 bytes a thread, then tokens are read one a thread, a look-up a byte.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import prange, types
from numba.extending import intrinsic

from . import _unicode_table as unicode_table
from ._gf2 import LANES, advance, advance_block, append_byte, byte_tables, prepare, rabin
from ._launch import Device, cuda, jit, kernel, load, namespace, shares
from ._unicode_table import DIVIDE, MARK, SINGLE, VANISH, WORD

SEPARATOR = np.uint8(0x20)


def reference(text, offsets, poly):
    """Fingerprints of the tokens of each document, straight from the definition.

    Parameters
    ----------
    text : array of uint8, shape (n,)
        UTF-8, one document after another. What is not UTF-8 reads as U+FFFD, which divides.
    offsets : array of int64, shape (documents + 1,)
    poly : uint64
        q of the modulus x**64 + q.

    Returns
    -------
    values : array of uint64
        Token fingerprints in text order.
    offsets : array of int64, shape (documents + 1,)
        Documents without tokens have no values.
    invalid : int
        How many ill-formed sequences (maximal subparts) were read as U+FFFD.
    """
    table = unicode_table.load()
    values, new_offsets, invalid = [], [0], 0
    for start, stop in zip(offsets[:-1], offsets[1:], strict=True):
        raw = text[start:stop].tobytes()
        decoded = raw.decode("utf-8", "replace")
        invalid += decoded.count("\ufffd") - raw.count("\ufffd".encode())
        items = []
        for character in decoded:
            number = int(table.sequence[table.page[ord(character) >> 8], ord(character) & 255])
            if 2 <= number <= 4:
                items.append((0, number, character.encode()))
            else:
                for item in range(int(table.starts[number]), int(table.starts[number + 1])):
                    spelling = table.spelling[table.spelled[item] : table.spelled[item + 1]].tobytes()
                    items.append((int(table.combining[item]), int(table.kinds[item]), spelling))
        first = 0
        for i in range(len(items) + 1):  # canonical order: each run of non-zero combining classes sorted, stably
            if i == len(items) or items[i][0] == 0:
                items[first:i] = sorted(items[first:i], key=lambda item: item[0])
                first = i + 1
        tokens, state = [], DIVIDE
        for _, kind, spelling in items:
            if kind == SINGLE or (kind == WORD and state != WORD):
                tokens.append(spelling)
                state = kind
            elif kind == WORD or (kind == MARK and state != DIVIDE):
                tokens[-1] += spelling
            elif kind != VANISH:
                state = DIVIDE
        values.extend(rabin(token, int(poly)) for token in tokens)
        new_offsets.append(len(values))
    return np.array(values, np.uint64), np.array(new_offsets, np.int64), invalid


_BLOCK = ir.VectorType(ir.IntType(8), 64)


def _load_block(builder, pointer):
    return builder.load(builder.bitcast(pointer, _BLOCK.as_pointer()), align=1)


def _splat(value):
    return ir.Constant(_BLOCK, [value] * 64)


def _emit_word_mask(builder, pointer):
    block = _load_block(builder, pointer)
    letter = builder.icmp_unsigned("<", builder.sub(builder.or_(block, _splat(0x20)), _splat(ord("a"))), _splat(26))
    digit = builder.icmp_unsigned("<", builder.sub(block, _splat(ord("0"))), _splat(10))
    underscore = builder.icmp_unsigned("==", block, _splat(ord("_")))
    beyond = builder.icmp_signed("<", block, _splat(0))
    mask = builder.or_(builder.or_(letter, digit), builder.or_(underscore, beyond))
    return builder.bitcast(mask, ir.IntType(64))


def _emit_beyond_mask(builder, pointer):
    block = _load_block(builder, pointer)
    return builder.bitcast(builder.icmp_signed("<", block, _splat(0)), ir.IntType(64))


def _emit_lead_mask(builder, pointer):
    block = _load_block(builder, pointer)
    return builder.bitcast(builder.icmp_unsigned(">=", block, _splat(0xC0)), ir.IntType(64))


def _emit_word(builder, pointer):
    return builder.load(builder.bitcast(pointer, ir.IntType(64).as_pointer()), align=1)


@intrinsic
def _copy_block(typingctx, source, index, target, where):
    """target[where:where + 64] = source[index:index + 64]"""

    def codegen(context, builder, signature, args):
        byte, block = ir.IntType(8).as_pointer(), _BLOCK.as_pointer()
        read, written = (
            builder.gep(builder.bitcast(context.make_array(kind)(context, builder, array).data, byte), [at])
            for kind, array, at in zip(signature.args[::2], args[::2], args[1::2], strict=True)
        )
        builder.store(builder.load(builder.bitcast(read, block), align=1), builder.bitcast(written, block), align=1)
        return context.get_dummy_value()

    return types.void(source, types.int64, target, types.int64), codegen


@intrinsic
def _word_mask(typingctx, array, index):
    """Bit i: array[index + i] belongs to a token (ASCII letters, digits, _, and every byte beyond ASCII)."""
    return _on_memory(array, types.uint64, _emit_word_mask)


@intrinsic
def _beyond_mask(typingctx, array, index):
    """Bit i: array[index + i] is beyond ASCII."""
    return _on_memory(array, types.uint64, _emit_beyond_mask)


@intrinsic
def _lead_mask(typingctx, array, index):
    """Bit i: array[index + i] would lead a sequence of more than one byte."""
    return _on_memory(array, types.uint64, _emit_lead_mask)


@intrinsic
def _word(typingctx, array, index):
    """array[index:index + 8] as a little-endian integer, at any alignment."""
    return _on_memory(array, types.uint64, _emit_word)


def _on_memory(array, returns, emit):
    def codegen(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return emit(builder, builder.gep(builder.bitcast(data, ir.IntType(8).as_pointer()), [args[1]]))

    return returns(array, types.int64), codegen


@intrinsic
def _trailing_zeros(typingctx, value):
    """Position of the lowest set bit of a uint64; 64 for 0."""

    def codegen(context, builder, signature, args):
        return builder.cttz(args[0], ir.IntType(1)(0))

    return types.int64(types.uint64), codegen


@intrinsic
def _population(typingctx, value):
    """Number of set bits of a uint64."""

    def codegen(context, builder, signature, args):
        return builder.ctpop(args[0])

    return types.int64(types.uint64), codegen


@jit()
def _is_word(byte):
    letter = np.uint8((byte | 0x20) - 97)
    return letter < 26 or (byte >= 48 and byte <= 57) or byte == 95 or byte >= 128


@jit()
def _word_bits(array, i, stop):
    """Bits of `_word_mask` for array[i:min(i + 64, stop)], never reading beyond the array."""
    if i + 64 <= len(array):
        mask = _word_mask(array, i)
    else:
        mask = np.uint64(0)
        for j in range(i, stop):
            if _is_word(array[j]):
                mask |= np.uint64(1) << np.uint64(j - i)
    if stop - i < 64:
        mask &= (np.uint64(1) << np.uint64(stop - i)) - np.uint64(1)
    return mask


@jit()
def _is_ascii(text, start, stop):
    i = start
    while i + 64 <= stop:
        if _beyond_mask(text, i) != np.uint64(0):
            return False
        i += 64
    for j in range(i, stop):
        if text[j] >= 128:
            return False
    return True


@jit()
def _count(text, start, stop):
    """Number of tokens: of runs of word bytes."""
    count = 0
    before = np.uint64(0)
    for i in range(start, stop, 64):
        mask = _word_bits(text, i, stop)
        count += _population(mask & ~((mask << np.uint64(1)) | before))
        before = mask >> np.uint64(63)
    return count


@jit()
def _lower(word):
    """ASCII capitals among eight bytes to lower case: the sums set a byte's high bit from 'A' on and from '[' on."""
    low = word & np.uint64(0x7F7F7F7F7F7F7F7F)
    capitals = (low + np.uint64(0x3F3F3F3F3F3F3F3F)) ^ (low + np.uint64(0x2525252525252525))
    return word | ((capitals & ~word & np.uint64(0x8080808080808080)) >> np.uint64(2))


@jit()
def _load(text, i):
    """Eight bytes from i on; beyond the array, zeros."""
    if i + 8 <= len(text):
        return _word(text, i)
    word = np.uint64(0)
    for j in range(i, len(text)):
        word |= np.uint64(text[j]) << np.uint64(8 * (j - i))
    return word


@jit()
def _parts(f, word, length):
    """A fingerprint extended by the first `length` bytes of `word`, 1 to 8 of them, in lower case, is one part,
    advanced, plus the other."""
    bits = np.uint64(8 * length)
    rest = np.uint64(64) - bits
    f ^= _lower(word & (np.uint64(0xFFFFFFFFFFFFFFFF) >> rest))
    return f << rest, (f >> np.uint64(1)) >> (bits - np.uint64(1))


@jit()
def _fingerprint(text, start, stop, q, modulus):
    """Rabin fingerprint of text[start:stop] in lower case, not empty; eight bytes a reduction."""
    f = q
    while stop - start > 8:
        f = advance(f ^ _lower(_load(text, start)), modulus)
        start += 8
    moving, staying = _parts(f, _load(text, start), stop - start)
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
            mask = _word_bits(text, i, stop)
            bits = mask ^ ((mask << np.uint64(1)) | before)
            before = mask >> np.uint64(63)
            following = count + _population(bits)
            while count < following:
                for ahead in range(8):  # what this writes beyond `following` is written over
                    turns[np.uintp(count + ahead)] = i + _trailing_zeros(bits)
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
            a, b = _parts(q, _word(text, begin), min(length, 8))
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
                moving[np.uintp(k)] ^= _lower(_word(text, begin))
            advance_block(moving, num_later, modulus)
            still, num_ended = 0, 0
            for k in range(num_later):
                run = later[np.uintp(k)]
                begin = turns[np.uintp(2 * run)] + 8
                length = turns[np.uintp(2 * run + 1)] - begin
                f = moving[np.uintp(k)]
                a, b = _parts(f, _load(text, begin), min(length, 8))
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
def _decode(text, i, stop):
    """(code point, bytes read, ill-formed?) at i; an ill-formed sequence reads as U+FFFD and ends where it goes
    wrong."""
    lead = text[i]
    if lead < 0x80:
        return np.int64(lead), 1, False
    if lead < 0xC2 or lead > 0xF4:
        return 0xFFFD, 1, True
    length = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    lowest, highest = 0x80, 0xBF  # of the second byte: no overlong forms, no surrogates, nothing beyond U+10FFFF
    if lead == 0xE0:
        lowest = 0xA0
    elif lead == 0xED:
        highest = 0x9F
    elif lead == 0xF0:
        lowest = 0x90
    elif lead == 0xF4:
        highest = 0x8F
    code = np.int64(lead) & (0x7F >> length)
    for j in range(1, length):
        if i + j >= stop or text[i + j] < lowest or text[i + j] > highest:
            return 0xFFFD, j, True
        code = (code << 6) | (np.int64(text[i + j]) & 0x3F)
        lowest, highest = 0x80, 0xBF
    return code, length, False


@jit()
def _emit(kind, source, begin, end, out, at, state):
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
def _collect(text, i, item, stop, page, sequence, starts, combining, items):
    """Gather a run of items of non-zero combining class from item `item` of the code point at i on.

    Returns (items, their number, code point and item where the run ends).
    """
    count = 0
    while i < stop:
        code, length, _ = _decode(text, i, stop)
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
    Returns the end of the folded text and the number of ill-formed sequences.
    """
    i, item, state, invalid = start, 0, DIVIDE, 0
    last = 0  # combining class of the last item; its run began at run_*
    run_i, run_item, run_at, run_state = start, 0, at, DIVIDE
    buffer = np.empty(32, np.int64)
    while i < stop:
        if text[i] < 128 and item == 0:
            if state == SINGLE and _is_word(text[i]):
                out[at] = SEPARATOR
                at += 1
            if i + 64 <= stop:
                _copy_block(text, i, out, at)
                ascii = min(_trailing_zeros(_beyond_mask(text, i)), 64)
            else:
                ascii = 0
                while i + ascii < stop and text[i + ascii] < 128:
                    out[at + ascii] = text[i + ascii]
                    ascii += 1
            i += ascii
            at += ascii
            state = WORD if _is_word(text[i - 1]) else DIVIDE
            last = 0
            continue
        code, length, wrong = _decode(text, i, stop)
        if item == 0 and wrong:
            invalid += 1
        number = np.int64(sequence[page[code >> 8], code & 255])
        begin, end = np.int64(starts[number]), np.int64(starts[number + 1])
        if begin == end:
            at, state = _emit(number, text, i, i + length, out, at, state)
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
            at, state = _emit(np.int64(kinds[k]), spelling, spelled[k], spelled[k + 1], out, at, state)
            last = rank
        if not disordered:
            i += length
            item = 0
            continue
        buffer, count, i, item = _collect(text, run_i, run_item, stop, page, sequence, starts, combining, buffer)
        at, state, last = run_at, run_state, 0
        order = np.argsort(combining[buffer[:count]], kind="mergesort")
        for k in buffer[:count][order]:
            at, state = _emit(np.int64(kinds[k]), spelling, spelled[k], spelled[k + 1], out, at, state)
    return at, invalid


@jit()
def _room(text, start, stop, widest):
    """A bound on the bytes that `_fold` writes, with the 64 that it may write too many: cheap, and seldom far off."""
    room = stop - start + 64
    for i in range(start, stop, 64):
        if i + 64 <= len(text):
            leads = _lead_mask(text, i)
        else:
            leads = np.uint64(0xFFFFFFFFFFFFFFFF)
        while leads != np.uint64(0):
            at = i + _trailing_zeros(leads)
            leads &= leads - np.uint64(1)
            if at + 1 < stop and text[at] >= 0xC0:
                lead, second = np.int64(text[at]), np.int64(text[at + 1]) & 63
                if lead < 0xE0:
                    room += widest[lead & 31]
                elif lead < 0xF0:
                    room += widest[(lead & 15) << 6 | second]
                elif lead < 0xF5 and at + 2 < stop:
                    block = (lead & 7) << 12 | second << 6 | np.int64(text[at + 2]) & 63
                    if block < len(widest):
                        room += widest[block]
    return room


@jit(parallel=True)
def _fold_documents(text, offsets, bounds, widest, page, sequence, starts, combining, kinds, spelled, spelling):
    """Count tokens; documents that are not ASCII are folded first, each into its own region of one scratch array.

    Returns the number of tokens of each document, the scratch, where each document begins and ends in it (end -1: not
    there, the text itself will do), and the number of ill-formed sequences.
    """
    num = len(offsets) - 1
    counts = np.zeros(num, np.int64)
    begins = np.zeros(num + 1, np.int64)
    ends = np.full(num, -1, np.int64)
    invalid = np.zeros(len(bounds) - 1, np.int64)
    for part in prange(len(bounds) - 1):
        for d in range(bounds[part], bounds[part + 1]):
            if not _is_ascii(text, offsets[d], offsets[d + 1]):
                ends[d] = _room(text, offsets[d], offsets[d + 1], widest)
    for d in range(num):
        begins[d + 1] = begins[d] + max(ends[d], 0)
    folded = np.empty(begins[num], np.uint8)
    for part in prange(len(bounds) - 1):
        for d in range(bounds[part], bounds[part + 1]):
            if ends[d] < 0:
                counts[d] = _count(text, offsets[d], offsets[d + 1])
            else:
                ends[d], wrong = _fold(
                    text, offsets[d], offsets[d + 1], folded, begins[d],
                    page, sequence, starts, combining, kinds, spelled, spelling,
                )  # fmt: skip
                invalid[part] += wrong
                counts[d] = _count(folded, begins[d], ends[d])
    return counts, folded, begins, ends, invalid.sum()


@jit(parallel=True)
def _fill(text, offsets, bounds, folded, begins, ends, new_offsets, values, q):
    modulus = prepare(q)
    for part in prange(len(bounds) - 1):
        scratch = _scratch()
        for d in range(bounds[part], bounds[part + 1]):
            if ends[d] < 0:
                _split(text, offsets[d], offsets[d + 1], values, new_offsets[d], scratch, q, modulus)
            else:
                _split(folded, begins[d], ends[d], values, new_offsets[d], scratch, q, modulus)


def cpu(text, offsets, poly):
    """As `reference`; documents in parallel, words found 64 bytes at a time."""
    bounds = shares(offsets)
    counts, folded, begins, ends, invalid = _fold_documents(text, offsets, bounds, *unicode_table.load())
    new_offsets = np.zeros(len(offsets), np.int64)
    np.cumsum(counts, out=new_offsets[1:])
    values = np.empty(new_offsets[-1], np.uint64)
    _fill(text, offsets, bounds, folded, begins, ends, new_offsets, values, np.uint64(poly))
    return values, new_offsets, int(invalid)


# On a GPU every byte must say by itself whether a token begins there. It can, because of what comes before it only the
# last item that is neither a mark nor vanishing matters: a word character begins a token unless that was one too. Only
# marks are ever reordered, with one exception: U+0345 folds to the letter iota, but has a combining class, the greatest
# of all. It stays a word character that comes after all marks of its run.

_GROUP = 32  # bytes of text whose token beginnings one thread finds
_UNKNOWN = -1  # state before a group, until something depends on it


def _packed_table():
    """(page, sequence, starts, items, spelling): `unicode_table`, an item being one word of class, kind, length and
    place of its spelling."""
    table = unicode_table.load()
    places = table.spelled.astype(np.int64)
    items = (
        table.combining.astype(np.int64)
        | table.kinds.astype(np.int64) << 8
        | (places[1:] - places[:-1]) << 16
        | places[:-1] << 32
    )
    return table.page, table.sequence, table.starts, items, table.spelling


_TABLE = "uint16[::1], uint16[:,::1], uint32[::1], int64[::1], uint8[::1]"
_decode_on_device = Device(_decode.py_func)


@jit()
def _lower_byte(byte):
    """An ASCII byte in lower case."""
    return byte | 0x20 if byte >= 65 and byte <= 90 else byte


@jit()
def _word_bytes(word):
    """Bit i: byte i of eight ASCII bytes is a letter, a digit or `_`. Sums set a byte's high bit from a bound on."""
    word = np.uint64(word)
    small = word | np.uint64(0x2020202020202020)
    letters = (small + np.uint64(0x1F1F1F1F1F1F1F1F)) & ~(small + np.uint64(0x0505050505050505))
    digits = (word + np.uint64(0x5050505050505050)) & ~(word + np.uint64(0x4646464646464646))
    others = (word ^ np.uint64(0x5F5F5F5F5F5F5F5F)) + np.uint64(0x7F7F7F7F7F7F7F7F)
    mask = (letters | digits | ~others) & np.uint64(0x8080808080808080)
    return ((mask >> np.uint64(7)) * np.uint64(0x0102040810204080)) >> np.uint64(56)  # gathers the eight bits


@jit()
def _begun(words, before, begins):
    """Bit i: a token begins at byte i, where bit i of `words` says that byte i is of a word, and bit i of `begins`
    that a document begins there; `before` is 1 when the byte before is of a word."""
    words, before, begins = np.uint64(words), np.uint64(before), np.uint64(begins)
    return words & (~((words << np.uint64(1)) | before) | begins)


@jit()
def _count_bits(mask):
    return _population(np.uint64(mask))


@Device
def _begins_at(begins, i):
    """Whether a document begins at byte i."""
    return (np.int64(begins[i >> 5]) >> (i & 31)) & 1 != 0


@Device
def _decode_at(text, begins, n, i):
    """`_decode` of the sequence at i, which ends with its document."""
    stop = i + 1
    while stop < n and stop < i + 4 and not _begins_at(begins, stop):
        stop += 1
    return _decode_on_device(text, i, stop)


@Device
def _continues(text, begins, n, i):
    """Whether byte i belongs to a sequence that began before it."""
    j = i
    while j > i - 3 and text[j] & 0xC0 == 0x80 and not _begins_at(begins, j):
        j -= 1
    if j == i or text[j] & 0xC0 == 0x80:
        return False
    _, length, _ = _decode_at(text, begins, n, j)
    return j + length > i


@Device
def _state_before(text, begins, n, i, page, sequence, starts, items):
    """Kind of the last item before byte i that is neither a mark nor vanishing; DIVIDE where the document begins."""
    while not _begins_at(begins, i):
        i -= 1
        while _continues(text, begins, n, i):
            i -= 1
        code, _, _ = _decode_at(text, begins, n, i)
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
def _find(text, begins, n, i, end, page, sequence, starts, items, found, at, wanted):
    """Find the items at which tokens begin, of code points that begin in text[i:end], one after another.

    If `wanted`, their places go to found[at:]: byte times 8 plus the number of the item in its code point, below 7.
    Returns their number and that of ill-formed sequences. The state before i is looked for only when a word character
    comes before anything that settles it; so no byte is gone back over by more than one thread.
    """
    while i < end and _continues(text, begins, n, i):
        i += 1
    count, invalid, state = 0, 0, _UNKNOWN
    while i < end:
        if _begins_at(begins, i):
            state = DIVIDE
        code, length, wrong = _decode_at(text, begins, n, i)
        if wrong:
            invalid += 1
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
    return count, invalid


@Device
def _ascii_beginnings(text, words, begins, group):
    """(whether a group and the byte before it are ASCII, bits of the bytes at which its tokens begin)."""
    first = 4 * group
    every = words[first] | words[first + 1] | words[first + 2] | words[first + 3]
    last = text[32 * group - 1] if group > 0 else np.uint8(0)
    if every & np.uint64(0x8080808080808080) != np.uint64(0) or last >= 128:
        return False, np.uint64(0)
    mask = np.uint64(0)
    for i in range(4):
        mask |= np.uint64(_word_bytes(words[first + i])) << np.uint64(8 * i)
    return True, np.uint64(_begun(mask, np.uint64(1) if _is_word(last) else np.uint64(0), begins[group]))


@kernel("void(int64[::1], uint32[::1])")
def _mark_documents(offsets, begins):
    """One thread a document: set the bit of its first byte, if it has one."""
    d = cuda.grid(1)
    if d < len(offsets) - 1 and offsets[d] < offsets[d + 1]:
        i = offsets[d]
        cuda.atomic.or_(begins, i >> 5, np.uint32(1 << (i & 31)))


@kernel(f"void(uint8[::1], uint64[::1], uint32[::1], int64, {_TABLE}, uint8[::1], int64[::1])")
def _count_beginnings(text, words, begins, n, page, sequence, starts, items, spelling, counts, invalid):
    """One thread a group: how many tokens begin there, at most 66 (11 sequences of 3 bytes, each of 6 tokens)."""
    group = cuda.grid(1)
    if group >= len(counts):
        return
    ascii, mask = _ascii_beginnings(text, words, begins, group)
    if ascii:
        counts[group] = np.uint8(_count_bits(mask))
        return
    i, end = _GROUP * group, min(_GROUP * (group + 1), n)
    found = cuda.local.array(1, types.uint64)
    count, wrong = _find(text, begins, n, i, end, page, sequence, starts, items, found, 0, False)
    counts[group] = np.uint8(count)
    if wrong:
        cuda.atomic.add(invalid, 0, wrong)


@kernel(f"void(uint8[::1], uint64[::1], uint32[::1], int64, {_TABLE}, int64[::1], uint64[::1])")
def _fill_beginnings(text, words, begins, n, page, sequence, starts, items, spelling, ends, places):
    """One thread a group: where its tokens begin, as `_find` writes it; `ends` counts tokens to the end of each
    group."""
    group = cuda.grid(1)
    if group >= len(ends):
        return
    at = ends[group - 1] if group > 0 else 0
    ascii, mask = _ascii_beginnings(text, words, begins, group)
    if not ascii:
        i, end = _GROUP * group, min(_GROUP * (group + 1), n)
        _find(text, begins, n, i, end, page, sequence, starts, items, places, at, True)
        return
    while mask != np.uint64(0):
        lowest = mask & (~mask + np.uint64(1))
        i = _GROUP * group + np.int64(_count_bits(lowest - np.uint64(1)))
        places[at] = np.uint64(i << 3)
        at += 1
        mask ^= lowest


@kernel(f"void(uint8[::1], uint64[::1], uint32[::1], int64, {_TABLE}, int64[::1], int64[::1], int64[::1])")
def _count_before(text, words, begins, n, page, sequence, starts, items, spelling, ends, offsets, new_offsets):
    """One thread a document, and one for the end: how many tokens begin before it."""
    d = cuda.grid(1)
    if d >= len(offsets):
        return
    group = offsets[d] >> 5
    before = ends[group - 1] if group > 0 else 0
    i = _GROUP * group
    if i < offsets[d]:
        ascii, mask = _ascii_beginnings(text, words, begins, group)
        if ascii:
            below = (np.uint64(1) << np.uint64(offsets[d] - i)) - np.uint64(1)
            before += np.int64(_count_bits(mask & below))
        else:
            found = cuda.local.array(1, types.uint64)
            count, _ = _find(text, begins, n, i, offsets[d], page, sequence, starts, items, found, 0, False)
            before += count
    new_offsets[d] = before


@Device
def _item(text, begins, n, i, k, page, sequence, starts, items):
    """Item k of the code point at i: (class, kind, length and place of its spelling, next code point, next item).

    The place is -1 where the code point stands for itself.
    """
    code, length, _ = _decode_at(text, begins, n, i)
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
        while j < n and (j == i or m > 0 or not _begins_at(begins, j)):
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


@kernel(f"void(uint8[::1], uint32[::1], int64, {_TABLE}, uint64, uint64[::1], uint64[::1])")
def _fingerprint_tokens(text, begins, n, page, sequence, starts, items, spelling, q, tables, values):
    """One thread a token: read it from where it begins, which stands in `values`, and put its fingerprint there.

    Neighbouring threads read neighbouring text, from the first-level cache; a byte is one look-up in 2 kB of shared
    memory, where about three of the 16 lanes served at a time meet in a bank.
    """
    modulus = cuda.shared.array(256, types.uint64)
    load(tables, modulus)
    token = cuda.grid(1)
    if token >= len(values):
        return
    begin = np.int64(values[token] >> np.uint64(3))
    i, k = begin, np.int64(values[token] & np.uint64(7))
    f, state = q, DIVIDE
    while i < n and (i == begin or k > 0 or not _begins_at(begins, i)):
        byte = text[i]
        if byte < 128:
            if state == SINGLE or not _is_word(byte):
                break
            state = WORD
            while True:
                f = np.uint64(append_byte(f, _lower_byte(byte), modulus))
                i += 1
                if i == n or _begins_at(begins, i):
                    break
                byte = text[i]
                if byte >= 128 or not _is_word(byte):
                    break
            continue
        combining, kind, length, place, next_i, next_k = _item(
            text, begins, n, i, k, page, sequence, starts, items
        )  # fmt: skip
        if combining > 0:
            f, state, i, k, ended = _append_run(
                text, begins, n, i, k, page, sequence, starts, items, spelling, f, state, state == DIVIDE, modulus
            )  # fmt: skip
            if ended:
                break
            continue
        if kind == DIVIDE or (kind == WORD and state == SINGLE) or (kind == SINGLE and state != DIVIDE):
            break
        if kind != VANISH:
            if place < 0:
                f = _append(f, text, i, length, modulus)
            else:
                f = _append(f, spelling, place, length, modulus)
            if kind != MARK:
                state = kind
        i, k = next_i, next_k
    values[token] = f


def gpu(text, offsets, poly):
    """As `reference`; beginnings of tokens found by groups of bytes in parallel, then tokens in parallel.

    One token is one thread's work, byte after byte: a megabyte without a space keeps all others waiting.
    """
    xp = namespace()
    text, offsets = xp.ascontiguousarray(text), xp.ascontiguousarray(offsets)
    first, n = int(offsets[0]), int(offsets[-1] - offsets[0])
    groups = -(-n // _GROUP)
    padded = xp.zeros(_GROUP * groups, np.uint8)
    padded[:n] = text[first : first + n]
    words, begins, offsets = padded.view(np.uint64), xp.zeros(groups, np.uint32), offsets - first
    _mark_documents.threads(len(offsets) - 1, offsets, begins)
    table = [xp.ascontiguousarray(array) for array in _packed_table()]
    counts, invalid = xp.empty(groups, np.uint8), xp.zeros(1, np.int64)
    _count_beginnings.threads(groups, padded, words, begins, n, *table, counts, invalid)
    ends = xp.cumsum(counts, dtype=np.int64)
    new_offsets = xp.zeros(len(offsets), np.int64)
    if groups == 0:
        return xp.empty(0, np.uint64), new_offsets, 0
    _count_before.threads(len(offsets), padded, words, begins, n, *table, ends, offsets, new_offsets)
    values = xp.empty(int(ends[-1]), np.uint64)
    _fill_beginnings.threads(groups, padded, words, begins, n, *table, ends, values)
    tables = xp.ascontiguousarray(byte_tables(np.uint64(poly)))
    _fingerprint_tokens.threads(len(values), padded, begins, n, *table, np.uint64(poly), tables, values)
    return values, new_offsets, int(invalid[0])
