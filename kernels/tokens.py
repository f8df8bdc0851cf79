"""Tokens: text to the Rabin fingerprints of its words.

    t = NFKD(text), then each code point c of t becomes NFKD(casefold(c)); letters, numbers and `_` begin or continue a
    token, marks continue one, format characters vanish, everything else divides; in scripts written without spaces each
    letter with its marks is a token. A token's fingerprint is Rabin's, of its UTF-8 bytes.

Source: Manasse 2.1 (canonical characters, one delimiter, folded case) and 3.3 (fingerprints); Unicode's canonical
ordering of combining marks (The Unicode Standard 3.11). The tables are those of `unicode_table`.

Cost: time linear in the bytes of text. ASCII is classified 64 bytes at a time and fingerprinted 8 bytes at a time, a
modular reduction each; other characters are first rewritten, one at a time, in a scratch copy of their document.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import prange, types
from numba.extending import intrinsic

from . import unicode_table
from .launch import jit, shares
from .scalar import LANES, advance, advance_block, prepare, rabin
from .unicode_table import DIVIDE, MARK, SINGLE, VANISH, WORD

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
