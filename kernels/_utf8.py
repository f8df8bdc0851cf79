"""Bytes of text: which belong to words, which code point they spell; 64 bytes at a time where they are ASCII."""

import numpy as np

from ._cpu import intrinsic, ir, jit, types
from ._unicode_table import BORDER, INVALID
from ._vectors import Vectors, population


def mask_of_block(array, emit, given=0):
    """An intrinsic's signature and code: bit i says whether `emit` holds of array[index + i], of 64 bytes.

    It holds of that byte and of `given` others, which the intrinsic takes after the index.
    """

    def codegen(context, builder, signature, args):
        block = Vectors(context, builder, 8, 64)
        others = [block.splat(builder.trunc(each, ir.IntType(8))) for each in args[2:]]
        return block.mask(emit(builder, block, block.load(signature.args[0], args[0], args[1]), *others))

    return types.uint64(array, *[types.int64] * (1 + given)), codegen


def _emit_is_word(builder, block, text):
    constant = block.constant
    letter = builder.icmp_unsigned(
        "<", builder.sub(builder.or_(text, constant(0x20)), constant(ord("a"))), constant(26)
    )
    digit = builder.icmp_unsigned("<", builder.sub(text, constant(ord("0"))), constant(10))
    underscore = builder.icmp_unsigned("==", text, constant(ord("_")))
    beyond = builder.icmp_signed("<", text, constant(0))
    return builder.or_(builder.or_(letter, digit), builder.or_(underscore, beyond))


@intrinsic
def word_mask(typingctx, array, index):
    """Bit i: array[index + i] belongs to a token (ASCII letters, digits, _, and every byte beyond ASCII)."""
    return mask_of_block(array, _emit_is_word)


@intrinsic
def beyond_mask(typingctx, array, index):
    """Bit i: array[index + i] is beyond ASCII."""
    return mask_of_block(array, lambda builder, block, text: builder.icmp_signed("<", text, block.constant(0)))


@intrinsic
def _least_mask(typingctx, array, index, byte):
    """Bit i: array[index + i] is this byte or a greater one."""
    return mask_of_block(array, lambda builder, block, text, byte: builder.icmp_unsigned(">=", text, byte), 1)


@intrinsic
def copy_block(typingctx, source, index, target, where):
    """target[where:where + 64] = source[index:index + 64]"""

    def codegen(context, builder, signature, args):
        block, kinds = Vectors(context, builder, 8, 64), signature.args
        block.store(block.load(kinds[0], args[0], args[1]), kinds[2], args[2], args[3])
        return context.get_dummy_value()

    return types.void(source, types.int64, target, types.int64), codegen


@intrinsic
def load_word(typingctx, array, index):
    """array[index:index + 8] as a little-endian integer, at any alignment."""

    def codegen(context, builder, signature, args):
        eight = Vectors(context, builder, 8, 8)
        return builder.bitcast(eight.load(signature.args[0], args[0], args[1]), ir.IntType(64))

    return types.uint64(array, types.int64), codegen


@jit()
def lower_eight(word):
    """Return eight bytes with ASCII capitals in lower case: sums set the high bit of bytes from 'A' and from '[' on."""
    low = word & np.uint64(0x7F7F7F7F7F7F7F7F)
    capitals = (low + np.uint64(0x3F3F3F3F3F3F3F3F)) ^ (low + np.uint64(0x2525252525252525))
    return word | ((capitals & ~word & np.uint64(0x8080808080808080)) >> np.uint64(2))


@jit()
def is_word(byte):
    letter = np.uint8((byte | 0x20) - 97)
    return letter < 26 or (byte >= 48 and byte <= 57) or byte == 95 or byte >= 128


@jit()
def _within(mask, i, stop):
    """Clear the bits of a mask of 64 bytes from i on that lie at `stop` or after it."""
    return mask if stop - i >= 64 else mask & ((np.uint64(1) << np.uint64(stop - i)) - np.uint64(1))


@jit()
def word_bits(array, i, stop):
    """Return the bits of `word_mask` for array[i:min(i + 64, stop)], and never read beyond the array."""
    if i + 64 <= len(array):
        return _within(word_mask(array, i), i, stop)
    mask = np.uint64(0)
    for j in range(i, stop):
        if is_word(array[j]):
            mask |= np.uint64(1) << np.uint64(j - i)
    return mask


@jit()
def sequence_bits(array, i, stop):
    """Return four masks for array[i:min(i + 64, stop)], and never read beyond the array.

    They mark bytes beyond ASCII, and those that would lead a sequence of at least two, three and four bytes.
    """
    if i + 64 <= len(array):
        beyond, lead = _within(beyond_mask(array, i), i, stop), _within(_least_mask(array, i, 0xC0), i, stop)
        three, four = _within(_least_mask(array, i, 0xE0), i, stop), _within(_least_mask(array, i, 0xF0), i, stop)
        return beyond, lead, three, four
    beyond = lead = three = four = np.uint64(0)
    for j in range(i, min(i + 64, stop)):
        bit = np.uint64(1) << np.uint64(j - i)
        beyond |= bit if array[j] >= 0x80 else np.uint64(0)
        lead |= bit if array[j] >= 0xC0 else np.uint64(0)
        three |= bit if array[j] >= 0xE0 else np.uint64(0)
        four |= bit if array[j] >= 0xF0 else np.uint64(0)
    return beyond, lead, three, four


@jit()
def is_ascii(text, start, stop):
    """Whether text[start:stop] is ASCII alone."""
    i = start
    while i < stop and i + 64 <= len(text):
        if _within(beyond_mask(text, i), i, stop) != np.uint64(0):
            return False
        i += 64
    for j in range(i, stop):
        if text[j] >= 128:
            return False
    return True


@jit()
def count_words(text, start, stop):
    """Number of runs of word bytes in text[start:stop], which are its tokens if it is ASCII or folded."""
    count = 0
    before = np.uint64(0)
    for i in range(start, stop, 64):
        mask = word_bits(text, i, stop)
        count += population(mask & ~((mask << np.uint64(1)) | before))
        before = mask >> np.uint64(63)
    return count


@jit()
def decode(text, i, stop):
    """Decode the code point at i.

    Returns (code point, bytes read, whether the byte at i is invalid). Each byte of an ill-formed sequence is invalid,
    and stands for a letter of its own (`INVALID`). The bytes ED B0 80 are a `BORDER`.
    """
    lead = text[i]
    if lead < 0x80:
        return np.int64(lead), 1, False
    invalid = np.int64(INVALID) + np.int64(lead)
    if lead < 0xC2 or lead > 0xF4:
        return invalid, 1, True
    length = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    lowest, highest = 0x80, 0xBF  # of the second byte: no overlong forms, no surrogates, nothing beyond U+10FFFF
    if lead == 0xE0:
        lowest = 0xA0
    elif lead == 0xED:
        highest = 0x9F
        if i + 2 < stop and text[i + 1] == 0xB0 and text[i + 2] == 0x80:
            return np.int64(BORDER), 3, False
    elif lead == 0xF0:
        lowest = 0x90
    elif lead == 0xF4:
        highest = 0x8F
    code = np.int64(lead) & (0x7F >> length)
    for j in range(1, length):
        if i + j >= stop or text[i + j] < lowest or text[i + j] > highest:
            return invalid, 1, True
        code = (code << 6) | (np.int64(text[i + j]) & 0x3F)
        lowest, highest = 0x80, 0xBF
    return code, length, False
